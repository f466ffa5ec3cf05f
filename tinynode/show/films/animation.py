"""Frames of a film as an animated SVG.

Requirement: an animation plays in an ``<img>`` of a README, without a script. So CSS shows and
hides layers at their times; a layer with equal content in several frames is written once. Without
animations, the picture is the last frame: for readers who prefer reduced motion, and in print.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from tinynode.show.films.frame_drawing import Frame
from tinynode.show.shapes import Shape
from tinynode.show.svg import document, element


def animated_svg(frames: Sequence[Frame], *, width: float, theme: str, title: str) -> str:
    """Frames as an ``<svg>`` element that plays without end."""
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
