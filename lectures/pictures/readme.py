"""The pictures at the beginning of the README, light and dark: a backward pass step by step, and kernels.

    python -m lectures.pictures.readme [FOLDER]

A picture that plays is one SVG, whose steps are seen one after the other.  A reader who wants no motion sees the last.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import minigrad as mg
from minigrad.viz.colours import COLOURS
from minigrad.viz.drawing import Drawing
from minigrad.viz.films import with_sentences

FOLDER = Path(__file__).parent
SECONDS = 1.4  # for a step
HOLD = 3  # the last one is seen as long as three others
DARK = dict(COLOURS.values())


def three_lines() -> mg.Tensor:
    """The example of the README."""
    x = mg.asarray(1.0, requires_grad=True)
    a = 2 * x
    return a * a + a


def layer(x: mg.Tensor, w: mg.Tensor, b: mg.Tensor) -> mg.Tensor:
    """A layer, whose operations after the product share one kernel."""
    return mg.tanh(x @ w + b) ** 2


def step_picture() -> str:
    """The backward pass of three lines, played."""
    return playing([*mg.viz.step(three_lines()).frames()])


def fusion_picture() -> str:
    """The kernels of a layer."""
    return mg.viz.fusion(layer, mg.ones((64, 32)), mg.ones((32, 16)), mg.ones(16)).to_svg()


PICTURES: dict[str, Callable[[], str]] = {"readme_step": step_picture, "readme_fusion": fusion_picture}


def playing(frames: Sequence[tuple[str, str]]) -> str:
    """Steps as one SVG that plays them again and again."""
    stills = with_sentences(frames)
    count = len(stills) + HOLD - 1
    share = 100 / count
    style = (
        f"g.step{{visibility:hidden;animation:step {count * SECONDS:g}s step-end infinite}}"
        f"@keyframes step{{0%{{visibility:visible}}{share:.3f}%{{visibility:hidden}}}}"
        f"@keyframes last{{0%{{visibility:visible}}{share * HOLD:.3f}%{{visibility:hidden}}}}"
        "g.step:last-child{animation-name:last}"
        "@media (prefers-reduced-motion:reduce){g.step{animation:none}g.step:last-child{visibility:visible}}"
    )
    groups = [
        f'<g class="step" style="animation-delay:{(i - count if i else 0) * SECONDS:.1f}s">{_inside(still)}</g>'
        for i, still in enumerate(stills)
    ]
    *_, width, height = stills[0].frame().split()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f"<style>{style}</style>{''.join(groups)}</svg>\n"
    )


def _inside(still: Drawing) -> str:
    return still.to_svg("").replace(' xmlns="http://www.w3.org/2000/svg"', "")


def in_dark(svg: str) -> str:
    """A picture in the colours of the dark theme.

    >>> in_dark('fill="#ffffff"')
    'fill="#14181d"'
    """
    return re.sub(r"#[0-9a-f]{6}", lambda colour: DARK.get(colour[0], colour[0]), svg)


def written(folder: Path = FOLDER) -> Iterator[tuple[Path, str]]:
    """Each file, and what it contains."""
    for name, draw in PICTURES.items():
        svg = draw()
        yield folder / f"{name}.svg", svg
        yield folder / f"{name}_dark.svg", in_dark(svg)


def main(arguments: Iterable[str]) -> None:
    """Write the files into a folder."""
    for file, text in written(*map(Path, arguments)):
        file.write_text(text, encoding="utf-8")
        print(f"{file}: {len(text):,} characters")


if __name__ == "__main__":
    main(sys.argv[1:])
