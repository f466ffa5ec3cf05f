"""Builds the site with the course in the reader's browser.

    python -m tools.browser_site [--site-dir FOLDER]

Requirement: any server of plain files serves the site, and no page needs another host. mkdocs
builds the plain site. This program adds a folder ``browser`` with Python for WebAssembly, with
the scripts of the pages, with a JSON file for each step, and with the questions of reviews. Pages
of the course get tags that load the scripts. The plain site has none of this.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tinynode_course import cells, hints, mynode, progress, sources
from tinynode_course.page_session import first_files
from tinynode_course.recall.sheet import sheet
from tinynode_course.sources import Step
from tools.browser_site import packages
from tools.browser_site.packages import ROOT, BuildError
from tools.page_policy import with_policy

PAGE_FILES = Path(__file__).resolve().parent / "page_files"
CACHE = ROOT / ".cache" / "browser"

FORMAT = 2
"""The format of the learner's progress in a browser: 2 has the third edition's names of steps."""


def main(arguments: list[str] | None = None) -> int:
    """Build the site; 1 if the build stopped with an error."""
    parser = argparse.ArgumentParser(prog="python -m tools.browser_site", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--site-dir", type=Path, default=ROOT / "site", metavar="FOLDER")
    parser.add_argument("--no-mkdocs", action="store_true", help="add to a site that is there")
    options = parser.parse_args(arguments)
    site: Path = options.site_dir.resolve()
    try:
        if not options.no_mkdocs:
            build_plain_site(site)
        add_browser(site)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in (site / "browser" / "python").iterdir())
    print(f"{site}: the first run on a page loads {size / 1e6:.1f} MB")
    return 0


def build_plain_site(site: Path) -> None:
    """Run mkdocs."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run([*command, "--site-dir", str(site)], cwd=ROOT, env=settings, check=False)
    if done.returncode != 0:
        raise BuildError("mkdocs stopped with an error")


def add_browser(site: Path) -> None:
    """Add the folder ``browser``, and let the pages of the course load the scripts there."""
    folder = site / "browser"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PAGE_FILES, folder)
    packages.write(folder / "python", CACHE)
    write_notices(folder)
    (folder / "moved.js").write_text(moved_steps(), encoding="utf-8")
    (folder / "review.json").write_text(json.dumps(sheet()), encoding="utf-8")
    (folder / "steps").mkdir()
    for step in sources.steps():
        text = json.dumps(facts(step), ensure_ascii=False)
        (folder / "steps" / f"{step.name}.json").write_text(text, encoding="utf-8")
        page = site / "tutorials" / step.path.stem / "index.html"
        if page.exists():
            add_tags(page, "../../browser", "page.js", step.name)
    add_tags(site / "tutorials" / "index.html", "../browser", "index.js")
    add_tags(site / "review" / "index.html", "../browser", "review.js")
    add_tags(site / "play" / "index.html", "../browser", "play.js")


def moved_steps() -> str:
    """The module ``moved.js``: today's names of the steps of format 1 of a browser's store.

    The browser's first format has the names of the second edition, whose table the terminal has.
    """
    moved = {
        f"step{key}": [sources.find(today).name for today in keys]
        for key, keys in progress.SECOND_EDITION.items()
    }
    return f"export const FORMAT = {FORMAT};\nexport const MOVED = {json.dumps(moved)};\n"


def add_tags(page: Path, folder: str, script: str, step: str = "") -> None:
    """Let a page load a script of the folder, and the style.

    Raises:
        BuildError: The page is missing.
    """
    if not page.exists():
        raise BuildError(f"{page} is missing: was the site built?")
    text = page.read_text(encoding="utf-8")
    tags = (
        f'<meta name="tinynode-step" content="{step}">'
        f'<link rel="stylesheet" href="{folder}/course.css">'
        f'<script type="module" src="{folder}/{script}"></script>'
    )
    if tags not in text:
        text = text.replace("</head>", f"{tags}</head>", 1)
    page.write_text(with_policy(text, runs_python=True), encoding="utf-8")


def facts(step: Step) -> dict[str, Any]:
    """The facts that a page needs before Python runs."""
    code = [cell.source for cell in cells.read(step.path) if cell.kind == "code"]
    earlier = mynode.earlier(step) if step.builds else []
    return {
        "key": step.key,
        "name": step.name,
        "title": step.title,
        "cells": code,
        "uses": any("use_mynode(" in source for source in code),
        "builds": step.builds,
        "files": first_files(step),
        "touched": sorted(f"{mynode.NAME}/{path}" for path in touched(step)),
        "hints": [[one.question, one.formula] for one in hints.words_of(step)]
        if step.stub.exists()
        else [],
        "places": {
            f"{number} {unit}": [one.question, one.formula]
            for (number, unit), one in hints.words_of_places(step).items()
        }
        if step.stub.exists()
        else {},
        "earlier": [
            {"key": one.key, "name": one.name, "title": one.title, "stem": one.path.stem}
            for one in earlier
        ],
        "next": following(step),
    }


def following(step: Step) -> dict[str, str] | None:
    """The step after this one, in the order of the course; None after the last."""
    steps = sources.steps()
    names = [one.name for one in steps]
    later = steps[names.index(step.name) + 1 :]
    return {"title": later[0].title, "stem": later[0].path.stem} if later else None


def touched(step: Step) -> set[str]:
    """The files of ``mynode`` that an exercise changes."""
    return {*mynode.read_files(step.part), *mynode.read_files(step.stub)} if step.builds else set()


def write_notices(folder: Path) -> None:
    """Write the page with the licences of what the site hands out."""
    (folder / "numpy-licence.txt").write_bytes(packages.numpy_licence(CACHE))
    path = folder / "licences.html"
    words = {
        "PYODIDE": packages.INTERPRETER.version,
        "NUMPY": re.split("-", packages.NUMPY.version)[0],
    }
    text = path.read_text(encoding="utf-8")
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", html.escape(value))
    path.write_text(with_policy(text, runs_python=True), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
