"""A function of Variables as a node of PyTorch's graph.

Requirement: gradients of every order, from a recorded graph. So the backward of ``Recorded`` is
an application of ``Recorded`` again: its function gives the gradients of the recorded outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tinynode.configuration import using_config
from tinynode.core.variable import Variable
from tinynode.interop.calls import ForeignCall, Variables, gradients
from tinynode.interop.torch_memory import as_tensor, as_variable, check_tensor


class TorchFunction:
    """The result of ``tinynode.interop.torch_function``: call it with tensors."""

    def __init__(self, call: ForeignCall) -> None:
        self.call = call

    def __repr__(self) -> str:
        return f"torch_function({self.call.name})"

    def __call__(self, *tensors: Any) -> Any:
        """The outputs of the function, as tensors."""
        for i, tensor in enumerate(tensors):
            check_tensor(self.call.name, i, tensor)
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
            outputs.append(as_tensor(y, [*tensors, *outputs]))
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
