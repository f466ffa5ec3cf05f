"""Layers: Modules with parameters of their own, and the container that runs layers in turn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinynode import functions, random
from tinynode.core.conversion import as_flag
from tinynode.core.variable import Variable
from tinynode.devices import Array, Device
from tinynode.functions.operands import as_operands
from tinynode.nn.checks import checked_number, checked_size
from tinynode.nn.containers import check_layer
from tinynode.nn.initializers import lecun_normal, ones, zeros
from tinynode.nn.inputs import as_input
from tinynode.nn.module import Module
from tinynode.nn.parameter import Parameter, new_parameter


class Linear(Module):
    """y = x W^T + b.

    x: (..., in) -> y: (..., out). The parameters are ``weight`` W: (out, in), and ``bias`` b:
    (out), or None. The initializer draws W; b starts as zeros.

        >>> layer = nn.Linear(3, 2)
        >>> layer(np.ones((5, 3))).shape, layer.weight.shape
        ((5, 2), (2, 3))

    Args:
        in_size: the length of x's last axis, at least 1.
        out_size: the length of y's last axis, at least 1.
        bias: True for a b.
        initializer: draws W: a function such as ``nn.initializers.he_normal``.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: the device of the parameters; the current device by default.

    Raises:
        TypeError: a size is no integer.
        ValueError: a size is less than 1.
    """

    def __init__(
        self,
        in_size: int,
        out_size: int,
        bias: bool = True,
        *,
        initializer: Callable[..., Array] = lecun_normal,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        in_size = checked_size("Linear: in_size", in_size)
        out_size = checked_size("Linear: out_size", out_size)
        shape = (out_size, in_size)
        self.weight = new_parameter("weight", initializer, shape, dtype, device)
        self.bias: Parameter | None = None
        if as_flag("Linear", "bias", bias):
            self.bias = new_parameter("bias", zeros, (out_size,), dtype, device)

    def forward(self, x: Any) -> Variable:
        """x W^T + b."""
        return functions.linear(as_input(x, self.weight), self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        out_size, in_size = self.weight.shape
        return f"{in_size}, {out_size}{'' if self.bias is not None else ', bias=False'}"


class Bilinear(Module):
    """y_o = the sum over i, j of x1_i W_oij x2_j, + b_o.

    x1: (..., in1), x2: (..., in2) -> y: (..., out). The parameters are ``weight`` W:
    (out, in1, in2), and ``bias`` b: (out), or None. The initializer draws W; b starts as zeros.

    Args:
        in1_size: the length of x1's last axis, at least 1.
        in2_size: the length of x2's last axis, at least 1.
        out_size: the length of y's last axis, at least 1.
        bias: True for a b.
        initializer: draws W: a function such as ``nn.initializers.glorot_uniform``.
        dtype: the parameters' dtype; ``config.dtype`` by default.
        device: the device of the parameters; the current device by default.

    Raises:
        TypeError: a size is no integer.
        ValueError: a size is less than 1.
    """

    def __init__(
        self,
        in1_size: int,
        in2_size: int,
        out_size: int,
        bias: bool = True,
        *,
        initializer: Callable[..., Array] = lecun_normal,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        shape = (
            checked_size("Bilinear: out_size", out_size),
            checked_size("Bilinear: in1_size", in1_size),
            checked_size("Bilinear: in2_size", in2_size),
        )
        self.weight = new_parameter("weight", initializer, shape, dtype, device)
        self.bias: Parameter | None = None
        if as_flag("Bilinear", "bias", bias):
            self.bias = new_parameter("bias", zeros, shape[:1], dtype, device)

    def forward(self, x1: Any, x2: Any) -> Variable:
        """bilinear(x1, x2, weight, bias), with all leading axes as rows.

        Raises:
            ValueError: the shapes do not fit together.
        """
        weight = self.weight
        x1, x2 = as_input(x1, weight), as_input(x2, weight)
        first = as_operands("Bilinear", x1, weight, names=("x1", "weight"))[0]
        second = as_operands("Bilinear", x2, weight, names=("x2", "weight"))[0]
        out, in1, in2 = self.weight.shape
        lead = first.shape[:-1]
        if first.shape != (*lead, in1) or second.shape != (*lead, in2) or not first.ndim:
            raise ValueError(
                f"Bilinear: x1 must be (..., {in1}) and x2 (..., {in2}) with the same leading "
                f"axes, got shapes {first.shape} and {second.shape}."
            )
        rows = math.prod(lead)
        flat = functions.reshape(first, (rows, in1)), functions.reshape(second, (rows, in2))
        y = functions.bilinear(*flat, self.weight, self.bias)
        return functions.reshape(y, (*lead, out))

    def extra_repr(self) -> str:
        """The sizes."""
        out, in1, in2 = self.weight.shape
        return f"{in1}, {in2}, {out}{'' if self.bias is not None else ', bias=False'}"


class Identity(Module):
    """y = x, in place of a layer that is left out. The arguments are ignored, as in PyTorch."""

    def __init__(self, *ignored: Any, **options: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        """x."""
        return x


class Embedding(Module):
    """y[...] = weight[indices[...]]: a trained row for each index.

    indices: integers, (s) -> y: (s, size). The parameter is ``weight``: (rows, size).

        >>> nn.Embedding(10, 4)(np.array([[1, 2, 9]])).shape
        (1, 3, 4)

    Args:
        rows: the number of rows, at least 1.
        size: the length of a row, at least 1.
        initializer: draws the weight, by default each element from N(0, 1).
        dtype: the parameter's dtype; ``config.dtype`` by default.
        device: the device of the parameter; the current device by default.

    Raises:
        TypeError: a size is no integer.
        ValueError: a size is less than 1.
    """

    def __init__(
        self,
        rows: int,
        size: int,
        *,
        initializer: Callable[..., Array] = random.normal,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        shape = checked_size("Embedding: rows", rows), checked_size("Embedding: size", size)
        self.weight = new_parameter("weight", initializer, shape, dtype, device)

    def forward(self, indices: Any) -> Variable:
        """embedding(indices, weight)."""
        return functions.embedding(indices, self.weight)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}"


class PReLU(Module):
    """y = prelu(x, weight): see ``tinynode.functions.prelu``. The parameter is ``weight``.

    Args:
        slopes: how many slopes: 1, or the channels of x.
        start: the slopes at the start.
        dtype: the parameter's dtype; ``config.dtype`` by default.
        device: the device of the parameter; the current device by default.

    Raises:
        TypeError: ``slopes`` is no integer, or ``start`` no number.
        ValueError: ``slopes`` is below 1, or ``start`` not finite.
    """

    def __init__(
        self,
        slopes: int = 1,
        start: float = 0.25,
        *,
        dtype: Any = None,
        device: str | Device | None = None,
    ) -> None:
        shape = (checked_size("PReLU: slopes", slopes),)
        number = checked_number("PReLU: start", start, -math.inf, math.inf)
        weight = ones(shape, dtype=dtype, device=device) * number
        self.weight = Parameter(weight, name="weight", device=device)

    def forward(self, x: Any) -> Variable:
        """prelu(x, weight)."""
        return functions.prelu(as_input(x, self.weight), self.weight)

    def extra_repr(self) -> str:
        """The shape of the slopes."""
        return f"weight {self.weight.shape}"


class Dropout(Module):
    """y = x * mask / (1 - ratio) in training, y = x in evaluation.

    An element of the mask is 0 with probability ``ratio``, else 1.

    x: (s) -> y: (s).

        >>> nn.Dropout(0.5).eval()(np.array([1.0, 2.0])).tolist()
        [1.0, 2.0]

    Source: Srivastava et al., Dropout, 2014.

    Args:
        ratio: from 0 to below 1.
        generator: a ``numpy.random.Generator``; by default the process-wide generator, for which
            ``tinynode.seed`` sets the seed.

    Raises:
        TypeError: the ratio is no number.
        ValueError: the ratio is out of range.
    """

    def __init__(self, ratio: float = 0.5, generator: Any = None) -> None:
        self.ratio = checked_number("Dropout: ratio", ratio, 0.0, 1.0)
        self.generator = generator

    def forward(self, x: Any) -> Variable:
        """dropout(x, ratio) in training, else x."""
        return functions.dropout(x, self.ratio if self.training else 0.0, self.generator)

    def extra_repr(self) -> str:
        """The ratio."""
        return f"{self.ratio}"


class Sequential(Module):
    """Calls the layers in turn, each with the output of the layer before.

    ``len(model)`` is the number of layers, ``model[0]`` the first layer. ``model[:2]`` is a
    Sequential of the first two layers, with the same parameters. ``model[0] = layer`` puts a layer
    in the place of another; ``nn.Sequential(*model, layer)`` has one more.

        >>> model = nn.Sequential(nn.Linear(2, 8), F.relu, nn.Linear(8, 1))
        >>> model(np.ones((5, 2))).shape, len(model)
        ((5, 1), 3)

    Args:
        layers: Modules, and plain functions such as ``tinynode.functions.relu``.

    Raises:
        TypeError: a layer cannot be called.
    """

    def __init__(self, *layers: Callable[[Any], Any]) -> None:
        for position, layer in enumerate(layers):
            hint = " Unpack a list: Sequential(*layers)." * isinstance(layer, list | tuple)
            check_layer("Sequential", position, layer, hint)
        self.layers = layers

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, index: int | slice) -> Any:
        found = self.layers[index]
        return Sequential(*found) if isinstance(found, tuple) else found

    def __setitem__(self, index: int, layer: Callable[[Any], Any]) -> None:
        """Put a layer in the place of another."""
        check_layer("Sequential", index, layer)
        count = len(self.layers)
        position = checked_size("Sequential: the index of a new layer", index, -count)
        if position >= count:
            raise IndexError(
                f"Sequential: the index of a new layer must be less than {count}, got {position}. "
                "Write Sequential(*model, layer) for one more."
            )
        layers = list(self.layers)
        layers[position] = layer
        self.layers = tuple(layers)

    def __delitem__(self, index: int | slice) -> None:
        """Leave a layer out, or some layers."""
        layers = list(self.layers)
        del layers[index]
        self.layers = tuple(layers)

    def forward(self, x: Any) -> Any:
        """The last layer's output."""
        for layer in self.layers:
            x = layer(x)
        return x

    def named_members(self) -> list[tuple[Any, Any]]:
        """The layers by index, then the attributes of a subclass."""
        attributes = dict(vars(self))
        layers = attributes.pop("layers", ())
        return [*enumerate(layers), *attributes.items()]
