// The page "Review": two minutes of questions on passed steps, spaced by the answers.
//
// The questions and their answers are in review.json, so no Python starts. Each answer is kept
// before the next question comes. All works with the keyboard: letters choose, Enter goes on.

import { Cards, questionsAre } from "./cards.js";
import { button, element } from "./elements.js";
import { highlighted } from "./highlight.js";
import { progressPanel } from "./progress.js";
import { after, dateOf, isRight, lettered } from "./recall.js";
import { tickMenu } from "./ticks.js";

const PLACE = new URL(".", import.meta.url);

class Review {
  constructor(place, cards) {
    this.place = place;
    this.cards = cards;
    this.step = "";
    document.addEventListener("keydown", (event) => this.choose(event));
    this.showStart();
  }

  show(...parts) {
    this.place.replaceChildren(...parts);
  }

  // --- before the questions ------------------------------------------------------------------------

  showStart() {
    const known = this.cards.known();
    if (!known.length) return this.show(this.nothingPassed());
    const due = this.cards.due(this.step);
    const words = element("p", { role: "status" }, this.startWords(due));
    const start = button("Begin", () => this.begin(due), { class: "tn-button tn-run" });
    const ahead = () => this.begin(this.cards.due(this.step, true));
    const early = button("Ask before their day", ahead);
    this.show(
      words,
      this.stepChoice(known),
      element("div", { class: "tn-buttons" }, due.length ? start : early),
    );
  }

  startWords(due) {
    if (due.length) return `${questionsAre(due.length)} due. ${this.minutes()}`;
    const day = this.cards.nextDay(this.cards.known(this.step));
    return `Nothing is due today. The next questions: ${dateOf(day)}.`;
  }

  minutes() {
    return `No new question begins after ${this.cards.seconds / 60} minutes.`;
  }

  nothingPassed() {
    const first = new URL(`../tutorials/${this.cards.all[0].stem}/`, PLACE);
    return element(
      "p",
      { role: "status" },
      "No passed step of this browser has questions. A step is passed when all its checks pass. " +
        "Begin with ",
      element("a", { href: first }, this.cards.all[0].title),
      ".",
    );
  }

  // A choice of one step, or of all passed steps.
  stepChoice(known) {
    const titles = new Map(known.map((card) => [card.step, card.title]));
    const options = [["", "all passed steps"], ...titles].map(([value, text]) =>
      element("option", { value, selected: value === this.step }, text),
    );
    const change = (event) => {
      this.step = event.target.value;
      this.showStart();
      this.place.querySelector("select").focus();
    };
    const select = element("select", { change }, ...options);
    return element("label", { class: "tn-file" }, "Questions on ", select);
  }

  // --- the questions -------------------------------------------------------------------------------

  begin(due) {
    this.left = [...due];
    this.asked = this.right = 0;
    this.end = performance.now() + this.cards.seconds * 1000;
    this.next();
  }

  next() {
    const isLate = this.asked > 0 && performance.now() > this.end;
    if (!this.left.length || isLate) return this.showEnd(isLate);
    this.card = this.left.shift();
    const { draws } = this.card;
    this.ask(this.card, draws[Math.floor(Math.random() * draws.length)]);
  }

  ask(card, draw) {
    this.draw = draw;
    const page = new URL(`../tutorials/${card.stem}/`, PLACE);
    const step = element("a", { href: page, target: "_blank" }, card.title);
    this.fields = draw.choices.length ? choicesOf(draw) : [textField()];
    this.result = element("div", { class: "tn-result", role: "status", tabindex: "-1" });
    this.buttons = element(
      "div",
      { class: "tn-buttons" },
      element("button", { type: "submit", class: "tn-button tn-run" }, "Answer"),
      button("I do not know", () => this.answer("")),
      button("Stop", () => this.showEnd(false)),
    );
    const submit = (event) => {
      event.preventDefault();
      this.answered();
    };
    const question = element("legend", { id: "tn-question" }, draw.text);
    const rows = this.fields.map((field) => field.row);
    this.show(
      element("h2", {}, `Question ${this.asked + 1} of ${this.asked + this.left.length + 1}`),
      element("p", { class: "tn-about" }, step),
      ...(draw.program ? [programBlock(draw.program)] : []),
      element(
        "form",
        { class: "tn-question", submit },
        element("fieldset", {}, question, ...rows),
        this.buttons,
      ),
      this.result,
    );
    this.fields[0].input.focus();
  }

  // The learner pressed "Answer", or Enter.
  answered() {
    const { choices } = this.draw;
    const chosen = choices.length ? this.fields.find(({ input }) => input.checked) : this.fields[0];
    const text = chosen?.input.value.trim() ?? "";
    if (!text) {
      const words = choices.length ? "Choose an answer first" : "Write an answer first";
      this.result.textContent = `${words}, or press "I do not know".`;
      this.fields[0].input.focus();
      return;
    }
    this.answer(text);
  }

  // Judges an answer, keeps the state of the card, and explains.
  answer(text) {
    const { card, cards, draw } = this;
    const correct = isRight(draw, text);
    const state = after(cards.stateOf(card), correct, cards.today, cards.days);
    const warning = cards.save(card, state);
    this.asked += 1;
    this.right += correct ? 1 : 0;
    for (const { input } of this.fields) input.disabled = true;
    const verdict = correct ? "✓ Right." : `✗ No: ${draw.shown}.`;
    const words = element("span", { class: correct ? "tn-yes" : "tn-no" }, verdict);
    const again = `The question comes again on ${dateOf(state[1])}.`;
    this.result.replaceChildren(
      element("p", {}, words, ` ${draw.why}`),
      element("p", { class: "tn-about" }, again),
      ...(warning ? [element("p", { class: "tn-no" }, warning)] : []),
    );
    const label = this.left.length ? "Next question" : "See the result";
    const go = button(label, () => this.next(), { class: "tn-button tn-run" });
    this.buttons.replaceChildren(go);
    this.place.append(this.buttons);
    go.focus();
  }

  // A letter chooses its answer.
  choose(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.draw?.choices.length) return;
    if (/^(input|textarea|select)$/i.test(event.target.tagName) && event.target.type !== "radio") {
      return; // a text field, such as the search
    }
    const field = this.fields.find(({ letter }) => letter === event.key.toLowerCase());
    if (!field || field.input.disabled || !field.input.isConnected) return;
    field.input.checked = true;
    field.input.focus();
    event.preventDefault();
  }

  showEnd(isLate) {
    this.draw = null;
    const parts = [`${this.right} of ${this.asked} right.`];
    if (isLate) parts.push(`Time is up; ${questionsAre(this.left.length)} left for later.`);
    const day = this.cards.nextDay(this.cards.known(this.step));
    if (day > this.cards.today) parts.push(`The next questions: ${dateOf(day)}.`);
    const words = element("p", { role: "status", tabindex: "-1" }, parts.join(" "));
    const again = button("Back to the start", () => this.showStart());
    this.show(words, element("div", { class: "tn-buttons" }, again));
    words.focus();
  }
}

function programBlock(text) {
  const code = element("code", {}, ...highlighted(text.trimEnd()));
  return element("div", { class: "language-python highlight" }, element("pre", {}, code));
}

function textField() {
  const input = element("input", { type: "text", autocomplete: "off" });
  input.setAttribute("aria-labelledby", "tn-question");
  return { input, row: input, letter: "" };
}

function choicesOf(draw) {
  return lettered(draw.choices).map(([letter, choice]) => {
    const input = element("input", { type: "radio", name: "tn-choice", value: choice });
    return { input, row: element("label", {}, input, ` ${letter}) ${choice}`), letter };
  });
}

async function begin() {
  const place = document.getElementById("tinynode-review");
  const cards = await Cards.fetched(PLACE);
  window.tinynodeReview = new Review(place, cards);
  place.after(progressPanel(PLACE));
  tickMenu();
  document.documentElement.dataset.tinynode = "ready";
}

begin();
