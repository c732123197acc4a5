/**
 * The picture of a plan by dagre: few crossings, and a dependency that passes other tasks goes between them.
 *
 * Only the worker and the tests load this: it is slow for many tasks, and no page should wait for it.
 */
import dagre from "@dagrejs/dagre";
import { type Layout, NARROW_WIDTH, NODE_HEIGHT, NODE_WIDTH, type Shape } from "./layout";

/** Between two layers: room for the curves; below one another they need less. */
const GAP_LAYERS = { right: 84, down: 40 };
const GAP_TASKS = { right: 20, down: 14 };
/** Between two lines that pass side by side. */
const GAP_LINES = 14;
/** From here on the exact ranking costs more than it shows. */
const MANY = 120;

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Laid out to the right; what goes down is the same picture with its axes swapped. */
export function layOutByDagre(tasks: readonly Shape[], isDown = false): Layout {
  const nodeWidth = isDown ? NARROW_WIDTH : NODE_WIDTH;
  const [along, across] = isDown ? [NODE_HEIGHT, nodeWidth] : [nodeWidth, NODE_HEIGHT];
  const way = isDown ? "down" : "right";
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({
    rankdir: "LR",
    nodesep: GAP_TASKS[way],
    edgesep: GAP_LINES,
    ranksep: GAP_LAYERS[way],
    ranker: tasks.length > MANY ? "longest-path" : "network-simplex",
  });
  const known = new Set(tasks.map((task) => task.id));
  const needs = tasks.flatMap((task) =>
    (task.depends_on ?? []).filter((id) => known.has(id)).map((source) => ({ source, target: task.id })),
  );
  for (const { id } of tasks) graph.setNode(id, { width: along, height: across });
  for (const { source, target } of needs) graph.setEdge(source, target, {});
  if (tasks.length > 0) dagre.layout(graph);
  const size = graph.graph();
  const [width = 0, height = 0] = isDown ? [size.height, size.width] : [size.width, size.height];
  const centres = new Map<string, Point>(tasks.map(({ id }) => [id, graph.node(id) as Point]));
  const columns = [...new Set([...centres.values()].map(({ x }) => Math.round(x)))].sort((a, b) => a - b);
  const down = (NODE_HEIGHT - height) / 2; // the middle of the picture is that of a task at 0
  const placed = ({ x, y }: Point): Point => (isDown ? { x: y, y: x + down } : { x, y: y + down });
  return {
    places: new Map(
      [...centres].map(([id, centre]) => {
        const { x, y } = placed(centre);
        const layer = columns.indexOf(Math.round(centre.x));
        return [id, { x: x - nodeWidth / 2, y: y - NODE_HEIGHT / 2, layer }];
      }),
    ),
    edges: needs.map(({ source, target }) => ({
      id: `${source}→${target}`,
      source,
      target,
      path: pathThrough(
        centres.get(source) as Point,
        (graph.edge(source, target).points as Point[]).slice(1, -1),
        centres.get(target) as Point,
        { columns: new Set(columns), half: along / 2, placed },
      ),
    })),
    width: tasks.length > 0 ? width : 0,
    height: tasks.length > 0 ? height : 0,
    nodeWidth,
    isDown,
  };
}

interface Picture {
  readonly columns: ReadonlySet<number>;
  readonly half: number;
  readonly placed: (point: Point) => Point;
}

/** Straight beside the tasks of a column, in curves between two columns, where no task stands. */
function pathThrough(
  from: Point,
  passed: readonly Point[],
  to: Point,
  { columns, half, placed }: Picture,
): string {
  const beside = passed.filter(({ x }) => columns.has(Math.round(x)));
  const told = (point: Point) => rounded(placed(point));
  let at = { x: from.x + half, y: from.y };
  const parts = [`M${told(at)}`];
  const curveTo = (next: Point) => {
    const middle = (at.x + next.x) / 2;
    parts.push(`C${told({ x: middle, y: at.y })} ${told({ x: middle, y: next.y })} ${told(next)}`);
    at = next;
  };
  for (const { x, y } of beside) {
    curveTo({ x: x - half, y });
    at = { x: x + half, y };
    parts.push(`L${told(at)}`);
  }
  curveTo({ x: to.x - half, y: to.y });
  return parts.join("");
}

function rounded({ x, y }: Point): string {
  return `${Math.round(x * 10) / 10},${Math.round(y * 10) / 10}`;
}
