"""Views: strides, reshapes and coalesced dimensions equal NumPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minigrad as mg
from minigrad.compile.nodes.graph import Graph
from minigrad.compile.nodes.view import View, coalesced, reshaped, row_major, sliced, views_of, whole
from tests.compile.partitions import graph_of


class Memory:
    """A base of views, in tests where only its size matters."""

    dtype = np.dtype("int64")

    def __init__(self, *shape):
        self.shape, self.size = shape, int(np.prod(shape))


def elements(view):
    """The numbers of the elements that a view reads, in its shape."""
    index = np.full(view.shape, view.offset)
    for axis, stride in enumerate(view.strides):
        rest = len(view.shape) - axis - 1
        index += (np.arange(view.shape[axis]) * stride).reshape((-1, *[1] * rest))
    return index


def last(*tensors):
    """The views of the tensors, and the graph."""
    graph = graph_of(*tensors)
    views = views_of(graph)
    return [views[node] for node in graph.outputs]


sizes = st.lists(st.integers(1, 4), min_size=0, max_size=4)


@given(st.data())
def test_chains_of_views_are_those_of_numpy(data):
    shape = tuple(data.draw(sizes))
    x = mg.arange(int(np.prod(shape))).reshape(shape).copy()
    with mg.record():
        y = x
        for _ in range(data.draw(st.integers(1, 5))):
            y = changed(data, y)
    if y.node is None or y.node.op is None:
        return
    (view,) = last(y)
    if view.base is y.node and y.node.name == "reshape":
        return  # it must copy; another test covers the elements that it reads
    if view.base.op is None:
        np.testing.assert_array_equal(elements(view), y.numpy_copy())


def changed(data, y):
    """A random view of a tensor."""
    choice = data.draw(st.integers(0, 4))
    if choice == 0:
        return mg.permute_dims(y, data.draw(st.permutations(range(y.ndim)))) if y.ndim else y
    if choice == 1:
        return mg.broadcast_to(y, (data.draw(st.integers(1, 3)), *y.shape))
    if choice == 2:
        index = [None, ..., 0, slice(None)]
        chosen = tuple(data.draw(st.sampled_from(index)) for _ in range(data.draw(st.integers(0, 3))))
        fits = sum(i is ... for i in chosen) <= 1 and sum(i is not None and i is not ... for i in chosen) <= y.ndim
        return y[chosen] if chosen and fits else y
    if choice == 3 and y.ndim:
        bound = st.one_of(st.none(), st.integers(-4, 4))
        part = slice(data.draw(bound), data.draw(bound), data.draw(st.sampled_from([None, 1, 2, -1, -2])))
        new = y[part]
        return new if new.size else y
    return y.reshape(data.draw(st.sampled_from([(-1,), y.shape[::-1], (*y.shape, 1), (1, y.size)])))


@given(st.data())
def test_a_reshape_copies_where_numpy_copies(data):
    shape = tuple(data.draw(sizes))
    array = np.zeros(shape).transpose(data.draw(st.permutations(range(len(shape)))))
    if array.ndim and data.draw(st.booleans()):
        array = array[:: data.draw(st.sampled_from([1, 2, -1]))]
    if data.draw(st.booleans()):
        array = np.broadcast_to(array, (2, *array.shape))
    factors = [f for size in array.shape for f in ([2, 2] if size == 4 else [size])] + [1]
    cut = data.draw(st.integers(0, len(factors)))
    factors = data.draw(st.permutations(factors)) if data.draw(st.booleans()) else factors
    target = tuple(factors[:cut] + ([int(np.prod(factors[cut:]))] if cut < len(factors) else []))
    view = View(Memory(*shape), 0, array.shape, tuple(s // 8 for s in array.strides))
    result = reshaped(view, target)
    shared = np.shares_memory(array.reshape(target), array)
    assert (result is not None) == shared
    if result is not None:
        np.testing.assert_array_equal(elements(result), elements(view).reshape(target))


@pytest.mark.parametrize(
    "index",
    [(0,), (slice(1, None),), (slice(None, None, -1), ...), (..., slice(-1, 0, -2)), (None, 1, None), (..., -1),
     (slice(None), 2, slice(None, None, 3)), (1, 2, 3), (slice(5, 1), ...)],
)
def test_slices_are_those_of_numpy(index):
    memory = Memory(2, 3, 4)
    expected = np.arange(24).reshape(2, 3, 4)[index]
    np.testing.assert_array_equal(elements(sliced(whole(memory), index)), expected)


def test_dimensions_that_can_be_walked_as_one_are_joined():
    assert coalesced((2, 3, 4), row_major((2, 3, 4))) == [(24, 1)]
    assert coalesced((2, 1, 3), (3, 99, 1)) == [(6, 1)]
    assert coalesced((4, 5), (0, 0)) == [(20, 0)]
    assert coalesced((3, 4), (1, 3)) == [(3, 1), (4, 3)]
    assert coalesced((), ()) == []


def test_view_that_covers_its_base_in_order_is_recognised():
    memory = Memory(4, 6)
    assert whole(memory).in_order and reshaped(whole(memory), (24, 1)).in_order
    assert not sliced(whole(memory), (slice(1, None),)).in_order
    assert not sliced(whole(memory), (slice(None, None, -1),)).in_order
    assert not whole(memory).broadcast((2, 4, 6)).in_order


def test_repetitions_of_elements_in_a_view_are_counted():
    column = View(Memory(4, 1), 0, (4, 1), (1, 1))
    assert column.broadcast((4, 6)).repeats == 6
    assert column.broadcast((4, 6)).footprint == 4
    assert whole(Memory(4, 6)).repeats == 0
    assert whole(Memory(6)).broadcast((4, 6)).repeats == 0


def test_views_of_views_have_one_base():
    x = mg.ones((4, 6)).copy()
    with mg.record():
        y = mg.permute_dims(x)[1:, ::2].reshape((5, 2, 1))
    (view,) = last(y)
    assert view.base.op is None and view.shape == (5, 2, 1)
    assert view.strides[:2] == (1, 12) and view.offset == 1


def test_a_reshape_that_copies_is_a_base_itself():
    x = mg.ones((4, 6)).copy()
    with mg.record():
        y = mg.permute_dims(x).reshape(-1)
    (view,) = last(y)
    assert view.base is y.node and view.in_order


def test_inputs_of_a_graph_are_bases():
    x = mg.ones((4, 6)).copy()
    with mg.record():
        y = mg.permute_dims(x)
        z = y.reshape((6, 4, 1))
    graph = Graph([y.node], [z.node])
    assert views_of(graph)[z.node].base is y.node
