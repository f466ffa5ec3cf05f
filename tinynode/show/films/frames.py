"""Pictures of a film for slides and READMEs: SVGs, an animated SVG, a GIF.

Requirement: a film plays where no page can be opened. So each chosen step becomes a frame, a
display list (``frame_drawing``), and the writers draw the same frames (``svg``, ``pixels``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tinynode.show import pixels
from tinynode.show.films.animation import animated_svg
from tinynode.show.films.frame_drawing import Frame, Stage
from tinynode.show.films.frame_options import FrameOptions, chosen_steps
from tinynode.show.films.state import moments
from tinynode.show.svg import svg


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
        path = folder / f"{number:04}.svg"
        drawing = frame.drawing(data["title"])
        _write(path, svg(drawing, theme=_theme(options), width=options.get("width")))
        paths.append(path)
    return paths


def save_svg(data: dict[str, Any], path: Path, options: FrameOptions) -> None:
    """Write the chosen steps as an animated SVG."""
    frames = frames_of(data, options)
    width = options.get("width") or frames[0].width
    text = animated_svg(frames, width=width, theme=_theme(options), title=data["title"])
    _write(path, text)


def save_gif(data: dict[str, Any], path: Path, options: FrameOptions) -> None:
    """Write the chosen steps as a GIF.

    Raises:
        ImportError: Pillow is not installed.
    """
    frames = frames_of(data, options)
    drawings = [frame.drawing(data["title"]) for frame in frames]
    seconds = [frame.seconds for frame in frames]
    theme = "dark" if options.get("theme") == "dark" else "light"
    width = options.get("width") or frames[0].width
    pixels.save_gif(drawings, seconds, path, width=width, theme=theme)


def _theme(options: FrameOptions) -> str:
    return options.get("theme", "auto")


def _write(path: Path, text: str) -> None:
    # a name can have half of a surrogate pair, which no encoding has
    path.write_bytes(f"{text}\n".encode("utf-8", "replace"))
