"""Gradients measured by small steps, to judge those that backward computes."""

import numpy as np
from mynode.core.backprop import grad
from mynode.core.variable import Variable
from mynode.random import get_generator


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
            x[index] = before
            gx[index] = (heights[0] - heights[1]) / (2 * eps)
    return grads


def check_backward(function, x_data, y_grad, eps=1e-5, rtol=1e-6, atol=1e-8):
    """Compare backward of function(x) with measured gradients; x_data is an array of float64.

    Raises:
        AssertionError: The gradients differ.
    """
    x = Variable(x_data.copy())
    y = function(x)
    (gx,) = y.creator_node.backward((0,), (y_grad,))

    def f():
        return (function(x).array,)

    (measured,) = numerical_grad(f, (x.array,), (y_grad,), eps)
    compare(f"check_backward of {type(y.creator_node).__name__}", gx, measured, rtol, atol)


def compare(what, gx, measured, rtol, atol):
    """Refuse a gradient that differs from the measured one."""
    if not np.allclose(gx, measured, rtol=rtol, atol=atol):
        raise AssertionError(f"{what}: backward gives {gx}, small steps measure {measured}")


def check_gradients(function, arrays, eps=1e-5, rtol=1e-6, atol=1e-8):
    """Compare two slopes of L = sum(g * function(*inputs)), for any number of inputs.

    g, and a direction for each input, are drawn. The inputs walk along their directions. Backward
    says how fast L changes: the sum of gradient * direction. A central difference measures it.
    arrays: the inputs, a list of arrays of float64.

    Raises:
        AssertionError: The slopes differ.
    """
    rng = get_generator()
    inputs = [Variable(array.copy()) for array in arrays]
    directions = [np.asarray(rng.normal(size=array.shape)) for array in arrays]
    y = function(*inputs)
    g = np.asarray(rng.normal(size=y.shape))
    y.grad = g.copy()
    y.backward()
    slope = 0.0
    for x, d in zip(inputs, directions, strict=True):
        if x.grad is not None:  # no path leads to x: the gradient is a zero
            slope += np.sum(x.grad * d)
    heights = []
    for step in (eps, -eps):
        pairs = zip(arrays, directions, strict=True)
        moved = [Variable(np.asarray(array + step * d)) for array, d in pairs]
        heights.append(np.sum(g * function(*moved).array))
    measured = (heights[0] - heights[1]) / (2 * eps)
    compare("check_gradients", slope, measured, rtol, atol)


def check_double_backward(function, x_data, y_grad, x_grad_grad, eps=1e-5, rtol=1e-5, atol=1e-7):
    """Compare the gradients of the gradient of function(x) with measured ones.

    The checked function has two inputs, x and gy, and gives gx. x_grad_grad is the gradient of gx.

    Raises:
        AssertionError: The gradients differ.
    """
    x, gy = Variable(x_data.copy()), Variable(y_grad.copy())
    (gx,) = grad([function(x)], [x], [gy], enable_double_backprop=True)
    found = grad([gx], [x, gy], [Variable(x_grad_grad)])

    def f():
        return (grad([function(x)], [x], [gy])[0].array,)

    measured = numerical_grad(f, (x.array, gy.array), (x_grad_grad,), eps)
    for name, ours, theirs in zip(("x", "gy"), found, measured, strict=True):
        ours = np.zeros_like(theirs) if ours is None else ours.array  # no path: a zero
        compare(f"check_double_backward: for {name}", ours, theirs, rtol, atol)
