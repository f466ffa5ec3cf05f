"""What the functions of matrices share: a type check, small shapes, the words of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Array
from tinynode.errors import dtype_name
from tinynode.functions.linear import matrix_transpose
from tinynode.functions.rearranging import expand_dims
from tinynode.type_check import expect, is_floating

if TYPE_CHECKING:
    from tinynode.type_check import TypeInfoTuple


class SquareMatrixNode(FunctionNode):
    """Base of functions of one square, floating matrix."""

    input_names = ("x",)
    type_hint = "the last two axes must have one length; cast integers to a floating dtype."

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        x = in_types[0]
        expect(is_floating(x), x.ndim >= 2)
        expect(x.shape[-1] == x.shape[-2])


def named_call(function: str, routine: Callable[..., Any], *matrices: Array, cure: str) -> Any:
    """What a routine of the array library gives; its LinAlgError names function and shapes.

    Raises:
        ValueError: the library refuses the matrices (``numpy.linalg.LinAlgError``).
    """
    try:
        return routine(*matrices)
    except numpy.linalg.LinAlgError as error:
        shapes = " and ".join(str(tuple(matrix.shape)) for matrix in matrices)
        raise numpy.linalg.LinAlgError(
            f"{function}: {error} for an argument of shape {shapes}, "
            f"{dtype_name(matrices[0].dtype)}. {cure}"
        ) from None


FINITE = "Look for NaN and infinities in it."
SINGULAR = "A matrix is singular: adding a small multiple of the identity makes it regular."


def eye_beside(like: Variable) -> Variable:
    """The identity matrix as long as the last axis of ``like``, outside the graph."""
    array = like.raw
    eye = like.xp.eye(array.shape[-1], dtype=array.dtype, device=array.device)
    return wrap_array(eye, like.device, False)


def symmetric(x: Variable) -> Variable:
    return (x + matrix_transpose(x)) * 0.5


def column(x: Variable) -> Variable:
    return expand_dims(x, -1)


def row(x: Variable) -> Variable:
    return expand_dims(x, -2)
