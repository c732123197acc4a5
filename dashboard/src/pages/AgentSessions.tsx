import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSearchParams } from "wouter";
import { agentSessions, projects, sessionContext } from "../api/queries";
import type { AgentSession, AgentSessionUsage } from "../api/types";
import { agentName, bytes, counted, folder, neutral } from "../lib/format";
import { useTitle } from "../lib/use-title";
import { Ago } from "../parts/bits";
import { ContextView, CostLine } from "../parts/ContextView";
import { SessionCost, SessionFullness } from "../parts/SessionUsage";
import { Empty, Failed, Loading, Shown } from "../parts/states";
import "../styles/details.css";

export default function AgentSessions() {
  useTitle("Agent sessions");
  const [params, setParams] = useSearchParams();
  const project = params.get("project");
  const everywhere = project === null && params.has("everywhere");
  const known = useQuery(projects);
  const query = useInfiniteQuery(agentSessions(project, everywhere, false));
  const read = useInfiniteQuery(agentSessions(project, everywhere, true));
  const usages = new Map(
    read.data?.pages.flatMap((page) => page.sessions).map((one) => [nameOf(one), one.usage ?? null]),
  );
  const named = params.get("session");
  const [toggled, setToggled] = useState<string | null>(null);
  const found = query.data?.pages.flatMap((page) => page.sessions) ?? [];
  const first = query.data?.pages[0];
  return (
    <div className="stack">
      <div className="head">
        <div className="head-title">
          <h1>Agent sessions</h1>
          <p className="muted">
            Sessions of Claude Code, Codex, Gemini CLI and OpenCode on this machine. Any of them can be
            continued in another session.
          </p>
        </div>
        <label className="inline">
          <span>Project</span>
          <select
            value={everywhere ? EVERYWHERE : (project ?? "")}
            onChange={({ target: { value } }) =>
              setParams(value === EVERYWHERE ? { everywhere: "1" } : value ? { project: value } : {}, {
                replace: true,
              })
            }
          >
            <option value="">the server's project</option>
            <option value={EVERYWHERE}>all projects</option>
            {known.data?.projects.map((one) => (
              <option key={one} value={one}>
                {neutral(one)}
              </option>
            ))}
          </select>
        </label>
      </div>
      {query.isPending && <Loading what="sessions" />}
      {query.isError && <Failed error={query.error} retry={() => void query.refetch()} />}
      {first && found.length === 0 && (
        <Empty title={everywhere ? "No agent sessions." : "No agent sessions in this project."}>
          {first.project && (
            <p>
              Searched in <code>{neutral(first.project)}</code>.
            </p>
          )}
        </Empty>
      )}
      {found.length > 0 && (
        <ul className="session-list">
          {found.map((session) => {
            const name = nameOf(session);
            return (
              <SessionItem
                key={name}
                session={session}
                usage={usages.get(name) ?? null}
                isRead={usages.has(name) || read.isError}
                project={everywhere ? (session.project ?? null) : project}
                isOpen={(toggled ?? named) === session.session_id}
                onToggle={() =>
                  setToggled((toggled ?? named) === session.session_id ? "" : session.session_id)
                }
              />
            );
          })}
        </ul>
      )}
      {first && first.skipped > 0 && (
        <p className="muted">{counted(first.skipped, "file")} could not be read and were skipped.</p>
      )}
      {query.hasNextPage && (
        <button
          type="button"
          className="more"
          onClick={() => {
            void query.fetchNextPage();
            void read.fetchNextPage();
          }}
        >
          Show more
        </button>
      )}
    </div>
  );
}

const EVERYWHERE = "\u0000"; // no folder is called that

function nameOf(session: AgentSession): string {
  return `${session.agent}-${session.session_id}`;
}

function SessionItem({
  session,
  usage,
  isRead,
  project,
  isOpen,
  onToggle,
}: {
  session: AgentSession;
  usage: AgentSessionUsage | null;
  isRead: boolean;
  project: string | null;
  isOpen: boolean;
  onToggle: () => void;
}) {
  return (
    <li className="card">
      <div className="row spread wrap">
        <div className="session-title">
          <span className="tag">{agentName(session.agent)}</span>{" "}
          <strong>{neutral(session.title ?? session.session_id)}</strong>
          <p className="muted">
            <code>{neutral(session.session_id)}</code> · changed <Ago at={session.updated} />
            {session.size != null && ` · ${bytes(session.size)}`}
            {session.project && ` · ${folder(session.project)}`}
          </p>
        </div>
        <div className="session-usage">
          <SessionFullness usage={usage} isRead={isRead} />
          <SessionCost usage={usage} isRead={isRead} />
        </div>
        <button type="button" aria-expanded={isOpen} onClick={onToggle}>
          {isOpen ? "Hide context" : "Context"}
        </button>
      </div>
      {isOpen && <SessionContext session={session} project={project} />}
    </li>
  );
}

function SessionContext({ session, project }: { session: AgentSession; project: string | null }) {
  const query = useQuery(sessionContext(session.session_id, project));
  return (
    <Shown query={query} what="context">
      {(answer) => (
        <div className="stack">
          <p className="muted">
            <CostLine cost={answer.cost} />
          </p>
          <ContextView answer={answer} />
        </div>
      )}
    </Shown>
  );
}
