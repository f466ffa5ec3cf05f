"""The memory of a film's program: the arrays, the holders, and the steps from start to end.

Requirement: a reader finds the holder of the memory, and the line of the program. A film keeps no
array alive. So the recorder tells ``MemoryWatch`` of each array that the film meets. Weak
references tell when an array or a holder is freed. ``MemoryLog`` has the events, in numbers.

A *buffer* is a piece of memory: all views of an array are one buffer, and count once. A buffer has
holders: Variables, gradients, moments of optimizers, and functions with retained arrays. An event
between two steps belongs to the later step.

Temporary arrays inside a function, and arrays inside a compiled function, are not met. Arrays of a
library without weak references have no events.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.devices import Array, without_hidden_axes
from tinynode.hooks.memory import number_of_bytes

VARIABLE, GRADIENT, MOMENT, FUNCTION = "variable", "gradient", "moment", "function"
"""The sorts of holders."""

Holder: TypeAlias = tuple[str, str, str]
"""The sort of a holder, the id of the film's node, and the name of a moment."""

Variables: TypeAlias = tuple[Sequence[str], Sequence[Variable]]
"""The ids of nodes of the film, and the Variables."""

FREED: Holder = ("freed", "", "")
"""Stands in an event for the end of the buffer."""


@dataclass(eq=False, slots=True)
class Buffer:
    """A piece of memory.

    Attributes:
        bytes: the size.
        made: the number of the step in which the film met the buffer.
        first: the first holder.
        is_given: True if no recorded function made the array: the program brought the array.
    """

    bytes: int
    made: int
    first: Holder
    is_given: bool


@dataclass(eq=False)
class MemoryLog:
    """What happened to the memory, in numbers and ids.

    Attributes:
        buffers: all buffers, in the order of their appearance.
        events: the step, the number of the buffer, the holder, and True for a beginning.
        kept_by: for the id of each function alive at the end, the id of a living result with the
            function in the graph.
    """

    buffers: list[Buffer] = field(default_factory=list)
    events: list[tuple[int, int, Holder, bool]] = field(default_factory=list)
    kept_by: dict[str, str] = field(default_factory=dict)


class _Memory(weakref.ref[Any]):
    """A weak reference to the array that owns a buffer.

    Attributes:
        key: the id of the array.
        number: the number of the buffer.
    """

    __slots__ = ("key", "number")
    key: int
    number: int


class _Held(weakref.ref[Variable]):
    """A weak reference to a Variable.

    Attributes:
        key: the id of the Variable.
        number: the number of the buffer.
        holder: the Variable as a holder.
        is_inner: True for a Variable first met inside of a backward pass.
    """

    __slots__ = ("holder", "is_inner", "key", "number")
    key: int
    number: int
    holder: Holder
    is_inner: bool


class _Retaining(weakref.ref[FunctionNode]):
    """A weak reference to a function.

    Attributes:
        key: the id of the function.
        numbers: the numbers of the retained buffers.
        holder: the function as a holder.
    """

    __slots__ = ("holder", "key", "numbers")
    key: int
    numbers: list[int]
    holder: Holder


class MemoryWatch:
    """Writes the ``MemoryLog`` of a film.

    Args:
        steps: the steps of the film; the number of steps so far is that of the step under way.
        log: gets the events.
    """

    def __init__(self, steps: Sequence[Any], log: MemoryLog) -> None:
        self._steps = steps
        self._buffers = log.buffers
        self._events = log.events
        self._kept_by = log.kept_by
        self._memories: dict[int, _Memory] = {}
        self._variables: dict[int, _Held] = {}
        self._functions: dict[int, _Retaining] = {}
        self._gradients: dict[int, Holder] = {}
        self._moments: dict[Holder, int] = {}

    # --- what the film meets ---------------------------------------------------------------------

    def applied(
        self,
        function: FunctionNode,
        node: str,
        inputs: Variables,
        outputs: Variables,
        *,
        is_inner: bool,
    ) -> None:
        """A function was applied: Variables hold arrays, and the function retains some.

        Args:
            function: the function.
            node: the id of the film's node.
            inputs: the inputs.
            outputs: the outputs.
            is_inner: True inside of a backward pass.
        """
        for name, x in zip(*inputs, strict=True):
            self._hold(x, name, is_given=not is_inner, is_inner=is_inner)
        for name, y in zip(*outputs, strict=True):
            self._hold(y, name, is_given=False, is_inner=is_inner)
        retained = (*function.retained_input_data, *function.retained_output_data)
        if function.inputs is not None and retained:
            holder = (FUNCTION, node, "")
            reference = _Retaining(function, self._function_freed)
            reference.key, reference.holder = id(function), holder
            reference.numbers = self._numbers_of(retained, holder)
            for number in reference.numbers:
                self._events.append((len(self._steps), number, holder, True))
            self._functions[id(function)] = reference

    def gradient(self, gradient: Variable | None, node: str) -> None:
        """The gradient of a node is in the table of a backward pass, or in ``grad``.

        An array that goes on as the gradient of another node counts for the later node.
        """
        if gradient is None:
            return
        holder = (GRADIENT, node, "")
        number = self._number_of(gradient.raw, holder, is_given=False)
        old = None if number is None else self._gradients.get(number)
        if number is None or old == holder:
            return
        self._gradients[number] = holder
        self._events.append((len(self._steps), number, holder, True))
        if old is not None:
            self._let_go(number, old)
        known = self._variables.get(id(gradient))
        if known is not None and known.is_inner:
            del self._variables[id(gradient)]
            self._let_go(number, known.holder)

    def updated(self, p: Variable, node: str, moments: dict[str, Array]) -> None:
        """An optimizer has replaced a parameter's array and its moments."""
        self._hold(p, node, is_given=False, is_inner=False)
        self.gradient(p.grad_var, node)
        for name, array in moments.items():
            holder = (MOMENT, node, name)
            number = self._number_of(array, holder, is_given=False)
            old = self._moments.get(holder)
            if number is not None and old != number:
                self._moments[holder] = number
                self._events.append((len(self._steps), number, holder, True))
                if old is not None:
                    self._let_go(old, holder)

    def detached(self, source: Variable, copy: Variable) -> None:
        """A second Variable holds the array of a Variable."""
        known = self._variables.get(id(source))
        if known is not None:
            self._hold(copy, known.holder[1], is_given=False, is_inner=False)

    def array_assigned(self, x: Variable) -> None:
        """A Variable is about to hold another array."""
        known = self._variables.pop(id(x), None)
        if known is not None:
            self._let_go(known.number, known.holder)

    def end(self) -> None:
        """Note which results keep living functions, and drop all references."""
        self._find_keepers()
        self._memories.clear()
        self._variables.clear()
        self._functions.clear()
        self._gradients.clear()
        self._moments.clear()

    def _find_keepers(self) -> None:
        """Walk back from the living results, the oldest first, to the functions in the graphs."""
        seen: set[FunctionNode] = set()
        for held in self._variables.values():
            x = held()
            creator = None if x is None else x.creator_node
            waiting = [] if creator is None else [creator]
            while waiting:
                function = waiting.pop()
                if function in seen:
                    continue
                seen.add(function)
                known = self._functions.get(id(function))
                if known is not None:
                    self._kept_by[known.holder[1]] = held.holder[1]
                nodes = function.inputs or ()
                waiting += [node.creator_node for node in nodes if node.creator_node is not None]

    # --- buffers and holders ---------------------------------------------------------------------

    def _hold(self, x: Variable, node: str, *, is_given: bool, is_inner: bool) -> None:
        """A Variable holds an array, and lets go of the former array.

        The array of a gradient stays a gradient, whatever Variables hold the array later.
        """
        holder = (VARIABLE, node, "")
        number = self._number_of(x.raw, holder, is_given=is_given)
        known = self._variables.get(id(x))
        if number is None or (known is not None and known.number == number):
            return
        if known is not None:
            self._let_go(known.number, known.holder)
            known.number = number
            self._events.append((len(self._steps), number, known.holder, True))
        elif number not in self._gradients:
            held = _Held(x, self._variable_freed)
            held.key, held.number = id(x), number
            held.holder, held.is_inner = holder, is_inner
            self._variables[id(x)] = held
            self._events.append((len(self._steps), number, holder, True))

    def _numbers_of(self, arrays: Sequence[Array | None], holder: Holder) -> list[int]:
        """The numbers of the buffers of some arrays, each once."""
        numbers: list[int] = []
        for array in arrays:
            number = self._number_of(array, holder, is_given=False)
            if number is not None and number not in numbers:
                numbers.append(number)
        return numbers

    def _number_of(self, array: Array | None, holder: Holder, *, is_given: bool) -> int | None:
        """The number of an array's buffer, which may be new; None without weak references."""
        memory = self._memories.get(id(array))
        if memory is not None:  # the owner itself, as most arrays are
            return memory.number
        if array is None:
            return None
        owner = owner_of(array)
        memory = self._memories.get(id(owner))
        if memory is not None:
            return memory.number
        try:
            memory = _Memory(owner, self._memory_freed)
        except TypeError:
            return None
        number = len(self._buffers)
        is_array = type(owner) is numpy.ndarray
        size = owner.nbytes if is_array else number_of_bytes(owner)
        self._buffers.append(Buffer(size, len(self._steps), holder, is_given))
        memory.key, memory.number = id(owner), number
        self._memories[id(owner)] = memory
        return number

    def _let_go(self, number: int, holder: Holder) -> None:
        self._events.append((len(self._steps), number, holder, False))

    # --- what Python frees -----------------------------------------------------------------------

    def _memory_freed(self, memory: _Memory) -> None:
        if self._memories.pop(memory.key, None) is not None:
            self._gradients.pop(memory.number, None)
            self._events.append((len(self._steps), memory.number, FREED, False))

    def _variable_freed(self, held: _Held) -> None:
        if self._variables.get(held.key) is held:
            del self._variables[held.key]
            self._let_go(held.number, held.holder)

    def _function_freed(self, function: _Retaining) -> None:
        if self._functions.pop(function.key, None) is not None:
            for number in function.numbers:
                self._let_go(number, function.holder)


def owner_of(array: Array) -> Array:
    """The array that owns the memory of an array: of a view, the array behind all views.

    The arrays of some libraries have no ``base``. There, a view counts as an array of its own.
    """
    if type(array) is not numpy.ndarray:
        array = without_hidden_axes(array)
    base = getattr(array, "base", None)
    while base is not None and hasattr(base, "dtype"):
        array, base = base, getattr(base, "base", None)
    return array
