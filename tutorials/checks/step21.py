"""Checks of exercise 21: cached equals uncached, merged equals unmerged, and bounds of int8."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinynode_course.checks import (
    Hint,
    expect_close,
    expect_equal,
    expect_gradients,
    expect_raises,
    expect_true,
)
from tinynode_course.mynode import mistake

HINTS = {
    "check_attend": Hint(
        "New place number i stands behind the places of the cache. Up to which place may it look?",
        "mask = np.tri(new, length, length - new, dtype=bool), with length places in all.",
    ),
    "check_read": Hint(
        "The new tokens are not the first ones. Which number of place does each have?",
        "places(start + np.arange(new)), with start = caches[0].length; then each block as in"
        " Block.forward, with attend.",
    ),
    "check_write": Hint(
        "How often is each token read if nothing is read twice?",
        "First all given tokens, then each drawn token once.",
    ),
    "check_lora_begins": Hint(
        "What must the added pair give at the beginning, and how can it still learn?",
        "B begins as zeros, A is drawn: the sum is the old layer, and the gradient of B is "
        "not zero.",
    ),
    "check_lora_merges": Hint(
        "Which single matrix does the same as the layer and the pair together?",
        "W + scale B A; the old layer stays as it was.",
    ),
    "check_lora_trains": Hint(
        "Which parameters may move, and does the gradient reach them?",
        "freeze: requires_grad False for the old ones; A and B stay Parameters.",
    ),
    "check_int8_bounds": Hint(
        "Which number of a row decides the scale, and how far can rounding be off?",
        "scale = the largest |w| of a row / 127; q = rint(w / scale); the error is at most "
        "scale / 2. A row of zeros has the scale 1.",
    ),
    "check_int8_layer": Hint(
        "Which weight does the layer stand for, and what is kept in memory?",
        "y = x (scale q)^T + b; q stays int8.",
    ),
    "check_int8_model": Hint(
        "Which layers are exchanged, and which parameters are left?",
        "Each Linear becomes an Int8Linear of its own numbers.",
    ),
}

TOKENS = np.array([[3, 1, 3, 0, 6, 2], [6, 6, 5, 2, 0, 4]])


def _model(work: Any) -> Any:
    from mynode import nn

    work.seed(4)
    return nn.GPT(7, 8, 8, 2, 2)


def _caches(model: Any) -> list[Any]:
    from mynode.nn.cache import KeyValueCache

    return [KeyValueCache() for _ in model.blocks]


def _expect_cache() -> None:
    """A cache keeps all places, in order."""
    from mynode.nn.cache import KeyValueCache

    rng = np.random.default_rng(0)
    keys, values = rng.normal(size=(2, 1, 2, 5, 3))
    cache = KeyValueCache()
    look = "KeyValueCache: keys and values along axis 2"
    expect_equal("the length of an empty cache", cache.length, 0, look)
    for start, end in ((0, 1), (1, 4), (4, 5)):
        all_keys, all_values = cache.extend(keys[:, :, start:end], values[:, :, start:end])
        expect_equal("the length of the cache", cache.length, end, look)
        expect_equal("all keys", all_keys, keys[:, :, :end], look)
        expect_equal("all values", all_values, values[:, :, :end], look)


def check_attend(work: Any) -> None:
    """attention with a cache equals attention without"""
    from mynode import nn
    from mynode.nn.cache import KeyValueCache, attend

    _expect_cache()
    work.seed(1)
    attention = nn.MultiHeadAttention(8, 2)
    x = np.random.default_rng(1).normal(size=(2, 6, 8))
    whole = attention(work.Variable(x)).array
    for sizes in ((6,), (1,) * 6, (2, 3, 1), (4, 2)):
        cache, start = KeyValueCache(), 0
        for size in sizes:
            part = work.Variable(x[:, start : start + size])
            got = attend(attention, part, cache).array
            look = (
                f"attend: {start} places in the cache, and {size} new; new place i looks at "
                f"places 0 to {start} + i"
            )
            expect_close(
                "attend of new places", got, whole[:, start : start + size], look, atol=1e-12
            )
            start += size


def check_read(work: Any) -> None:
    """cached scores equal uncached ones, to the last places"""
    from mynode.nn.cache import read

    model = _model(work)
    rng = np.random.default_rng(5)
    for p in model.parameters():  # norm1 and norm2 begin with the same numbers
        p.array = p.array + 0.3 * rng.normal(size=p.array.shape)
    for dtype in ("float64", "float32"):
        for p in model.parameters():
            p.array = p.array.astype(dtype)
        with work.no_backprop_mode():
            whole = model(TOKENS).array
            bound = 64 * float(np.finfo(dtype).eps * np.abs(whole).max())
            for sizes in ((1,) * 6, (3, 1, 2)):
                caches, start = _caches(model), 0
                for size in sizes:
                    got = read(model, TOKENS[:, start : start + size], caches).array
                    look = "read: norm1 before, the sum after; new tokens stand behind the cache"
                    what = f"the scores of places {start} to {start + size - 1}, {dtype}"
                    expect_close(what, got, whole[:, start : start + size], look, atol=bound)
                    start += size
                expect_equal("the dtype of the scores", str(got.dtype), dtype, "keep the dtype")
    look = "read: of more places than the model has, a ValueError"
    caches = _caches(model)
    read(model, TOKENS, caches)
    more = TOKENS[:, :3]
    expect_raises("nine places of eight", ValueError, lambda: read(model, more, caches), look)


def check_write(work: Any) -> None:
    """the text with a cache is the text without"""
    from mynode.nn.cache import write_cached
    from mynode.nn.language_model import write

    model = _model(work)
    found = []
    for function in (write, write_cached):
        work.seed(5)
        found.append([int(token) for token in function(model, [3, 1], 6, 0.7)])
    look = "write_cached: the caches are read behind the tokens, and each new token is read once"
    expect_equal("the tokens with a cache", found[1], found[0], look)
    long = write_cached(model, [1, 2, 3], 20)
    expect_equal("the number of 3 tokens and 20 more", len(long), 23, look)


def _layer(work: Any, bias: bool = True, dtype: str = "float64") -> Any:
    from mynode import nn

    work.seed(2)
    layer = nn.Linear(5, 3, bias)
    for p in layer.parameters():
        p.array = np.random.default_rng(3).normal(size=p.array.shape).astype(dtype)
    return layer


def check_lora_begins(work: Any) -> None:
    """LoRALinear begins as its layer, and trains A and B only"""
    from mynode.nn.lora import LoRALinear

    x = work.Variable(np.random.default_rng(4).normal(size=(2, 4, 5)))
    for bias in (True, False):
        layer = _layer(work, bias)
        adapted = LoRALinear(layer, 2)
        look = "LoRALinear: B begins as zeros, and the bias of the layer stays"
        expect_close("the first outputs", adapted(x).array, layer(x).array, look)
        shapes = [p.array.shape for p in adapted.parameters()]
        look = "LoRALinear.__init__: keep layer.weight.array, not the Parameter; A first, then B"
        expect_equal("the shapes of the parameters", shapes, [(2, 5), (3, 2)], look)
        look = (
            "LoRALinear.__init__: A is drawn by lecun_normal: with two zeros, nothing is learned"
        )
        expect_true("A is not zero", bool(adapted.a.array.any()), look)
        look = (
            "LoRALinear.__init__: A is drawn. With equal rows, rank 2 learns no more than rank 1"
        )
        differ = bool((adapted.a.array[0] != adapted.a.array[1]).any())
        expect_true("the rows of A differ", differ, look)
    adapted = LoRALinear(_layer(work, dtype="float32"), 2)
    kinds = [str(p.dtype) for p in adapted.parameters()]
    expect_equal("the dtypes of float32", kinds, ["float32"] * 2, "A and B have the dtype of W")


def check_lora_merges(work: Any) -> None:
    """merged equals unmerged, and the gradients are right"""
    from mynode.nn.lora import LoRALinear

    rng = np.random.default_rng(5)
    x = rng.normal(size=(4, 5))
    for bias in (True, False):
        layer = _layer(work, bias)
        kept = [p.array.copy() for p in layer.parameters()]
        adapted = LoRALinear(layer, 2, scale=0.5)
        adapted.a.array, adapted.b.array = rng.normal(size=(2, 5)), rng.normal(size=(3, 2))
        w = layer.weight.array + 0.5 * adapted.b.array @ adapted.a.array
        expected = x @ w.T + (layer.bias.array if bias else 0.0)
        look = "LoRALinear.forward: x W^T + bias + scale (x A^T) B^T"
        expect_close("the outputs", adapted(work.Variable(x)).array, expected, look)
        merged = adapted.merged()
        look = "LoRALinear.merged: a Linear with the weight W + scale * B A, and the bias"
        expect_close(
            "the outputs of the merged layer", merged(work.Variable(x)).array, expected, look
        )
        count = len(merged.parameters())
        expect_equal("the number of its parameters", count, 1 + bias, look)
        look = "merged: a new array; the old layer stays as it was"
        for p, old in zip(layer.parameters(), kept, strict=True):
            expect_equal(f"the {p.name} of the layer", p.array, old, look)
        a, b = adapted.a.array, adapted.b.array

        def run(x: Any, a: Any, b: Any, adapted: Any = adapted) -> Any:
            kept = adapted.a, adapted.b
            adapted.a, adapted.b = a, b
            y = adapted(x)
            adapted.a, adapted.b = kept
            return y

        look = "LoRALinear.forward: no .array between the operations"
        expect_gradients("LoRALinear of x, A and B", run, [x, a, b], work.Variable, look)


def check_lora_trains(work: Any) -> None:
    """a frozen GPT learns by its pairs"""
    from mynode import nn
    from mynode.nn.lora import add_lora, merge_lora

    model = _model(work)
    frozen = model.parameters()
    before = [p.array.copy() for p in frozen]
    pairs = add_lora(model, 2)
    optimizer = nn.AdamW(pairs, lr=0.05, weight_decay=0.0)
    losses = []
    for _ in range(25):
        scores = work.reshape(model(TOKENS[:, :-1]), (10, 7))
        loss = work.softmax_cross_entropy(scores, TOKENS[:, 1:].reshape(-1))
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append(float(loss.array))
    look = "LoRALinear: does the gradient reach A and B?"
    what = f"the loss falls from {losses[0]:.2f} to {losses[-1]:.2f}, at least by half"
    expect_true(what, losses[-1] < losses[0] / 2, look)
    look = "freeze: requires_grad of the Parameter and of its node"
    for p, old in zip(frozen, before, strict=True):
        expect_equal(f"the frozen {p.name}", p.array, old, look)
    expect_true("no frozen gradient", all(p.grad is None for p in frozen), look)
    unmerged = model(TOKENS).array
    merge_lora(model)
    expect_close("the merged GPT", model(TOKENS).array, unmerged, "merged", atol=1e-10)


def check_int8_bounds(work: Any) -> None:
    """each row has its scale, and the error is at most half a scale"""
    from mynode.nn.int8 import quantize_rows

    w = np.random.default_rng(6).normal(size=(6, 40)) * np.array(
        [[0.01], [1], [100], [3], [1], [0]]
    )
    w[3] = np.abs(w[3])
    w[4] = -np.abs(w[4])
    for dtype in ("float64", "float32"):
        given = w.astype(dtype)
        q, scale = quantize_rows(given)
        look = "quantize_rows: q is int8, scale has the shape (rows, 1) and the dtype of w"
        found = (str(q.dtype), q.shape, str(scale.dtype), scale.shape)
        expect_equal("dtypes and shapes", found, ("int8", w.shape, dtype, (6, 1)), look)
        look = "quantize_rows: the largest |w| of each row / 127"
        largest = np.abs(given).max(axis=1, keepdims=True)
        expect_close("127 scales", 127 * scale[:5], largest[:5], look, rtol=1e-6)
        expect_equal("the row of zeros", q[5], np.zeros(40, np.int8), "a row of zeros: scale 1")
        expect_true("its scale is not 0", bool(scale[5] > 0), "a row of zeros: scale 1")
        error = np.abs(given - q * scale) / scale
        look = "quantize_rows: round with np.rint; astype alone cuts digits off"
        what = f"the largest error is {error.max():.3f} scales, at most 0.5"
        expect_true(what, bool(error.max() <= 0.5001), look)
        expect_equal("w afterwards", given, w.astype(dtype), "make new arrays")


def check_int8_layer(work: Any) -> None:
    """Int8Linear computes with the rounded weight"""
    from mynode.nn.int8 import Int8Linear, quantize_rows

    x = np.random.default_rng(7).normal(size=(2, 4, 5))
    for bias in (True, False):
        for dtype in ("float64", "float32"):
            layer = _layer(work, bias, dtype)
            q, scale = quantize_rows(layer.weight.array)
            expected = x.astype(dtype) @ (q * scale).T
            if bias:
                expected = expected + layer.bias.array
            small = Int8Linear(layer)
            got = small(work.Variable(x.astype(dtype))).array
            look = "Int8Linear.forward: row j of the weight times its scale, then the bias"
            expect_close(f"the outputs, {dtype}", got, expected, look, rtol=1e-5, atol=1e-5)
            expect_equal("the dtype of the outputs", str(got.dtype), dtype, "keep the dtype")
            expect_equal("the number of parameters", len(small.parameters()), 0, "for use only")
            expect_equal("the dtype of q", str(small.q.dtype), "int8", "keep q as int8: the bytes")
            bytes_ = 3 * 5 + 3 * np.dtype(dtype).itemsize
            expect_equal("nbytes", small.nbytes, bytes_, "Int8Linear.nbytes: of q and of scale")


def check_int8_model(work: Any) -> None:
    """a GPT of int8 is nearly the same"""
    from mynode.nn.int8 import use_int8

    model = _model(work)
    before = model(TOKENS).array
    count = len(model.parameters())
    use_int8(model)
    after = model(TOKENS).array
    difference = float(np.abs(after - before).max())
    look = "Int8Linear.forward"
    expect_true(
        f"scores change by {difference:.3f}, by 0.001 to 0.3", 0.001 < difference < 0.3, look
    )
    expect_true("fewer parameters are left", len(model.parameters()) < count, look)


_CACHE, _LORA, _INT8 = "nn/cache.py", "nn/lora.py", "nn/int8.py"

MISTAKES = (
    (
        "a new token always stands at place 0",
        mistake(
            "21", _CACHE, "model.places(start + np.arange(new))", "model.places(np.arange(new))"
        ),
    ),
    (
        "the mask forgets the places of the cache",
        mistake(
            "21",
            _CACHE,
            "np.tri(new, length, length - new, dtype=bool)",
            "np.tri(new, length, dtype=bool)",
        ),
    ),
    (
        "new places look at later ones",
        mistake("21", _CACHE, "Variable(values), mask=mask)", "Variable(values))"),
    ),
    (
        "the keys alone are kept, and the values are the new ones",
        mistake(
            "21",
            _CACHE,
            "Variable(values), mask",
            "Variable(np.resize(value.array, values.shape)), mask",
        ),
    ),
    (
        "new keys are put in front of the old ones",
        mistake("21", _CACHE, "[self.keys, keys], axis=2", "[keys, self.keys], axis=2"),
    ),
    (
        "attention reads x before the norm",
        mistake(
            "21",
            _CACHE,
            "attend(block.attention, block.norm1(x), cache)",
            "attend(block.attention, x, cache)",
        ),
    ),
    (
        "the perceptron reads by the first norm",
        mistake("21", _CACHE, "block.up(block.norm2(x))", "block.up(block.norm1(x))"),
    ),
    (
        "all blocks share the first cache",
        mistake("21", _CACHE, "block.norm1(x), cache)", "block.norm1(x), caches[0])"),
    ),
    (
        "too many places are read without an error",
        mistake("21", _CACHE, "start + new > model.length", "start + new > 2 * model.length"),
    ),
    (
        "the frozen weight stays a parameter",
        mistake(
            "21",
            _LORA,
            "self.weight = layer.weight.array",
            "self.weight = layer.weight",
            ("self.weight.shape", "self.weight.array.shape"),
            ("self.weight + self.scale", "self.weight.array + self.scale"),
        ),
    ),
    (
        "A and B are both zeros: nothing is ever learned",
        mistake(
            "21",
            _LORA,
            "lecun_normal((rank, in_size)).astype(dtype)",
            "np.zeros((rank, in_size), dtype)",
        ),
    ),
    (
        "the rows of A are equal: any rank learns as rank 1",
        mistake(
            "21",
            _LORA,
            "lecun_normal((rank, in_size)).astype(dtype)",
            "np.ones((rank, in_size), dtype)",
        ),
    ),
    (
        "B begins at random, so the layer begins as another one",
        mistake(
            "21",
            _LORA,
            "np.zeros((out_size, rank), dtype)",
            "lecun_normal((out_size, rank)).astype(dtype)",
        ),
    ),
    (
        "the scale is forgotten in the merged layer",
        mistake(
            "21",
            _LORA,
            "self.weight + self.scale * (self.b.array @ self.a.array)",
            "self.weight + self.b.array @ self.a.array",
        ),
    ),
    (
        "merging changes the old weight in place",
        mistake(
            "21",
            _LORA,
            "layer.weight.array = self.weight + self.scale * (self.b.array @ self.a.array)",
            "self.weight += self.scale * (self.b.array @ self.a.array)\n"
            "        layer.weight.array = self.weight",
        ),
    ),
    (
        "the merged layer loses its bias",
        mistake("21", _LORA, "            layer.bias.array = self.bias\n", "            pass\n"),
    ),
    (
        "one scale for the whole matrix",
        mistake(
            "21",
            _INT8,
            "np.abs(w).max(axis=1, keepdims=True)",
            "np.full((len(w), 1), np.abs(w).max())",
        ),
    ),
    (
        "digits are cut off, not rounded",
        mistake("21", _INT8, "np.rint(w / scale).astype(np.int8)", "(w / scale).astype(np.int8)"),
    ),
    (
        "the scale is that of 128 steps: the largest number overflows to -128",
        mistake("21", _INT8, "largest / 127", "largest / 128"),
    ),
    (
        "the largest number is taken, not the largest size: negative numbers overflow",
        mistake("21", _INT8, "np.abs(w).max(axis=1", "w.max(axis=1"),
    ),
    (
        "a row of zeros is divided by 0",
        mistake(
            "21",
            _INT8,
            "np.where(largest > 0, largest / 127, 1).astype(w.dtype)",
            "(largest / 127 + 1e-300).astype(w.dtype)",
        ),
    ),
    (
        "the scale multiplies the inputs, not the outputs",
        mistake(
            "21",
            _INT8,
            "linear(x, self.q.astype(x.dtype)) * self.scale[:, 0]",
            "linear(x * self.scale.mean(), self.q.astype(x.dtype))",
        ),
    ),
    (
        "the weight is kept as floats: no byte is saved",
        mistake(
            "21",
            _INT8,
            "self.bias = None if",
            "self.q = self.q * self.scale\n        self.scale = self.scale * 0 + 1\n"
            "        self.bias = None if",
        ),
    ),
)
