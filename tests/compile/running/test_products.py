"""Matrix products in machine code: results of every layout, the number of BLAS's threads, and lists of steps."""

import ctypes
import os
import threading
from itertools import groupby

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.running import frame, steps, targets
from minigrad.compile.running.steps import NativeStep, in_one_call, product_of
from minigrad.devices import blas as blas_module
from minigrad.devices.blas import LOWERED, blas
from minigrad.devices.threads import THREADS
from minigrad.support.errors import CompileError

pytestmark = pytest.mark.skipif(blas() is None, reason="NumPy's BLAS is not found here")


def numbers(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape)


# Functions of two arrays, with the shapes of these and whether BLAS multiplies them where they are.
LAYOUTS = {
    "plain": (lambda x, y: x @ y, (5, 7), (7, 3), True),
    "left transposed": (lambda x, y: x.T @ y, (7, 5), (7, 3), True),
    "right transposed": (lambda x, y: x @ y.T, (5, 7), (3, 7), True),
    "both transposed": (lambda x, y: x.T @ y.T, (7, 5), (3, 7), True),
    "with its transpose": (lambda x, y: x @ x.T, (5, 7), (1,), True),
    "parts of rows": (lambda x, y: x[1:, 2:6] @ y[3:7, 1:], (5, 9), (8, 3), True),
    "every second row": (lambda x, y: x[::2] @ y[::2], (5, 4), (8, 3), True),
    "every second column": (lambda x, y: x[:, ::2] @ y, (5, 8), (4, 3), False),
    "reversed rows": (lambda x, y: x[::-1] @ y, (5, 7), (7, 3), False),
    "repeated rows": (lambda x, y: mg.broadcast_to(x, (4, 7)) @ y, (1, 7), (7, 3), False),
    "one row": (lambda x, y: x @ y, (1, 7), (7, 3), True),
    "one row, transposed": (lambda x, y: x @ y.T, (1, 7), (3, 7), True),
    "one column": (lambda x, y: x @ y, (5, 7), (7, 1), True),
    "one column of many": (lambda x, y: x.T @ y[:, 1:2], (7, 5), (7, 3), True),
    "one row that was a column": (lambda x, y: x[:, 2:3].T @ y, (7, 5), (7, 3), True),
    "one number": (lambda x, y: x @ y, (1, 7), (7, 1), True),
    "outer": (lambda x, y: x @ y, (5, 1), (1, 3), True),
    "vectors": (lambda x, y: x @ y, (7,), (7, 3), True),
    "rows of a stack": (lambda x, y: x @ y, (2, 4, 5, 7), (7, 3), True),
    "transposed stack": (lambda x, y: x.mT @ y, (4, 7, 5), (7, 3), True),
    "stacks": (lambda x, y: x @ y, (2, 4, 5, 7), (2, 4, 7, 3), True),
    "heads": (lambda x, y: mg.permute_dims(x, (0, 2, 1, 3)) @ mg.permute_dims(y, (0, 2, 3, 1)),
              (2, 5, 4, 7), (2, 3, 4, 7), True),
    "stack on the right": (lambda x, y: x @ y, (5, 7), (4, 7, 3), True),
    "stacks that broadcast": (lambda x, y: x @ y, (4, 1, 5, 7), (2, 7, 3), True),
    "stack of rows": (lambda x, y: x @ y, (4, 1, 7), (4, 7, 3), True),
    "stack of columns": (lambda x, y: x @ y, (4, 5, 7), (4, 7, 1), True),
    "stack of one": (lambda x, y: x @ y, (1, 5, 7), (1, 7, 3), True),
    "many small ones": (lambda x, y: x @ y, (300, 5, 7), (300, 7, 3), False),
    "no terms": (lambda x, y: x @ y, (5, 0), (0, 3), False),
}


def native_steps_of(f, *arguments):
    """The numbers of the steps in machine code, in the frame of a function that has run."""
    program = f.program(*arguments)
    (made,) = program._idle
    return {program.plan.steps[number].name for number in made.native}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_products_of_every_layout(name, dtype):
    function, *shapes, direct = LAYOUTS[name]
    f = mg.jit(lambda x, y: function(x, y) + 1)
    for scale in (1.0, -2.0):
        x, y = [mg.asarray(scale * numbers(*shape), dtype=dtype) for shape in shapes]
        wanted = function(*[mg.asarray(t.numpy().astype("float64")) for t in (x, y)]).numpy_copy() + 1
        np.testing.assert_allclose(f(x, y).numpy_copy(), wanted, rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-5)
    assert any(step.startswith("matmul") for step in native_steps_of(f, x, y)) == direct


def test_products_of_other_dtypes_go_through_numpy():
    for dtype in ("float16", "int64"):
        x = mg.asarray(np.arange(6).reshape(2, 3), dtype=dtype)
        f = mg.jit(lambda x: x @ x.T)
        assert f(x).tolist() == (x @ x.T).tolist() and not native_steps_of(f, x)


def no_compiler(*_):
    raise CompileError("llvmlite could not be loaded")


@pytest.mark.parametrize("reason", ["NumPy's kernels", "BLAS is not found", "LLVM is missing"])
def test_products_through_numpy(reason, monkeypatch):
    if reason == "NumPy's kernels":
        monkeypatch.setenv("MINIGRAD_BACKEND", "numpy")
    elif reason == "LLVM is missing":
        monkeypatch.setattr(targets, "product_function", no_compiler)
    else:
        monkeypatch.setattr(targets, "blas", lambda: None)
    f, x = mg.jit(lambda x: mg.tanh(x @ x.T)), mg.asarray(numbers(3, 4))
    np.testing.assert_allclose(f(x).numpy_copy(), np.tanh(x.numpy() @ x.numpy().T), rtol=1e-12)
    assert not any(step.startswith("matmul") for step in native_steps_of(f, x))


SHARED = [((50, 9), (9, 33)), ((9, 40), (40, 100)), ((9, 5, 4), (9, 4, 6)), ((1, 9), (9, 70))]


@pytest.mark.parametrize("shapes", SHARED)
def test_pieces_make_up_the_product(shapes, monkeypatch):
    """Threads share a large product, and its pieces have the same values as one call."""
    x, y = [mg.asarray(numbers(*shape)) for shape in shapes]
    whole = mg.jit(lambda x, y: x @ y)(x, y).numpy_copy()
    monkeypatch.setattr(THREADS, "count", 3)
    monkeypatch.setattr(frame, "WORTH_SHARING_BYTES", 0)
    f = mg.jit(lambda x, y: x @ y)
    np.testing.assert_allclose(f(x, y).numpy_copy(), whole, rtol=1e-13)
    program = f.program(x, y)
    (product,) = program.target.products(program.plan, None).values()
    pieces = product.pieces(6, 16)
    sizes = [(piece.m, piece.n, len(piece.stack)) for piece in pieces]
    assert 1 < len(pieces) <= 6 and sum(m * n * k for m, n, k in sizes) == whole.size


def test_a_product_of_pieces_is_not_shared_where_the_library_has_other_threads(monkeypatch):
    monkeypatch.setattr(steps, "blas", lambda: blas()._replace(get=0, set=0))
    monkeypatch.setattr(THREADS, "count", 3)
    monkeypatch.setattr(frame, "WORTH_SHARING_BYTES", 0)
    f, x = mg.jit(lambda x: x @ x.T), mg.asarray(numbers(40, 4))
    np.testing.assert_allclose(f(x).numpy_copy(), x.numpy() @ x.numpy().T, rtol=1e-12)
    assert native_steps_of(f, x) == {"matmul_1"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shapes", [((8, 9), (333, 9)), ((3, 33, 5), (3, 67, 5)), ((64, 4), (33, 4)), ((5, 9000), (45, 9000))]
)
def test_blocks_make_up_the_product(shapes, dtype, monkeypatch):
    """OpenBLAS has kernels for small products, and a large one is divided into these."""
    monkeypatch.setattr(steps, "blas", lambda: blas()._replace(kernels="SkylakeX"))
    x, y = [mg.asarray(numbers(*shape), dtype=dtype) for shape in shapes]
    f = mg.jit(lambda x, y: x @ y.mT)
    wanted = np.matmul(x.numpy().astype("float64"), np.swapaxes(y.numpy(), -1, -2).astype("float64"))
    np.testing.assert_allclose(f(x, y).numpy_copy(), wanted, rtol=1e-6 if dtype == "float32" else 1e-13, atol=1e-4)
    program = f.program(x, y)
    (product,) = program.target.products(program.plan, None).values()
    blocks = product.blocks()
    assert len(blocks[0].stack) > len(product.stack)
    assert sum(each.m * each.n * len(each.stack) for each in blocks) == wanted.size


def test_operands_without_a_layout_for_blas_are_refused():
    for function, *shapes, direct in LAYOUTS.values():
        plan = mg.jit(function).program(*[mg.ones(shape) for shape in shapes]).plan
        found = [product_of(step, plan.buffers) for step in plan.steps if getattr(step, "fills", False)]
        assert all((each is not None) == direct for each in found)


# The number of threads ----------------------------------------------------------------------------------------------


@pytest.fixture
def counts(monkeypatch):
    """A stand-in for OpenBLAS's number of threads, which begins as 4; its products note the number."""
    found = blas()
    if not found.set:
        pytest.skip("NumPy's BLAS is not OpenBLAS")
    box, noted = [4], []

    def get():
        noted.append(box[0])
        return box[0]

    def put(number):
        box[0] = number

    functions = ctypes.CFUNCTYPE(ctypes.c_int)(get), ctypes.CFUNCTYPE(None, ctypes.c_int)(put)
    addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in functions]
    made = found._replace(get=addresses[0], set=addresses[1])
    monkeypatch.setattr(steps, "blas", lambda: made)
    yield box, noted
    del functions


def test_blas_uses_one_thread_during_a_product(counts):
    box, noted = counts
    f, x = mg.jit(lambda x: mg.tanh(x @ x.T) @ x), mg.asarray(numbers(3, 4))
    for _ in range(3):
        np.testing.assert_allclose(f(x).numpy_copy(), np.tanh(x.numpy() @ x.numpy().T) @ x.numpy(), rtol=1e-12)
    assert noted == [4, 1] * 6 and box == [4] and LOWERED[0] == 0


def test_a_single_thread_stays(counts):
    box, noted = counts
    box[0] = 1
    mg.jit(lambda x: x @ x.T)(mg.asarray(numbers(3, 4)))
    assert noted == [1] and box == [1] and LOWERED[0] == 0


def test_the_last_product_at_the_same_time_restores_the_number(counts, monkeypatch):
    box, noted = counts
    LOWERED[0], LOWERED[1], box[0] = 1, 4, 1  # another product runs
    f, x = mg.jit(lambda x: x @ x.T), mg.asarray(numbers(3, 4))
    try:
        f(x)
        assert LOWERED[0] == 1 and box == [1] and not noted
    finally:
        LOWERED[0] = 0


def test_a_number_that_another_thread_sets_meanwhile_stays(counts):
    box, _ = counts
    lower, restore = steps.threads_functions()
    made = steps.blas()
    table = (ctypes.c_void_p * 4)(ctypes.addressof(LOWERED), made.get, made.set)
    lower(ctypes.addressof(table))
    box[0] = 2
    restore(ctypes.addressof(table))
    assert box == [2] and LOWERED[0] == 0


def test_threads_multiply_at_the_same_time(counts):
    box, _ = counts
    f = mg.jit(lambda x: mg.tanh(x @ x.T) @ x)
    inputs = [mg.asarray(numbers(3, 4) * (n + 1)) for n in range(4)]
    wanted, wrong = [f(x).tolist() for x in inputs], []

    def work(n):
        wrong.extend(n for _ in range(50) if f(inputs[n]).tolist() != wanted[n])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and box == [4] and LOWERED[0] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_restores_the_number():
    found = blas()
    if not found.set:
        pytest.skip("NumPy's BLAS is not OpenBLAS")
    get, set_ = ctypes.CFUNCTYPE(ctypes.c_int)(found.get), ctypes.CFUNCTYPE(None, ctypes.c_int)(found.set)
    before = get()
    LOWERED[0], LOWERED[1] = 1, 2
    try:
        set_(1)
        child = os.fork()
        if not child:
            os._exit(0 if get() == 2 and LOWERED[0] == 0 else 1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        LOWERED[0] = 0
        set_(before)


def test_libraries_that_are_not_found(monkeypatch):
    monkeypatch.setattr(blas_module, "_libraries", lambda: iter([ctypes.CDLL(None)]))
    monkeypatch.setattr(blas_module, "NAMES", [("no_{}", 64)])
    assert blas.__wrapped__() is None


# Lists of steps -------------------------------------------------------------------------------------------------------


def model(x, y):
    return mg.softmax(mg.tanh(x @ y) @ y.T), (x @ y).sum()


def test_a_program_of_kernels_and_products_is_one_call():
    f, x, y = mg.jit(model), mg.asarray(numbers(3, 4)), mg.asarray(numbers(4, 5))
    f(x, y)
    (made,) = f.program(x, y)._idle
    assert len(made.plan.steps) > 2 and len(made.steps) == 1


def test_calls_are_divided_by_work(monkeypatch):
    monkeypatch.setattr(frame, "UNINTERRUPTED_BYTES", 0)
    f, x, y = mg.jit(model), mg.asarray(numbers(3, 4)), mg.asarray(numbers(4, 5))
    f(x, y)
    (made,) = f.program(x, y)._idle
    assert len(made.steps) == len(made.plan.steps)


def test_python_steps_come_in_between():
    f, x = mg.jit(lambda x: mg.tanh(mg.sort(mg.tanh(x) * 2 @ x.T) @ x)), mg.asarray(numbers(3, 4))
    array = x.numpy()
    wanted = np.tanh(np.sort(np.tanh(array) * 2 @ array.T) @ array)
    for _ in range(2):
        np.testing.assert_allclose(f(x).numpy_copy(), wanted, rtol=1e-12)
    (made,) = f.program(x)._idle
    groups = [len([*group]) for _, group in groupby(range(len(made.plan.steps)), made.native.__contains__)]
    assert len(made.steps) == sum(1 if number % 2 == 0 else size for number, size in enumerate(groups)) >= 3


def test_a_profile_names_each_step():
    f, x, y = mg.jit(model), mg.asarray(numbers(3, 4)), mg.asarray(numbers(4, 5))
    f(x, y)
    with mg.profile() as run:
        f(x, y)
    assert [event.name for event in run.events] == [step.name for step in f.program(x, y).plan.steps]


def test_lists_contain_lists():
    done = []
    step = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(done.append)
    pair = in_one_call([NativeStep(step, 1), NativeStep(step, 2)])
    three = in_one_call([pair, NativeStep(step, 3)])
    three.function(three.table)
    assert done == [1, 2, 3]
