"""Files of named tensors: safetensors, which PyTorch and others read and write too, and NumPy's `.npz`.

Names are never paths: a tensor called `../../x` is read like any other.
"""

from __future__ import annotations

import errno
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np

from ..core import dtypes
from ..core.tensor import Tensor, from_host
from ..devices import as_device
from ..support.errors import FileError, MissingFileError
from ..support.files import whole_file
from ..support.table import counted
from ..support.words import a_type
from . import header

# For each element type of safetensors: the NumPy dtype that reads its bytes, and our dtype that holds all its values.
ELEMENTS = {
    "BOOL": ("?", dtypes.bool), "U8": ("u1", dtypes.uint8), "I8": ("<i1", dtypes.int8), "I16": ("<i2", dtypes.int16),
    "I32": ("<i4", dtypes.int32), "I64": ("<i8", dtypes.int64), "F16": ("<f2", dtypes.float16),
    "F32": ("<f4", dtypes.float32), "F64": ("<f8", dtypes.float64),
    "U16": ("<u2", dtypes.int32), "U32": ("<u4", dtypes.int64), "BF16": ("<u2", dtypes.float32),
}
FAULTS = (zipfile.BadZipFile, ValueError, EOFError, RuntimeError, OverflowError, OSError)  # of a damaged .npz file
TYPES = {ours.name: kind for kind, (stored, ours) in ELEMENTS.items() if ours == stored}


def save_file(
    tensors: Mapping[str, Any], path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors by name, as safetensors, or as NumPy's archive if `path` ends in `.npz`; all of them or nothing.

    `metadata` are strings by name, which only safetensors files can hold.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/model.safetensors"
    >>> mg.io.save_file(mg.nn.Linear(2, 3).state_dict(), path)
    >>> sorted(mg.io.load_file(path))
    ['bias', 'weight']
    """
    if not isinstance(tensors, Mapping):
        raise FileError(f"save_file: tensors by name are a dict, not {a_type(tensors)}",
                        expect="save_file(model.state_dict(), path)")
    arrays = {_name(name): _array(name, value) for name, value in tensors.items()}
    texts = dict(metadata or {})
    wrong = [key for key, text in texts.items() if not isinstance(key, str) or not isinstance(text, str)]
    if wrong:
        raise FileError(f"save_file: metadata are strings by name, and {wrong[0]!r} is not", hint="json.dumps(...)")
    if _is_npz(path):
        if texts:
            raise FileError("save_file: an .npz file cannot hold metadata", hint="a .safetensors file can")
        with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
        return
    # The largest elements come first, so each begins at a multiple of its size.
    in_order = dict(sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])))
    beginning = header.written({name: (TYPES[a.dtype.name], a.shape) for name, a in in_order.items()}, texts)
    with whole_file(path) as temporary, open(temporary, "wb") as file:
        file.write(beginning)
        for array in in_order.values():
            file.write(array.reshape(-1).view(np.uint8))


def load_file(
    path: str | os.PathLike[str], names: Iterable[str] | None = None, device: Any = None
) -> dict[str, Tensor]:
    """The tensors of a file by name: all of them, or only those in `names`, and then only their bytes are read.

    A dtype that minigrad lacks becomes the next wider one: bfloat16 → float32, uint16 → int32, uint32 → int64.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/numbers.npz"
    >>> mg.io.save_file({"one": mg.ones(1), "two": mg.ones(2)}, path)
    >>> mg.io.load_file(path, names=["two"])
    {'two': Tensor([1., 1.], shape=(2,), dtype=float32, device=cpu)}
    """
    where = as_device(device)
    with open_file(path) as file:
        wanted = list(file) if names is None else list(names)
        return {name: from_host(file.array(name), where) for name in wanted}


def open_file(path: str | os.PathLike[str]) -> TensorFile:
    """Open a file of tensors, each of which is read when it is used: see `TensorFile`."""
    return NumpyFile(path) if _is_npz(path) else SafetensorsFile(path)


class TensorFile(Mapping[str, Any]):
    """An open file of tensors: a mapping from names to tensors, each of which is read when it is used.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/model.safetensors"
    >>> mg.io.save_file({"weight": mg.ones((1000, 3))}, path, metadata={"trained": "no"})
    >>> with mg.io.open_file(path) as file:
    ...     list(file), file.shape("weight"), file.metadata["trained"], file["weight"].sum().item()
    ...     file.part("weight", slice(2, 4)).shape
    (['weight'], (1000, 3), 'no', 3000.0)
    (2, 3)
    """

    metadata: Mapping[str, str] = MappingProxyType({})
    entries: Mapping[str, Any]  # by name: what the file says about a tensor, with its shape

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor; its values are not read."""
        return self._entry(name).shape  # type: ignore[no-any-return]

    def array(self, name: str, index: Any = ...) -> Any:
        """A tensor, or its part at an index, as an array in our own memory."""
        raise NotImplementedError

    def part(self, name: str, index: Any) -> Tensor:
        """A part of a tensor; the rest is not read."""
        return from_host(self.array(name, index), as_device(None))

    def close(self) -> None:
        """Close the file."""

    def __getitem__(self, name: str) -> Tensor:
        return from_host(self.array(name), as_device(None))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'tensor')} in {self.path}>"

    def _entry(self, name: str) -> Any:
        if name not in self.entries:
            known = list(self)
            listed = ", ".join(known[:8]) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
            raise FileError(f"there is no tensor {name!r} in {self.path}", expect=listed or None)
        return self.entries[name]


class SafetensorsFile(TensorFile):
    """A safetensors file.  The header is checked; the bytes are mapped into memory and read when used."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        if not self.path.is_file():
            raise MissingFileError(f"there is no file {self.path}")
        try:
            with open(self.path, "rb") as file:
                self.entries, self.metadata = header.read(file)
        except (ValueError, RecursionError) as error:
            raise FileError(
                f"load_file: {self.path} is not a safetensors file, or it is damaged: {error}",
                hint="copy it again; a file of torch.save is code: in PyTorch, use save_file of safetensors.torch",
            ) from None

    def array(self, name: str, index: Any = ...) -> Any:
        kind, shape, offset = self._entry(name)
        if kind not in ELEMENTS:
            raise FileError(f"load_file: {name!r} in {self.path} has elements of type {kind}, which minigrad lacks",
                            expect=", ".join(ELEMENTS))
        stored, ours = ELEMENTS[kind]
        if 0 in shape:
            return np.empty(shape, ours)[index].copy()
        mapped = np.memmap(self.path, stored, "r", offset, shape or (1,)).reshape(shape)[index]
        if kind == "BF16":  # the upper half of a float32
            return (mapped.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return np.array(mapped, ours)


class Member(NamedTuple):
    """An array in NumPy's archive."""

    info: zipfile.ZipInfo
    shape: tuple[int, ...]


class NumpyFile(TensorFile):
    """NumPy's archive of arrays.  An array that would have to be unpickled is an error."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        with _judging(self.path):
            self.archive = zipfile.ZipFile(self.path)
            self.entries = {info.filename.removesuffix(".npy"): self._member(info) for info in self.archive.infolist()}

    def _member(self, info: zipfile.ZipInfo) -> Member:
        """An array of the archive, after a check that it has the size that its header says."""
        with self.archive.open(info) as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
            size = dtype.itemsize
            for extent in shape:
                size *= extent
            if dtype.hasobject or file.tell() + size != info.file_size:
                raise ValueError(f"{info.filename} holds Python objects, or not as many bytes as it says")
        return Member(info, tuple(shape))

    def array(self, name: str, index: Any = ...) -> Any:
        with _judging(self.path), self.archive.open(self._entry(name).info) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
        return np.array(array[index], dtypes.as_dtype(array.dtype))

    def close(self) -> None:
        self.archive.close()


@contextmanager
def _judging(path: Path) -> Iterator[None]:
    """Turn errors in this block into the error for a damaged file."""
    try:
        yield
    except FAULTS as error:
        # of OSErrors, only that for a place before the beginning of the file
        if isinstance(error, FileError) or (isinstance(error, OSError) and error.errno != errno.EINVAL):
            raise
        raise FileError(f"load_file: {path} is not a .npz file, or it is damaged: {error}") from None


def _is_npz(path: Any) -> bool:
    return Path(path).suffix == ".npz"


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise FileError(f"save_file: names are strings, and {name!r} is {a_type(name)}")
    return name


def _array(name: str, value: Any) -> Any:
    """The values as an array in row-major order, of little-endian bytes, as the file has them."""
    if isinstance(value, Tensor):
        value = value.detach().numpy_copy()  # type: ignore[attr-defined]
    if not isinstance(value, np.ndarray):
        raise FileError(f"save_file: {name!r} is {a_type(value)}, and files of weights hold tensors only",
                        hint="mg.asarray(...) for numbers; metadata={...} for strings")
    dtypes.as_dtype(value.dtype)
    return np.asarray(value, value.dtype.newbyteorder("<"), order="C")
