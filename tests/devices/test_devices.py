"""Devices: their names, the current device, transfers, and the error for mixed devices."""

import copy
import inspect
import pickle
import re
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.primitive import P
from minigrad.devices import Device, registry
from minigrad.support.errors import DeviceError, DtypeError, GradError

# Names ----------------------------------------------------------------------------------------------------------------


def test_a_name_means_one_device():
    cpu, other = mg.as_device("cpu"), mg.as_device("cpu:1")
    assert mg.as_device("cpu:0") is cpu and mg.as_device("cpu:01") is other and mg.as_device(other) is other
    assert (cpu.name, cpu.kind, cpu.index) == ("cpu", "cpu", 0)
    assert (other.name, other.kind, other.index) == ("cpu:1", "cpu", 1)
    assert repr(other) == str(other) == "cpu:1"
    assert mg.as_device("cpu:23").index == 23


def test_a_device_is_equal_to_itself_and_to_its_name():
    cpu, other = mg.as_device("cpu"), mg.as_device("cpu:1")
    assert cpu == cpu and cpu == "cpu" and cpu == "cpu:0" and other == "cpu:1" and "cpu:1" == other
    assert cpu != other and cpu != "cuda" and cpu != "cpu:" and cpu != "cpu:x" and cpu != 0 and cpu is not None
    assert {cpu: 1}["cpu"] == 1 and hash(other) == hash("cpu:1")


@pytest.mark.parametrize("device", ["cpu", "cpu:1"])
def test_a_device_survives_pickle_and_deepcopy(device):
    device = mg.as_device(device)
    assert pickle.loads(pickle.dumps(device)) is device and copy.deepcopy(device) is device


@pytest.mark.parametrize("name", ["gpu", "cpu:", "cpu:one", "cpu:-1", "CPU", "", 3, "cpu:1:2"])
def test_unknown_device_name_is_an_error(name):
    with pytest.raises(DeviceError) as caught:
        mg.zeros(2, device=name)
    message = str(caught.value)
    assert f"there is no device named {str(name)!r}" in message and "'cpu', 'cpu:1' or 'cuda', 'cuda:1'" in message
    assert "test_devices.py" in message


def test_threads_that_ask_at_the_same_time_get_the_same_device(devices):
    made, found = [], []
    start = threading.Barrier(8)

    class Slow(Device):
        kind = "slow"

        def __init__(self, name):
            made.append(name)
            super().__init__(name)

    devices.register_device("slow", Slow)

    def ask():
        start.wait()
        found.append(mg.as_device("slow:2"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(map(id, found))) == 1 and found[0] is mg.as_device("slow:2")


def test_the_devices_that_are_there(no_cupy):
    mg.as_device("cpu:4")
    names = mg.available_devices()
    assert "cpu" in names and "cpu:4" in names and "cuda" not in names


# The current device ---------------------------------------------------------------------------------------------------


def test_the_current_device_is_where_tensors_are_made():
    with mg.device("cpu:1"):
        made = [
            mg.asarray([1.0]), mg.asarray(np.ones(2)), mg.asarray(2), mg.zeros(2), mg.ones(2), mg.full(2, 1.0),
            mg.eye(2), mg.arange(3), mg.linspace(0, 1, 3), mg.random.uniform((2,)), mg.empty(2),
            mg.tril(mg.ones((2, 2))),
        ]
        assert {t.device.name for t in made} == {"cpu:1"}
        with mg.device("cpu"):
            assert mg.zeros(1).device == "cpu"
        assert mg.zeros(1, device="cpu").device == "cpu"
        assert mg.zeros(1).device == "cpu:1"
    assert mg.zeros(1).device == "cpu"


def test_the_current_device_moves_nothing_that_is_there_already():
    x = mg.ones(2)
    with mg.device("cpu:1"):
        assert (x + 1).device == "cpu" and mg.zeros_like(x).device == "cpu" and x.sum().device == "cpu"
        assert (x * np.ones(2, np.float32)).device == "cpu" and x[[0, 1]].device == "cpu" and x.copy().device == "cpu"
        assert mg.asarray(x).device == "cpu" and mg.where(x > 0, x, 0.0).device == "cpu"


def test_the_current_device_serves_as_a_decorator_and_ends_with_an_error():
    @mg.device("cpu:1")
    def make():
        return mg.zeros(2)

    assert make().device == "cpu:1" and mg.zeros(1).device == "cpu"
    with pytest.raises(ZeroDivisionError), mg.device("cpu:1"):
        raise ZeroDivisionError
    assert mg.zeros(1).device == "cpu"


def test_current_device_belongs_to_its_thread():
    found = []
    with mg.device("cpu:1"):
        thread = threading.Thread(target=lambda: found.append(mg.zeros(1).device))
        thread.start()
        thread.join()
    assert found == ["cpu"]


# Transfers ------------------------------------------------------------------------------------------------------------


def test_a_transfer_copies_also_between_cpu_devices():
    x = mg.asarray([1.0, 2.0])
    y = x.to("cpu:1")
    assert (y.device, y.dtype, y.tolist()) == ("cpu:1", "float32", [1.0, 2.0])
    assert not np.shares_memory(x.data, y.data)
    x[0] = 9.0
    y[1] = 5.0
    assert (x.tolist(), y.tolist()) == ([9.0, 2.0], [1.0, 5.0])


def test_transfer_to_the_same_device_returns_the_tensor_itself():
    x = mg.asarray([1.0], requires_grad=True)
    assert x.to("cpu") is x and x.to(x.device) is x and x.to_device(x.device) is x and x.to("cpu:0") is x
    assert x.to(mg.float32) is x and x.to("float32") is x


def test_tensor_to_takes_a_dtype_as_well():
    x = mg.asarray([1.5])
    assert x.to(mg.float64).dtype == "float64" and x.to("int32").tolist() == [1] and x.to(np.float16).dtype == "float16"
    assert x.to(float) is x and x.to(int).dtype == "int64"
    with pytest.raises(DeviceError, match="there is no device named 'float33'"):
        x.to("float33")
    with pytest.raises(DtypeError, match="3 is not a dtype"):
        x.to(3)


def test_tensor_to_device_is_the_array_apis():
    x = mg.asarray([1, 2])
    assert x.to_device("cpu:1").device == "cpu:1" and mg.to_device(x, mg.as_device("cpu:1")).tolist() == [1, 2]
    assert list(inspect.signature(mg.Tensor.to_device).parameters) == ["x", "device", "stream"]
    with pytest.raises(DeviceError, match="stream must be None"):
        x.to_device("cpu:1", stream=1)


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "float64"])
def test_transfers_of_every_shape_and_dtype(shape, dtype):
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    there = mg.asarray(array).to("cpu:1")
    assert there.device == "cpu:1" and there.dtype == dtype
    np.testing.assert_array_equal(there.numpy(), array)


def test_views_are_transferred_as_what_they_show():
    x = mg.asarray(np.arange(12.0).reshape(3, 4))
    for view in (x.T, x[::-1, ::2], mg.broadcast_to(x[0], (2, 4)), x[1]):
        there = view.to("cpu:1")
        np.testing.assert_array_equal(there.numpy(), view.numpy())
        there[...] = -1.0
    assert x.tolist() == np.arange(12.0).reshape(3, 4).tolist()


def test_gradients_come_back_to_where_the_tensor_is():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    y = (w * 3).to("cpu:1")
    z = (y * y).to("cpu") + w
    assert y.node.op is P.to_device and y.node.device == "cpu:1" and y.node.inputs[0].device == "cpu"
    z.sum().backward()
    assert w.grad.device == "cpu" and w.grad.tolist() == [19.0, 37.0]
    assert y.requires_grad and not y.is_leaf


def test_gradients_of_gradients_cross_devices():
    x = mg.asarray(2.0, requires_grad=True)
    y = x.to("cpu:1") ** 3
    first = mg.gradients(y, x, create_graph=True)
    assert first.item() == 12.0 and first.device == "cpu" and mg.gradients(first, x).item() == 12.0


def test_transforms_cross_devices():
    def f(x):
        return (x.to("cpu:1") * 2).to("cpu").sum()

    assert mg.grad(f)(mg.ones(3)).tolist() == [2.0, 2.0, 2.0]
    mapped = mg.vmap(lambda x: x.to("cpu:1") * 2)(mg.asarray([[1.0], [2.0]]))
    assert mapped.device == "cpu:1" and mapped.tolist() == [[2.0], [4.0]]
    value, change = mg.jvp(lambda x: x.to("cpu:1") ** 2, (mg.asarray(3.0),), (mg.asarray(1.0),))
    assert change.device == "cpu:1" and (value.item(), change.item()) == (9.0, 6.0)
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    mg.checkpoint(f)(w).backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_a_transfer_can_be_replayed():
    with mg.record():
        x = mg.asarray([1.0, 2.0])
        y = x.to("cpu:1") * 2
    again = mg.replay(y)
    assert again.device == "cpu:1" and again.tolist() == [2.0, 4.0]


def test_asarray_moves_to_the_device_asked_for():
    x = mg.ones(2)
    assert mg.asarray(x, device="cpu:1").device == "cpu:1" and mg.asarray(x, device="cpu") is x
    moved = mg.asarray(x, dtype="float64", device="cpu:1")
    assert moved.device == "cpu:1" and moved.dtype == "float64"


# Mixed devices --------------------------------------------------------------------------------------------------------


def mixed():
    here, there = mg.asarray([[1.0, 2.0], [3.0, 4.0]]), mg.ones((2, 2), device="cpu:1")
    tracked = mg.asarray([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    index = mg.asarray([0, 1], device="cpu:1")

    def in_place():
        nonlocal here
        here += there

    def in_place_with_a_history():
        h = tracked * 2
        h *= there

    def assign():
        here[0] = there[0]

    def assign_with_a_history():
        h = tracked * 2
        h[0] = there[0]

    def assign_at_indices():
        here[index] = 1.0

    return {
        "add": ("add", lambda: here + there),
        "reflected": ("subtract", lambda: there - here),
        "compare": ("less", lambda: here < there),
        "matmul": ("matmul", lambda: here @ there),
        "where": ("where", lambda: mg.where(here > 0, here, there)),
        "the condition": ("where", lambda: mg.where(there > 0, here, here)),
        "concat": ("concat", lambda: mg.concat([here, there])),
        "stack": ("stack", lambda: mg.stack([here, there])),
        "gather": ("gather", lambda: here[index]),
        "a mask": ("gather", lambda: here[there > 0]),
        "take": ("take", lambda: mg.take(here, index, axis=0)),
        "scatter": ("scatter_add", lambda: mg.scatter_add(here, index, there)),
        "in place": ("add", in_place),
        "in place, tracked": ("multiply", in_place_with_a_history),
        "assign": ("put", assign),
        "assign, tracked": ("put", assign_with_a_history),
        "assign at indices": ("put", assign_at_indices),
        "layer_norm": ("layer_norm", lambda: mg.layer_norm(here, there[0], there[0])),
        "linear": ("in Linear: linear", lambda: mg.nn.Linear(2, 2)(there)),
        "cross_entropy": ("cross_entropy", lambda: mg.cross_entropy(here, index)),
        "clip": ("clip", lambda: mg.clip(here, there)),
        "large": ("add", lambda: mg.ones(300_000) + mg.ones(300_000, device="cpu:1")),
        "integers": ("add", lambda: mg.arange(2) + mg.arange(2, device="cpu:1")),
    }


@pytest.mark.parametrize("what", mixed())
def test_mixed_devices_are_an_error_that_describes_the_inputs(what):
    op, attempt = mixed()[what]
    with pytest.raises(DeviceError) as caught:
        attempt()
    message = str(caught.value)
    assert re.match(rf"{op}: its inputs are on different devices, cpu(:1)? and cpu(:1)?\n", message), message
    assert re.search(r'Hint: x\.to\("cpu(:1)?"\) or x\.to\("cpu(:1)?"\)', message), message
    described = re.search("Got: (.*)", message).group(1)
    assert "on cpu" in described.replace("on cpu:1", "") and "on cpu:1" in described
    assert re.search(rf"Line: {re.escape(__file__)}:\d+  \S", message), "it names the caller's line"


def test_the_line_of_a_composed_function_is_the_callers():
    x, there = mg.ones((2, 3)), mg.ones(3, device="cpu:1")
    with pytest.raises(DeviceError, match=r"Line: .*test_devices.py:\d+  mg.layer_norm\(x, there, there\)  # this one"):
        mg.layer_norm(x, there, there)  # this one


def test_a_write_across_devices_changes_nothing():
    here, there = mg.zeros(2), mg.ones(2, device="cpu:1")
    for attempt in (lambda: here.__iadd__(there), lambda: here.__setitem__(0, there[0])):
        with pytest.raises(DeviceError):
            attempt()
    assert here.tolist() == [0.0, 0.0] and here.device == "cpu"


def test_numbers_go_with_any_device():
    there = mg.ones(2, device="cpu:1")
    assert (2 * there + 1).device == "cpu:1" and mg.where(there > 0, there, 0.0).device == "cpu:1"
    assert (there + np.ones(2, np.float32)).device == "cpu:1"


def test_a_gradient_from_another_device_is_refused():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    there = mg.ones(2, device="cpu:1")
    for attempt in (
        lambda: (w * 2).backward(there),
        lambda: mg.gradients(w * 2, w, there),
        lambda: setattr(w, "grad", there),
    ):
        with pytest.raises((DeviceError, GradError), match=r"cpu:1[\s\S]*test_devices.py"):
            attempt()
    assert w.grad is None


def test_a_hook_that_moves_a_gradient_is_found_out():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    h = w * 2
    h.register_hook(lambda g: g.to("cpu:1"))
    message = r"hook on multiply and its tensor, made at .*test_devices.py.*, have different devices\n  Expected: cpu\n"
    with pytest.raises(DeviceError, match=message):
        (h * h).sum().backward()
    assert w.grad is None


def test_accumulating_over_devices_is_an_error():
    w = mg.asarray([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward()
    w._grad = w.grad.to("cpu:1")  # as if it had been moved
    with pytest.raises(DeviceError, match=r"add: its inputs are on different devices[\s\S]*Line: .*\.backward\(\)"):
        (w * w).sum().backward()


LAYOUTS = {
    "transposed": lambda x, turn: turn(x, (2, 1, 0)), "permuted": lambda x, turn: turn(x, (1, 2, 0)),
    "plain": lambda x, turn: x, "in part": lambda x, turn: turn(x[:, ::2, 1:], (2, 0, 1)),
}
OTHERS = {
    "a number": lambda x: 2.5, "a row": lambda x: x[0, 0], "a column": lambda x: x[..., :1], "itself": lambda x: x,
    "in order": lambda x: x.copy(),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("worth_sharing", [1, 1 << 40])
def test_large_elementwise_results_have_the_layout_of_their_inputs(monkeypatch, layout, other, worth_sharing):
    monkeypatch.setattr(registry, "WORTH_KEEPING", 1)
    monkeypatch.setattr(registry, "WORTH_SHARING", worth_sharing)
    whole = np.random.default_rng(0).standard_normal((24, 30, 20))
    x, ours = LAYOUTS[layout](whole, np.transpose), LAYOUTS[layout](mg.asarray(whole), mg.permute_dims)
    found = ours * OTHERS[other](ours) + 1
    np.testing.assert_array_equal(found.numpy_copy(), x * OTHERS[other](x) + 1)
    if other in ("a number", "itself"):
        assert np.argsort(found.data.strides).tolist() == np.argsort(x.strides).tolist()
