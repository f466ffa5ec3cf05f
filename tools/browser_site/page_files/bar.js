// The bar at the foot of the window: the state of Python, and buttons for the whole page.

import { button, element } from "./elements.js";

const WORDS = {
  idle: "Python is not loaded. The first run loads it from this site.",
  downloading: "Loading Python:",
  starting: "Python starts ...",
  ready: "Python is ready.",
  running: "Python is at work ...",
  stopped: "Stopped. The names that cells had defined are gone.",
  crashed: "Python ended with an error of its own. The next run starts it again.",
  failed: "Python could not be loaded.",
};

const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

export class Bar {
  // words: other words for a state. A page of one program has no runAll and no film.
  constructor({ runAll = null, film = null, stop, words = {} }) {
    this.said = { ...WORDS, ...words };
    this.words = element("span", { class: "tn-state", role: "status" }, WORDS.idle);
    this.amount = element("span", { class: "tn-amount", "aria-hidden": "true" });
    this.progress = element("progress", { "aria-label": "Download of Python", hidden: true });
    this.all = button("Run all", runAll, { hidden: !runAll });
    this.film = button("Film of my program", film, {
      title: "The forward and backward steps of the cells run so far",
      hidden: !film,
    });
    this.stop = button("Stop", stop, { class: "tn-button tn-stop", disabled: true });
    const state = element("div", { class: "tn-progress" }, this.words, this.amount, this.progress);
    const buttons = element("div", { class: "tn-buttons" }, this.all, this.film, this.stop);
    this.element = element("div", { class: "tn-bar", role: "region" }, state, buttons);
    this.element.setAttribute("aria-label", "Python on this page");
  }

  show({ state, done, total, error }) {
    this.element.dataset.state = state;
    const isLoading = state === "downloading";
    this.progress.hidden = !isLoading;
    this.amount.textContent = "";
    if (isLoading) {
      this.progress.max = total;
      this.progress.value = done;
      this.amount.textContent = `${megabytes(done)} of ${megabytes(total)} MB`;
    }
    const text = this.said[state] + (state === "failed" ? ` ${error.message}` : "");
    if (this.words.textContent !== text) this.words.textContent = text; // spoken at a change
    const isBusy = ["downloading", "starting", "running"].includes(state);
    this.stop.disabled = !isBusy;
    this.all.disabled = this.film.disabled = isBusy;
  }
}
