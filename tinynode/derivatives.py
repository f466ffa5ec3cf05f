"""Derivatives of functions, as functions: value_and_grad, jacobian, hvp.

Requirement: "the gradient of f at x" in one line, without ``cleargrad``, ``backward`` and ``grad``
on Variables. The function is called on fresh Variables, so no ``grad`` of the
arguments is read or written.

By default the results have no graph. With ``enable_double_backprop=True`` a graph leads from the
results back to the given Variables, for derivatives of derivatives.

    def f(x):
        return tn.functions.sum(x * x * x)

    value, gx = tn.value_and_grad(f)(x)              # gx = 3 x^2
    H = tn.jacobian(gradient_of_f)(x)                # see jacobian
    Hv = tn.hvp(f, x, v)                             # H v, without H
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tinynode.configuration import force_backprop_mode, using_config
from tinynode.core.backprop import grad
from tinynode.core.conversion import as_variable
from tinynode.core.hooks import tell_detached
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import is_floating
from tinynode.errors import RequiresGradError, describe, dtype_name
from tinynode.functions import concat, identity, reshape
from tinynode.transforms.colouring import sparse_jacobian


def value_and_grad(
    f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, enable_double_backprop: bool = False
) -> Callable[..., Any]:
    """A function that gives f's value and gradient.

    f: ..., x: (s), ... -> y: a single number.   The result: ... -> y, dy/dx: (s)

    Args:
        f: takes Variables or arrays, gives a Variable of size 1.
        argnums: the positions of the arguments to differentiate with respect to. With a tuple, the
            gradient is a tuple too.
        enable_double_backprop: record a graph of the gradient, back to the arguments.

    Returns:
        A function with f's arguments, giving ``(value, gradient)``, both Variables. Arguments
        outside ``argnums``, and keyword arguments, go to f unchanged. The gradient is zeros where
        f does not depend on an argument. The value keeps the graph, so ``value.backward()``
        reaches Variables used by f besides the arguments.

    Raises:
        ValueError: when called: f's value has more than one element, or an argument is missing.
        TypeError: when called: f gives no Variable, or an argument is not floating.
    """

    _check_call("value_and_grad", f, argnums)

    def value_and_grad_of_f(*args: Any, **kwargs: Any) -> tuple[Variable, Any]:
        xs, y = _call("value_and_grad", f, argnums, args, kwargs, enable_double_backprop)
        _check_scalar("value_and_grad", y)
        gxs = _gradients(y, xs, None, enable_double_backprop)
        return y, gxs[0] if isinstance(argnums, int) else tuple(gxs)

    return value_and_grad_of_f


def jacobian(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    enable_double_backprop: bool = False,
    *,
    sparsity: Any = None,
) -> Callable[..., Any]:
    """A function that gives all first derivatives of f.

    f: ..., x: (s), ... -> y: (t).   The result: ... -> J: (t + s), J[i, j] = dy[i] / dx[j]

    Runs a backward pass for each element of y. A Hessian is the Jacobian of a gradient:

        def gradient(x):
            return tn.value_and_grad(f, enable_double_backprop=True)(x)[1]

        H = tn.jacobian(gradient)(x)

    Args:
        f: takes Variables or arrays, gives a Variable.
        argnums: as for ``value_and_grad``; with a tuple, the result is a tuple too.
        enable_double_backprop: record a graph of the derivatives, back to the arguments.
        sparsity: booleans, (size of y, size of x): True where a derivative may be non-zero. Few
            passes suffice then, one for each colour (see ``transforms.colouring``). The result is
            still the whole array, with zeros outside of the pattern. A wrong pattern gives a wrong
            result; debug mode compares a product with a random vector, and raises.

    Raises:
        ValueError: when called: an argument is missing. In debug mode: ``sparsity`` is wrong.
        TypeError: when called: f gives no floating Variable, or an argument is not floating, or
            ``sparsity`` has another shape or dtype. At once: ``sparsity`` with several argnums.
    """

    _check_call("jacobian", f, argnums)
    if sparsity is not None and not isinstance(argnums, int):
        raise TypeError(f"jacobian: sparsity is for one argument, got argnums={argnums!r}.")

    def jacobian_of_f(*args: Any, **kwargs: Any) -> Any:
        xs, y = _call("jacobian", f, argnums, args, kwargs, enable_double_backprop)
        if sparsity is not None:
            return sparse_jacobian(xs[0], y, sparsity, enable_double_backprop)
        rows = []
        for position in range(y.size):
            rows.append(_gradients(y, xs, _basis(y, position), enable_double_backprop))
        with using_config("enable_backprop", enable_double_backprop):
            results = [_stack([row[i] for row in rows], y, x) for i, x in enumerate(xs)]
        return results[0] if isinstance(argnums, int) else tuple(results)

    return jacobian_of_f


def hvp(f: Callable[..., Any], x: Any, v: Any, enable_double_backprop: bool = False) -> Any:
    """The Hessian of f times a vector, without making the Hessian.

    f: x: (s) -> y: a single number.   v: (s) -> Hv: (s), Hv[i] = sum_j d^2 y / (dx[i] dx[j]) v[j]

    A backward of a backward: the cost is a few calls of f, for any size of x. A derivative None
    counts as zero.

    Args:
        f: takes Variables, gives a Variable of size 1.
        x: the point: a Variable or array, or a tuple for an f of several arguments.
        v: the vector, of the shape and dtype of x; a tuple if x is a tuple.
        enable_double_backprop: record a graph of the result, back to x and v.

    Raises:
        ValueError: v does not fit x, or f's value has more than one element.
        TypeError: f gives no Variable, or x is not floating.
    """
    args = x if isinstance(x, tuple | list) else (x,)
    vectors = _vectors(args, v if isinstance(x, tuple | list) else (v,))
    xs, y = _call("hvp", f, tuple(range(len(args))), tuple(args), {}, enable_double_backprop)
    _check_scalar("hvp", y)
    gxs = _gradients(y, xs, None, True)
    found = grad(gxs, xs, vectors, enable_double_backprop=enable_double_backprop)
    products = [or_zeros(hv, leaf) for hv, leaf in zip(found, xs, strict=True)]
    return tuple(products) if isinstance(x, tuple | list) else products[0]


def _check_call(name: str, f: Any, argnums: Any) -> None:
    """Refuse an f that is no function, and arguments of f in the place of ``argnums``."""
    if not callable(f):
        raise TypeError(f"{name}: f must be a function, got {describe(f)}.")
    positions = argnums if isinstance(argnums, tuple) else (argnums,)
    if not all(isinstance(position, int) for position in positions):
        raise TypeError(
            f"{name}: argnums must be an integer or a tuple of them, got {describe(argnums)}. "
            f"{name} makes a function: write {name}(f)(x)."
        )


def _call(
    name: str,
    f: Callable[..., Any],
    argnums: int | tuple[int, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    connected: bool,
) -> tuple[list[Variable], Variable]:
    """Call f with fresh Variables for ``argnums``; gives the Variables and f's value."""
    positions = (argnums,) if isinstance(argnums, int) else argnums
    given = list(args)
    with force_backprop_mode():
        for position in positions:
            if not 0 <= position < len(args):
                raise ValueError(
                    f"{name}: argnums={argnums!r}, but f was called with {len(args)} positional "
                    "arguments; they are counted from 0."
                )
            given[position] = _fresh(name, position, args[position], connected)
        y = f(*given, **kwargs)
    if not isinstance(y, Variable):
        raise TypeError(f"{name}: f must give a Variable, got {describe(y)}.")
    if not is_floating(y.raw):
        raise RequiresGradError(
            f"{name}: f gives {dtype_name(y.dtype)}, which has no derivative. Cast it with astype."
        )
    return [given[position] for position in positions], y


def _fresh(name: str, position: int, value: Any, connected: bool) -> Variable:
    """A Variable with the values of an argument: a leaf, or connected to the argument."""
    x = as_variable(value)
    if not is_floating(x.raw):
        raise RequiresGradError(
            f"{name}: argument {position} is {describe(x.raw)}: only floating arguments have a "
            "derivative. Cast it first, or leave its position out of argnums."
        )
    if connected and x.requires_grad:
        return identity(x)
    leaf = wrap_array(x.raw, x.device, True)
    tell_detached(x, leaf)
    return leaf


def _check_scalar(name: str, y: Variable) -> None:
    if y.size != 1:
        raise ValueError(
            f"{name}: f must give a single number, it gives shape {y.shape}. Reduce it, for "
            "example with sum, or ask for tinynode.jacobian(f)."
        )


def _gradients(
    y: Variable, xs: list[Variable], gy: Variable | None, enable_double_backprop: bool
) -> list[Variable]:
    """The gradients of y with respect to xs; zeros where y does not depend on x."""
    found = grad([y], xs, [gy], enable_double_backprop=enable_double_backprop)
    return [or_zeros(gx, x) for gx, x in zip(found, xs, strict=True)]


def or_zeros(gx: Variable | None, x: Variable) -> Variable:
    """A gradient of x, or zeros in place of None."""
    return wrap_array(x.xp.zeros_like(x.raw), x.device, False) if gx is None else gx


def _basis(y: Variable, position: int) -> Variable:
    """1 at a position of y's elements, 0 elsewhere."""
    xp = y.xp
    numbers = xp.arange(y.size, device=y.raw.device)
    ones = xp.astype(numbers == position, y.dtype)
    return wrap_array(xp.reshape(ones, y.shape), y.device, False)


def _stack(rows: Sequence[Variable], y: Variable, x: Variable) -> Variable:
    """The derivatives of y's elements with respect to x, in a Variable of shape y + x."""
    shape = y.shape + x.shape
    if math.prod(shape) == 0:
        zeros = x.xp.zeros(shape, dtype=x.dtype, device=x.raw.device)
        return wrap_array(zeros, x.device, False)
    return reshape(concat([reshape(row, (1, x.size)) for row in rows]), shape)


def _vectors(args: Sequence[Any], vectors: Any) -> list[Variable]:
    """The vectors as Variables, each fitting the argument."""
    if not isinstance(vectors, tuple | list) or len(vectors) != len(args):
        raise ValueError(f"hvp: x has {len(args)} parts, v must be a tuple of as many.")
    fitting = []
    for position, (x, v) in enumerate(zip(args, vectors, strict=True)):
        x, v = as_variable(x), as_variable(v)
        if v.device is not x.device or v.shape != x.shape or v.dtype != x.dtype:
            raise ValueError(
                f"hvp: v, part {position}, is {v.label} on {v.device}; x is {x.label} on "
                f"{x.device}."
            )
        fitting.append(v)
    return fitting
