/** Addresses of pages. */

export function taskPath(id: string, taskId: string): string {
  return `/workflows/${id}/tasks/${encodeURIComponent(taskId)}`;
}

/** The task's id in the path of its page as the browser has it: the router's parameters are half decoded. */
export function taskIn(pathname: string): string {
  const part = pathname.split("/")[4] ?? "";
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // written by hand, with a lone %
  }
}
