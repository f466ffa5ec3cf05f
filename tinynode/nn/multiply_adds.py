"""The multiply-adds of a function: the number of products that are added up.

Requirement: a figure for the work of a layer that no machine changes. The functions that compute
products are counted exactly, by their definition. All other functions count 0: their time goes to
memory, and not to products. The bias of a layer adds to each element, and counts 0 as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tinynode.functions.convolution import Conv2d, Conv2dGradW, Conv2dGradX
from tinynode.functions.network import Linear
from tinynode.functions.products import Einsum, MatMul, MatMulOfTransposed, VecDot
from tinynode.functions.recurrent import GRUSteps, GRUStepsGrad, LSTMSteps, LSTMStepsGrad

Shape = tuple[int, ...]


def multiply_adds(function: Any, inputs: Sequence[Shape], output: Shape) -> int:
    """The multiply-adds of an application.

    Args:
        function: the FunctionNode.
        inputs: the shapes of the inputs.
        output: the shape of the first output.
    """
    count = COUNTS.get(type(function))
    return 0 if count is None else count(function, inputs, output)


def _of_matmul(function: MatMul, inputs: Sequence[Shape], output: Shape) -> int:
    """A sum over k for each element of the result."""
    return math.prod(output) * inputs[0][-1]


def _of_transposed(function: MatMulOfTransposed, inputs: Sequence[Shape], output: Shape) -> int:
    return math.prod(output) * inputs[0][0 if function.transpose_x else 1]


def _of_vecdot(function: VecDot, inputs: Sequence[Shape], output: Shape) -> int:
    return math.prod(output) * inputs[0][function.axis]


def _of_einsum(function: Einsum, inputs: Sequence[Shape], output: Shape) -> int:
    """For each combination of all labels, one product less than there are operands."""
    lengths: dict[str, int] = {}
    for labels, shape in zip(function.subscripts, inputs, strict=True):
        lengths.update(zip(labels, shape, strict=True))
    return math.prod(lengths.values()) * (len(inputs) - 1)


def _of_convolution(function: Any, inputs: Sequence[Shape], output: Shape) -> int:
    """Each element of the result is a sum over a window of the channels in a group."""
    return math.prod(output) * math.prod(inputs[1][1:])


def _of_transposed_convolution(function: Any, inputs: Sequence[Shape], output: Shape) -> int:
    """Each element of the input is multiplied by a kernel."""
    return math.prod(inputs[0]) * math.prod(inputs[1][1:])


def _of_kernel_gradient(function: Any, inputs: Sequence[Shape], output: Shape) -> int:
    """Each element of the gradient is multiplied by a window."""
    return math.prod(inputs[1]) * math.prod(output[1:])


def _of_steps(function: Any, inputs: Sequence[Shape], output: Shape) -> int:
    """At each step, the state is multiplied by the weight of all gates, the last axis of x."""
    return math.prod(inputs[0]) * output[-1]


def _of_gradient_of_steps(function: Any, inputs: Sequence[Shape], output: Shape) -> int:
    """At each step, the gradient of all gates is multiplied by the weight, and by the states."""
    return 2 * math.prod(output) * inputs[1][-1]


COUNTS: dict[type, Callable[[Any, Sequence[Shape], Shape], int]] = {
    Conv2d: _of_convolution,
    Conv2dGradW: _of_kernel_gradient,
    Conv2dGradX: _of_transposed_convolution,
    Einsum: _of_einsum,
    GRUStepsGrad: _of_gradient_of_steps,
    GRUSteps: _of_steps,
    LSTMStepsGrad: _of_gradient_of_steps,
    LSTMSteps: _of_steps,
    Linear: _of_matmul,
    MatMul: _of_matmul,
    MatMulOfTransposed: _of_transposed,
    VecDot: _of_vecdot,
}
"""The functions that compute products, each with its count."""
