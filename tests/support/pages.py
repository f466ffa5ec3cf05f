"""The Python blocks of a documentation page: find them, and run them in turn."""

from __future__ import annotations

import contextlib
import io
import itertools
import linecache
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:e[-+]?\d+)?")
"""A number of a printed text; the digits of a name such as ``float32`` are none."""


def python_blocks(page: Path) -> list[tuple[int, str, str]]:
    """The Python blocks of a page: line, code, and the text block that follows at once, if any."""
    text = page.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    found = []
    for block, after in itertools.pairwise([*blocks, None]):
        if block is None or block[1] != "python":
            continue
        follows = after and after[1] == "text" and not text[block.end() : after.start()].strip()
        line = text[: block.start()].count("\n") + 1
        found.append((line, block[2], after[2] if after and follows else ""))
    return found


def same_text(printed: str, expected: str) -> bool:
    """The text on the page, letter by letter."""
    return printed.strip() == expected.strip()


def same_numbers(printed: str, expected: str) -> bool:
    """The numbers on the page, as far as a library prints digits: PyTorch prints four decimals."""
    found, wanted = (list(map(float, NUMBER.findall(text))) for text in (printed, expected))
    if len(found) != len(wanted):
        return False
    pairs = zip(found, wanted, strict=True)
    return all(math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-4) for a, b in pairs)


def run_page(page: Path, same: Callable[[str, str], bool] = same_text) -> None:
    """Run the blocks of a page in turn, in one namespace, and compare what they print."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for line, code, expected in python_blocks(page):
        printed = io.StringIO()
        lifted = "\n" * line + code  # so that a traceback shows the line of the page
        cell = f"{page}:{line}"  # films read names from the text, as from a notebook's cell
        linecache.cache[cell] = (len(lifted), None, lifted.splitlines(keepends=True), cell)
        with contextlib.redirect_stdout(printed):
            exec(compile(lifted, cell, "exec"), names)
        found = printed.getvalue()
        assert same(found, expected), f"{page}:{line} prints {found!r}, expected {expected!r}"
