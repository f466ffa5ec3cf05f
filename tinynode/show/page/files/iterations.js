// The slider of iterations, and the curve of the loss above it.

// The losses of all iterations: numbers, or null where an iteration has no single number.
const losses = iterations.map(({ loss }) => {
  const cells = loss === null ? [] : film.values[loss].cells;
  return cells.length === 1 && typeof cells[0] === "number" ? cells[0] : null;
});

// Whether the reader goes from iteration to iteration; a folded film goes from box to box.
function hasIterations() {
  return iterations.length > 1 && folds.length === 0;
}

function drawIterations() {
  find("iterations").hidden = !hasIterations();
  if (!hasIterations()) return;
  find("iteration").max = iterations.length;
  const known = losses.filter((loss) => loss !== null);
  find("curve").hidden = known.length < 2;
  if (known.length > 1) drawCurve(known);
}

// Of a film with changes, the losses without the changes; a dashed curve.
function lossesBefore() {
  const before = compared?.losses?.[1] ?? [];
  return iterations.map((_, index) => (typeof before[index] === "number" ? before[index] : null));
}

// The curve, in a picture of 100 by 100: every iteration has its place on the slider.
function drawCurve(known) {
  const before = lossesBefore();
  const all = [...known, ...before.filter((loss) => loss !== null)];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  if (compared?.losses) {
    find("curve-lines").append(svg("path", { class: "curve before", d: pathOf(before, low, high) }));
  }
  find("curve-lines").append(
    svg("path", { class: "curve", d: pathOf(losses, low, high) }),
    svg("path", { class: "marker pointed", id: "curve-pointed", visibility: "hidden" }),
    svg("path", { class: "marker", id: "curve-marker" }),
  );
  find("curve-lines").setAttribute("aria-label", curveInWords(known));
  pointAtCurve();
  setText(find("curve-high"), `max ${numberText(high)}`); // not the ends of the curve
  setText(find("curve-low"), `min ${numberText(low)}`);
}

function pathOf(list, low, high) {
  let path = "";
  list.forEach((loss, index) => {
    if (loss !== null) path += `${path ? "L" : "M"}${placeOf(index)} ${heightOf(loss, low, high)}`;
  });
  return path;
}

function curveInWords(known) {
  const least = losses.indexOf(Math.min(...known));
  const ends = `from ${numberText(known[0])} to ${numberText(known.at(-1))}`;
  return `Curve of the loss: ${ends}, least ${numberText(losses[least])} at iteration ${least + 1}`;
}

// The pointer on the curve shows an iteration and its loss; a click goes there.
function pointAtCurve() {
  const [curve, here, line] = [find("curve"), find("curve-here"), find("curve-pointed")];
  const indexAt = (event) => {
    const box = find("curve-lines").getBoundingClientRect();
    const part = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
    return Math.round(part * (iterations.length - 1));
  };
  const leave = () => {
    here.hidden = true;
    line.setAttribute("visibility", "hidden");
  };
  curve.addEventListener("pointermove", (event) => {
    const index = indexAt(event);
    const loss = losses[index] === null ? "no loss" : `loss ${numberText(losses[index])}`;
    here.hidden = false;
    setText(here, `iteration ${index + 1}, ${loss}`);
    here.style.left = `${Math.max(12, Math.min(88, Number(placeOf(index))))}%`;
    line.setAttribute("d", `M${placeOf(index)} 0V100`);
    line.setAttribute("visibility", "visible");
  });
  curve.addEventListener("pointerleave", leave);
  curve.addEventListener("click", (event) => byHand(() => goToIteration(indexAt(event))));
}

function placeOf(index) {
  return ((100 * index) / (iterations.length - 1)).toFixed(2);
}

function heightOf(loss, low, high) {
  return (high > low ? 95 - (90 * (loss - low)) / (high - low) : 50).toFixed(1);
}

function showIteration() {
  const text = `Iteration ${iteration + 1} of ${iterations.length}`;
  const loss = losses[iteration];
  find("iteration").value = iteration + 1;
  find("iteration").setAttribute("aria-valuetext", text);
  setText(find("iteration-text"), loss === null ? text : `${text}, loss ${numberText(loss)}`);
  setText(
    find("iteration-arrays"),
    iterations[iteration].arrays ? "" : "Large arrays: only smallest, largest and mean are kept.",
  );
  setAttribute(find("curve-marker") ?? find("curve-lines"), "d", `M${placeOf(iteration)} 0V100`);
  setDisabled(find("iteration-back"), iteration === 0);
  setDisabled(find("iteration-next"), iteration === iterations.length - 1);
}
