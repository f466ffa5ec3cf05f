"""The formulas in a docstring, read as trees.

Requirement: a function's docstring is the only place of the formula. A film sets the formula as
mathematics, and puts arrays in the places of the letters. An equation outside of the grammar
remains text.

The grammar: names, numbers, ``+ - * / ^ @``, products by juxtaposition, calls, ``|x|``,
subscripts, ``a where x > 0, else b``, and ``sum of a over the axis``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PREFIXES = _words(
    "sin cos tan arcsin arccos arctan sinh cosh tanh arsinh arcosh artanh ln exp sqrt mean det "
    "sign"
)
"""Functions with an argument without parentheses."""

CONSTANTS = _words(
    "pi alpha scale slope eps delta low high smoothing classes label gx gy gw kh kw index indices"
)
"""Names of several letters without a declaration."""

ENDS = _words(
    "with without over along for in on off at everywhere repeated cast reversed moved added to "
    "between"
)
"""Words of prose after a formula."""

_NAME = r"[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*"
_TOKEN = re.compile(
    rf"(?P<space>\s+)|(?P<gradient>dL/d{_NAME})|(?P<name>{_NAME})|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<sign>\.\.\.|<=|>=|==|!=|_\(|[-+*/^@()\[\]|,;:.<>=])|(?P<other>.)",
    re.DOTALL,
)
_LEFT = re.compile(rf"(?:dL/d)?{_NAME}(?:\^T|_\([^()]*\)|\[[^\]]*\])? = ")
_NAMES = re.compile(
    rf"(?:^({_NAME}(?:, {_NAME})+)|(?<![\w/+=-])({_NAME}(?:\^T)?(?: and {_NAME})?)):\s",
    re.MULTILINE,
)
_COMPARED = frozenset(["<", "<=", ">", ">=", "==", "!=", "="])


@dataclass(frozen=True)
class Term:
    """A node of a formula's tree.

    Attributes:
        kind: ``"name"``, ``"gradient"``, ``"number"``, ``"words"``, ``"sum"``, ``"minus"``,
            ``"product"``, ``"quotient"``, ``"power"``, ``"index"``, ``"subscript"``, ``"call"``,
            ``"group"``, ``"size"``, ``"compare"``, ``"cases"`` or ``"total"``.
        text: the name, the number, the sign or the words.
        parts: the terms below.
    """

    kind: str
    text: str = ""
    parts: tuple[Term, ...] = ()


@dataclass(frozen=True)
class Formula:
    """An equation of a docstring: ``left = right``, and the words behind."""

    left: Term
    right: Term
    source: str
    note: str


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    spaced: bool


class _NoFormulaError(Exception):
    """The text is outside of the grammar."""


# --- reading -------------------------------------------------------------------------------------


def read(docstring: str) -> list[str | Formula]:
    """The docstring in parts: texts, and the formulas between them."""
    names = _declared(docstring)
    parts: list[str | Formula] = []
    position = 0
    for match in _LEFT.finditer(docstring):
        start = match.start()
        if start < position or not _can_begin(docstring[:start]):
            continue
        try:
            formula, end = _formula(docstring, start, names)
        except _NoFormulaError:
            continue
        if start > position:
            parts.append(docstring[position:start])
        parts.append(formula)
        position = end
    if position < len(docstring):
        parts.append(docstring[position:])
    return parts


def _can_begin(before: str) -> bool:
    """True if an equation can begin behind the text."""
    if re.search(r"(^|\n| {3}|[.;:] |\b[Ww]ith |\band )$", before):
        return True
    return before.endswith(", ") and "=" in re.split(r"\.\s|\n", before)[-1]


def declared(docstring: str) -> tuple[list[str], list[str]]:
    """The names of the inputs and of the outputs: ``x: (s), y: (t) -> z: (s)``."""
    match = re.search(r"->\s", docstring)
    if match is None:
        return [], []
    before = docstring[: match.start()]
    before = before[before.rfind("\n\n") + 1 :]
    after = re.split(r"\.\s|\.$| {3}|;", docstring[match.end() :], maxsplit=1)[0]
    return _split_names(before), _split_names(after)


def _split_names(text: str) -> list[str]:
    found = [
        name for match in _NAMES.finditer(text) for name in re.split(", | and ", match[0][:-2])
    ]
    return list(dict.fromkeys(found))


def _declared(docstring: str) -> frozenset[str]:
    found = {name.removesuffix("^T") for part in declared(docstring) for name in part}
    found.update(re.findall(rf"dL/d({_NAME})", docstring))
    found.update(re.findall(rf"(?:^|With |with |, |; )({_NAME}) = ", docstring, re.MULTILINE))
    return frozenset(found | CONSTANTS)


def _formula(docstring: str, start: int, names: frozenset[str]) -> tuple[Formula, int]:
    reader = _Reader(docstring, start, names)
    left = reader.factor()
    reader.take("=")
    right = reader.value()
    end = reader.end()
    source = docstring[start:end].strip()
    note = re.split(r"\.\s|\.$|;|:|\n\n| {3}|\n(?=\S+ = )", docstring[end:], maxsplit=1)[0]
    note = re.split(rf",? (?:and|[Ww]ith) (?={_LEFT.pattern})", note, maxsplit=1)[0]
    note = "" if _LEFT.search(note) else " ".join(note.split())
    return Formula(left, right, source, note.strip(" ,")), start + len(source)


class _Reader:
    """Reads an expression from left to right, by the rank of its signs."""

    def __init__(self, text: str, start: int, names: frozenset[str]) -> None:
        self.text, self.names, self.at, self.sizes = text, names, 0, 0
        self.tokens: list[_Token] = []
        spaced = False
        for match in _TOKEN.finditer(text, start):
            kind = str(match.lastgroup)
            if kind == "space":
                space, rest = match[0], text[match.end() :]
                lines = space.count("\n")
                is_new = lines == 1 and re.match(rf"\S+ = |{_NAME}: |[A-Z][a-z]+ ", rest)
                if lines > 1 or is_new or (not lines and len(space) > 2):
                    break
                spaced = True
                continue
            self.tokens.append(_Token(kind, match[0], match.start(), spaced))
            spaced = False
        self.last = match.start() if kind == "space" else len(text)
        self.tokens += [_Token("end", "", self.last, True)] * 3

    @property
    def now(self) -> _Token:
        return self.tokens[self.at]

    def next_text(self) -> str:
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)].text

    def take(self, text: str) -> None:
        """Step over an expected token."""
        if self.now.text != text:
            raise _NoFormulaError
        self.at += 1

    def end(self) -> int:
        """The position behind the expression, which must end where a sentence can go on."""
        token = self.now
        if token.kind == "end":
            return token.start
        if token.text in (",", ";", ":", ".", "(") or token.text in ENDS:
            return token.start
        if token.text == "and" and _LEFT.match(self.text[token.start + 4 :]):
            return token.start
        raise _NoFormulaError

    def value(self) -> Term:
        """A sum, a comparison, or cases: ``a where x > 0, else b``."""
        first = self.sum()
        if self.now.text in _COMPARED:
            return self.compared(first)
        if self.now.text != "where":
            return first
        parts = [first]
        while self.now.text == "where":
            self.take("where")
            condition = self.sum()
            if self.now.text in _COMPARED:
                condition = self.compared(condition)
            parts.append(condition)
            if self.now.text == ",":
                self.take(",")
            if self.now.text == "else":
                self.take("else")
                return Term("cases", "", (*parts, self.sum()))
            parts.append(self.sum())
        raise _NoFormulaError

    def compared(self, first: Term) -> Term:
        parts = [first]
        signs = []
        while self.now.text in _COMPARED:
            signs.append(self.now.text)
            self.at += 1
            parts.append(self.sum())
        return Term("compare", " ".join(signs), tuple(parts))

    def sum(self) -> Term:
        parts = []
        sign = self.now.text if self.now.text in ("+", "-") else ""
        self.at += bool(sign)
        parts.append(Term("minus", sign, (self.product(),)) if sign else self.product())
        while self.now.text in ("+", "-") and self.now.spaced:
            sign = self.now.text
            self.at += 1
            parts.append(Term("minus", sign, (self.product(),)))
        if len(parts) == 1 and self.now.text in ("+", "-") and self.next_text() != "th":
            sign = self.now.text  # i+1, without spaces
            self.at += 1
            parts.append(Term("minus", sign, (self.product(),)))
        return parts[0] if len(parts) == 1 else Term("sum", "", tuple(parts))

    def product(self) -> Term:
        found = self.factor()
        while True:
            sign = self.now.text
            if sign in ("*", "@"):
                self.at += 1
                found = Term("product", sign, (found, self.factor(or_words=True)))
            elif sign == "/":
                self.at += 1
                found = Term("quotient", "", (found, self.factor(or_words=True)))
            elif self.can_follow():
                here = self.at
                try:
                    found = Term("product", " ", (found, self.factor()))
                except _NoFormulaError:
                    self.at = here
                    return found
            else:
                return found

    def can_follow(self) -> bool:
        """True if the next token can be a factor without a sign of multiplication."""
        token = self.now
        if not token.spaced and token.text != "(":
            return False
        if token.kind == "name":
            return self.is_known() or token.text in PREFIXES
        return token.kind == "gradient" or token.text == "("

    def is_known(self) -> bool:
        text = self.now.text
        base = text.partition("_")[0]
        if self.next_text() == "(" and not self.tokens[self.at + 1].spaced:
            return True
        return text in self.names or len(base) == 1 or (base in self.names and base != text)

    def factor(self, or_words: bool = False) -> Term:
        here = self.at
        try:
            found = self.primary()
        except _NoFormulaError:
            if not or_words or self.tokens[here].text != "(":
                raise
            self.at = here
            found = self.words_in_parentheses()
        while True:
            if self.now.text == "^":
                self.at += 1
                found = Term("power", "", (found, self.exponent()))
            elif self.now.text == "_(":
                self.at += 1
                found = Term("subscript", "", (found, self.sum()))
                self.take(")")
            elif self.now.text == "[" and not self.now.spaced:
                self.at += 1
                found = Term("index", "", (found, *self.arguments("]")))
            else:
                return found

    def exponent(self) -> Term:
        if self.now.text in ("-", "+"):
            sign = self.now.text
            self.at += 1
            if self.now.kind == "name" or self.now.kind == "number" or self.now.text in "(|":
                return Term("minus", sign, (self.primary(),))
            return Term("words", sign)
        return self.primary()

    def primary(self) -> Term:
        token = self.now
        if token.kind == "number" or token.text == "...":
            self.at += 1
            return Term("number", token.text)
        if token.kind == "gradient":
            self.at += 1
            name = token.text.removeprefix("dL/d")
            if self.now.text == "^" and self.next_text() == "T" and f"{name}^T:" in self.text:
                self.at += 2
                name += "^T"
            return Term("gradient", name)
        if token.text == "(":
            self.at += 1
            inner = self.value()
            self.take(")")
            return Term("group", "", (inner,))
        if token.text == "|" and not self.sizes:
            self.at += 1
            self.sizes += 1
            inner = self.sum()
            self.take("|")
            self.sizes -= 1
            return Term("size", "", (inner,))
        if token.kind != "name":
            raise _NoFormulaError
        return self.named(token)

    def named(self, token: _Token) -> Term:
        if token.text in ("sum", "the"):
            return self.total()
        self.at += 1
        if self.now.text == "(" and not self.now.spaced:
            self.at += 1
            return Term("call", token.text, self.arguments(")"))
        if token.text in PREFIXES:
            return Term("call", token.text, (self.factor(),))
        self.at -= 1
        if not self.is_known():
            raise _NoFormulaError
        self.at += 1
        return Term("name", token.text)

    def total(self) -> Term:
        """``sum of a over the axis``, or other words: ``the largest element of x``."""
        words: list[str] = []
        while self.now.text != "of":
            if self.now.kind == "end" or self.now.text in "().;:" or len(words) > 8:
                raise _NoFormulaError
            words.append(self.now.text)
            self.at += 1
        self.take("of")
        if self.now.text == "the" and words[-1] == "sum" and self.next_text() == "rows":
            words += ["of", "the", "rows"]
            self.at += 2
            self.take("of")
        inner = self.product()
        over: list[str] = []
        while self.now.kind == "name" and (over or self.now.text == "over"):
            if len(over) > 3 or (over and self.now.text in ENDS):
                break
            over.append(self.now.text)
            self.at += 1
        text = " ".join(words).replace(" ,", ",").replace(" - ", "-")
        return Term("total", text, (inner, Term("words", " ".join(over))))

    def arguments(self, close: str) -> tuple[Term, ...]:
        found = []
        while self.now.text != close:
            here = self.at
            try:
                found.append(self.value())
                if self.now.text not in (",", close):
                    raise _NoFormulaError
            except _NoFormulaError:
                if not found:
                    raise
                self.at = here
                found.append(self.words_until(close))
            if self.now.text == ",":
                self.at += 1
        self.take(close)
        return tuple(found)

    def words_until(self, close: str) -> Term:
        words = []
        while self.now.text not in (close, ","):
            if self.now.kind == "end":
                raise _NoFormulaError
            words.append(self.now.text)
            self.at += 1
        return Term("words", " ".join(words))

    def words_in_parentheses(self) -> Term:
        start, depth = self.now.start, 0
        while True:
            if self.now.kind == "end":
                raise _NoFormulaError
            depth += (self.now.text in ("(", "_(")) - (self.now.text == ")")
            self.at += 1
            if not depth:
                break
        text = self.text[start + 1 : self.tokens[self.at - 1].start]
        return Term("group", "", (Term("words", " ".join(text.split())),))
