"""Films: every step against what really ran, what is kept alive, limits, errors."""

from __future__ import annotations

import gc
import json
import linecache
import math
import re
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from film_views import (
    Data,
    all_edges,
    all_nodes,
    all_steps,
    cells,
    functions,
    labels,
    named,
    rounded,
    steps,
    tables,
)

import tinynode as tn
from tinynode import nn
from tinynode.core.backprop import Sweep
from tinynode.core.hooks import thread_state
from tinynode.show import Film
from tinynode.show.films import recorder
from tinynode.show.films.recorder import record
from tinynode.show.films.sources import AROUND, WHOLE_FILE, Files
from tinynode.show.films.values import CELLS, Values
from tinynode.show.page.classes import describe_class

F = tn.functions


@pytest.fixture(autouse=True)
def nothing_watches_afterwards() -> Iterator[None]:
    yield
    assert not thread_state.hooks


def variable(*values: float, name: str | None = None) -> tn.Variable:
    return tn.Variable(np.array(values), name=name)


def example() -> tuple[Data, tn.Variable, tn.Variable]:
    """x * y + x with two contributions to the gradient of x."""
    x, y = variable(1.0, 2.0, 3.0, name="x"), variable(4.0, 5.0, 6.0, name="y")
    with record("example") as film:
        z = x * y + x
        z.name = "z"
        loss = z.sum()
        loss.name = "loss"
        loss.backward()
    return film.data(), x, y


class Truth(tn.FunctionHook):
    name = "Truth"

    """What the sweeps' own tables and heaps are after each of their steps."""

    def __init__(self) -> None:
        self.sweep: Sweep | None = None
        self.tables: list[list[list[float]]] = []
        self.queues: list[list[tuple[int, str]]] = []
        self.ranks: list[int] = []
        self.order: list[str] = []

    def sweep_began(self, sweep: Sweep) -> None:
        self.note(sweep)

    def after_accumulate(self, sweep: Sweep, function: tn.FunctionNode) -> None:
        self.order.append(function.label)
        self.ranks.append(function.rank)
        self.note(sweep)

    def note(self, sweep: Sweep) -> None:
        gradients = [rounded(g.array) for g in sweep.table.gradients.values()]
        self.tables.append(sorted(gradients))
        self.queues.append([(-rank, f.label) for rank, _, f in sorted(sweep.heap)[:20]])


def check_against_truth(data: Data, truth: Truth) -> None:
    """Order, table and queue of the sweep steps."""
    sweep_steps = [
        (step, table)
        for step, table in zip(all_steps(data), tables(data), strict=True)
        if step["kind"] in ("sweep", "backward")
    ]
    assert [labels(data)[s["function"]] for s, _ in sweep_steps if s["function"]] == truth.order
    assert len(sweep_steps) == len(truth.tables)
    for (step, table), true_table, queue in zip(
        sweep_steps, truth.tables, truth.queues, strict=True
    ):
        assert sorted(cells(data, value) or [] for value in table.values()) == true_table
        assert [(rank, labels(data)[f]) for rank, f in step["queue"]] == queue


# --- against the truth ---------------------------------------------------------------------------


def test_the_steps_of_an_example() -> None:
    data, _, _ = example()
    kinds = [step["kind"] for step in all_steps(data)]
    assert kinds == ["forward"] * 3 + ["sweep"] + ["backward"] * 3 + ["end"]
    assert functions(data, "forward") == ["Multiply", "Add", "Sum"]
    assert functions(data, "backward") == ["Sum", "Add", "Multiply"]
    assert [step["depth"] for step in all_steps(data)] == [0, 0, 0, 1, 1, 1, 1, 1]
    first = all_steps(data)[0]
    assert named(data, first["inputs"]) == [("x", [1, 2, 3]), ("y", [4, 5, 6])]
    assert named(data, first["outputs"]) == [("x * y", [4, 10, 18])]


def test_contributions_and_totals() -> None:
    data, x, y = example()
    _, add, multiply = steps(data, "backward")
    assert named(data, add["grad_outputs"]) == [("z", [1, 1, 1])]
    assert named(data, add["grad_inputs"]) == [
        ("x * y", [1, 1, 1], "first", [1, 1, 1]),
        ("x", [1, 1, 1], "first", [1, 1, 1]),
    ]
    assert named(data, multiply["grad_inputs"]) == [
        ("x", [4, 5, 6], "added", [5, 6, 7]),
        ("y", [1, 2, 3], "first", [1, 2, 3]),
    ]
    (end,) = steps(data, "end")
    assert named(data, end["grad_inputs"]) == [
        ("x", x.grad.tolist(), "first", x.grad.tolist()),
        ("y", y.grad.tolist(), "first", y.grad.tolist()),
    ]


def test_a_variable_at_two_positions() -> None:
    x = variable(3.0, name="x")
    with record() as film:
        (x * x).backward()
    data = film.data()
    (multiply,) = steps(data, "backward")
    assert named(data, multiply["grad_inputs"]) == [
        ("x", [3.0], "first", [3.0]),
        ("x", [3.0], "added", [6.0]),
    ]
    with record() as film:
        F.add_all(x, x, x).backward()
    data = film.data()
    (add,) = steps(data, "backward")
    assert [e[1:] for e in named(data, add["grad_inputs"])] == [
        ([1.0], "first", [1.0]),
        ([1.0], "added", None),  # what there was in between, nobody has kept
        ([1.0], "added", [3.0]),
    ]


def test_a_backward_step_shows_the_arrays_that_were_retained_and_no_others() -> None:
    data, _, _ = example()
    total, _, multiply = steps(data, "backward")
    assert named(data, total["inputs"]) == [("z", None)]
    assert named(data, multiply["inputs"]) == [("x", [1, 2, 3]), ("y", [4, 5, 6])]
    assert named(data, multiply["outputs"]) == [("x * y", None)]
    x = variable(0.5, name="x")
    with record() as film:
        y = F.exp(x)
        y.name = "y"
        y.backward()
    (step,) = steps(film.data(), "backward")
    (forward,) = steps(film.data(), "forward")
    assert [labels(film.data())[node] for node in forward["retained"]] == ["y"]
    assert named(film.data(), step["inputs"]) == [("x", None)]
    assert named(film.data(), step["outputs"]) == [("y", [1.649])]


def test_retained_and_freed() -> None:
    data, _, _ = example()
    names = labels(data)
    retained = [[names[n] for n in step["retained"]] for step in all_steps(data)]
    assert retained == [["x", "y"], [], [], [], [], [], [], []]
    freed = [[names[n] for n in step["freed"]] for step in all_steps(data)]
    # the array of x * y goes when the statement is over: the next step is the first to see it;
    # the gradients of loss, z and x * y go with the backward that used them
    assert freed == [[], [], ["x * y"], [], ["loss"], ["z"], ["x * y"], []]


def test_a_variable_that_has_a_new_array_is_not_freed() -> None:
    """As parameters get them from an optimizer; the old array may go much later."""
    x = variable(1.0, 2.0, name="x")
    with record() as film:
        y = F.sum(x * x)
        x.array = np.array([3.0, 4.0])
        F.sum(x * x)
        del y  # and with it the array that its graph retained
        F.exp(x)
        x.array = np.array([5.0, 6.0])  # of a leaf that no function keeps
        F.log(variable(1.0))
        F.exp(x)
        del x
        F.log(variable(1.0))
    data = film.data()
    freed = [[labels(data)[node] for node in step["freed"]] for step in all_steps(data)]
    assert [number for number, names in enumerate(freed) if "x" in names] == [len(freed) - 1]


def test_the_text_says_what_has_gone() -> None:
    x = variable(1.0, 2.0, name="x")
    with record() as film:
        y = F.sum(F.exp(x))
        y.backward()
    assert "   gradient used up: exp(x)\n" in film.to_text()  # y itself is there
    with record() as film:
        F.exp(variable(1.0))
        F.log(x)
    assert "   array freed: variable(1.0) and exp(variable(1.0))" in film.to_text()


def test_a_cell_of_a_notebook_is_called_so() -> None:
    name = "/tmp/ipykernel_4711/2340918.py"
    space = {"record": record, "F": F, "x": variable(1.0), "__name__": "__main__"}
    source = "with record() as film:\n    F.exp(x)\n"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), space)
    (file,) = space["film"].data()["files"].values()
    assert file["name"] == "notebook cell"


def test_a_kept_gradient_is_not_freed() -> None:
    x = variable(1.0, 2.0)
    with record() as film:
        h = x * x
        y = h.sum() * 1.0
        y.backward(retain_grad=True)
    data = film.data()
    assert all(not step["freed"] for step in steps(data, "backward"))
    (end,) = steps(data, "end")
    # the result of h.sum() is held by nobody
    assert [how for _, _, how, _ in end["grad_inputs"]] == ["first"] * 3
    assert h.grad.tolist() == [1.0, 1.0]


def test_the_gradient_table_and_the_queue_replayed() -> None:
    truth = Truth()
    x, y = variable(1.0, -2.0, 3.0), variable(0.3, 0.2, 0.1)
    with record() as film, truth:
        a, b = F.tanh(x * y), F.exp(x) + y
        c = (a * b + a * x).sum() + F.max(b)
        c.backward()
    assert len(truth.order) == 10 and max(map(len, truth.queues)) > 2
    check_against_truth(film.data(), truth)
    assert truth.ranks == sorted(truth.ranks, reverse=True)


@pytest.mark.parametrize("seed", range(10))
def test_random_graphs(seed: int) -> None:
    """Any graph: order by falling rank, tables, queues, gradients of the leaves."""
    rng = np.random.default_rng(seed)
    leaves = [tn.Variable(rng.normal(size=3), name=f"leaf{i}") for i in range(3)]
    truth = Truth()
    with record() as film, truth, tn.using_config("lazy_grad_sum", seed % 2 == 1):
        pool = list(leaves)
        for _ in range(12):
            a, b = (pool[i] for i in rng.integers(0, len(pool), 2))
            operation = (F.add, F.multiply, F.subtract, F.maximum)[rng.integers(0, 4)]
            pool.append(F.tanh(operation(a, b)))
        pool[-1].grad = np.ones(3)
        pool[-1].backward()
    data = film.data()
    check_against_truth(data, truth)
    ranks = [
        node["rank"]
        for s in steps(data, "backward")
        for node in all_nodes(data)
        if node["id"] == s["function"]
    ]
    assert ranks == sorted(ranks, reverse=True) == truth.ranks
    found = {
        name: total for name, _, _, total in named(data, steps(data, "end")[0]["grad_inputs"])
    }
    assert found == {x.name: rounded(x.grad) for x in leaves if x.grad is not None}
    assert found
    assert tables(data)[-1] == {}


def test_the_graph_and_when_it_grows() -> None:
    data, _, _ = example()
    names = labels(data)
    edges = {(names[edge["from"]], names[edge["to"]]): edge["born"] for edge in all_edges(data)}
    assert edges == {
        ("x", "Multiply"): 0,
        ("y", "Multiply"): 0,
        ("Multiply", "x * y"): 0,
        ("x * y", "Add"): 1,
        ("x", "Add"): 1,
        ("Add", "z"): 1,
        ("z", "Sum"): 2,
        ("Sum", "loss"): 2,
    }
    assert {n["label"]: (n["kind"], n["rank"], n["born"]) for n in all_nodes(data)} == {
        "x": ("variable", 0, 0),
        "y": ("variable", 0, 0),
        "Multiply": ("function", 0, 0),
        "x * y": ("variable", 1, 0),
        "Add": ("function", 1, 1),
        "z": ("variable", 2, 1),
        "Sum": ("function", 2, 2),
        "loss": ("variable", 3, 2),
    }
    (picture,) = data["pictures"]
    for node in picture["nodes"]:
        assert node["w"] / 2 <= node["x"] <= picture["width"] - node["w"] / 2
        assert node["h"] / 2 <= node["y"] <= picture["height"] - node["h"] / 2


def test_times() -> None:
    x = variable(1.0)

    class Slow(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            time.sleep(0.02)
            return inputs

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            time.sleep(0.03)
            return grad_outputs

    with record() as film:
        Slow().apply((x,))[0].backward()
    data = film.data()
    assert 0.02 <= steps(data, "forward")[0]["seconds"] < 0.2
    assert 0.03 <= steps(data, "backward")[0]["seconds"] < 0.2
    assert steps(data, "sweep")[0]["seconds"] is None


def test_it_is_json_of_one_version() -> None:
    data, _, _ = example()
    again = json.loads(json.dumps(data, allow_nan=False))
    assert again == data
    assert data["version"] == 2 and data["device"] == "numpy" and data["note"] is None
    assert data["tinynode"] == tn.__version__ and data["title"] == "example"
    assert set(data) == {
        "version", "title", "note", "tinynode", "device", "pictures", "iterations", "classes",
        "questions", "files", "values", "watched", "memory", "failed",
    }  # fmt: skip
    (picture,), (iteration,) = data["pictures"], data["iterations"]
    assert set(picture) == {"width", "height", "shared", "nodes", "edges", "steps"}
    assert set(iteration) == {
        "picture", "values", "seconds", "loss", "optimizers", "arrays", "watched",
    }  # fmt: skip
    for step in picture["steps"]:
        assert set(step) == {
            "kind", "function", "class", "title", "inputs", "outputs", "grad_outputs",
            "grad_inputs", "retained", "freed", "queue", "queued", "table", "ran", "at",
            "seconds", "depth", "cleared", "updates", "copied", "watched", "direction", "changes",
            "roles", "lit", "error", "call", "not_finite", "axes",
        }  # fmt: skip
    for node in picture["nodes"]:
        assert set(node) == {
            "id", "of", "kind", "label", "facts", "rank", "phase", "group", "x", "y", "w", "h",
            "born", "takes_gradient",
        }  # fmt: skip
    for edge in picture["edges"]:
        assert set(edge) == {"from", "to", "path", "phase", "born"}


# --- the user's code, and the classes ------------------------------------------------------------


def test_the_line_of_the_users_code() -> None:
    data, _, _ = example()
    shown = []
    for step in all_steps(data):
        key, line = step["at"]
        file = data["files"][key]
        assert file["name"] == "test_show_film.py"
        shown.append(file["lines"][line - file["first"]].strip())
    product = "z = x * y + x"
    total = "loss = z.sum()"
    # a backward step shows where its function was applied
    backward = "loss.backward()"
    assert shown == [product, product, total, backward, total, product, product, backward]


def test_a_layer_is_the_users_line_too() -> None:
    layer = nn.Linear(2, 3)
    with record() as film:
        layer(np.ones((1, 2), np.float32))
    data = film.data()
    (step,) = all_steps(data)
    key, line = step["at"]
    file = data["files"][key]
    assert file["lines"][line - file["first"]].strip() == "layer(np.ones((1, 2), np.float32))"


def test_long_files_are_windows(tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    path.write_text("\n".join(f"line {i}" for i in range(1, 1001)), encoding="utf-8")
    places = [(str(path), line) for line in (500, 510, 900, 1)]
    files = Files(places)
    spans = [(f["first"], f["first"] + len(f["lines"]) - 1) for f in files.data.values()]
    assert spans == [(1, 1 + AROUND), (500 - AROUND, 510 + AROUND), (900 - AROUND, 900 + AROUND)]
    for place in places:
        key, line = files.at(place) or ["", 0]
        file = files.data[key]
        assert file["lines"][line - file["first"]] == f"line {place[1]}"
        assert file["name"] == "long.py"


def test_a_short_file_is_whole_and_a_missing_one_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "short.py"
    path.write_text("\n".join("x" * WHOLE_FILE), encoding="utf-8")
    files = Files([(str(path), 7), ("<stdin>", 3), (str(path), WHOLE_FILE + 5)])
    assert [len(file["lines"]) for file in files.data.values()] == [WHOLE_FILE]
    assert files.at((str(path), 7)) == ["0", 7]
    assert files.at(("<stdin>", 3)) is None
    assert files.at((str(path), WHOLE_FILE + 5)) is None
    assert files.at(None) is None


def test_classes() -> None:
    data, _, _ = example()
    multiply = data["classes"]["Multiply"]
    assert steps(data, "forward")[0]["class"] == "Multiply"
    assert multiply["name"] == "tinynode.functions.arithmetic.Multiply"
    assert multiply["formula"].startswith("z = x * y")
    assert multiply["forward"].startswith("def forward(self, inputs")
    assert multiply["backward"].startswith("def backward(self,")
    assert multiply["file"] == "arithmetic.py" and multiply["line"] > 1


def test_two_classes_of_one_name() -> None:
    def make(factor: float) -> type[tn.FunctionNode]:
        class Scale(tn.FunctionNode):
            def forward(self, inputs: Any) -> Any:
                return (inputs[0] * factor,)

        return Scale

    x = variable(1.0)
    with record() as film:
        one, two = make(2.0), make(3.0)
        one().apply((x,))
        two().apply((x,))
        one().apply((x,))
    assert [step["class"] for step in all_steps(film.data())] == ["Scale", "Scale 2", "Scale"]


def test_a_class_without_source() -> None:
    space: dict[str, Any] = {"tn": tn}
    exec(  # as at a prompt
        "class Same(tn.FunctionNode):\n"
        "    'y = x.'\n"
        "    def forward(self, inputs): return inputs\n"
        "    def backward(self, indexes, gradients): return gradients\n"
        "y = Same()",
        space,
    )
    with record() as film:
        space["y"].apply((variable(1.0),))[0].backward()
    data = film.data()
    same = data["classes"]["Same"]
    assert same["formula"] == "y = x." and same["forward"] == same["backward"] == ""
    assert functions(data, "backward") == ["Same"]


def test_inherited_methods_have_sources() -> None:
    class Child(F.Exp):
        """y = exp(x)."""

    described = describe_class(Child)
    assert described["formula"] == "y = exp(x)."
    assert "def forward" in described["forward"] and "def backward" in described["backward"]
    assert describe_class(F.ArgMax)["backward"] == ""


# --- values --------------------------------------------------------------------------------------


def value_of(array: Any) -> Data:
    values = Values()
    values.add(array)
    (data,) = values.data([{"values": [0]}])
    return data


def test_small_values_are_whole() -> None:
    value = value_of(np.array([[1.23456, 2.0], [3.0, 123456.0]], np.float32))
    assert value == {
        "shape": [2, 2],
        "dtype": "float32",
        "min": 1.235,
        "max": 123500.0,
        "mean": 30870.0,
        "bad": 0,
        "rows": 2,
        "columns": 2,
        "cells": [1.235, 2.0, 3.0, 123500.0],
        "sampled": False,
        "thinned": False,
    }


def test_nan_and_infinities() -> None:
    value = value_of(np.array([1.0, math.nan, math.inf, -math.inf, 3.0]))
    assert value["cells"] == [1.0, None, "inf", "-inf", 3.0]
    assert (value["bad"], value["min"], value["max"], value["mean"]) == (3, 1.0, 3.0, 2.0)
    value = value_of(np.full((2,), math.nan))
    assert (value["bad"], value["min"], value["mean"]) == (2, None, None)
    large = np.zeros((40, 40))
    large[3, 3], large[5, 5] = math.inf, 7.0
    value = value_of(large)
    assert (value["bad"], value["min"], value["max"]) == (1, 0.0, 7.0)
    json.dumps(value, allow_nan=False)


@pytest.mark.parametrize(
    "shape", [(), (0,), (0, 3), (3, 0), (5,), (2, 3, 4), (1000,), (300, 2), (2, 300), (9, 8, 7, 6)]
)
@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "uint8", "bool", "complex64"])
def test_values_of_any_shape(shape: tuple[int, ...], dtype: str) -> None:
    array = np.asarray(np.arange(math.prod(shape)).reshape(shape) % 100).astype(dtype)
    value = value_of(array)
    assert len(value["cells"]) == value["rows"] * value["columns"] <= CELLS
    assert value["sampled"] is (array.size > CELLS) and value["shape"] == list(shape)
    if array.size:
        assert value["min"] == abs(array).min() and value["max"] == abs(array).max()
        assert value["mean"] == pytest.approx(abs(array).astype("f8").mean(), rel=1e-3)
        assert value["cells"][0] == abs(array).flat[0]
    else:
        assert value["min"] is value["max"] is value["mean"] is None
    json.dumps(value, allow_nan=False)


def test_sampled_cells_are_elements_at_a_step() -> None:
    array = np.arange(64 * 100, dtype=np.float64).reshape(64, 100)
    value = value_of(array)
    k, m = math.ceil(64 / value["rows"]), math.ceil(100 / value["columns"])
    assert value["cells"] == rounded(array[::k, ::m])


def test_integers_are_exact() -> None:
    assert value_of(np.array([123456789, -5]))["cells"] == [123456789, -5]


def test_equal_arrays_share_an_entry_and_others_do_not() -> None:
    values = Values()
    large = np.random.default_rng(0).normal(size=(50, 50))
    arrays = [np.ones(3), np.ones(3), np.ones((3, 1)), np.ones(3, np.float32), large, large.copy()]
    assert [values.add(a) for a in arrays] == [0, 0, 1, 2, 3, 3]
    nans = np.full((50, 50), np.nan)
    assert [values.add(a) for a in (nans, nans.copy())] == [4, 4]
    changed = large.copy()
    changed[1, 1] += 100.0  # no element of the sample, but of the mean
    assert values.add(changed) == 5
    assert values.add(None) is None


def test_values_are_of_the_time_of_the_step() -> None:
    array = np.ones(3)
    x = tn.Variable(array, name="x")
    with record() as film:
        y = x * 2.0
        array += 5.0
        z = x * 2.0
    del y, z
    data = film.data()
    assert [named(data, s["inputs"])[0] for s in all_steps(data)] == [
        ("x", [1, 1, 1]),
        ("x", [6, 6, 6]),
    ]


# --- kinds of programs ---------------------------------------------------------------------------


def test_double_backprop() -> None:
    x = variable(2.0, name="x")
    truth = Truth()
    with record() as film, truth:
        y = x * x * x
        y.backward(enable_double_backprop=True)
        gx = x.grad_var
        x.cleargrad()
        gx.backward()
    data = film.data()
    check_against_truth(data, truth)
    assert x.grad.tolist() == [12.0]
    inside = [s for s in steps(data, "forward") if s["depth"] == 1]
    nodes = {node["id"]: node for node in all_nodes(data)}
    assert inside and {nodes[s["function"]]["phase"] for s in inside} == {"backward"}
    assert {nodes[s["function"]]["phase"] for s in steps(data, "forward")[:2]} == {"forward"}
    second = all_steps(data)[[s["kind"] for s in all_steps(data)].index("end") + 1 :]
    phases = {nodes[s["function"]]["phase"] for s in second if s["kind"] == "backward"}
    assert phases == {"forward", "backward"}  # it goes through both graphs
    last = steps(data, "end")[-1]
    assert named(data, last["grad_inputs"]) == [("x", [12.0], "first", [12.0])]
    born = [edge["phase"] for edge in all_edges(data)]
    assert "backward" in born and "forward" in born


def test_without_double_backprop_inner_functions_are_labels() -> None:
    data, _, _ = example()
    assert [step["ran"] for step in steps(data, "backward")][2] == ["Multiply", "Multiply"]
    assert len(steps(data, "forward")) == 3


def test_grad() -> None:
    x, y = variable(1.0, 2.0, name="x"), variable(3.0, 4.0, name="y")
    truth = Truth()
    with record() as film, truth:
        (gx,) = tn.grad([F.sum(x * y + y)], [x])
    data = film.data()
    check_against_truth(data, truth)
    assert functions(data, "backward") == ["Sum", "Add", "Multiply"]
    (end,) = steps(data, "end")
    assert named(data, end["grad_inputs"]) == [("x", gx.array.tolist(), "none", None)]
    assert x.grad is None and "grad returns the gradient of x" in end["title"]
    assert tables(data)[-1] == {}


def test_grad_that_sets() -> None:
    x = variable(1.0, 2.0, name="x")
    with record() as film:
        tn.grad([F.sum(x * x)], [x], set_grad=True)
    (end,) = steps(film.data(), "end")
    assert named(film.data(), end["grad_inputs"]) == [("x", [2, 4], "first", [2, 4])]


def test_a_second_sweep_adds_to_the_grad() -> None:
    x = variable(1.0, 2.0, name="x")
    with record() as film:
        y = F.sum(x * x)
        y.backward()
        y.backward()
    data = film.data()
    first, second = steps(data, "end")
    assert named(data, first["grad_inputs"]) == [("x", [2, 4], "first", [2, 4])]
    assert named(data, second["grad_inputs"]) == [("x", [2, 4], "added", [4, 8])]
    assert len(steps(data, "forward")) == 2 and len(steps(data, "backward")) == 4


def test_several_outputs_at_once() -> None:
    x = variable(1.0, 2.0, name="x")
    truth = Truth()
    with record() as film, truth:
        outputs = [F.sum(x * x), F.max(x)]
        tn.backward(outputs, [tn.Variable(np.array(1.0)), tn.Variable(np.array(2.0))])
    data = film.data()
    check_against_truth(data, truth)
    (sweep,) = steps(data, "sweep")
    assert len(sweep["grad_outputs"]) == 2 and sweep["queued"] == 2


class GradientInside(tn.FunctionNode):
    """y = x ** 3; its backward differentiates x ** 3 by a sweep of its own."""

    def forward(self, inputs: Any) -> Any:
        self.retain_inputs((0,))
        return (inputs[0] ** 3,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        with tn.force_backprop_mode():
            inner = tn.Variable(x.array)
            y = inner * inner * inner
            (gx,) = tn.grad([y], [inner])
        return (gx * grad_outputs[0],)


def test_a_sweep_inside_of_a_sweep() -> None:
    x = variable(2.0, name="x")
    truth = Truth()
    with record() as film, truth:
        y = GradientInside().apply((x * 1.0,))[0]
        y.backward()
    data = film.data()
    assert x.grad.tolist() == [12.0]
    kinds = [(s["kind"], s["depth"]) for s in all_steps(data)]
    assert kinds == [
        ("forward", 0),
        ("forward", 0),
        ("sweep", 1),
        ("forward", 1),
        ("forward", 1),
        ("sweep", 2),
        ("backward", 2),
        ("backward", 2),
        ("end", 2),
        ("backward", 1),
        ("backward", 1),
        ("end", 1),
    ]
    assert all_steps(data)[9]["ran"] == ["Multiply"]
    assert functions(data, "backward")[2] == "GradientInside"


def test_lazy_grad_sum() -> None:
    x = variable(1.0, 2.0, name="x")
    truth = Truth()
    with record() as film, truth, tn.using_config("lazy_grad_sum", True):
        y = F.sum(x * x + x)
        y.backward()
    data = film.data()
    check_against_truth(data, truth)
    multiply = steps(data, "backward")[-1]
    assert [(how, total) for _, _, how, total in multiply["grad_inputs"]] == [
        ("added", None),  # it waits; nothing is added yet
        ("added", None),
    ]
    (end,) = steps(data, "end")
    assert named(data, end["grad_inputs"]) == [("x", [3, 5], "first", [3, 5])]


class Accumulates(tn.FunctionNode):
    """y = 2 x, with a backward that adds by itself."""

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] * 2.0,)

    def backward_accumulate(self, indexes: Any, grad_outputs: Any, grad_inputs: Any) -> Any:
        gx = grad_outputs[0] * 2.0
        return (gx if grad_inputs[0] is None else gx + grad_inputs[0],)


def test_backward_accumulate() -> None:
    x = variable(1.0, 2.0, name="x")
    truth = Truth()
    with record() as film, truth:
        a = x * 1.0
        y = F.sum(Accumulates().apply((a,))[0] + F.exp(F.exp(a * 0.0)))
        y.backward()
    data = film.data()
    check_against_truth(data, truth)
    (step,) = [s for s in steps(data, "backward") if s["class"] == "Accumulates"]
    (entry,) = named(data, step["grad_inputs"])
    assert entry[1:3] == ([2.0, 2.0], "first") or entry[2] == "added"
    assert "def backward_accumulate" in data["classes"]["Accumulates"]["backward"]
    assert x.grad.tolist() == [2.0, 2.0]


class OldSquare(tn.Function):
    """y = x * x."""

    def forward_cpu(self, inputs: Any) -> Any:
        return (inputs[0] * inputs[0],)

    def backward_cpu(self, inputs: Any, grad_outputs: Any) -> Any:
        return (2.0 * inputs[0] * grad_outputs[0],)


def test_old_style_functions() -> None:
    x = variable(1.0, 2.0, name="x")
    with record() as film:
        F.sum(OldSquare()(x)).backward()
    data = film.data()
    assert functions(data, "backward") == ["Sum", "OldSquare"]
    described = data["classes"]["OldSquare"]
    assert described["formula"] == "y = x * x."
    assert (
        "2.0 * inputs[0]" in described["backward"]
        and "inputs[0] * inputs[0]" in (described["forward"])
    )


def test_a_compiled_function_is_one_node() -> None:
    @tn.compile
    def f(x: tn.Variable) -> tn.Variable:
        return F.sum(F.exp(x) * x)

    x = variable(1.0, 2.0, name="x")
    films = []
    for _ in range(2):  # the first call records its net, the second one runs it
        x.cleargrad()
        with record() as film:
            f(x).backward()
        films.append(film.data())
    expected = (np.exp(x.array) * (1 + x.array)).tolist()
    for data in films:
        assert len(steps(data, "forward")) == len(steps(data, "backward")) == 1
        (end,) = steps(data, "end")
        assert named(data, end["grad_inputs"])[0][3] == rounded(expected)
        assert steps(data, "backward")[0]["ran"] == []


def test_the_recording_of_a_net_is_no_step() -> None:
    """A compiled training step: what runs while its net is recorded is nobody's call."""
    x = variable(1.0, 2.0, name="x")

    @tn.compile
    def train() -> tn.Variable:
        loss = F.sum(x * x)
        x.cleargrad()
        loss.backward()
        return loss

    films = []
    for _ in range(2):
        with record() as film:
            train()
        films.append([(s["kind"], s["class"]) for s in all_steps(film.data())])
        assert x.grad.tolist() == [2.0, 4.0]
    assert "sweep" not in {kind for kind, _ in films[0]}
    assert films[0] == films[1]


def test_without_a_graph() -> None:
    x = variable(1.0, 2.0, name="x")
    with record() as film, tn.no_backprop_mode():
        y = F.exp(x) * 2.0
        y.name = "y"
        F.sum(y)
    data = film.data()
    assert functions(data, "forward") == ["Exp", "Multiply", "Sum"]
    assert all(step["retained"] == [] for step in all_steps(data))
    assert all(n["facts"] == ["no graph"] for n in all_nodes(data) if n["kind"] == "function")
    names = labels(data)
    assert ("y", "Sum") in {(names[e["from"]], names[e["to"]]) for e in all_edges(data)}
    assert x._node is None  # watching gives it none
    ranks = [n["rank"] for n in all_nodes(data) if n["kind"] == "function"]
    assert ranks == [0, 1, 2]


def test_what_was_used_without_a_graph_is_the_same_node_with_one() -> None:
    x = variable(1.0, 2.0, name="x")
    with record() as film:
        with tn.no_backprop_mode():
            F.exp(x)
        F.exp(x)
    assert [n["label"] for n in all_nodes(film.data()) if n["kind"] == "variable"].count("x") == 1


def test_in_place_operators_point_at_a_new_node() -> None:
    x = variable(1.0, 2.0, name="x")
    with record() as film:
        y = x * 2.0
        y.name = "y"
        y += x
        y[0] = 5.0
        F.sum(y).backward()
    data = film.data()
    assert functions(data, "forward") == ["Multiply", "Add", "SetItem", "Sum"]
    (end,) = steps(data, "end")
    assert named(data, end["grad_inputs"])[0][3] == [0.0, 3.0] == x.grad.tolist()
    names = [node["label"].partition(" (")[0] for node in all_nodes(data)]
    assert names.count("y") == 3 and len({node["label"] for node in all_nodes(data)}) == len(names)
    with record() as film, tn.no_backprop_mode():
        z = x.detach()
        z += 1.0
        F.exp(z)
    data = film.data()
    (exp,) = [s for s in all_steps(data) if s["class"] == "Exp"]
    (add,) = [s for s in all_steps(data) if s["class"] == "Add"]
    assert exp["inputs"][0][0] == add["outputs"][0][0]


@pytest.mark.parametrize("with_graph", [True, False])
def test_an_output_that_is_the_array_of_an_input_is_another_node(with_graph: bool) -> None:
    x = variable(1.0, 2.0)
    with record() as film, tn.using_config(enable_backprop=False):
        y = F.identity(x)
        y += 0.5
        F.exp(y)
        with tn.using_config(enable_backprop=with_graph):
            F.log(x)
    identity, add, exp, log = all_steps(film.data())  # laid out: no circle
    (x_node, _), (y_node, _) = *identity["inputs"], *identity["outputs"]
    assert x_node != y_node == add["inputs"][0][0]
    assert exp["inputs"][0][0] == add["outputs"][0][0] not in (x_node, y_node)
    assert log["inputs"][0][0] == x_node


def test_devices() -> None:
    x = variable(1.0, 2.0, name="x")
    with record() as film:
        F.sum(x.to_device("strict") * 2.0).backward()
    data = film.data()
    assert data["device"] == f"numpy, {tn.get_device('strict')}"
    assert functions(data, "backward") == ["Sum", "Multiply", "ToDevice"]
    (end,) = steps(data, "end")
    assert named(data, end["grad_inputs"])[0][3] == [2.0, 2.0]
    assert any(str(tn.get_device("strict")) in node["facts"] for node in all_nodes(data))


def test_a_graph_from_before_the_recording() -> None:
    x = variable(1.0, 2.0, name="x")
    y = F.sum(F.exp(x) * x)
    truth = Truth()
    with record() as film, truth:
        y.backward()
    data = film.data()
    check_against_truth(data, truth)
    assert {n["born"] for n in all_nodes(data)} == {0}  # the whole graph is there from the start
    assert functions(data, "backward") == ["Sum", "Multiply", "Exp"]
    assert all(step["at"] is None for step in steps(data, "backward"))
    assert sorted(labels(data).values()) == sorted(
        ["Sum", "Multiply", "Exp", "x", "y", "input"]
    ) or (len(all_nodes(data)) == 7)


def test_an_output_that_is_gone_and_comes_back() -> None:
    """exp retains its output; nobody keeps the Variable of the first one."""
    x = variable(1.0, name="x")

    class Pair(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            self.retain_outputs((0,))
            return np.exp(inputs[0]), inputs[0] * 2.0

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            (y,) = self.get_retained_outputs()
            return (y * grad_outputs[1],)

    for before in (False, True):
        x.cleargrad()
        if before:
            y = Pair().apply((x,))[1]
        with record() as film:
            if not before:
                y = Pair().apply((x,))[1]
            y.backward(enable_double_backprop=True)
        data = film.data()
        assert named(data, steps(data, "end")[0]["grad_inputs"])[0][3] == [2.718]
        (step,) = steps(data, "backward")
        assert [entry[1] is None for entry in step["grad_outputs"]] == [True, False]
        multiply = next(s for s in all_steps(data) if s["class"] == "Multiply")
        assert multiply["inputs"][0][0] == step["grad_outputs"][0][0]


def test_only_this_thread() -> None:
    x = variable(1.0)
    with record() as film:
        thread = threading.Thread(target=lambda: F.exp(x))
        thread.start()
        thread.join()
        F.log(x)
    assert functions(film.data(), "forward") == ["Log"]


def test_two_films_at_once() -> None:
    x = variable(1.0)
    with record("outer") as outer:
        F.exp(x)
        with record("inner") as inner:
            F.log(x)
    assert functions(outer.data(), "forward") == ["Exp", "Log"]
    assert functions(inner.data(), "forward") == ["Log"]


def test_a_name_may_come_late() -> None:
    with record() as film:
        x = variable(1.0)
        y = F.exp(x)
        x.name, y.name = "x", "<script>"
        z = y * 2.0
        z.name = "z"
    assert set(labels(film.data()).values()) >= {"x", "<script>", "z"}


# --- names ---------------------------------------------------------------------------------------


SCRIPT = """
import numpy as np
model = nn.Sequential(nn.Linear(2, 3), F.relu, nn.Linear(3, 2))
images = np.ones((4, 2), np.float32)
_hidden = tn.Variable(np.ones(2, np.float32))
given = tn.Variable(np.ones(2, np.float32), name="its name")
with record() as film:
    scores = model(images)
    loss = F.sum(scores * _hidden * given)
    loss.backward()
    with tn.no_backprop_mode():
        after = F.exp(images)
    last = after * 2.0
"""


def test_the_names_of_a_script() -> None:
    space: dict[str, Any] = {"tn": tn, "F": F, "nn": nn, "record": record, "__name__": "script"}
    exec(SCRIPT, space)
    data = space["film"].data()
    names = set(labels(data).values())
    assert names >= {"images", "scores", "its name", "loss", "after", "last"}
    assert names >= {f"model.layers.{i}.{kind}" for i in (0, 2) for kind in ("weight", "bias")}
    assert not names & {"_hidden", "given"}
    (end,) = steps(data, "end")
    assert "model.layers.0.weight" in {e[0] for e in named(data, end["grad_inputs"])}
    groups = {node["label"]: node["group"] for node in reversed(all_nodes(data))}
    assert groups["model.layers.0.weight"] == groups["Linear"] == "model.layers[0]"
    assert groups["loss"] is None


def test_a_name_of_a_script_goes_with_the_variable() -> None:
    code = "with record() as film:\n    for i in range(3):\n        y = x * y\n    y.backward()"
    space: dict[str, Any] = {"record": record, "__name__": "script"}
    space |= {"x": variable(2.0), "y": variable(3.0)}
    exec(code, space)
    data = space["film"].data()
    assert [node["label"] for node in all_nodes(data) if node["kind"] == "variable"] == [
        "x", "y", "y (2)", "y (3)", "y (4)",
    ]  # fmt: skip


def test_a_model_names_its_parameters() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    with record(model=model) as film:
        F.sum(model(np.ones((1, 2), np.float32))).backward()
    names = set(labels(film.data()).values())
    assert names >= {f"layers.{i}.{kind}" for i in (0, 1) for kind in ("weight", "bias")}
    space = {"record": record, "F": F, "net": model, "__name__": "script"}
    exec("with record(model=net) as film:\n    F.sum(net.layers[0].weight)", space)
    assert "layers.0.weight" in labels(space["film"].data()).values()  # not net.layers.0.weight
    with pytest.raises(TypeError, match=r"model must be a tinynode.nn.Module, got "):
        record(model="model").__enter__()  # type: ignore[arg-type]


def test_dots_are_modules_for_parameters_alone() -> None:
    with record() as film:
        F.exp(variable(1.0, name="a.b"))
    assert [node["group"] for node in all_nodes(film.data())] == [None] * 3


def test_names_inside_of_functions_are_left_alone() -> None:
    """To read them would keep alive what they stand for."""
    with record() as film:
        inner = variable(1.0)
        inner = F.exp(inner)
        F.log(inner)
    assert set(labels(film.data()).values()) == {
        "inner",
        "Exp",
        "inner (2)",
        "Log",
        "log(inner)",
    }
    code = "def f(v):\n    h = w * v\n    return h\nwith record() as film:\n    y = f(x)"
    space: dict[str, Any] = {"record": record, "__name__": "script"}
    space |= {"x": variable(2.0), "w": variable(3.0)}
    exec(code, space)
    assert set(labels(space["film"].data()).values()) == {"w", "x", "Multiply", "y"}


# --- nothing of the user's stays, and nothing changes --------------------------------------------


def test_arrays_variables_and_graph_are_freed_while_it_is_recorded() -> None:
    gc.disable()
    try:
        with record() as film:
            x = variable(*np.linspace(0.0, 1.0, 1000))
            h = F.exp(x)
            array, node = weakref.ref(h.array), weakref.ref(h.node)
            function = weakref.ref(h.creator_node)
            y = F.sum(h * h)
            y.backward()
            del x, h, y
            assert array() is None and node() is None and function() is None
    finally:
        gc.enable()
    assert len(all_steps(film.data())) == 8


def test_a_recorder_that_is_left_keeps_nothing() -> None:
    x = variable(1.0, 2.0)
    with record() as film:
        y = F.sum(x * x)
        y.backward()
    found = weakref.ref(x)
    del x, y
    gc.collect()
    assert found() is None and len(film) == 6


def test_recording_changes_no_result() -> None:
    def train() -> tuple[list[Any], list[float]]:
        tn.seed(0)
        rng = np.random.default_rng(0)
        model = nn.Sequential(nn.Linear(4, 5), F.tanh, nn.Linear(5, 3))
        optimizer = nn.Adam(model)
        losses = []
        for _ in range(3):
            scores = model(rng.normal(size=(8, 4)).astype(np.float32))
            loss = F.softmax_cross_entropy(scores, rng.integers(0, 3, 8))
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
            losses.append(float(loss))
        return [p.array.tolist() for p in model.parameters()], losses

    plain = train()
    with record() as film:
        filmed = train()
    assert filmed == plain
    assert len(steps(film.data(), "end")) == 3


# --- errors and limits ---------------------------------------------------------------------------


def test_an_error_ends_the_film_and_passes() -> None:
    x = variable(1.0, 2.0)
    with pytest.raises(ValueError, match="planted"), record() as film:
        F.exp(x)
        raise ValueError("planted")
    assert [one["kind"] for one in film.steps] == ["forward", "error"]
    assert film.data()["note"] == ("The recorded code ended with ValueError: planted")


class Fails(tn.FunctionNode):
    """y = x; its backward raises."""

    def forward(self, inputs: Any) -> Any:
        if inputs[0][0] < 0:
            raise ValueError("forward failed")
        return (inputs[0].copy(),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        raise ValueError("backward failed")


def test_an_error_in_a_backward_that_is_caught() -> None:
    x = variable(1.0, 2.0, name="x")
    with record() as film:
        y = F.sum(Fails().apply((x * 2.0,))[0])
        with pytest.raises(ValueError, match="backward failed"):
            y.backward()
        with pytest.raises(ValueError, match="forward failed"):
            Fails().apply((x * -1.0,))
        F.sum(x * x).backward()
    data = film.data()
    assert [(s["kind"], s["depth"]) for s in all_steps(data)] == [
        *[("forward", 0)] * 3,
        ("sweep", 1),
        *[("backward", 1)] * 2,
        ("end", 1),
        *[("forward", 0)] * 4,
        ("sweep", 1),
        *[("backward", 1)] * 2,
        ("end", 1),
    ]
    assert "ValueError: backward failed" in all_steps(data)[6]["title"]
    assert all_steps(data)[6]["grad_inputs"] == [] and tables(data)[6] == {}
    assert named(data, all_steps(data)[-1]["grad_inputs"])[0][3] == [2, 4] == x.grad.tolist()
    assert data["note"] is None


def test_a_cut_film_leaves_the_program_alone() -> None:
    w = tn.Variable(np.ones(3), name="w")
    with pytest.warns(UserWarning, match="the film holds 4 steps"), record(most=4) as film:
        assert len(thread_state.hooks) > 1
        F.sum(w * w).backward()
        assert not thread_state.hooks, "the program runs at its usual speed"
        tn.show.watch(lambda x: x, np.ones((3, 2)))
        F.sum(w * w).backward()
    assert len(film) == 4 and not thread_state.hooks
    with record() as film:
        F.sum(w * w).backward()
    assert len(film) == 6


def test_a_long_film_is_cut_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MAX_STEPS", 10)
    x = variable(1.0, name="x")
    with pytest.warns(UserWarning, match="10 steps") as caught, record() as film:
        y = x
        for _ in range(8):
            y = y * 2.0
        y.backward()
        y.backward()
        F.exp(y)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert x.grad.tolist() == [512.0] and len(film) == 10
    data = film.data()
    assert "10 steps" in data["note"] and "10 steps" in film.to_text()
    assert [s["kind"] for s in all_steps(data)[-2:]] == ["sweep", "backward"]


def test_what_was_there_before_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MAX_STEPS", 5)
    monkeypatch.setattr(recorder, "MAX_PICTURE", 5)
    y = x = variable(1.0)
    for _ in range(50):
        y = F.tanh(y)
    with pytest.warns(UserWarning, match="5 steps"), record() as film:
        y.backward()
    assert len(film) == 5 and x.grad is not None
    assert sum(node["kind"] == "function" for node in all_nodes(film.data())) == 5


def test_a_film_that_just_fits_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MAX_STEPS", 2)
    x = variable(1.0)
    with warnings.catch_warnings(), record() as film:
        warnings.simplefilter("error")
        F.exp(F.exp(x))
    assert len(film) == 2 and film.data()["note"] is None


def test_the_labels_and_the_queue_of_a_step_are_limited() -> None:
    class Busy(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            return (inputs[0].copy(),)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            g = grad_outputs[0]
            for _ in range(30):
                g = g + 0.0
            return (g,)

    x = variable(1.0)
    with record() as film:
        y = F.add_all(*[F.exp(Busy().apply((x,))[0]) for _ in range(30)])
        y.backward()
    data = film.data()
    busy = [s for s in steps(data, "backward") if s["class"] == "Busy"]
    assert {tuple(s["ran"]) for s in busy} == {("Add",) * 20}
    (first, *_) = steps(data, "backward")
    assert first["queued"] == 30 and len(first["queue"]) == 20


def test_a_thousand_nodes_are_quick() -> None:
    x = variable(*np.linspace(0.0, 1.0, 10))
    with record() as film:
        y = x
        for _ in range(500):
            y = F.tanh(y)
        F.sum(y).backward()
    start = time.process_time()
    data = film.data()
    assert time.process_time() - start < 3.0
    assert len(all_nodes(data)) == 1003 and len(all_steps(data)) == 1004


def test_an_empty_film() -> None:
    with record() as film:
        pass
    data = film.data()
    assert all_steps(data) == all_nodes(data) == data["values"] == [] and len(film) == 0
    assert film.to_text()


# --- Film ----------------------------------------------------------------------------------------


def test_save_and_repr(tmp_path: Path) -> None:
    x = variable(1.0)
    with record("a title") as film:
        F.exp(x)
    assert isinstance(film, Film) and repr(film) == "<Film 'a title': 1 step, 1 function>"
    film.save(tmp_path / "film.json")
    assert json.loads((tmp_path / "film.json").read_text(encoding="utf-8")) == film.data()
    film.save(str(tmp_path / "film.html"))
    page = (tmp_path / "film.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html") and "a title" in page
    with pytest.raises(ValueError, match=r"\.html, \.json, \.svg or \.gif, got 'film.png'"):
        film.save("film.png")
    frame = film._repr_html_()
    assert frame.startswith("<iframe ") and frame.count("<iframe") == 1
    assert frame.count('"') == 6 and "srcdoc=" in frame  # the page's own quotes are escaped


@pytest.mark.parametrize("suffix", [".html", ".json"])
def test_half_of_a_surrogate_pair_can_be_saved(tmp_path: Path, suffix: str) -> None:
    """Such a name is that of a file whose bytes are no UTF-8."""
    with record("caf\udce9.py") as film:
        F.exp(variable(1.0, name="\ud800"))
    path = tmp_path / f"film{suffix}"
    film.save(path)
    assert "caf?.py" in path.read_text(encoding="utf-8")


def test_variables_of_one_name_are_told_apart() -> None:
    def inside() -> Film:
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        with record() as film:
            F.sum(net(np.ones((1, 2), "float32"))).backward()
        return film

    data = inside().data()
    names = [node["label"] for node in all_nodes(data) if node["kind"] == "variable"]
    assert sorted(set(names)) == sorted(names) and {"weight", "bias"} < set(names)
    (end,) = steps(data, "end")
    assert end["title"].count("weight") == end["title"].count("bias") == 2


@pytest.mark.slow
def test_the_benchmark_runs() -> None:
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "tools.benchmarks.film",
        "--rounds=2",
        "--iterations=40",
    ]
    root = Path(__file__).resolve().parents[2]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert re.search(r"\| slower by +\| +[\d.]+ \|", result.stdout)
    films = re.findall(r"\| ([\d-]+) +((?:\| +[\d.]+ ){5})\|", result.stdout)
    assert [name for name, _ in films] == ["64-100-10", "64-100-10", "784-256-10"]
    found = [[float(cell) for cell in row.split("|")[1:]] for _, row in films]
    assert [row[:2] for row in found] == [[1, 11], [40, 440], [2, 22]]
    assert all(0.05 < row[-1] < 1.5 for row in found)  # the page, MB


def test_data_within_the_block() -> None:
    with record() as film:
        F.exp(variable(1.0))
        assert len(all_steps(film.data())) == len(film) == 1
        F.exp(variable(1.0))
    assert len(film) == 2
