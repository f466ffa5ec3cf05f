"""Transforms: derivatives of a Python function, as functions."""
