"""Checks of exercise 19: stacks of matrices, attention with heads, and a block."""

from __future__ import annotations

import math
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
    "check_permute": Hint(
        "Axis number 2 went to the front. Where must axis 0 of the gradient go?",
        "The way back is tuple(axes.index(i) for i in range(len(axes))).",
    ),
    "check_matmul": Hint(
        "A stack of matrices met a single matrix. How many gradients of the single one are "
        "there, and what becomes of them?",
        "gx = gz y^T, gy = x^T gz, with .mT; then unbroadcast to the shape of each.",
    ),
    "check_weights": Hint(
        "Which places may a query see, and what happens if two rules hold at once?",
        "softmax(query key^T / sqrt(d)); causal: np.tri(n, m, dtype=bool); with a mask: mask "
        "& causal, a new array.",
    ),
    "check_heads": Hint(
        "Write the shape behind each line. Which axis counts texts, which heads, which places?",
        "split: (n, places, size) -> (n, heads, places, size / heads). join is the way back: "
        "permute_dims(parts, (0, 2, 1, 3)), then reshape.",
    ),
    "check_block": Hint(
        "In which order do norm, attention and addition come, and what goes around?",
        "x + attention(norm1(x)), then x + down(relu(up(norm2(x)))).",
    ),
    "check_learning": Hint(
        "Each part passed alone. Which parameter of the block could be without a gradient?",
        "Operations of Variables throughout; each layer is a module of its own.",
    ),
}

_RNG = np.random.default_rng(19)
BATCH = _RNG.normal(size=(2, 3, 4))


def _softmax(x: Any) -> Any:
    y = np.exp(x - x.max(axis=-1, keepdims=True))
    return y / y.sum(axis=-1, keepdims=True)


def _weights(query: Any, key: Any, mask: Any) -> Any:
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return _softmax(np.where(mask, scores, -np.inf))


def check_permute(work: Any) -> None:
    """permute_dims and matrix_transpose, and their gradients"""
    x = _RNG.normal(size=(2, 3, 4))
    look = "functions/shapes.py, PermuteDims.forward: x.transpose(self.axes)"
    for axes in ((0, 2, 1), (2, 0, 1), (1, 2, 0), (-1, 0, 1)):
        got = work.permute_dims(work.Variable(x), axes).array
        expect_close(f"permute_dims(x, {axes})", got, x.transpose(axes), look)
    look = "PermuteDims.backward: the inverse order. (2, 0, 1) goes back by (1, 2, 0)"
    expect_gradients(
        "permute_dims", lambda x: work.permute_dims(x, (2, 0, 1)), [x], work.Variable, look
    )
    got = work.matrix_transpose(work.Variable(x)).array
    look = "functions/products.py, matrix_transpose: the last two axes only"
    expect_close("matrix_transpose of a stack", got, x.mT, look)


def check_matmul(work: Any) -> None:
    """matmul of stacks, and its gradients"""
    look = "functions/products.py, MatMul"
    for left, right in (
        ((3, 4), (4, 2)),
        ((2, 3, 4), (2, 4, 2)),
        ((2, 3, 4), (4, 2)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((1, 1, 4), (3, 4, 1)),
    ):
        x, y = _RNG.normal(size=left), _RNG.normal(size=right)
        what = f"matmul of {left} and {right}"
        expect_close(what, work.matmul(work.Variable(x), work.Variable(y)).array, x @ y, look)
        hint = "gx = gz y^T for each pair, with .mT; axes that were broadcast are summed"
        expect_gradients(what, work.matmul, [x, y], work.Variable, hint)
    look = "MatMul.check_type_forward: x.shape[-1] == y.shape[-2], with two axes or more"
    for left, right in (((2, 3, 4), (2, 3, 4)), ((4,), (4, 2)), ((3, 4), (4,))):
        x, y = work.Variable(np.ones(left)), work.Variable(np.ones(right))
        expect_raises(
            f"matmul of {left} and {right}", work.InvalidType,
            lambda x=x, y=y: work.matmul(x, y), look,
        )  # fmt: skip
    look = "MatMul.check_type_forward: keep the line with is_floating and x.dtype == y.dtype"
    x, y = work.Variable(np.ones((3, 4))), work.Variable(np.ones((4, 2), np.float32))
    expect_raises(
        "matmul of float64 and float32", work.InvalidType, lambda: work.matmul(x, y), look
    )


def check_weights(work: Any) -> None:
    """attention of stacks, with masks"""
    from mynode.functions.network import attention_weights

    q, k = _RNG.normal(size=(2, 5, 3, 4)), _RNG.normal(size=(2, 5, 3, 4))
    v = _RNG.normal(size=(2, 5, 3, 2))
    query, key, value = (work.Variable(one) for one in (q, k, v))
    seen = np.tri(3, dtype=bool)
    mask = np.array([[True, True, True], [True, False, True], [False, True, True]])
    mask[2, 1] = True
    kept = mask.copy()
    for what, given, causal, allowed in (
        ("without a mask", None, False, np.ones((3, 3), bool)),
        ("causal", None, True, seen),
        ("with a mask", mask, False, mask),
        ("causal, and with a mask", mask, True, mask & seen),
    ):
        look = {
            "without a mask": "softmax(query key^T / sqrt(d)), with d = query.shape[-1]",
            "causal": "query i looks at keys 0 to i: np.tri(n, m), False above the diagonal",
            "with a mask": "False in the mask: minus infinity is added to the score",
            "causal, and with a mask": "both hold: mask & np.tri(n, m, dtype=bool)",
        }[what]
        expected = _weights(q, k, allowed)
        got = attention_weights(query, key, given, causal).array
        expect_close(f"attention_weights {what}", got, expected, look)
        got = work.scaled_dot_product_attention(query, key, value, given, causal).array
        look = "scaled_dot_product_attention: matmul(attention_weights(...), value)"
        expect_close(f"attention {what}", got, expected @ v, look)

    look = "both hold: mask & np.tri(...) is a new array; &= changes the mask of the caller"
    expect_equal("the mask afterwards", mask.tolist(), kept.tolist(), look)
    fewer = work.Variable(q[..., :2, :])
    expected = _weights(q[..., :2, :], k, np.tri(2, 3, dtype=bool))
    got = attention_weights(fewer, key, causal=True).array
    look = "query i looks at keys 0 to i: np.tri(n, m), n queries and m keys"
    expect_close("causal attention_weights of 2 queries and 3 keys", got, expected, look)

    def attend(q: Any, k: Any, v: Any) -> Any:
        return work.scaled_dot_product_attention(q, k, v, causal=True)

    look = "no .array between the operations"
    expect_gradients("attention", attend, [q[0, :2], k[0, :2], v[0, :2]], work.Variable, look)
    single = [work.Variable(one.astype(np.float32)) for one in (q, k, v)]
    got = attend(*single).array.dtype.name
    look = "The mask of zeros and minus infinity takes the dtype of the scores"
    expect_equal("the dtype of attention in float32", got, "float32", look)


def _attention(layer: Any, x: Any, causal: bool = True) -> Any:
    """The formula, head by head and text by text."""
    wq, wk, wv, wo = (
        one.weight.array.T for one in (layer.query, layer.key, layer.value, layer.out)
    )
    length, size = x.shape[1:]
    part = size // layer.heads
    allowed = np.tri(length, dtype=bool) if causal else np.ones((length, length), bool)
    y = np.zeros_like(x)
    for number, text in enumerate(x):
        for head in range(layer.heads):
            of = slice(head * part, (head + 1) * part)
            q, k, v = (text @ w[:, of] for w in (wq, wk, wv))
            y[number, :, of] = _weights(q, k, allowed) @ v
    return y @ wo + layer.out.bias.array


def _draw(model: Any) -> Any:
    """A model with other parameters than at the beginning, so that none is 0 or 1."""
    rng = np.random.default_rng(5)
    for p in model.parameters():
        p.array = rng.normal(size=p.array.shape) * 0.7
    return model


def check_heads(work: Any) -> None:
    """MultiHeadAttention computes its formula"""
    from mynode import nn

    layer = _draw(nn.MultiHeadAttention(4, 2))
    shapes = sorted([p.array.shape for p in layer.parameters()], reverse=True)
    look = "query, key and value: Linear(size, size, bias=False); out: Linear(size, size)"
    expect_equal("the shapes of the parameters", shapes, [(4, 4)] * 4 + [(4,)], look)
    x = work.Variable(BATCH)
    parts = layer.split(x)
    look = "nn/attention.py, join: the axes of split back, then reshape"
    expect_close("join(split(x))", layer.join(parts).array, BATCH, look)
    look = "split the three projections, attend, join, out"
    expect_close("MultiHeadAttention(4, 2)(x)", layer(x).array, _attention(layer, BATCH), look)
    free = _draw(nn.MultiHeadAttention(4, 4, causal=False))
    look = "causal=self.causal in the call of scaled_dot_product_attention"
    got = free(x).array
    expect_close("without the causal mask", got, _attention(free, BATCH, causal=False), look)
    look = "Each text of the batch is computed by itself"
    expect_close("the second text alone", layer(work.Variable(BATCH[1:])).array,
                 layer(x).array[1:], look)  # fmt: skip
    expect_gradients("MultiHeadAttention", layer, [BATCH], work.Variable, "no .array inside")
    look = "the two checks at the beginning are given"
    expect_raises("5 heads of 4 numbers", ValueError, lambda: nn.MultiHeadAttention(4, 5), look)
    flat = work.Variable(BATCH[0])
    expect_raises("x without a batch", ValueError, lambda: layer(flat), look)


def check_block(work: Any) -> None:
    """Block computes its formula, and looks at no later place"""
    from mynode import nn

    block = _draw(nn.Block(4, 2))
    names = [name for name, part in vars(block).items() if isinstance(part, nn.Module)]
    look = "Block.__init__: norm1, attention, norm2, up, down"
    expect_equal("the parts of Block", names, ["norm1", "attention", "norm2", "up", "down"], look)
    count, look = len({id(p) for p in block.parameters()}), "each part is a module of its own"
    expect_equal("the number of parameters of Block", count, 13, look)
    look = "Block.__init__: MultiHeadAttention(size, heads)"
    expect_equal("the heads of Block(4, 2)", block.attention.heads, 2, look)
    look = "up: Linear(size, 4 * size), down: Linear(4 * size, size)"
    expect_equal("the shape of up.weight", block.up.weight.array.shape, (16, 4), look)

    def norm(layer: Any, x: Any) -> Any:
        centred = x - x.mean(axis=-1, keepdims=True)
        y = centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
        return y * layer.gamma.array + layer.beta.array

    u = BATCH + _attention(block.attention, norm(block.norm1, BATCH))
    hidden = norm(block.norm2, u) @ block.up.weight.array.T + block.up.bias.array
    y = u + np.maximum(hidden, 0) @ block.down.weight.array.T + block.down.bias.array
    look = "x + attention(norm1(x)), then x + down(relu(up(norm2(x))))"
    expect_close("Block(4, 2)(x)", block(work.Variable(BATCH)).array, y, look)
    later = BATCH.copy()
    later[:, 2] += 1.0
    got = block(work.Variable(later)).array[:, :2]
    look = "The attention of a block is causal"
    expect_close("places 0 and 1, with another place 2", got, y[:, :2], look)
    expect_gradients("Block", block, [BATCH], work.Variable, "no .array inside")


def check_learning(work: Any) -> None:
    """two heads learn to look at two places"""
    from mynode import nn

    work.seed(0)
    letters, places = nn.Embedding(5, 24), nn.Embedding(6, 24)
    block, output = nn.Block(24, 2), nn.Linear(24, 25)
    model = nn.Sequential(letters, places, block, output)
    optimizer, draw, value = nn.Adam(model, lr=0.02), np.random.default_rng(0), 0.0
    for _ in range(50):
        x = draw.integers(1, 5, (16, 6))
        padded = np.pad(x, ((0, 0), (3, 0)))
        answers = 5 * padded[:, 2:-1] + padded[:, :-3]
        scores = output(block(letters(x) + places(np.arange(6))))
        loss = work.softmax_cross_entropy(work.reshape(scores, (-1, 25)), answers.reshape(-1))
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        value = float(loss.array)
    look = "A guess costs 2.6 or more. Each part passed by itself: does a gradient get lost?"
    expect_true(f"the loss after 50 updates, {value:.2f}, is below 0.5", value < 0.5, look)


_SHAPES, _PRODUCTS, _NETWORK = (
    "functions/shapes.py",
    "functions/products.py",
    "functions/network.py",
)
_ATTENTION, _BLOCK = "nn/attention.py", "nn/transformer.py"

MISTAKES = (
    (
        "the gradient is permuted by the same order, not back",
        mistake("19", _SHAPES, "gy.transpose(back)", "gy.transpose(self.axes)"),
    ),
    (
        "a matrix that is used many times gets no sum of gradients",
        mistake("19", _PRODUCTS, "unbroadcast(x.mT @ gz, y.shape)", "x.mT @ gz"),
    ),
    (
        "all axes of a stack are reversed",
        mistake("19", _PRODUCTS, "gz @ y.mT", "gz @ y.T", ("x.mT @ gz", "x.T @ gz")),
    ),
    (
        "a transposed stack has its first axes exchanged",
        mistake(
            "19", _PRODUCTS, "(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)",
            "tuple(reversed(range(x.ndim)))",
        ),
    ),
    (
        "the check of the types compares the wrong axes",
        mistake("19", _PRODUCTS, "x.shape[-1] == y.shape[-2]", "x.shape[1] == y.shape[0]"),
    ),
    (
        "numbers of two kinds are multiplied",
        mistake("19", _PRODUCTS, "is_floating(x), x.dtype == y.dtype", "is_floating(x)"),
    ),
    (
        "the mask of the caller is changed",
        mistake(
            "19", _NETWORK, "mask = seen if mask is None else mask & seen",
            "mask = seen if mask is None else np.logical_and(mask, seen, out=mask)",
        ),
    ),
    (
        "of more keys than queries, the last ones are seen",
        mistake(
            "19", _NETWORK, "np.tri(*scores.shape[-2:], dtype=bool)",
            "np.tri(*scores.shape[-2:], scores.shape[-1] - scores.shape[-2], dtype=bool)",
        ),
    ),
    (
        "the scores are divided by the root of the length",
        mistake("19", _NETWORK, "math.sqrt(query.shape[-1])", "math.sqrt(query.shape[-2])"),
    ),
    (
        "each place looks at later places only",
        mistake("19", _NETWORK, "np.tri(*scores.shape[-2:], dtype=bool)",
                "np.tri(*scores.shape[-2:], dtype=bool).T"),
    ),
    (
        "causal attention forgets the mask",
        mistake("19", _NETWORK, "seen if mask is None else mask & seen", "seen"),
    ),
    (
        "masked weights become 0 after the softmax, so the sum is not 1",
        mistake("19", _NETWORK, "softmax(masked(scores, mask, causal))",
                "softmax(scores) * np.exp(masked(0.0 * scores.array, mask, causal))"),
    ),
    (
        "the mask is float64 among float32",
        mistake("19", _NETWORK, "-np.inf).astype(scores.dtype)", "-np.inf)"),
    ),
    (
        "heads are cut by reshape alone, so places are mixed",
        mistake(
            "19", _ATTENTION, "(batch, length, self.heads, size // self.heads)",
            "(batch, self.heads, length, size // self.heads)",
            ("return permute_dims(parts, (0, 2, 1, 3))", "return parts"),
            ("reshape(permute_dims(parts, (0, 2, 1, 3)),", "reshape(parts,"),
        ),
    ),
    (
        "heads are joined without moving their axis",
        mistake("19", _ATTENTION, "reshape(permute_dims(parts, (0, 2, 1, 3)),", "reshape(parts,"),
    ),
    (
        "the queries are taken for keys",
        mistake("19", _ATTENTION, "self.split(self.key(x))", "self.split(self.query(x))"),
    ),
    (
        "the last layer is left out",
        mistake("19", _ATTENTION, "self.out(self.join(parts))", "self.join(parts)"),
    ),
    (
        "attention looks at later places",
        mistake("19", _ATTENTION, ", causal=self.causal)", ")"),
    ),
    (
        "attention is always causal",
        mistake("19", _ATTENTION, "causal=self.causal)", "causal=True)"),
    ),
    (
        "the norm stands behind the sum",
        mistake("19", _BLOCK, "x + self.attention(self.norm1(x))",
                "self.norm1(x + self.attention(x))"),
    ),
    (
        "the perceptron has no residual connection",
        mistake("19", _BLOCK, "return x + self.down", "return self.down"),
    ),
    (
        "the first norm is used twice",
        mistake("19", _BLOCK, "self.up(self.norm2(x))", "self.up(self.norm1(x))"),
    ),
    (
        "both norms are the same module",
        mistake("19", _BLOCK, "self.norm2 = LayerNorm(size)", "self.norm2 = self.norm1"),
    ),
    (
        "the block has a single head",
        mistake("19", _BLOCK, "MultiHeadAttention(size, heads)", "MultiHeadAttention(size, 1)"),
    ),
    (
        "the perceptron has no bend",
        mistake("19", _BLOCK, "relu(self.up(self.norm2(x)))", "self.up(self.norm2(x))"),
    ),
    (
        "the perceptron sees the input in place of the sum",
        mistake("19", _BLOCK, "x = x + self.attention(self.norm1(x))\n        return x + ",
                "y = x + self.attention(self.norm1(x))\n        return y + "),
    ),
)  # fmt: skip
