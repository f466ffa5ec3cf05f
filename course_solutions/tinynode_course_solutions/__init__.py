"""What the wheel of tinynode leaves out: hidden checks, and solutions of the bug hunts."""

from pathlib import Path


def hidden() -> Path:
    """The folder of the hidden checks; ``learn check --hidden`` asks for it."""
    return Path(__file__).parent / "hidden"
