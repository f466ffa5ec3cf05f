// Source, queue and table of gradients.

const KEYWORDS = (
  "and as assert async await break class continue def del elif else except finally for from " +
  "global if import in is lambda None nonlocal not or pass raise return True False try while " +
  "with yield"
).replaceAll(" ", "|");
const STRING = String.raw`"""[^]*?"""|'''[^]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`;
const PYTHON = new RegExp(String.raw`(#[^\n]*)|(${STRING})|\b(${KEYWORDS})\b|\b(\d[\w.]*)`, "g");
const TOKENS = ["comment", "string", "keyword", "digit"];

// The source as lines of coloured pieces. A piece over several lines is cut at their ends.
function colouredLines(text) {
  const lines = [[]];
  const add = (piece, kind) => {
    piece.split("\n").forEach((part, i) => {
      if (i > 0) lines.push([]);
      if (part) lines.at(-1).push(kind ? html("span", { class: kind }, part) : part);
    });
  };
  let end = 0;
  for (const match of text.matchAll(PYTHON)) {
    add(text.slice(end, match.index), null);
    add(match[0], TOKENS[match.slice(1).findIndex((group) => group !== undefined)]);
    end = match.index + match[0].length;
  }
  add(text.slice(end), null);
  return lines;
}

function codeView(text, firstLine) {
  const isNumbered = firstLine !== null;
  const items = colouredLines(text).map((pieces, i) =>
    html("li", { "data-line": isNumbered ? firstLine + i : null }, html("code", null, ...pieces)),
  );
  return html("ol", { class: isNumbered ? "numbered" : "plain" }, ...items);
}

const fileViews = new Map(); // each file is drawn once; a step only moves the mark
let shownFile = null;
let markedLine = null;

function showUserCode(step) {
  const panel = find("user-code");
  const file = film.files[step.at?.[0]];
  markedLine?.removeAttribute("aria-current");
  markedLine = null;
  if (!file) {
    setText(find("user-file"), "");
    shownFile = null;
    panel.replaceChildren(quietLine("No line of yours is known for this step."));
    return;
  }
  const key = step.at[0];
  setText(find("user-file"), `${file.name}, line ${step.at[1]}`);
  if (!fileViews.has(key)) fileViews.set(key, codeView(file.lines.join("\n"), file.first));
  if (shownFile !== key) panel.replaceChildren(fileViews.get(key));
  shownFile = key;
  markedLine = fileViews.get(key).children[step.at[1] - file.first] ?? null;
  markedLine?.setAttribute("aria-current", "true");
}

// Brings what is new into the view of its panel. To ask where an element is makes the browser
// place all of them: so this comes when all that changes in a step has changed.
function scrollPanels() {
  const newest = gradientRows.get(newRows.at(-1));
  if (isMethodNew) find("class-code").scrollTop = 0;
  isMethodNew = false;
  if (markedLine) scrollInside(find("user-code"), markedLine);
  if (newest) scrollInside(find("gradients"), newest);
  const shown = currentStep().function ?? currentStep().grad_outputs[0]?.[0];
  if (find("follow").checked && shown !== undefined) bringIntoView(shown);
}

// Scrolls a panel, never the page.
function scrollInside(panel, element) {
  const box = element.getBoundingClientRect();
  const frame = panel.getBoundingClientRect();
  panel.scrollTop += box.top - frame.top - (frame.height - box.height) / 2;
}

let shownMethod = null;
let isMethodNew = false;
let isWhole = false; // the reader wants the whole method

// The lines that compute; the method as in the file on demand.
function showClassCode(step) {
  const key = `${step.direction} ${step.class ?? step.function}`;
  if (key === shownMethod) return;
  shownMethod = key;
  isMethodNew = true;
  drawClassCode(step);
}

function drawClassCode(step) {
  const { direction } = step;
  const known = film.classes[step.class];
  const source = known?.[direction];
  const lesson = known?.lessons?.[direction];
  setText(find("method"), known ? `${step.class}.${direction}` : "The function's source");
  setText(find("class-file"), known?.file ?? "");
  const isBox = !step.class && step.function !== null;
  const nothing = isBox ? "A box has no source of its own: open it." : "No function runs in this step.";
  const why = step.class ? "The source is not known." : nothing;
  const text = isWhole || !lesson ? source : lesson;
  find("class-code").replaceChildren(
    ...(lesson ? [wholeButton(step)] : []),
    source ? codeView(text, null) : quietLine(why),
  );
}

function wholeButton(step) {
  const text = isWhole ? "Show only the lines that compute" : "Show the whole method";
  const button = html("button", { type: "button", class: "whole" }, text);
  button.addEventListener("click", () => {
    isWhole = !isWhole;
    drawClassCode(step);
    find("class-code").querySelector("button")?.focus({ preventScroll: true });
  });
  return button;
}

let shownQueue = null;

function showQueue(step) {
  const queue = step.queue;
  const key = JSON.stringify([queue, step.queued, step.kind]);
  if (key === shownQueue) return;
  shownQueue = key;
  setText(find("queued"), queue.length ? `${step.queued} by falling rank` : "");
  const rows = queue.map(([rank, id], i) =>
    html(
      "li",
      { class: i === 0 ? "next" : null, "data-node": id },
      html("span", { class: "rank" }, `rank ${rank}`),
      nodeButton(id, `queue ${i}`),
      html("span", { class: "quiet" }, i === 0 ? "runs next" : id),
    ),
  );
  const rest = step.queued - queue.length;
  if (rest > 0) rows.push(html("li", { class: "quiet" }, `and ${rest} more`));
  const text = isBackward(step)
    ? "Empty: no function is left."
    : "Empty: no backward pass is under way.";
  const list = rows.length ? html("ol", { class: "rows" }, ...rows) : quietLine(text);
  replaceContent(find("queue"), [list]);
}

// The table has a row for every node that ever gets a gradient, in that order; rows without one
// now are hidden. So a step changes a few rows, however many there are.
let gradientRows = new Map();
let newRows = [];
let gradientCount = 0;

function drawGradients() {
  gradientRows = new Map();
  [newRows, gradientCount] = [[], 0];
  for (const step of steps) {
    const ids = [...step.table.set, ...step.grad_inputs].map(([id]) => id);
    for (const id of [...ids, ...picture.shared]) {
      if (!gradientRows.has(id)) gradientRows.set(id, gradientRow(id));
    }
  }
  const rows = [...gradientRows.values()];
  find("gradients").replaceChildren(
    html("p", { class: "quiet", id: "no-gradients" }, "No variable has a gradient at this step."),
    html("ul", { class: "rows" }, ...rows),
    html("p", { class: "line quiet", id: "taken" }),
  );
  for (const id of gradientRows.keys()) updateGradientRow(id);
}

function gradientRow(id) {
  return html(
    "li",
    { "data-node": id, hidden: true },
    nodeButton(id, `row ${id}`),
    html("span"),
    html("span", { class: "tag" }),
  );
}

function showGradients(step, touched) {
  for (const id of newRows) markRow(id);
  for (const id of touched) updateGradientRow(id);
  newRows = isBackward(step) ? step.table.set.map(([id]) => id) : [];
  for (const id of newRows) markRow(id, howItCame(step, id));
  setText(find("gradient-count"), gradientCount ? String(gradientCount) : "");
  find("no-gradients").hidden = gradientCount > 0;
  const taken = usedGradients(step).map(nameOf);
  setText(find("taken"), taken.length ? `Used up in this step: ${taken.join(", ")}` : "");
}

function howItCame(step, id) {
  const how = step.grad_inputs.filter((entry) => entry[0] === id).map((entry) => entry[2]);
  if (how.includes("added")) return "added";
  return how.includes("first") ? "first" : "seed";
}

// The tag of a row: how the gradient came in this step, else "grad" for a gradient in x.grad.
function markRow(id, how = now.gradient.get(id) === undefined ? "grad" : "") {
  const [, , tagElement] = gradientRows.get(id).children;
  tagElement.className = `tag ${how}`;
  setText(tagElement, how);
}

function updateGradientRow(id) {
  const row = gradientRows.get(id);
  const number = gradientOf(id);
  if (!row) return;
  gradientCount += Number(row.hidden) - Number(number === undefined);
  row.hidden = number === undefined;
  if (row.hidden) return;
  row.children[1].replaceChildren(smallView(number));
  markRow(id);
}
