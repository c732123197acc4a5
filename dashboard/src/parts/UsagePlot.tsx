/** How the context window filled over time, and when it will be full at this pace. */
import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { UsageHistory } from "../api/types";
import { count, dollars, duration, moment, percent, ZONE } from "../lib/format";
import { curves, MEASURES, type Measure } from "../lib/usage";
import { useTheme } from "../lib/use-theme";
import { ContextGauge, Wide } from "./bits";
import { Empty } from "./states";

const HEIGHT = 300;
const NAMES: Record<Measure, string> = { context: "Context window", tokens: "Tokens", cost: "Cost" };
const SHOWN: Record<Measure, (value: number) => string> = {
  context: percent,
  tokens: count,
  cost: dollars,
};

export default function UsagePlot({ usage, isRunning }: { usage: UsageHistory; isRunning: boolean }) {
  const available = MEASURES.filter((one) => curves(usage, one).samples > 0);
  const [wanted, setWanted] = useState<Measure>("context");
  const measure = available.includes(wanted) ? wanted : available[0];
  if (!measure) {
    return (
      <Empty title="No usage reported yet.">
        <p>Agents and models report usage after each call; shell commands do not.</p>
      </Empty>
    );
  }
  const latest = usage.samples.at(-1);
  return (
    <div className="stack">
      <div className="row spread wrap">
        <Forecast usage={usage} isRunning={isRunning} />
        <fieldset className="chips">
          <legend className="hidden">What to plot</legend>
          {available.map((one) => (
            <button
              key={one}
              type="button"
              className="chip"
              aria-pressed={one === measure}
              onClick={() => setWanted(one)}
            >
              {NAMES[one]}
            </button>
          ))}
        </fieldset>
      </div>
      <ContextGauge share={latest?.context_utilization ?? null} pausesAt={usage.exhaustion_at} />
      <Plot usage={usage} measure={measure} />
      <p className="muted">Times in {ZONE}</p>
      <SampleTable usage={usage} />
    </div>
  );
}

function Forecast({ usage, isRunning }: { usage: UsageHistory; isRunning: boolean }) {
  const { seconds_until_pause: pause, seconds_until_full: full } = usage;
  if (pause == null && full == null) {
    return <p className="muted">No forecast: the window of this session is not filling.</p>;
  }
  if (!isRunning) {
    return (
      <p className="muted">
        {pause == null
          ? "Its last session had reached the level at which it pauses automatically."
          : `At its last rate it had ${duration(pause)} left before pausing automatically.`}
      </p>
    );
  }
  return (
    <p>
      At this pace it pauses by itself in <strong>{pause == null ? "–" : duration(pause)}</strong>
      {full != null && <> and would be full in {duration(full)}</>}.
    </p>
  );
}

function Plot({ usage, measure }: { usage: UsageHistory; measure: Measure }) {
  const box = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  const drawn = useMemo(() => curves(usage, measure), [usage, measure]);
  useEffect(() => {
    const place = box.current as HTMLDivElement;
    const plot = new uPlot(optionsFor(measure, place.clientWidth, theme), drawn.data, place);
    const resized = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: HEIGHT }));
    resized.observe(place);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [drawn, measure, theme]);
  return (
    <figure className="plot">
      <div
        ref={box}
        role="img"
        aria-label={`${NAMES[measure]} over time. The table below shows the same numbers.`}
      />
      <figcaption className="muted">
        <span className="key key-line" aria-hidden="true" /> reported
        {measure === "context" && (
          <>
            <span className="key key-forecast" aria-hidden="true" /> forecast
            <span className="key key-limit" aria-hidden="true" /> pauses here ({percent(usage.exhaustion_at)})
          </>
        )}
      </figcaption>
    </figure>
  );
}

function optionsFor(measure: Measure, width: number, theme: string): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) =>
    style.getPropertyValue(name).trim() || (theme === "dark" ? "#ccc" : "#444");
  const grid = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: colour("--muted"), grid, ticks: grid, font: "11px system-ui" };
  const show = (value: number | null) => (value == null ? "–" : SHOWN[measure](value));
  return {
    width: Math.max(200, width),
    height: HEIGHT,
    cursor: { drag: { x: true, y: false } },
    legend: { live: true },
    scales: { y: { range: measure === "context" ? [0, 1] : (_, __, most) => [0, most * 1.1 || 1] } },
    axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map(show) }],
    series: [
      {},
      {
        label: NAMES[measure],
        stroke: colour("--accent"),
        fill: colour("--accent-faint"),
        width: 2,
        points: { size: 5, fill: colour("--accent") },
        value: (_, value) => show(value),
      },
      {
        label: "Forecast",
        stroke: colour("--accent"),
        width: 2,
        dash: [6, 5],
        points: { show: false },
        spanGaps: true,
        value: (_, value) => show(value),
      },
      {
        label: "Pauses",
        stroke: colour("--warn"),
        width: 1,
        dash: [2, 3],
        points: { show: false },
        spanGaps: true,
        value: (_, value) => show(value),
      },
    ],
  };
}

const MOST_ROWS = 200;

function SampleTable({ usage }: { usage: UsageHistory }) {
  const rows = usage.samples.slice(-MOST_ROWS).reverse();
  return (
    <details>
      <summary>As a table</summary>
      <Wide label="Usage as a table">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col" className="number">
                Session
              </th>
              <th scope="col" className="number">
                Context
              </th>
              <th scope="col" className="number">
                Tokens
              </th>
              <th scope="col" className="number">
                Cost
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((one) => (
              <tr key={one.seq}>
                <td>{moment(one.at)}</td>
                <td className="number">{one.session_number}</td>
                <td className="number">
                  {one.context_utilization == null ? "–" : percent(one.context_utilization)}
                </td>
                <td className="number">{count(one.tokens_used)}</td>
                <td className="number">{one.cost_usd == null ? "–" : dollars(one.cost_usd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </details>
  );
}
