"""Creation functions: Variables without a gradient, on the device of the namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from tinynode import functions
from tinynode.array_api.base import NUMBERS, Home, NamespaceBase, plain_number
from tinynode.configuration import config
from tinynode.core.array_methods import ArrayMethods
from tinynode.core.conversion import as_flag, as_variable
from tinynode.core.messages import is_too_large
from tinynode.core.nested import nested_items
from tinynode.core.variable import Variable
from tinynode.devices import Array, find_device, to_host
from tinynode.errors import OperandError, SizeError, describe, short_text
from tinynode.functions.operands import as_integer


class CreationFunctions(NamespaceBase):
    """The creation functions. ``device`` is a tinynode.Device, a name, or None for the home.

    New Variables require no gradient. A Variable among the values keeps the graph: ``asarray(x)``,
    ``full(shape, x)``, ``linspace(x, y, 5)``.
    """

    def asarray(
        self, obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
    ) -> Variable:
        """A Variable from a Variable, an array, a number, or a nested list.

        A Variable stays in the graph; ``copy=True`` gives a differentiable copy.

        Raises:
            ValueError: ``copy=False``, and a copy is needed.
            OperandError: the object is of another type.
        """
        if isinstance(obj, ArrayMethods):
            return self._converted(as_variable(obj), dtype, device, copy)
        there = self._at(device)
        if isinstance(obj, list | tuple) and _holds_arrays(obj):
            return self._joined(there, obj, dtype)
        owner = None if isinstance(obj, NUMBERS) else find_device(obj, there.device)
        if owner is there.device:
            return there.new(there.xp.asarray(obj, dtype=dtype, copy=copy))
        if owner is not None:  # an array of another device is moved
            if copy is False:
                raise ValueError(f"xp.asarray: copy=False, but the array lies on {owner}.")
            array = there.device.from_host(numpy.array(to_host(obj)))
            return there.new(there.xp.asarray(array, dtype=dtype))
        return self._from_numbers(there, obj, dtype, copy)

    def _converted(self, x: Variable, dtype: Any, device: Any, copy: bool | None) -> Variable:
        """``asarray`` of a Variable."""
        y = x if device is None else functions.to_device(x, self._at(device).device)
        y = self.astype(y, y.dtype if dtype is None else dtype, copy=bool(copy) and y is x)
        if y is x and x.is_leaf and copy is None and config.enable_backprop:
            return functions.identity(x)  # other people's code may write to it, and leave the leaf
        if copy is False and y is not x:
            raise ValueError("xp.asarray: copy=False, but the dtype or the device has to change.")
        return y

    def _from_numbers(self, there: Home, obj: Any, dtype: Any, copy: bool | None) -> Variable:
        """A Variable from numbers, or from an object with the buffer protocol."""
        if _created("asarray", numpy.asarray, {"obj": obj}).dtype.kind not in "biufc":
            raise OperandError(
                f"xp.asarray: obj must hold bools or numbers of at most 64 bits, got "
                f"{describe(obj)}. Give an array, a number, or a nested list of numbers."
            )
        where = there.library_device
        given = {"obj": plain_number(obj)}
        array = _created("asarray", there.xp.asarray, given, dtype=dtype, device=where, copy=copy)
        return there.new(array)

    def _joined(self, there: Home, items: Any, dtype: Any) -> Variable:
        """A nested list with Variables: a differentiable stack, in the common dtype."""
        parts = [self.asarray(item, device=there.device) for item in items]
        arrays = [part for part, item in zip(parts, items, strict=True) if _has_dtype(item)]
        common = dtype
        if common is None:
            common = there.xp.result_type(*[part.raw.dtype for part in arrays])
        return functions.stack([self._cast("asarray", part, common) for part in parts])

    def from_dlpack(self, x: Any, /, *, device: Any = None, copy: bool | None = None) -> Variable:
        """A Variable from an object with ``__dlpack__``: an array of any library.

        Raises:
            NotImplementedError: x is a Variable with a gradient.
        """
        if isinstance(x, ArrayMethods):
            x = self._array_without_rule("from_dlpack", x)
        there = self._at(device)
        array = self._xp.from_dlpack(x) if copy is None else self._xp.from_dlpack(x, copy=copy)
        found = self._new(array)
        return found if there is self._place else functions.to_device(found, there.device)

    def astype(self, x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Variable:
        """x in another dtype. A cast to a floating dtype is differentiable."""
        x = self._lift("astype", x)
        if device is not None:
            x, copy = self._converted(x, None, device, True), False
        if x.dtype != dtype:
            return functions.astype(x, dtype)
        return functions.copy(x) if copy else x

    # --- from a shape --------------------------------------------------------------------------

    def empty(self, shape: Any, *, dtype: Any = None, device: Any = None) -> Variable:
        """An array of a shape; the values are arbitrary."""
        there = self._at(device)
        where = there.library_device
        given = {"shape": shape}
        return there.new(_created("empty", there.xp.empty, given, dtype=dtype, device=where))

    def ones(self, shape: Any, *, dtype: Any = None, device: Any = None) -> Variable:
        """An array of ones."""
        there = self._at(device)
        where = there.library_device
        given = {"shape": shape}
        return there.new(_created("ones", there.xp.ones, given, dtype=dtype, device=where))

    def zeros(self, shape: Any, *, dtype: Any = None, device: Any = None) -> Variable:
        """An array of zeros."""
        there = self._at(device)
        where = there.library_device
        given = {"shape": shape}
        return there.new(_created("zeros", there.xp.zeros, given, dtype=dtype, device=where))

    def full(
        self, shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None
    ) -> Variable:
        """An array with a single value everywhere; the value may be a 0-d Variable."""
        there = self._at(device)
        if isinstance(fill_value, ArrayMethods):
            value = self.asarray(fill_value, dtype=dtype, device=there.device)
            return functions.broadcast_to(value, shape if isinstance(shape, tuple) else (shape,))
        if isinstance(fill_value, numpy.generic):
            fill_value = fill_value.item()
        where = there.library_device
        given = {"shape": shape, "fill_value": fill_value}
        array = _created("full", there.xp.full, given, dtype=dtype, device=where)
        return there.new(array)

    def empty_like(self, x: Any, /, *, dtype: Any = None, device: Any = None) -> Variable:
        """An array of the shape and the dtype of x; the values are arbitrary."""
        x = self._lift("empty_like", x)
        return self.empty(x.shape, dtype=dtype or x.dtype, device=device or x.device)

    def ones_like(self, x: Any, /, *, dtype: Any = None, device: Any = None) -> Variable:
        """Ones, in the shape and the dtype of x."""
        x = self._lift("ones_like", x)
        return self.ones(x.shape, dtype=dtype or x.dtype, device=device or x.device)

    def zeros_like(self, x: Any, /, *, dtype: Any = None, device: Any = None) -> Variable:
        """Zeros, in the shape and the dtype of x."""
        x = self._lift("zeros_like", x)
        return self.zeros(x.shape, dtype=dtype or x.dtype, device=device or x.device)

    def full_like(
        self, x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None
    ) -> Variable:
        """A single value everywhere, in the shape and the dtype of x."""
        x = self._lift("full_like", x)
        dtype, device = dtype or x.dtype, device or x.device
        return self.full(x.shape, fill_value, dtype=dtype, device=device)

    # --- from numbers --------------------------------------------------------------------------

    def arange(
        self,
        start: Any,
        /,
        stop: Any = None,
        step: Any = 1,
        *,
        dtype: Any = None,
        device: Any = None,
    ) -> Variable:
        """The numbers from ``start`` to ``stop``, ``stop`` left out, at a distance ``step``."""
        there = self._at(device)
        start, stop, step = _number(start), _number(stop), _number(step)
        if stop is None:
            start, stop = 0, start
        where = there.library_device
        given = {"start": start, "stop": stop, "step": step}
        array = _created("arange", there.xp.arange, given, dtype=dtype, device=where)
        return there.new(array)

    def linspace(
        self,
        start: Any,
        stop: Any,
        /,
        num: int,
        *,
        dtype: Any = None,
        device: Any = None,
        endpoint: bool = True,
    ) -> Variable:
        """``num`` numbers from ``start`` to ``stop`` at equal distances.

        ``start`` and ``stop`` may be 0-d Variables; then y = start + t * (stop - start).
        """
        there, num = self._at(device), as_integer("xp.linspace", "num", num)
        endpoint = as_flag("xp.linspace", "endpoint", endpoint)
        options = {"device": there.library_device, "endpoint": endpoint}
        if not isinstance(start, ArrayMethods) and not isinstance(stop, ArrayMethods):
            given = {"start": _number(start), "stop": _number(stop), "num": num}
            return there.new(
                _created("linspace", there.xp.linspace, given, dtype=dtype, **options)
            )
        kind = as_variable(start if isinstance(start, ArrayMethods) else stop).dtype
        unit = {"start": 0.0, "stop": 1.0, "num": num}
        line = _created("linspace", there.xp.linspace, unit, dtype=kind, **options)
        t = there.new(line)
        return self._cast("linspace", start * (1 - t) + stop * t, dtype)

    def eye(
        self,
        n_rows: int,
        n_cols: int | None = None,
        /,
        *,
        k: int = 0,
        dtype: Any = None,
        device: Any = None,
    ) -> Variable:
        """Ones on the diagonal ``k``, zeros elsewhere: (n_rows, n_cols)."""
        there = self._at(device)
        where = there.library_device
        k = as_integer("xp.eye", "k", k)
        given = {"n_rows": n_rows, "n_cols": n_cols}
        array = _created("eye", there.xp.eye, given, k=k, dtype=dtype, device=where)
        return there.new(array)

    def meshgrid(self, *arrays: Any, indexing: str = "xy") -> tuple[Variable, ...]:
        """Coordinate matrices from coordinate vectors."""
        return functions.meshgrid(*[self._lift("meshgrid", x) for x in arrays], indexing=indexing)

    def tril(self, x: Any, /, *, k: int = 0) -> Variable:
        """x with zeros above the diagonal ``k``."""
        return functions.tril(self._lift("tril", x), k=k)

    def triu(self, x: Any, /, *, k: int = 0) -> Variable:
        """x with zeros below the diagonal ``k``."""
        return functions.triu(self._lift("triu", x), k=k)


def _number(x: Any) -> Any:
    """A Python number of a Variable or an array with a single element; others unchanged."""
    return x.item() if hasattr(x, "item") else x


def _has_dtype(item: Any) -> bool:
    """True for a Variable, for an array, and for a list with an array."""
    return hasattr(item, "dtype") or _holds_arrays(item)


def _holds_arrays(items: Any) -> bool:
    """True if a nested list holds a Variable or an array."""
    if not isinstance(items, list | tuple):
        return False
    for item in nested_items("xp.asarray", "obj", items):
        is_list = isinstance(item, list | tuple)
        if not is_list and hasattr(item, "dtype") and not isinstance(item, numpy.generic):
            return True
    return False


def _created(
    function: str, make: Callable[..., Array], given: dict[str, Any], **options: Any
) -> Array:
    """The array of a creation function of the library; its errors name the arguments ``given``."""
    try:
        return make(*given.values(), **options)
    except (MemoryError, OverflowError, TypeError, ValueError) as error:
        texts = ", ".join(f"{name} {short_text(value)}" for name, value in given.items())
        told = f"xp.{function}: cannot make an array with {texts}: {error}."
        if isinstance(error, MemoryError | OverflowError) or is_too_large(error):
            raise SizeError(told) from error
        if isinstance(error, TypeError):
            raise OperandError(told) from error
        raise ValueError(told) from error
