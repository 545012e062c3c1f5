"""A kernel in the language that it was written in, and in the languages that minigrad's back-ends print."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from textwrap import wrap

from minigrad.compile.codegen.c import c_source
from minigrad.compile.codegen.cuda import cuda_source
from minigrad.compile.codegen.llvm import llvm_source
from minigrad.compile.loops.ir import Kernel
from minigrad.support.table import counted
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Page

WIDE, LINE, COLUMNS = 660.0, 16.0, 86
ENDINGS = {"C": ".c", "LLVM": ".ll", "CUDA": ".cu"}
SHOWN, HEAD = 26, 20  # lines: of a longer text, the first ones are shown
SAYS = {
    "Python": "The front-end language: it is run once, to record what happens at one place.",
    "C": "A back-end language, to read: the loop, one read, one write, and registers between them.",
    "LLVM": "The back-end language that runs here: LLVM translates it to machine code for this processor.",
    "CUDA": "The back-end language of NVIDIA's GPUs: the loop is shared among thousands of threads.",
}


class Languages(Flipbook):
    """Texts that can also be saved, each under the ending of its language."""

    files: Mapping[str, str] = {}

    def _forms(self) -> dict[str, Callable[[], str | bytes]]:
        return {**super()._forms(), **{ending: partial(str, text) for ending, text in self.files.items()}}


def in_languages(kernel: Kernel, source: str) -> Flipbook:
    """A page for each language, without the functions that the kernel calls; `source` is the text in Python."""
    cuda = cuda_source(kernel).text
    texts = {"Python": source, "C": _last(c_source(kernel)), "LLVM": llvm_source(kernel), "CUDA": _last(cuda)}
    pages = []
    for at, (name, text) in enumerate(texts.items()):
        lines = text.strip().splitlines()
        pages.append(Page(_drawn(at, lines), f"{name}: {counted(len(lines), 'line')}. {SAYS[name]}", (), name))
    title = f"{kernel.name} in Python, C, LLVM and CUDA"
    book = Languages(title, [pages], cover=1, unit="language")
    book.files = {ending: texts[name] for name, ending in ENDINGS.items()}
    return book


def _last(text: str) -> str:
    """The last function of a file."""
    return text.strip().rpartition("\n\n")[2]


def _drawn(at: int, lines: list[str]) -> Drawing:
    """The way from Python to the languages, and the text in one of them."""
    wrapped = [part for line in lines for part in _wrapped(line)]
    if len(wrapped) > SHOWN:
        wrapped = [*wrapped[:HEAD], f"... {len(wrapped) - HEAD} more lines"]
    drawing = Drawing(WIDE, 150 + LINE * len(wrapped))
    _stations(drawing, at)
    drawing.rect(0, 126, WIDE, LINE * len(wrapped) + 20, "tint", "line", round=4)
    for i, line in enumerate(wrapped):
        drawing.text(12, 148 + LINE * i, line, size=12, code=True, room=WIDE - 16)
    return drawing


def _wrapped(line: str) -> list[str]:
    lead = line[: len(line) - len(line.lstrip())]
    return wrap(line, COLUMNS, subsequent_indent=f"{lead}        ", drop_whitespace=True) or [""]


def _stations(drawing: Drawing, at: int) -> None:
    places = {"Python": (150.0, 42.0), "C": (510.0, 0.0), "LLVM": (510.0, 42.0), "CUDA": (510.0, 84.0)}
    drawing.rect(290, 38, 90, 38, "tint", "line", round=8)
    drawing.text(335, 62, "loop", anchor="middle", bold=True, size=14)
    drawing.path([(204, 57), (286, 57)], "quiet", thick=2, arrow=True)
    for i, (name, (x, y)) in enumerate(places.items()):
        here = i == at
        drawing.rect(x - 50, y, 100, 30, "there-fill" if here else "paper", "now" if here else "line",
                     thick=2.6 if here else 1.2, round=6, go=f"page:{i}", about=name)
        drawing.text(x, y + 20, name, anchor="middle", bold=True, size=14)
        if i:
            drawing.path([(382, 57), (456, y + 15)], "quiet", thick=2, arrow=True)
    drawing.text(90, 62, "front-end", anchor="end", fill="quiet", size=13)
    drawing.text(570, 62, "back-ends", fill="quiet", size=13)
