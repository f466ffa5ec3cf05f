"""The whole op table on PyTorch's and on JAX's arrays.

They run where the library is installed. Each row is compared with NumPy. On PyTorch all rows run.
JAX compiles each operation for each shape, so there a fixed sample runs, and all rows with
``OP_TABLE=whole`` in the environment (about a quarter of an hour).

What a library does otherwise is in ``DEVIATIONS``, with the reason; such a row must fail.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import numpy as np
import op_drivers
import pytest
import row_counts
from op_cases import CASES, Case

import tinynode as tn
from tinynode.devices import get_backend
from tinynode.errors import DeviceMixError
from tinynode.hooks import MemoryHook

pytestmark = pytest.mark.slow

F = tn.functions
ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = ("torch", "jax")
INSTALLED = {name: importlib.util.find_spec(name) is not None for name in LIBRARIES}
WHOLE = os.environ.get("OP_TABLE") == "whole"
EVERY_HOW_MANY = {"torch": 1, "jax": 1 if WHOLE else 100}

REVERSED = "tensors have no negative strides, so none can be laid out in memory like this"
SINGULAR = "the determinant is 0 but for rounding, of another size than NumPy's"
LOG = "the last bit of the float32 logarithm differs from NumPy's, and is compared at float64"
NARROW = "jax.numpy.cumulative_prod leaves int32 as it is; the standard asks for int64"

DEVIATIONS: dict[str, dict[str, str]] = {
    "torch": {
        **{
            case.id: REVERSED
            for case in CASES
            if any(one.layout == "reversed" for one in case.inputs)
        },
        "kl_divergence-float64-and-float32": LOG,
        "det-singular-of-ten": SINGULAR,
    },
    "jax": {
        "kl_divergence-float64-and-float32": LOG,
        "cumulative_prod-integers": NARROW,
        "cumulative_prod-integers-initial": NARROW,
    },
}


def load(name: str) -> Any:
    """The backend module; the test is skipped where its library is missing."""
    if not INSTALLED[name]:
        pytest.skip(f"{name} is not installed")
    return get_backend(name)


@pytest.fixture(params=LIBRARIES)
def module(request: pytest.FixtureRequest) -> Any:
    """Each of the backends."""
    return load(request.param)


def rows_of(name: str) -> dict[str, list[Case]]:
    """The rows that must pass on a backend, by operation."""
    chosen = CASES[:: EVERY_HOW_MANY[name]]
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


FAILURES = (AssertionError, RuntimeError, RuntimeWarning, TypeError, ValueError)


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
