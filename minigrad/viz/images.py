"""Pictures of arrays: of matrices as heat maps, and of images in grey or in colours.

An image is scaled smoothly, so a handwritten digit of 8 × 8 numbers looks like a digit.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..support.table import escape
from .drawing import Drawing, cleaned
from .svg import number, squares

GAP, CAPTION = 6.0, 15.0  # between the pictures of a gallery; the height of a caption
CHANNELS = ((1,), (3,))  # of an image: grey, or red, green and blue


def heat_map(drawing: Drawing, x: float, y: float, cells: str, side: float, about: str) -> None:
    """A heat map, see `numbers.cells_of`: blue above zero, orange below, stronger if larger; red if not finite."""
    drawing.add(f"<g><title>{escape(cleaned(about))}</title>{squares(cells, x, y, side)}</g>")


def png(levels: Any) -> bytes:
    """Rows of bytes as a PNG, without compression: its bytes are the same on every machine.

    >>> png(np.zeros((2, 3), np.uint8))[12:24]
    b'IHDR\\x00\\x00\\x00\\x03\\x00\\x00\\x00\\x02'
    """
    rows, columns = levels.shape[:2]
    lines = b"".join([b"\0" + row.tobytes() for row in np.asarray(levels, np.uint8)])
    head = struct.pack(">IIBBBBB", columns, rows, 8, 2 * (levels.shape[2:] == (3,)), 0, 0, 0)
    written = b"\x89PNG\r\n\x1a\n"
    for kind, content in ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 0)), (b"IEND", b"")):
        written += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return written


def pictures_of(value: Any, most: int) -> Any:
    """The first images of a batch as bytes, each from its least number (black) to its largest (white); or None.

    Only a shape makes numbers an image: (count, height, width), with 1 or 3 channels before or after these two.

    >>> pictures_of(np.array([[[0.0, 0.5], [1.0, np.nan]]]), 12).tolist()
    [[[0, 127], [255, 0]]]
    >>> pictures_of(np.ones((5, 3, 8, 9)), 2).shape, pictures_of(np.ones((5, 1, 8, 9)), 2).shape
    ((2, 8, 9, 3), (2, 8, 9))
    >>> pictures_of(np.ones((5, 64)), 3), pictures_of(np.ones((5, 2, 8, 8)), 3)
    (None, None)
    """
    array = np.asarray(value)
    if array.ndim == 4 and array.shape[1:2] in CHANNELS:
        array = np.moveaxis(array, 1, 3)
    if array.shape[3:] == (1,):
        array = array[..., 0]
    if array.ndim < 3 or array.shape[3:] not in ((), (3,)) or not array.size or array.dtype.kind not in "biuf":
        return None
    array = np.nan_to_num(array[:most].astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = (f(array, axis=(*range(1, array.ndim),), keepdims=True) for f in (np.min, np.max))
    return (255 * (array - low) / np.where(high > low, high - low, 1.0)).astype(np.uint8)


def image(drawing: Drawing, x: float, y: float, width: float, levels: Any, about: str) -> None:
    """Draw the bytes of an image, `width` wide."""
    height = width * levels.shape[0] / levels.shape[1]
    data = base64.b64encode(png(levels)).decode()
    drawing.add(
        f'<image x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" '
        f'href="data:image/png;base64,{data}"><title>{escape(cleaned(about))}</title></image>'
    )


def gallery(
    drawing: Drawing, x: float, y: float, pictures: Any, captions: Sequence[str], columns: int, side: float
) -> float:
    """Draw pictures in rows, each in a square with a caption below if there are captions; returns the height."""
    line = side + GAP + (CAPTION if captions else 0.0)
    for i, levels in enumerate(pictures):
        left, top = x + (i % columns) * (side + GAP), y + (i // columns) * line
        about = captions[i] if captions else f"picture {i + 1}"
        width = side * min(1.0, levels.shape[1] / levels.shape[0])
        image(drawing, left + (side - width) / 2, top, width, levels, about)
        if captions:
            drawing.text(left + side / 2, top + side + 12, about, anchor="middle", room=side + 2)
    return line * -(-len(pictures) // columns)
