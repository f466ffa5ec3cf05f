// Python's words in colours: the classes are those of the site's own code blocks.

const KEYWORDS =
  "and as assert async await break class continue def del elif else except finally for from " +
  "global if import in is lambda nonlocal not or pass raise return try while with yield";
const CONSTANTS = "None True False";

const WORDS = new RegExp(
  [
    /(?<c1>#[^\n]*)/,
    /(?<s>[rbfuRBFU]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)))/,
    /(?<s2>[rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))/,
    /(?<nd>@[\w.]+)/,
    /(?<mi>\b\d[\w.]*)/,
    /(?<word>[^\W\d]\w*)/,
  ]
    .map((part) => part.source)
    .join("|"),
  "gu",
);

const KINDS = new Map([
  ...KEYWORDS.split(" ").map((word) => [word, "k"]),
  ...CONSTANTS.split(" ").map((word) => [word, "kc"]),
]);

// The text as nodes of the page.
export function highlighted(text) {
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(WORDS)) {
    const [[name]] = Object.entries(found.groups).filter(([, part]) => part !== undefined);
    const kind = name === "word" ? KINDS.get(found[0]) : name;
    if (kind === undefined) continue;
    const word = document.createElement("span");
    word.className = kind;
    word.textContent = found[0];
    nodes.push(text.slice(end, found.index), word);
    end = found.index + found[0].length;
  }
  // an empty last line has no height of its own
  return [...nodes, text.slice(end), "\n"];
}
