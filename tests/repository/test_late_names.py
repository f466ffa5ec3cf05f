"""``import tinynode`` leaves out the pictures, and the names of the pictures work all the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tinynode as tn


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_import_leaves_the_pictures_out() -> None:
    late = (
        "[name for name in sys.modules if name.startswith(('tinynode.show', 'tinynode.doctor'))]"
    )
    assert run(f"import sys, tinynode; print({late})") == "[]"


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
