"""The CUDA kernels of tinynode_cupy, compiled by NVRTC and executed in NumPy: no GPU takes part.

CuPy writes the source around each kernel, NVRTC compiles it to PTX, and the machine of
``tests/support/ptx`` runs it. Results are compared with the portable functions on NumPy's arrays:
at float32 to 2e-6, at float64 to 1e-14, absolute and relative. Where a bug is planted, the
comparison fails.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import fake_cupy
import numpy as np
import op_drivers
import pytest

import tinynode as tn
from tests.backends import test_cupy_backend as backend_tests
from tests.backends import test_cupy_plan as plan_tests
from tinynode import functions as fn
from tinynode.devices import Device, Fallback
from tinynode.functions.activation import GELUGrad, LogSoftmax, TanhGELU, TanhGELUGrad
from tinynode.functions.cross_entropies import SoftmaxCrossEntropy, SoftmaxCrossEntropyGrad
from tinynode.functions.normalization import Standardize, StandardizeGrad
from tinynode.nn.updates import AdamUpdate, MomentumUpdate, SGDUpdate

try:
    from ptx import cupy_kernels
    from ptx.cupy_kernels import changed, changes
    from ptx.memory import MemoryFaultError

    MISSING = ""
except (ImportError, RuntimeError) as error:  # RuntimeError: CuPy finds no NVRTC
    MISSING = f"CuPy and NVRTC are missing: pip install -e '.[ptx]', 0.8 GB ({str(error).strip()})"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
]

TOLERANCES = {"float32": 2e-6, "float64": 1e-14}
LAYOUTS = ("", "strided", "reversed", "transposed", "repeated")
SHAPES = ((7, 13), (1, 1), (129, 2), (3, 5, 4))
"""One element, a block of 128 threads and one more, and axes that cannot be merged."""


@pytest.fixture(scope="module")
def backend() -> Iterator[ModuleType]:
    with fake_cupy.installed(cupy_kernels) as module:
        yield module


@pytest.fixture
def device(backend: ModuleType) -> Iterator[Device]:
    changes.launches.clear()
    with tn.using_device("cupy:0"):
        yield tn.get_device("cupy:0")


# --- the nodes with kernels ----------------------------------------------------------------------


class Draw:
    """Random arrays, on the device in a layout, and on the host."""

    def __init__(self, device: Device, dtype: str, layout: str, shape: tuple[int, ...]) -> None:
        self.device, self.dtype, self.layout, self.shape = device, dtype, layout, shape
        self.rng = np.random.default_rng(0)
        self.pairs: list[tuple[Any, Any]] = []

    def add(self, host: Any) -> None:
        if host.ndim == 0:
            array = self.device.from_host(host)
        elif self.layout == "repeated":  # one row, by a stride of 0
            row = self.device.from_host(host[:1])
            array = self.device.xp.broadcast_to(row, host.shape)
        else:
            array = op_drivers.place(SimpleNamespace(layout=self.layout), host, self.device)
        self.pairs.append((array, tn.to_host(array)))

    def numbers(self, count: int = 1, shape: tuple[int, ...] | None = None) -> Draw:
        size = self.shape if shape is None else shape
        for _ in range(count):
            self.add(np.asarray(3 * self.rng.normal(size=size), self.dtype))
        return self

    def positive(self) -> Draw:
        self.add(self.rng.uniform(0.1, 2, self.shape).astype(self.dtype))
        return self

    def labels(self) -> Draw:
        """Classes, and -1 for a row that is ignored."""
        self.add(self.rng.integers(-1, self.shape[1], self.shape[0]))
        return self

    def scalars(self, *values: float) -> Draw:
        for value in values:
            host = np.asarray(value)
            self.pairs.append((self.device.from_host(host), host))
        return self


class Work(NamedTuple):
    """A node with a kernel, its inputs, and the kernels that run."""

    make: Callable[[], Any]
    draw: Callable[[Draw], Draw]
    kernels: str
    shapes: tuple[tuple[int, ...], ...] = SHAPES


MATRICES = SHAPES[:3]
NORM = "tinynode_scaled_mean tinynode_scaled_variance tinynode_standardize"
RMS_NORM = "tinynode_scaled_variance tinynode_standardize"
NORM_GRAD = "tinynode_mean_product tinynode_standardize_grad"
LOG_SOFTMAX = "tinynode_count_largest tinynode_sum_rest tinynode_log_softmax"
LOSS = f"{LOG_SOFTMAX} tinynode_pick_losses"
WORKS = {
    "gelu": Work(fn.GELU, lambda d: d.numbers(), "tinynode_gelu"),
    "gelu_grad": Work(GELUGrad, lambda d: d.numbers(2), "tinynode_gelu_grad"),
    "tanh_gelu": Work(TanhGELU, lambda d: d.numbers(), "tinynode_tanh_gelu"),
    "tanh_gelu_grad": Work(TanhGELUGrad, lambda d: d.numbers(2), "tinynode_tanh_gelu_grad"),
    "log_softmax 0": Work(lambda: LogSoftmax(0), lambda d: d.numbers(), LOG_SOFTMAX),
    "log_softmax 1": Work(lambda: LogSoftmax(1), lambda d: d.numbers(), LOG_SOFTMAX),
    "loss of each row": Work(
        lambda: SoftmaxCrossEntropy("none", -1), lambda d: d.numbers().labels(), LOSS, MATRICES
    ),
    "mean loss": Work(
        lambda: SoftmaxCrossEntropy("mean", -1), lambda d: d.numbers().labels(), LOSS, MATRICES
    ),
    "loss_grad": Work(
        lambda: SoftmaxCrossEntropyGrad("mean", -1),
        lambda d: d.numbers().numbers(shape=()).labels(),
        "tinynode_cross_entropy_grad",
        MATRICES,
    ),
    "standardize 0": Work(lambda: Standardize((0,), 0.3, True), lambda d: d.numbers(), NORM),
    "standardize 1": Work(lambda: Standardize((1,), 0.3, False), lambda d: d.numbers(), RMS_NORM),
    "standardize 0 2": Work(
        lambda: Standardize((0, 2), 0.3, True), lambda d: d.numbers(), NORM, SHAPES[3:]
    ),
    "standardize_grad": Work(
        lambda: StandardizeGrad((0,), True),
        lambda d: d.numbers(2).numbers(shape=(1, *d.shape[1:])),
        NORM_GRAD,
    ),
}
"""The classes of ``tinynode_cupy.kernels.KERNELS``."""
UPDATES = {
    "sgd": Work(SGDUpdate, lambda d: d.numbers(2).scalars(0.1), "tinynode_sgd"),
    "momentum": Work(
        MomentumUpdate, lambda d: d.numbers(3).scalars(0.1, 0.9), "tinynode_momentum"
    ),
    "adam": Work(
        lambda: AdamUpdate((0.8, 0.95), 1e-3, 0.1),
        lambda d: d.numbers(3).positive().scalars(0.1, 3.0),
        "tinynode_adam_numbers tinynode_adam",
    ),
}
"""The classes of ``tinynode_cupy.updates.KERNELS``."""


def run_node(name: str, arrays: list[Any], backend: ModuleType) -> Any:
    """The outputs of a node by its kernels."""
    if name in WORKS:
        return backend.forward(WORKS[name].make(), tuple(arrays))
    updates = importlib.import_module("tinynode_cupy.updates")
    node = UPDATES[name].make()
    if name == "adam":
        *arrays, count = arrays
        arrays += updates.AdamNumbers(node).forward((arrays[-1], count))
    return updates.UpdateKernel(node).forward(tuple(arrays))


def compare(
    name: str,
    dtype: str,
    layout: str,
    shape: tuple[int, ...],
    device: Device,
    tolerances: dict[str, float] = TOLERANCES,
) -> None:
    """The kernels give what the portable forward gives."""
    work = (WORKS | UPDATES)[name]
    pairs = work.draw(Draw(device, dtype, layout, shape)).pairs
    changes.launches.clear()
    found = run_node(name, [array for array, _ in pairs], device.backend)
    assert not isinstance(found, Fallback), found
    assert changes.launches == work.kernels.split()
    expected = work.make().forward(tuple(host for _, host in pairs))
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        tolerance = tolerances[dtype]
        np.testing.assert_allclose(tn.to_host(ours), theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", WORKS | UPDATES)
def test_a_kernel_gives_what_the_portable_forward_gives(name: str, device: Device) -> None:
    shape = (WORKS | UPDATES)[name].shapes[0]
    compare(name, "float32", "strided", shape, device)
    compare(name, "float64", "", shape, device)


@pytest.mark.long
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", WORKS | UPDATES)
def test_all_layouts_and_sizes(name: str, dtype: str, device: Device) -> None:
    for shape in (WORKS | UPDATES)[name].shapes:
        for layout in LAYOUTS:
            with op_drivers.naming(f"{layout or 'contiguous'} {shape}"):
                compare(name, dtype, layout, shape, device)


@pytest.mark.parametrize("name", ["gelu_grad", "mean loss", "standardize 0"])
def test_indices_of_64_bits(name: str, device: Device) -> None:
    """CuPy indexes arrays of 2 GiB and more in this way."""
    with changed(index_32_bits=False):
        compare(name, "float32", "strided", (7, 13), device)


@pytest.mark.parametrize("error", [-2.0, 2.0])
def test_errors_of_approximate_instructions(
    error: float, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CUDA allows ex2.approx, div.approx and rcp.approx about two units in the last place."""
    monkeypatch.setattr("ptx.arithmetic.APPROXIMATE_ERROR", error)
    for name, work in (WORKS | UPDATES).items():
        with op_drivers.naming(name):
            compare(name, "float32", "", work.shapes[0], device, {"float32": 4e-6})


def test_many_thread_blocks(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """More threads than the machine executes at once; a reduction of several steps a thread."""
    monkeypatch.setattr("ptx.machine.MOST_THREADS", 1024)
    for name in ("gelu", "log_softmax 0", "log_softmax 1"):
        compare(name, "float32", "", (3, 1500), device)


def test_nothing_is_launched_without_elements_or_for_float16(
    backend: ModuleType, device: Device
) -> None:
    empty, half = np.zeros((0, 3), "float32"), np.ones((2, 3), "float16")
    changes.launches.clear()
    assert isinstance(backend.forward(fn.GELU(), (device.from_host(half),)), Fallback)
    assert isinstance(backend.forward(fn.GELU(), (device.from_host(empty),)), Fallback)
    arrays = [device.from_host(host) for host in (empty, empty, np.asarray(0.1))]
    assert run_node("sgd", arrays, backend)[0].shape == (0, 3)
    assert changes.launches == []


# --- chains of compiled nets ---------------------------------------------------------------------


def chain_of(x: Any, w: Any) -> Any:
    """Most operators that a chain can have; w broadcasts."""
    h = fn.tanh(x + w) * fn.sigmoid(x - w) / (1.0 + fn.square(w))
    h = fn.maximum(h, -0.5) + fn.minimum(fn.relu(x), w)
    return fn.sin(h) * fn.exp(-fn.abs(x)) + fn.cos(x) * fn.sqrt(fn.abs(h)) - fn.log(1.5 + h * h)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_a_chain_and_its_gradient(dtype: str, layout: str, device: Device) -> None:
    draw = Draw(device, dtype, layout, (7, 13)).numbers().numbers(shape=(1, 13))
    compiled = tn.compile(chain_of)
    found = []
    for function, where in ((compiled, 0), (compiled, 0), (chain_of, 1)):
        x, w = (tn.Variable(pair[where]) for pair in draw.pairs)
        with tn.using_device(["cupy:0", "numpy"][where]):
            y = function(x, w)
            found.append([tn.to_host(one.array) for one in (y, *tn.grad([fn.sum(y)], [x, w]))])
    assert any(name.startswith("tinynode_chain") for name in changes.launches)
    for ours, theirs in zip(found[1], found[2], strict=True):
        tolerance = 10 * TOLERANCES[dtype]  # twenty operators, each with its error
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_sine_and_cosine_far_from_zero(dtype: str, device: Device) -> None:
    """CUDA subtracts multiples of pi with 200 or 1,200 bits of 2 / pi, in local memory."""
    host = np.asarray([3.0, -1e5, 2e5, 1e6, -1e10, 1e30, 3e38], dtype)
    compiled = tn.compile(lambda x: fn.sin(x) + 2.0 * fn.cos(x))
    x = tn.Variable(device.from_host(host), requires_grad=False)
    for _ in range(2):
        y = compiled(x)
    assert changes.launches
    expected = np.sin(host) + 2 * np.cos(host)
    tolerance = 2 * TOLERANCES[dtype]
    np.testing.assert_allclose(tn.to_host(y.array), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.long
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("node_class", plan_tests.ONE_OPERATOR, ids=lambda pair: pair[0].__name__)
def test_each_expression_on_hard_values(
    node_class: Any, dtype: str, backend: ModuleType, device: Device
) -> None:
    """NaN, infinities, zeros of both signs."""
    plan_tests.test_expressions_on_all_pairs_of_hard_values(node_class, dtype, backend, device)


@pytest.mark.long
@pytest.mark.parametrize("operation", plan_tests.ROWS)
def test_rows_compiled_equal_eager(operation: str, device: Device) -> None:
    plan_tests.test_rows_compiled_equal_eager(operation, device)


@pytest.mark.long
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", plan_tests.MAKERS)
def test_a_compiled_training_step(name: str, dtype: str, device: Device) -> None:
    plan_tests.test_a_training_step_updates_by_kernels(name, dtype, device)


# --- functions and optimizers --------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("operation", sorted(backend_tests.WITH_KERNELS))
def test_rows_with_kernels(operation: str, device: Device) -> None:
    """Values, gradients of both orders, hooks: as on other devices."""
    backend_tests.test_rows_on_the_stand_in(operation, device)


@pytest.mark.long
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", backend_tests.OPTIMIZERS)
def test_optimizers(name: str, dtype: str, device: Device) -> None:
    backend_tests.test_optimizers_take_the_portable_steps(name, dtype, device)


@pytest.mark.long
@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_far_from_zero(approximate: bool, device: Device) -> None:
    for dtype, tolerance in (("float32", 5e-5), ("float64", 1e-13)):
        backend_tests.test_gelu_far_from_zero(approximate, dtype, tolerance, device)


@pytest.mark.long
@pytest.mark.parametrize("axis", [0, 1])
def test_log_softmax_at_its_limits(axis: int, device: Device) -> None:
    for dtype, tolerance in (("float32", 2e-6), ("float64", 1e-13)):
        backend_tests.test_log_softmax_at_its_limits(axis, dtype, tolerance, device)


@pytest.mark.long
@pytest.mark.parametrize("function", [fn.layer_norm, fn.rms_norm, fn.batch_norm])
def test_norms_at_every_scale(function: Any, device: Device) -> None:
    for dtype, scale in (("float32", 1e30), ("float32", 1e-30), ("float64", 1e200)):
        backend_tests.test_norms_at_every_scale(function, dtype, scale, device)


# --- planted bugs --------------------------------------------------------------------------------

BUGS = {
    "tinynode_gelu": ("gelu", "rectified - size", "rectified + size"),
    "tinynode_gelu_grad": ("gelu_grad", "T(-0.5)", "T(0.5)"),
    "tinynode_tanh_gelu": ("tanh_gelu", "size * smaller", "size * larger"),
    "tinynode_tanh_gelu_grad": ("tanh_gelu_grad", "smaller : larger", "larger : smaller"),
    "tinynode_count_largest": ("log_softmax 0", "x == largest", "x != largest"),
    "tinynode_sum_rest": ("log_softmax 1", "exp(x - largest)", "exp(largest - x)"),
    "tinynode_log_softmax": ("log_softmax 1", "shifted - log1p", "shifted + log1p"),
    "tinynode_pick_losses": ("mean loss", "i * classes + label", "i + classes * label"),
    "tinynode_cross_entropy_grad": ("loss_grad", "label == column", "label != column"),
    "tinynode_scaled_mean": ("standardize 0", "a / length", "length / a"),
    "tinynode_scaled_variance": ("standardize 0", "a / length", "length / a"),
    "tinynode_standardize": ("standardize 0", "(x * k - m)", "(m - x * k)"),
    "tinynode_mean_product": ("standardize_grad", "a / length", "length / a"),
    "tinynode_standardize_grad": ("standardize_grad", "- offset", "+ offset"),
    "tinynode_sgd": ("sgd", "p - T(lr)", "p + T(lr)"),
    "tinynode_momentum": ("momentum", "* v + g", "* g + v"),
    "tinynode_adam": ("adam", "b1 * m + b3 * g", "b3 * m + b1 * g"),
    "tinynode_adam_numbers": ("adam", "pow(b1, count)", "pow(count, b1)"),
}
"""For each kernel a node that runs it, and a wrong sign or a swapped operand."""


class Planted:
    """Changes the source of one kernel, and counts the changes."""

    def __init__(self, kernel: str, pattern: str, replacement: str) -> None:
        self.kernel, self.pattern, self.replacement = kernel, pattern, replacement
        self.count = 0

    def __call__(self, code: str) -> str:
        if f" {self.kernel}(" not in code:
            return code
        place = "_j" if "_in_ind" in code else "i"
        replacement = self.replacement.replace("PLACE", place)
        code, count = re.subn(self.pattern, replacement, code, count=1)
        self.count += count
        return code


def run_with(kernel: str, device: Device) -> None:
    """A comparison in which the kernel runs, and each element counts."""
    layout = "repeated" if kernel == "tinynode_count_largest" else "strided"
    compare(BUGS[kernel][0], "float32", layout, (7, 13), device)


def check_caught(kernel: str, pattern: str, replacement: str, run: Callable[[], None]) -> None:
    """The comparison passes, and fails with the bug."""
    run()
    planted = Planted(kernel, pattern, replacement)
    with changed(source=planted), pytest.raises((AssertionError, MemoryFaultError)):
        run()
    assert planted.count


def test_each_kernel_has_a_bug_to_plant(backend: ModuleType) -> None:
    names = set()
    for module in ("kernels", "updates"):
        for one in vars(importlib.import_module(f"tinynode_cupy.{module}")).values():
            if isinstance(one, tuple) and hasattr(one, "_fields"):
                names.add(one.name)
    assert names == set(BUGS)
    ran = {name for work in (WORKS | UPDATES).values() for name in work.kernels.split()}
    assert ran == names


@pytest.mark.parametrize("kernel", BUGS)
def test_a_wrong_sign_or_operand_is_caught(kernel: str, device: Device) -> None:
    _, right, wrong = BUGS[kernel]
    check_caught(kernel, re.escape(right), wrong, lambda: run_with(kernel, device))


SIZE = r"(\(i, _ind|_j < _in_ind)\.size\(\)"
PLACES = {
    "one more thread": (SIZE, r"\1.size() + 1"),
    "one thread less": (SIZE, r"\1.size() - 1"),
    "a wrong stride": (r"(_raw_\w+)\[_(in_)?ind\.get\(\)\]", r"\1[2 * PLACE]"),
}
"""Bugs at the end of arrays, and between elements, in the source that CuPy writes."""


@pytest.mark.long
@pytest.mark.parametrize("bug", PLACES)
@pytest.mark.parametrize("kernel", [*BUGS][:-1])  # the numbers of Adam have no axis
def test_a_wrong_place_is_caught(kernel: str, bug: str, device: Device) -> None:
    check_caught(kernel, *PLACES[bug], lambda: run_with(kernel, device))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("x0 - x1", "x1 - x0"),
        ("tanh(", "-tanh("),
        ("_ind.size()", "_ind.size() + 1"),
        ("_raw_x1[_ind.get()]", "_raw_x1[2 * i]"),
    ],
)
def test_bugs_in_a_chain_are_caught(right: str, wrong: str, device: Device) -> None:
    name = "tinynode_chain_subtract_tanh_multiply"

    def run() -> None:
        draw = Draw(device, "float32", "strided", (7, 13)).numbers(2)
        (x, host_x), (w, host_w) = draw.pairs
        compiled = tn.compile(lambda x, w: fn.tanh(x - w) * x)
        for _ in range(2):
            y = compiled(*(tn.Variable(one, requires_grad=False) for one in (x, w)))
        assert changes.launches[-1] == name
        expected = np.tanh(host_x - host_w) * host_x
        np.testing.assert_allclose(tn.to_host(y.array), expected, rtol=2e-6, atol=2e-6)

    check_caught(name, re.escape(right), wrong, run)
