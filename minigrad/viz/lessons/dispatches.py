"""`mg.viz.dispatch`: which kernel ran for each operation of a function, and why that one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...compile.look.watching import Call
from ...core.emit import LARGE
from ...devices.registry import DEVICES, MAKERS, Device, as_device
from ...devices.table import label_of
from ...support.source import in_library
from ...support.table import counted
from ..drawing import Drawing
from ..flipbook import Flipbook, Page
from .watching import calls_of, without_programs

MOST = 120  # operations that have a page
ROWS = 16  # operations in the table at once
ROW, NAME, CELL = 26.0, 130.0, 150.0


class Choice(NamedTuple):
    """An operation, the kernel that ran for it, the types, and a line for each reason."""

    name: str
    device: str
    kernel: str
    given: str
    reasons: list[tuple[str, str]]


def dispatch(function: Callable[..., Any], *args: Any, devices: Any = ()) -> Flipbook:
    """Show, for each operation of a function, which kernel of the table of operations and devices runs, and why.

    `devices` are more columns of the table, after the devices in use.

    >>> x = mg.asarray([[1], [2]])
    >>> book = mg.viz.dispatch(lambda x: mg.tanh(x) + mg.ones(3), x)
    >>> book
    <dispatch of 4 operations: 4 kernels>
    >>> print(book.text())
    1. astype on cpu runs astype: (2, 1) int64 → (2, 1) float32
    2. tanh on cpu runs numpy.tanh: (2, 1) float32 → (2, 1) float32
    3. full on cpu runs full: nothing → (3,) float32
    4. add on cpu runs numpy.add: (2, 1) float32, (3,) float32 → (2, 3) float32
    """
    columns = [as_device(device) for device in devices]
    hint = "mg.jit chooses kernels when it compiles a function: mg.jit(f).program(x) lists its steps"
    calls = calls_of("dispatch", function, args, "mg.viz.dispatch(mg.tanh, x)", hint)
    choices = _choices(calls)
    table = list(dict.fromkeys([*DEVICES.values(), *columns]))
    rows = list(dict.fromkeys(choice.name for choice in choices))
    shown = [*zip(choices, calls)][:MOST]
    pages = [_page(i, choice, call, rows, table, choices) for i, (choice, call) in enumerate(shown)]
    count, kernels = len(calls), len({(c.name, c.device) for c in choices})
    title = f"dispatch of {counted(count, 'operation')}: {counted(kernels, 'kernel')}"
    title += f", pages for the first {MOST}" * (count > MOST)
    words = [f"{i}. {c.name} on {c.device} runs {c.kernel}: {c.given}" for i, c in enumerate(choices, 1)]
    return Flipbook(title, [pages], unit="operation", words="\n".join(words), cover=0, wide=True)


def _choices(calls: list[Call]) -> list[Choice]:
    cast: dict[int, Call] = {}  # casts, by the identity of their results, which the calls keep alive
    found = []
    for call in calls:
        found.append(Choice(call.op.name, call.device.name, label_of(call.kernel), _types(call), _reasons(call, cast)))
        if call.op.name == "astype":
            cast[id(call.result)] = call
    return found


def _types(call: Call) -> str:
    given = [_type(v) for v in call.values if isinstance(v, np.generic) or hasattr(v, "shape")]
    made = call.result if isinstance(call.result, tuple) else (call.result,)
    return f"{', '.join(given) or 'nothing'} → {', '.join(map(_type, made))}"


def _type(array: Any) -> str:
    return f"{array.shape} {array.dtype}" if hasattr(array, "shape") else repr(array)


def _reasons(call: Call, cast: dict[int, Call]) -> list[tuple[str, str]]:
    arrays = [v for v in call.values if hasattr(v, "shape")]
    return [
        ("device", _device(call, arrays)),
        ("dtype", _dtype(call, arrays, cast)),
        ("shapes", _shapes(call, arrays)),
        ("memory", _memory(call, arrays)),
        ("door", _door(call)),
    ]


def _device(call: Call, arrays: list[Any]) -> str:
    if "device" in call.attrs:
        return f"{call.device}: an operation that makes a tensor has a device as argument"
    inputs = "its input is" if len(arrays) == 1 else "all its inputs are"
    return f"{call.device}: {inputs} there, and minigrad never copies between devices by itself"


def _dtype(call: Call, arrays: list[Any], cast: dict[int, Call]) -> str:
    casts = [cast[id(v)] for v in arrays if id(v) in cast]
    if call.op.name == "astype":
        user = not any(in_library(code.co_filename) for code, _ in call.frames[1:2])
        return f"from {arrays[0].dtype} to {call.attrs['dtype']}" + (", as your line says" if user else "")
    if casts:
        before = ", ".join(f"{c.values[0].dtype} became {c.attrs['dtype']}" for c in casts)
        return f"{before}, by an astype before: a kernel never gets mixed types"
    numbers = [v for v in call.values if isinstance(v, (bool, int, float)) or (hasattr(v, "shape") and v.shape == ())]
    if not arrays:
        return f"{call.attrs.get('dtype', 'that of the result')}: there are no inputs"
    if call.op.casting is False:
        return "any: it only moves numbers, or reads none"
    own = f"{arrays[0].dtype}: the inputs agree" if len(arrays) > 1 else f"{arrays[0].dtype}, as its input"
    return own + ("; a Python number takes the type of the tensor" if numbers and len(call.values) > 1 else "")


def _shapes(call: Call, arrays: list[Any]) -> str:
    if call.op.kind != "elementwise" or len(call.values) == 1:
        return "; ".join(f"{key} = {value!r}" for key, value in call.attrs.items() if key != "device") or "unchanged"
    target = call.result.shape
    wider = [v.shape for v in arrays if v.shape != target]
    if not wider:
        return f"all {target}: element by element"
    repeated = " and ".join("the number" if s == () else str(s) for s in wider)
    return f"{repeated} broadcast to {target}: repeated by strides of 0, never copied"


def _memory(call: Call, arrays: list[Any]) -> str:
    if call.op.kind == "view":
        strided = not getattr(call.result, "flags", None) or not call.result.flags.c_contiguous
        order = "; its elements are not in order" if strided else ""
        return f"a view: nothing is computed or copied, and the result shares the input's memory{order}"
    strided_inputs = [v for v in arrays if v.ndim and not getattr(getattr(v, "flags", None), "c_contiguous", True)]
    read = "; an input is a view with strides, which is read in place" if strided_inputs else ""
    if call.shared:
        return f"large: the device provides the memory, and threads may share the work{read}"
    return f"new memory for the result{read}"


def _door(call: Call) -> str:
    names = [code.co_qualname for code, _ in call.frames if code.co_filename.endswith(("emit.py", "quick.py"))]
    if names and names[-1].startswith(("one_input", "two_inputs")):
        return f"{names[-1].split('.')[0]}, the short way: eager, one device, no cast, fewer than {LARGE:,} elements"
    if names:
        return "emit, the general way: for casts, attributes, large tensors, and modes that keep recipes"
    return "none: minigrad called the kernel directly"


def _page(
    at: int, choice: Choice, call: Call, rows: list[str], devices: list[Device], choices: list[Choice]
) -> Page:
    whose = ", which you registered" if call.registered else ""
    says = f"{choice.name} on {choice.device}: {choice.kernel} runs{whose}.{without_programs()}"
    blocks = (
        ("inputs and result", ("text", choice.given)),
        ("why this kernel", ("table", {"head": None, "rows": [list(reason) for reason in choice.reasons]})),
    )
    return Page(_drawn(at, choice, rows, devices, choices), says, blocks)


def _drawn(at: int, choice: Choice, rows: list[str], devices: list[Device], choices: list[Choice]) -> Drawing:
    """The part of the table of operations and devices that is used, with the kernel that runs."""
    here = rows.index(choice.name)
    first = max(0, min(here - ROWS // 2, len(rows) - ROWS))
    seen = rows[first : first + ROWS]
    absent = [kind for kind in MAKERS if kind not in {device.kind for device in devices}][:2]
    left = NAME + 50
    drawing = Drawing(left + CELL * (len(devices) + len(absent)), 44 + ROW * min(len(rows), ROWS) + 24)
    drawing.heading(0, 14, "operation × device")
    for i, device in enumerate(devices):
        lit = device.name == choice.device
        drawing.text(left + i * CELL + 8, 36, device.name, bold=True, fill="now" if lit else "ink", size=12)
    for i, kind in enumerate(absent):
        drawing.text(left + (len(devices) + i) * CELL + 8, 36, kind, fill="quiet", size=12)
    for i, name in enumerate(seen):
        y = 44 + i * ROW
        calls = [k for k, other in enumerate(choices) if other.name == name]
        go = f"page:{next((k for k in calls if at < k < MOST), calls[0])}" if calls[0] < MOST else ""
        drawing.rect(0, y, left - 6, ROW - 4, "tint" if name == choice.name else "paper", "line", go=go,
                     about=f"{name}: {len(calls)} times")
        drawing.text(8, y + 15, name, bold=name == choice.name, room=NAME - 10, size=11)
        drawing.text(left - 14, y + 15, f"× {len(calls)}", fill="quiet", anchor="end")
        for j, device in enumerate(devices):
            _cell(drawing, left + j * CELL, y, name, device, choice)
        for j in range(len(absent)):
            drawing.text(left + (len(devices) + j) * CELL + 8, y + 15, "not in use", fill="quiet")
    if len(rows) > ROWS:
        drawing.text(0, 44 + ROWS * ROW + 14, f"{len(rows) - ROWS} more operations", fill="quiet")
    return drawing


def _cell(drawing: Drawing, x: float, y: float, name: str, device: Device, choice: Choice) -> None:
    kernel = device.kernels.get(name)
    label = "–" if kernel is None else label_of(kernel)
    lit = (name, device.name) == (choice.name, choice.device)
    drawing.rect(x, y, CELL - 6, ROW - 4, "there-fill" if lit else "paper", "now" if lit else "line",
                 thick=2.4 if lit else 0.8, about=f"{name} on {device.name}: {label}")
    drawing.text(x + 8, y + 15, label, bold=lit, fill="ink" if lit else "quiet", room=CELL - 22, size=11)
