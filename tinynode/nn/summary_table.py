"""The table of ``tn.summary``: a row for each layer, as text and as HTML.

Requirement: each figure stands in one row alone, so that the rows add up to the totals. A notebook
that does not trust an output removes style sheets, so the HTML has none.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from tinynode.errors import printable, short_name
from tinynode.hooks.memory import SIZE_OF_UNIT, in_unit
from tinynode.hooks.table import fitting_unit, format_table


@dataclass
class LayerSummary:
    """A row of the table. Each figure stands in one row alone, so the rows add up to the totals.

    Attributes:
        name: the dotted name, as in ``named_modules``; "" for the model.
        kind: the class of the layer.
        outputs: the shapes of the outputs, at the last call.
        calls: the number of calls.
        parameters: the number of elements of the layer's own parameters, without inner layers.
        trainable: the elements of the parameters that require a gradient.
        parameter_bytes: the bytes of the layer's own parameters.
        kept_bytes: the bytes of the arrays that the layer's own functions retain for backward.
        multiply_adds: the products that the layer's own functions add up.
    """

    name: str
    kind: str
    outputs: tuple[tuple[int, ...], ...] = ()
    calls: int = 0
    parameters: int = 0
    trainable: int = 0
    parameter_bytes: int = 0
    kept_bytes: int = 0
    multiply_adds: int = 0

    @property
    def title(self) -> str:
        """The name, for people."""
        return printable(short_name(self.name)) or "(model)"


@dataclass
class Summary:
    """What ``tn.summary`` returns. ``print`` shows the table; a notebook shows it as HTML.

    Attributes:
        rows: a row for each layer, in the order of ``named_modules``.
        inputs: shape and dtype of each input, as text.
    """

    rows: list[LayerSummary]
    inputs: list[str]

    @property
    def parameters(self) -> int:
        """The number of elements of all parameters."""
        return sum(row.parameters for row in self.rows)

    @property
    def trainable(self) -> int:
        """The elements of the parameters that require a gradient."""
        return sum(row.trainable for row in self.rows)

    @property
    def parameter_bytes(self) -> int:
        """The bytes of all parameters."""
        return sum(row.parameter_bytes for row in self.rows)

    @property
    def kept_bytes(self) -> int:
        """The bytes of the arrays that the graph keeps for backward, without parameters."""
        return sum(row.kept_bytes for row in self.rows)

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds of one forward."""
        return sum(row.multiply_adds for row in self.rows)

    def __str__(self) -> str:
        head, *rows = self._cells()
        return "\n".join([format_table(head, rows, left=(0, 1, 2)), *self._facts()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table for notebooks, without a style sheet."""
        head, *rows = self._cells()
        lines = [_html_row("th", head), *[_html_row("td", row) for row in rows]]
        facts = [f"<div>{html.escape(fact)}</div>" for fact in self._facts()]
        table = f'<table style="border-collapse:collapse">{"".join(lines)}</table>'
        return f'<div class="tn-summary">{table}{"".join(facts)}</div>'

    def _cells(self) -> list[list[str]]:
        """The table as text: the titles, the rows, and the totals."""
        unit = fitting_unit(self.kept_bytes, SIZE_OF_UNIT)
        head = ["layer", "class", "output", "parameters", "trainable", "kept", "multiply-adds"]
        rows = []
        for row in self.rows:
            kind = short_name(row.kind)
            kind = kind if row.calls < 2 else f"{kind}, {row.calls} calls"
            output = ", ".join(map(str, row.outputs)) if row.calls else "not called"
            rows.append([row.title, kind, output, *_numbers(row, unit)])
        return [head, *rows, ["total", "", "", *_numbers(self, unit)]]

    def _facts(self) -> list[str]:
        """The lines below the table."""
        size = in_unit(self.parameter_bytes, fitting_unit(self.parameter_bytes, SIZE_OF_UNIT))
        facts = [f"input: {', '.join(self.inputs) or 'none'}", f"memory of parameters: {size}"]
        frozen = self.parameters - self.trainable
        return [*facts, f"frozen parameters: {frozen:,}"] if frozen else facts


def _numbers(row: LayerSummary | Summary, unit: str) -> list[str]:
    kept = in_unit(row.kept_bytes, unit)
    return [f"{row.parameters:,}", f"{row.trainable:,}", kept, f"{row.multiply_adds:,}"]


def _html_row(tag: str, cells: Sequence[str]) -> str:
    style = "padding:2px 8px;border:1px solid rgba(128,128,128,0.5);text-align:"
    parts = [
        f'<{tag} style="{style}{"left" if column < 3 else "right"}">{html.escape(cell)}</{tag}>'
        for column, cell in enumerate(cells)
    ]
    return f"<tr>{''.join(parts)}</tr>"
