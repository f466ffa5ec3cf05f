"""A function with a backward of its own, and a hook."""

from __future__ import annotations

from typing import Any

import numpy as np

import tinynode as tn
from tinynode import functions as fn
from tinynode.devices import namespace_of


class Cube(tn.FunctionNode):
    """y = x^3."""

    def forward(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        (x,) = inputs
        self.retain_inputs((0,))
        return (namespace_of(x).asarray(x**3),)

    def backward(
        self, target_input_indexes: tuple[int, ...], grad_outputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        (x,) = self.get_retained_inputs()
        (gy,) = grad_outputs
        return (gy * 3 * x * x,)


class Count(tn.FunctionHook):
    """Counts the calls of functions."""

    name = "Count"

    def __init__(self) -> None:
        self.calls = 0

    def forward_postprocess(self, function: tn.FunctionNode, in_data: Any) -> None:
        self.calls += isinstance(function, Cube | fn.Sum)


def cube(x: tn.Variable) -> tn.Variable:
    return Cube().apply((x,))[0]


x = tn.Variable(np.array([1.0, 2.0], np.float32))
with Count() as count:
    fn.sum(cube(x)).backward()
tn.gradient_check.check_backward(cube, np.array([1.0, 2.0]), np.array([1.0, 1.0]))
print(count.calls, x.grad)
