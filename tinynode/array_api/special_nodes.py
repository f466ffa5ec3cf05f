"""FunctionNodes of the special functions whose values come from SciPy.

Requirement: a value without a derivative rule may stand in a program. An error comes only when a
gradient that is not zero arrives there, and names the function.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy

from tinynode.core.array_arguments import raw_of
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, backend_of, is_float16, namespace_of, to_host
from tinynode.functions.arithmetic import zero_safe_multiply
from tinynode.functions.attributes import Axis, Order
from tinynode.functions.checked import checked
from tinynode.functions.data_types import narrowed, widened
from tinynode.functions.operands import as_operands, first_variable
from tinynode.functions.shapes import common_shape, unbroadcast

Rule: TypeAlias = Callable[[tuple[Variable, ...], Variable], Variable]
"""``rule(arguments, value)``: the derivative of the value with respect to an argument."""

RULES: dict[str, tuple[Rule | None, ...]] = {}
"""For each function of scipy.special a rule for each argument; None is an argument without one.

``special_rules`` fills the table. Its rules call ``special``, so they stand in another file.
"""


def scipy_function(name: str) -> Any:
    """A function of scipy.special, one of the public names.

    A saved net names the function, so other objects of the module must not be called:
    ``scipy.special.test`` would start pytest.

    Raises:
        ImportError: SciPy is not installed.
        AttributeError: SciPy has no such function.
    """
    try:
        module = importlib.import_module("scipy.special")
    except ImportError as error:
        raise ImportError(
            f"xp.special.{name}: the values come from SciPy, which is not installed. Install it: "
            "pip install scipy, or pip install 'tinynode[scipy]'."
        ) from error
    found = getattr(module, name) if name in module.__all__ else None
    if found is None or isinstance(found, type) or name in _SETTINGS:
        raise AttributeError(f"xp.special.{name}: scipy.special has no function {name!r}.")
    return found


_SETTINGS = ("geterr", "seterr")
"""These change settings of SciPy for the whole process."""


class NameOfSpecial(NamedTuple):
    """A text with the name of a function of scipy.special."""

    def takes(self, value: Any) -> bool:
        """True for the name of a function; without SciPy, only names with a rule are known."""
        if value in RULES:
            return True
        try:
            return callable(scipy_function(value))
        except (AttributeError, ImportError):
            return False

    def __str__(self) -> str:
        return "with the name of a function of scipy.special"


SpecialName = Annotated[str, NameOfSpecial()]


def host_value(name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
    """What scipy.special computes in the host's memory; infinities and NaN give no warning."""
    function = scipy_function(name)
    with numpy.errstate(all="ignore"):
        return function(*arguments, **keywords)


def from_host_beside(value: Any, dtype: Any, like: Array) -> Array:
    """A result of SciPy on the device of another array; floats are cast to a dtype."""
    host = numpy.asarray(value)
    if dtype is not None and host.dtype.kind == "f":
        host = host.astype(dtype, copy=False)
    backend = backend_of(like)
    return backend.from_host(host, backend.index_of(like))


INTEGER_ARGUMENTS = {
    "bdtr": (1,),
    "bdtrc": (1,),
    "expn": (0,),
    "kn": (0,),
    "nbdtr": (0, 1),
    "nbdtrc": (0, 1),
    "yn": (0,),
}
"""The positions of arguments that SciPy wants as integers."""


def host_arguments(name: str, inputs: Arrays) -> list[Any]:
    """The arrays of floating inputs in the host's memory; whole numbers as integers if needed."""
    hosts = [to_host(x) for x in inputs]
    for i in INTEGER_ARGUMENTS.get(name, ()):
        if numpy.all(hosts[i] == numpy.floor(hosts[i])):
            hosts[i] = hosts[i].astype(numpy.int64)
    return hosts


class SpecialFunction(FunctionNode):
    """y = the function of scipy.special with a name, elementwise, with broadcasting.

    x_i: (s_i), floating, of a common dtype -> y: (broadcast of all s_i).
    dL/dx_i = sum_to(dL/dy * dy/dx_i, s_i), with dy/dx_i from ``RULES``; 0 where dL/dy = 0 and the
    derivative is infinite or undefined.
    """

    def __init__(self, function: SpecialName) -> None:
        self.function: str = checked(self, "function", function)

    @property
    def label(self) -> str:
        """The name in scipy.special, for pictures and messages."""
        return f"special.{self.function}"

    def forward(self, inputs: Arrays) -> Arrays:
        common_shape(f"xp.{self.label}", *(x.shape for x in inputs))
        self.retain_inputs(tuple(range(len(inputs))))
        self.retain_outputs((0,))
        value = host_value(self.function, host_arguments(self.function, inputs), {})
        return (from_host_beside(value, to_host(inputs[0]).dtype, inputs[0]),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        inputs, (y,) = self.get_retained_inputs(), self.get_retained_outputs()
        xs = inputs
        if is_float16(raw_of(xs[0])):  # the steps of a rule round, and may overflow
            xs = tuple([widened(x) for x in xs])
            y = SpecialFunction(self.function).apply(xs)[0]
        rules = RULES.get(self.function, ())
        gradients: list[Variable | None] = [None] * len(inputs)
        for i in target_input_indexes:
            rule = rules[i] if i < len(rules) else None
            if rule is None:
                gradients[i] = MissingRule(self.function, i).apply((gy, inputs[i]))[0]
            else:
                with numpy.errstate(all="ignore"):  # the derivative may be infinite where gy is 0
                    slope = narrowed(rule(xs, y), gy)
                    gradients[i] = unbroadcast(zero_safe_multiply(gy, slope), self, i)
        return tuple(gradients)


class OpaqueSpecial(FunctionNode):
    """The outputs of a function of scipy.special that has no derivative rule.

    x_i: any -> y_j: as SciPy gives them. A gradient that is not zero is an error.

    Args:
        function: the name in scipy.special.
        constants: (position, value) of the arguments that are no arrays.
        keywords: (name, value) of the keyword arguments.
    """

    def __init__(
        self,
        function: SpecialName,
        constants: tuple[tuple[Axis, Any], ...],
        keywords: tuple[tuple[str, Any], ...],
    ) -> None:
        self.function: str = checked(self, "function", function)
        self.constants: tuple[Any, ...] = checked(self, "constants", constants)
        self.keywords: tuple[Any, ...] = checked(self, "keywords", keywords)

    @property
    def label(self) -> str:
        """The name in scipy.special, for pictures and messages."""
        return f"special.{self.function}"

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs(tuple(range(len(inputs))))
        arguments: list[Any] = [to_host(x) for x in inputs]
        floats = [x.dtype for x in arguments if x.dtype.kind == "f"]
        dtype = numpy.result_type(*floats) if floats else None
        for position, constant in self.constants:  # positions rise
            arguments.insert(position, constant)
        value = host_value(self.function, arguments, dict(self.keywords))
        values = value if isinstance(value, tuple) else (value,)
        return tuple(from_host_beside(y, dtype, inputs[0]) for y in values)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        xs = self.get_retained_inputs()
        given = tuple(g for g in grad_outputs if g is not None)
        gradients: list[Variable | None] = [None] * len(xs)
        for i in target_input_indexes:
            gradients[i] = MissingRule(self.function, None).apply((*given, xs[i]))[0]
        return tuple(gradients)


class MissingRule(FunctionNode):
    """gx = 0, for an argument without a derivative rule, if every incoming gradient is 0.

    g_j: any shapes, x: (s) -> gx: (s). Another gradient than 0 is an error, at any order.

    Args:
        function: the name in scipy.special.
        position: the argument without a rule; None if the function has no rule at all.
    """

    def __init__(self, function: str, position: Axis | None) -> None:
        self.function: str = checked(self, "function", function)
        self.position: int | None = checked(self, "position", position)

    def forward(self, inputs: Arrays) -> Arrays:
        *gradients, x = inputs
        xp = namespace_of(x)
        self.retain_inputs(tuple(range(len(inputs))))
        if any(bool(xp.any(g != 0)) for g in gradients):
            where_ = "" if self.position is None else f" for argument {self.position}"
            raise NotImplementedError(
                f"xp.special.{self.function} has no gradient rule{where_}. Pass x.detach() there "
                "if no gradient is needed. Otherwise write the function with functions that have "
                "a rule: tinynode.array_api.special_rules.RULES lists them."
            )
        return (xp.zeros_like(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        *gradients, _ = self.get_retained_inputs()
        (h,) = grad_outputs
        found = [MissingRule(self.function, self.position).apply((h, g))[0] for g in gradients]
        return (*found, None)


class ScaledTail(FunctionNode):
    """y = the n-th derivative of erfcx(x) = e^(x^2) erfc(x).   x: (s) -> y: (s).

    dL/dx = dL/dy * (the derivative of order n + 1)

    Source: Gautschi, Efficient Computation of the Complex Error Function, 1970.

    Args:
        n: the order of the derivative, from 1 on.
    """

    is_elementwise = True

    def __init__(self, n: Order) -> None:
        self.n: int = checked(self, "n", n)

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        self.retain_inputs((0,))
        host = to_host(x)
        with numpy.errstate(all="ignore"):
            y = _scaled_tail(self.n, host.astype(numpy.float64))
            return (from_host_beside(y, host.dtype, x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        (x,) = self.get_retained_inputs()
        return (zero_safe_multiply(gy, ScaledTail(self.n + 1).apply((x,))[0]),)


def _scaled_tail(n: int, x: numpy.ndarray) -> numpy.ndarray:
    """The n-th derivative of erfcx of a float64 array.

    With y_k for the derivative of order k: y_1 = 2 x y_0 - 2 / sqrt(pi), and
    y_k = 2 x y_(k-1) + 2 (k - 1) y_(k-2). For large x the terms cancel. There y_k is
    -2 k r_k y_(k-1), and r_k = 1 / (2 x + 2 (k + 1) r_(k+1)) is a continued fraction.
    """
    erfcx = scipy_function("erfcx")
    low = numpy.minimum(x, CANCELS)
    before, y = erfcx(low), 2.0 * low * erfcx(low) - 2.0 / math.sqrt(math.pi)
    for k in range(2, n + 1):
        before, y = y, 2.0 * low * y + (2.0 * k - 2.0) * before
    high = numpy.maximum(x, CANCELS)
    tail = numpy.asarray(erfcx(high))
    ratio = 1.0 / (high + numpy.sqrt(high * high + 2.0 * (n + TERMS)))  # near the limit
    for k in range(n + TERMS, 0, -1):
        ratio = 1.0 / (2.0 * high + (2.0 * k + 2.0) * ratio)
        if k <= n:
            tail = tail * (-2.0 * k) * ratio
    return numpy.where(x > CANCELS, tail, y)


CANCELS, TERMS = 1.25, 100
"""Where the recurrence of ``_scaled_tail`` ends, and the terms of the fraction beyond."""


def special(name: str, *xs: Any) -> Variable:
    """A special function with a rule, of Variables and numbers.

    A number takes the dtype and the device of the first Variable.
    """
    like = first_variable(*xs)
    variables = [x if isinstance(x, Variable) else as_operands(name, x, like)[0] for x in xs]
    return SpecialFunction(name).apply(tuple(variables))[0]
