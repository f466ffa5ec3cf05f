"""Settings."""

import contextlib


class Config:
    """The settings of mynode."""

    enable_backprop = True  # False: operations record no graph


config = Config()


@contextlib.contextmanager
def no_backprop_mode():
    """In this block, operations record no graph. The old setting comes back at the end."""
    before = config.enable_backprop
    config.enable_backprop = False
    try:
        yield
    finally:
        config.enable_backprop = before
