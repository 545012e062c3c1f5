"""The classes of a loss are the last dimension: a warning where the shapes do not show it."""

import warnings

import pytest

import minigrad as mg
from minigrad.support import errors
from minigrad.support.errors import ClassesWarning


@pytest.fixture(autouse=True)
def _no_line_was_warned_about(monkeypatch):
    monkeypatch.setattr(errors, "_WARNED", set())


@pytest.mark.parametrize("shape", [(2, 3, 3), (2, 3, 3, 3)])
@pytest.mark.parametrize(
    ("loss", "what"), [(mg.cross_entropy, "logits"), (mg.nn.CrossEntropyLoss(ignore_index=5), "logits"),
                       (mg.nll_loss, "log_probabilities")],
    ids=["function", "layer", "of logarithms"],
)
def test_shapes_that_fit_two_places_of_the_classes_are_warned_about(shape, loss, what):
    message = rf"last dimension of {what}, whose shape \(2, 3, 3.*\n  Hint: mg.moveaxis\({what}, 1, -1\)"
    with pytest.warns(ClassesWarning, match=message) as caught:
        for _ in range(3):
            loss(mg.zeros(shape), mg.zeros(shape[:-1], dtype=mg.int64))
    assert len(caught) == 1 and caught[0].filename == __file__


@pytest.mark.parametrize(
    ("logits", "targets"), [((2, 3, 4), (2, 3)), ((3, 3), (3,)), ((3,), ()), ((4, 3, 3, 5), (4, 3, 3))]
)
def test_other_shapes_are_not_warned_about(logits, targets):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mg.cross_entropy(mg.zeros(logits), mg.zeros(targets, dtype=mg.int64))


def test_the_hint_of_the_warning_is_unambiguous_and_gives_the_same_loss():
    logits, targets = mg.random.normal((2, 3, 3)), mg.asarray([[0, 1, 2], [2, 0, 1]])
    with pytest.warns(ClassesWarning):
        loss = mg.cross_entropy(logits, targets)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = mg.cross_entropy(logits.reshape((-1, 3)), targets.reshape((-1,)))
    assert loss.item() == pytest.approx(again.item())


def test_a_compiled_step_is_warned_about_too():
    step = mg.jit(lambda logits, targets: mg.cross_entropy(logits, targets))
    with pytest.warns(ClassesWarning):
        step(mg.zeros((2, 3, 3)), mg.zeros((2, 3), dtype=mg.int64))
