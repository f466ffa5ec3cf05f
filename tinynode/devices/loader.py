"""The known backends: tinynode's own, and the backends of installed packages.

Requirement: a backend is imported at the first request, and not before. tinynode's own
backends are known by name. A package of others offers one in the entry-point group
``tinynode.backends``.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from tinynode.errors import DeviceError
from tinynode.late_imports import import_late

MODULE_OF_BACKEND = {
    "cupy": "tinynode_cupy",
    "fast": "tinynode_fast",
    "jax": "tinynode_jax",
    "numpy": "tinynode_numpy",
    "shapes": "tinynode_shapes",
    "strict": "tinynode_strict",
    "sycl": "tinynode_sycl",
    "torch": "tinynode_torch",
}
"""tinynode's own backends."""
MODULE_OF_VMAP = "tinynode_batched"
"""The module with the backend that ``vmap`` makes for each device. No user asks for it by name."""
HOW_TO_GET = {
    "cupy": "install tinynode[cupy13] or tinynode[cupy12], whichever CUDA the machine has",
    "jax": "install tinynode[jax]",
    "strict": "install tinynode[strict]",
    "sycl": "install tinynode[sycl]",
    "torch": "install tinynode[torch]",
}
LIBRARY_OF_BACKEND = {
    "jax": "jax",
    "strict": "array_api_strict",
    "sycl": "dpnp",
    "torch": "torch",
}
"""The libraries of the backends that need no more than an installed library."""
OTHER_NAMES = {"cpu": "numpy", "cuda": "cupy", "gpu": "cupy"}
"""The names of devices in other libraries, and the backend that each stands for."""
ENTRY_POINTS = "tinynode.backends"


def offered_backends() -> Any:
    """The entry points of installed packages that bring a backend."""
    import importlib.metadata  # three quarters of the time of `import tinynode`, so only here

    return importlib.metadata.entry_points(group=ENTRY_POINTS)


def import_backend(name: str) -> Any:
    """The module of tinynode's own backend, or of an installed package; None if unknown."""
    if name in MODULE_OF_BACKEND:
        return import_late(MODULE_OF_BACKEND[name])
    point = _entry_point(name)
    return None if point is None else point.load()


def import_vmap() -> Any:
    """The module with the backend of ``vmap``, imported at the first vmap."""
    return import_late(MODULE_OF_VMAP)


def _entry_point(name: str) -> Any:
    """The entry point of that name, or None; two entry points of one name are an error."""
    points = {point.value: point for point in offered_backends() if point.name == name}
    if len(points) > 1:
        packages = sorted(f"{offered_by(point)} as {value}" for value, point in points.items())
        raise DeviceError(
            f"get_device: several packages bring a backend {name!r}: {', '.join(packages)}. "
            "Uninstall all but one, or import one yourself and give it to register_backend."
        )
    return next(iter(points.values()), None)


def installed_backends() -> list[str]:
    """The backends whose library is installed; the library is not imported."""
    return [
        name
        for name, library in LIBRARY_OF_BACKEND.items()
        if importlib.util.find_spec(library) is not None
    ]


def backend_origin(name: str) -> str:
    """The origin of the backend of that name: tinynode, an installed package, or the program."""
    if name in MODULE_OF_BACKEND:
        return "tinynode"
    offers = sorted({offered_by(point) for point in offered_backends() if point.name == name})
    return ", ".join(offers) or "register_backend"


def offered_by(point: Any) -> str:
    """The package that an entry point belongs to."""
    return f"package {point.dist.name} {point.dist.version}" if point.dist else "a package"
