"""Models of nn, and functions of many kinds, as ONNX files for batches of any size, exported and imported."""

import json
from collections import Counter

import numpy as np
import onnx
import pytest

import minigrad as mg
from tests.io.engines import arrays, check, operators

nn = mg.nn


@pytest.fixture(autouse=True)
def _seeded(numpy_kernels):
    mg.random.seed(0)


def normal(*shape):
    return mg.random.normal(shape)


class GPT(nn.Module):
    """Takes characters and returns the logits of the next ones."""

    def __init__(self, vocabulary=11, width=8, length=6):
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.LearnedPositions(length, width)
        block = nn.TransformerEncoderLayer(width, 2, 16, batch_first=True, norm_first=True, activation="gelu")
        self.blocks = nn.TransformerEncoder(block, 2, norm=nn.LayerNorm(width))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        return self.head(self.blocks(self.places(self.tokens(tokens)), causal=True))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, padding="same", groups=2), nn.SiLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Dropout(0.5),
        nn.Linear(6, 5), nn.LogSoftmax(),
    )


def trained(model):
    """The model after some batches, so that its running statistics have changed."""
    for _, module in model.named_modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            with mg.no_grad():
                module.running_mean[...] = 0.3
                module.running_var[...] = 2.0
    return model.eval()


def tokens(count):
    return mg.asarray(np.random.default_rng(count).integers(0, 11, (count, 6)))


MODELS = {
    "an MLP": (lambda: nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3), nn.Softmax()), lambda n: normal(n, 4),
               ["Gemm", "Relu", "Gemm", "Softmax"]),
    "a CNN": (cnn, lambda n: normal(n, 1, 8, 8),
              ["Conv", "BatchNormalization", "Relu", "MaxPool", "Conv", "Sigmoid", "Mul", "AveragePool", "Reshape",
               "Gemm", "LogSoftmax"]),
    "a GPT": (GPT, tokens, None),
    "a transposed convolution": (
        lambda: nn.Sequential(nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1), nn.ELU(0.5)),
        lambda n: normal(n, 2, 4, 5), ["ConvTranspose", "Elu"]),
    "convolutions along sequences": (
        lambda: nn.Sequential(nn.Conv1d(2, 3, 3, padding=2, dilation=2), nn.LeakyReLU(0.2), nn.MaxPool1d(3, 2, 1),
                              nn.AvgPool1d(2), nn.Softplus()),
        lambda n: normal(n, 2, 9), ["Conv", "LeakyRelu", "MaxPool", "AveragePool", "Softplus"]),
    "a convolution without padding": (lambda: nn.Conv2d(2, 3, 2, bias=False), lambda n: normal(n, 2, 4, 5), ["Conv"]),
    "norms": (lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.RMSNorm(4), nn.LayerNorm(4), nn.BatchNorm1d(4), nn.Tanh(),
                                    nn.GELU("tanh"), nn.Sigmoid()),
              lambda n: normal(n, 4), None),
    "adaptive pooling": (lambda: nn.Sequential(nn.AdaptiveAvgPool2d((2, 3)), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
                         lambda n: normal(n, 3, 7, 5), None),
    "a two-way LSTM": (lambda: nn.LSTM(3, 4, num_layers=2, batch_first=True, bidirectional=True),
                       lambda n: normal(n, 5, 3), None),
    "a GRU": (lambda: nn.GRU(3, 4, batch_first=True, bias=False), lambda n: normal(n, 5, 3), None),
    "an RNN": (lambda: nn.RNN(3, 4, batch_first=True, nonlinearity="relu"), lambda n: normal(n, 5, 3), None),
    "a plain RNN": (lambda: nn.RNN(3, 4, batch_first=True), lambda n: normal(n, 5, 3), None),
    "a cell": (lambda: nn.LSTMCell(3, 4), lambda n: normal(n, 3), None),
    "larger images": (
        lambda: nn.Sequential(nn.Upsample(scale_factor=2), nn.InstanceNorm2d(3, affine=True),
                              nn.Upsample(size=(5, 3), mode="bilinear"), nn.InstanceNorm2d(3)),
        lambda n: normal(n, 3, 4, 5), ["Resize", "InstanceNormalization", "Resize", "InstanceNormalization"]),
    "shuffled pixels": (lambda: nn.PixelShuffle(2), lambda n: normal(n, 8, 2, 3), ["DepthToSpace"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_model_for_batches_of_any_size(name, tmp_path):
    make, batch, wanted = MODELS[name]
    model = trained(make())

    def function(x):
        out = model(x)
        return out[0] if isinstance(out, tuple) else out

    exported = function if isinstance(model, (nn.LSTM, nn.GRU, nn.RNN, nn.LSTMCell)) else model
    made = check(tmp_path / "model.onnx", exported, [batch(2)], others=[[batch(7)], [batch(1)]], jit=True)
    assert wanted is None or operators(made) == wanted
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert made.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_a_gpt_has_the_operators_that_other_programs_know(tmp_path):
    mg.io.export_onnx(GPT().eval(), tmp_path / "gpt.onnx", tokens(3))
    found = operators(onnx.load(tmp_path / "gpt.onnx"))
    assert found.count("LayerNormalization") == 5 and found.count("Softmax") == 2 and found.count("Erf") == 2
    assert not {"Exp", "Pow", "ReduceSum", "ScatterND"} & set(found)


@pytest.mark.parametrize("layer", [nn.GraphConv(3, 4), nn.GAT(3, 4, heads=2)], ids=["GraphConv", "GAT"])
def test_a_graph_network_of_exactly_these_shapes(layer, tmp_path):
    edges = mg.asarray([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    check(tmp_path / "model.onnx", layer, [normal(4, 3), edges], batch_axes=None, jit=True)


def assigned(x):
    y = x.copy()
    y[:, 1] = 5.0
    y[:, ::2] += x[:, 1:3]
    y[mg.asarray([0, 1]), mg.asarray([1, 3])] = x[:2, 0]
    y.T[2] = x[:, 3]
    return y


def picked(x):
    order = mg.argsort(x, axis=1)
    return x[:, [0, 2]], mg.take_along_axis(x, order, axis=1), mg.topk(x, 2, axis=1)[0], mg.sort(x, axis=0)


def cut(x):
    return x[:, 1], x[:, ::-1], x[..., None, 1:3], x[:, -1], x[:, 3:0:-2], x[1:], x[: x.shape[0] - 1], x[-2]


def made_for_the_batch(x):
    n = x.shape[0]
    return mg.arange(n), mg.arange(n) * 1.5, mg.ones((n, 3)), mg.full(x.shape, 2.0), x.mean(), x.mean(axis=0), x.std(0)


def at_the_end_of_the_batch(x):
    y = x * 1
    y[x.shape[0] - 1] = 2.0
    return y, x[x.shape[0] - 1], mg.windows(x, 2, axis=0)


def gradients_of_parts(x):
    return mg.grad(lambda x: (x[..., 1:3] ** 2).sum() + (x[1] * x[0]).sum() + x[:, ::2].sum())(x)


def put_together(x):
    return mg.concat([x, x]), mg.stack([x, x]), mg.roll(x, 1, axis=1), mg.tile(x, (2, 1)), mg.pad(x, (1, 2), value=3.0)


def branches(x):
    total, scale = x.sum(axis=1), mg.asarray(0.5)
    chosen = mg.cond(x.sum() > 0, lambda: x * scale, lambda: x - 1)
    count, doubled = mg.while_loop(lambda s: s[1].max() < 50, lambda s: (s[0] + 1, s[1] * 2 + 1), (0, mg.abs(x)))
    carry, rows = mg.scan(lambda c, row: (c + row * scale, c * row), total * 0, x.T, reverse=True)
    last, powers = mg.scan(lambda c, _: (c * 2.0 + x[0, 0], c), total, length=3)
    return chosen, count, doubled, carry, rows, last, powers, mg.fori_loop(0, 4, lambda i, y: y * 0.5 + x * i, x)


FUNCTIONS = [
    assigned, picked, cut, made_for_the_batch, at_the_end_of_the_batch, gradients_of_parts, put_together, branches,
    lambda x: mg.einsum("bi,bj->bij", x, x), lambda x: (x, x, mg.ones(3)),
    lambda x: mg.linalg.vector_norm(x, axis=1), lambda x: mg.softmax(x.astype(mg.float16), axis=1),
    lambda x: mg.windows(x, (2, 2), axis=(1, 1 - 2), stride=1) if x.ndim > 2 else mg.windows(x, 2, stride=2),
    lambda x: mg.overlap_add(mg.windows(x, 3, stride=1), x.shape, stride=1),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_function_for_batches_of_any_size(function, tmp_path):
    check(tmp_path / "f.onnx", function, [normal(3, 4)], others=[[normal(6, 4)]], jit=True)


def test_inputs_in_containers_and_along_other_axes(tmp_path):
    def function(pair, scale=None):
        return {"sum": pair[0].T + pair[1], "scaled": pair[1] * scale}

    path = tmp_path / "f.onnx"
    mg.io.export_onnx(function, path, (normal(4, 3), normal(3, 4)), scale=normal(4), batch_axes=[1, 0, None])
    assert [i.name for i in onnx.load(path).graph.input] == ["pair.0", "pair.1", "scale"]
    model = mg.io.load_onnx(path)
    x, y, scale = normal(4, 9), normal(9, 4), normal(4)
    total, scaled = model(x, y, scale)
    assert (total == x.T + y).all() and (scaled == y * scale).all()
    names = {"input_names": ["a", "b", "c"], "output_names": ["total", "scaled"], "batch_axes": None}
    mg.io.export_onnx(function, path, (normal(4, 3), normal(3, 4)), scale=normal(4), **names)
    graph = onnx.load(path).graph
    assert [v.name for v in (*graph.input, *graph.output)] == ["a", "b", "c", "total", "scaled"]
    assert [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim] == [4, 3]


LAYERS = ("Conv", "Gemm", "MatMul", "BatchNormalization", "LayerNormalization", "Softmax", "Erf", "MaxPool", "Relu")

# Import ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["an MLP", "a CNN", "a GPT"])
def test_imported_model_has_the_same_state_gradients_and_operators(name, tmp_path):
    make, batch, _ = MODELS[name]
    model, path = trained(make()), tmp_path / "model.onnx"
    mg.io.export_onnx(model, path, batch(2))
    back = mg.io.load_onnx(path)
    ours, theirs = model.state_dict(), back.state_dict()
    used = {k: v for k, v in ours.items() if "num_batches" not in k}
    assert used.keys() == theirs.keys() and all((v == theirs[k]).all() for k, v in used.items())
    x = batch(4)
    for each in (model, back):
        (each(x) ** 2).sum().backward()
    ours, theirs = dict(model.named_parameters()), dict(back.named_parameters())
    assert ours.keys() == theirs.keys()
    for key, parameter in ours.items():
        np.testing.assert_allclose(theirs[key].grad.numpy(), parameter.grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=key)
    mg.io.export_onnx(back, tmp_path / "again.onnx", batch(2))
    again, before = (Counter(operators(onnx.load(p))) for p in (tmp_path / "again.onnx", path))
    assert again <= before  # the mask of the GPT is a constant after the import
    assert {k: again[k] for k in LAYERS} == {k: before[k] for k in LAYERS}


def test_imported_model_can_be_trained_in_a_jitted_step(tmp_path):
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    mg.io.export_onnx(model, tmp_path / "model.onnx", normal(5, 2))
    back = mg.io.load_onnx(tmp_path / "model.onnx")
    optimizer = mg.optim.Adam(back.parameters(), lr=0.05)
    x = normal(32, 2)
    y = x[:, :1] * x[:, 1:]

    @mg.jit
    def step():
        optimizer.zero_grad()
        loss = ((back(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    losses = [step().item() for _ in range(100)]
    assert losses[-1] < 0.3 * losses[0]


def test_a_model_on_another_device_in_another_dtype(tmp_path):
    mg.io.export_onnx(lambda x: x[:, [1, 0]] * mg.asarray([2.0, 3.0]), tmp_path / "f.onnx", normal(5, 2))
    model = mg.io.load_onnx(tmp_path / "f.onnx", device="cpu:1")
    assert model(mg.ones((3, 2), device="cpu:1")).device == "cpu:1"
    with pytest.raises(mg.DtypeError, match=r"the input input of the model\n  Expected: float32\n  Got: float64"):
        model(mg.ones((3, 2), dtype=mg.float64))
    with pytest.raises(mg.ShapeError, match=r"has a different shape\n  Expected: input: float32 \(batch, 2\)"):
        model(mg.ones((3, 3)))
    with pytest.raises(mg.ShapeError, match=r"the model takes 1 input, and was given 2"):
        model(mg.ones((3, 2)), mg.ones(1))


def test_the_batch_is_one_number(tmp_path):
    mg.io.export_onnx(lambda x, y: x + y, tmp_path / "f.onnx", normal(3, 2), normal(3, 2))
    model = mg.io.load_onnx(tmp_path / "f.onnx")
    with pytest.raises(mg.ShapeError, match=r"the input y of the model has a different shape"):
        model(normal(4, 2), normal(1, 2))


def test_parameters_that_are_shared_or_found_by_name(tmp_path):
    w, fixed = mg.ones(3, requires_grad=True), mg.ones(3)

    def function(x):
        return x * w + fixed

    mg.io.export_onnx(function, tmp_path / "f.onnx", normal(2, 3))
    model = onnx.load(tmp_path / "f.onnx")
    noted = json.loads({p.key: p.value for p in model.metadata_props}["minigrad.tensors"])
    assert noted == {"w": True, "fixed": False}
    tied = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    tied[1].weight = tied[0].weight
    mg.io.export_onnx(tied, tmp_path / "f.onnx", normal(2, 3))
    names = {t.name for t in onnx.load(tmp_path / "f.onnx").graph.initializer}
    assert names == {"0.weight", "0.bias", "1.bias"}


def test_nodes_carry_the_names_of_modules(tmp_path):
    mg.io.export_onnx(GPT().eval(), tmp_path / "gpt.onnx", tokens(2))
    names = [node.name for node in onnx.load(tmp_path / "gpt.onnx").graph.node]
    assert any(name.startswith("GPT/blocks/layers[1]/norm1/") for name in names), names[:9]


def test_the_graph_has_the_name_of_the_function_or_of_the_modules_class(tmp_path):
    def halved(x):
        return x * mg.asarray([0.5, 0.25])

    model = nn.Sequential(nn.Linear(2, 2))
    for exported, name, numbers in ((halved, halved.__qualname__, ["constant"]),
                                    (model, "Sequential", ["0.bias", "0.weight"])):
        mg.io.export_onnx(exported, tmp_path / "f.onnx", mg.ones((1, 2)))
        graph = onnx.load(tmp_path / "f.onnx").graph
        assert graph.name == name
        assert sorted(tensor.name for tensor in graph.initializer) == numbers


def test_export_after_import_gives_the_same_file(tmp_path):
    model = trained(cnn())
    for name in ("a", "b"):
        mg.io.export_onnx(model, tmp_path / name, normal(2, 1, 8, 8))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# What cannot be exported ----------------------------------------------------------------------------------------------


def refused(function, *args, **options):
    with pytest.raises(mg.FileError) as error:
        mg.io.export_onnx(function, "nowhere/f.onnx", *args, **options)
    return str(error.value)


def test_effects_that_a_file_cannot_express_are_refused():
    counter = mg.zeros(())

    def counting(x):
        counter[...] = counter + 1
        return x + counter

    dropout, norm = nn.Dropout(0.5), nn.BatchNorm1d(2)
    assert "the function draws random numbers" in refused(dropout, normal(3, 2))
    assert "model.eval() switches dropout off" in refused(dropout, normal(3, 2))
    assert "changes counter in place, which a file cannot do" in refused(counting, normal(3, 2))
    assert "model.eval() for running statistics" in refused(norm, normal(3, 2))
    assert "print" in refused(lambda x: mg.print("x", x) or x * 2, normal(3))
    assert "more than compute a result" in refused(lambda x: mg.print("x", x) or x * 2, normal(3))


def test_unsupported_dependence_on_the_batch_size_is_refused():
    mask = mg.ones((3, 4))
    words = refused(lambda x: x[: x.shape[0] // 2], normal(4, 2))
    assert "slice, made at" in words and "depends on the batch in a way that a file cannot express" in words
    assert "for batches of 4, 5, 11" in words and "batch_axes=None" in words
    words = refused(lambda x: x * 2 if x.shape[0] % 2 else x, normal(4, 2))
    assert "the function computes something else for another batch size" in words
    with pytest.raises(mg.ShapeError, match=r"shapes \(4, 4\) and \(3, 4\) do not broadcast"):
        mg.io.export_onnx(lambda x: x + mask, "nowhere/f.onnx", normal(3, 4))


@pytest.mark.parametrize("layer", [nn.LSTM(4, 4), nn.TransformerEncoderLayer(4, 2, 8)], ids=["LSTM", "encoder"])
def test_a_layer_with_sequences_first_needs_the_batch_axis(layer, tmp_path):
    class Tagger(nn.Module):
        def __init__(self):
            self.layer = layer.eval()

        def forward(self, x):
            out = self.layer(x)
            return out[0] if isinstance(out, tuple) else out

    model, x = Tagger(), normal(5, 2, 4)
    for exported in (model, model.forward, mg.jit(model)):
        words = refused(exported, x)
        assert "which axis is the batch?  The model has a layer that takes sequences as (length, " in words
        assert "\n  layer" in words and "Expected: batch_axes=1 for inputs in this order, or batch_axes=0" in words
    made = check(tmp_path / "f.onnx", model, [x], others=[[normal(5, 3, 4)]], batch_axes=1)
    assert [d.dim_param or d.dim_value for d in made.graph.input[0].type.tensor_type.shape.dim] == [5, "batch", 4]
    mg.io.export_onnx(model, tmp_path / "f.onnx", x, batch_axes=None)


def test_wrong_arguments_are_refused():
    x, y = normal(3, 2), normal(4, 2)
    assert "the tensors have different batch sizes: [3, 4]" in refused(lambda x, y: x, x, y)
    assert "a tensor of shape (3, 2) has no axis 2 for the batch" in refused(lambda x: x, x, batch_axes=2)
    assert "2 batch_axes do not fit the number of tensors, 1" in refused(lambda x: x, x, batch_axes=[0, 0])
    assert "input_names needs 1 different strings" in refused(lambda x: x, x, input_names=["a", "b"])
    assert "output_names needs 1 different strings" in refused(lambda x: x, x, output_names=[""])
    assert "the function returns no tensor" in refused(lambda x: None, x)
    assert "or a NumPy array among its results" in refused(lambda x: (x, np.ones(2)), x)
    with pytest.raises(mg.FileError, match=r"the path is a Tensor\n  Expected: export_onnx\(model, path, \*examples\)"):
        mg.io.export_onnx(lambda x: x, x, "f.onnx")
    assert "there is no folder nowhere" in refused(lambda x: x, x)
    with pytest.raises(mg.TraceError, match=r"a model can only be exported in eager mode"):
        mg.jit(lambda x: mg.io.export_onnx(lambda x: x, "f.onnx", x))(x)


def test_results_are_those_of_the_function(tmp_path):
    """The tolerance above would hide a wrong constant, so this test compares every bit."""
    mg.io.export_onnx(lambda x: (x + 0.1) * 3.0, tmp_path / "f.onnx", normal(4))
    x = normal(9)
    assert arrays(mg.io.load_onnx(tmp_path / "f.onnx")(x))[0].tobytes() == ((x + 0.1) * 3.0).numpy().tobytes()
