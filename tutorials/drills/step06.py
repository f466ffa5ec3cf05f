"""Drills of rank and order: random graphs, each operation once, the highest rank first."""

import numpy as np

from tinynode_course.drilling import gradients


def draw_graphs(rng):
    graphs = []
    for _ in range(6):
        steps = []
        for number in range(8):
            kind = str(rng.choice(["add", "subtract", "multiply", "sin"]))
            steps.append(
                [kind, int(rng.integers(0, number + 2)), int(rng.integers(0, number + 2))]
            )
        graphs.append(steps)
    return {
        "graphs": graphs,
        "x": rng.uniform(-1, 1, 2),
        "w": rng.uniform(-1, 1, 2),
        "gy": rng.normal(size=2),
    }


def drill_graphs(work, inputs):
    """Random graphs with long and short ways: gradients and ranks"""
    found = []
    for steps in inputs["graphs"]:
        ranks = []

        def function(x, w, steps=steps, ranks=ranks):
            values = [x, w]
            for kind, one, other in steps:
                if kind == "sin":
                    values.append(work.sin(values[one]))
                else:
                    values.append(getattr(work, kind)(values[one], values[other]))
            y = values[0] * values[1]
            for value in values[2:]:
                y = y + value
            ranks += [value.rank for value in (*values, y)]
            return y

        arrays = [inputs["x"], inputs["w"]]
        found += [gradients(work, function, arrays, inputs["gy"]), ranks]
    return found


def draw_once(rng):
    return {
        "uses": int(rng.integers(3, 6)),
        "depth": int(rng.integers(20, 30)),
        "x": rng.normal(size=2),
    }


def drill_once(work, inputs):
    """Each operation runs its backward once, after all operations that use its result"""
    runs = []

    class Scale(work.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 0.5,)

        def backward(self, target_input_indexes, grad_outputs):
            runs.append(self.rank)
            return (grad_outputs[0] * 0.5,)

    def function(x):
        for _ in range(inputs["depth"]):
            y = Scale().apply((x,))[0]
            x = y
            for _ in range(inputs["uses"] - 1):
                x = x + y
        return x

    return [gradients(work, function, [inputs["x"]], np.ones(2)), runs]


def draw_outputs(rng):
    order = [int(place) for place in rng.permutation(4)]
    return {"x": rng.normal(size=3), "gy": rng.normal(size=3), "order": order}


def drill_outputs(work, inputs):
    """An operation with two outputs gets both gradients at once, and None for an unused output"""
    seen = []

    class Split(work.FunctionNode):
        def forward(self, inputs):
            return inputs[0] * 2.0, inputs[0] * 3.0

        def backward(self, target_input_indexes, grad_outputs):
            seen.append([g is None for g in grad_outputs])
            one, other = grad_outputs
            g = 0.0 if one is None else one * 2.0
            return (g if other is None else g + other * 3.0,)

    def function(x, place):
        one, other = Split().apply((x,))
        if place == 0:
            return one
        if place == 1:
            return work.sin(work.sin(one)) + other
        if place == 2:
            return other + work.sin(work.sin(one))
        return work.sin(other) * other

    found = []
    for place in inputs["order"]:

        def one_of(x, place=place):
            return function(x, place)

        found.append(gradients(work, one_of, [inputs["x"]], inputs["gy"]))
    return [found, seen]
