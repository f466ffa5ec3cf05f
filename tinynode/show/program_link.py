"""A program as a link: a page of a site runs the program in the reader's browser.

Requirement: no server gets or keeps a program. So the link has the whole program, after the ``#``:
a browser never sends this part. A person with the link can read the program. The page shows the
program, and runs the program only when the reader presses Run.

    http://localhost:8000/play/#tn1.Cy7N5Sooyswr0TBU0FYw1AQA.13e03766
                                |   |                        |
                                |   |                        CRC-32 of the text: 8 digits, 0 to f
                                |   the text: UTF-8, deflate without a header, base64url
                                the version of this form

The first line of the text is the title, and the other lines are the program. The checksum finds
damage by accident. A stranger can write a right checksum, so reading has limits of size. The page
reads and writes the same form: ``tools/browser_site/page_files/link.js``.
"""

from __future__ import annotations

import base64
import io
import os
import re
import tokenize
import zlib
from pathlib import Path
from typing import NamedTuple

from tinynode.errors import describe, short_text
from tinynode.safe_files import checked_path, read_file
from tinynode.show.texts import clean

VERSION = 1
MOST_LINK = 16_000
"""The characters of the part after ``#``."""
MOST_TEXT = 100_000
"""The bytes of title and program in UTF-8."""
MOST_TITLE = 100
"""The characters of a title."""

SITE = "http://localhost:8000/"
"""The address of a site served by ``python -m http.server``."""

_FORM = re.compile(r"tn([1-9][0-9]{0,3})\.([A-Za-z0-9_-]+)\.([0-9a-f]{8})")


class LinkedProgram(NamedTuple):
    """The content of a link: the text of a program, and a title."""

    program: str
    title: str


def link(program: str | os.PathLike[str], *, title: str | None = None, site: str = SITE) -> str:
    """The link with a program: the page behind the link shows, runs and films the program.

        >>> address = tn.show.link("print(1 + 1)", title="Sum", site="https://example.org/")
        >>> address.startswith("https://example.org/play/#tn1.")
        True

    A person with the link can read the program. A browser sends the address of the site alone,
    without the program.

    Args:
        program: the text of a program. A ``Path``, or a line ending in ``.py``, is a script.
        title: stands above the program; by default, the name of the script.
        site: the address of a site of ``python -m tools.browser_site``. ``""`` gives a link for
            pages in the site's first folder.

    Raises:
        OSError: the script cannot be read.
        TypeError: an argument has a wrong type.
        ValueError: the program, the title or the link is too long; or the title has a line break
            or another character without a form; or ``site`` is no address.
    """
    name, text = _text_of(program)
    chosen = clean(name, MOST_TITLE) if title is None else title
    if not isinstance(chosen, str):
        raise TypeError(f"link: title must be a text, got {describe(title)}.")
    fault = _fault_of_title(chosen)
    if fault:
        raise ValueError(f"link: the title {fault}.")
    lines = text.replace("\r\n", "\n").replace("\r", "\n")  # as a browser's editor ends them
    try:
        content = f"{chosen}\n{lines}".encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"link: the program has half a character: {error.reason}.") from None
    if len(content) > MOST_TEXT:
        raise ValueError(
            f"link: the program is too long: {len(content):,} bytes, expected {MOST_TEXT:,} at "
            f"most. {_CURE}"
        )
    part = _packed(content)
    if len(part) > MOST_LINK:
        raise ValueError(
            f"link: the program is too long: its link has {len(part):,} characters after the #, "
            f"expected {MOST_LINK:,} at most. {_CURE}"
        )
    return f"{_checked_site(site)}play/#{part}"


_CURE = "Send the script as a file, or share a part of it."


def read_link(address: str) -> LinkedProgram:
    """The program and the title in a link; the program does not run.

        >>> tn.show.read_link(tn.show.link("print(1 + 1)")).program
        'print(1 + 1)'

    Args:
        address: the link, or the part after ``#``.

    Raises:
        TypeError: the link is no text.
        ValueError: the link is too long, damaged, of a later version, or no link of a program.
    """
    if not isinstance(address, str):
        raise TypeError(f"read_link: the link must be a text, got {describe(address)}.")
    part = address.rpartition("#")[2].strip()
    if len(part) > MOST_LINK:
        raise ValueError(
            f"read_link: the link is too long: expected {MOST_LINK:,} characters after the # at "
            "most."
        )
    found = _FORM.fullmatch(part)
    if found is None:
        raise ValueError(
            f"read_link: no link with a program: expected tn{VERSION}.TEXT.CHECKSUM after the #, "
            f"got {short_text(part)}. Copy the whole link."
        )
    if int(found[1]) != VERSION:
        raise ValueError(
            f"read_link: the link has version {int(found[1])}, expected {VERSION}. A later "
            "tinynode may read the link."
        )
    content = _unpacked(found[2])
    try:
        if zlib.crc32(content) != int(found[3], 16):
            raise ValueError("the checksum differs")
        title, end, program = content.decode().partition("\n")
    except ValueError as error:
        raise _damaged(str(error)) from None
    if not end or _fault_of_title(title):
        raise _damaged("its first line is no title")
    return LinkedProgram(program, title)


# --- the parts -----------------------------------------------------------------------------------


def _text_of(program: str | os.PathLike[str]) -> tuple[str, str]:
    """The name and the text of a script; a text has no name."""
    if isinstance(program, str) and ("\n" in program or not program.endswith(".py")):
        return "", program
    if not isinstance(program, (str, os.PathLike)):
        raise TypeError(f"link: program must be a text or a path, got {describe(program)}.")
    path = checked_path("link", program)
    content = read_file(path, MOST_TEXT)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return Path(path).name, content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ValueError(f"link: {path} is no text in its encoding: {error}.") from None


def _fault_of_title(title: str) -> str:
    """Words for a title refused by the pages; "" for a good title."""
    if len(title) > MOST_TITLE:
        return f"has {len(title)} characters, expected {MOST_TITLE} at most"
    if not title.isprintable():
        return f"must be one line of visible characters, got {short_text(title)}"
    return ""


def _checked_site(site: str) -> str:
    """The address of a folder, with ``/`` at the end; or ``""``."""
    if not isinstance(site, str):
        raise TypeError(f"link: site must be a text, got {describe(site)}.")
    if not site:
        return site
    if not re.fullmatch(r"https?://[^\s#?\"'<>\\]+", site) or not site.isprintable():
        raise ValueError(
            f"link: site must be an address such as {SITE}, without ? and #, got "
            f"{short_text(site)}."
        )
    return site if site.endswith("/") else f"{site}/"


def _packed(content: bytes) -> str:
    """The part of the link after ``#``."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    small = compressor.compress(content) + compressor.flush()
    letters = base64.urlsafe_b64encode(small).decode().rstrip("=")
    return f"tn{VERSION}.{letters}.{zlib.crc32(content):08x}"


def _unpacked(letters: str) -> bytes:
    """The title and the program, as bytes; a link that grows too much is refused in time."""
    decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        small = base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4))
        content = decompressor.decompress(small, MOST_TEXT + 1)
    except (ValueError, zlib.error) as error:
        raise _damaged(str(error)) from None
    if len(content) > MOST_TEXT:
        raise ValueError(
            f"read_link: the program is too long: more than {MOST_TEXT:,} bytes, expected "
            f"{MOST_TEXT:,} at most."
        )
    if not decompressor.eof or decompressor.unused_data:
        raise _damaged("the text does not end with the link")
    return content


def _damaged(why: str) -> ValueError:
    return ValueError(f"read_link: the link is damaged: {why}. Copy the whole link again.")
