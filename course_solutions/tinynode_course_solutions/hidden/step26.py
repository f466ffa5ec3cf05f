"""Hidden checks of exercise 26: NaNs in other operations, and two hooks at once."""

import numpy as np

from tinynode_course.checks import expect_equal

LOOK = "An operation made a NaN if its results have one, and what it was given has none."


def _first(hook, program):
    with np.errstate(all="ignore"), hook:
        program()
    return hook.first


def check_infinity_is_no_nan(work):
    """An infinite number is no NaN; infinity minus infinity is one."""
    from mynode.hooks import NaNHook

    huge = work.Variable(np.array([1e200]))
    got = _first(NaNHook(), lambda: huge * huge)
    expect_equal("first, for an infinite number", got, None, LOOK)
    got = _first(NaNHook(), lambda: huge * huge - huge * huge)
    expect_equal("first, for inf - inf", got, ("Subtract", "forward"), LOOK)


def check_two_hooks(work):
    """A hook after another one knows nothing of what came before."""
    from mynode.hooks import NaNHook

    one, other = NaNHook(), NaNHook()
    zero = work.Variable(np.array([0.0]))
    _first(one, lambda: zero / zero)
    got = _first(other, lambda: work.exp(zero))
    expect_equal("first of the second hook", got, None, LOOK)
    expect_equal("first of the first hook", one.first, ("Divide", "forward"), LOOK)


def check_seed(work):
    """A NaN in the gradient that backward began with."""
    from mynode.hooks import NaNHook

    def program():
        y = work.square(work.Variable(np.array([1.0, 2.0])))
        y.grad = np.array([np.nan, 1.0])
        y.backward()

    expect_equal("first, for a seed with a NaN", _first(NaNHook(), program), None, LOOK)
