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
import time

import numpy as np
import pytest
from fast_kernels import force_kernels, set_limits
from kernel_cases import (
    COUNTS,
    HALF,
    KERNEL_CASES,
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
from tinynode.devices import Fallback, fallback_uses, kernel_uses, threads
from tinynode.functions import convolution, pooling
from tinynode.functions.image_windows import Windows
from tinynode_fast import images

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


@pytest.mark.parametrize("name", ["conv2d", "conv2d_gradient_w", "max_pool_gradient"])
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


@pytest.mark.parametrize("padding", [(0, 0), (1, 2)])
def test_the_gradient_by_the_image_is_one_run_of_memory(padding):
    node = convolution.Conv2dGradX(Windows((3, 2), (1, 1), padding, (1, 1)), 1, (8, 7))
    gy = draw(5, 4, 6 + 2 * padding[0], 6 + 2 * padding[1])
    w = draw(4, 12, 3, 2)
    (gx,), (wanted,) = tinynode_fast.forward(node, (gy, w)), node.forward((gy, w))
    np.testing.assert_allclose(gx, wanted, rtol=1e-5, atol=1e-5)
    assert gx.transpose(0, 2, 3, 1).flags.c_contiguous


@pytest.mark.parametrize("name", ["max_pool_gradient", "conv2d"])
def test_arrays_in_any_order_of_memory(name):
    given = []
    for x in KERNEL_CASES[name][1]:
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        given.append(wide[..., ::2])
    check_kernel(name, given)
    check_kernel(name, [np.asfortranarray(x) for x in given])


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
    x = tn.Variable(draw(200, 300))
    F.sum(F.softmax(F.gelu(x)) * x + 1).backward()
    assert kernel_uses == fallback_uses == {}


def test_a_fallback_computes_and_is_counted():
    x, w = [tn.Variable(draw(*shape, dtype=HALF)) for shape in ((10, 9, 8, 7), (4, 9, 3, 3))]
    F.conv2d(x, w)
    ((key, use),) = fallback_uses.items()
    assert key == ("fast", "Conv2d", "float16 has no kernel") and use.calls == 1


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
        ("conv2d", 8, 64, 8, 64, 1, True),
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


def test_images_come_in_parts_whose_columns_stay_in_the_cache(monkeypatch):
    set_limits(monkeypatch, columns=10)
    assert list(images.parts(1, 6, 4)) == [slice(1, 3), slice(3, 5), slice(5, 6)]
    assert list(images.parts(0, 2, 11)) == [slice(0, 1), slice(1, 2)]
    assert list(images.parts(0, 2, 0)) == [slice(0, 2)]


# --- edges of values -----------------------------------------------------------------------------


def test_labels_that_are_ignored_or_wrong():
    x = draw(40, 7)
    drawn = RNG.integers(0, 7, 40)
    labels = np.where(drawn == 3, 5, drawn)
    x[labels == 5] = 100.0  # large losses, which count or not
    with tn.using_device("numpy"):
        wanted = F.softmax_cross_entropy(x, labels, ignore_label=5).array
    np.testing.assert_allclose(F.softmax_cross_entropy(x, labels, ignore_label=5).array, wanted)
    for wrong in (-2, 7):
        with pytest.raises(ValueError, match=f"labels must lie in 0 to 6.*got {wrong}"):
            F.softmax_cross_entropy(x, np.where(labels == 2, wrong, labels))
    with pytest.raises(ValueError, match=r"labels must lie in 0 to 6.*got -1"):
        F.softmax_cross_entropy(x, np.where(labels == 2, -1, labels), ignore_label=-100)


def test_the_callers_errstate_holds_in_threads(monkeypatch):
    force_kernels(monkeypatch)

    x, y = np.ones(100), np.empty(100)

    def divide(start, stop):
        np.divide(x[start:stop], 0.0, y[start:stop])

    with np.errstate(divide="ignore"):
        threads.in_shares(100, 50, divide)
    assert np.isinf(y).all()
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        threads.in_shares(100, 50, divide)


@pytest.mark.parametrize(("length", "size"), [(1, 1), (7, 8), (9, 8), (16, 8), (17, 8), (100, 7)])
def test_shares_cover_every_element_once(length, size):
    x = np.zeros(length)

    def add(start, stop):
        x[start:stop] += 1
        return start, stop

    found = threads.in_shares(length, size, add)
    assert found == [(i, min(i + size, length)) for i in range(0, length, size)]
    assert (x == 1).all()


# --- threads --------------------------------------------------------------------------


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch):
    def work(start, stop):
        if stop == 100:
            raise ZeroDivisionError("the last share")

    with pytest.raises(ZeroDivisionError, match="the last share"):
        threads.in_shares(100, 50, work)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_shares_that_were_handed_over_are_waited_for(error, monkeypatch):
    """One thread starts, and is slow; then no thread starts."""
    started = []

    class Failing(threading.Thread):
        def start(self):
            if started:
                raise error
            started.append(self)
            super().start()

        def run(self):
            time.sleep(0.05)
            super().run()

    monkeypatch.setattr(threads.threading, "Thread", Failing)
    x, y = np.arange(1.0, 101.0), np.zeros(100)
    if isinstance(error, MemoryError):
        with pytest.raises(MemoryError):
            _copy(x, y, 25)
        np.testing.assert_array_equal(y[25:50], x[25:50])  # the first share was waited for
    else:
        _copy(x, y, 25)
        np.testing.assert_array_equal(y, x)
    assert not started[0].is_alive()


LATE = """
import sys, threading, time

def work():
    while threading.main_thread().is_alive():
        time.sleep(0.01)
    time.sleep(0.1)
    {late}
    x = numpy.ones(1 << 21, numpy.float32)
    y = numpy.zeros_like(x)
    copy(x, y)
    print("done", int(y.sum()), threads.thread_count())

def copy(x, y):
    def work(start, stop):
        y[start:stop] = x[start:stop]
    threads.in_shares(len(x), len(x) // 2, work)

{early}
threading.Thread(target=work).start()
"""
IMPORTS = "import numpy, tinynode; from tinynode.devices import threads"
USED = "; copy(numpy.ones(1 << 21), numpy.zeros(1 << 21))"


@pytest.mark.parametrize(
    ("early", "late"),
    [(IMPORTS, "pass"), (IMPORTS + USED, "pass"), ("", "global numpy, threads; " + IMPORTS)],
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
    count = threads.thread_count.__wrapped__
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    monkeypatch.delenv("TINYNODE_THREADS", raising=False)
    assert count() == 3
    monkeypatch.setenv("TINYNODE_THREADS", "5")
    assert count() == 5
    for wrong in ("", "0", "many", "²"):
        monkeypatch.setenv("TINYNODE_THREADS", wrong)
        assert count() == 3
    for wrong in ("", "0", "many", "²"):
        monkeypatch.setenv("OMP_NUM_THREADS", wrong)
        assert count() >= 1
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert count() == (os.cpu_count() or 1)


def test_two_threads_at_once(monkeypatch):
    force_kernels(monkeypatch)
    failures = []

    def work(name):
        try:
            for _ in range(5):
                check_kernel(name)
        except BaseException as error:
            failures.append((name, error))

    names = ["conv2d", "conv2d_gradient_w", "max_pool_gradient"]
    workers = [threading.Thread(target=work, args=(name,)) for name in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []


def _child(queue):
    x = np.arange(100.0)
    y = np.empty(100)
    _copy(x, y, 50)
    queue.put(bool((x == y).all()))


def _copy(x, y, size):
    def work(start, stop):
        y[start:stop] = x[start:stop]

    threads.in_shares(len(x), size, work)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own():
    _copy(np.arange(100.0), np.empty(100), 50)
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


def test_memory_is_asked_for_once_so_that_the_c_library_keeps_pages(monkeypatch):
    asked = []
    monkeypatch.setattr(tinynode_numpy.numpy, "empty", lambda *given: asked.append(given))
    tinynode_numpy.keep_pages()
    assert asked == [(tinynode_numpy.FREED_BYTES, np.uint8)]


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
    assert kernel_uses == fallback_uses == {}
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


def test_parameters_on_several_devices_fall_back():
    p = nn.Parameter(np.zeros(3))
    with tn.using_device("numpy"):
        q = nn.Parameter(np.zeros(3))
        q.grad = np.ones(3)
    p.grad = np.ones(3)
    nn.SGD([p, q], lr=1.0).update()
    assert p.array.tolist() == q.array.tolist() == [-1.0] * 3
    assert (str(p.device), str(q.device)) == ("fast", "numpy")


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
    x, w = tn.Variable(draw(10, 9, 8, 7)), tn.Variable(draw(4, 9, 3, 3))
    F.conv2d(x, w)
    F.conv2d(x, w)
    F.conv2d(x.astype(HALF), w.astype(HALF))
    lines = show.fallbacks(reset=True).splitlines()
    assert lines[0].split("  ")[-1] == "time, ms" and "kernel or why not" in lines[0]
    assert [line.split()[:-2] for line in lines[2:]] == [
        ["fast", "Conv2d", "conv2d"],
        ["fast", "Conv2d", "no:", "float16", "has", "no", "kernel"],
    ]
    assert [line.split()[-2] for line in lines[2:]] == ["2", "1"]
    assert all(float(line.split()[-1]) > 0 for line in lines[2:])
    assert kernel_uses == fallback_uses == {}


def test_rows_of_the_table_are_sorted_by_time():
    tn.devices.count_use(kernel_uses, ("fast", "Quick", "quick"), 0.001)
    tn.devices.count_use(kernel_uses, ("fast", "Slow", "slow"), 0.5)
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
