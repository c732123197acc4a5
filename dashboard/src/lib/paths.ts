/** Addresses of pages. */

/** Before an id that browsers would take for a step to another folder, however it is encoded. */
const NO_STEP = "=";

export function taskPath(id: string, taskId: string): string {
  const isStep = taskId === "." || taskId === "..";
  return `/workflows/${id}/tasks/${isStep ? NO_STEP : ""}${encodeURIComponent(taskId)}`;
}

/** The task's id in the path of its page as the browser has it: the router's parameters are half decoded. */
export function taskIn(pathname: string): string {
  const part = pathname.split("/")[4] ?? "";
  try {
    return decodeURIComponent(part.startsWith(NO_STEP) ? part.slice(NO_STEP.length) : part);
  } catch {
    return part; // written by hand, with a lone %
  }
}
