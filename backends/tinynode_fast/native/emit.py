"""Emit: a nest as a readable C function.

Requirement: a reader finds the operators, their formulas and the loops, and no macros. A row runs
in phases: a loop over the row's elements, then the results of the reductions of the loop.

The error of a sum does not grow with the number of rows. A long sum adds up a block of rows.
The block is added to the total by ``add_float``, which keeps the rounding error for the next one.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tinynode_fast.actions import FunctionCall
from tinynode_fast.native.formulas import CALL, FUNCTIONS, ElementFormula, Reduction, functions_in
from tinynode_fast.native.nests import ROW_BYTES, STRIP, TYPES, Nest

_LETTER = re.compile(r"\b[a-z]\b(?!\()")
_FLOATING = re.compile(r"(?<![\w.])(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)")
_WORDS = """auto break case char const continue default do double else enum extern float for goto
if inline int long register restrict return short signed sizeof static struct switch typedef union
unsigned void volatile while p j start stop gamma isinf isfinite fabs sqrt floor ceil rint trunc
copysign y0 y1 yn j0 j1 jn signgam main memset add_float add_double"""
_RESERVED = FUNCTIONS.union(_WORDS.split())
_IDENTITY = {"sum": "0", "rows": "0", "largest": "-INFINITY"}
BLOCK = 32
"""The rows of a block of a long sum. Longer blocks would save no time."""
_ADD = """
// total += value; lost is the rounding error of the total, for the next value
static inline void add_{0}({0} *total, {0} *lost, {0} value) {{
    const {0} wanted = value - *lost, sum = *total + wanted;
    *lost = isfinite(sum) ? sum - *total - wanted : 0;
    *total = sum;
}}"""


@functools.lru_cache(1024)
def in_single(text: str) -> str:
    """A formula for float: the numbers and the functions of the C library get an ``f``."""
    return CALL.sub(r"\1f(", _FLOATING.sub(r"\g<0>f", text))


def source_of(nests: Sequence[Nest]) -> str:
    """The C source of nests; each nest gets the name of its function.

    Nests that differ in names and lengths alone share a function, such as Adam for two matrices.
    """
    used: set[str] = set()
    added: set[str] = set()
    parts = []
    alike: dict[Any, list[Nest]] = {}
    for nest in nests:
        alike.setdefault(nest.form(), []).append(nest)
    for place, group in enumerate(alike.values()):
        names = dict.fromkeys([call.function.name for call in group[0].calls[:4]])
        for nest in group:
            nest.name = f"{'_'.join(names)}_{place}"
        writer = Writer(group[0])
        title = f"// for {len(group)} nests, with the names of the first\n" * (len(group) > 1)
        parts.append(title + "\n".join(writer.function()))
        used |= writer.functions
        added |= writer.added
    header = "\n".join([*_header(sorted(used)), *(_ADD.format(kind) for kind in sorted(added))])
    return "\n\n".join([header, *parts, _IN_ORDER])


_IN_ORDER = """\
// several calls on known arrays, one after the other
typedef void nest(void **, long, long);

void call_in_order(long count, nest **functions, void ***pointers, const long *lengths) {
    for (long i = 0; i < count; i++) {
        functions[i](pointers[i], 0, lengths[i]);
    }
}
"""


def _header(used: Sequence[str]) -> Iterator[str]:
    """The declarations of the functions with a vector form."""
    yield "#include <math.h>"
    yield "#include <stdint.h>"
    yield "#include <string.h>"
    for name in used:
        base = name.removesuffix("f") if name not in FUNCTIONS else name
        kind = "double" if base == name else "float"
        arguments = ", ".join([kind] * (2 if base in ("atan2", "hypot", "pow") else 1))
        yield "#pragma omp declare simd notinbranch"
        yield f"{kind} {name}({arguments});"


class Writer:
    """Writes the function of a nest.

    Attributes:
        types: the C types of the values.
        functions: the called functions with a vector form.
        phase: the first phase of a row that may read a value.
        pointers: the C names of the pointers to the values in memory.
        buffers: the elements that a later phase reads, and that have no place in memory.
        long: the ends that are added up in blocks.
        long_rows: the sums of many rows by index.
        strips: the sums of a long row, which is added up in strips.
        added: the types with a function ``add_``.
    """

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.functions: set[str] = set()
        self.names: dict[str, str] = {}
        self.types = {name: TYPES[nest.forms[name][1]] for name in nest.steps}
        self.loops = [f"i{k}" for k in range(len(nest.dims) - 1)] + ["j"]
        self.phase: dict[str, int] = {}
        self.ends: list[FunctionCall] = []
        kept: set[str] = set()
        for call in nest.calls:
            is_reduction = isinstance(call.function, Reduction)
            phase = max([self.phase.get(name, 0) for name in call.reads], default=0)
            self.phase[call.writes[0]] = phase + is_reduction
            self.ends += [call] if nest.is_end(call) else []
            kept.update(n for n in call.reads if self.phase.get(n, phase) < phase)
        self.buffers = [n for n in sorted(kept - {*nest.writes}) if nest.is_element(n)]
        self.long = nest.long_sums()
        sums = [call.writes[0] for call in nest.calls if call.function.name == "sum"]
        wide = [n for n in sums if self.types[n] == "double" and not nest.is_element(n)]
        self.strips = wide if nest.dims[-1] > STRIP else []
        self.long_rows = nest.long_rows()
        self.added = {self.types[n] for n in (*self.long, *self.long_rows, *self.strips)}
        self.pointers = {n: f"{self.name(n)}_in" for n in nest.reads}
        self.pointers |= {n: f"{self.name(n)}_out" for n in nest.writes}
        for write, read in nest.over.items():  # a single pointer: ``restrict`` allows no other
            self.pointers[read] = self.pointers[write] = f"{self.name(read)}_io"

    # --- names -----------------------------------------------------------------------------------

    def name(self, name: str) -> str:
        """The C name of a value of the net."""
        if name not in self.names:
            text = re.sub(r"\W", "_", name.replace("@number", "number"), flags=re.ASCII).strip("_")
            text = text if text[:1].isalpha() else f"v{text}"
            while (
                text in _RESERVED or re.fullmatch(r"[bei]\d+", text) or text in self.names.values()
            ):
                text += "_"
            self.names[name] = text
        return self.names[name]

    def at(self, name: str, index: str | None = None) -> str:
        """The place of a value in memory, in the loops; an index replaces the first loop."""
        loops = self.loops if index is None else [index, *self.loops[1:]]
        pairs = zip(self.nest.steps[name], loops, strict=True)
        terms = [loop if step == 1 else f"{loop} * {step}" for step, loop in pairs if step]
        return f"{self.pointers[name]}[{' + '.join(terms) or '0'}]"

    def end(self, call: FunctionCall) -> str:
        """The place where an end is added up: a number, or an element in memory."""
        (write,) = call.writes
        if call.function.name == "rows":
            return self.at(write, self.name(call.reads[1]))
        if write in self.long and self.nest.is_element(write):
            return self._local(write, "block", self._summed(write)[-1])
        return self._total(write)

    def _total(self, name: str) -> str:
        """The place of the result of an end."""
        return self.at(name) if any(self.nest.steps[name]) else f"{self.name(name)}_total"

    # --- the function ----------------------------------------------------------------------------

    def function(self) -> Iterator[str]:
        """The lines of the function."""
        nest = self.nest
        for call in nest.calls:
            yield f"// {self._comment(call)}"
        yield f"void {nest.name}(void **p, long start, long stop) {{"
        for i, name in enumerate((*nest.reads, *nest.writes)):
            if name not in nest.over.values():
                constant = "const " if name in nest.reads else ""
                yield f"    {constant}{self.types[name]} *restrict {self.pointers[name]} = p[{i}];"
        yield from indented(self._starts())
        lines = self._row()
        for depth in reversed(range(len(self.loops) - 1)):
            lines = self._loop(depth, lines)
        yield from indented(lines)
        for call in self.ends:
            if not any(nest.steps[call.writes[0]]):
                place, kind = self.at(call.writes[0]), self.types[call.writes[0]]
                yield f"    {place} = ({kind}){self.end(call)};"
        yield "}"

    def _comment(self, call: FunctionCall) -> str:
        write, what = self.name(call.writes[0]), call.function
        reads = [self.name(name) for name in call.reads]
        if isinstance(what, Reduction):
            if what.name == "rows":
                return f"{write} = the sums of the rows of {reads[0]} with one {reads[1]}"
            axes = ", ".join(map(str, what.axes))
            return f"{write} = the {what.name} of {reads[0]} over the axes ({axes})"
        return f"{write} = {substituted(what.text, dict(zip(what.letters, reads, strict=True)))}"

    def _head(self, depth: int) -> str:
        """The head of a loop; the caller chooses a part of the outermost loop."""
        loop, (low, high) = self.loops[depth], self._bounds(depth)
        return f"for (long {loop} = {low}; {loop} < {high}; {loop}++)"

    def _bounds(self, depth: int) -> tuple[str, str]:
        return ("0", str(self.nest.dims[depth])) if depth else ("start", "stop")

    def _loop(self, depth: int, body: Iterable[str]) -> Iterator[str]:
        """A loop with a body; long sums along the loop are added up in blocks."""
        elements = [name for name in self.long if self.nest.is_element(name)]
        blocks = [name for name in elements if self._summed(name)[-1] == depth]
        for name in self.long:
            if self._summed(name)[0] == depth:
                yield from self._zeros(name, "lost", depth)
        if not blocks:
            yield from (f"{self._head(depth)} {{", *indented(body), "}")
            return
        yield from self._in_strips(depth, BLOCK)
        for name in blocks:
            yield from indented(self._zeros(name, "block", depth))
        loop = self.loops[depth]
        yield f"    for (long {loop} = b{depth}; {loop} < e{depth}; {loop}++) {{"
        yield from indented(body, 2)
        yield "    }"
        for name in blocks:
            yield from indented(self._add_block(name, depth))
        yield "}"

    def _in_strips(self, depth: int, size: int) -> Iterator[str]:
        """The head of a loop over strips of a loop, from b to e."""
        (low, high), b = self._bounds(depth), f"b{depth}"
        yield f"for (long {b} = {low}; {b} < {high}; {b} += {size}) {{"
        yield f"    const long e{depth} = {b} + {size} < {high} ? {b} + {size} : {high};"

    def _starts(self) -> Iterator[str]:
        """The start of the ends, for the chosen part alone: threads may share the memory."""
        for call in self.ends:
            start = f"{self._total(call.writes[0])} = {_IDENTITY[call.function.name]};"
            steps = self.nest.steps[call.writes[0]]
            heads = [self._head(depth) for depth, step in enumerate(steps) if step]
            if call.function.name == "rows":  # each thread has all rows
                size = math.prod(self.nest.forms[call.writes[0]][0])
                heads = [f"for (long j = 0; j < {size}; j++)"]
                start = f"{self.pointers[call.writes[0]]}[j] = 0;"
            if not heads:
                start = f"double {start}"
            for depth, line in enumerate([*heads, start]):
                yield "    " * depth + line
            if call.writes[0] in self.long_rows:
                yield from self._array_of_zeros(call.writes[0], "lost", size)

    # --- long sums -------------------------------------------------------------------------------

    def _summed(self, name: str) -> list[int]:
        """The loops that a sum does not vary along, but for the loop over a row's elements."""
        return [depth for depth, step in enumerate(self.nest.steps[name][:-1]) if not step]

    def _inside(self, name: str, depth: int) -> list[int]:
        """The loops inside of a loop that a sum varies along."""
        steps = self.nest.steps[name]
        return [k for k in range(depth + 1, len(steps)) if steps[k]]

    def _local(self, name: str, part: str, depth: int) -> str:
        """The place of a sum in a small array, for the loops inside of a loop."""
        terms, size = [], 1
        for k in reversed(self._inside(name, depth)):
            terms.append(self.loops[k] if size == 1 else f"{self.loops[k]} * {size}")
            size *= self.nest.dims[k]
        return f"{self.name(name)}_{part}[{' + '.join(reversed(terms)) or '0'}]"

    def _zeros(self, name: str, part: str, depth: int) -> Iterator[str]:
        """Zeros for the loops inside of a loop that a sum varies along."""
        size = math.prod(self.nest.dims[k] for k in self._inside(name, depth))
        yield from self._array_of_zeros(name, part, size)

    def _array_of_zeros(self, name: str, part: str, size: int) -> Iterator[str]:
        """An array of zeros for a sum; a large one is not on the stack."""
        storage = "static _Thread_local " * (size * 8 > ROW_BYTES)
        array = f"{self.name(name)}_{part}"
        yield f"{storage}{self.types[name]} {array}[{size}];"
        yield f"memset({array}, 0, sizeof {array});"

    def _add_block(self, name: str, depth: int) -> Iterator[str]:
        """Add a block of rows to a sum."""
        heads = [self._head(k) for k in self._inside(name, depth)]
        line = self._add(name, self._local(name, "block", depth))
        for indent, text in enumerate([*heads, line]):
            yield "    " * indent + text

    def _add(self, name: str, value: str) -> str:
        """Add a number to a long sum."""
        lost = self._local(name, "lost", self._summed(name)[0])
        return f"add_{self.types[name]}(&{self._total(name)}, &{lost}, {value});"

    def _loads(self, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            yield f"const {self.types[name]} {self.name(name)} = {self.at(name)};"

    # --- a row -----------------------------------------------------------------------------------

    def _row(self) -> Iterator[str]:
        """The phases: formulas of the row's values, then a loop over the row's elements."""
        nest = self.nest
        yield from self._loads(name for name in nest.reads if not nest.is_element(name))
        for name in self.buffers:
            yield f"{self.types[name]} {self.name(name)}_row[{nest.dims[-1]}];"
        for phase in range(max(self.phase.values()) + 1):
            elements = []
            for call in nest.calls:
                (write,), is_reduction = call.writes, isinstance(call.function, Reduction)
                if self.phase[write] - is_reduction != phase:
                    continue
                if is_reduction or nest.is_element(write):
                    elements.append(call)
                else:
                    yield from self._formula(call)
            if elements:
                yield from self._phase(elements)

    def _phase(self, calls: Sequence[FunctionCall]) -> Iterator[str]:
        """A loop over the elements of a row, and the results of the loop's reductions."""
        nest = self.nest
        inner = [c for c in calls if self._part(c) is not None]
        clauses = ""
        for call in inner:
            what, part = call.function, self._part(call)
            kind = "double" if what.name == "sum" else self.types[call.writes[0]]
            yield f"{kind} {part} = {_IDENTITY[what.name]};"
            in_strip = self._in_strip(call)
            clauses += f" reduction({'+' if what.name == 'sum' else 'max'}:{in_strip})"
        yield from self._elements(calls, clauses)
        for call in inner:
            write, found = call.writes[0], str(self._part(call))
            if write in self.long:
                yield self._add(write, found)
            elif nest.is_end(call):
                yield reduction(call, self.end(call), found)
            else:
                kind = self.types[write]
                cast = f"({kind})" * (call.function.name == "sum")
                yield f"const {kind} {self.name(write)} = {cast}{found};"
                yield from self._store(write)

    def _elements(self, calls: Sequence[FunctionCall], clauses: str) -> Iterator[str]:
        """The loop over the elements of a row; sums of a long row are added up in strips."""
        last = len(self.nest.dims) - 1
        strips = [self.name(c.writes[0]) for c in calls if c.writes[0] in self.strips]
        simd = f"#pragma omp simd{clauses}"
        if not strips:
            yield from (simd, f"{self._head(last)} {{", *indented(self._body(calls)), "}")
            return
        for name in strips:
            yield f"double {name}_rest = 0;"
        yield from self._in_strips(last, STRIP)
        for name in strips:
            yield f"    double {name}_strip = 0;"
        head = f"for (long j = b{last}; j < e{last}; j++) {{"
        yield from indented([simd, head, *indented(self._body(calls)), "}"])
        for name in strips:
            yield f"    add_double(&{name}_part, &{name}_rest, {name}_strip);"
        yield "}"

    def _in_strip(self, call: FunctionCall) -> str | None:
        """The name of the part of a reduction that the loop over the elements adds up."""
        (write,) = call.writes
        return f"{self.name(write)}_strip" if write in self.strips else self._part(call)

    def _part(self, call: FunctionCall) -> str | None:
        """The name of the part of a reduction that a row's loop adds up."""
        (write,) = call.writes
        is_part = isinstance(call.function, Reduction) and not self.nest.is_element(write)
        return f"{self.name(write)}_part" if is_part else None

    def _body(self, calls: Sequence[FunctionCall]) -> Iterator[str]:
        """The statements inside the loop of a phase."""
        here = {call.writes[0] for call in calls}
        for name in dict.fromkeys(n for call in calls for n in call.reads):
            if self.nest.is_element(name) and name not in here:
                if name in self.buffers:
                    yield f"const {self.types[name]} {self.name(name)} = {self.name(name)}_row[j];"
                else:
                    yield from self._loads([name])
        for call in calls:
            if isinstance(call.function, ElementFormula):
                yield from self._formula(call)
            else:
                place = self._in_strip(call) or self.end(call)
                value, write = self.name(call.reads[0]), call.writes[0]
                if write in self.long_rows:
                    lost = place.replace(self.pointers[write], f"{self.name(write)}_lost")
                    yield f"add_{self.types[write]}(&{place}, &{lost}, {value});"
                else:
                    yield reduction(call, place, value)

    # --- statements ------------------------------------------------------------------------------

    def _formula(self, call: FunctionCall) -> Iterator[str]:
        """The lines of a formula, and the store of the result."""
        (write,), what = call.writes, call.function
        kinds = [self.types[name] for name in (write, *call.reads)]
        kind = next(kind for kind in kinds if kind in ("float", "double"))
        operands = {}
        for letter, name in zip(what.letters, call.reads, strict=True):
            cast = f"({kind})" if {self.types[name], kind} == {"float", "double"} else ""
            operands[letter] = f"{cast}{self.name(name)}"
        is_single = kind == "float"
        self.functions |= {f"{name}{'f' * is_single}" for name in functions_in(what.text)}
        *parts, last = (in_single(what.text) if is_single else what.text).split("; ")
        for part in parts:
            letter, _, expression = part.partition(" = ")
            expression = substituted(expression, operands)
            operands[letter] = f"{self.name(write)}_{letter}"
            yield f"const {kind} {operands[letter]} = {expression};"
        yield f"const {self.types[write]} {self.name(write)} = {substituted(last, operands)};"
        yield from self._store(write)

    def _store(self, write: str) -> Iterator[str]:
        """The store of a value with other readers."""
        if write in self.buffers:
            yield f"{self.name(write)}_row[j] = {self.name(write)};"
        elif write in self.nest.writes:
            yield f"{self.at(write)} = {self.name(write)};"


def substituted(text: str, operands: dict[str, str]) -> str:
    """A formula with the names of operands in place of letters."""
    return _LETTER.sub(lambda found: operands.get(found[0], found[0]), text)


def reduction(call: FunctionCall, total: str, value: str) -> str:
    """The statement that takes a value into a reduction."""
    if call.function.name == "largest":
        return f"{total} = {value} > {total} ? {value} : {total};"
    return f"{total} += {value};"


def indented(lines: Iterable[str], depth: int = 1) -> Iterator[str]:
    """Lines, moved to the right."""
    for line in lines:
        yield "    " * depth + line
