"""The exercises in a notebook, its cells around the step, its signature, and its progress bar."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from learn_course import ALONE, BOX, SHOW, STUB, STUB_SHOW, small_course

from tinynode import learn
from tinynode.nn import display
from tinynode_course import checking, mynode, notebook_magics, notebooks, shell, sources
from tinynode_course.progress import Progress
from tools import make_notebooks

__all__ = ["small_course"]


class Shell:
    """The part of an IPython shell that the course uses."""

    def __init__(self) -> None:
        self.magics: dict[str, Any] = {}
        self.names: dict[str, Any] = {}

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        self.magics[("%%" if kind == "cell" else "%") + name] = function

    def push(self, names: dict[str, Any]) -> None:
        self.names |= names


class Notebook:
    """A notebook with the extension loaded; each call returns the printed text."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.shell = Shell()
        self.capsys = capsys
        learn.load_ipython_extension(self.shell)

    def cell(self, magic: str, line: str, code: str) -> str:
        self.shell.magics[magic](line, code)
        return self.said()

    def learn(self, line: str) -> str:
        self.shell.magics["%learn"](line)
        return self.said()

    def call(self, name: str, *arguments: Any) -> str:
        self.shell.names[name](*arguments)
        return self.said()

    def said(self) -> str:
        out, err = self.capsys.readouterr()
        return out + err


@pytest.fixture
def notebook(small_course: Path, capsys: pytest.CaptureFixture[str]) -> Notebook:
    return Notebook(capsys)


@pytest.mark.slow
def test_an_exercise_in_a_file(notebook: Notebook) -> None:
    assert "Run a cell that begins with %%exercise first" in notebook.call("check")
    assert notebook.cell("%%exercise", "5", STUB) == "saved step05.py. Next cell: check()\n"
    assert "still to be written" in notebook.call("check")
    assert "Hint 1 of 5" in notebook.call("hint")
    assert notebook.cell("%%exercise", "05", ALONE).startswith("saved")
    assert "All 1 checks pass." in notebook.call("check")
    assert os.listdir() and sorted(os.listdir()) == ["step05.py", "tinynode-course.json"]
    facts = Progress(Path.cwd()).of("05")
    assert facts["passed"] and facts["attempts"] == 2 and facts["hints"] == 1
    assert "All 1 checks pass." in notebook.call("check", 5)


def test_a_check_in_a_browser_names_the_places_that_can(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.cell("%%exercise", "05", ALONE)
    monkeypatch.setattr(checking.sys, "platform", "emscripten")
    said = notebook.call("check")
    assert "Python in a browser has none. Your files are saved." in said


def test_a_cell_keeps_a_file_that_was_edited_elsewhere(notebook: Notebook) -> None:
    notebook.cell("%%exercise", "05", ALONE)
    assert "stays as it is" in notebook.cell("%%exercise", "05", STUB)
    Path("step05.py").write_text("mine")
    said = notebook.cell("%%exercise", "05", ALONE)
    assert said.startswith("kept the step05.py that was here as step05.py.old-1")
    assert Path("step05.py.old-1").read_text() == "mine" and Path("step05.py").read_text() == ALONE
    assert "kept" not in notebook.cell("%%exercise", "05", ALONE)


def test_notebooks_below_the_learners_folder_share_its_files(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    work, below = Path.cwd(), Path.cwd() / notebooks.FOLDER
    below.mkdir()
    monkeypatch.chdir(below)
    said = notebook.cell("%%exercise", "05", ALONE)
    assert said.endswith(f"Your folder is {work}\n") and (work / "step05.py").exists()
    assert "checks pass." in notebook.call("check") and Path.cwd() == below
    deeper = work / "a" / "b" / "c"
    deeper.mkdir(parents=True)
    for folder, home in ((deeper.parent, work), (deeper, deeper)):
        monkeypatch.chdir(folder)
        assert notebook_magics.home() == home


def test_definitions_go_into_mynode_by_name(notebook: Notebook) -> None:
    said = notebook.cell("%%exercise", "02 core/boxes.py", STUB_SHOW)
    assert said.startswith("not saved: step 02 builds on step 01")
    assert "took Box" in notebook.learn("take 01")
    said = notebook.cell("%%exercise", "02 core/boxes.py", STUB_SHOW)
    assert said.startswith("nothing new: the definitions of this cell are as at the start")
    file = Path(mynode.NAME, "core", "boxes.py")
    assert "class Box" in file.read_text() and "NotImplementedError" in file.read_text()
    said = notebook.cell("%%exercise", "02 core/boxes.py", "import os\n" + SHOW + "\nshow(1)\n")
    assert "left out line 12" in said and "core/boxes.py: saved show" in said
    text = file.read_text()
    assert SHOW.strip() in text and "import os" in text and text.count("def show") == 1
    assert "All 2 checks pass." in notebook.call("check")
    assert "yours" in notebook.learn("status")
    assert "kept" not in notebook.cell("%%exercise", "02 core/boxes.py", SHOW + "    # more\n")
    assert not list(Path(mynode.NAME).rglob("*.old-*"))


def test_a_definition_that_was_edited_elsewhere_is_kept(notebook: Notebook) -> None:
    notebook.learn("take 01")
    file = Path(mynode.NAME, "core", "boxes.py")
    notebook.cell("%%exercise", "02 core/boxes.py", SHOW)
    edited = file.read_text().replace("> 2", "> 1")
    file.write_text(edited)
    said = notebook.cell("%%exercise", "02 core/boxes.py", SHOW)
    assert said.startswith("kept the mynode/core/boxes.py that was here as boxes.py.old-1")
    assert file.with_name("boxes.py.old-1").read_text() == edited


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("", "", "name the step: %%exercise 05"),
        ("77", "", "there is no step '77'"),
        ("01", BOX, "name a file of mynode: %%exercise 01 PATH, with PATH __init__.py"),
        ("01 other.py", BOX, "name a file of mynode"),
        ("01 core/boxes.py", "def show(:\n", "line 2 of the cell: "),
    ],
)
def test_a_cell_that_cannot_be_saved(notebook: Notebook, line: str, code: str, said: str) -> None:
    assert said in notebook.cell("%%exercise", line, code)
    assert os.listdir() == []


def test_a_wrong_command_leaves_the_kernel_running(notebook: Notebook) -> None:
    assert "error" in notebook.learn("nonsense")


def test_the_command_in_a_kernel_is_the_magic(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kernel:
        kernel = "yes"

    class IPython:
        get_ipython = Kernel

    monkeypatch.setitem(shell.sys.modules, "IPython", IPython)
    assert shell.program() == "%learn"


# the file


def test_a_notebook_has_an_install_cell_the_exercise_and_its_neighbours(
    small_course: Path,
) -> None:
    made = json.loads(make_notebooks.notebook(sources.find("02")))
    texts = ["".join(cell["source"]) for cell in made["cells"]]
    assert 'find_spec("tinynode_course") is None:\n    %pip install --quiet ../.. ..\n' in texts[0]
    for folder, name in ((".", "tinynode"), ("tutorials", "tinynode-course")):
        project = Path(__file__).parents[2] / folder / "pyproject.toml"
        assert f'\nname = "{name}"\n' in project.read_text(encoding="utf-8")
    assert texts[0].endswith("%load_ext tinynode.learn")
    assert texts[1].startswith("# Step 2") and "(step05_alone.ipynb)" in texts[1]
    stub, check, hint = made["cells"][-4:-1]
    assert "".join(stub["source"]) == f"%%exercise 02 core/boxes.py\n{STUB_SHOW}".strip()
    assert check["source"] == ["check()"] and hint["source"][0].startswith("# hint()")
    assert "skip-execution" in stub["metadata"]["tags"]
    assert texts[-1] == (
        "Previous: [Step 1: boxes](step01_boxes.ipynb) · Next: [Step 5: alone](step05_alone.ipynb)"
    )
    assert all(cell.get("outputs", []) == [] for cell in made["cells"])


def test_an_executed_notebook_is_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nbformat = pytest.importorskip("nbformat")
    sign = pytest.importorskip("nbformat.sign")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    made = nbformat.v4.new_notebook()
    output = nbformat.v4.new_output("display_data", {"image/svg+xml": "<svg>\n</svg>"})
    made.cells = [nbformat.v4.new_code_cell("x", outputs=[output])]
    path = tmp_path / "one.ipynb"
    nbformat.write(made, path)
    notary = sign.NotebookNotary()
    assert not notary.check_signature(nbformat.read(path, 4))
    notebooks.sign(path)
    assert notary.check_signature(nbformat.read(path, 4))
    notary.store.close()

    def refuse(*arguments: object) -> None:
        raise OSError("read-only")

    monkeypatch.setattr(sign.NotebookNotary, "sign", refuse)
    notebooks.sign(path)
    assert f"not signed (read-only): run  jupyter trust {path}" in capsys.readouterr().err


@pytest.mark.slow
def test_the_exercise_works_in_a_real_kernel(small_course: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    made = nbformat.reads(make_notebooks.notebook(sources.find("05")), as_version=4)
    redirect = "from pathlib import Path\nfrom tinynode_course import sources\n"
    redirect += f"sources.tutorials = lambda: Path({str(small_course)!r})"
    made.cells.insert(0, nbformat.v4.new_code_cell(redirect))
    for cell in made.cells:
        cell.metadata.pop("tags", None)
        if cell.source.startswith("%%exercise"):
            cell.source = f"%%exercise 05\n{ALONE}"
        cell.source = cell.source.removeprefix("# ") if "# hint()" in cell.source else cell.source
    client = nbclient.NotebookClient(made, timeout=60, kernel_name="python3")
    client.execute(cwd=os.getcwd())
    printed = "".join(
        output.get("text", "") for cell in made.cells for output in cell.get("outputs", ())
    )
    assert "saved step05.py. Next cell: check()" in printed
    assert "All 1 checks pass." in printed and "%learn" in printed
    assert "All checks of step 05 pass: no hint is needed." in printed


# the progress bar of a training


class Handle:
    """In place of IPython's display handle."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def __call__(self, data: dict[str, str], **options: Any) -> Handle:
        self.update(data)
        return self

    def update(self, data: dict[str, str], **options: Any) -> None:
        self.shown.append(data["text/plain"])


def test_a_notebook_has_a_bar_that_disappears(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(display.NotebookDisplay, "SECONDS", 0.0)
    handle = Handle()
    with display.NotebookDisplay(4, handle) as shown:
        shown.line("epoch")
        shown.advance(1)
        shown.advance(5)
    assert [text[-4:] for text in handle.shown] == ["  0%", " 25%", "100%", ""]
    assert capsys.readouterr().out == "epoch\n"


@pytest.mark.parametrize(
    ("name", "text", "capable"),
    [("TERM", "xterm", True), ("TERM", "dumb", False), ("JPY_PARENT_PID", "1", False)],
)
def test_a_line_of_a_notebook_is_no_capable_terminal(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, capable: bool
) -> None:
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    monkeypatch.setattr(display.sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv(name, text)
    assert display.is_capable_terminal() is capable


def test_the_output_of_a_kernel_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("IPython")
    stream = type("OutStream", (), {"__module__": "ipykernel.iostream"})
    monkeypatch.setattr(display.sys, "stdout", stream())
    made = display.make_display(3)
    monkeypatch.undo()
    assert type(made) is display.NotebookDisplay


def test_a_digest_is_short() -> None:
    assert len(notebook_magics.digest("text")) == 16


@pytest.mark.slow
def test_the_whole_package_is_built_by_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each step of the real course, with the definitions of its reference in the cells."""
    monkeypatch.chdir(tmp_path)
    notebook = Notebook(capsys)
    for step in mynode.builders():
        for path, text in mynode.changed(step.key).items():
            said = notebook.cell("%%exercise", f"{step.key} {path}", text)
            assert "not saved" not in said and "left out" not in said, said
        assert "checks pass." in notebook.call("check")
    assert not list(tmp_path.rglob("*.old-*"))
