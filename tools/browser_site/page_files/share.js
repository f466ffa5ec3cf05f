// The panel with the link to a program: a title, the link, and buttons for the link.

import { button, element } from "./elements.js";
import { encode, LinkError, MOST_TITLE, number } from "./link.js";

const SHORT = 2000; // some programs for messages cut longer links

const TELLS =
  "The link has the whole program: a person with the link can read the program. Browsers do not " +
  "send the part after the # to a server.";

let count = 0;

export class SharePanel {
  // place: the address of the page that opens links
  // made(part, title) is called with each new part after the "#"
  constructor(place, { made = () => {}, note = "" } = {}) {
    this.place = place;
    this.made = made;
    count += 1;
    const [titleName, linkName] = [`tn-share-title-${count}`, `tn-share-link-${count}`];
    this.title = element("input", {
      id: titleName,
      type: "text",
      maxlength: String(MOST_TITLE),
      autocomplete: "off",
      input: () => this.write(),
    });
    this.link = element("input", {
      id: linkName,
      type: "text",
      readonly: true,
      focus: () => this.link.select(),
    });
    this.words = element("p", { class: "tn-share-words", role: "status" });
    this.copyButton = button("Copy the link", () => this.copy());
    this.open = element("a", { class: "tn-button", target: "_blank", rel: "noopener" }, "Open");
    this.sendButton = button("Send", () => this.send(), { hidden: !navigator.share });
    const close = button("Close", () => this.hide());
    const buttons = [this.copyButton, this.sendButton, this.open, close];
    this.element = element(
      "div",
      { class: "tn-share", role: "group", hidden: true },
      element("label", { for: titleName }, "Title", this.title),
      element("label", { for: linkName }, "Link", this.link),
      element("div", { class: "tn-buttons" }, ...buttons),
      this.words,
      element("p", {}, note ? `${TELLS} ${note}` : TELLS),
    );
    this.element.setAttribute("aria-label", "Share the program");
  }

  // Shows the link to a program. from is the button that gets the focus back.
  async show(program, title, from) {
    this.program = program;
    this.from = from;
    this.title.value = title;
    await this.write();
    this.element.hidden = false;
    this.element.scrollIntoView({ block: "nearest" });
    this.copyButton.focus({ preventScroll: true });
  }

  hide() {
    const hadFocus = this.element.contains(document.activeElement);
    this.element.hidden = true;
    if (hadFocus) this.from?.focus();
  }

  async write() {
    const title = this.title.value.trim();
    let part = "";
    try {
      part = await encode(this.program, title);
    } catch (error) {
      if (!(error instanceof LinkError)) throw error;
      this.words.textContent = `${error.message} Send the program as a file instead.`;
    }
    if (this.title.value.trim() !== title) return; // a later letter is under way
    const address = new URL(this.place);
    address.hash = part;
    this.link.value = part && address.href;
    this.open.href = part ? address.href : "";
    for (const one of [this.copyButton, this.sendButton]) one.disabled = !part;
    this.open.hidden = !part;
    if (!part) return;
    const length = this.link.value.length;
    const advice = length > SHORT ? " Some programs for messages cut so long a link." : "";
    this.words.textContent = `The link has ${number(length)} characters.${advice}`;
    this.made(part, title);
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.link.value);
    } catch {
      this.link.select(); // a page without https has no clipboard
      document.execCommand("copy");
      this.copyButton.focus();
    }
    this.words.textContent = "Copied.";
  }

  async send() {
    try {
      await navigator.share({ title: this.title.value, url: this.link.value });
    } catch {
      // the reader closed the window of the system
    }
  }
}
