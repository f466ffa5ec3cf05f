"""A film in words: a sentence for each step, and all steps as text.

Requirement: a screen reader and a terminal give the same film as the page. So each step has a
sentence, and below the sentence the page's numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context
from typing import Any

from tinynode.errors import joined, printable
from tinynode.show.films.failures import in_one_line
from tinynode.show.films.iterations import values_of, with_values
from tinynode.show.films.watched import in_words

Step = dict[str, Any]


def sentence(step: Step, labels: Mapping[str, str]) -> str:
    """The event of a step, as a sentence; for the origin of NaN or inf, the facts too."""
    failed = step["error"] is not None and step["kind"] != "end"
    told = _failure(step, labels) if failed else _event(step, labels)
    return f"{told} {step['not_finite']}" if step["not_finite"] else told


def _failure(step: Step, labels: Mapping[str, str]) -> str:
    """The failing call, and the error in a line."""
    operands = _names((entry[0] for entry in step["inputs"]), labels)
    on_operands = f" on {operands}" if step["inputs"] else ""
    error = in_one_line(step["error"])
    if step["kind"] == "backward":
        return f"The backward of {labels[step['function']]} fails: {error}"
    if step["kind"] == "forward":
        return f"{labels[step['function']]} fails{on_operands}: {error}"
    if step["kind"] == "update":
        return f"The update by {step['class']} fails: {error}"
    if step["call"]:
        return f"{step['call']} fails{on_operands}: {error}"
    return f"The program ends with an error: {error}"


def _event(step: Step, labels: Mapping[str, str]) -> str:
    kind = step["kind"]
    if kind == "forward":
        return _forward(step, labels)
    if kind == "backward":
        return _backward(step, labels)
    if kind == "sweep":
        seeds = _names((entry[0] for entry in step["grad_outputs"]), labels)
        return f"Backward starts at {seeds}."
    if kind == "update":
        changed = [labels[entry[0]] for entry in step["updates"]]
        return f"{step['class']} updates {joined(changed, 'nothing')}."
    if kind == "watch":
        return f"The program watches {step['watched']['about']}."
    return _end(step, labels)


def _forward(step: Step, labels: Mapping[str, str]) -> str:
    inputs = _names((entry[0] for entry in step["inputs"]), labels)
    outputs = _names((entry[0] for entry in step["outputs"]), labels)
    return f"{labels[step['function']]} computes {outputs} from {inputs}."


def _backward(step: Step, labels: Mapping[str, str]) -> str:
    label = labels[step["function"]]
    given = [entry[0] for entry in step["grad_outputs"] if entry[1] is not None]
    first = [entry[0] for entry in step["grad_inputs"] if entry[2] == "first"]
    added = [entry[0] for entry in step["grad_inputs"] if entry[2] == "added"]
    parts = [f"{label} takes the gradient of {_names(given, labels)}"]
    if first:
        parts.append(f"gives the gradient of {_names(first, labels)}")
    if added:
        parts.append(f"adds to the gradient of {_names(added, labels)}")
    if len(parts) == 1:
        parts.append("gives no gradient")
    return f"{joined(parts)}."


def _end(step: Step, labels: Mapping[str, str]) -> str:
    if step["error"] is not None:
        error = in_one_line(step["error"])
        return f"Backward ended with an error, and no gradient has changed: {error}"
    written = [entry[0] for entry in step["grad_inputs"] if entry[2] != "none"]
    returned = [entry[0] for entry in step["grad_inputs"] if entry[2] == "none"]
    parts = []
    if written:
        verb = "has its gradient" if len(written) == 1 else "have their gradients"
        parts.append(f"{_names(written, labels)} {verb}")
    if returned:
        parts.append(f"grad returns the gradient of {_names(returned, labels)}")
    return f"Backward has ended: {'; '.join(parts) or 'no Variable takes a gradient'}."


def _names(nodes: Iterable[str], labels: Mapping[str, str]) -> str:
    """``x, y and z``; each once."""
    return joined(dict.fromkeys(labels[node] for node in nodes), "nothing")


# --- all of it as text ---------------------------------------------------------------------------

_HEADINGS = (
    ("inputs", "in"),
    ("outputs", "out"),
    ("grad_outputs", "gradient from"),
    ("grad_inputs", "gradient to"),
)


def text(data: dict[str, Any]) -> str:
    """Every step in words, with its values, the gradient table and the queue."""
    lines = [data["title"]]
    if data["note"]:
        lines.append(data["note"])
    labels = [labels_of(picture) for picture in data["pictures"]]
    iterations = len(data["iterations"])
    number = 0
    for index, one in enumerate(data["iterations"], 1):
        if iterations > 1:
            lines += ["", f"Iteration {index} of {iterations}"]
        for step in steps_of_iteration(data, one):
            number += 1
            lines += ["", f"{number}. {step['title']}"]
            line = _line_at(data, step["at"])
            if line:
                lines.append(f"   {line}")
            lines += [f"   {line}" for line in details(data, step, labels[one["picture"]])]
    return printable_lines("\n".join(lines))


_MADE = {
    "forward": ("outputs", ""),
    "backward": ("grad_inputs", "gradient of "),
    "end": ("grad_inputs", "gradient of "),
}
"""What a step makes, by the kind of the step, and the word before its name."""


def short_text(data: dict[str, Any]) -> str:
    """The steps of the first iteration, a sentence each, with the numbers that the step makes."""
    if not data["iterations"]:
        return ""
    one = data["iterations"][0]
    labels = labels_of(data["pictures"][one["picture"]])
    lines = []
    for number, step in enumerate(steps_of_iteration(data, one), 1):
        lines.append(f"{number}. {step['title']}")
        made, word = _MADE.get(step["kind"], ("updates", ""))
        for node, *values in step[made]:
            value = values[2] if made == "updates" else values[0]
            if value is not None:
                lines.append(f"   {word}{labels[node]}: {_short_value(data['values'][value])}")
    if len(data["iterations"]) > 1:
        lines.append(f"... and {len(data['iterations']) - 1} more iterations")
    return printable_lines("\n".join(lines))


def _short_value(value: dict[str, Any]) -> str:
    """``(2, 2) [0, 0.5, 1, 2]``; smallest and largest number of a larger array."""
    shape = f"{tuple(value['shape'])} " if value["shape"] else ""
    is_whole = not value["sampled"] and not value.get("thinned")
    if is_whole and len(value["cells"]) <= _SHOWN // 2:
        cells = ", ".join(cell_text(cell) for cell in value["cells"])
        return f"{shape}[{cells}]" if shape else cells
    return f"{shape}from {cell_text(value['min'])} to {cell_text(value['max'])}"


def labels_of(picture: dict[str, Any]) -> dict[str, str]:
    """The label of each node of a picture."""
    return {node["id"]: node["label"] for node in picture["nodes"]}


def steps_of(data: dict[str, Any]) -> Iterator[tuple[int, Step]]:
    """All steps with their values, and the number of the iteration, from 1."""
    for number, iteration in enumerate(data["iterations"], 1):
        for step in steps_of_iteration(data, iteration):
            yield number, step


def steps_of_iteration(data: dict[str, Any], iteration: dict[str, Any]) -> Iterator[Step]:
    """The steps of an iteration with their values."""
    values, optimizers = iter(iteration["values"]), iter(iteration["optimizers"])
    watched = iter(iteration["watched"])
    steps = data["pictures"][iteration["picture"]]["steps"]
    shapes: dict[str, list[int]] = {}
    for step, seconds in zip(steps, iteration["seconds"], strict=True):
        own = list(itertools.islice(values, len(list(values_of(step)))))
        told = {**with_values(step, iter(own)), "seconds": seconds}
        told["changes"] = [
            [fact, node, own[what] if type(what) is int else what]
            for fact, node, what in step["changes"]
        ]
        if step["kind"] == "update":
            settings = next(optimizers) or (step["optimizer"], step["rule"])
            told["optimizer"], told["rule"] = settings
        if step["watched"]:
            told["watched"] = {**step["watched"], "picture": next(watched)}
        if step["kind"] == "forward":
            shapes[step["function"]] = _shape_of_axes(data, told)
        told["shape_of_axes"] = shapes.get(step["function"], [])
        yield told


def _shape_of_axes(data: dict[str, Any], step: Step) -> list[int]:
    """The shape with the axes of a function: of the input with the most axes, when applied."""
    known = [value for _, value in step["inputs"] if value is not None]
    return max((data["values"][value]["shape"] for value in known), key=len, default=[])


def details(data: dict[str, Any], step: Step, labels: Mapping[str, str]) -> list[str]:
    """A line for each value of a step; then the retained, freed and waiting parts."""
    lines = []
    if step["error"] is not None:
        lines += [f"error: {line}" for line in step["error"]["text"].splitlines() if line.strip()]
        raised = "" if step["error"]["at"] == step["at"] else _line_at(data, step["error"]["at"])
        lines += [f"raised at {raised}"] if raised else []
    for key, heading in _HEADINGS:
        for entry in step[key]:
            if entry[1] is not None:
                lines.append(f"{heading} {labels[entry[0]]}: {_entry(data, entry)}")
    if step["updates"]:
        lines.append(f"optimizer: {step['optimizer']}")
        equations = step["rule"].split("; ") if step["rule"] else []
        lines += [line if " = " in line else f"after = {line}" for line in equations]
    for node, *three, moments in step["updates"]:
        lines += _update_lines(data, labels[node], three, moments)
    if step["axes"]:
        words = axes_in_words(step["shape_of_axes"], step["axes"])
        lines += [f"over {words}"] if words else []
    if step["watched"]:
        subject = data["watched"]["subjects"][step["watched"]["subject"]]
        lines.append(in_words(subject, data["watched"]["pictures"][step["watched"]["picture"]]))
    used_up = [node for node in step["freed"] if node in step["table"]["removed"]]
    freed = [node for node in step["freed"] if node not in used_up]
    for heading, found in (
        ("retains", step["retained"]),
        ("array freed", freed),
        ("gradient used up", used_up),
    ):
        if found:
            lines.append(f"{heading}: {_names(found, labels)}")
    if step["copied"]:
        lines.append(f"copied from the host: {'; '.join(step['copied'])}")
    if step["ran"]:
        lines.append(f"ran inside: {', '.join(step['ran'])}")
    if step["kind"] in ("sweep", "backward"):
        lines.append(f"waiting: {_queue_text(step, labels)}")
    return lines


def _update_lines(
    data: dict[str, Any], label: str, three: list[int | None], moments: list[list[Any]]
) -> list[str]:
    """A parameter before an update, the gradient, the moments, and the parameter after."""
    named = zip(("before", "gradient of"), three[:2], strict=True)
    lines = [f"{word} {label}: {_value(data, value)}" for word, value in named]
    lines += [f"{name} of {label}: {_value(data, after)}" for name, _, after in moments]
    return lines if three[2] is None else [*lines, f"after {label}: {_value(data, three[2])}"]


def _value(data: dict[str, Any], value: int | None) -> str:
    return "none" if value is None else value_text(data["values"][value])


def _entry(data: dict[str, Any], entry: list[Any]) -> str:
    line = value_text(data["values"][entry[1]])
    if len(entry) == 4 and entry[2] == "added" and entry[3] is not None:
        line += f", in all {value_text(data['values'][entry[3]])}"
    return line


def axes_in_words(shape: Sequence[int], axes: Sequence[int]) -> str:
    """``axis 0 (4 rows)``, ``axes 0 and 1 (12 elements)``; the page writes the same."""
    found = sorted(axis % len(shape) for axis in axes if -len(shape) <= axis < len(shape))
    lengths = [shape[axis] for axis in found]
    if len(found) != 1:
        count = math.prod(lengths)
        names = joined(map(str, found))
        return f"axes {names} ({count} element{'s' * (count != 1)})" if found else ""
    word = {1: "element", 2: "row" if found[0] == 0 else "column"}.get(len(shape), "element")
    return f"axis {found[0]} ({lengths[0]} {word}{'s' * (lengths[0] != 1)})"


def _queue_text(step: Step, labels: Mapping[str, str]) -> str:
    """The functions in the queue, the next one first, with their ranks."""
    names = [f"{labels[function]} (rank {rank})" for rank, function in step["queue"]]
    more = step["queued"] - len(names)
    if more:
        names.append(f"and {more} more")
    return ", ".join(names) or "nothing"


def _line_at(data: dict[str, Any], at: list[Any] | None) -> str:
    """``script.py:12: y = x * x``, or nothing."""
    if at is None:
        return ""
    key, line = at
    file = data["files"][key]
    return f"{file['name']}:{line}: {file['lines'][line - file['first']].strip()}"


def value_text(value: dict[str, Any]) -> str:
    """An array in a line: all elements of a small array, else smallest, largest and mean."""
    head = f"{tuple(value['shape'])} {value['dtype']}"
    numbers = [_number_text(cell) for cell in value["cells"]]
    if not value["shape"] and numbers:
        return f"{numbers[0]} {value['dtype']}"
    is_whole = not value["sampled"] and not value.get("thinned")
    if is_whole and len(numbers) <= _SHOWN:
        return f"{head} [{', '.join(numbers)}]"
    low, high, mean = (_number_text(value[key]) for key in ("min", "max", "mean"))
    bad = f", {value['bad']} not finite" if value["bad"] else ""
    return f"{head} from {low} to {high}, mean {mean}{bad}"


def numbers_text(value: dict[str, Any]) -> str:
    """The elements of a small array in a line, as a box of the page shows them."""
    numbers = ", ".join(_number_text(cell) for cell in value["cells"])
    return f"[{numbers}]" if value["shape"] else numbers


_SHOWN = 12
"""An array of more elements is described by smallest, largest and mean."""


def _number_text(number: Any) -> str:
    return "nan" if number is None else str(number)


def printable_lines(text: str) -> str:
    """The text with control characters as escapes, except the ends of lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


# --- numbers as the page writes them -------------------------------------------------------------


def cell_text(cell: float | str | None) -> str:
    """A number with at most 4 digits, as the film's page writes it."""
    if cell is None:
        return "nan"
    if isinstance(cell, str):
        return cell
    size = abs(cell)
    if cell == 0 or (size < 1e6 and cell == math.floor(cell)):
        return str(int(cell))
    if size >= 1e5 or size < 1e-3:
        return _exponent(f"{cell:.2e}")
    return f"{float(f'{cell:.4g}'):g}"


def short_number(cell: float | str | None) -> str:
    """A number with 2 digits."""
    if cell is None or isinstance(cell, str):
        return cell_text(cell)
    rounded = Context(prec=2, rounding=ROUND_HALF_UP).create_decimal_from_float(float(cell))
    if cell and abs(cell) < 1e-6:
        return _exponent(repr(float(rounded)))
    text = format(rounded, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def _exponent(text: str) -> str:
    """``1.20e-04`` as ``1.20e-4``."""
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{exponent[0]}{exponent[1:].lstrip('0')}"
