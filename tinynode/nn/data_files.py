"""Data sets in files: tables of comma-separated values, and folders of images.

Requirement: a mistake in a file is an error that names the file, the line and the column.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import Any

import numpy

from tinynode import random
from tinynode.core.conversion import as_flag
from tinynode.errors import describe, short_text
from tinynode.functions.image_windows import pair
from tinynode.nn.checks import checked_size
from tinynode.nn.data import ArrayDataset, Dataset
from tinynode.safe_files import checked_path, listed, read_file, reason_of

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP")
"""The formats that Pillow may read. For others, such as PostScript, it starts another program."""
_DELIMITERS = (",", ";", "\t", "|")
"""Characters that often stand between two columns."""
_NO_DELIMITERS = ('"', "\n", "\r")
"""Characters that have another meaning in a table."""
_MOST_IMAGE_BYTES = 1 << 28
_MOST_PIXELS = 50_000_000


class TableDataset(ArrayDataset):
    """A ``.csv`` file with a header: sample i is (numbers, label) of the line i.

    Args:
        path: a text file in UTF-8; the first line has the names of the columns.
        label: the name of the label's column, or None: then a sample is (numbers,).
        columns: the names of the columns of numbers; by default all except ``label``.
        regression: False for labels that are classes: integers from 0, in the order of
            ``classes``. True for labels that are numbers.
        classes: the texts of the classes, in order, as for ``validation`` those of the table to
            train on; by default those of the file.
        delimiter: the character between two columns, such as ";".
        decimal: the character before the decimals of a number; "," for 0,5.
        dtype: the dtype of the numbers; ``config.dtype`` by default.

    Attributes:
        columns: the names of the columns of numbers, a list of length k.
        classes: the texts of the classes; those of the file are sorted, numbers by value. Empty
            for ``regression``.
        arrays: the numbers, (n, k), and the labels, (n).

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a column is missing, or a value is missing, no number, too large for the dtype
            or no class of ``classes``; the message names the line and the column.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        label: str | None = None,
        *,
        columns: Iterable[str] | None = None,
        regression: bool = False,
        classes: Iterable[str] | None = None,
        delimiter: str = ",",
        decimal: str = ".",
        dtype: Any = None,
    ) -> None:
        regression = as_flag("TableDataset", "regression", regression)
        chosen = None if columns is None else _texts("TableDataset", "columns", columns)
        table = _Table(path, delimiter, decimal)
        self.columns = table.columns_without(label) if chosen is None else chosen
        table.require(self.columns if label is None else [*self.columns, label])
        self.classes: list[str] = []
        kind = random.host_dtype(dtype)
        lines = range(len(table.rows))
        places = [table.place(name) for name in self.columns]
        numbers = [[table.number(i, place, kind) for place in places] for i in lines]
        arrays = [numpy.asarray(numbers, kind).reshape(len(lines), len(self.columns))]
        if label is not None and regression:
            place = table.place(label)
            arrays.append(numpy.asarray([table.number(i, place, kind) for i in lines], kind))
        elif label is not None:
            place = table.place(label)
            texts = [table.text(i, place) for i in lines]
            self.classes = _sorted_classes(set(texts))
            if classes is not None:
                self.classes = _texts("TableDataset", "classes", classes)
            codes = _codes("TableDataset", self.classes)
            for i, text in enumerate(texts):
                table.require_class(i, place, text, codes)
            arrays.append(numpy.asarray([codes[text] for text in texts], numpy.int64))
        super().__init__(*arrays)


class _Table:
    """The cells of a file of comma-separated values."""

    def __init__(self, path: str | os.PathLike[str], delimiter: str, decimal: str) -> None:
        self.path = checked_path("TableDataset", path)
        self.decimal = decimal
        is_character = isinstance(delimiter, str) and len(delimiter) == 1
        if not is_character or delimiter in _NO_DELIMITERS:
            raise ValueError(
                "TableDataset: delimiter must be one character, and no quotation mark and no end "
                f"of a line, got {describe(delimiter)}. Give delimiter=';', or delimiter='\\t' "
                "for a tab."
            )
        if decimal not in (".", ",") or decimal == delimiter:
            raise ValueError(
                f"TableDataset: decimal must be '.' or ',', and not the delimiter {delimiter!r}, "
                f"got {decimal!r}."
            )
        self._delimiter = delimiter
        self.header, self.rows, self._lines = self._cells()
        if not self.rows:
            raise ValueError(f"{self.path} needs a header, and one line of values or more.")
        self._check_header()
        self._check_lengths()

    def _cells(self) -> tuple[list[str], list[list[str]], list[int]]:
        """The names of the columns, the other rows, and the line in which each row begins."""
        text = self._content()
        # the empty line at the end makes an empty row, unless a quotation mark is open
        text_lines = itertools.chain(io.StringIO(text, newline=""), [""])
        reader = csv.reader(text_lines, delimiter=self._delimiter)
        rows, lines, line = [], [], 1
        row: list[str] = []
        limit = csv.field_size_limit(len(text) + 1)  # a cell may be as long as the file
        try:
            for row in reader:
                if row:
                    rows.append(row)
                    lines.append(line)
                line = reader.line_num + 1
        except csv.Error as error:
            raise ValueError(
                f"{self.path}, line {line}: this is no line of a table: {error}. Is a quotation "
                "mark missing?"
            ) from None
        finally:
            csv.field_size_limit(limit)
        self._is_open = bool(row)
        header = [name.strip() for name in rows[0]] if rows else []
        return header, rows[1:], lines[1:]

    def _check_header(self) -> None:
        self._places = {name: place for place, name in enumerate(self.header)}
        if len(self._places) < len(self.header):
            twice = next(n for i, n in enumerate(self.header) if self._places[n] != i)
            raise ValueError(
                f"{self.path}, line 1: two columns have the name {short_text(twice)}."
            )
        others = [mark for mark in _DELIMITERS if mark in self.header[0]]
        if len(self.header) == 1 and others:
            raise ValueError(
                f"{self.path}, line 1: a single column has the name {short_text(self.header[0])}. "
                f"Give delimiter={others[0]!r}, or rename the column."
            )

    def _check_lengths(self) -> None:
        """Raise an error if a row has more or fewer cells than the header, or has no end."""
        for row, line in zip(self.rows, self._lines, strict=True):
            if len(row) != len(self.header):
                is_long = any("\n" in cell for cell in row)
                hint = " Is a quotation mark missing?" if is_long else ""
                raise ValueError(
                    f"{self.path}, line {line}: expected {len(self.header)} values as in the "
                    f"header, got {len(row)}.{hint}"
                )
        if self._is_open:
            raise ValueError(
                f"{self.path}, line {self._lines[-1]}: a quotation mark is open to the end of the "
                "file. Is a quotation mark missing?"
            )

    def columns_without(self, label: str | None) -> list[str]:
        """The names of all columns except the label's.

        Raises:
            ValueError: a column has no name, such as the index that pandas writes.
        """
        if "" in self.header:
            raise ValueError(
                f"{self.path}, line 1: column {self.header.index('') + 1} has no name. It may be "
                "an index: write the table without one (pandas: index=False), or choose the "
                "columns by columns=[...]."
            )
        return [name for name in self.header if name != label]

    def _content(self) -> str:
        """The text of the file."""
        content = read_file(self.path)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise ValueError(
                f"{self.path}, line {line}: the file must be text in UTF-8, got the byte "
                f"{content[error.start]:#04x}. Save the table as UTF-8."
            ) from None

    def require(self, columns: list[str]) -> None:
        """Raise an error if the header has not each of these columns."""
        for column in columns:
            if column not in self._places:
                raise ValueError(
                    f"{self.path} has no column {short_text(column)}; "
                    f"it has {listed(self.header)}."
                )

    def place(self, column: str) -> int:
        """The number of a column from the left, from 0."""
        return self._places[column]

    def text(self, row: int, place: int) -> str:
        """The text of a cell, without spaces at the ends."""
        found = self.rows[row][place].strip()
        if not found:
            raise ValueError(
                f"{self._where(row, place)}: the value is missing. Fill the value in, remove the "
                "line, or choose other columns."
            )
        return found

    def _where(self, row: int, place: int) -> str:
        return f"{self.path}, line {self._lines[row]}, column {short_text(self.header[place])}"

    def require_class(self, row: int, place: int, text: str, codes: dict[str, int]) -> None:
        """Raise an error if a text is no class."""
        if text not in codes:
            raise ValueError(
                f"{self._where(row, place)}: {short_text(text)} is none of the classes "
                f"{listed(codes)}. Add it to classes=[...], or remove the line."
            )

    def number(self, row: int, place: int, dtype: Any) -> float:
        """The number of a cell, in the range of a dtype."""
        text = self.text(row, place)
        value = _number(text, self.decimal)
        if not math.isfinite(value):
            raise ValueError(
                f"{self._where(row, place)}: {short_text(text)} is no finite number. Choose the "
                "columns of numbers by columns=[...], or write the column as numbers."
            )
        if abs(value) > float(numpy.finfo(dtype).max):
            raise ValueError(
                f"{self._where(row, place)}: {short_text(text)} is too large for {dtype}. Give "
                'dtype="float64", or scale the column.'
            )
        return value


def _number(text: str, decimal: str) -> float:
    """The number that a text shows, or NaN. Python's 1_000 is no number of a table."""
    if "_" in text or (decimal != "." and "." in text):
        return math.nan
    try:
        return float(text.replace(decimal, "."))
    except ValueError:
        return math.nan


def _sorted_classes(texts: set[str]) -> list[str]:
    """The texts in order, by value if all are numbers: the order depends on the texts alone."""
    by_text = sorted(texts)  # 1 and 1.0 have one value
    try:
        are_numbers = all(math.isfinite(float(text)) for text in by_text)
    except ValueError:
        are_numbers = False
    return sorted(by_text, key=float) if are_numbers else by_text


def _texts(title: str, argument: str, given: Any) -> list[str]:
    """The names of columns or classes, in the order that the user gives.

    Raises:
        TypeError: the argument is a single text, or a set, whose order is another in each run.
        ValueError: a name is no text.
    """
    if isinstance(given, str | bytes | Set) or not isinstance(given, Iterable):
        raise TypeError(
            f"{title}: {argument} must be a list of texts, got {describe(given)}. Write "
            f"{argument}=['a', 'b']: the order of the list counts."
        )
    names = list(given)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"{title}: {argument} must be texts, got {short_text(str(names))}.")
    return names


def _codes(title: str, classes: Sequence[str]) -> dict[str, int]:
    """The label of each class.

    Raises:
        ValueError: a name comes twice.
    """
    codes = {name: code for code, name in enumerate(classes)}
    if len(codes) < len(classes):
        raise ValueError(
            f"{title}: classes must be a list of texts, each once, got "
            f"{short_text(str(list(classes)))}."
        )
    return codes


class ImageFolder(Dataset):
    """Images in a folder for each class: sample i is (image, label).

    ``flowers/rose/1.png`` is an image of the class ``rose``, and so is ``flowers/rose/red/1.png``.
    An image is read when asked for, by the optional library Pillow, as an array (channels, height,
    width) from 0 to 1. A photo is turned as its EXIF data say. Transparency is ignored. Files and
    folders whose names begin with a dot do not count.

    Args:
        path: the folder of the folders.
        classes: the names of the folders, in the order of the labels, as for ``validation`` those
            of the folder to train on; by default all folders, sorted. A class without images keeps
            its label.
        size: (height, width): images are scaled to this size; None keeps the sizes.
        mode: ``"RGB"`` for three channels, ``"L"`` for one channel, grey.
        max_pixels: the pixels of the largest image that is read; 50 million by default. A small
            file can hold an image that takes all memory.
        dtype: the dtype of the images; ``config.dtype`` by default.

    Attributes:
        classes: the names of the classes; a label is an index into this list.
        files: the paths of the images, sorted by class and name.
        labels: the labels, (n), int64.

    Raises:
        FileNotFoundError: there is no such folder.
        ImportError: Pillow is not installed.
        ValueError: the folder has no folders with images, a folder is none of ``classes``, or the
            mode is unknown. An image has floating pixels, or more than ``max_pixels``.
        OSError: an image is damaged, or is in another format than PNG, JPEG, BMP, GIF, TIFF or
            WebP.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        classes: Iterable[str] | None = None,
        size: tuple[int, int] | None = None,
        mode: str = "RGB",
        dtype: Any = None,
        max_pixels: int = _MOST_PIXELS,
    ) -> None:
        _pillow()
        if mode not in ("RGB", "L"):
            raise ValueError(f"ImageFolder: mode must be 'RGB' or 'L', got {mode!r}.")
        path = checked_path("ImageFolder", path)
        folders = sorted(one for one in Path(path).iterdir() if one.is_dir() and _is_shown(one))
        found = [(file, folder.name) for folder in folders for file in _images_below(folder)]
        if not found:
            raise ValueError(
                f"ImageFolder: {os.fspath(path)} must have a folder of images for each class; no "
                f"file such as {os.path.join(os.fspath(path), 'cat', '1.png')} was found."
            )
        names = [folder.name for folder in folders]
        self.classes = names if classes is None else _texts("ImageFolder", "classes", classes)
        self.files = [file for file, _ in found]
        codes = _codes("ImageFolder", self.classes)
        for file, name in found:
            if name not in codes:
                raise ValueError(
                    f"ImageFolder: {file} is in the folder {short_text(name)}, which is none of "
                    f"the classes {listed(codes)}. Add it to classes=[...], or move the file."
                )
        self.labels = numpy.asarray([codes[name] for _, name in found], numpy.int64)
        self.size = None if size is None else pair("ImageFolder", "size", size, 1)
        self.mode, self.dtype = mode, random.host_dtype(dtype)
        self.max_pixels = checked_size("ImageFolder: max_pixels", max_pixels, 1)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = read_image(self.files[index], self.mode, self.max_pixels)
        if self.size is not None:
            height, width = self.size
            image = image.resize((width, height))
        pixels = numpy.asarray(image, self.dtype)
        if image.mode != "F":
            pixels = pixels / self.dtype.type(255)
        else:
            pixels = numpy.clip(pixels, 0.0, 1.0)  # Pillow's cubic curves go beyond
            if self.mode == "RGB":
                pixels = numpy.stack([pixels] * 3, axis=-1)
        array = pixels[None] if pixels.ndim == 2 else numpy.moveaxis(pixels, -1, 0)
        return numpy.ascontiguousarray(array), self.labels[index]


def _is_shown(path: Path) -> bool:
    """True for a name without a dot at its start."""
    return not path.name.startswith(".")


def _images_below(folder: Path) -> list[Path]:
    """The images in a folder and in its folders, sorted; a link to a folder does not count."""
    found = []
    for place, folders, files in os.walk(folder):
        found += [Path(place, name) for name in (*files, *folders)]  # 1.png may be a folder
        folders[:] = [name for name in folders if not name.startswith(".")]
    return sorted(
        file for file in found if _is_shown(file) and file.suffix.lower() in IMAGE_SUFFIXES
    )


class UnknownRangeError(ValueError):
    """The pixels of an image have no known range."""


def _converted(image: Any, mode: str, path: Path) -> Any:
    """The image upright, in a mode; pixels of 16 bits as floating grey from 0 to 1, mode F.

    Raises:
        UnknownRangeError: the pixels are floating, or of 32 bits.
    """
    if image.mode in ("F", "I"):
        raise UnknownRangeError(
            f"ImageFolder: {path} has pixels of Pillow's mode {image.mode}, floating or of 32 "
            "bits, whose range is not known. Write the image with 8 or 16 bits."
        )
    from PIL import ImageOps  # of an extra

    upright = ImageOps.exif_transpose(image)
    if not image.mode.startswith("I;16"):
        return upright.convert(mode)
    return _pillow().fromarray(numpy.asarray(upright, numpy.float32) / numpy.float32(65535))


def read_image(path: Path, mode: str, max_pixels: int) -> Any:
    """The image of a file. The file is read whole: Pillow opens no file and no program."""
    pillow = _pillow()
    content = read_file(path, _MOST_IMAGE_BYTES)
    cure = "give ImageFolder(..., max_pixels=...)"
    too_large = (pillow.DecompressionBombError, pillow.DecompressionBombWarning)
    try:
        with pillow.open(io.BytesIO(content), formats=_FORMATS) as image:
            width, height = image.size
            if width * height <= max_pixels:
                return _converted(image, mode, path)
            pixels = f"{width} x {height} pixels"
    except too_large as error:  # Pillow has a limit of its own, and warns below it
        pixels = f"too many pixels for Pillow ({error})"
        if max_pixels > (pillow.MAX_IMAGE_PIXELS or 0):
            cure = "set PIL.Image.MAX_IMAGE_PIXELS, the limit of Pillow, to a larger number"
    except UnknownRangeError:
        raise
    except Exception as error:  # damage: the decoders raise errors of many kinds
        raise pillow.UnidentifiedImageError(
            f"ImageFolder: {path} is no image of the formats {', '.join(_FORMATS)}, or it is "
            f"damaged: {_reason(error)}"
        ) from error
    raise ValueError(
        f"ImageFolder: {path} has {pixels}, and at most {max_pixels} pixels are read. Make the "
        f"image smaller, or {cure}."
    )


def _reason(error: Exception) -> str:
    """The words of an error of Pillow, without the address of the file's memory."""
    text = reason_of(error, 200)
    return type(error).__name__ if "BytesIO" in text else text


def _pillow() -> Any:
    try:
        from PIL import Image  # of an extra
    except ImportError:
        raise ImportError(
            "ImageFolder needs the package Pillow. Install the extra: "
            "pip install 'tinynode[images]'."
        ) from None
    return Image
