"""The recording of a film: nodes, edges and steps, as texts and numbers only.

Requirement: the recorder writes the recording; iterations, names and formats read the recording.
So the recording stands below all of them.
"""

from __future__ import annotations

import functools
import re
import weakref
from dataclasses import dataclass, field
from typing import Any

from tinynode.errors import short_name
from tinynode.show.films.failures import is_behind, told
from tinynode.show.films.memory import MemoryLog
from tinynode.show.films.sources import Place
from tinynode.show.films.values import Values
from tinynode.show.films.watched import Watched

Step = dict[str, Any]

MAX_PICTURE = 3000
"""The most steps of a picture, and the most functions from before the recording."""

MOST_WORDS = 20
"""The most steps with the words of an error."""

GONE = "(gone)"
"""The label of a variable freed before the film knew the variable."""

_LISTS = (
    *("inputs", "outputs", "grad_outputs", "grad_inputs", "retained", "freed", "queue", "ran"),
    *("cleared", "updates", "copied"),
)


@dataclass(eq=False)
class FilmNode:
    """A node of the film's graph.

    Attributes:
        id: ``"v0"`` for a variable, ``"f0"`` for a function.
        label: a variable's name, or nothing; a function's label.
        facts: short lines for the picture.
        rank: as in the graph.
        phase: ``"forward"``, or ``"backward"`` for a part connected by a sweep.
        born: the index of the node's first step.
        places: for a function, the running expressions of user code, the innermost first.
        is_named: True if the label of a variable is the variable's name.
        is_state: True for a parameter or a buffer: the dots in its name separate modules.
    """

    id: str
    label: str
    facts: tuple[str, ...]
    rank: int
    phase: str
    born: int
    places: tuple[Place, ...] = ()
    is_named: bool = False
    is_state: bool = False

    @property
    def kind(self) -> str:
        """``"variable"`` or ``"function"``."""
        return "variable" if self.id[0] == "v" else "function"


def _is_failed_end(step: Step) -> bool:
    return step["kind"] == "end" and step["error"] is not None


@functools.lru_cache(maxsize=1024)
def _names_axes(docstring: str) -> bool:
    return re.search(r"\bover (an axis|the axis|axes|the axes)\b", docstring) is not None


def reduced_axes(function: Any) -> list[int] | None:
    """The axes of a sum, a mean or a norm; None for a function whose docstring names no axes."""
    if not _names_axes(type(function).__doc__ or ""):
        return None
    axes = getattr(function, "axes", getattr(function, "axis", None))
    found = axes if isinstance(axes, tuple) else (axes,)
    whole = [axis for axis in found if type(axis) is int]
    return whole if len(whole) == len(found) else None


@dataclass(eq=False)
class Fold:
    """A segment of a folded film.

    Attributes:
        title: the title of the inside; empty for the whole film.
        box: the id of the opened box; None for the whole film.
        around: the index of the segment with the box.
    """

    title: str
    box: str | None
    around: int


@dataclass(eq=False)
class Recording:
    """What a recorder has seen.

    Attributes:
        title: shown above the film.
        note: the reason if the film ended early, else None.
        asked: questions, each with the number of steps recorded before the question.
        automatic: the largest number of automatic questions.
        nodes: the nodes, in the order of their appearance.
        edges: for source and target, the phase of the edge.
        steps: the events in their order.
        values: summaries of arrays; the steps refer to them by index.
        devices: the names of the devices.
        classes: by key, the classes of functions and optimizers.
        updates: by the key of an optimizer, the class with the formula of the update.
        modules: the names of Python modules in the program, such as ``F``.
        watched: the pictures of predictions.
        recipes: by the index of a step, what a replay needs beside the values.
        memory_log: who holds which array, from which step to which.
        is_folded: True if calls of the program are drawn as boxes.
        folds: of a folded film, the opened box of each segment.
        cuts: of a folded film, the first step of each segment.
        failures: the number of steps with an error.
        has_failed: True if the program ended by the error in the last step.
    """

    title: str | None = None
    note: str | None = None
    asked: list[tuple[int, dict[str, Any]]] = field(default_factory=list, repr=False)
    automatic: int = field(default=0, repr=False)
    nodes: list[FilmNode] = field(default_factory=list, repr=False)
    edges: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)
    steps: list[Step] = field(default_factory=list, repr=False)
    values: Values = field(default_factory=Values, repr=False)
    devices: dict[str, None] = field(default_factory=dict, repr=False)
    classes: dict[str, type] = field(default_factory=dict, repr=False)
    updates: dict[str, type] = field(default_factory=dict, repr=False)
    modules: set[str] = field(default_factory=set, repr=False)
    watched: Watched = field(default_factory=Watched, repr=False)
    recipes: dict[int, Any] = field(default_factory=dict, repr=False)
    memory_log: MemoryLog = field(default_factory=MemoryLog, repr=False)
    is_folded: bool = field(default=False, repr=False)
    folds: list[Fold] = field(default_factory=list, repr=False)
    cuts: list[int] = field(default_factory=list, repr=False)
    failures: int = field(default=0, repr=False)
    has_failed: bool = field(default=False, repr=False)
    _failed_function: Any = field(default=None, repr=False)
    _variables: int = field(default=0, repr=False)

    def add_variable(
        self, name: str | None, facts: tuple[str, ...], rank: int, phase: str
    ) -> FilmNode:
        """A new node for a variable."""
        number = self._variables
        node = FilmNode(f"v{number}", short_name(name), facts, rank, phase, len(self.steps))
        node.is_named = bool(name)
        self.nodes.append(node)
        self._variables += 1  # at the end: a RecursionError above leaves no gap
        return node

    def add_function(
        self, label: str, rank: int, phase: str, places: tuple[Place, ...]
    ) -> FilmNode:
        """A new node for a function application."""
        number = len(self.nodes) - self._variables
        born = len(self.steps)
        node = FilmNode(f"f{number}", short_name(label), (), rank, phase, born, places)
        self.nodes.append(node)
        return node

    def connect(self, source: FilmNode, target: FilmNode, phase: str) -> None:
        """Add a new edge along the data; an existing edge stays."""
        self.edges.setdefault((source.id, target.id), phase)

    def new_step(
        self,
        kind: str,
        places: tuple[Place, ...],
        shown: FilmNode | None = None,
        function: Any = None,
        depth: int = 0,
    ) -> Step:
        """An empty step: of a function's node and the user's function, in ``depth`` sweeps."""
        step: Step = {
            "kind": kind,
            "function": None if shown is None else shown.id,
            "class": None if function is None else self.class_key(type(function)),
            "axes": reduced_axes(function),
        }
        step.update((name, []) for name in _LISTS)
        step.update(queued=0, table={"set": [], "removed": []}, watched=None, places=places)
        step.update(in_graph=False, not_finite="", error=None, call="", seconds=None, depth=depth)
        return step

    def fail(self, step: Step, error: BaseException, function: Any = None) -> None:
        """Note the error of a step, and the failing function.

        After many errors, a step has no words: each text makes another picture.
        """
        self.failures += 1
        step["error"] = told(error, with_words=self.failures <= MOST_WORDS)
        self._failed_function = None if function is None else weakref.ref(function)

    def shows(self, error: BaseException) -> bool:
        """True if the last step is the failing call of an error, or the end of that pass."""
        function = None if self._failed_function is None else self._failed_function()
        last = next((one for one in reversed(self.steps) if not _is_failed_end(one)), None)
        is_failed = last is not None and last["error"] is not None
        return is_failed and function is not None and is_behind(function, error)

    def class_key(self, cls: type) -> str:
        """The key of a class in the film."""
        name = short_name(cls.__name__)
        key, number = name, 1
        while self.classes.setdefault(key, cls) is not cls:
            number += 1
            key = f"{name} {number}"
        return key
