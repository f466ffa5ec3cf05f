"""Draws with a key in compiled functions, vmap, checkpoint and derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions as fn
from tinynode import nn
from tinynode.errors import TraceError

DEVICES = ["numpy", "fast", "strict"]


@pytest.fixture(params=DEVICES, autouse=True)
def _device(request: pytest.FixtureRequest) -> Any:
    with tn.using_device(request.param):
        yield


def host(x: Any) -> Any:
    return tn.to_host(x.array)


def assert_equal(found: Any, expected: Any) -> None:
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(host(x), host(y))


def draws(key: Any) -> tuple[Any, ...]:
    """All draws, of the same key and of others."""
    first, second = tn.random.split(key)
    third = tn.random.fold_in(key, 3)
    return (
        tn.random.normal((3, 5), 1.0, 2.0, key=first, dtype="float64"),
        tn.random.normal((4,), key=second),
        tn.random.uniform((2, 3), -1.0, 1.0, key=third, dtype="float64"),
        tn.random.integers((7,), 0, 10, key=first),
        tn.random.bernoulli((7,), 0.3, key=second),
        tn.random.permutation(6, key=third),
        tn.random.split(third, 3),
        fn.dropout(tn.asarray(np.ones((3, 4))), 0.5, key=third),
    )


# --- compiled functions --------------------------------------------------------------------------


def test_a_compiled_function_draws_new_numbers_for_new_keys_without_a_new_recording() -> None:
    recordings = []

    def recorded(key: Any) -> Any:
        recordings.append(key)
        return draws(key)

    run = tn.compile(recorded)
    for seed in (0, 1, 2, 0, 5):
        key = tn.random.key(seed)
        assert_equal(run(key), draws(key))
    assert len(recordings) == 1


def test_a_key_may_be_an_array_and_a_number_an_argument() -> None:
    run = tn.compile(lambda key, i: tn.random.normal(3, key=tn.random.fold_in(key, i)))
    for i in range(4):
        key, number = tn.random.key(1), tn.asarray(np.asarray(i))
        expected = tn.random.normal(3, key=tn.random.fold_in(key, i))
        assert_equal([run(key.array, number)], [expected])
        assert_equal([run(key, number)], [expected])


def test_the_net_of_a_draw_can_be_written_and_read() -> None:
    found = tn.trace(lambda key: tn.random.normal((2, 3), key=key) * 2.0, tn.random.key(7))
    types = [one.type for one in found.net.flattened()]
    assert "keyed_normal" in types
    net = tn.net.loads(tn.net.dumps(found.net))
    assert [one.type for one in net.flattened()] == types


def test_the_refusal_of_other_draws_names_the_key() -> None:
    run = tn.compile(lambda x: x + tn.asarray(tn.random.normal((3,))))
    with pytest.raises(TraceError, match=r"Pass a key of tn\.random\.key as an argument"):
        run(tn.asarray(np.ones(3)))
    with pytest.raises(TraceError, match="every run would get the same"):
        tn.compile(lambda x: x[tn.random.permutation(3)])(tn.asarray(np.ones(3)))


# --- vmap ----------------------------------------------------------------------------------------


def test_vmap_over_keys_draws_as_the_calls_one_by_one() -> None:
    keys = tn.random.split(tn.random.key(2), 4)
    found = tn.vmap(draws)(keys)
    for i in range(4):
        assert_equal([x[i] for x in found], draws(keys[i]))


def test_vmap_with_one_key_draws_the_same_for_all() -> None:
    key = tn.random.key(2)
    xs = tn.asarray(np.zeros((4, 3)))
    expected = tn.random.normal(3, key=key, dtype="float64")
    from_outside = tn.vmap(lambda x: x + tn.random.normal(3, key=key, dtype="float64"))(xs)
    shared = tn.vmap(lambda x, k: x + tn.random.normal(3, key=k, dtype="float64"), (0, None))
    for row in (*from_outside, *shared(xs, key)):
        assert_equal([row], [expected])


@pytest.mark.parametrize("order", ["compile(vmap)", "vmap(compile)"])
def test_vmap_and_compile_together(order: str) -> None:
    run = tn.compile(tn.vmap(draws)) if order == "compile(vmap)" else tn.vmap(tn.compile(draws))
    for seed in range(3):
        keys = tn.random.split(tn.random.key(seed), 3)
        found = run(keys)
        for i in range(3):
            assert_equal([x[i] for x in found], draws(keys[i]))


def test_nested_vmap() -> None:
    keys = tn.random.split(tn.random.key(2), 6).reshape(2, 3, 2)
    found = tn.vmap(tn.vmap(lambda key: tn.random.uniform(4, key=key)))(keys)
    for i in range(2):
        for j in range(3):
            assert_equal([found[i, j]], [tn.random.uniform(4, key=keys[i, j])])


# --- derivatives ---------------------------------------------------------------------------------


def loss(mean: Any, deviation: Any, key: Any) -> Any:
    """sum (m + s e)^3, with dL/dm = 3 (m + s e)^2 and d2L/ds2 = 6 (m + s e) e^2."""
    noise = tn.random.normal(mean.shape, key=key, dtype="float64")
    return fn.sum((mean + deviation * noise) ** 3)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_gradients_pass_by_the_draw_to_second_order(is_compiled: bool) -> None:
    rng = np.random.default_rng(0)
    m, s = rng.normal(size=4), rng.normal(size=4)
    mean, deviation = tn.asarray(m), tn.asarray(s)
    first, second = tn.gradient(loss, argnums=(0, 1)), tn.hessian(loss, argnums=1)
    if is_compiled:
        first, second = tn.compile(first), tn.compile(second)
    for seed in (0, 1):
        key = tn.random.key(seed)
        e = host(tn.random.normal(4, key=key, dtype="float64"))
        gm, gs = first(mean, deviation, key)
        np.testing.assert_allclose(host(gm), 3 * (m + s * e) ** 2, rtol=1e-12)
        np.testing.assert_allclose(host(gs), 3 * (m + s * e) ** 2 * e, rtol=1e-12)
        hessian = host(second(mean, deviation, key))
        np.testing.assert_allclose(hessian, np.diag(6 * (m + s * e) * e**2), rtol=1e-12)


def test_a_draw_is_a_constant_of_forward_derivatives() -> None:
    key, x = tn.random.key(3), tn.asarray(np.asarray([1.0, 2.0]))

    def f(x: Any) -> Any:
        return x * tn.random.normal(2, key=key, dtype="float64")

    e = host(tn.random.normal(2, key=key, dtype="float64"))
    ones = tn.asarray(np.ones(2))
    np.testing.assert_array_equal(host(tn.jvp(f, (x,), (ones,))[1]), e)
    np.testing.assert_array_equal(host(tn.jacfwd(f)(x)), np.diag(e))
    np.testing.assert_array_equal(host(tn.jacrev(f)(x)), np.diag(e))


def test_checkpoint_draws_the_same_numbers_again() -> None:
    key = tn.random.key(4)
    x, y = (tn.Variable(tn.asarray(np.ones(50)).array) for _ in range(2))

    def f(x: Any) -> Any:
        dropped = fn.dropout(fn.exp(x), 0.5, key=key)
        return fn.sum(dropped * tn.random.normal(50, key=key, dtype="float64") ** 2)

    f(x).backward()
    tn.checkpoint(f, y).backward()
    np.testing.assert_array_equal(host(x.grad_var), host(y.grad_var))
    assert (host(x.grad_var) != 0).any()


# --- dropout -------------------------------------------------------------------------------------


def test_dropout_with_a_key() -> None:
    key, x = tn.random.key(0), tn.asarray(np.full((50, 40), 2.0))
    values, mask = fn.dropout(x, 0.25, key=key, return_mask=True)
    np.testing.assert_array_equal(host(values), host(x) * host(mask))
    assert set(np.unique(host(mask))) == {0.0, 1.0 / 0.75}
    assert abs((host(mask) == 0).mean() - 0.25) < 0.04
    assert_equal([fn.dropout(x, 0.25, key=key)], [values])
    with tn.using_config(train=False):
        assert fn.dropout(x, 0.25, key=key) is x


def test_dropout_takes_one_source_of_numbers() -> None:
    key, x = tn.random.key(0), tn.asarray(np.ones(3))
    with pytest.raises(tn.errors.OperandError, match="dropout: key must be an integer array"):
        fn.dropout(x, 0.5, key=1)
    with pytest.raises(ValueError, match="key takes the place of generator and mask"):
        fn.dropout(x, 0.5, np.random.default_rng(0), key=key)
    with pytest.raises(ValueError, match="key takes the place of generator and mask"):
        fn.dropout(x, 0.5, mask=x, key=key)


def test_gumbel_softmax_with_a_key() -> None:
    key, x = tn.random.key(0), tn.asarray(np.log(np.tile([0.2, 0.5, 0.3], (4000, 1))))
    hard = fn.gumbel_softmax(x, 0.5, hard=True, key=key)
    assert_equal([fn.gumbel_softmax(x, 0.5, hard=True, key=key)], [hard])
    np.testing.assert_allclose(host(hard).mean(axis=0), [0.2, 0.5, 0.3], atol=0.03)
    soft = tn.compile(lambda x, key: fn.gumbel_softmax(x, key=key))
    for seed in (1, 2):
        key = tn.random.key(seed)
        expected = host(fn.gumbel_softmax(x, key=key))
        np.testing.assert_allclose(host(soft(x, key)), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="gumbel_softmax: key takes the place of generator"):
        fn.gumbel_softmax(x, generator=np.random.default_rng(0), key=key)


# --- a program -----------------------------------------------------------------------------------


class Autoencoder(nn.Module):
    """A small variational autoencoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(6, 4), nn.Linear(2, 6)

    def forward(self, x: Any, key: Any) -> Any:
        mean, log_deviation = fn.split(self.encoder(x), 2, axis=1)
        noise = tn.random.normal(mean.shape, key=key)
        y = self.decoder(mean + fn.exp(log_deviation) * noise)
        prior = fn.mean(mean**2 + fn.exp(2 * log_deviation) - 2 * log_deviation)
        return fn.mean_squared_error(y, x) + 0.01 * prior


def test_a_compiled_training_step_with_a_key_is_the_eager_one() -> None:
    losses = []
    for is_compiled in (False, True):
        tn.seed(0)
        model = Autoencoder()
        optimizer = nn.Adam(model, lr=0.01)

        def step(x: Any, key: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            model.cleargrads()
            value = model(x, key)
            value.backward()
            optimizer.update()
            return value

        run = tn.compile(step) if is_compiled else step
        x = tn.asarray(np.random.default_rng(0).random((8, 6)), "float32", requires_grad=False)
        key = tn.random.key(0)
        losses.append([float(run(x, tn.random.fold_in(key, i)).array) for i in range(6)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    assert len(set(losses[0])) == 6
