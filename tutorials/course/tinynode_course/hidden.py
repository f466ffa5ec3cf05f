"""Hidden checks: checks of the exercises outside of the wheel that learners install.

Requirement: a teacher can run checks unknown to learners. Hidden checks are files such as
``hidden/step14.py``, with functions ``check_...(work)`` as in ``tutorials/checks``. A distribution
with such files names a function for the folder, as an entry point:

    [project.entry-points."tinynode.course.hidden"]
    my_school = "my_school_checks:folder"

The distribution tinynode-course-solutions does so; in a checkout of tinynode its folder is found
without an installation.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

from tinynode_course import sources
from tinynode_course.sources import Step

GROUP = "tinynode.course.hidden"
"""The group of the entry points."""


def folders() -> list[Path]:
    """The folders with hidden checks."""
    checkout = sources.tutorials().parent / "course_solutions" / "tinynode_course_solutions"
    found = [checkout / "hidden"] if checkout.is_dir() else []
    found += [Path(point.load()()) for point in entry_points(group=GROUP)]
    return list(dict.fromkeys(folder.resolve() for folder in found))


def checks_of(step: Step) -> list[Path]:
    """The files with hidden checks of a step."""
    paths = (folder / f"{step.name}.py" for folder in folders())
    return [path for path in paths if path.exists()]
