"""Transforms: functions that take a function and give another."""

from tinynode.transforms.batching import batched, note_moved
from tinynode.transforms.vmap import vmap

__all__ = ["batched", "note_moved", "vmap"]
