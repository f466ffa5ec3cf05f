"""dpnp's arrays as a backend of tinynode: SYCL on Intel's CPUs and GPUs.

Requirement: a device with memory of its own, without a GPU. dpnp refuses every silent copy to the
host, as CuPy does. OpenCL finds the CPU's driver, of ``intel-opencl-rt``, by OCL_ICD_FILENAMES.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any

_DRIVER = os.path.join(sys.prefix, "lib", "libintelocl.so")
if os.path.exists(_DRIVER):
    os.environ.setdefault("OCL_ICD_FILENAMES", _DRIVER)

import dpctl  # noqa: E402
import dpnp  # noqa: E402

name = "sycl"
capabilities = frozenset({"cpu", "float64"})
_DEVICES = {}
for _kind in ("cpu", "gpu"):
    for _number, _device in enumerate(dpctl.get_devices(device_type=_kind)):
        _DEVICES[f"{_kind}:{_number}".removesuffix(":0")] = _device
if not _DEVICES:
    raise ImportError(
        f"sycl backend: SYCL found no CPU and no GPU. The driver of the CPU is {_DRIVER}: "
        "pip install tinynode[sycl]. The variable OCL_ICD_FILENAMES names another driver."
    )


def plain(x: Any) -> Any:
    """A copy of an array with a stride below 1, on which ``where`` and ``matmul`` of dpnp err."""
    return dpnp.ascontiguousarray(x) if owns(x) and min(x.strides, default=1) < 1 else x


_NAMESPACE = types.SimpleNamespace(**vars(dpnp))
_NAMESPACE.where = lambda condition, x, y: dpnp.where(plain(condition), plain(x), plain(y))
_NAMESPACE.matmul = lambda x, y: dpnp.matmul(plain(x), plain(y))
del _NAMESPACE.einsum  # it calls the other matmul; the standard has no einsum


def devices() -> tuple[str, ...]:
    return tuple(_DEVICES)


def namespace() -> Any:
    return _NAMESPACE


def owns(array: object) -> bool:
    return isinstance(array, dpnp.ndarray)


def index_of(array: Any) -> str:
    return next(index for index, one in _DEVICES.items() if one == array.sycl_device)


def from_host(array: Any, index: str) -> Any:
    return dpnp.asarray(array, device=_DEVICES[index], copy=True)


def to_host(array: Any) -> Any:
    return array.asnumpy()


def synchronize(index: str) -> None:
    dpnp.empty(0, device=_DEVICES[index]).sycl_queue.wait()


def lift(value: object) -> None:
    """There are no scalars: every result of dpnp is an array already."""


def forward(node: Any, arrays: tuple[Any, ...]) -> Any:
    return node.forward(arrays)


def add_at(indices: Any, values: Any, length: int) -> Any:
    """result[indices[k]] += values[k], from zeros, by weighted counts."""
    if dpnp.iscomplexobj(values):
        return add_at(indices, values.real, length) + 1j * add_at(indices, values.imag, length)
    flat = dpnp.zeros((length, *values.shape[1:]), device=values.device)
    if values.size:
        rows = dpnp.arange(flat.size, device=values.device).reshape(length, -1)
        flat = dpnp.bincount(rows[indices].ravel(), values.ravel(), minlength=flat.size)
    return flat.reshape(length, *values.shape[1:]).astype(values.dtype)
