// A folded film: boxes for calls of the program. A press on a box opens its inside.
//
// film.folds has for each iteration what it shows: iteration 0 is the whole film, and each other
// iteration is the inside of a box, in the iteration "around".

const folds = film.folds ?? [];

// The iteration with the inside of a box; -1 for a node that is no box.
function insideOf(id) {
  return folds.findIndex(({ box }) => box !== null && box === id);
}

// The iterations that the steps go through: of a folded film only the present one.
function firstOfRun() {
  return folds.length ? iteration : 0;
}

function lastOfRun() {
  return folds.length ? iteration : iterations.length - 1;
}

// Opens a box, at the first step of the present direction.
function openBox(id) {
  const inside = insideOf(id);
  if (inside < 0) return false;
  const isBack = isBackward(currentStep());
  const start = film.pictures[iterations[inside].picture].steps.findIndex(isBackward);
  byHand(() => go(isBack && start >= 0 ? start : 0, inside));
  find("focus").focus({ preventScroll: true });
  return true;
}

// Goes back to the iteration around an open box, to the step of the box.
function closeBox(number) {
  let box = null;
  for (let inside = iteration; inside !== number; inside = folds[inside].around) {
    box = folds[inside].box;
  }
  const isBack = isBackward(currentStep());
  const around = film.pictures[iterations[number].picture].steps;
  const kind = isBack ? "backward" : "forward";
  const step = around.findIndex((one) => one.function === box && one.kind === kind);
  byHand(() => go(Math.max(step, 0), number));
}

function leaveBox() {
  if (folds.length && iteration > 0) closeBox(folds[iteration].around);
}

// The open boxes, from the whole film to the present one: each is a button that goes back.
function showFolds() {
  if (!folds.length) return;
  const path = [];
  for (let number = iteration; number > 0; number = folds[number].around) path.unshift(number);
  const items = [0, ...path].map((number) => {
    const title = number === 0 ? "The whole film" : folds[number].title;
    if (number === iteration) return html("li", { "aria-current": "true" }, title);
    const button = html("button", { type: "button", "data-key": `fold ${number}` }, title);
    button.addEventListener("click", () => closeBox(number));
    return html("li", null, button);
  });
  find("folds").hidden = false;
  replaceContent(find("folds"), [html("ol", null, ...items)]);
}

// The button in the panel of a box.
function foldButton(id) {
  const inside = insideOf(id);
  if (inside < 0) return null;
  const button = html("button", { type: "button", "data-key": "open" }, `Open: ${folds[inside].title}`);
  button.addEventListener("click", () => openBox(id));
  return html("p", { class: "line" }, button);
}
