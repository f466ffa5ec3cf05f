"""Tensors as Variables and Variables as tensors, on the same memory where possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
import torch

from tinynode.core.variable import Variable
from tinynode.devices import get_device, to_host
from tinynode.errors import DeviceError, OperandError, describe

FLOATING = (torch.float32, torch.float64)


def check_tensor(name: str, position: int, tensor: Any) -> None:
    """Refuse an argument that is no tensor, or has a dtype or a device that cannot be used."""
    where = f"torch_function({name}): argument {position} is {describe(tensor)}"
    if not isinstance(tensor, torch.Tensor):
        raise OperandError(
            f"{where}; expected a tensor. Write torch.as_tensor(...); give constants by keyword "
            f"to torch_function."
        )
    if (tensor.is_floating_point() or tensor.is_complex()) and tensor.dtype not in FLOATING:
        raise OperandError(f"{where}; expected float32 or float64. Try: x.to(torch.float32)")
    if tensor.layout is not torch.strided:
        raise OperandError(f"{where}, {tensor.layout}; expected strided. Try: x.to_dense()")
    if tensor.device.type not in ("cpu", "cuda"):
        raise DeviceError(f"{where}, on {tensor.device}; expected cpu or cuda. Try: x.cpu()")


def as_variable(tensor: Any) -> Variable:
    """A Variable on the memory of a tensor; on a GPU, of the backend cupy."""
    needs, tensor = tensor.requires_grad, tensor.detach()
    if tensor.device.type == "cpu":
        return Variable(tensor.numpy(), requires_grad=needs)
    try:
        device = get_device(f"cupy:{tensor.device.index}")
    except DeviceError as error:
        raise DeviceError(
            f"torch_function: a tensor is on {tensor.device}, and the device "
            f"cupy:{tensor.device.index} cannot be used. Install CuPy, or try: x.cpu(). {error}"
        ) from error
    return Variable(device.xp.from_dlpack(tensor), requires_grad=needs)


def as_tensor(y: Variable, others: Sequence[Any]) -> Any:
    """A tensor on the memory of a Variable; a copy if a tensor among the others overlaps.

    PyTorch takes the memory of ``cupy`` as it is; results of other devices come from the host.
    """
    if y.device.backend.name == "cupy":
        tensor = torch.from_dlpack(y.raw)
    else:
        tensor = torch.from_numpy(numpy.require(to_host(y.raw), requirements=("C", "W")))
    return tensor.clone() if any(overlap(tensor, other) for other in others) else tensor


def overlap(a: Any, b: Any) -> bool:
    """Whether the storages of two tensors share a byte."""
    s, t = a.untyped_storage(), b.untyped_storage()
    first = s.data_ptr() < t.data_ptr() + t.nbytes()
    return bool(first and t.data_ptr() < s.data_ptr() + s.nbytes())
