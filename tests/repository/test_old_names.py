"""The modules of version 0.1 that have moved keep their names, and the names in them."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import pytest

import tinynode as tn
from tinynode import old_names

NAMES = {
    "backend": """
        Array Arrays Backend COMPLEX Device Fallback Use add_at backend_names backend_of
        backend_origin base_of check_cast count_use current_device device_of fallback_uses
        find_device get_backend get_device indices_of is_array is_floating is_integer kernel_uses
        kind_of namespace_from namespace_of register_backend synchronize to_host using_device
    """,
    "backprop": "Sweep backward backward_one grad",
    "conversion": "as_array as_variable asarray is_operand rebuild",
    "debug": "capture_stack check_nan check_unchanged checksum has_nan user_line",
    "derivatives": "hvp jacobian or_zeros value_and_grad",
    "forget": "forget",
    "function": "Flags Function FunctionAdapter OldStyleGradient",
    "function_hook": "FunctionHook thread_state",
    "function_node": "FunctionNode Gradients Indexes",
    "variable": "Variable variable_on_node wrap_array",
    "variable_node": "VariableNode",
}
"""The names of version 0.1 that keep working, by the module that defined each."""


def test_every_old_module_has_its_names() -> None:
    assert set(NAMES) == {name for name in old_names.MOVED if "." not in name}


def test_functions_are_found_at_their_former_places() -> None:
    for name in ("elementwise.tanh", "selection.where", "norms.vector_norm", "loss.nll"):
        module, _, function = name.partition(".")
        pickled = f"ctinynode.functions.{module}\n{function}\n.".encode()  # of version 0.1
        assert pickle.loads(pickled).__name__ == function
    for name in old_names.MOVED:
        importlib.import_module(f"tinynode.{name}")
    for module, names in old_names.MOVED_FUNCTIONS.items():
        home = importlib.import_module(f"tinynode.functions.{module}")
        for function in names:
            assert getattr(home, function) is getattr(tn.functions, function)


@pytest.mark.parametrize("name", NAMES)
def test_the_names_of_an_old_module_are_there(name: str) -> None:
    module = importlib.import_module(f"tinynode.{name}")
    assert [member for member in NAMES[name].split() if not hasattr(module, member)] == []


def test_old_modules_and_new_modules_have_the_same_classes() -> None:
    from tinynode.backend import Fallback
    from tinynode.function_node import FunctionNode
    from tinynode.variable import Variable

    assert (Fallback, FunctionNode, Variable) == (tn.Fallback, tn.FunctionNode, tn.Variable)


def test_an_old_module_may_be_the_first_import() -> None:
    lines = [f"import tinynode.{name}; tinynode.{name}" for name in NAMES]
    program = "\n".join([*lines, "print(tinynode.backend.Fallback.__name__)"])
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout.strip(), run.stderr) == ("Fallback", "")
