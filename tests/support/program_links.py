"""Links with programs, good and hostile: Python and the script of a page read the same ones.

``link_vectors.json`` has links written by Python and by a browser. Large links are made here.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import NamedTuple

from tinynode.show.program_link import MOST_LINK, MOST_TEXT

VECTORS = json.loads(Path(__file__).with_name("link_vectors.json").read_text(encoding="utf-8"))
BOMB = 11_000_000
"""The bytes in a link of allowed length: a thousand times its letters."""


class Good(NamedTuple):
    """A link, and what it has."""

    link: str
    title: str
    program: str


class Refused(NamedTuple):
    """A link that nobody opens, and words of the error."""

    name: str
    link: str
    says: str


def raw_link(content: bytes) -> str:
    """A link with these bytes, without any check."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    small = compressor.compress(content) + compressor.flush()
    letters = base64.urlsafe_b64encode(small).decode().rstrip("=")
    return f"tn1.{letters}.{zlib.crc32(content):08x}"


def good() -> list[Good]:
    """The links of one program differ, since compression has no fixed result."""
    found = [
        Good(link, one["title"], one["program"])
        for one in VECTORS["programs"]
        for link in one["links"]
    ]
    longest = "x" * (MOST_TEXT - len("Most\n"))
    return [*found, Good(raw_link(f"Most\n{longest}".encode()), "Most", longest)]


def refused() -> list[Refused]:
    """Damaged links, links of strangers, and links that grow."""
    found = [Refused(**one) for one in VECTORS["refused"]]
    bomb = raw_link(b"T\n" + b"\0" * BOMB)
    assert len(bomb) < MOST_LINK
    return [
        *found,
        Refused("a bomb", bomb, "too long"),
        Refused("one byte too many", raw_link(b"\n" + b"x" * MOST_TEXT), "too long"),
        Refused("many letters", "tn1." + "A" * MOST_LINK + ".00000000", "too long"),
    ]
