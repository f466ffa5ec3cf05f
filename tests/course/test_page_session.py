"""The Python side of the course's pages in a browser, without a browser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tinynode_course import cells, mynode, page_session, same_process, sources
from tinynode_course.page_session import PageSession

PLAIN = next(s for s in sources.steps() if s.stub.exists() and not s.builds)
BUILDER = sources.find("12")


class Page:
    """A page that asks, and keeps the events."""

    def __init__(self, folder: Path) -> None:
        self.events: list[dict[str, Any]] = []
        self.session = PageSession(folder, lambda text: self.events.append(json.loads(text)))

    def ask(self, **request: Any) -> list[dict[str, Any]]:
        """The events of a request, without the last."""
        self.events.clear()
        self.session.answer(json.dumps(request))
        assert self.events.pop() == {"event": "done"}
        return list(self.events)

    def texts(self) -> str:
        """The printed text of the last request."""
        return "".join(one["text"] for one in self.events if one["event"] == "printed")


def page_of(step: sources.Step, folder: Path) -> Page:
    """A page of a step; the tests' tinynode stays."""
    made = Page(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(same_process, "forget_ours", lambda: None)
        made.session.open(step)
    return made


@pytest.fixture
def page(tmp_path: Path) -> Page:
    """A page of a short program in place of a step."""
    path = tmp_path / "step16_short.py"
    path.write_text("# %% [markdown]\n# # Short\n\n# %%\na = 1\n\n# %%\nprint(a)\na + 1\n")
    return page_of(sources.Step("16", "step", "short", path), tmp_path / "learner")


def test_cells_share_names_and_the_last_expression_is_shown(page: Page) -> None:
    texts = ["a = 5", "print(a)\na + 1"]
    assert [one["event"] for one in page.ask(do="run", sources=texts, cell=0)] == ["output"]
    printed, output = page.ask(do="run", sources=texts, cell=1)
    assert printed == {"event": "printed", "text": "5\n"}
    assert output == {"event": "output", "shown": "6", "svg": "", "html": ""}


def test_a_missing_name_tells_the_cell_that_has_not_run(page: Page) -> None:
    texts = ["import math\ndef half(x):\n    return x / 2", "half(math.pi)"]
    (error,) = page.ask(do="run", sources=texts, cell=1)
    assert error["missing"] == [0]
    assert error["text"].splitlines()[-1] == (
        "Cell 1 defines half, and has not run. Run the cells above first."
    )
    page.ask(do="run", sources=texts, cell=0)
    texts[1] = "halve(1)"
    (error,) = page.ask(do="run", sources=texts, cell=1)
    assert error["missing"] == [] and "has not run" not in error["text"]


@pytest.mark.parametrize(
    "first", ["z = 1\nz = 2", "class z: pass", "for z in (): pass", "import z"]
)
def test_each_way_to_define_a_name_counts(first: str) -> None:
    assert "z" in page_session.names_defined(first)
    assert page_session.names_defined(f"{first} (") == set()
    assert "z" not in page_session.names_defined("print(z)\ndef f():\n    z = 1")


def test_a_picture_is_sent_and_its_text_is_not(page: Page) -> None:
    text = "class P:\n    def _repr_svg_(self):\n        return '<svg/>'\nP()"
    (output,) = page.ask(do="run", sources=[text, ""], cell=0)
    assert (output["svg"], output["shown"]) == ("<svg/>", "")


def test_an_error_has_the_lines_of_the_cells(page: Page) -> None:
    texts = ["\n\ndef half(x):\n    return x / 0", "y = 3\nhalf(y)"]
    page.ask(do="run", sources=texts, cell=0)
    (error,) = page.ask(do="run", sources=texts, cell=1)
    assert error["text"].splitlines() == [
        "ZeroDivisionError: division by zero",
        "  cell 2, line 2: half(y)",
        "  cell 1, line 4: return x / 0",
    ]
    assert error["places"] == [[1, 2], [0, 4]]
    (error,) = page.ask(do="run", sources=["x = (", ""], cell=0)
    assert error["text"].splitlines() == [
        "SyntaxError: '(' was never closed",
        "  cell 1, line 1: x = (",
    ]


def test_an_edited_program_keeps_the_text_between_cells() -> None:
    program = "# %%\na = 1\n\n# %% [markdown]\n# text\n\n# %%\nb = 2\nc = 3\n"
    code = [cell for cell in cells.parse(program) if cell.kind == "code"]
    same, starts = page_session.with_texts(program, code, [cell.source for cell in code])
    assert (same, starts) == (program, [2, 8])
    text, starts = page_session.with_texts(program, code, ["a = 1\na = 2", ""])
    assert text.splitlines()[:3] == ["# %%", "a = 1", "a = 2"] and starts == [2, 9]
    assert "# text" in text and "b = 2" not in text


def test_text_without_end_is_cut(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_session, "MOST_PRINTED", 100)
    page.ask(do="run", sources=["for k in range(1000):\n    print(k)", ""], cell=0)
    text = page.texts()
    assert text.startswith("0\n1\n") and len(text) < 200 and "more than a page" in text


def test_the_program_of_the_cells_is_filmed(page: Page) -> None:
    text = "import numpy, tinynode\nx = tinynode.Variable(numpy.ones(2))\n"
    text += "(x * x).sum().backward()\nprint('seen')"
    film = page.ask(do="film", sources=[text, ""])[-1]
    assert page.texts() == "seen\n" and film["page"].startswith("<!DOCTYPE html>")
    (film,) = page.ask(do="film", sources=["a = 1", ""])
    assert film == {"event": "film", "page": ""}


@pytest.mark.slow
def test_a_film_is_made_again_with_a_change(page: Page) -> None:
    text = (
        "import numpy as np\nimport tinynode as tn\n"
        "x = tn.Variable(np.array([3.0, 4.0]), name='x')\ny = (x * x).sum()\ny.backward()"
    )
    plain = page.ask(do="film", sources=[text, ""])[-1]["page"]
    assert '"host":"course"' in plain and '"compared":' not in plain
    change = {"step": 1, "name": "x", "index": [0], "to": 0}
    changed = page.ask(do="film", sources=[text, ""], changes=[change])[-1]["page"]
    assert '"losses":["loss",[25.0],[16.0]]' in changed and '"host":"course"' in changed
    for wrong, words in (
        ([{**change, "name": "v"}], "forward of Multiply does not have v. It has the arrays x,"),
        ([{**change, "to": "one"}], "to must be a number, nan, inf or -inf, got 'one'"),
        ({"step": 1}, "the changes must be a list"),
        ("text", "the changes must be a list"),
    ):
        refused = page.ask(do="film", sources=[text, ""], changes=wrong)[-1]
        assert refused["event"] == "refused" and words in refused["text"]


@pytest.mark.slow
def test_a_program_of_its_own_is_run_and_filmed(page: Page) -> None:
    text = "import numpy, tinynode\nx = tinynode.Variable(numpy.ones(2))\n"
    text += "(x * x).sum().backward()\nprint('seen', __name__)\n1 / 0"
    film = page.ask(do="play", text=text, title="Squares </title><b>")[-1]
    assert page.texts().startswith("seen __main__\nTraceback (most recent call last):\n")
    assert 'program.py", line 5' in page.texts() and "ZeroDivisionError" in page.texts()
    assert "<title>Squares &lt;/title&gt;&lt;b&gt;</title>" in film["page"]
    change = {"step": 1, "name": "x", "index": [0], "to": 3}
    changed = page.ask(do="play", text=text, title="T", changes=[change])[-1]["page"]
    assert "<title>T</title>" in changed and '"losses":["loss",[2.0],[10.0]]' in changed
    (film,) = page.ask(do="play", text="x = '\ud800'", title="")
    assert film == {"event": "film", "page": ""}
    page.ask(do="play", text="(", title="")
    assert "SyntaxError" in page.texts()


@pytest.mark.slow
def test_an_exercise_is_examined_in_this_process(tmp_path: Path) -> None:
    page = page_of(PLAIN, tmp_path)
    files = page_session.first_files(PLAIN)
    assert list(files) == [PLAIN.work]
    events = page.ask(do="check", files=files)
    assert events[0]["event"] == "checks" and events[-1] == {"event": "checked", "passed": False}
    failed = [one for one in events if "failed" in one["event"]]
    assert failed and all(one["words"] for one in failed)
    solved = {PLAIN.work: PLAIN.solution.read_text(encoding="utf-8")}
    assert page.ask(do="check", files=solved)[-1] == {"event": "checked", "passed": True}
    assert page.ask(do="solution", files=solved) == [{"event": "solution", "text": ""}]
    assert sys.modules["tinynode_course.page_session"] is page_session
    assert PLAIN.name not in sys.modules


@pytest.mark.slow
def test_stubs_join_the_learners_package(tmp_path: Path) -> None:
    page = page_of(BUILDER, tmp_path)
    earlier = [step.key for step in mynode.earlier(BUILDER)]
    (event,) = page.ask(do="start", files={}, take=earlier)
    assert set(event["files"]) >= {f"mynode/{path}" for path in mynode.reference(earlier[-1])}
    (again,) = page.ask(do="start", files=event["files"], take=[])
    assert again["files"] == event["files"]
    (taken,) = page.ask(do="start", files=event["files"], take=[BUILDER.key])
    assert page.ask(do="check", files=event["files"])[-1]["passed"] is False
    assert page.ask(do="check", files=taken["files"])[-1]["passed"] is True
    broken = {**event["files"], "mynode/__init__.py": "def ("}
    (refused,) = page.ask(do="start", files=broken, take=earlier)
    assert refused["event"] == "refused" and "no Python: line 1" in refused["text"]


def test_cells_take_the_learners_package(tmp_path: Path) -> None:
    page = page_of(BUILDER, tmp_path)
    page.session.choose_package({"mynode/__init__.py": "mine = 1\n"})
    try:
        assert mynode.source.folder == tmp_path / "mine"
        assert (tmp_path / "mine/mynode/__init__.py").read_text() == "mine = 1\n"
    finally:
        page.session.choose_package(None)
    assert mynode.source.folder is None


def test_a_program_runs_as_in_a_new_process(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("name = 'helper'\n")
    code = "import os, sys, helper; print(os.environ['A'], helper.name, os.getcwd()); sys.exit(3)"
    command = [sys.executable, "-c", code]
    settings = {"A": "b", "PYTHONPATH": str(tmp_path)}
    here, path = os.getcwd(), list(sys.path)
    done = same_process.run(command, env=settings, cwd=str(tmp_path), capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, f"b helper {tmp_path}\n", "")
    assert "A" not in os.environ and "helper" not in sys.modules
    assert (os.getcwd(), sys.path) == (here, path)


def test_a_program_that_stops_and_a_command_of_another_kind(tmp_path: Path) -> None:
    done = same_process.run([sys.executable, "-c", "1 / 0"], cwd=str(tmp_path))
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr
    with pytest.raises(subprocess.CalledProcessError):
        same_process.run([sys.executable, "-c", "1 / 0"], cwd=str(tmp_path), check=True)
    with pytest.raises(OSError, match="no other process can be started here: ls"):
        same_process.run(["ls"])
