// The learner's work in the browser: edited cells, files of exercises, passed checks.
//
// Each step has an entry of localStorage: {cells, files, passed, hints, prediction, ran, read,
// review}; `review` has the states of cards, as recall.js reads them.
// Files that go from step to step have one entry for all. Another tab with another step changes
// another entry. `ran` has the numbers of cells that came to their end; `read` is true when all did.

import { FORMAT, MOVED } from "./moved.js"; // made by the build, from the terminal's table

const PREFIX = "tinynode-course:";
const FORMAT_KEY = "tinynode-course-format";
const MOST_LETTERS = 10_000_000; // browsers keep less
const MOST_PLACES = 1000; // cells or files of a step

export class Store {
  constructor(name) {
    this.key = PREFIX + name;
    this.warning = "";
  }

  get() {
    try {
      const content = JSON.parse(localStorage.getItem(this.key));
      return content !== null && typeof content === "object" ? content : {};
    } catch {
      return {};
    }
  }

  note(facts) {
    try {
      localStorage.setItem(this.key, JSON.stringify({ ...this.get(), ...facts }));
      this.warning = "";
    } catch {
      this.warning = "This browser does not keep your work: its storage is full or closed.";
    }
    return this.warning === "";
  }
}

function entries() {
  const keys = Array.from({ length: localStorage.length }, (_, i) => localStorage.key(i));
  return keys.filter((key) => key.startsWith(PREFIX));
}

// Entries of format 1 have the names of the course's earlier order. Today's names of an entry's
// step are in MOVED; an exercise that is another one today is kept under "old_", and does nothing.
function ofToday(steps) {
  const moved = {};
  for (const [name, facts] of Object.entries(steps)) {
    const names = MOVED[name] ?? [name];
    for (const today of names.length ? names : [`old_${name}`]) moved[today] = facts;
  }
  return moved;
}

// Brings the entries of this browser to today's format, once.
function bringUpToDate() {
  if (localStorage.getItem(FORMAT_KEY) === String(FORMAT)) return;
  const steps = {};
  for (const key of entries()) {
    steps[key.slice(PREFIX.length)] = localStorage.getItem(key);
    localStorage.removeItem(key);
  }
  for (const [name, text] of Object.entries(ofToday(steps))) {
    localStorage.setItem(PREFIX + name, text);
  }
  localStorage.setItem(FORMAT_KEY, String(FORMAT));
}

try {
  bringUpToDate();
} catch {
  // a closed storage keeps nothing: each entry's note() says so
}

// All entries as the text of a file.
export function exported() {
  const steps = {};
  for (const key of entries().sort()) {
    steps[key.slice(PREFIX.length)] = JSON.parse(localStorage.getItem(key));
  }
  return JSON.stringify({ format: FORMAT, course: "tinynode", steps }, null, 1) + "\n";
}

const isTruth = (value) => typeof value === "boolean";
const isText = (value) => typeof value === "string";
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isNumbers = (value) => Array.isArray(value) && value.every(Number.isInteger);
const isEdit = (value) => isObject(value) && isText(value.original) && isText(value.text);

function areAll(content, isOne) {
  const values = isObject(content) ? Object.values(content) : [];
  return isObject(content) && values.length <= MOST_PLACES && values.every(isOne);
}

// What the facts of an entry must be.
const KINDS = {
  cells: (value) => areAll(value, isEdit),
  files: (value) => areAll(value, isText),
  hints: (value) => Number.isInteger(value) && value >= 0,
  passed: isTruth,
  prediction: isText,
  ran: (value) => areAll(value, isTruth),
  read: isTruth,
  review: (value) => areAll(value, isNumbers),
  started: isTruth,
  taken: isTruth,
  tried: isTruth,
};

// Throws an Error for facts that no page writes.
function check(name, facts) {
  if (!/^\w{1,40}$/.test(name) || !isObject(facts)) {
    throw new Error(`The file is damaged: ${name.slice(0, 40)} is no step with facts.`);
  }
  for (const [key, value] of Object.entries(facts)) {
    if (!Object.hasOwn(KINDS, key) || !KINDS[key](value)) {
      throw new Error(`The file is damaged: ${name}.${key.slice(0, 40)} is of another kind.`);
    }
  }
}

// Puts the entries of a file in place of those here; throws an Error for another file.
export function imported(text) {
  if (text.length > MOST_LETTERS) throw new Error("The file is too large for progress.");
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    throw new Error("The file is no progress of this course: it is no JSON.");
  }
  const isKnown = content?.format === 1 || content?.format === FORMAT;
  if (content?.course !== "tinynode" || !isKnown || !isObject(content.steps)) {
    throw new Error("The file is no progress of this course.");
  }
  for (const [name, facts] of Object.entries(content.steps)) check(name, facts);
  const steps = content.format === 1 ? ofToday(content.steps) : content.steps;
  for (const [name, facts] of Object.entries(steps)) {
    localStorage.setItem(PREFIX + name, JSON.stringify(facts));
  }
  return Object.keys(steps).length;
}

export function forgetAll() {
  for (const key of entries()) localStorage.removeItem(key);
}

// True for a step whose exercise passes, or whose cells all ran if the step has no exercise.
export function isDone(name) {
  const { passed, read } = new Store(name).get();
  return passed === true || read === true;
}
