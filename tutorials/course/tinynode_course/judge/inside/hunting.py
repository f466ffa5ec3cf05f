"""In the child: a learner's tests on engines, each right or with a planted bug.

Requirement: the child does not know the right engines. The engines have no files, and come
in an order and a form of the judge's choice.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

Files = dict[str, str]


class Engine(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of an engine, from texts."""

    def __init__(self, name: str, files: Files) -> None:
        self.name = name
        self.texts = {module_of(name, path): text for path, text in files.items()}
        self.packages = {module_of(name, path) for path in files if path.endswith("__init__.py")}
        for module in list(self.texts):
            while "." in module:  # a folder without __init__.py is a package too
                module = module.rpartition(".")[0]
                self.packages.add(module)
        self.modules = {*self.texts, *self.packages}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The module; None for modules of others."""
        if name not in self.modules:
            return None
        return importlib.util.spec_from_loader(name, self, is_package=name in self.packages)

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the text of a module."""
        text = self.texts.pop(module.__name__, "")  # the tests find no text
        exec(compile(text, f"<{module.__name__}>", "exec"), vars(module))

    def load(self) -> types.ModuleType:
        """The engine, freshly loaded."""
        for old in [old for old in sys.modules if old.split(".")[0] == self.name]:
            del sys.modules[old]
        sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, Engine)]
        sys.meta_path.insert(0, self)
        return importlib.import_module(self.name)


def module_of(name: str, path: str) -> str:
    """The module of a file: ``core/variable.py`` of mynode is ``mynode.core.variable``."""
    if path == f"{name}.py":
        return name
    parts = path.removesuffix(".py").removesuffix("__init__").strip("/").split("/")
    return ".".join([name, *(part for part in parts if part)])


def run(job: dict[str, Any], tell: Callable[..., None], in_words: Callable[..., str]) -> None:
    """Run the tests on each engine, up to the first failure."""
    hunt = job["hunt"]
    for number, files in hunt["engines"]:
        tell(event="begin", number=number)
        failed, names = "", []
        try:
            sys.modules.pop(hunt["tests"], None)
            engine = Engine(hunt["name"], files).load()
            tests = tests_of(importlib.import_module(hunt["tests"]))
            names = list(tests)
            for name, test in tests.items():
                failed = name
                test(engine)
            failed = ""
        except BaseException as error:
            failed = f"{failed or hunt['tests']}: {in_words(error, job['work'])}"
        tell(event="tested", number=number, tests=len(names), failed=failed)


def tests_of(module: types.ModuleType) -> dict[str, Callable[[Any], None]]:
    """The functions ``test_...`` of a module, in the order of the file."""
    return {
        name: thing
        for name, thing in vars(module).items()
        if name.startswith("test_") and inspect.isfunction(thing)
    }
