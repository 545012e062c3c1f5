"""The layout of any graph: boxes do not overlap, frames contain their boxes, arrows point the right way."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad.viz.layout import MARGIN, Arrangement

PATHS = [(), ("a",), ("a", "b"), ("a", "c"), ("d",), ("d", "b")]


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 30))
    sizes = [(draw(st.integers(20, 120)), draw(st.integers(15, 40))) for _ in range(count)]
    edges = [
        (draw(st.integers(0, i - 1)), i)
        for i in range(1, count)
        for _ in range(draw(st.integers(0, 2)))
    ]
    backwards = draw(st.booleans()) and count > 3
    paths = [draw(st.sampled_from(PATHS)) for _ in range(count)]
    return sizes, edges + ([(count - 1, 0)] if backwards else []), paths


def overlap(a, b):
    across = min(a.x + a.width, b.x + b.width) - max(a.x, b.x)
    along = min(a.y + a.height, b.y + b.height) - max(a.y, b.y)
    return across > 0.01 and along > 0.01


def inside(inner, outer):
    return (
        inner.x >= outer.x - 0.01
        and inner.y >= outer.y - 0.01
        and inner.x + inner.width <= outer.x + outer.width + 0.01
        and inner.y + inner.height <= outer.y + outer.height + 0.01
    )


@pytest.mark.slow
@given(graphs())
@settings(max_examples=80, deadline=None)
def test_boxes_and_frames_keep_apart(graph):
    sizes, edges, paths = graph
    layout = Arrangement(sizes, edges, paths)
    for i, box in enumerate(layout.boxes):
        assert (box.width, box.height) == sizes[i]
        assert not any(overlap(box, other) for other in layout.boxes[i + 1 :])
    for frame in layout.frames:
        for path, box in zip(paths, layout.boxes):
            member = path[: len(frame.path)] == frame.path
            assert inside(box, frame.place) if member else not overlap(box, frame.place)
        for other in layout.frames:
            nested = other.path[: len(frame.path)] == frame.path or frame.path[: len(other.path)] == other.path
            assert nested or not overlap(frame.place, other.place)
    assert {f.path for f in layout.frames} == {p[:d] for p in paths for d in range(1, len(p) + 1)}


@pytest.mark.slow
@given(graphs())
@settings(max_examples=40, deadline=None)
def test_edges_go_from_box_to_box_in_the_direction_of_the_picture(graph):
    sizes, edges, paths = graph
    layout = Arrangement(sizes, edges, paths)
    for (source, target), route in zip(edges, layout.routes):
        ends = [layout.boxes[source], layout.boxes[target]]
        for (x, y), box in zip((route[0], route[-1]), ends):
            assert box.x - 0.01 <= x <= box.x + box.width + 0.01
            assert box.y - 0.01 <= y <= box.y + box.height + 0.01
        steps = [b[1] - a[1] for a, b in pairwise(route)]
        assert all(step <= 0 for step in steps) if source > target else all(step >= 0 for step in steps)


@pytest.mark.slow
@given(graphs())
@settings(max_examples=20, deadline=None)
def test_the_same_graph_is_Arrangementd_the_same_way(graph):
    assert Arrangement(*graph) == Arrangement(*graph)


def test_boxes_lie_within_the_size_of_the_picture():
    layout = Arrangement([(40, 20)] * 4, [(0, 1), (1, 2), (0, 3), (2, 3)], [(), ("a",), ("a",), ()])
    assert min(f.place.x for f in layout.frames) >= 0 and min(b.x for b in layout.boxes) >= 0
    assert max(f.place.x + f.place.width for f in layout.frames) <= layout.width
    assert max(b.y + b.height for b in layout.boxes) <= layout.height


def test_a_weight_comes_right_before_it_is_used():
    # 0 → 1 → 2 → 4 and a weight 3 → 4
    layout = Arrangement([(40, 20)] * 5, [(0, 1), (1, 2), (2, 4), (3, 4)], [()] * 5)
    assert layout.boxes[3].y == layout.boxes[2].y


def test_a_chain_is_straight():
    layout = Arrangement([(40, 20), (80, 20), (30, 20)], [(0, 1), (1, 2)], [()] * 3)
    middles = {round(b.x + b.width / 2, 3) for b in layout.boxes}
    assert len(middles) == 1


def test_edge_runs_around_boxes():
    layout = Arrangement([(40, 20)] * 3, [(0, 1), (1, 2), (0, 2)], [()] * 3)
    between = layout.boxes[1]
    passing = [x for x, y in layout.routes[2] if between.y <= y <= between.y + between.height]
    assert passing and not any(between.x < x < between.x + between.width for x in passing)


def test_frames_leave_room_around_their_boxes():
    layout = Arrangement([(40, 20)], [], [("a",)])
    (frame,) = layout.frames
    assert layout.boxes[0].x - frame.place.x >= MARGIN


def test_empty_graph_is_a_picture():
    assert Arrangement([], [], []).boxes == []


def rails(layout):
    """The vertical lines on which edges pass layers, by where they are."""
    return {round(x, 1) for route in layout.routes for x, _ in route[2:-1]}


def test_many_edges_to_one_box_or_from_one_box_share_a_line():
    """As in a training step: each layer of a column is also read by the last box, or reads the first one."""
    count, sizes = 8, [(60, 20)] * 8
    column = [(i, i + 1) for i in range(count - 1)]
    for far in ([(i, count - 1) for i in range(count - 2)], [(0, i) for i in range(2, count)]):
        layout = Arrangement(sizes, column + far, [()] * count)
        assert len(rails(layout)) == 1
        middles = [box.x + box.width / 2 for box in layout.boxes[1:-1]]
        assert max(middles) - min(middles) < 1, "the column is straight"
        ends = {(route[0], route[-1]) for route in layout.routes[len(column) :]}
        assert len(ends) == len(far), "each edge has its own ends"
    few = Arrangement(sizes, [*column, (0, 7), (1, 7)], [()] * count)
    assert len({x for route in few.routes[-2:] for x, _ in route[3:-2]}) == 2, "few edges keep apart"


def test_a_line_with_branches_stands_beside_what_it_passes():
    """As in a recurrent layer: weights are read by each round of a loop, and a box behind it reads each round."""
    first, wide, weights, rounds, end = 0, 1, (2, 3), range(4, 10), 10
    edges = [(first, wide), (wide, rounds[0]), *pairwise(rounds), *[(each, end) for each in rounds]]
    edges += [(weight, each) for weight in weights for each in rounds]
    sizes = [(300 if box in (wide, weights[1]) else 60, 20) for box in range(11)]
    layout = Arrangement(sizes, edges, [()] * 11)
    left = layout.boxes[rounds[0]].x
    assert len(rails(layout)) == 3 and all(left - 60 < x < left for x in rails(layout))
    assert min(box.x for box in layout.boxes) == 0 == layout.width - max(box.right for box in layout.boxes)


def test_inputs_stand_in_their_order_where_it_costs_no_crossing():
    first, second, _ = Arrangement([(40, 20)] * 3, [(1, 2), (0, 2)], [()] * 3).boxes
    assert second.right < first.x
