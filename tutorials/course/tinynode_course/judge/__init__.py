"""The judge of a class: a process out of reach of the students' programs.

``tutorials/course/README.md`` has a walk. docs/teaching.md has the promises and the limits.
"""
