"""Puts the hours of the course into a guide, in the place of a comment.

Requirement: the guide says what ``python -m tinynode.learn minutes`` measures today. Each text and
each exercise changes these numbers, so they stand in no file.
"""

from __future__ import annotations

from tinynode_course import minutes

MARK = "<!-- the hours of the course -->"


def with_table(markdown: str) -> str:
    """The page with the table in the place of the comment."""
    if MARK not in markdown:
        return markdown
    return markdown.replace(MARK, minutes.table())
