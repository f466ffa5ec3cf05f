"""Drills of the double check: right functions pass, wrong second orders are refused."""

import importlib

import numpy as np

from tinynode_course.drilling import raised


def _check(work):
    return importlib.import_module(f"{work.__name__}.gradient_check").check_double_backward


def draw_right(rng):
    return {
        "x": rng.uniform(0.5, 1.5, 3) * rng.choice([-1.0, 1.0], 3),
        "gy": rng.uniform(0.5, 2, 3) * rng.choice([-1.0, 1.0], 3),
        "ggx": rng.uniform(0.5, 2, 3) * rng.choice([-1.0, 1.0], 3),
    }


def drill_right(work, inputs):
    """Right functions pass, also where no path leads to an input; the data stay"""
    functions = (
        lambda x: x * x * x,
        work.tanh,
        work.sin,
        work.exp,
        lambda x: 1.0 / (1.0 + work.square(x)),
        lambda x: 3.0 * x,
        work.negative,
    )
    data = [inputs[name].copy() for name in ("x", "gy", "ggx")]
    found = [raised(lambda f=f: _check(work)(f, *data), AssertionError) for f in functions]
    x = np.stack([data[0], data[1]])
    given = (x, data[0][:2], x + 1.0)
    found.append(raised(lambda: _check(work)(lambda x: work.sum(x, axis=1), *given)))
    return [*found, *data, *given]


def _cube(work, factors, has_path):
    a, b = factors

    class CubeGrad(work.FunctionNode):
        def forward(self, inputs):
            x, gy = inputs
            self.retain_inputs((0, 1))
            return (3.0 * x * x * gy,)

        def backward(self, target_input_indexes, grad_outputs):
            (x, gy), (h,) = self.get_retained_inputs(), grad_outputs
            return (a * x * gy * h if has_path else None, b * x * x * h)

    class Cube(work.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs((0,))
            return (inputs[0] ** 3,)

        def backward(self, target_input_indexes, grad_outputs):
            (x,), (gy,) = self.get_retained_inputs(), grad_outputs
            if isinstance(gy, work.Variable):
                return CubeGrad().apply((x, gy))
            return (3.0 * x * x * gy,)

    return lambda x: Cube().apply((x,))[0]


def draw_wrong(rng):
    a, b = (float(n) for n in rng.uniform(0.5, 2.5, 2))
    cases = [[6.0, 3.0, True], [6.0, 3.0, False], [a, 3.0, True], [6.0, b, True], [-6.0, -b, True]]
    return draw_right(rng) | {"cases": [cases[int(i)] for i in rng.permutation(len(cases))]}


def drill_wrong(work, inputs):
    """Cubes with factors in their second orders: the right one passes, the others are refused"""
    data = [inputs[name].copy() for name in ("x", "gy", "ggx")]
    found = []
    for a, b, has_path in inputs["cases"]:
        cube = _cube(work, (a, b), has_path)
        for scale in (1.0, 2.5):
            given = (data[0], data[1], data[2] * scale)
            found.append(raised(lambda c=cube, g=given: _check(work)(c, *g), AssertionError))
    return found


def drill_options(work, inputs):
    """rtol and atol decide: a small mistake passes with a large tolerance only"""
    data = [inputs[name].copy() for name in ("x", "gy", "ggx")]
    cube = _cube(work, (6.0 * 1.001, 3.0), True)
    options = ({}, {"rtol": 1e-2}, {"atol": 1.0}, {"rtol": 1e-4, "atol": 1e-6})
    return [
        raised(lambda o=one: _check(work)(cube, *data, **o), AssertionError) for one in options
    ]


draw_options = draw_right
