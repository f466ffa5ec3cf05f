"""The traceback of an error inside of a compiled function: the user's frames alone.

Requirement: the user's own line is the last line of the traceback. While a function is recorded,
a dozen frames of tinynode stand around each line of the user.
``config.full_tracebacks = True`` shows all frames.
"""

from __future__ import annotations

from types import FrameType, TracebackType

from tinynode.configuration import config
from tinynode.errors import TinynodeError


def hide_own_frames(error: Exception) -> None:
    """Take tinynode's frames out of an error's traceback; ``raise`` then goes on with the rest.

    An error without a frame of the user keeps all frames, unless the error is one of tinynode's:
    its message tells what to do.
    """
    if config.full_tracebacks:
        return
    kept: list[TracebackType] = []
    entry = error.__traceback__
    while entry is not None:
        if not _is_of_tinynode(entry.tb_frame):
            kept.append(entry)
        entry = entry.tb_next
    if not kept and not isinstance(error, TinynodeError):
        return
    shown: TracebackType | None = None
    for entry in reversed(kept):
        shown = TracebackType(shown, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = shown


def _is_of_tinynode(frame: FrameType) -> bool:
    """True for the code of tinynode and of its backends."""
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return package == "tinynode" or package.startswith("tinynode_")
