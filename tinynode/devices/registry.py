"""The registry of backends and devices, and the current device.

Requirement: one line of config moves a program from one array library to another. The device of a
new Variable is, in this order:

1. an explicit argument;
2. ``with using_device(...)``, or ``tinynode.config.device``, in this thread;
3. ``tinynode.global_config.device``, which starts from ``TINYNODE_DEVICE`` in the environment or
   from a ``tinynode.toml``;
4. ``numpy``.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterator, Set
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

from tinynode.configuration import config, using_config, value_checks
from tinynode.devices.device import (
    Device,
    device_name,
    device_names,
    existing_devices,
    indices_of,
)
from tinynode.devices.loader import (
    HOW_TO_GET,
    MODULE_OF_BACKEND,
    OTHER_NAMES,
    backend_origin,
    import_backend,
    installed_backends,
    offered_backends,
)
from tinynode.devices.protocol import OPTIONAL_PARTS, Backend, members_of
from tinynode.errors import DeviceError, describe, short_text
from tinynode.habits import closest

backends: dict[str, Backend] = {}
"""The backends that were imported or registered, by name."""
devices: dict[str, Device] = {}
"""The devices that were asked for, by name."""


def register_backend(backend: Any) -> None:
    """Make a backend known under its name. Third parties may use an entry point instead.

    Raises:
        DeviceError: the object lacks a member of ``Backend``, or the name is taken.
    """
    _check_parts(backend)
    own = MODULE_OF_BACKEND.get(backend.name)
    if own is not None and getattr(backend, "__name__", None) != own:
        raise DeviceError(
            f"register_backend: the name {backend.name!r} is that of tinynode's own backend. Set "
            f"another name in {describe(backend)}."
        )
    known = backends.get(backend.name)
    if known is not None and known is not backend:
        raise DeviceError(
            f"register_backend: the name {backend.name!r} is taken by {describe(known)}. Set "
            f"another name in {describe(backend)}."
        )
    backends[backend.name] = cast(Backend, backend)


def register_device(backend: Any) -> Device:
    """Make the one device of a backend known, by the backend's name: a batched device of ``vmap``.

    The backend stays out of ``backends``, since the arrays name their backend.
    """
    return devices.setdefault(backend.name, Device(backend, backend.name, backend.name))


def _check_parts(backend: Any) -> None:
    """Raise a DeviceError unless an object has the members of ``Backend``, of the right kinds.

    An optional part with several members must be there as a whole.
    """
    missing = sorted(part for part in members_of(Backend) if not hasattr(backend, part))
    if missing:
        raise DeviceError(f"register_backend: {backend!r} has no {', '.join(missing)}.")
    for part in members_of(Backend):
        found = getattr(backend, part)
        if part == "name":
            fits, expected = isinstance(found, str), "text"
        elif part == "capabilities":
            fits, expected = isinstance(found, Set), "a frozenset of texts"
        else:
            fits, expected = isinstance(found, Callable), "a function"  # type: ignore[arg-type]
        if not fits:
            raise DeviceError(
                f"register_backend: {part} of {backend!r} must be {expected}, got "
                f"{describe(found)}. Mend the backend, or use another."
            )
    for optional in OPTIONAL_PARTS:
        present = [member for member in members_of(optional) if hasattr(backend, member)]
        lacking = [member for member in members_of(optional) if member not in present]
        if present and lacking:
            raise DeviceError(
                f"register_backend: {backend!r} has {', '.join(present)}, but no "
                f"{', '.join(lacking)}: the optional part {optional.__name__} needs all members. "
                f"Add {', '.join(lacking)}, or leave the part out."
            )


def backend_names() -> list[str]:
    """The names of all backends: of tinynode, of installed packages, and registered ones."""
    offered = [point.name for point in offered_backends()]
    return sorted({*MODULE_OF_BACKEND, *backends, *offered})


def get_backend(name: str) -> Backend:
    """The backend of a name, imported at the first request.

    Raises:
        DeviceError: no backend has the name, or the import failed.
    """
    if name not in backends:
        module = _load(name)
        if getattr(module, "name", name) != name:
            raise DeviceError(
                f"get_device: {backend_origin(name)} offers {module.name!r} under the name "
                f"{name!r}: an entry point must have the name of its backend."
            )
        register_backend(module)
    return backends[name]


def _load(name: str) -> Any:
    """Import a backend of tinynode's own or of an installed package."""
    try:
        module = import_backend(name)
    except DeviceError:
        raise
    except (Exception, SystemExit) as error:
        hint = f" To get it: {HOW_TO_GET[name]}." if name in HOW_TO_GET else ""
        raise DeviceError(
            f"get_device: backend {name!r} cannot be imported: {type(error).__name__}: {error}."
            f"{hint} {_working_devices(broken=name)}"
        ) from error
    if module is None:
        raise _unknown(name)
    return module


def _unknown(name: str) -> DeviceError:
    known = backend_names()
    meant = [OTHER_NAMES[name.lower()]] if name.lower() in OTHER_NAMES else []
    close = meant or closest(name, known, cutoff=0.7)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return DeviceError(
        f"get_device: there is no backend {short_text(name)}; {hint}"
        f"known are: {', '.join(known)}. {_working_devices()}"
    )


def _working_devices(broken: str = "") -> str:
    """For messages: the devices that can be used now. Nothing is imported to find out."""
    names = {"fast", "numpy"} - {broken}  # they need NumPy alone
    for backend in backends.values():
        try:
            names.update(device_names(backend))
        except DeviceError:  # it was imported, and cannot be used
            continue
    text = f"Devices that work here: {', '.join(sorted(names))}"
    used = {name.partition(":")[0] for name in names}
    others = [name for name in installed_backends() if name not in {*used, broken}]
    return f"{text}; installed too: {', '.join(others)}." if others else f"{text}."


def get_device(spec: str | Device | None = None) -> Device:
    """The device for ``"numpy"``, ``"cupy:1"`` ...; None gives this thread's current device.

        >>> str(tn.get_device("numpy"))
        'numpy'

    Raises:
        TypeError: the argument is neither text nor a Device.
        DeviceError: there is no such device; the message says which there are.
    """
    if isinstance(spec, Device):
        return spec
    if spec is None:
        return current_device()
    if not isinstance(spec, str):
        raise TypeError(f"get_device: expected a name such as 'numpy', got {describe(spec)}.")
    if spec in devices:
        return devices[spec]
    name, _, index = spec.partition(":")
    backend = get_backend(name)
    indices = indices_of(backend)
    if not indices:
        raise DeviceError(
            f"get_device: backend {name!r} has no device on this machine. {_working_devices()}"
        )
    index = index or indices[0]
    if index not in indices:
        raise DeviceError(
            f"get_device: there is no device {short_text(spec)}; {existing_devices(backend)}."
        )
    full_name = device_name(backend, index)
    device = devices.setdefault(full_name, Device(backend, index, full_name))
    devices[spec] = device
    return device


def _reduce_device(device: Device) -> tuple[Any, ...]:
    """A Device is pickled and copied by its name."""
    return get_device, (device.name,)


copyreg.pickle(Device, _reduce_device)


def current_device() -> Device:
    """The device of new Variables in this thread.

    Raises:
        DeviceError: it cannot be used; the message says where it was asked for.
    """
    spec = config.device
    if isinstance(spec, Device):
        return spec
    try:
        return get_device("numpy" if spec is None else spec)
    except (DeviceError, TypeError) as error:
        origin = config.origin("device")
        raise type(error)(f"{error} Device {spec!r} is from {origin}.") from error.__cause__


def _check_device(spec: Any) -> None:
    """Refuse a value of ``config.device`` that names no device of this machine."""
    if spec is not None:
        get_device(spec)


value_checks["device"] = _check_device


def using_device(spec: str | Device) -> AbstractContextManager[None]:
    """``with using_device("numpy"):`` new Variables of this thread stand on the device.

    After the block, the device is the one from before.

        >>> with tn.using_device("fast"):
        ...     x = tn.asarray([1.0])
        >>> str(x.device)
        'fast'
    """
    return _on_device(get_device(spec))


@contextmanager
def _on_device(device: Device) -> Iterator[None]:
    with using_config("device", device), device.active():
        yield


def synchronize(spec: str | Device | None = None) -> None:
    """Wait until a device has finished its work."""
    get_device(spec).synchronize()
