"""Programs: the same results from every backend and without passes, reuse of memory, and writes in place."""

import re
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.codegen import native
from minigrad.compile.loops.ir import Let, statements
from minigrad.compile.nodes.graph import Graph
from minigrad.compile.running.plain import PlainProgram
from minigrad.compile.running.plan import arena_for
from minigrad.compile.running.program import Program
from minigrad.compile.running.targets import BackendWarning, compiled, is_native
from minigrad.support.errors import CompileError
from tests.compile.at_once import wrong_in_threads


def step_of(x, w, b):
    h = mg.gelu(x @ w + b)
    return mg.softmax(h.T, axis=0).T.sum(0), (h * h).mean(-1), h[1:, ::2]


def inputs():
    mg.random.seed(1)
    return mg.random.normal((6, 5)), mg.random.normal((5, 8)), mg.random.normal(8)


def arrays_of(tensors):
    return [t.numpy_copy() for t in tensors]


@pytest.mark.parametrize("options", [{}, {"backend": "numpy"}, {"without": ("simplify", "common", "fold_views")}])
def test_backends_and_executors_give_the_same_results(options):
    given = inputs()
    graph = mg.trace(step_of, *given)
    expected = PlainProgram(graph)(arrays_of(given))
    for _ in range(2):
        for ours, theirs in zip(Program(graph, **options)(arrays_of(given)), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


def test_results_are_the_callers():
    given = inputs()
    program = Program(mg.trace(step_of, *given))
    first = program(arrays_of(given))
    kept = [r.copy() for r in first]
    program([a * 2 for a in arrays_of(given)])
    for result, before in zip(first, kept):
        np.testing.assert_array_equal(result, before)
        result += 1  # the result owns this memory
    for again, before in zip(program(arrays_of(given)), kept):
        np.testing.assert_array_equal(again, before)


def test_inputs_whose_elements_are_not_in_order():
    x, w, b = arrays_of(inputs())
    program = Program(mg.trace(step_of, *inputs()))
    expected = program([x, w, b])
    backwards = np.asfortranarray(x), w[:, ::-1].copy()[:, ::-1], b
    for ours, theirs in zip(program(backwards), expected):
        np.testing.assert_array_equal(ours, theirs)


def test_outputs_that_are_inputs_constants_or_twice_the_same():
    graph = mg.trace(lambda x: (x * 1, x.T * 1, mg.zeros(3) + 1, x + 1, x + 1), mg.ones((2, 3)))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    same, turned, ones, more, again = Program(graph)([x])
    assert not np.shares_memory(same, x) and not np.shares_memory(more, again)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(turned, x.T)
    np.testing.assert_array_equal(ones, np.ones(3))
    np.testing.assert_array_equal(again, x + 1)


def test_result_stored_in_the_memory_of_an_input():
    graph = mg.trace(lambda p, g: (p - g * 0.5, g * 2), mg.ones(40), mg.ones(40))
    program = Program(graph, donate={0: 0})
    assert program.stored_in == {0: 0}
    p, g = np.full(40, 3, np.float32), np.full(40, 2, np.float32)
    stored, doubled = program([p, g])
    assert stored is None and (p == 2).all() and (doubled == 4).all()
    spread = np.full(80, 3, np.float32)
    program([spread[::2], g])  # a copy is written, and copied back
    assert (spread[::2] == 2).all() and (spread[1::2] == 3).all()


def test_result_in_the_memory_of_an_input_can_be_read_later():
    def f(p, w):
        q = p - 0.5
        return q, q @ w, mg.softmax(q.T, axis=-1) * w.sum()

    given = [mg.random.normal((9, 9)), mg.random.normal((9, 9))]
    program = Program(mg.trace(f, *given), donate={0: 0})
    assert program.stored_in == {0: 0} and len(program.plan.steps) > 2
    for _ in range(2):
        p, w = arrays_of(given)
        _, *results = program([p, w])
        for ours, theirs in zip([p, *results], f(*given)):
            np.testing.assert_allclose(ours, theirs.numpy_copy(), rtol=2e-5)


def test_inputs_that_are_read_later_are_not_overwritten():
    graph = mg.trace(lambda p: (p[::-1] * 0.5, p + 1), mg.ones(40))
    assert Program(graph, donate={0: 0}).stored_in == {}  # an element is read after its memory was written
    graph = mg.trace(lambda p: p * 0.5, mg.ones(40))
    graph = Graph(graph.inputs, (*graph.outputs, *graph.inputs))
    assert Program(graph, donate={0: 0}).stored_in == {}  # the old value is a result too


def test_threads_run_a_program_at_the_same_time():
    program = Program(mg.trace(step_of, *inputs()))
    assert wrong_in_threads(program, arrays_of(inputs()), rounds=30) == []


def test_shared_work_gives_the_same_bits(monkeypatch):
    x = mg.random.normal((64, 50))
    graph = mg.trace(lambda x: (mg.softmax(x), x.sum(0), x.tanh().sum()), x)
    alone = Program(graph)([x.numpy_copy()])
    monkeypatch.setattr("minigrad.compile.running.frame.WORTH_SHARING_BYTES", 0)
    before = mg.devices.num_threads()
    mg.devices.set_num_threads(3)
    try:
        shared = Program(graph)([x.numpy_copy()])
    finally:
        mg.devices.set_num_threads(before)
    for a, b in zip(alone, shared):
        np.testing.assert_array_equal(a, b)


def test_memory_of_dead_values_is_reused():
    def deep(x):
        for _ in range(20):
            x = (x @ x).tanh()
        return x

    program = Program(mg.trace(deep, mg.ones((16, 16))))
    assert sum(program.plan.slots) <= 4 * 16 * 16 * 4


def test_values_in_use_at_the_same_time_share_no_memory():
    steps = [((), ("a", "b")), (("a",), ("c",)), (("b", "c"), ("d",)), (("d",), ())]
    made = arena_for(steps, {"a": 10, "b": 20, "c": 30, "d": 5}.get)
    place = made.place
    assert len({place["a"], place["b"], place["c"]}) == 3
    assert len({place["b"], place["c"], place["d"]}) == 3
    assert made.bytes <= 60 and made.slots[place["c"]] >= 30


@pytest.mark.parametrize("converts", [False, True])
def test_half_precision_is_native_where_the_processor_converts_it(monkeypatch, converts):
    if not converts:
        monkeypatch.setattr(native.Processor, "has_half", False)
    graph = mg.trace(lambda x: x * 2 + 1, mg.ones(3, dtype="float16"))
    program = Program(graph)
    expected = native.processor().has_half
    assert all(is_native(step.kernel) == expected for step in program.plan.steps)
    assert program([np.float16([1, 2, 3])])[0].tolist() == [3, 5, 7]


def test_results_of_half_precision_are_those_of_eager_mode():
    def function(x, y):
        return mg.tanh(x * y) + mg.exp(-x), (x * y).sum(axis=1), mg.maximum(x, y), x < y, mg.astype(x, "float32")

    rng = np.random.default_rng(0)
    x, y = [mg.asarray(rng.normal(size=(20, 33)).astype("float16")) for _ in range(2)]
    for ours, eager in zip(mg.jit(function)(x, y), function(x, y)):
        np.testing.assert_allclose(ours.numpy(), eager.numpy(), rtol=2e-3, atol=2e-3)


def test_backend_that_fails_is_replaced_with_a_warning(monkeypatch):
    def broken(kernels):
        raise CompileError("no such processor")

    monkeypatch.setattr("minigrad.compile.codegen.native.compile_kernels", broken)
    graph = mg.trace(lambda x: x * 2, mg.ones(3))
    with pytest.warns(BackendWarning, match="no such processor"):
        program = Program(graph).ready()
    assert program([np.ones(3, np.float32)])[0].tolist() == [2, 2, 2]


def test_kernel_that_fails_is_run_by_numpy_and_named_in_a_warning(monkeypatch):
    real = native.compile_kernels
    tried = []

    def picky(kernels):
        tried.append(len(kernels))
        if any(s.op == "tanh" for kernel in kernels for s in statements(kernel.body) if isinstance(s, Let)):
            raise RuntimeError("LLVM ran out of registers")
        return real(kernels)

    monkeypatch.setattr(native, "compile_kernels", picky)
    graph = mg.trace(lambda x, y: (mg.tanh(x), mg.exp(y)), mg.ones(3), mg.ones(4))
    message = (
        r"NumPy runs kernel_0 \(tanh, made at .*test_program.py:\d+ .*\), several times slower: LLVM ran out of reg"
    )
    with pytest.warns(BackendWarning, match=message) as caught:
        program = Program(graph).ready()
    assert len(caught) == 1 and tried == [2, 1, 1], "together, and then one by one"
    ran_by = [function.__class__.__name__ for function in program.functions.values()]
    assert ran_by == ["ByNodes", "CFunctionType"]
    x, y = program([np.ones(3, np.float32), np.ones(4, np.float32)])
    np.testing.assert_allclose(x, np.tanh(np.ones(3)), rtol=1e-6)
    np.testing.assert_allclose(y, np.exp(np.ones(4)), rtol=1e-6)


def test_kernels_that_fail_alike_give_one_warning(monkeypatch):
    def broken(kernels):
        raise CompileError("no such processor", actual="a long text", hint="another processor")

    monkeypatch.setattr(native, "compile_kernels", broken)
    graph = mg.trace(lambda *xs: [mg.exp(x) for x in xs], *[mg.ones(size) for size in range(2, 7)])
    with pytest.warns(BackendWarning) as caught:
        Program(graph).ready()
    (text,) = [str(warning.message) for warning in caught]
    assert "kernel_2 (exp, made at" in text and "and 2 more, several times slower: no such processor" in text
    assert "Hint: another processor" in text and "a long text" not in text


def test_a_cache_folder_that_cannot_be_used_changes_nothing(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    graph = mg.trace(lambda x: mg.tanh(x) * 3 + x, mg.ones(5))
    expected = Program(graph, backend="numpy")([np.ones(5, np.float32)])[0]
    for folder in (tmp_path / "file", tmp_path / "file" / "below", "off"):
        monkeypatch.setenv("MINIGRAD_CACHE", str(folder))
        compiler = native._Compiler(native.llvmlite(), native.processor())  # this process has compiled nothing yet
        monkeypatch.setattr(native, "_compiler", lambda compiler=compiler: compiler)
        np.testing.assert_allclose(Program(graph)([np.ones(5, np.float32)])[0], expected, rtol=1e-6)


def test_unknown_backend_is_an_error():
    with pytest.raises(CompileError, match="no backend named 'fortran'"):
        compiled({}, "fortran")


def test_division_by_numbers():
    x = np.array([2.0, -3.7, 3.1, -1.8, 0.5, -0.0, np.inf], np.float32)
    numbers = (-1.0, -2.0, -0.7, 0.5, 0.0, -0.0, 3.0, float("inf"), float("-inf"))

    def divided(x):
        return mg.stack([part for number in numbers for part in (x // number, x % number)])

    with np.errstate(all="ignore"):
        expected = divided(mg.asarray(x)).numpy_copy()
        np.testing.assert_array_equal(mg.jit(divided)(mg.asarray(x)).numpy_copy(), expected)


def test_a_program_lists_where_each_value_lies():
    w, total = mg.ones((4, 4)), mg.zeros(4)

    @mg.jit
    def step(x):
        h = mg.tanh(x @ w)
        total[...] = total + h.sum(0)
        return h * 2

    program = step.program(mg.ones((3, 4)))
    assert repr(program) == f"<Program of {len(program.plan.steps)} steps, 2 of them kernels, arena 64 B>"
    text = str(program)
    assert "matmul_1 [slot 0]" in text and "[result 0]" in text and "[input 0]" in text
    assert text.splitlines()[-1].startswith("arena of 64 B in")
    donated = [line for line in text.splitlines() if "was]" in line]
    assert len(donated) == 1 and "add_1 [where tensor_3 was]" in donated[0] and "tensor_3 [input 2]" in donated[0]


# Memory ---------------------------------------------------------------------------------------------------------------


def _everything_with_everything(x):
    return x[:, None, None] * x[:, None] * x


@pytest.mark.parametrize(("function", "largest"), [
    (_everything_with_everything, "multiply"),
    (lambda x: mg.sort(_everything_with_everything(x), axis=0).sum(), "sort|multiply"),
    (lambda x: mg.sort(_everything_with_everything(x)[:, ::-1], axis=0)[::2], "multiply"),
    (lambda x: x[:, None] @ mg.ones((1, 2**34)), "matmul|ones|full"),
])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_memory_shortage_is_a_minigrad_error(function, largest, backend, monkeypatch):
    monkeypatch.setenv("MINIGRAD_BACKEND", backend)
    x = mg.ones(2**16)
    with pytest.raises(mg.DeviceError, match=r"no memory is left on cpu for the result of a program") as caught:
        mg.jit(function)(x)
    text = str(caught.value)
    value = rf"the largest value is ({largest})_\d+ \(65536, .* of float32"
    assert re.search(rf"{value}, made at .*test_program.py:\d+", text)
    assert "Hint: smaller batches" in text and "Line: " in text and "test_program.py" in text.rpartition("Line")[2]


def test_elements_of_a_range_by_computed_indices_are_machine_code():
    i = mg.asarray(np.arange(100))
    f = mg.jit(lambda i: (mg.arange(5)[i % 5] * 2, mg.take(mg.arange(3.0, 23.0, 2.0), i // 10)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evens, odds = f(i)
    assert evens.tolist() == (i.numpy() % 5 * 2).tolist() and odds.tolist() == (3 + 2 * (i.numpy() // 10)).tolist()
