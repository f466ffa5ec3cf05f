"""The most used functions have an example in the docstring, and each example prints its output."""

from __future__ import annotations

import ast
import doctest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions, nn

ROOT = Path(tn.__file__).parent
MOST_USED = """
F.abs F.broadcast_arrays F.concat F.conv2d F.cos F.cumulative_sum F.dropout F.einsum F.exp F.flip
F.linear F.log F.matmul F.max F.mean F.mean_squared_error F.one_hot F.permute_dims F.relu F.reshape
F.sigmoid F.sin F.softmax F.softmax_cross_entropy F.sqrt F.stack F.sum F.tanh F.where nn.Adam
nn.ArrayDataset nn.Conv2d nn.DataLoader nn.Dropout nn.Embedding nn.Flatten nn.LayerNorm nn.Linear
nn.MaxPool2d nn.Parameter nn.SGD nn.Sequential tn.Variable tn.Variable.backward
tn.Variable.cleargrad tn.Variable.detach tn.Variable.explain_grad tn.Variable.item
tn.Variable.mean tn.Variable.numpy tn.Variable.reshape tn.Variable.sum tn.Variable.to_device
tn.Variable.tolist tn.Variable.unchain tn.asarray tn.checkpoint tn.compile tn.get_device tn.grad
tn.gradient tn.hessian tn.jacobian tn.jvp tn.namespace_of tn.no_backprop_mode tn.seed tn.to_host
tn.using_config tn.using_device tn.value_and_grad tn.vjp tn.vmap
"""
"""By the number of their uses in the course, the guides and the README."""


def thing(path: str) -> Any:
    room, *names = path.split(".")
    found: Any = {"F": functions, "nn": nn, "tn": tn}[room]
    for name in names:
        found = getattr(found, name)
    return found


def docstrings() -> Iterator[tuple[str, str]]:
    """The docstrings with an example, by file and name."""
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if ">>> " not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                docstring = ast.get_docstring(node) or ""
                if ">>> " in docstring:
                    name = getattr(node, "name", "")
                    yield f"{path.relative_to(ROOT).as_posix()}:{name}", docstring


EXAMPLES = list(docstrings())


@pytest.mark.parametrize("path", MOST_USED.split())
def test_the_most_used_functions_have_an_example(path: str) -> None:
    assert ">>> " in (thing(path).__doc__ or "")


@pytest.mark.parametrize(("name", "docstring"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_an_example_prints_its_output(name: str, docstring: str) -> None:
    names = {"tn": tn, "F": functions, "nn": nn, "np": np}
    first = next(line for line in docstring.splitlines() if ">>> " in line)
    assert first.startswith("    "), "indented, so that the pages of the reference show code"
    test = doctest.DocTestParser().get_doctest(docstring, names, name, None, None)
    failures: list[str] = []
    doctest.DocTestRunner().run(test, out=failures.append)
    assert failures == [], "".join(failures)
