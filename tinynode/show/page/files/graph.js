// The graph: nodes and edges, their looks at a step, zoom and view.

const view = find("view");
const graph = find("graph");
let nodeElements = new Map();
let repeats = new Map(); // the further boxes of a leaf
let edgeElements = [];
let edgesBornIn = [];
let readingOrder = [];

let roles = {}; // node id -> "lit", "input", "output" in this step
let litEdges = new Set();
let pinned = null; // the node that was clicked, or kept with Enter
let previewed = null; // the node that the keyboard is on

// Draws the present picture in place of the one before.
function drawGraph() {
  [nodeElements, repeats] = [new Map(), new Map()];
  edgesBornIn = edgesBorn(picture.edges, steps);
  readingOrder = [...nodes.values()].sort((a, b) => a.rank - b.rank || a.y - b.y || a.x - b.x);
  [roles, litEdges, reachableNode] = [{}, new Set(), null];
  graph.setAttribute("viewBox", `0 0 ${picture.width} ${picture.height}`);
  graph.replaceChildren(arrowHeads());
  edgeElements = picture.edges.map(({ path }) => svg("path", { d: pathText(path) }));
  graph.append(...edgeElements);
  for (const node of picture.nodes) {
    const element = nodeElement(node);
    if (node.of === null) nodeElements.set(node.id, element);
    else repeats.set(node.of, [...(repeats.get(node.of) ?? []), element]);
    graph.append(element);
  }
  picture.edges.forEach((_, index) => updateEdge(index));
  for (const id of nodes.keys()) updateNode(id);
}

// Heads of arrows: one for each look of an edge, chosen in the style sheet.
function arrowHeads() {
  const looks = ["plain", "backward", "lit-forward", "lit-backward"];
  return svg("defs", null, ...looks.flatMap((look) => [arrowHead(look)]));
}

function arrowHead(look) {
  return svg(
    "marker",
    {
      id: `head-${look}`,
      viewBox: "0 0 8 8",
      refX: 7,
      refY: 4,
      markerWidth: 8,
      markerHeight: 8,
      markerUnits: "userSpaceOnUse",
      orient: "auto-start-reverse",
    },
    svg("path", { d: "M0 0.5 8 4 0 7.5z", class: `head ${look}` }),
  );
}

// Two numbers are the end of a line, six those of a curve.
function pathText([start, ...rest]) {
  const parts = rest.map((numbers) => (numbers.length === 2 ? "L" : "C") + numbers.join(" "));
  return `M${start.join(" ")}${parts.join("")}`;
}

function nodeElement(node) {
  const left = node.x - node.w / 2;
  const top = node.y - node.h / 2;
  const element = svg(
    "g",
    node.of === null
      ? { "data-id": node.id, tabindex: -1, role: "button" }
      : { "data-of": node.of, "aria-hidden": "true" },
    svg("title", null, [node.label, ...node.facts].join("\n")),
    svg("rect", {
      class: "box",
      x: left,
      y: top,
      width: node.w,
      height: node.h,
      rx: node.kind === "variable" ? Math.min(14, node.h / 2) : 2,
    }),
    svg("text", { class: "label", x: node.x, y: top + 16 }, shortened(node.label)),
    ...node.facts.map((fact, i) =>
      svg("text", { class: factClass(fact), x: node.x, y: top + 30 + 13 * i }, shortened(fact)),
    ),
  );
  if (node.kind === "variable" && node.of === null) {
    const numbers = top + 24 + 13 * node.facts.length;
    element.append(
      svg("g", { class: "numbers-here", transform: `translate(${node.x} ${numbers})` }),
      svg("rect", { class: "mark kept", x: left - 4, y: top - 4, width: 9, height: 9 }),
      svg("path", { class: "mark gradient", d: `M${left + node.w - 9} ${top - 5}h13l-6.5 11z` }),
    );
  }
  const id = node.of ?? node.id;
  element.addEventListener("click", () => openBox(id) || pin(id));
  element.addEventListener("focus", () => preview(node.of ?? node.id));
  return element;
}

function factClass(fact) {
  return fact.startsWith("! ") ? "fact found" : "fact"; // the words of a finding
}

function shortened(text) {
  return text.length <= 40 ? text : `${text.slice(0, 39)}…`;
}

function updateNode(id) {
  const node = nodes.get(id);
  const element = nodeElements.get(id);
  const role = roles[id];
  const names = ["node", node.kind, node.phase];
  const said = [];
  if (insideOf(id) >= 0) (names.push("fold"), said.push("a press opens it"));
  if (!now.born.get(id)) (names.push("unborn"), said.push("not there yet"));
  if (role === "lit")
    (names.push("lit", directionOfStep()), said.push(`runs ${directionOfStep()}`));
  else if (role) (names.push(role, directionOfStep()), said.push(`${role} of this step`));
  if (now.kept.get(id)) (names.push("has-kept"), said.push("array retained for backward"));
  if (gradientOf(id) !== undefined) (names.push("has-gradient"), said.push("has a gradient"));
  if (now.freed.get(id)) (names.push("freed"), said.push("freed"));
  if (id === pinned) names.push("pinned");
  setAttribute(element, "class", names.join(" "));
  for (const again of repeats.get(id) ?? []) {
    setAttribute(again, "class", [...names, "again"].join(" "));
  }
  if (node.kind === "variable") said.push(...showNumbers(node, element));
  setAttribute(element, "aria-label", [node.label, node.kind, ...node.facts, ...said].join(", "));
  setAttribute(element, "aria-pressed", String(id === pinned));
}

// The value and the gradient in a variable's box. Returns both as words.
function showNumbers(node, element) {
  const value = now.value.get(node.id);
  const gradient = gradientOf(node.id);
  const place = element.querySelector(".numbers-here");
  const shown = `${value} ${gradient}`;
  if (place.dataset.shown !== shown) {
    place.dataset.shown = shown;
    place.replaceChildren(...numbersInBox(node, value, gradient));
  }
  const words = [];
  if (value !== undefined) words.push(`value ${inWords(value)}`);
  if (gradient !== undefined) words.push(`gradient ${inWords(gradient)}`);
  return words;
}

const MOST_IN_BOX = 6; // more numbers than these are drawn as a heat map
const MAP = { width: 66, height: 40 };

function isTextInBox(value) {
  return value.shape.reduce((product, size) => product * size, 1) <= MOST_IN_BOX;
}

function numbersInBox(node, value, gradient) {
  const views = [];
  const isText = [value, gradient].every((n) => n === undefined || isTextInBox(film.values[n]));
  for (const [number, kind, mark, line] of [
    [value, "value", "", 0],
    [gradient, "gradient", "∇ ", 1],
  ]) {
    if (number === undefined) continue;
    const array = film.values[number];
    if (isText) {
      const text = svg("text", { class: kind, y: 8 + 13 * line }, mark + cellsText(array));
      text.dataset.value = number;
      views.push(text);
    } else {
      const column = node.takes_gradient ? line : 0.5;
      views.push(mapInBox(array, number, kind, mark, column));
    }
  }
  return views;
}

// A heat map with its range: column 0 is on the left, 1 on the right, 0.5 in the middle.
function mapInBox(array, number, kind, mark, column) {
  const left = column * (MAP.width + 8) - MAP.width - 4;
  const group = svg("g", { class: `map ${kind}`, transform: `translate(${left} 2)` });
  group.dataset.value = number;
  if (array.cells.length) {
    const [rows, columns] = [array.rows, array.columns];
    const scale = Math.min(MAP.width / columns, MAP.height / rows);
    const isImage = array.shape.length > 2 && !array.thinned;
    const [across, down] = isImage ? [scale, scale] : [MAP.width / columns, MAP.height / rows];
    const image = heatMapImage(array);
    for (const [name, size] of [
      ["x", (MAP.width - columns * across) / 2],
      ["width", columns * across],
      ["height", rows * down],
    ]) {
      image.setAttribute(name, size);
    }
    group.append(image);
  }
  group.append(
    svg("rect", { class: "frame", width: MAP.width, height: MAP.height }),
    svg("text", { class: "range", x: MAP.width / 2, y: MAP.height + 10 }, mark + shortRange(array)),
  );
  if (!array.cells.length) {
    const text = array.thinned ? `mean ${shortNumber(array.mean)}` : "empty";
    group.append(svg("text", { class: "range", x: MAP.width / 2, y: MAP.height / 2 + 3 }, text));
  }
  return group;
}

function cellsText(value) {
  const text = value.cells.map(numberText).join(", ");
  return value.shape.length ? `[${text}]` : text;
}

function shortNumber(cell) {
  return typeof cell === "number" ? String(Number(cell.toPrecision(2))) : numberText(cell);
}

function shortRange(value) {
  return value.min === value.max
    ? shortNumber(value.min)
    : `${shortNumber(value.min)}…${shortNumber(value.max)}`;
}

function inWords(number) {
  const value = film.values[number];
  return isTextInBox(value) ? cellsText(value) : `${shapeText(value.shape)}, ${rangeText(value)}`;
}

// A node's gradient at this step: the one that a sweep works with, else the user's x.grad.
function gradientOf(id) {
  return now.gradient.get(id) ?? now.grad.get(id);
}

function directionOfStep() {
  return currentStep()?.direction ?? "forward";
}

function isBackward(step) {
  return step?.direction === "backward";
}

function updateEdge(index) {
  const edge = picture.edges[index];
  const names = ["edge", edge.phase];
  if (edge.born > position) names.push("unborn");
  if (litEdges.has(index)) names.push(`lit-${directionOfStep()}`);
  setAttribute(edgeElements[index], "class", names.join(" "));
}

// Draws what changed, and nothing else: a step of a film of 1,000 nodes touches about ten.
function updateGraph(touchedNodes, touchedEdges) {
  const oldRoles = roles;
  const oldEdges = litEdges;
  roles = currentStep()?.roles ?? {};
  litEdges = new Set(currentStep()?.lit);
  for (const id of new Set([...touchedNodes, ...Object.keys(oldRoles), ...Object.keys(roles)])) {
    if (nodes.has(id)) updateNode(id);
  }
  for (const index of new Set([...touchedEdges, ...oldEdges, ...litEdges])) updateEdge(index);
  const reachable = nodeElements.get(currentStep()?.function ?? readingOrder[0]?.id);
  if (!graph.contains(document.activeElement)) setReachable(reachable);
}

// One node at a time can be reached with Tab; arrow keys go on from there.
let reachableNode = null;

function setReachable(element) {
  if (!element || element === reachableNode) return;
  reachableNode?.setAttribute("tabindex", "-1");
  element.setAttribute("tabindex", "0");
  reachableNode = element;
}

function focusNode(id) {
  setReachable(nodeElements.get(id));
  reachableNode.focus({ preventScroll: true });
  bringIntoView(id);
}

function moveInGraph(distance) {
  const index = readingOrder.findIndex((node) => node.id === reachableNode?.dataset.id);
  const next = readingOrder[Math.max(0, Math.min(readingOrder.length - 1, index + distance))];
  if (next) focusNode(next.id);
}

// Zoom: `scale` is pixels of the page for each pixel of the layout.
let scale = 1;
let isFitted = true;

function setScale(newScale) {
  const oldScale = scale;
  const x = (view.scrollLeft + view.clientWidth / 2) / oldScale;
  const y = (view.scrollTop + view.clientHeight / 2) / oldScale;
  scale = Math.max(0.05, Math.min(3, newScale));
  graph.setAttribute("width", picture.width * scale);
  graph.setAttribute("height", picture.height * scale);
  setAttribute(graph, "class", scale >= 0.5 ? "full" : scale >= 0.25 ? "shapes" : "dots");
  view.scrollLeft = x * scale - view.clientWidth / 2;
  view.scrollTop = y * scale - view.clientHeight / 2;
}

function scaleThatFits() {
  const room = 2; // or a scroll bar shows up
  const across = (view.clientWidth - room) / picture.width;
  const down = (view.clientHeight - room) / picture.height;
  return Math.min(across, down, 1.25);
}

function fit() {
  isFitted = true;
  setScale(scaleThatFits());
}

function zoom(factor) {
  isFitted = false;
  setScale(scale * factor);
}

// A large graph would be too small to read: it opens larger, and the view follows the steps.
function fitAtStart() {
  fit();
  if (scale < 0.55) {
    isFitted = false;
    setScale(0.8);
  }
}

function wantsLittleMotion() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

function bringIntoView(id) {
  const node = nodes.get(id);
  if (!node) return;
  const x = node.x * scale;
  const y = node.y * scale;
  const isInside =
    isWithin(x, view.scrollLeft, view.clientWidth) &&
    isWithin(y, view.scrollTop, view.clientHeight);
  if (isInside) return;
  view.scrollTo({
    left: x - view.clientWidth / 2,
    top: y - view.clientHeight / 2,
    behavior: wantsLittleMotion() || timer !== null ? "auto" : "smooth",
  });
}

// Whether a place lies in a part of the view, and not at its very edge.
function isWithin(place, start, length) {
  const margin = Math.min(60, length / 3);
  return place > start + margin && place < start + length - margin;
}

function pan(x, y) {
  view.scrollBy({
    left: x * 120,
    top: y * 120,
    behavior: wantsLittleMotion() ? "auto" : "smooth",
  });
}

// A mouse drags the graph; fingers scroll it as they scroll everything.
function dragToPan() {
  let last = null;
  view.addEventListener("pointerdown", (event) => {
    const isMouse = event.pointerType === "mouse" && event.button === 0;
    if (isMouse && !event.target.closest(".node")) last = event;
  });
  view.addEventListener("pointermove", (event) => {
    if (last === null) return;
    view.scrollBy(last.clientX - event.clientX, last.clientY - event.clientY);
    last = event;
  });
  for (const name of ["pointerup", "pointerleave"])
    view.addEventListener(name, () => (last = null));
}
