// The list of steps: steps that are done get a mark, and a line says how many questions are due.

import { Cards, questionsAre } from "./cards.js";
import { element } from "./elements.js";
import { tickLinks, tickMenu } from "./ticks.js";

const PLACE = new URL(".", import.meta.url);

tickLinks("article td:first-child a[href]", "✓ done");
tickMenu();
sayDue();

// As the terminal's list says: only if a question is due.
async function sayDue() {
  const due = (await Cards.fetched(PLACE)).due();
  if (!due.length) return;
  const link = element("a", { href: new URL("../review/", PLACE) }, "Review");
  const words = `${questionsAre(due.length)} due on passed steps: `;
  document.querySelector("article h1").after(element("p", { class: "tn-due" }, words, link));
}
