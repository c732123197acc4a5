import { describe, expect, test } from "vitest";
import type { Task } from "../src/api/types";
import { layOutByDagre } from "../src/graph/dagre-layout";
import { layOut, NARROW_WIDTH, NODE_HEIGHT, NODE_WIDTH, type Shape, viewOf } from "../src/graph/layout";
import { countByStatus, tasksNow } from "../src/graph/tasks";
import { event, finished, randomly, started } from "./make";

const task = (id: string, depends_on: string[] = []): Task => ({
  id,
  description: id,
  depends_on,
  status: "pending",
  timeout: null,
  outputs: null,
  until: null,
  max: null,
  approval: false,
  attempts: 0,
  driver: null,
  junit: null,
  prompt: null,
  result: null,
  retries: null,
  review: false,
  run: null,
});

function overlaps(places: ReturnType<typeof layOut>["places"]): boolean {
  const taken = new Set([...places.values()].map(({ x, y }) => `${x}/${y}`));
  return taken.size !== places.size;
}

describe("the layout", () => {
  test("puts a task behind everything it needs", () => {
    const { places } = layOut([task("d", ["b", "c"]), task("a"), task("b", ["a"]), task("c", ["b"])]);
    expect(["a", "b", "c", "d"].map((id) => places.get(id)?.layer)).toEqual([0, 1, 2, 3]);
  });

  test("opens with all that can be read, else around a task, with no void beside it", () => {
    const chain = layOut([..."abcdef"].map((id, at, all) => task(id, all.slice(at - 1, at))));
    const middle = { x: chain.width / 2, y: NODE_HEIGHT / 2 };
    const large = { width: 2_000, height: 600 };
    const small = { width: 900, height: 600 };
    for (const id of "af") expect(viewOf(chain, large, id)).toEqual({ ...middle, zoom: 1 });
    const views = [..."abcdef"].map((id) => viewOf(chain, small, id));
    for (const [at, { x, y, zoom }] of views.entries()) {
      const seen = small.width / zoom / 2;
      const left = at * 280;
      expect([x - seen <= left, x + seen >= left + NODE_WIDTH, y, zoom]).toEqual([true, true, middle.y, 0.9]);
      expect(x - seen).toBeGreaterThanOrEqual(-24);
      expect(x + seen).toBeLessThanOrEqual(chain.width + 24);
    }
  });

  test("of nothing is nothing", () => {
    expect(layOut([])).toMatchObject({ width: 0, height: 0, edges: [] });
  });

  test.each([1, 2, 3, 4, 5])("of any plan is in order and without overlap (%i)", (seed) => {
    const below = randomly(seed);
    const shapes: Shape[] = Array.from({ length: 300 }, (_, index) => ({
      id: `t${index}`,
      depends_on: [...new Set(Array.from({ length: below(4) }, () => below(Math.max(1, index))))]
        .filter((needed) => needed < index)
        .map((needed) => `t${needed}`),
    }));
    const { places, edges } = layOut(shapes.toReversed());
    expect(places.size).toBe(300);
    expect(overlaps(places)).toBe(false);
    for (const { source, target } of edges) {
      const [from, to] = [places.get(source), places.get(target)];
      expect((from?.x ?? 0) + NODE_WIDTH).toBeLessThan(to?.x ?? 0);
    }
  });

  test("breaks a layer of thousands into columns", () => {
    const { places, height, width } = layOut(Array.from({ length: 5000 }, (_, index) => task(`t${index}`)));
    expect(places.size).toBe(5000);
    expect(overlaps(places)).toBe(false);
    expect(height).toBeLessThan(90 * (NODE_HEIGHT + 18));
    expect(width).toBeGreaterThan(50 * NODE_WIDTH);
  });

  test("does the same work for each of many tasks", () => {
    // A chain is the worst case for anything that walks back over what it has done.
    const chain = Array.from({ length: 20_000 }, (_, index) =>
      task(`t${index}`, index ? [`t${index - 1}`] : []),
    );
    expect(layOut(chain).places.get("t19999")?.layer).toBe(19_999);
  });
});

/** Where a path as the layout writes it goes, at steps so small that no task is jumped over. */
function* alongPath(path: string): Generator<{ x: number; y: number }> {
  const numbers = (text: string) => [...text.matchAll(/-?[\d.]+/g)].map(Number) as number[];
  let [x, y] = [0, 0];
  for (const [, kind, rest] of path.matchAll(/([MLC])([^MLC]*)/g)) {
    const to = numbers(rest as string);
    const [endX, endY] = to.slice(-2) as [number, number];
    if (kind !== "M") {
      const [ax, ay, bx, by] = (kind === "C" ? to : [x, y, endX, endY]) as [number, number, number, number];
      for (let t = 0; t <= 1; t += 0.02) {
        const mix = (a: number, b: number, c: number, d: number) =>
          a * (1 - t) ** 3 + 3 * b * t * (1 - t) ** 2 + 3 * c * t ** 2 * (1 - t) + d * t ** 3;
        yield { x: mix(x, ax, bx, endX), y: mix(y, ay, by, endY) };
      }
    }
    [x, y] = [endX, endY];
  }
}

describe("the layout by dagre", () => {
  test.each([
    [1, false],
    [2, false],
    [3, false],
    [1, true],
    [2, true],
    [3, true],
  ])("of any plan has no overlap, and no line behind a task (%i, down: %s)", (seed, isDown) => {
    const below = randomly(seed);
    const shapes: Shape[] = Array.from({ length: 60 }, (_, index) => ({
      id: `t${index}`,
      depends_on: [
        ...new Set(Array.from({ length: below(3) }, () => `t${below(Math.max(1, index))}`)),
      ].filter((id) => id !== `t${index}`),
    }));
    const { places, edges, nodeWidth } = layOutByDagre(shapes.toReversed(), isDown);
    const all = [...places];
    for (const [id, one] of all) {
      for (const [other, two] of all) {
        const isApart = Math.abs(one.x - two.x) >= nodeWidth || Math.abs(one.y - two.y) >= NODE_HEIGHT;
        expect(id === other || isApart).toBe(true);
      }
    }
    expect(edges.length).toBeGreaterThan(40);
    for (const { source, target, path } of edges) {
      for (const { x, y } of alongPath(path as string)) {
        const hit = all.find(
          ([id, at]) =>
            id !== source &&
            id !== target &&
            x > at.x + 1 &&
            x < at.x + nodeWidth - 1 &&
            y > at.y + 1 &&
            y < at.y + NODE_HEIGHT - 1,
        );
        expect([source, target, hit?.[0]]).toEqual([source, target, undefined]);
      }
      const [from, to] = [places.get(source), places.get(target)];
      if (isDown) expect((from?.y ?? 0) + NODE_HEIGHT).toBeLessThan(to?.y ?? 0);
      else expect((from?.x ?? 0) + nodeWidth).toBeLessThan(to?.x ?? 0);
    }
  });

  test("down a phone's screen shows two tasks side by side and all of a chain at once", () => {
    const chain = Array.from({ length: 5 }, (_, at) => task(`t${at}`, at > 0 ? [`t${at - 1}`] : []));
    const layout = layOutByDagre([...chain, task("beside", ["t0"])], true);
    expect(layout.nodeWidth).toBe(NARROW_WIDTH);
    const view = viewOf(layout, { width: 366, height: 500 }, "t2");
    expect(layout.width * view.zoom).toBeLessThan(366);
    expect(layout.height * view.zoom).toBeLessThan(500);
  });

  test("stands around the middle, as the view of it expects", () => {
    const { places, height } = layOutByDagre([task("a"), task("b"), task("c", ["a", "b"])]);
    const tops = [...places.values()].map(({ y }) => y);
    expect(Math.min(...tops)).toBeCloseTo((NODE_HEIGHT - height) / 2);
    expect(Math.max(...tops)).toBeCloseTo((height - NODE_HEIGHT) / 2);
  });

  test("of nothing is nothing, and a need that is not there is left out", () => {
    expect(layOutByDagre([])).toMatchObject({ width: 0, height: 0, edges: [] });
    expect(layOutByDagre([task("a", ["gone"])]).edges).toEqual([]);
  });
});

describe("tasks now", () => {
  const tasks = [task("a"), task("b", ["a"])];

  test("are as loaded where nothing happened since", () => {
    expect(tasksNow(tasks, 10, [started(4, "a")])).toBe(tasks);
  });

  test("are changed by what happened since, and only those", () => {
    const now = tasksNow(tasks, 3, [started(2, "b"), started(4, "a"), finished(5, "a", "completed", "fine")]);
    expect(now[0]).toMatchObject({ status: "completed", result: "fine", attempts: 1 });
    expect(now[1]).toBe(tasks[1]);
  });

  test("an interrupted task waits again", () => {
    expect(tasksNow(tasks, 0, [started(1, "a"), finished(2, "a", "interrupted")])[0]?.status).toBe("pending");
  });

  test("an approved one asks no more", () => {
    const asking = [{ ...task("a"), approval: true }];
    expect(tasksNow(asking, 0, [event(1, { type: "task_approved", task_id: "a" })])[0]?.approval).toBe(false);
  });

  test("are counted", () => {
    expect(countByStatus(tasksNow(tasks, 0, [started(1, "a")]))).toMatchObject({
      pending: 1,
      in_progress: 1,
    });
  });
});
