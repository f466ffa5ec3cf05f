"""Complex numbers: the real and the imaginary part, and the conjugate.

Requirement: the gradient of a real number L with respect to x is dL/dRe(x) + i dL/dIm(x). So a
step against the gradient makes L smaller, as for real x. JAX gives the conjugate of it.

The functions take real arrays, too: a real x is its own real part and its own conjugate.
"""

from __future__ import annotations

from typing import Any

from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.variable import Variable
from tinynode.devices import COMPLEX, Arrays, kind_of, namespace_of
from tinynode.functions.data_types import astype
from tinynode.functions.operands import as_operand, input_nodes, unchanged

__all__ = ["Conj", "Imag", "Real", "conj", "imag", "real"]
__dir__ = __all__.copy  # for completion


class Real(FunctionNode):
    """y = the real part of x.   x: (s), complex -> y: (s), real.   dL/dx = dL/dy + 0 i"""

    is_elementwise = True
    complex_rule = "own"
    is_polynomial = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).real(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        return (astype(gy, input_nodes(self)[0].dtype),)


def real(x: Any) -> Variable:
    """The real part, elementwise; a real x is unchanged."""
    x = as_operand("real", "x", x)
    return Real().apply((x,))[0] if is_complex(x) else unchanged(x)


class Imag(FunctionNode):
    """y = the imaginary part of x.   x: (s) -> y: (s), real.   dL/dx = i dL/dy, 0 for a real x"""

    is_elementwise = True
    complex_rule = "own"
    is_polynomial = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        xp = namespace_of(x)
        return (xp.imag(x) if kind_of(x) == COMPLEX else xp.zeros_like(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (gy,) = grad_outputs
        unit = 1j if self.is_complex else 0.0
        return (astype(gy, input_nodes(self)[0].dtype) * unit,)


def imag(x: Any) -> Variable:
    """The imaginary part, elementwise; zeros for a real x."""
    return Imag().apply((as_operand("imag", "x", x),))[0]


class Conj(FunctionNode):
    """y = Re x - i Im x.   x: (s), complex -> y: (s), complex.   dL/dx = conj(dL/dy)"""

    is_elementwise = True
    complex_rule = "own"
    is_polynomial = True

    def forward(self, inputs: Arrays) -> Arrays:
        (x,) = inputs
        return (namespace_of(x).conj(x),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        return Conj().apply(grad_outputs)


def conj(x: Any) -> Variable:
    """The complex conjugate, elementwise; a real x is unchanged."""
    x = as_operand("conj", "x", x)
    return Conj().apply((x,))[0] if is_complex(x) else unchanged(x)


def is_complex(x: Variable) -> bool:
    """True if the dtype of a Variable is complex."""
    return kind_of(x.filled_array()) == COMPLEX
