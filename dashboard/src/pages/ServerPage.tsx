import { useQuery } from "@tanstack/react-query";
import { health, serverSettings, stats } from "../api/queries";
import type { ProjectStats } from "../api/types";
import { count, duration, percent, words } from "../lib/format";
import { useTitle } from "../lib/use-title";
import { Facts, Section } from "../parts/bits";
import { Shown } from "../parts/states";

export default function ServerPage() {
  useTitle("Server");
  const well = useQuery({ ...health, refetchInterval: 5_000 });
  const settings = useQuery(serverSettings);
  const recorded = useQuery(stats);
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
                    data.workers === 0 ? "none now; one starts when work waits" : count(data.workers),
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
                    data.context_window == null ? "as the model has it" : count(data.context_window),
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
        <Section title="Recorded actions">
          <Shown query={recorded} what="statistics">
            {(data) => <Recorded data={data} />}
          </Shown>
        </Section>
      </div>
    </div>
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
          "Context an action",
          data.context_per_action == null ? null : `${(data.context_per_action * 100).toFixed(2)} %`,
        ],
        ["Mean length", data.mean_duration_seconds == null ? null : duration(data.mean_duration_seconds)],
        ["Unreadable lines", data.skipped_lines || null],
      ]}
    />
  );
}
