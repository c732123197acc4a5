/** A task that waits for a person: what will run if it is approved, in the plan's own words. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client";
import { approvalOf } from "../api/queries";
import type { Approval as Asked } from "../api/types";
import { counted, dollars, neutral } from "../lib/format";
import { ReasonDialog, UndoneAwareButton } from "./Actions";
import { Facts, Foreign, ForeignText, Section, Status } from "./bits";
import { FileChanges } from "./FileChanges";
import { Shown } from "./states";

/**
 * The task that waits, if any does. The dialog to reject it stands outside of the card: what is typed there
 * stays when somebody else decides meanwhile. Afterwards this place says so, and keeps the focus.
 */
export function Approval({ id, taskId }: { id: string; taskId: string | null }) {
  const [rejected, setRejected] = useState<string | null>(null);
  const [hasAsked, setAsked] = useState(false);
  if (taskId !== null && !hasAsked) setAsked(true);
  if (!hasAsked) return null;
  return (
    <div>
      {taskId === null ? (
        <p className="muted">No task waits for your approval any more.</p>
      ) : (
        <ApprovalCard key={taskId} id={id} taskId={taskId} onReject={() => setRejected(taskId)} />
      )}
      {rejected !== null && (
        <ReasonDialog
          title="Reject the waiting task?"
          text="The workflow fails and shows your reason; resuming it asks for approval again."
          verb="Reject"
          done="Rejected."
          id={id}
          isRequired
          isLate={rejected !== taskId}
          call={(reason) =>
            answered(
              api.POST("/api/workflows/{workflow_id}/reject", {
                params: { path: { workflow_id: id } },
                body: { task_id: rejected, reason },
              }),
            )
          }
          onClose={() => setRejected(null)}
        />
      )}
    </div>
  );
}

function ApprovalCard({ id, taskId, onReject }: { id: string; taskId: string; onReject: () => void }) {
  const approval = useQuery(approvalOf(id, taskId));
  return (
    <Section title="A task waits for your approval">
      <p className="muted" role="status">
        The workflow continues when you have decided. What stands in a frame was written by the plan or
        printed by its tasks.
      </p>
      <Shown query={approval} what="what will run">
        {(data) => (
          <div className="stack approval">
            <WhatRuns id={id} approval={data} />
            <div className="row">
              <UndoneAwareButton
                id={id}
                verb="Approve"
                className="primary"
                done="Approved; the workflow continues."
                call={(accept_undone) =>
                  answered(
                    api.POST("/api/workflows/{workflow_id}/approve", {
                      params: { path: { workflow_id: id } },
                      body: { task_id: data.task.id, accept_undone },
                    }),
                  )
                }
              />
              <button type="button" onClick={onReject}>
                Reject…
              </button>
            </div>
          </div>
        )}
      </Shown>
    </Section>
  );
}

function WhatRuns({ id, approval }: { id: string; approval: Asked }) {
  const { task, driver, worktree, after, after_left_out } = approval;
  const isShell = driver === "shell";
  return (
    <div className="stack">
      <Facts
        facts={[
          ["Task", <Foreign key="id" text={task.id} />],
          ["Description", task.description !== task.id && <Foreign key="text" text={task.description} />],
          ["Driver", <Foreign key="driver" text={driver} />],
          ["Folder", <Foreign key="folder" text={worktree} />],
          ["Depends on", after.length === 0 ? "nothing" : counted(after.length + after_left_out, "task")],
          ["Cost so far", approval.cost_usd == null ? null : dollars(approval.cost_usd)],
        ]}
      />
      <ForeignText
        title={isShell ? "Command" : "Prompt"}
        text={(isShell ? task.run : task.prompt || task.run) ?? ""}
        isCode={isShell}
      />
      {isShell && <Risk risk={approval.risk} isHidden={approval.hidden_in.includes("run")} />}
      {!isShell && approval.hidden_in.some((name) => name !== "until") && <Hidden what="prompt" />}
      {task.until && (
        <>
          <ForeignText title="Repeated until this command succeeds" text={task.until} isCode />
          <Risk risk={approval.until_risk} isHidden={approval.hidden_in.includes("until")} />
        </>
      )}
      {after.map((one) => (
        <div key={one.task_id} className="stack">
          <p>
            After <Foreign text={one.task_id} /> <Status status={one.status} />{" "}
            {one.result && !one.printed && <Foreign text={one.result} />}
          </p>
          {one.printed ? (
            <ForeignText title="Printed last" text={one.printed} />
          ) : (
            <p className="muted">
              {one.printed === ""
                ? "It printed nothing."
                : "No output of it is kept on the server's machine."}
            </p>
          )}
        </div>
      ))}
      <Changed id={id} approval={approval} />
      {after_left_out > 0 && <p className="muted">and {counted(after_left_out, "more task")}</p>}
    </div>
  );
}

function Risk({ risk, isHidden }: { risk: string | null; isHidden: boolean }) {
  return (
    <>
      {isHidden && <Hidden what="command" />}
      {risk ? (
        <p className="notice bad">
          <strong>Dangerous: {neutral(risk)}.</strong> An agent would not be allowed to run this.
        </p>
      ) : (
        <p className="muted">
          No known danger was recognised in the command. That is no promise that there is none.
        </p>
      )}
    </>
  );
}

function Hidden({ what }: { what: string }) {
  return (
    <p className="notice warn">
      <strong>A part of this {what} cannot be seen here:</strong> it looks like a secret. Read the file of the
      plan before you approve it.
    </p>
  );
}

function Changed({ id, approval }: { id: string; approval: Asked }) {
  const { changes, changes_left_out, changes_unknown, worktree } = approval;
  if (changes_unknown) {
    return <p className="muted">What was changed in files cannot be shown: {neutral(changes_unknown)}.</p>;
  }
  if (changes.length === 0) return <p className="muted">No change of files is recorded so far.</p>;
  return (
    <>
      <h3>Changed in files so far</h3>
      <FileChanges id={id} worktree={worktree} changes={changes} />
      {changes_left_out > 0 && <p className="muted">and {counted(changes_left_out, "older change")}</p>}
    </>
  );
}
