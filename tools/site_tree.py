"""Writes the whole site as plain files, for builders that do not run the hooks of mkdocs.

    python -m tools.site_tree DIR
    cd DIR && zensical build

DIR gets ``docs`` with the pages of the repository and the made pages, formulas as MathML, and the
unchanged ``mkdocs.yml``. Links lead to the packages, since the reference reads their docstrings.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from tools import (
    docs_math,
    docs_pages,
    function_pages,
    habit_tables,
    microgpt_page,
    minutes_table,
    source_pages,
)

ROOT = docs_pages.ROOT
CACHE = ROOT / ".cache" / "docs"


def write(folder: Path) -> int:
    """Write the tree; returns the number of files in ``docs``."""
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "mkdocs.yml", folder)
    shutil.copytree(ROOT / "docs", folder / "docs")
    for name in ("tinynode", "backends", "tutorials"):
        (folder / name).symlink_to(ROOT / name, target_is_directory=True)
    for path in sorted(CACHE.glob("*.json")):
        for name, text in json.loads(path.read_text(encoding="utf-8"))["files"].items():
            target = folder / "docs" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    written = [path for path in (folder / "docs").rglob("*") if path.is_file()]
    for path in written:
        if path.suffix == ".md":
            path.write_text(_complete(path.read_text(encoding="utf-8")), encoding="utf-8")
    return len(written)


def _complete(text: str) -> str:
    """A page as the hook completes it."""
    text = text.replace(function_pages.INDEX, function_pages.index())
    text = habit_tables.with_tables(minutes_table.with_table(text))
    if microgpt_page.MARK in text:
        text = microgpt_page.with_texts(text, docs_pages.made_texts(CACHE))
    return source_pages.with_source(docs_math.typeset(text))


def main(arguments: list[str]) -> int:
    """Make the pages, then the tree in a new folder."""
    if len(arguments) != 1 or arguments[0].startswith("-") or Path(arguments[0]).exists():
        print("name a folder that does not exist", file=sys.stderr)
        return 2
    status = docs_pages.main(str(CACHE))
    if status == 0:
        print(f"wrote {write(Path(arguments[0]))} files")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
