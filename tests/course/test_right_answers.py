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
