"""Gradients measured by small steps, to judge those that backward computes.

Step 3: write numerical_grad, as the page of step 3 shows it, and check_backward.
"""

import numpy as np
from mynode.core.variable import Variable


def numerical_grad(f, inputs, grad_outputs, eps=1e-3):
    """The gradients of sum(grad_outputs * f()) with respect to the arrays in inputs."""
    raise NotImplementedError("step 3: move each element by eps, and measure the slope")


def check_backward(function, x_data, y_grad, eps=1e-5, rtol=1e-6, atol=1e-8):
    """Compare backward of function(x) with measured gradients; x_data is an array of float64.

    Raises:
        AssertionError: The gradients differ.
    """
    raise NotImplementedError("step 3: compare backward with numerical_grad by np.allclose")
