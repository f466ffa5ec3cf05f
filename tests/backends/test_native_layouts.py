"""Nets as C: values with an unusual order in memory, and loops that threads share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_compiler import missing_compiler
from fast_kernels import set_limits, two_threads

import tinynode as tn
from tinynode import functions as fn
from tinynode_fast.native import build, calls

if missing_compiler():
    pytest.skip(missing_compiler(), allow_module_level=True)

CALLS = 4
"""The first calls run on NumPy, the later calls in C."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TINYNODE_CACHE", str(tmp_path / "cache"))
    with tn.using_config(compiler="auto"):
        yield


def draw(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape)


def results(function: Callable[..., Any], arrays: list[Any], device: str) -> Iterator[list[Any]]:
    """The outputs and the gradients of each call."""
    for _ in range(CALLS):
        variables = [tn.asarray(array, device=device) for array in arrays]
        outputs = function(*variables)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        sum(fn.sum(y * y) for y in outputs).backward()
        build.wait()
        gradients = [x.grad for x in variables if x.grad is not None]
        yield [*[y.array for y in outputs], *gradients]


def check(function: Callable[..., Any], *arrays: Any) -> None:
    expected = next(results(function, list(arrays), "numpy"))
    for found in results(tn.compile(function), list(arrays), "fast"):
        for actual, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("side", [8, 20])  # small values are packed, large values are not
@pytest.mark.parametrize(
    "after",
    [
        fn.relu,
        lambda z: fn.sum(fn.tanh(z), axis=1),
        lambda z: fn.max_pool2d(z, 2),
        lambda z: fn.softmax(z, axis=1),
        lambda z: (z - fn.mean(z, axis=(0, 2, 3), keepdims=True)) * 2.0,
    ],
)
def test_saved_images_keep_their_order(after: Callable[[Any], Any], side: int) -> None:
    def images(x: Any, w: Any, b: Any) -> Any:
        return after(fn.conv2d(x, w, b))

    check(images, draw(2, 3, side, side), draw(4, 3, 3, 3), draw(4))


def u_net(x: Any, first: Any, low: Any, up: Any, last: Any) -> Any:
    """Images that the gradient reads: saved, pooled, and as parts of a joined array."""
    across = fn.relu(fn.conv2d(x, first, padding=1))
    below = fn.relu(fn.conv2d(fn.max_pool2d(across, 2), low, padding=1))
    both = fn.concat([fn.conv_transpose2d(below, up, stride=2), across], axis=1)
    return fn.relu(fn.conv2d(both, last, padding=1))


def test_a_gradient_reads_saved_images_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan takes the order in memory from the arrays of the first run."""
    copied: list[tuple[int, ...]] = []
    nests: list[Any] = []
    real, make = calls.laid_out, calls.NestCall.__init__

    def laid_out(array: Any, strides: tuple[int, ...]) -> Any:
        copied.append(array.shape)
        return real(array, strides)

    def made(call: Any, nest: Any, *arguments: Any) -> None:
        make(call, nest, *arguments)
        nests.append(nest)

    monkeypatch.setattr(calls, "laid_out", laid_out)
    monkeypatch.setattr(calls.NestCall, "__init__", made)
    kernels = draw(9, 8, 3, 3), draw(10, 9, 3, 3), draw(10, 10, 2, 2), draw(11, 19, 3, 3)
    check(u_net, draw(2, 8, 12, 12), *kernels)
    assert copied == []
    sums = [nest for nest in nests if "relugrad" in nest.name]
    assert len(sums) >= 3
    for nest in sums:  # channels last: no loop over channels outside of rows and columns
        for name in (*nest.reads, *nest.writes):
            assert nest.layouts.of(name)[1] == 1, (nest.name, name)


def test_a_plan_for_channels_last_takes_images_in_any_order() -> None:
    def f(x: Any) -> Any:
        return fn.sum(fn.relu(x) * x, axis=(0, 2, 3))

    compiled = tn.compile(f)
    images = draw(3, 16, 6, 7)
    turned = np.ascontiguousarray(images.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for array in (turned, turned, turned, images, turned, images[:, :, ::-1]):
        y = compiled(tn.asarray(array, device="fast"))
        build.wait()
        np.testing.assert_allclose(y.array, (np.maximum(array, 0) * array).sum((0, 2, 3)))


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_classes_are_counted_in_any_order_of_loops(reduction: str) -> None:
    """A matrix that lies column by column may lead the loops of the loss's gradient."""
    labels = np.array([1, 0, 6])

    def gradients(x: Any, w: Any, w2: Any, v: Any, labels: Any) -> Any:
        logits = fn.linear(x, w)
        loss = fn.softmax_cross_entropy(logits, labels, reduction=reduction)
        u = fn.sum(logits * logits).detach()
        h = fn.relu(fn.linear(x, w2) * u)
        y = fn.sum(h @ v) + loss * u
        return (y, *tn.grad([y], [w, w2, v]))

    arrays = [draw(3, 5), draw(7, 5), draw(7, 5) * 0.5, draw(7, 4), labels]
    compiled = tn.compile(gradients)
    expected = [y.array for y in gradients(*[tn.asarray(a, device="numpy") for a in arrays])]
    for _ in range(CALLS):
        found = compiled(*[tn.asarray(a, device="fast") for a in arrays])
        build.wait()
        for actual, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(actual.array, wanted, rtol=1e-9, atol=1e-9)


def grouped(x: Any, w: Any) -> Any:
    return fn.max_pool2d(fn.conv2d(x, w, groups=2), 2)


def joined(x: Any) -> Any:
    return fn.add(*fn.split(fn.concat([x.T, x.T], axis=1), 2, axis=1))


GAPS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "one column": (lambda x: fn.unstack(x, axis=1)[0] * 2.0, ((40, 50),)),
    "a part": (lambda x: fn.tanh(fn.split(x, 2, axis=1)[1]), ((40, 50),)),
    "a part of what is flipped": (lambda x: fn.split(fn.flip(x), 2, axis=1)[1] * x[:, :25],
                                  ((40, 50),)),
    "copies": (lambda x: fn.broadcast_to(x, (4, *x.shape)) * 2.0, ((40, 50),)),
    "pooling": (lambda x: fn.max_pool2d(x, 2), ((4, 8, 12, 12),)),
    "pooling after groups": (grouped, ((4, 8, 12, 12), (16, 4, 3, 3))),
    "joins": (joined, ((50, 48),)),
}  # fmt: skip


@pytest.mark.parametrize("order", ["C", "F", "reversed", "every second"])
@pytest.mark.parametrize("name", GAPS)
def test_views_with_gaps_of_arrays_in_any_order(name: str, order: str) -> None:
    """The values are large: they stay where they are. A copy has the gaps of the view."""
    function, shapes = GAPS[name]
    arrays = []
    for shape in shapes:
        x = draw(*shape)
        if order == "F":
            x = np.asfortranarray(x)
        elif order == "reversed":
            x = x[::-1]
        elif order == "every second":
            x = np.repeat(x, 2, axis=0)[::2]
        arrays.append(x)
    check(function, *arrays)


@pytest.mark.parametrize("shape", [(6, 5, 4), (1, 37), (37, 1), (3, 1, 9), (2, 3, 4, 5)])
def test_threads_share_reductions_along_any_axis(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start of a sum belongs to the thread that adds up this sum."""
    set_limits(monkeypatch, threaded=2)
    monkeypatch.setattr(calls, "thread_count", two_threads)
    real = calls.in_shares

    def last_first(length: int, size: int, work: Any) -> list[Any]:
        """One share after the other, the last share first: a start in the wrong place shows."""
        starts = range(0, length, size)
        found = {start: work(start, min(start + size, length)) for start in reversed(starts)}
        return [found[start] for start in starts]

    x = draw(*shape)
    for axis in range(len(shape)):

        def reduced(x: Any, axis: int = axis) -> Any:
            return fn.sum(x * 2.0, axis=axis), fn.max(x, axis=axis), fn.mean(x, axis=axis)

        for shares in (real, last_first):
            monkeypatch.setattr(calls, "in_shares", shares)
            check(reduced, x)


@pytest.mark.parametrize("number_of_threads", [1, 2])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("shape", [(5,), (1,), (2, 3), (1, 4), (3, 1)])
@pytest.mark.parametrize("count", [1, 40])
def test_rows_added_up_by_index(
    count: int,
    shape: tuple[int, ...],
    dtype: str,
    number_of_threads: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows from memory, from the same nest and of a transposed matrix; repeated indices."""
    if number_of_threads == 2:
        set_limits(monkeypatch, threaded=2)
        monkeypatch.setattr(calls, "thread_count", two_threads)
    rng = np.random.default_rng(9)
    for length in (1, 7):
        indices = rng.integers(-length, length, count).astype(dtype)

        def rows(w: Any, indices: Any = indices) -> Any:
            return fn.tanh(fn.take(w * 2.0, tn.asarray(indices, device=w.device), axis=0))

        check(rows, draw(length, *shape))

    def turned(x: Any) -> Any:
        return fn.AddAt(7).apply(
            (fn.permute_dims(x, (1, 0)), tn.asarray(np.arange(6) % 5, device=x.device))
        )

    check(turned, draw(4, 6))


def test_a_row_outside_is_an_error_and_the_function_goes_on() -> None:
    compiled = tn.compile(lambda x, indices: fn.AddAt(4).apply((x, indices))[0])
    x = tn.asarray(draw(3, 2), device="fast")
    for number in range(CALLS):
        y = compiled(x, tn.asarray(np.asarray([0, 3, -1]), device="fast"))
        build.wait()
        np.testing.assert_allclose(y.array[3], x.array[1] + x.array[2])
        if number > 1:
            with pytest.raises(IndexError, match=r"index 4 is out of bounds .* size 4"):
                compiled(x, tn.asarray(np.asarray([0, 4, 1]), device="fast"))


def test_lazy_sums_of_compiled_functions() -> None:
    compiled = tn.compile(lambda x: fn.exp(x))
    with tn.using_config(lazy_grad_sum=True):
        for _ in range(2):
            assert compiled(tn.asarray([1.0], device="fast")).creator_node.lazy_grad_sum


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [3, 1025])  # small parameters are copied, large ones are not
@pytest.mark.parametrize(
    "kind",
    [
        lambda p: tn.nn.SGD(p, lr=0.1),
        lambda p: tn.nn.SGD(p, lr=0.1, momentum=0.9),
        lambda p: tn.nn.Adam(p, lr=0.01),
        lambda p: tn.nn.AdamW(p, lr=0.01),
        lambda p: tn.nn.Adam(p, lr=0.01, betas=(0.0, 0.999)),
        lambda p: tn.nn.Adam(p, lr=0.01, betas=(0.9, 0.0)),
    ],
    ids=["SGD", "momentum", "Adam", "AdamW", "no mean", "no mean of squares"],
)
def test_updates_round_alike_in_eager_code_in_numpy_and_in_c(
    kind: Any, size: int, dtype: str
) -> None:
    """The ranks of a training run may change from NumPy to C at different steps."""
    rng = np.random.default_rng(7)
    w, *xs = [rng.standard_normal(size).astype(dtype) for _ in range(25)]
    parameters = [tn.nn.Parameter(w.copy(), device="fast") for _ in range(3)]
    optimizers = [kind([p]) for p in parameters]

    def step(place: int, x: tn.Variable) -> None:
        optimizers[place].cleargrads()
        fn.sum(parameters[place] * x.detach()).backward()
        optimizers[place].update()

    in_numpy = tn.compile(lambda x: step(1, x))
    in_c = tn.compile(lambda x: step(2, x))
    for number, array in enumerate(xs):
        x = tn.asarray(array, device="fast")
        step(0, x)
        with tn.using_config(compiler="none"):
            in_numpy(x)
        in_c(x)
        build.wait()
        eager, *others = [p.array for p in parameters]
        for found in others:
            np.testing.assert_array_equal(found, eager, f"step {number}")
    assert "as C, in use" in str(in_c.explain(x))
    assert "as C, in use" not in str(in_numpy.explain(x))
