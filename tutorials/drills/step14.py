"""Drills of gradient checks: which functions does the learner's check blame?"""

import importlib

import numpy as np

from tinynode_course.drilling import raised


def _check(work, function, arrays, seed, **options):
    """True if check_gradients raises an AssertionError; another error stays one."""
    work.seed(seed)
    check = importlib.import_module(f"{work.__name__}.gradient_check").check_gradients
    return raised(lambda: check(function, arrays, **options), AssertionError)


def _operation(work, forward, backward):
    class Operation(work.FunctionNode):
        def forward(self, inputs):
            self.arrays = [one.copy() for one in inputs]
            return (np.asarray(forward(*inputs)),)

        def backward(self, target_input_indexes, grad_outputs):
            return tuple(backward(self.arrays, grad_outputs[0]))

    def operation(*inputs):
        return Operation().apply(inputs)[0]

    return operation


def draw_blame(rng):
    shape = [int(n) for n in rng.permutation([2, 3])]
    signs = rng.choice([-1.0, 1.0], (3, *shape))
    return {
        "inputs": rng.uniform(0.3, 2.0, (3, *shape)) * signs,
        "seed": int(rng.integers(0, 1000)),
        "factor": float(rng.uniform(1.01, 1.5)),
        "order": [int(place) for place in rng.permutation(8)],
    }


def drill_blame(work, inputs):
    """Wrong gradients of any input are blamed, right ones are not; the data stay"""
    factor = inputs["factor"]
    kinds = [
        ("right", lambda a, g: [g * a[1] * a[2], g * a[0] * a[2], g * a[0] * a[1]]),
        ("first", lambda a, g: [factor * g * a[1] * a[2], g * a[0] * a[2], g * a[0] * a[1]]),
        ("last", lambda a, g: [g * a[1] * a[2], g * a[0] * a[2], factor * g * a[0] * a[1]]),
        ("exchanged", lambda a, g: [g * a[0] * a[2], g * a[1] * a[2], g * a[0] * a[1]]),
        ("without g", lambda a, g: [a[1] * a[2], a[0] * a[2], a[0] * a[1]]),
        (
            "little",
            lambda a, g: [1.001 * g * one for one in (a[1] * a[2], a[0] * a[2], a[0] * a[1])],
        ),
        ("zero", lambda a, g: [g * a[1] * a[2], 0.0 * g, g * a[0] * a[1]]),
        ("turned", lambda a, g: [(g * a[1] * a[2])[::-1], g * a[0] * a[2], g * a[0] * a[1]]),
    ]
    found = []
    for place in inputs["order"]:
        name, backward = kinds[place]
        arrays = [one.copy() for one in inputs["inputs"]]
        function = _operation(work, lambda a, b, c: a * b * c, backward)
        found += [name, _check(work, function, arrays, inputs["seed"]), arrays]
    return found


def draw_walk(rng):
    return {"x": rng.normal(size=(2, 2)), "seed": int(rng.integers(0, 1000))}


def drill_walk(work, inputs):
    """The function is called at x, and some eps along the drawn direction to both sides"""
    x, seen = inputs["x"], []

    def wave(v):
        seen.append(v.array.copy())
        return work.sin(4.0 * v)

    wide = {"eps": 0.5, "rtol": 1e3, "atol": 1e3}
    found = [_check(work, wave, [x.copy()], inputs["seed"], **wide)]
    walks = [array - x for array in seen if not np.array_equal(array, x)]
    farthest = max(abs(walk).max() for walk in walks)
    found += [len(walks) >= 2, x + sum(walks) / len(walks), bool(1e-3 < farthest < 10.0)]
    found.append(_check(work, wave, [x.copy()], inputs["seed"], eps=0.5))
    pair = [inputs["x"].copy(), inputs["x"].copy()]
    found.append(_check(work, lambda x, y: work.exp(x), pair, inputs["seed"]))
    wrong = _operation(work, np.exp, lambda a, g: [g * np.exp(-a[0])])

    def deep(x):
        return work.sum(x * wrong(x))

    return [*found, _check(work, deep, [inputs["x"].copy()], inputs["seed"])]
