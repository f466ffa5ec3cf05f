// Change a number and go on: the reader presses an element of an array, and the program runs again
// with another number there. All later steps are new; the page of the comparison has both films.
//
// The offer stands where Python can run: see rerun.js. In a notebook, the page has no way to the
// kernel; there the form has a line of Python to paste.

const isInNotebook = film.host === "notebook";
const canChange = canRun || (runner !== null && film.host === "course") || isInNotebook;
const changesMade = (compared?.changes ?? []).map(([, , , change]) => change);

// By the kind of a step, the lists of arrays that a change can name.
const LISTS_TO_CHANGE = {
  value: { forward: ["inputs", "outputs"], update: ["updates"] },
  gradient: {
    sweep: ["grad_outputs"],
    backward: ["grad_outputs", "grad_inputs"],
    end: ["grad_inputs"],
    update: ["updates"],
  },
};

// The button in the head of the panel of a step.
function connectChange() {
  if (!canChange) return;
  find("change-number").hidden = false;
  onClick("change-number", () => {
    const wishes = wishesOfStep(currentStep());
    if (wishes.length) openChange(find("focus-body"), wishes);
    else openNote("This step has no number to change: go to another step.");
  });
}

function openNote(text) {
  find("focus-body").querySelector(".change-note")?.remove();
  find("focus-body").prepend(html("p", { class: "notice change-note", role: "alert" }, text));
}

// --- where numbers can be pressed --------------------------------------------------------------

// An array as shown in a panel, with elements to press. `part` is "value" or "gradient".
function changeable(view, id, part) {
  const isArray = view.dataset.value !== undefined;
  const array = isArray ? view : [...view.querySelectorAll(".value")].at(-1); // of a sum, the total
  const value = film.values[array?.dataset.value];
  const at = stepOfChange(id, part);
  if (value === undefined || at === undefined) return view;
  markChanged(array, value, id, part, at);
  if (!canChange || !isChangeable(value)) return view;
  const open = (index) => openChange(array, [{ value, name: nameOf(id), part, at }], index);
  const table = array.querySelector("table.numbers");
  const frame = array.querySelector(".heat-frame");
  if (table) pressCells(table, value, open);
  else if (frame && !value.sampled) pressHeatMap(frame, value, open);
  if (!table) array.append(changeButton("Change a number", () => open(null)));
  return view;
}

// The step of a change: the present one, or for a variable in focus the next one that uses it.
function stepOfChange(id, part) {
  const has = (index) => isInStep(steps[index], id, part);
  if (has(position)) return position;
  if ((previewed ?? pinned) === null) return undefined;
  const uses = steps.map((_, index) => index).filter(has);
  const before = uses.filter((index) => index < position).at(-1);
  const after = uses.find((index) => index > position);
  return part === "gradient" ? (before ?? after) : (after ?? before);
}

function isInStep(step, id, part) {
  const ofLearner = film.classes[step.class]?.name.startsWith("mynode."); // the course's own engine
  const lists = LISTS_TO_CHANGE[part][step.kind] ?? [];
  const known = (list, entry) => list === "updates" || entry[1] !== null;
  return !ofLearner && lists.some((list) => step[list].some((entry) => entry[0] === id && known(list, entry)));
}

// One cell takes the keyboard; the arrows go from cell to cell.
function pressCells(table, value, open) {
  const cells = [...table.querySelectorAll("td")];
  cells.forEach((cell, number) => {
    cell.setAttribute("role", "button");
    cell.setAttribute("title", "Change this number");
    cell.tabIndex = number === 0 ? 0 : -1;
    cell.addEventListener("click", () => open(indexOf(value, number)));
    cell.addEventListener("keydown", (event) => {
      const move = MOVES[event.key];
      if (hasModifier(event) || !(move || event.key === "Enter" || event.key === " ")) return;
      event.preventDefault();
      if (move) focusCell(cells, number, move, value);
      else open(indexOf(value, number));
    });
  });
  table.classList.add("changeable");
}

function focusCell(cells, number, [down, right], value) {
  const column = (number % value.columns) + right;
  const target = column < 0 || column >= value.columns ? undefined : cells[number + down * value.columns + right];
  if (!target) return;
  cells[number].tabIndex = -1;
  target.tabIndex = 0;
  target.focus();
}

function pressHeatMap(frame, value, open) {
  const here = () => open(indexOf(value, Number(frame.dataset.cell ?? 0)));
  frame.addEventListener("click", here);
  frame.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || hasModifier(event)) return;
    event.preventDefault();
    here();
  });
  frame.classList.add("changeable");
}

// The settings of an optimizer with a single number, such as lr.
function settingsOf(step) {
  if (step.kind !== "update") return [];
  const found = [...step.optimizer.matchAll(/\b([A-Za-z_]\w*)=(-?[\d.]+(?:e[-+]?\d+)?)(?=[,)])/g)];
  return found.map(([, name, now]) => ({ name, now, part: "setting", at: position }));
}

function settingsLine(step) {
  const wishes = canChange ? settingsOf(step) : [];
  if (wishes.length === 0) return null;
  const line = html("div", { class: "settings" });
  for (const wish of wishes) {
    const open = () => openChange(line, [wish]);
    line.append(changeButton(`${wish.name} = ${wish.now}`, open, `Change ${wish.name}`));
  }
  return line;
}

function changeButton(text, action, label = text) {
  const button = html("button", { type: "button", class: "to-change", title: label }, text);
  button.addEventListener("click", action);
  return button;
}

// The index of an element, from its number.
function indexOf(value, number) {
  const index = [];
  for (const size of [...value.shape].reverse()) {
    index.unshift(number % size);
    number = Math.floor(number / size);
  }
  return index;
}

function numberOfElement(value, index) {
  return value.shape.reduce((number, size, axis) => number * size + ((index[axis] + size) % size), 0);
}

// --- the form ----------------------------------------------------------------------------------

// All that can be changed in the present step: arrays, gradients and settings.
function wishesOfStep(step) {
  const wishes = [];
  for (const part of ["value", "gradient"]) {
    const lists = LISTS_TO_CHANGE[part][step.kind] ?? [];
    for (const id of new Set(lists.flatMap((list) => step[list].map(([node]) => node)))) {
      const value = film.values[arrayToChange(step, id, part)];
      const isKnown = value && stepOfChange(id, part) === position && isChangeable(value);
      if (isKnown) wishes.push({ value, name: nameOf(id), part, at: position });
    }
  }
  return [...wishes, ...settingsOf(step)];
}

function arrayToChange(step, id, part) {
  const find = (list) => step[list].find(([node]) => node === id);
  if (part === "value") return (find("inputs") ?? find("outputs") ?? find("updates"))?.[1];
  const given = step.grad_inputs.findLast(([node]) => node === id);
  return given ? (given[3] ?? given[1]) : (find("grad_outputs")?.[1] ?? find("updates")?.[2]);
}

function isChangeable(value) {
  return !value.dtype.startsWith("complex") && !value.shape.includes(0);
}

function whatOf({ part, name }) {
  return part === "gradient" ? `gradient of ${name}` : name;
}

// A form above a view; no <form>, since a sandboxed frame submits none. `wishes` are the arrays to
// choose from; with an index, there is one.
function openChange(view, wishes, index = null) {
  pause();
  document.querySelector(".change")?.remove();
  const back = document.activeElement;
  const text = (id, label, size) =>
    html("input", { type: "text", id, size, autocomplete: "off", spellcheck: "false", "aria-label": label });
  const choice = html("select", { id: "change-what", "aria-label": "What to change" });
  wishes.forEach((wish, number) => choice.append(html("option", { value: number }, whatOf(wish))));
  const place = text("change-index", "The element: a whole number for each axis", 7);
  const input = text("change-to", "The new number", 10);
  const bracketed = html("span", null, "[", place, "]");
  const facts = html("span", { class: "quiet" });
  const form = html("div", { class: "change", role: "group", "aria-label": "Change a number" },
    html("p", null, `In step ${wishes[0].at + 1}, let `, wishes.length > 1 ? choice : whatOf(wishes[0]), bracketed, " = ", input, " ", facts),
    html("p", { class: "quiz-buttons" },
      html("button", { type: "button", class: "main" }, isInNotebook ? "Show the line of Python" : "Go on from here"),
      html("button", { type: "button", class: "stop", hidden: true }, "Stop"),
      html("button", { type: "button", class: "close" }, "Close"),
      html("span", { role: "status" }),
    ),
    html("p", { class: "notice", role: "alert", hidden: true }),
  );
  const chosen = () => wishes[Number(choice.value || 0)];
  const showNow = () => {
    const { value, now } = chosen();
    const cell = value ? elementOf(value, wholeNumbers(place.value)) : undefined;
    input.value = now ?? (cell === undefined ? "" : numberText(cell));
    setText(facts, value && value.shape.length ? `shape ${shapeText(value.shape)}` : "");
  };
  const choose = () => {
    const { value } = chosen();
    bracketed.hidden = !value || value.shape.length === 0;
    place.value = (index ?? value?.shape.map(() => 0) ?? []).join(", ");
    showNow();
  };
  choice.addEventListener("change", choose);
  place.addEventListener("input", showNow);
  const close = () => (form.remove(), back?.focus?.({ preventScroll: true }));
  const submit = () => submitChange(form, chosen());
  form.addEventListener("keydown", (event) => {
    const isSubmit = event.key === "Enter" && event.target.matches("input");
    if (event.key !== "Escape" && !isSubmit) return;
    event.preventDefault();
    if (isSubmit) submit();
    else close();
  });
  form.querySelector(".main").addEventListener("click", submit);
  form.querySelector(".close").addEventListener("click", close);
  form.querySelector(".stop").addEventListener("click", () => post("stop", {}));
  choose();
  view.prepend(form);
  (index === null && wishes.length > 1 ? choice : input).focus({ preventScroll: true });
  input.select();
  form.scrollIntoView({ block: "nearest" });
}

// The number of an element, if the page has it.
function elementOf(value, index) {
  if (value.sampled || value.thinned || !fitsShape(index, value.shape)) return undefined;
  return value.cells[numberOfElement(value, index)];
}

function fitsShape(index, shape) {
  return index?.length === shape.length && index.every((number, axis) => number < shape[axis]);
}

function submitChange(form, { value, name, part, at }) {
  const to = numberIn(form.querySelector("#change-to").value);
  const index = value ? wholeNumbers(form.querySelector("#change-index").value) : [];
  if (to === undefined) {
    tellProblem(form, "Write a number such as 0.5 or 1e-3, or nan, inf, -inf.");
  } else if (value && !fitsShape(index, value.shape)) {
    tellProblem(form, `Write ${value.shape.length} whole numbers, for the shape ${shapeText(value.shape)}.`);
  } else {
    const loop = iterations.length > 1 ? iteration + 1 : null;
    const changes = [...changesMade, { step: at + 1, name, index, to, part, iteration: loop }];
    if (isInNotebook) showPython(form, changes);
    else runChanges(form, changes);
  }
}

// A finite number; "nan", "inf" and "-inf" as text; else undefined.
function numberIn(text) {
  const word = text.trim().toLowerCase().replace("\u2212", "-");
  if (["nan", "inf", "-inf"].includes(word)) return word;
  const isNumber = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/.test(word);
  return isNumber && Number.isFinite(Number(word)) ? Number(word) : undefined;
}

function wholeNumbers(text) {
  if (text.trim() === "") return [];
  const words = text.split(",").map((word) => word.trim());
  return words.every((word) => /^\d{1,9}$/.test(word)) ? words.map(Number) : null;
}

function tellProblem(form, text) {
  const element = form.querySelector("[role=alert]");
  element.hidden = !text;
  setText(element, text);
}

// Runs the program with changes. After a success, the new film stands in the place of this page.
async function runChanges(form, changes) {
  if (isRunning) return;
  isRunning = true;
  tellProblem(form, "");
  setText(form.querySelector("[role=status]"), "The program runs …");
  const stop = form.querySelector(".stop");
  if (stop) stop.hidden = runner !== runOnServer;
  let error;
  try {
    error = await runner(program, changes);
  } catch (problem) {
    error = `The program did not run: ${problem.message}`;
  }
  isRunning = false;
  if (stop) stop.hidden = true;
  setText(form.querySelector("[role=status]"), error ? "" : "Done.");
  tellProblem(form, error ? lastLines(error) : "");
}

// Of a long output, the reason at its start and its end.
function lastLines(text) {
  const lines = text.split("\n");
  return lines.length <= 8 ? text : [lines[0], "…", ...lines.slice(-6)].join("\n");
}

// --- in a notebook -----------------------------------------------------------------------------

function showPython(form, changes) {
  form.querySelector(".python")?.remove();
  const line = `tn.show.what_if(program, ${listOf(changes.map(pythonOf))})`;
  const field = html("textarea", { readonly: true, rows: 3, spellcheck: "false", "aria-label": "A line of Python" });
  field.value = line;
  tellProblem(form, "");
  form.append(
    html("div", { class: "python" },
      html("p", null, "Paste this line into a cell. ", html("code", null, "program"), " is a function without arguments that runs the recorded code."),
      field,
    ),
  );
  field.focus();
  field.select();
}

function listOf(words) {
  return words.length === 1 ? words[0] : `[${words.join(", ")}]`;
}

function pythonOf({ step, name, index, to, part, iteration: number }) {
  const tuple = index.length === 1 ? `(${index[0]},)` : `(${index.join(", ")})`;
  const words = [`step=${step}`, `name=${JSON.stringify(name)}`];
  if (index.length) words.push(`index=${tuple}`);
  words.push(`to=${typeof to === "string" ? `float("${to}")` : String(to)}`);
  if (part !== "value") words.push(`part="${part}"`);
  if (number !== null) words.push(`iteration=${number}`);
  return `tn.show.Change(${words.join(", ")})`;
}

// --- what was changed --------------------------------------------------------------------------

// Marks the elements that were changed in a step.
function markChanged(view, value, id, part, at) {
  for (const [number, step, words, change] of compared?.changes ?? []) {
    const isHere = number === iteration && step === at && change.part === part && change.name === nameOf(id);
    if (!isHere || at !== position) continue;
    const cell = view.querySelectorAll("table.numbers td")[numberOfElement(value, change.index)];
    cell?.classList.add("changed");
    view.append(html("p", { class: "changed-words" }, words));
  }
}

function drawChanges() {
  if (!compared?.changes) return;
  const panel = find("changes");
  panel.hidden = false;
  const status = html("span", { role: "status" });
  const alert = html("p", { class: "notice", role: "alert", hidden: true });
  const list = compared.changes.map(([number, step, words], index) =>
    html("li", null, goButton(words, number, step), canRunAgain() ? undoButton(panel, index) : null),
  );
  const title = list.length === 1 ? "A number was changed" : `${list.length} numbers were changed, in turn`;
  const parts = [
    html("h2", null, title),
    html("ol", null, ...list),
    compared.losses ? html("table", { id: "losses" }) : null,
    compared.note ? html("p", { class: "notice" }, compared.note) : null,
    html("p", { class: "quiz-buttons" }, canRunAgain() ? backButton(panel) : null, status),
    alert,
  ];
  panel.append(...parts.filter((part) => part !== null));
}

function canRunAgain() {
  return canChange && !isInNotebook;
}

function goButton(words, number, step) {
  const button = html("button", { type: "button", class: "name", title: "Go to this step" }, words);
  button.addEventListener("click", () => byHand(() => goFreely(step, number)));
  return button;
}

function undoButton(panel, index) {
  const left = changesMade.filter((_, other) => other !== index);
  return changeButton("Undo", () => runChanges(panel, left), "Run without this change");
}

function backButton(panel) {
  const button = html("button", { type: "button", id: "without-changes" }, "Back to the film without changes");
  button.addEventListener("click", () => runChanges(panel, []));
  return button;
}

// The loss before and after: of the present iteration, and of the last one.
function showLosses() {
  if (!compared?.losses) return;
  const [name, before, after] = compared.losses;
  const head = ["", "before", "after"].map((word) => html("th", { scope: "col" }, word));
  const last = [before.at(-1), after.at(-1)];
  const isLoop = Math.max(before.length, after.length) > 1;
  const here = lossRow(`${name}, iteration ${iteration + 1}`, before[iteration], after[iteration]);
  const end = lossRow(isLoop ? `${name}, last iteration` : name, ...last);
  find("losses").replaceChildren(
    html("thead", null, html("tr", null, ...head)),
    html("tbody", null, ...(isLoop ? [here, end] : [end])),
  );
}

function lossRow(title, ...numbers) {
  const cells = numbers.map((number) => html("td", null, number === undefined ? "none" : numberText(number)));
  return html("tr", null, html("th", { scope: "row" }, title), ...cells);
}
