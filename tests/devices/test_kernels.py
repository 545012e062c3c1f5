"""The dispatch table, kernels that users register, and devices that users define."""

import math
from collections import Counter

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.emit import emit
from minigrad.core.primitive import P
from minigrad.devices import CPU, Device, Kernels, kernels, register_device, register_kernel
from minigrad.devices import dispatch_table as tables
from minigrad.devices.kernel_table import dispatch_table
from minigrad.devices.library import KernelGroup, Library
from minigrad.support.errors import ConversionError, DeviceError, DtypeError
from tests.samples import SAMPLES, Sample

# The table ------------------------------------------------------------------------------------------------------------


def test_the_table_has_a_row_for_each_primitive_and_a_column_for_each_device():
    table = kernels("cpu", "cpu:1")
    assert list(table) == [op.name for op in P] and len(table) == len(P)
    assert table["tanh"] == {"cpu": "numpy.tanh", "cpu:1": "numpy.tanh"}
    assert table["gather"]["cpu"] == "gather"
    lines = str(table).splitlines()
    assert lines[0].split() == ["operation", "cpu", "cpu:1"] and len(lines) == len(P) + 1
    assert any(line.split() == ["add", "numpy.add", "numpy.add"] for line in lines)
    with pytest.raises(DtypeError, match="there is no primitive named 'tan'"):
        table["tan"]


def test_the_table_of_all_devices_in_use():
    mg.as_device("cpu:1")
    assert {"cpu", "cpu:1"} <= kernels()["add"].keys()


def test_devices_have_kernels_for_all_primitives(cuda):
    for op, row in kernels("cpu", "cpu:1", "cuda", "cuda:1").items():
        assert "–" not in row.values(), f"{op}: {row}"
    assert kernels("cuda")["tanh"]["cuda"].endswith("tanh")


def test_kernels_table_shows_missing_and_registered_kernels(devices):
    class Poor(Device):
        kind = "poor"

        def make_kernels(self):
            return {"add": np.add}

    def my_tanh(x):
        return x

    register_device("poor", Poor)
    register_kernel("tanh", "cpu", my_tanh)
    table = kernels("poor", "cpu")
    assert table["tanh"] == {"poor": "–", "cpu": "my_tanh *"}
    with pytest.raises(DeviceError, match="tanh has no kernel on the device poor"):
        mg.tanh(mg.asarray([1.0], device="poor"))
    with pytest.raises(DeviceError, match="multiply has no kernel on the device poor"):
        emit(P.multiply, mg.asarray([1.0], device="poor"), 2.0)


def test_the_table_draws_itself_in_a_notebook(devices):
    def sly(x):
        return x

    sly.__name__ = "<script>"
    register_kernel("tanh", "cpu", sly)
    html = kernels("cpu")._repr_html_()
    assert html.startswith("<table>") and html.count("<tr>") == len(P) + 1
    assert "<script>" not in html and "&lt;script&gt; *" in html
    assert isinstance(tables.kernels(), tables.KernelTable)


def test_primitives_have_exactly_one_kernel_each():
    groups = [each for each in Kernels.__mro__ if issubclass(each, KernelGroup)]
    defined = [name for each in groups for name, kernel in vars(each).items() if is_kernel(name, kernel)]
    assert Counter(defined) == Counter([*[op.name for op in P], "nonzero"]), "mg.nonzero runs outside programs only"
    assert dispatch_table(Kernels(CPU)).keys() == set(defined)


def is_kernel(name, kernel):
    return not name.startswith("_") and (callable(kernel) or isinstance(kernel, Library))


# Kernels of users -----------------------------------------------------------------------------------------------------


def seven(x):
    return np.full_like(x, 7)


def eight(x):
    return np.full_like(x, 8)


def test_a_kernel_runs_until_it_is_undone(devices):
    registration = register_kernel("tanh", "cpu", seven)
    assert mg.tanh(mg.ones(2)).tolist() == [7.0, 7.0]
    assert mg.tanh(mg.ones(2, device="cpu:1")).tolist() != [7.0, 7.0]
    assert repr(registration) == "<tanh on cpu: seven>"
    registration.undo()
    registration.undo()
    assert mg.tanh(mg.zeros(2)).tolist() == [0.0, 0.0]


def test_register_kernel_as_a_block_ends_with_an_error_too(devices):
    with pytest.raises(ZeroDivisionError), register_kernel("tanh", "cpu", seven):
        assert mg.tanh(mg.ones(1)).item() == 7.0
        raise ZeroDivisionError
    assert CPU.kernels["tanh"] is np.tanh


def test_the_last_one_registered_runs_in_whatever_order_they_are_undone(devices):
    first, second = register_kernel("tanh", "cpu", seven), register_kernel("tanh", "cpu", eight)
    assert mg.tanh(mg.ones(1)).item() == 8.0
    first.undo()
    assert mg.tanh(mg.ones(1)).item() == 8.0
    second.undo()
    assert mg.tanh(mg.zeros(1)).item() == 0.0


def test_a_kernel_for_a_kind_runs_on_devices_made_later_too(devices):
    with register_kernel("tanh", "cpu:*", seven):
        for name in ("cpu", "cpu:1", "cpu:77"):
            assert mg.tanh(mg.ones(1, device=name)).item() == 7.0
    for name in ("cpu", "cpu:1", "cpu:77"):
        assert mg.tanh(mg.zeros(1, device=name)).item() == 0.0


def test_a_device_object_names_its_device(devices):
    with register_kernel("tanh", mg.as_device("cpu:1"), seven):
        assert mg.tanh(mg.ones(1, device="cpu:1")).item() == 7.0 and mg.tanh(mg.zeros(1)).item() == 0.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("tan", "cpu", seven), DtypeError, "there is no primitive named 'tan'"),
        (("tanh", "tpu", seven), DeviceError, "there is no device named 'tpu'"),
        (("tanh", "tpu:*", seven), DeviceError, "there is no kind of device named 'tpu'\n  Expected: cpu, cuda"),
        (("tanh", "cpu", 7), ConversionError, "a kernel is a function, not int"),
    ],
)
def test_register_kernel_refuses_wrong_arguments(devices, arguments, error, message):
    with pytest.raises(error, match=message.replace("*", r"\*")):
        register_kernel(*arguments)
    assert not devices.REGISTRATIONS


def test_a_kernel_need_not_take_out(devices):
    calls = []

    def slow_add(x, y):
        calls.append(np.shape(x))
        return x + y

    with register_kernel("add", "cpu", slow_add):
        large = mg.ones(2_000_000) + 1.0
        x = mg.ones(3)
        x += 2.0
        assert calls == [(2_000_000,), (3,)]
    assert large[-1].item() == 2.0 and x.tolist() == [3.0, 3.0, 3.0]


def test_a_kernel_may_take_out(devices):
    outs = []

    def add(x, y, out=None):
        outs.append(out is not None)
        return np.add(x, y, out=out)

    with register_kernel("add", "cpu", add):
        mg.ones(2_000_000) + 1.0
        mg.ones(2) + 1.0
    assert outs == [True, False]


def test_memory_shortage_on_a_device_is_an_error(devices):
    def greedy(x):
        raise MemoryError("out of 16 GB")

    message = r"tanh: no memory is left on cpu:1 for the result: out of 16 GB\n  Got: x \(2,\) float32 on"
    with register_kernel("tanh", "cpu:1", greedy), pytest.raises(DeviceError, match=message):
        mg.tanh(mg.ones(2, device="cpu:1"))


def test_gradients_flow_through_a_registered_kernel(devices):
    """A kernel replaces only the computation: the gradient rule of the primitive stays."""
    with register_kernel("multiply", "cpu", lambda x, y: np.multiply(x, y)):
        w = mg.asarray([3.0], requires_grad=True)
        (w * w).sum().backward()
    assert w.grad.tolist() == [6.0]


def test_results_of_kernels_become_arrays(devices):
    with register_kernel("sum", "cpu", lambda x, axis, keepdims, dtype: np.float32(5)):
        assert type(mg.ones(3).sum().data) is np.ndarray


# Classes of kernels ---------------------------------------------------------------------------------------------------


class Coarse(Kernels):
    def multiply(self, x, y):
        return np.round(super().multiply(x, y), 1)

    def sum(self, x, axis, keepdims, dtype):
        return np.floor(super().sum(x, axis, keepdims, dtype))


class CoarseDevice(Device):
    kind, kernel_class = "coarse", Coarse


def test_a_device_of_ten_lines_runs_forward_and_backward(devices):
    register_device("coarse", CoarseDevice)
    w = mg.asarray([1.23, 2.0], device="coarse", requires_grad=True)
    loss = (w * w * 1.11).sum()
    loss.backward()
    assert loss.item() == 6.0, "1.5 and 4.4, and the sum rounded down"
    np.testing.assert_allclose(w.grad.numpy(), [2.8, 4.4], rtol=1e-6)  # 1.11 is 1.1, times 1.23 is 1.4, twice
    assert mg.tanh(w).tolist() == mg.tanh(w.detach().to("cpu")).tolist()
    large = mg.ones(2_000_000, device="coarse") * 1.26
    assert large[0].item() == np.float32(1.3), "in memory of the pool, though `multiply` has no `out`"


def test_a_device_of_another_library_shows_and_takes_kernels(devices):
    register_device("coarse", CoarseDevice)
    w = mg.asarray([1.23, 2.0], device="coarse")
    assert kernels("coarse")["multiply"]["coarse"].endswith(".multiply")
    assert kernels("coarse")["add"] == {"coarse": "numpy.add"}
    with register_kernel("multiply", "coarse", lambda x, y: np.multiply(x, y)):
        assert (w * w).tolist() == pytest.approx([1.5129, 4.0])


@pytest.mark.parametrize("hosted", [True, False])
def test_a_program_calls_the_kernels_of_a_device_that_has_its_own(devices, hosted):
    register_device("coarse", type("Hosted", (CoarseDevice,), {"hosted": hosted}))
    w = mg.asarray([1.23, 2.0], device="coarse")
    assert mg.jit(lambda w: (w * w).sum())(w).item() == (w * w).sum().item() == 5.0


def test_kernel_none_counts_as_missing(devices):
    class NoTanh(Kernels):
        tanh = None

    class NoTanhDevice(Device):
        kind, kernel_class = "no_tanh", NoTanh

    register_device("no_tanh", NoTanhDevice)
    assert kernels("no_tanh")["tanh"] == {"no_tanh": "–"}
    with pytest.raises(DeviceError, match="tanh has no kernel on the device no_tanh"):
        mg.tanh(mg.ones(2, device="no_tanh"))


def test_a_method_that_is_not_a_primitive_is_an_error_of_the_class():
    with pytest.raises(DeviceError, match=r"Wrong.tahn: there is no primitive named 'tahn'\n") as error:

        class Wrong(Kernels):
            def tahn(self, x):
                return x

    assert "half_is_slow" not in str(error.value)
    assert "tanh, to_device" in str(error.value) and "if it is a helper method, name it _tahn" in str(error.value)
    with pytest.raises(DeviceError, match="there is no primitive named 'logarithm'"):
        type("Wrong", (Kernels,), {"logarithm": Library("log")})

    class Right(Kernels):
        factor = 2

        def _half(self, x):
            return x / self.factor

    assert "factor" not in dispatch_table(Right(CPU))


# Devices of users -----------------------------------------------------------------------------------------------------


class CostModel(Device):
    """An imaginary device that adds up how long each operation would take on it."""

    kind = "imagined"
    bandwidth, rate, launch = 1e9, 1e12, 5e-6  # bytes and operations in a second, seconds to start a kernel

    def __init__(self, name):
        super().__init__(name)
        self.seconds = Counter()

    def make_kernels(self):
        return {op: self.timed(op, kernel) for op, kernel in super().make_kernels().items()}

    def timed(self, op, kernel):
        def run(*values, **attrs):
            result = kernel(*values, **attrs)
            if P[op].kind != "view":
                moved = sum(getattr(v, "nbytes", 8) for v in (*values, result))
                work = 2 * result.size * values[0].shape[-1] if op == "matmul" else result.size
                self.seconds[op] += self.launch + max(moved / self.bandwidth, work / self.rate)
            return result

        return run

    def elementwise(self, kernel, op, values, attrs):
        return kernel(*values, **attrs)  # whole, and in new memory


def test_a_cost_model_is_a_device_of_twenty_lines(devices):
    register_device("imagined", CostModel)
    imagined = mg.as_device("imagined")
    with mg.device("imagined"):
        x, w = mg.ones((4, 8)), mg.ones((8, 2), requires_grad=True)
        imagined.seconds.clear()
        (x @ w).tanh().sum().backward()
    assert imagined.seconds["tanh"] == pytest.approx(5e-6 + 2 * 32 / 1e9)
    product = 5e-6 + (4 * 8 + 8 * 2 + 4 * 2) * 4 / 1e9
    assert imagined.seconds["matmul"] == pytest.approx(2 * product), "forward, and the gradient of w only"
    assert w.grad.device == "imagined"
    imagined.seconds.clear()
    mg.tanh(mg.ones(2_000_000, device="imagined"))
    assert imagined.seconds["tanh"] == pytest.approx(5e-6 + 16e6 / 1e9), "one kernel, not blocks"
    moved = mg.ones(1000).to("imagined")
    assert imagined.seconds["to_device"] > 0 and moved.device == "imagined"


class Boxed:
    """The array class of another library, with only the attributes that the arrays of a device need."""

    __slots__ = ("__weakref__", "array", "base")

    def __init__(self, array, base=None):
        self.array, self.base = array, base

    def __getattr__(self, name):
        if name in ("shape", "dtype", "size", "ndim", "nbytes", "flags", "strides", "item", "tolist"):
            return getattr(self.array, name)
        raise AttributeError(name)

    def __bool__(self):
        return bool(self.array)

    def __float__(self):
        return float(self.array)


class BoxDevice(Device):
    """A device whose arrays are boxes."""

    kind = "boxes"
    ndarray = Boxed
    hosted = False

    def make_kernels(self):
        return {name: self.boxing(kernel) for name, kernel in super().make_kernels().items()}

    def boxing(self, kernel):
        def run(*values, out=None, **attrs):
            if out is not None:
                attrs["out"] = out.array
            result = kernel(*[v.array if isinstance(v, Boxed) else v for v in values], **attrs)
            if isinstance(result, Boxed):
                return result
            if isinstance(result, tuple):
                return tuple(map(self.asarray, result))
            if out is not None:
                return out
            boxes = [v for v in values if isinstance(v, Boxed) and np.may_share_memory(v.array, result)]
            source = boxes[0] if boxes else None
            return Boxed(np.asarray(result), source if source is None or source.base is None else source.base)

        return run

    def asarray(self, data):
        return Boxed(np.asarray(data))

    from_numpy = asarray

    def to_numpy(self, data):
        return data.array.copy()

    def contiguous(self, data):
        return Boxed(data.array.copy(order="C"))

    def elementwise(self, kernel, op, values, attrs):
        return kernel(*values, **attrs)


@pytest.mark.parametrize("name", sorted(SAMPLES))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_device_may_have_its_own_array_class(devices, name):
    register_device("boxes", BoxDevice)
    for sample in SAMPLES[name]:
        results = []
        for device in ("boxes", "cpu"):
            attrs = sample.attrs | ({"device": mg.as_device(device)} if "device" in sample.attrs else {})
            inputs = [mg.asarray(x, device=device) if isinstance(x, np.ndarray) else x for x in sample.inputs]
            out = emit(P[name], *inputs, **attrs)
            results.append(out if isinstance(out, tuple) else (out,))
        for ours, wanted in zip(*results):
            assert type(ours.data) is Boxed and ours.device == "boxes" and ours.dtype == wanted.dtype
            np.testing.assert_array_equal(ours.numpy_copy(), wanted.numpy_copy(), err_msg=str(sample))


def test_a_device_of_another_library_trains(devices):
    register_device("boxes", BoxDevice)
    rng = np.random.default_rng(0)
    data = rng.standard_normal((8, 3)).astype("float32")
    losses = {}
    for device in ("boxes", "cpu"):
        w = mg.asarray(np.ones((3, 2), "float32"), device=device, requires_grad=True)
        x = mg.asarray(data, device=device)
        losses[device] = []
        for _ in range(5):
            loss = mg.log_softmax((x @ w).tanh())[:, 0].mean()
            loss.backward()
            with mg.no_grad():
                w -= w.grad * 0.1
            w.grad = None
            losses[device].append(loss.item())
        h = x * 1
        h[0] = 5.0
        h[mg.asarray([1, 1], device=device)] = 6.0
        losses[device].append(h.sum().item())
    assert losses["boxes"] == losses["cpu"] and math.isfinite(losses["cpu"][-1])


def test_registering_a_kind_again_replaces_it(devices):
    class First(Device):
        kind = "again"

    class Second(Device):
        kind = "again"

    register_device("again", First)
    assert type(mg.as_device("again:1")) is First
    register_device("again", Second)
    assert type(mg.as_device("again:1")) is Second
    with pytest.raises(DeviceError, match="'not a name' can't be a kind of device"):
        register_device("not a name", First)


@pytest.mark.parametrize(
    ("kind", "make", "message"),
    [
        ("cpu", Device, r"'cpu' cannot be replaced\n  Expected: another name\n  Hint: register_kernel\("),
        ("mine", Coarse, r"Coarse is not a device\n  Expected: a subclass of Device\n  Hint: .*kernel_class = Coarse"),
        ("mine", Sample, r"the class Sample is not a device\n  Expected: a subclass of Device\n  Line"),
        ("mine", 3, "make is a function of a name, not 3"),
    ],
)
def test_what_is_not_a_device_cannot_be_registered(devices, kind, make, message):
    with pytest.raises(DeviceError, match=message):
        register_device(kind, make)
    assert mg.as_device("cpu") is CPU and "mine" not in devices.MAKERS


def test_a_function_that_returns_no_device_is_an_error(devices):
    register_device("mine", lambda name: None)
    with pytest.raises(DeviceError, match=r"make\('mine:2'\) returned None\n  Expected: a Device"):
        mg.ones(2, device="mine:2")


def test_the_kind_of_a_device_is_the_one_that_it_was_registered_with(devices):
    class NoKind(Device):
        pass

    register_device("mine", NoKind)
    assert mg.as_device("mine:1").kind == "mine"
    with register_kernel("tanh", "mine:*", seven):
        assert mg.tanh(mg.ones(1, device="mine:1")).item() == 7.0 and mg.tanh(mg.zeros(1)).item() == 0.0


def a_list(x):
    return [1.0, 2.0]


def one_too_few(x):
    return x[1:]


def in_float64(x):
    return x.astype("float64")


RESULTS = [(a_list, r"\[1.0, 2.0\]"), (one_too_few, r"shape \(1,\)"), (in_float64, "dtype float64")]


@pytest.mark.parametrize(("function", "found"), RESULTS)
def test_the_first_result_of_a_kernel_is_checked(devices, function, found):
    name = function.__name__
    message = rf"tanh: its kernel {name} returned the wrong result\n  Expected: an array of shape \(2,\) and "
    with register_kernel("tanh", "cpu", function), pytest.raises(DeviceError, match=f"{message}.*32\n  Got: .*{found}"):
        mg.tanh(mg.ones(2))
    kernels = type("Wrong", (Kernels,), {"tanh": staticmethod(function)})
    register_device("wrong", type("WrongDevice", (Device,), {"kernel_class": kernels}))
    with pytest.raises(DeviceError, match=f"{message}.*32\n  Got: .*{found}[\\s\\S]*Line: .*test_kernels.py"):
        mg.tanh(mg.ones(2, device="wrong"))


def test_the_check_of_a_kernel_is_gone_after_its_first_call(devices):
    def plain(x, out=None):
        return np.tanh(x, out=out)

    registration = register_kernel("tanh", "cpu:*", plain)
    checking = CPU.kernels["tanh"]
    assert checking is not plain and checking.__wrapped__ is plain
    mg.tanh(mg.ones(2))
    assert CPU.kernels["tanh"] is mg.as_device("cpu:1").kernels["tanh"] is registration.function is plain

    class Plain(Device):
        kernel_class = type("PlainKernels", (Kernels,), {"tanh": staticmethod(plain)})

    register_device("plain", Plain)
    device = mg.as_device("plain")
    assert device.kernels["tanh"] is not plain
    mg.tanh(mg.ones(2, device="plain"))
    assert device.kernels["tanh"] is device.own_kernels["tanh"] is plain


@pytest.mark.parametrize(
    ("op", "function", "message"),
    [
        ("tanh", lambda x, y: x, r"<lambda> cannot be the kernel of tanh: .*\n  Expected: \(x\)\n  Got: \(x, y\)"),
        ("add", lambda x: x, r"Expected: \(x, y\)\n  Got: \(x\)"),
        ("sum", lambda x, axis: x, r"Expected: \(x, axis, keepdims, dtype\)\n  Got: \(x, axis\)"),
    ],
)
def test_a_kernel_with_other_parameters_is_an_error(devices, op, function, message):
    with pytest.raises(DeviceError, match=message):
        register_kernel(op, "cpu", function)
    assert not devices.REGISTRATIONS
    kernels = type("Wrong", (Kernels,), {op: staticmethod(function)})
    register_device("wrong", type("WrongDevice", (Device,), {"kernel_class": kernels}))
    with pytest.raises(DeviceError, match=message):
        mg.as_device("wrong")


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shapes", [((150, 130), (150, 130)), ((150, 130), (130,)), ((), (150, 130))])
def test_mg_where_chooses_among_many_elements_bit_by_bit_as_numpy_does(dtype, shapes):
    rng = np.random.default_rng(0)
    x, y = (np.asarray(rng.normal(size=shape) * 10).astype(dtype) for shape in shapes)
    condition = rng.random((150, 130)) < 0.5
    expected = np.where(condition, x, y)
    tensors = mg.asarray(condition), mg.asarray(x), mg.asarray(y)
    for kernel_result in (
        mg.where(*tensors).numpy(),
        CPU.kernels["where"](condition, x, y, out=np.empty(expected.shape, dtype)),
        CPU.kernels["where"](condition * 2, x, y, out=np.empty(expected.shape, dtype)),
    ):
        assert kernel_result.dtype == expected.dtype
        np.testing.assert_array_equal(kernel_result, expected)


def test_mg_where_keeps_nan_infinities_and_the_sign_of_zero():
    x = np.tile(np.array([np.nan, -0.0, -np.inf, 1.0], np.float32), 5000)
    condition = np.arange(len(x)) % 8 < 4
    result = mg.where(mg.asarray(condition), mg.asarray(x), 2.5).numpy()
    np.testing.assert_array_equal(result.view(np.int32), np.where(condition, x, np.float32(2.5)).view(np.int32))
