"""The memory map: a program line by line, with its names, the tensors they refer to, and the buffers with versions."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from minigrad.core.clock import WRITTEN, buffer_of
from minigrad.core.tensor import Tensor
from minigrad.support.errors import MinigradError
from minigrad.support.table import counted
from minigrad.support.words import shown
from minigrad.viz.drawing import Drawing, legend
from minigrad.viz.flipbook import Flipbook, Page

from .strides import read_by

FILES = count(1)
CELL, PER_ROW, MOST, TOP = 30.0, 12, 48, 34.0  # the side of a cell, cells in a row, numbers in a map
NAMES, TENSORS, BUFFERS = 0.0, 52.0, 238.0  # where the columns begin
COLOURS = ("there", "back", "good", "library", "now", "quiet")


class Place(NamedTuple):
    """Where a tensor is in its buffer, in elements."""

    buffer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def indices(self) -> list[int]:
        """The elements of the buffer that the tensor reads."""
        return sorted({*read_by(self.shape, self.strides, self.offset)})


class Kept(NamedTuple):
    """What an operation kept for its gradient: a buffer, and its version at that time."""

    name: str
    buffer: int
    version: int


@dataclass
class State:
    """The memory after a line."""

    line: int
    names: dict[str, Place]
    versions: dict[int, int]
    numbers: dict[int, list[float]]
    written: dict[int, set[int]]  # the elements that the line has changed
    kept: list[Kept]
    error: str = ""


@dataclass
class Memory:
    """Buffers by numbers, as long as a program runs."""

    roots: list[Any] = field(default_factory=list)
    times: dict[int, int] = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)
    kept: dict[str, list[Kept]] = field(default_factory=dict)

    def number(self, array: Any) -> int:
        """The number of an array's buffer; a new buffer gets the next one."""
        root = buffer_of(array)
        at = next((i for i, known in enumerate(self.roots) if known is root), len(self.roots))
        if at == len(self.roots):
            self.roots.append(root)
            self.versions[at], self.times[at] = 0, time_of(root)
        return at

    def place(self, tensor: Tensor) -> Place:
        """Where a tensor is."""
        array = tensor._data
        number, size = self.number(array), array.itemsize
        offset = (array.ctypes.data - buffer_of(array).ctypes.data) // size
        return Place(number, array.shape, tuple([stride // size for stride in array.strides]), offset)

    def count_writes(self) -> None:
        """Raise the version of each buffer that has been written to since the last line."""
        for number, root in enumerate(self.roots):
            if time_of(root) != self.times[number]:
                self.times[number] = time_of(root)
                self.versions[number] += 1

    def keep(self, name: str, tensor: Tensor) -> list[Kept]:
        """What the operation that made a tensor has kept, in buffers of this map."""
        node = tensor.node
        values = node.saved if node is not None and isinstance(getattr(node, "saved", None), tuple) else ()
        roots = [buffer_of(value) for value in values if hasattr(value, "base")]
        numbers = [number for number, root in enumerate(self.roots) if any(each is root for each in roots)]
        return [Kept(name, number, self.versions[number]) for number in numbers]


def called(number: int) -> str:
    """The name of a buffer in pictures and sentences."""
    return f"buffer {number + 1}"


def time_of(root: Any) -> int:
    """The time of the last write into a buffer; 0 if there was none."""
    entry = WRITTEN.get(id(root))
    return entry.time if entry is not None and entry.buffer() is root else 0


def states_of(code: str) -> list[State]:
    """Run a program line by line; the memory after each of its lines, up to an error.

    >>> [(each.line, each.versions) for each in states_of("a = mg.zeros(3)\\nb = a[1:]\\nb += 1")]
    [(1, {0: 0}), (2, {0: 0}), (3, {0: 1})]
    """
    file = f"<ipython-map-{next(FILES)}>"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    try:
        lines = ast.parse(code).body
    except SyntaxError as error:
        raise MinigradError(f"memory_map: Python cannot read line {error.lineno} of the program") from None
    names: dict[str, Any] = {"__name__": "program", "mg": sys.modules["minigrad"]}
    memory, states = Memory(), [State(0, {}, {}, {}, {}, [])]
    for line in lines:
        stop = ""
        try:
            exec(compile(ast.Module([line], []), file, "exec"), names)
        except MinigradError as problem:
            stop = str(problem).splitlines()[0]
        except Exception as problem:
            stop = f"{type(problem).__name__}: {problem}"
        states.append(_state(line.lineno, memory, names, states[-1], stop))
        if stop:
            break
    return states[1:]


def _state(line: int, memory: Memory, names: dict[str, Any], before: State, error: str) -> State:
    tensors = {name: value for name, value in names.items() if isinstance(value, Tensor)}
    places = {name: memory.place(value) for name, value in tensors.items()}
    memory.count_writes()
    for name, tensor in tensors.items():
        if name not in before.names or before.names[name] != places[name] or name not in memory.kept:
            memory.kept[name] = memory.keep(name, tensor)
    numbers = {number: root.ravel(order="K").tolist() for number, root in enumerate(memory.roots)}
    if sum(map(len, numbers.values())) > MOST:
        raise MinigradError(f"memory_map: the program has more than {MOST} numbers", hint="take smaller arrays")
    changed = {number: {i for i, (old, new) in enumerate(zip(before.numbers[number], values)) if old != new}
               for number, values in numbers.items() if number in before.numbers}
    kept = [each for name in tensors for each in memory.kept.get(name, [])]
    return State(line, places, dict(memory.versions), numbers, changed, kept, error)


def memory_map(code: str) -> Flipbook:
    """A program to step through: names, tensors, and buffers with their versions.

    >>> memory_map("a = mg.zeros(3)\\nb = a[1:]\\nb += 1")
    <memory map: 2 names, 1 buffer, 3 lines>
    """
    if not isinstance(code, str):
        raise MinigradError(
            f"memory_map needs the text of a program, and {shown(code)} is not one",
            hint='memory_map("""..."""), with a statement in each line',
        )
    code = code.strip("\n")
    states = states_of(code)
    lines = code.splitlines()
    high = max(map(_height, states))
    pages = []
    for state in states:
        code_block = {"file": "", "line": state.line, "first": 1, "text": lines}
        pages.append(Page(_drawn(state, lines, high), _says(state), (("the program", ("code", code_block)),)))
    last = states[-1]
    counts = (len(last.names), "name"), (len(last.versions), "buffer"), (len(states), "line")
    about = f"memory map: {', '.join(counted(*each) for each in counts)}"
    return Flipbook(about, [pages], unit="line", words="\n".join(f"{s.line}  {_says(s)}" for s in states))


def _says(state: State) -> str:
    """The state in a sentence."""
    if state.error:
        return f"stopped: {state.error}"
    words = []
    for number, version in state.versions.items():
        names = [name for name, place in state.names.items() if place.buffer == number]
        if names:
            words.append(f"{called(number)}, version {version}: {', '.join(names)}")
    stale = [f"{each.name} kept version {each.version} of {called(each.buffer)}" for each in state.kept
             if each.version != state.versions[each.buffer]]
    return "; ".join([*words, *stale]) or "no array yet"


def _height(state: State) -> float:
    rows = sum(-(-len(values) // PER_ROW) * (CELL + 10) + 34 for values in state.numbers.values())
    return TOP + max(rows, 34.0 * len(state.names) + 10) + 44


def _drawn(state: State, code: Sequence[str], high: float) -> Drawing:
    drawing = Drawing(BUFFERS + PER_ROW * CELL + 6, high)
    drawing.text(NAMES, 12, f"{state.line}  {code[state.line - 1]}", code=True, fill="bad" if state.error else "ink")
    for x, title in ((NAMES, "names"), (TENSORS, "views"), (BUFFERS, "buffers")):
        drawing.heading(x, TOP + 12, title)
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(state.names)}
    starts = _buffers(drawing, state, colours)
    _views(drawing, state, colours, starts)
    if any(state.written.values()):
        legend(drawing, BUFFERS, high - 2, [("now", "now", "changed by this line")])
    return drawing


def _buffers(drawing: Drawing, state: State, colours: dict[str, str]) -> dict[int, float]:
    """The cells of each buffer, with a line below a cell for each view that reads it; the middle of each first row."""
    starts, y = {}, TOP + 30.0
    for number, values in state.numbers.items():
        readers = [(name, set(place.indices())) for name, place in state.names.items() if place.buffer == number]
        free = "" if readers else ", free"
        drawing.text(BUFFERS, y + 12, f"{called(number)}, version {state.versions[number]}{free}", bold=bool(readers),
                     fill="ink" if readers else "quiet")
        y += 20
        starts[number] = y + CELL / 2
        for i, value in enumerate(values):
            row, column = divmod(i, PER_ROW)
            x, top = BUFFERS + column * CELL, y + row * (CELL + 10)
            new = i in state.written.get(number, ())
            drawing.rect(x, top, CELL, CELL - 8, "tint" if readers else "paper", "now" if new else "line",
                         thick=3 if new else 1, round=1)
            drawing.text(x + CELL / 2, top + 17, f"{value:g}", anchor="middle", bold=new,
                         fill="ink" if readers else "quiet", room=CELL - 2)
            for place, (name, read) in enumerate(readers):
                if i in read:
                    line = top + CELL - 6 + 2.6 * place
                    drawing.path([(x + 1, line), (x + CELL - 1, line)], colours[name], thick=2)
        y += -(-len(values) // PER_ROW) * (CELL + 10) + 14
    return starts


def _views(drawing: Drawing, state: State, colours: dict[str, str], starts: dict[int, float]) -> None:
    """Names, the views that they refer to, and arrows to the buffers."""
    for i, (name, place) in enumerate(state.names.items()):
        y, colour = TOP + 46 + 34.0 * i, colours[name]
        drawing.text(NAMES, y + 5, name, bold=True, code=True)
        drawing.path([(NAMES + 8 * len(name) + 6, y), (TENSORS - 4, y)], colour, thick=1.8, arrow=True)
        drawing.rect(TENSORS, y - 14, 148, 28, "paper", colour, thick=1.6)
        shape = " × ".join(map(str, place.shape)) or "one number"
        steps = ", ".join(map(str, place.strides))
        drawing.text(TENSORS + 7, y - 2, shape + (f", strides {steps}" if steps else ""), size=11, room=136)
        kept = [f"kept {called(each.buffer)}, version {each.version}" for each in state.kept if each.name == name]
        stale = any(each.version != state.versions[each.buffer] for each in state.kept if each.name == name)
        about = "; ".join(kept) if kept else f"from element {place.offset}"
        drawing.text(TENSORS + 7, y + 10, about, size=10, fill="bad" if stale else "quiet", bold=stale, room=136)
        drawing.path([(TENSORS + 148, y), (BUFFERS - 6, starts[place.buffer])], colour, thick=1.8, arrow=True)
