"""The tables of devices and backends, for tests that register backends of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

from tinynode.devices import arrays, registry
from tinynode.transforms import batching

TABLES: list[dict] = [
    registry.backends,
    registry.devices,
    arrays.backend_of_type,
    arrays.namespace_of_type,
    arrays.kinds_of_type,
    arrays.float16_of_type,
]


@contextlib.contextmanager
def restored_tables() -> Iterator[None]:
    """After the block every table is as it was before."""
    with contextlib.ExitStack() as stack:
        for table in TABLES:
            stack.enter_context(mock.patch.dict(table))
        # batched devices that are made in the block leave the tables, so they leave the pool too
        stack.enter_context(mock.patch.dict(batching.pool, clear=True))
        yield
