// Trouble: the call that failed, and the first NaN or inf.

// The class and the words of an error, and the line that raised it, if it is another one.
function errorView(step) {
  if (!step.error) return null;
  const { name, text, at } = step.error;
  const file = film.files[at?.[0]];
  const isElsewhere = file && (at[0] !== step.at?.[0] || at[1] !== step.at?.[1]);
  const source = isElsewhere ? file.lines[at[1] - file.first]?.trim() : null;
  return html(
    "section",
    { class: "failure", "aria-label": "Error" },
    html("h3", null, name),
    text ? html("p", { class: "words" }, text) : null,
    isElsewhere ? html("p", { class: "facts" }, `Raised at ${file.name}, line ${at[1]}: `, html("code", null, source)) : null,
  );
}

// Where NaN or inf begins: the function made it of finite numbers.
function notFiniteView(step) {
  if (!step.not_finite) return null;
  return html(
    "section",
    { class: "failure", "aria-label": "NaN or inf" },
    html("h3", null, "NaN or inf begins here"),
    html("p", { class: "words" }, step.not_finite),
  );
}

// The panel of a failing call: the error, what the call was given, and the formula last.
function failureContent(step, given) {
  return [
    errorView(step),
    ...given,
    step.ran.length ? line("Ran inside:", step.ran.join(", ")) : null,
    factsOfStep(step),
    formulaView(step.class, step),
  ];
}

function isFailure(step) {
  return step.error !== null && step.kind !== "end";
}

// The first step of the film with NaN or inf of finite numbers: [iteration, step], or null.
function firstNotFinite() {
  const inPicture = film.pictures.map((one) => one.steps.findIndex((step) => step.not_finite));
  const number = iterations.findIndex((one) => inPicture[one.picture] >= 0);
  return number < 0 ? null : [number, inPicture[iterations[number].picture]];
}

function drawTrouble() {
  const notFinite = firstNotFinite();
  find("trouble").hidden = film.failed === null && notFinite === null;
  for (const [id, place] of [
    ["to-failure", film.failed],
    ["to-not-finite", notFinite],
  ]) {
    find(id).hidden = place === null;
    if (place) onClick(id, () => byHand(() => goFreely(place[1], place[0])));
  }
}

// On opening, the page of a program that failed goes to the failing call.
function goToFailure() {
  if (!film.failed) return false;
  goFreely(film.failed[1], film.failed[0]);
  return true;
}

// Marks on the strip: the steps that failed, and those with the first NaN or inf.
function markTrouble(strip) {
  steps.forEach((step, x) => {
    if (isFailure(step) || step.not_finite) {
      strip.append(svg("rect", { x, y: 0, width: 1, height: 1, class: "failed" }));
    }
  });
}
