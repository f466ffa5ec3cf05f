// An editor: a text field over the same text in colours, with the numbers of the lines.
//
// Keys: Tab and Shift+Tab move lines by four spaces, Enter keeps the indentation. After Escape,
// Tab goes to the next element. Shift+Enter and Ctrl+Enter run.

import { element } from "./elements.js";
import { highlighted } from "./highlight.js";

const INDENT = "    ";

export class Editor {
  // changed() is called after each edit, run() by the keys
  constructor(label, text, { changed = () => {}, run = null } = {}) {
    this.changed = changed;
    this.run = run;
    this.leaving = false;
    this.colours = element("code", { "aria-hidden": "true" });
    this.field = element("textarea", {
      "aria-label": label,
      "aria-description": "Tab indents. Escape, then Tab, leaves the editor.",
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      autocorrect: "off",
      wrap: "off",
      rows: "1",
      input: () => this.edited(),
      keydown: (event) => this.key(event),
      blur: () => (this.leaving = false),
    });
    this.numbers = element("div", { class: "tn-lines", "aria-hidden": "true" });
    const inner = element("div", { class: "tn-layers" }, this.numbers, this.colours, this.field);
    this.element = element("div", { class: "tn-editor highlight" }, inner);
    this.text = text;
  }

  get text() {
    return this.field.value;
  }

  set text(text) {
    this.field.value = text;
    this.draw();
  }

  edited() {
    this.draw();
    this.changed();
  }

  // The text in colours, and the numbers of its lines: messages name lines.
  draw() {
    const { value } = this.field;
    this.colours.replaceChildren(...highlighted(value));
    this.count = value.split("\n").length;
    this.mark(0);
  }

  // Marks the number of a line, from 1, for an error there; 0 marks none.
  mark(line) {
    const numbers = Array.from({ length: this.count }, (_, i) => `${i + 1}`);
    if (line < 1 || line > this.count) {
      this.numbers.textContent = numbers.join("\n");
      return;
    }
    const before = numbers.slice(0, line - 1).map((number) => `${number}\n`).join("");
    const after = numbers.slice(line).map((number) => `\n${number}`).join("");
    const marked = element("span", { class: "tn-bad-line" }, numbers[line - 1]);
    this.numbers.replaceChildren(before, marked, after);
  }

  key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && (event.shiftKey || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.run?.();
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.type("\n" + this.indentation());
    } else if (event.key === "Tab" && !this.leaving && !event.ctrlKey && !event.altKey) {
      event.preventDefault();
      this.indent(event.shiftKey);
    }
    if (event.key !== "Shift") this.leaving = event.key === "Escape";
  }

  // Replaces the selection; the browser's undo knows it.
  type(text) {
    if (!document.execCommand("insertText", false, text)) {
      this.field.setRangeText(text, this.field.selectionStart, this.field.selectionEnd, "end");
      this.edited();
    }
  }

  indentation() {
    const before = this.field.value.slice(0, this.field.selectionStart);
    const line = before.slice(before.lastIndexOf("\n") + 1);
    return /^ */.exec(line)[0] + (line.trimEnd().endsWith(":") ? INDENT : "");
  }

  indent(back) {
    const { value, selectionStart, selectionEnd } = this.field;
    if (!back && selectionStart === selectionEnd) {
      this.type(INDENT);
      return;
    }
    const start = value.lastIndexOf("\n", selectionStart - 1) + 1;
    const lines = value.slice(start, selectionEnd).split("\n");
    const moved = lines.map((line) => (back ? line.replace(/^ {1,4}/, "") : INDENT + line));
    const text = moved.join("\n");
    this.field.setSelectionRange(start, selectionEnd);
    this.type(text);
    this.field.setSelectionRange(start, start + text.length);
  }
}
