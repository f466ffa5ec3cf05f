"""The judge: values over the pipe, drills, hunts, and the judgement of a class."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import judging
import numpy as np
import pytest
from judging import (
    HUNTS,
    KEY,
    ROOT,
    SINGLE,
    hunted,
    plan,
    reasons,
    shelf,
    solution,
    step_of,
    write,
)

from tinynode.commands.command_line import CommandError
from tinynode_course import command, exercises, grading, hunter, mynode, progress, report, sources
from tinynode_course.judge import compare, keys, one, plans, process, submission
from tinynode_course.judge import shelf as shelves
from tinynode_course.judge.inside import lock, wire
from tinynode_course.judge.rewriting import rewritten
from tinynode_course.mynode import Files

STEPS = [step for step in sources.steps() if plans.drills_of(step).exists()]
LAST = mynode.steps_that_build()[-1].key
UNJUDGED = {"devices"}  # its exercise is a kernel for a GPU
MISSED = {
    ("portability", "a method of NumPy's arrays is left"),
    ("gradient_penalty", "the device is named"),
}
"""Mistakes of the checks that drills can't see: they need another array library."""

each_step = pytest.mark.parametrize("step", STEPS, ids=[step.name for step in STEPS])


# values over the pipe


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -3,
        2**200,
        0.1,
        "text\n",
        [1, (2.0, {"a": None})],
        np.float32(0.5),
        np.zeros((0, 3)),
        np.arange(6).reshape(2, 3).T,
        np.array([1 + 2j]),
    ],
)
def test_values_come_back(value: object) -> None:
    line = wire.to_line({"value": wire.encode(value)})
    back = wire.decode(wire.from_line(line)["value"])
    expected = np.asarray(value) if isinstance(value, np.generic) else value
    assert compare.difference(back, expected) == ""
    assert type(back) is type(expected)


def test_numbers_without_a_value_come_back() -> None:
    values = [float("nan"), float("inf"), -float("inf")]
    line = wire.to_line({"value": wire.encode(values)})
    assert compare.difference(wire.decode(wire.from_line(line)["value"]), values) == ""


@pytest.mark.parametrize("value", [object(), {1: 2}, np.array([None]), {2}, b"x", np.ma.zeros])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(wire.WireError):
        wire.encode(value)


def test_lists_in_themselves_are_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(wire.WireError):
        wire.encode(endless)


@pytest.mark.parametrize(
    "junk",
    [
        None,
        ["int", "1"],
        ["int", True],
        ["float", 1],
        ["float", "1.0"],
        ["array", ["float64", [2], "AAAA"]],
        ["array", ["object", [0], ""]],
        ["array", ["float64", [-1], ""]],
        ["array", ["float64", [10**30, 0], ""]],
        ["array", ["float64", [1.5], ""]],
        ["array", ["float64", [1], "\u00e9"]],
        ["array", [["float64"], [1], ""]],
        ["list", {}],
        ["dict", [1]],
        [["list"], []],
        ["class", "x"],
        ["list", [["NoneType", None]] * 60_000],
    ],
)
def test_junk_is_refused(junk: object) -> None:
    with pytest.raises(wire.WireError):
        wire.decode(junk)


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"[" * 100_000, b"1" * 9000, b"\xff"])
def test_junk_lines_are_refused(line: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.from_line(line)


@pytest.mark.parametrize(
    ("got", "right", "words"),
    [
        (np.zeros(2, "float32"), np.zeros(2), "float32"),
        (np.zeros((2, 1)), np.zeros(2), "shape (2, 1)"),
        (1, 1.0, "(int)"),
        (True, 1, "(bool)"),
        ([1, 2], [1, 3], "the value[1]"),
        ([1], [1, 2], "2 values"),
        ({"a": 1}, {"b": 1}, "keys"),
        (np.array([1.0, 2.1]), np.array([1.0, 2.0]), "2.1"),
        (np.array([np.nan]), np.array([0.0]), "nan"),
        (None, 0.0, "None"),
    ],
)
def test_differences_are_named(got: object, right: object, words: str) -> None:
    assert words in compare.difference(got, right)


def test_small_differences_are_none() -> None:
    assert compare.difference([1.0 + 1e-9], (1.0,)) == ""
    assert compare.difference(np.float32([1.00001]), np.float32([1.0])) == ""


# drills


def test_every_step_has_drills() -> None:
    with_exercise = {step.key for step in sources.steps() if step.stub.exists()}
    assert with_exercise - {step.key for step in STEPS} == UNJUDGED
    names = {step.name for step in STEPS}
    files = {path.stem for path in (ROOT / "tutorials" / "drills").glob("*.py")}
    assert files == names


@pytest.mark.slow
@pytest.mark.parametrize("each", [7, pytest.param(1, marks=pytest.mark.long)])
@each_step
def test_drills_measure_the_step(step: sources.Step, each: int) -> None:
    """A stub passes none; each mistake tried fails one drill; the key changes the inputs."""
    one = plan(step.name)
    names = [f"drill_{name}" for name, _ in plans._drills(_module(step))]
    assert one.names == names, "a stub passes the drills that are left out"
    other = plan(step.name, "another key")
    assert all(a != b for a, b in zip(one.inputs, other.inputs, strict=True))
    assert one.right != other.right
    for what, wrong in step.check_module().MISTAKES[::each]:
        files = {**solution(step.name), step.work: wrong}
        if step.builds:
            changed = {**mynode.reference(step.key), **wrong}
            files = {f"mynode/{path}": text for path, text in changed.items()}
        found = plans.run(one, files)
        failed = [plans.verdict(one, place, *got) for place, got in enumerate(found)]
        assert any(failed) != ((step.name, what) in MISSED), what


def _module(step: sources.Step):
    return sources.load(plans.drills_of(step), "drills_of_a_test")


@pytest.mark.slow
@pytest.mark.parametrize("each", [8, pytest.param(1, marks=pytest.mark.long)])
@each_step
def test_drills_fit_later_stages(step: sources.Step, each: int) -> None:
    """Every eighth stage, counted from the last one, or all of them."""
    if not step.builds:
        pytest.skip("an exercise in a file of its own")
    one = plan(step.name)
    own = mynode.changed(step.key) if step.kind == "elective" else {}
    first = step.key if step.kind == "step" else mynode.earlier(step)[-1].key
    keys_ = [later.key for later in mynode.steps_that_build() if later.key >= first]
    for key in keys_[::-1][::each]:
        stage = mynode.reference(key) | own
        files = {f"mynode/{path}": text for path, text in stage.items()}
        found = plans.run(one, files)
        assert [plans.verdict(one, place, *got) for place, got in enumerate(found)] == [""] * len(
            found
        ), key


def test_the_lesson_of_step_5_holds_after_the_rewriting(tmp_path: Path) -> None:
    wrong = mynode.mistake(
        LAST,
        "core/backprop.py",
        "x.grad = gx if x.grad is None else x.grad + gx",
        "x.grad = gx if x.grad is None else x.grad.__iadd__(gx)",
    )
    files = {**solution("step05"), "mynode/core/backprop.py": wrong["core/backprop.py"]}
    folder = write(files, tmp_path / "ada")
    assert any("differ" in one or "expected" in one for one in reasons("step05", folder))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "path", "old", "new"),
    [
        ("step08", "functions/activation.py", "np.maximum(x, 0)", "np.maximum(x, 0, out=x)"),
        (
            "step09",
            "functions/cross_entropy.py",
            "x - x.max(axis=1, keepdims=True)",
            "np.subtract(x, x.max(axis=1, keepdims=True), out=x)",
        ),
        ("step08", "functions/activation.py", "gy * (y > 0)", "gy * (y >= 0)"),
        ("step09", "nn/optimizers.py", "(root + self.eps)", "np.sqrt(root * root + self.eps)"),
        ("step09", "nn/optimizers.py", "array - self.lr * grad", "array.__isub__(self.lr * grad)"),
        (
            "step16",
            "functions/pooling.py",
            "windows.argmax(axis=2)",
            "windows.shape[2] - 1 - windows[:, :, ::-1].argmax(axis=2)",
        ),
        ("step16", "functions/convolution.py", "windows.dtype)", "float)"),
        ("step17", "functions/indexing.py", "np.add.at(gx, indices, gy)", "gx[indices] += gy"),
    ],
)
def test_bugs_that_checks_let_through(
    name: str, path: str, old: str, new: str, tmp_path: Path
) -> None:
    wrong = mynode.mistake(LAST, path, old, new)
    folder = write({**solution(name), f"mynode/{path}": wrong[path]}, tmp_path / "ada")
    assert any(reasons(name, folder))


@pytest.mark.slow
def test_right_answers_of_another_form(tmp_path: Path) -> None:
    text = """
import tinynode as tn

def jvp(f, x, v):
    y, pullback = tn.vjp(f, x, enable_double_backprop=True)
    u = tn.asarray(0.0 * y.array, requires_grad=True)
    return y, tn.grad(pullback(u), [u], [v], enable_double_backprop=True)[0]

def hvp(f, x, v):
    y, pullback = tn.vjp(f, x, enable_double_backprop=True)
    (g,) = pullback(tn.asarray(1.0, dtype=y.dtype))
    return tn.grad([g], [x], [v])[0]

def bend(f, x, v):
    return jvp(lambda at: jvp(f, at, v)[1], x, v)[1]
"""
    assert reasons(SINGLE, write({f"{SINGLE}.py": text}, tmp_path / "ada")) == [""]


# hunts


@pytest.mark.slow
@pytest.mark.parametrize("name", [path.stem for path in sorted(HUNTS.glob("*.py"))])
def test_hunts(name: str, tmp_path: Path) -> None:
    """The solution catches all bugs, and passes on right engines of all forms; a stub none."""
    found = hunted(name, (HUNTS / f"{name}.py").read_text(), tmp_path)
    assert found == {"caught": found["of"], "of": found["of"], "broken": []}
    stub = (ROOT / "tutorials" / "hunts" / "stubs" / f"{name}.py").read_text()
    found = hunted(name, stub, tmp_path)
    assert (found["caught"], found["broken"]) == (0, [])
    assert hunted(name, "x = 1\n", tmp_path)["caught"] == 0


@pytest.mark.slow
def test_engines_have_forms_of_their_own() -> None:
    module = sources.load(ROOT / "tutorials/hunts/step06.py", "hunt_of_a_test")
    text = hunter.version(module, 0)["core/backprop.py"]
    forms = {rewritten(text, np.random.default_rng(seed)) for seed in range(10)}
    assert len(forms) == 10 and text not in forms
    one = judging.hunt_plan("step06")
    assert one.bugs.count("") == 3 and len(one.bugs) == 15


# a class


def test_a_key_is_new_and_private(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert command.main(["class", "new", str(tmp_path / name)]) == 0
    found = [keys.open_key(tmp_path / name) for name in ("one", "two")]
    assert found[0] != found[1] and len(bytes.fromhex(found[0])) == 32
    assert (tmp_path / "one" / keys.NAME).stat().st_mode & 0o77 == 0
    assert command.main(["class", "new", str(tmp_path / "one")]) == 2
    assert keys.open_key(tmp_path / "one") == found[0]
    draws = [keys.generator(key, "step05").normal() for key in (*found, found[0])]
    assert draws[0] == draws[2] != draws[1]


def class_of(tmp_path: Path) -> list[str]:
    """Four submissions: right, wrong, hostile, with a strange name."""
    right = {**solution("step05"), **solution(SINGLE)}
    write(right, tmp_path / "ada")
    write({**right, f"{SINGLE}.py": "import os\nos._exit(0)\n"}, tmp_path / "bob")
    write({"mynode/__init__.py": "while True: pass\n"}, tmp_path / "eve")
    write({f"{SINGLE}.py": "<b>"}, tmp_path / "=<b>x")
    return [str(tmp_path / name) for name in ("ada", "bob", "eve", "=<b>x")]


def judge(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "tinynode.learn", "class", "judge", "teacher", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )


def of_other_names(files: dict[str, str]) -> dict[str, str]:
    """A package ours with a class Tensor, from the reference."""
    found = {}
    for path, text in files.items():
        text = re.sub(r"\bVariable\b", "Tensor", re.sub(r"\bmynode\b", "ours", text))
        found[path.replace("mynode/", "ours/", 1)] = text
    return found


ADAPTER = submission.Adapter("ours", "from ours import *\nfrom ours import Tensor as Variable\n")


def judged_with(
    adapter: submission.Adapter | None, folder: Path, key: str = "step05"
) -> list[str]:
    student = submission.read(folder, grading.with_exercise(), adapter)
    result = one.Judge(student).step(step_of(key), plan(key))
    return [f"{result['state']}"] + ["".join(check["text"]) for check in result["checks"]]


@pytest.mark.slow
def test_an_adapter_judges_a_package_of_other_names(tmp_path: Path) -> None:
    right = of_other_names(solution("step05"))
    ada = write({**right, "mynode/__init__.py": "raise SystemExit"}, tmp_path / "ada")
    assert judged_with(None, ada)[0] != "passed"  # mynode of the student's is not read
    for key in ("step05", "step04", "step01"):  # the drills know no name of a class
        assert set(judged_with(ADAPTER, ada, key)[1:]) == {""}
    wrong = right["ours/core/backprop.py"].replace("x.grad + gx", "gx")
    assert wrong != right["ours/core/backprop.py"]
    bob = write({**right, "ours/core/backprop.py": wrong}, tmp_path / "bob")
    state, *reasons_of_bob = judged_with(ADAPTER, bob)
    assert state == "failed" and any(reasons_of_bob)
    (tmp_path / "eve").mkdir()
    assert judged_with(ADAPTER, tmp_path / "eve")[0] == "not started"  # no points for the adapter
    eve = submission.read(tmp_path / "eve", grading.with_exercise(), ADAPTER)
    assert eve.remarks == ["there is no package ours, which the adapter needs"]


def begun(key: str, learned: Files | None = None) -> Files:
    """A submission with the work before a step, and the step's stubs or other files."""
    files = plans.stub(sources.find(key))
    return files | {f"mynode/{path}": text for path, text in (learned or {}).items()}


def judged_steps(folder: Path, *names: str) -> list[dict[str, Any]]:
    """The results of steps for a submission."""
    student = submission.read(folder, grading.with_exercise())
    judge = one.Judge(student)
    return [judge.step(step_of(name), plan(name)) for name in names]


def test_a_step_of_mynode_that_fails_all_drills_is_begun(tmp_path: Path) -> None:
    stub = write(begun("08"), tmp_path / "stub")
    (result,) = judged_steps(stub, "step08")
    assert result["state"] == "not started"
    wrong = {
        path: "\n\n\n".join(
            f"def {name}(*args, **options):\n    raise ValueError('{name} is wrong')"
            for name in mynode.definitions(text)
        )
        for path, text in mynode.changed("08").items()
        if path != "__init__.py"
    }
    (result,) = judged_steps(write(begun("08", wrong), tmp_path / "ada"), "step08")
    assert result["state"] == "failed"
    assert all(check["text"] for check in result["checks"])


def test_a_step_without_new_names_is_begun_by_later_work(tmp_path: Path) -> None:
    """Step 5 rewrites definitions only: the work for step 6 says that step 5 was begun."""
    broken = begun("06")["mynode/core/backprop.py"].replace("def run_backward(", "def other(")
    folder = write(begun("06", {"core/backprop.py": broken}), tmp_path / "stub")
    assert [one["state"] for one in judged_steps(folder, "step05", "step06")] == [
        "not started",
        "not started",
    ]
    pushed = broken.replace("raise NotImplementedError", "heap.append(None)")
    folder = write(begun("06", {"core/backprop.py": pushed}), tmp_path / "ada")
    assert [one["state"] for one in judged_steps(folder, "step05", "step06")] == [
        "failed",
        "failed",
    ]


def test_taken_definitions_are_counted(tmp_path: Path) -> None:
    """``take`` is in the file of progress; without the file, the syntax tree says the same."""
    folder = write(plans._package(mynode.reference("08")), tmp_path / "ada")
    (result,) = judged_steps(folder, "step08")
    number = result["definitions"]["same as reference"]
    assert result["passed"] and number == len(result["same_as_reference"]) == 5
    assert result["definitions"]["taken"] == 0
    taken = {
        path: {name: exercises.digest(found) for name, found in mynode.definitions(text).items()}
        for path, text in mynode.changed("08").items()
    }
    content = {"format": progress.FORMAT, "steps": {"08": {"taken": taken}}}
    (folder / progress.NAME).write_text(json.dumps(content))
    (result,) = judged_steps(folder, "step08")
    assert result["definitions"]["taken"] == number and result["same_as_reference"] == []
    network = folder / "mynode/functions/network.py"
    network.write_text(network.read_text().replace("x @ w.T", "x @ w.transpose()"))
    (folder / progress.NAME).write_text("{" * 100)  # a damaged file counts as none
    (result,) = judged_steps(folder, "step08")
    assert result["definitions"]["own"] == 1
    assert result["definitions"]["same as reference"] == number - 1


@pytest.mark.parametrize(
    "name", ["numpy.py", "json.py", "mynode.py", "tinynode_x.py", "a b.py", "x"]
)
def test_an_adapter_takes_no_name_of_a_library(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(CommandError, match="such as ours"):
        submission.read_adapter(tmp_path / name)
    (tmp_path / "ours.py").write_text("x = 1")
    assert submission.read_adapter(tmp_path / "ours.py").text == "x = 1"
    with pytest.raises(CommandError, match="cannot be read"):
        submission.read_adapter(tmp_path / "theirs.py")


@pytest.mark.slow
def test_a_class_is_judged(tmp_path: Path) -> None:
    assert command.main(["class", "new", str(tmp_path / "teacher")]) == 0
    folders = class_of(tmp_path)
    options = ["--steps", f"05,{SINGLE}", "--csv", "class.csv", "--html", "class.html"]
    found = judge(tmp_path, *folders, *options)
    assert found.returncode == 0, found.stderr
    assert "ada: 2 of 2 exercises pass" in found.stdout
    assert "bob: 1 of 2 exercises pass" in found.stdout
    rows = list(csv.reader((tmp_path / "class.csv").read_text().splitlines()))
    states = {
        row[0]: (row[rows[0].index("05 state")], row[rows[0].index(f"{SINGLE} state")])
        for row in rows
    }
    assert states["ada"] == ("passed", "passed")
    assert states["bob"] == ("passed", "failed")
    assert states["eve"] == ("failed", "not started")
    assert states["'=<b>x"] == ("not started", "failed")
    page = (tmp_path / "class.html").read_text()
    assert "<b>x" not in page and "Python ended with status 0" in page
    again = judge(tmp_path, *folders, *options)
    assert "4 of 4 submissions are judged already" in again.stdout
    (tmp_path / "bob" / f"{SINGLE}.py").write_text(solution(SINGLE)[f"{SINGLE}.py"])
    after = judge(tmp_path, *folders, "--steps", f"05,{SINGLE}", "--json")
    results = json.loads(after.stdout)["results"]
    (tmp_path / "all.json").write_text(after.stdout)
    students = report.read(tmp_path / "all.json")
    assert [one.name for one in students] == [one["folder"] for one in results]
    assert command.main(["report", str(tmp_path / "all.json")]) == 0
    one_of_all = ["report", str(tmp_path / "all.json"), "--passes", "05:1"]
    assert command.main(one_of_all) == 2
    assert [one["passed"] for one in results] == [True, True, False, False]
    judge(tmp_path, folders[0], "--steps", f"05,{SINGLE}", "--gradescope", "results.json")
    tests = json.loads((tmp_path / "results.json").read_text())["tests"]
    assert tests and all(test["score"] == test["max_score"] for test in tests)
    assert judge(tmp_path, *folders, "--gradescope", "results.json").returncode == 2
    assert KEY not in after.stdout and keys.open_key(tmp_path / "teacher") not in after.stdout


@pytest.mark.parametrize("text", ["[]", "3", "{}", "null", '{"format": "tinynode-class"}'])
def test_a_damaged_key_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / keys.NAME).write_text(text)
    with pytest.raises(CommandError, match=r"cannot be read: .*class new") as error:
        keys.open_key(tmp_path)
    assert "attribute" not in str(error.value)


HEARS_CTRL_C = (
    "import runpy, signal\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "runpy.run_module('tinynode.learn', run_name='__main__', alter_sys=True)\n"
)
"""A shell lets programs in the background ignore Ctrl-C: this one hears it."""


@pytest.mark.slow
def test_ctrl_c_leaves_no_process(tmp_path: Path) -> None:
    command.main(["class", "new", str(tmp_path / "teacher")])
    loop = "import os, time\nwhile True:\n    time.sleep(1)\n"
    write({f"{SINGLE}.py": loop}, tmp_path / "eve")
    words = f"class judge teacher eve --steps {SINGLE}"
    before = process.children()
    judging_process = subprocess.Popen(
        [sys.executable, "-P", "-c", HEARS_CTRL_C, *words.split()],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert judging_process.stdout is not None
    for line in judging_process.stdout:
        if "drills are drawn" in line:
            break
    time.sleep(2.0)
    judging_process.send_signal(signal.SIGINT)
    out, _ = judging_process.communicate(timeout=30)
    assert judging_process.returncode != 0 and "interrupted" in out
    adopted = set(process.children()) - set(before)
    left = [Path(f"/proc/{pid}/stat").read_text() for pid in adopted]
    assert all(") Z " in facts for facts in left)  # killed, and adopted by this process
    process.kill_orphans(before)
    assert not list((tmp_path / "teacher").glob("results/*"))


def test_a_folder_of_a_student_is_no_place_to_judge(tmp_path: Path) -> None:
    command.main(["class", "new", str(tmp_path / "teacher")])
    write({f"{SINGLE}.py": "", "tinynode/__init__.py": "print('mine')"}, tmp_path / "ada")
    found = subprocess.run(
        [sys.executable, "-P", "-m", "tinynode.learn", "class", "judge", "../teacher", "../ada"],
        cwd=tmp_path / "ada",
        capture_output=True,
        text=True,
    )
    assert found.returncode == 2 and "inside of the submission" in found.stderr
    assert "mine" not in found.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody"], "is no folder"),
        (["a/ada", "b/ada"], "two submissions have the name ada"),
        (["a/ada", "--steps", "99"], "no step with drills named '99'"),
    ],
)
def test_wrong_calls(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a/ada", "b/ada", "empty"):
        (tmp_path / name).mkdir(parents=True)
    command.main(["class", "new", "teacher"])
    assert command.main(["class", "judge", "teacher", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert command.main(["class", "judge", "empty", "a/ada"]) == 2
    assert "class new" in capsys.readouterr().err


# the child


def test_libraries_have_no_course(tmp_path: Path) -> None:
    for kind, names in (("numpy", ["numpy"]), ("tinynode", ["numpy", "tinynode"])):
        found = {
            path.name for folder in shelf().libraries(kind) for path in Path(folder).iterdir()
        }
        assert set(names) <= found
        course = [Path(folder) / "tinynode_course" for folder in shelf().libraries(kind)]
        files = {path.name for folder in course if folder.exists() for path in folder.iterdir()}
        assert files == {"__init__.py", "rows.py", "drilling.py"}
        if kind == "numpy":
            assert "tinynode" not in found


def test_emptied_definitions(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        "import math\n\n\nclass A(int):\n    x = 1\n\n\ndef f(x):\n    return 2\n\n\ng = 3\n"
    )
    shelves.empty(path, ["A", "f"])
    names: dict[str, object] = {}
    exec(path.read_text(), names)
    assert names["g"] == 3 and not hasattr(names["A"], "x")
    with pytest.raises(NotImplementedError):
        names["f"](1)  # type: ignore[operator]
    with pytest.raises(ValueError, match="no definition h"):
        shelves.empty(path, ["h"])


def decision(machine: str, number: int, arguments: tuple[int, ...] = (), audit: int = 0) -> int:
    """What the filter of system calls answers, by an interpreter of its instructions."""
    filled = (*arguments, *[0] * 6)[:6]
    words = struct.pack("IIQ6Q", number, audit or lock.ARCHITECTURE[machine], 0, *filled)
    accumulator, place = 0, 0
    steps = lock.instructions(machine, pid=77)
    while True:
        code, if_true, if_false, k = steps[place]
        place += 1
        if code == lock.RETURN:
            return k
        if code == lock.LOAD:
            (accumulator,) = struct.unpack_from("I", words, k)
            continue
        holds = {
            lock.JUMP_EQUAL: accumulator == k,
            lock.JUMP_GREATER: accumulator >= k,
            lock.JUMP_BITS: bool(accumulator & k),
        }[code]
        place += if_true if holds else if_false


@pytest.mark.parametrize("machine", lock.MACHINES)
def test_the_filter_of_system_calls(machine: str) -> None:
    place = lock.MACHINES.index(machine)
    refused = lock.ERROR | lock.EPERM
    numbers = {name: found[place] for name, found in lock.CHECKED.items()}
    for number in [found[place] for found in lock.REFUSED.values()]:
        assert number is None or decision(machine, number) == refused
    assert {decision(machine, n) for n in lock.REFUSED_EVERYWHERE.values()} == {refused}
    usual = {"x86_64": (0, 1, 2, 3, 9, 11, 202, 231), "aarch64": (56, 57, 63, 64, 98, 222, 94)}
    for number in usual[machine]:
        assert decision(machine, number) == lock.ALLOW
    assert decision(machine, lock.CLONE3) == lock.ERROR | lock.ENOSYS
    assert decision(machine, numbers["clone"], (lock.CLONE_THREAD | 1,)) == lock.ALLOW
    assert decision(machine, numbers["clone"], (17,)) == refused
    for name in ("kill", "tgkill"):
        assert decision(machine, numbers[name], (77, 9)) == lock.ALLOW
        assert decision(machine, numbers[name], (78, 9)) == refused
        assert decision(machine, numbers[name], (2**64 - 1, 9)) == refused
    assert decision(machine, numbers["prctl"], (lock.PDEATHSIG,)) == refused
    assert decision(machine, numbers["prctl"], (15,)) == lock.ALLOW
    assert decision(machine, numbers["prlimit64"], (0, 7, 0, 4096)) == lock.ALLOW
    assert decision(machine, numbers["prlimit64"], (0, 7, 4096, 0)) == refused
    assert decision(machine, numbers["prlimit64"], (0, 7, 2**32, 0)) == refused
    assert decision(machine, 1, audit=0x40000003) == lock.KILL
    if machine == "x86_64":
        assert decision(machine, 0x40000000 | 57) == refused


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux")
def test_processes_that_left_their_session_are_killed(tmp_path: Path) -> None:
    """Without the lock: a grandchild in a session of its own."""
    program = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        print(os.getpid(), flush=True)\n"
        "        time.sleep(600)\n"
        "    os._exit(0)\n"
        "time.sleep(600)\n"
    )
    process.adopt_orphans()
    server = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    before = process.children()
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout is not None
    pid = int(child.stdout.readline())
    process.kill_all(child, before)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    child.stdout.close()
    assert server.poll() is None, "a process of the judging program is spared"
    server.kill()
    server.communicate()


def test_step_of_names() -> None:
    assert step_of("step05").key == "05"
