"""Exercise 5: gradients that meet.

backward(y) finds the gradients of all boxes that y was computed from, as y.backward() does. The
line that stores a gradient is wrong: a box that is used twice gets the contribution of one use
only. Repair this line, and do not call y.backward(). The order of the loop is right for the graphs
of this exercise; step 6 has a graph that needs another order.
"""

import numpy as np


def backward(y):
    y.grad = np.ones_like(y.array)
    waiting = [y.creator_node]
    while waiting:
        function = waiting.pop()
        if function is None:
            continue
        targets = tuple(range(len(function.inputs)))
        grad_outputs = tuple(output.grad for output in function.outputs)
        grad_inputs = function.backward(targets, grad_outputs)
        for x, gx in zip(function.inputs, grad_inputs, strict=True):
            x.grad = gx
            waiting.append(x.creator_node)
