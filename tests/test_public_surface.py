"""What tinynode shows: the names are pinned, and every one of them says what it is."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Any

import pytest

import tinynode as tn
from tinynode import functions

TINYNODE = """
Backend Device Fallback Function FunctionAdapter FunctionHook FunctionNode TinynodeError Variable
VariableNode __version__ as_array as_variable asarray backward config force_backprop_mode forget
functions get_device global_config grad gradient_check hooks hvp is_debug jacobian namespace_of nn
no_backprop_mode random register_backend seed set_debug show synchronize to_host using_config
using_device value_and_grad
"""

FUNCTIONS = """
Abs Add AddAll AsType BroadcastTo Concat Copy Cos Divide Equal Exp FloorDivide GetItem GetItemGrad
Greater GreaterEqual Identity IsDead Less LessEqual Linear Log LogSoftmax MatMul Max Mean Min
Multiply Negative NotEqual PermuteDims Pow PowConstant ReLU ReLUGrad Reshape SetItem Sigmoid Sign
Sin SoftmaxCrossEntropy SoftmaxCrossEntropyGrad Split Sqrt Subtract Sum SumTo Tanh ToDevice Where
ZeroSafeMultiply abs add add_all astype broadcast_to concat copy cos divide equal exp floor_divide
get_item greater greater_equal identity less less_equal linear log log_softmax matmul
matrix_transpose max mean mean_squared_error min multiply negative not_equal permute_dims pow relu
reshape set_item sigmoid sign sin softmax_cross_entropy split sqrt subtract sum sum_to tanh
to_device where zero_safe_multiply
"""


def public_things() -> Iterator[tuple[str, Any]]:
    """The classes and functions that users can name, each once."""
    for module in (tn, functions):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                yield f"{module.__name__}.{name}", thing


THINGS = dict(public_things())
NODES = {n: c for n, c in THINGS.items() if inspect.isclass(c) and issubclass(c, tn.FunctionNode)}
CLASSES = {name: thing for name, thing in THINGS.items() if inspect.isclass(thing)}


@pytest.mark.parametrize(("module", "pinned"), [(tn, TINYNODE), (functions, FUNCTIONS)])
def test_the_public_names_are_these(module: types.ModuleType, pinned: str) -> None:
    assert module.__all__ == sorted(module.__all__)
    assert set(module.__all__) ^ set(pinned.split()) == set(), "a public name came or went"
    assert module.__all__ == pinned.split()


@pytest.mark.parametrize("module", [tn, functions])
def test_nothing_else_looks_public(module: types.ModuleType) -> None:
    """Submodules aside, which Python adds to a package by itself."""
    visible = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    ]
    assert sorted(visible) == [n for n in module.__all__ if not _is_module_or_dunder(module, n)]


def _is_module_or_dunder(module: types.ModuleType, name: str) -> bool:
    return name.startswith("__") or isinstance(getattr(module, name), types.ModuleType)


@pytest.mark.parametrize("name", THINGS)
def test_it_has_a_docstring(name: str) -> None:
    doc = THINGS[name].__doc__
    assert doc and len(doc) > 10, f"{name} has no docstring"


@pytest.mark.parametrize("name", CLASSES)
def test_its_methods_have_docstrings(name: str) -> None:
    """An override may leave it to the method that it overrides."""
    for attribute, value in vars(CLASSES[name]).items():
        described = inspect.isfunction(value) or isinstance(value, property | classmethod)
        if described and not attribute.startswith("_"):
            assert inspect.getdoc(getattr(CLASSES[name], attribute)), f"{name}.{attribute}"


@pytest.mark.parametrize(
    "name", [name for name in NODES if name.startswith("tinynode.functions.")]
)
def test_a_function_node_states_shapes_and_gradient(name: str) -> None:
    doc = NODES[name].__doc__ or ""
    assert "->" in doc, f"{name} does not say which shapes go in and come out"
    assert "dL/d" in doc or "no gradient" in doc.lower(), f"{name} does not state its gradient"
