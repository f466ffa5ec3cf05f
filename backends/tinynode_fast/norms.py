"""Rules of norms, deviations and standardized rows.

Requirement: the sums of squares neither overflow nor underflow where the result lies in the range.
The loops stay as quick as those of plain sums.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from tinynode.functions.scaling import DOUBLE
from tinynode.net.operator import EMPTY
from tinynode_fast.actions import Names
from tinynode_fast.draft import Draft
from tinynode_fast.native.formulas import formula, number


def mean(to: Draft, axes: tuple[int, ...], x: str, write: str = "") -> str:
    total = to.reduced("sum", axes, x)
    return to.computed(formula("s / {n}", n=number(_count(to, axes, x))), write, s=total)


def standardize(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """m = mean x, d = x - m, r = 1 / sqrt(mean of d^2 + eps), y = d r."""
    if EMPTY in writes:
        return
    (d,), (y, m, r) = reads, writes
    if node.center:
        d = to.computed("x - m", x=d, m=_mean_without_overflow(to, node.axes, d, m))
    else:
        to.computed("0.0", m)
    root = _root(to, node.axes, d, _count(to, node.axes, d), node.eps)
    to.computed("1.0 / s", r, s=root)
    to.computed("d * r", y, d=d, r=r)


def std(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """m = mean x, y = sqrt(sum of (x - m)^2 / n)."""
    (x,), (y,) = reads, writes
    d = to.computed("x - m", x=x, m=_mean_without_overflow(to, node.axes, x))
    to.reshaped(_root(to, node.axes, d, node.divisor), to.shape(y), y)


def vector_norm(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """y = sqrt(sum of x^2)."""
    if node.ord == 2.0:
        to.reshaped(_root(to, node.axes, reads[0]), to.shape(writes[0]), writes[0])


def _mean_without_overflow(to: Draft, axes: tuple[int, ...], x: str, write: str = "") -> str:
    """The mean; the sum is of float64, or of numbers times a power of two."""
    n = _count(to, axes, x)
    if to.forms[x][1] == numpy.dtype("float32"):
        part, numbers = 1.0, _widened(to, x)
    else:
        part = 2.0 ** -n.bit_length()
        numbers = to.computed(formula("x * {c}", c=number(part)), x=x)
    total = to.reduced("sum", axes, numbers)
    write = write or to.fresh(to.shape(total), x)
    return to.computed(formula("s / {n}", n=number(n * part)), write, s=total)


def _widened(to: Draft, x: str) -> str:
    """The numbers of float32 in float64: a choice of the loop alone."""
    return to.computed("x", to.fresh(to.shape(x), x, "float64"), x=x)


def _root(to: Draft, axes: tuple[int, ...], d: str, n: float = 1.0, eps: float = 0.0) -> str:
    """sqrt(sum of d^2 / n + eps), without overflow and underflow of the squares.

    The squares of float32 are numbers of float64. For float64 the loop adds up the squares of
    larger and smaller numbers, too: that costs less than to look for the largest number before.
    """
    used = {"n": number(n), "e": number(eps)}
    if to.forms[d][1] == numpy.dtype("float32"):
        squares = to.reduced("sum", axes, to.computed("d * d", d=_widened(to, d)))
        root = to.computed(formula("sqrt(q / {n} + {e})", **used), q=squares)
        return to.computed("s", to.fresh(to.shape(root), d), s=root)
    p = DOUBLE.power
    used |= {"p": number(p), "least": number(DOUBLE.least), "most": number(DOUBLE.most)}
    used |= {"up": number(eps * p * p), "down": number(eps / p / p)}
    terms = {"q": to.computed("d * d", d=d)}
    terms["l"] = to.computed(formula("h = d / {p}; h * h", **used), d=d)
    text = "q < {most} ? sqrt(q / {n} + {e}) : sqrt(l / {n} + {down}) * {p}"
    if eps <= DOUBLE.least:
        terms["s"] = to.computed(formula("h = d * {p}; h * h", **used), d=d)
        text = "q < {least} ? sqrt(s / {n} + {up}) / {p} : " + text
    sums = {letter: to.reduced("sum", axes, name) for letter, name in terms.items()}
    return to.computed(formula(text, **used), **sums)


def _count(to: Draft, axes: tuple[int, ...], x: str) -> int:
    return math.prod(to.shape(x)[axis] for axis in axes)


def standardize_grad(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """gx = r (g - mean g - y mean(g y))."""
    g, y, r = reads
    if to.shape(g) != to.shape(y):
        return
    share = mean(to, node.axes, to.computed("g * y", g=g, y=y))
    means = {"m": mean(to, node.axes, g)} if node.center else {}
    text = "(g - y * a - m) * r" if node.center else "(g - y * a) * r"
    to.computed(text, writes[0], g=g, y=y, a=share, r=r, **means)
