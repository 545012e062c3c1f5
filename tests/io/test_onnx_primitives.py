"""Every primitive as ONNX: samples through onnx's checker, onnxruntime, the reference evaluator and our import."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from minigrad.io.onnx.decompositions import DECOMPOSITIONS
from minigrad.io.onnx.operator_table import TABLE, WITHOUT
from minigrad.ops.composite import COMPOSED
from tests.io.engines import check
from tests.samples import SAMPLES

COVERED = {*TABLE, *DECOMPOSITIONS}
# Primitives without a counterpart in opset 18.
NONE = {"bitcast", "cumulative_prod", "solve", "cholesky", "slogdet", "eigh", "svd", "qr", "pinv"}
TRACED_AWAY = {"call"}  # a trace records its operations instead

# Cases where an engine is wrong or may differ.
WITHOUT_ENGINE = {
    "erf": ("reference",),  # computes float64 in float32
    "max": ("onnxruntime",), "min": ("onnxruntime",),  # nan is not kept
    "argsort": ("onnxruntime",), "sort": ("onnxruntime",),  # nans in a different order
    "overlap_add": ("onnxruntime",),  # no float16
}
# onnxruntime passes over nans in maxima at positions, and in argmax since version 1.32 (before, it finds them).
WITHOUT_NANS = {"argmax", "argmin", "scatter_max"}
MOST = 4  # samples of a primitive: some of those in the registry's own tests, with the same shapes and special values

CHOSEN = [
    sample for name, samples in SAMPLES.items() if name in COVERED for sample in samples[:: -(-len(samples) // MOST)]
]


def applied(sample):
    """The sample as a function of its arrays."""

    def function(*tensors):
        given = iter(tensors)
        return emit(P[sample.op], *[next(given) if isinstance(x, np.ndarray) else x for x in sample.inputs],
                    **sample.attrs)

    return function


def left_out(sample):
    """The engines that may give something else for a sample."""
    nans = sample.op in WITHOUT_NANS and any(np.isnan(x).any() for x in sample.inputs)
    return ("onnxruntime",) if nans else WITHOUT_ENGINE.get(sample.op, ())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("sample", CHOSEN, ids=str)
def test_primitive_gives_the_same_in_all_engines(sample, tmp_path):
    inputs = [mg.asarray(x) for x in sample.inputs if isinstance(x, np.ndarray)]
    check(tmp_path / "f.onnx", applied(sample), inputs, without=left_out(sample), batch_axes=None)


def test_primitives_have_a_counterpart_or_are_listed_as_unsupported():
    names = {op.name for op in P if op.kind != "own" and op.effect not in WITHOUT}
    assert names - COVERED - set(WITHOUT) == NONE | TRACED_AWAY
    assert COVERED <= names | set(COMPOSED)


def test_unsupported_primitives_are_listed_with_their_lines(tmp_path):
    def function(x):
        root = mg.linalg.cholesky(x @ x.T + mg.eye(3))
        return mg.linalg.solve(root, x), mg.cumulative_prod(x, axis=0), mg.linalg.cholesky(x)

    with pytest.raises(mg.FileError) as error:
        mg.io.export_onnx(function, tmp_path / "f.onnx", mg.ones((3, 3)), batch_axes=None)
    lines = str(error.value).splitlines()
    assert lines[0] == "export_onnx: ONNX has no counterpart of these operations"
    assert [line.split(",")[0].strip() for line in lines[1:5]] == ["cholesky", "solve", "cumulative_prod", "cholesky"]
    assert "test_onnx_primitives.py" in lines[1] and "root = mg.linalg.cholesky" in lines[1]
    assert not list(tmp_path.iterdir())
