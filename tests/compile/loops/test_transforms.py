"""Every transform of the loop language: a kernel computes the same before and after it, on vectors of each width.

The kernels are samples of every kind of loop, those of random programs, and those of real programs.
"""

import numpy as np
import pytest

from minigrad.compile.codegen.printing import stages
from minigrad.compile.loops.ir import (
    BOOL,
    FLOAT,
    INT,
    LONG,
    Accumulate,
    Accumulator,
    For,
    Kernel,
    Let,
    Parameter,
    Store,
    statements,
)
from minigrad.compile.loops.legalise import hoist, plain
from minigrad.compile.loops.widen import Machine, widen
from tests.compile.codegen.lowered import check_roughly, lowered_samples
from tests.compile.codegen.running import native
from tests.compile.codegen.samples import LOOPS, check, sample
from tests.compile.interpreter import run_kernel
from tests.compile.net import compiled, gradient_programs, run
from tests.compile.net_functions import FUNCTIONS, Differentiated

WIDTHS = (128, 256, 512)
LARGE = 500  # elements of a parameter: a kernel with more takes the interpreter long


def after_each(kernel, machine):
    """The kernel after each transform."""
    return [*stages(kernel, machine).values()]


def outcomes(kernel, arrays, low, high):
    given = [array.copy() for array in arrays]
    run_kernel(kernel, given, low, high)
    return given


def same_at_all_stages(made):
    """Check that all stages of a sample give the results of the kernel itself, for all units and for some."""
    units = made.kernel.units
    for low, high in {(0, units), (units // 3, units - units // 3)}:
        reference = outcomes(made.kernel, made.arrays, low, high)
        for bits in WIDTHS:
            for kernel in after_each(made.kernel, Machine(bits)):
                check_results(made, outcomes(kernel, made.arrays, low, high), reference)


def check_results(made, arrays, reference):
    for p, ours, wanted in zip(made.kernel.parameters, arrays, reference):
        if p.role == "scratch":
            continue
        limit = {2: 2e-2, 4: 2e-4, 8: 1e-10}[p.dtype.itemsize] if p.dtype.kind == "f" else 0
        scale = max(1.0, float(np.abs(wanted[np.isfinite(wanted)].astype("f8")).max(initial=0)))
        np.testing.assert_allclose(
            ours.astype("f8"), wanted.astype("f8"), rtol=limit, atol=limit * scale, err_msg=p.name
        )


@pytest.mark.parametrize("name", [name for name in LOOPS if name not in ("long_rows", "softmax_double")])
def test_loops_of_every_kind(name):
    same_at_all_stages(LOOPS[name]())


@pytest.mark.parametrize("made", lowered_samples(range(8)), ids=lambda made: made.kernel.parallel)
def test_kernels_of_random_programs(made):
    if max(p.size for p in made.kernel.parameters) < LARGE:
        same_at_all_stages(made)


def kernels_of_net(name):
    """The kernels of a program, of which each parameter is small."""
    made = run(FUNCTIONS[name])
    made = gradient_programs(*made.call) if isinstance(made, Differentiated) else made
    programs = made if isinstance(made, list) else [made]
    found = [kernel for program in programs for parts in compiled(program) for kernel in parts.kernels]
    return [kernel for kernel in found if max((p.size for p in kernel.parameters), default=0) < LARGE]


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernels_of_real_programs(name):
    rng = np.random.default_rng(0)
    for kernel in kernels_of_net(name):
        given = {p.name: rng.integers(0, 5, p.size).astype(p.dtype) for p in kernel.parameters}
        shaped = [(p.name, p.dtype, p.size, p.role) for p in kernel.parameters]
        made = sample(shaped, kernel.body, given, kernel.parallel, kernel.units)
        same_at_all_stages(made)


# Forms that vectors are made of ---------------------------------------------------------------------------------------


def rounds(body, high, sizes, accumulators=()):
    """A loop of `high` rounds, in a kernel with the parameters `a` (read) and `b` (written)."""
    loop = For("i", 0, high, body, [*accumulators])
    parameters = [("a", FLOAT, sizes[0], "in"), ("b", FLOAT, sizes[1], "out")]
    given = {"a": np.arange(1, sizes[0] + 1, dtype=np.float32)}
    return sample(parameters, [For("p", "lo", "hi", [loop])], given, "rows", 1)


def stored(*places):
    return [Store("b", place, "x") for place in places]


TWICE, THRICE = ("*", "i", 2), ("*", "i", 3)
LOAD = Let("x", "load", ("a", "i"), FLOAT)
STRIDES = {
    "every second": rounds([Let("x", "load", ("a", TWICE), FLOAT), *stored("i")], 50, (99, 50)),
    "every third": rounds([Let("x", "load", ("a", THRICE), FLOAT), *stored("i")], 50, (148, 50)),
    "from the end": rounds([Let("x", "load", ("a", ("+", ("*", "i", -1), 49)), FLOAT), *stored("i")], 50, (50, 50)),
    "to the end": rounds([LOAD, *stored(("+", ("*", "i", -1), 49))], 50, (50, 50)),
    "far apart": rounds(
        [Let("x", "load", ("a", ("*", "i", 7)), FLOAT), *stored(("*", "i", 5))], 50, (344, 246)
    ),
    "to every second": rounds([LOAD, *stored(TWICE)], 50, (50, 99)),
}


@pytest.mark.parametrize("name", STRIDES)
def test_strides(name):
    made = STRIDES[name]
    wide = widen(made.kernel, Machine())
    assert any(s.lanes >= 8 for s in statements(wide.body) if isinstance(s, (Let, Store)))
    same_at_all_stages(made)
    check(made, native(made.kernel))


@pytest.mark.parametrize("count, step", [(2, TWICE), (3, THRICE), (4, ("*", "i", 4))])
def test_stores_that_fill_neighbours_are_one(count, step):
    lets = [LOAD, *[Let(f"y{k}", "mul", ("x", float(k)), FLOAT) for k in range(count)]]
    stores = [Store("b", ("+", step, k), f"y{k}") for k in range(count)]
    loop = For("i", 0, 70, [*lets, *stores], steps=count)
    parameters = [("a", FLOAT, 70, "in"), ("b", FLOAT, 70 * count, "out")]
    made = sample(parameters, [For("p", "lo", "hi", [loop])], {"a": np.arange(70, dtype=np.float32)}, "rows", 1)
    wide = [s for s in statements(widen(made.kernel, Machine()).body) if isinstance(s, Store) and s.lanes > 1]
    assert wide and all(s.lanes % count == 0 for s in wide)
    assert any(isinstance(s, Let) and s.op == "weave" for s in statements(widen(made.kernel, Machine()).body))
    same_at_all_stages(made)
    check(made, native(made.kernel))


ONE_BY_ONE = {
    "written and read elsewhere": [Let("x", "load", ("a", ("+", "i", 1)), FLOAT), Store("a", "i", "x")],
    "written twice": [Let("x", "load", ("b", "i"), FLOAT), Store("a", "i", "x"), Store("a", ("+", "i", 1), "x")],
    "one place": [Let("x", "load", ("b", "i"), FLOAT), Accumulate("sum", "a", 0, "x")],
    "places that overlap": [Let("x", "load", ("b", "i"), FLOAT), Accumulate("sum", "a", TWICE, "x")],
    "read from a computed place": [
        Let("n", "index", ("i",), LONG), Let("x", "load", ("a", ("+", "i", "n")), FLOAT), Store("b", "i", "x"),
    ],
    "a value of a computed position": [
        Let("x", "load", ("a", "i"), FLOAT), Let("n", "whole", ("x",), LONG), Let("y", "index", (("*", "n", 2),), LONG),
        Store("b", "i", "y"),
    ],
    "function of the library": [
        Let("x", "load", ("a", "i"), FLOAT), Let("y", "remainder", ("x", "x"), FLOAT), Store("b", "i", "y"),
    ],
}


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_rounds_that_need_each_other_run_one_by_one(name):
    parameters = [Parameter(name, FLOAT, 300, "inout") for name in "ab"]
    kernel = Kernel("kernel", parameters, [For("i", "lo", "hi", ONE_BY_ONE[name])], 99, "elements")
    assert repr(widen(kernel, Machine()).body) == repr(kernel.body)


def test_plain_kernels_have_loads_and_stores_of_bytes_and_numbers_only():
    body = [For("i", "lo", "hi", [
        Let("flag", "load", ("f", "i"), BOOL), Let("n", "index", ("i",), INT),
        Let("m", "select", ("flag", "n", 0), INT),
        Store("f", "i", "flag"), Accumulate("sum", "t", "i", "m"),
    ])]
    parameters = [Parameter("f", BOOL, 9, "inout"), Parameter("t", INT, 9, "inout")]
    made = plain(Kernel("kernel", parameters, body, 9, "elements"))
    listed = [*statements(made.body)]
    assert not any(isinstance(s, Accumulate) for s in listed)
    assert {s.dtype.name for s in listed if isinstance(s, Let) and s.op == "load"} == {"uint8", "int32"}
    assert made.parameters[0].dtype == np.uint8 and [s.op for s in listed if isinstance(s, Let)] == [
        "load", "cast", "index", "cast", "select", "cast", "load", "step_sum",
    ]


def test_positions_are_computed_outside_of_loops_that_do_not_change_them():
    load = Let("x", "load", ("a", ("+", ("*", ("//", "p", 2), 8), "r")), FLOAT)
    loop = For("r", 0, 8, [load], [Accumulator("s", "sum", "x", FLOAT)])
    body = [For("p", "lo", "hi", [loop, Store("b", "p", "s")])]
    parameters = [Parameter("a", FLOAT, 32, "in"), Parameter("b", FLOAT, 8, "out")]
    (rows,) = hoist(Kernel("kernel", parameters, body, 8, "rows")).body
    assert [s.op if isinstance(s, Let) else type(s).__name__ for s in rows.body] == [
        "index //", "index *", "address", "For", "Store",
    ]
    (inner,) = [s for s in rows.body if isinstance(s, For)]
    assert [s.op for s in inner.body] == ["load"] and inner.body[0].args[1] == "r"


def test_random_programs_run_as_machine_code():
    for made in lowered_samples(range(30, 36)):
        check_roughly(made, native(made.kernel), outcomes(made.kernel, made.arrays, 0, made.kernel.units))
