/** What a task prints: only the lines in view are drawn, the newest stay in view, any can be searched for. */
import { type KeyboardEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { TaskAttempt } from "../api/types";
import { count, counted, neutral, words } from "../lib/format";
import { inView, matching, type Output, pieces, plain } from "../lib/output";
import { useOutput } from "../live/use-output";

const ROW = 18;

export function LiveOutput({
  id,
  taskId,
  attempts,
  isRunning,
}: {
  id: string;
  taskId: string;
  attempts: readonly TaskAttempt[];
  isRunning: boolean;
}) {
  const newest = attempts.at(-1)?.number ?? 0;
  const [chosen, setChosen] = useState<number | null>(null);
  const attempt = chosen ?? newest;
  const followed = useOutput(id, taskId, attempt, isRunning && attempt === newest);
  const { output } = followed;
  const none =
    newest === 0
      ? "It has not started yet."
      : followed.error
        ? followed.error.message
        : "It printed nothing.";
  return (
    <section className="card output" aria-label="Output">
      <OutputView
        key={`${attempt}`}
        output={output}
        isRunning={followed.isRunning}
        none={followed.isLoaded || newest === 0 ? none : "Loading output…"}
      >
        {attempts.length > 1 && (
          <label className="inline">
            <span className="hidden">Attempt</span>
            <select value={attempt} onChange={(event) => setChosen(Number(event.target.value))}>
              {[...attempts].reverse().map((one) => (
                <option key={one.number} value={one.number}>
                  Attempt {one.number}, {words(one.outcome ?? "running").toLowerCase()}
                </option>
              ))}
            </select>
          </label>
        )}
      </OutputView>
      {followed.error && output.lines.length > 0 && <p className="muted">{followed.error.message}</p>}
    </section>
  );
}

function OutputView({
  output,
  isRunning,
  none,
  children,
}: {
  output: Output;
  isRunning: boolean;
  none: string;
  children: React.ReactNode;
}) {
  const [search, setSearch] = useState("");
  const [at, setAt] = useState(0);
  const [follows, setFollows] = useState(true);
  const [copied, setCopied] = useState(false);
  const found = useMemo(() => matching(output.lines, search), [output.lines, search]);
  const current = found.length > 0 ? (found[Math.min(at, found.length - 1)] as number) : null;
  const step = (by: number) => {
    if (found.length === 0) return;
    setFollows(false);
    setAt((Math.min(at, found.length - 1) + by + found.length) % found.length);
  };
  const keyed = (event: KeyboardEvent) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    step(event.shiftKey ? -1 : 1);
  };
  const copy = () => {
    const text = output.lines.map((line) => neutral(plain(line))).join("\n");
    void navigator.clipboard.writeText(text).then(() => setCopied(true));
  };
  return (
    <>
      <div className="row wrap output-bar">
        <h2>Output</h2>
        {isRunning && <span className="status status-in_progress">Live</span>}
        {children}
        <input
          type="search"
          className="grow"
          value={search}
          placeholder="Search output"
          aria-label="Search output"
          onKeyDown={keyed}
          onChange={(event) => {
            setSearch(event.target.value);
            setAt(0);
            if (event.target.value) setFollows(false);
          }}
        />
        {search && (
          <span className="row search-steps">
            <span className="muted nowrap" role="status">
              {current === null
                ? "Not found"
                : `${count(Math.min(at, found.length - 1) + 1)} of ${count(found.length)}`}
            </span>
            <button type="button" className="small" aria-label="Previous match" onClick={() => step(-1)}>
              ↑
            </button>
            <button type="button" className="small" aria-label="Next match" onClick={() => step(1)}>
              ↓
            </button>
          </span>
        )}
        <button
          type="button"
          className="small toggle"
          aria-pressed={follows}
          onClick={() => setFollows(!follows)}
        >
          Follow
        </button>
        <button type="button" className="small" disabled={output.lines.length === 0} onClick={copy}>
          {copied ? "Copied" : "Copy"}
        </button>
      </div>
      {output.dropped > 0 && (
        <p className="muted">{counted(output.dropped, "earlier line")} not shown here.</p>
      )}
      {output.lines.length === 0 ? (
        <p className="muted">{isRunning ? "Nothing printed yet." : none}</p>
      ) : (
        <Lines output={output} search={search} current={current} follows={follows} onFollow={setFollows} />
      )}
    </>
  );
}

interface LinesProperties {
  output: Output;
  search: string;
  current: number | null;
  follows: boolean;
  onFollow: (follows: boolean) => void;
}

function Lines({ output, search, current, follows, onFollow }: LinesProperties) {
  const { lines, dropped } = output;
  const box = useRef<HTMLElement>(null);
  const seen = useRef({ dropped, top: 0 });
  const [view, setView] = useState({ top: 0, height: 600 });
  // What stands in view stays there when older lines go, and the newest does where it is followed.
  useLayoutEffect(() => {
    const shown = box.current;
    const { dropped } = output;
    if (!shown) return;
    if (follows) shown.scrollTop = shown.scrollHeight;
    else if (dropped !== seen.current.dropped) {
      shown.scrollTop -= (dropped - seen.current.dropped) * ROW;
    }
    seen.current = { dropped, top: shown.scrollTop };
    setView((before) => moved(before, shown));
  }, [output, follows]);
  useEffect(() => {
    const shown = box.current;
    if (!shown || current === null) return;
    shown.scrollTop = Math.max(0, current * ROW - shown.clientHeight / 2);
  }, [current]);
  useEffect(() => {
    const shown = box.current;
    if (!shown) return;
    const watch = new ResizeObserver(() => setView((before) => moved(before, shown)));
    watch.observe(shown);
    return () => watch.disconnect();
  }, []);
  const scrolled = () => {
    const shown = box.current as HTMLElement;
    const atEnd = shown.scrollHeight - shown.scrollTop - shown.clientHeight < 2 * ROW;
    if (follows && !atEnd && shown.scrollTop < seen.current.top) onFollow(false);
    seen.current.top = shown.scrollTop;
    setView((before) => moved(before, shown));
  };
  const { from, to } = inView(view.top, view.height, ROW, lines.length);
  return (
    <section
      ref={box}
      className="log"
      aria-label="Printed lines"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
      onScroll={scrolled}
    >
      <div className="log-body" style={{ height: lines.length * ROW }}>
        <div style={{ transform: `translateY(${from * ROW}px)` }}>
          {lines.slice(from, to).map((line, index) => (
            <LogLine
              key={dropped + from + index}
              line={line}
              search={search}
              isCurrent={from + index === current}
            />
          ))}
        </div>
      </div>
    </section>
  );
}

function moved(before: { top: number; height: number }, shown: HTMLElement) {
  const { scrollTop: top, clientHeight: height } = shown;
  return before.top === top && before.height === height ? before : { top, height };
}

function LogLine({ line, search, isCurrent }: { line: string; search: string; isCurrent: boolean }) {
  return (
    <div className={isCurrent ? "log-line log-current" : "log-line"}>
      {pieces(line).map((piece, index) => (
        <span
          key={index}
          className={`${piece.colour ? `ansi-${piece.colour}` : ""}${piece.isBold ? " ansi-bold" : ""}`}
        >
          <Marked text={neutral(piece.text)} search={search} />
        </span>
      ))}
    </div>
  );
}

function Marked({ text, search }: { text: string; search: string }) {
  if (!search) return text;
  const parts: React.ReactNode[] = [];
  const lower = text.toLowerCase();
  const wanted = search.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + wanted.length)}</mark>);
    from = at + wanted.length;
  }
  parts.push(text.slice(from));
  return parts;
}
