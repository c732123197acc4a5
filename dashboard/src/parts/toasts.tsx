/** Short answers to what somebody just did. */
import { useSyncExternalStore } from "react";
import { ApiError } from "../api/client";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly hint: string | null;
  readonly tone: "good" | "bad";
}

const SECONDS = { good: 5, bad: 12 };
let toasts: readonly Toast[] = [];
let last = 0;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

const dismiss = (id: number) => set(toasts.filter((toast) => toast.id !== id));

export function say(text: string, tone: Toast["tone"] = "good", hint: string | null = null): void {
  last += 1;
  const id = last;
  set([...toasts.slice(-3), { id, text, tone, hint }]);
  window.setTimeout(() => dismiss(id), SECONDS[tone] * 1000);
}

export function complain(error: unknown): void {
  if (error instanceof ApiError && error.confirm) {
    say("This work came from elsewhere.", "bad", "Resume… shows what it would run, for you to confirm.");
    return;
  }
  const hint = error instanceof Error && "hint" in error ? (error.hint as string | null) : null;
  say(error instanceof Error ? error.message : "Something went wrong.", "bad", hint);
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map((toast) => (
        <div key={toast.id} className={`toast toast-${toast.tone}`}>
          <div>
            <p>{toast.text}</p>
            {toast.hint && <p className="muted">{toast.hint}</p>}
          </div>
          <button type="button" className="quiet" aria-label="Dismiss" onClick={() => dismiss(toast.id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
