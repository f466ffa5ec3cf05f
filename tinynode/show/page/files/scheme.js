// Light or dark: a film in a frame looks like the page around the frame.
//
// The style sheets have rules for dark colours, which follow the system. A choice turns these rules
// on or off, and the colours of the browser's own parts follow. A choice comes from
// 1. a page with a switch, by a message;
// 2. the text around the frame: notebooks have themes, whatever the system prefers.

const darkRules = [...document.styleSheets]
  .flatMap((sheet) => [...sheet.cssRules])
  .filter((rule) => /prefers-color-scheme: *dark/.test(rule.media?.mediaText ?? ""));

function showScheme(scheme) {
  document.documentElement.style.colorScheme = scheme;
  for (const rule of darkRules) rule.media.mediaText = scheme === "dark" ? "all" : "not all";
}

if (parent !== window) {
  addEventListener("message", ({ source, data }) => {
    const scheme = data?.tinynodeScheme;
    if (source === parent && (scheme === "light" || scheme === "dark")) showScheme(scheme);
  });
  parent.postMessage({ tinynodeScheme: "asked" }, "*"); // a page without a switch does not answer
}

// A canvas reads each notation of a colour: rgb(), oklch(), color().
function isLight(colour) {
  const context = document.createElement("canvas").getContext("2d");
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
  return 0.299 * red + 0.587 * green + 0.114 * blue > 127;
}

function followText() {
  if (frameElement === null) return; // the notebook has removed the output
  const scheme = isLight(getComputedStyle(frameElement).color) ? "dark" : "light";
  if (document.documentElement.style.colorScheme !== scheme) showScheme(scheme);
}

if (frameElement !== null) { // null on a page by itself, or in a page of another origin
  followText();
  const observer = new MutationObserver(followText);
  for (const element of [parent.document.documentElement, parent.document.body]) {
    observer.observe(element, { attributes: true }); // a theme is a class or a data attribute
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", followText);
}
