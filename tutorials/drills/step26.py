"""Drills of hooks: what a hook is told, and the first operation that makes a NaN."""

import functools
import importlib

import numpy as np

from tinynode_course.drilling import raised


def _hook(work):
    return importlib.import_module(f"{work.__name__}.hooks").NaNHook()


def draw_told(rng):
    words = [str(word) for word in rng.choice(["exp", "sin", "tanh", "square"], 4)]
    return {"words": words, "x": rng.uniform(0.1, 0.5, 2)}


def drill_told(work, inputs):
    """Two hooks are told of each operation, forward and backward, also without a graph"""

    class Recorder(work.FunctionHook):
        def __init__(self):
            self.said = []

        def applied(self, function, inputs, outputs):
            arrays = [one.array.copy() for one in (*inputs, *outputs)]
            self.said.append([type(function).__name__, arrays])

        def backward_preprocess(self, function, in_data, out_grad):
            self.said.append(["before", type(function).__name__, [g.copy() for g in out_grad]])

        def after_backward(self, function, target_input_indexes, grad_outputs, grad_inputs):
            gradients = [g.copy() for g in (*grad_outputs, *grad_inputs)]
            self.said.append(["after", type(function).__name__, gradients])

    x = work.Variable(inputs["x"].copy())

    def chain():
        y = x
        for word in inputs["words"]:
            y = getattr(work, word)(y)
        return work.sum(y)

    with Recorder() as outer:
        chain().backward()
        with Recorder() as inner, work.no_backprop_mode():
            chain()
    chain().backward()
    return [outer.said, inner.said, x.grad]


def draw_forward(rng):
    cases = []
    for _ in range(8):
        words = [str(word) for word in rng.choice(["exp", "sin", "tanh", "root", "ratio"], 5)]
        x = rng.uniform(-2, 2, 2)
        x[0] = np.nan if rng.integers(0, 4) == 0 else x[0]
        cases.append([words, x])
    cases.append([["root", "exp", "ratio"], np.array([-1.0, 1.0])])
    cases.append([["exp", "sin", "tanh", "sin", "exp"], np.array([0.5, 1.0])])
    return {"cases": cases}


def drill_forward(work, inputs):
    """Chains: the first operation with a NaN among its results and none among its inputs"""
    found = []
    with np.errstate(all="ignore"):
        for words, x in inputs["cases"]:
            hook = _hook(work)
            with hook:
                y = work.Variable(x.copy())
                for word in words:
                    y = _call(work, word, y)
                zero = work.Variable(np.zeros(2))
                work.sum(zero / (y * 0.0)).backward()
            found.append(None if hook.first is None else list(hook.first))
            with hook:
                work.sum(work.sin(zero)).backward()
            found.append(None if hook.first is None else list(hook.first))
    return found


def _call(work, word, y):
    if word == "ratio":
        return y * 0.0 / (y * 0.0)
    return _root(work)().apply((y,))[0] if word == "root" else getattr(work, word)(y)


def _root(work):
    class Root(work.FunctionNode):
        def forward(self, inputs):
            self.retain_outputs((0,))
            return (np.sqrt(inputs[0]),)

        def backward(self, target_input_indexes, grad_outputs):
            (y,) = self.get_retained_outputs()
            return (grad_outputs[0] / (2.0 * y),)

    return Root


def draw_backward(rng):
    kinds = [str(kind) for kind in rng.permutation(["bad", "breaks", "none", "bad", "root"])]
    return {"place": int(rng.integers(0, 3)), "x": rng.uniform(0.5, 1, 3), "kinds": kinds}


def drill_backward(work, inputs):
    """A NaN of a backward is of that backward, recorded or not; a used hook begins anew"""

    class Bad(work.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 2.0,)

        def backward(self, target_input_indexes, grad_outputs):
            return (grad_outputs[0] * float("inf") * 0.0,)

    class Breaks(Bad):
        def backward(self, target_input_indexes, grad_outputs):
            raise KeyError("as planned")

    classes = {"bad": Bad, "breaks": Breaks, "root": _root(work)}
    found = []
    hook = _hook(work)
    with np.errstate(all="ignore"):
        for double in (False, True):
            for kind in inputs["kinds"]:
                with hook:
                    y = work.Variable(inputs["x"].copy())
                    for place in range(3):
                        y = work.sin(y)
                        if place == inputs["place"] and kind in classes:
                            (y,) = classes[kind]().apply((y * 0.0 if kind == "root" else y,))
                            y = y * 0.0 if kind == "root" else y
                    call = functools.partial(work.sum(y).backward, enable_double_backprop=double)
                    found.append(raised(call))
                found.append(None if hook.first is None else list(hook.first))
    return found
