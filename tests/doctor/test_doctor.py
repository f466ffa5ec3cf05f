"""tn.diagnose: each planted fault is found, and nothing else is reported."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import op_drivers
import pytest
from op_cases import CASES, Case

import tinynode as tn
from tinynode import functions, nn
from tinynode.doctor import Diagnosis
from tinynode.show.graphs.text import functions_behind

F = functions
DEVICES = ["numpy", "fast", "strict:device1"]


class WrongTanh(tn.FunctionNode):
    """tanh, with a mistake in the gradient: 1 - y in place of 1 - y * y."""

    def forward(self, inputs: Any) -> Any:
        self.retain_outputs((0,))
        return (tn.namespace_of(inputs[0]).tanh(inputs[0]),)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (y,) = self.get_retained_outputs()
        return (grad_outputs[0] * (1.0 - y),)


class WrongTwice(tn.FunctionNode):
    """2 x, with the gradient 3."""

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] * 2,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        return (grad_outputs[0] * 3.0,)


class OwnSquare(tn.FunctionNode):
    """x^2; the gradient is right, and made of ``WrongTwice``."""

    def forward(self, inputs: Any) -> Any:
        self.retain_inputs((0,))
        return (inputs[0] * inputs[0],)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return (WrongTwice().apply((x,))[0] * grad_outputs[0],)


class Halves(tn.Function):
    """x / 2, old style, with the gradient of x."""

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] / 2,)

    def backward(self, inputs: Any, grad_outputs: Any) -> Any:
        return (grad_outputs[0],)


def wrong_tanh(x: tn.Variable) -> tn.Variable:
    return WrongTanh().apply((x,))[0]


class Deep(nn.Module):
    """Linear layers with an activation between."""

    def __init__(self, activations: list[Callable[[Any], Any]], width: int = 8) -> None:
        self.activations = activations
        self.layers = [nn.Linear(width, width) for _ in activations]
        self.head = nn.Linear(width, 3)

    def forward(self, x: Any) -> tn.Variable:
        for layer, activation in zip(self.layers, self.activations, strict=True):
            x = activation(layer(x))
        return self.head(x)


def batch(device: str = "numpy", rows: int = 16, width: int = 8) -> tuple[tn.Variable, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, width)).astype(np.float32)
    return tn.asarray(x, device=device), tn.asarray(np.arange(rows) % 3, device=device)


def model_and_loss(
    activations: list[Callable[[Any], Any]], device: str = "numpy"
) -> tuple[Deep, tn.Variable]:
    tn.seed(0)
    model = Deep(activations).to_device(device)
    x, labels = batch(device)
    return model, F.softmax_cross_entropy(model(x), labels)


def kinds(found: Diagnosis) -> list[str]:
    return [finding.kind for finding in found.findings]


# --- healthy models ------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("activation", [F.relu, F.tanh, F.gelu])
def test_a_healthy_model_has_no_findings(activation: Any, device: str) -> None:
    model, loss = model_and_loss([activation] * 3, device)
    found = tn.diagnose(loss, model=model, optimizer=nn.Adam(model, lr=1e-3))
    assert found.findings == [] and found.is_healthy and not found.unchecked
    assert found.checked == 8
    assert [layer.name for layer in found.layers] == ["layers.0", "layers.1", "layers.2", "head"]
    assert "no findings" in str(found)


def test_random_and_normalised_layers_are_healthy() -> None:
    tn.seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm(4), F.relu, nn.MaxPool2d(2), nn.Dropout(0.5)
    )
    x = tn.asarray(np.random.default_rng(0).normal(size=(8, 1, 6, 6)), dtype="float32")
    assert tn.diagnose(F.sum(model(x) ** 2), model=model).findings == []


def test_a_loss_behind_a_gradient_is_healthy() -> None:
    model, _ = model_and_loss([F.tanh] * 2)
    x, _ = batch()
    (gx,) = tn.grad([F.sum(model(x) ** 2)], [x], enable_double_backprop=True)
    found = tn.diagnose(F.mean(gx * gx))
    assert found.findings == [] and found.checked == 15


def rows_of_the_table(cases: list[Case]) -> None:
    """Diagnose each row, and its gradients where they can be differentiated."""
    for case in cases:
        with op_drivers.naming(case.id):
            hosts = op_drivers.draw_inputs(case, case.dtypes[0])
            xs = op_drivers.make_inputs(case, hosts, tn.get_device("numpy"))
            ys = [y for y in op_drivers.call(case, xs) if y.requires_grad]
            inputs = op_drivers.differentiable(xs)
            if case.order >= 2:
                gys = op_drivers.draw_like(ys, 1)
                gxs = tn.grad(ys, inputs, gys, enable_double_backprop=True)
                ys += [gx for gx in gxs if gx is not None and gx.requires_grad]
            for y in ys:
                if y.creator_node is not None:
                    found = tn.diagnose(y)
                    wrong = {"wrong backward", "backward fails", "gradient not finite"}
                    assert not wrong & set(kinds(found)), found


def test_operations_are_healthy() -> None:
    rows_of_the_table([case for case in CASES if case.order and hash_of(case) % 100 == 7])


def test_elements_that_stand_for_infinity_are_not_moved() -> None:
    x = tn.asarray([[-1e30, -1e30, 0.5], [-1e30, -1e30, -1e30]], dtype="float64")
    assert tn.diagnose(tn.functions.sum(tn.functions.logsumexp(x, axis=1))).is_healthy
    wrong = tn.diagnose(tn.functions.sum(wrong_tanh(x)))
    assert "wrong backward" in kinds(wrong), "the ordinary element is still checked"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_all_operations_are_healthy(part: int) -> None:
    rows_of_the_table([case for case in CASES if case.order and hash_of(case) % 4 == part])


def hash_of(case: Case) -> int:
    """A number that is the same in each run."""
    return sum(case.id.encode())


@pytest.mark.parametrize(
    "function",
    [F.relu, F.abs, F.max, F.sort, F.hard_tanh, lambda x: F.max_pool2d(x[None, None], 2), F.sqrt],
)
def test_a_kink_is_no_finding(function: Any) -> None:
    x = tn.asarray(np.zeros((4, 4)))
    found = tn.diagnose(F.sum(function(x)))
    assert "wrong backward" not in kinds(found)
    assert set(found.unchecked) <= {"no derivative at these values"}


def test_a_symmetric_matrix_moves_symmetrically() -> None:
    x = tn.asarray(np.eye(3) + 1.0)
    assert tn.diagnose(F.sum(F.linalg.cholesky(x))).findings == []
    y = F.sum(F.linalg.eigh(x * 2.0 + tn.asarray(np.diag([0.0, 1.0, 3.0])))[0])
    found = tn.diagnose(y)  # the input of Eigh was freed
    assert found.findings == [] and found.unchecked == {"arrays were freed": ["Eigh"]}
    y = F.sum(wrong_tanh(x + tn.asarray(np.ones(3))))
    assert kinds(tn.diagnose(y)) == ["wrong backward"]  # the input of WrongTanh was freed


# --- wrong backwards -----------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_a_wrong_backward_in_a_deep_model_is_named(device: str) -> None:
    model, loss = model_and_loss([F.tanh, F.tanh, wrong_tanh, F.tanh, F.tanh], device)
    found = tn.diagnose(loss, model=model)
    assert kinds(found) == ["wrong backward"]
    (finding,) = found.findings
    assert finding.where == "WrongTanh (output of Linear)"
    assert "test_doctor.py:" in finding.remedy
    assert finding.numbers["backward 0"] != pytest.approx(finding.numbers["difference 0"])
    assert found.checked == 12


def test_the_line_of_the_call_is_named_where_known() -> None:
    model = Deep([wrong_tanh])
    x, labels = batch()

    def loss() -> tn.Variable:
        return F.softmax_cross_entropy(model(x), labels)

    (finding,) = tn.diagnose(loss).findings
    line = wrong_tanh.__code__.co_firstlineno + 1
    assert finding.line.endswith(f"test_doctor.py:{line}")
    assert tn.diagnose(loss()).findings[0].line == ""
    with tn.using_config(debug=True):
        recorded = loss()
    assert tn.diagnose(recorded).findings[0].line == finding.line


def test_a_wrong_backward_in_a_second_order_graph_is_named() -> None:
    x = tn.asarray([0.1, 0.2, 0.3])
    y = F.sum(F.exp(OwnSquare().apply((x,))[0]))
    assert tn.diagnose(y).is_healthy
    (gx,) = tn.grad([y], [x], enable_double_backprop=True)
    found = tn.diagnose(F.sum(gx * gx))
    assert kinds(found) == ["wrong backward"]
    assert found.findings[0].where.startswith("WrongTwice")


def test_an_old_style_function_is_checked() -> None:
    x = tn.asarray([1.0, 2.0])
    y = F.sum(Halves()(x))
    found = tn.diagnose(y)
    assert kinds(found) == ["wrong backward"] and "Halves" in found.findings[0].where
    y.backward()
    assert x.grad is not None


def test_a_backward_that_raises_is_named() -> None:
    class Raises(WrongTwice):
        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            raise ValueError("no such thing")

    found = tn.diagnose(F.sum(Raises().apply((tn.asarray([1.0]),))[0]))
    assert kinds(found) == ["wrong backward"]
    assert "no such thing" in found.findings[0].message


def test_a_wrong_backward_is_found_beside_a_kink() -> None:
    class WrongReLU(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            self.retain_inputs((0,))
            return (np.maximum(inputs[0], 0.0),)

        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            (x,) = self.get_retained_inputs()
            return (grad_outputs[0] * F.astype(x > 0.0, x.dtype) * 2.0,)

    for values in (np.zeros(6), np.array([0.0, 1.0, -1.0])):
        y = WrongReLU().apply((tn.asarray(values),))[0]
        assert kinds(tn.diagnose(F.sum(y))) == ["wrong backward"]


def test_a_class_is_named_once_and_can_be_trusted() -> None:
    _, loss = model_and_loss([wrong_tanh] * 3)
    found = tn.diagnose(loss)
    assert kinds(found) == ["wrong backward"]
    assert "2 more of the class are wrong" in found.findings[0].message
    trusting = tn.diagnose(loss, trusted=[WrongTanh])
    assert trusting.findings == [] and trusting.unchecked == {"trusted": ["WrongTanh"] * 3}
    assert len(tn.diagnose(loss, limit=2).unchecked["above the limit of 2"]) == 6


def test_functions_that_cannot_run_again_are_counted() -> None:
    class Noisy(WrongTwice):
        def forward(self, inputs: Any) -> Any:
            return (inputs[0] + np.random.default_rng().normal(size=3).astype(inputs[0].dtype),)

    x = tn.asarray([1.0, 2.0, 3.0])
    found = tn.diagnose(F.sum(Noisy().apply((x,))[0]))
    assert found.findings == []
    assert found.unchecked == {"forward gives other values each time": ["Noisy"]}
    found = tn.diagnose(F.sum(tn.checkpoint(F.exp, x)))
    assert found.unchecked == {"a checkpoint runs other functions": ["Checkpoint"]}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_compiled_function_is_one_function(dtype: str) -> None:
    x = tn.asarray([0.1, 0.2], dtype=dtype)
    compiled = tn.compile(F.tanh)
    for _ in range(2):
        found = tn.diagnose(F.sum(compiled(x)))
        assert found.findings == []
        assert found.checked == (2 if dtype == "float64" else 1)


def test_freed_arrays_are_replaced() -> None:
    x = tn.asarray([0.5, 2.0])
    y = F.sum(F.sqrt(F.exp(x + tn.asarray(1.0)) + 1.0))
    found = tn.diagnose(y)
    assert found.findings == [] and found.checked == 5


# --- NaN and inf ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_origin_of_nan_is_named() -> None:
    x = tn.Variable(np.array([4.0, -1.0]), name="x")
    found = tn.diagnose(F.sum(F.exp(F.sqrt(x * 2.0))))
    assert kinds(found) == ["not finite"]
    assert found.findings[0].where == "Sqrt (output of Multiply)"
    assert "1 NaN and 0 inf of 2 elements" in found.findings[0].message
    x = tn.Variable(np.array([1.0, np.nan]), name="x")
    assert tn.diagnose(F.sum(x * 2.0)).findings[0].where == "x"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_origin_of_nan_in_backward_is_named() -> None:
    x = tn.Variable(np.array([0.0, 1.0]), name="x")
    found = tn.diagnose(F.sum(F.sqrt(x) * 2.0))
    assert kinds(found) == ["gradient not finite"]
    assert found.findings[0].where == "Sqrt (x)"


def test_a_mask_of_inf_is_no_finding() -> None:
    x, _ = batch()
    masked = F.where(tn.asarray(np.tri(8, dtype=bool)), F.reshape(x, (2, 8, 8)), -np.inf)
    assert tn.diagnose(F.sum(F.softmax(masked) ** 2)).findings == []


# --- activations ---------------------------------------------------------------------------------


def test_dead_relus_are_counted() -> None:
    model, _ = model_and_loss([F.relu, F.tanh])
    bias = model.layers[0].bias
    bias.array = np.where(np.arange(8) < 6, -100.0, 0.0).astype(np.float32)
    x, labels = batch()
    found = tn.diagnose(F.softmax_cross_entropy(model(x), labels), model=model)
    assert kinds(found) == ["dead ReLU"]
    assert found.findings[0].numbers == {"share": 0.75, "units": 8, "rows": 16}
    few = tn.diagnose(F.softmax_cross_entropy(model(x[:4]), labels[:4]), model=model)
    assert few.findings == []  # zeros by chance


@pytest.mark.parametrize(("function", "kind"), [(F.tanh, "tanh"), (F.sigmoid, "sigmoid")])
def test_saturated_gates_are_found(function: Any, kind: str) -> None:
    model, _ = model_and_loss([function])
    model.layers[0].weight.array = model.layers[0].weight.array * 100
    x, labels = batch()
    found = tn.diagnose(F.softmax_cross_entropy(model(x), labels), model=model)
    assert kinds(found) == [f"saturated {kind}"]


# --- gradients by layer --------------------------------------------------------------------------


def scaled(model: Deep, factor: float) -> Diagnosis:
    for layer in model.layers:
        layer.weight.array = layer.weight.array * factor
    x, labels = batch()
    return tn.diagnose(F.softmax_cross_entropy(model(x), labels), model=model)


def test_vanishing_and_exploding_gradients_are_found_by_layer() -> None:
    model, _ = model_and_loss([F.identity] * 5)
    found = scaled(model, 0.02)
    assert set(kinds(found)) == {"vanishing gradient"}
    assert found.findings[0].where == "layers.0"
    assert found.findings[0].about[0]() is model.layers[0].weight.node
    model, _ = model_and_loss([F.identity] * 5)
    found = scaled(model, 30.0)
    assert set(kinds(found)) == {"exploding gradient"}


def test_a_gradient_of_zero_is_found() -> None:
    model, _ = model_and_loss([F.tanh])
    model.head.weight.array = model.head.weight.array * 0
    x, labels = batch()
    found = tn.diagnose(F.softmax_cross_entropy(model(x), labels), model=model)
    assert kinds(found) == ["zero gradient"] and found.findings[0].where == "layers.0"


def test_the_size_of_updates_is_judged() -> None:
    model, loss = model_and_loss([F.tanh])
    for lr, expected in ((1e-3, []), (10.0, ["learning rate too large"])):
        assert kinds(tn.diagnose(loss, optimizer=nn.Adam(model, lr=lr))) == expected
    found = tn.diagnose(loss, model=model, optimizer=nn.SGD(model, lr=1e-9))
    assert kinds(found) == ["learning rate too small"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_updates_that_are_not_finite_are_found() -> None:
    w = nn.Parameter(np.full(4, 0.5, np.float16), name="w")
    loss = F.sum(w * w) * 1e-5
    found = tn.diagnose(loss, optimizer=nn.SGD([w], lr=1e10))
    assert kinds(found) == ["update not finite"]  # 1e5 is infinite in float16


# --- parameters ----------------------------------------------------------------------------------


def test_parameters_without_a_gradient_have_a_reason() -> None:
    model, _ = model_and_loss([F.tanh, F.tanh])
    x, labels = batch()
    hidden = model.activations[0](model.layers[0](x)).detach()
    loss = F.softmax_cross_entropy(model.head(F.tanh(model.layers[1](hidden))), labels)
    found = tn.diagnose(loss, model=model)
    assert kinds(found) == ["no gradient"]
    assert found.findings[0].where == "layers.0.weight, layers.0.bias"
    assert "the loss does not depend on it" in found.findings[0].message
    p = nn.Parameter(np.ones(3, np.float32), name="p")
    found = tn.diagnose(F.sum(F.floor(p) + x[0, :3]))
    assert kinds(found) == ["no gradient"] and "backward of Floor" in found.findings[0].message


def test_parameters_that_never_change_are_found() -> None:
    model, _ = model_and_loss([F.tanh])
    x, labels = batch()
    optimizer = nn.SGD(model.head, lr=0.01)
    loss = F.softmax_cross_entropy(model(x), labels)
    first = tn.diagnose(loss, model=model, optimizer=optimizer)
    assert kinds(first) == ["not in the optimizer"]
    assert first.findings[0].where == "layers.0.weight, layers.0.bias"
    loss.backward()
    optimizer.update()
    loss = F.softmax_cross_entropy(model(x), labels)
    second = tn.diagnose(loss, model=model, since=first)
    assert kinds(second) == ["never changes"]
    assert second.findings[0].where == "layers.0.weight, layers.0.bias"


def test_parameters_of_another_model_need_no_optimizer() -> None:
    judge, _ = model_and_loss([F.tanh])
    generator = nn.Linear(8, 8)
    loss = F.sum(judge(generator(batch()[0])) ** 2)
    found = tn.diagnose(loss, model=generator, optimizer=nn.Adam(generator, lr=1e-3))
    assert found.findings == []


def test_float64_creep_is_found() -> None:
    x, _ = batch()
    weights = tn.Variable(np.ones(8), requires_grad=False, name="weights")
    found = tn.diagnose(F.sum(F.tanh(x) * weights))
    assert kinds(found) == ["float64 creep"]
    assert found.findings[0].where == "Multiply (output of Tanh, weights)"
    assert tn.diagnose(F.sum(F.astype(x, "float64") * weights)).findings == []


# --- nothing changes -----------------------------------------------------------------------------


def state_of(loss: tn.Variable, model: nn.Module) -> list[Any]:
    """Everything that a diagnosis could change."""
    state: list[Any] = [dict(vars(tn.config)), model.state_dict()]
    for function in functions_behind([loss.node]):
        state.append({k: v for k, v in vars(function).items() if not k.startswith("__")})
        for node in function.inputs or ():
            variable = node.get_variable_or_none()
            state += [node.data is None, node.creator_node, node.rank]
            state.append(None if variable is None else (variable.raw, variable.grad_var))
    return state


def assert_same(before: list[Any], after: list[Any]) -> None:
    assert str(before) == str(after)


class Stop(KeyboardInterrupt):
    pass


@pytest.mark.parametrize("stops", [False, True])
def test_a_diagnosis_changes_nothing(stops: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, loss = model_and_loss([F.relu, wrong_tanh])
    optimizer = nn.Adam(model)
    loss.backward()
    before = state_of(loss, model)
    moments = str(optimizer.state_dict())
    if stops:

        def stop(*arguments: Any) -> Any:
            raise Stop

        monkeypatch.setattr("tinynode.doctor.layers.norm", stop)
        with pytest.raises(Stop):
            tn.diagnose(loss, model=model, optimizer=optimizer)
    else:
        tn.diagnose(loss, model=model, optimizer=optimizer)
    assert_same(before, state_of(loss, model))
    assert str(optimizer.state_dict()) == moments


def test_an_interrupt_in_a_backward_changes_nothing() -> None:
    class Stops(WrongTwice):
        def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
            raise Stop

    x = tn.asarray([1.0, 2.0])
    y = F.sum(Stops().apply((F.exp(x),))[0])
    x.grad = x.array
    before = state_of(y, nn.Sequential())
    with op_drivers.RecordingHook() as hook:
        with pytest.raises(Stop):
            tn.diagnose(y)
        assert tn.core.hooks.thread_state.hooks == {hook.name: hook}
    assert_same(before, state_of(y, nn.Sequential()))


def test_gradients_that_a_checkpoint_writes_are_put_back() -> None:
    layer = nn.Linear(3, 3)
    x = tn.asarray(np.ones((2, 3), np.float32))
    layer.weight.grad = np.ones((3, 3), np.float32)
    loss = F.sum(tn.checkpoint(layer, x) ** 2)
    found = tn.diagnose(loss, model=nn.Sequential(layer))
    assert found.findings == [] and found.layers[0].gradient > 0
    np.testing.assert_array_equal(layer.weight.grad, np.ones((3, 3)))
    assert layer.bias.grad is None


def test_hooks_of_the_user_hear_nothing() -> None:
    _, loss = model_and_loss([F.relu])
    with op_drivers.RecordingHook() as hook:
        tn.diagnose(loss)
    assert not any(hook.seen.values())


def test_a_diagnosis_keeps_no_graph_alive() -> None:
    model, loss = model_and_loss([wrong_tanh])
    found = tn.diagnose(loss, model=model)
    assert found.marks()
    del loss
    gc.collect()
    assert found.marks() == {}


# --- arguments, texts and pictures ---------------------------------------------------------------


def test_what_has_no_graph_is_refused() -> None:
    with pytest.raises(tn.errors.GraphError, match="no graph"):
        tn.diagnose(tn.asarray(1.0))
    with pytest.raises(tn.errors.OperandError, match="loss must be a Variable"):
        tn.diagnose(3.0)  # type: ignore[arg-type]
    with pytest.raises(tn.errors.OperandError, match="model must be a Module"):
        tn.diagnose(tn.asarray(1.0), model=3)  # type: ignore[arg-type]


def test_the_text_has_findings_facts_and_norms() -> None:
    tn.seed(0)
    model = Deep([wrong_tanh])
    x, labels = batch()
    found = tn.diagnose(
        lambda: F.softmax_cross_entropy(model(x), labels),
        model=model,
        optimizer=nn.SGD(model, lr=0.01),
        trusted=[functions.Linear],
    )
    lines = str(found).splitlines()
    assert lines[0] == "loss, the output of SoftmaxCrossEntropy: 1 finding"
    assert lines[1].startswith(
        "1. error: wrong backward. WrongTanh (output of Linear): for input 0"
    )
    assert "2 backwards checked by differences" in lines
    assert "2 not checked, trusted: Linear" in lines
    assert lines[-4].split() == ["layer", "gradient", "weight", "update", "/", "weight"]
    assert [line.split()[0] for line in lines[-2:]] == ["layers.0", "head"]
    assert "Called at" in str(found.findings[0]) and repr(found) == str(found)
    assert "norms by layer" in found._repr_html_()


def test_the_table_of_a_notebook_is_escaped() -> None:
    x = tn.Variable(np.array([1.0, 2.0]), name="<script>")
    found = tn.diagnose(F.sum(wrong_tanh(x)))
    page = found._repr_html_()
    assert "<table" in page and "wrong backward" in page
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_a_picture_has_the_marks() -> None:
    _, loss = model_and_loss([F.tanh, wrong_tanh])
    found = tn.diagnose(loss)
    picture = tn.show.graph(loss, marks=found)
    assert picture.to_svg().count('class="function finding"') == 1
    assert "! wrong backward" in picture.to_text()
    assert "thick red frame: a finding" in picture.to_svg()
    assert "class" in picture.to_mermaid() and "finding" in picture.to_mermaid()
    assert "finding" not in tn.show.graph(loss).to_svg().partition("</style>")[2]


def test_a_film_has_the_marks() -> None:
    model = Deep([wrong_tanh])
    x, labels = batch()
    with tn.show.record() as film:
        loss = F.softmax_cross_entropy(model(x), labels)
        for _ in range(2):
            tn.diagnose(loss)
        loss.backward()
    (picture,) = film.data()["pictures"]
    marked = {
        node["label"]: node["facts"] for node in picture["nodes"] if node["kind"] != "variable"
    }
    assert marked["WrongTanh"] == ["! wrong backward"] and marked["Linear"] == []


def test_check_backward_names_the_culprit() -> None:
    tn.seed(0)
    model = Deep([F.tanh, F.tanh, wrong_tanh, F.tanh, F.tanh])
    x, labels = batch()

    def loss(x: tn.Variable) -> tn.Variable:
        return F.softmax_cross_entropy(model(x), labels)

    with pytest.raises(AssertionError) as failed:
        tn.gradient_check.check_backward(
            loss, x.array, None, params=model.layers[0].parameters(), dtype="float64"
        )
    lines = str(failed.value).splitlines()
    (culprit,) = [line for line in lines if line.startswith("Culprit:")]
    assert culprit.startswith("Culprit: WrongTanh (output of Linear):")
    assert "test_doctor.py:" in culprit
    assert all(parameter.grad is None for parameter in model.parameters())


def test_check_double_backward_names_the_culprit() -> None:
    def f(x: tn.Variable) -> tn.Variable:
        return F.sum(F.exp(OwnSquare().apply((x,))[0]))

    with pytest.raises(AssertionError, match="Culprit: WrongTwice"):
        tn.gradient_check.check_double_backward(
            f, np.array([0.1, 0.2]), np.array(1.0), np.ones(2), eps=1e-5
        )


def test_a_gradient_that_is_lost_between_functions_has_no_culprit() -> None:
    def cut(x: tn.Variable) -> tn.Variable:
        return F.sum(x * x.detach())

    with pytest.raises(AssertionError, match="No culprit: of 2 functions"):
        tn.gradient_check.check_backward(cut, np.array([1.0, 2.0]), None, eps=1e-5)
