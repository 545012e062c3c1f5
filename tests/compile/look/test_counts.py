"""Launches, bytes and operations are defined once: all that states them agrees, and they are what runs."""

import ctypes
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.compile.fusion.count import Count, functions_of
from minigrad.compile.look import roofline
from minigrad.compile.look.held import lives_of
from minigrad.compile.look.record import eager_record, in_turns
from minigrad.compile.running import blocked, frame, steps, targets
from minigrad.compile.running.plan import Blocked, Call, Check
from minigrad.core.primitive import P
from minigrad.core.tree import leaves
from minigrad.support.table import bytes_text, counted
from minigrad.viz.compiled import not_jitted
from minigrad.viz.written import taken
from minigrad_course.units.u11_fusion.savings import stages_of
from tests.viz.ten_programs import TEN


def normal(*shape, seed=0):
    return mg.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def scalars():
    def f(x):
        a = 2 * x
        return a * a + a

    return f, [mg.asarray(3.0)]


def training(model, loss, make):
    optimizer = make([*model.parameters()])

    def step(x, y):
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return step


def mlp():
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 10))
    step = training(model, mg.cross_entropy, lambda ps: mg.optim.Adam(ps, lr=0.01))
    return step, [normal(64, 16), mg.asarray(np.arange(64) % 10)]


def cnn():
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 13 * 13, 10))
    step = training(model, mg.cross_entropy, lambda ps: mg.optim.SGD(ps, lr=0.01))
    return step, [normal(4, 1, 28, 28), mg.asarray(np.arange(4))]


def lstm():
    layer, head = nn.LSTM(5, 8, batch_first=True), nn.Linear(8, 1)
    return lambda x: (head(layer(x)[0])[:, -1] ** 2).mean(), [normal(3, 7, 5)]


def scan():
    return lambda x: mg.scan(lambda c, v: (mg.tanh(c + v), c * 2), x[0], x), [normal(20, 16)]


def fori_loop():
    return lambda x: mg.fori_loop(0, 9, lambda i, c: mg.tanh(c @ x), x), [normal(6, 6)]


def while_loop():
    def f(x):
        return mg.while_loop(lambda c: c.sum() < 100, lambda c: c + mg.exp(c / 10), x)

    return f, [mg.ones(7)]


def nested():
    def row(c):
        return mg.while_loop(lambda c: mg.max(c) < 5, lambda c: c * 2 + 1, c)

    return lambda x: mg.scan(lambda c, v: (row(c * 0 + v), mg.fori_loop(0, 3, lambda i, u: mg.sin(u), v)), x[0], x), [
        mg.asarray(np.arange(24, dtype=np.float32).reshape(6, 4))
    ]


def cond():
    def f(x):
        return mg.cond(x.sum() > 0, lambda: mg.tanh(x) @ x.mT, lambda: x @ x.mT)

    return f, [mg.ones((4, 5))]


def conds():
    def f(x):
        return mg.scan(lambda c, v: (mg.cond(v.sum() > 0, lambda: mg.sort(c + v), lambda: c), None), x[0], x)[0]

    return f, [normal(12, 5)]


def graph_network():
    head = nn.Linear(6, 6)
    ends = mg.asarray(np.array([0, 1, 2, 3, 1]))
    starts = mg.asarray(np.array([1, 2, 3, 0, 3]))
    return lambda x: mg.relu(mg.segment_sum(head(x)[starts], ends, 4)).sum(), [normal(4, 6)]


def hvp():
    def f(x):
        return (mg.tanh(x) * x * x).sum()

    return lambda x, v: mg.jvp(mg.grad(f), (x,), (v,))[1], [normal(9), normal(9, seed=1)]


def written():
    kept = mg.zeros((5, 4))

    def f(x):
        kept[1:3] = x * 2
        kept[0] += mg.sin(x[0])
        return kept.mT

    return f, [normal(2, 4)]


def jitted_inside():
    inner = mg.jit(lambda x: mg.softmax(x @ x.mT))
    return lambda x: inner(x).sum() + inner(x * 2).sum(), [normal(6, 6)]


def checked():
    return lambda x, i: mg.tanh(x)[i] * 2, [normal(6, 3), mg.asarray(np.array([1, 5, 0]))]


def factorised():
    return lambda x: mg.linalg.solve(x @ x.mT + mg.eye(6), mg.sort(x)) * 2, [normal(6, 6)]


def copied():
    return lambda x: (x.mT, x, mg.tanh(x)), [normal(3, 4)]


def attention():
    def f(q, k, v):
        scores = mg.where(mg.tril(mg.ones((512, 512), dtype=bool)), q @ k.mT / 8, -mg.inf)
        return mg.softmax(scores) @ v

    return f, [normal(2, 512, 64, seed=i) for i in range(3)]


def gpt():
    step, *args = TEN["gpt"]()
    return step, args


def physics():
    f, *args = TEN["physics"]()
    return f, args


PROGRAMS = [
    scalars, mlp, cnn, gpt, lstm, scan, fori_loop, while_loop, nested, cond, conds, graph_network, physics, hvp,
    written, jitted_inside, checked, factorised, copied, attention,
]


@pytest.fixture(params=PROGRAMS, ids=lambda make: make.__name__)
def ran(request):
    """A jitted function that ran, and its arguments."""
    mg.random.seed(0)
    function, args = request.param()
    jitted = mg.jit(function)
    jitted(*args)
    return jitted, args


# one number everywhere -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_all_that_states_launches_states_the_same(ran):
    f, args = ran
    cost = f.cost(*args)
    launches, eager = cost.program.launches, cost.eager.launches
    here = counted(launches, "launch", "launches")
    assert sum(kernel.program.launches for kernel in cost.kernels) == launches
    assert f"{eager}  " in cost.listing().splitlines()[-2] and f"{launches}  " in cost.listing().splitlines()[-1]
    with mg.profile() as run:
        f(*args)
    assert run.launches == launches and repr(run).startswith(f"<profile of {launches} launches")
    assert f"timeline: {here} on 2 workers" in repr(mg.viz.timeline(f, *args, runs=0))
    assert f": {here} instead of {eager:,} one by one, " in repr(mg.viz.fusion(f, *args))
    assert f.record(*args, runs=1).count.launches == launches
    lines = in_turns([eager_record(lambda: not_jitted(f)(*args), 1)])[0].count.launches
    assert mg.viz.fusion(f, *args).data()["taken"] == [taken(cost.eager), taken(cost.program)]
    here = counted(lines, "launch", "launches")
    timed = mg.viz.timeline(f, *args, runs=1).data()
    assert f"timeline: {here} eagerly, {launches} as a program" in timed["about"]
    *_, fused = stages_of(f.passes(*args), cost)
    assert fused.launches == launches


def test_all_that_states_bytes_and_operations_states_the_same(ran):
    f, args = ran
    cost, program = f.cost(*args), f.program(*args)
    eager, fused = cost.eager, cost.program
    schedule = program.schedule
    copies = steps.copies_of(program.plan)
    assert sum(step.bytes for step in schedule.steps) + copies.bytes == fused.bytes
    assert sum(step.flops for step in schedule.steps) + copies.flops == fused.flops
    (first, *_), last = stages_of(f.passes(*args), cost), stages_of(f.passes(*args), cost)[-1]
    assert first.bytes == eager.bytes and last.bytes == fused.bytes
    shown = {row[0]: row for row in cost.rows()}
    for kernel in cost.kernels:
        assert shown[kernel.name][2] == bytes_text(kernel.program.bytes_read)


def test_all_that_states_memory_states_the_same(ran):
    f, args = ran
    cost, view = f.cost(*args), mg.viz.memory(f, *args)
    [fused], drawn = view.pages[-1], view.pages[-1][0].drawing.to_svg("")
    plan = f.program(*args).plan
    lives = lives_of(plan)
    inside = {kernel.name: kernel.scratch for kernel in cost.kernels if kernel.rounds}  # of loops and branches
    names = [plan.steps[number].name for turn in plan.turns for number in turn]
    held = [sum([life.bytes for life in lives if life.begin <= n <= life.end]) + inside.get(name, 0)
            for n, name in enumerate(names)]
    assert max(held) <= cost.memory.total
    before, after = repr(view).split(", fused at most ")
    first, *_, last = [view.marks[f"s{n}.most"][0].removeprefix("at most ") for n in range(len(view.pages))]
    assert after.startswith(last) and f">at most {last}<" in drawn
    assert before.endswith(f"eager at most {first}") and f">eager: {first}<" in drawn
    if "0 checkpoints" not in view.text():  # else its gradient is in the chart, too
        assert last.startswith(f"{bytes_text(max(held))} in use")
        allocated = f", {bytes_text(cost.memory.total)} allocated"
        assert (allocated in fused.say) == (cost.memory.total > max(held))


def test_the_roofline_states_the_same(ran, monkeypatch):
    monkeypatch.setattr(roofline, "machine", cache(lambda: roofline.Machine(1e15, 1e15, 1e-9)))
    f, args = ran
    found = f.record(*args, runs=1).roofline()
    launching = {kernel.name for kernel in f.cost(*args).kernels if kernel.program.launches}
    assert {step.kernel.name for step in found.steps} == launching, "what launches nothing has no bound"
    launches = sum(step.kernel.program.launches for step in found.steps)
    assert launches == f.cost(*args).program.launches
    view = mg.viz.timeline(f, *args, runs=1)
    works = {bar.work.name: bar.work for bar in view.bands[1].bars}
    for step in found.steps:
        if step.kernel.name in works:  # a loop is its steps
            work = works[step.kernel.name]
            assert work.cost == step.kernel.program
            assert bool(work.best) == (step.bound != "launch"), "a share of what a launch takes says nothing"
            limit = dict(work.rows).get("limit of this machine", ", by launch")
            assert limit.endswith(f", by {step.bound}")
    assert not any(work.best for work in works.values() if not work.cost.launches)


@pytest.mark.slow
def test_before_the_first_call_the_same_program_is_shown():
    """But what only a run tells: the rounds of a while_loop, and the branch of a cond."""
    for make in [*TEN.values(), lambda: (scan()[0], *scan()[1]), lambda: (attention()[0], *attention()[1])]:
        if make is TEN["branches_and_loops"]:
            continue
        function, *args = make()
        f = mg.jit(function)
        before = f.cost(*args).program, repr(mg.viz.fusion(f, *args)), repr(mg.viz.memory(f, *args))
        f(*args)
        assert before == (f.cost(*args).program, repr(mg.viz.fusion(f, *args)), repr(mg.viz.memory(f, *args)))


# what runs ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch):
    """How often kernels and libraries are called, one by one from Python: loops in machine code are switched off."""
    number = [0]

    def noting(run):
        def noted(*given, **more):
            number[0] += 1
            return run(*given, **more)

        return noted

    made, finish, begin = frame.Frame._made, frame.Frame._finish, blocked.BlockedRun.__init__

    def _made(self, step, function):
        run = made(self, step, function)
        run = run if callable(run) else self._as_run(run)
        nothing = isinstance(step, Call) and (step.op is P.project or functions_of(step.attrs))
        return run if isinstance(step, (Check, Blocked)) or nothing else noting(run)

    def _finish(self, results):
        number[0] += sum(copied for _, _, copied in self.finishing)
        finish(self, results)

    def _begin(self, step, function, *others):
        begin(self, step, noting(function), *others)

    monkeypatch.setattr(frame.Frame, "_made", _made)
    monkeypatch.setattr(frame.Frame, "_finish", _finish)
    monkeypatch.setattr(blocked.BlockedRun, "__init__", _begin)
    monkeypatch.setattr(blocked, "np", SimpleNamespace(matmul=noting(np.matmul), ndarray=np.ndarray))
    return number


@pytest.mark.parametrize("make", PROGRAMS)
def test_what_is_stated_is_what_ran(calls, make):
    function, args = make()
    f = mg.jit(function)
    for _ in range(2):
        calls[0] = 0
        f(*args)
        assert calls[0] == f.cost(*args).program.launches > 0


def gradient_of(make):
    function, args = make()
    return mg.grad(lambda *args: sum(part.sum() for part in leaves(function(*args)))), args


NOTED = [mlp, cnn, scan, while_loop, nested, conds, checked, copied]
NOTED += [partial(gradient_of, make) for make in (lstm, scan, fori_loop, cond, graph_network)]


@pytest.mark.parametrize("make", NOTED)
def test_events_cost_what_the_program_costs(make):
    """Also where a loop keeps its carries for the gradient: it copies them in each round."""
    function, args = make()
    f = mg.jit(function)
    f(*args)
    with mg.profile() as run:
        f(*args)
    assert sum([event.cost for event in run.events], Count()) == f.cost(*args).program


@pytest.mark.parametrize("make", [scalars, scan, hvp, graph_network, cond])
def test_gradients_count_too(calls, make):
    function, (x, *more) = make()
    f = mg.jit(mg.grad(lambda *args: sum(part.sum() for part in leaves(function(*args)))))
    f(x, *more)
    calls[0] = 0
    f(x, *more)
    assert calls[0] == f.cost(x, *more).program.launches > 0


def test_other_rounds_in_the_next_call_are_counted(calls):
    function, (x,) = while_loop()
    f = mg.jit(function)
    assert "a loop, of which 1 round is counted" in str(f.cost(x))
    once = f.cost(x).program.launches
    found = []
    for start in (1, 5, 50):
        calls[0] = 0
        f(x * start)
        found.append(calls[0])
        assert f.cost(x).program.launches == calls[0]
    assert found[0] > found[1] > found[2] and found[2] < once < found[1]
    assert "a loop of 0 rounds" in str(f.cost(x))


@pytest.mark.parametrize(
    ("function", "shape", "expected"),
    [
        (lambda x: mg.scan(lambda c, v: (mg.tanh(c + v), c), x[0], x)[0], (512, 256), 512),
        (lambda x: mg.scan(lambda c, v: (mg.tanh(c + v), c * 2), x[0], x), (100, 8), 100),
        (lambda x: mg.fori_loop(0, 33, lambda i, c: mg.sin(c) + 1, x), (5,), 33 * 2),  # i too
        (lambda x: mg.while_loop(lambda c: c[0] < 40, lambda c: c + 1, x), (5,), 40 + 41),
    ],
)
def test_kernels_in_machine_code_are_called_as_often_as_is_stated(monkeypatch, function, shape, expected):
    """The tables have the address of a function that counts, and calls the kernel."""
    number = [0]

    def noting(kernel):
        def noted(table):
            number[0] += 1
            kernel(table)

        made = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(noted)
        made.engine = kernel.engine
        return made

    made = targets._native
    monkeypatch.setattr(targets, "_native", lambda some: {i: noting(each) for i, each in made(some).items()})
    x = mg.asarray(np.zeros(shape, np.float32))
    f = mg.jit(function)
    f(x)
    assert number[0] == expected == f.cost(x).program.launches


def test_the_example_of_the_definition():
    """A scan of 512 steps stores 524 kB and computes two operations for each of 131,072 numbers."""
    x = mg.ones((512, 256))
    f = mg.jit(lambda x: mg.scan(lambda c, v: (mg.tanh(c + v), c), x[0], x)[0])
    row = 256 * 4
    assert f.cost(x).program == Count(512 * 2 * row, 512 * row, 512 * 256 * 2, 512)
    assert f.cost(x).eager == Count(512 * 3 * row, 512 * 2 * row, 512 * 256 * 2, 1024)
    assert "by a loop of 512 rounds" in str(f.kernels(x)) and "for each element: add_1, tanh_1" in str(f.kernels(x))
    assert "scan_1, a loop of 512 rounds:" in str(f.program(x)) and "tanh_1 [result 0]" in str(f.program(x))


def test_carries_that_a_loop_keeps_are_written():
    x = mg.ones((10, 4))
    f = mg.jit(mg.grad(lambda x: mg.scan(lambda c, v: (mg.sin(c * v), None), x[0], x)[0].sum()))
    f(x)
    forward = next(kernel for kernel in f.cost(x).kernels if kernel.name == "scan_1")
    assert forward.program.bytes_written == 2 * 10 * 16  # each round writes its result, and keeps its carry


def test_a_check_does_not_count():
    function, args = checked()
    f = mg.jit(function)
    f(*args)
    checks = [step for step in f.program(*args).plan.steps if isinstance(step, Check)]
    assert len(checks) == 1 and f.cost(*args).program.launches == len(f.program(*args).plan.steps) - 1
    assert [step.bytes for step in f.program(*args).schedule.steps if step.kind == "check"] == [0]


def test_parts_of_a_result_take_no_memory_of_their_own():
    """The results of a scan are parts of one value."""
    function, args = lstm()
    f = mg.jit(function)
    f(*args)
    lives = lives_of(f.program(*args).plan)
    assert "scan_1" in [life.name for life in lives]
    assert not any(life.name.startswith("project") for life in lives)
    most = max(sum(life.bytes for life in lives if life.begin <= at <= life.end) for at in range(20))
    assert most <= f.cost(*args).memory.total


def test_the_summary_of_a_module_counts_rounds():
    layer = nn.LSTM(5, 8, batch_first=True)
    x = normal(3, 7, 5)
    assert layer.summary(x)[0].flops == mg.trace(layer, x).cost().eager.flops > 7 * 3 * 2 * (5 + 8) * 32


def test_the_board_of_fusion_adds_up_loops():
    function, args = scan()
    f = mg.jit(function)
    cost = f.cost(*args).program
    board = mg.viz.fusion(f, *args).data()["board"]
    loops = [item for item in board["items"] if item["name"] == "scan_1"]
    assert [(item["launches"], sum(item["takes"])) for item in loops] == [(cost.launches, cost.bytes)]
