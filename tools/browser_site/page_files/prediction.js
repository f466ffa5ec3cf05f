// The section "Predict" of a step: a field for the answer. The outputs below wait for a run.
//
// A learner commits to an answer before the output shows the answer. The first output below the
// section gets the answer beside it. Nothing is forced: a button shows all outputs at once.

import { button, element } from "./elements.js";

export class Prediction {
  // heading is the page's heading "Predict"; cells are all cells of the page
  constructor(heading, cells, store) {
    this.store = store;
    const { prediction = "", ran = {} } = store.get();
    this.cells = cells.filter((cell) => follows(heading, cell.element));
    for (const cell of this.cells) if (!ran[cell.number]) cell.cover();
    this.field = element("textarea", { rows: "2", id: "tn-prediction" });
    this.field.value = prediction;
    this.words = element("span", { role: "status" });
    const keep = button("Keep my prediction", () => this.keep(), { class: "tn-button tn-run" });
    const show = button("Show all outputs", () => this.cells.forEach((cell) => cell.uncover()));
    this.element = element(
      "div",
      { class: "tn-panel tn-predict" },
      element("label", { for: "tn-prediction" }, "Your prediction, before you run the cells"),
      this.field,
      element("div", { class: "tn-buttons" }, keep, show, this.words),
    );
    sectionEnd(heading).after(this.element);
  }

  get answer() {
    return this.field.value.trim();
  }

  keep() {
    const isKept = this.store.note({ prediction: this.answer });
    const kept = "Kept. The first output below shows your prediction beside it.";
    this.words.textContent = isKept ? kept : this.store.warning;
  }

  // The first cell below the section that has an output on the site answers the question.
  heardEnd(cell) {
    const first = this.cells.find((one) => one.hasOutput);
    if (cell === first && this.answer) cell.compare(this.answer);
  }
}

const follows = (heading, part) =>
  Boolean(heading.compareDocumentPosition(part) & Node.DOCUMENT_POSITION_FOLLOWING);

// The last element of the section of a heading: the next heading or cell ends the section.
function sectionEnd(heading) {
  let last = heading;
  for (let next = heading.nextElementSibling; next; next = next.nextElementSibling) {
    if (next.matches("h1, h2, h3, .tn-cell")) break;
    last = next;
  }
  return last;
}
