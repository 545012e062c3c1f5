"""Debugging tools: the first nan, graphs that are kept alive, values computed again."""

import gc
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.state import PYTHON_CONTROL
from minigrad.support.errors import NanError


def here(back=0):
    import sys

    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno - back}"


# The first nan --------------------------------------------------------------------------------------------------------


def test_nan_in_an_input_is_not_reported():
    x = mg.asarray([np.nan, 1.0])
    with mg.debug_nans():
        assert np.isnan((x * 2 + mg.exp(x)).numpy()[0])
        assert mg.isnan(x).tolist() == [True, False]
        assert (mg.arange(3) // 2).tolist() == [0, 0, 1]


def test_infinities_are_not_reported_until_they_make_a_nan():
    x = mg.asarray([1.0, 0.0])
    with mg.debug_nans():
        infinite = 1.0 / x
        with pytest.raises(NanError, match="subtract made a nan") as error:
            infinite - infinite
    assert "from 1 to inf" in str(error.value)


def test_the_hunt_ends_with_its_block_and_continues_after_an_error():
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


# In-place ------------------------------------------------------------------------------------------------------------


def infinite():
    return mg.asarray([1.0, np.inf])


def subtract(x):
    x -= infinite()


def subtract_from_part(x):
    x[1:] -= np.inf


def subtract_from_view(x):
    view = x[::-1]
    view -= np.inf


def subtract_where(x):
    x[mg.asarray([False, True])] -= infinite()[1:]


def multiply(x):
    x *= 0.0


def divide(x):
    x /= x


def step_of_an_optimizer(x):
    x.grad = infinite()
    mg.optim.SGD([x], lr=1.0).step()


def step_with_momentum(x):
    x.grad = -infinite()
    optimizer = mg.optim.SGD([x], lr=1.0, momentum=0.5)
    optimizer.param_groups[0].state["momentum_buffer"][0][...] = infinite()
    optimizer.step()


def average(x):
    mg.optim.EMA([x]).update()


IN_PLACE = [
    subtract, subtract_from_part, subtract_from_view, subtract_where, multiply, divide, step_of_an_optimizer,
    step_with_momentum, average,
]


def named(change):
    return change.__name__


def parameter():
    return mg.asarray([1.0, np.inf], requires_grad=True)


@pytest.mark.parametrize("change", IN_PLACE, ids=named)
def test_arithmetic_in_place_is_looked_at_and_leaves_the_tensor_as_it_was(change):
    x = parameter()
    with pytest.raises(NanError, match="made a nan from inputs without one"), mg.no_grad(), mg.debug_nans():
        change(x)
    if change is not average:
        assert not np.isnan(x.numpy_copy()).any()


@pytest.mark.parametrize("change", IN_PLACE[:-3], ids=named)
def test_arithmetic_in_place_is_checked_in_a_program(change):
    x, f = infinite(), mg.jit(change)
    with pytest.raises(NanError, match="made a nan from inputs without one"), mg.debug_nans():
        f(x)


@pytest.mark.parametrize("change", IN_PLACE[:-3], ids=named)
def test_arithmetic_in_place_is_checked_in_graph_mode(change):
    x = infinite()
    with pytest.raises(NanError, match="made a nan from inputs without one"), mg.debug_nans(), mg.graph():
        change(x)
    with pytest.raises(NanError, match="made a nan from inputs without one"), mg.graph(), mg.debug_nans():
        change(x)


def test_an_infinity_that_an_assignment_makes_is_found():
    x = mg.zeros(3)
    for change in (lambda: x.__setitem__(1, mg.asarray(1e300, dtype=mg.float64)), lambda: x.__setitem__(0, 1e300)):
        with pytest.raises(NanError, match="put made an infinity"), mg.debug_nans(infinities=True):
            change()
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_assigned_nan_is_not_reported():
    x = mg.zeros(3)
    with mg.debug_nans(infinities=True):
        x[0] = np.nan
        x[1] = mg.asarray(np.inf)
        x[mg.asarray([False, False, True])] = np.nan
        x += 1.0
    assert np.isnan(x.numpy()).tolist() == [True, False, True]


def test_a_refused_write_is_explained_under_a_hunt_as_elsewhere():
    x = mg.zeros(3)
    with mg.debug_nans():
        with pytest.raises(mg.ShapeError):
            x[:2] = mg.ones(3)
        with pytest.raises(mg.ShapeError):
            x += mg.ones(4)
        with pytest.raises(mg.IndexingError):
            x[mg.asarray([7])] = 1.0


def test_a_step_that_diverges_stops_where_it_does():
    w = mg.asarray([1.0], requires_grad=True)
    optimizer = mg.optim.SGD([w], lr=1e30)
    with pytest.raises(NanError) as error, mg.debug_nans():
        for _ in range(5):
            optimizer.zero_grad()
            (w**4).sum().backward()
            optimizer.step()
    assert "made a nan" in str(error.value)


def test_autocast_does_not_hide_a_nan():
    x = infinite()
    with pytest.raises(NanError), mg.debug_nans(), mg.train.autocast():
        x -= infinite()


def test_eager_mode_seals_nothing():
    x = mg.zeros(1)
    with PYTHON_CONTROL.sealed("a branch"):
        x += 1.0
    assert x.tolist() == [1.0]


# Graphs that are kept alive -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_list_of_losses_is_reported_with_a_hint():
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
    text = repr(type(graphs)(ours))  # other tests may have left graphs
    assert f"5 × made at {made}: 15 nodes, 80,000 bytes saved" in text and "append loss.item()" in text
    for loss in losses:
        loss.backward()
    assert {g.saved_bytes for g in mg.live_graphs() if g.where == made} == {0}, "backward lets the arrays go"
    del loss
    losses.clear()
    assert len(mg.live_graphs()) == before


@pytest.mark.slow
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


def test_recorded_values_under_no_grad_carry_no_gradient():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    with mg.record(), mg.no_grad():
        y = w * 2
        first, _ = mg.topk(w, 1)
    assert y.node.op.name == "multiply" and not y.requires_grad and not first.requires_grad
    (y * w).sum().backward()
    assert w.grad.tolist() == [2, 4], "as without record()"


def test_replay_refuses_freed_values():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    constant = mg.asarray([3.0, 4.0])
    node = (w * constant).node
    assert mg.replay(node).tolist() == [3, 8]
    data = weakref.ref(constant._data)
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
