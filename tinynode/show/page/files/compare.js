// Two films laid on each other: which steps differ, and the arrays of both.
//
// The page shows the second film. "compared" has the first one's arrays beside what differs.

const compared = film.compared ?? null;
const differencesAt = new Map(); // "iteration step" -> the rows of what differs
const missingAt = new Map(); // "iteration step" -> the steps of the first film before this one
const differingSteps = []; // [iteration, step] of each step that differs, in order

function drawCompared() {
  if (!compared) return;
  for (const [number, step, rows] of compared.steps) differencesAt.set(`${number} ${step}`, rows);
  for (const [number, step, words] of compared.missing) missingAt.set(`${number} ${step}`, words);
  differingSteps.push(...placesThatDiffer());
  find("compared").hidden = false;
  setText(find("compared-sentence"), compared.sentence);
  drawChanges();
  const buttons = ["difference-first", "difference-back", "difference-next"];
  for (const id of buttons) find(id).hidden = differingSteps.length === 0;
  onClick("difference-first", () => byHand(() => goToDifference(differingSteps[0])));
  onClick("difference-back", () => byHand(() => goToDifference(differenceBefore())));
  onClick("difference-next", () => byHand(() => goToDifference(differenceAfter())));
}

function placesThatDiffer() {
  const keys = new Set([...differencesAt.keys(), ...missingAt.keys()]);
  const places = [...keys].map((key) => key.split(" ").map(Number));
  return places.sort(([a, b], [c, d]) => a - c || b - d);
}

function goToDifference(place) {
  if (place) goFreely(place[1], place[0]);
}

// True on opening, where the page goes to the first difference.
function goToFirstDifference() {
  if (!compared?.first) return false;
  goFreely(compared.first[1], compared.first[0]);
  return true;
}

function differenceAfter() {
  return differingSteps.find(([number, step]) => number > iteration || (number === iteration && step > position));
}

function differenceBefore() {
  return differingSteps.findLast(([number, step]) => number < iteration || (number === iteration && step < position));
}

function showCompared() {
  if (!compared) return;
  showLosses();
  const rows = differencesAt.get(`${iteration} ${position}`) ?? [];
  const words = missingAt.get(`${iteration} ${position}`) ?? [];
  setDisabled(find("difference-back"), !differenceBefore());
  setDisabled(find("difference-next"), !differenceAfter());
  const told = rows.length || words.length ? "" : "This step is equal in both films.";
  const list = [
    words.length ? html("p", null, `Before this step, the ${compared.changes ? "unchanged" : "first"} film alone has: ${words.join(", ")}.`) : null,
    ...rows.map(differenceView),
    told ? quietLine(told) : null,
  ];
  replaceContent(find("compared-body"), list);
  showWay();
  const differing = new Set(rows.map(([, node]) => node));
  for (const [id, element] of nodeElements) element.classList.toggle("differs", differing.has(id));
}

// From the first difference to the loss: outlined in the picture, and the variables in words.
function showWay() {
  const isHere = iterations[compared.first?.[0]]?.picture === iterations[iteration].picture;
  const way = new Set(isHere ? compared.way : []);
  for (const [id, element] of nodeElements) element.classList.toggle("on-way", way.has(id));
  const names = [...way].filter((id) => nodes.get(id)?.kind === "variable").map(nameOf);
  setText(find("way"), `From the first difference to the loss: ${names.join(" → ")}`);
  find("way").hidden = names.length === 0;
}

function differenceView([part, , here, there, gap, words], index) {
  if (!part) return html("p", { class: "difference" }, compared.changes ? "The changed film alone has this step." : "The second film alone has this step.");
  const [first, second, minus] = namesOfFilms();
  const views = [[first, there], [second, here], [minus, gap]].map(([title, number]) =>
    html(
      "div",
      null,
      html("h4", null, title),
      valueView(number, `difference ${index} ${title}`, `${part}, ${title}`),
    ),
  );
  return html(
    "div",
    { class: "difference" },
    html("h3", null, `${part}: ${words}`),
    there === null ? null : html("div", { class: "three" }, ...views),
  );
}

function namesOfFilms() {
  if (compared.changes) return ["before", "after", "after minus before"];
  const [first, second] = compared.titles;
  return [
    first ? `first film, ${first}` : "first film",
    second ? `second film, ${second}` : "second film",
    "second minus first",
  ];
}

// Marks on the strip: the steps of the present iteration that differ.
function drawDifferences(strip) {
  for (const [number, step] of differingSteps) {
    if (number !== iteration) continue;
    strip.append(svg("rect", { x: step, y: 0, width: 1, height: 1, class: "differs" }));
  }
}
