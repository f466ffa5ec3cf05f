"""The class of a function for a film's page: formulas as MathML and as tokens, and the source.

Requirement: the page sets formulas without a library, and without a request. The page also shows
formulas in a line, with arrays in the places of the letters: a line is a list of tokens.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any
from xml.etree import ElementTree

from tinynode.core.function_node import FunctionNode
from tinynode.show.films.sources import last_part
from tinynode.show.page.formulas import Formula, Term, declared, read
from tinynode.show.page.lessons import lesson

# --- MathML --------------------------------------------------------------------------------------

_SIGNS = {"*": "·", "-": "\u2212", "<=": "≤", ">=": "≥", "==": "=", "!=": "≠", "@": "@"}
_LETTERS = {"pi": "π", "alpha": "\u03b1", "eps": "ε", "delta": "δ"}


def mathml(formula: Formula) -> str:
    """The formula as a ``math`` element."""
    math = _element("math", xmlns="http://www.w3.org/1998/Math/MathML")
    math.append(_row(_set(formula.left), _sign("="), _set(formula.right)))
    return ElementTree.tostring(math, encoding="unicode")


def _element(tag: str, *children: ElementTree.Element, **attributes: str) -> ElementTree.Element:
    element = ElementTree.Element(tag, attributes)
    element.extend(children)
    return element


def _leaf(tag: str, text: str, **attributes: str) -> ElementTree.Element:
    element = _element(tag, **attributes)
    element.text = text
    return element


def _sign(text: str) -> ElementTree.Element:
    return _leaf("mo", _SIGNS.get(text, text))


def _row(*children: ElementTree.Element) -> ElementTree.Element:
    return _element("mrow", *children)


def _name(text: str) -> ElementTree.Element:
    base, _, below = text.partition("_")
    if below and len(base) == 1:
        return _element("msub", _leaf("mi", base), _leaf("mi", below))
    return _leaf("mi", _LETTERS.get(text, text))


def _fenced(opening: str, closing: str, *inner: ElementTree.Element) -> ElementTree.Element:
    return _row(_sign(opening), *inner, _sign(closing))


def _listed(parts: tuple[Term, ...]) -> list[ElementTree.Element]:
    found = []
    for i, part in enumerate(parts):
        found += [_sign(","), _set(part)] if i else [_set(part)]
    return found


def _set(term: Term) -> ElementTree.Element:
    """A term as MathML."""
    kind, text, parts = term.kind, term.text, term.parts
    if kind == "number":
        return _leaf("mn", text)
    if kind == "name":
        return _name(text)
    if kind == "words":
        return _leaf("mtext", text)
    if kind == "gradient":
        top = _row(_leaf("mi", "∂"), _leaf("mi", "L"))
        below, transposed, _ = text.partition("^T")
        name = _element("msup", _name(below), _leaf("mi", "T")) if transposed else _name(below)
        return _element("mfrac", top, _row(_leaf("mi", "∂"), name))
    if kind in ("sum", "minus"):
        return _row(*([_sign(text)] if kind == "minus" else []), *map(_set, parts))
    if kind == "product":
        between = [] if text == "@" else [_sign("*" if text == "*" else "\u2062")]
        return _row(_set(parts[0]), *between, _set(parts[1]))
    if kind == "quotient":
        if any(token[0] == "gradient" for token in tokens(parts[0])):
            return _row(_set(parts[0]), _sign("/"), _set(parts[1]))
        return _element("mfrac", *(_set(_bare(part)) for part in parts))
    if kind == "power":
        return _element("msup", _set(parts[0]), _set(_bare(parts[1])))
    return _set_other(term)


def _set_other(term: Term) -> ElementTree.Element:
    kind, text, parts = term.kind, term.text, term.parts
    if kind == "subscript":
        return _element("msub", _set(parts[0]), _set(parts[1]))
    if kind == "index":
        return _row(_set(parts[0]), _fenced("[", "]", *_listed(parts[1:])))
    if kind == "group":
        return _fenced("(", ")", _set(parts[0]))
    if kind == "size":
        return _fenced("|", "|", _set(parts[0]))
    if kind == "call" and text == "sqrt":
        return _element("msqrt", _set(_bare(parts[0])))
    if kind == "call":
        inner = parts[0] if len(parts) == 1 and parts[0].kind in ("group", "size") else None
        argument = _set(inner) if inner else _fenced("(", ")", *_listed(parts))
        return _row(_leaf("mi", text), _sign("\u2061"), argument)
    if kind == "compare":
        found = [_set(parts[0])]
        for sign, part in zip(text.split(), parts[1:], strict=True):
            found += [_sign(sign), _set(part)]
        return _row(*found)
    if kind == "total":
        words = "" if text in ("sum", "the sum") else text
        head = _leaf("mtext", f"{words} of\u00a0") if words else _leaf("mo", "∑")
        over = parts[1].text
        tail = [_leaf("mtext", f"\u00a0{over}")] if over else []
        return _row(head, _set(parts[0]), *tail)
    rows = []
    for value, condition in zip(parts[::2], [*parts[1::2], None], strict=False):
        when = (
            _row(_leaf("mtext", "where\u00a0"), _set(condition))
            if condition
            else _leaf("mtext", "else")
        )
        rows.append(_element("mtr", _element("mtd", _set(value)), _element("mtd", when)))
    return _row(_sign("{"), _element("mtable", *rows, columnalign="left left"))


def _bare(term: Term) -> Term:
    return term.parts[0] if term.kind == "group" else term


# --- tokens --------------------------------------------------------------------------------------

Token = list[str]
"""``["", sign]``, ``["name", x]``, ``["gradient", z]``, with "T" behind a transposed array."""


def tokens(term: Term) -> list[Token]:
    """The term in a line, letters and signs alternating."""
    kind, text, parts = term.kind, term.text, term.parts
    if kind in ("name", "gradient"):
        return [[kind, text]]
    if kind in ("number", "words"):
        return [["", text]]
    if kind == "minus":
        return [["", _SIGNS.get(text, text)], *tokens(parts[0])]
    if kind == "product":
        return [*tokens(parts[0]), ["", _SIGNS.get(text, "·")], *tokens(parts[1])]
    if kind == "quotient":
        return [*tokens(parts[0]), ["", "/"], *tokens(parts[1])]
    if kind == "power":
        base, exponent = parts
        if base == Term("name", "e"):
            return [["", "exp("], *tokens(_bare(exponent)), ["", ")"]]
        if exponent == Term("name", "T") and base.kind in ("name", "gradient"):
            return [[base.kind, base.text, "T"]]
        return [*tokens(base), ["", "^"], *tokens(exponent)]
    if kind in ("subscript", "index"):
        name, *inner = ("".join(token[1] for token in tokens(part)) for part in parts)
        name = f"∂L/∂{name}" if parts[0].kind == "gradient" else name
        listed = ", ".join(inner)
        return [["", f"{name}[{listed}]" if kind == "index" else f"{name}_({listed})"]]
    if kind == "compare":
        found = tokens(parts[0])
        for sign, part in zip(text.split(), parts[1:], strict=True):
            found += [["", _SIGNS.get(sign, sign)], *tokens(part)]
        return found
    if kind == "total":
        over = [["", parts[1].text]] if parts[1].text else []
        return [["", f"{text} of"], *tokens(parts[0]), *over]
    if kind == "cases":
        found = []
        for i, part in enumerate(parts):
            word = "" if not i else "where" if i % 2 else "else" if part is parts[-1] else ","
            found += [["", word]] if word else []
            found += tokens(part)
        return found
    return _in_signs(term)


def _in_signs(term: Term) -> list[Token]:
    """A sum, or a term in parentheses."""
    if term.kind == "sum":
        return [token for part in term.parts for token in tokens(part)]
    if term.kind == "call" and len(term.parts) == 1 and term.parts[0].kind in ("group", "size"):
        return [["", term.text], *tokens(term.parts[0])]
    opening, closing = ("|", "|") if term.kind == "size" else (f"{term.text}(", ")")
    found: list[Token] = []
    for part in term.parts:
        found += [["", ","], *tokens(part)] if found else tokens(part)
    return [["", opening], *found, ["", closing]]


def describe(docstring: str) -> dict[str, Any]:
    """The docstring for a film's page, in the types of JSON.

    "parts" has the texts, and the MathML of formulas, in turns. "formulas" has tokens for each
    left side, with equal names replaced: after ``g = dL/dz``, the letter g is the gradient of z.
    """
    parts: list[list[str]] = []
    formulas: dict[str, dict[str, Any]] = {}
    same: dict[str, Term] = {}
    inputs, outputs = declared(docstring)
    for part in read(docstring):
        if isinstance(part, str):
            parts.append(["text", part])
            continue
        parts.append(["math", mathml(part)])
        if part.left.kind == "name" and part.right.kind == "gradient":
            same[part.left.text] = part.right
        key = "".join(token[1] for token in tokens(part.left))
        key = f"dL/d{key}" if part.left.kind == "gradient" else key
        if part.left.kind == "gradient" or key in outputs:
            formulas.setdefault(key, _chain(part, same))
    return {"parts": parts, "inputs": inputs, "outputs": outputs, "formulas": formulas}


def _chain(formula: Formula, same: dict[str, Term]) -> dict[str, Any]:
    """The right side in tokens; "summed" if an outer ``sum_to`` goes around them."""
    inner = formula.right.parts[0] if formula.right.kind == "minus" else formula.right
    sign = formula.right.text.replace("+", "")
    sign = sign if formula.right.kind == "minus" else ""
    summed = inner.kind == "call" and inner.text == "sum_to"
    core = inner.parts[0] if summed else inner
    found = tokens(core)
    if sign:
        is_long = core.kind in ("sum", "cases")
        found = [
            ["", "\u2212(" if is_long else "\u2212"],
            *found,
            *([["", ")"]] if is_long else []),
        ]
    for token in found:
        if token[0] == "name" and token[1] in same:
            token[:2] = ["gradient", same[token[1]].text]
    return {
        "tokens": found,
        "summed": summed,
        "note": formula.note,
        "matrix": not sign and _is_matrix_product(core),
    }


def _is_matrix_product(term: Term) -> bool:
    """True for ``x @ y``, and for ``x W^T + b``: matrices have capitals, or are transposed."""
    if term.kind == "sum":
        first, *rest = term.parts
        return len(rest) == 1 and rest[0].text == "+" and _is_matrix_product(first)
    if term.kind != "product" or term.text == "*":
        return False
    factors = [token for part in term.parts for token in tokens(part)]
    if len(factors) != 2 or not all(factor[0] for factor in factors):
        return False
    if term.text == "@":
        return True
    return any(len(factor) > 2 or factor[1][:1].isupper() for factor in factors)


# --- classes -------------------------------------------------------------------------------------


def describe_class(cls: type, update: type | None = None) -> dict[str, Any]:
    """The class of a function or an optimizer: docstring, and the source of its methods.

    Args:
        cls: the class.
        update: for an optimizer, the class with the formula of the update.
    """
    line = 0
    text = _without_example(inspect.cleandoc(cls.__doc__ or ""))
    try:
        line = inspect.getsourcelines(cls)[1]
        file = last_part(inspect.getsourcefile(cls) or "")
    except (OSError, TypeError):
        file = ""
    sources = {
        "forward": _source(cls, ("forward", "forward_cpu", "forward_gpu")),
        "backward": _source(cls, ("backward_accumulate", "backward", "backward_cpu")),
        "update": _update_source(cls, update),
    }
    return {
        "name": f"{cls.__module__}.{cls.__qualname__}",
        "formula": text,
        "chain": describe(text),
        **sources,
        "lessons": {key: lesson(source) for key, source in sources.items()},
        "file": file,
        "line": line,
    }


def _update_source(cls: type, update: type | None) -> str:
    """The source of an optimizer's formula: of the class, or of the function of the update."""
    for name in ("update_one", "step"):
        method = getattr(cls, name, None)
        if method is not None and method.__module__ != "tinynode.nn.optimizers":
            return _source(cls, (name,))
    return "" if update is None else _source(update, ("step",))


def _without_example(text: str) -> str:
    """A docstring without examples, and without the sections behind the formula."""
    text = re.split(r"^(?:Args|Attributes|Raises|Returns|Source):", text, flags=re.MULTILINE)[0]
    paragraphs = text.rstrip().split("\n\n")
    return "\n\n".join(one for one in paragraphs if not one.lstrip().startswith(">>>"))


def _source(cls: type, names: tuple[str, ...]) -> str:
    """The source of the first method defined by the class, not by a base class of tinynode."""
    for name in names:
        method = getattr(cls, name, None)
        owner = getattr(method, "__module__", "")
        if method is None or method is getattr(FunctionNode, name, None):
            continue
        if owner == "tinynode.interop.old_style":  # inherited by old-style functions
            continue
        try:
            return textwrap.dedent(inspect.getsource(method)).rstrip()
        except (OSError, TypeError):
            return ""
    return ""
