"""Long sums: the error does not grow with the number of rows, whatever the axes and the layout.

NumPy adds up rows one after another, so a float32 sum of 10^6 rows of 0.1 is 1 % off. Here each
sum is compared with ``math.fsum``, which is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode.devices import mean_array, running_sum_array, sum_array

ULPS = 8
DTYPES = ["float16", "float32", "float64", "complex64", "complex128"]


def exact(x: Any, axes: tuple[int, ...] | None = None) -> Any:
    """The sums over axes by ``math.fsum``, as float64 or complex128."""
    axes = tuple(range(x.ndim)) if axes is None else tuple(i % x.ndim for i in axes)
    rest = [i for i in range(x.ndim) if i not in axes]
    shape = [x.shape[i] for i in rest]
    rows = x.transpose(*rest, *axes).reshape(math.prod(shape), -1)
    if x.dtype.kind == "c":
        return exact(rows.real, (1,)).reshape(shape) + 1j * exact(rows.imag, (1,)).reshape(shape)
    return np.asarray([math.fsum(map(float, row)) for row in rows]).reshape(shape)


def assert_near(found: Any, expected: Any, dtype: Any = None, ulps: float = ULPS) -> None:
    """Compare, with an error relative to the number, in units of the last place."""
    found = tn.to_host(found) if isinstance(found, tn.Variable) else np.asarray(found)
    eps = float(np.finfo(dtype or found.dtype).eps)
    wide = found.astype("complex128" if found.dtype.kind == "c" else "float64")
    np.testing.assert_allclose(wide, expected, rtol=ulps * eps, atol=0)


def tenths(shape: tuple[int, ...], dtype: str) -> Any:
    """0.1 everywhere, with an imaginary part of 0.3 for complex dtypes."""
    return np.full(shape, 0.1 + 0.3j if dtype.startswith("c") else 0.1, dtype)


LAYOUTS: dict[str, tuple[Callable[[str], Any], tuple[int, ...]]] = {
    "leading": (lambda dtype: tenths((20_000, 3), dtype), (0,)),
    "leading-long-rows": (lambda dtype: tenths((1000, 1100), dtype)[:, :1030].copy(), (0,)),
    "leading-odd": (lambda dtype: tenths((10_007, 7), dtype), (0,)),
    "few-more-than-the-longest": (lambda dtype: tenths((131, 5), dtype), (0,)),
    "middle": (lambda dtype: tenths((3, 10_000, 2), dtype), (1,)),
    "trailing": (lambda dtype: tenths((3, 20_000), dtype), (1,)),
    "all": (lambda dtype: tenths((200, 100), dtype), (0, 1)),
    "two-leading": (lambda dtype: tenths((100, 150, 3), dtype), (0, 1)),
    "outer-and-inner": (lambda dtype: tenths((4000, 3, 5), dtype), (0, 2)),
    "each-short": (lambda dtype: tenths((50, 2, 50, 2, 9), dtype), (0, 2, 4)),
    "transposed": (lambda dtype: tenths((3, 20_000), dtype).T, (1,)),
    "columns-of-a-transposed": (lambda dtype: tenths((20_000, 3), dtype).T, (1,)),
    "channels-last": (
        lambda dtype: tenths((150, 10, 10, 3), dtype).transpose(0, 3, 1, 2),
        (0, 2, 3),
    ),
    "reversed": (lambda dtype: tenths((20_000, 3), dtype)[::-1, ::-1], (0,)),
    "every-second": (lambda dtype: tenths((30_000, 6), dtype)[::2, ::2], (0,)),
    "slice-of-rows": (lambda dtype: tenths((15_000, 4), dtype)[:, 1:3], (0, 1)),
    "repeated-row": (lambda dtype: np.broadcast_to(tenths((3,), dtype), (20_000, 3)), (0,)),
    "repeated-column": (lambda dtype: np.broadcast_to(tenths((3, 1), dtype), (3, 20_000)), (1,)),
    "repeated-columns": (
        lambda dtype: np.broadcast_to(tenths((20_000, 1), dtype), (20_000, 3)),
        (0,),
    ),
    "repeated-number": (lambda dtype: np.broadcast_to(tenths((), dtype), (20_000, 3)), (0,)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_along_any_axes_of_any_layout(layout: str, dtype: str) -> None:
    make, axes = LAYOUTS[layout]
    x = make(dtype)
    total = sum_array(x, axes)
    assert total.dtype == dtype
    assert_near(total, exact(x, axes))
    kept = sum_array(x, axes, keepdims=True)
    assert kept.shape == tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    np.testing.assert_array_equal(kept.reshape(total.shape), total)
    if not dtype.startswith("c"):
        number = math.prod(x.shape[i] for i in axes)
        mean = mean_array(x, axes)
        assert mean.dtype == dtype
        assert_near(mean, exact(x, axes) / number)


def test_the_layouts_of_the_results_are_those_of_numpy_in_value() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        shape = rng.integers(1, 9, rng.integers(1, 5))
        shape[rng.integers(len(shape))] *= rng.choice([1, 1, 20, 200])
        x = rng.integers(-4, 5, shape).astype("float32")
        x = x.transpose(rng.permutation(x.ndim))
        index = [slice(None, None, int(rng.choice([-2, -1, 1, 2]))) for _ in x.shape]
        x = x[tuple(index)]
        axes = tuple(i for i in range(x.ndim) if rng.random() < 0.6)
        keepdims = bool(rng.random() < 0.5)
        expected = np.sum(x, axis=axes, keepdims=keepdims)
        found = sum_array(x, axes, keepdims)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)  # sums of integers are exact


def test_options_of_sums() -> None:
    x = np.full((300, 2), 0.5, "float32")
    assert sum_array(x, None).tolist() == 300
    assert sum_array(x, -2).tolist() == [150, 150]
    assert sum_array(x, (-1, 0)).tolist() == 300
    assert sum_array(x[::2], ()).tolist() == x[::2].tolist()
    assert sum_array(x, 0, dtype=np.float64).dtype == np.float64
    assert sum_array(x.astype("float16"), 0, dtype=np.float32).dtype == np.float32
    many = np.ones((300, 2), bool)
    assert sum_array(many, 0).tolist() == [300, 300]
    assert sum_array(np.zeros((0, 300), "float32"), 0).tolist() == [0] * 300
    with pytest.warns(RuntimeWarning):
        assert np.isnan(mean_array(np.zeros((0, 300), "float32"), 0)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    "shape, axis",
    [((100_003,), 0), ((30_007, 3), 0), ((3, 20_000), 1), ((2, 1025, 70), 1), ((1300, 2, 3), 0)],
)
def test_running_sums(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    x = tenths(shape, dtype)
    numbers = np.arange(1, shape[axis] + 1).reshape(-1, *[1] * (len(shape) - axis - 1))
    wide = x.astype("complex128" if dtype.startswith("c") else "float64")
    for layout in (x, np.asfortranarray(x), np.flip(x)):
        found = running_sum_array(layout, axis)
        assert found.dtype == dtype
        assert_near(found, wide * numbers, ulps=32)
    whole = np.random.default_rng(1).integers(-9, 9, shape)
    found = running_sum_array(whole.astype(dtype), axis)
    np.testing.assert_array_equal(found, np.cumsum(whole, axis))  # such sums are exact


def test_infinities_and_nans_stay_in_the_column() -> None:
    x = np.ones((5000, 4), "float32")
    x[77, 0], x[4999, 1], x[3, 2] = np.inf, np.nan, -np.inf
    assert sum_array(x, 0).tolist()[3] == 5000
    np.testing.assert_array_equal(sum_array(x, 0)[:3], [np.inf, np.nan, -np.inf])


# --- functions -----------------------------------------------------------------------------------

MANY = 200_000


def near_100(rows: int, dtype: str = "float32") -> Any:
    """Two columns of 99, 101, 99, ...: mean 100, variance 1."""
    return np.repeat(np.where(np.arange(rows) % 2, 101, 99).astype(dtype)[:, None], 2, axis=1)


@pytest.mark.parametrize("device", ["numpy", "fast"])
def test_the_gradient_of_a_bias_over_many_rows(device: str) -> None:
    bias = tn.asarray(np.zeros(2, "float32"), device=device)
    x = tn.asarray(np.zeros((1_000_000, 2), "float32"), device=device, requires_grad=False)
    (fn.sum(x + bias) * 0.1).backward()
    assert_near(bias.grad, 1_000_000 * float(np.float32(0.1)))


def test_mean_variance_and_standard_deviation() -> None:
    x = near_100(4_000_000)
    assert_near(fn.mean(x, 0), 100)
    assert_near(fn.var(x, 0), 1)
    assert_near(fn.std(x, 0), 1)
    assert_near(fn.mean(x, 0, weights=np.full(len(x), 0.1, "float32")), 100)


def test_norms() -> None:
    x = tenths((MANY, 2), "float32")
    square = MANY * float(x[0, 0]) ** 2
    assert_near(fn.linalg.vector_norm(x, axis=0), square**0.5)
    assert_near(fn.linalg.vector_norm(x, axis=0, ord=1), MANY * float(x[0, 0]))
    assert_near(fn.linalg.matrix_norm(x[:, :1]), square**0.5)
    assert_near(fn.linalg.matrix_norm(x, ord=1), MANY * float(x[0, 0]))


def test_batch_statistics() -> None:
    x = near_100(MANY).reshape(MANY, 2, 1, 1)
    mean = tn.Variable(np.zeros(2, "float32"), requires_grad=False)
    variance = tn.Variable(np.ones(2, "float32"), requires_grad=False)
    y = fn.batch_norm(x, None, None, running_mean=mean, running_variance=variance, momentum=1.0)
    assert_near(mean, 100)
    assert_near(variance, MANY / (MANY - 1))
    assert_near(fn.max(y), 1 / math.sqrt(1 + 1e-5))
    x = near_100(MANY)
    gamma = np.ones((MANY, 2), "float32")
    assert_near(fn.max(fn.layer_norm(x[None], gamma)), 1 / math.sqrt(1 + 1e-5))


def test_the_gradients_of_batch_statistics() -> None:
    x = tn.Variable(near_100(MANY))
    gamma, beta = (tn.Variable(np.ones(2, "float32")) for _ in range(2))
    y = fn.batch_norm(x, gamma, beta)
    fn.sum(y * np.float32(0.1)).backward()
    assert_near(beta.grad, MANY * float(np.float32(0.1)))
    np.testing.assert_allclose(x.grad, 0, atol=1e-6)


def test_softmax_along_a_leading_axis() -> None:
    x = np.zeros((MANY, 2), "float32")
    assert_near(fn.softmax(x, axis=0), 1 / MANY)
    assert_near(fn.log_softmax(x, axis=0), -math.log(MANY))
    assert_near(fn.logsumexp(x, axis=0), math.log(MANY))
    assert_near(fn.logsumexp(x + np.log(np.float32(0.1)), axis=0), math.log(MANY * 0.1))


EINSUMS = ["i->", "ij->j", "ij->", "ij,ij->j", "ij,ij->", "ij,i->j", "ij,ji->i", "ij,ji->"]
EINSUMS += ["ij,jk->", "ji,ji->j"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("subscripts", EINSUMS)
def test_einsum_of_many_terms(subscripts: str, dtype: str) -> None:
    lengths = {"i": 30_000, "j": 3, "k": 2}
    if subscripts == "ij,ji->i":
        lengths = {"i": 3, "j": 30_000}
    texts = subscripts.partition("->")[0].split(",")
    arrays = [tenths(tuple(lengths[label] for label in text), dtype) for text in texts]
    summed = set("".join(texts)) - set(subscripts.partition("->")[2])
    one = complex(arrays[0].flat[0]) ** len(texts)
    expected = one * math.prod(lengths[label] for label in summed)
    assert_near(
        fn.einsum(subscripts, *arrays), expected if dtype == "complex64" else expected.real
    )


def test_einsum_in_blocks_is_einsum() -> None:
    rng = np.random.default_rng(3)
    for subscripts in (
        *EINSUMS,
        *("ij->ji", "ij,ik->jk", "ij,kj->", "bij,bij->b", "bij,bji->b", "i,j->ij", ",i->i"),
        *("ij,k->k", "ij,ij->ij", "ijk,jk->i", "ij,jk,k->", "abcdi,abcdi->a"),
    ):
        for long in "ijk":
            lengths = dict.fromkeys("abcdijk", 3) | {long: 261}
            texts = subscripts.partition("->")[0].split(",")
            shapes = [tuple(lengths[label] for label in text) for text in texts]
            arrays = [rng.integers(-4, 5, shape).astype("float64") for shape in shapes]
            found = tn.to_host(fn.einsum(subscripts, *arrays))
            np.testing.assert_array_equal(found, np.einsum(subscripts, *arrays))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_vecdot_of_long_vectors(dtype: str) -> None:
    x = tenths((300_000, 2), dtype)
    square = abs(complex(x[0, 0])) ** 2 * len(x)
    assert_near(fn.vecdot(x, x, axis=-2), square)
    assert_near(fn.vecdot(x[:, 0].copy(), x[:, 0]), square)
    assert_near(fn.vecdot(np.ascontiguousarray(x.T), x[:, 0]), square)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("size", [(), (3,)])
def test_many_rows_at_one_place(size: tuple[int, ...], dtype: str) -> None:
    rows = 100_000 if dtype != "float16" else 10_000
    values = tenths((rows, *size), dtype)
    for places in (np.arange(rows) % 7, np.sort(np.arange(rows) % 7), np.zeros(rows, int)):
        counts = np.bincount(places, minlength=7).reshape(7, *[1] * len(size))
        found = fn.index_add(np.zeros((7, *size), dtype), places, values)
        wide = values[:7].astype("complex128" if dtype.startswith("c") else "float64")
        assert_near(found, counts * wide, ulps=64)


@pytest.mark.parametrize("size", [(), (4,)])
def test_a_hot_row_of_a_large_table(size: tuple[int, ...]) -> None:
    table = tn.Variable(np.zeros((50_000, *size), "float32"))
    places = np.where(np.arange(100_000) % 2, 3, np.arange(100_000) // 2)
    (fn.sum(fn.take(table, places, axis=0)) * 0.1).backward()
    assert_near(table.grad[3], 50_001 * float(np.float32(0.1)))


def test_a_function_with_hidden_axes() -> None:
    x = tenths((2, MANY), "float32")
    total = MANY * float(x[0, 0])
    columns = np.ascontiguousarray(x.T)
    assert_near(tn.vmap(fn.sum, in_axes=1)(columns), total)
    assert_near(tn.vmap(fn.mean, in_axes=1)(columns), float(x[0, 0]))
    running = tn.vmap(lambda column: fn.cumulative_sum(column, axis=0), in_axes=1)(columns)
    assert_near(running[:, -1], total, ulps=32)
    shared = tn.gradient(lambda w: fn.sum(tn.vmap(lambda row: row * w)(columns)))
    assert_near(shared(np.ones(2, "float32")), total)
