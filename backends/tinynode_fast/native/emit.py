"""Emit: a nest as a readable C function.

Requirement: a reader finds the operators, their formulas and the loops, and no macros. A row runs
in phases: a loop over the row's elements, then the results of the reductions of the loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy

from tinynode_fast.lowering import Call
from tinynode_fast.native.formulas import FUNCTIONS, Formula, Operation, Pick, Reduction
from tinynode_fast.native.nests import TYPES, Nest

LONG_ROW = 1024
"""Elements from which a sum adds up blocks in double."""
_LETTER = re.compile(r"\b[a-z]\b(?!\()")
_FLOATING = re.compile(r"(?<![\w.])(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)")
_FUNCTION = re.compile(r"\b([a-z][a-z0-9]*)\(")
_WORDS = """auto break case char const continue default do double else enum extern float for goto
if inline int long register restrict return short signed sizeof static struct switch typedef union
unsigned void volatile while p j k end start stop gamma isinf isfinite fabs sqrt floor ceil rint
trunc copysign y0 y1 yn j0 j1 jn signgam main exp_float
power_of_2"""
_RESERVED = FUNCTIONS.union(_WORDS.split())
_IDENTITY = {"sum": "0", "max": "-INFINITY", "largest": "-INFINITY"}
EXP = """
static inline float power_of_2(float n) {  // n is an integer from -126 to 127
    const float shifted = n + 12583039.0f;  // 1.5 * 2^23 + 127: the last bits are n + 127
    uint32_t bits;
    memcpy(&bits, &shifted, 4);
    bits <<= 23;  // to the place of the exponent
    float y;
    memcpy(&y, &bits, 4);
    return y;
}

// e^x = 2^n e^r, with n the integer nearest to x / ln 2, and a polynomial for e^r
static inline float exp_float(float x) {
    const float h = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;  // 0 and infinity beyond
    const float n = rintf(h * 1.44269504f);
    const float r = h - n * 0.693359375f + n * 2.12194440e-4f;  // ln 2 in two parts
    float p = 1.98756915e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    const float half = rintf(n * 0.5f);
    return p * power_of_2(half) * power_of_2(n - half);  // in two steps: 2^n may be subnormal
}
"""
"""e^x for float, with an error below one unit in the last place, and the same time for every x."""


def in_single(text: str) -> str:
    """A formula for float: the numbers and the functions of the C library get an ``f``."""
    text = _FLOATING.sub(r"\g<0>f", text)
    return _FUNCTION.sub(_single_name, text)


def _single_name(found: re.Match[str]) -> str:
    name = found[1]
    if name == "exp":
        return "exp_float("
    return f"{name}(" if name.startswith("is") else f"{name}f("


def source_of(nests: Sequence[Nest]) -> str:
    """The C source of nests; each nest gets the name of its function."""
    used: set[str] = set()
    parts = []
    for number, nest in enumerate(nests):
        nest.name = f"{'_'.join(dict.fromkeys(w.name for w in nest.what[:4]))}_{number}"
        writer = Writer(nest)
        parts.append(writer.with_single_pointers("\n".join(writer.function())))
        used |= writer.functions
    return "\n\n".join(["\n".join(_header(sorted(used))), *parts]) + "\n"


def _header(used: Sequence[str]) -> Iterator[str]:
    """The declarations of the functions with a vector form."""
    yield "#include <math.h>"
    yield "#include <stdint.h>"
    yield "#include <string.h>"
    for name in used:
        if name == "expf":
            yield EXP
            continue
        base = name.removesuffix("f") if name not in FUNCTIONS else name
        kind = "double" if base == name else "float"
        arguments = ", ".join([kind] * (2 if base in ("atan2", "hypot", "pow") else 1))
        yield "#pragma omp declare simd notinbranch"
        yield f"{kind} {name}({arguments});"


class Writer:
    """Writes the function of a nest.

    Attributes:
        functions: the called functions with a vector form.
    """

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.functions: set[str] = set()
        self.names: dict[str, str] = {}
        last = len(nest.dims) - 1
        self.loops = [f"i{k}" if k < last else "j" for k in range(last + 1)]
        self.times: dict[str, int] = {}
        self.ends: list[tuple[Call, Reduction]] = []
        for call, what in zip(nest.calls, nest.what, strict=True):
            time = max([self.times.get(name, 0) for name in call.reads], default=0)
            self.times[call.writes[0]] = time + (not isinstance(what, Formula))
            if isinstance(what, Reduction) and not self._is_of_row(call):
                self.ends.append((call, what))
        self.kept = {
            name for call in nest.calls for name in call.reads if self._is_read_later(name, call)
        }

    # --- names -----------------------------------------------------------------------------------

    def name(self, name: str) -> str:
        """The C name of a value of the net."""
        if name not in self.names:
            text = re.sub(r"\W", "_", name.replace("@number", "number"), flags=re.ASCII).strip("_")
            text = text if text[:1].isalpha() else f"v{text}"
            while text in _RESERVED or re.fullmatch(r"i\d+", text) or text in self.names.values():
                text += "_"
            self.names[name] = text
        return self.names[name]

    def type(self, name: str) -> str:
        """The C type of a value."""
        return TYPES[self.nest.forms[name][1]]

    def at(self, name: str) -> str:
        """The index of a value in the loops."""
        pairs = zip(self.nest.steps[name], self.loops, strict=True)
        terms = [loop if step == 1 else f"{loop} * {step}" for step, loop in pairs if step]
        return " + ".join(terms) or "0"

    def _depth(self, name: str) -> int:
        return self.nest.depth(name)

    def _is_element(self, name: str) -> bool:
        steps = self.nest.steps[name]
        return bool(steps) and steps[-1] != 0

    def _time(self, call: Call, what: Operation) -> int:
        """The phase of a call."""
        of_elements = isinstance(what, Reduction) and not self._is_of_rows(call)
        return self.times[call.writes[0]] - of_elements

    def _is_read_later(self, name: str, call: Call) -> bool:
        """True if a call reads an element made by an earlier phase."""
        what = self.nest.what[self.nest.calls.index(call)]
        made = name in self.nest.made and self._is_element(name)
        return made and self.times[name] < self._time(call, what)

    def _is_of_rows(self, call: Call) -> bool:
        """True for a reduction of values of the rows."""
        return self.nest.forms[call.reads[0]][0] != self.nest.shape

    def _is_of_row(self, call: Call) -> bool:
        """True if a reduction along the last dimension alone gives a value of the row."""
        return self.nest.is_row(call.writes[0]) and not self._is_of_rows(call)

    # --- the function ----------------------------------------------------------------------------

    def function(self) -> Iterator[str]:
        """The lines of the function."""
        nest = self.nest
        for call, what in zip(nest.calls, nest.what, strict=True):
            yield f"// {self._comment(call, what)}"
        yield f"int {nest.name}(void **p, long start, long stop) {{"
        for i, name in enumerate(nest.reads):
            yield f"    const {self.type(name)} *restrict {self.name(name)}_in = p[{i}];"
        for i, name in enumerate(nest.writes, len(nest.reads)):
            yield f"    {self.type(name)} *restrict {self.name(name)}_out = p[{i}];"
        yield from indented(self._prologue())
        outer = self.loops[:-1]
        for depth, loop in enumerate(outer):
            limits = ("start", "stop") if depth == 0 else ("0", str(nest.dims[depth]))
            head = f"for (long {loop} = {limits[0]}; {loop} < {limits[1]}; {loop}++) {{"
            yield "    " * (depth + 1) + head
        yield from indented(self._row(), len(outer) + 1)
        for depth in reversed(range(len(outer))):
            yield "    " * (depth + 1) + "}"
        for call, _ in self.ends:
            if self._is_total(call):
                name = self.name(call.writes[0])
                yield f"    *{name}_out = ({self.type(call.writes[0])}){name}_total;"
        yield "    return 0;"
        yield "}"

    def with_single_pointers(self, text: str) -> str:
        """The function with a single pointer, ``_io``, for a value read and overwritten.

        With ``restrict`` no other pointer may lead to the memory.
        """
        for write, read in self.nest.over.items():
            text = re.sub(rf" *const \w+ \*restrict {self.name(read)}_in = .*\n", "", text)
            pattern = rf"\b(?:{self.name(read)}_in|{self.name(write)}_out)\b"
            text = re.sub(pattern, f"{self.name(read)}_io", text)
        return text

    def _comment(self, call: Call, what: Operation) -> str:
        write = self.name(call.writes[0])
        reads = [self.name(name) for name in call.reads]
        if isinstance(what, Reduction):
            axes = ", ".join(map(str, what.axes))
            return f"{write} = the {what.name} of {reads[0]} over the axes ({axes})"
        if isinstance(what, Pick):
            return f"{write} = -{reads[0]}[{reads[1]}], 0 where {reads[1]} is {what.ignored}"
        names = dict(zip(what.letters, reads, strict=True))
        return f"{write} = {_substituted(what.text, names)}"

    def _is_total(self, call: Call) -> bool:
        """True for a reduction to a single number, through several loops."""
        return not any(self.nest.steps[call.writes[0]])

    def _prologue(self) -> Iterator[str]:
        """The single numbers, and the start of the reductions over all loops."""
        nest = self.nest
        for name in nest.reads:
            if self._depth(name) == 0:
                yield f"const {self.type(name)} {self.name(name)} = *{self.name(name)}_in;"
        for call, what in zip(nest.calls, nest.what, strict=True):
            if self._is_single(call, what):
                yield from self._formula(call, what)
        for call, what in self.ends:
            name, start = self.name(call.writes[0]), _IDENTITY[what.name]
            if self._is_total(call):
                yield f"double {name}_total = {start};"
            else:
                size = int(numpy.prod(nest.forms[call.writes[0]][0]))
                yield f"for (long k = 0; k < {size}; k++) {name}_out[k] = {start};"

    def _is_single(self, call: Call, what: Operation) -> bool:
        """True for a formula of single numbers known before the loops."""
        (write,) = call.writes
        return isinstance(what, Formula) and not self._depth(write) and not self.times[write]

    def _row(self) -> Iterator[str]:
        nest = self.nest
        for name in nest.reads:
            if self._depth(name) and not self._is_element(name):
                value = f"{self.name(name)}_in[{self.at(name)}]"
                yield f"const {self.type(name)} {self.name(name)} = {value};"
        for name in sorted(self.kept - set(nest.writes)):
            yield f"{self.type(name)} {self.name(name)}_row[{nest.dims[-1]}];"
        pairs = list(zip(nest.calls, nest.what, strict=True))
        for time in range(max(self.times.values(), default=0) + 1):
            elements = []
            for call, what in pairs:
                if self._time(call, what) != time or self._is_single(call, what):
                    continue
                if isinstance(what, Pick):
                    yield from self._pick(call, what)
                elif (
                    isinstance(what, Reduction) and self.nest.forms[call.reads[0]][0] != nest.shape
                ):
                    name = self.name(call.writes[0])
                    yield combined(what.name, f"{name}_total", self.name(call.reads[0]))
                elif isinstance(what, Reduction) or self._is_element(call.writes[0]):
                    elements.append((call, what))
                else:
                    yield from self._formula(call, what)
            if elements:
                yield from self._phase(time, elements)

    def _phase(self, time: int, pairs: Sequence[tuple[Call, Operation]]) -> Iterator[str]:
        """A loop over the elements of a row, and the results of the loop's reductions."""
        sums = [(c, w) for c, w in pairs if isinstance(w, Reduction) and self._is_inner(c)]
        n = self.nest.dims[-1] if self.nest.dims else 1
        low, high = ("start", "stop") if len(self.nest.dims) == 1 else ("0", str(n))
        body = list(self._body(time, pairs))
        if not self.nest.dims:
            yield from body
        elif n > LONG_ROW and any(what.name == "sum" for _, what in sums):
            for call, what in sums:
                yield f"double {self.name(call.writes[0])}_blocks = {_IDENTITY[what.name]};"
            yield f"for (long k = {low}; k < {high}; k += {LONG_ROW}) {{"
            yield f"    const long end = k + {LONG_ROW} < {high} ? k + {LONG_ROW} : {high};"
            yield from indented(self._loop("k", "end", sums, body))
            for call, what in sums:
                blocks = f"{self.name(call.writes[0])}_blocks"
                yield f"    {combined(what.name, blocks, self._partial(call))}"
            yield "}"
        else:
            yield from self._loop(low, high, sums, body)
        yield from self._results(sums, n > LONG_ROW and any(w.name == "sum" for _, w in sums))

    def _loop(
        self, low: str, high: str, sums: Sequence[tuple[Call, Reduction]], body: Sequence[str]
    ) -> Iterator[str]:
        clauses = ""
        for call, what in sums:
            partial = self._partial(call)
            yield f"{self._kind(call)} {partial} = {_IDENTITY[what.name]};"
            clauses += f" reduction({'+' if what.name == 'sum' else 'max'}:{partial})"
            if what.name == "max":
                yield f"int {partial}_nan = 0;"
                clauses += f" reduction(|:{partial}_nan)"
        yield f"#pragma omp simd{clauses}"
        yield f"for (long j = {low}; j < {high}; j++) {{"
        yield from indented(body)
        yield "}"
        for call, what in sums:
            if what.name == "max":
                yield f"if ({self._partial(call)}_nan) {self._partial(call)} = NAN;"

    def _results(self, sums: Sequence[tuple[Call, Reduction]], in_blocks: bool) -> Iterator[str]:
        """The values of a row's reductions, for the next phase and for the memory."""
        for call, what in sums:
            (write,) = call.writes
            name, kind = self.name(write), self.type(write)
            found = f"({kind}){name}_blocks" if in_blocks else self._partial(call)
            if self._is_of_row(call):
                yield f"const {kind} {name} = {found};"
                yield from self._store(write)
            elif self._is_total(call):
                yield combined(what.name, f"{name}_total", found)
            else:
                yield combined(what.name, f"{name}_out[{self.at(write)}]", found)

    def _body(self, time: int, pairs: Sequence[tuple[Call, Operation]]) -> Iterator[str]:
        """The statements inside the loop of a phase."""
        here = {call.writes[0] for call, _ in pairs}
        for name in dict.fromkeys(n for call, _ in pairs for n in call.reads):
            if self._is_element(name) and name not in here:
                source = f"{self.name(name)}_row[j]"
                if name in self.nest.writes:
                    source = f"{self.name(name)}_out[{self.at(name)}]"
                elif name not in self.nest.made:
                    source = f"{self.name(name)}_in[{self.at(name)}]"
                yield f"const {self.type(name)} {self.name(name)} = {source};"
        for call, what in pairs:
            if isinstance(what, Formula):
                yield from self._formula(call, what)
                if call.writes[0] in self.kept and call.writes[0] not in self.nest.writes:
                    yield f"{self.name(call.writes[0])}_row[j] = {self.name(call.writes[0])};"
                continue
            value = self.name(call.reads[0])
            if self._is_inner(call):
                yield simple(what.name, self._partial(call), value)
            else:
                (write,) = call.writes
                yield combined(what.name, f"{self.name(write)}_out[{self.at(write)}]", value)

    def _is_inner(self, call: Call) -> bool:
        """True if a reduction runs along the last dimension, among others."""
        steps = self.nest.steps[call.writes[0]]
        return not steps or steps[-1] == 0

    def _partial(self, call: Call) -> str:
        return f"{self.name(call.writes[0])}_part"

    def _kind(self, call: Call) -> str:
        return self.type(call.writes[0])

    # --- statements ------------------------------------------------------------------------------

    def _formula(self, call: Call, what: Operation) -> Iterator[str]:
        """The lines of a formula, and the store of a result with other readers."""
        assert isinstance(what, Formula)
        (write,) = call.writes
        kinds = [self.type(name) for name in (write, *call.reads)]
        kinds = [kind for kind in kinds if kind in ("float", "double")]
        operands = {}
        for letter, name in zip(what.letters, call.reads, strict=True):
            cast = (
                ""
                if self.type(name) in ("uint8_t", "int64_t", "int32_t", kinds[0])
                else f"({kinds[0]})"
            )
            operands[letter] = f"{cast}{self.name(name)}"
        text = in_single(what.text) if kinds[0] == "float" else what.text
        single = "f" if kinds[0] == "float" else ""
        self.functions |= {f"{name}{single}" for name in what.functions}
        *parts, last = text.split("; ")
        for part in parts:
            letter, _, expression = part.partition(" = ")
            expression = _substituted(expression, operands)
            operands[letter] = f"{self.name(write)}_{letter}"
            yield f"const {kinds[0]} {operands[letter]} = {expression};"
        yield f"const {self.type(write)} {self.name(write)} = {_substituted(last, operands)};"
        yield from self._store(write)

    def _pick(self, call: Call, what: Pick) -> Iterator[str]:
        """The lines for the element at a label."""
        (row, label), (write,) = call.reads, call.writes
        y, n = self.name(label), self.nest.dims[-1]
        source = f"{self.name(row)}_row[{y}]"
        if row not in self.kept or row in self.nest.writes:
            pointer = f"{self.name(row)}_{'out' if row in self.nest.writes else 'in'}"
            source = f"{pointer}[{re.sub(r'j$', y, self.at(row))}]"
        yield f"if ({y} != {what.ignored} && ({y} < 0 || {y} >= {n})) return 1;"
        value = f"{y} == {what.ignored} ? 0 : -{source}"
        yield f"const {self.type(write)} {self.name(write)} = {value};"
        yield from self._store(write)

    def _store(self, write: str) -> Iterator[str]:
        if write in self.nest.writes:
            yield f"{self.name(write)}_out[{self.at(write)}] = {self.name(write)};"


def _substituted(text: str, operands: dict[str, str]) -> str:
    return _LETTER.sub(lambda found: operands.get(found[0], found[0]), text)


def simple(name: str, total: str, value: str) -> str:
    """The statement of a reduction in a loop; a flag beside the largest notes NaN."""
    if name == "sum":
        return f"{total} += {value};"
    line = f"{total} = {value} > {total} ? {value} : {total};"
    return f"{line} {total}_nan |= {value} != {value};" if name == "max" else line


def combined(name: str, total: str, value: str) -> str:
    """The statement of a reduction in memory; NaN stays."""
    if name == "sum":
        return f"{total} += {value};"
    return f"{total} = {value} > {total} || {value} != {value} ? {value} : {total};"


def indented(lines: Iterator[str] | Sequence[str], depth: int = 1) -> Iterator[str]:
    """Lines, moved to the right."""
    for line in lines:
        yield "    " * depth + line
