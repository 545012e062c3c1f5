"""The record of a call: its launches are those that ran, and its times are those of the clock."""

import gc
import itertools
import sys
import weakref
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minigrad as mg
from minigrad import nn
from minigrad.compile.fusion.count import Count
from minigrad.compile.jitted import Jitted
from minigrad.compile.look import record, roofline
from minigrad.compile.look.ran import recorded
from minigrad.compile.look.record import LEAST, Record, in_turns, quickest, shortened, shortest
from minigrad.compile.look.roofline import Machine
from minigrad.compile.running import profiler, rounds
from minigrad.compile.running.profiler import Event
from minigrad.core.node import topological_order
from minigrad.support.source import in_library
from minigrad.viz.compiled import FunctionCall, Shown, eager_record_of
from minigrad.viz.timelines import timeline_of


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves a second each time that it is read."""
    reads = itertools.count()
    for module in (record, profiler, rounds):
        monkeypatch.setattr(module, "perf_counter", lambda: float(next(reads)))


def chain(x):
    return mg.tanh(x @ x).sum()


def eager_record(call, runs):
    (found,) = in_turns([record.eager_record(call, runs)])
    return found


X = mg.ones((8, 8))


# the programs of a call -----------------------------------------------------------------------------------------------


def test_a_record_has_the_launches_of_a_call_and_their_cost():
    f = mg.jit(chain)
    found = f.record(X, runs=1)
    assert [event.name for event in found.events] == ["matmul_1", "kernel_1"]
    assert found.count == f.cost(X).program == sum([event.cost for event in found.events], Count())
    assert found.program is f.program(X) and found.gradient is None and found.way == "as a program"
    assert str(found).splitlines()[-1].endswith("in 2 launches; 772 B read and written, 324 B allocated")
    assert found.cost.memory == f.cost(X).memory
    assert "<td>matmul_1</td>" in found._repr_html_()


def test_times_are_those_of_the_clock(clock):
    """A call reads the clock four times more where it is noted: at the begin and the end of two launches."""
    found = mg.jit(chain).record(X, runs=3)
    assert found.seconds == 1.0
    assert 0 <= found.in_launches <= 1.0
    inside = [time for event in found.events for time in (event.begin, event.end)]
    assert inside == sorted(inside) and 0 <= inside[0] and inside[-1] <= 1.0


def test_an_interruption_of_a_call_is_in_no_record(monkeypatch, numpy_kernels):
    """In each call one of the two launches is interrupted for a second, and none of them takes so long."""
    f, passed = mg.jit(chain), [0, 0.0]
    f(X)

    def clock():
        call, place = divmod(passed[0], 7)  # a call that is noted reads the clock so many times
        passed[:] = passed[0] + 1, passed[1] + (1.0 if place == 3 + 2 * (call % 2) else 1e-3)
        return passed[1]

    monkeypatch.setattr(record, "quickest", lambda call: 0.1)
    for module in (record, profiler):
        monkeypatch.setattr(module, "perf_counter", clock)
    found = f.record(X, runs=4)
    assert passed[0] == 4 * 7 and [round(event.end - event.begin, 6) for event in found.events] == [1e-3, 1e-3]


@given(st.lists(st.lists(st.integers(1, 9), min_size=7, max_size=7), min_size=1, max_size=4))
def test_each_stretch_of_a_record_is_the_shortest_of_all_calls(waits):
    """Two launches, the second in a loop around it; the calls differ in the waits between their times."""
    calls = []
    for each in waits:
        *ends, whole = itertools.accumulate(each)
        pairs = zip(("a", "loop", "loop/b"), [ends[0:2], [ends[2], ends[5]], ends[3:5]])
        calls.append((float(whole), [Event(name, "main", float(a), float(b)) for name, (a, b) in pairs]))
    events, seconds = shortest(calls)
    least = [float(min(column)) for column in zip(*waits)]
    found = [events[0].end - events[0].begin, events[2].end - events[2].begin]
    assert found == [least[1], least[4]] and events[1].end - events[1].begin == sum(least[3:6])
    assert seconds == sum(least) and all(0 <= event.begin <= event.end <= seconds for event in events)


def test_a_short_call_is_made_for_a_time_and_not_a_number_of_times(monkeypatch):
    """Caches are warm only after a thousand calls, of which each takes ten microseconds."""
    now, calls = [0.0], []

    def call():
        calls.append(now[0])
        now[0] += 10e-6 if len(calls) <= 1000 else 8e-6

    monkeypatch.setattr(record, "perf_counter", lambda: now[0])
    assert quickest(call) == pytest.approx(8e-6) and calls[-1] < LEAST <= now[0]


def test_eager_mode_and_the_program_run_in_turns(monkeypatch):
    """A load that lasts for the first half of the measurement is in neither of two records."""
    made = []

    def runs(name, many):
        for _ in range(many):
            yield
            made.append(name)
        return name

    assert in_turns([runs("eager", 3), runs("program", 2)]) == ["eager", "program"]
    assert made == ["eager", "program", "eager", "program", "eager"]
    order = []
    monkeypatch.setattr(record, "quickest", lambda call: order.append(call) or 1.0)
    mg.viz.timeline(chain, X, runs=3)
    assert len(order) == 6 and order[0::2] == order[:1] * 3 and order[1::2] == order[1:2] * 3 and order[0] != order[1]


def test_calls_that_are_repeated_print_nothing(capsys):
    """A notebook would show thousands of lines: a call is made again and again for 25 ms."""
    calls = []

    def f(x):
        calls.append(1)
        print("loss", float(x.sum()))
        return x * 2

    eager_record(lambda: f(X), runs=2)
    assert len(calls) > 2 and capsys.readouterr().out == ""
    with pytest.raises(ZeroDivisionError):
        eager_record(lambda: 1 / 0, runs=1)
    print("seen")
    assert capsys.readouterr().out == "seen\n"


def test_a_recorded_call_is_made_as_by_the_user(monkeypatch):
    """A node looks for the user's line in the frames above it; each frame of the library that is there takes time."""
    called, seen = Jitted.__call__, []

    def noted(self, *args):
        seen.append(in_library(sys._getframe(1).f_code.co_filename))
        return called(self, *args)

    monkeypatch.setattr(Jitted, "__call__", noted)
    mg.jit(chain).record(X, runs=1)
    assert seen and not any(seen)


@pytest.mark.parametrize(("times", "runs", "busy"), [
    ([5.0, 5.0, 5.1, 9.0, 9.0], 5, False), ([5.0, 7.0, 7.0, 7.0, 7.0, 5.0, 5.1], 7, False),
    ([5.0, *[7.0] * 9], 10, True),
])
def test_runs_that_differ_much_are_made_again_and_then_the_machine_was_busy(monkeypatch, times, runs, busy):
    left = iter(times)
    monkeypatch.setattr(record, "quickest", lambda call: next(left))
    monkeypatch.setattr(record, "_noted", lambda *_: (99.0, []))
    (found,) = in_turns([record.record_of_call(lambda: None, lambda: None, 5)])
    assert (len(times) - len([*left]), found.seconds, found.busy) == (runs, 5.0, busy)
    assert found.sums().endswith("; the machine was busy") == busy
    assert ("The machine was busy: a call may take less time." in timeline_of([found]).says) == busy


def test_a_record_is_no_longer_than_its_launches_and_what_lies_between_them(monkeypatch):
    """All calls without notes were interrupted."""
    monkeypatch.setattr(record, "quickest", lambda call: 10.0)
    found = mg.jit(chain).record(X, runs=3)
    assert found.events[-1].end <= found.seconds < 1.0


def test_a_call_with_other_events_does_not_count():
    one, other = [[Event(name, "main", 0.0, end)] for name, end in (("a", 3.0), ("b", 1.0))]
    assert shortest([(4.0, one), (5.0, other)]) == (one, 4.0)
    assert shortest([(4.0, one), (3.0, other)]) == (other, 3.0)


def test_the_gradient_has_a_record_of_its_own():
    f = mg.jit(chain)
    mg.grad(f)(X)
    found = f.record(X, runs=1)
    assert found.title.startswith("forward pass, keeps values") and found.gradient.title == "gradient"
    assert found.count == f.cost(X).program and found.gradient.count == f.cost(X).gradient.program
    (shown,) = in_turns([recorded(f, (X,), {}, 1)])
    assert [shown.title, shown.gradient.title] == [found.title, "gradient"]


def test_a_call_that_keeps_values_is_called():
    """It takes longer than its program, because it records a node."""
    layer = nn.Linear(8, 8)
    f = mg.jit(lambda x: layer(x).sum())
    found = f.record(X, runs=1)
    assert found.title == "forward pass, keeps values for the gradient"
    assert found.gradient is None and layer.weight.grad is None and f.ran(X).again


def test_side_effects_happen_in_every_call():
    total = mg.zeros(())

    @mg.jit
    def step(x):
        total[...] = total + x.sum()

    before = 0.0
    for runs in (1, 3):
        step.record(mg.ones(2), runs=runs)
        now = total.item() / 2
        assert now - before >= 2 * runs
        before = now


def test_methods_and_loaded_programs_have_records(tmp_path):
    class Model:
        @mg.jit
        def run(self, x):
            return chain(x)

    assert Model().run.record(X, runs=1).count.launches == 2
    mg.jit(chain).save(tmp_path / "f.program", X)
    loaded = mg.load_program(tmp_path / "f.program")
    assert repr(mg.viz.timeline(loaded, X, runs=1)) == "<timeline: 2 launches as a program>"


def test_calls_that_launch_other_kernels_each_time_have_no_record():
    """The costs of launches are those of one call, and their times those of others."""
    rounds = iter([1, 1, *[3] * 1_000_000])

    def f(x):
        for _ in range(next(rounds)):
            x = mg.tanh(x)
        return x

    with pytest.raises(mg.MinigradError, match="calls of this function differ"):
        in_turns([record.eager_record(lambda: f(X), 1)])


def test_loops_are_noted_round_by_round():
    f = mg.jit(lambda x: mg.scan(lambda c, v: (mg.tanh(c + v), None), x[0], x)[0])
    found = f.record(mg.ones((9, 4)), runs=1)
    assert sum(event.launches for event in found.events) == found.count.launches == 9
    loop, *views = [event for event in found.events if "/" not in event.name]
    assert loop.name == "scan_1" and not any(event.launches for event in (loop, *views))
    assert found.in_launches <= found.seconds


def test_the_steps_of_a_loop_in_machine_code_share_its_time(clock, monkeypatch):
    """Python runs between the steps only where they are noted."""
    monkeypatch.setattr(record, "quickest", lambda call: 99.0)
    f = mg.jit(lambda x: mg.scan(lambda c, v: (mg.tanh(c + v), None), x[0], x)[0])
    found = f.record(mg.ones((9, 4)))
    steps = [event for event in found.events if event.name.startswith("scan_1/")]
    assert len(steps) == 9 and steps[-1].end - steps[0].begin == pytest.approx(1.0)
    assert all(a.end == pytest.approx(b.begin) for a, b in pairwise(steps))


# eager mode -----------------------------------------------------------------------------------------------------------


def test_eager_mode_is_recorded_as_the_user_has_it():
    x = mg.ones((20, 20))
    assert [event.name for event in eager_record(lambda: mg.softmax(x), 1).events] == ["softmax/kernel_0"]
    with mg.eager_programs(False):
        found = eager_record(lambda: mg.softmax(x), 1)
    assert [event.name for event in found.events] == ["max", "subtract", "exp", "sum", "divide", "multiply"]
    assert found.way == "eagerly" and found.cost is None


@pytest.mark.parametrize("function", [
    chain, lambda x: mg.where(x > 0, x, -x)[::2], lambda x: mg.cumulative_sum(x.T, axis=0) + x[0], mg.sort,
    lambda x: x[mg.asarray(np.array([1, 3]))] * 2, lambda x: mg.broadcast_to(x[0], (9, 8)) + 1.0,
])
def test_kernels_of_eager_mode_are_the_nodes_of_a_history(function):
    """Launches and bytes are counted in a different way than from the traced graph, and are the same."""
    x = mg.asarray(np.arange(64, dtype=np.float32).reshape(8, 8), requires_grad=True)
    with mg.eager_programs(False):
        found = eager_record(lambda: function(x), 1)
        nodes = [n for n in topological_order([function(x).node]) if n.op is not None and n.op.kind != "view"]
    graph = mg.trace(function, x.detach()).cost().eager
    assert found.count.bytes == graph.bytes and found.count.flops == graph.flops
    assert found.count.launches == graph.launches >= len(nodes)


def test_updates_and_gradients_are_programs_in_eager_mode():
    layer = nn.Linear(16, 16)
    optimizer = mg.optim.Adam([*layer.parameters()])
    x, y = mg.ones((8, 16)), mg.asarray(np.arange(8))

    def step():
        optimizer.zero_grad()
        mg.cross_entropy(layer(x), y).backward()
        optimizer.step()

    names = [event.name for event in eager_record(step, 1).events]
    assert {name.partition("/")[0] for name in names if "/" in name} >= {
        "cross_entropy", "gradient of cross_entropy", "update of Adam"}


def test_the_gradient_of_eager_mode_leaves_no_trace():
    w = mg.ones((8, 8), requires_grad=True)
    (found,) = in_turns([eager_record_of(FunctionCall(mg.jit(lambda x: mg.tanh(x @ w).sum()), (X,)), True, 1)])
    assert w.grad is None and found.count.launches > eager_record(lambda: mg.tanh(X @ w).sum(), 1).count.launches
    # arguments that require no gradients get stand-ins
    (alone,) = in_turns([eager_record_of(FunctionCall(chain, (X,)), True, 1)])
    assert alone.count.launches > 3 and not X.requires_grad


def test_a_custom_function_is_the_kernels_that_it_runs():
    @mg.custom_vjp
    def square(x):
        return mg.tanh(x) * x, x

    square.gradient(lambda x, g: (g * x,))
    found = eager_record(lambda: square(mg.ones(3, requires_grad=True)), 1)
    assert [event.name for event in found.events] == ["full", "tanh", "multiply"]


def test_kernels_are_the_same_after_a_record():
    device = mg.ones(1).device
    before = dict(device.kernels)
    with pytest.raises(ZeroDivisionError):
        eager_record(lambda: 1 / 0, 1)
    eager_record(lambda: mg.tanh(X), 1)
    assert dict(device.kernels) == before and "elementwise" not in vars(device)


def test_a_record_of_eager_mode_keeps_no_arrays():
    x, made = mg.ones((500, 500)), []
    found = eager_record(lambda: made.append(weakref.ref(mg.tanh(x)._data)), 1)
    gc.collect()
    assert found.sites and not any(each() is not None for each in made)


def image_step():
    """A training step with a residual sum of 65,536 elements, and with the gradient of a convolution."""
    net = nn.Conv2d(4, 4, 3, padding=1)
    x = mg.ones((4, 4, 64, 64), requires_grad=True)
    return lambda: (net(net(x) + x) ** 2).sum().backward()


def test_each_kernel_of_eager_mode_counts_beside_library_calls_in_programs():
    found = eager_record(image_step(), 1)
    assert [event.name for event in found.events if event.name == "add"]
    assert {event.name for event in found.events if not event.launches} <= {"reshape", "broadcast_to"}
    assert all(a.end <= b.begin for a, b in pairwise(found.events)), "a kernel in a kernel is not an event"


def test_steps_that_run_in_one_call_share_its_time(clock, monkeypatch):
    """Noting each step takes time, which neither the steps nor Python before them have in a call without notes."""
    monkeypatch.setattr(record, "quickest", lambda call: 99.0)

    def f(x):
        for _ in range(5):
            x = mg.tanh(x / x.sum())
        return x

    found = mg.jit(f).record(X)
    assert found.seconds == 3.0 and len(found.launched) == found.count.launches > 4
    assert found.launched[0].begin == 1.0 and found.launched[-1].end == pytest.approx(2.0)
    assert found.in_launches == pytest.approx(1.0)


def test_a_step_of_a_program_in_eager_mode_knows_its_module_and_its_line():
    layer, x = nn.Sequential(nn.Linear(16, 16)), mg.ones((16, 16))
    found = eager_record(lambda: layer(x).sum().backward(), 1)
    scopes = {event.name.partition("/")[0]: site.scope for event, site in zip(found.events, found.sites)}
    assert scopes["linear"] == scopes["gradient of linear"] == ("Sequential", "0") and scopes["sum"] == ()
    assert all("test_record" in site.frames[0][0].co_filename for site in found.sites)


# times ----------------------------------------------------------------------------------------------------------------


@st.composite
def notes(draw):
    """Events of some threads, the time that the noted call took, and the time of a call that was not noted."""
    times = st.floats(0, 100)
    pairs = draw(st.lists(st.tuples(times, times, st.sampled_from(["a", "b"])), max_size=8))
    events = [Event("k", thread, min(a, b), max(a, b), Count(launches=1)) for a, b, thread in pairs]
    end = max([event.end for event in events], default=0.0) + draw(st.floats(0, 10))
    return events, end, draw(st.floats(1e-3, 120))


@given(notes())
def test_shortened_times_keep_their_order_and_end_with_the_call(given_notes):
    events, noted, seconds = given_notes
    found = shortened(events, noted, seconds)
    close = 1e-9 * (1 + noted)
    assert [event.name for event in found] == [event.name for event in events]
    for old, new in zip(events, found):
        assert -close <= new.begin <= new.end + close and new.end <= max(min(seconds, noted), old.end * 0) + close
        assert new.end - new.begin <= old.end - old.begin + close
    ends = sorted((old.end, new.end) for old, new in zip(events, found))
    assert all(a[1] <= b[1] + close for a, b in pairwise(ends))


def test_launches_are_shortened_last():
    one = Count(launches=1)
    events = [Event("a", "main", 1.0, 2.0, one), Event("b", "main", 5.0, 7.0, one)]
    kept = shortened(events, 10.0, 6.5)
    assert [event.end - event.begin for event in kept] == pytest.approx([1.0, 2.0])
    assert Record("", 1.5, shortened(events, 10.0, 1.5)).events[1].end == pytest.approx(1.5)


def test_the_time_to_note_a_launch_is_cut_from_all_gaps_alike():
    """Python needed 20 and 10 seconds around two launches, and noting each of them took about 3 seconds."""
    one = Count(launches=1)
    found = shortened([Event("a", "main", 23.0, 24.0, one), Event("b", "main", 27.0, 28.0, one)], 41.0, 33.0)
    assert 19.0 < found[0].begin < 21.0 and 0.0 < found[1].begin - found[0].end < 1.5
    assert 9.0 < 33.0 - found[1].end < 11.0


@pytest.mark.parametrize("runs", [1, 2, 3, 4])
def test_a_call_that_runs_something_else_each_time_has_a_record(runs):
    turns, both = itertools.count(), [mg.jit(chain), mg.jit(lambda x: mg.tanh(chain(x) * (x @ x)).sum())]
    found = in_turns([record.record_of_call(lambda: both[next(turns) % 2](X), lambda: None, runs)])[0]
    assert {len(found.launched)} < {f.cost(X).program.launches for f in both}
    ends = [time for event in found.events for time in (event.begin, event.end)]
    assert ends == sorted(ends) and 0 <= ends[0] and ends[-1] <= found.seconds + 1e-9


def test_python_in_a_branch_is_shortened_before_its_launches():
    events = [Event("cond_1", "main", 1.0, 9.0), Event("cond_1/kernel_0", "main", 4.0, 6.0, Count(launches=1))]
    outer, inner = shortened(events, 10.0, 6.0)
    assert inner.end - inner.begin == pytest.approx(2.0) and outer.end - outer.begin == pytest.approx(5.0)


# the limits of the machine --------------------------------------------------------------------------------------------


def measured(monkeypatch, *machines):
    """Let these limits be measured, one after the other."""
    monkeypatch.setattr(roofline, "machine", cache(partial(next, iter(machines))))


@pytest.fixture
def fast():
    """A record of a product at 1,000 GFLOP/s."""
    program = mg.jit(lambda x: x @ x).program(mg.ones((100, 100)))
    event = Event("matmul_1", "main", 0.0, 2e-6, Count(80_000, 40_000, 2_000_000, 1))
    return Record("as a program", 2e-6, [event], program)


BUSY = Machine(5e9, 3e9, 1e-6)


def test_a_limit_that_a_step_exceeds_is_refused(monkeypatch, fast):
    measured(monkeypatch, *[BUSY] * 9)
    says = "the machine is busy: matmul_1 attained 1,000.0 GFLOP/s, above the measured limit of 3.0"
    with pytest.raises(mg.MinigradError, match=says):
        fast.roofline()


def test_limits_are_measured_again(monkeypatch, fast):
    measured(monkeypatch, BUSY, BUSY, Machine(4e9, 2e12, 2e-6), BUSY)
    found = fast.roofline()
    assert found.machine.bandwidth == 5e9 and found.machine.flops == 2e12 and found.machine.launch == 1e-6
    assert [step.bound for step in found.steps] == ["memory"]


@pytest.mark.parametrize("seconds", [1e-6, 5e-6, 2e-5])
def test_the_limit_of_a_step_depends_on_its_bytes_and_not_on_its_time(monkeypatch, fast, seconds):
    """Of two steps of 1 MB, the slower one was held to the limit of memory, and seemed nearer to its best."""
    caches = tuple([rate * 1e9 for rate in (90, 80, 70, 60, 50, 40, 30, 20, 10)])
    measured(monkeypatch, *[Machine(1e9, 1e15, 1e-9, caches)] * 9)
    (step,) = Record(fast.way, seconds, [fast.events[0]._replace(end=seconds)], fast.program).roofline().steps
    assert step.bound == "cache" and step.best == pytest.approx(step.kernel.program.bytes / 90e9)
    assert "1.0 GB/s, up to 90.0 GB/s in caches" in repr(fast.roofline())


def test_limits_fall_with_the_bytes_that_move():
    """A limit that another program lowered is raised to that of more bytes, which cannot move faster."""
    machine = Machine(1e9, 1.0, 1.0, (90.0, 70.0, 80.0, 60.0, 50.0, 40.0, 30.0, 20.0, 10.0))
    sizes = [0, 1 << 18, (1 << 19) - 1, 1 << 19, 1 << 20, 1 << 21, (1 << 27) - 1]
    assert [machine.moving(size) for size in sizes] == [("cache", rate) for rate in (90, 90, 90, 80, 80, 60, 10)]
    assert machine.moving(1 << 27) == Machine(1e9, 1.0, 1.0).moving(1) == ("memory", 1e9)


@pytest.mark.parametrize("limits", [
    Machine(1e9, 9e11, 5e-9, (1e12,) * 9), Machine(1e9, 1e14, 5e-9, (3e10,) * 9), Machine(3e10, 1e14, 5e-9)])
def test_a_step_that_is_faster_than_its_limit_has_no_share(monkeypatch, fast, limits):
    """The limit was raised to the step's own rate, of which it then attained 100 %."""
    measured(monkeypatch, *[limits] * 9)
    (step,) = fast.roofline().steps
    assert step.best > step.seconds
    program = next(band for band in timeline_of([fast], programs=[Shown("", fast.program)]).bands if not band.model)
    (work,) = [bar.work for bar in program.bars]
    assert work.best == step.best  # the page says "faster"
    assert dict(work.rows)["limit of this machine"].endswith(f"by {step.bound}; this step is faster")


@pytest.mark.slow
def test_what_no_cache_holds_is_refused_above_the_limit_of_memory(monkeypatch):
    measured(monkeypatch, *[Machine(1e9, 1e14, 1e-9, (2e9,) * 9)] * 9)
    f = mg.jit(lambda x: x + 1)
    program = f.program(mg.ones(1 << 25))
    event = Event("kernel_0", "main", 0.0, 1e-3, f.cost(mg.ones(1 << 25)).program)
    with pytest.raises(mg.MinigradError, match=r"kernel_0 moved 268.4 GB/s, above the measured limit of 1.0"):
        Record("as a program", 1e-3, [event], program).roofline()


def test_a_record_without_a_program_has_no_roofline():
    with pytest.raises(mg.MinigradError, match="no program ran"):
        eager_record(lambda: mg.tanh(X), 1).roofline()


# the stages -----------------------------------------------------------------------------------------------------------


def test_stages_of_loops_show_tiles_and_vectors():
    f, x = mg.jit(lambda x: x + x.T + mg.max(x, axis=0)), mg.ones((512, 512))
    texts = {stage.name: stage.text for stage in f.stages(x)}
    assert [name for name in texts if name in ("loops", "banded", "widened")] == ["loops", "banded", "widened"]
    assert "_band" in texts["banded"] and "_band" not in texts["loops"]
    assert "floatx" in texts["widened"] and "floatx" not in texts["banded"]


def test_all_stages_are_one_list():
    f = mg.jit(lambda x: mg.tanh(x * 1) + mg.tanh(x * 1))
    stages = f.stages(X)
    names = ["as traced", "simplify", "common", "kernels", "loops", "widened", "code", "program"]
    assert [stage.name for stage in stages] == names
    by_name = {stage.name: stage for stage in stages}
    assert by_name["as traced"].object is f.passes(X).first and by_name["program"].object is f.program(X)
    assert by_name["kernels"].text == str(f.kernels(X)) and by_name["code"].text == str(f.code(X))
    drawn = [step["name"] for step in mg.viz.fusion(f, X).data()["steps"]]
    assert drawn == [stage.name for stage in stages if isinstance(stage.object, type(f.graph(X)))]
