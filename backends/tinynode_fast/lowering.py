"""Lowering: operators of a net become calls of NumPy that write to memory of a plan.

Requirement: a run of a net costs NumPy's functions and next to nothing else. So an operator
becomes calls ``function(*reads, *writes)`` and views. Elementwise calls may run block by block;
a view of known memory is made once. An operator without a rule runs as a FunctionNode, by its
kernel or its portable forward.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter, methodcaller
from typing import Any, NamedTuple, TypeAlias

import numpy

from tinynode import functions
from tinynode.functions import convolution
from tinynode.net.helpers import StopGradient
from tinynode.net.operator import EMPTY, Operator
from tinynode.net.passes import ArraySpec, MatMulOfTransposed, TimesNumber, node_class_of
from tinynode.nn.updates import AdamUpdate, MomentumUpdate, SGDUpdate
from tinynode_fast import rows, updates
from tinynode_fast.blocks import number
from tinynode_fast.images import CHANNELS_LAST
from tinynode_fast.kernel import FLOATS, Elementwise
from tinynode_fast.table import KERNELS

Names: TypeAlias = tuple[str, ...]


class Call(NamedTuple):
    """``function(*reads, *writes)``: the last arguments are the results.

    ``elementwise``: any slice of the one result depends on the same slices of the reads.
    """

    function: Any
    reads: Names
    writes: Names
    elementwise: bool = False


class View(NamedTuple):
    """``write = function(read)``: the same memory in another shape or order."""

    function: Callable[[Any], Any]
    reads: Names
    writes: Names


class OpaqueCall(NamedTuple):
    """``writes = operator(reads)``: the operator runs as a FunctionNode."""

    operator: Operator
    reads: Names
    writes: Names


Action: TypeAlias = Call | View | OpaqueCall
Actions: TypeAlias = Iterator[Action]


# --- functions that write to their last argument -------------------------------------------------


@dataclass(frozen=True)
class SumOver:
    """The sum over axes."""

    axes: tuple[int, ...]
    keepdims: bool

    def __call__(self, x: Any, out: Any) -> None:
        numpy.add.reduce(x, axis=self.axes, out=out, keepdims=self.keepdims)


def join(function: Callable[..., Any], axis: int, *arrays: Any) -> None:
    """``numpy.concatenate`` or ``numpy.stack`` of all arrays but the last."""
    function(arrays[:-1], axis=axis, out=arrays[-1])


def sum_channels(x: Any, out: Any) -> None:
    """The sum over all axes but the channels: a product with ones, by BLAS."""
    matrix = x.transpose(CHANNELS_LAST).reshape(-1, x.shape[1])
    numpy.matmul(numpy.ones(len(matrix), x.dtype), matrix, out.reshape(-1))


def maximum(x: Any, y: Any, out: Any) -> None:
    """max(x, y): NumPy takes ``out`` by name alone."""
    numpy.maximum(x, y, out=out)


def minimum(x: Any, y: Any, out: Any) -> None:
    """min(x, y)."""
    numpy.minimum(x, y, out=out)


def relu(x: Any, out: Any) -> None:
    """max(x, 0)."""
    numpy.maximum(x, number(0.0, x.dtype), out=out)


def relu_gradient(y: Any, gy: Any, out: Any) -> None:
    """gy where y > 0, else 0, also where gy is infinite or NaN: all of its bits, or none."""
    bits = numpy.int32 if out.dtype.itemsize == 4 else numpy.int64
    ones = numpy.negative(numpy.greater(y, 0, order="K").view(numpy.int8))  # -1: every bit
    numpy.bitwise_and(gy.view(bits), ones, out.view(bits))


_SAME = "Abs Add Cos Divide Exp Log Multiply Negative Reciprocal Sin Sqrt Square Subtract Tanh"
ELEMENTWISE: dict[type, Any] = {
    **{getattr(functions, name): getattr(numpy, name.lower()) for name in _SAME.split()},
    functions.Maximum: maximum,
    functions.Minimum: minimum,
    functions.ReLU: relu,
    functions.ReLUGrad: relu_gradient,
    **{kind: kernel for kind, kernel in KERNELS.items() if isinstance(kernel, Elementwise)},
}
"""The functions of a single elementwise call; operands of equal dtype broadcast in NumPy's."""


PRODUCTS = {functions.Linear, functions.MatMul, MatMulOfTransposed}


def free_matrices(operators: Sequence[Operator], outputs: Collection[str]) -> set[str]:
    """The values that may lie in memory column by column: no reader wants whole rows.

    Such readers are products, elementwise functions with a free result, and sums of columns.
    """
    bound = set(outputs)
    for operator in reversed(operators):
        kind = node_class_of(operator)
        is_free = kind in PRODUCTS or (
            kind in ELEMENTWISE and operator.output_names[0] not in bound
        )
        if not is_free and not (kind is functions.Sum and operator.attrs["axes"] == (0,)):
            bound.update(operator.input_names)
    return {name for operator in operators for name in operator.output_names} - bound


class Lowering:
    """The actions for the operators that ``lower`` got.

    Attributes:
        forms: the shape and dtype of each value; values between the actions are added.
        constants: the arrays of numbers, by name.
        orders: the axes from the largest step in memory to the smallest, where C order is unusual.
        columns: the matrices that may lie in memory column by column, see ``free_matrices``.
    """

    def __init__(self, forms: dict[str, ArraySpec], columns: Iterable[str] = ()) -> None:
        self.forms = forms
        self.columns = set(columns)
        self.constants: dict[str, Any] = {}
        self.orders: dict[str, tuple[int, ...]] = {}
        self.actions: list[Action] = []

    def lower(self, operator: Operator) -> None:
        """Append the actions of one operator."""
        node = operator.make_node()
        kind, names = type(node), (tuple(operator.input_names), tuple(operator.output_names))
        actions: list[Action] = []
        for rule in self.rules_of(node, names[0] + names[1]):
            actions = actions or list(rule(self, node, *names))
        for action in actions or [OpaqueCall(operator, *names)]:
            self.actions.append(action)
            if kind in TO_CHANNELS_LAST and isinstance(action, Call | OpaqueCall):
                self.orders.setdefault(action.writes[0], CHANNELS_LAST)
            elif kind is functions.MaxPool2d or (isinstance(action, Call) and action.elementwise):
                self._keep_order(action)

    def rules_of(self, node: Any, names: Names) -> list[Rule]:
        """The rules that may hold for a FunctionNode, the best first."""
        rule = RULES.get(type(node))
        fits = rule is not None and (type(node) in UPDATES or self.one_dtype(names))
        return [rule] if rule is not None and fits else []

    def _keep_order(self, action: Action) -> None:
        """Lay out the results as the first operand: NumPy then passes over memory in one run."""
        for name in action.reads:
            order = self.orders.get(name)
            if order is not None and len(order) == len(self.shape(action.writes[0])):
                self.orders.update((n, order) for n in action.writes if n in self.forms)
                return

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a value."""
        return self.forms[name][0]

    def fresh(self, shape: tuple[int, ...], like: str) -> str:
        """The name of a new value, with the dtype of another value."""
        name = f"@{len(self.forms)}"
        self.forms[name] = shape, self.forms[like][1]
        return name

    def number(self, value: float, like: str) -> str:
        """The name of a constant, with the dtype of a value."""
        dtype = self.forms[like][1]
        name = f"@number {value!r} {dtype}"
        self.constants[name] = numpy.asarray(value, dtype)
        self.forms[name] = (), dtype
        return name

    def one_dtype(self, names: Names) -> bool:
        """True if all values are float32, or all are float64."""
        dtypes = {self.forms[name][1] for name in names if name in self.forms}
        return len(dtypes) == 1 and dtypes <= FLOATS


# --- rules: no actions if the operator has to run as a FunctionNode ------------------------------


def _elementwise(to: Lowering, node: Any, reads: Names, writes: Names) -> Actions:
    function = ELEMENTWISE[type(node)]
    (_, dtype), *others = {to.forms[name] for name in (*reads, *writes)}
    if not isinstance(function, Elementwise) or (
        not others and dtype in (function.dtypes or FLOATS)
    ):
        yield Call(function, reads, writes, True)


def _add_all(to: Lowering, node: Any, reads: Names, writes: Names) -> Actions:
    if len(reads) == 1:
        yield from _view(to, node, reads, writes)
    total = reads[0]
    for i, part in enumerate(reads[1:], 2):
        write = writes[0] if i == len(reads) else to.fresh(to.shape(writes[0]), writes[0])
        yield Call(numpy.add, (total, part), (write,), True)
        total = write


def _times(to: Lowering, node: Any, reads: Names, writes: Names) -> Actions:
    yield Call(numpy.multiply, (reads[0], to.number(node.number, writes[0])), writes, True)


def _matmul(to: Lowering, node: Any, reads: Names, writes: Names) -> Actions:
    x, y = map(to.shape, reads)
    if len(y) > 2 <= len(x):
        yield Call(numpy.matmul, reads, writes)
    elif len(x) >= 2 == len(y):
        swapped = isinstance(node, MatMulOfTransposed)
        transposed = swapped and node.transpose_x, swapped and node.transpose_y
        yield from _product(to, reads, writes, transposed)


def _product(to: Lowering, reads: Names, writes: Names, transposed: Any) -> Actions:
    """x y, the leading axes of x flattened; matrices are transposed as views.

    A matrix with fewer rows than columns is computed as (y' x')': BLAS is up to a fifth quicker
    with the longer side first.
    """
    shape, is_flat = to.shape(writes[0]), len(to.shape(reads[0])) == 2
    if is_flat and writes[0] in to.columns and not transposed[0] and shape[0] < shape[1]:
        y = to.fresh(shape[::-1], writes[0])
        yield from _product(to, reads[::-1], (y,), (not transposed[1], True))
        to.orders[writes[0]] = (1, 0)
        yield View(methodcaller("transpose"), (y,), writes)
        return
    names = list(reads)
    for i, swap in enumerate(transposed):
        if swap:
            names[i] = to.fresh(to.shape(reads[i])[::-1], reads[i])
            yield View(methodcaller("transpose"), (reads[i],), (names[i],))
    yield Call(numpy.matmul if is_flat else rows.product, tuple(names), writes)


def _linear(to: Lowering, node: Any, reads: Names, writes: Names) -> Actions:
    if len(to.shape(reads[0])) < 2:
        return
    y = writes[0]
    if len(reads) == 3:
        y = to.fresh(to.shape(y), y)
        to.columns |= {y} if writes[0] in to.columns else set()
    yield from _product(to, reads[:2], (y,), (False, True))
    if len(reads) == 3:
        yield Call(numpy.add, (y, reads[2]), writes, True)


def _sum(to: Lowering, node: Any, reads: Names, writes: Names) -> Actions:
    yield Call(SumOver(node.axes, node.keepdims), reads, writes)


def _sum_to(to: Lowering, node: Any, reads: Names, writes: Names) -> Actions:
    shape = to.shape(reads[0])
    axes = node.axes_of(shape)
    wide = to.fresh(rows.kept_shape(shape, axes), writes[0])
    by_channels = to.orders.get(reads[0]) == CHANNELS_LAST and axes == (0, 2, 3)
    yield Call(sum_channels if by_channels else SumOver(axes, True), reads, (wide,))
    yield from _view(to, node, (wide,), writes)


def _view(to: Lowering, node: Any, reads: Names, writes: Names) -> Actions:
    shape = to.shape(writes[0])
    if type(node) is functions.PermuteDims:
        yield View(methodcaller("transpose", tuple(node.axes)), reads, writes)
    elif type(node) is functions.BroadcastTo:
        yield View(partial(numpy.broadcast_to, shape=shape), reads, writes)
    else:
        yield View(methodcaller("reshape", shape), reads, writes)


def _parts(to: Lowering, node: Any, reads: Names, writes: Names) -> Actions:
    ends = (0, *getattr(node, "indices", ()), to.shape(reads[0])[node.axis])
    for i, name in enumerate(writes):
        part = slice(ends[i], ends[i + 1]) if type(node) is functions.Split else i
        if name != EMPTY:
            index = (*(slice(None),) * node.axis, part, ...)
            yield View(itemgetter(index), reads, (name,))


def _join(to: Lowering, node: Any, reads: Names, writes: Names) -> Actions:
    function = numpy.stack if type(node) is functions.Stack else numpy.concatenate
    yield Call(partial(join, function, node.axis), reads, writes)


def _update(to: Lowering, node: Any, reads: Names, writes: Names) -> Actions:
    arrays, numbers = reads[: len(writes) + 1], reads[len(writes) + 1 :]
    if not to.one_dtype(arrays + writes):
        return
    if type(node) is AdamUpdate:
        yield Call(partial(updates.adam_call, node), reads, writes)
        return
    g = arrays[1]
    if type(node) is MomentumUpdate:
        g = writes[1]
        yield Call(updates.gather, (arrays[2], arrays[1], numbers[1]), (g,), True)
    yield Call(updates.descend, (arrays[0], g, numbers[0]), writes[:1], True)


UPDATES = SGDUpdate, MomentumUpdate, AdamUpdate
TO_CHANNELS_LAST = {convolution.Conv2d, convolution.Conv2dGradX, functions.MaxPool2dGrad}
"""The kernels for images lay out these results with the channels last."""

Rule: TypeAlias = Callable[[Lowering, Any, Names, Names], Actions]
RULES: dict[type, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys([functions.Reshape, functions.Identity, StopGradient], _view),
    **dict.fromkeys([functions.PermuteDims, functions.BroadcastTo], _view),
    **dict.fromkeys([functions.MatMul, MatMulOfTransposed], _matmul),
    **dict.fromkeys([functions.Split, functions.Unstack], _parts),
    **dict.fromkeys([functions.Concat, functions.Stack], _join),
    **dict.fromkeys(UPDATES, _update),
    functions.AddAll: _add_all,
    TimesNumber: _times,
    functions.Linear: _linear,
    functions.Sum: _sum,
    functions.SumTo: _sum_to,
}
