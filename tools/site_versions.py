"""Lay the site of a version beside the sites of earlier versions.

    python tools/site_versions.py BUILT SITE

SITE gets a folder for the version of ``pyproject.toml``, such as ``0.2``, in place of an earlier
build of it. ``latest`` is a copy of the newest version's folder, ``index.html`` leads there, and
``versions.json`` lists the versions, the newest first. Only the standard library is used.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = re.compile(r"\d+\.\d+")
LATEST = "latest"

INDEX = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=latest/">
<title>tinynode</title>
<a href="latest/">The newest version</a>
</html>
"""


def version_folder() -> str:
    """The first two numbers of the version: corrections replace the site of their version."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version: str = tomllib.loads(text)["project"]["version"]
    return ".".join(version.split(".")[:2])


def numbers(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split("."))


def add(built: Path, site: Path, version: str) -> list[str]:
    """Copy a built site; returns the versions of SITE, the newest first.

    Raises:
        SystemExit: The folder has no built site.
    """
    if not (built / "index.html").is_file():
        raise SystemExit(f"site_versions: {built} has no index.html; build a site there first")
    replace(built, site / version)
    found = [path.name for path in site.iterdir() if FOLDER.fullmatch(path.name)]
    versions = sorted(found, key=numbers, reverse=True)
    replace(site / versions[0], site / LATEST)
    (site / "index.html").write_text(INDEX, encoding="utf-8")
    (site / ".nojekyll").touch()  # folders with a leading underscore are shown too
    (site / "versions.json").write_text(json.dumps(versions) + "\n", encoding="utf-8")
    return versions


def replace(source: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(source, target)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2:
        print(__doc__)
        return 2
    versions = add(Path(arguments[0]), Path(arguments[1]), version_folder())
    print(f"{version_folder()} stands beside {', '.join(versions[1:]) or 'no other version'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
