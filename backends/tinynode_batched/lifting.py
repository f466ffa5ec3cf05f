"""The rules that lift families of functions over the hidden axis.

A rule is an object that stands in the namespace in the place of a function. A call of the object
calls the wrapped library's function on whole batches.
"""

from __future__ import annotations

from typing import Any

from tinynode.devices import hidden_axes
from tinynode_batched.array import BatchedArray


class Lifted:
    """Base of the rules.

    Args:
        batched: the backend of the results.
        function: the function of the wrapped library.
    """

    def __init__(self, batched: Any, function: Any) -> None:
        self.batched = batched
        self.function = function

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", self.function)
        return f"<{name}, lifted by {type(self).__name__}>"


class Elementwise(Lifted):
    """Functions that broadcast, and functions of the last axes, such as those on matrices.

    Arrays of fewer axes get axes of length 1 behind the hidden axis.
    """

    def __call__(self, *operands: Any, **options: Any) -> Any:
        batched = self.batched
        raws = batched.aligned(operands)
        if not options:
            return batched.wrap(self.function(*raws))
        kept = batched.aligned(tuple(options.values()), max(map(ndim, operands)))
        options = dict(zip(options, kept, strict=True))
        return batched.wrap(self.function(*raws, **options))


class AlongAxes(Lifted):
    """Functions with ``axis``: an integer, several, or None for all axes."""

    keyword = "axis"
    default: Any = None

    def __call__(self, x: Any, /, *others: Any, **options: Any) -> Any:
        x = self.batched.taken_in(x)
        raw, axis = x.raw, options.pop(self.keyword, self.default)
        is_scalar = x.ndim == 0
        if is_scalar and axis is None:  # a library may take the empty tuple for all axes
            raw, axis = self.batched.xp.with_axes(x, 1), 0
            options.pop("keepdims", None)
        axes = shifted(axis, x.ndim)
        return self.batched.wrap(self.function(raw, *others, **{self.keyword: axes}, **options))


class Deciding(AlongAxes):
    """``any`` and ``all``, by which functions check their arguments, also while a net is recorded.

    In the forward of a FunctionNode the error stays: the net has to look at values at each run.
    """

    def __call__(self, x: Any, /, *others: Any, **options: Any) -> Any:
        hidden_axes.checks += 0 if hidden_axes.trials else 1
        try:
            return super().__call__(x, *others, **options)
        finally:
            hidden_axes.checks -= 0 if hidden_axes.trials else 1


class AlongLastAxis(AlongAxes):
    """Functions with ``axis=-1`` by default."""

    default = -1


class AlongFFTAxes(AlongAxes):
    """Functions with ``axes``, of which None stands for all."""

    keyword = "axes"


class Flattening(Lifted):
    """Functions with ``axis`` that flatten the array for None."""

    def __call__(self, x: Any, /, *others: Any, axis: int | None = None, **options: Any) -> Any:
        x = self.batched.taken_in(x)
        if axis is None:
            keepdims = options.pop("keepdims", False)
            flat = self.batched.xp.reshape(x, (x.size,))
            y = self.batched.wrap(self.function(flat.raw, *others, axis=1, **options))
            return self.batched.xp.reshape(y, (1,) * x.ndim) if keepdims else y
        axes = shifted(axis, x.ndim)
        return self.batched.wrap(self.function(x.raw, *others, axis=axes, **options))


class Creation(Lifted):
    """Functions that make an array: the same for all examples."""

    def __call__(self, *numbers: Any, **options: Any) -> Any:
        return self.batched.shared(self.function(*numbers, **options))


def ndim(x: Any) -> int:
    """The number of axes in an example; 0 for numbers."""
    return x.ndim if type(x) is BatchedArray else 0


def shifted(axis: Any, axes: int) -> Any:
    """An axis, or several, of the example's array, counted behind the hidden axis."""
    if axis is None:
        return tuple(range(1, axes + 1))
    if isinstance(axis, tuple | list):
        return tuple([one + 1 if one >= 0 else one + axes + 1 for one in axis])
    return axis + 1 if axis >= 0 else axis + axes + 1
