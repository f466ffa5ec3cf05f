// The page of one program: the program of a link, or the reader's own. Nothing runs before Run.
//
// A stranger wrote the link, and may change the part after the "#" while the page is open. So a
// program that comes by a link is text alone, and Run waits a moment after each such program.

import { Bar } from "./bar.js";
import { Editor } from "./editor.js";
import { button, element, textBlock } from "./elements.js";
import { filmFrame, hearChanges } from "./frames.js";
import { decode, LinkError } from "./link.js";
import { Python, Stopped } from "./python.js";
import { cautions, lengthOf } from "./reading.js";
import { SharePanel } from "./share.js";

const PLACE = new URL(".", import.meta.url);
const MOMENT = 700; // milliseconds, against a press that was meant for another window
const MOST_PRINTED = 1_000_000; // characters
const MOST_EVENTS = 50_000;
const MOST_FILM = 50_000_000; // characters of the film's page

const FIRST = `import numpy as np
import tinynode as tn

x = tn.Variable(np.array([1.0, 2.0, 3.0]), name="x")
y = tn.Variable(np.array([4.0, 5.0, 6.0]), name="y")
z = tn.functions.sum(x * y + x)
z.backward()
print(x.grad, y.grad)
`;

class Flood extends Error {}

class Play {
  constructor(place) {
    this.busy = false;
    this.isRead = true; // false for a moment after the arrival of a program
    this.runs = 0; // counts runs, and programs of links
    this.title = "";
    this.linked = null;
    this.python = new Python(PLACE, null, (news) => this.bar.show(news));
    this.bar = new Bar({
      stop: () => this.python.stop(),
      words: { stopped: "Stopped. The next run starts Python again." },
    });
    this.heading = element("h2", { class: "tn-play-title", hidden: true });
    this.note = element("div", { class: "tn-note", role: "note", hidden: true });
    this.editor = new Editor("The program", FIRST, {
      changed: () => this.edited(),
      run: () => this.run(),
    });
    this.runButton = button("Run", () => this.run(), {
      class: "tn-button tn-run",
      title: "Shift+Enter in the program",
    });
    this.shareButton = button("Share", () => this.share());
    this.resetButton = button("Reset", () => this.reset(), {
      "aria-label": "Reset the program to the linked one",
      hidden: true,
    });
    this.length = element("span", { class: "tn-count" });
    this.panel = new SharePanel(new URL("../play/", PLACE), {
      made: (part, title) => {
        this.name(title);
        keepInAddress(part);
      },
    });
    this.output = element("div", { class: "tn-output", role: "log", hidden: true });
    this.output.setAttribute("aria-label", "Output of the program");
    this.film = element("section", { class: "tn-film", hidden: true, tabindex: "-1" });
    this.film.setAttribute("aria-label", "Film of the program");
    const buttons = [this.runButton, this.shareButton, this.resetButton, this.length];
    place.replaceChildren(
      this.heading,
      this.note,
      this.editor.element,
      element("div", { class: "tn-cell-bar" }, ...buttons),
      this.panel.element,
      this.output,
      this.film,
    );
    document.body.append(this.bar.element);
    document.body.classList.add("tn-has-bar");
    this.edited();
    addEventListener("hashchange", () => this.openLink());
  }

  edited() {
    this.panel.hide();
    this.length.textContent = lengthOf(this.editor.text);
    this.resetButton.hidden = this.linked === null || this.editor.text === this.linked;
  }

  name(title) {
    this.title = title;
    this.heading.textContent = title;
    this.heading.hidden = !title;
    document.title = title ? `Program: ${title}` : "A program";
  }

  reset() {
    this.editor.text = this.linked;
    this.edited();
    this.editor.field.focus();
  }

  // --- links -------------------------------------------------------------------------------------

  // Shows the program of the address; a heading's address has none.
  async openLink() {
    const part = location.hash.slice(1);
    if (!part || document.getElementById(part)) return;
    this.runs += 1;
    this.isRead = false;
    if (this.busy) this.python.stop(); // the program before
    this.clear();
    this.offerRun();
    let opened;
    try {
      opened = await decode(part);
    } catch (error) {
      const text = error instanceof LinkError ? error.message : `${error}`;
      opened = { title: "", program: "", fault: text };
    }
    if (location.hash.slice(1) !== part) return; // a later link is under way
    this.show(opened);
    const shown = this.runs;
    setTimeout(() => {
      this.isRead ||= shown === this.runs;
      this.offerRun();
    }, MOMENT);
  }

  show({ title, program, fault }) {
    this.name(title);
    this.editor.text = program;
    this.linked = fault ? null : this.editor.text;
    this.edited();
    if (fault) {
      this.say([fault], true);
      return;
    }
    const first = "This program comes from a link. Read it first; Run executes it in this page.";
    const found = cautions(this.linked);
    this.say([first, ...found], found.length > 0);
  }

  say(sentences, isBad) {
    this.note.replaceChildren(...sentences.map((text) => element("p", {}, text)));
    this.note.classList.toggle("tn-note-bad", isBad);
    this.note.hidden = false;
  }

  share() {
    return this.panel.show(this.editor.text, this.title, this.shareButton);
  }

  // --- a run -------------------------------------------------------------------------------------

  clear() {
    this.printed = null;
    this.output.replaceChildren();
    this.output.hidden = true;
    this.film.replaceChildren();
    this.film.hidden = true;
  }

  offerRun() {
    this.runButton.disabled = this.busy || !this.isRead;
  }

  async run() {
    if (this.busy || !this.isRead) return;
    this.runs += 1;
    const run = this.runs;
    this.clear();
    const request = { do: "play", text: this.editor.text, title: this.title };
    try {
      const { page } = await this.work(request, (text) => this.print(text));
      this.showFilm(page, request);
    } catch (error) {
      if (run === this.runs) this.fail(error); // else another program is shown
    }
  }

  // Runs a request with Python; returns {page, refused}.
  async work(request, print) {
    this.busy = true;
    this.offerRun();
    try {
      await this.python.start();
      this.bar.show({ state: "running" });
      const found = await this.ask(request, print);
      this.bar.show({ state: "ready" });
      return found;
    } finally {
      this.busy = false;
      this.offerRun();
    }
  }

  async ask(request, print) {
    const found = { page: "", refused: "" };
    let letters = 0;
    let events = 0;
    let flood = null;
    const hear = (event) => {
      events += 1;
      if (event.event === "printed") {
        letters += event.text.length;
        print(event.text);
      } else if (event.event === "film") {
        found.page = event.page;
      } else if (event.event === "refused") {
        found.refused = event.text;
      }
      if (letters > MOST_PRINTED || events > MOST_EVENTS || found.page.length > MOST_FILM) {
        flood = new Flood("The program gives more than a page can show. Python was stopped.");
        this.python.stop();
      }
    };
    try {
      await this.python.ask(request, hear);
    } catch (error) {
      throw flood ?? error;
    }
    return found;
  }

  print(text) {
    if (!this.printed) {
      this.printed = textBlock("");
      this.output.append(this.printed);
      this.output.hidden = false;
    }
    this.printed.append(text);
  }

  fail(error) {
    let text = `Python ended: ${error.message}`;
    if (error instanceof Stopped) text = "stopped";
    if (error instanceof Flood) text = error.message;
    this.output.append(textBlock(text, "tn-text tn-error"));
    this.output.hidden = false;
  }

  showFilm(page, request) {
    const title = element("h2", {}, "Film of the program");
    const words = "The program runs no function of tinynode: there are no steps to show.";
    const content = page ? this.changingFrame(page, request) : element("p", {}, words);
    this.film.replaceChildren(element("div", { class: "tn-film-bar" }, title), content);
    this.film.hidden = false;
    if (!page) return;
    this.film.scrollIntoView({ block: this.printed ? "nearest" : "start" });
    this.film.focus({ preventScroll: true });
  }

  // A frame whose reader changes numbers: the same program runs again, and a new frame comes.
  changingFrame(page, request) {
    const frame = filmFrame(page, "Film of the program");
    hearChanges(frame, (changes) => this.changeFilm(frame, { ...request, changes }));
    return frame;
  }

  // Shows the film with changes in the place of a frame; returns why not, or nothing.
  async changeFilm(frame, request) {
    if (this.busy) return "Python is at work already.";
    let found;
    try {
      found = await this.work(request, () => {});
    } catch (error) {
      return error instanceof Stopped ? "The run was stopped." : error.message;
    }
    if (!found.page) return found.refused || "There are no steps to show.";
    frame.replaceWith(this.changingFrame(found.page, request));
    return "";
  }
}

// A bookmark keeps the program; a history too.
function keepInAddress(part) {
  try {
    history.replaceState(null, "", `#${part}`);
  } catch {
    // some browsers allow few changes within seconds: the panel has the link
  }
}

function begin() {
  const place = document.getElementById("tinynode-play");
  // another site may show this page in a frame, below buttons of its own
  if (window.top !== window) {
    const link = element("a", { href: location.href, target: "_blank", rel: "noopener" });
    link.append("Open the program in a window of its own");
    place.replaceChildren(element("p", {}, link, ": in a frame, no program runs."));
    return;
  }
  const play = new Play(place);
  window.tinynodePage = play;
  play.openLink().then(() => (document.documentElement.dataset.tinynode = "ready"));
}

begin();
