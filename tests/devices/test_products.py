"""Products in shares: the results of NumPy, on one thread of BLAS."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
import tinynode_fast
from tinynode.devices import products
from tinynode.devices.products import BlasThreads, matrix_product

SHAPES = [
    ((50, 40), (40, 30)),
    ((30, 40), (40, 50)),  # in shares of columns
    ((7, 40), (40, 60)),
    ((5, 6, 40), (40, 60)),
    ((5, 30, 40), (5, 40, 20)),
    ((2, 3, 30, 40), (2, 3, 40, 20)),
    ((1, 3000), (3000, 40)),
]
UNSHARED = [((3000, 40), (40,)), ((40,), (40, 3000)), ((30, 40), (5, 40, 20))]


class Blas:
    """A library whose threads are counted; ``history`` has the numbers that were set."""

    def __init__(self, number: int = 3) -> None:
        self.number = number
        self.history: list[int] = []

    def get(self) -> int:
        return self.number

    def set(self, number: int) -> None:
        self.number = number
        self.history.append(number)


@pytest.fixture
def blas(monkeypatch: pytest.MonkeyPatch) -> Iterator[Blas]:
    """Three threads of BLAS, and three cores; products from 10,000 operations are shared."""
    library = Blas()
    switch = BlasThreads(library.get, library.set)
    monkeypatch.setattr(products, "blas_threads", lambda: switch)
    monkeypatch.setattr(products, "thread_count", lambda: 3)
    monkeypatch.setattr(products, "SMALL", 100)
    monkeypatch.setattr(products, "LARGE", 10_000)
    monkeypatch.setattr(products, "LONG", 10_000)
    yield library
    assert library.number == 3


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of shares of each shared product."""
    noted: list[int] = []
    real = products.in_shares

    def in_shares(length: int, size: int, work: Callable[[int, int], Any]) -> list[Any]:
        results = real(length, size, work)
        noted.append(len(results))
        return results

    monkeypatch.setattr(products, "in_shares", in_shares)
    return noted


def pair(x: tuple[int, ...], y: tuple[int, ...], dtype: Any = np.float32) -> Any:
    rng = np.random.default_rng(0)
    return rng.normal(size=x).astype(dtype), rng.normal(size=y).astype(dtype)


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_a_shared_product(left: Any, right: Any, dtype: Any, blas: Blas, shares: Any) -> None:
    x, y = pair(left, right, dtype)
    z = matrix_product(x, y)
    assert z.dtype == dtype and shares in ([2], [3])
    np.testing.assert_allclose(z, np.matmul(x, y), rtol=1e-4, atol=1e-4)
    out = np.full_like(z, 7)
    assert matrix_product(x, y, out) is out
    np.testing.assert_array_equal(out, z)
    assert blas.history == [1, 3, 1, 3]


@pytest.mark.parametrize("order", ["C", "F"])
def test_views_of_other_orders(order: Any, blas: Blas, shares: Any) -> None:
    x, y = pair((40, 50), (60, 40), np.float64)
    out = np.zeros((50, 60), order=order)
    assert matrix_product(x.T, y.T, out) is out and shares == [3]
    np.testing.assert_allclose(out, x.T @ y.T)


@pytest.mark.parametrize("shifted", [0, 1])
@pytest.mark.parametrize("order", ["wide", "tall"])
@pytest.mark.parametrize("operand", [0, 1])
def test_out_may_overlap_an_operand(
    operand: int, order: str, shifted: int, blas: Blas, shares: Any
) -> None:
    """NumPy's product reads a copy then; a share would read what another share wrote."""
    memory = np.random.default_rng(0).normal(size=(61, 60))
    left, right = ((40, 60), (60, 60)) if order == "wide" else ((60, 60), (60, 60))
    pair_ = [
        np.random.default_rng(1).normal(size=left),
        np.random.default_rng(2).normal(size=right),
    ]
    inside = memory[: pair_[operand].shape[0]]
    inside[:] = pair_[operand]
    pair_[operand] = inside
    expected = pair_[0].copy() @ pair_[1].copy()
    out = memory[shifted : shifted + left[0]]
    assert matrix_product(*pair_, out) is out and shares == []
    np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(51, 30), (49, 30), (50, 31), (2, 50, 30), (1500,)])
def test_out_of_another_shape_is_numpys_matter(shape: Any, blas: Blas) -> None:
    x, y = pair((50, 40), (40, 30))
    found, expected = np.full(shape, 7, x.dtype), np.full(shape, 7, x.dtype)
    try:
        np.matmul(x, y, expected)
    except ValueError as error:
        with pytest.raises(ValueError, match=r"matmul") as ours:
            matrix_product(x, y, found)
        assert str(ours.value) == str(error)
    else:
        matrix_product(x, y, found)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("left", "right"), UNSHARED)
def test_other_products_are_numpys_on_one_thread(
    left: Any, right: Any, blas: Blas, shares: Any
) -> None:
    x, y = pair(left, right)
    np.testing.assert_array_equal(matrix_product(x, y), np.matmul(x, y))
    assert shares == [] and blas.history == [1, 3]


@pytest.mark.parametrize("device", ["numpy", "strict"])
@pytest.mark.parametrize(
    ("left", "right"),
    [((3000, 1), (1, 40)), ((3, 1), (5, 1, 4)), ((2, 1, 4, 1), (3, 1, 5)), ((0, 1), (1, 2))],
)
def test_a_column_times_a_row(left: Any, right: Any, device: str, blas: Blas, shares: Any) -> None:
    x, y = pair(left, right)
    a, b = (tn.get_device(device).from_host(z) for z in (x, y))
    np.testing.assert_array_equal(tn.to_host(matrix_product(a, b)), np.matmul(x, y))
    assert shares == [] and blas.history == []
    with pytest.raises(ValueError, match=r"shape|dimension"):
        matrix_product(*pair((3, 1), (3, 4)))


def test_a_column_times_a_row_into_an_array() -> None:
    x, y = pair((3, 1), (1, 4))
    out = np.empty((3, 4), np.float32)
    assert matrix_product(x, y, out) is out
    np.testing.assert_array_equal(out, x * y)


def test_small_products_leave_the_switch_alone(blas: Blas, shares: Any) -> None:
    x, y = pair((2, 3), (3, 4))
    np.testing.assert_array_equal(matrix_product(x, y), np.matmul(x, y))
    assert (shares, blas.history) == ([], [])


def test_middle_products_run_on_one_thread(blas: Blas, shares: Any) -> None:
    x, y = pair((10, 10), (10, 10))
    np.testing.assert_array_equal(matrix_product(x, y), np.matmul(x, y))
    assert (shares, blas.history) == ([], [1, 3])


def test_integers_and_mixed_dtypes_are_not_shared(blas: Blas, shares: Any) -> None:
    x, y = pair((50, 40), (40, 30))
    whole = (10 * x).astype(np.int64)
    assert matrix_product(whole, (10 * y).astype(np.int64)).dtype == np.int64
    assert matrix_product(x, y.astype(np.float64)).dtype == np.float64
    assert matrix_product(x.astype(np.float16), y.astype(np.float16)).dtype == np.float16
    assert shares == []


def test_a_block_of_one_thread_holds(blas: Blas, shares: Any) -> None:
    """``threadpool_limits(limits=1)`` of the user: no shares."""
    blas.number = 1
    x, y = pair((50, 40), (40, 30))
    np.testing.assert_array_equal(matrix_product(x, y), np.matmul(x, y))
    assert (shares, blas.history) == ([], [])
    blas.number = 3


def test_one_core_makes_no_shares(
    blas: Blas, shares: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "thread_count", lambda: 1)
    matrix_product(*pair((50, 40), (40, 30)))
    assert (shares, blas.history) == ([], [1, 3])


def test_an_error_gives_the_threads_back(blas: Blas, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="mismatch"):
        matrix_product(*pair((50, 40), (41, 30)))

    def fails(*_: Any) -> None:
        raise RuntimeError("in a share")

    monkeypatch.setattr(products, "in_shares", fails)
    with pytest.raises(RuntimeError, match="in a share"):
        matrix_product(*pair((50, 40), (40, 30)))
    assert blas.history == [1, 3, 1, 3]


@pytest.mark.parametrize("find", [products._switch_of_openblas, products._switch_by_threadpoolctl])
def test_the_switch_is_that_of_numpys_library(find: Any) -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    switch = find()
    pools = [p for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"]
    if switch is None or len(pools) != 1:
        pytest.skip("another BLAS, or several")
    before = switch.get()
    assert before == pools[0]["num_threads"]
    with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
        assert switch.get() == 1
    assert switch.get() == before


@pytest.mark.parametrize("name", ["MatMul", "MatMulOfTransposed", "Linear", "Convolution"])
def test_functions_share_their_products(name: str, blas: Blas, shares: Any) -> None:
    x, w = pair((60, 40), (50, 40))
    if name == "Convolution":
        x, w = pair((2, 4, 20, 20), (8, 4, 3, 3))
    a, b = tn.asarray(x, device="numpy"), tn.asarray(w, device="numpy")
    functions = {
        "MatMul": lambda: a @ tn.asarray(w.T.copy(), device="numpy"),
        "MatMulOfTransposed": lambda: tn.functions.products.times_transposed(a, b),
        "Linear": lambda: tn.functions.linear(a, b),
        "Convolution": lambda: tn.functions.conv2d(a, b),
    }
    functions[name]()
    assert shares


CONVOLUTIONS = {  # x, w, options; the images lie apart or joined, and gx is folded in the last
    "apart": ((5, 4, 9, 9), (8, 4, 3, 3), {}),
    "joined": ((5, 8, 5, 5), (8, 8, 3, 3), {}),
    "stride": ((5, 8, 15, 15), (8, 8, 3, 3), {"stride": 2}),
}


@pytest.mark.parametrize("device", ["numpy", "fast"])
@pytest.mark.parametrize("title", CONVOLUTIONS)
def test_a_convolution_in_shares_of_images(
    title: str, device: str, blas: Blas, shares: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right, how = CONVOLUTIONS[title]
    x, w = (tn.asarray(z, device=device) for z in pair(left, right, np.float64))

    def results() -> list[Any]:
        y = tn.functions.conv2d(x, w, **how)
        (first,) = tn.grad([tn.functions.sum(y**2)], [x])
        (second,) = tn.grad([tn.functions.sum(y**2)], [w])
        return [tn.to_host(z.array) for z in (y, first, second)]

    found = results()
    assert shares == [3, 3, 3] and blas.history == [1, 3] * 3
    monkeypatch.setattr(products, "LONG", 10**9)
    for one, wanted in zip(found, results(), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-12, atol=1e-12)


def test_a_convolution_without_images_is_one_share(blas: Blas, shares: Any) -> None:
    x, w = (tn.asarray(np.ones(shape)) for shape in ((0, 4, 9, 9), (8, 4, 3, 3)))
    y = tn.functions.conv2d(x, w)
    assert y.shape == (0, 8, 7, 7) and shares == []
    assert not tn.to_host(tn.grad([y], [w])[0].array).any()


def test_functions_have_no_other_products() -> None:
    """``xp.matmul`` would take all threads of BLAS."""
    folder = Path(tn.__file__).parent
    backend = Path(tinynode_fast.__file__).parent
    files = [*(folder / "functions").glob("*.py"), *backend.rglob("*.py")]
    found = {
        path.name
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "matmul"
        if ast.unparse(node.value).startswith(("xp", "numpy", "namespace_of"))
    }
    assert found == set()


def test_the_search_for_the_switch_leaves_no_reference_cycle() -> None:
    program = """
import gc, numpy
from tinynode.devices import products
gc.collect()
gc.disable()
products.matrix_product(numpy.ones((4, 4)), numpy.ones((4, 4)))
gc.collect()  # what the import of ctypes leaves
products.blas_threads.cache_clear()
products.matrix_product(numpy.ones((4, 4)), numpy.ones((4, 4)))
print(gc.collect())
"""
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # so the switch is not kept
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env
    )
    assert done.stdout.strip() == "0"
