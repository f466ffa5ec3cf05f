// The film, and what changes in each of its steps.
//
// The page holds the film as JSON: nodes and edges with their places, arrays, and steps. A step
// says what changed: an array was computed, a gradient came into the sweep's table, an array was
// freed.
//
// These files are one script, joined in this order: film.js, elements.js, arrays.js, graph.js,
// focus.js, panels.js, stepper.js. They use no library. What the film says is inserted as text,
// never as HTML: names are only names.

const film = JSON.parse(document.getElementById("film").textContent);
const steps = film.steps;
const nodes = new Map(film.nodes.map((node) => [node.id, node]));

// What is true now, for each node.
const now = emptyState();

function emptyState() {
  return {
    born: new Map(), // whether it exists yet
    value: new Map(), // the number of its array in film.values
    kept: new Map(), // whether the array is kept for backward
    freed: new Map(), // whether the array went
    gradient: new Map(), // the number of its gradient in the table of the sweep
    grad: new Map(), // the number of its gradient after a sweep: the user's x.grad
  };
}

// For each step the changes of `now`, with what was there before: so a film runs both ways.
const changes = recordChanges();

function recordChanges() {
  const state = emptyState();
  const births = bornInEachStep(film.nodes);
  return steps.map((step, index) => {
    const list = [];
    const change = (fact, id, after) => {
      const before = state[fact].get(id);
      if (before !== after) {
        state[fact].set(id, after);
        list.push({ fact, id, before, after });
      }
    };
    for (const node of births[index]) change("born", film.nodes[node].id, true);
    for (const [id, value] of arraysOf(step)) {
      if (value !== null) change("value", id, value);
      change("freed", id, false);
    }
    for (const id of step.retained) change("kept", id, true);
    for (const id of freedArrays(step)) {
      change("kept", id, false);
      change("freed", id, true);
    }
    for (const id of step.table.removed) change("gradient", id, undefined);
    for (const [id, value] of step.table.set) change("gradient", id, value);
    for (const [id, grad] of gradsOf(step)) change("grad", id, grad);
    return list;
  });
}

// The numbers of the nodes, or edges, that come with each step.
function bornInEachStep(things) {
  const births = steps.map(() => []);
  things.forEach((thing, index) => {
    births[Math.min(Math.max(thing.born, 0), steps.length - 1)]?.push(index);
  });
  return births;
}

// The arrays that a forward step computes or uses. Those that a backward step shows say nothing
// about now: the user may have let go of the Variable, and only the function keeps the array.
function arraysOf(step) {
  return step.kind === "forward" ? [...step.inputs, ...step.outputs] : [];
}

// What a step frees is arrays, and gradients that the table hands over.
function freedArrays(step) {
  const removed = new Set(step.table.removed);
  return step.freed.filter((id) => !removed.has(id));
}

function usedGradients(step) {
  const removed = new Set(step.table.removed);
  return step.freed.filter((id) => removed.has(id));
}

// What the end of a sweep writes into x.grad. "none" marks results that go to the caller of grad.
function gradsOf(step) {
  if (step.kind !== "end") return [];
  return step.grad_inputs
    .filter(([, , how]) => how !== "none")
    .map(([id, , , total]) => [id, total]);
}

function nameOf(id) {
  return nodes.get(id)?.label ?? id;
}

// The steps in which a node takes part, for the panel of a node.
const stepsOfNode = new Map(film.nodes.map((node) => [node.id, []]));
steps.forEach((step, index) => {
  const ids = new Set([step.function, ...allEntries(step).map((entry) => entry[0])]);
  for (const id of ids) stepsOfNode.get(id)?.push(index);
});

function allEntries(step) {
  return [
    ...step.inputs,
    ...step.outputs,
    ...step.grad_outputs,
    ...step.grad_inputs,
    ...step.table.set,
  ];
}
