"""The sources of the global settings at the import of tinynode.

Requirement: a project or a shell names the device of its programs once, and a user can look up the
source of each value. The first source with a value for a setting decides:

    the environment     TINYNODE_DEVICE, TINYNODE_DTYPE, TINYNODE_DEBUG ...
    a file              ``tinynode.toml``, or the table ``[tool.tinynode]`` of ``pyproject.toml``
    the default

The file is the nearest file from the working folder upwards. A ``pyproject.toml`` without the
table does not count. In the same folder ``tinynode.toml`` comes first. No file is ever written.

A folder above may be shared, such as ``/tmp``. So only files of this user or of root count, and no
one else may write to them. The owner of the folder does not matter: another user can put no text
into a file of this user. A file that does not count is named by a warning, once. No file names a
program: ``compiler`` comes from the environment or from code. On Windows every file counts.
"""

from __future__ import annotations

import os
import re
import stat
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tinynode.errors import ConfigError, describe, dtype_name, printable, short_text
from tinynode.habits import closest
from tinynode.safe_files import open_at_once

KINDS: dict[str, type] = {
    "compiler": str,
    "debug": bool,
    "debug_infinite": bool,
    "device": str,
    "dtype": str,
    "enable_backprop": bool,
    "full_tracebacks": bool,
    "lazy_grad_sum": bool,
    "train": bool,
    "type_check": bool,
}
"""The settings of the environment, with their types."""

NOT_IN_FILES = ("compiler",)
"""The settings that no file has: a program that tinynode starts is named by the user alone."""
MOST_BYTES = 1 << 20
"""The size of a file of settings; a larger file is not read."""

MOST_DOTS = 32
"""The dots of the longest key in a file of settings."""

DTYPES = ("float32", "float64", "float16")
PREFIX = "TINYNODE_"
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


class SettingSource(NamedTuple):
    """A value and its source; ``origin`` completes the words "the value comes from"."""

    value: Any
    origin: str


def read_sources(environment: Mapping[str, str], folder: Path | None) -> dict[str, SettingSource]:
    """The settings of the environment and of the nearest file above ``folder``.

    Raises:
        ConfigError: a file cannot be read, or has an unknown key or a value of the wrong type. Or
            an environment variable has a wrong value or a misspelt name.
    """
    return _read_file(folder) | _read_environment(environment)


def working_folder() -> Path | None:
    """The working folder, or None if the folder was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _read_environment(environment: Mapping[str, str]) -> dict[str, SettingSource]:
    found = {}
    given = {key: text for key, text in environment.items() if text}  # empty means unset
    _refuse_slips(given)
    for name, kind in KINDS.items():
        key = PREFIX + name.upper()
        text = given.get(key)
        if text is None:
            continue
        origin = f"the environment's {key}"
        value = _as_bool(text, origin) if kind is bool else text
        found[name] = SettingSource(_checked(name, value, origin), origin)
    return found


def _refuse_slips(environment: Mapping[str, str]) -> None:
    """Raise a ConfigError for a misspelt name such as ``TINYNODE_DEVCIE``; ignore other names."""
    names = [name.upper() for name in KINDS]
    for key in environment:
        name = key.removeprefix(PREFIX)
        if name == key or name in names:
            continue
        close = closest(name, names, cutoff=0.8)
        if close:
            raise ConfigError(
                f"the environment's {key}: there is no such setting; did you mean "
                f"{PREFIX}{close[0]}?"
            )


def _as_bool(text: str, origin: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ConfigError(f"{origin} must be 1 or 0, got {short_text(text)}.")


def _read_file(folder: Path | None) -> dict[str, SettingSource]:
    if folder is None:
        return {}
    for parent in (folder, *folder.parents):
        for name in ("tinynode.toml", "pyproject.toml"):
            settings = _table_of(parent / name)
            if settings is not None:
                return _checked_table(settings, str(parent / name))
    return {}


def _table_of(path: Path) -> dict[str, Any] | None:
    """The settings in a file; None if the file is missing or has no settings of tinynode."""
    own = path.name == "tinynode.toml"
    text = _text_of(path, own)
    if text is None or not (own or b"tinynode" in text):  # most files have no such table
        return None
    import tomllib  # imported late: a tenth of the time of `import tinynode`

    if _has_long_key(text):
        raise ConfigError(f"{path}: a key has more than {MOST_DOTS} dots: tables nest too deeply.")
    try:
        content = tomllib.loads(text.decode("utf-8-sig"))  # Notepad may write a byte order mark
    except RecursionError:
        raise ConfigError(f"{path} is not valid TOML: nested too deeply.") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {str(error)[:200]}.") from None
    if own:
        _refuse_header(content, path)
        return content
    tool = content.get("tool")
    return tool.get("tinynode") if isinstance(tool, dict) else None


def _has_long_key(text: bytes) -> bool:
    """True for a key such as ``a.a.a`` of many tables: tomllib's time is quadratic in the dots."""
    chains = re.split(rb"[^\w.\"'-]+", text.translate(None, b" \t"))
    return max(chain.count(b".") for chain in chains) > MOST_DOTS


def _text_of(path: Path, own: bool) -> bytes | None:
    """The bytes of a file; None if the file is missing, or does not count."""
    try:
        status = path.lstat()
    except OSError:
        return None
    doubt = _doubt(status)
    if doubt and (own or not stat.S_ISREG(status.st_mode)):
        _ignore(path, doubt, own)
        return None
    try:
        with open(path, "rb", opener=open_at_once) as file:
            status = os.fstat(file.fileno())  # of the opened file: nobody can exchange it now
            text = file.read(MOST_BYTES + 1) if stat.S_ISREG(status.st_mode) else None
    except OSError as error:
        if own and not path.is_dir():
            raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
        return None
    if text is not None:
        doubt = doubt or _doubt(status)
    if doubt:
        _ignore(path, doubt, own or b"tool.tinynode" in (text or b""))
        return None
    return _usable(path, own, text)


def _usable(path: Path, own: bool, text: bytes | None) -> bytes | None:
    """The text of a file that counts; None for a ``pyproject.toml`` that cannot be read."""
    if text is not None and len(text) <= MOST_BYTES:
        return text
    if not own:
        return None
    what = "a pipe or a device" if text is None else f"larger than {MOST_BYTES} bytes"
    raise ConfigError(f"{path} is {what}: a file with a few settings is needed.")


_CURE = "or set the environment, such as TINYNODE_DEVICE"


def _doubt(status: os.stat_result) -> str:
    """Why a file does not count; empty for a file of this user or root that no one else writes."""
    if not hasattr(os, "geteuid"):  # Windows
        return ""
    if status.st_uid not in (0, os.geteuid()):
        return (
            f"belongs to another user (uid {status.st_uid}). Write the settings to a file of your "
            f"own, {_CURE}"
        )
    mode = stat.S_IMODE(status.st_mode)
    is_shared = mode & (stat.S_IWGRP | stat.S_IWOTH)
    if is_shared and not stat.S_ISLNK(status.st_mode):  # the mode of a link says nothing
        return f"can be written by others (mode {mode:o}). Write chmod go-w for it, {_CURE}"
    return ""


_ignored: set[Path] = set()
"""The files that a warning has named."""


def _ignore(path: Path, doubt: str, has_settings: bool) -> None:
    """Warn once of a file with settings that does not count."""
    if has_settings and path not in _ignored:
        _ignored.add(path)
        name = printable(str(path))  # another user may have named the folder
        warnings.warn(f"tinynode ignores the settings in {name}: the file {doubt}.", stacklevel=2)


def _refuse_header(content: dict[str, Any], path: Path) -> None:
    """Raise a ConfigError if ``tinynode.toml`` has the header of a ``pyproject.toml``."""
    for name, header in (("tool", "[tool.tinynode]"), ("tinynode", "[tinynode]")):
        if isinstance(content.get(name), dict):
            raise ConfigError(
                f"{path}: this file needs no header: leave {header} out and keep the settings "
                "below it."
            )


def _checked_table(settings: Any, path: str) -> dict[str, SettingSource]:
    if not isinstance(settings, dict):
        raise ConfigError(f"{path}: tool.tinynode must be a table, got {describe(settings)}.")
    known = [name for name in KINDS if name not in NOT_IN_FILES]
    for name in settings:
        if name in NOT_IN_FILES:
            raise ConfigError(
                f"{path}: a file cannot set {name}, the name of a program. Set "
                f"{PREFIX}{name.upper()} in the environment, or tinynode.config.{name} in code."
            )
        if name not in known:
            close = closest(name, known)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise ConfigError(
                f"{path}: there is no setting {short_text(name)}; {hint}Settings are "
                f"{', '.join(known)}."
            )
    return {name: SettingSource(_checked(name, settings[name], path), path) for name in settings}


def _checked(name: str, value: Any, origin: str) -> Any:
    """A value of the right type. A device is looked up later, at its first use."""
    if not isinstance(value, KINDS[name]):
        expected = "true or false" if KINDS[name] is bool else "text in quotes"
        raise ConfigError(f"{origin}: {name} must be {expected}, got {describe(value)}.")
    if name == "device" and not value:
        raise ConfigError(f"{origin}: device must not be empty. Leave it out for the default.")
    return checked_value(name, value, f"{origin}: ")


def checked_value(name: str, value: Any, where: str) -> Any:
    """The value of a setting; a dtype such as ``numpy.float32`` becomes its name.

    Raises:
        ConfigError: the dtype is unknown.
    """
    if name != "dtype":
        return value
    text = value
    if not isinstance(value, str | int | list | tuple | dict):
        text = getattr(value, "__name__", dtype_name(value))
    if not isinstance(text, str) or text not in DTYPES:
        raise ConfigError(
            f"{where}dtype must be one of {', '.join(DTYPES)}, got {short_text(value)}."
        )
    return text
