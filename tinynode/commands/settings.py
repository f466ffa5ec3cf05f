"""The command ``config``: every setting, with value and source.

Requirement: the list explains, for example, why a program runs on some device.
"""

from __future__ import annotations

import argparse
from typing import Any

from tinynode.config_sources import KINDS
from tinynode.configuration import config
from tinynode.devices import current_device
from tinynode.errors import DeviceError

ORDER = """\
The first of these that has a setting decides: a thread's own tinynode.config,
tinynode.global_config, the environment (TINYNODE_DEVICE, TINYNODE_DTYPE ...), the nearest
tinynode.toml or [tool.tinynode] in a pyproject.toml from this folder upwards, the default. A file
counts if it belongs to you or root and nobody else can write to it; no file sets the compiler."""


def add_command(commands: Any) -> None:
    """Describe the command to argparse."""
    summary = "show every setting and where it came from"
    parser = commands.add_parser("config", help=summary, description=summary, epilog=ORDER)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Print a line for each setting, and the reason if the device is unusable."""
    rows = [(name, toml_value(name), config.origin(name)) for name in KINDS]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, value, origin in rows:
        print(f"{name:<{widths[0]}}  {value:<{widths[1]}}  from {origin}")
    try:
        current_device()
    except (DeviceError, TypeError) as error:
        print(f"\nthe device cannot be used: {error}")
    return 0


def toml_value(name: str) -> str:
    """The value in TOML."""
    value = getattr(config, name)
    if name == "device" and value is None:
        value = "numpy"
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'
