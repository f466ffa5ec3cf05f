"""Kernel: how the fast path computes a class of FunctionNode, in eager code and in plans.

Requirement: a kernel is declared once, in ``table``. The entry says the number of scratch arrays,
the arrays retained for backward, the dtypes and the least size. Eager code calls ``run``. A plan
calls an ``Elementwise`` or ``Rowwise`` kernel on memory of the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from tinynode.devices import Arrays, Fallback
from tinynode_fast.blocks import run_flat
from tinynode_fast.limits import LIMITS

FLOATS = frozenset({numpy.dtype(numpy.float32), numpy.dtype(numpy.float64)})
SINGLES = frozenset({numpy.dtype(numpy.float32)})


@dataclass(frozen=True)
class Kernel:
    """A kernel on whole arrays.

    Attributes:
        function: ``function(node, *inputs)`` returns the outputs, ``Fallback``, or None where the
            portable forward is as quick. In subclasses it is a block function, see ``blocks``.
        scratch: the number of scratch arrays of a block function.
        inputs, outputs: the positions of the arrays retained for backward.
        dtypes: the dtypes of the first input; None for all.
        least: the number of elements of the first input from which the kernel pays.
    """

    function: Callable[..., Any]
    scratch: int = 0
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    dtypes: frozenset[Any] | None = FLOATS
    least: int = 0

    @property
    def name(self) -> str:
        """The name in ``tinynode.show.fallbacks()``."""
        return self.function.__name__

    def run(self, node: Any, arrays: Arrays) -> Any:
        """The outputs, or ``Fallback`` or None as from ``function``."""
        if self.dtypes is not None and arrays[0].dtype not in self.dtypes:
            return Fallback(f"{arrays[0].dtype} has no kernel")
        if any(not x.size for x in arrays):
            return Fallback("no elements")
        outputs = self.compute(node, arrays)
        if type(outputs) is tuple:
            node.retain_inputs(self.inputs)
            node.retain_outputs(self.outputs)
        return outputs

    def compute(self, node: Any, arrays: Arrays) -> Any:
        """The outputs in new arrays, or ``Fallback`` or None."""
        return self.function(node, *arrays)


@dataclass(frozen=True)
class Elementwise(Kernel):
    """A block function on arrays of one shape and dtype, with one output.

    ``least`` holds for eager code. A plan saves the call of a FunctionNode, so uses the kernel
    for arrays of any size.
    """

    least: int = LIMITS.in_cache

    def compute(self, node: Any, arrays: Arrays) -> Any:
        if len({(x.shape, x.dtype) for x in arrays}) > 1:
            return Fallback("the inputs differ in shape or dtype")
        return (run_flat(self.function, arrays, self.scratch),)

    def __call__(self, *arrays: Any) -> None:
        """Read all arrays but the last, and write to the last."""
        out = arrays[-1]
        spare = tuple([numpy.empty_like(out) for _ in range(self.scratch)])
        self.function(arrays[:-1], (out,), spare)
