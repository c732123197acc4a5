/** What a person changes in a context, as values. */
import type { ContextEdits, ContextStatement } from "../api/types";

export function withPinned(edits: ContextEdits, one: ContextStatement): ContextEdits {
  const pins = edits.pins ?? [];
  const others = pins.filter((pin) => pin.part !== one.part || pin.text !== one.text);
  return {
    ...edits,
    pins: others.length < pins.length ? others : [...pins, { part: one.part, text: one.text }],
  };
}

/** Or takes it back in. What is left out is pinned no more. */
export function withDropped(edits: ContextEdits, one: ContextStatement): ContextEdits {
  const dropped = edits.dropped ?? [];
  if (one.is_dropped) return { ...edits, dropped: dropped.filter((key) => key !== one.key) };
  const unpinned = one.is_pinned ? withPinned(edits, one) : edits;
  return { ...unpinned, dropped: [...dropped, one.key] };
}

/** `kept`: the statements of one part as they stand. */
export function withMoved(
  edits: ContextEdits,
  kept: readonly ContextStatement[],
  from: number,
  to: number,
): ContextEdits {
  const own = kept.map((one) => one.key);
  const [moved] = own.splice(from, 1);
  own.splice(to, 0, moved as string);
  const others = (edits.order ?? []).filter((key) => !own.includes(key));
  return { ...edits, order: [...others, ...own] };
}

/** Line by line: ` ` in both, `-` only before, `+` only after; what is far from any change is left out. */
export function changedLines(before: string, after: string, around = 2): string[] {
  const all = compared(before.split("\n"), after.split("\n"));
  const near = all.map((_, at) =>
    all.slice(Math.max(0, at - around), at + around + 1).some((line) => line[0] !== " "),
  );
  const shown: string[] = [];
  all.forEach((line, at) => {
    if (near[at]) shown.push(line);
    else if (near[at - 1]) shown.push(" ⋯");
  });
  return shown;
}

function compared(before: readonly string[], after: readonly string[]): string[] {
  // The longest common part, by the table that every textbook has: a context has some hundred lines.
  const width = after.length + 1;
  const longest = new Uint32Array((before.length + 1) * width);
  const at = (row: number, column: number) => longest[row * width + column] as number;
  for (let row = before.length - 1; row >= 0; row -= 1) {
    for (let column = after.length - 1; column >= 0; column -= 1) {
      longest[row * width + column] =
        before[row] === after[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const lines: string[] = [];
  let row = 0;
  let column = 0;
  while (row < before.length || column < after.length) {
    if (row < before.length && column < after.length && before[row] === after[column]) {
      lines.push(` ${before[row]}`);
      row += 1;
      column += 1;
    } else if (
      column >= after.length ||
      (row < before.length && at(row + 1, column) >= at(row, column + 1))
    ) {
      lines.push(`-${before[row]}`);
      row += 1;
    } else {
      lines.push(`+${after[column]}`);
      column += 1;
    }
  }
  return lines;
}
