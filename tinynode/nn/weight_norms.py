"""Wrappers that compute a layer's weight anew at each call: weight and spectral normalisation.

Requirement: the weight is a Variable of the graph, so the gradients of every order are right. For
the time of a call, the wrapper gives the computed weight to the layer. Between calls, the layer
has the trained parameter. Calls of one wrapper in two threads at once are not possible.
"""

from __future__ import annotations

import math
from typing import Any

from tinynode import functions, random
from tinynode.configuration import config, no_backprop_mode
from tinynode.core.conversion import assign
from tinynode.core.variable import Variable
from tinynode.errors import describe
from tinynode.nn.checks import checked_number, checked_size
from tinynode.nn.module import Module
from tinynode.nn.parameter import Buffer, Parameter


class _WeightWrapper(Module):
    """Base: a layer, and the name and axis of the weight.

    Attributes:
        layer: the wrapped layer.
        name: the name of the weight's attribute.
        axis: the axis of the outputs.
    """

    one_line = True

    def _take(self, layer: Any, name: str, axis: int) -> Parameter:
        """The layer's weight, checked."""
        wrapper = type(self).__name__
        weight = vars(layer).get(name) if isinstance(layer, Module) else None
        if not isinstance(weight, Parameter):
            raise TypeError(
                f"{wrapper}: layer must be a Module with a Parameter {name!r}, got "
                f"{describe(layer)}."
            )
        if weight.ndim < 2 or not 0 <= axis < weight.ndim:
            raise ValueError(
                f"{wrapper}: {name} must have two axes or more, and axis={axis} must be an axis "
                f"of it, got shape {weight.shape}."
            )
        self.name = name
        self.axis = axis
        return weight

    def computed_weight(self) -> Variable:
        """The computed weight."""
        raise NotImplementedError

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """The layer's output, with the computed weight."""
        attributes = vars(self.layer)
        at_rest = attributes[self.name]
        attributes[self.name] = self.computed_weight()
        try:
            return self.layer(*inputs, **options)
        finally:
            attributes[self.name] = at_rest

    layer: Module

    def extra_repr(self) -> str:
        """The layer."""
        return repr(self.layer)


class WeightNorm(_WeightWrapper):
    """w = g v / |v|: length and direction of the rows of a layer's weight, trained apart.

    The norm is taken over all axes but ``axis``. The parameters are ``weight_g`` g, of length 1
    in all axes but ``axis``, and ``weight_v`` v, shaped as the weight; at first g = |v|, so w is
    the layer's weight. The other parameters of the layer have names such as ``layer.bias``. In
    PyTorch's ``parametrizations.weight_norm``, g is ``original0`` and v ``original1``.

    Source: Salimans and Kingma, Weight Normalization, 2016.

    Args:
        layer: a Module such as ``nn.Linear``.
        name: the name of the weight's attribute.
        axis: the axis of the outputs: 1 for transposed convolutions, else 0.

    Raises:
        TypeError: the layer has no Parameter of this name.
        ValueError: the weight has no such axis.
    """

    def __init__(self, layer: Module, name: str = "weight", axis: int = 0) -> None:
        weight = self._take(layer, name, axis)
        self.weight_v = weight  # before the layer: the parameter goes by its first name
        length = self._length(Variable(weight.array, requires_grad=False))
        self.weight_g = Parameter(length.array, name="weight_g", device=weight.device)
        self.layer = layer

    def _length(self, v: Variable) -> Variable:
        axes = tuple(i for i in range(v.ndim) if i != self.axis)
        return functions.linalg.vector_norm(v, axis=axes, keepdims=True)

    def computed_weight(self) -> Variable:
        """g v / |v|."""
        return self.weight_v * (self.weight_g / self._length(self.weight_v))


class SpectralNorm(_WeightWrapper):
    """w / sigma: a layer's weight, divided by the largest singular value of the weight.

    The weight is a matrix: rows for ``axis``, columns for all other axes. In training, each call
    makes a step of the power iteration u = W v / |W v|, v = W^T u / |W^T u|; sigma = u^T W v.
    u and v are constants for the gradient. In evaluation both stay as they are. The parameter is
    ``weight_original``, the buffers are ``weight_u`` and ``weight_v``. In PyTorch's
    ``parametrizations.spectral_norm``, these are ``original``, ``_u`` and ``_v``.

    Source: Miyato, Kataoka, Koyama and Yoshida, Spectral Normalization for Generative Adversarial
    Networks, 2018.

    Args:
        layer: a Module such as ``nn.Linear``.
        name: the name of the weight's attribute.
        axis: the axis of the outputs: 1 for transposed convolutions, else 0.
        iterations: the steps of the power iteration at each call, at least 1; 15 at the start.
        eps: the least length divided by.

    Raises:
        TypeError: the layer has no Parameter of this name.
        ValueError: the weight has no such axis, or a setting is out of range.
    """

    def __init__(
        self,
        layer: Module,
        name: str = "weight",
        axis: int = 0,
        iterations: int = 1,
        eps: float = 1e-12,
    ) -> None:
        weight = self._take(layer, name, axis)
        self.iterations = checked_size("SpectralNorm: iterations", iterations)
        self.eps = checked_number("SpectralNorm: eps", eps, 0.0, math.inf)
        self.weight_original = weight  # before the layer: the parameter goes by its first name
        rows, columns = weight.shape[axis], weight.size // weight.shape[axis]
        draw: dict[str, Any] = {"dtype": weight.dtype, "device": weight.device}
        u = Variable(random.normal((rows, 1), **draw), requires_grad=False)
        v = Variable(random.normal((columns, 1), **draw), requires_grad=False)
        with no_backprop_mode():
            u, v = self._iterate(u, v, 15)
        self.weight_u = Buffer(u.array[:, 0], name="weight_u", device=weight.device)
        self.weight_v = Buffer(v.array[:, 0], name="weight_v", device=weight.device)
        self.layer = layer

    def _matrix(self) -> Variable:
        w = functions.moveaxis(self.weight_original, self.axis, 0)
        return functions.reshape(w, (w.shape[0], w.size // w.shape[0]))

    def _iterate(self, u: Variable, v: Variable, count: int) -> tuple[Variable, Variable]:
        """Steps of the power iteration, for columns u and v."""
        w = self._matrix()
        for _ in range(count):
            u = self._unit(w @ v)
            v = self._unit(w.T @ u)
        return u, v

    def _unit(self, x: Variable) -> Variable:
        return x / functions.maximum(functions.linalg.vector_norm(x), self.eps)

    def computed_weight(self) -> Variable:
        """w / sigma; in training after a step of the power iteration."""
        u, v = self.weight_u.detach()[:, None], self.weight_v.detach()[:, None]
        if self.training and config.train and config.recompute_phase != "again":
            with no_backprop_mode():
                u, v = self._iterate(u, v, self.iterations)
                for buffer, new in ((self.weight_u, u), (self.weight_v, v)):
                    assign(buffer, functions.reshape(new, -1).raw, buffer.device)
        sigma = functions.sum(u * (self._matrix() @ v))
        return self.weight_original / sigma
