// The chain rule written out: the formula of a step, with arrays in the places of its letters.
//
// film.classes[key].chain has the docstring in parts, the letters of inputs and outputs, and each
// formula as tokens. Arrays that the film does not have remain letters.

const MOST_WRITTEN = 6; // more elements than this are a heat map
const MOST_CARDS = 6;
const MOST_TERMS = 8; // of a written sum
let shownLetters = new Map(); // of the step: the letters of the docstring as the page shows them

function chainParts(step) {
  if (step.kind === "forward") return [chainSection(forwardChains(step), "forward")];
  if (step.kind === "backward") return [chainSection(backwardChains(step), "backward")];
  if (step.kind === "end") return [chainSection(endChains(step), "backward")];
  return [];
}

function chainSection(cards, phase) {
  if (cards.length === 0) return null;
  const shown = cards.slice(0, MOST_CARDS);
  if (cards.length > MOST_CARDS) shown.push(quietLine(`and ${cards.length - MOST_CARDS} more below`));
  return html("section", { class: `chain ${phase}`, "aria-label": "Formula with numbers" }, ...shown);
}

// --- forward ----------------------------------------------------------------------------------

function forwardChains(step) {
  const chain = film.classes[step.class]?.chain;
  shownLetters = lettersOf(step, chain);
  return step.outputs.slice(0, 2).map(([id, value], i) => {
    const formula = chain?.formulas[chain.outputs[i]];
    const tokens = formula
      ? formula.tokens.map((token) => arrayOfToken(token, step, chain))
      : callTokens(step, chain);
    const result = { id, value, letter: chain?.outputs[i] ?? "", gradient: false };
    return equationCard(`chain ${i}`, result, "=", tokens, formula, axesLine(step, tokens, formula));
  });
}

// The class of a step's function, or the name of a box.
function functionName(step) {
  return step.class ?? nameOf(step.function);
}

// A function without a formula: its name, and the inputs.
function callTokens(step, chain) {
  const inputs = step.inputs.map(([id, value], i) => ({
    id,
    value,
    letter: chain?.inputs[i] ?? "",
    gradient: false,
  }));
  const listed = inputs.flatMap((input, i) => (i ? [{ text: "," }, input] : [input]));
  return [{ text: `${functionName(step)}(` }, ...listed, { text: ")" }];
}

// --- backward ---------------------------------------------------------------------------------

function backwardChains(step) {
  const there = gradientsBefore(step);
  const chain = film.classes[step.class]?.chain;
  shownLetters = lettersOf(step, chain);
  let next = 0;
  const cards = [];
  step.grad_inputs.forEach(([id, value, how, total], i) => {
    const index = step.inputs.findIndex(([input], at) => at >= next && input === id);
    next = index + 1;
    const old = there.get(id) ?? null;
    there.set(id, total ?? value);
    if (value === null) return;
    const isVariadic = chain?.inputs.length === 1 && chain.inputs[0].endsWith("_i");
    const letter = (isVariadic ? chain.inputs[0] : chain?.inputs[index]) ?? "";
    const formula = chain?.formulas[`dL/d${letter}`] ?? chain?.formulas[`dL/d${letter}_i`];
    const tokens = formula
      ? formula.tokens.map((token) => arrayOfToken(token, step, chain))
      : passedTokens(step, chain);
    const result = { id, value, letter, gradient: true };
    const isAdded = how === "added" && old !== null;
    const extra = isAdded ? contributionsView(step, i, id, old, value, total) : null;
    const axes = axesLine(step, tokens, formula);
    cards.push(equationCard(`chain ${i}`, result, isAdded ? "+=" : "=", tokens, formula, axes, extra));
  });
  return cards;
}

// A function without a formula: the gradients that went in.
function passedTokens(step, chain) {
  const came = step.grad_outputs
    .map(([id, value], i) => ({ id, value, letter: chain?.outputs[i] ?? "", gradient: true }))
    .filter(({ value }) => value !== null);
  const listed = came.flatMap((token, i) => (i ? [{ text: "," }, token] : [token]));
  return [{ text: `${functionName(step)}.backward(` }, ...listed, { text: ")" }];
}

// A token with the array that its letter stands for.
function arrayOfToken([kind, text, transposed], step, chain) {
  if (kind === "") return { text: withAxes(text, axesOf(step)) };
  const isGradient = kind === "gradient";
  const found = (entries, letters) => entries[letters.indexOf(text)];
  const entry = isGradient
    ? found(step.grad_outputs, chain.outputs)
    : (found(step.inputs, chain.inputs) ?? found(step.outputs, chain.outputs));
  if (!entry) return { text: isGradient ? `∂L/∂${text}` : text, isLetter: true };
  const [id, value] = entry;
  return { id, value, letter: text, gradient: isGradient, transposed: transposed === "T" };
}

// --- an equation ------------------------------------------------------------------------------

// Letters above, arrays below: dL/dx += dL/dz * y over [4 5 6] = [1 1 1] * [4 5 6].
function equationCard(key, result, sign, tokens, formula, ...extra) {
  const isMatrix = Boolean(formula?.matrix);
  const note = formula?.note ? [{ text: formula.note, isNote: true }] : [];
  const all = [result, { text: "=", above: sign }, ...tokens, ...note];
  const views = new Map();
  const columns = all.map((token) => columnView(token, isMatrix, views));
  const summed = formula?.summed ? summedLine(tokens, result) : null;
  const words = equationInWords(result, sign, tokens, summed);
  const card = html(
    "div",
    { class: "card equation-card" },
    html("div", { class: "equation", role: "group", "aria-label": words }, ...grouped(columns)),
    summed,
    ...extra,
  );
  const product = isMatrix ? matrixProduct(result, tokens, views) : null;
  if (product) card.append(readProduct(key, product));
  return card;
}

// The axes of a sum or a mean, if the equation does not name them.
function axesLine(step, tokens, formula) {
  const axes = formula ? axesOf(step) : null;
  if (axes === null || tokens.some(({ text }) => text?.includes(axes))) return null;
  const word = formula.note.includes("repeated") ? "repeated along" : "over";
  return html("p", { class: "summed" }, `${word} ${axes}`);
}

// Signs and words stay with the array behind them where the line is broken.
function grouped(columns) {
  const groups = [[]];
  for (const column of columns) {
    groups.at(-1).push(column);
    if (!column.matches(".operator, .letter, .note")) groups.push([]);
  }
  return groups.filter((group) => group.length).map((group) => html("span", { class: "together" }, ...group));
}

function columnView(token, isMatrix, views) {
  if (token.id === undefined) {
    const kind = token.isNote ? "note" : token.isLetter ? "letter" : "operator";
    return html(
      "span",
      { class: `column ${kind}` },
      html("span", { class: "above" }, token.above ?? token.text),
      html("span", { class: "below" }, token.text),
    );
  }
  const view = arrayView(token, isMatrix);
  views.set(token, view);
  const below = html("span", { class: "below" }, view.element);
  if (token.transposed) below.append(html("sup", null, "T"));
  return html("span", { class: token.gradient ? "column gradient" : "column" }, letterView(token), below);
}

// The variable's own name, with the letter of the docstring.
function letterView(token) {
  const name = nameOf(token.id);
  const button = nodeButton(token.id, `letter ${token.letter} ${token.gradient}`);
  const transposed = token.transposed ? html("sup", null, "T") : null;
  const shown = shownLetters.get(token.letter) ?? token.letter;
  const letter = shown && shown !== name ? html("span", { class: "quiet docletter" }, shown) : null;
  if (!token.gradient) return html("span", { class: "above" }, button, transposed, letter);
  const isLong = /[^\w.]/.test(name);
  const [opening, closing] = token.transposed ? ["(", ")"] : ["", ""];
  return html(
    "span",
    { class: "above" },
    `${opening}∂L/∂${isLong ? "(" : ""}`,
    button,
    `${isLong ? ")" : ""}${closing}`,
    transposed,
    letter,
  );
}

// An array in an equation: numbers, or a heat map. A null value remains a letter.
function arrayView(token, isMatrix) {
  if (token.value === null || token.value === undefined) {
    return { element: html("span", { class: "quiet" }, token.gradient ? "none" : token.letter), value: null };
  }
  const value = film.values[token.value];
  const isWritten = !value.thinned && !value.sampled && value.cells.length > 0
    && (value.cells.length <= MOST_WRITTEN || (isMatrix && isSmall(value)));
  if (isWritten) return writtenView(token.value, value);
  if (value.thinned || value.cells.length === 0) return { element: smallView(token.value), value: null };
  const image = heatMapImage(value);
  image.classList.add(isMatrix && value.rows > 1 ? "middle" : "small");
  const element = html(
    "span",
    { class: "mini", "data-value": token.value },
    image,
    html("span", null, `${shapeText(value.shape)}`),
  );
  element.title = rangeText(value);
  return { element, value, image };
}

function writtenView(number, value) {
  const isScalar = value.shape.length === 0;
  const cells = value.cells.map((cell) => html("span", { class: "cell" }, numberText(cell)));
  const grid = html(
    "span",
    { class: isScalar ? "array scalar" : "array", "data-value": number },
    ...cells.flatMap((cell, i) => (i % value.columns ? [" ", cell] : i ? ["\n", cell] : [cell])),
  );
  grid.style.gridTemplateColumns = `repeat(${value.columns}, auto)`;
  return { element: grid, value, cells };
}

function wordOf(token) {
  if (token.id === undefined) return token.text;
  const own = nameOf(token.id);
  const name = token.gradient ? `dL/d${/[^\w.]/.test(own) ? `(${own})` : own}` : own;
  return token.transposed ? `${name} transposed` : name;
}

function numbersOf(token) {
  if (token.id === undefined) return token.text;
  const value = token.value === null || token.value === undefined ? null : film.values[token.value];
  if (value === null) return token.letter;
  if (value.thinned || value.sampled || value.cells.length > MOST_NUMBERS) return `array ${shapeText(value.shape)}`;
  const rows = [];
  for (let row = 0; row < value.rows; row++) {
    rows.push(value.cells.slice(row * value.columns, (row + 1) * value.columns).map(numberText).join(", "));
  }
  if (value.shape.length < 2) return value.shape.length ? `[${rows.join()}]` : rows.join();
  return `[${rows.map((row) => `[${row}]`).join(", ")}]`;
}

// "dL/dx += dL/dz · y: [1, 1, 1] · [4, 5, 6] = [4, 5, 6]"
function equationInWords(result, sign, tokens, summed) {
  const letters = tokens.map(wordOf).join(" ");
  const numbers = tokens.map(numbersOf).join(" ");
  const axes = summed ? `, ${summed.textContent.replace("∑", "")},` : "";
  return `${wordOf(result)} ${sign} ${letters}: ${numbers}${axes} = ${numbersOf(result)}`;
}

// --- broadcasting -----------------------------------------------------------------------------

// The axes of a sum that brings a broadcast array back to the shape of the input.
function summedLine(tokens, result) {
  const shapes = tokens
    .filter((token) => token.id !== undefined && typeof token.value === "number")
    .map((token) => film.values[token.value].shape);
  const isMatrix = tokens.some(({ text }) => text === "@");
  const target = film.values[result.value].shape;
  const full = isMatrix ? null : broadcastOf([...shapes, target]);
  if (full === null || full.join() === target.join()) return null;
  const more = full.length - target.length;
  const axes = full.map((size, axis) => axis).filter((axis) => axis < more || full[axis] !== target[axis - more]);
  const words = `the sum over ${axesInWords(full, axes)}: `;
  return html(
    "p",
    { class: "summed" },
    html("span", { class: "sign" }, "∑"),
    html("span", null, words, html("span", { class: "number" }, `${shapeText(full)} → ${shapeText(target)}`)),
  );
}

function broadcastOf(shapes) {
  const length = Math.max(0, ...shapes.map((shape) => shape.length));
  const full = new Array(length).fill(1);
  for (const shape of shapes) {
    for (const [i, size] of shape.entries()) {
      const axis = length - shape.length + i;
      if (full[axis] !== 1 && size !== 1 && size !== full[axis]) return null;
      if (size !== 1) full[axis] = size;
    }
  }
  return full;
}

// --- contributions ----------------------------------------------------------------------------

// [1 1 1] from Add + [4 5 6] from Multiply = [5 6 7].
function contributionsView(step, i, id, old, value, total) {
  const earlier = earlierContributions(step, i, id);
  const name = film.classes[step.class] ? step.class : nameOf(step.function);
  const parts = earlier.length > 0 && earlier.length <= 3 ? earlier : [{ value: old, from: "so far", at: null }];
  return additionView(id, [...parts, { value, from: `from ${name}`, at: null }], total);
}

// What the end of a pass adds to a gradient from before the pass.
function endChains(step) {
  const there = gradientsBefore(step);
  return step.grad_inputs
    .map(([id, value, how, total]) => ({ id, value, how, total, old: there.get(id) ?? null }))
    .filter(({ how, value }) => how === "added" && value !== null)
    .map(({ id, value, total, old }) => {
      const parts = [
        { value: old, letter: `${nameOf(id)}.grad`, from: "from before this pass", at: null },
        { value, from: "from this pass", at: null },
      ];
      const head = letterView({ id, letter: "", gradient: true });
      head.classList.add("head");
      return html("div", { class: "card equation-card" }, head, additionView(id, parts, total));
    });
}

function additionView(id, parts, total) {
  const columns = parts.map(contributionColumn).flatMap((column, k) => (k ? [operatorColumn("+"), column] : [column]));
  if (total !== null) {
    columns.push(operatorColumn("="), contributionColumn({ value: total, from: "now", at: null }));
  }
  const words = parts.map(({ value, letter, from }) => `${numbersOf({ id, value, letter })} ${from}`).join(" + ");
  const sum = total === null ? "" : ` = ${numbersOf({ id, value: total })}`;
  const label = `gradient of ${nameOf(id)}: ${words}${sum}`;
  return html("div", { class: "equation contributions", role: "group", "aria-label": label }, ...grouped(columns));
}

function operatorColumn(text) {
  return html("span", { class: "column operator" }, html("span", { class: "above" }, text), html("span", { class: "below" }));
}

// An array that the film does not have remains a letter.
function contributionColumn({ value, letter, from, at }) {
  const numbers = html("span", { class: "above" }, arrayView({ value, letter }, false).element);
  if (at === null) return html("span", { class: "column" }, numbers, html("span", { class: "below quiet" }, from));
  const button = html("button", { type: "button", class: "name", "data-key": `from ${at}` }, from);
  button.addEventListener("click", () => go(at));
  return html("span", { class: "column" }, numbers, html("span", { class: "below" }, button));
}

// The gradients that came for a variable before, in this pass: seeds, steps, this step's own.
function earlierContributions(step, i, id) {
  const at = steps.indexOf(step);
  let start = at;
  while (start > 0 && !(steps[start].kind === "sweep" && steps[start].depth === step.depth)) start--;
  const found = [];
  const add = (entry, from, index) => {
    if (entry[0] === id && entry[1] !== null) found.push({ value: entry[1], from, at: index });
  };
  for (let index = start; index < at; index++) {
    const other = steps[index];
    if (other.depth !== step.depth) continue;
    if (other.kind === "sweep") for (const entry of other.grad_outputs) add(entry, "the seed", index);
    if (other.kind === "backward") for (const entry of other.grad_inputs) add(entry, `from ${other.class}`, index);
  }
  for (const entry of step.grad_inputs.slice(0, i)) add(entry, `from ${functionName(step)}`, null);
  return found;
}

// --- matrix products --------------------------------------------------------------------------

// Left, right and what is added, if their shapes are those of a product of matrices.
function matrixProduct(result, tokens, views) {
  const factors = tokens.filter((token) => token.id !== undefined || token.isLetter);
  const [left, right, plus] = factors.map((token) => factorOf(token, views));
  const whole = factorOf(result, views);
  if (!left || !right || !whole.value) return null;
  const isFlat = ({ value, isT }) => value === null || value.shape.length <= 2 || !isT;
  if (tokens.some(({ text }) => text === "@") && ![left, right, whole].every(isPlain)) return null;
  if (!isFlat(right) || !left.value && !right.value) return null;
  const fits = (a, b) => a === undefined || b === undefined || a === b;
  const isProduct = fits(left.rows, whole.rows) && fits(right.columns, whole.columns) && fits(left.columns, right.rows);
  return isProduct ? { left, right, plus: plus ?? null, whole, name: result.letter } : null;
}

function isPlain({ value }) {
  return value === null || value.shape.length === 2;
}

// An array as a factor: its true rows and columns, after it is transposed.
function factorOf(token, views) {
  const view = views.get(token);
  const isT = Boolean(token.transposed);
  if (!view?.value) return { value: null, isT, view: null };
  const { value } = view;
  const columns = value.shape.at(-1) ?? 1;
  const rows = columns ? value.shape.reduce((a, b) => a * b, 1) / columns : 0;
  return { value, view, isT, rows: isT ? columns : rows, columns: isT ? rows : columns };
}

// Marks an element of the product, the row and the column that made it, and writes the sum.
function readProduct(key, { left, right, plus, whole }) {
  const hint = "Point at an element (or arrow keys): row, column and sum.";
  const readout = html("output", { class: "readout product" }, hint);
  const element = whole.view.element;
  const { rows, columns } = whole.value;
  let [row, column] = [0, 0];
  const show = () => {
    clear();
    markCells(whole, (r, c) => r === row && c === column, "pointed");
    const at = (factor, number, size) => Math.floor(((number + 0.5) / size) * (factor === null ? 1 : factor));
    const shownRow = at(shownSize(left, false), row, rows);
    const shownColumn = at(shownSize(right, true), column, columns);
    markCells(left, (r, c) => (left.isT ? c : r) === shownRow, "row");
    markCells(right, (r, c) => (right.isT ? r : c) === shownColumn, "column");
    const shownPlus = plus?.value ? at(plus.value.columns, column, columns) : 0;
    if (plus?.value) markCells(plus, (r, c) => c === shownPlus, "row");
    setText(readout, writtenSum(left, right, plus, whole, row, column));
  };
  const clear = () => {
    for (const factor of [left, right, plus, whole]) if (factor?.view) unmark(factor.view);
  };
  const leave = () => {
    clear();
    setText(readout, hint);
  };
  element.tabIndex = 0;
  element.classList.add("points");
  element.dataset.key = `${key} product`;
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", `product, ${rows} by ${columns} elements. Arrow keys read elements.`);
  element.addEventListener("pointermove", (event) => {
    [row, column] = cellUnder(whole.view, event) ?? [row, column];
    show();
  });
  element.addEventListener("pointerleave", leave);
  element.addEventListener("focus", show);
  element.addEventListener("blur", leave);
  element.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move || hasModifier(event)) return;
    row = Math.max(0, Math.min(rows - 1, row + move[0]));
    column = Math.max(0, Math.min(columns - 1, column + move[1]));
    show();
    event.preventDefault(); // here, arrows do not step through the film
    event.stopPropagation();
  });
  return readout;
}

// The drawn rows of a factor, or its drawn columns.
function shownSize(factor, isColumn) {
  if (!factor.value) return null;
  return isColumn === factor.isT ? factor.value.rows : factor.value.columns;
}

function cellUnder({ cells, image, value }, event) {
  if (cells) {
    const index = cells.indexOf(event.target.closest(".cell"));
    return index < 0 ? null : [Math.floor(index / value.columns), index % value.columns];
  }
  const box = image.getBoundingClientRect();
  const part = (number, size) => Math.max(0, Math.min(size - 1, Math.floor(number * size)));
  return [
    part((event.clientY - box.top) / box.height, value.rows),
    part((event.clientX - box.left) / box.width, value.columns),
  ];
}

// The marked cells of an array: a cell, a row or a column; one frame on a heat map.
function markCells({ view, value }, isMarked, kind) {
  if (!view) return;
  const marked = value.cells
    .map((_, index) => [Math.floor(index / value.columns), index % value.columns])
    .filter(([row, column]) => isMarked(row, column));
  if (marked.length === 0) return;
  if (view.cells) {
    for (const [row, column] of marked) view.cells[row * value.columns + column].classList.add(kind);
    return;
  }
  const [[y, x], [lastY, lastX]] = [marked[0], marked.at(-1)];
  const [width, height] = [lastX - x + 1, lastY - y + 1];
  view.image.append(svg("rect", { x, y, width, height, class: `band ${kind}` }));
}

function unmark(view) {
  if (view.cells) for (const cell of view.cells) cell.classList.remove("pointed", "row", "column");
  else for (const band of view.image.querySelectorAll(".band")) band.remove();
}

// "[0, 1] = 1*4 + 2*5 = 14", if the film has all numbers of the sum.
function writtenSum(left, right, plus, whole, row, column) {
  const number = numberText(whole.value.cells[row * whole.value.columns + column]);
  const place = cellName(whole.value, row, column);
  const isWritten = [left, right, whole].every((factor) => factor.value && !factor.value.sampled);
  if (!isWritten) return `${place} ${number}`;
  const cell = ({ value, isT }, r, c) => numberText(value.cells[isT ? c * value.columns + r : r * value.columns + c]);
  const terms = [];
  for (let k = 0; k < left.columns; k++) terms.push(`${inBrackets(cell(left, row, k))}*${inBrackets(cell(right, k, column))}`);
  if (terms.length > MOST_TERMS) terms.splice(3, terms.length - 4, "...");
  if (plus?.value) terms.push(inBrackets(numberText(plus.value.cells[column % plus.value.cells.length])));
  return `${place} ${terms.join(" + ")} = ${number}`;
}

function inBrackets(text) {
  return text.startsWith("-") ? `(${text})` : text;
}
