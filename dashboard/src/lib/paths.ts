/** Addresses of pages. */

export function taskPath(id: string, taskId: string): string {
  return `/workflows/${id}/tasks/${encodeURIComponent(taskId)}`;
}

/** A task's id in an address; a slash in it is written as `%2F`. */
export function taskIn(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a lone % in the id: the router has decoded it already
  }
}
