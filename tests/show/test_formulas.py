"""Formulas of docstrings: the trees, the MathML, the tokens, and the truth of the formulas."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest

import tinynode as tn
from tinynode import functions
from tinynode.core.function_node import FunctionNode
from tinynode.show.page.classes import describe, mathml, tokens
from tinynode.show.page.formulas import Formula, Term, declared, read

MULTIPLY = """z = x * y, elementwise, with broadcasting.

x: (s), y: (t) -> z: (broadcast of s and t).
With g = dL/dz:   dL/dx = sum_to(g * y, s)   dL/dy = sum_to(g * x, t)"""


def function_classes() -> list[type]:
    """The function classes of ``tinynode.functions``."""
    for module in pkgutil.iter_modules(functions.__path__):
        importlib.import_module(f"tinynode.functions.{module.name}")
    found: dict[type, None] = {}
    waiting: list[type] = [FunctionNode]
    while waiting:
        for cls in waiting.pop().__subclasses__():
            waiting.append(cls)
            if cls.__module__.startswith("tinynode.functions."):
                found[cls] = None
    return list(found)


def docstrings() -> Iterator[str]:
    return (inspect.cleandoc(cls.__doc__) for cls in function_classes() if cls.__doc__)


def formula(text: str) -> Formula:
    found = [part for part in read(text) if isinstance(part, Formula)]
    assert len(found) == 1, text
    return found[0]


def line(term: Term) -> str:
    return " ".join("".join(token[1:]) for token in tokens(term))


def test_multiply_in_parts() -> None:
    found = describe(MULTIPLY)
    assert found["inputs"] == ["x", "y"]
    assert found["outputs"] == ["z"]
    assert found["formulas"]["z"]["tokens"] == [["name", "x"], ["", "·"], ["name", "y"]]
    assert found["formulas"]["dL/dx"] == {
        "tokens": [["gradient", "z"], ["", "·"], ["name", "y"]],
        "summed": True,
        "note": "",
        "matrix": False,
    }
    texts = [part if isinstance(part, str) else part.source for part in read(MULTIPLY)]
    assert "".join(texts) == MULTIPLY
    kind, text = found["parts"][1]
    assert kind == "text"
    assert text.startswith(", elementwise, with broadcasting.\n\nx: (s), y: (t) -> z")


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("y = e^-x.", "exp( - x )"),
        ("y = 1 / (1 + e^-x).", "1 / ( 1 + exp( - x ) )"),
        ("y = x (1 - x^2)", "x · ( 1 - x ^ 2 )"),
        ("y = sin x", "sin( x )"),
        ("y = x where x > 0, else slope * x.", "x where x > 0 else slope · x"),
        ("y = sum of e^x over an axis.", "sum of exp( x ) over an axis"),
        ("Y = A^T B", "AT · B"),
        ("y = ln |x|.", "ln | x |"),
        ("y_i = x_i + y_(i-1)", "x_i + y_(i-1)"),
        ("y = x * (the cofactors of X).", "x · ( the cofactors of X )"),
    ],
)
def test_expressions(text: str, right: str) -> None:
    assert line(formula(text).right).replace("\u2212", "-") == right


@pytest.mark.parametrize(
    "text",
    ["y = the larger of x and y.", "y is x.", "L L^T = X.", "y = (x", "y = x *", "y = |x", ""],
)
def test_text_without_a_formula_remains_text(text: str) -> None:
    assert [part for part in read(text) if isinstance(part, Formula)] == []
    assert "".join(map(str, read(text))) == text


def test_words_after_a_formula_are_a_note() -> None:
    assert formula("y = x / n, repeated").note == "repeated"
    assert formula("y = |x| with the sign of y. More.").note == "with the sign of y"


def test_names_of_inputs_and_outputs() -> None:
    assert declared("x, y: shapes, g: (s) -> y: (s), m and r: (1).") == (
        ["x", "y", "g"],
        ["y", "m", "r"],
    )
    assert declared("condition: (c), bool, x: (s) -> z: (s).") == (["condition", "x"], ["z"])


def test_most_docstrings_have_formulas_and_all_mathml_is_well_formed() -> None:
    gradients = some = 0
    for docstring in docstrings():
        found = describe(docstring)
        some += any(kind == "math" for kind, _ in found["parts"])
        gradients += any(key.startswith("dL/d") for key in found["formulas"])
        for part in read(docstring):
            if isinstance(part, Formula):
                root = ElementTree.fromstring(mathml(part))
                assert root.tag == "{http://www.w3.org/1998/Math/MathML}math"
        texts = [part if isinstance(part, str) else part.source for part in read(docstring)]
        assert "".join(texts) == docstring
    assert some >= 138
    assert gradients >= 120


def test_names_with_signs_of_html_are_escaped() -> None:
    (part,) = (part for part in read("y = x < 2") if isinstance(part, Formula))
    assert "&lt;" in mathml(part)


# --- the formulas are true -----------------------------------------------------------------------


def evaluated(term: Term, values: dict[str, Any]) -> Any:
    """The value of a term, with NumPy."""
    inner = [evaluated(part, values) for part in term.parts] if term.kind != "power" else []
    if term.kind == "number":
        return float(term.text)
    if term.kind in ("name", "gradient"):
        return values["d" * (term.kind == "gradient") + term.text]
    if term.kind in ("sum", "group"):
        return sum(inner)
    if term.kind == "minus":
        return -inner[0] if term.text == "-" else inner[0]
    if term.kind == "product":
        return inner[0] * inner[1]
    if term.kind == "quotient":
        return inner[0] / inner[1]
    if term.kind == "power":
        base = numpy.e if term.parts[0].text == "e" else evaluated(term.parts[0], values)
        return base ** evaluated(term.parts[1], values)
    if term.kind == "call" and term.text == "sum_to":
        return inner[0]
    assert term.kind == "call"
    own = {"ln": numpy.log, "sigmoid": lambda x: 1 / (1 + numpy.exp(-x))}
    return own.get(term.text, getattr(numpy, term.text, None))(inner[0])


UNARY = "exp expm1 log log1p sqrt square reciprocal sigmoid sin cos tanh tan atan sinh cosh asinh"
BINARY = "add subtract multiply divide pow"


@pytest.mark.parametrize("name", (UNARY + " " + BINARY).split())
def test_the_formula_of_the_gradient_gives_the_gradient(name: str) -> None:
    function: Callable[..., Any] = getattr(functions, name)
    xs = [tn.Variable(numpy.array([0.3, 0.8, 0.5])), tn.Variable(numpy.array([1.2, 0.7, 2.0]))]
    xs = xs[: 1 if name in UNARY.split() else 2]
    y = function(*xs)
    y.grad = seed = numpy.array([1.0, -2.0, 0.5])
    y.backward()
    docstring = inspect.cleandoc(type(y.creator).__doc__ or "")
    inputs, (output,) = declared(docstring)
    known = {part.left.text: part.right for part in read(docstring)
             if isinstance(part, Formula) and part.left.kind == "gradient"}  # fmt: skip
    arrays = {key: x.data for key, x in zip(inputs, xs, strict=True)}
    arrays |= {output: y.data, f"d{output}": seed, "g": seed, "s": None, "t": None}
    for key, x in zip(inputs, xs, strict=True):
        assert numpy.allclose(evaluated(known[key], arrays), x.grad)
