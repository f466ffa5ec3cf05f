"""Drills of what is kept: retained arrays, and only those."""

import weakref

from tinynode_course.drilling import Quiet, gradients

NAMES = ("square", "exp", "sin", "tanh", "negative")


def draw_tanh(rng):
    return {"x": rng.normal(size=(2, 2)), "gy": rng.normal(size=(2, 2))}


def drill_tanh(work, inputs):
    """tanh and its older relatives: values and gradients, and no array changes"""
    found = []
    for dtype in ("float64", "float32"):
        for name in NAMES:
            arrays, gy = [inputs["x"].astype(dtype)], inputs["gy"].astype(dtype)
            found += [name, gradients(work, getattr(work, name), arrays, gy)]
    return found


def draw_own(rng):
    chosen = [int(place) for place in rng.permutation(3)[:2]]
    return {
        "inputs": rng.normal(size=(3, 2)),
        "ins": chosen,
        "outs": [int(b) for b in rng.permutation(2)],
    }


def drill_own(work, inputs):
    """An operation gets back what it retained, in the order of the indexes, without copies"""
    ins, outs = tuple(inputs["ins"]), tuple(inputs["outs"])

    class Own(work.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs(ins)
            self.retain_outputs(outs)
            return inputs[0] + inputs[1], inputs[2] * 2.0

        def backward(self, target_input_indexes, grad_outputs):
            return grad_outputs

    xs = [work.Variable(row.copy()) for row in inputs["inputs"]]
    function = Own()
    ys = function.apply(tuple(xs))
    kept, made = function.get_retained_inputs(), function.get_retained_outputs()
    same = [array is x.array for array in kept for x in xs]
    same += [array is y.array for array in made for y in ys]
    return [list(kept), list(made), same, type(kept).__name__, type(made).__name__]


def draw_memory(rng):
    words = [str(word) for word in rng.permutation([*NAMES, "add", "multiply", "subtract"])]
    return {"words": words, "x": rng.normal(size=3)}


def drill_memory(work, inputs):
    """Each operation keeps the arrays of its formula; others go when the user drops them"""
    found = []
    with Quiet():
        for word in inputs["words"]:
            x, w = work.Variable(inputs["x"].copy()), work.Variable(inputs["x"].copy())
            operands = (x, w) if word in ("add", "multiply", "subtract") else (x,)
            y = getattr(work, word)(*operands)
            weak = [weakref.ref(one.array) for one in (*operands, y)]
            node = y.creator_node
            del x, w, operands, y
            found.append([word, [one() is not None for one in weak], type(node).__name__])
    return found
