"""The ONNX operators of the functions of the Array API standard.

Requirement: dtypes are those of NumPy. ONNX takes operands of one dtype, so operands are cast.
"""

from __future__ import annotations

import math
from typing import Any

import numpy
from onnx.helper import np_dtype_to_tensor_dtype

from tinynode.interop.onnx.arrays import Graph, OnnxArray, OnnxError, OnnxNamespace, constant, each

ELEMENTWISE = """
    abs:Abs acos:Acos acosh:Acosh add:Add asin:Asin asinh:Asinh atan:Atan atanh:Atanh
    bitwise_and:BitwiseAnd bitwise_invert:BitwiseNot bitwise_or:BitwiseOr bitwise_xor:BitwiseXor
    ceil:Ceil cos:Cos cosh:Cosh divide:Div equal:Equal exp:Exp floor:Floor greater:Greater
    greater_equal:GreaterOrEqual isinf:IsInf isnan:IsNaN less:Less less_equal:LessOrEqual log:Log
    logical_and:And logical_not:Not logical_or:Or logical_xor:Xor maximum:Max minimum:Min
    multiply:Mul negative:Neg pow:Pow reciprocal:Reciprocal round:Round sign:Sign sin:Sin sinh:Sinh
    sqrt:Sqrt subtract:Sub tanh:Tanh
"""
ON_BOOLS = {"BitwiseAnd": "And", "BitwiseNot": "Not", "BitwiseOr": "Or", "BitwiseXor": "Xor"}
REDUCTIONS = "max:ReduceMax mean:ReduceMean min:ReduceMin prod:ReduceProd sum:ReduceSum"
RESHAPING = "broadcast_to:Expand expand_dims:Reshape reshape:Reshape squeeze:Reshape"


def cast(graph: Graph, x: Any, dtype: Any) -> Any:
    """A number or an array, in a dtype."""
    if not isinstance(x, OnnxArray):
        return constant(numpy.asarray(x).astype(dtype))
    if x.dtype == dtype:
        return x
    if x.value is not None:
        return constant(x.value.astype(dtype))
    like = OnnxArray(x.shape, dtype, graph)
    return graph.add("Cast", [x], like, to=np_dtype_to_tensor_dtype(like.dtype))


def integers(*numbers: int) -> OnnxArray:
    """A constant vector of integers, such as a shape."""
    return constant(numpy.asarray(numbers, numpy.int64))


def axes_of(axis: Any, x: OnnxArray) -> list[int]:
    """An axis, several, or all for None; counted from the first."""
    if axis is None:
        return list(range(x.ndim))
    return [n % x.ndim for n in (axis if isinstance(axis, tuple) else (axis,))]


# --- operators: functions of a graph, an object like the result, and the arguments ---------------


class ElementwiseOperator:
    """Operands in one dtype, then the operator."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, graph: Graph, like: Any, *operands: Any) -> Any:
        dtype, kind = like.dtype, self.kind
        if dtype == numpy.bool and kind not in ON_BOOLS.values():  # numbers are compared
            dtype = numpy.result_type(*[getattr(x, "dtype", x) for x in operands])
        if dtype == numpy.bool:
            kind = ON_BOOLS.get(kind, kind)
        if kind in ("Ceil", "Floor", "Round") and dtype.kind in "iu":
            return operands[0]
        return graph.add(kind, [cast(graph, x, dtype) for x in operands], like)


class ReductionOperator:
    """The elements over axes, as one."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(
        self, graph: Graph, like: Any, x: Any, axis: Any = None, keepdims: Any = False, **_: Any
    ) -> Any:
        if x.size == 0:
            fill = numpy.ones if self.kind == "ReduceProd" else numpy.zeros
            return constant(fill(like.shape, like.dtype))
        x = cast(graph, x, like.dtype)
        axes = axes_of(axis, x)
        return graph.add(self.kind, [x, integers(*axes)], like, keepdims=keepdims) if axes else x


class ReshapingOperator:
    """The elements in another shape, or repeated."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, graph: Graph, like: Any, x: Any, *args: Any, **options: Any) -> Any:
        if x.shape == like.shape:
            return x
        return graph.add(self.kind, [x, integers(*like.shape)], like)


class Writers:
    """Functions with an operator that needs more."""

    def asarray(self, graph: Graph, like: Any, x: Any, *args: Any, **options: Any) -> Any:
        return cast(graph, x, like.dtype)

    astype = asarray

    def where(self, graph: Graph, like: Any, condition: Any, *values: Any) -> Any:
        operands = [cast(graph, x, like.dtype) for x in values]
        return graph.add("Where", [cast(graph, condition, numpy.bool), *operands], like)

    def full(self, graph: Graph, like: Any, shape: Any, value: Any, **options: Any) -> Any:
        return graph.add("Expand", [cast(graph, value, like.dtype), integers(*like.shape)], like)

    def permute_dims(self, graph: Graph, like: Any, x: Any, axes: Any) -> Any:
        return graph.add("Transpose", [x], like, perm=axes_of(tuple(axes), x))

    def concat(self, graph: Graph, like: Any, arrays: Any, axis: Any = 0) -> Any:
        parts = [XP.reshape(x, (-1,)) if axis is None else x for x in arrays if x.size]
        parts = [cast(graph, x, like.dtype) for x in parts]
        return graph.add("Concat", parts, like, axis=(axis or 0) % like.ndim)

    def matmul(self, graph: Graph, like: Any, x: Any, y: Any) -> Any:
        if x.size == 0:
            return constant(numpy.zeros(like.shape, like.dtype))
        return graph.add("MatMul", [cast(graph, x, like.dtype), cast(graph, y, like.dtype)], like)

    def take(self, graph: Graph, like: Any, x: Any, indices: Any, axis: Any = None) -> Any:
        return graph.add("Gather", [x, indices], like, axis=axis or 0)

    def take_along_axis(self, graph: Graph, like: Any, x: Any, i: Any, axis: Any = -1) -> Any:
        axis %= x.ndim
        wide = (*like.shape[:axis], x.shape[axis], *like.shape[axis + 1 :])
        operands = [XP.broadcast_to(x, wide), XP.broadcast_to(i, like.shape)]
        return graph.add("GatherElements", operands, like, axis=axis)

    def argmax(self, graph: Graph, like: Any, x: Any, axis: Any = None, **options: Any) -> Any:
        return self._place("ArgMax", graph, like, x, axis)

    def argmin(self, graph: Graph, like: Any, x: Any, axis: Any = None, **options: Any) -> Any:
        return self._place("ArgMin", graph, like, x, axis)

    def _place(self, kind: str, graph: Graph, like: Any, x: Any, axis: Any) -> Any:
        flat, axis = (XP.reshape(x, (-1,)), 0) if axis is None else (x, axis % x.ndim)
        row = OnnxArray((*flat.shape[:axis], 1, *flat.shape[axis + 1 :]), like.dtype, graph)
        return XP.reshape(graph.add(kind, [flat], row, axis=axis), like.shape)

    def sort(self, graph: Graph, like: Any, x: Any, **options: Any) -> Any:
        return self._sorted(graph, x, **options)[0]

    def argsort(self, graph: Graph, like: Any, x: Any, **options: Any) -> Any:
        return self._sorted(graph, x, **options)[1]

    def _sorted(
        self, graph: Graph, x: Any, axis: int = -1, descending: Any = False, **_: Any
    ) -> Any:
        likes = x, OnnxArray(x.shape, numpy.int64, graph)
        operands = [x, integers(x.shape[axis])]
        return graph.add("TopK", operands, *likes, axis=axis, largest=int(descending))

    def cumulative_sum(self, graph: Graph, like: Any, x: Any, axis: int = 0, **_: Any) -> Any:
        return graph.add("CumSum", [cast(graph, x, like.dtype), integers(axis)], like)

    def tril(self, graph: Graph, like: Any, x: Any, k: int = 0) -> Any:
        return graph.add("Trilu", [x, constant(k)], like, upper=0)

    def triu(self, graph: Graph, like: Any, x: Any, k: int = 0) -> Any:
        return graph.add("Trilu", [x, constant(k)], like, upper=1)

    def det(self, graph: Graph, like: Any, x: Any) -> Any:
        return graph.add("Det", [x], like)

    def getitem(self, graph: Graph, like: Any, x: Any, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(one, OnnxArray) for one in keys):
            flat = XP.reshape(x, (-1,))
            return graph.add("Gather", [flat, positions(x.shape, keys)], like, axis=0)
        lengths, cuts = list(x.shape), []
        for axis, item in axes_and_items(keys, x.ndim):
            n = x.shape[axis]
            item = slice(item % n, item % n + 1) if isinstance(item, int) else item
            lengths[axis] = len(range(n)[item])
            start, stop, step = item.indices(n)
            if (start, stop, step) != (0, n, 1):
                cuts.append((start, stop if stop >= 0 else -n - 1, axis, step))
        if cuts:
            bounds = [integers(*numbers) for numbers in zip(*cuts, strict=True)]
            x = graph.add("Slice", [x, *bounds], OnnxArray(lengths, x.dtype, graph))
        return XP.reshape(x, like.shape)


def axes_and_items(keys: tuple[Any, ...], ndim: int) -> list[tuple[int, Any]]:
    """The axis of each integer, slice and array of an index."""
    named = sum(item is not None and item is not ... for item in keys)
    pairs, axis = [], 0
    for item in keys:
        if item is ...:
            axis += ndim - named
        elif item is not None:
            pairs.append((axis, item))
            axis += 1
    return pairs


def positions(shape: tuple[int, ...], keys: tuple[Any, ...]) -> Any:
    """The flat places of the elements that an index names, in the shape of the selection.

    A table has the places for the index 0 in each unknown array. An unknown array adds its numbers
    times the step of its axis.
    """
    arrays = [x for x in keys if isinstance(x, OnnxArray)]
    unknown = [x for x in arrays if x.value is None]
    if any(x.dtype == numpy.bool for x in unknown):
        raise OnnxError("x[mask] has a shape that depends on values")
    table = numpy.arange(math.prod(shape)).reshape(shape)
    total: Any = constant(table[tuple([each(_known_index, item) for item in keys])])
    if not unknown:
        return total
    rank = max(x.ndim for x in arrays)
    empty = numpy.empty((0,) + (1,) * rank, numpy.int64)
    longer = tuple([empty if isinstance(item, OnnxArray) else item for item in keys])
    behind = total.ndim - rank - table[longer].shape.index(0)  # axes behind those of the arrays
    for axis, item in axes_and_items(keys, len(shape)):
        if isinstance(item, OnnxArray) and item.value is None:
            index = XP.where(item < 0, item + shape[axis], item)
            index = XP.reshape(index, item.shape + (1,) * behind)
            total = total + index * math.prod(shape[axis + 1 :])
    return total


def _known_index(x: OnnxArray) -> Any:
    return numpy.zeros(x.shape, numpy.int64) if x.value is None else x.value


# --- functions made of the functions above -------------------------------------------------------


class Composed:
    """Functions without an operator."""

    def positive(self, x: Any) -> Any:
        return x

    def square(self, x: Any) -> Any:
        return x * x

    def expm1(self, x: Any) -> Any:
        """By Kahan: the rounding errors of u - 1 and of log(u) cancel."""
        u = XP.exp(x)
        near = (u - 1) * x / XP.log(u)
        return XP.where(u == 1, x, XP.where(XP.abs(x) > 1, u - 1, near))

    def log1p(self, x: Any) -> Any:
        """Likewise."""
        u = 1 + x
        return XP.where((u == 1) | (u == math.inf), x, XP.log(u) * (x / (u - 1)))

    def log2(self, x: Any) -> Any:
        return XP.log(x) * (1 / math.log(2))

    def log10(self, x: Any) -> Any:
        return XP.log(x) * (1 / math.log(10))

    def tan(self, x: Any) -> Any:
        return XP.sin(x) / XP.cos(x)  # onnxruntime has no Tan of float64

    def hypot(self, x: Any, y: Any) -> Any:
        large = XP.maximum(XP.abs(x), XP.abs(y))
        ratio = XP.minimum(XP.abs(x), XP.abs(y)) / XP.where(large == 0, 1.0, large)
        return large * XP.sqrt(1 + ratio * ratio)

    def signbit(self, x: Any) -> Any:
        return XP.where(x == 0, 1 / x, x) < 0

    def copysign(self, x: Any, y: Any) -> Any:
        signed = XP.where(self.signbit(y), -XP.abs(x), XP.abs(x))
        return XP.astype(signed, XP.result_type(x, y))

    def atan2(self, y: Any, x: Any) -> Any:
        right = XP.atan(y / XP.where(x == 0, 1.0, x))
        left = XP.where(self.signbit(y), right - math.pi, right + math.pi)
        upright = XP.where(x == 0, XP.sign(y) * (math.pi / 2), right)
        return XP.where(x < 0, left, upright)

    def not_equal(self, x: Any, y: Any) -> Any:
        return XP.logical_not(XP.equal(x, y))

    def isfinite(self, x: Any) -> Any:
        return XP.abs(x) < math.inf

    def floor_divide(self, x: Any, y: Any) -> Any:
        return XP.astype(XP.floor(x / y), XP.result_type(x, y))

    def remainder(self, x: Any, y: Any) -> Any:
        return x - self.floor_divide(x, y) * y

    def trunc(self, x: Any) -> Any:
        return XP.sign(x) * XP.floor(XP.abs(x))

    def clip(self, x: Any, min: Any = None, max: Any = None) -> Any:
        x = x if min is None else XP.maximum(x, min)
        return x if max is None else XP.minimum(x, max)

    def matrix_transpose(self, x: Any) -> Any:
        return XP.permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))

    def moveaxis(self, x: Any, source: int, destination: int) -> Any:
        order = [n for n in range(x.ndim) if n != source % x.ndim]
        order.insert(destination % x.ndim, source % x.ndim)
        return XP.permute_dims(x, tuple(order))

    def flip(self, x: Any, *, axis: Any = None) -> Any:
        turned = axes_of(axis, x)
        return x[tuple([slice(None, None, -1 if n in turned else 1) for n in range(x.ndim)])]

    def roll(self, x: Any, shift: Any, *, axis: Any) -> Any:
        shifts = shift if isinstance(shift, tuple) else (shift,)
        for n, place in zip(shifts, axes_of(axis, x), strict=True):
            order = numpy.roll(numpy.arange(x.shape[place]), n)
            x = XP.take(x, integers(*order), axis=place)
        return x

    def stack(self, arrays: Any, *, axis: int = 0) -> Any:
        return XP.concat([XP.expand_dims(x, axis=axis) for x in arrays], axis=axis)

    def broadcast_arrays(self, *arrays: Any) -> Any:
        shape = numpy.broadcast_shapes(*[x.shape for x in arrays])
        return [XP.broadcast_to(x, shape) for x in arrays]

    def cross(self, x: Any, y: Any, *, axis: int = -1) -> Any:
        (x1, y1), (x2, y2) = (
            [self.roll(z, n, axis=axis) for z in self.broadcast_arrays(x, y)] for n in (-1, 1)
        )
        return x1 * y2 - x2 * y1

    def vecdot(self, x: Any, y: Any, *, axis: int = -1) -> Any:
        return XP.sum(x * y, axis=axis)

    def vector_norm(self, x: Any, **options: Any) -> Any:
        return XP.sqrt(XP.sum(x * x, **options))

    def cumulative_prod(self, x: Any, *, axis: int = 0) -> Any:
        x = XP.astype(
            x, numpy.prod(numpy.ones(1, x.dtype)).dtype
        )  # of small integers, larger ones
        parts = [XP.take(x, integers(i), axis=axis) for i in range(x.shape[axis])]
        for i in range(1, len(parts)):
            parts[i] = parts[i - 1] * parts[i]
        return XP.concat(parts, axis=axis) if parts else x

    def count_nonzero(self, x: Any, **options: Any) -> Any:
        return XP.sum(XP.astype(x != 0, XP.int64), **options)

    def any(self, x: Any, **options: Any) -> Any:
        return self.count_nonzero(x, **options) > 0

    def all(self, x: Any, **options: Any) -> Any:
        return self.count_nonzero(XP.logical_not(x), **options) == 0


WRITERS: dict[str, Any] = {
    name: getattr(Writers(), name) for name in dir(Writers) if not name.startswith("_")
}
for names, rule in (
    (ELEMENTWISE, ElementwiseOperator),
    (REDUCTIONS, ReductionOperator),
    (RESHAPING, ReshapingOperator),
):
    for name, kind in (pair.split(":") for pair in names.split()):
        WRITERS[name] = rule(kind)
XP: Any = OnnxNamespace(WRITERS, Composed())
"""The namespace of the arrays."""
