// The exercise of a step: an editor for the learner's files, the checks, hints and a solution.
//
// An exercise has files of its own, or is a part of the package mynode, whose files go from step
// to step. Python merges a step's stubs into them, as the command start does in a terminal.

import { Editor } from "./editor.js";
import { button, element, textBlock } from "./elements.js";
import { Store } from "./store.js";

const SECONDS = 120; // the time limit of a check

export class Exercise {
  // ask sends a request to Python; heading is the page's heading "Exercise"; passed is called
  // when all checks pass
  constructor(facts, store, { ask, heading, passed }) {
    this.facts = facts;
    this.store = store;
    this.ask = ask;
    this.told = passed;
    this.shared = new Store("mynode");
    this.files = this.keptFiles();
    this.results = element("div", { class: "tn-results", role: "status" });
    this.hintPlace = element("div", { class: "tn-hints", "aria-live": "polite" });
    this.hintsSeen = 0;
    this.done = element("span", { class: "tn-passed", hidden: !store.get().passed }, "✓ passed");
    const title = element("h3", {}, "Your files ", this.done);
    this.body = element("div");
    this.element = element("section", { class: "tn-panel tn-exercise" }, title, this.body);
    this.element.setAttribute("aria-label", "Exercise");
    if (heading) {
      const link = element("a", { href: "#your-files" }, "Do it here, below.");
      heading.after(element("p", { class: "tn-jump" }, link));
    }
    this.element.id = "your-files";
    this.show();
  }

  keptFiles() {
    if (this.facts.builds) return this.shared.get().files ?? {};
    return { ...this.facts.files, ...(this.store.get().files ?? {}) };
  }

  keep() {
    if (this.facts.builds) this.shared.note({ files: this.files });
    else this.store.note({ files: this.files });
  }

  get started() {
    const { started, passed: isPassed, taken } = this.store.get();
    return !this.facts.builds || Boolean(started || isPassed || taken);
  }

  // The learner's package for the cells, if the learner wants them to use it.
  mine() {
    return this.mineBox?.checked ? this.files : null;
  }

  show() {
    this.body.replaceChildren(...(this.started ? this.editorParts() : this.startParts()));
  }

  startParts() {
    const open = this.facts.earlier.filter(({ name }) => {
      const facts = new Store(name).get();
      return !(facts.passed || facts.taken);
    });
    const parts = [];
    if (open.length) {
      const names = open.map(({ key }) => Number(key)).join(", ");
      const text = `This exercise builds on your work in step ${names}, which is open. Do that ` +
        "first, or take the reference there, and begin here.";
      parts.push(element("p", {}, text));
    } else {
      const text = "The exercise adds definitions to your package mynode: their bodies are yours.";
      parts.push(element("p", {}, text));
    }
    const words = open.length ? "Take the reference of open steps, and start" : "Start";
    const start = button(words, () => this.start(open), { class: "tn-button tn-run" });
    return [...parts, element("div", { class: "tn-buttons" }, start), this.results];
  }

  async start(open) {
    const take = open.map(({ key }) => key);
    await this.merge(take, () => {
      for (const { name } of open) new Store(name).note({ taken: true });
      this.store.note({ started: true });
    });
  }

  // Lets Python merge stubs, or the reference of steps, into the files.
  async merge(take, merged) {
    this.results.replaceChildren("Python merges the files ...");
    await this.ask({ do: "start", files: this.files, take }, (event) => {
      if (event.event === "refused") {
        this.results.replaceChildren(textBlock(event.text, "tn-text tn-error"));
      } else if (event.event === "files") {
        this.files = event.files;
        this.keep();
        merged();
        this.results.replaceChildren();
        this.show();
      }
    });
  }

  editorParts() {
    const names = Object.keys(this.files);
    const first = names.filter((name) => this.facts.touched.includes(name));
    const others = names.filter((name) => !first.includes(name));
    const option = (name) => element("option", { value: name }, name);
    const chooser = element("select", { change: () => this.choose(chooser.value) });
    if (first.length) {
      chooser.append(
        element("optgroup", { label: "of this step" }, ...first.map(option)),
        element("optgroup", { label: "of other steps" }, ...others.map(option)),
      );
    } else {
      chooser.append(...names.map(option));
    }
    this.chooser = chooser;
    const label = element("label", { class: "tn-file" }, "File ", chooser);
    this.editor = new Editor("Code of the file", "", {
      changed: () => this.edited(),
      run: () => this.check(),
    });
    const open = first.find((name) => this.files[name].includes("NotImplementedError"));
    this.choose(open ?? [...first, ...others][0]);
    const check = button("Check", () => this.check(), {
      class: "tn-button tn-run",
      title: "Shift+Enter",
    });
    this.hintButton = button("Hint", () => this.hint());
    const buttons = element("div", { class: "tn-buttons" }, check, this.hintButton);
    buttons.append(button("Compare with a solution", () => this.solution()));
    if (this.facts.builds) buttons.append(button("Take the reference", () => this.take()));
    else buttons.append(button("Reset", () => this.reset()));
    const parts = [label, this.editor.element, buttons];
    if (this.facts.uses) {
      this.mineBox = element("input", { type: "checkbox" });
      const words = " The cells of this page use my package";
      parts.push(element("label", { class: "tn-mine" }, this.mineBox, words));
    }
    return [...parts, this.results, this.hintPlace];
  }

  choose(name) {
    this.name = name;
    this.chooser.value = name;
    this.editor.text = this.files[name];
    this.editor.field.setAttribute("aria-label", `Code of ${name}`);
  }

  edited() {
    this.files[this.name] = this.editor.text;
    this.keep();
  }

  reset() {
    if (!confirm("Put the exercise's first files in place of yours?")) return;
    this.files = { ...this.facts.files };
    this.keep();
    this.results.replaceChildren();
    this.choose(this.name);
  }

  async check() {
    const list = element("ul", { class: "tn-checks" });
    const words = element("div");
    this.results.replaceChildren("Python checks your files ...");
    let titles = [];
    let hasFailed = false;
    const timer = setTimeout(() => this.tooLong(), SECONDS * 1000);
    this.store.note({ tried: true });
    await this.ask({ do: "check", files: this.files }, (event) => {
      if (event.event === "checks") {
        titles = event.titles;
        this.results.replaceChildren(list, words);
      } else if (event.event === "passed" || event.event === "failed") {
        const isPassed = event.event === "passed";
        const sign = isPassed ? "✓ " : "✗ ";
        const kind = isPassed ? "tn-yes" : "tn-no";
        list.append(element("li", { class: kind }, sign + titles[event.check]));
        if (!isPassed && !hasFailed) this.fail(event);
        hasFailed ||= !isPassed;
      } else if (event.event === "checked") {
        this.conclude(event.passed, words, titles.length);
      }
      if (event.printed?.length) words.append(textBlock(event.printed.join("\n")));
      if (event.words && !words.querySelector(".tn-error")) {
        words.append(textBlock(event.words.join("\n"), "tn-text tn-error"));
      }
    });
    clearTimeout(timer);
  }

  tooLong() {
    this.results.append(element("p", {}, `The checks took more than ${SECONDS} s.`));
    document.querySelector(".tn-stop").click();
  }

  conclude(isPassed, words, count) {
    if (!isPassed) return;
    words.append(element("p", {}, `All ${count} checks pass.`));
    this.store.note({ passed: true });
    this.done.hidden = false;
    this.told();
  }

  // The hints about the check that failed last: a question, the place, the formula.
  hint() {
    const failed = this.failed ?? { check: 0, unit: "", lines: [] };
    const words = this.facts.places[`${failed.check} ${failed.unit}`];
    const [question, formula] = words ?? this.facts.hints[failed.check];
    const place = failed.lines.length ? `Look at ${failed.lines.join("; ")}` : "";
    const hints = [question, place, formula].filter((text) => text);
    const seen = this.hintsSeen;
    if (!seen) this.hintPlace.replaceChildren();
    this.hintPlace.append(element("p", {}, `Hint ${seen + 1} of ${hints.length}: ${hints[seen]}`));
    this.hintsSeen = seen + 1;
    this.store.note({ hints: (this.store.get().hints ?? 0) + 1 });
    this.hintButton.hidden = this.hintsSeen >= hints.length;
  }

  // Keeps the first failure of a check; another check or function begins with its question.
  fail({ check, unit = "", lines = [] }) {
    const before = this.failed ?? { check: 0, unit: "" };
    this.failed = { check, unit, lines };
    if (check === before.check && unit === before.unit) return;
    this.hintsSeen = 0;
    this.hintButton.hidden = false;
  }

  async solution() {
    if (!this.store.get().tried && !confirm("Compare before a first check?")) return;
    await this.ask({ do: "solution", files: this.files }, (event) => {
      if (!event.text && event.event !== "solution") return;
      const same = "Your files are the same as the solution.";
      const shown = event.text || same;
      const summary = element("summary", {}, "From your files (-) to a solution (+)");
      const folded = element("details", { open: true }, summary, textBlock(shown));
      this.results.replaceChildren(folded);
    });
  }

  async take() {
    const question = "Put the reference's definitions of this step in place of yours?";
    if (!confirm(question)) return;
    await this.merge([this.facts.key], () => this.store.note({ taken: true, started: true }));
  }
}

