"""Random numbers: from the generator of the process, or from a key.

Requirement: a program chooses between two sources of random numbers.

- Without ``key``, an array is drawn from the generator that ``tn.seed`` starts. Each call gives
  new numbers.
- With ``key=``, a Variable is computed from key and shape alone. Equal keys give equal numbers: on
  every device, in compiled and vmapped functions, and in the second run of ``tn.checkpoint``.

A key is an integer array with two words of 32 bits. Use each key once: ``split`` makes new keys.
Keys, splits and bits are equal to those of JAX for ``jax.random.key_data``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Never

import numpy

from tinynode.configuration import config
from tinynode.core.hooks import thread_hooks
from tinynode.core.variable import Variable, wrap_array
from tinynode.devices import Array, Device, get_device, hidden_axes, is_array, is_over
from tinynode.errors import (
    DeviceMixError,
    OperandError,
    SizeError,
    VmapError,
    describe,
    dtype_name,
    short_text,
    unknown_keywords,
)
from tinynode.functions import argmax, argsort
from tinynode.functions.data_types import widened
from tinynode.functions.draws import gumbel_noise
from tinynode.functions.keyed import (
    WORD,
    as_counter,
    as_key,
    keyed_bits,
    normal_numbers,
    unit_numbers,
    whole_numbers,
    words_of,
)
from tinynode.functions.operands import (
    as_floating,
    as_integer,
    is_index,
    normalize_axis,
    require_elements,
)
from tinynode.generator import get_generator, get_state, seed, set_state
from tinynode.habits import missing_attribute

__all__ = [
    "bernoulli",
    "categorical",
    "fold_in",
    "get_generator",
    "get_state",
    "integers",
    "key",
    "normal",
    "permutation",
    "seed",
    "set_state",
    "split",
    "uniform",
]
__dir__ = __all__.copy  # for completion

MOST_DRAWS = 2**48
"""The elements of an array of draws, at most: a petabyte of floats."""
MOST_INTEGERS = 2**31
"""The different numbers of ``integers``, at most."""
OF_ARRAYS = " For an array of probabilities p write tn.random.uniform(p.shape) < p."
SHAPE_FIRST = " The shape is the first argument, as in tn.random.uniform((2, 3), -1.0, 1.0)."


# --- keys ----------------------------------------------------------------------------------------


def key(seed: int, *, device: str | Device | None = None) -> Variable:
    """The key of a seed: (2), int64, the high and the low 32 bits of the seed.

    ```python
    key = tn.random.key(0)
    key, now = tn.random.split(key)
    noise = tn.random.normal((3,), key=now)
    ```

    Args:
        seed: an integer from 0 to 2^64 - 1. Equal seeds give equal keys.
        device: where the key stands, and the draws; the current device by default.

    Raises:
        OperandError: the seed is no integer.
        ValueError: the seed is out of range.
    """
    try:
        number = operator.index(seed)
    except TypeError:
        raise OperandError(
            f"random.key: seed must be an integer, got {describe(seed)}. To make a key depend on "
            "a number of the program, use tn.random.fold_in(key, number)."
        ) from None
    if not 0 <= number < 2**64:
        raise ValueError(f"random.key: seed must lie in 0 to 2**64 - 1, got {short_text(number)}.")
    words = numpy.asarray([number >> 32, number & WORD], dtype=numpy.int64)
    place = get_device(device)
    return wrap_array(place.from_host(words), place, False)


def split(key: Any, n: int = 2, **unknown: Never) -> Variable:
    """New keys from a key: (n, 2). Each row is a key; the old key should not be used again.

    The draws of the new keys are independent of each other.

    Args:
        key: a key, (2), integer.
        n: how many.

    Raises:
        OperandError: the key is no integer array of shape (2,), or n is no integer.
        ValueError: n is negative, or the array is too large.
    """
    if unknown:
        raise unknown_keywords("random.split", unknown)
    words = as_key("random.split", key)
    return words_of(keyed_bits(words, _checked_shape("split", "n", n)))


def fold_in(key: Any, number: Any) -> Variable:
    """A new key, (2), from a key and a number, such as the number of a training step.

    The result is row ``number`` of ``split``'s keys.

    Args:
        key: a key, (2), integer.
        number: an integer, or an integer Variable of shape ().

    Raises:
        OperandError: the key is no integer array of shape (2,), or the number is no integer.
    """
    words = as_key("random.fold_in", key, number)
    return words_of(keyed_bits(words, (), as_counter("random.fold_in", "number", number, words)))


# --- draws ---------------------------------------------------------------------------------------


def normal(
    shape: int | tuple[int, ...] = (),
    mean: float = 0.0,
    deviation: float = 1.0,
    *,
    key: Any = None,
    dtype: Any = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> Array:
    """Draws from the normal distribution: an array, or a Variable with ``key=``.

    With a key the draws are constants: no gradient reaches them. For a mean and a deviation with
    gradients, write ``mean + deviation * tn.random.normal(shape, key=key)``. Draws with a key are
    equal on all devices up to the rounding of ln and cos, and at most 6.7 deviations from the
    mean.

    Args:
        shape: the array's shape; a single number by default.
        mean: the distribution's mean.
        deviation: the standard deviation, not negative.
        key: a key, (2), integer: see ``tn.random.key``. Equal keys give equal draws.
        dtype: float16, float32 or float64, by name or as a dtype; ``config.dtype`` by default.
        device: where the array stands; the key's device, or the current device, by default.

    Raises:
        OperandError: the shape, the mean, the deviation or the key is of another type.
        ValueError: a number is not finite in the dtype, the deviation is negative, or the array is
            too large.
        DeviceMixError: the device is another than the key's.
    """
    if unknown:
        raise unknown_keywords("random.normal", unknown)
    mean = _number("normal", "mean", mean, key)
    deviation = _number("normal", "deviation", deviation, key, least=0.0)
    kind = _dtype_for("normal", dtype, mean=mean, deviation=deviation)
    sizes = _checked_shape("normal", "shape", shape)
    if key is not None:
        words = _checked_key("normal", key, device)
        return _scaled(normal_numbers(words, sizes, kind.name), deviation, mean)
    host = _drawn("normal", "shape", get_generator().normal, mean, deviation, sizes)
    return _place(host, kind, device)


def uniform(
    shape: int | tuple[int, ...] = (),
    low: float = 0.0,
    high: float = 1.0,
    *,
    key: Any = None,
    dtype: Any = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> Array:
    """Draws from the uniform distribution between ``low`` and ``high``.

    ``key``, ``dtype`` and ``device`` are as for ``normal``. A draw lies below ``high``, or equals
    ``high`` after rounding. With a key the draws are equal on all devices.

    Raises:
        OperandError: the shape, a bound or the key is of another type.
        ValueError: a bound is not finite in the dtype, ``high`` is below ``low``, or the array is
            too large. With a key, ``high - low`` must be finite in the dtype too.
        DeviceMixError: the device is another than the key's.
    """
    if unknown:
        raise unknown_keywords("random.uniform", unknown)
    low = _number("uniform", "low", low, key)
    high = _number("uniform", "high", high, key, least=low)
    if high - low == math.inf:
        raise ValueError(f"random.uniform: high - low must be finite, got {high:g} and {low:g}.")
    kind = _dtype_for("uniform", dtype, low=low, high=high)
    sizes = _checked_shape("uniform", "shape", shape)
    if key is not None:
        words = _checked_key("uniform", key, device)
        _dtype_for("uniform", kind, **{"high - low": high - low})
        return _scaled(unit_numbers(words, sizes, kind.name), high - low, low)
    host = _drawn("uniform", "shape", get_generator().uniform, low, high, sizes)
    return _place(host, kind, device)


def integers(
    shape: int | tuple[int, ...],
    low: int,
    high: int,
    *,
    key: Any = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> Array:
    """Integers from ``low`` to ``high - 1``, each as probable as another: int64.

    ``key`` and ``device`` are as for ``normal``. There are at most 2^31 different integers.

    Raises:
        OperandError: the shape, a bound or the key is of another type.
        ValueError: ``high`` is not above ``low``, or too far above, or the array is too large.
        DeviceMixError: the device is another than the key's.
    """
    if unknown:
        raise unknown_keywords("random.integers", unknown)
    first = _integer("low", low)
    count = _integer("high", high) - first
    if not 1 <= count <= MOST_INTEGERS:
        raise ValueError(
            f"random.integers: high must be above low, by at most 2**31, got low={low} and "
            f"high={high}."
        )
    sizes = _checked_shape("integers", "shape", shape)
    if key is not None:
        words = _checked_key("integers", key, device)
        return whole_numbers(words, sizes, count) + first
    host = _drawn("integers", "shape", get_generator().integers, first, first + count, sizes)
    return _place(host, numpy.dtype("int64"), device)


def bernoulli(
    shape: int | tuple[int, ...] = (),
    probability: float = 0.5,
    *,
    key: Any = None,
    device: str | Device | None = None,
    **unknown: Never,
) -> Array:
    """True with the probability, else False: bool.

    ``key`` and ``device`` are as for ``normal``. For an array of probabilities p write
    ``tn.random.uniform(p.shape, key=key) < p``.

    Raises:
        OperandError: the shape, the probability or the key is of another type.
        ValueError: the probability is not in 0 to 1, or the array is too large.
        DeviceMixError: the device is another than the key's.
    """
    if unknown:
        raise unknown_keywords("random.bernoulli", unknown)
    ratio = _number("bernoulli", "probability", probability, key, least=0.0)
    if ratio > 1.0:
        raise ValueError(f"random.bernoulli: probability must be at most 1, got {ratio:g}.")
    sizes = _checked_shape("bernoulli", "shape", shape)
    if key is not None:
        words = _checked_key("bernoulli", key, device)
        return unit_numbers(words, sizes, "float64") < ratio
    host = _drawn("bernoulli", "shape", get_generator().random, sizes)
    return _place(host < ratio, numpy.dtype(bool), device)


def categorical(logits: Any, axis: int = -1, *, key: Any = None, **unknown: Never) -> Variable:
    """A class drawn with the probabilities softmax(logits): int64, the shape without the axis.

    It is the argmax of logits + noise, with the noise -ln(-ln u), u uniform in 0 to 1. A logit of
    -inf is never drawn. No gradient passes: see ``functions.gumbel_softmax``.

        >>> tn.random.categorical(np.asarray([[50.0, 0.0], [0.0, 50.0]])).tolist()
        [0, 1]

    Args:
        logits: scores before softmax, floating; for probabilities p, ``F.log(p)``.
        axis: the axis of the classes.
        key: a key, (2), integer, in place of the generator of ``tn.seed``.

    Raises:
        OperandError: the logits are not floating, or the key is of another type.
        ValueError: the axis does not exist or is empty.
    """
    if unknown:
        raise unknown_keywords("random.categorical", unknown)
    x = widened(as_floating("random.categorical", "logits", logits).detach())
    axis = normalize_axis("random.categorical", axis, x.ndim)
    require_elements("random.categorical", x, (axis,))
    return argmax(x + gumbel_noise("random.categorical", x, None, key), axis=axis)


def permutation(
    n: int, *, key: Any = None, device: str | Device | None = None, **unknown: Never
) -> Array:
    """The numbers 0 to n - 1 in random order: (n), int64.

    ``key`` and ``device`` are as for ``normal``.

    Raises:
        OperandError: n is no integer, or the key is of another type.
        ValueError: n is negative, or the array is too large.
        DeviceMixError: the device is another than the key's.
    """
    if unknown:
        raise unknown_keywords("random.permutation", unknown)
    (size,) = _checked_shape("permutation", "n", n)
    if key is not None:
        return argsort(keyed_bits(_checked_key("permutation", key, device), (size,)))
    order = _drawn("permutation", "n", get_generator().permutation, size)
    return _place(order, numpy.dtype("int64"), device)


# --- checks --------------------------------------------------------------------------------------


def _checked_key(function: str, key: Any, device: str | Device | None) -> Variable:
    """The key of a draw.

    Raises:
        OperandError: the argument is no integer array of shape (2,).
        DeviceMixError: the device is another than the key's.
    """
    words = as_key(f"random.{function}", key)
    if device is not None and not is_over(words.device, get_device(device)):
        raise DeviceMixError(
            f"random.{function}: device must be the key's, {words.device}, got {device}. Leave it "
            "out, or move the key with key.to_device(...)."
        )
    return words


def _scaled(drawn: Variable, factor: float, shift: float) -> Variable:
    """drawn * factor + shift."""
    return drawn if (factor, shift) == (1.0, 0.0) else drawn * factor + shift


def _number(function: str, argument: str, value: Any, key: Any, least: float = -math.inf) -> float:
    """A finite number from ``least`` on, as a float; with a key, no Variable."""
    place = f"random.{function}: {argument}"
    is_plain = hasattr(value, "__float__") and getattr(value, "shape", ()) == ()
    if not is_plain or (key is not None and isinstance(value, Variable)):
        cure = OF_ARRAYS if function == "bernoulli" and is_array(value) else _cure(value)
        raise OperandError(f"{place} must be a number, got {describe(value)}.{cure}")
    try:
        number = float(value)
    except OverflowError:  # an integer
        number = math.inf
    if not least <= number < math.inf or number == -math.inf:
        bound = "" if least == -math.inf else f" and at least {least:g}"
        raise ValueError(f"{place} must be finite{bound}, got {describe(value)}.")
    return number


def _dtype_for(function: str, dtype: Any, **numbers: float) -> Any:
    """NumPy's dtype of the draws.

    Raises:
        ValueError: a number is infinite in the dtype.
    """
    kind = host_dtype(dtype)
    for argument, number in numbers.items():
        with numpy.errstate(over="ignore"):
            is_finite = numpy.isfinite(kind.type(number))
        if not is_finite:
            raise ValueError(
                f"random.{function}: {argument} must be finite in {kind.name}, got {number:g}. "
                "Give a larger dtype, such as dtype='float64'."
            )
    return kind


def _integer(argument: str, value: Any) -> int:
    """A bound of ``integers``, of at most 64 bits."""
    if isinstance(value, Variable) or not is_index(value):
        raise OperandError(
            f"random.integers: {argument} must be an integer, got {describe(value)}.{_cure(value)}"
        )
    return as_integer("random.integers", argument, value)


def _cure(value: Any) -> str:
    """A sentence for a wrong argument in the place of a number."""
    if isinstance(value, tuple | list):
        return f"{SHAPE_FIRST} A key has its name: key=key."
    if isinstance(value, Variable):
        return (
            " Give a key by its name, key=key. Scale a draw by Variables afterwards: mean + "
            "deviation * tn.random.normal(shape, key=key)."
        )
    if is_array(value):
        return " Scale the draws by arrays afterwards: mean + deviation * tn.random.normal(shape)."
    return ""


def _checked_shape(function: str, argument: str, shape: Any) -> tuple[int, ...]:
    """The shape as a tuple of integers; an integer stands for a single axis.

    The argument ``n`` is a number of elements, and no tuple.

    Raises:
        OperandError: the shape has another type.
        SizeError: a length is negative, or the array would have too many elements.
    """
    is_number = argument == "n"
    hint = "" if is_number else SHAPE_FIRST
    kinds = "an integer" if is_number else "an integer or a tuple of integers"
    try:
        is_single = is_number or isinstance(shape, int | numpy.integer)
        entries: Any = (shape,) if is_single else shape
        sizes = tuple([operator.index(n) for n in entries])
    except TypeError:
        raise OperandError(
            f"random.{function}: {argument} must be {kinds}, got {describe(shape)}.{hint}"
        ) from None
    if min(sizes, default=0) < 0 or math.prod(sizes) > MOST_DRAWS:
        raise SizeError(
            f"random.{function}: {argument} must not be negative, and have at most {MOST_DRAWS} "
            f"elements, got {describe(shape)}. Draw in parts.{hint}"
        )
    return sizes


def _drawn(function: str, argument: str, draw: Callable[..., Any], *given: Any) -> Any:
    """``draw(*given)``; an error about the memory names the argument."""
    try:
        return draw(*given)
    except MemoryError as error:
        raise SizeError(
            f"random.{function}: {argument} is too large for the memory: {error}. Draw in parts."
        ) from error


def _place(host: Any, dtype: Any, device: str | Device | None) -> Array:
    """Cast draws on the host, then move the array.

    Raises:
        VmapError: all examples of a vmapped function would get the same numbers.
        TraceError: all runs of a compiled function would get the same numbers.
    """
    if hidden_axes.stack:
        raise VmapError(
            "random: the numbers would be the same in all examples of a vmapped function. Pass a "
            "key for each example, keys = tn.random.split(key, n), and draw with key=. Or draw "
            "before, with a row for each example. functions.dropout and functions.gumbel_softmax "
            "draw for each example."
        )
    for hook in thread_hooks():
        hook.numbers_drawn()
    return get_device(device).from_host(numpy.asarray(host).astype(dtype))


def host_dtype(dtype: Any) -> Any:
    """NumPy's floating dtype for a name or for any namespace's dtype; None means config.dtype.

    Raises:
        TypeError: NumPy has no such floating dtype.
    """
    wanted = config.dtype if dtype is None else dtype
    try:
        found = numpy.dtype(wanted if isinstance(wanted, str | type) else dtype_name(wanted))
    except TypeError:
        found = numpy.dtype(bool)
    if found.kind != "f":
        raise TypeError(
            f"random: dtype must be float16, float32 or float64, got {short_text(wanted)}."
        )
    return found


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Never:
        """The error for a wrong name; Python asks only for names that do not exist."""
        raise missing_attribute("random", name, __all__)
