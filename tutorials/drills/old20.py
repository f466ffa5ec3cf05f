"""Drills of hooks: the first function that makes a NaN."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode_course.drilling import raised


def draw_forward(rng):
    cases = []
    for _ in range(8):
        words = [str(word) for word in rng.choice(["exp", "sin", "tanh", "log", "sqrt"], 5)]
        x = rng.uniform(-2, 2, 2)
        x[0] = np.nan if rng.integers(0, 4) == 0 else x[0]
        other = [str(word) for word in rng.permutation(["log", "sqrt"])]
        cases.append([words, x, other])
    return {"cases": cases}


def drill_forward(work, inputs):
    """Chains: the first function with a NaN among its results and none among its inputs"""
    found = []
    with np.errstate(all="ignore"):
        for words, x, other in inputs["cases"]:
            hook = work.NaNHook()
            with hook:
                y = tn.Variable(x.copy())
                for word in words:
                    y = getattr(F, word)(y)
                for word in other:
                    getattr(F, word)(tn.Variable(np.array([-1.0])))
                leaf = tn.Variable(np.array([0.0, 1.0]))
                z = F.sum(F.sqrt(leaf) * leaf)
                z.backward()
            found.append(None if hook.first is None else list(hook.first))
    return found


def draw_backward(rng):
    return {"place": int(rng.integers(0, 3)), "x": rng.uniform(0.5, 1, 3)}


class _Bad(tn.FunctionNode):
    def forward(self, inputs):
        return (inputs[0] * 2.0,)

    def backward(self, target_input_indexes, grad_outputs):
        return (grad_outputs[0] * float("inf") * 0.0,)


class _Breaks(tn.FunctionNode):
    def forward(self, inputs):
        return (inputs[0] * 2.0,)

    def backward(self, target_input_indexes, grad_outputs):
        raise KeyError("as planned")


def drill_backward(work, inputs):
    """A NaN of a backward is of that backward; a hook that was used before begins anew"""
    found = []
    hook = work.NaNHook()
    for kind in (_Bad, _Breaks, None, _Bad):
        with hook:
            y = tn.Variable(inputs["x"].copy())
            for place in range(3):
                y = F.sin(y)
                if place == inputs["place"] and kind is not None:
                    (y,) = kind().apply((y,))
            found.append(raised(F.sum(y).backward))
        found.append(None if hook.first is None else list(hook.first))
    return found
