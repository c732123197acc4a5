import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link, useLocation } from "wouter";
import { answered, api } from "../api/client";
import { contextOf, journalOf, progressOf, refresh, snapshot, snapshotsOf } from "../api/queries";
import type { Decision, ErrorRecord, Journal, SessionSnapshot } from "../api/types";
import { TRIGGERS } from "../lib/describe";
import { bytes, count, counted, dollars, duration, moment, percent, shortId, words } from "../lib/format";
import { useTitle } from "../lib/use-title";
import { Dialog, Facts, Section } from "../parts/bits";
import { ContextView, CostLine } from "../parts/ContextView";
import { Crumbs } from "../parts/Crumbs";
import { Drift } from "../parts/Drift";
import { EvidenceList } from "../parts/EvidenceList";
import { Shown } from "../parts/states";
import { TaskTable } from "../parts/TaskTable";
import { complain, say } from "../parts/toasts";
import "../styles/details.css";

const MOST_FILES = 200;

export default function SnapshotPage({ id, snapshotId }: { id: string; snapshotId: string }) {
  const query = useQuery(snapshot(id, snapshotId));
  useTitle(query.data ? `Snapshot of session ${query.data.session_number}` : "Snapshot");
  return (
    <Shown query={query} what="snapshot">
      {(data) => (
        <div className="stack">
          <Top snapshot={data} />
          <div className="columns">
            <div className="stack">
              <Overview snapshot={data} />
              <Git snapshot={data} />
              <Tests snapshot={data} />
              <Findings snapshot={data} />
              <JournalSection snapshot={data} />
            </div>
            <div className="stack">
              <Section title="Tasks at the pause" count={data.task_dag?.tasks?.length ?? 0}>
                <TaskTable tasks={data.task_dag?.tasks ?? []} />
              </Section>
              <ContextSection id={id} snapshotId={snapshotId} />
            </div>
          </div>
        </div>
      )}
    </Shown>
  );
}

function Top({ snapshot: shown }: { snapshot: SessionSnapshot }) {
  const { workflow_id: id } = shown;
  const all = useQuery(snapshotsOf(id));
  const list = all.data?.snapshots ?? [];
  const at = list.findIndex((one) => one.id === shown.id);
  const before = at > 0 ? list[at - 1] : undefined;
  const [asking, setAsking] = useState(false);
  const progress = useQuery(progressOf(id)).data;
  const status = progress?.workflow.status;
  const canResume = status === "paused" || status === "failed" || progress?.abandoned;
  return (
    <>
      <Crumbs id={id} parts={[["Snapshots", `/workflows/${id}/snapshots`]]} />
      <div className="head">
        <div className="head-title">
          <h1>Snapshot of session {shown.session_number}</h1>
          <p className="muted">
            {shortId(shown.id)} · {moment(shown.created_at)} ·{" "}
            {TRIGGERS[shown.trigger] ?? words(shown.trigger)}
          </p>
        </div>
        <div className="actions">
          {canResume && (
            <Link className="button" href={`/workflows/${id}/resume?from=${shown.id}`}>
              Resume from here…
            </Link>
          )}
          {before && (
            <Link className="button" href={`/workflows/${id}/diff/${before.id}/${shown.id}`}>
              Compare with session {before.session_number}
            </Link>
          )}
          <button type="button" onClick={() => setAsking(true)}>
            Delete
          </button>
        </div>
      </div>
      {shown.pause_reason && <p className="notice">{shown.pause_reason}</p>}
      {asking && <DeleteDialog snapshot={shown} onClose={() => setAsking(false)} />}
    </>
  );
}

function DeleteDialog({ snapshot: shown, onClose }: { snapshot: SessionSnapshot; onClose: () => void }) {
  const [, go] = useLocation();
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: () =>
      answered(
        api.DELETE("/api/workflows/{workflow_id}/snapshots/{snapshot_id}", {
          params: { path: { workflow_id: shown.workflow_id, snapshot_id: shown.id } },
        }),
      ),
    onSuccess: () => {
      say("Snapshot deleted.");
      go(`/workflows/${shown.workflow_id}/snapshots`);
      refresh(client, shown.workflow_id);
    },
    onError: (error) => {
      complain(error);
      onClose();
    },
  });
  return (
    <Dialog title="Delete this snapshot?" onClose={onClose}>
      <p className="muted">
        The snapshot and its files are deleted permanently. It can no longer be resumed from.
      </p>
      <div className="row end">
        <button type="button" onClick={onClose}>
          Back
        </button>
        <button type="button" className="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
          Delete
        </button>
      </div>
    </Dialog>
  );
}

function Overview({ snapshot: shown }: { snapshot: SessionSnapshot }) {
  const usage = shown.usage;
  return (
    <Section title="Overview">
      <Facts
        facts={[
          ["Session", shown.session_id],
          ["Current task", shown.current_task_id],
          ["Next task", shown.next_task_id],
          ["Context used", usage?.context_utilization == null ? null : percent(usage.context_utilization)],
          ["Tokens", usage?.tokens_used ? count(usage.tokens_used) : null],
          ["Cost", usage?.cost_usd == null ? null : dollars(usage.cost_usd)],
          ["Ran for", usage?.session_duration_seconds ? duration(usage.session_duration_seconds) : null],
          [
            "Agent",
            shown.agent_session && `${shown.agent_session.agent}, ${shown.agent_session.agent_session_id}`,
          ],
        ]}
      />
      {(shown.constraints?.length ?? 0) > 0 && (
        <>
          <h3>Standing rules</h3>
          <ul>
            {shown.constraints?.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </>
      )}
    </Section>
  );
}

function Git({ snapshot: shown }: { snapshot: SessionSnapshot }) {
  const git = shown.git_state;
  if (!git) return null;
  const files = git.files_modified;
  return (
    <Section title="Git">
      <Facts
        facts={[
          ["Branch", git.branch ?? "none (detached)"],
          ["Commit", git.commit_at_snapshot && <code>{git.commit_at_snapshot.slice(0, 12)}</code>],
          [
            "Started at",
            git.commit_at_workflow_start && <code>{git.commit_at_workflow_start.slice(0, 12)}</code>,
          ],
          ["Uncommitted", git.has_uncommitted_changes ? (git.uncommitted_summary ?? "yes") : "nothing"],
          ["In progress", git.operation],
          [
            "Upstream",
            git.upstream && `${git.upstream} (${git.ahead ?? 0} ahead, ${git.behind ?? 0} behind)`,
          ],
        ]}
      />
      {files.length > 0 && (
        <details>
          <summary>{counted(files.length, "changed path")}</summary>
          <ul className="paths">
            {files.slice(0, MOST_FILES).map((path) => (
              <li key={path}>
                <code>{path}</code>
                <FileSize snapshot={shown} path={path} />
              </li>
            ))}
          </ul>
          {files.length > MOST_FILES && <p className="muted">and {count(files.length - MOST_FILES)} more</p>}
        </details>
      )}
    </Section>
  );
}

function FileSize({ snapshot: shown, path }: { snapshot: SessionSnapshot; path: string }) {
  const found = shown.files?.find((file) => file.path === path);
  if (!found) return null;
  return <span className="muted"> {found.hash === "absent" ? "deleted" : bytes(found.size)}</span>;
}

function Tests({ snapshot: shown }: { snapshot: SessionSnapshot }) {
  const tests = shown.test_state;
  if (!tests) return null;
  return (
    <Section title="Tests">
      <Facts
        facts={[
          ["Phase", words(tests.phase)],
          ["Command", tests.last_test_command && <code>{tests.last_test_command}</code>],
          ["Summary", tests.last_test_output_summary],
          ["Failing", tests.failing_tests?.join(", ")],
          ["Expected to fail", tests.expected_failures?.join(", ")],
        ]}
      />
    </Section>
  );
}

function Findings({ snapshot: shown }: { snapshot: SessionSnapshot }) {
  const decisions = shown.decisions ?? [];
  const errors = shown.errors ?? [];
  const feedback = shown.reviewer_feedback ?? [];
  return (
    <>
      <Section title="Decisions" count={decisions.length}>
        {decisions.length === 0 && <p className="muted">None were found.</p>}
        <ul className="findings">
          {decisions.map((one) => (
            <DecisionItem key={one.id} one={one}>
              <Grounds id={shown.workflow_id} one={one} />
            </DecisionItem>
          ))}
        </ul>
      </Section>
      <Section title="Errors" count={errors.length}>
        {errors.length === 0 && <p className="muted">None were found.</p>}
        <ul className="findings">
          {errors.map((one) => (
            <ErrorItem key={one.id} one={one}>
              <Grounds id={shown.workflow_id} one={one} />
            </ErrorItem>
          ))}
        </ul>
      </Section>
      {feedback.length > 0 && (
        <Section title="Reviews" count={feedback.length}>
          <ul className="findings">
            {feedback.map((one) => (
              <li key={one.review_id}>
                <strong>
                  {one.reviewer_persona} {one.approved ? "approved" : "requested changes"}
                </strong>
                <span className="muted"> {one.addressed ? "addressed" : "open"}</span>
                {one.comments.map((comment) => (
                  <p key={comment}>{comment}</p>
                ))}
              </li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

/** The messages it rests on, and the moment of it in its session. */
function Grounds({ id, one }: { id: string; one: Decision | ErrorRecord }) {
  return (
    <>
      <EvidenceList id={id} evidence={one.evidence ?? []} />
      <Link href={`/workflows/${id}/sessions?at=${encodeURIComponent(one.timestamp)}`}>In the replay</Link>
    </>
  );
}

export function DecisionItem({ one, children }: { one: Decision; children?: ReactNode }) {
  return (
    <li>
      <span className="tag">{words(one.decision_type)}</span> <strong>{one.description}</strong>
      {one.rationale && <p>{one.rationale}</p>}
      {(one.alternatives_considered?.length ?? 0) > 0 && (
        <p className="muted">Instead of: {one.alternatives_considered?.join("; ")}</p>
      )}
      {children}
    </li>
  );
}

export function ErrorItem({ one, children }: { one: ErrorRecord; children?: ReactNode }) {
  return (
    <li>
      <span className={`tag tag-${one.resolution}`}>{words(one.resolution)}</span>{" "}
      <strong>{one.error_type}</strong>
      <p>{one.error_message}</p>
      {one.resolution_notes && <p className="muted">{one.resolution_notes}</p>}
      {children}
    </li>
  );
}

function JournalSection({ snapshot: shown }: { snapshot: SessionSnapshot }) {
  const query = useQuery(journalOf(shown.workflow_id, shown.id));
  const summary = shown.incremental_pause;
  return (
    <Shown query={query} what="journal">
      {(journal) => (
        <Section title="Wind-down journal" count={journal.actions.length}>
          {summary && (
            <p className="muted">
              {counted(summary.action_count, "action")} in {duration(summary.duration_seconds)}, context from{" "}
              {summary.context_range.map(percent).join(" to ")}
            </p>
          )}
          <JournalLines journal={journal} />
        </Section>
      )}
    </Shown>
  );
}

const text = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function JournalLines({ journal }: { journal: Journal }) {
  const { actions, turns, commands } = journal;
  if (actions.length + turns.length + commands.length === 0) {
    return <p className="muted">This session wrote none: it was paused between two tasks.</p>;
  }
  return (
    <>
      {journal.truncated && <p className="muted">Only the newest actions are shown.</p>}
      <ol className="journal">
        {actions.map((action, index) => (
          <li key={index}>
            <span className="tag">{words(text(action.type ?? "action"))}</span>
            {action.timestamp ? <time className="muted">{moment(text(action.timestamp))}</time> : null}
            {typeof action.context_percentage === "number" && (
              <span className="muted">{percent(action.context_percentage)}</span>
            )}
            {action.data ? <code>{text(action.data)}</code> : null}
          </li>
        ))}
      </ol>
      {turns.length > 0 && (
        <details>
          <summary>What was said ({count(turns.length)})</summary>
          <ol className="journal">
            {turns.map((turn, index) => (
              <li key={index}>
                <p>{text(turn.said)}</p>
                {turn.reported ? <p className="muted">{text(turn.reported)}</p> : null}
              </li>
            ))}
          </ol>
        </details>
      )}
      {commands.length > 0 && (
        <details>
          <summary>What was run ({count(commands.length)})</summary>
          <ol className="journal">
            {commands.map((command, index) => (
              <li key={index}>
                <code>{text(command.command)}</code>
                <span className="muted">
                  {text(command.runs)} times, {text(command.failures)} failed
                </span>
              </li>
            ))}
          </ol>
        </details>
      )}
    </>
  );
}

function ContextSection({ id, snapshotId }: { id: string; snapshotId: string }) {
  const query = useQuery(contextOf(id, snapshotId));
  return (
    <Shown query={query} what="context">
      {(answer) => (
        <>
          <Drift answer={answer} />
          <p className="muted">
            <CostLine cost={answer.cost} />
          </p>
          <ContextView answer={answer} />
        </>
      )}
    </Shown>
  );
}
