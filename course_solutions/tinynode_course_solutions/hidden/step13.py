"""Hidden checks of step 13: training without a growing memory."""

import gc
import weakref

import numpy as np

from tinynode_course.checks import expect_close, expect_equal, expect_true

LOOK = "Nothing may hold a result but its user; unchain and no_backprop_mode cut the graph."


def check_no_cycle(work):
    """A loop of 50 training steps leaves no node behind, with the collector off."""
    gc.collect()
    gc.disable()
    try:
        w = work.Variable(np.array(1.0))
        seen = []
        for _ in range(50):
            loss = work.square(w * 0.9)
            seen.append(weakref.ref(loss.creator_node))
            loss.backward()
            w.array = w.array - 0.1 * w.grad
            w.cleargrad()
        del loss
        alive = sum(one() is not None for one in seen)
    finally:
        gc.enable()
    expect_equal("operations that are still alive", alive, 0, LOOK)


def check_mode_and_threads(work):
    """The mode ends with its block, also by an error deep inside."""
    x = work.Variable(np.array([1.0, 2.0]))
    try:
        with work.no_backprop_mode(), work.no_backprop_mode():
            raise ArithmeticError
    except ArithmeticError:
        pass
    y = work.square(x)
    expect_true("the graph is recorded after the block", y.creator_node is not None, LOOK)
    y.grad = np.ones(2)
    y.backward()
    expect_close("the gradient", x.grad, [2.0, 4.0], LOOK)
