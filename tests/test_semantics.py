"""The semantics of mutation, saved values, views and modes: numbered cases, each a short program with its results.

Each case runs eagerly and in graph mode, except cases about objects that an eager graph keeps alive, or about arrays
inside the block.  Cases 33 to 54, which need jit, are in compile/test_jitted.py; case 56 is the fuzz test.
"""

import asyncio
import contextvars
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.replay import replay
from minigrad.support.errors import Gone, GradError, MutationError


@pytest.fixture(autouse=True, params=["eagerly", "in graph mode"])
def mode(request):
    if request.param == "eagerly":
        yield
    elif request.node.get_closest_marker("eager_only"):
        pytest.skip("about what eager mode keeps, or about arrays before the end of the block")
    else:
        with mg.graph():
            yield


def leaf(*values):
    return mg.asarray(np.array(values, np.float64), requires_grad=True)


def plain(*values):
    return mg.asarray(np.array(values, np.float64))


@pytest.fixture
def w():
    return leaf(1, 2)


@pytest.fixture
def c():
    return plain(3, 4)


def line(number_of_line_above=1):
    """`test_semantics.py:123`, as errors name it: the line this many lines above the caller's."""
    import sys

    return f"test_semantics.py:{sys._getframe(1).f_lineno - number_of_line_above}"


# Writes without a history ---------------------------------------------------------------------------------------------


@pytest.mark.eager_only
def test_01_numpy_is_a_read_only_alias_that_sees_writes(c):
    alias = c.numpy()
    c[0] = 9
    assert alias.tolist() == [9, 4]
    with pytest.raises(ValueError, match="read-only"):
        alias[0] = 1


def test_02_a_saved_input_that_was_overwritten_is_an_error_with_both_lines(w, c):
    y = (w * c).sum()
    used = line(1)
    c[0] = 7
    changed = line(1)
    with pytest.raises(MutationError) as error:
        y.backward()
    assert used in str(error.value) and changed in str(error.value)
    assert "y = (w * c).sum()" in str(error.value) and "c[0] = 7" in str(error.value)
    assert "input y of multiply" in str(error.value) and "(2,)" in str(error.value)


def test_03_the_same_through_a_view_and_through_detach(w, c):
    y = (w * c).sum()
    view = c[1:]
    view[0] = 7
    assert c.tolist() == [3, 7]
    with pytest.raises(MutationError, match=line(2)):
        y.backward()
    y = (w * c).sum()
    c.detach()[0] = 7
    assert c.tolist() == [7, 7]
    with pytest.raises(MutationError, match=line(2)):
        y.backward()


def test_04_overwriting_what_no_rule_needs_is_harmless(w, c):
    y = (w + c).sum()
    c[0] = 7
    y.backward()
    assert w.grad.tolist() == [1, 1]


# Writes with a history ------------------------------------------------------------------------------------------------


def test_05_a_saved_value_stays_as_it_was(w):
    h = w + 1
    y = h * plain(3, 4)
    h += 5
    y.sum().backward()
    assert w.grad.tolist() == [3, 4]


def test_06_a_result_that_its_own_rule_needs_may_be_changed_in_place(w):
    y = w.exp()
    y += 1
    y.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), np.exp([1, 2]), rtol=1e-12)


def test_07_in_place_multiplication_by_its_own_source():
    w = leaf(2, 3)
    h = w * 1
    h *= w
    h.sum().backward()
    assert w.grad.tolist() == [4, 6]


def test_08_a_write_of_a_tracked_value_reaches_overlapping_views():
    w, v = leaf(1, 2, 3), leaf(10)
    h = w * 2
    a, b = h[:2], h[1:]
    h[1] = v[0] * 3
    assert (a.tolist(), b.tolist()) == ([2, 30], [30, 6])
    (a.sum() + b.sum() * 10).backward()
    assert (w.grad.tolist(), v.grad.tolist()) == ([2, 0, 20], [33])


def test_09_a_write_through_a_view_reaches_another_view():
    w = leaf(1, 2, 3)
    h = (w * 2).reshape(3, 1)
    a, b = h[1:], h.T
    a[0] = 5.0
    assert b.tolist() == [[2, 5, 6]]
    (b * plain(1, 10, 100)).sum().backward()
    assert w.grad.tolist() == [2, 0, 200]


def test_10_in_place_arithmetic_on_a_view_changes_its_base():
    w = leaf(1, 2, 3)
    h = w * 2
    a = h[1:]
    a *= 3
    assert h.tolist() == [2, 12, 18]
    h.sum().backward()
    assert w.grad.tolist() == [2, 6, 6]


def test_11_a_buffer_filled_in_a_loop_has_a_gradient_through_a_view_of_it():
    w = leaf(1, 2, 3)
    buffer = mg.zeros(3, dtype="float64")
    part = buffer[1:]
    for i in range(3):
        buffer[i] = w[i] * w[i]
    part.sum().backward()
    assert w.grad.tolist() == [0, 4, 6]


def test_12_an_element_overwritten_by_a_function_of_itself_again_and_again(w):
    h = w * 1
    for _ in range(3):
        h[0] = h[0] * h[1]
    assert h.tolist() == [8, 2]
    h.sum().backward()
    assert w.grad.tolist() == [8, 13]


def test_13_a_shifted_copy_onto_itself():
    w = leaf(1, 2, 3, 4)
    h = w * 1
    h[1:] = h[:-1]
    assert h.tolist() == [1, 1, 2, 3]
    (h * plain(1, 10, 100, 1000)).sum().backward()
    assert w.grad.tolist() == [11, 100, 1000, 0]


def test_14_of_equal_indices_the_last_one_wins_and_has_the_gradient():
    v = leaf(5, 6)
    h = mg.zeros(3, dtype="float64")
    h[[1, 1]] = v
    assert h.tolist() == [0, 6, 0]
    h.sum().backward()
    assert v.grad.tolist() == [0, 1]


def test_15_a_view_of_one_element_is_a_view(w):
    h = w * 1
    z = h[0]
    h[0] = 7.0
    assert z.item() == 7


def test_16_the_second_derivative_through_assignment():
    w = leaf(1, 2, 3)
    h = w * 1
    h[1:] = h[:2] * w[1:]
    g = mg.gradients((h * h * h).sum(), w, create_graph=True)
    assert mg.gradients((g * g).sum(), w).tolist() == [27108, 367704, 279936]


# Refusals -------------------------------------------------------------------------------------------------------------


def test_17_a_leaf_is_not_changed_in_place(w):
    with pytest.raises(MutationError, match="leaf"):
        w += 1
    with pytest.raises(MutationError, match="leaf"):
        w[0:1][0] = 1
    with pytest.raises(MutationError, match="leaf"):
        w[0] = 1
    assert w.tolist() == [1, 2]


def test_18_a_write_that_contradicts_a_history_is_refused(w):
    y = w * 2
    with pytest.raises(MutationError, match="no_grad"), mg.no_grad():
        y[0] = 5.0
    with pytest.raises(MutationError, match="detach"):
        y.detach()[0] = 5.0
    with pytest.raises(MutationError, match="detach"):
        plain(0, 0).detach()[0] = w[0]
    assert y.tolist() == [2, 4]


def test_19_an_update_between_forward_and_backward_is_noticed(w):
    y = (w * w).sum()
    with mg.no_grad():
        w -= 1
    with pytest.raises(MutationError, match=line(1)):
        y.backward()


def test_20_a_parameter_is_updated_under_no_grad_and_stays_a_leaf(w):
    (w * w).sum().backward()
    with mg.no_grad():
        w -= w.grad * 0.5
    assert w.tolist() == [0, 0] and w.requires_grad and w.is_leaf


def test_21_a_value_that_does_not_fit_changes_nothing(w):
    for h in (w * 1, plain(1, 2)):
        with pytest.raises(ValueError, match=r"\(3,\)"):
            h[0:2] = plain(1, 2, 3)
        assert h.tolist() == [1, 2]


# Gradients as tensors -------------------------------------------------------------------------------------------------


def test_22_two_leaves_never_share_a_gradient():
    a, b = leaf(1, 2), leaf(3, 4)
    (a + b).sum().backward()
    a.grad *= 2
    assert (a.grad.tolist(), b.grad.tolist()) == ([2, 2], [1, 1])


@pytest.mark.eager_only
def test_23_a_gradient_is_an_array_of_its_own(w):
    w.sum().backward()
    assert 0 not in w.grad._data.strides
    w.grad[0] = 5
    assert w.grad.tolist() == [5, 1]


def test_24_a_second_backward_is_an_error_unless_the_graph_is_retained(w):
    y = (w * w).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert w.grad.tolist() == [4, 8]
    with pytest.raises(GradError, match="retain_graph") as error:
        y.backward()
    assert line(6) in str(error.value)


def test_25_requiring_a_gradient_later_does_not_change_the_past(w, c):
    x = c
    y = (w * x).sum()
    x.requires_grad = True
    y.backward()
    assert x.grad is None and w.grad.tolist() == [3, 4]


def test_26_an_input_that_was_not_used_is_an_error_unless_allowed(w):
    unused = leaf(1)
    with pytest.raises(GradError, match="allow_unused"):
        mg.gradients((w * w).sum(), [w, unused])
    assert mg.gradients((w * w).sum(), [w, unused], allow_unused=True)[1] is None


# Memory that a graph keeps alive --------------------------------------------------------------------------------------


def test_27_a_product_with_a_constant_keeps_only_the_constant(w):
    h = w * 1
    mask = plain(0, 1)
    value = weakref.ref(h._data)
    y = h * mask
    assert [x is mask._data for x in y.node.saved] == [False, True, False] and y.node.saved[0] is None
    del h
    y.tolist()  # in graph mode, operands are kept until they are not needed any more
    assert value() is None


@pytest.mark.eager_only
@pytest.mark.parametrize("create_graph", [False, True])
def test_28_a_graph_is_freed_without_the_collector(w, create_graph):
    gc.collect()
    gc.disable()
    try:
        h = w * w
        node, data = weakref.ref(h.node), weakref.ref(h._data)
        y = (h * h).sum()
        if create_graph:
            g = mg.gradients(y, w, create_graph=True)
            second = mg.gradients(g.sum(), w)
            of_gradient = weakref.ref(g.node)
            del g, second
            assert of_gradient() is None
        else:
            y.backward()
        del h, y
        assert node() is None and data() is None
    finally:
        gc.enable()


@pytest.mark.eager_only
def test_29_a_chain_of_200_000_is_differentiated_and_freed_without_recursion():
    w = leaf(1)
    x = w
    for _ in range(200_000):
        x = x + 1
    x.sum().backward()
    assert w.grad.tolist() == [1]
    node = weakref.ref(x.node)
    del x
    assert node() is None


@pytest.mark.eager_only
def test_30_values_are_replayed_after_backward_and_gone_after_a_write(w):
    h = w * 3
    node = (h * h).node
    assert replay(node).tolist() == [9, 36]
    (h * h).sum().backward()
    assert replay(node).tolist() == [9, 36]
    with mg.no_grad():
        w[0] = 5
    with pytest.raises(Gone, match=line(1)):
        replay(node)


@pytest.mark.eager_only
def test_31_an_operation_on_tensors_without_dimensions_gives_an_array():
    x = mg.asarray(2.0)
    for y in (x + x, x * 2, -x, x.sum(), x[...], mg.asarray([1.0, 2.0])[0], mg.asarray([1.0])[0] + 1, x.exp(), x < 1):
        assert isinstance(y._data, np.ndarray) and y.shape == ()


def test_32_whether_reshape_aliases_does_not_depend_on_how_numpy_laid_out_a_result():
    x = plain(1, 2, 3, 4, 5, 6).reshape(2, 3)
    y = x.T + 1
    flat = y.reshape(-1)
    flat[0] = 9
    assert y[0, 0].item() == 9
    seen = x.T.reshape(-1)
    seen[0] = 9
    assert x[0, 0].item() == 1, "a transposed view is not evenly spaced, so reshape copies"


# Modes ----------------------------------------------------------------------------------------------------------------


def test_55_a_new_thread_or_task_starts_with_the_modes_it_should():
    seen = []
    with mg.no_grad(), mg.device("cpu:1"):
        thread = threading.Thread(target=lambda: seen.append((mg.is_grad_enabled(), str(mg.zeros(1).device))))
        thread.start()
        thread.join()
    assert seen == [(True, "cpu")], "a thread starts with the defaults"

    async def inside(first):
        with mg.no_grad() if first else mg.enable_grad():
            await asyncio.sleep(0)
            return mg.is_grad_enabled()

    async def both():
        return await asyncio.gather(inside(True), inside(False), inside(True))

    context = contextvars.copy_context()
    with ThreadPoolExecutor(1) as pool:  # a browser may already run an event loop in this thread
        found = pool.submit(context.run, asyncio.run, both()).result()
    assert found == [False, True, False], "tasks do not see each other's modes"


def test_modes_nest_and_end_with_an_exception():
    with mg.no_grad():
        with mg.enable_grad():
            assert mg.is_grad_enabled()
        assert not mg.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), mg.no_grad():
        raise ZeroDivisionError
    assert mg.is_grad_enabled()

    @mg.no_grad()
    def decorated(depth):
        return mg.is_grad_enabled() or (depth and decorated(depth - 1))

    assert not decorated(3) and mg.is_grad_enabled()


def test_recording_works_through_every_form_of_a_call():
    x = plain(1, 2).astype("float32")
    with mg.record():
        results = [x + 1, 1 + x, x * x, -x, x.exp(), x[0], x.sum(), x.T if x.ndim == 2 else x.reshape(2, 1)]
    assert [r.node.op.name for r in results] == ["add", "add", "multiply", "negative", "exp", "slice", "sum", "reshape"]
    assert (x + 1).node is None


def test_a_view_that_becomes_a_leaf_is_a_leaf():
    x = mg.asarray([1.0, 2.0, 3.0])
    v = x[1:]
    v.requires_grad = True
    with pytest.raises(mg.MutationError, match="in-place change of a leaf"):
        v += 1
    x[0] = v[0] * 2  # makes a new array of x, with a history; v keeps its own
    assert v.is_leaf and v.requires_grad
    (x.sum() + (v * v).sum()).backward()
    assert v.grad.tolist() == [2 + 2 * 2, 2 * 3]
    with mg.no_grad(), pytest.raises(mg.MutationError, match="has a history, which a write"):
        v += 1  # v is a part of x, which has a history now
    buffer = mg.zeros(3)
    part = buffer[1:]
    part.requires_grad = True
    with mg.no_grad():
        part += 1
    assert buffer.tolist() == [0.0, 1.0, 1.0]
