"""Kernels built by hand, with arrays to run them on: all printers must give the same results.

`tests.compile.interpreter` computes the expected results with NumPy, one operation at a time.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from minigrad.compile.loops.ir import Accumulate, Accumulator, For, Kernel, Lanes, Let, Parameter, Store
from tests.compile.interpreter import run_kernel

FLOAT, DOUBLE, BOOL = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.bool_)
INT, LONG = np.dtype(np.int32), np.dtype(np.int64)
DTYPES = [np.dtype(d) for d in "float16 float32 float64 int8 int16 int32 int64 uint8 bool".split()]

FLOAT_OPERATIONS = {
    1: "neg abs floor rint sqrt exp expm1 log log1p tanh erf sin cos".split(),
    2: "add sub mul div max min pow floordiv mod atan2 lt le eq".split(),
}
INTEGER_OPERATIONS = {
    1: "neg abs floor rint invert".split(),
    2: "add sub mul max min floordiv mod lt le eq and or xor lshift rshift".split(),
}
BOOL_OPERATIONS = {1: ["invert"], 2: "add mul max min lt le eq and or xor".split()}
COMPARISONS = ("lt", "le", "eq")
FUNCTIONS = "exp expm1 log log1p tanh erf sin cos pow atan2".split()


@dataclass
class Sample:
    """A kernel and the arrays of all its buffers.  `inexact`: for some buffers, the error allowed in units of the last
    place."""

    kernel: Kernel
    arrays: list
    inexact: dict


def poison(size, dtype):
    """Uninitialised memory."""
    memory = np.empty(size, dtype)
    memory.fill(np.nan if dtype.kind == "f" else True if dtype.kind == "b" else 77)
    return memory


def sample(parameters, body, given, parallel="elements", units=None, inexact=None):
    """`parameters` are (name, dtype, size, role); `given` has the arrays that the kernel reads."""
    listed = [Parameter(*p) for p in parameters]
    arrays = [given[p.name].copy() if p.name in given else poison(p.size, p.dtype) for p in listed]
    units = units if units is not None else listed[0].size
    return Sample(Kernel("kernel", listed, body, units, parallel), arrays, inexact or {})


# Elements -------------------------------------------------------------------------------------------------------------


def awkward(dtype):
    """Numbers that reveal wrong arithmetic."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.unique(np.array([limits.min, limits.min + 1, 0, 1, 2, 3, 7, 31, limits.max // 2, limits.max,
                                   max(limits.min, -1), max(limits.min, -3), max(limits.min, -8)], dtype))
    limits = np.finfo(dtype)
    least, tiny, most = float(limits.smallest_subnormal), float(limits.tiny), float(limits.max)
    sizes = [0.0, least, tiny / 2, tiny, 1e-3, 0.4, 0.5, 0.6251, 1, 1.5, 2, 2.5, 3, 7.25, 11, 87.5, 88.8, 103.5, 1000,
             most, np.inf]
    with np.errstate(over="ignore"):
        return np.array([np.nan, *sizes, *(-s for s in sizes)], dtype)


def every_operation(dtype, targets=DTYPES):
    """A kernel with every operation of a dtype, also casts to `targets`; each result has its buffer."""
    table = {"f": FLOAT_OPERATIONS, "b": BOOL_OPERATIONS}.get(dtype.kind, INTEGER_OPERATIONS)
    if dtype.kind == "u":
        table = table | {1: [op for op in table[1] if op != "neg"]}
    if dtype == LONG:  # NumPy converts it through float64
        table = table | {1: [op for op in table[1] if op not in ("floor", "rint")]}
    pairs = np.array(list(product(awkward(dtype), repeat=2)), dtype)
    size = len(pairs)
    parameters, body = [], []
    for number in range(2):
        parameters.append((f"x{number}", dtype, size, "in"))
        body.append(Let(f"a{number}", "load", (f"x{number}", "i"), dtype))
    for arity, op in [(n, op) for n in table for op in table[n]]:
        result = BOOL if op in COMPARISONS else dtype
        parameters.append((f"of_{op}", result, size, "out"))
        body.append(Let(f"v_{op}", op, ("a0", "a1")[:arity], result))
        body.append(Store(f"of_{op}", "i", f"v_{op}"))
    for target in targets:
        parameters.append((f"to_{target}", target, size, "out"))
        body += [Let(f"c_{target}", "cast", ("a0",), target), Store(f"to_{target}", "i", f"c_{target}")]
    parameters.append(("chosen", dtype, size, "out"))
    body += [Let("less", "lt", ("a0", "a1"), BOOL), Let("one", "select", ("less", "a0", 1), dtype),
             Store("chosen", "i", "one")]
    limits = {f"of_{op}": 4 for op in FUNCTIONS}
    given = {"x0": pairs[:, 0].copy(), "x1": pairs[:, 1].copy()}
    return sample(parameters, [For("i", "lo", "hi", body)], given, inexact=limits)


def long_float_chain(n=1000):
    """Enough statements that the rounds of the loop are interleaved."""
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    body = [Let("x", "load", ("a", "i"), FLOAT), Let("t0", "tanh", ("x",), FLOAT), Let("t1", "exp", ("t0",), FLOAT),
            Let("t2", "erf", ("t1",), FLOAT), Let("t3", "mul", ("t2", 0.5), FLOAT), Store("b", "i", "t3")]
    parameters = [("a", FLOAT, n, "in"), ("b", FLOAT, n, "out")]
    return sample(parameters, [For("i", "lo", "hi", body)], {"a": x}, inexact={"b": 8})


def places(rows=7, columns=12):
    """Reads of transposed, broadcast, repeated and sliced arrays, and of positions as values."""
    x = np.arange(rows * columns, dtype=np.float32)
    row, column = ("//", "i", columns), ("%", "i", columns)
    loads = [
        ("+", ("*", column, rows), row), column, ("*", row, columns), 5,
        ("+", ("*", ("//", column, 2), 2), ("*", row, columns)), ("min", ("+", "i", 10), rows * columns - 1),
    ]
    body, parameters = [], [("a", FLOAT, rows * columns, "in")]
    for number, index in enumerate(loads):
        body += [Let(f"v{number}", "load", ("a", index), FLOAT), Store(f"b{number}", "i", f"v{number}")]
        parameters.append((f"b{number}", FLOAT, rows * columns, "out"))
    for dtype in (INT, FLOAT, DOUBLE, LONG):
        body += [Let(f"n_{dtype}", "index", (("+", row, ("*", column, 3)),), dtype),
                 Store(f"n_{dtype}_", "i", f"n_{dtype}")]
        parameters.append((f"n_{dtype}_", dtype, rows * columns, "out"))
    return sample(parameters, [For("i", "lo", "hi", body)], {"a": x})


def in_place(n=100):
    """An update, stored in the memory it was read from, with a scalar that is loaded once."""
    rng = np.random.default_rng(1)
    given = {"w": rng.integers(-9, 9, n).astype("f4"), "g": rng.integers(-9, 9, n).astype("f4"), "r": np.float32([0.5])}
    body = [
        Let("rate", "load", ("r", 0), FLOAT),
        For("i", "lo", "hi", [
            Let("g1", "load", ("g", "i"), FLOAT), Let("step", "mul", ("g1", "rate"), FLOAT),
            Let("w1", "load", ("w", "i"), FLOAT), Let("next", "sub", ("w1", "step"), FLOAT), Store("w", "i", "next"),
        ]),
    ]
    parameters = [("w", FLOAT, n, "inout"), ("g", FLOAT, n, "in"), ("r", FLOAT, 1, "in")]
    return sample(parameters, body, given)


def swapped(n=50):
    """A loaded value stays the same after its place has been overwritten."""
    rng = np.random.default_rng(11)
    body = [For("i", "lo", "hi", [
        Let("x", "load", ("a", "i"), FLOAT), Let("y", "load", ("b", "i"), FLOAT),
        Store("a", "i", "y"), Store("b", "i", "x"),
    ])]
    given = {"a": rng.standard_normal(n).astype("f4"), "b": rng.standard_normal(n).astype("f4")}
    return sample([("a", FLOAT, n, "inout"), ("b", FLOAT, n, "inout")], body, given)


def numbers_only(n=20):
    """Operations and comparisons of numbers alone."""
    body = [For("i", "lo", "hi", [
        Let("x", "load", ("a", "i"), FLOAT), Let("one", "cast", (1.5,), FLOAT), Let("two", "mul", ("one", 2.0), FLOAT),
        Let("same", "eq", ("two", 3.0), BOOL), Let("less", "lt", ("two", "one"), BOOL),
        Let("y", "select", ("same", "x", "two"), FLOAT), Let("z", "select", ("less", "one", "y"), FLOAT),
        Store("b", "i", "z"),
    ])]
    return sample([("a", FLOAT, n, "in"), ("b", FLOAT, n, "out")], body, {"a": np.arange(n, dtype=np.float32)})


def divided_by_numbers():
    """Divisions by constants: -1 is a special case, -2 is not."""
    x = awkward(INT)
    divisors = (-7, -2, -1, 1, 3)
    body, parameters = [Let("x", "load", ("a", "i"), INT)], [("a", INT, len(x), "in")]
    for number, by in enumerate(divisors):
        for op in ("floordiv", "mod"):
            body += [Let(f"{op}{number}", op, ("x", by), INT), Store(f"of_{op}{number}", "i", f"{op}{number}")]
            parameters.append((f"of_{op}{number}", INT, len(x), "out"))
    return sample(parameters, [For("i", "lo", "hi", body)], {"a": x})


def from_positions(rows=12, columns=9, size=5):
    """Rows that are read, and added to others, at positions from memory; some positions are outside."""
    rng = np.random.default_rng(4)
    at = rng.integers(-size, size, rows)
    at[1], at[2], at[3] = size, -size - 1, np.iinfo(np.int64).min
    place = ("+", ("*", "at", columns), "r")
    body = [For("c", "lo", "hi", [
        For("z", 0, size * columns, [Store("t", "z", 0)]),
        For("p", 0, rows, [
            Let("n", "load", ("i", "p"), LONG), Let("at", "position", ("n", size), LONG),
            For("r", 0, columns, [
                Let("x", "load", ("a", place), INT), Store("b", ("+", ("*", "p", columns), "r"), "x"),
                Let("y", "load", ("v", ("+", ("*", "p", columns), "r")), INT), Accumulate("sum", "t", place, "y"),
            ]),
        ]),
    ])]
    parameters = [("i", LONG, rows, "in"), ("a", INT, size * columns, "in"), ("v", INT, rows * columns, "in"),
                  ("b", INT, rows * columns, "out"), ("t", INT, size * columns, "partial")]
    given = {"i": at, "a": rng.integers(-9, 9, size * columns).astype(np.int32),
             "v": rng.integers(-9, 9, rows * columns).astype(np.int32)}
    return sample(parameters, body, given, "chunks", 1)


def gathered(n=40, chunks=5):
    """Partial results are added up chunk by chunk before the loop that reads the sum."""
    rng = np.random.default_rng(2)
    body = [
        For("m", "lo", "hi", [Let("first", "load", ("p", "m"), FLOAT), Store("t", "m", "first")]),
        For("k", 1, chunks, [For("n", "lo", "hi", [
            Let("next", "load", ("p", ("+", ("*", "k", n), "n")), FLOAT), Accumulate("sum", "t", "n", "next"),
        ])]),
        For("i", "lo", "hi", [Let("s", "load", ("t", "i"), FLOAT), Let("d", "mul", ("s", 2.0), FLOAT),
                              Store("b", "i", "d")]),
    ]
    parameters = [("p", FLOAT, n * chunks, "in"), ("t", FLOAT, n, "out"), ("b", FLOAT, n, "out")]
    given = {"p": rng.standard_normal(n * chunks).astype("f4")}
    return sample(parameters, body, given, units=n, inexact={"t": 16, "b": 16})


def inner_sums(n=30, length=4):
    """A reduction in each round of a loop over elements."""
    x = np.random.default_rng(3).integers(-5, 5, n * length).astype(np.int32)
    load = Let("x", "load", ("a", ("+", ("*", "i", length), "k")), INT)
    total = Accumulator("total", "sum", "x", INT)
    body = [For("i", "lo", "hi", [For("k", 0, length, [load], [total]), Store("b", "i", "total")])]
    return sample([("a", INT, n * length, "in"), ("b", INT, n, "out")], body, {"a": x}, units=n)


# Rows -----------------------------------------------------------------------------------------------------------------


def softmax(rows=9, columns=100, dtype=FLOAT):
    """Three passes and a row of scratch memory."""
    x = (np.random.default_rng(4).standard_normal(rows * columns) * 3).astype(dtype)
    here = {k: ("+", ("*", "p", columns), f"r{k}") for k in range(3)}
    row = [
        For("r0", 0, columns, [Let("x0", "load", ("a", here[0]), dtype)], [Accumulator("most", "max", "x0", dtype)]),
        For("r1", 0, columns, [
            Let("x1", "load", ("a", here[1]), dtype), Let("d", "sub", ("x1", "most"), dtype),
            Let("e", "exp", ("d",), dtype), Store("s0", "r1", "e"),
        ], [Accumulator("total", "sum", "e", dtype)]),
        Let("q1", "div", (1.0, "total"), dtype),
        For("r2", 0, columns, [
            Let("e2", "load", ("s0", "r2"), dtype), Let("y", "mul", ("e2", "q1"), dtype), Store("b", here[2], "y"),
        ]),
        Store("c", "p", "total"),
    ]
    parameters = [("a", dtype, rows * columns, "in"), ("b", dtype, rows * columns, "out"), ("c", dtype, rows, "out"),
                  ("s0", dtype, columns, "scratch")]
    inexact = dict.fromkeys("bc", max(32, columns // 20))
    return sample(parameters, [For("p", "lo", "hi", row)], {"a": x}, "rows", rows, inexact)


def every_reduction(dtype, rows=5, columns=37):
    """Every reduction of rows, of whole numbers, for which the order does not matter."""
    x = np.random.default_rng(5).integers(0 if dtype.kind == "u" else -2, 3, rows * columns).astype(dtype)
    load = Let("x", "load", ("a", ("+", ("*", "p", columns), "r")), dtype)
    ops = ("sum", "prod", "max", "min")
    row = [For("r", 0, columns, [load], [Accumulator(f"t_{op}", op, "x", dtype) for op in ops])]
    row += [Store(op, "p", f"t_{op}") for op in ops]
    parameters = [("a", dtype, rows * columns, "in"), *[(op, dtype, rows, "out") for op in ops]]
    return sample(parameters, [For("p", "lo", "hi", row)], {"a": x}, "rows", rows)


def rows_with_nan(rows=3, columns=40):
    """A maximum over a nan is nan, wherever the nan is."""
    x = np.random.default_rng(6).standard_normal((rows, columns)).astype("f4")
    x[0, 39] = x[1, 0] = np.nan
    kernel = every_reduction(FLOAT, rows, columns).kernel
    given = {"a": x.reshape(-1)}
    parameters = [(p.name, p.dtype, p.size, p.role) for p in kernel.parameters]
    return sample(parameters, kernel.body, given, "rows", rows, {"sum": 32, "prod": 200})


# Chunks ---------------------------------------------------------------------------------------------------------------


def column_sums(rows=50, columns=24, chunk=16, op="sum"):
    """Sums across rows, with partial results for each chunk."""
    chunks = -(-rows // chunk)
    x = np.random.default_rng(7).integers(-4, 5, rows * columns).astype(np.float32)
    start = ("*", "c", chunk)
    load = Let("x", "load", ("a", ("+", ("*", "p", columns), "r")), FLOAT)
    into = ("+", ("*", "c", columns), "r")
    scaled = Let("y", "mul", ("x", 0.5), FLOAT)
    body = [For("c", "lo", "hi", [
        For("z", 0, columns, [Store("t", ("+", ("*", "c", columns), "z"), 0.0 if op == "sum" else float("-inf"))]),
        For("p", start, ("min", ("+", start, chunk), rows), [For("r", 0, columns, [
            load, scaled, Accumulate(op, "t", into, "y"),
        ])]),
    ])]
    parameters = [("a", FLOAT, rows * columns, "in"), ("t", FLOAT, chunks * columns, "partial")]
    return sample(parameters, body, {"a": x}, "chunks", chunks)


def total(n=1000, chunk=300):
    """A sum of everything: an accumulator for each chunk."""
    chunks = -(-n // chunk)
    x = np.random.default_rng(8).integers(-9, 9, n).astype(np.float32)
    start = ("*", "c", chunk)
    body = [For("c", "lo", "hi", [
        For("z", 0, 1, [Store("t", ("+", "c", "z"), 0.0)]),
        For("i", start, ("min", ("+", start, chunk), n), [Let("x", "load", ("a", "i"), FLOAT)],
            [Accumulator("s", "sum", "x", FLOAT)]),
        Accumulate("sum", "t", "c", "s"),
    ])]
    return sample([("a", FLOAT, n, "in"), ("t", FLOAT, chunks, "partial")], body, {"a": x}, "chunks", chunks)


def finished(parts=200, places=5, op="sum"):
    """The reduction of partial results: the first ones are stored, and the others added."""
    x = np.random.default_rng(9).integers(-9, 9, parts * places).astype(np.float32)
    load = Let("y", "load", ("a", ("+", ("*", "k", places), "n")), FLOAT)
    body = [
        For("m", "lo", "hi", [Let("x", "load", ("a", "m"), FLOAT), Store("b", "m", "x")]),
        For("k", 1, parts, [For("n", "lo", "hi", [load, Accumulate(op, "b", "n", "y")])]),
    ]
    return sample([("a", FLOAT, parts * places, "in"), ("b", FLOAT, places, "out")], body, {"a": x}, units=places)


def shared_places(n=90, chunk=40, places=3):
    """Several rounds of the innermost loop, neighbours or far apart, add to the same element."""
    chunks = -(-n // chunk)
    x = np.random.default_rng(9).integers(-9, 9, n).astype(np.float32)
    start = ("*", "c", chunk)
    far, near = ("+", ("*", "c", places), ("%", "i", places)), ("+", ("*", "c", n), ("//", "i", 4))
    body = [For("c", "lo", "hi", [
        For("z0", 0, places, [Store("t", ("+", ("*", "c", places), "z0"), 0.0)]),
        For("z1", 0, n, [Store("u", ("+", ("*", "c", n), "z1"), 1.0)]),
        For("i", start, ("min", ("+", start, chunk), n), [
            Let("x", "load", ("a", "i"), FLOAT), Accumulate("sum", "t", far, "x"), Accumulate("max", "u", near, "x"),
        ]),
    ])]
    parameters = [("a", FLOAT, n, "in"), ("t", FLOAT, chunks * places, "partial"),
                  ("u", FLOAT, chunks * n, "partial")]
    return sample(parameters, body, {"a": x}, "chunks", chunks)


def windows(rows=6, columns=4, op="max"):
    """A reduction of windows of two by two, whose elements are not neighbours; each element is stored too."""
    n = rows * columns * 4
    x = np.random.default_rng(12).integers(-9, 9, n).astype(np.float32)
    column, row = ("%", ("//", "i", 2), columns), ("//", ("//", ("//", "i", 2), columns), 2)
    size = rows * columns
    body = [For("c", "lo", "hi", [
        For("z", 0, size, [Store("t", ("+", ("*", "c", size), "z"), 0.0 if op == "sum" else float("-inf"))]),
        For("i", ("*", "c", n), ("min", ("+", ("*", "c", n), n), n), [
            Let("x", "load", ("a", "i"), FLOAT), Let("y", "mul", ("x", 0.5), FLOAT), Store("b", "i", "y"),
            Accumulate(op, "t", ("+", ("*", "c", size), ("+", column, ("*", row, columns))), "y"),
        ]),
    ])]
    parameters = [("a", FLOAT, n, "in"), ("b", FLOAT, n, "out"), ("t", FLOAT, size, "partial")]
    return sample(parameters, body, {"a": x}, "chunks", 1)


def row_sums_into_memory(rows=20, columns=9, chunk=8):
    """The result of each row is added to one of a few elements."""
    chunks = -(-rows // chunk)
    x = np.random.default_rng(10).integers(-9, 9, rows * columns).astype(np.float32)
    start = ("*", "c", chunk)
    load = Let("x", "load", ("a", ("+", ("*", "p", columns), "r")), FLOAT)
    body = [For("c", "lo", "hi", [
        For("z", 0, 4, [Store("t", ("+", ("*", "c", 4), "z"), 0.0)]),
        For("p", start, ("min", ("+", start, chunk), rows), [
            For("r", 0, columns, [load], [Accumulator("s", "sum", "x", FLOAT)]),
            Accumulate("sum", "t", ("+", ("*", "c", 4), ("%", "p", 4)), "s"),
        ]),
    ])]
    parameters = [("a", FLOAT, rows * columns, "in"), ("t", FLOAT, chunks * 4, "partial")]
    return sample(parameters, body, {"a": x}, "chunks", chunks)


def lanes(rows=5, width=8, length=6):
    """Sums for many columns at once, in lanes: the first half of each is stored, the second half is added to it."""
    a, w = [np.random.default_rng(13).integers(-9, 9, n * length).astype(np.float32) for n in (rows, width)]

    def half(start, statement):
        place = ("+", start, "k")
        body = [
            Let(f"x{start}", "load", ("a", ("+", ("*", "p", length), place)), FLOAT),
            Let(f"w{start}", "load", ("w", ("+", ("*", place, width), "l")), FLOAT),
            Let(f"y{start}", "mul", (f"x{start}", f"w{start}"), FLOAT),
        ]
        sums = [Accumulator(f"s{start}", "sum", f"y{start}", FLOAT)]
        return Lanes("l", 0, width, [For("k", 0, length // 2, body, sums), statement(("+", ("*", "p", width), "l"))])

    body = [For("p", "lo", "hi", [
        half(0, lambda place: Store("t", place, "s0")),
        half(length // 2, lambda place: Accumulate("sum", "t", place, f"s{length // 2}")),
        Lanes("m", 0, width, [Store("ones", ("+", ("*", "p", width), "m"), 1.0)]),
    ])]
    size = rows * width
    parameters = [("a", FLOAT, rows * length, "in"), ("w", FLOAT, width * length, "in"), ("t", FLOAT, size, "out"),
                  ("ones", FLOAT, size, "out")]
    return sample(parameters, body, {"a": a, "w": w}, "rows", rows)


LOOPS = {
    "long_float_chain": long_float_chain, "places": places, "in_place": in_place, "swapped": swapped,
    "numbers_only": numbers_only, "divided_by_numbers": divided_by_numbers,
    "from_positions": from_positions,
    "gathered": gathered, "inner_sums": inner_sums, "softmax": softmax, "softmax_double": lambda: softmax(dtype=DOUBLE),
    "long_rows": lambda: softmax(3, 5000), "one_column": lambda: softmax(4, 1),
    "rows_with_nan": rows_with_nan, "column_sums": column_sums, "column_maxima": lambda: column_sums(op="max"),
    "total": total, "finished": finished, "finished_maxima": lambda: finished(70, 40, "max"),
    "shared_places": shared_places, "row_sums_into_memory": row_sums_into_memory,
    "lanes": lanes, "wide_lanes": lambda: lanes(width=16),
    "windows": windows, "sums_of_windows": lambda: windows(op="sum"), "wide_windows": lambda: windows(2, 70),
}
for _dtype in (INT, LONG, FLOAT, DOUBLE, np.dtype(np.uint8), np.dtype(np.int16)):
    LOOPS[f"every_reduction_{_dtype}"] = lambda dtype=_dtype: every_reduction(dtype)


# Comparing ------------------------------------------------------------------------------------------------------------


def expected(sample):
    """The arrays after the interpreter has run the kernel."""
    arrays = [a.copy() for a in sample.arrays]
    run_kernel(sample.kernel, arrays, 0, sample.kernel.units)
    return arrays


def check(sample, run, pieces=1, reference=None, skip=()):
    """Run a sample in pieces and compare each buffer with the expected one."""
    arrays = [a.copy() for a in sample.arrays]
    units = sample.kernel.units
    for piece in range(pieces):
        run(arrays, units * piece // pieces, units * (piece + 1) // pieces)
    for parameter, array, wanted in zip(sample.kernel.parameters, arrays, reference or expected(sample)):
        if parameter.role != "scratch" and parameter.name not in skip:
            compare(array, wanted, sample.inexact.get(parameter.name, 0), parameter.name)


def compare(actual, wanted, ulps, name):
    """Check equality up to some units of the last place; nan equals nan, -0.0 differs from 0.0 if defined."""
    assert actual.dtype == wanted.dtype
    if actual.dtype.kind != "f":
        np.testing.assert_array_equal(actual, wanted, err_msg=name)
        return
    finite = np.isfinite(wanted) & np.isfinite(actual)
    np.testing.assert_array_equal(actual[~finite], wanted[~finite], err_msg=name)
    actual, wanted = actual[finite], wanted[finite]
    with np.errstate(over="ignore"):
        off = np.abs(actual.astype("f8") - wanted.astype("f8")) / np.spacing(np.abs(wanted)).astype("f8")
    worst = np.argmax(off) if off.size else 0
    assert not off.size or off[worst] <= ulps, f"{name}: {actual[worst]} instead of {wanted[worst]}"
    if not ulps and name not in ("of_max", "of_min"):
        np.testing.assert_array_equal(np.signbit(actual), np.signbit(wanted), err_msg=f"{name}: the sign of 0")
