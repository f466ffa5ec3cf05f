"""The table of a Diagnosis, for notebooks.

Requirement: the look of the cards of Variables (``tinynode.show.variable_html``). A notebook that
does not trust an output removes scripts and style sheets, so the table has neither. A severity
is a word; the colour is a second sign.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from tinynode.doctor.findings import Finding
from tinynode.show.palette import BEHIND_TEXT, EITHER, FRAME, translucent
from tinynode.show.texts import clean

_COLOURS = {"error": EITHER.bad, "warning": EITHER.backward, "note": EITHER.forward}
_FRAME = f"1px solid {translucent(FRAME, 0.5)}"
_TABLE = "border-collapse:collapse;border:none;margin:4px 0 8px;table-layout:auto"
_CELL = f"padding:3px 8px;text-align:left;vertical-align:top;border:{_FRAME};"
_NUMBER = _CELL.replace("left", "right") + "font-family:monospace;white-space:nowrap;"
_QUIET = "opacity:0.8;font-size:90%"


def table_html(
    title: str,
    findings: Sequence[Finding],
    summary: Sequence[str],
    layers: Sequence[Sequence[str]],
) -> str:
    """The findings, the facts, and the table of layers, whose first row has the titles."""
    count = len(findings)
    colour = EITHER.bad if count else EITHER.plus
    head = f"{count or 'no'} finding{'s' * (count != 1)}"
    parts = [
        '<div class="tn-diagnosis" style="line-height:1.4">',
        f'<div style="border-left:3px solid {colour};padding-left:8px">'
        f"<b>{_text(title)}</b>: {head}</div>",
    ]
    if findings:
        titles = "".join(_cell("th", name) for name in ("", "where", "finding", "remedy"))
        rows = "".join(_row(finding) for finding in findings)
        parts.append(f'<table style="{_TABLE}"><tr>{titles}</tr>{rows}</table>')
    parts += [f'<div style="{_QUIET}">{_text(line)}</div>' for line in summary]
    if layers:
        parts.append(_layers(layers))
    return "".join([*parts, "</div>"])


def _row(finding: Finding) -> str:
    """A finding: severity and kind, the place, the sentence, the remedy."""
    shade = f"background:{translucent(_COLOURS[finding.severity], BEHIND_TEXT)}"
    first = f"<b>{finding.severity}</b><br>{_text(finding.kind)}"
    line = f'<div style="{_QUIET}">{_text(finding.line)}</div>' if finding.line else ""
    cells = (
        f'<td style="{_CELL}{shade};white-space:nowrap">{first}</td>',
        f'<td style="{_CELL}font-family:monospace">{_text(finding.where)}{line}</td>',
        _cell("td", finding.message.removeprefix(f"{finding.where}: ")),
        _cell("td", finding.remedy),
    )
    return f'<tr style="background:none">{"".join(cells)}</tr>'


def _cell(tag: str, text: str) -> str:
    return f'<{tag} style="{_CELL}">{_text(text)}</{tag}>'


def _layers(rows: Sequence[Sequence[str]]) -> str:
    """The norms of the layers, closed at first."""
    titles, *layers = rows
    lines = ["".join(_cell("th", title) for title in titles)]
    for name, *numbers in layers:
        cells = "".join(f'<td style="{_NUMBER}">{_text(number)}</td>' for number in numbers)
        lines.append(_cell("td", name) + cells)
    table = "".join(f'<tr style="background:none">{line}</tr>' for line in lines)
    summary = '<summary style="cursor:pointer">norms by layer</summary>'
    return f'<details>{summary}<table style="{_TABLE}">{table}</table></details>'


def _text(text: str) -> str:
    """A text for HTML; names of users may hold anything."""
    return html.escape(clean(text, 600))
