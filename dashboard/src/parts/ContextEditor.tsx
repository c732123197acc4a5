/** The context as the next agent will read it, to be changed: pin, leave out, put in order, add. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useDeferredValue, useEffect, useState } from "react";
import { answered, api } from "../api/client";
import { contextOf, editedContext, keys } from "../api/queries";
import type { ContextEdits, ContextStatement, EditedContext } from "../api/types";
import { changedLines, withDropped, withMoved, withPinned } from "../lib/context-edits";
import { count, counted, neutral } from "../lib/format";
import { CostLine } from "./ContextView";
import { Failed, Loading } from "./states";
import { complain, say } from "./toasts";

interface Properties {
  id: string;
  snapshotId: string;
  /** Of the pause before, to compare with. */
  before: string | null;
  model: string;
  /** Whether there are changes that are not saved. */
  onEdited: (isEdited: boolean) => void;
  onClose: () => void;
}

export default function ContextEditor({ id, snapshotId, before, model, onEdited, onClose }: Properties) {
  const [edits, setEdits] = useState<ContextEdits | null>(null);
  const isEdited = edits !== null;
  useEffect(() => {
    onEdited(isEdited);
    return () => onEdited(false);
  }, [isEdited, onEdited]);
  useAskBeforeLeaving(isEdited);
  const [compares, setCompares] = useState(false);
  const asked = useDeferredValue(edits);
  const saved = useQuery(editedContext(id, snapshotId, null, model));
  const query = useQuery({
    ...editedContext(id, snapshotId, asked, model),
    placeholderData: keepPreviousData,
  });
  const client = useQueryClient();
  const save = useMutation({
    mutationFn: (wanted: ContextEdits) =>
      answered(
        api.PUT("/api/workflows/{workflow_id}/snapshots/{snapshot_id}/context", {
          params: { path: { workflow_id: id, snapshot_id: snapshotId } },
          body: { edits: wanted, max_chars: 9_500, model: model || null },
        }),
      ),
    onSuccess: () => {
      say("Saved: the next session reads the context so.");
      void client.invalidateQueries({ queryKey: keys.workflow(id) });
      onClose();
    },
    onError: complain,
  });
  if (!query.data || !saved.data) {
    if (query.isError) return <Failed error={query.error} retry={() => void query.refetch()} />;
    return <Loading what="context" />;
  }
  const { data } = query;
  const now = edits ?? data.edits;
  const change = (next: ContextEdits) => setEdits(next);
  const more = data.cost.tokens - saved.data.cost.tokens;
  return (
    <section className="card" aria-label="Edit the context">
      <div className="row spread wrap">
        <h2>Edit what the agent will read</h2>
        <span className="row wrap">
          <button
            type="button"
            className="small toggle"
            aria-pressed={compares}
            onClick={() => setCompares(!compares)}
          >
            Compare
          </button>
          <button type="button" className="small" onClick={onClose}>
            Discard
          </button>
          <button
            type="button"
            className="small primary"
            disabled={edits === null || save.isPending}
            onClick={() => save.mutate(now)}
          >
            Save
          </button>
        </span>
      </div>
      <p className="muted" role="status">
        <CostLine cost={data.cost} />
        {more !== 0 && `, ${more > 0 ? "+" : "−"}${count(Math.abs(more))} with your changes`}
      </p>
      {compares ? (
        <Comparison id={id} before={before} saved={saved.data} now={data} />
      ) : (
        <Statements statements={data.statements} edits={now} onChange={change} />
      )}
    </section>
  );
}

/** Links inside the page do not unload it, so they are asked about by themselves. */
function useAskBeforeLeaving(isEdited: boolean): void {
  useEffect(() => {
    if (!isEdited) return;
    const onUnload = (event: BeforeUnloadEvent) => event.preventDefault();
    const onClick = (event: MouseEvent) => {
      if (!(event.target instanceof Element) || !event.target.closest("a[href]")) return;
      if (window.confirm("Leave without saving your changes to the context?")) return;
      event.preventDefault();
      event.stopPropagation();
    };
    window.addEventListener("beforeunload", onUnload);
    document.addEventListener("click", onClick, true);
    return () => {
      window.removeEventListener("beforeunload", onUnload);
      document.removeEventListener("click", onClick, true);
    };
  }, [isEdited]);
}

function Statements({
  statements,
  edits,
  onChange,
}: {
  statements: readonly ContextStatement[];
  edits: ContextEdits;
  onChange: (edits: ContextEdits) => void;
}) {
  const parts = [...new Set(statements.map((one) => one.part))];
  return (
    <div className="stack">
      {parts.map((part) => {
        const own = statements.filter((one) => one.part === part);
        return (
          <section key={part} aria-label={own[0]?.title ?? part}>
            <h3>{own[0]?.title}</h3>
            <ol className="statements">
              {own.map((one) => (
                <Statement key={one.key} one={one} own={own} edits={edits} onChange={onChange} />
              ))}
            </ol>
          </section>
        );
      })}
      <AddPin edits={edits} onChange={onChange} />
    </div>
  );
}

function Statement({
  one,
  own,
  edits,
  onChange,
}: {
  one: ContextStatement;
  own: readonly ContextStatement[];
  edits: ContextEdits;
  onChange: (edits: ContextEdits) => void;
}) {
  const [isOpen, setOpen] = useState(false);
  const text = neutral(one.text).trim();
  const isLong = text.length > 220;
  const kept = own.filter((other) => !other.is_dropped);
  const at = kept.indexOf(one);
  const name = text.slice(0, 60);
  return (
    <li className={one.is_carried ? "statement" : "statement statement-out"}>
      <div className="statement-text">
        <p>{isLong && !isOpen ? `${text.slice(0, 200)}…` : text}</p>
        <span className="row wrap">
          {one.is_pinned && <span className="tag tag-fixed">Pinned</span>}
          {one.is_dropped && <span className="tag">Left out by you</span>}
          {!one.is_carried && !one.is_dropped && <span className="tag">No room</span>}
          {one.is_shortened && <span className="tag">Shortened</span>}
          {isLong && (
            <button
              type="button"
              className="quiet small"
              aria-expanded={isOpen}
              onClick={() => setOpen(!isOpen)}
            >
              {isOpen ? "Less" : "All of it"}
            </button>
          )}
        </span>
      </div>
      {!one.is_fixed && (
        <span className="statement-actions">
          <button
            type="button"
            className="small toggle"
            aria-pressed={one.is_pinned}
            aria-label={`Pin: ${name}`}
            disabled={one.is_dropped}
            onClick={() => onChange(withPinned(edits, one))}
          >
            Pin
          </button>
          <button
            type="button"
            className="small"
            aria-label={`${one.is_dropped ? "Restore" : "Drop"}: ${name}`}
            onClick={() => onChange(withDropped(edits, one))}
          >
            {one.is_dropped ? "Restore" : "Drop"}
          </button>
          <button
            type="button"
            className="small"
            aria-label={`Move up: ${name}`}
            disabled={one.is_dropped || at <= 0}
            onClick={() => onChange(withMoved(edits, kept, at, at - 1))}
          >
            ↑
          </button>
          <button
            type="button"
            className="small"
            aria-label={`Move down: ${name}`}
            disabled={one.is_dropped || at === kept.length - 1}
            onClick={() => onChange(withMoved(edits, kept, at, at + 1))}
          >
            ↓
          </button>
        </span>
      )}
    </li>
  );
}

function AddPin({ edits, onChange }: { edits: ContextEdits; onChange: (edits: ContextEdits) => void }) {
  const [text, setText] = useState("");
  const add = (event: FormEvent) => {
    event.preventDefault();
    if (!text.trim()) return;
    onChange({ ...edits, pins: [...(edits.pins ?? []), { part: "wants", text: text.trim() }] });
    setText("");
  };
  return (
    <form className="row wrap" onSubmit={add}>
      <input
        className="grow"
        value={text}
        maxLength={4_000}
        placeholder="Something every next session must know"
        aria-label="Add a pin"
        onChange={(event) => setText(event.target.value)}
      />
      <button type="submit">Pin it</button>
    </form>
  );
}

function Comparison({
  id,
  before,
  saved,
  now,
}: {
  id: string;
  before: string | null;
  saved: EditedContext;
  now: EditedContext;
}) {
  const [withLast, setWithLast] = useState(false);
  const last = useQuery({ ...contextOf(id, before ?? ""), enabled: withLast && before !== null });
  const other = withLast && before !== null ? last.data?.context : neutral(saved.context);
  return (
    <div className="stack">
      {before !== null && (
        <label className="inline">
          <span>With</span>
          <select
            value={withLast ? "last" : "saved"}
            onChange={(event) => setWithLast(event.target.value === "last")}
          >
            <option value="saved">what is saved</option>
            <option value="last">the context of the session before</option>
          </select>
        </label>
      )}
      {other === undefined ? (
        <Loading what="the other context" />
      ) : (
        <Changes lines={changedLines(other, neutral(now.context))} />
      )}
    </div>
  );
}

function Changes({ lines }: { lines: readonly string[] }) {
  const changed = lines.filter((line) => line[0] !== " ").length;
  if (changed === 0) return <p className="muted">They are the same.</p>;
  return (
    <>
      <p className="muted">{counted(changed, "line")} differ.</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className="diff-lines wrapped" aria-label="What differs" tabIndex={0}>
        {lines.map((line, index) => (
          <div
            key={index}
            className={`diff-line ${line[0] === "+" ? "line-added" : line[0] === "-" ? "line-removed" : ""}`}
          >
            {line || " "}
          </div>
        ))}
      </section>
    </>
  );
}
