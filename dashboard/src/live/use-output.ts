/** What a task prints, asked for while it runs: each answer holds what came since the one before. */
import { useEffect, useState } from "react";
import { ApiError, answered, api } from "../api/client";
import { NO_OUTPUT, type Output, withText } from "../lib/output";

export interface FollowedOutput {
  readonly output: Output;
  readonly isRunning: boolean;
  readonly isLoaded: boolean;
  /** Why there is none, or why it does not go on. */
  readonly error: ApiError | null;
}

const AGAIN = 400;
const AFTER_TROUBLE = 2_000;
const NOTHING: FollowedOutput = { output: NO_OUTPUT, isRunning: false, isLoaded: false, error: null };

/** `isRunning`: what the page knows; that it began to run again starts the questions anew. */
export function useOutput(id: string, taskId: string, attempt: number, isRunning: boolean): FollowedOutput {
  const [followed, setFollowed] = useState(NOTHING);
  useEffect(() => {
    setFollowed(NOTHING);
    if (attempt === 0) return;
    const given = new AbortController();
    void follow(given.signal, async (since) => {
      const answer = await answered(
        api.GET("/api/workflows/{workflow_id}/output", {
          params: { path: { workflow_id: id }, query: { task_id: taskId, attempt, since } },
          signal: given.signal,
        }),
      );
      setFollowed((before) => ({
        output: withText(before.output, answer.text),
        isRunning: answer.is_running,
        isLoaded: true,
        error: null,
      }));
      return answer.is_running || isRunning ? { since: answer.next } : null;
    }).catch((error: unknown) => {
      if (!given.signal.aborted && error instanceof ApiError) {
        setFollowed((before) => ({ ...before, isLoaded: true, isRunning: false, error }));
      }
    });
    return () => given.abort();
  }, [id, taskId, attempt, isRunning]);
  return followed;
}

/** Until `ask` has no more to ask for; a server that is away is waited for. */
async function follow(
  signal: AbortSignal,
  ask: (since: number) => Promise<{ since: number } | null>,
): Promise<void> {
  let since = 0;
  while (!signal.aborted) {
    let wait = AGAIN;
    try {
      const next = await ask(since);
      if (next === null) return;
      since = next.since;
    } catch (error) {
      if (!(error instanceof ApiError && (error.isUnreachable || error.status >= 500))) throw error;
      wait = AFTER_TROUBLE;
    }
    await pause(wait, signal);
  }
}

/** A page that nobody looks at asks for nothing. */
async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await new Promise((done) => window.setTimeout(done, milliseconds));
  while (document.visibilityState === "hidden" && !signal.aborted) {
    await new Promise((done) => window.setTimeout(done, milliseconds));
  }
}
