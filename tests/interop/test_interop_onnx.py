"""Functions as ONNX models: in onnxruntime they give the values and gradients of eager code.

The jobs' models are compared at float32, to a relative 1e-4 of the largest number. The rows of the
operation table are compared with eager code: results and gradients, to 1e-4.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import op_drivers
import pytest
from op_cases import CASES, Case

import tinynode as tn
from tinynode.commands import digits, digits_cnn, gradient_penalty, pinn, tiny_gpt
from tinynode.commands.job import cross_entropy
from tinynode.errors import OperandError, TinynodeError, TraceError

onnx = pytest.importorskip("onnx", reason="ONNX is not installed: pip install '.[onnx]'")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: '.[onnx]'")

F = tn.functions
RNG = np.random.default_rng(0)


def run(model: Any, *hosts: Any) -> dict[str, Any]:
    """The outputs of a model in onnxruntime, by name."""
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # errors are raised
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feeds = {one.name: host for one, host in zip(session.get_inputs(), hosts, strict=True)}
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


def assert_close(found: Any, expected: Any) -> None:
    """Equal to a relative 1e-4 of the largest number."""
    assert found.shape == expected.shape and found.dtype == expected.dtype
    largest = np.max(np.abs(expected), initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * min(largest, 1.0))


def images(n: int) -> Any:
    return RNG.random((n, 64), dtype=np.float32)


def labels(n: int) -> Any:
    return RNG.integers(0, 10, n)


def characters(n: int) -> Any:
    return RNG.integers(0, 50, (n, 12))


def points(n: int) -> Any:
    return RNG.random((n, 2), dtype=np.float32)


# --- the jobs ------------------------------------------------------------------------------------

JOBS: dict[str, tuple[Any, Any, tuple[Callable[[int], Any], ...]]] = {
    "digits": (digits.make_model, cross_entropy, (images, labels)),
    "digits-cnn": (digits_cnn.make_model, cross_entropy, (images, labels)),
    "gradient-penalty": (
        gradient_penalty.make_model,
        gradient_penalty.penalized_cross_entropy,
        (images, labels),
    ),
    "tiny-gpt": (tiny_gpt.TinyGPT, tiny_gpt.next_character_loss, (characters, characters)),
    "pinn": (pinn.Rod, pinn.heat_loss, (points,)),
}
"""The model of each job, its loss, and its data: (n) -> an array."""


def check_job(name: str, batch_axis: int | None, n: int) -> None:
    """The model for 3 examples, and the loss with its gradients, on n examples."""
    make_model, loss, data = JOBS[name]
    model = make_model().eval()
    written = tn.interop.onnx_model(model, data[0](3), batch_axis=batch_axis)
    given = data[0](n)
    assert_close(run(written, given)["output"], tn.to_host(model(tn.asarray(given))))

    def total(*batch: Any) -> Any:
        return loss(model, *batch)

    examples = [make(3) for make in data]
    written = tn.interop.onnx_model(total, *examples, gradient=True, batch_axis=batch_axis)
    hosts = [make(n) for make in data]
    found = list(run(written, *hosts).values())
    xs = [tn.asarray(host) for host in hosts]
    y = total(*xs)
    floating = [x for x in xs if x.requires_grad]
    for output, expected in zip(found, [y, *tn.grad([y], floating)], strict=True):
        assert_close(output, tn.to_host(expected))


def test_a_perceptron_takes_any_batch() -> None:
    check_job("digits", 0, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_jobs(name: str) -> None:
    check_job(name, None, 3)
    check_job(name, 0, 7)


# --- the table -----------------------------------------------------------------------------------

ROWS = {case.id: case for case in CASES if case.order > 0 and "float32" in case.dtypes}
"""The differentiable rows at float32."""

REASONS = {
    r"(Cofactors|CofactorsGrad|cholesky|det|eigh|eigvalsh|inv|pinv|solve)-(?!.*no-(rows|stack|col))"
    r"|(cholesky_solve|solve_triangular)-(?!.*no-(rows|stack|col))"
    r"|(qr|slogdet|svd|svdvals)-|matrix_norm-(2|-2|nuc)|matrix_power--": (
        "ONNX has no inverse, no solver and no decomposition of matrices"
    ),
    r"get_item-(?!raw).*mask|set_item-.*mask(?!-number)": (
        "the number of elements depends on the values of a mask"
    ),
    r"dropout-(?!ratio-0|outside|mask-given)|gumbel_softmax-": "a model draws no random numbers",
    r"to_device-zero-size": "a copy to another device reads the array",
}
"""The rows that are refused, as patterns, with the reason."""
WITHOUT_OPERATOR = (
    r"(bitwise_(left|right)_shift|keyed_bits)-|Positions-mask|get_item-mask|unstack-into-nothing"
)
"""The rows without a gradient that are refused: ONNX shifts unsigned integers alone."""
REFUSED = [name for name in ROWS if any(re.match(pattern, name) for pattern in REASONS)]
PASSING = [name for name in ROWS if name not in REFUSED]


def check_row(case: Case, dtype: str = "float32") -> None:
    """Results and gradients of a row, in one model."""
    hosts = op_drivers.draw_inputs(case, dtype)
    xs = op_drivers.make_inputs(case, hosts, tn.get_device("numpy"))
    places = [i for i, x in enumerate(xs) if isinstance(x, tn.Variable)]
    gys = op_drivers.draw_like([y for y in op_drivers.call(case, xs) if y.requires_grad], 1)

    def both(*given: Any) -> Any:
        inputs = list(xs)
        for i, x in zip(places, given, strict=False):
            inputs[i] = x
        ys = op_drivers.call(case, inputs)
        floating = [y for y in ys if y.requires_grad]
        wanted = op_drivers.differentiable(inputs)
        gxs = tn.grad(floating, wanted, list(given[len(places) :]))
        return [y * 1 for y in (*ys, *gxs) if y is not None]

    examples = [*[xs[i] for i in places], *gys]
    expected = [tn.to_host(y) for y in both(*examples)]
    model = tn.interop.onnx_model(both, *examples)
    found = run(model, *[tn.to_host(x) for x in examples])
    for output, y in zip(found.values(), expected, strict=True):
        assert output.shape == y.shape and output.dtype == y.dtype
        np.testing.assert_allclose(output, y, rtol=1e-4, atol=1e-5)


def check_rows(names: list[str]) -> None:
    for name in names:
        with op_drivers.naming(name):
            check_row(ROWS[name])


def test_nine_rows_of_ten_can_be_written() -> None:
    assert len(PASSING) >= 0.92 * len(ROWS)


def test_some_rows() -> None:
    check_rows(PASSING[::100])


@pytest.mark.slow
def test_every_sixth_row() -> None:
    check_rows(PASSING[1::6])


@pytest.mark.slow
@pytest.mark.long
def test_all_rows() -> None:
    check_rows(PASSING)


@pytest.mark.slow
def test_rows_without_a_gradient() -> None:
    """At the last dtype, which is int32 or float32 for most rows."""
    for case in CASES[::3]:
        if case.order == 0 and not re.match(WITHOUT_OPERATOR, case.id):
            with op_drivers.naming(case.id):
                check_row(case, case.dtypes[-1])


@pytest.mark.slow
def test_a_refused_row_is_an_error_that_names_the_function() -> None:
    for name in REFUSED:
        with pytest.raises(TinynodeError, match="both") as caught, op_drivers.naming(name):
            check_row(ROWS[name])
        assert isinstance(caught.value, NotImplementedError | TraceError), name


# --- names, constants, shapes --------------------------------------------------------------------


def names_of(ports: Any) -> list[str]:
    return [one.name for one in ports]


def lengths_of(port: Any) -> list[Any]:
    """The lengths of an input or output: numbers, or names."""
    return [one.dim_param or one.dim_value for one in port.type.tensor_type.shape.dim]


def two(first: tn.Variable, second: tn.Variable) -> Any:
    return first + second, {"product": first * second, "first": first}


def test_inputs_and_outputs_have_names() -> None:
    x, y = np.ones(3, np.float32), np.full(3, 2, np.float32)
    model = tn.interop.onnx_model(two, x, y)
    assert names_of(model.graph.input) == ["first", "second"]
    found = run(model, x, y)
    assert list(found) == ["output_0", "output_1_product", "output_1_first"]
    assert [values[0] for values in found.values()] == [3, 2, 1]
    model = tn.interop.onnx_model(lambda x: {"twice": x + x, "x": x}, x)
    assert names_of(model.graph.output) == ["twice", "output_x"]
    model = tn.interop.onnx_model(lambda output: output * tn.Variable(x, name="output_"), x)
    assert names_of(model.graph.output) == ["output_"]
    assert model.graph.name == "<lambda>" and model.producer_name == "tinynode"


def test_parameters_are_constants_by_their_names() -> None:
    layers = tn.nn.Sequential(tn.nn.Linear(4, 3), F.tanh, tn.nn.Linear(3, 2))
    model = tn.interop.onnx_model(layers, np.zeros((1, 4), np.float32))
    assert [node.op_type for node in model.graph.node] == ["Gemm", "Tanh", "Gemm"]
    assert model.graph.node[0].name == "linear/Gemm1"
    constants = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    assert constants.keys() == layers.state_dict().keys()
    for name, values in layers.state_dict().items():
        np.testing.assert_array_equal(constants[name], tn.to_host(values))


def test_a_convolution_is_an_operator() -> None:
    written = tn.interop.onnx_model(digits_cnn.make_model(), images(2), batch_axis=0)
    kinds = [node.op_type for node in written.graph.node]
    assert kinds.count("Conv") == 2 and kinds.count("MaxPool") == 1 and len(kinds) <= 19
    assert lengths_of(written.graph.output[0]) == ["batch", 10]


class Cube(tn.FunctionNode):
    """y = x^3, as a user writes a function.   x: (s) -> y: (s).   dL/dx = 3 x^2 dL/dy"""

    def forward(self, inputs: Any) -> Any:
        self.retain_inputs((0,))
        return (inputs[0] ** 3,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        (x,) = self.get_retained_inputs()
        return (grad_outputs[0] * 3.0 * x * x,)


def test_a_function_of_the_user_is_written_with_its_gradient() -> None:
    def total(x: Any) -> Any:
        return F.sum(Cube().apply((x,))[0])

    x = np.asarray([1.0, 2.0], np.float32)
    found = run(tn.interop.onnx_model(total, x, gradient=True), x)
    assert found["output"] == 9.0 and found["gradient_x"].tolist() == [3.0, 12.0]


def test_an_input_without_influence_has_the_gradient_0() -> None:
    x = np.ones(2, np.float32)
    model = tn.interop.onnx_model(lambda x, y: F.sum(x), x, x, gradient=True)
    assert run(model, x, x)["gradient_y"].tolist() == [0.0, 0.0]
    fixed = tn.Variable(x, requires_grad=False)
    model = tn.interop.onnx_model(lambda x, y: F.sum(x * y), x, fixed, gradient=True)
    assert names_of(model.graph.output) == ["output", "gradient_x"]


def test_a_gradient_of_constants_alone_is_a_constant() -> None:
    x = np.ones(4, np.float32)
    model = tn.interop.onnx_model(lambda x: F.sum(x[[0, 1, 1, -1]]), x, gradient=True)
    assert run(model, x)["gradient_x"].tolist() == [1.0, 2.0, 0.0, 1.0]


def test_float64_stays_float64() -> None:
    x = RNG.random((2, 3))
    found = run(tn.interop.onnx_model(lambda x: F.softmax(x @ x.T), x), x)["output"]
    np.testing.assert_allclose(found, tn.to_host(F.softmax(tn.asarray(x @ x.T))), rtol=1e-12)


# --- batches -------------------------------------------------------------------------------------


def test_examples_without_a_batch_stay_as_they_are() -> None:
    def scores(x: Any, w: Any) -> Any:
        return F.mean((x @ w) ** 2, axis=0) + F.sum(x * tn.asarray(np.arange(2.0)))

    x, w = RNG.random((3, 2), np.float32), RNG.random((2, 4), np.float32)
    model = tn.interop.onnx_model(scores, x, w, batch_axis=(0, None))
    assert [lengths_of(one) for one in model.graph.input] == [["batch", 2], [2, 4]]
    for n in (1, 2, 100):
        x = RNG.random((n, 2), np.float32)
        expected = tn.to_host(scores(tn.asarray(x), tn.asarray(w)))
        assert_close(run(model, x, w)["output"], expected)


def test_the_batch_may_be_another_axis() -> None:
    x = RNG.random((4, 3), np.float32)
    model = tn.interop.onnx_model(lambda x: F.concat([x.T, x.T]), x, batch_axis=-1)
    assert_close(run(model, x[:, :2])["output"], np.concatenate([x.T[:2]] * 2))


@pytest.mark.parametrize("batch_axis", [2, (0, 0), (None,), ()])
def test_a_wrong_batch_axis_is_named(batch_axis: Any) -> None:
    with pytest.raises(OperandError, match=r"onnx_model: batch_axis is .*None"):
        tn.interop.onnx_model(F.tanh, np.ones((2, 3), np.float32), batch_axis=batch_axis)


def test_what_depends_on_the_batch_in_another_way_is_named() -> None:
    def odd(x: Any) -> Any:
        return x * float(x.shape[0] ** 2)

    def two_ways(x: Any) -> Any:
        return F.exp(x) if x.shape[0] == 41 else x + x

    for f in (odd, two_ways):
        with pytest.raises(NotImplementedError, match=r"depends on the length .* batch_axis out"):
            tn.interop.onnx_model(f, np.ones((2, 3), np.float32), batch_axis=0)


# --- errors, files -------------------------------------------------------------------------------


def test_what_cannot_be_written_is_named_with_a_cure() -> None:
    x = np.ones((4, 4), np.float32)
    dropout = tn.nn.Sequential(tn.nn.Dropout(0.5))
    with pytest.raises(NotImplementedError, match=r"Sequential .* DropoutMask: .* eval\(\)"):
        tn.interop.onnx_model(dropout, x)
    tn.interop.onnx_model(dropout.eval(), x)
    with pytest.raises(NotImplementedError, match=r"BatchNorm writes .* eval\(\)"):
        tn.interop.onnx_model(tn.nn.BatchNorm(4), x)

    def inverse(x: Any) -> Any:
        return F.linalg.inv(x)

    with pytest.raises(NotImplementedError, match=r"inverse .* Inv: ONNX has no operator for inv"):
        tn.interop.onnx_model(inverse, np.eye(2, dtype=np.float32))
    with pytest.raises(TraceError, match=r"float"):
        tn.interop.onnx_model(lambda x: x * float(F.sum(x)), x)


def test_wrong_arguments_are_named() -> None:
    x = np.ones(2, np.float32)
    with pytest.raises(
        OperandError, match=r"onnx_model: f is .* expected a module, or a function"
    ):
        tn.interop.onnx_model(x, F.tanh)
    with pytest.raises(OperandError, match=r"gradient=True, tanh must return .* shape \(\)"):
        tn.interop.onnx_model(F.tanh, x, gradient=True)
    with pytest.raises(OperandError, match=r"onnx_model: path must be"):
        tn.interop.onnx_model(F.tanh, x, path=3)


def test_a_file_is_whole_and_needs_no_tinynode(tmp_path: Path) -> None:
    path = tmp_path / "tanh.onnx"
    tn.interop.onnx_model(F.tanh, np.zeros(2, np.float32), path=path)
    before = path.read_bytes()
    with pytest.raises(NotImplementedError):
        tn.interop.onnx_model(F.linalg.inv, np.eye(2, dtype=np.float32), path=path)
    assert path.read_bytes() == before and [*tmp_path.iterdir()] == [path]
    program = (
        "import sys, numpy, onnxruntime\n"
        "session = onnxruntime.InferenceSession(sys.argv[1])\n"
        "print(session.run(None, {'x': numpy.ones(2, 'float32')})[0], 'tinynode' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["[0.7615942", "0.7615942]", "False"]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: F.sum(x) / min(x.shape[0], 32),
        lambda x: F.sum(x[: x.shape[0] - x.shape[0] % 2], axis=0),
        lambda x: F.softmax(x, axis=0) if x.shape[0] <= 16 else x,
        lambda x: x * 2 if x.shape[0] > 1 else x,
    ],
)
def test_a_function_that_decides_by_the_length_is_refused(f: Any) -> None:
    with pytest.raises(TinynodeError, match="Leave batch_axis out"):
        tn.interop.onnx_model(f, np.zeros((4, 3), np.float32), batch_axis=0)


@pytest.mark.parametrize("axis", ["0", {"x": 0}, True, 1.0, (0.0,), ()])
def test_a_batch_axis_of_another_type_is_named(axis: Any) -> None:
    with pytest.raises(OperandError, match="batch_axis"):
        tn.interop.onnx_model(F.exp, np.zeros((4, 3), np.float32), batch_axis=axis)


@pytest.mark.parametrize("f", [lambda x: None, lambda x: 3.0])
def test_a_model_without_outputs_is_refused(f: Any) -> None:
    with pytest.raises(TinynodeError, match="Variable"):
        tn.interop.onnx_model(f, np.zeros(3, np.float32))


def test_gelu_of_minus_infinity_is_0() -> None:
    x = np.asarray([-np.inf, 0.0, 1.0], np.float32)
    (found,) = run(tn.interop.onnx_model(F.gelu, x), x).values()
    np.testing.assert_allclose(found, tn.to_host(F.gelu(x)), atol=1e-6)
