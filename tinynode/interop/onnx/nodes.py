"""The backend of arrays that write an ONNX model, and functions with operators of their own.

Requirement: most functions of tinynode need nothing here: ``forward`` writes their operators. A
function is in ``NODES`` if its ``forward`` would write many: convolution, pooling, sums of
products, layer normalisation, erf. Then onnxruntime has a kernel for each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from tinynode.devices import Fallback, get_device, register_backend
from tinynode.functions.activation import GELU, ReLU
from tinynode.functions.convolution import Conv2d, Conv2dGradW, Conv2dGradX
from tinynode.functions.data_types import ToDevice
from tinynode.functions.gaussian import Erf
from tinynode.functions.network import Linear
from tinynode.functions.normalization import Standardize
from tinynode.functions.pooling import AvgPool2d, AvgPool2dGrad, MaxPool2d, MaxPool2dGrad
from tinynode.functions.products import Einsum
from tinynode.interop.onnx.arrays import (
    Graph,
    OnnxArray,
    OnnxError,
    constant,
    each,
    value_of,
)
from tinynode.interop.onnx.operators import XP, cast, integers, positions

# Each function below gets the graph, the FunctionNode and its inputs, and gives the output, or a
# list of outputs, or Fallback for the operators of ``forward``.


def _identity(graph: Graph, node: Any, x: Any) -> Any:
    """A model has one device."""
    return x


def _erf(graph: Graph, node: Any, x: Any) -> Any:
    """The error function."""
    return graph.add("Erf", [x], x)


def _gelu(graph: Graph, node: Any, x: Any) -> Any:
    """x (1 + erf(x / sqrt 2)) / 2, with x held above -40: -inf times 0 is NaN."""
    held = graph.add("Max", [x, constant(numpy.asarray(-40.0, x.dtype))], x)
    return held * (graph.add("Erf", [held * math.sqrt(0.5)], x) + 1.0) * 0.5


def _relu(graph: Graph, node: Any, x: Any) -> Any:
    """max(x, 0)."""
    return graph.add("Relu", [x], x)


def _linear(graph: Graph, node: Any, x: Any, w: Any, *b: Any) -> Any:
    """Gemm, for a matrix x."""
    like = OnnxArray((x.shape[0], w.shape[0]), x.dtype, graph)
    return graph.add("Gemm", [x, w, *b], like, transB=1) if x.ndim == 2 else Fallback


def _einsum(graph: Graph, node: Any, *arrays: Any) -> Any:
    """Einsum, with operands of one dtype."""
    lengths: dict[str, int] = {}
    for labels, x in zip(node.subscripts, arrays, strict=True):
        lengths.update(zip(labels, x.shape, strict=True))
    like = OnnxArray([lengths[n] for n in node.output], XP.result_type(*arrays), graph)
    operands = [cast(graph, x, like.dtype) for x in arrays]
    equation = f"{','.join(node.subscripts)}->{node.output}"
    return graph.add("Einsum", operands, like, equation=equation)


def _standardize(graph: Graph, node: Any, x: Any) -> Any:
    """LayerNormalization, for the last axes."""
    axes = sorted(axis % x.ndim for axis in node.axes)
    if not node.center or axes != list(range(axes[0], x.ndim)):
        return Fallback
    row = OnnxArray((*x.shape[: axes[0]], *[1] * len(axes)), x.dtype, graph)
    scale = constant(numpy.ones(x.shape[axes[0] :], x.dtype))
    options = {"axis": axes[0], "epsilon": node.eps}
    return graph.add("LayerNormalization", [x, scale], x, row, row, **options)


# --- windows on images ---------------------------------------------------------------------------


def _options_of(windows: Any) -> dict[str, Any]:
    """The attributes for windows."""
    pads = windows.padding * 2
    return {"strides": windows.stride, "pads": pads, "dilations": windows.dilation}


def _conv(graph: Graph, x: Any, w: Any, windows: Any, counts: Any, groups: int) -> Any:
    """A convolution. More windows may fit on an image than the first ``counts``."""
    like = OnnxArray((x.shape[0], w.shape[0], *windows.counts(x.shape[2:])), x.dtype, graph)
    y = graph.add("Conv", [x, w], like, group=groups, **_options_of(windows))
    return y[:, :, : counts[0], : counts[1]]


def _conv_transpose(graph: Graph, x: Any, w: Any, windows: Any, image: Any, groups: int) -> Any:
    """A transposed convolution. Pixels behind the last window are 0."""
    lines = zip(x.shape[2:], *windows, strict=True)
    reach = [(m - 1) * s + d * (k - 1) + 1 - p for m, k, s, p, d in lines]
    shape = x.shape[0], w.shape[1] * groups
    options = _options_of(windows) | {"pads": (*windows.padding, 0, 0)}
    like = OnnxArray((*shape, *reach), x.dtype, graph)
    y = graph.add("ConvTranspose", [x, w], like, group=groups, **options)
    ends = [n - m for n, m in zip(image, reach, strict=True)]
    like = OnnxArray((*shape, *image), x.dtype, graph)
    return graph.add("Pad", [y, integers(0, 0, 0, 0, 0, 0, *ends)], like) if any(ends) else y


def _conv2d(graph: Graph, node: Any, x: Any, w: Any) -> Any:
    """A convolution."""
    return _conv(graph, x, w, node.windows, node.counts, node.groups)


def _conv2d_grad_x(graph: Graph, node: Any, gy: Any, w: Any) -> Any:
    """A transposed convolution."""
    return _conv_transpose(graph, gy, w, node.windows, node.image, node.groups)


def _conv2d_grad_w(graph: Graph, node: Any, x: Any, gy: Any) -> Any:
    """A convolution with gy as the kernels. Images and channels, stride and dilation swap."""
    n, channels, *image = x.shape
    groups, windows = node.groups, node.windows
    x = XP.reshape(x, (n, groups, channels // groups, *image))
    x = XP.reshape(XP.permute_dims(x, (2, 1, 0, 3, 4)), (channels // groups, groups * n, *image))
    gy = XP.permute_dims(gy, (1, 0, 2, 3))
    swapped = windows._replace(size=gy.shape[2:], stride=windows.dilation, dilation=windows.stride)
    gw = _conv(graph, x, gy, swapped, windows.size, groups)
    return XP.permute_dims(gw, (1, 0, 2, 3))


def _one_hot(x: Any, windows: Any) -> OnnxArray:
    """Kernels with a single 1, for each channel and each element of a window."""
    elements = math.prod(windows.size)
    kernels = numpy.eye(elements, dtype=x.dtype).reshape(elements, 1, *windows.size)
    return constant(numpy.tile(kernels, (x.shape[1], 1, 1, 1)))


def _elements_of(graph: Graph, x: Any, windows: Any, counts: Any) -> Any:
    """The elements of each window: (n, channels, ...) -> (n, channels, elements, *counts)."""
    parts = _conv(graph, x, _one_hot(x, windows), windows, counts, x.shape[1])
    return XP.reshape(parts, (*x.shape[:2], math.prod(windows.size), *counts))


def _image_of(graph: Graph, parts: Any, windows: Any, image: Any) -> Any:
    """The sum of the elements at each pixel: ``_elements_of`` transposed."""
    n, channels, elements, *counts = parts.shape
    flat = XP.reshape(parts, (n, channels * elements, *counts))
    return _conv_transpose(graph, flat, _one_hot(parts, windows), windows, image, channels)


def _max_pool(graph: Graph, node: Any, x: Any) -> Any:
    """The largest elements; and the winners, which a model without gradients leaves out."""
    windows, counts = node.windows, node.windows.counts(x.shape[2:])
    like = OnnxArray((*x.shape[:2], *counts), x.dtype, graph)
    y = graph.add("MaxPool", [x], like, kernel_shape=windows.size, **_options_of(windows))
    least = constant(numpy.finfo(x.dtype).min)  # -inf * 0 is NaN
    like = OnnxArray((*x.shape[:2], *windows.padded(x.shape[2:])), x.dtype, graph)
    border = integers(0, 0, *windows.padding, 0, 0, *windows.padding)
    padded = graph.add("Pad", [XP.maximum(x, least), border, least], like)
    parts = _elements_of(graph, padded, windows._replace(padding=(0, 0)), counts)
    dtype = numpy.int8 if math.prod(windows.size) < 128 else numpy.int32
    return [y, cast(graph, XP.argmax(parts, axis=2), dtype)]


def _max_pool_grad(graph: Graph, node: Any, gy: Any, winners: Any) -> Any:
    """The gradients, added where the winners stood."""
    numbers = constant(numpy.arange(math.prod(node.windows.size)).reshape(-1, 1, 1))
    is_winner = cast(graph, winners, numpy.int64)[:, :, None, :, :] == numbers
    parts = gy[:, :, None, :, :] * cast(graph, is_winner, gy.dtype)
    return _image_of(graph, parts, node.windows, node.image)


def _avg_pool(graph: Graph, node: Any, x: Any) -> Any:
    """The means of windows; the border counts."""
    windows = node.windows
    like = OnnxArray((*x.shape[:2], *windows.counts(x.shape[2:])), x.dtype, graph)
    options = _options_of(windows) | {"kernel_shape": windows.size, "count_include_pad": 1}
    del options["dilations"]  # the operator has them since opset 19
    return graph.add("AveragePool", [x], like, **options)


def _avg_pool_grad(graph: Graph, node: Any, gy: Any) -> Any:
    """Equal shares of the gradients, added up over windows."""
    elements = math.prod(node.windows.size)
    share = gy[:, :, None, :, :] * (1.0 / elements)
    parts = XP.broadcast_to(share, (*gy.shape[:2], elements, *gy.shape[2:]))
    return _image_of(graph, parts, node.windows, node.image)


NODES: dict[type, Any] = {
    AvgPool2d: _avg_pool,
    AvgPool2dGrad: _avg_pool_grad,
    Conv2d: _conv2d,
    Conv2dGradW: _conv2d_grad_w,
    Conv2dGradX: _conv2d_grad_x,
    Einsum: _einsum,
    Erf: _erf,
    GELU: _gelu,
    Linear: _linear,
    MaxPool2d: _max_pool,
    MaxPool2dGrad: _max_pool_grad,
    ReLU: _relu,
    Standardize: _standardize,
    ToDevice: _identity,
}
"""The functions of tinynode with operators of their own."""


class OnnxBackend:
    """The backend ``onnx``. Its arrays write models; see the protocol ``Backend``."""

    name = "onnx"
    capabilities = frozenset({"float64", "shapes"})

    def devices(self) -> tuple[str, ...]:
        """One device."""
        return ("onnx",)

    def namespace(self) -> Any:
        """The functions that write operators."""
        return XP

    def owns(self, array: object) -> bool:
        """True for an array of a graph."""
        return isinstance(array, OnnxArray)

    def index_of(self, array: Any) -> str:
        """The only device."""
        return "onnx"

    def from_host(self, array: Any, index: str) -> Any:
        """A constant."""
        return constant(array)

    def to_host(self, array: Any) -> Any:
        """The value of a constant."""
        return value_of(array)

    def synchronize(self, index: str) -> None:
        """Nothing is computed."""

    def lift(self, value: object) -> Any:
        """A scalar of NumPy as a constant."""
        return constant(value) if isinstance(value, numpy.generic) else None

    def forward(self, node: Any, arrays: tuple[Any, ...]) -> Any:
        """The operators of the function's own, else those of its ``forward``."""
        if node.is_random:
            raise OnnxError("it draws random numbers")
        graphs = [x.graph for x in arrays if x.graph is not None]
        is_usual = all(x.size and x.dtype != numpy.float64 for x in arrays)
        write = NODES.get(type(node))
        written = write(graphs[0], node, *arrays) if write and graphs and is_usual else Fallback
        if written is Fallback:
            return node.forward(arrays)
        return tuple(written) if isinstance(written, list) else (written,)

    def add_at(self, indices: Any, values: Any, length: int) -> Any:
        """result[indices[k]] += values[k], from zeros."""
        total = numpy.zeros((length, *values.shape[1:]), values.dtype)
        graph, zeros = indices.graph or values.graph, constant(total)
        if graph is None:
            numpy.add.at(total, indices.value, values.value)
        if graph is None or values.size == 0:
            return zeros
        places = XP.reshape(cast(graph, indices, numpy.int64), (-1, 1))
        return graph.add("ScatterND", [zeros, places, values], zeros, reduction="add")

    def put(self, array: Any, key: Any, value: Any) -> Any:
        """A copy of the array with a value at an index."""
        keys = key if isinstance(key, tuple) else (key,)
        arrays = [x for x in (array, value, *keys) if isinstance(x, OnnxArray)]
        graph = next((x.graph for x in arrays if x.graph is not None), None)
        if graph is None:
            copied = array.value.copy()
            copied[each(value_of, keys)] = each(value_of, value)
            return constant(copied)
        value = cast(graph, value, array.dtype)
        masks = [x for x in keys if isinstance(x, OnnxArray) and x.dtype == numpy.bool]
        if masks:
            behind = array.ndim - masks[0].ndim
            if len(keys) > 1 or value.ndim > behind:
                raise OnnxError("x[mask] = value needs one value for all places")
            return XP.where(XP.reshape(masks[0], masks[0].shape + (1,) * behind), value, array)
        places = positions(array.shape, keys)
        if places.size == 0:
            return array
        if value.ndim > places.ndim:
            value = XP.reshape(value, value.shape[value.ndim - places.ndim :])
        updates = XP.broadcast_to(value, places.shape)
        flat = [XP.reshape(x, (-1,)) for x in (array, places, updates)]
        return XP.reshape(graph.add("ScatterElements", flat, flat[0], axis=0), array.shape)


register_backend(OnnxBackend())
DEVICE = get_device("onnx")
"""The device of a function while it is written."""
