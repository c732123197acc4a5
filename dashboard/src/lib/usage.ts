/** Usage samples as the columns a plot takes: time, reported, forecast, limit. */
import type { UsageHistory, UsageSample } from "../api/types";

export const MEASURES = ["context", "tokens", "cost"] as const;
export type Measure = (typeof MEASURES)[number];

const VALUES: Record<Measure, (sample: UsageSample) => number | null> = {
  context: (sample) => sample.context_utilization ?? null,
  tokens: (sample) => sample.tokens_used,
  cost: (sample) => sample.cost_usd ?? null,
};

type Column = (number | null)[];

export interface Curves {
  readonly samples: number;
  readonly data: [number[], Column, Column, Column];
}

export function curves(usage: UsageHistory, measure: Measure): Curves {
  const times: number[] = [];
  const reported: Column = [];
  let samples = 0;
  let session: number | null = null;
  for (const sample of usage.samples) {
    const at = Date.parse(sample.at) / 1000;
    const value = VALUES[measure](sample);
    if (session !== null && session !== sample.session_number) {
      // A new session starts with an empty window: no line leads there.
      times.push(at - 0.001);
      reported.push(null);
    }
    session = sample.session_number;
    times.push(at);
    reported.push(value);
    samples += value === null ? 0 : 1;
  }
  const forecast: Column = times.map(() => null);
  const limit: Column = times.map(() => null);
  if (measure === "context" && samples > 0) {
    addForecast(usage, times, reported, forecast, limit);
    limit.fill(usage.exhaustion_at);
  }
  return { samples, data: [times, reported, forecast, limit] };
}

function addForecast(
  usage: UsageHistory,
  times: number[],
  reported: Column,
  forecast: Column,
  limit: Column,
): void {
  const start = reported.findLastIndex((value) => value !== null);
  const seconds = usage.seconds_until_pause;
  const from = times[start];
  if (seconds == null || seconds <= 0 || from === undefined) return;
  forecast[start] = reported[start] ?? null;
  times.push(from + seconds);
  reported.push(null);
  forecast.push(usage.exhaustion_at);
  limit.push(null);
}
