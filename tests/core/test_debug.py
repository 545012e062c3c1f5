"""Help with what goes wrong: the first nan, graphs that are kept alive, values computed again."""

import gc
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.errors import NanError


def here(back=0):
    import sys

    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno - back}"


# The first nan --------------------------------------------------------------------------------------------------------


def test_a_nan_that_was_there_before_is_nobodys_fault():
    x = mg.asarray([np.nan, 1.0])
    with mg.debug_nans():
        assert np.isnan((x * 2 + mg.exp(x)).numpy()[0])
        assert mg.isnan(x).tolist() == [True, False]
        assert (mg.arange(3) // 2).tolist() == [0, 0, 1]


def test_infinities_are_no_nans_until_they_meet():
    x = mg.asarray([1.0, 0.0])
    with mg.debug_nans():
        infinite = 1.0 / x
        with pytest.raises(NanError, match="subtract made a nan") as error:
            infinite - infinite
    assert "from 1 to inf" in str(error.value)


def test_the_hunt_ends_with_its_block_and_goes_on_after_an_error():
    with mg.debug_nans():
        for _ in range(2):
            with pytest.raises(NanError):
                mg.log(mg.asarray([-1.0]))
    assert np.isnan(mg.log(mg.asarray([-1.0])).item())


def test_the_gradient_is_named_with_the_line_that_it_belongs_to():
    w = mg.asarray([0.0], requires_grad=True)
    y = mg.softmax(mg.sqrt(w) * 0.0).sum()
    made = here(1)
    with pytest.raises(NanError) as error, mg.debug_nans():
        y.backward()
    assert f"in the gradient of sqrt made at {made}" in str(error.value)


# Graphs that are kept -------------------------------------------------------------------------------------------------


def test_a_list_of_losses_is_seen_and_what_to_do_is_said():
    w = mg.asarray(np.ones(1000), requires_grad=True)
    gc.collect()
    before = len(mg.live_graphs())
    losses = []
    for _ in range(5):
        losses.append((w * w).sum())
        made = here(1)
    graphs = mg.live_graphs()
    ours = [g for g in graphs if g.where == made]
    assert len(graphs) == before + 5 and len(ours) == 5
    assert {(g.nodes, g.saved_bytes) for g in ours} == {(3, 16_000)}
    assert f"5 × made at {made}: 15 nodes, 80000 bytes saved" in repr(graphs)
    assert "append loss.item()" in repr(graphs)
    for loss in losses:
        loss.backward()
    assert {g.saved_bytes for g in mg.live_graphs() if g.where == made} == {0}, "backward lets the arrays go"
    del loss
    losses.clear()
    assert len(mg.live_graphs()) == before


def test_numbers_keep_nothing():
    w = mg.asarray([1.0], requires_grad=True)
    gc.collect()
    before = len(mg.live_graphs())
    losses = [(w * i).sum().item() for i in range(5)]
    assert len(mg.live_graphs()) == before and losses == [0, 1, 2, 3, 4]


# Values computed again ------------------------------------------------------------------------------------------------


def test_random_numbers_are_replayed_as_they_were():
    w = mg.asarray(np.ones(4, np.float32), requires_grad=True)
    y = w * mg.random.uniform((4,))
    values = y.tolist()
    mg.random.uniform((100,))
    with mg.record():
        z = mg.random.uniform((4,)) * 2
    assert mg.replay(z).tolist() == z.tolist()
    del z
    assert values == y.tolist()


def test_views_and_assignments_are_replayed():
    w = mg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    h = w * 2
    h[1:] = h[:-1] * w[0]
    values = h.tolist()
    node = h.node
    h.sum().backward()
    assert mg.replay(node).tolist() == values == [2, 2, 4]


def test_writes_into_what_is_recorded_are_replayed():
    x = mg.asarray([1.0, 2.0])
    with mg.record():
        y = x + 1
        y *= 3
        view = y[:1]
        view[...] = 7
        z = y * 2
    assert mg.replay(z).tolist() == z.tolist() == [14, 18]
    y += 1  # not recorded: y has no recipe from here on
    assert (y.tolist(), view.tolist(), y.node) == ([8, 10], [8], None)
    assert mg.replay(z).tolist() == [14, 18]


def test_what_is_recorded_under_no_grad_carries_no_gradient():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    with mg.record(), mg.no_grad():
        y = w * 2
        first, _ = mg.topk(w, 1)
    assert y.node.op.name == "multiply" and not y.requires_grad and not first.requires_grad
    (y * w).sum().backward()
    assert w.grad.tolist() == [2, 4], "as without record()"


def test_what_was_let_go_is_not_made_up():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    constant = mg.asarray([3.0, 4.0])
    node = (w * constant).node
    assert mg.replay(node).tolist() == [3, 8]
    data = weakref.ref(constant.data)
    mg.gradients(w * constant, w, mg.ones(2))
    y = w + constant
    node = y.node
    del y, constant
    gc.collect()
    if data() is None:
        with pytest.raises(mg.Gone, match="constant"):
            mg.replay(node)
    with pytest.raises(mg.Gone, match=r"mg\.record"):
        mg.replay(mg.ones(2) + 1)
