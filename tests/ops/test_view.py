"""Views: chains of views compared with NumPy's, shared memory, and gradients through views."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minigrad as mg
from minigrad.support.errors import AxisError, MinigradError, ShapeError

SLICES = [slice(None), slice(1, None), slice(None, -1), slice(None, None, -1), slice(None, None, 2), slice(-2, None)]


@st.composite
def view_steps(draw, shape=(2, 3, 4), length=6):
    """A chain of views: functions of an array, each written for NumPy and for minigrad."""
    steps, x = [], np.empty(shape)
    for _ in range(draw(st.integers(1, length))):
        kind = draw(st.sampled_from(["slice", "pick", "permute", "reshape", "expand", "squeeze", "flip", "broadcast"]))
        if kind == "slice":
            index = tuple(draw(st.sampled_from(SLICES)) for _ in x.shape)
            step = (lambda a, i=index: a[(*i, ...)], lambda t, i=index: t[i])
        elif kind == "pick" and x.ndim and x.shape[0]:
            at = draw(st.integers(-x.shape[0], x.shape[0] - 1))
            step = (lambda a, i=at: a[i, ...], lambda t, i=at: t[i])
        elif kind == "permute":
            axes = tuple(draw(st.permutations(range(x.ndim))))
            step = (lambda a, p=axes: a.transpose(p), lambda t, p=axes: mg.permute_dims(t, p))
        elif kind == "reshape":
            target = draw(
                st.sampled_from([(-1,), (1, -1), x.shape[::-1], (*x.shape, 1)] if x.size else [x.shape[::-1]])
            )
            step = (lambda a, s=target: a.reshape(s), lambda t, s=target: mg.reshape(t, s))
        elif kind == "expand":
            axis = draw(st.integers(-x.ndim - 1, x.ndim))
            step = (lambda a, k=axis: np.expand_dims(a, k), lambda t, k=axis: mg.expand_dims(t, k))
        elif kind == "squeeze":
            step = (np.squeeze, mg.squeeze)
        elif kind == "flip":
            step = (lambda a: a[(*[slice(None, None, -1)] * a.ndim, ...)], mg.flip)
        elif kind == "broadcast" and x.size < 100:
            target = (draw(st.integers(1, 2)), *x.shape)
            step = (lambda a, s=target: np.broadcast_to(a, s), lambda t, s=target: mg.broadcast_to(t, s))
        else:
            continue
        x = step[0](x)
        steps.append(step)
    return steps


@given(view_steps())
def test_a_chain_of_views_is_numpys(steps):
    array = np.arange(24.0).reshape(2, 3, 4)
    tensor = mg.asarray(array)
    for on_array, on_tensor in steps:
        array, tensor = on_array(array), on_tensor(tensor)
        assert tensor.shape == array.shape
        np.testing.assert_array_equal(tensor.numpy_copy(), array)


@given(view_steps(), st.booleans())
def test_gradients_come_back_through_a_chain_of_views(steps, as_expected):
    leaf = mg.asarray(np.zeros((2, 3, 4)), requires_grad=True)
    places = np.arange(24).reshape(2, 3, 4)
    tensor = leaf
    for on_array, on_tensor in steps:
        places, tensor = on_array(places), on_tensor(tensor)
    weights = 1.0 + np.arange(tensor.size).reshape(tensor.shape)
    expected = np.zeros(24)
    np.add.at(expected, np.asarray(places).reshape(-1), weights.reshape(-1))
    if not tensor.size:
        assert mg.gradients(tensor, leaf, mg.asarray(weights)).tolist() == expected.reshape(2, 3, 4).tolist()
        return
    np.testing.assert_array_equal(mg.gradients(tensor, leaf, mg.asarray(weights)).numpy(), expected.reshape(2, 3, 4))


@given(view_steps(), st.data())
def test_a_write_through_a_chain_of_views_reaches_what_numpys_would(steps, data):
    base_array = np.arange(24.0).reshape(2, 3, 4)
    tracked = data.draw(st.booleans())
    start = mg.asarray(base_array.copy(), requires_grad=True) * 1.0 if tracked else mg.asarray(base_array.copy())
    array, tensor = base_array.copy(), start
    base_array = array
    for on_array, on_tensor in steps:
        array, tensor = on_array(array), on_tensor(tensor)
    if not array.flags.writeable:
        with pytest.raises(mg.MutationError, match="broadcast view"):
            tensor[...] = -1.0
        return
    array[...] = -1.0
    tensor[...] = -1.0
    np.testing.assert_array_equal(tensor.numpy_copy(), array)
    np.testing.assert_array_equal(start.numpy_copy(), base_array)


def test_a_result_in_another_layout_shares_its_memory_with_what_is_detached():
    result = mg.ones((2, 3)).T + 1.0  # NumPy keeps the layout of the transposed input
    detached = result.detach()
    result[0, 0] = 7.0
    assert detached[0, 0].item() == 7
    detached[1, 1] = 8.0
    assert result[1, 1].item() == 8


def test_views_share_memory_and_reshape_copies_only_where_it_must():
    x = mg.asarray(np.arange(6.0).reshape(2, 3))
    for view in (x.T, x[0], x[:, ::-1], x.reshape(3, 2), x.flatten(), mg.expand_dims(x, 0), mg.flip(x), x.mT):
        assert np.shares_memory(view.data, x.data)
    assert not np.shares_memory(x.T.reshape(-1).data, x.data)
    assert np.shares_memory(mg.unstack(x)[1].data, x.data)


def test_reshape_takes_sizes_or_a_tuple():
    x = mg.arange(6)
    assert x.reshape(2, 3).shape == x.reshape((2, 3)).shape == x.reshape([2, -1]).shape == (2, 3)
    assert mg.asarray(1.0).reshape(()).shape == () and mg.zeros((0, 2)).reshape(0, 5).shape == (0, 5)
    for wrong in ((4,), (-1, -1), (-2, 3), (0, -1)):
        with pytest.raises(ShapeError, match="6 elements"):
            x.reshape(wrong)


def test_axes_that_do_not_exist_or_come_twice():
    x = mg.zeros((2, 3))
    for attempt in (
        lambda: mg.expand_dims(x, 3),
        lambda: mg.squeeze(x, 2),
        lambda: mg.flip(x, -3),
        lambda: mg.moveaxis(x, 0, 2),
        lambda: mg.moveaxis(x, (0, 1), (0,)),
        lambda: mg.swapaxes(x, 0, 5),
        lambda: x.permute_dims((0, 0)),
        lambda: mg.unstack(x, axis=2),
        lambda: mg.matrix_transpose(mg.zeros(2)),
        lambda: x.flatten(3),
    ):
        with pytest.raises(AxisError):
            attempt()


@pytest.mark.parametrize("shape", [("a",), (2.0, 3), (None,)])
def test_reshape_refuses_sizes_that_are_not_integers(shape):
    with pytest.raises(ShapeError, match="reshape: a shape is integers, not"):
        mg.zeros((2, 3)).reshape(*shape)


@pytest.mark.parametrize("index", [slice(None, None, 0), slice(0, 1.5)])
def test_slices_that_python_refuses(index):
    with pytest.raises(MinigradError, match=r"slice[\s\S]*test_view.py"):
        mg.zeros((2, 3))[index]
