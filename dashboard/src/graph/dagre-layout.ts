/**
 * The picture of a plan by dagre: few crossings, and a dependency that passes other tasks goes between them.
 *
 * Only the worker and the tests load this: it is slow for many tasks, and no page should wait for it.
 */
import dagre from "@dagrejs/dagre";
import { type Layout, NODE_HEIGHT, NODE_WIDTH, type Shape } from "./layout";

const GAP_X = 84;
const GAP_Y = 20;
/** Between two lines that pass side by side. */
const GAP_LINES = 14;
/** From here on the exact ranking costs more than it shows. */
const MANY = 120;

interface Point {
  readonly x: number;
  readonly y: number;
}

export function layOutByDagre(tasks: readonly Shape[]): Layout {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({
    rankdir: "LR",
    nodesep: GAP_Y,
    edgesep: GAP_LINES,
    ranksep: GAP_X,
    ranker: tasks.length > MANY ? "longest-path" : "network-simplex",
  });
  const known = new Set(tasks.map((task) => task.id));
  const needs = tasks.flatMap((task) =>
    (task.depends_on ?? []).filter((id) => known.has(id)).map((source) => ({ source, target: task.id })),
  );
  for (const { id } of tasks) graph.setNode(id, { width: NODE_WIDTH, height: NODE_HEIGHT });
  for (const { source, target } of needs) graph.setEdge(source, target, {});
  if (tasks.length > 0) dagre.layout(graph);
  const { width = 0, height = 0 } = graph.graph();
  const centres = new Map<string, Point>(tasks.map(({ id }) => [id, graph.node(id) as Point]));
  const columns = [...new Set([...centres.values()].map(({ x }) => Math.round(x)))].sort((a, b) => a - b);
  const down = (NODE_HEIGHT - height) / 2; // the middle of the picture is that of a task at 0
  return {
    places: new Map(
      [...centres].map(([id, { x, y }]) => [
        id,
        { x: x - NODE_WIDTH / 2, y: y - NODE_HEIGHT / 2 + down, layer: columns.indexOf(Math.round(x)) },
      ]),
    ),
    edges: needs.map(({ source, target }) => ({
      id: `${source}→${target}`,
      source,
      target,
      path: pathThrough(
        centres.get(source) as Point,
        (graph.edge(source, target).points as Point[]).slice(1, -1),
        centres.get(target) as Point,
        new Set(columns),
        down,
      ),
    })),
    width: tasks.length > 0 ? width : 0,
    height: tasks.length > 0 ? height : 0,
  };
}

/** Straight beside the tasks of a column, in curves between two columns, where no task stands. */
function pathThrough(
  from: Point,
  passed: readonly Point[],
  to: Point,
  columns: ReadonlySet<number>,
  down: number,
): string {
  const half = NODE_WIDTH / 2;
  const beside = passed.filter(({ x }) => columns.has(Math.round(x)));
  let at = { x: from.x + half, y: from.y + down };
  const parts = [`M${told(at)}`];
  const curveTo = (next: Point) => {
    const middle = (at.x + next.x) / 2;
    parts.push(`C${told({ x: middle, y: at.y })} ${told({ x: middle, y: next.y })} ${told(next)}`);
    at = next;
  };
  for (const point of beside) {
    const y = point.y + down;
    curveTo({ x: point.x - half, y });
    at = { x: point.x + half, y };
    parts.push(`L${told(at)}`);
  }
  curveTo({ x: to.x - half, y: to.y + down });
  return parts.join("");
}

function told({ x, y }: Point): string {
  return `${Math.round(x * 10) / 10},${Math.round(y * 10) / 10}`;
}
