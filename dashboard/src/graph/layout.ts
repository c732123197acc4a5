/**
 * Where each task of a very large plan stands in the picture: in a layer behind everything it needs. And what
 * any layout is.
 *
 * Layers by longest path, then one pass that puts a task beside the middle of what it
 * needs. Linear in tasks and dependencies but for sorting within a layer; done once for
 * a plan, since the shape of a plan does not change.
 */

export const NODE_WIDTH = 208;
/** Where the plan goes down the screen of a phone: two stand side by side. */
export const NARROW_WIDTH = 164;
export const NODE_HEIGHT = 46;
const GAP_X = 72;
const GAP_Y = 18;

export interface Shape {
  readonly id: string;
  readonly depends_on?: readonly string[] | undefined;
}

export interface LaidEdge {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  /** As SVG draws it; a curve of its own where the layout gives none. */
  readonly path?: string;
}

export interface Layout {
  readonly places: ReadonlyMap<string, { x: number; y: number; layer: number }>;
  readonly edges: readonly LaidEdge[];
  readonly width: number;
  readonly height: number;
  readonly nodeWidth: number;
  /** What comes later stands below, not on the right. */
  readonly isDown: boolean;
}

export function layOut(tasks: readonly Shape[]): Layout {
  const layers = layered(tasks);
  const tallest = rowsAtMost(tasks.length);
  const places = new Map<string, { x: number; y: number; layer: number }>();
  const needs = new Map(tasks.map((task) => [task.id, task.depends_on ?? []]));
  let column = 0;
  let height = 0;
  layers.forEach((members, layer) => {
    const sorted = layer === 0 ? members : besideTheirNeeds(members, needs, places);
    // A very wide layer stands in several columns: nobody reads a list of thousands in one.
    const columns = Math.ceil(sorted.length / tallest);
    const rows = Math.ceil(sorted.length / columns);
    sorted.forEach((id, index) => {
      const row = index % rows;
      const inColumn = index < rows * (columns - 1) ? rows : sorted.length - rows * (columns - 1);
      const y = (row - (inColumn - 1) / 2) * (NODE_HEIGHT + GAP_Y);
      const x = (column + Math.floor(index / rows)) * (NODE_WIDTH + GAP_X);
      places.set(id, { x, y, layer });
    });
    column += columns;
    height = Math.max(height, rows);
  });
  return {
    places,
    edges: tasks.flatMap((task) =>
      (task.depends_on ?? []).map((source) => ({ id: `${source}→${task.id}`, source, target: task.id })),
    ),
    width: Math.max(0, column * (NODE_WIDTH + GAP_X) - GAP_X),
    height: Math.max(0, height * (NODE_HEIGHT + GAP_Y) - GAP_Y),
    nodeWidth: NODE_WIDTH,
    isDown: false,
  };
}

/** Labels have 12 px: smaller than this nobody reads them. */
const READABLE = 0.9;
const MARGIN = 24;

interface Size {
  readonly width: number;
  readonly height: number;
}

/** The middle of what is in view: all of it where that can be read, else what is around a task and no void beside it. */
export function viewOf(layout: Layout, box: Size, id: string): { x: number; y: number; zoom: number } {
  const whole = Math.min(box.width / (layout.width + 2 * MARGIN), box.height / (layout.height + 2 * MARGIN));
  const zoom = Math.min(1, Math.max(READABLE, whole));
  const place = layout.places.get(id) ?? { x: 0, y: 0 };
  const top = (NODE_HEIGHT - layout.height) / 2;
  return {
    x: within(place.x + layout.nodeWidth / 2, 0, layout.width, box.width / zoom),
    y: within(place.y + NODE_HEIGHT / 2, top, top + layout.height, box.height / zoom),
    zoom,
  };
}

function within(wanted: number, from: number, to: number, seen: number): number {
  const least = from - MARGIN + seen / 2;
  const most = to + MARGIN - seen / 2;
  return least > most ? (from + to) / 2 : Math.min(most, Math.max(least, wanted));
}

function rowsAtMost(count: number): number {
  return Math.max(12, Math.ceil(Math.sqrt(count) * 1.2));
}

/** Each task one layer behind the last of what it needs. The server takes no circles. */
function layered(tasks: readonly Shape[]): string[][] {
  const waitsFor = new Map<string, number>();
  const followers = new Map<string, string[]>();
  const layerOf = new Map<string, number>();
  for (const task of tasks) {
    const needed = task.depends_on ?? [];
    waitsFor.set(task.id, needed.length);
    for (const id of needed) {
      const list = followers.get(id);
      if (list) list.push(task.id);
      else followers.set(id, [task.id]);
    }
  }
  const queue = tasks.filter((task) => waitsFor.get(task.id) === 0).map((task) => task.id);
  for (const id of queue) layerOf.set(id, 0);
  const layers: string[][] = [];
  for (let next = 0; next < queue.length; next += 1) {
    const id = queue[next] as string;
    const layer = layerOf.get(id) as number;
    let members = layers[layer];
    if (!members) layers[layer] = members = [];
    members.push(id);
    for (const follower of followers.get(id) ?? []) {
      layerOf.set(follower, Math.max(layerOf.get(follower) ?? 0, layer + 1));
      const left = (waitsFor.get(follower) as number) - 1;
      waitsFor.set(follower, left);
      if (left === 0) queue.push(follower);
    }
  }
  return layers;
}

function besideTheirNeeds(
  members: readonly string[],
  needs: ReadonlyMap<string, readonly string[]>,
  places: ReadonlyMap<string, { y: number }>,
): string[] {
  const middle = new Map(
    members.map((id) => {
      const heights = (needs.get(id) ?? []).map((needed) => places.get(needed)?.y ?? 0);
      return [id, heights.reduce((sum, y) => sum + y, 0) / Math.max(1, heights.length)];
    }),
  );
  return [...members].sort((one, other) => (middle.get(one) ?? 0) - (middle.get(other) ?? 0));
}
