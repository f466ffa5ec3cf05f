"""Pictures of images: well-formed SVG, and characters for a terminal."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np

from tinynode_course.image_pictures import images


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter() if node.tag.endswith("}text")]


def cells(svg: str, colour: str) -> int:
    """The number of cells drawn in a colour: the lengths of the paths of heat maps."""
    paths = [node for node in ET.fromstring(svg).iter() if node.tag.endswith("}path")]
    drawn = [node.get("d", "") for node in paths if node.get("class") == f"s-{colour}"]
    return sum(int(length) for d in drawn for length in re.findall(r"h(\d+)", d))


def test_images_have_captions_and_a_cell_for_each_pixel_above_0() -> None:
    stack = np.zeros((3, 2, 4))
    stack[0, 0, 1] = stack[2, 1, 3] = 0.5
    picture = images(stack, ["a", "<b>", "c"], title="Three & more", columns=2)
    svg = picture._repr_svg_()
    assert texts(svg) == ["Three & more", "a", "<b>", "c"]
    assert cells(svg, "text") == 2
    assert cells(svg, "plus") == cells(svg, "minus") == 0
    lines = str(picture).splitlines()
    assert lines[:2] == ["Three & more", "  ##"]
    assert "a" in lines[3] and "<b>" in lines[3] and lines[-1] == "c"


def test_numbers_below_0_have_another_colour() -> None:
    svg = images(np.array([[[1.0, -2.0], [0.0, 2.0]]]))._repr_svg_()
    assert cells(svg, "plus") == 2
    assert cells(svg, "minus") == 1


def test_an_empty_picture_is_drawn() -> None:
    assert "<svg" in images(np.zeros((1, 3, 3)))._repr_svg_()
