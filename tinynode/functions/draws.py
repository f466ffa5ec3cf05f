"""Random functions: dropout and Gumbel noise; and drawing the same numbers again.

Requirement: ``checkpoint`` runs a function twice, and dropout must draw the same mask both times.
So a random function first calls ``note_generator``. The caller that runs the function again keeps
the state of each generator.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Never, overload

import numpy

from tinynode.configuration import config
from tinynode.core.conversion import as_flag
from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Array, Arrays, Device
from tinynode.errors import OperandError, describe, unknown_keywords
from tinynode.functions.activation import softmax
from tinynode.functions.attributes import AnyGenerator, Dtype, Fraction, Shape
from tinynode.functions.checked import (
    checked_device,
    checked_dtype,
    checked_fraction,
    checked_shape,
    checked_source,
)
from tinynode.functions.data_types import astype
from tinynode.functions.exponential import log
from tinynode.functions.keyed import as_key, unit_numbers
from tinynode.functions.operands import (
    as_floating,
    as_number,
    as_operands,
    first_variable,
    normalize_axis,
    require_elements,
)
from tinynode.functions.scattering import one_hot
from tinynode.functions.searching import argmax
from tinynode.functions.shapes import moveaxis
from tinynode.generator import get_generator

if TYPE_CHECKING:
    from numpy.random import Generator

    States = dict[Generator, dict[str, Any]]

__all__ = ["GumbelNoise", "dropout", "gumbel_softmax"]
__dir__ = __all__.copy  # for completion


class _Notes(threading.local):
    """The generators noted in this thread: an entry for each open block, the innermost last."""

    opened: tuple[States, ...] = ()


_notes = _Notes()


@contextmanager
def noted_generators() -> Iterator[States]:
    """The generators used inside the block, with the states before the first draw."""
    outer = _notes.opened
    states: States = {}
    _notes.opened = (*outer, states)
    try:
        yield states
    finally:
        _notes.opened = outer


def note_generator(generator: Generator) -> None:
    """Announce a draw from the generator."""
    for states in _notes.opened:
        if generator not in states:
            states[generator] = dict(generator.bit_generator.state)


@contextmanager
def restored_generators(*generators: Generator) -> Iterator[None]:
    """Restore the states at the end: of the given generators, and of those used in the block."""
    with noted_generators() as states:
        for generator in generators:
            note_generator(generator)
        try:
            yield
        finally:
            _put_back(states)


@contextmanager
def drawing_again(states: States) -> Iterator[None]:
    """Start the generators from the given states; restore the present states at the end."""
    now = {generator: dict(generator.bit_generator.state) for generator in states}
    try:
        _put_back(states)
        yield
    finally:
        try:
            _put_back(now)
        finally:
            _put_back(now)  # again, since Ctrl-C may have stopped the first


def _put_back(states: States) -> None:
    """Set the generators to the given states."""
    for generator, state in states.items():
        with generator.bit_generator.lock:  # the lock under which other threads draw
            generator.bit_generator.state = state


def checked_generator(function: str, generator: Any) -> Generator:
    """The generator; None is that of ``tn.seed``.

    Raises:
        OperandError: the argument is no ``numpy.random.Generator``.
    """
    if generator is None:
        return get_generator()
    if not isinstance(generator, numpy.random.Generator):
        raise OperandError(
            f"{function}: generator must be a numpy.random.Generator, got {describe(generator)}. "
            "Make one with numpy.random.default_rng(seed), or leave it out."
        )
    return generator


class DropoutMask(FunctionNode):
    """m = the factors of dropout, drawn anew at each run: see ``functions.dropout``.

    -> m: (shape). No gradient: there is no input.
    """

    input_counts = (0,)
    is_random = True
    output_device: Device

    def __init__(
        self,
        shape: Shape,
        dtype: Dtype,
        device: Device,
        ratio: Fraction,
        generator: AnyGenerator,
    ) -> None:
        self.shape = checked_shape(self, shape)
        self.dtype = checked_dtype(self, dtype)
        self.output_device = checked_device(self, "device", device)
        self.ratio = checked_fraction(self, "ratio", ratio)
        self.generator = checked_source(self, generator)

    def forward(self, inputs: Arrays) -> Arrays:
        device = self.output_device
        return (dropout_mask(self.shape, self.dtype, device, self.ratio, self.generator),)


class DroppedOut(NamedTuple):
    """The result of dropout, and the factors: see ``dropout``."""

    values: Variable
    mask: Variable


@overload
def dropout(
    x: Any,
    ratio: float = 0.5,
    generator: Any = None,
    *,
    key: Any = None,
    mask: Any = None,
    return_mask: Literal[False] = False,
    **unknown: Never,
) -> Variable: ...


@overload
def dropout(
    x: Any,
    ratio: float = 0.5,
    generator: Any = None,
    *,
    key: Any = None,
    mask: Any = None,
    return_mask: Literal[True],
    **unknown: Never,
) -> DroppedOut: ...


def dropout(
    x: Any,
    ratio: float = 0.5,
    generator: Any = None,
    *,
    key: Any = None,
    mask: Any = None,
    return_mask: bool = False,
    **unknown: Never,
) -> Variable | DroppedOut:
    """x * mask; an element of the mask is 0 with probability ``ratio``, else 1 / (1 - ratio).

    Outside training (``config.train`` False) the result is x.

    x: (s) -> y: (s).

        >>> F.dropout(tn.asarray([1.0, 2.0]), 0.0).tolist()
        [1.0, 2.0]

    Args:
        x: floating.
        ratio: from 0 to below 1.
        generator: the ``numpy.random.Generator`` that draws the mask, by default that of
            ``tn.seed``. The draw is on the host, so the mask is the same on every device.
        key: a key of ``tn.random.key`` in place of a generator: equal keys give equal masks.
        mask: the factors of an earlier call, of x's shape, in place of a draw.
        return_mask: True gives ``(values, mask)``; the mask is of ones where nothing is dropped.

    Source: Srivastava et al., Dropout, 2014.

    Raises:
        ValueError: the ratio is out of range, the mask has another shape than x, or a key is
            given beside a generator or a mask.
        OperandError: x is not floating, the generator is none of NumPy's, or the key is no key.
    """
    if unknown:
        raise unknown_keywords("dropout", unknown)
    return_mask = as_flag("dropout", "return_mask", return_mask)
    if key is not None and (generator is not None or mask is not None):
        raise ValueError("dropout: key takes the place of generator and mask. Give one of them.")
    source = as_floating("dropout", "x", x, first_variable(mask))
    if not 0.0 <= as_number("dropout", "ratio", ratio) < 1.0:
        raise ValueError(f"dropout: ratio must lie in 0 to below 1, got {ratio}.")
    drops = config.train and (mask is not None or ratio > 0.0)
    if not drops:
        ones = wrap_array(source.xp.ones_like(source.raw), source.device, False)
        return DroppedOut(source, ones) if return_mask else source
    if mask is None:
        factors = _drawn_mask(source, float(ratio), generator, key)
    else:
        factors = as_operands("dropout", mask, source, names=("mask", "x"))[0]
        if factors.shape != source.shape:
            raise ValueError(
                f"dropout: mask must have the shape of x, {source.shape}, got {factors.shape}."
            )
    y = source * factors
    return DroppedOut(y, factors) if return_mask else y


def _drawn_mask(x: Variable, ratio: float, generator: Any, key: Any) -> Variable:
    """The factors of dropout for x, drawn by the generator or computed from the key."""
    if key is None:
        drawn_by = checked_generator("dropout", generator)
        return DropoutMask(x.shape, x.dtype, x.device, ratio, drawn_by).apply(())[0]
    kept = unit_numbers(as_key("dropout", key), x.shape, "float64") >= ratio
    return astype(kept, x.dtype) * (1.0 / (1.0 - ratio))


def dropout_mask(
    shape: tuple[int, ...], dtype: Any, device: Device, ratio: float, generator: Any
) -> Array:
    """The factors of dropout: 0 with probability ``ratio``, else 1 / (1 - ratio)."""
    note_generator(generator)
    kept = numpy.asarray(generator.random(shape) >= ratio)
    mask = device.xp.astype(device.from_host(kept), dtype)
    scaled: Array = device.lift(mask * (1.0 / (1.0 - ratio)))
    return scaled


class GumbelNoise(FunctionNode):
    """y = -ln(-ln u), with u uniform in 0 to 1, drawn anew at each run.

    -> y: (shape). No gradient: there is no input.
    """

    input_counts = (0,)
    is_random = True
    output_device: Device

    def __init__(
        self, shape: Shape, dtype: Dtype, device: Device, generator: AnyGenerator
    ) -> None:
        self.shape = checked_shape(self, shape)
        self.dtype = checked_dtype(self, dtype)
        self.output_device = checked_device(self, "device", device)
        self.generator = checked_source(self, generator)

    def forward(self, inputs: Arrays) -> Arrays:
        device = self.output_device
        note_generator(self.generator)
        noise = device.from_host(numpy.asarray(self.generator.gumbel(size=self.shape)))
        return (device.lift(device.xp.astype(noise, self.dtype)),)


def gumbel_noise(function: str, x: Variable, generator: Any, key: Any) -> Variable:
    """The noise for x, drawn by the generator or computed from the key."""
    if key is None:
        drawn_by = checked_generator(function, generator)
        return GumbelNoise(x.shape, x.dtype, x.device, drawn_by).apply(())[0]
    u = unit_numbers(as_key(function, key), x.shape, "float64")
    return astype(-log(-log(u)), x.dtype)


def gumbel_softmax(
    x: Any,
    temperature: float = 1.0,
    hard: bool = False,
    axis: int = -1,
    generator: Any = None,
    *,
    key: Any = None,
    **unknown: Never,
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
        key: a key of ``tn.random.key`` in place of a generator: equal keys give equal noise.

    Source: Jang, Gu and Poole, Categorical Reparameterization with Gumbel-Softmax, 2017.

    Raises:
        OperandError: x is not floating, the generator is none of NumPy's, or the key is no key.
        ValueError: the axis does not exist or is empty, the temperature is not positive, or a key
            is given beside a generator.
    """
    if unknown:
        raise unknown_keywords("gumbel_softmax", unknown)
    x = as_floating("gumbel_softmax", "x", x)
    hard = as_flag("gumbel_softmax", "hard", hard)
    axis = normalize_axis("gumbel_softmax", axis, x.ndim)
    require_elements("gumbel_softmax", x, (axis,))
    if not as_number("gumbel_softmax", "temperature", temperature) > 0:
        raise ValueError(f"gumbel_softmax: temperature must be positive, got {temperature}.")
    if key is not None and generator is not None:
        raise ValueError("gumbel_softmax: key takes the place of generator. Give one of them.")
    noise = gumbel_noise("gumbel_softmax", x, generator, key)
    soft = softmax((x + noise) * (1.0 / float(temperature)), axis=axis)
    if not hard:
        return soft
    chosen = one_hot(argmax(soft, axis=axis), x.shape[axis], soft.dtype)
    return soft + (moveaxis(chosen, -1, axis) - soft).detach()
