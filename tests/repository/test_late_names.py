"""``import tinynode`` loads what ``x * y`` needs; the late names work all the same."""

from __future__ import annotations

import ast
import graphlib
import importlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import tinynode as tn
from tinynode.late_imports import _NEEDS


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


HEAVY_ROOMS = (
    *("array_api", "commands", "distributed", "doctor", "gradient_check", "habits.table"),
    *("interop", "net", "nn", "show", "testing", "transforms"),
)
HEAVY_LIBRARIES = (
    *("asyncio", "csv", "difflib", "email", "http", "importlib.metadata", "json", "lzma"),
    *("numpy.random", "shutil", "socket", "subprocess", "tempfile", "unittest", "zipfile"),
)
HEAVY = {*(f"tinynode.{room}" for room in HEAVY_ROOMS), *HEAVY_LIBRARIES}
"""The modules that a product and its gradients never load; ``numpy`` alone loads none of them."""

PRODUCT = """
import sys, numpy, tinynode as tn
x, y = tn.asarray([1.0, 2.0]), tn.Variable(numpy.ones(2, numpy.float32))
tn.functions.sum(x * y).backward()
print(*x.grad.tolist(), *sorted(sys.modules))
"""


def test_a_product_and_its_gradients_load_no_heavy_module() -> None:
    first, second, *loaded = run(PRODUCT).split()
    assert (first, second) == ("1.0", "1.0") and "tinynode.functions.arithmetic" in loaded
    assert HEAVY & set(loaded) == set()


def test_the_heavy_modules_exist() -> None:
    for name in HEAVY:
        assert importlib.util.find_spec(name) is not None, name


def late_imports() -> dict[str, str]:
    """The imports for types in ``tinynode/__init__.py``: name -> module."""
    tree = ast.parse(Path(tn.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    found = {}
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom) and statement.module
        for alias in statement.names:
            found[alias.name] = statement.module
    return found


def test_a_late_name_is_the_name_that_types_see() -> None:
    imports = late_imports()
    assert set(imports) == set(tn._LATE) and set(tn._LATE) <= {*dir(tn), "numpy_functions"}
    for name, home in imports.items():
        importlib.import_module(tn._LATE[name])
        is_module_of_tinynode = home == "tinynode"
        if is_module_of_tinynode:
            expected = sys.modules[f"tinynode.{name}"]
        else:
            expected = getattr(sys.modules[home], name)
        assert getattr(tn, name) is expected, name


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(set(tn._LATE.values())))
def test_each_late_module_can_come_first(path: str) -> None:
    """In a fresh process: a cycle of imports shows for one order of imports alone."""
    assert run(f"import sys, {path}; print(sys.modules[{path!r}].__name__)") == path


THREADS = """
import threading, tinynode as tn
start = threading.Barrier(len(tn._LATE) + 2)
errors = []

def use(get):
    start.wait()
    try:
        get()
    except BaseException as error:
        errors.append(error)

uses = [lambda name=name: getattr(tn, name) for name in tn._LATE]
uses += [lambda: tn.get_device("fast"), lambda: tn.nn.functional_call]
threads = [threading.Thread(target=use, args=(one,)) for one in uses]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(errors)
"""


@pytest.mark.slow
def test_threads_use_all_late_names_at_once() -> None:
    """In a fresh process: the late modules import each other, so one thread imports at a time."""
    for _ in range(3):
        assert run(THREADS) == "[]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are of POSIX systems")
def test_the_child_of_a_fork_imports_though_a_thread_of_the_parent_did() -> None:
    program = """
import os, threading, tinynode as tn
from tinynode import late_imports
held, end = threading.Event(), threading.Event()

def hold():
    with late_imports._one_thread:
        held.set()
        end.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if not child:
    os._exit(0 if callable(tn.vmap) else 1)
print(os.waitpid(child, 0)[1])
end.set()
thread.join()
"""
    assert run(program) == "0"


def edges_of(path: Path, modules: set[str]) -> set[str]:
    """The modules whose locks a thread takes while it imports a file.

    ``from a.b import c`` asks for a.b and for a.b.c, ``import a.b.c as c`` for a.b.c alone.
    """
    found: set[str] = set()
    waiting = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {str(node.module)} | names
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ClassDef):
            waiting += node.body
    return found & modules


def late_files() -> dict[str, Path]:
    """The modules that ``import tinynode`` does not import, by name; no commands."""
    early = set(run("import sys, tinynode; print(*sys.modules)").split())
    root = Path(tn.__file__).parent
    found = {}
    for room in (root, *(root.parent / "backends").glob("tinynode_*")):
        for path in room.rglob("*.py"):
            parts = path.relative_to(room.parent).with_suffix("").parts
            name = ".".join(parts).removesuffix(".__init__")
            if name not in early and not name.startswith(("tinynode.commands", "tinynode.__main")):
                found[name] = path
    return found


def test_late_modules_import_each_other_in_one_direction() -> None:
    """Each module has a lock of Python's: in a circle, two threads wait for each other.

    A package and a module in it are no circle: the module does not import the package.
    """
    files = late_files()
    graph = {name: edges_of(files[name], set(files)) - {name} for name in files}
    graphlib.TopologicalSorter(graph).prepare()  # a circle is a CycleError


EXCEPTIONS = {
    *("tinynode.interop.torch_names", "tinynode.interop.torch_weights"),  # nn imports these
    *("tinynode.interop.onnx.batches", "tinynode.interop.onnx.models"),  # by a call: onnx_model
    *_NEEDS,
}
"""Modules in a package below others, with imports from the packages above."""


def test_a_late_package_is_imported_before_its_modules() -> None:
    """By ``import tinynode.net``, in a module or in the package around it.

    An import of ``tinynode.net.trace`` locks the module, then the package. A thread that imports
    the package holds the lock of the package, and asks for that of the module.
    """
    files = late_files()
    packages = {name for name, path in files.items() if path.name == "__init__.py"}
    rooms = {name for name in packages if name.count(".") == name.startswith("tinynode.")}
    before = {
        name: packages_before(path, rooms) | {one for one in rooms if name.startswith(f"{one}.")}
        for name, path in files.items()
    }
    for name in graphlib.TopologicalSorter(before).static_order():
        for other in list(before[name]):
            before[name] |= before[other]
    missing = set()
    for name in files.keys() - EXCEPTIONS:
        for other in edges_of(files[name], set(files)):
            room = next((one for one in rooms if other.startswith(f"{one}.")), name)
            if room not in {name, *before[name]}:
                missing.add(f"{name}: first import {room}")
    assert missing == set()


def packages_before(path: Path, rooms: set[str]) -> set[str]:
    """The packages of the statements ``import tinynode.net`` at the top of a file."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {
        alias.name
        for node in body
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in rooms
    }


def test_no_module_asks_for_a_late_name_while_it_is_imported() -> None:
    """Such a module would wait for the lock, and the thread with the lock for the module.

    The late modules import no command, so a command may ask.
    """
    root = Path(tn.__file__).parent
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parts[0]
        if room in ("__init__.py", "commands"):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module == "tinynode":
                assert not {alias.name for alias in node.names} & set(tn._LATE), path
            if isinstance(node, ast.Import):  # ``import tinynode.net.commit as c`` reads tn.net
                named = [one.name for one in node.names if one.asname]
                assert not any(name.startswith("tinynode.") for name in named), path


def test_a_pickle_is_read_before_any_late_name() -> None:
    model = tn.nn.Linear(2, 1)
    content = pickle.dumps((model, tn.asarray([1.0, 2.0]), tn.get_device("numpy")))
    program = f"import pickle; print(pickle.loads({content!r})[0].weight.shape)"
    assert run(program) == "(1, 2)"


def test_debug_mode_needs_no_late_name() -> None:
    """The hook of debug mode registers when ``tinynode.hooks`` is imported."""
    program = """
import tinynode as tn
tn.config.debug = True
try:
    tn.functions.log(tn.asarray([-1.0]))
except tn.TinynodeError as error:
    print(type(error).__name__)
"""
    assert run(program) == "NaNError"


@pytest.mark.parametrize(
    "program",
    [
        "import tinynode as tn; print(tn.show.__name__[:8], callable(tn.diagnose))",
        "from tinynode import *; print(show.__name__[:8], callable(diagnose))",
        "from tinynode import show, diagnose; print(show.__name__[:8], callable(diagnose))",
        "import tinynode.show as show; print(show.__name__[:8], hasattr(show, 'graph'))",
        "import tinynode as tn; print('tinynode', {'show', 'diagnose'} <= set(dir(tn)))",
    ],
)
def test_the_names_work_at_the_first_use(program: str) -> None:
    assert run(program) == "tinynode True"


@pytest.mark.parametrize(
    "program",
    [
        "from tinynode import nn; print(nn.functional_call.__name__)",
        "from tinynode.nn import functional_call; print(functional_call.__name__)",
        "from tinynode.nn import *; print(functional_call.__name__)",
        "from tinynode import nn; print(*[n for n in dir(nn) if n == 'functional_call'])",
    ],
)
def test_functional_call_comes_at_the_first_use(program: str) -> None:
    assert run(program) == "functional_call"


def test_a_wrong_name_is_still_an_error() -> None:
    with pytest.raises(AttributeError, match="shwo"):
        _ = tn.shwo  # type: ignore[attr-defined]


def test_functional_call_leaves_the_name_of_pytorchs_functions_free() -> None:
    """``nn.functional`` is an error that names ``tinynode.functions``."""
    assert callable(tn.nn.functional_call) and not hasattr(tn.nn, "functional")
