"""Checkpoints: a whole training run in a single file.

Requirement: a resumed run equals the unbroken run bit by bit. So a file holds the state of every
object with ``state_dict``, the optimizer's settings, plain values such as the epoch, and the state
of ``tinynode.random``. Loading restores every object, or changes none.

The arrays stand in the file under names such as ``model/layers.0.weight``. All other values stand
in a text of JSON, the entry ``checkpoint.json``. Nothing in the file is code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy

from tinynode import random
from tinynode.atomic_file import check_writable
from tinynode.core.nested import MOST_NUMBERS, check_nested
from tinynode.core.variable import Variable
from tinynode.devices import is_array
from tinynode.errors import StateError, describe, printable
from tinynode.nn.serializers import file_content, load, write_arrays
from tinynode.nn.state import State, host_array
from tinynode.safe_files import (
    checked_path,
    entry,
    is_deeper,
    listed,
    parse_json,
    reason_of,
)

_TEXT = "checkpoint.json"
_ARRAY = "@array"
"""A dict with the single key ``@array`` stands in the JSON for an array of the file."""
_FORMAT = 1
_MOST_DEPTH = 200
"""The depth of lists and objects in each other, in the values of a checkpoint."""


def save_checkpoint(path: str | os.PathLike[str], **parts: Any) -> None:
    """Write the state of a training run to a file, for ``load_checkpoint``.

        nn.save_checkpoint("run.npz", model=model, optimizer=optimizer, epoch=3)

    The state of ``tinynode.random`` is always included. The format is that of the path's suffix,
    as for ``nn.save``. The file appears at ``path`` only when complete.

    Args:
        path: the file; an existing file is replaced.
        parts: by names of your choice, except ``random``: objects with ``state_dict`` and
            ``load_state_dict``, such as a model, an optimizer, a schedule or a DataLoader. Or
            plain values: numbers, text, booleans, None, arrays, and lists and dicts of these.
            A tuple is loaded as a list.

    Raises:
        StateError: a value cannot be saved; the message names the part.
        OSError: the file cannot be written; an old file is still whole.
    """
    if "random" in parts:
        raise StateError(
            "save_checkpoint: random is the name of tinynode's random state, which is always "
            "saved. Choose another name."
        )
    path = checked_path("save_checkpoint", path)
    write_arrays(path, _arrays(parts))


def check_checkpoint(path: str | os.PathLike[str], **parts: Any) -> None:
    """Check before a long job that ``save_checkpoint`` can write the parts to ``path``.

    A file of the same size is written to the same folder, and removed.

    Raises:
        StateError: a value cannot be saved.
        OSError: the file cannot be written.
    """
    check_writable(path, file_content(path, _arrays(parts)))


def _arrays(parts: Mapping[str, Any]) -> State:
    """The arrays of a file; the first ones are those of the parts, the last is the document."""
    encoder = _Encoder()
    objects: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name, given in parts.items():
        check_nested("save_checkpoint", name, given, MOST_NUMBERS, _MOST_DEPTH + 50)
        part = _saved(given)
        if not hasattr(part, "state_dict"):
            values[name] = encoder.encode(name, part)
            continue
        objects[name] = {
            "class": type(part).__name__,
            "state": encoder.encode(name, part.state_dict()),
            "settings": encoder.encode(f"{name}/settings", _settings(part)),
        }
    document = {
        "format": _FORMAT,
        "objects": objects,
        "values": values,
        "random": encoder.encode("random/state", random.get_state()),
    }
    if is_deeper(document, _MOST_DEPTH):
        raise StateError(
            f"save_checkpoint: lists and dicts stand in each other more than {_MOST_DEPTH} deep, "
            "and load_checkpoint would refuse the file. Save flatter values."
        )
    text = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")
    encoder.arrays[_TEXT] = numpy.frombuffer(text, numpy.uint8)
    return encoder.arrays


def load_checkpoint(path: str | os.PathLike[str], **objects: Any) -> dict[str, Any]:
    """Restore the objects of a training run in place; return the plain values by name.

        epoch = nn.load_checkpoint("run.npz", model=model, optimizer=optimizer)["epoch"]

    Every object and the random state are restored, or nothing changes. An optimizer gets its
    learning rate and the other settings of the file.

    Args:
        path: a file of ``save_checkpoint``.
        objects: by the names in the file: objects like those that were saved. None leaves an
            object out. For the model alone, ``nn.load(path, part="model")`` gives the arrays.

    Raises:
        FileNotFoundError: there is no such file.
        StateError: the file is no checkpoint, lacks an object, or holds an object that is not
            given. Or an object's names, shapes or dtypes differ. All objects are unchanged.
    """
    path = checked_path("load_checkpoint", path)
    arrays = load(path)
    objects = {name: _saved(part) for name, part in objects.items()}
    document = _document(path, arrays)
    saved = document["objects"]
    _check_names(path, saved, document["values"], objects)
    _check_objects(path, saved, objects)
    chosen = {name: part for name, part in objects.items() if part is not None}
    states = {name: _decode(saved[name]["state"], arrays) for name in chosen}
    settings = {name: saved[name]["settings"] for name in chosen}
    before = {name: part.state_dict() for name, part in chosen.items()}
    own_settings = {name: _settings(part) for name, part in chosen.items()}
    random_state = random.get_state()
    try:
        _restore(path, chosen, states, settings)
        _restore_random(path, document["random"], arrays)
    except BaseException:
        _restore(path, chosen, before, own_settings)
        random.set_state(random_state)
        raise
    values: dict[str, Any] = _decode(document["values"], arrays)
    return values


class _Encoder:
    """Turns values into values of JSON, and collects the arrays by name.

    Attributes:
        arrays: the arrays met so far, by their names in the file.
    """

    def __init__(self) -> None:
        self.arrays: State = {}

    def encode(self, name: str, value: Any) -> Any:
        """The value for JSON; an array becomes the array's name in the file."""
        if isinstance(value, numpy.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Mapping):
            return {self._key(name, k): self.encode(f"{name}/{k}", v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.encode(f"{name}/{i}", entry) for i, entry in enumerate(value)]
        if isinstance(value, Variable) or not is_array(value):
            hint = " Give float(...) of a loss." if isinstance(value, Variable) else ""
            raise StateError(
                f"save_checkpoint: {name} must be an object with state_dict, a number, text, a "
                f"boolean, None, an array, or a list or dict of these, got {describe(value)}."
                f"{hint}"
            )
        if name in self.arrays:
            raise StateError(f"save_checkpoint: two arrays have the name {name}. Rename one.")
        self.arrays[name] = host_array("save_checkpoint", name, value)
        return {_ARRAY: name}

    def _key(self, name: str, key: Any) -> str:
        if not isinstance(key, str) or key == _ARRAY:
            raise StateError(
                f"save_checkpoint: {name} has the key {key!r}; the keys of a dict must be text, "
                f"other than {_ARRAY!r}. Write str(key)."
            )
        return key


def _decode(value: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_decode(entry, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    if list(value) == [_ARRAY]:
        name = value[_ARRAY]
        if not isinstance(name, str) or name not in arrays:
            raise StateError(f"load_checkpoint: the file lacks the array {listed([name])}.")
        return arrays[name]
    return {key: _decode(entry, arrays) for key, entry in value.items()}


def _document(path: str | os.PathLike[str], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON document of a checkpoint, with the types of its parts checked."""
    text = arrays.get(_TEXT)
    is_text = text is not None and text.dtype == numpy.uint8 and text.ndim == 1
    try:
        if text is None or not is_text:
            raise ValueError(f"the array {_TEXT} is missing, or no text")
        document: dict[str, Any] = parse_json(text.tobytes(), _MOST_DEPTH)
        found = entry(document, "format", int, where=_TEXT)
        if found == _FORMAT:
            _check_document(document)
    except ValueError as error:
        raise StateError(
            f"load_checkpoint: {os.fspath(path)} is no file of save_checkpoint. For a file of "
            f"nn.save write model.load_state_dict(nn.load(path)). The reason: {reason_of(error)}."
        ) from None
    if found != _FORMAT:
        raise StateError(
            f"load_checkpoint: {os.fspath(path)} has the format {str(found)[:20]}, and this "
            f"version of tinynode reads the format {_FORMAT}."
        )
    return document


def _check_document(document: dict[str, Any]) -> None:
    """Refuse parts of other types than ``save_checkpoint`` writes."""
    entry(document, "values", dict, where=_TEXT)
    entry(document, "random", dict, where=_TEXT)
    objects = entry(document, "objects", dict, where=_TEXT)
    for name in objects:
        part = entry(objects, name, dict, where=f"{_TEXT}: objects")
        where = f"{_TEXT}: objects: {name[:60]}"
        entry(part, "class", str, where=where)
        entry(part, "state", dict, where=where)
        settings = entry(part, "settings", dict, where=where)
        if "groups" in settings:
            groups = entry(settings, "groups", list, where=f"{where}: settings")
            if not all(type(group) is dict for group in groups):
                raise ValueError(f"{where}: settings: groups must be a list of objects")


def _check_names(
    path: str | os.PathLike[str],
    saved: Mapping[str, Any],
    values: Mapping[str, Any],
    objects: Mapping[str, Any],
) -> None:
    """Refuse objects that the file lacks, and objects of the file that are not given."""
    file = f"load_checkpoint: {os.fspath(path)}"
    for name, part in objects.items():
        if part is None or name in saved:
            continue
        if name in values:
            raise StateError(
                f"{file} holds {name} as a plain value, which is returned. Leave {name}= out."
            )
        raise StateError(
            f"{file} has no {name}; the file has {listed(saved) or 'no objects'}. Leave "
            f"{name}= out."
        )
    left = [name for name in saved if name not in objects]
    if left:
        raise StateError(
            f"{file} also holds {listed(left)}. Give {listed(left[:1])}=..., or "
            f"{listed(left[:1])}=None to leave it out."
        )


def _check_objects(
    path: str | os.PathLike[str], saved: Mapping[str, Any], objects: Mapping[str, Any]
) -> None:
    """Refuse an object without ``load_state_dict``, or with settings of other names or types."""
    file = f"load_checkpoint: {os.fspath(path)}"
    for name, part in objects.items():
        if part is None:
            continue
        if not hasattr(part, "load_state_dict") or not hasattr(part, "state_dict"):
            raise StateError(
                f"{file}: {name} must be an object with state_dict and load_state_dict, got "
                f"{describe(part)}."
            )
        stored, own = saved[name], _settings(part)
        here, there = type(part).__name__, printable(stored["class"][:60])
        if set(own) != set(stored["settings"]) or (own and here != there):
            raise StateError(
                f"{file}: {name} is {here}({listed(own)}) here, and "
                f"{there}({listed(stored['settings'])}) in the file. Make the same object."
            )
        sizes = len(own.get("groups", ())), len(stored["settings"].get("groups", ()))
        if sizes[0] != sizes[1]:
            raise StateError(
                f"{file}: {name} has {sizes[0]} groups of parameters here, and {sizes[1]} in the "
                "file. Make the same groups."
            )
        _check_settings(f"{file}: {name}", own, stored["settings"])


def _check_settings(where: str, own: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """Refuse settings of another type than the object has: text for a number, one number for two.

    Numbers of all types fit each other, and None fits every type.
    """
    for name, value in own.items():
        found = stored[name]
        if name == "groups":
            for number, (group, given) in enumerate(zip(value, found, strict=True)):
                if set(group) != set(given):
                    raise StateError(f"{where}: group {number} has the settings {listed(given)}.")
                _check_settings(f"{where}: group {number}", group, given)
        elif None not in (found, value) and _kind(found) != _kind(value):
            raise StateError(
                f"{where}: {name} is {describe(found)} in the file, expected a value such as "
                f"{value!r}. The file is damaged, or was changed."
            )


def _kind(setting: Any) -> Any:
    """What a setting must have in common with another: for a list, the kinds of its values."""
    if isinstance(setting, list | tuple):
        return [_kind(value) for value in setting]
    if isinstance(setting, str | dict):
        return type(setting)
    return float  # numbers and truth


def _saved(part: Any) -> Any:
    """The object whose state a file holds: for a wrapper, ``part.saved_part``."""
    return getattr(part, "saved_part", part)


def _settings(part: Any) -> dict[str, Any]:
    """An optimizer's settings by name: ``lr`` and others, which ``state_dict`` leaves out.

    The entry ``groups`` is a list of the settings of the groups of parameters, if any.
    """
    names = getattr(part, "setting_names", ())
    settings = {name: getattr(part, name) for name in names}
    groups = [group for group in getattr(part, "groups", ()) if group is not part]
    if names and groups:
        settings["groups"] = [
            {name: getattr(group, name) for name in (*names, "lr_factor")} for group in groups
        ]
    return settings


def _apply_settings(part: Any, settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        if name != "groups":
            setattr(part, name, tuple(value) if isinstance(value, list) else value)
    if "groups" in settings:  # after the settings: lr changes the rates of the groups
        for group, own in zip(part.groups, settings["groups"], strict=True):
            _apply_settings(group, own)


def _restore_random(path: str | os.PathLike[str], stored: Any, arrays: Mapping[str, Any]) -> None:
    """Restore the state of ``tinynode.random``."""
    try:
        random.set_state(_decode(stored, arrays))
    except (TypeError, ValueError) as error:
        raise StateError(f"load_checkpoint: {os.fspath(path)}: random: {error}") from error


def _restore(
    path: str | os.PathLike[str],
    chosen: Mapping[str, Any],
    states: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> None:
    """Restore the objects by name."""
    for name, part in chosen.items():
        try:
            _apply_settings(part, settings[name])  # first: SGD's momentum decides about moments
            part.load_state_dict(states[name])
        except Exception as error:
            raise StateError(
                f"load_checkpoint: {name}: {error} (The file is {os.fspath(path)}.)"
            ) from error
    for name, part in chosen.items():  # again: a schedule may have set the learning rate
        _apply_settings(part, settings[name])
