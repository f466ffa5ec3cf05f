"""The lessons of earlier steps: all operations of the learner's package, at each step.

Requirement: a rewrite of an operation can lose the lesson of an earlier step. So one check calls
all operations that the package has so far, after the checks of a step. The gradients agree with
small steps, and the operations are careful (``tinynode_course.careful``).

An operation is a line of ``CALLS``. Operations that the package does not have yet are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinynode_course.careful import expect_careful
from tinynode_course.checks import expect_gradients

PARTS = ((0.5, -1.25, 2.0), (1.5, 0.75, -0.5))
LABELS = np.array([2, 0])


def _one(name: str) -> Callable[..., Any]:
    """An operation of ``name`` with Variables alone."""
    return lambda work, *xs: getattr(work, name)(*xs)


def _matrix() -> Any:
    return np.array(PARTS)


def _positive() -> Any:
    return np.array(PARTS) ** 2 + 0.5


def _square() -> Any:
    return np.array([[0.5, 1.0, -2.0], [1.5, 0.25, 0.75], [-1.0, 2.0, 1.25]])


def _vector() -> Any:
    return np.array([0.5, -2.0, 1.5])


def _image() -> Any:
    return np.sin(np.arange(32.0)).reshape(1, 2, 4, 4)


def _filters() -> Any:
    return np.cos(np.arange(24.0)).reshape(3, 2, 2, 2)


def _sequence() -> Any:
    return np.sin(np.arange(12.0)).reshape(4, 3)


def _used_three_times(work: Any, y: Any) -> Any:
    return work.add(work.add(y, y), y)


Calls = tuple[tuple[str, Callable[..., Any], tuple[Callable[[], Any], ...]], ...]
"""Names of operations, calls with the package and Variables, and the functions of the inputs."""

CALLS: Calls = (
    ("negative", _one("negative"), (_matrix,)),
    ("square", _one("square"), (_matrix,)),
    ("exp", _one("exp"), (_matrix,)),
    ("sin", _one("sin"), (_matrix,)),
    ("cos", _one("cos"), (_matrix,)),
    ("tanh", _one("tanh"), (_matrix,)),
    ("sigmoid", _one("sigmoid"), (_matrix,)),
    ("relu", _one("relu"), (_matrix,)),
    ("sqrt", _one("sqrt"), (_positive,)),
    ("add", _one("add"), (_matrix, _matrix)),
    ("subtract", _one("subtract"), (_matrix, _positive)),
    ("multiply", _one("multiply"), (_matrix, _positive)),
    ("divide", _one("divide"), (_matrix, _positive)),
    ("reshape", lambda work, x: work.reshape(x, (3, 2)), (_matrix,)),
    ("broadcast_to", lambda work, x: work.broadcast_to(x, (2, 3)), (_vector,)),
    ("sum_to", lambda work, x: work.sum_to(x, (1, 3)), (_matrix,)),
    ("sum", lambda work, x: work.sum(x, axis=1), (_matrix,)),
    ("mean", lambda work, x: work.mean(x, axis=0), (_matrix,)),
    ("var", lambda work, x: work.var(x, axis=1), (_matrix,)),
    ("linear", _one("linear"), (_matrix, _square, _vector)),
    ("matmul", _one("matmul"), (_matrix, _square)),
    ("matrix_transpose", _one("matrix_transpose"), (_matrix,)),
    ("permute_dims", lambda work, x: work.permute_dims(x, (1, 0)), (_matrix,)),
    ("softmax", _one("softmax"), (_matrix,)),
    ("mean_squared_error", _one("mean_squared_error"), (_matrix, _positive)),
    (
        "softmax_cross_entropy",
        lambda work, x: work.softmax_cross_entropy(x, LABELS),
        (_matrix,),
    ),
    ("conv2d", _one("conv2d"), (_image, _filters)),
    ("max_pool2d", lambda work, x: work.max_pool2d(x, 2), (_image,)),
    ("embedding", lambda work, x: work.embedding(LABELS, x), (_square,)),
    (
        "scaled_dot_product_attention",
        _one("scaled_dot_product_attention"),
        (_sequence, _sequence, _sequence),
    ),
    ("layer_norm", _one("layer_norm"), (_matrix, _vector, _vector)),
)
"""Each input is used once, so these hold from the first step on."""

USES: Calls = (
    ("add", lambda work, x: work.add(x, x), (_matrix,)),
    ("multiply", lambda work, x: work.multiply(x, x), (_matrix,)),
    ("add", lambda work, x: _used_three_times(work, work.square(x)), (_matrix,)),
)
"""Variables with several uses. Steps 5 and 6 have checks of their own; later steps have these."""


VIEWS = ("reshape", "broadcast_to", "sum_to", "matrix_transpose", "permute_dims")
"""Operations whose result may share memory with the input."""


def check_earlier_lessons(work: Any) -> None:
    """All operations so far: right gradients, float32 stays, no foreign array is written"""
    if not hasattr(work, "Variable"):
        return
    has_backward = hasattr(work.Variable, "backward")  # from step 4
    for name, call, inputs in (*CALLS, *(USES if hasattr(work, "sum_to") else ())):
        if not hasattr(work, name):
            continue
        function = _with_package(work, call)
        arrays = [one() for one in inputs]
        if has_backward:
            look = f"the backward of {name}"
            expect_gradients(name, function, arrays, work.Variable, look)
        expect_careful(
            work,
            name,
            function,
            *arrays,
            view=name in VIEWS,
            backward=has_backward,
            again=False,
        )


def _with_package(work: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """The call as a function of Variables alone."""
    return lambda *xs: call(work, *xs)
