"""Functions of tinynode in other libraries: PyTorch's graph, JAX's transformations, ONNX models.

    square = tn.interop.torch_function(MySquare)    # a FunctionNode class
    model = tn.interop.jax_function(my_function)    # a function of Variables

The libraries are optional. ``import tinynode.interop`` imports none; a call imports one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinynode.interop.onnx import onnx_model

__all__ = ["jax_function", "onnx_model", "torch_function"]
__dir__ = __all__.copy  # for completion


def torch_function(f: Callable[..., Any], **constants: Any) -> Callable[..., Any]:
    """A function of PyTorch tensors that computes ``f``, with gradients of every order.

    PyTorch records the call as one node. The node's backward is tinynode's, on the recorded graph.

    Args:
        f: a FunctionNode class; or a function of Variables that returns one, or a tuple of them.
        constants: keyword arguments for the constructor of the class, or for the function.

    Returns:
        A callable: tensors (s_1), ..., (s_n) -> a tensor or a tuple of tensors, with the shapes
        of f. Floating tensors are float32 or float64. Only tensors among the arguments get
        gradients; a Variable that f uses by name gets none.

    Raises:
        ImportError: PyTorch is not installed.
        OperandError: f is no class and no function, or does not return Variables; or, in a call,
            an argument is no tensor that tinynode can use.
        DeviceError: in a call, a tensor is on a GPU, and the backend cupy cannot be used.
    """
    try:
        from tinynode.interop.calls import ForeignCall  # above the core, as tinynode itself
        from tinynode.interop.torch_tensors import TorchFunction  # PyTorch is optional
    except ModuleNotFoundError as error:
        raise missing_library("torch_function", "torch", "PyTorch", error) from error
    return TorchFunction(ForeignCall("torch_function", f, constants))


def jax_function(f: Callable[..., Any], **constants: Any) -> Callable[..., Any]:
    """A function of JAX arrays that computes ``f``; ``jit``, ``grad`` and ``vmap`` take it.

    JAX calls back to Python for each value. ``f`` must be pure: equal inputs give equal outputs.
    The shapes of the outputs may depend on the shapes of the inputs, not on the values.

    Args:
        f: as for ``torch_function``.
        constants: as for ``torch_function``.

    Returns:
        A callable: arrays (s_1), ..., (s_n) -> an array or a tuple of arrays, with the shapes of
        f. Floating arrays are float32, or float64 with JAX's flag ``jax_enable_x64``. Forward mode
        (``jax.jvp``, ``jax.hessian``) is refused by JAX; reverse mode goes to every order.

    Raises:
        ImportError: JAX is not installed.
        OperandError: f is no class and no function, or does not return Variables; or, in a call,
            an argument has another dtype.
    """
    try:
        from tinynode.interop.calls import ForeignCall  # above the core, as tinynode itself
        from tinynode.interop.jax_arrays import JaxFunction  # JAX is optional
    except ModuleNotFoundError as error:
        raise missing_library("jax_function", "jax", "JAX", error) from error
    return JaxFunction(ForeignCall("jax_function", f, constants))


def missing_library(function: str, package: str, name: str, error: ImportError) -> ImportError:
    """The error for a library that is not installed; another missing module stays as it is."""
    if (error.name or "").partition(".")[0] != package:
        return error
    return ImportError(f"{function}: {name} is not installed. Try: pip install {package}")
