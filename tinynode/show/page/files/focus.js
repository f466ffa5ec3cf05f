// What is in focus: the current step, or a node.

function pin(id) {
  const old = pinned;
  pinned = id;
  previewed = null;
  if (old !== null) updateNode(old);
  if (id !== null) updateNode(id);
  if (id !== null) setReachable(nodeElements.get(id));
  showFocus();
}

// The keyboard looks at a node as long as it is in the graph, or in the panel that shows it.
function endPreview(event) {
  const isNear = event.target.closest("#graph, .legend, #focus") !== null;
  if (!isNear) preview(null);
}

function preview(id) {
  if (previewed === id) return;
  previewed = id;
  showFocus();
}

function showFocus() {
  const id = previewed ?? pinned;
  const body = find("focus-body");
  find("unpin").hidden = id === null;
  body.dataset.focus = id ?? "step";
  if (id !== null) {
    setText(find("focus-title"), nameOf(id));
    replaceContent(body, nodeContent(nodes.get(id)));
  } else if (currentStep() !== null) {
    setText(find("focus-title"), stepName(currentStep()));
    replaceContent(body, stepContent(currentStep()));
  }
}

function stepName(step) {
  if (step.kind === "sweep") return "Backward starts";
  if (step.kind === "end") return "Backward has ended";
  if (step.kind === "update") return step.optimizer;
  if (step.kind === "error") return step.call || "Error";
  if (step.kind === "watch") return `Watched: ${watched.subjects[step.watched.subject].name}`;
  return `${functionName(step)}, ${step.kind}`;
}

function stepContent(step) {
  const parts = { sweep: seedParts, backward: backwardParts, end: resultParts, update: updateParts, watch: watchParts };
  if (isFailure(step)) return failureContent(step, (parts[step.kind] ?? forwardParts)(step));
  return [
    errorView(step), // of a backward pass that the program caught
    notFiniteView(step),
    factsOfStep(step),
    foldButton(step.function),
    ...chainParts(step),
    step.kind === "update" ? null : formulaView(step.class, step),
    ...(parts[step.kind] ?? forwardParts)(step),
    nodeList("retained", "Retained for backward:", step.retained),
    nodeList("freed", "Array freed:", freedArrays(step)),
    nodeList("used up", "Gradient used up:", usedGradients(step)),
    step.copied.length ? line("Copied from the host:", step.copied.join("; ")) : null,
    step.ran.length ? line("Ran inside:", step.ran.join(", ")) : null,
    step.kind === "update" ? formulaView(step.class) : null, // the numbers come first
  ];
}

function forwardParts(step) {
  return [
    section("Inputs", null, "forward", arrayCards(step.inputs, "input")),
    section("Outputs", null, "forward", arrayCards(step.outputs, "output")),
  ];
}

function seedParts(step) {
  return [
    section(
      "Seeds",
      "the gradients that it starts with",
      "backward",
      gradientCards(step.grad_outputs),
    ),
  ];
}

function backwardParts(step) {
  const isKept = ([, value]) => value !== null;
  return [
    section("Gradients in", "of the outputs", "backward", gradientCards(step.grad_outputs)),
    section("Gradients out", "of the inputs", "backward", contributionCards(step)),
    section("Arrays retained by forward", null, "forward", [
      ...arrayCards(step.inputs.filter(isKept), "input"),
      ...arrayCards(step.outputs.filter(isKept), "output"),
    ]),
  ];
}

// The results, large: value and gradient of each variable. A gradient added to an older one is
// shown as a sum.
function resultParts(step) {
  const there = gradientsBefore(step);
  const rows = step.grad_inputs.map(([id, value, how, total], i) => {
    const name = nameOf(id);
    const key = `gradient out ${i}`;
    const old = there.get(id) ?? null;
    const isSum = how === "added" && old !== null;
    const known = now.value.get(id);
    const title = how === "none" ? "gradient, returned by grad" : "gradient";
    return html(
      "div",
      { class: "result", "data-node": id },
      html("div", { class: "card-head" }, nodeButton(id, key), isSum ? tag(how) : null),
      known === undefined ? null : labelled("value", valueView(known, `${key} value`, name)),
      labelled(
        title,
        changeable(
          isSum
            ? sumView(old, value, total, key, `gradient of ${name}`)
            : valueView(total ?? value, `${key} cells`, `gradient of ${name}`),
          id,
          "gradient",
        ),
      ),
    );
  });
  return rows.length ? [html("section", { class: "part backward results" }, ...rows)] : [];
}

function labelled(title, content) {
  return html("div", null, html("p", { class: "facts" }, title), content);
}

// Each parameter before the update, its gradient, the optimizer's moments, and afterwards. A short
// rule is an equation of the arrays: after = before - 0.1 * gradient.
function updateParts(step) {
  const updates = step.updates.map(([id, old, gradient, value, moments], i) => {
    const part = (title, number, kind) => {
      const view =
        number === null ? quietLine("none") : valueView(number, `update ${i} ${title}`, `${title} of ${nameOf(id)}`);
      const name = { before: "value", gradient: "gradient" }[title];
      const content = name ? changeable(view, id, name) : view;
      return html("div", { class: `card ${kind}` }, html("div", { class: "card-head" }, title), content);
    };
    const cards = [
      part("before", old, ""),
      part("gradient", gradient, "backward"),
      ...moments.map(([name, , after]) => part(name, after, "")),
      value === null ? null : part("after", value, ""), // null: the update has failed
    ].filter((card) => card !== null);
    const head = html("h3", null, nodeButton(id, `update ${i}`));
    const named = { before: old, gradient, after: value };
    for (const [name, before, after] of moments) [named[name], named[`${name}_old`]] = [after, before];
    const content = step.rule && value !== null ? ruleView(step.rule, named, part) : cards;
    const isRule = step.rule && value !== null;
    const body = isRule ? content : [html("div", { class: "cards" }, ...content)];
    return html("section", { class: "part update" }, head, ...body);
  });
  return [settingsLine(step), ...updates];
}

// Equations with arrays in the places of their names; the last one gives the parameter.
function ruleView(rule, named, part) {
  const signs = { "*": "·", "-": "\u2212", sqrt: "√" };
  return rule.split("; ").map((equation) => {
    const words = equation.split(" ");
    if (!words.includes("=")) words.unshift("after", "=");
    const parts = words.map((word) =>
      Object.hasOwn(named, word)
        ? part(word, named[word], word === "gradient" ? "backward" : "")
        : html("span", { class: "sign" }, signs[word] ?? word),
    );
    return html("div", { class: "cards rule" }, ...parts);
  });
}

function factsOfStep(step) {
  const facts = [];
  const node = nodes.get(step.function);
  if (typeof step.seconds === "number") facts.push(timeText(step.seconds));
  if (step.depth > 1) facts.push(`a backward pass inside of ${step.depth - 1}`);
  const line = html("p", { class: "facts" }, node ? term("rank", `rank ${node.rank}`) : null);
  line.append([node ? "" : null, ...facts].filter((fact) => fact !== null).join(" · "));
  return line;
}

function timeText(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  if (seconds >= 1e-3) return `${(seconds * 1e3).toFixed(1)} ms`;
  return `${(seconds * 1e6).toFixed(0)} µs`;
}

function formulaView(className, step = null) {
  const known = film.classes[className];
  return known?.formula ? docstringView(known, step) : null;
}

function section(title, explanation, phase, cards) {
  if (cards.length === 0) return null;
  const note = explanation ? html("span", { class: "quiet" }, ` ${explanation}`) : null;
  const head = html("h3", null, title, note);
  return html(
    "section",
    { class: `part ${phase}` },
    head,
    html("div", { class: "cards" }, ...cards),
  );
}

function arrayCards(entries, role) {
  return entries.map(([id, value], i) => {
    const content = changeable(valueView(value, `${role} ${i} cells`, nameOf(id)), id, "value");
    return card(id, `${role} ${i}`, null, [content]);
  });
}

function gradientCards(entries) {
  return entries.map(([id, value], i) => {
    const key = `gradient in ${i}`;
    const content =
      value === null
        ? quietLine("no gradient came")
        : changeable(valueView(value, `${key} cells`, `gradient of ${nameOf(id)}`), id, "gradient");
    return card(id, key, null, [content]);
  });
}

// A card: whose array it is, and the array. The name is a button that puts the node in focus.
function card(id, key, tag, content) {
  const head = html("div", { class: "card-head" }, nodeButton(id, key), tag);
  return html("div", { class: "card", "data-node": id }, head, ...content);
}

// A dotted name, which may go on in a new line behind each dot.
function breakable(name) {
  return name.split(/(?<=\.)/).flatMap((word) => [word, html("wbr")]);
}

function nodeButton(id, key) {
  const facts = nodes.get(id)?.facts.join(", ") || null; // two nodes may have one name
  const button = html(
    "button",
    { type: "button", class: "name", "data-key": key, title: facts },
    ...breakable(nameOf(id)),
  );
  button.addEventListener("click", () => {
    if (!nodes.has(id)) return;
    pin(id);
    bringIntoView(id);
  });
  return button;
}

// The gradients that a backward hands on: the first one, or one that is added to what is there.
function contributionCards(step) {
  const there = gradientsBefore(step);
  return step.grad_inputs.map(([id, value, how, total], i) => {
    const old = there.get(id) ?? null;
    there.set(id, total ?? value);
    const key = `gradient out ${i}`;
    const name = `gradient of ${nameOf(id)}`;
    const isSum = how === "added" && old !== null && total !== null;
    if (isSum) {
      const sum = changeable(sumView(old, value, total, key, name), id, "gradient");
      return card(id, key, tag(how), [sum]);
    }
    if (value === null) return card(id, key, tag(how), [quietLine("no gradient")]);
    const view = valueView(total ?? value, `${key} cells`, name); // a change may have another total
    return card(id, key, tag(how), [changeable(view, id, "gradient")]);
  });
}

// What was there + what came = what is there now.
function sumView(old, value, total, key, name) {
  return html(
    "div",
    { class: "sum" },
    valueView(old, `${key} old`, `${name} so far`),
    signed("+", valueView(value, `${key} new`, `contribution to the ${name}`)),
    signed("=", valueView(total, `${key} cells`, `${name} in all`)),
  );
}

function signed(sign, content) {
  return html("div", { class: "signed" }, html("span", { class: "sign" }, sign), content);
}

function tag(how) {
  if (how === "none") return html("span", { class: "tag" });
  const element = term(how, how);
  element.classList.add("tag", how);
  return element;
}

// The gradients that a step adds to, as they were before it: its changes, undone.
function gradientsBefore(step) {
  const fact = step.kind === "end" ? "grad" : "gradient";
  const before = new Map(now[fact]);
  for (const change of [...changes[position]].reverse()) {
    if (change.fact === fact) before.set(change.id, change.before);
  }
  return before;
}

function nodeList(word, title, ids) {
  if (ids.length === 0) return null;
  const buttons = ids.map((id) => nodeButton(id, `${title} ${id}`));
  return html("p", { class: "line" }, html("strong", null, term(word, title)), " ", ...buttons);
}

function line(title, text) {
  return html("p", { class: "line" }, html("strong", null, title), ` ${text}`);
}

// A node: what it is, its array and gradient at this step, and the steps it takes part in.
function nodeContent(node) {
  const facts = [node.kind, ...node.facts, `rank ${node.rank}`];
  if (node.group) facts.push(`in ${node.group}`);
  return [
    html("p", { class: "facts" }, facts.join(" · ")),
    html("p", { class: "facts" }, stateOfNode(node)),
    editButton(node),
    foldButton(node.id),
    node.kind === "function" ? formulaView(classOfNode(node)) : null,
    ...(node.kind === "variable" ? arraysOfVariable(node) : arraysOfFunction(node)),
    stepList(node),
  ];
}

// What a function was applied to, and what it computed, once it has run.
function arraysOfFunction(node) {
  const isForward = (index) => steps[index].function === node.id && steps[index].kind === "forward";
  const index = stepsOfNode.get(node.id).find(isForward);
  return index === undefined || index > position ? [] : forwardParts(steps[index]);
}

function arraysOfVariable(node) {
  const value = now.value.get(node.id);
  const gradient = gradientOf(node.id);
  const where =
    now.gradient.get(node.id) === undefined ? "in grad" : "in the table of backward";
  const view = (number, what) => {
    const shown = valueView(number, what, `${what} of ${node.label}`);
    const part = what === "array" ? "value" : "gradient";
    return html("div", { class: "card" }, changeable(shown, node.id, part));
  };
  return [
    value === undefined ? null : section("Array", null, "forward", [view(value, "array")]),
    gradient === undefined
      ? line("Gradient:", "none at this step")
      : section("Gradient", where, "backward", [view(gradient, "gradient")]),
  ];
}

function stateOfNode(node) {
  if (!now.born.get(node.id)) return "Not there yet.";
  const said = [];
  if (now.kept.get(node.id)) said.push("array retained for backward");
  if (now.freed.get(node.id)) said.push("freed");
  return said.join(" · ");
}

function classOfNode(node) {
  const first = stepsOfNode.get(node.id).find((index) => steps[index].function === node.id);
  return first === undefined ? null : steps[first].class;
}

function stepList(node) {
  const items = stepsOfNode
    .get(node.id)
    .slice(0, 30)
    .map((index) => html("li", null, stepButton(index)));
  if (items.length === 0) return null;
  const list = html("ul", { class: "steps" }, ...items);
  return html("section", { class: "part" }, html("h3", null, "Steps"), list);
}

function stepButton(index) {
  const here = index === position ? "step" : null;
  const button = html(
    "button",
    { type: "button", class: "name", "data-key": `step ${index}`, "aria-current": here },
    `${index + 1} ${stepName(steps[index])}`,
  );
  button.addEventListener("click", () => go(index));
  return button;
}
