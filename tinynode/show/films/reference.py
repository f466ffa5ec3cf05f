"""The right results of a learner's function, for automatic questions about a film of ``mynode``.

Requirement: a question must not teach the mistake of an engine under construction. So an answer
of the learner's package needs an elementwise function, and the same result by NumPy. A gradient
is compared with differences of NumPy's results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from tinynode.show.films.nodes import Step

Values = Sequence[Mapping[str, Any]]
"""The arrays of a film."""


def _relu(x: Any) -> Any:
    return numpy.maximum(x, 0.0)


REFERENCES: dict[str, Callable[..., Any]] = {
    "Add": numpy.add,
    "Divide": numpy.divide,
    "Exp": numpy.exp,
    "Log": numpy.log,
    "Multiply": numpy.multiply,
    "Negative": numpy.negative,
    "ReLU": _relu,
    "Square": numpy.square,
    "Subtract": numpy.subtract,
    "Tanh": numpy.tanh,
}
"""NumPy's function for the name of a class."""

TOLERANCE = 2e-3
"""The largest relative distance: a film has numbers of four digits."""

EPS = 1e-5
"""The distance of two inputs for a difference."""


def agrees(step: Step, forward: Step | None, values: Values) -> bool:
    """True if a step of the learner's engine has the right results.

    Args:
        step: a forward or backward step.
        forward: the forward step of the same function, with the operands.
        values: the arrays of the film.
    """
    function = REFERENCES.get(step["class"])
    if function is None or forward is None:
        return False
    inputs = [_array(values, entry[1]) for entry in forward["inputs"]]
    with numpy.errstate(all="ignore"):
        if step["kind"] == "forward":
            return _is_near(function(*inputs), _array(values, step["outputs"][0][1]))
        if len(step["grad_inputs"]) != len(inputs):
            return False
        seed = _array(values, step["grad_outputs"][0][1])
        return all(
            _is_near(_gradient(function, inputs, i, seed), _array(values, entry[1]))
            for i, entry in enumerate(step["grad_inputs"])
        )


def _gradient(function: Callable[..., Any], inputs: list[Any], position: int, seed: Any) -> Any:
    """The gradient of an input, by central differences of an elementwise function."""
    ends = []
    for sign in (1.0, -1.0):
        moved = list(inputs)
        moved[position] = inputs[position] + sign * EPS
        ends.append(function(*moved))
    slope = seed * (ends[0] - ends[1]) / (2 * EPS)
    more = slope.ndim - inputs[position].ndim
    return slope.sum(axis=tuple(range(more))) if more > 0 else slope


def _array(values: Values, index: int | None) -> Any:
    if index is None:
        return numpy.asarray(numpy.nan)
    cells = numpy.asarray(values[index]["cells"], float)
    return cells.reshape(values[index]["shape"])


def _is_near(expected: Any, found: Any) -> bool:
    is_alike = numpy.shape(expected) == found.shape
    return is_alike and bool(numpy.allclose(found, expected, rtol=TOLERANCE, atol=1e-6))
