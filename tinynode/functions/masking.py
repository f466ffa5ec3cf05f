"""Masks: a gradient of zero stays zero where a derivative is infinite or undefined.

A mask hides elements: ``where``, index arrays, ``take`` and writes do. The gradient of a hidden
element is exactly 0. A slice is no mask: marks would cost time in every program that takes the
last step of a sequence. A function before the mask multiplies this gradient by a derivative, and
0 * inf is NaN. So ``x * log(x)`` with ``where(x > 0, x * log(x), 0)`` would have the gradient NaN
at 0. Two rules keep the 0:

1. The derivative is infinite at a finite operand, as that of ``log`` at 0. Such a function
   multiplies by ``zero_safe_multiply``.
2. The derivative is infinite because an operand is, as in ``x * log(x)``. Such a function does not
   know of masks. The backward of a mask calls ``mark_masked``, which marks all functions before.
   If a marked function retains a number that is not finite, a hook keeps its zeros. Where the
   gradient of the output is 0, a gradient that is not finite becomes 0. In functions of rows,
   such as ``softmax``, the gradients of the whole row must be 0. In functions of matrices, those
   of the whole matrix must be 0. ``row_axes`` says which axes these are. For a class that says
   ``finite_slope = True``, an operand that is not finite counts as 0 there, before the backward.

Both rules ask for a gradient of 0 and for an infinity. The gradient alone would not do: that of
(log x)^2 / 2 is 0 at x = 1, and the second derivative is 1.

Rule 1 does not ask who made the 0. In sqrt(s)^2 at s = 0 the square makes the 0, and the gradient
is 0 in place of 1. Marks would tell; but ``relu``, ``maximum`` and slices hide elements without
marks, and their zeros would be NaN then.

The rules hold in nets too: ``net/gradient.py`` marks the operators before a mask. A function that
stands for several others hands the marks on, inwards and outwards: see ``marks_handed_on``.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tinynode.core.function_node import FunctionNode, Gradient, Gradients, Indexes
from tinynode.core.hooks import FunctionHook, is_recording_net, retained_arrays
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import (
    Array,
    Arrays,
    all_finite,
    find_device,
    is_differentiable,
    is_known_true,
    namespace_of,
    without_hidden_axes,
)
from tinynode.functions.shapes import broadcasts_to, reshape, sum_to, unbroadcast

__all__ = ["KeepZeros"]
__dir__ = __all__.copy  # for completion


class KeepZeros(FunctionNode):
    """z = y, but 0 where g = 0 and d is infinite or NaN.

    y: (s), g: (t), d: (u) -> z: (broadcast of s, t and u).
    With h = dL/dz:   dL/dy = sum_to(h, s), and 0 where replaced. None for g and d.
    """

    input_counts = (3,)
    is_elementwise = True
    complex_rule = "own"
    input_names = ("y", "g", "d")

    def forward(self, inputs: Arrays) -> Arrays:
        y, g, d = inputs
        xp = namespace_of(y)
        self.retain_inputs((1, 2))
        finite = xp.isfinite(d)
        if y.shape == g.shape and is_known_true(finite):
            return (y,)
        return (xp.where(finite | (g != 0), y, xp.zeros_like(y)),)

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradient) -> Gradients:
        (h,) = grad_outputs
        g, d = self.get_retained_inputs()
        mark_masked(self)
        gy = unbroadcast(keep_zeros(h, g, d), self, 0) if 0 in target_input_indexes else None
        return gy, None, None


def keep_zeros(y: Variable, g: Variable, d: Variable) -> Variable:
    """y, but 0 where g = 0 and d is infinite or NaN."""
    return KeepZeros().apply((y, g, d))[0]


class _MaskState(threading.local):
    """The number of masks whose backward has run in this thread."""

    def __init__(self) -> None:
        self.masks = 0


_state = _MaskState()


def mark_masked(mask: FunctionNode, always: bool = False) -> None:
    """Mark a function and all functions before: ``is_masked`` becomes True. Each is visited once.

    The backward of a mask calls ``mark_masked(self)``. ``always`` is as for ``mark``.
    """
    _state.masks += 1
    always = always or is_recording_net()
    waiting = [mask]
    while waiting:
        function = waiting.pop()
        if function.is_masked:
            continue
        mark(function, always)
        for node in function.inputs or ():
            if node.creator_node is not None:
                waiting.append(node.creator_node)


def mark(function: FunctionNode, always: bool) -> None:
    """Mark a function alone. ``always`` is for nets, in which no values are known."""
    function.is_masked = True
    numbers = [array for arrays in retained_arrays(function) for array in arrays]
    numbers = [array for array in numbers if array is not None and is_differentiable(array)]
    if always or function.infinite_slope:
        is_kept = not function.is_polynomial or function.finite_slope
    else:
        is_kept = not all(all_finite(without_hidden_axes(array)) for array in numbers)
    if is_kept:
        function.add_hook(FiniteOperands())


def _size_of_gradients(function: FunctionNode, gradients: Gradient) -> Any:
    """0 for elements of the first input that only gradients of 0 concern; None if unknown.

    (s), the shape of the input; or in functions of rows (s with 1 at the axes).
    """
    if function.is_elementwise or function.finite_slope:
        return gradients[0]
    axes = function.row_axes()
    if axes is None or not function.inputs:
        return None
    size: Any = None
    shape = tuple(1 if i in axes else n for i, n in enumerate(function.inputs[0].shape))
    stack = tuple(function.inputs[0].shape[: min(axes, default=0)])
    for gradient in gradients:
        if gradient is None:
            continue
        part = abs(gradient)
        if len(part.shape) == len(shape):
            part = sum_to(part, shape)
        elif part.shape[: len(stack)] == stack:  # such as the singular values of matrices
            part = sum_to(part, (*stack, *(1,) * (len(part.shape) - len(stack))))
        if math.prod(part.shape) != math.prod(shape):
            return None
        part = reshape(part, shape)
        size = part if size is None else size + part
    return size


def _beside(size: Variable, gx: Variable) -> Variable | None:
    """The sizes in a shape that broadcasts to a gradient's, such as one of each row; or None."""
    if broadcasts_to(size.shape, gx.shape):
        return size
    return reshape(size, gx.shape) if math.prod(size.shape) == math.prod(gx.shape) else None


class FiniteOperands(FunctionHook):
    """A hook of a function before a mask: in backward, retained values keep zeros of the gradient.

    A retained value that is not finite is 0 where the gradient is 0.
    """

    name = "FiniteOperands"

    def __init__(self) -> None:
        self._running = threading.local()  # several threads may walk one graph

    def added(self, function: Any) -> None:
        self._function = function
        self._before, self._backward = function.for_backward, function.backward
        function.backward = self._kept_gradients
        if function.finite_slope:
            function.for_backward = self._as_variables

    def backward_preprocess(
        self,
        function: Any,
        in_data: tuple[Array | None, ...],
        out_grad: tuple[Array | None, ...],
    ) -> None:
        own = function.output_device or function.inputs[0].device
        gradient = out_grad[0]
        device = own if own.owns(gradient) else find_device(gradient) or own  # in vmap: another
        self._running.gradient = wrap_array(gradient, device, False)

    def backward_postprocess(
        self,
        function: Any,
        in_data: tuple[Array | None, ...],
        out_grad: tuple[Array | None, ...],
    ) -> None:
        self._running.gradient = None

    def failed(self, function: Any, direction: str, error: BaseException) -> None:
        self._running.gradient = None

    def _kept_gradients(
        self, target_input_indexes: Indexes, grad_outputs: Gradient
    ) -> Sequence[Variable | None]:
        """The gradients, but 0 where they are not finite and none of the outputs' counts."""
        results = self._backward(target_input_indexes, grad_outputs)
        size = _size_of_gradients(self._function, grad_outputs)
        if size is None:
            return results  # type: ignore[no-any-return]
        kept = []
        for gx in results:
            sizes = None if gx is None else _beside(size, gx)
            kept.append(gx if sizes is None else keep_zeros(gx, sizes, gx))
        return tuple(kept)

    def _as_variables(self, retained: Sequence[Variable]) -> tuple[Variable, ...]:
        """The retained Variables, with zeros; unchanged outside of a backward."""
        gradient = getattr(self._running, "gradient", None)
        if gradient is None:
            return self._before(retained)  # type: ignore[no-any-return]
        kept = [
            x if x is None or not is_differentiable(x.raw) else keep_zeros(x, gradient, x)
            for x in retained
        ]
        return self._before(kept)  # type: ignore[no-any-return]


@contextmanager
def marks_handed_on(
    function: FunctionNode, outputs: Sequence[Variable], always: bool = False
) -> Iterator[None]:
    """For the backward of a function that stands for others, which have computed ``outputs``.

    Before a mask, the others are marked. If a mask is among the others, all functions before are.
    """
    if function.is_masked:
        for y in outputs:
            if y.creator_node is not None:
                mark_masked(y.creator_node, always)
    before = _state.masks
    yield
    if _state.masks > before:
        mark_masked(function)
