"""Whether this machine has a C compiler: without one, the device ``fast`` compiles no net."""

from __future__ import annotations

from tinynode_fast.native import build
from tinynode_fast.native.cache import NotBuiltError


def missing_compiler() -> str:
    """Why there is no C compiler; empty if there is one."""
    try:
        build.version_of(build.compiler("auto"))
    except NotBuiltError as error:
        return f"no C compiler: {error}"
    return ""
