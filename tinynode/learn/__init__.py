"""The course: ``python -m tinynode.learn``.

Requirement: a learner with tinynode installed, and no further package, can take the whole course
in a new folder. The learner reads a step, does the exercise, runs the checks, and asks for a hint.
The steps are files in ``tutorials/``. Only the checks of the exercises import from here:
``tinynode.learn.checks``.
"""
