"""Why this kernel: the levels that a call goes through, from the user's line to NumPy, and what each one decides.

It is the second page of `mg.viz.bench`, and its first one where sliders make no sense.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise, zip_longest
from textwrap import shorten
from types import SimpleNamespace
from typing import Any, NamedTuple

import minigrad

from ..compile.look.watching import Call, Calls, watching
from ..compile.running.profiler import profile
from ..core.mode import Branch
from ..core.primitive import Primitive
from ..core.programs import programs_run
from ..devices.dispatch_table import is_registered, label_of
from ..devices.registry import DEVICES
from ..support.errors import MinigradError
from ..support.source import Where, in_library, line_of
from ..support.table import counted
from .drawing import DASHED, Drawing
from .flipbook import Flipbook, Knob, Page
from .naming import index_text, layer_name, scope_name
from .notation import as_text, expression_at
from .phases import FORWARD, is_tangent, phase_of
from .rules import OUT, mathml
from .scene import excerpt, excerpt_at, inside, layer_around

MOST = 300  # paths that have a page
WORDS = 40  # characters of an expression of the library that is written out
AROUND = 4  # lines of source before and after the current one
WIDTH, HEIGHT, LINE, GAP = 440.0, 58.0, 17.0, 14.0  # of a level, of one more line in it, and between levels
STEP = HEIGHT + GAP
LOOKED_UP = "the primitive", "kernel table"  # what the dispatch reads and does not call
EXAMPLE = "mg.viz.bench(mg.tanh, x)"
OPENED = (  # those of a softmax, or of an optimizer's update, with at least 128 elements
    " Here each operation runs alone. A plain call may run several, such as those of softmax, as a compiled program."
)
COMPILED = "mg.viz.fusion shows the kernels of jitted functions"

# The rooms of minigrad, by the beginning of a file's name: a word, and a sentence of at most a line.
ROOMS = [
    ("core/emit.py", "dispatch", "the general path: any number, size and type of inputs."),
    ("core/quick.py", "dispatch", "the fast path: eager, one device, inputs of one type."),
    ("devices/", "dispatch", ""),
    ("core/", "tensor", ""),
    ("ops/", "operation", ""),
    ("control/", "control", "In eager mode, Python runs its rounds, or one branch."),
    ("nn/", "module", ""),
    ("autodiff/forward.py", "forward mode", "It computes a tangent beside each value."),
    ("autodiff/", "autodiff", ""),
    ("", "minigrad", ""),
]
SEEN = "module", "control", "minigrad"  # whose expressions tell calls apart, and then those of operations
CASTS = "Interpreter.manifest", "emit"  # a cast of an input that the dispatch makes
UNNAMED = "device", "dtype", "out"  # attributes that other levels show


class Path(NamedTuple):
    """Calls that are alike, and the levels that the first one goes through."""

    calls: list[Call]
    levels: list[Level]

    @property
    def call(self) -> Call:
        """The first call."""
        return self.calls[0]

    @property
    def times(self) -> int:
        """How many calls there are."""
        return len(self.calls)

    @property
    def module(self) -> str:
        """The name of the module that all calls lie in, if it is one."""
        path, *others = {layer_around(call.scope) for call in self.calls}
        return "" if others else layer_name(path)

    @property
    def name(self) -> str:
        """The operation; of a view, whether it copies."""
        return self.call.op.name + " (copy)" * (self.call.op.kind == "view" and self.call.moves)

    @property
    def types(self) -> str:
        """The types of all calls, or of the first where they differ."""
        found = [*dict.fromkeys(map(_types, self.calls))]
        return "the first " * (len(found) > 1) + found[0]

    @property
    def runs(self) -> str:
        """What runs how often: the operation, the kernel and the types."""
        often = f", {self.times} times" * (self.times > 1)
        return f"{self.name} on {self.call.device} runs {_kernel(self.call)}{often}: {self.types}"


class Level(NamedTuple):
    """One level of a call: its part of minigrad, its function and source, and what is decided there."""

    part: str
    name: str
    code: dict[str, Any] | None
    says: str


def called(function: Callable[[], Any], aside: str = "", most: int = MOST) -> Flipbook:
    """The calls of kernels in one run of a function; each page says what is said `aside`."""
    with profile() as run:
        calls = calls_of("bench", function, COMPILED)
    aside += f" Compiled programs ran too: {COMPILED}." * (run.launches > 0)
    working = sum([call.moves for call in calls])
    kernels = counted(len({(call.op, call.device) for call in calls}), "kernel")
    ran = f"{counted(working, 'operation')}, {counted(len(calls) - working, 'view')}, {kernels}"
    paths = paths_of(calls, most)
    pages = [[page] for page in pages_of(calls, paths, aside)]
    phases = [phase_of(path.call.frames, bool(path.call.origin)) for path in paths]
    # It opens on the kernel with most operations; one that the backward pass runs is below many levels of autodiff.
    work = [path.times * path.call.count.flops * (phase == FORWARD) for path, phase in zip(paths, phases)]
    lines = [f"{page.name}: {line}" for [page], line in zip(pages, _lines(paths))]
    knob = Knob("call", tuple(lines), work.index(max(work)), choice=True, groups=tuple(phases) * (len({*phases}) > 1))
    words = "\n".join([*[f"{i}. {path.runs}" for i, path in enumerate(paths, 1)], aside]).rstrip()
    title = f"why these kernels run, operation by operation ({ran})"
    # The calls themselves keep arrays.
    quoted: list[Any] = [SimpleNamespace(where=path.call.frames[0], op=path.call.op) for path in paths]
    return Flipbook(title, pages, (knob,), words=words, wide=True).titled("", nodes=quoted)


def calls_of(view: str, function: Callable[[], Any], hint: str) -> Calls:
    """The kernels that a function runs.

    >>> [call.op.name for call in calls_of("bench", lambda: mg.ones(2), "")]
    ['full']
    """
    devices = len(DEVICES)
    with watching() as calls:
        function()
    for name in [*DEVICES][devices:]:
        raise MinigradError(f"{view}: {name} was first used in this call", hint="the same call again shows its kernels")
    if not calls:
        raise MinigradError(
            f"{view}: no operation ran", expect="a function that computes with tensors", hint=hint
        )
    return calls


def paths_of(calls: Sequence[Call], most: int) -> list[Path]:
    """The first paths in order; calls of one operation by the same expressions, as in equal layers, have one."""
    alike: dict[Any, list[Call]] = {}
    for call in calls:  # an expression may have several instructions
        ways = [expression_at(where) or line_of(where) for where in (*call.frames, call.origin)]
        branches = [name for name in call.scope if isinstance(name, Branch)]
        alike.setdefault((call.op, call.moves, _kernel(call), *branches, *ways), []).append(call)
    return [Path(same, levels_of(same[0])) for same in [*alike.values()][:most]]


def pages_of(calls: Calls, paths: Sequence[Path], aside: str) -> list[Page]:
    """A page for each path: the levels in the drawing, and beside it their decisions and the sources."""
    seen = sum([path.times for path in paths])
    if len(calls) > seen:
        aside = f" Only {seen:,} of {len(calls):,} calls have pages.{aside}"
    if calls.held_back and programs_run():
        aside += OPENED
    pages = []
    for i, path in enumerate(paths, 1):
        call, levels = path.call, path.levels
        rows = [[level.part, level.says] for level in levels if level.says]
        sources = [(f"{level.part}, {level.name}", ("code", level.code)) for level in levels if level.code]
        heading = "decided on the way" + " of the first call" * (path.times > 1)  # another one may differ
        blocks = *formulas_of(call.op, **call.attrs), (heading, ("table", {"head": None, "rows": rows})), *sources
        first = f"{i}. " * (len(paths) > 1)  # what is read aloud differs from call to call
        name = f"{first}{path.name}" + f" × {path.times}" * (path.times > 1) if first else "why this kernel"
        pages.append(Page(_drawn(levels, path.types), f"{first}{path.runs}.{aside}", blocks, name))
    return pages


def _lines(paths: Sequence[Path]) -> list[str]:
    """What each path computes; of those of one operation that read alike, also what first tells them apart.

    That is the module, the line, expressions of the library (the innermost first, then those in operations), the types.
    """
    rows: list[Any] = [(path.name, _computed(path.call)) for path in paths]
    within = zip_longest(*[[path.module, _place(path.call), *_within(path.call)] for path in paths], fillvalue="")
    results = [re.sub("^(the first )?.*→ ", r"\1", path.types) for path in paths]
    for column in (*within, results, [path.types for path in paths], [_kernel(path.call) for path in paths]):
        several = Counter([head for head, _ in {*zip(rows, column)}])
        rows = [(*head, each * (several[head] > 1)) for head, each in zip(rows, column)]
    return [" ← ".join(filter(None, [*row[:3:-1], *row[2:0:-1], row[3]])) for row in rows]


def _place(call: Call) -> str:
    """The user's function and line."""
    where = call.origin or call.frames[0]
    return f"{where[0].co_qualname.rpartition('.<locals>.')[2]}, line {line_of(where)[1]}"


def _within(call: Call) -> list[str]:
    """What the library's code computes, the innermost expression first, and then in operations the outermost."""
    rooms = [(_room(each)[1], _written(each)) for each in call.frames[1:]]
    return [text for room, text in rooms[::-1] if room in SEEN] + [text for room, text in rooms if room == "operation"]


def _computed(call: Call) -> str:
    """The expression in the user's code that a call computes, or whose gradient or tangent it computes."""
    where = call.origin or call.frames[0]
    text = _written(where) or line_in(_frame(where, ""))
    text = f"∂({text})" if call.origin else text
    return f"tangent of {text}" if is_tangent(call.frames) else text


def formulas_of(op: Primitive, axes: Any = (1, 0), **_: Any) -> list[tuple[str, Any]]:
    """What an operation computes, and its derivatives; of a product, what it passes back."""
    back = "what it passes back to" if OUT in "".join(op.local.values()) else "its derivative by"
    formula = op.formula if axes == (1, 0) else rf"\operatorname{{permute}}\ x\ \text{{by}}\ {axes}"
    found = {
        f"what {op.name}({', '.join(op.inputs)}) computes": formula,
        f"{back} {', '.join(op.local)}": r",\quad ".join(op.local.values()),
    }
    return [(says, ("math", mathml(latex))) for says, latex in found.items() if latex]


def levels_of(call: Call) -> list[Level]:
    """The levels of a call.

    >>> from minigrad.compile.look.watching import watching
    >>> with watching() as calls:
    ...     y = mg.tanh(mg.ones(2))
    >>> [level.part for level in levels_of(calls[1])]
    ['your line', 'dispatch', 'the primitive', 'kernel table', 'kernel']
    """
    op = call.op
    name = op.name
    arrays = [value for value in call.values if hasattr(value, "dtype")]
    frames = [_frame(where, name) for where in call.frames]
    # Modules lie in modules, and the general way takes several functions: the last one counts, except of operations.
    # A dispatch that leads to another mode decides nothing.
    levels = [a for a, b in zip(frames, [*frames[1:], None])
              if a.part == "operation" or not (b and a.part in (b.part, "dispatch"))]
    how = levels[-1].says if levels[-1].part == "dispatch" else "It calls the kernel directly."
    levels[-1] = levels[-1]._replace(says=f"{how}{_types_made(call)}")
    infer = getattr(op.infer, "func", op.infer).__code__  # a partial function has no code of its own
    declared = getattr(inspect.unwrap(getattr(minigrad, name, op.infer)), "__code__", infer)
    known = declared in [code for code, _ in call.frames]  # it has a level of its own
    rules = f"gradient rules for {', '.join(op.rules) or 'no input'}"
    own = None if replaced(call) else getattr(inspect.unwrap(call.kernel), "__code__", None)
    ends = "" if own else " It is compiled code: Python's part ends here."
    chosen = [
        _frame(each.where, "")._replace(part="control", says=f"In eager mode only one branch runs: {scope_name(each)}.")
        for each in call.scope if isinstance(each, Branch)
    ]
    return [
        *chosen, *levels,
        Level("the primitive", name, defined(infer if known else declared),
              f"{op.kind}, the same for all devices, with {rules}.{_shapes(call, arrays)}"),
        Level("kernel table", f"{call.device} × {name}", None,
              f"On {call.device}, device.kernels[{name!r}] is {label_of(call.kernel)}"
              f"{' (registered)' * is_registered(call.kernel)}."),
        Level("kernel", _kernel(call), own and defined(own),
              f"{_memory(call)}.{ends}"),
    ]


def _room(where: Where) -> tuple[str, str, str]:
    """The part of minigrad that an instruction is in; for one of the user, the last one, which is not read."""
    file = inside(where[0].co_filename)
    return next(room for room in ROOMS if file.startswith(room[0]))


def _written(where: Where) -> str:
    """The expression at an instruction; empty where the code has none, such as a line that defines a function."""
    found = expression_at(where)
    text = ast.unparse(found) if found else ""
    return as_text(found, {}) if len(text) > WORDS and in_library(where[0].co_filename) else text


def _frame(where: Where, op: str) -> Level:
    code = where[0]
    name = code.co_qualname.replace(".<locals>", "")
    if name.endswith(".apply"):  # the quick form, one for each operation
        name = op
    _, part, says = _room(where) if in_library(code.co_filename) else ("", "your line", "")
    return Level(part, name, excerpt(where, AROUND), says)


def _kernel(call: Call) -> str:
    """What ran, in a sentence; a kernel of minigrad has the name of its operation, which says nothing."""
    label = label_of(call.kernel)
    if replaced(call):
        return f"machine code in place of {label}"
    library = "machine code" if call.compiled else call.device.ndarray.__module__.partition(".")[0]
    return f"minigrad's own {label} (it calls {library})" if label == call.op.name else label


def replaced(call: Call) -> bool:
    """Whether the device ran machine code in place of its kernel for an elementwise operation on large arrays."""
    return call.compiled and call.shared


# Decisions ------------------------------------------------------------------------------------------------------------


def _types_made(call: Call) -> str:
    """What the dispatch casts before an operation, or the rule for a number."""
    if CASTS in pairwise([code.co_qualname for code, _ in call.frames]):  # not written in the source
        return f" It is for an operation that needs {call.result.dtype}."
    number = any(isinstance(value, (bool, int, float)) or call.is_number(value) for value in call.values)
    return " A Python number takes the type of the tensor." * number


def _shapes(call: Call, arrays: Sequence[Any]) -> str:
    """The attributes, or of an elementwise operation the inputs that are repeated."""
    named = [f"{key} = {index_text(value) if key == 'index' else repr(value)}" for key, value in call.attrs.items()
             if key not in UNNAMED]
    if call.op.kind != "elementwise" or named:
        return f" Attributes: {'; '.join(named)}." * bool(named)
    wider = [str(value.shape) for value in arrays if value.shape != call.result.shape]
    to = f" broadcast to {call.result.shape} by strides of 0: no copy."
    return f" {' and '.join(wider)}{to}" * bool(wider)


def _memory(call: Call) -> str:
    if not call.moves:
        return "a view of the input: nothing is computed or copied"
    if call.attrs.get("out") is not None:
        return "in place: it writes over its first input"
    if call.op.kind == "view":
        return "in new memory: a view can't have this order of elements"
    return "in memory the device provides" if call.shared else "in new memory"


def _types(call: Call) -> str:
    made = call.result if isinstance(call.result, tuple) else (call.result,)
    given, results = [", ".join(map(_type, arrays)) for arrays in (call.values, made)]
    return f"{shorten(given, 240, placeholder=' …') or 'nothing'} → {results}"


def _type(array: Any) -> str:
    return f"{array.shape} {array.dtype}" if hasattr(array, "dtype") else repr(array)


# Sources --------------------------------------------------------------------------------------------------------------


def defined(code: Any) -> dict[str, Any] | None:
    """The source of a function at its `def`, which comes after the decorators."""
    later = enumerate(linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :], code.co_firstlineno)
    begins = (number for number, text in later if text.strip().startswith(f"def {code.co_name}("))
    return excerpt_at(code.co_filename, next(begins, code.co_firstlineno), None, AROUND)


def line_in(level: Level) -> str:
    """The line of code of a level, without a comment."""
    code = level.code
    return code["text"][code["line"] - code["first"]].partition("  # ")[0].strip() if code else ""


# The page -------------------------------------------------------------------------------------------------------------


def _drawn(levels: Sequence[Level], types: str) -> Drawing:
    """The levels, each a box that leads to its code; the last one has the types."""
    drawing, codes = Drawing(WIDTH, len(levels) * STEP - GAP + LINE), [level for level in levels if level.code]
    for i, level in enumerate(levels):
        y, dashes = i * STEP, DASHED * (level.part in LOOKED_UP)
        go = f"code:{codes.index(level)}" if level.code else ""
        lines = types.replace(" →", "\n→").split("\n") if level is levels[-1] else [line_in(level) or level.says]
        about = f"code of {level.name}" if go else ""
        drawing.rect(0, y, WIDTH, HEIGHT + LINE * (len(lines) - 1), dashes=dashes, about=about, go=go)
        drawing.text(18, y + 16, level.part, fill="quiet")
        drawing.text(18, y + 32, level.name, size=12.0, bold=True, room=WIDTH - 30)
        for number, line in enumerate(lines):
            drawing.text(18, y + 49 + LINE * number, line, size=11.0, room=WIDTH - 30, code=True)
        if i:
            drawing.path([(30, y - GAP), (30, y - 1)], "quiet", thick=1.6, dashes=dashes, arrow=True)
            if dashes:
                drawing.text(40, y - 2, "looked up", fill="quiet")
    return drawing
