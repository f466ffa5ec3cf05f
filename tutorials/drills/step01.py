"""Drills of boxes and operations: values, dtypes, and the way back through the graph."""

import numpy as np

from tinynode_course.drilling import raised

NAMES = ("exp", "square", "negative")


def draw_values(rng):
    words = [str(rng.choice(NAMES)) for _ in range(4)]
    return {"words": words, "x": rng.normal(size=3) / 4, "single": np.float32(rng.uniform(0, 1))}


def drill_values(work, inputs):
    """A chain of operations has the right values, dtypes and names, and changes no input"""
    found = []
    for name in NAMES:
        for start in (inputs["x"], np.asarray(inputs["single"]), inputs["x"].astype("float32")):
            array = start.copy()
            y = getattr(work, name)(work.Variable(array))
            found += [name, y.array, array, type(y.array).__name__]
    return found


def draw_way_back(rng):
    return {
        "words": [str(word) for word in rng.permutation([*NAMES, *NAMES])],
        "x": rng.uniform(-0.3, 0.3, 2),
    }


def drill_way_back(work, inputs):
    """Each result knows the operation that computed it; a leaf has none"""
    x = y = work.Variable(inputs["x"], name="start")
    for word in inputs["words"]:
        y = getattr(work, word)(y)
    found = [x.name, x.creator_node is None, isinstance(x, type(y))]
    creator = y.creator_node
    while creator is not None:
        found.append([type(creator).__name__, len(creator.inputs), len(creator.outputs)])
        creator = creator.inputs[0].creator_node
    return found


def draw_own_operation(rng):
    return {"numbers": rng.normal(size=(2, 3)), "factor": float(rng.normal())}


def drill_own_operation(work, inputs):
    """apply works for many inputs and outputs, and refuses a result that is no tuple"""
    factor = inputs["factor"]

    class Both(work.FunctionNode):
        def forward(self, inputs):
            x, y = inputs
            return x * factor + y, y - x, np.float64(factor)

    class Wrong(work.FunctionNode):
        def forward(self, inputs):
            return inputs[0] * factor

    one, other = (work.Variable(row) for row in inputs["numbers"])
    outputs = Both().apply((one, other))
    creators = [y.creator_node is outputs[0].creator_node for y in outputs]
    types = [type(y.array).__name__ for y in outputs]
    error = raised(lambda: Wrong().apply((one,)), TypeError)
    return [[y.array for y in outputs], creators, types, error, type(outputs).__name__]
