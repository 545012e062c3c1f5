"""Devices in pictures: of graphs, of programs on several workers, and of placements by the model."""

import re

import pytest

import minigrad as mg
from minigrad.compile.look.placement import GPU, Link, Machine, System, predicted
from minigrad.viz.predictions import placed_band

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
        ("x", "on cpu"), ("to_device(x)", "on cpu:1"), ("x @ x", "on cpu:1"), ("h = tanh(x @ x)", "on cpu:1"),
        ("to_device(h)", "on cpu"), ("h · 2", "on cpu"), ("(h · 2).sum()", "on cpu"),
    ]


def test_the_picture_of_a_tensor_shows_devices_and_all_transfers():
    x = mg.asarray([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    found = words(mg.viz.graph(offloaded(x)))
    assert sum(text.startswith("to_device(") for text in found) == 4 and found.count("on cpu:1") == 4


@pytest.mark.parametrize("device", ["cpu", "cpu:1"])
def test_on_one_device_there_is_nothing_to_tell_apart(device):
    assert not [text for text in words(mg.viz.graph(lambda x: mg.tanh(x), mg.ones(2, device=device))) if "cpu" in text]


@pytest.mark.slow
def test_a_program_on_workers_shows_devices_and_transfers():
    view = mg.viz.timeline(offloaded, mg.ones((64, 64)), runs=0)
    found = words(view)
    assert any(text.endswith(" on cpu:1") for text in found) and "copy or transfer" in found
    labels = {work["name"]: work["label"].rpartition(" on ")[2] for work in view.data()["works"]}
    assert labels["to_device_1"] == labels["kernel_2"] == "cpu:1" and labels["kernel_4"] == "cpu"
    alone = mg.viz.timeline(lambda x: mg.tanh(x @ x), mg.ones((64, 64)), runs=0)
    assert "copy or transfer" not in words(alone)
    assert not any(" on cpu" in work["label"] for work in alone.data()["works"])


def lanes(view, title):
    """The lanes of a placement, by their names."""
    return {lane.name: lane.bars for band in view.bands if band.title == title for lane in band.lanes}


def test_placements_have_a_band_each():
    def f(x):
        return mg.tanh(x @ x).sum()

    x = mg.ones((500, 500))
    graph = mg.trace(f, x)
    view = mg.viz.timeline(graph, devices="cuda", system=SYSTEM)
    now, mine = (predicted(graph, placement, SYSTEM) for placement in ({}, {graph.nodes[0]: "cuda"}))
    said = view.text().splitlines()
    view.bands.append(placed_band("mine", mine, now))
    assert [band.title for band in view.bands] == ["as it is", "all on cuda", "best found", "mine"]
    assert "2 transfers: " in view.bands[-1].says and "times as fast" not in said[0]
    bars = [bar.work.name for bars in lanes(view, "mine").values() for bar in bars]
    assert sorted(bars) == ["matmul_1", "matmul_1", "sum_1", "tanh_1", "tensor_1"]
    assert re.match(r"<timeline: .*, by the model, .* transfers: [\d.]+ times as fast", repr(view))
    product = next(work for work in view.data()["works"] if work["name"] == "matmul_1" and "cuda" in str(work["rows"]))
    moved = next(work for work in view.data()["works"] if work["kind"] == "other")
    assert product["cost"] == [1, 2 * x.nbytes, 2 * 500 ** 3] and moved["cost"] == [0, x.nbytes, 0]
    assert all(band.model for band in view.bands) and "stroke-dasharray" in view.to_svg()
    again = mg.viz.timeline(f, x, devices=["cuda"], system=SYSTEM, runs=0)
    assert again.text().splitlines() == said
    assert again.to_svg() == mg.viz.timeline(f, x, devices="cuda", system=SYSTEM, runs=0).to_svg()


def test_streams_have_lanes_of_their_own():
    system = System(SYSTEM.machines, streams=2)
    view = mg.viz.timeline(lambda x: (mg.exp(x), mg.tanh(x)), mg.ones(9999), devices="cuda", system=system, runs=0)
    assert {"cuda", "cuda (2)"} <= {*lanes(view, "all on cuda")} and "cuda (2)" in words(view)


def test_a_function_that_computes_nothing_has_placements_too():
    view = mg.viz.timeline(lambda x: x, mg.ones(2), devices="cuda", system=SYSTEM, runs=0)
    assert "as it is: by the model, 0 µs, 0 transfers" in view.text() and view.to_svg()
    assert repr(view) == "<timeline: as it is, by the model, 0 µs, 0 transfers>"


def test_placements_stand_beside_measured_lanes():
    view = mg.viz.timeline(lambda x: mg.tanh(x), mg.ones(9), devices="cuda", system=SYSTEM, runs=1)
    assert [band.title for band in view.bands][:2] == ["eagerly", "as a program"]
    assert [band.model for band in view.bands[-3:]] == [True] * 3 and view.bands[-1].title == "best found"


def test_wrong_systems_are_refused():
    with pytest.raises(mg.MinigradError, match="timeline: system is a System, not 3"):
        mg.viz.timeline(mg.tanh, mg.ones(2), devices="cuda", system=3)
