"""Stand-ins: a recording needs the shapes and dtypes of large arrays, and no memory for them.

Requirement: the recording of a net needs no more memory than a run of the net. While a function is
recorded, a large result is replaced by a stand-in. A stand-in has the shape and the dtype, a
single number in memory, and 0 as the step of each axis. The number is the first element of the
result. So an elementwise function of stand-ins is computed from single numbers. A product of large
matrices gives the product of the first elements: a recording needs no time for the sums. A small
result of large operands has that number everywhere.

Values may be needed after all: by a function of somebody else, or for a matrix that must not be
singular. Then the recorded operators are run once, and real arrays are used from there on. Results
of small arrays with real values are never replaced.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy

from tinynode.core.dispatch import run_forward
from tinynode.core.hooks import FunctionHook
from tinynode.devices import Arrays, Device
from tinynode.hooks.nan_hints import ELEMENTWISE

LEAST_BYTES = 1 << 18
"""The bytes of the smallest replaced array."""

_UPDATES = {"AdamUpdate", "MomentumUpdate", "SGDUpdate"}
ON_ONE_NUMBER = ELEMENTWISE.union(_UPDATES, {f"{name}Grad" for name in ELEMENTWISE})
"""The functions with an operand of each input for each element, by class name."""
_VIEWS = "BroadcastTo ExpandDims Identity PermuteDims Reshape Squeeze StopGradient"
ON_STAND_INS = frozenset(f"{_VIEWS} Max Mean Min Sum SumTo".split())
"""The functions that make views or small results, which need no copy of a stand-in."""
NEED_VALUES = {"tinynode.functions.linalg", "tinynode.functions.decompositions"}
"""The modules of functions on matrices: a stand-in would be singular, in forward or backward."""


def is_ours(function: Any) -> bool:
    """True for a function of tinynode; a function of somebody else may have the same name."""
    return type(function).__module__.startswith("tinynode.")


class ValuesNeededError(Exception):
    """A function needs the values of stand-ins, and the values are unknown."""


class StandIns:
    """Runs the forwards of functions, with stand-ins in place of large arrays.

    Args:
        values_of: computes the real arrays of stand-ins, and of arrays computed from stand-ins.
            None raises ``ValuesNeededError``.

    """

    def __init__(self, values_of: Callable[[list[Any]], list[Any]] | None = None) -> None:
        self.values_of = values_of
        self._unreal: dict[int, weakref.ref[Any]] = {}  # the arrays without real values, by id
        self._values: dict[int, tuple[Any, Any]] | None = None  # once values were needed

    def run(self, function: Any, arrays: Arrays, device: Device, output_device: Device) -> Arrays:
        """As ``run_forward``."""
        if any(type(x) is not numpy.ndarray for x in arrays):
            return run_forward(function, arrays, device, output_device)
        if self._values is not None:
            return run_forward(function, self._real(arrays), device, output_device)
        is_unreal = any(map(self._is_unreal, arrays))
        if not is_unreal:
            return self._run(function, arrays, device, output_device, False)
        try:
            if not is_ours(function) or type(function).__module__ in NEED_VALUES:
                raise ValuesNeededError
            with numpy.errstate(all="ignore"):  # the values are not those of the function
                return self._run(function, arrays, device, output_device, True)
        except Exception as error:
            self._use_values(error)
            return run_forward(function, self._real(arrays), device, output_device)

    def _run(
        self, function: Any, arrays: Arrays, device: Device, output_device: Device, is_unreal: bool
    ) -> Arrays:
        """The results; with a known shape, from single numbers."""
        shape = shape_of(function, arrays)
        if shape is not None:
            single = tuple([first_of(x) for x in arrays])
            results = run_forward(function, single, device, output_device)
            return tuple([self._noted(spread(y, shape)) for y in results])
        if is_unreal and type(function).__name__ not in ON_STAND_INS:
            arrays = tuple([contiguous(x) for x in arrays])
        results = run_forward(function, arrays, device, output_device)
        return tuple([self._replaced(y, arrays, is_unreal) for y in results])

    def _replaced(self, y: Any, arrays: Arrays, is_unreal: bool) -> Any:
        """A result, or the stand-in for a large result."""
        if type(y) is not numpy.ndarray:
            return y
        is_shared = any(y is x or numpy.may_share_memory(y, x) for x in arrays)
        if y.nbytes >= LEAST_BYTES and not is_shared:
            is_unreal = True
            y = y if is_stand_in(y) else spread(first_of(y).copy(), y.shape)
        elif y.base is not None and not is_shared:
            y = y.copy()  # a view would keep a large array
        return self._noted(y) if is_unreal and not any(y is x for x in arrays) else y

    def _noted(self, y: Any) -> Any:
        """An array, noted as one without real values."""
        self._unreal[id(y)] = weakref.ref(y)
        return y

    def _is_unreal(self, x: Any) -> bool:
        reference = self._unreal.get(id(x))
        return reference is not None and reference() is x

    def _use_values(self, error: Exception) -> None:
        """Compute the values of all arrays still in use."""
        if self.values_of is None:
            raise ValuesNeededError from error
        arrays = [x for x in [reference() for reference in self._unreal.values()] if x is not None]
        values = self.values_of(arrays)
        self._values = {id(x): (x, value) for x, value in zip(arrays, values, strict=True)}

    def _real(self, arrays: Arrays) -> Arrays:
        assert self._values is not None
        return tuple([self._values.get(id(x), (x, x))[1] for x in arrays])


def has_large(arrays: Sequence[Any]) -> bool:
    """True if an array is large enough for a stand-in."""
    return any(type(x) is numpy.ndarray and x.nbytes >= LEAST_BYTES for x in arrays)


def shape_of(function: Any, arrays: Arrays) -> tuple[int, ...] | None:
    """The shape of the results of a function on large arrays, where the class name tells."""
    if not is_ours(function) or not all(x.size for x in arrays):
        return None
    name, shapes = type(function).__name__, [x.shape for x in arrays]
    shape = None
    if name in ON_ONE_NUMBER:
        shape = numpy.broadcast_shapes(*shapes) if has_large(arrays) else None
    elif name == "MatMul" and min(map(len, shapes)) >= 2:
        x, y = shapes
        shape = (*numpy.broadcast_shapes(x[:-2], y[:-2]), x[-2], y[-1])
    elif name == "MatMulOfTransposed":
        x, y = shapes
        shape = x[1 if function.transpose_x else 0], y[0 if function.transpose_y else 1]
    elif name == "Linear" and len(shapes[0]) >= 2:
        shape = (*shapes[0][:-1], shapes[1][0])
    if shape is None or has_large(arrays):
        return shape
    return shape if math.prod(shape) * arrays[0].itemsize >= LEAST_BYTES else None


def is_stand_in(x: Any) -> bool:
    """True if all elements of a large array are the same number in memory."""
    return x.nbytes >= LEAST_BYTES and not any(x.strides)


def first_of(x: Any) -> Any:
    """The first element, as an array with the same number of axes."""
    return x[(slice(0, 1),) * x.ndim] if x.ndim else x


def spread(y: Any, shape: tuple[int, ...]) -> Any:
    """An array of a shape, with the element of y everywhere; a large array is a stand-in."""
    if math.prod(shape) * y.itemsize < LEAST_BYTES:
        return numpy.full(shape, y.item(), y.dtype)
    return numpy.ndarray(shape, y.dtype, y, 0, (0,) * len(shape))


def contiguous(x: Any) -> Any:
    """The array, or a copy of a stand-in in C order: quicker to compute with."""
    return numpy.array(x) if is_stand_in(x) else x


class ShapesOnly(FunctionHook):
    """A hook: functions give stand-ins."""

    def __init__(self) -> None:
        self.name = f"shapes only {id(self)}"
        self.forward_runner = StandIns().run


@contextmanager
def shapes_only() -> Iterator[None]:
    """Functions give stand-ins, for the gradient net of a net; warnings about values stay away."""
    with ShapesOnly(), numpy.errstate(all="ignore"):
        yield


def run_operators(
    operators: Sequence[Any], devices: Mapping[str, Device], names: Sequence[str], arrays: Arrays
) -> dict[str, Any]:
    """The real arrays of some names, from the arrays of the inputs named by ``devices``."""
    values = dict(zip(devices, arrays, strict=True))
    where = dict(devices)
    for operator in operators:
        node = operator.make_node()
        reads = operator.input_names
        output_device = node.output_device or where[reads[0]]
        device = where[reads[0]] if reads else output_device
        results = run_forward(node, tuple([values[n] for n in reads]), device, output_device)
        values.update(zip(operator.output_names, results, strict=True))
        where.update(dict.fromkeys(operator.output_names, output_device))
    return {name: values[name] for name in names if name in values}
