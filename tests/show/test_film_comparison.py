"""Two films laid on each other: planted differences are found at their step."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn, show
from tinynode.__main__ import main
from tinynode.show.films.scripts import film_of_script
from tinynode_course import use_mynode

F = tn.functions

PROGRAM = """
import numpy as np
import tinynode as tn
from tinynode import functions as F
from tinynode import nn

tn.seed(0)
numbers = np.random.default_rng(0)
x = tn.asarray(numbers.standard_normal((4, 3)), "float32", requires_grad=False)
t = tn.asarray(numbers.standard_normal((4, 2)), "float32", requires_grad=False)
hidden, norm, out = nn.Linear(3, 5), nn.LayerNorm(5), nn.Linear(5, 2)
parameters = [*hidden.parameters(), *norm.parameters(), *out.parameters()]
optimizer = nn.Adam(parameters, lr=0.01)
for i in range(2):
    h = F.tanh(hidden(x))
    n = norm(h)
    d = F.dropout(n, 0.25)
    y = out(d)
    error = y - t
    loss = F.mean(error * error)
    optimizer.cleargrads()
    loss.backward()
    optimizer.update()
"""
"""Each planted difference is an edit of a line of this program."""


def film_of(tmp_path: Path, *edits: tuple[str, str]) -> show.Film:
    """The film of the program with edits."""
    text = PROGRAM
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "program.py"
    path.write_text(text)
    film, status = film_of_script(str(path), [], text)
    assert status == 0
    return film


PLANTED = {
    "a sign": ("y - t", "t - y", "step 9, forward of Subtract, operand y, "),
    "an axis": (
        "F.mean(error * error)",
        "F.mean(F.mean(error * error, axis=0))",
        "step 11, forward of Mean, result loss, shapes () and (2,)",
    ),
    "a seed": ("tn.seed(0)", "tn.seed(1)", "step 1, forward of Linear, operand hidden.weight, "),
    "a dtype": (
        '(4, 3)), "float32"',
        '(4, 3)), "float64"',
        "step 1 of the second film, forward of AsType",
    ),
    "a dropped accumulation": (
        "    optimizer.cleargrads()",
        "    if not i: optimizer.cleargrads()",
        "step 47, end of backward, ",
    ),
    "a missing update": (
        "    optimizer.update()",
        "    if i: optimizer.update()",
        "step 24 of the first film, update of Adam",
    ),
    "two updates": (
        "    optimizer.update()",
        "    optimizer.update(); optimizer.update()",
        "step 25 of the second film, update of Adam",
    ),
    "a rate": ("lr=0.01", "lr=0.02", "step 24, update of Adam, settings, "),
    "an optimizer": (
        "nn.Adam(parameters, lr=0.01)",
        "nn.AdamW(parameters, lr=0.01, weight_decay=0.1)",
        "step 24 of the first film, update of Adam, where the second film has update of AdamW",
    ),
    "an activation": (
        "F.tanh",
        "F.sigmoid",
        "step 2 of the first film, forward of Tanh, where the second film has forward of Sigmoid",
    ),
    "a ratio": ("0.25", "0.5", "step 6, forward of DropoutMask, result "),
    "no dropout": ("0.25", "0.0", "step 6 of the first film, forward of DropoutMask"),
    "an eps": ("nn.LayerNorm(5)", "nn.LayerNorm(5, 1e-3)", "step 3, forward of Standardize, resu"),
    "a missing layer": ("norm(h)", "norm.beta + h * norm.gamma", "step 3 of the first film, for"),
    "a factor": (
        "F.mean(error * error)",
        "F.mean(error * error) * 2.0",
        "step 12 of the second film, forward of Multiply",
    ),
    "a penalty": (
        "F.mean(error * error)",
        "F.mean(error * error) + 1e-3 * F.sum(hidden.weight**2)",
        "step 12 of the second film, forward of PowConstant(2)",
    ),
    "clipping": (
        "    optimizer.update()",
        "    nn.clip_gradients(parameters, 0.01); optimizer.update()",
        "step 24, update of Adam, gradient of hidden.weight, ",
    ),
    "an order of examples": (
        "(numbers.standard_normal((4, 3))",
        "(numbers.standard_normal((4, 3))[::-1].copy()",
        "step 1, forward of Linear, operand x, ",
    ),
    "a NaN": ("= out(d)", "= out(d) * (np.nan if i else 1.0)", "step 9 of the second film, forwa"),
    "another iteration": ("range(2)", "range(3)", "step 49 of the second film, forward of Linear"),
    "a left-out parameter": (
        "[*hidden.parameters(), *norm",
        "[*norm",
        "step 24, update of Adam, number of arrays, 31 and 21 arrays",
    ),
}
"""By name: the text, the text in its place, and where the comparison has to point."""


SHARE = [
    pytest.param(name, marks=[] if i % 4 == 0 else pytest.mark.slow)
    for i, name in enumerate(PLANTED)
]
"""The default tests plant every fourth difference."""


@pytest.mark.parametrize("name", SHARE)
def test_a_planted_difference_is_found_at_its_step(name: str, tmp_path: Path) -> None:
    old, new, where = PLANTED[name]
    found = show.compare(film_of(tmp_path), film_of(tmp_path, (old, new)))
    assert found and str(found.first).startswith(where)
    assert str(found).startswith(f"first difference: {where}")
    numbers = [[n for n in side if n is not None] for side in zip(*found.pairs, strict=True)]
    assert all(side == sorted(set(side)) for side in numbers)


def test_equal_runs_have_no_difference(tmp_path: Path) -> None:
    found = show.compare(film_of(tmp_path), film_of(tmp_path))
    assert not found and found.first is None and found.largest == 0.0
    assert str(found) == "no difference in 48 steps"


class WrongSine(tn.FunctionNode):
    """A sine whose gradient is that of another function in one element."""

    def forward(self, inputs: Any) -> Any:
        self.retain_inputs((0,))
        return (np.sin(inputs[0]),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        slope = F.cos(x) + np.asarray([0.0, self.error, 0.0])
        return (grad_outputs[0] * slope,)


def test_a_wrong_gradient_is_found_in_the_backward_step() -> None:
    def run(error: float) -> show.Film:
        x = tn.Variable(np.asarray([0.1, 0.2, 0.3]), name="x")
        node = WrongSine()
        node.error = error  # type: ignore[attr-defined]
        with show.record() as film:
            F.sum(node.apply((x,))[0] ** 2).backward()
        return film

    found = show.compare(run(0.0), run(0.25))
    first = found.first
    assert first is not None and first.steps == (7, 7)
    assert (first.event, first.part) == ("backward of WrongSine", "gradient of x")
    assert first.size == pytest.approx(0.25 * 2 * np.sin(0.2))
    assert not show.compare(run(0.0), run(1e-14)) and show.compare(run(0.0), run(1e-14)).largest
    assert show.compare(run(0.0), run(1e-14), tolerance=0.0)


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_devices_and_dtypes_differ_by_rounding_alone(device: str, dtype: str) -> None:
    def run() -> None:
        tn.seed(0)
        model = nn.Sequential(nn.Linear(20, 30), F.relu, nn.Linear(30, 3))
        x = np.random.default_rng(1).standard_normal((40, 20))
        for p in model.parameters():
            p.array = p.xp.astype(p.array, getattr(p.xp, dtype))
        F.sum(F.softmax(model(tn.asarray(x, dtype))) ** 2).backward()

    with show.record() as one, tn.using_device("numpy"):
        run()
    with show.record() as other, tn.using_device(device):
        run()
    tn.testing.assert_same_run(one, other)


def compiled_run(is_compiled: bool, factor: float = 1.0) -> show.Film:
    """A film of training, with an eager or a compiled loss."""
    tn.seed(0)
    model = nn.Sequential(nn.Linear(3, 5), F.tanh, nn.Linear(5, 2))
    optimizer = nn.SGD(model, lr=0.1)
    x = tn.asarray(np.random.default_rng(1).standard_normal((4, 3)), "float32")

    def loss_of(x: tn.Variable) -> tn.Variable:
        return F.mean(model(x) ** 2) * factor

    compiled: Any = tn.compile(loss_of) if is_compiled else loss_of
    with show.record() as film:
        for _ in range(2):
            loss = compiled(x)
            optimizer.cleargrads()
            loss.backward()
            optimizer.update()
    return film


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_a_compiled_function_stands_for_its_steps(device: str) -> None:
    eager = compiled_run(False)
    with tn.using_device(device):
        compiled, wrong = compiled_run(True), compiled_run(True, factor=1.25)
    for pair, counts in (((eager, compiled), "24"), ((compiled, eager), "4")):
        found = show.compare(*pair)
        assert not found, found
        assert str(found).splitlines()[1].startswith(f"compiled: {counts} steps of the first film")
    tn.testing.assert_same_run(eager, compiled)
    found = show.compare(eager, wrong)
    assert found.first is not None
    assert (found.first.event, found.first.part) == ("forward of Multiply", "result loss")
    assert found.first.steps == (6, 1)
    assert show.compare(compiled, wrong).first.part == "result loss"


@pytest.mark.parametrize("is_last_wrong", [False, True])
def test_each_result_of_a_compiled_function_is_compared(is_last_wrong: bool) -> None:
    factors = (2.0, 3.0) if is_last_wrong else (777.0, 1.0)

    def eager(x: tn.Variable) -> tuple[tn.Variable, tn.Variable]:
        return F.sum(x * 2.0), F.sum(x * x)

    def wrong(x: tn.Variable) -> tuple[tn.Variable, tn.Variable]:
        return F.sum(x * factors[0]), F.sum(x * x) * factors[1]

    def film_of(function: Any) -> show.Film:
        x = tn.asarray([1.0, 2.0, 3.0], requires_grad=True)
        with show.record() as film:
            function(x)
        return film

    assert not show.compare(film_of(eager), film_of(tn.compile(eager)))
    found = show.compare(film_of(eager), film_of(tn.compile(wrong)))
    assert found.first is not None and found.first.size == (28.0 if is_last_wrong else 4650.0)
    assert show.compare(film_of(tn.compile(wrong)), film_of(eager))
    with pytest.raises(AssertionError, match="the runs differ"):
        tn.testing.assert_same_run(film_of(eager), film_of(tn.compile(wrong)))


@pytest.mark.parametrize("arrays", [True, False])
def test_whole_arrays_are_compared_where_films_have_them(arrays: bool) -> None:
    def film_of(numbers: Any) -> show.Film:
        with show.record(arrays=arrays) as film:
            F.exp(tn.asarray(numbers))
        return film

    numbers = np.random.default_rng(0).standard_normal((64, 65))
    turned = numbers.copy()
    turned[1::2] = turned[1::2][::-1]  # the order of rows in a batch
    found = show.compare(film_of(numbers), film_of(turned))
    assert bool(found) is arrays
    assert arrays or "2 large arrays were compared by samples" in str(found)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_are_compared_exactly(dtype: Any) -> None:
    def film_of(number: int) -> show.Film:
        with show.record() as film:
            F.concat([tn.asarray(np.asarray([number], dtype)), tn.asarray(np.asarray([1], dtype))])
        return film

    found = show.compare(film_of(2**60), film_of(2**60 + 1))
    assert found.first is not None and found.first.size == 1.0
    assert not show.compare(film_of(2**60), film_of(2**60))


@pytest.mark.parametrize("tolerance", ["x", [1.0], 10**400, -1.0, float("nan")])
def test_a_wrong_tolerance_of_a_comparison(tolerance: Any) -> None:
    film = compiled_run(False)
    with pytest.raises((TypeError, ValueError), match="compare: tolerance"):
        show.compare(film, film, tolerance=tolerance)


@pytest.mark.parametrize("stage", ["04", "06", "09"])
def test_the_engine_of_a_learner_beside_the_package(stage: str) -> None:
    def film_of(package: Any) -> show.Film:
        x = package.Variable(np.array(3.0), name="x")
        y = package.Variable(np.array(2.0), name="y")
        with show.record() as film:
            (x * y + x).backward()
        return film

    path = list(sys.path)
    try:
        use_mynode(stage)
        own = film_of(importlib.import_module("mynode"))
    finally:
        sys.path[:] = path
        for name in [name for name in sys.modules if name.split(".")[0] == "mynode"]:
            del sys.modules[name]
    found = show.compare(own, film_of(tn))
    if stage == "04":  # the second gradient of x replaces the first
        assert str(found.first) == "step 5, backward of Multiply, sum of the gradients of x, 1"
    else:
        assert not found


def test_large_arrays_are_compared_by_a_sample_and_three_numbers() -> None:
    def run(x: Any) -> show.Film:
        with show.record() as film:
            F.exp(tn.asarray(x))
        return film

    x = np.zeros((100, 100), np.float32)
    for value in (5.0, -5.0, np.nan):
        other = x.copy()
        other[51, 53] = value  # in no sample
        assert show.compare(run(x), run(other)).first.part.startswith("operand")
    assert not show.compare(run(x), run(x + np.float32(0.0)))


def test_an_assertion_names_the_first_difference() -> None:
    w = tn.asarray([1.0, 2.0], requires_grad=True)
    tn.testing.assert_same_run(lambda: F.sum(w * w), lambda: F.sum(w * w))
    with pytest.raises(AssertionError, match=r"the runs differ.\nfirst difference: step 1, forw"):
        tn.testing.assert_same_run(lambda: F.sum(w * w), lambda: F.sum(w * 2.0))


def test_what_is_no_film_is_refused() -> None:
    film = show.record()
    with pytest.raises(TypeError, match=r"compare: film_a must be a film of tn\.show\.record"):
        show.compare(film, film)  # type: ignore[arg-type]
    with show.record() as empty:
        pass
    with pytest.raises(ValueError, match="compare: film_a has no steps"):
        show.compare(empty, empty)
    with pytest.raises(TypeError, match="assert_same_run: run_b must be a film"):
        tn.testing.assert_same_run(lambda: F.exp(tn.asarray([1.0])), 3)  # type: ignore[arg-type]


# --- the page ------------------------------------------------------------------------------------


def parted(flip: bool) -> show.Film:
    """Two iterations; the second run subtracts in the other order, and squares once more."""
    x, y = [tn.Variable(np.asarray([1.0, 3.0]) * k, name=n) for k, n in ((1, "x"), (2, "y"))]
    with show.record("other" if flip else "one") as film:
        for _ in range(2):
            z = y - x if flip else x - y
            if flip:
                z = z * z
            F.sum(z).backward()
    return film


def test_a_page_has_the_arrays_of_both_films_and_their_difference() -> None:
    data = show.compare(parted(False), parted(True)).data()
    compared = data["compared"]
    assert compared["first"] == [0, 0] and compared["titles"] == ["one", "other"]
    labels = {node["id"]: node["label"] for node in data["pictures"][0]["nodes"]}
    names = [labels[node] for node in compared["way"]]
    assert names[0] == "Subtract" and "Multiply" in names and "Sum" in names[-2:]
    assert not {"x", "y"} & set(names), "what comes before the difference is not on the way"
    iteration, step, rows = compared["steps"][0]
    assert (iteration, step) == (0, 0)
    part, node, here, there, gap, words = rows[0]
    assert part.startswith("operand") and node is not None and words == "largest difference 3"
    cells = [data["values"][index]["cells"] for index in (there, here, gap)]
    assert cells == [[1.0, 3.0], [2.0, 6.0], [1.0, 3.0]]
    alone = [rows for _, _, rows in compared["steps"] if not rows[0][0]]
    assert len(alone) == 4, "forward and backward of the square, twice"
    back = show.compare(parted(True), parted(False)).data()["compared"]
    assert [words for _, _, words in back["missing"]] == [
        ["forward of Multiply"], ["backward of Multiply"],
    ] * 2  # fmt: skip


def test_a_comparison_is_a_page_and_a_frame(tmp_path: Path) -> None:
    found = show.compare(parted(False), parted(True))
    found.save(tmp_path / "both.html")
    assert "difference-next" in (tmp_path / "both.html").read_text(encoding="utf-8")
    assert "<iframe" in found._repr_html_()
    with pytest.raises(ValueError, match=r"the path must end in \.html"):
        found.save(tmp_path / "both.json")


def test_the_page_opens_at_the_first_difference(browser: Any, tmp_path: Path) -> None:
    found = show.compare(parted(False), parted(True))
    found.save(tmp_path / "both.html")
    context = browser.new_context()
    problems: list[str] = []
    page = context.new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.goto((tmp_path / "both.html").as_uri())
    assert page.inner_text("#compared-sentence").startswith("first difference: step 1, forward of")
    assert page.inner_text("#counter").startswith("1 of ")
    shown = page.inner_text("#compared-body")
    assert "first film, one" in shown and "second minus first" in shown
    assert page.locator(".node.differs").count() >= 1
    page.click("#difference-next")
    assert "The second film alone has this step." in page.inner_text("#compared-body")
    page.click("#difference-first")
    assert page.get_attribute("#difference-back", "aria-disabled") == "true"
    context.close()
    assert problems == []


def test_the_command_compares_two_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "import tinynode as tn\nx = tn.asarray(tn.random.normal((3,)))\ny = x * 2.0\n"
    Path("a.py").write_text(text)
    Path("b.py").write_text(text.replace("2.0", "3.0"))
    assert main(["step", "a.py", "--against", "b.py", "--no-open"]) == 1
    told = capsys.readouterr().out
    assert told.startswith("first difference: step 1, forward of Multiply, operand 2.0, 1\n")
    assert told.endswith("written to a-against-b.html\n") and Path("a-against-b.html").exists()
    assert main(["step", "a.py", "--against", "a.py", "--no-open", "--output", "x.html"]) == 0
    assert capsys.readouterr().out.startswith("no difference in 1 step\n")
    Path("failed.py").write_text(text + "raise SystemExit(3)\n")
    for pair in (["failed.py", "--against", "a.py"], ["a.py", "--against", "failed.py"]):
        assert main(["step", *pair, "--no-open"]) == 1
        told = capsys.readouterr().out
        assert (
            "film, line of the program, which fails with SystemExit\n0 of 1 common step " in told
        )
    for arguments in (["--against", "c.py"], ["--against", "b.py", "--quiz"]):
        assert main(["step", "a.py", *arguments]) == 2
        assert capsys.readouterr().err.startswith("python -m tinynode step: error: ")


def test_other_dtypes_of_equal_numbers_are_told() -> None:
    films = []
    for between in (None, "float64"):
        x = tn.asarray([1.0, 2.0], "float32")
        with show.record() as film:
            y = F.astype(x * 2.0, between or "float32")
            F.sum(y * 3.0)
        films.append(film)
    found = show.compare(*films)
    same = show.compare(films[0], films[0])
    assert not found.differences and not same.retyped
    assert found.retyped[0].part.startswith("result ")
    assert {one.dtypes for one in found.retyped} == {"float32 and float64"}
    words = str(found).splitlines()
    assert words[0].startswith("no difference in ")
    assert words[1].startswith(f"other dtypes of {len(found.retyped)} arrays, first step 2, ")
    assert words[1].endswith(", float32 and float64")
    assert found.data()["compared"]["sentence"] == str(found)


def test_the_command_gives_both_scripts_all_random_numbers_and_their_own_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        "import random, numpy, tinynode as tn\nfrom scale_beside import scale\n"
        "x = tn.asarray([numpy.random.rand(), random.random()])\ny = x * scale\n"
    )
    for folder, scale in (("old", 2.0), ("new", 3.0)):
        Path(folder).mkdir()
        Path(folder, "a.py").write_text(text)
        Path(folder, "scale_beside.py").write_text(f"scale = {scale}\n")
    words = ["--no-open", "--output", "x.html"]
    assert main(["step", "old/a.py", "--against", "old/a.py", *words]) == 0
    assert main(["step", "old/a.py", "--against", "new/a.py", *words]) == 1
    told = capsys.readouterr().out
    assert "first difference: step 1, forward of Multiply, operand scale, 1\n" in told
