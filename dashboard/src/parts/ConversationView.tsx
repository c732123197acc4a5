/** What an agent and its tools said, as its own record has it. */
import type { useInfiniteQuery } from "@tanstack/react-query";
import type { Conversation, ConversationMessage } from "../api/types";
import { agentName, count, counted, moment, neutral, timeOfDay } from "../lib/format";
import { Failed, Loading } from "./states";

type Query = ReturnType<typeof useInfiniteQuery<Conversation>>;

const ROLES: Record<string, string> = { user: "User", assistant: "Agent", system: "System" };
const SHORT = 600;

export function ConversationView({ query }: { query: Query }) {
  if (query.isError && !query.data) return <Failed error={query.error} />;
  if (!query.data) return <Loading what="conversation" />;
  const pages = [...query.data.pages].reverse();
  const messages = pages.flatMap((page) => page.messages);
  const newest = query.data.pages[0];
  return (
    <div className="stack">
      <p className="muted">
        {agentName(newest?.agent ?? "")} · <code>{neutral(newest?.session_id ?? "")}</code> ·{" "}
        {counted(newest?.total ?? 0, "message")}
      </p>
      {query.hasNextPage && (
        <button
          type="button"
          className="small more"
          disabled={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          {query.isFetchingNextPage ? "Loading…" : `Show earlier (${count(messages[0]?.number ?? 0)})`}
        </button>
      )}
      <Talk messages={messages} />
    </div>
  );
}

/** In the order of the record; what a tool returned stands below its call. */
export function Talk({ messages }: { messages: readonly ConversationMessage[] }) {
  const results = new Map(messages.flatMap((one) => one.results.map((result) => [result.call_id, result])));
  const joined = new Set(messages.flatMap((one) => one.calls.map((call) => call.id)));
  return (
    <ol className="talk">
      {messages.map((one) => (
        <Message key={one.number} one={one} results={results} joined={joined} />
      ))}
    </ol>
  );
}

type Results = ReadonlyMap<string, ConversationMessage["results"][number]>;

function Message({
  one,
  results,
  joined,
}: {
  one: ConversationMessage;
  results: Results;
  joined: ReadonlySet<string>;
}) {
  const loose = one.results.filter((result) => !joined.has(result.call_id));
  if (!one.text && !one.thinking && one.calls.length === 0 && loose.length === 0) return null;
  const at = one.at && !Number.isNaN(Date.parse(one.at)) ? one.at : null;
  return (
    <li className={`said said-${one.role}`} data-message={one.number} id={`message-${one.number}`}>
      <p className="said-by">
        <strong>{one.is_compaction ? "Summary" : one.is_injected ? "Program" : ROLES[one.role]}</strong>
        {one.subagent && <span className="tag">{neutral(one.subagent)}</span>}
        {at && (
          <time className="muted" dateTime={at} title={moment(at)}>
            {timeOfDay(at)}
          </time>
        )}
      </p>
      {one.thinking && (
        <details>
          <summary>Thinking</summary>
          <p className="said-text muted">{neutral(one.thinking)}</p>
        </details>
      )}
      {one.text &&
        (one.is_compaction || one.is_injected ? (
          <Folded text={one.text} />
        ) : (
          <p className="said-text">{neutral(one.text)}</p>
        ))}
      {one.calls.map((call) => (
        <ToolUse key={call.id} tool={call.tool} asked={call.arguments} result={results.get(call.id)} />
      ))}
      {loose.map((result) => (
        <ToolUse key={result.call_id} tool="Result" asked="" result={result} />
      ))}
    </li>
  );
}

function ToolUse({
  tool,
  asked,
  result,
}: {
  tool: string;
  asked: string;
  result: ConversationMessage["results"][number] | undefined;
}) {
  const line = neutral(asked).replace(/\s+/g, " ");
  return (
    <details className="tool">
      <summary>
        <span className={`tag ${result?.outcome === "error" ? "tag-unresolved" : ""}`}>{neutral(tool)}</span>{" "}
        <code className="tool-line">{line.slice(0, 160)}</code>
      </summary>
      {asked && <pre className="foreign code">{neutral(asked)}</pre>}
      {result ? (
        <pre className="foreign">{neutral(result.text) || "(nothing)"}</pre>
      ) : (
        <p className="muted">No result is recorded.</p>
      )}
    </details>
  );
}

function Folded({ text }: { text: string }) {
  if (text.length <= SHORT) return <p className="said-text muted">{neutral(text)}</p>;
  return (
    <details>
      <summary>{counted(text.length, "character")}</summary>
      <p className="said-text muted">{neutral(text)}</p>
    </details>
  );
}
