"""Random numbers: their exact bits, their distributions, and repetition from a seed."""

import copy
import math
import pickle
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices import philox

KEYS = [0, 7, 2**64 + 5, 2**128 - 1]
DTYPES = [mg.float32, mg.float64, mg.int32, mg.int64]


@pytest.fixture
def generator():
    return mg.random.Generator(2026)


def numpy_words(key, block, count):
    """NumPy's 64-bit words for a key, starting at a block."""
    return np.random.Philox(key=key, counter=block).random_raw(count)


def distance_to(cdf, sample):
    """The Kolmogorov-Smirnov statistic times the root of the sample size: above 1.95 once in a thousand samples."""
    sample = np.sort(np.asarray(sample, np.float64).ravel())
    n = sample.size
    expected = cdf(sample)
    above, below = np.arange(1, n + 1) / n - expected, expected - np.arange(n) / n
    return max(above.max(), below.max()) * math.sqrt(n)


def normal_cdf(x):
    return np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x])


# exact bits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("block", [0, 1, 1000, 2**40])
def test_philox_definition_equals_numpys(key, block):
    assert np.array_equal(philox.philox_words(np, key, block, 5).ravel(), numpy_words(key, block, 20))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (8,), (9,), (3, 5), (2, 0), (40_000,)])
def test_kernel_draws_equal_the_definition(dtype, shape):
    drawn = philox.draw(shape, dtype, 11, 3, mg.as_device("cpu"))
    words = numpy_words(11, 3, 4 * philox.blocks_for(shape, dtype))
    count = math.prod(shape)
    expected = {
        mg.float32: lambda: (words.view(np.uint32) >> 8) * 2.0**-24,
        mg.float64: lambda: (words >> 11) * 2.0**-53,
        mg.int32: lambda: words.view(np.int32),
        mg.int64: lambda: words.view(np.int64),
    }[dtype]()[:count].reshape(shape)
    assert drawn.dtype == dtype and np.shape(drawn) == shape
    assert np.array_equal(drawn, expected)
    assert np.array_equal(philox.draw_in_array_operations(np, shape, dtype, 11, 3), expected)


def test_a_draw_takes_the_blocks_it_needs(generator):
    generator.uniform(9)
    assert generator.get_state() == {"key": 2026, "block": 2}
    generator.uniform(9, dtype=mg.float64)
    assert generator.get_state()["block"] == 5
    generator.uniform((0, 4))
    assert generator.get_state()["block"] == 5
    generator.uniform()
    assert generator.get_state()["block"] == 6


def test_draws_in_two_halves_equal_one_draw(generator):
    halves = [generator.uniform(16), generator.uniform(16)]
    assert mg.concat(halves).tolist() == mg.random.Generator(2026).uniform(32).tolist()


DRAWS = [
    lambda g, device: g.uniform((3, 5), low=-2, high=3, device=device),
    lambda g, device: g.uniform(5, dtype=mg.float16, device=device),
    lambda g, device: g.normal((3, 5), device=device),
    lambda g, device: g.normal(7, dtype=mg.float64, device=device),
    lambda g, device: g.integers(-5, 100, (4, 4), device=device),
    lambda g, device: g.bernoulli(0.3, 20, device=device),
    lambda g, device: g.permutation(20, device=device),
    lambda g, device: g.categorical(mg.zeros((3, 4), device=device), shape=5),
    lambda g, device: g.multinomial(mg.ones((3, 4), device=device), 2),
    lambda g, device: g.multinomial(mg.ones((3, 4), device=device), 5, replacement=True),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_random_numbers_are_the_same_on_every_device(draw):
    here, there = (draw(mg.random.Generator(1), device) for device in ("cpu", "cpu:1"))
    assert str(there.device) == "cpu:1"
    assert here.tolist() == there.tolist()


@pytest.mark.parametrize("draw", DRAWS)
def test_random_numbers_by_array_operations_are_the_same(draw, monkeypatch):
    """The path for array libraries with neither NumPy's generator nor CUDA kernels."""
    expected = draw(mg.random.Generator(1), "cpu")

    def slowly(shape, dtype, key, block, device):
        return philox.draw_in_array_operations(np, shape, dtype, key, block)

    monkeypatch.setitem(mg.as_device("cpu").kernels, "random", slowly)
    assert draw(mg.random.Generator(1), "cpu").tolist() == expected.tolist()


def test_the_node_says_how_to_draw_again(generator):
    with mg.record():
        x = generator.uniform(4)
        y = generator.uniform(4)
    attrs = y.node.attrs
    assert (attrs["key"], attrs["block"]) == (2026, 1)
    assert x.tolist() != y.tolist()
    again = philox.draw((4,), mg.float32, attrs["key"], attrs["block"], None)
    assert again.tolist() == y.tolist()
    assert mg.replay(y).tolist() == y.tolist()


# the state ------------------------------------------------------------------------------------------------------------


def test_seed_state_copy_and_pickle_start_again(generator):
    generator.uniform(3)
    state = generator.get_state()
    clones = [copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))]
    expected = generator.uniform(5).tolist()
    for clone in clones:
        assert clone.uniform(5).tolist() == expected
    generator.set_state(state)
    assert generator.uniform(5).tolist() == expected
    assert repr(generator) == "Generator(key=2026, block=2)"


def test_the_shared_generator():
    mg.random.seed(5)
    state = mg.random.get_state()
    first = mg.random.uniform(3).tolist()
    assert first == mg.random.Generator(5).uniform(3).tolist()
    mg.random.set_state(state)
    assert mg.random.uniform(3).tolist() == first


def test_generator_without_a_seed_is_seeded_by_the_system():
    assert mg.random.Generator().get_state()["key"] != mg.random.Generator().get_state()["key"]


def test_threads_never_get_the_same_blocks():
    generator, found = mg.random.Generator(3), []

    def work():
        mine = [generator.take_blocks(3)[1] for _ in range(500)]
        drawn = [generator.uniform(8).tolist() for _ in range(50)]
        found.append((mine, drawn))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    blocks = [block for mine, _ in found for block in mine]
    assert len(set(blocks)) == 2000
    draws = [tuple(d) for _, drawn in found for d in drawn]
    assert len(set(draws)) == 200
    assert generator.get_state()["block"] == 4 * (500 * 3 + 50)


def test_threads_seek_in_their_own_streams():
    expected = mg.random.Generator(9).uniform(4).tolist()
    found = []

    def work():
        found.extend([philox.stream().bits, mg.random.Generator(9).uniform(4).tolist()])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    stream, drawn = found
    assert stream is not philox.stream().bits
    assert drawn == expected


# distributions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [mg.float16, mg.float32, mg.float64])
def test_uniform(generator, dtype):
    x = generator.uniform(20_000, dtype=dtype)
    assert x.dtype == dtype
    values = x.numpy().astype(np.float64)
    assert values.min() >= 0 and values.max() < 1
    tolerance = 1.95 if dtype is not mg.float16 else 2.2  # only 2,048 values in half precision
    assert distance_to(lambda v: v, values) < tolerance
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.03


@pytest.mark.parametrize(("low", "high"), [(-3, 5), (1.0, 1.0 + 2**-20), (1e30, 2e30), (-1, 0)])
def test_uniform_between_bounds(generator, low, high):
    values = generator.uniform(50_000, low=low, high=high).numpy()
    assert (values >= np.float32(low)).all() and (values < np.float32(high)).all()


def test_uniform_with_equal_bounds(generator):
    assert generator.uniform(3, low=2.5, high=2.5).tolist() == [2.5, 2.5, 2.5]


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
def test_normal(generator, dtype):
    x = generator.normal(20_001, dtype=dtype)
    assert x.dtype == dtype and x.shape == (20_001,)
    values = x.numpy().astype(np.float64)
    assert distance_to(normal_cdf, values) < 1.95
    assert abs(values.mean()) < 0.02 and abs(values.std() - 1) < 0.02
    assert abs((values**3).mean()) < 0.06 and abs((values**4).mean() - 3) < 0.15
    half = 10_000
    assert abs(np.corrcoef(values[:half], values[half + 1 : 2 * half + 1])[0, 1]) < 0.03  # both numbers of each pair


def test_normal_against_float64():
    ours = mg.random.Generator(3).normal(1000).numpy()
    u = mg.random.Generator(3).uniform((2, 500)).numpy().astype(np.float64)
    radius, angle = np.sqrt(-2 * np.log(1 - u[0])), 2 * np.pi * u[1]
    np.testing.assert_allclose(ours, np.concatenate([radius * np.cos(angle), radius * np.sin(angle)]), atol=3e-6)


def test_normal_with_mean_and_deviation(generator):
    values = generator.normal((100, 100), mean=5, std=0.5, dtype=mg.float16)
    assert values.dtype == mg.float16 and values.shape == (100, 100)
    assert abs(values.astype(mg.float64).mean().item() - 5) < 0.02
    assert generator.normal(3, mean=2.0, std=0).tolist() == [2, 2, 2]


def test_normal_is_differentiable_by_mean_and_deviation():
    mean, std = mg.asarray(1.0, requires_grad=True), mg.asarray(2.0, requires_grad=True)
    x = mg.random.Generator(4).normal(6, mean=mean, std=std)
    x.sum().backward()
    noise = mg.random.Generator(4).normal(6)
    assert mean.grad.item() == 6
    assert std.grad.item() == pytest.approx(noise.sum().item(), rel=1e-5)


def test_random_leaves_are_made_on_request(generator):
    for x in (generator.uniform(3, requires_grad=True), generator.normal(3, requires_grad=True)):
        assert x.is_leaf and x.requires_grad
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("dtype", [mg.int8, mg.uint8, mg.int32, mg.int64])
def test_integers(generator, dtype):
    x = generator.integers(3, 13, 50_000, dtype=dtype)
    assert x.dtype == dtype
    counts = np.bincount(x.numpy(), minlength=13)
    assert counts[:3].sum() == 0 and len(counts) == 13
    chi_squared = ((counts[3:] - 5000) ** 2 / 5000).sum()
    assert chi_squared < 27.9  # exceeded once in a thousand, with nine degrees of freedom


def test_integers_to_the_edges(generator):
    assert set(generator.integers(-128, 128, 20_000, dtype=mg.int8).tolist()) == set(range(-128, 128))
    assert generator.integers(7, 8, 3).tolist() == [7, 7, 7]
    wide = generator.integers(-(2**61), 2**61, 1000).numpy()
    assert wide.min() < -(2**60) and wide.max() > 2**60


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_bernoulli(generator, p):
    hits = generator.bernoulli(p, 20_000)
    assert hits.dtype == mg.bool
    mean = hits.astype(mg.float64).mean().item()
    assert mean == p if p in (0, 1) else abs(mean - p) < 4 * math.sqrt(p * (1 - p) / 20_000)


@pytest.mark.parametrize("dtype", [mg.float16, mg.float32, mg.float64])
def test_bernoulli_of_a_tensor(generator, dtype):
    p = mg.asarray([0.0, 0.25, 1.0], dtype=dtype)
    hits = generator.bernoulli(p, (10_000, 3))
    np.testing.assert_allclose(hits.astype(mg.float64).mean(axis=0).numpy(), [0, 0.25, 1], atol=0.02)
    assert generator.bernoulli(p).shape == (3,)


def test_permutation(generator):
    x = generator.permutation(1000)
    assert sorted(x.tolist()) == list(range(1000)) and x.tolist() != list(range(1000))
    firsts = np.bincount([generator.permutation(4)[0].item() for _ in range(2000)], minlength=4)
    assert ((firsts - 500) ** 2 / 500).sum() < 16.3  # exceeded once in a thousand, with three degrees of freedom
    assert generator.permutation(0).shape == (0,) and generator.permutation(1).tolist() == [0]


def test_permutation_of_a_tensor(generator):
    x = mg.reshape(mg.arange(12), (3, 4))
    columns = generator.permutation(x, axis=1)
    assert sorted(columns[0].tolist()) == [0, 1, 2, 3]
    assert (columns - columns[:1]).tolist() == [[0] * 4, [4] * 4, [8] * 4]
    w = mg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    (generator.permutation(w) * 2).sum().backward()
    assert w.grad.tolist() == [2, 2, 2]


def test_categorical(generator):
    p = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    with np.errstate(divide="ignore"):
        logits = mg.asarray(np.log(p) + 3, dtype=mg.float32)
    x = generator.categorical(logits, shape=20_000)
    assert x.shape == (20_000, 2) and x.dtype == mg.int64
    for row in range(2):
        np.testing.assert_allclose(np.bincount(x.numpy()[:, row], minlength=3) / 20_000, p[row], atol=0.015)
    assert generator.categorical(logits).shape == (2,)
    assert generator.categorical(logits, axis=0, shape=(4, 5)).shape == (4, 5, 3)


def test_categorical_of_certain_choices_and_tracked_logits(generator):
    certain = mg.asarray([-math.inf, -math.inf, 0.0], requires_grad=True)
    x = generator.categorical(certain, shape=50)
    assert x.tolist() == [2] * 50 and not x.requires_grad


def test_multinomial(generator):
    p = np.array([0.1, 0.2, 0.0, 0.7])
    many = generator.multinomial(mg.asarray(np.stack([p, p[::-1]])), 20_000, replacement=True)
    assert many.shape == (2, 20_000) and many.dtype == mg.int64
    np.testing.assert_allclose(np.bincount(many.numpy()[0], minlength=4) / 20_000, p, atol=0.015)
    np.testing.assert_allclose(np.bincount(many.numpy()[1], minlength=4) / 20_000, p[::-1], atol=0.015)
    pairs = generator.multinomial(mg.asarray(np.tile(p * 3, (20_000, 1))), 2).numpy()
    assert (pairs[:, 0] != pairs[:, 1]).all() and not (pairs == 2).any()
    np.testing.assert_allclose(np.bincount(pairs[:, 0], minlength=4) / 20_000, p, atol=0.015)
    second = sum(p[first] * p[3] / (1 - p[first]) for first in (0, 1))
    np.testing.assert_allclose((pairs[:, 1] == 3).mean(), second, atol=0.015)
    drawn = mg.jit(lambda p: mg.random.multinomial(p, 3))(mg.ones(3))
    assert sorted(drawn.tolist()) == [0, 1, 2]


# errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda g: g.uniform(3, low=2, high=1), "uniform: low is 2.0, and high is 1.0"),
        (lambda g: g.uniform(3, low=0, high=math.inf), "uniform: high is a finite number, not inf"),
        (lambda g: g.uniform(3, low="a"), "uniform: low is a finite number, not 'a'"),
        (lambda g: g.uniform((3, -1)), "a shape has no negative sizes"),
        (lambda g: g.uniform(3, dtype=mg.int64), "uniform makes floats, not int64"),
        (lambda g: g.normal(3, std=-1), "normal: a standard deviation is not negative: -1"),
        (lambda g: g.normal(3, dtype=mg.bool), "normal makes floats, not bool"),
        (lambda g: g.integers(5, 5), "integers: low is 5, and high is 5"),
        (lambda g: g.integers(0, 300, dtype=mg.int8), "integers: high is an integer from -128 to 128, not 300"),
        (lambda g: g.integers(0, 2.5), "integers: high is an integer from .* not 2.5"),
        (lambda g: g.integers(0, 5, dtype=mg.float32), "iinfo is for integers, not float32"),
        (lambda g: g.integers(-(2**63), 2**63), "by less than 2\\*\\*62"),
        (lambda g: g.bernoulli(1.5), "bernoulli: a probability is between 0 and 1: 1.5"),
        (lambda g: g.bernoulli(math.nan), "bernoulli: a probability is between 0 and 1: nan"),
        (lambda g: g.permutation(-1), "permutation: the count is an integer from 0 to .* not -1"),
        (lambda g: g.permutation(mg.ones(())), "axis 0 does not exist"),
        (lambda g: g.categorical(mg.ones((2, 0))), "categorical: there is nothing to choose from"),
        (lambda g: g.categorical(mg.asarray([1, 2])), "categorical: logits are floats, not int64"),
        (lambda g: g.categorical(mg.ones(3), axis=1), "categorical: axis 1 does not exist"),
        (lambda g: g.multinomial(mg.asarray([1, 2]), 1), "multinomial: p is a tensor of floats, not int64"),
        (lambda g: g.multinomial(mg.ones(3), 4), "multinomial: count is an integer from 0 to 3, not 4"),
        (lambda g: g.multinomial(mg.asarray([1.0, 0.0]), 2), "multinomial: 2 positions cannot be drawn"),
        (lambda g: g.multinomial(mg.asarray([1.0, -1.0]), 1), "multinomial: 1 positions cannot be drawn"),
        (lambda g: g.multinomial(mg.zeros(2), 5, replacement=True), "multinomial: 5 positions cannot be drawn"),
        (lambda g: g.bits(3, mg.bool), "bits are int32, int64, float32 or float64, not bool"),
        (lambda g: g.seed(-1), "the seed is an integer from 0 to .* not -1"),
        (lambda g: g.seed(1.5), "the seed is an integer from 0 to .* not 1.5"),
        (lambda g: g.set_state({"key": 1}), "a state is what get_state\\(\\) gives"),
        (lambda g: g.set_state({"key": 1, "block": -4}), "the block is an integer from 0"),
        (lambda g: g.uniform(2, device="tpu"), "there is no device named 'tpu'"),
    ],
)
def test_wrong_arguments_are_refused(generator, fault, message):
    with pytest.raises(mg.MinigradError, match=message):
        fault(generator)
    assert generator.uniform(2).shape == (2,)


@pytest.mark.parametrize("p", [1.5, -0.1, math.nan])
def test_probabilities_beyond_0_and_1_are_refused(p):
    for given in (p, mg.asarray(p), mg.asarray([0.5, p])):
        with pytest.raises(mg.ConversionError, match=r"bernoulli: a probability is between 0 and 1: (1.5|-0.1|nan)"):
            mg.random.bernoulli(given)


def test_a_program_takes_probabilities_beyond_0_and_1_for_the_nearest():
    p = mg.asarray([1.5, -0.5, math.nan])
    assert mg.jit(mg.random.bernoulli)(p).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("logits", "fault"),
    [
        ([0.0, math.nan], "a logit is nan"),
        ([[0.0, 1.0], [0.0, math.nan]], "a logit is nan"),
        ([-math.inf, -math.inf], "all logits are -inf"),
        ([[0.0, 1.0], [-math.inf, -math.inf]], "all logits are -inf"),
    ],
)
def test_categorical_refuses_logits_without_a_choice(logits, fault):
    with pytest.raises(mg.ConversionError, match=f"categorical: {fault}"):
        mg.random.categorical(mg.asarray(logits))


@pytest.mark.parametrize("name", ["normal", "uniform"])
def test_numpys_order_of_arguments_is_refused(name):
    with pytest.raises(TypeError, match=rf"^Generator.{name}\(\) got 2 arguments too many, from 1 on"):
        getattr(mg.random, name)(0, 1, 5)  # NumPy: 5 numbers; otherwise it would be an empty tensor
