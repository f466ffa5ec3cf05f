"""Transforms: functions that take a function and give another."""

from tinynode.transforms.batching import batched
from tinynode.transforms.vmap import vmap

__all__ = ["batched", "vmap"]
