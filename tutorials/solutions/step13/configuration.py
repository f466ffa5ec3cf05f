"""Settings."""

import contextlib


class Config:
    """The settings of mynode."""

    enable_backprop = True  # False: operations record no graph
    train = True  # False: dropout drops nothing


config = Config()


@contextlib.contextmanager
def using_config(name, value):
    """In this block, a setting has another value. The old value comes back at the end."""
    before = getattr(config, name)
    setattr(config, name, value)
    try:
        yield
    finally:
        setattr(config, name, before)


@contextlib.contextmanager
def no_backprop_mode():
    """In this block, operations record no graph. The old setting comes back at the end."""
    before = config.enable_backprop
    config.enable_backprop = False
    try:
        yield
    finally:
        config.enable_backprop = before
