"""Functions for drills, beside the student's work and NumPy.

The judge copies the file into the libraries of the child: NumPy and the standard library only.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any


def raised(call: Callable[[], Any], *classes: type[BaseException]) -> str:
    """The name of the error of ``call()``; "" without an error.

    An error of a given class, or of a subclass, has the name of the given class.
    """
    try:
        call()
    except Exception as error:
        for one in classes:
            if isinstance(error, one):
                return one.__name__
        return type(error).__name__
    return ""


def gradients(work: Any, function: Callable[..., Any], arrays: list[Any], gy: Any) -> list[Any]:
    """The array of ``function``, then the gradient of each input, then the inputs themselves.

    The function takes Variables. The last arrays show a change of an input.
    """
    given = [array.copy() for array in arrays]
    xs = [work.Variable(array) for array in given]
    y = function(*xs)
    result = y.array.copy()
    y.grad = gy.copy()
    y.backward()
    found = [None if x.grad is None else x.grad.copy() for x in xs]
    return [result, *found, *given]


def parameters_of(module: Any) -> list[Any]:
    """The parameters of MultiHeadAttention, Block or GPT, in an order of the drills.

    A learner may make the layers of an attention in any order.
    """
    if hasattr(module, "query"):
        parts = [module.query, module.key, module.value, module.out]
    elif hasattr(module, "attention"):
        parts = [module.norm1, module.attention, module.norm2, module.up, module.down]
    elif hasattr(module, "blocks"):
        parts = [module.tokens, module.places, *module.blocks, module.norm, module.head]
    else:
        return list(module.parameters())
    return [parameter for part in parts for parameter in parameters_of(part)]


def draw_parameters(module: Any, rng: Any) -> Any:
    """The module, with drawn numbers of deviation 0.7 in all parameters."""
    for parameter in parameters_of(module):
        parameter.array = rng.normal(size=parameter.array.shape) * 0.7
    return module


def alive(references: list[Any]) -> list[bool]:
    """For each weak reference, or function without arguments: True if the thing is there."""
    gc.collect()
    return [reference() is not None for reference in references]


class Quiet:
    """A ``with`` block without the cyclic garbage collector: memory is freed by counts alone."""

    def __enter__(self) -> None:
        gc.collect()
        gc.disable()

    def __exit__(self, *_: Any) -> None:
        gc.enable()
