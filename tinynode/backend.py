"""Devices and the backends behind them.

Requirement: one line of config moves a program from one array library to another, and adding a
library takes one small module. A **backend** is a module that has what ``Backend`` lists; a
**device** is a backend plus an index, written ``numpy``, ``cupy:1``, ``strict:device1``. Devices
are interned, so they are compared with ``is``.

Which device a new Variable gets: an explicit argument, else ``with using_device(...)`` or
``tinynode.config.device`` in this thread, else ``tinynode.global_config.device``, which starts
from the environment's ``TINYNODE_DEVICE`` or a ``tinynode.toml``, else ``numpy``.

tinynode's own backends are known by name, and imported when they are first asked for. A package
of others offers one in the entry-point group ``tinynode.backends``; a program registers its own.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterator, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol, TypeAlias, cast

from tinynode.configuration import config, using_config
from tinynode.errors import DeviceError, DeviceMixError, OperandError, describe, dtype_name

Array: TypeAlias = Any
"""An array of any library that speaks the Array API standard."""
Arrays: TypeAlias = tuple[Array, ...]


class Fallback:
    """What a backend's ``forward`` returns to ask for the function's portable forward.

    Either the class itself, or an instance that says why: ``Fallback("float16 has no kernel")``.
    """

    def __init__(self, reason: str = "no reason given") -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"Fallback({self.reason!r})"


class Backend(Protocol):
    """What a backend module has. ``tinynode_numpy`` is the shortest example.

    It may have more: ``version``, the text that ``python -m tinynode backends`` shows; ``base``,
    the name of the backend whose memory it overlays, as the fast path does with NumPy's: an array
    that nobody has put on a device belongs to that one; ``on_device(index)``, a context manager
    that makes a device the library's current one; and what its capabilities promise.
    """

    name: str
    capabilities: frozenset[str]
    """Facts that others ask for. ``"gpu"`` selects ``forward_gpu``, else ``forward_cpu``. Others
    promise functions: ``"add_at"``: ``add_at(indices, values, length)``, see below;
    ``"optimizer_update"``: ``update_parameters(optimizer, steps)``; ``"ranges"``:
    ``range_push(text)`` and ``range_pop()``, for profilers; ``"memory_pool"``:
    ``memory_used(index)`` and ``memory_reserved(index)``; ``"put"``: arrays never change, and
    ``put(array, place, value)`` gives a new one."""

    def devices(self) -> tuple[str, ...]:
        """The indices that exist here; the first is the default."""

    def namespace(self) -> Any:
        """The Array API namespace of its arrays."""

    def owns(self, array: object) -> bool:
        """Whether an object is an array of this backend."""

    def index_of(self, array: Array) -> str:
        """The index of the device on which an array of this backend lies."""

    def from_host(self, array: Array, index: str) -> Array:
        """A NumPy array, on device ``index``; memory may be shared."""

    def to_host(self, array: Array) -> Array:
        """An array of this backend as a NumPy array; memory may be shared."""

    def synchronize(self, index: str) -> None:
        """Wait until the device has done all that was asked of it."""

    def lift(self, value: object) -> Array | None:
        """The 0-d array for a scalar of the array library, or None if it is something else."""

    def forward(self, node: Any, arrays: Arrays) -> Any:
        """Run a FunctionNode on arrays of this backend: a tuple of arrays, or Fallback."""


class Device:
    """A backend plus an index. There is one object for each: compare with ``is``."""

    __slots__ = ("array_types", "backend", "floating_dtypes", "index", "name", "xp")

    def __init__(self, backend: Backend, index: str, name: str) -> None:
        self.backend = backend
        self.index = index
        self.name = name
        self.xp = namespace_from(backend)
        self.array_types: set[type] = set()
        """The array types that this backend has owned so far: the quick form of ``owns``."""
        self.floating_dtypes: set[Any] = set()
        """The floating dtypes met so far: the quick form of ``is_floating``."""

    def __repr__(self) -> str:
        return f"Device({self.name!r})"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return get_device, (self.name,)

    def owns(self, array: object) -> bool:
        """Whether an object is an array of this device's library."""
        if type(array) in self.array_types:
            return True
        if not self.backend.owns(array):
            return False
        self.array_types.add(type(array))
        return True

    def holds(self, array: object) -> bool:
        """Whether an array lies on this very device: it may be another backend's as well."""
        return self.owns(array) and self.backend.index_of(array) == self.index

    def from_host(self, array: Array) -> Array:
        """A NumPy array, on this device.

        Raises:
            DeviceError: the device has gone since it was first used.
        """
        try:
            return self.backend.from_host(array, self.index)
        except Exception as error:
            self._explain(error)
            raise

    def is_floating(self, array: Array | None) -> bool:
        """Whether an array of this device has a real floating dtype; False for None."""
        if array is None or not is_floating(array):
            return False
        self.floating_dtypes.add(array.dtype)
        return True

    def active(self) -> AbstractContextManager[Any]:
        """A block in which this is the array library's current device, if it has such a thing."""
        on_device = getattr(self.backend, "on_device", None)
        return nullcontext() if on_device is None else on_device(self.index)

    def lift(self, value: Any) -> Array:
        """An array as it is, a scalar of the array library as a 0-d array, None for others."""
        if type(value) in self.array_types or self.owns(value):
            return value
        return self.backend.lift(value)

    def synchronize(self) -> None:
        """Wait until this device has done all that was asked of it.

        Raises:
            DeviceError: the device has gone since it was first used.
        """
        try:
            self.backend.synchronize(self.index)
        except Exception as error:
            self._explain(error)
            raise

    def _explain(self, error: Exception) -> None:
        """Raise a DeviceError if the reason for an error is that the device has gone."""
        if self.index not in indices_of(self.backend):
            raise DeviceError(
                f"{self.name}: this device has gone; {_those_there_are(self.backend)}. Variables "
                "on it are lost: make new ones on another device."
            ) from error


_MODULE_OF_BACKEND = {
    "cupy": "tinynode_cupy",
    "fast": "tinynode_fast",
    "numpy": "tinynode_numpy",
}
_HOW_TO_GET = {
    "cupy": "install tinynode[cupy13] or tinynode[cupy12], whichever CUDA the machine has",
}
_OTHER_NAMES = {"cpu": "numpy", "cuda": "cupy", "gpu": "cupy"}
"""What other libraries call a device, and the backend that is meant."""
_ENTRY_POINTS = "tinynode.backends"

_backends: dict[str, Backend] = {}
_devices: dict[str, Device] = {}
_backend_of_type: dict[type, Backend] = {}
_namespace_of_type: dict[type, Any] = {}
_floating_dtypes: dict[type, dict[Any, bool]] = {}  # dtypes of two libraries do not compare
_integer_dtypes: dict[type, dict[Any, bool]] = {}


class Use:
    """How often a function was run in one way, and for how many seconds."""

    __slots__ = ("calls", "seconds")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0


fallback_uses: dict[tuple[str, str, str], Use] = {}
"""The functions that fell back, by (backend, label, reason); ``show.fallbacks()`` prints them."""
kernel_uses: dict[tuple[str, str, str], Use] = {}
"""The functions that a backend's own kernels ran, by (backend, label, kernel)."""


def count_use(
    uses: dict[tuple[str, str, str], Use], key: tuple[str, str, str], seconds: float
) -> None:
    """Add one call to ``fallback_uses`` or ``kernel_uses``."""
    use = uses.get(key)
    if use is None:
        use = uses.setdefault(key, Use())
    use.calls += 1
    use.seconds += seconds


def register_backend(backend: Any) -> None:
    """Make a backend known under its name. Third parties may use an entry point instead.

    Raises:
        DeviceError: the object lacks something that ``Backend`` lists, or the name is taken.
    """
    _check_parts(backend)
    own = _MODULE_OF_BACKEND.get(backend.name)
    if own is not None and getattr(backend, "__name__", None) != own:
        raise DeviceError(
            f"register_backend: the name {backend.name!r} is that of tinynode's own backend; "
            f"{backend!r} needs another."
        )
    known = _backends.get(backend.name)
    if known is not None and known is not backend:
        raise DeviceError(f"register_backend: the name {backend.name!r} is taken by {known!r}.")
    _backends[backend.name] = cast(Backend, backend)


def _check_parts(backend: Any) -> None:
    """Raise a DeviceError unless an object has what ``Backend`` lists, of the right kinds."""
    functions = [name for name in vars(Backend) if not name.startswith("_")]
    needed = [*functions, "name", "capabilities"]
    missing = sorted(part for part in needed if not hasattr(backend, part))
    if missing:
        raise DeviceError(f"register_backend: {backend!r} has no {', '.join(missing)}.")
    kinds: dict[str, tuple[type, str]] = {
        "name": (str, "text"),
        "capabilities": (Set, "a frozenset of texts"),
    }
    kinds |= dict.fromkeys(functions, (Callable, "a function"))  # type: ignore[arg-type]
    for part, (kind, expected) in kinds.items():
        found = getattr(backend, part)
        if not isinstance(found, kind):
            raise DeviceError(
                f"register_backend: {part} of {backend!r} must be {expected}, got "
                f"{describe(found)}. Mend the backend, or use another."
            )


def backend_names() -> list[str]:
    """The names of all backends: tinynode's own, registered ones, those of installed packages."""
    return sorted({*_MODULE_OF_BACKEND, *_backends, *(point.name for point in _offered())})


def _offered() -> Any:
    """The entry points of installed packages that bring a backend."""
    import importlib.metadata  # three quarters of the time of `import tinynode`, so only here

    return importlib.metadata.entry_points(group=_ENTRY_POINTS)


def get_backend(name: str) -> Backend:
    """The backend of that name, imported when it is first asked for.

    Raises:
        DeviceError: no backend has that name, or it cannot be imported.
    """
    if name not in _backends:
        module = _load(name)
        if getattr(module, "name", name) != name:
            raise DeviceError(
                f"get_device: what {backend_origin(name)} offers as {name!r} is {module.name!r}: "
                "an entry point must have the name of its backend."
            )
        register_backend(module)
    return _backends[name]


def _load(name: str) -> Any:
    """Import a backend, of tinynode's own or of an installed package."""
    try:
        if name in _MODULE_OF_BACKEND:
            return importlib.import_module(_MODULE_OF_BACKEND[name])
        point = _entry_point(name)
        if point is not None:
            return point.load()
    except DeviceError:
        raise
    except (Exception, SystemExit) as error:
        hint = f" To get it: {_HOW_TO_GET[name]}." if name in _HOW_TO_GET else ""
        raise DeviceError(
            f"get_device: backend {name!r} cannot be imported: {type(error).__name__}: {error}."
            f"{hint} {_those_that_work(broken=name)}"
        ) from error
    known = backend_names()
    meant = [_OTHER_NAMES[name.lower()]] if name.lower() in _OTHER_NAMES else []
    close = meant or difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise DeviceError(
        f"get_device: there is no backend {name!r}; {hint}known are: {', '.join(known)}. "
        f"{_those_that_work()}"
    )


def _entry_point(name: str) -> Any:
    """What the installed packages offer under a name, or None; two offers are an error."""
    points = {point.value: point for point in _offered() if point.name == name}
    if len(points) > 1:
        packages = sorted(f"{offered_by(point)} as {value}" for value, point in points.items())
        raise DeviceError(
            f"get_device: several packages bring a backend {name!r}: {', '.join(packages)}. "
            "Uninstall all but one, or import one yourself and give it to register_backend."
        )
    return next(iter(points.values()), None)


def backend_origin(name: str) -> str:
    """Who brings the backend of that name: tinynode, an installed package, or the program."""
    if name in _MODULE_OF_BACKEND:
        return "tinynode"
    offers = sorted({offered_by(point) for point in _offered() if point.name == name})
    return ", ".join(offers) or "register_backend"


def offered_by(point: Any) -> str:
    """The package that an entry point belongs to."""
    return f"package {point.dist.name} {point.dist.version}" if point.dist else "a package"


def indices_of(backend: Backend) -> tuple[str, ...]:
    """The indices that a backend's ``devices()`` gives.

    Raises:
        DeviceError: it fails, or gives something else.
    """
    try:
        indices: Any = backend.devices()
    except DeviceError:
        raise
    except Exception as error:
        raise _broken(backend, f"devices() raises {type(error).__name__}: {error}") from error
    if isinstance(indices, tuple | list) and all(isinstance(index, str) for index in indices):
        return tuple(indices)
    raise _broken(backend, f"devices() must give a tuple of texts, it gives {indices!r}")


def namespace_from(backend: Backend) -> Any:
    """A backend's ``namespace()``.

    Raises:
        DeviceError: it fails.
    """
    try:
        return backend.namespace()
    except DeviceError:
        raise
    except Exception as error:
        raise _broken(backend, f"namespace() raises {type(error).__name__}: {error}") from error


def _broken(backend: Backend, reason: str) -> DeviceError:
    name = backend.name
    return DeviceError(
        f"backend {name!r} (from {backend_origin(name)}) cannot be used: {reason}. "
        "Mend or remove it, or use another: `python -m tinynode backends` lists them."
    )


def _those_that_work(broken: str = "") -> str:
    """The devices that can be used now; nothing is imported to find out."""
    names = {"fast", "numpy"} - {broken}  # they need NumPy alone
    for backend in _backends.values():
        try:
            names.update(_device_names(backend))
        except DeviceError:  # it was imported, and cannot be used
            continue
    return f"Devices that work here: {', '.join(sorted(names))}."


def get_device(spec: str | Device | None = None) -> Device:
    """The device for ``"numpy"``, ``"cupy:1"`` ...; None gives this thread's current device.

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
    if spec in _devices:
        return _devices[spec]
    name, _, index = spec.partition(":")
    backend = get_backend(name)
    indices = indices_of(backend)
    if not indices:
        raise DeviceError(
            f"get_device: backend {name!r} has no device on this machine. {_those_that_work()}"
        )
    index = index or indices[0]
    if index not in indices:
        raise DeviceError(f"get_device: there is no device {spec!r}; {_those_there_are(backend)}.")
    full_name = _device_name(backend, index)
    device = _devices.setdefault(full_name, Device(backend, index, full_name))
    _devices[spec] = device
    return device


def _those_there_are(backend: Backend) -> str:
    return f"there are: {', '.join(_device_names(backend)) or 'none'}"


def _device_names(backend: Backend) -> list[str]:
    return [_device_name(backend, index) for index in indices_of(backend)]


def _device_name(backend: Backend, index: str) -> str:
    return backend.name if len(indices_of(backend)) == 1 else f"{backend.name}:{index}"


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


def using_device(spec: str | Device) -> AbstractContextManager[None]:
    """``with using_device("numpy"):`` new Variables of this thread stand on that device."""
    return _on_device(get_device(spec))


@contextmanager
def _on_device(device: Device) -> Iterator[None]:
    with using_config("device", device), device.active():
        yield


def find_device(array: object, first: Device | None = None) -> Device | None:
    """The device on which an array lies, or None if no loaded backend owns the object.

    The device ``first``, else the current one, is asked first, so two backends over one kind of
    memory do not compete.
    """
    first = first or current_device()
    if first.owns(array):
        return _device_at(first.backend, array)
    owner = _owner(array)
    return None if owner is None else _device_at(owner, array)


def _owner(array: object) -> Backend | None:
    """The loaded backend in whose memory an array lies."""
    for backend in [get_backend("numpy"), *_backends.values()]:
        if backend.owns(array):
            return base_of(backend)
    return None


def is_array(value: object) -> bool:
    """Whether a loaded backend owns an object, or that of the current device, if it is usable."""
    if _owner(value) is not None:
        return True
    try:
        return current_device().owns(value)
    except (DeviceError, TypeError):
        return False


def base_of(backend: Backend) -> Backend:
    """The backend whose memory a backend overlays; itself, where it has its own."""
    base = getattr(backend, "base", None)
    return backend if base is None else get_backend(base)


def _device_at(backend: Backend, array: Array) -> Device:
    device = get_device(_device_name(backend, backend.index_of(array)))
    device.array_types.add(type(array))
    return device


def device_of(array: object, function: str, argument: str) -> Device:
    """The device on which an array lies.

    Raises:
        DeviceMixError: no backend owns the object; names the function and the argument.
    """
    device = find_device(array)
    if device is None:
        raise DeviceMixError(
            f"{function}: {argument} must be an array of a known backend, got {describe(array)}. "
            "tinynode.asarray(...) accepts lists, numbers and Variables. For an array of another "
            "library, load its backend first: tinynode.get_device(name), with a name that "
            "`python -m tinynode backends` lists."
        )
    return device


def backend_of(array: Array) -> Backend:
    """The backend whose memory an array lies in."""
    backend = _backend_of_type.get(type(array))
    if backend is None:
        backend = _owner(array) or base_of(device_of(array, "backend_of", "array").backend)
        _backend_of_type[type(array)] = backend
    return backend


def namespace_of(array: Array) -> Any:
    """The Array API namespace of an array, found by its type.

    Asking the array itself (``__array_namespace__``) costs as much as adding two small ones.
    """
    try:
        return _namespace_of_type[type(array)]
    except KeyError:
        namespace = backend_of(array).namespace()
        _namespace_of_type[type(array)] = namespace
        return namespace


def is_floating(array: Array) -> bool:
    """Whether an array's dtype is a real floating one: only such arrays can have a gradient."""
    try:
        return _floating_dtypes[type(array)][array.dtype]
    except KeyError:
        known = bool(namespace_of(array).isdtype(array.dtype, "real floating"))
        _floating_dtypes.setdefault(type(array), {})[array.dtype] = known
        return known


def is_integer(array: Array) -> bool:
    """Whether an array's dtype is an integer one, signed or not."""
    try:
        return _integer_dtypes[type(array)][array.dtype]
    except KeyError:
        known = bool(namespace_of(array).isdtype(array.dtype, "integral"))
        _integer_dtypes.setdefault(type(array), {})[array.dtype] = known
        return known


def kind_of(array: Array) -> int:
    """0 for bool, 1 for integers, 2 for real floating, 3 for complex: casts may go up."""
    namespace, dtype = namespace_of(array), array.dtype
    for kind, name in enumerate(("bool", "integral", "real floating")):
        if namespace.isdtype(dtype, name):
            return kind
    return COMPLEX


COMPLEX = 3


def check_cast(operation: str, value: Array, target: Array) -> None:
    """Refuse to write floats into integers, or complex numbers into real ones."""
    if kind_of(value) > kind_of(target):
        raise OperandError(
            f"{operation}: the value is {dtype_name(value.dtype)}, x is "
            f"{dtype_name(target.dtype)}, which cannot hold it. Cast x first: x.astype(...)."
        )


def to_host(array: Array) -> Array:
    """An array of any backend as a NumPy array; memory may be shared."""
    return backend_of(array).to_host(array)


def add_at(indices: Array, values: Array, length: int) -> Array:
    """Rows of values added up by index: result[indices[k]] += values[k], from zeros.

    indices: (k), integer, values: (k, ...) -> (length, ...). The Array API standard has no such
    function; a backend without one of its own goes through the host.
    """
    backend = backend_of(values)
    if "add_at" in backend.capabilities:
        return cast(Any, backend).add_at(indices, values, length)
    reference = cast(Any, get_backend("numpy"))
    host = reference.add_at(to_host(indices), to_host(values), length)
    return backend.from_host(host, backend.index_of(values))


def synchronize(spec: str | Device | None = None) -> None:
    """Wait until a device has done all that was asked of it."""
    get_device(spec).synchronize()
