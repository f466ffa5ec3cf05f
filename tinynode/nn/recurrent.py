"""Recurrent layers: RNN, LSTM and GRU, and a single step of each as a cell.

Requirement: a reader who knows PyTorch knows these layers. Arguments, results, equations, the
order of the axes and the names of the parameters are PyTorch's. A ``state_dict`` of PyTorch loads
by name. Sequences of several lengths are padded, and ``lengths`` are given to the call.
"""

from __future__ import annotations

import math
from typing import Any

from tinynode import functions, random
from tinynode.core.conversion import as_flag
from tinynode.core.hooks import is_recording_net
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Device
from tinynode.errors import describe
from tinynode.functions.data_types import promoted
from tinynode.functions.operands import as_operands
from tinynode.functions.recurrent import (
    GRUSteps,
    LSTMSteps,
    States,
    Step,
    all_steps,
    gru_step,
    lstm_step,
    relu_step,
    rnn_step,
    step_mask,
)
from tinynode.nn.checks import checked_number, checked_size
from tinynode.nn.inputs import as_input
from tinynode.nn.module import Module
from tinynode.nn.parameter import Parameter

Weights = tuple[Parameter, Parameter, Parameter | None, Parameter | None]
"""Of the input and of the state: two weights, then two biases."""

_STEPS: dict[str, Step] = {"RNN": rnn_step, "LSTM": lstm_step, "GRU": gru_step}
_NODES: dict[str, type[LSTMSteps | GRUSteps]] = {"LSTM": LSTMSteps, "GRU": GRUSteps}
_GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}
_NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class _RecurrentBase(Module):
    """What layers and cells share: sizes, parameters, checks of x and of the states.

    Attributes:
        kind: ``"RNN"``, ``"LSTM"`` or ``"GRU"``.
        nonlinearity: of an RNN: ``"tanh"`` or ``"relu"``.
    """

    kind: str
    nonlinearity = "tanh"

    def _set_sizes(self, input_size: int, hidden_size: int) -> None:
        layer = type(self).__name__
        self.input_size = checked_size(f"{layer}: input_size", input_size)
        self.hidden_size = checked_size(f"{layer}: hidden_size", hidden_size)

    def _set_nonlinearity(self, nonlinearity: str) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"{type(self).__name__}: nonlinearity must be 'tanh' or 'relu', got "
                f"{describe(nonlinearity)}."
            )
        self.nonlinearity = nonlinearity

    def _add_parameters(
        self, in_size: int, suffix: str, bias: bool, dtype: Any, device: str | Device | None
    ) -> None:
        """Draw a cell's parameters; ``suffix`` follows the names, as in ``weight_ih_l0``."""
        rows = _GATES[self.kind] * self.hidden_size
        of_bias = (rows,) if as_flag(type(self).__name__, "bias", bias) else None
        shapes = (rows, in_size), (rows, self.hidden_size), of_bias, of_bias
        limit = 1.0 / math.sqrt(self.hidden_size)
        for start, shape in zip(_NAMES, shapes, strict=True):
            name, parameter = start + suffix, None
            if shape is not None:
                array = random.uniform(shape, -limit, limit, dtype=dtype, device=device)
                parameter = Parameter(array, name=name, device=device)
            setattr(self, name, parameter)  # PyTorch's names have the layer's number

    def _weights(self, suffix: str) -> Weights:
        own = vars(self)
        w_x, w_h, b_x, b_h = [own[name + suffix] for name in _NAMES]
        return w_x, w_h, b_x, b_h

    def _input(self, x: Any, weight: Parameter, axes: str, ndims: tuple[int, int]) -> Variable:
        """x as a Variable: an array takes the dtype of the parameters.

        Raises:
            ValueError: x has the wrong number of axes, or the wrong last axis.
        """
        layer = type(self).__name__
        given = as_operands(layer, as_input(x, weight), weight, names=("x", "weight"))[0]
        if given.ndim not in ndims or given.shape[-1] != self.input_size:
            raise ValueError(
                f"{layer}: x must be {axes} with input_size={self.input_size}, got shape "
                f"{given.shape}."
            )
        return given

    def _states(self, state: Any, x: Variable, weight: Parameter, shape: Any) -> States:
        """The initial states, each with the given shape; zeros by default.

        Raises:
            TypeError: the state of an LSTM is no pair, or that of another layer is one.
            ValueError: a state has another shape.
        """
        layer, pair = type(self).__name__, self.kind == "LSTM"
        if state is None:
            zero = x.xp.zeros(shape, dtype=weight.raw.dtype, device=x.raw.device)
            zeros = wrap_array(zero, x.device, False)
            return (zeros,) * (2 if pair else 1)
        if isinstance(state, list | tuple) != pair or (pair and len(state) != 2):
            expected = "a pair (h, c)" if pair else "one Variable or array h"
            raise TypeError(f"{layer}: state must be {expected}, got {describe(state)}.")
        given = [
            as_operands(layer, one, weight, names=("state", "weight"))[0]
            for one in (state if pair else (state,))
        ]
        for one in given:
            if one.shape != shape:
                raise ValueError(
                    f"{layer}: the initial state must have shape {shape} beside x of shape "
                    f"{x.shape}, got {one.shape}."
                )
        return tuple(given)

    def _step(self) -> Step:
        """The equations of a step."""
        return relu_step if self.nonlinearity == "relu" else _STEPS[self.kind]


class _Recurrent(_RecurrentBase):
    """Base of the layers over sequences: all layers, both directions, the mask of lengths."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        self._set_sizes(input_size, hidden_size)
        layer = type(self).__name__
        self.num_layers = checked_size(f"{layer}: num_layers", num_layers)
        self.batch_first = as_flag(layer, "batch_first", batch_first)
        self.dropout = checked_number(f"{layer}: dropout", dropout, 0.0, 1.0)
        self.bidirectional = as_flag(layer, "bidirectional", bidirectional)
        inner = hidden_size * (2 if bidirectional else 1)
        for number, suffix in enumerate(self._suffixes()):
            first = number < (2 if bidirectional else 1)
            self._add_parameters(input_size if first else inner, suffix, bias, dtype, device)

    def _suffixes(self) -> list[str]:
        """The ends of the parameters' names: ``_l0``, ``_l0_reverse``, ``_l1`` ..."""
        directions = ("", "_reverse") if self.bidirectional else ("",)
        return [f"_l{k}{direction}" for k in range(self.num_layers) for direction in directions]

    def _run(self, x: Any, state: Any, lengths: Any) -> tuple[Variable, States]:
        """The outputs of the last layer, and the last states of all layers."""
        layer = type(self).__name__
        weight = self._weights("_l0")[0]
        order = "(batch, steps, features)" if self.batch_first else "(steps, batch, features)"
        x = self._input(x, weight, f"{order} or (steps, features)", (2, 3))
        single = x.ndim == 2
        if single and lengths is not None:
            raise ValueError(f"{layer}: lengths need a batch, got x of shape {x.shape}.")
        time = 1 if self.batch_first and not single else 0
        steps, batch = (x.shape[0], 1) if single else (x.shape[time], x.shape[1 - time])
        if steps == 0:
            raise ValueError(f"{layer}: x of shape {x.shape} has no steps.")
        suffixes = self._suffixes()
        shape = (len(suffixes), batch, self.hidden_size)
        states = self._states(state, x, weight, (shape[0], shape[2]) if single else shape)
        if single:
            x = functions.expand_dims(x, axis=1)
            states = tuple([functions.reshape(one, shape) for one in states])
        mask = None
        if lengths is not None:
            mask = step_mask(layer, lengths, x, steps, batch)
        y, last = self._run_layers(x, states, mask, time)
        if single:
            return y[:, 0], tuple([one[:, 0] for one in last])
        return y, last

    def _run_layers(
        self, x: Variable, states: States, mask: Variable | None, time: int
    ) -> tuple[Variable, States]:
        suffixes = self._suffixes()
        first = list(zip(*(functions.unstack(one) for one in states), strict=True))
        whole = masks = None  # the mask for all steps at once, and for each step
        if mask is not None:
            masks = functions.unstack(functions.expand_dims(mask, axis=-1))
            whole = functions.expand_dims(mask if time == 0 else mask.T, axis=-1)
            x = functions.where(whole, x, 0.0)  # NaN in the padding stays without effect
        last: list[States] = []
        each = 2 if self.bidirectional else 1
        for k in range(self.num_layers):
            if k and self.dropout:
                ratio = self.dropout if self.training else 0.0
                x = functions.dropout(x, ratio, random.get_generator())
            outputs = []
            for number in range(k * each, (k + 1) * each):
                weights = self._weights(suffixes[number])
                y, end = self._run_direction(
                    x, first[number], weights, masks, time, reverse=number % each == 1
                )
                outputs.append(y if whole is None else functions.where(whole, y, 0.0))
                last.append(end)
            x = outputs[0] if each == 1 else functions.concat(outputs, axis=-1)
        return x, tuple([functions.stack(one) for one in zip(*last, strict=True)])

    def _run_direction(
        self,
        x: Variable,
        states: States,
        weights: Weights,
        masks: tuple[Variable, ...] | None,
        time: int,
        reverse: bool,
    ) -> tuple[Variable, States]:
        """All steps of a layer in one direction. Outside a sequence, the states do not change."""
        w_x, w_h = weights[:2]
        b_x: Variable | None = weights[2]
        b_h: Variable | None = weights[3]
        if masks is None and self.kind in _NODES and not is_recording_net():
            if self.kind == "LSTM" and b_x is not None and b_h is not None:
                b_x = b_x + b_h  # both are added in the same place
                b_h = None
            of_x = functions.linear(x, w_x, b_x)
            return self._run_node(of_x, (*states, w_h, b_h), time, reverse)
        inputs = functions.unstack(functions.linear(x, w_x, b_x), axis=time)
        steps = all_steps(self._step(), inputs, states, (w_h, b_h), reverse, masks)
        y = functions.stack([one[0] for one in steps], axis=time)
        return y, steps[0 if reverse else -1]

    def _run_node(
        self, x: Variable, others: tuple[Any, ...], time: int, reverse: bool
    ) -> tuple[Variable, States]:
        """All steps of a layer in one direction, by a single function."""
        if time == 1:
            x = functions.permute_dims(x, (1, 0, 2))
        node = _NODES[self.kind](reverse)
        given = [other for other in others if other is not None]
        found = node.apply(promoted(x, *given))[: node.states]
        y = found[0]
        if time == 1:
            y = functions.permute_dims(y, (1, 0, 2))
        last = 0 if reverse else -1
        return y, tuple([one[last] for one in found])

    def extra_repr(self) -> str:
        """The sizes, and the options that differ from the defaults."""
        options = [f"num_layers={self.num_layers}"] * (self.num_layers > 1)
        options += [f"nonlinearity={self.nonlinearity!r}"] * (self.nonlinearity != "tanh")
        options += ["bias=False"] * (self._weights("_l0")[2] is None)
        options += ["batch_first=True"] * self.batch_first
        options += [f"dropout={self.dropout}"] * (self.dropout > 0)
        options += ["bidirectional=True"] * self.bidirectional
        more = "".join(f", {option}" for option in options)
        return f"{self.input_size}, {self.hidden_size}{more}"


class RNN(_Recurrent):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh) for each step t of a sequence.

    x: (steps, batch, input_size) -> y: (steps, batch, directions * hidden_size), the last layer's
    h_t, and h_n: (num_layers * directions, batch, hidden_size), each layer's last h. The order of
    the axes is PyTorch's; ``batch_first=True`` exchanges the first two axes of x and y. Without a
    batch, x is (steps, input_size), and y and h_n have no batch axis.

    The parameters of layer 0 are ``weight_ih_l0`` W_ih: (hidden_size, input_size),
    ``weight_hh_l0`` W_hh: (hidden_size, hidden_size), ``bias_ih_l0`` and ``bias_hh_l0``:
    (hidden_size), or None. Layer k has ``_lk``; the way backwards has ``_lk_reverse``. All
    parameters start even in -1 / sqrt(hidden_size) to 1 / sqrt(hidden_size), as in PyTorch.

    Source: Elman, Finding Structure in Time, 1990.

    Args:
        input_size: the length of x's last axis, at least 1.
        hidden_size: the length of h, at least 1.
        num_layers: the number of layers; a layer's outputs are the next layer's inputs.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        bias: True for the two biases.
        batch_first: True for x and y in the order (batch, steps, features).
        dropout: the ratio of dropout between two layers, in training.
        bidirectional: True to read the sequence backwards too. y joins both outputs.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: the device of the parameters; the current device by default.

    Raises:
        TypeError: a size is no integer.
        ValueError: a setting is out of range.
    """

    kind = "RNN"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        self._set_nonlinearity(nonlinearity)
        settings = num_layers, bias, batch_first, dropout, bidirectional
        super().__init__(input_size, hidden_size, *settings, dtype=dtype, device=device)

    def forward(self, x: Any, state: Any = None, *, lengths: Any = None) -> Any:
        """(y, h_n), from the initial h: (num_layers * directions, batch, hidden_size), or zeros.

        Args:
            x: the sequences.
            state: the initial h of each layer and direction.
            lengths: integers, (batch): the number of steps of each sequence, the rest is
                padding. h_n is the state after the last step of each sequence; y is 0 in the
                padding. No gradient reaches the padding.

        Raises:
            ValueError: a shape does not fit, or a length is out of range.
        """
        y, (h,) = self._run(x, state, lengths)
        return y, h


class LSTM(_Recurrent):
    """Long short-term memory: a cell state c, changed by gates, for each step of a sequence.

    i, f, g, o = the four parts of W_ih x_t + b_ih + W_hh h_(t-1) + b_hh,
    c_t = sigmoid(f) c_(t-1) + sigmoid(i) tanh(g),   h_t = sigmoid(o) tanh(c_t)

    x: (steps, batch, input_size) -> y: (steps, batch, directions * hidden_size), the last layer's
    h_t, and (h_n, c_n), the last states of each layer: (num_layers * directions, batch,
    hidden_size). The order of the axes is PyTorch's; ``batch_first=True`` exchanges the first two
    axes of x and y. The parameters have the names and the start of ``RNN``'s; all have
    4 * hidden_size rows, in the order i, f, g, o.

    Source: Hochreiter and Schmidhuber, Long Short-Term Memory, 1997; with the forget gate of Gers,
    Schmidhuber and Cummins, Learning to Forget, 2000.

    The arguments and errors are those of ``RNN``, without ``nonlinearity``.
    """

    kind = "LSTM"

    def forward(self, x: Any, state: Any = None, *, lengths: Any = None) -> Any:
        """(y, (h_n, c_n)); ``state`` is the initial pair (h, c), zeros by default.

        ``lengths`` are as for ``RNN.forward``.

        Raises:
            TypeError: the state is no pair.
            ValueError: a shape does not fit, or a length is out of range.
        """
        return self._run(x, state, lengths)


class GRU(_Recurrent):
    """Gated recurrent unit, for each step of a sequence.

    r = sigmoid(W_ir x + b_ir + W_hr h + b_hr),   z = sigmoid(W_iz x + b_iz + W_hz h + b_hz),
    n = tanh(W_in x + b_in + r (W_hn h + b_hn)),   h' = (1 - z) n + z h

    x: (steps, batch, input_size) -> y: (steps, batch, directions * hidden_size), the last layer's
    h', and h_n: (num_layers * directions, batch, hidden_size). The order of the axes is
    PyTorch's; ``batch_first=True`` exchanges the first two axes of x and y. The parameters have
    the names and the start of ``RNN``'s; all have 3 * hidden_size rows, in the order r, z, n.

    Source: Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014; the reset
    gate acts after the product with h, as in PyTorch.

    The arguments and errors are those of ``RNN``, without ``nonlinearity``.
    """

    kind = "GRU"

    def forward(self, x: Any, state: Any = None, *, lengths: Any = None) -> Any:
        """(y, h_n); ``state`` and ``lengths`` are as for ``RNN.forward``.

        Raises:
            ValueError: a shape does not fit, or a length is out of range.
        """
        y, (h,) = self._run(x, state, lengths)
        return y, h


class _Cell(_RecurrentBase):
    """Base of the cells: one step, without layers and directions."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        self._set_sizes(input_size, hidden_size)
        self._add_parameters(self.input_size, "", bias, dtype, device)

    def _run(self, x: Any, state: Any) -> States:
        weights = self._weights("")
        x = self._input(x, weights[0], "(batch, features) or (features)", (1, 2))
        states = self._states(state, x, weights[0], (*x.shape[:-1], self.hidden_size))
        of_x = functions.linear(x, weights[0], weights[2])
        return self._step()(of_x, states, weights[1], weights[3])

    def extra_repr(self) -> str:
        """The sizes, and the options that differ from the defaults."""
        more = f", nonlinearity={self.nonlinearity!r}" * (self.nonlinearity != "tanh")
        more += ", bias=False" * (self._weights("")[2] is None)
        return f"{self.input_size}, {self.hidden_size}{more}"


class RNNCell(_Cell):
    """One step of an RNN: h' = tanh(W_ih x + b_ih + W_hh h + b_hh).

    x: (batch, input_size), h: (batch, hidden_size) or None for zeros -> h': as h. Both may lack
    the batch. The parameters are ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh``, with
    the shapes and the start of ``RNN``'s.

    Source: Elman, Finding Structure in Time, 1990.

    Args:
        input_size: the length of x's last axis, at least 1.
        hidden_size: the length of h, at least 1.
        bias: True for the two biases.
        nonlinearity: ``"tanh"`` or ``"relu"``.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: the device of the parameters; the current device by default.

    Raises:
        TypeError: a size is no integer.
        ValueError: a setting is out of range.
    """

    kind = "RNN"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        self._set_nonlinearity(nonlinearity)
        super().__init__(input_size, hidden_size, bias, dtype=dtype, device=device)

    def forward(self, x: Any, state: Any = None) -> Variable:
        """h' for an input x and a state h.

        Raises:
            ValueError: a shape does not fit.
        """
        return self._run(x, state)[0]


class LSTMCell(_Cell):
    """One step of an LSTM: see ``LSTM`` for the formula.

    x: (batch, input_size), h and c: (batch, hidden_size), or None for zeros -> (h', c'): as h.
    All may lack the batch. The parameters are ``weight_ih``, ``weight_hh``, ``bias_ih`` and
    ``bias_hh``, with 4 * hidden_size rows and the start of ``RNN``'s.

    Source: Hochreiter and Schmidhuber, Long Short-Term Memory, 1997.

    The arguments and errors are those of ``RNNCell``, without ``nonlinearity``.
    """

    kind = "LSTM"

    def forward(self, x: Any, state: Any = None) -> States:
        """(h', c') for an input x and a pair of states (h, c).

        Raises:
            TypeError: the state is no pair.
            ValueError: a shape does not fit.
        """
        return self._run(x, state)


class GRUCell(_Cell):
    """One step of a GRU: see ``GRU`` for the formula.

    x: (batch, input_size), h: (batch, hidden_size) or None for zeros -> h': as h. Both may lack
    the batch. The parameters are ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh``, with
    3 * hidden_size rows and the start of ``RNN``'s.

    Source: Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014.

    The arguments and errors are those of ``RNNCell``, without ``nonlinearity``.
    """

    kind = "GRU"

    def forward(self, x: Any, state: Any = None) -> Variable:
        """h' for an input x and a state h.

        Raises:
            ValueError: a shape does not fit.
        """
        return self._run(x, state)[0]
