"""A Variable as a small table, for notebooks.

Requirement: one glance shows a variable's shape, dtype, device and creator, and the gradient or
the reason for no gradient. Values have colours: blue above 0, orange below. Of a large array the
table shows a corner, and only the corner leaves the device.
"""

from __future__ import annotations

import html
import math
from typing import Any

import numpy

from tinynode.core.variable import Variable
from tinynode.devices import Array, to_host
from tinynode.errors import dtype_name
from tinynode.show.explain import short_reason
from tinynode.show.figure import clean
from tinynode.show.scales import number_text

_ROWS = 8
_COLUMNS = 10
_CELL = "padding:1px 6px;text-align:right;font-family:monospace;"


def variable_html(x: Variable) -> str:
    """The table of a Variable; colours of text and background are the page's."""
    rows = [
        ("", f"<b>{_escaped(type(x).__name__)} {_escaped(x.name or '')}</b>"),
        ("value", _values(x.raw)),
        ("shape", "empty" if x.raw is None else str(x.shape)),
        ("dtype", "" if x.raw is None else _escaped(dtype_name(x.dtype))),
        ("device", _escaped(str(x.device))),
        ("requires_grad", str(x.requires_grad)),
        ("creator", _creator(x)),
        ("grad", _gradient(x)),
    ]
    body = "".join(
        f'<tr><th scope="row" style="text-align:left;vertical-align:top;padding:1px 12px 1px 0">'
        f'{head}</th><td style="text-align:left">{cell}</td></tr>'
        for head, cell in rows
        if cell
    )
    return f'<table class="tn-variable" style="border-collapse:collapse">{body}</table>'


def _escaped(text: str) -> str:
    return html.escape(clean(text, 80))


def _creator(x: Variable) -> str:
    creator = x.creator_node
    if creator is not None:
        return f"{_escaped(creator.label)}, rank {x.rank}"
    return f"none: unchained, rank {x.rank}" if x.rank else "none: a leaf"


def _gradient(x: Variable) -> str:
    if x.grad_var is None:
        return f"None: {_escaped(short_reason(x))}"
    return _values(x.grad_var.raw)


def _values(array: Array | None) -> str:
    """The values of an array or of its corner."""
    if array is None:
        return "None"
    shape = tuple(array.shape)
    if not math.prod(shape):
        return f"no entries, shape {shape}"
    host = to_host(_corner(array))
    table = numpy.atleast_2d(host)
    largest = _largest(table)
    rows = [
        "".join(_cell(value, largest) for value in row) + _dots(shape[-1] > _COLUMNS)
        if shape
        else _cell(row[0], largest)
        for row in table
    ]
    text = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<table style="border-collapse:collapse">{text}</table>{_shown_part(shape)}'


def _corner(array: Array) -> Array:
    """At most 8 rows and 10 columns of the first matrix of a stack."""
    if array.ndim == 0:
        return array
    index = (0,) * (array.ndim - 2)
    if array.ndim == 1:
        return array[:_COLUMNS]
    return array[(*index, slice(_ROWS), slice(_COLUMNS))]


def _shown_part(shape: tuple[int, ...]) -> str:
    """The index of the shown part of an array; empty if all of it is shown."""
    if len(shape) > 2:
        index = ", ".join(["0"] * (len(shape) - 2))
        return f"<small>[{index}, :{_ROWS}, :{_COLUMNS}] of shape {shape}</small>"
    if len(shape) == 2 and (shape[0] > _ROWS or shape[1] > _COLUMNS):
        return f"<small>[:{_ROWS}, :{_COLUMNS}] of shape {shape}</small>"
    return f"<small>[:{_COLUMNS}] of shape {shape}</small>" if shape and _cut(shape) else ""


def _cut(shape: tuple[int, ...]) -> bool:
    return len(shape) == 1 and shape[0] > _COLUMNS


def _largest(table: numpy.ndarray) -> float:
    """The largest absolute value of finite numbers; 0 for a dtype without signs to colour."""
    if table.dtype.kind not in "iuf":
        return 0.0
    sizes = numpy.abs(table.astype(numpy.float64))
    return float(numpy.max(sizes, initial=0.0, where=numpy.isfinite(sizes)))


def _dots(more: bool) -> str:
    return f'<td style="{_CELL}">...</td>' if more else ""


def _cell(value: Any, largest: float) -> str:
    """The cell of a number; the colour's strength grows with the absolute value, up to 40 %."""
    text = value if isinstance(value, bool | numpy.bool_) else _number(value)
    colour = ""
    if largest and math.isfinite(float(value)):
        size = float(value) / largest
        tone = "0,114,178" if size > 0 else "213,94,0"
        colour = f"background:rgba({tone},{abs(size) * 0.4:.2f})" if size else ""
    return f'<td style="{_CELL}{colour}">{html.escape(str(text))}</td>'


def _number(value: Any) -> str:
    if isinstance(value, complex | numpy.complexfloating):
        return f"{value:.4g}"
    if isinstance(value, numpy.integer | int):
        return str(value)
    return number_text(float(value))
