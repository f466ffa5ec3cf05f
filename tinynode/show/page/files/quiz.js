// Questions: the film stops before a step, asks, and says why. Going back is free.
//
// data["questions"] has for each question the iteration and the step that come after it; a question
// behind the last step has the number of steps as its step.

const questions = film.questions.map((question) => ({ ...question, tries: 0, isClosed: false }));
let asked = null; // the question on the page
let playsOn = false; // whether the film plays on after the question
let cameFrom = null; // the element with the keyboard before the question

// Goes to a step, or to the first question on the way.
function go(target, number = iteration) {
  const question = onTheWay(target, number);
  if (question) moveTo(...placeBefore(question));
  else moveTo(target, number);
  showQuestion(question ?? questionAtEnd());
}

// Goes to a step without questions: an address leads to its step.
function goFreely(target, number) {
  moveTo(target, number);
  showQuestion(questionAtEnd());
}

function onTheWay(target, number) {
  const here = [iteration, position];
  const wanted = [Math.min(Math.max(number, 0), iterations.length - 1), Math.max(target, 0)];
  return questions.find((question) => {
    const place = [question.iteration, question.step];
    const isAhead = isAfter(place, here) || (isAtStart(question) && !isAfter(here, place));
    return !question.isClosed && isAhead && !isAfter(place, wanted);
  });
}

function isAfter([iteration1, step1], [iteration2, step2]) {
  return iteration1 === iteration2 ? step1 > step2 : iteration1 > iteration2;
}

function isAtStart(question) {
  return question.iteration === 0 && question.step === 0;
}

function placeBefore(question) {
  if (question.step > 0) return [question.step - 1, question.iteration];
  return question.iteration > 0 ? [Infinity, question.iteration - 1] : [0, 0];
}

function questionAtEnd() {
  const isBehind = ({ isClosed, step }) => !isClosed && step >= steps.length;
  return isAtEnd() ? questions.find(isBehind) : undefined;
}

// --- the form ----------------------------------------------------------------------------------

function drawQuiz() {
  if (questions.length === 0) return;
  const form = html("form", { id: "quiz", "aria-labelledby": "quiz-title", hidden: true });
  form.append(
    html("p", null, html("strong", { id: "quiz-title" }), " ", html("span", { id: "quiz-hint" })),
    html("div", { id: "quiz-question" }),
    html("div", { class: "quiz-buttons" },
      html("button", { type: "submit", id: "answer", class: "main" }, "Answer"),
      html("button", { type: "button", id: "skip" }, "Skip"),
      html("button", { type: "button", id: "skip-all" }, "Skip all"),
    ),
    html("p", { id: "verdict", role: "status" }),
  );
  const again = html("button", { type: "button", id: "again", hidden: true }, "Ask again");
  const score = html("p", { id: "score" }, html("span", { role: "status" }), " ", again);
  find("controls").append(form, score);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (asked.isClosed) goOnFrom(asked);
    else judge(asked);
  });
  onClick("skip", () => (asked.tries === 0 ? skip(asked) : showAnswer(asked)));
  onClick("skip-all", skipAll);
  onClick("again", askAgain);
}

// Shows a question, or none. What would tell the answer is hidden by the style sheet.
function showQuestion(question = null) {
  if (questions.length === 0) return;
  const isNew = question !== asked;
  asked = question;
  document.documentElement.classList.toggle("asking", question !== null);
  document.documentElement.classList.toggle("covered", question !== null && isAtStart(question));
  find("quiz").hidden = question === null;
  if (question !== null) {
    find("slider").value = position + 1; // the thumb may have been dragged on
    find("iteration").value = iteration + 1;
    if (isNew) drawQuestion(question);
    stopForQuestion();
  }
  showScore();
}

function stopForQuestion() {
  if (timer !== null) {
    pause();
    playsOn = true;
  }
  const form = find("quiz");
  if (form.contains(document.activeElement)) return;
  cameFrom = document.activeElement;
  if (isStarted) form.querySelector("input").focus({ preventScroll: true });
}

function drawQuestion(question) {
  const number = questions.indexOf(question) + 1;
  setText(find("quiz-title"), `Question ${number} of ${questions.length}`);
  setText(find("quiz-hint"), hintOf(question));
  const draw = question.kind === "choice" ? choiceField : textField;
  find("quiz-question").replaceChildren(...draw(question));
  setText(find("verdict"), "");
  nameButtons(question);
}

function nameButtons(question) {
  setText(find("answer"), question.isClosed ? "Go on" : "Answer");
  setText(find("skip"), question.tries === 0 ? "Skip" : "Show the answer");
  find("skip").hidden = find("skip-all").hidden = question.isClosed;
}

function hintOf({ kind, answer }) {
  if (kind === "choice") return "Choose an answer.";
  if (kind === "text") return "Write a word or a few.";
  const numbers = answer.length === 1 ? "a number" : `${answer.length} numbers`;
  return `Write ${numbers}; three digits suffice.`;
}

function textField(question) {
  return [
    html("label", { for: "quiz-answer" }, question.text),
    html("input", {
      type: "text",
      id: "quiz-answer",
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: "false",
      "aria-describedby": "quiz-hint",
    }),
  ];
}

function choiceField(question) {
  const choice = (text, i) =>
    html("label", { class: "choice" },
      html("input", { type: "radio", name: "choice", value: i }), ` ${text}`);
  return [
    html("fieldset", null, html("legend", null, question.text), ...question.choices.map(choice)),
  ];
}

// --- answers -----------------------------------------------------------------------------------

function judge(question) {
  const judges = { numbers: judgeNumbers, choice: judgeChoice, text: judgeText };
  const problem = judges[question.kind](question);
  if (typeof problem === "string") {
    setText(find("verdict"), problem);
    return;
  }
  question.tries++;
  if (problem) {
    close(question, question.tries === 1, "Right.");
  } else {
    setText(find("verdict"), `Not right. Try again, or see the answer. Tries: ${question.tries}.`);
    nameButtons(question);
  }
}

// True or false; or, for what is no answer, a hint as text.
function judgeNumbers({ answer }) {
  const text = find("quiz-answer").value.replaceAll("\u2212", "-");
  const words = text.split(/[\s,;[\]()]+/).filter((word) => word !== "");
  const numbers = words.map(Number);
  if (words.length === 0 || numbers.some(Number.isNaN)) return "Write numbers, such as 0.5 -2 1e-3.";
  if (numbers.length !== answer.length) {
    return `The answer has ${answer.length} numbers, and yours has ${numbers.length}.`;
  }
  return numbers.every((number, i) => isEqual(number, answer[i]));
}

// Equal in 3 significant digits.
function isEqual(number, expected) {
  if (expected === 0) return number === 0;
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(expected))) - 2);
  return Math.abs(number - expected) <= 0.5 * unit * (1 + 1e-9);
}

function judgeChoice({ answer, choices }) {
  const chosen = find("quiz-question").querySelector("input:checked");
  return chosen === null ? "Choose an answer." : choices[Number(chosen.value)] === answer;
}

function judgeText({ answer }) {
  const plain = (text) => text.trim().replace(/\s+/g, " ").toLowerCase();
  const text = plain(find("quiz-answer").value);
  return text === "" ? "Write an answer." : text === plain(answer);
}

function answerText({ kind, answer }) {
  return kind === "numbers" ? answer.map(numberText).join(", ") : answer;
}

function close(question, isRight, verdict) {
  question.isClosed = true;
  question.isRight = isRight;
  setText(find("verdict"), `${verdict} ${question.why}`.trim());
  for (const input of find("quiz").querySelectorAll("input")) input.disabled = true;
  nameButtons(question);
  find("answer").focus({ preventScroll: true });
  showScore();
}

function showAnswer(question) {
  close(question, false, `The answer: ${answerText(question)}.`);
}

function skip(question) {
  question.isClosed = question.isSkipped = true;
  goOnFrom(question);
}

function skipAll() {
  const question = asked;
  for (const one of questions) if (!one.isClosed) one.isClosed = one.isSkipped = true;
  goOnFrom(question);
}

// Takes the step that waited for the answer.
function goOnFrom(question) {
  const focused = cameFrom;
  const plays = playsOn;
  [cameFrom, playsOn] = [null, false];
  if (question.step >= steps.length && isAtEnd()) showQuestion(questionAtEnd());
  else go(question.step, question.iteration);
  if (asked === null) {
    (focused?.isConnected && focused !== document.body ? focused : find("next")).focus({
      preventScroll: true,
    });
    if (plays && !isAtEnd()) play();
  } else {
    [cameFrom, playsOn] = [focused, plays];
    find("quiz").querySelector("input").focus({ preventScroll: true });
  }
}

function askAgain() {
  for (const question of questions) {
    Object.assign(question, { tries: 0, isClosed: false, isRight: false, isSkipped: false });
  }
  moveTo(0, 0);
  go(0, 0);
  if (asked === null) find("next").focus({ preventScroll: true });
}

function showScore() {
  const closed = questions.filter(({ isClosed }) => isClosed);
  const right = closed.filter(({ isRight }) => isRight).length;
  const skipped = closed.filter(({ isSkipped }) => isSkipped).length;
  const parts = [`${right} of ${closed.length} right at the first try`];
  if (skipped > 0) parts.push(`${skipped} skipped`);
  const isOver = isAtEnd() && asked === null && closed.length === questions.length;
  if (!isOver) parts.push(`${questions.length - closed.length} to come`);
  setText(find("score").firstChild, `${isOver ? "The end. " : ""}Questions: ${parts.join(", ")}.`);
  find("score").classList.toggle("over", isOver);
  find("again").hidden = !isOver;
}
