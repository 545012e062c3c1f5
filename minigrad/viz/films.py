"""Views in pixels: a picture, and the steps of a view as the pictures of a .gif or a .mp4."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Any

from ..support.errors import MinigradError
from ..support.packages import needed
from .drawing import BORDER, Drawing
from .svg import number

MOST = 200  # pictures of a film
WIDEST, LARGEST = 1200.0, 2.0  # pixels, and the scale of a small picture
AGAIN = 3  # a picture is seen for a second, and the last one so often again
NARROWEST, SIZE, LEADING, LETTER = 360.0, 14.0, 20.0, 7.8  # of the sentence below the picture


def pixels(svg: str, scale: float) -> bytes:
    """An SVG as a PNG.  On a machine without fonts, the font of matplotlib is used."""
    resvg_py = needed("resvg_py", "a PNG", "; or save it as .svg, which every browser shows")
    try:
        from matplotlib import get_data_path

        fonts = [f"{get_data_path()}/fonts/ttf"]
    except ImportError:
        fonts = []
    return bytes(resvg_py.svg_to_bytes(svg, zoom=scale, font_dirs=fonts, sans_serif_family="DejaVu Sans"))


def film(shown: Sequence[tuple[str, str]], ending: str) -> bytes:
    """A film of pictures and sentences; its last picture stays longer."""
    if not 2 <= len(shown) <= MOST:
        raise MinigradError(
            f"this view has {len(shown):,} steps for a film", expect=f"from 2 to {MOST}",
            hint="fewer layers, or view.save('x.html') or view.save('x.png')",
        )
    stills = with_sentences(shown)
    scale = min(LARGEST, WIDEST / (stills[0].width + 2 * BORDER))
    pictures = [pixels(still.to_svg(""), scale) for still in stills]
    return (_gif if ending == ".gif" else _mp4)([*pictures, *pictures[-1:] * AGAIN])


def with_sentences(frames: Sequence[tuple[str, str]]) -> list[Drawing]:
    """Pictures of one size, each with its sentence below it.

    >>> frame = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" width="9" height="9"></svg>'
    >>> [still.height for still in with_sentences([(frame, "first"), (frame, "a " * 50)])]
    [89.0, 89.0]
    """
    sizes = [[*map(float, svg.partition('viewBox="')[2].partition('"')[0].split()[2:])] for svg, _ in frames]
    width, picture = max(NARROWEST, *[wide for wide, _ in sizes]), max(high for _, high in sizes)
    scale = max(1.0, width / WIDEST)  # a wide picture becomes smaller, its sentence does not
    lines = [wrap(says, int(width / LETTER / scale)) for _, says in frames]
    stills = []
    for (svg, _), (wide, _), words in zip(frames, sizes, lines):
        still = Drawing(width, picture + scale * LEADING * (1 + max(map(len, lines))))
        still.add(svg.replace("<svg ", f'<svg x="{number((width - wide) / 2)}" ', 1))
        for i, line in enumerate(words, 1):
            still.text(0, picture + scale * LEADING * i, line, size=scale * SIZE)
        stills.append(still)
    return stills


def _gif(pictures: Sequence[bytes]) -> bytes:
    image: Any = needed("PIL.Image", "a film", "; or save it as .html, which plays in every browser")
    opened = [image.open(BytesIO(each)).convert("RGB") for each in pictures]
    palette = opened[-1].quantize(255, dither=0)  # the last picture has all that has come
    first, *rest = [each.quantize(palette=palette, dither=0) for each in opened]
    written = BytesIO()
    first.save(written, "GIF", save_all=True, append_images=rest, duration=1000, loop=0, optimize=True)
    return written.getvalue()


def _mp4(pictures: Sequence[bytes]) -> bytes:
    program = which("ffmpeg")
    if program is None:
        raise MinigradError("a .mp4 needs the program ffmpeg", hint="install ffmpeg, or save the film as .gif")
    with TemporaryDirectory() as folder:
        file = Path(folder) / "film.mp4"  # its index is written at the end: a pipe is not enough
        given = ["-loglevel", "error", "-f", "image2pipe", "-framerate", "1", "-i", "-"]
        even = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-r", "24", "-pix_fmt", "yuv420p", "-movflags", "+faststart"]
        done = subprocess.run([program, *given, *even, str(file)], input=b"".join(pictures), capture_output=True)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise MinigradError(f"ffmpeg could not write the film: {said}", hint="save it as .gif or .html")
        return file.read_bytes()
