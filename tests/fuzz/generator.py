"""A Hypothesis strategy that draws programs: Hypothesis shrinks and repeats the programs.

The strategy runs each step on the reference backend while the program is drawn. So the next step
knows shapes, dtypes and values. A step whose values are not finite, or large, is left out. A step
that raises ends the program: the test then fails on the step.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from fuzz.programs import Input, Program, Step, Var
from hypothesis import strategies as st

import tinynode as tn

SHAPES = [
    (3,), (2, 3), (), (1, 3), (2, 1), (3, 3), (2, 3, 4), (4,), (1,), (0, 3), (2, 1, 3), (3, 0),
    (1, 1), (2, 2, 3, 3), (4, 2), (3, 1, 1), (2, 0, 3),
]  # fmt: skip
LARGE = [(300, 3), (2, 4100), (33_000,), (130, 130)]
"""Shapes over limits of the fast path."""
VIEWS = ["", "", "", ".T", "[::-1]", "[::2]", "[..., ::-1]", "[..., 1:]", "[::-2]"]
DTYPES = ["float64", "float32", "float64", "float32", "float16"]
VALUES = ["special", "range", "special", "ties", "near"]
HIGHEST = 50.0
"""Larger values make a step too sensitive to rounding."""
LONGEST = 30
MOST_OUTPUTS = 5
SCALARS: list[Any] = [2, 0.5, -1.5, 3, 1, 0, -1, np.float32(0.25), np.float64(1.5), 2.5]

UNARY = """
sin cos tanh sigmoid relu gelu silu softplus log_sigmoid leaky_relu elu selu hard_tanh hard_sigmoid
hard_silu erf atan asinh square negative abs copy identity positive exp expm1 sinh cosh
"""
POSITIVE = "log sqrt log1p log2 log10 reciprocal"
INSIDE = "asin acos atanh tan"
ROUNDING = "floor ceil round trunc sign"
BINARY = """
add subtract multiply add subtract multiply maximum minimum logaddexp hypot atan2 copysign
zero_safe_multiply
"""
OF_POSITIVE = "divide remainder floor_divide divide"
COMPARISONS = "less greater_equal equal not_equal less_equal greater"
OPERATORS = {"add", "subtract", "multiply", "divide", "floor_divide", "pow", "matmul"}


@functools.cache
def whole(low: int, high: int) -> Any:
    return st.integers(low, high)


def memory_shape(shape: tuple[int, ...], view: str) -> tuple[int, ...]:
    """The shape of the array in memory whose view has the shape."""
    if view == ".T":
        return shape[::-1]
    if view in ("[::2]", "[::-2]"):
        return (2 * shape[0], *shape[1:])
    if view == "[..., 1:]":
        return (*shape[:-1], shape[-1] + 1)
    return shape


class Writer:
    """A program under way.

    Attributes:
        inputs, steps: the parts of the program.
        values: the values by name, beside the globals of the text.
        dtype: the usual floating dtype of inputs.
        is_wide: True if inputs have values of the whole range, NaN and infinities included.
    """

    def __init__(self, draw: Any, is_wide: bool = False) -> None:
        self.draw, self.is_wide = draw, is_wide
        self.inputs: list[Input] = []
        self.steps: list[Step] = []
        self.values: dict[str, Any] = {}
        self.failed = False
        self.globals: dict[str, Any] = {"F": tn.functions, "np": np, "array": np.array, "tn": tn}
        self.numbers = SCALARS
        self.dtype = self.one_of(DTYPES)

    # --- choices ---------------------------------------------------------------------------

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(whole(low, high)))

    def one_of(self, options: Sequence[Any]) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def once_in(self, number: int) -> bool:
        """True once in ``number`` draws; Hypothesis shrinks towards False."""
        return self.integer(0, number - 1) == number - 1

    # --- values ----------------------------------------------------------------------------

    def of(self, var: Var) -> Any:
        return self.values[var.name]

    def shape(self, var: Var) -> tuple[int, ...]:
        return tuple(self.of(var).shape)

    def input(
        self, shape: tuple[int, ...] | None = None, dtype: str | None = None, large: bool = False
    ) -> Var:
        """A new input."""
        if shape is None:
            shape = self.one_of(LARGE if large else SHAPES)
        view = self.one_of(VIEWS) if shape else ""
        dtype = dtype or (self.one_of(DTYPES) if self.once_in(12) else self.dtype)
        is_float = dtype.startswith("float")
        requires = is_float and not self.once_in(8)
        name = f"x{len(self.inputs)}"
        seed = self.integer(0, 255)
        values = self.one_of(VALUES) if self.is_wide and is_float else "near"
        one = Input(name, memory_shape(shape, view), dtype, view, seed, requires, values)
        self.inputs.append(one)
        self.values[name] = tn.Variable(one.host(), requires_grad=False)
        return Var(name)

    def variables(self, accepts: Callable[[Any], bool], kind: str = "f") -> list[Var]:
        found = []
        for name, value in self.values.items():
            if isinstance(value, tn.Variable) and value.dtype.kind in kind and accepts(value):
                found.append(Var(name))
        return found

    def a_float(self, accepts: Callable[[Any], bool] | None = None, new: Any = None) -> Var:
        """A floating Variable that is accepted, or a new input of the shape ``new``."""
        found = self.variables(accepts or (lambda value: True))
        return self.one_of(found) if found else self.input(new)

    def beside(self, var: Var, accepts: Callable[[Any], bool] | None = None) -> Any:
        """A second operand: a number, a raw array, a Variable that broadcasts."""
        shape, kind = self.shape(var), self.integer(0, 7)
        if kind == 7:
            return self.one_of(self.numbers)
        if kind == 6:
            return self.constant(self.one_of([shape, shape[1:], shape[-1:], (1, *shape)]))
        found = self.variables(lambda value: _broadcasts(shape, value.shape))
        if kind == 5 or not found:
            return self.input(self.one_of([shape, shape[1:], (*shape[:-1], 1)[: len(shape)], ()]))
        return self.one_of(found)

    def constant(self, shape: tuple[int, ...], dtype: str | None = None) -> Var:
        """A raw array, written into the program."""
        if math.prod(shape) > 200:
            shape = ()
        values = self.rng().integers(-3000, 3001, shape) / 1000
        return self.literal(np.asarray(values, dtype or self.dtype))

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.integer(0, 255))

    def literal(self, values: Any) -> Var:
        """An array, written into the program."""
        name = f"k{len(self.values)}"
        self.steps.append(Step(name, "constant", (values,)))
        self.values[name] = values
        return Var(name)

    def axis(self, ndim: int, several: bool = False) -> Any:
        """An axis; with ``several`` also None, or a tuple of axes."""
        if several and (ndim == 0 or self.once_in(4)):
            return None
        axis = self.integer(-ndim, ndim - 1)
        if several and ndim > 1 and self.once_in(4):
            return (axis, (axis + 1) % ndim if axis >= 0 else axis + ndim - 1)
        return axis

    # --- steps -----------------------------------------------------------------------------

    def apply(self, function: str, *args: Any, **how: Any) -> Var | None:
        """Append a step and its value; None if the values are too large, or not finite.

        Args:
            function, args: those of the step.
            how: ``form``, ``pick`` and ``target`` of the step, and the step's keywords.
        """
        form, pick = how.pop("form", "call"), how.pop("pick", None)
        target = how.pop("target", None) or f"v{len(self.values)}"
        step = Step(target, function, args, how, form, pick)
        before = copy.copy(self.values[target]) if target in self.values else None
        try:
            with np.errstate(all="ignore"):
                exec(step.line(), self.globals, self.values)
        except Exception:
            self.steps.append(step)
            self.failed = True
            raise _StepFailedError from None
        if _is_calm(self.values[target], self.is_wide):
            self.steps.append(step)
            return Var(target)
        del self.values[target]
        if before is not None:
            self.values[target] = before
        return None

    def form(self, function: str) -> str:
        return "operator" if function in OPERATORS and not self.once_in(3) else "call"

    def positive(self, var: Var) -> Var | None:
        """x^2 + 0.5"""
        square = self.apply("square", var)
        return square and self.apply("add", square, 0.5, form="operator")

    def inside(self, var: Var) -> Var | None:
        """tanh(x) * 0.9, between -1 and 1."""
        tanh = self.apply("tanh", var)
        return tanh and self.apply("multiply", tanh, 0.9, form="operator")

    def program(self) -> Program:
        made = dict.fromkeys(s.target for s in self.steps if s.function != "constant")
        read = {name for step in self.steps for name in _names(step.args)}
        unread = [name for name in reversed(made) if name not in read] or list(made)[-1:]
        outputs = unread[: self.integer(2, MOST_OUTPUTS)]
        if not self.failed:
            outputs.append(self.one_of(list(made)))
        return Program(tuple(self.inputs), tuple(self.steps), tuple(dict.fromkeys(outputs)))


class _StepFailedError(Exception):
    """A step raised: the program ends."""


def _names(value: Any) -> set[str]:
    """The names in arguments."""
    if isinstance(value, Var):
        return {value.name}
    if isinstance(value, list | tuple):
        return {name for one in value for name in _names(one)}
    return set()


def _broadcasts(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    try:
        return math.prod(np.broadcast_shapes(one, other)) <= 150_000
    except ValueError:
        return False


def _is_calm(value: Any, is_wide: bool) -> bool:
    array = value.array if isinstance(value, tn.Variable) else value
    if array.size > 150_000:
        return False
    if is_wide and array.dtype.kind == "f":
        return True
    return not array.size or bool(np.all(np.isfinite(array) & (np.abs(array) <= HIGHEST)))


# --- families of steps: each draws one step, or a few ------------------------------------------


def unary(w: Writer) -> None:
    function = w.one_of(UNARY.split())
    more = {"approximate": True} if function == "gelu" and w.once_in(2) else {}
    w.apply(function, w.a_float(), **more)


def domains(w: Writer) -> None:
    kind, x = w.integer(0, 3), w.a_float()
    if kind == 0 and (y := w.positive(x)):
        w.apply(w.one_of(POSITIVE.split()), y)
    elif kind == 1 and (y := w.inside(x)):
        w.apply(w.one_of(INSIDE.split()), y)
    elif kind == 2 and (y := w.positive(x)):
        y = w.apply("add", y, 0.75, form="operator")
        if y is not None:  # the program may be full
            w.apply("acosh", y)
    else:
        w.apply(w.one_of(ROUNDING.split()), x)


def binary(w: Writer) -> None:
    x = w.a_float()
    y = w.beside(x)
    function = w.one_of(BINARY.split())
    args = (y, x) if w.once_in(3) else (x, y)
    w.apply(function, *args, form=w.form(function))


def quotients(w: Writer) -> None:
    x = w.a_float()
    denominator = w.positive(w.a_float(lambda v: _broadcasts(w.shape(x), v.shape)))
    if denominator is None:
        return
    function = w.one_of(OF_POSITIVE.split())
    numerator = w.one_of([x, x, 2, 1.5])
    w.apply(function, numerator, denominator, form=w.form(function))


def powers(w: Writer) -> None:
    x = w.a_float()
    kind = w.integer(0, 2)
    if kind == 0:
        w.apply("pow", x, w.one_of([2, 3, 1, 0, 2.0]), form="operator")
    elif y := w.positive(x):
        exponents = [0.5, -1, -0.5, 1.5, -2]
        exponent = w.one_of(exponents) if kind == 1 else w.inside(w.a_float(_fits(w, x)))
        if exponent is not None:
            w.apply("pow", y, exponent, form="operator")


def _fits(w: Writer, x: Var) -> Callable[[Any], bool]:
    shape = w.shape(x)
    return lambda value: _broadcasts(shape, value.shape)


def in_place(w: Writer) -> None:
    """x += v, on a value with one name, made by a step."""
    target = _own(w)
    if target is None:
        return
    shape = w.shape(target)
    fitting = w.variables(lambda v: _becomes(v, shape) and v.dtype == w.of(target).dtype)
    value = w.one_of([*fitting, 2, 0.5])
    function = w.one_of(["add", "subtract", "multiply"])
    w.apply(function, target, value, form="in-place", target=target.name)


def _becomes(value: Any, shape: tuple[int, ...]) -> bool:
    return _broadcasts(value.shape, shape) and np.broadcast_shapes(value.shape, shape) == shape


def _own(w: Writer) -> Var | None:
    """A value with one name, made by a step."""
    ids = [id(value) for value in w.values.values()]
    found = w.variables(lambda v: ids.count(id(v)) == 1)
    found = [var for var in found if var.name.startswith("v")]
    return w.one_of(found) if found else None


def writing(w: Writer) -> None:
    """x[i] = v"""
    target = _own(w)
    if target is None:
        return
    index = draw_index(w, w.shape(target), is_write=True)
    if index is None:
        return
    shape = _selected(w, target, index).shape
    dtype = w.of(target).dtype
    fitting = w.variables(lambda v: _becomes(v, shape) and v.dtype == dtype)
    value = w.one_of([*fitting, 0.5])
    if w.once_in(4):
        value = w.constant(shape[1:], str(dtype))
    w.apply("set_item", target, index, value, form="write", target=target.name)


def reading(w: Writer) -> None:
    """x[i]"""
    kinds = "fi" if w.once_in(6) else "f"
    x = w.one_of(w.variables(lambda v: True, kinds) or [w.input()])
    index = draw_index(w, w.shape(x))
    if index is not None:
        w.apply("get_item", x, index, form=w.one_of(["operator", "operator", "call"]))


def _selected(w: Writer, x: Var, index: Any) -> Any:
    items = index if type(index) is tuple else (index,)
    hosts = tuple([_array_of(w, item) for item in items])
    return np.empty(w.shape(x))[hosts if type(index) is tuple else hosts[0]]


def _array_of(w: Writer, item: Any) -> Any:
    if not isinstance(item, Var):
        return item
    value = w.of(item)
    return value.array if isinstance(value, tn.Variable) else value


def draw_index(w: Writer, shape: tuple[int, ...], is_write: bool = False) -> Any:
    """An index: integers, slices, steps, None, an ellipsis, integer arrays, a mask."""
    kind = w.integer(0, 7)
    if kind == 7 and shape and 0 < math.prod(shape) <= 200:
        return _mask(w, shape[: w.integer(1, len(shape))])
    if kind == 6 and shape and shape[0]:
        return _positions(w, shape[0], is_write)
    items: list[Any] = []
    for length in shape[: w.integer(0, len(shape))]:
        items.append(_draw_item(w, length))
    if kind == 5 and len(items) > 1 and shape[0]:
        items[0] = _positions(w, shape[0], is_write)
    if w.once_in(5):
        items.insert(w.integer(0, len(items)), None)
    if w.once_in(5):
        items.append(...)
    if len(items) == 1 and w.once_in(2):
        return items[0]
    return tuple(items)


def _draw_item(w: Writer, length: int) -> Any:
    if length and w.once_in(3):
        return w.integer(-length, length - 1)
    start, stop = w.integer(-length - 1, length + 1), w.integer(-length - 1, length + 1)
    ends = w.one_of([(None, None), (start, None), (None, stop), (start, stop)])
    return slice(*ends, w.one_of([None, 1, 2, -1, -2]))


def _positions(w: Writer, length: int, is_write: bool) -> Var:
    """An array of integers; in a write no position comes twice."""
    rng = w.rng()
    shape = w.one_of([(2,), (3,), (1,), (2, 2), (0,)])
    if is_write:
        values = rng.permutation(length)[: w.integer(1, 3)]
    else:
        values = rng.integers(-length, length, shape)
    return w.literal(values)


def _mask(w: Writer, shape: tuple[int, ...]) -> Var:
    return w.literal(w.rng().random(shape) < 0.6)


def _is_full(value: Any) -> bool:
    return bool(value.size)


def reduction(w: Writer) -> None:
    function = w.one_of(
        ["sum", "mean", "sum", "max", "min", "prod", "logsumexp", "var", "std", "sum"]
    )
    x = w.a_float(None if function in ("sum", "prod") else _is_full, (2, 3))
    if function == "std":
        if w.of(x).size < 2:
            return
        w.apply("std", x, axis=None)
        return
    more = {"keepdims": True} if w.once_in(3) else {}
    if function == "var" and w.once_in(2):
        more["correction"] = 0.5
    w.apply(function, x, axis=w.axis(w.of(x).ndim, True), **more)


def along(w: Writer) -> None:
    """Functions along one axis."""
    x = w.a_float(lambda v: v.ndim > 0 and v.size > 0, (2, 3))
    axis = w.axis(w.of(x).ndim)
    function = w.one_of([
        "softmax", "log_softmax", "cumulative_sum", "cumulative_prod", "sort", "flip", "roll",
        "diff", "argsort", "argmax", "softmax", "log_softmax", "glu", "repeat",
    ])  # fmt: skip
    n = w.shape(x)[axis]
    if function == "roll":
        w.apply("roll", x, w.integer(-3, 3), axis=w.one_of([axis, None]))
    elif function == "repeat":
        w.apply("repeat", x, w.integer(1, 2), axis=axis)
    elif function == "argsort":
        if order := w.apply("argsort", x, axis=axis):
            w.apply("take_along_axis", x, order, axis=axis)
    elif function == "sort":
        w.apply("sort", x, axis=axis, descending=w.once_in(2))
    elif function == "glu":
        if n % 2 == 0:
            w.apply("glu", x, axis=axis)
    else:
        w.apply(function, x, axis=axis)


def shaping(w: Writer) -> None:
    x = w.a_float()
    shape, ndim = w.shape(x), w.of(x).ndim
    size = math.prod(shape)
    kind = w.integer(0, 9)
    if kind == 0:
        options = [(size,), (1, *shape), shape[::-1], (*shape, 1), shape]
        options += [(-1,)] if size else []
        w.apply("reshape", x, w.one_of(options))
    elif kind == 1:
        axes = list(range(ndim))
        turn = w.integer(0, max(ndim - 1, 0))
        w.apply("permute_dims", x, tuple(w.one_of([axes[::-1], axes[turn:] + axes[:turn]])))
    elif kind == 2:
        w.apply("expand_dims", x, w.integer(-ndim - 1, ndim))
    elif kind == 3 and 1 in shape:
        w.apply("squeeze", x, shape.index(1))
    elif kind == 4:
        wider = tuple(3 if n == 1 else n for n in shape)
        wide = w.apply("broadcast_to", x, w.one_of([wider, (2, 3, *shape), (2, *wider)]))
        if wide and w.once_in(2):
            w.apply("sum_to", wide, shape)
    elif kind == 5 and size:
        lower = tuple(1 if w.once_in(2) else n for n in shape)
        w.apply("sum_to", x, w.one_of([lower, shape[1:], ()]))
    elif kind == 6:
        w.apply("flip", x, axis=w.axis(ndim, True))
    elif kind == 7 and ndim:
        w.apply("tile", x, w.one_of([2, (1,) * (ndim - 1) + (2,), (2, 1)]))
    elif kind == 8 and ndim:
        w.apply("pad", x, w.one_of([1, ((0, 1),) * ndim]), w.one_of([0, 0.5]))
    elif kind == 9 and ndim > 1:
        function = w.one_of(["matrix_transpose", "tril", "triu", "moveaxis"])
        w.apply(function, x, *([0, -1] if function == "moveaxis" else []))


def joining(w: Writer) -> None:
    x = w.a_float(lambda v: v.ndim > 0, (2, 3))
    shape, dtype, kind = w.shape(x), w.of(x).dtype, w.integer(0, 3)
    axis = w.axis(len(shape))
    same = w.variables(lambda v: v.shape == shape and v.dtype == dtype)
    if kind == 0:
        w.apply("concat", [x, w.one_of(same), w.one_of(same)], axis=axis)
    elif kind == 1:
        w.apply("stack", [w.one_of(same), x], axis=axis)
    elif kind == 2 and shape[axis]:
        place = w.integer(0, shape[axis])
        w.apply("split", x, [place], axis=axis, pick=w.integer(0, 1))
    elif shape[axis]:
        w.apply("unstack", x, axis=axis, pick=w.integer(0, shape[axis] - 1))


def choosing(w: Writer) -> None:
    x = w.a_float()
    kind, fits = w.integer(0, 4), _fits(w, x)
    if kind == 0:
        ends = w.one_of([(-1.0, 1.0), (None, 0.5), (0, None), (-0.5, 2)])
        w.apply("clip", x, *ends)
    elif kind == 1:
        function = w.one_of(COMPARISONS.split())
        other = w.one_of([*w.variables(fits), 0.25])
        form = "operator" if function in ("less", "greater_equal", "equal") else "call"
        w.apply(function, x, other, form=form)
    elif kind == 2:
        masks = w.variables(lambda v: _broadcasts(v.shape, w.shape(x)), "b")
        if masks:
            mask = w.one_of(masks)
            both = np.broadcast_shapes(w.shape(mask), w.shape(x))
            w.apply("where", mask, x, w.one_of(w.variables(lambda v: _broadcasts(v.shape, both))))
    elif kind == 3:
        w.apply("detach", x, form="operator")
    else:
        whole = "float64" if w.is_wide else "int64"  # no integer stands for NaN
        w.apply("astype", x, w.one_of(["float64", "float32", "float16", whole, "float32"]))


def integers(w: Writer) -> None:
    """Integers and bools: arithmetic, sums, casts to floats."""
    x = w.one_of(w.variables(lambda v: True, "ib") or [w.input(dtype="int64")])
    kind, is_bool = w.integer(0, 4), w.of(x).dtype == bool
    if kind == 0:
        w.input(dtype=w.one_of(["int64", "int32", "bool"]))
    elif kind == 1:
        w.apply("sum", x, axis=w.axis(w.of(x).ndim, True))
    elif kind == 2:
        w.apply("astype", x, w.dtype)
    elif kind == 3 and not is_bool:
        others = w.variables(lambda v: _broadcasts(v.shape, w.shape(x)), "i")
        function = w.one_of(["add", "multiply", "subtract", "maximum"])
        form = "operator" if function != "maximum" else "call"
        w.apply(function, x, w.one_of([*others, 2, -1]), form=form)
    elif not is_bool:
        rows = w.a_float(lambda v: v.ndim > 0 and v.shape[0] > 4, (5, 2))
        if low := w.apply("remainder", x, w.shape(rows)[0]):
            w.apply("take", rows, low, axis=0)


def products(w: Writer) -> None:
    x = w.a_float(lambda v: v.ndim > 0, (2, 3))
    shape, dtype, kind = w.shape(x), str(w.of(x).dtype), w.integer(0, 5)
    n = shape[-1]
    if kind == 0:
        found = w.variables(lambda v: v.shape[-2:] == (n, 3) or v.shape == (n,))
        found = [y for y in found if _matrices_fit(shape, w.shape(y))]
        y = w.one_of(found) if found else w.input((n, w.integer(1, 3)))
        w.apply("matmul", x, y, form=w.form("matmul"))
    elif kind == 1:
        weight, bias = w.input((2, n), dtype), w.one_of([None, w.input((2,), dtype)])
        w.apply("linear", x, weight, bias)
    elif kind == 2:
        y = w.one_of(w.variables(lambda v: v.shape == shape and v.dtype == w.of(x).dtype))
        w.apply("vecdot", x, y)
    elif kind == 3 and len(shape) == 2:
        w.apply("einsum", w.one_of(["ij->ji", "ij->j", "ij->", "ij->ij"]), x)
    elif kind == 4 and len(shape) > 1:
        y = w.input((n, 2), dtype)
        w.apply("tensordot", x, y, axes=1)
    elif len(shape) > 1 and (y := w.apply("matrix_transpose", x)):
        w.apply("matmul", x, y, form="operator")


def _matrices_fit(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return _broadcasts(one[:-2], other[:-2]) and math.prod(one) * math.prod(other) < 10_000


def networks(w: Writer) -> None:
    x = w.a_float(lambda v: v.ndim > 1 and 0 < v.size < 2000, (3, 4))
    shape, dtype, kind = w.shape(x), str(w.of(x).dtype), w.integer(0, 5)
    n = shape[-1]
    if kind == 0:
        x = w.a_float(lambda v: v.ndim == 2 and 0 < v.size < 2000, (3, 4))
        rows, classes = w.shape(x)
        labels = w.rng().integers(-1, classes, rows)
        labels[0] = 0
        smoothing = w.one_of([0.0, 0.1])
        reduction = w.one_of(["mean", "sum", "none"])
        more = {"reduction": reduction, "label_smoothing": smoothing}
        w.apply("softmax_cross_entropy", x, w.literal(labels), **more)
    elif kind == 1:
        w.apply("layer_norm", x, w.input((n,), dtype), w.input((n,), dtype), eps=0.01)
    elif kind == 2:
        w.apply("rms_norm", x, w.input((n,), dtype), eps=0.01)
    elif kind == 3 and shape[0] > 1:
        c = shape[1]
        w.apply("batch_norm", x, w.input((c,), dtype), w.input((c,), dtype), eps=0.01)
    elif kind == 4:
        y = w.one_of(w.variables(lambda v: v.shape == shape and v.dtype == w.of(x).dtype))
        function = w.one_of(["mean_squared_error", "huber", "mean_absolute_error"])
        w.apply(function, x, y, reduction=w.one_of(["mean", "sum", "none"]))
    else:
        q, k = w.input((2, 3), dtype), w.input((4, 3), dtype)
        w.apply("scaled_dot_product_attention", q, k, w.input((4, 2), dtype))


def images(w: Writer) -> None:
    x = w.a_float(
        lambda v: v.ndim == 4 and 0 < v.size < 2000 and min(v.shape[2:]) > 2, (2, 2, 4, 4)
    )
    channels, dtype, kind = w.shape(x)[1], str(w.of(x).dtype), w.integer(0, 3)
    if kind == 0:
        weight = w.input((w.integer(1, 3), channels, *w.one_of([(3, 3), (1, 1), (2, 3)])), dtype)
        bias = w.one_of([None, w.input((w.shape(weight)[0],), dtype)])
        w.apply("conv2d", x, weight, bias, stride=w.integer(1, 2), padding=w.integer(0, 1))
    elif kind == 1:
        w.apply("max_pool2d", x, w.one_of([2, 3, (1, 2)]), w.one_of([None, 1, 2]))
    elif kind == 2:
        w.apply("avg_pool2d", x, w.one_of([2, (2, 3)]), w.one_of([None, 1]), w.integer(0, 1))
    else:
        weight = w.input((channels, 2, 2, 2), dtype)
        w.apply("conv_transpose2d", x, weight, stride=w.integer(1, 2))


def matrices(w: Writer) -> None:
    """Linear algebra on x x^T + 3 I, for float32 and float64."""
    x = w.a_float(_has_small_matrices, (2, 3))
    if w.is_wide or not _has_small_matrices(w.of(x)) or not (y := w.inside(x)):
        return
    turned = w.apply("matrix_transpose", y)
    product = turned and w.apply("matmul", y, turned, form="operator")
    eye = w.literal(3 * np.eye(w.shape(x)[-2], dtype=str(w.of(x).dtype)))
    if product and (matrix := w.apply("add", product, eye, form="operator")):
        w.apply(f"linalg.{w.one_of(['inv', 'det', 'cholesky', 'trace'])}", matrix)


def _has_small_matrices(value: Any) -> bool:
    is_wide = str(value.dtype) in ("float32", "float64")
    return is_wide and value.ndim > 1 and value.size and value.shape[-2] <= 4


Family: TypeAlias = Callable[[Writer], None]
FAMILIES: list[Family] = [
    unary, unary, unary, binary, binary, binary, domains, quotients, powers, in_place, writing,
    reading, reading, reduction, reduction, along, shaping, shaping, joining, choosing, integers,
    products, networks, images, matrices,
]  # fmt: skip


@st.composite
def one_step(draw: Any, writer: Writer, families: Sequence[Family] = ()) -> None:
    """One step, or the few steps of a family."""
    writer.draw = draw
    with contextlib.suppress(_StepFailedError):
        writer.one_of(families or FAMILIES)(writer)


@st.composite
def programs(draw: Any, least: int = 3, is_wide: bool = False) -> Program:
    """Programs of 3 to 30 functions, and a few helpers of these.

    Args:
        draw: Hypothesis's function of draws.
        least: the fewest functions.
        is_wide: True for values of the whole range.
    """
    writer = Writer(draw, is_wide)
    for _ in range(writer.integer(1, 3)):
        writer.input(large=writer.once_in(60))
    for _ in range(LONGEST):
        stops = writer.integer(0, 5) == 0  # Hypothesis shrinks towards 0
        if writer.failed or (stops and len(writer.steps) >= least) or len(writer.steps) > LONGEST:
            break
        draw(one_step(writer))
        writer.draw = draw
    if not writer.steps:
        writer.apply("identity", Var("x0"))
    return writer.program()
