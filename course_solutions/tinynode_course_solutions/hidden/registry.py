"""Hidden checks of the elective registry: a program of three lines, backward by names."""

import numpy as np

from tinynode_course.checks import expect_close, expect_equal, expect_raises

LOOK = "Names mean what the registry and the scope say, and nothing else."


def check_tanh(work):
    """tanh, and its gradient operator, run by name."""
    forward = work.Op("tanh", ["x"], ["y"])
    scope = {"x": np.array([0.3, -2.0]), "y@GRAD": np.array([1.0, 10.0])}
    work.run([forward, work.grad_op(forward)], scope)
    y = np.tanh(scope["x"])
    expect_close("y", scope["y"], y, LOOK)
    expect_close("x@GRAD", scope["x@GRAD"], (1 - y * y) * [1.0, 10.0], LOOK)


def check_product(work):
    """The gradients of a product arrive under the names of its inputs."""
    op = work.Op("mul", ["left", "right"], ["z"])
    grad = work.grad_op(op)
    expect_equal("the outputs", list(grad.outputs), ["left@GRAD", "right@GRAD"], LOOK)
    scope = {"left": 2.0, "right": 5.0, "z@GRAD": 10.0}
    work.run([op, grad], scope)
    expect_equal(
        "left@GRAD, right@GRAD", (scope["left@GRAD"], scope["right@GRAD"]), (50.0, 20.0), LOOK
    )


def check_overwriting(work):
    """A program that writes a name twice is refused, and nothing runs."""
    scope = {"x": np.array([1.0])}
    program = [work.Op("tanh", ["x"], ["y"]), work.Op("tanh", ["x"], ["y"])]
    expect_raises("a name is written twice", ValueError, lambda: work.run(program, scope), LOOK)
    expect_equal("the names in the scope", sorted(scope), ["x"], LOOK)
