"""The course in a terminal: pages as text and in colours, predictions, puzzles, watch."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from child_process import running
from learn_course import ALONE, BOX, small_course

from tinynode_course import (
    checking,
    command,
    mynode,
    pager,
    puzzle,
    reading,
    screen,
    shell,
    sources,
    watch,
)
from tinynode_course.cells import Output
from tinynode_course.mynode import Excerpt
from tinynode_course.places import Spot
from tinynode_course.plain_screen import PlainScreen, caption
from tinynode_course.progress import NAME, Progress
from tools import course_commands

__all__ = ["small_course"]


def said_by(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    command.main(arguments)
    out, err = capsys.readouterr()
    return out + err


# plain lines


def test_without_colours_a_step_is_markdown_with_formulas_in_unicode(
    small_course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = said_by(capsys, "run", "05")
    assert "# Step 5: alone\n\n**Goal.** Learn *little* about x², from" in said
    assert "[node.py](tinynode/core/node.py)" in said and "../source/" not in said
    assert '  | print("it is", 1 + 2)\n\n  > it is 3\n' in said
    assert f"`{shell.PROGRAM} start 05`" in said


@pytest.mark.skipif(os.name == "nt", reason="closed pipes of POSIX")
def test_a_closed_pipe_is_no_mistake_of_the_step(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tinynode.learn", "run", "01"],
        cwd=tmp_path,
        env=checking.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


# colours


def test_a_terminal_gets_headings_code_and_output_in_colours(
    monkeypatch: pytest.MonkeyPatch, small_course: Path
) -> None:
    pytest.importorskip("rich")
    from tinynode_course.rich_screen import RichScreen

    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = RichScreen(paged=False)
    shown.text("# Title\n**Goal.** text\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\n# code\n```")
    shown.excerpt(Excerpt("core/variable.py", "x = 1\ny = 2", (2,)))
    shown.output("a\n")
    shown.end()
    text = out.getvalue()
    assert "Title" in text and "\x1b[1mGoal." in text and "|---" not in text and "# code" in text
    assert "mynode/core/variable.py   (in the package: tinynode/core/variable.py)" in text
    lines = text.splitlines()
    assert [line for line in lines if "+ ┃" in line and "\x1b[94m2" in line]
    assert [line for line in lines if "▌" in line and line.endswith("a")]


def test_without_rich_or_without_a_terminal_it_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(screen.make(True, terminal=False)) is PlainScreen
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert type(screen.make(True, terminal=True)) is PlainScreen


def test_a_closed_or_missing_stream_is_no_terminal() -> None:
    closed = io.StringIO()
    closed.close()
    assert not screen.is_terminal(closed) and not screen.is_terminal(None)


def test_a_caption_names_the_package_s_file() -> None:
    assert "tinynode/core/backprop.py" in caption(Excerpt("core/backprop.py", "", ()))
    assert caption(Excerpt("core/own.py", "", ())) == "mynode/core/own.py"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pager")
def test_text_goes_through_the_learners_pager(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAGER", "sed s/one/two/")
    pager.show("one\n")
    assert capfd.readouterr().out == "two\n"
    monkeypatch.setenv("PAGER", "true")  # ends without reading
    pager.show("one\n" * 100_000)
    capfd.readouterr()
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert pager.pager() == []
    pager.show("one\n")
    assert capfd.readouterr().out == "one\n"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pager")
def test_the_learner_sees_the_key_that_leaves_the_pager(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    less = tmp_path / "less"
    less.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    less.chmod(0o755)
    monkeypatch.setenv("PAGER", str(less))
    pager.show("one\n" * 100)
    said = capfd.readouterr().out
    assert "q leaves" in said and not set(pager.KEYS) & set("?:.%\\"), "signs of less itself"
    monkeypatch.setenv("PAGER", "cat")
    pager.show("one\n")
    assert capfd.readouterr().out == "one\n"
    pager.show("one\n" * 100)
    assert capfd.readouterr().out.startswith("This text opens in cat, your PAGER; q leaves")


# films


def test_a_film_is_a_list_of_steps_with_numbers_in_a_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = said_by(capsys, "run", "07")
    assert "> 1. Multiply computes" in said and "gradient of" in said
    assert f"The film as a page: {shell.PROGRAM} run 07 --save pictures" in said


# predictions


def answering(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, *more: str
) -> str:
    monkeypatch.setattr(screen, "is_terminal", lambda stream: True)
    monkeypatch.setattr(screen, "make", lambda paged, terminal: PlainScreen())

    def line(question: str) -> str:
        print(question)
        if answer == "end":
            raise EOFError
        return answer

    monkeypatch.setattr("builtins.input", line)
    return said_by(capsys, "run", "05", *more)


def test_a_prediction_is_asked_for_before_the_output_and_shown_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], small_course: Path
) -> None:
    said = answering(monkeypatch, capsys, "four")
    places = [said.index(words) for words in ("Predict", NAME, "A line, or Enter", "  > it is 3")]
    assert places == sorted(places)
    end = said.partition("Your prediction\n")[2]
    assert "You wrote: four" in end and "section **Run** begins with\n\n```text\nit is 3" in end
    answering(monkeypatch, capsys, "three")
    assert Progress(Path.cwd()).of("05") == {"predictions": ["four", "three"]}


@pytest.mark.parametrize("answer", ["", "end"])
def test_no_answer_is_no_prediction(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    small_course: Path,
    answer: str,
) -> None:
    said = answering(monkeypatch, capsys, answer)
    assert "it is 3" in said and "You wrote" not in said and os.listdir() == []


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals of POSIX")
def test_a_step_in_a_real_terminal(tmp_path: Path) -> None:
    """With a pager that only passes its input on, and a learner who types a line."""
    pytest.importorskip("rich")
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    environment = checking.environment() | {"TERM": "xterm-256color", "PAGER": "cat"}
    environment.pop("NO_COLOR", None)
    with running(
        [sys.executable, "-m", "tinynode.learn", "run", "22"],
        cwd=tmp_path,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    ) as process:
        os.close(theirs)
        os.write(ours, b"nothing but zeros\n")
        written = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux: no process has the other end any more
                break
            if not piece:
                break
            written += piece
        os.close(ours)
        assert process.wait() == 0
    text = written.decode()
    end = text.partition("You wrote: nothing but zeros")[2]
    assert "\x1b[1mGoal.\x1b[0m" in text and "begins with" in end
    assert Progress(tmp_path).of("22") == {"predictions": ["nothing but zeros"]}


def test_questions_can_be_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], small_course: Path
) -> None:
    assert "predict?" not in answering(monkeypatch, capsys, "four", "--no-questions")


def test_an_output_before_the_question_asks_nothing() -> None:
    predictions = reading.Predictions(sources.find("01"))
    assert not predictions.is_due(Output(printed="early"))


# puzzles


def test_the_hint_before_the_last_is_the_missing_lines_in_another_order(
    small_course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without any work: the first check, and no place."""
    assert "Hint 1 of 4 for step 05" in said_by(capsys, "hint", "05")
    assert "it is what it is" in said_by(capsys, "hint", "05")
    said = said_by(capsys, "hint", "05")
    assert "Hint 3 of 4 for step 05" in said and "These lines are missing, in a mixed" in said
    assert "One" not in said and "1 of them is wrong" in said
    lines = said.partition("  join\n")[2].splitlines()
    right = [
        'line = ""',
        "for word in words:",
        'line = line + (" " if line else "") + word',
        "return line",
    ]
    shown = [line.strip() for line in lines]
    assert sorted(shown) == sorted([*right, "line = word"]) and shown[:4] != right
    assert {len(line) - len(line.lstrip()) for line in lines} == {4}
    assert "half" not in said  # a single line would be the solution
    said = said_by(capsys, "hint", "05")
    assert "half = 0.5" in said and "for word in words:" in said and "show 05" in said


def test_a_puzzle_of_mynode_has_the_definitions_that_are_still_to_write(
    small_course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = sources.find("02")
    said = puzzle.puzzle(step, puzzle.groups(step))
    assert "  mynode/core/boxes.py: show\n" in said and "text += " in said
    assert "self.name" not in said and '"""' not in said
    said_by(capsys, "take", "01")
    said_by(capsys, "start", "02")
    assert "mynode/core/boxes.py: show" in puzzle.puzzle(step, puzzle.groups(step))
    place = Spot("core/boxes.py", "Box.__init__", 9)
    (group,) = puzzle.groups(step, [place])
    assert group.lines == ('self.name = "box"',), "the learner has the other lines"
    (group,) = puzzle.groups(step, [Spot("core/boxes.py", "Box", 7)])
    assert group.text == 'self.name = "box"'


@pytest.mark.slow
def test_every_puzzle_of_the_course_is_made() -> None:
    for step in sources.steps():
        for line in puzzle.puzzle(step, puzzle.groups(step)).splitlines():
            assert len(line) < 140, (step.key, line)


# the learner's shell


def test_python_is_named_as_the_shell_finds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    here, other = tmp_path / "bin" / "python", tmp_path / "python"
    here.write_text("")
    os.link(here, other)
    monkeypatch.setattr(sys, "executable", str(here))
    monkeypatch.chdir(tmp_path)
    for found, word in (
        ({"python": str(here)}, "python"),
        ({"python": str(other), "python3": str(here)}, "python3"),
        ({"python": str(other)}, os.path.join("bin", "python")),
        ({"python": str(tmp_path / "gone" / "python")}, os.path.join("bin", "python")),
    ):
        monkeypatch.setattr("shutil.which", found.get)
        assert shell.interpreter() == word
        assert shell.program() == f"{word} -m tinynode.learn"
    monkeypatch.setattr(sys, "executable", "")
    assert shell.interpreter() == "python"


def test_the_launcher_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", {"py": "py.exe"}.get)
    monkeypatch.setattr(shell, "ON_WINDOWS", True)
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    assert shell.interpreter() == f"py -{sys.version_info.major}.{sys.version_info.minor}"
    monkeypatch.setattr(sys, "base_prefix", "elsewhere")
    monkeypatch.setattr(sys, "executable", r"C:\my files\.venv\Scripts\python.exe")
    assert shell.interpreter() == r'"C:\my files\.venv\Scripts\python.exe"'
    assert shell.quoted(r".venv\Scripts\python") == r".venv\Scripts\python"


# watch


@pytest.mark.slow
def test_the_page_of_commands_shows_the_outputs_of_today() -> None:
    """If not: `python -m tools.course_commands`."""
    page = course_commands.PAGE.read_text(encoding="utf-8")
    assert course_commands.with_outputs(page) == page


class Saver:
    """In place of time.sleep: saves the next text at each look."""

    def __init__(self, *acts) -> None:
        self.acts = list(acts)

    def __call__(self, seconds: float) -> None:
        if not self.acts:
            raise KeyboardInterrupt
        self.acts.pop(0)()


def test_watch_checks_each_saved_version_and_goes_on(
    small_course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = Path("step05.py")

    def save(text: str) -> None:
        work.write_text(text)
        os.utime(work, ns=(0, len(text)))

    for key in ("01", "02"):
        Progress(Path.cwd()).note(key, passed=True)
    monkeypatch.setattr(
        "time.sleep",
        Saver(
            lambda: None,
            lambda: save("def join(words:"),
            lambda: None,
            lambda: save(ALONE),
            lambda: None,
        ),
    )
    said = said_by(capsys, "watch")
    assert said.index("Waiting for the start of Step 5: alone") < said.index("start 05")
    assert said.index("SyntaxError") < said.index("Watching step05.py: save a file")
    assert said.rstrip().endswith("All exercises are done.") and "\x1b" not in said
    assert Progress(Path.cwd()).of("05")["attempts"] == 2


def test_ctrl_c_ends_a_watch_and_a_terminal_is_cleared(
    small_course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said_by(capsys, "start", "01")
    assert (Path(mynode.NAME) / "core" / "boxes.py").read_text() != BOX
    monkeypatch.setattr("time.sleep", Saver())
    monkeypatch.setattr(screen, "is_terminal", lambda stream: True)
    said = said_by(capsys, "watch", "01")
    assert said.startswith(watch.CLEAR) and "still to be written" in said
    assert said.endswith("Ctrl-C ends the watch.\n\nThe watch has ended.\n")
