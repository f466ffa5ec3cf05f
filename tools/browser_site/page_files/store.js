// The learner's work in the browser: edited cells, files of exercises, passed checks.
//
// Each step has an entry of localStorage: {cells, files, passed, hints}. Files that go from step
// to step have one entry for all. Another tab with another step changes another entry.

const PREFIX = "tinynode-course:";
const FORMAT = 1;

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

// All entries as the text of a file.
export function exported() {
  const steps = {};
  for (const key of entries().sort()) {
    steps[key.slice(PREFIX.length)] = JSON.parse(localStorage.getItem(key));
  }
  return JSON.stringify({ format: FORMAT, course: "tinynode", steps }, null, 1) + "\n";
}

// Puts the entries of a file in place of those here; throws an Error for another file.
export function imported(text) {
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    throw new Error("The file is no progress of this course: it is no JSON.");
  }
  const steps = content?.steps;
  if (content?.course !== "tinynode" || content.format !== FORMAT || typeof steps !== "object") {
    throw new Error("The file is no progress of this course.");
  }
  for (const [name, facts] of Object.entries(steps)) {
    localStorage.setItem(PREFIX + name, JSON.stringify(facts));
  }
  return Object.keys(steps).length;
}

export function forgetAll() {
  for (const key of entries()) localStorage.removeItem(key);
}

export function passed(name) {
  return new Store(name).get().passed === true;
}
