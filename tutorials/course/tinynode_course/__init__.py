"""The course: ``python -m tinynode.learn``.

Requirement: a learner with tinynode installed, and no further package, can take the whole course
in a new folder. The learner reads a step, does the exercise, runs the checks, and asks for a hint.
The steps are files in ``tutorials/``. Programs of the steps import ``use_mynode`` from here; the
checks of the exercises import ``tinynode_course.checks``.

``tinynode/learn`` is the door: the commands, and ``%load_ext tinynode.learn`` for notebooks. See
``tinynode_course.command`` and ``tinynode_course.notebook_magics``.
"""

from tinynode_course.mynode import use_mynode

__all__ = ["use_mynode"]
