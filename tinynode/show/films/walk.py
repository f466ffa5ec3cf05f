"""A film in the terminal: a step at a time, back and forth, by keys.

Requirement: the page's film without a browser. The screen is text made from the film's data, for
tests without a terminal; only ``_keyboard`` knows a terminal's codes of keys. If the input is no
terminal, the whole film is printed.

    right, space, n    next step            g    first step
    left, p            step before          G    last step
    down, j            next iteration       q    leave
    up, k              iteration before
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, TextIO

from tinynode.show.films import text as film_text
from tinynode.show.texts import text_columns

HELP = "right, space, n: next   left, p: back   g, G: first, last   q: leave"

_NEXT = ("right", " ", "n")
_BACK = ("left", "p")
_DOWN = ("down", "j")
_UP = ("up", "k")
_LEAVE = ("q", "\x04")
_ESCAPES = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "g", "F": "G"}
"""The last letter of a terminal's code for an arrow key, home and end."""

_AROUND = 2
"""The number of lines of source before and after the user's line."""


class _PictureGraph:
    """The functions of a picture, with the names of their inputs and outputs.

    Attributes:
        labels: the label of each node.
    """

    def __init__(self, picture: dict[str, Any]) -> None:
        self.labels = film_text.labels_of(picture)
        self._functions = [node["id"] for node in picture["nodes"] if node["kind"] == "function"]
        self._inputs: dict[str, list[str]] = {}
        self._outputs: dict[str, list[str]] = {}
        for edge in picture["edges"]:
            if edge["to"][0] == "f":
                self._inputs.setdefault(edge["to"], []).append(edge["from"])
            else:
                self._outputs.setdefault(edge["from"], []).append(edge["to"])

    def around(self, step: dict[str, Any]) -> Iterator[str]:
        """``input <- Function <- output``: the present function and the functions next to it."""
        here = step["function"]
        nodes = [entry[0] for entry in step["grad_outputs"] + step["grad_inputs"]]
        inputs = set(self._inputs.get(here, () if here else nodes))
        outputs = set(self._outputs.get(here, () if here else nodes))
        for function in self._functions:
            before = inputs.intersection(self._outputs.get(function, ()))
            after = outputs.intersection(self._inputs.get(function, ()))
            if function == here or before or after:
                mark = ">" if function == here else " "
                ins = self._names(self._inputs.get(function, ()))
                outs = self._names(self._outputs.get(function, ()))
                yield f"{mark} {ins} <- {self.labels[function]} <- {outs}"

    def _names(self, nodes: Iterable[str]) -> str:
        return ", ".join(self.labels[node] for node in nodes)


class Walker:
    """A position in a film, and the screen for the position; at first, the failing call.

    Attributes:
        position: the index of the present step.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self._pictures = [_PictureGraph(picture) for picture in data["pictures"]]
        self._first = [0]  # the position of each iteration's first step; the end of the film
        for one in data["iterations"]:
            self._first.append(self._first[-1] + len(one["seconds"]))
        iteration, step = data["failed"] or (0, 0)
        self.position = self._first[iteration] + step

    def __len__(self) -> int:
        """The number of steps."""
        return self._first[-1]

    @property
    def iteration(self) -> int:
        """The index of the present iteration."""
        return bisect_right(self._first, self.position) - 1

    def press(self, key: str) -> bool:
        """Move by a key; False for a key that ends the walk."""
        here, last = self.iteration, len(self) - 1
        if key in _NEXT:
            self.position = min(last, self.position + 1)
        elif key in _BACK:
            self.position = max(0, self.position - 1)
        elif key in _DOWN:
            self._move_to(min(here + 1, len(self._first) - 2))
        elif key in _UP:
            self._move_to(max(here - 1, 0))
        elif key == "g":
            self.position = 0
        elif key == "G":
            self.position = last
        return key not in _LEAVE

    def _move_to(self, iteration: int) -> None:
        """Go to the same step of another iteration, or to its last step."""
        within = self.position - self._first[self.iteration]
        self.position = min(self._first[iteration] + within, self._first[iteration + 1] - 1)

    def _steps(self) -> list[dict[str, Any]]:
        """The steps of the present iteration up to the position, with their values."""
        number = self.iteration
        steps = film_text.steps_of_iteration(self.data, self.data["iterations"][number])
        return list(islice(steps, self.position - self._first[number] + 1))

    def table(self) -> dict[str, int | None]:
        """The gradient table after the present step."""
        return _table_after(self._steps())

    def screen(self, columns: int = 80, rows: int = 24) -> list[str]:
        """The lines to show; the last line names the keys."""
        steps = self._steps()
        step, count = steps[-1], len(self.data["iterations"])
        picture = self._pictures[self.data["iterations"][self.iteration]["picture"]]
        where = f"step {self.position + 1} of {len(self)}"
        if count > 1:
            where = f"iteration {self.iteration + 1} of {count}, {where}"
        lines = [
            f"{self.data['title']}  [{where}]",
            *textwrap.wrap(step["title"], max(20, columns)),
            *_part("", self._source(step)),
            *_part("graph", picture.around(step)),
            *_part("values", film_text.details(self.data, step, picture.labels)),
            *_part("gradient table", self._table_lines(steps, picture.labels)),
        ]
        if self.data["note"]:
            lines.insert(1, self.data["note"])
        room = max(1, rows - 1)
        if len(lines) > room:
            lines = [*lines[: room - 1], f"... {len(lines) - room + 1} more lines"]
        keys = HELP if count < 2 else f"{HELP}   up, down: iteration"
        return [_cut(film_text.printable_lines(line), columns) for line in [*lines, keys]]

    def _source(self, step: dict[str, Any]) -> Iterator[str]:
        if step["at"] is None:
            return
        key, number = step["at"]
        file = self.data["files"][key]
        yield f"{file['name']}:"
        first = max(file["first"], number - _AROUND)
        last = min(file["first"] + len(file["lines"]) - 1, number + _AROUND)
        for line in range(first, last + 1):
            mark = ">" if line == number else " "
            yield f"{mark} {line:>4}  {file['lines'][line - file['first']]}"

    def _table_lines(
        self, steps: list[dict[str, Any]], labels: Mapping[str, str]
    ) -> Iterator[str]:
        for node, value in _table_after(steps).items():
            shown = "" if value is None else film_text.value_text(self.data["values"][value])
            yield f"{labels[node]}: {shown}"


def _table_after(steps: Iterable[dict[str, Any]]) -> dict[str, int | None]:
    """The gradient table after some steps."""
    table: dict[str, int | None] = {}
    for step in steps:
        for node in step["table"]["removed"]:
            table.pop(node, None)
        table.update(step["table"]["set"])
    return table


def _part(title: str, lines: Iterable[str]) -> list[str]:
    """A part of the screen below an empty line and a title; no lines for an empty part."""
    found = list(lines)
    if not found:
        return []
    return ["", title, *(f"  {line}" for line in found)] if title else ["", *found]


def _cut(line: str, columns: int) -> str:
    if text_columns(line) <= columns:
        return line
    while text_columns(line) >= columns and line:
        line = line[:-1]
    return line + "…"


def walk(
    data: dict[str, Any], keys: Iterable[str] | None = None, out: TextIO | None = None
) -> None:
    """Walk through a film's data: by the keys of the terminal, or by given keys.

    Args:
        data: the film, from ``Film.data()``.
        keys: the keys to press, in place of the terminal's.
        out: the file to write to; default: the standard output.
    """
    out = sys.stdout if out is None else out
    if not data["iterations"]:
        print("The film has no steps.", file=out)
        return
    if keys is None:
        if not (sys.stdin.isatty() and out.isatty()):
            print(film_text.text(data), file=out)
            return
        if os.environ.get("TERM") == "dumb":
            _show_all(data, _prompted(), out, "\n")
            return
        with _keyboard() as pressed:
            out.write("\x1b[?1049h")  # the alternate screen: the old content comes back at the end
            try:
                _show_all(data, pressed, out, "\x1b[H\x1b[2J")
            finally:
                out.write("\x1b[?1049l")
                out.flush()
        return
    _show_all(data, keys, out, "\n")


def _show_all(data: dict[str, Any], keys: Iterable[str], out: TextIO, start: str) -> None:
    walker = Walker(data)
    _draw(walker, out, start)
    for key in keys:
        if not walker.press(key):
            return
        _draw(walker, out, start)


def _draw(walker: Walker, out: TextIO, start: str) -> None:
    size = shutil.get_terminal_size()
    out.write(start + "\n".join(walker.screen(size.columns, size.lines)))
    out.flush()


def _prompted() -> Iterator[str]:
    """Keys as words on a line, for a terminal without single keys."""
    while True:
        try:
            yield input("\n> ").strip()[:1] or "n"
        except EOFError:
            return


@contextmanager
def _keyboard() -> Iterator[Iterator[str]]:
    """The pressed keys; at the end the terminal gets back its settings."""
    if sys.platform == "win32":
        yield _read_windows_keys()
        return
    try:
        # here, since some systems do not have these modules
        import termios
        import tty  # as termios
    except ImportError:
        yield _prompted()
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)  # keys come at once and unseen; Ctrl-C still stops the program
        yield _read_keys(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _read_keys(terminal: int) -> Iterator[str]:
    """Each key, until the input ends."""
    while True:
        byte = os.read(terminal, 1)
        if not byte:
            return
        yield _arrow(terminal) if byte == b"\x1b" else byte.decode("latin-1")


def _arrow(terminal: int) -> str:
    """The key behind an escape sequence: ESC [ C, ESC O C or ESC [ 1 ; 5 C."""
    # here, since the select of Windows does not know terminals
    import select

    text = ""
    while select.select([terminal], [], [], 0.05)[0]:
        letter = os.read(terminal, 1).decode("latin-1")
        text += letter
        if letter in ("~", "") or (letter.isalpha() and text != "O"):
            break
    return _ESCAPES.get(text[-1:], "escape")


def _read_windows_keys() -> Iterator[str]:
    # here, since only Windows has this module
    import msvcrt

    arrows = {"M": "right", "K": "left", "G": "g", "O": "G"}
    while True:
        key = msvcrt.getwch()  # type: ignore[attr-defined]
        if key == "\x03":
            raise KeyboardInterrupt
        if key in ("\x00", "\xe0"):
            key = arrows.get(msvcrt.getwch(), "")  # type: ignore[attr-defined]
        yield key
