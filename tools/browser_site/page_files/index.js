// The list of steps: passed steps get a mark.

import { element } from "./elements.js";
import { passed } from "./store.js";

for (const link of document.querySelectorAll("article td:first-child a[href]")) {
  const stem = new URL(link.href).pathname.replace(/\/(index\.html)?$/, "").split("/").pop();
  const name = /^step\d\d/.exec(stem)?.[0] ?? stem.replace(/^(elective|capstone)_/, "");
  if (passed(name)) {
    link.after(" ", element("span", { class: "tn-passed", title: "passed" }, "✓ passed"));
  }
}
