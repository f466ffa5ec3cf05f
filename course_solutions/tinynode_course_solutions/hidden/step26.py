"""Hidden checks of exercise 26: NaNs in other functions, and two hooks at once."""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode_course.checks import expect_equal

LOOK = "A function made a NaN if its results have one, and what it was given has none."


def _first(hook, program):
    with np.errstate(all="ignore"), hook:
        program()
    return hook.first


def check_division(work):
    """0 / 0 in forward."""

    def program():
        zero = tn.Variable(np.array([0.0, 1.0]))
        F.exp(zero / (zero * 2.0))

    got = _first(work.NaNHook(), program)
    expect_equal("first, for 0 / 0", got, ("Divide", "forward"), LOOK)


def check_infinity_is_no_nan(work):
    """An infinite number is no NaN; infinity minus infinity is one."""
    huge = tn.Variable(np.array([1e200]))
    got = _first(work.NaNHook(), lambda: huge * huge)
    expect_equal("first, for an infinite number", got, None, LOOK)
    got = _first(work.NaNHook(), lambda: huge * huge - huge * huge)
    expect_equal("first, for inf - inf", got, ("Subtract", "forward"), LOOK)


def check_two_hooks(work):
    """A hook after another one knows nothing of what came before."""
    one, other = work.NaNHook(), work.NaNHook()
    bad = tn.Variable(np.array([-1.0]))
    _first(one, lambda: F.log(bad))
    got = _first(other, lambda: F.exp(bad))
    expect_equal("first of the second hook", got, None, LOOK)
    expect_equal("first of the first hook", one.first, ("Log", "forward"), LOOK)
