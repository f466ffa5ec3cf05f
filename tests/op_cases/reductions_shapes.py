"""Rows of reductions, shapes, indexing, matrix products, dtypes and devices."""

from __future__ import annotations

from functools import partial, wraps
from typing import Any

import numpy as np

import tinynode as tn
from op_cases.rows import (
    ALL,
    INTEGERS,
    LAYOUTS,
    Input,
    distinct,
    few,
    node,
    normal,
    of_list,
    pos,
    row,
    x,
)
from tinynode import functions as fn
from tinynode.functions.indexing import freeze_index

# --- reductions ----------------------------------------------------------------------------------

AXES: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("all", (2, 3), {}),
    ("all-keepdims", (2, 3), {"keepdims": True}),
    ("0-d", (), {}),
    ("first-axis", (2, 3), {"axis": 0}),
    ("last-axis", (2, 3), {"axis": -1}),
    ("last-axis-keepdims", (2, 3), {"axis": -1, "keepdims": True}),
    ("middle-axis", (2, 3, 4), {"axis": 1}),
    ("two-axes", (2, 3, 4), {"axis": (0, 2)}),
    ("two-axes-from-the-end", (2, 3, 4), {"axis": (-1, -3)}),
    ("two-axes-keepdims", (2, 3, 4), {"axis": (2, 0), "keepdims": True}),
    ("one-axes", (1, 3, 1), {"axis": (0, 1)}),
    ("no-axes", (2, 3), {"axis": ()}),
    ("zero-size", (0, 3), {"axis": 1}),
]
for f, ref, make_x in (
    (fn.sum, np.sum, normal),
    (fn.mean, np.mean, normal),
    (fn.max, np.max, distinct),
    (fn.min, np.min, distinct),
):
    for what, s, axes in AXES:
        row(f.__name__, what, f, ref, Input(s, make_x), **axes)
    for how in LAYOUTS:
        row(f.__name__, how, f, ref, Input((3, 4), make_x, layout=how), axis=0)
row("sum", "zero-size-all", fn.sum, np.sum, x(0, 3))
row("sum", "zero-size-first-axis", fn.sum, np.sum, x(0, 3), axis=0)
row("sum", "method", lambda x: x.sum(1, keepdims=True), lambda x: x.sum(1, keepdims=True), x(2, 3))
row("sum", "integers", fn.sum, np.sum, few(2, 3), order=0, dtypes=("int64",), axis=0)
row("mean", "method", lambda x: x.mean((0, 1)), lambda x: x.mean((0, 1)), x(2, 3))
row("max", "integers", fn.max, np.max, few(2, 9), order=0, dtypes=INTEGERS, axis=0)
row("min", "integers", fn.min, np.min, few(2, 9), order=0, dtypes=INTEGERS, axis=0)


def weighted(x: Any, w: Any, **axes: Any) -> Any:
    return fn.mean(x, weights=w, **axes)


def np_weighted(x: Any, w: Any, axis: Any = None, keepdims: bool = False) -> Any:
    w = np.broadcast_to(w, x.shape)
    return (x * w).sum(axis, keepdims=keepdims) / w.sum(axis, keepdims=keepdims)


row("mean", "weights", weighted, np_weighted, x(2, 3), pos(2, 3))
row("mean", "weights-of-the-last-axis", weighted, np_weighted, x(2, 3), pos(3), axis=1)
row("mean", "weights-keepdims", weighted, np_weighted, x(2, 3), pos(2, 1), axis=0, keepdims=True)
row("mean", "weights-array", weighted, np_weighted, x(2, 3), pos(3, raw=True), axis=-1)


# --- shapes --------------------------------------------------------------------------------------

for what, s, shape in (
    ("to-one-axis", (2, 3), (6,)),
    ("to-three-axes", (6, 4), (2, 3, 4)),
    ("worked-out", (2, 6), (3, -1)),
    ("flat", (2, 3), -1),
    ("same-shape", (2, 3), (2, 3)),
    ("from-0-d", (), (1, 1)),
    ("to-0-d", (1,), ()),
    ("zero-size", (0, 3), (3, 0, 2)),
):
    row("reshape", what, fn.reshape, np.reshape, x(*s), shape=shape)
for how in LAYOUTS:
    row("reshape", how, fn.reshape, np.reshape, x(3, 4, layout=how), shape=(2, 6))
row("reshape", "method", lambda x: x.reshape(3, 2), lambda x: x.reshape(3, 2), x(2, 3))

for what, s, order_of_axes in (
    ("matrix", (2, 3), (1, 0)),
    ("rotate", (2, 3, 4), (2, 0, 1)),
    ("rotate-back", (2, 3, 4), (1, 2, 0)),
    ("negative-axes", (2, 3, 4), (-1, 0, -2)),
    ("same-order", (2, 3), (0, 1)),
    ("0-d", (), ()),
    ("zero-size", (0, 3), (1, 0)),
):
    row("permute_dims", what, fn.permute_dims, np.permute_dims, x(*s), axes=order_of_axes)
for how in LAYOUTS:
    one = x(3, 4, layout=how)
    row("permute_dims", how, fn.permute_dims, np.permute_dims, one, axes=(1, 0))
row("permute_dims", "T", lambda x: x.T, lambda x: x.T, x(2, 3, 4))
row(
    "permute_dims",
    "method",
    lambda x: x.transpose(0, 2, 1),
    lambda x: x.transpose(0, 2, 1),
    x(2, 3, 4),
)
row("matrix_transpose", "matrix", fn.matrix_transpose, np.matrix_transpose, x(2, 3))
row("matrix_transpose", "stack", fn.matrix_transpose, np.matrix_transpose, x(4, 2, 3))
row("matrix_transpose", "zero-size", fn.matrix_transpose, np.matrix_transpose, x(0, 3))

# the shape of x, and the shape that it is broadcast to
REPEATS: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
    ("leading-axis", (3,), (2, 3)),
    ("one-axis", (2, 1), (2, 3)),
    ("middle-one-axis", (2, 1, 3), (2, 4, 3)),
    ("leading-and-one-axes", (1, 3, 1), (2, 4, 3, 5)),
    ("from-0-d", (), (2, 3)),
    ("from-size-one", (1, 1), (2, 3)),
    ("size-one-to-size-one", (1,), (1, 1)),
    ("size-one-to-longer", (1,), (1, 4)),
    ("same-shape", (2, 3), (2, 3)),
    ("to-zero-size", (1, 3), (0, 3)),
    ("zero-size", (0, 1), (0, 3)),
]


def np_sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    new = x.ndim - len(shape)
    x = x.sum(tuple(range(new)), dtype=x.dtype)
    for axis, n in enumerate(shape):
        if n == 1:
            x = x.sum(axis, keepdims=True, dtype=x.dtype)
    return x


for what, s, t in REPEATS:
    row("broadcast_to", what, fn.broadcast_to, np.broadcast_to, x(*s), shape=t)
    row("sum_to", what, fn.sum_to, np_sum_to, x(*t), shape=s)
for how in LAYOUTS:
    one = x(3, 1, layout=how)
    row("broadcast_to", how, fn.broadcast_to, np.broadcast_to, one, shape=(2, 3, 4))
    row("sum_to", how, fn.sum_to, np_sum_to, x(3, 4, layout=how), shape=(1, 4))
row("sum_to", "integers", fn.sum_to, np_sum_to, few(2, 3), order=0, dtypes=INTEGERS, shape=(3,))

concat = of_list(fn.concat)
np_concat = of_list(np.concat)
row("concat", "one", concat, np_concat, x(2, 3))
row("concat", "first-axis", concat, np_concat, x(2, 3), x(1, 3), x(4, 3))
row("concat", "last-axis", concat, np_concat, x(2, 3), x(2, 1), axis=-1)
row("concat", "middle-axis", concat, np_concat, x(2, 3, 4), x(2, 1, 4), axis=1)
row("concat", "flattened", concat, np_concat, x(2, 3), x(4), axis=None)
row("concat", "0-d-flattened", concat, np_concat, x(), x(2), axis=None)
row("concat", "empty-part", concat, np_concat, x(2, 3), x(0, 3), x(1, 3))
row("concat", "zero-size", concat, np_concat, x(0, 3), x(0, 3))
row("concat", "array-among-them", concat, np_concat, x(2, 3), x(1, 3, raw=True), x(2, 3))
row("concat", "second-without-grad", concat, np_concat, x(2), x(3, grad=False), x(1))
row(
    "concat",
    "same-variable-twice",
    lambda x: fn.concat([x, x]),
    lambda x: np.concat([x, x]),
    x(2, 3),
)
row("concat", "integers", concat, np_concat, few(2), few(3), order=0, dtypes=INTEGERS)
for how in LAYOUTS:
    row("concat", how, concat, np_concat, x(2, 3, layout=how), x(2, 3, layout=how), axis=1)

SPLITS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("sections", (4, 3), {"indices_or_sections": 2}),
    ("one-section", (4, 3), {"indices_or_sections": 1}),
    ("positions", (5, 2), {"indices_or_sections": [1, 3]}),
    ("last-axis", (2, 6), {"indices_or_sections": 3, "axis": -1}),
    ("middle-axis", (2, 5, 3), {"indices_or_sections": [2], "axis": 1}),
    ("empty-part", (4,), {"indices_or_sections": [2, 2]}),
    ("empty-first-part", (4,), {"indices_or_sections": [0, 3]}),
    ("no-positions", (4,), {"indices_or_sections": []}),
    ("zero-size", (0, 3), {"indices_or_sections": 2}),
]
for what, s, constants in SPLITS:
    row("split", what, fn.split, np.split, x(*s), **constants)
for how in LAYOUTS:
    row("split", how, fn.split, np.split, x(4, 3, layout=how), indices_or_sections=2)
row(
    "split",
    "first-unused",
    lambda x: fn.split(x, [1, 3])[1:],
    lambda x: np.split(x, [1, 3])[1:],
    x(5, 2),
)
row(
    "split",
    "only-the-last",
    lambda x: fn.split(x, 3, 1)[2],
    lambda x: np.split(x, 3, 1)[2],
    x(2, 6),
)
row("split", "only-the-middle", lambda x: fn.split(x, [1, 4])[1], lambda x: x[1:4], x(6, 2))


# --- indexing ------------------------------------------------------------------------------------


@wraps(fn.set_item)
def set_item(x: Any, v: Any, index: Any) -> Any:
    return fn.set_item(x, index, v)


def np_get_item(x: Any, index: Any) -> Any:
    return x[index]


def np_set_item(x: Any, v: Any, index: Any) -> Any:
    y = x.copy()
    y[index] = v
    return y


def np_zeros_with(gy: Any, index: Any, shape: tuple[int, ...]) -> Any:
    return np_set_item(np.zeros(shape, gy.dtype), gy, index)


INDICES: list[tuple[str, tuple[int, ...], Any]] = [
    ("integer", (3, 4), 1),
    ("last-integer", (3, 4), -1),
    ("numpy-integer", (3, 4), np.int64(1)),
    ("all-integers", (3, 4), (1, -2)),
    ("slice", (5,), slice(1, 3)),
    ("open-slice", (5, 2), slice(2, None)),
    ("whole", (2, 3), slice(None)),
    ("step", (5,), slice(None, None, 2)),
    ("negative-step", (5,), slice(None, None, -1)),
    ("negative-step-from", (6, 2), slice(4, 0, -2)),
    ("slice-from-the-end", (5,), slice(-3, -1)),
    ("two-slices", (4, 5), (slice(1, 3), slice(None, None, 2))),
    ("integer-and-slice", (4, 5), (2, slice(1, 4))),
    ("slice-and-integer", (4, 5), (slice(1, 4), -1)),
    ("ellipsis", (2, 3), ...),
    ("ellipsis-first", (2, 3, 4), (..., 1)),
    ("ellipsis-in-between", (2, 3, 4), (1, ..., slice(1, 3))),
    ("ellipsis-for-nothing", (2, 3), (0, ..., 1)),
    ("none-first", (2, 3), None),
    ("none-and-slice", (2, 3), (None, slice(0, 1))),
    ("none-in-between", (2, 3), (slice(None), None, 1)),
    ("none-last", (2, 3), (..., None)),
    ("empty-slice", (4, 2), slice(2, 2)),
    ("slice-past-the-end", (4, 2), slice(2, 9)),
    ("slice-before-the-start", (4, 2), slice(-9, 2)),
    ("slice-behind-the-end", (4, 2), slice(7, 9)),
    ("negative-step-past-both", (4, 2), slice(9, -9, -1)),
    ("negative-step-from-before-the-start", (4, 2), slice(-9, None, -1)),
    ("empty-negative-step", (0, 2), slice(None, None, -1)),
    ("zero-size", (0, 3), (slice(None), 1)),
    ("0-d-empty-tuple", (), ()),
    ("0-d-ellipsis", (), ...),
]
for what, s, index in INDICES:
    selection = np.empty(s)[index].shape
    row("get_item", what, fn.get_item, np_get_item, x(*s), index=index)
    row("set_item", what, set_item, np_set_item, x(*s), x(*selection), index=index)
    frozen, _ = freeze_index("get_item", index, tn.Variable(np.empty(s)))
    grad_of = node(fn.GetItemGrad, frozen, s)
    ref = partial(np_zeros_with, index=index, shape=s)
    row("GetItemGrad", what, grad_of, ref, x(*selection))
for how in LAYOUTS:
    row("get_item", how, fn.get_item, np_get_item, x(3, 4, layout=how), index=(ALL, 1))
    pair = x(3, 4, layout=how), x(3, 2, layout=how)
    row("set_item", how, set_item, np_set_item, *pair, index=(ALL, slice(1, 3)))
row("get_item", "operator", lambda x: x[1:, ::2], lambda x: x[1:, ::2], x(3, 4))
row("get_item", "overlapping-twice", lambda x: x[1:] * x[:-1], lambda x: x[1:] * x[:-1], x(5))
row("get_item", "integers", fn.get_item, np_get_item, few(9), order=0, dtypes=INTEGERS, index=2)
row("set_item", "value-broadcast", set_item, np_set_item, x(3, 4), x(4), index=slice(1, 3))
row("set_item", "value-one-axis", set_item, np_set_item, x(3, 4), x(2, 1), index=slice(1, 3))
row("set_item", "value-0-d", set_item, np_set_item, x(3, 4), x(), index=(ALL, 2))
row("set_item", "value-leading-axis", set_item, np_set_item, x(4), x(1, 2), index=slice(1, 3))
row("set_item", "value-array", set_item, np_set_item, x(3, 4), x(4, raw=True), index=1)
row(
    "set_item",
    "number",
    lambda x: fn.set_item(x, 1, 2.5),
    lambda x: np_set_item(x, 2.5, 1),
    x(3, 4),
)
row("set_item", "x-without-grad", set_item, np_set_item, x(3, 4, grad=False), x(4), index=1)
row("set_item", "v-without-grad", set_item, np_set_item, x(3, 4), x(4, grad=False), index=1)
row(
    "set_item",
    "same-variable",
    lambda x: fn.set_item(x, 1, x[0] * x[1]),
    lambda x: np_set_item(x, x[0] * x[1], 1),
    x(3, 4),
)
for s, t in (("float32", "float64"), ("float64", "float32")):
    pair = x(3, 4, dtype=s), x(4, dtype=t)
    row("set_item", f"{t}-into-{s}", set_item, np_set_item, *pair, single=True, index=1)
row(
    "set_item",
    "integers",
    set_item,
    np_set_item,
    few(9),
    few(2),
    order=0,
    dtypes=INTEGERS,
    index=slice(2, 4),
)


# --- matrix products -----------------------------------------------------------------------------

MATRICES: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [
    ("vectors", (3,), (3,)),
    ("matrix-vector", (2, 3), (3,)),
    ("vector-matrix", (2,), (2, 3)),
    ("matrices", (2, 3), (3, 4)),
    ("row-and-column", (1, 3), (3, 1)),
    ("outer", (2, 1), (1, 3)),
    ("stacks", (5, 2, 3), (5, 3, 4)),
    ("stack-and-matrix", (5, 2, 3), (3, 4)),
    ("matrix-and-stack", (2, 3), (5, 3, 4)),
    ("stack-and-vector", (5, 2, 3), (3,)),
    ("vector-and-stack", (2,), (5, 2, 3)),
    ("stacks-broadcast", (5, 1, 2, 3), (1, 4, 3, 2)),
    ("stack-one-axis", (1, 2, 3), (5, 3, 4)),
    ("no-rows", (0, 3), (3, 4)),
    ("nothing-to-sum", (2, 0), (0, 3)),
    ("no-stack", (0, 2, 3), (3, 4)),
]
for what, s, t in MATRICES:
    row("matmul", what, fn.matmul, np.matmul, x(*s), x(*t))
for how in LAYOUTS:
    row("matmul", how, fn.matmul, np.matmul, x(3, 4, layout=how), x(4, 2, layout=how))
row("matmul", "same-variable-twice", lambda x: fn.matmul(x, x), lambda x: x @ x, x(3, 3))
row("matmul", "with-own-transpose", lambda x: x @ x.T, lambda x: x @ x.T, x(2, 3))
row("matmul", "operator", lambda x, y: x @ y, np.matmul, x(2, 3), x(3, 4))
row("matmul", "array-right", fn.matmul, np.matmul, x(2, 3), x(3, 4, raw=True))
row("matmul", "array-left", fn.matmul, np.matmul, x(2, 3, raw=True), x(3, 4))
row("matmul", "x-without-grad", fn.matmul, np.matmul, x(2, 3, grad=False), x(3, 4))
row("matmul", "y-without-grad", fn.matmul, np.matmul, x(2, 3), x(3, 4, grad=False))
pair = x(2, 3, dtype="float32"), x(3, 4, dtype="float64")
row("matmul", "float32-and-float64", fn.matmul, np.matmul, *pair, single=True)
for flags in ((False, True), (True, False), (True, True)):
    row("MatMulOfTransposed", f"{flags}", node(fn.MatMulOfTransposed, *flags),
        lambda x, y, turn=flags: (x.T if turn[0] else x) @ (y.T if turn[1] else y),
        x(*((3, 2) if flags[0] else (2, 3))), x(*((4, 3) if flags[1] else (3, 4))))  # fmt: skip


def np_linear(x: Any, w: Any, b: Any = 0) -> Any:
    return (x @ w.T + b).astype(x.dtype)


row("linear", "matrix", fn.linear, np_linear, x(5, 3), x(2, 3), x(2))
row("linear", "without-bias", fn.linear, np_linear, x(5, 3), x(2, 3))
row("linear", "vector", fn.linear, np_linear, x(3), x(2, 3), x(2))
row("linear", "vector-without-bias", fn.linear, np_linear, x(3), x(2, 3))
row("linear", "leading-axes", fn.linear, np_linear, x(2, 4, 3), x(5, 3), x(5))
row("linear", "leading-axes-without-bias", fn.linear, np_linear, x(2, 4, 3), x(5, 3))
row("linear", "no-rows", fn.linear, np_linear, x(0, 3), x(2, 3), x(2))
row("linear", "no-features", fn.linear, np_linear, x(4, 0), x(2, 0), x(2))
row("linear", "one-each", fn.linear, np_linear, x(1, 1), x(1, 1), x(1))
row("linear", "data-without-grad", fn.linear, np_linear, x(5, 3, grad=False), x(2, 3), x(2))
row("linear", "only-bias", fn.linear, np_linear, x(5, 3, grad=False), x(2, 3, grad=False), x(2))
row("linear", "array-of-data", fn.linear, np_linear, x(5, 3, raw=True), x(2, 3), x(2))
row("linear", "bias-array", fn.linear, np_linear, x(5, 3), x(2, 3), x(2, raw=True))
row("linear", "same-variable-twice", lambda x: fn.linear(x, x), lambda x: x @ x.T, x(3, 3))
for how in LAYOUTS:
    row("linear", how, fn.linear, np_linear, x(5, 3, layout=how), x(2, 3, layout=how), x(2))


# --- dtypes and devices --------------------------------------------------------------------------


def np_astype(x: Any, dtype: str) -> Any:
    return x.astype(dtype)


def np_same(x: Any, **ignored: Any) -> Any:
    return x


@wraps(fn.to_device)
def to_device(x: Any) -> Any:
    """To a device of another library, whichever this one is on."""
    return fn.to_device(x, "numpy" if str(x.device) != "numpy" else "strict:device1")


wide, narrow = x(2, 3, dtype="float64"), x(2, 3, dtype="float32")
row("astype", "same-dtype", fn.astype, np_astype, wide, dtype="float64")
row(
    "astype",
    "to-float32",
    fn.astype,
    np_astype,
    wide,
    single=True,
    smooth=np_same,
    dtype="float32",
)
row(
    "astype",
    "to-float64",
    fn.astype,
    np_astype,
    narrow,
    single=True,
    smooth=np_same,
    dtype="float64",
)
row("astype", "to-int", fn.astype, np_astype, x(9), order=0, dtype="int32")
row("astype", "to-bool", fn.astype, np_astype, few(9), order=0, dtype="bool")
row("astype", "from-int", fn.astype, np_astype, few(9), order=0, dtypes=INTEGERS, dtype="float64")
row("astype", "method", lambda x: x.astype("float64"), np.copy, wide)
row("to_device", "there", to_device, np.copy, x(2, 3))
row("to_device", "there-and-back", lambda x: to_device(to_device(x) ** 2), lambda x: x**2, x(2, 3))
row("to_device", "0-d", to_device, np.copy, x())
row("to_device", "zero-size", to_device, np.copy, x(0, 3))
row("to_device", "integers", to_device, np.copy, few(9), order=0, dtypes=INTEGERS)
row("to_device", "same-device", lambda x: fn.to_device(x, x.device), np_same, x(2, 3))
