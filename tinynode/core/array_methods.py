"""ArrayMethods: the methods that make a Variable an array.

Requirement: a Variable feels like an array. So a Variable has an array's facts, operators, shapes,
writes, conversions and text. Each method calls a function of ``tinynode.functions``, which lies
above this module: a function is looked up at call time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Never

import numpy

import tinynode
from tinynode.core.hooks import tell_detached, tell_value_read
from tinynode.core.operators import Operators
from tinynode.devices import (
    Array,
    Device,
    has_no_values,
    is_integer,
    to_host,
    using_device,
    without_hidden_axes,
)
from tinynode.errors import (
    GraphError,
    OperandError,
    describe,
    dtype_name,
    printable,
    unknown_keywords,
)


class ElementCount(int):
    """The number of elements. PyTorch's ``x.size()`` is refused with the name to write."""

    __slots__ = ()

    def __call__(self, *axes: Any) -> Never:
        raise TypeError("x.size is the number of elements: write x.shape in place of x.size().")


class ArrayMethods(Operators):
    """Base class of Variable, and of ``StandIn``: an array in the place of a Variable.

    Attributes:
        raw: the array, for functions of tinynode. ``Variable.array`` is the same array, and tells
            the hooks about the reading.
    """

    __slots__ = ()

    raw: Array

    @property
    def device(self) -> Device:
        """The device that holds the array."""
        raise NotImplementedError

    @property
    def name(self) -> str | None:
        """A name for pictures and messages."""
        raise NotImplementedError

    @property
    def requires_grad(self) -> bool:
        """True if backward computes a gradient for the Variable."""
        raise NotImplementedError

    def as_variable(self) -> tinynode.Variable:
        """The Variable for functions to use: for a stand-in, the one behind."""
        raise NotImplementedError

    # --- facts -----------------------------------------------------------------------------

    def filled_array(self) -> Array:
        """The array.

        Raises:
            GraphError: the variable is empty.
        """
        if self.raw is None:
            raise GraphError(
                f"variable {printable(self.name or '')} is empty: it has no array yet. "
                "Assign one to its .array."
            )
        return self.raw

    @property
    def xp(self) -> Any:
        """The Array API namespace of the array."""
        return self.device.xp

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The differentiable namespace of the Array API standard, the same for each device.

        Raises:
            ValueError: ``api_version`` is not a release of the standard.
        """
        return tinynode.array_api.checked_namespace(self.device, api_version)

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""
        return tuple(self.filled_array().shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return int(self.filled_array().ndim)

    @property
    def size(self) -> int:
        """The number of elements."""
        return ElementCount(math.prod(self.shape))

    @property
    def dtype(self) -> Any:
        """The array's dtype."""
        return self.filled_array().dtype

    # --- Python's conversions --------------------------------------------------------------

    def item(self) -> Any:
        """The Python number in a size-one variable.

        x: one element, of any shape -> a number.

            >>> tn.asarray([2.0, 3.0]).sum().item()
            5.0
        """
        tell_value_read("x.item(), or bool(x), int(x) or float(x),")
        if self.size != 1:
            raise ValueError(
                f"item(): only a variable of size one is a number, this one has shape "
                f"{self.shape}. Index it, or use .array."
            )
        return to_host(self.raw).item()

    def tolist(self) -> Any:
        """The elements as Python numbers, in nested lists; a number for shape ().

        x: (n, m) -> n lists of m numbers.

            >>> (tn.asarray([1, 2]) + 1).tolist()
            [2, 3]
        """
        tell_value_read("x.tolist()")
        return to_host(self.filled_array()).tolist()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                "bool(x): only a variable of size one is true or false, this one has shape "
                f"{self.shape}. For `if`, use x.xp.any(x.array) or x.xp.all(x.array); to choose "
                "by element, functions.where(x, a, b). Python's max, min and `in` compare too: "
                "use functions.maximum, functions.minimum, or any(x is y for y in ys)."
            )
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        tinynode.array_api.gradient_cut.warn_of_cut(self, "float(x)")
        return float(self.item())

    def __complex__(self) -> complex:
        tinynode.array_api.gradient_cut.warn_of_cut(self, "complex(x)")
        return complex(self.item())

    def __index__(self) -> int:
        if self.ndim != 0 or not is_integer(self.raw):
            raise TypeError(
                "operator.index(x): only an integer variable of shape () is an index, this one "
                f"has shape {self.shape} and dtype {dtype_name(self.dtype)}. Write int(x), or "
                "x.astype('int64')."
            )
        tell_value_read("an index")
        return int(to_host(self.raw))

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a 0-d variable: it has no axes.")
        return self.shape[0]

    def __iter__(self) -> Iterator[tinynode.Variable]:
        if self.ndim == 0:
            raise TypeError("iter(x): a 0-d variable has no axis to iterate over: use x.item().")
        return iter([self[i] for i in range(len(self))])

    def numpy(self) -> Any:
        """The array as a NumPy array, for a Variable that requires no gradient.

            >>> (tn.asarray([1.0, 2.0]) * 2).detach().numpy()
            array([2., 4.], dtype=float32)

        Raises:
            TypeError: the Variable requires a gradient.
        """
        if self.requires_grad:
            raise TypeError(
                "x.numpy(): x requires a gradient, and the graph would end here. Write "
                "x.detach().numpy(), or tn.to_host(x)."
            )
        tell_value_read("x.numpy()")
        return to_host(self.filled_array())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        tell_value_read("numpy.asarray(x), or array[x],")
        if self.requires_grad:
            raise TypeError(
                "a Variable that requires a gradient does not turn into a NumPy array silently: "
                "the graph would end there. Use tn.to_host(x), x.detach(), or tinynode.functions."
            )
        return numpy.array(to_host(self.filled_array()), dtype=dtype, copy=copy)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The array for another library, which shares the memory: ``numpy.from_dlpack(x)``."""
        names = ("stream", "max_version", "dl_device", "copy")
        values = (stream, max_version, dl_device, copy)
        given = {n: value for n, value in zip(names, values, strict=True) if value is not None}
        return self._shared_array().__dlpack__(**given)

    def __dlpack_device__(self) -> tuple[Any, int]:
        """The kind of memory and the number of the device, in the terms of DLPack."""
        kind, number = self._shared_array().__dlpack_device__()
        return kind, int(number)

    def _shared_array(self) -> Array:
        tell_value_read("x.__dlpack__()")
        if self.requires_grad:
            raise BufferError(
                "x.__dlpack__(): x requires a gradient, and the graph would end in the other "
                "library. Hand over x.detach(), or x.array."
            )
        return self.filled_array()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's ``np.sin(x)``, ``np.add(x, 1)`` and ``numpy_array * x``."""
        function = tinynode.numpy_functions.UFUNCS.get(ufunc)
        if function is None or options or method != "__call__":
            return tinynode.numpy_functions.refused_ufunc(ufunc, method, inputs, options)
        return function(*(_number(value) for value in inputs))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """NumPy's ``np.sum(x)`` and ``np.concatenate([x, y])``."""
        return tinynode.numpy_functions.call_function(function, args, options)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:
            """The error for a wrong name; Python asks only for names that do not exist."""
            raise tinynode.habits.missing_attribute(
                "x", name, () if name[0] == "_" else dir(self), tinynode.functions.__all__
            )

    def __repr__(self) -> str:
        return self._text("variable", ", ")

    def __str__(self) -> str:
        return self._text("variable", " ")

    def __format__(self, spec: str) -> str:
        """The text of ``str``; with a specification that of its number: ``f"{loss:.3f}"``."""
        if spec and self.size != 1:
            raise ValueError(
                f'f"{{x:{spec}}}": a number format needs a variable of size one, x has shape '
                f'{self.shape}. Choose an element, f"{{x[0]:{spec}}}", or leave {spec!r} out.'
            )
        return format(self.item(), spec) if spec else str(self)

    def _text(self, word: str, separator: str) -> str:
        head = f"{word} {printable(self.name)}" if self.name else word
        return array_text(self.raw, head, separator)

    def __copy__(self: Any) -> Any:
        with using_device(self.device):
            copied = type(self)(self.raw, name=self.name, requires_grad=self.requires_grad)
        copied.grad_var = self.grad_var
        tell_detached(self, copied)
        return copied

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        return tinynode.core.conversion.deep_copy(self, memo)

    def __reduce__(self: Any) -> tuple[Any, ...]:
        tell_value_read("a copy or a pickle of x")
        return tinynode.core.conversion.reduce_variable(self)

    def summary(self: Any) -> str:
        """Name, shape, dtype, device and creator in one line."""
        creator = "leaf" if self.creator_node is None else f"from {self.creator_node.label}"
        grad = "requires grad" if self.requires_grad else "no grad"
        name = printable(self.name or "variable")
        return f"{name}: {self.label} on {self.device}, {grad}, {creator}"

    def debug_print(self: Any) -> str:
        """The summary, and mean, standard deviation and a few values of array and gradient."""
        texts = [statistics_text("array", self.raw), statistics_text("grad", self.grad)]
        return "\n".join([self.summary(), *texts])

    def _repr_html_(self: Any) -> str:
        return tinynode.show.variable_html.variable_html(self)

    def explain_grad(self: Any, y: tinynode.Variable | None = None) -> str:
        """Why ``grad`` is there or None, in words, and what to do next.

            >>> x = tn.asarray([2.0])
            >>> "no recorded function has used it" in x.explain_grad()
            True

        Args:
            y: the Variable of the call of ``backward``: the text says if y depends on x.
        """
        return tinynode.show.explain.explain_grad(self, y)

    # --- shapes ----------------------------------------------------------------------------

    @property
    def T(self) -> tinynode.Variable:
        """The variable with its axes reversed."""
        return tinynode.functions.permute_dims(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> tinynode.Variable:
        """The variable with its last two axes swapped: each matrix of a stack transposed."""
        return tinynode.functions.matrix_transpose(self)

    def reshape(self, *shape: Any) -> tinynode.Variable:
        """The same elements in another shape: ``x.reshape(2, 3)`` or ``x.reshape((2, 3))``.

        x: (s) -> y: (shape), with the elements in the same order.

            >>> tn.asarray([1.0, 2.0, 3.0, 4.0]).reshape(2, 2).tolist()
            [[1.0, 2.0], [3.0, 4.0]]
        """
        return tinynode.functions.reshape(self, _one_tuple(shape))

    def transpose(self, *axes: Any) -> tinynode.Variable:
        """The axes in another order; reversed where none is given."""
        if not axes or axes == (None,):
            return self.T
        return tinynode.functions.permute_dims(self, _one_tuple(axes))

    def sum(self, axis: Any = None, keepdims: bool = False, **unknown: Never) -> tinynode.Variable:
        """The sum over ``axis``, or over all elements.

        x: (s) -> y: (s without the axes).

            >>> tn.asarray([[1.0, 2.0], [3.0, 4.0]]).sum(axis=0).tolist()
            [4.0, 6.0]
        """
        return tinynode.functions.sum(self, axis=axis, keepdims=keepdims, **unknown)

    def mean(
        self, axis: Any = None, *, weights: Any = None, keepdims: bool = False, **unknown: Never
    ) -> tinynode.Variable:
        """The mean over ``axis``, or over all elements; ``weights`` broadcast to the shape.

        x: (s) -> y: (s without the axes).

            >>> tn.asarray([[1.0, 2.0], [3.0, 5.0]]).mean(axis=1).tolist()
            [1.5, 4.0]
        """
        return tinynode.functions.mean(
            self, axis=axis, weights=weights, keepdims=keepdims, **unknown
        )

    def prod(
        self, axis: Any = None, keepdims: bool = False, **unknown: Never
    ) -> tinynode.Variable:
        """The product over ``axis``, or over all elements."""
        return tinynode.functions.prod(self, axis=axis, keepdims=keepdims, **unknown)

    def max(self, axis: Any = None, keepdims: bool = False, **unknown: Never) -> tinynode.Variable:
        """The largest element over ``axis``, or of all; for two Variables, see ``maximum``."""
        return tinynode.functions.max(self, axis=axis, keepdims=keepdims, **unknown)

    def min(self, axis: Any = None, keepdims: bool = False, **unknown: Never) -> tinynode.Variable:
        """The smallest element over ``axis``, or of all."""
        return tinynode.functions.min(self, axis=axis, keepdims=keepdims, **unknown)

    def var(
        self, axis: Any = None, correction: float = 0.0, keepdims: bool = False, **unknown: Never
    ) -> tinynode.Variable:
        """The variance over ``axis``, or of all; divided by n - ``correction``."""
        return tinynode.functions.var(self, axis, correction, keepdims, **unknown)

    def std(
        self, axis: Any = None, correction: float = 0.0, keepdims: bool = False, **unknown: Never
    ) -> tinynode.Variable:
        """The standard deviation over ``axis``, or of all: the square root of ``var``."""
        return tinynode.functions.std(self, axis, correction, keepdims, **unknown)

    def argmax(
        self, axis: int | None = None, keepdims: bool = False, **unknown: Never
    ) -> tinynode.Variable:
        """The index of the largest element along ``axis``, or in x flattened."""
        return tinynode.functions.argmax(self, axis=axis, keepdims=keepdims, **unknown)

    def argmin(
        self, axis: int | None = None, keepdims: bool = False, **unknown: Never
    ) -> tinynode.Variable:
        """The index of the smallest element along ``axis``, or in x flattened."""
        return tinynode.functions.argmin(self, axis=axis, keepdims=keepdims, **unknown)

    def flatten(self, start_axis: int = 0, **unknown: Never) -> tinynode.Variable:
        """The axes from ``start_axis`` on as one axis; ``flatten(1)`` keeps the first axis.

        Raises:
            ValueError: there is no such axis.
        """
        if unknown:
            raise unknown_keywords("flatten", unknown)
        start = start_axis + self.ndim if start_axis < 0 else start_axis
        if not 0 <= start < max(self.ndim, 1):
            raise ValueError(
                f"flatten: start_axis {start_axis} does not exist in an array of {self.ndim} axes."
            )
        shape = (*self.shape[:start], math.prod(self.shape[start:]))
        return tinynode.functions.reshape(self, shape)

    def squeeze(self, axis: Any = None, **unknown: Never) -> tinynode.Variable:
        """The variable without ``axis`` of length 1, or without all axes of length 1."""
        if axis is None:
            axis = tuple(i for i, n in enumerate(self.shape) if n == 1)
        return tinynode.functions.squeeze(self, axis, **unknown)

    def exp(self) -> tinynode.Variable:
        """e^x by element."""
        return tinynode.functions.exp(self)

    def log(self) -> tinynode.Variable:
        """The natural logarithm by element."""
        return tinynode.functions.log(self)

    def sqrt(self) -> tinynode.Variable:
        """The square root by element."""
        return tinynode.functions.sqrt(self)

    def abs(self) -> tinynode.Variable:
        """The absolute value by element."""
        return tinynode.functions.arithmetic.abs(self)

    def sin(self) -> tinynode.Variable:
        """The sine by element."""
        return tinynode.functions.sin(self)

    def cos(self) -> tinynode.Variable:
        """The cosine by element."""
        return tinynode.functions.cos(self)

    def tanh(self) -> tinynode.Variable:
        """The hyperbolic tangent by element."""
        return tinynode.functions.tanh(self)

    def sigmoid(self) -> tinynode.Variable:
        """1 / (1 + e^-x) by element."""
        return tinynode.functions.sigmoid(self)

    def relu(self) -> tinynode.Variable:
        """max(x, 0) by element."""
        return tinynode.functions.relu(self)

    def clip(self, min: Any = None, max: Any = None) -> tinynode.Variable:
        """The elements, at least ``min`` and at most ``max``."""
        return tinynode.functions.clip(self, min, max)

    def to_device(self, device: str | Device, /, *, stream: Any = None) -> tinynode.Variable:
        """A Variable with the same values on another device; its gradient comes back here.

            >>> str(tn.asarray([1.0]).to_device("fast").device)
            'fast'

        Raises:
            OperandError: ``stream`` is not None: the stream is that of the array library.
        """
        if stream is not None:
            raise OperandError(
                f"x.to_device: stream must be None, got {describe(stream)}. Choose a stream with "
                "the array library, around this call."
            )
        return tinynode.functions.to_device(self, device)

    def astype(self, dtype: Any) -> tinynode.Variable:
        """A Variable with the values cast to ``dtype``."""
        return tinynode.functions.astype(self, dtype)

    def __getitem__(self, index: Any) -> tinynode.Variable:
        return tinynode.functions.get_item(self, index)

    def copydata(self: Any, other: tinynode.Variable) -> None:
        """Copy another Variable's values into the same array."""
        tell_value_read("x.copydata()")
        host = to_host(other.filled_array())
        if self.raw is None:
            self.array = self.device.from_host(host.copy())
        else:
            values = self.xp.asarray(self.device.from_host(host), dtype=self.raw.dtype)
            self.raw[...] = values


def _number(value: Any) -> Any:
    """A NumPy array without axes as a scalar: NumPy makes such arrays of its own scalars."""
    return value[()] if type(value) is numpy.ndarray and not value.shape else value


def _one_tuple(arguments: tuple[Any, ...]) -> tuple[int, ...]:
    if len(arguments) == 1 and isinstance(arguments[0], tuple | list):
        return tuple(arguments[0])
    return arguments


def array_text(array: Array, head: str, separator: str) -> str:
    """``head(values)``; for an array without values also its shape."""
    if array is None or has_no_values(array):
        return f"{head}({array})"
    host = to_host(without_hidden_axes(array))
    values = numpy.array2string(host, separator=separator, prefix=head + "(")
    shape = f", shape={host.shape}" if host.size == 0 else ""
    return f"{head}({values}{shape})"


def statistics_text(title: str, array: Array | None) -> str:
    """Mean, standard deviation and a few values, in lines."""
    if array is None or has_no_values(array):
        return f"  {title}: {array}"
    host = to_host(without_hidden_axes(array))
    values = f"  {title}: {numpy.array2string(host, threshold=20, edgeitems=2)}"
    if not host.size or host.dtype.kind not in "iufb":
        return values
    return f"  {title}: mean {host.mean():.6g}, std {host.std():.6g}\n{values}"
