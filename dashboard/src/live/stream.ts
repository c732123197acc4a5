/**
 * What has been heard of the event stream, as a value.
 *
 * Events have one order of their own: their numbers. Whatever a reconnect brings twice is
 * dropped by number, and `position` is where the next connection goes on, so none is lost.
 */
import type { SocketMessage, WorkflowEvent } from "../api/types";

export const MOST_KEPT = 20_000;

export interface Stream {
  /** Everything up to this number has been heard. */
  readonly position: number;
  readonly events: readonly WorkflowEvent[];
  /** Older ones that are not kept here any more. */
  readonly dropped: number;
  /** How often the server could not replay all we missed: what is shown must be loaded anew. */
  readonly gaps: number;
}

export function startAt(position: number): Stream {
  return { position, events: [], dropped: 0, gaps: 0 };
}

export function hear(stream: Stream, message: SocketMessage): Stream {
  switch (message.type) {
    case "events":
      return take(stream, message.events);
    case "live":
      return message.seq > stream.position ? { ...stream, position: message.seq } : stream;
    case "backfill_expired": {
      const gaps = stream.gaps + 1;
      // A number from the future belongs to another database: nothing we know is true there.
      if (message.since > message.newest) return { ...startAt(message.newest), gaps };
      return { ...stream, position: Math.max(stream.position, message.oldest - 1), gaps };
    }
    default:
      return stream;
  }
}

function take(stream: Stream, heard: readonly WorkflowEvent[]): Stream {
  const fresh: WorkflowEvent[] = [];
  let position = stream.position;
  for (const event of heard) {
    if (event.seq <= position) continue;
    position = event.seq;
    fresh.push(withoutPlan(event));
  }
  if (fresh.length === 0) return stream;
  const all = [...stream.events, ...fresh];
  const surplus = Math.max(0, all.length - MOST_KEPT);
  return {
    ...stream,
    position,
    events: surplus ? all.slice(surplus) : all,
    dropped: stream.dropped + surplus,
  };
}

/** The first event holds the whole plan, which is at hand elsewhere. */
function withoutPlan(event: WorkflowEvent): WorkflowEvent {
  if (event.entry.type !== "workflow_created") return event;
  return { ...event, entry: { ...event.entry, task_dag: { tasks: [] } } as WorkflowEvent["entry"] };
}
