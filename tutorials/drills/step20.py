"""Drills of a GPT: pairs of bytes, a schedule, the model, draws of tokens."""

import importlib

import numpy as np

from tinynode_course.drilling import draw_parameters, parameters_of, raised


def _module(work, name):
    return importlib.import_module(f"{work.__name__}.{name}")


class Rate:
    """Stands for an optimizer: a schedule sets its rate."""

    def __init__(self, lr):
        self.lr = lr


def draw_pairs(rng):
    letters = "".join(rng.choice(list("abcé "), 80))
    return {"text": letters, "tokens": rng.integers(0, 3, 30).tolist(), "count": 12}


def drill_pairs(work, inputs):
    """merge and learn_pairs: overlaps, ties, pairs that come once"""
    tokens = _module(work, "tokens")
    given = list(inputs["tokens"])
    found = [tokens.merge(given, (a, b), 300) for a in range(3) for b in range(3)]
    pairs = tokens.learn_pairs(inputs["text"], inputs["count"])
    few = [tokens.learn_pairs(text, 5) for text in ("", "x", "xyz", "xyxy", "xxxxx")]
    return [found, given, [list(pair) for pair in pairs], [len(pairs) for pairs in few]]


def draw_text(rng):
    return {
        "text": "".join(rng.choice(list("theTHE sé詩🙂\n"), 60)),
        "start": int(rng.integers(1, 20)),
    }


def drill_text(work, inputs):
    """Tokenizer: tokens of a text, and the text of tokens, cut anywhere"""
    tokens = _module(work, "tokens")
    tokenizer = tokens.Tokenizer(tokens.learn_pairs(inputs["text"], 9))
    encoded = list(tokenizer.encode(inputs["text"]))
    cut = tokenizer.decode(encoded[inputs["start"] :])
    other = "never seen: öäü " + inputs["text"][::-1]
    same = tokenizer.decode(tokenizer.encode(other)) == other
    return [encoded, cut, same, tokenizer.size, tokenizer.decode([])]


def draw_schedule(rng):
    warmup = int(rng.integers(1, 6))
    return {
        "lr": float(rng.uniform(0.1, 1)),
        "min_lr": float(rng.uniform(0, 0.05)),
        "warmup": warmup,
        "steps": warmup + int(rng.integers(2, 8)),
    }


def drill_schedule(work, inputs):
    """CosineSchedule: warm-up, cosine, and the rate after the end"""
    schedules = _module(work, "nn.schedules")
    options = {name: inputs[name] for name in ("warmup", "min_lr")}
    rate = Rate(inputs["lr"])
    schedule = schedules.CosineSchedule(rate, inputs["steps"], **options)
    found = [rate.lr]
    for _ in range(inputs["steps"] + 3):
        schedule.step()
        found.append(rate.lr)
    plain = schedules.CosineSchedule(Rate(1.0), inputs["steps"])
    return [found, [plain.lr_at(t) for t in range(inputs["steps"])]]


def draw_model(rng):
    return {
        "seed": int(rng.integers(0, 1000)),
        "tokens": rng.integers(0, 9, (2, 5)),
        "answers": rng.integers(0, 9, 10),
    }


def drill_model(work, inputs):
    """GPT: scores, gradients of all parameters, dropout, and too many places"""
    nn = _module(work, "nn")
    model = draw_parameters(nn.GPT(9, 5, 8, 2, 2), np.random.default_rng(inputs["seed"]))
    scores = model(inputs["tokens"])
    loss = work.softmax_cross_entropy(work.reshape(scores, (10, 9)), inputs["answers"])
    loss.backward()
    grads = [p.grad for p in parameters_of(model)]
    with work.using_config("train", False):
        dry = nn.GPT(9, 5, 8, 2, 2, dropout=0.9)
        dry = draw_parameters(dry, np.random.default_rng(inputs["seed"]))(inputs["tokens"]).array
    wrong = raised(lambda: model(np.zeros((1, 6), int)), ValueError)
    zeros = [_behind_dropout(nn, inputs, blocks) for blocks in (0, 1)]
    return [scores.array, loss.array, grads, dry, wrong, zeros]


def _behind_dropout(nn, inputs, blocks):
    """The scores of a drawn model when dropout leaves zeros."""
    model = nn.GPT(9, 5, 8, 2, blocks, dropout=1 - 1e-9)
    draw_parameters(model, np.random.default_rng(inputs["seed"]))
    return model(inputs["tokens"]).array


def draw_draws(rng):
    return {"scores": rng.normal(size=6), "large": rng.normal(size=5) * 900}


def drill_draws(work, inputs):
    """draw_token: the likeliest near 0, shares at other temperatures; write adds tokens"""
    model = _module(work, "nn.language_model")
    work.seed(0)
    scores = inputs["scores"]
    found = [model.draw_token(inputs["large"], 0.001)]
    for temperature in (0.7, 1.0, 2.0):
        p = np.exp(scores / temperature)
        draws = [model.draw_token(scores, temperature) for _ in range(2000)]
        shares = np.bincount(draws, minlength=6) / 2000
        found.append(bool(np.abs(shares - p / p.sum()).max() < 0.06))
    gpt, given, same = model.GPT(6, 4, 4, 1, 1, dropout=0.5), [1, 2], []
    for train in (True, False):
        work.seed(0)
        with work.using_config("train", train):
            written = [int(token) for token in model.write(gpt, given, 9, temperature=0.5)]
        same.append(written)
    return [*found, scores, given, len(written), written[:2], same[0] == same[1]]
