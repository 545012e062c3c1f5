"""The CUDA device on a stand-in for CuPy: every primitive gives the results of the CPU although CuPy differs."""

import inspect
import pickle
import sys

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from minigrad.devices.cuda import CudaDevice
from minigrad.devices.cuda_kernels import divided
from minigrad.support.errors import ConversionError, DeviceError, IndexingError, MatrixError, MutationError
from tests.devices import standin
from tests.devices.comparing import compare_with_cpu
from tests.samples import SAMPLES


@pytest.mark.parametrize("index", ["cuda", "cuda:1"])
@pytest.mark.parametrize("name", sorted(SAMPLES))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_primitives_give_the_results_of_the_cpu(cuda, name, index):
    compare_with_cpu(name, index, standin.ndarray)


def test_cuda_computes_nothing_on_the_cpu(cuda):
    with pytest.raises(TypeError, match="Unsupported type"):
        cuda.kernels["add"](cuda.from_numpy(np.ones(2)), np.ones(2))
    standin.CALLS.clear()
    (mg.ones(2, device="cuda") + 1.0).tanh()
    assert standin.CALLS == ["cupy_add", "cupy_tanh"]


@pytest.mark.parametrize("index", [5, -4])
def test_an_index_out_of_range_raises_where_cupy_wraps_around(cuda, index):
    x = mg.arange(3, device="cuda")
    i = mg.asarray([0, index], device="cuda")
    message = rf"index {index} is out of range for a dimension of size 3\n  Expected: integers from -3 to 2"
    for attempt in (
        lambda: x[i],
        lambda: mg.take(x, i),
        lambda: x.__setitem__(i, 7),
        lambda: mg.scatter_add(x, i, mg.asarray([1, 1], device="cuda")),
    ):
        with pytest.raises(IndexingError, match=message):
            attempt()
    assert x.tolist() == [0, 1, 2]
    with pytest.raises(IndexingError, match="out of range for dimension 0 of size 3"):
        x[index]


def test_the_check_of_indices_can_be_left_out(cuda, monkeypatch):
    monkeypatch.setattr(cuda, "check_indices", False)
    assert mg.arange(3, device="cuda")[mg.asarray([4], device="cuda")].tolist() == [1]


def test_indices_of_small_types_are_compared_with_large_sizes(cuda):
    x = mg.arange(1000, device="cuda")
    assert x[mg.asarray([-1, 100], dtype="int8", device="cuda")].tolist() == [999, 100]
    assert x[mg.asarray([255], dtype="uint8", device="cuda")].item() == 255


def test_put_with_equal_indices_keeps_the_last(cuda):
    x = mg.zeros(3, device="cuda")
    x[mg.asarray([1, 1, -2], device="cuda")] = mg.asarray([5.0, 6.0, 7.0], device="cuda")
    assert x.tolist() == [0.0, 7.0, 0.0]
    y = mg.zeros((2, 2), device="cuda")
    y[mg.asarray([[0], [0]], device="cuda"), mg.asarray([1, 1], device="cuda")] = mg.asarray(
        [[1.0, 2.0], [3.0, 4.0]], device="cuda"
    )
    assert y.tolist() == [[0.0, 4.0], [0.0, 0.0]]


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("scatter", [mg.scatter_add, mg.scatter_max])
def test_scatters_support_every_dtype(scatter, cuda, dtype):
    base, value, index = np.array([1, 0, 100]).astype(dtype), np.array([1, 100, 100]).astype(dtype), np.array([0, 2, 2])
    ours = scatter(*(mg.asarray(a, device="cuda") for a in (base, index, value)))
    wanted = scatter(*map(mg.asarray, (base, index, value)))
    assert ours.dtype == dtype
    assert ours.tolist() == wanted.tolist()


@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_wide_shifts_are_numpys(cuda, name, dtype):
    x = np.array([1, -3, 100]).astype(dtype)
    shifts = np.array([1, 7, 8, 31, 64, 100]).astype(dtype)
    for y in (shifts[:, None], 3, 70):
        arrays = [a if isinstance(a, int) else mg.asarray(a, device="cuda") for a in (x, y)]
        on_cpu = [a if isinstance(a, int) else mg.asarray(a) for a in (x, y)]
        function = getattr(mg, name)
        assert function(*arrays).tolist() == function(*on_cpu).tolist()


def test_division_of_floats_is_pythons():
    values = np.array([0.0, -0.0, 1.0, -1.0, 0.1, 0.7, -2.5, 1e30, np.inf, -np.inf, np.nan])
    x, y = values[:, None], values
    with np.errstate(all="ignore"):
        for ours, wanted in zip(divided(np, x, y), (np.floor_divide(x, y), np.remainder(x, y))):
            np.testing.assert_array_equal(ours, wanted)
            np.testing.assert_array_equal(np.signbit(ours)[~np.isnan(ours)], np.signbit(wanted)[~np.isnan(wanted)])


def test_a_negative_power_of_an_integer_is_an_error_as_on_the_cpu(cuda):
    for device in ("cpu", "cuda"):
        with pytest.raises(ConversionError, match="pow: Integers to negative integer powers are not allowed"):
            mg.asarray([2, 3], device=device) ** mg.asarray([1, -1], device=device)


def test_a_singular_matrix_is_an_error_as_on_the_cpu(cuda):
    for device in ("cpu", "cuda"):
        with pytest.raises(MatrixError, match="solve: the matrix is singular"):
            mg.linalg.solve(mg.ones((2, 2), device=device), mg.ones((2, 1), device=device))


def test_a_broadcast_view_is_not_written_into(cuda):
    view = mg.broadcast_to(mg.zeros(1, device="cuda"), (3,))
    with pytest.raises(MutationError, match="several of its elements are the same memory"):
        view[0] = 1.0
    same = mg.broadcast_to(mg.zeros((1, 1), device="cuda"), (1, 1))
    same[0, 0] = 1.0
    assert same.tolist() == [[1.0]]


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_views_writes_and_gradients_work(cuda, device):
    w = mg.asarray([1.0, 2.0, 3.0], device=device, requires_grad=True)
    h = w * 2
    h[1:] = h[:2] * w[1:]
    (h * h).sum().backward()
    assert w.grad.device == device
    reference = mg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    h = reference * 2
    h[1:] = h[:2] * reference[1:]
    (h * h).sum().backward()
    assert w.grad.tolist() == reference.grad.tolist()
    x = mg.zeros(4, device=device)
    view = x[1:3]
    view += 5
    view *= mg.asarray([1, 2], device=device)
    x[0] = 1.0
    x[3:] = x[0]
    x[mg.asarray([0, 0], device=device)] = 3.0
    assert x.tolist() == [3.0, 5.0, 10.0, 1.0]
    turned = mg.asarray([[1.0, 2.0], [3.0, 4.0]], device=device).T + 1
    turned[0, 1] = 0.0
    assert turned.data._device == cuda.index + (device == "cuda:1") and turned.tolist() == [[2.0, 0.0], [3.0, 5.0]]


def test_arrays_that_are_large_come_from_cupys_pool(cuda):
    x = mg.ones(100_000, device="cuda")
    standin.CALLS.clear()
    assert mg.tanh(x).shape == (100_000,)
    assert standin.CALLS == ["cupy_tanh"], "one call, not blocks"


def test_transfers_between_gpus_and_back(cuda):
    x = mg.asarray([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    there = x.to("cuda").T.to("cuda:1")
    assert there.device == "cuda:1" and there.data._device == 1 and there.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    (there * mg.asarray([[1.0, 2.0], [3.0, 4.0]], device="cuda:1")).sum().backward()
    assert x.grad.device == "cpu" and x.grad.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    copy = x.detach().to("cuda")
    x.detach()[...] = 0
    assert copy.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_values_are_shown_and_given_out(cuda):
    x = mg.asarray([1.0, 2.0], device="cuda")
    assert repr(x) == "Tensor([1., 2.], shape=(2,), dtype=float32, device=cuda)"
    assert float(x[0]) == 1.0 and bool(x[1] > 1) and x.sum().item() == 3.0
    assert type(x.numpy_copy()) is np.ndarray
    with pytest.raises(ConversionError, match=r'on cuda\n  Hint: x.to\("cpu"\).numpy\(\)'):
        x.numpy()


def test_random_numbers_are_those_of_the_cpu(cuda):
    for dtype in ("float32", "float64"):
        numbers, wanted = (
            emit(P.random, shape=(5,), dtype=np.dtype(dtype), key=5, block=2, device=mg.as_device(device))
            for device in ("cuda", "cpu")
        )
        assert numbers.tolist() == wanted.tolist()


def test_synchronize_waits_for_this_gpu(cuda):
    standin.SYNCHRONIZED.clear()
    mg.as_device("cuda:1").synchronize()
    assert standin.SYNCHRONIZED == [1]


def test_a_device_is_pickled_by_its_name(cuda):
    assert pickle.loads(pickle.dumps(cuda)) is cuda


# Missing packages and GPUs --------------------------------------------------------------------------------------------


def test_missing_cupy_is_an_error_that_says_how_to_install_it(no_cupy):
    with pytest.raises(DeviceError) as caught:
        mg.ones(2).to("cuda")
    message = str(caught.value)
    assert "the device 'cuda' can't be used here: CuPy is not installed" in message
    assert 'pip install "minigrad[gpu]"' in message and "NVIDIA driver" in message
    assert "an NVIDIA driver" in message
    assert f"{__file__}:" in message and 'mg.ones(2).to("cuda")' in message


def test_error_on_a_mac_says_that_there_is_no_cuda(no_cupy, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(DeviceError, match="there is no CUDA on macOS"):
        mg.zeros(2, device="cuda")


def test_cupy_that_does_not_start_is_explained(devices, monkeypatch, tmp_path):
    (tmp_path / "cupy.py").write_text("raise ImportError('libcudart.so.13: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    with pytest.raises(DeviceError, match=r"CuPy does not start: libcudart.so.13.*\n.*pip install"):
        mg.as_device("cuda")


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ("cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version",
         r"no NVIDIA driver that works with it \(cudaErrorInsufficientDriver: .*\)\n.*install or update the NVIDIA"),
        ("cudaErrorNoDevice: no CUDA-capable device is detected",
         r"the NVIDIA driver finds no GPU \(cudaErrorNoDevice: .*\)\n.*nvidia-smi"),
    ],
)
def test_cupy_without_a_driver_or_a_gpu_is_explained(machine, failure, message):
    machine(failure=failure)
    with pytest.raises(DeviceError, match=message):
        mg.ones(2).to("cuda")
    assert "cuda" not in mg.available_devices()


def test_device_number_beyond_the_gpus_is_an_error(machine):
    machine(count=2)
    with pytest.raises(DeviceError, match=r"no device named 'cuda:7': this machine has 2 GPUs\n  Expected: cuda, cud"):
        mg.ones(2).to("cuda:7")
    machine(count=1)
    with pytest.raises(DeviceError, match=r"no device named 'cuda:1': this machine has 1 GPU\n  Expected: cuda\n"):
        CudaDevice("cuda:1")
    assert "cuda" in mg.available_devices()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ImportError("Failure finding libcublasLt.so.13"),
         r"CuPy does not find a library of CUDA: Failure finding .*\n.*\n.*pip install \"cupy-cuda13x\[ctk\]\""),
        (standin.CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered"),
         r"CUDA reports an error, of this operation or one before it: cudaErrorIllegalAddress.*\n.*\n.*synchronize"),
        (MemoryError("Out of memory allocating 1,024 bytes"), "no memory is left on cuda for the result: Out of"),
    ],
)
def test_errors_of_the_device_are_explained(cuda, error, message):
    def matmul(x, y):
        raise error

    x = mg.ones((2, 2), device="cuda")
    with mg.devices.register_kernel("matmul", "cuda", matmul), pytest.raises(DeviceError, match=f"matmul: {message}"):
        x @ x


# The stand-in ---------------------------------------------------------------------------------------------------------


def test_the_stand_in_has_only_what_cupy_has():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    cupyx, special = pytest.importorskip("cupyx"), pytest.importorskip("cupyx.scipy.special")
    mine = standin.modules()
    for name in vars(mine["cupy"]):
        if name.startswith("__") or name in ("cuda", "linalg"):
            continue
        ours, real = getattr(mine["cupy"], name), getattr(cupy, name)
        if isinstance(ours, standin.ufunc):
            assert type(real).__name__ == "ufunc" and real.name == ours.name and real.nin == ours.nin, name
        elif inspect.isfunction(ours) and name not in ("matmul", "result_type"):
            assert list(inspect.signature(ours).parameters) == list(inspect.signature(real).parameters), name
    own = {"_device", "_host", *dir(object), "__slots__", "__weakref__", "__static_attributes__", "__firstlineno__"}
    assert set(vars(standin.ndarray)) - own <= set(dir(cupy.ndarray))
    for name in ("solve", "cholesky", "slogdet", "eigh", "svd", "qr", "pinv"):
        assert callable(getattr(cupy.linalg, name))
    assert cupy.cuda.Device.synchronize and cupy.cuda.Device.__enter__ and cupy.cuda.runtime.getDeviceCount
    assert issubclass(cupy.cuda.runtime.CUDARuntimeError, RuntimeError)
    assert "linalg" in inspect.signature(cupyx.errstate).parameters
    assert special.erf.name == "cupyx_scipy_special_erf"
    assert cupy.RawModule and cupy.linalg.LinAlgError is np.linalg.LinAlgError
    for name, types in (("add", standin.ATOMIC_ADD), ("maximum", standin.ATOMIC_MAX)):
        assert getattr(cupy, name).at and types
