"""The CTC loss against the sum over all alignments, its gradients, and its edges."""

import itertools
import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from tests.numerical import check_gradients

T, N, C = 4, 3, 3
X = np.random.default_rng(0).normal(size=(T, N, C))
TARGETS, INPUTS, LETTERS = np.array([[1, 2], [1, 1], [2, 0]]), [4, 4, 3], [2, 2, 1]


def read(path):
    """The letters of a path: repeated ones count once, and blanks do not count."""
    return [letter for letter, _ in itertools.groupby(path) if letter]


def reference(x):
    probabilities = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    losses = []
    for n, (length, letters) in enumerate(zip(INPUTS, LETTERS)):
        wanted = TARGETS[n, :letters].tolist()
        paths = [p for p in itertools.product(range(C), repeat=length) if read(p) == wanted]
        losses.append(-math.log(sum(math.prod(probabilities[t, n, k] for t, k in enumerate(p)) for p in paths)))
    return np.array(losses)


def loss(x, **options):
    return nn.CTCLoss(**options)(mg.log_softmax(x), mg.asarray(TARGETS), INPUTS, LETTERS)


@pytest.mark.parametrize("run", [lambda f: f, mg.jit], ids=["eager", "jit"])
def test_the_loss_is_that_of_all_alignments(run):
    expected = reference(X)
    for reduction, value in (("none", expected), ("sum", expected.sum()), ("mean", (expected / LETTERS).mean())):
        found = run(lambda x, r=reduction: loss(x, reduction=r))(mg.asarray(X))
        np.testing.assert_allclose(found.numpy_copy(), value, rtol=1e-12)


def test_gradients_are_right():
    check_gradients(lambda x: loss(x, reduction="none"), X, order=1)


def test_another_class_can_be_the_blank():
    order = [1, 2, 0]  # class 0 becomes 2
    moved = nn.CTCLoss(blank=2, reduction="none")(
        mg.log_softmax(mg.asarray(X[..., order])), mg.asarray(TARGETS - 1), INPUTS, LETTERS
    )
    np.testing.assert_allclose(moved.numpy_copy(), reference(X), rtol=1e-12)


@pytest.mark.parametrize("zero, expected", [(False, math.inf), (True, 0.0)])
def test_a_target_that_does_not_fit(zero, expected):
    x = mg.asarray(X, requires_grad=True)
    found = nn.CTCLoss(reduction="none", zero_infinity=zero)(
        mg.log_softmax(x), mg.asarray([[1, 1]] * N), [2, 4, 4], [2, 2, 2]
    )
    assert found[0].item() == expected and math.isfinite(found[1].item())
    if zero:
        found.sum().backward()
        assert (x.grad[:, 0] == 0).all() and np.isfinite(x.grad.numpy_copy()).all()


def test_an_empty_target_is_all_blanks():
    found = nn.CTCLoss(reduction="none")(mg.log_softmax(mg.asarray(X)), mg.asarray(TARGETS), INPUTS, [0] * N)
    blank = X[..., 0] - np.log(np.exp(X).sum(-1))
    np.testing.assert_allclose(found.numpy_copy(), [-blank[:n, i].sum() for i, n in enumerate(INPUTS)], rtol=1e-12)


def test_what_does_not_go_together_is_refused():
    with pytest.raises(mg.MinigradError, match=r"CTCLoss: log_probs \(4, 3, 3\), targets \(3, 2\) and lengths \(2,\)"):
        nn.CTCLoss()(mg.asarray(X), mg.asarray(TARGETS), [1, 1], LETTERS)
    with pytest.raises(mg.MinigradError, match="lengths are integers"):
        nn.CTCLoss()(mg.asarray(X), mg.asarray(TARGETS), [1.5] * 3, LETTERS)
    with pytest.raises(mg.MinigradError, match="CTCLoss: reduction is 'mean', 'sum' or 'none'"):
        nn.CTCLoss(reduction="max")
