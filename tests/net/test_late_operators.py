"""Operators of modules that are imported late: read in a fresh process, and kept from users."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions
from tinynode.core.function_node import FunctionNode
from tinynode.errors import NetError
from tinynode.net import dumps, register_op
from tinynode.net.registry import _LATE, OpInfoMap, get_op_info, type_name
from tinynode.transforms import implicit_operators

ALL_OPERATORS = """
import importlib, pkgutil
import tinynode
from tinynode.net import OpInfoMap
from tinynode.net.registry import _LATE, get_op_info
get_op_info("add")
known = {*OpInfoMap, *_LATE}
for room in ("array_api", "functions", "net", "nn", "transforms"):
    package = importlib.import_module(f"tinynode.{room}")
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
assert known.issuperset(OpInfoMap), sorted(known.symmetric_difference(OpInfoMap))
"""
READ = """
import sys
from tinynode.net import dumps, loads
print(dumps(loads(sys.stdin.read())))
"""


def run(code: str, text: str = "") -> str:
    """What a fresh process prints."""
    found = subprocess.run(
        [sys.executable, "-c", code], input=text, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def root(t: Any) -> Any:
    def equation(x: Any, t: Any) -> Any:
        return x * x - t

    return tn.custom_root(equation, lambda t: tn.newton(equation, 1.0, t))(t)


@pytest.mark.parametrize("name", sorted(_LATE))
def test_a_late_operator_is_found_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(OpInfoMap, name, raising=False)
    info = get_op_info(name)
    assert OpInfoMap[name] is info
    assert info.node_class.__name__ == _LATE[name][1] and type_name(info.node_class) == name


def test_the_table_has_each_operator_with_a_body() -> None:
    late = {class_name for _, class_name in _LATE.values()}
    for name, value in vars(implicit_operators).items():
        is_node = isinstance(value, type) and issubclass(value, FunctionNode)
        if is_node and not value.__subclasses__() and value is not FunctionNode:
            assert name in late, name


@pytest.mark.slow
def test_the_table_has_every_late_operator() -> None:
    run(ALL_OPERATORS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["root", "vmap"])
def test_a_fresh_process_reads_a_saved_net(kind: str) -> None:
    functions_of = {
        "root": tn.gradient(lambda t: functions.sum(root(t))),
        "vmap": tn.vmap(tn.gradient(functions.linalg.vector_norm)),
    }
    text = dumps(tn.trace(functions_of[kind], tn.asarray(np.ones((2, 3)))).net)
    assert any(f'"{name}"' in text for name in _LATE)
    assert run(READ, text).strip() == text.strip()


@pytest.mark.parametrize("name", sorted(_LATE))
def test_a_class_of_a_user_takes_no_name_of_a_late_operator(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The late module registers its class later, and must find its name free."""
    monkeypatch.delitem(OpInfoMap, name, raising=False)

    class Own(FunctionNode):
        def forward(self, inputs: Any) -> Any:
            return inputs

    Own.__name__ = _LATE[name][1]
    assert type_name(Own) != name
    with pytest.raises(NetError, match=f"{name!r} is taken"):
        register_op(name)(Own)
    assert get_op_info(name).node_class is not Own


def test_a_class_may_be_defined_many_times() -> None:
    """A cell of a notebook makes a new class in each run."""
    for factor in (2.0, 3.0, 4.0, 5.0):

        class ScaledOften(FunctionNode):
            def forward(self, inputs: Any, factor: float = factor) -> Any:
                return (factor * inputs[0],)

        def scaled(x: Any, node: type[FunctionNode] = ScaledOften) -> Any:
            return node().apply((x,))[0]

        assert tn.compile(scaled)(np.array([1.0])).tolist() == [factor]
