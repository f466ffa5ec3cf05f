"""The command of the course, on a small course of its own: what it writes, says, and survives."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from checkout import of_a_checkout
from child_process import running

import tinynode as tn
from tinynode import commands
from tinynode.commands.command_line import CommandError
from tinynode_course import (
    cells,
    checking,
    checks,
    command,
    examiner,
    execution,
    notebooks,
    pages,
    sources,
)
from tinynode_course.progress import NAME, Progress, say_next, unused, write_atomically
from tools import make_notebooks

ROOT = Path(__file__).resolve().parents[2]

STEP_1 = """\
# %% [markdown] tags=["portable"]
# # Step 1: doubling
#
# **Goal.** Double a
# number | text.

# %%
import math


# %% [markdown]
# ## Run
# See [step 10](step10_second.py).

# %%
def double(x):
    return 2 * x


# %%
class Picture:
    def _repr_svg_(self):
        return "<svg><title>A [nice] &amp; small picture</title></svg>"

    def __str__(self):
        return "a picture in text"


print("twice", double(4))
double(5)

# %%
print("with a picture")
Picture()

# %% tags=["varies"]
import time

print(time.perf_counter_ns())
"""

STEP_10 = """\
# %% [markdown]
# # Step 10: second
#
# **Goal.** Nothing much.

# %%
print("no picture")
"""

STUB = '"""Exercise 1: write\n\ntriple and half.\n"""\n\n'
STUB += "def triple(x):\n    raise NotImplementedError\n\n\nhalf = None\n"
SOLUTION = "def triple(x):\n    return 3 * x\n\n\n"
SOLUTION += "def half(x):\n    return x / 2\n"

CHECK = '''
from tinynode_course.checks import Hint, expect_close, expect_equal, expect_raises

HINTS = {
    "check_triple": Hint("How often is x in a triple of x?", "3 x"),
    "check_half": Hint("Which number, twice, is x?", "x / 2"),
}

def check_triple(work):
    """triple(x) is three times x

    and more words."""
    expect_close("triple of 2", work.triple(2.0), 6.0, "think of x + x + x")

def check_half(work):
    """half(x) is x / 2"""
    expect_equal("half of 8", work.half(8.0), 4.0, "divide")

MISTAKES = (("nothing", "triple = half = abs"), ("nothing", ""))
'''


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of two steps and a capstone, and a folder of the learner's to work in."""
    folder = tmp_path / "tutorials"
    for name in ("exercises", "checks", "solutions"):
        (folder / name).mkdir(parents=True)
    (folder / "step01_first.py").write_text(STEP_1)
    (folder / "step10_second.py").write_text(STEP_10)
    (folder / "capstone_last.py").write_text(STEP_10.replace("Step 10", "Capstone"))
    (folder / "notes.py").write_text("no step")
    (folder / "README.md").write_text("# The course\n")
    (folder / "exercises" / "step01.py").write_text(STUB)
    (folder / "checks" / "step01.py").write_text(CHECK)
    (folder / "solutions" / "step01.py").write_text(SOLUTION)
    monkeypatch.setattr(sources, "tutorials", lambda: folder)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return folder


def write_notebooks() -> None:
    """The notebooks of the small course, as they are in the repository for the real one."""
    for step in sources.steps():
        step.notebook.parent.mkdir(exist_ok=True)
        step.notebook.write_text(make_notebooks.notebook(step))


@pytest.fixture
def learn(course: Path, capsys: pytest.CaptureFixture[str]):
    """Runs a command: its status, and what it wrote to both outputs."""

    def run(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        try:
            status = command.main(arguments)
        except SystemExit as leaving:  # argparse
            status = leaving.code
        out, err = capsys.readouterr()
        return status, out + err

    return run


# cells


def test_cells_are_read_with_kind_tags_source_and_line() -> None:
    found = cells.parse(STEP_1)
    assert [cell.kind[0] for cell in found] == list("mcmcccc")
    assert [sorted(cell.tags) for cell in found][:4] == [["portable"], [], [], []]
    assert found[0].source.splitlines()[:2] == ["# Step 1: doubling", ""]
    for cell in found:
        line = STEP_1.splitlines()[cell.line - 1]
        assert line.removeprefix("# ") == cell.source.splitlines()[0]
    assert cells.title(found) == "Step 1: doubling" and cells.title([]) == ""


def test_code_before_the_first_mark_is_a_cell() -> None:
    (before, after) = cells.parse("\nx = 1\n\n# %%\n\nx\n\n\n")
    assert (before.source, before.line, after.source, after.line) == ("x = 1", 2, "x", 6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# %% [raw]\n", "line 1: a cell of kind"),
        ('x\n# %% tags=["other"]\n', "line 2: unknown tags"),
        ("# %% tags=[other]\n", "line 1: the tags"),
        ("# %% [markdown]\n# a\nb\n", "line 3: a line of text"),
        ("# %% [markdown]\n#a\n", "line 2: a line of text"),
    ],
)
def test_a_wrong_cell_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(cells.CellError, match=f"^step.py, {said}"):
        cells.parse(text, "step.py")


@pytest.mark.slow
def test_cells_agree_with_jupytext() -> None:
    jupytext = pytest.importorskip("jupytext")
    for step in sources.steps():
        theirs = jupytext.reads(step.path.read_text(encoding="utf-8"), fmt="py:percent").cells
        ours = cells.read(step.path)
        assert [(one.cell_type, one.source.strip("\n")) for one in theirs] == [
            (one.kind, one.source) for one in ours
        ]
        tags = [set(one.metadata.get("tags", ())) for one in theirs]
        assert tags == [set(one.tags) for one in ours]


def run_text(text: str, path: Path) -> list[cells.Output]:
    path.write_text(text)
    return cells.run(cells.read(path), path)


def test_cells_run_in_one_namespace_as_a_notebook_does(tmp_path: Path) -> None:
    path = tmp_path / "a_step.py"
    text = "# %%\nx = 3\nprint('one')\nx + 1\n# %%\n# only a comment\n# %%\nx == 3\n# %%\nNone"
    text += "\n# %%\ndel x\n"
    outputs = run_text(text, path)
    assert [output.printed for output in outputs] == ["one\n", "", "", "", ""]
    assert [output.shown for output in outputs] == ["4", "", "True", "", ""]


def test_a_traceback_shows_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a_step.py"
    before = sys.modules["__main__"]
    with pytest.raises(ZeroDivisionError) as caught:
        run_text("# %% [markdown]\n# text\n\n# %%\n\nx = 0\n1 / x\n", path)
    assert sys.modules["__main__"] is before
    last = caught.traceback[-1]
    assert (last.path, last.lineno + 1) == (path, 7)


def test_classes_of_a_step_find_their_source(tmp_path: Path) -> None:
    text = "# %%\nimport inspect\n\n\nclass Box:\n    size = 1\n\n\n# %%\n"
    text += "print(inspect.getsource(Box))\nBox"
    outputs = run_text(text, tmp_path / "a_step.py")
    assert outputs[1].printed == "class Box:\n    size = 1\n\n"
    assert outputs[1].shown == "<class '__main__.Box'>"


def test_annotations_of_the_step_are_its_own(tmp_path: Path) -> None:
    """The future import of the module that runs it does not hold in a step; its own does."""
    text = "# %%\n{}\n# %%\ndef f(x: int): return x\nprint(type(f.__annotations__['x']))\n"
    _, own = run_text(text.format("1"), tmp_path / "a.py")
    assert own.printed == "<class 'type'>\n"
    _, future = run_text(text.format("from __future__ import annotations"), tmp_path / "b.py")
    assert future.printed == "<class 'str'>\n"


def test_what_is_shown_is_svg_then_html_then_text() -> None:
    class Both:
        def _repr_svg_(self) -> str:
            return "<svg/>"

        def _repr_html_(self) -> str:
            return "<b/>"

        def __str__(self) -> str:
            return "text"

    class Nothing:
        def _repr_html_(self) -> None:
            return None

        def __repr__(self) -> str:
            return "Nothing()"

    shown = cells.picture(Both())
    assert (shown.svg, shown.html, shown.shown) == ("<svg/>", "", "text")
    shown = cells.picture(Nothing())
    assert (shown.svg, shown.html, shown.shown) == ("", "", "Nothing()")
    assert cells.picture(Both).svg == ""  # a class has methods and is no picture
    assert cells.picture(None) == cells.Output()


# checks


def failure(function, *arguments, **options) -> checks.CheckFailed:
    with pytest.raises(checks.CheckFailed) as caught:
        function("what", *arguments, "look", **options)
    return caught.value


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (2, 2.0),
        ("a", "a"),
        ([1, "b"], [1, "b"]),
        (None, None),
        (np.float64(3), 3),
        (np.array([1.0, np.nan, np.inf]), np.array([1.0, np.nan, np.inf])),
        (np.array([True, False]), np.array([True, False])),
    ],
)
def test_equal_things_are_equal(got: object, expected: object) -> None:
    checks.expect_equal("what", got, expected, "look")


@pytest.mark.parametrize(
    ("got", "expected", "said"),
    [
        (None, 2, "None (nothing was returned or set)"),
        ([1, 2], (1, 2), "[1, 2]"),
        ("a", "b", "'a'"),
        (
            np.ones((2, 1)),
            np.ones(2),
            "[1, 1]: array, shape (2, 1), float64: the shape is another",
        ),
        (np.array([1, 2]), np.array([1, 3]), "1 of 2 differ, first at [1]: 2 instead of 3"),
        ("text", np.ones(2), "'text'"),
        ([[1], [2, 3]], np.ones(2), "[[1], [2, 3]]"),
        (np.nan, 1.0, "nan"),
        ({"a": np.ones(2)}, {"a": 1}, "{'a': array([1., 1.])}"),
        ("long " * 200, "b", "long long  ..."),
    ],
)
def test_different_things_are_not_equal(got: object, expected: object, said: str) -> None:
    error = failure(checks.expect_equal, got, expected)
    assert said in error.got
    assert (error.what, error.look) == ("what", "look") and error.expected
    assert str(error).startswith("what: expected ") and len(str(error)) < 600


def test_close_numbers_are_close() -> None:
    checks.expect_close("what", [1.0, 2.0], np.array([1.0, 2.0 + 1e-7]), "look")
    checks.expect_close("what", np.float32(1 / 3), 1 / 3, "look")
    checks.expect_close("what", tn.Variable(np.ones(2)), np.ones(2), "look")
    checks.expect_close("what", np.inf, np.inf, "look")
    checks.expect_close("what", [np.nan, 1.0], np.array([np.nan, 1.0]), "look")
    checks.expect_close("what", 1.0, 1.1, "look", rtol=0.2)
    checks.expect_close("what", 1e-3, 0.0, "look", atol=1e-2)


@pytest.mark.parametrize(
    ("got", "expected"),
    [(1.0, 1.1), (1e-3, 0.0), (np.nan, 1.0), (1.0, np.nan), (-np.inf, np.inf), (None, 1.0)],
)
def test_numbers_that_are_not_close_are_found(got: object, expected: object) -> None:
    failure(checks.expect_close, got, expected)


def test_shapes_are_not_broadcast() -> None:
    error = failure(checks.expect_close, np.ones(3), 1.0)
    assert "shape (3,)" in error.got and "of shape ()" in error.expected


def test_a_difference_in_late_digits_is_shown() -> None:
    error = failure(checks.expect_close, np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-9]), rtol=0)
    assert "2 instead of 2.000000001" in error.got and "further digits" in error.got
    assert "exactly" in error.expected


def test_a_check_that_expects_no_number_is_the_checks_mistake() -> None:
    with pytest.raises(TypeError, match="no number or array"):
        checks.expect_close("what", 1.0, "text", "look")


def test_true_is_true() -> None:
    checks.expect_true("what", np.True_, "look")
    failed = failure(checks.expect_true, [])
    assert (failed.expected, failed.got) == ("yes", "no")


def test_an_expected_error_is_returned_and_others_are_shown() -> None:
    def stop() -> None:
        raise KeyError("k")

    error = checks.expect_raises("what", LookupError, stop, "look")
    assert isinstance(error, KeyError)
    wrong = failure(checks.expect_raises, ValueError, stop)
    assert wrong.got == "KeyError: 'k'" and isinstance(wrong.__cause__, KeyError)
    assert failure(checks.expect_raises, ValueError, dict).got == "no error; it returned {}"


# steps


def test_steps_are_found_in_order_with_their_files(course: Path) -> None:
    first, second, last = sources.steps()
    assert (first.key, first.name, first.topic, first.work) == (
        "01",
        "step01",
        "first",
        "step01.py",
    )
    assert (second.key, last.key, last.work) == ("10", "last", "last.py")
    assert first.title == "Step 1: doubling"
    assert first.stub.exists() and not last.stub.exists()
    assert [sources.part(step)[0] for step in (first, second, last)] == ["A", "B", "C"]
    assert sources.part(last) == "Capstones"


@pytest.mark.parametrize("text", ["1", "01", "step01", "Step1", "step01.py"])
def test_a_step_is_found_by_what_one_types(course: Path, text: str) -> None:
    assert sources.find(text).key == "01"


@pytest.mark.parametrize("text", ["2", "x", "", "../01", "1.5"])
def test_an_unknown_step_lists_those_that_there_are(learn, text: str) -> None:
    for word in ("start", "check", "hint", "show", "run", "notebooks", "pages"):
        status, said = learn(word, text)
        assert status == 2 and "the steps are: 01 10 last" in said and "Traceback" not in said


def test_a_step_without_an_exercise_says_so(learn) -> None:
    for word in ("start", "check", "hint", "show"):
        assert learn(word, "10") == (
            2,
            f"{command.PROGRAM} {word}: error: step 10 has no exercise\n",
        )


def test_missing_steps_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sources, "__file__", str(tmp_path / "a" / "b" / "sources.py"))
    with pytest.raises(CommandError, match="install tinynode-course again"):
        sources.tutorials()


def test_a_module_that_stops_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("1 / 0")
    with pytest.raises(ZeroDivisionError):
        sources.load(tmp_path / "bad.py", "bad_module_of_a_test")
    assert "bad_module_of_a_test" not in sys.modules


# the learner's way through a step


def test_without_a_word_it_says_what_to_do_first(learn) -> None:
    status, said = learn()
    assert status == 0
    assert "start 01" in said and "Next: Step 1: doubling" in said


@pytest.mark.slow
def test_the_way_of_a_learner_through_a_step(learn) -> None:
    status, said = learn("check", "1")
    assert status == 2 and "start 01" in said and "go to the folder" in said
    status, said = learn("start", "1")
    assert status == 0 and "check 01" in said
    assert Path("step01.py").read_text() == STUB
    assert "Go on with Step 1" in learn("list")[1]
    status, said = learn("check", "1")
    assert status == 1 and "hint 01" in said
    assert "still to be written" in said and "step01.py, line 7: raise NotImplementedError" in said
    status, said = learn("list")
    assert status == 0 and "tried      01  doubling" in said
    for number, words in enumerate(
        ("How often is x", "Look here:\n    step01.py, line 7: raise", "3 x", "return 3 * x"), 1
    ):
        said = learn("hint", "1")[1]
        assert said.startswith(f"Hint {number} of 4 for step 01. The check: triple(x) is three")
        assert words in said and ("show 01" in said) is (number == 4)
    assert "Hint 4 of 4" in learn("hint", "1")[1]
    status, said = learn("show", "1")
    assert status == 0 and "-    raise NotImplementedError" in said and "+def half(x):" in said
    Path("step01.py").write_text(SOLUTION)
    status, said = learn("check", "1")
    assert status == 0 and "All 2 checks pass." in said and "All exercises are done." in said
    assert "same as the solution" in learn("show", "1")[1]
    assert "done       01" in learn("list")[1]
    assert sorted(os.listdir()) == ["AGENTS.md", "step01.py", NAME]
    facts = {"started": True, "attempts": 2, "passed": True, "hints": 4}
    assert Progress(Path.cwd()).of("01") == {**facts, "hinted": {"0 step01.py triple": 4}}
    assert "no hint is needed" in learn("hint", "1")[1]


@pytest.mark.slow
def test_another_failing_check_begins_with_its_question(learn) -> None:
    learn("start", "1")
    learn("hint", "1")
    assert "Hint 2 of" in learn("hint", "1")[1]
    Path("step01.py").write_text(SOLUTION.replace("/ 2", "/ 3"))
    said = learn("hint", "1")[1]
    assert "Hint 1 of 4" in said and "half(x) is x / 2" in said and "Which number, twice" in said
    assert "step01.py, line 5: def half(x):" in learn("hint", "1")[1]
    assert Progress(Path.cwd()).of("01")["hints"] == 4


def test_done_stays_done_but_the_check_says_what_is_wrong_now(learn) -> None:
    learn("start", "1")
    Path("step01.py").write_text(SOLUTION)
    learn("check", "1")
    Path("step01.py").write_text(SOLUTION.replace("/ 2", "/ 3"))
    status, said = learn("check", "1")
    assert status == 1 and "half of 8" in said
    assert Progress(Path.cwd()).of("01")["passed"] is True


def test_start_never_overwrites_work(learn) -> None:
    learn("start", "1")
    Path("step01.py").write_text("my work")
    status, said = learn("start", "1")
    assert status == 1 and "stays as it is" in said and "--again" in said
    assert Path("step01.py").read_text() == "my work"
    for number in (1, 2):
        status, said = learn("start", "1", "--again")
        assert status == 0 and f"step01.py.old-{number}" in said
    assert Path("step01.py").read_text() == STUB
    assert Path("step01.py.old-1").read_text() == "my work"
    assert Path("step01.py.old-2").read_text() == STUB


def test_no_hint_is_spent_on_a_file_that_python_cannot_read(learn) -> None:
    learn("start", "1")
    learn("hint", "1")
    Path("step01.py").write_text("def triple(x:\n    return 3 * x\n")
    status, said = learn("hint", "1")
    assert status == 0 and "SyntaxError" in said and "step01.py, line 1: def triple(x:" in said
    assert "Mend this line first" in said and "Hint" not in said
    assert Progress(Path.cwd()).of("01")["hints"] == 1


def test_show_without_work_starts_from_the_stub(learn) -> None:
    status, said = learn("show", "1")
    assert status == 1 and "try step 01 first" in said and "half" not in said
    status, said = learn("show", "1", "--now")
    assert status == 0 and "--- step01.py as it is at the start" in said and "+def half" in said


# what a learner may have written

ENDLESS = "def triple(x):\n    while True:\n        print('round')\n"


RARER = (
    ("def triple(x):\nreturn\n", ["IndentationError", "step01.py, line 2: return"]),
    ("import nothing_of_the_kind", ["ModuleNotFoundError", "line 1: import nothing_of"]),
    ("import sys\nsys.exit()", ["(exit)", "step01.py, line 2: sys.exit()"]),
    ("import os\nos.kill(os.getpid(), 9)", ["(status -9)"]),
    ("def triple(x):\n    return triple(x)\n", ["RecursionError", "line 2: return triple(x)"]),
    ("triple = half = 3", ["'int' object is not callable", "line 1: triple = half = 3"]),
    ("def triple():\n    return 6.0\n", ["TypeError", "line 1: def triple():"]),
    ("def triple(x):\n    return None[0]\n", ["'NoneType' object", "end without return?"]),
    ("x = input()", ["EOFError", "line 1: x = input()"]),
    ("from math import nothing", ["ImportError", "line 1: from math"]),
    ("raise KeyboardInterrupt", ["KeyboardInterrupt", "line 1: raise"]),
)
"""Mistakes of a learner that the slow tests try too: the program, and what is said of it."""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "def triple(x):\n    return 2 * x\n",
            ["expected:   6.0", "got:        4.0", "x + x + x"],
        ),
        ("def triple(x):\n    return 2 * x\n", ["your code:  step01.py, line 1: def triple(x):"]),
        ("def triple(x:\n    return\n", ["SyntaxError", "step01.py, line 1: def triple(x:"]),
        ("\n\n1 / 0\n", ["ZeroDivisionError: division by zero", "step01.py, line 3: 1 / 0"]),
        ("half = 3", ["A name is missing: step01.py does not define triple"]),
        (
            "import os\nos._exit(0)",
            ["Python ended while it ran step01.py (status 0)", "call os._exit?"],
        ),
        *[pytest.param(*row, marks=pytest.mark.slow) for row in RARER],
    ],
)
def test_what_is_wrong_is_said_with_the_learners_line(learn, code: str, said: list[str]) -> None:
    Path("step01.py").write_text(code)
    status, text = learn("check", "1")
    assert status == 1
    for words in said:
        assert words in text, text
    assert not [word for word in ("Traceback", "examiner", "importlib") if word in text]
    assert text.count("line ") <= examiner.MOST_FRAMES + 1


def test_a_line_in_another_file_is_a_learners_line_too(learn) -> None:
    Path("step01.py").write_text("from other import double\ntriple = double\n")
    Path("other.py").write_text("def double(x):\n    return 1 / 0\n")
    assert "other.py, line 2: return 1 / 0" in learn("check", "1")[1]


def test_what_the_learner_prints_is_shown_at_its_place(learn) -> None:
    code = SOLUTION.replace("    return x / 2", "    print('half of', x)\n    return 0")
    Path("step01.py").write_text("print('loading')\n" + code)
    lines = learn("check", "1")[1].splitlines()
    at = lines.index("      | half of 8.0")
    assert "half(x) is x / 2" in lines[at - 1]
    assert lines[1] == "      | loading"


@pytest.mark.slow
def test_an_endless_loop_is_stopped(learn) -> None:
    Path("step01.py").write_text(ENDLESS)
    start = time.monotonic()
    status, said = learn("check", "1", "--seconds", "1.5")
    assert time.monotonic() - start < 10 and status == 1
    assert "more than 1.5 s" in said and "a loop that" in said
    assert "it was at:  step01.py, line" in said
    assert said.count("| round") <= examiner.MOST_LINES + 1
    facts = Progress(Path.cwd()).of("01")
    assert facts["attempts"] == 1 and not facts["passed"]


@pytest.mark.slow
def test_a_loop_inside_of_c_is_stopped_too(learn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python itself cannot say where it hangs: the lock of the interpreter is held."""
    monkeypatch.setattr(checking, "GRACE", 0.5)
    Path("step01.py").write_text("import itertools\nsum(itertools.repeat(0))\n")
    status, said = learn("check", "1", "--seconds", "1")
    assert status == 1 and "more than 1 s" in said


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGINT") or os.name == "nt", reason="POSIX signals")
def test_ctrl_c_ends_a_check_and_what_it_started(tmp_path: Path) -> None:
    """In a process of its own, as in a terminal."""
    (tmp_path / "step00.py").write_text(
        "import os\nopen('pid', 'w').write(str(os.getpid()))\nwhile True: pass\n"
    )
    pid = tmp_path / "pid"
    with running(
        [sys.executable, "-m", "tinynode.learn", "check", "00"],
        cwd=tmp_path,
        env=checking.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        for _ in range(300):
            if pid.exists() and pid.read_text():
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.strip() == "interrupted"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_closed_output_ends_quietly(tmp_path: Path) -> None:
    with running(
        [sys.executable, "-m", "tinynode.learn", "list"],
        cwd=tmp_path,
        env=checking.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert process.wait(timeout=60) == 141
        assert process.stderr.read() == b""


def test_signs_for_a_terminal_that_has_none(monkeypatch: pytest.MonkeyPatch, course: Path) -> None:
    monkeypatch.setattr(checking, "can_print", lambda text: False)
    assert checking.Report(sources.find("1"))._signs == {True: "ok ", False: "NO "}


def test_what_a_terminal_can_print_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert not checking.can_print("✓") and checking.can_print("ok")


def test_a_report_passes_when_all_checks_have(course: Path) -> None:
    report = checking.Report(sources.find("1"))
    assert not report.passed
    report.show({"event": "checks", "titles": ["one", "two"]})
    report.show({"event": "passed", "check": 0})
    assert not report.passed
    report.show({"event": "begin", "check": 1})
    assert not report.passed
    report.show({"event": "passed", "check": 1})
    assert report.passed


# the examiner, in this process


def test_the_examiner_writes_an_event_for_all_that_happens(course: Path) -> None:
    Path("examined.py").write_text("def triple(x):\n    print('p')\n    return 3 * x\n")
    events = io.StringIO()
    step = sources.find("1")
    with np.errstate():
        passed = examiner.Examiner(Path("examined.py").absolute(), step.check, events).run()
    found = [json.loads(line) for line in events.getvalue().splitlines()]
    assert not passed
    assert [e["event"] for e in found] == [
        "checks",
        "imported",
        "begin",
        "passed",
        "begin",
        "failed",
    ]
    assert found[0]["titles"] == ["triple(x) is three times x", "half(x) is x / 2"]
    assert found[3]["printed"] == ["p"]
    assert found[5]["kind"] == "missing" and "examined.py does not define half" in str(found[5])


def examined(code: str) -> dict:
    """The first event of a failure, from an examiner in this process."""
    Path("examined.py").write_text(code)
    events = io.StringIO()
    check = sources.find("1").check
    before = list(sys.path)
    assert not examiner.Examiner(Path("examined.py").absolute(), check, events).run()
    assert sys.path == before
    found = [json.loads(line) for line in events.getvalue().splitlines()]
    return next(event for event in found if "failed" in event["event"])


@pytest.mark.parametrize(
    ("code", "kind", "line"),
    [
        ("def triple(x):\n    return 0\n", "wrong", "examined.py, line 1: def triple(x):"),
        ("def triple(x:\n", "error", "examined.py, line 1: def triple(x:"),
        ("raise SystemExit", "error", "examined.py, line 1: raise SystemExit"),
        ("def triple(x):\n    raise NotImplementedError\n", "to do", "line 2: raise NotImp"),
        ("triple, half = 1, 2", "error", "examined.py, line 1: triple, half = 1, 2"),
        ("class triple:\n    def __init__(self, x): 1 / 0", "error", "line 2: def __init__"),
    ],
)
def test_a_failure_is_described_by_the_learners_line(
    course: Path, code: str, kind: str, line: str
) -> None:
    event = examined(code)
    assert event["kind"] == kind
    assert len(event["lines"]) == 1 and line in event["lines"][0]


def test_the_line_behind_a_wrong_error_is_found(course: Path) -> None:
    (course / "checks" / "step01.py").write_text(
        "from tinynode_course.checks import expect_raises\n\n"
        "def check_error(work):\n    expect_raises('w', ValueError, work.triple, 'look')\n"
    )
    event = examined("def triple():\n    return 1 / 0\n")
    assert event["got"] == "ZeroDivisionError: division by zero"
    assert event["lines"] == ["examined.py, line 2: return 1 / 0"]


def test_where_a_program_hangs_is_found(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class EndedError(BaseException):
        pass

    def end(status: int) -> None:
        raise EndedError

    monkeypatch.setattr("os._exit", end)
    Path("hangs.py").write_text("def wait(event):\n    event.wait()\n")
    go_on = threading.Event()
    hangs = sources.load(Path("hangs.py").absolute(), "hangs_in_a_test")
    thread = threading.Thread(target=hangs.wait, args=(go_on,))
    thread.start()
    events = io.StringIO()
    one = examiner.Examiner(Path("hangs.py").absolute(), sources.find("1").check, events)
    try:
        with pytest.raises(EndedError):
            one.watch(thread.ident, 2.0)
    finally:
        go_on.set()
        thread.join()
    event = json.loads(events.getvalue())
    assert (event["event"], event["seconds"]) == ("too long", 2.0)
    assert event["lines"] == ["hangs.py, line 2: event.wait()"]


def test_the_tail_keeps_the_last_lines() -> None:
    tail = examiner.Tail()
    assert tail.writable()
    for number in range(1000):
        tail.write(f"{number}\n")
    print("open" + "x" * 1000, end="", file=tail)
    lines = tail.take()
    assert len(lines) == examiner.MOST_LINES + 1 and lines[-2] == "999" and len(lines[-1]) == 500
    assert tail.take() == []


# a step by itself


def test_a_step_runs_apart_from_everything(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINYNODE_DTYPE", "float64")
    text = STEP_10 + "\n# %%\nimport os, sys, tinynode as tn\n"
    text += "print(os.listdir(), tn.config.dtype, 'pytest' in sys.modules)\n"
    text += "print('noise', file=sys.stderr)\n"
    text += "open('left.txt', 'w').close()\ntn.global_config.dtype = 'float64'\n"
    (course / "step10_second.py").write_text(text)
    outputs, facts = execution.execute(course / "step10_second.py")
    assert outputs[-1].printed == "[] float32 False\n"
    assert facts["stderr"] == "noise\n" and facts["seconds"] >= 0
    assert facts["left"] == ["left.txt", "dtype: was float32, is float64"]
    assert not Path("left.txt").exists()


def test_the_program_that_runs_a_step(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["execution", str(course / "step01_first.py")])
    execution.main()
    result = json.loads(capsys.readouterr().out)
    assert [one["printed"] for one in result["outputs"]][4] == "twice 8\n"
    assert result["left"] == []


@pytest.mark.slow
def test_the_program_that_runs_a_notebook(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("nbclient")
    from tinynode_course import notebook_runner

    text = make_notebooks.notebook(sources.find("1"))
    for source, status, said in (("double(5)", 0, "twice 8"), ("1 / 0", 1, "ZeroDivisionError: ")):
        monkeypatch.setattr(sys, "stdin", io.StringIO(text.replace("double(5)", source)))
        assert notebook_runner.main() == status
        assert said in capsys.readouterr().out


# progress


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{ half a fi", "is damaged"),
        (b"\xff\xfe", "is damaged"),
        (b"[]", "another version"),
        (b'{"format": 99, "steps": {}}', "another version"),
        (b'{"format": 3, "steps": {"01": 3}}', "another version"),
    ],
)
def test_a_broken_file_is_set_aside(learn, content: bytes, said: str) -> None:
    Path(NAME).write_bytes(content)
    status, text = learn("list")
    assert status == 0 and said in text and "01  doubling" in text
    assert Path(NAME).read_bytes() == content  # looking changes nothing
    status, text = learn("hint", "1")
    assert status == 0 and "Hint 1" in text and said in text
    assert Path(NAME + ".broken-1").read_bytes() == content
    assert "Hint 2" in learn("hint", "1")[1]
    assert not Path(NAME + ".broken-2").exists()


def test_progress_of_the_first_edition_keeps_its_place(learn) -> None:
    done = {key: {"passed": True} for key in ("05", "13", "14", "24", "capstone")}
    Path(NAME).write_text(json.dumps({"format": 1, "steps": done}))
    progress = Progress(Path.cwd())
    passed = [key for key in (*done, "16", "compile") if progress.of(key).get("passed")]
    assert passed == ["14", "compile"]
    assert progress.of("gradient_penalty") == {"passed": True}


def test_progress_of_the_second_edition_has_todays_numbers(learn) -> None:
    """The mynode of a learner has what it had: only the numbers of the steps are others."""
    done = {key: {"passed": True} for key in ("05", "07", "09", "11", "12", "16", "compile")}
    Path(NAME).write_text(json.dumps({"format": 2, "steps": done}))
    progress = Progress(Path.cwd())
    today = [f"{number:02}" for number in range(27)] + ["compile"]
    passed = [key for key in today if progress.of(key).get("passed")]
    assert passed == ["05", "07", "08", "09", "11", "13", "compile"]
    assert "old order" in progress.warnings[0] and "22 to 26" in progress.warnings[0]
    progress.note("10", started=True)
    again = Progress(Path.cwd())
    assert json.loads(Path(NAME).read_text())["format"] == 3
    assert again.warnings == [] and again.of("13")["passed"]


def test_facts_that_make_no_sense_are_survived(learn) -> None:
    facts = {"hints": "many", "attempts": None, "passed": 0, "mine": 7}
    Path(NAME).write_text(json.dumps({"format": 3, "steps": {"01": facts}, "more": 1}))
    assert "Hint 1" in learn("hint", "1")[1]
    learn("start", "1")
    assert learn("check", "1")[0] == 1
    content = json.loads(Path(NAME).read_text())
    assert content["more"] == 1 and content["steps"]["01"]["mine"] == 7
    assert content["steps"]["01"]["attempts"] == 1


def test_a_file_that_cannot_be_read_or_written_is_survived(learn) -> None:
    Path(NAME).mkdir()
    status, said = learn("hint", "1")
    assert status == 0 and "Hint 1" in said
    assert "cannot be read" in said and "could not be saved" in said


def test_a_folder_where_nothing_can_be_written(learn, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    Path("step01.py").write_text(SOLUTION)
    monkeypatch.setattr("tinynode_course.progress.write_atomically", refuse)
    status, said = learn("check", "1")
    assert status == 0 and "All 2 checks pass" in said
    assert "could not be saved: Permission denied" in said
    Path("step01.py").unlink()
    monkeypatch.setattr("builtins.open", refuse)
    status, said = learn("start", "1")
    assert status == 1 and "step01.py cannot be written in" in said and "Permission" in said


def test_an_atomic_write_leaves_the_old_file_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    mask = os.umask(0)
    os.umask(mask)
    write_atomically(path, "one")
    assert path.read_text() == "one" and path.stat().st_mode & 0o777 == 0o666 & ~mask

    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "two")
    assert path.read_text() == "one" and os.listdir(tmp_path) == ["file"]
    assert unused(path, "old").name == "file.old-1"


# run


def test_run_prints_text_code_output_and_pictures_as_text(learn) -> None:
    status, said = learn("run", "1")
    assert status == 0
    order = [
        "# Step 1: doubling\n",
        "**Goal.** Double a\nnumber | text.",
        "## Run\n",
        '  |         return "a picture in text"',
        "  > twice 8\n  > 10\n",
        "  > with a picture\n  > a picture in text",
    ]
    places = [said.index(words) for words in order]
    assert places == sorted(places) and said.count("<svg") == 1  # in its code alone
    assert "start 01" in said and "start" not in learn("run", "10")[1]
    assert os.listdir() == []


def test_run_saves_pictures(learn) -> None:
    status, said = learn("run", "1", "--save", "a/b")
    assert status == 0 and "saved a/b/step01-1.svg" in said
    assert os.listdir("a/b") == ["step01-1.svg"]
    assert Path("a/b/step01-1.svg").read_text().startswith("<svg>")
    assert "draws no pictures" in learn("run", "10", "--save", "a")[1]


def test_run_says_that_a_folder_cannot_be(learn) -> None:
    Path("file").write_text("")
    for word in (["run", "1", "--save"], ["notebooks", "1", "--no-run", "--folder"]):
        status, said = learn(*word, "file/sub")
        assert status == 2 and "Not a directory" in said and "Traceback" not in said
    Path("out/step01-1.svg").mkdir(parents=True)
    status, said = learn("run", "1", "--save", "out")
    assert status == 1 and "cannot be written" in said


def test_run_of_a_step_that_stops(learn, course: Path) -> None:
    (course / "step10_second.py").write_text(STEP_10 + "\n# %%\nint('x')\n")
    status, said = learn("run", "10")
    assert status == 1 and "no picture" in said
    assert "step10_second.py, line 10 stopped with ValueError" in said


# notebooks


@pytest.mark.slow
def test_notebooks_are_copied_and_run(learn) -> None:
    pytest.importorskip("nbclient")
    write_notebooks()
    status, said = learn("notebooks", "1")
    assert status == 0 and "1 of 1  Step 1: doubling ... step01_first.ipynb" in said
    path = Path(notebooks.FOLDER, "step01_first.ipynb")
    notebook = json.loads(path.read_text())
    assert notebook["nbformat"] == 4
    assert [cell["id"] for cell in notebook["cells"]][:2] == ["cell-01", "cell-02"]
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    printed = [o for cell in notebook["cells"] for o in cell.get("outputs", ())]
    assert printed[0]["text"] == ["twice 8\n"] and "10" in str(printed[1]["data"])
    assert "image/svg+xml" in str(printed)
    path.write_text("mine")
    status, said = learn("notebooks", "1", "--no-run")
    assert status == 0 and "stays as it is" in said and path.read_text() == "mine"
    status, said = learn("notebooks", "1", "--no-run", "--again")
    assert status == 0 and "kept yours as step01_first.ipynb.old-1" in said
    assert Path(f"{path}.old-1").read_text() == "mine"
    assert path.read_text() == sources.find("1").notebook.read_text()


@pytest.mark.slow
def test_a_notebook_that_stops_leaves_no_file(learn, course: Path) -> None:
    pytest.importorskip("nbclient")
    (course / "step10_second.py").write_text(STEP_10 + "\n# %%\nint('x')\n")
    write_notebooks()
    status, said = learn("notebooks", "10", "--folder", "n")
    assert status == 1 and "step10_second.py stopped with an error: ValueError" in said
    assert os.listdir("n") == []


def test_missing_packages_are_named(learn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    status, said = learn("notebooks", "1")
    assert status == 2 and "notebooks need nbclient and ipykernel" in said
    assert "pip install nbclient" in said


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_leaves_no_half_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nbclient")
    code = "import sys\nfrom pathlib import Path\nfrom tinynode_course import command, sources\n"
    code += f"sources.tutorials = lambda: Path({str(tmp_path)!r})\n"
    code += "sys.exit(command.main(['notebooks', '--folder', 'n']))\n"
    slow = "# %% [markdown]\n# # Step 1: slow\n\n# %%\nopen('{}', 'w').close()\n"
    slow += "import time\ntime.sleep(60)\n"
    (tmp_path / "step01_slow.py").write_text(slow.format(tmp_path / "begun"))
    monkeypatch.setattr(sources, "tutorials", lambda: tmp_path)
    write_notebooks()
    with running(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=checking.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        for _ in range(300):
            if (tmp_path / "begun").exists():
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and err.strip() == "interrupted"
    assert os.listdir(tmp_path / "n") == []


# pages


@pytest.mark.slow
def test_pages_show_text_code_output_and_pictures(learn, course: Path) -> None:
    write_notebooks()
    (course / "capstone_last.py").write_text(STEP_10 + "\n# %%\nint('x')\n")
    status, said = learn("pages", "--folder", "docs")
    assert status == 1 and "wrote docs/step01_first.md" in said
    assert "capstone_last.py stopped with an error" in said
    assert "line 10" in said and "ValueError" in said
    assert {path.name for path in Path("docs").iterdir()} == {
        *("index.md", "step01_first.md", "step01_first.ipynb", "step01_first-1.svg"),
        *("step10_second.md", "step10_second.ipynb"),
    }
    text = Path("docs/step01_first.md").read_text()
    head = "# Step 1: doubling\n\n[Notebook](step01_first.ipynb) · In a terminal: `python -m "
    assert text.startswith(head)
    assert "`python -m tinynode.learn start 01` · Prints the same on every backend\n" in text
    assert "[step 10](step10_second.md)" in text
    assert "```python\ndef double(x):\n    return 2 * x\n```\n\n```python\nclass" in text
    assert "```text\ntwice 8\n10\n```" in text
    picture = "```text\nwith a picture\n```\n\n![A nice & small picture](step01_first-1.svg)"
    assert picture in text and "```text\na picture" not in text
    assert Path("docs/step01_first-1.svg").read_text().startswith("<svg>")
    assert Path("docs/step01_first.ipynb").read_text() == sources.find("1").notebook.read_text()
    index = Path("docs/index.md").read_text()
    assert "| [Step 1: doubling](step01_first.md) | Double a number \\| text. |" in index
    assert "\n## Capstones\n" in index and index.startswith("# The course\n")


def test_pages_that_cannot_be_written_are_said(learn) -> None:
    write_notebooks()
    Path("file").write_text("")
    status, said = learn("pages", "10", "--folder", "file")
    assert status == 1 and "cannot be written" in said


def test_html_is_one_block_and_fences_are_long_enough() -> None:
    files: dict[str, str] = {}
    output = cells.Output(printed="a\n", html="<table>\n\n\n<tr>\n  \n</table>\n", shown="t")
    text, table = pages.render(output, files, "s")
    assert text == "```text\na\n```"
    assert table == '<div class="output">\n<table>\n<tr>\n</table>\n</div>'
    assert pages.one_block('<iframe srcdoc="a\n\n b">') == '<iframe srcdoc="a&#10;&#10; b">'
    assert pages.fenced("```python\n```", "text").startswith("````text\n")
    assert pages.render(cells.Output(), files, "s") == [] and files == {}
    assert pages.alternative("<svg/>") == "The picture that the cell draws"
    assert pages.goal([]) == ""


def test_pictures_of_a_page_are_numbered() -> None:
    files: dict[str, str] = {}
    for number in (1, 2):
        (text,) = pages.render(cells.Output(svg=f"<svg>{number}</svg>"), files, "s")
        assert f"(s-{number}.svg)" in text
    assert files == {"s-1.svg": "<svg>1</svg>\n", "s-2.svg": "<svg>2</svg>\n"}


# the command line


def test_a_wrong_command_line_is_one_line(learn) -> None:
    for arguments in (["nonsense"], ["check"], ["check", "1", "--seconds", "0"], ["list", "x"]):
        status, said = learn(*arguments)
        assert status == 2 and said.count("\n") == 1 and "error" in said


def test_ctrl_c_is_no_traceback(learn, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(options: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "show_list", stop)
    assert learn("list") == (130, "\ninterrupted\n")


def test_the_course_is_a_command_of_tinynode_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["learn", "list"]) == 0
    assert "Capstones" in capsys.readouterr().out
    said = []
    for words in (["learn", "--help"], ["--help"]):
        with pytest.raises(SystemExit, match="0"):
            commands.main(words)
        said.append(capsys.readouterr().out)
    assert "-m tinynode.learn [-h] COMMAND" in said[0]
    assert "learn     the course, python -m tinynode.learn" in said[1]


def test_without_the_course_the_door_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert commands.main(["learn", "list"]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "python -m pip install tinynode-course" in err


@pytest.mark.slow
def test_a_wheel_carries_the_course(tmp_path: Path) -> None:
    """And finds it there, in a process that sees the wheel before the checkout."""
    pytest.importorskip("hatchling", reason="building a wheel needs hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    names: list[str] = []
    for project in (ROOT, ROOT / "tutorials"):
        subprocess.run(build, cwd=project, check=True, capture_output=True, timeout=300)
    for wheel in tmp_path.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            names += archive.namelist()
            archive.extractall(tmp_path / "site")
    assert [name for name in names if "__pycache__" in name] == []
    data = ("digits.npz", "digits.md", "sonnets.txt", "sonnets.md")
    assert {f"tinynode/nn/datasets/{name}" for name in data} <= set(names)
    carried = {name.partition("tutorials/")[2] for name in names if "/tutorials/" in name}
    files = [path for path in (ROOT / "tutorials").rglob("*") if path.is_file()]
    there = {str(path.relative_to(ROOT / "tutorials")) for path in files}
    there = {name for name in there if "__pycache__" not in name}
    there = {name for name in there if not name.startswith(("course/", "planted/"))}
    there -= {"pyproject.toml", "LICENSE"}  # of the distribution
    assert carried == there
    engine = [
        path for path in (ROOT / "tutorials/course/tinynode_course").iterdir() if path.is_file()
    ]
    assert len(engine) > 30
    assert {f"tinynode_course/{path.name}" for path in engine} <= set(names)
    environment = checking.environment()
    path = os.pathsep.join([str(tmp_path / "site"), environment["PYTHONPATH"]])
    code = "from tinynode_course import sources; print(sources.tutorials())"
    (tmp_path / "work").mkdir()
    for arguments in (["-c", code], ["-m", "tinynode.learn", "start", "01"]):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path / "work",
            env={**environment, "PYTHONPATH": path},
            check=True,
            capture_output=True,
            encoding="utf-8",
        )
        if arguments[0] == "-c":
            assert Path(done.stdout.strip()) == tmp_path / "site/tinynode_course/tutorials"
    assert (tmp_path / "work" / "mynode" / "core" / "variable.py").exists()


@of_a_checkout
def test_a_checkout_has_the_course_at_its_root() -> None:
    assert sources.tutorials() == ROOT / "tutorials"


def test_the_next_step_is_one_after_the_last_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress(tmp_path)
    progress.note("13", passed=True)
    say_next(progress, sources.find("13"))
    assert capsys.readouterr().out.startswith("Next: Step 14")
    say_next(progress, sources.steps()[-1])
    assert re.match(r"Next: Step [01]:", capsys.readouterr().out)


@pytest.mark.slow
def test_an_endless_loop_ends_also_where_nobody_listens_any_more(
    course: Path, tmp_path: Path
) -> None:
    work = tmp_path / "step01.py"
    begun = tmp_path / "begun"
    work.write_text(f"open({str(begun)!r}, 'w').close()\nwhile True:\n    pass\n")
    command = [sys.executable, "-m", "tinynode_course.examiner", str(work)]
    with running(
        [*command, str(course / "checks" / "step01.py"), "3"],
        env=checking.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        for _ in range(300):
            if begun.exists():
                break
            time.sleep(0.1)
        assert process.stdout is not None
        process.stdout.close()  # as when the caller was killed
        assert process.wait(timeout=30) == 1
