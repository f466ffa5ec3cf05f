"""Solution 25: a subtraction that adds up its gradients."""

import tinynode as tn


class Subtract(tn.FunctionNode):
    """z = x - y, for x and y of one shape.   With g = dL/dz:   dL/dx = g   dL/dy = -g"""

    def forward(self, inputs):
        x, y = inputs
        return (x - y,)

    def backward(self, target_input_indexes, grad_outputs):
        (g,) = grad_outputs
        return g, -g

    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs):
        (g,) = grad_outputs
        results = []
        for position, old in zip(target_input_indexes, grad_inputs, strict=True):
            if position == 0:
                results.append(g if old is None else old + g)
            else:
                results.append(-g if old is None else old - g)
        return tuple(results)


def subtract(x, y):
    return Subtract().apply((x, y))[0]
