"""A function of Variables as a node of PyTorch's graph.

Requirement: gradients of every order, from a recorded graph. So the backward of ``Recorded`` is
an application of ``Recorded`` again: its function gives the gradients of the recorded outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch

from tinynode.configuration import using_config
from tinynode.core.variable import Variable
from tinynode.devices import get_device, to_host
from tinynode.errors import DeviceError, OperandError, describe
from tinynode.interop.calls import ForeignCall, Variables, gradients

FLOATING = (torch.float32, torch.float64)


class TorchFunction:
    """The result of ``tinynode.interop.torch_function``: call it with tensors."""

    def __init__(self, call: ForeignCall) -> None:
        self.call = call

    def __repr__(self) -> str:
        return f"torch_function({self.call.name})"

    def __call__(self, *tensors: Any) -> Any:
        """The outputs of the function, as tensors."""
        for i, tensor in enumerate(tensors):
            _check_tensor(self.call.name, i, tensor)
        record = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
        with using_config("enable_backprop", record):
            outputs = Recorded.apply(self.call, (), *tensors)
        return outputs[0] if self.call.single else outputs


class Recorded(torch.autograd.Function):  # type: ignore[misc]
    """Tensors through a function of Variables; the Variables stay for backward."""

    @staticmethod
    def forward(ctx: Any, run: Callable[..., Variables], known: Variables, *tensors: Any) -> Any:
        """Outputs of ``run``. The first tensors have their Variables already, in ``known``."""
        xs = (*known, *[as_variable(tensor) for tensor in tensors[len(known) :]])
        ys = run(*xs)
        outputs: list[Any] = []
        for y in ys:
            outputs.append(_as_tensor(y, [*tensors, *outputs]))
        ctx.variables = xs, ys
        ctx.save_for_backward(*tensors, *outputs)  # PyTorch finds writes to their memory
        pairs = zip(outputs, ys, strict=True)
        ctx.mark_non_differentiable(*[t for t, y in pairs if not y.requires_grad])
        ctx.set_materialize_grads(False)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """dL/dx for each tensor that requires a gradient."""
        (xs, ys), needed = ctx.variables, ctx.needs_input_grad[2:]
        tensors, given = ctx.saved_tensors[: len(xs)], [g for g in grad_outputs if g is not None]
        wanted = [x for x, needs in zip(xs, needed, strict=True) if needs]
        reached = [y for y, g in zip(ys, grad_outputs, strict=True) if g is not None]
        run = PullBack(reached, wanted, torch.is_grad_enabled())
        found = iter(Recorded.apply(run, xs, *tensors, *given))
        return None, None, *[next(found) if needs else None for needs in needed]


class PullBack:
    """The gradients of recorded outputs, as a function of inputs and output gradients."""

    def __init__(self, ys: list[Variable], xs: list[Variable], record: bool) -> None:
        self.ys, self.xs, self.record = ys, xs, record

    def __call__(self, *variables: Variable) -> Variables:
        """dL/dx for each x; the last variables are dL/dy for each y."""
        given = variables[len(variables) - len(self.ys) :]
        with using_config("enable_backprop", self.record):
            return gradients(self.ys, self.xs, given, self.record)


# --- tensors and Variables, on the same memory where possible ------------------------------------


def _check_tensor(name: str, position: int, tensor: Any) -> None:
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


def _as_tensor(y: Variable, others: Sequence[Any]) -> Any:
    """A tensor on the memory of a Variable; a copy if a tensor among the others overlaps.

    PyTorch takes the memory of ``cupy`` as it is; results of other devices come from the host.
    """
    if y.device.backend.name == "cupy":
        tensor = torch.from_dlpack(y.raw)
    else:
        tensor = torch.from_numpy(numpy.require(to_host(y.raw), requirements=("C", "W")))
    return tensor.clone() if any(_overlap(tensor, other) for other in others) else tensor


def _overlap(a: Any, b: Any) -> bool:
    """Whether the storages of two tensors share a byte."""
    s, t = a.untyped_storage(), b.untyped_storage()
    first = s.data_ptr() < t.data_ptr() + t.nbytes()
    return bool(first and t.data_ptr() < s.data_ptr() + s.nbytes())
