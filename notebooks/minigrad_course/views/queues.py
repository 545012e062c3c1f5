"""What work costs on a device with its own memory: launches, kernels and copies, by a model instead of a clock.

A model gives the same picture on every machine, with a GPU or without one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from inspect import unwrap
from typing import Any, NamedTuple

from minigrad.compile.look.watching import Call
from minigrad.devices.dispatch_table import label_of
from minigrad.devices.registry import as_device
from minigrad.support.source import in_library
from minigrad.support.table import counted
from minigrad.viz.callpaths import calls_of
from minigrad.viz.drawing import Drawing, round_numbers, tick_text
from minigrad.viz.flipbook import Flipbook, Knob, Page, settings_of

PYTHON, COPY_IN, KERNEL, COPY_OUT = "Python", "copies in", "kernels", "copies out"  # what works on its own
SILENT = ("view", "structural")  # kinds of operations that compute nothing
NARROW, WIDE = 490.0, 570.0  # pictures that a slide and a notebook show whole
LANE, LEFT, ROW = 34.0, 92.0, 24.0
HOST, DEVICE = 76.0, 236.0  # where the box of the CPU ends, and where that of the device begins
FILLS = {"now": "tint", "there": "there-fill", "back": "back-fill", "good": "leaf-fill"}


class Speed(NamedTuple):
    """Microseconds to launch a kernel; bytes read and written, and numbers computed, in a microsecond."""

    launch: float
    moved: float
    computed: float


CPU = Speed(1.0, 10_000.0, 10_000.0)
FAST = Speed(5.0, 1_000_000.0, 1_000_000.0)  # a hundred times as fast, once a kernel runs
LINK = Speed(10.0, 10_000.0, 0.0)  # between the two memories


class Work(NamedTuple):
    """Something that is launched: on an engine, in a stream, and after other work, which is given by its numbers."""

    name: str
    engine: str
    time: float
    stream: int = 0
    after: tuple[int, ...] = ()


class Span(NamedTuple):
    """Work with its times: Python launches it, and the engine does it then or later."""

    work: Work
    launched: float
    begin: float
    end: float


def scheduled(works: Sequence[Work], launch: float) -> list[Span]:
    """When each work runs: a stream and an engine do one work at a time, in the order of the launches.

    >>> both = [Work("in", COPY_IN, 100), Work("add", KERNEL, 50, 0, (0,))]
    >>> [(span.launched, span.begin, span.end) for span in scheduled(both, 5)]
    [(5, 5, 105), (10, 105, 155)]
    """
    free: dict[Any, float] = {}
    spans: list[Span] = []
    for number, work in enumerate(works, 1):
        waits = free.get(work.engine, 0.0), free.get(work.stream, 0.0), *[spans[i].end for i in work.after]
        begin = max(launch * number, *waits)
        spans.append(Span(work, launch * number, begin, begin + work.time))
        free[work.engine] = free[work.stream] = begin + work.time
    return spans


def ended(spans: Sequence[Span]) -> float:
    """When the last work is done.

    >>> ended(scheduled([Work("add", KERNEL, 50)] * 3, 5))
    155
    """
    return max([span.end for span in spans], default=0.0)


def computes(call: Call) -> bool:
    """Whether a call runs a kernel: a view only changes shape and strides."""
    return call.op.kind not in SILENT


def time_of(call: Call, speed: Speed) -> float:
    """The time of a kernel.  It moves bytes and computes at the same time; the slower of the two counts."""
    result = getattr(call.result, "size", 0)
    computed = 2 * result * call.values[0].shape[-1] if call.op.name == "matmul" else result
    return float(max(call.count.bytes / speed.moved, computed / speed.computed))


def works_of(calls: Sequence[Call], device: str) -> list[Work]:
    """What a program of these calls launches: kernels on a device, copies to it and from it."""
    found = []
    for call in calls:
        if call.op.name == "to_device":
            engine = COPY_IN if call.device == device else COPY_OUT
            found.append(Work("copy", engine, LINK.launch + call.result.nbytes / LINK.moved))
        elif call.device == device and computes(call):
            found.append(Work(call.op.name, KERNEL, time_of(call, FAST)))
    return found


class Lanes:
    """A part of a drawing with a lane for each engine, over one axis of time."""

    def __init__(self, drawing: Drawing, y: float, names: Sequence[str], until: float) -> None:
        self.drawing, self.y, self.names = drawing, y, list(names)
        room = drawing.width - LEFT
        self.scale = room / (until or 1.0)
        for i, name in enumerate(self.names):
            drawing.text(0, y + i * LANE + 19, name, size=12.5)
            drawing.rect(LEFT, y + i * LANE, room, LANE - 6, "tint", "none", round=2)
        bottom = y + len(self.names) * LANE + 10
        for value in round_numbers(0.0, until, 6):
            drawing.text(LEFT + value * self.scale, bottom, tick_text(value), fill="quiet", anchor="middle")
        drawing.text(drawing.width, bottom + 14, "microseconds", fill="quiet", anchor="end")

    def block(self, lane: str, begin: float, end: float, colour: str, text: str = "", about: str = "") -> None:
        """Work in a lane.  The shortest is a line, which can still be seen."""
        x, width = LEFT + begin * self.scale, max((end - begin) * self.scale, 1.2)
        y, thin = self.y + self.names.index(lane) * LANE, width < 4
        self.drawing.rect(x, y, width, LANE - 6, colour if thin else FILLS[colour], "none" if thin else colour,
                          round=0.0 if thin else 2.0, about=about)
        if width > 7 * len(text):
            self.drawing.text(x + width / 2, y + 19, text, size=11.5, anchor="middle")


# ---- batches in a queue ----------------------------------------------------------------------------------------------

BATCHES, COPY, LAUNCH = 3, 100.0, 5.0
STREAMS, TIMES = (1, 2, 3), (50.0, 100.0, 200.0)


def batches(streams: int, time: float) -> list[Work]:
    """Three batches: each is copied to the device, a kernel of this time runs, and its result is copied back."""
    found: list[Work] = []
    for i in range(BATCHES):
        stream, at = i % streams, len(found)
        found += [Work(f"in {i + 1}", COPY_IN, COPY, stream), Work(f"kernel {i + 1}", KERNEL, time, stream, (at,)),
                  Work(f"out {i + 1}", COPY_OUT, COPY, stream, (at + 1,))]
    return found


def queue() -> Flipbook:
    """Three batches on a device, with one stream or several, and kernels of several lengths.

    >>> print(queue().text())
    1. One stream: Python is done after 45 microseconds, the device after 905.
    """
    knobs = Knob("streams", tuple(map(str, STREAMS))), Knob("kernel", tuple(f"{time:g} µs" for time in TIMES), 1)
    pages = [[_queue(STREAMS[i], TIMES[j])] for i, j in settings_of(knobs)]
    return Flipbook("three batches in the queue of a device", pages, knobs)


def _queue(streams: int, time: float) -> Page:
    spans = scheduled(batches(streams, time), LAUNCH)
    drawing = Drawing(NARROW, 4 * LANE + 26)
    lanes = Lanes(drawing, 0, (PYTHON, COPY_IN, KERNEL, COPY_OUT), ended(scheduled(batches(1, TIMES[-1]), LAUNCH)))
    for i, span in enumerate(spans):
        name, colour = span.work.name, ("there", "back", "good")[i // 3]
        lanes.block(PYTHON, span.launched - LAUNCH, span.launched - 1, "now", about=f"launches {name}")
        about = f"{name}: from {span.begin:g} to {span.end:g}"
        lanes.block(span.work.engine, span.begin, span.end, colour, str(i // 3 + 1), about)
    end = f"Python is done after {spans[-1].launched:g} microseconds, the device after {ended(spans):,.0f}."
    return Page(drawing, f"{('One stream', 'Two streams', 'Three streams')[streams - 1]}: {end}")


# ---- a device at work ------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """A program that has run: its calls, the kernels on the device among them, when they ran, and the CPU's time."""

    calls: list[Call]
    kernels: list[Call]
    spans: list[Span]
    alone: float

    @property
    def copies(self) -> list[Call]:
        return [call for call in self.calls if call.op.name == "to_device"]

    def said(self, setting: str) -> str:
        """What ran and how long it took."""
        took, busy = ended(self.spans), sum(time_of(call, FAST) for call in self.kernels)
        slower = took / max(self.alone, CPU.launch)
        ratio = f"{1 / slower:.1f} times as fast" if slower < 1 else f"{slower:.1f} times as slow"
        what = f"{counted(len(self.kernels), 'kernel')} and {counted(len(self.copies), 'copy', 'copies')}"
        return (
            f"{setting}: {what} take {took:.0f} microseconds, {ratio} as the CPU alone. "
            f"The device computes for {busy:.1f} of them."
        )


def at_work(programs: Mapping[str, Callable[[], object]], device: str, knob: str, start: int = 0) -> Flipbook:
    """Which kernels programs run on a device, what they copy to it and from it, and what the cost model says.

    >>> x = mg.ones((100, 100))
    >>> print(at_work({"one": lambda: (x.to("cpu:1") + 1).sum().to("cpu")}, "cpu:1", "program").text())
    one: 2 kernels and 2 copies take ... microseconds, ... times as slow as the CPU alone. The device computes for ...
    """
    as_device(device)  # before its kernels are watched
    runs = {name: _run(program, device) for name, program in programs.items()}
    first = next(iter(runs.values()))
    names = {call.op.name for call in first.kernels}
    title = f"{device} at work: {counted(len(first.kernels), 'call')} of {counted(len(names), 'kernel')}"
    pages = [[Page(_working(run, device), run.said(name))] for name, run in runs.items()]
    words = "\n".join(run.said(name) for name, run in runs.items())
    return Flipbook(title, pages, (Knob(knob, tuple(runs), start),), words=words)


def _run(program: Callable[[], object], device: str) -> Run:
    calls = calls_of("at_work", program, "a function of tensors")
    kernels = [call for call in calls if call.device == device and computes(call)]
    alone = sum(CPU.launch + time_of(call, CPU) for call in calls if computes(call))
    return Run(calls, kernels, scheduled(works_of(calls, device), FAST.launch), alone)


def _working(run: Run, device: str) -> Drawing:
    """The two memories with the copies between them, the kernels that ran, and below them the times."""
    calls = Counter(call.op.name for call in run.kernels)
    high = max(46 + ROW * len(calls), 50.0 * len(run.copies) + 30)
    drawing = Drawing(WIDE, high + 20 + 4 * LANE + 26)
    drawing.rect(0, 0, HOST, high, "paper", "line", thick=1.6)
    drawing.heading(12, 24, "cpu")
    drawing.rect(DEVICE, 0, WIDE - DEVICE, high, "there-fill", "there", thick=1.6)
    drawing.heading(DEVICE + 12, 24, device)
    for i, call in enumerate(run.copies):
        y = 70 + i * (high - 40) / len(run.copies)
        ends = [(HOST + 4, y), (DEVICE - 4, y)]
        drawing.path(ends if call.device == device else ends[::-1], "back", thick=2.4, arrow=True)
        shape = " × ".join(map(str, call.result.shape)) or "1 number"
        drawing.text((HOST + DEVICE) / 2, y - 20, shape, size=12, anchor="middle", fill="back")
        drawing.text((HOST + DEVICE) / 2, y - 6, f"{call.result.nbytes:,} bytes", size=12, anchor="middle", fill="back")
    for i, (name, count) in enumerate(calls.most_common()):
        y = 38 + i * ROW
        drawing.text(DEVICE + 12, y + 14, name, size=12.5, bold=True)
        for k in range(min(count, 9)):
            drawing.rect(DEVICE + 84 + k * 11, y + 3, 8, 13, "there", "none", round=2)
        label = f"{_named(as_device(device).kernels[name])}, {count} ×"
        drawing.text(WIDE - 14, y + 14, label, size=12, anchor="end", room=140)
    _times(drawing, high + 20, run)
    return drawing


def _named(kernel: Any) -> str:
    code = getattr(unwrap(kernel), "__code__", None)
    return label_of(kernel) if code is None or in_library(code.co_filename) else "yours"


def _times(drawing: Drawing, y: float, run: Run) -> None:
    lanes = Lanes(drawing, y, (PYTHON, "copies", KERNEL, "the CPU alone"), max(ended(run.spans), run.alone))
    for span in run.spans:
        lanes.block(PYTHON, span.launched - FAST.launch, span.launched - 1, "now", about=f"launches {span.work.name}")
        kernel, about = span.work.engine == KERNEL, f"{span.work.name}: {span.work.time:.3g} microseconds"
        lanes.block(KERNEL if kernel else "copies", span.begin, span.end, "there" if kernel else "back", about=about)
    lanes.block("the CPU alone", 0, run.alone, "good", f"{run.alone:.0f}", "the same kernels on the CPU")
