"""Runs native kernels on arrays."""

import ctypes

from minigrad.compile.codegen.native import compile_kernels


def table_of(arrays, low, high):
    """The table for a native kernel: addresses, and the range."""
    return (ctypes.c_void_p * (len(arrays) + 2))(*[a.ctypes.data for a in arrays], low, high)


def compiled(kernel):
    """The machine code of one kernel."""
    return compile_kernels([kernel])[0]


def on_arrays(function):
    """A native kernel as a function of arrays."""

    def run(arrays, low, high):
        table = table_of(arrays, low, high)
        function(ctypes.addressof(table))

    return run


def native(kernel):
    """A kernel compiled by LLVM."""
    return on_arrays(compiled(kernel))
