"""Distributions: samples, log-probabilities, entropies and divergences, against formulas in NumPy."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.distributions import Bernoulli, Categorical, Normal, Uniform, kl_divergence
from tests.numerical import check_gradients

X = np.array([-1.5, 0.2, 0.7])
LOC, SCALE = np.array([0.5, -1.0, 0.0]), np.array([0.3, 2.0, 1.0])
P, Q = np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.3, 0.1])


def tensor(x):
    return mg.asarray(x, dtype=mg.float64)


def close(found, expected, **options):
    np.testing.assert_allclose(found.numpy_copy(), expected, **{"rtol": 1e-12, "atol": 1e-14} | options)


def test_a_normal_distribution():
    normal = Normal(tensor(LOC), tensor(SCALE))
    density = np.exp(-(((X - LOC) / SCALE) ** 2) / 2) / (SCALE * math.sqrt(2 * math.pi))
    close(normal.log_prob(tensor(X)), np.log(density))
    close(normal.entropy(), 0.5 * np.log(2 * math.pi * math.e * SCALE**2))
    close(normal.cdf(tensor(X)), [0.5 + 0.5 * math.erf(z) for z in (X - LOC) / SCALE / math.sqrt(2)])
    close(normal.icdf(normal.cdf(tensor([0.4, 0.3, 0.2]))), [0.4, 0.3, 0.2], rtol=1e-9)
    close(normal.variance, SCALE**2)


def test_a_uniform_distribution():
    uniform = Uniform(tensor([0.0, -1.0, 0.5]), 1.0)
    close(uniform.log_prob(tensor([0.0, 1.0, 0.75])), [0.0, -math.inf, math.log(2)])
    close(uniform.entropy(), np.log([1.0, 2.0, 0.5]))
    close(uniform.mean, [0.5, 0.0, 0.75])


@pytest.mark.parametrize("by", ["probs", "logits"])
def test_a_bernoulli_distribution(by):
    coin = Bernoulli(**{by: tensor(P if by == "probs" else np.log(P / (1 - P)))})
    close(coin.log_prob(tensor([1.0, 0.0, 1.0])), np.log([0.2, 0.5, 0.3]))
    close(coin.entropy(), -(P * np.log(P) + (1 - P) * np.log(1 - P)))
    close(coin.mean, P)


@pytest.mark.parametrize("by", ["probs", "logits"])
def test_a_categorical_distribution(by):
    given = np.stack([P, Q])
    dice = Categorical(**{by: tensor(3 * given if by == "probs" else np.log(given) + 1)})
    close(dice.log_prob(mg.asarray([1, 2])), np.log([0.5, 0.1]))
    close(dice.log_prob(mg.asarray([[1, 2], [0, 0]])), np.log([[0.5, 0.1], [0.2, 0.6]]))
    close(dice.entropy(), -(given * np.log(given)).sum(-1))
    close(Categorical(tensor(P)).log_prob(mg.asarray([[0, 1], [2, 2]])), np.log([[0.2, 0.5], [0.3, 0.3]]))


def test_divergences():
    p, q = Normal(tensor(LOC), tensor(SCALE)), Normal(0.0, tensor(2.0))
    close(kl_divergence(p, q), np.log(2 / SCALE) + (SCALE**2 + LOC**2) / 8 - 0.5)
    close(kl_divergence(Uniform(tensor(0.0), 1.0), Uniform(tensor(-1.0), 3.0)), math.log(4))
    assert kl_divergence(Uniform(0.0, 1.0), Uniform(0.5, 3.0)).item() == math.inf
    close(kl_divergence(Categorical(tensor(P)), Categorical(tensor(Q))), (P * np.log(P / Q)).sum())
    close(kl_divergence(Bernoulli(tensor(P)), Bernoulli(tensor(Q))),
          P * np.log(P / Q) + (1 - P) * np.log((1 - P) / (1 - Q)))


def test_shares_of_zero_and_one_are_no_nan():
    coin, dice = Bernoulli(mg.asarray([0.0, 1.0], requires_grad=True)), Categorical(mg.asarray([1.0, 0.0]))
    assert coin.entropy().tolist() == [0.0, 0.0] and dice.entropy().item() == 0.0
    assert coin.log_prob(mg.asarray([0.0, 1.0])).tolist() == [0.0, 0.0]
    assert coin.log_prob(mg.asarray([1.0, 1.0])).tolist() == [-math.inf, 0.0]
    coin.entropy().sum().backward()
    assert np.isfinite(coin.probs.grad.numpy_copy()).all()
    assert kl_divergence(dice, dice).item() == 0.0
    assert kl_divergence(Categorical(mg.asarray([0.5, 0.5])), dice).item() == math.inf


@pytest.mark.parametrize(
    "function, arrays",
    [
        (lambda x, a, b: Normal(a, b).log_prob(x), (X, LOC, SCALE)),
        (lambda a, b: kl_divergence(Normal(a, b), Normal(1.0, 2.0)), (LOC, SCALE)),
        (lambda a, b: Uniform(a, b).entropy(), (LOC, LOC + SCALE)),
        (lambda x: Bernoulli(logits=x).entropy(), (X,)),
        (lambda p: Bernoulli(p).log_prob(mg.asarray([1.0, 0.0, 1.0])), (P,)),
        (lambda x: Categorical(logits=x).entropy(), (X,)),
        (lambda p: Categorical(p).log_prob(mg.asarray([0, 2])), (P,)),
        (lambda x: kl_divergence(Categorical(logits=x), Categorical(mg.asarray(Q))), (X,)),
    ],
)
def test_gradients_are_right(function, arrays):
    check_gradients(function, *arrays)


def test_samples_have_the_moments_and_those_that_are_shifted_noise_a_gradient():
    mg.random.seed(0)
    for each, spread in ((Normal(1.0, 2.0), 2.0), (Uniform(0.0, 4.0), 2 / math.sqrt(3)), (Bernoulli(0.25), 0.43)):
        drawn = each.sample(20_000)
        assert drawn.shape == (20_000,) and not drawn.tracked
        assert abs(drawn.mean().item() - each.mean.item()) < 0.05 and abs(drawn.std().item() - spread) < 0.05
    counts = np.bincount(Categorical(mg.asarray(P)).sample(20_000).numpy_copy(), minlength=3) / 20_000
    np.testing.assert_allclose(counts, P, atol=0.02)
    scale = mg.asarray(2.0, requires_grad=True)
    drawn = Normal(mg.asarray([1.0, 5.0]), scale).rsample(3)
    drawn.sum().backward()
    assert drawn.shape == (3, 2)
    noise = (drawn.detach() - mg.asarray([1.0, 5.0])) / 2
    np.testing.assert_allclose(scale.grad.item(), noise.sum().item(), rtol=1e-5)
    assert Categorical(mg.ones((4, 2))).sample((3,)).shape == (3, 4)


def test_a_compiled_step_draws_anew_in_each_call():
    f = mg.jit(lambda loc: Normal(loc, 1.0).rsample())
    assert f(mg.zeros(3)).tolist() != f(mg.zeros(3)).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Bernoulli(), "Bernoulli: it takes probs or logits, and not both"),
        (lambda: Categorical(mg.ones(2), mg.ones(2)), "Categorical: it takes probs or logits, and not both"),
        (lambda: Categorical(mg.asarray(1.0)), r"Categorical: there is nothing to choose from, shape \(\)"),
        (lambda: Normal("a", 1.0), "Normal: loc is a tensor or a number, not 'a'"),
        (lambda: Categorical(mg.ones(2)).rsample(), "Categorical: a sample is one of several values"),
        (lambda: Categorical(mg.ones(2)).log_prob(mg.asarray([0.5])), "Categorical.log_prob: value"),
        (lambda: kl_divergence(Normal(0.0, 1.0), Uniform(0.0, 1.0)),
         r"for a Normal and a Uniform\n  Expected: two of Normal, Uniform, Bernoulli, Categorical\n  Hint: the mean"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(mg.MinigradError, match=message):
        call()
