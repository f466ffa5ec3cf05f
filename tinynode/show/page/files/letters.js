// The letters of a docstring in the words of the program: its names, and the axes of a sum.
//
// A formula with x, y and z stands beside a program with an x, y and z of its own. So a letter
// becomes the name of its array, if the name is short; else a letter that no name of the step has.

const SPARE_LETTERS = "abcdefhkmnpqrstuvwxyzABCDEF";
const SHORT_NAME = /^[A-Za-z_][\w.]{0,13}$/;
const AXES = /over (?:an axis|the axis|axes|the axes)\b/;

// For a step: letter of the docstring -> the text in its place.
function lettersOf(step, chain, others = []) {
  const given = new Map();
  const pair = (letters, entries) =>
    letters.forEach((letter, i) => {
      if (entries[i] && !letter.includes("_")) given.set(letter, nameOf(entries[i][0]));
    });
  if (chain && step) {
    pair(chain.inputs, step.inputs);
    pair(chain.outputs, step.kind === "backward" ? step.grad_outputs : step.outputs);
  }
  const names = [...nodes.values()].map(({ label }) => label);
  const taken = new Set(names.filter((name) => SHORT_NAME.test(name)));
  const found = new Map();
  for (const [letter, name] of given) found.set(letter, SHORT_NAME.test(name) ? name : null);
  for (const letter of others) if (!found.has(letter) && taken.has(letter)) found.set(letter, null);
  for (const [letter, text] of found) {
    if (text !== null) continue;
    const isFree = (one) => !taken.has(one) && (one === letter || !(found.has(one) || others.includes(one)));
    const spare = [letter, ...SPARE_LETTERS].find(isFree) ?? letter;
    taken.add(spare);
    found.set(letter, spare);
  }
  return found;
}

// The docstring: text as text, formulas as MathML; then which array a letter stands for.
function docstringView(known, step = null) {
  const maths = known.chain.parts.map(([kind, text]) => (kind === "math" ? mathView(text) : null));
  const letterElements = maths.flatMap((math) => (math ? [...math.querySelectorAll("mi")] : [])).filter(isLetter);
  const letters = lettersOf(step, known.chain, letterElements.map((element) => element.textContent));
  for (const element of letterElements) {
    element.textContent = letters.get(element.textContent) ?? element.textContent;
  }
  const axes = step === null ? null : axesOf(step);
  for (const math of maths) {
    for (const element of math?.querySelectorAll("mtext") ?? []) element.textContent = withAxes(element.textContent, axes);
  }
  const parts = known.chain.parts.map(([, text], i) => maths[i] ?? withAxes(withLetters(text, letters), axes));
  return html("div", { class: "formula" }, ...parts, standsFor(step, known.chain, letters));
}

function mathView(text) {
  const math = new DOMParser().parseFromString(text, "application/xml").documentElement;
  return document.adoptNode(math);
}

// Not the sign of a derivative, the L of the loss, or the letter of x_i.
function isLetter(element) {
  const isBelow = element.parentElement.localName === "msub";
  return !isBelow && /^[A-Za-z]\w*$/.test(element.textContent) && element.textContent !== "L";
}

// Letters in a text: before a colon, as in "x: (s)", and single letters other than the word "a".
function withLetters(text, letters) {
  const words = [...letters.keys()].filter((letter) => /^\w+$/.test(letter));
  if (words.length === 0) return text;
  const single = words.filter((letter) => letter.length === 1 && letter !== "a").map((letter) => `|${letter}(?![\\w'])`);
  const pattern = new RegExp(`(?<![\\w'.])(?:(?:${words.join("|")})(?=:|(?:, \\w+)+:)${single.join("")})`, "g");
  return text.replace(pattern, (letter) => letters.get(letter) ?? letter);
}

// "Here a is x * y": for the arrays whose name is too long for a formula.
function standsFor(step, chain, letters) {
  if (step === null) return null;
  const entries = [
    ...chain.inputs.map((letter, i) => [letter, step.inputs[i]]),
    ...chain.outputs.map((letter, i) => [letter, (step.kind === "backward" ? step.grad_outputs : step.outputs)[i]]),
  ];
  const told = entries
    .filter(([letter, entry]) => entry && letters.has(letter) && letters.get(letter) !== nameOf(entry[0]))
    .map(([letter, entry]) => `${letters.get(letter)} is ${nameOf(entry[0])}`);
  return told.length ? html("p", { class: "stands-for" }, `Here ${told.join(", ")}.`) : null;
}

// --- axes -------------------------------------------------------------------------------------

// "axis 0 (4 rows)": the axes of a step's sum; else null. They are axes of the input with the most
// axes, in the forward step: a backward step may know only a smaller array.
function axesOf(step) {
  const forward = steps.find(({ kind, function: id }) => kind === "forward" && id === step.function);
  if (!step.axes || !forward) return null;
  const known = forward.inputs.filter(([, value]) => value !== null);
  const shapes = known.map(([, value]) => film.values[value].shape);
  const most = Math.max(...shapes.map((shape) => shape.length));
  const shape = shapes.find(({ length }) => length === most);
  return shape ? axesInWords(shape, step.axes) : null;
}

function axesInWords(shape, axes) {
  const inside = axes.filter((axis) => axis >= -shape.length && axis < shape.length);
  const found = inside.map((axis) => (axis + shape.length) % shape.length).sort((a, b) => a - b);
  const count = found.reduce((product, axis) => product * shape[axis], 1);
  if (found.length === 0) return null;
  if (found.length > 1) {
    return `axes ${found.slice(0, -1).join(", ")} and ${found.at(-1)} (${count} element${count === 1 ? "" : "s"})`;
  }
  const word = shape.length === 2 ? ["row", "column"][found[0]] : "element";
  return `axis ${found[0]} (${count} ${word}${count === 1 ? "" : "s"})`;
}

function withAxes(text, axes) {
  return axes === null ? text : text.replace(AXES, `over ${axes}`);
}
