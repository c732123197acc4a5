import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, Suspense, useState } from "react";
import { Link, useLocation } from "wouter";
import { ApiError, answered, api } from "../api/client";
import { progressOf, refresh, resumePreview, serverSettings, snapshotsOf } from "../api/queries";
import type { ResumePreview, SnapshotSummary } from "../api/types";
import { counted, moment } from "../lib/format";
import { part } from "../lib/part";
import { useParam } from "../lib/use-param";
import { useTitle } from "../lib/use-title";
import { Facts, ForeignText } from "../parts/bits";
import { ContextText, CostLine, FidelityReport } from "../parts/ContextView";
import { Crumbs } from "../parts/Crumbs";
import { Drift, driftFound } from "../parts/Drift";
import { Loading, Shown } from "../parts/states";
import { say } from "../parts/toasts";
import { Undone } from "../parts/Undone";
import "../styles/details.css";

const ContextEditor = part(() => import("../parts/ContextEditor"));

const MODELS = [
  "claude-opus-4-5",
  "claude-sonnet-4-5",
  "claude-haiku-4-5",
  "gpt-5",
  "gpt-5-mini",
  "gemini-2.5-pro",
];

const NOT_SAME = { changed: "It has changed", cannot_tell: "That is unknown" } as const;

const NOT_SAVED = "Your changes to the context are not saved: save or discard them first.";

const OTHER_THAN_SHOWN =
  "The folder is not as this page showed it. What is shown now is current: press Resume again to continue.";

export default function ResumePage({ id }: { id: string }) {
  const [from, setFrom] = useParam("from");
  const snapshotId = from || null;
  const [model, setModel] = useState<string | null>(null);
  const [isEditing, setEditing] = useState(false);
  const [isEdited, setEdited] = useState(false);
  const settings = useQuery(serverSettings);
  const progress = useQuery(progressOf(id));
  const snapshots = useQuery(snapshotsOf(id));
  const reader = model ?? settings.data?.model ?? "";
  const preview = useQuery({
    ...resumePreview(id, { snapshotId, model: reader }),
    placeholderData: keepPreviousData,
  });
  const title = progress.data?.workflow.issue.title;
  useTitle(title ? `Resume ${title}` : "Resume");
  const status = progress.data?.workflow.status;
  const isOver = status === "completed" || status === "cancelled";
  return (
    <div className="stack">
      <Crumbs id={id} />
      <h1>Resume</h1>
      {status && status !== "paused" && status !== "failed" && !progress.data?.abandoned && (
        <p className="notice warn" role="status">
          {isOver
            ? `This workflow is ${status} and cannot be resumed: this is what its record holds for another session.`
            : `This workflow is not paused (it is ${status.replace("_", " ")}): this is what a resume would read.`}
        </p>
      )}
      <Shown query={preview} what="what the next session will read">
        {(data) => (
          <div className="columns">
            <div className="stack">
              {data.snapshot && <Drift answer={data} />}
              {!isOver && <Plan data={data} />}
              <ResumeForm
                id={id}
                data={data}
                snapshotId={snapshotId}
                isOver={isOver}
                isEdited={isEdited}
                lookAgain={async () => (await preview.refetch({ throwOnError: true })).data}
              >
                <label>
                  <span>Resume from</span>
                  <select value={snapshotId ?? ""} onChange={(event) => setFrom(event.target.value)}>
                    <option value="">the latest snapshot</option>
                    {[...(snapshots.data?.snapshots ?? [])].reverse().map((one) => (
                      <option key={one.id} value={one.id}>
                        session {one.session_number}, {moment(one.created_at)}
                      </option>
                    ))}
                  </select>
                </label>
                <label>
                  <span>Estimate the cost for</span>
                  <input
                    list="models"
                    value={reader}
                    placeholder="model name"
                    maxLength={200}
                    onChange={(event) => setModel(event.target.value)}
                  />
                  <datalist id="models">
                    {MODELS.map((name) => (
                      <option key={name} value={name} />
                    ))}
                  </datalist>
                </label>
              </ResumeForm>
            </div>
            <div className="stack">
              {isEditing && data.snapshot ? (
                <Suspense fallback={<Loading what="editor" />}>
                  <ContextEditor
                    key={data.snapshot.id}
                    id={id}
                    snapshotId={data.snapshot.id}
                    before={sessionBefore(snapshots.data?.snapshots ?? [], data.snapshot.id)}
                    model={reader}
                    onEdited={setEdited}
                    onClose={() => setEditing(false)}
                  />
                </Suspense>
              ) : (
                <ContextText text={data.context}>
                  {data.snapshot && (
                    <button type="button" className="small" onClick={() => setEditing(true)}>
                      Edit
                    </button>
                  )}
                </ContextText>
              )}
              <FidelityReport fidelity={data.fidelity} />
            </div>
          </div>
        )}
      </Shown>
    </div>
  );
}

function sessionBefore(all: readonly SnapshotSummary[], id: string): string | null {
  const at = all.findIndex((one) => one.id === id);
  return all[at - 1]?.id ?? null;
}

function Plan({ data }: { data: ResumePreview }) {
  return (
    <section className="card" aria-label="What a resume does">
      <h2>What happens</h2>
      <Facts
        facts={[
          [
            "Resumes from",
            data.snapshot
              ? `session ${data.snapshot.session_number}, ${moment(data.snapshot.created_at)}`
              : "the beginning: not paused yet",
          ],
          ["Next task", data.next_task_id],
          [
            "Done, remaining",
            data.snapshot && `${data.snapshot.tasks_completed}, ${data.snapshot.tasks_remaining}`,
          ],
          ["Cost", <CostLine key="cost" cost={data.cost} />],
        ]}
      />
    </section>
  );
}

function ResumeForm({
  id,
  data,
  snapshotId,
  isOver,
  isEdited,
  lookAgain,
  children,
}: {
  id: string;
  data: ResumePreview;
  snapshotId: string | null;
  isOver: boolean;
  isEdited: boolean;
  lookAgain: () => Promise<ResumePreview | undefined>;
  children: React.ReactNode;
}) {
  const [message, setMessage] = useState("");
  const [strict, setStrict] = useState(false);
  const [isLetGo, setLetGo] = useState(false);
  const [, go] = useLocation();
  const client = useQueryClient();
  const resume = useMutation({
    mutationFn: async (accept_commands: string | null) => {
      if (isEdited) throw new Error(NOT_SAVED);
      const now = await lookAgain();
      const isAsShown = now?.drift_state === data.drift_state && now.drift.join() === data.drift.join();
      if (!isAsShown) throw new Error(OTHER_THAN_SHOWN);
      return answered(
        api.POST("/api/workflows/{workflow_id}/resume", {
          params: { path: { workflow_id: id } },
          body: {
            snapshot_id: snapshotId,
            message: message.trim() || null,
            strict,
            accept_commands,
            accept_undone: isLetGo && Boolean(data.undone?.is_certain),
          },
        }),
      );
    },
    onSuccess: (answer) => {
      const found = driftFound(answer);
      say(`Resumed as session ${answer.session_number}.`, found ? "bad" : "good", found);
      go(`/workflows/${id}`);
    },
    onSettled: () => refresh(client, id),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    resume.mutate(null);
  };
  if (isOver) {
    return (
      <div className="card stack">
        {data.undone && <Undone id={id} undone={data.undone} />}
        {children}
      </div>
    );
  }
  const { hint, confirm } = resume.error instanceof ApiError ? resume.error : {};
  return (
    <form className="card stack" onSubmit={submit}>
      {data.undone && (
        <Undone id={id} undone={data.undone}>
          {data.undone.is_certain && (
            <label className="check">
              <input
                type="checkbox"
                required
                checked={isLetGo}
                onChange={(event) => setLetGo(event.target.checked)}
              />
              Continue without it; the next session is told
            </label>
          )}
        </Undone>
      )}
      {children}
      <label>
        <span>Message to the next session</span>
        <textarea
          rows={3}
          maxLength={10_000}
          value={message}
          placeholder="What it should know"
          onChange={(event) => setMessage(event.target.value)}
        />
      </label>
      <label className="check">
        <input type="checkbox" checked={strict} onChange={(event) => setStrict(event.target.checked)} />
        Fail unless the folder is known to be unchanged since the pause
      </label>
      {strict && data.drift_state !== "same" && (
        <p className="muted">{NOT_SAME[data.drift_state]}: resuming now would fail.</p>
      )}
      {confirm && (
        <Unconfirmed commands={confirm.commands}>
          <button
            type="button"
            className="danger"
            disabled={resume.isPending}
            onClick={() => resume.mutate(confirm.digest)}
          >
            Run these commands
          </button>
        </Unconfirmed>
      )}
      {resume.isError && !confirm && (
        <div className="notice bad" role="alert">
          <p>
            <strong>Not resumed.</strong> {resume.error.message}
          </p>
          {hint && <p className="muted">{hint}</p>}
        </div>
      )}
      <div className="row">
        <button type="submit" className="primary" disabled={resume.isPending}>
          {resume.isPending ? "Resuming…" : "Resume"}
        </button>
        <Link href={`/workflows/${id}`} className="button">
          Back
        </Link>
      </div>
    </form>
  );
}

/** What an imported session would run here: all of it, before any of it. */
function Unconfirmed({ commands, children }: { commands: readonly string[]; children: React.ReactNode }) {
  return (
    <div className="notice warn stack" role="alert">
      <p>
        <strong>Not resumed yet.</strong> This work came from elsewhere and would run{" "}
        {counted(commands.length, "command or prompt", "commands and prompts")} that nobody here has
        confirmed:
      </p>
      {commands.map((command, index) => (
        <ForeignText key={command} title={`${index + 1} of ${commands.length}`} text={command} isCode />
      ))}
      <div className="row">{children}</div>
    </div>
  );
}
