import { useMutation, useQuery } from "@tanstack/react-query";
import { answered, api } from "../api/client";
import { health, serverSettings, stats, workflowStats } from "../api/queries";
import { forget } from "../api/token";
import type { ProjectStats, WorkflowStats } from "../api/types";
import { count, duration, percent, words } from "../lib/format";
import { useTitle } from "../lib/use-title";
import { Facts, Section, Wide } from "../parts/bits";
import { Shown } from "../parts/states";
import { complain } from "../parts/toasts";
import "../styles/details.css";

export default function ServerPage() {
  useTitle("Server");
  const well = useQuery({ ...health, refetchInterval: 5_000, retry: false });
  const settings = useQuery(serverSettings);
  const recorded = useQuery(stats);
  const experience = useQuery(workflowStats);
  return (
    <div className="stack">
      <h1>Server</h1>
      <div className="columns">
        <Section title="Health">
          <Shown query={well} what="health">
            {(data) => (
              <Facts
                facts={[
                  ["Status", data.status === "ok" ? "well" : data.status],
                  ["Version", data.version],
                  ["Database", <code key="db">{data.database}</code>],
                  [
                    "Workers",
                    data.workers === 0 ? "none; one starts when work is queued" : count(data.workers),
                  ],
                  ["Newest event", count(data.seq)],
                  ["Open pages", count(data.listeners)],
                ]}
              />
            )}
          </Shown>
        </Section>
        <Section title="Settings">
          <Shown query={settings} what="settings">
            {(data) => (
              <Facts
                facts={[
                  ["Project", <code key="project">{data.project}</code>],
                  ["User data", <code key="home">{data.home}</code>],
                  ["Model", data.model ?? "none set"],
                  [
                    "Context window",
                    data.context_window == null ? "the model's own" : count(data.context_window),
                  ],
                  [
                    "Levels",
                    Object.entries(data.levels)
                      .map(([name, share]) => `${words(name).toLowerCase()} ${percent(share as number)}`)
                      .join(", "),
                  ],
                  ["When exhausted", words(data.on_exhaustion)],
                  ["Compress after", `${data.compress_after_days} days`],
                ]}
              />
            )}
          </Shown>
        </Section>
        <Section title="This browser">
          <p className="muted">
            It keeps a token of its own for this address, valid for 30 days. Logging out ends the token; a new
            link lets the browser in again: run <code>holdfast serve --link</code>.
          </p>
          <p className="aside">
            <LogOut />
          </p>
        </Section>
        <Section title="Task statistics">
          <Shown query={experience} what="statistics">
            {(data) => <Experience data={data} />}
          </Shown>
        </Section>
        <Section title="Recorded actions">
          <Shown query={recorded} what="statistics">
            {(data) => <Recorded data={data} />}
          </Shown>
        </Section>
      </div>
    </div>
  );
}

/** A new page forgets all that was shown, and closes the connection for events. */
function LogOut() {
  const leave = useMutation({
    mutationFn: () => answered(api.POST("/api/logout", {})),
    onSuccess: () => {
      forget();
      location.assign("/");
    },
    onError: complain,
  });
  return (
    <button type="button" disabled={leave.isPending} onClick={() => leave.mutate()}>
      Log out
    </button>
  );
}

function Experience({ data }: { data: WorkflowStats }) {
  const pauses = Object.entries(data.pauses).map(([trigger, number]) => `${words(trigger)} ${count(number)}`);
  if (data.drivers.length === 0) return <p className="muted">No task has been finished yet.</p>;
  return (
    <>
      <Wide label="Tasks by driver">
        <table className="table dense">
          <thead>
            <tr>
              <th scope="col">Driver</th>
              <th scope="col" className="number">
                Tasks
              </th>
              <th scope="col" className="number">
                Failed
              </th>
              <th scope="col" className="number">
                Median time
              </th>
              <th scope="col" className="number">
                Median context
              </th>
            </tr>
          </thead>
          <tbody>
            {data.drivers.map((one) => (
              <tr key={one.driver}>
                <th scope="row">{one.driver}</th>
                <td className="number">{count(one.tasks)}</td>
                <td className="number">{count(one.failed)}</td>
                <td className="number">{duration(one.seconds_median)}</td>
                <td className="number">{one.share_median == null ? "–" : percent(one.share_median)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
      {pauses.length > 0 && <p className="muted">Sessions ended by: {pauses.join(", ")}.</p>}
      <p className="muted aside">
        Of all workflows, the last {count(data.newest)} tasks and the last {count(data.newest)} sessions are
        counted.
      </p>
    </>
  );
}

function Recorded({ data }: { data: ProjectStats }) {
  if (data.actions === 0) return <p className="muted">No wind-down has been recorded in this project yet.</p>;
  const largest = (counts: Record<string, number>) =>
    Object.entries(counts)
      .sort(([, one], [, other]) => other - one)
      .slice(0, 8)
      .map(([name, number]) => `${words(name)} ${count(number)}`)
      .join(", ");
  return (
    <Facts
      facts={[
        ["Journals", count(data.journals)],
        ["Actions", count(data.actions)],
        ["By kind", largest(data.by_type)],
        ["By tool", largest(data.by_tool)],
        [
          "Context per action",
          data.context_per_action == null ? null : `${(data.context_per_action * 100).toFixed(2)} %`,
        ],
        ["Mean duration", data.mean_duration_seconds == null ? null : duration(data.mean_duration_seconds)],
        ["Unreadable lines", data.skipped_lines || null],
      ]}
    />
  );
}
