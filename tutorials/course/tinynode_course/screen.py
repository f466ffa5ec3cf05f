"""The screen on which ``run`` shows the pieces of a step: with colours, or as lines.

Requirement: text, code and output are told apart at a glance, in a terminal and in a file. The
package rich is optional, and draws in a terminal only.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from tinynode_course.plain_screen import PlainScreen


def make(paged: bool, terminal: bool) -> PlainScreen:
    """The screen of this process; ``terminal`` is True if stdout is a terminal."""
    if terminal and importlib.util.find_spec("rich") is not None:
        from tinynode_course.rich_screen import RichScreen  # imports rich

        return RichScreen(paged)
    return PlainScreen()


def is_terminal(stream: Any) -> bool:
    """True for a terminal; False for a file, a pipe, and a closed stream."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False
