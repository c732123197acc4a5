/** Numbers, moments and names as people read them. */

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 365 * 86_400],
  ["month", 30 * 86_400],
  ["week", 7 * 86_400],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const time = { hour: "2-digit", minute: "2-digit", second: "2-digit" } as const;
const dateTime = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "short",
  day: "numeric",
  ...time,
  timeZoneName: "short",
});
const clock = new Intl.DateTimeFormat(undefined, time);

export function ago(moment: string, now: number): string {
  const seconds = (Date.parse(moment) - now) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return "just now";
}

/** With its zone. What is no moment, as an agent may have written one, shows as it is. */
export function moment(at: string): string {
  return Number.isNaN(Date.parse(at)) ? neutral(at) : dateTime.format(new Date(at));
}

/** Of every time of day on the page. */
export const ZONE = clock.resolvedOptions().timeZone;

export function timeOfDay(at: string): string {
  return clock.format(new Date(at));
}

export function duration(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const rounded = Math.round(seconds);
  if (rounded < 60) return `${rounded} s`;
  const minutes = Math.floor(rounded / 60);
  if (minutes < 60) return joined(minutes, "min", rounded % 60, "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return joined(hours, "h", minutes % 60, "min");
  return joined(Math.floor(hours / 24), "d", hours % 24, "h");
}

function joined(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small ? `${large} ${largeUnit} ${small} ${smallUnit}` : `${large} ${largeUnit}`;
}

export function count(number: number): string {
  return whole.format(number);
}

export function counted(number: number, one: string, many = `${one}s`): string {
  return `${whole.format(number)} ${number === 1 ? one : many}`;
}

export function short(number: number): string {
  return compact.format(number);
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

export function dollars(amount: number): string {
  if (amount === 0) return "$0";
  return amount < 0.01 ? `$${amount.toPrecision(2)}` : `$${amount.toFixed(2)}`;
}

export function bytes(size: number): string {
  if (size < 1024) return `${size} B`;
  if (size < 1024 ** 2) return `${(size / 1024).toFixed(0)} kB`;
  return `${(size / 1024 ** 2).toFixed(1)} MB`;
}

/** The last parts of a path: the start is the same for everything on a machine. */
export function folder(path: string): string {
  const parts = neutral(path).split("/").filter(Boolean);
  return parts.length <= 2 ? neutral(path) : `…/${parts.slice(-2).join("/")}`;
}

export function words(name: string): string {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const AGENTS: Record<string, string> = {
  "claude-code": "Claude Code",
  gemini: "Gemini CLI",
  opencode: "OpenCode",
};

/** As its makers write it. */
export function agentName(agent: string): string {
  return AGENTS[agent] ?? words(agent);
}

/** What hides, moves or turns other text: as in `holdfast.base.neutral`. Tabs and ends of lines stay. */
const STEERS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]|\r(?!\n)/gu;

/** Text of others: what it says is all that it does. */
export function neutral(text: string): string {
  return text.replace(STEERS, "\ufffd");
}

/** All texts in an answer. */
export function neutralAll<T>(value: T): T {
  return JSON.parse(JSON.stringify(value), (_, one) => (typeof one === "string" ? neutral(one) : one));
}

/** The end of an id: its start is the time, the same for everything of an hour. */
export function shortId(id: string): string {
  return id.length > 12 ? `…${id.slice(-8)}` : id;
}
