"""Every primitive and every composed function has the same results in graph mode, under jit and eagerly: values,
gradients, and gradients of gradients."""

from contextlib import nullcontext

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from tests.composed import COMPOSED
from tests.composed_nn import plain  # noqa: F401 - adds its samples
from tests.samples import SAMPLES

# shapes depend on values
BY_VALUE = {"bincount", "unique_all", "unique_counts", "unique_inverse", "unique_values", "nonzero"}


def calls():
    """(name, number, function of tensors, arrays) for all samples."""
    for name, samples in SAMPLES.items():
        for number, sample in enumerate(samples):
            places = [i for i, x in enumerate(sample.inputs) if isinstance(x, np.ndarray)]

            def call(*tensors, sample=sample, places=places):
                inputs = list(sample.inputs)
                for i, t in zip(places, tensors):
                    inputs[i] = t
                return emit(P[sample.op], *inputs, **sample.attrs)

            yield name, number, call, [sample.inputs[i] for i in places]
    for name, composed in COMPOSED.items():
        for number, sample in enumerate(composed):
            if name not in BY_VALUE and all(isinstance(x, np.ndarray) for x in sample.arrays):
                yield name, number, (lambda *ts, call=sample.call: call(mg, *ts)), list(sample.arrays)


BY_NAME = {}
for _name, _number, _call, _arrays in calls():
    BY_NAME.setdefault(_name, []).append((_number, _call, _arrays))


def as_list(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def computed(call, arrays, order):
    """The results, the gradients of their sum of squares, and the gradients of those, as one list of tensors."""
    tensors = [mg.asarray(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    return differentiated(call, tensors, order)


def differentiated(call, tensors, order):
    results = [r for r in as_list(call(*tensors)) if isinstance(r, mg.Tensor)]
    found = list(results)
    number = summed(results)
    inputs = [t for t in tensors if t.requires_grad]
    for level in range(order):
        if number is None or not inputs:
            break
        gradients = mg.gradients(number, inputs, create_graph=level + 1 < order, allow_unused=True)
        gradients = [g for g in gradients if g is not None]
        found += gradients
        number = summed(gradients)
    return [f.detach() for f in found]


def summed(results):
    tracked = [r for r in results if r.requires_grad]
    return sum([(r.astype(mg.float64) ** 2).sum() for r in tracked]) if tracked else None


def in_graph_mode(call, arrays, order):
    with mg.graph():
        return computed(call, arrays, order)


def jitted(call, arrays, order):
    tensors = [mg.asarray(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    return mg.jit(lambda *ts: differentiated(call, ts, order))(*tensors)


def jitted_and_differentiated_outside(call, arrays, order):
    return computed(mg.jit(call), arrays, order)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [in_graph_mode, jitted, jitted_and_differentiated_outside])
@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_values_and_gradients_are_those_of_eager_mode(name, mode, monkeypatch):
    if mode is not jitted:  # native kernels once: compiling takes most of the time
        monkeypatch.setenv("MINIGRAD_BACKEND", "numpy")
    for number, call, arrays in BY_NAME[name]:
        mg.random.seed(5)
        expected = computed(call, arrays, 2)
        mg.random.seed(5)
        for ours, theirs in zip(mode(call, arrays, 2), expected, strict=True):
            what = f"{name}, sample {number}"
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), what
            if theirs.dtype.kind != "f":
                np.testing.assert_array_equal(ours.numpy_copy(), theirs.numpy_copy(), err_msg=what)
                continue
            precision = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-10}[theirs.dtype.name]
            scale = np.nan_to_num(np.abs(theirs.numpy_copy()), posinf=0).max(initial=1.0)
            np.testing.assert_allclose(
                ours.numpy_copy(), theirs.numpy_copy(), rtol=precision, atol=precision * scale, err_msg=what
            )


def test_a_captured_tensor_takes_its_history_along():
    for change in (lambda t, w: t.__imul__(w), lambda t, w: t.__setitem__(0, w[0] * w[1]),
                   lambda t, w: t.__setitem__(..., (t * w).exp())):
        gradients = []
        for mode in (nullcontext, mg.graph):
            t, w = mg.asarray([1.0, 2.0]), mg.asarray([0.5, 0.25], requires_grad=True)
            with mode():
                change(t, w)
                change(t, w)
            t.sum().backward()
            gradients.append(w.grad.numpy_copy())
        np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-6)
