"""The printer to WebAssembly: every operation of every dtype, and every kind of loop, against NumPy."""

from dataclasses import replace

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.codegen import side_modules
from minigrad.compile.codegen.wasm import MACHINE, wasm_function, wasm_source
from minigrad.compile.codegen.wasm_format import leb, module, signed_leb
from minigrad.compile.loops.ir import Accumulator, For, Kernel, Let, Parameter, Running, Store
from minigrad.compile.loops.operations import OPERATIONS, Operation
from minigrad.compile.loops.widen import lanes_of
from minigrad.compile.running import targets
from minigrad.compile.running.program import Program, compile
from minigrad.compile.running.targets import HOST, BackendWarning, Settings
from minigrad.support.errors import CompileError
from tests.compile.codegen.in_node import in_node
from tests.compile.codegen.lowered import check_roughly, lowered_samples
from tests.compile.codegen.samples import (
    BOOL,
    DOUBLE,
    DTYPES,
    FLOAT,
    INT,
    LONG,
    LOOPS,
    check,
    every_operation,
    expected,
    sample,
    total,
)
from tests.compile.interpreter import run_kernel

HALF = np.dtype(np.float16)
NUMBERS = [dtype for dtype in DTYPES if dtype != HALF]


def compiled(kernel):
    return in_node(module([wasm_function(kernel)]))


@pytest.fixture
def browser(monkeypatch):
    """A process that chooses backends as in a browser."""
    monkeypatch.setattr(targets, "IN_BROWSER", True)


def test_a_lane_makes_few_additions_one_after_the_other():
    x = (np.random.default_rng(0).uniform(0, 1, 65_536) + 1e4).astype(np.float32)
    found = np.zeros(1, np.float32)
    compiled(total(65_536, 65_536).kernel)([x, found], 0, 1)
    np.testing.assert_allclose(found[0], x.sum(dtype=np.float64), rtol=3 * np.finfo(np.float32).eps)


# Results --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_operations_compute_the_right_values(dtype):
    tested = every_operation(dtype, NUMBERS)
    check(tested, compiled(tested.kernel))


def one_by_one(tested):
    """The same results, each computed by a loop of its own; and the lanes of each loop."""
    (loop,) = tested.kernel.body
    lets = [s for s in loop.body if isinstance(s, Let)]
    loops, types = {}, {p.name: p.dtype for p in tested.kernel.parameters}
    for store in [s for s in loop.body if isinstance(s, Store)]:
        named = {store.value} | ({"less"} if store.buffer == "chosen" else set())
        own = [s for s in lets if s.op == "load" or s.name in named]
        loops[store.buffer] = replace(loop, body=[*own, store])
    kernel = replace(tested.kernel, body=[*loops.values()])
    types |= {let.name: let.dtype for let in lets}
    return replace(tested, kernel=kernel), {name: lanes_of(each, types, MACHINE)[1] for name, each in loops.items()}


# Operations that do not run on vectors: they call C's library, compute in float64, or cast to a different size.
SCALAR = {
    FLOAT: {"of_sin", "of_cos", "of_floordiv", "of_mod", "of_pow", "to_float64", "to_int8", "to_int16", "to_int64",
            "to_uint8"},
    INT: {"of_floordiv", "of_mod", "of_lshift", "of_rshift", "to_float64", "to_int8", "to_int16", "to_int64",
          "to_uint8"},
}


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_operations_on_vectors_compute_the_right_values(dtype):
    tested, lanes = one_by_one(every_operation(dtype, NUMBERS))
    check(tested, compiled(tested.kernel))
    check(tested, compiled(tested.kernel), pieces=7)
    assert {*lanes.values()} <= {1, 16 // dtype.itemsize} if dtype.itemsize >= 4 else True
    if dtype in SCALAR:
        assert {name for name, count in lanes.items() if count == 1} == SCALAR[dtype]


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name):
    tested = LOOPS[name]()
    run, reference = compiled(tested.kernel), expected(tested)
    check(tested, run, reference=reference)
    check(tested, run, pieces=3, reference=reference)


@pytest.mark.slow
def test_kernels_of_random_programs():
    tested = [each for each in lowered_samples(range(4000, 4040)) if not each.kernel.computes_in(HALF)]
    functions = [wasm_function(each.kernel, f"kernel_{number}") for number, each in enumerate(tested)]
    together = module(functions)
    for each, function in zip(tested, functions):
        reference = [a.copy() for a in each.arrays]
        run_kernel(each.kernel, reference, 0, each.kernel.units)
        check_roughly(each, in_node(together, function.name), reference)
    assert len(tested) > 40


@pytest.mark.parametrize("columns", [1, 3, 4, 7, 8, 16, 21, 40])
@pytest.mark.parametrize("dtype", [FLOAT, DOUBLE, INT, LONG], ids=str)
def test_rows_of_every_length(dtype, columns):
    place = ("+", ("*", "p", columns), "r")
    row = [
        Let("x", "load", ("a", place), dtype), Let("flag", "lt", ("x", 1), BOOL), Store("f", place, "flag"),
        Let("y", "select", ("flag", "x", 1), dtype), Store("b", place, "y"),
    ]
    sums = [Accumulator("s", "sum", "y", dtype), Accumulator("m", "max", "x", dtype)]
    body = [For("p", "lo", "hi", [For("r", 0, columns, row, sums), Store("c", "p", "s"), Store("d", "p", "m")])]
    x = np.random.default_rng(columns).integers(-3, 4, 3 * columns).astype(dtype)
    parameters = [("a", dtype, 3 * columns, "in"), ("b", dtype, 3 * columns, "out"), ("f", BOOL, 3 * columns, "out"),
                  ("c", dtype, 3, "out"), ("d", dtype, 3, "out")]
    tested = sample(parameters, body, {"a": x}, parallel="rows", units=3)
    check(tested, compiled(tested.kernel))


@pytest.mark.parametrize("columns", [1, 3, 40])
def test_running_totals(columns):
    place = ("+", "r", ("*", "p", columns))
    row = [
        Let("x", "load", ("a", place), FLOAT), Running("t", "sum", "x", FLOAT), Let("y", "mul", ("t", 2.0), FLOAT),
        Store("b", place, "y"),
    ]
    body = [For("p", "lo", "hi", [For("r", 0, columns, row, [Accumulator("m", "max", "t", FLOAT)]),
                                  Store("c", "p", "m")])]
    x = np.random.default_rng(0).integers(-9, 9, 3 * columns).astype(np.float32)
    parameters = [("a", FLOAT, 3 * columns, "in"), ("b", FLOAT, 3 * columns, "out"), ("c", FLOAT, 3, "out")]
    tested = sample(parameters, body, {"a": x}, parallel="rows", units=3)
    check(tested, compiled(tested.kernel))


def test_bools_and_positions_in_lanes():
    """A bool is a byte in memory, and all bits of a lane in a vector."""
    n = 77
    body = [For("i", "lo", "hi", [
        Let("x", "load", ("a", ("+", "i", 2)), FLOAT), Let("on", "load", ("m", ("+", "i", 1)), BOOL),
        Let("same", "load", ("m", 0), BOOL), Let("both", "xor", ("on", "same"), BOOL), Store("f", "i", "both"),
        Let("k", "index", (("+", "i", 3),), INT), Let("p", "cast", ("k",), FLOAT), Let("y", "mul", ("x", "p"), FLOAT),
        Let("one", "cast", ("on",), FLOAT), Let("z", "add", ("y", "one"), FLOAT), Store("b", "i", "z"),
    ])]
    rng = np.random.default_rng(0)
    given = {"a": rng.integers(-9, 9, n + 2).astype("f4"), "m": rng.random(n + 1) < 0.5}
    parameters = [("a", FLOAT, n + 2, "in"), ("m", BOOL, n + 1, "in"), ("f", BOOL, n, "out"), ("b", FLOAT, n, "out")]
    tested = sample(parameters, body, given, units=n)
    assert "i32x4.splat" in wasm_source(tested.kernel) and "v128.load32_zero" in wasm_source(tested.kernel)
    check(tested, compiled(tested.kernel))
    check(tested, compiled(tested.kernel), pieces=4)


def test_names_of_values_may_be_those_of_functions():
    body = [Let("pow", "load", ("table", "i"), DOUBLE), Let("fmod", "mul", ("pow", 2.5), DOUBLE),
            Let("x", "mod", ("fmod", "pow"), DOUBLE), Store("b", "i", "x")]
    tested = sample([("table", DOUBLE, 5, "in"), ("b", DOUBLE, 5, "out")], [For("i", "lo", "hi", body)],
                    {"table": np.arange(1.0, 6.0)})
    assert '(func $fmod (param f64 f64) (result f64))' in wasm_source(tested.kernel)
    check(tested, compiled(tested.kernel))


def test_a_new_function_of_two_operands_is_called_with_both(monkeypatch):
    monkeypatch.setitem(OPERATIONS, "hypot", Operation("hypot", 2, "f", np.hypot, c="hypot"))
    body = [Let("x", "load", ("a", "i"), FLOAT), Let("y", "hypot", ("x", 4.0), FLOAT), Store("b", "i", "y")]
    tested = sample([("a", FLOAT, 5, "in"), ("b", FLOAT, 5, "out")], [For("i", "lo", "hi", body)],
                    {"a": np.arange(5, dtype="f4")})
    assert "(func $hypotf (param f32 f32) (result f32))" in wasm_source(tested.kernel)
    check(tested, compiled(tested.kernel))


@pytest.mark.slow
def test_a_kernel_with_thousands_of_values():
    names = [f"v{k}" for k in range(100)]
    body = [Let("v0", "load", ("a", "i"), FLOAT)]
    body += [Let(name, "tanh" if k % 2 else "exp", (names[k],), FLOAT) for k, name in enumerate(names[1:])]
    loop = For("i", "lo", "hi", [*body, Store("b", "i", "v99")])
    tested = sample([("a", FLOAT, 10, "in"), ("b", FLOAT, 10, "out")], [loop], {"a": np.ones(10, np.float32)},
                    inexact={"b": 99})
    function = wasm_function(tested.kernel)
    assert 1000 < len(function.locals) < 50_000, "the limit of browsers"
    check(tested, in_node(module([function])))


# Products -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64], ids=str)
@pytest.mark.parametrize("sizes", [(8, 5, 8), (9, 7, 11), (16, 33, 20), (40, 300, 30)], ids=str)
def test_loops_compute_the_products_of_matrices(browser, sizes, dtype):
    m, k, n = sizes
    rng = np.random.default_rng(0)
    x, y = [rng.integers(-9, 9, shape).astype(dtype) for shape in ((m, k), (n, k))]
    graph = mg.trace(lambda x, y: x @ y.T, mg.asarray(x), mg.asarray(y))
    (step,) = compile(graph, Settings(HOST.on_backend(None))).plan.steps
    arrays = [x.ravel(), y.ravel(), *[np.zeros(p.size, p.dtype) for p in step.kernel.parameters[2:]]]
    compiled(step.kernel)(arrays, 0, step.kernel.units)
    np.testing.assert_array_equal(arrays[2].reshape(m, n), x @ y.T)
    assert f"f{8 * dtype.itemsize}x{16 // dtype.itemsize}.mul" in wasm_source(step.kernel)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "sizes", [((3, 9, 5), (3, 5, 8)), ((2, 3, 9, 5), (3, 5, 12)), ((1, 8, 4), (6, 4, 9)), ((1, 8, 4), (4, 8))], ids=str
)
def test_loops_compute_the_products_of_stacks(browser, sizes, turned):
    rng = np.random.default_rng(0)
    x, y = [rng.integers(-9, 9, shape).astype(np.float32) for shape in sizes]
    stored = y.swapaxes(-1, -2).copy() if turned else y
    graph = mg.trace(lambda x, y: x @ (mg.swapaxes(y, -1, -2) if turned else y), mg.asarray(x), mg.asarray(stored))
    (step,) = compile(graph, Settings(HOST.on_backend(None))).plan.steps
    arrays = [x.ravel(), stored.ravel(), *[np.zeros(p.size, p.dtype) for p in step.kernel.parameters[2:]]]
    compiled(step.kernel)(arrays, 0, step.kernel.units)
    np.testing.assert_array_equal(arrays[2].reshape((x @ y).shape), x @ y)


def test_other_backends_leave_products_to_the_library():
    (step,) = compile(mg.trace(lambda x: x @ x, mg.ones((8, 8)))).plan.steps
    assert not hasattr(step, "kernel")


# Bytes and text -------------------------------------------------------------------------------------------------------


def every_second():
    body = [Let("x", "load", ("a", ("+", ("*", "i", 2), 1)), FLOAT), Let("y", "add", ("x", 0.5), FLOAT)]
    parameters = [Parameter("a", FLOAT, 8, "in"), Parameter("b", FLOAT, 4, "out")]
    return Kernel("half", parameters, [For("i", "lo", "hi", [*body, Store("b", "i", "y")])], 4, "elements")


LISTING = """\
(module
  (import "env" "memory" (memory 0))
  (func $kernel (export "kernel") (param $.table i32)
    (local $x f32)
    (local $y f32)
    (local $a i32)
    (local $b i32)
    (local $lo i32)
    (local $hi i32)
    (local $t..1 i32)
    (local $a..2 i32)
    (local $t..3 i32)
    (local $i i32)
    local.get $.table
    i32.load
    local.set $a
    local.get $.table
    i32.load offset=4
    local.set $b
    local.get $.table
    i32.load offset=8
    local.set $lo
    local.get $.table
    i32.load offset=12
    local.set $hi
    local.get $lo
    local.set $i
    block
      local.get $i
      local.get $hi
      i32.ge_s
      br_if 0
      loop
        local.get $i
        i32.const 8
        i32.mul
        local.set $t..1
        local.get $a
        local.get $t..1
        i32.add
        local.tee $a..2
        f32.load offset=4
        local.tee $x
        f32.const 0.5
        f32.add
        local.set $y
        local.get $i
        i32.const 4
        i32.mul
        local.set $t..3
        local.get $b
        local.get $t..3
        i32.add
        local.get $y
        f32.store
        local.get $i
        i32.const 1
        i32.add
        local.tee $i
        local.get $hi
        i32.lt_s
        br_if 0
      end
    end))
"""


def test_the_text_of_a_kernel():
    assert wasm_source(every_second()) == LISTING


def test_the_bytes_of_a_kernel():
    code = module([wasm_function(every_second())])
    assert code.startswith(b"\0asm\1\0\0\0\0\x0f\x08dylink.0\1\4\0\0\0\0"), "a side module of Emscripten"
    assert code.hex() == BYTES


BYTES = (
    "0061736d01000000000f0864796c696e6b2e3001040000000001050160017f00020f0103656e76066d656d6f727902000003020100070a01"
    "066b65726e656c00000a6d016b02027d087f200028020021032000280204210420002802082105200028020c21062005210a0240200a2006"
    "4e0d000340200a41086c2107200320076a22082a02042201430000003f922102200a41046c2109200420096a2002380200200a41016a220a"
    "2006480d000b0b0b"
)


def test_numbers_in_groups_of_seven_bits():
    def value(raw, signed):
        number = sum((byte & 127) << 7 * at for at, byte in enumerate(raw))
        return number - (1 << 7 * len(raw)) if signed and raw[-1] & 64 else number

    for number in (0, 1, 63, 64, 127, 128, 300, 2**31 - 1, 2**40):
        assert value(leb(number), False) == value(signed_leb(number), True) == number
        assert value(signed_leb(-number), True) == -number


# Falling back ---------------------------------------------------------------------------------------------------------


def test_a_program_elsewhere_refuses_it():
    graph = mg.trace(lambda x: x * 2, mg.ones(3))
    with pytest.raises(CompileError, match="'wasm' runs kernels in a browser only\n  Expected: llvm or numpy"):
        Program(graph, backend="wasm")


def test_kernels_that_cannot_be_loaded_are_run_by_numpy(browser):
    graph = mg.trace(lambda x: x * 2, mg.ones(3))
    with pytest.warns(BackendWarning, match=r"NumPy runs kernel_0 \(multiply, made at .*several times slower"):
        program = Program(graph).ready()  # no other system loads WebAssembly as a library
    assert program([np.ones(3, np.float32)])[0].tolist() == [2, 2, 2]


def test_a_kernel_that_cannot_be_printed_is_run_by_numpy(browser, monkeypatch):
    real, taken = side_modules.wasm_function, []

    def picky(kernel, name):
        if "tanh" in repr(kernel.body):
            raise CompileError("there are no instructions for tanh of float32")
        return real(kernel, name)

    def load(functions):
        taken.extend(functions)
        side_modules._loaded.update({each.name: lambda table: None for each in functions})

    monkeypatch.setattr(side_modules, "_loaded", {})
    monkeypatch.setattr(side_modules, "wasm_function", picky)
    monkeypatch.setattr(side_modules, "_load", load)
    graph = mg.trace(lambda x, y: (mg.tanh(x), mg.exp(y)), mg.ones(3), mg.ones(4))
    with pytest.warns(BackendWarning, match=r"NumPy runs kernel_0 \(tanh, .*no instructions for tanh") as caught:
        program = Program(graph).ready()
    assert len(caught) == len(taken) == 1 and len(program.functions) == 2


def test_float16_is_run_by_numpy_without_a_warning(browser):
    program = Program(mg.trace(lambda x: x * 2, mg.ones(3, dtype=mg.float16)))
    assert program([np.ones(3, np.float16)])[0].tolist() == [2, 2, 2]
    with pytest.raises(CompileError, match="no instructions for float16"):
        wasm_function(every_operation(HALF).kernel)


def test_equal_kernels_are_loaded_once(browser, monkeypatch):
    loads = []

    def load(functions):
        loads.append([each.name for each in functions])
        side_modules._loaded.update({each.name: lambda table: None for each in functions})

    monkeypatch.setattr(side_modules, "_loaded", {})
    monkeypatch.setattr(side_modules, "_load", load)
    graph = mg.trace(lambda x, y: (x * 2, y * 2, mg.exp(x + y[0])), mg.ones(3), mg.ones(3))
    for _ in range(2):
        Program(graph).ready()
    (names,) = loads
    assert len(names) == len({*names})
