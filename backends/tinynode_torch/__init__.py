"""PyTorch's tensors as a backend of tinynode: on the CPU, and on the accelerator of the machine.

Requirement: a library whose own namespace is not the Array API's takes one small module as well.
``array_api_compat.torch`` is that namespace; this module says where tensors lie and how they come
from and go to the host.

PyTorch's autograd stays off: tinynode makes the graph. A tensor that requires a gradient would
make a second graph beside it, unseen and never freed, so it is refused.
"""

from __future__ import annotations

from typing import Any

import array_api_compat.torch
import torch

name = "torch"
version = torch.__version__
capabilities = frozenset({"cpu", "float64"})


def devices() -> tuple[str, ...]:
    """``cpu``; beside it ``cuda``, ``cuda:1`` ..., ``mps`` or ``xpu``, whichever is there."""
    if not torch.accelerator.is_available():
        return ("cpu",)
    kind = torch.accelerator.current_accelerator().type
    others = [f"{kind}:{i}" for i in range(1, torch.accelerator.device_count())]
    return ("cpu", kind, *others)


def namespace() -> Any:
    """PyTorch under the names of the Array API standard."""
    return array_api_compat.torch


def owns(array: object) -> bool:
    """Whether an object is a tensor."""
    return isinstance(array, torch.Tensor)


def index_of(array: Any) -> str:
    """The device's index; TypeError for tensors that require a gradient, or lie elsewhere."""
    if array.requires_grad:
        raise TypeError(
            "torch backend: this tensor requires a gradient from PyTorch's own autograd. Give "
            "tensor.detach(), and ask the Variable for the gradient: requires_grad=True."
        )
    index = str(array.device).removesuffix(":0")
    if index not in devices():
        raise TypeError(
            f"torch backend: this tensor is on {index}; known are {', '.join(devices())}. Give "
            "tensor.cpu()."
        )
    return index


def from_host(array: Any, index: str) -> Any:
    """A tensor with the same values; it is a copy, since tensors have no negative strides."""
    return torch.asarray(array.copy(), device=index)


def to_host(array: Any) -> Any:
    """A NumPy array; on the CPU it shares the tensor's memory."""
    return array.cpu().numpy()


def synchronize(index: str) -> None:
    """Wait for an accelerator. On the CPU PyTorch has always finished when a call returns."""
    if index != "cpu":
        torch.accelerator.synchronize(index)


def lift(value: object) -> None:
    """There are no scalars: every result of PyTorch is a tensor already."""


def forward(node: Any, arrays: tuple[Any, ...]) -> Any:
    """The portable forward; kernels of one's own would be called here."""
    return node.forward(arrays)


def add_at(indices: Any, values: Any, length: int) -> Any:
    """result[indices[k]] += values[k], from zeros: the standard has no such function."""
    shape = (length, *values.shape[1:])
    result = torch.zeros(shape, dtype=values.dtype, device=values.device)
    return result.index_put_((indices,), values, accumulate=True)
