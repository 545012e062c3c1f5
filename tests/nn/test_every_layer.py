"""Every layer against plain NumPy: values, gradients to second order, jit, vmap, and PyTorch's names."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from tests import layers_reference as plain
from tests.numerical import check_gradients

rng = np.random.default_rng(3)
LENGTH, EDGES = 4, np.array([[0, 1, 1, 2, 3, 0], [1, 0, 2, 1, 0, 2]])
ABOVE = np.triu(np.ones((LENGTH, LENGTH), bool), 1)
PADDED = np.array([[False] * LENGTH, [False, True, False, False]])  # True where a key of an example is padding


def numbers(*shape):
    return rng.uniform(-1.5, 1.5, shape)


def swapped(function):
    """The reference for inputs whose first two dimensions are swapped."""
    return lambda state, x: tuple(np.swapaxes(out, 0, 1) if i == 0 else out for i, out in enumerate(function(state, x)))


def recurrent(kind, layers=1, directions=1, **options):
    def reference(state, x):
        starts = [np.zeros((layers * directions, x.shape[1], 3))] * (2 if kind == "lstm" else 1)
        return plain.recurrent(kind, x, state, layers, directions, 3, *starts, **options)

    return reference


def part(state, prefix):
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def linear(state, name, x):
    return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]


def layer_norm(state, name, x):
    return plain.normalised(x, -1, 1e-5) * state[f"{name}.weight"] + state[f"{name}.bias"]


def attention(state, x, other, forbidden=None, turn=None):
    return plain.multihead(x, other, other, state, 2, forbidden, turn)


def feed(state, x):
    return linear(state, "linear2", np.maximum(linear(state, "linear1", x), 0))


def encoder(state, x):
    x = layer_norm(state, "norm1", x + attention(part(state, "self_attn."), x, x, ABOVE))
    return layer_norm(state, "norm2", x + feed(state, x))


def encoder_norm_first(state, x):
    normed = layer_norm(state, "norm1", x)
    x = x + attention(part(state, "self_attn."), normed, normed)
    return x + feed(state, layer_norm(state, "norm2", x))


def decoder(state, x, memory):
    x = layer_norm(state, "norm1", x + attention(part(state, "self_attn."), x, x, ABOVE))
    x = layer_norm(state, "norm2", x + attention(part(state, "multihead_attn."), x, memory))
    return layer_norm(state, "norm3", x + feed(state, x))


def stacked(state, x):
    for number in range(2):
        x = encoder_norm_first(part(state, f"layers.{number}."), x)
    return layer_norm(state, "norm", x)


def both_ways(state, source, target):
    block = part(state, "encoder.layers.0.")
    x = layer_norm(block, "norm1", source + attention(part(block, "self_attn."), source, source))
    memory = layer_norm(part(state, "encoder."), "norm", layer_norm(block, "norm2", x + feed(block, x)))
    return layer_norm(part(state, "decoder."), "norm", decoder(part(state, "decoder.layers.0."), target, memory))


def graph_convolution(state, x):
    adjacency = np.eye(len(x))
    np.add.at(adjacency, (EDGES[1], EDGES[0]), 1.0)
    scale = np.diag(adjacency.sum(1) ** -0.5)
    return scale @ adjacency @ scale @ x @ state["lin.weight"].T + state["bias"]


def graph_attention(state, x):
    features = (x @ state["lin.weight"].T).reshape(len(x), 2, 3)
    starts, ends = np.concatenate([EDGES, np.tile(np.arange(len(x)), (2, 1))], 1)
    scores = (features * state["att_src"]).sum(-1)[starts] + (features * state["att_dst"]).sum(-1)[ends]
    weights = plain.segment_softmax(np.where(scores > 0, scores, 0.2 * scores), ends, len(x))
    return (
        np.stack([(features[starts] * weights[..., None])[ends == n].sum(0) for n in range(len(x))]).reshape(len(x), 6)
        + state["bias"]
    )


def batch_norm(state, x):
    return plain.normalised(x, (0, *range(2, x.ndim)), 1e-5) * plain.along(state["weight"], x, 1) + plain.along(
        state["bias"], x, 1
    )


BLOCK = {"size": 4, "heads": 2, "hidden": 5, "dropout": 0.0, "batch_first": True}
CAUSAL = {"causal": True}
LAYERS = {
    "Linear": (lambda: nn.Linear(3, 2), [numbers(4, 3)], lambda s, x: x @ s["weight"].T + s["bias"]),
    "Conv1d": (
        lambda: nn.Conv1d(2, 3, 2, stride=2, padding=1),
        [numbers(2, 2, 5)],
        lambda s, x: plain.convolution(x, s["weight"], s["bias"], 2, 1),
    ),
    "Conv2d": (
        lambda: nn.Conv2d(2, 4, (2, 3), padding="same", dilation=2, groups=2),
        [numbers(2, 2, 4, 3)],
        lambda s, x: plain.convolution(x, s["weight"], s["bias"], 1, "same", 2, 2),
    ),
    "Conv2d, no bias": (
        lambda: nn.Conv2d(1, 2, 3, bias=False),
        [numbers(1, 1, 4, 4)],
        lambda s, x: plain.convolution(x, s["weight"]),
    ),
    "ConvTranspose2d": (
        lambda: nn.ConvTranspose2d(2, 2, 3, stride=2, padding=1, output_padding=1),
        [numbers(2, 2, 2, 3)],
        lambda s, x: plain.transposed(x, s["weight"], s["bias"], 2, 1, 1),
    ),
    "ConvTranspose1d": (
        lambda: nn.ConvTranspose1d(2, 2, 3, stride=2, padding=1, groups=2),
        [numbers(2, 2, 3)],
        lambda s, x: plain.transposed(x[:, :, None], s["weight"][:, :, None], s["bias"], (1, 2), (0, 1), 0, 2)[:, :, 0],
    ),
    "ZeroPad1d": (lambda: nn.ZeroPad1d(((1, 2),)), [numbers(2, 3)], lambda s, x: np.pad(x, ((0, 0), (1, 2)))),
    "ZeroPad2d": (lambda: nn.ZeroPad2d(1), [numbers(1, 2, 3)], lambda s, x: np.pad(x, ((0, 0), (1, 1), (1, 1)))),
    "ConstantPad1d": (
        lambda: nn.ConstantPad1d((1,), 2.0),
        [numbers(2, 3)],
        lambda s, x: np.pad(x, ((0, 0), (1, 1)), constant_values=2),
    ),
    "ConstantPad2d": (
        lambda: nn.ConstantPad2d((1, 0), 2.0),
        [numbers(2, 3)],
        lambda s, x: np.pad(x, ((1, 1), (0, 0)), constant_values=2),
    ),
    **{
        f"{kind}Pad{count}d": (
            lambda kind=kind, count=count: getattr(nn, f"{kind}Pad{count}d")(((2, 1),) * count),
            [numbers(2, 3, 3)],
            lambda s, x, mode=mode, count=count: np.pad(x, ((0, 0),) * (3 - count) + ((2, 1),) * count, mode),
        )
        for kind, mode in (("Reflection", "reflect"), ("Replication", "edge"), ("Circular", "wrap")) for count in (1, 2)
    },
    "PReLU": (
        lambda: nn.PReLU(3),
        [numbers(2, 3, 2)],
        lambda s, x: np.where(x > 0, x, x * s["weight"][:, None]),
    ),
    "MaxPool1d": (lambda: nn.MaxPool1d(2), [numbers(2, 2, 5)], lambda s, x: plain.pooled(np.max, -math.inf, 1, x, 2)),
    "MaxPool2d": (
        lambda: nn.MaxPool2d(3, stride=2, padding=1),
        [numbers(2, 1, 4, 4)],
        lambda s, x: plain.pooled(np.max, -math.inf, 2, x, 3, 2, 1),
    ),
    "AvgPool1d": (
        lambda: nn.AvgPool1d(2, stride=1),
        [numbers(2, 2, 5)],
        lambda s, x: plain.pooled(np.mean, 0.0, 1, x, 2, 1),
    ),
    "AvgPool2d": (lambda: nn.AvgPool2d(2), [numbers(2, 1, 4, 4)], lambda s, x: plain.pooled(np.mean, 0.0, 2, x, 2)),
    "AdaptiveAvgPool1d": (lambda: nn.AdaptiveAvgPool1d(2), [numbers(1, 2, 5)], lambda s, x: plain.adaptive(x, (2,))),
    "AdaptiveAvgPool2d": (
        lambda: nn.AdaptiveAvgPool2d((1, 2)),
        [numbers(1, 1, 4, 5)],
        lambda s, x: plain.adaptive(x, (1, 2)),
    ),
    "LayerNorm": (
        lambda: nn.LayerNorm(3),
        [numbers(4, 3)],
        lambda s, x: plain.normalised(x, -1, 1e-5) * s["weight"] + s["bias"],
    ),
    "RMSNorm": (
        lambda: nn.RMSNorm(3, eps=1e-3),
        [numbers(4, 3)],
        lambda s, x: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-3) * s["weight"],
    ),
    "GroupNorm": (
        lambda: nn.GroupNorm(2, 4),
        [numbers(2, 4, 3)],
        lambda s, x: plain.group_norm(x, 2, s["weight"], s["bias"]),
    ),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(2), [numbers(4, 2)], batch_norm),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(2), [numbers(2, 2, 2, 2)], batch_norm),
    "InstanceNorm1d": (
        lambda: nn.InstanceNorm1d(2), [numbers(2, 2, 4)], lambda s, x: plain.normalised(x, 2, 1e-5),
    ),
    "InstanceNorm2d": (
        lambda: nn.InstanceNorm2d(2, affine=True),
        [numbers(2, 2, 2, 3)],
        lambda s, x: plain.group_norm(x, 2, s["weight"], s["bias"]),
    ),
    "Upsample": (
        lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
        [numbers(1, 2, 2, 3)],
        lambda s, x: plain.resized(x, (4, 6), (0.5, 0.5), "bilinear"),
    ),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), [numbers(1, 4, 2, 2)], lambda s, x: plain.pixel_shuffle(x, 2)),
    "RNNCell": (
        lambda: nn.RNNCell(2, 3, nonlinearity="relu"),
        [numbers(4, 2), numbers(4, 3)],
        lambda s, x, h: plain.cell("rnn", s, x, 3, h, nonlinearity=lambda x: np.maximum(x, 0)),
    ),
    "GRUCell": (
        lambda: nn.GRUCell(2, 3, bias=False), [numbers(4, 2)], lambda s, x: plain.cell("gru", s, x, 3, np.zeros((4, 3)))
    ),
    "LSTMCell": (
        lambda: Stated(nn.LSTMCell(2, 3)),
        [numbers(4, 2), numbers(4, 3), numbers(4, 3)],
        lambda s, x, h, c: plain.cell("lstm", part(s, "layer."), x, 3, h, c),
    ),
    "RNN": (lambda: nn.RNN(2, 3, num_layers=2), [numbers(LENGTH, 2, 2)], recurrent("rnn", 2)),
    "RNN, relu": (
        lambda: nn.RNN(2, 3, nonlinearity="relu", bias=False),
        [numbers(LENGTH, 2, 2)],
        recurrent("rnn", nonlinearity=lambda x: np.maximum(x, 0)),
    ),
    "GRU": (
        lambda: nn.GRU(2, 3, batch_first=True),
        [numbers(2, LENGTH, 2)],
        lambda s, x: swapped(recurrent("gru"))(s, np.swapaxes(x, 0, 1)),
    ),
    "LSTM": (lambda: nn.LSTM(2, 3, num_layers=2, bidirectional=True), [numbers(2, 1, 2)], recurrent("lstm", 2, 2)),
    "MultiheadAttention": (
        lambda: nn.MultiheadAttention(4, 2, batch_first=True),
        [numbers(2, LENGTH, 4)],
        lambda s, x: attention(s, x, x, ABOVE),
        CAUSAL,
    ),
    "MultiheadAttention, rotary": (
        lambda: nn.MultiheadAttention(4, 2, batch_first=True, rotary=True),
        [numbers(1, LENGTH, 4)],
        lambda s, x: attention(s, x, x, None, plain.rotated),
    ),
    "MultiheadAttention, two": (
        lambda: nn.MultiheadAttention(4, 2),
        [numbers(LENGTH, 2, 4), numbers(3, 2, 4)],
        lambda s, x, y: np.swapaxes(attention(s, np.swapaxes(x, 0, 1), np.swapaxes(y, 0, 1)), 0, 1),
    ),
    "MultiheadAttention, weights": (
        lambda: nn.MultiheadAttention(4, 2, batch_first=True),
        [numbers(2, LENGTH, 4)],
        lambda s, x: (attention(s, x, x, ABOVE), plain.attention_weights(x, x, s, 2, ABOVE)),
        CAUSAL | {"need_weights": True},
    ),
    "MultiheadAttention, padded": (
        lambda: nn.MultiheadAttention(4, 2, batch_first=True),
        [numbers(2, LENGTH, 4)],
        lambda s, x: attention(s, x, x, ABOVE | PADDED[:, None, None]),
        CAUSAL | {"key_padding_mask": PADDED},
    ),
    "MultiheadAttention, padded and masked": (
        lambda: nn.MultiheadAttention(4, 2),
        [numbers(LENGTH, 2, 4)],
        lambda s, x: np.swapaxes(attention(s, *[np.swapaxes(x, 0, 1)] * 2, ABOVE.T | PADDED[:, None, None]), 0, 1),
        {"mask": ~ABOVE.T, "key_padding_mask": PADDED},
    ),
    "LearnedPositions": (
        lambda: nn.LearnedPositions(6, 3),
        [numbers(2, LENGTH, 3)],
        lambda s, x: x + s["weight"][:LENGTH],
    ),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(**BLOCK), [numbers(1, LENGTH, 4)], encoder, CAUSAL),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(**BLOCK, norm_first=True), 2, nn.LayerNorm(4)),
        [numbers(1, LENGTH, 4)],
        stacked,
    ),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(**BLOCK),
        [numbers(1, LENGTH, 4), numbers(1, 2, 4)],
        decoder,
        CAUSAL,
    ),
    "Transformer": (
        lambda: nn.Transformer(4, 2, 1, 1, 5, 0.0, batch_first=True),
        [numbers(1, 2, 4), numbers(1, LENGTH, 4)],
        both_ways,
        CAUSAL,
    ),
    "GraphConv": (
        lambda: Fixed(nn.GraphConv(2, 3)),
        [numbers(4, 2)],
        lambda s, x: graph_convolution(part(s, "layer."), x),
    ),
    "GAT": (lambda: Fixed(nn.GAT(2, 3, heads=2)), [numbers(4, 2)], lambda s, x: graph_attention(part(s, "layer."), x)),
}
NAMES = {
    "Conv2d": ["weight", "bias"],
    "BatchNorm2d": ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"],
    "InstanceNorm1d": [],
    "InstanceNorm2d": ["weight", "bias"],
    "RNNCell": ["weight_ih", "weight_hh", "bias_ih", "bias_hh"],
    "GRUCell": ["weight_ih", "weight_hh"],
    "LSTMCell": [f"layer.{kind}_{place}" for kind in ("weight", "bias") for place in ("ih", "hh")],
    "GRU": ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"],
    "LSTM": [f"{kind}_{place}_l{layer}{way}" for layer in (0, 1) for way in ("", "_reverse")
             for kind in ("weight", "bias") for place in ("ih", "hh")],
    "TransformerDecoderLayer": [
        *[f"{a}.{w}" for a in ("self_attn", "multihead_attn")
          for w in ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")],
        *[f"{layer}.{w}" for layer in ("linear1", "linear2", "norm1", "norm2", "norm3") for w in ("weight", "bias")],
    ],
    "TransformerEncoder": [
        *[f"layers.{n}.self_attn.{w}" for n in (0, 1)
          for w in ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")],
        *[f"layers.{n}.{layer}.{w}" for n in (0, 1) for layer in ("linear1", "linear2", "norm1", "norm2")
          for w in ("weight", "bias")], "norm.weight", "norm.bias",
    ],
}
BUFFERS = {"running_mean", "running_var", "num_batches_tracked"}  # tensors without a gradient
ACROSS_THE_BATCH = ("BatchNorm1d", "BatchNorm2d")
ONE_EXAMPLE = [n for n in LAYERS if n not in (*ACROSS_THE_BATCH, "GraphConv", "GAT", "RNN", "RNN, relu", "GRU", "LSTM")]


class Stated(nn.Module):
    """A cell with its state as further arguments."""

    def __init__(self, layer):
        self.layer = layer

    def forward(self, x, *state):
        return self.layer(x, state)


class Fixed(nn.Module):
    """A graph layer with its edges."""

    def __init__(self, layer):
        self.layer, self.edges = layer, EDGES

    def forward(self, x):
        return self.layer(x, mg.asarray(self.edges))


def built(name):
    """The layer in float64 with changed parameters, its inputs, its reference and its options."""
    build, arrays, reference, *options = LAYERS[name]
    layer = build().to(mg.float64)
    drawn = np.random.default_rng(5)
    layer.load_state_dict({n: drawn.uniform(-1, 1, t.shape) for n, t in layer.named_parameters()}, strict=False)
    return layer, arrays, reference, (options[0] if options else {})


def listed(outputs):
    flat = []
    for out in outputs if isinstance(outputs, tuple) else (outputs,):
        flat += listed(out) if isinstance(out, tuple) else [out]
    return flat


def state_of(layer):
    return {name: t.numpy_copy() for name, t in layer.state_dict().items()}


@pytest.mark.parametrize("name", LAYERS)
def test_values_are_those_of_plain_numpy(name):
    layer, arrays, reference, options = built(name)
    expected = listed(reference(state_of(layer), *arrays))
    outputs = listed(layer(*map(mg.asarray, arrays), **options))
    assert len(outputs) == len(expected)
    for ours, theirs in zip(outputs, expected):
        np.testing.assert_allclose(ours.numpy_copy(), theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", LAYERS)
def test_a_jitted_step_gives_the_same_values_and_gradients(name, numpy_kernels):
    layer, arrays, _, options = built(name)
    state, inputs = layer.state_dict(), [mg.asarray(a) for a in arrays]

    def step(*inputs):
        loss = sum((mg.sin(out) * out).sum() for out in listed(layer(*inputs, **options)))
        if layer.parameters():
            loss.backward()
        return loss

    found = []
    for run in (step, mg.jit(step)):
        layer.zero_grad()
        layer.load_state_dict(state)
        loss = run(*inputs).item()
        buffers = [t.numpy_copy() for t in layer.buffers()]
        found.append([loss, *[p.grad.numpy_copy() for p in layer.parameters()], *buffers])
    for eager, jitted in zip(*found):
        np.testing.assert_allclose(jitted, eager, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_central_differences_to_second_order(name):
    layer, arrays, _, options = built(name)
    if name == "TransformerEncoder":
        return  # its parts are checked separately
    names = [n for n, _ in layer.named_parameters()]
    parameters = [p.numpy_copy() for p in layer.parameters()]
    small = [i for i, p in enumerate(parameters) if p.size <= 24][:3]

    def call(*tensors):
        given = dict(zip([names[i] for i in small], tensors[len(arrays) :]))
        return tuple(listed(nn.functional_call(layer, given, *tensors[: len(arrays)], **options)))

    order = 1 if "Transformer" in name or "LSTM" in name else 2
    check_gradients(call, *arrays, *[parameters[i] for i in small], order=order, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ONE_EXAMPLE)
def test_vmap_equals_a_loop_over_batches(name):
    layer, arrays, _, options = built(name)
    many = [mg.asarray(np.stack([a, a[::-1]])) for a in arrays]
    batched = listed(mg.vmap(lambda *xs: layer(*xs, **options))(*many))
    for k in range(2):
        for ours, alone in zip(batched, listed(layer(*[m[k] for m in many], **options))):
            np.testing.assert_allclose(ours[k].numpy_copy(), alone.numpy_copy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_states_have_the_names_of_torch(name):
    assert sorted(LAYERS[name][0]().state_dict()) == sorted(NAMES[name])


@pytest.mark.parametrize("name", LAYERS)
def test_every_tensor_of_a_layer_is_a_parameter_or_a_known_buffer(name):
    layer = LAYERS[name][0]()
    buffers = layer.state_dict().keys() - dict(layer.named_parameters())
    assert {name.rpartition(".")[2] for name in buffers} <= BUFFERS, "a parameter has requires_grad=True"


@pytest.mark.parametrize("name", LAYERS)
def test_layers_stay_in_their_dtype(name):
    build, arrays, _, *options = LAYERS[name]
    for dtype in (mg.float32, mg.float16):
        outputs = listed(
            build().to(dtype)(*[mg.asarray(a).astype(dtype) for a in arrays], **(options[0] if options else {}))
        )
        assert {out.dtype for out in outputs} == {dtype}
