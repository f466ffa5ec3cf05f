"""Films of failing programs: the call, the operands and the error; the first NaN."""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from film_views import Data, all_steps

import tinynode as tn
from tinynode import nn
from tinynode.core.hooks import thread_state
from tinynode.show.films.film import Film
from tinynode.show.films.recorder import record
from tinynode.show.films.text import labels_of, text
from tinynode.show.films.walk import Walker
from tinynode_course import use_mynode

F = tn.functions


@pytest.fixture(autouse=True)
def nothing_watches_afterwards() -> Iterator[None]:
    yield
    assert not thread_state.hooks


def variable(*values: Any) -> tn.Variable:
    return tn.Variable(np.array(values, float))


class Own(tn.FunctionNode):
    """y = x, or an error where ``where`` says."""

    def __init__(self, where: str) -> None:
        self.where = where

    def forward(self, inputs: Any) -> Any:
        if self.where == "forward":
            raise ValueError("planted <b>in</b> forward")
        return (inputs[0].copy(),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        if self.where == "backward":
            raise ValueError("planted in backward")
        if self.where == "function inside of backward":
            return (grad_outputs[0] @ variable(1, 2, 3),)
        return (F.sum(grad_outputs[0]),)  # a wrong shape


def film_of(program: Callable[[], Any]) -> tuple[Film, BaseException]:
    """The film of a failing program, and the error."""
    with pytest.raises(BaseException) as caught, record() as film:
        program()
    return film, caught.value


def failing(data: Data) -> tuple[dict[str, Any], list[str]]:
    """The failing step of a film, and the labels of its inputs."""
    iteration, index = data["failed"]
    assert iteration == len(data["iterations"]) - 1, "the program ended there"
    picture = data["pictures"][data["iterations"][iteration]["picture"]]
    assert index == len(picture["steps"]) - 1
    step = picture["steps"][index]
    return step, [labels_of(picture)[entry[0]] for entry in step["inputs"]]


# --- programs that raise -------------------------------------------------------------------------


def wrong_shapes() -> None:
    x, w = variable([1, 2, 3], [4, 5, 6]), variable([1, 2], [3, 4])
    h = F.relu(x)
    h @ w


def wrong_broadcast() -> None:
    x, y = variable(1, 2), variable(1, 2, 3)
    x * y


def in_forward() -> None:
    x = variable(1, 2)
    y = x * 2.0
    Own("forward").apply((y,))


def in_backward(where: str = "backward") -> None:
    x = variable(1, 2)
    (y,) = Own(where).apply((x * 2.0,))
    F.sum(y).backward()


def inside_of_backward() -> None:
    in_backward("function inside of backward")


def a_gradient_of_a_wrong_shape() -> None:
    in_backward("wrong shape")


def in_an_update() -> None:
    model = nn.Linear(2, 1)
    optimizer = nn.SGD(model, lr=0.1)
    F.sum(model(np.ones((1, 2), np.float32)))
    optimizer.update()


class Planted(tn.FunctionHook):
    name = "planted"

    def forward_preprocess(self, function: Any, in_data: Any) -> None:
        raise RuntimeError("planted in a hook")


def in_a_hook() -> None:
    y = variable(1, 2) * 2.0
    with Planted():
        F.exp(y)


def a_loss_without_a_graph() -> None:
    x = variable(1, 2)
    with tn.no_backprop_mode():
        loss = F.sum(x)
    loss.backward()


def an_axis_that_does_not_exist() -> None:
    y = variable(1, 2) * 2.0
    F.sum(y, axis=3)


def an_operand_that_is_no_array() -> None:
    y = variable(1, 2) * 2.0
    y + "abc"  # type: ignore[operator]


def between_functions() -> None:
    y = variable(1, 2) * 2.0
    {}["missing"]
    F.sum(y)


def an_interrupt() -> None:
    variable(1, 2) * 2.0
    raise KeyboardInterrupt


def an_exit() -> None:
    variable(1, 2) * 2.0
    sys.exit(1)


def in_a_compiled_function() -> None:
    def product(x: tn.Variable) -> tn.Variable:
        h = F.exp(x)
        return h @ h

    y = variable([1, 2, 3], [4, 5, 6]) * 2.0
    tn.compile(product)(y)


def in_a_vmapped_function() -> None:
    w = variable([1, 2], [3, 4])
    tn.vmap(lambda row: F.exp(row) @ w)(variable([1, 2, 3], [4, 5, 6]))


def from_another_error() -> None:
    x = variable([1, 2, 3], [4, 5, 6])
    try:
        x @ x
    except tn.errors.InvalidType as error:
        raise RuntimeError("the training failed") from error


class BadWordsError(Exception):
    def __str__(self) -> str:
        raise ValueError


def an_error_without_words() -> None:
    variable(1, 2) * 2.0
    raise BadWordsError


def a_function_of_numpy() -> None:
    variable(1, 2) * 2.0
    np.concatenate([np.ones(3), np.ones((2, 2))])


CASES: list[tuple[Callable[[], None], str, str | None, list[str], str]] = [
    (wrong_shapes, "forward", "MatMul", ["h", "w"], "h @ w"),
    (wrong_broadcast, "forward", "Multiply", ["x", "y"], "x * y"),
    (in_forward, "forward", "Own", ["y"], "Own('forward').apply((y,))"),
    (in_backward, "backward", "Own", ["x * 2.0"], "(y,) = Own(where).apply((x * 2.0,))"),
    (inside_of_backward, "backward", "Own", ["x * 2.0"], "(y,) = Own(where).apply((x * 2.0,))"),
    (
        a_gradient_of_a_wrong_shape,
        "backward",
        "Own",
        ["x * 2.0"],
        "(y,) = Own(where).apply((x * 2.0,))",
    ),
    (in_an_update, "update", "SGD", [], "optimizer.update()"),
    (in_a_hook, "forward", "Exp", ["y"], "F.exp(y)"),
    (a_loss_without_a_graph, "error", None, ["loss"], "loss.backward()"),
    (an_axis_that_does_not_exist, "error", None, ["y"], "F.sum(y, axis=3)"),
    (an_operand_that_is_no_array, "forward", "Add", ["y", "'abc'"], "y + 'abc'"),
    (between_functions, "error", None, [], "{}['missing']"),
    (an_interrupt, "error", None, [], "raise KeyboardInterrupt"),
    (an_exit, "error", None, [], "sys.exit(1)"),
    (in_a_compiled_function, "error", None, ["h"], "return h @ h"),
    (from_another_error, "forward", "MatMul", ["x", "x"], "x @ x"),
    (an_error_without_words, "error", None, [], "raise BadWordsError"),
    (
        a_function_of_numpy,
        "error",
        None,
        [],
        "np.concatenate([np.ones(3), np.ones((2, 2))])",
    ),
]


@pytest.mark.parametrize(
    ("program", "kind", "name", "inputs", "line"), CASES, ids=[c[0].__name__ for c in CASES]
)
def test_a_film_ends_at_the_failing_call(
    program: Callable[[], None], kind: str, name: str | None, inputs: list[str], line: str
) -> None:
    film, error = film_of(program)
    data = film.data()
    step, labels = failing(data)
    assert (step["kind"], step["class"], labels) == (kind, name, inputs)
    while error.__cause__ is not None:
        error = error.__cause__
    assert step["error"]["name"] == type(error).__name__
    if not isinstance(error, BadWordsError):
        assert str(error).strip() in step["error"]["text"]
        assert type(error).__name__ in step["title"]
    key, number = step["at"]
    source = data["files"][key]["lines"][number - data["files"][key]["first"]]
    assert source.split("#")[0].strip().replace('"', "'") == line
    assert data["note"].startswith("The recorded code ended with ")
    assert step["title"] in text(data) and step["title"] in film.to_text()
    others = [one for one in all_steps(data) if one["error"] is not None]
    assert len(others) == 1, "the error is in one step"


def test_the_shapes_and_numbers_of_the_operands_are_there() -> None:
    film, _ = film_of(wrong_shapes)
    data = film.data()
    step, _ = failing(data)
    shapes = [data["values"][value]["shape"] for _, value in step["inputs"]]
    assert shapes == [[2, 3], [2, 2]]
    assert step["title"] == (
        "MatMul fails on h and w: InvalidType: expected in_types[0].shape[-1] == "
        "in_types[1].shape[-2], got 3 != 2"
    )
    box = next(node for node in data["pictures"][0]["nodes"] if node["label"] == "MatMul")
    assert box["facts"] == ["! InvalidType"]
    assert "in w: (2, 2) float64 [1.0, 2.0, 3.0, 4.0]" in film.to_text()


def test_a_vmapped_function_shows_all_examples() -> None:
    data = film_of(in_a_vmapped_function)[0].data()
    step, _ = failing(data)
    assert (step["kind"], step["class"]) == ("forward", "MatMul")
    assert data["values"][step["inputs"][0][1]]["shape"][0] == 2


def test_the_line_inside_of_an_own_function_is_named() -> None:
    film, _ = film_of(in_forward)
    assert "raised at test_film_failures.py" in film.to_text()
    assert 'raise ValueError("planted <b>in</b> forward")' in film.to_text()


def test_the_fiftieth_iteration_of_a_loop() -> None:
    def loop() -> None:
        w = variable(1, 2)
        optimizer = nn.SGD([w], lr=0.1)
        for i in range(60):
            x = variable(1, 2) if i < 49 else variable(1, 2, 3)
            loss = F.sum(F.tanh(w) * x)
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()

    data = film_of(loop)[0].data()
    step, labels = failing(data)
    assert len(data["iterations"]) == 50 and step["class"] == "Multiply"
    assert labels == ["tanh(w)", "x"]
    assert len(data["pictures"]) == 2


def test_an_update_shows_the_parameters_before() -> None:
    data = film_of(in_an_update)[0].data()
    step, _ = failing(data)
    assert [entry[2:4] for entry in step["updates"]] == [[None, None]] * 2
    assert "The update by SGD fails: GraphError" in step["title"]


def test_the_film_goes_on_after_an_error_that_the_program_catches() -> None:
    x = variable([1, 2, 3], [4, 5, 6])
    with record() as film:
        y = F.exp(x)
        for _ in range(2):
            with pytest.raises(tn.errors.InvalidType):
                y @ x
        with pytest.raises(ValueError, match="backward"):
            F.sum(Own("backward").apply((y,))[0]).backward()
        F.sum(y).backward()
    data = film.data()
    told = [(s["kind"], s["error"] and s["error"]["name"]) for s in all_steps(data)]
    assert told[1:3] == [("forward", "InvalidType")] * 2
    assert told[7:9] == [("backward", "ValueError"), ("end", "ValueError")]
    assert told[-1] == ("end", None)
    assert data["failed"] is None and data["note"] is None


def test_an_error_of_an_earlier_call_is_not_blamed() -> None:
    def program() -> None:
        x = variable([1, 2, 3], [4, 5, 6])
        with pytest.raises(tn.errors.InvalidType):
            x @ x
        raise ValueError("another")

    step, _ = failing(film_of(program)[0].data())
    assert (step["kind"], step["error"]["text"]) == ("error", "another")


def test_many_errors_keep_few_words() -> None:
    """Each text makes another picture, so the words end after some errors."""
    with record() as film:
        for i in range(50):
            x = variable(*range(i + 3))
            with pytest.raises(tn.errors.InvalidType):
                F.exp(x) @ variable([1, 2])
    words = [s["error"]["text"] for s in film.steps if s["error"] is not None]
    assert len(words) == 50 and all(words[:20]) and not any(words[20:])


def test_a_program_without_steps_has_no_film() -> None:
    film, _ = film_of(lambda: {}["missing"])
    assert len(film) == 0 and film.data()["failed"] is None


def test_an_exit_without_an_error_is_no_failure() -> None:
    def program() -> None:
        variable(1, 2) * 2.0
        sys.exit(0)

    film, _ = film_of(program)
    assert len(film) == 1 and film.data()["failed"] is None


def test_nothing_is_kept_alive_by_an_error() -> None:
    kept: list[Any] = []
    with record() as film:
        for _ in range(2):
            x = variable([1.0, 2.0])
            kept.append(weakref.ref(x))
            with pytest.raises(tn.errors.InvalidType):
                F.exp(x) @ variable([1], [2], [3])
            del x
    assert len(film) == 4 and [one() for one in kept] == [None, None]


def test_frames_and_the_walk_show_the_failing_call(tmp_path: Path) -> None:
    film, _ = film_of(wrong_shapes)
    frames = film.frames(tmp_path)
    last = frames[-1].read_text("utf-8")
    assert "forward fails" in last and "InvalidType" in last and "got 3" in last
    film.save(tmp_path / "film.svg")
    walker = Walker(film.data())
    assert walker.position == 1 and any("MatMul fails" in line for line in walker.screen(200, 60))


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_an_engine_of_ones_own_shows_the_failing_call(where: str) -> None:
    use_mynode("09")
    import mynode

    class Broken(mynode.FunctionNode):  # type: ignore[misc,name-defined]
        def forward(self, inputs: Any) -> Any:
            if where == "forward":
                raise ValueError("planted in forward")
            return (inputs[0] * 2,)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            raise ValueError("planted in backward")

    def program() -> None:
        x = mynode.Variable(np.array(2.0))
        y = mynode.square(x)
        (z,) = Broken().apply((y,))
        z.backward()

    step, labels = failing(film_of(program)[0].data())
    assert (step["kind"], step["class"]) == (where, "Broken")
    assert step["error"]["text"] == f"planted in {where}" and labels == ["y"]


# --- comparisons ---------------------------------------------------------------------------------


def test_a_comparison_names_a_step_that_fails_in_one_film() -> None:
    def run(size: int) -> Film:
        x, y = variable(1, 2), variable(*range(size))
        with record() as film, contextlib.suppress(tn.errors.InvalidType):
            F.exp(x) * y
        return film

    told = str(tn.show.compare(run(2), run(3)).first)
    assert told == (
        "step 2 of the first film, forward of Multiply, where the second film has forward of "
        "Multiply, which fails with InvalidType"
    )
    back = str(tn.show.compare(run(3), run(2)).first)
    assert "forward of Multiply, which fails with InvalidType, where the second film has" in back


# --- NaN and inf ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("without_numpy_warnings")
def test_the_first_nan_is_marked_in_its_box() -> None:
    x = variable(0, 1)
    with record() as film:
        y = F.log(x)
        z = y * 0.0
        F.sum(z).backward()
    data = film.data()
    facts = {n["label"]: n["facts"] for n in data["pictures"][0]["nodes"] if n["id"][0] == "f"}
    assert facts["Log"] == ["! first inf"]
    marked = [step["class"] for step in all_steps(data) if step["not_finite"]]
    assert marked[0] == "Log"
    assert "First, element [0] is -inf." in film.to_text()


# --- the page ------------------------------------------------------------------------------------


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[[Film], Any]]:
    """Opens a film; no page may complain."""
    problems: list[str] = []
    contexts: list[Any] = []

    def open_film(film: Film) -> Any:
        path = tmp_path / f"film{len(contexts)}.html"
        film.save(path)
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        contexts.append(context)
        context.set_default_timeout(5000)
        opened = context.new_page()
        opened.on("console", lambda message: problems.append(message.text))
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.goto(path.as_uri())
        return opened

    yield open_film
    for context in contexts:
        context.close()
    assert not problems


@pytest.mark.slow
@pytest.mark.parametrize("program", [case[0] for case in CASES], ids=lambda p: p.__name__)
def test_the_page_opens_at_the_failing_call(show: Any, program: Callable[[], None]) -> None:
    film, _ = film_of(program)
    opened = show(film)
    step, _ = failing(film.data())
    assert opened.inner_text("#sentence") == " ".join(step["title"].split())
    assert opened.inner_text("#chip").endswith("error" if step["kind"] == "error" else "fails")
    assert opened.inner_text(".failure h3") == step["error"]["name"]
    if len(film) > 1:
        opened.click("#first")
    assert opened.inner_text("#counter").startswith("1 of ")
    opened.click("#to-failure")
    assert opened.inner_text("#sentence") == " ".join(step["title"].split())


@pytest.mark.slow
def test_the_words_of_an_error_are_text(show: Any) -> None:
    opened = show(film_of(in_forward)[0])
    assert "planted <b>in</b> forward" in opened.inner_text(".failure .words")
    assert opened.locator(".failure b").count() == 0


@pytest.mark.slow
@pytest.mark.usefixtures("without_numpy_warnings")
def test_a_button_goes_to_the_first_nan(show: Any) -> None:
    x = variable(0, 1)
    with record() as film:
        y = F.exp(x)
        F.sum(F.log(x) * y).backward()
    opened = show(film)
    assert opened.inner_text("#counter").startswith("1 of ")
    assert opened.locator("#to-failure").is_hidden()
    opened.click("#to-not-finite")
    assert opened.inner_text("#counter").startswith("2 of ")
    assert "element [0] is -inf" in opened.inner_text(".failure .words")


@pytest.mark.slow
def test_a_film_without_trouble_has_no_button(show: Any) -> None:
    with record() as film:
        F.sum(variable(1, 2)).backward()
    assert show(film).locator("#trouble").is_hidden()


def test_a_film_that_ends_in_a_recursion_error_can_be_shown() -> None:
    """Wherever the error strikes, also inside of the recorder, no id is given twice."""

    def endless(x: Any) -> Any:
        return endless(x * 1.0)

    with pytest.raises(RecursionError), record() as film:
        endless(tn.Variable(np.ones(3), name="x"))
    ids = [node.id for node in film.nodes]
    assert len(set(ids)) == len(ids)
    assert "RecursionError" in film.to_text()
    assert len(film.memory()) == len(film.steps)


def test_a_node_that_fails_takes_no_id(monkeypatch: pytest.MonkeyPatch) -> None:
    film = Film()
    film.add_function("Exp", 0, "forward", ())

    def fail(*given: Any) -> Any:
        raise RecursionError

    with monkeypatch.context() as patch:
        patch.setattr("tinynode.show.films.nodes.FilmNode", fail)
        with pytest.raises(RecursionError):
            film.add_variable("x", (), 0, "forward")
    assert film.add_function("Exp", 0, "forward", ()).id == "f1"
    assert film.add_variable("x", (), 0, "forward").id == "v0"
