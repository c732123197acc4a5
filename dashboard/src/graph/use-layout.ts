/** The layout of a plan: by dagre in a worker; of a very large plan, or where no worker runs, by layers alone. */
import { useEffect, useRef, useState } from "react";
import { type Layout, layOut, type Shape } from "./layout";

/** From here on dagre takes longer than anybody waits. */
export const LARGE = 500;

/** Null until it is there. Statuses change all the time, the shape of a plan does not. */
export function useLayout(tasks: readonly Shape[], isDown: boolean): Layout | null {
  const shape = useRef<readonly Shape[]>([]);
  if (!sameShape(shape.current, tasks)) shape.current = tasks;
  const current = shape.current;
  const [made, setMade] = useState<{ of: readonly Shape[]; isDown: boolean; layout: Layout } | null>(null);
  useEffect(() => {
    const keep = (layout: Layout) => setMade({ of: current, isDown, layout });
    if (current.length > LARGE) {
      keep(layOut(current));
      return;
    }
    const worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<{ layout: Layout }>) => keep(data.layout);
    worker.onerror = () => keep(layOut(current));
    worker.postMessage({
      isDown,
      tasks: current.map(({ id, depends_on }) => ({ id, depends_on: [...(depends_on ?? [])] })),
    });
    return () => worker.terminate();
  }, [current, isDown]);
  return made?.of === current && made.isDown === isDown ? made.layout : null;
}

function sameShape(one: readonly Shape[], other: readonly Shape[]): boolean {
  return (
    one.length === other.length &&
    one.every((task, index) => {
      const twin = other[index] as Shape;
      return (
        task.id === twin.id &&
        (task.depends_on === twin.depends_on || String(task.depends_on) === String(twin.depends_on))
      );
    })
  );
}
