"""The dtype rule of layers: every input takes the dtype of the parameters.

Requirement: one program runs with parameters of any dtype, and the kind of the input does not
matter. The rule for an input that meets parameters:

| input | result |
|---|---|
| a Python number, a list, a tuple | an array of the parameters' dtype, on the parameters' device |
| an array | cast to the parameters' dtype |
| a Variable | cast by ``astype``; the gradient has the dtype of the Variable |

Functions of two Variables with different dtypes promote; ``docs/dtypes.md`` has the whole rule.
"""

from __future__ import annotations

from typing import Any

from tinynode import functions
from tinynode.core.conversion import asarray
from tinynode.core.variable import Variable


def as_input(x: Any, parameter: Variable) -> Any:
    """x, as the input of a layer with the parameter; arrays are cast by the functions."""
    if isinstance(x, Variable):
        if x.raw is None or x.device is not parameter.device or x.raw.dtype == parameter.raw.dtype:
            return x
        return functions.astype(x, parameter.dtype)
    if isinstance(x, list | tuple | bool | int | float):
        return asarray(x, parameter.dtype, parameter.device, requires_grad=False)
    return x
