"""The text of PTX becomes functions, basic blocks and instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

DTYPES = {
    "pred": np.dtype(bool),
    **{f"{kind}{bits}": np.dtype(f"u{bits // 8}") for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
}
"""The dtypes of PTX's types."""
BLOCK_ENDS = {"bra", "ret", "exit", "bar", "barrier"}
"""After these instructions, threads may be at different places."""


class UnknownPTXError(Exception):
    """The text has something that the machine does not know."""


class Register(NamedTuple):
    """``%r1``: a value of each thread."""

    name: str


class Number(NamedTuple):
    """``7``, ``0f3F800000``: a constant, by its bits."""

    bits: int


class Symbol(NamedTuple):
    """The name of a variable, a parameter, a label or a function."""

    name: str


class Address(NamedTuple):
    """``[%rd1+4]``"""

    base: Register | Number | Symbol
    offset: int


class Vector(NamedTuple):
    """``{%r1, %r2}``"""

    parts: tuple[Register | Number | Symbol, ...]


Operand: TypeAlias = Register | Number | Symbol | Address | Vector


class Instruction(NamedTuple):
    """``@%p1 add.ftz.f32 %f1, %f2, %f3;``"""

    text: str
    guard: Register | None
    guard_is_negated: bool
    name: str
    modifiers: tuple[str, ...]
    types: tuple[str, ...]
    operands: tuple[Operand, ...]


class Variable(NamedTuple):
    """A parameter, or a place in global, constant, shared or local memory."""

    space: str
    name: str
    size: int
    values: bytes


class Function(NamedTuple):
    """A kernel, or a function that kernels call."""

    name: str
    results: list[Variable]
    parameters: list[Variable]
    variables: list[Variable]
    registers: dict[str, str]
    """The types of registers; ``%f`` has that of ``%f0``, ``%f1`` and so on."""
    blocks: list[list[Instruction]]
    labels: dict[str, int]
    """The block that begins at a label."""

    def type_of(self, register: str) -> str:
        return self.registers.get(register) or self.registers[register.rstrip("0123456789")]


class Module(NamedTuple):
    functions: dict[str, Function]
    variables: list[Variable]


HEADER = re.compile(
    r"\.(?:entry|func)\s+(?:\((?P<results>[^)]*)\)\s*)?(?P<name>[\w$]+)\s*\((?P<parameters>[^)]*)\)"
)
VARIABLE = re.compile(
    r"\.(?P<space>param|global|const|shared|local)\s+(?:\.align\s+\d+\s+)?\.(?P<type>\w+)\s+"
    r"(?P<name>[\w$]+)(?:\[(?P<length>\d+)\])?(?:\s*=\s*\{?(?P<values>[^}]*)\}?)?$"
)
REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)$")
INSTRUCTION = re.compile(r"(?:@(!?)(%\w+)\s+)?([a-z]\w*)((?:\.\w+|::\w+)*)\s*(.*)$")
LABEL = re.compile(r"([\w$]+):")


def read_module(text: str) -> Module:
    """All functions and variables of a text.

    Raises:
        UnknownPTXError: a statement that is not understood.
    """
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    functions, outside, end = {}, "", 0
    for header in HEADER.finditer(text):
        outside += text[end : header.start()]
        end = header.end()
        begin = text.find("{", end)
        is_declaration = ";" in text[end:begin]
        if not is_declaration:
            end = _closing(text, begin)
            function = _read_function(header, text[begin + 1 : end - 1])
            functions[function.name] = function
    outside += text[end:]
    statements = [re.sub(r"\.(visible|weak|extern)\s+", "", one) for one in outside.split(";")]
    variables = [_read_variable(one.strip()) for one in statements if VARIABLE.search(one.strip())]
    return Module(functions, variables)


def _closing(text: str, begin: int) -> int:
    """The place after the brace that closes the brace at ``begin``."""
    depth = 0
    for brace in re.compile("[{}]").finditer(text, begin):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    raise UnknownPTXError("a brace is not closed")


def _read_function(header: re.Match[str], body: str) -> Function:
    results, parameters = (
        [_read_variable(one.strip()) for one in (header[part] or "").split(",") if one.strip()]
        for part in ("results", "parameters")
    )
    function = Function(header["name"], results, parameters, [], {}, [[]], {})
    for statement in _statements(body):
        _add(function, statement)
    return function


def _statements(body: str) -> Iterator[str]:
    """The statements in order, labels among them, without the braces of scopes.

    A scope may declare ``%r1`` once more: its names get the number of the scope.
    """
    scopes: list[dict[str, str]] = []
    count = 0
    for part in body.split(";"):
        rest = " ".join(part.split())
        while rest:
            label = LABEL.match(rest)
            if label:
                yield label[0]
                rest = rest[label.end() :].strip()
            elif rest[0] == "{":
                count += 1
                scopes.append({})
                rest = rest[1:].strip()
            elif rest[0] == "}":
                scopes.pop()
                rest = rest[1:].strip()
            else:
                if scopes:
                    names = _declared(rest)
                    scopes[-1].update({name: f"{name}_of_scope_{count}" for name in names})
                yield _renamed(rest, scopes)
                rest = ""


def _declared(statement: str) -> list[str]:
    registers, variable = REGISTERS.match(statement), VARIABLE.match(statement)
    if registers:
        return [name.strip() for name in registers[2].split(",")]
    return [variable["name"]] if variable else []


def _renamed(statement: str, scopes: list[dict[str, str]]) -> str:
    names: dict[str, str] = {}
    for scope in scopes:
        names.update(scope)
    return "".join(names.get(part, part) for part in re.split(r"(%?[\w$]+)", statement))


def _add(function: Function, statement: str) -> None:
    """One statement: a declaration, a label, or an instruction."""
    registers = REGISTERS.match(statement)
    if registers:
        for name in registers[2].split(","):
            function.registers[re.sub(r"<\d+>", "", name.strip())] = registers[1]
    elif statement.endswith(":"):
        function.blocks.append([])
        function.labels[statement[:-1]] = len(function.blocks) - 1
    elif VARIABLE.match(statement):
        function.variables.append(_read_variable(statement))
    elif not statement.startswith((".pragma", ".loc")):
        instruction = _read_instruction(statement)
        function.blocks[-1].append(instruction)
        if instruction.name in BLOCK_ENDS:
            function.blocks.append([])


def _read_variable(statement: str) -> Variable:
    found = VARIABLE.search(statement)
    if found is None:
        raise UnknownPTXError(f"not a variable: {statement}")
    dtype = DTYPES[found["type"]]
    numbers = [int(one, 0) for one in (found["values"] or "").split(",") if one.strip()]
    values = np.asarray(numbers, dtype.str.replace("f", "u")).tobytes()
    size = dtype.itemsize * int(found["length"] or 1)
    return Variable(found["space"], found["name"], size, values)


def _read_instruction(statement: str) -> Instruction:
    found = INSTRUCTION.match(statement)
    if found is None:
        raise UnknownPTXError(f"not an instruction: {statement}")
    negation, guard, name, suffixes, operands = found.groups()
    parts = suffixes.replace("::", ".").strip(".").split(".") if suffixes else []
    return Instruction(
        statement,
        Register(guard) if guard else None,
        negation == "!",
        name,
        tuple(part for part in parts if part not in DTYPES),
        tuple(part for part in parts if part in DTYPES),
        tuple(_read_operand(one) for one in re.findall(r"\{[^}]*\}|\([^)]*\)|[^,\s]+", operands)),
    )


def _read_operand(text: str) -> Operand:
    if text[0] in "{(":
        return Vector(tuple(_read_plain(one) for one in re.findall(r"[^\s,]+", text[1:-1])))
    if text[0] == "[":
        base, _, offset = text[1:-1].partition("+")
        return Address(_read_plain(base), int(offset or 0))
    return _read_plain(text)


def _read_plain(text: str) -> Register | Number | Symbol:
    if text[0] == "%":
        return Register(text)
    if re.fullmatch(r"0[fFdD][0-9a-fA-F]+", text):
        return Number(int(text[2:], 16))
    if re.fullmatch(r"-?\d\w*", text):
        return Number(int(text.rstrip("U"), 0))
    return Symbol(text)
