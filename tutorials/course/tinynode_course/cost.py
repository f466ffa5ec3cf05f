"""The command ``cost``: the cheap gradient principle, measured on the learner's engine.

Requirement: a learner sees the constant of the principle on the own engine. A gradient of n inputs
costs a few times the function, for every n; central differences cost 2 n times the function. The
function is y = sum(sin(x) * x + exp(x) * sin(x)). Times are measured. Operations are counted from
a film of the engine: ``OPERATIONS`` for each function that ran, and an addition for each gradient
that was added to an earlier gradient.

Source: Baur and Strassen, The complexity of partial derivatives, Theoretical Computer Science 22,
1983. Griewank and Walther, Evaluating Derivatives, second edition, SIAM 2008, chapters 3 and 4.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tinynode as tn
from tinynode.commands.command_line import CommandError
from tinynode_course import mynode
from tinynode_course.progress import PROGRAM

SUMMARY = "measure a gradient against its function, on your own engine"

SIZES = (10, 1_000, 100_000, 1_000_000)
SECONDS = 0.3
"""The time for each measurement; the fastest run counts."""

OPERATIONS = {"Add": (1, 0), "Multiply": (1, 2), "Sin": (1, 2), "Exp": (1, 1), "Sum": (1, 0)}
"""Operations for each element: of forward, and of backward by the formula of the gradient.

Add passes gy on. Multiply has two products. Sin has a cosine and a product. Exp has a product with
the output. Sum repeats gy.
"""


def run(options: argparse.Namespace) -> int:
    """Measure and print; 0 for any result."""
    engine = engine_of_the_folder()
    whose = f"your {mynode.NAME}" if mynode.source.folder is not None else "the reference"
    print(f"engine: {whose}.  y = sum(sin(x) * x + exp(x) * sin(x)),  x has n elements\n")
    print("        n   time of y   y and gradient   factor   central differences of y")
    for size in SIZES:
        function, both = times(engine, size)
        differences = duration(2 * size * function)
        print(
            f"{size:9,}   {duration(function):>9}   {duration(both):>14}   {both / function:6.1f}"
            f"   {differences:>12}"
        )
    forward, backward = operations(engine)
    total = (forward + backward) / forward
    print(f"\noperations for each element: {forward} of y, {backward} more for the gradient")
    print(f"factor: {total:.1f}. The bound of the theorem is 4, for every n.")
    return 0


def engine_of_the_folder() -> Any:
    """The learner's package in this folder, or the reference of the last step.

    Raises:
        CommandError: The package cannot be imported, or has not come to step 7.
    """
    mynode.refuse_stranger()
    is_own = Path(mynode.NAME, "__init__.py").is_file()
    mynode.source.folder = Path.cwd() if is_own else None
    try:
        mynode.use_mynode(mynode.builders()[-1].key)
        engine = importlib.import_module(mynode.NAME)
        value(engine, np.ones(2))
    except CommandError:
        raise
    except Exception as error:  # of the learner's program, whatever it is
        raise CommandError(
            f"your {mynode.NAME} can't compute y = sum(sin(x) * x + exp(x) * sin(x)): "
            f"{type(error).__name__}: {error}. The function needs step 7: {PROGRAM} check 07",
            1,
        ) from None
    return engine


def value(engine: Any, array: Any) -> Any:
    """The function, on an engine."""
    x = engine.Variable(array)
    sine = engine.sin(x)
    return engine.sum(sine * x + engine.exp(x) * engine.sin(x))


def times(engine: Any, size: int) -> tuple[float, float]:
    """The seconds of the function, and of the function with its gradient."""
    array = np.linspace(0.0, 1.0, size)

    def function() -> None:
        value(engine, array)

    def both() -> None:
        value(engine, array).backward()

    return fastest(function), fastest(both)


def fastest(program: Callable[[], None]) -> float:
    """The seconds of the fastest run: at least two runs, and ``SECONDS`` in all."""
    found: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(found) < 2 or time.perf_counter() < end:
        start = time.perf_counter()
        program()
        found.append(time.perf_counter() - start)
    return min(found)


def operations(engine: Any) -> tuple[int, int]:
    """The operations for each element: of the function, and of the gradient on top.

    Raises:
        CommandError: A function without an entry in ``OPERATIONS`` ran.
    """
    with tn.show.record() as film:
        value(engine, np.linspace(0.0, 1.0, 3)).backward()
    forward = backward = 0
    for step in film.steps:
        kind, name = step["kind"], step["class"]
        if kind not in ("forward", "backward"):
            continue
        if name not in OPERATIONS:
            raise CommandError(f"the operations of {name} are not known: expected {[*OPERATIONS]}")
        if kind == "forward":
            forward += OPERATIONS[name][0]
        else:
            added = [how for _, _, how, _ in step["grad_inputs"]].count("added")
            backward += OPERATIONS[name][1] + added
    return forward, backward


def duration(seconds: float) -> str:
    """``35 us``, ``4.2 ms``, ``3 s`` or ``2 h``."""
    for limit, scale, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms"), (120.0, 1.0, "s")):
        if seconds < limit:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds / 3600:.2g} h"
