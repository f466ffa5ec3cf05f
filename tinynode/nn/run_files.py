"""The files of a training run, checked before the first step.

Requirement: a run replaces no file of another kind, of another model or of another run, unless
the user says so. A path that cannot be written is an error before the first step.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from tinynode.errors import StateError
from tinynode.nn.module import Module
from tinynode.nn.serializers import load

CURE = "Give another path, or overwrite=True."


def refuse_other_checkpoint(path: str | os.PathLike[str], model: Module) -> None:
    """Refuse to replace a file that is no checkpoint of such a model.

    Raises:
        FileExistsError: the file is another one.
    """
    if not os.path.isfile(path):
        return
    try:
        found = load(path, part="model")
    except (StateError, ImportError):
        kind = "no checkpoint of a training run"
    else:
        own = {name: array.shape for name, array in model.state_dict().items()}
        if own == {name: array.shape for name, array in found.items()}:
            return
        kind = "the checkpoint of another model"
    raise FileExistsError(
        f"Trainer: checkpoint: the file {os.fspath(path)!r} is {kind}, and the trainer would "
        f"replace it. {CURE}"
    )


@contextmanager
def naming(argument: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of the file system in the block name the argument, the path and the cure."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # an error of ours
            raise
        text = f"Trainer: {argument}: {os.fspath(path)!r} cannot be written: {error.strerror}."
        folder = os.path.dirname(os.path.realpath(path))  # a link may point to another
        if error.errno == errno.ENOENT:
            text += f" The folder {folder!r} is missing: os.makedirs({folder!r})."
        raise type(error)(error.errno, text) from None
