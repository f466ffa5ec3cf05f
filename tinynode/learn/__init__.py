"""The course: ``python -m tinynode.learn``.

Requirement: a learner with tinynode installed, and no further package, can take the whole course
in a new folder. The learner reads a step, does the exercise, runs the checks, and asks for a hint.
The steps are files in ``tutorials/``. Programs of the steps import ``use_mynode`` from here; the
checks of the exercises import ``tinynode.learn.checks``.
"""

from tinynode.learn.mynode import use_mynode

__all__ = ["use_mynode"]
