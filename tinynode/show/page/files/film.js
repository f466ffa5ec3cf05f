// The film, and what changes in each of its steps.
//
// The page holds the film as JSON: pictures, iterations, and arrays. A picture has nodes and edges
// with their places, and steps. An iteration is one run through a picture, with its own values. A
// program without a loop has one picture and one iteration. A leaf with distant uses is drawn again
// beside them: such a box has the id of the leaf in "of", and shows the state of the leaf.
//
// A step says what changed, who plays which part, and which edges are lit: see looks.py, which
// computes them. This script applies them to boxes and edges.
//
// These files are one script, joined in the order of document.py. They use no library. Texts of the
// film are inserted as text, never as HTML: names are only names.

const film = unpacked(JSON.parse(document.getElementById("film").textContent));

function unpacked(data) {
  const { forms, arrays } = data.values;
  for (const one of data.iterations) {
    const [base, ...distances] = one.values;
    one.values = distances.map((distance) => (distance === null ? null : base + distance));
  }
  data.values = arrays.map(([form, min, max, mean, bad, cells]) => {
    const [shape, dtype, rows, columns, sampled, thinned] = forms[form];
    return { shape, dtype, rows, columns, sampled, thinned, min, max, mean, bad, cells };
  });
  return data;
}

const iterations = film.iterations;

// The present iteration: its number, picture, nodes and steps.
let iteration = -1;
let picture = { nodes: [], edges: [], steps: [], shared: [], width: 1, height: 1 };
let nodes = new Map();
let steps = [];
let changes = []; // for each step the changes of `now`, with what was there before
let stepsOfNode = new Map(); // the steps in which a node takes part, for the panel of a node

// What is true now, for each node.
let now = emptyState();

function emptyState() {
  return {
    born: new Map(), // whether it exists yet
    value: new Map(), // the number of its array in film.values
    kept: new Map(), // whether the array is kept for backward
    freed: new Map(), // whether the array went
    gradient: new Map(), // the number of its gradient in the table of the backward pass
    grad: new Map(), // the number of its gradient afterwards: the user's x.grad
  };
}

// The steps of an iteration: those of its picture, with its own values.
function stepsOf(number) {
  const { values, seconds, optimizers, watched: drawn, picture: index } = iterations[number];
  let next = 0;
  let updates = 0;
  let nextDrawn = 0;
  const entry = ([id]) => [id, values[next++]];
  return film.pictures[index].steps.map((step, i) => {
    const told = { ...step, seconds: seconds[i] };
    const place = next;
    told.changes = step.changes.map(([fact, id, what]) => [
      fact,
      id,
      typeof what === "number" ? values[place + what] : (what ?? undefined),
    ]);
    if (step.kind === "update") {
      [told.optimizer, told.rule] = optimizers[updates++] ?? [step.optimizer, step.rule];
    }
    for (const key of ["inputs", "outputs", "grad_outputs"]) told[key] = step[key].map(entry);
    told.grad_inputs = step.grad_inputs.map(([id, , how]) => [id, values[next++], how, values[next++]]);
    told.table = { ...step.table, set: step.table.set.map(entry) };
    told.updates = step.updates.map(([id, , , , moments]) => [
      id,
      values[next++],
      values[next++],
      values[next++],
      moments.map(([name]) => [name, values[next++], values[next++]]),
    ]);
    if (step.watched) told.watched = { ...step.watched, picture: drawn[nextDrawn++] };
    return told;
  });
}

// The values and gradients that parameters bring into each iteration, computed as far as needed.
const brought = [new Map()];

function broughtInto(number) {
  while (brought.length <= number) {
    const last = brought.length - 1;
    const state = startOf(last);
    recordChanges(stepsOf(last), state);
    const carried = new Map(brought[last]);
    for (const id of film.pictures[iterations[last].picture].shared) {
      carried.set(id, [state.value.get(id), state.grad.get(id)]);
    }
    brought.push(carried);
  }
  return brought[number];
}

// The state before the first step of an iteration.
function startOf(number) {
  const state = emptyState();
  for (const [id, [value, grad]] of broughtInto(number)) {
    state.value.set(id, value);
    state.grad.set(id, grad);
  }
  return state;
}

// Makes an iteration the present one, before its first step. True if the picture is another.
function enterIteration(number) {
  const old = picture;
  iteration = number;
  picture = film.pictures[iterations[number].picture];
  steps = stepsOf(number);
  now = startOf(number);
  changes = recordChanges(steps, startOf(number));
  if (picture === old) return false;
  nodes = new Map(picture.nodes.filter(({ of }) => of === null).map((node) => [node.id, node]));
  stepsOfNode = new Map([...nodes.keys()].map((id) => [id, []]));
  steps.forEach((step, index) => {
    const ids = new Set([step.function, ...allEntries(step).map((entry) => entry[0])]);
    for (const id of ids) stepsOfNode.get(id)?.push(index);
  });
  return true;
}

// The changes of each step, with what was there before. They are applied to the state.
function recordChanges(list, state) {
  return list.map((step) =>
    step.changes.map(([fact, id, after]) => {
      const before = state[fact].get(id);
      state[fact].set(id, after);
      return { fact, id, before, after };
    }),
  );
}

// The numbers of the edges that come with each step.
function edgesBorn(edges, list) {
  const births = list.map(() => []);
  edges.forEach((edge, index) => births[Math.min(edge.born, list.length - 1)]?.push(index));
  return births;
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

function nameOf(id) {
  return nodes.get(id)?.label ?? id;
}

function allEntries(step) {
  return [
    ...step.inputs,
    ...step.outputs,
    ...step.grad_outputs,
    ...step.grad_inputs,
    ...step.table.set,
    ...step.updates,
  ];
}
