import { useEffect, useState } from "react";

type Theme = "system" | "light" | "dark";
const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const SIGNS: Record<Theme, string> = { system: "◐", light: "☀", dark: "☾" };
const KEY = "holdfast-theme";

function chosen(): Theme {
  const set = document.documentElement.dataset.theme;
  return set === "light" || set === "dark" ? set : "system";
}

export function ThemeSwitch() {
  const [theme, setTheme] = useState(chosen);
  useEffect(() => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    window.dispatchEvent(new Event("holdfast-theme"));
    try {
      if (theme === "system") localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, theme);
    } catch {
      // a browser that keeps nothing: it lasts as long as the page
    }
  }, [theme]);
  return (
    <button
      type="button"
      className="quiet theme"
      aria-label={`Theme: ${theme}. Change to ${NEXT[theme]}`}
      title={`Theme: ${theme}`}
      onClick={() => setTheme(NEXT[theme])}
    >
      <span aria-hidden="true">{SIGNS[theme]}</span>
    </button>
  );
}
