"""Connectionist temporal classification: the loss of a label sequence without an alignment.

The sum over all alignments is the forward recursion of Graves et al., in logarithms. Each step is
made of functions of this package, so the loss can be differentiated to any order. The states are
the labels with a blank before, between and after them: 2 S + 1 for S labels.
"""

from __future__ import annotations

import math
from typing import Any, Never

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.devices import Array, Arrays, any_true, is_integer, namespace_of
from tinynode.errors import OperandError, describe, unknown_keywords
from tinynode.functions.arithmetic import negative
from tinynode.functions.attributes import Length
from tinynode.functions.checked import checked_length
from tinynode.functions.comparison import less
from tinynode.functions.data_types import narrowed, widened
from tinynode.functions.indexing import TakeAlongAxis
from tinynode.functions.loss import check_reduction, signed_labels
from tinynode.functions.manipulation import concat, stack, unstack
from tinynode.functions.operands import as_floating, as_integer, as_operand
from tinynode.functions.searching import where
from tinynode.functions.shapes import broadcast_to, expand_dims
from tinynode.functions.statistical import logsumexp, mean, sum

__all__ = ["CTCStates", "ctc_loss"]
__dir__ = __all__.copy  # for completion

IMPOSSIBLE = -1e30
"""The logarithm of a probability of 0: finite, so that no gradient is NaN."""


class CTCStates(FunctionNode):
    """The states of the recursion, from labels and lengths; no gradient.

    labels: (n, S), input lengths: (n), label lengths: (n), all integer -> states: (n, 2 S + 1),
    the class of each state; may_skip: (n, 2 S + 1), bool, True if the state may follow the state
    two before; runs: (time, n), bool, True before the end of the sequence; ends: (n, 2), the last
    two states; has_end: (n, 2), bool; counts: (n), the label lengths.
    """

    input_counts = (3,)
    output_counts = (6,)

    def __init__(self, time: Length, classes: Length, blank: Length) -> None:
        self.time = checked_length(self, "time", time)
        self.classes = checked_length(self, "classes", classes)
        self.blank = checked_length(self, "blank", blank)

    def forward(self, inputs: Arrays) -> Arrays:
        labels, steps, counts = inputs
        xp = namespace_of(labels)
        n, width = labels.shape
        self._check(labels, steps, counts)
        wide = xp.full((n, width, 2), self.blank, dtype=labels.dtype, device=labels.device)
        used = xp.arange(width, dtype=counts.dtype, device=labels.device) < counts[:, None]
        chosen = xp.where(used, labels, wide[:, :, 0])
        pairs = xp.stack((wide[:, :, 0], chosen), axis=2)
        end = xp.full((n, 1), self.blank, dtype=labels.dtype, device=labels.device)
        states = xp.concat((xp.reshape(pairs, (n, 2 * width)), end), axis=1)
        may_skip = xp.zeros((n, min(2, 2 * width + 1)), dtype=xp.bool, device=labels.device)
        if width:
            skips = (states[:, 2:] != states[:, :-2]) & (states[:, 2:] != self.blank)
            may_skip = xp.concat((may_skip, skips), axis=1)
        times = xp.arange(self.time, dtype=steps.dtype, device=labels.device)
        runs = times[:, None] < steps[None, :]
        before = xp.where(counts > 0, 2 * counts - 1, xp.zeros_like(counts))
        ends = xp.stack((2 * counts, before), axis=1)
        has_end = xp.stack((counts >= 0, counts > 0), axis=1)
        return states, may_skip, runs, ends, has_end, counts

    def _check(self, labels: Array, steps: Array, counts: Array) -> None:
        xp = namespace_of(labels)
        if not math.prod(steps.shape):
            return
        if any_true((steps < 0) | (steps > self.time)):
            raise ValueError(f"ctc_loss: an input length is not in 0 to {self.time}.")
        if any_true((counts < 0) | (counts > labels.shape[1])):
            raise ValueError(f"ctc_loss: a label length is not in 0 to {labels.shape[1]}.")
        used = xp.arange(labels.shape[1], dtype=counts.dtype, device=labels.device)
        wrong = (labels < 0) | (labels >= self.classes) | (labels == self.blank)
        if any_true(wrong & (used < counts[:, None])):
            raise ValueError(
                f"ctc_loss: a label is not in 0 to {self.classes - 1}, or is blank={self.blank}."
            )


def ctc_loss(
    log_p: Any,
    labels: Any,
    input_lengths: Any = None,
    label_lengths: Any = None,
    blank: int = 0,
    reduction: str = "mean",
    **unknown: Never,
) -> Variable:
    """-ln of the probability of a label sequence, summed over all alignments with blanks.

    An impossible sequence has the loss inf and the gradient 0.

    Args:
        log_p: logarithms of probabilities, (time, n, classes), as from ``log_softmax``.
        labels: (n, S), integers; the entries behind a label length do not count.
        input_lengths: (n), the steps of each sequence; None takes all.
        label_lengths: (n), the labels of each sequence; None takes all.
        blank: the class of the blank.
        reduction: "mean" over the batch of the losses, each divided by its label length (1 at
            least), as in PyTorch; "sum"; or "none": (n).

    Source: Graves et al., Connectionist Temporal Classification, 2006.

    Raises:
        OperandError: log_p is not floating, or labels or lengths are not integers.
        ValueError: the shapes do not fit together, a label or length is out of range, or the
            reduction is unknown.
    """
    if unknown:
        raise unknown_keywords("ctc_loss", unknown)
    log_p = as_floating("ctc_loss", "log_p", log_p, labels)
    check_reduction("ctc_loss", reduction)
    if log_p.ndim != 3 or 0 in log_p.shape:
        raise ValueError(
            f"ctc_loss: log_p must be (time, n, classes), none of them 0; got shape {log_p.shape}."
        )
    time, n, classes = log_p.shape
    if not 0 <= as_integer("ctc_loss", "blank", blank) < classes:
        raise ValueError(f"ctc_loss: blank must lie in 0 to {classes - 1}, got {blank}.")
    labels = _integers("labels", labels, log_p)
    if labels.ndim != 2 or labels.shape[0] != n:
        raise ValueError(f"ctc_loss: labels must be ({n}, S), their shape is {labels.shape}.")
    steps = _lengths("input_lengths", input_lengths, time, log_p)
    counts = _lengths("label_lengths", label_lengths, labels.shape[1], log_p)
    found = CTCStates(time, classes, int(blank)).apply((labels, steps, counts))
    losses = _losses(widened(log_p), *found[:5])
    if reduction == "mean":
        divisors = where(less(found[5], 1), 1, found[5])
        losses = mean(losses / divisors.astype(losses.dtype))
    elif reduction == "sum":
        losses = sum(losses)
    return narrowed(losses, log_p)


def _integers(argument: str, value: Any, log_p: Variable) -> Variable:
    variable = as_operand("ctc_loss", argument, value, log_p)
    if not is_integer(variable.raw):
        raise OperandError(f"ctc_loss: {argument} must be integers, got {describe(value)}.")
    return signed_labels(variable)


def _lengths(argument: str, value: Any, longest: int, log_p: Variable) -> Variable:
    """Lengths as an integer Variable, (n); None stands for the longest."""
    n, xp = log_p.shape[1], log_p.xp
    if value is None:
        value = xp.full((n,), longest, dtype=xp.int64, device=log_p.raw.device)
    lengths = _integers(argument, value, log_p)
    if lengths.shape != (n,):
        raise ValueError(f"ctc_loss: {argument} must be ({n}), the shape is {lengths.shape}.")
    return lengths


def _losses(
    log_p: Variable,
    states: Variable,
    may_skip: Variable,
    runs: Variable,
    ends: Variable,
    has_end: Variable,
) -> Variable:
    """The loss of each sequence, (n): the forward recursion over the time."""
    time, n, _ = log_p.shape
    width = states.shape[1]
    chosen = broadcast_to(expand_dims(states, 0), (time, n, width))
    emitted = unstack(TakeAlongAxis(2).apply((log_p, chosen))[0])
    goes_on = unstack(expand_dims(runs, -1))
    xp, device = log_p.xp, log_p.raw.device
    never = as_operand(
        "ctc_loss", "start", xp.full((n, 2), IMPOSSIBLE, dtype=log_p.dtype, device=device), log_p
    )
    empty = broadcast_to(never[:, :1], (n, width))
    numbers = xp.arange(width, device=device)
    alpha = where(numbers < 2, 0.0, empty) + emitted[0]
    alpha = where(goes_on[0], alpha, where(numbers < 1, 0.0, empty))
    for t in range(1, time):
        padded = concat([never, alpha], axis=1)
        skipped = where(may_skip, padded[:, :-2], IMPOSSIBLE)
        moved = logsumexp(stack([alpha, padded[:, 1:-1], skipped]), axis=0) + emitted[t]
        alpha = where(goes_on[t], moved, alpha)
    last = where(has_end, TakeAlongAxis(1).apply((alpha, ends))[0], IMPOSSIBLE)
    total = logsumexp(last, axis=1)
    return where(less(total, 0.5 * IMPOSSIBLE), math.inf, negative(total))
