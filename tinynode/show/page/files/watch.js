// Watched pictures: a decision border in the plane, or the predicted classes of images.
//
// The large picture is in the panel of its step. Small ones stand beside the curve of the loss, at
// every step, so that they move when the film plays.

const watched = film.watched;
const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const CLASS_COLOURS = 7; // the style sheet has so many; then they come again, with other shapes
const SHAPES = [
  "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z",
  "M-.9-.9h1.8v1.8h-1.8z",
  "M0-1.15 1.05.75h-2.1z",
  "M0-1.25 1.1 0 0 1.25-1.1 0z",
  "M-.4-1.1h.8v.7h.7v.8h-.7v.7h-.8v-.7h-.7v-.8h.7z",
];

// The places of the watch steps in each layout, and the pictures before each iteration: for each
// subject the number of the picture, and the iteration where it was drawn.
const watchSteps = film.pictures.map(({ steps }) =>
  steps.flatMap(({ watched: one }, index) => (one ? [[index, one.subject]] : [])),
);
const drawnIn = [];
const watchedBefore = [];

function findWatched() {
  let latest = watched.subjects.map(() => null);
  iterations.forEach((one, number) => {
    watchedBefore.push(latest);
    if (one.watched.length) latest = [...latest];
    watchSteps[one.picture].forEach(([, subject], i) => {
      latest[subject] = one.watched[i];
      drawnIn[one.watched[i]] ??= number;
    });
  });
}

// For each subject the latest picture at this step, or null.
function watchedNow() {
  const latest = [...watchedBefore[iteration]];
  watchSteps[pictureNumber()].forEach(([index, subject], i) => {
    if (index <= position) latest[subject] = iterations[iteration].watched[i];
  });
  return latest;
}

function pictureNumber() {
  return iterations[iteration].picture;
}

// --- small pictures beside the curve -------------------------------------------------------------

let smallWatched = []; // a view for each subject: its button, and what it shows

function drawWatched() {
  find("watched").hidden = watched.subjects.length === 0;
  findWatched();
  smallWatched = watched.subjects.slice(0, 3).map((subject, number) => {
    const show = pictureView(subject, true);
    const text = html("span", { class: "quiet" });
    const button = html("button", { type: "button", hidden: true }, show.element, text);
    button.addEventListener("click", () => byHand(() => goToWatched(number)));
    find("watched").append(button);
    return { subject, show, text, button, shown: null };
  });
}

function showWatched() {
  if (watched.subjects.length === 0) return;
  const latest = watchedNow();
  smallWatched.forEach((small, number) => {
    const drawn = latest[number];
    if (drawn === small.shown) return;
    small.shown = drawn;
    small.button.hidden = drawn === null;
    if (drawn === null) return;
    const contents = watched.pictures[drawn];
    small.show.update(contents);
    setText(small.text, rightText(small.subject, contents) ?? small.subject.name);
    const words = `${small.subject.name}, iteration ${drawnIn[drawn] + 1}`;
    setAttribute(small.button, "title", `${words}: go to this step`);
    setAttribute(small.button, "aria-label", `${words}: ${pictureInWords(small.subject, contents)}`);
  });
}

// Goes to the step that watched a subject last.
function goToWatched(subject) {
  const drawn = smallWatched[subject].shown;
  for (let number = iteration; number >= 0; number--) {
    const found = watchSteps[iterations[number].picture].findIndex(
      ([, one], i) => one === subject && iterations[number].watched[i] === drawn,
    );
    if (found >= 0) {
      go(watchSteps[iterations[number].picture][found][0], number);
      return;
    }
  }
}

// --- the panel of a step -------------------------------------------------------------------------

function watchParts(step) {
  const { subject: number, picture: drawn } = step.watched;
  const subject = watched.subjects[number];
  const contents = watched.pictures[drawn];
  const show = pictureView(subject, false);
  show.update(contents);
  const words = subject.kind === "border" ? pictureInWords(subject, contents) : rightText(subject, contents);
  const notes = words === null ? [] : [words];
  if (subject.kind === "border") {
    const [left, right, low, high] = subject.range.map(numberText);
    notes.push(`x from ${left} to ${right}, y from ${low} to ${high}`);
  }
  if (subject.is_score) notes.push("one score: class 1 above 0");
  if (drawnIn[drawn] !== iteration) notes.push(`drawn in iteration ${drawnIn[drawn] + 1}`);
  if (watched.distance > 1)
    notes.push(`this long film keeps one of ${watched.distance} pictures`);
  const list = html("ul", { class: "facts" }, ...notes.map((note) => html("li", null, note)));
  return [html("section", { class: "part watch" }, show.element, show.readout, show.legend, list)];
}

function rightText(subject, contents) {
  const right = contents.at(-1);
  return right === null ? null : `${right} of ${subject.labels.length} right`;
}

function pictureInWords(subject, contents) {
  const right = rightText(subject, contents);
  const words = subject.kind === "border" ? areasInWords(subject, contents) : imagesInWords(subject, contents);
  return right ? `${right}; ${words}` : words;
}

function pictureView(subject, isSmall) {
  return subject.kind === "border" ? borderView(subject, isSmall) : imagesView(subject, isSmall);
}

// --- the decision border -------------------------------------------------------------------------

// Runs of equal cells: [cell, length]; -1 for cells whose scores are nan.
function* runsOf(text) {
  for (const [, letter, count] of text.matchAll(/(\D)(\d*)/g)) {
    yield [LETTERS.indexOf(letter), Number(count || 1)];
  }
}

function classOfCell(subject, cell) {
  return subject.is_score && cell >= 0 ? Number(cell > subject.levels) : cell;
}

function cellsOf(text) {
  const cells = [];
  for (const [cell, count] of runsOf(text)) for (let i = 0; i < count; i++) cells.push(cell);
  return cells;
}

function areasInWords(subject, [text]) {
  const counts = new Map();
  for (const [cell, count] of runsOf(text)) {
    const number = classOfCell(subject, cell);
    counts.set(number, (counts.get(number) ?? 0) + count);
  }
  const whole = subject.size ** 2;
  return [...counts]
    .sort(([a], [b]) => a - b)
    .map(([number, count]) => {
      const name = number < 0 ? "nan" : `class ${number}`;
      return `${name} fills ${Math.round((100 * count) / whole)} %`;
    })
    .join(", ");
}

function colourOf(number) {
  return `class-${number % CLASS_COLOURS}`;
}

// An area for each class, a line between the areas, and the points: colour and shape say the class.
function borderView(subject, isSmall) {
  const { size, points, labels, range } = subject;
  const [left, right, low, high] = range;
  const areas = svg("g");
  const marks = svg("g", { class: "points" });
  points.forEach(([x, y], i) => {
    const across = (size * (x - left)) / (right - left);
    const down = (size * (high - y)) / (high - low);
    marks.append(pointMark(labels?.[i] ?? null, across, down, isSmall ? 0.75 : 0.5));
  });
  const image = svg("svg", { class: "border", viewBox: `0 0 ${size} ${size}` }, areas, marks);
  const element = isSmall ? image : html("div", { class: "border-frame", role: "img" }, image);
  const legend = isSmall ? null : html("p", { class: "class-legend" });
  const update = (contents) => {
    areas.classes = cellsOf(contents[0]).map((cell) => classOfCell(subject, cell));
    areas.replaceChildren(...areaPaths(subject, contents[0], areas.classes));
    if (isSmall) return;
    element.setAttribute("aria-label", `Decision border: ${pictureInWords(subject, contents)}`);
    legend.replaceChildren(...classLegend(subject, contents[0]));
  };
  if (isSmall) image.setAttribute("aria-hidden", "true");
  return { element, legend, readout: isSmall ? null : borderReadout(subject, image, areas), update };
}

// Where the pointer is in the plane, and the class there.
function borderReadout({ size, range }, image, areas) {
  const [left, right, low, high] = range;
  const readout = html("output", { class: "readout" }, "\u00a0");
  image.addEventListener("pointermove", (event) => {
    const box = image.getBoundingClientRect();
    const across = (event.clientX - box.left) / box.width;
    const down = (event.clientY - box.top) / box.height;
    const x = left + across * (right - left);
    const y = high - down * (high - low);
    const place = `x ${numberText(Number(x.toPrecision(3)))}, y ${numberText(Number(y.toPrecision(3)))}`;
    const [column, row] = [across, down].map((part) =>
      Math.max(0, Math.min(size - 1, Math.floor(part * size))),
    );
    const number = areas.classes[row * size + column];
    setText(readout, `${place}: ${number < 0 ? "nan" : `class ${number}`}`);
  });
  image.addEventListener("pointerleave", () => setText(readout, "\u00a0"));
  return readout;
}

function pointMark(label, x, y, size) {
  const shape = label === null ? SHAPES[0] : SHAPES[label % SHAPES.length];
  return svg("path", {
    class: label === null ? "no-class" : colourOf(label),
    d: shape,
    transform: `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${size})`,
  });
}

function areaPaths(subject, text, classes) {
  const { size, levels } = subject;
  const found = [...outlines(cellsOf(text), size)].map(([cell, d]) => {
    const number = classOfCell(subject, cell);
    const strength = subject.is_score ? 0.12 + (0.4 * Math.abs(cell - levels)) / levels : 0.36;
    const area = svg("path", { d, class: number < 0 ? "area unknown" : `area ${colourOf(number)}` });
    if (number >= 0) area.setAttribute("fill-opacity", strength.toFixed(2));
    return area;
  });
  return [...found, svg("path", { class: "line-between", d: lineBetween(classes, size) })];
}

const SIDES = [
  [0, 0, 1, 0, 0, -1],
  [1, 0, 1, 1, 1, 0],
  [1, 1, 0, 1, 0, 1],
  [0, 1, 0, 0, -1, 0],
]; // of a cell, clockwise: the start, the end, and the neighbour there

// For each kind of cell the outline of its area: with no edge inside, no rows can overlap.
function outlines(cells, size) {
  const kindAt = (x, y) => (x < 0 || y < 0 || x >= size || y >= size ? undefined : cells[y * size + x]);
  const sides = new Map(); // kind -> the start of a side -> the ends of sides
  cells.forEach((kind, i) => {
    const [x, y] = [i % size, Math.floor(i / size)];
    for (const [fromX, fromY, toX, toY, across, down] of SIDES) {
      if (kindAt(x + across, y + down) === kind) continue;
      if (!sides.has(kind)) sides.set(kind, new Map());
      const start = (y + fromY) * (size + 1) + x + fromX;
      const ends = sides.get(kind);
      ends.set(start, [...(ends.get(start) ?? []), (y + toY) * (size + 1) + x + toX]);
    }
  });
  return new Map([...sides].map(([kind, ends]) => [kind, closedPath(ends, size + 1)]));
}

// Sides, one behind the other, until each way is back at its start.
function closedPath(ends, width) {
  const point = (corner) => `${corner % width} ${Math.floor(corner / width)}`;
  let d = "";
  for (const first of ends.keys()) {
    while (ends.get(first).length) {
      d += `M${point(first)}`;
      let [before, here] = [null, first];
      do {
        const next = ends.get(here).pop();
        if (before !== null && next - here !== here - before) d += `L${point(here)}`; // a corner
        [before, here] = [here, next];
      } while (here !== first);
      d += "z";
    }
  }
  return d;
}

// The line between cells of different classes: along whole cells, so as exact as the grid.
function lineBetween(classes, size) {
  let d = "";
  classes.forEach((number, i) => {
    const [x, y] = [i % size, Math.floor(i / size)];
    if (x > 0 && classes[i - 1] !== number) d += `M${x} ${y}v1`;
    if (y > 0 && classes[i - size] !== number) d += `M${x} ${y}h1`;
  });
  return d;
}

function classLegend(subject, text) {
  const numbers = new Set(subject.labels ?? []);
  for (const [cell] of runsOf(text)) numbers.add(classOfCell(subject, cell));
  return [...numbers]
    .sort((a, b) => a - b)
    .map((number) => {
      const mark = number < 0 ? svg("path", { class: "unknown", d: SHAPES[1] }) : pointMark(number, 0, 0, 1);
      const key = svg("svg", { viewBox: "-1.5 -1.5 3 3", class: "points", "aria-hidden": "true" }, mark);
      return html("span", null, key, number < 0 ? "nan" : `class ${number}`);
    });
}

// --- images --------------------------------------------------------------------------------------

function imagesInWords(subject, [classes, scores]) {
  return classes.map((one, i) => imageInWords(subject, i, one, scores[i])).join(", ");
}

function imageInWords(subject, i, one, score) {
  const label = subject.labels?.[i];
  const text = `${one ?? "nan"} (score ${score === null ? "nan" : numberText(score)}`;
  if (label === undefined) return `${text})`;
  return one === label ? `${text}, right)` : `${text}, wrong: ${label})`;
}

function imagesView(subject, isSmall) {
  const cells = subject.images.map((text) => {
    const predicted = html("strong");
    const score = html("span", { class: "quiet" });
    const mark = html("span", { class: "sign-of" });
    const words = isSmall ? [mark] : [html("span", null, predicted, " ", mark), score];
    const element = html("li", null, thumbnail(subject, text), ...words);
    return { element, predicted, score, mark };
  });
  const name = isSmall ? null : `${subject.name}: predicted classes`;
  const element = html(
    "ul",
    { class: "watched-images", "aria-label": name, "aria-hidden": isSmall ? "true" : null },
    ...cells.map((cell) => cell.element),
  );
  const update = ([classes, scores]) => {
    cells.forEach((cell, i) => {
      const label = subject.labels?.[i];
      const isRight = label === undefined ? null : classes[i] === label;
      cell.element.className = isRight === null ? "" : isRight ? "right" : "wrong";
      setText(cell.predicted, String(classes[i] ?? "nan"));
      setText(cell.mark, isRight === null ? "" : isRight ? "✓" : isSmall ? "✗" : `✗ is ${label}`);
      setText(cell.score, scores[i] === null ? "score nan" : `score ${numberText(scores[i])}`);
    });
  };
  return { element, legend: null, readout: null, update };
}

// The pixels: base 36, one digit for each channel.
function thumbnail({ rows, columns, channels }, text) {
  const canvas = html("canvas", { width: columns, height: rows, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let pixel = 0; pixel < rows * columns; pixel++) {
    for (let channel = 0; channel < 3; channel++) {
      const digit = text[pixel * channels + (channels === 3 ? channel : 0)];
      image.data[4 * pixel + channel] = Math.round((255 * parseInt(digit, 36)) / 35);
    }
    image.data[4 * pixel + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
