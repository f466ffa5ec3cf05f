"""Hatchling's hook: a wheel carries the steps of the course, as ``tinynode_course/tutorials``.

Requirement: an editable install reads the steps of the checkout, and a new step needs no entry in
a list. hatchling's ``force-include`` would copy the steps for an editable install too, and the
package ``tutorials/course`` a second time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Steps(BuildHookInterface[Any]):
    """Adds all of ``tutorials`` except for the package itself and the planted bugs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name the files and folders; ``version`` is "standard" or "editable"."""
        if version == "standard":
            for path in sorted(Path(self.root, "tutorials").iterdir()):
                if path.name not in ("course", "planted", "__pycache__"):
                    place = f"tinynode_course/tutorials/{path.name}"
                    build_data["force_include"][str(path)] = place
