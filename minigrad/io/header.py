"""The header of a safetensors file: which tensors it has, and where their bytes are.

The file begins with the length of the header in 8 bytes.  The header is JSON.  The bytes of the tensors follow it, one
tensor after the other, without gaps.  A header of which this is not true is refused, so no file is read beyond its end.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

LONGEST = 100_000_000  # bytes of a header, as in the library of the format

# Bytes of an element of each type.
SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
         "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8, "C64": 8}


class Entry(NamedTuple):
    """What a file says about a tensor, and where its bytes begin."""

    kind: str
    shape: tuple[int, ...]
    offset: int


def written(entries: Mapping[str, tuple[str, Sequence[int]]], metadata: Mapping[str, str]) -> bytes:
    """The beginning of a file whose tensors have these types and shapes, and follow in this order.

    >>> written({"w": ("F32", (2,))}, {})
    b'8\\x00\\x00\\x00\\x00\\x00\\x00\\x00{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  '
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, (kind, shape) in entries.items():
        begin, end = end, end + SIZES[kind] * math.prod(shape)
        header[name] = {"dtype": kind, "shape": [*shape], "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the first tensor begins at a multiple of 8
    return len(text).to_bytes(8, "little") + text


def read(file: BinaryIO) -> tuple[dict[str, Entry], dict[str, str]]:
    """The tensors of a file by name, and its metadata.  A header that is not valid is a ValueError."""
    whole = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if whole < 8 or length > min(whole - 8, LONGEST):
        raise ValueError(f"its header would have {length:,} bytes, and the file has {whole:,}")
    header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is not a table")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise ValueError("its metadata are not strings")
    spans = [(*_span(name, entry), name, entry) for name, entry in header.items()]
    at, first = 0, 8 + length
    for begin, end, name, _ in sorted(spans, key=lambda span: span[:2]):
        if begin != at:
            raise ValueError(f"the bytes of {name!r} begin at {begin}, not at {at}")
        at = end
    if first + at != whole:
        raise ValueError(f"it has {whole:,} bytes, and its header describes {first + at:,}")
    return {name: Entry(e["dtype"], tuple(e["shape"]), first + begin) for begin, _, name, e in spans}, metadata


def _span(name: str, entry: Any) -> tuple[int, int]:
    """Where the bytes of a tensor begin and end, counted from the end of the header."""
    if not isinstance(entry, dict) or {*entry} != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the entry of {name!r} is not a type, a shape and offsets")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in SIZES:
        raise ValueError(f"{name!r} has elements of the type {kind!r}")
    if not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
        raise ValueError(f"the shape or the offsets of {name!r} are not whole numbers, 0 or more")
    begin, end = offsets
    if end - begin != SIZES[kind] * math.prod(shape):
        raise ValueError(f"{name!r} has {end - begin} bytes, which do not fit its shape {shape}")
    return begin, end


def _are_counts(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(each) is int and each >= 0 for each in numbers)
