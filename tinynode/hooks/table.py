"""Tables of plain text, for the reports of hooks.

Requirement: a report is read in a terminal and in a log file alike, so it is text with columns
that line up: names to the left, numbers to the right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    """The rows below their head, every column as wide as its widest cell.

    Args:
        head: the names of the columns.
        rows: the cells, a row as long as the head.
        left: the columns that are aligned to the left; the others are aligned to the right.
    """
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, ["-" * width for width in widths], *rows):
        cells = []
        for position, (cell, width) in enumerate(zip(row, widths, strict=True)):
            cells.append(cell.ljust(width) if position in left else cell.rjust(width))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def check_unit(unit: str, units: Mapping[str, float], *others: str) -> None:
    """Refuse a unit that is neither in the table nor one of the others.

    Raises:
        ValueError: says which units there are.
    """
    known = [*others, *units]
    if unit not in known:
        raise ValueError(
            f"print_report: there is no unit {unit!r}; there are: {', '.join(known)}."
        )


def fitting_unit(amount: float, units: Mapping[str, float]) -> str:
    """The largest unit that the amount reaches, or the smallest one; units are in rising order."""
    fitting = [unit for unit, size in units.items() if size <= amount]
    return fitting[-1] if fitting else next(iter(units))
