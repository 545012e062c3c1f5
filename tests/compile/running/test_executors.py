"""Schedules, and executors that run independent steps at the same time, with the same results."""

import json
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.running.plan import IN_PLACE, SLOT, Check
from minigrad.compile.running.program import Program
from minigrad.compile.running.schedule import turns
from tests.compile.at_once import wrong_in_threads


@pytest.fixture(autouse=True)
def _two_threads():
    before = mg.devices.num_threads()
    mg.devices.set_num_threads(2)
    yield
    mg.devices.set_num_threads(before)


def branches(x, y, w):
    """Kernels, products and library calls, some of them independent."""
    a = mg.softmax(x @ w, axis=-1)
    b = mg.tanh(y.T @ w.T).sum(0)
    c = mg.argsort(x, axis=-1)
    return a.sum(0) @ w, b * 2, c, (x @ w)[::2] + b[:7].sum(), mg.sort(mg.exp(y), axis=0)


def given():
    mg.random.seed(3)
    return mg.random.normal((9, 9)), mg.random.normal((9, 9)), mg.random.normal((9, 9))


def arrays_of(tensors):
    return [t.numpy_copy() for t in tensors]


def writes_in_place(plan):
    """The index of the step that overwrites an input."""
    overwrites = [any(plan.buffers[i].kind == IN_PLACE for i in plan.uses(step)[1]) for step in plan.steps]
    return overwrites.index(True)


def program_of(function, *tensors, **options):
    return Program(mg.trace(function, *tensors), **options)


# Schedules ------------------------------------------------------------------------------------------------------------


def test_levels_respect_every_dependency(numpy_kernels):
    program = program_of(branches, *given())
    schedule, plan = program.schedule, program.plan
    made = {}
    for step, planned in zip(schedule.steps, plan.steps, strict=True):
        reads, writes = plan.uses(planned)
        for key in reads:
            if key in made:
                assert made[key].number in step.after and made[key].level < step.level
        made |= dict.fromkeys(writes, step)
    assert max(map(len, schedule.levels)) > 1
    assert sorted(s.number for level in schedule.levels for s in level) == list(range(len(plan.steps)))


def test_critical_path_is_the_most_expensive_chain(numpy_kernels):
    def f(x, y):
        return mg.exp(x @ x @ x) @ x, y @ y

    schedule = program_of(f, mg.ones((20, 20)), mg.ones((5, 5))).schedule
    assert [s.name for s in schedule.critical_path] == ["matmul_1", "matmul_2", "kernel_3", "matmul_3"]
    assert schedule.span == sum(s.cost for s in schedule.critical_path) < schedule.work
    (product,) = [s for s in schedule.steps if s.name == "matmul_4"]
    assert (product.bytes, product.flops, product.level, product.after) == (2 * 100, 2 * 125, 0, ())  # y is read once


def test_a_schedule_prints(numpy_kernels):
    schedule = mg.jit(lambda x, y: (mg.exp(x @ x), y @ y)).program(mg.ones((8, 8)), mg.ones((4, 4))).schedule
    assert repr(schedule) == "<Schedule of 3 steps in 2 levels>"
    lines = str(schedule).splitlines()
    assert lines[0].split() == ["level", "step", "after", "bytes", "flops", "cost"]
    assert [line.split()[:2] for line in lines[1:4]] == [["0", "matmul_1"], ["0", "matmul_2"], ["1", "kernel_2"]]
    assert "*" in lines[1] and "*" not in lines[2] and "on the critical path" in lines[-1]
    assert schedule.steps[2].after == (0,)


def test_a_step_that_overwrites_an_input_waits_for_all_readers(numpy_kernels):
    def f(p, w):
        return p - 0.5 * p.sum(), p @ w, mg.argsort(p, axis=-1)

    program = program_of(f, mg.ones((9, 9)), mg.ones((9, 9)), donate={0: 0}, executor="parallel")
    assert program.stored_in == {0: 0}
    writer = program.schedule.steps[writes_in_place(program.plan)]
    readers = {s.number for s in program.schedule.steps if s.kind == "library"}
    assert readers <= set(writer.after) and len(readers) == 2
    mg.random.seed(1)
    p, w = mg.random.normal((9, 9)).numpy_copy(), np.ones((9, 9), np.float32)
    before = p.copy()
    for _ in range(5):
        _, product, order = program([p, w])
        np.testing.assert_allclose(product, before @ w, rtol=1e-5)
        np.testing.assert_array_equal(order, before.argsort(-1, kind="stable"))
        np.testing.assert_allclose(p, before - 0.5 * before.sum(), rtol=1e-5)
        before = p.copy()


def test_steps_that_overwrite_wait_for_steps_that_may_fail(numpy_kernels):
    def f(p, x, t):
        picked = mg.exp(x)[mg.arange(6), t * 2]
        return p - 1, picked

    program = program_of(f, mg.ones(9), mg.ones((6, 3)), mg.zeros(6, dtype="int64"), donate={0: 0}, executor="parallel")
    assert program.stored_in == {0: 0}
    checks = {number for number, step in enumerate(program.plan.steps) if isinstance(step, Check)}
    assert checks and checks <= set(program.plan.after[writes_in_place(program.plan)])
    p = np.ones(9, np.float32)
    with pytest.raises(mg.IndexingError, match="index 8 is out of range"):
        program([p, np.ones((6, 3), np.float32), np.full(6, 4)])
    assert (p == 1).all()


# Executors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_results_are_the_same_bit_for_bit(backend):
    tensors = given()
    serial, parallel = [program_of(branches, *tensors, executor=e, backend=backend) for e in ("serial", "parallel")]
    assert max(map(len, parallel.plan.turns)) > 1 == max(map(len, serial.plan.turns))
    for factor in (1, 2, -3):
        arrays = [a * np.float32(factor) for a in arrays_of(tensors)]
        for a, b in zip(serial(arrays), parallel(arrays), strict=True):
            np.testing.assert_array_equal(a, b)


def test_values_of_one_level_never_share_memory(numpy_kernels):
    program = program_of(branches, *given(), executor="parallel")
    plan = program.plan
    needed_until = {}
    for number, turn in enumerate(plan.turns):
        for step in turn:
            reads, writes = plan.uses(plan.steps[step])
            for key in (*reads, *writes):
                needed_until.setdefault(key, [number, number])[1] = number
    kept = [(plan.buffers[key], span) for key, span in needed_until.items() if plan.buffers[key].kind == SLOT]
    assert len(kept) > 3
    for buffer, (begin, end) in kept:
        for other, (first, last) in kept:
            if buffer is not other and buffer.number == other.number:
                assert last < begin or end < first


def test_kernels_of_one_level_run_at_the_same_time():
    """Each kernel waits until the other one starts as well: run one after the other, they would wait for ever."""
    graph = mg.trace(lambda x, y: (mg.exp(x), mg.tanh(y)), mg.ones(50), mg.ones(60))
    program = Program(graph, executor="parallel")
    meeting = threading.Barrier(2, timeout=20)
    real = dict(program.functions)

    def meet_and(function):
        return lambda table: (meeting.wait(), function(table))

    program.functions.update({number: meet_and(function) for number, function in real.items()})
    with mg.profile() as run:
        x, y = program([np.ones(50, np.float32), np.ones(60, np.float32)])
    np.testing.assert_allclose(x, np.exp(np.ones(50)), rtol=1e-6)
    np.testing.assert_allclose(y, np.tanh(np.ones(60)), rtol=1e-6)
    first, second = run.events
    assert first.thread != second.thread
    assert max(first.begin, second.begin) < min(first.end, second.end)

    program = Program(graph, executor="serial")
    program.functions.update({number: meet_and(function) for number, function in program.functions.items()})
    meeting = threading.Barrier(2, timeout=0.2)
    with pytest.raises(threading.BrokenBarrierError):
        program([np.ones(50, np.float32), np.ones(60, np.float32)])


def test_auto_runs_only_large_steps_at_the_same_time(numpy_kernels):
    def f(x, y):
        return mg.exp(x), mg.tanh(y)

    def at_once(*sizes):
        schedule = program_of(f, *[mg.ones(size) for size in sizes]).schedule
        return max(map(len, turns(schedule, "auto")))

    assert program_of(f, mg.ones(70_000), mg.ones(70_001)).settings.executor == "serial"
    assert at_once(100, 200) == 1  # finished before a thread wakes up
    assert at_once(70_000, 70_001) == 2
    assert at_once(70_000, 200) == 1
    assert at_once(1_000_000, 1_000_001) == 1  # each is shared by all threads


def test_an_error_names_the_calling_line_and_the_line_that_made_the_node(numpy_kernels):
    @mg.jit(executor="parallel")
    def f(x, y):
        return mg.linalg.cholesky(x), mg.linalg.inv(y)

    good = mg.asarray([[2.0, 0.0], [0.0, 2.0]])
    f(good, good)
    for _ in range(5):
        with pytest.raises(mg.MatrixError, match="not positive definite") as caught:
            f(-good, good * 0)  # both fail: the first is the error
        assert "f(-good, good * 0)" in str(caught.value)
        assert "return mg.linalg.cholesky(x)" in caught.value.__notes__[0]
        with pytest.raises(mg.MatrixError, match="singular") as caught:
            f(good, good * 0)
        assert "f(good, good * 0)" in str(caught.value) and len(caught.value.__notes__) == 1
    assert f(good, good)[1].tolist() == [[0.5, 0.0], [0.0, 0.5]]


def test_effects_happen_in_the_callers_thread_and_in_their_order(numpy_kernels, monkeypatch, capsys):
    threads = []
    kernels = mg.as_device("cpu").kernels
    real = kernels["print"]

    def noted(*values, **attrs):
        threads.append(threading.current_thread())
        return real(*values, **attrs)

    monkeypatch.setitem(kernels, "print", noted)

    @mg.jit(executor="parallel")
    def f(x, y):
        for number, value in enumerate((x, y, x + 1, y + 1)):
            mg.print(f"n{number}", value.sum())
        return mg.exp(x), mg.tanh(y)

    for _ in range(2):
        f(mg.ones(3), mg.ones(4))
    assert capsys.readouterr().out.split() == "n0: 3. n1: 4. n2: 6. n3: 8.".split() * 2
    assert set(threads) == {threading.current_thread()} and len(threads) == 8
    assert sum(s.has_effect for s in f.program(mg.ones(3), mg.ones(4)).schedule.steps) == 4


def test_program_can_be_called_by_several_threads_at_once():
    tensors = given()
    program = program_of(branches, *tensors, executor="parallel")
    assert wrong_in_threads(program, arrays_of(tensors), rounds=20) == []


def test_a_training_step_with_dropout_is_the_same_in_parallel():
    def trained(executor):
        mg.random.seed(5)
        model = mg.nn.Sequential(mg.nn.Linear(6, 8), mg.nn.Dropout(0.5), mg.nn.Linear(8, 3))
        optimizer = mg.optim.Adam(model.parameters(), lr=0.1)

        @mg.jit(executor=executor)
        def step(x, t):
            optimizer.zero_grad()
            loss = mg.cross_entropy(model(x), t)
            loss.backward()
            optimizer.step()
            return loss

        x, t = mg.random.normal((10, 6)), mg.asarray([0, 1, 2, 0, 1, 2, 0, 1, 2, 0])
        return [step(x, t).item() for _ in range(4)], [p.tolist() for p in model.parameters()]

    assert trained("parallel") == trained("serial")


def test_unknown_executor_is_an_error(monkeypatch):
    with pytest.raises(mg.CompileError, match=r"no executor named 'many'\n  Expected: serial or auto or parallel"):
        mg.jit(lambda x: x, executor="many")
    monkeypatch.setenv("MINIGRAD_EXECUTOR", "few")
    with pytest.raises(mg.CompileError, match="no executor named 'few'"):
        mg.jit(lambda x: x + 1)(mg.ones(2))
    monkeypatch.setenv("MINIGRAD_EXECUTOR", "parallel")
    assert mg.jit(lambda x: x + 1).program(mg.ones(2)).settings.executor == "parallel"
    assert mg.jit(lambda x: x + 1, executor="serial").program(mg.ones(2)).settings.executor == "serial"


# Profiles -------------------------------------------------------------------------------------------------------------


def test_a_profile_writes_down_every_step(tmp_path, numpy_kernels):
    f = mg.jit(lambda x, y: mg.exp(x @ y).sum())
    f(mg.ones((4, 4)), mg.ones((4, 4)))
    with mg.profile() as run:
        for _ in range(3):
            f(mg.ones((4, 4)), mg.ones((4, 4)))
    assert [e.name for e in run.events] == ["matmul_1", "kernel_1"] * 3
    times = [t for e in run.events for t in (e.begin, e.end)]
    assert times == sorted(times) and times[0] > 0
    assert repr(run) == "<profile of 6 launches in 1 threads>"
    assert [line.split()[:2] for line in sorted(str(run).splitlines()[1:])] == [["kernel_1", "3"], ["matmul_1", "3"]]
    f(mg.ones((4, 4)), mg.ones((4, 4)))
    assert len(run.events) == 6  # only those of the block

    run.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X"] == ["matmul_1", "kernel_1"] * 3
    assert [e["args"]["name"] for e in events if e["ph"] == "M"] == [threading.current_thread().name]
    assert all(e["dur"] > 0 and e["tid"] == 0 for e in events if e["ph"] == "X")
