"""Samples of a categorical distribution with gradients: the Gumbel softmax."""

from __future__ import annotations

from typing import Any

import numpy

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.devices import Arrays, Device
from tinynode.functions.activation import softmax
from tinynode.functions.draws import checked_generator, note_generator
from tinynode.functions.operands import as_floating, as_number, normalize_axis, require_elements
from tinynode.functions.scattering import one_hot
from tinynode.functions.searching import argmax
from tinynode.functions.shapes import moveaxis


class GumbelNoise(FunctionNode):
    """y = -ln(-ln u), with u uniform in 0 to 1, drawn anew at each run.

    -> y: (shape). No gradient: there is no input.
    """

    is_random = True
    output_device: Device

    def __init__(self, shape: tuple[int, ...], dtype: Any, device: Device, generator: Any) -> None:
        self.shape = shape
        self.dtype = dtype
        self.output_device = device
        self.generator = generator

    def forward(self, inputs: Arrays) -> Arrays:
        device = self.output_device
        note_generator(self.generator)
        noise = device.from_host(numpy.asarray(self.generator.gumbel(size=self.shape)))
        return (device.lift(device.xp.astype(noise, self.dtype)),)


def gumbel_softmax(
    x: Any,
    temperature: float = 1.0,
    hard: bool = False,
    axis: int = -1,
    generator: Any = None,
) -> Variable:
    """softmax((x + noise) / temperature), with the noise -ln(-ln u): a soft sample of a class.

    The class with the largest entry is distributed as softmax(x).

    Args:
        x: scores before softmax, floating.
        temperature: positive; near 0 the samples are nearly one-hot.
        hard: True gives one-hot samples, with the gradient of the soft ones.
        axis: the axis of the classes.
        generator: the ``numpy.random.Generator`` that draws the noise, on the host; by default
            that of ``tn.seed``.

    Source: Jang, Gu and Poole, Categorical Reparameterization with Gumbel-Softmax, 2017.

    Raises:
        OperandError: x is not floating, or the generator is none of NumPy's.
        ValueError: the axis does not exist or is empty, or the temperature is not positive.
    """
    x = as_floating("gumbel_softmax", "x", x)
    axis = normalize_axis("gumbel_softmax", axis, x.ndim)
    require_elements("gumbel_softmax", x, (axis,))
    if not as_number("gumbel_softmax", "temperature", temperature) > 0:
        raise ValueError(f"gumbel_softmax: temperature must be positive, got {temperature}.")
    drawn_by = checked_generator("gumbel_softmax", generator)
    noise = GumbelNoise(x.shape, x.dtype, x.device, drawn_by).apply(())[0]
    soft = softmax((x + noise) * (1.0 / float(temperature)), axis=axis)
    if not hard:
        return soft
    chosen = one_hot(argmax(soft, axis=axis), x.shape[axis], soft.dtype)
    return soft + (moveaxis(chosen, -1, axis) - soft).detach()
