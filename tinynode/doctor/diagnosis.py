"""Diagnosis: all findings for a loss, as text and as a table.

Requirement: ``print`` shows the findings, errors first, then the functions that were not checked.
A Diagnosis keeps no graph alive.
"""

from __future__ import annotations

import weakref
from textwrap import fill
from typing import Any

from tinynode.core.variable import Variable
from tinynode.doctor.findings import SEVERITIES, Finding, Layer, layer_rows
from tinynode.doctor.findings_html import table_html
from tinynode.hooks.debug import checksum
from tinynode.hooks.table import format_table

_WIDTH = 92


class Diagnosis:
    """The result of ``tinynode.diagnose``: ``print`` shows a text, a notebook a table.

    Attributes:
        title: the loss, in words.
        findings: the faults, errors first.
        checked: the number of functions with a checked backward.
        unchecked: for each reason, the labels of the functions that were not checked.
        layers: the gradient of each layer, in the order of forward.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.findings: list[Finding] = []
        self.checked = 0
        self.unchecked: dict[str, list[str]] = {}
        self.layers: list[Layer] = []
        self._checksums: list[tuple[weakref.ref[Variable], int]] = []

    @property
    def is_healthy(self) -> bool:
        """True without errors and warnings."""
        return all(finding.severity == "note" for finding in self.findings)

    def add(self, findings: list[Finding]) -> None:
        """Add findings; errors come first, then warnings, then notes."""
        self.findings += findings
        self.findings.sort(key=_severity)

    def marks(self) -> dict[Any, str]:
        """The words at each marked node, for ``tinynode.show.graph(loss, marks=diagnosis)``."""
        marks: dict[Any, str] = {}
        for finding in self.findings:
            words = finding.mark or finding.kind
            for reference in finding.about:
                node = reference()
                if node is not None:
                    marks[node] = f"{marks[node]}; {words}" if node in marks else words
        return marks

    def remember(self, parameters: list[Variable]) -> None:
        """Keep a checksum of each parameter, for ``diagnose(..., since=diagnosis)``."""
        self._checksums = [(weakref.ref(p), checksum(p.raw)) for p in parameters]

    def unchanged(self) -> set[int]:
        """The ids of the remembered parameters with the same values now."""
        found = set()
        for reference, before in self._checksums:
            parameter = reference()
            if parameter is not None and checksum(parameter.raw) == before:
                found.add(id(parameter))
        return found

    def summary(self) -> list[str]:
        """What was looked at, a line for each fact."""
        lines = [f"{self.checked} backward{'s' * (self.checked != 1)} checked by differences"]
        for reason, labels in self.unchecked.items():
            names = ", ".join(dict.fromkeys(labels))
            lines.append(f"{len(labels)} not checked, {reason}: {names}")
        return lines

    def __str__(self) -> str:
        count = len(self.findings)
        lines = [f"{self.title}: {count or 'no'} finding{'s' * (count != 1)}"]
        for number, finding in enumerate(self.findings, 1):
            head, remedy = str(finding).rsplit("\n", 1)
            lines.append(fill(f"{number}. {head}", _WIDTH, subsequent_indent="   "))
            lines.append(fill(remedy, _WIDTH, initial_indent="   ", subsequent_indent="   "))
        lines += [fill(line, _WIDTH, subsequent_indent="   ") for line in self.summary()]
        if self.layers:
            titles, *rows = layer_rows(self.layers)
            lines.append(format_table(titles, rows, left=(0,)))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = layer_rows(self.layers) if self.layers else []
        return table_html(self.title, self.findings, self.summary(), rows)


def _severity(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)
