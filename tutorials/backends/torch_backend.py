"""PyTorch's CPU tensors as a backend of tinynode.

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
    """One: the CPU. For GPUs, list them here and use ``index`` in ``from_host``."""
    return ("cpu",)


def namespace() -> Any:
    """PyTorch under the names of the Array API standard."""
    return array_api_compat.torch


def owns(array: object) -> bool:
    """Whether an object is a tensor."""
    return isinstance(array, torch.Tensor)


def index_of(array: Any) -> str:
    """The device's index; every tensor that comes from outside is asked for it.

    Raises:
        TypeError: the tensor requires a gradient, or does not lie on the CPU.
    """
    if array.requires_grad:
        raise TypeError(
            "torch backend: this tensor requires a gradient from PyTorch's own autograd. Give "
            "tensor.detach(), and ask the Variable for the gradient: requires_grad=True."
        )
    if array.device.type != "cpu":
        raise TypeError(
            f"torch backend: it knows the CPU only, and this tensor is on {array.device}. Give "
            "tensor.cpu()."
        )
    return "cpu"


def from_host(array: Any, index: str) -> Any:
    """A tensor with the same values; it is a copy, since tensors have no negative strides."""
    return torch.asarray(array.copy())


def to_host(array: Any) -> Any:
    """A NumPy array on the tensor's memory."""
    return array.numpy()


def synchronize(index: str) -> None:
    """On the CPU PyTorch has always finished when a call returns."""


def lift(value: object) -> None:
    """There are no scalars: every result of PyTorch is a tensor already."""


def forward(node: Any, arrays: tuple[Any, ...]) -> Any:
    """The portable forward; kernels of one's own would be called here."""
    return node.forward(arrays)


def add_at(indices: Any, values: Any, length: int) -> Any:
    """result[indices[k]] += values[k], from zeros: the standard has no such function."""
    result = torch.zeros((length, *values.shape[1:]), dtype=values.dtype)
    return result.index_put_((indices,), values, accumulate=True)
