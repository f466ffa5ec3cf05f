"""``xp.special``: special functions of Variables, with values from scipy.special.

SciPy asks a namespace for ``special`` first, so SciPy's own code reaches these functions.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy

from tinynode import functions
from tinynode.array_api.base import NamespaceBase
from tinynode.array_api.special_rules import RULES
from tinynode.core.array_methods import ArrayMethods
from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, Device, backend_of, to_host
from tinynode.functions.shapes import unbroadcast

COMPOSED = frozenset(
    "xlogy xlog1py rel_entr betaincc chdtr chdtrc stdtr stdtrit".split()  # noqa: SIM905
)
"""SciPy makes these of other functions where a namespace has none; so their gradients exist."""


class SpecialFunction(FunctionNode):
    """y = scipy.special's function of the name, elementwise, with broadcasting.

    x_i: (s_i), floating -> y: (broadcast of all s_i).   dL/dx_i = dL/dy * the rule's derivative
    in ``special_rules``. The values are computed in the host's memory.
    """

    def __init__(self, function: str) -> None:
        self.function = function

    @property
    def label(self) -> str:
        """The name of scipy.special, for pictures and messages."""
        return f"special.{self.function}"

    def forward(self, inputs: Arrays) -> Arrays:
        self.retain_inputs(tuple(range(len(inputs))))
        self.retain_outputs((0,))
        backend = backend_of(inputs[0])
        value = _scipy_function(self.function)(*[to_host(x) for x in inputs])
        return (backend.from_host(numpy.asarray(value), backend.index_of(inputs[0])),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        xs, (y,) = self.get_retained_inputs(), self.get_retained_outputs()
        gradients: list[Variable | None] = [None] * len(xs)
        for i in target_input_indexes:
            rate = self._derivative(xs, y, i)
            gradients[i] = unbroadcast(functions.zero_safe_multiply(gy, rate), self, i)
        return tuple(gradients)

    def _derivative(self, xs: tuple[Variable, ...], y: Variable, i: int) -> Variable:
        """dy / dx_i.

        Raises:
            NotImplementedError: no rule is known.
        """
        rule = RULES.get(self.function)
        special = Special(y.device)
        rate = None if rule is None else rule(special, xs, y, i)
        if rate is None:
            raise NotImplementedError(
                f"xp.special.{self.function}: there is no gradient rule for argument {i}. Pass "
                "x.detach() there, or write the function with others: docs/array-api.md lists "
                "those with a rule."
            )
        return rate


def _scipy_function(name: str) -> Any:
    """A function of scipy.special.

    Raises:
        ImportError: SciPy is not installed.
    """
    try:
        special = importlib.import_module("scipy.special._ufuncs")
    except ImportError as error:
        raise ImportError(
            f"xp.special.{name} takes its values from SciPy, which is not installed: "
            "pip install 'tinynode[scipy]'."
        ) from error
    return getattr(special, name)


class Special(NamespaceBase):
    """The special functions of a device.

    The functions of the table ``RULES`` and those below are differentiable. Another function of
    scipy.special gives the value; a gradient asked of it is an error.
    """

    def __init__(self, home: Device) -> None:
        super().__init__(home)

    def erf(self, x: Any, /) -> Variable:
        """2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x."""
        return functions.erf(self._lift("special.erf", x))

    def erfc(self, x: Any, /) -> Variable:
        """1 - erf(x), precise for large x."""
        return functions.erfc(self._lift("special.erfc", x))

    def erfinv(self, x: Any, /) -> Variable:
        """The inverse of erf."""
        return functions.erfinv(self._lift("special.erfinv", x))

    def gammaln(self, x: Any, /) -> Variable:
        """log |gamma(x)|."""
        return functions.lgamma(self._lift("special.gammaln", x))

    def digamma(self, x: Any, /) -> Variable:
        """The derivative of gammaln."""
        return functions.digamma(self._lift("special.digamma", x))

    def psi(self, x: Any, /) -> Variable:
        """The same as digamma."""
        return functions.digamma(self._lift("special.psi", x))

    def polygamma(self, n: Any, x: Any, /) -> Variable:
        """The n-th derivative of digamma."""
        return functions.polygamma(int(n), self._lift("special.polygamma", x))

    def expit(self, x: Any, /) -> Variable:
        """1 / (1 + e^-x)."""
        return functions.sigmoid(self._lift("special.expit", x))

    def log_expit(self, x: Any, /) -> Variable:
        """log(expit(x)), precise for x far below 0."""
        return functions.log_sigmoid(self._lift("special.log_expit", x))

    def zeta(self, x: Any, q: Any = 1.0, /) -> Variable:
        """Hurwitz's zeta function: the sum of (k + q)^-x over k = 0, 1, 2 ..."""
        return self._call("_zeta", x, q)

    def xlogy_(self, x: Any, y: Any, /) -> Variable:
        """x log(y), and 0 where x = 0: for rules. SciPy makes its own xlogy."""
        return functions.where(x == 0, 0.0, x * functions.log(functions.where(x == 0, 1.0, y)))

    def xlog1py_(self, x: Any, y: Any, /) -> Variable:
        """x log(1 + y), and 0 where x = 0: for rules. SciPy makes its own xlog1py."""
        return functions.where(x == 0, 0.0, x * functions.log1p(functions.where(x == 0, 0.0, y)))

    def __getattr__(self, name: str) -> Callable[..., Variable]:
        """Another function of scipy.special. Python asks only for names that stand not above."""
        if name in COMPOSED or name[0] == "_" or not isinstance(_found(name), numpy.ufunc):
            raise AttributeError(f"xp.special has no function {name!r}.")
        return functools.partial(self._call, name)

    def _call(self, name: str, *xs: Any) -> Variable:
        """A function of scipy.special on Variables."""
        variables = [self._lift(f"special.{name}", x) for x in self._of_one_kind(name, xs)]
        return SpecialFunction(name).apply(tuple(variables))[0]

    def _of_one_kind(self, name: str, xs: tuple[Any, ...]) -> list[Any]:
        """Numbers beside arrays as arrays of the first array's dtype."""
        given = [x for x in xs if hasattr(x, "dtype") and not isinstance(x, numpy.generic)]
        if not given:
            return list(xs)
        like = self._lift(f"special.{name}", given[0])
        return [
            x
            if any(x is one for one in given)
            else self._new(self._xp.asarray(float(x), dtype=like.dtype, device=like.raw.device))
            for x in xs
        ]


def call_ufunc(ufunc: Any, xs: tuple[Any, ...]) -> Variable | None:
    """``scipy.special.f(x)`` of Variables, called as a NumPy ufunc; None for other ufuncs."""
    if "scipy.special" not in sys.modules or _found(ufunc.__name__) is not ufunc:
        return None
    home = next(x for x in xs if isinstance(x, ArrayMethods)).device
    return getattr(Special(home), ufunc.__name__)(*xs)  # type: ignore[no-any-return]


def _found(name: str) -> Any:
    """The function of scipy.special, or None."""
    try:
        return _scipy_function(name)
    except AttributeError:
        return None
