"""Calls of each function with an integer replaced by a hostile value, in a child with limits.

The calls come from the rows of ``op_cases``: while the rows run, a wrapper around each public
function notes the arguments. A row of the table so gives calls of all functions inside.

    python tests/support/hostile_arguments.py FIRST EVERY

prints a line of JSON before and after each call, from number ``FIRST`` on, of which only one out
of ``EVERY`` is made. ``outcomes`` starts the children and goes on after a call that ends one.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import select
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tinynode as tn
from tinynode import functions

MEMORY = 4 * 2**30
"""The address space of a child, in bytes."""
SECONDS = 6.0
"""A call takes less; the start of a child takes longer."""
ROOT = Path(__file__).resolve().parents[2]
PER_FUNCTION = 4
"""The number of noted calls of a function with the same kinds of arguments, at most."""


def cyclic() -> list[Any]:
    """A list that holds itself."""
    made: list[Any] = []
    made.append(made)
    return made


def deep() -> list[Any]:
    """A list of 100,000 levels."""
    made: list[Any] = [1.0]
    for _ in range(100_000):
        made = [made]
    return made


VALUES: dict[str, Callable[[], Any]] = {
    "2**31": lambda: 2**31,
    "2**63": lambda: 2**63,
    "2**64": lambda: 2**64,
    "-2**63": lambda: -(2**63),
    "10**30": lambda: 10**30,
    "10**5000": lambda: 10**5000,
    "True": lambda: True,
    "1.0": lambda: 1.0,
    "np.int64(2**40)": lambda: np.int64(2**40),
    "np.uint64(2**63)": lambda: np.uint64(2**63),
    "'a'": lambda: "a",
    "cyclic": cyclic,
    "deep": deep,
}


class Call(NamedTuple):
    """A call of a public function: its name, the function, and the arguments by name."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]


class Attack(NamedTuple):
    """A call with a hostile value at a place: an argument, or an entry of its tuple."""

    call: Call
    argument: str
    entry: int | None
    value: str

    def run(self) -> Any:
        signature = inspect.signature(self.call.function)
        hostile = VALUES[self.value]()
        if self.entry is not None:
            given = list(self.call.arguments[self.argument])
            given[self.entry] = hostile
            hostile = tuple(given)
        arguments = {**self.call.arguments, self.argument: hostile}
        bound = signature.bind_partial()
        bound.arguments.update({n: arguments[n] for n in signature.parameters if n in arguments})
        return self.call.function(*bound.args, **bound.kwargs)

    @property
    def is_flag(self) -> bool:
        """True for an argument that is True or False: no other value of VALUES may pass."""
        annotation = inspect.signature(self.call.function).parameters[self.argument].annotation
        return str(annotation) in ("bool", "<class 'bool'>")

    def __str__(self) -> str:
        entry = "" if self.entry is None else f"[{self.entry}]"
        return f"{self.call.name}({self.argument}{entry}={self.value})"


# --- the calls -----------------------------------------------------------------------------------


class Notes:
    """The noted calls of public functions."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._seen: dict[str, set[Any]] = {}

    def install(self) -> None:
        """Replace the public functions by functions that note the call."""
        modules = [functions, functions.linalg, functions.fft]
        wrapped: dict[Any, Any] = {}
        for module in modules:
            for name in sorted(vars(module)):
                function = vars(module)[name]
                if not inspect.isfunction(function) or name not in _public_names(function):
                    continue
                wrapped.setdefault(function, self._noting(function.__name__, function))
                setattr(module, name, wrapped[function])

    def _noting(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def noting(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            bound = dict(signature.bind(*args, **kwargs).arguments)
            kinds = tuple((key, type(value).__name__) for key, value in bound.items())
            seen = self._seen.setdefault(name, set())
            if kinds not in seen and len(seen) < PER_FUNCTION:
                seen.add(kinds)
                self.calls.append(Call(name, function, bound))
            return result

        return noting


def _public_names(function: Any) -> list[str]:
    home = sys.modules[function.__module__]
    is_ours = function.__module__.startswith("tinynode.functions")
    return list(getattr(home, "__all__", ())) if is_ours else []


def noted_calls() -> list[Call]:
    """The calls of the rows of the table."""
    notes = Notes()
    notes.install()
    from op_cases import CASES
    from support.op_drivers import call, draw_inputs, make_inputs

    device = tn.get_device("numpy")
    for case in CASES:
        with contextlib.suppress(tn.errors.DeviceError):  # a row for a device of the tests
            call(case, make_inputs(case, draw_inputs(case, case.dtypes[0]), device))
    return notes.calls


def made_calls() -> list[Call]:
    """Calls that no row makes: arrays by shape, layers, and data."""
    x = tn.asarray(np.ones((2, 3)))
    xp: Any = x.__array_namespace__()
    given = {
        "asarray": (tn.asarray, {"obj": [1]}),
        "Variable": (lambda array: tn.Variable(array), {"array": 1}),
        "arange": (xp.arange, {"start": 0, "stop": 3, "step": 1}),
        "linspace": (xp.linspace, {"start": 0, "stop": 3, "num": 1}),
        "zeros": (xp.zeros, {"shape": (2, 3)}),
        "ones": (xp.ones, {"shape": (2, 3)}),
        "empty": (xp.empty, {"shape": (2, 3)}),
        "full": (xp.full, {"shape": (2, 3), "fill_value": 1}),
        "eye": (xp.eye, {"n_rows": 2, "n_cols": 3, "k": 1}),
        "xp.reshape": (xp.reshape, {"x": x, "shape": (3, 2)}),
        "xp.broadcast_to": (xp.broadcast_to, {"x": x, "shape": (4, 2, 3)}),
        "xp.tile": (xp.tile, {"x": x, "repetitions": (2, 3)}),
        "xp.asarray": (xp.asarray, {"obj": [1]}),
    }
    return [Call(name, function, dict(one)) for name, (function, one) in given.items()]


def attacks() -> list[Attack]:
    """Each hostile value at each place of each call."""
    found: dict[tuple[str, str, int | None, str], Attack] = {}
    for call in [*noted_calls(), *made_calls()]:
        for argument, entry in _places(call):
            for value in VALUES:
                key = call.name, argument, entry, value
                kinds = [type(one).__name__ for one in call.arguments.values()]
                found.setdefault((*key, *kinds), Attack(call, argument, entry, value))
    return list(found.values())


def _places(call: Call) -> Iterator[tuple[str, int | None]]:
    """The arguments that are integers or tuples of integers, or may be."""
    for name, parameter in inspect.signature(call.function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        value = call.arguments.get(name, parameter.default)
        if isinstance(value, tuple | list):
            yield name, None
            for i, one in enumerate(value[:2]):
                if isinstance(one, int | tuple | None):
                    yield name, i
        elif isinstance(value, int) or "int" in str(parameter.annotation).replace("Hint", ""):
            yield name, None


# --- the child -----------------------------------------------------------------------------------


def _tell(**facts: Any) -> None:
    os.write(1, json.dumps(facts).encode() + b"\n")


def _child(first: int, every: int) -> None:
    import resource

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    todo = attacks()[::every]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for number in range(first, len(todo)):
        attack = todo[number]
        facts = {"argument": attack.argument, "name": attack.call.name, "value": attack.value}
        _tell(number=number, attack=str(attack), is_flag=attack.is_flag, **facts)
        try:
            result = attack.run()
        except BaseException as error:
            text = str(error)
            _tell(number=number, error=type(error).__name__, text=text[:300], length=len(text))
        else:
            _tell(number=number, result=str(getattr(result, "shape", type(result).__name__)))
            del result


# --- the parent ----------------------------------------------------------------------------------


def outcomes(every: int = 1) -> Iterator[dict[str, Any]]:
    """The facts of each attack: with ``error`` and ``text``, ``result``, or ``ended``."""
    first = 0
    while True:
        ended: dict[str, Any] | None = None
        for facts in _run(first, every):
            ended = facts
            if "ended" in facts or "error" in facts or "result" in facts:
                yield facts
        if ended is None or "ended" not in ended:
            return
        first = ended["number"] + 1


def _run(first: int, every: int) -> Iterator[dict[str, Any]]:
    """The facts of a child's attacks; the last has ``ended`` if a call ended or stopped it."""
    command = [sys.executable, __file__, str(first), str(every)]
    tests = Path(__file__).parents[1]
    path = os.pathsep.join(
        [str(tests), str(ROOT), str(ROOT / "backends"), os.environ.get("PYTHONPATH", "")]
    )
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        facts: dict[str, Any] = {}
        buffer = b""
        limit = 120.0
        while select.select([process.stdout], [], [], limit)[0]:
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                break
            limit = SECONDS
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                told = json.loads(line)
                facts = told if "attack" in told else {**facts, **told}
                yield facts
        else:
            process.kill()
            yield {**facts, "ended": f"no answer after {SECONDS:g} s"}
            return
        if process.wait():
            yield {**facts, "ended": f"status {process.returncode}"}


if __name__ == "__main__":
    _child(int(sys.argv[1]), int(sys.argv[2]))
