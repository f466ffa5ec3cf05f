// A cell of the page: an editor in place of the code, buttons, and the output below.

import { Editor } from "./editor.js";
import { button, element, picture, textBlock } from "./elements.js";
import { frameOf } from "./frames.js";

export class Cell {
  // block is the page's code, followed by the output of the site's own run
  constructor(block, original, number, { changed, run, runAbove, runWithAbove, share }) {
    this.original = original;
    this.number = number;
    this.ran = false; // since Python began
    this.runWithAbove = runWithAbove;
    this.editor = new Editor(`Code of cell ${number + 1}`, original, {
      changed: () => {
        this.mark();
        this.panel?.hide();
        changed();
      },
      run: () => run(this),
    });
    this.count = element("span", { class: "tn-count" }, `Cell ${number + 1}`);
    this.runButton = button("Run", () => run(this), {
      class: "tn-button tn-run",
      "aria-label": `Run cell ${number + 1}`,
      title: "Shift+Enter",
    });
    const above = button("Run all above", () => runAbove(this), {
      "aria-label": `Run all cells above cell ${number + 1}`,
    });
    const shareButton = button("Share", () => share(shareButton), {
      "aria-label": `Share the program up to cell ${number + 1} as a link`,
    });
    this.resetButton = button("Reset", () => this.reset(changed), {
      "aria-label": `Reset cell ${number + 1} to the original`,
      hidden: true,
    });
    const bar = element("div", { class: "tn-cell-bar" }, this.count, this.runButton);
    if (number > 0) bar.append(above);
    bar.append(shareButton, this.resetButton);
    this.bar = bar;
    this.output = element("div", { class: "tn-output", role: "log", hidden: true });
    this.output.setAttribute("aria-label", `Output of cell ${number + 1}`);
    this.element = element("div", { class: "tn-cell" }, this.editor.element, bar, this.output);
    this.before = outputsAfter(block);
    block.replaceWith(this.element);
    if (this.before.length) this.coverPlace = this.coverOf(this.before[0]);
  }

  // In place of the site's output: a button that shows the output.
  coverOf(output) {
    const show = button("Show the output without a run", () => this.uncover(), {
      "aria-label": `Show the output of cell ${this.number + 1} without a run`,
    });
    const cover = element("div", { class: "tn-cover", hidden: true }, show);
    output.before(cover);
    return cover;
  }

  // Hides the site's output until a run: the reader has predicted nothing so far.
  cover() {
    if (!this.coverPlace) return;
    this.coverPlace.hidden = false;
    for (const part of this.before) part.hidden = true;
  }

  uncover() {
    if (!this.coverPlace || this.coverPlace.hidden) return;
    this.coverPlace.hidden = true;
    for (const part of this.before) part.hidden = false;
  }

  // A tick beside the cell's name: the cell has run to its end.
  tick() {
    this.count.textContent = `Cell ${this.number + 1} ✓`;
    this.count.classList.add("tn-passed");
  }

  // True if the cell prints or shows something on the site.
  get hasOutput() {
    return this.before.length > 0;
  }

  get text() {
    return this.editor.text;
  }

  set text(text) {
    this.editor.text = text;
    this.mark();
  }

  mark() {
    this.resetButton.hidden = this.text === this.original;
  }

  reset(changed) {
    this.text = this.original;
    this.clear();
    this.output.hidden = true;
    for (const part of this.before) part.hidden = false;
    changed();
    this.editor.field.focus();
  }

  clear() {
    this.printed = null;
    this.output.replaceChildren();
    this.element.classList.remove("tn-failed");
  }

  begin() {
    this.clear();
    this.output.hidden = false;
    this.uncover();
    for (const part of this.before) part.hidden = true;
    this.element.classList.add("tn-running");
  }

  end() {
    this.element.classList.remove("tn-running");
    this.output.hidden = this.output.childElementCount === 0;
  }

  hear(event) {
    if (event.event === "printed") this.print(event.text);
    else if (event.event === "error") this.fail(event.text, event.missing);
    else if (event.event === "output") this.show(event);
  }

  print(text) {
    if (!this.printed) {
      this.printed = textBlock("");
      this.output.append(this.printed);
    }
    this.printed.append(text);
  }

  show({ shown, svg, html }) {
    this.ran = true;
    if (shown) this.print(shown);
    if (svg) this.output.append(picture(svg));
    if (html) this.output.append(element("div", { class: "output" }, frameOf(html)));
  }

  // missing: the earlier cells, from 0, that define what the cell lacks
  fail(text, missing = []) {
    this.element.classList.add("tn-failed");
    this.output.append(textBlock(text, "tn-text tn-error"));
    if (!missing.length) return;
    const words = "Run all above, then this cell";
    this.output.append(button(words, () => this.runWithAbove(this), { class: "tn-button tn-run" }));
  }

  // Puts the reader's prediction below the output.
  compare(answer) {
    const words = element("strong", {}, "You predicted: ");
    this.output.append(element("p", { class: "tn-predicted" }, words, answer));
  }
}

// The output that the site shows below a block of code.
function outputsAfter(block) {
  const found = [];
  for (let next = block.nextElementSibling; next; next = next.nextElementSibling) {
    const isImage = next.matches("p") && next.children.length === 1 &&
      next.firstElementChild.matches("img") && !next.textContent.trim();
    if (!next.matches(".language-text, .output") && !isImage) break;
    found.push(next);
  }
  return found;
}
