"""The CUDA device on a real GPU: tests that the stand-in cannot replace.  Skipped, with the reason, without a GPU."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.support.errors import DeviceError, IndexingError
from tests.devices.comparing import compare_with_cpu
from tests.samples import SAMPLES

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def gpu():
    try:
        device = mg.as_device("cuda")
    except DeviceError as error:
        pytest.skip(str(error).splitlines()[0])
    return device


@pytest.fixture(scope="module")
def second_gpu(gpu):
    try:
        return mg.as_device("cuda:1")
    except DeviceError as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.mark.parametrize("name", sorted(SAMPLES))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_primitives_give_the_results_of_the_cpu(gpu, name):
    compare_with_cpu(name, "cuda", gpu.cupy.ndarray)


@pytest.mark.parametrize(
    "name", ["add", "gather", "put", "scatter_add", "scatter_max", "sum", "matmul", "full", "slice", "argsort", "sort"]
)
def test_second_gpu_gives_the_same_results(second_gpu, name):
    compare_with_cpu(name, "cuda:1", second_gpu.cupy.ndarray)


def test_gpus_exchange_arrays(second_gpu):
    x = mg.asarray(np.arange(6.0).reshape(2, 3), device="cuda")
    there = x.T.to("cuda:1")
    assert there.data.device.id == 1 and there.tolist() == x.T.tolist() and there.to("cuda").tolist() == x.T.tolist()


def test_indices_out_of_range_raise(gpu):
    x = mg.arange(3, device="cuda")
    for bad in (3, -4):
        i = mg.asarray([0, bad], device="cuda")
        for attempt in (lambda: x[i], lambda: x.__setitem__(i, 1), lambda: mg.scatter_add(x, i, i)):  # noqa: B023
            with pytest.raises(IndexingError, match=f"index {bad} is out of range for a dimension of size 3"):
                attempt()


def test_put_with_many_equal_indices_keeps_the_last(gpu):
    index = np.random.default_rng(0).integers(0, 50, 100_000)
    x = mg.zeros(50, dtype="int64", device="cuda")
    x[mg.asarray(index, device="cuda")] = mg.arange(100_000, device="cuda")
    wanted = np.zeros(50, np.int64)
    wanted[index] = np.arange(100_000)
    assert x.tolist() == wanted.tolist()


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("scatter", [mg.scatter_add, mg.scatter_max])
def test_scatters_support_every_dtype(scatter, gpu, dtype):
    base, value, index = np.array([1, 0, 100]).astype(dtype), np.array([1, 100, 100]).astype(dtype), np.array([0, 2, 2])
    ours = scatter(*(mg.asarray(a, device="cuda") for a in (base, index, value)))
    assert ours.dtype == dtype and ours.tolist() == scatter(*map(mg.asarray, (base, index, value))).tolist()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_wide_shifts_are_numpys(gpu, dtype):
    x, y = np.array([1, -3, 100]).astype(dtype), np.array([1, 7, 8, 31, 64, 100]).astype(dtype)[:, None]
    for function in (mg.bitwise_left_shift, mg.bitwise_right_shift):
        ours = function(mg.asarray(x, device="cuda"), mg.asarray(y, device="cuda"))
        assert ours.tolist() == function(mg.asarray(x), mg.asarray(y)).tolist()


def test_random_numbers_are_those_of_the_cpu(gpu):
    for dtype in ("float32", "float64"):
        numbers = []
        for device in ("cpu", "cuda"):
            mg.random.seed(7)
            numbers.append(mg.random.uniform((1001,), dtype=dtype, device=device).tolist())
        assert numbers[0] == numbers[1]


def test_training_gives_what_the_cpu_gives(gpu):
    rng = np.random.default_rng(0)
    data, start = rng.standard_normal((32, 10)), rng.standard_normal((10, 4))
    losses = {}
    for device in ("cpu", "cuda"):
        x, w = mg.asarray(data, device=device), mg.asarray(start, device=device, requires_grad=True)
        losses[device] = []
        for _ in range(10):
            loss = mg.log_softmax((x @ w).tanh())[:, 0].mean()
            loss.backward()
            with mg.no_grad():
                w += w.grad * 0.5
            w.grad = None
            losses[device].append(loss.item())
    np.testing.assert_allclose(losses["cuda"], losses["cpu"], rtol=1e-10)


def test_results_that_are_large_come_from_cupys_pool(gpu):
    x = mg.ones(4_000_000, device="cuda")
    (x + 1).sum().item()
    gpu.synchronize()
    held = gpu.cupy.get_default_memory_pool().total_bytes()
    for _ in range(20):
        (x + 1).sum().item()
    assert gpu.cupy.get_default_memory_pool().total_bytes() == held


def test_memory_shortage_is_an_error_that_names_the_operation(gpu):
    with pytest.raises(DeviceError, match="zeros: no memory is left on cuda"):
        mg.zeros(gpu.gpu.mem_info[1] // 8 + 1, dtype="float64", device="cuda")
