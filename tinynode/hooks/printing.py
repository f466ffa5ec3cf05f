"""PrintHook: the functions in the order of their calls, with the arrays.

Requirement: a reader sees define-by-run happen. Before each function, the hook prints the label,
and the shape, the dtype and a few values of each input.
"""

from __future__ import annotations

import sys
from typing import Any, TextIO

import numpy

from tinynode.core.function_node import FunctionNode
from tinynode.core.hooks import FunctionHook
from tinynode.devices import Array, Arrays, to_host
from tinynode.errors import dtype_name


class PrintHook(FunctionHook):
    """Prints each function before forward and before backward.

    In backward, ``(removed)`` stands for an input that the function did not retain, and
    ``(none)`` for an output without a gradient.

    Args:
        sep: the text between the parts of a line.
        end: the text at the end of a line.
        file: the text stream to print to; standard output by default.
        flush: True to flush after each line.
    """

    name = "PrintHook"

    def __init__(
        self,
        sep: str = "\t",
        end: str = "\n",
        file: TextIO | None = None,
        flush: bool = True,
    ) -> None:
        self.sep = sep
        self.end = end
        self.file = file
        self.flush = flush

    def forward_preprocess(self, function: FunctionNode, in_data: Arrays) -> None:
        self._print("function", function.label)
        self._print_arrays("input data", in_data, "(removed)")

    def backward_preprocess(
        self,
        function: FunctionNode,
        in_data: tuple[Array | None, ...],
        out_grad: tuple[Array | None, ...],
    ) -> None:
        self._print("function", function.label)
        self._print_arrays("input data", in_data, "(removed)")
        self._print_arrays("output gradient", out_grad, "(none)")

    def _print_arrays(self, title: str, arrays: tuple[Array | None, ...], missing: str) -> None:
        self._print(title)
        for array in arrays:
            if array is None:
                self._print(missing)
            else:
                dtype = dtype_name(array.dtype)
                self._print(tuple(array.shape), dtype, _short_values(array))

    def _print(self, *parts: Any) -> None:
        file = self.file or sys.stdout
        print(*parts, sep=self.sep, end=self.end, file=file, flush=self.flush)


def _short_values(array: Array) -> str:
    """The values on one line of at most 70 characters; of a long axis, the first and last two."""
    text = numpy.array2string(
        to_host(array), precision=4, separator=", ", threshold=8, edgeitems=2
    )
    line = " ".join(text.split()).replace("[ ", "[")
    return line if len(line) <= 70 else line[:67] + "..."
