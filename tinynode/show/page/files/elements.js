// Making and changing elements.

const SVG = "http://www.w3.org/2000/svg";

function html(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== null)); // strings become text nodes
  return element;
}

function quietLine(text) {
  return html("p", { class: "quiet" }, text);
}

function find(id) {
  return document.getElementById(id);
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

// Replaces what is in a panel. Who was on one of its buttons stays on the one of the same name.
function replaceContent(panel, children) {
  const active = document.activeElement;
  const key = panel.contains(active) ? active.dataset.key : undefined;
  panel.replaceChildren(...children.filter((child) => child !== null));
  if (key !== undefined) {
    const same = [...panel.querySelectorAll("[data-key]")].find(
      (child) => child.dataset.key === key,
    );
    (same ?? panel.closest("[tabindex]") ?? panel).focus({ preventScroll: true });
  }
}
