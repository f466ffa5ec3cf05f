// A page of the course that runs: its cells, its exercise, and the film of its program.

import { Bar } from "./bar.js";
import { Cell } from "./cell.js";
import { button, element, textBlock } from "./elements.js";
import { Exercise } from "./exercise.js";
import { filmFrame, hearChanges } from "./frames.js";
import { nextStep } from "./next.js";
import { Prediction } from "./prediction.js";
import { Python, Stopped } from "./python.js";
import { progressPanel } from "./progress.js";
import { SharePanel } from "./share.js";
import { Store } from "./store.js";
import { tickMenu } from "./ticks.js";

const PLACE = new URL(".", import.meta.url);

class Page {
  constructor(facts, content) {
    this.facts = facts;
    this.content = content;
    this.store = new Store(facts.name);
    this.python = new Python(PLACE, facts.key, (news) => this.hear(news));
    this.bar = new Bar({
      runAll: () => this.work(() => this.runUpTo(this.cells.length)),
      film: () => this.work(() => this.showFilm()),
      stop: () => this.python.stop(),
    });
    this.cells = this.findCells();
    const predict = content.querySelector("h2#predict");
    this.prediction = predict ? new Prediction(predict, this.cells, this.store) : null;
    this.filmPlace = element("section", { class: "tn-film", hidden: true, tabindex: "-1" });
    this.filmPlace.setAttribute("aria-label", "Film of my program");
    this.exercise = facts.hints.length
      ? new Exercise(facts, this.store, {
          ask: (request, heard) => this.work(() => this.ask(request, heard)),
          heading: content.querySelector("h2#exercise"),
          passed: () => this.showDone(),
        })
      : null;
    const end = content.querySelector(":scope > .md-source-file, :scope > form") ?? null;
    const insert = (...parts) => parts.forEach((part) => content.insertBefore(part, end));
    insert(this.filmPlace);
    if (this.exercise) insert(this.exercise.element);
    this.next = nextStep(facts, PLACE);
    insert(this.next.element, progressPanel(PLACE));
    this.showDone();
    document.body.append(this.bar.element);
    document.body.classList.add("tn-has-bar");
  }

  // The blocks of the page with the code of the cells, in order.
  findCells() {
    const kept = this.store.get().cells ?? {};
    const blocks = [...this.content.querySelectorAll("div.language-python")];
    const cells = [];
    for (const original of this.facts.cells) {
      const at = blocks.findIndex((block) => codeOf(block) === original.trim());
      if (at < 0) throw new Error(`cell ${cells.length + 1} is not on the page`);
      const [block] = blocks.splice(0, at + 1).slice(-1);
      const cell = new Cell(block, original, cells.length, {
        changed: () => this.keep(),
        run: () => this.work(() => this.runCell(cell)),
        runAbove: () => this.work(() => this.runUpTo(cell.number)),
        runWithAbove: () => this.work(() => this.runUpTo(cell.number + 1)),
        share: (from) => this.share(cell, from),
      });
      const edit = kept[cells.length];
      if (edit && edit.original === original) cell.text = edit.text;
      if (this.store.get().ran?.[cells.length]) cell.tick();
      cells.push(cell);
    }
    return cells;
  }

  keep() {
    const edited = {};
    for (const { number, original, text } of this.cells) {
      if (text !== original) edited[number] = { original, text };
    }
    this.warn(this.store.note({ cells: edited }));
  }

  warn(isKept) {
    if (!isKept) this.bar.words.textContent = this.store.warning;
  }

  hear(news) {
    this.bar.show(news);
    if (news.state === "stopped" || news.state === "crashed") {
      for (const cell of this.cells) cell.ran = false;
    }
  }

  // Runs a task with Python; one task at a time.
  async work(task) {
    if (this.busy) return;
    this.busy = true;
    try {
      await this.python.start();
      this.bar.show({ state: "running" });
      await task();
      this.bar.show({ state: "ready" });
    } catch (error) {
      if (!(error instanceof Stopped) && this.python.worker) throw error;
    } finally {
      this.busy = false;
    }
  }

  ask(request, heard) {
    return this.python.ask(request, heard);
  }

  texts(chosen) {
    return this.cells.map((cell) => (chosen(cell) ? cell.text : ""));
  }

  mine() {
    return this.exercise?.mine() ?? null;
  }

  async runCell(cell) {
    cell.begin();
    for (const one of this.cells) one.editor.mark(0);
    try {
      const sources = this.texts(() => true);
      const request = { do: "run", sources, cell: cell.number, mine: this.mine() };
      await this.ask(request, (event) => {
        cell.hear(event);
        for (const [number, line] of event.places ?? []) this.cells[number].editor.mark(line);
      });
    } catch (error) {
      const text = error instanceof Stopped ? "stopped" : `Python ended: ${error.message}`;
      cell.fail(text);
      throw error;
    } finally {
      cell.end();
    }
    if (cell.element.classList.contains("tn-failed")) return false;
    this.noteRun(cell);
    return true;
  }

  // A cell came to its end: a tick, the prediction beside the output, and the tick of the step.
  noteRun(cell) {
    cell.tick();
    this.prediction?.heardEnd(cell);
    const ran = { ...this.store.get().ran, [cell.number]: true };
    const isRead = this.cells.every(({ number }) => ran[number]);
    const facts = isRead && !this.exercise ? { ran, read: true } : { ran };
    this.warn(this.store.note(facts));
    this.showDone();
  }

  showDone() {
    this.next.show();
    tickMenu();
  }

  // Begins anew, and runs the first cells, up to an error.
  async runUpTo(count) {
    await this.ask({ do: "open", step: this.facts.key });
    for (const cell of this.cells) cell.ran = false;
    for (const cell of this.cells.slice(0, count)) {
      if (!(await this.runCell(cell))) {
        cell.element.scrollIntoView({ block: "nearest" });
        return;
      }
    }
  }

  // The link to the cells up to this one, as one program.
  share(cell, from) {
    if (!cell.panel) {
      cell.panel = new SharePanel(new URL("../play/", PLACE), { note: this.filesStay() });
      cell.bar.after(cell.panel.element);
    }
    const isChosen = this.filmed();
    const texts = this.cells
      .slice(0, cell.number + 1)
      .filter((one) => one === cell || isChosen(one))
      .map((one) => one.text.trim());
    const title = `${this.facts.title}, cell ${cell.number + 1}`;
    return cell.panel.show(`${texts.join("\n\n")}\n`, title, from);
  }

  filesStay() {
    return this.mine() ? "Your files of mynode stay here: the program gets the course's." : "";
  }

  // True for the cells run so far; for all cells, if none has run.
  filmed() {
    const some = this.cells.some((cell) => cell.ran);
    return (cell) => !some || cell.ran;
  }

  // The film of these cells.
  async showFilm() {
    const request = { do: "film", sources: this.texts(this.filmed()), mine: this.mine() };
    const { page, text } = await this.filmOf(request);
    const close = button("Close", () => (this.filmPlace.hidden = true));
    const title = element("h2", {}, "Film of my program");
    this.filmPlace.replaceChildren(element("div", { class: "tn-film-bar" }, title, close));
    if (page) {
      this.filmPlace.append(this.changingFrame(page, request));
    } else {
      const words = "The cells run no function of tinynode or mynode: there are no steps to show.";
      this.filmPlace.append(element("p", {}, words), ...(text ? [textBlock(text)] : []));
    }
    this.filmPlace.hidden = false;
    this.filmPlace.scrollIntoView({ block: "start" });
    this.filmPlace.focus({ preventScroll: true });
  }

  // The page of a film, the printed text, and why a change was refused.
  async filmOf(request) {
    const found = { page: "", text: "", refused: "" };
    await this.ask(request, (event) => {
      if (event.event === "printed") found.text += event.text;
      if (event.event === "film") found.page = event.page;
      if (event.event === "refused") found.refused = event.text;
    });
    return found;
  }

  // A frame whose reader changes numbers: the same program runs again, and a new frame comes.
  changingFrame(page, request) {
    const frame = filmFrame(page, "Film of my program");
    hearChanges(frame, async (changes) => {
      let error = "Python is at work already.";
      await this.work(async () => {
        error = "The run was stopped."; // unless it comes to its end
        error = await this.changeFilm(frame, { ...request, changes });
      });
      return error;
    });
    return frame;
  }

  // Shows the film with changes in the place of a frame; returns why not, or nothing.
  async changeFilm(frame, request) {
    const { page, text, refused } = await this.filmOf(request);
    if (!page) return refused || `There are no steps to show.\n${text}`;
    frame.replaceWith(this.changingFrame(page, request));
    return "";
  }
}

function codeOf(block) {
  return (block.querySelector("pre > code") ?? block.querySelector("code")).textContent.trim();
}

async function begin() {
  const name = document.querySelector("meta[name=tinynode-step]").content;
  const answer = await fetch(new URL(`steps/${name}.json`, PLACE));
  if (!answer.ok) throw new Error(`steps/${name}.json: ${answer.status}`);
  const content = document.querySelector("article") ?? document.querySelector("main");
  window.tinynodePage = new Page(await answer.json(), content);
  document.documentElement.dataset.tinynode = "ready";
}

begin();
