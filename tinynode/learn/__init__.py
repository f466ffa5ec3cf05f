"""The course: ``python -m tinynode.learn``.

Requirement: somebody who has installed tinynode, and nothing else, can take the whole course in a
folder of their own: read a step, do its exercise, have it checked, and ask for a hint. The steps
themselves are files in ``tutorials/`` and know nothing of this package, but for the checks of
their exercises, which use ``tinynode.learn.checks``.
"""
