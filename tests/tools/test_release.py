"""The tool for releases: archives are equal when built twice, small, and carry what they may."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

import tinynode as tn
from tools import release


def archive(path: Path, *names: str) -> release.Artifact:
    with zipfile.ZipFile(path, "w") as wheel:
        for name in names:
            wheel.writestr(zipfile.ZipInfo(name), name)
    return release.Artifact(path, 1000, release.names_in(path))


def test_files_that_were_made_or_are_of_others_are_refused(tmp_path: Path) -> None:
    release.check_names(archive(tmp_path / "a.whl", "tinynode/core/variable.py"), ("course",))
    for name in ("tinynode/__pycache__/a.py", "tinynode_course/a.py"):
        with pytest.raises(release.ReleaseError, match=r"b\.whl has tinynode\w*/.* may have"):
            release.check_names(archive(tmp_path / "b.whl", name), ("tinynode_course",))


def test_a_size_above_the_limit_is_refused(tmp_path: Path) -> None:
    one = archive(tmp_path / "a.whl", "x")
    release.check_size(one)
    with pytest.raises(release.ReleaseError, match=r"the limit is 1\."):
        release.check_size(one._replace(limit=1))


def test_bytes_that_differ_are_refused_and_a_name_is_told(tmp_path: Path) -> None:
    first, second = archive(tmp_path / "a.whl", "x"), archive(tmp_path / "b.whl", "x", "y")
    release.check_equal(first.path, first.path, "a second time")
    with pytest.raises(release.ReleaseError, match="1 names, such as y, stand in one"):
        release.check_equal(first.path, second.path, "a second time")


def test_an_unpacked_source_archive_is_a_tree_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "tinynode-0.2.0"
    for name in ("tinynode/a.py", "tinynode/__pycache__/a.pyc", "tests/test_a.py"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).touch()
    monkeypatch.setattr(release, "ROOT", source)
    assert sorted(release.files_of_the_tree()) == ["tests/test_a.py", "tinynode/a.py"]
    release.copy_of_the_tree(tmp_path / "copy", without=("tinynode",))
    copied = [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    assert copied == [tmp_path / "copy" / "tests" / "test_a.py"]


def test_the_folder_must_be_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.whl").touch()
    assert release.main([str(tmp_path)]) == 2
    assert "is not empty; name another folder" in capsys.readouterr().err


OPEN = "# Changelog\n\n## [Unreleased]\n\n{}\n## [0.2.0]\n\n- Films.\n\n## [0.1.0]\n\n- Graphs.\n"


def test_a_tag_needs_a_closed_changelog() -> None:
    release.check_tag("v0.2.0", "0.2.0", OPEN.format(""))
    release.check_tag("v0.2.0", "0.2.0", OPEN.partition("## [Unreleased]\n\n{}")[2])
    for tag, version, waits, reason in (
        ("v0.1.0", "0.2.0", "", "the version is 0.2.0: choose v0.2.0"),
        ("v0.3.0", "0.3.0", "", "no entries below .0.3.0."),
        ("v0.2.0", "0.2.0", "- Loops.\n", "move them below .0.2.0."),
    ):
        with pytest.raises(release.ReleaseError, match=reason):
            release.check_tag(tag, version, OPEN.format(waits))


def test_a_wrong_tag_builds_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main([str(tmp_path / "dist"), "--tag", "v0.0.1"]) == 1
    assert "the tag is v0.0.1" in capsys.readouterr().err


def test_links_of_a_readme_are_addresses_of_the_tag() -> None:
    url, tag = "https://forge.example/o/tinynode", f"v{tn.__version__}"
    page = "![a film](docs/a.svg) [two\nwords](docs/films.md#own) [x](https://y.z/a) [here](#top)"
    assert release.with_addresses(page, url, ".") == (
        f"![a film]({url}/raw/{tag}/docs/a.svg) [two\nwords]({url}/blob/{tag}/docs/films.md#own) "
        "[x](https://y.z/a) [here](#top)"
    )
    up = release.with_addresses("[up](../docs/films.md)", url, "tutorials")
    assert up == f"[up]({url}/blob/{tag}/docs/films.md)"


def test_the_readmes_of_a_release_have_no_link_to_a_file(tmp_path: Path) -> None:
    for one in release.DISTRIBUTIONS:
        folder = tmp_path / one.folder
        folder.mkdir(exist_ok=True)
        for name in ("pyproject.toml", "README.md"):
            text = (release.ROOT / one.folder / name).read_text(encoding="utf-8")
            (folder / name).write_text(text, encoding="utf-8")
    release.name_the_publisher(tmp_path, "https://forge.example/o/tinynode", "")
    for one in release.DISTRIBUTIONS:
        page = (tmp_path / one.folder / "README.md").read_text(encoding="utf-8")
        targets = re.findall(r"\]\(([^)]+)\)", page)
        assert [name for name in targets if not name.startswith(("https://", "#"))] == []


@pytest.mark.slow
def test_all_archives_are_built_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("hatchling", reason="building a wheel needs hatchling")
    assert release.main([str(tmp_path / "dist")]) == 0
    table = capsys.readouterr().out.splitlines()
    sums = (tmp_path / "dist" / "SHA256SUMS").read_text().splitlines()
    assert len(sums) == 2 * len(release.DISTRIBUTIONS)
    for line in sums:
        digest, name = line.split()
        assert (tmp_path / "dist" / name).is_file()
        assert any(name in row and digest[:8] in row for row in table)
