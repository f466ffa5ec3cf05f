"""Where the settings for every thread come from, when tinynode is imported.

Requirement: a project or a shell says once which device its programs use, and a user who wonders
where a value came from gets an answer. The first of these that has a setting decides:

    the environment     TINYNODE_DEVICE, TINYNODE_DTYPE, TINYNODE_DEBUG ...
    a file              ``tinynode.toml``, or the table ``[tool.tinynode]`` of ``pyproject.toml``
    the default

The file is the nearest one, from the working folder upwards; a ``pyproject.toml`` without that
table is passed over, and in one folder ``tinynode.toml`` comes first. Nothing is ever written.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tinynode.errors import ConfigError, describe

KINDS: dict[str, type] = {
    "debug": bool,
    "device": str,
    "dtype": str,
    "enable_backprop": bool,
    "lazy_grad_sum": bool,
    "train": bool,
    "type_check": bool,
}
"""The settings that the environment and files may have, and their types."""

DTYPES = ("float32", "float64", "float16")
PREFIX = "TINYNODE_"
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


class Source(NamedTuple):
    """A value, and where it was written: a text that goes on after "from"."""

    value: Any
    origin: str


def read_sources(environment: Mapping[str, str], folder: Path | None) -> dict[str, Source]:
    """The settings of the environment and of the nearest file above ``folder``.

    Raises:
        ConfigError: a file cannot be read, or has an unknown key or a value of the wrong type; or
            a variable of the environment has a wrong value, or nearly the name of a setting.
    """
    return _read_file(folder) | _read_environment(environment)


def working_folder() -> Path | None:
    """The working folder; None where it was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _read_environment(environment: Mapping[str, str]) -> dict[str, Source]:
    found = {}
    given = {key: text for key, text in environment.items() if text}  # an empty one says nothing
    _refuse_slips(given)
    for name, kind in KINDS.items():
        key = PREFIX + name.upper()
        text = given.get(key)
        if text is None:
            continue
        origin = f"the environment's {key}"
        value = _as_bool(text, origin) if kind is bool else text
        found[name] = Source(_checked(name, value, origin), origin)
    return found


def _refuse_slips(environment: Mapping[str, str]) -> None:
    """Raise a ConfigError for ``TINYNODE_DEVCIE``; names that are close to none are not ours."""
    names = [name.upper() for name in KINDS]
    for key in environment:
        name = key.removeprefix(PREFIX)
        if name == key or name in names:
            continue
        close = difflib.get_close_matches(name, names, n=1, cutoff=0.8)
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
    raise ConfigError(f"{origin} must be 1 or 0, got {text!r}.")


def _read_file(folder: Path | None) -> dict[str, Source]:
    if folder is None:
        return {}
    for place in (folder, *folder.parents):
        for name in ("tinynode.toml", "pyproject.toml"):
            settings = _table_of(place / name)
            if settings is not None:
                return _checked_table(settings, str(place / name))
    return {}


def _table_of(path: Path) -> dict[str, Any] | None:
    """The settings in a file; None if it is not there, or is not about tinynode."""
    own = path.name == "tinynode.toml"
    try:
        text = path.read_bytes()
    except OSError as error:
        if own and path.is_file():
            raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
        return None
    if not own and b"tinynode" not in text:  # most are not about us: leave them unparsed
        return None
    import tomllib  # a tenth of the time of `import tinynode`, so only here

    try:
        content = tomllib.loads(text.decode())
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    if own:
        _refuse_header(content, path)
        return content
    tool = content.get("tool")
    return tool.get("tinynode") if isinstance(tool, dict) else None


def _refuse_header(content: dict[str, Any], path: Path) -> None:
    """Raise a ConfigError if our own file has the header that ``pyproject.toml`` needs."""
    for name, header in (("tool", "[tool.tinynode]"), ("tinynode", "[tinynode]")):
        if isinstance(content.get(name), dict):
            raise ConfigError(
                f"{path}: this file needs no header: leave {header} out and keep the settings "
                "below it."
            )


def _checked_table(settings: Any, path: str) -> dict[str, Source]:
    if not isinstance(settings, dict):
        raise ConfigError(f"{path}: tool.tinynode must be a table, got {describe(settings)}.")
    for name in settings:
        if name not in KINDS:
            close = difflib.get_close_matches(name, KINDS, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise ConfigError(
                f"{path}: there is no setting {name!r}; {hint}Settings are {', '.join(KINDS)}."
            )
    return {name: Source(_checked(name, settings[name], path), path) for name in settings}


def _checked(name: str, value: Any, origin: str) -> Any:
    """A value of the right type; whether a device can be used shows when it is asked for."""
    if not isinstance(value, KINDS[name]):
        expected = "true or false" if KINDS[name] is bool else "text in quotes"
        raise ConfigError(f"{origin}: {name} must be {expected}, got {describe(value)}.")
    if name == "device" and not value:
        raise ConfigError(f"{origin}: device must not be empty. Leave it out for the default.")
    check_value(name, value, f"{origin}: ")
    return value


def check_value(name: str, value: Any, where: str) -> None:
    """Raise a ConfigError for a dtype that there is not; other settings are not checked here."""
    if name == "dtype" and not (isinstance(value, str) and value in DTYPES):
        raise ConfigError(f"{where}dtype must be one of {', '.join(DTYPES)}, got {value!r}.")
