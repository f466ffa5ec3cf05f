"""``xp.special``: special functions of Variables.

Requirement: SciPy's own code, called with Variables, keeps the graph. SciPy asks a namespace for
``special`` before it converts to NumPy, so that code reaches the functions below. The values come
from ``tinynode.functions`` where that has the function, else from scipy.special on the host.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy

from tinynode import functions
from tinynode.array_api.base import NUMBERS, Forwarder, NamespaceBase
from tinynode.array_api.special_nodes import (
    OpaqueSpecial,
    SpecialFunction,
    host_value,
    scipy_function,
)
from tinynode.array_api.special_rules import RULES
from tinynode.core.array_methods import ArrayMethods
from tinynode.core.variable import Variable
from tinynode.devices import COMPLEX, is_floating, kind_of
from tinynode.errors import OperandError, describe

COMPOSED_BY_SCIPY = frozenset(("betaincc", "chdtr", "chdtrc", "rel_entr", "stdtrit"))
"""SciPy composes these functions itself, so the names are not offered."""


class OtherSpecial:
    """A function of scipy.special without a method in ``Special``: call it with Variables.

    Its docstring has the derivative by each argument with a rule.

    Args:
        owner: the ``Special`` of a device.
        name: the name in scipy.special.
    """

    def __init__(self, owner: Special, name: str) -> None:
        self.__name__ = name
        rules = enumerate(RULES.get(name, ()))
        derivatives = [f"By argument {i}: {rule.__doc__}" for i, rule in rules if rule]
        self.__doc__ = "\n".join([f"scipy.special.{name} of Variables.", *derivatives])
        self.owner = owner

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.owner.call(self.__name__, *arguments, **keywords)

    def __repr__(self) -> str:
        return f"<{self.__name__} of {self.owner!r}>"


class OfTinynode(Forwarder):
    """A function of tinynode of a single argument, in the floating dtype."""

    def __call__(self, namespace: Any, x: Any, /) -> Variable:
        y: Variable = self.function(*namespace._operands(self.__name__, x))
        return y


class Special(NamespaceBase):
    """The special functions of a device.

    Arguments are Variables, arrays or numbers. Arguments broadcast. The dtype of a result is the
    floating dtype of the arguments, or the default one if all are integers. The methods below and
    all functions in ``RULES``, such as ``ndtr``, are differentiable. Any other function of
    scipy.special gives its value; a gradient that is not zero raises NotImplementedError in the
    backward pass.

    Args:
        home: the device of new Variables.

    Raises:
        ImportError: the values need SciPy, which is not installed.
        AttributeError: SciPy has no such function, or composes it itself: ``COMPOSED_BY_SCIPY``.
    """

    def __repr__(self) -> str:
        return f"<xp.special of {self._home}>"

    # --- functions of tinynode: SciPy is not needed ------------------------------------------

    erf = OfTinynode(functions.erf)
    erfc = OfTinynode(functions.erfc)
    erfinv = OfTinynode(functions.erfinv)
    gammaln = OfTinynode(functions.lgamma)
    digamma = OfTinynode(functions.digamma)
    psi = OfTinynode(functions.digamma)
    expit = OfTinynode(functions.sigmoid)
    log_expit = OfTinynode(functions.log_sigmoid)
    expm1 = OfTinynode(functions.expm1)
    log1p = OfTinynode(functions.log1p)

    def polygamma(self, n: Any, x: Any, /) -> Variable:
        """The n-th derivative of digamma.   dy/dx = polygamma(n + 1, x); no rule in n."""
        if isinstance(n, int | numpy.integer):
            return functions.polygamma(int(n), *self._operands("polygamma", x))
        return self._rule("polygamma", n, x)

    def multigammaln(self, a: Any, d: Any, /) -> Variable:
        """The sum of gammaln(a - i / 2) over i < d, and d (d - 1) / 4 log(pi); d is an int."""
        (a,) = self._operands("multigammaln", a)
        count = int(d)
        total = functions.lgamma(a) + 0.25 * count * (count - 1) * math.log(math.pi)
        for i in range(1, count):
            total = total + functions.lgamma(a - 0.5 * i)
        return total

    def logsumexp(
        self,
        a: Any,
        /,
        axis: Any = None,
        b: Any = None,
        keepdims: bool = False,
        return_sign: bool = False,
    ) -> Any:
        """log(sum of b e^a) over axes.   dy/da = b e^(a - y)   dy/db = e^(a - y)

        With ``return_sign``, the result is log |sum| and the sign of the sum. A weight 0 leaves
        out an entry, unless b requires a gradient.
        """
        if b is None:
            (a,) = self._operands("logsumexp", a)
            y = functions.logsumexp(a, axis, keepdims)
            return (y, functions.sign(functions.exp(y))) if return_sign else y
        a, b = self._operands("logsumexp", a, b)
        if not b.requires_grad:
            a = functions.where(b == 0, -math.inf, a)
        top = functions.max(a.detach(), axis=axis, keepdims=True)
        top = functions.where(functions.abs(top) < math.inf, top, 0.0)
        total = functions.sum(b * functions.exp(a - top), axis=axis, keepdims=True)
        y = functions.log(functions.abs(total) if return_sign else total) + top
        sign = functions.sign(total)
        if not keepdims:
            axes = tuple(range(y.ndim)) if axis is None else axis
            y, sign = functions.squeeze(y, axes), functions.squeeze(sign, axes)
        return (y, sign) if return_sign else y

    def softmax(self, x: Any, /, axis: Any = None) -> Variable:
        """e^x over the sum of e^x.   dL/dx = y (dL/dy - sum(y dL/dy))"""
        return functions.exp(self.log_softmax(x, axis))

    def log_softmax(self, x: Any, /, axis: Any = None) -> Variable:
        """x - logsumexp(x).   dL/dx = dL/dy - e^y sum(dL/dy)"""
        (x,) = self._operands("log_softmax", x)
        top = functions.max(x.detach(), axis=axis, keepdims=True)
        x = x - functions.where(functions.isfinite(top), top, 0.0)
        y: Variable = x - functions.logsumexp(x, axis, keepdims=True)
        return y

    # --- values of SciPy, with rules ---------------------------------------------------------

    def zeta(self, s: Any, q: Any = None, /) -> Variable:
        """Hurwitz's zeta: the sum of (q + i)^-s over i >= 0.   dy/dq = -s zeta(s + 1, q)

        Without q: Riemann's zeta, without a rule.
        """
        return self._rule("zeta", s) if q is None else self._rule("zeta", s, q)

    def gammasgn(self, x: Any, /) -> Variable:
        """The sign of Gamma(x), outside the graph: dy/dx = 0."""
        return self._rule("gammasgn", *(x.detach() for x in self._operands("gammasgn", x)))

    # --- the other functions of SciPy --------------------------------------------------------

    def __getattr__(self, name: str) -> OtherSpecial:
        """Another function of scipy.special. Python asks only for names that stand not above."""
        if name.startswith("_") or name in COMPOSED_BY_SCIPY:
            raise AttributeError(f"xp.special has no function {name!r}.", name=name, obj=None)
        if name in RULES:
            return OtherSpecial(self, name)
        try:
            found = scipy_function(name)
        except AttributeError:
            found = None
        if not callable(found) or isinstance(found, type):
            raise AttributeError(
                f"xp.special has no function {name!r}, and neither has scipy.special.",
                name=name,
                obj=None,
            )
        return OtherSpecial(self, name)

    def __dir__(self) -> list[str]:
        """The methods, and the functions with a rule."""
        return sorted({*super().__dir__(), *RULES} - COMPOSED_BY_SCIPY)

    def call(self, name: str, *arguments: Any, **keywords: Any) -> Any:
        """A function of scipy.special by its name: by the rule, else as a value without a rule."""
        if name in RULES and len(arguments) == len(RULES[name]) and not keywords:
            return self._rule(name, *arguments)
        return self._value(name, arguments, keywords)

    def _rule(self, name: str, *arguments: Any) -> Variable:
        """A function of Variables of a common floating dtype; without a rule if one is complex."""
        variables = self._operands(name, *arguments)
        if kind_of(variables[0].filled_array()) == COMPLEX:
            opaque: Variable = self._value(name, variables, {})
            return opaque
        return SpecialFunction(name).apply(variables)[0]

    def _value(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """What SciPy gives, as a Variable or a tuple of Variables, whose gradient is refused."""
        for key, value in keywords.items():
            if hasattr(value, "dtype") and not isinstance(value, numpy.generic):
                raise OperandError(
                    f"xp.special.{name}: {key} must be a number or a text, got {describe(value)}. "
                    "Arrays are positional arguments here."
                )
        constants, variables = [], []
        for position, x in enumerate(arguments):
            if _is_array(x):
                variables.append(self._lift(f"special.{name}", x))
            else:
                constants.append((position, x))
        if variables:
            node = OpaqueSpecial(name, tuple(constants), tuple(keywords.items()))
            outputs = node.apply(tuple(variables))
            return outputs if len(outputs) > 1 else outputs[0]
        value = host_value(name, list(arguments), keywords)
        values = value if isinstance(value, tuple) else (value,)
        found = tuple(self._new(self._home.from_host(numpy.asarray(y))) for y in values)
        return found if isinstance(value, tuple) else found[0]

    def _operands(self, name: str, *arguments: Any) -> tuple[Variable, ...]:
        """Arguments as Variables of a common floating dtype.

        Numbers take the dtype of the arrays. Integer arrays take the floating one of the others,
        or the default floating dtype.

        Raises:
            OperandError: an argument is no Variable, no array and no number.
            DeviceMixError: an argument is an array of another device.
        """
        arrays = [self._lift(f"special.{name}", x) for x in arguments if _is_array(x)]
        dtypes = [x.dtype for x in arrays if is_floating(x.raw) or kind_of(x.raw) == COMPLEX]
        dtype = self._xp.result_type(*dtypes) if dtypes else self._xp.asarray(0.0).dtype
        waiting = iter(arrays)
        found = []
        for x in arguments:
            if _is_array(x):
                x = next(waiting)
                found.append(x if x.dtype == dtype else functions.astype(x, dtype))
            elif isinstance(x, NUMBERS):
                number = x.item() if isinstance(x, numpy.generic) else x
                device = self._library_device if not arrays else arrays[0].filled_array().device
                found.append(self._new(self._xp.asarray(number, dtype=dtype, device=device)))
            else:
                found.append(self._lift(f"special.{name}", x))  # raises the error
        return tuple(found)


def _is_array(x: Any) -> bool:
    """True for Variables and arrays; False for numbers, NumPy's scalars and other objects."""
    if isinstance(x, ArrayMethods):
        return True
    return hasattr(x, "dtype") and not isinstance(x, type | numpy.generic)


def call_ufunc(ufunc: Any, xs: tuple[Any, ...]) -> Any:
    """``scipy.special.f(x)`` of Variables, called as a NumPy ufunc; None for other ufuncs."""
    module = sys.modules.get("scipy.special._ufuncs")
    name = ufunc.__name__
    if module is None or getattr(module, name, None) is not ufunc:
        return None
    own = next(x for x in xs if isinstance(x, ArrayMethods)).__array_namespace__().special
    return own.call(name, *xs) if name in COMPOSED_BY_SCIPY else getattr(own, name)(*xs)
