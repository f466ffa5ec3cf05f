"""tinynode.show.text: the words of the picture, shared nodes, depth, and what is left out."""

from __future__ import annotations

import re
import textwrap

import numpy as np
import pytest

import tinynode as tn
from tinynode import functions, show


def named(name: str | None, *shape: int, dtype: str = "float64", **options: bool) -> tn.Variable:
    return tn.Variable(np.ones(shape, dtype), name=name, **options)


def picture(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def test_one_function() -> None:
    x, y = named("x", 2, 3), named("y", 3, dtype="float64")
    z = x * y
    z.name = "z"
    assert show.text(z) == picture("""
        x.node <- Multiply <- z.node
        y.node <-'

        z.node: rank 1, (2, 3), float64
        x.node: rank 0, (2, 3), float64, leaf, array retained
        y.node: rank 0, (3,), float64, leaf, array retained
    """)


def test_a_chain_of_unnamed_variables() -> None:
    x = named(None, 2, dtype="float32")
    assert show.text(functions.sum(functions.exp(x))) == picture("""
        #1 <- Exp <- #2
        #2 <- Sum <- #3

        #3: rank 2, float32
        #2: rank 1, (2,), float32, array retained
        #1: rank 0, (2,), float32, leaf
    """)


def test_branches_and_shared_nodes() -> None:
    x = named("x", 2)
    h = functions.sin(x)
    y = functions.exp(h) + h
    assert show.text(y) == picture("""
        x.node <- Sin <- #1
        #1     <- Exp <- #2
        #2     <- Add <- #3
        #1     <-'

        #3:     rank 3, (2,), float64
        #2:     rank 2, (2,), float64, array retained
        #1:     rank 1, (2,), float64
        x.node: rank 0, (2,), float64, leaf, array retained
    """)


def test_the_same_variable_twice() -> None:
    x = named("x", 2)
    lines = show.text(x * x).splitlines()
    assert lines[:2] == ["x.node <- Multiply <- #1", "x.node <-'"]
    assert sum(line.startswith("x.node:") for line in lines) == 1


def test_several_variables_share_one_picture() -> None:
    x = named("x", 2)
    h = functions.sin(x)
    y, z = functions.cos(h), functions.tanh(h)
    y.name, z.name = "y", "z"
    lines = show.text(y, z, x, y).splitlines()
    functions_drawn = lines[: lines.index("")]
    assert sorted(functions_drawn) == [
        "#1     <- Cos <- y.node",
        "#1     <- Tanh <- z.node",
        "x.node <- Sin <- #1",
    ]
    assert functions_drawn[0].startswith("x.node")
    assert len(lines) == 3 + 1 + 4


def test_every_function_comes_after_what_it_depends_on() -> None:
    """Of unequal depth: the shallow branch must not be drawn too early or twice."""
    x = named(None, 2)
    deep = x
    for _ in range(5):
        deep = functions.sin(deep)
    y = deep * (x + deep) + functions.exp(x)
    known = set()
    for line in show.text(y).split("\n\n")[0].splitlines():
        inputs, _, rest = line.partition(" <-")
        if "<-" in rest:
            known.update(re.findall(r"#\d+", rest))
            known.discard(re.findall(r"#\d+", rest)[-1])
            produced = re.findall(r"#\d+", rest)
        assert inputs.strip() in known or inputs.strip() == "#1", line
        known.update(produced)
    assert len(known) == 9


def test_several_outputs_and_outputs_that_are_gone() -> None:
    x = named("x", 3)
    a, b, c = functions.split(x, 3)
    assert show.text(b).startswith("x.node <- Split <- #1, #2, #3\n")
    del a, c
    assert show.text(b).startswith("x.node <- Split <- (gone), #1, (gone)\n")
    assert "#1:     rank 1, (1,), float64" in show.text(b)


def test_leaves_and_variables_without_a_graph() -> None:
    assert show.text(named("x", 2)) == "x.node: rank 0, (2,), float64, leaf"
    constant = named("c", 2, requires_grad=False)
    assert show.text(constant) == "c.node: rank 0, (2,), float64, leaf, no gradient"
    integers = tn.Variable(np.array([1, 2]))
    assert show.text(integers) == "#1: rank 0, (2,), int64, leaf, no gradient"
    assert show.text(tn.Variable(name="e")) == "e.node: rank 0, empty, leaf"
    with tn.no_backprop_mode():
        y = functions.exp(named("x", 2))
    assert show.text(y) == "#1: rank 0, (2,), float64, leaf, no gradient"
    assert show.text() == ""


def test_an_unchained_graph() -> None:
    x = named("x", 2)
    h = functions.sin(x)
    y = functions.exp(h)
    h.unchain()
    text = show.text(y)
    assert text.startswith("#1 <- Exp <- #2\n")
    assert "#1: rank 1, (2,), float64, unchained" in text
    assert "x.node" not in text


def test_labels_are_shown() -> None:
    assert "x.node <- PowConstant(3) <- #1" in show.text(named("x", 2) ** 3)


def test_names_that_occur_twice_are_told_apart() -> None:
    first, second = named("W", 2), named("W", 3)
    text = show.text(functions.concat([first, second]))
    assert text.splitlines()[:2] == ["W.node   <- Concat <- #2", "W.node#1 <-'"]
    assert "W.node#1: rank 0, (3,)" in text and "W.node:   rank 0, (2,)" in text


def test_a_gradient_has_a_graph_too() -> None:
    x = named("x", 2)
    y = functions.sum(functions.sin(x))
    y.backward(enable_double_backprop=True)
    gx = x.grad_var
    assert gx is not None
    gx.name = "gx"
    text = show.text(gx)
    assert "x.node <- Cos <- " in text and "Multiply <- gx.node" in text
    assert "Sin" not in text  # the gradient needs cos(x), not sin(x)
    assert show.text(y, gx).count("Sin <-") == 1


@pytest.mark.slow
def test_a_deep_graph_is_cut_and_says_so() -> None:
    y = named("x", 2)
    for _ in range(100_000):
        y = functions.sin(y)
    lines = show.text(y, limit=2).splitlines()
    assert lines[0] == "... and 99998 more functions before these"
    assert lines[1:3] == ["#1 <- Sin <- #2", "#2 <- Sin <- #3"]
    assert lines[4] == "#3: rank 100000, (2,), float64"
    assert "#1: rank 99998, (2,), float64, array retained" in lines
    assert len(show.text(y).splitlines()) == 1 + 100 + 1 + 101


def test_the_limit() -> None:
    y = named("x", 2)
    for _ in range(3):
        y = functions.sin(y)
    assert "more functions" not in show.text(y, limit=3)
    assert "... and 1 more functions" in show.text(y, limit=2)
    assert "more functions" not in show.text(y, limit=None)
    with pytest.raises(ValueError, match="limit must be at least 1 or None, got 0"):
        show.text(y, limit=0)


def test_only_variables_have_a_graph() -> None:
    with pytest.raises(TypeError, match="text: argument 1 must be a Variable, got ndarray"):
        show.text(named("x", 2), np.ones(2))  # type: ignore[arg-type]


def test_drawing_changes_nothing() -> None:
    x = named("x", 2)
    y = functions.sum(x * x)
    show.text(y)
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [2.0, 2.0]
