// Light or dark: a page around the film's frame may have a switch, and tells its reader's choice.
//
// The style sheets have rules for dark colours, which follow the system. A choice turns these rules
// on or off, and the colours of the browser's own parts follow.

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
