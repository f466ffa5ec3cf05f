"""Makes the files of the site that come from programs: pages of the course, pictures, a film.

    python -m tools.docs_pages FOLDER

Requirement: each output and picture on the site is that of a run of today's program. So no such
file is in the repository: the build of the site makes them (``tools/docs_hook.py``). A change of a
step makes the page of this step again, a change of tinynode makes all pages again. FOLDER keeps a
JSON file for each program: a digest of the sources, and the made files by their place on the site.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tinynode_course import pages, sources
from tinynode_course.cells import Cell, read
from tinynode_course.execution import StepError, without_settings
from tinynode_course.progress import write_atomically
from tinynode_course.sources import Step
from tools import command_words, function_pages, microgpt_page, source_pages

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

SAVED = {
    "index.md": ("program.svg",),
    "debug-a-gradient.md": ("exp.html",),
    "films.md": ("film.html", "film.svg", "training.html", "moons.html"),
    "pictures.md": ("graph.svg", "double.svg"),
}
"""Guides whose Python saves files, which the site shows."""


def programs() -> list[Step | Path]:
    """The programs with pages or pictures: the steps, the guides in ``SAVED``, and microgpt."""
    return [*sources.steps(), *(DOCS / name for name in SAVED), microgpt_page.PROGRAM]


def source(program: Step | Path) -> Path:
    """The file with the program."""
    return program.path if isinstance(program, Step) else program


def cells_of(program: Step | Path) -> list[Cell]:
    """The cells of a step; a guide has none."""
    return read(program.path) if isinstance(program, Step) else []


def make(program: Step | Path) -> dict[str, str]:
    """The files that a run of the program gives, by their place on the site.

    Raises:
        StepError: The program stopped with an error.
    """
    if isinstance(program, Step):
        return {f"tutorials/{name}": text for name, text in pages.make(program).items()}
    if program == microgpt_page.PROGRAM:
        return files_of_microgpt()
    return saved_files(program, SAVED[program.name])


def saved_files(guide: Path, names: Iterable[str]) -> dict[str, str]:
    """Run the Python of a guide in an empty folder; returns the saved files with these names.

    The program ends with the last block that saves such a file.
    """
    blocks = PYTHON.findall(guide.read_text(encoding="utf-8"))
    while blocks and not any(f'"{name}"' in blocks[-1] for name in names):
        blocks.pop()
    with tempfile.TemporaryDirectory(prefix="tinynode-guide-") as folder:
        program = Path(folder, f"{guide.stem}.py")
        program.write_text("\n".join(blocks), encoding="utf-8")
        run([program.name], guide.name, folder, without_settings())
        return {name: Path(folder, name).read_text(encoding="utf-8") for name in names}


def files_of_microgpt() -> dict[str, str]:
    """The films, the curve and the texts of the home page, from a process of their own."""
    environment = {**without_settings(), "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    with tempfile.TemporaryDirectory(prefix="tinynode-microgpt-") as folder:
        command = ["-m", "tools.microgpt_page", folder]
        run(command, microgpt_page.PROGRAM.name, folder, environment)
        paths = sorted(Path(folder).iterdir())
        return {path.name: path.read_text(encoding="utf-8") for path in paths}


def run(command: list[str], name: str, folder: str, environment: dict[str, str]) -> None:
    """Run Python in a folder.

    Raises:
        StepError: The program stopped with an error.
    """
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != 0:
        raise StepError(f"{name} stopped with an error:\n{done.stderr.strip()}")


def digest(program: Step | Path, package: str) -> str:
    """A digest of all that the files of a program depend on."""
    paths = [source(program)]
    if program == microgpt_page.PROGRAM:
        paths = [*microgpt_page.SOURCES]
    if isinstance(program, Step):
        paths.append(program.notebook)
        for folder in ("solutions", "exercises"):
            paths += sorted((program.path.parent / folder).glob("step*/**/*.py"))
    return digest_of(paths, package)


def digest_of(paths: Iterable[Path], before: str = "") -> str:
    """A digest of names and contents of files."""
    found = hashlib.sha256(before.encode())
    for path in paths:
        content = path.read_bytes()
        found.update(f"{path} {len(content)}\n".encode() + content)
    return found.hexdigest()


def package_files() -> Iterator[Path]:
    """The files of tinynode, of the backends and of the course's engine, and this file."""
    for folder in (ROOT / "tinynode", ROOT / "backends", ROOT / "tutorials" / "course"):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
    yield Path(__file__).resolve()


def make_all(chosen: list[Step | Path]) -> Iterator[tuple[Step | Path, dict[str, str]]]:
    """Each program with its files: on all cores, and one by one where a step measures times."""
    timed = [p for p in chosen if any("varies" in cell.tags for cell in cells_of(p))]
    timed += [program for program in chosen if program == microgpt_page.PROGRAM]
    others = [program for program in chosen if program not in timed]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from zip(others, pool.map(make, others), strict=True)
    for program in timed:
        yield program, make(program)


def update(folder: Path, chosen: list[Step | Path]) -> None:
    """Bring the JSON files of a folder up to date.

    Raises:
        StepError: A program stopped with an error.
    """
    folder.mkdir(parents=True, exist_ok=True)
    package = digest_of(package_files(), f"{sys.version} {np.__version__}")
    wanted = {program: digest(program, package) for program in chosen}
    paths = {program: folder / f"{source(program).stem}.json" for program in chosen}
    stale = [p for p in chosen if kept(paths[p]).get("digest") != wanted[p]]
    if stale:
        print(f"running {len(stale)} of {len(chosen)} programs of the site", flush=True)
    for program, files in make_all(stale):
        content = {"digest": wanted[program], "files": files}
        write_atomically(paths[program], json.dumps(content))
    others = {"tutorials/index.md": pages.index(sources.steps())}
    others |= function_pages.pages() | source_pages.pages()
    write_atomically(folder / "others.json", json.dumps({"files": others}))
    for path in set(folder.glob("*.json")) - {folder / "others.json", *paths.values()}:
        path.unlink(missing_ok=True)


def kept(path: Path) -> dict[str, Any]:
    """The content of a JSON file; {} if the file is missing or damaged."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content


def made_texts(folder: Path) -> dict[str, str]:
    """The texts of microgpt for the home page, by their names."""
    files: dict[str, str] = kept(folder / "microgpt.json").get("files", {})
    return {name: text for name, text in files.items() if name.endswith(".txt")}


def main(folder: str) -> int:
    """Update the folder; 1 if a program stopped with an error."""
    try:
        update(Path(folder), programs())
    except StepError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*command_words.read(__doc__, "FOLDER")))
