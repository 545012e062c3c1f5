"""`mg.viz.stack`: all layers that one line of code goes through, from the line to NumPy, with their source."""

from __future__ import annotations

import inspect
import linecache
import os
from collections.abc import Callable
from pathlib import Path as File
from textwrap import dedent
from typing import Any, NamedTuple

import minigrad

from ...compile.look.watching import Call
from ...devices.registry import Device
from ...devices.table import label_of
from ...support.source import HOME, in_library
from ...support.table import counted
from ..drawing import Drawing
from ..flipbook import Block, Flipbook, Knob, Page
from .watching import calls_of, without_programs

MOST = 60  # operations of a function that have pages
AROUND = 4  # lines of source before and after the current one
WIDTH, HEIGHT = 560.0, 46.0

# The layers of minigrad, by the beginning of a file's name: a word, a colour, a sentence.
PARTS = [
    ("core/emit.py", "the door", "now", "The door in general: the mode decides what applying an operation does."),
    ("core/quick.py", "the door", "now", "The door in eager mode, unrolled: it computes, wraps and records."),
    ("core/", "tensor", "good", "The class Tensor. The operations add its methods."),
    ("ops/", "operation", "there", "The operation as a function: it checks its arguments and calls the door."),
    ("nn/", "module", "good", "A module: its parameters and what it computes with them."),
    ("autodiff/", "autodiff", "back", "The backward pass through the recorded nodes."),
    ("devices/", "device", "quiet", "The device: its array library, and a kernel for each primitive."),
    ("compile/", "compiler", "quiet", "The program that was compiled from the function."),
]


class Layer(NamedTuple):
    """One layer: its part of minigrad, its function and source, and what it does."""

    part: str
    colour: str
    name: str
    code: dict[str, Any] | None
    says: str


def stack(function: Callable[..., Any], *args: Any) -> Flipbook:
    """Show each layer that a line of code goes through: every function that runs, with its source.

    >>> x = mg.ones((2, 3))
    >>> book = mg.viz.stack(lambda: mg.tanh(x))
    >>> book
    <the stack of 1 operation, from your line to the kernel>
    >>> print(book.text())
    tanh
      your line      <lambda>
      the door       tanh
      the primitive  tanh
      kernel table   cpu × tanh
      kernel         numpy.tanh
    """
    hint = "inside a program of mg.jit no Python runs: mg.viz.timeline shows its steps"
    calls = calls_of("stack", function, args, "mg.viz.stack(lambda: x @ w + b)", hint)
    shown = calls[:MOST]
    stacks = [layers_of(call) for call in shown]
    names = [call.op.name for call in shown]
    settings = tuple(f"{i}. {name}" for i, name in enumerate(names, 1))
    pages = [[_page(layers, at) for at in range(len(layers))] for layers in stacks]
    title = f"the stack of {counted(len(calls), 'operation')}, from your line to the kernel"
    title += f", pages for the first {MOST}" * (len(calls) > MOST)
    knobs = (Knob("operation", settings, choice=True),)
    words = "\n".join(_in_words(name, layers) for name, layers in zip(names, stacks))
    return Flipbook(title, pages, knobs, unit="layer", words=words, wide=True)


def layers_of(call: Call) -> list[Layer]:
    """The layers of a call, from the user's line to the kernel."""
    op, name = call.op, call.op.name
    layers = [_layer(code, line, name) for code, line in call.frames]
    declared = inspect.unwrap(getattr(minigrad, name, op.infer))
    infer = getattr(op.infer, "func", op.infer)  # a partial function has no code of its own
    code = getattr(declared, "__code__", infer.__code__)
    rules = ", ".join(op.rules) or "no input"
    layers.append(Layer("the primitive", "there", name, _source(code.co_filename, _definition(code), AROUND),
                        f"A record, the same for all devices: an operation of kind {op.kind}, with gradient rules for "
                        f"{rules}. It says what the door checks, casts and saves."))
    label = label_of(call.kernel)
    own = getattr(inspect.unwrap(call.kernel), "__code__", None)
    source = "registered by register_kernel" if call.registered else "built in"
    found = f"One look into the dictionary of the device, device.kernels[{name!r}]: {label}, {source}."
    layers.append(Layer("kernel table", "quiet", f"{call.device} × {name}", _entry(call.device, name), found))
    ends = "" if own is not None else " It is compiled code: Python's part ends here."
    layers.append(Layer("kernel", "good", label, own and _source(own.co_filename, _definition(own), AROUND),
                        f"It computes on raw arrays: {_given(call)}.{ends}"))
    return layers


def _layer(code: Any, line: int, op: str) -> Layer:
    name = code.co_qualname.replace(".<locals>", "")
    name = name.rpartition(".")[2] if name.endswith("<lambda>") else name
    if name.endswith(".apply"):  # the quick form, one for each operation
        name = op
    if not in_library(code.co_filename):
        return Layer("your line", "back", name, _source(code.co_filename, line, AROUND), "The line as you wrote it.")
    inside = _inside(code.co_filename)
    part = next((p for p in PARTS if inside.startswith(p[0])), ("", "minigrad", "quiet", "A part of minigrad."))
    return Layer(part[1], part[2], name, _source(code.co_filename, line, AROUND), part[3])


def _definition(code: Any) -> int:
    """The line with `def`, which comes after the decorators."""
    first: int = code.co_firstlineno
    lines = [linecache.getline(code.co_filename, n).strip() for n in range(first, first + 12)]
    return first + next((i for i, line in enumerate(lines) if line.startswith("def ")), 0)


def _inside(filename: str) -> str:
    """The path of a file inside minigrad; the name of another file."""
    if filename.startswith(HOME):
        return filename[len(HOME) :].replace(os.sep, "/")
    return File(filename).name if File(filename).exists() else ""


def _entry(device: Device, op: str) -> dict[str, Any] | None:
    """The definition of an operation's kernel in the class of the device's kernels."""
    owner: Any = next((each for each in device.kernel_class.__mro__ if op in vars(each)), None)
    try:
        lines, first = inspect.getsourcelines(owner)
    except (OSError, TypeError):  # the class was defined at a prompt, or does not exist
        return None
    begins = f"def {op}(", f"{op} = "
    at = next((i for i, line in enumerate(lines) if line.strip().startswith(begins)), 0)
    return _source(inspect.getfile(owner), first + at, AROUND)


def _source(filename: str, line: int, around: int) -> dict[str, Any] | None:
    """A line of a file and the lines around it."""
    first = max(1, line - around)
    text = [linecache.getline(filename, n).rstrip("\n") for n in range(first, line + around + 1)]
    while text and not text[-1].strip():
        text.pop()
    text = dedent("\n".join(text)).split("\n")
    return {"file": _inside(filename), "line": line, "first": first, "text": text} if any(text) else None


def _given(call: Call) -> str:
    arrays = [f"{v.shape} {v.dtype}" for v in call.values if hasattr(v, "shape")]
    numbers = [repr(v) for v in call.values if isinstance(v, (bool, int, float))]
    attrs = [f"{key}={value!r}" for key, value in call.attrs.items() if key != "device"]
    made = f"{call.result.shape} {call.result.dtype}" if hasattr(call.result, "shape") else "several arrays"
    return f"{', '.join([*arrays, *numbers, *attrs]) or 'nothing'} → {made}"


def _page(layers: list[Layer], at: int) -> Page:
    layer = layers[at]
    blocks: list[tuple[str, Block]] = []
    if layer.code is not None:
        blocks.append(("your code" if layer.part == "your line" else "its source", ("code", layer.code)))
    return Page(_drawn(layers, at), f"{layer.part}: {layer.says}{without_programs()}", tuple(blocks))


def _drawn(layers: list[Layer], at: int) -> Drawing:
    drawing = Drawing(WIDTH, len(layers) * (HEIGHT + 12) - 12)
    for i, layer in enumerate(layers):
        y = i * (HEIGHT + 12)
        here = i == at
        fill, stroke, thick = ("tint", "now", 2.6) if here else ("paper", "line", 1.0)
        about = f"{layer.part}: {layer.name}"
        drawing.rect(0, y, WIDTH, HEIGHT, fill, stroke, thick=thick, about=about, go=f"page:{i}")
        drawing.rect(0, y, 6, HEIGHT, layer.colour, layer.colour, round=2)
        drawing.text(18, y + 19, layer.part, fill="quiet")
        drawing.text(18, y + 36, layer.name, size=12.0, bold=True, room=190)
        drawing.text(226, y + 19, layer.code["file"] if layer.code else "", fill="quiet", anchor="start", room=320)
        drawing.text(226, y + 36, _line(layer), size=11.0, room=324, code=True)
        if i:
            drawing.path([(30, y - 12), (30, y - 1)], "quiet" if i > at else "now", thick=1.6, arrow=True)
    return drawing


def _line(layer: Layer) -> str:
    if layer.code is None:
        return "compiled"
    return str(layer.code["text"][layer.code["line"] - layer.code["first"]]).strip()


def _in_words(name: str, layers: list[Layer]) -> str:
    wide = max(len(layer.part) for layer in layers)
    return "\n".join([name, *[f"  {layer.part.ljust(wide)}  {layer.name}" for layer in layers]])
