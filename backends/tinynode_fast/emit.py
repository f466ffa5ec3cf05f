"""What operators of a net become in a plan of the fast path: calls of NumPy that write to ``out``.

Requirement: a net should cost NumPy's functions and next to nothing else. So an operator is taken
apart into calls ``function(*inputs, out)``, of which elementwise ones may be run block by block,
and views, which cost nothing where the memory is known beforehand. What is not in the tables here
runs as a function, by its kernel or its portable forward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy

from tinynode import functions
from tinynode.functions import (
    activation,
    convolution,
    exponential,
    manipulation,
    normalization,
    pooling,
    shapes,
)
from tinynode.functions.convolution import Windows
from tinynode.functions.cross_entropy import SoftmaxCrossEntropy
from tinynode.net.helpers import StopGradient
from tinynode.net.operator import EMPTY, Operator
from tinynode.net.passes import MatMulOfTransposed, TimesNumber
from tinynode.nn.updates import AdamUpdate, MomentumUpdate, SGDUpdate
from tinynode_fast import elementwise, images, updates
from tinynode_fast.blocks import Kernel, run
from tinynode_fast.elementwise import FLOATS
from tinynode_fast.rows import (
    centred_gradient_rows,
    log_softmax_rows,
    softmax_rows,
    uncentred_gradient_rows,
)

Form: TypeAlias = tuple[tuple[int, ...], Any]
"""Shape and dtype."""
Order: TypeAlias = tuple[int, ...] | None
"""The axes from the longest step in memory to the shortest; None for their own order."""
CHANNELS_LAST = (0, 2, 3, 1)


class Call(NamedTuple):
    """``function(*reads, write)``: NumPy writes the result to the last argument.

    ``elementwise``: any slice of the result depends on the same slices of what is read.
    """

    function: Callable[..., Any]
    reads: tuple[str, ...]
    write: str
    elementwise: bool


class View(NamedTuple):
    """``write = function(read)``: another look at the same memory."""

    function: Callable[[Any], Any]
    read: str
    write: str


class Generic(NamedTuple):
    """``writes = function(reads)``: a FunctionNode that is run as one."""

    operator: Operator
    reads: tuple[str, ...]
    writes: tuple[str, ...]


class Several(NamedTuple):
    """``function(*reads, *writes)``: several results at once."""

    function: Callable[..., Any]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


Action: TypeAlias = Call | View | Generic | Several


@dataclass(frozen=True)
class Reshape:
    """A view in another shape."""

    shape: tuple[int, ...]

    def __call__(self, x: Any) -> Any:
        return x.reshape(self.shape)


@dataclass(frozen=True)
class Transpose:
    """A view with other axes."""

    axes: tuple[int, ...]

    def __call__(self, x: Any) -> Any:
        return x.transpose(self.axes)


@dataclass(frozen=True)
class Broadcast:
    """A view that repeats."""

    shape: tuple[int, ...]

    def __call__(self, x: Any) -> Any:
        return numpy.broadcast_to(x, self.shape)


@dataclass(frozen=True)
class AddReduce:
    """The sum over axes."""

    axes: tuple[int, ...]
    keepdims: bool

    def __call__(self, x: Any, out: Any) -> None:
        numpy.add.reduce(x, axis=self.axes, out=out, keepdims=self.keepdims)


@dataclass(frozen=True)
class RowsTimes:
    """x y, the leading axes of x flattened; either may be transposed."""

    transpose_x: bool
    transpose_y: bool

    def __call__(self, x: Any, y: Any, out: Any) -> None:
        if x.ndim > 2:
            rows = math.prod(x.shape[:-1])
            x, out = x.reshape(rows, x.shape[-1]), out.reshape(rows, out.shape[-1])
        numpy.matmul(x.T if self.transpose_x else x, y.T if self.transpose_y else y, out)


@dataclass(frozen=True)
class Part:
    """A view of a part."""

    index: Any

    def __call__(self, x: Any) -> Any:
        return x[self.index]


@dataclass(frozen=True)
class Join:
    """Arrays one after the other along an axis, or along a new one."""

    axis: int
    new_axis: bool

    def __call__(self, *arrays: Any) -> None:
        join = numpy.stack if self.new_axis else numpy.concatenate
        join(arrays[:-1], axis=self.axis, out=arrays[-1])


@dataclass(frozen=True)
class Passes:
    """An elementwise kernel of several passes: it reads its inputs after it began to write."""

    kernel: Kernel
    scratch: int

    def __call__(self, *arrays: Any) -> None:
        out = arrays[-1]
        spare = tuple([numpy.empty_like(out) for _ in range(self.scratch)])
        self.kernel(arrays[:-1], (out,), spare)


@dataclass(frozen=True)
class OfRows:
    """A kernel on the rows along the last axis."""

    kernel: Kernel
    scratch: int

    def __call__(self, *arrays: Any) -> None:
        count = arrays[0].size // arrays[0].shape[-1]
        matrices = tuple([x.reshape(count, -1) for x in arrays])
        run(self.kernel, matrices[:-1], matrices[-1:], self.scratch)


@dataclass(frozen=True)
class LossOfLabels:
    """The loss from log_softmax(x), with every label counting alike; else from x, as the function
    does it.
    """

    node: SoftmaxCrossEntropy

    def __call__(self, log_p: Any, x: Any, labels: Any, out: Any) -> None:
        low, high = numpy.minimum.reduce(labels), numpy.maximum.reduce(labels)
        if low < 0 or high >= x.shape[1] or low <= self.node.ignore_label <= high:
            out[...] = self.node.forward((x, labels))[0]
            return
        losses = log_p[numpy.arange(len(labels)), labels]
        numpy.add.reduce(losses, out=out)
        numpy.multiply(out, -1.0 / len(x) if self.node.reduction == "mean" else -1.0, out)


@dataclass(frozen=True)
class Convolve:
    """conv2d by columns; ``out`` lies in memory with the channels last."""

    windows: Windows
    counts: tuple[int, int]

    def __call__(self, x: Any, w: Any, out: Any) -> None:
        lines = images.padded(images.channels_last(x), self.windows, 0.0)
        kernels = w.transpose(2, 3, 1, 0).reshape(-1, w.shape[0])
        y = out.transpose(CHANNELS_LAST)
        for part in images.parts(len(x), kernels.shape[0] * math.prod(self.counts)):
            view = images.every_window(lines[part], self.windows, self.counts)
            numpy.matmul(images.unfold(view), kernels, y[part].reshape(-1, w.shape[0]))


def choose(condition: Any, x: Any, y: Any, out: Any) -> None:
    """x where the condition holds, else y."""
    numpy.copyto(out, y)
    numpy.copyto(out, x, where=condition)


def add_channels(x: Any, b: Any, out: Any) -> None:
    """x + b, with one number of b for each channel: a whole row of the image at a time."""
    n, c, height, width = x.shape
    y = out.transpose(CHANNELS_LAST)
    if not y.flags.c_contiguous:
        numpy.add(x, b, out)
        return
    row = numpy.tile(b.reshape(c), width)
    lines = x.transpose(CHANNELS_LAST).reshape(n * height, width * c)
    numpy.add(lines, row, y.reshape(n * height, width * c))


def sum_channels(x: Any, out: Any) -> None:
    """The sum over everything but the channels: a product with ones, which BLAS computes."""
    matrix = x.transpose(CHANNELS_LAST).reshape(-1, x.shape[1])
    numpy.matmul(numpy.ones(len(matrix), x.dtype), matrix, out.reshape(-1))


def larger(x: Any, y: Any, out: Any) -> None:
    """max(x, y): NumPy wants ``out`` by name here."""
    numpy.maximum(x, y, out=out)


def smaller(x: Any, y: Any, out: Any) -> None:
    """min(x, y)."""
    numpy.minimum(x, y, out=out)


def keep_positive(y: Any, gy: Any, out: Any) -> None:
    """gy where y > 0, else 0, also where gy is infinite or NaN: all of its bits, or none."""
    bits = numpy.int32 if out.dtype.itemsize == 4 else numpy.int64
    ones = numpy.negative(numpy.greater(y, 0, order="K").view(numpy.int8))  # -1: every bit
    numpy.bitwise_and(gy.view(bits), ones, out.view(bits))


def exp_of_minus(x: Any, out: Any) -> None:
    """e^-x; where it overflows it is inf, without a warning."""
    numpy.negative(x, out)
    with numpy.errstate(over="ignore"):
        numpy.exp(out, out)


def copy_as(x: Any, out: Any) -> None:
    """The elements of x in the shape of out."""
    numpy.copyto(out.reshape(x.shape), x)


UFUNCS: dict[type, Any] = {
    functions.Add: numpy.add,
    functions.Subtract: numpy.subtract,
    functions.Multiply: numpy.multiply,
    functions.Divide: numpy.divide,
    functions.Negative: numpy.negative,
    functions.Exp: numpy.exp,
    functions.Log: numpy.log,
    functions.Sqrt: numpy.sqrt,
    functions.Tanh: numpy.tanh,
    functions.Sin: numpy.sin,
    functions.Cos: numpy.cos,
    functions.Square: numpy.square,
    functions.Abs: numpy.abs,
    functions.Maximum: larger,
    functions.Minimum: smaller,
    functions.Reciprocal: numpy.reciprocal,
}
"""The functions that are one ufunc: operands of one dtype, which broadcast by themselves."""


class Emitter:
    """Takes operators apart. ``fresh`` gives names for what lies in between."""

    def __init__(self, forms: dict[str, Form]) -> None:
        self.forms = forms
        self.constants: dict[str, Any] = {}
        self.orders: dict[str, tuple[int, ...]] = {}
        self.actions: list[Action] = []

    def fresh(self, form: Form) -> str:
        """A new name for a value of some form."""
        name = f"@{len(self.forms)}"
        self.forms[name] = form
        return name

    def number(self, value: float, dtype: Any) -> str:
        """The name of a constant."""
        name = f"@number {value!r} {dtype}"
        self.constants[name] = numpy.asarray(value, dtype)
        self.forms[name] = (), numpy.dtype(dtype)
        return name

    def emit(self, operator: Operator) -> None:
        """Append the actions of one operator."""
        node = operator.make_node()
        reads, writes = operator.input_names, operator.output_names
        emit = _EMIT.get(type(node))
        mixed = _MIXED.get(type(node))
        if mixed is not None and mixed(self, node, reads, writes):
            return
        if not self.one_dtype(reads, writes):
            self.generic(operator)
        elif type(node) is functions.Add and self._adds_channels(reads):
            self.call(add_channels, reads, writes[0])
        elif type(node) in UFUNCS:
            self.call(UFUNCS[type(node)], reads, writes[0])
        elif emit is None or not emit(self, node, reads, writes):
            self.generic(operator)

    def generic(self, operator: Operator) -> None:
        """Append the function as it is."""
        kind = type(operator.make_node())
        if kind is pooling.MaxPool2dGrad:
            operator = self._from_channels_last(operator)
        reads, writes = tuple(operator.input_names), tuple(operator.output_names)
        self.actions.append(Generic(operator, reads, writes))
        if kind in _TO_CHANNELS_LAST:
            self.orders[writes[0]] = CHANNELS_LAST
        elif kind in _IN_ORDER:
            self.keep_order(reads, writes)

    def one_dtype(self, reads: Sequence[str], writes: Sequence[str]) -> bool:
        """Whether everything is float32, or everything is float64."""
        dtypes = {self.forms[name][1] for name in (*reads, *writes) if name in self.forms}
        return len(dtypes) == 1 and dtypes <= FLOATS

    def _adds_channels(self, reads: Sequence[str]) -> bool:
        """Whether the second is one number for each channel of the first, channels last."""
        shape, other = (self.forms[name][0] for name in reads)
        ordered = self.orders.get(reads[0]) == CHANNELS_LAST and math.prod(shape) >= LEAST
        return ordered and (1,) * (4 - len(other)) + other == (1, shape[1], 1, 1)

    def _from_channels_last(self, operator: Operator) -> Operator:
        """With the gradient that comes copied to where it lies as the images do."""
        gy = operator.input_names[0]
        if gy in self.orders or self.forms[gy][1] not in FLOATS:
            return operator
        copied = self.fresh(self.forms[gy])
        self.orders[copied] = CHANNELS_LAST
        self.call(numpy.positive, [gy], copied)
        return operator.renamed({gy: copied})

    def call(self, function: Any, reads: Sequence[str], write: str, each: bool = True) -> None:
        """Append a call."""
        self.actions.append(Call(function, tuple(reads), write, each))
        if each:
            self.keep_order(reads, (write,))

    def keep_order(self, reads: Sequence[str], writes: Sequence[str]) -> None:
        """What is written lies in memory as what is read: NumPy goes through both in one run."""
        for name in reads:
            order = self.orders.get(name)
            if order is not None and len(order) == len(self.forms[writes[0]][0]):
                self.orders.update((write, order) for write in writes if write in self.forms)
                return


def _add_all(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    if len(reads) == 1:
        return _same(to, node, reads, writes)
    total = reads[0]
    for i, part in enumerate(reads[1:], 2):
        write = writes[0] if i == len(reads) else to.fresh(to.forms[writes[0]])
        to.call(numpy.add, (total, part), write)
        total = write
    return True


def _times(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    number = to.number(node.number, to.forms[writes[0]][1])
    to.call(numpy.multiply, (reads[0], number), writes[0])
    return True


def _relu(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    zero = to.number(0.0, to.forms[writes[0]][1])
    to.call(larger, (reads[0], zero), writes[0])
    return True


def _relu_grad(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    to.call(keep_positive, reads, writes[0])
    return True


def _sigmoid(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    form = to.forms[writes[0]]
    one = to.number(1.0, form[1])
    power, below = to.fresh(form), to.fresh(form)
    to.call(exp_of_minus, reads, power)
    to.call(numpy.add, (power, one), below)
    to.call(numpy.divide, (one, below), writes[0])
    return True


def _matmul(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    x, y = (to.forms[name][0] for name in reads)
    if len(x) < 2 or len(y) < 2:
        return False
    if len(y) > 2:
        to.call(numpy.matmul, reads, writes[0], False)
        return True
    swapped = isinstance(node, MatMulOfTransposed)
    times = RowsTimes(swapped and node.transpose_x, swapped and node.transpose_y)
    to.call(times, reads, writes[0], False)
    return True


def _linear(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    if len(to.forms[reads[0]][0]) < 2:
        return False
    product = writes[0] if len(reads) == 2 else to.fresh(to.forms[writes[0]])
    to.call(RowsTimes(False, True), reads[:2], product, False)
    if len(reads) == 3:
        to.call(numpy.add, (product, reads[2]), writes[0])
    return True


def _sum(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    to.call(AddReduce(node.axes, node.keepdims), reads, writes[0], False)
    return True


def _sum_to(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    shape, wanted = to.forms[reads[0]][0], node.shape
    new = len(shape) - len(wanted)
    ones = [new + i for i, n in enumerate(wanted) if n == 1 and shape[new + i] != 1]
    kept = tuple(1 if i < new or i in ones else n for i, n in enumerate(shape))
    wide = to.fresh((kept, to.forms[reads[0]][1]))
    add = AddReduce((*range(new), *ones), True)
    by_channels = to.orders.get(reads[0]) == CHANNELS_LAST and add.axes == (0, 2, 3)
    to.call(sum_channels if by_channels else add, reads, wide, False)
    to.actions.append(View(Reshape(wanted), wide, writes[0]))
    return True


def _reshape(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    to.actions.append(View(Reshape(to.forms[writes[0]][0]), reads[0], writes[0]))
    return True


def _permute(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    to.actions.append(View(Transpose(tuple(node.axes)), reads[0], writes[0]))
    return True


def _broadcast(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    to.actions.append(View(Broadcast(to.forms[writes[0]][0]), reads[0], writes[0]))
    return True


def _same(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    to.actions.append(View(Reshape(to.forms[writes[0]][0]), reads[0], writes[0]))
    return True


def _split(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    ends = (0, *node.indices, to.forms[reads[0]][0][node.axis])
    for name, start, stop in zip(writes, ends, ends[1:], strict=False):
        index = (*(slice(None),) * node.axis, slice(start, stop))
        if name != EMPTY:
            to.actions.append(View(Part(index), reads[0], name))
    return True


def _unstack(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    for position, name in enumerate(writes):
        if name != EMPTY:
            index = (*(slice(None),) * node.axis, position, ...)
            to.actions.append(View(Part(index), reads[0], name))
    return True


def _join(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    to.call(Join(node.axis, isinstance(node, manipulation.Stack)), reads, writes[0], False)
    return True


def _softmax(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    shape = to.forms[reads[0]][0]
    if node.axis != len(shape) - 1 or math.prod(shape) < LEAST:
        return False
    to.call(OfRows(softmax_rows, 0), reads, writes[0], False)
    return True


def _standardize_grad(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    shape = to.forms[reads[0]][0]
    if node.axes != (len(shape) - 1,) or math.prod(shape) < LEAST:
        return False
    kernel = centred_gradient_rows if node.center else uncentred_gradient_rows
    to.call(OfRows(kernel, 0), reads, writes[0], False)
    return True


def _passes(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    passes, dtypes = _KERNELS[type(node)]
    forms = {to.forms[name] for name in (*reads, *writes)}
    (shape, dtype), *others = forms
    if others or dtype not in dtypes or math.prod(shape) < LEAST:
        return False
    to.call(passes, reads, writes[0])
    return True


LEAST = 4096
"""For shorter arrays the kernels here do not pay."""

_KERNELS: dict[type, tuple[Passes, frozenset[Any]]] = {
    activation.SiLU: (Passes(elementwise.silu, 0), FLOATS),
    activation.SiLUGrad: (Passes(elementwise.silu_gradient, 1), FLOATS),
    activation.GELU: (Passes(elementwise.gelu, 1), elementwise.SINGLES),
    activation.GELUGrad: (Passes(elementwise.gelu_gradient, 1), elementwise.SINGLES),
    activation.TanhGELU: (Passes(elementwise.tanh_gelu, 1), FLOATS),
    activation.TanhGELUGrad: (Passes(elementwise.tanh_gelu_gradient, 2), FLOATS),
}
"""The kernels of the eager functions, and for which dtypes they are made."""


def _where(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    if not to.one_dtype(reads[1:], writes):
        return False
    to.call(choose, reads, writes[0], False)
    return True


def _cross_entropy(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    x, log_p = reads[0], writes[1]
    plain = len(reads) == 2 and not node.smoothing and node.reduction != "none"
    if not plain or EMPTY in writes or not to.one_dtype([x], writes):
        return False
    if not math.prod(to.forms[x][0]):
        return False
    to.call(OfRows(log_softmax_rows, 1), [x], log_p, False)
    to.call(LossOfLabels(node), (log_p, *reads), writes[0], False)
    return True


def _conv2d(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    sizes = [math.prod(to.forms[name][0]) for name in (*reads, *writes)]
    if node.groups != 1 or not all(sizes) or sizes[2] < LEAST:
        return False
    to.call(Convolve(node.windows, node.counts), reads, writes[0], False)
    to.orders[writes[0]] = CHANNELS_LAST
    return True


def _sgd(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    if not to.one_dtype(reads[:2], writes):
        return False
    to.actions.append(Call(updates.descend, tuple(reads), writes[0], True))
    return True


def _momentum(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    p, g, v, lr, momentum = reads
    if not to.one_dtype((p, g, v), writes):
        return False
    to.actions.append(Call(updates.gather, (v, g, momentum), writes[1], True))
    to.actions.append(Call(updates.descend, (p, writes[1], lr), writes[0], True))
    return True


def _adam(to: Emitter, node: Any, reads: Sequence[str], writes: Sequence[str]) -> bool:
    if not to.one_dtype(reads[:4], writes):
        return False
    step = updates.AdamStep(updates.settings_of(node))
    to.actions.append(Several(step, tuple(reads), tuple(writes)))
    return True


_MIXED: dict[type, Callable[[Emitter, Any, Sequence[str], Sequence[str]], bool]] = {
    functions.Where: _where,
    SoftmaxCrossEntropy: _cross_entropy,
    SGDUpdate: _sgd,
    MomentumUpdate: _momentum,
    AdamUpdate: _adam,
}
"""Those whose inputs are of several dtypes."""

_TO_CHANNELS_LAST = {convolution.Conv2d, convolution.Conv2dGradX}
_IN_ORDER = {pooling.MaxPool2d, pooling.MaxPool2dGrad}
"""How the kernels for images lay out their results."""

_EMIT: dict[type, Callable[[Emitter, Any, Sequence[str], Sequence[str]], bool]] = {
    functions.AddAll: _add_all,
    TimesNumber: _times,
    functions.ReLU: _relu,
    functions.ReLUGrad: _relu_grad,
    exponential.Sigmoid: _sigmoid,
    **dict.fromkeys(_KERNELS, _passes),
    activation.Softmax: _softmax,
    convolution.Conv2d: _conv2d,
    normalization.StandardizeGrad: _standardize_grad,
    functions.Split: _split,
    manipulation.Unstack: _unstack,
    manipulation.Stack: _join,
    functions.Concat: _join,
    functions.MatMul: _matmul,
    MatMulOfTransposed: _matmul,
    functions.Linear: _linear,
    functions.Sum: _sum,
    functions.SumTo: _sum_to,
    shapes.Reshape: _reshape,
    functions.PermuteDims: _permute,
    functions.BroadcastTo: _broadcast,
    functions.Identity: _same,
    StopGradient: _same,
}
