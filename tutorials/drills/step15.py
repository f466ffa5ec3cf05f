"""Drills of type checks: texts of conditions, refusals, products of matrices."""

import importlib

import numpy as np

from tinynode_course.drilling import gradients, raised


def _checks(work):
    return importlib.import_module(f"{work.__name__}.type_check")


def draw_expressions(rng):
    return {
        "shape": [int(n) for n in rng.integers(1, 9, 3)],
        "numbers": [int(n) for n in rng.integers(1, 9, 4)],
    }


def drill_expressions(work, inputs):
    """Expressions and conditions know their text, their truth and the values"""
    checks = _checks(work)
    found = []
    shape = checks.Expression("s", tuple(inputs["shape"]))
    for place in range(3):
        for number in (*inputs["numbers"], checks.Expression("n", inputs["shape"][0])):
            for condition in (shape[place] == number, shape[place] >= number):
                found.append([condition.text, bool(condition)])
                if not condition:
                    found.append(condition.actual)
    for dtype in ("float32", "float64", "int64", "bool"):
        info = checks.TypeInfo("x", np.zeros(inputs["shape"], dtype))
        floating = checks.is_floating(info)
        found += [info.shape.text, info.ndim.text, info.ndim.value, info.dtype.text]
        found += [floating.text, bool(floating)]
    size = checks.TypeInfoTuple((1, 2, 3)).size()
    return [*found, size.text, size.value]


def draw_expect(rng):
    return {"truths": [[bool(b) for b in row] for row in rng.integers(0, 3, (8, 4)) > 0]}


def drill_expect(work, inputs):
    """expect refuses at the first condition that does not hold"""
    checks = _checks(work)
    found = []
    for truths in inputs["truths"]:
        one = checks.Expression("a", 1)
        conditions = [
            checks.Expression(f"a{i}", 1) == (1 if t else 2) for i, t in enumerate(truths)
        ]
        try:
            checks.expect(one == 1, *conditions)
            found.append("")
        except work.InvalidType as error:
            found += [error.expect, error.actual]
    return [*found, raised(lambda: checks.expect(True, False), work.InvalidType)]


def draw_matmul(rng):
    n, k, m = (int(number) for number in rng.integers(1, 5, 3))
    return {
        "x": rng.normal(size=(n, k)),
        "y": rng.normal(size=(k, m)),
        "gz": rng.normal(size=(n, m)),
    }


def drill_matmul(work, inputs):
    """Products of matrices: values, gradients, dtypes, and no gradient without a wish"""
    found = []
    for dtype in ("float64", "float32"):
        arrays = [inputs["x"].astype(dtype), inputs["y"].astype(dtype)]
        gz = inputs["gz"].astype(dtype)
        found.append(gradients(work, lambda x, y: x @ y, arrays, gz))
        x, y = (work.Variable(array) for array in arrays)
        node = work.matmul(x, y).creator_node
        found += [list(node.backward((0,), (gz,))), list(node.backward((1,), (gz,)))]
    return found


def draw_refusals(rng):
    shapes = [[int(n) for n in rng.integers(1, 4, size)] for size in (2, 2, 1, 2, 0, 2)]
    return {"shapes": shapes}


def drill_refusals(work, inputs):
    """matmul refuses inputs that do not fit: the subject of the condition, before forward

    Step 19 multiplies stacks, by conditions with other numbers. So numbers do not count.
    """
    found = []
    dtypes = ("float64", "float32", "int64")
    for one in inputs["shapes"]:
        for other in inputs["shapes"]:
            for left, right in [(a, b) for a in dtypes for b in dtypes]:
                x, y = work.Variable(np.zeros(one, left)), work.Variable(np.zeros(other, right))
                try:
                    found.append(list(work.matmul(x, y).array.shape))
                except work.InvalidType as error:
                    subjects = ("in_types[0]", "in_types[1]", "ndim", "dtype", "shape")
                    found.append([error.expect.count(subject) for subject in subjects])
    x = work.Variable(np.zeros((2, 2)))
    node = work.matmul(x, x).creator_node
    for number in (1, 3):
        try:
            type(node)().apply((x,) * number)
        except work.InvalidType as error:
            found.append(error.expect)
    return found


def draw_order(rng):
    return {"shape": [int(n) for n in rng.integers(2, 4, 2)], "wanted": int(rng.integers(3, 5))}


def drill_order(work, inputs):
    """The check runs before forward, and the message names operation, condition and inputs"""
    ran = []
    checks = _checks(work)

    class Checked(work.FunctionNode):
        def check_type_forward(self, in_types):
            checks.expect(in_types[0].ndim == inputs["wanted"])

        def forward(self, inputs):
            ran.append(True)
            return inputs

    try:
        Checked().apply((work.Variable(np.zeros(inputs["shape"], "float32")),))
        facts = []
    except work.InvalidType as error:
        words = ("Checked", error.expect, error.actual, str(tuple(inputs["shape"])), "float32")
        facts = [error.expect, error.actual, *(word in str(error) for word in words)]
    Checked().apply((work.Variable(np.zeros((1,) * inputs["wanted"])),))
    refused = raised(
        lambda: work.Variable(np.zeros(3)) + work.Variable(np.zeros((4, 2))), work.InvalidType
    )
    return [facts, len(ran), refused]


def draw_others(rng):
    return {"shapes": [[int(n) for n in rng.integers(1, 4, size)] for size in (1, 2, 2, 3)]}


def drill_others(work, inputs):
    """linear, softmax_cross_entropy and the operators refuse inputs that do not fit"""
    found = []
    shapes = inputs["shapes"]
    for one in shapes:
        for other in shapes:
            for dtype in ("float64", "int64"):
                x, w = work.Variable(np.zeros(one, dtype)), work.Variable(np.zeros(other))
                labels = np.zeros(other[0], "int64" if dtype == "float64" else "float64")
                for call in (
                    lambda x=x, w=w: x * w,
                    lambda x=x, w=w: work.linear(x, w),
                    lambda x=x, t=labels: work.softmax_cross_entropy(x, t),
                ):
                    found.append(raised(call, work.InvalidType))
    x, w = work.Variable(np.zeros((2, 3))), work.Variable(np.zeros((4, 3)))
    for shape in ([4], [1], [2, 4], [], *shapes):
        bias = work.Variable(np.zeros(shape))
        found.append(raised(lambda b=bias: work.linear(x, w, b), work.InvalidType))
    return found
