// Films in frames follow the site's switch for light and dark.
const scheme = () => (document.body.dataset.mdColorScheme === "slate" ? "dark" : "light");
const tell = (frame) => frame?.postMessage({ tinynodeScheme: scheme() }, "*");
const tellAll = () => document.querySelectorAll("iframe").forEach((one) => tell(one.contentWindow));

addEventListener("message", ({ source, data }) => {
  if (data?.tinynodeScheme === "asked") tell(source); // a frame that has just been loaded
});
new MutationObserver(tellAll).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
tellAll();
