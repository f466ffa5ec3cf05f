"""The command ``backends``: every known backend, with devices, versions and optional parts.

Requirement: a short list shows the devices of this machine, and for the others the reason.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from tinynode.commands import blas, passed_rows
from tinynode.devices import (
    OPTIONAL_PARTS,
    Backend,
    NetCompiler,
    backend_names,
    backend_origin,
    current_device,
    get_backend,
    indices_of,
    namespace_from,
    supports,
)
from tinynode.errors import DeviceError


def add_command(commands: Any) -> None:
    """Describe the command to argparse."""
    summary = "list every known backend: usable or not, devices, versions, optional parts"
    parser = commands.add_parser("backends", help=summary, description=summary)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Print a few lines for each backend, and the current device."""
    for name in backend_names():
        print("\n".join(describe_backend(name)), end="\n\n")
    print(f"threads of NumPy's products: {blas.status()}", end="\n\n")
    try:
        print(f"new Variables stand on: {current_device()}")
    except (DeviceError, TypeError) as error:
        print(f"new Variables cannot be made: {error}")
    return 0


def describe_backend(name: str) -> Iterator[str]:
    """The lines about a backend."""
    try:
        backend = get_backend(name)
        indices = indices_of(backend)
        version = version_of(backend)
    except DeviceError as error:
        yield f"{name}: not usable"
        yield f"  why:            {error}"
        yield f"  from:           {backend_origin(name)}"
        return
    yield f"{name}: usable" if indices else f"{name}: not usable"
    yield f"  devices:        {', '.join(_device_names(backend, indices)) or 'none here'}"
    yield f"  version:        {version}"
    yield f"  capabilities:   {', '.join(sorted(backend.capabilities))}"
    parts = [part.__name__ for part in OPTIONAL_PARTS if supports(backend, part)]
    yield f"  optional parts: {', '.join(parts) or 'none'}"
    if supports(backend, NetCompiler):
        yield from [f"  compiler:       {line}" for line in backend.compiler_status()]
    yield from [f"  rows of table:  {text}" for text in passed_rows.status(name)]
    yield f"  from:           {backend_origin(name)}"


def _device_names(backend: Backend, indices: tuple[str, ...]) -> list[str]:
    if len(indices) == 1:
        return [backend.name]
    return [f"{backend.name}:{index}" for index in indices]


def version_of(backend: Backend) -> str:
    """The version of the array library, from the backend or from its namespace.

    Raises:
        DeviceError: the backend has no namespace to show.
    """
    namespace = namespace_from(backend)
    return str(getattr(backend, "version", None) or getattr(namespace, "__version__", "unknown"))
