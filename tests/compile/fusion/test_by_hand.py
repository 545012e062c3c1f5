"""Fusion by hand: kernels that a caller chooses compute what the compiler's own kernels compute."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.fusion.by_hand import divided, members_of
from minigrad.compile.running.program import Program

X = np.random.default_rng(0).standard_normal((3, 5, 16)).astype(np.float32)
FUNCTIONS = {
    "running totals of rows": lambda x: mg.cumulative_sum(x * 2, axis=1) + 1,
    "running totals in rows": lambda x: mg.cumulative_sum(x * 2, axis=2) + 1,
    "sums across rows": lambda x: (x * 2).sum(0) + 1,
    "softmax": lambda x: mg.softmax(x, -1),
    "a product by loops": lambda x: mg.conv2d(x[None], mg.ones((8, 3, 3, 3)), padding=1),
}


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_divided_by_hand_compute_the_same(name, apart):
    program = Program(mg.trace(FUNCTIONS[name], mg.asarray(X)))
    kernels = members_of(program.partition)
    if apart:
        kernels = [[member] for kernel in kernels for member in kernel]
    other = program.divided(divided(program.partition, kernels))
    assert other.partition.chunking == program.partition.chunking
    np.testing.assert_allclose(other([X])[0], program([X])[0], rtol=1e-5, atol=1e-5)
