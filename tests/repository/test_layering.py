"""Who may import whom: read off the source, so that no import can hide in a branch."""

from __future__ import annotations

import ast
import functools
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = [
    {"tinynode.habits", "tinynode.late_imports"},
    {"tinynode.errors"},
    {"tinynode.safe_files"},
    {"tinynode.config_sources"},
    {"tinynode.configuration"},
    {"tinynode.devices.protocol", "tinynode.devices.use_counts"},
    {"tinynode.devices.dtypes", "tinynode.devices.hidden_axes"},
    {"tinynode.devices.loader"},
    {"tinynode.devices.device"},
    {"tinynode.devices.registry"},
    {"tinynode.devices.arrays"},
    {"tinynode.devices.host_data"},
    {"tinynode.devices.sums"},
    {"tinynode.devices"},
    {"tinynode.type_check", "tinynode.core.hooks", "tinynode.core.nested"},
    {"tinynode.core.operators"},
    {"tinynode.core.array_methods"},
    {"tinynode.core.messages"},
    {"tinynode.core.variable_node", "tinynode.core.variable"},
    {"tinynode.core.conversion", "tinynode.core.dispatch"},
    {"tinynode.core.array_arguments", "tinynode.core.seeds"},
    {"tinynode.core.function_node"},
    {"tinynode.core.gradient_table", "tinynode.core.paths"},
    {"tinynode.core.backprop"},
    {"tinynode.generator"},
    {"tinynode.functions"},
]
"""From the bottom up. Every module that is not named stands above."""

BACK_EDGES = {
    f"tinynode.core.{name}"
    for name in (
        "array_methods",
        "operators",
        "conversion",
        "function_node",
        "gradient_table",
        "seeds",
        "variable",
        "variable_node",
    )
}
"""The modules that may reach upwards: `import tinynode`, then an attribute read at call time."""

ONE_LAYER = {"tinynode.core.variable", "tinynode.core.variable_node"}
"""These two may know each other."""


def modules(folder: Path, base: Path) -> dict[str, Path]:
    """The files of a folder by their dotted names; a package goes by the name of its folder."""
    paths = {".".join(p.relative_to(base).with_suffix("").parts): p for p in folder.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in sorted(paths.items())}


TINYNODE = modules(ROOT / "tinynode", ROOT)
BACKENDS = modules(ROOT / "backends", ROOT / "backends")
COURSE = modules(ROOT / "tutorials/course/tinynode_course", ROOT / "tutorials/course")
FILES = TINYNODE | BACKENDS | COURSE


@functools.cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of each module."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


def statements(node: ast.AST, inside: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Every import below a node, those for types too, and whether it is in a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inside
        yield from statements(child, inside or isinstance(child, ast.FunctionDef))


def targets(statement: ast.stmt) -> set[str]:
    """The modules that an import names: for `from tinynode import x` module x, if there is one."""
    if isinstance(statement, ast.Import):
        return {alias.name for alias in statement.names}
    assert isinstance(statement, ast.ImportFrom) and statement.module, ast.unparse(statement)
    longer = [f"{statement.module}.{alias.name}" for alias in statement.names]
    return {name if name in trees() else statement.module for name in longer}


def imports_of(name: str) -> set[str]:
    return {target for statement, _ in statements(trees()[name]) for target in targets(statement)}


def layer(name: str) -> int:
    for height, members in enumerate(LAYERS):
        if any(name == member or name.startswith(member + ".") for member in members):
            return height
    return len(LAYERS)


def test_the_named_modules_exist() -> None:
    assert {name for members in LAYERS for name in members} <= set(TINYNODE)


def test_the_design_page_has_the_layers() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    block = page.partition("## Who may import whom")[2].split("```")[1]
    lines = block.strip().splitlines()[:0:-1]  # from the bottom up, without "text"
    names = [sorted(name.removeprefix("tinynode.") for name in members) for members in LAYERS]
    assert [line.split(", ") for line in lines] == [*names, ["all other modules"]]


def test_imports_point_downwards() -> None:
    above = [
        f"{name} imports {target}"
        for name in TINYNODE
        for target in imports_of(name)
        if name != "tinynode" and target.startswith("tinynode.") and layer(target) > layer(name)
    ]
    assert above == []


def test_there_is_no_import_cycle() -> None:
    """Imports for types count too, and those of the backends."""
    files = TINYNODE | BACKENDS | COURSE
    graph = {name: imports_of(name) & set(files) - {name} for name in files}
    for name in BACK_EDGES:
        graph[name] -= {"tinynode"}
    graph["tinynode.core.variable_node"] -= ONE_LAYER
    list(graphlib.TopologicalSorter(graph).static_order())  # a CycleError names the cycle


@pytest.mark.parametrize("name", sorted(BACK_EDGES))
def test_back_edges_are_read_at_call_time(name: str) -> None:
    """While these modules are being imported, `tinynode` does not have its names yet."""
    for statement, _ in statements(trees()[name]):
        assert isinstance(statement, ast.Import) or "tinynode" not in targets(statement)
    waiting: list[ast.AST] = [trees()[name]]
    while waiting:
        for child in ast.iter_child_nodes(waiting.pop()):
            assert not (isinstance(child, ast.Name) and child.id == "tinynode"), child.lineno
            is_for_types = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            if not isinstance(child, ast.FunctionDef) and not is_for_types:  # both not run yet
                waiting.append(child)


def test_an_import_inside_a_function_says_why() -> None:
    for name, tree in trees().items():
        path = FILES[name]
        lines = ["", *path.read_text(encoding="utf-8").splitlines()]
        for statement, inside in statements(tree):
            number = statement.lineno
            says_why = "#" in lines[number] or lines[number - 1].strip().startswith("#")
            assert not inside or says_why, f"{path}:{number}: this import needs a comment"


def test_tinynode_names_no_backend_package() -> None:
    for name in TINYNODE:
        assert not [t for t in imports_of(name) if t.startswith(("tinynode_", "cupy"))], name


def test_only_the_door_leads_to_the_course() -> None:
    """By name, at the first command: `import tinynode.learn` imports no module of the course."""
    doors = {
        name
        for name in TINYNODE | BACKENDS
        for node in ast.walk(trees()[name])
        if isinstance(node, ast.Call) and "import" in ast.unparse(node.func)
        if "tinynode_course" in ast.unparse(node)
    }
    assert doors == {"tinynode.learn"}
    code = "import sys, tinynode.learn, tinynode.commands; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    )
    assert "tinynode.learn" in done.stdout and "tinynode_course" not in done.stdout


def test_the_course_knows_tinynode_and_no_backend() -> None:
    for name in COURSE:
        used = {target.partition(".")[0] for target in imports_of(name)}
        assert {t for t in used if t.startswith("tinynode")} <= {"tinynode", "tinynode_course"}


@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_a_backend_knows_only_the_protocol(name: str) -> None:
    used = imports_of(name)
    of_tinynode = {target for target in used if target.partition(".")[0] == "tinynode"}
    own = name.partition(".")[0]
    if own in ("tinynode_cupy", "tinynode_fast"):
        # their kernels stand beside the function and optimizer classes whose work they do
        others = ("tinynode.functions", "tinynode.core", "tinynode.net", "tinynode.nn")
        of_tinynode = {target for target in of_tinynode if not target.startswith(others)}
    if own != "tinynode_fast":  # which overlays NumPy's memory, and takes all but forward there
        assert not [t for t in used if t.startswith("tinynode_") and not t.startswith(own)]
    protocol = ("tinynode.devices", "tinynode.errors")
    if own == "tinynode_fast":  # the setting ``compiler``
        protocol = (*protocol, "tinynode.configuration")
    assert all(target.startswith(protocol) for target in of_tinynode)
    assert name.startswith("tinynode_cupy") or not [t for t in used if t.startswith("cupy")]


FUNCTIONS_AND_LAYERS = {"AvgPool2d", "Conv2d", "Identity", "Linear", "MaxPool2d", "Mean"}
"""The public names of a FunctionNode, and of a layer or a metric."""
MOVING = ("tinynode.core.", "tinynode.learn.", "tinynode.show.")
"""The rooms whose files are still to be told apart."""


def test_a_class_name_stands_in_one_place() -> None:
    places: dict[str, list[str]] = {}
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not module.startswith(MOVING):
                places.setdefault(node.name, []).append(module)
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert set(twice) == FUNCTIONS_AND_LAYERS, twice
