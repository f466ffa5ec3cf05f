"""The command ``pages``: the steps as pages of the documentation, with output and pictures.

Requirement: a page agrees with the step. So a page is made from the step and from a run of the
step, and a test makes each page again and compares. Pages are plain Markdown with separate files
of pictures, for any generator of sites. The files of a step are

    step07_weak_references.md       text, code, and output
    step07_weak_references-1.svg    the pictures
    step07_weak_references.ipynb    the notebook, without outputs, to download

The output of cells with the tag "varies" (times, memory) is written, but not compared.
"""

from __future__ import annotations

import argparse
import html
import re
from dataclasses import dataclass, field
from pathlib import Path

from tinynode.commands.command_line import CommandError, Parser
from tinynode.learn import notebooks, sources
from tinynode.learn.cells import Cell, Output, read
from tinynode.learn.execution import StepError, execute
from tinynode.learn.progress import write_atomically
from tinynode.learn.sources import Step

SUMMARY = "for maintainers: make the pages of the documentation from the steps"
START, END = "<!-- varies from run to run -->", "<!-- the same in every run -->"
VARIES = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
FENCE = re.compile(r"^`{3,}", re.MULTILINE)
TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL)
OURS = re.compile(r"index\.md|(step\d\d|capstone)_[a-z0-9_]+(-\d+)?\.(md|svg|py|ipynb)")

INTRODUCTION = """\
# The course

From `x * x` to networks that are compiled, in {count} steps and a capstone. Each step is one idea
and one program: you predict what it does, run it, look at the picture, break it, mend it, and do
an exercise that checks itself. Work in a folder of your own. This says what to do first:

```sh
python -m tinynode.learn
```

Every output and picture on these pages was made by running the step. Each page has its step as a
notebook to download. This makes all notebooks, run, with their pictures; it
needs `pip install 'tinynode[notebooks]'`:

```sh
python -m tinynode.learn notebooks
```
"""


@dataclass
class Page:
    """The files of a page by name, and the names of pictures that differ from run to run."""

    files: dict[str, str] = field(default_factory=dict)
    varying: set[str] = field(default_factory=set)


def add_arguments(parser: Parser) -> None:
    """Describe the command's arguments to argparse."""
    parser.add_argument("steps", metavar="STEP", nargs="*", help="such as 07; default: all")
    parser.add_argument("--folder", help="default: docs/tutorials of the checkout")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; say which pages are not up to date"
    )


def run(options: argparse.Namespace) -> int:
    """Write the pages; or compare, and return 1 if a page is not up to date."""
    chosen = [sources.find(text) for text in options.steps] or sources.steps()
    notebooks.optional("jupytext", "nbformat")
    folder = _folder(options.folder)
    stale = []
    for step in chosen:
        try:
            page = make(step)
        except StepError as error:
            print(error)
            stale.append(step.path.name)
            continue
        stale += _settle(page, folder, options.check)
    if not options.steps:
        stale += _settle(Page({"index.md": index(sources.steps())}), folder, options.check)
        stale += _tidy(folder, options.check)
    for name in stale if options.check else ():
        print(f"{folder / name} is not up to date")
    if stale and options.check:
        print("make them again: python -m tinynode.learn pages")
    return 1 if stale else 0


def _folder(name: str | None) -> Path:
    if name is not None:
        return Path(name)
    root = sources.tutorials().parent
    if not (root / "mkdocs.yml").is_file():
        raise CommandError("pages are made in a checkout of tinynode; or say where: --folder")
    return root / "docs" / "tutorials"


def _settle(page: Page, folder: Path, check: bool) -> list[str]:
    """Write the changed files; with ``check`` return their names instead."""
    changed = [name for name, text in page.files.items() if _differs(folder / name, text, page)]
    if check:
        return changed
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in changed:
            write_atomically(folder / name, page.files[name])
            print(f"wrote {folder / name}")
    except OSError as error:
        raise CommandError(f"{folder} cannot be written: {error.strerror}", status=1) from None
    return []


def _differs(path: Path, text: str, page: Page) -> bool:
    try:
        before = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return True
    if path.name in page.varying:
        return False
    return VARIES.sub("", before) != VARIES.sub("", text)


def _tidy(folder: Path, check: bool) -> list[str]:
    """Remove files of removed steps and pictures; with ``check`` return their names instead."""
    stems = {step.path.stem for step in sources.steps()}
    gone = []
    for path in sorted(folder.glob("*")):
        stem = path.stem.partition("-")[0]
        if OURS.fullmatch(path.name) and path.name != "index.md" and stem not in stems:
            gone.append(path.name)
        elif path.suffix == ".svg" and OURS.fullmatch(path.name) and stem in stems:
            page = folder / f"{stem}.md"
            if page.exists() and f"({path.name})" not in page.read_text(encoding="utf-8"):
                gone.append(path.name)
    if check:
        return gone
    for name in gone:
        (folder / name).unlink()
        print(f"removed {folder / name}")
    return []


def make(step: Step) -> Page:
    """The page of a step, made by a run of the step.

    Raises:
        StepError: The step stopped with an error.
    """
    outputs, _ = execute(step.path)
    stem, page = step.path.stem, Page()
    parts = []
    first = True
    for cell, output in zip(read(step.path), outputs, strict=True):
        if cell.kind == "markdown":
            text = with_links(cell.source)
            parts.append(under_title(text, step, cell) if first else text)
            first = False
            continue
        parts.append(fenced(cell.source, "python"))
        varies = "varies" in cell.tags
        rendered = render(output, page, stem, varies)
        if rendered:
            parts.append(f"{START}\n\n{rendered}\n\n{END}" if varies else rendered)
    page.files[f"{stem}.md"] = "\n\n".join(parts) + "\n"
    page.files[f"{stem}.ipynb"] = notebooks.as_text(notebooks.make(step))
    return page


def under_title(text: str, step: Step, cell: Cell) -> str:
    """The first cell, with a line of links and commands below the title."""
    stem = step.path.stem
    line = f"[Notebook]({stem}.ipynb) · In a terminal: `python -m tinynode.learn run {step.key}`"
    if step.stub.exists():
        line += f" · Exercise: `python -m tinynode.learn start {step.key}`"
    if "portable" in cell.tags:
        line += " · Prints the same on every backend"
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{line}\n{rest}"


def with_links(text: str) -> str:
    """The text with links to pages in place of links to files of steps."""
    return re.sub(r"\]\(((?:step\d\d|capstone)_[a-z0-9_]+)\.py\)", r"](\1.md)", text)


def render(output: Output, page: Page, stem: str, varies: bool) -> str:
    """The output of a cell; a picture becomes a file of the page."""
    parts = []
    text = output.printed if output.svg or output.html else output.printed + output.shown
    if text.strip():
        parts.append(fenced(text.strip("\n"), "text"))
    if output.svg:
        number = 1 + sum(name.endswith(".svg") for name in page.files)
        name = f"{stem}-{number}.svg"
        page.files[name] = output.svg.rstrip("\n") + "\n"
        if varies:
            page.varying.add(name)
        parts.append(f"![{alternative(output.svg)}]({name})")
    if output.html:
        parts.append(f'<div class="output">\n{one_block(output.html.strip())}\n</div>')
    return "\n\n".join(parts)


def one_block(text: str) -> str:
    """HTML without empty lines: an empty line ends a block of HTML in Markdown."""
    if text.startswith("<iframe"):
        # a page in an attribute: hashes allow its scripts, so no line may change
        return text.replace("\n", "&#10;")
    return re.sub(r"\n\s*\n", "\n", text)


def alternative(svg: str) -> str:
    """The title of a picture, as alternative text."""
    found = TITLE.search(svg)
    text = html.unescape(found[1]) if found else "The picture that the cell draws"
    return re.sub(r"[\[\]\\]", "", " ".join(text.split()))


def fenced(text: str, language: str) -> str:
    """A block of code, with a fence longer than any fence in the text."""
    longest = max((len(fence) for fence in FENCE.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def goal(cells: list[Cell]) -> str:
    """The sentence after ``**Goal.**``."""
    for cell in cells:
        found = re.search(r"\*\*Goal\.\*\*\s*(.*?)(?:\n\s*\n|\Z)", cell.source, re.DOTALL)
        if found:
            return " ".join(found[1].split())
    return ""


def index(steps: list[Step]) -> str:
    """The page with the list of all steps."""
    lines = [INTRODUCTION.format(count=len(steps) - 1)]
    last = ""
    for step in steps:
        if sources.part(step) != last:
            last = sources.part(step)
            lines += [f"\n## {last}\n", "| Step | Goal | Notebook |", "|---|---|---|"]
        stem, text = step.path.stem, goal(read(step.path)).replace("|", "\\|")
        lines.append(f"| [{step.title}]({stem}.md) | {text} | [.ipynb]({stem}.ipynb) |")
    return "\n".join(lines) + "\n"
