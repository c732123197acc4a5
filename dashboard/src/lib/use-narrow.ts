import { useSyncExternalStore } from "react";

/** As wide as the styles' phone.css is for. */
const query = window.matchMedia("(max-width: 720px)");

export function useNarrow(): boolean {
  return useSyncExternalStore(subscribe, () => query.matches);
}

function subscribe(told: () => void): () => void {
  query.addEventListener("change", told);
  return () => query.removeEventListener("change", told);
}
