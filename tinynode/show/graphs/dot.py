"""A Diagram in the language of graphviz, and graphviz's layout of the boxes.

Requirement: other tools can draw the picture. If graphviz's program ``dot`` is installed, it lays
out large diagrams more readably than tinynode's own layout. Graphviz gets boxes without texts, and
gives coordinates only. The drawing is tinynode's, so no text needs a second escape.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

from tinynode.show.graphs.diagram_data import DiagramData, DiagramNode, group_path
from tinynode.show.graphs.layout_pixels import GroupArea, Layout
from tinynode.show.graphs.sizes import box_size, short_label
from tinynode.show.palette import EITHER, FRAME
from tinynode.show.texts import one_line

_POINTS_PER_INCH = 72.0
_SECONDS = 20.0


def to_dot(diagram: DiagramData) -> str:
    """The lines of a DOT file: Variables are ellipses, functions are boxes."""
    lines = ["digraph {", f"    rankdir={'LR' if diagram.direction == 'right' else 'TB'};"]
    if diagram.title:
        lines.append(f'    label="{_quoted(diagram.title)}"; labelloc=t;')
    lines += ['    node [fontname="monospace", fontsize=10];', '    edge [fontname="monospace"];']
    lines += _clusters(diagram, _attributes)
    for edge in diagram.edges:
        lines.append(
            f"    {edge.source} -> {edge.target}{_edge_attributes(edge.phase, edge.label)};"
        )
    lines += [f"    // {one_line(note)}" for note in diagram.notes]
    return "\n".join([*lines, "}"])


def _clusters(
    diagram: DiagramData, attributes: Callable[[DiagramNode], str], indent: str = "    "
) -> list[str]:
    """The lines of the nodes; a group is a subgraph of the group around it."""
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
            lines.append(f'{start}{indent}label="{_quoted(name)}"; color="{FRAME}";')
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
    if node.marks & {"root", "finding"}:
        styles.append("bold")
    words = [f'label="{label}"', f"shape={shape}", f'color="{_colour(node)}"']
    if styles:
        words.append(f'style="{",".join(styles)}"')
    return ", ".join(words)


def _edge_attributes(phase: str, label: str) -> str:
    words = [f'label="{_quoted(label)}"'] if label else []
    if phase == "backward":
        words += ["style=dashed", f'color="{EITHER.backward}"']
    return f" [{', '.join(words)}]" if words else ""


def _colour(node: DiagramNode) -> str:
    if "finding" in node.marks:
        return EITHER.bad
    return EITHER.backward if node.phase == "backward" else EITHER.forward


def _quoted(text: str) -> str:
    """The text escaped for DOT's quotes, between which DOT reads HTML's entities too."""
    return one_line(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')


# --- layout by graphviz --------------------------------------------------------------------------


def layout_by_graphviz(diagram: DiagramData) -> Layout | None:
    """Graphviz's layout; None if it is not installed, fails, or takes more than 20 seconds."""
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "-Tjson0"],
            input=_boxes_without_texts(diagram),
            capture_output=True,
            encoding="utf-8",
            timeout=_SECONDS,
            check=True,
        )
        return _read(diagram, json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError):
        return None  # the caller then uses tinynode's own layout


def _boxes_without_texts(diagram: DiagramData) -> str:
    """The graph in DOT: sizes of boxes in place of their texts."""
    direction = "LR" if diagram.direction == "right" else "TB"
    lines = ["digraph {", f"    rankdir={direction}; ranksep=0.35; nodesep=0.25;"]
    lines += ['    node [shape=box, fixedsize=true, label=""];', "    edge [arrowhead=none];"]
    lines += _clusters(diagram, _size)
    lines += [f"    {edge.source} -> {edge.target};" for edge in diagram.edges]
    return "\n".join([*lines, "}"])


def _size(node: DiagramNode) -> str:
    width, height = box_size(node)
    return f"width={width / _POINTS_PER_INCH:.4f}, height={height / _POINTS_PER_INCH:.4f}"


def _read(diagram: DiagramData, found: dict[str, Any]) -> Layout:
    """Graphviz's answer as a Layout; graphviz's y coordinates count from below."""
    _, _, width, height = (float(word) for word in found["bb"].split(","))
    result = Layout({}, [], width, height, [], diagram.direction, is_bezier=True)
    by_name = {item["name"]: item for item in found["objects"]}
    for node in diagram.nodes:
        x, y = (float(word) for word in by_name[node.id]["pos"].split(","))
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
    for name, item in by_name.items():
        if name.startswith("cluster_"):
            low, bottom, high, top = (float(word) for word in item["bb"].split(","))
            corners = [(high, height - top), (high, height - bottom)]
            corners += [(low, height - bottom), (low, height - top)]
            label = item["label"]
            result.groups.append(GroupArea(label, label.rpartition(".")[2], corners))
    return result
