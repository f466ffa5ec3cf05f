"""The backward pass: from a result to the leaves."""

import heapq

import mynode
import numpy as np
from mynode import hooks


def backward(y, enable_double_backprop=False):
    """Add the gradient of y to every leaf that y was computed from.

    With enable_double_backprop, the leaves get their gradients as Variables too, in grad_var.
    """
    check_start(y)
    seed = np.ones_like(y.array) if y.grad is None else y.grad
    y.grad = None  # used up
    gradients = {y.node: as_variable(seed) if enable_double_backprop else seed}
    sweep([y], gradients, enable_double_backprop)
    write_to_leaves(gradients)


def check_start(y):
    """backward starts at a computed number, or at a computed array with a gradient in y.grad."""
    if y.creator_node is None:
        raise ValueError("y.backward(): no recorded operation has computed y")
    if y.grad is None and y.array.size != 1:
        raise ValueError(f"y.backward(): y has shape {y.array.shape}; set y.grad first")


def grad(outputs, inputs, grad_outputs=None, *, enable_double_backprop=False):
    """The gradients of outputs with respect to leaves, as Variables; no grad is written.

    None stands for a leaf to which no path leads from the outputs: the gradient is zero.
    """
    for x in inputs:
        if x.creator_node is not None:
            raise ValueError("grad: an input was computed by an operation; inputs are leaves")
    gradients = {}
    for i, y in enumerate(outputs):
        gy = np.ones_like(y.array) if grad_outputs is None else grad_outputs[i]
        gy = as_variable(gy) if enable_double_backprop else as_variable(gy).array
        gradients[y.node] = gy if y.node not in gradients else gradients[y.node] + gy
    sweep(outputs, gradients, enable_double_backprop)
    found = [gradients.get(x.node) for x in inputs]
    return [None if gx is None else as_variable(gx) for gx in found]


def as_variable(g):
    """An array as a Variable that wants no gradient; a Variable as it is."""
    return g if isinstance(g, mynode.Variable) else mynode.Variable(g, requires_grad=False)


def sweep(outputs, gradients, double):
    """Run backward of all operations behind the outputs, by falling rank."""
    heap, seen = [], set()
    for y in outputs:
        push(heap, seen, y.creator_node)
    while heap:
        function = heapq.heappop(heap)[2]
        function.gives_variables = double
        run_backward(function, gradients)
        for node in function.inputs:
            push(heap, seen, node.creator_node)


def push(heap, seen, function):
    """Put an operation on the heap, once; the highest rank comes out first."""
    if function is not None and function not in seen:
        seen.add(function)
        heapq.heappush(heap, (-function.rank, len(seen), function))


def run_backward(function, gradients):
    """Run the backward of one operation, and add to the table of gradients by node."""
    targets = tuple(i for i, node in enumerate(function.inputs) if node.requires_grad)
    grad_outputs = tuple(gradients.pop(output(), None) for output in function.outputs)
    if all(gy is None for gy in grad_outputs):
        return  # no path leads here from the outputs
    sums = []
    for i in targets:
        sums.append(gradients.pop(function.inputs[i], None))  # an input that comes twice: once
    for hook in hooks.active:
        hook.backward_preprocess(function, function._input_arrays, grad_outputs)
    results = function.backward_accumulate(targets, grad_outputs, tuple(sums))
    for hook in hooks.active:
        hook.after_backward(function, targets, grad_outputs, results)
    for i, gx in zip(targets, results, strict=True):
        node = function.inputs[i]
        if gx is None:  # no path leads to this input
            continue
        check_shape(function, i, gx)
        check_path(function, i, gx)
        gradients[node] = gx if node not in gradients else gradients[node] + gx


def check_shape(function, i, gx):
    """A gradient has the shape of its input."""
    shape = function.inputs[i].shape
    if gx.shape != shape:
        raise ValueError(
            f"{type(function).__name__}.backward: input {i} has shape {shape}, "
            f"and its gradient has shape {gx.shape}"
        )


def check_path(function, i, gx):
    """A gradient to be differentiated again is a Variable: an array would cut the graph."""
    if function.gives_variables and not isinstance(gx, mynode.Variable):
        raise TypeError(
            f"{type(function).__name__}.backward: the gradient of input {i} is an array, so no "
            "path leads back; compute with Variables"
        )


def write_to_leaves(gradients):
    """Add what is left in the table to the gradients of the leaves."""
    for node, gx in gradients.items():
        x = node.get_variable_or_none()
        if x is None:
            continue
        if isinstance(gx, mynode.Variable):
            x.grad_var = gx if x.grad is None else gx + x.grad
            x.grad = x.grad_var.array
        else:
            x.grad = gx if x.grad is None else x.grad + gx
