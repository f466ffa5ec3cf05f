"""Caches of keys and values: one token at a time gives what the whole sequence gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn

fn = tn.functions
DTYPES = {"float32": 2e-6, "float64": 4e-15}
"""By dtype: a few units in the last place of numbers of size 1."""


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def pieces(x: np.ndarray, sizes: tuple[int, ...]) -> list[np.ndarray]:
    return np.split(x, np.cumsum(sizes)[:-1], axis=1)


@pytest.fixture(autouse=True)
def seed() -> None:
    tn.seed(4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1, 1), (3, 1, 1), (2, 3)])
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_block_with_a_cache(norm_first: bool, sizes: tuple[int, ...], dtype: str) -> None:
    block = nn.TransformerBlock(8, 2, norm_first=norm_first, causal=True, dtype=dtype)
    x = normal(3, 5, 8)
    cache, parts = nn.KeyValueCache(), []
    with tn.no_grad():
        whole = block(x)
        for piece in pieces(x, sizes):
            y, cache = block(piece, cache=cache)
            parts.append(y)
    found = fn.concat(parts, axis=1).array
    np.testing.assert_allclose(found, whole.array, rtol=DTYPES[dtype], atol=DTYPES[dtype])
    assert cache.length == 5 and cache.keys.shape == (3, 2, 5, 4)
    assert cache.keys.dtype.name == dtype and not cache.keys.requires_grad


@pytest.mark.parametrize("batch_first", [True, False])
def test_attention_with_a_cache_has_the_same_weights(batch_first: bool) -> None:
    layer = nn.MultiHeadAttention(8, 4, batch_first=batch_first, dtype="float64")
    x = normal(2, 4, 8)

    def given(piece: np.ndarray) -> np.ndarray:
        return piece if batch_first else np.swapaxes(piece, 0, 1)

    y, weights = layer(given(x), is_causal=True, average_attn_weights=False)
    cache = nn.KeyValueCache()
    for i in range(4):
        z, seen, cache = layer(
            given(x[:, [i]]), is_causal=True, average_attn_weights=False, cache=cache
        )
        expected = y.array[:, [i]] if batch_first else y.array[[i]]
        np.testing.assert_allclose(z.array, expected, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(seen.array, weights.array[:, :, [i], : i + 1], rtol=1e-13)


def test_one_sequence_without_a_batch() -> None:
    layer = nn.MultiHeadAttention(4, 2, dtype="float64")
    x, cache = normal(3, 4), nn.KeyValueCache()
    whole = layer(x, is_causal=True)[0].array
    for i in range(3):
        y, _, cache = layer(x[[i]], is_causal=True, cache=cache)
        np.testing.assert_allclose(y.array, whole[[i]], rtol=1e-13, atol=1e-15)


def test_padding_masks_count_all_keys() -> None:
    """Sequences of different lengths begin with padding, as in a batch of prompts."""
    block = nn.TransformerBlock(8, 2, causal=True, dtype="float64")
    x = normal(2, 4, 8)
    hidden = np.array([[False] * 4, [True, True, False, False]])
    whole = block(x, key_padding_mask=hidden).array
    _, cache = block(x[:, :3], key_padding_mask=hidden[:, :3], cache=nn.KeyValueCache())
    y, _ = block(x[:, 3:], key_padding_mask=hidden, cache=cache)
    np.testing.assert_allclose(y.array, whole[:, 3:], rtol=1e-13, atol=1e-15)
    alone = block(x[1:, 2:]).array[:, 1:]
    np.testing.assert_allclose(y.array[1:], alone, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_decoder_block_computes_the_keys_of_the_memory_once(norm_first: bool) -> None:
    block = nn.TransformerDecoderBlock(8, 2, norm_first=norm_first, dtype="float64")
    x, memory = normal(2, 4, 8), normal(2, 6, 8)
    hidden = np.array([[False] * 6, [False] * 5 + [True]])
    whole = block(x, memory, memory_key_padding_mask=hidden).array
    cache = nn.DecoderCache()
    for i in range(4):
        old = cache.memory.keys
        y, cache = block(x[:, [i]], memory, memory_key_padding_mask=hidden, cache=cache)
        np.testing.assert_allclose(y.array, whole[:, [i]], rtol=1e-13, atol=1e-15)
        assert cache.length == i + 1 and cache.memory.length == 6
        assert i == 0 or np.array_equal(cache.memory.keys.array, old.array)


def test_positions_start_behind_the_cache() -> None:
    x = normal(2, 5, 8)
    for layer in (nn.PositionalEncoding(8), nn.RotaryEncoding(8)):
        whole = layer(x).array
        np.testing.assert_array_equal(layer(x[:, 3:], start=3).array, whole[:, 3:])


def test_the_gradient_goes_through_the_cache() -> None:
    block = nn.TransformerBlock(4, 2, causal=True, dtype="float64")
    x = tn.Variable(normal(2, 3, 4))
    fn.sum(block(x) ** 2).backward()
    expected = {name: p.grad for name, p in block.named_parameters()}, x.grad
    block.cleargrads()
    x.cleargrad()
    total, cache = tn.asarray(0.0), nn.KeyValueCache()
    for i in range(3):
        y, cache = block(x[:, i : i + 1], cache=cache)
        total = total + fn.sum(y**2)
    total.backward()
    np.testing.assert_allclose(x.grad, expected[1], rtol=1e-11, atol=1e-13)
    for name, p in block.named_parameters():
        np.testing.assert_allclose(p.grad, expected[0][name], rtol=1e-11, atol=1e-13)


def test_a_call_leaves_the_given_cache_as_it_is() -> None:
    block = nn.TransformerBlock(4, 2, causal=True)
    _, start = block(normal(1, 2, 4), cache=nn.KeyValueCache())
    first, longer = block(normal(1, 1, 4), cache=start)
    again, _ = block(normal(1, 1, 4), cache=start)
    assert (start.length, longer.length) == (2, 3)
    np.testing.assert_array_equal(first.array, again.array)
    assert nn.KeyValueCache().length == 0 and vars(block).keys() == vars(block.eval()).keys()


def test_a_compiled_step_and_a_vmapped_step() -> None:
    block = nn.TransformerBlock(4, 2, causal=True, dtype="float64")
    x = normal(2, 3, 4)
    _, cache = block(x[:, :2], cache=nn.KeyValueCache())

    def step(piece: Any, cache: nn.KeyValueCache) -> Any:
        return block(piece, cache=cache)

    expected, longer = step(x[:, 2:], cache)
    y, found = tn.compile(step)(x[:, 2:], cache)
    np.testing.assert_allclose(tn.to_host(y), expected.array, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(tn.to_host(found.keys), longer.keys.array, rtol=1e-13)

    def one(piece: Any, keys: Any, values: Any) -> Any:
        return block(piece[None], cache=nn.KeyValueCache(keys[None], values[None]))[0][0]

    z = tn.vmap(one)(x[:, 2:], cache.keys, cache.values)
    np.testing.assert_allclose(z.array, expected.array, rtol=1e-12, atol=1e-14)


LAYER = nn.MultiHeadAttention(4, 2, batch_first=True)
X = np.zeros((2, 1, 4), np.float32)
WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "list": (
        lambda: LAYER(X, cache=[nn.KeyValueCache()]),
        tn.errors.OperandError,
        r"MultiHeadAttention: cache must be an nn.KeyValueCache, got list.*one for each layer",
    ),
    "batch": (
        lambda: LAYER(X[:1], cache=LAYER(X, cache=nn.KeyValueCache())[2]),
        ValueError,
        r"cache has keys .*\(2, 2, 1, 2\).*new keys are \(1, 2, 1, 2\)",
    ),
    "heads": (
        lambda: LAYER(X, cache=nn.MultiHeadAttention(4, 1)(X, cache=nn.KeyValueCache())[2]),
        ValueError,
        r"cache has keys .*new keys are \(2, 2, 1, 2\).* its own cache",
    ),
    "mask": (
        lambda: LAYER(X, cache=LAYER(X, cache=nn.KeyValueCache())[2], attn_mask=np.eye(1) > 0),
        ValueError,
        r"attn_mask must have shape \(1, 2\)",
    ),
    "block": (
        lambda: nn.TransformerBlock(4, 2)(X, cache=nn.DecoderCache()),
        tn.errors.OperandError,
        "cache must be an nn.KeyValueCache",
    ),
    "decoder": (
        lambda: nn.TransformerDecoderBlock(4, 2)(X, X, cache=nn.KeyValueCache()),
        tn.errors.OperandError,
        "TransformerDecoderBlock: cache must be an nn.DecoderCache, got KeyValueCache",
    ),
    "memory": (
        lambda: nn.TransformerDecoderBlock(4, 2)(X, X[0]),
        ValueError,
        r"TransformerDecoderBlock: memory must be \(batch, length, size\).*memory\[None\]",
    ),
    "other memory": (
        lambda: (block := nn.TransformerDecoderBlock(4, 2))(
            X,
            np.zeros((2, 3, 4), np.float32),
            cache=block(X, X, cache=nn.DecoderCache())[1],
        ),
        ValueError,
        "memory has length 3, and the cache has 1 keys.*nn.DecoderCache",
    ),
    "start": (lambda: nn.PositionalEncoding(4)(X, start=-1), ValueError, "start must be at least"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_caches_are_refused(name: str) -> None:
    call, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        call()


def test_the_text_of_a_cache_has_shapes_and_no_arrays() -> None:
    block = nn.TransformerDecoderBlock(4, 2)
    _, cache = block(X, X, cache=nn.DecoderCache())
    part = "KeyValueCache(keys of (2, 2, 1, 2))"
    assert repr(cache) == f"DecoderCache(own={part}, memory={part})"
    assert repr(nn.KeyValueCache()) == "KeyValueCache()"
