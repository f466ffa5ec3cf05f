"""Settings: a value for all threads, and each thread's own values.

Requirement: reading a setting is a single attribute read, because every function application reads
some settings. A thread's change is invisible to the other threads.

Python's attribute look-up does the work. ``config`` is a ``threading.local``: an assignment writes
to the thread's own dictionary, and hides the class attribute of the same name. The class
attributes are the global values, and ``global_config`` sets global values. The first values come
from the environment, then from a file: see ``config_sources``.

    tn.config.train              the value in this thread
    tn.config.train = False      set the value in this thread
    del tn.config.train          back to the global value
    tn.global_config.train       the global value; new threads start from it
    del tn.global_config.train   back to the value at the import of tinynode
    tn.config.origin("train")    the source of the value in this thread

A thread of a pool sees its own assignments, else the global values. A ``with`` block around the
submitting call does not reach the pool's threads.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from pathlib import Path
from typing import Any, TextIO

from tinynode.config_sources import SettingSource, checked_value, read_sources, working_folder
from tinynode.errors import ConfigError
from tinynode.habits import closest


class _Reads(threading.local):
    """The names of the added settings that this thread read, in a ``noted_reads()`` block."""

    names: set[str] | None = None


class AddedSetting:
    """A setting that users added: a class attribute that notes each read.

    Attributes:
        name: the name of the setting.
        value: the global value, or ``MISSING``. Each thread's own value hides the global value.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.value: Any = MISSING

    def __get__(self, settings: Configuration, owner: Any = None) -> Any:
        if _reads.names is not None:
            _reads.names.add(self.name)
        value = vars(settings).get(self.name, self.value)
        if value is MISSING:
            raise AttributeError(f"config has no attribute {self.name!r}.")
        return value

    def __set__(self, settings: Configuration, value: Any) -> None:
        vars(settings)[self.name] = value

    def __delete__(self, settings: Configuration) -> None:
        if vars(settings).pop(self.name, MISSING) is MISSING:
            raise AttributeError(f"config has no attribute {self.name!r} in this thread.")


class _Missing:
    """The value of a setting without a value."""


MISSING = _Missing()
_reads = _Reads()


class Configuration(threading.local):
    """The settings. A thread's own entries hide the class attributes, the global values."""

    enable_backprop: bool = True
    """True to record a graph. ``no_backprop_mode()`` sets False."""
    train: bool = True
    """True for training: dropout and batch normalisation differ in training and evaluation."""
    debug: bool = False
    """True to keep forward stacks, find NaN and infinite gradients, and find changes of retained
    arrays."""
    debug_infinite: bool = True
    """False lets debug mode pass infinite gradients, and the NaN made of infinity."""
    type_check: bool = True
    """True to run ``check_type_forward`` before each forward."""
    dtype: str = "float32"
    """The floating dtype of new parameters and of Python floats given to ``asarray``."""
    device: Any = None
    """The device of new Variables, by name; None means ``numpy``."""
    lazy_grad_sum: bool = False
    """True to keep a gradient's contributions in a list; the sum is computed when needed."""
    compiler: str = "auto"
    """The C compiler for nets on ``fast``: "auto" finds one, "none" uses none, else a path. The
    setting comes from code or from ``TINYNODE_COMPILER``, and from no file."""
    full_tracebacks: bool = False
    """True to show tinynode's frames in the traceback of an error in a compiled function."""
    recompute_phase: str | None = None
    """The run of ``checkpoint``'s function: ``"first"`` in forward, ``"again"`` in backward, None
    outside of both."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a value in this thread. Users may add settings with names of their own.

        Raises:
            ConfigError: the name is new and close to a known name, or the dtype is unknown.
        """
        super().__setattr__(name, _checked_assignment(self, name, value))

    @property
    def will_recompute(self) -> bool:
        """The name of version 0.1 for ``recompute_phase == "first"``."""
        return self._is_phase("will_recompute", "first")

    @property
    def in_recomputing(self) -> bool:
        """The name of version 0.1 for ``recompute_phase == "again"``."""
        return self._is_phase("in_recomputing", "again")

    def _is_phase(self, name: str, phase: str) -> bool:
        warnings.warn(
            f"config.{name} is config.recompute_phase == {phase!r} now.",
            DeprecationWarning,
            stacklevel=3,
        )
        return self.recompute_phase == phase

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={getattr(self, name)!r}" for name in setting_names(self))
        return f"tinynode.config({settings})"

    def origin(self, name: str) -> str:
        """The source of the value in this thread, as text.

        Raises:
            AttributeError: no setting has this name.
        """
        getattr(self, name)
        if name in vars(self):
            return "tinynode.config in this thread"
        if name in _loaded and name not in _assigned:
            return _loaded[name].origin
        return "tinynode.global_config"

    def show(self, file: TextIO | None = None) -> None:
        """Print the settings of this thread, sorted and aligned."""
        names = setting_names(self)
        width = max(len(name) for name in names)
        for name in names:
            print(f"{name:<{width}} {getattr(self, name)!r}", file=file or sys.stdout)


class _ForEveryThread(Configuration):
    """The global values: the class attributes of ``Configuration``."""

    def __repr__(self) -> str:
        return super().__repr__().replace("config", "global_config", 1)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a global value, with the same checks as in ``Configuration``."""
        value = _checked_assignment(self, name, value)
        if name in added_settings:
            added_settings[name].value = value
        else:
            setattr(Configuration, name, value)
        _assigned.add(name)

    def __delattr__(self, name: str) -> None:
        """Restore the value at the import, or remove an added setting."""
        if name in _loaded:
            setattr(Configuration, name, _loaded[name].value)
        elif name in added_settings and added_settings[name].value is not MISSING:
            added_settings[name].value = MISSING
        else:
            raise AttributeError(f"global_config has no attribute {name!r} to delete.")
        _assigned.discard(name)


config = Configuration()
global_config = _ForEveryThread()
_loaded: dict[str, SettingSource] = {}
"""The global values at the import of tinynode, each with its source."""
added_settings: dict[str, AddedSetting] = {}
"""The settings that users added by an assignment, by name."""
value_checks: dict[str, Callable[[Any], object]] = {}
"""By name of the setting: a function that refuses an assignment of an unusable value."""
_assigned: set[str] = set()
"""The names of the global values set since the import."""


def _checked_assignment(settings: Configuration, name: str, value: Any) -> Any:
    """The value to keep; a ConfigError for a misspelt name or an unknown dtype."""
    if not hasattr(settings, name):
        close = closest(name, setting_names(settings), cutoff=0.8)
        if not close and name not in added_settings:
            added_settings[name] = AddedSetting(name)
            setattr(Configuration, name, added_settings[name])
        if close:
            raise ConfigError(
                f"config has no setting {name!r}: did you mean {close[0]!r}? A setting of "
                "your own needs a name that is not so close to one of these."
            )
    value = checked_value(name, value, "config.")
    if name in value_checks:
        value_checks[name](value)
    return value


def _load() -> None:
    """Replace defaults by the settings of the environment and of the file."""
    sources = read_sources(os.environ, working_folder())
    for name in setting_names(config):
        _loaded[name] = sources.get(
            name, SettingSource(getattr(Configuration, name), "the default")
        )
    for name, source in sources.items():
        setattr(Configuration, name, source.value)


def setting_names(settings: Configuration) -> list[str]:
    """The names of all settings, including added settings."""
    own = vars(Configuration).items()
    computed = property, AddedSetting
    names = {name for name, value in own if name[0] != "_" and not isinstance(value, computed)}
    names.update(name for name, one in list(added_settings.items()) if one.value is not MISSING)
    return sorted((names | set(vars(settings))) - {"origin", "show"})


def added_value(name: str) -> Any:
    """The value of an added setting in this thread, or ``MISSING``; the read is not noted."""
    return vars(config).get(name, added_settings[name].value)


@contextmanager
def noted_reads() -> Iterator[dict[str, Any]]:
    """The added settings read inside the ``with`` block, with the values before the block.

    The dict is filled at the end of the block.
    """
    before = {name: added_value(name) for name in list(added_settings)}
    found: dict[str, Any] = {}
    outer, _reads.names = _reads.names, set()
    try:
        yield found
    finally:
        names, _reads.names = _reads.names, outer
        found.update((name, before.get(name, MISSING)) for name in names)


def _unknown(name: str) -> str:
    known = setting_names(config)
    close = closest(name, known)
    hint = f"did you mean {close[0]!r}?" if close else f"the settings are {', '.join(known)}."
    return f"config has no setting {name!r}: {hint} An assignment makes a new setting."


@contextmanager
def using_config(name: str | None = None, value: Any = None, **settings: Any) -> Iterator[None]:
    """Change settings in this thread for the length of a ``with`` block.

    Both ``using_config("train", False)`` and ``using_config(train=False, debug=True)`` work.

        >>> with tn.using_config("train", False):
        ...     print(tn.config.train)
        False
        >>> tn.config.train
        True

    Raises:
        AttributeError: no setting has this name.
        ConfigError: the dtype is unknown.
    """
    changes = {**settings, name: value} if name is not None else settings
    for key in changes:
        if not hasattr(config, key):  # checked before any setting changes
            raise AttributeError(_unknown(key))
        changes[key] = checked_value(key, changes[key], "config.")
    with Block(changes):
        yield


Undo = tuple[int, dict[str, Any], dict[str, Any]]
"""How to undo a block: its number, the dict, and the entries before."""


class _OpenBlocks(threading.local):
    """The open blocks of this thread, innermost last."""

    def __init__(self) -> None:
        self.undo: list[Undo] = []


_open_blocks = _OpenBlocks()
_numbers = itertools.count()


class Block:
    """A change of a dict of this thread, for the length of a ``with`` block.

    Python handles Ctrl-C as a function begins, and after a call. So ``__exit__`` may be left out.
    There are two further ways back. The end of a block around undoes the blocks inside, too. A
    Block that is freed ends, as when the exception is over.

    Args:
        changes: the new entries.
        own: the dict; by default the thread's settings.
    """

    def __init__(self, changes: dict[str, Any], own: dict[str, Any] | None = None) -> None:
        self.changes = changes
        self.own = own
        self.entries: list[tuple[list[Undo], Undo]] = []  # several, if entered again inside

    def __enter__(self) -> None:
        own = vars(config) if self.own is None else self.own
        before = {}
        for key in self.changes:
            before[key] = own.get(key, MISSING)
        undo = _open_blocks.undo
        entry = next(_numbers), own, before
        self.entries += ((undo, entry),)
        undo += (entry,)
        own |= self.changes  # no call stands after the change

    def __exit__(self, kind: Any = None, error: Any = None, traceback: Any = None) -> None:
        here = _open_blocks.undo
        entries = self.entries
        place = len(entries) - 1
        while place > 0 and entries[place][0] is not here:
            place -= 1  # of another thread; a block of a generator may end in any thread
        undo, entry = entries[place]
        while entry in undo:
            _, own, before = undo[-1]
            for key, value in before.items():
                if value is MISSING:
                    own.pop(key, None)
                else:
                    own[key] = value
            del undo[-1]  # at last: a stopped end may begin again
        del entries[place]

    def __del__(self) -> None:
        while getattr(self, "entries", ()):  # none if Ctrl-C stopped the making
            self.__exit__()


class backprop_mode(Block, ContextDecorator):  # noqa: N801 - used as a function: with backprop_mode(False): ...
    """``with backprop_mode(False):`` is a quick ``using_config("enable_backprop", False)``."""

    def __init__(self, enabled: bool) -> None:
        self.changes = {"enable_backprop": enabled}
        self.own = None
        self.entries = []

    def _recreate_cm(self) -> backprop_mode:
        """A fresh object for each call of a decorated function."""
        return backprop_mode(self.changes["enable_backprop"])


def no_backprop_mode() -> backprop_mode:
    """``with no_backprop_mode():`` functions in the block record no graph.

    A result of the block has no creator, and requires no gradient.

        >>> x = tn.asarray([1.0])
        >>> with tn.no_backprop_mode():
        ...     y = x * x
        >>> y.creator is None
        True
    """
    return backprop_mode(False)


def force_backprop_mode() -> backprop_mode:
    """``with force_backprop_mode():`` functions in the block record a graph.

    The block may stand inside a ``no_backprop_mode()`` block.
    """
    return backprop_mode(True)


no_grad = no_backprop_mode
enable_grad = force_backprop_mode


def is_debug() -> bool:
    """True if debug mode is on in this thread."""
    return config.debug


def set_debug(debug: bool) -> None:
    """Turn debug mode on or off in this thread."""
    config.debug = debug


_load()


def cache_path() -> Path:
    """The folder of the user for what can be made again, such as compiled libraries.

    It is ``TINYNODE_CACHE``, or ``tinynode`` in ``XDG_CACHE_HOME`` or ``~/.cache``. A relative
    path would be another folder after each ``chdir``, so it does not count.

    Raises:
        RuntimeError: there is no home folder, or it is a relative path.
    """
    given = os.environ.get("TINYNODE_CACHE", "")
    if Path(given).is_absolute():
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if Path(base).is_absolute():
        return Path(base) / "tinynode"
    home = Path.home()
    if not home.is_absolute():
        raise RuntimeError(f"the home is a relative path, {str(home)!r}")
    return home / ".cache" / "tinynode"
