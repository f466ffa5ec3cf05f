"""Mkdocs's hook: adds the files that programs make to the site.

Requirement: ``mkdocs build`` alone builds the site from a fresh clone, and writes nothing into
folders of the repository. ``tools/docs_pages.py`` makes the files; mkdocs gets them from memory.
The folder ``.cache`` spares ``mkdocs serve`` to run all programs again after each change.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "docs"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Bring the made files up to date, in a process that sees today's tinynode, and add them."""
    command = [sys.executable, "-B", "-m", "tools.docs_pages", str(CACHE)]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        raise PluginError("a program of the site stopped with an error")
    for path in sorted(CACHE.glob("*.json")):
        for name, text in json.loads(path.read_text(encoding="utf-8"))["files"].items():
            files.append(File.generated(config, name, content=text))
    return files
