"""Composed functions in ONNX: calls that become one operator, and calls that are written node by node."""

import numpy as np
import onnx
import pytest

import minigrad as mg
from tests.io.engines import check, operators

nn = mg.nn


@pytest.fixture(autouse=True)
def _seeded(numpy_kernels):
    mg.random.seed(0)


def normal(*shape):
    return mg.random.normal(shape)


def written(path, function, *inputs, **options):
    """The operators of the file.  All engines must compute the same from it."""
    return operators(check(path / "f.onnx", function, inputs, **options))


W, B = normal(4), normal(4)
KERNEL = normal(4, 1, 3, 3)

ONE = [
    ("Softmax", lambda x: mg.softmax(x, axis=1)), ("LogSoftmax", mg.log_softmax), ("Relu", mg.relu),
    ("LeakyRelu", lambda x: mg.leaky_relu(x, 0.3)), ("Elu", lambda x: mg.elu(x, alpha=2)), ("Softplus", mg.softplus),
    ("ReduceMean", lambda x: mg.mean(x, axis=(-1, 1))), ("ReduceMean", lambda x: x.mean(0, keepdims=True)),
    ("LayerNormalization", lambda x: mg.layer_norm(x, W, B)), ("LayerNormalization", lambda x: mg.layer_norm(x, W)),
    ("BatchNormalization", lambda x: mg.batch_norm(x, W, W * W, B, W, eps=0.1)),
    ("Conv", lambda x: mg.conv2d(x, KERNEL, padding=((1, 0), (0, 2)), groups=4)),
    ("MaxPool", lambda x: mg.max_pool2d(x, (2, 3), stride=(1, 2), padding=1)),
    ("AveragePool", lambda x: mg.avg_pool2d(x, 2)),
    ("InstanceNormalization", lambda x: mg.instance_norm(x, W, B, eps=0.1)),
    ("InstanceNormalization", mg.instance_norm), ("DepthToSpace", lambda x: mg.pixel_shuffle(x, 2)),
    ("Resize", lambda x: mg.interpolate(x, scale_factor=2)), ("Resize", lambda x: mg.interpolate(x, (7, 2))),
    ("Resize", lambda x: mg.interpolate(x, scale_factor=(1.5, 0.5), mode="bilinear")),
    ("Resize", lambda x: mg.interpolate(x, (9, 1), mode="bilinear", align_corners=True)),
    ("Resize", lambda x: mg.interpolate(x[:, :, 0], 6, mode="linear")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "function"), ONE, ids=[f"{name}-{i}" for i, (name, _) in enumerate(ONE)])
def test_a_call_is_one_operator(name, function, tmp_path):
    others = {"Mul", "Identity", "Slice", "Squeeze"} if name in ("BatchNormalization", "Resize") else set()
    assert set(written(tmp_path, function, normal(3, 4, 4, 5 if name in ("Conv", "MaxPool") else 4))) - others == {name}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "function", "x"),
    [
        ("LayerNormalization", lambda x: mg.layer_norm(x), normal(3, 4)),
        ("LayerNormalization", lambda x: mg.layer_norm(x, axis=0), normal(3, 4)),
        ("LayerNormalization", lambda x: mg.layer_norm(x, mg.ones(4, dtype=mg.float16)),
         normal(3, 4).astype(mg.float16)),
        ("BatchNormalization", lambda x: mg.batch_norm(x, W, W * W), normal(3, 4)),
        ("InstanceNormalization", lambda x: mg.instance_norm(x, W), normal(3, 4, 2)),
        ("Gemm", lambda x: mg.linear(x, mg.arange(8).reshape((2, 4))), mg.asarray(np.arange(12).reshape(3, 4))),
        ("Conv", lambda x: mg.conv2d(x, mg.ones((1, 3, 2, 2))), normal(3, 4, 5)),
        ("MaxPool", lambda x: mg.max_pool2d(x, 2), normal(3, 4, 4)),
        ("LeakyRelu", lambda x: mg.leaky_relu(x, x.sum()), normal(3, 4)),
        ("LeakyRelu", lambda x: mg.leaky_relu(x, np.full(4, 0.5, np.float32)), normal(3, 4)),
        ("Relu", mg.relu, mg.asarray([[1, -2], [3, -4]])),
    ],
)
def test_a_call_that_the_operator_does_not_cover_is_written_node_by_node(name, function, x, tmp_path):
    assert name not in written(tmp_path, function, x, batch_axes=None)


def test_inner_call_with_other_readers_is_written_for_both(tmp_path):
    """The result of an inner call may also be read elsewhere: every value that is read is computed."""
    def shared(x):
        y = mg.softmax(x)
        return y, mg.log_softmax(x), y * 2

    assert sorted(written(tmp_path, shared, normal(3, 4))) == ["LogSoftmax", "Mul", "Softmax"]


def test_axes_under_vmap_are_those_of_the_batch(tmp_path):
    """The nodes have one axis more than a row: softmax along axis 0 of a row is along axis 1 of the node."""
    assert "Softmax" not in written(tmp_path, mg.vmap(lambda row: mg.softmax(row, axis=0)), normal(3, 4))


def test_dtypes_under_autocast_are_written(tmp_path):
    weight = normal(2, 4)

    def function(x):
        with mg.train.autocast(mg.float16):
            return mg.linear(x, weight).astype(mg.float32)

    without = ("onnxruntime",)  # multiplies in float32 nevertheless
    assert "Gemm" not in written(tmp_path, function, normal(3, 4), without=without)


def test_an_argument_that_depends_on_the_batch_is_written_as_such(tmp_path):
    def function(x):
        return mg.leaky_relu(x, slope=float(x.shape[0]))

    made = check(tmp_path / "f.onnx", function, [normal(3, 4)], others=[[normal(6, 4)]])
    assert "LeakyRelu" not in operators(made) and "Shape" in operators(made)


def test_assignments_before_and_after_a_call_are_not_lost(tmp_path):
    def function(x):
        y = x * 1.5
        before = mg.softmax(y)
        y[:, 0] = 2.0
        after = mg.softmax(y)
        after[:, 1] = 7.0
        return before, after, mg.relu(after[:, 1:])

    found = written(tmp_path, function, normal(3, 4))
    assert found.count("Softmax") == 2 and found.count("Relu") == 1


def test_layers_in_a_loop_and_a_branch(tmp_path):
    layer = nn.Sequential(nn.Linear(4, 4), nn.Softmax())

    def function(x):
        return mg.fori_loop(0, 3, lambda i, y: layer(y) + x, x), mg.cond(x.sum() > 0, lambda: layer(x), lambda: x)

    check(tmp_path / "f.onnx", function, [normal(3, 4)], others=[[normal(5, 4)]])


LAYERS = {
    "LSTM": lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True), "GRU": lambda: nn.GRU(3, 4, bidirectional=True),
    "RNN": lambda: nn.RNN(3, 4, bias=False),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_recurrent_layer_is_one_operator_for_each_direction(name, tmp_path):
    layer = LAYERS[name]()
    made = check(tmp_path / "f.onnx", lambda x: mg.core.tree.leaves(layer(x)), [normal(5, 2, 3)],
                 others=[[normal(5, 1, 3)]], batch_axes=1)
    found = operators(made)
    assert found.count(name) == layer.num_layers * layer.directions and "Scan" not in found


@pytest.mark.slow
def test_a_recurrent_layer_with_a_state_keeps_its_gradients(tmp_path):
    layer, x, h, c = nn.LSTM(3, 4), normal(5, 2, 3), normal(1, 2, 4), normal(1, 2, 4)

    def function(x, h, c):
        out, (last, cell) = layer(x, (h, c))
        return out, last, cell

    check(tmp_path / "f.onnx", function, [x, h, c], batch_axes=1, jit=True)
    mg.io.export_onnx(layer, tmp_path / "g.onnx", x, batch_axes=1)
    loaded = mg.io.load_onnx(tmp_path / "g.onnx")
    for model in (layer, loaded):
        sum((out * out).sum() for out in mg.core.tree.leaves(model(x))).backward()
    ours, theirs = dict(layer.named_parameters()), dict(loaded.named_parameters())
    assert ours.keys() == theirs.keys()
    for parameter, other in zip(ours.values(), [theirs[name] for name in ours]):
        np.testing.assert_allclose(other.grad.numpy_copy(), parameter.grad.numpy_copy(), rtol=1e-4, atol=1e-5)


def test_a_recurrent_layer_under_autocast_is_written_node_by_node(tmp_path):
    layer = nn.GRU(3, 4)

    def function(x):
        with mg.train.autocast(mg.float16):
            return layer(x)[0]

    mg.io.export_onnx(function, tmp_path / "f.onnx", normal(5, 2, 3), batch_axes=1)
    assert "GRU" not in operators(onnx.load(tmp_path / "f.onnx"))
