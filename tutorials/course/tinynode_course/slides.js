"use strict";
// Arrow keys, page keys, space and clicks turn over; the address keeps the number of the slide.
const slides = [...document.querySelectorAll("section")];
let place = 0;

function show(number) {
  place = Math.max(0, Math.min(slides.length - 1, number));
  slides.forEach((slide, k) => slide.classList.toggle("now", k === place));
  document.getElementById("place").textContent = `${place + 1} / ${slides.length}`;
  history.replaceState(null, "", `#${place + 1}`);
}

// smaller letters where a slide is too full
function shrink(slide) {
  for (let scale = 1; scale > 0.4; scale -= 0.05) {
    slide.style.setProperty("--scale", scale.toFixed(2));
    if (slide.scrollHeight <= slide.clientHeight && slide.scrollWidth <= slide.clientWidth) return;
  }
}

function fit() {
  const scale = Math.min(innerWidth / 1280, innerHeight / 720);
  document.querySelector("main").style.setProperty("--fit", scale);
}

addEventListener("resize", fit);
addEventListener("hashchange", () => show(Number(location.hash.slice(1)) - 1 || 0));
addEventListener("keydown", (event) => {
  const turns = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1,
    PageUp: -1 };
  if (event.key in turns) show(place + turns[event.key]);
  else if (event.key === "Home") show(0);
  else if (event.key === "End") show(slides.length - 1);
  else return;
  event.preventDefault();
});
document.querySelector("main").addEventListener("click", (event) => {
  if (getSelection().toString() || event.target.closest("a, button, iframe, svg")) return;
  show(place + (event.clientX < innerWidth / 3 ? -1 : 1));
});
fit();
slides.forEach(shrink);
show(Number(location.hash.slice(1)) - 1 || 0);
