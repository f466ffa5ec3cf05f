// Arrays: numbers if they are few, else a heat map.

const MOST_NUMBERS = 36; // more cells than this are drawn as a heat map
const MOST_COLUMNS = 6;
const SHADES = 8; // of each sign

function numberText(cell) {
  if (cell === null) return "nan";
  if (typeof cell !== "number") return String(cell); // "inf", "-inf"
  const size = Math.abs(cell);
  if (cell === 0 || (Number.isInteger(cell) && size < 1e6)) return String(cell);
  if (size >= 1e5 || size < 1e-3) return cell.toExponential(2);
  return String(Number(cell.toPrecision(4)));
}

function shapeText(shape) {
  return shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
}

// The largest size of a cell: colours go from minus this, over 0, to this.
function scaleOf(value) {
  let largest = 0;
  for (const cell of [value.min, value.max, ...value.cells]) {
    if (typeof cell === "number") largest = Math.max(largest, Math.abs(cell));
  }
  return largest;
}

// A cell's shade: up to SHADES for the largest, negative for negative cells. Only zero has 0: what
// is not zero can be told from zero.
function shadeOf(cell, scale) {
  if (cell === "inf") return SHADES;
  if (cell === "-inf") return -SHADES;
  const number = Number(cell);
  if (scale === 0 || number === 0) return 0;
  return Math.sign(number) * Math.ceil((Math.abs(number) / scale) * SHADES);
}

function isSmall(value) {
  return !value.sampled && !value.thinned && value.columns <= MOST_COLUMNS && value.cells.length <= MOST_NUMBERS;
}

// An array with its shape, to look at closely.
function valueView(number, key, name) {
  if (number === null || number === undefined) return quietLine("not known");
  const value = film.values[number];
  return html(
    "div",
    { class: "value", "data-value": number },
    value.thinned ? null : isSmall(value) ? numbersTable(value, name) : heatMap(value, key, name),
    html("p", { class: value.bad > 0 ? "facts has-bad" : "facts" }, factsOf(value)),
  );
}

function factsOf(value) {
  const facts = [`${shapeText(value.shape)} ${value.dtype}`];
  if (value.thinned) facts.push(rangeText(value));
  if (!isSmall(value) && typeof value.mean === "number")
    facts.push(`mean ${numberText(value.mean)}`);
  if (value.sampled && !value.thinned) facts.push("a sample");
  if (value.bad > 0) facts.push(`${value.bad} nan or inf`);
  return facts.join(" · ");
}

function numbersTable(value, name) {
  if (value.cells.length === 0) return quietLine("empty");
  const scale = scaleOf(value);
  const rows = [];
  for (let row = 0; row < value.rows; row++) {
    const cells = value.cells.slice(row * value.columns, (row + 1) * value.columns);
    rows.push(html("tr", null, ...cells.map((cell) => numberCell(cell, scale))));
  }
  return html(
    "table",
    { class: "numbers", "aria-label": `${name}: array` },
    html("tbody", null, ...rows),
  );
}

function numberCell(cell, scale) {
  const isBad = typeof cell !== "number";
  const shade = shadeOf(cell, scale);
  const td = html("td", { class: isBad ? "bad" : shade < 0 ? "minus" : "plus" }, numberText(cell));
  td.style.setProperty("--strength", (Math.abs(shade) / SHADES) * 0.42); // numbers stay readable
  return td;
}

// A heat map. One path for each shade, not one element for each cell: far less for the browser.
function heatMapImage(value) {
  const scale = scaleOf(value);
  const paths = new Map();
  value.cells.forEach((cell, index) => {
    const shade = cell === null ? "bad" : shadeOf(cell, scale);
    const x = index % value.columns;
    const y = Math.floor(index / value.columns);
    if (shade !== 0) paths.set(shade, `${paths.get(shade) ?? ""}M${x} ${y}h1v1h-1z`);
  });
  const image = svg("svg", {
    viewBox: `0 0 ${value.columns} ${value.rows}`,
    preserveAspectRatio: "none",
    class: "heat",
    "aria-hidden": "true",
  });
  for (const [shade, path] of paths) image.append(shadePath(shade, path));
  return image;
}

function shadePath(shade, d) {
  if (shade === "bad") return svg("path", { d, class: "bad" });
  const sign = shade < 0 ? "minus" : "plus";
  const opacity = (Math.abs(shade) / SHADES) ** 0.75; // small numbers can be seen as well
  return svg("path", { d, class: sign, "fill-opacity": opacity.toFixed(3) });
}

function heatMap(value, key, name) {
  const image = heatMapImage(value);
  const readout = html("output", { class: "readout" }, rangeText(value));
  image.style.width = `${value.columns * cellSize(value.columns)}px`;
  image.style.height = `${value.rows * cellSize(value.rows)}px`;
  const frame = html(
    "div",
    {
      class: "heat-frame",
      tabindex: 0,
      role: "img",
      "data-key": key,
      "aria-label": `${name}: ${heatMapInWords(value)}`,
    },
    image,
  );
  readCells(frame, image, value, readout);
  return html("div", { class: "heat-map" }, frame, heatLegend(value), readout);
}

function heatMapInWords(value) {
  const size = `${value.rows} by ${value.columns}`;
  return `heat map of ${size} cells, ${rangeText(value)}. Arrow keys read cells.`;
}

// So many pixels that the heat map has a good size, and single cells can be pointed at.
function cellSize(number) {
  return Math.max(3, Math.min(14, Math.floor(136 / number)));
}

function rangeText(value) {
  return `min ${numberText(value.min)}, max ${numberText(value.max)}`;
}

// The colours, from the least number they stand for to the largest; zero has none.
function heatLegend(value) {
  const scale = scaleOf(value);
  const cells = [];
  for (let shade = -SHADES; shade <= SHADES; shade++) cells.push((shade / SHADES) * scale);
  const bar = heatMapImage({ min: -scale, max: scale, cells, rows: 1, columns: cells.length });
  bar.classList.add("bar");
  return html(
    "div",
    { class: "heat-legend" },
    html("span", null, numberText(-scale)),
    bar,
    html("span", null, numberText(scale)),
  );
}

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

// The number of a cell: where the pointer is, or where the arrow keys went.
function readCells(frame, image, value, readout) {
  const cursor = svg("rect", { class: "cursor", width: 1, height: 1, visibility: "hidden" });
  image.append(cursor);
  let [row, column] = [0, 0];
  const show = () => {
    cursor.setAttribute("x", column);
    cursor.setAttribute("y", row);
    cursor.setAttribute("visibility", "visible");
    frame.dataset.cell = row * value.columns + column;
    const cell = value.cells[row * value.columns + column];
    setText(readout, `${cellName(value, row, column)} ${numberText(cell)}`);
  };
  const moveTo = (newRow, newColumn) => {
    row = Math.max(0, Math.min(value.rows - 1, newRow));
    column = Math.max(0, Math.min(value.columns - 1, newColumn));
    show();
  };
  frame.addEventListener("pointermove", (event) => {
    const box = image.getBoundingClientRect();
    const y = (event.clientY - box.top) / box.height;
    const x = (event.clientX - box.left) / box.width;
    moveTo(Math.floor(y * value.rows), Math.floor(x * value.columns));
  });
  const leave = () => {
    cursor.setAttribute("visibility", "hidden");
    setText(readout, rangeText(value));
  };
  frame.addEventListener("pointerleave", leave);
  frame.addEventListener("focus", show);
  frame.addEventListener("blur", leave);
  frame.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move || hasModifier(event)) return;
    moveTo(row + move[0], column + move[1]);
    event.preventDefault(); // here, arrows do not step through the film
  });
}

// "[1, 2] =" where the cells are all there are; else which of the drawn cells it is.
function cellName(value, row, column) {
  if (value.sampled) return `drawn cell ${row}, ${column}:`;
  let rest = row * value.columns + column;
  const index = [];
  for (const size of [...value.shape].reverse()) {
    index.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return `[${index.join(", ")}] =`;
}

// An array in a line of a table: its numbers if they are few, else a small picture.
function smallView(number) {
  if (number === null || number === undefined) return html("span", { class: "quiet" }, "none");
  const value = film.values[number];
  if (value.rows === 1 && value.columns <= 4 && value.columns > 0) {
    const text = value.cells.map(numberText).join(", ");
    return html(
      "span",
      { class: "number", "data-value": number },
      value.shape.length ? `[${text}]` : text,
    );
  }
  if (value.thinned) return html("span", { class: "mini", "data-value": number }, rangeText(value));
  if (value.cells.length === 0) return html("span", { class: "quiet" }, "empty");
  const image = heatMapImage(value);
  image.classList.add("small");
  const range = `${numberText(value.min)} to ${numberText(value.max)}`;
  return html(
    "span",
    { class: "mini", "data-value": number, title: range },
    image,
    html("span", null, range),
  );
}
