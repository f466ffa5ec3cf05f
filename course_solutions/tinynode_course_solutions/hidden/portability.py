"""Hidden checks of the elective portability: other shapes, large numbers, another device."""

import numpy as np

import tinynode as tn
from tinynode_course.checks import expect_close, expect_equal

LOOK = "Take the functions from tn.namespace_of(x), and the dtype and the shape from x."


def _expected(x):
    return np.mean(abs(x) + np.log1p(np.exp(-2 * abs(x))) - np.log(2.0), axis=1)


def check_large_numbers(work):
    """Nothing overflows."""
    x = np.array([[1e4, -1e4], [0.0, 1e-3]])
    (y,) = work.LogCosh().apply((tn.Variable(x),))
    expect_close("log(cosh(x))", y.array, _expected(x), LOOK)


def check_devices(work):
    """Both devices, both widths, and the gradient."""
    x = np.random.default_rng(4).normal(size=(2, 5))
    for device in ("numpy", "fast"):
        for dtype in ("float32", "float64"):
            v = tn.asarray(x, device=device, dtype=dtype, requires_grad=True)
            (y,) = work.LogCosh().apply((v,))
            (g,) = tn.grad([y], [v], [tn.asarray(np.ones(2), device=device, dtype=dtype)])
            expect_equal("the dtypes", (str(y.dtype), str(g.dtype)), (dtype, dtype), LOOK)
            expect_close("the gradient", g.array, np.tanh(x) / 5, LOOK, rtol=1e-4, atol=1e-6)
