"""Drills of one's own function: xlogy, and rows that refuse wrong functions."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode_course.rows import failures


def draw_values(rng):
    pairs = [[[2, 3], [2, 3]], [[3], [2, 3]], [[2, 3], []], [[0, 3], [3]], [[2, 1], [3]]]
    return {
        "pairs": [[rng.integers(-1, 2, a) * 1.0, rng.uniform(0.2, 2, b)] for a, b in pairs],
        "seed": int(rng.integers(0, 99)),
    }


def drill_values(work, inputs):
    """Values with broadcasting, at 0, dtypes; gradients of two orders"""
    found = []
    with np.errstate(all="ignore"):
        for a, b in inputs["pairs"]:
            for dtype in ("float64", "float32"):
                z = work.xlogy(
                    tn.Variable(np.asarray(a, dtype)), tn.Variable(np.asarray(b, dtype))
                )
                found.append(z.array)
            xs = [tn.Variable(np.asarray(one + 0.5)) for one in (a, b)]
            z = work.xlogy(*xs)
            grads = tn.grad([z], xs, [tn.Variable(np.cos(z.array))], enable_double_backprop=True)
            total = F.sum(grads[0] * grads[0]) + F.sum(grads[1] * grads[1])
            second = tn.grad([total], xs)
            found += [[one.array for one in grads], [one.array for one in second]]
        ends = work.xlogy(
            tn.Variable(np.array([0.0, 1.0, -1.0, 2.0])),
            tn.Variable(np.array([0.0, 0.0, 0.0, -1.0])),
        )
        x, y = tn.Variable(np.array([1.5])), tn.Variable(np.array([-2.0]))
        below = tn.grad([work.xlogy(x, y)], [x, y])
    return [*found, ends.array, [one.array for one in below]]


class _Right(tn.FunctionNode):
    def forward(self, inputs):
        x, y = inputs
        self.retain_inputs((0, 1))
        return (x * np.log(np.where(x == 0, np.ones_like(y), y)),)

    def backward(self, target_input_indexes, grad_outputs):
        (gz,) = grad_outputs
        x, y = self.get_retained_inputs()
        return gz * F.log(y), gz * x / y


class _Changed(_Right):
    kind, factor = "", 1.0

    def forward(self, inputs):
        (z,) = super().forward(inputs)
        if self.kind == "value":
            z = z * np.asarray(self.factor, z.dtype)
        if self.kind == "dtype":
            z = z.astype("float64")
        if self.kind == "zero":
            z = np.where(inputs[0] == 0, inputs[0] * np.log(inputs[1]), z)
        if self.kind == "infinite":
            z = np.where(inputs[1] == 0, np.zeros_like(z), z)
        if self.kind == "empty" and z.size == 0:
            raise ValueError("no maximum of an empty array")
        if self.kind == "negative" and np.any(inputs[0] < 0):
            raise ValueError("x is negative")
        return (z,)

    def backward(self, target_input_indexes, grad_outputs):
        gx, gy = super().backward(target_input_indexes, grad_outputs)
        if self.kind == "gradient":
            gy = gy * self.factor
        if self.kind == "constant":
            gx, gy = tn.asarray(gx.array), tn.asarray(gy.array)
        return gx, gy


KINDS = (
    "right",
    "value",
    "gradient",
    "constant",
    "dtype",
    "zero",
    "infinite",
    "empty",
    "negative",
)
KINDS += ("broadcasting",)


def draw_rows(rng):
    return {
        "kinds": [str(kind) for kind in rng.permutation(KINDS)],
        "factor": float(rng.uniform(1.1, 2)),
    }


def drill_rows(work, inputs):
    """The rows let a right function pass, and refuse nine wrong ones"""
    found = []
    for kind in inputs["kinds"]:

        def function(x, y, kind=kind):
            if kind != "broadcasting":
                x, y = F.broadcast_arrays(x, y)
            elif x.shape != y.shape:
                raise ValueError("the shapes differ")
            node = _Changed()
            node.kind, node.factor = kind, inputs["factor"]
            return node.apply((x, y))[0]

        found += [kind, bool(failures(function, work.ROWS))]
    return found
