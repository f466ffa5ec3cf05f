"""Settings: one value for every thread, and what a thread sets for itself.

Requirement: reading a setting is one attribute read, because every function application reads
some; and a setting that one thread changes stays unseen by the others.

Python's own attribute look-up does it. ``config`` is a ``threading.local``: what a thread assigns
lives in the thread's own dictionary, and hides the class attribute of that name. The class
attributes are the values for every thread, and ``global_config`` is what sets them. They start
from the environment, then from a file: see ``config_sources``.

    tn.config.train              the value that counts in this thread
    tn.config.train = False      set it in this thread
    del tn.config.train          uncover the value for every thread
    tn.global_config.train       the value for every thread (new threads start from it)
    del tn.global_config.train   back to the value that it had when tinynode was imported
    tn.config.origin("train")    where the value that counts came from

A thread of a pool is a thread like others: it sees what *it* assigned, else the values for every
thread, and nothing of a ``with`` block around the call that handed it work.
"""

from __future__ import annotations

import difflib
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager
from typing import Any, TextIO

from tinynode.config_sources import Source, check_value, read_sources, working_folder
from tinynode.errors import ConfigError


class Configuration(threading.local):
    """The settings. A thread's own entries hide the class attributes, which serve every thread."""

    enable_backprop: bool = True
    """Record a graph. ``no_backprop_mode()`` turns it off."""
    train: bool = True
    """Whether functions that differ in training and evaluation (dropout) behave as in training."""
    debug: bool = False
    """Keep forward stacks, look for NaN, find arrays that were changed in place."""
    type_check: bool = True
    """Run ``check_type_forward`` before each forward."""
    dtype: str = "float32"
    """The floating dtype of new parameters and of Python floats given to ``asarray``."""
    device: Any = None
    """The device of new Variables, by name; None means ``numpy``."""
    lazy_grad_sum: bool = False
    """Keep a gradient's contributions in a list, and add them when they are needed."""
    recompute_phase: str | None = None
    """``"first"`` while ``checkpoint`` runs its function for the first time, ``"again"`` while it
    runs the function again for a backward, else None."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set in this thread; users may add settings, but not one that is a slip of the pen.

        Raises:
            ConfigError: the name is nearly that of another setting; or there is no such dtype.
        """
        _check_assignment(self, name, value)
        super().__setattr__(name, value)

    @property
    def will_recompute(self) -> bool:
        """Of version 0.1: ``recompute_phase == "first"``."""
        return self._is_phase("will_recompute", "first")

    @property
    def in_recomputing(self) -> bool:
        """Of version 0.1: ``recompute_phase == "again"``."""
        return self._is_phase("in_recomputing", "again")

    def _is_phase(self, name: str, phase: str) -> bool:
        warnings.warn(
            f"config.{name} is config.recompute_phase == {phase!r} now.",
            DeprecationWarning,
            stacklevel=3,
        )
        return self.recompute_phase == phase

    def origin(self, name: str) -> str:
        """Where the value that counts in this thread came from.

        Raises:
            AttributeError: there is no setting of that name.
        """
        getattr(self, name)
        if name in vars(self):
            return "tinynode.config in this thread"
        if name in _loaded and name not in _assigned:
            return _loaded[name].origin
        return "tinynode.global_config"

    def show(self, file: TextIO | None = None) -> None:
        """Print the settings that count in this thread, sorted and aligned."""
        names = setting_names(self)
        width = max(len(name) for name in names)
        for name in names:
            print(f"{name:<{width}} {getattr(self, name)!r}", file=file or sys.stdout)


class _ForEveryThread(Configuration):
    """The values for every thread. It keeps none itself: reading it reads the class attributes."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set for every thread; the same is refused as in ``Configuration``."""
        _check_assignment(self, name, value)
        setattr(Configuration, name, value)
        _assigned.add(name)

    def __delattr__(self, name: str) -> None:
        """Go back to the value at the import; a setting that was added goes away."""
        if name in _loaded:
            setattr(Configuration, name, _loaded[name].value)
        else:
            delattr(Configuration, name)
        _assigned.discard(name)


config = Configuration()
global_config = _ForEveryThread()
_loaded: dict[str, Source] = {}
"""The values for every thread as they were when tinynode was imported."""
added_settings: list[str] = []
"""The names of the settings that users added by an assignment."""
_assigned: set[str] = set()
"""The settings that were set for every thread since then."""


def _check_assignment(settings: Configuration, name: str, value: Any) -> None:
    """Raise a ConfigError for a slip of the pen, or for a dtype that there is not."""
    if not hasattr(settings, name):
        close = difflib.get_close_matches(name, setting_names(settings), n=1, cutoff=0.8)
        if not close and name not in added_settings:
            added_settings.append(name)
        if close:
            raise ConfigError(
                f"config has no setting {name!r}: did you mean {close[0]!r}? A setting of "
                "your own needs a name that is not so close to one of these."
            )
    check_value(name, value, "config.")


def _load() -> None:
    """Put the settings of the environment and of the file in the place of the defaults."""
    sources = read_sources(os.environ, working_folder())
    for name in setting_names(config):
        _loaded[name] = sources.get(name, Source(getattr(Configuration, name), "the default"))
    for name, source in sources.items():
        setattr(Configuration, name, source.value)


def setting_names(settings: Configuration) -> list[str]:
    """The names of all settings, those that users added included."""
    own = vars(Configuration).items()
    names = {name for name, value in own if name[0] != "_" and not isinstance(value, property)}
    return sorted((names | set(vars(settings))) - {"origin", "show"})


def _unknown(name: str) -> str:
    known = setting_names(config)
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the settings are {', '.join(known)}."
    return f"config has no setting {name!r}: {hint} A new one is made by assigning to it."


@contextmanager
def using_config(name: str | None = None, value: Any = None, **settings: Any) -> Iterator[None]:
    """Change settings in this thread for the length of a ``with`` block.

    Both ``using_config("train", False)`` and ``using_config(train=False, debug=True)`` work.

    Raises:
        AttributeError: there is no setting of that name.
        ConfigError: there is no such dtype.
    """
    changes = {**settings, name: value} if name is not None else settings
    for key in changes:
        if not hasattr(config, key):  # an error before anything changes
            raise AttributeError(_unknown(key))
        check_value(key, changes[key], "config.")
    own = vars(config)
    before = {key: own[key] for key in changes if key in own}
    own.update(changes)
    try:
        yield
    finally:
        for key in changes:
            own.pop(key, None)
        own.update(before)


class backprop_mode(ContextDecorator):  # noqa: N801 - used as a function: with backprop_mode(False): ...
    """``with backprop_mode(False):`` as ``using_config("enable_backprop", False)``, but quicker.

    One object serves one ``with`` block at a time.
    """

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    def _recreate_cm(self) -> backprop_mode:
        return backprop_mode(self.enabled)  # as a decorator, each call has a block of its own

    def __enter__(self) -> None:
        self.before = vars(config).get("enable_backprop")
        vars(config)["enable_backprop"] = self.enabled

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self.before is None:
            vars(config).pop("enable_backprop", None)
        else:
            vars(config)["enable_backprop"] = self.before


def no_backprop_mode() -> Any:
    """``with no_backprop_mode():`` functions record no graph."""
    return backprop_mode(False)


def force_backprop_mode() -> Any:
    """``with force_backprop_mode():`` functions record a graph, inside no_backprop_mode() too."""
    return backprop_mode(True)


def is_debug() -> bool:
    """Whether debug mode is on in this thread."""
    return config.debug


def set_debug(debug: bool) -> None:
    """Turn debug mode on or off in this thread."""
    config.debug = debug


_load()
