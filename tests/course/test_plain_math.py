"""Formulas between dollar signs: where they are, and their text in a terminal and on the site."""

from __future__ import annotations

import re

import pytest

from tinynode_course.plain_math import plain, replace_formulas, unicode_of


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"y = x^2", "y = x²"),
        (r"\frac{\partial L}{\partial x_i}", "∂L/∂xᵢ"),
        (r"\frac{1}{1 + e^{-x}}", "1/(1 + e⁻ˣ)"),
        (r"\sum_i \frac{\partial L}{\partial y_i} W_{ij}", "Σᵢ ∂L/∂yᵢ Wᵢⱼ"),
        (r"\sqrt{x^2 + y^2}", "√(x² + y²)"),
        (r"\log(1 + e^x)", "log(1 + eˣ)"),
        (r"\lim_{h \to 0} f(x+h)", "lim_(h → 0)f(x + h)"),
        (r"L = -\frac{1}{n}\sum_{i=1}^{n} \log p_{i}", "L = - 1/n Σᵢ₌₁ⁿ log pᵢ"),
        (r"x - y", "x - y"),
        (r"(-x, 10^{-6})", "(-x, 10⁻⁶)"),
        (r"\theta \leftarrow \theta - \eta\,g", "θ ← θ - η g"),
        (r"\hat{y} = \mathbf{W}^\top x", "ŷ = Wᵀx"),
        (r"\text{softmax of } x", "softmax of x"),
        (r"\left( a \cdot b \right) \le \{1\}", "(a · b) ≤ {1}"),
        (r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}", "a b\nc d"),
        (r"x^{(1)}_{q}", "x⁽¹⁾_q"),
        (r"f'(x", "f'(x"),
        (r"a = g \quad b = h \qquad c = k", "a = g  b = h    c = k"),
        ("x_1 = \\frac{1}{2} \\qquad\n\\text{and} \\qquad y", "x₁ = 1/2    and    y"),
        (r"\frac{1}", "1/()"),
        ("}{", "}"),
    ],
)
def test_a_formula_as_text(tex: str, text: str) -> None:
    assert unicode_of(tex) == text


TEXT = r"""Let $x$ be $x^2$,
cost $5 or $6; `$x$` and ``a ` $y$``, \$z\$, <a href="$q$">, the $n$-th, a$b$, $ x $.

```sh
echo $HOME $x$
```

$$
y = \frac{a}{b}
$$
"""


def test_formulas_are_found_and_code_stays() -> None:
    found: list[tuple[str, bool]] = []

    def note(tex: str, alone: bool) -> str:
        found.append((tex, alone))
        return "#"

    made = replace_formulas(TEXT, note)
    assert found == [("x", False), ("x^2", False), ("n", False), (r"y = \frac{a}{b}", True)]
    expected = re.sub(r"\$\$.*\$\$", "#", TEXT, flags=re.DOTALL).replace(r"\$z\$", "$z$")
    expected = expected.replace("$x^2$", "#").replace("Let $x$", "Let #").replace("$n$-", "#-")
    assert made == expected
    assert replace_formulas("no formula", note) == "no formula"


def test_a_text_for_a_terminal() -> None:
    assert plain("of $x_1$:\n\n$$\ny = \\frac{a}{b}\n$$\n") == "of x₁:\n\n    y = a/b\n"


def test_the_site_has_mathml_that_markdown_does_not_touch() -> None:
    pytest.importorskip("latex2mathml", reason="the extra docs is not installed")
    markdown = pytest.importorskip("markdown")
    from tools.docs_math import typeset

    made = typeset("The products $a_i * b_i * c_i$ and $[x](y)$.\n\n$$\n\\sqrt{x}\n$$\n")
    page = markdown.markdown(made)
    assert page.count("<math") == 3 and 'display="block"' in page and "<msqrt>" in page
    assert "<em>" not in page and "<a " not in page and "$" not in page
    with pytest.raises(ValueError, match=r"the formula \$\\frac\{\$ cannot be typeset"):
        typeset(r"$\frac{$")
