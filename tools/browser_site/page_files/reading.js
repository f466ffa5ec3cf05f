// Places of a stranger's program that a reader overlooks: hidden characters, long lines, gaps.

import { number } from "./link.js";

const LONG = 200; // letters of a line
const GAP = 20; // empty lines
const MOST = 5; // lines in one sentence

// Letters without a form, and letters that turn the direction of the text; not tabs.
const HIDDEN = /[\p{Default_Ignorable_Code_Point}\p{Cf}\u2028\u2029\u2800]|[^\P{Cc}\t]/gu;

// Sentences for the reader; an ordinary program has none.
export function cautions(program) {
  const lines = program.split("\n");
  const hidden = new Map();
  const long = [];
  const gaps = [];
  let empty = 0;
  for (const [i, line] of lines.entries()) {
    const codes = new Set((line.match(HIDDEN) ?? []).map(codeOf));
    if (codes.size) hidden.set(i + 1, codes);
    if (line.length > LONG) long.push(i + 1);
    if (line.trim()) {
      if (empty >= GAP) gaps.push(i + 1);
      empty = 0;
    } else {
      empty += 1;
    }
  }
  const said = [];
  if (hidden.size) {
    const codes = [...new Set([...hidden.values()].flatMap((one) => [...one]))];
    said.push(
      `${places([...hidden.keys()])}: hidden characters, ${listed(codes)}. ` +
        "Python may read another text than the one you see.",
    );
  }
  if (long.length) {
    said.push(`${places(long)}: more than ${LONG} characters. Scroll to the right end.`);
  }
  if (gaps.length) said.push(`${places(gaps)}: code below a long gap.`);
  return said;
}

// The length of a program in words.
export function lengthOf(program) {
  const count = program.replace(/\n$/, "").split("\n").length;
  return `${number(count)} ${count === 1 ? "line" : "lines"}, ${number(program.length)} characters`;
}

const codeOf = (letter) =>
  `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

function listed(words) {
  const more = words.length > MOST ? ` and ${number(words.length - MOST)} more` : "";
  return words.slice(0, MOST).join(", ") + more;
}

const places = (lines) => `${lines.length === 1 ? "Line" : "Lines"} ${listed(lines)}`;
