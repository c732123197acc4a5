import { expect, test } from "vitest";
import { inView, MOST_LINES, matching, NO_OUTPUT, pieces, plain, withText } from "../src/lib/output";

const read = (...texts: string[]) => texts.reduce(withText, NO_OUTPUT);

test("lines come in pieces and are whole in the end", () => {
  expect(read("one\ntw", "o\nthree").lines).toEqual(["one", "two", "three"]);
  expect(read("one\n", "two\n").lines).toEqual(["one", "two"]);
  expect(read("a\n\n", "\nb").lines).toEqual(["a", "", "", "b"]);
  expect(read("", "").lines).toEqual([]);
});

test("a line that is written over shows as a terminal shows it", () => {
  expect(read("10 %\r50 %\r", "100 %\n").lines).toEqual(["100 %"]);
  expect(read("dos\r\nends\r\n").lines).toEqual(["dos", "ends"]);
});

test("only so much is kept, the newest", () => {
  let output = NO_OUTPUT;
  for (let round = 0; round < 5; round += 1) output = withText(output, `${"x".repeat(70)}\n`.repeat(10_000));
  expect(output.lines.length).toBe(MOST_LINES);
  expect(output.dropped).toBe(50_000 - MOST_LINES);
  expect(output.characters).toBe(MOST_LINES * 70);
  const long = withText(output, `${"y".repeat(10_000_000)}\nend\n`);
  expect(long.lines.at(-1)).toBe("end");
  expect((long.lines.at(-2) ?? "").length).toBeLessThan(5_000);
});

test("colours of a terminal, and nothing else that it obeys", () => {
  expect(pieces("a\u001b[1;31mred\u001b[0m b")).toEqual([
    { text: "a", colour: 0, isBold: false },
    { text: "red", colour: 1, isBold: true },
    { text: " b", colour: 0, isBold: false },
  ]);
  expect(pieces("\u001b[38;5;31mby number\u001b[2K")).toEqual([
    { text: "by number", colour: 0, isBold: false },
  ]);
  expect(plain("\u001b]0;title\u0007shown\u001b[2J")).toBe("shown");
});

test("search knows no colours and no case", () => {
  expect(matching(["re\u001b[31md\u001b[0m", "none", "RED"], "red")).toEqual([0, 2]);
  expect(matching(["a"], "")).toEqual([]);
});

test("only what is in view is drawn", () => {
  expect(inView(0, 100, 10, 1_000)).toEqual({ from: 0, to: 30 });
  expect(inView(5_000, 100, 10, 1_000)).toEqual({ from: 480, to: 530 });
  expect(inView(5_000, 100, 10, 3)).toEqual({ from: 3, to: 3 });
});
