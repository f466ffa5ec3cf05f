"""Gradients measured by small steps, to judge those that backward computes.

Step 3: write the last two lines of numerical_grad, and check_backward. compare is given.
"""

import numpy as np
from mynode.core.variable import Variable


def numerical_grad(f, inputs, grad_outputs, eps=1e-3):
    """The gradients of sum(grad_outputs * f()) with respect to the arrays in inputs."""
    grads = tuple(np.zeros_like(x) for x in inputs)
    for x, gx in zip(inputs, grads, strict=True):
        for index in np.ndindex(x.shape):
            before = x[index].copy()
            heights = []
            for moved in (before + eps, before - eps):
                x[index] = moved
                heights.append(
                    sum(np.sum(gy * y) for gy, y in zip(grad_outputs, f(), strict=True))
                )
            raise NotImplementedError(
                f"step 3: put {before} back; the slope goes into {gx}[{index}]"
            )
    return grads


def check_backward(function, x_data, y_grad, eps=1e-5, rtol=1e-6, atol=1e-8):
    """Compare backward of function(x) with measured gradients; x_data is an array of float64.

    Raises:
        AssertionError: The gradients differ.
    """
    raise NotImplementedError("step 3: compare backward with numerical_grad")


def compare(what, gx, measured, rtol, atol):
    """Refuse a gradient that differs from the measured one."""
    if not np.allclose(gx, measured, rtol=rtol, atol=atol):
        raise AssertionError(f"{what}: backward gives {gx}, small steps measure {measured}")
