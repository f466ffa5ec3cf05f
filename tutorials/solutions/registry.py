"""Solution: a registry, programs, and gradient operators."""

from typing import NamedTuple

import numpy as np

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

    def put(function):
        if name in REGISTRY:
            raise ValueError(f"the type {name!r} is registered already")
        REGISTRY[name] = OpInfo(function, grad)
        return function

    return put


@register("mul", grad="mul_grad")
def mul(a, b):
    return (a * b,)


@register("mul_grad")
def mul_grad(a, b, y, g):
    return g * b, g * a


@register("tanh", grad="tanh_grad")
def tanh(x):
    return (np.tanh(x),)


@register("tanh_grad")
def tanh_grad(x, y, g):
    return (g * (1 - y * y),)


def run(program, scope):
    """Run a list of operators in a dict of values."""
    used = set()
    for op in program:
        used.update(op.inputs)
        for name in op.outputs:
            if name in used:
                raise ValueError(f"{op} writes {name!r}, which was used before")
            used.add(name)
    for op in program:
        results = REGISTRY[op.type].function(*[scope[name] for name in op.inputs])
        scope.update(zip(op.outputs, results, strict=True))


def grad_op(op):
    """The operator that computes the gradients of an operator's inputs."""
    grad = REGISTRY[op.type].grad
    if grad is None:
        raise ValueError(f"the type {op.type!r} has no gradient")
    given = [f"{name}@GRAD" for name in op.outputs]
    wanted = [f"{name}@GRAD" for name in op.inputs]
    return Op(grad, [*op.inputs, *op.outputs, *given], wanted)
