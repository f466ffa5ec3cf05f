"""Formulas on pages of the site."""

from __future__ import annotations

import re

import pytest

markdown = pytest.importorskip("markdown", reason="the extra docs is not installed")
pytest.importorskip("latex2mathml", reason="the extra docs is not installed")

from tools import docs_math  # noqa: E402 - latex2mathml is an extra


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("The derivative of\n$e^{-x}$ is $-e^{-x}$:", ["<p>The derivative of", "is", ":</p>"]),
        ("- a list\n  $x$ of it", ["<ul>\n<li>a list", "of it</li>\n</ul>"]),
        ("$x$ begins a line", ["<p>", "begins a line</p>"]),
    ],
)
def test_a_formula_at_the_start_of_a_line_stays_in_its_paragraph(
    text: str, parts: list[str]
) -> None:
    made = markdown.markdown(docs_math.typeset(text), extensions=["md_in_html"])
    rest = re.split(r"<span><math.*?</math></span>", made, flags=re.DOTALL)
    assert [part.strip() for part in rest] == parts


def test_a_formula_alone_is_a_block() -> None:
    made = markdown.markdown(docs_math.typeset("so\n\n$$x$$\n\nend"), extensions=["md_in_html"])
    assert '<div class="math"><math' in made and "<span>" not in made
