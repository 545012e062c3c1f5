"""ONNX files from other programs are read; damaged, hostile and unsupported files are errors."""

import os

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import minigrad as mg
from tests.io.engines import arrays

FLOAT = TensorProto.FLOAT


def saved(path, nodes, inputs=("x",), outputs=("y",), initializers=(), opset=18, shape=("n", 3), **more):
    """A file of these nodes, on floats of one shape."""
    infos = [[helper.make_tensor_value_info(name, FLOAT, shape) for name in names] for names in (inputs, outputs)]
    graph = helper.make_graph(nodes, "graph", *infos, initializer=list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **more)
    path.write_bytes(model.SerializeToString())
    return path


def node(op_type, *inputs, output="y", **attributes):
    return helper.make_node(op_type, list(inputs), [output], **attributes)


def refused(path):
    with pytest.raises(mg.FileError) as error:
        mg.io.load_onnx(path)
    return str(error.value)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


# Files of other programs ----------------------------------------------------------------------------------------------


def test_operators_that_only_other_programs_write(path):
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    w = np.arange(6, dtype=np.float32).reshape(3, 2)
    nodes = [
        helper.make_node("Constant", [], ["two"], value_float=2.0),
        helper.make_node("Constant", [], ["limits"], value_floats=[-1.0, 1.0]),
        node("Clip", "x", "low", "high", output="a"),
        node("Gemm", "a", "w", "c", output="b", alpha=0.5, beta=2.0),
        node("Flatten", "b", output="d"),
        node("Dropout", "d", output="e"),
        node("Sum", "e", "two", "e", output="f"),
        node("Greater", "f", "two", output="g"),
        node("Where", "g", "f", "two", output="h"),
        node("Max", "h", "limits", "two", output="y"),
    ]
    values = {"w": w, "c": np.ones((1, 2), np.float32), "low": np.float32(-0.5), "high": np.float32(1.5)}
    saved(path, nodes, initializers=[numpy_helper.from_array(np.asarray(v), k) for k, v in values.items()])
    model = mg.io.load_onnx(path)
    found = arrays(model(mg.asarray(x)))[0]
    expected = onnx.reference.ReferenceEvaluator(str(path)).run(None, {"x": x})[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert [name for name, _ in model.named_buffers()] == ["w", "c"] and not model.parameters()
    assert repr(model) == "OnnxModel(x: float32 (n, 3) → y: float32 (n, 3))"


def test_a_convolution_that_names_no_padding_has_none(path):
    x = np.random.default_rng(0).normal(size=(1, 3, 5)).astype(np.float32)
    w = numpy_helper.from_array(np.random.default_rng(1).normal(size=(2, 3, 2)).astype(np.float32), "w")
    saved(path, [node("Conv", "x", "w")], initializers=[w], shape=("n", 3, 5))
    expected = onnx.reference.ReferenceEvaluator(str(path)).run(None, {"x": x})[0]
    np.testing.assert_allclose(arrays(mg.io.load_onnx(path)(mg.asarray(x)))[0], expected, rtol=1e-5)


def test_bytes_in_a_file_beside_are_read(path):
    weights = np.arange(9, dtype=np.float32).reshape(3, 3)
    (path.parent / "data").mkdir()
    (path.parent / "data" / "weights.bin").write_bytes(bytes(16) + weights.tobytes())
    saved(path, [node("MatMul", "x", "w")], initializers=[outside("data/weights.bin", offset=16)])
    assert mg.io.load_onnx(path)(mg.eye(3)).tolist() == weights.tolist()


def outside(location, dims=(3, 3), **entries):
    """A tensor whose bytes are in another file."""
    tensor = TensorProto(name="w", data_type=FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


# Refused files --------------------------------------------------------------------------------------------------------


def test_bytes_outside_of_the_folder_are_not_read(path, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "secret"
    elsewhere.write_bytes(bytes(36))
    os.symlink(elsewhere, path.parent / "link")
    relative = os.path.relpath(elsewhere, path.parent)
    for location in (str(elsewhere), relative, "link", "", ".", "nowhere", "data/../../x"):
        saved(path, [node("MatMul", "x", "w")], initializers=[outside(location)])
        words = refused(path)
        assert f"keeps the tensor 'w' in {location!r}" in words and "a file beside it, or in a folder below" in words


def test_missing_external_bytes_are_an_error(path):
    (path.parent / "weights").write_bytes(bytes(36))
    for entries in ({"offset": 4}, {"offset": -36}, {"length": 35}, {"offset": "x"}, {"dims": (1 << 40, 1 << 40)}):
        saved(path, [node("MatMul", "x", "w")], initializers=[outside("weights", **entries)])
        assert "is not an ONNX file, or it is damaged: " in refused(path)


def test_a_cut_file_is_refused_wherever_it_is_cut(path):
    mg.io.export_onnx(mg.nn.Linear(3, 2), path, mg.ones((2, 3)))
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert "is not an ONNX file, or it is damaged: " in refused(path)


@pytest.mark.slow
def test_flipped_bytes_cause_an_error_at_worst(path):
    """A damaged file is refused or is a different model.  Nothing worse may happen."""
    mg.io.export_onnx(mg.nn.Sequential(mg.nn.Linear(3, 2), mg.nn.ReLU()), path, mg.ones((2, 3)))
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        content = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            content[place] = rng.integers(0, 256)
        path.write_bytes(content)
        try:
            mg.io.load_onnx(path)(mg.ones((2, 3)))
        except mg.MinigradError:
            pass


DAMAGED = {
    "text": b"import os",
    "nothing": b"",
    "zeros": bytes(100),
    "a pickle": b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02ls",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_files_that_are_not_models_are_refused(path, content):
    path.write_bytes(content)
    assert "is not an ONNX file, or it is damaged: " in refused(path)


def test_unknown_operators_are_listed_together(path):
    body = helper.make_graph([node("Hardmax", "x", output="z")], "body", [],
                             [helper.make_tensor_value_info("z", FLOAT, None)])
    nodes = [
        node("Celu", "x", output="a"), node("Elu", "a", output="b"), node("Det", "b", output="c"),
        node("MaxPool", "b", output="d", kernel_shape=[1], ceil_mode=1),
        node("If", "x", output="y", then_branch=body, else_branch=body),
        helper.make_node("Mine", ["x"], ["e"], domain="org.example"), node("Celu", "x", output="f"),
    ]
    words = refused(saved(path, nodes))
    assert "has operators that are not supported" in words
    assert [name in words for name in ("Celu, ", "Det, ", "Hardmax", "org.example.Mine")] == [True] * 4
    assert "Elu," not in words.replace("Celu", "") and words.count("Celu") == 1


def recurrent(path, op_type, gates, direction="bidirectional", **attributes):
    """A file with a recurrent layer as PyTorch writes it: biases, no lengths, and an empty initial state."""
    directions = 1 + (direction == "bidirectional")
    drawn = np.random.default_rng(0)
    shapes = {"w": (directions, gates * 4, 3), "r": (directions, gates * 4, 4), "b": (directions, gates * 8)}
    values = [numpy_helper.from_array(drawn.normal(size=s).astype(np.float32), n) for n, s in shapes.items()]
    made = node(op_type, "x", "w", "r", "b", direction=direction, hidden_size=4, **attributes)
    return saved(path, [made], initializers=values, shape=(5, 2, 3))


@pytest.mark.parametrize(
    ("op_type", "gates", "attributes"),
    [
        ("LSTM", 4, {}), ("LSTM", 4, {"direction": "reverse"}), ("GRU", 3, {"linear_before_reset": 1}),
        ("RNN", 1, {}), ("RNN", 1, {"activations": ["Relu", "Relu"]}),
        ("LSTM", 4, {"activations": ["Sigmoid", "Tanh", "Tanh"], "direction": "forward"}),
    ],
)
def test_recurrent_layers_of_other_programs(path, op_type, gates, attributes):
    recurrent(path, op_type, gates, **attributes)
    model = onnx.load(path)
    directions = model.graph.initializer[0].dims[0]
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", FLOAT, (5, directions, 2, 4)))
    path.write_bytes(model.SerializeToString())
    x = np.random.default_rng(1).normal(size=(5, 2, 3)).astype(np.float32)
    found = arrays(mg.io.load_onnx(path)(mg.asarray(x)))[0]
    np.testing.assert_allclose(found, onnxruntime.InferenceSession(path).run(None, {"x": x})[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("op_type", "gates", "attributes", "words"),
    [
        ("GRU", 3, {}, "GRU: not supported with linear_before_reset=0"),
        ("LSTM", 4, {"clip": 1.0, "input_forget": 1}, "LSTM: not supported with clip, input_forget"),
        ("RNN", 1, {"activations": ["Tanh", "Relu"]}, "RNN: not supported with these activations"),
        ("LSTM", 4, {"activations": ["Tanh"] * 6}, "LSTM: not supported with these activations"),
    ],
)
def test_unsupported_recurrent_layers_are_refused(path, op_type, gates, attributes, words):
    with pytest.raises(mg.FileError, match=words):
        mg.io.load_onnx(recurrent(path, op_type, gates, **attributes))(mg.ones((5, 2, 3)))


@pytest.mark.parametrize(
    ("more", "attributes", "words"),
    [
        ("lengths", {}, "LSTM: not supported with sequence_lens"),
        ("peepholes", {}, "LSTM: not supported with peepholes"), ("", {"layout": 1}, "Got: LSTM with layout=1"),
    ],
)
def test_unsupported_inputs_and_layouts_of_recurrent_layers_are_refused(path, more, attributes, words):
    model = onnx.load(recurrent(path, "LSTM", 4, "forward", **attributes))
    values = {"lengths": np.full(2, 5, np.int32), "peepholes": np.zeros((1, 12), np.float32)}
    model.graph.initializer.extend([numpy_helper.from_array(value, name) for name, value in values.items()])
    model.graph.node[0].input.extend([more] if more == "lengths" else ["", "", "", more])
    path.write_bytes(model.SerializeToString())
    with pytest.raises(mg.FileError, match=words):
        mg.io.load_onnx(path)(mg.ones((5, 2, 3)))


def resized(path, numbers, attributes):
    kind = "scales" if isinstance(numbers[0], float) else "sizes"
    given = numpy_helper.from_array(np.array(numbers, np.float32 if kind == "scales" else np.int64), kind)
    inputs = ["x", "", kind] if kind == "scales" else ["x", "", "", kind]
    return saved(path, [node("Resize", *inputs, **attributes)], initializers=[given], shape=(1, 2, 3, 4))


NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


@pytest.mark.parametrize(
    ("numbers", "attributes"),
    [
        ((1.0, 1.0, 2.0, 1.5), NEAREST), ((1, 2, 7, 3), NEAREST), ((1.0, 1.0, 2.0, 0.5), {"mode": "linear"}),
        ((1, 2, 5, 6), {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
        ((1, 2, 5, 6), {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}),
    ],
)
def test_resizing_as_other_programs_write_it(path, numbers, attributes):
    resized(path, numbers, attributes)
    x = np.random.default_rng(1).normal(size=(1, 2, 3, 4)).astype(np.float32)
    expected = onnx.reference.ReferenceEvaluator(str(path)).run(None, {"x": x})[0]
    np.testing.assert_allclose(arrays(mg.io.load_onnx(path)(mg.asarray(x)))[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("numbers", "attributes"),
    [
        ((1.0, 1.0, 2.0, 2.0), {"mode": "cubic"}), ((1.0, 1.0, 2.0, 2.0), {"mode": "nearest"}),
        ((2.0, 1.0, 2.0, 2.0), NEAREST), ((1, 4, 3, 4), NEAREST),
    ],
)
def test_unsupported_resizing_is_refused(path, numbers, attributes):
    with pytest.raises(mg.FileError, match="Resize: not supported for these attributes or dimensions"):
        mg.io.load_onnx(resized(path, numbers, attributes))(mg.ones((1, 2, 3, 4)))


def test_splits_of_other_programs(path):
    sizes = numpy_helper.from_array(np.array([1, 2]), "sizes")
    split = helper.make_node("Split", ["x", "sizes"], ["a", "b"], axis=1)
    saved(path, [split, node("Concat", "b", "a", axis=1)], initializers=[sizes])
    assert mg.io.load_onnx(path)(mg.asarray([[1.0, 2.0, 3.0]])).tolist() == [[2.0, 3.0, 1.0]]
    split = helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2)
    saved(path, [split, node("Concat", "b", "a", axis=1)])
    with pytest.raises(mg.FileError, match=r"Split: shape \(1, 3\) can't be cut into 2 equal parts along axis 1"):
        mg.io.load_onnx(path)(mg.asarray([[1.0, 2.0, 3.0]]))


def test_an_attribute_that_is_not_known_is_named(path):
    nodes = [node("Gelu", "x", output="z", approximate="tanh"),
             node("AveragePool", "z", kernel_shape=[2, 2], dilations=[2, 2])]
    words = refused(saved(path, nodes, opset=20, shape=(1, 1, 4, 4)))
    assert "Got: AveragePool with dilations" in words and "Gelu" not in words


IMAGES = (1, 2, 4, 4)
NUMBERS = {
    "weight": np.random.default_rng(0).normal(size=(2, 2, 2, 2)).astype(np.float32), "each": np.float32([0.5, 2.0]),
    "row": np.float32([0.5, 1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize(
    "made",
    [
        node("Elu", "x"), node("LeakyRelu", "x"), node("Softmax", "x"), node("LogSoftmax", "x"), node("Softplus", "x"),
        node("Gelu", "x"), node("Conv", "x", "weight"), node("ConvTranspose", "x", "weight"),
        node("MaxPool", "x", kernel_shape=[2, 2]), node("AveragePool", "x", kernel_shape=[2, 3]),
        node("LayerNormalization", "x", "row"), node("BatchNormalization", "x", "each", "each", "each", "each"),
        node("InstanceNormalization", "x", "each", "each"), node("Gemm", "row2", "row2"),
        helper.make_node("TopK", ["x", "k"], ["y", "places"]),
        node("ArgMax", "x"), node("ReduceSum", "x"), node("ReduceMean", "x", "", noop_with_empty_axes=1),
        node("Squeeze", "x"), node("Transpose", "x"), node("Flatten", "x"), node("Clip", "x", "", "one"),
        node("IsInf", "x"), node("Mod", "k", "k"), node("Gather", "x", "zero"), node("ConstantOfShape", "k"),
    ],
    ids=lambda made: made.op_type,
)
def test_what_a_file_leaves_out_has_the_defaults_of_onnx(path, made):
    values = NUMBERS | {"row2": np.ones((2, 2)), "k": np.array([1]), "one": np.float32(1), "zero": np.array(0)}
    kept = [numpy_helper.from_array(np.asarray(values[name]), name) for name in {*made.input} if name in values]
    model = onnx.load(saved(path, [made], initializers=kept, opset=20, shape=IMAGES))
    x = np.random.default_rng(1).normal(size=IMAGES).astype(np.float32)
    expected = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})[0]
    kind = helper.np_dtype_to_tensor_dtype(expected.dtype)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", kind, expected.shape))
    path.write_bytes(model.SerializeToString())
    found = arrays(mg.io.load_onnx(path)(mg.asarray(x)))[0]
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (node("MaxPool", "x", kernel_shape=[2, 2], ceil_mode=1), "MaxPool with ceil_mode=1"),
        (node("Conv", "x", "weight", auto_pad="SAME_UPPER"), "Conv with auto_pad='SAME_UPPER'"),
        (node("ArgMax", "x", select_last_index=1), "ArgMax with select_last_index=1"),
        (node("CumSum", "x", "one", exclusive=1, reverse=1), "CumSum with exclusive=1, CumSum with reverse=1"),
        (node("GatherND", "x", "one", batch_dims=1), "GatherND with batch_dims=1"),
        (node("BatchNormalization", "x", "each", "each", "each", "each", training_mode=1),
         "BatchNormalization with training_mode=1"),
        (node("Resize", "x", "", "scales", antialias=1), "Resize with antialias=1"),
    ],
    ids=lambda value: getattr(value, "op_type", ""),
)
def test_an_attribute_with_another_value_than_the_supported_one_is_named_when_the_file_is_read(path, made, words):
    values = NUMBERS | {"one": np.array([1]), "scales": np.ones(4, np.float32)}
    kept = [numpy_helper.from_array(np.asarray(values[name]), name) for name in {*made.input} if name in values]
    assert f"\n  Got: {words}\n" in refused(saved(path, [made], initializers=kept, shape=IMAGES))


def test_an_attribute_with_its_default_or_without_effect_is_read(path):
    saved(path, [node("MaxPool", "x", kernel_shape=[1, 1], ceil_mode=0, storage_order=0, output="a"),
                 node("Conv", "a", "weight", auto_pad="NOTSET", kernel_shape=[2, 2])],
          initializers=[numpy_helper.from_array(NUMBERS["weight"], "weight")], shape=IMAGES)
    assert mg.io.load_onnx(path)(mg.ones(IMAGES)).shape == (1, 2, 3, 3)


def test_a_reduction_of_an_older_opset_has_its_axes_as_an_attribute(path):
    saved(path, [node("ReduceMean", "x", axes=[1], keepdims=0)], opset=13, shape=(2, 3))
    assert mg.io.load_onnx(path)(mg.asarray([[1.0, 2.0, 6.0], [0.0, 0.0, 3.0]])).tolist() == [3.0, 1.0]


@pytest.mark.parametrize(("op_type", "shape"), [("MaxPool", (1, 2, 3, 3, 3)), ("Conv", (1, 2, 4, 4, 4))])
def test_other_dimensions_are_refused(path, op_type, shape):
    weight = numpy_helper.from_array(np.ones((1, 2, 2, 2, 2), np.float32), "w")
    made = node("MaxPool", "x", kernel_shape=[2] * (len(shape) - 2)) if op_type == "MaxPool" else node("Conv", "x", "w")
    with pytest.raises(mg.FileError, match=rf"{op_type}: not supported for these dimensions\n  Got: 5 dimensions"):
        mg.io.load_onnx(saved(path, [made], initializers=[weight], shape=shape))(mg.ones(shape))


def test_unsupported_cases_of_an_operator_are_an_error_when_it_runs(path):
    saved(path, [node("AveragePool", "x", kernel_shape=[2, 2], pads=[1, 1, 1, 1])], shape=(1, 1, 4, 4))
    with pytest.raises(mg.FileError, match=r"AveragePool: a mean without the padding is not supported"):
        mg.io.load_onnx(path)(mg.ones((1, 1, 4, 4)))


def test_a_shape_that_data_decides_is_refused(path):
    nodes = [node("Cast", "x", output="s", to=TensorProto.INT64), node("Reshape", "x", "s")]
    saved(path, nodes, shape=(2,))
    with pytest.raises(mg.FileError, match=r"computes a shape or an index from its data \(Reshape\)"):
        mg.io.load_onnx(path)(mg.ones(2))


def test_a_few_bytes_cannot_ask_for_all_memory(path):
    def constant(name, values):
        return numpy_helper.from_array(np.array(values, np.int64), name)

    huge = constant("s", [1 << 20, 1 << 20])
    limits = [constant("from", 0), constant("to", 1 << 60), constant("by", 1)]
    for nodes, initializers in [
        ([node("ConstantOfShape", "s")], [huge]), ([node("Expand", "x", "s")], [huge]),
        ([node("Range", "from", "to", "by")], limits), ([node("Pad", "x", "s")], [constant("s", [0, 0, 1 << 60, 0])]),
    ]:
        saved(path, nodes, initializers=initializers, shape=(1, 1))
        with pytest.raises(mg.FileError, match=r"a tensor of the file has the shape .*\n  Expected: at most"):
            mg.io.load_onnx(path)(mg.ones((1, 1)))
    tensor = TensorProto(name="w", data_type=FLOAT, dims=(1 << 20, 1 << 10), raw_data=bytes(4))
    assert "or it is damaged: " in refused(saved(path, [node("Add", "x", "w")], initializers=[tensor]))
    tensor = TensorProto(name="w", data_type=FLOAT, dims=(-4, -1), raw_data=bytes(16))
    assert "or it is damaged: " in refused(saved(path, [node("Add", "x", "w")], initializers=[tensor]))


def test_unsupported_element_types_are_named(path):
    for kind in (TensorProto.BFLOAT16, TensorProto.COMPLEX64, TensorProto.STRING):
        tensor = helper.make_tensor("w", kind, (1,), [b"a"] if kind == TensorProto.STRING else [1.0])
        words = refused(saved(path, [node("Identity", "w")], inputs=(), initializers=[tensor]))
        assert f"has elements of type {TensorProto.DataType.Name(kind)}, which minigrad lacks" in words


def test_old_files_and_files_with_functions_are_refused(path):
    words = refused(saved(path, [node("Relu", "x")], opset=9))
    assert "is written for opset 9\n  Expected: opset 13 or later" in words
    own = helper.make_function("mine", "Twice", ["a"], ["b"], [node("Add", "a", "a", output="b")],
                               [helper.make_opsetid("", 18)])
    assert "defines operators of its own" in refused(saved(path, [node("Relu", "x")], functions=[own]))


@pytest.mark.parametrize("name", ["forward", "training", "__class__", "_hooks", "graph", "parameters"])
def test_a_tensor_cannot_take_the_place_of_a_part_of_the_model(path, name):
    tensor = numpy_helper.from_array(np.ones((1, 3), np.float32), name)
    saved(path, [node("Add", "x", name)], initializers=[tensor])
    assert f"a tensor is called {name!r}, as a part of the model is" in refused(path)


@pytest.mark.parametrize("noted", ["[", "[1]", "{\"w\": 3, \"x\"", "[[[" * 10_000])
def test_metadata_is_not_trusted(path, noted):
    tensor = numpy_helper.from_array(np.ones((1, 3), np.float32), "w")
    saved(path, [node("Add", "x", "w")], initializers=[tensor])
    model = onnx.load(path)
    helper.set_model_props(model, {"minigrad.tensors": noted})
    path.write_bytes(model.SerializeToString())
    assert "the list of its parameters cannot be read" in refused(path)


def test_a_missing_package_is_named(path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    for call in (lambda: mg.io.load_onnx(path), lambda: mg.io.export_onnx(lambda x: x, path, mg.ones(1))):
        with pytest.raises(mg.PackageError, match=r"needs the package onnx, which is not.*\n .*course add onnx"):
            call()
