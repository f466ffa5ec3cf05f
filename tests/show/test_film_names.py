"""The names of nodes in films, from the program's text."""

from __future__ import annotations

import functools
import linecache
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from film_views import all_steps, labels

import tinynode as tn
from tinynode import nn
from tinynode.show import Film
from tinynode.show.films.names import LONGEST, SourceNames
from tinynode.show.films.recorder import record

F = tn.functions
ROOT = Path(__file__).resolve().parents[2]


def variable(*values: float) -> tn.Variable:
    return tn.Variable(np.array(values))


def names_in(film: Film) -> list[str]:
    """The labels of the variables, in their order."""
    found = labels(film.data())
    return [label for name, label in found.items() if name[0] == "v"]


def indented(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.splitlines())


@pytest.fixture(autouse=True)
def no_text_stays() -> Iterator[None]:
    before = dict(linecache.cache)
    yield
    linecache.cache.clear()
    linecache.cache.update(before)


def check(code: str, expected: list[str]) -> None:
    """The names in a function's code, at the function's own lines."""
    name = f"<names {abs(hash(code))}>"
    text = f"def _run():\n{indented(code)}\n_run()\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"F": F, "nn": nn, "np": np, "tn": tn, "_v": variable}
    with record() as film:
        exec(compile(text, name, "exec"), {**space, "__name__": "names"})
    assert names_in(film) == expected, code


# --- statements and expressions ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = _v(1.0)\ny = F.exp(x)", ["x", "y"]),
        ("x = _v(1.0)\nF.exp(x)", ["x", "exp(x)"]),
        ("x = _v(1.0)\ny: object = F.exp(x)", ["x", "y"]),
        ("x = _v(1.0)\nif (y := F.exp(x)) is x: pass", ["x", "y"]),
        ("x = _v(1.0)\na = b = F.exp(x)", ["x", "a"]),
        ("x = _v(1.0)\ny = F.exp(x) * x", ["x", "exp(x)", "y"]),
        ("x = y = _v(1.0)\nz = x * _v(2.0)\nz = z + y", ["x", "_v(2.0)", "z", "z (2)"]),
        ("x = -_v(1.0)\nx += _v(2.0)", ["_v(1.0)", "x", "_v(2.0)", "x (2)"]),
        ("x = _v(1.0)\ny = -x", ["x", "y"]),
        ("x = _v(1.0)\ny = x > 0.5", ["x", "0.5", "y"]),
        ("x = _v(1.0, 2.0)\ny = x[0]", ["x", "y"]),
        ("x = _v(1.0)\ny = F.reshape(x, (1, 1)).T", ["x", "reshape(x, (1, 1))", "y"]),
        ("x = _v(1.0)\ny = x.sum()", ["x", "y"]),
        ("x = _v(1.0)\ny = x.reshape((1, 1))", ["x", "y"]),
        ("x = _v(1.0)\ny = x.reshape(1, 1).sum(0)", ["x", "x.reshape(1, 1)", "y"]),
        ("x = _v(1.0)\ny = tn.functions.exp(x)", ["x", "y"]),
        ("import tinynode.functions as G\nx = _v(1.0)\ny = G.sum(x)", ["x", "y"]),
        ("from tinynode import show as s, functions\nfunctions.sum(_v(1.0))",
         ["_v(1.0)", "sum(_v(1.0))"]),
        ("x = _v(1.0)\nd = {}\nd['h'] = F.exp(x)", ["x", "d['h']"]),
        ("class o: pass\nx = _v(1.0)\no.h = F.exp(x)\no.h = F.log(o.h)", ["x", "o.h", "o.h (2)"]),
        ("x = _v(1.0)\nys = [F.exp(v) for v in [x]]", ["v", "exp(v)"]),
        ("x = _v(1.0)\nf = lambda v: v * 2.0\ny = f(x)", ["v", "2.0", "y"]),
        ("x = _v(1.0)\nfor i in range(3): x = F.exp(x)", ["x", "x (2)", "x (3)", "x (4)"]),
        ("xs = [_v(1.0), _v(2.0)]\ny = F.add_all(*xs)", ["xs[0]", "xs[1]", "y"]),
        ("x = _v(1.0)\ny = F.add_all(x, x, _v(2.0))", ["x", "_v(2.0)", "y"]),
        ("x = _v(1.0)\ny = (\n    F.exp(\n        x\n    )\n)", ["x", "y"]),
        ("x = _v(1.0)\n(\n    F.exp(\n        x\n    )\n)", ["x", "exp(x)"]),
        ("x = _v(1.0)\ny = F.add_all([F.exp(x), F.log(x)][0], F.exp(x))",
         ["x", "exp(x)", "log(x)", "exp(x) (2)", "y"]),
        ("x = _v(1.0)\ny = F.exp(F.maximum(x, F.minimum(x, 12345.678))) * x",
         ["x", "12345.678", "minimum(x, 12345.678)", "maximum(x, …)", "exp(…)", "y"]),
        ("x = _v(1.0)\n(x * 1234567.5 + x * 7654321.5) * 2.0",
         ["x", "1234567.5", "x * 1234567.5", "7654321.5", "x * 7654321.5", "x * 1234567.5 + …",
          "2.0", "… * 2.0"]),
        ("x = _v(1.0)\ny = F.exp(x); z = F.log(x)", ["x", "y", "z"]),
    ],
)  # fmt: skip
def test_names(code: str, expected: list[str]) -> None:
    check(code, expected)


def test_a_result_through_callers() -> None:
    def inner(v: tn.Variable) -> tn.Variable:
        return F.exp(v)

    def outer(v: tn.Variable) -> tn.Variable:
        return inner(v)

    with record() as film:
        x = variable(1.0)
        h = outer(x)
        F.log(h)
    assert names_in(film) == ["v", "h", "log(h)"]


def test_a_result_through_a_decorator() -> None:
    def plain(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any) -> Any:
            return function(*args)

        return wrapper

    @plain
    @functools.cache
    def double(v: tn.Variable) -> tn.Variable:
        return v * v

    with record() as film:
        x = variable(1.0)
        y = double(x)
    assert names_in(film) == ["v", "y"]
    del y


def test_the_result_of_a_model_is_that_of_its_last_function() -> None:
    model = nn.Sequential(nn.Linear(2, 3), F.tanh, nn.Linear(3, 1))
    with record() as film:
        x = tn.Variable(np.ones((1, 2), np.float32))
        scores = model(x)
        del scores
    assert names_in(film) == [
        "x", "weight", "bias", "Linear output", "Tanh output", "weight (2)", "bias (2)", "scores",
    ]  # fmt: skip


def test_a_model_in_a_loop() -> None:
    model = nn.Sequential(nn.Linear(2, 2), F.tanh)
    with record() as film:
        h = tn.Variable(np.ones((1, 2), np.float32))
        for _ in range(3):
            h = model(h)
        F.sum(h).backward()
    assert names_in(film) == [
        "h", "weight", "bias", "Linear output", "h (2)", "Linear output (2)", "h (3)",
        "Linear output (3)", "h (4)", "sum(h)",
    ]  # fmt: skip


def test_outputs_of_a_function_with_several() -> None:
    with record() as film:
        x = variable(1.0, 2.0, 3.0, 4.0)
        first, second = F.split(x, 2)
        F.exp(second)
        del first
    assert names_in(film) == ["x", "first", "second", "exp(second)"]
    with record() as film:
        parts = F.split(x, 4)
        F.exp(parts[0])
        F.log(parts[2])
    assert names_in(film) == [
        "x", "parts[0]", "Split output 2", "parts[2]", "Split output 4", "exp(parts[0])",
        "log(parts[2])",
    ]  # fmt: skip
    with record() as film:
        head, *others = F.split(x, 4)
        F.exp(others[0])
        del head
    assert names_in(film)[:3] == ["x", "head", "others[0]"]


def test_a_loss_with_a_second_output() -> None:
    with record() as film:
        scores = tn.Variable(np.ones((2, 2)))
        loss = F.softmax_cross_entropy(scores, np.array([0, 1]))
        loss.backward()
    assert names_in(film) == [
        "scores", "array([0, 1])", "loss", "SoftmaxCrossEntropy output 2",
    ]  # fmt: skip


def test_a_long_name_is_cut() -> None:
    long = "an_argument_with_a_very_long_name"
    code = f"{long} = _v(1.0)\nF.exp({long})\ny = F.log({long})"
    assert len(long) > LONGEST
    check(code, [f"{long[: LONGEST - 1]}…", "exp(…)", "y"])


def test_inner_functions_of_a_composed_call_take_no_operands() -> None:
    """``F.softplus`` runs Negative, LogSigmoid, Negative."""
    with record() as film:
        x = variable(1.0)
        y = F.softplus(x)
        del y
    assert names_in(film) == ["x", "Negative output", "LogSigmoid output", "y"]


def test_a_written_element_gives_a_new_value_to_the_variable() -> None:
    with record() as film:
        x = variable(1.0, 2.0)
        y = x * 1.0
        y[0] = variable(5.0)
    found = names_in(film)
    assert found[:3] == ["x", "1.0", "y"] and found[-1] == "y (2)" and "y[0]" not in found


def test_the_arguments_of_a_layer_of_an_object() -> None:
    """``self.layer`` is no method of a Variable, so ``self`` is no operand."""

    class Net(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(2, 2)

        def __call__(self, v: Any) -> tn.Variable:
            return self.layer(v)

    with record() as film:
        y = Net()(np.ones((1, 2), np.float32))
        del y
    assert names_in(film) == ["v", "weight", "bias", "y"]


def test_gradients_inside_of_a_backward_pass_have_no_operands() -> None:
    with record() as film:
        x = variable(1.0, 2.0)
        y = F.sum(x * x)
        (gx,) = tn.grad([y], [x], enable_double_backprop=True)
        del gx
    found = names_in(film)
    assert "[y]" not in found and "[x]" not in found and "gx" in found


def test_a_numbered_repeat_takes_no_label_of_another() -> None:
    x, y, z = (tn.Variable(np.array([1.0]), name=name) for name in ("w", "w", "w (2)"))
    with record() as film:
        F.sum(x * y * z)
    found = names_in(film)
    assert {"w", "w (2)", "w (3)"} <= set(found)


def test_own_names_come_first() -> None:
    with record() as film:
        x = tn.Variable(np.array(1.0), name="given")
        y = F.exp(x)
        y.name = "result"
    assert names_in(film) == ["given", "result"]


# --- texts that are missing or odd ---------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "def (:\n",
        "x = 1\n",
        "\0",
        "y = F.exp(x" + "\n" * 5,
        "(" * 500,
        "'\\d'\n",
        "y = F.exp(z) + F.exp(x)\n",
        "\N{ZERO WIDTH NO-BREAK SPACE}y = F.exp(x)\n",
    ],
)
def test_a_text_that_has_changed_or_cannot_be_read(text: str) -> None:
    name = "<changed>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"F": F, "x": variable(1.0), "__name__": "changed"}
    with warnings.catch_warnings(), record() as film:
        warnings.simplefilter("error")
        exec(compile("y = F.exp(x)", name, "exec"), space)
        names_in(film)
    assert len(names_in(film)) == 2


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "gone.py"
    path.write_text("def run(x):\n    h = F.exp(x)\n    return h * h\n", encoding="utf-8")
    space: dict[str, Any] = {"F": F, "__name__": "gone"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
    path.unlink()
    with record() as film:
        space["run"](variable(1.0))
    assert names_in(film) == ["input", "Exp output", "Multiply output"]


def test_a_file_that_is_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes(b"def run(x):\n    h = F.exp(x)  # caf\xe9\n    return h * h\n")
    space: dict[str, Any] = {"F": F, "__name__": "latin"}
    exec(compile(path.read_bytes().decode("latin-1"), str(path), "exec"), space)
    with record() as film:
        space["run"](variable(1.0))
    assert len(names_in(film)) == 3


def test_columns_are_counted_in_bytes() -> None:
    check(
        'größe = _v(1.0)\nprint(end="äöü€\N{GRINNING FACE}"[:0]); höhe = F.exp(größe) * größe',
        ["größe", "exp(größe)", "höhe"],
    )


def test_a_cell_of_a_notebook() -> None:
    """F was imported by another cell."""
    name, code = "/tmp/ipykernel_4711/99.py", "y = F.sum(x)\nz = y.sum()\nF.exp(_w)\n"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    space = {"F": F, "x": variable(1.0), "_w": variable(2.0), "__name__": "__main__"}
    with record() as film:
        exec(compile(code, name, "exec"), space)
    assert names_in(film) == ["x", "y", "z", "_w", "exp(_w)"]


def test_code_without_a_text() -> None:
    space: dict[str, Any] = {"F": F, "_x": variable(1.0), "__name__": "nowhere"}
    with record() as film:
        exec("def run(v):\n    h = F.exp(v)\n    return h * v\nrun(_x)", space)
    assert names_in(film) == ["input", "Exp output", "Multiply output"]


@pytest.mark.slow
def test_code_from_the_standard_input_and_without_columns() -> None:
    code = (
        "import numpy as np, tinynode as tn\n"
        "with tn.show.record() as film:\n"
        "    _x = tn.Variable(np.array(1.0)); tn.functions.exp(_x * _x)\n"
        "data = film.data()\n"
        "print(len(film), sorted(node['label'] for node in data['pictures'][0]['nodes']))\n"
    )
    for options in ([], ["-X", "no_debug_ranges"]):
        result = subprocess.run(
            [sys.executable, "-W", "error", *options, "-"],
            input=code,
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        shown = ["Exp", "Exp output", "Multiply", "Multiply output", "input"]
        assert result.stdout.strip() == f"2 {shown}"


def test_a_very_deep_expression() -> None:
    """The text of such an expression is not written: the recursion would be too deep."""
    name, code = "<deep>", f"y = {' + '.join(['x'] * 600)}\n"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    names = SourceNames()
    assert names.of_output(((name, 1, 1, 4, len(code) - 1),), 0) == "y"
    inner = ((name, 1, 1, 4, len(code) - 5),)
    assert names.of_output(inner, 0) == names.of_input(inner, 0) == "… + x"
    assert names.of_input(inner, 1) == "x"
    assert names.of_output(((name, 1, 1, 4, 9),), 0) == "x + x"


def test_names_of_unknown_places() -> None:
    names = SourceNames()
    for place in (("<nowhere>", 1, 1, 0, 5), (__file__, 0, 0, 0, 0), (__file__, 9**9, 9**9, 1, 2)):
        assert names.of_output((place,), 0) == names.of_input((place,), 0) == ""
    assert names.of_output((), 0) == names.of_input((), 3) == ""


def test_steps_of_a_film_use_the_names() -> None:
    with record() as film:
        x, y = variable(1.0), variable(2.0)
        z = F.exp(x * y)
        z.backward()
    titles = [step["title"] for step in all_steps(film.data())]
    assert titles == [
        "Multiply computes x * y from x and y.",
        "Exp computes z from x * y.",
        "Backward starts at z.",
        "Exp takes the gradient of z and gives the gradient of x * y.",
        "Multiply takes the gradient of x * y and gives the gradient of x and y.",
        "Backward has ended: x and y have their gradients.",
    ]
