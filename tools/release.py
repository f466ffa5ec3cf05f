"""Build the wheels and source archives of a release, and check them.

    python -m tools.release dist
    python -m tools.release dist --url https://FORGE/OWNER/tinynode --email ADDRESS --tag v0.2.0

Each distribution is built twice, from two fresh copies of the tracked files in folders of other
names. The bytes must be equal, the files must be allowed, and the size must stay below the limit.
The wheel that pip builds from the source archive must equal the wheel of the tree. The command
prints a table, and writes the archives and ``SHA256SUMS`` to the folder ``dist``, which must be
empty.

The tree names no forge and no address, for everybody may have a copy. Who publishes gives both:
``--url`` adds the links of the project page, and turns the READMEs' links to files into addresses
of the tag. ``--email`` adds the address of the authors.
``--tag`` compares the tag with the version and with the changelog, before anything is built.

Then  python -m tools.versions --quick --wheels dist  tries the wheels outside of the checkout.
"""

from __future__ import annotations

import argparse
import hashlib
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import tinynode as tn

ROOT = Path(__file__).resolve().parent.parent


class Distribution(NamedTuple):
    """A distribution: its folder in the tree, the limits in kB, and what it must not carry."""

    name: str
    folder: str
    most_wheel: int
    most_source: int
    never: tuple[str, ...]


DISTRIBUTIONS = (
    Distribution("tinynode", ".", 1360, 3600, ("tinynode_course",)),
    Distribution("tinynode_course", "tutorials", 1300, 900, ("/hidden/", "/planted/")),
    Distribution("tinynode_course_solutions", "course_solutions", 60, 60, ("/planted/",)),
)
"""``never`` has parts of names in the wheel: hidden checks reach no learner by the course."""

NEVER = (".pyc", "__pycache__", "/.cache", ".ipynb_checkpoints")
"""Parts of names that no archive may have."""


class ReleaseError(Exception):
    """An archive is not what a release may have."""


class Artifact(NamedTuple):
    """An archive: the file, its limit in bytes, and the names in it."""

    path: Path
    limit: int
    names: list[str]

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


# --- the version ---------------------------------------------------------------------------------


def parts_of_changelog(text: str) -> dict[str, str]:
    """The text below each heading of a version, such as ``0.2.0`` or ``Unreleased``."""
    parts = {}
    for part in text.split("\n## [")[1:]:
        title, _, below = part.partition("]")
        parts[title] = below.strip()
    return parts


def check_tag(tag: str, version: str, changelog: str) -> None:
    """A tag names the version, and the changelog has no entry that waits for a release.

    Raises:
        ReleaseError: The tag is another one, or the changelog is not closed.
    """
    if tag != f"v{version}":
        raise ReleaseError(f"the tag is {tag}, and the version is {version}: choose v{version}")
    parts = parts_of_changelog(changelog)
    if not parts.get(version):
        raise ReleaseError(f"CHANGELOG.md has no entries below [{version}]: write them")
    if parts.get("Unreleased"):
        raise ReleaseError(
            f"CHANGELOG.md has entries below [Unreleased]: move them below [{version}]"
        )


# --- building ------------------------------------------------------------------------------------


def copy_of_the_tree(place: Path, without: Sequence[str] = ()) -> None:
    """Copy the files of the tree as they are now, without some folders."""
    for name in files_of_the_tree():
        is_left_out = any(name.startswith(f"{folder}/") for folder in without)
        if not is_left_out and (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, place / name)


def files_of_the_tree() -> list[str]:
    """The tracked files of a checkout, or the files of an unpacked source archive."""
    if (ROOT / ".git").exists():
        command = ["git", "-C", str(ROOT), "ls-files", "-z"]
        listed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
        return [name for name in listed.split("\0") if name]
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return [path.as_posix() for path in paths if "__pycache__" not in path.parts]


def name_the_publisher(tree: Path, url: str, email: str) -> None:
    """Write the address of the repository and of the authors to each project of a copy."""
    for distribution in DISTRIBUTIONS:
        path = tree / distribution.folder / "pyproject.toml"
        text = path.read_text(encoding="utf-8")
        if email:
            text = text.replace(AUTHORS, AUTHORS.replace(" }", f', email = "{email}" }}'))
        if url:
            links = "".join(f'{name} = "{url}{part}"\n' for name, part in LINKS.items())
            text += f"\n[project.urls]\n{links}"
            readme = path.with_name("README.md")
            page = readme.read_text(encoding="utf-8")
            readme.write_text(with_addresses(page, url, distribution.folder), encoding="utf-8")
        path.write_text(text, encoding="utf-8")


LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s:#][^)\s:]*)\)")
"""A link of Markdown to a file: what stands before the path, and the path."""


def with_addresses(page: str, url: str, folder: str) -> str:
    """A README whose links to files are addresses of the version's tag.

    The page of a package index has no files, so ``docs/films.md`` would be a dead link there.

    Args:
        page: the text.
        url: the address of the repository.
        folder: the folder of the README in the tree.
    """

    def address(found: re.Match[str]) -> str:
        before, path = found.groups()
        way = "raw" if before.startswith("!") else "blob"
        place = posixpath.normpath(posixpath.join(folder, path))
        return f"{before}{url}/{way}/v{tn.__version__}/{place})"

    return LINK.sub(address, page)


AUTHORS = '{ name = "The tinynode authors" }'
LINKS = {
    "Source": "",
    "Issues": "/issues",
    "Changelog": "/blob/main/CHANGELOG.md",
    "Security": "/blob/main/SECURITY.md",
}
"""The links of a project page, below the address of the repository."""


def built(folder: Path, target: str, place: Path) -> Path:
    """Build a wheel or an ``sdist`` of the project in a folder; returns the archive.

    Raises:
        ReleaseError: hatchling stops.
    """
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(place)]
    before = set(place.glob("*"))
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise ReleaseError(f"hatchling build -t {target} in {folder.name}:\n{done.stderr.strip()}")
    (made,) = set(place.glob("*")) - before
    return made


def built_from_source(archive: Path, place: Path) -> Path:
    """Build the wheel from a source archive, as pip does."""
    with tarfile.open(archive) as source:
        source.extractall(place, filter="data")
    (folder,) = (path for path in place.iterdir() if path.is_dir())
    made = place / "wheel"
    made.mkdir()
    return built(folder, "wheel", made)


def names_in(archive: Path) -> list[str]:
    """The names of the files in a wheel or in a source archive."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.namelist()
    with tarfile.open(archive) as source:
        return source.getnames()


# --- checking ------------------------------------------------------------------------------------


def check_names(artifact: Artifact, never: Sequence[str]) -> None:
    """Refuse files that were made, and files that belong to another distribution."""
    for name in artifact.names:
        for part in (*NEVER, *never):
            if part in name:
                raise ReleaseError(
                    f"{artifact.path.name} has {name}: no name in it may have {part!r}; "
                    "see the build settings in pyproject.toml"
                )


def check_size(artifact: Artifact) -> None:
    if artifact.size > artifact.limit:
        raise ReleaseError(
            f"{artifact.path.name} has {artifact.size:,} bytes; the limit is {artifact.limit:,}. "
            f"Find what grew, or raise the limit in {Path(__file__).name} and say why"
        )


def check_equal(first: Path, second: Path, how: str) -> None:
    if first.read_bytes() == second.read_bytes():
        return
    told = "the same names"
    different = set(names_in(first)) ^ set(names_in(second))
    if different:
        told = f"{len(different)} names, such as {min(different)}, stand in one of them"
    raise ReleaseError(f"{first.name} has other bytes when built {how}: {told}")


def build_and_check(
    distribution: Distribution, trees: Sequence[Path], dist: Path
) -> list[Artifact]:
    """Build the wheel and the source archive of a distribution, and check both.

    Raises:
        ReleaseError: A check fails.
    """
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        again = Path(scratch, "again")
        again.mkdir()
        for target in ("sdist", "wheel"):
            limit = distribution.most_source if target == "sdist" else distribution.most_wheel
            path = built(trees[0] / distribution.folder, target, dist)
            second = built(trees[1] / distribution.folder, target, again)
            check_equal(path, second, "a second time")
            artifact = Artifact(path, limit * 1000, names_in(path))
            check_names(artifact, distribution.never if target == "wheel" else ())
            check_size(artifact)
            found.append(artifact)
        source, wheel = found
        unpacked = Path(scratch, "unpacked")
        unpacked.mkdir()
        check_equal(wheel.path, built_from_source(source.path, unpacked), "from the archive")
    return found


def build_all(dist: Path, url: str = "", email: str = "") -> Iterator[Artifact]:
    """Build all archives in a folder, each twice, and check them.

    Raises:
        ReleaseError: A check fails.
    """
    with tempfile.TemporaryDirectory() as scratch:
        trees = [Path(scratch, name) for name in ("a", "another-name")]
        for tree in trees:
            copy_of_the_tree(tree)
            name_the_publisher(tree, url, email)
        for distribution in DISTRIBUTIONS:
            print(f"building {distribution.name}, twice", flush=True)
            yield from build_and_check(distribution, trees, dist)


# --- the command ---------------------------------------------------------------------------------


def table(artifacts: Sequence[Artifact]) -> str:
    """A line for each archive: bytes, limit, files and the first digits of its digest."""
    lines = [f"{'bytes':>10}  {'limit':>10}  files  sha256    archive"]
    for one in artifacts:
        size = f"{one.size:>10,}  {one.limit:>10,}  {len(one.names):>5}"
        lines.append(f"{size}  {one.digest[:8]}  {one.path.name}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dist", type=Path, help="the folder of the archives, empty or missing")
    parser.add_argument("--url", default="", help="the address of the repository on its forge")
    parser.add_argument("--email", default="", help="the address of the authors")
    parser.add_argument("--tag", default="", help="the tag to release, such as v0.2.0")
    options = parser.parse_args(arguments)
    for text in (options.url, options.email):
        if not set(text).isdisjoint(set('"\\\n ')) or text.endswith("/"):
            print(f"tools.release: {text!r} is no address", file=sys.stderr)
            return 2
    dist = options.dist.resolve()
    if dist.exists() and any(dist.iterdir()):
        print(f"tools.release: {options.dist} is not empty; name another folder", file=sys.stderr)
        return 2
    dist.mkdir(parents=True, exist_ok=True)
    try:
        if options.tag:
            check_tag(options.tag, tn.__version__, (ROOT / "CHANGELOG.md").read_text("utf-8"))
        artifacts = list(build_all(dist, options.url, options.email))
    except ReleaseError as error:
        print(f"tools.release: {error}", file=sys.stderr)
        return 1
    print(table(artifacts))
    sums = [f"{one.digest}  {one.path.name}\n" for one in artifacts]
    (dist / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
