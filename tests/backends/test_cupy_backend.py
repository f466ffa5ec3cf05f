"""tinynode_cupy without a GPU: its plumbing, and its kernels' formulas, on a stand-in for CuPy.

No GPU takes part in these tests: ``fake_cupy.py`` says what they show, and what they do not. The
rows of the table on a GPU are in ``test_functions.py``, marked ``gpu``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import fake_cupy
import numpy as np
import op_drivers
import pytest
from op_cases import CASES

import tinynode as tn
from tinynode import functions as fn
from tinynode import nn
from tinynode.devices import Device, fallback_uses, kernel_uses
from tinynode.errors import DeviceError, DeviceMixError
from tinynode.hooks import CUDAMemoryHook, NVTXHook
from tools.benchmarks import gpu_report

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        fake_cupy.COMPILER is None, reason="no C++ compiler: the kernels cannot be compiled"
    ),
]

WITH_KERNELS = {
    "GELUGrad",
    "SoftmaxCrossEntropy",
    "SoftmaxCrossEntropyGrad",
    "Standardize",
    "StandardizeGrad",
    "TanhGELUGrad",
    "gelu",
    "group_norm",
    "layer_norm",
    "log_softmax",
    "rms_norm",
    "softmax_cross_entropy",
}
CHOSEN = [
    case for place, case in enumerate(CASES) if case.operation in WITH_KERNELS or place % 20 == 0
]
ROWS = op_drivers.by_operation(CHOSEN)


@pytest.fixture(scope="module")
def backend() -> Iterator[ModuleType]:
    with fake_cupy.installed() as module:
        yield module


@pytest.fixture
def device(backend: ModuleType) -> Device:
    return tn.get_device("cupy:0")


# --- rows of the table ---------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ROWS)
def test_rows_on_the_stand_in(operation: str, device: Device) -> None:
    """Values, gradients of both orders, their form, hooks, and purity: as on other devices."""
    for case in ROWS[operation]:
        for check in op_drivers.every_check_of(case):
            with op_drivers.naming(case.id):
                check(case, "cupy:0")


def test_rows_on_the_second_device_where_it_is_current(backend: ModuleType) -> None:
    with backend.on_device("1"):
        for case in CHOSEN[::4]:
            with op_drivers.naming(case.id):
                op_drivers.check_forward(case, "cupy:1")
                if case.order >= 1:
                    op_drivers.check_dtypes(case, "cupy:1")


# --- kernels -------------------------------------------------------------------------------------


def used(
    device: Device, function: Any, *hosts: Any, **constants: Any
) -> tuple[Any, Any, set[str]]:
    """The output and the input's gradient, and which labels kernels or fallbacks ran."""
    kernel_uses.clear()
    fallback_uses.clear()
    x = tn.Variable(device.from_host(hosts[0]))
    rest = [tn.Variable(device.from_host(one), requires_grad=False) for one in hosts[1:]]
    y = function(x, *rest, **constants)
    gy = np.random.default_rng(2).normal(size=y.shape).astype(y.dtype)
    (gx,) = tn.grad([y], [x], [tn.Variable(device.from_host(gy))])
    assert gx is not None
    labels = {key[1] for uses in (kernel_uses, fallback_uses) for key in uses}
    return tn.to_host(y.array), tn.to_host(gx.array), labels


X = np.random.default_rng(0).normal(size=(5, 7)) * 3
LABELS = np.array([0, 6, -1, 3, 3])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("function", "arrays", "constants", "labels"),
    [
        (fn.gelu, (X,), {}, "GELU GELUGrad"),
        (fn.gelu, (X,), {"approximate": True}, "TanhGELU TanhGELUGrad"),
        (fn.log_softmax, (X,), {"axis": 0}, "LogSoftmax"),
        (
            fn.softmax_cross_entropy,
            (X, LABELS),
            {},
            "SoftmaxCrossEntropy SoftmaxCrossEntropyGrad",
        ),
        (
            fn.softmax_cross_entropy,
            (X, LABELS.astype(np.int32)),
            {"reduction": "none"},
            "SoftmaxCrossEntropy SoftmaxCrossEntropyGrad",
        ),
        (
            fn.softmax_cross_entropy,
            (X, np.full(5, -1)),
            {"reduction": "sum"},
            "SoftmaxCrossEntropy SoftmaxCrossEntropyGrad",
        ),
        (fn.layer_norm, (X, X[0], X[1]), {}, "Standardize StandardizeGrad"),
        (fn.rms_norm, (X, X[0]), {"eps": 0.3}, "Standardize StandardizeGrad"),
        (fn.batch_norm, (X, X[0], X[1]), {}, "Standardize StandardizeGrad"),
    ],
)
def test_kernels_give_what_portable_forwards_give(
    function: Any, arrays: Any, constants: Any, labels: str, dtype: str, device: Device
) -> None:
    hosts = [a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays]
    y, gx, ran = used(device, function, *hosts, **constants)
    assert ran == set(labels.split()) and not fallback_uses
    expected_y, expected_gx, nothing = used(tn.get_device("numpy"), function, *hosts, **constants)
    assert not nothing
    tolerance = 2e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(y, expected_y, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(gx, expected_gx, rtol=tolerance, atol=tolerance)


def check_like_numpy(
    device: Device, function: Any, host: Any, tolerance: float, **constants: Any
) -> None:
    """Value and gradient by kernels, compared with the portable functions; NaN stays NaN."""
    with np.errstate(all="ignore"):
        *found, ran = used(device, function, host, **constants)
        *expected, _ = used(tn.get_device("numpy"), function, host, **constants)
    assert ran and not fallback_uses
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=1e-37)


FAR = np.array([[np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, -12.0, -9.0, -6.0, 12.0]])


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 5e-5), ("float64", 1e-13)])
@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_far_from_zero(
    approximate: bool, dtype: str, tolerance: float, device: Device
) -> None:
    """At -inf the value is 0, and the tail keeps its digits; the exponent of e is about -72."""
    host = FAR.astype(dtype)
    check_like_numpy(device, fn.gelu, host, tolerance, approximate=approximate)


ROWS_AT_LIMITS = [
    [2.0, np.inf, 3.0],
    [-np.inf, np.inf, 3.0],
    [-np.inf, 2.0, -np.inf],
    [np.inf, 2.0, np.inf],
    [np.inf, 2.0, np.nan],
    [-np.inf] * 3,
    [70.0, 0.0, 0.0],
    [20.0, 0.0, 0.0],
    [3.0, 3.0, 0.0],
]


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("float64", 1e-13)])
@pytest.mark.parametrize("axis", [0, 1])
def test_log_softmax_at_its_limits(
    axis: int, dtype: str, tolerance: float, device: Device
) -> None:
    """Infinities have the limit of the portable function, and a sure class keeps -e^-70."""
    rows = np.array(ROWS_AT_LIMITS, dtype)
    host = np.ascontiguousarray(rows.T) if axis == 0 else rows
    check_like_numpy(device, fn.log_softmax, host, tolerance, axis=axis)
    if axis == 1:
        labels = np.arange(len(rows)) % 3
        x, t = (device.from_host(one) for one in (rows, labels))
        with np.errstate(all="ignore"):
            ours = fn.softmax_cross_entropy(x, t, reduction="none")
            with tn.using_device("numpy"):
                theirs = fn.softmax_cross_entropy(rows, labels, reduction="none")
        found = tn.to_host(ours.array)
        np.testing.assert_allclose(found, theirs.array, rtol=tolerance, atol=1e-37)


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [("float32", 1e30), ("float32", 1e-30), ("float64", 1e200), ("float64", 1e-200)],
)
@pytest.mark.parametrize("function", [fn.layer_norm, fn.rms_norm, fn.batch_norm])
def test_norms_at_every_scale(function: Any, dtype: str, scale: float, device: Device) -> None:
    """The squares of such numbers overflow, or vanish."""
    host = (X * scale).astype(dtype)
    eps = 1e-45 if scale < 1 and dtype == "float64" else 1e-5
    ones = [np.ones(7, dtype)] * (1 if function is fn.rms_norm else 2)

    def norm(x: Any, **constants: Any) -> Any:
        given = [tn.asarray(one, device=x.device) for one in ones]
        return function(x, *given, **constants)

    check_like_numpy(device, norm, host, 1e-5 if dtype == "float32" else 1e-12, eps=eps)


@pytest.mark.parametrize(
    ("function", "arrays", "constants", "reason"),
    [
        (fn.gelu, (X[:0],), {}, "an array without elements"),
        (fn.layer_norm, (X[:0], X[0], X[1]), {}, "an array without elements"),
        (
            fn.softmax_cross_entropy,
            (X, LABELS),
            {"label_smoothing": 0.1},
            "weights of classes, or label smoothing",
        ),
    ],
)
def test_what_kernels_do_not_cover_runs_portably(
    function: Any, arrays: Any, constants: Any, reason: str, device: Device
) -> None:
    y, gx, _ = used(device, function, *arrays, **constants)
    assert {key[2] for key in fallback_uses} == {reason} and not kernel_uses
    expected_y, expected_gx, _ = used(tn.get_device("numpy"), function, *arrays, **constants)
    np.testing.assert_array_equal(y, expected_y)
    np.testing.assert_array_equal(gx, expected_gx)


def test_a_kernel_refuses_labels_that_are_no_class(device: Device) -> None:
    with pytest.raises(ValueError, match="labels must lie in 0 to 6"):
        used(device, fn.softmax_cross_entropy, X, LABELS + 1)


def test_a_subclass_runs_its_own_forward(device: Device) -> None:
    class Own(fn.GELU):
        def forward(self, inputs: Any) -> Any:
            return (inputs[0] * 2.0,)

    y = Own().apply((tn.Variable(device.from_host(X)),))[0]
    np.testing.assert_array_equal(tn.to_host(y.array), X * 2)


def test_forward_gpu_is_chosen(device: Device) -> None:
    class Both(tn.FunctionNode):
        def forward_cpu(self, inputs: Any) -> Any:
            raise AssertionError

        def forward_gpu(self, inputs: Any) -> Any:
            return inputs

    assert Both().apply((tn.Variable(device.from_host(X)),))[0].shape == X.shape


def test_linear_algebra_is_asked_to_raise(device: Device, backend: ModuleType) -> None:
    seen = []

    class Node(fn.Inv):
        pass

    original = fn.Inv.forward

    def forward(self: Any, inputs: Any) -> Any:
        seen.append(dict(fake_cupy.state.errstate))
        return original(self, inputs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fn.Inv, "forward", forward)
        fn.linalg.inv(tn.Variable(device.from_host(np.eye(2))))
        fn.sin(tn.Variable(device.from_host(np.eye(2))))
    assert seen == [{"linalg": "raise"}] and fake_cupy.state.errstate == {}


# --- optimizers ----------------------------------------------------------------------------------


def trained(device: Device, make: Any, dtype: str) -> tuple[list[Any], list[Any]]:
    """The parameters after three steps, and the moments; one parameter is not contiguous."""
    rng = np.random.default_rng(1)
    hosts = [rng.normal(size=shape).astype(dtype) for shape in ((4, 3), (1,), (0, 2))]
    hosts[0] = np.asfortranarray(hosts[0])
    parameters = [tn.Variable(device.from_host(host)) for host in hosts]
    optimizer = make(parameters)
    first = [p.array for p in parameters]
    copies = [tn.to_host(array).copy() for array in first]
    for _ in range(3):
        for p in parameters:
            p.grad = device.from_host(rng.normal(size=p.shape).astype(dtype))
        optimizer.update()
    for array, copy in zip(first, copies, strict=True):  # graphs may retain it
        np.testing.assert_array_equal(tn.to_host(array), copy)
    state = optimizer.state_dict()
    return [tn.to_host(p.array) for p in parameters], [state[name] for name in sorted(state)]


OPTIMIZERS = {
    "sgd": lambda ps: nn.SGD(ps, lr=0.1),
    "momentum": lambda ps: nn.SGD(ps, lr=0.1, momentum=0.9),
    "adam": lambda ps: nn.Adam(ps, lr=0.1, betas=(0.8, 0.95), eps=1e-3),
    "adamw": lambda ps: nn.AdamW(ps, lr=0.1, weight_decay=0.2),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_take_the_portable_steps(name: str, dtype: str, device: Device) -> None:
    fallback_uses.clear()
    kernel_uses.clear()
    found = trained(device, OPTIMIZERS[name], dtype)
    assert [(key[2], use.calls) for key, use in kernel_uses.items()] == [("update_parameters", 3)]
    assert not fallback_uses
    expected = trained(tn.get_device("numpy"), OPTIMIZERS[name], dtype)
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    for arrays, others in zip(found, expected, strict=True):
        assert len(arrays) == len(others)
        for array, other in zip(arrays, others, strict=True):
            assert array.dtype == other.dtype
            np.testing.assert_allclose(array, other, rtol=tolerance, atol=tolerance)


def test_optimizers_without_a_kernel_take_the_portable_step(device: Device) -> None:
    class Own(nn.SGD):
        pass

    for make, dtype, reason in (
        (OPTIMIZERS["adam"], "float16", "float16 has no kernel"),
        (lambda ps: Own(ps, lr=0.1), "float32", "no kernel for this class"),
        (
            lambda ps: nn.SGD(ps, 0.1, weight_decay=0.1),
            "float32",
            "no kernel for weight_decay or nesterov",
        ),
    ):
        fallback_uses.clear()
        found, _ = trained(device, make, dtype)
        assert {key[2] for key in fallback_uses} == {reason}
        expected, _ = trained(tn.get_device("numpy"), make, dtype)
        for array, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(array, other)


# --- devices -------------------------------------------------------------------------------------


def test_a_function_runs_with_its_inputs_device_as_the_current_one(backend: ModuleType) -> None:
    """The stand-in raises where an array of another device is computed with."""
    x = tn.Variable(tn.get_device("cupy:1").from_host(X))
    assert fake_cupy.state.current == 0
    y = fn.gelu(x)
    assert y.device is tn.get_device("cupy:1") and backend.index_of(y.array) == "1"
    assert fake_cupy.state.current == 0
    z = x.to_device("cupy:0")
    assert backend.index_of(z.array) == "0"
    with pytest.raises(DeviceMixError, match=r"cupy:1.*cupy:0"):
        fn.add(y, z)


def test_a_backward_pass_runs_on_the_device_of_the_output(backend: ModuleType) -> None:
    x = tn.Variable(tn.get_device("cupy:1").from_host(X))
    y = fn.sum(x * x)
    assert fake_cupy.state.current == 0
    y.backward()
    (gx,) = tn.grad([fn.sum(x * x)], [x])
    assert gx is not None
    assert backend.index_of(x.grad) == backend.index_of(gx.array) == "1"
    np.testing.assert_allclose(tn.to_host(x.grad), 2 * X)


def test_the_current_device_comes_back_after_an_error(backend: ModuleType) -> None:
    class Failing(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            assert fake_cupy.state.current == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Failing().apply((tn.Variable(tn.get_device("cupy:1").from_host(X)),))
    assert fake_cupy.state.current == 0


@pytest.mark.parametrize(
    ("failure", "report"),
    [
        (fake_cupy.CUDARuntimeError("cudaErrorNoDevice: none detected"), "cudaErrorNoDevice"),
        (OSError("libnvrtc.so.13: cannot open"), "libnvrtc"),
    ],
)
def test_without_a_usable_gpu_the_error_says_what_cupy_said(
    failure: Exception, report: str, backend: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.devices.cache_clear()
    monkeypatch.setattr(fake_cupy.state, "failure", failure)
    with pytest.raises(DeviceError, match=rf"no usable GPU: .*{report}.*nvidia-smi.*pip install"):
        backend.devices()
    monkeypatch.setattr(fake_cupy.state, "failure", None)
    monkeypatch.setattr(fake_cupy, "NUMBER_OF_DEVICES", 0)
    with pytest.raises(DeviceError, match="it found no GPU"):
        backend.devices()
    monkeypatch.undo()
    assert backend.devices() == ("0", "1")


def test_a_host_array_beside_a_gpu_variable_goes_to_the_gpu(device: Device) -> None:
    y = fn.add(tn.Variable(device.from_host(X)), X)
    assert y.device is device
    np.testing.assert_array_equal(tn.to_host(y.array), X + X)


def test_scalars_of_the_library_become_arrays(device: Device, backend: ModuleType) -> None:
    class Scalar(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            return (np.float64(3.0),)

    y = Scalar().apply((tn.Variable(device.from_host(X)),))[0]
    assert backend.owns(y.array) and y.shape == ()
    assert backend.lift(3.0) is None and not backend.owns(X)


def test_arrays_there_and_back(device: Device) -> None:
    for host in (X, X.T, X[::-2, ::3], np.asarray(3), np.zeros((0, 2), "float32"), X > 0):
        back = tn.to_host(device.from_host(host))
        assert type(back) is np.ndarray and back.dtype == host.dtype
        np.testing.assert_array_equal(back, host)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_add_at(dtype: str, device: Device, backend: ModuleType) -> None:
    """int64 and bool have no atomic addition: they go through the host."""
    import tinynode_numpy

    indices, values = np.array([2, 0, 2, -1]), np.arange(8).reshape(4, 2).astype(dtype)
    result = backend.add_at(device.from_host(indices), device.from_host(values), 4)
    assert backend.owns(result)
    np.testing.assert_array_equal(tn.to_host(result), tinynode_numpy.add_at(indices, values, 4))


@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, None), (None, 1), (-0.5, 0.5), (None, None), (np.nan, 1.0)]
)
def test_clip_is_the_standards(low: Any, high: Any, device: Device) -> None:
    host = np.array([-2.0, 0.25, 3.0, np.nan], "float32")
    x = device.from_host(host)
    clipped = device.xp.clip(x, min=low, max=high)
    assert not np.shares_memory(clipped, x)
    expected = np.clip(host, low, high) if (low, high) != (None, None) else host
    assert clipped.dtype == np.float32
    np.testing.assert_array_equal(tn.to_host(clipped), expected)


def test_solve_broadcasts_stacks(device: Device) -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2, 1, 3, 3)) + 3 * np.eye(3)
    for b in (rng.normal(size=(4, 3, 2)), rng.normal(size=(3, 2))):
        x = device.xp.linalg.solve(device.from_host(a), device.from_host(b))
        np.testing.assert_allclose(tn.to_host(x), np.linalg.solve(a, b), rtol=1e-12)


# --- hooks ---------------------------------------------------------------------------------------


def test_hooks_reach_cupys_profiler_ranges_and_memory_pool(device: Device) -> None:
    seen = []

    class Watching(tn.FunctionNode):
        def forward(self, inputs: Any) -> Any:
            seen.extend(fake_cupy.state.ranges)
            return inputs

    x = tn.Variable(device.from_host(X))
    with NVTXHook("cupy:0"), CUDAMemoryHook("cupy:1") as memory:
        Watching().apply((x,))
    assert seen == ["Watching.forward"] and fake_cupy.state.ranges == []
    assert memory.peak_bytes() == 1001  # the pool of that very device


# --- the report ----------------------------------------------------------------------------------


def test_the_report_asks_cupy_what_it_can_be_asked(device: Device) -> None:
    found = gpu_report.versions(device)
    assert found["device_name"] == "no GPU" and "fake_cupy" in found["cupy"]
    times = gpu_report.steps(device, 1)["batch 64"]["milliseconds"]
    assert {"by hand", "tinynode"} <= set(times)


# --- the real one --------------------------------------------------------------------------------


def test_importing_tinynode_does_not_import_cupy() -> None:
    program = "import tinynode, sys; assert not {'cupy', 'tinynode_cupy'} & set(sys.modules)"
    path = f"{ROOT}:{ROOT / 'backends'}"
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": path})
