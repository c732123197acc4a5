/** Small things that many pages show. */
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import { ago, count, moment, neutral, percent, words } from "../lib/format";

export function Status({ status }: { status: string }) {
  return <span className={`status status-${status}`}>{words(status)}</span>;
}

/** How long ago, kept true while the page is open; the exact moment on hover and for screen readers. */
export function Ago({ at }: { at: string }) {
  const now = useNow();
  return (
    <time dateTime={at} title={moment(at)}>
      {ago(at, now)}
    </time>
  );
}

const listeners = new Set<(now: number) => void>();
let ticking: number | null = null;

/** One clock for the whole page. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    listeners.add(setNow);
    ticking ??= window.setInterval(() => {
      for (const listener of listeners) listener(Date.now());
    }, 15_000);
    return () => {
      listeners.delete(setNow);
      if (listeners.size === 0 && ticking !== null) {
        window.clearInterval(ticking);
        ticking = null;
      }
    };
  }, []);
  return now;
}

export function ProgressBar({ done, failed, total }: { done: number; failed: number; total: number }) {
  const share = (part: number) => ({ width: `${total ? (100 * part) / total : 0}%` });
  return (
    <span
      className="progress"
      role="progressbar"
      aria-valuemin={0}
      aria-valuemax={total}
      aria-valuenow={done}
      aria-label={`${done} of ${total} tasks completed${failed ? `, ${failed} failed` : ""}`}
    >
      <span className="progress-done" style={share(done)} />
      <span className="progress-failed" style={share(failed)} />
    </span>
  );
}

/** How full the context window is, with the mark at which the session pauses by itself. */
export function ContextGauge({ share, pausesAt }: { share: number | null; pausesAt: number | null }) {
  const limit = pausesAt ?? 1;
  const level = share === null ? "none" : share >= limit ? "full" : share >= limit * 0.8 ? "high" : "calm";
  const told = share === null ? "not reported" : `${percent(share)} full`;
  return (
    <div className="gauge-box">
      <div
        className={`gauge gauge-${level}`}
        role="meter"
        aria-label="Context window"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(Math.min(1, share ?? 0) * 100)}
        aria-valuetext={pausesAt === null ? told : `${told}, pauses at ${percent(pausesAt)}`}
      >
        <span className="gauge-fill" style={{ width: `${Math.min(1, share ?? 0) * 100}%` }} />
        {pausesAt !== null && <span className="gauge-mark" style={{ left: `${pausesAt * 100}%` }} />}
      </div>
      <span className="gauge-told">{told}</span>
    </div>
  );
}

export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string;
  onClose: () => void;
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Closed while it still stands in the page: only then does the browser give the focus back.
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  return (
    <dialog ref={dialog} className="dialog" aria-labelledby="dialog-title" onCancel={onClose}>
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

export function Facts({ facts }: { facts: readonly (readonly [string, ReactNode])[] }) {
  const shown = facts.filter(
    ([, value]) => value !== null && value !== undefined && value !== "" && value !== false,
  );
  return (
    <dl className="facts">
      {shown.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A table that may be wider than the screen: it scrolls by itself, by keyboard too. */
export function Wide({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <div className="scroll-x" role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

export function Section({ title, count, children }: { title: string; count?: number; children: ReactNode }) {
  return (
    <section className="card" aria-label={title}>
      <h2>
        {title}
        {count !== undefined && <span className="count">{count}</span>}
      </h2>
      {children}
    </section>
  );
}

/** A few words that a plan or a program wrote: framed, so that they pass for nobody else's. */
export function Foreign({ text }: { text: string }) {
  return <bdi className="foreign">{neutral(text)}</bdi>;
}

/** The same for a whole text; how long it is, as its end may be out of sight. */
export function ForeignText({ title, text, isCode }: { title: string; text: string; isCode?: boolean }) {
  const lines = text.split("\n").length;
  const label = lines > 1 ? `${title}, ${count(lines)} lines` : title;
  return (
    <figure className="foreign-text">
      <figcaption>{label}</figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre className={isCode ? "foreign code" : "foreign"} role="region" aria-label={label} tabIndex={0}>
        {neutral(text)}
      </pre>
    </figure>
  );
}
