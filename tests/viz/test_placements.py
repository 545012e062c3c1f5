"""Devices in pictures: of graphs, of schedules, and of placements by the model."""

import re

import pytest

import minigrad as mg
from minigrad.compile.look.placement import GPU, Link, Machine, System

SYSTEM = System({"cpu": Machine(1e10, 1e11, 1e-6), "cuda": GPU}, Link(1e10, 1e-5))


def words(view):
    """The texts in a picture, in order."""
    return [text for text in re.findall(r"<text[^>]*>([^<]*)<", view.to_svg()) if text.strip()]


def offloaded(x):
    with mg.offload("cpu:1"):
        h = mg.tanh(x @ x)
    return (h * 2).sum()


@pytest.mark.slow
def test_a_graph_on_several_devices_shows_the_device_of_each_node():
    found = words(mg.viz.graph(offloaded, mg.ones((4, 4))))
    boxes = list(zip(found[::3], found[2::3]))
    assert boxes == [
        ("x", "on cpu"), ("to_device", "on cpu:1"), ("matmul", "on cpu:1"), ("tanh → h", "on cpu:1"),
        ("to_device", "on cpu"), ("multiply × 2", "on cpu"), ("sum", "on cpu"),
    ]


def test_the_picture_of_a_tensor_shows_devices_and_all_transfers():
    x = mg.asarray([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    found = words(mg.viz.graph(offloaded(x)))
    assert found.count("to_device") == 4 and found.count("on cpu:1") == 4


@pytest.mark.parametrize("device", ["cpu", "cpu:1"])
def test_on_one_device_there_is_nothing_to_tell_apart(device):
    assert not [text for text in words(mg.viz.graph(lambda x: mg.tanh(x), mg.ones(2, device=device))) if "cpu" in text]


@pytest.mark.slow
def test_a_schedule_shows_devices_and_transfers():
    view = mg.viz.schedule(offloaded, mg.ones((64, 64)))
    found = words(view)
    assert "matmul_1 on cpu:1" in found and "transfer" in found
    rows = {mark["title"]: dict(mark["rows"]) for mark in view.marks.values()}
    assert rows["to_device_1"]["on"] == rows["kernel_2"]["on"] == "cpu:1" and rows["kernel_4"]["on"] == "cpu"
    alone = mg.viz.schedule(lambda x: mg.tanh(x @ x), mg.ones((64, 64)))
    assert "transfer" not in words(alone)
    assert all("on" not in dict(mark["rows"]) for mark in alone.marks.values())


def test_placements_have_a_page_each():
    def f(x):
        return mg.tanh(x @ x).sum()

    x = mg.ones((500, 500))
    graph = mg.trace(f, x)
    mine = {"mine": {graph.nodes[0]: "cuda"}}
    view = mg.viz.placement(graph, system=SYSTEM, others=mine)
    assert [page.name for page in view.pages[0]] == ["as it is", "all on cuda", "best found", "mine"]
    assert view.text().splitlines()[3].startswith("mine: ") and "2 transfers" in view.text().splitlines()[3]
    bars = re.findall(r'aria-label="([^",]*)', "".join(view.pages[0][3].drawing.pieces))
    assert sorted(bars) == ["matmul_1", "matmul_1", "sum_1", "tanh_1", "tensor_1"]
    assert repr(view).startswith("<4 placements: ")
    assert mg.viz.placement(f, x, system=SYSTEM).text() == "\n".join(view.text().splitlines()[:3])


def test_streams_have_lanes_of_their_own():
    def f(x, y):
        return mg.exp(x), mg.exp(y)

    view = mg.viz.placement(f, mg.ones(9999), mg.ones(9999), device="cuda", system=System(SYSTEM.machines, streams=2))
    assert {"cuda", "cuda (2)"} <= {*re.findall(r">([^<]*)<", "".join(view.pages[0][1].drawing.pieces))}


def test_a_function_that_computes_nothing_has_placements_too():
    assert mg.viz.placement(lambda x: x, mg.ones(2), system=SYSTEM).text().startswith("as it is: 0 µs, 0 transfers")
