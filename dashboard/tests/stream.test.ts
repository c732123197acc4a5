import { describe, expect, test } from "vitest";
import type { SocketMessage, WorkflowEvent } from "../src/api/types";
import { hear, MOST_KEPT, type Stream, startAt } from "../src/live/stream";
import { event, randomly, started } from "./make";

const events = (...list: WorkflowEvent[]): SocketMessage => ({ type: "events", events: list });
const numbers = (stream: Stream) => stream.events.map((one) => one.seq);

describe("the event stream", () => {
  test("keeps events in order and knows where to go on", () => {
    const heard = [events(started(3, "a"), started(5, "b")), events(started(9, "c"))].reduce(
      hear,
      startAt(0),
    );
    expect(numbers(heard)).toEqual([3, 5, 9]);
    expect(heard.position).toBe(9);
  });

  test("drops what a reconnect brings twice", () => {
    const heard = [events(started(3, "a"), started(5, "b")), events(started(5, "b"), started(6, "c"))].reduce(
      hear,
      startAt(0),
    );
    expect(numbers(heard)).toEqual([3, 5, 6]);
  });

  test("goes on behind what others did, once all was replayed", () => {
    const heard = [events(started(3, "a")), { type: "live", seq: 40 } as const].reduce(hear, startAt(0));
    expect(heard.position).toBe(40);
    expect(numbers(heard)).toEqual([3]);
  });

  test("never goes back", () => {
    expect(hear(startAt(50), { type: "live", seq: 40 }).position).toBe(50);
  });

  test("a ping and a warning that we are slow change nothing", () => {
    const stream = startAt(7);
    expect(hear(stream, { type: "ping", seq: 99 })).toBe(stream);
    expect(hear(stream, { type: "slow", seq: 7, newest: 99 })).toBe(stream);
  });

  test("notes a gap, and keeps what it has", () => {
    const heard = [
      events(started(3, "a")),
      { type: "backfill_expired", since: 3, oldest: 10, newest: 20 } as const,
      events(started(10, "b")),
    ].reduce(hear, startAt(0));
    expect(heard.gaps).toBe(1);
    expect(numbers(heard)).toEqual([3, 10]);
  });

  test("forgets everything where the database is another one", () => {
    const heard = [
      events(started(300, "a")),
      { type: "backfill_expired", since: 300, oldest: 1, newest: 20 } as const,
      events(started(21, "b")),
    ].reduce(hear, startAt(0));
    expect(numbers(heard)).toEqual([21]);
    expect(heard.gaps).toBe(1);
  });

  test("does not keep the plan that came with the first event", () => {
    const tasks = Array.from({ length: 100 }, (_, index) => ({ id: `t${index}` }));
    const heard = hear(startAt(0), events(event(1, { type: "workflow_created", task_dag: { tasks } })));
    expect(heard.events[0]?.entry).toMatchObject({ type: "workflow_created", task_dag: { tasks: [] } });
  });

  test("keeps a bounded number and says how many are gone", () => {
    const many = Array.from({ length: MOST_KEPT + 25 }, (_, index) => started(index + 1, "a"));
    const heard = hear(startAt(0), events(...many));
    expect(heard.events).toHaveLength(MOST_KEPT);
    expect(heard.dropped).toBe(25);
    expect(heard.events[0]?.seq).toBe(26);
  });

  test.each(Array.from({ length: 50 }, (_, seed) => seed))(
    "loses and doubles nothing over any reconnects (%i)",
    (seed) => {
      const below = randomly(seed + 1);
      const all = Array.from({ length: 200 }, (_, index) => started(1 + index * (1 + below(3)), "t"));
      all.sort((one, other) => one.seq - other.seq);
      const unique = all.filter((one, index) => one.seq !== all[index - 1]?.seq);
      let stream = startAt(0);
      let sent = 0;
      while (stream.position < (unique.at(-1)?.seq ?? 0)) {
        if (below(4) === 0) {
          // The line breaks; the next connection replays from where we say, or a bit before.
          const from = Math.max(0, stream.position - below(10));
          sent = unique.findIndex((one) => one.seq > from);
        }
        const batch = unique.slice(sent, sent + 1 + below(20));
        sent += batch.length;
        stream = hear(stream, events(...batch));
      }
      expect(numbers(stream)).toEqual(unique.map((one) => one.seq));
    },
  );
});
