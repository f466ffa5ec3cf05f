"""The command ``slides``: slides for each part of the course, from its steps.

Requirement: slides agree with the steps, and a lecture hall needs no network. So a run of the
steps makes the slides: a page for each part, with pictures and style inside. Each step gives a
title with the goal, new code, the question of Predict, output and pictures. The break, the repair
and the exercise follow. Arrow keys turn over. The browser's print makes a PDF of the slides.
"""

from __future__ import annotations

import argparse
import html
import importlib
import importlib.util
import io
import keyword
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tinynode.commands.command_line import CommandError, Parser
from tinynode_course import mynode, pages, sources
from tinynode_course.cells import Output, read
from tinynode_course.execution import StepError, execute
from tinynode_course.mynode import Excerpt
from tinynode_course.plain_math import replace_formulas, unicode_of
from tinynode_course.progress import write_file
from tinynode_course.sources import Step

SUMMARY = "make slides for each part, from its steps"
FOLDER = "tinynode-slides"

MOST_CODE = 34
"""The most lines of code on a slide; further lines are left out, with a mark."""

MOST_OUTPUT = 22
"""The most lines of output on a slide."""

MUCH_CODE = 16
"""Code of more lines has a slide of its own, before the output."""

AROUND = 3
"""The lines of old code that a slide shows before and after a new line."""

LEFT_OUT = ("The engine so far",)
"""Sections that slides do not show."""

STYLE = (Path(__file__).parent / "slides.css").read_text(encoding="utf-8")
SCRIPT = (Path(__file__).parent / "slides.js").read_text(encoding="utf-8")


@dataclass
class Section:
    """A section of a step: texts, code and outputs in order."""

    title: str
    items: list[str | Excerpt | Output] = field(default_factory=list)

    def texts(self) -> list[str]:
        """The paragraphs of the texts."""
        found = "\n\n".join(item for item in self.items if isinstance(item, str))
        return [part for part in re.split(r"\n\s*\n", found) if part.strip()]

    def code(self) -> list[Excerpt]:
        """The code of cells, and of the learner's package."""
        return [item for item in self.items if isinstance(item, Excerpt)]

    def outputs(self) -> list[Output]:
        """What the cells print and draw."""
        return [item for item in self.items if isinstance(item, Output)]


def add_arguments(parser: Parser) -> None:
    """Describe the command's arguments to argparse."""
    parser.add_argument("part", metavar="PART", nargs="?", help="such as B, or 7; default: all")
    parser.add_argument("--folder", default=FOLDER, help="where to; default: %(default)s")


def run(options: argparse.Namespace) -> int:
    """Write a page for each part; 1 if a step stopped with an error."""
    chosen = parts() if options.part is None else {options.part: chosen_steps(options.part)}
    stopped = 0
    for name, steps in chosen.items():
        path = Path(options.folder, f"slides-{_file_name(name)}.html")
        try:
            text = make(name if options.part is None else _title(steps), steps)
        except StepError as error:
            print(error)
            stopped = 1
            continue
        write_file(path, text)
        print(f"wrote {path}", flush=True)
    return stopped


def parts() -> dict[str, list[Step]]:
    """The steps of each part of the course, by the title of the part."""
    found: dict[str, list[Step]] = {}
    for step in sources.steps():
        found.setdefault(sources.part(step), []).append(step)
    return found


def chosen_steps(text: str) -> list[Step]:
    """The steps of a part, by letter or title, or a single step.

    Raises:
        CommandError: No such part; the message lists them.
    """
    for title, steps in parts().items():
        if text.lower() in (title[:1].lower(), title.lower(), title.lower().rstrip("s")):
            return steps
    try:
        return [sources.find(text)]
    except CommandError:
        known = ", ".join(repr(title) for title in parts())
        raise CommandError(f"there is no part and no step {text!r}; parts: {known}") from None


def _title(steps: Sequence[Step]) -> str:
    return steps[0].title if len(steps) == 1 else sources.part(steps[0])


def _file_name(name: str) -> str:
    first = name.partition(".")[0].lower()
    return re.sub(r"[^a-z0-9]+", "-", first).strip("-") or "course"


# the slides


def make(title: str, steps: Sequence[Step]) -> str:
    """The page of a part, from a run of its steps.

    Raises:
        StepError: A step stopped with an error.
    """
    slides = [_front(title, steps)] if len(steps) > 1 else []
    for step in steps:
        slides += of_step(step)
    return document(title, slides)


def document(title: str, slides: Sequence[str]) -> str:
    """A page with slides. Without scripts, the slides stand below one another."""
    body = "\n".join(f"<section>{slide}</section>" for slide in slides)
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8">\n'
        f"<title>{html.escape(title)}</title>\n"
        f'<meta name="viewport" content="width=device-width">\n<style>\n{STYLE}</style>\n'
        f'<main>\n{body}\n</main>\n<output id="place"></output>\n'
        f"<script>\n{SCRIPT}</script></html>\n"
    )


def _front(title: str, steps: Sequence[Step]) -> str:
    lines = [f"<li>{html.escape(step.title)}</li>" for step in steps]
    return f'<div class="front"><h1>{html.escape(title)}</h1><ol>{"".join(lines)}</ol></div>'


def of_step(step: Step) -> list[str]:
    """The slides of a step, as HTML.

    Raises:
        StepError: The step stopped with an error.
    """
    outputs, _ = execute(step.path)
    found = {section.title: section for section in sections(step, outputs)}
    start = found.pop("", Section(""))
    goal = in_html(pages.goal(read(step.path)))
    slides = [f'<div class="front"><h1>{html.escape(step.title)}</h1><p>{goal}</p></div>']
    lead = step.title.partition(":")[0]
    slides += [_slide(lead, "New", block) for block in map(code_block, _key_code(start))]
    for title, section in found.items():
        slides += [_slide(lead, title, body) for body in _bodies(title, section)]
    return slides


def sections(step: Step, outputs: Sequence[Output]) -> list[Section]:
    """The sections of a step; the first has no title."""
    found = [Section("")]
    for cell, output in zip(read(step.path), outputs, strict=True):
        if cell.kind == "code":
            found[-1].items += [Excerpt("", cell.source, ()), output]
            continue
        for part in mynode.parts(cell.source, step.key):
            if isinstance(part, Excerpt):
                found[-1].items.append(part)
                continue
            first, *others = re.split(r"^## (.+)$", part, flags=re.MULTILINE)
            found[-1].items.append(first)
            for title, text in zip(others[::2], others[1::2], strict=True):
                found.append(Section(title.strip(), [text]))
    return found


def _key_code(section: Section) -> list[Excerpt]:
    """The code before the question: of the package, or definitions; at most two pieces."""
    shown = [one for one in section.code() if one.path]
    defined = re.compile(r"^(?:class|def|@)", re.MULTILINE)
    return (shown or [one for one in section.code() if defined.search(one.code)])[:2]


def _bodies(title: str, section: Section) -> Iterator[str]:
    """The slides of a section."""
    texts = section.texts()
    if title in ("Predict", "Exercise", "Bug hunt"):
        pieces = section.code()[:1]
        said = "".join(in_html(text) for text in texts)
        if said and any(_is_much(one) for one in pieces):
            yield said
            said = ""
        yield said + "".join(map(code_block, pieces))
        return
    code = "".join(code_block(one) for one in section.code()[:1])
    first = in_html(texts[0]) if texts else ""
    printed = "".join(_printed(output) for output in section.outputs())
    if title == "See":
        yield from _pictures(first, section)
    elif title == "Run":
        yield first + (printed or code)
    elif title not in LEFT_OUT and (first or code):
        if printed and any(map(_is_much, section.code()[:1])):
            yield first + code
            yield from _full_slides(section)
        else:
            yield f'{first}<div class="two">{code}{printed}</div>'
        yield from _pictures("", section)


def _is_much(code: Excerpt) -> bool:
    """True if the code needs a slide of its own."""
    return len(_shown_lines(len(code.code.strip("\n").splitlines()), code.marked)) > MUCH_CODE


def _full_slides(section: Section) -> Iterator[str]:
    """The printed texts of a section, with at most ``MOST_OUTPUT`` lines on a slide."""
    body, lines = "", 0
    for said in filter(None, map(_printed, section.outputs())):
        more = said.count("\n") + 2
        if body and lines + more > MOST_OUTPUT:
            yield body
            body, lines = "", 0
        body, lines = body + said, lines + more
    if body:
        yield body


def _pictures(lead: str, section: Section) -> Iterator[str]:
    """A slide for each picture; without pictures, a slide with the printed text."""
    drawn = [output for output in section.outputs() if output.svg or output.html]
    for output in drawn:
        picture = output.svg or pages.one_block(output.html)
        yield f'{lead}<div class="picture">{picture}</div>'
        lead = ""
    if not drawn and lead:
        yield lead + "".join(_printed(output) for output in section.outputs())


def _slide(lead: str, title: str, body: str) -> str:
    return f"<h2>{html.escape(lead)} <b>{html.escape(title)}</b></h2><div>{body}</div>"


# texts and code in HTML


def in_html(text: str) -> str:
    """Paragraphs, lists, tables and blocks of Markdown, as far as the steps use them."""
    formulas: list[str] = []

    def put_aside(tex: str, alone: bool) -> str:
        formulas.append(formula(tex, alone))
        return f"\ue000{len(formulas) - 1}\ue001"

    made = _blocks(replace_formulas(text, put_aside))
    return re.sub("\ue000(\\d+)\ue001", lambda found: formulas[int(found[1])], made)


def formula(tex: str, alone: bool) -> str:
    """A formula as MathML, or as text where latex2mathml is not installed."""
    if importlib.util.find_spec("latex2mathml") is None:
        return f"<i>{html.escape(unicode_of(tex))}</i>"
    convert = importlib.import_module("latex2mathml.converter").convert
    return str(convert(" ".join(tex.split()), display="block" if alone else "inline"))


def _blocks(text: str) -> str:
    found = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.splitlines()
        if not block.strip() or block.lstrip().startswith("<!--"):
            continue
        if all(line.startswith("    ") for line in lines):
            code = "\n".join(line[4:] for line in lines)
            found.append(f"<pre>{html.escape(code)}</pre>")
        elif lines[0].startswith("|"):
            found.append(_table(lines))
        elif re.match(r"(?:[-*]|\d+\.) ", lines[0]):
            found.append(_list(lines))
        elif not lines[0].startswith("# "):
            found.append(f"<p>{_inline(' '.join(lines))}</p>")
    return "".join(found)


def _inline(text: str) -> str:
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    parts = re.split(r"(`[^`]+`)", text)
    for number, part in enumerate(parts):
        said = html.escape(part.strip("`") if number % 2 else part)
        if number % 2:
            parts[number] = f"<code>{said}</code>"
        else:
            said = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", said)
            parts[number] = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*", r"<i>\1</i>", said)
    return "".join(parts)


def _list(lines: Sequence[str]) -> str:
    items: list[str] = []
    for line in lines:
        text = re.sub(r"^(?:[-*]|\d+\.) ", "", line)
        if text != line or not items:
            items.append(text)
        else:
            items[-1] += " " + text.strip()
    kind = "ol" if lines[0][0].isdigit() else "ul"
    return f"<{kind}>{''.join(f'<li>{_inline(item)}</li>' for item in items)}</{kind}>"


def _table(lines: Sequence[str]) -> str:
    rows = [
        line.strip().strip("|").split("|") for line in lines if not re.match(r"\|[-| :]+$", line)
    ]
    cells = ["".join(f"<td>{_inline(cell.strip())}</td>" for cell in row) for row in rows]
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def code_block(excerpt: Excerpt) -> str:
    """Coloured code, with a caption for the package, and marks at new lines."""
    lines = coloured(excerpt.code.strip("\n")).splitlines()
    shown: list[str] = []
    last = 0
    for number in _shown_lines(len(lines), excerpt.marked):
        if number > last + 1:
            shown.append("<span>...</span>")
        mark = ' class="new"' if number in excerpt.marked else ""
        shown.append(f"<span{mark}>{lines[number - 1]}</span>")
        last = number
    more = ["<span>...</span>"] if last < len(lines) else []
    caption = f"<figcaption>{mynode.NAME}/{excerpt.path}</figcaption>" if excerpt.path else ""
    kind = "code long" if len(shown) > MUCH_CODE else "code"  # two columns
    return f'<figure>{caption}<pre class="{kind}">{"".join([*shown, *more])}</pre></figure>'


def _shown_lines(length: int, marked: Sequence[int]) -> list[int]:
    """The numbers of the lines to show: of long code with marks, the lines around the marks."""
    numbers = list(range(1, length + 1))
    if marked and length > MUCH_CODE:
        numbers = [n for n in numbers if n == 1 or min(abs(n - mark) for mark in marked) <= AROUND]
    return numbers[:MOST_CODE]


def _printed(output: Output) -> str:
    text = output.printed if output.svg or output.html else output.printed + output.shown
    lines = text.strip("\n").splitlines()
    more = ["..."] if len(lines) > MOST_OUTPUT else []
    said = html.escape("\n".join([*lines[:MOST_OUTPUT], *more]))
    return f'<pre class="printed">{said}</pre>' if said.strip() else ""


def coloured(code: str) -> str:
    """Python code as HTML, with classes for words, texts and comments; line by line."""
    marks: dict[int, list[tuple[int, int, str]]] = {}
    for token in _tokens(code):
        kind = {tokenize.COMMENT: "c", tokenize.STRING: "s", tokenize.NUMBER: "n"}.get(token.type)
        if token.type == tokenize.NAME and keyword.iskeyword(token.string):
            kind = "k"
        if kind is None:
            continue
        for row in range(token.start[0], token.end[0] + 1):
            line = code.splitlines()[row - 1]
            start = token.start[1] if row == token.start[0] else 0
            end = token.end[1] if row == token.end[0] else len(line)
            marks.setdefault(row, []).append((start, end, kind))
    return "\n".join(
        _marked(line, marks.get(row, [])) for row, line in enumerate(code.splitlines(), 1)
    )


def _tokens(code: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(code).readline)
    except (tokenize.TokenError, SyntaxError):  # an excerpt that is no program
        return


def _marked(line: str, marks: Sequence[tuple[int, int, str]]) -> str:
    parts, place = [], 0
    for start, end, kind in marks:
        parts.append(html.escape(line[place:start]))
        parts.append(f'<i class="{kind}">{html.escape(line[start:end])}</i>')
        place = end
    return "".join(parts) + html.escape(line[place:])
