"""The pictures at the beginning of the README, light and dark: a backward pass step by step, and kernels.

    python -m lectures.pictures.readme [FOLDER]

A picture that plays is one SVG, whose steps are seen one after the other.  A reader who wants no motion sees the last.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import wrap

import minigrad as mg
from minigrad.viz.colours import COLOURS
from minigrad.viz.drawing import Drawing
from minigrad.viz.mirror import flowing, with_gradients
from minigrad.viz.scene import Scene
from minigrad.viz.stepper import Stepper
from minigrad.viz.svg import draw, laid_out, number

FOLDER = Path(__file__).parent
SECONDS = 1.4  # for a step
HOLD = 3  # the last one is seen as long as three others
NARROWEST, SIZE, LEADING, LETTER = 360.0, 14.0, 20.0, 7.8  # of the sentence below a picture
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
    return playing([*frames_of(mg.viz.step(three_lines()))])


def fusion_picture() -> str:
    """The kernels of a layer."""
    return mg.viz.fusion(layer, mg.ones((64, 32)), mg.ones((32, 16)), mg.ones(16)).to_svg()


PICTURES: dict[str, Callable[[], str]] = {"readme_step": step_picture, "readme_fusion": fusion_picture}


def frames_of(view: Stepper) -> Iterator[tuple[str, str]]:
    """The first picture of the stepper after each step that changes it, with the sentence of the step."""
    part, whole, wanted = view.parts[0], view.scenes[0], flowing(view.recording.nodes)
    arrows, layout = view._arrows(whole), laid_out(whole)
    notes = view._notes(whole, arrows)
    along = view._along(arrows)
    seed, last = notes.keys() - {*along}, {edge: done for done, edge in enumerate(along, 1)}
    for done in range(len(view.steps) + 1):
        each, edge = (view.steps[done - 1], along[done - 1]) if done else (None, -1)
        mirrors = [whole.boxes[end].mirrors for end in whole.edges[edge][:2]] if edge >= 0 else []
        ends = [part.scene.boxes[mirror] for mirror in mirrors if mirror is not None]
        closed = any(len(box.nodes) > 1 for box in ends)
        if each is not None and each.kind != "seed" and (edge < 0 or (closed and last[edge] != done)):
            continue  # inside a closed box, or something will still come out of it
        totals = {every.target: every.total for every in view.steps[:done]}
        come = {*along[:done]} - {*along[done:]} | (seed if done else set())
        scene = with_gradients(part.scene, totals, wanted)
        boxes = [*scene.boxes]
        for key, box in enumerate(boxes):  # a gradient waits, or something has come to it just now
            if box.mirrors is not None:
                nodes = boxes[box.mirrors].nodes
                kind = box.kind if totals.keys() & {*nodes} else "awaited"
                boxes[key] = replace(box, result=each is not None and each.target in nodes, kind=kind)
        seen = {key: note for key, note in notes.items() if key in come}
        says = f"The forward pass computes {view._called(view.result)}." if each is None else view._said(each)
        if closed:
            says = " passes back to ".join([box.title.split(" = ")[0] for box in ends]) + f": {notes[edge][0]}"
        yield draw(Scene(tuple(boxes), scene.edges), seen, layout), says


def with_sentences(frames: Sequence[tuple[str, str]]) -> list[Drawing]:
    """Pictures of one size, each with its sentence below it.

    >>> frame = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" width="9" height="9"></svg>'
    >>> [still.height for still in with_sentences([(frame, "first"), (frame, "a " * 50)])]
    [89.0, 89.0]
    """
    sizes = [[*map(float, svg.partition('viewBox="')[2].partition('"')[0].split()[2:])] for svg, _ in frames]
    width, picture = max(NARROWEST, *[wide for wide, _ in sizes]), max(high for _, high in sizes)
    lines = [wrap(says, int(width / LETTER)) for _, says in frames]
    stills = []
    for (svg, _), (wide, _), words in zip(frames, sizes, lines):
        still = Drawing(width, picture + LEADING * (1 + max(map(len, lines))))
        still.add(svg.replace("<svg ", f'<svg x="{number((width - wide) / 2)}" ', 1))
        for i, line in enumerate(words, 1):
            still.text(0, picture + LEADING * i, line, size=SIZE)
        stills.append(still)
    return stills


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
    for name, picture in PICTURES.items():
        svg = picture()
        yield folder / f"{name}.svg", svg
        yield folder / f"{name}_dark.svg", in_dark(svg)


def main(arguments: Iterable[str]) -> None:
    """Write the files into a folder."""
    for file, text in written(*map(Path, arguments)):
        file.write_text(text, encoding="utf-8")
        print(f"{file}: {len(text):,} characters")


if __name__ == "__main__":
    main(sys.argv[1:])
