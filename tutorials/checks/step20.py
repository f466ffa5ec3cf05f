"""Checks of exercise 20: pairs of bytes, a schedule, a GPT, and a text that is learned."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from tinynode_course.checks import Hint, expect_close, expect_equal, expect_raises, expect_true
from tinynode_course.mynode import mistake

HINTS = {
    "check_merge": Hint(
        "After a pair, at which place does the search go on?",
        "A while loop with a place: a pair found: append new, go on by 2; else append the "
        "token, go on by 1.",
    ),
    "check_pairs": Hint(
        "Which pair comes first if two are equally frequent, and what is counted after each "
        "merge?",
        "counts = Counter(pairwise(tokens)); the first pair with the largest count; merge; "
        "count again. Stop below 2.",
    ),
    "check_tokenizer": Hint(
        "A letter may need several bytes. When may bytes become text?",
        "encode: the learned pairs in their order. decode: join all bytes, then decode once.",
    ),
    "check_schedule": Hint(
        "What is the rate at step 0, at the end of the warm-up, and after the last step?",
        "t < warmup: base_lr t / warmup. Else half a cosine over s = min(1, (t - warmup) / "
        "(steps - warmup)).",
    ),
    "check_model": Hint(
        "In which order does a token pass the parts, and which part knows the place?",
        "tokens + places, blocks, norm, head; at most length places.",
    ),
    "check_gradients_and_future": Hint(
        "Which place may read which, and which line could cut the graph?",
        "Causal blocks; no .array between the layers.",
    ),
    "check_dropout": Hint(
        "Behind which parts do numbers get dropped, and when not at all?",
        "dropout behind the embeddings and behind each block; none with config.train False.",
    ),
    "check_draws": Hint(
        "What does a small temperature do to the largest score, and whose random numbers do "
        "you draw?",
        "p = softmax((scores - max) / temperature); get_generator().choice(len(p), p=p), with"
        " p in float64.",
    ),
    "check_write": Hint(
        "Which tokens does the model read before each draw, and in which mode?",
        'With using_config("train", False): the last tokens that fit; append each drawn token.',
    ),
    "check_writing": Hint(
        "Each part passed alone. Does the new token reach the next reading?",
        "tokens = the given ones, then count further ones, each drawn from the last place's "
        "scores.",
    ),
}

TEXT = "the tree of the sea sees the other trees. "


def check_merge(work: Any) -> None:
    """a pair becomes a token, from left to right"""
    from mynode.tokens import merge

    look = "tokens.py, merge: after a pair go on by two places"
    cases: tuple[tuple[list[int], tuple[int, int], list[int]], ...] = (
        ([7, 1, 2, 1, 2, 1], (1, 2), [7, 256, 256, 1]),
        ([5, 5, 5, 5, 5], (5, 5), [256, 256, 5]),
        ([1, 1, 2], (1, 2), [1, 256]),
        ([2, 1], (1, 2), [2, 1]),
        ([1], (1, 1), [1]),
        ([], (1, 2), []),
    )
    for tokens, pair, expected in cases:
        given = list(tokens)
        got = merge(given, pair, 256)
        expect_equal(f"merge({tokens}, {pair}, 256)", got, expected, look)
        expect_equal("the tokens that were given", given, tokens, "merge: make a new list")


def check_pairs(work: Any) -> None:
    """the most frequent pair first, again and again"""
    from mynode.tokens import learn_pairs

    look = "tokens.py, learn_pairs: count, take the most frequent pair, merge, and count again"
    a, b, c = b"abc"
    expect_equal(
        "learn_pairs('abababab', 2)", learn_pairs("abababab", 2), [(a, b), (256, 256)], look
    )
    got = learn_pairs("abcabcabc", 5)[:2]
    expect_equal("the first two pairs of 'abcabcabc'", got, [(a, b), (256, c)], look)
    look = "learn_pairs: begin with the bytes, list(text.encode('utf-8'))"
    expect_equal("learn_pairs('é é é ', 1)", learn_pairs("é é é ", 1), [(0xC3, 0xA9)], look)
    look = "learn_pairs: of equal counts, the pair that comes first in the text"
    expect_equal("learn_pairs('bcab bcab', 1)", learn_pairs("bcab bcab", 1), [(b, c)], look)
    look = "learn_pairs: stop when no pair comes twice, and at a text without pairs"
    expect_equal("learn_pairs('abc', 3)", learn_pairs("abc", 3), [], look)
    expect_equal("learn_pairs('', 3)", learn_pairs("", 3), [], look)


def check_tokenizer(work: Any) -> None:
    """encode and decode are inverse, for any text"""
    from mynode.tokens import Tokenizer, learn_pairs, merge

    pairs = learn_pairs(TEXT * 3, 12)
    tokenizer = Tokenizer(pairs)
    expect_equal("the size with 12 pairs", tokenizer.size, 268, "Tokenizer.size: bytes and pairs")
    look = "Tokenizer: join the bytes of all tokens, and decode them together"
    for text in ("", TEXT, "naïve 詩 🙂\r\n\0", "eee" * 5, "aaa" * 5, " The SEA\t"):
        expect_equal(
            f"decode(encode({text!r}))", tokenizer.decode(tokenizer.encode(text)), text, look
        )
    count, bytes_ = len(tokenizer.encode(TEXT)), len(TEXT)
    look = "Tokenizer.encode: merge each pair, in the learned order"
    expected = list(TEXT.encode())
    for number, pair in enumerate(pairs, 256):
        expected = merge(expected, pair, number)
    expect_equal("the tokens of the text, with 12 pairs", tokenizer.encode(TEXT), expected, look)
    expect_true(f"{bytes_} bytes become {count} tokens, at most 25", count <= 25, look)
    half = tokenizer.decode(tokenizer.encode("詩")[:1])
    expect_equal("the text of a third of a sign", half, "\ufffd", "decode(..., 'replace')")


def check_schedule(work: Any) -> None:
    """warm-up, then half a cosine"""
    from mynode import nn

    def cosine(t: int) -> float:
        share = min(1.0, (t - 4) / 8)
        return 0.1 + 0.4 * (1 + math.cos(math.pi * share)) / 2

    optimizer = SimpleNamespace(lr=0.5)
    schedule = nn.schedules.CosineSchedule(optimizer, 12, warmup=4, min_lr=0.1)
    look = "CosineSchedule: before the first step the rate is lr_at(0), here 0"
    expect_close("the rate before the first step", optimizer.lr, 0.0, look)
    for t in range(1, 15):
        schedule.step()
        expected = 0.5 * t / 4 if t < 4 else cosine(t)
        part = "the warm-up: base_lr * t / warmup" if t < 4 else "the cosine begins at t = warmup"
        look = f"nn/schedules.py, lr_at: {part}; after the last step the rate stays"
        expect_close(f"optimizer.lr after {t} of 12 steps", optimizer.lr, expected, look)
    plain = nn.schedules.CosineSchedule(SimpleNamespace(lr=2.0), 2)
    rates = [plain.lr_at(t) for t in (0, 1, 2)]
    expect_close("rates without warm-up", rates, [2.0, 1.0, 0.0], "lr_at depends on t alone")


def _model(work: Any, **options: Any) -> Any:
    from mynode import nn

    work.seed(4)
    return nn.GPT(7, 6, 8, 2, 2, **options)


def _drawn(model: Any) -> Any:
    """A model whose parameters are drawn anew, so that no bias is 0."""
    rng = np.random.default_rng(5)
    for p in model.parameters():
        p.array = rng.normal(size=p.array.shape)
    return model


def check_model(work: Any) -> None:
    """the GPT computes its layers, in order"""
    model = _model(work)
    tokens = np.array([[3, 1, 3, 0], [6, 6, 5, 2]])
    x = model.tokens.weight.array[tokens] + model.places.weight.array[:4]
    x = work.Variable(x)
    for block in model.blocks:
        x = block(x)
    expected = model.head(model.norm(x)).array
    look = "nn/language_model.py, GPT.forward: embeddings, blocks, norm, head"
    scores = model(tokens)
    expect_equal("the shape of the scores", scores.shape, (2, 4, 7), look)
    expect_close("the scores", scores.array, expected, look)
    sizes = [len(model.parameters()), len(model.blocks)]
    look = (
        "GPT.__init__: each block is a Block of its own; parameters: 2, 13 of each block, 2 and 2"
    )
    each = len(model.blocks[0].parameters())
    expect_equal("the numbers of parameters and of blocks", sizes, [6 + 2 * each, 2], look)
    look = "GPT.forward: f'GPT: at most {self.length} places, got {n}'"
    many = np.zeros((1, 7), int)
    expect_raises("seven places of six", ValueError, lambda: model(many), look)


def check_gradients_and_future(work: Any) -> None:
    """no place reads the future, and every parameter has a gradient"""
    model = _model(work)
    tokens = np.array([[3, 1, 2, 0, 5]])
    changed = np.array([[3, 1, 2, 0, 4]])
    look = "GPT: the attention of Block is causal, so place i knows the tokens up to i"
    before, after = model(tokens).array[:, :4], model(changed).array[:, :4]
    expect_close("scores of the places before a changed token", after, before, look, atol=1e-12)
    scores = work.reshape(model(tokens), (5, 7))
    work.softmax_cross_entropy(scores, np.array([1, 2, 0, 5, 0])).backward()
    missing = [p.name for p in model.parameters() if p.grad is None]
    expect_equal("parameters without a gradient", missing, [], "no .array between the layers")


def check_dropout(work: Any) -> None:
    """dropout works in training only"""
    from mynode import nn

    tokens = np.array([[3, 1, 2]])
    model = _model(work, dropout=0.5)
    look = "GPT: self.dropout behind the embeddings and behind each block"
    first, second = model(tokens).array, model(tokens).array
    expect_true("in training, two calls differ", bool((first != second).any()), look)
    with work.using_config("train", False):
        dry = model(tokens).array
    plain = _model(work)(tokens).array
    expect_close("the scores with config.train False", dry, plain, look)
    expect_close("without dropout=, a second call", _model(work)(tokens).array, plain, look)
    for blocks, place in ((0, "the embeddings"), (1, "a block")):
        model = _drawn(nn.GPT(7, 6, 8, 2, blocks, dropout=1 - 1e-9))
        expected = model.head(model.norm(work.Variable(np.zeros((1, 3, 8))))).array
        look = f"GPT.forward: self.dropout works on the output of {place}, too"
        what = f"the scores when dropout behind {place} leaves zeros"
        expect_close(what, model(tokens).array, expected, look)


def check_draws(work: Any) -> None:
    """tokens are drawn by their probability"""
    from mynode.nn.language_model import draw_token

    scores = np.array([0.0, math.log(2.0), math.log(5.0)], np.float32)
    kept = scores.copy()
    for temperature in (1.0, 0.5):
        work.seed(0)
        draws = [draw_token(scores, temperature) for _ in range(2000)]
        p = np.array([1.0, 2.0, 5.0]) ** (1 / temperature)
        shares = np.bincount(draws, minlength=3) / 2000
        look = "draw_token: softmax(scores / temperature), then a draw with these probabilities"
        what = f"the shares of 2000 draws at temperature {temperature}"
        expect_close(what, shares, p / p.sum(), look, atol=0.05)
    found = []
    for _ in range(2):
        work.seed(1)
        found.append([int(draw_token(scores)) for _ in range(50)])
    look = "draw_token: draw with random.get_generator(), which seed() starts anew"
    expect_equal("50 draws after the same seed", found[1], found[0], look)
    look = "draw_token: subtract the largest score before exp"
    with np.errstate(over="raise", invalid="raise"):
        try:
            got = draw_token(np.array([5.0, 900.0, -900.0]), 0.01)
        except (FloatingPointError, ValueError):
            got = "an overflow of exp"
    expect_equal("the token of a score of 900, at temperature 0.01", got, 1, look)
    expect_equal("the scores after the draws", scores, kept, "make a new array")


def check_write(work: Any) -> None:
    """write adds tokens, without dropout"""
    from mynode.nn.language_model import write

    model, given, found = _model(work, dropout=0.5), [3, 1], []
    for train in (True, False):
        work.seed(1)
        with work.using_config("train", train):
            found.append([int(token) for token in write(model, given, 9)])
    expect_equal("the tokens that were given", given, [3, 1], "write: make a new list")
    look = "write: the tokens that were given, and count further ones"
    expect_equal("the first two tokens, and how many", (found[0][:2], len(found[0])), ([3, 1], 11),
                 look)  # fmt: skip
    look = 'write: the model reads with using_config("train", False)'
    expect_equal("the tokens, as with config.train False", found[0], found[1], look)


def check_writing(work: Any) -> None:
    """your GPT learns a text, and writes it"""
    from mynode import nn
    from mynode.nn.language_model import write
    from mynode.tokens import Tokenizer, learn_pairs

    text = "a leaf keeps the sum. " * 12
    tokenizer = Tokenizer(learn_pairs(text, 4))
    tokens = np.array(tokenizer.encode(text))
    work.seed(0)
    model = nn.GPT(tokenizer.size, 12, 16, 2, 1)
    optimizer = nn.AdamW(model, lr=0.03)
    schedule = nn.schedules.CosineSchedule(optimizer, 100, warmup=6)
    draw = np.random.default_rng(0)
    loss = None
    for _ in range(100):
        rows = tokens[draw.integers(0, len(tokens) - 12, 8)[:, None] + np.arange(13)]
        scores = work.reshape(model(rows[:, :-1]), (-1, tokenizer.size))
        loss = work.softmax_cross_entropy(scores, rows[:, 1:].reshape(-1))
        optimizer.cleargrads()
        loss.backward()
        optimizer.update()
        schedule.step()
    found = tokenizer.decode(write(model, tokenizer.encode("a leaf k"), 12, temperature=0.01))
    look = "Each part passed by itself: does write read the last tokens, and add each new one?"
    expect_true(f"the text {found!r} has 'keeps the sum'", "keeps the sum" in found, look)


_TOKENS, _SCHEDULES, _MODEL = "tokens.py", "nn/schedules.py", "nn/language_model.py"

MISTAKES = (
    (
        "merge goes on by one place, so pairs overlap",
        mistake("20", _TOKENS, "place += 2", "place += 1"),
    ),
    (
        "all pairs are counted in the bytes: nothing is merged before the next count",
        mistake(
            "20", _TOKENS, "tokens = merge(tokens, pair, 256 + len(pairs))\n", "counts = None\n"
        ),
    ),
    (
        "the pairs are learned on letters, and a letter may have many bytes",
        mistake(
            "20",
            _TOKENS,
            'list(text.encode("utf-8"))\n    pairs',
            "[ord(letter) for letter in text]\n    pairs",
        ),
    ),
    (
        "the last pairs are never merged",
        mistake(
            "20",
            _TOKENS,
            "for i, pair in enumerate(self.pairs):",
            "for i, pair in enumerate(self.pairs[:6]):",
        ),
    ),
    (
        "large letters become small ones",
        mistake("20", _TOKENS, "list(text.encode(", "list(text.lower().encode("),
    ),
    (
        "the number of a new token is one too large",
        mistake(
            "20",
            _TOKENS,
            "merge(tokens, pair, 256 + len(pairs))",
            "merge(tokens, pair, 257 + len(pairs))",
        ),
    ),
    (
        "of equal counts, the largest pair is taken",
        mistake(
            "20",
            _TOKENS,
            "max(counts, key=counts.get, default=None)",
            "max(counts, key=lambda p: (counts[p], p), default=None)",
        ),
    ),
    (
        "pairs that come once are taken too",
        mistake("20", _TOKENS, "counts[pair] < 2", "counts[pair] < 1"),
    ),
    (
        "each token is decoded by itself",
        mistake(
            "20",
            _TOKENS,
            'b"".join(self.pieces[token] for token in tokens).decode("utf-8", "replace")',
            '"".join(self.pieces[token].decode("utf-8", "replace") for token in tokens)',
        ),
    ),
    (
        "the cosine begins at step 0, not after the warm-up",
        mistake(
            "20", _SCHEDULES, "(t - self.warmup) / (self.steps - self.warmup)", "t / self.steps"
        ),
    ),
    (
        "after the last step the rate rises again",
        mistake(
            "20",
            _SCHEDULES,
            "min(1.0, (t - self.warmup) / (self.steps - self.warmup))",
            "(t - self.warmup) / (self.steps - self.warmup)",
        ),
    ),
    (
        "step counts, and the optimizer keeps its rate",
        mistake("20", _SCHEDULES, "        self.optimizer.lr = self.lr_at(self.count)\n", ""),
    ),
    (
        "the places are forgotten",
        mistake(
            "20", _MODEL, "self.tokens(tokens) + self.places(np.arange(n))", "self.tokens(tokens)"
        ),
    ),
    (
        "all blocks are the same block",
        mistake(
            "20",
            _MODEL,
            "[Block(size, heads) for _ in range(blocks)]",
            "[Block(size, heads)] * blocks",
        ),
    ),
    (
        "the norm before the head is forgotten",
        mistake("20", _MODEL, "self.head(self.norm(x))", "self.head(x)"),
    ),
    (
        "dropout forgets the embeddings",
        mistake(
            "20",
            _MODEL,
            "self.dropout(self.tokens(tokens) + self.places(np.arange(n)))",
            "self.tokens(tokens) + self.places(np.arange(n))",
        ),
    ),
    (
        "dropout forgets the blocks",
        mistake("20", _MODEL, "self.dropout(block(x))", "block(x)"),
    ),
    (
        "the draws know no seed",
        mistake("20", _MODEL, "random.get_generator()", "np.random.default_rng()"),
    ),
    (
        "write draws with dropout",
        mistake(
            "20",
            _MODEL,
            'no_backprop_mode(), using_config("train", False)',
            "no_backprop_mode()",
        ),
    ),
    (
        "write lengthens the list that was given",
        mistake("20", _MODEL, "    tokens = list(tokens)\n    with", "    with"),
    ),
    (
        "the temperature multiplies",
        mistake("20", _MODEL, ") / temperature", ") * temperature"),
    ),
    (
        "the likeliest token is taken at every temperature",
        mistake(
            "20",
            _MODEL,
            "int(random.get_generator().choice(len(p), p=p / p.sum()))",
            "int(p.argmax())",
        ),
    ),
    (
        "exp of large scores overflows",
        mistake("20", _MODEL, "(scores - scores.max()).astype", "scores.astype"),
    ),
    (
        "write never reads what it wrote",
        mistake(
            "20",
            _MODEL,
            "tokens.append(draw_token(scores, temperature))",
            "tokens = [*tokens, draw_token(scores, temperature)][: len(tokens)]",
        ),
    ),
)
