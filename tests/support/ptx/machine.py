"""The threads of a launch, executed together: a register is an array with a lane for each thread.

The program counter of a thread is the number of a basic block. In each step, the threads with the
lowest program counter execute one block. So threads that took different branches meet again at the
next common block. At ``bar.sync`` a thread waits, until all threads of the thread block wait.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptx import arithmetic
from ptx.memory import WRITE, Memory, MemoryFaultError
from ptx.reader import (
    DTYPES,
    Function,
    Instruction,
    Module,
    Number,
    Operand,
    Register,
    Symbol,
    UnknownPTXError,
    Variable,
    Vector,
)

MOST_THREADS = 1 << 15
"""More threads are executed in turn, some thread blocks at a time."""
MOST_STEPS = 200_000


class MachineError(Exception):
    """A launch that cannot work: wrong arguments, threads at different barriers, no end."""


def launch(
    module: Module, kernel: str, blocks: int, threads: int, arguments: list[bytes], memory: Memory
) -> None:
    """Run a kernel on ``blocks`` times ``threads`` threads; the arguments are bytes."""
    function = module.functions[kernel]
    sizes = [one.size for one in function.parameters]
    if [len(one) for one in arguments] != sizes:
        given = [len(one) for one in arguments]
        raise MachineError(f"{kernel}: parameters of {sizes} bytes, arguments of {given}")
    symbols = {}
    for variable in module.variables:
        if variable.space != "shared":
            values = variable.values.ljust(variable.size, b"\0")
            symbols[variable.name] = memory.add_bytes(values)
    at_once = max(1, MOST_THREADS // threads)
    for first in range(0, blocks, at_once):
        numbers = np.arange(first, min(first + at_once, blocks))
        block_of = np.repeat(numbers, threads)
        lanes = Lanes(function, module, memory, block_of, symbols)
        lanes.set_special("%tid", np.tile(np.arange(threads), numbers.size))
        lanes.set_special("%ctaid", block_of)
        lanes.set_special("%ntid", np.full(block_of.size, threads))
        lanes.set_special("%nctaid", np.full(block_of.size, blocks))
        for variable in [*module.variables, *function.variables]:
            if variable.space == "shared":
                lanes.add_shared(variable)
        for variable, values in zip(function.parameters, arguments, strict=True):
            row = np.frombuffer(values, np.uint8)
            lanes.parameters[variable.name] = np.broadcast_to(row, (block_of.size, row.size))
        with np.errstate(all="ignore"):
            lanes.run()


class Lanes:
    """Threads in one function.

    Attributes:
        registers: unsigned integers (or bools), a lane for each thread.
        parameters: the bytes of parameters and results of calls, a row for each thread.
        symbols: the addresses of variables, one for all threads or one for each.
    """

    def __init__(
        self,
        function: Function,
        module: Module,
        memory: Memory,
        block_of: Any,
        symbols: dict[str, Any],
    ) -> None:
        self.function, self.module, self.memory = function, module, memory
        self.block_of = block_of
        self.count = block_of.size
        self.symbols = dict(symbols)
        self.registers: dict[str, Any] = {}
        self.parameters: dict[str, Any] = {}
        self.carry = np.zeros(self.count, np.int64)
        self.at = np.zeros(self.count, np.int64)
        self.waits = np.zeros(self.count, bool)
        for variable in [*function.variables, *function.results]:
            if variable.space == "param":
                self.parameters[variable.name] = np.zeros((self.count, variable.size), np.uint8)
            elif variable.space == "local":
                size = -(-variable.size // 16) * 16
                start = memory.allocate(size * self.count, WRITE)
                self.symbols[variable.name] = start + size * np.arange(self.count)

    def set_special(self, name: str, values: Any) -> None:
        """``%tid.x`` and so on; CuPy's kernels have one axis of threads."""
        self.registers[f"{name}.x"] = values.astype(np.uint32)

    def add_shared(self, variable: Variable) -> None:
        """Memory for each thread block."""
        numbers, place = np.unique(self.block_of, return_inverse=True)
        starts = [self.memory.allocate(variable.size, WRITE) for _ in numbers]
        self.symbols[variable.name] = np.asarray(starts)[place]

    # --- control ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Until all threads are at the end."""
        end = len(self.function.blocks)
        for _ in range(MOST_STEPS):
            able = np.where(self.waits, end, self.at)
            lowest = int(able.min())
            if lowest < end:
                here = able == lowest
                lanes = slice(None) if here.all() else np.flatnonzero(here)
                self.run_block(lowest, lanes)
            elif self.waits.any():
                self.pass_barrier()
            else:
                return
        raise MachineError(f"{self.function.name} does not end")

    def pass_barrier(self) -> None:
        """All threads that are left wait; those of a thread block have to wait together."""
        for number in np.unique(self.block_of[self.waits]):
            places = np.unique(self.at[self.waits & (self.block_of == number)])
            if places.size > 1:
                raise MachineError(f"{self.function.name}: threads wait at different barriers")
        self.waits[:] = False

    def run_block(self, number: int, lanes: Any) -> None:
        """A basic block, for some of the threads."""
        self.at[lanes] = number + 1
        for instruction in self.function.blocks[number]:
            chosen = lanes
            if instruction.guard is not None:
                holds = self.registers[instruction.guard.name][lanes]
                holds = holds != instruction.guard_is_negated
                chosen = np.arange(self.count)[lanes][holds]
                if chosen.size == 0:
                    continue
            try:
                self.execute(instruction, chosen)
            except (MemoryFaultError, KeyError) as error:
                message = f"{error} (in {self.function.name}: {instruction.text})"
                raise type(error)(message) from error

    def execute(self, one: Instruction, lanes: Any) -> None:
        """One instruction."""
        if one.name == "bra":
            self.at[lanes] = self.function.labels[one.operands[-1].name]
        elif one.name in ("ret", "exit"):
            self.at[lanes] = len(self.function.blocks)
        elif one.name in ("bar", "barrier"):
            self.waits[lanes] = True
        elif one.name == "call":
            self.call(one, lanes)
        elif one.name in ("mov", "cvta"):
            self.move(one, lanes)
        elif one.name == "ld":
            self.load(one, lanes)
        elif one.name == "st":
            self.store(one, lanes)
        elif "cc" in one.modifiers or one.name in ("addc", "subc", "madc"):
            arrays = [self.read(operand, one.types[0], lanes) for operand in one.operands[1:]]
            result, carry = arithmetic.compute_with_carry(one, arrays, self.carry[lanes])
            self.carry[lanes] = carry
            self.write(one.operands[0], result, lanes)
        else:
            types = arithmetic.source_types(one)
            sources = zip(one.operands[1:], types, strict=True)
            arrays = [self.read(operand, kind, lanes) for operand, kind in sources]
            result = arithmetic.compute(one, arrays)
            self.write(one.operands[0], result.astype(DTYPES[arithmetic.result_type(one)]), lanes)

    def call(self, one: Instruction, lanes: Any) -> None:
        """``call (result), function, (parameters);``: the threads run a function to its end."""
        results, callee, given = self.call_parts(one)
        function = self.module.functions[callee]
        inner = Lanes(function, self.module, self.memory, self.block_of[lanes], self.globals())
        for variable, operand in zip(function.parameters, given, strict=True):
            inner.parameters[variable.name] = self.parameters[operand.name][lanes]
        inner.run()
        for variable, operand in zip(function.results, results, strict=True):
            self.parameters[operand.name][lanes] = inner.parameters[variable.name]

    def call_parts(self, one: Instruction) -> tuple[tuple[Any, ...], str, tuple[Any, ...]]:
        vectors = [operand.parts for operand in one.operands if isinstance(operand, Vector)]
        names = [operand.name for operand in one.operands if isinstance(operand, Symbol)]
        has_result = isinstance(one.operands[0], Vector)
        results = vectors[0] if has_result else ()
        given = vectors[has_result:]
        return results, names[0], given[0] if given else ()

    def globals(self) -> dict[str, Any]:
        return {name: one for name, one in self.symbols.items() if np.ndim(one) == 0}

    # --- operands --------------------------------------------------------------------------------

    def read(self, operand: Operand, kind: str, lanes: Any) -> Any:
        """The values of an operand for some threads, as an array of a type."""
        dtype = DTYPES[kind]
        if isinstance(operand, Register):
            bits = self.registers[operand.name][lanes]
        elif isinstance(operand, Number):
            bits = np.asarray([operand.bits & (1 << 64) - 1], np.uint64)
        elif isinstance(operand, Symbol):
            addresses = np.broadcast_to(self.symbols[operand.name], self.count)
            bits = addresses[lanes].astype(np.uint64)
        else:
            raise UnknownPTXError(f"not a value: {operand}")
        if bits.dtype.itemsize != dtype.itemsize:
            bits = bits.astype(f"u{dtype.itemsize}")
        return bits.view(dtype)

    def write(self, operand: Operand, values: Any, lanes: Any) -> None:
        """Values of a type into a register; a wider register gets the sign's bits, or zeros."""
        if not isinstance(operand, Register):
            raise UnknownPTXError(f"not a register: {operand}")
        if operand.name == "_":
            return
        declared = DTYPES[self.function.type_of(operand.name)]
        stored = declared if declared.kind == "b" else np.dtype(f"u{declared.itemsize}")
        if values.dtype.itemsize != declared.itemsize:
            wider = "i" if values.dtype.kind == "i" else "u"
            values = values.view(f"{wider}{values.dtype.itemsize}")
            values = values.astype(f"{wider}{declared.itemsize}")
        if operand.name not in self.registers:
            self.registers[operand.name] = np.zeros(self.count, stored)
        self.registers[operand.name][lanes] = np.ascontiguousarray(values).view(stored)

    def move(self, one: Instruction, lanes: Any) -> None:
        """``mov``, also between a register and its parts; ``cvta`` changes no address here."""
        target, source = one.operands
        if isinstance(target, Vector):
            whole = self.read(source, one.types[0], lanes)
            parts = whole.view(f"u{whole.dtype.itemsize // len(target.parts)}")
            for i, part in enumerate(target.parts):
                self.write(part, parts[i :: len(target.parts)], lanes)
        elif isinstance(source, Vector):
            half = f"u{8 * DTYPES[one.types[0]].itemsize // len(source.parts)}"
            parts = [self.read(part, half, lanes) for part in source.parts]
            joined = np.stack(np.broadcast_arrays(*parts), axis=-1).reshape(-1)
            self.write(target, joined.view(DTYPES[one.types[0]]), lanes)
        else:
            self.write(target, self.read(source, one.types[0], lanes), lanes)

    # --- memory ----------------------------------------------------------------------------------

    def load(self, one: Instruction, lanes: Any) -> None:
        target, source = one.operands
        dtype = DTYPES[one.types[0]]
        for i, part in enumerate(target.parts if isinstance(target, Vector) else [target]):
            if "param" in one.modifiers:
                values = self.parameter(source, dtype, i)[lanes]
            else:
                values = self.memory.load(
                    self.addresses(source, lanes) + i * dtype.itemsize, dtype
                )
            self.write(part, values, lanes)

    def store(self, one: Instruction, lanes: Any) -> None:
        target, source = one.operands
        dtype = DTYPES[one.types[0]]
        for i, part in enumerate(source.parts if isinstance(source, Vector) else [source]):
            values = self.read(part, one.types[0], lanes)
            if "param" in one.modifiers:
                self.parameter(target, dtype, i)[lanes] = values
                continue
            addresses = self.addresses(target, lanes) + i * dtype.itemsize
            self.memory.store(addresses, np.broadcast_to(values, addresses.shape))

    def parameter(self, address: Any, dtype: np.dtype[Any], i: int) -> Any:
        """A number of each thread among the bytes of a parameter."""
        start = address.offset + i * dtype.itemsize
        rows = self.parameters[address.base.name][:, start : start + dtype.itemsize]
        return rows.view(dtype)[:, 0]

    def addresses(self, address: Any, lanes: Any) -> Any:
        start = self.read(address.base, "s64", lanes)
        size = self.block_of[lanes].size
        return np.broadcast_to(start + address.offset, size)
