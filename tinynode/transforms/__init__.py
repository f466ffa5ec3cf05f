"""Transforms: functions that take a function and give another."""

from tinynode.transforms.vmap import batched, vmap

__all__ = ["batched", "vmap"]
