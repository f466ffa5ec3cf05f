r"""Formulas in texts of the course: places, and a form for terminals.

Requirement: a text has a single form for all readers. Formulas stand between dollar signs, as in
Jupyter: ``$x^2$`` in a line, and ``$$...$$`` by itself. The site and notebooks typeset them. A
terminal shows the nearest text in Unicode: ``$\frac{\partial L}{\partial x_i}$`` is ``∂L/∂xᵢ``.
Code stays as it is, and so do dollar signs beside spaces and digits: ``$5 and $6`` is no formula.
``\$`` is a dollar sign.

Libraries print some formulas of the course wrongly: the README of this room has the counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

_FENCE = re.compile(r"^( *)(`{3,}|~{3,})[^\n]*\n.*?^\1\2[`~]* *$", re.MULTILINE | re.DOTALL)
_PIECE = re.compile(
    r"(?P<code>(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`))"
    r"|<!--.*?-->"
    r"|<[a-zA-Z/](?:\"[^\"]*\"|'[^']*'|[^>\"'])*>"
    r"|(?P<dollar>\\\$)"
    r"|\$\$(?P<block>(?:(?!\n[ \t]*\n)[^$`])+)\$\$"
    r"|(?<![\w$])\$(?P<inline>(?=[^\s$])(?:(?!\n[ \t]*\n)(?:\\\$|[^$`]))*?[^\s$`\\])\$(?![\d$])",
    re.DOTALL,
)
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[{}^_&]|\s+|[^\\{}^_&\s]", re.DOTALL)

_LETTERS = """
alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ kappa κ lambda λ mu μ
nu ν xi ξ pi π rho ρ sigma σ tau τ phi φ varphi φ chi χ psi ψ omega ω
Gamma Γ Delta Δ Theta Θ Lambda Λ Sigma Σ Phi Φ Psi Ψ Omega Ω
partial ∂ nabla ∇ infty ∞ ell ℓ sum Σ prod Π int ∫ top ᵀ ldots … dots … cdots ⋯ colon :
lVert ‖ rVert ‖ lvert | rvert | langle ⟨ rangle ⟩ forall ∀ exists ∃
"""
_RELATIONS = """
cdot · times × odot ⊙ circ ∘ pm ± le ≤ leq ≤ ge ≥ geq ≥ ne ≠ neq ≠ approx ≈ equiv ≡ sim ~
propto ∝ in ∈ to → rightarrow → leftarrow ← gets ← mapsto ↦ mid | Rightarrow ⇒ ll ≪ gg ≫
"""


def _pairs(table: str) -> dict[str, str]:
    words = table.split()
    return dict(zip(words[::2], words[1::2], strict=True))


_SIGNS = _pairs(_LETTERS) | {name: f" {sign} " for name, sign in _pairs(_RELATIONS).items()}
_WIDE = "\u2003"
"""Stands for two spaces that stay: between two formulas."""
_SIGNS |= {"quad": _WIDE, "qquad": 2 * _WIDE}
"""What a command becomes; other commands become their name: ``\\log`` is ``log``."""

_NOTHING = {"left", "right", "displaystyle", "limits", "big", "Big", "bigl", "bigr", "nolimits"}
_CONTENT = {
    "text",
    "mathrm",
    "mathbf",
    "mathit",
    "mathcal",
    "mathsf",
    "boldsymbol",
    "operatorname",
}
_CONTENT |= {"texttt", "mathtt", "mathbb", "textbf", "textit"}
_ACCENTS = {"hat": "\u0302", "bar": "\u0304", "tilde": "\u0303", "vec": "\u20d7", "dot": "\u0307"}
_SPACED = {"=": " = ", "+": " + ", "<": " < ", ">": " > ", ",": ", "}

_RAISED = dict(
    zip(
        "0123456789+-=()abcdefghijklmnoprstuvwxyzTᵀL",
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᵀᵀᴸ",
        strict=True,
    )
)
_LOWERED = dict(
    zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True)
)


def replace_formulas(text: str, replace: Callable[[str, bool], str]) -> str:
    """A Markdown text with each formula replaced.

    Args:
        replace: Called with the TeX of a formula, and True for a formula by itself (``$$``).
    """

    def one(found: re.Match[str]) -> str:
        if found["block"]:
            return replace(found["block"].strip(), True)
        if found["inline"]:
            return replace(found["inline"], False)
        return "$" if found["dollar"] else found[0]

    if "$" not in text:
        return text
    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_PIECE.sub(one, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _PIECE.sub(one, text[end:])])


def plain(text: str) -> str:
    """A Markdown text with formulas as Unicode, for a terminal."""
    return replace_formulas(text, _shown)


def _shown(tex: str, alone: bool) -> str:
    lines = unicode_of(tex)
    return "\n".join(f"    {line}" for line in lines.splitlines()) if alone else lines


def unicode_of(tex: str) -> str:
    """A formula as text: signs, raised and lowered digits, ``a/b`` for a fraction."""
    made = unicodedata.normalize("NFC", _Reader(tex).read_all())
    made = re.sub(r"(?<=[(\[]) +| +(?=[)\],])", "", made)
    made = re.sub(rf" *({_WIDE}+) *", r"\1", re.sub(" {2,}", " ", made))
    lines = [line.strip().replace(_WIDE, "  ") for line in made.split("\n")]
    return "\n".join(line for line in lines if line)


class _Reader:
    """Reads the tokens of a formula from left to right."""

    def __init__(self, tex: str) -> None:
        self._tokens: list[str] = _TOKEN.findall(tex)
        self._place = 0

    def read_all(self) -> str:
        """The whole formula."""
        return self._sequence("")

    def _sequence(self, closing: str) -> str:
        """The text up to a closing token, without the token."""
        parts: list[str] = []
        while self._place < len(self._tokens):
            token = self._next()
            if token == closing:
                break
            parts.append(self._item(token, parts))
        return "".join(parts)

    def _next(self) -> str:
        self._place += 1
        return self._tokens[self._place - 1]

    def _argument(self) -> str:
        """The group, command or sign that follows."""
        while self._place < len(self._tokens):
            token = self._next()
            if not token.isspace():
                return self._item(token, []).strip()
        return ""

    def _item(self, token: str, before: list[str]) -> str:
        """The text of a token and of its arguments."""
        if token == "{":
            return self._sequence("}")
        if token == "^":
            return _script(self._argument(), _RAISED, "^")
        if token == "_":
            return _script(self._argument(), _LOWERED, "_")
        if token == "-":
            return " - " if _ends_with_operand(before) else "-"
        if token[0] == "\\":
            return self._command(token[1:])
        if token.isspace():
            return ""
        return {"&": " "}.get(token, _SPACED.get(token, token))

    def _command(self, name: str) -> str:
        if name in ("frac", "dfrac", "tfrac"):
            above = _grouped(self._argument())
            return f" {above}/{_grouped(self._argument())} "
        if name == "sqrt":
            return f"√{_grouped(self._argument())}"
        if name in _ACCENTS:
            return f"{self._argument()}{_ACCENTS[name]}"
        if name in _CONTENT:
            return self._words()
        if name in ("begin", "end"):
            self._argument()
            return ""
        return self._sign(name)

    def _sign(self, name: str) -> str:
        if name == "\\":
            return "\n"
        if name in ",;:! " or name in _NOTHING:
            return " " if name in ",;: " else ""
        if not name.isalpha():
            return name  # \{, \%, \_
        follows = "".join(self._tokens[self._place : self._place + 1])
        return _SIGNS.get(name, f" {name}" if follows in ("(", "_", "^") else f" {name} ")

    def _words(self) -> str:
        """The content of ``\\text{...}``, with its spaces."""
        start = self._place + 1
        if self._tokens[self._place : start] != ["{"]:
            return self._argument()
        end = self._tokens.index("}", start) if "}" in self._tokens[start:] else len(self._tokens)
        self._place = end + 1
        return "".join(self._tokens[start:end]).replace("\\", "")


def _ends_with_operand(before: list[str]) -> bool:
    """Whether a minus sign stands between two terms."""
    text = "".join(before)
    return bool(text) and not text.endswith((" ", "(", "[", "/", "\n"))


def _script(text: str, letters: dict[str, str], sign: str) -> str:
    """A raised or lowered text, or the sign of TeX where Unicode has no such letters."""
    short = text.replace(" ", "")
    if short and all(letter in letters for letter in short):
        return "".join(letters[letter] for letter in short)
    return f"{sign}{_grouped(text)}"


def _grouped(text: str) -> str:
    """The text in brackets if it has several terms or factors."""
    short = text.strip()
    single = re.fullmatch(r"[\w∂∇√.'\u0302-\u0307ⁱ-ₜᵃ-ᵪ⁰-⁹²³¹ᵀ]+|\([^()]*\)", short)
    return short if single else f"({short})"
