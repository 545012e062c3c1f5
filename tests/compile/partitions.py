"""Runs a partition: every group in turn, each in its own poisoned memory."""

import ctypes
from contextlib import contextmanager

import numpy as np
from numpy.lib.stride_tricks import as_strided

import minigrad as mg
from minigrad.compile.codegen.native import compile_kernels
from minigrad.compile.fusion.fuse import fuse
from minigrad.compile.loops.ir import Kernel
from minigrad.compile.lowering.lower import lower
from minigrad.compile.nodes.graph import Graph
from minigrad.compile.nodes.view import View
from minigrad.compile.rewriting import optimise
from minigrad.core import emit
from minigrad.core.node import Leaf, Node
from tests.compile.interpreter import run_kernel
from tests.compile.loops.verify import verify

MARGIN = 8  # elements beyond each buffer that must not be written


def graph_of(*tensors):
    """The graph of recorded tensors; its inputs are the leaves and constants that they come from."""
    graph = Graph([], [t.node for t in tensors])
    return Graph([n for n in graph.nodes if n.op is None], graph.outputs)


@contextmanager
def recorded():
    """`mg.record()`.  The sources of the nodes live as long as the yielded arrays."""
    sources = []
    original = emit.constant

    def constant(tensor):
        sources.append(tensor.data)
        return original(tensor)

    emit.constant = constant
    try:
        with mg.record():
            yield sources
    finally:
        emit.constant = original


def fed(graph):
    """The arrays of a graph's inputs, as they are now."""
    arrays = [n.tensor().data if isinstance(n, Leaf) else n.array() for n in graph.inputs]
    assert all(a is not None for a in arrays), "an input is gone: keep its tensor alive"
    return arrays


def poisoned(size, dtype):
    """New memory, filled with nonsense."""
    memory = np.empty(size + MARGIN, dtype)
    memory.fill(np.nan if dtype.kind == "f" else True if dtype.kind == "b" else 99)
    return memory


class Runner:
    """Runs a partition on arrays, as a program does, but slowly and with checks."""

    def __init__(self, partition, threads=1, run=run_kernel):
        self.partition, self.threads, self.run = partition, threads, run
        self.lowered = {g: lower(partition, g) for g in partition.kernels}
        for lowered in self.lowered.values():
            verify(lowered.kernel)

    def __call__(self, arrays):
        self.memory = {n: np.ascontiguousarray(a).reshape(-1) for n, a in zip(self.partition.graph.inputs, arrays)}
        self.partials = {}
        for group in self.partition.groups:
            if group in self.lowered:
                self._launch(self.lowered[group])
            else:
                self._call_library(group.library)
        return [self.array(view) for view in self.partition.outputs]

    def array(self, view):
        """The elements that a view reads."""
        whole = self.memory[view.base]
        if isinstance(whole, tuple):
            return whole
        strides = [s * whole.itemsize for s in view.strides]
        return as_strided(whole[view.offset :], view.shape, strides) if view.size else np.empty(view.shape, whole.dtype)

    def _call_library(self, compute):
        node = compute.node
        values = [self.array(r) if isinstance(r, View) else r for r in compute.reads]
        with np.errstate(all="ignore"):
            result = node.device.kernels[node.name](*values, **node.attrs)
        self.memory[node] = result if isinstance(result, tuple) else np.ascontiguousarray(result).reshape(-1)

    def _launch(self, lowered):
        kernel: Kernel = lowered.kernel
        units, threads = kernel.units, self.threads
        arrays = [self._buffer(a, p) for a, p in zip(lowered.arguments, kernel.parameters, strict=True)]
        what = lowered if self.run is by_nodes else kernel
        for thread in range(threads):
            self.run(what, arrays, units * thread // threads, units * (thread + 1) // threads)
        for output, source in lowered.group.inplace.items():
            self.memory[output] = self.memory[source]

    def _buffer(self, argument, parameter):
        if argument.kind == "scratch":
            return poisoned(parameter.size, parameter.dtype)
        table = self.partials if argument.kind == "partial" else self.memory
        assert isinstance(argument.node, Node)
        if argument.node not in table:
            assert parameter.role in ("out", "partial"), f"{argument.node} is read before it is written"
            table[argument.node] = poisoned(parameter.size, parameter.dtype)
        return table[argument.node][argument.offset :]


def by_nodes(lowered, arrays, low, high):
    """Run the nodes of a kernel."""
    table = table_of(arrays, low, high)
    lowered.by_nodes()(ctypes.addressof(table))


def natively(kernel, arrays, low, high):
    """Run a kernel as machine code."""
    table = table_of(arrays, low, high)
    compile_kernels([kernel])[0](ctypes.addressof(table))


def table_of(arrays, low, high):
    """What a kernel takes: the addresses of its arrays, and its units."""
    return (ctypes.c_void_p * (len(arrays) + 2))(*[a.ctypes.data for a in arrays], int(low), int(high))


def check(*tensors, threads=1, rtol=2e-5, atol=2e-6, chunking=None, run=run_kernel):
    """Fuse the graph of some tensors, run it, and compare the results with the tensors.  Returns the partition."""
    graph = graph_of(*tensors)
    partition = fuse(optimise(graph, only="pick_rows")[0], chunking)
    results = Runner(partition, threads, run)(fed(graph))
    for tensor, result in zip(tensors, results):
        expected = tensor.numpy_copy()
        assert result.shape == expected.shape and result.dtype == expected.dtype
        if expected.dtype.kind == "f":
            rough = 4e-3 if expected.dtype == np.float16 else 0
            limits = {"rtol": max(rtol, rough), "atol": max(atol, rough)}
            np.testing.assert_allclose(result, expected, **limits, err_msg=str(partition))
        else:
            np.testing.assert_array_equal(result, expected, err_msg=str(partition))
    return partition
