"""Exercise 15: which inputs are refused, and in which words?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.checks import (
    CheckFailed,
    Hint,
    expect_close,
    expect_equal,
    expect_raises,
    expect_true,
)
from tinynode_course.mynode import mistake

HINTS = {
    "check_expressions": Hint(
        "An expression has a text and a value. What do both become when somebody indexes or "
        "compares?",
        'e[1]: text "shape[1]", value shape[1]. e == 4: a Condition with text, bool and the '
        "actual values.",
    ),
    "check_expect": Hint(
        "Which of several false conditions should the message name, and what if a condition "
        "is a plain bool?",
        "A loop over the conditions; raise InvalidType at the first that does not hold.",
    ),
    "check_apply": Hint(
        "When does the check run, before or after forward, and which facts would you want in "
        "the message?",
        "apply: run_check(self, arrays), then forward. The message: class, condition, actual "
        "values, shapes and dtypes.",
    ),
    "check_broadcasts": Hint(
        "Line the two shapes up at their ends. Which pairs of lengths fit?",
        "Each pair of lengths is equal, or one of them is 1.",
    ),
    "check_layers_refuse": Hint(
        "Which lengths of the inputs must agree, and which number of axes does each need?",
        "linear: x.shape[-1] == w.shape[1], w.ndim == 2, b.shape[0] == w.shape[0]. Cross "
        "entropy: two axes, as many labels as rows.",
    ),
    "check_products": Hint(
        "Which shapes have z, x and y, and which product of two gives the third?",
        "z = x y. gx = gz y^T, gy = x^T gz.",
    ),
    "check_matmul_refuses": Hint(
        "Two lengths must agree in a product of matrices. Which two? What must be known "
        "before you ask?",
        "In turn: two inputs; two axes each; floating and equal dtypes; x.shape[1] == y.shape[0].",
    ),
}


def zeros(work: Any, *shape: int, dtype: str = "float64") -> Any:
    return work.Variable(np.zeros(shape, dtype=dtype))


def refusal(work: Any, what: str, call: Any) -> Any:
    """The InvalidType of a call; the message names the condition."""
    look = (
        "no error, or an error from forward: the check let these inputs through. Another error "
        "from the check: a line of it needs a condition that must stand in an expect above it"
    )
    error: Any = expect_raises(what, work.InvalidType, call, look)
    look = "compare expressions, without len(...), tuple(...) or .value: only they have a text"
    expect_true(f"{what}: the message shows the condition", "in_types" in error.expect, look)
    return error


def check_expressions(work: Any) -> None:
    """expressions and conditions know their texts"""
    from mynode.type_check import Expression, TypeInfo, TypeInfoTuple, is_floating

    look = "type_check.py: Expression"
    e = Expression("shape", (3, 4))[1]
    expect_equal("Expression('shape', (3, 4))[1]", (e.text, e.value), ("shape[1]", 4), look)
    other = Expression("n", 5)
    for what, condition, expected in (
        ("shape[1] == 4", e == 4, ("shape[1] == 4", True)),
        ("shape[1] == 5", e == 5, ("shape[1] == 5", False)),
        ("shape[1] == n", e == other, ("shape[1] == n", False)),
        ("shape[1] >= 4", e >= 4, ("shape[1] >= 4", True)),
        ("shape[1] >= n", e >= other, ("shape[1] >= n", False)),
    ):
        expect_equal(f"{what}: text, bool", (condition.text, bool(condition)), expected, look)
    expect_equal("the actual values of shape[1] == n", (e == other).actual, "4 != 5", look)
    x = TypeInfo("x", np.zeros((2, 3), np.float32))
    found = (x.shape.text, x.shape.value, x.ndim.value, x.dtype.value)
    look = "type_check.py: TypeInfo"
    expect_equal("TypeInfo of a (2, 3) array", found, ("x.shape", (2, 3), 2, np.float32), look)
    size = TypeInfoTuple((x, x)).size()
    found = (size.text, size.value)
    expect_equal("the size of two", found, ("in_types.size()", 2), "type_check.py: TypeInfoTuple")
    look = "type_check.py, is_floating: the kind of the dtype is 'f'"
    for dtype, holds in (("float32", True), ("int64", False), ("bool", False)):
        condition = is_floating(TypeInfo("x", np.zeros(2, dtype)))
        expect_equal(f"is_floating, {dtype}", bool(condition), holds, look)
        expect_equal("the text of is_floating", condition.text, "x.dtype is floating", look)


def check_expect(work: Any) -> None:
    """expect refuses at the first condition that does not hold"""
    from mynode.type_check import Expression, expect

    a, b = Expression("a", 1), Expression("b", 2)
    look = "type_check.py, expect: a loop; raise for the first that does not hold"
    expect(a == 1, b == 2, b >= a)
    for conditions, text in (
        ((a == 1, b == 3, a == 7), "b == 3"),
        ((a >= b,), "a >= b"),
    ):
        error: Any = expect_raises(text, work.InvalidType, lambda c=conditions: expect(*c), look)
        expect_equal("the condition in the error", error.expect, text, look)
    expect_raises("a plain False", work.InvalidType, lambda: expect(True, False), look)


def check_apply(work: Any) -> None:
    """apply runs the check before forward, and the message has all facts"""
    ran = []

    class Checked(work.FunctionNode):  # type: ignore[misc, name-defined]
        def check_type_forward(self, in_types: Any) -> None:
            from mynode.type_check import expect

            expect(in_types[0].ndim == 1)

        def forward(self, inputs: Any) -> Any:
            ran.append(True)
            return inputs

    Checked().apply((zeros(work, 3),))
    look = "core/function_node.py, apply: run_check(self, arrays) before self.forward(arrays)"
    error = refusal(
        work, "an operation of one axis", lambda: Checked().apply((zeros(work, 2, 3),))
    )
    expect_equal("the number of calls of forward", len(ran), 1, look)
    found = (error.expect, error.actual)
    expect_equal("expect and actual", found, ("in_types[0].ndim == 1", "2 != 1"), look)
    for fact in ("Checked", "in_types[0].ndim == 1", "2 != 1", "(2, 3)", "float64"):
        look = "type_check.py, run_check: the name of the class, the condition, and each input"
        expect_true(f"the message has {fact!r}", fact in str(error), look)


def check_broadcasts(work: Any) -> None:
    """shapes that do not broadcast are refused"""
    look = "type_check.py, broadcasts: each pair of lengths is equal, or has a 1"
    for left, right in ((3,), (4, 2)), ((2, 3), (2,)), ((2, 1, 3), (3, 2)):
        inputs = work.Variable(np.zeros(left)), work.Variable(np.zeros(right))
        what = f"add of shapes {left} and {right}"
        error: Any = expect_raises(
            what, work.InvalidType, lambda inputs=inputs: work.add(*inputs), look
        )
        for shape in left, right:
            expect_true(f"the message has {shape}", str(shape) in error.actual, look)


def check_layers_refuse(work: Any) -> None:
    """linear and softmax_cross_entropy refuse inputs that do not fit"""
    x, w, b = zeros(work, 4, 3), zeros(work, 2, 3), zeros(work, 2)
    work.linear(x, w, b)
    work.linear(zeros(work, 5, 4, 3), w)
    for what, inputs in (
        ("linear of shapes (3, 4) and (2, 3)", (zeros(work, 3, 4), w)),
        ("linear with a weight of one axis", (x, b)),
        ("linear with a bias of three numbers", (x, w, zeros(work, 3))),
        ("linear of integers", (zeros(work, 4, 3, dtype="int64"), w)),
    ):
        refusal(work, what, lambda inputs=inputs: work.linear(*inputs))
    labels = np.zeros(4, int)
    work.softmax_cross_entropy(x, labels)
    for what, scores, given in (
        ("softmax_cross_entropy of 4 rows and 3 labels", x, labels[:3]),
        ("softmax_cross_entropy of scores with one axis", b, labels[:2]),
        ("softmax_cross_entropy of labels with two axes", x, labels.reshape(4, 1)),
    ):
        call = work.softmax_cross_entropy
        refusal(work, what, lambda scores=scores, given=given, call=call: call(scores, given))


def check_products(work: Any) -> None:
    """products of matrices have the right values and gradients"""
    rng = np.random.default_rng(0)
    for n, k, m in (2, 3, 4), (1, 1, 1), (3, 1, 2), (2, 2, 2):
        for dtype in "float32", "float64":
            x, y = (rng.normal(size=shape).astype(dtype) for shape in ((n, k), (k, m)))
            g = rng.normal(size=(n, m)).astype(dtype)
            a, b = work.Variable(x), work.Variable(y)
            what = f"x @ y of shapes ({n}, {k}) and ({k}, {m}), {dtype}"
            try:
                z = a @ b
            except work.InvalidType as error:
                came = f"InvalidType: {error.expect}, but {error.actual}"
                look = "this condition refuses inputs that fit: it asks for something else"
                raise CheckFailed(what, "their product", came, look) from None
            expect_close(what, z.array, x @ y, "MatMul.forward, and Variable.__matmul__")
            z.grad = g
            z.backward()
            look = "MatMul.backward: gx = gz y^T, gy = x^T gz"
            expect_close(f"the gradient of x, {what}", a.grad, g @ y.T, look, rtol=1e-5)
            expect_close(f"the gradient of y, {what}", b.grad, x.T @ g, look, rtol=1e-5)


def check_matmul_refuses(work: Any) -> None:
    """matmul refuses inputs that do not fit, and says why"""
    from mynode.functions.products import MatMul

    matrix = zeros(work, 3, 3)
    for number in 1, 3:
        what = f"MatMul of {number} inputs"
        error = refusal(work, what, lambda number=number: MatMul().apply((matrix,) * number))
        look = "expect(in_types.size() == 2), before x, y = in_types"
        expect_equal(f"{what}: the condition", error.expect, "in_types.size() == 2", look)
    for position, inputs in (
        (0, (zeros(work, 3), matrix)),
        (1, (matrix, zeros(work, 3))),
        (0, (zeros(work), matrix)),
    ):
        what = f"matmul of shapes {inputs[0].array.shape} and {inputs[1].array.shape}"
        error = refusal(work, what, lambda inputs=inputs: work.matmul(*inputs))
        about = f"in_types[{position}].ndim "
        look = "a matrix has two axes: ask for ndim of x and of y, before you look at a length"
        expect_true(f"{what}: the condition is about {about}", about in error.expect, look)
    look = "is_floating(x) asks for a floating dtype, x.dtype == y.dtype for equal ones"
    for left, right in (("int64", "int64"), ("float64", "float32"), ("float64", "int64")):
        inputs = zeros(work, 2, 2, dtype=left), zeros(work, 2, 2, dtype=right)
        what = f"matmul of {left} and {right}"
        error = refusal(work, what, lambda inputs=inputs: work.matmul(*inputs))
        expect_true(f"{what}: the condition is about a dtype", "dtype" in error.expect, look)
    look = "z[i, j] is the sum of x[i, k] * y[k, j] over k. Which two lengths must be equal?"
    for left, right in ((2, 3), (2, 3)), ((3, 2), (4, 3)), ((2, 1), (3, 2)), ((4, 5), (4, 5)):
        what = f"matmul of shapes {left} and {right}"
        inputs = zeros(work, *left), zeros(work, *right)
        error = refusal(work, what, lambda inputs=inputs: work.matmul(*inputs))
        lengths = sorted(int(word) for word in error.actual.replace("!=", " ").split())
        expect_equal(
            f"{what}: the lengths in the message", lengths, sorted((left[1], right[0])), look
        )


_CHECK, _FUNCTION, _PRODUCTS = "type_check.py", "core/function_node.py", "functions/products.py"

MISTAKES = (
    (
        "the lengths are compared at the wrong axes",
        mistake("15", _PRODUCTS, "x.shape[1] == y.shape[0]", "x.shape[0] == y.shape[1]"),
    ),
    (
        "lengths are looked at in the same expect as the number of axes",
        mistake("15", _PRODUCTS, "y.ndim == 2)", "y.ndim == 2, x.shape[1] == y.shape[0])"),
    ),
    (
        "len() of the inputs is a plain number: the message cannot show the condition",
        mistake("15", _PRODUCTS, "in_types.size() == 2", "len(in_types) == 2"),
    ),
    (
        "two dtypes at once are let through",
        mistake("15", _PRODUCTS, "x.dtype == y.dtype", "is_floating(y)"),
    ),
    (
        "linear does not look at the bias",
        mistake(
            "15",
            "functions/network.py",
            "expect(in_types[2].shape[0] == w.shape[0])",
            "pass",
        ),
    ),
    (
        "the number of labels is not compared",
        mistake(
            "15",
            "functions/cross_entropy.py",
            "        expect(x.shape[0] == labels.shape[0])\n",
            "",
        ),
    ),
    (
        "the check runs after forward",
        mistake(
            "15",
            _FUNCTION,
            "        run_check(self, arrays)\n        results = self.forward(arrays)\n",
            "        results = self.forward(arrays)\n        run_check(self, arrays)\n",
        ),
    ),
    (
        "expect looks at the first condition only",
        mistake("15", _CHECK, "for condition in conditions:", "for condition in conditions[:1]:"),
    ),
    (
        "the gradients of the product are exchanged",
        mistake("15", _PRODUCTS, "return gx, gy", "return gy, gx"),
    ),
)
