"""Datasets in files: tables, folders of pictures, lines of text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..support.errors import ConversionError
from ..support.packages import needed
from ..support.table import counted
from ..support.words import shown
from .dataset import Dataset, host
from .errors import DataError

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")


def existing(path: Any, what: str) -> Path:
    """A path that exists."""
    found = Path(path)
    if not found.exists():
        raise DataError(f"{what}: there is no {found}", hint="a relative path begins at the folder that Python runs in")
    return found


class Table(Dataset):
    """A table with named columns.  An item is a row, as a dict.

    >>> cars = mg.data.Table({"power": [130.0, 95.0, 68.0], "origin": ["US", "Japan", "Japan"]})
    >>> cars[1], cars.matrix().tolist()
    ({'power': 95.0, 'origin': 'Japan'}, [[130.0, 0.0, 1.0], [95.0, 1.0, 0.0], [68.0, 1.0, 0.0]])
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.columns: dict[str, np.ndarray[Any, Any]] = {str(name): np.asarray(columns[name]) for name in columns}
        for name, column in self.columns.items():
            if not column.ndim:
                raise DataError(f"Table: column {name} is a list, not {shown(columns[name])}")
        lengths = {name: len(column) for name, column in self.columns.items()}
        if len(set(lengths.values())) != 1:
            raise DataError(f"Table: all columns have the same length, not {lengths or 'none'}")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {name: column[index].item() if column.dtype != object else column[index]
                for name, column in self.columns.items()}

    def matrix(self, columns: Sequence[str] | None = None) -> np.ndarray[Any, Any]:
        """Columns side by side in float32, all by default.  Text becomes a column of 0 and 1 for each value."""
        names = list(self.columns) if columns is None else list(columns)
        return np.concatenate([self._numbers(name) for name in names], axis=1)

    def _numbers(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self.columns:
            raise DataError(f"Table: there is no column {name!r}", expect=", ".join(map(repr, self.columns)))
        column = self.columns[name]
        if column.dtype.kind in "fiub":
            numbers = column.astype(np.float32)
            for row in np.flatnonzero(np.isnan(numbers))[:1]:
                raise DataError(f"Table: column {name!r} has no number in row {row}",
                                hint="fill in table.columns[name], or leave the row out")
            return numbers[:, None]
        texts = column.astype(str)
        return (texts[:, None] == np.unique(texts)).astype(np.float32)

    def __repr__(self) -> str:
        return f"Table({counted(len(self), 'row')}: {', '.join(self.columns)})"


def read_table(path: str | os.PathLike[str]) -> Table:
    """A table in a CSV or Parquet file, read by pandas."""
    found = existing(path, "read_table")
    kind = found.suffix.lower()
    if kind not in (".csv", ".tsv", ".parquet"):
        raise ConversionError(f"read_table: {found.name} is neither .csv, .tsv nor .parquet")
    pandas = needed("pandas", f"reading {kind} files")
    if kind == ".parquet":
        needed("pyarrow", "reading .parquet files")
    try:
        frame = pandas.read_parquet(found) if kind == ".parquet" else pandas.read_csv(found, sep="\t,"[kind == ".csv"])
    except Exception as error:
        raise DataError(f"read_table: {found} can't be read: {type(error).__name__}: {error}") from error
    return Table({name: frame[name].to_numpy() for name in frame.columns})


class ImageFolder(Dataset):
    """Pictures in folders, one for each class: `root/cat/1.png` is a cat.  Pillow reads each when it is needed.

    An item is a picture, float32 from 0 to 1 of shape (channels, height, width), and the number of its class in
    `classes`.  With `size`, a side or (height, width), all are resized.  `mode` is Pillow's: "RGB" for
    three channels, "L" for one.
    """

    def __init__(
        self, root: str | os.PathLike[str], size: int | tuple[int, int] | None = None, mode: str = "RGB"
    ) -> None:
        self.root, self.mode = existing(root, "ImageFolder"), mode
        self.size = (size, size) if isinstance(size, int) else size
        self.classes = sorted(path.name for path in self.root.iterdir() if path.is_dir())
        self.pictures = [
            (path, number)
            for number, name in enumerate(self.classes)
            for path in sorted((self.root / name).rglob("*"))
            if path.suffix.lower() in PICTURES
        ]
        if not self.pictures:
            raise DataError(f"ImageFolder: there are no pictures in folders of {self.root}",
                            expect="a folder for each class, such as cat/1.png")

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[np.ndarray[Any, Any], int]:
        path, label = self.pictures[index]
        image = needed("PIL.Image", "reading pictures")
        try:
            with image.open(path) as picture:
                made = picture.convert(self.mode)
        except Exception as error:
            raise DataError(f"{path} can't be read as a picture: {type(error).__name__}: {error}") from error
        if self.size is not None:
            made = made.resize(self.size[::-1], image.Resampling.BILINEAR)
        array = np.asarray(made, dtype=np.float32) / 255
        return np.moveaxis(array, -1, 0) if array.ndim == 3 else array[None], label


class TextLines(Dataset):
    """The lines of a text file without line ends.  Only their positions are kept in memory."""

    def __init__(self, path: str | os.PathLike[str], encoding: str = "utf-8") -> None:
        self.path, self.encoding = existing(path, "TextLines"), encoding
        ends = [0]
        with open(self.path, "rb") as file:
            for line in file:
                ends.append(ends[-1] + len(line))
        self.ends = np.array(ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, index: int) -> str:
        start, end = self.ends[range(len(self))[index] :][:2]
        with open(self.path, "rb") as file:
            file.seek(start)
            return file.read(end - start).decode(self.encoding).rstrip("\r\n")


class Alphabet:
    """The characters of some texts as numbers from 1; 0 marks the end of a text, and padding.

    >>> alphabet = mg.data.Alphabet(["anna", "bo"])
    >>> alphabet.encode("nab").tolist(), alphabet.decode([2, 1, 0, 0]), len(alphabet)
    ([3, 1, 2], 'ba', 5)
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.characters = "".join(sorted(set("".join(texts))))
        self.numbers = {character: number + 1 for number, character in enumerate(self.characters)}

    def __len__(self) -> int:
        return len(self.characters) + 1

    def encode(self, text: str) -> np.ndarray[Any, Any]:
        """The numbers of a text's characters."""
        unknown = [character for character in text if character not in self.numbers]
        if unknown:
            raise DataError(f"the alphabet has no {unknown[0]!r}", expect=self.characters, actual=repr(text))
        return np.array([self.numbers[character] for character in text], dtype=np.int64)

    def decode(self, numbers: Any) -> str:
        """The text up to the first 0."""
        listed = [int(number) for number in numbers]
        end = listed.index(0) if 0 in listed else len(listed)
        return "".join(self.characters[number - 1] for number in listed[:end])


class Standardize:
    """Scales columns to mean 0 and standard deviation 1, by the rows of the training data.

    >>> scale = mg.data.Standardize([[1.0, 10.0], [3.0, 30.0]])
    >>> scale([[2.0, 40.0]]).tolist(), scale.inverse(scale([[2.0, 40.0]])).tolist()
    ([[0.0, 2.0]], [[2.0, 40.0]])
    """

    def __init__(self, rows: Any) -> None:
        known = host(rows)
        self.mean, spread = known.mean(axis=0), known.std(axis=0)
        self.std = np.where(spread > 0, spread, 1).astype(self.mean.dtype)  # a column of equal numbers becomes 0

    def __call__(self, rows: Any) -> np.ndarray[Any, Any]:
        """Scale other rows in the same way."""
        return (host(rows) - self.mean) / self.std

    def inverse(self, rows: Any) -> np.ndarray[Any, Any]:
        """Undo the scaling."""
        return host(rows) * self.std + self.mean
