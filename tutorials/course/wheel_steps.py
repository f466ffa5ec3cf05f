"""Hatchling's hook: the wheel of the course carries the steps, as ``tinynode_course/tutorials``.

Requirement: an editable install reads the steps of the checkout, and a new step needs no entry in
a list. The setting ``force-include`` would copy the steps for an editable install too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LEFT_OUT = ("course", "planted", "__pycache__", "pyproject.toml", "LICENSE", "PKG-INFO")
"""The package itself, the bugs that test the checks, and the files of the distribution."""


class Steps(BuildHookInterface[Any]):
    """Adds the steps, their exercises, checks, drills, hunts, solutions and notebooks."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files and folders; ``version`` is "standard" or "editable"."""
        if version != "standard":
            return
        for path in sorted(Path(self.root).iterdir()):
            is_hidden = path.name.startswith(".")
            if path.name not in LEFT_OUT and not is_hidden:
                build_data["force_include"][str(path)] = f"tinynode_course/tutorials/{path.name}"
