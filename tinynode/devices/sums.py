"""Sums of raw arrays whose error does not grow with the number of rows.

Requirement: NumPy adds up neighbours in memory pairwise, and rows one after another. In float32
the sum of 10^6 rows of 0.1 is then 1 % off: the total is so large that each row is rounded. So the
rows of NumPy's arrays are added up in blocks. The sums of the blocks are rows again, and so on:
each number takes part in a few short sums. Other libraries add up in blocks themselves.

Short rows are also slow in NumPy, since each row is a loop of its own. Rows side by side in memory
count as a single long row. A sum over 10^6 rows of two numbers takes a tenth of the time.
"""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from tinynode.devices.arrays import is_float16, namespace_of
from tinynode.devices.protocol import Array, Arrays

LONGEST = 128
"""The most numbers that NumPy may add up one after another; its pairwise sums do as many."""
LONGEST_RUNNING = 1024
"""The most numbers of a plain running sum: blocks take up to twice the time."""
BLOCK = 32
"""The most rows of a block. The sums of shorter blocks take long to write and to read."""
SIDE = 1024
"""The numbers in rows side by side: 4 KB of float32 stay in the fastest cache."""
PRODUCTS = 1 << 14
"""The most products of neighbours in a call of BLAS, which has many lanes."""
SHORT = 32
"""The length of a row from which a loop of NumPy over the row is no waste."""


def is_numpys(x: object) -> bool:
    """True for arrays and scalars of NumPy; False for the arrays of libraries built on NumPy's."""
    return type(x) in (numpy.ndarray, numpy.memmap) or isinstance(x, numpy.generic)


def sum_array(x: Array, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Array:
    """The sum over an axis, several, or all, in a dtype; float16 is added up in float32."""
    if is_numpys(x):
        is_half = x.dtype.char == "e" and dtype in (None, x.dtype)
        total = add_up(x, axis, keepdims, dtype=numpy.float32 if is_half else dtype)
        return numpy.asarray(total, dtype=x.dtype) if is_half else total
    xp, x = namespace_of(x), counts_of(x)
    is_half = is_float16(x) and dtype in (None, x.dtype)
    total = xp.sum(x, axis=axis, keepdims=keepdims, dtype=xp.float32 if is_half else dtype)
    return xp.asarray(total, dtype=x.dtype) if is_half else total


def counts_of(x: Array) -> Array:
    """Bools as 0 and 1, for sums and products; the standard has none of bools."""
    if is_numpys(x):
        return x
    xp = namespace_of(x)
    return xp.astype(x, xp.int64) if x.dtype == xp.bool else x


def mean_array(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """The mean over an axis, several, or all, of a floating array."""
    if not is_numpys(x) or not x.size:
        return namespace_of(x).mean(x, axis=axis, keepdims=keepdims)
    wide = numpy.float32 if x.dtype.char == "e" else None
    total = add_up(x, axis, keepdims, dtype=wide)
    return numpy.asarray(total / (x.size // total.size), dtype=x.dtype)


def add_up(x: Any, axis: Any, keepdims: Any, *, dtype: Any) -> Any:
    """The sum of NumPy's array; long sums of floating numbers that lie apart, in blocks."""
    if x.size > LONGEST and x.dtype.kind in "fc" and axis != ():
        axes = _axes_of(x, axis)
        if not x.flags.c_contiguous or axes != tuple(range(axes[0], axes[-1] + 1)):
            return _sum_in_order(x, axes, keepdims, dtype)
        length = math.prod([x.shape[i] for i in axes])
        if length > LONGEST and axes[-1] < x.ndim - 1:
            shape = (*x.shape[: axes[0]], length, *x.shape[axes[-1] + 1 :])
            total = _sum_along(x.reshape(shape), axes[0], dtype)
            return numpy.expand_dims(total, axes) if keepdims else total
    return numpy.add.reduce(x, axis, dtype, keepdims=keepdims)


def _axes_of(x: Any, axis: Any) -> tuple[int, ...]:
    """The axes from 0 on, in order."""
    if axis is None:
        return tuple(range(x.ndim))
    if isinstance(axis, tuple):
        return tuple(sorted([i % x.ndim for i in axis]))
    return (axis % x.ndim,)


def _sum_in_order(x: Any, axes: tuple[int, ...], keepdims: bool, dtype: Any) -> Any:
    """The sum over axes of any layout, from the innermost in memory to the outermost."""
    order = sorted(range(x.ndim), key=[-abs(step) for step in x.strides].__getitem__)
    runs = _runs(x, axes, order)
    total = x.transpose(order).reshape([n for n, _ in runs])
    summed = [place for place, run in enumerate(runs) if run[1]]
    apart = summed[:-1] if runs[-1][1] else summed  # NumPy adds up the last run pairwise
    if math.prod([runs[place][0] for place in apart]) <= LONGEST:
        total = numpy.add.reduce(total, tuple(summed), dtype)
    else:
        for place in reversed(summed):
            total = _sum_along(total, place, dtype)
    total = total.reshape([1 if i in axes else x.shape[i] for i in order])
    total = total.transpose(sorted(range(x.ndim), key=order.__getitem__))
    return total if keepdims else total.squeeze(axes)


def _runs(x: Any, axes: tuple[int, ...], order: list[int]) -> list[tuple[int, bool]]:
    """The axes in the order of memory: length and whether summed; neighbours alike are joined."""
    runs: list[tuple[int, bool]] = []
    before = 0  # the step of the axis before
    for i in order:
        n, step, is_summed = x.shape[i], x.strides[i], i in axes
        if n == 1:
            continue
        if runs and runs[-1][1] == is_summed and before == n * step:
            n *= runs.pop()[0]
        runs.append((n, is_summed))
        before = step
    return runs


def _sum_along(y: Any, axis: int, dtype: Any) -> Any:
    """The sum over an axis; the axes of y are in the order of memory."""
    row = math.prod(y.shape[axis + 1 :])
    while row > 1 and y.shape[axis] > BLOCK:
        y = _sums_of_blocks(y, axis, row, dtype)
    return numpy.add.reduce(y, axis, dtype)


def _sums_of_blocks(y: Any, axis: int, row: int, dtype: Any) -> Any:
    """The rows of an axis added up in blocks: (..., n, ...) -> (..., count * side, ...).

    An axis of length n becomes (count, rows of a block, side), and the sum is over the rows of a
    block. ``side`` are rows side by side in memory. Rows that are left over go to the first sums.
    """
    n, before, after = y.shape[axis], y.shape[:axis], y.shape[axis + 1 :]
    side = max(1, min(SIDE // row, 2 * n // BLOCK))
    most = BLOCK if side == 1 else BLOCK // 2
    count = -(-n // (side * most))
    size = n // (side * count)
    used = count * size * side
    along = (slice(None),) * axis
    blocks = y[(*along, slice(used))].reshape(*before, count, size, side, *after)
    sums = numpy.add.reduce(blocks, axis + 1, dtype).reshape(*before, count * side, *after)
    if used < n:
        sums[(*along, slice(n - used))] += y[(*along, slice(used, None))]
    return sums


def running_sum_array(x: Array, axis: int, longest: int = LONGEST_RUNNING) -> Array:
    """The running sums along an axis; of many floating numbers in NumPy in blocks.

    To the running sums of a block, the sum of the blocks before is added.
    """
    n, before, after = x.shape[axis], x.shape[:axis], x.shape[axis + 1 :]
    if not is_numpys(x) or x.dtype.kind not in "fc" or n <= longest:
        return namespace_of(x).cumulative_sum(counts_of(x), axis=axis)
    count = n // LONGEST
    used = count * LONGEST
    sums: Any = numpy.empty(x.shape, x.dtype)
    along = (slice(None),) * axis
    head, tail = (*along, slice(used)), (*along, slice(used, None))
    shape = (*before, count, LONGEST, *after)
    blocks = sums[head].reshape(shape)
    numpy.add.accumulate(x[head].reshape(shape), axis + 1, None, blocks)
    numpy.add.accumulate(x[tail], axis, None, sums[tail])
    starts = running_sum_array(blocks[(*along, slice(None), -1)], axis, LONGEST)
    _add_to_rows(blocks[(*along, slice(1, None))], starts[(*along, slice(-1))], axis + 1)
    sums[tail] += starts[(*along, slice(-1, None))]
    return sums


def _add_to_rows(y: Any, rows: Any, axis: int) -> None:
    """Add rows to y, which has one axis more. Short rows are repeated first, side by side."""
    row, length = math.prod(y.shape[axis + 1 :]), y.shape[axis]
    wide = numpy.expand_dims(rows, axis)
    if 1 < row < SHORT:
        y = y.reshape(*y.shape[:axis], length * row)
        wide = numpy.repeat(wide, length, axis).reshape(y.shape)
    y += wide


# --- sums of products ----------------------------------------------------------------------------


def vecdot_array(x: Array, y: Array, axis: int) -> Array:
    """The sum of conj(x) * y over an axis, counted from the last."""
    xp, n = namespace_of(x), x.shape[axis]
    if not is_numpys(x) or n <= LONGEST or x.dtype.kind not in "fc":
        return xp.vecdot(x, y, axis=axis)
    are_neighbours = all(z.strides[axis] == z.itemsize for z in (x, y))
    if are_neighbours and n <= PRODUCTS:
        return xp.vecdot(x, y, axis=axis)
    size = PRODUCTS // 16 if are_neighbours else LONGEST
    x, y = numpy.moveaxis(x, axis, -1), numpy.moveaxis(y, axis, -1)
    used = n - n % size
    blocks = [z[..., :used].reshape(*z.shape[:-1], -1, size) for z in (x, y)]
    return sum_array(xp.vecdot(*blocks), -1) + xp.vecdot(x[..., used:], y[..., used:])


def einsum_array(subscripts: Sequence[str], output: str, arrays: Arrays) -> Array:
    """The sum of products of one or two arrays by subscripts; no label twice in an array.

    In NumPy, the labels of one array alone are summed first, and a long sum goes in blocks. Matrix
    products stay as they are.
    """
    xp = namespace_of(arrays[0])
    if not is_numpys(arrays[0]) or arrays[0].dtype.kind not in "fc":
        return xp.einsum(f"{','.join(subscripts)}->{output}", *arrays)
    plan = _order_of_sums(tuple(subscripts), output, tuple([x.shape for x in arrays]))
    operands = [
        numpy.asarray(sum_array(x, axes)) if axes else x
        for x, axes in zip(arrays, plan.own_axes, strict=True)
    ]
    if plan.are_rows:
        x, y = operands
        if y.ndim != len(output) + 1:
            x, y = (z.reshape(*z.shape[: len(output)], -1) for z in operands)
        return vecdot_array(x.conj() if x.dtype.kind == "c" else x, y, -1)
    if plan.needs_blocks:
        return _einsum_in_blocks(plan.texts, output, operands)
    return xp.einsum(f"{','.join(plan.texts)}->{output}", *operands)


class _OrderOfSums(NamedTuple):
    """How a sum of products goes: first over an operand's own axes, then as rows or in blocks."""

    own_axes: tuple[tuple[int, ...], ...]
    texts: tuple[str, ...]
    are_rows: bool = False
    needs_blocks: bool = False


@functools.lru_cache(maxsize=1024)
def _order_of_sums(
    texts: tuple[str, ...], output: str, shapes: tuple[tuple[int, ...], ...]
) -> _OrderOfSums:
    """The order that keeps the error of a sum small, by subscripts and shapes."""
    lengths: dict[str, int] = {}
    for text, shape in zip(texts, shapes, strict=True):
        lengths.update(zip(text, shape, strict=True))
    if _terms(texts, output, lengths) <= LONGEST:
        return _OrderOfSums(tuple([() for _ in texts]), texts)
    own_axes, shared = [], []
    for i, text in enumerate(texts):
        known = "".join([output, *texts[:i], *texts[i + 1 :]])
        own_axes.append(tuple([axis for axis, label in enumerate(text) if label not in known]))
        shared.append("".join([label for label in text if label in known]))
    found = _OrderOfSums(tuple(own_axes), tuple(shared))
    if len(shared) == 2 and shared[0] == shared[1] and shared[0].startswith(output):
        return found._replace(are_rows=True)
    is_product = all(set(x) - set(y) for x, y in zip(shared, reversed(shared), strict=True))
    is_long = _terms(shared, output, lengths) > LONGEST
    return found._replace(needs_blocks=is_long and not is_product)


def _terms(texts: Sequence[str], output: str, lengths: dict[str, int]) -> int:
    """The number of terms of each sum."""
    return math.prod([lengths[label] for label in set("".join(texts)) - set(output)])


def _einsum_in_blocks(texts: Sequence[str], output: str, operands: list[Any]) -> Any:
    """The sum over labels of both arrays: blocks of the longest label, then ``sum_array``."""
    lengths = dict(zip(texts[0], operands[0].shape, strict=True))
    summed = "".join([label for label in texts[0] if label not in output])
    label = max(summed, key=lengths.__getitem__)
    size = min(lengths[label], LONGEST)
    used = lengths[label] // size * size
    block = next(letter for letter in string.ascii_letters if letter not in "".join(texts))
    parts, rests, wide_texts = [], [], []
    for text, x in zip(texts, operands, strict=True):
        axis = text.index(label)
        part, rest = numpy.split(x, [used], axis)
        parts.append(part.reshape(*x.shape[:axis], -1, size, *x.shape[axis + 1 :]))
        rests.append(rest)
        wide_texts.append(text.replace(label, block + label))
    kept = output + block + summed.replace(label, "")
    sums = numpy.einsum(f"{','.join(wide_texts)}->{kept}", *parts)
    total = sum_array(sums, tuple(range(len(output), len(kept))))
    return total + numpy.einsum(f"{','.join(texts)}->{output}", *rests)
