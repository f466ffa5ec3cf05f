"""Folded films: a call of the program is a box, and a reader can open the box.

Requirement: a film of 5,000 scalar functions is read like a film of 20 functions of arrays. So a
folded film is another recording of the same steps. A box stands for the functions of a call
(``calls.py``). Scalars with the same maker and the same users are one variable, an array of their
numbers. Each box has a further segment: the inside, or the first of the equal parts.

All numbers belong to the recorded steps. Backward goes from the last box to the first. tinynode
itself runs the functions of several boxes in turns, by falling rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from tinynode.show.films.calls import Call, calls_in, name_of_call, name_of_part
from tinynode.show.films.iterations import values_of, with_values
from tinynode.show.films.names import SourceNames
from tinynode.show.films.nodes import FilmNode, Fold, Recording, Step
from tinynode.show.films.values import Values

TIMES = " \N{MULTIPLICATION SIGN} "


def folded(film: Recording) -> Recording:
    """The film with boxes for calls: a segment for the whole, and a segment for each box.

    Updates and watched pictures are left out. A film without a box is returned unchanged.
    """
    forward = [step for step in film.steps if step["kind"] == "forward" and step["in_graph"]]
    calls = calls_in(forward)
    if not any(call.is_box for call in calls):
        return film
    told = Recording(film.title, film.note)
    told.values, told.classes, told.devices = film.values.copy(), film.classes, film.devices
    told.modules, told.watched = film.modules, film.watched
    names = SourceNames(film.modules)
    recorded = _Recorded(film)
    waiting = [(calls, Fold("", None, 0), _Bundles({}))]
    while waiting:
        calls, fold, outside = waiting.pop(0)
        number = len(told.folds)
        told.folds.append(fold)
        told.cuts.append(len(told.steps))
        segment = _FoldedSegment(recorded, told, calls, outside, names)
        segment.add_steps(is_inside=number > 0)
        for call, shown in zip(calls, segment.functions, strict=True):
            if call.is_box:
                title = f"{shown.label}, 1 of {call.parts} equal parts"
                inner = Fold(title if call.parts > 1 else shown.label, shown.id, number)
                waiting.append((call.inside(), inner, segment.bundles))
    _drop_unused_values(told)
    return told


def _drop_unused_values(told: Recording) -> None:
    """Keep the values of the drawn steps: most scalars are inside of closed boxes."""
    every, told.values = told.values, Values()
    for number, step in enumerate(told.steps):
        kept = [None if one is None else told.values.take(every, one) for one in values_of(step)]
        told.steps[number] = with_values(step, iter(kept))


class _Sweep:
    """A recorded backward pass.

    Attributes:
        begin: the first step.
        end: the last step; None if the film ended before.
        steps: for the id of each function the step.
        gradients: for the id of each variable the functions and values of its contributions; the
            function None stands for the seed.
    """

    def __init__(self, begin: Step) -> None:
        self.begin = begin
        self.end: Step | None = None
        self.steps: dict[str, Step] = {}
        self.gradients: dict[str, list[tuple[str | None, int | None]]] = {}
        for name, value in begin["grad_outputs"]:
            self.gradients.setdefault(name, []).append((None, value))

    def add(self, step: Step) -> None:
        """Add the step of a function."""
        self.steps[step["function"]] = step
        for name, value, how, _ in step["grad_inputs"]:
            if how != "none":
                self.gradients.setdefault(name, []).append((step["function"], value))


class _Recorded:
    """The recorded film, by nodes.

    Attributes:
        nodes: the nodes by their ids.
        users: for the id of each variable the ids of the functions with the variable as input.
        sweeps: the backward passes.
    """

    def __init__(self, film: Recording) -> None:
        self.nodes = {node.id: node for node in film.nodes}
        self.users: dict[str, list[str]] = {}
        self.sweeps: list[_Sweep] = []
        for step in film.steps:
            if step["kind"] == "forward":
                for name in dict.fromkeys(entry[0] for entry in step["inputs"]):
                    self.users.setdefault(name, []).append(step["function"])
            elif step["kind"] == "sweep":
                self.sweeps.append(_Sweep(step))
            elif step["kind"] == "backward":
                self.sweeps[-1].add(step)
            elif step["kind"] == "end":
                self.sweeps[-1].end = step


@dataclass(eq=False)
class _Bundles:
    """The drawn variables, each of one or several scalars.

    Attributes:
        of: for the id of each recorded variable the id of the drawn variable.
        members: for the id of each drawn variable the ids of the recorded variables.
        labels: for the id of each drawn variable the name, or nothing.
    """

    of: dict[str, str]
    members: dict[str, list[str]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


class _FoldedSegment:
    """Writes a segment: the steps of some calls.

    Args:
        recorded: the recorded film.
        told: gets the nodes and steps.
        calls: the boxes and single functions of the segment.
        outside: the bundles of the segment around.
        names: the names in the program's text.

    Attributes:
        functions: the drawn function of each call.
        bundles: the drawn variables.
    """

    def __init__(
        self,
        recorded: _Recorded,
        told: Recording,
        calls: Sequence[Call],
        outside: _Bundles,
        names: SourceNames,
    ) -> None:
        self.recorded = recorded
        self.told = told
        self.calls = calls
        self.functions: list[FilmNode] = []
        self.bundles = _Bundles({})
        self._call_of: dict[str, int] = {}
        self._maker: dict[str, int] = {}
        self._users: dict[str, dict[int, None]] = {}
        self._value: dict[str, int | None] = {}
        self._find_neighbours()
        self._shape: dict[str, tuple[int, ...]] = {}
        self._bundle(outside, names)
        self._connect(names)

    # --- the graph -------------------------------------------------------------------------------

    def _find_neighbours(self) -> None:
        """Find the maker and the users of each variable, as numbers of calls."""
        for number, call in enumerate(self.calls):
            for step in call.steps:
                self._call_of[step["function"]] = number
                for name, value in step["inputs"]:
                    self._users.setdefault(name, {})[number] = None
                    self._value.setdefault(name, value)
                for name, value in step["outputs"]:
                    self._users.setdefault(name, {})
                    self._maker[name] = number
                    self._value[name] = value

    def _bundle(self, outside: _Bundles, names: SourceNames) -> None:
        """Put scalars with one maker and the same users together; others stay single."""
        groups: dict[Any, list[str]] = {}
        for name, users in self._users.items():
            maker = self._maker.get(name)
            if maker is not None and set(users) == {maker} and not self._is_seen_outside(name):
                continue  # inside of a box
            near = [*users] if maker is None else [maker, *users]
            key: Any = name
            if self._is_scalar(name) and any(self.calls[number].is_box for number in near):
                key = (maker, tuple(users), _stem(self.recorded.nodes[name]), outside.of.get(name))
            groups.setdefault(key, []).append(name)
        for members in groups.values():
            self._add_variable(members, outside, names)

    def _is_seen_outside(self, name: str) -> bool:
        """True if functions of other segments use a variable, or if no function does."""
        users = self.recorded.users.get(name, ())
        return not users or any(user not in self._call_of for user in users)

    def _is_scalar(self, name: str) -> bool:
        value = self._value[name]
        return value is not None and self.told.values.content(value).shape == ()

    def _add_variable(self, members: list[str], outside: _Bundles, names: SourceNames) -> None:
        first = self.recorded.nodes[members[0]]
        label, facts = first.label, first.facts
        shape: tuple[int, ...] = ()
        if len(members) > 1:
            shape = self._shape_of(members)
            label = self._label_of(members, outside, names)
            facts = (f"{TIMES.join(map(str, shape))} numbers",)
            if self._is_frozen(members):
                facts = (*facts, "no gradient")
        rank = max(self.recorded.nodes[name].rank for name in members)
        shown = self.told.add_variable(label, facts, rank, first.phase)
        self.bundles.members[shown.id] = members
        self.bundles.labels[shown.id] = label
        self.bundles.of.update((name, shown.id) for name in members)
        self._shape[shown.id] = shape

    def _label_of(self, members: list[str], outside: _Bundles, names: SourceNames) -> str:
        """The name of a bundle: the stem, the name of the call's result, or the name outside."""
        stem = _stem(self.recorded.nodes[members[0]])
        if stem:
            return stem
        if members[0] in self._maker:
            call = self.calls[self._maker[members[0]]]
            return names.of_output(call.places, 0) or f"{name_of_call(call, names)} output"
        known = outside.labels.get(outside.of.get(members[0], ""), "")
        return known or ("constants" if self._is_frozen(members) else "numbers")

    def _is_frozen(self, members: list[str]) -> bool:
        return all("no gradient" in self.recorded.nodes[name].facts for name in members)

    def _shape_of(self, members: list[str]) -> tuple[int, ...]:
        """The shape of a bundle: a row for each of the equal parts with numbers."""
        near = [self._maker[members[0]]] if members[0] in self._maker else self._users[members[0]]
        (number, *others) = near
        parts = self.calls[number].parts
        is_matrix = not others and len(members) % parts == 0 and 1 < parts < len(members)
        return (parts, len(members) // parts) if is_matrix else (len(members),)

    def _connect(self, names: SourceNames) -> None:
        """Add the boxes and functions, with their edges."""
        for call in self.calls:
            recorded = self.recorded.nodes[call.steps[0]["function"]]
            places, label = recorded.places, recorded.label
            if call.is_box:
                places, label = call.places, name_of_call(call, names)
            shown = self.told.add_function(label, recorded.rank, recorded.phase, places)
            if call.is_box:
                count = f"{len(call.steps):,} functions"
                part = name_of_part(call, names)
                each = () if call.parts == 1 else (f"{call.parts}{TIMES}{part}",)
                shown.facts = (*each, count)
            self.functions.append(shown)
            for step in call.steps:
                for name in self._drawn(step["inputs"]):
                    if not self._is_made_inside(name, call):
                        self.told.edges.setdefault((name, shown.id), shown.phase)
                for name in self._drawn(step["outputs"]):
                    self.told.edges.setdefault((shown.id, name), shown.phase)

    def _drawn(self, entries: Iterable[Sequence[Any]]) -> list[str]:
        """The drawn variables of some entries, each once."""
        of = self.bundles.of
        return list(dict.fromkeys(of[entry[0]] for entry in entries if entry[0] in of))

    def _is_made_inside(self, drawn: str, call: Call) -> bool:
        maker = self._maker.get(self.bundles.members[drawn][0])
        return maker is not None and self.calls[maker] is call

    # --- steps -----------------------------------------------------------------------------------

    def add_steps(self, *, is_inside: bool) -> None:
        """Write the forward steps, then the steps of each backward pass."""
        for call, shown in zip(self.calls, self.functions, strict=True):
            self._add_forward(call, shown)
        for sweep in self.recorded.sweeps:
            self._add_sweep(sweep, is_inside=is_inside)

    def _add_forward(self, call: Call, shown: FilmNode) -> None:
        step = self._step("forward", call.places, shown, call.steps)
        for recorded in call.steps:
            step["cleared"] += self._drawn([[name] for name in recorded["cleared"]])
        inputs: dict[str, None] = {}
        outputs: dict[str, None] = {}
        for recorded in call.steps:
            found = self._drawn(recorded["inputs"])
            inputs.update((name, None) for name in found if not self._is_made_inside(name, call))
            outputs.update((name, None) for name in self._drawn(recorded["outputs"]))
        step["inputs"] = [[name, self._together(name, self._value)] for name in inputs]
        step["outputs"] = [[name, self._together(name, self._value)] for name in outputs]
        step["in_graph"] = True
        step["error"] = call.steps[-1]["error"]
        step["not_finite"] = next((s["not_finite"] for s in call.steps if s["not_finite"]), "")
        if not call.is_box:
            step["retained"] = self._drawn([[name] for name in call.steps[0]["retained"]])
        self.told.steps.append(step)

    def _step(
        self, kind: str, places: Any, shown: FilmNode | None, recorded: Sequence[Step]
    ) -> Step:
        step = self.told.new_step(kind, places, shown)
        if len(recorded) == 1:
            step["class"] = recorded[0]["class"]
        seconds = [one["seconds"] for one in recorded if one["seconds"] is not None]
        step["seconds"] = sum(seconds) if seconds else None
        return step

    def _together(self, drawn: str, values: dict[str, int | None]) -> int | None:
        """The value of a drawn variable: the numbers of its members as an array."""
        members = self.bundles.members[drawn]
        found = [values.get(name) for name in members]
        if len(members) == 1:
            return found[0]
        contents = [None if index is None else self.told.values.content(index) for index in found]
        known = [one for one in contents if one is not None]
        if not known:
            return None
        dtype = known[0].dtype
        numbers = [0.0 if one is None else one.numbers()[0] for one in contents]
        return self.told.values.add(numpy.asarray(numbers, dtype).reshape(self._shape[drawn]))

    def _add_sweep(self, sweep: _Sweep, *, is_inside: bool) -> None:
        """Write a backward pass: the gradients that come in, then each call from the last."""
        table = _Table(self.told.values)
        backward: dict[int, list[Step]] = {}
        for function, number in self._call_of.items():
            if function in sweep.steps:
                backward.setdefault(number, []).append(sweep.steps[function])
        for name in self._maker:
            for giver, value in sweep.gradients.get(name, ()):
                if giver not in self._call_of:
                    table.add(name, value)
        if not backward:
            return
        begin = self._step("sweep", sweep.begin["places"], None, [])
        seeds = self._drawn([[name] for name in table.gradients])
        begin["grad_outputs"] = [[name, self._together(name, table.gradients)] for name in seeds]
        begin["table"]["set"] = list(begin["grad_outputs"])
        self.told.steps.append(begin)
        for number in sorted(backward, reverse=True):
            self._add_backward(number, backward[number], table)
        if sweep.end is not None and not is_inside:
            self._add_end(sweep.end)

    def _add_backward(self, number: int, recorded: Sequence[Step], table: _Table) -> None:
        call, shown = self.calls[number], self.functions[number]
        step = self._step("backward", call.places, shown, recorded)
        outputs = [name for name, maker in self._maker.items() if maker == number]
        drawn = self._drawn([[name] for name in outputs])
        step["grad_outputs"] = [[name, self._together(name, table.gradients)] for name in drawn]
        if len(call.steps) == 1:
            for key in ("inputs", "outputs"):
                of = self.bundles.of
                step[key] = [[of[entry[0]], entry[1]] for entry in recorded[0][key]]
        before = dict(table.gradients)
        parts: dict[str, int | None] = {}
        for one in recorded:
            for name, value, how, _ in one["grad_inputs"]:
                if how != "none":
                    table.add(name, value)
                    parts[name] = table.sum_of(parts.get(name), value)
        for name in self._drawn([[name] for name in parts]):
            if self._is_made_inside(name, call):
                continue
            members = self.bundles.members[name]
            how = "added" if any(before.get(one) is not None for one in members) else "first"
            total = self._together(name, table.gradients)
            step["grad_inputs"].append([name, self._together(name, parts), how, total])
            step["table"]["set"].append([name, total])
        step["table"]["removed"] = list(drawn)
        step["freed"] = list(drawn)
        self.told.steps.append(step)

    def _add_end(self, recorded: Step) -> None:
        step = self._step("end", recorded["places"], None, [])
        step["error"] = recorded["error"]
        found = {entry[0]: entry for entry in recorded["grad_inputs"]}
        for name in self._drawn(recorded["grad_inputs"]):
            entries = [found[one] for one in self.bundles.members[name] if one in found]
            value = self._together(name, {entry[0]: entry[1] for entry in entries})
            total = self._together(name, {entry[0]: entry[3] for entry in entries})
            step["grad_inputs"].append([name, value, entries[0][2], total])
        self.told.steps.append(step)


def _stem(node: FilmNode) -> str:
    """The name of a scalar without its index: ``query`` of ``query[2][3]``."""
    return node.label.partition("[")[0]


class _Table:
    """The gradients of recorded variables, as indexes of values."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.gradients: dict[str, int | None] = {}

    def add(self, name: str, value: int | None) -> None:
        """Add a contribution to the gradient of a variable."""
        self.gradients[name] = self.sum_of(self.gradients.get(name), value)

    def sum_of(self, one: int | None, other: int | None) -> int | None:
        """The index of the sum of two values; None if their elements are not all kept."""
        if one is None or other is None:
            return other if one is None else one
        contents = [self.values.content(index) for index in (one, other)]
        if any(math.prod(content.shape) * content.dtype.itemsize != len(content.cells)
               for content in contents):  # fmt: skip
            return None
        total = contents[0].numbers() + contents[1].numbers()
        array = total.astype(contents[0].dtype).reshape(contents[0].shape)
        return self.values.add(array)
