import { expect, describe as group, test } from "vitest";
import type { UsageHistory } from "../src/api/types";
import { describe } from "../src/lib/describe";
import {
  ago,
  bytes,
  counted,
  dollars,
  duration,
  folder,
  moment,
  percent,
  shortId,
  words,
} from "../src/lib/format";
import { taskIn, taskPath } from "../src/lib/paths";
import { markAt, marksOf, standingAt } from "../src/lib/replay";
import { type SessionSpan, sessionsOf } from "../src/lib/timeline";
import { curves } from "../src/lib/usage";
import { event, finished, START, started } from "./make";

group("a replay", () => {
  const decision = (id: string, second: number) => ({
    id,
    description: `decided ${id}`,
    rationale: "because",
    decision_type: "approach" as const,
    timestamp: new Date(START + second * 1000).toISOString(),
    alternatives_considered: null,
    task_id: "a",
    evidence: [],
  });
  const usage = (seq: number, context_utilization: number) =>
    event(seq, { type: "usage_reported", usage: { context_utilization } });
  const events = [
    event(1, { type: "workflow_created", issue: { id: "x", title: "X" } }),
    started(2, "a"),
    usage(3, 0.25),
    event(4, { type: "decision_recorded", decision: decision("d1", 4) }),
    finished(6, "a"),
    started(7, "b"),
    finished(9, "b", "failed", "exit code 1"),
    event(10, { type: "workflow_paused", session_number: 1, snapshot_id: "s", trigger: "failure" }),
    event(20, { type: "workflow_resumed", session_number: 2 }),
    started(21, "b", 2),
    event(22, { type: "decision_recorded", decision: decision("d3", 22) }),
  ];
  const [first, second] = sessionsOf(events) as [SessionSpan, SessionSpan];
  const at = (seconds: number) => START + seconds * 1000;

  test("names what mattered in its session, and what was found only later", () => {
    const found = { decisions: [decision("d1", 4), decision("late", 8)], errors: [] };
    const marks = marksOf(first, at(10), events, found);
    expect(marks.map((mark) => mark.title)).toEqual([
      "Decided: decided d1",
      "Decided: decided late",
      "Task b failed",
      "Paused, session 1",
    ]);
    expect(marks.map((mark) => mark.taskId)).toEqual(["a", "a", "b", null]);
    expect(marksOf(second, at(30), events, found).map((mark) => mark.decision?.id)).toEqual(["d3"]);
  });

  test("what has no time of its own is at the end, and never outside", () => {
    const found = { decisions: [decision("late", 500)] };
    expect(marksOf(first, at(10), events, found).at(-1)?.at).toBe(at(10));
  });

  test("tells how things stood at any moment", () => {
    const standing = (seconds: number) => standingAt(first, events, at(seconds));
    expect(standing(1)).toEqual({ running: [], completed: 0, failed: 0, context: null });
    expect(standing(5)).toEqual({ running: ["a"], completed: 0, failed: 0, context: 0.25 });
    expect(standing(8)).toMatchObject({ running: ["b"], completed: 1, failed: 0 });
    expect(standing(10)).toMatchObject({ running: [], completed: 1, failed: 1 });
  });

  test("shows the last mark before a moment", () => {
    const marks = marksOf(first, at(10), events, undefined);
    expect([markAt(marks, at(3)), markAt(marks, at(4)), markAt(marks, at(100))]).toEqual([-1, 0, 2]);
  });
});

group("formats", () => {
  test.each([
    [0.25, "250 ms"],
    [4.24, "4.2 s"],
    [59.6, "1 min"],
    [61, "1 min 1 s"],
    [3600, "1 h"],
    [3660, "1 h 1 min"],
    [90_000, "1 d 1 h"],
  ])("%d seconds are %s", (seconds, shown) => expect(duration(seconds)).toBe(shown));

  test.each([
    [5, "just now"],
    [90, "1 minute ago"],
    [7200, "2 hours ago"],
    [86_400, "yesterday"],
    [-120, "in 2 minutes"],
  ])("%d seconds ago is %s", (seconds, shown) =>
    expect(ago(new Date(START - seconds * 1000).toISOString(), START)).toBe(shown),
  );

  test("a moment has its zone, and what is none shows as it is", () => {
    const parts = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts(START);
    const zone = parts.find((part) => part.type === "timeZoneName")?.value;
    expect(moment(new Date(START).toISOString()).endsWith(` ${zone}`)).toBe(true);
    expect(moment("yester\u202eday")).toBe("yester\ufffdday");
  });

  test("small things", () => {
    expect(percent(0.856)).toBe("86 %");
    expect(dollars(0.0016)).toBe("$0.0016");
    expect(dollars(1.5)).toBe("$1.50");
    expect(bytes(2_500_000)).toBe("2.4 MB");
    expect(counted(1, "task")).toBe("1 task");
    expect(counted(1200, "task")).toBe("1,200 tasks");
    expect(folder("/home/me/code/shop")).toBe("…/code/shop");
    expect(folder("/shop")).toBe("/shop");
    expect(words("in_progress")).toBe("In progress");
    expect(shortId("snap_01m7fxp51q60hbz4mkyg8vqe82")).toBe("…yg8vqe82");
  });
});

group("events in a line", () => {
  test("say what happened and how it ended", () => {
    expect(describe(finished(2, "build", "failed", "exit code 2"))).toEqual({
      title: "Task build failed",
      detail: "exit code 2",
      tone: "bad",
    });
  });

  test("name a second attempt", () => {
    expect(describe(started(1, "build", 2)).detail).toBe("attempt 2");
  });

  test("of a kind from the future show under their name", () => {
    expect(describe(event(1, { type: "moon_landed", crew: 3 }))).toMatchObject({ title: "Moon landed" });
  });
});

group("sessions", () => {
  test("begin, pause, go on and end", () => {
    const sessions = sessionsOf([
      event(1, { type: "workflow_created", issue: {}, worktree: "/" }),
      started(2, "a"),
      finished(3, "a"),
      started(4, "b"),
      event(5, {
        type: "workflow_paused",
        snapshot_id: "s1",
        session_id: "x",
        session_number: 1,
        trigger: "pause",
        reason: "lunch",
      }),
      event(9, { type: "workflow_resumed", session_number: 2, snapshot_id: "s1" }),
      started(10, "b", 2),
      finished(12, "b"),
      event(13, { type: "workflow_status_changed", status: "completed" }),
    ]);
    expect(sessions).toMatchObject([
      { number: 1, ending: "paused", reason: "lunch", snapshotId: "s1", to: START + 5000 },
      { number: 2, ending: "completed", from: START + 9000, to: START + 13_000 },
    ]);
    expect(sessions[0]?.runs.map((run) => [run.taskId, run.outcome])).toEqual([
      ["a", "completed"],
      ["b", "interrupted"],
    ]);
    expect(sessions[1]?.runs).toMatchObject([{ taskId: "b", attempt: 2, outcome: "completed" }]);
  });

  test("that failed have their snapshot, and another one goes on from it", () => {
    const failure = {
      snapshot_id: "s1",
      session_id: "x",
      session_number: 1,
      trigger: "failure",
      reason: "task a: exit code 1",
    };
    const sessions = sessionsOf([
      event(1, { type: "workflow_created", issue: {}, worktree: "/" }),
      event(2, { type: "workflow_paused", ...failure }),
      event(2, { type: "workflow_status_changed", status: "failed", reason: failure.reason }),
      event(5, { type: "workflow_resumed", session_number: 2, snapshot_id: "s1" }),
    ]);
    expect(sessions).toMatchObject([
      { number: 1, ending: "failed", reason: failure.reason, snapshotId: "s1", to: START + 2000 },
      { number: 2, ending: null, from: START + 5000 },
    ]);
  });

  test("whose beginning is gone are shown from where they are known", () => {
    expect(sessionsOf([started(7, "a")])).toMatchObject([{ number: 1, from: START + 7000, to: null }]);
  });
});

group("usage curves", () => {
  const sample = (second: number, session_number: number, context_utilization: number | null) => ({
    at: new Date(START + second * 1000).toISOString(),
    seq: second,
    session_number,
    context_utilization,
    tokens_used: second * 100,
    cost_usd: null,
  });
  const usage: UsageHistory = {
    workflow_id: "wf",
    samples: [sample(10, 1, 0.4), sample(20, 1, 0.9), sample(40, 2, 0.1), sample(50, 2, 0.2)],
    exhaustion_at: 0.85,
    seconds_until_pause: 65,
    seconds_until_full: 80,
  };

  test("break between sessions and lead to the pause that is foreseen", () => {
    const { data } = curves(usage, "context");
    const [times, reported, forecast, limit] = data;
    expect(reported).toEqual([0.4, 0.9, null, 0.1, 0.2, null]);
    expect(forecast).toEqual([null, null, null, null, 0.2, 0.85]);
    expect(limit).toEqual(Array(6).fill(0.85));
    expect(times.at(-1)).toBe(START / 1000 + 50 + 65);
    expect([...times].sort((one, other) => one - other)).toEqual(times);
  });

  test("of tokens have no forecast, and of an unknown cost there are none", () => {
    expect(curves(usage, "tokens").data[2].every((value) => value === null)).toBe(true);
    expect(curves(usage, "cost").samples).toBe(0);
  });

  test("without a forecast end at the last sample", () => {
    expect(curves({ ...usage, seconds_until_pause: null }, "context").data[0]).toHaveLength(5);
  });
});

test.each(["build/all", "100%25", "100%", "a/b ?&#%2F..", "%2e%2e", "ä 🙂", ".", "..", "=.."])(
  "task %s is found by its address",
  (id) => {
    const { pathname } = new URL(taskPath("wf_1", id), "http://localhost");
    expect(taskIn(pathname)).toBe(id);
  },
);
