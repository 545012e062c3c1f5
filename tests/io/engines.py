"""Runs a function here, in onnxruntime, in onnx's reference evaluator and as an imported file, and compares."""

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

import minigrad as mg

onnxruntime.set_default_logger_severity(4)
MISSING = ("NOT_IMPLEMENTED", "has unsupported type", "is not registered")  # its messages for types that it lacks


def arrays(results):
    """Results as a list of NumPy arrays."""
    listed = results if isinstance(results, (tuple, list)) else (results,)
    return [r if isinstance(r, np.ndarray) else r.numpy_copy() for r in listed]


def eager(function, inputs):
    with mg.no_grad():
        return arrays(function(*inputs))


def check(path, function, inputs, others=(), without=(), jit=False, **options):
    """Export, check the file, and run it on `inputs` and on `others`, batches of other sizes.  Returns the model."""
    mg.io.export_onnx(function, path, *inputs, **options)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert {o.domain: o.version for o in model.opset_import} == {"": 18}
    imported = mg.io.load_onnx(path)
    engines = {"imported": lambda given: eager(imported, given)}
    if jit:
        engines["jitted"] = lambda given: eager(mg.jit(imported), given)
    if "reference" not in without:
        evaluator = ReferenceEvaluator(model)
        engines["reference"] = lambda given: evaluator.run(None, fed(model, given))
    if "onnxruntime" not in without:
        session = started(path)
        if session is not None:
            engines["onnxruntime"] = lambda given: session.run(None, fed(model, given))
    for given in (inputs, *others):
        expected = eager(function, given)
        for name, engine in engines.items():
            for found, wanted in zip(engine(given), expected, strict=True):
                compare(name, np.asarray(found), wanted)
    return model


def fed(model, given):
    return {value.name: tensor.numpy_copy() for value, tensor in zip(model.graph.input, given, strict=True)}


def started(path):
    """The file in onnxruntime; None if onnxruntime has no kernel for one of the types."""
    try:
        return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    except Exception as error:
        if any(words in str(error) for words in MISSING):
            return None
        raise


def compare(engine, found, wanted):
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), engine
    tolerance = {2: 2e-2, 4: 2e-5, 8: 1e-10}[wanted.dtype.itemsize] if wanted.dtype.kind == "f" else 0
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, err_msg=engine)


def operators(model):
    """The types of all nodes of a model, without nodes that only name a result."""
    return [node.op_type for node in model.graph.node if node.op_type != "Identity"]
