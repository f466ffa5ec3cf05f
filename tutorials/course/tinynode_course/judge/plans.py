"""Plans: for each step the drills, the inputs of a key, and the right values.

Requirement: a drill is a short program, the same for student and reference. A file of
``tutorials/drills`` has the name of the step's file, and pairs of functions:

    def draw_sums(rng):            in the judge: draws the inputs
        return {"x": rng.normal(size=4)}

    def drill_sums(work, inputs):  in the child: computes values with the student's work
        ...

The right values come from the reference, in another child. A drill without work for a stub gives
free points, and is left out.
"""

from __future__ import annotations

import inspect
import tempfile
import time
import types
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tinynode_course import mynode, sources
from tinynode_course.judge import compare, keys, process
from tinynode_course.judge.inside import wire
from tinynode_course.judge.shelf import PRELOAD, Shelf
from tinynode_course.mynode import NAME, Files
from tinynode_course.sources import Step


@dataclass
class StepPlan:
    """How to judge a step; all fields are of JSON."""

    key: str
    title: str
    work: str
    module: str
    libraries: list[str]
    preload: list[str]
    drill: str
    names: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    inputs: list[wire.Wire] = field(default_factory=list)
    right: list[wire.Wire] = field(default_factory=list)

    def job(self, folder: Path, first: int = 0) -> dict[str, Any]:
        """The job of a child, from a call on."""
        calls = [list(pair) for pair in zip(self.names, self.inputs, strict=True)]
        return {
            "libraries": self.libraries,
            "preload": self.preload,
            "work": str(folder),
            "module": self.module,
            "drill": self.drill,
            "calls": calls[first:],
        }

    def as_json(self) -> dict[str, Any]:
        """The plan for a worker."""
        return asdict(self)


class PlanError(Exception):
    """A drill of the course does not run on the reference."""


def drills_of(step: Step) -> Path:
    """The file of the drills of a step; the file may be missing."""
    return step.path.parent / "drills" / f"{step.name}.py"


def plan(step: Step, key: str, shelf: Shelf) -> StepPlan:
    """The plan of a step.

    Raises:
        PlanError: The drills do not run on the reference.
    """
    path = drills_of(step)
    module = sources.load(path, f"tinynode_drill_{step.name}")
    kind = "numpy" if step.builds else "tinynode"
    found = StepPlan(
        key=step.key,
        title=step.title,
        work=step.work,
        module=NAME if step.builds else step.name,
        libraries=shelf.libraries(kind, getattr(module, "WITHOUT", {})),
        preload=PRELOAD[kind],
        drill=path.read_text(encoding="utf-8"),
    )
    for name, drill in _drills(module):
        rng = keys.generator(key, step.name, name)
        found.names.append(f"drill_{name}")
        found.titles.append((drill.__doc__ or name).strip().splitlines()[0])
        found.inputs.append(wire.encode(getattr(module, f"draw_{name}")(rng)))
    found.right = _right_values(found, reference(step))
    _leave_out(found, _given(found, stub(step)))
    return found


def _drills(module: types.ModuleType) -> list[tuple[str, types.FunctionType]]:
    return [
        (name.removeprefix("drill_"), thing)
        for name, thing in vars(module).items()
        if name.startswith("drill_") and inspect.isfunction(thing)
    ]


def reference(step: Step) -> Files:
    """The files of a perfect submission: the whole ``mynode``, and the solution."""
    files = _package(mynode.whole())
    if not step.builds:
        files[step.work] = step.solution.read_text(encoding="utf-8")
    return files


def stub(step: Step) -> Files:
    """The files of a submission without work on a step: all before, and the step's stubs."""
    if not step.builds:
        return {**_package(mynode.whole()), step.work: step.stub.read_text(encoding="utf-8")}
    files = mynode.before(step.key)
    for path, text in mynode.read_files(step.stub).items():
        order = list(mynode.definitions(mynode.changed(step.key).get(path, "")))
        files[path] = mynode.add_stubs(files.get(path, ""), text, order)[0]
    return _package(files)


def _package(files: Files) -> Files:
    return {f"{NAME}/{path}": text for path, text in files.items()}


def run(one: StepPlan, files: Files) -> list[tuple[Any, str]]:
    """For each drill of a plan the value on some files, and an error or ""."""
    with tempfile.TemporaryDirectory(prefix="tinynode-judge-") as folder:
        mynode.write_files(files, Path(folder))
        return outcomes(one, Path(folder), process.ChildLimits())


def outcomes(one: StepPlan, folder: Path, limits: process.ChildLimits) -> list[tuple[Any, str]]:
    """For each drill the value on the work in a folder, and an error or "".

    A drill can end the child. Another child goes on, three times at
    most.
    """
    found: list[tuple[Any, str]] = []
    end = time.monotonic() + limits.total
    for _ in range(4):
        more, reason = _run_from(one, folder, limits, len(found))
        found += more
        if len(found) >= len(one.names):
            return found
        found.append((None, reason or "no value came"))
        is_stuck = not more and len(found) == 1 and "import" in reason
        if is_stuck or time.monotonic() > end:
            break
    missing = len(one.names) - len(found)
    return found + [(None, found[-1][1])] * missing


def _run_from(
    one: StepPlan, folder: Path, limits: process.ChildLimits, first: int
) -> tuple[list[tuple[Any, str]], str]:
    """The outcomes from a drill on, and the reason of an early end."""
    found: list[tuple[Any, str]] = []
    imported = False
    try:
        for event in process.events(one.job(folder, first), limits):
            kind = event.get("event")
            if kind == "import failed":
                return found, f"the import failed: {event.get('error')}"
            imported = imported or kind == "imported"
            if kind in ("result", "failed"):
                if event.get("number") != len(found) or first + len(found) >= len(one.names):
                    return found, "the program writes results of its own to the pipe of the judge"
                found.append(_outcome(event))
    except process.Stopped as stopped:
        return found, str(stopped) if imported else f"at the import: {stopped}"
    return found, ""


def _outcome(event: dict[str, Any]) -> tuple[Any, str]:
    if event["event"] == "failed":
        return None, str(event.get("error"))[:500]
    try:
        return wire.decode(event.get("value")), ""
    except wire.WireError as error:
        return None, f"the value is none that a drill returns: {error}"


def _right_values(one: StepPlan, files: Files) -> list[wire.Wire]:
    values = []
    for name, (value, error) in zip(one.names, run(one, files), strict=True):
        if error:
            raise PlanError(f"{one.title}: {name} fails on the reference: {error}")
        values.append(wire.encode(value))
    return values


def _given(one: StepPlan, files: Files) -> list[bool]:
    """For each drill: True if the stub passes."""
    return [not verdict(one, place, *got) for place, got in enumerate(run(one, files))]


def verdict(one: StepPlan, place: int, value: Any, error: str) -> str:
    """The reason why a drill is not passed; "" for the right value."""
    return error or compare.difference(value, wire.decode(one.right[place]))


def _leave_out(one: StepPlan, given: Sequence[bool]) -> None:
    for name in ("names", "titles", "inputs", "right"):
        values = getattr(one, name)
        setattr(one, name, [x for x, is_given in zip(values, given, strict=True) if not is_given])
