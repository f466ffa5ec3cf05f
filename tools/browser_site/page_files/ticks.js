// Ticks for the steps that are done: in the list of steps, and in the menu of each page.

import { element } from "./elements.js";
import { isDone } from "./store.js";

// The name of a step of the course: the name of its entry in the store.
export function stepOf(address) {
  const stem = new URL(address).pathname.replace(/\/(index\.html)?$/, "").split("/").pop();
  return /^step\d\d/.exec(stem)?.[0] ?? stem.replace(/^(elective|capstone)_/, "");
}

// Puts a tick into each link to a done step; a second call adds the ticks that are new.
export function tickLinks(selector, words) {
  for (const link of document.querySelectorAll(selector)) {
    const isCourse = /\/(step\d\d|elective|capstone)_\w+\/?(index\.html)?$/.test(link.pathname);
    if (!isCourse || link.querySelector(".tn-passed") || !isDone(stepOf(link.href))) continue;
    link.append(" ", element("span", { class: "tn-passed", title: "done" }, words));
  }
}

export const tickMenu = () => tickLinks(".md-nav--primary a.md-nav__link[href]", "✓");
