// Written by `holdfast install opencode`; `holdfast uninstall opencode` removes it.
//
// Holdfast in OpenCode: each event becomes one run of Holdfast's hook program, which answers
// {context?, deny?, stop?, notice?}. A program that fails or hangs never holds OpenCode up.
import { spawn, spawnSync } from "node:child_process"
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"

const EVENTS = {}
const MCP = null // the command that serves Holdfast's tools, where they are installed

// One process an event: the payload goes in, an answer comes out; anything else reads as no answer.
function ask(event, payload) {
  const { command, seconds } = EVENTS[event]
  return new Promise((resolve) => {
    let child
    try {
      child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
    } catch {
      return resolve({})
    }
    let out = ""
    const timer = setTimeout(() => child.kill("SIGKILL"), seconds * 1000)
    const end = () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(out) ?? {})
      } catch {
        resolve({})
      }
    }
    child.stdout.on("data", (data) => (out += data))
    child.on("error", () => { clearTimeout(timer); resolve({}) })
    child.on("close", end)
    child.stdin.on("error", () => {}) // it may end without reading
    child.stdin.end(JSON.stringify(payload))
  })
}

// OpenCode compacts where the model's answer might no longer fit.
function limitsOf({ context, input, output }) {
  if (!context) return {}
  const reserved = Math.min(output || 32000, 32000)
  const compact_at = input ? input - Math.min(reserved, 20000) : context - reserved
  return { context_window: context, compact_at: compact_at > 0 ? compact_at : undefined }
}

// With an MCP server, OpenCode looks for its plugin package once more while it ends. Where the registry does not
// answer in time it ends with the lock of that in hand, and its next start waits a minute for nobody.
function dropOwnLocks() {
  const folder = join(process.env.XDG_STATE_HOME || join(homedir(), ".local", "state"), "opencode", "locks")
  for (const name of listed(folder)) {
    const lock = join(folder, name)
    if (ownerOf(lock) === process.pid || isLeftUnnamed(lock)) rmSync(lock, { recursive: true, force: true })
  }
}

function listed(folder) {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function ownerOf(lock) {
  try {
    return JSON.parse(readFileSync(join(lock, "meta.json"), "utf8")).pid
  } catch {
    return undefined
  }
}

// A lock is a folder first and gets its owner's number then. Ours stays without one: nothing else of OpenCode
// runs any more. Another process's gets it at once; it would lose no more than a look for the package.
function isLeftUnnamed(lock) {
  for (let tries = 0; tries < 20; tries++) {
    try {
      if (ownerOf(lock) !== undefined || statSync(lock).mtimeMs < performance.timeOrigin) return false
    } catch {
      return false // it was given back
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
  }
  return true
}

export const Holdfast = async ({ client, directory }) => {
  const helpers = new Map() // session of a sub-agent → the one it is part of
  const models = new Map() // session → {model, context_window}
  const starting = new Map() // session → the answer of its start, for its first prompt
  const counted = new Set() // messages whose usage was told
  const restored = new Map() // session → the answer after a compaction: what its summary lacks
  const open = new Set() // sessions that were prompted here

  const about = (sessionID, more = {}) => ({
    session_id: sessionID, cwd: directory, ...models.get(sessionID), ...more,
  })
  const tell = async (event, sessionID, more) => {
    const answer = await ask(event, about(sessionID, more))
    if (answer.notice) {
      // Not waited for: without a terminal to show it nobody answers.
      client.tui.showToast({ body: { message: answer.notice, variant: "info" } }).catch(() => {})
    }
    if (answer.stop) await client.session.abort({ path: { id: sessionID } }).catch(() => {})
    return answer
  }

  const onEvent = {
    "session.created": ({ sessionID, info }) => {
      if (info.parentID) helpers.set(sessionID, helpers.get(info.parentID) ?? info.parentID)
      else starting.set(sessionID, tell("session.created", sessionID, { source: "startup" }))
    },
    "message.updated": ({ sessionID, info }) => {
      if (info.role !== "assistant" || !info.time?.completed || counted.has(info.id)) return
      counted.add(info.id)
      const { input, output, reasoning, cache } = info.tokens
      return tell("message.updated", sessionID, {
        message_id: info.id,
        usage: { input, output, reasoning, cache_read: cache.read, cache_write: cache.write },
      })
    },
    "session.compacted": ({ sessionID }) => {
      restored.set(sessionID, tell("session.compacted", sessionID))
    },
    "session.idle": ({ sessionID }) => tell("session.idle", sessionID),
    "session.deleted": ({ sessionID }) => {
      open.delete(sessionID)
      return tell("session.deleted", sessionID)
    },
  }

  // OpenCode says nothing of a session when it ends; the work itself is done detached, so this takes a moment only.
  const end = () => {
    for (const sessionID of open) {
      const { command } = EVENTS["session.deleted"]
      const input = JSON.stringify(about(sessionID, { reason: "exit" }))
      spawnSync(command[0], command.slice(1), { input, stdio: ["pipe", "ignore", "ignore"], timeout: 3000 })
    }
    open.clear()
  }
  process.once("exit", () => {
    end()
    dropOwnLocks()
  })

  return {
    // An entry of the user's own stays.
    config: async (config) => {
      if (MCP && !config.mcp?.holdfast) {
        config.mcp = { ...config.mcp, holdfast: { type: "local", command: MCP, enabled: true } }
      }
    },

    // With its screen, this runs in a thread that is stopped without a word. Where OpenCode goes on, a prompt opens again.
    dispose: async () => end(),

    event: async ({ event }) => {
      const sessionID = event.properties?.sessionID ?? event.properties?.info?.id
      if (helpers.has(sessionID)) return
      await onEvent[event.type]?.({ ...event.properties, sessionID })
    },

    "chat.message": async ({ sessionID }, { message, parts }) => {
      if (helpers.has(sessionID)) return
      open.add(sessionID)
      if (message.model) models.set(sessionID, { ...models.get(sessionID), model: message.model.modelID })
      const prompt = parts.filter((part) => part.type === "text").map((part) => part.text).join("\n")
      const start = (await starting.get(sessionID)) ?? {}
      starting.delete(sessionID)
      const { context } = await tell("chat.message", sessionID, { prompt })
      const last = parts[parts.length - 1]
      const texts = [start.context, context].filter(Boolean)
      texts.forEach((text, index) => parts.push({
        id: `${last.id}${index}`, sessionID, messageID: message.id, type: "text", text, synthetic: true,
      }))
    },

    "experimental.chat.system.transform": async ({ sessionID, model }, output) => {
      if (helpers.has(sessionID)) return
      models.set(sessionID, { model: model.id, ...limitsOf(model.limit ?? {}) })
      const { context } = (await restored.get(sessionID)) ?? {}
      if (context) output.system.push(context)
    },

    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      const { deny, stop } = await tell("tool.execute.before", sessionID, {
        tool_name: tool, tool_input: args, tool_use_id: callID,
      })
      if (deny || stop) throw new Error(deny || stop)
    },

    "tool.execute.after": async ({ tool, sessionID, args }, output) => {
      if (helpers.has(sessionID)) return
      const { context } = await tell("tool.execute.after", sessionID, {
        tool_name: tool, tool_input: args, tool_response: output.output,
      })
      if (context) output.output = `${output.output ?? ""}\n\n${context}`
    },

    "experimental.session.compacting": async ({ sessionID }, output) => {
      const { context } = await tell("session.compacting", sessionID)
      if (context) output.context.push(context)
    },

    // So that `holdfast quiet on`, run in a session, knows which one.
    "shell.env": async ({ sessionID }, { env }) => {
      if (sessionID) env.HOLDFAST_SESSION_ID = helpers.get(sessionID) ?? sessionID
    },
  }
}
