"""CuPy arrays on an NVIDIA GPU.

Not yet run on a GPU: no machine of the project had a GPU so far. ``docs/gpu.md`` lists the checks
without a GPU, and the open ones.

Requirement: a program moves to the GPU by one line of config. So only this package imports CuPy.
Where CuPy cannot work, the first use of a device raises an error with the reason.

The namespace is that of array_api_compat. CuPy's namespace lacks ``vecdot``, ``unstack``, some of
``linalg``, and the ``device`` keyword. CuPy puts new arrays on the *current* device. So a function
runs with the device of the inputs as the current device. Afterwards the caller's device is current
again. Streams are left to CuPy.
"""

from __future__ import annotations

import functools
import time
from contextlib import AbstractContextManager
from typing import Any

import cupy
import cupyx
import numpy

import tinynode.net  # noqa: F401 - the package first: see late_imports
from tinynode.devices import Fallback, count_use, get_backend, kernel_uses
from tinynode.errors import DeviceError
from tinynode_cupy import arrays as array_namespace
from tinynode_cupy.kernels import CHECKED, KERNELS
from tinynode_cupy.plan import make_plan as make_plan
from tinynode_cupy.updates import update_parameters as update_parameters

name = "cupy"
capabilities = frozenset({"float64", "gpu"})
version: str = cupy.__version__

ATOMIC_DTYPES = ("int32", "uint32", "uint64", "float16", "float32", "float64")
"""The dtypes of ``scatter_add``, with CUDA's atomic additions."""


@functools.cache
def devices() -> tuple[str, ...]:
    """The GPUs by number.

    The answer is kept: CUDA does not notice added or removed GPUs while a process runs.

    Raises:
        DeviceError: no GPU works; the message quotes CuPy.
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
    """``with on_device("1"):`` the current device of CuPy in the thread is GPU 1."""
    context: AbstractContextManager[Any] = cupy.cuda.Device(int(index))
    return context


def from_host(array: Any, index: str) -> Any:
    """Copies to the GPU, on the current stream.

    CuPy stages the copy in pinned memory, and keeps the memory until the end of the copy. From a
    pinned source CuPy reads while the program goes on. So a copy from a pinned source waits.
    """
    host = numpy.asarray(array)
    with on_device(index):
        pinned = host.nbytes > 0 and cupy.cuda.pinned_memory.is_memory_pinned(host.ctypes.data)
        return cupy.array(host, blocking=bool(pinned))


def to_host(array: Any) -> Any:
    """Copies to the host, and waits for the current stream: on return the values are complete."""
    return cupy.asnumpy(array)


def synchronize(index: str) -> None:
    """Wait for all streams of the GPU."""
    cupy.cuda.Device(int(index)).synchronize()


def lift(value: object) -> Any:
    """CuPy's scalar types are NumPy's; functions of CuPy give 0-d arrays."""
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

    With three or more equal indices, the order of additions may differ from run to run, and so the
    last bit of a float. Dtypes without atomic addition take the way through the host.
    """
    if str(values.dtype) not in ATOMIC_DTYPES:
        reference: Any = get_backend("numpy")
        host = reference.add_at(to_host(indices), to_host(values), length)
        return from_host(host, index_of(values))
    with on_device(index_of(values)):
        result = cupy.zeros((length, *values.shape[1:]), dtype=values.dtype)
        cupyx.scatter_add(result, indices, values)
    return result


# --- for hooks: the parts Profiler and MemoryPool ------------------------------------------------


def range_push(text: str) -> None:
    """Begin a named range of the current thread in NVIDIA's profilers."""
    cupy.cuda.nvtx.RangePush(text)


def range_pop() -> None:
    """End the last range of the current thread."""
    cupy.cuda.nvtx.RangePop()


def memory_used(index: str) -> int:
    """The bytes of CuPy's memory pool that arrays on a GPU use."""
    with on_device(index):
        return int(cupy.get_default_memory_pool().used_bytes())


def memory_reserved(index: str) -> int:
    """The bytes of a GPU in CuPy's memory pool, in use or kept for later."""
    with on_device(index):
        return int(cupy.get_default_memory_pool().total_bytes())
