"""Tables of plain text, for the reports of hooks.

Requirement: people read reports in terminals and in log files. So a report is text with aligned
columns: names to the left, numbers to the right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    """The rows below the head, each column as wide as the widest cell.

    Args:
        head: the names of the columns.
        rows: the cells; each row is as long as the head.
        left: the indexes of the columns that are aligned to the left; other columns are aligned
            to the right.
    """
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, ["-" * width for width in widths], *rows):
        cells = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            cells.append(cell.ljust(width) if column in left else cell.rjust(width))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def check_unit(unit: str, units: Mapping[str, float], *others: str) -> None:
    """Refuse a unit that is neither in ``units`` nor in ``others``.

    Raises:
        ValueError: the unit is unknown; the message lists the units.
    """
    known = [*others, *units]
    if unit not in known:
        raise ValueError(
            f"print_report: there is no unit {unit!r}; there are: {', '.join(known)}."
        )


def fitting_unit(amount: float, units: Mapping[str, float]) -> str:
    """The largest unit that the amount reaches, else the smallest unit; units rise in order."""
    fitting = [unit for unit, size in units.items() if size <= amount]
    return fitting[-1] if fitting else next(iter(units))
