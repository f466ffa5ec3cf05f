"""The whole op table on PyTorch's, on JAX's and on dpnp's arrays.

They run where the library is installed. Each row is compared with NumPy. On PyTorch all rows run.
JAX compiles each operation for each shape, so there a fixed sample runs, and all rows with
``OP_TABLE=whole`` in the environment (about a quarter of an hour). dpnp compiles each operation
for each dtype, so every tenth row runs, and all rows in the long tests.

What a library does otherwise is in ``DEVIATIONS``, with the reason; such a row must fail.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import pathlib
import pickle
import re
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import op_drivers
import pytest
import row_counts
from op_cases import CASES, Case

import tinynode as tn
from tests.devices import test_host_data
from tinynode import nn
from tinynode.devices import get_backend
from tinynode.errors import DeviceMixError
from tinynode.hooks import MemoryHook

pytestmark = pytest.mark.slow

F = tn.functions
ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = {"torch": "torch", "jax": "jax", "sycl": "dpnp"}
"""The module that each backend imports."""
INSTALLED = {name: importlib.util.find_spec(LIBRARIES[name]) is not None for name in LIBRARIES}
WHOLE = os.environ.get("OP_TABLE") == "whole"
EVERY_HOW_MANY = {"torch": 1, "jax": 1 if WHOLE else 100, "sycl": 10}

REVERSED = "tensors have no negative strides, so none can be laid out in memory like this"
SINGULAR = "the determinant is 0 but for rounding, of another size than NumPy's"
APART = "dpnp refuses an index of two arrays with a slice or None between; the standard has none"
NARROW = "jax.numpy.cumulative_prod leaves int32 as it is; the standard asks for int64"

DEVIATIONS: dict[str, dict[str, str]] = {
    "torch": {
        **{
            case.id: REVERSED
            for case in CASES
            if any(one.layout == "reversed" for one in case.inputs)
        },
        "det-singular-of-ten": SINGULAR,
    },
    "sycl": {
        "get_item-arrays-apart": APART,
        "get_item-none-between-arrays": APART,
        "set_item-arrays-apart": APART,
        "set_item-none-between": APART,
        "set_item-none-ellipsis": APART,
        "set_item-repeated-apart": APART,
        "det-singular-of-ten": SINGULAR,
    },
    "jax": {
        "cumulative_prod-integers": NARROW,
        "cumulative_prod-integers-initial": NARROW,
    },
}


def load(name: str) -> Any:
    """The backend module; the test is skipped where its library is missing."""
    if not INSTALLED[name]:
        pytest.skip(f"{LIBRARIES[name]} is not installed: pip install tinynode[{name}]")
    return get_backend(name)


@pytest.fixture(params=LIBRARIES)
def module(request: pytest.FixtureRequest) -> Any:
    """Each of the backends."""
    return load(request.param)


def rows_of(name: str, every: int = 0) -> dict[str, list[Case]]:
    """The rows that must pass on a backend, by operation; each row, or the sample of a library."""
    chosen = CASES[:: every or EVERY_HOW_MANY[name]]
    return op_drivers.by_operation([case for case in chosen if case.id not in DEVIATIONS[name]])


def operations() -> Any:
    """Each operation on each backend. Where the library is missing, one test is skipped."""
    pairs = [
        (operation, name)
        for name in LIBRARIES
        for operation in (rows_of(name) if INSTALLED[name] else [CASES[0].operation])
    ]
    return pytest.mark.parametrize(("operation", "name"), pairs)


@operations()
def test_operation(operation: str, name: str, record_property: Any) -> None:
    load(name)
    for case in rows_of(name)[operation]:
        op_drivers.run_checks(case, name)
        op_drivers.check_arrays_untouched(case, name)
    row_counts.tell(record_property, name, len(rows_of(name)[operation]))


WITH_DPNP = list(op_drivers.by_operation(CASES)) if INSTALLED["sycl"] else ["without dpnp"]


@pytest.mark.long
@pytest.mark.parametrize("operation", WITH_DPNP)
def test_every_row_on_sycl(operation: str) -> None:
    load("sycl")
    for case in rows_of("sycl", every=1).get(operation, []):
        op_drivers.run_checks(case, "sycl")
        op_drivers.check_arrays_untouched(case, "sycl")


FAILURES = (AssertionError, IndexError, RuntimeError, RuntimeWarning, TypeError, ValueError)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_deviation_is_one(name: str) -> None:
    load(name)
    for case in CASES:
        if case.id in DEVIATIONS[name]:
            with pytest.raises(FAILURES), op_drivers.naming(case.id):
                op_drivers.run_checks(case, name)


def test_deviations_are_rows_and_few() -> None:
    known = {case.id for case in CASES}
    for name in LIBRARIES:
        assert DEVIATIONS[name].keys() <= known
        own = [reason for reason in DEVIATIONS[name].values() if reason is not REVERSED]
        assert len(own) < 0.01 * len(CASES)
        assert all(reason for reason in DEVIATIONS[name].values())


# --- what the module says ------------------------------------------------------------------------


def test_fulfils_the_protocol_in_under_90_lines(module: Any) -> None:
    names = {name for name in vars(tn.Backend) if not name.startswith("_")}
    assert all(hasattr(module, name) for name in names)
    source = pathlib.Path(module.__file__).read_text(encoding="utf-8")
    assert len(source.splitlines()) < 90


def test_arrays_come_from_the_host_and_go_back(module: Any) -> None:
    device = tn.get_device(module.name)
    for dtype in ("float64", "float32", "int64", "int8", "bool"):
        host = np.asarray([[0, 1, 2], [3, 4, 5]]).astype(dtype)
        for source in (host, host.T, host[::-1, ::-1], host[:, :0], np.asarray(host[1, 1])):
            array = device.from_host(source)
            back = tn.to_host(array)
            assert type(back) is np.ndarray and back.dtype == host.dtype
            np.testing.assert_array_equal(back, source)
            assert device.holds(array) and not tn.get_device("numpy").owns(array)
    device.synchronize()


def test_later_writes_on_the_host_do_not_reach_the_device(module: Any) -> None:
    host = np.zeros(1000)
    x = tn.asarray(host, device=module.name)
    host[:] = 1.0
    assert float(F.sum(x)) == 0.0


def test_float64_stays_float64(module: Any) -> None:
    x = tn.asarray(np.asarray([1.0, 2.0]), device=module.name)
    y = F.exp(x) * 2.0
    F.sum(y).backward()
    assert [tn.to_host(a).dtype for a in (x.array, y.array, x.grad)] == [np.float64] * 3
    np.testing.assert_allclose(tn.to_host(x.grad), 2 * np.exp([1.0, 2.0]), rtol=1e-15)


def test_add_at_adds_where_indices_meet(module: Any) -> None:
    x = tn.asarray(np.arange(6.0).reshape(3, 2), device=module.name)
    F.sum(x[[0, 2, 0, -1]]).backward()
    np.testing.assert_array_equal(tn.to_host(x.grad), [[2, 2], [0, 0], [2, 2]])


def test_devices_do_not_mix(module: Any) -> None:
    x = tn.asarray(np.ones(2), device=module.name)
    for other in ("numpy", "strict:device1"):
        y = tn.asarray(np.ones(2), device=other)
        with pytest.raises(DeviceMixError, match=rf"on {module.name}.* on {other}.*to_device"):
            x * y
        z = F.sum(x * y.to_device(module.name))
        z.backward()
        assert y.grad_var.device is y.device and float(F.sum(y.grad_var)) == 2.0


def test_sizes_are_numbers(module: Any) -> None:
    x = tn.asarray(np.ones((2, 3)), device=module.name)
    with MemoryHook() as memory:
        y = F.exp(x)
    assert x.size == 6 and memory.current_bytes() == 48 and y.size == 6


def test_writing_to_an_item_gives_a_new_array(module: Any) -> None:
    x = tn.asarray(np.zeros(3), device=module.name)
    y = x * 1.0
    y[1:] = 5.0
    np.testing.assert_array_equal(tn.to_host(x.array), [0, 0, 0])
    np.testing.assert_array_equal(tn.to_host(y.array), [0, 5, 5])


def test_a_large_gelu_is_computed_in_blocks(module: Any) -> None:
    host = np.linspace(-4, 4, 70_001)
    y = F.gelu(tn.asarray(host, device=module.name))
    np.testing.assert_allclose(tn.to_host(y.array), F.gelu(tn.asarray(host)).array, atol=1e-14)


@pytest.mark.parametrize("call", test_host_data.BESIDE)
def test_arrays_of_numpy_go_to_the_variable_beside(
    call: str, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_host_data, "AWAY", module.name)
    with tn.using_device("strict:device2"):
        assert test_host_data.BESIDE[call]().device is tn.get_device(module.name)


@pytest.mark.parametrize("make", test_host_data.CURRENT)
def test_arrays_of_numpy_go_to_the_current_device(make: str, module: Any) -> None:
    with tn.using_device(module.name):
        assert test_host_data.CURRENT[make]().device is tn.get_device(module.name)


def test_a_graph_is_freed_with_its_last_variable(module: Any) -> None:
    x = tn.asarray(np.ones(3), device=module.name, requires_grad=True)
    inner = F.exp(x) * 2.0
    loss = F.sum(inner * inner)
    loss.backward()
    held = [weakref.ref(one) for one in (inner, inner.node, loss, loss.node)]
    del inner, loss
    assert [reference() for reference in held] == [None] * 4
    np.testing.assert_allclose(tn.to_host(x.grad), np.full(3, 8 * np.exp(2.0)), rtol=1e-14)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_an_optimizer_go_on_alike(copied: Any, module: Any) -> None:
    def step(model: nn.Module, optimizer: nn.Optimizer) -> None:
        optimizer.cleargrads()
        F.sum(model(np.ones((2, 3))) ** 2).backward()
        optimizer.update()

    layer = nn.Linear(3, 2, device=module.name, dtype="float64")
    pair = (layer, nn.Adam(layer))
    step(*pair)
    twin = copied(pair)
    step(*pair)
    step(*twin)
    assert twin[0].weight.device is tn.get_device(module.name)
    np.testing.assert_array_equal(tn.to_host(twin[0].weight), tn.to_host(layer.weight))


def test_threads_compute_at_the_same_time(module: Any) -> None:
    def slopes(k: int) -> Any:
        with tn.using_device(module.name if k % 2 else "numpy"):
            x = tn.asarray(np.full(50, k / 8), requires_grad=True)
            for _ in range(20):
                x.cleargrad()
                F.sum(F.exp(x) * x).backward()
            return str(x.device), tn.to_host(x.grad)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(slopes, range(8)))
    for k, (device, grad) in enumerate(found):
        assert device == (str(tn.get_device(module.name)) if k % 2 else "numpy")
        np.testing.assert_allclose(grad, np.full(50, np.exp(k / 8) * (1 + k / 8)), rtol=1e-13)


def test_a_tensor_that_requires_a_gradient_is_refused() -> None:
    load("torch")
    import torch

    tn.Variable(torch.ones(2))
    with pytest.raises(TypeError, match=r"Give tensor.detach\(\)"):
        tn.Variable(torch.ones(2, requires_grad=True))
    with pytest.raises(TypeError, match=r"on meta; known are cpu.*Give tensor.cpu\(\)"):
        tn.Variable(torch.ones(2, device="meta"))


def test_several_devices_of_jax_do_not_mix() -> None:
    """In a process of its own, since JAX makes its devices once."""
    load("jax")
    program = (
        "import tinynode as tn\n"
        "x, y = (tn.asarray([1.0, 2.0], device=d) for d in ('jax:0', 'jax:1'))\n"
        "z = x * y.to_device('jax:0')\n"
        "tn.functions.sum(z).backward()\n"
        "print(z.device, y.grad_var.device, y.grad)\n"
        "x * y\n"
    )
    paths = os.pathsep.join([str(ROOT), str(ROOT / "backends")])
    environment = os.environ | {
        "PYTHONPATH": paths,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.stdout.split("[")[0].split() == ["jax:0", "jax:1"], done.stderr
    assert re.search(r"DeviceMixError: .*input 0 on jax:0, input 1 on jax:1", done.stderr)


# --- dpnp ----------------------------------------------------------------------------------------


class PlusOneOrTwo(tn.FunctionNode):
    """y = x + 1 by forward_cpu, x + 2 by forward_gpu."""

    def forward_cpu(self, inputs: Any) -> Any:
        return (inputs[0] + 1.0,)

    def forward_gpu(self, inputs: Any) -> Any:
        return (inputs[0] + 2.0,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        return grad_outputs


def loss_and_gradients(device: str) -> list[Any]:
    """A small convolution with dropout and embedding beside it, and all its gradients."""
    with tn.using_device(device), tn.using_config("dtype", "float64"):
        tn.seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 3, 3), nn.BatchNorm(3), F.relu, nn.MaxPool2d(2), nn.Flatten()
        )
        words = nn.Embedding(5, 27)
        images = np.random.default_rng(0).normal(size=(4, 1, 8, 8))
        scores = F.matmul(model(images), words(np.array([0, 2, 2])).T)
        loss = F.softmax_cross_entropy(F.dropout(scores, 0.25), np.array([0, 1, 2, 0]))
        loss.backward()
        return [loss, *(p.grad for p in (*model.parameters(), *words.parameters()))]


def test_forward_gpu_runs_where_the_capabilities_have_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    sycl = load("sycl")
    x = tn.asarray([1.0, 2.0], device="sycl", requires_grad=True)
    found = []
    for capabilities in (sycl.capabilities, sycl.capabilities | {"gpu"}):
        monkeypatch.setattr(sycl, "capabilities", capabilities)
        found.append(tn.to_host(PlusOneOrTwo().apply((x,))[0]).tolist())
        for case in CASES[::200]:
            op_drivers.run_checks(case, "sycl")
        pairs = zip(loss_and_gradients("sycl"), loss_and_gradients("numpy"), strict=True)
        for ours, numpys in pairs:
            np.testing.assert_allclose(tn.to_host(ours), tn.to_host(numpys), 1e-11, 1e-13)
    assert found == [[2.0, 3.0], [3.0, 4.0]]


def test_dpnp_refuses_silent_copies() -> None:
    """The point of this backend: on a lenient library, the table would hide copies."""
    load("sycl")
    array = tn.asarray([1.0], device="sycl").array
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.asarray(array)
    with pytest.raises(TypeError):
        array + np.ones(1)


def test_sycl_without_a_driver_names_the_driver() -> None:
    load("sycl")
    done = subprocess.run(
        [sys.executable, "-c", "import tinynode as tn\ntn.asarray([1.0], device='sycl')"],
        env=os.environ
        | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'backends'}", "OCL_ICD_FILENAMES": "nowhere"},
        capture_output=True,
        text=True,
    )
    error = done.stderr.strip().splitlines()[-1]
    assert "SYCL found no CPU" in error and "libintelocl.so" in error
    assert "pip install tinynode[sycl]" in error and "OCL_ICD_FILENAMES" in error


# --- the page about them -------------------------------------------------------------------------


def test_the_page_s_examples_run_where_pytorch_is(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those in ``py`` fences need PyTorch; ``test_docs.py`` runs the others everywhere."""
    load("torch")
    text = (ROOT / "docs" / "write-a-backend.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```py\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", text, re.M | re.S)
    assert len(blocks) >= 2
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for code, expected in blocks:
        exec(compile(code, "write-a-backend.md", "exec"), names)
        assert capsys.readouterr().out.strip() == expected.strip()
