"""Indexing in all its forms, reading and assigning, compared with NumPy; picking, joining and ordering."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minigrad as mg
from minigrad.support.errors import ConversionError, DtypeError, IndexingError, ShapeError
from tests.numerical import check_gradients

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)


def numbered(shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)


@st.composite
def basic_items(draw, size):
    """An integer or a slice for a dimension of this size, negative steps included."""
    bound = st.one_of(st.none(), st.integers(-size - 2, size + 2))
    slices = st.builds(slice, bound, bound, st.one_of(st.none(), st.sampled_from([-3, -2, -1, 1, 2, 3])))
    return draw(st.one_of(slices, st.integers(-size, size - 1)) if size else slices)


@st.composite
def mixed_indices(draw, shape):
    """An index of any form: integers, slices, None, an Ellipsis, index arrays that broadcast, boolean masks."""
    common = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    items, place = [], 0
    while place < len(shape) and draw(st.integers(0, 5)):
        kind = draw(st.sampled_from(["basic", "basic", "array", "list", "mask"]))
        size = shape[place]
        if kind == "mask" and draw(st.booleans()):
            count = draw(st.integers(1, min(2, len(shape) - place)))
            mask = draw(hnp.arrays(bool, shape[place : place + count]))
            if common not in ((), (int(mask.sum()),)):
                continue  # it would need to broadcast with the arrays
            common = (int(mask.sum()),)
            items.append(mask)
            place += count
            continue
        if kind in ("array", "list") and size and 0 not in common:
            part = tuple(draw(st.sampled_from([s, 1])) for s in common[draw(st.integers(0, len(common))) :])
            array = draw(
                hnp.arrays(
                    draw(st.sampled_from([np.int64, np.int32, np.int8])), part, elements=st.integers(-size, size - 1)
                )
            )
            items.append(array.tolist() if kind == "list" and array.ndim else array)
        else:
            items.append(draw(basic_items(size)))
        place += 1
    masks = any(isinstance(item, np.ndarray) and item.dtype.kind == "b" for item in items)
    for extra in (None, ...):
        if draw(st.booleans()) and not (masks and extra is ...):  # this would move a mask to other dimensions
            items.insert(draw(st.integers(0, len(items))), extra)
    return tuple(items) if len(items) != 1 or draw(st.booleans()) else items[0]


@st.composite
def indexed(draw):
    shape = draw(SHAPES)
    return shape, draw(mixed_indices(shape))


def as_ours(index):
    """The same index with tensors instead of arrays."""
    if isinstance(index, tuple):
        return tuple(as_ours(i) for i in index)
    return mg.asarray(index) if isinstance(index, np.ndarray) else index


def numpy_result(array, index):
    """NumPy's result, or None if NumPy raises an error."""
    try:
        return np.asarray(array[index])
    except IndexError:
        return None


@given(indexed())
def test_reading_is_numpys(case):
    shape, index = case
    x = numbered(shape)
    expected = numpy_result(x, index)
    for ours in (index, as_ours(index)):
        if expected is None:
            with pytest.raises((IndexingError, ShapeError)):
                mg.asarray(x)[ours]
        else:
            result = mg.asarray(x)[ours]
            assert result.shape == expected.shape
            np.testing.assert_array_equal(result.numpy(), expected)


@given(indexed(), st.booleans(), st.data())
def test_assigning_is_numpys_with_and_without_a_history(case, tracked, data):
    shape, index = case
    x = numbered(shape)
    place = numpy_result(x, index)
    if place is None:
        return
    keep = data.draw(st.integers(0, place.ndim))
    part = tuple(data.draw(st.sampled_from([s, 1])) for s in place.shape[keep:])
    value = data.draw(st.sampled_from([-7.0, -1.0 - numbered(part)]))
    expected = x.copy()
    if _has_equal_indices(x, index):
        return  # another test covers which of them wins
    expected[index] = value
    start = mg.asarray(x, requires_grad=tracked) * 1.0 if tracked else mg.asarray(x)
    view = start[...]
    start[as_ours(index)] = mg.asarray(value) if isinstance(value, np.ndarray) else value
    np.testing.assert_array_equal(start.numpy_copy(), expected)
    np.testing.assert_array_equal(view.numpy_copy(), expected)


def _has_equal_indices(x, index):
    chosen = np.asarray(np.arange(x.size).reshape(x.shape)[index])
    return len(np.unique(chosen)) != chosen.size


@given(indexed())
def test_the_gradient_of_reading_counts_how_often_an_element_was_read(case):
    shape, index = case
    x = numbered(shape)
    if numpy_result(x, index) is None:
        return
    leaf = mg.asarray(x, requires_grad=True)
    y = leaf[as_ours(index)]
    if not y.size:
        return  # np.add.at refuses some of these
    weights = 1.0 + numbered(y.shape)
    expected = np.zeros(shape)
    np.add.at(expected, index, weights)
    np.testing.assert_array_equal(mg.gradients(y, leaf, mg.asarray(weights)).numpy(), expected)


@given(indexed())
def test_the_gradients_of_assigning_split_between_the_two(case):
    shape, index = case
    x = numbered(shape)
    place = numpy_result(x, index)
    if place is None or _has_equal_indices(x, index):
        return
    leaf, value = mg.asarray(x, requires_grad=True), mg.asarray(-numbered(place.shape), requires_grad=True)
    h = leaf * 1.0
    h[as_ours(index)] = value
    weights = 1.0 + numbered(shape)
    of_leaf, of_value = mg.gradients(h, [leaf, value], mg.asarray(weights))
    np.testing.assert_array_equal(of_value.numpy(), weights[index])
    expected = weights.copy()
    expected[index] = 0
    np.testing.assert_array_equal(of_leaf.numpy(), expected)


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
def test_assignment_to_equal_indices_keeps_the_last_in_any_memory_order(tracked, backwards):
    places = mg.asarray([2, 1, 1, 0])[::-1] if backwards else mg.asarray([0, 1, 1, 2])
    values = mg.asarray(np.array([4.0, 3.0, 2.0, 1.0]), requires_grad=tracked)
    h = mg.zeros(3, dtype="float64")
    h[places] = values[::-1] if backwards else values
    assert h.tolist() == ([1, 3, 4] if backwards else [4, 2, 1])
    if tracked:
        (h * mg.asarray(np.array([1.0, 10.0, 100.0]))).sum().backward()
        assert values.grad.tolist() == ([100, 10, 0, 1] if backwards else [1, 0, 10, 100])


@pytest.mark.parametrize("tracked", [False, True])
def test_a_value_may_have_dimensions_of_size_1_in_front(tracked):
    value = mg.asarray(np.array([[[1.0, 2.0]]]), requires_grad=tracked)
    for index in (slice(1, 3), [1, 2]):
        h = mg.zeros(3, dtype="float64")
        h[index] = value
        assert h.tolist() == [0, 1, 2]
        if tracked:
            value.grad = None
            (h * 3.0).sum().backward()
            assert value.grad.tolist() == [[[3, 3]]]


@pytest.mark.parametrize("tracked", [False, True])
def test_assignment_casts_to_the_dtype_of_the_tensor(tracked):
    value = mg.asarray(np.array([1.5, 2.5]), requires_grad=tracked)
    h = mg.zeros(3)
    h[1:] = value
    assert h.dtype == "float32" and h.tolist() == [0, 1.5, 2.5]
    if tracked:
        h.sum().backward()
        assert value.grad.dtype == "float64"
    whole = mg.zeros(2, dtype=int)
    whole[:] = value.detach()
    assert whole.tolist() == [1, 2]
    whole[0] = True
    whole[[1]] = 7
    assert whole.tolist() == [1, 7]


def test_assigning_lists_arrays_and_numpy_numbers():
    h = mg.zeros((2, 2))
    h[0] = [1, 2]
    h[1] = np.array([3, 4])
    h[0, 0] = np.float64(9)
    assert h.tolist() == [[9, 2], [3, 4]]


def test_reading_basic_indices_gives_views_and_arrays_give_copies():
    x = mg.asarray(numbered((3, 4)))
    for index in (0, slice(1, 3), (..., 1), (slice(None, None, -1), 0), None):
        x[index][...] = -1.0
    assert (x == -1).any()
    copied = x[[0, 1]]
    copied[...] = 5.0
    x[x < 0][...] = 7.0
    assert not ((x == 5) | (x == 7)).any()


def test_numpy_integers_and_tensors_without_dimensions_are_integers():
    x = mg.arange(5)
    for two in (np.int32(2), np.uint8(2), mg.asarray(2), np.array(2)):
        assert x[two].item() == 2
    assert x[mg.asarray(1) : mg.asarray(3)].tolist() == [1, 2]


def test_booleans_are_masks_and_not_integers():
    x = mg.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert x[True].shape == (1, 2, 2) and x[False].shape == (0, 2, 2)
    assert x[mg.asarray([True, False])].tolist() == [[1, 2]]
    for mask in ([True, False, True], [True, False, False]):
        with pytest.raises(IndexingError, match=r"a mask of shape \(3,\) for dimensions of shape \(2,\)"):
            x[mg.asarray(mask)]
        with pytest.raises(IndexingError, match=r"a mask of shape \(3,\) for dimensions of shape \(2,\)"):
            x[..., mg.asarray(mask)] = 1.0


@pytest.mark.parametrize("shape", [(0, 1), (2, 3), (2, 0, 3), (0, 0), (3, 0)], ids=str)
@pytest.mark.parametrize("mask", [(0, 0), (2, 0), (0,), (0, 1), (0, 3)], ids=str)
def test_a_mask_without_elements_selects_nothing(shape, mask):
    a, nothing = np.ones(shape), np.zeros(mask, bool)
    x = mg.asarray(a)
    try:
        expected = a[nothing].shape
    except IndexError:
        for index in (x.__getitem__, lambda i: x.__setitem__(i, 5.0)):
            with pytest.raises(IndexingError, match="a mask of shape"):
                index(mg.asarray(nothing))
    else:
        assert x[mg.asarray(nothing)].shape == expected
        x[mg.asarray(nothing)] = 5.0
        assert np.array_equal(x.numpy_copy(), a)


def test_iterating_gives_views_of_the_rows():
    x = mg.asarray([[1.0, 2.0], [3.0, 4.0]])
    for row in x:
        row[0] = 0.0
    assert x.tolist() == [[0, 2], [0, 4]]


# Composed -------------------------------------------------------------------------------------------------------------


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(0, 3), st.integers(1, 5)), elements=st.integers(-3, 3)), st.booleans()
)
def test_sorting_is_stable_in_both_directions(x, descending):
    order = mg.argsort(mg.asarray(x), axis=1, descending=descending).numpy()
    for row, places in zip(x, order):
        expected = sorted(range(len(row)), key=lambda i: -row[i] if descending else row[i])
        assert places.tolist() == expected
    ordered = mg.sort(mg.asarray(x), axis=1, descending=descending).numpy()
    np.testing.assert_array_equal(ordered, np.take_along_axis(x, order, axis=1))


@given(
    st.lists(
        hnp.arrays(np.float64, st.tuples(st.just(2), st.integers(0, 3)), elements=st.integers(-9, 9)),
        min_size=1,
        max_size=4,
    )
)
def test_splitting_undoes_joining(parts):
    whole = mg.concat([mg.asarray(p) for p in parts], axis=1)
    np.testing.assert_array_equal(whole.numpy(), np.concatenate(parts, axis=1))
    cuts = np.cumsum([p.shape[1] for p in parts])[:-1].tolist()
    for ours, theirs in zip(mg.split(whole, cuts, axis=1), parts):
        np.testing.assert_array_equal(ours.numpy(), theirs)


def test_joining_promotes():
    assert mg.concat([mg.ones(1, dtype="int8"), mg.ones(1, dtype="float16")]).dtype == "float16"
    assert mg.stack([mg.ones(1, dtype=bool), mg.ones(1, dtype="int32")]).dtype == "int32"


def test_joining_nothing_is_an_error():
    with pytest.raises(ConversionError, match="at least one"):
        mg.concat([])
    with pytest.raises(ShapeError, match=r"mg\.stack"):
        mg.concat([mg.asarray(1.0), mg.asarray(2.0)])


def test_a_step_that_shifts_overlapping_parts_of_one_buffer():
    x = mg.arange(6)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x = mg.arange(6)
    x[::-1] = x
    assert x.tolist() == [5, 4, 3, 2, 1, 0]
    x = mg.arange(6)
    x[[1, 2, 3]] = x[:3]
    assert x.tolist() == [0, 0, 1, 2, 4, 5]


def test_indexing_second_derivatives():
    rng = np.random.default_rng(0)
    rows = mg.asarray([2, 0, 2])
    check_gradients(lambda x: x[rows] ** 3, rng.uniform(0.5, 1.5, (3, 2)))
    check_gradients(lambda x: x[:, rows, None] * x[0, 1], rng.uniform(0.5, 1.5, (2, 3)))

    def assigned(x, v):
        h = x * x
        h[rows, 1] = v * h[:, 0]
        return h

    check_gradients(assigned, rng.uniform(0.5, 1.5, (3, 2)), rng.uniform(0.5, 1.5, 3))


@pytest.mark.parametrize("value", [None, "1.5", 1j, object()])
def test_assignment_refuses_values_that_are_not_numbers(value):
    x = mg.zeros(3)
    with pytest.raises(ConversionError, match=f"{type(value).__name__} is not a tensor, a number or a NumPy array"):
        x[0] = value
    assert x.tolist() == [0, 0, 0]


MASK = [True, False, True]


@pytest.mark.parametrize("mode", [lambda f: f, mg.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("mask", [MASK, mg.asarray(MASK), True, np.array(MASK)], ids=lambda mask: type(mask).__name__)
def test_functions_that_take_integers_take_no_mask(mode, mask):
    for name, call in {
        "take": lambda: mg.take(mg.ones((3, 3)), mask, axis=1),
        "take_along_axis": lambda: mg.take_along_axis(mg.ones(3), mask),
        "scatter_add": lambda: mg.scatter_add(mg.zeros(3), mask, mg.ones(3)),
    }.items():
        if name == "take_along_axis" and isinstance(mask, list):
            continue  # it does not take lists
        with pytest.raises(DtypeError, match=rf"{name}: indices are integers, not bool\n.*indices.astype\(mg.int64\)"):
            mode(call)()


@pytest.mark.parametrize("widths", [{1, 2}, b"ab", {1: 2}, "12", None, [(1, 0.5), (0, 2)]], ids=repr)
def test_widths_of_padding_are_integers_in_order(widths):
    with pytest.raises(ConversionError, match="pad: widths"):
        mg.pad(mg.ones((2, 2)), widths)


@pytest.mark.parametrize(
    "widths", [np.int64(1), np.array([1, 2]), [np.int64(1), np.int64(2)], np.array([[1, 0], [0, 2]]), mg.asarray(2)]
)
def test_widths_of_padding_may_be_numpys(widths):
    theirs = widths.numpy() if isinstance(widths, mg.Tensor) else np.asarray(widths)
    np.testing.assert_array_equal(mg.pad(mg.ones((2, 3)), widths).numpy(), np.pad(np.ones((2, 3)), theirs))


def test_equal_elements_share_the_gradient_of_scatter_max():
    base, value = mg.asarray([2.0, 0.0, 1.0], requires_grad=True), mg.asarray([2.0, 7.0, 2.0, 7.0], requires_grad=True)
    out = mg.scatter_max(base, [0, 1, 0, 1], value)
    (out * mg.asarray([3.0, 4.0, 5.0])).sum().backward()
    assert out.tolist() == [2.0, 7.0, 1.0]
    assert base.grad.tolist() == [1.0, 0.0, 5.0]
    assert value.grad.tolist() == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize("compile", [lambda f: f, mg.jit])
def test_the_gradient_of_segment_max_is_that_of_max_in_each_segment(compile):
    x, segments = mg.asarray(np.random.default_rng(0).integers(0, 3, (12, 5)).astype(float)), np.arange(12) % 4
    ours = compile(mg.grad(lambda x: (mg.segment_max(x, segments, 4) ** 2).sum()))(x)
    alone = mg.grad(lambda x: (x.reshape(3, 4, 5).max(axis=0) ** 2).sum())(x)
    np.testing.assert_allclose(ours.numpy(), alone.numpy())


def test_a_range_is_an_index_like_a_list():
    x = mg.asarray([[1, 2], [3, 4], [5, 6]])
    assert x[range(2), range(1, -1, -1)].tolist() == [2, 3] and x[range(0)].shape == (0, 2)
    x[range(1, 3)] = 0
    assert x.tolist() == [[1, 2], [0, 0], [0, 0]]


def test_a_bound_that_is_no_integer_has_one_error_in_every_mode():
    x, flag = mg.ones((3, 4)), mg.asarray(True)

    def recorded():
        with mg.graph():
            x[:flag]

    for call in (lambda: x[:flag], recorded, lambda: mg.jit(lambda x: x[: x.sum() > 0])(x)):
        with pytest.raises(mg.ConversionError, match=r"^only an integer tensor without dimensions") as caught:
            call()
        assert str(caught.value).count("Line:") == 1
