// Documents of programs, in frames apart from the page: nothing in them reaches the page.
//
// A film's page runs the film's script, which the page's policy names, in an origin of its own. All
// other HTML runs no script. Its frame has the page's styles, and is as high as its content.

import { element } from "./elements.js";

export function filmFrame(page, title) {
  return element("iframe", { srcdoc: page, title, class: "film", sandbox: "allow-scripts" });
}

// Calls change(changes) when the reader of a film changes numbers. An error's text goes back.
export function hearChanges(frame, change) {
  const hear = async ({ source, data }) => {
    if (!frame.isConnected) removeEventListener("message", hear);
    if (source !== frame.contentWindow || !Array.isArray(data?.tinynodeChanges)) return;
    const error = await change(data.tinynodeChanges);
    if (error) source.postMessage({ tinynodeError: error }, "*"); // the frame has no origin
  };
  addEventListener("message", hear);
}

// The frame of a value's HTML; a film comes as a single frame.
export function frameOf(html) {
  const { body } = new DOMParser().parseFromString(html, "text/html"); // inert
  const film = body.childElementCount === 1 && body.querySelector(":scope > iframe[srcdoc]");
  if (film) {
    const frame = filmFrame(film.getAttribute("srcdoc"), film.title);
    frame.style.height = film.style.height;
    return frame;
  }
  return quietFrame(html);
}

function quietFrame(html) {
  const styles = document.querySelectorAll("head > link[rel=stylesheet]");
  const links = [...styles].map(({ href }) => element("link", { rel: "stylesheet", href }).outerHTML);
  const frame = element("iframe", {
    srcdoc: `${links.join("")}<body class="tn-framed">${html}`,
    title: "The value of the cell",
    class: "tn-frame",
    sandbox: "allow-same-origin", // without scripts: this page reads the height
    load: () => fit(frame),
  });
  return frame;
}

// Gives a frame the colours of the page, and the height of its content.
function fit(frame) {
  const { body } = frame.contentDocument;
  const show = () => {
    for (const { name, value } of document.body.attributes) {
      if (name.startsWith("data-md-color")) body.setAttribute(name, value);
    }
    frame.style.height = `${body.scrollHeight}px`;
  };
  new ResizeObserver(show).observe(body);
  new MutationObserver(show).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  show();
}
