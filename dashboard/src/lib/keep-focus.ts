/** What has the focus, and what stands around it, from the inside out. */
let around: readonly HTMLElement[] = [];

/**
 * When what has the focus goes or is disabled, the nearest thing around it gets the focus: whoever uses the
 * keyboard stays at that place, where browsers would begin at the top of the page again.
 */
export function keepFocus(): void {
  document.addEventListener("focusin", ({ target }) => {
    around = [];
    for (let one = target; one instanceof HTMLElement && one !== document.body; one = one.parentElement)
      around = [...around, one];
  });
  document.addEventListener("focusout", () => {
    // Somebody clicked beside it: nothing has the focus because nothing is to have it.
    window.setTimeout(() => {
      if (isLost() && around[0] && hasPlace(around[0])) around = [];
    });
  });
  new MutationObserver(restore).observe(document.body, {
    childList: true,
    subtree: true,
    attributeFilter: ["disabled"],
  });
}

const isLost = () => document.activeElement === null || document.activeElement === document.body;
const hasPlace = (one: HTMLElement) => one.isConnected && !one.matches(":disabled");

function restore(): void {
  const [last, ...others] = around;
  if (!last || !isLost() || hasPlace(last)) return;
  const next = others.find(hasPlace);
  if (!next) return;
  if (!next.hasAttribute("tabindex")) next.tabIndex = -1; // for good: a dialog may give the focus back to it
  next.focus({ preventScroll: true });
}
