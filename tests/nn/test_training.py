"""Layers that behave differently in training: running statistics, dropout; and losses as layers."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn

x = np.random.default_rng(0).normal(size=(6, 2, 3))


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("compiled", [False, True])
def test_running_statistics_follow_the_batches_in_place(momentum, compiled, numpy_kernels):
    norm = nn.BatchNorm1d(2, momentum=momentum, dtype=mg.float64)
    held = norm.running_mean
    run = mg.jit(lambda x: norm(x)) if compiled else norm
    mean, variance = np.zeros(2), np.ones(2)
    for step in (1, 2, 3):
        batch = x * step
        run(mg.asarray(batch))
        share = 1 / step if momentum is None else momentum
        mean += share * (batch.mean((0, 2)) - mean)
        variance += share * (batch.var((0, 2), ddof=1) - variance)
    assert norm.running_mean is held and norm.num_batches_tracked.item() == 3
    np.testing.assert_allclose(norm.running_mean.numpy_copy(), mean, rtol=1e-12)
    np.testing.assert_allclose(norm.running_var.numpy_copy(), variance, rtol=1e-12)
    norm.eval()
    expected = (x - mean[:, None]) / np.sqrt(variance + 1e-5)[:, None]
    np.testing.assert_allclose(norm(mg.asarray(x)).numpy_copy(), expected, rtol=1e-12)
    assert norm.num_batches_tracked.item() == 3


def test_batch_norm_without_running_statistics_uses_the_batch_in_eval_mode():
    norm = nn.BatchNorm1d(2, affine=False, track_running_stats=False).eval()
    assert norm.state_dict() == {} and abs(norm(mg.asarray(x)).numpy_copy().mean()) < 1e-6


@pytest.mark.parametrize("layer", [nn.TransformerEncoderLayer, nn.TransformerDecoderLayer])
def test_transformer_has_a_dropout_of_a_tenth_by_default(layer):
    parts = [part for _, part in layer(4, 2, 8).named_modules()]
    assert {part.p for part in parts if isinstance(part, nn.Dropout)} <= {0.1}
    assert {part.dropout for part in parts if isinstance(part, nn.MultiheadAttention)} == {0.1}


def test_dropout_of_a_recurrent_layer_is_between_its_layers():
    layer, x = nn.GRU(4, 4, num_layers=1, dropout=0.9), mg.random.normal((5, 2, 4))
    assert layer.train()(x)[0].tolist() == layer.eval()(x)[0].tolist()


def test_dropout_between_layers_and_of_weights_happens_in_training_only():
    mg.random.seed(0)
    given = mg.ones((4, 2, 4))
    for layer in (
        nn.GRU(4, 4, num_layers=2, dropout=0.5), nn.MultiheadAttention(4, 2, dropout=0.5), nn.GAT(4, 2, dropout=0.5),
        nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5),
    ):

        def run(layer=layer):
            out = layer(given[0], np.array([[0, 1], [1, 0]])) if isinstance(layer, nn.GAT) else layer(given)
            return (out[0] if isinstance(out, tuple) else out).tolist()

        assert run() != run()
        layer.eval()
        assert run() == run()


def test_losses_are_the_functions_with_their_options():
    logits, targets, weight = mg.asarray(x[0].T), mg.asarray([1, 0, 1]), mg.asarray([0.3, 0.7])
    p, t = mg.asarray(x[0]), mg.asarray(x[1])
    for loss, expected, given in (
        (
            nn.CrossEntropyLoss(weight, 0, "sum", 0.1),
            mg.cross_entropy(logits, targets, "sum", weight, 0, 0.1),
            (logits, targets),
        ),
        (nn.NLLLoss(weight), mg.nll_loss(logits, targets, weight=weight), (logits, targets)),
        (nn.BCEWithLogitsLoss(reduction="none"), mg.binary_cross_entropy_with_logits(p, t, "none"), (p, t)),
        (nn.KLDivLoss("batchmean", True), mg.kl_div(p, t, "batchmean", True), (p, t)),
        (nn.MSELoss("sum"), mg.mse_loss(p, t, "sum"), (p, t)),
        (nn.L1Loss(), mg.l1_loss(p, t), (p, t)),
        (nn.SmoothL1Loss(beta=0.5), mg.smooth_l1_loss(p, t, beta=0.5), (p, t)),
        (nn.HuberLoss(delta=0.5), mg.huber_loss(p, t, delta=0.5), (p, t)),
        (nn.CosineSimilarity(axis=0), mg.cosine_similarity(p, t, 0), (p, t)),
    ):
        assert loss(*given).tolist() == expected.tolist(), loss
    assert list(nn.CrossEntropyLoss(weight).state_dict()) == ["weight"]
    assert repr(nn.MSELoss("sum")) == "MSELoss(sum)"


def test_activations_are_the_functions():
    given = mg.asarray([-1.5, 0.5])
    for layer, expected in (
        (nn.LeakyReLU(0.2), mg.leaky_relu(given, 0.2)), (nn.ELU(2.0), mg.elu(given, 2.0)),
        (nn.Sigmoid(), mg.sigmoid(given)),
        (nn.SiLU(), mg.silu(given)), (nn.Softplus(), mg.softplus(given)), (nn.Softmax(), mg.softmax(given)),
        (nn.LogSoftmax(0), mg.log_softmax(given, 0)), (nn.Identity(), given),
    ):
        assert layer(given).tolist() == expected.tolist(), layer


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: nn.Conv2d(3, 4, 3)(mg.ones((1, 2, 8, 8))),
            r"in Conv2d: an input of shape \(1, 2, 8, 8\) does not fit",
        ),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "Conv2d: 3 inputs and 4 outputs can't be divided into 2 groups"),
        (lambda: nn.Conv2d(3, 4, (3, 3, 3)), r"Conv2d: size is \(3, 3, 3\)"),
        (
            lambda: nn.Conv2d(1, 1, 3, stride=2, padding="same")(mg.ones((1, 1, 8, 8))),
            r'padding="same" keeps the size, and a stride',
        ),
        (
            lambda: nn.Conv1d(1, 1, 3, padding="full")(mg.ones((1, 8))),
            "padding is numbers, 'same' or 'valid', not 'full'",
        ),
        (
            lambda: nn.Conv1d(1, 1, 3, dilation=4)(mg.ones((1, 8))),
            "a window of 3, spread over 9, is longer than the dimension of 8",
        ),
        (lambda: nn.ConvTranspose2d(1, 1, 3, padding="same"), "ConvTranspose2d: padding is numbers, not 'same'"),
        (
            lambda: nn.MaxPool2d(2, padding=2)(mg.ones((1, 8, 8))),
            r"a padding of \(2, 2\) is more than half of the window \(2, 2\)",
        ),
        (lambda: nn.MaxPool2d(9)(mg.ones((1, 8, 8))), "a window of 9 is longer than the dimension of 8"),
        (
            lambda: nn.AvgPool2d(2)(mg.ones((8, 8))),
            r"in AvgPool2d: avg_pool2d: an input of shape \(8, 8\) has 2 dimensions",
        ),
        (lambda: nn.BatchNorm2d(3)(mg.ones((2, 3))), r"in BatchNorm2d: an input of shape \(2, 3\) does not fit"),
        (lambda: nn.BatchNorm1d(3)(mg.ones((1, 3))), "has only one value for each channel, and no variance"),
        (lambda: nn.GroupNorm(2, 3), "GroupNorm: 3 channels can't be divided into 2 groups"),
        (lambda: nn.GroupNorm(2, 4)(mg.ones((2, 3))), r"in GroupNorm: an input of shape \(2, 3\) does not fit"),
        (lambda: nn.RMSNorm(4)(mg.ones((2, 3))), r"in RMSNorm: an input of shape \(2, 3\) does not fit"),
        (lambda: nn.LSTM(2, 3, dropout=2), "LSTM: dropout is a probability, between 0 and 1, not 2"),
        (lambda: nn.RNN(2, 3, nonlinearity="sin"), "RNN: nonlinearity is 'tanh' or 'relu', not 'sin'"),
        (lambda: nn.GRU(2, 3)(mg.ones((4, 1, 5))), r"in GRU: an input of shape \(4, 1, 5\) does not fit GRU\(2 → 3\)"),
        (lambda: nn.GRU(2, 3)(mg.ones((4, 1, 2)), mg.ones((1, 3))), r"in GRU: a state of shape \(1, 3\) does not fit"),
        (
            lambda: nn.LSTM(2, 3)(mg.ones((4, 1, 2)), mg.ones((1, 1, 3))),
            r"in LSTM: a state of shape \(1, 1, 3\) does not fit",
        ),
        (lambda: nn.MultiheadAttention(4, 3), "a size of 4 can't be divided into 3 heads"),
        (lambda: nn.MultiheadAttention(6, 2, rotary=True), "can't be divided into 2 heads of even size"),
        (
            lambda: nn.MultiheadAttention(4, 2)(mg.ones((2, 4))),
            r"in MultiheadAttention: an input of shape \(2, 4\) does not fit",
        ),
        (
            lambda: nn.LearnedPositions(3, 2)(mg.ones((4, 2))),
            r"an input of shape \(4, 2\) does not fit LearnedPositions\(3 × 2\)",
        ),
        (
            lambda: nn.TransformerEncoderLayer(4, 2, activation="sin"),
            "activation is 'relu', 'gelu' or a function, not 'sin'",
        ),
        (
            lambda: nn.GraphConv(2, 3)(mg.ones((4, 3)), [[0], [1]]),
            r"in GraphConv: an input of shape \(4, 3\) does not fit",
        ),
        (lambda: nn.GraphConv(2, 3)(mg.ones((4, 2)), [[0, 1, 2]]), r"edges of shape \(1, 3\) are not pairs of nodes"),
        (
            lambda: nn.GraphConv(2, 3)(mg.ones((4, 2)), [[0], [4]]),
            "an edge to node 4 is out of range, with 4 nodes",
        ),
        (lambda: nn.GraphConv(2, 3)(mg.ones((4, 2)), [[0], [1]], mg.ones(2)), r"weights of shape \(2,\) for 1 edges"),
        (lambda: nn.GAT(2, 3)(mg.ones((4, 2)), [[-1], [1]]), "an edge from node -1 is out of range"),
    ],
)
def test_wrong_arguments_are_refused_with_a_clear_message(call, message):
    with pytest.raises(mg.MinigradError, match=message):
        call()
