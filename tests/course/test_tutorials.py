"""The steps of the course: each runs, has its parts, and its exercise can be failed and passed.

What a step is made of is in tinynode_course.cells and tinynode_course.sources; these tests hold
for whatever steps there are.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from forked_examiner import events_of

from tinynode_course import (
    cells,
    checking,
    examiner,
    execution,
    exercises,
    grading,
    hints,
    lessons,
    mynode,
    pages,
    places,
    sources,
    swapping,
)
from tinynode_course.sources import Step
from tools import make_notebooks

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tutorials"
STEPS = sources.steps()
EXERCISES = [s for s in STEPS if s.stub.exists() and s.check.exists() and s.solution.exists()]
BUILDERS = [step for step in mynode.builders() if step.builds]
PORTABLE = [step for step in STEPS if "portable" in cells.read(step.path)[0].tags]
SECTIONS = ["Predict", "Run", "See", "Break it", "Fix it", "Exercise"]
LAST = 26
"""The number of the last step."""


CODE = re.compile(r"[=_(){}\[\]`]|\w\.\w")
"""Signs of code: a question has none."""


def each(steps: list[Step]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("step", steps, ids=[step.name for step in steps])


def headings(step: Step, sign: str) -> list[str]:
    """The headings of one level, in order."""
    text = [cell.source for cell in cells.read(step.path) if cell.kind == "markdown"]
    return [
        line[len(sign) :].strip()
        for one in text
        for line in re.sub(r"^```.*?^```", "", one, flags=re.M | re.S).splitlines()
        if line.startswith(sign + " ")
    ]


def examine(step: Step, code: str | mynode.Files, folder: Path) -> list[dict]:
    """What the checks say of a learner's file, which is written into a folder as `start` does.

    Files of mynode replace those of the step's stage.
    """
    if not isinstance(code, str):
        mynode.write_files(mynode.reference(step.key) | code, folder / mynode.NAME)
        return events_of(step, folder / step.work)
    (folder / step.work).write_text(code, encoding="utf-8")
    return events_of(step, folder / step.work)


def write_stub(step: Step, folder: Path) -> Path:
    """The untouched work of a learner who did all steps before, written as `start` does."""
    folder.mkdir(exist_ok=True)
    if step.builds:
        mynode.write_files(mynode.before(step.key), folder / mynode.NAME)
        exercises.add_stubs(step, folder / mynode.NAME)
    else:
        (folder / step.work).write_text(step.stub.read_text(encoding="utf-8"), encoding="utf-8")
    return folder / step.work


def verdict(events: list[dict]) -> bool:
    """Whether all checks ran and passed."""
    kinds = [event["event"] for event in events]
    (titles,) = [event["titles"] for event in events if event["event"] == "checks"]
    return kinds[-1] == "end" and titles != [] and kinds.count("passed") == len(titles)


def test_the_steps_are_numbered_without_a_gap() -> None:
    keys = [step.key for step in STEPS if step.kind == "step"]
    expected = {f"{number:02}" for number in range(LAST + 1)}
    assert set(keys) == expected
    assert len({step.key for step in STEPS}) == len(STEPS)


def test_every_step_after_the_first_adds_to_the_learners_package() -> None:
    numbered = [step for step in STEPS if step.kind == "step" and step.key > "00"]
    assert [step.key for step in numbered if not step.builds] == []
    assert [step.key for step in numbered if not mynode.changed(step.key)] == []


def test_every_file_belongs_to_a_step() -> None:
    """A file with a mistake in its name would be left out without a word."""
    names = {step.name for step in STEPS}
    assert {path.name for path in FOLDER.glob("*.py")} == {step.path.name for step in STEPS}
    for folder in ("exercises", "solutions", "checks"):
        found = {path.stem for path in (FOLDER / folder).iterdir() if path.name != "__pycache__"}
        assert found <= names
    notebooks = {path.name for path in (FOLDER / "notebooks").glob("*.ipynb")}
    assert notebooks == {step.notebook.name for step in STEPS}


@each(STEPS)
def test_it_has_a_title_a_goal_and_the_sections_in_order(step: Step) -> None:
    (title,) = headings(step, "#")
    start = f"Step {int(step.key)}" if step.kind == "step" else step.kind.capitalize()
    assert re.fullmatch(rf"{start}: .+", title), title
    assert title == step.title
    assert pages.goal(cells.read(step.path)), "no **Goal.** with a sentence"
    found = headings(step, "##")
    wanted = [name for name in found if name in SECTIONS]
    assert wanted == SECTIONS, f"each section once, in this order: {SECTIONS}; found {found}"
    text = step.path.read_text(encoding="utf-8")
    for command in ("start", "check"):
        assert f"python -m tinynode.learn {command} {step.key}" in text


@each(STEPS)
def test_it_names_a_source_with_its_year(step: Step) -> None:
    text = " ".join(cell.source for cell in cells.read(step.path) if cell.kind == "markdown")
    assert re.search(r"(?:[A-Z][a-z]+|et al\.),? [^.;]*?\b(?:19|20)\d\d\b", text), "no source"


@pytest.mark.slow
@each(STEPS)
def test_it_runs_leaves_nothing_behind_and_gives_a_page(step: Step, tmp_path: Path) -> None:
    """As cells and as a program, with other hashes of strings: both print the same."""
    outputs, facts = execution.execute(step.path)
    assert facts["left"] == []
    assert facts["stderr"] == ""
    assert any(output.svg or output.html or output.shown for output in outputs), "shows nothing"
    for cell, output in zip(cells.read(step.path), outputs, strict=True):
        text = output.printed + output.shown
        assert "varies" in cell.tags or not UNSTEADY.search(text), (
            f"line {cell.line}: an address or a path, which differs from run to run: {text}"
        )
    files = pages.compose(step, outputs)
    page = files.pop(f"{step.path.stem}.md")
    assert page.startswith(f"# {step.title}\n\n[Notebook]({step.path.stem}.ipynb)")
    guides = {name for name in links(page) if name.startswith("../")}
    assert all(target(name).is_file() for name in guides)
    assert links(page) - guides - {one.path.stem + ".md" for one in STEPS} == set(files)
    assert "<!-- mynode" not in page
    assert all(text in page for output in outputs for text in output.printed.splitlines())
    program = as_a_program(step, tmp_path)
    if not any("varies" in cell.tags for cell in cells.read(step.path)):
        assert program == "".join(output.printed for output in outputs)


def links(page: str) -> set[str]:
    """The files that the text of a page links to and shows."""
    prose = re.sub(r"^```.*?^```$|<iframe.*?</iframe>", "", page, flags=re.M | re.S)
    return set(re.findall(r"\]\((?!https?:)([^)#]+)", prose))


def target(link: str) -> Path:
    """The file of a link to another part of the site; pages of source files are made."""
    path = Path(link[3:])
    return ROOT / (
        path.relative_to("source").with_suffix(".py")
        if path.parts[0] == "source"
        else "docs" / path
    )


UNSTEADY = re.compile(r"0x[0-9a-f]{6,}|(?<![\w/])/(?:home|root|tmp|usr|work|Users)/")
"""Addresses of objects, and paths of a machine."""


def as_a_program(step: Step, folder: Path) -> str:
    """What `python tutorials/stepNN_topic.py` prints, in an empty folder."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(step.path)],
        cwd=folder,
        env={**execution.without_settings(), "PYTHONHASHSEED": "2"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=execution.SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(folder) == []
    return done.stdout


@pytest.mark.slow
@each(PORTABLE)
def test_a_portable_step_prints_the_same_on_every_backend(step: Step) -> None:
    expected, _ = execution.execute(step.path)
    for device in ("strict", "fast"):
        outputs, _ = execution.execute(step.path, {"TINYNODE_DEVICE": device})
        for cell, one, other in zip(cells.read(step.path), expected, outputs, strict=True):
            if "varies" not in cell.tags:
                assert other.printed == one.printed, f"line {cell.line}, on {device}"


@each(STEPS)
def test_its_notebook_has_the_cells_of_the_step(step: Step) -> None:
    """If not: `python -m tools.make_notebooks`."""
    assert step.notebook.read_text(encoding="utf-8") == make_notebooks.notebook(step)


def test_the_front_page_names_every_step() -> None:
    stems = [step.path.stem for step in STEPS]
    assert links(pages.index(STEPS)) == {f"{s}.{kind}" for s in stems for kind in ("md", "ipynb")}


@each(STEPS)
def test_a_step_uses_of_the_package_what_it_may(step: Step) -> None:
    """The steps that build the engine take the pictures of tinynode only."""
    is_mynode = "01" <= step.key <= "08" or "11" <= step.key <= "13"
    for node in ast.walk(ast.parse(step.path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            own = module in ("", "tinynode_course", "tinynode_course.pictures")
            assert not is_mynode or own or not module.startswith("tinynode"), ast.unparse(node)
        if is_mynode and isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id == "tn"
            assert not own or node.attr == "show", f"line {node.lineno}: {ast.unparse(node)}"


@each(STEPS)
def test_it_has_an_exercise_with_hints_and_named_checks(step: Step) -> None:
    assert step.stub.exists() and step.solution.exists() and step.check.exists()
    module = sources.load(step.check, f"tinynode_check_{step.name}")
    checks = examiner.functions_of(module)
    assert list(module.HINTS) == [check.__name__ for check in checks], "a hint for each check"
    places = getattr(module, "PLACES", {})
    assert {check for check, _ in places} <= module.HINTS.keys()
    defined = [
        unit
        for path in step.part.rglob("*.py")
        for unit in swapping.units(path.read_text(encoding="utf-8"))
    ]
    assert {unit for _, unit in places} <= set(defined)
    for name, one in [*module.HINTS.items(), *places.items()]:
        assert one.question.endswith("?") and not CODE.search(one.question), name
        assert one.formula and one.formula != one.question, name
        sentences = re.split(r"(?<=[.?:])\s", one.question)
        assert max(len(sentence.split()) for sentence in sentences) <= 25, name
    titles = [examiner.title_of(check) for check in checks]
    assert checks and all(check.__doc__ for check in checks)
    assert len(set(titles)) == len(titles)
    assert len(module.MISTAKES) >= 2, "wrong answers that the checks must catch"
    if not step.builds:
        stub = ast.parse(step.stub.read_text(encoding="utf-8"))
        assert len((ast.get_docstring(stub) or "").splitlines()) >= 3, "the stub says what to do"


@pytest.mark.slow
@each(EXERCISES)
def test_an_untouched_stub_has_no_point(step: Step, tmp_path: Path) -> None:
    """No check passes. A check that passes on a stub belongs to ``GUARDS`` of its file."""
    events = events_of(step, write_stub(step, tmp_path))
    assert [event for event in events if event["event"] == "passed"] == []
    assert events[-1]["event"] == "end", f"the checks end by themselves: {events[-1]}"
    checks = grading.fold(events, step)["checks"]
    assert checks and not any(check["passed"] for check in checks)
    assert all(check["text"] for check in checks), "a reason for each check without a point"


@pytest.mark.slow
@each([step for step in EXERCISES if hasattr(step.check_module(), "GUARDS")])
def test_guards_are_the_checks_that_the_stub_passes(step: Step, tmp_path: Path) -> None:
    """Else a learner would wait for a check without a reason."""
    module = step.check_module()
    text = step.check.read_text(encoding="utf-8")
    (tmp_path / "solutions").symlink_to(FOLDER / "solutions")
    (tmp_path / "checks").mkdir()
    copy = tmp_path / "checks" / step.check.name
    copy.write_text(text.replace("GUARDS = (", "NO_GUARDS = ("), encoding="utf-8")
    work = write_stub(step, tmp_path / "work")
    passed = {
        event["check"] for event in events_of(step, work, copy) if event["event"] == "passed"
    }
    names = [check.__name__ for check in examiner.functions_of(module)]
    assert {names[number] for number in passed} == set(module.GUARDS)


@pytest.mark.slow
def test_a_guard_in_a_notebook_needs_the_other_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There a test is a cell of its own."""
    step = sources.find("fast_path")
    monkeypatch.chdir(tmp_path)
    stub = vars(sources.load(step.stub, "fast_path_stub"))
    solution = vars(sources.load(step.solution, "fast_path_solution"))
    for check in step.check_module().GUARDS:
        grading.check_names(step.key, check, solution)
        with pytest.raises((AssertionError, NotImplementedError)):
            grading.check_names(step.key, check, stub)


@pytest.mark.slow
@each(EXERCISES)
def test_the_checks_pass_on_the_solution(step: Step, tmp_path: Path) -> None:
    code = {} if step.builds else step.solution.read_text(encoding="utf-8")
    events = examine(step, code, tmp_path)
    assert verdict(events), json.dumps(events, indent=1)


@pytest.mark.slow
@each(BUILDERS)
def test_the_checks_hold_on_later_stages_until_the_last_that_they_fit(
    step: Step, tmp_path: Path
) -> None:
    """On the engines of steps 9 and 13, and on the last stage that the checks fit."""
    module = sources.load(step.check, f"tinynode_check_{step.name}")
    steps = mynode.steps_that_build()
    until = getattr(module, "UNTIL", steps[-1].key)
    own = mynode.changed(step.key) if step.kind == "elective" else {}
    first = step.key if step.kind == "step" else mynode.earlier(step)[-1].key
    for later in steps:
        if first < later.key <= until and later.key in ("09", "13", until):
            folder = tmp_path / later.key
            mynode.write_files(mynode.reference(later.key) | own, folder / mynode.NAME)
            events = events_of(step, folder / step.work)
            assert verdict(events), f"on the stage of step {later.key}: {json.dumps(events)}"


def test_a_learner_who_takes_every_step_has_the_reference() -> None:
    """The references of the steps, taken by definitions, are the stage: none is left behind."""
    files: mynode.Files = {}
    for step in mynode.steps_that_build():
        for path in mynode.changed(step.key):
            files[path], _ = mynode.taken(files.get(path, ""), step.key, path)
        stage = mynode.reference(step.key)
        assert set(files) == set(stage), f"step {step.key}"
        for path, text in stage.items():
            ours, theirs = mynode.definitions(files[path]), mynode.definitions(text)
            assert {n: d.meaning for n, d in ours.items()} == {
                n: d.meaning for n, d in theirs.items()
            }, f"{path}: the stage of step {step.key} leaves a definition out, or renames it"
            assert set(mynode.imports(text)) <= set(mynode.imports(files[path])), path


def test_an_elective_has_files_of_its_own_in_mynode() -> None:
    """So electives fit every stage from the needed step on, in any order."""
    taken = set(mynode.reference(mynode.steps_that_build()[-1].key))
    electives = [step for step in mynode.builders() if step.kind == "elective"]
    assert {step.key for step in electives} == set(mynode.NEEDS)
    for step in electives:
        own = set(mynode.changed(step.key))
        assert own and not own & taken, f"{step.key}: {sorted(own & taken)} stand elsewhere too"
        assert set(mynode.read_files(step.stub)) <= own
        taken |= own


def mistakes() -> list[Any]:
    """Every wrong answer of every exercise; .ci/run takes the first of every three."""
    found = []
    for step in EXERCISES:
        tree = ast.parse(step.check.read_text(encoding="utf-8"))
        for node in tree.body:
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            target = node.target if isinstance(node, ast.AnnAssign) else target
            if isinstance(target, ast.Name) and target.id == "MISTAKES":
                assert isinstance(node.value, ast.Tuple), "MISTAKES is a tuple that is written out"
                found += [
                    pytest.param(
                        step,
                        number,
                        id=f"{step.name}-{number}",
                        marks=[pytest.mark.long] if number % 3 else [],
                    )
                    for number in range(len(node.value.elts))
                ]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("step", "number"), mistakes())
def test_the_checks_fail_on_a_mistake(step: Step, number: int, tmp_path: Path) -> None:
    """And what the learner is told is no crash of the check itself."""
    module = sources.load(step.check, f"tinynode_check_{step.name}")
    what, code = module.MISTAKES[number]
    events = examine(step, code, tmp_path)
    assert not verdict(events), f"not found: {what}"
    assert "passed" in [e["event"] for e in events] or "failed" in [e["event"] for e in events], (
        f"the wrong answer does not even load: {events}"
    )
    expect_hints(step, events, tmp_path)


def expect_hints(step: Step, events: list[dict], folder: Path) -> None:
    """The hints are about the first failure: first its question, last the lines of a solution."""
    (first, *_) = [event for event in events if event["event"] in checking.FAILURES]
    begun = [
        event["check"] for event in events[: events.index(first)] if event["event"] == "begin"
    ]
    number = first.get("check", begun[-1] if begun else 0)
    checks = examiner.checks_of(step.check_module(), step.builds)
    stage = mynode.earlier(step)[-1].key if step.kind == "elective" and step.builds else step.key
    without_search = {**first, "kind": "no search"}
    found = places.places_of(without_search, step, folder / step.work, stage)
    failing = hints.Failing(number, examiner.title_of(checks[number]), tuple(found))
    question, *others = hints.ladder(step, failing, stage)
    known = {**step.check_module().HINTS, **lessons.HINTS}
    assert question == known[checks[number].__name__].question
    assert question.endswith("?") and not CODE.search(question)
    assert others[-1].startswith("The lines of a solution:\n\n")
    lines = others[-1].splitlines()[3:]
    assert lines and not any("The lines of a solution" in one for one in others[:-1])
