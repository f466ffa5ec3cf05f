"""Right answers of another form than the solution: the checks and the drills accept them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from forked_examiner import events_of
from judging import plan

from tinynode_course import mynode, sources
from tinynode_course.judge import plans

ONE_NODE = textwrap.dedent(
    '''
    """A norm as a single operation."""

    import numpy as np
    from mynode.core.function_node import FunctionNode
    from mynode.functions.arithmetic import as_operands


    class LayerNormalization(FunctionNode):
        def __init__(self, eps):
            self.eps = eps

        def parts(self, x, gamma):
            axes = tuple(range(-gamma.ndim, 0))
            root = np.sqrt(x.var(axis=axes, keepdims=True) + self.eps)
            return (x - x.mean(axis=axes, keepdims=True)) / root, root, axes

        def forward(self, inputs):
            x, gamma = inputs[:2]
            self.retain_inputs((0, 1))
            y = self.parts(x, gamma)[0] * gamma
            return (y + inputs[2] if len(inputs) == 3 else y,)

        def backward(self, target_input_indexes, grad_outputs):
            (gy,) = grad_outputs
            x, gamma = self.get_retained_inputs()
            n, root, axes = self.parts(x, gamma)
            gn = gy * gamma
            slope = n * (gn * n).mean(axis=axes, keepdims=True)
            gx = (gn - gn.mean(axis=axes, keepdims=True) - slope) / root
            rows = tuple(range(x.ndim - gamma.ndim))
            return (gx, (gy * n).sum(axis=rows), gy.sum(axis=rows))[: len(self.inputs)]


    def layer_norm(x, gamma, beta=None, eps=1e-5):
        x, gamma = as_operands(x, gamma)
        if x.shape[-gamma.ndim :] != gamma.shape:
            raise ValueError("gamma has another shape")
        given = (x, gamma) if beta is None else (x, gamma, beta)
        return LayerNormalization(eps).apply(given)[0]
    '''
).lstrip()

ADDS = "        return x + super().forward(x)"
LOOP = """        y = x
        for layer in self.layers:
            y = layer(y)
        return y + x"""

BRANCHES = """        x = x + self.attention(self.norm1(x))
        return x + self.down(relu(self.up(self.norm2(x))))"""
RESIDUALS = """        x = Residual(self.norm1, self.attention)(x)
        return Residual(self.norm2, self.up, relu, self.down)(x)"""

_CORE = "from mynode.core.function_node"
_WITH_NUMPY = (_CORE, f"import numpy as np\n{_CORE}")
_CENTRED = "x - mean(x, axis, keepdims=True)"

MERGE = mynode.definitions(mynode.reference("20")["tokens.py"])["merge"].text
BY_THE_END = '''def merge(tokens, pair, new):
    """The list so far is searched at its end."""
    merged = []
    for token in tokens:
        merged.append(token)
        if tuple(merged[-2:]) == tuple(pair):
            merged[-2:] = [new]
    return merged'''

DRAW = """    p = np.exp(scaled)
    return int(random.get_generator().choice(len(p), p=p / p.sum()))"""
CUMULATED = """    total = np.cumsum(np.exp(scaled))
    place = random.get_generator().random() * total[-1]
    return int(np.searchsorted(total, place, side="right"))"""
GUMBEL = """    noise = random.get_generator().gumbel(size=scaled.shape)
    return int(np.argmax(scaled + noise))"""

LOWRANK = "linear(x, self.weight) + self.scale * linear(linear(x, self.a), self.b)"
TO_INTEGERS = "np.rint(w / scale).astype(np.int8)"

TILES = mynode.definitions(mynode.reference("tiled_attention")["functions/tiled_attention.py"])[
    "TiledAttention"
].text
FORWARD = TILES[TILES.index("        largest = np.full") : TILES.index("    def backward")]
BY_LOGARITHMS = """        log = np.full((*query.shape[:-1], 1), -np.inf, query.dtype)
        y = np.zeros((*query.shape[:-1], value.shape[-1]), query.dtype)
        for start in range(0, key.shape[-2], self.tile):
            end = start + self.tile
            scores = tile_scores(query, key[..., start:end, :], start, self.causal)
            new = log
            for place in range(scores.shape[-1]):
                new = np.logaddexp(new, scores[..., place : place + 1])
            y = np.exp(log - new) * y + np.exp(scores - new) @ value[..., start:end, :]
            log = new
        self.retain_inputs((0, 1, 2))
        self.retain_outputs((0, 1))
        return y, log

"""

ANSWERS = {
    ("18", "a norm with a backward of its own"): {"functions/normalization.py": ONE_NODE},
    ("18", "a root that keeps its input"): mynode.mistake(
        "18",
        "functions/exponential.py",
        "        self.retain_outputs((0,))\n        return (np.sqrt(x),)",
        "        self.retain_inputs((0,))\n        return (x**0.5,)",
        (
            "        (y,) = self.get_retained_outputs()\n        return (gy * 0.5 / y,)",
            "        (x,) = self.get_retained_inputs()\n        return (gy / (2 * np.sqrt(x)),)",
        ),
    ),
    ("18", "a loop over the layers"): mynode.mistake("18", "nn/layers.py", ADDS, LOOP),
    ("18", "a product for the square"): mynode.mistake(
        "18",
        "functions/statistical.py",
        f"square({_CENTRED})",
        f"({_CENTRED}) * ({_CENTRED})",
    ),
    ("18", "the last axis alone"): mynode.mistake(
        "18", "functions/normalization.py", "tuple(range(-gamma.ndim, 0))", "-1"
    ),
    ("19", "a large number for infinity"): mynode.mistake(
        "19", "functions/network.py", "-np.inf).astype", "-1e9).astype"
    ),
    ("19", "another causal mask"): mynode.mistake(
        "19",
        "functions/network.py",
        "np.tri(*scores.shape[-2:], dtype=bool)",
        "~np.triu(np.ones(scores.shape[-2:], bool), 1)",
    ),
    ("19", "scaled queries, and another transposition"): mynode.mistake(
        "19",
        "functions/network.py",
        "matmul(query, matrix_transpose(key)) / math.sqrt(query.shape[-1])",
        "matmul(query / math.sqrt(query.shape[-1]), "
        "permute_dims(key, (*range(key.ndim - 2), -1, -2)))",
        (
            "import matmul, matrix_transpose",
            "import matmul\nfrom mynode.functions.shapes import permute_dims",
        ),
    ),
    ("19", "swapaxes"): mynode.mistake(
        "19",
        "functions/products.py",
        "gz @ y.mT",
        "gz @ np.swapaxes(y, -1, -2)",
        ("x.mT @ gz", "np.swapaxes(x, -1, -2) @ gz"),
        _WITH_NUMPY,
    ),
    ("19", "einsum"): mynode.mistake(
        "19",
        "functions/products.py",
        "gz @ y.mT",
        "np.einsum('...nm,...km->...nk', gz, y)",
        _WITH_NUMPY,
    ),
    ("19", "argsort"): mynode.mistake(
        "19",
        "functions/shapes.py",
        "tuple(self.axes.index(i) for i in range(len(self.axes)))",
        "np.argsort(self.axes)",
    ),
    ("19", "a copy in another order"): mynode.mistake(
        "19",
        "functions/shapes.py",
        "return (x.transpose(self.axes),)",
        "return (np.transpose(x, self.axes).copy(),)",
    ),
    ("19", "a length that reshape computes"): mynode.mistake(
        "19", "nn/attention.py", "(batch, length, heads * part)", "(batch, length, -1)"
    ),
    ("19", "a block of Residual"): mynode.mistake(
        "19",
        "nn/transformer.py",
        BRANCHES,
        RESIDUALS,
        ("import Linear", "import Linear, Residual"),
    ),
    ("20", "a list searched at its end"): mynode.mistake("20", "tokens.py", MERGE, BY_THE_END),
    ("20", "most_common"): mynode.mistake(
        "20",
        "tokens.py",
        "pair = max(counts, key=counts.get, default=None)",
        "pair = counts.most_common(1)[0][0] if counts else None",
    ),
    ("20", "pairs of a dictionary"): mynode.mistake(
        "20",
        "tokens.py",
        "counts = Counter(pairwise(tokens))",
        "counts = {}\n        for one in zip(tokens, tokens[1:], strict=False):\n"
        "            counts[one] = counts.get(one, 0) + 1",
    ),
    ("20", "the cosine of a half"): mynode.mistake(
        "20",
        "nn/schedules.py",
        "(1 + math.cos(math.pi * share)) / 2",
        "math.cos(math.pi * share / 2) ** 2",
    ),
    ("20", "cumulated probabilities"): mynode.mistake(
        "20", "nn/language_model.py", DRAW, CUMULATED
    ),
    ("20", "noise of Gumbel"): mynode.mistake("20", "nn/language_model.py", DRAW, GUMBEL),
    ("20", "a tuple of blocks, and rows of places by a batch"): mynode.mistake(
        "20",
        "nn/language_model.py",
        "[Block(size, heads) for _ in range(blocks)]",
        "tuple(Block(size, heads) for _ in range(blocks))",
        ("self.places(np.arange(n))", "self.places(np.arange(n)[None])"),
    ),
    ("21", "no mask for a single place"): mynode.mistake(
        "21",
        "nn/cache.py",
        "np.tri(new, length, length - new, dtype=bool)",
        "None if new == 1 else ~np.triu(np.ones((new, length), bool), length - new + 1)",
    ),
    ("21", "a single matrix for W and B A"): mynode.mistake(
        "21", "nn/lora.py", LOWRANK, "linear(x, self.weight + self.scale * (self.b @ self.a))"
    ),
    ("21", "the pair beside the bias"): mynode.mistake(
        "21",
        "nn/lora.py",
        "        return y if self.bias is None else y + self.bias\n",
        "        if self.bias is not None:\n            y = self.bias + y\n        return y\n",
    ),
    ("21", "rounded and clipped"): mynode.mistake(
        "21",
        "nn/int8.py",
        TO_INTEGERS,
        "np.clip(np.round(w * (1 / scale)), -127, 127).astype(np.int8)",
    ),
    ("21", "floats before the product"): mynode.mistake(
        "21",
        "nn/int8.py",
        "linear(x, self.q.astype(x.dtype)) * self.scale[:, 0]",
        "linear(x, (self.q * self.scale).astype(x.dtype))",
    ),
    ("tiled_attention", "a running logarithm"): mynode.mistake(
        "tiled_attention", "functions/tiled_attention.py", FORWARD, BY_LOGARITHMS
    ),
    ("tiled_attention", "einsum"): mynode.mistake(
        "tiled_attention",
        "functions/tiled_attention.py",
        "gs.mT @ query",
        "np.einsum('...nt,...nd->...td', gs, query)",
        ("p.mT @ gy", "np.swapaxes(p, -1, -2) @ gy"),
    ),
}
"""Files of ``mynode`` by step and name."""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("key", "name"), ANSWERS, ids=[name for _, name in ANSWERS])
def test_it_passes(key: str, name: str, tmp_path: Path) -> None:
    step = sources.find(key)
    files = mynode.reference(key) | ANSWERS[key, name]
    mynode.write_files(files, tmp_path / mynode.NAME)
    kinds = [event["event"] for event in events_of(step, tmp_path / step.work)]
    assert "failed" not in kinds and kinds[-1] == "end"
    judged = plan(step.name)
    found = plans.run(judged, {f"{mynode.NAME}/{path}": text for path, text in files.items()})
    assert {plans.verdict(judged, place, *got) for place, got in enumerate(found)} == {""}
