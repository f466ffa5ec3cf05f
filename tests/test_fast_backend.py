"""The fast backend: which kernels run, when they fall back, blocks, threads, optimizers.

That results and gradients are right is shown by the op table, which runs on ``fast`` with every
kernel forced.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest
from fast_kernels import force_kernels, set_limits
from kernel_cases import (
    COUNTS,
    HALF,
    KERNEL_CASES,
    LABELS,
    WINDOWS,
    channels_last,
    check_kernel,
    draw,
    run_kernel,
)

import tinynode as tn
import tinynode_fast
import tinynode_numpy
from tinynode import nn, show
from tinynode.devices import Fallback, fallback_uses, kernel_uses
from tinynode.functions import convolution, pooling
from tinynode.functions.convolution import Windows
from tinynode_fast import blocks, images, rows, updates
from tinynode_fast.limits import LIMITS
from tinynode_fast.table import PLAIN

F = tn.functions
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def fast_device():
    fallback_uses.clear()
    kernel_uses.clear()
    with tn.using_device("fast"):
        yield
    fallback_uses.clear()
    kernel_uses.clear()


# --- which kernels run ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNEL_CASES)
def test_a_kernel_runs_and_is_counted(name):
    check_kernel(name)
    ((key, use),) = kernel_uses.items()
    assert key == ("fast", type(KERNEL_CASES[name][0]()).__name__, name)
    assert use.calls == 1 and use.seconds > 0
    assert fallback_uses == {}


SMALL = ["sigmoid", "gelu", "tanh_gelu", "softmax", "log_softmax", "standardize", "max_pool"]


@pytest.mark.parametrize("name", SMALL)
def test_a_small_array_runs_as_on_numpy(name):
    make, (x,) = KERNEL_CASES[name]
    assert type(tinynode_fast.forward(make(), (x[:2],))) is tuple
    assert kernel_uses == fallback_uses == {}


@pytest.mark.parametrize("name", ["conv2d", "conv2d_gradient_w", "max_pool", "max_pool_gradient"])
def test_images_with_channels_last_in_memory(name):
    arrays = KERNEL_CASES[name][1]
    given = [channels_last(x) if x.ndim == 4 and x.shape[0] > 4 else x for x in arrays]
    check_kernel(name, given)


@pytest.mark.parametrize("channels", [1, 3, 12])
def test_convolution_for_few_and_for_many_channels(channels):
    w = draw(4, channels, 3, 2)
    x = draw(5, channels, 8, 7)
    gy = draw(5, 4, *COUNTS)
    check_kernel("conv2d", [x, w])
    check_kernel("conv2d_gradient_w", [x, gy])


@pytest.mark.parametrize("name", ["silu", "tanh_gelu_gradient", "max_pool", "linear"])
def test_arrays_in_any_order_of_memory(name):
    given = []
    for x in KERNEL_CASES[name][1]:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        given.append(wide[..., ::2] if name != "linear" else x)
    check_kernel(name, given)
    if name in ("silu", "tanh_gelu_gradient"):
        check_kernel(name, [np.asfortranarray(x) for x in given])
        check_kernel(name, [np.asfortranarray(given[0]), *given[1:]])
        turned = [x.reshape(20, 30, 100).transpose(1, 2, 0) for x in KERNEL_CASES[name][1]]
        (y,) = check_kernel(name, turned)
        assert y.strides == turned[0].strides


def test_pooling_with_windows_that_overlap():
    x = draw(30, 9, 8, 7)
    best, winners = pooling.MaxPool2d(WINDOWS).forward((x,))
    nodes = [pooling.MaxPool2dGrad(WINDOWS, (8, 7)) for _ in range(2)]
    found = tinynode_fast.forward(nodes[0], (best, winners))
    np.testing.assert_allclose(found[0], nodes[1].forward((best, winners))[0], rtol=1e-6)
    assert [key[2] for key in kernel_uses] == ["max_pool_gradient"]


def test_a_class_of_a_user_falls_back_and_its_forward_fast_is_asked_first():
    class Twice(tn.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 2,)

    class Fast(Twice):
        def forward_fast(self, inputs):
            return (inputs[0] * 3,) if inputs[0].ndim == 1 else Fallback("vectors only")

    x = tn.Variable(np.ones(3))
    assert Twice().apply((x,))[0].array.tolist() == [2.0] * 3
    assert Fast().apply((x,))[0].array.tolist() == [3.0] * 3
    assert Fast().apply((F.reshape(x, (1, 3)),))[0].array.tolist() == [[2.0] * 3]
    assert list(kernel_uses) == [("fast", "Fast", "forward_fast")]
    assert list(fallback_uses) == [
        ("fast", "Twice", "no kernel for this class"),
        ("fast", "Fast", "vectors only"),
    ]


def test_a_wrong_forward_fast_is_an_error():
    class Wrong(tn.FunctionNode):
        def forward_fast(self, inputs):
            return None

    with pytest.raises(tn.errors.OutputError, match="Wrong"):
        Wrong().apply((tn.Variable(np.ones(3)),))


def test_a_subclass_of_a_class_with_a_kernel_has_none():
    class Mine(F.Sigmoid):
        pass

    Mine().apply((tn.Variable(draw(200, 300)),))
    assert list(fallback_uses) == [("fast", "Mine", "no kernel for this class")]


def test_plain_functions_are_neither_kernels_nor_fallbacks():
    assert not PLAIN & set(tinynode_fast.KERNELS)
    x = tn.Variable(draw(200, 300))
    F.sum(F.exp(x) * x + 1).backward()
    assert kernel_uses == fallback_uses == {}


def test_a_fallback_computes_and_is_counted():
    x = tn.Variable(draw(200, 300, dtype=HALF))
    F.sigmoid(x)
    ((key, use),) = fallback_uses.items()
    assert key == ("fast", "Sigmoid", "float16 has no kernel") and use.calls == 1


def square(size, name):
    border = size // 2
    windows = Windows((size, size), (1, 1), (border, border), (1, 1))
    return {
        "conv2d": lambda counts: convolution.Conv2d(windows, 1, counts),
        "conv2d_gradient_w": lambda counts: convolution.Conv2dGradW(windows, 1),
        "conv2d_gradient_x": lambda counts: convolution.Conv2dGradX(windows, 1, counts),
    }[name]


@pytest.mark.parametrize(
    ("name", "n", "channels", "side", "out", "size", "runs"),
    [
        ("conv2d", 1, 128, 4, 128, 3, False),
        ("conv2d", 8, 128, 4, 128, 3, True),
        ("conv2d", 16, 128, 4, 128, 3, True),
        ("conv2d_gradient_w", 1, 128, 4, 128, 3, False),
        ("conv2d_gradient_w", 16, 128, 4, 128, 3, True),
        ("conv2d_gradient_x", 1, 128, 4, 128, 3, False),
        ("conv2d_gradient_x", 2, 128, 4, 128, 3, True),
        ("conv2d_gradient_x", 16, 7, 8, 16, 3, False),
        ("conv2d_gradient_x", 16, 8, 8, 16, 3, True),
        ("conv2d", 8, 64, 8, 64, 1, False),
        ("conv2d_gradient_w", 8, 64, 8, 64, 1, False),
    ],
)
def test_convolutions_that_numpy_does_as_quickly(name, n, channels, side, out, size, runs):
    x, w, gy = (
        draw(n, channels, side, side),
        draw(out, channels, size, size),
        draw(n, out, side, side),
    )
    given = {"conv2d": (x, w), "conv2d_gradient_w": (x, gy), "conv2d_gradient_x": (gy, w)}[name]
    node = square(size, name)((side, side))
    (y,) = tinynode_fast.forward(node, given)
    assert [key[2] for key in kernel_uses] == ([name] if runs else [])
    (wanted,) = square(size, name)((side, side)).forward(given)
    np.testing.assert_allclose(y, wanted, rtol=1e-3, atol=2e-3)
    if size == 1:  # with the channels last in memory there is nothing to copy
        tinynode_fast.forward(square(size, name)((side, side)), (channels_last(x), given[1]))
        assert [key[2] for key in kernel_uses] == [name]


@pytest.mark.parametrize(
    "windows",
    [
        Windows((2, 2), (2, 2), (0, 0), (1, 1)),
        Windows((3, 2), (2, 2), (0, 0), (1, 1)),
        Windows((2, 3), (2, 2), (0, 0), (1, 1)),
        Windows((2, 2), (2, 2), (0, 0), (1, 2)),
    ],
)
def test_the_gradient_of_windows_that_share_elements_is_added_up(windows, monkeypatch):
    force_kernels(monkeypatch)
    counts = windows.counts((9, 8))
    gy, winners = draw(4, 3, *counts), RNG.integers(0, 4, (4, 3, *counts)).astype(np.int8)
    node = pooling.MaxPool2dGrad(windows, (9, 8))
    (y,), (wanted,) = tinynode_fast.forward(node, (gy, winners)), node.forward((gy, winners))
    np.testing.assert_allclose(y, wanted, rtol=1e-6)
    assert [key[2] for key in kernel_uses] == ["max_pool_gradient"]


def test_long_rows_are_added_up_as_numpy_does(monkeypatch):
    """NumPy adds pairwise, which rounds less than a product with ones."""
    x = draw(50, 1001)
    apart = []
    for limit in (1000, 1001):
        set_limits(monkeypatch, row_sum=limit)
        found = rows.row_sums(x)[:, 0], rows.row_products(x, x)[:, 0]
        wanted = x.sum(axis=1), (x * x).sum(axis=1)
        apart.append([bool((y != z).any()) for y, z in zip(found, wanted, strict=True)])
    assert apart == [[False, False], [True, True]]


@pytest.mark.parametrize("spread", [60.0, 95.0, 1000.0])
@pytest.mark.parametrize("length", [20, 300])
def test_softmax_of_rows_far_apart(spread, length, monkeypatch):
    """The rows lie far below the largest number, and so do some numbers of each row."""
    force_kernels(monkeypatch)
    set_limits(monkeypatch, block=1 << 16, sampled_rows=1)
    x = draw(30, length)
    x[1:] -= np.float32(spread)
    x[:, 0] += np.float32(spread / 2)
    (y,) = tinynode_fast.forward(F.Softmax(1), (x,))
    e = np.exp(x.astype("f8") - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-37)
    assert [key[2] for key in kernel_uses] == ["softmax"]


@pytest.mark.parametrize(
    ("shape", "runs"),
    [((192, 255), True), ((191, 255), False), ((192, 256), False), ((4, 2000), True)],
)
def test_softmax_runs_from_many_short_rows_or_for_threads(shape, runs, monkeypatch):
    if shape == (4, 2000):
        set_limits(monkeypatch, threaded=8000)
    tinynode_fast.forward(F.Softmax(1), (draw(*shape),))
    assert [key[2] for key in kernel_uses] == (["softmax"] if runs else [])


@pytest.mark.parametrize("ignored", [0, 6])
def test_the_lowest_and_the_highest_label_may_be_ignored(ignored):
    labels = np.concatenate([LABELS[:-2], [0, 6]])
    for node in (
        F.SoftmaxCrossEntropy("mean", ignored),
        F.SoftmaxCrossEntropyGrad("mean", ignored),
    ):
        x = draw(40, 7)
        given = (x, labels) if type(node) is F.SoftmaxCrossEntropy else (x, np.float32(1), labels)
        assert isinstance(tinynode_fast.forward(node, given), Fallback)
    assert kernel_uses == {}


@pytest.mark.parametrize(
    ("shape", "axis", "runs"),
    [
        ((256, 40), 0, True),
        ((255, 300), 0, False),
        ((256, 40), 1, True),
        ((255, 300), 1, False),
        ((300, 4096), 1, True),
        ((300, 4097), 1, False),
    ],
)
def test_sums_run_as_products_from_many_rows_and_up_to_long_rows(shape, axis, runs):
    x = draw(*shape)
    (y,) = F.Sum((axis,), False).apply((tn.Variable(x),))
    assert [key[2] for key in kernel_uses] == (["sum_axes"] if runs else [])
    np.testing.assert_allclose(y.array, x.sum(axis=axis), rtol=1e-3, atol=1e-2)


def test_images_come_in_parts_whose_columns_stay_in_the_cache(monkeypatch):
    set_limits(monkeypatch, columns=10)
    assert list(images.parts(5, 4)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert list(images.parts(2, 11)) == [slice(0, 1), slice(1, 2)]
    assert list(images.parts(2, 0)) == [slice(0, 2)]


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(64, 64), (4, 5000), (32, 512), (4, 50000)])
def test_softmax_of_a_few_rows_runs_as_on_numpy(name, shape):
    node = F.Softmax(1) if name == "softmax" else F.LogSoftmax(1)
    assert type(tinynode_fast.forward(node, (draw(*shape),))) is tuple
    assert kernel_uses == fallback_uses == {}


# --- edges of values -----------------------------------------------------------------------------


def test_softmax_of_rows_far_apart_and_of_rows_without_a_finite_number():
    x = draw(300, 20)
    x[0] += 500
    x[1] -= 500
    x[2, 3:] = -np.inf
    check_kernel("softmax", [x])
    x[3] = -np.inf
    (y,) = check_kernel("softmax", [x])
    assert not y[3].any()
    x[4, 5] = np.nan
    (y,) = check_kernel("softmax", [x])
    assert np.isnan(y[4]).all() and not np.isnan(y[5]).any()


@pytest.mark.parametrize("rows_above", [slice(None, None, 2), slice(290, None), slice(0, 290)])
def test_log_softmax_of_rows_far_apart(rows_above):
    """Also where the rows that are looked at first do not show it."""
    x = draw(300, 20, dtype=np.float64)
    x[rows_above] += 2000
    check_kernel("softmax", [x])
    check_kernel("log_softmax", [x.reshape(30, 10, 20)])


def test_labels_that_are_ignored_or_wrong():
    x = draw(40, 7)
    labels = np.where(LABELS == 3, 5, LABELS)
    x[labels == 5] = 100.0  # large losses, which count or not
    with tn.using_device("numpy"):
        wanted = F.softmax_cross_entropy(x, labels, ignore_label=5).array
    np.testing.assert_allclose(F.softmax_cross_entropy(x, labels, ignore_label=5).array, wanted)
    for wrong in (-2, 7):
        with pytest.raises(ValueError, match=f"labels must lie in 0 to 6.*got {wrong}"):
            F.softmax_cross_entropy(x, np.where(labels == 2, wrong, labels))
    with pytest.raises(ValueError, match=r"labels must lie in 0 to 6.*got -1"):
        F.softmax_cross_entropy(x, np.where(labels == 2, -1, labels), ignore_label=-100)


def test_extreme_values_of_activations_raise_no_warning():
    x = draw(200, 300)
    x[0, :6] = [np.inf, -1e30, 1e30, -3e38, 100, -100]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("sigmoid", "gelu", "silu"):
            (y,) = run_kernel(name, [x])[1]
            expected = [1.0 if name == "sigmoid" else np.inf, 0.0]
            np.testing.assert_allclose(y[0, :2], expected, atol=1e-30)


LARGE = [0.0, 2e13, -2e13, 1e19, -1e20, 3e38, -3e38, np.inf, -np.inf, 39.0, -41.0, 11.0]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("gelu", np.float32),
        ("gelu_gradient", np.float32),
        ("tanh_gelu", np.float32),
        ("tanh_gelu", np.float64),
        ("tanh_gelu_gradient", np.float32),
        ("tanh_gelu_gradient", np.float64),
    ],
)
def test_gelu_of_large_numbers(name, dtype):
    x = np.resize(np.asarray(LARGE, dtype), (200, 300))
    x[1:] = 0.5 * np.clip(x[1:], -1e30, 1e30)  # other blocks hold no infinity
    given = [x] if len(KERNEL_CASES[name][1]) == 1 else [x, np.ones_like(x)]
    with np.errstate(invalid="ignore"):  # 0 times infinity, in the portable forward too
        node, (y,) = run_kernel(name, given)
    assert [key[2] for key in kernel_uses] == [name]
    if "gradient" not in name:
        np.testing.assert_allclose(y[0, 1:8], np.where(x[0, 1:8] > 0, x[0, 1:8], 0))
        return
    assert np.isfinite(y).all()
    np.testing.assert_array_equal(y[0, 1:9], [1, 0, 1, 0, 1, 0, 1, 0])
    (expected,) = type(node)().forward(tuple(given))
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["gelu", "gelu_gradient", "tanh_gelu", "tanh_gelu_gradient"])
def test_gelu_keeps_nan_and_overflows_nowhere(name):
    x = draw(200, 300)
    x[0, :4] = [np.nan, 1e20, -1e20, 3e38]
    with np.errstate(over="raise", invalid="raise"):
        _, (y,) = run_kernel(name, [x, np.ones_like(x)][: len(KERNEL_CASES[name][1])])
    assert np.isnan(y[0, 0]) and np.isfinite(y.ravel()[1:]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithms_of_probabilities_are_never_above_0(dtype):
    """The largest number of a whole block is subtracted: the sum's rounding may show."""
    x = RNG.uniform(0, 8.9, (4000, 1)).astype(dtype) + np.asarray([0.0, -40, -60], dtype)
    (y,) = run_kernel("log_softmax", [x.reshape(400, 10, 3)])[1]
    assert [key[2] for key in kernel_uses] == ["log_softmax"]
    assert (y <= 0).all() and (y.reshape(-1, 3)[:, 0] > -1e-6).all()
    loss = F.softmax_cross_entropy(x, np.zeros(4000, int), reduction="none").array
    assert (loss >= 0).all() and (loss < 1e-6).all()


@pytest.mark.parametrize("length", [256, 1024, 4096])
def test_standardized_rows_far_from_0_round_as_on_numpy(length):
    rng = np.random.default_rng(length)  # tests that run before must not change the numbers
    x = (rng.standard_normal((64, length)) + 1e4).astype(np.float32)
    errors = []
    for outputs in (
        run_kernel("standardize", [x])[1],
        F.Standardize((1,), 1e-5, True).forward((x,)),
    ):
        exact = x.astype(np.float64)
        exact -= exact.mean(axis=1, keepdims=True)
        exact /= np.sqrt((exact**2).mean(axis=1, keepdims=True) + 1e-5)
        errors.append(np.abs(outputs[0] - exact).max())
    assert [key[2] for key in kernel_uses] == ["standardize"]
    assert errors[0] < 1.5 * errors[1] and errors[0] < 2.5e-3


def test_the_callers_errstate_holds_in_threads(monkeypatch):
    force_kernels(monkeypatch)

    def kernel(inputs, outputs, scratch):
        np.divide(inputs[0], 0.0, outputs[0])

    x, y = np.ones(100), np.empty(100)
    with np.errstate(divide="ignore"):
        blocks.run(kernel, (x,), (y,))
    assert np.isinf(y).all()
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        blocks.run(kernel, (x,), (y,))


# --- blocks and threads --------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 16, 17, 100])
def test_blocks_cover_every_element_once(length, monkeypatch):
    force_kernels(monkeypatch)
    seen = []

    def kernel(inputs, outputs, scratch):
        seen.append((len(inputs[0]), threading.get_ident()))
        assert scratch[0].shape == outputs[0].shape == inputs[0].shape
        scratch[0][...] = inputs[0]
        np.add(outputs[0], scratch[0], outputs[0])

    x, y = np.arange(length, dtype=float), np.ones(length)
    blocks.run(kernel, (x,), (y,), scratch=1)
    np.testing.assert_array_equal(y, x + 1)
    assert max(size for size, _ in seen) <= 8
    assert len({thread for _, thread in seen}) == (2 if length >= 16 else 1)


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch):
    force_kernels(monkeypatch)

    def kernel(inputs, outputs, scratch):
        if inputs[0][-1] == 99:
            raise ZeroDivisionError("the last block")

    with pytest.raises(ZeroDivisionError, match="the last block"):
        blocks.run(kernel, (np.arange(100.0),), (np.empty(100),))


class Failing:
    """A pool that takes one share, and runs it late; then it raises."""

    def __init__(self, error):
        self.error, self.taken, self.workers = error, [], []

    def submit(self, *call):
        if self.taken:
            raise self.error
        self.taken.append(call)
        self.workers.append(threading.Timer(0.05, call[0], call[1:]))
        self.workers[0].start()


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_shares_that_were_handed_over_are_waited_for(error, monkeypatch):
    force_kernels(monkeypatch)
    monkeypatch.setattr(blocks, "thread_count", lambda: 4)
    pool = Failing(error)
    monkeypatch.setattr(blocks, "pool", lambda: pool)
    x, y = np.arange(1.0, 101.0), np.zeros(100)
    if isinstance(error, MemoryError):
        with pytest.raises(MemoryError):
            blocks.run(_copy, (x,), (y,))
        np.testing.assert_array_equal(y[25:50], x[25:50])  # the first share was waited for
    else:
        blocks.run(_copy, (x,), (y,))
        np.testing.assert_array_equal(y, x)
    pool.workers[0].join()


def test_a_share_that_is_queued_and_refused_is_run_once(monkeypatch):
    """A pool may queue a call, and then fail to start a thread for it."""
    force_kernels(monkeypatch)
    queued = []

    class Queues:
        def submit(self, *call):
            queued.append(call)
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(blocks, "pool", Queues)
    x, y = np.arange(1.0, 101.0), np.zeros(100)
    blocks.run(_copy, (x,), (y,))
    np.testing.assert_array_equal(y, x)
    y[...] = 0
    (call,) = queued
    call[0](*call[1:])
    assert not y.any()


LATE = """
import sys, threading, time

def work():
    while threading.main_thread().is_alive():
        time.sleep(0.01)
    time.sleep(0.1)
    {late}
    x = numpy.ones(1 << 21, numpy.float32)
    y = numpy.zeros_like(x)
    blocks.run(copy, (x,), (y,))
    print("done", int(y.sum()), blocks.thread_count())

def copy(inputs, outputs, scratch):
    numpy.copyto(outputs[0], inputs[0])

{early}
threading.Thread(target=work).start()
"""
IMPORTS = "import numpy, tinynode; from tinynode_fast import blocks"
USED = "; copy_of = numpy.ones(1 << 21); blocks.run(copy, (copy_of,), (copy_of.copy(),))"


@pytest.mark.parametrize(
    ("early", "late"),
    [(IMPORTS, "pass"), (IMPORTS + USED, "pass"), ("", "global numpy, blocks; " + IMPORTS)],
)
def test_a_thread_that_outlives_the_main_thread(early, late):
    places = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": places}
    program = textwrap.dedent(LATE.format(early=early, late=late))
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    assert result.stdout == "done 2097152 2\n", result.stderr


def test_the_number_of_threads(monkeypatch):
    count = blocks.thread_count.__wrapped__
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert count() == 3
    for wrong in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", wrong)
        assert count() >= 1
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert count() == (os.cpu_count() or 1)


def test_small_arrays_do_not_touch_the_pool(monkeypatch):
    force_kernels(monkeypatch)
    set_limits(monkeypatch, threaded=1 << 20)

    def submit(*call):
        raise AssertionError("a thread was asked")

    monkeypatch.setattr(blocks, "submit", submit)
    check_kernel("gelu")


def test_two_threads_at_once(monkeypatch):
    force_kernels(monkeypatch)
    failures = []

    def work(name):
        try:
            for _ in range(5):
                check_kernel(name)
        except BaseException as error:
            failures.append((name, error))

    names = ["conv2d", "conv2d_gradient_w", "silu_gradient", "softmax"]
    workers = [threading.Thread(target=work, args=(name,)) for name in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []


def _child(queue):
    x = np.arange(100.0)
    y = np.empty(100)
    blocks.run(_copy, (x,), (y,))
    queue.put(bool((x == y).all()))


def _copy(inputs, outputs, scratch):
    np.copyto(outputs[0], inputs[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_makes_a_pool_of_its_own(monkeypatch):
    force_kernels(monkeypatch)
    blocks.run(_copy, (np.arange(100.0),), (np.empty(100),))
    assert blocks.pool.cache_info().currsize == 1
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    child.join(30)
    assert child.exitcode == 0 and queue.get(timeout=5)


@pytest.mark.parametrize("name", KERNEL_CASES)
def test_results_share_no_memory_with_other_results_or_inputs(name):
    _, first = run_kernel(name)
    kept = [y.copy() for y in first]
    _, second = run_kernel(name)
    for i, y in enumerate(first):
        np.testing.assert_array_equal(y, kept[i])
        others = [*first[:i], *second, *KERNEL_CASES[name][1]]
        assert not any(np.shares_memory(y, other) for other in others)


def test_the_caller_of_a_pool_works_too(monkeypatch):
    """All threads but the caller's are in the pool, and at least one."""
    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor", lambda number, name: number)
    for threads, number in ((1, 1), (2, 1), (4, 3)):
        monkeypatch.setattr(blocks, "thread_count", lambda threads=threads: threads)
        assert blocks.pool.__wrapped__() == number


def test_blocks_have_as_many_elements_as_the_limit_says(monkeypatch):
    force_kernels(monkeypatch)  # blocks of 8 elements
    seen = []

    def spy(inputs, outputs, scratch):
        seen.append((inputs[0].shape, outputs[0].shape, scratch[0].base.shape))

    blocks.run(spy, (np.ones((3, 4)),), (np.ones((3, 4)),), 1)
    blocks.run(spy, (np.ones((3, 12)),), (np.ones((3, 12)),), 1)
    two, one, long = ((2, 4),) * 3, ((1, 4),) * 2 + ((2, 4),), ((1, 12),) * 3
    assert sorted(seen) == sorted([two, one, long, long, long])
    seen.clear()
    set_limits(monkeypatch, threaded=0)
    blocks.run(spy, (np.ones((3, 3)),), (np.ones((3, 3)),), 1)  # two shares
    assert sorted(seen) == [((1, 3),) * 3, ((2, 3),) * 3]


def test_memory_is_asked_for_once_so_that_the_c_library_keeps_pages(monkeypatch):
    asked = []
    monkeypatch.setattr(tinynode_numpy.numpy, "empty", lambda *given: asked.append(given))
    tinynode_numpy.keep_pages()
    assert asked == [(tinynode_numpy.FREED_BYTES, np.uint8)]


def test_one_long_row_is_not_shared_out(monkeypatch):
    force_kernels(monkeypatch)
    x, y = np.ones((1, 100)), np.empty((1, 100))
    blocks.run(_copy, (x,), (y,))
    assert (y == 1).all()


def test_numbers_are_kept_and_cannot_be_written_to():
    half = blocks.number(0.501, np.dtype(np.float32))
    assert half is blocks.number(0.501, np.dtype(np.float32)) and half.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        half[...] = 1


# --- the graph is the same -----------------------------------------------------------------------


def test_hooks_see_what_they_see_on_numpy(monkeypatch):
    force_kernels(monkeypatch)

    class Names(tn.FunctionHook):
        name = "Names"

        def __init__(self):
            self.seen = []

        def forward_postprocess(self, function, in_data):
            self.seen.append(function.label)

        def backward_preprocess(self, function, in_data, out_grad):
            self.seen.append((function.label, [x is None for x in in_data]))

    seen = {}
    for device in ("numpy", "fast"):
        with tn.using_device(device), Names() as hook:
            x = tn.Variable(np.ones((3, 4)))
            F.sum(F.silu(F.softmax(x))).backward()
            seen[device] = hook.seen
    assert seen["numpy"] == seen["fast"]


def test_gradients_stay_on_the_device():
    x = tn.Variable(draw(200, 300))
    y = F.sum(F.gelu(x))
    assert str(y.device) == "fast"
    y.backward()
    assert str(x.grad_var.device) == "fast"
    names = {key[2] for key in kernel_uses}
    assert {"gelu", "gelu_gradient"} <= names


def test_moves_between_numpy_and_fast_are_differentiable():
    x = tn.Variable(np.linspace(-1.0, 1.0, 5))
    y = F.sum((x.to_device("numpy") ** 3).to_device("fast") * x)
    assert str(y.device) == "fast" and str((x.to_device("numpy") ** 3).device) == "numpy"
    (gx,) = tn.grad([y], [x], enable_double_backprop=True)
    assert str(gx.device) == "fast"
    np.testing.assert_allclose(gx.array, 4 * x.array**3)
    (ggx,) = tn.grad([F.sum(gx)], [x])
    assert str(ggx.device) == "fast"
    np.testing.assert_allclose(ggx.array, 12 * x.array**2)


# --- optimizers ----------------------------------------------------------------------------------

OPTIMIZERS = [
    (nn.Adam, {"lr": 0.01}),
    (nn.Adam, {"betas": (0.0, 0.5), "eps": 1e-3}),
    (nn.AdamW, {"weight_decay": 0.1}),
]
SHAPES = [(30, 20), (7,), (), (0, 3)]


def train(device, kind, settings, dtype, steps=4):
    """Parameters and optimizer after a few steps along the same gradients."""
    rng = np.random.default_rng(5)
    with tn.using_device(device):
        parameters = [nn.Parameter(np.asarray(rng.normal(size=s), dtype)) for s in SHAPES]
        optimizer = kind(parameters, **settings)
        for _ in range(steps):
            for p in parameters:
                p.grad = np.asarray(rng.normal(size=p.shape), dtype)
            optimizer.update()
    return parameters, optimizer


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("kind", "settings"), OPTIMIZERS)
def test_optimizers_do_what_the_portable_ones_do(kind, settings, dtype, monkeypatch):
    force_kernels(monkeypatch)
    wanted, portable = train("numpy", kind, settings, dtype)
    assert kernel_uses == {}
    found, optimizer = train("fast", kind, settings, dtype)
    assert kernel_uses["fast", kind.__name__, "update_parameters"].calls == 4
    assert fallback_uses == {}
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    for p, q in zip(found, wanted, strict=True):
        assert (p.array.dtype, str(p.device)) == (dtype, "fast")
        np.testing.assert_allclose(p.array, q.array, rtol=rtol, atol=rtol)
    states = optimizer.state_dict(), portable.state_dict()
    assert states[0].keys() == states[1].keys()
    for name, value in states[0].items():
        np.testing.assert_allclose(value, states[1][name], rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("kind", "settings"), OPTIMIZERS)
def test_an_update_leaves_the_old_array_and_earlier_states_alone(kind, settings):
    (p, *_), optimizer = train("fast", kind, settings, np.float32, steps=1)
    old, values, state = p.array, p.array.copy(), optimizer.state_dict()
    copies = {name: value.copy() for name, value in state.items()}
    optimizer.update()
    assert p.array is not old and not np.shares_memory(p.array, old)
    np.testing.assert_array_equal(old, values)
    for name, value in state.items():
        np.testing.assert_array_equal(value, copies[name])
    optimizer.load_state_dict(state)
    optimizer.update()  # in place, but not in the state that the user holds
    for name, value in state.items():
        np.testing.assert_array_equal(value, copies[name])


def test_gradients_and_parameters_in_any_order_of_memory():
    values, grad = draw(30, 20), draw(30, 20)
    results = []
    for order_of_p, order_of_g in ("CC", "CF", "FC"):
        p = nn.Parameter(np.array(values, order=order_of_p))
        p.grad = np.array(grad, order=order_of_g)
        nn.Adam([p]).update()
        results.append(p.array)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
    assert not fallback_uses


def test_other_optimizers_fall_back():
    class Mine(nn.Adam):
        def update_one(self, array, grad, moments, count):
            return array - 1, moments

    for optimizer, reason in ((Mine, "no kernel for this class"), (nn.SGD, "no kernel for this")):
        p = nn.Parameter(np.zeros(3))
        p.grad = np.ones(3)
        optimizer([p], lr=1.0).update()
        assert p.array.tolist() == [-1.0] * 3
        ((key, use),) = fallback_uses.items()
        assert key[:2] == ("fast", optimizer.__name__) and reason in key[2] and use.calls == 1
        fallback_uses.clear()
    q = nn.Parameter(np.zeros(3, np.float16))
    q.grad = np.ones(3, np.float16)
    nn.Adam([q], lr=1.0, eps=1e-3).update()
    np.testing.assert_allclose(q.array, -np.ones(3), atol=2e-3)
    assert list(fallback_uses) == [("fast", "Adam", "float16 has no kernel")]


def test_parameters_on_several_devices_fall_back():
    p = nn.Parameter(np.zeros(3))
    with tn.using_device("numpy"):
        q = nn.Parameter(np.zeros(3))
        q.grad = np.ones(3)
    p.grad = np.ones(3)
    nn.SGD([p, q], lr=1.0).update()
    assert p.array.tolist() == q.array.tolist() == [-1.0] * 3
    assert (str(p.device), str(q.device)) == ("fast", "numpy")
    assert list(fallback_uses) == [("fast", "SGD", "several devices")]


def test_a_failing_update_changes_nothing(monkeypatch):
    (p, *_), optimizer = train("fast", nn.Adam, {}, np.float64, steps=1)
    before, state = p.array, optimizer.state_dict()

    def no_memory(*arguments):
        raise MemoryError

    monkeypatch.setattr(updates.numpy, "empty", no_memory)
    with pytest.raises(MemoryError):
        optimizer.update()
    monkeypatch.undo()
    assert p.array is before
    for name, value in optimizer.state_dict().items():
        np.testing.assert_array_equal(value, state[name])


@pytest.mark.parametrize("kind", [nn.Adam, nn.AdamW])
def test_an_update_that_raises_on_its_way_changes_nothing(kind):
    """As on NumPy: the first parameter is done when the second one overflows."""
    found = {}
    for device in ("numpy", "fast"):
        parameters, optimizer = train(device, kind, {}, np.float32, steps=3)
        before, state = [p.array for p in parameters], optimizer.state_dict()
        good = [p.grad for p in parameters]
        parameters[1].grad = np.full(7, 1e30, np.float32)
        for _ in range(2):
            with np.errstate(over="raise"), pytest.raises(FloatingPointError):
                optimizer.update()
            assert all(p.array is old for p, old in zip(parameters, before, strict=True))
            for name, value in optimizer.state_dict().items():
                np.testing.assert_array_equal(value, state[name])
        parameters[1].grad = good[1]
        for _ in range(3):
            optimizer.update()
        found[device] = [p.array for p in parameters], optimizer.state_dict()
    for one, other in zip(found["numpy"][0], found["fast"][0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    for name, value in found["numpy"][1].items():
        np.testing.assert_allclose(value, found["fast"][1][name], rtol=1e-5, atol=1e-12)


def test_old_moments_are_not_written_to():
    parameters, optimizer = train("fast", nn.Adam, {}, np.float32, steps=3)
    kept = [m for slot in optimizer._slots for m in slot.moments.values()]
    copies = [m.copy() for m in kept]
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    optimizer.update()
    for m, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(m, copy)
    # a parameter without a gradient now and then
    optimizer.allow_missing = True
    wanted, portable = train("numpy", nn.Adam, {}, np.float32, steps=4)
    portable.load_state_dict(optimizer.state_dict())
    portable.allow_missing = True
    for p, q in zip(parameters, wanted, strict=True):
        q.array, q.grad = p.array.copy(), p.grad
    for step in range(4):
        for ps in (parameters, wanted):
            ps[step % 2].grad = None
        for each in (optimizer, portable):
            each.update()
        for p, q in zip(parameters, wanted, strict=True):
            np.testing.assert_allclose(p.array, q.array, rtol=1e-5)
            grad = RNG.standard_normal(p.shape).astype(np.float32)
            p.grad = q.grad = grad


# --- the table -----------------------------------------------------------------------------------


def test_the_table_of_fallbacks():
    assert show.fallbacks() == "no function ran on a kernel of its backend, and none fell back"
    x = tn.Variable(draw(200, 300))
    F.gelu(x)
    F.gelu(x)
    F.gelu(x.astype(np.float64))
    lines = show.fallbacks(reset=True).splitlines()
    assert lines[0].split("  ")[-1] == "time, ms" and "kernel or why not" in lines[0]
    assert [line.split()[:-2] for line in lines[2:]] == [
        ["fast", "GELU", "gelu"],
        ["fast", "GELU", "no:", "float64", "has", "no", "kernel"],
    ]
    assert [line.split()[-2] for line in lines[2:]] == ["2", "1"]
    assert all(float(line.split()[-1]) > 0 for line in lines[2:])
    assert kernel_uses == fallback_uses == {}


def test_rows_of_the_table_are_sorted_by_time():
    tn.backend.count_use(kernel_uses, ("fast", "Quick", "quick"), 0.001)
    tn.backend.count_use(kernel_uses, ("fast", "Slow", "slow"), 0.5)
    functions = [line.split()[1] for line in show.fallbacks().splitlines()[2:]]
    assert functions == ["Slow", "Quick"]
    assert kernel_uses  # not reset


# --- what the backend is -------------------------------------------------------------------------


def test_it_lies_over_numpy():
    assert tinynode_fast.base == "numpy" and tinynode_fast.name == "fast"
    x = np.ones(3)
    assert tn.asarray(x).array is x
    assert str(tn.asarray(x).device) == "fast"
    assert tn.Variable(x, requires_grad=False).to_device("numpy").array is x


def test_constants_that_tests_change_are_used(monkeypatch):
    """``force_kernels`` would force nothing if a module had copies of them."""
    force_kernels(monkeypatch)
    assert LIMITS.columns == 64 and LIMITS.rows_summed == 1
    x = draw(3, 4)
    assert type(tinynode_fast.forward(F.Sum((0,), False), (x,))) is tuple
    assert [key[2] for key in kernel_uses] == ["sum_axes"]


def test_dispatch_of_a_plain_function_takes_no_call_more_than_on_numpy():
    def calls_of(backend):
        seen = []

        def profile(frame, event, argument):
            if event == "call":
                seen.append(frame.f_code.co_qualname)

        node, arrays = F.Multiply(), (np.ones(10), np.ones(10))
        sys.setprofile(profile)
        try:
            backend.forward(node, arrays)
        finally:
            sys.setprofile(None)
        return seen

    assert calls_of(tinynode_fast) == calls_of(tinynode_numpy)
    assert "Multiply.forward" in calls_of(tinynode_fast)
