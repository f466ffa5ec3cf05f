"""Every exception of tinynode, and the words that its messages share.

Requirement: a user catches what Python would raise (a wrong type is a TypeError), or everything of
ours at once (TinynodeError). A message names the function, the argument, what was expected, what
came, and the next thing to try.

    TinynodeError
      BackwardSeedError       (ValueError)    backward() has no gradient to start from
      ConfigError             (ValueError)    a setting has a value that cannot be used
      DeviceError             (ValueError)    a device that is unknown or cannot be used
      DeviceMixError          (TypeError)     arrays of several devices meet in one function
      GradientError                           a backward returned something else than gradients
        GradientShapeError    (ValueError)      their number or a shape is wrong
        GradientTypeError     (TypeError)       a type, a dtype or a device is wrong
      GraphError              (RuntimeError)  the graph is asked for what it cannot do
        InplaceError                            an array was changed after a function retained it
      HookError               (KeyError)      a hook's name is taken, or is not there
      InvalidType             (TypeError, ValueError)  check_type_forward refused the inputs
      NaNError                (RuntimeError)  debug mode met a NaN
      NetError                (ValueError)    a net, or one of its operators, cannot be
        TraceError            (RuntimeError)  a function does what a net cannot record
      NondifferentiableError  (ValueError)    numerical_grad met a kink
      OperandError            (TypeError)     an argument is no Variable, array or number
      OutputError             (TypeError)     a forward returned something else than arrays
      RequiresGradError       (TypeError)     a gradient was asked for an integer or a bool
      StateError              (ValueError)    saved parameters do not fit the model
"""

from __future__ import annotations

import re
from typing import Any


class TinynodeError(Exception):
    """Base of tinynode's own exceptions; values out of range are also plain ValueErrors."""


class BackwardSeedError(TinynodeError, ValueError):
    """``y.backward()`` has no gradient to start from."""


class ConfigError(TinynodeError, ValueError):
    """A setting has a value that cannot be used."""


class DeviceError(TinynodeError, ValueError):
    """A device is unknown, or is known and cannot be used here."""


class DeviceMixError(TinynodeError, TypeError):
    """Arrays of several devices, or an array of none, meet in one function."""


class GradientError(TinynodeError):
    """A ``backward`` returned something else than the gradients it was asked for."""


class GradientShapeError(GradientError, ValueError):
    """The number of gradients, or the shape of one, is wrong."""


class GradientTypeError(GradientError, TypeError):
    """A gradient is no Variable, or has the wrong dtype or device."""


class GraphError(TinynodeError, RuntimeError):
    """The graph is asked for something that it cannot do."""


class InplaceError(GraphError):
    """A retained array was changed in place before backward used it (found in debug mode)."""


class HookError(TinynodeError, KeyError):
    """A hook's name is already taken, or no hook has that name."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the repr, in quotes


class InvalidType(TinynodeError, TypeError, ValueError):  # noqa: N818 - Chainer's name
    """``check_type_forward`` refused the inputs: a shape (ValueError) or a dtype (TypeError).

    ``expect`` and ``actual`` are the two sides of the comparison that failed, as text.
    """

    def __init__(self, expect: str, actual: str, message: str | None = None) -> None:
        super().__init__(message or f"Expect: {expect}\nActual: {actual}")
        self.expect = expect
        self.actual = actual

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.expect, self.actual, self.args[0])


class NaNError(TinynodeError, RuntimeError):
    """Debug mode or NaNHook met a NaN."""


class NetError(TinynodeError, ValueError):
    """A net or an operator cannot be made, found or run."""


class TraceError(NetError, RuntimeError):
    """A function that is traced does what a net cannot record."""


class NondifferentiableError(TinynodeError, ValueError):
    """``numerical_grad`` met a point where the function has no derivative."""


class OperandError(TinynodeError, TypeError):
    """An argument of a function is no Variable, no array and no number."""


class OutputError(TinynodeError, TypeError):
    """A ``forward`` returned something else than a tuple of arrays."""


class RequiresGradError(TinynodeError, TypeError):
    """A gradient was asked for something that can have none: only floating dtypes can."""


class StateError(TinynodeError, ValueError):
    """Saved parameters do not fit the model: a name, a shape or a dtype differs."""


def dtype_name(dtype: Any) -> str:
    """The dtype's name without the library's prefix: ``float32``, not ``torch.float32``."""
    return str(dtype).rpartition(".")[2]


def describe(value: Any) -> str:
    """What came, in a few words: ``ndarray of shape (2, 3), float32``, or ``list [1, 2]``."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None or isinstance(value, type):
        text = repr(value)
        return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
    return f"{type(value).__name__} of shape {tuple(shape)}, {dtype_name(dtype)}"


def snake_case(name: str) -> str:
    """``LogSoftmax`` as ``log_softmax``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
