"""The sites of several versions beside each other, and the script that pushes them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import tinynode
from tools import site_versions

ROOT = Path(__file__).resolve().parents[2]


def built(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "index.html").write_text(text)
    return folder


def test_the_newest_version_is_the_latest(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    old, new = built(tmp_path / "old", "old"), built(tmp_path / "new", "new")
    assert site_versions.add(new, site, "0.10") == ["0.10"]
    assert site_versions.add(old, site, "0.9") == ["0.10", "0.9"]
    assert (site / "latest" / "index.html").read_text() == "new"
    assert (site / "0.9" / "index.html").read_text() == "old"
    assert json.loads((site / "versions.json").read_text()) == ["0.10", "0.9"]
    assert 'url=latest/"' in (site / "index.html").read_text()


def test_a_version_is_replaced_whole(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    first = built(tmp_path / "first", "first")
    (first / "gone.html").touch()
    site_versions.add(first, site, "0.2")
    site_versions.add(built(tmp_path / "second", "second"), site, "0.2")
    assert not (site / "0.2" / "gone.html").exists()
    assert not (site / "latest" / "gone.html").exists()


def test_a_folder_without_a_site_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"has no index\.html"):
        site_versions.add(tmp_path, tmp_path, "0.2")


@pytest.mark.skipif(
    os.name == "nt" or shutil.which("git") is None or not (ROOT / ".ci").is_dir(),
    reason="the script needs a shell, git and a checkout",
)
def test_the_branch_is_made_and_goes_on(tmp_path: Path) -> None:
    origin = tmp_path / "origin.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(origin)], check=True)
    version = site_versions.version_folder()
    assert tinynode.__version__.startswith(f"{version}.")
    for text in ("first", "second"):
        site = built(tmp_path / text, text)
        environment = {**os.environ, "ORIGIN": str(origin)}
        command = ["bash", str(ROOT / ".ci" / "publish-site"), str(site)]
        subprocess.run(command, env=environment, check=True, capture_output=True)
    show = ["git", "-C", str(origin), "show", f"site:{version}/index.html"]
    assert subprocess.run(show, capture_output=True, text=True, check=True).stdout == "second"
    count = ["git", "-C", str(origin), "rev-list", "--count", "site"]
    assert subprocess.run(count, capture_output=True, text=True, check=True).stdout == "2\n"
