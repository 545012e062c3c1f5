"""Initial values of parameters: the spread of random numbers, seeds, and errors."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.nn import init


def drawn(function, *shape, **options):
    return function(mg.zeros(shape, dtype=mg.float64), generator=0, **options).numpy_copy()


@pytest.mark.parametrize(
    ("function", "options", "std"),
    [
        (init.uniform_, {"low": -3.0, "high": 3.0}, math.sqrt(3)),
        (init.normal_, {"std": 2.0}, 2.0),
        (init.trunc_normal_, {}, 0.8796),
        (init.xavier_uniform_, {}, math.sqrt(2 / 500)),
        (init.xavier_normal_, {"gain": 3.0}, 3 * math.sqrt(2 / 500)),
        (init.kaiming_uniform_, {"nonlinearity": "relu"}, math.sqrt(2 / 200)),
        (init.kaiming_normal_, {"mode": "fan_out", "a": 1.0}, math.sqrt(1 / 300)),
        (init.orthogonal_, {}, math.sqrt(1 / 300)),
    ],
)
def test_spread_follows_the_formula_and_a_seed_fixes_the_numbers(function, options, std):
    values = drawn(function, 300, 200, **options)
    assert abs(values.mean()) < 4 * std / math.sqrt(values.size) + 1e-12
    np.testing.assert_allclose(values.std(), std, rtol=0.02)
    np.testing.assert_array_equal(values, drawn(function, 300, 200, **options))
    mine = mg.random.Generator(0)
    tensor = mg.zeros((300, 200), dtype=mg.float64)
    np.testing.assert_array_equal(values, function(tensor, generator=mine, **options).numpy_copy())
    assert not np.array_equal(values, function(tensor, generator=mine, **options).numpy_copy())


def test_fans_count_the_kernel():
    values = drawn(init.kaiming_uniform_, 50, 20, 3, 3, nonlinearity="linear")
    assert 0.95 < np.abs(values).max() / math.sqrt(3 / 180) <= 1


def test_truncated_numbers_are_inside():
    values = drawn(init.trunc_normal_, 5000, mean=1.0, std=2.0, low=0.5, high=2.0)
    assert values.min() >= 0.5 and values.max() <= 2.0


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (200, 200), (3, 2, 5)])
def test_orthogonal_matrices_are_orthogonal(shape):
    matrix = drawn(init.orthogonal_, *shape, gain=2.0).reshape(shape[0], -1)
    product = matrix @ matrix.T if len(matrix) <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-9)


def test_constants_and_the_identity_are_written_in_place_and_stay_parameters():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    assert init.eye_(weight) is weight is layer.weight and weight.requires_grad and weight.is_leaf
    assert init.ones_(layer.bias).tolist() == [1.0, 1.0]
    assert layer(mg.asarray([3.0, 4.0])).tolist() == [4.0, 5.0]


@pytest.mark.parametrize(
    ("make", "fan"),
    [
        (lambda: nn.Conv2d(4, 6, 3, groups=2), 18),
        (lambda: nn.ConvTranspose2d(4, 6, 3, groups=2), 27),
        (lambda: nn.Conv1d(5, 6, 2), 10),
        (lambda: nn.LSTM(3, 25, bidirectional=True), 25),
        (lambda: nn.Linear(9, 50), 9),
    ],
)
def test_layers_start_uniform_within_one_over_the_root_of_their_fan(make, fan):
    mg.random.seed(0)
    for name, parameter in make().named_parameters():
        largest = np.abs(parameter.numpy_copy()).max() * math.sqrt(fan)
        assert 0.5 < largest <= 1 + 1e-6, name


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: init.xavier_uniform_(mg.zeros(3)), "xavier_uniform_: a weight has two dimensions or more"),
        (lambda: init.kaiming_normal_(mg.zeros((2, 2)), mode="in"), "mode is 'fan_in' or 'fan_out', not 'in'"),
        (lambda: init.calculate_gain("sine"), "calculate_gain:  'sine'"),
        (lambda: init.orthogonal_(mg.zeros(3)), r"orthogonal_: .* this tensor has shape \(3,\)"),
        (lambda: init.eye_(mg.zeros(3)), r"eye_: .* this tensor has shape \(3,\)"),
        (lambda: init.trunc_normal_(mg.zeros(3), low=9.0, high=10.0), "hardly any number around 0.0"),
    ],
)
def test_wrong_arguments_are_refused_with_a_clear_message(call, message):
    with pytest.raises(mg.MinigradError, match=message):
        call()
