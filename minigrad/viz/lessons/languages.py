"""A kernel in the language that it was written in, and in the languages that minigrad's back-ends print."""

from __future__ import annotations

from ...compile.codegen.c import c_source
from ...compile.codegen.cuda import cuda_source
from ...compile.codegen.llvm import llvm_source
from ...compile.loops.ir import Kernel
from ...support.table import counted
from ..drawing import Drawing
from ..flipbook import Block, Flipbook, Page

SAYS = {
    "Python": "The front-end language: it is run once, to record what happens at one place.",
    "C": "A back-end language, to read: the loop, one read, one write, and registers between them.",
    "LLVM": "The back-end language that runs here: LLVM translates it to machine code for this processor.",
    "CUDA": "The back-end language of NVIDIA's GPUs: the loop is shared among thousands of threads.",
}


def in_languages(kernel: Kernel, source: str) -> Flipbook:
    """A page for each language, without the functions that the kernel calls; `source` is the text in Python."""
    cuda = cuda_source(kernel).text
    texts = {"Python": source, "C": _last(c_source(kernel)), "LLVM": llvm_source(kernel), "CUDA": _last(cuda)}
    pages = []
    for at, (name, text) in enumerate(texts.items()):
        lines = text.strip().splitlines()
        code: Block = ("code", "\n".join(lines))
        pages.append(Page(_stations(at), f"{name}: {counted(len(lines), 'line')}. {SAYS[name]}", ((name, code),), name))
    return Flipbook(f"{kernel.name} in Python, C, LLVM and CUDA", [pages], cover=0, unit="language", wide=True)


def _last(text: str) -> str:
    """The last function of a file."""
    return text.strip().rpartition("\n\n")[2]


def _stations(at: int) -> Drawing:
    drawing = Drawing(420, 190)
    places = {"Python": (60.0, 80.0), "C": (350.0, 20.0), "LLVM": (350.0, 80.0), "CUDA": (350.0, 140.0)}
    drawing.rect(150, 72, 110, 46, "tint", "line", round=8)
    drawing.text(205, 91, "loop", anchor="middle", bold=True, size=14)
    drawing.text(205, 108, "of minigrad", anchor="middle", fill="quiet")
    drawing.path([(112, 95), (147, 95)], "quiet", thick=2, arrow=True)
    for i, (name, (x, y)) in enumerate(places.items()):
        here = i == at
        drawing.rect(x - 50, y, 100, 30, "there-fill" if here else "paper", "now" if here else "line",
                     thick=2.6 if here else 1.2, round=6, go=f"page:{i}", about=name)
        drawing.text(x, y + 20, name, anchor="middle", bold=True, size=14)
        if i:
            drawing.path([(262, 95), (297, y + 15)], "quiet", thick=2, arrow=True)
    drawing.text(60, 130, "front-end", anchor="middle", fill="quiet", size=13)
    drawing.text(350, 186, "back-ends", anchor="middle", fill="quiet", size=13)
    return drawing
