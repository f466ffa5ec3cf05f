"""Exercise registry: a registry, programs, and gradient operators.

``Op`` is there. A registered function takes one number or array for each input, and returns a
tuple with one for each output.

1. ``register(name, grad=None)``: a decorator that puts ``OpInfo(function, grad)`` into REGISTRY
   and returns the function. ``grad`` is the name of the gradient's type. A taken name is a
   ValueError, and keeps its function.
2. ``run(program, scope)``: run the operators of a list, in their order, in a dict of values. An
   operator must not write a name that it reads, or that an earlier operator reads or writes: raise
   a ValueError before any operator runs. A program may run in one scope several times.
3. Register "mul" (a b) with "mul_grad", and "tanh" with "tanh_grad". The function of a gradient
   gets inputs, outputs, and the gradients of the outputs; it returns the gradients of the inputs.
4. ``grad_op(op)``: the gradient operator, by names alone; the gradient of x is called "x@GRAD".
   An operator whose type has no gradient is a ValueError.
"""

from typing import NamedTuple

import numpy as np  # noqa: F401 - for you to use

REGISTRY = {}


class OpInfo(NamedTuple):
    """What is known of a type: its function, and the type of its gradient, or None."""

    function: object
    grad: str | None


class Op:
    """One line of a program: outputs = type(inputs), each a list of names."""

    def __init__(self, type, inputs, outputs):
        self.type, self.inputs, self.outputs = type, list(inputs), list(outputs)

    def __str__(self):
        return f"{', '.join(self.outputs)} = {self.type}({', '.join(self.inputs)})"


def register(name, grad=None):
    """A decorator: from now on, this name means the function below it."""
    raise NotImplementedError("return a function that takes a function")


# Register "mul", "mul_grad", "tanh" and "tanh_grad" here.


def run(program, scope):
    """Run a list of operators in a dict of values."""
    raise NotImplementedError("look at the names first, then run one operator after the other")


def grad_op(op):
    """The operator that computes the gradients of an operator's inputs."""
    raise NotImplementedError(
        "inputs, outputs, gradients of the outputs -> gradients of the inputs"
    )


if __name__ == "__main__":  # python registry.py
    scope = {"x": 2.0, "w": 0.5}
    program = [Op("mul", ["x", "w"], ["h"]), Op("tanh", ["h"], ["y"])]
    run(program, scope)
    print(scope)
    print(grad_op(program[0]))
