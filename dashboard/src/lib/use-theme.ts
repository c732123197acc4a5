import { useSyncExternalStore } from "react";

const dark = () => window.matchMedia("(prefers-color-scheme: dark)");

function subscribe(listener: () => void): () => void {
  const system = dark();
  system.addEventListener("change", listener);
  window.addEventListener("holdfast-theme", listener);
  return () => {
    system.removeEventListener("change", listener);
    window.removeEventListener("holdfast-theme", listener);
  };
}

/** The theme that shows now, for what is drawn outside of CSS. */
export function useTheme(): "light" | "dark" {
  return useSyncExternalStore(subscribe, () => {
    const set = document.documentElement.dataset.theme;
    if (set === "light" || set === "dark") return set;
    return dark().matches ? "dark" : "light";
  });
}
