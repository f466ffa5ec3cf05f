"""Linear maps at a point: vjp (reverse mode), jvp (forward mode), linearize.

Requirement: forward mode without a second set of rules. The vjp u -> u J is linear in u. So the
derivative of the vjp with respect to u, along v, is J v, the jvp. The value of u does not matter:
u is a dummy. (J. Townsend, "A new trick for calculating Jacobian vector products", 2017.)

    value, pullback = tn.vjp(f, x)                   # pullback(u) = (u J,)
    value, tangent = tn.jvp(f, (x,), (v,))           # tangent = J v
    value, linear = tn.linearize(f, x)               # linear(v) = J v, many times
    print(linear)                                    # the net of the linear map
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

from tinynode.configuration import force_backprop_mode
from tinynode.core.backprop import grad
from tinynode.core.hooks import is_recording_net, thread_state
from tinynode.core.variable import Variable
from tinynode.devices import hidden_axes
from tinynode.errors import GraphError, describe
from tinynode.net.helpers import DummyGradient
from tinynode.transforms.linear_map import LinearMap
from tinynode.transforms.trees import (
    Point,
    call,
    check_call,
    checked_choice,
    fitting,
    gradients,
    leaves_of,
    or_zeros,
    rebuilt,
)

R = TypeVar("R")
A = TypeVar("A")


@overload
def vjp(
    f: Callable[..., R],
    *xs: Any,
    enable_double_backprop: bool | None = None,
    has_aux: Literal[False] = False,
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(
    f: Callable[..., tuple[Any, A]],
    *xs: Any,
    enable_double_backprop: bool | None = None,
    has_aux: Literal[True],
) -> tuple[Any, Callable[[Any], tuple[Any, ...]], A]: ...
def vjp(
    f: Callable[..., Any],
    *xs: Any,
    enable_double_backprop: bool | None = None,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """The value of f, and the function from a gradient of the value to the gradients of xs.

    f: xs: (s), ... -> y: (t).   pullback: u: (t) -> (u J: (s), ...), (u J)[j] = sum_i u[i]
    dy[i]/dx[j]

        >>> y, pullback = tn.vjp(lambda x: x * x, tn.asarray([1.0, 2.0]))
        >>> (gx,) = pullback(tn.asarray([1.0, 1.0]))
        >>> gx.tolist()
        [2.0, 4.0]

    Args:
        f: takes Variables or arrays, also in tuples, lists and dicts; gives Variables, also
            nested.
        xs: the arguments of f, all differentiated.
        enable_double_backprop: record a graph of the gradients, back to xs and u. None means: as
            for ``value_and_grad``.
        has_aux: f returns a pair ``(value, aux)``, and ``vjp`` gives ``(value, pullback, aux)``.

    Returns:
        ``(value, pullback)``. ``pullback(u)`` takes a u nested as the value, and gives a tuple
        with the gradient of each argument. Call ``pullback`` as often as needed.

    Raises:
        TypeError: a leaf of the result is no Variable, or an argument is not floating.
        ValueError: when ``pullback`` is called: u has another nesting, shape or device.
    """
    has_aux = check_call("vjp", f, has_aux=has_aux)
    point = call("vjp", f, tuple(range(len(xs))), xs, {}, enable_double_backprop, has_aux)

    def pullback(u: Any) -> tuple[Any, ...]:
        gys = fitting("vjp", "gradient u", point.result, u, point.outputs, "")
        again = point.needs_graph(gys)
        found: tuple[Any, ...] = rebuilt(
            point.trees, gradients(point.outputs, point.inputs, gys, again)
        )
        return found

    return (point.result, pullback, point.aux) if has_aux else (point.result, pullback)


_CUT = (
    "{}: the gradient with respect to {} does not depend on the gradient of f's result. A "
    "backward in f made a Variable from arrays. Forward mode differentiates backward: write the "
    "backward with tinynode.functions, and return None for a gradient of zero."
)


class Pushforward:
    """J v at a point, for any number of v: the vjp at a dummy u, differentiated along u.

    Attributes:
        name: the name of the transform, for errors.
        point: the function and its arguments.
        us: the dummy gradients of f's outputs.
        gxs: the vjp at ``us``, with a graph back to ``us``; without exact zeros.

    Raises:
        GraphError: a backward in f is no function of Variables.
    """

    def __init__(self, name: str, point: Point) -> None:
        self.name = name
        self.point = point
        with force_backprop_mode():
            self.us = [DummyGradient().apply((y,))[0] for y in point.outputs]
        found = grad(point.outputs, point.inputs, self.us, enable_double_backprop=True)
        self.gxs = {i: gx for i, gx in enumerate(found) if gx is not None}
        for i, gx in self.gxs.items():
            is_cut = gx.creator_node is None and all(gx is not u for u in self.us)
            if is_cut or not gx.requires_grad:
                raise GraphError(_CUT.format(name, leaves_of(name, point.trees, "xs")[i][0]))

    def along(self, tangents: Sequence[Variable], again: bool) -> list[Variable]:
        """J v for each leaf of the result, from v for each leaf of the arguments."""
        chosen = [tangents[i] for i in self.gxs]
        found = grad(list(self.gxs.values()), self.us, chosen, enable_double_backprop=again)
        return list(map(or_zeros, found, self.us))

    def __call__(self, vs: tuple[Any, ...], always_graph: bool = False) -> Any:
        """J v, nested as f's result, for v nested as f's arguments."""
        point = self.point
        tangents = fitting(self.name, "tangent", point.trees, vs, point.inputs, "vs")
        again = always_graph or point.needs_graph(tangents)
        return rebuilt(point.result, self.along(tangents, again))


@overload
def jvp(
    f: Callable[..., R],
    xs: Sequence[Any],
    vs: Sequence[Any],
    enable_double_backprop: bool | None = None,
    *,
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    f: Callable[..., tuple[Any, A]],
    xs: Sequence[Any],
    vs: Sequence[Any],
    enable_double_backprop: bool | None = None,
    *,
    has_aux: Literal[True],
) -> tuple[Any, Any, A]: ...
def jvp(
    f: Callable[..., Any],
    xs: Sequence[Any],
    vs: Sequence[Any],
    enable_double_backprop: bool | None = None,
    *,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """The value of f, and the derivative of the value along a direction.

    f: xs: (s), ... -> y: (t).   vs: (s), ... -> J v: (t), (J v)[i] = sum_j dy[i]/dx[j] v[j]

    The double-vjp trick: two backward passes, for any size of x and y.

        >>> x, v = tn.asarray([1.0, 2.0]), tn.asarray([1.0, 0.0])
        >>> y, slope = tn.jvp(lambda x: x * x, (x,), (v,))
        >>> y.tolist(), slope.tolist()
        ([1.0, 4.0], [2.0, 0.0])

    Args:
        f: as for ``vjp``.
        xs: a tuple with the arguments of f, all differentiated.
        vs: the direction, called a tangent: nested as xs, of the shapes of xs.
        enable_double_backprop: record a graph of the tangent, back to xs and vs. None means: as
            for ``value_and_grad``.
        has_aux: f returns a pair ``(value, aux)``, and ``jvp`` gives ``(value, tangent, aux)``.

    Returns:
        ``(value, tangent)``; the tangent is nested as the value.

    Raises:
        TypeError: xs or vs is no tuple, f gives no Variable, or an argument is not floating.
        ValueError: vs has another nesting, shape or device than xs.
    """
    has_aux = check_call("jvp", f, has_aux=has_aux)
    for what, given in (("xs", xs), ("vs", vs)):
        if not isinstance(given, tuple | list):
            raise TypeError(
                f"jvp: {what} must be a tuple with a value for each argument of f, got "
                f"{describe(given)}. Write jvp(f, (x,), (v,))."
            )
    point = call("jvp", f, tuple(range(len(xs))), xs, {}, enable_double_backprop, has_aux)
    tangent = Pushforward("jvp", point)(tuple(vs))
    return (point.result, tangent, point.aux) if has_aux else (point.result, tangent)


@overload
def linearize(
    f: Callable[..., R],
    *xs: Any,
    enable_double_backprop: bool | None = None,
    has_aux: Literal[False] = False,
) -> tuple[R, LinearMap]: ...
@overload
def linearize(
    f: Callable[..., tuple[Any, A]],
    *xs: Any,
    enable_double_backprop: bool | None = None,
    has_aux: Literal[True],
) -> tuple[Any, LinearMap, A]: ...
def linearize(
    f: Callable[..., Any],
    *xs: Any,
    enable_double_backprop: bool | None = None,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """The value of f, and the jvp at xs as a net that runs many times.

    f: xs: (s), ... -> y: (t).   linear: vs: (s), ... -> J v: (t)

    Args:
        f: as for ``vjp``.
        xs: the arguments of f, all differentiated.
        enable_double_backprop: record a graph of the tangents, back to xs and vs. None means True
            inside the function of another transform, else False.
        has_aux: f returns a pair ``(value, aux)``; the result is ``(value, linear, aux)``.

    Returns:
        ``(value, linear)``. ``linear(*vs)`` gives J v, nested as the value. ``print(linear)``
        shows the operators of the net. The net has the values of the point as constants.

    Raises:
        TypeError: a leaf of the result is no Variable, or an argument is not floating.
        ValueError: when ``linear`` is called: vs has another nesting, shape or device.
    """
    has_aux = check_call("linearize", f, has_aux=has_aux)
    keeps_graph = checked_choice("linearize", enable_double_backprop)
    if keeps_graph is None:
        keeps_graph = thread_state.differentiating > 0
    point = call("linearize", f, tuple(range(len(xs))), xs, {}, keeps_graph, has_aux)
    keeps_graph = keeps_graph or is_recording_net() or bool(hidden_axes.stack)
    title = f"jvp_of_{getattr(f, '__name__', type(f).__name__)}"
    linear = LinearMap(
        title,
        Pushforward("linearize", point),
        point.inputs,
        point.trees,
        keeps_graph,
        point.outputs,
    )
    return (point.result, linear, point.aux) if has_aux else (point.result, linear)
