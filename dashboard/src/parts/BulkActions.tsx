/** The same thing done to several workflows: each by itself, and who refused is said. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client";
import { keys } from "../api/queries";
import type { Workflow } from "../api/types";
import { counted, neutral } from "../lib/format";
import { Dialog } from "./bits";
import { driftFound } from "./Drift";
import { say } from "./toasts";

const of = (workflow_id: string) => ({ params: { path: { workflow_id } } });

const VERBS = {
  Pause: {
    done: "asked to pause",
    can: (status: string) => status === "in_progress",
    call: (id: string): Promise<unknown> =>
      answered(api.POST("/api/workflows/{workflow_id}/pause", { ...of(id), body: { wait_seconds: 0 } })),
  },
  Resume: {
    done: "resumed",
    can: (status: string) => status === "paused" || status === "failed",
    call: async (id: string): Promise<string | null> =>
      driftFound(
        await answered(
          api.POST("/api/workflows/{workflow_id}/resume", { ...of(id), body: { strict: false } }),
        ),
      ),
  },
  Retry: {
    done: "retried",
    can: (status: string) => status === "failed",
    call: (id: string): Promise<unknown> => answered(api.POST("/api/workflows/{workflow_id}/retry", of(id))),
  },
  Cancel: {
    done: "cancelled",
    can: (status: string) => status !== "completed" && status !== "cancelled",
    call: (id: string): Promise<unknown> => answered(api.POST("/api/workflows/{workflow_id}/cancel", of(id))),
  },
};
type Verb = keyof typeof VERBS;

export default function BulkActions({
  chosen,
  onClear,
}: {
  chosen: readonly Workflow[];
  onClear: () => void;
}) {
  const [asking, setAsking] = useState<Verb | null>(null);
  const client = useQueryClient();
  const act = useMutation({
    mutationFn: async (verb: Verb) => {
      const { call, can, done } = VERBS[verb];
      const fit = chosen.filter((one) => can(one.status ?? "pending"));
      const ended = await Promise.allSettled(fit.map((one) => call(one.id)));
      const refused = ended.flatMap((one, at) =>
        one.status === "rejected" ? [`${neutral(fit[at]?.issue.id ?? "")}: ${told(one.reason)}`] : [],
      );
      const changed = ended.flatMap((one, at) =>
        one.status === "fulfilled" && typeof one.value === "string"
          ? [`${neutral(fit[at]?.issue.id ?? "")}: ${neutral(one.value)}`]
          : [],
      );
      return { done, worked: fit.length - refused.length, refused, changed };
    },
    onSuccess: ({ done, worked, refused, changed }) => {
      if (worked > 0) {
        const tone = changed.length > 0 ? "bad" : "good";
        say(`${counted(worked, "workflow")} ${done}.`, tone, changed.slice(0, 5).join("; ") || null);
      }
      if (refused.length > 0) {
        say(`${counted(refused.length, "workflow")} refused.`, "bad", refused.slice(0, 5).join("; "));
      }
      onClear();
    },
    onSettled: () => {
      setAsking(null);
      void client.invalidateQueries({ queryKey: keys.lists });
    },
  });
  const fitting = (verb: Verb) => chosen.filter((one) => VERBS[verb].can(one.status ?? "pending")).length;
  return (
    <section className="bulk row wrap" aria-label="Selected workflows">
      <strong>{counted(chosen.length, "workflow")} selected</strong>
      {(Object.keys(VERBS) as Verb[]).map((verb) => (
        <button
          key={verb}
          type="button"
          className="small"
          disabled={act.isPending || fitting(verb) === 0}
          onClick={() => (verb === "Cancel" ? setAsking(verb) : act.mutate(verb))}
        >
          {verb} {fitting(verb) > 0 && <span className="count">{fitting(verb)}</span>}
        </button>
      ))}
      <button type="button" className="small quiet" onClick={onClear}>
        Clear
      </button>
      {asking && (
        <Dialog
          title={`Cancel ${counted(fitting(asking), "workflow")} permanently?`}
          onClose={() => setAsking(null)}
        >
          <div className="stack">
            <p className="muted">Running tasks are stopped. Cancelled workflows cannot be resumed.</p>
            <div className="row end">
              <button type="button" onClick={() => setAsking(null)}>
                Back
              </button>
              <button
                type="button"
                className="danger"
                disabled={act.isPending}
                onClick={() => act.mutate(asking)}
              >
                Cancel them
              </button>
            </div>
          </div>
        </Dialog>
      )}
    </section>
  );
}

function told(reason: unknown): string {
  return reason instanceof Error ? reason.message : "refused";
}
