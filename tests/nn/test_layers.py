"""The layers: results, initial values and errors."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from tests.numerical import check_gradients


def test_linear_starts_uniform_within_one_over_the_root_of_its_inputs():
    mg.random.seed(0)
    layer = nn.Linear(100, 200)
    for parameter in layer.parameters():
        values = parameter.numpy_copy()
        assert 0.095 < np.abs(values).max() <= 0.1 and abs(values.mean()) < 0.02
    assert layer.weight.shape == (200, 100) and layer.bias.shape == (200,)


def test_a_seed_fixes_how_layers_start():
    def build():
        mg.random.seed(7)
        return nn.Sequential(nn.Linear(2, 3), nn.Embedding(4, 5)).state_dict()

    assert {n: t.tolist() for n, t in build().items()} == {n: t.tolist() for n, t in build().items()}


@pytest.mark.parametrize("dtype", [mg.float32, mg.float64])
def test_layers_are_made_on_a_device_in_a_dtype(dtype):
    for layer in (
        nn.Linear(2, 3, dtype=dtype, device="cpu:1"), nn.Embedding(2, 3, dtype=dtype, device="cpu:1"),
        nn.LayerNorm(3, dtype=dtype, device="cpu:1"),
    ):
        assert {(str(p.device), p.dtype) for p in layer.parameters()} == {("cpu:1", dtype)}


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4), (2, 0, 4)])
def test_linear_is_a_matrix_product(shape):
    layer = nn.Linear(4, 2, dtype=mg.float64)
    x = np.random.default_rng(0).normal(size=shape)
    weight, bias = layer.weight.numpy_copy(), layer.bias.numpy_copy()
    out = layer(mg.asarray(x, requires_grad=True))
    np.testing.assert_allclose(out.numpy_copy(), x @ weight.T + bias, rtol=1e-12)
    out.sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy_copy(), np.tile(x.reshape(-1, 4).sum(0), (2, 1)), rtol=1e-12)


@pytest.mark.slow
def test_gradients_reach_the_parameters_to_second_order():
    model = nn.Sequential(nn.Linear(3, 4, dtype=mg.float64), nn.LayerNorm(4, dtype=mg.float64), nn.GELU(),
                          nn.Linear(4, 2, bias=False, dtype=mg.float64))
    names = [name for name, _ in model.named_parameters()]
    x = np.random.default_rng(0).normal(size=(2, 3))

    def call(x, *parameters):
        return nn.functional_call(model, dict(zip(names, parameters)), x)

    check_gradients(call, x, *[p.numpy_copy() for p in model.parameters()])


def test_embedding_adds_up_the_gradients_of_a_row_used_twice():
    table = nn.Embedding(3, 2)
    table(mg.asarray([[0, 2], [2, 2]])).sum().backward()
    assert table.weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [3.0, 3.0]]


def test_dropout_follows_train_and_eval():
    mg.random.seed(0)
    layer, x = nn.Dropout(0.5), mg.ones(100)
    assert set(layer(x).tolist()) == {0.0, 2.0}
    assert layer.eval()(x).tolist() == [1.0] * 100


def test_activations_are_the_functions():
    x = mg.asarray([-1.0, 0.5])
    for layer, function in (
        (nn.ReLU(), mg.relu), (nn.Tanh(), mg.tanh), (nn.GELU(), mg.gelu),
        (nn.GELU("tanh"), lambda x: mg.gelu(x, approximate="tanh")),
    ):
        assert layer(x).tolist() == function(x).tolist()


@pytest.mark.parametrize(("layer", "cell"), [(nn.RNN, nn.RNNCell), (nn.GRU, nn.GRUCell), (nn.LSTM, nn.LSTMCell)])
def test_a_cell_in_a_loop_is_a_layer(layer, cell):
    whole, one = layer(2, 3, dtype=mg.float64), cell(2, 3, dtype=mg.float64)
    one.load_state_dict({name.removesuffix("_l0"): value for name, value in whole.state_dict().items()})
    x, state, outputs = mg.random.normal((4, 5, 2), dtype=mg.float64), None, []
    for row in x:
        state = one(row, state)
        outputs.append(state[0] if cell is nn.LSTMCell else state)
    np.testing.assert_allclose(mg.stack(outputs).numpy_copy(), whole(x)[0].numpy_copy(), rtol=1e-12)


def test_dropout2d_follows_train_and_eval():
    layer, x = nn.Dropout2d(1.0), mg.ones((1, 2, 3, 3))
    assert not layer(x).numpy_copy().any() and layer.eval()(x) is x


def test_layer_norm_without_parameters():
    assert nn.LayerNorm(2, affine=False).parameters() == []
    assert [n for n, _ in nn.LayerNorm(2, bias=False).named_parameters()] == ["weight"]


def test_sequential_takes_functions_and_counts_like_a_list():
    model = nn.Sequential(nn.Linear(2, 2), mg.tanh, nn.Linear(2, 1))
    assert len(model) == 3 and model[-1] is model[2] and list(model)[1] is mg.tanh
    assert model(mg.ones((3, 2))).shape == (3, 1)
    assert [name for name, _ in model.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    with pytest.raises(IndexError):
        model[3]


def test_a_graph_convolution_without_loops_reads_only_the_neighbours():
    layer, x = nn.GraphConv(2, 3, loops=False), mg.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    out = layer(x, mg.asarray([[0, 1], [1, 0]]))  # two connected nodes and an isolated one
    through = (x @ layer.lin.weight.T).numpy_copy()
    expected = [through[1], through[0], np.zeros(3)] + layer.bias.numpy_copy()
    np.testing.assert_allclose(out.numpy_copy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda size: nn.Linear(size, 2), lambda size: nn.Embedding(3, size), nn.LayerNorm, nn.RMSNorm,
        lambda size: nn.GroupNorm(1, size), nn.BatchNorm1d, nn.BatchNorm2d, lambda size: nn.LSTM(size, 2),
        lambda size: nn.LSTM(2, size),
        nn.InstanceNorm1d, lambda size: nn.GRUCell(size, 2),
        lambda size: nn.Conv2d(1, size, 3), lambda size: nn.MultiheadAttention(size, 1),
        lambda size: nn.LearnedPositions(4, size), lambda size: nn.GraphConv(size, 2), lambda size: nn.GAT(size, 2),
    ],
)
@pytest.mark.parametrize("size", [-1, 2.5, "a"])
def test_sizes_of_layers_are_positive_integers(make, size):
    with pytest.raises(mg.ConversionError, match=f" is an integer, . or more, not {size!r}"):
        make(size)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.Linear(2, -1), "Linear: outputs is an integer, 0 or more, not -1"),
        (lambda: nn.Linear(2.5, 1), "Linear: inputs is an integer, 0 or more, not 2.5"),
        (lambda: nn.Linear(2, 3)(mg.ones((4, 5))),
         r"Linear: an input of shape \(4, 5\) does not fit Linear\(2 → 3\)\n  Expected: \(..., 2\)"),
        (lambda: nn.Sequential(nn.ReLU(), nn.Linear(2, 3))(mg.ones(5)), r"1: an input of shape \(5,\) does not fit"),
        (lambda: nn.LayerNorm(3)(mg.ones(2)), r"LayerNorm: an input of shape \(2,\) does not fit LayerNorm\(3\)"),
        (lambda: nn.LearnedPositions(4, 2)(mg.ones((5, 2))),
         r"an input of shape \(5, 2\) does not fit LearnedPositions\(4 × 2\)\n  Expected: \(..., 4 or less, 2\)"),
        (lambda: nn.LearnedPositions(4, 2)(mg.ones((4, 1))), "does not fit LearnedPositions"),
        (lambda: nn.Dropout(2), "Dropout: a probability is between 0 and 1, not 2"),
        (lambda: nn.Dropout2d(2), "Dropout2d: a probability is between 0 and 1, not 2"),
        (lambda: nn.Upsample(), "Upsample: it takes a size or a scale_factor, and not both"),
        (lambda: nn.PixelShuffle(0), "PixelShuffle: factor is an integer, 1 or more, not 0"),
        (lambda: nn.InstanceNorm2d(3)(mg.ones((2, 3, 4))),
         r"does not fit InstanceNorm2d\(3\)\n  Expected: \(examples, 3, height, width\)"),
        (lambda: nn.LSTMCell(3, 4)(mg.ones((2, 4))), r"fit LSTMCell\(3 → 4\)\n  Expected: \(examples, 3\)"),
        (lambda: nn.LSTMCell(3, 4)(mg.ones((2, 3)), mg.ones((2, 4))),
         r"a state of shape \(2, 4\) does not fit LSTMCell\(3 → 4\)\n  Expected: \(2, 4\), \(2, 4\)"),
        (lambda: nn.RNN(3, 4)(mg.ones((2, 5, 3)), mg.ones((2, 4))), r"fit RNN\(3 → 4\)\n  Expected: \(1, 5, 4\)"),
        (lambda: nn.RNNCell(3, 4, nonlinearity="gelu"), "RNNCell: nonlinearity is 'tanh' or 'relu', not 'gelu'"),
        (lambda: nn.Embedding(3, 2)(mg.asarray([5])), "embedding: index 5 is out of range"),
        (lambda: nn.Sequential([nn.ReLU()]), "layer 0 is a list, which cannot be called"),
    ],
)
def test_wrong_arguments_are_refused_with_a_clear_message(call, message):
    with pytest.raises(mg.MinigradError, match=message):
        call()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_a_bag_is_what_is_made_of_its_rows(mode):
    table = nn.EmbeddingBag(6, 2, mode)
    rows = table.weight.numpy_copy()
    of = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    np.testing.assert_allclose(table(mg.asarray([[1, 2], [5, 5]])).numpy_copy(),
                               [of(rows[[1, 2]], axis=0), of(rows[[5, 5]], axis=0)], rtol=1e-6)
    np.testing.assert_allclose(table(mg.asarray([0, 3, 3, 4]), mg.asarray([0, 1])).numpy_copy(),
                               [rows[0], of(rows[[3, 3, 4]], axis=0)], rtol=1e-6)
    table(mg.asarray([[1, 1]])).sum().backward()
    assert table.weight.grad[1].tolist() == [{"sum": 2.0, "mean": 1.0, "max": 1.0}[mode]] * 2


def test_an_empty_bag_between_others_is_zero():
    table = nn.EmbeddingBag(6, 2, "sum")
    assert table(mg.asarray([1, 2]), mg.asarray([0, 1, 1]))[1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.EmbeddingBag(4, 2, "median"), "EmbeddingBag: mode is 'median'\n  Expected: 'sum', 'mean', 'max'"),
        (lambda: nn.EmbeddingBag(4, 2)(mg.asarray([1])), r"indices of shape \(1,\)\n  Expected: \(bags, items\), or"),
        (lambda: nn.PReLU(3)(mg.ones((2, 4))), r"\(2, 4\) does not fit PReLU\(3\)\n  Expected: \(examples, 3, ...\)"),
        (lambda: nn.ZeroPad2d(1)(mg.ones(3)), r"\(3,\) does not fit ZeroPad2d\(1\)\n  Expected: 2 dimensions or more"),
        (lambda: nn.ZeroPad2d((1, 2, 3)), "ZeroPad2d"),
        (lambda: nn.ConvTranspose1d(1, 1, 3, padding="same"), "ConvTranspose1d: padding is numbers, not 'same'"),
    ],
)
def test_layers_refuse_what_does_not_fit(call, message):
    with pytest.raises(mg.MinigradError, match=message):
        call()


PADDING = mg.asarray([[False, False, True], [False, True, True]])


def test_masks_of_padding_are_those_that_a_full_mask_says():
    """Floats are added to the scores as before, and the layers of transformers pass masks of padding on."""
    attention, x = nn.MultiheadAttention(4, 2, batch_first=True), mg.random.normal((2, 3, 4))
    scores = mg.random.normal((3, 3))
    there = mg.logical_not(PADDING)[:, None, None, :]
    expected = attention(x, mask=mg.where(there, scores, -np.inf))
    np.testing.assert_array_equal(attention(x, mask=scores, key_padding_mask=PADDING).tolist(), expected.tolist())
    options = {"batch_first": True, "dropout": 0.0}
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, **options), 2)
    np.testing.assert_array_equal(encoder(x, key_padding_mask=PADDING).tolist(), encoder(x, mask=there).tolist())
    model, y = nn.Transformer(4, 2, 1, 1, 8, **options), mg.random.normal((2, 5, 4))
    padded = model(x, y, source_key_padding_mask=PADDING, memory_key_padding_mask=PADDING)
    np.testing.assert_array_equal(padded.tolist(), model(x, y, source_mask=there, memory_mask=there).tolist())
    own = model(x, x, target_key_padding_mask=PADDING)
    np.testing.assert_array_equal(own.tolist(), model(x, x, target_mask=there).tolist())


def test_what_is_padding_has_no_influence():
    x = mg.random.normal((2, 3, 4))
    attention, changed = nn.MultiheadAttention(4, 2, batch_first=True), mg.where(PADDING[..., None], 9.0, x)
    for f in (attention, mg.jit(lambda *args, **kwargs: attention(*args, **kwargs))):
        first, second = [f(x, keys, key_padding_mask=PADDING) for keys in (x, changed)]
        np.testing.assert_array_equal(first.detach().numpy(), second.detach().numpy())


@pytest.mark.parametrize("mask", [mg.zeros((2, 3)), mg.zeros((3, 2), dtype=mg.bool), np.zeros((2, 1, 1, 3), bool)])
def test_masks_of_padding_are_bools_of_examples_and_keys(mask):
    expected = r"key_padding_mask of \w+ and shape .* does not fit\n  Expected: bools of shape \(2, 3\)"
    with pytest.raises(mg.ShapeError, match=expected):
        nn.MultiheadAttention(4, 2, batch_first=True)(mg.ones((2, 3, 4)), key_padding_mask=mask)
