"""The steps of recurrent layers, and the mask of sequences of several lengths.

``rnn_step``, ``lstm_step`` and ``gru_step`` are the equations, in differentiable functions.
``all_steps`` runs a step for a whole sequence. Nets, and gradients of gradients, use this form.

Requirement: an eager step costs few calls of NumPy. So ``LSTMSteps`` and ``GRUSteps`` run all
steps in one function. Along the steps, their backward is linear: the factors of all steps are
computed at once, before the loop. The gradient of the weight is one product after the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from tinynode.configuration import config, force_backprop_mode
from tinynode.core.backprop import grad
from tinynode.core.function_node import FunctionNode, Gradients, Indexes
from tinynode.core.hooks import is_recording_net
from tinynode.core.variable import Variable
from tinynode.devices import (
    Array,
    Arrays,
    any_true,
    is_integer,
    namespace_of,
    put,
    put_product,
    sum_array,
)
from tinynode.devices.products import matrix_product
from tinynode.errors import OperandError, describe
from tinynode.functions.activation import relu
from tinynode.functions.attributes import Axes, Count, Length
from tinynode.functions.checked import checked, checked_flag, checked_length
from tinynode.functions.data_types import identity
from tinynode.functions.indexing import index_list
from tinynode.functions.logistic import sigmoid
from tinynode.functions.manipulation import split, stack, unstack
from tinynode.functions.network import linear
from tinynode.functions.operands import as_operand
from tinynode.functions.searching import where
from tinynode.functions.trigonometric import tanh
from tinynode.type_check import TypeInfoTuple, expect


class StepMask(FunctionNode):
    """m[t, j] = (t < lengths[j]): True for the steps inside of sequence j.

    lengths: (n), integers from 0 to ``steps`` -> m: (steps, n), bool. No gradient.

    Raises:
        ValueError: a length is out of range.
    """

    def __init__(self, layer: str, steps: Length) -> None:
        self.layer = checked(self, "layer", layer)
        self.steps = checked_length(self, "steps", steps)

    def forward(self, inputs: Arrays) -> Arrays:
        (lengths,) = inputs
        xp = namespace_of(lengths)
        if lengths.shape[0] and any_true((lengths < 0) | (lengths > self.steps)):
            low, high = int(xp.min(lengths)), int(xp.max(lengths))
            if low < 0 or high > self.steps:
                raise ValueError(
                    f"{self.layer}: lengths run from {low} to {high}; x has {self.steps} steps."
                )
        steps = xp.arange(self.steps, dtype=lengths.dtype, device=lengths.device)
        return (xp.less(steps[:, None], lengths[None, :]),)


def step_mask(layer: str, lengths: Any, x: Variable, steps: int, batch: int) -> Variable:
    """The mask (steps, batch) of the lengths, on the device of x.

    Raises:
        OperandError: the lengths are not integers.
        ValueError: there is not one length for each sequence, or a length is out of range.
    """
    if isinstance(lengths, list | tuple):
        lengths = index_list(layer, "lengths", lengths, x)
    given = as_operand(layer, "lengths", lengths, x)
    if not is_integer(given.raw):
        raise OperandError(f"{layer}: lengths must be integers, got {describe(lengths)}.")
    if given.shape != (batch,):
        raise ValueError(
            f"{layer}: lengths must have shape ({batch},), a length for each sequence of x, got "
            f"{given.shape}."
        )
    return StepMask(layer, steps).apply((given,))[0]


# --- the equations, in differentiable functions --------------------------------------------------

States = tuple[Variable, ...]
"""(h,), or (h, c) of an LSTM."""

Step = Callable[[Variable, States, Variable, Variable | None], States]
"""A step: the input's part, the states, the weight and the bias of the state -> new states."""


def rnn_step(x: Variable, states: States, w: Variable, b: Variable | None) -> States:
    """(h',): h' = tanh(x + w h + b); x is the input's part: (n, hidden)."""
    return (tanh(x + linear(states[0], w, b)),)


def relu_step(x: Variable, states: States, w: Variable, b: Variable | None) -> States:
    """(h',): h' = relu(x + w h + b); x is the input's part: (n, hidden)."""
    return (relu(x + linear(states[0], w, b)),)


def lstm_step(x: Variable, states: States, w: Variable, b: Variable | None) -> States:
    """(h', c') of an LSTM; x is the input's part of the four gates: (n, 4 hidden)."""
    h, c = states
    i, f, g, o = split(x + linear(h, w, b), 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(c), c


def gru_step(x: Variable, states: States, w: Variable, b: Variable | None) -> States:
    """(h',) of a GRU; x is the input's part of the three gates: (n, 3 hidden)."""
    (h,) = states
    cut = [2 * w.shape[1]]
    x_rz, x_n = split(x, cut, axis=-1)
    h_rz, h_n = split(linear(h, w, b), cut, axis=-1)
    r, z = split(sigmoid(x_rz + h_rz), 2, axis=-1)
    n = tanh(x_n + r * h_n)
    return (n + z * (h - n),)


def all_steps(
    step: Step,
    inputs: tuple[Variable, ...],
    states: States,
    weights: tuple[Variable, Variable | None],
    reverse: bool,
    masks: tuple[Variable, ...] | None = None,
) -> list[States]:
    """The states after each step, in the order of the inputs.

    Args:
        step: the equations of a step.
        inputs: the input's part of each step.
        states: the states at the start.
        weights: the weight and the bias of the state.
        reverse: True to begin with the last step.
        masks: for each step, True inside of a sequence. Outside, the states do not change.
    """
    found: list[States] = []
    order = range(len(inputs))
    for t in reversed(order) if reverse else order:
        new = step(inputs[t], states, *weights)
        if masks is not None:
            both = zip(new, states, strict=True)
            new = tuple([where(masks[t], after, before) for after, before in both])
        states = new
        found.append(states)
    if reverse:
        found.reverse()
    return found


# --- all steps in one function -------------------------------------------------------------------


def as_steps(step: Step, count: int, inputs: Sequence[Variable], reverse: bool) -> list[Variable]:
    """The outputs of ``LSTMSteps`` or ``GRUSteps`` with ``count`` states, by ``all_steps``."""
    x, *others = inputs
    w, *b = others[count:]
    bias = b[0] if b else None
    found = all_steps(step, unstack(x), tuple(others[:count]), (w, bias), reverse)
    return [stack(one) for one in zip(*found, strict=True)]


class _AllSteps(FunctionNode):
    """Base of ``LSTMSteps`` and ``GRUSteps``: the checks, and gradients with a graph.

    Attributes:
        gates: the number of gates.
        states: the number of states.
        step: the equations of a step.
    """

    type_hint = "give the layer's weights and biases the shapes and the dtype of the constructor."
    runs_backward = True
    wide = True
    output_counts = (3,)
    gates: int
    states: int
    step: Step

    def __init__(self, reverse: bool) -> None:
        self.reverse = checked_flag(self, "reverse", reverse)

    def check_type_forward(self, in_types: TypeInfoTuple) -> None:
        count = self.states + 2
        expect(in_types.size() >= count, in_types.size() <= max(self.input_counts))
        x, w = in_types[0], in_types[count - 1]
        expect(x.ndim == 3, w.ndim == 2, x.dtype == w.dtype)
        expect(w.shape[0] == self.gates * w.shape[1], x.shape[2] == w.shape[0])
        for i in range(1, self.states + 1):
            state = in_types[i]
            expect(state.ndim == 2, state.dtype == w.dtype)
            expect(state.shape[0] == x.shape[1], state.shape[1] == w.shape[1])
        for i in range(count, in_types.size()):
            b = in_types[i]
            expect(b.ndim == 1, b.dtype == w.dtype)
            expect(b.shape[0] == w.shape[0])

    def gradient_kind(self) -> type[_StepsGradient]:
        """The class of the gradients without a graph."""
        raise NotImplementedError

    def backward(self, target_input_indexes: Indexes, grad_outputs: Gradients) -> Gradients:
        given = tuple([i for i in range(self.states) if grad_outputs[i] is not None])
        gys = [grad_outputs[i] for i in given]
        if config.enable_backprop or is_recording_net():
            return self.gradients_by_steps(target_input_indexes, given, gys)
        inputs = self.get_retained_inputs()
        node = self.gradient_kind()(self.reverse, len(inputs), given)
        found = node.apply((*inputs, *self.get_retained_outputs(), *gys))
        return tuple([found[i] for i in target_input_indexes])

    def gradients_by_steps(self, targets: Indexes, given: Axes, gys: Sequence[Any]) -> Gradients:
        """The gradients by the equations, step by step: with a graph, or for a net."""
        inputs = list(self.get_retained_inputs())
        with force_backprop_mode():
            for i in targets:
                inputs[i] = identity(inputs[i])  # the inner pass ends here
            outputs = as_steps(type(self).step, self.states, inputs, self.reverse)
        ys = [outputs[i] for i in given]
        ends = [inputs[i] for i in targets]
        return tuple(grad(ys, ends, gys, enable_double_backprop=config.enable_backprop))


class _StepsGradient(FunctionNode):
    """Base of ``LSTMStepsGrad`` and ``GRUStepsGrad``: all gradients of a function over steps.

    The inputs are those of the function, the three outputs, then the gradients of the outputs.
    A pass that is recorded takes ``gradients_by_steps``, so this function has no backward.

    Args:
        reverse: as in the function.
        count: the number of inputs of the function.
        given: the positions of the outputs with a gradient.
    """

    wide = True

    def __init__(self, reverse: bool, count: Count, given: Axes) -> None:
        self.reverse = checked_flag(self, "reverse", reverse)
        self.count = checked_length(self, "count", count, 1)
        self.given = checked(self, "given", given)

    def parts(self, inputs: Arrays) -> tuple[Arrays, Arrays, Arrays]:
        """The inputs and the outputs of the function, and the gradients."""
        first_gradient = self.count + 3
        return inputs[: self.count], inputs[self.count : first_gradient], inputs[first_gradient:]

    def before(self, first: Array, states: Array) -> Array:
        """The state before each step, from the first state and the states after all steps."""
        xp = namespace_of(states)
        if self.reverse:
            return xp.concat([states[1:, ...], first[None, ...]])
        return xp.concat([first[None, ...], states[:-1, ...]])

    def of_weight(self, gz: Array, before: Array) -> Array:
        """The sum over the steps of gz^T h, with the h before each step: one product."""
        xp = namespace_of(gz)
        rows = gz.shape[0] * gz.shape[1]
        flat = xp.reshape(gz, (rows, gz.shape[2]))
        return matrix_product(flat.mT, xp.reshape(before, (rows, before.shape[2])))


def tanh_over(x: Array) -> Array:
    """tanh(x) for a new array x: in the memory of x, if NumPy made x."""
    if type(x) is numpy.ndarray:
        return numpy.tanh(x, out=x)
    return namespace_of(x).tanh(x)


def steps_in_order(steps: int, reverse: bool) -> range:
    """The numbers of the steps, from the first computed to the last."""
    return range(steps - 1, -1, -1) if reverse else range(steps)


class LSTMSteps(_AllSteps):
    """All steps of ``lstm_step`` in one direction.

    x: (steps, n, 4 h), the input's part of the gates i, f, g, o, with all biases; the first state
    h and c: (n, h), w: (4 h, h) -> y and c: (steps, n, h), the states after each step, and gates:
    (steps, 4, n, h), kept for backward.
    The gradients are those of ``LSTMStepsGrad``.
    """

    input_names = ("x", "h", "c", "w")
    input_counts = (4,)
    gates = 4
    states = 2
    step = staticmethod(lstm_step)

    def forward(self, inputs: Arrays) -> Arrays:
        x, h, c, w = inputs
        xp = namespace_of(x)
        self.retain_inputs((0, 1, 2, 3))
        self.retain_outputs((0, 1, 2))
        (steps, n), size = x.shape[:2], h.shape[1]
        # sigmoid(a) = tanh(a / 2) / 2 + 1 / 2, so one tanh serves all gates
        # far below 0, the error is that of a number near 1
        scale = xp.full((4, 1, 1), 0.5, dtype=x.dtype, device=x.device)
        scale = put(scale, (2, ...), 1.0)  # the gate g is a tanh
        weight = xp.empty((4, size, size), dtype=w.dtype, device=w.device)
        weight = put(weight, ..., xp.matrix_transpose(xp.reshape(w, (4, size, size))))
        weight *= scale
        # without broadcasting: NumPy then takes half of the time
        scale = scale + xp.zeros((4, n, size), dtype=x.dtype, device=x.device)
        shift = 1.0 - scale
        # the gates come first, so each gate of a step is a whole block of memory
        of_x = xp.permute_dims(xp.reshape(x, (steps, n, 4, size)), (0, 2, 1, 3))
        gates = xp.empty((steps, 4, n, size), dtype=x.dtype, device=x.device)
        gates = put(gates, ..., of_x)
        gates *= scale
        y = xp.empty((steps, n, size), dtype=x.dtype, device=x.device)
        cells = xp.empty((steps, n, size), dtype=x.dtype, device=x.device)
        for t in steps_in_order(steps, self.reverse):
            given = gates[t, ...]  # of NumPy, a view that receives the gates
            z = given
            z += matrix_product(h, weight)
            z = tanh_over(z)
            z *= scale
            z += shift
            c = z[1, ...] * c
            c += z[0, ...] * z[2, ...]
            h = xp.tanh(c)
            h *= z[3, ...]
            if z is not given:
                gates = put(gates, (t, ...), z)
            cells = put(cells, (t, ...), c)
            y = put(y, (t, ...), h)
        return y, cells, gates

    def gradient_kind(self) -> type[_StepsGradient]:
        return LSTMStepsGrad


class LSTMStepsGrad(_StepsGradient):
    """The gradients of ``LSTMSteps``.

    From the last step to the first, with i, f, g, o and y, c of the step, gh = gy + w^T gx of the
    step after, and gc = gh o (1 - tanh(c)^2) + the gradient of c so far:
    gx = (gc g i (1 - i), gc before f (1 - f), gc i (1 - g^2), gh tanh(c) o (1 - o)).
    Here before is the c before the step. The gradient of before is gc f.
    The gradient gw is the sum over the steps of gx^T h.

    x, h, c, w, y, cells, gates as in ``LSTMSteps``, then gy and gc: (steps, n, h), as far as they
    exist -> the gradients of x, h, c and w.
    """

    input_counts = (8, 9)
    output_counts = (4,)

    def forward(self, inputs: Arrays) -> Arrays:
        (_, first_h, first_c, w), (y, c, gates), given = self.parts(inputs)
        xp = namespace_of(c)
        steps, n, size = c.shape
        before = self.before(first_c, c)
        i, f, g, o = [gates[:, k, ...] for k in range(4)]
        of_c = o - y * xp.tanh(c)  # o (1 - tanh(c)^2), since y = o tanh(c)
        # what a gradient is multiplied by, for all steps at once
        factors = 1.0 - gates
        for k, factor in enumerate((i * g, before * f, i * (1.0 + g), y)):
            factors = put_product(factors, (slice(None), k, ...), factor)
        gx = xp.empty((steps, n, 4, size), dtype=c.dtype, device=c.device)
        gh = xp.zeros((n, size), dtype=c.dtype, device=c.device)
        gc = xp.zeros((n, size), dtype=c.dtype, device=c.device)
        for t in steps_in_order(steps, not self.reverse):
            if 0 in self.given:
                gh += given[0][t, ...]
            gc += gh * of_c[t, ...]
            if 1 in self.given:
                gc += given[-1][t, ...]
            factors = put_product(factors, (t, slice(0, 3), ...), gc)
            factors = put_product(factors, (t, 3, ...), gh)
            gx = put(gx, (t, ...), xp.permute_dims(factors[t, ...], (1, 0, 2)))
            gh = matrix_product(xp.reshape(gx[t, ...], (n, 4 * size)), w)
            gc *= f[t, ...]
        gx = xp.reshape(gx, (steps, n, 4 * size))
        return gx, gh, gc, self.of_weight(gx, self.before(first_h, y))


class GRUSteps(_AllSteps):
    """All steps of ``gru_step`` in one direction.

    x: (steps, n, 3 h), the input's part of the gates r, z, n; the first state h: (n, h), w: (3 h,
    h), b: (3 h), may be left out -> y: (steps, n, h), the state after each step, gates: (steps, n,
    3 h), and parts: (steps, n, h), the state's part of n; both kept for backward.
    The gradients are those of ``GRUStepsGrad``.
    """

    input_names = ("x", "h", "w", "b")
    input_counts = (3, 4)
    gates = 3
    states = 1
    step = staticmethod(gru_step)

    def forward(self, inputs: Arrays) -> Arrays:
        x, h, w, *b = inputs
        xp = namespace_of(x)
        self.retain_inputs(tuple(range(len(inputs))))
        self.retain_outputs((0, 1, 2))
        steps, size = x.shape[0], h.shape[1]
        both = 2 * size  # the gates r and z, by one tanh: sigmoid(a) = tanh(a / 2) / 2 + 1 / 2
        scale = xp.ones((3 * size,), dtype=x.dtype, device=x.device)
        scale = put(scale, slice(0, both), 0.5)
        of_x = x * scale
        weight = (w * scale[:, None]).mT
        bias = b[0] * scale if b else None
        gates = xp.empty(x.shape, dtype=x.dtype, device=x.device)
        y = xp.empty((steps, *h.shape), dtype=x.dtype, device=x.device)
        parts = xp.empty((steps, *h.shape), dtype=x.dtype, device=x.device)
        for t in steps_in_order(steps, self.reverse):
            of_h = matrix_product(h, weight)
            if bias is not None:
                of_h += bias
            part = of_h[:, both:]
            rz = xp.tanh(of_x[t, :, :both] + of_h[:, :both])
            rz *= 0.5
            rz += 0.5
            new = xp.tanh(of_x[t, :, both:] + rz[:, :size] * part)
            h = h - new
            h *= rz[:, size:]
            h += new
            gates = put(gates, (t, ..., slice(0, both)), rz)
            gates = put(gates, (t, ..., slice(both, None)), new)
            parts = put(parts, (t, ...), part)
            y = put(y, (t, ...), h)
        return y, gates, parts

    def gradient_kind(self) -> type[_StepsGradient]:
        return GRUStepsGrad


class GRUStepsGrad(_StepsGradient):
    """The gradients of ``GRUSteps``.

    From the last step to the first, with r, z, n of the step, the state's part p of n, and
    gh = gy + the gradient of the step after:
    gx = (gn p r (1 - r), gh (before - n) z (1 - z), gn) with gn = gh (1 - z) (1 - n^2).
    Here before is the h before the step. The state's part of the gates has the gradient ga: gx,
    with gn r in place of gn. So before has the gradient gh z + w^T ga.
    The gradient gw is the sum over the steps of ga^T before.
    The gradient gb is the sum over the steps and rows of ga.

    x, h, w, b if there is one, y, gates, parts as in ``GRUSteps``, then gy: (steps, n, h) -> the
    gradients of x, h, w and b.
    """

    input_counts = (7, 8)
    output_counts = (3, 4)

    def forward(self, inputs: Arrays) -> Arrays:
        (_, first, w, *b), (y, gates, parts), (gy,) = self.parts(inputs)
        xp = namespace_of(gy)
        steps, n, size = gy.shape
        before = self.before(first, y)
        r, z, new = [gates[..., k * size : (k + 1) * size] for k in range(3)]
        of_n = (1.0 - z) * (1.0 - new * new)
        of_r = of_n * parts * r * (1.0 - r)
        of_z = (before - new) * z * (1.0 - z)
        # what gh is multiplied by, for all steps at once
        factors = xp.stack([of_r, of_z, of_n * r], axis=2)
        totals = xp.empty(gy.shape, dtype=gy.dtype, device=gy.device)
        ga = xp.empty((steps, n, 3 * size), dtype=gy.dtype, device=gy.device)
        gh = xp.zeros((n, size), dtype=gy.dtype, device=gy.device)
        for t in steps_in_order(steps, not self.reverse):
            gh += gy[t, ...]
            totals = put(totals, (t, ...), gh)
            row = xp.reshape(factors[t, ...] * gh[:, None, :], (n, 3 * size))
            ga = put(ga, (t, ...), row)
            gh = gh * z[t, ...]
            gh += matrix_product(row, w)
        gx = xp.concat([ga[..., : 2 * size], of_n * totals], axis=-1)
        found = (gx, gh, self.of_weight(ga, before))
        return (*found, sum_array(ga, (0, 1), dtype=ga.dtype)) if b else found
