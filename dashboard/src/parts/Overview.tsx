/** What is open on this machine by what it needs, and what agents were doing last: before any list. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { ApiError } from "../api/client";
import { newestSessions, openWork } from "../api/queries";
import type { AgentSession, WorkItem, WorkList } from "../api/types";
import { agentName, count, counted, folder, neutral } from "../lib/format";
import { taskPath } from "../lib/paths";
import { useParam } from "../lib/use-param";
import { Ago } from "./bits";
import { SessionCost, SessionFullness } from "./SessionUsage";
import { Failed } from "./states";

type State = WorkItem["state"];

/** In the order of how much they want of a person; shown in the colours that these mean elsewhere. */
const STATES: readonly (readonly [State, string, string])[] = [
  ["waiting", "Waiting for you", "blocked"],
  ["failed", "Failed", "failed"],
  ["running", "Running", "in_progress"],
  ["open", "Open", "paused"],
];
const AT_FIRST = 8;
/** Of each state. */
const AT_MOST = 100;

export function Overview() {
  return (
    <div className="overview">
      <OpenWork />
      <NewestSessions />
    </div>
  );
}

function OpenWork() {
  const [isWhole, setWhole] = useState(false);
  const { data, error, refetch, isPlaceholderData } = useQuery(openWork(isWhole ? AT_MOST : AT_FIRST));
  const [asked, setAsked] = useParam("state");
  const chosen = STATES.find(([state]) => state === asked)?.[0] ?? null;
  // Who is not let in is told so once, by the list below.
  if (error instanceof ApiError && error.status === 401) return null;
  if (error && !data) return <Failed error={error} retry={() => void refetch()} />;
  if (!data) return <div className="overview-space" aria-hidden="true" />;
  const items = data.items.filter((item) => chosen === null || item.state === chosen);
  const shown = isWhole ? items : items.slice(0, AT_FIRST);
  const counts = STATES.filter(([state]) => chosen === null || chosen === state).map(
    ([state]) => data.counts[state] ?? 0,
  );
  const total = sum(counts);
  const most = sum(counts.map((number) => Math.min(number, AT_MOST)));
  return (
    <section aria-label="Open work">
      <h2 className="hidden">Open work</h2>
      <Counts work={data} chosen={chosen} onChoose={(state) => setAsked(state ?? "")} />
      {data.items.length === 0 && <p className="muted calm">Nothing is open, and nothing waits for you.</p>}
      {shown.length > 0 && (
        <ul className="work">
          {shown.map((item) => (
            <WorkRow key={item.id} item={item} />
          ))}
        </ul>
      )}
      {total > AT_FIRST && (
        <button type="button" className="small more" onClick={() => setWhole(!isWhole)}>
          {isWhole ? "Show fewer" : `Show ${total > most ? "the newest" : "all"} ${count(most)}`}
        </button>
      )}
      {isWhole && !isPlaceholderData && total > shown.length && (
        <p className="muted aside">and {count(total - shown.length)} more in the list of workflows</p>
      )}
      {data.is_cut && (
        <p className="muted aside">
          What agents left without a plan is counted in the folders worked in last.{" "}
          <Link href="/sessions?everywhere=1">All agent sessions</Link>
        </p>
      )}
    </section>
  );
}

const sum = (numbers: readonly number[]) => numbers.reduce((before, number) => before + number, 0);

function Counts({
  work,
  chosen,
  onChoose,
}: {
  work: WorkList;
  chosen: State | null;
  onChoose: (state: State | null) => void;
}) {
  return (
    <fieldset className="counts">
      <legend className="hidden">Open work by state</legend>
      {STATES.map(([state, name, look]) => {
        const number = work.counts[state] ?? 0;
        return (
          <button
            key={state}
            type="button"
            className={`count-tile count-${number > 0 ? look : "none"}`}
            aria-pressed={chosen === state}
            disabled={number === 0 && chosen !== state}
            onClick={() => onChoose(chosen === state ? null : state)}
          >
            <span className="count-number">{count(number)}</span> {name}
          </button>
        );
      })}
    </fieldset>
  );
}

function WorkRow({ item }: { item: WorkItem }) {
  const look = STATES.find(([state]) => state === item.state);
  return (
    <li className={`work-item work-${item.state}`}>
      <span className={`status status-${look?.[2]}`}>{look?.[1]}</span>
      <div className="work-what">
        <Link className="clamped" href={hrefOf(item)}>
          {neutral(item.title)}
        </Link>
        <span className="clamped">{neutral(item.because)}</span>
        {item.left.length > 0 && (
          <ul className="work-left muted" aria-label="What is open">
            {item.left.map((line) => (
              <li key={line} className="clamped">
                {neutral(line)}
              </li>
            ))}
          </ul>
        )}
      </div>
      <div className="work-where muted">
        <span className="path clamped" title={neutral(item.worktree)}>
          {folder(item.worktree)}
          {item.branch && ` · ${neutral(item.branch)}`}
        </span>
        <span>
          {item.tasks_total > 0
            ? `${item.tasks_done}/${counted(item.tasks_total, "task")} · session ${item.sessions}`
            : counted(item.sessions, "session")}
          {" · "}
          <Ago at={item.updated_at} />
        </span>
        {item.state !== "running" && item.state !== "waiting" && (
          <code>holdfast resume {neutral(item.id)}</code>
        )}
      </div>
    </li>
  );
}

/** Straight to what has to be decided; else to what is left. */
function hrefOf(item: WorkItem): string {
  if (item.task_id && item.state !== "open") return taskPath(item.workflow_id, item.task_id);
  if (item.snapshot_id) return `/workflows/${item.workflow_id}/snapshots/${item.snapshot_id}`;
  return `/workflows/${item.workflow_id}`;
}

function NewestSessions() {
  const named = useQuery(newestSessions(false));
  const read = useQuery(newestSessions(true));
  const sessions = (read.data ?? named.data)?.sessions ?? [];
  if (sessions.length === 0) return null;
  return (
    <section aria-label="Agent sessions">
      <div className="row spread">
        <h2>Agent sessions</h2>
        <Link href="/sessions?everywhere=1">All agent sessions</Link>
      </div>
      <table className="table cards framed listing newest-sessions">
        <thead>
          <tr>
            <th scope="col">Session</th>
            <th scope="col">Folder</th>
            <th scope="col">Context window</th>
            <th scope="col" className="number">
              Cost
            </th>
            <th scope="col">Changed</th>
          </tr>
        </thead>
        <tbody>
          {sessions.map((session) => (
            <SessionRow
              key={`${session.agent}-${session.session_id}`}
              session={session}
              isRead={read.data !== undefined || read.isError}
            />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function SessionRow({ session, isRead }: { session: AgentSession; isRead: boolean }) {
  const place = session.project ? `project=${encodeURIComponent(session.project)}&` : "";
  return (
    <tr>
      <td className="title">
        <Link
          className="clamped"
          href={`/sessions?${place}session=${encodeURIComponent(session.session_id)}`}
        >
          {neutral(session.title ?? session.session_id)}
        </Link>
        <span className="muted">{agentName(session.agent)}</span>
      </td>
      <td data-label="Folder" title={neutral(session.project ?? "")}>
        <span className="path clamped">{session.project ? folder(session.project) : "not recorded"}</span>
      </td>
      <td data-label="Context window">
        <SessionFullness usage={session.usage ?? null} isRead={isRead} />
      </td>
      <td data-label="Cost" className="number">
        <SessionCost usage={session.usage ?? null} isRead={isRead} />
      </td>
      <td data-label="Changed" className="nowrap">
        <Ago at={session.updated} />
      </td>
    </tr>
  );
}
