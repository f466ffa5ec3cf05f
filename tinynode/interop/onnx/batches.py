"""Models for batches of any length.

Requirement: functions of tinynode read shapes as numbers. So a function is written for three
lengths of the batch, and the graphs are compared. They may differ in constants: the shape of a
reshape, the number of rows. Such a constant becomes operators that compute it from the length n:

    a + b n   as in a shape      c / n   as in a mean      a + i b for i < n   as in arange(n)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tinynode.core.conversion import asarray
from tinynode.core.variable import Variable
from tinynode.devices import is_floating, to_host
from tinynode.errors import OperandError, describe, short_text
from tinynode.interop.onnx.arrays import Graph, OnnxArray, OnnxError, constant
from tinynode.interop.onnx.operators import XP, cast, integers
from tinynode.net.structure import flatten

LENGTHS = (37, 41, 43)
"""Three lengths that are rarely the length of another axis."""


def any_length(
    write: Callable[[Sequence[Any]], Any], args: Sequence[Any], batch_axis: Any
) -> tuple[Any, list[list[Any]]]:
    """A function written for any length of the batch, and the shapes of inputs and outputs.

    Args:
        write: writes the function for the shapes of arguments.
        args: the examples.
        batch_axis: the axis of the batch, for all examples, or an entry for each.

    Raises:
        OnnxError: the function depends on the length in another way.
        OperandError: an example does not have the axis.
    """
    axes = _axes(args, batch_axis)
    pairs = list(zip(args, axes, strict=True))
    three = [write([_with_length(x, axis, n) for x, axis in pairs]) for n in LENGTHS]
    graphs = [one.graph for one in three]
    for nodes in itertools.zip_longest(*[graph.nodes for graph in graphs]):
        if any(node != nodes[0] for node in nodes):
            raise _depends(max([node.name for node in nodes if node is not None]))
    inputs = zip(three[0].inputs.values(), axes, strict=False)
    x, axis = next((x, axis) for x, axis in inputs if axis is not None)
    _compute_constants(graphs, x, axis % x.ndim)
    shapes = []
    for same in zip(*[one.shapes() for one in three], strict=True):
        shapes.append([_length(lengths) for lengths in zip(*same, strict=True)])
    return three[0], shapes


def compare_lengths(model: Any, values: Any, args: Sequence[Any], batch_axis: Any) -> None:
    """Run the model in Python for short batches, and compare with the function.

    A function may decide by the length: ``x / min(len(x), 32)`` has one graph for all long
    batches. A length that the function refuses is left out, and so is one that onnx cannot run.

    Raises:
        OnnxError: the model gives other numbers.
    """
    from onnx.reference import ReferenceEvaluator  # takes long to import

    axes = _axes(args, batch_axis)
    lengths = [x.shape[axis] for x, axis in zip(args, axes, strict=True) if axis is not None]
    runner = ReferenceEvaluator(model)
    names = [one.name for one in model.graph.input]
    for n in sorted({1, 2, 4, 16, *lengths}):
        given = [_noisy(_with_length(x, axis, n)) for x, axis in zip(args, axes, strict=True)]
        leaves = [to_host(x.raw) for x in flatten(tuple(given), "onnx_model")[0]]
        try:
            with numpy.errstate(all="ignore"):
                expected = values(given)
                found = runner.run(None, dict(zip(names, leaves, strict=True)))
        except Exception:
            continue
        for output, got, wanted in zip(model.graph.output, found, expected, strict=True):
            if not _agree(numpy.asarray(got), wanted):
                raise OnnxError(
                    f"onnx_model: {output.name} would be wrong for {n} examples, since the "
                    "function decides by the length of the batch. Leave batch_axis out: the model "
                    "then has the shapes of the examples."
                )


def _agree(got: Any, wanted: Any) -> bool:
    """True for arrays that are equal but for rounding."""
    if got.shape != wanted.shape:
        return False
    finite = numpy.abs(wanted[numpy.isfinite(wanted)]) if wanted.dtype.kind == "f" else wanted
    scale = float(numpy.max(numpy.abs(finite), initial=0.0))
    return bool(numpy.allclose(got, wanted, 1e-3, 1e-3 * scale, equal_nan=True))


def _noisy(x: Any) -> Any:
    """A floating example with noise added: an example is often zeros."""
    if not isinstance(x, Variable) or not is_floating(x.raw):
        return x
    host = to_host(x.raw)
    noise = numpy.random.default_rng(0).random(host.shape) / 2
    return asarray(
        (host + noise).astype(host.dtype), device=x.device, requires_grad=x.requires_grad
    )


def _axes(args: Sequence[Any], batch_axis: Any) -> list[int | None]:
    """The axis of the batch of each example.

    Raises:
        OperandError: ``batch_axis`` is no integer, nor an integer or None for each example.
    """
    axes = list(batch_axis) if isinstance(batch_axis, tuple | list) else [batch_axis] * len(args)
    are_axes = all(axis is None or type(axis) is int for axis in axes)
    if not are_axes or len(axes) != len(args) or all(axis is None for axis in axes):
        raise OperandError(
            f"onnx_model: batch_axis is {short_text(batch_axis)}, and there are {len(args)} "
            "examples. Give an integer, or a tuple with an integer or None for each example."
        )
    return axes


def _with_length(x: Any, axis: int | None, n: int) -> Any:
    """An example with n entries along an axis: its own entries, repeated."""
    if axis is None:
        return x
    if not isinstance(x, Variable) or not -x.ndim <= axis < x.ndim or 0 in x.shape:
        raise OperandError(
            f"onnx_model: batch_axis is {axis}, and an example is {describe(x)}. Write a tuple, "
            "with None for each example without that axis."
        )
    host = to_host(x.raw)
    host = numpy.take(host, numpy.arange(n) % x.shape[axis], axis=axis)
    return asarray(host, device=x.device, requires_grad=x.requires_grad)


def _length(lengths: tuple[int, ...]) -> int | str | None:
    """The length of an axis in the model: a number, ``batch``, or None for another unknown."""
    if len(set(lengths)) == 1:
        return lengths[0]
    return "batch" if lengths == LENGTHS else None


def _compute_constants(graphs: list[Graph], x: OnnxArray, axis: int) -> None:
    """Compute, in the first graph, the constants that depend on the length of an axis of x."""
    first, head = graphs[0], Graph()
    head.label = "batch"
    n = head.add("Shape", [x], OnnxArray((1,), numpy.int64, head), start=axis, end=axis + 1)
    names: dict[str, str] = {}
    known: dict[Any, str] = {}  # by the three values
    for name in list(first.constants):
        values = [graph.constants.get(name, constant(0).value) for graph in graphs]
        if all(numpy.array_equal(value, values[0], equal_nan=True) for value in values):
            continue
        key = values[0].dtype, *[value.tobytes() for value in values]
        if key not in known:
            is_rows = len({value.shape for value in values}) > 1
            computed = _rows(values, n) if is_rows else _numbers(values, n)
            if computed is None:
                raise _depends(name)
            known[key] = computed.name
        names[name] = known[key]
        del first.constants[name]
    for node in first.nodes:
        node.input[:] = [names.get(name, name) for name in node.input]
    first.nodes[:0] = head.nodes
    first.constants |= head.constants


def _numbers(values: Sequence[Any], n: Any) -> Any:
    """a + b n or c / n, computed from n; None for other values."""
    wide = numpy.asarray(values)
    ndim = wide.ndim - 1
    lengths = numpy.asarray(LENGTHS).reshape(-1, *[1] * ndim)
    length = cast(n.graph, XP.reshape(n, (1,) * ndim), wide.dtype)
    slope = ((wide[1] - wide[0]) / (LENGTHS[1] - LENGTHS[0])).astype(wide.dtype)
    start = wide[0] - slope * LENGTHS[0]
    if numpy.allclose(wide, start + slope * lengths, 1e-6, 0):
        return length * constant(slope) + constant(start)
    shares = wide * lengths
    is_share = wide.dtype.kind == "f" and numpy.allclose(shares, shares[0], 1e-6, 0)
    return constant(shares[0].astype(wide.dtype)) / length if is_share else None


def _rows(values: list[Any], n: Any) -> Any:
    """a + i b along one axis, with n or several times n rows, from n; None for other values."""
    shapes = [value.shape for value in values]
    if len({len(shape) for shape in shapes}) > 1 or values[0].dtype.kind not in "iuf":
        return None
    axes = [k for k, lengths in enumerate(zip(*shapes, strict=True)) if len(set(lengths)) > 1]
    axis = axes[0]
    count = _numbers([numpy.int64(shape[axis]) for shape in shapes], n)
    if len(axes) > 1 or count is None:
        return None
    tables = [numpy.moveaxis(value, axis, 0) for value in values]
    start, step = tables[0][0], tables[0][1] - tables[0][0]
    for rows in tables:
        i = numpy.arange(len(rows)).reshape(-1, *[1] * start.ndim)
        if not numpy.allclose(rows, start + i * step, 1e-6, 0):
            return None
    like = OnnxArray(tables[0].shape[:1], numpy.int64, n.graph)
    numbers = n.graph.add("Range", [constant(0), count, constant(1)], like)
    like = OnnxArray((*like.shape, *[1] * start.ndim), numpy.int64, n.graph)
    numbers = n.graph.add("Reshape", [numbers, integers(-1, *[1] * start.ndim)], like)
    found = cast(n.graph, numbers, start.dtype) * constant(step) + constant(start)
    return XP.moveaxis(found, 0, axis) if axis else found


def _depends(name: str) -> OnnxError:
    return OnnxError(
        f"onnx_model: {name.partition('/')[0]} depends on the length of the batch in a way that "
        "cannot be written. Leave batch_axis out: the model then has the shapes of the examples."
    )
