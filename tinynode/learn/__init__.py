"""The course: ``python -m tinynode.learn``.

Requirement: a learner with tinynode installed, and no further package, can take the whole course
in a new folder. The learner reads a step, does the exercise, runs the checks, and asks for a hint.
The steps are files in ``tutorials/``. Programs of the steps import ``use_mynode`` from here; the
checks of the exercises import ``tinynode.learn.checks``.

In a notebook, ``%load_ext tinynode.learn`` brings ``%%exercise``, ``check`` and ``hint``: see
``tinynode.learn.notebook_magics``.
"""

from typing import Any

from tinynode.learn.mynode import use_mynode

__all__ = ["load_ipython_extension", "use_mynode"]


def load_ipython_extension(shell: Any) -> None:
    """Add the course to a notebook; IPython calls this function for ``%load_ext``."""
    from tinynode.learn import notebook_magics  # programs of steps need a part of the course only

    notebook_magics.load(shell)
