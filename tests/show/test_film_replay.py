"""Films computed again: all rows of the table of operations, programs, and planted faults."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from op_cases import CASES, Case
from op_drivers import derive, runs_on

import tinynode as tn
from tinynode import nn
from tinynode.__main__ import main
from tinynode.functions.arithmetic import Multiply
from tinynode.show import Film, Replay, record

F = tn.functions

# --- every row of the table of operations --------------------------------------------------------

GIVEN = "the program gave the gradient to start from"
"""Each row starts from random gradients: the start of a backward pass computes nothing."""

LEFT_OUT: dict[str, str] = {}
"""By row, the reason why another step cannot be computed again. Today all steps can."""


def check_rows(cases: list[Case], device: str, tolerance: float | None = 0.0) -> None:
    """The forward, backward and second backward of each row give the same bits again."""
    for case in cases:
        with record(arrays=True) as film:
            derivatives = derive(case, device)
            if case.order >= 2:
                derivatives.differentiate_again()
        found = film.replay(tolerance=tolerance)
        assert not found.differences, f"{case.id}: {found.first}"
        reasons = {one.reason for one in found.left_out if one.event != "start of backward"}
        assert reasons == {LEFT_OUT[case.id]} if case.id in LEFT_OUT else not reasons, case.id
        starts = [one.reason for one in found.left_out if one.event == "start of backward"]
        assert set(starts) <= {GIVEN}
        assert len(found.computed) + len(found.left_out) == found.steps == len(film)


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 8))]
)
def test_every_row_of_the_table_gives_the_same_bits_again(part: int) -> None:
    check_rows(CASES[part::8], "numpy")


@pytest.mark.slow
@pytest.mark.parametrize(("device", "tolerance"), [("fast", 0.0), ("strict", None)])
def test_rows_on_other_devices(device: str, tolerance: float | None) -> None:
    """A library that hides the order in memory may add in another order: up to rounding."""
    check_rows([case for case in CASES[::5] if runs_on(case, device)], device, tolerance)


def test_a_row_with_a_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The film of a broken backward disagrees with the right backward."""
    (case,) = [case for case in CASES if case.id == "multiply-same-shape"]
    backward = Multiply.backward
    with monkeypatch.context() as patch, record() as film:
        patch.setattr(Multiply, "backward", lambda self, *more: backward(self, *more)[::-1])
        derive(case, "numpy")
    found = film.replay()
    assert {one.event for one in found.differences} == {"backward of Multiply"}


# --- planted faults ------------------------------------------------------------------------------

FACTOR = {"factor": 2.0}


class ReadsGlobal(tn.FunctionNode):
    """y = x; a gradient that depends on a global number."""

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] * 1.0,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        return (grad_outputs[0] * FACTOR["factor"],)


def variable(*values: float, name: str = "x") -> tn.Variable:
    return tn.Variable(np.array(values), name=name)


def test_a_backward_that_reads_global_state(monkeypatch: pytest.MonkeyPatch) -> None:
    x = variable(1.0, 2.0)
    with record() as film:
        F.sum(ReadsGlobal().apply((x * 3.0,))[0]).backward()
    assert film.replay()
    monkeypatch.setitem(FACTOR, "factor", 5.0)
    found = film.replay()
    assert not found
    assert str(found.first) == "step 6, backward of ReadsGlobal, gradient of x * 3.0, 3"
    assert len(found.differences) == 1
    assert str(found) == (
        "first disagreement: step 6, backward of ReadsGlobal, gradient of x * 3.0, 3\n"
        "8 of 8 steps computed again: step 6 disagrees"
    )


class ChangesGradients(tn.FunctionHook):
    """Doubles the gradients of Exp in place."""

    name = "changes gradients"

    def after_backward(self, function: Any, targets: Any, gys: Any, gxs: Any) -> None:
        if function.label == "Exp":
            gxs[0].raw *= 2.0


@pytest.mark.parametrize("comes_first", [True, False])
def test_a_hook_that_changes_a_gradient(comes_first: bool) -> None:
    x = variable(0.0, 1.0)
    if comes_first:
        with ChangesGradients(), record() as film:
            F.sum(F.exp(x)).backward()
        part = "gradient of x, 2.7"
    else:  # the step has the right gradient; the table has the other one
        with record() as film, ChangesGradients():
            F.sum(F.exp(x)).backward()
        part = "gradient of x, as in the table, 2.7"
    found = film.replay()
    assert str(found.first) == f"step 5, backward of Exp, {part}"


def test_an_array_mutated_between_forward_and_backward() -> None:
    x = variable(1.0, 2.0)
    y = variable(3.0, 4.0, name="y")
    with record() as film:
        z = F.sum(x * y)
        y.array[1] = 40.0
        z.backward()
    found = film.replay()
    assert [str(one) for one in found.differences] == [
        "step 5, backward of Multiply, retained y, 36",
        "step 5, backward of Multiply, gradient of x, 36",
    ]


def test_a_result_mutated_before_its_use() -> None:
    x = variable(1.0, 2.0)
    with record() as film:
        y = x * 3.0
        y.array[0] = 100.0
        F.sum(y)
        F.exp(y)
    found = film.replay()
    assert [str(one) for one in found.differences] == [
        "step 2, forward of Sum, operand y, computed in step 1, 97"
    ]


class Counts(tn.FunctionNode):
    """y = x + n, with n the number of calls: no function of its inputs."""

    calls = 0

    def forward(self, inputs: Any) -> Any:
        Counts.calls += 1
        return (inputs[0] + Counts.calls,)


class Fails(tn.FunctionNode):
    """y = x; works once."""

    calls = 0

    def forward(self, inputs: Any) -> Any:
        Fails.calls += 1
        if Fails.calls > 1:
            raise OSError("the file is gone")
        return (inputs[0] * 1.0,)


def test_a_forward_that_cannot_give_the_result_again() -> None:
    x = variable(1.0)
    with record() as film:
        Counts().apply((x,))
        Fails().apply((x,))
    assert [str(one) for one in film.replay().differences] == [
        "step 1, forward of Counts, result Counts().apply((x,)), 1",
        "step 2, forward of Fails, the second run, ends with OSError: the file is gone",
    ]


def test_a_gradient_in_the_table_that_was_mutated() -> None:
    class Spoils(tn.FunctionHook):
        name = "spoils"

        def before_backward(self, sweep: Any, function: Any) -> None:
            if function.label == "Exp":
                for gradient in sweep.table.gradients.values():
                    gradient.raw[...] = 7.0

    x = variable(0.0, 1.0)
    with record() as film, Spoils():
        F.sum(F.exp(x) * 2.0).backward()
    assert str(film.replay().first) == (
        "step 7, backward of Exp, gradient of exp(x), as in the table, 5"
    )


class SpoilsSums(tn.FunctionHook):
    """Changes a sum in the table, before the recorder sees it."""

    name = "spoils sums"

    def after_accumulate(self, sweep: Any, function: Any) -> None:
        if function.label == "Multiply":
            for gradient in sweep.table.gradients.values():
                gradient.raw[...] += 1.0


class SpoilsGrads(tn.FunctionHook):
    """Changes the ``grad`` of leaves, before the recorder sees it."""

    name = "spoils grads"

    def sweep_ended(self, sweep: Any, error: Any) -> None:
        for gradient in sweep.results.values():
            gradient.raw[...] += 3.0


@pytest.mark.parametrize(
    ("hook", "told"),
    [
        (SpoilsSums, "step 5, backward of Multiply, sum of the gradients of x, 1"),
        (SpoilsGrads, "step 6, end of backward, grad of x, 3"),
    ],
)
def test_sums_and_results_that_were_changed(hook: type[tn.FunctionHook], told: str) -> None:
    x = variable(1.0, 2.0)
    F.sum(x).backward()
    with hook(), record() as film:
        F.sum(x * x).backward()
    assert [str(one) for one in film.replay().differences] == [told]


def test_an_update_that_was_changed() -> None:
    w = variable(1.0, 2.0, name="w")
    optimizer = nn.SGD([w], lr=0.1)

    class Changes(tn.FunctionHook):
        name = "changes"

        def updated(self, optimizer: Any, parameters: Any) -> None:
            w.array[0] = 9.0

    with Changes(), record() as film:
        F.sum(w * w).backward()
        optimizer.update()
    assert [str(one) for one in film.replay().differences] == [
        "step 7, update of SGD, w after, 8.2"
    ]


# --- programs that agree -------------------------------------------------------------------------


def agree(film: Film, left_out: int = 0) -> Replay:
    found = film.replay(tolerance=0.0)
    assert found.agrees, str(found)
    assert len(found.left_out) == left_out, str(found)
    return found


OPTIMIZERS = {
    "sgd": lambda p: nn.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: nn.Adam(p, lr=0.1),
    "adamw": lambda p: nn.AdamW(p, lr=0.1, weight_decay=0.1),
    "rmsprop": lambda p: nn.RMSprop(p, lr=0.1),
    "adagrad": lambda p: nn.Adagrad(p, lr=0.1),
    "nadam": lambda p: nn.NAdam(p, lr=0.1),
    "lion": lambda p: nn.Lion(p, lr=0.1),
}


class OwnRule(nn.Optimizer):
    """A rule of one's own, with a moment."""

    moment_names = ("m",)

    def update_one(self, array: Any, grad: Any, moments: Any, count: int) -> Any:
        m = moments["m"] + grad
        return array - self.lr * m / count, {"m": m}


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("name", [*OPTIMIZERS, "own"])
def test_a_training_loop(name: str, device: str) -> None:
    tn.seed(0)
    with tn.using_device(device):
        layers = nn.Linear(3, 40), F.tanh, nn.LayerNorm(40), nn.Dropout(0.2), nn.Linear(40, 2)
        model = nn.Sequential(*layers)
        optimizer = OPTIMIZERS.get(name, lambda p: OwnRule(p, lr=0.1))(model)
        x = tn.asarray(np.random.default_rng(0).normal(size=(8, 3)), "float32")
        with record(model=model, arrays=True) as film:
            for step in range(3):
                if step == 2:
                    model[0].weight.requires_grad = False  # frozen
                loss = F.mean(model(x) ** 2)
                optimizer.cleargrads()
                loss.backward()
                optimizer.update()
                optimizer.lr *= 0.5
    agree(film)


def test_groups_of_an_optimizer() -> None:
    a, b = variable(1.0, name="a"), variable(2.0, name="b")
    groups = [{"parameters": [a]}, {"parameters": [b], "lr": 0.01}]
    optimizer = nn.Adam(groups, lr=0.1)
    with record() as film:
        for _ in range(2):
            optimizer.cleargrads()
            F.sum(a * b).backward()
            optimizer.update()
    agree(film)


@pytest.mark.parametrize("is_lazy", [False, True])
def test_sums_of_gradients(is_lazy: bool) -> None:
    x = variable(1.0, 2.0)
    with record() as film, tn.using_config(lazy_grad_sum=is_lazy):
        y = F.exp(x)
        F.sum(y * y + y * x + x * x).backward()
        F.sum(x * x).backward()  # added to the grad
    agree(film)


def test_double_backprop() -> None:
    x = variable(1.0, 2.0)
    with record() as film:
        (gx,) = tn.grad([F.sum(x**3)], [x], enable_double_backprop=True)
        F.sum(gx * gx).backward()
    agree(film)


def test_gradients_to_start_from_and_to_add() -> None:
    x = variable(1.0, 2.0)
    with record() as film:
        y = x * 3.0
        y.grad_var = variable(5.0, 6.0)
        y.backward(retain_grad=True)
        tn.grad([F.sum(x * x)], [x], grad_inputs=[variable(1.0, 1.0)], set_grad=True)
    assert [str(one) for one in agree(film, 2).left_out] == [
        f"step 2, start of backward: {GIVEN}",
        "step 10, end of backward: tn.grad added grad_inputs, which the film does not have",
    ]


class Fused(tn.FunctionNode):
    """y = 3 x, with a sum of gradients inside."""

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] * 3.0,)

    def backward_accumulate(self, targets: Any, gys: Any, so_far: Any) -> Any:
        gx = gys[0] * 3.0
        return (gx if so_far[0] is None else gx + so_far[0],)


def test_backward_accumulate() -> None:
    x = variable(1.0, 2.0)
    with record() as film:
        F.sum(Fused().apply((x,))[0] + x + F.exp(x)).backward()
    agree(film)


@pytest.mark.usefixtures("without_numpy_warnings")
def test_masks_keep_zeros() -> None:
    x = variable(0.0, 2.0)
    with record() as film:
        F.sum(F.where(x > 0, x * F.log(x), 0.0)).backward()
    assert np.isfinite(x.grad).all()
    agree(film)


def test_memory_layouts_and_dtypes() -> None:
    base = np.random.default_rng(0).normal(size=(6, 40, 8)).astype(np.float32)
    with record(arrays=True) as film:
        x = tn.Variable(base.transpose(2, 0, 1)[::-1, :, ::2])
        F.sum(F.mean(x * x, axis=0) @ F.mean(x, axis=0).T).backward()
        F.sum(tn.asarray(base[:, 0], "float16", requires_grad=True) ** 2).backward()
        F.sum(F.abs(tn.asarray(np.array([1 + 2j, 3j])))).backward()
        F.argmax(x)
    agree(film)


def test_no_graph_writes_and_buffers() -> None:
    model = nn.BatchNorm(4)
    x = tn.asarray(np.random.default_rng(0).normal(size=(5, 4)), "float32")
    with record(model=model) as film:
        with tn.no_backprop_mode():
            F.exp(x)
            x += 1.0
            F.exp(x)
        F.sum(model(x)).backward()
        y = x * 2.0
        y[0] = 5.0
        F.sum(y)
    agree(film)


class HasArray(tn.FunctionNode):
    """y = x * mask, with attributes of several kinds."""

    def __init__(self, mask: Any) -> None:
        self.mask = mask
        self.names = {"list": [1, 2], "set": {3}}

    def forward(self, inputs: Any) -> Any:
        self.names["list"].append(3)
        assert self.names == {"list": [1, 2, 3], "set": {3}}
        return (inputs[0] * self.mask,)


class OldSquare(tn.Function):
    """y = factor * x * x."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def forward_cpu(self, inputs: Any) -> Any:
        return (self.factor * inputs[0] * inputs[0],)

    def backward_cpu(self, inputs: Any, grad_outputs: Any) -> Any:
        return (2.0 * self.factor * inputs[0] * grad_outputs[0],)


def test_attributes_are_as_before_forward() -> None:
    x, mask = variable(1.0, 2.0), np.array([0.0, 1.0])
    with record() as film:
        y = HasArray(mask).apply((x,))[0]
        F.sum(OldSquare(3.0)(y)).backward()
    mask[:] = 7.0
    agree(film)


# --- steps left out ------------------------------------------------------------------------------


def reasons(film: Film) -> dict[str, str]:
    """By event, the reason of the steps left out."""
    found = film.replay()
    assert not found.differences, str(found)
    return {one.event: one.reason for one in found.left_out}


def test_large_arrays_need_the_option() -> None:
    films = []
    for arrays in (False, True):
        x = tn.Variable(np.arange(300.0), name="x")
        with record(arrays=arrays) as film:
            F.sum(F.sin(x)).backward()
        films.append(film)
    found = films[0].replay()
    assert str(found) == (
        "2 of 6 steps computed again: all agree, to the last bit\n"
        "left out: steps 1, 2, 4 and 5: an array of more than 256 elements was not kept: "
        "record(arrays=True) keeps it"
    )
    agree(films[1])
    texts = [str(film.data()["values"]) for film in films]
    assert texts[0] == texts[1]  # the page is the same


def test_a_large_result_is_compared_by_its_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    x = variable(1.0)
    with record() as film:
        Repeats().apply((x,))
    agree(film)
    monkeypatch.setattr(Repeats, "last", 3.0)
    assert not film.replay()


class Repeats(tn.FunctionNode):
    """y = 1,000 times x, with a last number."""

    last = 2.0

    def forward(self, inputs: Any) -> Any:
        y = np.repeat(inputs[0], 1000)
        y[-1] = Repeats.last
        return (y,)


def test_the_limit_of_all_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinynode.show.films.values.MOST_BYTES", 8 * 300)
    x = tn.Variable(np.arange(300.0), name="x")
    with record(arrays=True) as film:
        F.sum(F.sin(x))
    assert set(reasons(film)) == {"forward of Sum"}


class Holds(tn.FunctionNode):
    """y = x, with an attribute that no film copies."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] * 1.0,)


def test_attributes_that_cannot_be_copied() -> None:
    x = variable(1.0)
    with record() as film:
        Holds(x).apply((x,))
        Holds(np.zeros(300)).apply((x,))
        Holds(lambda: x).apply((x,))
        Holds([1, (2, nn.Identity())]).apply((x,))
    found = film.replay()
    assert [one.reason for one in found.left_out] == [
        "its attribute thing is of class Variable, which a film does not copy",
        "its attribute thing is ndarray of shape (300,), float64: record(arrays=True) keeps large "
        "arrays",
        "its attribute thing is of class function, which a film does not copy",
        "its attribute thing is of class Identity, which a film does not copy",
    ]
    assert str(found).startswith("0 of 4 steps computed again\nleft out: step 1: its attribute")
    assert not found


def test_vmap_compile_checkpoint_and_earlier_functions() -> None:
    x = variable(1.0, 2.0)
    earlier = F.exp(x)

    @tn.compile
    def compiled(x: tn.Variable) -> tn.Variable:
        return F.sum(F.exp(x) * x)

    with record() as film:
        F.sum(tn.vmap(lambda row: F.exp(row) * row)(x)).backward()
        compiled(x).backward()
        F.sum(tn.checkpoint(lambda x: F.exp(x) * x, x)).backward()
        F.sum(earlier).backward()
    found = reasons(film)
    vmap = "inside of vmap, an array has a hidden axis"
    assert found["forward of Multiply"] == vmap
    assert found["backward of compiled"] == "a compiled function runs a net of functions"
    assert found["forward of Checkpoint"] == "a checkpoint runs other functions"
    assert found["backward of Exp"] in (vmap, "the function was applied before the recording")


def test_watched_pictures_and_failed_passes() -> None:
    model = nn.Linear(2, 2)
    points = np.zeros((3, 2), np.float32)

    class Breaks(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            return (inputs[0] * 1.0,)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            raise ArithmeticError("no gradient")

    with record() as film:
        tn.show.watch(model, points)
        with pytest.raises(ArithmeticError):
            Breaks().apply((variable(1.0),))[0].backward()
    assert reasons(film) == {
        "watch": "a step of kind watch computes no value",
        "backward of Breaks": "the step ended with ArithmeticError",
        "end of backward": "the backward pass ended with an error",
    }


@pytest.mark.filterwarnings("ignore:record. Cut")
def test_cut_films() -> None:
    for most in range(1, 16):
        with record(most=most) as film:
            x = variable(1.0, 2.0)
            (gx,) = tn.grad([F.sum(F.exp(x) * x)], [x], enable_double_backprop=True)
            F.sum(gx).backward()
        assert agree(film).steps >= most


def test_the_steps_of_another_engine() -> None:
    film = Film()
    for kind in ("forward", "sweep", "backward", "end", "update"):
        film.steps.append(film.new_step(kind, ()))
    assert str(film.replay()) == (
        "0 of 5 steps computed again\nleft out: steps 1, 2, 3, 4 and 5: another engine computed it"
    )


# --- what a film keeps ---------------------------------------------------------------------------


@pytest.mark.parametrize("arrays", [False, True])
def test_a_film_keeps_nothing_of_the_program_alive(arrays: bool) -> None:
    x = tn.Variable(np.arange(300.0), name="x")
    mask = np.ones(300)
    function = HasArray(mask)
    optimizer = nn.Adam([x], lr=0.1)
    with record(arrays=arrays) as film:
        F.sum(function.apply((x,))[0]).backward()
        x.grad_var = x.grad_var if x.grad is not None else tn.Variable(np.ones(300))
        optimizer.update()
    living = [weakref.ref(one) for one in (x, x.array, mask, function, optimizer)]
    del x, mask, function, optimizer
    gc.collect()
    assert [one() for one in living] == [None] * 5
    film.replay()


def test_recording_with_arrays_changes_no_result_and_a_replay_changes_no_state() -> None:
    def run(**options: Any) -> tuple[Any, Film]:
        tn.seed(3)
        x = tn.Variable(np.arange(300.0))
        with record(**options) as film:
            F.sum(F.dropout(x, 0.5)).backward()
        return x.grad, film

    plain, film = run()
    whole, film_of_arrays = run(arrays=True)
    np.testing.assert_array_equal(plain, whole)
    steps = len(film_of_arrays)
    state = tn.random.get_state()
    with record() as outer:
        agree(film_of_arrays)
        film.replay()
    assert len(outer) == 0
    assert len(film_of_arrays) == steps
    assert str(tn.random.get_state()) == str(state)


@pytest.mark.parametrize("tolerance", [-1.0, float("inf"), float("nan")])
def test_a_wrong_tolerance(tolerance: float) -> None:
    with pytest.raises(ValueError, match=r"Film\.replay: tolerance must be 0 or more"):
        Film().replay(tolerance=tolerance)


def test_a_wrong_option() -> None:
    with pytest.raises(TypeError, match="record: fold must be True or False"), record(fold="no"):
        pass
    with pytest.raises(TypeError, match="record: arrays must be True or False"), record(arrays=3):
        pass


def test_rounding_is_no_disagreement(monkeypatch: pytest.MonkeyPatch) -> None:
    x = variable(1.0, 3.0)
    with record() as film:
        Nudges().apply((x,))
    assert agree(film)
    monkeypatch.setattr(Nudges, "amount", 1e-13)
    found = film.replay()
    assert found
    assert len(found.rounded) == 1
    assert str(found) == "1 of 1 steps computed again: all agree, up to rounding of at most 1e-13"
    assert not film.replay(tolerance=0.0)


class Nudges(tn.FunctionNode):
    """y = x + amount."""

    amount = 0.0

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] + Nudges.amount,)


# --- the command ---------------------------------------------------------------------------------

PROGRAM = """
import numpy as np
import tinynode as tn
from tinynode import functions as F

x = tn.Variable(np.arange(300.0), name="x")
y = F.sin(x)
{}
F.sum(y).backward()
"""


@pytest.mark.parametrize(
    ("line", "status", "told"),
    [
        ("", 0, "6 of 6 steps computed again: all agree, to the last bit\n"),
        ("y.array[0] = 1.5", 1, "first disagreement: step 2, forward of Sum, operand y, computed"),
        ("raise SystemExit(3)", 3, "1 of 2 steps computed again: all agree, to the last bit\n"),
    ],
)
def test_the_command(
    line: str, status: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(line))
    assert main(["step", "--replay", str(path)]) == status
    assert capsys.readouterr().out.startswith(told)
    assert list(tmp_path.iterdir()) == [path]  # no page is written


def test_options_beside_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text("import tinynode")
    for words in (["--text"], ["--quiz"], ["--serve"], ["--output", "a.html"], ["--against", "b"]):
        assert main(["step", "--replay", str(path), *words]) == 2
        assert f"leave out {words[0]}" in capsys.readouterr().err
    assert main(["step", "--replay", str(path)]) == 1
    assert "there are no steps to show" in capsys.readouterr().err
