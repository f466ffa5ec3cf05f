"""Checks of the elective tiled_attention: equal numbers, and bytes that grow with the length."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal, expect_gradients, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_values": Hint(
        "The sum over all keys comes in parts. What must be kept from part to part?",
        "largest, total and y; at the end y / total.",
    ),
    "check_causal": Hint(
        "Which key is the first of the tile, counted in the whole text?",
        "tile_scores(query, k, start, causal), with start of the tile.",
    ),
    "check_maximum": Hint(
        "A larger score arrives later. What becomes of the sums so far?",
        "new = max(largest, scores); the old sums times exp(largest - new); largest begins at"
        " minus infinity.",
    ),
    "check_gradients": Hint(
        "The weights are gone. From what can backward compute them again?",
        "p = exp(scores - log); gs = p (gy v^T - D) / sqrt(d), added up over the tiles.",
    ),
    "check_numbers": Hint(
        "Which array of yours begins with 64 bits?",
        "np.full(..., query.dtype).",
    ),
    "check_bytes": Hint(
        "Which array has the size of queries times keys, and does anybody need it at once?",
        "Keep q, k, v, y and log; compute the scores of one tile at a time.",
    ),
}


def _plain(query: Any, key: Any, value: Any, causal: bool = False) -> Any:
    scores = query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True) @ value


def _draw(n: int, m: int, d: int = 4, e: int = 3, front: tuple[int, ...] = ()) -> list[Any]:
    rng = np.random.default_rng(n + 10 * m)
    return [rng.normal(size=(*front, *shape)) for shape in ((n, d), (m, d), (m, e))]


def _attend(work: Any, arrays: list[Any], **options: Any) -> Any:
    from mynode.functions.tiled_attention import tiled_attention

    return tiled_attention(*(work.Variable(array) for array in arrays), **options)


def check_values(work: Any) -> None:
    """attention in tiles of every size"""
    for n, m in ((5, 7), (3, 1), (4, 6)):
        arrays = _draw(n, m)
        for tile in (1, 2, 3, 7, 100):
            look = "TiledAttention.forward: the last tile may be shorter; y / total at the end"
            what = f"{n} queries and {m} keys, tiles of {tile}"
            got = _attend(work, arrays, tile=tile).array
            expect_close(what, got, _plain(*arrays), look, atol=1e-12)
    arrays = _draw(4, 6, front=(2, 3))
    look = "TiledAttention.forward: count axes from the end"
    got = _attend(work, arrays, tile=4).array
    expect_close("a batch with heads", got, _plain(*arrays), look, atol=1e-12)


def check_causal(work: Any) -> None:
    """a query looks at no later key"""
    arrays = _draw(7, 7)
    for tile in (1, 3, 4, 7):
        look = "tile_scores(query, k, start, self.causal): start is the first key of the tile"
        got = _attend(work, arrays, causal=True, tile=tile).array
        expect_close(f"causal, tiles of {tile}", got, _plain(*arrays, True), look, atol=1e-12)


def check_maximum(work: Any) -> None:
    """large scores, in every order"""
    query, key, value = _draw(3, 6)
    scores = np.array([0.0, 1000.0, -1000.0, 400.0, 900.0, -5.0])
    key = np.outer(scores, np.eye(4)[0])
    query = np.tile(2.0 * np.eye(4)[0], (3, 1))  # so the scores are those, with sqrt(4) = 2
    for name, order in (("rising", np.argsort(scores)), ("falling", np.argsort(-scores))):
        arrays = [query, key[order], value[order]]
        with np.errstate(over="raise", invalid="raise"):
            try:
                got = _attend(work, arrays, tile=2).array
            except FloatingPointError as error:
                got = str(error)
        look = "new = max(largest, scores); the old sums times exp(largest - new)"
        expect_close(f"{name} scores", got, _plain(*arrays), look, atol=1e-12)
    arrays = [query, key[[2, 2]] - 4 * np.eye(4)[0], value[:2]]
    got = _attend(work, arrays, tile=1).array
    look = "the maximum begins at -inf, not at 0: all scores may be very negative"
    expect_close("scores near -1000 alone", got, _plain(*arrays), look, atol=1e-12)


def check_gradients(work: Any) -> None:
    """the gradients of queries, keys and values"""
    from mynode.functions.tiled_attention import tiled_attention

    for causal, tile, arrays in (
        (False, 2, _draw(3, 5)),
        (True, 3, _draw(5, 5)),
        (False, 3, _draw(2, 4, front=(2,))),
    ):

        def run(q: Any, k: Any, v: Any, causal: bool = causal, tile: int = tile) -> Any:
            return tiled_attention(q, k, v, causal=causal, tile=tile)

        look = "TiledAttention.backward: gs = p * (gy v^T - D) / sqrt(d), added up over the tiles"
        what = f"tiled_attention, causal={causal}, tile={tile}"
        expect_gradients(what, run, arrays, work.Variable, look)


def check_numbers(work: Any) -> None:
    """dtypes stay, and no input changes"""
    for dtype in ("float64", "float32"):
        arrays = [array.astype(dtype) for array in _draw(4, 4)]
        kept = [array.copy() for array in arrays]
        xs = [work.Variable(array) for array in arrays]
        from mynode.functions.tiled_attention import tiled_attention

        y = tiled_attention(*xs, causal=True, tile=2)
        look = "make the sums with the dtype of the queries: np.full(..., query.dtype)"
        expect_equal(f"the dtype of y, {dtype}", str(y.array.dtype), dtype, look)
        y.grad = gy = np.ones(y.shape, dtype)
        y.backward()
        for name, x in zip(("query", "key", "value"), xs, strict=True):
            expect_equal(f"the dtype of the gradient of {name}", str(x.grad.dtype), dtype, look)
        look = "make new arrays"
        for name, array, old in zip(("query", "key", "value"), arrays, kept, strict=True):
            expect_equal(f"{name} afterwards", array, old, look)
        expect_equal("gy afterwards", gy, np.ones(y.shape, dtype), look)


def check_bytes(work: Any) -> None:
    """no weight is kept, and few exist at a time"""
    from mynode.functions.tiled_attention import tiled_attention

    xs = [work.Variable(array) for array in _draw(500, 500, 8, 8)]
    tiled_attention(*xs, tile=20)  # first, what a first call leaves behind
    tracemalloc.start()
    y = tiled_attention(*xs, tile=20)
    kept, most = tracemalloc.get_traced_memory()
    y.grad = np.ones(y.shape)
    tracemalloc.reset_peak()
    y.backward()
    most_backward = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    weights = 500 * 500 * 8
    look = "keep q, k, v, y and log by retain_inputs and retain_outputs, and nothing else"
    expect_true(
        f"forward keeps {kept} bytes, the weights have {weights}", kept < weights / 20, look
    )
    look = "in each loop, the scores of one tile: tile_scores(query, key[..., start:end, :], ...)"
    expect_true(f"forward has at most {most} bytes at a time", most < weights / 2, look)
    what = f"backward has at most {most_backward} bytes at a time"
    expect_true(what, most_backward < weights / 2, look)


_FILE = "functions/tiled_attention.py"


def _wrong(old: str, new: str) -> dict[str, str]:
    return mistake("tiled_attention", _FILE, old, new)


MISTAKES = (
    (
        "the old sum of weights keeps the old maximum",
        _wrong("total = shrink * total + p.sum", "total = total + p.sum"),
    ),
    (
        "the old result keeps the old maximum",
        _wrong("y = shrink * y + p @ value", "y = y + p @ value"),
    ),
    (
        "the factor for the old sums is turned round",
        _wrong(
            "shrink = np.exp(largest - new)", "shrink = np.exp(np.minimum(new - largest, 700.0))"
        ),
    ),
    (
        "the maximum is that of the last tile",
        _wrong(
            "np.maximum(largest, scores.max(axis=-1, keepdims=True))",
            "scores.max(axis=-1, keepdims=True)",
        ),
    ),
    (
        "the maximum begins at 0",
        _wrong(
            "np.full((*query.shape[:-1], 1), -np.inf, query.dtype)",
            "np.zeros((*query.shape[:-1], 1), query.dtype)",
        ),
    ),
    (
        "no maximum is subtracted",
        _wrong(
            "new = np.maximum(largest, scores.max(axis=-1, keepdims=True))",
            "new = np.zeros_like(largest)",
        ),
    ),
    (
        "the result is not divided by the sum",
        _wrong("return y / total, largest", "return y, largest"),
    ),
    (
        "the last tile is left out when it is shorter",
        _wrong(
            "for start in range(0, key.shape[-2], self.tile):\n"
            "            end = start + self.tile\n            scores",
            "for start in range(0, max(1, key.shape[-2] - self.tile + 1), self.tile):\n"
            "            end = start + self.tile\n            scores",
        ),
    ),
    (
        "the causal mask begins anew in each tile",
        _wrong(
            "tile_scores(query, key[..., start:end, :], start, self.causal)",
            "tile_scores(query, key[..., start:end, :], 0, self.causal)",
        ),
    ),
    (
        "backward forgets the causal mask",
        _wrong("tile_scores(query, k, start, self.causal)", "tile_scores(query, k, start, False)"),
    ),
    (
        "log is the maximum alone",
        _wrong("largest + np.log(total)", "largest + 0 * total"),
    ),
    (
        "the gradient of the scores forgets D",
        _wrong("p * (gy @ v.mT - inner)", "p * (gy @ v.mT)"),
    ),
    (
        "the gradient of the queries is that of the last tile",
        _wrong("gq += gs @ k", "gq = gs @ k"),
    ),
    (
        "the gradient forgets the root of d",
        _wrong("(gy @ v.mT - inner) / math.sqrt(query.shape[-1])", "(gy @ v.mT - inner)"),
    ),
    (
        "the gradient of the values takes the scores' gradient",
        _wrong("p.mT @ gy", "gs.mT @ gy"),
    ),
    (
        "all weights are kept for backward",
        _wrong(
            "            largest = new\n",
            "            largest = new\n            self.kept = [*getattr(self, 'kept', []), p]\n",
        ),
    ),
    (
        "the sums are float64, for float32 too",
        _wrong(
            "np.full((*query.shape[:-1], 1), -np.inf, query.dtype)",
            "np.full((*query.shape[:-1], 1), -np.inf)",
        ),
    ),
    (
        "all scores are computed at once, and cut in tiles",
        _wrong(
            "scores = tile_scores(query, key[..., start:end, :], start, self.causal)",
            "scores = tile_scores(query, key, 0, self.causal)[..., start:end]",
        ),
    ),
)
