"""Formulas of the site as MathML, made when the site is built.

Requirement: pages typeset mathematics without a script and without a request to another host.
Browsers draw MathML. ``tinynode_course.plain_math`` finds the formulas: the site, notebooks and
the terminal read the same text.
"""

from __future__ import annotations

from latex2mathml.converter import convert

from tinynode_course.plain_math import replace_formulas


def typeset(text: str) -> str:
    """Markdown with MathML in place of formulas; code stays.

    Raises:
        ValueError: A formula is no TeX, as far as ``latex2mathml`` reads TeX.
    """
    return replace_formulas(text, placed)


def placed(tex: str, alone: bool) -> str:
    """A formula for a page: alone in a block, or inside of a line.

    The ``span`` is for a formula at the start of a line: Markdown ends a paragraph at ``<math``.
    """
    made = mathml(tex, alone)
    return made if alone else f"<span>{made}</span>"


def mathml(tex: str, alone: bool) -> str:
    """A formula as MathML, without signs that Markdown would read."""
    try:
        made = convert(" ".join(tex.split()), display="block" if alone else "inline")
    except Exception as error:  # of several classes
        raise ValueError(f"the formula ${tex}$ cannot be typeset: {error!r}") from error
    for sign in "*_`\\[]":
        made = made.replace(sign, f"&#{ord(sign)};")
    return f'<div class="math">{made}</div>' if alone else made
