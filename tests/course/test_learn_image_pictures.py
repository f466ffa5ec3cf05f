"""Pictures of images: well-formed SVG, and characters for a terminal."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from tinynode_course.image_pictures import images


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter() if node.tag.endswith("}text")]


def paths(svg: str, kind: str) -> list[str]:
    """The drawn cells of a colour, as the data of paths."""
    found = [node for node in ET.fromstring(svg).iter() if node.get("class") == kind]
    return [node.get("d", "") for node in found if node.tag.endswith("}path")]


def test_images_have_captions_and_a_cell_for_each_pixel_above_0() -> None:
    stack = np.zeros((3, 2, 4))
    stack[0, 0, 1] = stack[2, 1, 3] = 0.5
    picture = images(stack, ["a", "<b>", "c"], title="Three & more", columns=2)
    svg = picture._repr_svg_()
    assert texts(svg) == ["Three & more", "a", "<b>", "c"]
    assert sum(d.count("M") for d in paths(svg, "ink")) == 2
    assert paths(svg, "plus") == paths(svg, "minus") == []
    lines = str(picture).splitlines()
    assert lines[:2] == ["Three & more", "  ##"]
    assert "a" in lines[3] and "<b>" in lines[3] and lines[-1] == "c"


def test_numbers_below_0_have_another_colour() -> None:
    svg = images(np.array([[[1.0, -2.0], [0.0, 2.0]]]))._repr_svg_()
    assert sum(d.count("M") for d in paths(svg, "plus")) == 2
    assert sum(d.count("M") for d in paths(svg, "minus")) == 1


def test_an_empty_picture_is_drawn() -> None:
    assert "<svg" in images(np.zeros((1, 3, 3)))._repr_svg_()
