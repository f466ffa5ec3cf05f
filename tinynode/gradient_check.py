"""Checks for authors of functions: is ``backward`` the derivative of ``forward``?

Requirement: a wrong gradient must not pass, and a right gradient must not be blamed. The checks
use only the values of the function: ``backward`` is compared with central differences

    (f(x + eps) - f(x - eps)) / (2 eps)

``numerical_grad`` takes a difference for each element of an input. ``check_backward`` takes a
single difference, along a random direction d, with slope sum(gradient * d). So two numbers are
compared, for inputs of any size. ``check_double_backward`` does the same for the function that
computes the gradient.

    class Square(tn.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs((0,))
            return (inputs[0] * inputs[0],)

        def backward(self, target_input_indexes, grad_outputs):
            (x,) = self.get_retained_inputs()
            return (2.0 * x * grad_outputs[0],)

    def square(x):
        return Square().apply((x,))[0]

    x, gy, ggx = numpy.random.default_rng(0).normal(size=(3, 4))
    check_backward(square, x, gy, eps=1e-5)
    check_double_backward(square, x, gy, ggx, eps=1e-5)

**Choosing eps.** The error of a central difference is about eps^2 from the curvature, plus the
rounding error of f divided by eps. In float64 the error is smallest for eps near 1e-5. In
float32 the rounding wins early, and eps below 1e-3 is rarely any good. So give
``dtype=numpy.float64`` when the inputs are float32: ``backward`` still runs in float32, the
differences in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy

import tinynode.transforms  # noqa: F401 - the package first: see late_imports
from tinynode.configuration import config, force_backprop_mode
from tinynode.core.backprop import backward, grad
from tinynode.core.conversion import asarray, restore
from tinynode.core.variable import Variable
from tinynode.devices import (
    Array,
    Device,
    device_of,
    find_device,
    from_host_data,
    is_floating,
    to_host,
)
from tinynode.differences import HostArray, as_float64, numerical_grad
from tinynode.errors import GraphError, NondifferentiableError, describe, dtype_name
from tinynode.functions import astype
from tinynode.transforms.trees import or_zeros

__all__ = ["check_backward", "check_double_backward", "numerical_grad"]
__dir__ = __all__.copy  # for completion

# --- check_backward ----------------------------------------------------------------------------


def check_backward(
    func: Callable[..., Any],
    x_data: Any,
    y_grad: Any,
    params: Any = (),
    eps: float = 1e-3,
    atol: float = 1e-5,
    rtol: float = 1e-4,
    no_grads: Sequence[bool] | None = None,
    dtype: Any = None,
    detect_nondifferentiable: bool = False,
    rng: numpy.random.Generator | None = None,
) -> None:
    """Check a function's gradient against a central difference along a random direction.

    The slopes, s by ``backward`` and n by the difference, must fulfil
    |s - n| <= atol + rtol * |n|. A gradient None counts as zero. The differences run without type
    checks and without a graph. A func that differentiates inside needs ``force_backprop_mode()``
    there, as in ``tinynode.value_and_grad``. Arrays, ``params`` and every ``grad`` stay unchanged.

    Args:
        func: takes a Variable for each array, and returns a Variable or a tuple of Variables. The
            values must be the same each time.
        x_data: the input array, or a tuple of arrays, of any backend. Arrays of NumPy go to the
            device of the Variables beside them, else to the current device.
        y_grad: the gradient of the output, or a tuple of gradients, None for an unchecked output.
            None alone stands for 1, for a single output of shape (). Arrays of NumPy go to the
            device of the output.
        params: Variables used by func besides the arguments; the check includes the gradients of
            params.
        eps: how far the inputs are moved; see the module's text.
        atol: how far the slopes may differ.
        rtol: how far, relative to the numerical slope.
        no_grads: True for each input that must get no gradient. By default, True for inputs
            that are not floating. To leave a floating input out of the check, let func close
            over the input.
        dtype: a floating dtype of inputs and params for the differences.
        detect_nondifferentiable: make sure of a derivative along the direction.
        rng: the generator of the direction; by default the same direction each time.

    Raises:
        AssertionError: the slopes differ; names the share of each input, and the functions with a
            wrong backward, each checked alone.
        ValueError: the arguments do not fit each other.
        GraphError: an input of ``no_grads`` gets a gradient.
        NondifferentiableError: there is no derivative, and detection is on.
    """
    check = _Check("check_backward", func, _as_list(x_data), _as_list(params), dtype)
    check.set_no_grads(no_grads)
    check.run(y_grad, eps, atol, rtol, detect_nondifferentiable, rng)


def check_double_backward(
    func: Callable[..., Any],
    x_data: Any,
    y_grad: Any,
    x_grad_grad: Any,
    params: Any = (),
    params_grad_grad: Any = (),
    eps: float = 1e-3,
    atol: float = 1e-4,
    rtol: float = 1e-3,
    no_grads: Sequence[bool] | None = None,
    dtype: Any = None,
    detect_nondifferentiable: bool = False,
    rng: numpy.random.Generator | None = None,
) -> None:
    """Check a function's second-order gradient against a central difference.

    The check is ``check_backward`` for the map (x, gy) -> gx of ``backward``, with respect to x,
    gy and params. The first-order gradient is not checked, so call ``check_backward`` too. Linear
    functions need no special care: gx does not depend on x, and both sides are zero.

    Args:
        func: as for ``check_backward``.
        x_data: the inputs, as for ``check_backward``.
        y_grad: the gradients of the outputs, as for ``check_backward``; also inputs of the map.
        x_grad_grad: for each input an array of the input's shape, the weights of gx. None leaves
            a gx out; necessary for inputs without a gradient.
        params: as for ``check_backward``.
        params_grad_grad: the weights of the gradients of ``params``: an entry for each.
        eps: as for ``check_backward``.
        atol: as for ``check_backward``.
        rtol: as for ``check_backward``.
        no_grads: as for ``check_backward``.
        dtype: as for ``check_backward``.
        detect_nondifferentiable: as for ``check_backward``.
        rng: as for ``check_backward``.

    Raises:
        AssertionError: the slopes differ.
        ValueError: the arguments do not fit each other.
        GraphError: an input of ``no_grads`` gets a gradient.
        NondifferentiableError: there is no derivative, and detection is on.
    """
    what = "check_double_backward"
    first = _Check(what, func, _as_list(x_data), _as_list(params), dtype)
    first.set_no_grads(no_grads)
    with force_backprop_mode():
        ys = first.call(first.variables(first.arrays))
        gys = _grad_outputs(what, "y_grad", ys, y_grad)
    targets = _Targets(first, _as_list(x_grad_grad), _as_list(params_grad_grad))
    seeds = [i for i, gy in enumerate(gys) if gy is not None]
    first_order = _FirstOrderGradient(first, gys, targets.indexes)
    given = [asarray(gys[i], device=ys[i].device) for i in seeds]
    inputs = [*first.variables(first.arrays), *given]
    names = [*first.names[: len(first.arrays)], *(f"y_grad[{i}]" for i in seeds)]
    second = _Check(what, first_order, inputs, first.params, dtype, names)
    second.no_grads = [*first.no_grads, *[False] * len(seeds)]
    second.title = f"the second-order gradient of {_title(func, ys)}"
    second.grad_name = "x_grad_grad"
    second.run(targets.weights, eps, atol, rtol, detect_nondifferentiable, rng)


class _Targets:
    """The first-order gradients that a second-order check differentiates, with weights.

    Attributes:
        indexes: positions among the inputs and, after them, the params.
        weights: an array for each position.
    """

    def __init__(self, check: _Check, ggxs: list[Any], ggparams: list[Any]) -> None:
        for name, weights, number in (
            ("x_grad_grad", ggxs, len(check.arrays)),
            ("params_grad_grad", ggparams, len(check.params)),
        ):
            if len(weights) != number:
                raise ValueError(
                    f"{check.what}: {name} has {len(weights)} entries, expected {number}: an "
                    "array for each, or None to leave it out."
                )
        for position, (ggx, no_grad) in enumerate(zip(ggxs, check.no_grads, strict=True)):
            if no_grad and ggx is not None:
                raise ValueError(
                    f"{check.what}: x_grad_grad[{position}] must be None: the input gets no "
                    "gradient."
                )
        both = [*ggxs, *ggparams]
        self.indexes = [i for i, weight in enumerate(both) if weight is not None]
        self.weights = tuple(both[i] for i in self.indexes)


class _FirstOrderGradient:
    """The map (x, gy) -> gx, made of Variables."""

    def __init__(self, check: _Check, gys: list[Array | None], targets: list[int]) -> None:
        self.check = check
        self.gys = gys
        self.targets = targets

    def __call__(self, *inputs: Variable) -> tuple[Variable, ...]:
        record = config.enable_backprop
        number = len(self.check.arrays)
        given = iter(inputs[number:])
        with force_backprop_mode():
            ys = self.check.call(inputs[:number])
            pairs = []
            for y, gy in zip(ys, self.gys, strict=True):
                if gy is not None:  # func may cast, so y need not have the dtype of the inputs
                    pairs.append((y, astype(next(given), y.dtype)))
        sources = [*inputs[:number], *self.check.params]
        wanted = [sources[i] for i in self.targets]
        gxs = grad(
            [y for y, _ in pairs],
            wanted,
            [gy for _, gy in pairs],
            enable_double_backprop=record,
        )
        return tuple(or_zeros(gx, x) for gx, x in zip(gxs, wanted, strict=True))


# --- one check ---------------------------------------------------------------------------------


class _Check:
    """A function with inputs, and the comparison of the two slopes.

    Attributes:
        what: the name of the check, for messages.
        arrays: the input arrays.
        devices: where the inputs stand.
        names: the names of inputs and params in messages.
        no_grads: whether an input gets no gradient.
        dtype: NumPy's dtype for the differences, or None.
        title: the name of the function in messages.
        grad_name: the name of the outputs' gradients in messages.
    """

    def __init__(
        self,
        what: str,
        func: Callable[..., Any],
        x_data: list[Any],
        params: list[Any],
        dtype: Any,
        names: list[str] | None = None,
    ) -> None:
        self.what = what
        self.func = func
        beside = next((v.device for v in (*x_data, *params) if isinstance(v, Variable)), None)
        self.arrays = [_array(x, what, beside) for x in x_data]
        self.params: list[Variable] = params
        self.names = names or [f"x_data[{i}]" for i in range(len(self.arrays))]
        self.names += [f"params[{i}]" for i in range(len(params))]
        self.devices = []
        for name, x, array in zip(self.names, x_data, self.arrays, strict=False):
            lies_on = find_device(array, beside) or device_of(array, what, name)
            self.devices.append(x.device if isinstance(x, Variable) else lies_on)
        for name, p in zip(self.names[len(self.arrays) :], params, strict=True):
            _check_param(what, name, p)
        self.no_grads = [not is_floating(x) for x in self.arrays]
        self.dtype = None if dtype is None else _floating_dtype(what, dtype)
        self.title = ""
        self.grad_name = "y_grad"

    def set_no_grads(self, no_grads: Sequence[bool] | None) -> None:
        if no_grads is None:
            return
        if len(no_grads) != len(self.arrays):
            raise ValueError(
                f"{self.what}: no_grads has {len(no_grads)} entries, x_data has "
                f"{len(self.arrays)} arrays."
            )
        for x, name, no_grad in zip(self.arrays, self.names, no_grads, strict=False):
            if not no_grad and not is_floating(x):
                raise GraphError(
                    f"{self.what}: {name} is {describe(x)}, which can have no gradient: its entry "
                    "in no_grads must be True."
                )
        self.no_grads = [bool(no_grad) for no_grad in no_grads]

    def variables(self, arrays: Sequence[Array]) -> list[Variable]:
        """A new leaf for each input."""
        return [asarray(x, device=device) for x, device in zip(arrays, self.devices, strict=True)]

    def call(self, xs: Sequence[Variable]) -> list[Variable]:
        """The outputs of func, as a list of Variables."""
        ys = self.func(*xs)
        outputs = list(ys) if isinstance(ys, tuple | list) else [ys]
        for position, y in enumerate(outputs):
            if not isinstance(y, Variable):
                raise TypeError(
                    f"{self.what}: func must return Variables, output {position} is {describe(y)}."
                )
        return outputs

    def run(
        self,
        y_grad: Any,
        eps: float,
        atol: float,
        rtol: float,
        detect_nondifferentiable: bool,
        rng: numpy.random.Generator | None,
    ) -> None:
        """Compare the slopes; all the errors of ``check_backward``."""
        gradients, gys = self._gradients(y_grad)
        directions = self._directions(rng or numpy.random.default_rng(0))
        expected = self._slope(directions, gys, eps, detect_nondifferentiable)
        actual = _dot(gradients, directions)
        if abs(actual - expected) <= atol + rtol * abs(expected):
            return
        lines = [
            f"{self.what}: {self.title} has a wrong gradient, or eps and dtype do not suit it.",
            f"Along a random direction the slope is {actual:.9g} by backward, and {expected:.9g} "
            f"by a central difference (eps={eps:g}).",
            f"They differ by {abs(actual - expected):.3g}, allowed are "
            f"{atol + rtol * abs(expected):.3g} (atol={atol:g}, rtol={rtol:g}). By input:",
            *self._by_input(gradients, directions, gys, eps),
            *self._culprits(),
            *self._hints(gradients),
        ]
        raise AssertionError("\n".join(lines))

    def _gradients(self, y_grad: Any) -> tuple[list[HostArray | None], list[Array | None]]:
        """The gradients by backward, of inputs and params, and the outputs' gradients."""
        xs = self.variables(self.arrays)
        with force_backprop_mode(), _lent(self.params):
            ys = self.call(xs)
            self.title = self.title or _title(self.func, ys)
            gys = _grad_outputs(self.what, self.grad_name, ys, y_grad)
            others = [v for v in _leaves_behind(ys) if not any(v is x for x in xs)]
            with _lent(others):
                used = [(y, gy) for y, gy in zip(ys, gys, strict=True) if gy is not None]
                used = [(y, gy) for y, gy in used if y.requires_grad]
                seeds = [asarray(gy, device=y.device) for y, gy in used]
                backward([y for y, _ in used], seeds)
                found = [v.grad for v in (*xs, *self.params)]
        for name, gx, no_grad in zip(self.names, found, self.no_grads, strict=False):
            if no_grad and gx is not None:
                kind = "int" if not is_floating(gx) else "no_grads"
                raise GraphError(
                    f"{self.what}: gradient of {kind} variable must be None, {name} got "
                    f"{describe(gx)} from {self.title}."
                )
        if all(self.no_grads) and not self.params:
            raise ValueError(
                f"{self.what}: there is nothing to check: every input is without gradient, and "
                "there are no params."
            )
        return [None if gx is None else as_float64(gx) for gx in found], gys

    def _directions(self, rng: numpy.random.Generator) -> list[HostArray | None]:
        """A random unit vector over all inputs and params; no component is close to zero."""
        directions: list[HostArray | None] = []
        for x, no_grad in zip(self.arrays, self.no_grads, strict=True):
            directions.append(None if no_grad else rng.normal(size=tuple(x.shape)))
        directions.extend(rng.normal(size=p.shape) for p in self.params)
        used = [d for d in directions if d is not None]
        number = max(1, sum(d.size for d in used))
        norm = math.sqrt(sum(float(numpy.sum(d * d)) for d in used)) or 1.0
        least = 0.1 / math.sqrt(number)
        for d in used:
            d /= norm
            d[...] = numpy.copysign(numpy.maximum(abs(d), least), d)
        return directions

    def _slope(
        self,
        directions: list[HostArray | None],
        gys: list[Array | None],
        eps: float,
        detect_nondifferentiable: bool = False,
    ) -> float:
        """The slope of sum(gys * func) along the directions, by a central difference."""
        distance = numpy.zeros(())
        number = len(self.arrays)

        def moved_outputs() -> tuple[Array, ...]:
            xs = [self._moved(x, directions[i], distance) for i, x in enumerate(self.arrays)]
            for p, start, d in zip(self.params, starts, directions[number:], strict=True):
                # a new node: a graph recorded by the user keeps the old node
                restore(p, None, self._moved(start, d, distance), None)
            return tuple(y.array for y in self.call(self.variables(xs)))

        starts = [p.array for p in self.params]
        with _lent(self.params):
            try:
                (slope,) = numerical_grad(
                    moved_outputs, (distance,), gys, eps, detect_nondifferentiable
                )
            except NondifferentiableError:
                raise NondifferentiableError(
                    f"{self.what}: {self.title} is not differentiable at these inputs, or not "
                    f"within {eps:g} of them. Take other inputs, or a smaller eps."
                ) from None
        return float(slope)

    def _moved(self, x: Array, direction: HostArray | None, distance: HostArray) -> Array:
        """The array moved along the direction, in the dtype of the differences."""
        if not is_floating(x):
            return x
        host = to_host(x)
        dtype = self.dtype or host.dtype
        if direction is not None:
            host = host.astype(numpy.float64) + distance * direction
        return device_of(x, self.what, "x_data").from_host(numpy.array(host, dtype=dtype))

    def _by_input(
        self,
        gradients: list[HostArray | None],
        directions: list[HostArray | None],
        gys: list[Array | None],
        eps: float,
    ) -> Iterator[str]:
        """The parts of the two slopes for each input."""
        arrays = [*self.arrays, *(p.array for p in self.params)]
        for position, direction in enumerate(directions):
            if direction is None:
                continue
            alone: list[HostArray | None] = [None] * len(directions)
            alone[position] = direction
            actual, expected = _dot(gradients, alone), self._slope(alone, gys, eps)
            none = " (None, counted as zero)" if gradients[position] is None else ""
            x = arrays[position]
            yield (
                f"  {self.names[position]}, {tuple(x.shape)} {dtype_name(x.dtype)}: backward "
                f"{actual:.9g}{none}, difference {expected:.9g}"
            )

    def _culprits(self) -> list[str]:
        """The functions behind the outputs with a wrong backward, each checked alone."""
        from tinynode.doctor import blame  # with all pictures: only a failed check needs these

        with force_backprop_mode(), _lent(self.params):
            return blame(self._call_again)

    def _call_again(self) -> list[Variable]:
        return self.call(self.variables(self.arrays))

    def _hints(self, gradients: list[HostArray | None]) -> Iterator[str]:
        arrays = [*self.arrays, *(p.array for p in self.params)]
        dtypes = {dtype_name(x.dtype) for x in arrays if is_floating(x)}
        if self.dtype is None and dtypes != {"float64"}:
            yield (
                "Try dtype=numpy.float64: the differences are taken of "
                f"{', '.join(sorted(dtypes))} values, and rounding may be all that they show."
            )
        if any(gx is None for gx, no in zip(gradients, self.no_grads, strict=False) if not no):
            yield (
                "Where the gradient is None: does backward return one, made from get_retained_"
                "inputs(), get_retained_outputs() and grad_outputs by differentiable functions?"
            )
        yield (
            "Try another eps too: in float64 1e-5 is a good one. detect_nondifferentiable=True "
            "tells whether the inputs are at a kink."
        )


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def _array(value: Any, what: str, beside: Device | None) -> Any:
    """The array of a Variable; an array of NumPy on the device beside, else the current one."""
    if isinstance(value, Variable):
        return value.array
    return from_host_data(value, what, beside)


def _check_param(what: str, name: str, p: Any) -> None:
    if not isinstance(p, Variable):
        raise TypeError(f"{what}: {name} must be a Variable, got {describe(p)}.")
    if not p.requires_grad:
        raise ValueError(
            f"{what}: {name} ({p.label}) requires no gradient, so none can be checked."
        )


def _floating_dtype(what: str, dtype: Any) -> Any:
    """NumPy's dtype of a name.

    Raises:
        ValueError: the dtype is not floating.
    """
    try:
        found = numpy.dtype(dtype)
    except TypeError:  # the dtype of another library
        found = numpy.dtype(dtype_name(dtype))
    if found.kind != "f":
        raise ValueError(f"{what}: dtype must be a floating dtype, got {found}.")
    return found


def _title(func: Callable[..., Any], ys: Iterable[Variable]) -> str:
    """A function's name for messages: in Python, and the labels of the outputs' creators."""
    name = getattr(func, "__name__", type(func).__name__)
    creators = [y.creator_node for y in ys if y.creator_node is not None]
    labels = list(dict.fromkeys(creator.label for creator in creators))
    return f"{name} (output of {', '.join(labels)})" if labels else name


def _grad_outputs(what: str, name: str, ys: Sequence[Variable], y_grad: Any) -> list[Array | None]:
    """The outputs' gradients as arrays that fit the outputs, None for a missing gradient."""
    if y_grad is None:
        if len(ys) != 1 or ys[0].shape != ():
            shapes = ", ".join(str(y.shape) for y in ys)
            raise ValueError(
                f"{what}: {name}=None is for one output of shape (); func gives {len(ys)} of "
                f"shape {shapes}. Give {name} an array for each."
            )
        y_grad = ys[0].xp.ones_like(ys[0].array)
    given = _as_list(y_grad)
    if len(given) != len(ys):
        raise ValueError(f"{what}: {name} has {len(given)} entries, func gives {len(ys)} outputs.")
    gys = [_array(gy, what, y.device) for y, gy in zip(ys, given, strict=True)]
    for position, (y, gy) in enumerate(zip(ys, gys, strict=True)):
        if gy is not None:
            _check_grad_output(what, f"{name}[{position}]", y, gy)
    if all(gy is None for gy in gys):
        raise ValueError(f"{what}: every entry of {name} is None: there is nothing to check.")
    return gys


def _check_grad_output(what: str, name: str, y: Variable, gy: Array) -> None:
    device = device_of(gy, what, name)
    if not is_floating(y.array):
        raise ValueError(f"{what}: {name} must be None: the output is {dtype_name(y.dtype)}.")
    if tuple(gy.shape) != y.shape:
        raise ValueError(f"{what}: {name} has shape {tuple(gy.shape)}, the output has {y.shape}.")
    same_place = y.device.owns(gy) and device.index == y.device.index
    if not same_place or gy.dtype != y.dtype:
        raise ValueError(
            f"{what}: {name} is {dtype_name(gy.dtype)} on {device}, the output is "
            f"{dtype_name(y.dtype)} on {y.device}."
        )


def _leaves_behind(ys: Sequence[Variable]) -> list[Variable]:
    """The Variables that get a gradient in backward."""
    leaves = {}
    seen = set()
    waiting = [y.node for y in ys]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        function = node.creator_node
        if function is not None:
            waiting.extend(function.inputs or ())
        else:
            variable = node.get_variable_or_none()
            if variable is not None:
                leaves[id(variable)] = variable
    return list(leaves.values())


@contextmanager
def _lent(variables: Sequence[Variable]) -> Iterator[None]:
    """Variables for changes inside: without a gradient, and restored afterwards."""
    before = [(v, v.raw, v.node_or_none, v.grad_var) for v in variables]
    try:
        for v in variables:
            v.cleargrad()
        yield
    finally:
        for v, array, node, grad_var in before:
            restore(v, node, array, grad_var)


def _dot(gradients: Sequence[HostArray | None], directions: Sequence[HostArray | None]) -> float:
    """sum(gradient * direction); a gradient None counts as zero."""
    total = 0.0
    for gx, d in zip(gradients, directions, strict=True):
        if gx is not None and d is not None:
            total += float(numpy.sum(gx * d))
    return total
