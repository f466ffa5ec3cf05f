// The words of the page, explained where the pointer or the keyboard is, and in the legend.

const WORDS = {
  rank: "The rank of a function is the largest rank of its inputs. An output has the next rank. Backward takes the function with the largest rank first.",
  queue: "The functions that wait for their backward. All gradients of their outputs are complete when they run.",
  gradients:
    "The gradients at this step: those that backward works with, and those in the grad of a variable.",
  retained: "A retained array is kept by its function, because backward needs the array.",
  freed: "No variable and no function holds the array any more.",
  "used up": "The creator of the variable has run backward, and the gradient is not kept.",
  first: "The first contribution to a gradient.",
  added: "A contribution that is added to an earlier contribution.",
  seed: "The gradient that backward starts with: 1 for a loss.",
  grad: "The gradient that the user reads: x.grad.",
};

// A word with its explanation, for pointer, keyboard and screen reader.
function term(word, text) {
  const element = html("span", { class: "term", "data-word": word }, text);
  explain(element);
  return element;
}

function explain(element) {
  const help = WORDS[element.dataset.word];
  element.tabIndex = 0;
  element.setAttribute("aria-description", help);
  const show = () => showHelp(element, help);
  for (const name of ["pointerenter", "focus"]) element.addEventListener(name, show);
  for (const name of ["pointerleave", "blur"]) element.addEventListener(name, hideHelp);
}

function showHelp(element, help) {
  const box = element.getBoundingClientRect();
  const tip = find("tip");
  setText(tip, help);
  tip.hidden = false;
  const left = Math.min(box.left, innerWidth - tip.offsetWidth - 8);
  const below = box.bottom + 6;
  const top = below + tip.offsetHeight < innerHeight ? below : box.top - tip.offsetHeight - 6;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${top}px`;
}

function hideHelp() {
  find("tip").hidden = true;
}

function drawWords() {
  for (const [word, help] of Object.entries(WORDS)) {
    find("words").append(html("dt", null, word), html("dd", null, help));
  }
  for (const element of document.querySelectorAll(".term")) explain(element);
}
