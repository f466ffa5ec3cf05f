"""``import tinynode`` loads what ``x * y`` needs; the late names work all the same."""

from __future__ import annotations

import ast
import importlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import tinynode as tn


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
