"""The README and the pages of docs/: their Python runs, and prints what they say it prints."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path

import pytest
from pages import BLOCK, python_blocks, run_page

import tinynode as tn
from tinynode.devices import protocol
from tinynode_course import sources
from tools import docs_pages, function_pages, release, source_pages

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
COURSE = ROOT / "tutorials"
PAGES = [README, COURSE / "README.md", COURSE / "course" / "README.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))


WITH_PYTHON = [page for page in PAGES if python_blocks(page)]


TRAINING = {"layers-and-training.md", "training.md"}
"""Pages whose programs train for seconds."""

NEEDS = {
    "code-of-others.md": ("scipy", "sklearn", "xarray"),
    "interop.md": ("torch", "jax"),
    "onnx.md": ("onnx", "onnxruntime"),
}
"""Libraries that the programs of a page import; their import takes seconds."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=str(page.relative_to(ROOT)),
            marks=[pytest.mark.slow] if page.name in TRAINING | NEEDS.keys() else [],
        )
        for page in WITH_PYTHON
    ],
)
def test_the_python_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in NEEDS.get(page.name, ()):
        pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.chdir(tmp_path)
    tn.show.transfers(reset=True)  # the copies of other tests
    run_page(page)


def test_a_page_that_is_wrong_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("text\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n")
    run_page(page)
    page.write_text(page.read_text().replace("\n1\n", "\n2\n"))
    with pytest.raises(AssertionError, match=r"page.md:3"):
        run_page(page)
    page.write_text("```python\nprint(1)\n```\n")
    with pytest.raises(AssertionError):
        run_page(page)


def test_the_pages_with_python_are_known() -> None:
    assert {page.name for page in WITH_PYTHON} >= {"README.md", "index.md", "graph.md"}


def test_ci_runs_the_commands_of_the_readme() -> None:
    readme, script = README.read_text(encoding="utf-8"), (ROOT / ".ci" / "run").read_text()
    commands = [block[2] for block in BLOCK.finditer(readme) if block[1] == "sh"]
    assert [command.count("\n") for command in commands] == [1, 1, 1], "one line for each"
    film, job, tests = (command.strip().rpartition("&& .venv/bin/")[2] for command in commands)
    assert film == "python -m tinynode step tutorials/examples/first_picture.py"
    assert job == "python -m tinynode train digits" and tests == "python -m pytest -n auto"
    assert film in script and job in script and tests in script


QUOTE = re.compile(r'^```py title="(.+?)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
"""A block that quotes lines of a file, in the order of the file."""


def unquoted(page: str) -> list[str]:
    """The quotes of a page that are not in the file; indentation does not count."""
    missing = []
    for file, quote in QUOTE.findall(page):
        if quote.startswith("--8<--"):  # the build of the site puts the whole file here
            continue
        lines = [line.strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
        wanted = [line.strip() for line in quote.splitlines()]
        size = len(wanted)
        if not any(lines[i : i + size] == wanted for i in range(len(lines) - size + 1)):
            missing.append(f"{file}:\n{quote}")
    return missing


def test_quotes_of_the_source_are_in_the_source() -> None:
    page = (ROOT / "docs" / "read-the-core.md").read_text(encoding="utf-8")
    quoted = {file for file, _ in QUOTE.findall(page)}
    for name in ("variable", "function_node", "dispatch", "backprop", "gradient_table"):
        assert f"tinynode/core/{name}.py" in quoted
    assert unquoted(page) == []
    changed = page.replace("raws.append(array)", "raws.append(x)")
    assert len(unquoted(changed)) == 1


def test_all_pages_quote_the_source_as_it_is() -> None:
    pages = sorted((ROOT / "docs").glob("*.md"))
    changed = {page.name: unquoted(page.read_text(encoding="utf-8")) for page in pages}
    assert {name: quotes for name, quotes in changed.items() if quotes} == {}


READMES_OF_ROOMS = sorted([*ROOT.glob("tinynode/*/README.md"), *ROOT.glob("backends/*/README.md")])


@pytest.mark.parametrize("readme", READMES_OF_ROOMS, ids=lambda path: path.parent.name)
def test_the_readme_of_a_room_names_files_that_exist(readme: Path) -> None:
    text = readme.read_text(encoding="utf-8")
    named = {*re.findall(r"`([\w/.]+\.(?:py|js))`", text), *re.findall(r"\]\(([^):#]+)", text)}
    assert len(named) >= min(4, len(list(readme.parent.glob("*.py"))))
    missing = [name for name in named if not (readme.parent / name).exists()]
    assert [name for name in missing if not (ROOT / name).exists()] == []


def test_pages_link_to_files_that_exist() -> None:
    """In the repository, or made by the build of the site."""
    made = {name for names in docs_pages.SAVED.values() for name in names}
    made |= {
        "microgpt_curve.svg",
        "tutorials/index.md",
        *(f"tutorials/{s.path.stem}.md" for s in sources.steps()),
    }
    made |= {"source/index.md", *map(source_pages.place, source_pages.files())}
    made |= {f"{function_pages.FOLDER}/{family.name}.md" for family in function_pages.FAMILIES}
    link = re.compile(r"\]\((?!https?:)([^)#]+)")
    for page in PAGES:
        prose = BLOCK.sub("", page.read_text(encoding="utf-8"))  # code may look like a link
        for target in link.findall(prose):
            path = Path(os.path.normpath(page.parent / target))
            assert path.exists() or path in {docs_pages.DOCS / m for m in made}, f"{page}: {path}"


@pytest.mark.slow
def test_the_reference_has_every_exported_function_once() -> None:
    """As an entry of a family, with its classes; the index links to the functions."""
    functions, linalg = tn.functions, tn.functions.linalg
    of_functions = vars(functions).items()
    classes = {name for name, one in of_functions if isinstance(one, type) and name[0] != "_"}
    names = {*functions.__all__, *functions.fft.__all__, *linalg.__all__} - {"linalg"}
    exported = names | classes
    entries = [e for family in function_pages.FAMILIES for e in function_pages.entries(family)]
    for entry in entries:
        module = importlib.import_module(f"tinynode.functions.{entry.module}")
        assert all(hasattr(module, name) for name in (entry.name, *entry.classes))
    found = [name for e in entries for name in (e.function, *e.classes) if name]
    results = {"EighResult", "QrResult", "SlogDetResult", "SvdResult", "TopKResult"}
    assert sorted(found) == sorted(exported | results)
    index = function_pages.index()
    assert all(f"[`{name}`](functions/" in index for name in exported if name[0].islower())


def test_a_class_stands_below_the_nearest_function() -> None:
    losses = next(f for f in function_pages.FAMILIES if f.name == "losses")
    shapes = next(f for f in function_pages.FAMILIES if f.name == "joining")
    classes = {e.name: e.classes for f in (losses, shapes) for e in function_pages.entries(f)}
    assert classes["unstack"] == ("Unstack",) and classes["huber"] == ()
    assert "SoftmaxCrossEntropyGrad" in classes["softmax_cross_entropy"]
    page = function_pages.page(losses)
    blocks = re.findall(r"^::: tinynode\.functions\.\w+\.(\w+)$", page, re.MULTILINE)
    assert blocks[:2] == ["softmax_cross_entropy", "SoftmaxCrossEntropy"]
    html = '<div class="doc doc-object doc-class">\n<h3 id="A">A</h3></div>'
    assert "data-search-exclude" in function_pages.without_classes_in_search(html)


def test_a_source_page_has_anchors_of_lines_and_of_definitions() -> None:
    file = ROOT / "tinynode" / "core" / "variable_node.py"
    page = source_pages.page(file)
    assert source_pages.place(file) == "source/tinynode/core/variable_node.md"
    made = source_pages.with_source(page)
    number = file.read_text("utf-8").split("\nclass VariableNode")[0].count("\n") + 2
    assert f'<a class="name" id="VariableNode"></a><a id="L-{number}"' in made
    assert 'id="VariableNode.unchain"' in made and "exclude: true" in made
    assert source_pages.with_source("no mark") == "no mark"
    names = {source_pages.name_of(path) for path in source_pages.files()}
    assert "backends/tinynode_numpy/__init__.py" in names
    assert not [name for name in names if name.startswith("tinynode/learn")]


def test_the_changelog_has_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    parts = release.parts_of_changelog(text)
    assert next(name for name in parts if name != "Unreleased") == tn.__version__
    assert len(parts[tn.__version__].splitlines()) <= 120


def test_a_part_of_the_changelog_has_each_heading_once() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for name, part in release.parts_of_changelog(text).items():
        headings = [line for line in part.splitlines() if line.startswith("### ")]
        assert len(headings) == len(set(headings)), name


def test_the_design_page_names_every_module() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    package = ROOT / "tinynode"
    folders = [f"{path.name}/" for path in package.iterdir() if (path / "__init__.py").exists()]
    files = [path.name for folder in (package, package / "core") for path in folder.glob("*.py")]
    assert len(folders) > 4 and len(files) > 20
    names = [name for name in folders + files if not name.startswith("__")]
    assert [name for name in names if f"`{name}`" not in page] == []


def test_the_page_of_functions_names_every_event_of_a_hook() -> None:
    page = (ROOT / "docs" / "write-a-function.md").read_text(encoding="utf-8")
    table = page.partition("| when | events |")[2].partition("\n\n")[0]
    events = [name for name, found in vars(tn.FunctionHook).items() if callable(found)]
    assert sorted(re.findall(r"`(\w+)`", table)) == sorted(n for n in events if n[0] != "_")


def test_the_page_of_backends_shows_every_optional_part() -> None:
    """The table is the protocol module's docstring, the texts are those of the protocols."""
    page = (ROOT / "docs" / "write-a-backend.md").read_text(encoding="utf-8")
    block = page.partition("\n::: tinynode.devices.protocol\n")[2].partition("\n\n")[0]
    table = re.findall(r"^\| ``(\w+)`` \| (.*?) \|", protocol.__doc__ or "", re.MULTILINE)
    parts = {one.__name__: list(protocol.members_of(one)) for one in protocol.OPTIONAL_PARTS}
    assert {name: re.findall(r"\w+", members) for name, members in table} == parts
    assert set(parts) <= set(re.findall(r"\w+", block))
