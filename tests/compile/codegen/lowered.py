"""Kernels that the compiler makes from random programs, as samples for every printer."""

import numpy as np

from minigrad.compile.fusion.fuse import fuse
from minigrad.compile.fusion.group import Chunking
from minigrad.compile.lowering.lower import lower
from tests.compile.codegen.samples import Sample, poison
from tests.compile.partitions import graph_of
from tests.compile.programs import random_program

SMALL = Chunking(most=4, least=16)  # so that small sums have several chunks


def lowered_samples(seeds):
    """The different kernels of some programs, each with arrays to run it on."""
    kernels = {}
    for seed in seeds:
        outputs, _alive = random_program(seed, 8 + seed % 30)
        partition = fuse(graph_of(*outputs), SMALL if seed % 2 else None)
        for group in partition.kernels:
            kernel = lower(partition, group).kernel
            kernels.setdefault(repr((kernel.parameters, kernel.body)), kernel)
    return [Sample(kernel, _arrays(kernel, seed), {}) for seed, kernel in enumerate(kernels.values())]


def _arrays(kernel, seed):
    rng = np.random.default_rng(seed)
    return [
        (rng.random(p.size) * 2 + 0.1).astype(p.dtype) if p.role in ("in", "inout") else poison(p.size, p.dtype)
        for p in kernel.parameters
    ]


def check_roughly(sample, run, reference):
    """Compare all results; sums may be inexact, because their order is free."""
    arrays = [a.copy() for a in sample.arrays]
    run(arrays, 0, sample.kernel.units)
    for parameter, array, wanted in zip(sample.kernel.parameters, arrays, reference):
        if parameter.role != "scratch":
            wanted, array = wanted.astype(np.float64), array.astype(np.float64)
            scale = max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)))
            rough = 3e-3 if parameter.dtype == np.float16 else 3e-4
            np.testing.assert_allclose(array, wanted, rtol=rough, atol=rough * scale, err_msg=parameter.name)
