"""Names, commands, options, settings and files that a page mentions exist.

Each page is read: names such as ``tn.compile`` in code, the keywords of calls, command lines such
as ``python -m tinynode train --resume``, extras, variables of the environment, and files of the
repository. Blocks in Python run in ``test_docs.py``; figures are in ``test_page_figures.py``.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import inspect
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tinynode as tn
from tinynode import commands
from tinynode_course import command as course_command
from tools import release

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "tutorials" / "README.md",
    ROOT / "tutorials" / "course" / "README.md",
]
ROOTS = {"tn": tn, "F": tn.functions, "nn": tn.nn, "net": tn.net}

CODE = re.compile(r"`([^`\n]+)`")
BLOCK = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"(?<![\w.\"'/])((?:tn|F|nn|net)(?:\.[A-Za-z_]\w*)+)")
COMMAND = re.compile(
    r"python3?(?: -[A-Z])* -m (tinynode(?:\.\w+)*|tools\.\w+)((?: +[^\n|&;#)]+)?)"
)
FILE = re.compile(r"(?:tinynode|backends|tests|tools|docs|tutorials|\.ci|\.github)/[\w./-]+")
CALL = re.compile(r"(?<![\w.])((?:tn|F|nn|net)(?:\.[A-Za-z_]\w*)+)\(([^()]*)\)")
KEYWORD = re.compile(r"(?:^|,)\s*([a-z_]\w*)=(?!=)")
EXTRAS = re.compile(r"(?:\.|tinynode)\[([a-z0-9,]+)\]")
VARIABLE = re.compile(r"\bTINYNODE_[A-Z_]+")
SOURCE = re.compile(r"(?<![\w/.-])[\w/]+\.py\b")
FOLDERS_OF_PROGRAMS = ("tinynode", "tinynode.learn")

OF_OTHER_TIMES = {
    "from-0.1.md": "it names what version 0.1 had",
    "from-pytorch.md": "its first column has names of others; test_name_pages.py reads the second",
    "from-paddle.md": "as from-pytorch.md",
}
"""Pages with names of code that are not tinynode's, and why."""

NOT_OURS = {
    "net.run": "net is a variable: a net, not the module",
    "nn.Transformer": "not-here.md says that it is missing",
}

MADE_UP = re.compile("NN|_topic|nvmath")
"""Parts of paths that stand for a number or a name, and another library."""

READERS_OWN = {
    "a.py",
    "b.py",
    "my.py",
    "ours.py",
    "script.py",
    "test_new.py",
    "train.py",
    "walk.py",
}
"""Programs that the reader writes."""

WITH_SETTINGS = ("tinynode", "backends", "tools", "tutorials/course", ".ci")
"""The folders whose programs read variables of the environment."""


def code_of(text: str) -> Iterator[str]:
    """The code of a page: spans of a line, and blocks of text and of shells."""
    for block in BLOCK.finditer(text):
        if block[1] != "python":
            yield block[2]
    yield from CODE.findall(BLOCK.sub("", text))


def missing_names(code: str) -> Iterator[str]:
    """Names of tinynode that are not there."""
    for name in NAME.findall(code):
        if name in NOT_OURS:
            continue
        root, *parts = name.split(".")
        found: Any = ROOTS[root]
        for part in parts:
            if not hasattr(found, part):
                if not is_field(found, part):
                    yield name
                break
            found = getattr(found, part)


def is_field(found: Any, name: str) -> bool:
    """True for an attribute that instances get: an annotation, a slot, or one set by a method."""
    if not isinstance(found, type):
        return False
    for kind in found.__mro__:
        slots = kind.__dict__.get("__slots__", ())
        if name in inspect.get_annotations(kind) or name in slots:
            return True
        methods = [one for one in vars(kind).values() if hasattr(one, "__code__")]
        if any(name in method.__code__.co_names for method in methods):
            return True
    return False


def parser_of(program: str) -> argparse.ArgumentParser:
    return course_command._parser() if program == "tinynode.learn" else commands._parser()


def faults_of_command(program: str, rest: str) -> Iterator[str]:
    """What a command line has that its program lacks."""
    if program.startswith("tools.") or program not in FOLDERS_OF_PROGRAMS:
        if importlib.util.find_spec(program) is None:
            yield f"there is no module {program}"
            return
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]+", rest):
            if option != "--help" and f'"{option}"' not in text_of_program(program):
                yield f"{program} has no option {option}"
        return
    try:
        words = shlex.split(rest)
    except ValueError:  # a quotation that the page breaks
        words = rest.split()
    parser = parser_of(program)
    for word in words:
        if word in ("--", "..."):  # the rest is for the script, or not on the page
            return
        inner = subparsers_of(parser)
        if inner is not None and not word.startswith("-"):
            if word in inner:
                parser = inner[word]
            elif word.isidentifier() and word.islower():
                yield f"{program} has no command {word}"
                return
        option = word.partition("=")[0]
        is_option = re.fullmatch(r"--[a-z][a-z-]+", option) is not None
        if is_option and option not in parser._option_string_actions:
            yield f"{program} {' '.join(words)}: there is no option {option}"


def subparsers_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser] | None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found: dict[str, argparse.ArgumentParser] = action.choices
            return found
    return None


def missing_files(code: str) -> Iterator[str]:
    """Paths of the repository that are not there."""
    if code.startswith(("http", "python", "pip")) or "*" in code or " " in code.strip():
        return
    path = FILE.fullmatch(code.strip().rstrip("/"))
    if path is not None and not (ROOT / path[0]).exists() and not MADE_UP.search(path[0]):
        yield f"there is no file {path[0]}"


@functools.cache
def text_of_program(program: str) -> str:
    """The text of a module, or of all modules of a package."""
    path = ROOT.joinpath(*program.split("."))
    files = sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def missing_keywords(code: str) -> Iterator[str]:
    """Keywords that a function of tinynode does not take."""
    for name, arguments in CALL.findall(code):
        found: Any = ROOTS[name.partition(".")[0]]
        for part in name.split(".")[1:]:
            found = getattr(found, part, None)
        if not callable(found):
            continue  # missing_names has said so
        parameters = inspect.signature(found).parameters.values()
        kinds = {parameter.kind for parameter in parameters}
        known = {parameter.name for parameter in parameters}
        takes_all = inspect.Parameter.VAR_KEYWORD in kinds and "unknown" not in known
        for keyword in KEYWORD.findall(arguments):
            if keyword not in known and not takes_all:
                yield f"{name} takes no {keyword}="


def missing_settings(code: str) -> Iterator[str]:
    """Extras of ``pip install``, and variables of the environment, that nobody reads."""
    for names in EXTRAS.findall(code):
        for extra in names.split(","):
            if extra not in extras():
                yield f"there is no extra {extra}"
    for name in VARIABLE.findall(code):
        if name not in variables():
            yield f"no program reads {name}"


@functools.cache
def extras() -> set[str]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return set(tomllib.loads(text)["project"]["optional-dependencies"])


@functools.cache
def variables() -> set[str]:
    found: set[str] = set()
    for folder in WITH_SETTINGS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix == ".py" or path.parent.name == ".ci":
                found.update(VARIABLE.findall(path.read_text(encoding="utf-8")))
    return found


def missing_sources(code: str) -> Iterator[str]:
    """Files of Python, by the end of the path, that are not in the repository."""
    for name in SOURCE.findall(code):
        is_other = (
            Path(name).name in READERS_OWN or name.startswith("mynode/") or MADE_UP.search(name)
        )
        if not is_other and not any(path.endswith("/" + name) for path in sources()):
            yield f"there is no file {name}"


@functools.cache
def sources() -> frozenset[str]:
    folders = ("tinynode", "backends", "tests", "tools", "tutorials", "course_solutions")
    return frozenset(
        f"/{path.relative_to(ROOT).as_posix()}"
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
    )


def text_of(page: Path) -> str:
    """The text of a page; of the changelog the newest version, without what was removed."""
    text = page.read_text(encoding="utf-8")
    if page.name != "CHANGELOG.md":
        return text
    newest = release.parts_of_changelog(text)[tn.__version__]
    return re.sub(r"### Removed\n.*?(?=### |\Z)", "", newest, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_exists(page: Path) -> None:
    text = text_of(page)
    faults = []
    for code in code_of(text):
        if page.name not in OF_OTHER_TIMES:
            faults += missing_names(code)
            faults += missing_keywords(code)
            faults += missing_sources(code)
        faults += missing_settings(code)
        for program, rest in COMMAND.findall(code):
            faults += faults_of_command(program, rest)
        faults += missing_files(code)
    assert sorted(set(faults)) == []


LINK = re.compile(r"\]\(([\w./-]*\.md)?#([\w-]+)\)")
MADE = re.compile(r"(?:^|/)(?:reference|source|tutorials)/(?!README|course/README)")
"""Folders whose pages the build makes or adds to."""


def anchor(heading: str) -> str:
    """The anchor that the site gives to a heading."""
    words = re.sub(r"[^\w\s-]", "", re.sub(r"\{.*\}", "", heading)).strip().lower()
    return re.sub(r"[-\s]+", "-", words)


def missing_anchors(page: Path) -> Iterator[str]:
    """Links to a heading that the linked page does not have."""
    for name, wanted in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / name if name else page
        if MADE.search(name) or not target.exists():
            continue
        text = target.read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        known = {anchor(heading) for heading in headings}
        known.update(re.findall(r"(?:id=\"|\{ *#)([\w-]+)", text))
        if wanted not in known:
            yield f"{target.name} has no heading #{wanted}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_to_a_heading_finds_the_heading(page: Path) -> None:
    assert list(missing_anchors(page)) == []


def test_missing_headings_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "## One `name`, two\n[a](#one-name-two) [b](#gone) [c](page.md#one-name-two)\n"
    )
    assert list(missing_anchors(page)) == ["page.md has no heading #gone"]


SAID_BY_ITSELF = {"--help", "--version"}


def commands_and_options(parser: argparse.ArgumentParser, words: str) -> Iterator[tuple[str, str]]:
    """Each command below a parser, and each long option, with the words that lead there."""
    for option in parser._option_string_actions:
        if option.startswith("--") and option not in SAID_BY_ITSELF:
            yield words, option
    for name, inner in (subparsers_of(parser) or {}).items():
        yield words, name
        yield from commands_and_options(inner, f"{words} {name}")


@pytest.mark.parametrize("program", FOLDERS_OF_PROGRAMS)
def test_a_page_names_each_command_and_option(program: str) -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    code = "\n".join(code for text in texts for code in code_of(text))
    known = set(re.findall(r"(?<![\w-])(?:--)?[a-z][a-z-]*(?![\w-])", code))
    missing = [
        pair for pair in commands_and_options(parser_of(program), program) if pair[1] not in known
    ]
    assert missing == [], "name them on a page, such as docs/course-commands.md"


VERSION = re.compile(r"tinynode(?:_\w+)?[ -](\d+\.\d+\.\d+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_figures_and_wheels_of_this_version(page: Path) -> None:
    assert set(VERSION.findall(text_of(page))) <= {tn.__version__}


def test_faults_are_found() -> None:
    assert list(missing_names("tn.no_such_thing(x), tn.compile(F.nothing)")) == [
        "tn.no_such_thing",
        "F.nothing",
    ]
    assert list(missing_names("nn.Linear.nothing_at_all")) == ["nn.Linear.nothing_at_all"]
    assert list(missing_names("tn.Variable.grad nn.SGD")) == []
    assert list(faults_of_command("tinynode", " traim digits")) == [
        "tinynode has no command traim"
    ]
    (fault,) = faults_of_command("tinynode", " train digits --epoch 3")
    assert "no option --epoch" in fault
    assert list(faults_of_command("tinynode", " train digits --epochs 3")) == []
    assert list(faults_of_command("tools.gone", "")) == ["there is no module tools.gone"]
    assert list(faults_of_command("tools.sizes", " --bass main")) == [
        "tools.sizes has no option --bass"
    ]
    assert list(faults_of_command("tools.sizes", " --base main")) == []
    assert list(missing_keywords("nn.Adam(model, rate=0.1) F.sum(x, axis=0)")) == [
        "nn.Adam takes no rate="
    ]
    assert list(missing_settings("pip install -e '.[test,gone]'; TINYNODE_GONE=1")) == [
        "there is no extra gone",
        "no program reads TINYNODE_GONE",
    ]
    assert list(missing_settings("TINYNODE_DEVICE=fast")) == []
    assert list(missing_sources("core/variable.py core/gone.py my.py")) == [
        "there is no file core/gone.py"
    ]
    assert list(missing_files("tinynode/core/gone.py")) == [
        "there is no file tinynode/core/gone.py"
    ]
    assert list(missing_files("tinynode/core/variable.py")) == []
