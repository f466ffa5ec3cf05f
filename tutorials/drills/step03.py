"""Drills of the numerical gradient: central differences, and a check that refuses."""

import importlib

import numpy as np

from tinynode_course.drilling import raised


def _check(work):
    return importlib.import_module(f"{work.__name__}.gradient_check")


def draw_measured(rng):
    shapes = [(3,), (2, 2), ()]
    return {
        "inputs": [rng.normal(size=shape) for shape in shapes],
        "weights": [rng.normal(size=(2, 2)), rng.normal(size=3)],
        "eps": float(rng.choice([0.3, 0.1, 0.03])),
    }


def drill_measured(work, inputs):
    """numerical_grad: central differences with a large step, for many inputs and outputs"""
    a, b, c = (array.copy() for array in inputs["inputs"])

    def f():
        return b**3 * c + np.sum(a), a**3 * np.exp(c)

    eps = inputs["eps"]
    grads = _check(work).numerical_grad(f, (a, b, c), tuple(inputs["weights"]), eps)
    small = _check(work).numerical_grad(f, (a,), tuple(inputs["weights"]))
    return [list(grads), type(grads).__name__, list(small), a, b, c]


def draw_integers(rng):
    return {"x": rng.normal(size=4), "gy": rng.normal(size=4), "factor": float(rng.uniform(2, 3))}


def drill_refuses(work, inputs):
    """check_backward lets right gradients pass, and refuses wrong ones"""
    found = []
    for name, factor in _wrong(inputs["factor"]):
        x, gy = inputs["x"].copy(), inputs["gy"].copy()

        class Cube(work.FunctionNode):
            def forward(self, inputs):
                (self.x,) = inputs
                return (inputs[0] ** 3,)

            def backward(self, target_input_indexes, grad_outputs, factor=factor):
                return (factor(self.x, grad_outputs[0]),)

        def cube(v, operation=Cube):
            return operation().apply((v,))[0]

        error = raised(
            lambda f=cube, x=x, gy=gy: _check(work).check_backward(f, x, gy), AssertionError
        )
        found += [name, error, x, gy]
    for name in ("exp", "square", "sin"):
        x, gy = inputs["x"], inputs["gy"]
        function = getattr(work, name)
        found.append(raised(lambda f=function, x=x, gy=gy: _check(work).check_backward(f, x, gy)))
    return found


draw_refuses = draw_integers


def _wrong(factor):
    return (
        ("right", lambda x, g: 3 * x * x * g),
        ("without g", lambda x, g: 3 * x * x),
        ("a factor", lambda x, g: factor * x * x * g),
        ("a sign", lambda x, g: -3 * x * x * g),
        (
            "the last element",
            lambda x, g: 3 * x * x * g + 1e-3 * (np.arange(x.size) == x.size - 1),
        ),
        ("a little", lambda x, g: 3 * x * x * g * (1 + 1e-4)),
    )
