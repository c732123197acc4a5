/** Lays plans out beside the page, which goes on answering. */
import { layOutByDagre } from "./dagre-layout";
import type { Shape } from "./layout";

self.onmessage = ({ data }: MessageEvent<{ tasks: Shape[]; isDown: boolean }>) => {
  self.postMessage({ layout: layOutByDagre(data.tasks, data.isDown) });
};
