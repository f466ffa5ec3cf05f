"""Shape runner: a recording needs the shapes and dtypes of large arrays, and no values of them.

Requirement: the recording of a net needs no more memory than a run of the net, and no time for
large arrays. So a function with a large array among its inputs runs on the device ``shapes``.
Arrays there have a shape and a dtype, and no data. A *stand-in* takes the place of each result: a
NumPy array of the shape and the dtype. The stand-in has a single number 1 in memory, and steps of
0 along all axes.

Values may be needed after all: by a function of somebody else, or for ``x[mask]``. Then the
recorded operators are run once, and real arrays are used from there on. A function of small arrays
with real values runs as without a recording.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy

from tinynode.core.dispatch import run_forward
from tinynode.core.hooks import FunctionHook
from tinynode.devices import Arrays, Device, get_backend
from tinynode.errors import NoValuesError
from tinynode.net.registry import is_of_tinynode

LEAST_BYTES = 1 << 18
"""The bytes of the smallest large array."""


class ShapeRunner:
    """Runs the forwards of functions, with stand-ins in place of large results.

    Args:
        values_of: computes the real arrays of stand-ins. None raises ``NoValuesError``.

    """

    def __init__(self, values_of: Callable[[list[Any]], list[Any]] | None = None) -> None:
        self.values_of = values_of
        self._stand_ins: list[weakref.ref[Any]] = []
        self._values: dict[int, tuple[Any, Any]] | None = None  # by id, once values were needed

    def run(self, function: Any, arrays: Arrays, device: Device, output_device: Device) -> Arrays:
        """As ``run_forward``."""
        if any(type(x) is not numpy.ndarray for x in arrays):
            return run_forward(function, arrays, device, output_device)
        if self._values is not None:
            return run_forward(function, self._real(arrays), device, output_device)
        has_values = not any(map(is_stand_in, arrays))
        if has_values and not has_large(arrays):
            return self._run(function, arrays, device, output_device)
        try:
            return self._run_on_shapes(function, arrays)
        except Exception as error:  # the run of real arrays raises the same error, or none
            if has_values:
                return self._run(function, arrays, device, output_device)
            self._use_values(error)
            return run_forward(function, self._real(arrays), device, output_device)

    def _run_on_shapes(self, function: Any, arrays: Arrays) -> Arrays:
        """Stand-ins for the results; a result that is an input stays the input.

        Raises:
            NoValuesError: the function reads values, or may read values.
        """
        if not is_of_tinynode(type(function)) or function.needs_values:
            raise NoValuesError(f"{function.label} may read values.")
        shapes = get_backend("shapes")
        forms = tuple([shapes.from_host(x, "shapes") for x in arrays])
        results = []
        for y in shapes.forward(function, forms):
            same = [x for x, form in zip(arrays, forms, strict=True) if form is y]
            results.append(same[0] if same else None if y is None else self._stand_in_of(y))
        return tuple(results)

    def _run(self, function: Any, arrays: Arrays, device: Device, output_device: Device) -> Arrays:
        """The results of arrays with values, and stand-ins for large results."""
        results = run_forward(function, arrays, device, output_device)
        if function.needs_values:
            return results
        return tuple([self._replaced(y, arrays) for y in results])

    def _replaced(self, y: Any, arrays: Arrays) -> Any:
        """A result of arrays with values, or the stand-in for a large result."""
        if type(y) is not numpy.ndarray:
            return y
        if any(y is x or numpy.may_share_memory(y, x) for x in arrays):
            return y
        if y.nbytes >= LEAST_BYTES:
            return self._stand_in_of(y)
        return y if y.base is None else y.copy()  # a view would keep a large array

    def _stand_in_of(self, y: Any) -> Any:
        """A new stand-in, with the shape and the dtype of an array."""
        number = _numbers.setdefault(y.dtype, numpy.ones((), y.dtype))
        stand_in = numpy.ndarray(y.shape, y.dtype, number, strides=(0,) * len(y.shape))
        self._stand_ins.append(weakref.ref(stand_in))
        return stand_in

    def _use_values(self, error: Exception) -> None:
        """Compute the values of all stand-ins still in use."""
        if self.values_of is None:
            raise NoValuesError("a recording needs values, which are unknown.") from error
        found = [reference() for reference in self._stand_ins]
        arrays = [x for x in found if x is not None]
        values = self.values_of(arrays)
        self._values = {id(x): (x, value) for x, value in zip(arrays, values, strict=True)}

    def _real(self, arrays: Arrays) -> Arrays:
        assert self._values is not None
        return tuple([self._values.get(id(x), (x, x))[1] for x in arrays])


_numbers: dict[Any, Any] = {}
"""The memory of all stand-ins: a number for each dtype."""


def is_stand_in(x: Any) -> bool:
    """True for a stand-in, and for a view of a stand-in."""
    return x.base is not None and x.base is _numbers.get(x.dtype)


def has_large(arrays: Sequence[Any]) -> bool:
    """True if an array is so large that a recording uses its shape and dtype alone."""
    return any(type(x) is numpy.ndarray and x.nbytes >= LEAST_BYTES for x in arrays)


class ShapesOnly(FunctionHook):
    """A hook: functions give stand-ins."""

    def __init__(self) -> None:
        self.name = f"shapes only {id(self)}"
        self.forward_runner = ShapeRunner().run


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
