"""Settings. Step 10: this file is given."""

import contextlib


class Config:
    """The settings of mynode."""

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
