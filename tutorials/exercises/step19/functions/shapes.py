"""The same numbers in another shape.

Step 19: PermuteDims is yours. Where is axis i of x in y? At the position of i in axes.
"""

from mynode.core.function_node import FunctionNode


class PermuteDims(FunctionNode):
    """y = x with its axes in another order: axis i of y is axis axes[i] of x.

    gx = gy, with the axes back in their order.
    """

    def __init__(self, axes):
        self.axes = axes

    def forward(self, inputs):
        raise NotImplementedError("step 19: PermuteDims.forward")

    def backward(self, target_input_indexes, grad_outputs):
        raise NotImplementedError("step 19: PermuteDims.backward")


def permute_dims(x, axes):
    """x with its axes in another order: the shape (2, 3, 4) and (0, 2, 1) give (2, 4, 3)."""
    axes = tuple(i + x.ndim if i < 0 else i for i in axes)
    return PermuteDims(axes).apply((x,))[0]
