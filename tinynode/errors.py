"""The exceptions of tinynode, and words for their messages.

Requirement: a user catches Python's exceptions (a wrong type is a TypeError), or all of tinynode's
at once (TinynodeError). A message names the function, the argument, the expected value, the actual
value, and the next step to try.

    TinynodeError
      BackwardSeedError       (ValueError)    backward() has no gradient to start from
      ConfigError             (ValueError)    a setting has a value that cannot be used
      ConvergenceError        (ValueError)    an equation has no usable solution or gradient
      DeviceError             (ValueError)    a device that is unknown or cannot be used
      DeviceMixError          (TypeError)     arrays of several devices meet in one function
      GradientError                           a backward did not return gradients
        GradientShapeError    (ValueError)      their number or a shape is wrong
        GradientTypeError     (TypeError)       a type, a dtype or a device is wrong
      GraphError              (RuntimeError)  the graph cannot do the requested operation
        InplaceError                            an array was changed after a function retained it
      HookError               (KeyError)      a hook's name is taken or unknown
      InvalidType             (TypeError, ValueError)  check_type_forward refused the inputs
      NetError                (ValueError)    a net or an operator cannot be made, found or run
        TraceError            (RuntimeError)  a net cannot record an operation of the function
      NondifferentiableError  (ValueError)    numerical_grad met a kink
      NoValuesError           (ValueError)    an array on the device shapes was asked for a value
      NonFiniteError          (RuntimeError)  debug mode met an infinite gradient, or a NaN
        NaNError                                debug mode met a NaN
      OperandError            (TypeError)     an argument is no Variable, array or number
      OutputError             (TypeError)     a forward did not return a tuple of arrays
      RankError               (RuntimeError)  another rank has ended, or does not answer
      RequiresGradError       (TypeError)     a gradient was asked for an integer or a bool
      SizeError               (MemoryError, ValueError)  an array or a number is too large
      StateError              (ValueError)    saved parameters do not fit the model
      VmapError               (ValueError)    a vmapped function asks for a value of an example
"""

from __future__ import annotations

import functools
import itertools
import re
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from tinynode.habits.keywords import keyword_cure

__all__ = [
    "BackwardSeedError",
    "ConfigError",
    "ConvergenceError",
    "DeviceError",
    "DeviceMixError",
    "GradientCutWarning",
    "GradientError",
    "GradientShapeError",
    "GradientTypeError",
    "GraphError",
    "HookError",
    "InplaceError",
    "InvalidType",
    "NaNError",
    "NetError",
    "NoValuesError",
    "NonFiniteError",
    "NondifferentiableError",
    "OperandError",
    "OutputError",
    "RankError",
    "RequiresGradError",
    "SizeError",
    "StateError",
    "TinynodeError",
    "TraceError",
    "VmapError",
]
__dir__ = __all__.copy  # for completion

LONGEST_NAME = 200
"""Pictures and tables keep so many letters of a name or a title."""


class TinynodeError(Exception):
    """Base of tinynode's exceptions. A value out of range may also raise a plain ValueError."""


class BackwardSeedError(TinynodeError, ValueError):
    """``y.backward()`` has no gradient to start from."""


class ConfigError(TinynodeError, ValueError):
    """A setting has a value that cannot be used."""


class ConvergenceError(TinynodeError, ValueError):
    """A solver did not converge, or an equation is singular at the solution."""


class DeviceError(TinynodeError, ValueError):
    """A device is unknown, or is known and cannot be used here."""


class DeviceMixError(TinynodeError, TypeError):
    """The arrays of a function are on several devices, or an array is on no known device."""


class GradientError(TinynodeError):
    """A ``backward`` did not return the requested gradients."""


class GradientShapeError(GradientError, ValueError):
    """The number of gradients, or the shape of a gradient, is wrong."""


class GradientTypeError(GradientError, TypeError):
    """A gradient is no Variable, or has the wrong dtype or device."""


class GraphError(TinynodeError, RuntimeError):
    """The graph cannot do the requested operation."""


class InplaceError(GraphError):
    """A retained array was changed in place before backward used it (found in debug mode)."""


class HookError(TinynodeError, KeyError):
    """The name of a hook is already taken, or no hook has this name."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the repr, in quotes


class InvalidType(TinynodeError, TypeError, ValueError):  # noqa: N818 - Chainer's name
    """``check_type_forward`` refused the inputs: a shape (ValueError) or a dtype (TypeError).

    ``expect`` and ``actual`` are the two sides of the failed comparison, as text.
    """

    def __init__(self, expect: str, actual: str, message: str | None = None) -> None:
        super().__init__(message or f"Expect: {expect}\nActual: {actual}")
        self.expect = expect
        self.actual = actual

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.expect, self.actual, self.args[0])


class NonFiniteError(TinynodeError, RuntimeError):
    """Debug mode met an infinite gradient; the subclass NaNError is for a NaN."""


class NaNError(NonFiniteError):
    """Debug mode or NaNHook met a NaN."""


class NetError(TinynodeError, ValueError):
    """A net or an operator cannot be made, found or run."""


class TraceError(NetError, RuntimeError):
    """A net cannot record an operation of the traced function."""


class NondifferentiableError(TinynodeError, ValueError):
    """``numerical_grad`` met a point where the function has no derivative."""


class NoValuesError(TinynodeError, ValueError):
    """An array on the device ``shapes``, which has a shape and a dtype, was asked for a value."""


class OperandError(TinynodeError, TypeError):
    """An argument of a function is not a Variable, an array or a number."""


class OutputError(TinynodeError, TypeError):
    """A ``forward`` did not return a tuple of arrays."""


class RankError(TinynodeError, RuntimeError):
    """Another rank of a program of several processes has ended, or does not answer."""


class RequiresGradError(TinynodeError, TypeError):
    """A gradient was requested for an integer or a bool: only floating dtypes have gradients."""


class SizeError(TinynodeError, MemoryError, ValueError):
    """An array is larger than the memory, or a number is larger than its dtype."""


class StateError(TinynodeError, ValueError):
    """Saved parameters do not fit the model: a name, a shape or a dtype differs."""


def dtype_name(dtype: Any) -> str:
    """The dtype's name without the library's prefix: ``float32``, not ``torch.float32``."""
    return str(dtype).rpartition(".")[2]


def describe(value: Any) -> str:
    """The type of a value, with shape and dtype or the text of the value.

    An array gives ``ndarray of shape (2, 3), float32``, a list ``list [1, 2]``.
    """
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None or isinstance(value, type):
        return f"{type(value).__name__} {short_text(value)}"
    return f"{type(value).__name__} of shape {tuple(shape)}, {dtype_name(dtype)}"


def short_text(value: Any) -> str:
    """The beginning of ``repr(value)``, of at most 60 characters.

    A list may hold itself, and an integer may have more digits than Python converts.
    """
    text = _ShortText().repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class _ShortText(reprlib.Repr):
    """``repr`` in bounded time: for a message, the first entries of a list are enough."""

    LEVELS, ENTRIES, CHARACTERS = 60, 60, 100_000

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = self.LEVELS
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.ENTRIES
        self.maxdeque = self.maxarray = self.ENTRIES
        self.maxother = self.CHARACTERS
        self.parts = 0

    def repr1(self, x: Any, level: int) -> str:
        self.parts += 1
        return "..." if self.parts > self.ENTRIES else super().repr1(x, level)

    def repr_str(self, x: str, level: int) -> str:
        return repr(x[: self.ENTRIES])

    def repr_int(self, x: int, level: int) -> str:
        is_short = x.bit_length() <= 4 * self.ENTRIES
        return repr(x) if is_short else f"of {x.bit_length()} bits"

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        entries = itertools.islice(x.items(), self.ENTRIES)
        pairs = [f"{self.repr1(k, level - 1)}: {self.repr1(v, level - 1)}" for k, v in entries]
        return f"{{{', '.join(pairs)}}}"


class VmapError(TinynodeError, ValueError):
    """A vmapped function asks for one value, and the examples differ; or vmap has no rule."""


class GradientCutWarning(UserWarning):
    """The code of another library made a number of a Variable with a gradient."""


def unknown_keywords(function: str, unknown: Mapping[str, Any]) -> OperandError:
    """The error for keyword arguments that a function does not have."""
    if "out" in unknown:  # NumPy calls the method of the same name
        return OperandError(
            f"{function}: NumPy's functions take no Variable: np.{function}(x) calls "
            f"x.{function}(out=...). Try tinynode.functions.{function}(x), or "
            f"np.{function}(x.array)."
        )
    cures = {name: keyword_cure(function, name) for name in unknown}
    keyword = next((name for name in cures if cures[name]), next(iter(cures)))
    value = unknown[keyword]
    text = describe(value) if hasattr(value, "shape") else repr(value)
    return OperandError(
        f"{function}: unknown keyword {keyword}, got {keyword}={text}.{cures[keyword]}"
    )


@functools.cache
def snake_case(name: str) -> str:
    """``LogSoftmax`` as ``log_softmax``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def printable(text: str) -> str:
    """The text with control characters as escapes, so that no name can steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def short_name(name: str | None) -> str:
    """A name or a title for a picture or a table, cut if too long; empty for None."""
    name = name or ""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def joined(texts: Iterable[str], empty: str = "nothing is known") -> str:
    """``a, b and c``; ``empty`` for no text."""
    known = list(texts)
    if len(known) < 2:
        return known[0] if known else empty
    return f"{', '.join(known[:-1])} and {known[-1]}"


def number_text(number: Any, digits: int = 4) -> str:
    """A float with at most ``digits`` digits: ``0.5``, ``1.5e-07``, ``nan``; others in full."""
    plain = number.item() if hasattr(number, "item") else number
    return f"{plain:.{digits}g}" if isinstance(plain, float) else str(plain)
