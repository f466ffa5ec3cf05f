// Going to a step; buttons, keys, the address; the start.

let position = -1;
let timer = null;

function currentStep() {
  return steps[position] ?? null;
}

function go(target) {
  const wanted = Math.max(0, Math.min(steps.length - 1, target));
  if (wanted === position) return;
  const touched = { nodes: new Set(), gradients: new Set(), edges: new Set() };
  while (position < wanted) applyStep(++position, "after", touched);
  while (position > wanted) applyStep(position--, "before", touched);
  updateGraph(touched.nodes, touched.edges);
  showPosition();
  showGradients(currentStep(), touched.gradients);
  showQueue(currentStep());
  showUserCode(currentStep());
  showClassCode(currentStep());
  showFocus();
  scrollPanels();
}

function applyStep(index, side, touched) {
  const list = side === "after" ? changes[index] : [...changes[index]].reverse();
  for (const change of list) {
    now[change.fact].set(change.id, change[side]);
    if (change.fact !== "value") touched.nodes.add(change.id);
    if (change.fact === "gradient") touched.gradients.add(change.id);
  }
  for (const edge of edgesBornIn[index]) touched.edges.add(edge);
}

const CHIPS = {
  forward: "forward →",
  backward: "← backward",
  sweep: "sweep begins",
  end: "sweep ends",
};

function showPosition() {
  const step = currentStep();
  const text = `${position + 1} of ${steps.length}`;
  document.documentElement.dataset.step = position;
  find("slider").value = position + 1;
  find("slider").setAttribute("aria-valuetext", `Step ${text}`);
  setText(find("counter"), text);
  setText(find("sentence"), step.title);
  setText(find("chip"), CHIPS[step.kind] ?? step.kind);
  setAttribute(find("chip"), "class", `chip ${directionOfStep()}`);
  for (const id of ["first", "back"]) setDisabled(find(id), position === 0);
  for (const id of ["next", "last"]) setDisabled(find(id), position === steps.length - 1);
  rememberInAddress();
}

// Not the attribute `disabled`: a button that is disabled under the keyboard loses the focus.
function setDisabled(button, isDisabled) {
  setAttribute(button, "aria-disabled", String(isDisabled));
}

function togglePlay() {
  if (timer === null && position === steps.length - 1) go(0);
  if (timer === null) play();
  else pause();
}

function play() {
  timer = setInterval(playOneStep, Number(find("speed").value));
  find("sentence").setAttribute("aria-live", "off"); // nobody can listen that fast
  find("play").setAttribute("aria-label", "Pause");
  document.documentElement.classList.add("playing");
}

function playOneStep() {
  go(position + 1);
  if (position === steps.length - 1) pause();
}

function pause() {
  clearInterval(timer);
  timer = null;
  find("sentence").setAttribute("aria-live", "polite");
  find("play").setAttribute("aria-label", "Play");
  document.documentElement.classList.remove("playing");
}

// By hand: a film that plays stops.
function goByHand(target) {
  if (timer !== null) pause();
  go(target);
}

const KEYS = {
  ArrowRight: () => goByHand(position + 1),
  n: () => goByHand(position + 1),
  j: () => goByHand(position + 1),
  " ": () => goByHand(position + 1),
  ArrowLeft: () => goByHand(position - 1),
  p: () => goByHand(position - 1),
  k: () => goByHand(position - 1),
  Home: () => goByHand(0),
  End: () => goByHand(steps.length - 1),
  a: togglePlay,
  Escape: () => pin(null),
  "+": () => zoom(1.25),
  "-": () => zoom(0.8),
  0: fit,
};

const NODE_KEYS = {
  ArrowUp: () => moveInGraph(-1),
  ArrowDown: () => moveInGraph(1),
  Enter: () => pin(reachableNode.dataset.id),
};

function hasModifier(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

// Keys that an element uses itself stay its own: space on a button, arrows on the slider.
function isTaken(event) {
  const { key, target } = event;
  if (target.matches("select")) return key !== "Escape";
  if (target.matches("input[type=range]")) return /^(Arrow.*|Home|End)$/.test(key);
  if (target.matches("button, input[type=checkbox]")) return key === " ";
  return false;
}

function onKey(event) {
  if (hasModifier(event) || event.defaultPrevented || isTaken(event)) return;
  const isOnNode = graph.contains(event.target) && event.target !== graph;
  const action = (isOnNode ? NODE_KEYS[event.key] : undefined) ?? KEYS[event.key];
  if (!action) return;
  action();
  event.preventDefault(); // or space would scroll the page
}

// The address says which step is shown: #step=12. It counts from 1, as the page does.
let addressTimer = null;

function rememberInAddress() {
  clearTimeout(addressTimer); // browsers refuse many changes in a short time
  addressTimer = setTimeout(() => {
    if (!location.href.startsWith("about:")) tryToSetAddress(`#step=${position + 1}`);
  }, 300);
}

function tryToSetAddress(fragment) {
  try {
    history.replaceState(null, "", fragment);
  } catch {
    // some browsers do not let a file or a frame change its address: the film works without
  }
}

function stepInAddress() {
  const match = /^#step=(\d+)$/.exec(location.hash);
  return match ? Number(match[1]) - 1 : null;
}

// A strip below the slider: which steps go forward, and which backward.
function drawStrip() {
  const strip = find("strip");
  strip.setAttribute("viewBox", `0 0 ${steps.length} 1`);
  for (let start = 0, end = 0; start < steps.length; start = end) {
    while (end < steps.length && isBackward(steps[end]) === isBackward(steps[start])) end++;
    const phase = isBackward(steps[start]) ? "backward" : "forward";
    const top = phase === "backward" ? 0.5 : 0; // told apart by place as well
    strip.append(svg("rect", { x: start, y: top, width: end - start, height: 0.5, class: phase }));
  }
}

function onClick(id, action) {
  find(id).addEventListener("click", action);
}

function connectControls() {
  onClick("first", () => goByHand(0));
  onClick("back", () => goByHand(position - 1));
  onClick("play", togglePlay);
  onClick("next", () => goByHand(position + 1));
  onClick("last", () => goByHand(steps.length - 1));
  onClick("unpin", leaveNode);
  onClick("zoom-in", () => zoom(1.25));
  onClick("zoom-out", () => zoom(0.8));
  onClick("fit", fit);
  for (const button of document.querySelectorAll("[data-pan]")) {
    button.addEventListener("click", () => pan(...button.dataset.pan.split(" ").map(Number)));
  }
  find("slider").addEventListener("input", (event) => goByHand(Number(event.target.value) - 1));
  find("speed").addEventListener("change", () => timer !== null && (pause(), play()));
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // in a notebook's frame, the address is not this page's
    find("focus").focus();
  });
  document.addEventListener("keydown", onKey);
  document.addEventListener("focusin", endPreview);
  addEventListener("hashchange", () => goByHand(stepInAddress() ?? position));
  new ResizeObserver(() => isFitted && fit()).observe(view);
  dragToPan();
}

function leaveNode() {
  pin(null);
  find("focus").focus({ preventScroll: true }); // the button is gone
}

function showNotice(text) {
  find("notice").hidden = false;
  setText(find("notice"), text);
}

function start() {
  setText(find("made-by"), `${film.device} · tinynode ${film.tinynode}`);
  if (film.note) showNotice(film.note);
  if (steps.length === 0) {
    showNotice("This film has no steps: no function ran while it was recorded.");
    find("controls").hidden = true;
    document.querySelector("main").hidden = true;
    return;
  }
  find("slider").max = steps.length;
  drawStrip();
  drawGraph();
  drawGradients();
  connectControls();
  fitAtStart();
  go(stepInAddress() ?? 0);
}

start();
