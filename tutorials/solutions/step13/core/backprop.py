"""The backward pass: from a result to the leaves."""

import heapq

import numpy as np


def backward(y):
    """Add the gradient of y to every leaf that y was computed from."""
    check_start(y)
    gradients = {y.node: np.ones_like(y.array) if y.grad is None else y.grad}
    y.grad = None  # used up
    heap, seen = [], set()
    push(heap, seen, y.creator_node)
    while heap:
        function = heapq.heappop(heap)[2]
        run_backward(function, gradients)
        for node in function.inputs:
            push(heap, seen, node.creator_node)
    write_to_leaves(gradients)


def check_start(y):
    """backward starts at a computed number, or at a computed array with a gradient in y.grad."""
    if y.creator_node is None:
        raise ValueError("y.backward(): no recorded operation has computed y")
    if y.grad is None and y.array.size != 1:
        raise ValueError(f"y.backward(): y has shape {y.array.shape}; set y.grad first")


def push(heap, seen, function):
    """Put an operation on the heap, once; the highest rank comes out first."""
    if function is not None and function not in seen:
        seen.add(function)
        heapq.heappush(heap, (-function.rank, len(seen), function))


def run_backward(function, gradients):
    """Run the backward of one operation, and add to the table of gradients by node."""
    targets = tuple(i for i, node in enumerate(function.inputs) if node.requires_grad)
    grad_outputs = tuple(gradients.pop(output(), None) for output in function.outputs)
    grad_inputs = function.backward(targets, grad_outputs)
    for i in targets:
        node, gx = function.inputs[i], grad_inputs[i]
        check_shape(function, i, gx)
        gradients[node] = gx if node not in gradients else gradients[node] + gx


def check_shape(function, i, gx):
    """A gradient has the shape of its input."""
    shape = function.inputs[i].shape
    if gx.shape != shape:
        raise ValueError(
            f"{type(function).__name__}.backward: input {i} has shape {shape}, "
            f"and its gradient has shape {gx.shape}"
        )


def write_to_leaves(gradients):
    """Add what is left in the table to the gradients of the leaves."""
    for node, gx in gradients.items():
        x = node.get_variable_or_none()
        if x is not None:
            x.grad = gx if x.grad is None else x.grad + gx
