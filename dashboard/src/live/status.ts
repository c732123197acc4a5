/** Whether the page is live, for the one place in the header that says so. */
import { useSyncExternalStore } from "react";
import type { ConnectionState } from "./connection";

let state: ConnectionState | null = null;
const listeners = new Set<() => void>();

export function noteConnection(next: ConnectionState | null): void {
  if (next === state) return;
  state = next;
  for (const listener of listeners) listener();
}

export function useConnectionState(): ConnectionState | null {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => state,
  );
}
