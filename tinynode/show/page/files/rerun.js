// Change and run again: the reader edits the program's text, and the program runs again.
//
// The edit is offered where Python can run:
// - in a page of `python -m tinynode step --serve`: the server runs the program;
// - in a page whose window, or the window around its frame, has a function `tinynodeRun`, for
//   instance a notebook's extension. `tinynodeRun(text, changes)` runs the program and puts the
//   new film in the place of this page. It returns a promise of an error text; the empty text means
//   success. The program's text is `program` of the film's data, else `tinynodeRun.program`;
// - in a frame of the browser course, where the page around it runs the program.
//
// A run may have changes of numbers: see change.js.

const runsHere = hookOf(window) ?? hookOf(parent);
const runner = runsHere ?? runnerOutside();
const program = film.program ?? runsHere?.program;
const canRun = runner !== null && typeof program === "string";
let isRunning = false;

function hookOf(frame) {
  try {
    return typeof frame.tinynodeRun === "function" ? frame.tinynodeRun : null;
  } catch {
    return null; // the window around the frame belongs to another site
  }
}

function runnerOutside() {
  if (film.host === "course") return runAround;
  return location.protocol.startsWith("http") ? runOnServer : null;
}

// The page around the frame runs its program, and replaces the frame; it answers an error alone.
function runAround(text, changes = []) {
  return new Promise((resolve) => {
    const hear = ({ source, data }) => {
      if (source !== parent || typeof data?.tinynodeError !== "string") return;
      removeEventListener("message", hear);
      resolve(data.tinynodeError);
    };
    addEventListener("message", hear);
    parent.postMessage({ tinynodeChanges: changes }, "*"); // names and numbers of this film
  });
}

async function runOnServer(text, changes = []) {
  const { error, output, film: filmed } = await post("run", { program: text, changes });
  if (!error) reloadAtTop(); // the address keeps the step
  find("show-failure").hidden = !filmed;
  return error && `${error}\n${output ?? ""}`.trim();
}

async function post(name, content) {
  const reply = await fetch(name, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(content),
  });
  return reply.ok ? reply.json() : { error: await reply.text() };
}

// --- the editor --------------------------------------------------------------------------------

function drawEditor() {
  connectChange();
  if (!canRun) return;
  const panel = find("user-code").parentElement;
  const button = (id, text, title) => html("button", { type: "button", id, title }, text);
  panel.firstElementChild.append(button("edit", "Edit", "Edit the program and run it again"));
  panel.append(
    html("div", { id: "editor", hidden: true },
      html("p", { id: "run-error", class: "notice", role: "alert", tabindex: 0, hidden: true }),
      html("textarea", {
        id: "program",
        spellcheck: "false",
        autocapitalize: "off",
        wrap: "off",
        "aria-label": "The program. Control and Enter run it.",
      }),
      html("p", { class: "quiz-buttons" },
        html("button", { type: "button", id: "show-failure", hidden: true }, "Show the call that failed"),
        html("button", { type: "button", id: "run", class: "main" }, "Run"),
        button("stop", "Stop", "End the run"),
        button("close-editor", "Close", "Back to the film; the edit stays"),
        html("span", { id: "run-text", role: "status" }),
      ),
      html("p", { class: "quiet" }, "Ctrl-Enter runs it. The file of the program is not changed."),
    ),
  );
  find("program").value = program;
  find("stop").hidden = true;
  connectEditor();
}

function connectEditor() {
  onClick("edit", () => openEditor(lineStart(Number(markedLine?.dataset.line ?? 1))));
  onClick("close-editor", closeEditor);
  onClick("show-failure", openAtFailure);
  onClick("run", runProgram);
  onClick("stop", () => post("stop", {}));
  find("program").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      runProgram();
    } else if (event.key === "Escape") {
      closeEditor();
    }
  });
  document.documentElement.classList.add("can-run");
  find("user-code").addEventListener("click", (event) => editNumber(event.target));
  graph.addEventListener("click", (event) => {
    const id = event.target.closest(".numbers-here .value") && event.target.closest("[data-id]");
    if (id) editVariable(nodes.get(id.dataset.id)?.of ?? id.dataset.id); // a leaf drawn again
  });
}

// The new film of a program that failed opens at the failing call.
function openAtFailure() {
  tryToSetAddress(location.pathname);
  reloadAtTop();
}

// What is new stands above: the losses, and the reason of a failure.
function reloadAtTop() {
  history.scrollRestoration = "manual";
  location.reload();
}

function openEditor([start, end]) {
  const area = find("program");
  find("user-code").hidden = true;
  find("editor").hidden = false;
  find("edit").hidden = true;
  pause();
  area.focus({ preventScroll: true });
  find("editor").scrollIntoView({ block: "nearest" });
  area.setSelectionRange(start, end);
  const line = area.value.slice(0, start).split("\n").length;
  area.scrollTop = (line - 4) * Number.parseFloat(getComputedStyle(area).lineHeight);
}

function closeEditor() {
  find("user-code").hidden = false;
  find("editor").hidden = true;
  find("edit").hidden = false;
  find("edit").focus();
}

async function runProgram() {
  if (isRunning) return;
  isRunning = true;
  setText(find("run-text"), "The program runs …");
  find("run-error").hidden = true;
  find("show-failure").hidden = true;
  find("stop").hidden = runner !== runOnServer;
  let error;
  try {
    error = await runner(find("program").value);
  } catch (problem) {
    error = `The program did not run: ${problem.message}`;
  }
  isRunning = false;
  find("stop").hidden = true;
  setText(find("run-text"), error ? "" : "Done.");
  find("run-error").hidden = !error;
  setText(find("run-error"), error || "");
  find("run-error").scrollTop = find("run-error").scrollHeight; // an error is at the end
}

// --- places in the program ---------------------------------------------------------------------

// The start and end of a line, as characters of the text.
function lineStart(number) {
  const lines = find("program").value.split("\n");
  const start = lines.slice(0, number - 1).join("\n").length + (number > 1 ? 1 : 0);
  return [start, start];
}

// A click on a number in the source: the editor with the number selected.
function editNumber(digit) {
  const line = digit.closest("li");
  if (!digit.matches(".digit") || line === null) return;
  const number = Number(line.dataset.line);
  if (find("program").value.split("\n")[number - 1] !== line.textContent) return; // another file
  let before = 0;
  for (let part = digit.previousSibling; part; part = part.previousSibling) {
    before += part.textContent.length;
  }
  const start = lineStart(number)[0] + before;
  openEditor([start, start + digit.textContent.length]);
}

const MOST_TO_EDIT = 36;

// The place of the first number of a variable in the program, for inputs and parameters such as
// `x = tn.Variable(np.array([1.0, 2.0]))`; else null.
function numberOf(id) {
  const node = nodes.get(id);
  const value = film.values[now.value.get(id)];
  const isLeaf = node?.kind === "variable" && picture.edges.every(({ to }) => to !== id);
  const size = value?.shape.reduce((product, length) => product * length, 1);
  if (!canRun || !isLeaf || !(size <= MOST_TO_EDIT)) return null;
  const name = node.label.replace(/[^\w]/g, "\\$&");
  const assignment = new RegExp(String.raw`^[ \t]*(?:${name}[ \t]*(?::[^=\n]*)?=(?!=))`, "m");
  const text = find("program").value;
  const found = assignment.exec(text) ?? new RegExp(`^.*name=["']${name}["']`, "m").exec(text);
  if (found === null) return null;
  const from = text[found.index + found[0].length - 1] === "=" ? found.index + found[0].length : found.index;
  const rest = text.slice(from).split("\n", 1)[0];
  const number = /(?<![\w.])-?\d[\w.]*(?:(?<=[eE])[+-]\d+)?/.exec(rest);
  return number && [from + number.index, from + number.index + number[0].length];
}

function editVariable(id) {
  const place = numberOf(id);
  if (place !== null) openEditor(place);
}

// For the panel of a variable: a button to its number in the program.
function editButton(node) {
  if (numberOf(node.id) === null) return null;
  const button = html("button", { type: "button", "data-key": "edit" }, "Edit in the program");
  button.addEventListener("click", () => editVariable(node.id));
  return html("p", { class: "line" }, button);
}
