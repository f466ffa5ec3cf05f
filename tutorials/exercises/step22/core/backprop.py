"""The backward pass: from a result to the leaves.

Step 22: sweep, as_variable and check_path are given. Write the rest of grad. backward gets the
option enable_double_backprop, and calls sweep; run_backward calls check_path, and leaves out what
no path leads to; write_to_leaves writes grad_var too.
"""

import heapq

import mynode
import numpy as np


def grad(outputs, inputs, grad_outputs=None, *, enable_double_backprop=False):
    """The gradients of outputs with respect to leaves, as Variables; no grad is written.

    None stands for a leaf to which no path leads from the outputs: the gradient is zero.
    """
    for x in inputs:
        if x.creator_node is not None:
            raise ValueError("grad: an input was computed by an operation; inputs are leaves")
    gradients = {}
    raise NotImplementedError(f"step 22: fill {gradients}, call sweep, take what the leaves have")


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


def check_path(function, i, gx):
    """A gradient to be differentiated again is a Variable: an array would cut the graph."""
    if function.gives_variables and not isinstance(gx, mynode.Variable):
        raise TypeError(
            f"{type(function).__name__}.backward: the gradient of input {i} is an array, so no "
            "path leads back; compute with Variables"
        )
