// The memory of the program: who holds which bytes at each step, and what is never freed.
//
// film.memory has the arrays with their lives, see memory_data.py. A step has a number in the whole
// film; the number behind the last step is the end of the recording.

const memory = film.memory ?? { kinds: [], holders: [], arrays: [], lives: [], starts: [], rows: [], growth: null };

const LARGE_MEMORY = 16 * 1024; // above the graph, from this peak on
const OPEN_MEMORY = 1024 * 1024; // open from the start, from this peak on
const OPEN_GROWTH = 1024; // or from this growth per iteration on
const HELD_ROWS = 12;

// The number of the first step of each iteration.
const firstSteps = [];
let filmSteps = 0;
for (const { seconds } of iterations) {
  firstSteps.push(filmSteps);
  filmSteps += seconds.length;
}

const heldArrays = unpackedArrays();
const memoryRows = rowsOfMemory();
const memoryTotals = memoryRows.map((row) => row.reduce((sum, size) => sum + size, 0));
const peakStep = largestBetween(0, filmSteps);

// Each array with its states: { step, kind, holders }, and the step that frees it, or null.
function unpackedArrays() {
  const found = [];
  memory.rows.forEach((number, i) => {
    const row = memory.starts[number];
    for (let k = 0; k < row.length; k += 2) {
      found.push(unpackedArray(firstSteps[i] + row[k], ...memory.lives[row[k + 1]]));
    }
  });
  return found;
}

function unpackedArray(made, array, parts) {
  const [bytes, name, by, at] = memory.arrays[array];
  const known = { bytes, name, by, at, states: [], freed: null };
  let step = made;
  for (const [times, states] of parts) {
    for (let i = 0; i < times; i++) {
      for (const [distance, kind, holders] of states) {
        step += distance;
        if (kind === undefined) known.freed = step;
        else known.states.push({ step, kind, holders });
      }
    }
  }
  return known;
}

// For each step, and for the end, the bytes of each kind.
function rowsOfMemory() {
  const rows = Array.from({ length: filmSteps + 1 }, () => memory.kinds.map(() => 0));
  for (const { bytes, states, freed } of heldArrays) {
    states.forEach(({ step, kind }, i) => {
      rows[step][kind] += bytes;
      const end = states[i + 1]?.step ?? freed;
      if (end !== null) rows[end][kind] -= bytes;
    });
  }
  for (let step = 1; step <= filmSteps; step++) {
    rows[step - 1].forEach((size, kind) => (rows[step][kind] += size));
  }
  return rows;
}

// The first step with the most bytes among the steps from `start` to before `end`.
function largestBetween(start, end) {
  let best = start;
  for (let step = start; step < end; step++) {
    if (memoryTotals[step] > memoryTotals[best]) best = step;
  }
  return best;
}

function bytesText(size) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (unit < 3 && size >= 1024 ** (unit + 1)) unit++;
  return unit === 0 ? `${size} B` : `${hundredths(size / 1024 ** unit)} ${units[unit]}`;
}

// Two digits behind the point; a number in the middle goes to the even digit, as in Python.
function hundredths(number) {
  const whole = Math.floor(number * 100);
  const rest = number * 100 - whole;
  const isUp = rest > 0.5 || (rest === 0.5 && whole % 2 === 1);
  return ((whole + (isUp ? 1 : 0)) / 100).toFixed(2);
}

// --- the parts that never change ---------------------------------------------------------------

function drawMemory() {
  if (!heldArrays.length) return;
  const section = find("memory");
  const growth = memory.growth;
  const isGrowing = growth !== null && growth.bytes >= OPEN_GROWTH;
  section.hidden = false;
  if (isGrowing || memoryTotals[peakStep] >= LARGE_MEMORY) document.querySelector("main").before(section);
  section.open = isGrowing || memoryTotals[peakStep] >= OPEN_MEMORY;
  find("memory-growth").hidden = growth === null;
  if (growth !== null) setText(find("memory-growth"), growth.sentence);
  onClick("memory-peak", () => byHand(() => goToFilmStep(peakStep)));
  find("memory-strip").addEventListener("click", (event) => byHand(() => go(indexUnder(event, steps.length))));
  section.addEventListener("toggle", showMemory);
  if (iterations.length > 1) drawMemoryOfIterations();
}

// A bar for each iteration, at its step with the most bytes; a click goes to this step.
function drawMemoryOfIterations() {
  const peaks = iterations.map(({ seconds }, i) => largestBetween(firstSteps[i], firstSteps[i] + seconds.length));
  const picture = find("memory-iterations");
  drawAreas(picture, peaks.map((step) => memoryRows[step]));
  const sizes = peaks.map((step) => memoryTotals[step]);
  picture.setAttribute(
    "aria-label",
    `Largest memory of each iteration: ${bytesText(sizes[0])} in the first, ${bytesText(sizes.at(-1))} in the last.`,
  );
  picture.addEventListener("click", (event) => byHand(() => goToFilmStep(peaks[indexUnder(event, peaks.length)])));
  find("memory-loop").hidden = false;
}

function goToFilmStep(step) {
  const [number, index] = placeInFilm(step);
  go(index, number);
}

// The iteration of a step of the film, and the step in the iteration.
function placeInFilm(step) {
  const number = firstSteps.findLastIndex((start) => start <= step);
  return [number, step - firstSteps[number]];
}

// The number of the bar under the pointer; the padding of the picture is that of the sliders.
function indexUnder(event, count) {
  const picture = event.currentTarget;
  const box = picture.getBoundingClientRect();
  const padding = parseFloat(getComputedStyle(picture).paddingLeft);
  const part = (event.clientX - box.left - padding) / (box.width - 2 * padding);
  return Math.max(0, Math.min(count - 1, Math.floor(part * count)));
}

// Stacked areas, one for each kind: a column for each row, as high as its bytes.
function drawAreas(picture, rows) {
  picture.setAttribute("viewBox", `0 0 ${rows.length} 100`);
  const most = Math.max(memoryTotals[peakStep], 1);
  const under = rows.map(() => 0);
  const areas = memory.kinds.map((_, kind) => {
    const below = outline(under, most);
    rows.forEach((row, i) => (under[i] += row[kind]));
    const path = [...outline(under, most), ...below.reverse()].map(([x, y]) => `${x} ${y}`);
    return svg("path", { class: `memory-${kind}`, d: `M${path.join("L")}Z` });
  });
  picture.replaceChildren(...areas, svg("path", { class: "marker" }));
}

// The corners of a line with a level for each column.
function outline(levels, most) {
  const corners = [];
  levels.forEach((level, i) => {
    const y = (100 - (97 * level) / most).toFixed(2);
    if (i > 0 && levels[i - 1] === level) corners.at(-1)[0] = i + 1;
    else corners.push([i, y], [i + 1, y]);
  });
  return corners;
}

// --- the present step ----------------------------------------------------------------------------

let stripIteration = -1;

function showMemory() {
  if (!heldArrays.length) return;
  const step = firstSteps[iteration] + position;
  const now = bytesText(memoryTotals[step]);
  const most = `at most ${bytesText(memoryTotals[peakStep])} ${placeWords(peakStep)}`;
  const grown = memory.growth ? `, grows by ${bytesText(memory.growth.bytes)} per iteration` : "";
  setText(find("memory-summary"), `${now} at this step, ${most}${grown}`);
  const isOpen = find("memory").open;
  find("memory-strip").toggleAttribute("hidden", !isOpen); // an SVG element has no property for it
  if (!isOpen) return;
  if (stripIteration !== iteration) {
    const start = firstSteps[iteration];
    drawAreas(find("memory-strip"), memoryRows.slice(start, start + steps.length));
    stripIteration = iteration;
  }
  find("memory-strip").lastChild.setAttribute("d", `M${position + 0.5} 0V100`);
  find("memory-iterations").lastChild?.setAttribute("d", `M${iteration + 0.5} 0V100`);
  showKindsOfMemory(step);
  showHolders(step);
}

function placeWords(step) {
  if (step >= filmSteps) return "after the last step";
  const [number, index] = placeInFilm(step);
  return iterations.length > 1 ? `at step ${index + 1} of iteration ${number + 1}` : `at step ${index + 1}`;
}

function showKindsOfMemory(step) {
  const rows = memory.kinds.map((name, kind) => {
    const swatch = svg(
      "svg",
      { viewBox: "0 0 12 12", "aria-hidden": "true" },
      svg("rect", { class: `memory-${kind}`, width: 12, height: 12 }),
    );
    return html(
      "tr",
      { hidden: memoryRows.every((row) => row[kind] === 0) },
      html("th", { scope: "row" }, swatch, ` ${name}`),
      html("td", null, bytesText(memoryRows[step][kind])),
      html("td", null, bytesText(memoryRows[peakStep][kind])),
    );
  });
  find("memory-kinds").replaceChildren(...rows.reverse()); // in the order of the areas
}

// The largest arrays that live at a step. Arrays of one line with the same holders are one row.
function showHolders(step) {
  const groups = new Map();
  for (const array of heldArrays) {
    const state = array.states.findLast((one) => one.step <= step);
    if (!state || (array.freed !== null && array.freed <= step)) continue;
    const cells = [
      array.name,
      memory.kinds[state.kind],
      state.holders.map(holderWords).join(", ") || "the program",
      madeWords(array),
    ];
    const key = JSON.stringify(cells);
    if (!groups.has(key)) groups.set(key, { cells, kind: state.kind, bytes: 0, count: 0, freed: null });
    const group = groups.get(key);
    group.bytes += array.bytes;
    group.count++;
    if (array.freed !== null && (group.freed === null || array.freed < group.freed)) group.freed = array.freed;
  }
  const sorted = [...groups.values()].sort((a, b) => b.bytes - a.bytes);
  find("memory-holders").replaceChildren(...sorted.slice(0, HELD_ROWS).map(holderRow));
  const rest = sorted.slice(HELD_ROWS);
  const bytes = rest.reduce((sum, group) => sum + group.bytes, 0);
  setText(find("memory-rest"), rest.length ? `${rest.length} more rows have ${bytesText(bytes)}.` : "");
}

function holderRow({ cells: [name, kind, holders, made], bytes, count, freed }) {
  const first = count > 1 ? "the first " : "";
  return html(
    "tr",
    null,
    html("td", { class: "number" }, bytesText(bytes)),
    html("th", { scope: "row" }, count > 1 ? `${count} × ${name}` : name),
    html("td", null, kind),
    html("td", null, holders),
    html("td", null, made),
    html("td", null, freed === null ? "not in this film" : `${first}${placeWords(freed)}`),
  );
}

function holderWords(number) {
  const [kind, name, , at] = memory.holders[number];
  if (memory.kinds[kind] === "retained") return at ? `${name} (${lineWords(at)})` : name;
  return memory.kinds[kind] === "results" ? `Variable ${name}` : name;
}

function madeWords({ by, at }) {
  if (!by && !at) return "the program";
  return [by, at ? lineWords(at) : ""].filter((part) => part).join(", ");
}

function lineWords([key, line]) {
  return `${film.files[key].name}:${line}`;
}
