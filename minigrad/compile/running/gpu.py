"""Programs on NVIDIA GPUs: CuPy compiles and launches the kernels, and a whole run is recorded and replayed.

All work is queued on CuPy's current stream, in order, and nothing waits for it.  Errors therefore appear later: the GPU
notes an index that is out of bounds, and the next read of a value of this device raises the error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from sys import getrefcount
from typing import Any

import numpy as np

from ...core.emit import EAGER
from ...core.primitive import P
from ...devices.cuda_checks import THREADS, checks_module
from ...devices.philox import blocks_for, cuda_module, key_words
from ..codegen.nvrtc import GpuKernel, compile_for_gpu
from ..fusion.count import Count
from ..fusion.group import Chunking
from ..nodes.graph import Starts
from ..nodes.interpret import out_of_bounds
from ..nodes.thresholds import FEWEST_RECORDED_STEPS
from .cuda_graph import REPLAYABLE, Replay
from .frame import Frame, Layout, Table
from .plan import Call, Check, Launch, Read
from .profiler import as_timed_steps
from .steps import Run, in_turn, is_profiled
from .targets import LOOPS, Target

# At most about four blocks for each processor.
CHUNKING = Chunking(most=512, least=1 << 10, spread=1, long=False, lanes=0)
RESULTS = 2  # arrays that are kept for each result
# Of a library call, this input and those after it are positions.
FIRST_INDEX = {"gather": 1, "scatter_add": 2, "scatter_max": 2}


def compiled_for(device: Any, launches: Mapping[int, Launch]) -> dict[int, GpuKernel]:
    """A function of the GPU for each kernel."""
    with device.gpu:
        made = compile_for_gpu([each.kernel for each in launches.values()], device.cupy)
    return dict(zip(launches, made))


class Findings:
    """The results of a frame's checks: for each, whether it failed, and an index that is out of bounds.

    They are in the GPU's memory, and reading them waits for all queued work.
    """

    def __init__(self, device: Any, checks: Sequence[Check]) -> None:
        self.device, self.checks = device, tuple(checks)
        self.found = device.cupy.zeros((len(checks), 2), np.int64)

    def address(self, number: int) -> Any:
        """The address that the kernel of this check writes to."""
        return np.uint64(self.found.data.ptr + 16 * number)

    def look(self) -> None:
        """Raise the error of a failed check, once."""
        with self.device.gpu:
            found = self.found.get()
            if not found[:, 0].any():
                return
            self.found.fill(0)
        number = int(found[:, 0].argmax())
        hint = f"a program on {self.device} found it: operations since then may have used wrong elements"
        raise out_of_bounds(found[number, 1], self.checks[number], hint)


class CudaFrame(Frame):
    """Everything that one run on a GPU at a time needs."""

    def __init__(self, device: Any, layout: Layout, functions: dict[int, GpuKernel]) -> None:
        self.device, self.library = device, device.cupy
        self.kept: dict[int, list[Any]] = {}  # arrays of each result, which later runs use again
        self.starts: dict[Any, Any] = {}  # of each generator, the key and the block: three words in the GPU's memory
        self.checks: list[Check] = []
        with device.gpu:
            self.processors = device.gpu.attributes["MultiProcessorCount"]
            for array in [self.library.empty(1)]:  # as many references as a result has that nothing else refers to
                self.alone = _references(array)
            super().__init__(layout, functions)
            self.findings = Findings(device, self.checks)
        calls = [step for step in layout.plan.steps if isinstance(step, Call)]
        long = len(self.steps) >= FEWEST_RECORDED_STEPS
        replayable = device.replays and long and all(call.op in REPLAYABLE for call in calls)
        self.replay = Replay(self) if replayable else None

    # memory and library ---------------------------------------------------------------------------------------------

    def new_memory(self, size: int) -> Any:  # type: ignore[override]
        return self.library.empty(size, np.uint8)

    def address(self, array: Any) -> int:  # type: ignore[override]
        return int(array.data.ptr)

    def strided(self, flat: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:  # type: ignore[override]
        return self.library.ndarray(shape, flat.dtype, flat.data + offset, strides)

    def compute(self, op: Any, values: list[Any], attrs: Any, device: Any) -> Any:  # type: ignore[override]
        if self._is_own(op.name):
            return device.for_programs[op.name](*values, **attrs)
        return EAGER.compute(op, values, attrs, device)

    def _is_own(self, name: str) -> bool:
        """Whether the device has a kernel for programs, and no user has replaced the operation's kernel."""
        device = self.device
        return name in device.for_programs and device.kernels[name] is device.own_kernels[name]

    # steps ----------------------------------------------------------------------------------------------------------

    def _tables(self, launch: Launch, function: Any) -> tuple[list[Table], Run]:
        kernel, source, launched = function
        table: list[Any] = [None] * len(kernel.parameters)
        blocks = source.blocks(kernel.units, self.processors)
        names = [parameter.name for parameter in kernel.parameters]
        for parameter in source.rows:  # rows of a block that do not fit its shared memory
            table[names.index(parameter.name)] = self._kept(blocks * parameter.size * parameter.dtype.itemsize)
        given = [names.index(parameter.name) for parameter in source.arguments]
        integer = np.int32 if source.integer == "int" else np.int64
        grid, block, bounds = (blocks,), (source.threads,), [integer(0), integer(kernel.units)]
        return [table], lambda starts: launched(grid, block, [*[table[i] for i in given], *bounds])

    def _product(self, call: Call) -> Run:
        products = self.device.products
        if products is None:
            return super()._product(call)
        left, right, out = self._operands(call)
        return lambda starts: products.product(left(), right(), out())

    def _library(self, call: Call) -> Run:
        if call.op is P.random and call.attrs["key"].__class__ is not int:
            return self._draw(call)
        run = super()._library(call)
        first = FIRST_INDEX.get(call.op.name)
        if first is None or not self._is_own(call.op.name):
            return run
        shape = call.reads[0].shape
        return partial(in_turn, [*[self._check(c) for c in self._positions(call.reads[first:], shape)], run])

    def _positions(self, reads: Sequence[Read], shape: tuple[int, ...]) -> list[Check]:
        """Checks that the operands of a library call are positions in the dimensions of an array, in order."""
        made = [self.buffers[read.buffer] for read in reads]
        return [
            Check("", read, size, buffer.name.rpartition("_")[0], Count(), buffer.where)
            for read, size, buffer in zip(reads, shape, made)
        ]

    def _check(self, check: Check) -> Run:
        if not self.device.check_indices:
            return lambda starts: None
        number = len(self.checks)
        self.checks.append(check)
        read, items = self._reader(check.read), check.read.size
        dtype = self.buffers[check.read.buffer].dtype
        launch = checks_module(self.library).get_function(f"check_{dtype.name}")
        grid, block = (max(1, -(-items // THREADS)),), (THREADS,)
        count, extent = np.int64(items), np.int64(check.size)

        def look(starts: Starts) -> None:
            positions = self.library.ascontiguousarray(read())
            launch(grid, block, [positions.data.ptr, count, extent, self.findings.address(number)])

        return look

    def _draw(self, call: Call) -> Run:
        """Draw random numbers.  The kernel reads the key and the block from memory, where a replay can change them."""
        attrs = call.attrs
        shape, dtype, generator = attrs["shape"], attrs["dtype"], attrs["key"]
        start = self.starts.setdefault(generator, self.library.zeros(3, np.uint64))
        launch = cuda_module(self.library).get_function(f"random_{dtype.name}_from")
        grid, block = (max(1, -(-blocks_for(shape, dtype) // THREADS)),), (THREADS,)
        given = [np.int64(math.prod(shape)), start, np.uint64(attrs["block"])]

        def draw(starts: Starts) -> None:
            out = self.library.empty(shape, dtype)
            launch(grid, block, [out, *given])
            self.bind(call.out, out)

        return draw

    # a run ----------------------------------------------------------------------------------------------------------

    def run(self, arrays: list[Any], starts: Starts) -> list[Any]:
        with self.device.queueing, self.device.gpu:
            results = super().run(arrays, starts)
        if self.checks:
            self.device.found_later(self.findings)
        return results

    def _bind_results(self) -> list[Any]:
        results: list[Any] = [None] * len(self.plan.outputs)
        for buffer, number, _, shape, dtype, as_array in self.layout.results:
            result = results[number] = self._unused(self.kept.setdefault(number, []), shape, dtype)
            if as_array:
                self.arrays[buffer] = result.reshape(-1)
            self._write_address(buffer, self.address(result))
        return results

    def _unused(self, kept: list[Any], shape: tuple[int, ...], dtype: Any) -> Any:
        """Memory for a result: that of an earlier run, if nothing refers to it any more.

        The results of a training loop then alternate between two places, so that two recordings replay all of it.
        """
        for array in kept:
            if _references(array) == self.alone:
                return array
        try:
            made = self.library.empty(shape, dtype)
        except MemoryError:
            self.kept.clear()
            made = self.library.empty(shape, dtype)
        kept.append(made)
        del kept[:-RESULTS]
        return made

    def _run_steps(self, arrays: Sequence[Any], results: list[Any], starts: Starts) -> None:
        for generator, start in self.starts.items():
            key, block = starts[generator]
            cuda_module(self.library).get_function("set_start")((1,), (32,), [start, *key_words(key, block)])
        if self.replay is not None and not is_profiled():
            self.replay.run(arrays, results, starts)
            return
        steps: Iterable[Run] = self.steps
        if is_profiled():
            calls = [[call._replace(run=partial(self._waited, call.run)) for call in level] for level in self.calls[0]]
            steps = as_timed_steps(calls)
        for step in steps:
            step(starts)

    def _waited(self, run: Run, starts: Starts) -> None:
        """Run a step and wait for it, because a profile would otherwise show only the time to queue it."""
        run(starts)
        self.device.gpu.synchronize()


def _references(array: Any) -> tuple[int, int, int]:
    """How many references there are to an array, to its pointer, and to its memory, which views refer to."""
    return getrefcount(array), getrefcount(array.data), getrefcount(array.data.mem)


def cuda_target(device: Any) -> Target:
    """The target of a GPU."""
    return Target(
        CHUNKING, lambda launches, backend: compiled_for(device, launches),
        lambda layout, functions: CudaFrame(device, layout, functions), threads=False,
        without=LOOPS,
    )

