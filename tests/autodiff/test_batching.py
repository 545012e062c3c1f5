"""vmap: every primitive with a batch axis equals a loop, and a large batch takes as many kernels as one example."""

import random

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.emit import EAGER, Eager, emit
from minigrad.core.mode import switch
from minigrad.core.primitive import P
from minigrad.support.errors import MutationError
from tests.samples import SAMPLES

COUNT = 3
CASES = [s for samples in SAMPLES.values() for s in samples if P[s.op].kind not in ("creation", "random")]


def apply(sample, tensors):
    return emit(P[sample.op], *tensors, **sample.attrs)


def moved(array, k):
    """The k-th example, made from a sample's input: other values, with the same signs and in the same order."""
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
        return array
    return (array * (1 + 0.125 * k)).astype(array.dtype)


def test_primitives_have_samples_to_batch():
    assert {s.op for s in CASES} >= {op.name for op in P if op.kind in ("elementwise", "reduce", "view", "contract")}


@pytest.mark.parametrize("sample", CASES, ids=str)
def test_batched_results_equal_a_loop(sample):
    arrays = [i for i, x in enumerate(sample.inputs) if isinstance(x, np.ndarray)]
    if not arrays:
        pytest.skip("no tensor to batch")
    for batched in [arrays] if len(arrays) == 1 else [arrays, arrays[:1], arrays[-1:]]:
        examples = [
            [moved(x, k) if i in batched else x for i, x in enumerate(sample.inputs)] for k in range(COUNT)
        ]
        singles = [apply(sample, [mg.asarray(x) if isinstance(x, np.ndarray) else x for x in e]) for e in examples]
        stacked = [
            mg.asarray(np.stack([e[i] for e in examples])) if i in batched
            else mg.asarray(x) if i in arrays else x
            for i, x in enumerate(sample.inputs)
        ]
        tensors = [stacked[i] for i in arrays]

        def one(*given, sample=sample, stacked=stacked, arrays=arrays):
            inputs = list(stacked)
            for i, x in zip(arrays, given):
                inputs[i] = x
            return apply(sample, inputs)

        out = mg.vmap(one, in_axes=tuple(0 if i in batched else None for i in arrays))(*tensors)
        expected = np.stack([s.numpy_copy() for s in singles])
        assert out.shape == expected.shape
        assert out.dtype == expected.dtype
        loose = 1e-2 if out.dtype == mg.float16 else 1e-5
        np.testing.assert_allclose(out.numpy_copy(), expected, rtol=loose, atol=loose, equal_nan=True)


class Counting(Eager):
    """Eager mode that counts the kernels it runs."""

    def __init__(self):
        self.count = 0

    def compute(self, op, values, attrs, device):
        self.count += 1
        return super().compute(op, values, attrs, device)


def kernels_run(function, *args):
    counting = Counting()
    with switch(interpreter=counting):
        function(*args)
    return counting.count


def model(x, w):
    h = mg.tanh((x * w).sum(axis=-1)) if x.ndim == 2 else mg.tanh((w * x).sum(axis=1))
    h[0] = 2.0 * h[1]
    return mg.sort(h)[..., ::2].sum() + mg.concat([h, h]).max()


def test_batches_of_a_thousand_run_as_many_kernels_as_one_example():
    w = mg.asarray(np.random.default_rng(0).standard_normal((4, 3)))
    for function in (model, mg.grad(model)):
        counts = {
            n: kernels_run(mg.vmap(function, in_axes=(0, None)), mg.ones((n, 3), dtype=mg.float64), w)
            for n in (1, 1000)
        }
        assert counts[1] == counts[1000] > 5


@pytest.mark.slow
def test_the_number_of_kernels_does_not_depend_on_where_tensors_lie():
    """A new tensor may get the address, and so the id, of a tensor that the walk has freed."""
    w = mg.asarray(np.random.default_rng(0).standard_normal((4, 3)))
    x = mg.ones((2, 3), dtype=mg.float64)
    rng, counts = random.Random(0), set()
    for _ in range(100):
        holes = [mg.ones(1) for _ in range(rng.randrange(60))]
        rng.shuffle(holes)
        del holes[::2]
        counts.add(kernels_run(mg.vmap(mg.grad(model), in_axes=(0, None)), x, w))
    assert len(counts) == 1


def test_counting_does_not_change_eager_results():
    assert kernels_run(lambda x: x + 1, mg.ones(2)) == 1
    assert EAGER.__class__ is Eager


def test_vmap_in_axes_and_out_axes():
    x = mg.asarray(np.arange(24.0).reshape(2, 3, 4))
    out = mg.vmap(lambda a: a.sum(axis=0), in_axes=1, out_axes=1)(x)
    np.testing.assert_array_equal(out.numpy(), x.numpy().sum(axis=0).T)
    out = mg.vmap(lambda a, b: a * b, in_axes=(-1, None))(x, mg.asarray(2.0))
    np.testing.assert_array_equal(out.numpy(), np.moveaxis(x.numpy(), -1, 0) * 2)


def test_vmap_takes_containers_and_captured_tensors():
    shared = mg.asarray([1.0, 10.0])
    out = mg.vmap(lambda d: {"y": d["x"] * shared, "n": (d["i"], 5)})({"x": mg.ones((3, 2)), "i": mg.arange(3)})
    assert out["y"].tolist() == [[1.0, 10.0]] * 3
    assert out["n"][0].tolist() == [0, 1, 2]
    assert out["n"][1] == 5


def test_results_that_do_not_depend_on_the_batch_are_repeated():
    assert mg.vmap(lambda x: mg.ones(2) * 3)(mg.zeros(4)).tolist() == [[3.0, 3.0]] * 4


def test_vmap_can_be_nested():
    a, b = mg.asarray([1.0, 2.0, 3.0]), mg.asarray([10.0, 20.0])
    table = mg.vmap(lambda x: mg.vmap(lambda y: x * y + a.sum())(b))(a)
    np.testing.assert_array_equal(table.numpy(), a.numpy()[:, None] * b.numpy() + 6)


def test_gradients_per_example():
    rng = np.random.default_rng(1)
    w, xs = mg.asarray(rng.standard_normal(3)), mg.asarray(rng.standard_normal((5, 3)))

    def loss(w, x):
        return mg.tanh((w * x).sum()) ** 2

    rows = mg.vmap(mg.grad(loss), in_axes=(None, 0))(w, xs)
    for row, x in zip(rows, xs):
        np.testing.assert_allclose(row.numpy(), mg.grad(loss)(w, x).numpy(), rtol=1e-12)


def test_gradients_flow_out_of_vmap_into_captured_tensors():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    mg.vmap(lambda x: (w * x).sum() ** 2)(mg.ones((3, 2))).sum().backward()
    assert w.grad.tolist() == [18.0, 18.0]


def test_assignment_inside_vmap():
    def step(x, i):
        y = x * 1
        y[i] = 0.0
        y[mg.asarray([0, 1])] += 1.0
        view = y[1:]
        view *= 10.0
        return y

    x, i = np.arange(6.0).reshape(2, 3), np.array([2, 0])
    out = mg.vmap(step)(mg.asarray(x), mg.asarray(i))
    for row, a, j in zip(out.numpy(), x, i):
        expected = a.copy()
        expected[j] = 0
        expected[[0, 1]] += 1
        expected[1:] *= 10
        np.testing.assert_array_equal(row, expected)


def test_vmap_errors():
    x = mg.ones((3, 2))
    with pytest.raises(mg.TraceError, match=r"bool\(\) needs the value of a tensor inside vmap, which has 3 values"):
        mg.vmap(lambda a: a if a.sum() > 0 else -a)(x)
    with pytest.raises(mg.ShapeError, match="different batch sizes"):
        mg.vmap(lambda a, b: a)(x, mg.ones(2))
    with pytest.raises(mg.ConversionError, match="2 arguments and 1 in_axes"):
        mg.vmap(lambda a, b: a, in_axes=(0,))(x, x)
    leaked = []
    mg.vmap(lambda a: leaked.append(a) or a)(x)
    with pytest.raises(mg.TraceError, match="inside vmap"):
        leaked[0].tolist()
    with pytest.raises(mg.TraceError, match="after that has ended"):
        leaked[0] + 1


@pytest.mark.parametrize("tracked", [False, True])
def test_a_tensor_from_outside_takes_in_no_batched_value(tracked):
    buffer = mg.zeros(3, requires_grad=tracked) * 1
    for write in (
        lambda x: buffer.__iadd__(x),
        lambda x: buffer.__setitem__(0, x),
        lambda x: buffer.__setitem__(x.astype(mg.int64), 1.0),
    ):
        with pytest.raises(MutationError, match=r"from outside, of shape \(3,\), cannot store a value inside vmap"):
            mg.vmap(lambda x, write=write: (write(x), x)[1])(mg.ones(2))
    assert buffer.tolist() == [0, 0, 0]
