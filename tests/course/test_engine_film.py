"""Films of the learner's package: what the engine of each stage does, right or wrong."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode.show.films.scripts import film_of_script
from tinynode_course import mynode, use_mynode
from tinynode_course.mynode import write_files

STAGES = [one.key for one in mynode.steps_that_build()]
WITH_SWEEPS = [key for key in STAGES if key >= "04"]


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name in [name for name in sys.modules if name.split(".")[0] == "mynode"]:
        del sys.modules[name]


def engine(key: str) -> Any:
    use_mynode(key)
    return importlib.import_module("mynode")


def number(film: tn.show.Film, index: int) -> float:
    """A value of a film, which is a single number."""
    (found,) = film.data()["values"][index]["cells"]
    return float(found)


@pytest.mark.parametrize("key", STAGES)
def test_every_stage_is_filmed_and_computes_the_same(key: str) -> None:
    package = engine(key)
    apply = package.FunctionNode.apply
    x = package.Variable(np.array(0.5), name="x")
    expected = package.square(package.exp(x)).array
    with tn.show.record() as film:
        y = package.square(package.exp(x))
        if key >= "04":
            y.backward()
    assert y.array == expected
    assert package.FunctionNode.apply is apply, "the methods are put back"
    kinds = [one["kind"] for one in film.steps]
    sweep = ["sweep", "backward", "backward", "end"] if key >= "04" else []
    assert kinds == ["forward", "forward", *sweep]
    assert [film.steps[i]["class"] for i in (0, 1)] == ["Exp", "Square"]
    assert film.data()["pictures"], "the film has a page"


@pytest.mark.parametrize("key", WITH_SWEEPS)
def test_the_gradients_of_a_sweep_are_the_engines(key: str) -> None:
    package = engine(key)
    x = package.Variable(np.array(3.0), name="x")
    with tn.show.record() as film:
        package.square(package.square(x)).backward()
    end = film.steps[-1]
    (entry,) = [e for e in end["grad_inputs"] if e[0] == film.nodes[0].id]
    assert film.nodes[0].label == "x"
    assert number(film, entry[3]) == x.grad == 4 * 3.0**3


def test_the_film_shows_the_wrong_sum_of_an_engine_that_overwrites() -> None:
    package = engine("04")
    x = package.Variable(np.array(3.0), name="x")
    with tn.show.record() as film:
        (x * x).backward()
    backward = film.steps[-2]
    totals = [number(film, entry[3]) for entry in backward["grad_inputs"]]
    assert totals == [3.0, 3.0] and x.grad == 3.0, "6 is right; the engine of step 4 gives 3"


def test_the_queue_has_the_waiting_functions_by_rank() -> None:
    package = engine("06")
    x = package.Variable(np.array(3.0), name="x")
    with tn.show.record() as film:
        a = package.square(x)
        (a + package.square(a)).backward()
    names = {node.id: node.label for node in film.nodes}
    queues = [[names[f] for _, f in one["queue"]] for one in film.steps if one["depth"]]
    assert queues == [["Add"], ["Square", "Square"], ["Square"], [], []]


def test_freed_arrays_are_noted_from_step_11_on() -> None:
    package = engine("12")
    x = package.Variable(np.array(3.0), name="x")
    with tn.show.record() as film:
        y = x + 1.0
        y = package.square(y)
        del y
        x + 2.0
    freed = {name for one in film.steps for name in one["freed"]}
    assert freed, "the square and its input are freed"


def test_a_script_beside_the_learners_package_is_filmed(tmp_path: Path) -> None:
    write_files(mynode.reference("13"), tmp_path / "mynode")
    script = tmp_path / "train.py"
    script.write_text(
        "import numpy as np\nfrom mynode import Variable, square\n"
        "w = Variable(np.array(2.0))\nloss = square(w)\nloss.backward()\n"
    )
    film, status = film_of_script(str(script), [])
    assert status == 0
    assert [node.label for node in film.nodes] == ["w", "Square", "loss"]
    assert [one["kind"] for one in film.steps] == ["forward", "sweep", "backward", "end"]


def test_a_film_of_a_network_has_questions_that_no_wrong_shape_answers() -> None:
    package = engine("08")
    package.seed(0)
    nn = importlib.import_module("mynode.nn")
    net = nn.Sequential(nn.Linear(2, 8), package.relu, nn.Linear(8, 1))
    points = np.ones((50, 2))
    with tn.show.record() as film:
        package.sum(net(points)).backward()
    film.quiz()
    questions = film.data()["questions"]
    assert questions[0]["text"].endswith("Which function's backward runs first?")
    assert questions[0]["answer"] == "Sum" and len(questions[0]["choices"]) >= 3
    assert [1, 8] in [one["answer"] for one in questions]

    def wrong(self: Any, targets: Any, grad_outputs: Any) -> Any:
        return tuple(np.ones(7) for _ in self.inputs)

    linear = importlib.import_module("mynode.functions.network").Linear
    with pytest.MonkeyPatch.context() as patch, tn.show.record() as film:
        patch.setattr(linear, "backward", wrong)
        loss = package.sum(nn.Linear(2, 8)(points))
        with contextlib.suppress(Exception):
            loss.backward()
    film.quiz()
    assert [7] not in [one["answer"] for one in film.data()["questions"]]


def test_an_error_of_the_engine_ends_the_sweep_and_is_raised() -> None:
    package = engine("13")
    with tn.show.record() as film, pytest.raises(ValueError, match=r"set y\.grad first"):
        package.square(package.Variable(np.ones(3))).backward()
    assert film.steps[-1]["error"]["name"] == "ValueError"


def test_a_long_film_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinynode_course.engine_recorder.MAX_STEPS", 5)
    package = engine("13")
    x = package.Variable(np.array(3.0))
    with tn.show.record() as film:
        for _ in range(9):
            x = package.negative(x)
        x.backward()
    assert len(film) == 5 and "Cut" in str(film.note)


def test_a_film_ends_after_the_most_steps() -> None:
    x = tn.Variable(np.array(3.0))
    with (
        pytest.warns(UserWarning, match="Cut: the film holds 2 steps"),
        tn.show.record(most=2) as film,
    ):
        _ = x * x * x * x
    assert len(film) == 2
    package = engine("13")
    x = package.Variable(np.array(3.0))
    with tn.show.record(most=2) as film:
        _ = x * x * x * x
    assert len(film) == 2 and "Cut" in str(film.note)
    with (
        pytest.raises(ValueError, match="most must be an integer, 1 or more, got 0"),
        tn.show.record(most=0),
    ):
        pass
