"""CuPy arrays on an NVIDIA GPU.

Not yet run on a GPU: no machine that this code was run on so far had one. What was checked without
one, and what was not, stands in ``docs/gpu.md``.

Requirement: a program moves to the GPU by one line of config. So this is the only place that
imports CuPy, and a machine where CuPy cannot work says so in words, when a device is asked for.

The namespace is array_api_compat's: CuPy's own lacks ``vecdot``, ``unstack``, some of ``linalg``,
and the ``device`` keyword. CuPy puts new arrays on its *current* device. A function therefore runs
with the device of its inputs as the current one; the caller's is left as it was. Streams are left
to CuPy.
"""

from __future__ import annotations

import functools
import time
from contextlib import AbstractContextManager
from typing import Any

import cupy
import cupyx
import numpy

from tinynode.devices import Fallback, count_use, get_backend, kernel_uses
from tinynode.errors import DeviceError
from tinynode_cupy import arrays as array_namespace
from tinynode_cupy.kernels import CHECKED, KERNELS
from tinynode_cupy.plan import make_plan as make_plan
from tinynode_cupy.updates import update_parameters as update_parameters

name = "cupy"
capabilities = frozenset({"add_at", "float64", "gpu", "memory_pool", "optimizer_update", "ranges"})
version: str = cupy.__version__

ATOMIC_DTYPES = ("int32", "uint32", "uint64", "float16", "float32", "float64")
"""What ``scatter_add`` can add: CUDA's atomic additions."""


@functools.cache
def devices() -> tuple[str, ...]:
    """The GPUs by number.

    The answer is kept: CUDA does not notice a GPU that comes or goes while a process runs.

    Raises:
        DeviceError: there is none that works; says what CuPy reported.
    """
    try:
        count = cupy.cuda.runtime.getDeviceCount()
        if count:
            int(cupy.ones(2, dtype=cupy.int32).sum())  # memory, the compiler, a kernel
    except Exception as error:
        raise DeviceError(_unusable(f"{type(error).__name__}: {error}")) from error
    if not count:
        raise DeviceError(_unusable("it found no GPU"))
    return tuple(str(index) for index in range(count))


def _unusable(report: str) -> str:
    return (
        f"cupy: CuPy {version} is installed, but there is no usable GPU: {report}. It needs an "
        "NVIDIA GPU, a driver for CUDA 13 (cupy-cuda13x) or 12 (cupy-cuda12x), which `nvidia-smi` "
        "shows, and CUDA's libraries: pip install 'cupy-cuda13x[ctk]' brings them."
    )


def namespace() -> Any:
    return array_namespace


def owns(array: object) -> bool:
    return isinstance(array, cupy.ndarray)


def index_of(array: Any) -> str:
    return str(array.device.id)


def on_device(index: str) -> AbstractContextManager[Any]:
    """``with on_device("1"):`` CuPy's current device, in this thread, is that one."""
    context: AbstractContextManager[Any] = cupy.cuda.Device(int(index))
    return context


def from_host(array: Any, index: str) -> Any:
    """Copies to the GPU, on the current stream.

    CuPy stages the copy in pinned memory of its own, and keeps that until the copy is done. Where
    the source itself is pinned, CuPy reads it while the program goes on; so that case waits.
    """
    host = numpy.asarray(array)
    with on_device(index):
        pinned = host.nbytes > 0 and cupy.cuda.pinned_memory.is_memory_pinned(host.ctypes.data)
        return cupy.array(host, blocking=bool(pinned))


def to_host(array: Any) -> Any:
    """Copies to the host, and waits for the current stream: the values are there on return."""
    return cupy.asnumpy(array)


def synchronize(index: str) -> None:
    """Wait for all streams of the GPU."""
    cupy.cuda.Device(int(index)).synchronize()


def lift(value: object) -> Any:
    """CuPy's scalar types are NumPy's; its own functions give 0-d arrays."""
    return cupy.asarray(value) if isinstance(value, numpy.generic) else None


def forward(node: Any, arrays: tuple[Any, ...]) -> Any:
    """The kernel for the node's class, else its portable forward, on the inputs' device."""
    if not arrays:
        return node.forward(arrays)
    index = arrays[0].device.id
    if index == cupy.cuda.runtime.getDevice():
        return _run(node, arrays)
    with cupy.cuda.Device(index):
        return _run(node, arrays)


def _run(node: Any, arrays: tuple[Any, ...]) -> Any:
    kernel = KERNELS.get(type(node))
    if kernel is None:
        if type(node) not in CHECKED:
            return node.forward(arrays)
        with cupyx.errstate(linalg="raise"):
            return node.forward(arrays)
    start = time.perf_counter()
    outputs = kernel(node, arrays)
    if not isinstance(outputs, Fallback):
        seconds = time.perf_counter() - start  # to start the work: the GPU goes on with it
        count_use(kernel_uses, (name, node.label, kernel.__name__), seconds)
    return outputs


def add_at(indices: Any, values: Any, length: int) -> Any:
    """result[indices[k]] += values[k], from zeros, by atomic additions.

    Where three or more indices are equal, the order of additions, and so the last bit of a float,
    may differ from run to run. Dtypes without atomic addition take the way through the host.
    """
    if str(values.dtype) not in ATOMIC_DTYPES:
        reference: Any = get_backend("numpy")
        host = reference.add_at(to_host(indices), to_host(values), length)
        return from_host(host, index_of(values))
    with on_device(index_of(values)):
        result = cupy.zeros((length, *values.shape[1:]), dtype=values.dtype)
        cupyx.scatter_add(result, indices, values)
    return result


# --- for hooks: capabilities "ranges" and "memory_pool" ------------------------------------------


def range_push(text: str) -> None:
    """Begin a range of that name in what NVIDIA's profilers show of this thread."""
    cupy.cuda.nvtx.RangePush(text)


def range_pop() -> None:
    """End the range that was begun last in this thread."""
    cupy.cuda.nvtx.RangePop()


def memory_used(index: str) -> int:
    """The bytes that arrays on a GPU have, out of CuPy's memory pool."""
    with on_device(index):
        return int(cupy.get_default_memory_pool().used_bytes())


def memory_reserved(index: str) -> int:
    """The bytes that CuPy's memory pool holds of a GPU: those in use, and those kept for later."""
    with on_device(index):
        return int(cupy.get_default_memory_pool().total_bytes())
