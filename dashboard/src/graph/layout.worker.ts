/** Lays plans out beside the page, which goes on answering. */
import { layOutByDagre } from "./dagre-layout";
import type { Shape } from "./layout";

self.onmessage = ({ data }: MessageEvent<{ tasks: Shape[] }>) => {
  self.postMessage({ layout: layOutByDagre(data.tasks) });
};
