"""Whole programs on a real GPU give the results of the CPU: composed functions, transformations, examples."""

from contextlib import nullcontext

import numpy as np
import pytest

import minigrad as mg
from minigrad.examples import EXAMPLES, run
from tests.composed import COMPOSED
from tests.composed_nn import plain  # noqa: F401 - adds its samples

pytestmark = pytest.mark.gpu
SHAPED_BY_VALUES = {"nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"}  # not compiled
NEAR = {"float16": 2e-2, "float32": 2e-4, "float64": 1e-9}


def as_list(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def near(ours, wanted, about):
    for mine, theirs in zip(as_list(ours), as_list(wanted), strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), about
        limit = NEAR.get(mine.dtype.name, 0)
        np.testing.assert_allclose(mine.numpy_copy(), theirs.numpy_copy(), rtol=limit, atol=limit, err_msg=about)


def tensors(arrays, device):
    return [
        mg.asarray(x, device=device, requires_grad=x.dtype.kind == "f") if isinstance(x, np.ndarray) else x
        for x in arrays
    ]


def gradients(results, inputs):
    """The gradients of a weighted sum of all results."""
    smooth = [r for r in as_list(results) if r.requires_grad]
    tracked = [x for x in inputs if isinstance(x, mg.Tensor) and x.requires_grad]
    if not smooth or not tracked:
        return []
    total = sum((r * mg.asarray(np.cos(np.arange(r.size)).reshape(r.shape), dtype=r.dtype, device=r.device)).sum()
                for r in smooth)
    return [g for g in mg.gradients(total, tracked, allow_unused=True) if g is not None]


@pytest.mark.parametrize("name", sorted(COMPOSED))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_composed_functions_give_the_results_of_the_cpu(name):
    for number, sample in enumerate(COMPOSED[name]):
        inputs = tensors(sample.arrays, "cpu")
        with mg.device("cpu"):
            wanted = sample.call(mg, *inputs)
            theirs = gradients(wanted, inputs) if sample.smooth else []
        about = f"{name}, sample {number}"
        with mg.device("cuda"):
            inputs = tensors(sample.arrays, "cuda")
            ours = sample.call(mg, *inputs)
            assert all(r.device == "cuda" for r in as_list(ours)), about
            near(ours, wanted, about)
            near(gradients(ours, inputs) if sample.smooth else [], theirs, f"gradients of {about}")


@pytest.mark.parametrize("name", sorted(COMPOSED.keys() - SHAPED_BY_VALUES))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_compiled_functions_give_the_results_of_the_cpu(name):
    sample = max(COMPOSED[name], key=lambda s: sum(np.size(x) for x in s.arrays))
    with mg.device("cpu"):
        wanted = sample.call(mg, *tensors(sample.arrays, "cpu"))
    with mg.device("cuda"):
        near(mg.jit(lambda *xs: sample.call(mg, *xs))(*tensors(sample.arrays, "cuda")), wanted, name)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_reach_their_scores(name, jit):
    score = run(name, jit=jit, device="cuda", quick=True)
    assert EXAMPLES[name].reached(score, quick=True), score


X = np.random.default_rng(0).normal(size=(4, 3))


def newton(x):
    return mg.fori_loop(0, 5, lambda i, y: y - (y * y - x) / (2 * y), x * 0 + 1)


TRANSFORMED = {
    "vmap": lambda x: mg.vmap(lambda row: mg.softmax(row) @ row)(x),
    "jvp": lambda x: mg.jvp(lambda x: mg.tanh(x @ x.T), (x,), (x * 2,)),
    "jacobian": lambda x: mg.jacobian(lambda x: mg.exp(x).sum(0))(x),
    "hessian": lambda x: mg.hessian(lambda x: (mg.tanh(x) ** 2).sum())(x),
    "cond": lambda x: mg.cond(x.sum() > 0, mg.exp, mg.tanh, x),
    "while_loop": lambda x: mg.while_loop(lambda y: (y * y).sum() < 100, lambda y: y * 1.5, x),
    "fori_loop": lambda x: newton(x * x + 1),
    "gradient of fori_loop": lambda x: mg.grad(lambda x: newton(x).sum())(x * x + 1),
    "scan": lambda x: mg.scan(lambda c, row: (mg.tanh(c + row), c * row), x[0], x),
    "gradient of scan": lambda x: mg.grad(lambda x: mg.scan(lambda c, r: (mg.tanh(c + r), c), x[0], x)[0].sum())(x),
    "checkpoint": lambda x: mg.grad(lambda x: mg.checkpoint(lambda x: mg.exp(mg.sin(x)))(x).sum())(x),
    "written in place": lambda x: written(x * 1),
    "linear algebra": lambda x: mg.linalg.inv(x @ x.T + mg.eye(4, dtype=x.dtype)),
    "sorted": lambda x: mg.sort(x, axis=0),
}


def written(x):
    x[1:] += x[:-1] * 2
    x[:, mg.asarray([0, 2], device=x.device)] = 7.0
    return x


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations_give_the_results_of_the_cpu(name, jit):
    f = TRANSFORMED[name]
    with mg.device("cpu"):
        wanted = f(mg.asarray(X))
    with mg.device("cuda"):
        near((mg.jit(f) if jit else f)(mg.asarray(X)), wanted, name)


def test_graph_mode():
    found = {}
    for device, mode in (("cpu", nullcontext), ("cuda", mg.graph)):
        with mg.device(device), mode():
            x = mg.asarray(X, requires_grad=True)
            loss = mg.softmax(x @ x.T).sum(1).mean() + mg.tanh(x).sum()
            loss.backward()
            found[device] = [loss, x.grad]
    near(found["cuda"], found["cpu"], "graph mode")


def test_tensors_are_exchanged_with_torch_without_a_copy():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no CUDA here")
    theirs = torch.arange(6.0, device="cuda").reshape(2, 3)
    ours = mg.from_dlpack(theirs, copy=False)
    assert ours.device == "cuda" and ours.tolist() == theirs.tolist()
    theirs[0, 0] = 9.0
    torch.cuda.synchronize()
    assert ours[0, 0].item() == 9.0
    back = torch.from_dlpack(mg.asarray(X, device="cuda"))
    assert back.device.type == "cuda" and back.tolist() == X.tolist()


def test_checkpoints_of_a_gpu_are_loaded_on_a_cpu(tmp_path):
    with mg.device("cuda"):
        model = mg.nn.Linear(3, 2)
    mg.io.save_file(model.state_dict(), tmp_path / "model.safetensors")
    there = mg.nn.Linear(3, 2)
    there.load_state_dict(mg.io.load_file(tmp_path / "model.safetensors"))
    assert there.weight.device == "cpu" and there.weight.tolist() == model.weight.tolist()


def losses(device, mixed, jit):
    mg.random.seed(0)
    with mg.device(device):
        model = mg.nn.Sequential(mg.nn.Linear(3, 16), mg.nn.GELU(), mg.nn.LayerNorm(16), mg.nn.Linear(16, 2))
        x, y = mg.asarray(X.astype(np.float32)), mg.asarray([0, 1, 1, 0])
        optimizer, scaler = mg.optim.Adam(model.parameters(), lr=0.01), mg.train.GradScaler()

        def step():
            optimizer.zero_grad()
            with mg.train.autocast(enabled=mixed):
                loss = mg.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss

        run_step = mg.jit(step) if jit else step
        return [run_step().item() for _ in range(20)]


@pytest.mark.parametrize("jit", [False, True])
def test_mixed_precision_trains_as_single_precision_does(jit):
    wanted = losses("cpu", mixed=False, jit=False)
    np.testing.assert_allclose(losses("cuda", mixed=True, jit=jit), wanted, rtol=0.03, atol=5e-3)
