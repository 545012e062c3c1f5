"""Pictures of compiled and asynchronous programs: when Python runs, random numbers, clocks, and fused kernels."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Any, ClassVar

import numpy as np

from minigrad import random
from minigrad.compile.jitted import jit
from minigrad.core.tensor import Tensor
from minigrad.ops.creation import ones
from minigrad.ops.elementwise import exp
from minigrad.viz.drawing import Drawing

from ..predicting import run_code
from ..views.queues import KERNEL, LAUNCH, PYTHON, Lanes, Work, ended, scheduled
from .broken_picture import BrokenPicture, Thread
from .drawn import WIDE, bars, table

BODY = """
def body(x):
    return scale * x
"""


class BodyRuns(BrokenPicture):
    """A user puts a `print` into a jitted function to see its numbers. It prints at the first call, and never a
    number."""

    name = "body_runs"
    thread = Thread("How to print values inside a @jit-compiled function?", "https://github.com/jax-ml/jax/issues/196")
    taught_in = ("10_graph_mode",)
    code = (
        "@mg.jit\ndef body(x):\n    print(\"Python runs\")\n    return scale * x\n\nscale = 2.0\n"
        "body(mg.ones(3))         # call 1\nbody(mg.zeros(3))        # call 2\nbody(mg.ones(5))         # call 3\n"
        "body(mg.ones(3))         # call 4\nscale = 4.0\nbody(mg.ones(3))         # call 5"
    )
    broken = [1, 1, 1, 1, 1]

    def right(self) -> list[int]:
        """Whether each call of the jitted function made a trace."""
        names: dict[str, Any] = {"scale": 2.0, "__name__": "program"}
        run_code(BODY, names)
        body, made = jit(names["body"]), [0]
        for call, size in enumerate((3, 3, 5, 3, 3), 1):
            names["scale"] = 4.0 if call == 5 else 2.0
            body(ones(size))
            made.append(len(body.traces))
        return [int(after > before) for before, after in pairwise(made)]

    def draw(self, value: list[int]) -> Drawing:
        rows = {"Python": ["runs" if runs else "–" for runs in value],
                "program": ["is made, runs" if runs else "runs" for runs in value]}
        lit = [(0, i) for i, runs in enumerate(value) if runs] + [(1, i) for i in range(len(value))]
        heads = ("1: three", "2: three", "3: five", "4: three", "5: new scale")
        return table(heads, rows, (), lit, first=95)


class DifferentNumbers(BrokenPicture):
    """A function that draws a random number by NumPy is traced. Every call returns the same number. A user asks
    whether this is expected."""

    name = "different_numbers"
    thread = Thread("tf.data.Dataset.map does not support randomization",
                    "https://github.com/tensorflow/tensorflow/issues/60848")
    taught_in = ("10_graph_mode",)
    code = (
        "@mg.jit\ndef by_numpy(x):\n    return x + np.random.rand()\n\n@mg.jit\ndef by_minigrad(x):\n"
        "    return x + mg.random.uniform(())\n\n# each is called four times, with the same x"
    )
    broken: ClassVar[dict[str, int]] = {"by_numpy": 4, "by_minigrad": 4}

    def results(self) -> dict[str, list[float]]:
        """What four calls return, in the library."""
        generator = np.random.default_rng(0)

        def by_numpy(x: Tensor) -> Tensor:
            return x + float(generator.random())

        def by_minigrad(x: Tensor) -> Tensor:
            return x + random.uniform(())

        found = {}
        for function in (by_numpy, by_minigrad):
            jitted = jit(function)
            found[function.__name__] = [round(float(jitted(ones(())).item()), 4) for _ in range(4)]
        return found

    def right(self) -> dict[str, int]:
        return {name: len(set(values)) for name, values in self.results().items()}

    def draw(self, value: dict[str, int]) -> Drawing:
        rows = {name: [f"number {min(call, max(many, 1))}" for call in range(1, 5)] for name, many in value.items()}
        lit = [(i, j) for i, many in enumerate(value.values()) for j in range(4) if j < many]
        return table([f"call {call}" for call in range(1, 5)], rows, (), lit, first=130)


KERNEL_TIME, EARLIER = 100.0, 200.0


class TimedLines(BrokenPicture):
    """A user times the same loop twice on a GPU. The second time it takes fifty times as long. Which clock is
    right?"""

    name = "timed_lines"
    thread = Thread("Performance: perceptron", "https://github.com/JuliaGPU/CUDA.jl/issues/312")
    taught_in = ("03_devices",)
    code = (
        "earlier()               # a kernel of 200 µs, from another line\nstart                   # reads the clock\n"
        "run                     # launches three kernels, 100 µs each\nstop                    # reads the "
        "clock again\n"
        "synchronize             # Python waits here until the device is done"
    )
    broken = ["start", "run", "stop", "synchronize"]

    def read(self, answer: Any) -> Any:
        words = answer.replace(",", " ").split() if isinstance(answer, str) else [str(each).strip() for each in answer]
        return [word for word, _ in groupby(words)]  # a second wait at once waits for nothing

    def other_form(self, answer: Any) -> str | None:
        words = self.read(answer) if isinstance(answer, list | tuple | str) else []
        once = [each for each in words if each != "synchronize"]
        if set(words) <= {"start", "run", "stop", "synchronize"} and once == ["start", "run", "stop"]:
            return None
        return '"start", "run" and "stop", once each and in this order, with "synchronize" where Python should wait'

    def clock(self, lines: list[str]) -> tuple[float, float, list[tuple[str, float, float]]]:
        """The two readings of the clock, and what Python does from when to when, by the model of a device's queue."""
        works, now, shown = [Work("earlier", KERNEL, EARLIER)], LAUNCH, [("launch", 0.0, LAUNCH)]
        readings = {}
        for line in lines:
            begin = now
            if line == "run":
                works += [Work("kernel", KERNEL, KERNEL_TIME)] * 3
                now += 3 * LAUNCH
                shown.append(("launch", begin, now))
            elif line == "synchronize":
                now = max(now, self.done(works, now))
                shown.append(("waits", begin, now))
            else:
                readings[line] = now
        return readings["start"], readings["stop"], shown

    def done(self, works: list[Work], now: float) -> float:
        """When the queue is empty: kernels that were launched after a wait begin after it."""
        first = scheduled(works[:1], LAUNCH)
        rest = works[1:]
        begin = max(ended(first), now - LAUNCH * (len(rest) - 1) if rest else 0.0)
        return begin + sum(work.time for work in rest)

    def is_right(self, value: list[str]) -> bool:
        start, stop, _ = self.clock(value)
        return abs(stop - start - 3 * KERNEL_TIME) < 2 * LAUNCH

    def problem(self, value: list[str]) -> str:
        start, stop, _ = self.clock(value)
        return f"the clock shows {stop - start:g} µs"

    def draw(self, value: list[str]) -> Drawing:
        start, stop, shown = self.clock(value)
        launched = next(begin for name, begin, end in shown[1:] if name == "launch")
        begin = max(LAUNCH + EARLIER, launched + LAUNCH)
        drawing = Drawing(WIDE, 138)
        lanes = Lanes(drawing, 0, (PYTHON, KERNEL, "the clock"), 560.0)
        for name, one, two in shown:
            lanes.block(PYTHON, one, two, "now" if name == "launch" else "back", name if name == "waits" else "", name)
        lanes.block(KERNEL, LAUNCH, LAUNCH + EARLIER, "good", "earlier", "a kernel of an earlier line")
        for i in range(3):
            one = begin + i * KERNEL_TIME
            lanes.block(KERNEL, one, one + KERNEL_TIME, "there", str(i + 1), f"kernel {i + 1}")
        lanes.block("the clock", start, stop, "back", f"{stop - start:g}", f"from {start:g} to {stop:g}")
        drawing.text(0, 134, f"the clock shows {stop - start:g} microseconds", size=14, bold=True, fill="back")
        return drawing


class AfterFusion(BrokenPicture):
    """A library says that its network is "fully fused". A user asks what this means, and why it is faster."""

    name = "after_fusion"
    thread = Thread('What does "fully fused" actually mean?', "https://github.com/NVlabs/tiny-cuda-nn/issues/13")
    taught_in = ("11_fusion", "09_eager_costs")
    code = "@mg.jit\ndef f(x):                 # a million floats of 4 bytes\n    return mg.exp(x * 2 + 1)"
    broken: ClassVar[dict[str, float]] = {"kernels": 1, "operations": 1, "MB": 24}

    def measured(self) -> tuple[dict[str, float], dict[str, float]]:
        """The counts before and after fusion, from the compiler's own table of costs."""
        cost = jit(lambda x: exp(x * 2.0 + 1.0)).cost(ones(1_000_000))
        before, after = [
            {"kernels": each.launches, "operations": each.flops / 1e6, "MB": round(each.bytes / 1e6, 3)}
            for each in (cost.eager, cost.program)
        ]
        return before, after

    def right(self) -> dict[str, float]:
        return self.measured()[1]

    def draw(self, value: dict[str, float]) -> Drawing:
        before, _ = self.measured()
        rows = []
        for name, unit in (("kernels", ""), ("operations", " million"), ("MB", " MB")):
            for title, n, ink in ((f"{name.replace('MB', 'bytes')} before", before, "there"), ("fused", value, "back")):
                rows.append((title, n[name] / (before[name] or 1), ink, f"{n[name]:g}{unit}"))
        return bars(rows)
