"""The note on an error in a model: the layer, and its place.

    InvalidType: Invalid operation is performed in: Linear (Forward) ...
    in model.encoder.layers[2] = Linear(64, 10), where model is a Net

Requirement: a message of a function names the function and the shapes, and cannot know the layer.
Each Module adds or completes the note while the error passes its call; a call without an error
pays nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class LayerNote(str):
    """The text of a note.

    Attributes:
        layer: the innermost layer; None for a note that is complete.
    """

    layer: Any = None

    def __reduce__(self) -> Any:
        """Pickled as a text alone: an error may go to another process."""
        return str, (str(self),)


def note_layer(error: Exception, model: Any, places: Sequence[tuple[str, Any]]) -> None:
    """Add the note to an error, or write a note from further inside anew.

    Args:
        error: the error that leaves a call of ``model``.
        model: the Module around the innermost layer, or this layer itself.
        places: the Modules in ``model`` with their places, such as ``encoder.layers[2]``.
    """
    notes = list(getattr(error, "__notes__", ()))
    positions = [position for position, note in enumerate(notes) if isinstance(note, LayerNote)]
    layer = notes[positions[-1]].layer if positions else model
    found = [place for place, module in places if module is layer]
    if not found:  # made in the call, or an error that was raised before
        return
    text = f"in {_line(layer)}"
    if layer is not model:
        text = f"in model.{found[0]} = {_line(layer)}, where model is a {type(model).__name__}"
    note = LayerNote(text)
    note.layer = layer
    if not positions:
        error.add_note(note)
    else:
        error.__notes__[positions[-1]] = note


def _line(layer: Any) -> str:
    """The layer in a line, such as ``Linear(64, 10)``."""
    text = repr(layer)
    return text if "\n" not in text else f"{type(layer).__name__}(...)"
