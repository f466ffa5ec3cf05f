"""Fetches Python for WebAssembly, and packs the files that a page downloads.

Requirement: a reader's browser gets all files from the site itself, and the repository has none of
the files. So the build takes two packages with ``npm pack``, at fixed versions, and compares their
SHA-512. The folder ``.cache`` keeps the packages for later builds.

    pyodide                    CPython for WebAssembly, MPL-2.0
    @emscripten-forge/numpy    NumPy for the same interpreter, BSD-3-Clause

The versions belong together: both are builds for Python 3.11 by Emscripten 3.1.45 and 3.1.46.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.metadata
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.browser_site.backtrace import side_module

ROOT = Path(__file__).resolve().parent.parent.parent
DATE = (2020, 1, 1, 0, 0, 0)
"""The date of files in archives: equal contents give equal archives."""

LEFT_OUT = ("tests", "f2py", "distutils", "_pyinstaller", "doc")
"""Folders of NumPy that no step needs."""


class BuildError(RuntimeError):
    """The site cannot be built; the message is for the person who builds."""


@dataclass(frozen=True)
class Package:
    """A package of npm at a fixed version, with the SHA-512 of the file in base64."""

    name: str
    version: str
    sha512: str

    @property
    def file_name(self) -> str:
        """The name that ``npm pack`` gives to the file."""
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}.tgz"


INTERPRETER = Package(
    "pyodide",
    "0.25.1",
    "y0nJ/fLA3bxD2iZRzvVTbP2O+wp4Ewm2wThfV4HF0BytQ6hsoqTJFLNY4usLOcCVBrK8TTWqFqrmsVPzHe4rsw==",
)

NUMPY = Package(
    "@emscripten-forge/numpy",
    "2.1.1-py311hc8e14bb-0",
    "VPnSg+RuQC9zz0bnBzzI/maVyokubSgyKsfSqvszaLtlyRSY+LdtmAUpjZ9NlEpC3SWSYI30jWXY6hrTU1XirA==",
)


def fetch(package: Package, cache: Path) -> Path:
    """The file of a package, from the cache or from npm.

    Raises:
        BuildError: npm is missing or fails, or the file is another one.
    """
    path = cache / package.file_name
    if not path.exists():
        program = shutil.which("npm")
        if program is None:
            raise BuildError("npm is not installed: it fetches Python for WebAssembly")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            command = [program, "pack", f"{package.name}@{package.version}", "--silent"]
            done = subprocess.run(
                [*command, "--pack-destination", folder], capture_output=True, encoding="utf-8"
            )
            if done.returncode != 0:
                raise BuildError(f"{' '.join(command)}:\n{done.stderr.strip()}")
            (fetched,) = Path(folder).iterdir()
            fetched.replace(path)
    digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
    if digest != package.sha512:
        path.unlink()
        raise BuildError(f"{package.file_name} has the SHA-512 {digest}, not {package.sha512}")
    return path


def interpreter_files(archive: Path) -> dict[str, bytes]:
    """The interpreter's files by name, with an empty list of further packages."""
    names = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
    with tarfile.open(archive) as tar:
        files = {name: read(tar, f"package/{name}") for name in names}
        lock = json.loads(read(tar, "package/pyodide-lock.json"))
    files["pyodide-lock.json"] = json.dumps({**lock, "packages": {}}).encode()
    return files


def read(tar: tarfile.TarFile, name: str) -> bytes:
    """A file of an archive."""
    file = tar.extractfile(name)
    if file is None:
        raise BuildError(f"{name} is no file")
    return file.read()


def numpy_files(archive: Path) -> Iterator[tuple[str, bytes]]:
    """NumPy's files by path in site-packages; the package of npm has one archive inside."""
    with tarfile.open(archive) as outer:
        (inside,) = (name for name in outer.getnames() if name.endswith(".tar.gz"))
        inner = io.BytesIO(read(outer, inside))
    with tarfile.open(fileobj=inner) as tar:
        for member in tar:
            _, found, path = member.name.partition("/site-packages/")
            if found and member.isfile() and is_needed(path):
                yield path, read(tar, member.name)


def is_needed(path: str) -> bool:
    """True for a file that programs import, and for licences."""
    folders = path.split("/")[:-1]
    made = path.endswith((".pyi", ".pyc", ".a", ".h", ".pxd", ".pyx"))
    return not made and "_tests." not in path and not set(folders) & set(LEFT_OUT)


def installed_files(name: str) -> Iterator[tuple[str, bytes]]:
    """The files of an installed package of Python files, as in the wheel."""
    for file in importlib.metadata.files(name) or ():
        if ".." not in file.parts and file.suffix != ".pyc":
            yield file.as_posix(), file.read_binary()


def wheels(folder: Path) -> list[Path]:
    """Build the wheels of tinynode and of the course."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    for project in (ROOT, ROOT / "tutorials"):
        done = subprocess.run(
            command, cwd=project, capture_output=True, encoding="utf-8", check=False
        )
        if done.returncode != 0:
            raise BuildError(f"{' '.join(command)}, in {project}:\n{done.stderr.strip()}")
    return sorted(folder.glob("*.whl"))


def zipped(files: Iterator[tuple[str, bytes]]) -> bytes:
    """An archive of files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files:
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return packed.getvalue()


def numpy_licence(cache: Path) -> bytes:
    """The licence in NumPy's package: NumPy's own, and those of its parts."""
    files = dict(numpy_files(fetch(NUMPY, cache)))
    (name,) = (name for name in files if name.endswith(".dist-info/LICENSE.txt"))
    return files[name]


def site_packages() -> Iterator[tuple[str, bytes]]:
    """The files of tinynode, of the course and of array-api-compat."""
    yield from installed_files("array-api-compat")
    with tempfile.TemporaryDirectory() as folder:
        for wheel in wheels(Path(folder)):
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    yield name, archive.read(name)


def write(folder: Path, cache: Path) -> None:
    """Write the files that a page downloads before Python starts, and their list.

    ``files.json`` has the name and the size of each file. A name with ``.gz`` is compressed: many
    servers would not compress it.
    """
    files = interpreter_files(fetch(INTERPRETER, cache))
    files["numpy.zip"] = zipped(numpy_files(fetch(NUMPY, cache)))
    files["tinynode.zip"] = zipped(site_packages())
    files["backtrace.so"] = side_module()
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {}
    for name, content in files.items():
        if name.endswith((".js", ".wasm", ".json", ".so")):
            name, content = f"{name}.gz", gzip.compress(content, 9, mtime=0)
        (folder / name).write_bytes(content)
        sizes[name] = len(content)
    (folder / "files.json").write_text(json.dumps(sizes, indent=1) + "\n", encoding="utf-8")
