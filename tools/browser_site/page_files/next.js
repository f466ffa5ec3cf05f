// The link to the next step, at the end of a page.

import { element } from "./elements.js";
import { isDone } from "./store.js";

// facts.next is {title, stem}, or null on the last page.
export function nextStep(facts, place) {
  const words = element("span", { class: "tn-passed", role: "status" });
  const panel = element("nav", { class: "tn-next" }, words);
  panel.setAttribute("aria-label", "Next step");
  const { title, stem } = facts.next ?? { title: "all steps", stem: "" };
  const address = new URL(`../tutorials/${stem ? `${stem}/` : ""}`, place);
  const link = element("a", { class: "tn-button", href: address }, `Next: ${title}`);
  panel.append(link);
  const show = () => {
    const done = isDone(facts.name);
    words.textContent = done ? "✓ This step is done." : "";
    words.hidden = !done;
    link.classList.toggle("tn-run", done);
  };
  return { element: panel, show };
}
