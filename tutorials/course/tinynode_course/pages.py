"""The command ``pages``: the steps as pages for a site, with output and pictures.

Requirement: a page agrees with the step. So a page is made from the step and from a run of the
step, whenever a site is built; the repository has no pages. Pages are plain Markdown with separate
files of pictures, for any generator of sites. The files of a step are

    step11_weak_references.md       text, code, and output
    step11_weak_references-1.svg    the pictures
    step11_weak_references.ipynb    the notebook, without outputs, to download
    step24_double_check.film.html   the film of a step that runs functions of tinynode
"""

from __future__ import annotations

import argparse
import html
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tinynode.commands.command_line import CommandError, Parser
from tinynode_course import mynode, sources
from tinynode_course.cells import Cell, Output, read
from tinynode_course.execution import SECONDS, StepError, execute, without_settings
from tinynode_course.mynode import Excerpt
from tinynode_course.progress import write_atomically
from tinynode_course.sources import Step

SUMMARY = "make pages of the steps for a site, with output and pictures"
FOLDER = "tinynode-pages"
FILM_STEPS = 1_500
"""The most steps of a page's film."""
FENCE = re.compile(r"^`{3,}", re.MULTILINE)
TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL)


def add_arguments(parser: Parser) -> None:
    """Describe the command's arguments to argparse."""
    parser.add_argument("steps", metavar="STEP", nargs="*", help="such as 07; default: all")
    parser.add_argument("--folder", default=FOLDER, help="where to; default: %(default)s")


def run(options: argparse.Namespace) -> int:
    """Write the pages and, for all steps, the index; 1 if a step stopped with an error."""
    chosen = [sources.find(text) for text in options.steps] or sources.steps()
    folder = Path(options.folder)
    _write({}, folder)  # a folder that cannot be made is said at once
    stopped = 0
    for step in chosen:
        try:
            files = make(step)
        except StepError as error:
            print(error)
            stopped = 1
        else:
            _write(files, folder)
            print(f"wrote {folder / step.path.stem}.md", flush=True)
    if not options.steps:
        _write({"index.md": index(sources.steps())}, folder)
    return stopped


def _write(files: dict[str, str], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_atomically(folder / name, text)
    except OSError as error:
        raise CommandError(f"{folder} cannot be written: {error.strerror}", status=1) from None


def make(step: Step) -> dict[str, str]:
    """The files of a page by name, from a run of the step.

    Raises:
        StepError: The step stopped with an error.
    """
    outputs, _ = execute(step.path)
    return compose(step, outputs, film_of(step))


def film_of(step: Step) -> str:
    """The film of a step, as a page; empty for a step that runs no function of tinynode."""
    with tempfile.TemporaryDirectory(prefix="tinynode-film-") as folder:
        path = Path(folder, "film.html")
        command = [sys.executable, "-m", "tinynode", "step", "--no-open", "--output", str(path)]
        command += ["--most", str(FILM_STEPS)]
        subprocess.run(
            [*command, str(step.path.resolve())],
            cwd=folder,
            env=without_settings(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
        return path.read_text(encoding="utf-8") if path.exists() else ""


def compose(step: Step, outputs: list[Output], film: str = "") -> dict[str, str]:
    """The files of a page by name, from the outputs of the step's cells, and the step's film."""
    stem = step.path.stem
    files = {f"{stem}.ipynb": step.notebook.read_text(encoding="utf-8")}
    if film:
        files[f"{stem}.film.html"] = film
    parts = []
    first = True
    for cell, output in zip(read(step.path), outputs, strict=True):
        if cell.kind == "markdown":
            texts = [in_markdown(part) for part in mynode.parts(cell.source, step.key)]
            if first:
                texts[0] = under_title(texts[0], step, cell, bool(film))
                texts += so_far(step)
            parts += texts
            first = False
        else:
            parts.append(fenced(cell.source, "python"))
            parts += render(output, files, stem)
    files[f"{stem}.md"] = "\n\n".join(parts) + "\n"
    return files


def under_title(text: str, step: Step, cell: Cell, has_film: bool) -> str:
    """The first cell, with a line of links and commands below the title."""
    stem = step.path.stem
    line = f"[Film]({stem}.film.html) · " if has_film else ""
    line += f"[Notebook]({stem}.ipynb) · In a terminal: `python -m tinynode.learn run {step.key}`"
    if step.stub.exists():
        line += f" · Exercise: `python -m tinynode.learn start {step.key}`"
    if "portable" in cell.tags:
        line += " · Prints the same on every backend"
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{line}\n{rest}"


def in_markdown(part: str | Excerpt) -> str:
    """A part of a cell of text: text with links, or code with a caption and marked lines."""
    if isinstance(part, str):
        return with_links(part)
    marks = " ".join(str(line) for line in part.marked)
    options = f'title="{mynode.NAME}/{part.path}"' + (f' hl_lines="{marks}"' if marks else "")
    return fenced(part.code, f"python {options}")


def so_far(step: Step) -> list[str]:
    """A folded block with the package before a step, for steps with a part of the package."""
    files = mynode.before(step.key) if step.builds else {}
    if not files:
        return []
    lines = sum(len(text.splitlines()) for text in files.values())
    parts = [f'??? note "{mynode.NAME} before this step: {len(files)} files, {lines} lines"']
    for path, text in files.items():
        block = fenced(text.rstrip("\n"), f'python title="{mynode.NAME}/{path}"')
        parts.append("\n".join(f"    {line}".rstrip() for line in block.splitlines()))
    return ["\n\n".join(parts)]


def with_links(text: str) -> str:
    """The text with links to pages in place of links to files of steps."""
    return re.sub(r"\]\(((?:step\d\d|elective|capstone)_[a-z0-9_]+)\.py\)", r"](\1.md)", text)


def render(output: Output, files: dict[str, str], stem: str) -> list[str]:
    """The output of a cell; a picture becomes a file of the page."""
    parts = []
    text = output.printed if output.svg or output.html else output.printed + output.shown
    if text.strip():
        parts.append(fenced(text.strip("\n"), "text"))
    if output.svg:
        number = 1 + sum(name.endswith(".svg") for name in files)
        name = f"{stem}-{number}.svg"
        files[name] = output.svg.rstrip("\n") + "\n"
        parts.append(f"![{alternative(output.svg)}]({name})")
    if output.html:
        parts.append(f'<div class="output">\n{one_block(output.html.strip())}\n</div>')
    return parts


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
    """The front page: the README of the course, then the list of all steps."""
    lines = [(sources.tutorials() / "README.md").read_text(encoding="utf-8")]
    last = ""
    for step in steps:
        if sources.part(step) != last:
            last = sources.part(step)
            lines += [f"\n## {last}\n", "| Step | Goal | Notebook |", "|---|---|---|"]
        stem, text = step.path.stem, goal(read(step.path)).replace("|", "\\|")
        lines.append(f"| [{step.title}]({stem}.md) | {text} | [.ipynb]({stem}.ipynb) |")
    return "\n".join(lines) + "\n"
