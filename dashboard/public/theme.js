// Before the first paint, so that nobody who chose a theme sees the other one flash by.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("holdfast-theme");
  } catch {
    // a browser that keeps nothing: follow the system
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
