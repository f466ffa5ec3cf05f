"""Drills of a cheap model: the cache, low-rank adaptation, int8."""

import importlib
from itertools import pairwise

import numpy as np

from tinynode_course.drilling import draw_parameters, raised


def _module(work, name):
    return importlib.import_module(f"{work.__name__}.nn.{name}")


def _gpt(work, seed):
    """A GPT with drawn parameters: norm1 and norm2 would begin with the same numbers."""
    model = importlib.import_module(f"{work.__name__}.nn").GPT(9, 7, 8, 2, 2)
    return draw_parameters(model, np.random.default_rng(seed))


def draw_cache(rng):
    cuts = np.sort(rng.choice(np.arange(1, 7), 2, replace=False)).tolist()
    return {"seed": int(rng.integers(0, 1000)), "tokens": rng.integers(0, 9, (2, 7)), "cuts": cuts}


def drill_cache(work, inputs):
    """read and attend: parts of drawn sizes, the arrays of the cache, too many places"""
    cache = _module(work, "cache")
    model, tokens = _gpt(work, inputs["seed"]), inputs["tokens"]
    caches = [cache.KeyValueCache() for _ in model.blocks]
    found, edges = [], [0, *inputs["cuts"], 7]
    for start, end in pairwise(edges):
        found.append(cache.read(model, tokens[:, start:end], caches).array)
    found += [[one.keys, one.values, one.length] for one in caches]
    wrong = raised(lambda: cache.read(model, tokens[:, :1], caches), ValueError)
    x = model.places(np.array([[3, 1, 4]]))
    alone = cache.attend(model.blocks[0].attention, x, cache.KeyValueCache()).array
    return [*found, wrong, alone]


def draw_writing(rng):
    return {"seed": int(rng.integers(0, 1000)), "tokens": rng.integers(0, 9, 3).tolist()}


def drill_writing(work, inputs):
    """write_cached: the likeliest tokens, beyond the length of the model too"""
    cache = _module(work, "cache")
    model = _gpt(work, inputs["seed"])
    written = cache.write_cached(model, inputs["tokens"], 12, temperature=0.001)
    return [[int(token) for token in written], inputs["tokens"]]


def draw_lora(rng):
    return {
        "x": rng.normal(size=(2, 3, 4)),
        "w": rng.normal(size=(5, 4)),
        "bias": rng.normal(size=5),
        "a": rng.normal(size=(2, 4)),
        "b": rng.normal(size=(5, 2)),
        "scale": float(rng.uniform(0.3, 3)),
    }


def drill_lora(work, inputs):
    """LoRALinear: outputs, gradients, the merged weight; the layer stays"""
    nn, lora = importlib.import_module(f"{work.__name__}.nn"), _module(work, "lora")
    found = []
    for bias in (True, False):
        layer = nn.Linear(4, 5, bias)
        layer.weight.array = inputs["w"].copy()
        if bias:
            layer.bias.array = inputs["bias"].copy()
        adapted = lora.LoRALinear(layer, 2, scale=inputs["scale"])
        found.append(adapted(work.Variable(inputs["x"])).array)
        found.append([bool((one.array != 0).any()) for one in (adapted.a, adapted.b)])
        found.append(bool((adapted.a.array[0] != adapted.a.array[1]).any()))
        adapted.a.array, adapted.b.array = inputs["a"].copy(), inputs["b"].copy()
        y = adapted(work.Variable(inputs["x"]))
        work.sum(y * y).backward()
        merged = adapted.merged()
        found += [y.array, adapted.a.grad, adapted.b.grad, merged.weight.array]
        found += [[p.array for p in merged.parameters()], [p.array for p in layer.parameters()]]
        found.append(len(adapted.parameters()))
    return found


def draw_int8(rng):
    w = rng.normal(size=(5, 6)) * 10.0 ** rng.integers(-3, 3, (5, 1))
    w[int(rng.integers(0, 5))] = 0.0
    return {"w": w, "x": rng.normal(size=(3, 6)), "bias": rng.normal(size=5)}


def drill_int8(work, inputs):
    """quantize_rows and Int8Linear: integers, scales, outputs, bytes, dtypes"""
    nn, int8 = importlib.import_module(f"{work.__name__}.nn"), _module(work, "int8")
    found = []
    for dtype in ("float64", "float32"):
        w = inputs["w"].astype(dtype)
        q, scale = int8.quantize_rows(w)
        layer = nn.Linear(6, 5)
        layer.weight.array, layer.bias.array = w, inputs["bias"].astype(dtype)
        small = int8.Int8Linear(layer)
        y = small(work.Variable(inputs["x"].astype(dtype))).array
        found += [q, scale, y, small.nbytes, len(small.parameters()), w]
    return found
