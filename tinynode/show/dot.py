"""A Diagram in the language of graphviz, and places for its boxes by graphviz.

Requirement: other tools can draw the picture; and where graphviz's program ``dot`` is installed,
it lays out what is too large for tinynode's own layout to be read well. It is asked for places
only, for boxes without a text: what is drawn is drawn here, so no text needs a second escape.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from tinynode.show.layout import GroupArea, Layout, box_size, group_path, short_label
from tinynode.show.text_diagram import one_line

if TYPE_CHECKING:
    from tinynode.show.diagram import Diagram, DiagramNode

FORWARD_COLOUR = "#0072B2"
BACKWARD_COLOUR = "#D55E00"
"""Blue and vermilion of Okabe and Ito's palette, which the colour-blind tell apart."""

_POINTS_PER_INCH = 72.0
_SECONDS = 20.0


def to_dot(diagram: Diagram) -> str:
    """The lines of a DOT file: Variables are ellipses, functions are boxes."""
    lines = ["digraph {", f"    rankdir={'LR' if diagram.direction == 'right' else 'TB'};"]
    if diagram.title:
        lines.append(f'    label="{_quoted(diagram.title)}"; labelloc=t;')
    lines += ['    node [fontname="monospace", fontsize=10];', '    edge [fontname="monospace"];']
    lines += clusters(diagram, _attributes)
    for edge in diagram.edges:
        lines.append(
            f"    {edge.source} -> {edge.target}{_edge_attributes(edge.phase, edge.label)};"
        )
    lines += [f"    // {one_line(note)}" for note in diagram.notes]
    return "\n".join([*lines, "}"])


def clusters(diagram: Diagram, attributes: Any, indent: str = "    ") -> list[str]:
    """The lines of the nodes, each group in a subgraph within the one around it."""
    lines: list[str] = []
    open_groups: tuple[str, ...] = ()
    numbers: dict[str, int] = {}
    for node in sorted(diagram.nodes, key=_group_key):
        wanted = group_path(node.group)
        while open_groups != wanted[: len(open_groups)]:
            open_groups = open_groups[:-1]
            lines.append(f"{indent * (len(open_groups) + 1)}}}")
        for name in wanted[len(open_groups) :]:
            number = numbers.setdefault(name, len(numbers))
            start = indent * (len(open_groups) + 1)
            lines.append(f"{start}subgraph cluster_{number} {{")
            lines.append(f'{start}{indent}label="{_quoted(name)}"; color="#999999";')
            open_groups = (*open_groups, name)
        lines.append(f"{indent * (len(open_groups) + 1)}{node.id} [{attributes(node)}];")
    while open_groups:
        open_groups = open_groups[:-1]
        lines.append(f"{indent * (len(open_groups) + 1)}}}")
    return lines


def _group_key(node: DiagramNode) -> tuple[str, ...]:
    return group_path(node.group)


def _attributes(node: DiagramNode) -> str:
    label = "\\n".join(_quoted(text) for text in (short_label(node), *node.facts))
    shape = {"variable": "ellipse", "function": "box", "fold": "box3d"}[node.kind]
    styles = ["dashed"] if node.phase == "backward" else []
    if "gone" in node.marks:
        styles = ["dotted"]
    if "root" in node.marks:
        styles.append("bold")
    words = [f'label="{label}"', f"shape={shape}", f'color="{_colour(node.phase)}"']
    if styles:
        words.append(f'style="{",".join(styles)}"')
    return ", ".join(words)


def _edge_attributes(phase: str, label: str) -> str:
    words = [f'label="{_quoted(label)}"'] if label else []
    if phase == "backward":
        words += ["style=dashed", f'color="{BACKWARD_COLOUR}"']
    return f" [{', '.join(words)}]" if words else ""


def _colour(phase: str) -> str:
    return BACKWARD_COLOUR if phase == "backward" else FORWARD_COLOUR


def _quoted(text: str) -> str:
    """A text as it stands between quotes in DOT, which reads HTML's entities as well."""
    return one_line(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')


# --- places by graphviz --------------------------------------------------------------------------


def layout_by_graphviz(diagram: Diagram) -> Layout | None:
    """The places that graphviz gives; None where it is not installed, or gives none in time."""
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "-Tjson0"],
            input=_only_places(diagram),
            capture_output=True,
            encoding="utf-8",
            timeout=_SECONDS,
            check=True,
        )
        return _read(diagram, json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError):
        return None  # then tinynode's own layout does it


def _only_places(diagram: Diagram) -> str:
    """The graph in DOT, with the sizes of its boxes for texts."""
    direction = "LR" if diagram.direction == "right" else "TB"
    lines = ["digraph {", f"    rankdir={direction}; ranksep=0.35; nodesep=0.25;"]
    lines += ['    node [shape=box, fixedsize=true, label=""];', "    edge [arrowhead=none];"]
    lines += clusters(diagram, _size)
    lines += [f"    {edge.source} -> {edge.target};" for edge in diagram.edges]
    return "\n".join([*lines, "}"])


def _size(node: DiagramNode) -> str:
    width, height = box_size(node)
    return f"width={width / _POINTS_PER_INCH:.4f}, height={height / _POINTS_PER_INCH:.4f}"


def _read(diagram: Diagram, found: dict[str, Any]) -> Layout:
    """Graphviz's places, which count from below, as a Layout."""
    _, _, width, height = (float(word) for word in found["bb"].split(","))
    result = Layout({}, [], width, height, [], diagram.direction, is_bezier=True)
    places = {item["name"]: item for item in found["objects"]}
    for node in diagram.nodes:
        x, y = (float(word) for word in places[node.id]["pos"].split(","))
        result.position[node.id] = (x, height - y, *box_size(node))
    names = [item["name"] for item in found["objects"]]
    waiting: dict[tuple[str, str], list[Any]] = {}
    for item in found.get("edges", ()):
        ends = (names[item["tail"]], names[item["head"]])
        waiting.setdefault(ends, []).append(item)
    for edge in diagram.edges:
        item = waiting[edge.source, edge.target].pop()
        points = []
        for pair in item["pos"].split():
            x, y = (float(word) for word in pair.split(","))
            points.append((x, height - y))
        result.edges.append((edge.source, edge.target, points))
    for name, item in places.items():
        if name.startswith("cluster_"):
            low, bottom, high, top = (float(word) for word in item["bb"].split(","))
            corners = [(high, height - top), (high, height - bottom)]
            corners += [(low, height - bottom), (low, height - top)]
            label = item["label"]
            result.groups.append(GroupArea(label, label.rpartition(".")[2], corners))
    return result
