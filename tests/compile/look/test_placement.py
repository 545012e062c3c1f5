"""The model of placements: times by hand, transfers that are shared, and placements that gain."""

import subprocess
import sys

import pytest

import minigrad as mg
from minigrad.compile.look import placement
from minigrad.compile.look.placement import GPU, Link, System, Task, measured_system, placed, predicted, scheduled
from minigrad.compile.look.roofline import Machine, machine
from minigrad.devices import Device, Kernels, registry
from minigrad.support.errors import DeviceError

SLOW, FAST = Machine(1e9, 1e9, 1e-6), Machine(1e12, 1e12, 1e-6)
SYSTEM = System({"cpu": SLOW, "cpu:1": SLOW, "fast": FAST}, Link(1e9, 1e-5))
N = 1000
TIME = 8 * N / 1e9 + 1e-6  # of an elementwise operation on the slow device


def times(prediction):
    return {(span.task.name, span.task.lane): (span.begin, span.end) for span in prediction.spans}


def approx(*values):
    return pytest.approx(values)


def test_nodes_of_one_device_run_one_after_the_other():
    graph = mg.trace(lambda x: mg.tanh(-x), mg.ones(N))
    assert times(graph.predicted({}, SYSTEM)) == {
        ("negative_1", "cpu"): approx(0, TIME), ("tanh_1", "cpu"): approx(TIME, 2 * TIME),
    }
    arithmetic = mg.trace(lambda x: x @ x, mg.ones((100, 100)))
    assert arithmetic.predicted(system=SYSTEM).seconds == pytest.approx(2e6 / 1e9 + 1e-6)


def test_a_value_moves_once_to_each_device_and_results_come_back():
    def f(x):
        h = -x
        return mg.exp(h) + mg.tanh(h)

    graph = mg.trace(f, mg.ones(N))
    _, exp, tanh, _ = graph.nodes
    found = times(graph.predicted({exp: "fast", tanh: "fast"}, SYSTEM))
    move = 4 * N / 1e9 + 1e-5
    assert found["negative_1", "cpu -> fast"] == approx(TIME, TIME + move)
    assert [lane for name, lane in found if name == "negative_1"] == ["cpu", "cpu -> fast"]
    assert {("exp_1", "fast -> cpu"), ("tanh_1", "fast -> cpu")} <= found.keys()
    assert len(graph.predicted(dict.fromkeys(graph.nodes, "fast"), SYSTEM).transfers) == 2


def test_independent_nodes_on_two_devices_run_at_the_same_time():
    graph = mg.trace(lambda x, y: (-x, -y), mg.ones(N), mg.ones(N, device="cpu:1"))
    assert graph.predicted(system=SYSTEM).seconds == pytest.approx(TIME)
    assert graph.predicted(dict.fromkeys(graph.nodes, "cpu"), SYSTEM).seconds > 2 * TIME


def test_views_and_the_transfers_of_the_graph_itself_take_no_time():
    def f(x):
        with mg.offload("cpu:1"):
            return mg.tanh((-x).reshape(10, -1).mT)

    graph = mg.trace(f, mg.ones(N))
    found = graph.predicted({}, SYSTEM)
    assert [(s.task.name, s.task.lane) for s in found.spans] == [
        ("tensor_1", "cpu -> cpu:1"), ("negative_1", "cpu:1"), ("tanh_1", "cpu:1"), ("tanh_1", "cpu:1 -> cpu"),
    ]
    here = graph.predicted(dict.fromkeys(graph.nodes, "cpu"), SYSTEM)
    assert not here.transfers and here.seconds == pytest.approx(2 * TIME)


def test_streams_of_a_device_work_at_the_same_time():
    tasks = [Task(str(i), "cpu", 1.0, (), None) for i in range(3)]
    tasks += [Task("moved", "cpu -> fast", 1.0, (i,), None, moves=True) for i in range(2)]
    found = sorted((s.task.lane, s.begin, s.stream) for s in scheduled(tasks))
    assert found == [*[("cpu", n, 0) for n in range(3)], *[("cpu -> fast", n, 0) for n in (1, 2)]]
    assert max(s.end for s in scheduled(tasks, streams=3)) == 3.0
    assert {s.stream for s in scheduled(tasks, streams=3)} == {0, 1, 2}


def test_the_task_with_the_longest_chain_begins_first():
    after = {"short": (), "long": (), "end": (1,)}
    tasks = [Task(name, "cpu", 1.0, before) for name, before in after.items()]
    assert [(s.task.name, s.begin) for s in scheduled(tasks)] == [("long", 0), ("short", 1), ("end", 2)]
    assert max(s.end for s in scheduled(tasks, streams=2)) == 2.0


def model(x, w):
    with mg.scope("heavy"):
        h = mg.tanh(x @ w) @ w
    with mg.scope("light"):
        return (h * 2).sum()


def example():
    return mg.trace(model, mg.ones((100, 100)), mg.ones((100, 100)))


def test_the_report_names_parts_with_their_gain():
    found = example().offloading("fast", SYSTEM)
    parts = {part.name: part for part in found.parts}
    assert list(parts) == sorted(parts, key=lambda name: -parts[name].gain)
    heavy, light = parts["heavy"], parts["light"]
    assert [node.name for node in heavy.nodes] == ["matmul", "tanh", "matmul"]
    assert heavy.gain > light.gain > 0 and heavy.there < heavy.here
    assert parts["sum_1"].gain < 0
    assert heavy.transfers == pytest.approx(3 * (4e4 / 1e9 + 1e-5))
    assert heavy.then == pytest.approx(found.now - heavy.gain)
    lines = str(found).splitlines()
    assert lines[0].split() == ["part", "nodes", "here", "there", "transfers", "graph", "then", "gain"]
    assert lines[-1].endswith("there: on fast")


def test_the_search_finds_a_placement_that_is_faster():
    graph = example()
    best = graph.placed("cpu", "fast", system=SYSTEM)
    now = graph.predicted({}, SYSTEM).seconds
    single = [graph.predicted({node: "fast"}, SYSTEM).seconds for node in graph.nodes]
    assert graph.predicted(best, SYSTEM).seconds < min(now, *single)
    costly = System(SYSTEM.machines, Link(1e3, 1.0))
    assert set(placed(graph, "cpu", "fast", system=costly).values()) <= {"cpu"}


def test_a_larger_graph_needs_no_more_tries(monkeypatch):
    tried = []
    run = placement._Model.predicted
    monkeypatch.setattr(placement._Model, "predicted", lambda *given: tried.append(given) or run(*given))

    def tries(operations):
        def f(x):
            for _ in range(operations):
                x = mg.tanh(x)
            return x

        tried.clear()
        placed(mg.trace(f, mg.ones(N)), "cpu", "fast", system=SYSTEM)
        return len(tried)

    assert tries(400) <= tries(100) < 200


def test_scopes_may_have_any_name():
    graph = mg.trace(mg.scope("everything")(lambda x: -x), mg.ones(N))
    assert [part.name for part in graph.offloading("fast", SYSTEM).parts] == ["everything", "negative_1"]


def test_two_branches_on_two_equal_devices():
    def f(x, y):
        for _ in range(5):
            x, y = mg.tanh(x), mg.exp(y)
        return x.sum() + y.sum()

    graph = mg.trace(f, mg.ones(100 * N), mg.ones(100 * N))
    best = graph.predicted(graph.placed("cpu", "cpu:1", system=SYSTEM), SYSTEM)
    assert best.seconds < 0.7 * graph.predicted({}, SYSTEM).seconds


def test_predictions_print():
    graph = mg.trace(lambda x: -x, mg.ones(N))
    found = predicted(graph, {graph.nodes[0]: "fast"}, SYSTEM)
    assert repr(found) == "<prediction: 29.0 µs, 2 transfers>"
    assert str(found).splitlines()[1].split() == ["cpu", "->", "fast", "tensor_1", "0.0", "µs", "14.0", "µs"]
    empty = mg.trace(lambda x: x, mg.ones(N))
    assert empty.predicted({}, SYSTEM).seconds == 0.0
    assert str(empty.offloading("fast", SYSTEM)).endswith("there: on fast")


def test_a_device_without_figures_is_an_error():
    graph = example()
    with pytest.raises(DeviceError, match=r"no figures for the device 'npu'\n  Expected: cpu, cpu:1, fast\n  Hint: Sy"):
        graph.predicted({graph.nodes[0]: "npu"}, SYSTEM)
    with pytest.raises(DeviceError, match="there is no device named 'npu'"):
        graph.offloading("npu")


@pytest.mark.slow
def test_processors_are_measured_and_other_devices_are_typical(monkeypatch):
    class Toy(Device):
        kind, kernel_class = "toy", type("Own", (Kernels,), {})

    monkeypatch.setattr(registry, "DEVICES", dict(registry.DEVICES))
    monkeypatch.setattr(registry, "MAKERS", dict(registry.MAKERS))
    registry.register_device("toy", Toy)
    system = measured_system("cpu", "toy")
    assert system.machines == {"cpu": machine(), "toy": GPU}
    assert system.link != Link() and system.link.bandwidth > 0 < system.link.latency
    if "cuda" not in mg.available_devices():
        assert measured_system("cpu", "cuda") == System({"cpu": machine(), "cuda": GPU}, Link())


@pytest.mark.slow
def test_graphs_have_these_methods_in_a_new_process():
    code = "import minigrad as mg; g = mg.trace(lambda x: -x, mg.ones(3)); print(g.offloading, g.predicted, g.placed)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.count("bound method") == 3
