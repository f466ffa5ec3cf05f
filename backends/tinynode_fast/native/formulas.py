"""Formulas: what an operator computes for an element, as C.

Requirement: a learner reads and changes the C of an operator, in a line. The letters of a
formula are the operands in order. ``s = e; y`` names a part of the formula. Functions have their
names for double, and numbers are written with a point. The emitter adds ``f`` for float32.
Rules bring an operator with rows, such as softmax, down to formulas and reductions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter, methodcaller
from typing import Any, NamedTuple, TypeAlias

import numpy

from tinynode import functions
from tinynode.functions import activation, comparison, exponential
from tinynode.net.operator import EMPTY
from tinynode.net.passes import ArraySpec, TimesNumber
from tinynode.nn.updates import AdamUpdate, MomentumUpdate, SGDUpdate
from tinynode_fast import lowering, rows
from tinynode_fast.kernel import FLOATS
from tinynode_fast.lowering import Actions, Call, Lowering, Names, SumOver, View
from tinynode_fast.native.build import has_vector_functions

_NAMES = """acos acosh asin asinh atan atan2 atanh cos cosh erf exp expm1 hypot log log10 log1p
log2 pow sin sinh tan tanh"""
FUNCTIONS = frozenset(_NAMES.split())
"""Functions of a loop with a vector form; without such a form NumPy is quicker."""
_CALL = re.compile(r"\b([a-z][a-z0-9]*)\(")


INTEGERS = {numpy.dtype("int64"), numpy.dtype("int32")}
"""The dtypes of labels."""


class Formula(NamedTuple):
    """An elementwise operator: ``text`` computes an element from the operands' elements."""

    name: str
    letters: tuple[str, ...]
    text: str

    @property
    def functions(self) -> frozenset[str]:
        """The called functions with a vector form."""
        return FUNCTIONS.intersection(_CALL.findall(self.text))

    @property
    def __name__(self) -> str:
        return self.name


class Reduction(NamedTuple):
    """The sum or the largest element over axes. The axes stay, with length 1."""

    name: str  # "sum", "max", or "largest": the largest of the numbers that are not NaN
    axes: tuple[int, ...]


class Pick(NamedTuple):
    """Minus the element of a row at a label; 0 for ``ignored``.

    The function of the nest returns 1 for a label beyond the row.
    """

    name: str
    ignored: int


Operation: TypeAlias = Formula | Reduction | Pick


def formula(name: str, letters: str, text: str) -> Formula:
    """A formula whose operands are separate letters."""
    return Formula(name, tuple(letters.split()), text)


_SIGMOID = "e = exp(-fabs(x)); s = (x < 0 ? e : 1.0) / (1.0 + e)"
_CUBIC, _SCALE = 0.044715, math.sqrt(2.0 / math.pi)
_UNARY = {
    functions.Negative: "-x",
    functions.Positive: "x",
    functions.Abs: "fabs(x)",
    functions.Square: "x * x",
    functions.Sqrt: "sqrt(x)",
    functions.Reciprocal: "1.0 / x",
    functions.Floor: "floor(x)",
    functions.Ceil: "ceil(x)",
    functions.Round: "rint(x)",
    functions.Trunc: "trunc(x)",
    functions.Sign: "x > 0 ? 1.0 : x < 0 ? -1.0 : x == 0 ? 0.0 : x",
    functions.ReLU: "x > 0 || x != x ? x : 0.0",
    functions.Sigmoid: f"{_SIGMOID}; s",
    activation.SiLU: f"{_SIGMOID}; s * x",
    activation.TanhGELU: f"t = tanh((x * x * {_CUBIC * _SCALE!r} + {_SCALE!r}) * x); "
    "(t + 1.0) * (x * 0.5)",
    **{
        getattr(functions, name.capitalize()): f"{name}(x)"
        for name in sorted(FUNCTIONS - {"erf", "atan2", "hypot", "pow"})
    },
    exponential.Erf: "erf(x)",
    comparison.IsFinite: "isfinite(x) != 0",
    comparison.IsInf: "isinf(x) != 0",
    comparison.IsNaN: "x != x",
}
_BINARY = {
    functions.Add: "x + y",
    functions.Subtract: "x - y",
    functions.Multiply: "x * y",
    functions.Divide: "x / y",
    functions.Maximum: "x >= y || x != x ? x : y",
    functions.Minimum: "x <= y || x != x ? x : y",
    functions.CopySign: "copysign(x, y)",
    functions.Hypot: "hypot(x, y)",
    functions.Atan2: "atan2(x, y)",
    functions.Equal: "x == y",
    functions.NotEqual: "x != y",
    functions.Less: "x < y",
    functions.LessEqual: "x <= y",
    functions.Greater: "x > y",
    functions.GreaterEqual: "x >= y",
    functions.ReLUGrad: "x > 0 ? y : 0.0",
    activation.SiLUGrad: f"{_SIGMOID}; ((1.0 - s) * x + 1.0) * s * y",
    activation.TanhGELUGrad: "h = x < -10.0 ? -10.0 : x > 10.0 ? 10.0 : x; "
    f"t = tanh((h * h * {_CUBIC * _SCALE!r} + {_SCALE!r}) * h); "
    f"u = (h * h * {3.0 * _CUBIC * _SCALE!r} + {_SCALE!r}) * h; "
    "((1.0 - t * t) * u + t + 1.0) * 0.5 * y",
}
FORMULAS: dict[type, Formula] = {
    **{kind: formula(kind.__name__.lower(), "x", text) for kind, text in _UNARY.items()},
    **{kind: formula(kind.__name__.lower(), "x y", text) for kind, text in _BINARY.items()},
    functions.Where: formula("where", "c x y", "c ? x : y"),
}
"""The formulas of operators without settings."""
ADD, MULTIPLY = FORMULAS[functions.Add], FORMULAS[functions.Multiply]
SUBTRACT, EXP = FORMULAS[functions.Subtract], FORMULAS[functions.Exp]
OF_CALLS = {numpy.add: ADD, numpy.multiply: MULTIPLY}
"""The formulas of calls made by the rules for NumPy."""


def as_c(call: Call, shape: tuple[int, ...]) -> Operation | None:
    """What a call computes, as a formula or a reduction of a value of a shape; None if neither."""
    function = call.function
    if isinstance(function, Operation):
        return function
    if isinstance(function, SumOver) and function.keepdims:
        return Reduction("sum", tuple([axis % len(shape) for axis in function.axes]))
    if function is lowering.sum_channels:
        return Reduction("sum", (0, 2, 3))
    found = [made for known, made in OF_CALLS.items() if function is known]
    return found[0] if found else None


# --- rules ---------------------------------------------------------------------------------------


class NativeLowering(Lowering):
    """Lowering for a plan in C: the rules of ``RULES`` come first."""

    def __init__(self, forms: dict[str, ArraySpec], columns: Iterable[str] = ()) -> None:
        super().__init__(forms, columns)
        self.known: dict[tuple[Any, Names], str] = {}
        self.done: set[Call] = set()

    def rules_of(self, node: Any, names: Names) -> list[Any]:
        found = super().rules_of(node, names)
        sizes = [math.prod(self.shape(name)) for name in names if name != EMPTY]
        rule = RULES.get(type(node)) if all(sizes) else None
        return [rule, *found] if rule is not None else found

    def reduced(self, name: str, axes: tuple[int, ...], read: str) -> tuple[Call, str]:
        """A reduction over axes, to a new value."""
        made = Reduction(name, axes)
        write = self.known.get((made, (read,)))
        write = write or self.fresh(rows.kept_shape(self.shape(read), axes), read)
        self.known[made, (read,)] = write
        return Call(made, (read,), (write,)), write

    def lower(self, operator: Any) -> None:
        before = len(self.actions)
        super().lower(operator)
        new = self.actions[before:]
        del self.actions[before:]
        for action in new:  # what two operators need is computed once
            if not (isinstance(action, Call) and isinstance(action.function, Operation)):
                self.actions.append(action)
            elif action not in self.done:
                self.done.add(action)
                self.actions.append(action)

    def computed(self, made: Formula, *reads: str) -> tuple[Call, str]:
        """A formula of some values, to a new value of the broadcast shape."""
        shape = numpy.broadcast_shapes(*map(self.shape, reads))
        write = self.known.get((made, reads)) or self.fresh(shape, reads[0])
        self.known[made, reads] = write
        return Call(made, reads, (write,), True), write


def is_usable(made: Formula) -> bool:
    """True if the loop of a formula is as quick as NumPy."""
    return has_vector_functions() or not made.functions


def _formula(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    made = FORMULAS[type(node)]
    dtypes = {to.forms[name][1] for name in (*reads, *writes)} - {numpy.dtype(bool)}
    if is_usable(made) and len(dtypes) == 1 and dtypes <= FLOATS:
        yield Call(made, reads, writes, True)


def _with_settings(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    made = SETTINGS[type(node)](node)
    if made is not None and is_usable(made) and to.one_dtype(reads + writes):
        yield Call(made, reads, writes, True)


def _times(node: Any) -> Formula:
    return formula("times", "x", f"x * {number(node.number)}")


def _leaky_relu(node: Any) -> Formula | None:
    usual = 0.0 < node.slope <= 1.0
    return formula("leaky_relu", "x", f"x > 0 ? x : x * {node.slope!r}") if usual else None


def _elu(node: Any) -> Formula:
    a, b = number(node.scale), number(node.scale * node.alpha)
    return formula("elu", "x", f"e = expm1(x > 0 ? 0.0 : x); (x > 0 ? x : 0.0) * {a} + e * {b}")


def number(value: float) -> str:
    """A number as C."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    return repr(float(value)) if value >= 0 else f"({float(value)!r})"


SETTINGS: dict[type, Callable[[Any], Formula | None]] = {
    TimesNumber: _times,
    functions.LeakyReLU: _leaky_relu,
    functions.ELU: _elu,
}
"""The formulas of operators with settings, from the FunctionNode."""


SHIFTED = formula("shifted", "x m", "x - (m == -INFINITY ? 0.0 : m)")


def _softmax(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    """e = e^(x - max), y = e / sum of e; 0 where every x is -inf."""
    if not (is_usable(EXP) and to.one_dtype(reads + writes)):
        return
    (x,), axes = reads, (node.axis % len(to.shape(reads[0])),)
    call, largest = to.reduced("largest", axes, x)
    yield call
    call, d = to.computed(SHIFTED, x, largest)
    yield call
    call, e = to.computed(EXP, d)
    yield call
    call, total = to.reduced("sum", axes, e)
    yield call
    yield Call(formula("softmax", "e s", "e / (s == 0 ? 1.0 : s)"), (e, total), writes, True)


def _log_softmax(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    """y = (x - max) - log of the sum of e^(x - max)."""
    if not (is_usable(EXP) and to.one_dtype(reads + writes)):
        return
    (x,), axes = reads, (node.axis % len(to.shape(reads[0])),)
    call, largest = to.reduced("largest", axes, x)
    yield call
    call, d = to.computed(SHIFTED, x, largest)
    yield call
    call, e = to.computed(EXP, d)
    yield call
    call, total = to.reduced("sum", axes, e)
    yield call
    call, log = to.computed(FORMULAS[functions.Log], total)
    yield call
    text = "y = d - l; y > 0 ? 0.0 : y"
    yield Call(formula("log_softmax", "d l", text), (d, log), writes, True)


def _mean(to: Any, axes: tuple[int, ...], x: str, mean: str) -> Actions:
    """The sum over axes, and the mean."""
    call, total = to.reduced("sum", axes, x)
    yield call
    n = math.prod(to.shape(x)[axis] for axis in axes)
    yield Call(formula("mean", "s", f"s / {float(n)!r}"), (total,), (mean,), True)


def _counted(to: Any, node: Any, labels: str, like: str) -> Iterator[Any]:
    """The labels as a column, and the number of counted labels, in the dtype of a value."""
    key = "column", (labels,)
    is_new = key not in to.known
    column = to.known.setdefault(key, to.fresh((*to.shape(labels), 1), labels))
    if is_new:
        yield View(methodcaller("reshape", to.shape(column)), (labels,), (column,))
    count = formula("counted", "x y", f"y == {node.ignore_label} ? 0.0 : 1.0")
    zero = to.number(0.0, like)
    call, ones = to.computed(count, zero, column)
    yield call
    call, total = to.reduced("sum", (0, 1), ones)
    yield call
    yield column, total


def _has_usual_labels(to: Any, node: Any, reads: Names) -> bool:
    x, labels = to.forms[reads[0]], to.forms[reads[-1]]
    usual = not node.smoothing and node.reduction in ("mean", "sum") and is_usable(EXP)
    return usual and len(x[0]) == 2 and x[0][1] > 1 and labels[1] in INTEGERS


def _cross_entropy(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    """log_p = log_softmax(x), loss_i = -log_p[label_i]; the sum, or the mean."""
    if len(reads) != 2 or not _has_usual_labels(to, node, reads) or writes[0] == EMPTY:
        return
    x, labels = reads
    loss, log_p = writes
    log_p = to.fresh(to.shape(x), x) if log_p == EMPTY else log_p
    if not to.one_dtype((x, loss, log_p)):
        return
    *calls, (column, count) = _counted(to, node, labels, x)
    yield from calls
    yield from _log_softmax(to, activation.LogSoftmax(1), (x,), (log_p,))
    losses = to.fresh((*to.shape(labels), 1), x)
    yield Call(Pick("label_loss", node.ignore_label), (log_p, column), (losses,), True)
    call, total = to.reduced("sum", (0, 1), losses)
    yield call
    text = "s / (m == 0 ? 1.0 : m)" if node.reduction == "mean" else "s"
    mean = to.fresh((1, 1), x)
    letters, reads = ("s m", (total, count)) if node.reduction == "mean" else ("s", (total,))
    yield Call(formula("mean", letters, text), reads, (mean,), True)
    yield View(methodcaller("reshape", ()), (mean,), (loss,))


def _cross_entropy_grad(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    """gx = g / m (e^log_p - 1 at the label), 0 in a row whose label is ignored."""
    if len(reads) != 3 or not _has_usual_labels(to, node, reads) or to.shape(reads[1]):
        return
    log_p, g, labels = reads
    if not to.one_dtype((log_p, g, *writes)):
        return
    *calls, (column, scale) = _counted(to, node, labels, g)
    yield from calls
    mean = node.reduction == "mean"
    made = formula("scale", "g m", "g / (m == 0 ? 1.0 : m)" if mean else "g")
    call, scale = to.computed(made, g, scale)
    yield call
    ignored = f"y == {node.ignore_label} ? 0.0 : (e - (j == y ? 1.0 : 0.0)) * s"
    made = formula("cross_entropy_grad", "l y s", f"e = exp(l); {ignored}")
    yield Call(made, (log_p, column, scale), writes, True)


def _standardize(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    """m = mean x, d = x - m, r = 1 / sqrt(mean of d^2 + eps), y = d r."""
    if EMPTY in writes or not to.one_dtype(reads + writes):
        return
    (d,), (y, m, r) = reads, writes
    if node.center:
        yield from _mean(to, node.axes, d, m)
        call, d = to.computed(SUBTRACT, d, m)
        yield call
    else:
        zero = to.number(0.0, m)
        yield Call(FORMULAS[functions.Positive], (zero,), (m,), True)
    call, square = to.computed(FORMULAS[functions.Square], d)
    yield call
    mean = to.fresh(to.shape(m), m)
    yield from _mean(to, node.axes, square, mean)
    text = f"1.0 / sqrt(q + {number(node.eps)})"
    yield Call(formula("inverse_root", "q", text), (mean,), (r,), True)
    yield Call(MULTIPLY, (d, r), (y,), True)


def _standardize_grad(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    """gx = r (g - mean g - y mean(g y))."""
    g, y, r = reads
    if not to.one_dtype(reads + writes) or to.shape(g) != to.shape(y):
        return
    call, product = to.computed(MULTIPLY, g, y)
    yield call
    share = to.fresh(rows.kept_shape(to.shape(g), node.axes), g)
    yield from _mean(to, node.axes, product, share)
    reads, letters, text = (g, y, share, r), "g y a r", "(g - y * a) * r"
    if node.center:
        mean = to.fresh(to.shape(share), g)
        yield from _mean(to, node.axes, g, mean)
        reads, letters, text = (*reads, mean), "g y a r m", "(g - y * a - m) * r"
    yield Call(formula("standardize_grad", letters, text), reads, writes, True)


def _reduce(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    """Sum, max and mean; a shape without the axes is a view."""
    if not to.one_dtype(reads + writes):
        return
    (x,), (y,) = reads, writes
    shape = to.shape(x)
    axes = node.axes_of(shape) if type(node) is functions.SumTo else node.axes
    kept = rows.kept_shape(shape, axes)
    wide = y if to.shape(y) == kept else to.fresh(kept, y)
    if type(node) is functions.Mean:
        yield from _mean(to, axes, x, wide)
    else:
        yield Call(Reduction("max" if type(node) is functions.Max else "sum", axes), (x,), (wide,))
    if wide != y:
        yield from lowering._view(to, node, (wide,), writes)


def _max_pool(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    """The largest of the places of a window, each a view of x, and the number of its place."""
    (x,), (y, winners), windows = reads, writes, node.windows
    count = math.prod(windows.size)
    if windows.padding != (0, 0) or count > len(_PLACES) or to.forms[x][1] not in FLOATS:
        return
    if y == EMPTY or winners == EMPTY or to.forms[winners][1] != numpy.dtype("int8"):
        return
    places = []
    for _, _, index in windows.places(to.shape(y)[2:]):
        places.append(to.fresh(to.shape(y), x))
        if x in to.orders:
            to.orders[places[-1]] = to.orders[x]
        yield View(itemgetter(index), (x,), (places[-1],))
    best, number, parts = "a", "0", []
    for i, letter in enumerate(_PLACES[1:count], 1):
        parts.append(f"{_BEST[i]} = {letter} > {best} || {letter} != {letter} ? {letter} : {best}")
        number = f"{letter} > {best} || {letter} != {letter} ? {i} : {number}"
        best = _BEST[i]
    letters = " ".join(_PLACES[:count])
    made = "; ".join([*parts, best])
    yield Call(formula("max_pool", letters, made), tuple(places), (y,), True)
    made = "; ".join([*parts[:-1], number])
    yield Call(formula("winner", letters, made), tuple(places), (winners,), True)


_PLACES, _BEST = "abcd", "zyxw"


def _max_pool_grad(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    """gx = gy at the place of the winner, else 0, for windows that tile the image."""
    (gy, winners), (gx,), (size, stride, padding, dilation) = reads, writes, node.windows
    n, c, rows, columns = to.shape(gy)
    tiles = (rows * size[0], columns * size[1]) == tuple(node.image) and size == stride
    if not tiles or padding != (0, 0) or dilation != (1, 1) or math.prod(size) > 100:
        return
    if to.forms[winners][1] != numpy.dtype("int8") or not to.one_dtype((gy, gx)):
        return
    tall = [to.fresh((n, c, rows, 1, columns, 1), name) for name in reads]
    for name, read in zip(tall, reads, strict=True):
        yield View(methodcaller("reshape", to.shape(name)), (read,), (name,))
    place = to.fresh((size[0], 1, size[1]), winners)
    to.constants[place] = numpy.arange(math.prod(size), dtype="int8").reshape(to.shape(place))
    wide = to.fresh((n, c, rows, size[0], columns, size[1]), gx)
    to.orders[wide] = 0, 2, 3, 4, 5, 1  # the channels last
    made = formula("max_pool_grad", "g w k", "w == k ? g : 0.0")
    yield Call(made, (*tall, place), (wide,), True)
    yield View(methodcaller("reshape", to.shape(gx)), (wide,), (gx,))


def _update(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    arrays, numbers = reads[: len(writes) + 1], reads[len(writes) + 1 :]
    if to.one_dtype(arrays + writes) and {to.forms[n][0] for n in numbers} <= {()}:
        yield from UPDATES[type(node)](to, node, reads, writes)


def _adam(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    """m' = b1 m + c1 g, v' = b2 v + c2 g^2, p' = p - rate m' / (sqrt(v') + eps)."""
    (p, g, m, v, lr, count), (new, new_m, new_v), (b1, b2) = reads, writes, node.betas
    root = f"sqrt(1.0 - pow({number(b2)}, n))"
    text = f"a * {root} / (1.0 - pow({number(b1)}, n))"
    call, rate = to.computed(formula("rate", "a n", text), lr, count)
    yield call
    call, eps = to.computed(formula("eps", "n", f"{number(node.eps)} * {root}"), count)
    yield call
    moment = f"m * {number(b1)} + g * {number(1 - b1)}"
    yield Call(formula("adam", "m g", moment), (m, g), (new_m,), True)
    moment = f"v * {number(b2)} + g * g * {number(1 - b2)}"
    yield Call(formula("moment", "v g", moment), (v, g), (new_v,), True)
    text, letters, reads = "p - m / (sqrt(v) + e) * a", "p m v e a", (p, new_m, new_v, eps, rate)
    if node.weight_decay:
        kept_share = formula("kept", "a", f"1.0 - a * {number(node.weight_decay)}")
        call, kept = to.computed(kept_share, lr)
        yield call
        text, letters, reads = f"p * k - {text[4:]}", f"{letters} k", (*reads, kept)
    yield Call(formula("step", letters, text), reads, (new,), True)


def _sgd(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    p, g, lr = reads
    yield Call(formula("sgd", "p g a", "p - g * a"), (p, g, lr), writes, True)


def _momentum(to: Any, node: Any, reads: Names, writes: Names) -> Actions:
    (p, g, v, lr, momentum), (new, new_v) = reads, writes
    yield Call(formula("momentum", "v g b", "v * b + g"), (v, g, momentum), (new_v,), True)
    yield Call(formula("step", "p v a", "p - v * a"), (p, new_v, lr), (new,), True)


UPDATES = {AdamUpdate: _adam, SGDUpdate: _sgd, MomentumUpdate: _momentum}
RULES: dict[type, Callable[[Any, Any, Names, Names], Actions]] = {
    **dict.fromkeys(FORMULAS, _formula),
    **dict.fromkeys(SETTINGS, _with_settings),
    **dict.fromkeys(UPDATES, _update),
    **dict.fromkeys([functions.Sum, functions.SumTo, functions.Max, functions.Mean], _reduce),
    functions.SoftmaxCrossEntropy: _cross_entropy,
    functions.SoftmaxCrossEntropyGrad: _cross_entropy_grad,
    functions.MaxPool2d: _max_pool,
    functions.MaxPool2dGrad: _max_pool_grad,
    activation.Softmax: _softmax,
    activation.LogSoftmax: _log_softmax,
    functions.Standardize: _standardize,
    functions.StandardizeGrad: _standardize_grad,
}
