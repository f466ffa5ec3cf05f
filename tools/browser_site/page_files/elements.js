// Elements of a page, in few words.

// Makes an element; attributes by name, and functions for events ("click").
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export function button(text, click, attributes = {}) {
  return element("button", { type: "button", class: "tn-button", click, ...attributes }, text);
}

// The text of a program's output, in the form of the site's output.
export function textBlock(text, kind = "tn-text") {
  return element("pre", { class: kind, tabindex: "0" }, text);
}

// A picture apart from the page: the styles of neither reach the other.
export function picture(svg) {
  const title = /<title[^>]*>([^<]*)<\/title>/.exec(svg)?.[1] ?? "The picture that the cell draws";
  const named = new DOMParser().parseFromString(title, "text/html").documentElement.textContent;
  const address = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  return element("img", { src: address, alt: named });
}
