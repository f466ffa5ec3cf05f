// The rule of reviews: which question is due, which answer is right, and when the card comes again.
//
// The terminal has the same rule: tinynode_course/recall/review.py and card.py. The days of the
// boxes come from there, in review.json, and a test compares both rules. A state is a list, as in
// the progress file of the terminal: [box, day, right, asked]. The file needs no page.

const NEW = [0, 0, 0, 0];
const FIRST_DAY = 719_163; // the day 1970-01-01, when the day 0001-01-01 is 1, as Python counts

// The number of a date's day, in the reader's own time zone.
export function dayOf(date) {
  const midnight = Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());
  return Math.round(midnight / 86_400_000) + FIRST_DAY;
}

// The date of a day, such as "2026-11-29".
export function dateOf(day) {
  return new Date((day - FIRST_DAY) * 86_400_000).toISOString().slice(0, 10);
}

// The state of a card; a new state for numbers of another form.
export function stateOf(found, days) {
  const isKnown =
    Array.isArray(found) &&
    found.length === 4 &&
    found.every((number) => Number.isInteger(number) && number >= 0) &&
    found[0] < days.length;
  return isKnown ? found : NEW;
}

// The state after an answer: the next box, or the first box.
export function after([box, , right, asked], isRight, today, days) {
  if (!isRight) return [0, today + days[0], right, asked + 1];
  const next = asked ? Math.min(box + 1, days.length - 1) : 0;
  return [next, today + days[next], right + 1, asked + 1];
}

// True on the day and later, and for a day that no box gives: a clock was wrong.
export function isDue([, day], today, days) {
  return day <= today || day > today + days.at(-1);
}

// The due cards: those asked before by box and day, then the new ones by step.
export function inOrder(cards, stateOfCard, today, days, ahead = false) {
  const place = (card) => {
    const [box, day, , asked] = stateOfCard(card);
    return [asked === 0 ? 1 : 0, box, day];
  };
  const before = (one, other) => {
    const k = one.findIndex((number, i) => number !== other[i]);
    return k < 0 ? 0 : one[k] - other[k];
  };
  return cards
    .filter((card) => ahead || isDue(stateOfCard(card), today, days))
    .sort((one, other) => before(place(one), place(other)));
}

// The choices with the letters a, b, c ...
export const lettered = (choices) =>
  choices.map((choice, i) => [String.fromCharCode("a".charCodeAt(0) + i), choice]);

// True for the right answer: a number, the letter of a choice, or the text.
export function isRight(draw, text) {
  let answer = text.trim();
  if (draw.distance === null) {
    const letter = answer.toLowerCase().replace(/[).]+$/, "");
    for (const [known, choice] of lettered(draw.choices)) if (letter === known) answer = choice;
    return plain(answer) === plain(draw.answer);
  }
  return Math.abs(numberOf(answer) - draw.answer) <= draw.distance;
}

const plain = (text) =>
  text
    .replace(/[\s()[\]]/g, "")
    .toLowerCase()
    .replace(/[,.]+$/, "");

// "2.5", "2,5", "1/3" or "-4"; NaN for another text.
function numberOf(text) {
  const [top, bottom, ...more] = text.replaceAll(",", ".").replaceAll("\u2212", "-").split("/");
  if (more.length) return NaN;
  return decimal(top) / decimal(bottom?.trim() ? bottom : "1");
}

const decimal = (text) =>
  /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(text) ? Number(text) : NaN;
