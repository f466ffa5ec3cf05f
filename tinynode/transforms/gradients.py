"""Gradients of functions with a single number as the result: value_and_grad, gradient, hvp.

Requirement: "the gradient of f at x" in one line, without ``cleargrad``, ``backward`` and ``grad``
on Variables. The function is called on fresh Variables, so no ``grad`` of the
arguments is read or written.

The results are recorded as those of any function. For Variables that require a gradient, a graph
leads back to them, so derivatives of derivatives exist. For arrays there is no graph, and backward
is quicker. ``enable_double_backprop`` chooses.

    def f(x):
        return tn.functions.sum(x * x * x)

    value, gx = tn.value_and_grad(f)(x)              # gx = 3 x^2
    gx = tn.gradient(f)(x)
    Hv = tn.hvp(f, x, v)                             # H v, without H
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar, overload

from tinynode.core.backprop import grad
from tinynode.core.variable import Variable
from tinynode.transforms.trees import (
    Point,
    call,
    check_call,
    fitting,
    gradients,
    or_zeros,
    rebuilt,
)

P = ParamSpec("P")
A = TypeVar("A")


@overload
def value_and_grad(
    f: Callable[P, Any],
    argnums: int = 0,
    enable_double_backprop: bool | None = None,
    *,
    has_aux: Literal[False] = False,
) -> Callable[P, tuple[Variable, Any]]: ...
@overload
def value_and_grad(
    f: Callable[P, Any],
    argnums: tuple[int, ...],
    enable_double_backprop: bool | None = None,
    *,
    has_aux: Literal[False] = False,
) -> Callable[P, tuple[Variable, tuple[Any, ...]]]: ...
@overload
def value_and_grad(
    f: Callable[P, tuple[Any, A]],
    argnums: int | tuple[int, ...] = 0,
    enable_double_backprop: bool | None = None,
    *,
    has_aux: Literal[True],
) -> Callable[P, tuple[tuple[Variable, A], Any]]: ...
def value_and_grad(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    enable_double_backprop: bool | None = None,
    *,
    has_aux: bool = False,
) -> Callable[..., Any]:
    """A function that gives f's value and gradient.

    f: ..., x: (s), ... -> y: a single number.   The result: ... -> y, dy/dx: (s)

        >>> value, gx = tn.value_and_grad(lambda x: F.sum(x**2))(tn.asarray([1.0, 2.0]))
        >>> value.item(), gx.tolist()
        (5.0, [2.0, 4.0])

    Args:
        f: takes Variables or arrays, also in tuples, lists and dicts, gives a Variable of size 1.
        argnums: the positions of the arguments to differentiate with respect to. With a tuple, the
            gradient is a tuple too.
        enable_double_backprop: record a graph of the gradient, back to the arguments, so that the
            gradient can be differentiated. None means True where f's value depends on a Variable
            that requires a gradient, as an argument or from outside, and back-propagation is
            enabled. So arrays give no graph, nor does ``with tn.no_grad()``.
        has_aux: f returns a pair ``(value, aux)``. The gradient is the value's. ``aux`` may be
            anything, such as the outputs of a model or a dict of metrics.

    Returns:
        A function with f's arguments, giving ``(value, gradient)``; with ``has_aux``,
        ``((value, aux), gradient)``. The gradient is nested as the argument. Arguments outside
        ``argnums``, and keyword arguments, go to f unchanged. The gradient is zeros where f does
        not depend on an argument. The value keeps the graph, so ``value.backward()`` reaches
        Variables used by f besides the arguments.

    Raises:
        ValueError: when called: f's value has more than one element, or an argument is missing.
        TypeError: when called: f gives no Variable, or an argument is not floating; or f gives no
            pair, and ``has_aux`` is True.
    """
    return _value_and_grad("value_and_grad", f, argnums, enable_double_backprop, has_aux)


@overload
def gradient(
    f: Callable[P, Any],
    argnums: int = 0,
    enable_double_backprop: bool | None = None,
    *,
    has_aux: Literal[False] = False,
) -> Callable[P, Any]: ...
@overload
def gradient(
    f: Callable[P, Any],
    argnums: tuple[int, ...],
    enable_double_backprop: bool | None = None,
    *,
    has_aux: Literal[False] = False,
) -> Callable[P, tuple[Any, ...]]: ...
@overload
def gradient(
    f: Callable[P, tuple[Any, A]],
    argnums: int | tuple[int, ...] = 0,
    enable_double_backprop: bool | None = None,
    *,
    has_aux: Literal[True],
) -> Callable[P, tuple[Any, A]]: ...
def gradient(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    enable_double_backprop: bool | None = None,
    *,
    has_aux: bool = False,
) -> Callable[..., Any]:
    """A function that gives f's gradient.

    f: ..., x: (s), ... -> y: a single number.   The result: ... -> dy/dx: (s)

        >>> f = lambda x: F.sum(x**2)
        >>> tn.gradient(f)(tn.asarray([1.0, 2.0])).tolist()
        [2.0, 4.0]

    Args:
        f: as for ``value_and_grad``.
        argnums: the positions of the arguments to differentiate with respect to. With a tuple, the
            result is a tuple too.
        enable_double_backprop: record a graph of the gradient, as for ``value_and_grad``.
        has_aux: f returns a pair ``(value, aux)``, and the function gives ``(gradient, aux)``.

    Raises:
        ValueError: when called: f's value has more than one element, or an argument is missing.
        TypeError: when called: f gives no Variable, or an argument is not floating; or f gives no
            pair, and ``has_aux`` is True.
    """
    return gradient_for("gradient", f, argnums, enable_double_backprop, has_aux)


def gradient_for(
    name: str,
    f: Callable[..., Any],
    argnums: int | tuple[int, ...],
    again: bool | None = None,
    has_aux: bool = False,
) -> Callable[..., Any]:
    """``gradient``, as a part of the transform ``name``: errors begin with this name."""
    both = _value_and_grad(name, f, argnums, again, has_aux)

    def gradient_of_f(*args: Any, **kwargs: Any) -> Any:
        value, gx = both(*args, **kwargs)
        return (gx, value[1]) if has_aux else gx

    return gradient_of_f


def _value_and_grad(
    name: str,
    f: Callable[..., Any],
    argnums: int | tuple[int, ...],
    again: bool | None,
    has_aux: bool,
) -> Callable[..., Any]:
    has_aux = check_call(name, f, argnums, has_aux)

    def value_and_grad_of_f(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        point = call(name, f, argnums, args, kwargs, again, has_aux)
        y = _single_number(name, point)
        gxs = rebuilt(point.trees, gradients([y], point.inputs, [None], point.needs_graph()))
        value = (y, point.aux) if has_aux else y
        return value, gxs[0] if isinstance(argnums, int) else gxs

    return value_and_grad_of_f


def hvp(
    f: Callable[..., Any],
    x: Any,
    v: Any,
    enable_double_backprop: bool | None = None,
    *,
    has_aux: bool = False,
) -> Any:
    """The Hessian of f times a vector, without making the Hessian.

    f: x: (s) -> y: a single number.   v: (s) -> Hv: (s), Hv[i] = sum_j d^2 y / (dx[i] dx[j]) v[j]

    A backward of a backward: the cost is a few calls of f, for any size of x. A derivative None
    counts as zero.

    Args:
        f: takes Variables, also in tuples, lists and dicts, gives a Variable of size 1.
        x: the point: a Variable, an array or a dict; or a tuple for an f of several arguments.
        v: the vector, nested as x, of the shapes and dtypes of x.
        enable_double_backprop: record a graph of the result, back to x and v. None means: as for
            ``value_and_grad``.
        has_aux: f returns a pair ``(value, aux)``, and the result is ``(Hv, aux)``.

    Raises:
        ValueError: v does not fit x, or f's value has more than one element.
        TypeError: f gives no Variable, or x is not floating; or f gives no pair for ``has_aux``.
    """
    has_aux = check_call("hvp", f, has_aux=has_aux)
    args = x if isinstance(x, tuple | list) else (x,)
    point = call("hvp", f, tuple(range(len(args))), args, {}, enable_double_backprop, has_aux)
    vectors = fitting("hvp", "vector v", x, v, point.inputs, "")
    y = _single_number("hvp", point)
    gxs = gradients([y], point.inputs, [None], True)
    again = point.needs_graph(vectors)
    found = grad(gxs, point.inputs, vectors, enable_double_backprop=again)
    product = rebuilt(x, map(or_zeros, found, point.inputs))
    return (product, point.aux) if has_aux else product


def _single_number(name: str, point: Point) -> Variable:
    """The result of an f that must give a single number."""
    y = point.result
    if not isinstance(y, Variable):
        raise TypeError(
            f"{name}: f must give a Variable, got a {type(y).__name__}. Return the single number "
            "alone, or pass has_aux=True for a pair (number, aux), or ask for tinynode.jacrev(f)."
        )
    if y.size != 1:
        raise ValueError(
            f"{name}: f must give a single number, it gives shape {y.shape}. Reduce it, for "
            "example with sum, or ask for tinynode.jacobian(f)."
        )
    return y
