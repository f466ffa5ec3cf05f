"""Rows of variances and running sums, of another order or number of elements, of gathering,
indexing with arrays, sorting, one-hot vectors and additions at indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any

import numpy as np

import tinynode as tn
from op_cases.reductions_shapes import AXES, np_set_item
from op_cases.rows import (
    ALL,
    INTEGERS,
    LAYOUTS,
    Input,
    distinct,
    few,
    indices,
    integers,
    node,
    nz,
    row,
    sep,
    x,
    zeros,
)
from tinynode import functions as fn
from tinynode.functions.attributes import Place, Slice

# --- products, variances, running sums and products ----------------------------------------------

for what, s, axes in AXES:
    row("prod", what, fn.prod, np.prod, nz(*s), **axes)
    row("prod", f"zeros-{what}", fn.prod, np.prod, zeros(*s), **axes)
for how in LAYOUTS:
    row("prod", how, fn.prod, np.prod, nz(3, 4, layout=how), axis=0)
row("prod", "four-of-which-some-are-0", fn.prod, np.prod, zeros(5, 4), axis=1)
row("prod", "zero-size-all", fn.prod, np.prod, x(0, 3))
row("prod", "zero-size-first-axis", fn.prod, np.prod, x(0, 3), axis=0)
row("prod", "integers", fn.prod, np.prod, few(2, 3), order=0, dtypes=INTEGERS, axis=0)


def np_var(x: Any, correction: float = 0, **axes: Any) -> Any:
    return np.var(x, ddof=correction, **axes)


def np_std(x: Any, correction: float = 0, **axes: Any) -> Any:
    return np.std(x, ddof=correction, **axes)


for what, s, axes in AXES:
    row("var", what, fn.var, np_var, x(*s), **axes)
    if what not in ("0-d", "one-axes", "no-axes"):  # of one element each: no slope at 0
        row("std", what, fn.std, np_std, x(*s), **axes)
for f, ref in ((fn.var, np_var), (fn.std, np_std)):
    for correction in (1, 0.5, -1):
        row(f.__name__, f"correction-{correction}", f, ref, x(3, 4), axis=0, correction=correction)
    row(f.__name__, "correction-two-axes", f, ref, x(3, 2, 2), axis=(0, 2), correction=1)
    for how in LAYOUTS:
        row(f.__name__, how, f, ref, x(3, 4, layout=how), axis=1)


def np_running(function: Any, first: float) -> Callable[..., Any]:
    """np.cumsum or np.cumprod in the standard's terms."""

    def run(x: Any, axis: int = 0, include_initial: bool = False) -> Any:
        y = function(x, axis)
        shape = list(y.shape)
        shape[axis] = 1
        start = np.full(shape, first, y.dtype)
        return np.concat([start, y], axis) if include_initial else y

    return run


RUNNING: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("vector", (4,), {}),
    ("one", (1,), {}),
    ("first-axis", (3, 2), {"axis": 0}),
    ("last-axis", (2, 4), {"axis": -1}),
    ("middle-axis", (2, 3, 2), {"axis": 1}),
    ("initial", (4,), {"include_initial": True}),
    ("initial-middle-axis", (2, 3, 2), {"axis": 1, "include_initial": True}),
    ("zero-size", (0,), {}),
    ("zero-size-initial", (0,), {"include_initial": True}),
    ("zero-size-other-axis", (0, 3), {"axis": 1}),
    ("zero-size-this-axis", (3, 0), {"axis": 1}),
]
np_cumsum, np_cumprod = np_running(np.cumsum, 0), np_running(np.cumprod, 1)
for what, s, constants in RUNNING:
    row("cumulative_sum", what, fn.cumulative_sum, np_cumsum, x(*s), **constants)
    row("cumulative_prod", what, fn.cumulative_prod, np_cumprod, nz(*s), **constants)
    row("cumulative_prod", f"zeros-{what}", fn.cumulative_prod, np_cumprod, zeros(*s), **constants)
for how in LAYOUTS:
    row("cumulative_sum", how, fn.cumulative_sum, np_cumsum, x(3, 4, layout=how), axis=0)
    row("cumulative_prod", how, fn.cumulative_prod, np_cumprod, nz(3, 4, layout=how), axis=0)
row("cumulative_prod", "zeros-rows", fn.cumulative_prod, np_cumprod, zeros(6, 5), axis=1)
for f, ref in ((fn.cumulative_sum, np_cumsum), (fn.cumulative_prod, np_cumprod)):
    running = partial(row, f.__name__, order=0, dtypes=INTEGERS)
    running("integers", f, ref, few(9))
    running("integers-initial", f, ref, few(2, 3), axis=1, include_initial=True)


def np_diff(x: Any, axis: int = -1, n: int = 1) -> Any:
    return np.diff(x, n, axis)


for what, s, constants in (
    ("vector", (4,), {}),
    ("one", (1,), {}),
    ("first-axis", (3, 2), {"axis": 0}),
    ("middle-axis", (2, 3, 2), {"axis": 1}),
    ("twice", (2, 4), {"n": 2}),
    ("never", (2, 4), {"n": 0}),
    ("until-nothing-is-left", (2, 3), {"n": 3}),
    ("zero-size", (0, 3), {}),
):
    row("diff", what, fn.diff, np_diff, x(*s), **constants)
for how in LAYOUTS:
    row("diff", how, fn.diff, np_diff, x(3, 4, layout=how), axis=0)
row("diff", "integers", fn.diff, np_diff, few(9), order=0, dtypes=INTEGERS)
row(
    "diff",
    "prepend-and-append",
    lambda x, y, z: fn.diff(x, prepend=y, append=z, axis=0),
    lambda x, y, z: np.diff(x, prepend=y, append=z, axis=0),
    x(2, 3),
    x(1, 3),
    x(2, 3),
)


def np_logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


for what, s, constants in (
    ("all", (2, 3), {}),
    ("last-axis", (2, 3), {"axis": -1}),
    ("keepdims", (2, 3), {"axis": 0, "keepdims": True}),
    ("two-axes", (2, 3, 2), {"axis": (0, 2)}),
    ("0-d", (), {}),
    ("zero-size", (0, 3), {"axis": 1}),
):
    row("logsumexp", what, fn.logsumexp, np_logsumexp, x(*s), **constants)
for how in LAYOUTS:
    row("logsumexp", how, fn.logsumexp, np_logsumexp, x(3, 4, layout=how), axis=1)


def np_linear_scan(a: Any, b: Any, axis: int) -> Any:
    a, s = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0).copy()
    for i in range(1, len(s)):
        s[i] += a[i] * s[i - 1]
    return np.moveaxis(s, 0, axis)


for what, s, axis in (
    ("vector", (4,), 0),
    ("one", (1,), 0),
    ("first-axis", (3, 2), 0),
    ("last-axis", (2, 4), 1),
    ("middle-axis", (2, 3, 2), 1),
    ("zero-size-other-axis", (0, 3), 1),
):
    ref = partial(np_linear_scan, axis=axis)
    row("LinearScan", what, node(fn.LinearScan, axis), ref, x(*s), x(*s))


# --- another order, another number ---------------------------------------------------------------

FLIPS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("all", (2, 3), {}),
    ("vector", (4,), {"axis": 0}),
    ("first-axis", (2, 3), {"axis": 0}),
    ("last-axis", (2, 3), {"axis": -1}),
    ("two-axes", (2, 3, 4), {"axis": (0, 2)}),
    ("two-axes-from-the-end", (2, 3, 4), {"axis": [-1, -2]}),
    ("no-axes", (2, 3), {"axis": ()}),
    ("0-d", (), {}),
    ("zero-size", (0, 3), {"axis": 1}),
]


def np_flip(x: Any, axis: Any = None) -> Any:
    return np.flip(x, tuple(axis) if isinstance(axis, list) else axis)


for what, s, constants in FLIPS:
    row("flip", what, fn.flip, np_flip, x(*s), **constants)
ROLLS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("flat", (2, 3), {"shift": 2}),
    ("flat-back", (2, 3), {"shift": -1}),
    ("vector", (4,), {"shift": 1}),
    ("first-axis", (3, 2), {"shift": 1, "axis": 0}),
    ("last-axis", (2, 4), {"shift": -1, "axis": -1}),
    ("further-than-the-length", (3, 2), {"shift": 7, "axis": 0}),
    ("two-axes", (3, 4), {"shift": (1, -2), "axis": (0, 1)}),
    ("one-shift-for-two-axes", (3, 4), {"shift": 1, "axis": (0, 1)}),
    ("one-of-each-in-tuples", (3, 4), {"shift": (2,), "axis": (1,)}),
    ("axes-from-the-end", (3, 4, 2), {"shift": [1, 2], "axis": [-1, -2]}),
    ("by-nothing", (3,), {"shift": 0, "axis": 0}),
    ("0-d", (), {"shift": 1}),
    ("zero-size", (0, 3), {"shift": 1, "axis": 0}),
    ("zero-size-flat", (0, 3), {"shift": 1}),
]
for what, s, constants in ROLLS:
    row("roll", what, fn.roll, np.roll, x(*s), **constants)
for how in LAYOUTS:
    row("flip", how, fn.flip, np_flip, x(3, 4, layout=how), axis=1)
    row("roll", how, fn.roll, np.roll, x(3, 4, layout=how), shift=1, axis=1)
row("flip", "integers", fn.flip, np_flip, few(2, 3), order=0, dtypes=INTEGERS, axis=1)
row("roll", "integers", fn.roll, np.roll, few(2, 3), order=0, dtypes=INTEGERS, shift=2)

for what, s, places in (
    ("first-to-last", (2, 3, 4), (0, -1)),
    ("last-to-first", (2, 3, 4), (-1, 0)),
    ("first-to-middle", (2, 3, 4), (0, 1)),
    ("stays", (2, 3), (1, 1)),
    ("two", (2, 3, 4), ((0, 1), (1, 2))),
    ("two-to-places-that-fall", (2, 3, 4), ((0, 1), (-1, 0))),
    ("two-of-four", (2, 1, 3, 4), ([3, 0], [0, 2])),
    ("none", (2, 3), ((), ())),
    ("zero-size", (0, 3), (0, 1)),
):
    moves = {"source": places[0], "destination": places[1]}
    row("moveaxis", what, fn.moveaxis, np.moveaxis, x(*s), **moves)
for what, s, axis in (
    ("first", (2, 3), 0),
    ("last", (2, 3), -1),
    ("middle", (2, 3), 1),
    ("before-the-last", (2, 3), -2),
    ("several", (2, 3), (0, 2)),
    ("several-from-the-end", (2, 3), [-1, 0, -3]),
    ("none", (2, 3), ()),
    ("of-0-d", (), 0),
    ("zero-size", (0, 3), 1),
):
    expected = partial(np.expand_dims, axis=tuple(axis) if isinstance(axis, list) else axis)
    row("expand_dims", what, lambda x, a=axis: fn.expand_dims(x, a), expected, x(*s))
row("expand_dims", "by-name", fn.expand_dims, np.expand_dims, x(2, 3), axis=1)
row("expand_dims", "default", fn.expand_dims, lambda x: x[None], x(2, 3))
for what, s, axis in (
    ("first", (1, 2, 3), 0),
    ("last", (2, 3, 1), -1),
    ("middle", (2, 1, 3), 1),
    ("one-of-two", (1, 2, 1), 2),
    ("several", (1, 2, 1), (0, 2)),
    ("all", (1, 1), (0, -1)),
    ("none", (1, 2), ()),
    ("zero-size", (0, 1, 3), 1),
):
    row("squeeze", what, fn.squeeze, np.squeeze, x(*s), axis=axis)


@wraps(fn.stack)
def stack(*xs: Any, axis: int = 0) -> Any:
    return fn.stack(xs, axis=axis)


def np_stack(*xs: Any, axis: int = 0) -> Any:
    return np.stack(xs, axis)


for what, s, count, axis in (
    ("two", (2, 3), 2, 0),
    ("three", (3,), 3, 0),
    ("one", (2, 3), 1, 0),
    ("last-axis", (2, 3), 2, -1),
    ("last-axis-from-the-front", (2, 3), 2, 2),
    ("middle-axis", (2, 3), 3, 1),
    ("0-d", (), 3, 0),
    ("zero-size", (0, 3), 2, 1),
):
    row("stack", what, stack, np_stack, *[x(*s)] * count, axis=axis)
row("stack", "default-axis", lambda *xs: fn.stack(list(xs)), np_stack, x(2), x(2))
row(
    "stack",
    "same-variable-twice",
    lambda x: fn.stack([x, x * x, x]),
    lambda x: np_stack(x, x * x, x),
    x(3),
)
row("stack", "array-among-them", stack, np_stack, x(2, 3), x(2, 3, raw=True), axis=1)
row("stack", "x-without-grad", stack, np_stack, x(2, 3, grad=False), x(2, 3))
row("stack", "integers", stack, np_stack, few(3), few(3), order=0, dtypes=INTEGERS)


def np_unstack(x: Any, axis: int = 0) -> Any:
    return tuple(np.moveaxis(x, axis, 0))


for what, s, axis in (
    ("matrix", (2, 3), 0),
    ("last-axis", (2, 3), -1),
    ("middle-axis", (2, 3, 2), 1),
    ("vector", (3,), 0),
    ("one", (1, 3), 0),
    ("zero-size", (2, 0), 0),
):
    row("unstack", what, fn.unstack, np_unstack, x(*s), axis=axis)
row("unstack", "one-is-used", lambda x: fn.unstack(x)[1], lambda x: x[1], x(3, 2))
row("unstack", "into-nothing", fn.unstack, np_unstack, x(0, 3), order=0)
for what, s, repetitions in (
    ("vector", (3,), (2,)),
    ("matrix", (2, 3), (2, 3)),
    ("new-axes", (3,), (2, 1, 2)),
    ("fewer-than-axes", (2, 3), (2,)),
    ("once", (2, 3), (1, 1)),
    ("never", (2, 3), (0, 2)),
    ("no-numbers", (2, 3), ()),
    ("0-d", (), (2, 3)),
    ("zero-size", (0, 3), (2, 2)),
    ("list", (2, 2), [1, 3]),
):
    call = partial(fn.tile, repetitions=repetitions)
    row(
        "tile",
        what,
        lambda x, r=repetitions: fn.tile(x, r),
        partial(np.tile, reps=repetitions),
        x(*s),
    )
row(
    "tile",
    "by-name",
    fn.tile,
    lambda x, repetitions: np.tile(x, repetitions),
    x(2),
    repetitions=(3,),
)


def np_pad(x: Any, pad_width: Any, value: float = 0) -> Any:
    return np.pad(x, pad_width, constant_values=value) if x.ndim else x.copy()


def np_meshgrid(*arrays: Any, indexing: str) -> Any:
    return tuple(np.meshgrid(*arrays, indexing=indexing))


for what, s, repeats, axes in (
    ("vector", (3,), 2, {}),
    ("flat", (2, 3), 2, {}),
    ("first-axis", (2, 3), 3, {"axis": 0}),
    ("last-axis", (2, 3), 2, {"axis": -1}),
    ("middle-axis", (2, 3, 2), 2, {"axis": 1}),
    ("once", (2, 3), 1, {"axis": 0}),
    ("never", (2, 3), 0, {"axis": 0}),
    ("0-d", (), 3, {}),
    ("zero-size", (0, 3), 2, {"axis": 1}),
):
    row("repeat", what, fn.repeat, np.repeat, x(*s), repeats=repeats, **axes)
for how in LAYOUTS:
    one = x(3, 4, layout=how)
    row("moveaxis", how, fn.moveaxis, np.moveaxis, one, source=0, destination=1)
    row("stack", how, stack, np_stack, one, one, axis=1)
    row("unstack", how, fn.unstack, np_unstack, one, axis=1)
    row(
        "tile",
        how,
        fn.tile,
        lambda x, repetitions: np.tile(x, repetitions),
        one,
        repetitions=(2, 1),
    )
    row("repeat", how, fn.repeat, np.repeat, one, repeats=2, axis=1)
    row("pad", how, fn.pad, np_pad, one, pad_width=1)
    row("tril", how, fn.tril, np.tril, one)
    row("triu", how, fn.triu, np.triu, one)
row("repeat", "list", lambda x: fn.repeat(x, [1, 0, 2]), lambda x: np.repeat(x, [1, 0, 2]), x(3))
row(
    "repeat",
    "array-of-repeats",
    lambda x: fn.repeat(x, np.array([2, 0, 1]), axis=1),
    lambda x: np.repeat(x, [2, 0, 1], axis=1),
    x(2, 3),
)
for what, s, width, value in (
    ("matrix", (2, 3), 1, 0),
    ("value", (2, 3), 1, 2.5),
    ("pair", (2, 3), (0, 2), 0),
    ("each-axis", (2, 3), ((1, 0), (0, 2)), -1.0),
    ("nothing", (2, 3), 0, 0),
    ("zero-size", (0, 3), 1, 4.0),
    ("0-d", (), 1, 0),
):
    row("pad", what, fn.pad, np_pad, x(*s), pad_width=width, value=value)
row("pad", "integers", fn.pad, np_pad, few(2, 3), order=0, dtypes=INTEGERS, pad_width=1, value=7)
for f, ref in ((fn.tril, np.tril), (fn.triu, np.triu)):
    for what, s, k in (
        ("square", (3, 3), 0),
        ("wide", (2, 4), 1),
        ("tall", (4, 2), -1),
        ("stack", (2, 3, 3), 0),
        ("nothing-is-left", (2, 2), 5 if f is fn.triu else -5),
        ("zero-size", (0, 3), 0),
    ):
        row(f.__name__, what, f, ref, x(*s), k=k)
    row(f.__name__, "integers", f, ref, few(3, 3), order=0, dtypes=INTEGERS)
for what, shapes, how in (
    ("two", ((2,), (3,)), "xy"),
    ("matrix-order", ((2,), (3,)), "ij"),
    ("three", ((2,), (3,), (1,)), "xy"),
    ("one", ((2,),), "xy"),
    ("zero-size", ((0,), (3,)), "xy"),
):
    row("meshgrid", what, fn.meshgrid, np_meshgrid, *(x(*s) for s in shapes), indexing=how)
np_broadcast = np.broadcast_arrays
row("broadcast_arrays", "two", fn.broadcast_arrays, np_broadcast, x(2, 1), x(3))
row("broadcast_arrays", "three", fn.broadcast_arrays, np_broadcast, x(2, 1, 1), x(3, 1), x())
row("broadcast_arrays", "one", fn.broadcast_arrays, np_broadcast, x(2, 3))
row("broadcast_arrays", "zero-size", fn.broadcast_arrays, np_broadcast, x(0, 1), x(1, 3))
row(
    "broadcast_arrays",
    "array",
    lambda x, y: fn.broadcast_arrays(x, y)[0],
    lambda x, y: np_broadcast(x, y)[0],
    x(3),
    x(2, 1, raw=True),
)


# --- gathering -----------------------------------------------------------------------------------


def np_add_at(values: Any, indices: Any, length: int) -> Any:
    y = np.zeros((length, *values.shape[1:]), values.dtype)
    np.add.at(y, indices, values)
    return y


def np_take_rows(x: Any, indices: Any) -> Any:
    return x[indices]


for what, rest, k in (
    ("vector", (), 5),
    ("matrix", (2,), 5),
    ("three-axes", (2, 3), 4),
    ("no-indices", (2,), 0),
    ("zero-size-rest", (0,), 3),
):
    row("TakeRows", what, node(fn.TakeRows), np_take_rows, x(3, *rest), indices(k, n=3))
    ref = partial(np_add_at, length=3)
    row("AddAt", what, node(fn.AddAt, 3), ref, x(k, *rest), indices(k, n=3))
for how in LAYOUTS:
    pair = x(4, 3, layout=how), indices(4, n=3)
    row("AddAt", how, node(fn.AddAt, 3), partial(np_add_at, length=3), *pair)


def np_take(x: Any, indices: Any, axis: int | None = None) -> Any:
    return np.take(x, indices, axis)


TAKES: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ("vector", (3,), (5,), {}),
    ("vector-axis", (3,), (5,), {"axis": -1}),
    ("first-axis", (3, 2), (5,), {"axis": 0}),
    ("last-axis", (2, 3), (4,), {"axis": -1}),
    ("middle-axis", (2, 3, 2), (4,), {"axis": 1}),
    ("one-index", (2, 3), (1,), {"axis": 1}),
    ("no-index", (2, 3), (0,), {"axis": 1}),
    ("0-d-index", (2, 3, 2), (), {"axis": 1}),
    ("two-axes-of-indices", (2, 3, 2), (2, 4), {"axis": 1}),
    ("three-axes-of-indices", (3, 2), (1, 2, 2), {"axis": 0}),
    ("zero-size-other-axis", (0, 3), (4,), {"axis": 1}),
]
for what, s, k, axes in TAKES:
    row("take", what, fn.take, np_take, x(*s), indices(*k, n=3), **axes)
three = {"indices": [2, 0, 2], "axis": 1}
row("take", "list", fn.take, np_take, x(2, 3), **three)
row("take", "tuple", fn.take, np_take, x(2, 3), indices=(-1, 0), axis=1)
row("take", "integer", fn.take, np_take, x(2, 3), indices=-1, axis=1)
row("take", "empty-list", fn.take, np_take, x(2, 3), indices=np.zeros(0, int).tolist(), axis=0)
row("take", "array", fn.take, np_take, x(2, 3), indices(4, n=3, raw=True), axis=1)
row("take", "int32", fn.take, np_take, x(3), replace(indices(4, n=3), dtype="int32"))
row(
    "take",
    "same-variable-twice",
    lambda x, i: fn.take(x * x, i) * x[:4],
    lambda x, i: (x * x)[i] * x[:4],
    x(5),
    indices(4, n=5),
)
row("take", "of-integers", fn.take, np_take, few(9), indices(5, n=9), order=0, dtypes=("int64",))
for how in LAYOUTS:
    pair = x(3, 4, layout=how), indices(5, n=4, layout=how)
    row("take", how, fn.take, np_take, *pair, axis=1)


def np_take_along_axis(x: Any, indices: Any, axis: int = -1) -> Any:
    return np.take_along_axis(x, indices, axis)


def np_positions_along_axis(indices: Any, axis: int, shape: tuple[int, ...]) -> Any:
    places = np.arange(math.prod(shape)).reshape(shape)
    return np.take_along_axis(places, indices, axis).ravel()


ALONG: list[tuple[str, tuple[int, ...], tuple[int, ...], int]] = [
    ("vector", (3,), (5,), -1),
    ("first-axis", (3, 2), (5, 2), 0),
    ("last-axis", (2, 3), (2, 4), -1),
    ("middle-axis", (2, 3, 2), (2, 4, 2), 1),
    ("one-index", (2, 3), (2, 1), 1),
    ("no-index", (2, 3), (2, 0), 1),
    ("zero-size-other-axis", (0, 3), (0, 2), 1),
]
for what, s, k, axis in ALONG:
    row(
        "take_along_axis",
        what,
        fn.take_along_axis,
        np_take_along_axis,
        x(*s),
        indices(*k, n=3),
        axis=axis,
    )
    f = node(fn.PositionsAlongAxis, axis % len(s), s)
    ref = partial(np_positions_along_axis, axis=axis, shape=s)
    row("PositionsAlongAxis", what, f, ref, indices(*k, n=3), order=0, dtypes=("int64",))
row(
    "take_along_axis",
    "default-axis",
    fn.take_along_axis,
    np_take_along_axis,
    x(2, 3),
    indices(2, 5, n=3),
)
row(
    "take_along_axis",
    "array",
    fn.take_along_axis,
    np_take_along_axis,
    x(2, 3),
    indices(2, 5, n=3, raw=True),
)
for how in LAYOUTS:
    pair = x(3, 4, layout=how), indices(3, 5, n=4, layout=how)
    row("take_along_axis", how, fn.take_along_axis, np_take_along_axis, *pair)


# --- indexing with arrays ------------------------------------------------------------------------


def half_true(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """As many True as False, so that every draw selects equally many."""
    size = math.prod(shape)
    return (rng.permutation(size) < size // 2).reshape(shape)


def half(*shape: int, **more: Any) -> Input:
    return Input(shape, half_true, "bool", **more)


def none_true(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return np.zeros(shape, bool)


def all_true(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return np.ones(shape, bool)


def each_once(rng: np.random.Generator, shape: tuple[int, ...], n: int) -> Any:
    """Different integers from 0 to n - 1."""
    return rng.permutation(n)[: math.prod(shape)].reshape(shape)


def once(*shape: int, n: int) -> Input:
    return Input(shape, partial(each_once, n=n), "int64")


def get(index: Callable[..., Any], x: Any, *arrays: Any) -> Any:
    return fn.get_item(x, index(*arrays))


def np_get(index: Callable[..., Any], x: Any, *arrays: Any) -> Any:
    return x[index(*arrays)]


def put(index: Callable[..., Any], x: Any, v: Any, *arrays: Any) -> Any:
    return fn.set_item(x, index(*arrays), v)


def np_put(index: Callable[..., Any], x: Any, v: Any, *arrays: Any) -> Any:
    return np_set_item(x, v, index(*arrays))


MIXED = "array_api_strict takes integer arrays beside integers only, one for every axis"
CPU_ONLY = "array_api_strict writes by a bool array on its device CPU_DEVICE only"
WRITES = "array_api_strict writes nowhere by integer arrays"
ALONE = "array_api_strict takes a bool array by itself only"

in_3, in_4 = indices(5, n=3), indices(5, n=4)

# x, the index, the arrays in it, why array_api_strict refuses it
Arrays = list[Input]
READS: list[tuple[str, tuple[int, ...], Callable[..., Any], Arrays, str]] = [
    ("array", (3, 4), lambda i: i, [in_3], ""),
    ("array-of-two-axes", (3, 4), lambda i: i, [indices(2, 3, n=3)], ""),
    ("array-in-tuple", (3,), lambda i: (i,), [in_3], ""),
    ("array-without-elements", (3, 4), lambda i: i, [indices(0, n=3)], ""),
    ("array-and-ellipsis", (3, 4), lambda i: (i, ...), [in_3], MIXED),
    ("ellipsis-and-array", (2, 3, 4), lambda i: (..., i), [in_4], MIXED),
    ("array-and-slice", (3, 4), lambda i: (i, slice(3, 0, -2)), [in_3], MIXED),
    ("slice-and-array", (3, 4), lambda i: (slice(1, 9), i), [in_4], MIXED),
    ("slice-array-none", (3, 4), lambda i: (ALL, i, None), [in_4], MIXED),
    ("arrays", (3, 4), lambda i, j: (i, j), [indices(7, n=3), indices(7, n=4)], ""),
    ("arrays-broadcast", (3, 4), lambda i, j: (i, j), [indices(5, 1, n=3), indices(3, n=4)], ""),
    ("array-and-integer", (3, 4), lambda i: (i, -1), [in_3], ""),
    ("integer-and-array", (3, 4), lambda i: (1, i), [in_4], ""),
    ("arrays-and-none", (3, 4), lambda i, j: (i, j, None), [in_3, in_4], ""),
    ("none-and-array", (3,), lambda i: (None, i), [in_3], ""),
    ("arrays-apart", (3, 2, 4), lambda i, j: (i, ALL, j), [in_3, in_4], MIXED),
    ("arrays-beside", (2, 3, 4), lambda i, j: (ALL, i, j), [in_3, in_4], MIXED),
    ("none-between-arrays", (2, 3, 4), lambda i, j: (ALL, i, None, j), [in_3, in_4], MIXED),
    ("array-zero-size", (0, 3), lambda i: (ALL, i), [in_3], MIXED),
    ("mask", (3, 4), lambda m: m, [half(3, 4)], ""),
    ("mask-of-a-vector", (5,), lambda m: m, [half(5)], ""),
    ("mask-of-the-first-axis", (4, 3), lambda m: m, [half(4)], ""),
    ("mask-of-the-first-axes", (2, 3, 2), lambda m: m, [half(2, 3)], ""),
    ("mask-of-nothing", (2, 3), lambda m: m, [Input((2, 3), none_true, "bool")], ""),
    ("mask-of-everything", (2, 3), lambda m: m, [Input((2, 3), all_true, "bool")], ""),
    ("mask-in-tuple", (3, 4), lambda m: (m,), [half(3, 4)], ""),
    ("mask-zero-size", (0, 3), lambda m: m, [half(0, 3)], ""),
    ("mask-and-slice", (4, 3), lambda m: (m, slice(1, None)), [half(4)], ALONE),
    ("slice-and-mask", (2, 4), lambda m: (ALL, m), [half(4)], ALONE),
    ("ellipsis-and-mask", (2, 3, 4), lambda m: (..., m), [half(4)], ALONE),
    ("integer-and-mask", (2, 2, 3), lambda m: (1, m), [half(2, 3)], ALONE),
    ("mask-and-array", (2, 2, 4), lambda m, i: (m, i), [half(2, 2), indices(2, n=4)], ALONE),
]  # fmt: skip
for what, s, index, arrays, reason in READS:
    f, ref = partial(get, index), partial(np_get, index)
    row("get_item", what, f, ref, x(*s), *arrays, not_on_strict=reason)
raw = indices(5, n=3, raw=True)
row("get_item", "raw-array", partial(get, lambda i: i), partial(np_get, lambda i: i), x(3, 4), raw)
pair = x(3, 4), half(3, 4, raw=True)
row("get_item", "raw-mask", partial(get, lambda m: m), partial(np_get, lambda m: m), *pair)
pair = x(3, 4), replace(in_3, dtype="int32")
row("get_item", "int32", lambda x, i: x[i, 1], lambda x, i: x[i, 1], *pair)
row("get_item", "list", lambda x: x[[2, 0, 2]], lambda x: x[[2, 0, 2]], x(3, 4))
row(
    "get_item",
    "lists",
    lambda x: x[[2, 0, 2], [1, -1, 1]],
    lambda x: x[[2, 0, 2], [1, -1, 1]],
    x(3, 4),
)
row(
    "get_item",
    "bool-list",
    lambda x: x[[True, False, True]],
    lambda x: x[[True, False, True]],
    x(3, 4),
)
row("get_item", "empty-list", lambda x: x[[]], lambda x: x[[]], x(3, 4))
row(
    "get_item",
    "own-mask",
    lambda x: x[x > 0] ** 2,
    lambda x: x[x > 0] ** 2,
    nz(3, dtype="float64"),
)
pair = few(3, 4), half(3, 4)
row(
    "get_item",
    "mask-of-integers",
    lambda x, m: x[m],
    lambda x, m: x[m],
    *pair,
    order=0,
    dtypes=INTEGERS,
)
for how in LAYOUTS:
    one = x(3, 4, layout=how)
    f = partial(get, lambda i, j: (i, j)), partial(np_get, lambda i, j: (i, j))
    row("get_item", f"arrays-{how}", *f, one, indices(5, n=3, layout=how), in_4)
    f = partial(get, lambda m: m), partial(np_get, lambda m: m)
    row("get_item", f"mask-{how}", *f, one, half(3, 4, layout=how))

# x, the value, the index, the arrays in it, why array_api_strict refuses it
PAIR = [once(2, n=3), once(2, n=4)]
TWICE = [indices(2, 1, n=3), indices(9, n=4)]
PUTS: list[tuple[str, tuple[int, ...], tuple[int, ...], Callable[..., Any], Arrays, str]] = [
    ("array", (3, 4), (2, 4), lambda i: i, [once(2, n=3)], WRITES),
    ("array-value-broadcasts", (4, 3), (3,), lambda i: i, [once(2, n=4)], WRITES),
    ("array-and-slice", (3, 4), (2, 2), lambda i: (i, slice(1, 3)), [once(2, n=3)], WRITES),
    ("slice-array-none", (3, 4), (3, 2, 1), lambda i: (ALL, i, None), [once(2, n=4)], WRITES),
    ("arrays", (3, 4), (3,), lambda i, j: (i, j), [once(3, n=3), once(3, n=4)], WRITES),
    ("broadcast", (3, 4), (2, 3), lambda i, j: (i, j), [once(2, 1, n=3), once(3, n=4)], WRITES),
    ("arrays-apart", (3, 2, 4), (2, 2), lambda i, j: (i, ALL, j), PAIR, WRITES),
    ("none-between", (2, 3, 4), (2, 2, 1), lambda i, j: (ALL, i, None, j), PAIR, WRITES),
    ("none-ellipsis", (3, 2, 4), (2, 1, 2), lambda i, j: (None, i, ..., j), PAIR, WRITES),
    ("array-and-integer", (3, 4), (2,), lambda i: (i, 1), [once(2, n=3)], WRITES),
    ("mask", (3, 4), (6,), lambda m: m, [half(3, 4)], CPU_ONLY),
    ("mask-value-0-d", (3, 4), (), lambda m: m, [half(3, 4)], CPU_ONLY),
    ("mask-value-one", (3, 4), (1,), lambda m: m, [half(3, 4)], CPU_ONLY),
    ("mask-of-the-first-axis", (4, 3), (2, 3), lambda m: m, [half(4)], CPU_ONLY),
    ("mask-of-the-first-axis-value-broadcasts", (4, 3), (3,), lambda m: m, [half(4)], CPU_ONLY),
    ("mask-of-nothing", (2, 3), (0,), lambda m: m, [Input((2, 3), none_true, "bool")], CPU_ONLY),
    ("mask-of-everything", (2, 3), (6,), lambda m: m, [Input((2, 3), all_true, "bool")], CPU_ONLY),
    ("slice-and-mask", (2, 4), (2, 2), lambda m: (ALL, m), [half(4)], ALONE),
    ("repeated", (3, 4), (5, 4), lambda i: i, [in_3], WRITES),
    ("repeated-value-0-d", (3, 4), (), lambda i: i, [in_3], WRITES),
    ("repeated-broadcast", (3, 4), (4,), lambda i: (i, slice(None, None, -1)), [in_3], WRITES),
    ("repeated-of-two-axes", (3,), (2, 4), lambda i: i, [indices(2, 4, n=3)], WRITES),
    ("repeated-arrays", (3, 4), (2, 9), lambda i, j: (i, j), TWICE, WRITES),
    ("repeated-none", (3, 4), (5, 1, 4), lambda i: (i, None), [in_3], WRITES),
    ("repeated-apart", (3, 2, 4), (5, 2), lambda i, j: (i, ALL, j), [in_3, in_4], WRITES),
]  # fmt: skip
for what, s, t, index, arrays, reason in PUTS:
    f, ref = partial(put, index), partial(np_put, index)
    row("set_item", what, f, ref, x(*s), x(*t), *arrays, not_on_strict=reason)
row(
    "set_item",
    "mask-number",
    lambda x, m: fn.set_item(x, m, 2.5),
    lambda x, m: np.where(m, 2.5, x).astype(x.dtype),
    x(3, 4),
    half(3, 4),
    not_on_strict=CPU_ONLY,
)
row(
    "set_item",
    "list",
    lambda x, v: fn.set_item(x, [2, 0], v),
    lambda x, v: np_set_item(x, v, [2, 0]),
    x(3, 4),
    x(2, 4),
    not_on_strict=WRITES,
)
pair = x(3, 4), x(6, grad=False), half(3, 4)
f = partial(put, lambda m: m), partial(np_put, lambda m: m)
row("set_item", "mask-v-without-grad", *f, *pair, not_on_strict=CPU_ONLY)
row(
    "set_item",
    "mask-x-without-grad",
    *f,
    x(3, 4, grad=False),
    x(6),
    half(3, 4),
    not_on_strict=CPU_ONLY,
)
for how in LAYOUTS:
    row(
        "set_item",
        f"mask-{how}",
        *f,
        x(3, 4, layout=how),
        x(6),
        half(3, 4, layout=how),
        not_on_strict=CPU_ONLY,
    )


def np_standing(x: Any, *arrays: Any, index: Callable[..., Any]) -> Any:
    """x[index], but 0 for all but the last of equal places."""
    flat = np.arange(x.size).reshape(x.shape)[index(*arrays)]
    y = x[index(*arrays)]
    for place in np.ndindex(flat.shape):
        later = [p for p in np.ndindex(flat.shape) if p > place]
        if any(flat[p] == flat[place] for p in later):
            y[place] = 0
    return y


IN_9 = [indices(9, n=3), indices(9, n=3)]
STANDING: list[tuple[str, tuple[int, ...], Any, Callable[..., Any], Arrays, str]] = [
    ("once", (3, 4), (Place(1),), lambda i: i, [once(2, n=3)], WRITES),
    ("repeated", (3, 2), (Place(1),), lambda i: i, [in_3], WRITES),
    ("repeated-pairs", (3, 4), (Place(1), Place(1)), lambda i, j: (i, j), IN_9, WRITES),
]
for what, s, frozen, index, arrays, reason in STANDING:
    f = node(fn.SetItemGrad, frozen), partial(np_standing, index=index)
    row("SetItemGrad", what, *f, x(*s), *arrays, not_on_strict=reason)


def np_positions(index: Callable[..., Any], shape: tuple[int, ...], *arrays: Any) -> Any:
    return np.arange(math.prod(shape)).reshape(shape)[index(*arrays)].ravel()


AFTER_1 = Slice(1, None, None)
# the index as a constant, and the same of arrays
PLACES: list[tuple[str, tuple[int, ...], Any, Callable[..., Any], Arrays, str]] = [
    ("arrays", (3, 4), (Place(1), Place(1)), lambda i, j: (i, j), [in_3, in_4], ""),
    ("mask", (3, 4), (Place(2),), lambda m: m, [half(3, 4)], ""),
    ("mask-of-the-first-axis", (4, 3), (Place(1),), lambda m: m, [half(4)], ""),
    ("slice-and-array", (3, 4), (AFTER_1, Place(1)), lambda i: (slice(1, None), i), [in_4], MIXED),
]  # fmt: skip
for what, s, frozen, index, arrays, reason in PLACES:
    how = {"order": 0, "dtypes": ("int64",), "not_on_strict": reason}
    row(
        "Positions",
        what,
        node(fn.Positions, frozen, s),
        partial(np_positions, index, s),
        *arrays,
        **how,
    )


# --- sorting -------------------------------------------------------------------------------------


def np_sort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    y = np.sort(x, axis)
    return np.flip(y, axis) if descending else y


def np_argsort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Equal elements in their order, whichever way they are sorted."""
    return np.argsort(-x if descending else x, axis, stable=True)


SORTS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("vector", (6,), {}),
    ("default-axis", (2, 4), {}),
    ("first-axis", (4, 2), {"axis": 0}),
    ("middle-axis", (2, 4, 2), {"axis": 1}),
    ("negative-axis", (2, 4, 2), {"axis": -2}),
    ("descending", (6,), {"descending": True}),
    ("descending-first-axis", (4, 3), {"axis": 0, "descending": True}),
    ("not-stable", (6,), {"stable": False}),
    ("one", (1,), {}),
    ("zero-size", (0, 3), {}),
    ("zero-size-this-axis", (2, 0), {"descending": True}),
]
for what, s, constants in SORTS:
    row("sort", what, fn.sort, np_sort, sep(*s), **constants)
    row("argsort", what, fn.argsort, np_argsort, sep(*s), order=0, **constants)
    row("argsort", f"ties-{what}", fn.argsort, np_argsort, few(*s), order=0, **constants)
for how in LAYOUTS:
    row("sort", how, fn.sort, np_sort, sep(3, 4, layout=how))
    row("argsort", how, fn.argsort, np_argsort, sep(3, 4, layout=how), order=0)
row("sort", "integers", fn.sort, np_sort, few(9), order=0, dtypes=INTEGERS)
row("argsort", "integers", fn.argsort, np_argsort, few(9), order=0, dtypes=INTEGERS)
row(
    "sort",
    "twice",
    lambda x: fn.sort(fn.sort(x * x, descending=True)),
    lambda x: np.sort(x * x),
    sep(5),
)

for f, ref in ((fn.argmax, np.argmax), (fn.argmin, np.argmin)):
    extreme = partial(row, f.__name__, order=0)
    for what, s, axes in (
        ("flat", (3, 4), {}),
        ("flat-keepdims", (3, 4), {"keepdims": True}),
        ("first-axis", (3, 4), {"axis": 0}),
        ("last-axis-keepdims", (3, 4), {"axis": -1, "keepdims": True}),
        ("middle-axis", (2, 5, 3), {"axis": 1}),
        ("0-d", (), {}),
        ("zero-size-other-axis", (0, 3), {"axis": 1}),
    ):
        extreme(what, f, ref, few(*s), **axes)
    extreme("integers", f, ref, few(9), dtypes=INTEGERS)
    for how in LAYOUTS:
        extreme(how, f, ref, sep(3, 4, layout=how), axis=1)


# --- one-hot vectors, additions at indices -------------------------------------------------------


def places(*shape: int, high: int = 3, **more: Any) -> Input:
    return Input(shape, partial(integers, low=0, high=high), **{"dtype": "int64", **more})


def np_one_hot(indices: Any, classes: int, dtype: str = "float32") -> Any:
    return np.eye(classes)[indices].astype(dtype)


row("one_hot", "vector", fn.one_hot, np_one_hot, places(5), order=0, classes=3)
row("one_hot", "matrix", fn.one_hot, np_one_hot, places(2, 3), order=0, classes=4, dtype="int64")
row("one_hot", "int32-and-0-d", fn.one_hot, np_one_hot, places(dtype="int32"), order=0, classes=3,
    dtype="float64")  # fmt: skip
row("one_hot", "no-indices", fn.one_hot, np_one_hot, places(0), order=0, classes=3)


# --- bits of a key -------------------------------------------------------------------------------


def key_of(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.integers(0, 2**32, size=shape)


def np_keyed_bits(key: Any, first: Any = 0, shape: tuple[int, ...] = ()) -> Any:
    """Threefry-2x32 in the arithmetic of uint32, which wraps around."""
    counters = first + np.arange(math.prod(shape)).reshape(1, -1)
    x, y = (np.concatenate([counters >> 32, counters]) & 0xFFFFFFFF).astype(np.uint32)
    words = key.astype(np.uint32)
    keys = [*words, words[0] ^ words[1] ^ np.uint32(0x1BD11BDA)]
    x, y = x + keys[0], y + keys[1]
    rotations = (13, 15, 26, 6, 17, 29, 16, 24)
    for i in range(20):
        places = np.uint32(rotations[i % 8])
        x = x + y
        y = (y << places | y >> np.uint32(32 - places)) ^ x
        if i % 4 == 3:
            stage = i // 4 + 1
            x, y = x + keys[stage % 3], y + keys[(stage + 1) % 3] + np.uint32(stage)
    return (x.astype(np.int64) << 32 | y).reshape(shape)


def np_keyed_normal(key: Any, shape: tuple[int, ...], dtype: str) -> Any:
    bits = np_keyed_bits(key, shape=shape).astype(np.uint64)
    u, v = ((bits >> np.uint64(32)) + 1.0) / 2**32, (bits % 2**32) / 2**32
    return (np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)).astype(dtype)


def keys(**more: Any) -> Input:
    return Input((2,), key_of, **{"dtype": "int64", **more})


def normal_of(key: Any, shape: tuple[int, ...], dtype: str) -> Any:
    return tn.random.normal(shape, key=key, dtype=dtype)


def bits_from(key: Any, first: Any, shape: tuple[int, ...]) -> Any:
    return fn.keyed_bits(key, shape, first)


for shape in ((5,), (2, 3), (), (0, 2), (40_000,)):
    row("keyed_bits", f"of-shape-{shape}", fn.keyed_bits, np_keyed_bits, keys(), order=0,
        single=True, shape=shape)  # fmt: skip
row("keyed_bits", "uint32-words", fn.keyed_bits, np_keyed_bits, keys(dtype="uint32"), order=0,
    single=True, shape=(3,))  # fmt: skip
row("keyed_bits", "from-a-counter", bits_from, np_keyed_bits, keys(), places(high=9), order=0,
    single=True, shape=(4,))  # fmt: skip
for dtype in ("float64", "float32"):
    row("keyed_bits", f"normal-{dtype}", normal_of, np_keyed_normal, keys(), order=0,
        single=True, shape=(3, 2), dtype=dtype)  # fmt: skip


def np_topk(x: Any, k: int, *, axis: int = -1, largest: bool = True) -> Any:
    order = np.argsort(-x if largest else x, axis, kind="stable")
    indices = np.take(order, np.arange(k), axis)
    return np.take_along_axis(x, indices, axis), indices


many = Input((3, 5), distinct)


def top_values(x: Any, **how: Any) -> Any:
    return fn.topk(x, **how).values


def np_top_values(x: Any, **how: Any) -> Any:
    return np_topk(x, **how)[0]


row("topk", "last-axis", top_values, np_top_values, many, k=2)
row("topk", "axis-0-smallest", top_values, np_top_values, many, k=3, axis=0, largest=False)
row("topk", "none", top_values, np_top_values, many, k=0)
row("topk", "axis-0", fn.topk, np_topk, few(6, 3), k=4, order=0, dtypes=INTEGERS, axis=0)
row("topk", "ties", fn.topk, np_topk, few(3, 6), k=4, order=0, dtypes=INTEGERS)


def np_index_add(x: Any, indices: Any, values: Any, axis: int = 0) -> Any:
    y = np.array(np.broadcast_to(x, x.shape), np.result_type(x, values))
    np.add.at(y, (*(slice(None) for _ in range(axis % x.ndim)), indices), values)
    return y


def np_scatter_add(x: Any, indices: Any, values: Any, axis: int = -1) -> Any:
    y = np.array(x, np.result_type(x, values))
    for place in np.ndindex(*indices.shape):
        target = list(place)
        target[axis] = indices[place]
        y[tuple(target)] += values[place]
    return y


row("index_add", "rows", fn.index_add, np_index_add, x(3, 2), places(5), x(5, 2))
row("index_add", "axis-1", fn.index_add, np_index_add, x(2, 3, 2), places(4), x(2, 4, 2), axis=1)
row(
    "index_add",
    "negative",
    fn.index_add,
    np_index_add,
    x(3),
    Input((4,), partial(integers, low=-3, high=0), dtype="int64"),
    x(4),
)
row("index_add", "no-indices", fn.index_add, np_index_add, x(3, 2), places(0), x(0, 2))
row("scatter_add", "last-axis", fn.scatter_add, np_scatter_add, x(2, 3), places(2, 5), x(2, 5))
row(
    "scatter_add", "axis-0", fn.scatter_add, np_scatter_add, x(3, 2), places(4, 2), x(4, 2), axis=0
)
