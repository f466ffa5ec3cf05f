"""tinynode.interop without the other libraries: its imports, its errors."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tinynode as tn
from tinynode.errors import OperandError
from tinynode.interop import calls


def double(x: tn.Variable) -> tn.Variable:
    return x + x


def test_the_import_brings_neither_library() -> None:
    program = (
        "import sys, tinynode.interop; sys.exit(bool({'torch', 'jax', 'onnx'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("name", ["torch", "jax", "onnx"])
def test_a_missing_library_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for loaded in list(sys.modules):
        own = (f"tinynode.interop.{name}_", f"tinynode.interop.{name}.", f"{name}.")
        if loaded.startswith(own) or loaded == name:
            monkeypatch.delitem(sys.modules, loaded)
    finder = Missing(name)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    offer = getattr(tn.interop, "onnx_model" if name == "onnx" else f"{name}_function")
    with pytest.raises(ImportError, match=rf"{offer.__name__}: .* Try: pip install {name}"):
        offer(double)


class Missing:
    """An import finder for which one library is not installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == self.name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_an_error_of_another_module_stays() -> None:
    other = ModuleNotFoundError("no module", name="numpy.other")
    assert tn.interop.missing_library("torch_function", "torch", "PyTorch", other) is other


def test_what_can_be_no_function() -> None:
    with pytest.raises(OperandError, match="Give the class, and its constants by keyword"):
        calls.ForeignCall("torch_function", tn.functions.Exp(), {})  # type: ignore[arg-type]
    with pytest.raises(OperandError, match="expected a FunctionNode class, or a function"):
        calls.ForeignCall("jax_function", 3.0, {})  # type: ignore[arg-type]


def test_an_output_that_is_no_variable() -> None:
    call = calls.ForeignCall("jax_function", lambda x: (x, x.array), {})
    with pytest.raises(OperandError, match=r"jax_function: output 1 of <lambda> is ndarray .*"):
        call(tn.asarray([1.0]))


def test_single_and_several_outputs() -> None:
    x = tn.asarray([1.0])
    for f, single in ((double, True), (lambda x: (x,), False), (tn.functions.Exp, True)):
        call = calls.ForeignCall("jax_function", f, {})
        assert isinstance(call(x), tuple) and call.single is single


def test_gradients_that_are_none_are_zeros() -> None:
    x, y = tn.asarray([1.0, 2.0]), tn.asarray(np.ones((2, 3), np.float64))
    gx, gy = calls.gradients([x * x], [x, y], [tn.asarray([1.0, 1.0])], False)
    assert gx.array.tolist() == [2, 4] and gy.dtype == y.dtype
    np.testing.assert_array_equal(gy.array, np.zeros((2, 3)))
