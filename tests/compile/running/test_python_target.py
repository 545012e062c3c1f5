"""A target that prints Python: the shortest printer, to read before one writes another."""

import ctypes

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile import Target, register_target
from minigrad.compile.fusion.group import Chunking
from minigrad.compile.loops.index import fold
from minigrad.compile.loops.ir import Walk
from minigrad.compile.loops.legalise import legalise
from minigrad.compile.loops.operations import OPERATIONS, REDUCTIONS, identity
from minigrad.compile.running import targets
from minigrad.compile.running.frame import Frame
from minigrad.compile.running.program import Program
from minigrad.devices import Device, Kernels, register_device, registry


class PythonPrinter(Walk):
    """Prints a kernel as a function of Python: a method for each kind of statement returns its lines."""

    def __init__(self, kernel):
        self.kernel = legalise(kernel, written_out=False)

    def function(self):
        names = ", ".join([*(p.name for p in self.kernel.parameters), "lo", "hi"])
        return "\n".join([f"def kernel({names}):", *indented(self.block(self.kernel.body))])

    def let(self, let):
        return [f"{let.name} = {self.expression(let)}"]

    def store(self, store):
        return [f"{self.place(store)} = {store.value}"]

    def accumulate(self, update):
        return [self.update(self.place(update), update.op, update.value)]

    def running(self, running):
        return [self.update(running.name, running.op, running.value)]

    def loop(self, loop):
        totals = [*loop.accumulators, *loop.totals]
        starts = [f"{a.name} = {identity(a.op, a.dtype) if a.start is None else a.start}" for a in totals]
        ends = [self.update(a.name, a.op, a.value) for a in loop.accumulators]
        head = f"for {loop.variable} in range({index(loop.low)}, {index(loop.high)}):"
        return [*starts, head, *indented([*self.block(loop.body), *ends])]

    def expression(self, let):
        if let.op == "load":
            return f"{let.args[0]}[{index(let.args[1])}]"
        if let.op == "index":
            return index(let.args[0])
        if let.op == "cast":
            return f"np.{let.dtype}({let.args[0]})"
        return f"{let.op}({', '.join(map(str, let.args))})"

    def place(self, statement):
        return f"{statement.buffer}[{index(statement.index)}]"

    def update(self, place, op, value):
        return f"{place} = {REDUCTIONS[op]}({place}, {value})"


def index(position):
    return fold(position, str, lambda op, a, b: f"min({a}, {b})" if op == "min" else f"({a} {op} {b})")


def indented(lines):
    return ["    " + line for line in lines]


def function(kernel):
    """The function of a kernel, which takes the address of a table: the parameters' addresses, then lo and hi."""
    scope = {name: operation.numpy for name, operation in OPERATIONS.items()}
    scope |= {"np": np, "inf": np.inf}
    exec(PythonPrinter(kernel).function(), scope)

    def run(table):
        *addresses, low, high = (ctypes.c_int64 * (len(kernel.parameters) + 2)).from_address(table)
        scope["kernel"](*map(array, addresses, kernel.parameters), low, high)

    return run


def array(address, parameter):
    size = parameter.size * parameter.dtype.itemsize
    return np.frombuffer((ctypes.c_uint8 * size).from_address(address), parameter.dtype)


def functions(launches, backend):
    return {number: function(launch.kernel) for number, launch in launches.items()}


class PythonKernels(Kernels):
    """NumPy's kernels: a device whose kernels are its own has a target of its own."""


class PythonDevice(Device):
    kind, kernel_class = "python", PythonKernels


@pytest.fixture
def python(monkeypatch):
    """A device whose programs are Python."""
    monkeypatch.setattr(registry, "DEVICES", dict(registry.DEVICES))
    monkeypatch.setattr(registry, "MAKERS", dict(registry.MAKERS))
    monkeypatch.setattr(targets, "_MAKERS", dict(targets._MAKERS))
    register_device("python", PythonDevice)
    register_target("python", lambda device: Target(Chunking(), functions, Frame, threads=False))
    return "python"


PROGRAMS = {
    "elements": lambda x: mg.tanh(x * x) + 1,
    "rows": lambda x: mg.softmax(x),
    "columns": lambda x: x - mg.max(x, axis=0),
    "transposed": lambda x: x.T * 2,
    "a running total": lambda x: mg.cumulative_sum(x, axis=1),
    "integers": lambda x: mg.where(x < 1, x, x * 2).astype(mg.int32),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_target_of_printed_python_computes_what_eager_mode_does(python, name):
    x = mg.asarray(np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4), device=python)
    f = mg.jit(PROGRAMS[name])
    np.testing.assert_allclose(f(x).numpy(), PROGRAMS[name](x).numpy(), rtol=1e-5)
    program = f.program(x)
    assert isinstance(program, Program) and program.partition.kernels


def test_a_printed_kernel_can_be_read(python):
    program = mg.jit(lambda x: mg.sqrt(x) + 1).program(mg.ones(4, device=python))
    (lowered,) = program.lowered.values()
    assert PythonPrinter(lowered.kernel).function().splitlines() == [
        "def kernel(b0, b1, lo, hi):",
        "    for i in range(lo, hi):",
        "        v1 = b0[i]",
        "        v2 = sqrt(v1)",
        "        v3 = add(v2, 1.0)",
        "        b1[i] = v3",
    ]
