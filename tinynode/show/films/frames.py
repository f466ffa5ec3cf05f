"""Pictures of a film for slides and READMEs: SVGs, an animated SVG, a GIF.

Requirement: a film plays where no page can be opened. So each chosen step becomes a frame, a
display list (``frame_drawing``), and the writers draw the same frames (``svg``, ``pixels``).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict

from tinynode.atomic_file import replace_file
from tinynode.show.films.frame_drawing import Frame, Stage
from tinynode.show.films.state import moments
from tinynode.show.pixels import save_gif as write_gif
from tinynode.show.shapes import Shape
from tinynode.show.svg import document, element, svg

SECONDS = 1.5
"""The time of a step, in seconds."""

ITERATION = 5.0
"""Where an iteration has a single picture, the picture's time is so many times shorter."""

LAST = 2.0
"""The last picture stays so many seconds longer."""

MOST_ITERATIONS = 60
"""Without a choice, at most so many iterations show their last step."""

MOST_PICTURES = 1000
"""The largest number of pictures; more would take gigabytes."""

WIDTHS = (100, 4000)
"""The smallest and the largest width of a picture, in pixels."""


class FrameOptions(TypedDict, total=False):
    """The options of ``Film.frames``, ``Film.gif`` and ``Film.save``.

    Attributes:
        steps: the steps of each iteration, as a slice or as indexes: 0 is the first, -1 the last.
        iterations: the indexes of the iterations, or "all".
        seconds: the time of a step.
        width: the width of a picture, in pixels.
        theme: "light", "dark", or for SVG "auto": the reader's preference.
    """

    steps: slice | Sequence[int] | None
    iterations: Literal["all"] | Sequence[int] | None
    seconds: float
    width: int | None
    theme: Literal["auto", "light", "dark"]


@dataclass(frozen=True)
class _Chosen:
    """A step of a film for a picture.

    Attributes:
        iteration: the index of the iteration.
        index: the index of the step in the iteration.
        seconds: the time of the picture.
    """

    iteration: int
    index: int
    seconds: float


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
    text = _animated_svg(frames, width=width, theme=_theme(options), title=data["title"])
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
    write_gif(drawings, seconds, path, width=width, theme=theme)


def _theme(options: FrameOptions) -> str:
    return options.get("theme", "auto")


def _write(path: Path, text: str) -> None:
    # a name can have half of a surrogate pair, which no encoding has
    replace_file(path, f"{text}\n".encode("utf-8", "replace"))


# --- the choice of steps -------------------------------------------------------------------------


def chosen_steps(data: dict[str, Any], options: FrameOptions) -> list[_Chosen]:
    """The steps that the options choose, in the order of the film.

    Without ``iterations``, the first iteration of each structure has all steps. Of the other
    iterations, at most ``MOST_ITERATIONS`` show the last step, at equal distances.

    Raises:
        ValueError: an option is not allowed, or no step is chosen.
    """
    seconds = options.get("seconds", SECONDS)
    if not 0.02 <= seconds <= 600:
        raise ValueError(f"the seconds of a step must be from 0.02 to 600, got {seconds!r}.")
    width = options.get("width")
    if width is not None and not WIDTHS[0] <= width <= WIDTHS[1]:
        raise ValueError(f"the width must be from {WIDTHS[0]} to {WIDTHS[1]} pixels, got {width}.")
    theme = options.get("theme", "auto")
    if theme not in ("auto", "light", "dark"):
        raise ValueError(f'the theme must be "auto", "light" or "dark", got {theme!r}.')
    whole, last_only = _iterations(data, options.get("iterations"))
    found = []
    for number in sorted(whole | last_only):
        steps = _steps(data, number, options.get("steps"))
        if number not in whole:
            found += [_Chosen(number, i, max(0.02, seconds / ITERATION)) for i in steps[-1:]]
        else:
            found += [_Chosen(number, i, seconds) for i in steps]
    if not found:
        raise ValueError("there is no picture: the film has no steps, or the options choose none.")
    if len(found) > MOST_PICTURES:
        raise ValueError(
            f"the options choose {len(found)} pictures, and the limit is {MOST_PICTURES}: choose "
            "fewer by `steps` or `iterations`."
        )
    return [*found[:-1], _Chosen(found[-1].iteration, found[-1].index, seconds + LAST)]


def _iterations(
    data: dict[str, Any], wanted: Literal["all"] | Sequence[int] | None
) -> tuple[set[int], set[int]]:
    """The iterations with all steps, and the iterations with the last step only."""
    iterations = data["iterations"]
    everything = set(range(len(iterations)))
    if wanted == "all":
        return everything, set()
    if isinstance(wanted, str):
        raise ValueError(f'the iterations must be "all" or indexes, got {wanted!r}.')
    if wanted is not None:
        return set(_indexes("iterations", wanted, len(iterations))), set()
    first: dict[int, int] = {}
    for number, one in enumerate(iterations):
        first.setdefault(one["picture"], number)
    whole = set(first.values())
    others = sorted(everything - whole)
    with_arrays = [number for number in others if iterations[number]["arrays"]]
    if len(with_arrays) >= MOST_ITERATIONS // 3:
        others = with_arrays  # the others have no elements of large arrays
    return whole, set(_thinned(others))


def _thinned(numbers: list[int]) -> list[int]:
    """At most ``MOST_ITERATIONS`` of the numbers at equal distances, with the last."""
    if len(numbers) <= MOST_ITERATIONS:
        return numbers
    last = len(numbers) - 1
    places = {round(i * last / (MOST_ITERATIONS - 1)) for i in range(MOST_ITERATIONS)}
    return [numbers[place] for place in sorted(places)]


def _steps(
    data: dict[str, Any], iteration: int, wanted: slice | Sequence[int] | None
) -> list[int]:
    """The indexes of the steps of an iteration, in order."""
    count = len(data["pictures"][data["iterations"][iteration]["picture"]]["steps"])
    if wanted is None:
        return list(range(count))
    if isinstance(wanted, slice):
        return sorted(range(count)[wanted])
    return _indexes("steps", wanted, count)


def _indexes(name: str, wanted: Sequence[int], count: int) -> list[int]:
    for index in wanted:
        if not -count <= index < count:
            raise ValueError(f"the {name} must be from {-count} to {count - 1}, got {index!r}.")
    return sorted({index % count for index in wanted})


# --- the animated SVG ----------------------------------------------------------------------------


def _animated_svg(frames: Sequence[Frame], *, width: float, theme: str, title: str) -> str:
    """Frames as an ``<svg>`` element that plays without end.

    An animation plays in an ``<img>`` of a README, without a script. So CSS shows and hides layers
    at their times; a layer with equal content in several frames is written once. Without
    animations, the picture is the last frame: for readers who prefer reduced motion, and in print.
    """
    times = [0.0, *itertools.accumulate(frame.seconds for frame in frames)]
    rules: dict[tuple[int, ...], str] = {}
    body = []
    for layer in _layer_order(frames):
        contents: dict[tuple[Shape, ...], list[int]] = {}
        for number, frame in enumerate(frames):
            contents.setdefault(frame.layers.get(layer, ()), []).append(number)
        for shapes, numbers in contents.items():
            text = "".join(element(one) for one in shapes)
            if text and len(numbers) == len(frames):
                body.append(text)
            elif text:
                name = rules.setdefault(tuple(numbers), f"k{len(rules)}")
                body.append(f'<g class="{name}">{text}</g>')
    last = len(frames) - 1
    hidden = [f".{name}" for numbers, name in rules.items() if numbers[-1] != last]
    style = ["", f"{','.join(hidden)}{{visibility:hidden}}"] if hidden else [""]
    style.append("@media (prefers-reduced-motion: no-preference){")
    style += [_keyframes(name, numbers, times) for numbers, name in rules.items()]
    style.append("}")
    drawing = replace(frames[-1].drawing(title), words=_words(frames))
    return document(drawing, body, theme, width, "\n".join(style))


def _layer_order(frames: Sequence[Frame]) -> list[str]:
    """The layers of all frames in drawing order; frames of a film have the same order."""
    order: dict[str, float] = {}
    for frame in frames:
        before = -1.0
        for place, layer in enumerate(frame.layers):
            # a layer that comes late is drawn at its place in the frame
            before = order.setdefault(layer, max(before, float(place)))
    return sorted(order, key=order.__getitem__)


def _keyframes(name: str, numbers: tuple[int, ...], times: Sequence[float]) -> str:
    """The rules that show a class of layers in the frames with these numbers."""
    shown = set(numbers)
    words = []
    was_shown = None
    for number, start in enumerate(times[:-1]):
        if (number in shown) is not was_shown:
            was_shown = number in shown
            visibility = "visible" if was_shown else "hidden"
            words.append(f"{100 * start / times[-1]:.4g}%{{visibility:{visibility}}}")
    # the value of the last keyframe holds until the end
    frames = f"@keyframes {name}{{{''.join(words)}100%{{visibility:{visibility}}}}}"
    return f"{frames}.{name}{{animation:{name} {times[-1]:.2f}s step-end infinite}}"


def _words(frames: Sequence[Frame]) -> str:
    """A text for screen readers: the sentences of the first 20 frames."""
    words = [frame.words for frame in frames[:20]]
    more = " And more." if len(frames) > 20 else ""
    return f"An animation of {len(frames)} pictures. {' '.join(words)}{more}"
