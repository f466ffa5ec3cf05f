"""Markdown as plain text: for a terminal without rich, and for files.

Requirement: a page reads well as lines of text. Bold and links lose their signs, tables get
aligned columns, and headings are underlined. Words in backticks keep the backticks: code reads
better with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
HEADING = re.compile(r"^(#{1,6}) +(.*?)#*\s*$")
ROW = re.compile(r"^\s*\|.*\|\s*$")
RULER = re.compile(r"^\s*\|(?:\s*:?-+:?\s*\|)+\s*$")
ADMONITION = re.compile(r'^(?:!!!|\?\?\?\+?) +(\w+)(?: +"([^"]*)")?\s*$')
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
CODE = re.compile(r"(`+)(.+?)\1(?!`)")
SOURCE = "../source/"
"""The folder of the pages of source files, in the links of steps."""
LINK = re.compile(r"!?\[([^\]]+)\]\(([^)\s]+)(?: \"[^\"]*\")?\)")
STRONG = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*", re.DOTALL)
EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*]+?)(?<=[^\s*])\*(?![\w*])")


def plain(text: str) -> str:
    """Markdown as plain text."""
    return "\n".join(_lines(COMMENT.sub("", text)))


def _lines(text: str) -> Iterator[str]:
    waiting: list[str] = []  # a paragraph: bold words may go over the end of a line
    rows: list[str] = []
    fence = ""
    for line in [*text.splitlines(), ""]:
        mark = FENCE.match(line)
        if rows and not ROW.match(line):
            yield from table(rows)
            rows = []
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
            else:
                yield f"    {line}".rstrip()
        elif mark or ROW.match(line) or HEADING.match(line) or not line.strip():
            yield from _paragraph(waiting)
            waiting = []
            fence = mark[1] if mark else ""
            if ROW.match(line):
                rows.append(line)
            elif not mark:
                yield from _heading(line)
        else:
            waiting.append(line)


def _heading(line: str) -> list[str]:
    """An underlined heading, or the empty line."""
    found = HEADING.match(line)
    if found is None:
        return [""]
    title = words(found[2])
    return ["", title, ("=" if found[1] == "#" else "-") * len(title)]


def _paragraph(lines: list[str]) -> Iterator[str]:
    """The lines of a paragraph, without signs."""
    if not lines:
        return
    for line in words("\n".join(lines)).splitlines():
        found = ADMONITION.match(line)
        yield f"{(found[2] or found[1]).capitalize()}:" if found else line


def words(text: str) -> str:
    """Text without the signs of bold words, emphasis and links; code in backticks stays."""
    done, place = "", 0
    for code in CODE.finditer(text):
        done += text[place : code.start()] + f"\0{code.start()}\0"
        place = code.end()
    done += text[place:]
    done = LINK.sub(_link, done)
    done = STRONG.sub(r"\1", done)
    done = EMPHASIS.sub(r"\1", done)
    for code in CODE.finditer(text):
        done = done.replace(f"\0{code.start()}\0", code[0])
    return done


def _link(found: re.Match[str]) -> str:
    """The words of a link; the path of a source file, and an address of the web, stay."""
    address = found[2]
    if address.startswith(SOURCE):
        path = address.removeprefix(SOURCE).removesuffix(".md") + ".py"
        return path if path.endswith(found[1]) else f"{found[1]}: {path}"
    return f"{found[1]} ({address})" if address.startswith("http") else found[1]


def table(rows: list[str]) -> list[str]:
    """The rows of a table in aligned columns; numbers stand right where the table says so."""
    cells = [
        [words(cell.strip().replace("\\|", "|")) for cell in _cells(row)]
        for row in rows
        if not RULER.match(row)
    ]
    rulers = [_cells(row) for row in rows if RULER.match(row)]
    if not cells:
        return []
    count = max(map(len, cells))
    cells = [row + [""] * (count - len(row)) for row in cells]
    right = [cell.strip().endswith(":") for cell in rulers[0]] if rulers else []
    right += [False] * (count - len(right))
    widths = [max(len(row[k]) for row in cells) for k in range(count)]
    lines = ["  ".join(_aligned(row, widths, right)).rstrip() for row in cells]
    if rulers:
        lines.insert(1, "  ".join("-" * width for width in widths))
    return lines


def _cells(row: str) -> list[str]:
    """The cells of a row; a bar in code or after a backslash is no border."""
    inner = row.strip()[1:-1]
    hidden = CODE.sub(lambda code: code[0].replace("|", "\0"), inner.replace("\\|", "\0"))
    return [cell.replace("\0", "|") for cell in hidden.split("|")]


def _aligned(row: list[str], widths: list[int], right: list[bool]) -> list[str]:
    return [
        cell.rjust(width) if to_the_right else cell.ljust(width)
        for cell, width, to_the_right in zip(row, widths, right, strict=True)
    ]
