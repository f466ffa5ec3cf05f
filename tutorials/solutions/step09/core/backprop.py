"""The backward pass: from a result to the leaves."""

import heapq

import numpy as np


def backward(y):
    """Add the gradient of y to every box that y was computed from."""
    if y.grad is None:
        y.grad = np.ones_like(y.array)
    heap, seen = [], set()
    push(heap, seen, y.creator_node)
    while heap:
        function = heapq.heappop(heap)[2]
        run_backward(function)
        for x in function.inputs:
            push(heap, seen, x.creator_node)


def push(heap, seen, function):
    """Put an operation on the heap, once; the highest rank comes out first."""
    if function is not None and function not in seen:
        seen.add(function)
        heapq.heappush(heap, (-function.rank, len(seen), function))


def run_backward(function):
    """Run the backward of one operation, and add to the gradients of its inputs."""
    targets = tuple(range(len(function.inputs)))
    grad_outputs = tuple(y.grad for y in function.outputs)
    grad_inputs = function.backward(targets, grad_outputs)
    for i, (x, gx) in enumerate(zip(function.inputs, grad_inputs, strict=True)):
        if gx is None:  # labels have no gradient
            continue
        check_shape(function, i, gx)
        x.grad = gx if x.grad is None else x.grad + gx


def check_shape(function, i, gx):
    """A gradient has the shape of its input."""
    shape = function.inputs[i].shape
    if gx.shape != shape:
        raise ValueError(
            f"{type(function).__name__}.backward: input {i} has shape {shape}, "
            f"and its gradient has shape {gx.shape}"
        )
