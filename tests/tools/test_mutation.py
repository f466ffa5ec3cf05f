"""The mutation tool: each operator on a snippet, places without mutants, the tests of a line."""

from __future__ import annotations

import importlib
import json
import pathlib
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("cosmic_ray", reason="cosmic-ray is of the extra mutation")

from cosmic_ray.plugins import get_operator
from coverage import CoverageData

from tools.mutation import __main__ as tool
from tools.mutation import choice, fresh, operators, plan
from tools.mutation.fresh import few_files
from tools.mutation.live import LiveCode, NotLiveError, function_at, same_outside
from tools.mutation.marks import Mark, all_marks
from tools.mutation.session import Session
from tools.mutation.warm import Verdict

ROOT = pathlib.Path(__file__).resolve().parents[2]


# --- operators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", operators.OWN, ids=lambda one: one.__name__)
def test_operator_changes_its_examples(operator):
    assert operator.examples()
    for example in operator.examples():
        changed = plan.Once.mutate_code(example.pre_mutation_code, operator(), example.occurrence)
        assert changed == example.post_mutation_code


def all_changes(operator, source):
    """The source with each mutant of an operator, in order."""
    found = []
    while (changed := plan.Once.mutate_code(source, operator(), len(found))) is not None:
        found.append(changed)
    return found


@pytest.mark.parametrize(
    ("operator", "source", "changed"),
    [
        (
            operators.CutGraph,
            "def backward(self, i, gs):\n    (x,) = self.get_retained_inputs()\n"
            "    return (x * x,)",
            [
                "def backward(self, i, gs):\n    (x,) = self.get_retained_inputs()\n"
                f"    return ({product},)"
                for product in ("x.detach() * x", "x * x.detach()")
            ],
        ),
        (operators.RetainLess, "self.retain_inputs(range(n))", ["self.retain_inputs(())"]),
        (operators.RetainLess, "self.retain_inputs(())", []),
        (operators.SwapArguments, "f(g(x), y)", []),
        (operators.SwapArguments, "xp.multiply(x, y)", []),
        (operators.CutGraph, "def forward(self, inputs):\n    (x,) = grad_outputs\n    f(x)", []),
        (
            operators.CutGraph,
            "def backward(self, i, grad_outputs):\n    (gy,) = grad_outputs\n"
            "    return (gy * gy.shape[0],)",
            [
                "def backward(self, i, grad_outputs):\n    (gy,) = grad_outputs\n"
                "    return (gy.detach() * gy.shape[0],)"
            ],
        ),
        (operators.NextNumber, "x = 0x10", []),
        (operators.DropStatement, "x = f()\n", []),
        (operators.ReturnEarly, "def f() -> int:\n    a()\n    b()\n", []),
        (operators.NeighbourFunction, "sum = x.sum", []),
    ],
)
def test_mutants_of_a_snippet(operator, source, changed):
    assert all_changes(operator, source) == changed


def test_every_operator_of_a_run_is_known_to_cosmic_ray():
    names = operators.register()
    assert len(set(names)) == len(names) > 30
    assert all(get_operator(name)().examples() for name in names if name.startswith("tinynode/"))


def test_marks_name_operators_that_exist():
    known = {name.rpartition("/")[2] for name in operators.register()}
    for path, marks in all_marks().items():
        named = {name.partition(" ")[0] for mark in marks for name in mark.operators}
        assert named <= known, path


@pytest.mark.slow
def test_every_mark_takes_mutants_out():
    idle = []
    for path, marks in all_marks().items():
        source = (ROOT / path).read_text(encoding="utf-8")
        every = len(list(plan.mutants_of(path, source, [])))
        counts = [len(list(plan.mutants_of(path, source, [mark]))) for mark in marks]
        idle += [mark for mark, count in zip(marks, counts, strict=True) if count == every]
    assert idle == []


# --- the mutants of a file -----------------------------------------------------------------------

TEXTS = '''\
"""Docstring of 1 module."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from a import b
__all__ = ["f"][0:1]
def f(x: "int | str" = 1, *, y: int | None = None) -> "int | None":
    """Docstring."""
    if x:
        raise ValueError(f"{x + 1}")
    assert x + 1
    y: "int | str" = x
    return y
def text(x) -> str:
    return x + 1
def error(x) -> ValueError:
    return ValueError(x + 1)
class A:
    def __repr__(self):
        return 1 + 1
'''


def test_texts_types_and_errors_have_no_mutants():
    found = list(plan.mutants_of("a.py", TEXTS))
    places = {(one.start[0], one.operator.rpartition("/")[2]) for one in found}
    assert places == {(6, "NextNumber"), (8, "NeverBranch")}


def test_a_mark_takes_mutants_out():
    source = "def f(x):\n    return x + 1\n"
    every = {one.operator for one in plan.mutants_of("a.py", source)}
    assert every == {"core/ReplaceBinaryOperator_Add_Sub", "tinynode/NextNumber"}
    named = Mark("f", "a test of marks", "return x + 1", ("NextNumber",))
    assert {one.operator for one in plan.mutants_of("a.py", source, [named])} == {
        "core/ReplaceBinaryOperator_Add_Sub"
    }
    assert not list(plan.mutants_of("a.py", source, [Mark("f", "a test", "return x + 1")]))


def test_a_mutant_keeps_its_number_when_lines_move():
    source = "def f(x):\n    x[0] = 1\n    x[0] = 1\n"
    before = list(plan.mutants_of("a.py", source))
    after = list(plan.mutants_of("a.py", "import math\n\n\n" + source))
    assert [one.number for one in before] == [one.number for one in after]
    assert len({one.number for one in before}) == len(before) == 6
    assert after[0].start[0] == before[0].start[0] + 3
    assert before[0].definition == "f"


def test_frequent_operators_are_sampled_and_the_sample_is_always_the_same(tmp_path):
    folder = tmp_path / plan.ROOMS["core"]
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("def f(x):\n" + "    x[1] = x\n" * 20, encoding="utf-8")
    whole = plan.planned(tmp_path, "core")
    some = plan.planned(tmp_path, "core", per_operator=5)
    assert (len(whole), len(some)) == (40, 10)
    assert some == plan.planned(tmp_path, "core", per_operator=5)
    assert set(some) <= set(whole)


# --- the tests of a mutant -----------------------------------------------------------------------


@pytest.fixture
def test_map(tmp_path):
    """A map of one file: line 2 runs in two tests, line 5 in one test."""
    path = "tinynode/core/a.py"
    source = "def f(x):\n    return x\n\ndef g(x):\n    return -x\n"
    for root in (tmp_path / "map" / "000" / "sources", tmp_path):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(source, encoding="utf-8")
    seconds = {"t.py::slow": 2.0, "t.py::quick": 1.0, "t.py::other": 0.5}
    (tmp_path / "map" / "000" / "seconds.json").write_text(json.dumps(seconds), encoding="utf-8")
    data = CoverageData(basename=str(tmp_path / "map" / "000" / "coverage"))
    for test, line in (("slow", 2), ("quick", 2), ("other", 5), ("failed", 5)):
        data.set_context(f"t.py::{test}|run")
        data.add_lines({str(tmp_path / path): [line]})
    data.write()
    return choice.TestMap(tmp_path / "map")


def mutants_in(root):
    path = "tinynode/core/a.py"
    return list(plan.mutants_of(path, (root / path).read_text(encoding="utf-8")))


def test_a_mutant_meets_the_passing_tests_of_its_line(test_map, tmp_path):
    (mutant,) = mutants_in(tmp_path)
    assert test_map.tests_of(mutant, tmp_path) == ["t.py::other"]


def test_lines_are_found_again_after_an_edit(test_map, tmp_path):
    path = tmp_path / "tinynode/core/a.py"
    text = path.read_text(encoding="utf-8")
    path.write_text("import math\n\n" + text, encoding="utf-8")
    (mutant,) = mutants_in(tmp_path)
    assert mutant.start[0] == 7
    assert test_map.tests_of(mutant, tmp_path) == ["t.py::other"]
    # a changed line has the tests of its function, a new function those of the file
    path.write_text(text.replace("return x", "return x + 1"), encoding="utf-8")
    assert test_map.tests_of(mutants_in(tmp_path)[0], tmp_path) == ["t.py::quick", "t.py::slow"]
    path.write_text(text + "\ndef h(x):\n    return not x\n", encoding="utf-8")
    (mutant,) = (one for one in mutants_in(tmp_path) if one.definition == "h")
    assert len(test_map.tests_of(mutant, tmp_path)) == 3


def test_a_constant_meets_the_tests_of_the_lines_with_its_name(test_map, tmp_path):
    path = tmp_path / "tinynode/core/a.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "\nTABLE = {\n    g: 1,\n}\n# g, TABLE\n", encoding="utf-8")
    constant = [one for one in mutants_in(tmp_path) if not one.definition]
    assert choice.lines_with_name(path.read_text(encoding="utf-8").splitlines(), 8) == [7, 10]
    assert len(test_map.tests_of(constant[0], tmp_path)) == 3  # the file, as no test runs them
    path.write_text(text.replace("return -x", "return -x * K") + "\nK = 1\n", encoding="utf-8")
    test_map.lines[0]["tinynode/core/b.py"] = {1: {"t.py::other"}}
    other = tmp_path / "tinynode/core/c.py"
    other.write_text("K = 1\n", encoding="utf-8")
    (mutant,) = plan.mutants_of("tinynode/core/c.py", "K = 1\n")
    assert len(test_map.tests_of(mutant, tmp_path)) == 3  # the folder, for a file without tests


def test_code_of_the_import_meets_more_tests_than_the_first_import(test_map, tmp_path):
    path = tmp_path / "tinynode/core/a.py"
    text = path.read_text(encoding="utf-8").replace("return -x", "return -x * K") + "K = 1\n"
    for root in (tmp_path, tmp_path / "map" / "000" / "sources"):
        (root / "tinynode/core/a.py").write_text(text, encoding="utf-8")
    lines = test_map.lines[0]["tinynode/core/a.py"]
    lines[6] = {"t.py::quick"}
    for users, expected in (({"t.py::other"}, "other"), (set(), "slow")):
        lines[5] = users
        (mutant,) = (one for one in mutants_in(tmp_path) if not one.definition)
        tests = test_map.tests_of(mutant, tmp_path)
        assert set(tests) == {"t.py::quick", f"t.py::{expected}"}
    assert not choice.runs_at_import(text, 5) and choice.runs_at_import(text, 4)


def test_test_functions_take_turns(test_map):
    test_map.seconds = {"a[1]": 0.1, "a[2]": 0.2, "b[1]": 0.5, "c": 39.4, "d": 50.0}
    assert test_map.in_order(set(test_map.seconds)) == ["a[1]", "b[1]", "c"]


def test_a_definition_ends_where_its_block_ends():
    source = ["class A:", "    def f(", "        x,", "    ):", "        y", "", "    z", "w"]
    assert list(choice.around(source, "A.f")) == [2, 3, 4, 5, 6]
    assert list(choice.around(source, "A")) == [1, 2, 3, 4, 5, 6, 7]
    assert list(choice.around(source, "")) == list(choice.around(source, "B")) == [*range(1, 9)]


def test_a_map_grows_after_an_interrupted_run(tmp_path, monkeypatch):
    (tmp_path / "tinynode/core").mkdir(parents=True)
    (tmp_path / "map/000").mkdir(parents=True)  # without coverage data
    done = subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(choice.subprocess, "run", lambda command, **options: done)
    assert choice.make_map(tmp_path, tmp_path / "map", ["tests/test_f.py"]) == 0
    assert (tmp_path / "map/001/settings.ini").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "choose mutants by --all, --rooms, --files, --since or --again"),
        (["--list", "--files", "tinynode/core/no.py"], "no room has the file tinynode/core/no.py"),
        (["--list", "--since", "no-such-commit"], "no-such-commit"),
    ],
)
def test_wrong_choices_are_refused(arguments, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as refused:
        tool.main([*arguments, "--work", str(tmp_path)])
    assert message in capsys.readouterr().err + str(refused.value)


def test_every_room_has_a_folder():
    assert all((ROOT / path).is_dir() for path in plan.ROOMS.values())


def test_a_new_process_runs_tests_of_few_files():
    tests = [f"{name}.py::t{i}" for i in range(3) for name in "abcde"[: 5 - i]]
    assert {test[0] for test in few_files(tests)} == {"a", "b", "c"}


# --- sessions ------------------------------------------------------------------------------------


def test_a_session_goes_on_where_it_stopped(tmp_path):
    source = "def f(x):\n    return x + 1\n"
    mutants = list(plan.mutants_of("a.py", source))
    session = Session(tmp_path / "a.sqlite")
    assert session.update(mutants) == mutants
    session.write(mutants[0], Verdict("killed", "t.py::t"), source)
    assert session.update(mutants) == mutants[1:]
    session.write(mutants[1], Verdict("survived"), source)
    counts = session.counts()
    assert (counts.caught, counts.survived, counts.pending, counts.share) == (1, 1, 0, 0.5)
    ((item, result),) = session.survivors()
    assert item.job_id == mutants[1].number
    assert "-    return x + 1\n+    return x" in result.diff
    assert session.update(mutants[1:]) == []
    assert session.counts().caught == 0


# --- the runners ---------------------------------------------------------------------------------


def test_functions_are_changed_in_place_but_tables_and_defaults_are_not():
    source = textwrap.dedent("""\
        K = 1
        class A:
            k = 1
            @property
            def f(self, x=1):
                def g():
                    return x + 1
                return g
        """)
    module = compile(source, "a.py", "exec")
    names = [getattr(function_at(module, line), "co_qualname", "") for line in range(1, 9)]
    assert names == ["", "", "", "", "A.f", "A.f", "A.f", "A.f"]
    function = function_at(module, 7)
    assert same_outside(source, source.replace("x + 1", "x + 2"), function)
    assert not same_outside(source, source.replace("x=1", "x=2"), function)


ATTRIBUTES = """\
import dataclasses

K = 1

class A:
    k: int = 1
    table = [K, 2]
    def f(self, x=1):
        return self.k

@dataclasses.dataclass
class D:
    k: int = 1
"""


def test_a_new_process_does_not_take_the_bytecode_of_the_original(tmp_path, monkeypatch):
    """Source and mutant have the same size, and may be written in the same second."""
    path = tmp_path / "k.py"
    path.write_text("K = 1\n", encoding="utf-8")
    mutant = next(iter(plan.mutants_of("k.py", "K = 1\n")))
    before = int(path.stat().st_mtime)
    seen = []

    def run(tests, tree):
        seen.append((int(path.stat().st_mtime), path.read_text(encoding="utf-8")))
        return Verdict("survived")

    monkeypatch.setattr(fresh, "_run", run)
    fresh.run_fresh(mutant, "K = 1\n", ["tests/test_k.py::test_k"], tmp_path)
    assert seen[0][0] != before
    assert seen[0][1] == mutant.mutated("K = 1\n")
    assert int(path.stat().st_mtime) == before


def test_attributes_of_plain_classes_are_changed_in_place(tmp_path, monkeypatch):
    (tmp_path / "attributes_of_a.py").write_text(ATTRIBUTES, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("attributes_of_a")
    live = LiveCode(tmp_path)
    mutants = {one.start[0]: one for one in plan.mutants_of("attributes_of_a.py", ATTRIBUTES)}
    assert sorted(mutants) == [3, 6, 7, 8, 13]
    assert live.changes(mutants[6], ATTRIBUTES) == [(module.A, "k", 2)]
    assert live.changes(mutants[7], ATTRIBUTES) == [(module.A, "table", [1, 3])]
    for line in (3, 8, 13):
        with pytest.raises(NotLiveError):
            live.changes(mutants[line], ATTRIBUTES)


CODE = "def f(x):\n    return x + K\n\n\ndef g(x):\n    return not x\n\n\nK = 1\n"
TESTS = "from tinynode import core\n\n\ndef test_f():\n    assert core.f(1) == 2\n\n\n"
TESTS += "def test_g():\n    core.g(1)\n"
NAMES = ["tests/test_f.py::test_f", "tests/test_f.py::test_g"]


def test_bugs_are_caught_in_forks_and_in_new_processes_or_survive(tmp_path):
    """The whole way on a small project, with a map written by hand."""
    path = "tinynode/core/__init__.py"
    files = {
        "tinynode/__init__.py": "",
        path: CODE,
        f"build/map/000/sources/{path}": CODE,
        "build/map/000/seconds.json": json.dumps(dict.fromkeys(NAMES, 0.1)),
        "tests/test_f.py": TESTS,
        "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.']\n",
        ".gitignore": "build",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    data = CoverageData(basename=str(tmp_path / "build/map/000/coverage"))
    for name, line in zip(NAMES, (2, 6), strict=True):
        data.set_context(f"{name}|run")
        data.add_lines({str(tmp_path / path): [line]})
    data.write()
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    program = (
        "import pathlib, sys; sys.path.insert(0, sys.argv[1]);"
        "from tools.mutation import __main__ as tool; tool.ROOT = pathlib.Path(sys.argv[2]);"
        "raise SystemExit(tool.main(['--work', str(tool.ROOT / 'build'), '--all']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(ROOT), str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    printed = done.stdout + done.stderr
    assert "__init__.py:2 ReplaceBinaryOperator_Add_Sub: killed tests/test_f.py" in printed
    assert "__init__.py:6 ReplaceUnaryOperator_Delete_Not: survived" in printed
    assert "__init__.py:9 NextNumber: killed FAILED tests/test_f.py" in printed
    assert "| `tinynode/core` | 3 | 3 | 2 | 66.7 |" in printed
    assert done.returncode == 1
    assert (tmp_path / path).read_text(encoding="utf-8") == CODE
