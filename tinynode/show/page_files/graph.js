// The graph: nodes and edges, their looks at a step, zoom and view.

const view = find("view");
const graph = find("graph");
const nodeElements = new Map();
const edgeElements = [];
const edgesBetween = new Map(); // "v0 f1" -> numbers of edges
const readingOrder = [...film.nodes].sort((a, b) => a.rank - b.rank || a.y - b.y || a.x - b.x);

let roles = new Map(); // node id -> "lit", "input", "output" in this step
let litEdges = new Set();
let pinned = null; // the node that was clicked, or kept with Enter
let previewed = null; // the node that the keyboard is on

function drawGraph() {
  graph.setAttribute("viewBox", `0 0 ${film.width} ${film.height}`);
  graph.append(arrowHeads());
  const isDown = film.edges.every(({ points }) => points.at(-1)[1] >= points[0][1]);
  film.edges.forEach((edge, index) => {
    const path = svg("path", { d: edgePath(edge.points, isDown) });
    edgeElements.push(path);
    const key = `${edge.from} ${edge.to}`;
    edgesBetween.set(key, [...(edgesBetween.get(key) ?? []), index]);
    graph.append(path);
  });
  for (const node of film.nodes) {
    const element = nodeElement(node);
    nodeElements.set(node.id, element);
    graph.append(element);
  }
  film.edges.forEach((_, index) => updateEdge(index));
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

// A curve through the points, in the direction of the layers at each of them.
function edgePath(points, isDown) {
  let path = `M${points[0][0]} ${points[0][1]}`;
  for (let i = 1; i < points.length; i++) {
    const [x0, y0] = points[i - 1];
    const [x, y] = points[i];
    const middle = isDown ? (y0 + y) / 2 : (x0 + x) / 2;
    const isStraight = isDown ? x0 === x : y0 === y;
    if (isStraight) path += `L${x} ${y}`;
    else if (isDown) path += `C${x0} ${middle} ${x} ${middle} ${x} ${y}`;
    else path += `C${middle} ${y0} ${middle} ${y} ${x} ${y}`;
  }
  return path;
}

function nodeElement(node) {
  const left = node.x - node.w / 2;
  const top = node.y - node.h / 2;
  const element = svg(
    "g",
    { "data-id": node.id, tabindex: -1, role: "button" },
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
      svg("text", { class: "fact", x: node.x, y: top + 30 + 13 * i }, shortened(fact)),
    ),
  );
  if (node.kind === "variable") {
    element.append(
      svg("rect", { class: "mark kept", x: left - 4, y: top - 4, width: 9, height: 9 }),
      svg("path", { class: "mark gradient", d: `M${left + node.w - 9} ${top - 5}h13l-6.5 11z` }),
    );
  }
  element.addEventListener("click", () => pin(node.id));
  element.addEventListener("focus", () => preview(node.id));
  return element;
}

function shortened(text) {
  return text.length <= 40 ? text : `${text.slice(0, 39)}…`;
}

function updateNode(id) {
  const node = nodes.get(id);
  const element = nodeElements.get(id);
  const role = roles.get(id);
  const names = ["node", node.kind, node.phase];
  const said = [];
  if (!now.born.get(id)) (names.push("unborn"), said.push("not there yet"));
  if (role === "lit")
    (names.push("lit", directionOfStep()), said.push(`runs ${directionOfStep()}`));
  else if (role) (names.push(role, directionOfStep()), said.push(`${role} of this step`));
  if (now.kept.get(id)) (names.push("has-kept"), said.push("array kept for backward"));
  if (gradientOf(id) !== undefined) (names.push("has-gradient"), said.push("has a gradient"));
  if (now.freed.get(id)) (names.push("freed"), said.push("freed"));
  if (id === pinned) names.push("pinned");
  setAttribute(element, "class", names.join(" "));
  setAttribute(element, "aria-label", [node.label, node.kind, ...node.facts, ...said].join(", "));
  setAttribute(element, "aria-pressed", String(id === pinned));
}

// A node's gradient at this step: the one that a sweep works with, else the user's x.grad.
function gradientOf(id) {
  return now.gradient.get(id) ?? now.grad.get(id);
}

function directionOfStep() {
  return isBackward(currentStep()) ? "backward" : "forward";
}

function isBackward(step) {
  return step !== null && step.kind !== "forward";
}

function updateEdge(index) {
  const edge = film.edges[index];
  const names = ["edge", edge.phase];
  if (edge.born > position) names.push("unborn");
  if (litEdges.has(index)) names.push(`lit-${directionOfStep()}`);
  setAttribute(edgeElements[index], "class", names.join(" "));
}

// Who plays which part in a step: the function is lit, its inputs and outputs are outlined.
function rolesOf(step) {
  const found = new Map();
  if (step === null) return found;
  for (const [id] of [...step.outputs, ...step.grad_outputs]) found.set(id, "output");
  for (const [id] of [...step.inputs, ...step.grad_inputs]) found.set(id, "input");
  if (step.function !== null) found.set(step.function, "lit");
  return found;
}

// The edges along which something moves: arrays forward, or gradients backward.
function litEdgesOf(step) {
  const found = new Set();
  if (step === null || step.function === null) return found;
  const add = (from, to) => (edgesBetween.get(`${from} ${to}`) ?? []).forEach((i) => found.add(i));
  if (isBackward(step)) {
    for (const [id, value] of step.grad_outputs) if (value !== null) add(step.function, id);
    for (const [id, , how] of step.grad_inputs) if (how !== "none") add(id, step.function);
  } else {
    for (const [id] of step.inputs) add(id, step.function);
    for (const [id] of step.outputs) add(step.function, id);
  }
  return found;
}

const edgesBornIn = bornInEachStep(film.edges);

// Draws what changed, and nothing else: a step of a film of 1,000 nodes touches about ten.
function updateGraph(touchedNodes, touchedEdges) {
  const oldRoles = roles;
  const oldEdges = litEdges;
  roles = rolesOf(currentStep());
  litEdges = litEdgesOf(currentStep());
  for (const id of new Set([...touchedNodes, ...oldRoles.keys(), ...roles.keys()])) {
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
  graph.setAttribute("width", film.width * scale);
  graph.setAttribute("height", film.height * scale);
  view.scrollLeft = x * scale - view.clientWidth / 2;
  view.scrollTop = y * scale - view.clientHeight / 2;
}

function scaleThatFits() {
  const room = 2; // or a scroll bar shows up
  const across = (view.clientWidth - room) / film.width;
  const down = (view.clientHeight - room) / film.height;
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
