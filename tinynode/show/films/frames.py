"""Pictures of a film for slides and READMEs: SVGs, an animated SVG, a GIF.

Requirement: a film plays where no page can be opened. So each chosen step becomes a frame, a
display list (``frame_drawing``), and the writers draw the same frames (``frame_writers``,
``frame_pixels``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tinynode.show.films.frame_drawing import Frame, Stage
from tinynode.show.films.frame_options import FrameOptions, chosen_steps
from tinynode.show.films.frame_writers import animated_svg, svg
from tinynode.show.films.state import moments
from tinynode.show.graphs.text_diagram import one_line


def frames_of(data: dict[str, Any], options: FrameOptions) -> list[Frame]:
    """The frames of the chosen steps of a film.

    Raises:
        ValueError: an option is not allowed, or no step is chosen.
    """
    chosen = chosen_steps(data, options)
    seconds = {(one.iteration, one.index): one.seconds for one in chosen}
    pictures = {data["iterations"][one.iteration]["picture"] for one in chosen}
    captions = {step["title"] for number in pictures for step in data["pictures"][number]["steps"]}
    stage = Stage(data, pictures, captions, options.get("width"))
    return [
        stage.frame(moment, seconds[moment.iteration, moment.index])
        for moment in moments(data)
        if (moment.iteration, moment.index) in seconds
    ]


def save_frames(data: dict[str, Any], folder: Path, options: FrameOptions) -> list[Path]:
    """Write an SVG for each chosen step: ``0001.svg``, ``0002.svg`` and so on."""
    frames = frames_of(data, options)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, frame in enumerate(frames, 1):
        look: dict[str, Any] = {"width": _width(frame, options), "theme": _theme(options)}
        path = folder / f"{number:04}.svg"
        _write(path, svg(frame, title=one_line(data["title"]), **look))
        paths.append(path)
    return paths


def save_svg(data: dict[str, Any], path: Path, options: FrameOptions) -> None:
    """Write the chosen steps as an animated SVG."""
    frames = frames_of(data, options)
    look: dict[str, Any] = {"width": _width(frames[0], options), "theme": _theme(options)}
    _write(path, animated_svg(frames, title=one_line(data["title"]), **look))


def save_gif(data: dict[str, Any], path: Path, options: FrameOptions) -> None:
    """Write the chosen steps as a GIF.

    Raises:
        ImportError: Pillow is not installed.
    """
    # here, since only a GIF needs the module
    from tinynode.show.films.frame_pixels import write_gif

    frames = frames_of(data, options)
    theme = "dark" if options.get("theme") == "dark" else "light"
    write_gif(frames, path, width=_width(frames[0], options), theme=theme)


def _width(frame: Frame, options: FrameOptions) -> float:
    return options.get("width") or frame.width


def _theme(options: FrameOptions) -> str:
    return options.get("theme", "auto")


def _write(path: Path, text: str) -> None:
    # a name can have half of a surrogate pair, which no encoding has
    path.write_bytes(text.encode("utf-8", "replace"))
