"""The largest elements of overlapping windows, and their gradients, are those of loops over all windows."""

import itertools

import numpy as np
import pytest

import minigrad as mg
from minigrad.ops.pooling import FEW

CASES = [(3, 2, 1, 1), (2, 1, 0, 3), ((3, 2), (1, 3), (1, 0), (2, 1)), (FEW + 1, 2, 3, 1)]


def by_loops(a, size, stride, padding, dilation):
    """The largest elements, and where each of them is."""
    (h, w), (sy, sx), (py, px), (dy, dx) = (np.broadcast_to(v, 2) for v in (size, stride, padding, dilation))
    wide = np.pad(a, ((0, 0), (py, py), (px, px)), constant_values=-np.inf)
    counts = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(wide.shape[1:], (dy, dx), (h, w), (sy, sx))]
    out, gradient = np.empty((len(a), *counts)), np.zeros(wide.shape)
    for n, i, j in itertools.product(range(len(a)), *map(range, counts)):
        window = (n, slice(i * sy, i * sy + dy * (h - 1) + 1, dy), slice(j * sx, j * sx + dx * (w - 1) + 1, dx))
        out[n, i, j] = wide[window].max()
        gradient[window] += wide[window] == out[n, i, j]
    return out, gradient[:, py : wide.shape[1] - py, px : wide.shape[2] - px]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("extent", [13, 41])  # the larger image is worth a program in eager mode
def test_overlapping_windows(case, extent):
    a = np.random.default_rng(0).permutation(3.0 * np.arange(3 * extent * (extent + 1))).reshape(3, extent, extent + 1)
    expected, gradient = by_loops(a, *case)
    x = mg.asarray(a)

    def pooled(x):
        return mg.max_pool2d(x, *case)

    for transform in (lambda function: function, mg.jit):
        np.testing.assert_array_equal(transform(pooled)(x).numpy(), expected)
        found = transform(mg.grad(lambda x: pooled(x).sum()))(x)
        np.testing.assert_array_equal(found.numpy(), gradient)


def test_equal_elements_share_the_gradient_and_nan_is_the_largest():
    x = mg.zeros((1, 5, 5))
    gradient = mg.grad(lambda x: mg.max_pool2d(x, 3, 1).sum())(x).numpy()
    assert abs(gradient.sum() - 9) < 1e-6 and (gradient > 0).all()
    a = np.arange(25.0).reshape(1, 5, 5)
    a[0, 1, 1] = np.nan
    assert np.isnan(mg.max_pool2d(mg.asarray(a), 3, 2).numpy()).tolist() == [[[True, False], [False, False]]]


def test_unfold_and_fold_check_what_they_take():
    with pytest.raises(mg.ShapeError, match="unfold: a window of 3 is longer than the dimension of 2"):
        mg.unfold(mg.ones((1, 1, 2, 2)), 3)
    with pytest.raises(mg.ShapeError, match=r"unfold: an input of shape \(4,\)"):
        mg.unfold(mg.ones(4), 3)
    with pytest.raises(mg.ShapeError, match=r"columns of shape \(1, 4, 3\) .* images \(2, 3\)\n.*channels · 4, 2"):
        mg.fold(mg.ones((1, 4, 3)), (2, 3), 2)
    with pytest.raises(mg.ShapeError, match=r"fold: columns of shape \(1, 3, 2\)"):
        mg.fold(mg.ones((1, 3, 2)), (2, 3), 2)


def test_fold_undoes_unfold_where_patches_do_not_overlap():
    x = mg.random.normal((2, 3, 4, 6))
    assert (mg.fold(mg.unfold(x, (2, 3), stride=(2, 3)), (4, 6), (2, 3), stride=(2, 3)) == x).all()
    assert mg.unfold(mg.ones((0, 3, 4, 6)), 2).shape == (0, 12, 15)
