"""Arrays that write an ONNX model: each function of arrays adds operators to a graph.

Requirement: a function of tinynode is written by its own ``forward``, without a second definition.
So ``forward`` runs on arrays with a name in the graph, a shape and a dtype. The device ``shapes``
gives the shape and the dtype of each result. An array without a graph is a constant: NumPy
computes functions of constants, and no operator is added.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import onnx
from numpy.lib.mixins import NDArrayOperatorsMixin

from tinynode.devices import get_backend, namespace_of
from tinynode.errors import NoValuesError, TinynodeError

UFUNCS = {"absolute": "abs", "invert": "bitwise_invert", "power": "pow", "true_divide": "divide"}
"""The names in the Array API standard of NumPy's functions behind operators."""
FILLED = ("empty_like", "full_like", "ones_like", "zeros_like")
"""The functions that read the shape and the dtype of an array alone."""
OF_DTYPES = ("can_cast", "finfo", "iinfo", "isdtype", "result_type")
"""The functions that give no arrays."""
LONG = 32
"""The elements of an array that is written as one number, repeated, if all are equal."""


class OnnxError(TinynodeError, NotImplementedError):
    """A function cannot be written as an ONNX model."""


class Graph:
    """The operators of a model in run order, and the constants by name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.label = ""  # the function of tinynode that is written now
        self._names: dict[int, tuple[str, OnnxArray]] = {}  # of constants, by id
        self._counts: Counter[str] = Counter()

    def add(self, kind: str, operands: Sequence[Any], *likes: Any, **attributes: Any) -> Any:
        """Add an operator. The result is its output, or a list of several outputs.

        Args:
            kind: the name of the operator in ONNX.
            operands: arrays.
            likes: for each output, an object with its shape and its dtype.
            attributes: the attributes of the operator.
        """
        names = [self.name_of(x) for x in operands]
        title = self._new_name(f"{self.label}/{kind}")
        outputs = [f"{title}{i or ''}" for i in range(len(likes))]
        self.nodes.append(onnx.helper.make_node(kind, names, outputs, title, **attributes))
        made = [OnnxArray(y.shape, y.dtype, self, n) for y, n in zip(likes, outputs, strict=True)]
        return made[0] if len(made) == 1 else made

    def name_of(self, x: OnnxArray) -> str:
        """The name of an array; a constant gets a name at the first use."""
        if x.value is None:
            return x.name
        if id(x) not in self._names:
            name = x.name or self._new_name(f"{self.label}/constant")
            first = x.value.reshape(-1)[:1]
            if x.size >= LONG and not x.name and (x.value == first).all():
                shape = constant(numpy.asarray(x.shape, numpy.int64), f"{name}/shape")
                name = self.add("Expand", [constant(first, f"{name}/number"), shape], x).name
            else:
                self.constants[name] = x.value
            self._names[id(x)] = name, x  # x stays alive, and keeps its id
        return self._names[id(x)][0]

    def _new_name(self, title: str) -> str:
        self._counts[title] += 1
        return f"{title}{self._counts[title]}"


class OnnxArray(NDArrayOperatorsMixin):  # type: ignore[misc,unused-ignore]
    """An array of a graph. Operators call NumPy functions, which call ``__array_ufunc__``.

    Args:
        shape: the shape.
        dtype: a dtype of NumPy.
        graph: the graph; None for a constant.
        name: the name in the graph.
        value: the value of a constant, or of a parameter, a NumPy array; None for others.
    """

    __slots__ = ("dtype", "graph", "name", "shape", "value")
    __hash__ = None  # type: ignore[assignment]
    device = "onnx"

    def __init__(
        self, shape: Any, dtype: Any, graph: Graph | None, name: str = "", value: Any = None
    ) -> None:
        self.shape, self.dtype, self.graph = tuple(shape), numpy.dtype(dtype), graph
        self.name, self.value = name, value

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def mT(self) -> Any:
        """The array with the last two axes swapped."""
        return namespace_of(self).matrix_transpose(self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """A function of the namespace. ``x += y`` gives a new array: arrays never change."""
        return getattr(namespace_of(self), UFUNCS.get(ufunc.__name__, ufunc.__name__))(*inputs)

    def __getitem__(self, key: Any) -> Any:
        return namespace_of(self).getitem(self, key)

    def __bool__(self) -> bool:
        return bool(value_of(self))

    def __int__(self) -> int:
        return int(value_of(self))

    def __float__(self) -> float:
        return float(value_of(self))


def constant(value: Any, name: str = "") -> OnnxArray:
    """A constant."""
    array = numpy.asarray(value)
    return OnnxArray(array.shape, array.dtype, None, name, array)


def value_of(x: OnnxArray) -> Any:
    """The value of a constant.

    Raises:
        NoValuesError: the array has a value only while the model runs.
    """
    if x.value is None:
        raise NoValuesError("it reads a value, and values are known only while the model runs")
    return x.value


def shape_of(x: OnnxArray) -> Any:
    """The shape and the dtype, as an array of the device ``shapes``."""
    return get_backend("shapes").from_host(x, "shapes")


def each(function: Any, item: Any) -> Any:
    """The item, with ``function`` of each OnnxArray in it."""
    if isinstance(item, OnnxArray):
        return function(item)
    if isinstance(item, dict):
        return {key: each(function, one) for key, one in item.items()}
    if isinstance(item, tuple | list):
        return type(item)([each(function, one) for one in item])
    return item


class OnnxFunction:
    """A function of the standard: NumPy's for constants, else operators of a graph.

    Args:
        name: the name of the function.
        on_values: NumPy's function.
        on_shapes: the function of the device ``shapes``.
        write: adds the operators; None if ONNX has none.
    """

    def __init__(self, name: str, on_values: Any, on_shapes: Any, write: Any) -> None:
        self.name, self.on_values, self.on_shapes, self.write = name, on_values, on_shapes, write

    def __call__(self, *args: Any, device: Any = None, **options: Any) -> Any:
        arrays: list[OnnxArray] = []
        each(arrays.append, [args, options])
        graphs = [x.graph for x in arrays if x.graph is not None]
        if not graphs:
            args, options = each(value_of, args), each(value_of, options)
            return as_constants(self.on_values(*args, **options))
        like = self.on_shapes(*each(shape_of, args), **each(shape_of, options))
        if self.name in FILLED:
            return constant(self.on_values(numpy.zeros(like.shape, like.dtype), *args[1:]))
        if 0 in getattr(like, "shape", ()):
            return constant(numpy.zeros(like.shape, like.dtype))
        if self.write is None:
            raise OnnxError(f"ONNX has no operator for {self.name}")
        return self.write(graphs[0], like, *args, **options)


def as_constants(result: Any) -> Any:
    """Arrays and scalars of NumPy as constants, also in tuples and lists."""
    if isinstance(result, tuple | list):
        return tuple([as_constants(one) for one in result])
    return constant(result)


class OnnxNamespace:
    """The Array API standard on arrays of a graph.

    Args:
        writers: the functions that add operators, by name.
        composed: an object with functions made of the other functions.
        part: the name of an extension of the standard, such as ``linalg``.
    """

    def __init__(self, writers: Mapping[str, Any], composed: Any, part: str = "") -> None:
        self.writers, self.composed, self.part = writers, composed, part

    def __getattr__(self, name: str) -> Any:
        if hasattr(self.composed, name):
            return getattr(self.composed, name)
        if name in ("linalg", "fft"):
            return OnnxNamespace(self.writers, self.composed, name)
        if name == "getitem":
            return OnnxFunction(name, operator.getitem, operator.getitem, self.writers[name])
        shapes, library = get_backend("shapes").namespace(), numpy
        if self.part:
            shapes, library = getattr(shapes, self.part), getattr(numpy, self.part)
        found = getattr(shapes, name)
        if isinstance(found, type) or not callable(found) or name in OF_DTYPES:
            return found
        return OnnxFunction(name, getattr(library, name), found, self.writers.get(name))
