"""Compares a primitive on some device with the CPU: values, gradients, dtypes and shapes."""

import numpy as np

import minigrad as mg
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from tests.samples import SAMPLES

RTOL = {"float16": 4e-3, "float32": 3e-6, "float64": 1e-12}


def on(device, sample):
    inputs = [mg.asarray(x, device=device) if isinstance(x, np.ndarray) else x for x in sample.inputs]
    attrs = sample.attrs | ({"device": mg.as_device(device)} if "device" in sample.attrs else {})
    for x in inputs:
        if isinstance(x, mg.Tensor) and x.dtype.kind == "f":
            x.requires_grad = True
    result = emit(P[sample.op], *inputs, **attrs)
    return inputs, result if isinstance(result, tuple) else (result,)


def gradients(inputs, results):
    tracked = [x for x in inputs if isinstance(x, mg.Tensor) and x.requires_grad]
    out = next((r for r in results if r.requires_grad), None)
    if out is None:
        return []
    weights = mg.asarray(np.cos(np.arange(out.size)).reshape(out.shape), dtype=out.dtype, device=out.device)
    return [g for g in mg.gradients(out, tracked, weights, allow_unused=True) if g is not None]


def compare_with_cpu(name, device, array_class):
    """Run all samples of a primitive on the device and on the CPU."""
    for sample in SAMPLES[name]:
        inputs, results = on(device, sample)
        theirs, expected = on("cpu", sample)
        if name in ("eigh", "svd"):  # the sign of each vector is left open
            results, expected = [r * r for r in results], [r * r for r in expected]
        pairs = [*zip(results, expected), *zip(gradients(inputs, results), gradients(theirs, expected))]
        for ours, wanted in pairs:
            assert type(ours.data) is array_class and ours.device == device, str(sample)
            assert (ours.shape, ours.dtype) == (wanted.shape, wanted.dtype), str(sample)
            ours, wanted = ours.numpy_copy(), wanted.numpy_copy()
            rtol = RTOL.get(ours.dtype.name, 0)
            np.testing.assert_allclose(ours, wanted, rtol=rtol, atol=rtol, err_msg=str(sample))
            if name in ("remainder", "floor_divide", "floor", "round"):
                number = ~np.isnan(wanted)  # the sign of a nan is left open
                np.testing.assert_array_equal(
                    np.signbit(ours)[number], np.signbit(wanted)[number], err_msg=str(sample)
                )
