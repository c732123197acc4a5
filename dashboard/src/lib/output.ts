/** What a task prints, as lines: as many as a page can hold, the newest ones. */

export const MOST_LINES = 20_000;
const MOST_CHARACTERS = 8_000_000;
/** Of one line; nobody reads further, and a browser lays out no line of a million characters. */
const LONGEST_LINE = 4_000;

export interface Output {
  readonly lines: readonly string[];
  /** How many older lines are not kept here. */
  readonly dropped: number;
  /** Whether the last line has no end yet. */
  readonly isOpen: boolean;
  readonly characters: number;
}

export const NO_OUTPUT: Output = { lines: [], dropped: 0, isOpen: false, characters: 0 };

export function withText(output: Output, text: string): Output {
  if (text === "") return output;
  const parts = text.split("\n");
  const ends = parts.at(-1) === "";
  if (ends) parts.pop();
  let { characters } = output;
  const lines = output.lines.slice();
  if (output.isOpen) {
    const open = lines.pop() ?? "";
    characters -= open.length;
    parts[0] = open + (parts[0] ?? "");
  }
  for (const [at, part] of parts.entries()) {
    const line = asShown(part, !ends && at === parts.length - 1);
    characters += line.length;
    lines.push(line);
  }
  let surplus = Math.max(0, lines.length - MOST_LINES);
  for (let at = 0; at < surplus; at += 1) characters -= (lines[at] as string).length;
  while (characters > MOST_CHARACTERS && surplus < lines.length - 1) {
    characters -= (lines[surplus] as string).length;
    surplus += 1;
  }
  return {
    lines: surplus ? lines.slice(surplus) : lines,
    dropped: output.dropped + surplus,
    isOpen: !ends,
    characters,
  };
}

/** As a terminal shows it: what follows a carriage return is written over what stood before. */
function asShown(line: string, isOpen: boolean): string {
  const whole = withoutReturn(line);
  const last = whole.slice(whole.lastIndexOf("\r") + 1);
  const shown = last.length > LONGEST_LINE ? `${last.slice(0, LONGEST_LINE)} […]` : last;
  return isOpen && whole !== line ? `${shown}\r` : shown;
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

export interface Piece {
  readonly text: string;
  /** 1 to 7 as a terminal counts them; 0 is the usual one. */
  readonly colour: number;
  readonly isBold: boolean;
}

// What a program sends to a terminal beside text: colours, moves of the cursor, titles of the window.
const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /\u001b\[([0-9;:?]*)[ -/]*([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\-_]/g;

export function plain(line: string): string {
  const text = withoutReturn(line);
  return text.includes("\u001b") ? text.replace(CONTROLS, "") : text;
}

/** A line in its colours; every other control is left out. */
export function pieces(given: string): Piece[] {
  const line = withoutReturn(given);
  const found: Piece[] = [];
  let colour = 0;
  let isBold = false;
  let from = 0;
  const take = (to: number) => {
    if (to > from) found.push({ text: line.slice(from, to), colour, isBold });
  };
  for (const match of line.matchAll(CONTROLS)) {
    take(match.index);
    from = match.index + match[0].length;
    if (match[2] !== "m") continue;
    for (const code of (match[1] || "0").split(";").map(Number)) {
      if (code === 0) {
        colour = 0;
        isBold = false;
      } else if (code === 1) isBold = true;
      else if (code === 22) isBold = false;
      else if (code >= 30 && code <= 37) colour = code - 30;
      else if (code >= 90 && code <= 97) colour = code - 90;
      else if (code === 39) colour = 0;
      else if (code === 38 || code === 48) break; // a colour by number: its numbers are no codes
    }
  }
  take(line.length);
  return found;
}

/** The lines that hold these words, by their place. */
export function matching(lines: readonly string[], words: string): number[] {
  const wanted = words.toLowerCase();
  if (!wanted) return [];
  const found: number[] = [];
  lines.forEach((line, at) => {
    if (plain(line).toLowerCase().includes(wanted)) found.push(at);
  });
  return found;
}

export interface Window {
  readonly from: number;
  readonly to: number;
}

/** Which of equally high rows are in view, and some around them. */
export function inView(scrolled: number, height: number, row: number, count: number): Window {
  const around = 20;
  const from = Math.max(0, Math.floor(scrolled / row) - around);
  return { from: Math.min(from, count), to: Math.min(count, Math.ceil((scrolled + height) / row) + around) };
}
