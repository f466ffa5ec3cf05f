// The cards of the course and what this browser knows about them, for reviews.

import { dayOf, inOrder, stateOf } from "./recall.js";
import { Store } from "./store.js";

export class Cards {
  // sheet: the content of review.json, {rule, cards}
  constructor({ rule, cards }) {
    this.days = rule.days;
    this.seconds = rule.seconds;
    this.all = cards;
  }

  static async fetched(place) {
    const answer = await fetch(new URL("review.json", place));
    if (!answer.ok) throw new Error(`review.json: ${answer.status}`);
    return new Cards(await answer.json());
  }

  // The day is asked again each time: a page stays open over midnight.
  get today() {
    return dayOf(new Date());
  }

  // The cards of passed steps; of one step, if a step is named.
  known(step = "") {
    const isChosen = (card) => (!step || card.step === step) && isPassed(card.step);
    return this.all.filter(isChosen);
  }

  stateOf(card) {
    return stateOf(reviewOf(card)[card.name], this.days);
  }

  due(step = "", ahead = false) {
    return inOrder(this.known(step), (card) => this.stateOf(card), this.today, this.days, ahead);
  }

  // The first day with a question, among the cards.
  nextDay(cards) {
    return Math.min(...cards.map((card) => this.stateOf(card)[1]));
  }

  // Keeps the state after an answer; returns a warning, or "". Another tab may have written.
  save(card, state) {
    const store = new Store(card.step);
    store.note({ review: { ...reviewOf(card), [card.name]: state } });
    return store.warning;
  }
}

// The exercise passes its checks: the terminal asks about the same steps.
const isPassed = (step) => new Store(step).get().passed === true;

const reviewOf = (card) => new Store(card.step).get().review ?? {};

export const questionsAre = (count) =>
  count === 1 ? "1 question is" : `${count} questions are`;
