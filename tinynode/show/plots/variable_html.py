"""The card of a Variable, for notebooks.

Requirement: one glance shows a Variable's shape, dtype, device and creator, its numbers, and the
state of its gradient. A few numbers take three lines of the page; large arrays are pictures.
Colours are those of films: numbers above 0 are green, numbers below 0 are purple.

A notebook that does not trust an output removes scripts, style sheets, ``<svg>`` elements and
``aria`` attributes. The card has none of these. Texts have the colour of the page.
"""

from __future__ import annotations

import base64
import html
import math
from typing import Any

import numpy

from tinynode.core.variable import Variable
from tinynode.devices import Array, has_no_values, to_host
from tinynode.errors import dtype_name, number_text
from tinynode.show.graphs.explain import gradient_reasons, gradient_state
from tinynode.show.palette import BEHIND_TEXT, EITHER, FRAME, SHADES, translucent
from tinynode.show.plots.array_picture import (
    Index,
    Picture,
    heat_map,
    histogram,
    index_text,
    is_part,
    statistics,
)
from tinynode.show.texts import clean

_MOST_NUMBERS = 36  # an array with more elements is a picture
_MOST_COLUMNS = 12
_CORNER_ROWS = 8
_CORNER_COLUMNS = 10

_FRAME = f"1px solid {translucent(FRAME, 0.5)}"
_TABLE = "border-collapse:collapse;border:none;margin:0;width:auto;table-layout:auto"
_CELL = f"padding:0 7px;text-align:right;font-family:monospace;white-space:nowrap;border:{_FRAME};"
_NOTE = "white-space:pre-wrap;margin:2px 0 6px"


def variable_html(x: Variable) -> str:
    """The card of a Variable."""
    name = clean(f"{type(x).__name__} {x.name or ''}".strip(), 80)
    raw = _with_values(x)
    value = _with_numbers("value", "", raw)
    reasons = f'<div style="{_NOTE}">{html.escape(gradient_reasons(x))}</div>'
    array = _with_values(x.grad_var)
    gradient = _with_numbers(f"gradient: {gradient_state(x)}", reasons, array)
    return (
        '<div class="tn-variable" style="line-height:1.4">'
        f"<div><b>{html.escape(name)}</b> "
        f'<span style="opacity:0.8">{html.escape(clean(_facts(x), 200))}</span></div>'
        '<div style="display:flex;flex-wrap:wrap;align-items:flex-start;gap:4px 24px">'
        f"{_column(value, raw, f'solid {EITHER.forward}')}"
        f"{_column(gradient, array, f'dashed {EITHER.backward}')}</div></div>"
    )


def _with_values(x: Variable | None) -> Array | None:
    """The array of a Variable; None for an array of the device ``shapes``."""
    return None if x is None or x.raw is None or has_no_values(x.raw) else x.raw


def _facts(x: Variable) -> str:
    """Shape, dtype, device and creator."""
    creator = x.creator_node
    if creator is not None:
        origin = f"from {creator.label}, rank {x.rank}"
    else:
        origin = f"unchained, rank {x.rank}" if x.rank else "leaf"
    array = "empty" if x.raw is None else f"{x.shape}, {dtype_name(x.dtype)}"
    return f"{array} on {x.device}, {origin}"


def _column(label: str, array: Array | None, line: str) -> str:
    """The label and the elements of an array, beside a line in the colour of films."""
    content = "" if array is None else _elements(array)
    style = f"border-left:3px {line};padding:0 0 0 8px;max-width:100%;box-sizing:border-box"
    return f'<div style="{style}">{label}{content}</div>'


def _with_numbers(label: str, explanation: str, array: Array | None) -> str:
    """A label that discloses an explanation, and numbers of an array that is drawn."""
    if array is not None and not _is_small(array):
        explanation += _corner(array)
    if not explanation:
        return f"<div>{html.escape(label)}</div>"
    summary = f'<summary style="cursor:pointer">{html.escape(label)}</summary>'
    return f"<details>{summary}{explanation}</details>"


def _is_small(array: Array) -> bool:
    """True if the card shows all numbers."""
    size, columns = math.prod(array.shape), array.shape[-1] if array.ndim else 1
    return not size or (size <= _MOST_NUMBERS and columns <= _MOST_COLUMNS)


def _elements(array: Array) -> str:
    """The numbers of a small array; pictures of a large array."""
    if not math.prod(array.shape):
        return "<div>no elements</div>"
    return _tables(to_host(array)) if _is_small(array) else _pictures(array)


# --- numbers -------------------------------------------------------------------------------------


def _tables(host: numpy.ndarray) -> str:
    """The matrices of an array as tables, side by side."""
    rows, columns = (1, 1, *host.shape)[-2:]
    largest = _largest(host)
    tables = []
    for matrix in host.reshape(-1, rows, columns):
        lines = [
            f'<tr style="background:none">{"".join(_cell(value, largest) for value in row)}</tr>'
            for row in matrix
        ]
        tables.append(f'<table style="{_TABLE}">{"".join(lines)}</table>')
    return f'<div style="display:flex;flex-wrap:wrap;gap:4px 10px">{"".join(tables)}</div>'


def _largest(host: numpy.ndarray) -> float:
    """The largest absolute value of finite numbers; 0 for complex numbers, without a sign."""
    if host.dtype.kind == "c":
        return 0.0
    sizes = numpy.abs(host.astype(numpy.float64))
    return float(numpy.max(sizes, initial=0.0, where=numpy.isfinite(sizes)))


def _cell(value: Any, largest: float) -> str:
    """The cell of a number, with a shade of its sign's colour behind the number."""
    if not numpy.isfinite(value):
        colour, strength = EITHER.bad, BEHIND_TEXT
    else:
        size = float(value) / largest if largest else 0.0
        colour = EITHER.plus if size > 0 else EITHER.minus
        strength = math.ceil(abs(size) * SHADES) / SHADES * BEHIND_TEXT
    shade = f"background:{translucent(colour, strength)}" if strength else ""
    return f'<td style="{_CELL}{shade}">{_number(value)}</td>'


def _number(value: Any) -> str:
    if isinstance(value, complex | numpy.complexfloating):
        return f"{value:.4g}"
    if isinstance(value, numpy.integer | numpy.bool_):
        return str(value)
    return number_text(float(value))


def _corner(array: Array) -> str:
    """The first numbers of an array as text, with the index of the corner."""
    ends = (slice(_CORNER_ROWS), slice(_CORNER_COLUMNS))[-array.ndim :]
    index: Index = (*(0 for _ in array.shape[:-2]), *ends)
    host = to_host(array[index])
    with numpy.printoptions(precision=4, linewidth=200):
        text = numpy.array2string(host, separator=", ")
    note = f"{index_text(index)} =\n" if is_part(index, tuple(array.shape)) else ""
    return f'<pre style="margin:2px 0 6px;overflow:auto">{html.escape(note + text)}</pre>'


# --- pictures ------------------------------------------------------------------------------------


def _pictures(array: Array) -> str:
    """A heat map, a histogram, and a line of statistics."""
    found = statistics(array)
    drawn, index = heat_map(array, found.largest)
    bars = histogram(found)
    images = _image(drawn, _FRAME) + ("" if bars is None else _image(bars, "none"))
    facts = ", ".join(found.facts)
    if is_part(index, tuple(array.shape)):
        facts += f"; drawn: {index_text(index)}"
    return f'{images}<div style="font-size:90%">{facts}</div>'


def _image(picture: Picture, border: str) -> str:
    words = html.escape(picture.words)
    data = base64.b64encode(picture.file).decode("ascii")
    return (
        f'<img src="data:image/png;base64,{data}" alt="{words}" title="{words}" '
        f'width="{picture.width}" height="{picture.height}" '
        f'style="display:inline-block;vertical-align:bottom;margin:2px 10px 2px 0;'
        f'border:{border};max-width:none"/>'
    )
