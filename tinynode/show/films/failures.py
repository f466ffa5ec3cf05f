"""Errors in a film: the words, the failing call, and the Variables of the call.

Requirement: the film of a failing program ends at the failing call. Hooks hear an error of forward
and of backward. Other errors leave only a traceback: a wrong argument, an optimizer's update, a
line of the program. So failures are read from the frames of a traceback, and no frame is kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple

from tinynode.core.function_node import FunctionNode
from tinynode.core.variable import Variable
from tinynode.errors import InvalidType, short_name
from tinynode.nn.optimizers import Optimizer
from tinynode.show.films.names import SourceNames
from tinynode.show.films.sources import Place, is_source_frame, is_user_frame, place_of
from tinynode.show.texts import LONGEST_NOTE, cut

MOST_OPERANDS = 20
"""The most Variables of a failing call in a film."""


LONGEST_BRIEF = 240
"""The most letters of an error in a line."""


class FailedCall(NamedTuple):
    """A failing call.

    Attributes:
        name: the name of the function or method in tinynode, or "".
        owner: the FunctionNode of a failing application, the optimizer of an update, or None.
        operands: the Variables among the arguments; all inputs of a FunctionNode.
        places: the user's expressions on the way to the call, the innermost first.
    """

    name: str
    owner: Any
    operands: tuple[Any, ...]
    places: tuple[Place, ...]


def told(error: BaseException, *, with_words: bool = True) -> dict[str, Any]:
    """An error for a step: the name of the class, the words, and the raising line.

    "brief" has the words in a line; of a check of types, the condition and the actual values.
    """
    lines = [line for line in _lines(error) if is_source_frame(line[0])]
    at = (lines[-1][0].f_code.co_filename, lines[-1][2]) if lines else None
    name, words = short_name(type(error).__name__), _words(error) if with_words else ""
    brief = " ".join(words.split())
    if isinstance(error, InvalidType) and with_words:
        brief = f"expected {error.expect}, got {error.actual}"
    return {"name": name, "brief": cut(brief, LONGEST_BRIEF), "text": words, "at": at}


def in_one_line(error: Mapping[str, Any]) -> str:
    """``ValueError: its words``, from the error of a step."""
    return f"{error['name']}: {error['brief']}" if error["brief"] else str(error["name"])


def _words(error: BaseException) -> str:
    """The message and the notes of an error; an error of a program may have a bad message."""
    try:
        lines = [str(error), *getattr(error, "__notes__", ())]
        return cut("\n".join(lines), LONGEST_NOTE)
    except Exception as problem:
        return f"(the message of the error raised {type(problem).__name__})"


# --- frames --------------------------------------------------------------------------------------


def inputs_under_way(function: FunctionNode) -> tuple[Any, ...]:
    """The inputs of a function with a running ``apply``."""
    frame = inspect.currentframe()
    while frame is not None:
        if _applies(frame) and frame.f_locals["self"] is function:
            return _as_tuple(frame.f_locals["inputs"])
        frame = frame.f_back
    return ()


def is_behind(function: Any, error: BaseException) -> bool:
    """True if an error came out of a call with the function among the local values."""
    for one in _chain(error):
        for frame, *_ in _lines(one):
            if any(value is function for value in frame.f_locals.values()):
                return True
    return False


def failed_call(error: BaseException) -> FailedCall:
    """The failing call behind an error.

    The innermost application of a function counts, else the update of an optimizer, else the
    function of tinynode in the user's line.
    """
    for one in _chain(error):
        lines = list(_lines(one))
        for number in range(len(lines) - 1, -1, -1):
            frame = lines[number][0]
            if _applies(frame):
                function, inputs = frame.f_locals["self"], frame.f_locals["inputs"]
                places = _places(lines[:number])
                return FailedCall(function.label, function, _as_tuple(inputs), places)
    lines = list(_lines(error))
    for number, (frame, *_) in enumerate(lines):
        owner = frame.f_locals.get("self")
        if frame.f_code.co_name == "update" and isinstance(owner, Optimizer):
            return FailedCall(f"{type(owner).__name__}.update", owner, (), _places(lines[:number]))
    last = max((i for i, line in enumerate(lines) if is_user_frame(line[0])), default=-1)
    places = _places(lines[: last + 1])
    called = [line[0] for line in lines[last + 1 :] if last >= 0][:1]
    if called:
        name = called[0].f_code.co_name.strip("_")
        return FailedCall(name, None, _variables_in(called[0]), places)
    operands = _variables_of_line(lines[last][0], places[0]) if places else ()
    return FailedCall("", None, operands, places)


def _applies(frame: FrameType) -> bool:
    return frame.f_code is FunctionNode.apply.__code__


def _as_tuple(inputs: Any) -> tuple[Any, ...]:
    return tuple(inputs)[:MOST_OPERANDS] if isinstance(inputs, tuple | list) else (inputs,)


def _variables_in(frame: FrameType) -> tuple[Variable, ...]:
    """The Variables among the arguments of a function, also in lists."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    found: list[Variable] = []
    for name in code.co_varnames[:count]:
        argument = frame.f_locals.get(name)
        parts = argument if isinstance(argument, tuple | list) else (argument,)
        found += [x for x in parts[:MOST_OPERANDS] if isinstance(x, Variable)]
    return tuple(found[:MOST_OPERANDS])


def _variables_of_line(frame: FrameType, place: Place) -> tuple[Variable, ...]:
    """The Variables with a name in the raising expression."""
    found = {}
    for name in SourceNames().names_in(place):
        value = frame.f_locals.get(name, frame.f_globals.get(name))
        if isinstance(value, Variable):
            found[name] = value
    return tuple(found.values())[:MOST_OPERANDS]


_Line = tuple[FrameType, int, int]
"""A frame of a traceback, the instruction, and the line."""


def _lines(error: BaseException) -> Iterator[_Line]:
    """The frames of a traceback, the innermost last."""
    link = error.__traceback__
    while link is not None:
        yield link.tb_frame, link.tb_lasti, link.tb_lineno
        link = link.tb_next


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, then the errors behind: of ``raise ... from``, or of an ``except``."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _places(lines: list[_Line]) -> tuple[Place, ...]:
    """The user's expressions in frames, the innermost first."""
    found = [place_of(f.f_code, at, line) for f, at, line in lines if is_user_frame(f)]
    return tuple(reversed(found))
