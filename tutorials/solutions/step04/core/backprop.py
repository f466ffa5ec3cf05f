"""The backward pass: from a result to the leaves."""

import numpy as np


def backward(y):
    """Write the gradient of y into every box that y was computed from."""
    if y.grad is None:
        y.grad = np.ones_like(y.array)
    waiting = [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function is None:  # a leaf has no creator
            continue
        run_backward(function)
        waiting += [x.creator_node for x in function.inputs]


def run_backward(function):
    """Run the backward of one operation, and write the gradients of its inputs."""
    targets = tuple(range(len(function.inputs)))
    grad_outputs = tuple(y.grad for y in function.outputs)
    grad_inputs = function.backward(targets, grad_outputs)
    for x, gx in zip(function.inputs, grad_inputs, strict=True):
        x.grad = gx
