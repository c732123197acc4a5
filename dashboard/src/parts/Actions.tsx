/** What can be done with a workflow in its state, and how the server answered. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Link, useLocation } from "wouter";
import { ApiError, answered, api } from "../api/client";
import { progressOf, refresh } from "../api/queries";
import type { WorkflowProgress } from "../api/types";
import { neutral, words } from "../lib/format";
import { Dialog, Foreign } from "./bits";
import { complain, say } from "./toasts";
import { Undone } from "./Undone";

type Asking = { readonly what: "pause" | "cancel" | "skip"; readonly task: string } | null;

export function Actions({ progress }: { progress: WorkflowProgress }) {
  const [asking, setAsking] = useState<Asking>(null);
  const { workflow } = progress;
  const status = workflow.status ?? "pending";
  const isRunning = status === "in_progress" && !progress.abandoned;
  const canResume = status === "paused" || status === "failed" || progress.abandoned;
  const isOver = status === "completed" || status === "cancelled";
  const [failed] = progress.failed_task_ids;
  const ask = (what: "pause" | "cancel" | "skip") => setAsking({ what, task: failed ?? "" });
  return (
    <div className="actions">
      {isRunning && (
        <button
          type="button"
          className="primary"
          disabled={Boolean(workflow.pause_request)}
          onClick={() => ask("pause")}
        >
          {workflow.pause_request ? "Pausing…" : "Pause"}
        </button>
      )}
      {canResume && failed && (
        <>
          <RetryButton id={workflow.id} done="The failed task is retried." />
          <button type="button" onClick={() => ask("skip")}>
            Skip <span className="ellipsis">{neutral(failed)}</span>
          </button>
        </>
      )}
      {canResume && (
        <Link href={`/workflows/${workflow.id}/resume`} className="button primary">
          Resume…
        </Link>
      )}
      <ForkButton id={workflow.id} />
      {!isOver && (
        <button type="button" onClick={() => ask("cancel")}>
          Cancel
        </button>
      )}
      {asking?.what === "pause" && (
        <PauseDialog progress={progress} isLate={!isRunning} onClose={() => setAsking(null)} />
      )}
      {asking?.what === "cancel" && (
        <ReasonDialog
          title="Cancel this workflow permanently?"
          text="A running task is stopped. A cancelled workflow cannot be resumed."
          verb="Cancel the workflow"
          done="Workflow cancelled."
          id={workflow.id}
          isLate={isOver}
          call={(reason) =>
            answered(
              api.POST("/api/workflows/{workflow_id}/cancel", {
                params: { path: { workflow_id: workflow.id } },
                body: { reason: reason || null },
              }),
            )
          }
          onClose={() => setAsking(null)}
        />
      )}
      {asking?.what === "skip" && (
        <SkipDialog
          id={workflow.id}
          taskId={asking.task}
          isLate={!canResume || !progress.failed_task_ids.includes(asking.task)}
          onClose={() => setAsking(null)}
        />
      )}
    </div>
  );
}

/** Does it; where the server refuses as completed work was undone, asks whether to go on without that. */
export function UndoneAwareButton({
  id,
  verb,
  done,
  className,
  call,
}: {
  id: string;
  verb: string;
  done: string;
  className?: string;
  call: (accept_undone: boolean) => Promise<unknown>;
}) {
  const client = useQueryClient();
  const act = useMutation({
    mutationFn: call,
    onSuccess: () => say(done),
    onError: complainUnlessUndone,
    onSettled: () => refresh(client, id),
  });
  const undone = act.error instanceof ApiError ? act.error.undone : null;
  return (
    <>
      {/* Not `disabled`, which would take the focus from it. */}
      <button
        type="button"
        className={className}
        aria-disabled={act.isPending}
        onClick={() => act.isPending || act.mutate(false)}
      >
        {verb}
      </button>
      {undone && (
        <Dialog title={`${verb} without what was undone?`} onClose={act.reset}>
          <div className="stack">
            <Undone id={id} undone={undone} />
            <div className="row end">
              <button type="button" onClick={act.reset}>
                Back
              </button>
              <button type="button" className="danger" onClick={() => act.isPending || act.mutate(true)}>
                Continue without it
              </button>
            </div>
          </div>
        </Dialog>
      )}
    </>
  );
}

export function RetryButton({
  id,
  taskId,
  done,
  className,
}: {
  id: string;
  taskId?: string;
  done: string;
  className?: string;
}) {
  const task = taskId === undefined ? {} : { task_id: taskId };
  return (
    <UndoneAwareButton
      id={id}
      verb="Retry"
      done={done}
      className={className ?? ""}
      call={(accept_undone) =>
        answered(
          api.POST("/api/workflows/{workflow_id}/retry", {
            params: { path: { workflow_id: id } },
            body: { ...task, accept_undone },
          }),
        )
      }
    />
  );
}

export function SkipDialog({
  id,
  taskId,
  isLate,
  onClose,
}: {
  id: string;
  taskId: string;
  isLate: boolean;
  onClose: () => void;
}) {
  return (
    <ReasonDialog
      title={`Skip task ${neutral(taskId)}?`}
      text="The tasks that depend on it can start. Other failed tasks stay failed."
      verb="Skip"
      done={`Task ${neutral(taskId)} skipped; the workflow continues.`}
      id={id}
      isLate={isLate}
      call={(reason, accept_undone) =>
        answered(
          api.POST("/api/workflows/{workflow_id}/skip", {
            params: { path: { workflow_id: id } },
            body: { task_id: taskId, reason: reason || null, accept_undone },
          }),
        )
      }
      onClose={onClose}
    />
  );
}

/** A copy to try something else with: paused, the original stays as it is. */
export function ForkButton({ id, taskId }: { id: string; taskId?: string }) {
  const [, go] = useLocation();
  const fork = useMutation({
    mutationFn: () =>
      answered(
        api.POST("/api/workflows/{workflow_id}/fork", {
          params: { path: { workflow_id: id } },
          body: { task_id: taskId ?? null },
        }),
      ),
    onSuccess: (copy) => {
      say("Forked: this is the copy, and it is paused.");
      go(`/workflows/${copy.id}`);
    },
    onError: complain,
  });
  return (
    <button type="button" disabled={fork.isPending} onClick={() => fork.mutate()}>
      {taskId ? "Fork from here" : "Fork"}
    </button>
  );
}

/** That it was undone is told where somebody can decide on it. */
function complainUnlessUndone(error: unknown): void {
  if (!(error instanceof ApiError && error.undone)) complain(error);
}

/** A pause is asked for at once and shows at once; where the server refuses, the page takes it back. */
function PauseDialog({
  progress,
  isLate,
  onClose,
}: {
  progress: WorkflowProgress;
  isLate: boolean;
  onClose: () => void;
}) {
  const [reason, setReason] = useState("");
  const [force, setForce] = useState("");
  const client = useQueryClient();
  const { id } = progress.workflow;
  const key = progressOf(id).queryKey;
  const pause = useMutation({
    mutationFn: () =>
      answered(
        api.POST("/api/workflows/{workflow_id}/pause", {
          params: { path: { workflow_id: id } },
          body: {
            reason: reason.trim() || null,
            force_after: force === "" ? null : Number(force),
            wait_seconds: 0,
          },
        }),
      ),
    onMutate: async () => {
      await client.cancelQueries({ queryKey: key });
      const before = client.getQueryData(key);
      client.setQueryData(key, (known) => known && withRequest(known, reason.trim() || null));
      onClose();
      return { before };
    },
    onSuccess: (answer) =>
      say(answer.status === "paused" ? "Paused." : "It pauses when the running task ends."),
    onError: (error, _, context) => {
      client.setQueryData(key, context?.before);
      complain(error);
    },
    onSettled: () => refresh(client, id),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    pause.mutate();
  };
  const limit = progress.workflow.options?.force_after ?? 300;
  return (
    <Dialog title="Pause this workflow" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <p className="muted">
          The running task finishes first; then a snapshot is taken. A task that takes longer than{" "}
          {force === "" ? limit : force} s is interrupted and runs again after resuming.
        </p>
        <label>
          <span>Reason</span>
          <textarea
            rows={3}
            maxLength={10_000}
            value={reason}
            placeholder="Shown when it is resumed: why now, what to look at"
            onChange={(event) => setReason(event.target.value)}
          />
        </label>
        <label>
          <span>Interrupt the running task after (seconds)</span>
          <input
            type="number"
            min={0}
            max={86_400}
            value={force}
            placeholder={String(limit)}
            onChange={(event) => setForce(event.target.value)}
          />
        </label>
        {isLate && <Late id={id} />}
        <div className="row end">
          <button type="button" onClick={onClose}>
            Back
          </button>
          <button type="submit" className="primary" disabled={isLate}>
            Pause
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function withRequest(progress: WorkflowProgress, reason: string | null): WorkflowProgress {
  const pause_request = {
    trigger: "pause" as const,
    reason,
    requested_at: new Date().toISOString(),
    force_after: null,
  };
  return { ...progress, workflow: { ...progress.workflow, pause_request } };
}

interface ReasonProperties {
  title: string;
  text: string;
  verb: string;
  done: string;
  id: string;
  isRequired?: boolean;
  /** Meanwhile it cannot be done any more. What was typed stays, to be read or copied. */
  isLate: boolean;
  call: (reason: string, accept_undone: boolean) => Promise<unknown>;
  onClose: () => void;
}

/** What cannot be taken back is not shown before the server did it. */
export function ReasonDialog({
  title,
  text,
  verb,
  done,
  id,
  isRequired,
  call,
  onClose,
  ...given
}: ReasonProperties) {
  const [reason, setReason] = useState("");
  const client = useQueryClient();
  const action = useMutation({
    mutationFn: (accept_undone: boolean) => call(reason.trim(), accept_undone),
    onSuccess: () => {
      say(done);
      onClose();
    },
    onError: complainUnlessUndone,
    onSettled: () => refresh(client, id),
  });
  const undone = action.error instanceof ApiError ? action.error.undone : null;
  const isLate = given.isLate && !action.isPending && !action.isSuccess; // else it was done here
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!action.isPending) action.mutate(Boolean(undone));
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <p className="muted">{text}</p>
        <label>
          <span>Reason</span>
          <textarea
            rows={2}
            maxLength={10_000}
            required={isRequired}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
        </label>
        {isLate && <Late id={id} />}
        {undone && !isLate && <Undone id={id} undone={undone} />}
        <div className="row end">
          <button type="button" onClick={onClose}>
            Back
          </button>
          <button type="submit" className="danger" disabled={isLate} aria-disabled={action.isPending}>
            {undone ? `${verb}, and continue without it` : verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Somebody else was faster: what came of it, in place of a dialog that vanishes. */
function Late({ id }: { id: string }) {
  const { data } = useQuery(progressOf(id));
  const workflow = data?.workflow;
  const isStopped = workflow?.status === "failed" || workflow?.status === "paused";
  return (
    <div className="notice warn" role="alert">
      <strong>This was decided elsewhere meanwhile.</strong>{" "}
      {workflow && <>The workflow is {words(workflow.status ?? "pending").toLowerCase()}.</>}{" "}
      {isStopped && workflow.pause_reason && <Foreign text={workflow.pause_reason} />} What you typed was not
      sent.
    </div>
  );
}
