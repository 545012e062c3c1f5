"""The pictures of unit 13: rings of workers, chunks, bytes, overlap, slow workers, memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import minigrad as mg
from lectures.site.drawn import LARGE, SMALL, Box, Sketch

from .shared import draw_digits


def _ring(sketch: Sketch, x: float, y: float, radius: float, many: int, size: float, named: bool = True) -> list[Box]:
    """Workers in a circle, with an arrow from each to the next."""
    places = [(x + radius * math.sin(2 * math.pi * i / many), y - radius * math.cos(2 * math.pi * i / many))
              for i in range(many)]
    if named:
        boxes = [sketch.box(*place, str(i), width=size, height=size) for i, place in enumerate(places)]
        for i, box in enumerate(boxes):
            sketch.arrow(box, boxes[(i + 1) % many], bend=0.14 * radius, colour="back")
        return boxes
    for px, py in places:
        sketch.dot(px, py, "there", size)
    return []


def cover() -> Sketch:
    """Two rings, one of four workers and one of many."""
    sketch = Sketch(800, 220)
    _ring(sketch, 150, 110, 76, 4, 48)
    _ring(sketch, 500, 110, 96, 60, 4, named=False)
    sketch.label(150, 110, "4", size=LARGE, bold=True)
    sketch.label(500, 110, "1,000", size=LARGE, bold=True)
    sketch.number(320, 110, "1", "back", LARGE)
    sketch.number(700, 110, "?", "back", LARGE)
    sketch.label(320, 156, "sent by each", size=SMALL, fill="quiet")
    sketch.label(700, 156, "times as much", size=SMALL, fill="quiet")
    return sketch


def _petabyte(known: bool) -> Sketch:
    sketch = Sketch(800, 240)
    for y, name, length, said in ((70, "1 machine", 440, "11.6 days"), (170, "100,000 machines", 4, "10 seconds")):
        sketch.label(230, y, name, anchor="end", bold=True)
        if known:
            bar = sketch.bar(250, y, length, "wrong" if length > 9 else "leaf", height=40)
            sketch.label(bar.right[0] + 12, y, said, anchor="start", bold=True)
        else:
            sketch.label(256, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
    sketch.label(400, 222, "1 PB, at 1 GB a second each", size=SMALL, fill="quiet")
    return sketch


def petabyte() -> Sketch:
    """A petabyte, by one machine and by many."""
    return _petabyte(False)


def petabyte_known() -> Sketch:
    """Days and seconds."""
    return _petabyte(True)


# ---- data parallel ---------------------------------------------------------------------------------------------------


def _parallel(meeting: str, look: str) -> Sketch:
    """Four workers, each with a part of the batch; their gradients meet."""
    sketch = Sketch(800, 284)
    sum_ = sketch.box(640, 135, meeting, look, width=130, height=60)
    for i in range(4):
        y = 36 + 66 * i
        part = sketch.cells(20, y - 20, [["", "", "", ""]], "leaf", size=22, high=40)
        worker = sketch.box(250, y, f"worker {i}", width=140)
        gradient = sketch.box(430, y, "∂w", "gradient", width=70)
        sketch.arrow(part, worker)
        sketch.arrow(worker, gradient)
        sketch.arrow(gradient, sum_, colour="back")
    sketch.label(64, 272, "16 images each", size=SMALL, fill="quiet")
    return sketch


def data_parallel() -> Sketch:
    """What the workers exchange."""
    return _parallel("?", "empty")


def data_parallel_known() -> Sketch:
    """The mean of the gradients, and one step for all."""
    sketch = _parallel("mean", "gradient")
    sketch.label(760, 135, "→ step", bold=True, fill="back")
    return sketch


def star() -> Sketch:
    """All send to worker 0, which adds everything."""
    sketch = Sketch(800, 230)
    first = sketch.box(400, 60, "worker 0", "now", width=140)
    for i in range(7):
        sketch.arrow(sketch.box(70 + 110 * i, 180, str(i + 1), width=54), first, colour="back", thick=4)
    sketch.label(600, 40, "7 arrays come in", anchor="start", fill="bad", bold=True)
    return sketch


# ---- the ring, round by round ----------------------------------------------------------------------------------------

SIDE, HIGH, DOWN, TOP = 100.0, 40.0, 60.0, 32.0


def _chunks(counts: Sequence[Sequence[int]], sent: Sequence[int | None], says: str, adds: bool) -> Sketch:
    """Four workers and their chunks, with how many workers' numbers are in each; `sent` are the chunks on their way."""
    sketch = Sketch(800, 290)
    for worker, row in enumerate(counts):
        y = TOP + DOWN * worker
        sketch.label(150, y + HIGH / 2, f"worker {worker}", anchor="end", bold=True)
        for chunk, many in enumerate(row):
            look = "leaf" if many == 4 else "wrong" if many > 4 else "value" if many > 1 else "plain"
            text = "?" if many < 0 else "twice" if many > 4 else f"{many} of 4"
            sketch.cells(170 + SIDE * chunk, y, [[text]], look, size=SIDE - 8, high=HIGH, type_size=SMALL)
    for worker, number in enumerate(sent):
        if number is None:
            continue
        x, y = 170 + SIDE * number + SIDE / 2 - 4, TOP + DOWN * worker + HIGH
        colour = "back" if adds else "good"
        if worker < 3:
            sketch.arrow((x, y), (x, y + DOWN - HIGH), colour=colour, thick=3.4)
        else:
            right = 170 + 4 * SIDE + 10
            sketch.path([(x, y), (x, y + 12), (right, y + 12), (right, 10), (x, 10)], colour, thick=3.4)
            sketch.arrow((x, 10), (x, TOP), colour=colour, thick=3.4)
    for i, line in enumerate(says.split("\n")):
        fill = "ink" if i else "back" if adds else "good"
        sketch.label(610, 110 + 34 * i, line, anchor="start", bold=not i, fill=fill)
    return sketch


def _before(step: int) -> list[list[int]]:
    """How many workers' numbers are in the chunks before a round of the reduce-scatter: chunk c ends in worker c."""
    counts = [[1] * 4 for _ in range(4)]
    for i in range(1, step + 1):
        for worker in range(4):
            counts[(worker + 1) % 4][(worker - i) % 4] = i + 1
    return counts


def reduce_scatter() -> list[Sketch]:
    """Three rounds: each worker sends a chunk, and the next one adds it."""
    stages = [
        _chunks(_before(i), [(worker - i - 1) % 4 for worker in range(4)], f"round {i + 1}\nsend, add", True)
        for i in range(3)
    ]
    return [*stages, _chunks(_before(3), [None] * 4, "complete\none chunk\nin each worker", False)]


def all_gather() -> list[Sketch]:
    """Three rounds: the complete chunks go round."""
    counts, stages = _before(3), []
    for i in range(3):
        stages.append(_chunks(counts, [(w - i) % 4 for w in range(4)], f"round {i + 4}\nsend, replace", False))
        for worker in range(4):
            counts[(worker + 1) % 4][(worker - i) % 4] = 4
    return [*stages, _chunks(counts, [None] * 4, "all workers\nhave the sum", False)]


def second_round() -> Sketch:
    """After round 1: which chunk does each worker send?"""
    return _chunks(_before(1), [None] * 4, "round 2\nwho sends\nwhich chunk?", True)


def own_again() -> Sketch:
    """The same chunk once more is counted twice."""
    counts = _before(1)
    for worker in range(4):
        counts[(worker + 1) % 4][(worker - 1) % 4] = 5
    return _chunks(counts, [(worker - 1) % 4 for worker in range(4)], "the same again\ncounted twice", True)


# ---- bytes -----------------------------------------------------------------------------------------------------------


def _sent(known: bool) -> Sketch:
    sketch = Sketch(800, 240)
    sketch.label(200, 40, "its array", anchor="end", fill="quiet")
    sketch.bar(220, 40, 220, "plain", height=34)
    for y, name, times, said in ((115, "4 workers", 1.5, "1.5 ×"), (190, "1,000 workers", 1.998, "1.998 ×")):
        sketch.label(200, y, name, anchor="end", bold=True)
        if known or times == 1.5:
            bar = sketch.bar(220, y, 220 * times, "gradient", height=40)
            sketch.label(bar.right[0] + 12, y, said, anchor="start", bold=True)
        else:
            sketch.label(228, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
    return sketch


def sent() -> Sketch:
    """What a worker sends, for 4 workers and for 1,000."""
    return _sent(False)


def sent_known() -> Sketch:
    """It is less than twice its array, always."""
    return _sent(True)


def _halls(known: bool) -> Sketch:
    """Send first or begin to send: four workers that wait for each other."""
    sketch = Sketch(800, 290)
    boxes = _ring(sketch, 190, 145, 84, 4, 50)
    for box, (dx, dy, anchor) in zip(boxes, ((0, -38, "middle"), (32, 0, "start"), (0, 38, "middle"), (-32, 0, "end"))):
        word, colour = ("start", "good") if known else ("send", "bad")
        sketch.label(box.x + dx, box.y + dy, word, size=SMALL, fill=colour, anchor=anchor)
    lines = ("comm.send(x, next)", "y = comm.recv(before)") if not known else (
        "sending = comm.start_send(x, next)", "y = comm.recv(before)", "sending.wait()")
    for i, line in enumerate(lines):
        sketch.label(390, 100 + 42 * i, line, anchor="start", code=True, size=18)
    sketch.label(390, 240, "begins, and goes on" if known else "send waits until it is received", anchor="start",
                 fill="good" if known else "quiet", bold=True)
    return sketch


def deadlock() -> Sketch:
    """All send first."""
    return _halls(False)


def deadlock_known() -> Sketch:
    """Begin to send, receive, then wait."""
    return _halls(True)


# ---- the same curve --------------------------------------------------------------------------------------------------


def _ways(known: bool) -> Sketch:
    sketch = Sketch(800, 270)
    for i, (name, same) in enumerate((
        ("mean of the gradients", True), ("sum of the gradients", False), ("other first weights", False),
        ("batch norm, 16 images each", False), ("all read the same images", False),
    )):
        y = 30 + 52 * i
        sketch.box(250, y, name, "plain", width=400, height=42)
        if not known:
            sketch.number(540, y, "?", "back")
        elif same:
            sketch.tick(540, y, 14)
        else:
            sketch.cross(540, y, 12)
    sketch.label(650, 134, "one process?", bold=True, fill="quiet")
    return sketch


def ways() -> Sketch:
    """Five ways to train on four ranks."""
    return _ways(False)


def ways_known() -> Sketch:
    """One of them trains as one process does."""
    return _ways(True)


# ---- time ------------------------------------------------------------------------------------------------------------

MS = 3.1  # the length of a millisecond


def _lanes(overlap: bool | None) -> Sketch:
    """A step: forward 50 ms, backward 100 ms, four buckets of 15 ms each."""
    sketch = Sketch(800, 220)
    sketch.label(110, 60, "computing", anchor="end", size=SMALL, fill="quiet")
    sketch.label(110, 140, "network", anchor="end", size=SMALL, fill="quiet")
    for x, wide, name, look in ((0, 50, "forward", "value"), (50, 100, "backward", "gradient")):
        bar = sketch.bar(124 + x * MS, 60, wide * MS, look, height=46)
        sketch.label(bar.x, 60, name, size=SMALL, bold=True)
    if overlap is None:
        sketch.label(124 + 150 * MS, 140, "? ms", size=LARGE, bold=True, fill="back")
        return sketch
    for i in range(4):
        begin = 75 + 25 * i if overlap else 150 + 15 * i
        bar = sketch.bar(124 + begin * MS, 140, 15 * MS, "now", height=46)
        sketch.label(bar.x, 140, str(4 - i), size=SMALL, bold=True)
    end = 165 if overlap else 210
    sketch.label(min(124 + end * MS, 740), 195, f"{end} ms", bold=True, fill="back")
    return sketch


def after_backward() -> Sketch:
    """All buckets after the backward pass."""
    return _lanes(False)


def with_overlap() -> Sketch:
    """Each bucket when it is full: the last layers first."""
    return _lanes(True)


def _slow(known: bool) -> Sketch:
    sketch = Sketch(800, 240)
    for i, length in enumerate((100, 100, 100, 110)):
        name = "worker 999" if i == 3 else f"worker {i}"
        sketch.label(190, 36 + 48 * i, name, anchor="end", bold=True)
        bar = sketch.bar(206, 36 + 48 * i, 3.6 * length, "wrong" if i == 3 else "value", height=34)
        sketch.label(bar.x, 36 + 48 * i, f"{length} ms", size=SMALL, bold=True)
    x = 206 + 3.6 * 110
    if known:
        sketch.path([(x, 10), (x, 204)], "bad", thick=2.6, dashes="7 5")
    sketch.label(x + 16, 110, "110 ms for all" if known else "a step of all: ?", anchor="start", bold=True, fill="back")
    return sketch


def slow() -> Sketch:
    """One of 1,000 workers is slower."""
    return _slow(False)


def slow_known() -> Sketch:
    """All wait."""
    return _slow(True)


def _thousands(count: int) -> Sketch:
    """A step of the page's model with the first numbers of workers: what it computes and what it waits."""
    step = mg.distributed.Step.even(24, forward=0.05, backward=0.1, gradients=1e9)
    network = mg.distributed.Machine(latency=20e-6, bandwidth=10e9)
    sketch = Sketch(800, 280)
    for i, workers in enumerate((1, 4, 32, 256, 1024)[:count]):
        y, took = 30 + 52 * i, mg.distributed.step_time(step, network, workers).seconds
        sketch.label(180, y, f"{workers:,} worker{'s' * (workers > 1)}", anchor="end", bold=True)
        done = sketch.bar(200, y, 250 * 0.15, "value", height=36)
        end = sketch.bar(done.right[0], y, 250 * (took - 0.15), "gradient", height=36) if workers > 1 else done
        sketch.label(end.right[0] + 12, y, f"{1000 * took:,.0f} ms", anchor="start", bold=True)
    sketch.label(760, 30, "computing", anchor="end", bold=True, fill="there")
    sketch.label(760, 62, "waiting", anchor="end", bold=True, fill="back")
    return sketch


def thousands() -> list[Sketch]:
    """More workers, one after the other."""
    return [_thousands(count) for count in range(1, 6)]


def _grown(known: bool) -> Sketch:
    sketch = Sketch(800, 240)
    rows = (("step", 298, 1890, "298 ms", "1,890 ms"), ("bytes sent", 1.94, 2.0, "1.94 GB", "2.00 GB"),
            ("messages", 62, 2046, "62", "2,046"))
    for i, (name, few, many, one, other) in enumerate(rows):
        y = 40 + 76 * i
        sketch.label(170, y, name, anchor="end", bold=True)
        for dy, value, text, look in ((-14, few, one, "value"), (14, many, other, "gradient")):
            if i and not known:
                continue
            bar = sketch.bar(190, y + dy, 380 * value / max(few, many), look, height=24)
            sketch.label(bar.right[0] + 10, y + dy, text, anchor="start", size=SMALL)
        if i and not known:
            sketch.label(196, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
    sketch.label(700, 176, "32 workers", size=SMALL, fill="there")
    sketch.label(700, 206, "1,024 workers", size=SMALL, fill="back")
    return sketch


def grown() -> Sketch:
    """The step is six times as long; what has grown?"""
    return _grown(False)


def grown_known() -> Sketch:
    """Messages, one after the other."""
    return _grown(True)


# ---- memory ----------------------------------------------------------------------------------------------------------


def _memory(known: bool) -> Sketch:
    sketch = Sketch(800, 230)
    for y, name, state in ((60, "whole", 8.0), (160, "sharded", 2.0)):
        sketch.label(130, y, name, anchor="end", bold=True)
        if y > 100 and not known:
            sketch.label(156, y, "?", anchor="start", size=LARGE, bold=True, fill="back")
            continue
        x = 146.0
        for size, text, look in ((4.0, "w", "value"), (4.0, "∂w", "gradient"), (state, "state", "now")):
            bar = sketch.bar(x, y, 34 * size, look, height=50)
            sketch.label(bar.x, y, text, size=SMALL, bold=True)
            x += 34 * size
        sketch.label(x + 10, y, f"{8 + state:g} GB", anchor="start", bold=True)
    sketch.label(400, 215, "4 workers, a billion parameters, AdamW", size=SMALL, fill="quiet")
    return sketch


def memory() -> Sketch:
    """The memory of a worker, with a whole optimizer."""
    return _memory(False)


def memory_known() -> Sketch:
    """Only the state is divided."""
    return _memory(True)


def laptop() -> Sketch:
    """Four processes of the exercise: between them the student's ring."""
    sketch = Sketch(800, 220)
    draw_digits(sketch, 20, 62, (2, 2), side=5, apart=(46, 46))
    boxes = _ring(sketch, 330, 110, 76, 4, 48)
    sketch.label(330, 110, "yours", bold=True, fill="back")
    sketch.arrow((112, 108), (boxes[3].x - 34, 108))
    sketch.arrow((boxes[1].x + 34, 110), sketch.box(560, 110, "one curve", "gradient", width=130), colour="back")
    sketch.label(700, 110, "→ 1,000s", bold=True)
    return sketch


# ---- recap -----------------------------------------------------------------------------------------------------------


def small_chunks() -> Sketch:
    """An array, cut into four."""
    sketch = Sketch(240, 200)
    for i in range(4):
        sketch.cells(16 + 54 * i, 76, [["", ""]], "value", size=23, high=46)
    return sketch


def small_ring() -> Sketch:
    """Four workers in a ring."""
    sketch = Sketch(240, 200)
    _ring(sketch, 120, 100, 68, 4, 44)
    return sketch


def small_mean() -> Sketch:
    """Four gradients, one mean."""
    sketch = Sketch(240, 200)
    mean = sketch.box(120, 150, "mean", "gradient", width=96)
    for i in range(4):
        sketch.arrow((30 + 60 * i, 40), mean, colour="back")
    return sketch


def _bars(sketch: Sketch, x: float, top: float, lengths: Sequence[float], high: float, apart: float) -> None:
    """Times of workers, of which the last one is slow."""
    longest = max(lengths)
    for i, length in enumerate(lengths):
        sketch.bar(x, top + i * apart, length, "wrong" if length == longest else "value", height=high)
    bottom = top + len(lengths) * apart - high / 2
    sketch.path([(x + longest, top - high), (x + longest, bottom)], "bad", thick=2.4, dashes="6 5")


def small_slowest() -> Sketch:
    """Three bars, and a long one."""
    sketch = Sketch(240, 200)
    _bars(sketch, 30, 40, (120, 116, 122, 176), 24, 38)
    return sketch
