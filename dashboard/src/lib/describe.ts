/** An event in a line: what happened, and how much it matters. */
import { known, type WorkflowEvent } from "../api/types";
import { count, counted, duration, neutral, percent, words } from "./format";

export type Tone = "plain" | "good" | "bad" | "warn" | "info";

export interface Line {
  readonly title: string;
  readonly detail: string | null;
  readonly tone: Tone;
}

const line = (title: string, detail: string | null | undefined = null, tone: Tone = "plain"): Line => ({
  title: neutral(title),
  detail: detail ? neutral(detail) : null,
  tone,
});

const OUTCOMES = { completed: "good", failed: "bad", blocked: "warn", interrupted: "warn" } as const;

export const TRIGGERS: Record<string, string> = {
  pause: "a pause was requested",
  task_complete: "the configured number of tasks was completed",
  exhaustion: "the context window ran out",
  timeout: "the session reached its time limit",
  crash: "its process died",
  failure: "a task failed",
};

/** Of a claim: the process that has it, without the number of the claim. */
const holder = (claim: string) => claim.slice(0, Math.max(0, claim.lastIndexOf("#"))) || claim;

export function describe(event: WorkflowEvent): Line {
  const entry = known(event);
  switch (entry.type) {
    case "workflow_created":
      return line("Workflow created", `${entry.issue.id}: ${entry.issue.title}`);
    case "workflow_status_changed":
      return line(`Workflow is ${words(entry.status).toLowerCase()}`, entry.reason, statusTone(entry.status));
    case "session_taken":
      return entry.took_over_from
        ? line(
            "Session taken over",
            `by ${holder(entry.claim)}, from ${holder(entry.took_over_from)}`,
            "warn",
          )
        : line("Session started", `by ${holder(entry.claim)}`, "info");
    case "warned":
      return line("Warning", entry.text, "warn");
    case "task_started":
      return line(
        `Task ${entry.task_id} started`,
        (entry.attempt ?? 1) > 1 ? `attempt ${entry.attempt}` : null,
        "info",
      );
    case "task_finished": {
      const took = entry.seconds == null ? null : `in ${duration(entry.seconds)}`;
      const again = entry.retry_at ? "is retried" : null;
      const told = [took, again, entry.result].filter(Boolean).join(", ");
      return line(`Task ${entry.task_id} ${entry.outcome}`, told, OUTCOMES[entry.outcome]);
    }
    case "task_approved":
      return line(`Task ${entry.task_id} approved`, null, "good");
    case "task_skipped":
      return line(`Task ${entry.task_id} skipped`, entry.reason, "warn");
    case "agent_session_reported":
      return line(`${entry.agent} works on ${entry.task_id}`, entry.agent_session_id);
    case "work_committed":
      return line(`Work on ${entry.task_id} committed`, `${entry.commit.slice(0, 12)} on ${entry.ref}`);
    case "decision_recorded":
      return line(`Decided: ${entry.decision.description}`, entry.decision.rationale);
    case "error_recorded":
      return line(
        `${entry.error.error_type}: ${entry.error.error_message}`,
        words(entry.error.resolution),
        entry.error.resolution === "unresolved" ? "bad" : "plain",
      );
    case "feedback_recorded":
      return line(
        `${entry.feedback.reviewer_persona} ${entry.feedback.approved ? "approved" : "requested changes"}`,
        entry.feedback.comments.join(" · "),
      );
    case "tests_run": {
      const failing = entry.state.failing_tests?.length ?? 0;
      return failing
        ? line("Tests ran", `${counted(failing, "test")} failing`, "bad")
        : line("Tests ran", words(entry.state.phase), "good");
    }
    case "usage_reported": {
      const share = entry.usage.context_utilization;
      const told = share == null ? null : `context ${percent(share)} full`;
      return line(
        "Usage",
        [told, `${count(entry.usage.tokens_used ?? 0)} tokens`].filter(Boolean).join(", "),
      );
    }
    case "constraint_pinned":
      return line("Rule pinned", entry.text);
    case "todos_set": {
      const open = entry.todos.filter((todo) => todo.status !== "completed").length;
      return line("Task list recorded", `${open} of ${entry.todos.length} open`);
    }
    case "pause_requested":
      return line("Pause requested", entry.reason ?? TRIGGERS[entry.trigger], "warn");
    case "workflow_paused":
      return line(`Paused, session ${entry.session_number}`, entry.reason ?? TRIGGERS[entry.trigger], "warn");
    case "workflow_resumed":
      return line(`Resumed, session ${entry.session_number}`, entry.message, "info");
    case "handover_taken_up":
      return line("Handover resumed", entry.message, "info");
    case "snapshot_enriched":
      return line(
        "Snapshot enriched",
        `${counted(entry.decisions ?? 0, "decision")}, ${counted(entry.errors ?? 0, "error")}`,
      );
    case "snapshot_deleted":
      return line("Snapshot deleted", entry.snapshot_id);
    case "snapshot_imported":
      return line("Snapshot imported", entry.session_id);
    case "workflow_forked":
      return line(`Forked from ${entry.origin_id}`, entry.task_id ? `from task ${entry.task_id}` : null);
    case "workflow_moved":
      return line("Moved", entry.worktree);
    default:
      return line(words((event.entry as { type: string }).type));
  }
}

function statusTone(status: string): Tone {
  if (status === "completed") return "good";
  if (status === "failed") return "bad";
  return status === "blocked" || status === "cancelled" ? "warn" : "info";
}
