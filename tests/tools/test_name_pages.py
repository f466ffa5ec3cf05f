"""The tables of names in the documentation: what a table says is there, is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tinynode as tn

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ["from-pytorch.md", "from-paddle.md", "not-here.md"]
ROOTS = {"tn": tn, "F": tn.functions, "nn": tn.nn, "net": tn.net}


def names_in_tinynode(page: str) -> list[str]:
    """The dotted names in the second column of a page's tables."""
    names = []
    for line in page.splitlines():
        cells = line.split(" | ")
        if line.startswith("| ") and len(cells) == 3:
            names += re.findall(r"`((?:tn|F|nn|net)\.[\w.]+)`", cells[1])
    return names


def find(name: str) -> object:
    root, *parts = name.split(".")
    found: object = ROOTS[root]
    for part in parts:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_name_of_a_table_exists(page: str) -> None:
    names = names_in_tinynode((DOCS / page).read_text(encoding="utf-8"))
    assert len(names) > 12
    for name in names:
        assert find(name) is not None, name


def test_a_name_that_does_not_exist_is_found() -> None:
    (name,) = names_in_tinynode("| `torch.x` | `tn.no_such_name` | text |")
    with pytest.raises(AttributeError):
        find(name)
