"""Hostile kernels: those that the verifier accepts stay within their memory, interpreted and as machine code."""

from functools import cache
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from minigrad.compile.codegen.numpy_blocks import compile_blocks
from minigrad.compile.save.kernels import kernel_from_data
from minigrad.compile.save.read import FAULTS
from tests.compile.codegen.running import native
from tests.compile.loops import hostile

MARGIN = 64  # elements around each array that no kernel may touch
EACH = 25  # kernels of an example
COMPILED = 40  # one in this many kernels also runs as machine code


@cache
def corpus():
    return hostile.corpus()


class Guarded:
    """An array with a margin on both sides."""

    def __init__(self, parameter, random):
        self.whole = np.empty(parameter.size + 2 * MARGIN, parameter.dtype)
        self.array = self.whole[MARGIN : MARGIN + parameter.size]
        numbers = np.random.default_rng(random.getrandbits(32)).integers(0, 3, self.whole.size)
        self.whole[...] = numbers.astype(parameter.dtype)
        self.before = self.whole.copy()

    def again(self):
        self.whole[...] = self.before

    def check(self):
        for side in (slice(None, MARGIN), slice(-MARGIN, None)):
            np.testing.assert_array_equal(self.whole[side], self.before[side])


def accepted(data):
    """The kernel, if the verifier accepts it."""
    try:
        return kernel_from_data(data)
    except FAULTS:
        return None


def check(kernel, random, compiled):
    """Run an accepted kernel everywhere; False if it takes too long."""
    if kernel.units > 10**6 or sum(p.size for p in kernel.parameters) > 10**6:
        return False
    memory = [Guarded(p, random) for p in kernel.parameters]
    arrays = [m.array for m in memory]
    low = random.randint(0, kernel.units)
    for first, last in ((0, kernel.units), (low, random.randint(low, kernel.units))):
        try:
            hostile.Checked(kernel, arrays).run(first, last)
        except hostile.TooLong:
            return False
        for m in memory:
            m.check()
        wanted = [array.copy() for array in arrays]
        for m in memory:
            m.again()
        compile_blocks(kernel)(list(arrays), first, last)
        for m in memory:
            m.check()
            m.again()
        if compiled and not kernel.computes_in(np.dtype(np.float16)):
            native(kernel)(arrays, first, last)
            for m, p, array in zip(memory, kernel.parameters, wanted):
                m.check()
                if p.role != "scratch":
                    compare(m.array, array)
                m.again()
    return True


def compare(actual, wanted):
    """Check equality up to rounding and the order of sums."""
    if actual.dtype.kind != "f":
        np.testing.assert_array_equal(actual, wanted)
        return
    both = np.isfinite(actual) & np.isfinite(wanted) & (np.abs(wanted) < 1e4)
    np.testing.assert_allclose(actual[both], wanted[both], rtol=1e-3, atol=1e-3)


@given(st.integers(0, 2**63))
def test_accepted_kernels_stay_within_their_memory(seed):
    random = Random(seed)  # random numbers from hypothesis would be too slow here
    for _ in range(EACH):
        kernel = accepted(hostile.mutated(random.choice(corpus()), random))
        if kernel is not None:
            check(kernel, random, compiled=random.randrange(COMPILED) == 0)
