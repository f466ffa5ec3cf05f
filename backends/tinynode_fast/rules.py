"""Rules: operators become formulas, reductions, other calls and views.

Requirement: a reader finds the mathematics of an operator with rows, such as softmax, in a few
lines. A rule appends to a ``Draft``. A rule that appends nothing leaves the operator as a
FunctionNode.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial
from operator import itemgetter, methodcaller
from typing import Any, TypeAlias

import numpy

from tinynode import functions
from tinynode.devices.products import matrix_product
from tinynode.functions import activation, gaussian, pooling
from tinynode.functions.attributes import Place, Slice
from tinynode.net.helpers import StopGradient
from tinynode.net.operator import EMPTY, Operator
from tinynode.net.passes import TimesNumber, node_class_of
from tinynode.nn.updates import AdamUpdate, MomentumUpdate, SGDUpdate, weight
from tinynode_fast.actions import Names
from tinynode_fast.draft import Draft
from tinynode_fast.native.formulas import (
    FORMULAS,
    Reduction,
    clipped,
    exact_axes,
    formula,
    gauss,
    kept_shape,
    normal,
    number,
)
from tinynode_fast.norms import mean, standardize, standardize_grad, std, vector_norm
from tinynode_fast.rows import (
    INTEGERS,
    cross_entropy,
    cross_entropy_grad,
    log_softmax,
    row_weights,
    softmax,
    softmax_grad,
)


def _elementwise(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    to.call(FORMULAS[type(node)], reads, writes)


def _times(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    to.computed(formula("x * {k}", k=number(node.number)), writes[0], x=reads[0])


def _leaky_relu(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    if 0.0 < node.slope <= 1.0:
        text = formula("x > 0 ? x : x * {k}", k=number(node.slope))
        to.computed(text, writes[0], x=reads[0])


def _gauss(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    is_single = to.forms[reads[0]][1] == numpy.float32
    if abs(node.c) <= 1.0:  # else the series of the formula ends too early
        bell = gauss(is_single, number(node.c), "k")
        text = f"{clipped('k', gaussian.GAUSS_ENDS)}; {bell}; b"
        to.computed(formula(text), writes[0], x=reads[0])


def _gelu(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    text = normal(to.forms[reads[0]][1] == numpy.float32)
    to.computed(f"{text}; n == 0 ? -0.0 : n * x", writes[0], x=reads[0])


def _gelu_grad(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    text = normal(to.forms[reads[0]][1] == numpy.float32)
    text += f"; (k * b * {1.0 / gaussian.ROOT_2PI!r} + n) * y"
    to.computed(text, writes[0], x=reads[0], y=reads[1])


def _elu(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    scales = {"a": number(node.scale), "b": number(node.scale * node.alpha)}
    text = "e = expm1(x > 0 ? 0.0 : x); (x > 0 ? x : 0.0) * {a} + e * {b}"
    to.computed(formula(text, **scales), writes[0], x=reads[0])


def _add_all(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    total = reads[0]
    if len(reads) == 1:
        _view(to, node, reads, writes)
    for i, part in enumerate(reads[1:], 2):
        write = writes[0] if i == len(reads) else to.fresh(to.shape(total), total)
        to.call(FORMULAS[functions.Add], (total, part), (write,))
        total = write


def _matmul(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    x, y = map(to.shape, reads)
    swapped = isinstance(node, functions.MatMulOfTransposed)
    transposed = swapped and node.transpose_x, swapped and node.transpose_y
    if any(transposed) and (len(x) != 2 or len(y) != 2):
        return  # of a stack, each matrix is transposed
    if len(y) > 2 <= len(x) or len(x) == 1 or len(y) == 1:
        to.call(matrix_product, reads, writes)
    elif len(x) >= 2 == len(y):
        _product(to, reads, writes, transposed)


def _product(to: Draft, reads: Names, writes: Names, transposed: tuple[bool, bool]) -> None:
    """x y, the leading axes of x flattened; matrices are transposed as views.

    A column times a row is a product of elements: NumPy's matmul takes four times as long. Another
    matrix with fewer rows than columns is computed as (y' x')': BLAS is up to a fifth quicker with
    the longer side first.
    """
    shape, is_flat = to.shape(writes[0]), len(to.shape(reads[0])) == 2
    is_outer = is_flat and to.shape(reads[0])[0 if transposed[0] else 1] == 1
    is_free = is_flat and not is_outer and writes[0] in to.columns
    if is_free and not transposed[0] and shape[0] < shape[1]:
        y = to.fresh(shape[::-1], writes[0])
        _product(to, reads[::-1], (y,), (not transposed[1], True))
        if shape[0] != 1:
            to.orders[writes[0]] = (1, 0)
        to.view(methodcaller("transpose"), y, writes[0])
        return
    names = list(reads)
    for i, name in enumerate(reads):
        if transposed[i]:
            names[i] = to.fresh(to.shape(name)[::-1], name)
            to.view(methodcaller("transpose"), name, names[i])
    function = matrix_product if is_flat else product
    to.call(FORMULAS[functions.Multiply] if is_outer else function, tuple(names), writes)


def product(x: Any, y: Any, out: Any) -> None:
    """x y for x (..., n, k) and y (k, m), the leading axes of x flattened: one call of BLAS."""
    n = math.prod(x.shape[:-1])
    matrix_product(x.reshape(n, x.shape[-1]), y, out.reshape(n, y.shape[1]))


PRODUCTS = {functions.Linear, functions.MatMul, functions.MatMulOfTransposed}


def free_matrices(operators: Sequence[Operator], outputs: Collection[str]) -> set[str]:
    """The matrices that may lie in memory column by column: no reader wants whole rows.

    Such readers are products, elementwise functions with a free result, and sums of columns.
    """
    bound = set(outputs)
    for operator in reversed(operators):
        kind = node_class_of(operator)
        is_free = kind in PRODUCTS or (kind in FORMULAS and operator.output_names[0] not in bound)
        if not is_free and not (kind is functions.Sum and operator.attrs["axes"] == (0,)):
            bound.update(operator.input_names)
    return {name for operator in operators for name in operator.output_names} - bound


def _linear(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    y = writes[0] if len(reads) == 2 else to.fresh(to.shape(writes[0]), writes[0])
    if len(to.shape(reads[0])) == 1:
        to.call(matrix_product, (reads[1], reads[0]), (y,))
    else:
        to.columns |= {y} if writes[0] in to.columns else set()
        _product(to, reads[:2], (y,), (False, True))
    if len(reads) == 3:
        to.call(FORMULAS[functions.Add], (y, reads[2]), writes)


def _view(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    (read,), (write,) = reads, writes
    shape = to.shape(write)
    if type(node) is functions.PermuteDims:
        to.view(methodcaller("transpose", tuple(node.axes)), read, write)
    elif type(node) is functions.BroadcastTo:
        to.view(partial(numpy.broadcast_to, shape=shape), read, write)
    else:
        to.reshaped(read, shape, write)


def _get_item(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """A view, for an index without arrays and backward slices."""
    index: list[Any] = []
    for item in node.index:
        is_backward = isinstance(item, Slice) and (item.step or 1) < 0
        if is_backward or isinstance(item, Place):
            return
        index.append(slice(*item) if isinstance(item, Slice) else item)
    if Ellipsis not in index:
        index.append(Ellipsis)  # a single element stays an array
    to.view(itemgetter(tuple(index)), reads[0], writes[0])


def _concat(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    to.call(partial(_joined, node.axis), reads, writes)


def _joined(axis: int, *arrays: Any) -> None:
    numpy.concatenate(arrays[:-1], axis, arrays[-1])


def _parts(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    ends = (0, *getattr(node, "indices", ()), to.shape(reads[0])[node.axis])
    for i, name in enumerate(writes):
        part = slice(ends[i], ends[i + 1]) if type(node) is functions.Split else i
        if name != EMPTY:
            to.view(itemgetter((*(slice(None),) * node.axis, part, ...)), reads[0], name)
            if type(node) is functions.Split and reads[0] in to.orders:
                to.orders[name] = to.orders[reads[0]]


def _reduce(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """Sum, largest element and mean; a shape without the axes is a view."""
    (x,), (y,), shape = reads, writes, to.shape(reads[0])
    axes = node.axes_of(shape) if type(node) is functions.SumTo else node.axes
    axes = exact_axes(shape, axes)
    kept = kept_shape(shape, axes)
    wide = y if to.shape(y) == kept else to.fresh(kept, y)
    if type(node) is functions.Mean:
        mean(to, axes, x, wide)
    elif type(node) is functions.Max:
        largest = to.reduced("largest", axes, x)
        wrong = to.reduced("sum", axes, to.computed("x != x ? 1.0 : 0.0", x=x))
        to.computed("n > 0 ? NAN : m", wide, n=wrong, m=largest)
    elif kept == shape:  # a sum of one element: -0.0 becomes 0.0
        to.computed("x + 0.0", wide, x=x)
    else:
        to.reduced("sum", axes, x, wide)
    if wide != y:
        to.reshaped(wide, to.shape(y), y)


def _add_at(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """y = 0, then each row of x is added to the row of y with its index."""
    x, indices = reads
    count, *others = to.shape(x)
    if not to.is_native or to.forms[indices][1] not in INTEGERS or not to.one_dtype(x, *writes):
        return
    if count > 1 and math.prod(others) > 1:  # else a loop over rows would be the inner loop
        column = to.fresh((count,), indices)
        to.call(partial(_places, to.shape(writes[0])[0]), (indices,), (column,))
        column = to.reshaped(column, (count, *[1] * len(others)))
        to.call(Reduction("rows", (0,)), (x, column), writes)


def _places(length: int, indices: Any, out: Any) -> None:
    out[...] = numpy.arange(length)[indices]  # an IndexError, if one lies outside


# --- images --------------------------------------------------------------------------------------

_PLACES, _BEST = "abcd", "zyxw"


def _max_pool(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """The largest of the places of a window, each a view of x, and the number of its place."""
    (x,), (y, winners) = reads, writes
    places = {} if EMPTY in writes else _places_of(to, node.windows, x, y, winners)
    if not places:
        return
    count = len(places)
    best, place, parts = "a", "0", []
    for i, letter in enumerate(_PLACES[1:count], 1):
        is_better = f"{letter} > {best} || {letter} != {letter}"
        parts.append(f"{_BEST[i]} = {is_better} ? {letter} : {best}")
        place = f"{is_better} ? {i} : {place}"
        best = _BEST[i]
    to.computed("; ".join([*parts, best]), y, **places)
    to.computed("; ".join([*parts[:-1], place]), winners, **places)


def _places_of(to: Draft, windows: Any, x: str, y: str, winners: str) -> dict[str, str]:
    """Views of x by letter, one for each place of a window; none without a rule."""
    places: dict[str, str] = {}
    if windows.padding != (0, 0) or math.prod(windows.size) > len(_PLACES):
        return places
    if not to.one_dtype(x, y) or to.forms[winners][1] != numpy.dtype("int8"):
        return places
    image, counts = to.shape(x)[2:], to.shape(y)[2:]
    if max(windows.stride) > max(image):
        return places  # of a single window; the step in memory may be too large for NumPy
    indexes = [index for _, _, index in windows.places(image, counts)]
    for letter, index in zip(_PLACES, indexes, strict=False):
        places[letter] = to.view(itemgetter(index), x, to.fresh(to.shape(y), x))
        if x in to.orders:
            to.orders[places[letter]] = to.orders[x]
    return places


def _take_winners(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """y = x at the place of the winner."""
    (x, winners), (y,) = reads, writes
    if to.shape(winners) != to.shape(y):
        return
    places = _places_of(to, node.windows, x, y, winners)
    text = "0.0"
    for number_of_place, letter in reversed(list(enumerate(places))):
        text = f"w == {number_of_place} ? {letter} : {text}"
    if places:
        to.computed(f"({text}) + 0.0", y, w=winners, **places)  # as a sum that starts from 0


def _max_pool_grad(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """gx = gy at the place of the winner, else 0, for windows that tile the image."""
    (gy, winners), (gx,), (size, stride, padding, dilation) = reads, writes, node.windows
    n, c, rows, columns = to.shape(gy)
    tiles = (rows * size[0], columns * size[1]) == tuple(node.image) and size == stride
    if not tiles or padding != (0, 0) or dilation != (1, 1) or math.prod(size) > 100:
        return
    if to.forms[winners][1] != numpy.dtype("int8") or not to.one_dtype(gy, gx):
        return
    g, w = [to.reshaped(name, (n, c, rows, 1, columns, 1)) for name in reads]
    place = to.fresh((size[0], 1, size[1]), winners)
    to.constants[place] = numpy.arange(math.prod(size), dtype="int8").reshape(to.shape(place))
    wide = to.fresh((n, c, rows, size[0], columns, size[1]), gx)
    to.orders[wide] = 0, 2, 3, 4, 5, 1  # the channels last
    to.computed("w == k ? g : 0.0", wide, g=g, w=w, k=place)
    to.reshaped(wide, to.shape(gx), gx)
    to.orders[gx] = 0, 2, 3, 1


# --- updates: in the order of tinynode.nn.updates, so NumPy and C round alike --------------------


def _update(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    arrays, numbers = reads[: len(writes) + 1], reads[len(writes) + 1 :]
    is_usual = all(getattr(node, "betas", ())) and not any(map(to.shape, numbers))
    if is_usual and to.one_dtype(*arrays, *writes):
        to.over.update(zip(writes, (reads[0], *reads[2:]), strict=False))
        UPDATES[type(node)](to, node, reads, writes)


def _adam(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    """m' = b1 (m + c1 g), v' = b2 (v + c2 g g), p' = p - m' / (sqrt(v') + eps) rate."""
    (p, g, m, v, lr, count), (new, new_m, new_v), (b1, b2) = reads, writes, node.betas
    used = {"b": number(b1), "q": number(b2), "eps": number(node.eps)}
    used |= {"c": number(weight(b1)), "d": number(weight(b2)), "w": number(node.weight_decay)}
    root = "sqrt(1.0 - pow({q}, n))"
    rate = to.computed(formula(f"a * {root} / (1.0 - pow({{b}}, n))", **used), a=lr, n=count)
    eps = to.computed(formula(f"{root} * {{eps}}", **used), n=count)
    to.computed(formula("(m + g * {c}) * {b}", **used), new_m, m=m, g=g)
    to.computed(formula("(v + g * {d} * g) * {q}", **used), new_v, v=v, g=g)
    text, operands = "p - m / (sqrt(v) + e) * a", {"p": p, "m": new_m, "v": new_v, "e": eps}
    if node.weight_decay:
        operands["k"] = to.computed(formula("1.0 - a * {w}", **used), a=lr)
        text = f"p * k - {text[4:]}"
    to.computed(text, new, **operands, a=rate)


def _sgd(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    p, g, lr = reads
    to.computed("p - g * a", writes[0], p=p, g=g, a=lr)


def _momentum(to: Draft, node: Any, reads: Names, writes: Names) -> None:
    (p, g, v, lr, momentum), (new, new_v) = reads, writes
    to.computed("v * b + g", new_v, v=v, g=g, b=momentum)
    to.computed("p - v * a", new, p=p, v=new_v, a=lr)


Rule: TypeAlias = Callable[[Draft, Any, Names, Names], None]
UPDATES: dict[type, Rule] = {AdamUpdate: _adam, SGDUpdate: _sgd, MomentumUpdate: _momentum}
OF_SEVERAL_DTYPES: set[type] = {functions.SoftmaxCrossEntropy, functions.SoftmaxCrossEntropyGrad}
OF_SEVERAL_DTYPES |= {
    pooling.TakeWinners,
    functions.RowWeights,
    functions.AddAt,
    functions.MaxPool2d,
    functions.MaxPool2dGrad,
    *UPDATES,
}
"""The operators whose rules look at the dtypes."""
RULES: dict[type, Rule] = {
    **dict.fromkeys(FORMULAS, _elementwise),
    **dict.fromkeys([functions.Reshape, functions.PermuteDims, functions.BroadcastTo], _view),
    **dict.fromkeys([functions.Identity, StopGradient], _view),
    **dict.fromkeys([functions.MatMul, functions.MatMulOfTransposed], _matmul),
    **dict.fromkeys([functions.Split, functions.Unstack], _parts),
    **dict.fromkeys([functions.Sum, functions.SumTo, functions.Max, functions.Mean], _reduce),
    **dict.fromkeys(UPDATES, _update),
    TimesNumber: _times,
    functions.LeakyReLU: _leaky_relu,
    functions.ELU: _elu,
    functions.Gauss: _gauss,
    functions.GELU: _gelu,
    functions.GELUGrad: _gelu_grad,
    functions.AddAll: _add_all,
    functions.AddAt: _add_at,
    functions.Linear: _linear,
    functions.GetItem: _get_item,
    functions.Concat: _concat,
    functions.SoftmaxCrossEntropy: cross_entropy,
    functions.SoftmaxCrossEntropyGrad: cross_entropy_grad,
    functions.RowWeights: row_weights,
    functions.MaxPool2d: _max_pool,
    functions.MaxPool2dGrad: _max_pool_grad,
    pooling.TakeWinners: _take_winners,
    activation.Softmax: softmax,
    activation.SoftmaxGrad: softmax_grad,
    activation.LogSoftmax: log_softmax,
    functions.Standardize: standardize,
    functions.StandardizeGrad: standardize_grad,
    functions.Std: std,
    functions.VectorNorm: vector_norm,
}
