"""What the layers of a network compute."""

from mynode.core.function_node import FunctionNode
from mynode.functions.arithmetic import as_operands


class Linear(FunctionNode):
    """y = x W^T + b.   With the rows of gy:   gx = gy W, gW = gy^T x, gb = the sum of the rows

    x: (..., in), W: (out, in), b: (out) -> y: (..., out)
    """

    def forward(self, inputs):
        x, w = inputs[:2]
        self.retain_inputs((0, 1))
        y = x @ w.T
        return (y if len(inputs) == 2 else y + inputs[2],)

    def backward(self, target_input_indexes, grad_outputs):
        (gy,) = grad_outputs
        x, w = self.get_retained_inputs()
        rows = gy.reshape(-1, w.shape[0])
        gx = gy @ w if 0 in target_input_indexes else None
        gw = rows.T @ x.reshape(-1, w.shape[1]) if 1 in target_input_indexes else None
        gb = rows.sum(axis=0)
        return (gx, gw, gb)[: len(self.inputs)]


def linear(x, w, b=None):
    """x W^T + b."""
    x, w = as_operands(x, w)
    return Linear().apply((x, w) if b is None else (x, w, b))[0]
