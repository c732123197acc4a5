/** What was changed in files, as a diff; and taking it back. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client";
import { diffOfChange, keys } from "../api/queries";
import type { DiffHunk, RecordedChange, UndoResponse } from "../api/types";
import { count, counted, neutral } from "../lib/format";
import { Ago, Dialog } from "./bits";
import { Failed, Loading } from "./states";
import { complain, say } from "./toasts";

/** Open from the start where there are no more than these. */
const FEW = 3;
const MOST_LINES = 800;

interface Place {
  id: string;
  worktree: string;
}

export function FileChanges({ changes, ...place }: Place & { changes: readonly RecordedChange[] }) {
  return (
    <ul className="changes">
      {changes.map((one, index) => (
        <Change key={one.change.id} one={one} startsOpen={index < FEW} {...place} />
      ))}
    </ul>
  );
}

function Change({ one, startsOpen, id, worktree }: Place & { one: RecordedChange; startsOpen: boolean }) {
  const [isOpen, setOpen] = useState(startsOpen);
  const { change, undone_by } = one;
  return (
    <li className="change">
      <div className="row spread wrap">
        <button
          type="button"
          className="quiet disclosure"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? "▾" : "▸"} {counted(change.files.length, "file")} changed
        </button>
        <span className="row wrap">
          <span className="muted">
            <Ago at={change.at} />
          </span>
          {undone_by && !change.stands && <span className="tag">Undone</span>}
          <UndoButton one={one} id={id} worktree={worktree} />
        </span>
      </div>
      {change.doubt && <p className="muted">In doubt: {neutral(change.doubt)}</p>}
      {change.left.length > 0 && (
        <p className="muted">Left as they were: {neutral(change.left.join(", "))}</p>
      )}
      {isOpen && <Diff one={one} worktree={worktree} />}
    </li>
  );
}

function Diff({ one, worktree }: { one: RecordedChange; worktree: string }) {
  const query = useQuery(diffOfChange(one.transaction_id, one.change.id, worktree));
  const [shown, setShown] = useState(MOST_LINES);
  if (query.isError) return <Failed error={query.error} retry={() => void query.refetch()} />;
  if (!query.data) return <Loading what="diff" />;
  const files = byFile(query.data.hunks);
  let room = shown;
  const total = query.data.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  return (
    <div className="stack">
      {files.map(([path, hunks]) => {
        const lines = hunks.flatMap((hunk) => hunk.lines).slice(0, Math.max(0, room));
        room -= lines.length;
        const { added, removed } = counts(hunks);
        return (
          <figure key={path} className="diff-file">
            <figcaption className="row spread wrap">
              <code>{neutral(path)}</code>
              <span className="nowrap">
                {hunks[0]?.kind !== "modified" && <span className="tag">{hunks[0]?.kind}</span>}{" "}
                <span className="added">+{count(added)}</span>{" "}
                <span className="removed">−{count(removed)}</span>
              </span>
            </figcaption>
            {lines.length > 0 ? (
              <section
                className="diff-lines"
                aria-label={`Diff of ${neutral(path)}`}
                // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
                tabIndex={0}
              >
                {lines.map((line, index) => (
                  <DiffLine key={index} line={line} />
                ))}
              </section>
            ) : (
              <p className="muted">{told(hunks)}</p>
            )}
          </figure>
        );
      })}
      {total > shown && (
        <button type="button" className="small more" onClick={() => setShown(Number.POSITIVE_INFINITY)}>
          Show the other {counted(total - shown, "line")}
        </button>
      )}
    </div>
  );
}

function told(hunks: readonly DiffHunk[]): string {
  return hunks.some((hunk) => hunk.lines.length > 0)
    ? "Not shown yet."
    : "Its content cannot be shown as text.";
}

const KINDS: Record<string, string> = { "+": "line-added", "-": "line-removed", "@": "line-place" };

function DiffLine({ line }: { line: string }) {
  return <div className={`diff-line ${KINDS[line[0] ?? ""] ?? ""}`}>{neutral(line) || " "}</div>;
}

function byFile(hunks: readonly DiffHunk[]): [string, DiffHunk[]][] {
  const files = new Map<string, DiffHunk[]>();
  for (const hunk of hunks) files.set(hunk.path, [...(files.get(hunk.path) ?? []), hunk]);
  return [...files];
}

function counts(hunks: readonly DiffHunk[]): { added: number; removed: number } {
  const lines = hunks.flatMap((hunk) => hunk.lines);
  return {
    added: lines.filter((line) => line.startsWith("+")).length,
    removed: lines.filter((line) => line.startsWith("-")).length,
  };
}

/** What it would do is shown before it is done; what was undone can be had back the same way. */
function UndoButton({ one, id, worktree }: Place & { one: RecordedChange }) {
  const [plan, setPlan] = useState<UndoResponse | null>(null);
  const client = useQueryClient();
  const { stands } = one.change;
  const verb = stands ? "Undo" : "Redo";
  const ask = (dry_run: boolean) =>
    answered(
      api.POST("/api/transactions/{transaction_id}/undo", {
        params: { path: { transaction_id: one.transaction_id }, query: { project: worktree } },
        body: {
          change: stands ? one.change.id : one.undone_by,
          dry_run,
          partial: dry_run ? true : (plan?.left && Object.keys(plan.left).length > 0) || false,
          doubtful: true,
          everything: false,
          files: [],
          hunks: [],
        },
      }),
    );
  const preview = useMutation({ mutationFn: () => ask(true), onSuccess: setPlan, onError: complain });
  const act = useMutation({
    mutationFn: () => ask(false),
    onSuccess: (done) => say(`${stands ? "Undid" : "Redid"} ${counted(done.restored.length, "file")}.`),
    onError: complain,
    onSettled: () => {
      setPlan(null);
      void client.invalidateQueries({ queryKey: keys.workflow(id) });
    },
  });
  if (!stands && !one.undone_by) return null;
  return (
    <>
      <button type="button" className="small" disabled={preview.isPending} onClick={() => preview.mutate()}>
        {verb}…
      </button>
      {plan && (
        <Dialog title={`${verb} this change?`} onClose={() => setPlan(null)}>
          <div className="stack">
            <UndoPlan plan={plan} />
            <div className="row end">
              <button type="button" onClick={() => setPlan(null)}>
                Back
              </button>
              <button
                type="button"
                className="primary"
                disabled={act.isPending || plan.restored.length === 0}
                onClick={() => act.mutate()}
              >
                {verb}
              </button>
            </div>
          </div>
        </Dialog>
      )}
    </>
  );
}

function UndoPlan({ plan }: { plan: UndoResponse }) {
  const left = Object.entries(plan.left);
  return (
    <>
      {plan.restored.length === 0 ? (
        <p>Nothing can be done without losing later edits.</p>
      ) : (
        <>
          <p>{counted(plan.restored.length, "file")} will be changed; later edits in other places stay:</p>
          <ul className="paths">
            {plan.restored.slice(0, 50).map((path) => (
              <li key={path}>
                <code>{neutral(path)}</code>
              </li>
            ))}
            {plan.restored.length > 50 && <li>and {count(plan.restored.length - 50)} more</li>}
          </ul>
        </>
      )}
      {left.length > 0 && (
        <>
          <p>Left as they are:</p>
          <ul className="paths">
            {left.slice(0, 50).map(([path, reason]) => (
              <li key={path}>
                <code>{neutral(path)}</code> <span className="muted">{neutral(reason)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}
