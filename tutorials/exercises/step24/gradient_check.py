"""Gradients measured by small steps, to judge those that backward computes.

Step 24: write check_double_backward, with grad and numerical_grad.
"""

import numpy as np
from mynode.core.backprop import grad
from mynode.core.variable import Variable


def check_double_backward(function, x_data, y_grad, x_grad_grad, eps=1e-5, rtol=1e-5, atol=1e-7):
    """Compare the gradients of the gradient of function(x) with measured ones.

    The checked function has two inputs, x and gy, and gives gx. x_grad_grad is the gradient of gx.

    Raises:
        AssertionError: The gradients differ.
    """
    raise NotImplementedError("step 24: move x and gy, and measure gx")
