"""The table of docs/dtypes.md: each example gives the dtype that the table says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import nn

PAGE = Path(__file__).resolve().parents[2] / "docs" / "dtypes.md"
ROWS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
OTHER_PAGES = ("graph.md", "from-pytorch.md", "from-chainer.md", "layers-and-training.md")


def code_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def examples() -> list[tuple[str, str]]:
    """Each example with the dtype or the exception of its row."""
    found = []
    for line in ROWS[1:]:
        _, calls, results = line.strip("| ").split(" | ")
        names = code_in(results)
        if len(names) == 1:
            names = names * len(code_in(calls))
        found += list(zip(code_in(calls), names, strict=True))
    return found


def names() -> dict[str, Any]:
    values = np.asarray([1.0, 2.0, 3.0])
    found: dict[str, Any] = {"tn": tn, "F": tn.functions, "np": np, "nn": nn}
    for bits in (16, 32, 64):
        found[f"x{bits}"] = tn.asarray(values, dtype=f"float{bits}")
        found[f"m{bits}"] = tn.asarray(np.eye(3) + 0.5, dtype=f"float{bits}")
    return found | {
        "layer": nn.Linear(3, 2, dtype="float32"),
        "pullback": tn.vjp(tn.functions.sin, found["x32"])[1],
        "linear": tn.linearize(tn.functions.sin, found["x32"])[1],
        "a64": values,
        "b64": np.eye(3),
        "i64": tn.asarray(np.arange(3)),
    }


@pytest.mark.parametrize(("call", "expected"), examples())
def test_an_example_of_the_table(call: str, expected: str) -> None:
    if expected.endswith("Error") or expected == "InvalidType":
        with pytest.raises(getattr(tn.errors, expected), match=r"dtype|float"):
            eval(call, names())
        return
    found = eval(call, names())
    assert tn.errors.dtype_name(found.dtype) == expected
    if found.requires_grad and expected.startswith("float"):
        x = tn.asarray(np.asarray([1.0, 2.0, 3.0]), dtype="float32")
        (gx,) = tn.grad([tn.functions.sum(eval(call, names() | {"x32": x}))], [x])
        assert gx is None or gx.dtype == np.float32


def test_compiled_examples_have_the_same_dtype() -> None:
    def f(x: tn.Variable, y: tn.Variable) -> tn.Variable:
        return tn.functions.concat([x, y * 2, x + y])

    given = names()
    assert tn.compile(f)(given["x32"], given["x64"]).dtype == np.float64
    gx, gy = tn.compile(tn.gradient(lambda x, y: tn.functions.sum(f(x, y)), (0, 1)))(
        given["x32"], given["x64"]
    )
    assert (gx.dtype, gy.dtype) == (np.float32, np.float64)


INPUTS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "Linear": (lambda: nn.Linear(4, 2), (3, 4)),
    "Bilinear": (lambda: nn.Bilinear(4, 4, 2), (3, 4)),
    "Conv1d": (lambda: nn.Conv1d(4, 2, 3), (3, 4, 5)),
    "Conv2d": (lambda: nn.Conv2d(4, 2, 3), (3, 4, 5, 5)),
    "Conv3d": (lambda: nn.Conv3d(1, 2, 3), (3, 1, 5, 5, 5)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 2, 3), (3, 4, 5, 5)),
    "BatchNorm": (lambda: nn.BatchNorm(4), (3, 4)),
    "BatchNorm eval": (lambda: nn.BatchNorm(4).eval(), (3, 4)),
    "LayerNorm": (lambda: nn.LayerNorm(4), (3, 4)),
    "RMSNorm": (lambda: nn.RMSNorm(4), (3, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (3, 4)),
    "InstanceNorm": (lambda: nn.InstanceNorm(4, affine=True), (3, 4, 5)),
    "PReLU": (lambda: nn.PReLU(), (3, 4)),
    "RNN": (lambda: nn.RNN(4, 2), (3, 2, 4)),
    "LSTM": (lambda: nn.LSTM(4, 2), (3, 2, 4)),
    "GRU": (lambda: nn.GRU(4, 2), (3, 2, 4)),
    "LSTMCell": (lambda: nn.LSTMCell(4, 2), (3, 4)),
    "MultiHeadAttention": (lambda: nn.MultiHeadAttention(4, 2), (3, 2, 4)),
    "TransformerBlock": (lambda: nn.TransformerBlock(4, 2), (2, 3, 4)),
    "TransformerDecoderBlock": (lambda: nn.TransformerDecoderBlock(4, 2), (2, 3, 4)),
    "WeightNorm": (lambda: nn.WeightNorm(nn.Linear(4, 2)), (3, 4)),
    "SpectralNorm": (lambda: nn.SpectralNorm(nn.Linear(4, 2)), (3, 4)),
}


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64"])
@pytest.mark.parametrize("name", INPUTS)
def test_a_layer_takes_inputs_in_the_dtype_of_the_parameters(name: str, dtype: str) -> None:
    make, shape = INPUTS[name]
    layer = make()
    array = np.random.default_rng(0).normal(size=shape).astype(dtype)
    count = 2 if name in ("Bilinear", "TransformerDecoderBlock") else 1
    for x in (array, tn.Variable(array, requires_grad=dtype != "int64")):
        y = layer(*[x] * count)
        while isinstance(y, tuple):
            y = y[0]
        assert y.dtype == np.float32
        if isinstance(x, tn.Variable) and x.requires_grad:
            tn.functions.sum(y).backward()
            assert x.grad.dtype.name == dtype


@pytest.mark.parametrize("page", OTHER_PAGES)
def test_the_other_pages_lead_to_the_table(page: str) -> None:
    assert "(dtypes.md)" in (PAGE.parent / page).read_text(encoding="utf-8")
