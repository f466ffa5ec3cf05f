"""A class: a teacher's folder with a key, and the random numbers of the key.

Requirement: the repository is public, so the drills are. The numbers are not: each class draws
inputs, variants and planted bugs from a key of 256 bits. The key never leaves the folder.

    class.json    the key; readable for the teacher alone
    results/      a file for each submission, as ``check --json`` writes it
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from tinynode.atomic_file import replace_file
from tinynode.commands.command_line import CommandError
from tinynode.errors import describe
from tinynode.safe_files import entry, parse_json, read_file

FORMAT = "tinynode-class"
VERSION = 1
NAME = "class.json"


def new(folder: Path) -> None:
    """Make a folder with a new key.

    Raises:
        CommandError: The folder has content, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise CommandError(f"{folder} has content; choose a new folder for the class")
        folder.chmod(0o700)
        content = {"format": FORMAT, "version": VERSION, "key": secrets.token_hex(32)}
        with os.fdopen(
            os.open(folder / NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w"
        ) as file:
            json.dump(content, file)
        (folder / ".gitignore").write_text("*\n")  # a key in a repository is no secret
    except OSError as error:
        raise CommandError(f"{folder} cannot be written: {error.strerror}", status=1) from None


def open_key(folder: Path) -> str:
    """The key of a class.

    Raises:
        CommandError: The folder is no folder of a class.
    """
    try:
        content = parse_json(read_file(folder / NAME, 10_000))
        if not isinstance(content, dict):
            raise ValueError(f"expected an object with a key, got {describe(content)}")
        if content.get("format") != FORMAT or content.get("version") != VERSION:
            raise ValueError(f"expected version {VERSION} of {FORMAT}")
        key: str = entry(content, "key", str, where=NAME)
    except FileNotFoundError:
        raise CommandError(
            f"{folder} is no folder of a class: make one by  class new {folder}"
        ) from None
    except (OSError, ValueError) as error:
        raise CommandError(
            f"{folder / NAME} cannot be read: {error}; make a new class by  class new FOLDER"
        ) from None
    return key


def generator(key: str, *names: str) -> np.random.Generator:
    """The random numbers of a key for a purpose, such as a drill of a step."""
    digest = hashlib.sha256("\0".join([key, *names]).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def digest(*parts: bytes | str) -> str:
    """A fingerprint of texts; names of files may have bytes that are no UTF-8."""
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape") if isinstance(part, str) else part
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()


def save(folder: Path, name: str, content: dict[str, Any]) -> None:
    """Write a result of a submission, completely or not at all."""
    (folder / "results").mkdir(exist_ok=True)
    replace_file(folder / "results" / f"{name}.json", json.dumps(content, indent=1).encode())
