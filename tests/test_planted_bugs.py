"""The tool that plants bugs plants them, takes them out again, and says which ones are caught."""

from __future__ import annotations

import ast
import importlib.util
import pathlib
import sys

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn

TOOL = pathlib.Path(__file__).resolve().parent.parent / "tools" / "planted_bugs.py"


@pytest.fixture(scope="module")
def tool():
    """The tool as a module, with the tests' own path restored afterwards."""
    path = list(sys.path)
    spec = importlib.util.spec_from_file_location("planted_bugs", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["planted_bugs"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = path
    del sys.modules["planted_bugs"]


@pytest.fixture(scope="module")
def mutants(tool):
    return tool.all_mutants()


def find(mutants, owner, after):
    (mutant,) = [m for m in mutants if m.key == (owner, after)]
    return mutant


def test_every_backward_has_mutants(tool, mutants):
    owners = {mutant.owner for mutant in mutants}
    assert len(mutants) > 800
    for path in (TOOL.parent.parent / "tinynode" / "functions").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                methods = [one.name for one in node.body if isinstance(one, ast.FunctionDef)]
                if "backward" in methods:
                    assert f"{node.name}.backward" in owners


def test_every_named_helper_has_mutants(tool, mutants):
    owners = {mutant.owner.partition(".")[0] for mutant in mutants}
    assert (tool.HELPERS | tool.HELPER_CLASSES) - owners == set()


def test_what_is_said_to_be_equivalent_is_planted_by_name(tool, mutants):
    assert tool.stale_equivalents(mutants) == []


@pytest.mark.parametrize(
    ("owner", "after"),
    [
        ("Cos.backward", "return (gy * sin(x),)"),  # a sign
        (
            "Multiply.backward",
            "gx = gz if 0 in target_input_indexes else None",
        ),
        ("Multiply.backward", "gy = gz * x.detach() if 1 in target_input_indexes else None"),
        ("Multiply.forward", "self.retain_inputs((1,))"),
        ("Tanh.backward", "return (gy * (1.0 - y * y.detach()),)"),  # a cut, seen at second order
        ("MatMul.backward", "return (gy, gx)"),
        ("Log.backward", "return (gy * (1.0 / x),)"),  # seen at the edges only
    ],
)
def test_known_bugs_are_planted_caught_and_taken_out(tool, mutants, owner, after):
    mutant = find(mutants, owner, after)
    code = mutant.function.__code__
    cases = [case for case in tool.CASES if case.operation == owner.partition(".")[0].lower()]
    assert len(cases) > 5
    with tool.planted(mutant):
        assert mutant.function.__code__ is mutant.code is not code
        caught = tool.caught_by_table(cases, "numpy")
    assert mutant.function.__code__ is code
    assert caught == (owner != "Log.backward")


def test_planted_sign_changes_the_gradient_only_while_it_is_planted(tool, mutants):
    x = tn.asarray(np.array([1.0]))
    with tool.planted(find(mutants, "Sin.backward", "return (-(gy * cos(x)),)")):
        (wrong,) = tn.grad([fn.sin(x)], [x])
    (right,) = tn.grad([fn.sin(x)], [x])
    assert float(wrong) == -float(right) == pytest.approx(-np.cos(1.0))


def test_report_counts_and_names_survivors(tool, mutants, capsys):
    some = mutants[:40]
    assert tool.report(some, ["table"] * 38 + ["edges", "survived"]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith("caught 39 of 40 mutants (97.5 %)\n")
    assert str(some[-1]) in printed and str(some[0]) not in printed
    assert tool.report(some, ["table"] * 37 + ["survived"] * 3) == 1


def test_modules_are_chosen_by_name(tool, mutants):
    chosen = tool.selected(mutants, ["log_softmax"], ["convolution"])
    assert {mutant.path.stem for mutant in chosen} == {"activation", "convolution"}
    assert {"Windows.counts", "fold_columns", "Unfold.forward", "LogSoftmax.backward"} <= {
        mutant.owner for mutant in chosen
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("total += x", {"total -= x", "total = x", "pass"}),
        ("total[place] *= x", {"total[place] /= x", "total[place] = x", "pass"}),
    ],
)
def test_changes_in_place_are_changed(tool, source, expected):
    (node,) = ast.parse(source).body
    changed = [ast.fix_missing_locations(new) for new in tool.change_in_place(node)]
    assert {ast.unparse(new) for new in changed} == expected


def test_list_shows_the_mutants_of_a_function(tool, capsys):
    assert tool.main(["--list", "--functions", "log_softmax"]) == 0
    printed = capsys.readouterr().out
    assert "tinynode/functions/activation.py" in printed
    assert "LogSoftmax.forward" in printed and "Sigmoid" not in printed
