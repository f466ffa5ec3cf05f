"""Checks that run on several ranks: ``mpiexec -n 2 python tests/support/mpi_program.py``.

Each rank knows the numbers of all ranks, from seeds. So each rank can check its results alone.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import tinynode as tn
from tinynode import distributed, nn
from tinynode.distributed import functions

COMM = distributed.world()
RANKS = range(COMM.size)


def draws(rank: int, seed: int, shape: tuple[int, ...] = (2, 3), dtype: str = "float64") -> Any:
    return np.random.default_rng([rank, seed]).normal(size=shape).astype(dtype)


def variable(host: Any, device: str) -> tn.Variable:
    return tn.asarray(host, device=device, requires_grad=True)


def close(x: Any, expected: Any, dtype: str = "float64") -> None:
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    host = tn.to_host(x.array if isinstance(x, tn.Variable) else x)
    assert host.dtype == dtype, (host.dtype, dtype)
    np.testing.assert_allclose(host, expected, rtol=tolerance, atol=tolerance)


def check_arrays(device: str) -> None:
    """The methods of the communicator on arrays of a device."""
    target = tn.get_device(device)
    for dtype in ("float64", "float32", "float16", "int64"):
        if device == "strict" and dtype == "float16":
            continue
        every = [(10 * draws(r, 1)).astype(dtype) for r in RANKS]
        mine = target.from_host(every[COMM.rank].copy())
        total = tn.to_host(COMM.allreduce(mine))
        assert total.dtype == dtype
        np.testing.assert_allclose(total, sum(every), rtol=1e-2 if dtype == "float16" else 1e-6)
        np.testing.assert_array_equal(tn.to_host(COMM.allreduce(mine, "max")), np.max(every, 0))
        np.testing.assert_array_equal(tn.to_host(COMM.broadcast(mine)), every[0])
        for got, host in zip(COMM.allgather(mine), every, strict=True):
            np.testing.assert_array_equal(tn.to_host(got), host)
    uneven = [draws(r, 2, (r + 1, 2)) for r in RANKS]
    for got, host in zip(COMM.allgather(target.from_host(uneven[COMM.rank])), uneven, strict=True):
        np.testing.assert_array_equal(tn.to_host(got), host)
    given = [target.from_host(one) for one in uneven] if COMM.is_main else None
    np.testing.assert_array_equal(tn.to_host(COMM.scatter(given)), uneven[COMM.rank])
    mean = COMM.allreduce(target.from_host(draws(COMM.rank, 3)), "mean")
    np.testing.assert_allclose(tn.to_host(mean), np.mean([draws(r, 3) for r in RANKS], axis=0))


Rule = Callable[[list[Any]], list[Any]]


def sums(xs: list[Any]) -> list[Any]:
    return [sum(xs)] * COMM.size


def gathered(xs: list[Any]) -> list[Any]:
    return [np.stack(xs)] * COMM.size


def parts(gs: list[Any]) -> list[Any]:
    return [sum(g[r] for g in gs) for r in RANKS]


def of_root(xs: list[Any]) -> list[Any]:
    return [xs[0]] * COMM.size


def at_root(gs: list[Any]) -> list[Any]:
    return [sum(gs) if r == 0 else np.zeros_like(gs[0]) for r in RANKS]


ROWS: list[tuple[Any, Rule, Rule, bool]] = [
    (functions.allreduce, sums, sums, False),
    (functions.allgather, gathered, parts, True),
    (functions.broadcast, of_root, at_root, False),
]
"""A function, its values on all ranks, the adjoint, and whether the result has a new axis."""


def check_functions(device: str) -> None:
    """Values, gradients and second gradients of each row, against the formula."""
    for function, forward, adjoint, is_wide in ROWS:
        for dtype in ("float64", "float32"):
            xs = [draws(r, 4, dtype=dtype) for r in RANKS]
            shape = (COMM.size, 2, 3) if is_wide else (2, 3)
            gs = [draws(r, 5, shape, dtype) for r in RANKS]
            vs = [draws(r, 6, dtype=dtype) for r in RANKS]
            x, gy = variable(xs[COMM.rank], device), variable(gs[COMM.rank], device)
            y = function(x)
            close(y, forward(xs)[COMM.rank], dtype)
            (gx,) = tn.grad([y], [x], [gy], enable_double_backprop=True)
            close(gx, adjoint(gs)[COMM.rank], dtype)
            (ggy,) = tn.grad([gx], [gy], [variable(vs[COMM.rank], device)])
            close(ggy, forward(vs)[COMM.rank], dtype)


def check_pipeline(device: str) -> None:
    """Layers on two ranks: forward and backward through send and receive."""
    x, w = draws(0, 7), draws(1, 8)
    if COMM.rank == 0:
        start = variable(x, device)
        token = functions.send(tn.functions.sin(start), to=1)
        token.backward()
        close(start.grad_var, np.cos(x) * w * 2 * np.sin(x) * w)
    elif COMM.rank == 1:
        weights = variable(w, device)
        middle = functions.receive(0, device=device)
        close(middle, np.sin(x))
        loss = tn.functions.sum((middle * weights) ** 2)
        loss.backward()
        close(weights.grad_var, 2 * np.sin(x) ** 2 * w)
    COMM.barrier()


class Model(tn.nn.Module):
    """A perceptron in float64, with a parameter that some examples alone use."""

    def __init__(self, device: str) -> None:
        super().__init__()
        rng = np.random.default_rng(5)
        with tn.using_device(device):
            self.w = tn.nn.Parameter(tn.get_device(device).from_host(rng.normal(size=(4, 3))))
            self.b = tn.nn.Parameter(tn.get_device(device).from_host(np.zeros(3)))
            self.extra = tn.nn.Parameter(tn.get_device(device).from_host(np.ones(3)))


def mean_loss(w: Any, b: Any, x: Any, t: Any) -> Any:
    return tn.functions.mean((tn.functions.tanh(x @ w + b) - t) ** 2)


WAYS = "after", "during", "compiled loss", "compiled step", "sum", "accumulated"
"""The ways of a step, each with the same numbers."""


class Step:
    """A step of training on the part of this rank of a batch."""

    def __init__(
        self, model: Model, optimizer: distributed.DistributedOptimizer, way: str
    ) -> None:
        self.model, self.optimizer, self.way = model, optimizer, way
        self.loss_of = tn.compile(mean_loss) if way == "compiled loss" else mean_loss
        self.run = tn.compile(self.plain) if way == "compiled step" else self.plain

    def plain(self, x: Any, t: Any, total: int) -> None:
        model, optimizer = self.model, self.optimizer
        optimizer.cleargrads()
        if self.way == "accumulated":  # 2 passes on the rank, then an exchange
            sizes = len(x[:1]), len(x[1:])
            losses = [self.loss_of(model.w, model.b, x[:1], t[:1]) * sizes[0] / len(x)]
            if sizes[1]:
                losses.append(self.loss_of(model.w, model.b, x[1:], t[1:]) * sizes[1] / len(x))
            for loss in losses[:-1]:
                loss.backward()
            optimizer.backward(losses[-1], weight=len(x))
            optimizer.update()
            return
        loss = self.loss_of(model.w, model.b, x, t)
        if self.way == "sum":
            optimizer.backward(loss * (len(x) / total))
            optimizer.update()
        elif self.way in ("during", "compiled step"):
            optimizer.backward(loss, weight=len(x))
            optimizer.update()
        else:
            loss.backward()
            optimizer.update(weight=len(x))


def train(
    device: str,
    kind: Any,
    comm: distributed.Communicator,
    way: str,
    clip: float | None = None,
    freezes: bool = False,
) -> list[Any]:
    """Parameters after 50 steps on the part of this rank of each batch of 7 examples."""
    model = Model(device)
    distributed.broadcast_parameters(model, communicator=comm)
    inner = kind([model.w, model.b])
    operation = "sum" if way == "sum" else "mean"
    optimizer = distributed.DistributedOptimizer(
        inner, comm, bucket_bytes=64, operation=operation, clip=clip
    )
    step = Step(model, optimizer, way)
    rng = np.random.default_rng(6)
    for number in range(50):
        count = 7 if number % 3 else 6  # uneven on 2 and on 3 ranks, and of changing size
        xs, ts = rng.normal(size=(count, 4)), rng.normal(size=(count, 3))
        own = slice(comm.rank, None, comm.size)
        x, t = tn.asarray(xs[own], device=device), tn.asarray(ts[own], device=device)
        if freezes and number in (10, 30):
            before = tn.to_host(model.b.array).copy()
            model.b.requires_grad = number == 30
        # without the count, the ranks record nets at different steps
        step.run(x.detach(), t.detach(), count if way == "sum" else 0)
        if freezes and number >= 10:
            assert (tn.to_host(model.b.array) == before).all() == (number < 30)
    if comm.size > 1:
        assert optimizer.sent > 0
    return [tn.to_host(p.array) for p in (model.w, model.b)]


def check_training(device: str, ways: tuple[str, ...] = WAYS) -> None:
    """The ranks together, and one rank alone with the whole batch, end at the same parameters."""
    alone = distributed.Communicator()
    kinds = [
        lambda p: tn.nn.SGD(p, lr=0.1, momentum=0.9),
        lambda p: tn.nn.Adam(p, lr=0.01),
        lambda p: tn.nn.AdamW(p, lr=0.01),
    ]
    for kind, clip in (*[(kind, None) for kind in kinds], (kinds[0], 0.1)):
        expected = train(device, kind, alone, "after", clip)
        if clip is not None:
            assert np.abs(expected[0] - train(device, kind, alone, "after")[0]).max() > 1e-3
        for way in ways:
            for a, b in zip(train(device, kind, COMM, way, clip), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-12, err_msg=way)
                assert all((one == a).all() for one in COMM.allgather(a))


def check_overlap() -> None:
    """Buckets leave while the backward pass runs, also for shared and unused parameters."""
    rng = np.random.default_rng(3)
    weights = [tn.nn.Parameter(rng.normal(size=(5, 5))) for _ in range(6)]
    unused = tn.nn.Parameter(rng.normal(size=(2,)))
    for is_lazy in (False, True):  # sums of gradients wait in the table, if lazy
        optimizer = distributed.DistributedOptimizer(
            tn.nn.SGD([*weights, unused], lr=0.1, allow_missing=True), bucket_bytes=1
        )
        buckets = optimizer.new_exchange(1.0).buckets
        assert [bucket.parameters for bucket in buckets] == [
            [unused],
            *[[w] for w in weights[::-1]],
        ]
        optimizer.cleargrads()
        with tn.using_config(lazy_grad_sum=is_lazy):
            x = tn.asarray(draws(COMM.rank, 9, (3, 5)))
            h = x
            for w in (*weights, weights[-1]):  # the last parameter has two uses
                h = tn.functions.tanh(h @ w)
            loss = tn.functions.sum(h)
            expected = tn.grad([loss], weights)
            optimizer.backward(loss)
        exchange = optimizer._exchange
        if COMM.size > 1 and not is_lazy:
            assert exchange is not None and len(exchange.pending) == 7  # before update()
        optimizer.average_gradients()
        for w, gradient in zip(weights, expected, strict=True):
            close(w.grad, COMM.allreduce(gradient.array) / COMM.size)
        assert unused.grad is None
    check_inner_passes(weights)


class Inner(tn.FunctionNode):
    """y = 2x; backward also writes to the gradient of a parameter, by a backward pass."""

    def __init__(self, parameter: tn.Variable) -> None:
        self.parameter = parameter

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] * 2,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        with tn.force_backprop_mode():
            tn.functions.sum(self.parameter * 3.0).backward()
        return (grad_outputs[0] * 2,)


def check_inner_passes(weights: list[tn.nn.Parameter]) -> None:
    """Functions that run a backward pass: no bucket leaves before the gradients are complete."""
    optimizer = distributed.DistributedOptimizer(tn.nn.SGD(weights, lr=0.1), bucket_bytes=1)

    def layers(h: Any) -> Any:
        for w in weights:
            h = tn.functions.tanh(h @ w)
        return h

    x = tn.asarray(draws(COMM.rank, 9, (3, 5)))
    expected = tn.grad([tn.functions.sum(layers(layers(layers(x))))], weights)
    optimizer.cleargrads()
    # the parameters are used before, inside and after
    optimizer.backward(tn.functions.sum(layers(tn.checkpoint(layers, layers(x)))))
    exchange = optimizer._exchange
    if exchange is not None:  # all have left after the checkpointed function, in the outer pass
        assert len(exchange.pending) == len(weights)
    optimizer.average_gradients()
    for w, gradient in zip(weights, expected, strict=True):
        close(w.grad, COMM.allreduce(gradient.array) / COMM.size)
    optimizer.cleargrads()
    loss = tn.functions.sum(layers(Inner(weights[-1]).apply((x * weights[0][0, 0],))[0]))
    if COMM.size == 1:
        return
    try:
        optimizer.backward(loss)
    except tn.errors.GraphError as error:
        assert "runs_backward = True" in str(error)
    else:
        raise AssertionError("a bucket left too early, without an error")
    Inner.runs_backward = True  # type: ignore[attr-defined]
    optimizer = distributed.DistributedOptimizer(tn.nn.SGD(weights, lr=0.1), bucket_bytes=1)
    optimizer.cleargrads()
    optimizer.backward(tn.functions.sum(Inner(weights[-1]).apply((x * weights[0][0, 0],))[0]))
    optimizer.average_gradients()
    close(weights[-1].grad, np.full((5, 5), 3.0))


def check_messages_in_step() -> None:
    """Messages of gradients mix neither with other collectives nor with a failed pass."""
    parameters = [tn.nn.Parameter(np.ones(3)) for _ in range(2)]
    a, b = parameters
    x = tn.asarray(np.ones(3), requires_grad=True)
    optimizer = distributed.DistributedOptimizer(
        tn.nn.SGD(parameters, lr=1.0, allow_missing=True), bucket_bytes=8
    )
    loss = tn.functions.sum(a * 2.0 + b * 2.0) if COMM.is_main else tn.functions.sum(x)
    optimizer.backward(loss)
    np.testing.assert_array_equal(COMM.allreduce(np.arange(5.0)), COMM.size * np.arange(5.0))
    optimizer.average_gradients()
    close(a.grad, np.full(3, 2.0 / COMM.size))
    optimizer.cleargrads()
    total = functions.allreduce(a * 2.0)  # a collective in the graph, too
    loss = tn.functions.sum(total * b) if COMM.is_main else tn.functions.sum(total * 5.0)
    optimizer.operation = "sum"
    optimizer.backward(loss)
    optimizer.average_gradients()
    others = COMM.size - 1
    close(a.grad, np.full(3, COMM.size * 2.0 * (1 + 5 * others)))
    close(b.grad, np.full(3, 2.0 * COMM.size))
    optimizer.cleargrads()
    chain = [tn.functions.sin(x * a), Failing().apply((x * b,))[0]]
    loss = tn.functions.sum(sum(chain if COMM.is_main else chain[::-1]))
    try:
        optimizer.backward(loss)
    except ArithmeticError:
        pass
    else:
        raise AssertionError("the backward did not fail")
    assert a.grad is None
    optimizer.backward(tn.functions.sum((a + b) * 3.0))
    optimizer.average_gradients()
    for p in parameters:
        close(p.grad, np.full(3, 3.0 * COMM.size))
    optimizer.cleargrads()
    optimizer.backward(tn.functions.sum((a + b) * 7.0))
    optimizer.cleargrads()  # a step without an update, as after a bad loss
    optimizer.backward(tn.functions.sum((a + b) * 2.0))
    optimizer.average_gradients()
    for p in parameters:
        close(p.grad, np.full(3, 2.0 * COMM.size))


class Failing(tn.FunctionNode):
    """y = x; backward raises."""

    def forward(self, inputs: Any) -> Any:
        return (inputs[0] * 1,)

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        raise ArithmeticError("planned")


def check_frozen_parameters(device: str) -> None:
    """A parameter that is frozen for some steps has no place in the messages."""
    alone = distributed.Communicator()
    for kind in (lambda p: nn.SGD(p, lr=0.1, momentum=0.9), lambda p: nn.AdamW(p, lr=0.01)):
        expected = train(device, kind, alone, "after", freezes=True)
        for way in WAYS:
            found = train(device, kind, COMM, way, freezes=True)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-12, err_msg=way)


def check_half_precision() -> None:
    """Gradients of float16 travel as float32, with weights of any size."""
    p = tn.nn.Parameter(np.ones(3, np.float16))
    optimizer = distributed.DistributedOptimizer(tn.nn.SGD([p], lr=1.0))
    for gradient, weight in ((1000.0, 128), (1.0, 70000), (2.0, np.int64(3))):
        p.grad = np.full(3, gradient, np.float16)
        optimizer.average_gradients(weight)
        close(p.grad, np.full(3, gradient), "float16")


def check_two_messages_with_a_tag() -> None:
    """The gradients of messages with equal tags reach the right sender."""
    x = [tn.asarray(np.full(2, v), requires_grad=True) for v in (1.0, 2.0)]
    if COMM.rank == 0:
        tokens = [functions.send(v, 1) for v in x]
        tn.backward(tokens, [t * 0 for t in tokens])
        close(x[0].grad_var, np.full(2, 10.0))
        close(x[1].grad_var, np.full(2, 100.0))
        COMM.send(np.ones(1), 1, "late")
        COMM.send(np.zeros(1), 1, "early")
    elif COMM.rank == 1:
        first, second = functions.receive(0), functions.receive(0)
        tn.functions.sum(second * 100.0 + first * 10.0).backward()
        assert COMM.receive(0, "early")[0] == 0 and COMM.receive(0, "late")[0] == 1
    COMM.barrier()


class UnpicklableError(Exception):
    """An exception that pickle cannot make anew."""

    def __init__(self, a: Any, b: Any) -> None:
        super().__init__(f"{a} and {b}")


def raise_unpicklable() -> None:
    raise UnpicklableError("left", "right")


def check_loaders() -> None:
    """A loader without a seed has the order of rank 0 on all ranks."""
    tn.seed(COMM.rank)
    loader = tn.nn.DataLoader(list(range(40)), 8, shuffle=True)
    seen = [int(v) for s in distributed.scatter_batches(loader) for v in s.batch.array]
    every = [v for part in COMM.allgather_objects(seen) for v in part]
    assert sorted(every) == list(range(40)), every


def collectives(x: Any, w: Any) -> Any:
    """All collectives, and a loss."""
    total = functions.allreduce(x * w)
    every = functions.allgather(tn.functions.sin(x) * w)
    given = functions.broadcast(w * w)
    return tn.functions.sum(total * given) + tn.functions.sum(every**2) / COMM.size


def check_compiled_collectives(device: str) -> None:
    """Collectives as operators of nets; ranks record at different times."""
    compiled = tn.compile(collectives)
    for length in (2, 3, 2, 4 if COMM.is_main else 3, 3):
        length = min(COMM.allgather_objects(length))
        x = variable(draws(COMM.rank, 10, (length,)), device)
        w = variable(draws(COMM.rank, 11, (length,)), device)
        if COMM.rank == COMM.size - 1:
            compiled = tn.compile(collectives)  # this rank records anew in each round
        results = []
        for function in (collectives, compiled):
            loss = function(x, w)
            gradients = tn.grad([loss], [x, w], enable_double_backprop=True)
            inner = tn.functions.sum(gradients[0] * gradients[1])
            results.append([loss, *gradients, *tn.grad([inner], [x, w])])
        for a, b in zip(*results, strict=True):
            close(a, b.array)


def check_unused_and_nan(device: str) -> None:
    """A parameter that one rank uses is averaged with zeros; a NaN is on all ranks."""
    model = Model(device)
    optimizer = distributed.DistributedOptimizer(tn.nn.SGD(list(model.parameters()), lr=1.0))
    used = model.extra if COMM.is_main else model.b
    loss = tn.functions.sum(model.w * 1.0) + tn.functions.sum(used * 2.0)
    (loss * (np.nan if COMM.rank == COMM.size - 1 else 1.0)).backward()
    if COMM.size == 1:
        model.b.grad = model.b.device.from_host(np.zeros(3))
    optimizer.average_gradients()
    assert np.isnan(tn.to_host(model.w.grad)).all()
    if COMM.size > 1:
        np.testing.assert_allclose(tn.to_host(model.extra.grad), np.full(3, 2.0 / COMM.size))
    optimizer.cleargrads()
    empty = COMM.rank == COMM.size - 1 and COMM.size > 1  # a rank without an example
    loss = tn.functions.sum(model.w * (np.nan if empty else 3.0))
    optimizer.backward(loss, weight=0 if empty else 2)
    optimizer.average_gradients()
    np.testing.assert_allclose(tn.to_host(model.w.grad), np.full((4, 3), 3.0))
    means = distributed.all_metrics({"loss": float(COMM.rank)}, weight=1 + COMM.rank)
    weights = np.arange(1.0, COMM.size + 1)
    np.testing.assert_allclose(means["loss"], (weights * RANKS).sum() / weights.sum())
    parts = COMM.allgather_objects([int(i) for i in distributed.scatter_dataset(range(10), 3)])
    assert sorted(i for part in parts for i in part) == list(range(10))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


class Normalised(tn.nn.Module):
    """A model with a buffer and with random numbers."""

    def __init__(self) -> None:
        self.layers = tn.nn.Sequential(
            tn.nn.Linear(3, 4), tn.nn.BatchNorm(4), tn.nn.Dropout(0.5), tn.nn.Linear(4, 1)
        )

    def forward(self, x: Any) -> Any:
        return self.layers(x)


def error_of(model: Any, x: Any, t: Any) -> Any:
    return tn.functions.mean_squared_error(model(x), t)


def check_trainer(folder: str) -> None:
    """A trainer on all ranks: one history, one checkpoint, equal parameters and buffers."""
    tn.seed(COMM.rank)  # the trainer gives all ranks the parameters of rank 0
    rng = np.random.default_rng(8)
    xs, ts = rng.normal(size=(28, 3)), rng.normal(size=(28, 1))
    model = Normalised()

    def trainer() -> distributed.DistributedTrainer:
        loader = tn.nn.DataLoader(tn.nn.ArrayDataset(xs, ts), 7, shuffle=True, seed=4)
        return distributed.DistributedTrainer(
            model,
            error_of,
            tn.nn.Adam(model, lr=0.01),
            loader,
            validation=loader,
            clip=1.0,
            accumulate=2,
            checkpoint=f"{folder}/run.npz",
            log=f"{folder}/run.csv",
            rank_logs=f"{folder}/logs",
        )

    first = trainer()
    history = first.run(2, quiet=True)
    assert [history] * COMM.size == COMM.allgather_objects(history)
    state = {name: tn.to_host(x) for name, x in model.state_dict().items()}
    for name, host in state.items():
        for other in COMM.allgather(host):
            np.testing.assert_array_equal(other, host, err_msg=name)
    (mean,) = [host for name, host in state.items() if name.endswith("running_mean")]
    assert np.abs(mean).max() > 0
    drawn = COMM.allgather_objects(float(tn.random.get_generator().random()))
    assert len(set(drawn)) == COMM.size, drawn
    first.run(1, quiet=True)
    again = trainer()
    again.resume(f"{folder}/run.npz")
    assert again.epoch == 3 and again.history == first.history
    xs[3] = np.nan  # an example of a single rank
    try:
        first.run(1, quiet=True)
    except tn.errors.NaNError as error:
        assert "the loss is nan" in str(error)
    else:
        raise AssertionError("a NaN passed")
    COMM.barrier()


SOME = tn.nn.SGD([tn.nn.Parameter(np.ones(2))], lr=0.1)


def failing(text: str) -> None:
    raise tn.errors.StateError(text)


def normalised(layer: Any, x: Any, w: Any, gw: Any) -> list[Any]:
    """The loss of a layer, gradients and second gradients, by x, gamma and beta."""
    y = layer(x)
    targets = [x, layer.gamma, layer.beta]
    loss = tn.functions.sum(tn.functions.tanh(y) * w)
    first = tn.grad([loss], targets, enable_double_backprop=True)
    inner = tn.functions.sum(first[0] * gw)
    return [y, first, tn.grad([inner], targets)]


def check_sync_batch_norm(device: str, compiled: bool = False) -> None:
    """Uneven parts of a batch on the ranks, against BatchNorm on the whole batch."""
    counts = [3 * (r % 2) + 2 * (r + 1) for r in RANKS] if COMM.size < 3 else [4, 0, 1]
    starts = np.cumsum([0, *counts])
    own = slice(starts[COMM.rank], starts[COMM.rank + 1])
    for places in ((), (2, 3)):
        shape = (starts[-1], 2, *places)
        x, w, gw = (draws(0, seed, shape) for seed in (21, 22, 23))
        x = 3 * x + 5
        with tn.using_device(device):
            whole, part = nn.BatchNorm(2, dtype="float64"), nn.BatchNorm(2, dtype="float64")
        for layer in (whole, part):
            layer.gamma.array = tn.get_device(device).from_host(np.asarray([0.5, -2.0]))
        synced = distributed.convert_batch_norm(part)
        function = tn.compile(synced) if compiled else synced
        for _ in range(2):
            y, first, second = normalised(whole, *(variable(one, device) for one in (x, w, gw)))
            parts = [variable(one[own], device) for one in (x, w, gw)]
            y_own, first_own, second_own = normalised(Calls(function, synced), *parts)
            close(y_own, tn.to_host(y.array)[own])
            for wide, narrow in ((first, first_own), (second, second_own)):
                close(narrow[0], tn.to_host(wide[0].array)[own])
                for a, b in zip(wide[1:], narrow[1:], strict=True):
                    if a is None:  # beta has no second gradient by x
                        continue
                    close(COMM.allreduce(b), tn.to_host(a.array))
            for name in ("running_mean", "running_variance"):
                running = getattr(synced, name)
                close(running, tn.to_host(getattr(whole, name).array))
                host = tn.to_host(running.array)
                assert all((one == host).all() for one in COMM.allgather(host))


class Calls:
    """A layer's parameters beside the function to call."""

    def __init__(self, function: Any, layer: Any) -> None:
        self.function = function
        self.gamma, self.beta = layer.gamma, layer.beta

    def __call__(self, x: Any) -> Any:
        return self.function(x)


def check_few_examples() -> None:
    """All ranks together have one value for each channel: an error on each rank."""
    layer = distributed.SyncBatchNorm(2)
    for count in (0, 1):
        try:
            layer(np.ones((count if COMM.is_main else 0, 2), "float32"))
        except ValueError as error:
            assert f"have {count} values" in str(error), str(error)
        else:
            raise AssertionError(count)


def check_training_with_sync_batch_norm() -> None:
    """The loss of the program is the sum over the ranks: a rank divides by all examples."""
    results = []
    for comm in (COMM, distributed.Communicator()):
        rng = np.random.default_rng(31)
        layer = distributed.SyncBatchNorm(3, communicator=comm, dtype="float64")
        optimizer = distributed.DistributedOptimizer(
            nn.SGD(layer, lr=0.1, momentum=0.9), comm, operation="sum"
        )
        for _ in range(20):
            x, t = rng.normal(size=(7, 3)), rng.normal(size=(7, 3))
            own = slice(comm.rank, None, comm.size)
            y = layer(layer(x[own]))
            loss = tn.functions.sum(tn.functions.square(y - t[own])) / float(t.size)
            optimizer.cleargrads()
            optimizer.backward(loss)
            optimizer.update()
        results.append(layer.state_dict())
    for name, array in results[0].items():
        np.testing.assert_allclose(array, results[1][name], rtol=0, atol=1e-12)


def check_trainer_with_sync_batch_norm() -> None:
    """The trainer on all ranks, and on one rank with BatchNorm, end at the same state."""
    rng = np.random.default_rng(32)
    inputs, targets = rng.normal(size=(31, 3)), rng.normal(size=(31, 2))  # batches of 7 and 3
    states = []
    for comm in (COMM, distributed.Communicator()):
        tn.seed(0)
        first = nn.Linear(3, 4, bias=False, dtype="float64")  # a bias would have the gradient 0
        norm, last = nn.BatchNorm(4, dtype="float64"), nn.Linear(4, 2, dtype="float64")
        model = nn.Sequential(first, norm, last)
        if comm is COMM:
            model = distributed.convert_batch_norm(model)
        data = nn.ArrayDataset(inputs, targets)
        trainer = distributed.DistributedTrainer(
            model,
            trainer_loss,
            nn.Adam(model, lr=0.01),
            nn.DataLoader(data, 7, shuffle=True, seed=0),
            communicator=comm,
        )
        trainer.run(3, quiet=True)
        states.append(model.state_dict())
    for name, array in states[0].items():
        np.testing.assert_allclose(array, states[1][name], rtol=0, atol=1e-12)


def trainer_loss(model: Any, x: Any, t: Any) -> Any:
    return tn.functions.mean_squared_error(model(x), t)


def check_errors() -> None:
    """Wrong arguments raise on every rank, and the communicator still works."""
    bad: list[tuple[Callable[[], Any], str]] = [
        (lambda: COMM.allreduce(np.ones(2), "median"), "operation must be one of"),
        (lambda: COMM.broadcast(np.ones(2), COMM.size), f"from 0 to {COMM.size - 1}"),
        (lambda: COMM.send(np.ones(2), COMM.rank), "this rank"),
        (lambda: COMM.allreduce([1.0, 2.0]), "allreduce"),
        (lambda: COMM.allreduce(np.ones(2, int), "mean"), "mean of integers"),
        (lambda: COMM.allreduce(np.ones(2, bool)), "booleans have no sum"),
        (lambda: COMM.allreduce(np.ones(2, complex), "max"), "complex numbers have no max"),
        (lambda: COMM.send(np.ones(2), (COMM.rank + 1) % max(COMM.size, 2), 1.5), "must be a"),
        (lambda: distributed.Communicator("world"), "communicator of mpi4py"),  # type: ignore[arg-type]
        (lambda: distributed.DistributedOptimizer(SOME, 2), "must be a Communicator"),  # type: ignore[arg-type]
        (lambda: distributed.broadcast_parameters(SOME), "model must be a Module"),
        (lambda: distributed.all_metrics({"a": None}), "metric 'a'"),  # type: ignore[dict-item]
    ]
    for call, text in bad:
        try:
            call()
        except (ValueError, TypeError) as error:
            assert text in str(error), str(error)
        else:
            raise AssertionError(text)
    try:
        COMM.on_main(failing, "no file")
    except tn.errors.StateError as error:
        assert str(error) == "no file"
    else:
        raise AssertionError("on_main hides an error")
    assert COMM.on_main(str.upper, "a") == "A"
    try:
        COMM.on_main(raise_unpicklable)
    except (UnpicklableError, tn.errors.RankError) as error:
        assert "left and right" in str(error)
    else:
        raise AssertionError("on_main hides an error")
    try:
        COMM.on_main(threading.Lock)
    except TypeError as error:
        assert "cannot be sent" in str(error)
    else:
        raise AssertionError("a lock was sent")
    single = np.ones((1, 2)), [np.zeros(1), "text"]
    (share,) = distributed.scatter_batches([single])
    assert (share.examples, share.total) == (int(COMM.is_main), 1)
    assert share.batch[0].shape == (1, 2)  # another rank has the example too, with weight 0
    assert COMM.allgather_objects(COMM.rank) == list(RANKS)
    assert COMM.broadcast_object({"seed": COMM.rank}) == {"seed": 0}


def main() -> None:
    for device in ("numpy", "fast", "strict"):
        check_arrays(device)
        check_functions(device)
        if COMM.size > 1:
            check_pipeline(device)
        check_unused_and_nan(device)
        check_sync_batch_norm(device)
    for device in ("numpy", "fast"):
        check_training(device)
        check_compiled_collectives(device)
        check_frozen_parameters(device)
        check_sync_batch_norm(device, compiled=True)
    check_few_examples()
    check_training_with_sync_batch_norm()
    check_trainer_with_sync_batch_norm()
    check_overlap()
    check_messages_in_step()
    check_half_precision()
    check_loaders()
    if COMM.size > 1:
        check_two_messages_with_a_tag()
    with tempfile.TemporaryDirectory() as folder:
        check_trainer(COMM.broadcast_object(folder))
    check_errors()
    print(f"rank {COMM.rank} of {COMM.size}: fine")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
