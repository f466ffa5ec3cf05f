// Going to a step; buttons, keys, the address; the start.

let position = -1; // the index of the step in the present iteration
let timer = null;
let isStarted = false; // before, the page takes no focus

function currentStep() {
  return steps[position] ?? null;
}

// Goes to a step of an iteration; `go` of quiz.js stops at questions.
function moveTo(target, number = iteration) {
  const wantedIteration = Math.max(0, Math.min(iterations.length - 1, number));
  const isNew = wantedIteration !== iteration;
  const before = position;
  const touched = { nodes: new Set(), gradients: new Set(), edges: new Set() };
  if (isNew) changeIteration(wantedIteration, touched);
  const wanted = Math.max(0, Math.min(steps.length - 1, target));
  if (wanted === position && !isNew) return;
  while (position < wanted) applyStep(++position, "after", touched);
  while (position > wanted) applyStep(position--, "before", touched);
  updateGraph(touched.nodes, touched.edges);
  showPosition();
  showGradients(currentStep(), touched.gradients);
  showQueue(currentStep());
  showUserCode(currentStep());
  showClassCode(currentStep());
  showFocus();
  showCompared();
  showMemory();
  if (position !== before) find("focus-body").scrollTop = 0;
  scrollPanels();
}

// Shows another iteration. In the same picture, every number may be another one.
function changeIteration(number, touched) {
  const isOtherPicture = enterIteration(number);
  position = -1;
  find("slider").max = steps.length;
  if (isOtherPicture) {
    pinned = previewed = null;
    drawStrip();
    drawGraph();
    drawGradients();
    if (isFitted && hasIterations()) fit();
    else fitAtStart();
  } else {
    if (compared) drawStrip();
    for (const id of nodes.keys()) touched.nodes.add(id);
    for (const id of gradientRows.keys()) touched.gradients.add(id);
    picture.edges.forEach((_, index) => touched.edges.add(index));
  }
}

// One step on or back; behind the last step of an iteration comes the next iteration.
function goOn(distance) {
  const target = position + distance;
  if (target >= steps.length && iteration < lastOfRun()) go(0, iteration + 1);
  else if (target < 0 && iteration > firstOfRun()) go(Infinity, iteration - 1);
  else go(target);
}

function isAtEnd() {
  return position === steps.length - 1 && iteration === lastOfRun();
}

// The same step of another iteration.
function goToIteration(number) {
  go(position, number);
}

function applyStep(index, side, touched) {
  const list = side === "after" ? changes[index] : [...changes[index]].reverse();
  for (const change of list) {
    now[change.fact].set(change.id, change[side]);
    touched.nodes.add(change.id);
    if (change.fact === "gradient" || change.fact === "grad") touched.gradients.add(change.id);
  }
  for (const edge of edgesBornIn[index]) touched.edges.add(edge);
}

const CHIPS = {
  forward: "forward →",
  backward: "← backward",
  sweep: "backward starts",
  end: "backward ends",
  update: "update",
  watch: "watch",
  error: "error",
};

function showPosition() {
  const step = currentStep();
  const text = `${position + 1} of ${steps.length}`;
  document.documentElement.dataset.step = position;
  document.documentElement.dataset.iteration = iteration;
  find("slider").value = position + 1;
  find("slider").setAttribute("aria-valuetext", `Step ${text}`);
  setText(find("counter"), text);
  setText(find("sentence"), step.title);
  const isFailed = isFailure(step);
  setText(find("chip"), isFailed && step.kind !== "error" ? `${step.kind} fails` : (CHIPS[step.kind] ?? step.kind));
  setAttribute(find("chip"), "class", `chip ${isFailed ? "failed" : directionOfStep()}`);
  const isFirst = position === 0 && iteration === firstOfRun();
  for (const id of ["first", "back"]) setDisabled(find(id), isFirst);
  for (const id of ["next", "last"]) setDisabled(find(id), isAtEnd());
  showFolds();
  if (hasIterations()) showIteration();
  if (hasIterations()) showWatched();
  rememberInAddress();
}

// Not the attribute `disabled`: a button that is disabled under the keyboard loses the focus.
function setDisabled(button, isDisabled) {
  setAttribute(button, "aria-disabled", String(isDisabled));
}

function togglePlay() {
  if (timer === null && isAtEnd()) go(0, firstOfRun());
  if (timer === null) play();
  else pause();
}

function play() {
  timer = setInterval(playOneStep, Number(find("speed").value));
  find("sentence").setAttribute("aria-live", "off"); // nobody can listen that fast
  find("play").setAttribute("aria-label", "Pause");
  document.documentElement.classList.add("playing");
}

// With "whole iterations", the film plays the present step of one iteration after the other.
function playOneStep() {
  if (find("whole").checked && hasIterations()) {
    if (iteration === iterations.length - 1) pause();
    else goToIteration(iteration + 1);
  } else {
    if (isAtEnd()) go(0, firstOfRun()); // a film that plays again and again
    else goOn(1);
    if (isAtEnd() && !flags.has("play")) pause();
  }
}

function pause() {
  clearInterval(timer);
  timer = null;
  find("sentence").setAttribute("aria-live", "polite");
  find("play").setAttribute("aria-label", "Play");
  document.documentElement.classList.remove("playing");
}

// By hand: a film that plays stops.
function byHand(action) {
  flags.delete("play");
  if (timer !== null) pause();
  action();
}

const next = () => byHand(() => goOn(1));
const back = () => byHand(() => goOn(-1));
const first = () => byHand(() => go(0, firstOfRun()));
const last = () => byHand(() => go(Infinity, lastOfRun()));
const nextIteration = () => hasIterations() && byHand(() => goToIteration(iteration + 1));
const lastIteration = () => hasIterations() && byHand(() => goToIteration(iteration - 1));

const KEYS = {
  ArrowRight: next,
  n: next,
  j: next,
  " ": next,
  ArrowLeft: back,
  p: back,
  k: back,
  Home: first,
  End: last,
  PageDown: nextIteration,
  "]": nextIteration,
  PageUp: lastIteration,
  "[": lastIteration,
  a: togglePlay,
  Escape: () => (hideHelp(), pin(null)),
  u: leaveBox,
  "+": () => zoom(1.25),
  "-": () => zoom(0.8),
  0: fit,
};

const NODE_KEYS = {
  ArrowUp: () => moveInGraph(-1),
  ArrowDown: () => moveInGraph(1),
  Enter: () => openBox(reachableNode.dataset.id) || pin(reachableNode.dataset.id),
};

function hasModifier(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

// Keys that an element uses itself stay its own: space on a button, arrows on the slider.
function isTaken(event) {
  const { key, target } = event;
  if (target.matches("select, textarea, input[type=text]")) return key !== "Escape";
  if (target.matches("input[type=radio]")) return /^(Arrow.*| )$/.test(key);
  if (target.matches("input[type=range]")) return /^(Arrow.*|Home|End|Page.*)$/.test(key);
  if (target.matches("button, summary, input[type=checkbox]")) return key === " ";
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

// Words in the address: "embed" shows the film small, for a frame in another page; "play" plays the
// film again and again, until a step by hand, unless the reader wants little motion.
const flags = new Set(location.hash.slice(1).split("&"));

// The address says which step is shown: #step=12, or #iteration=3&step=12. Both count from 1, as
// the page does.
let addressTimer = null;

function rememberInAddress() {
  clearTimeout(addressTimer); // browsers refuse many changes in a short time
  addressTimer = setTimeout(() => {
    const run = iterations.length > 1 ? `iteration=${iteration + 1}&` : "";
    const hasAddress = !location.href.startsWith("about:") && !flags.has("embed");
    if (hasAddress) tryToSetAddress(`#${run}step=${position + 1}`);
  }, 300);
}

function tryToSetAddress(fragment) {
  try {
    history.replaceState(null, "", fragment);
  } catch {
    // some browsers do not let a file or a frame change its address: the film works without
  }
}

function goToAddress() {
  const match = /^#(?:iteration=(\d+)&)?step=(\d+)$/.exec(location.hash);
  if (match) goFreely(Number(match[2]) - 1, Number(match[1] ?? 1) - 1);
  return match !== null;
}

// A strip below the slider: which steps go forward, and which backward.
function drawStrip() {
  const strip = find("strip");
  strip.setAttribute("viewBox", `0 0 ${steps.length} 1`);
  strip.replaceChildren();
  for (let start = 0, end = 0; start < steps.length; start = end) {
    const phase = steps[start].direction;
    while (end < steps.length && steps[end].direction === phase) end++;
    const [y, height] = { forward: [0, 0.5], backward: [0.5, 0.5], update: [0, 1], watch: [0.2, 0.6], error: [0, 1] }[phase];
    strip.append(svg("rect", { x: start, y, width: end - start, height, class: phase }));
  }
  markTrouble(strip);
  drawDifferences(strip);
}

function onClick(id, action) {
  find(id).addEventListener("click", action);
}

function connectControls() {
  onClick("first", first);
  onClick("back", back);
  onClick("play", togglePlay);
  onClick("next", next);
  onClick("last", last);
  onClick("iteration-back", lastIteration);
  onClick("iteration-next", nextIteration);
  onClick("unpin", leaveNode);
  onClick("zoom-in", () => zoom(1.25));
  onClick("zoom-out", () => zoom(0.8));
  onClick("fit", fit);
  for (const button of document.querySelectorAll("[data-pan]")) {
    button.addEventListener("click", () => pan(...button.dataset.pan.split(" ").map(Number)));
  }
  find("slider").addEventListener("input", (event) =>
    byHand(() => go(Number(event.target.value) - 1)),
  );
  find("iteration").addEventListener("input", (event) =>
    byHand(() => goToIteration(Number(event.target.value) - 1)),
  );
  find("speed").addEventListener("change", () => timer !== null && (pause(), play()));
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // in a notebook's frame, the address is not this page's
    find("focus").focus();
  });
  document.addEventListener("keydown", onKey);
  document.addEventListener("focusin", endPreview);
  addEventListener("hashchange", () => byHand(goToAddress));
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
  if (film.note && !film.failed) showNotice(film.note); // else the last step tells it
  if (iterations.length === 0) {
    showNotice("This film has no steps: no function ran while it was recorded.");
    find("controls").hidden = true;
    document.querySelector("main").hidden = true;
    return;
  }
  document.documentElement.classList.toggle("embed", flags.has("embed"));
  connectControls();
  drawWords();
  drawIterations();
  drawQuiz();
  drawEditor();
  drawWatched();
  drawCompared();
  drawMemory();
  drawTrouble();
  if (!goToAddress() && !goToFirstDifference() && !goToFailure()) go(0, 0);
  fitAtStart();
  if (currentStep() !== null) scrollPanels(); // the view has its size now
  isStarted = true;
  if (flags.has("play") && !wantsLittleMotion()) play();
}

start();
