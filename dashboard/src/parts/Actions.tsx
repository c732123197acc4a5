/** What can be done with a workflow in its state, and how the server answered. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Link, useLocation } from "wouter";
import { answered, api } from "../api/client";
import { progressOf, refresh } from "../api/queries";
import type { WorkflowProgress } from "../api/types";
import { neutral } from "../lib/format";
import { Dialog } from "./bits";
import { complain, say } from "./toasts";

type Asking = "pause" | "cancel" | "skip" | null;

export function Actions({ progress }: { progress: WorkflowProgress }) {
  const [asking, setAsking] = useState<Asking>(null);
  const { workflow } = progress;
  const path = { params: { path: { workflow_id: workflow.id } } };
  const status = workflow.status ?? "pending";
  const isRunning = status === "in_progress" && !progress.abandoned;
  const canResume = status === "paused" || status === "failed" || progress.abandoned;
  const isOver = status === "completed" || status === "cancelled";
  const retry = useAction(workflow.id, "The failed task is retried.", () =>
    answered(api.POST("/api/workflows/{workflow_id}/retry", path)),
  );
  const [failed] = progress.failed_task_ids;
  if (isOver) {
    return (
      <div className="actions">
        <ForkButton id={workflow.id} />
      </div>
    );
  }
  return (
    <div className="actions">
      {isRunning && (
        <button
          type="button"
          className="primary"
          disabled={Boolean(workflow.pause_request)}
          onClick={() => setAsking("pause")}
        >
          {workflow.pause_request ? "Pausing…" : "Pause"}
        </button>
      )}
      {canResume && failed && (
        <>
          <button type="button" disabled={retry.isPending} onClick={() => retry.mutate("")}>
            Retry
          </button>
          <button type="button" onClick={() => setAsking("skip")}>
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
      <button type="button" onClick={() => setAsking("cancel")}>
        Cancel
      </button>
      {asking === "pause" && <PauseDialog progress={progress} onClose={() => setAsking(null)} />}
      {asking === "cancel" && (
        <ReasonDialog
          title="Cancel this workflow permanently?"
          text="A running task is stopped. A cancelled workflow cannot be resumed."
          verb="Cancel the workflow"
          done="Workflow cancelled."
          id={workflow.id}
          call={(reason) =>
            answered(
              api.POST("/api/workflows/{workflow_id}/cancel", { ...path, body: { reason: reason || null } }),
            )
          }
          onClose={() => setAsking(null)}
        />
      )}
      {asking === "skip" && failed && (
        <ReasonDialog
          title={`Skip task ${neutral(failed)}?`}
          text="The tasks that depend on it can start. Other failed tasks stay failed."
          verb="Skip"
          done={`Task ${neutral(failed)} skipped; the workflow continues.`}
          id={workflow.id}
          call={(reason) =>
            answered(
              api.POST("/api/workflows/{workflow_id}/skip", {
                ...path,
                body: { task_id: failed, reason: reason || null },
              }),
            )
          }
          onClose={() => setAsking(null)}
        />
      )}
    </div>
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

export function useAction<T>(id: string, done: string, call: (reason: string) => Promise<T>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: call,
    onSuccess: () => say(done),
    onError: complain,
    onSettled: () => refresh(client, id),
  });
}

/** A pause is asked for at once and shows at once; where the server refuses, the page takes it back. */
function PauseDialog({ progress, onClose }: { progress: WorkflowProgress; onClose: () => void }) {
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
        <div className="row end">
          <button type="button" onClick={onClose}>
            Back
          </button>
          <button type="submit" className="primary">
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
  call: (reason: string) => Promise<unknown>;
  onClose: () => void;
}

/** What cannot be taken back is not shown before the server did it. */
export function ReasonDialog({ title, text, verb, done, id, isRequired, call, onClose }: ReasonProperties) {
  const [reason, setReason] = useState("");
  const action = useAction(id, done, call);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    action.mutate(reason.trim(), { onSuccess: onClose });
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
        <div className="row end">
          <button type="button" onClick={onClose}>
            Back
          </button>
          <button type="submit" className="danger" disabled={action.isPending}>
            {verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
