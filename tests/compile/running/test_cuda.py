"""Programs on `cuda`: the real launching code, on a stand-in for CuPy that runs the kernels on the CPU."""

import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.fusion.group import Chunking
from minigrad.compile.running.gpu import cuda_target
from minigrad.compile.running.plain import PlainProgram
from minigrad.compile.running.program import Program
from minigrad.compile.running.targets import BackendWarning
from minigrad.devices import registry
from tests.compile.partitions import fed, graph_of
from tests.compile.programs import random_program
from tests.compile.running.cuda_models import MODELS, gpt, mlp
from tests.devices import emulated, standin

pytestmark = pytest.mark.skipif(emulated.CXX is None, reason="the emulation needs g++ and Linux")


@pytest.fixture
def gpu(monkeypatch):
    """The devices `cuda` and `cuda:1`, emulated."""
    for name in [n for n in registry.DEVICES if n.startswith("cuda")]:
        monkeypatch.delitem(registry.DEVICES, name)
    for name, module in emulated.modules(count=2).items():
        monkeypatch.setitem(sys.modules, name, module)
    for name, member in emulated.class_members().items():
        monkeypatch.setattr(standin.ndarray, name, member, raising=False)
    device = registry.as_device("cuda")
    yield device
    for name in ("cuda", "cuda:1"):
        registry.DEVICES.pop(name, None)
    assert standin.CURRENT == [0] and not emulated.RECORDINGS


def on(device, *arrays):
    return [mg.asarray(a, device=device) for a in arrays]


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def frame_of(f, *args):
    (frame,) = f.program(*args)._idle
    return frame


# Results --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_models_train_as_they_do_eagerly_on_the_cpu(gpu, name):
    mg.random.seed(0)
    wanted = [step().item() for step in [MODELS[name]("cpu")] for _ in range(12)]
    mg.random.seed(0)
    step = mg.jit(MODELS[name]("cuda"))
    launched = emulated.Graph.LAUNCHED
    losses = [step() for _ in range(12)]  # all results are kept: none may be overwritten
    np.testing.assert_allclose([loss.item() for loss in losses], wanted, rtol=2e-4)
    assert isinstance(step.program(), Program) and wanted[0] != wanted[-1]
    assert emulated.Graph.LAUNCHED > launched and frame_of(step).replay.refused == ""


@pytest.mark.parametrize("seed", [3, 8])
def test_random_programs(gpu, seed):
    target = replace(cuda_target(gpu), chunking=Chunking(4, 16))
    with mg.device("cuda"):
        outputs, _alive = random_program(seed, 20)
    graph = graph_of(*outputs)
    program = Program(graph, target=target)
    for output, result in zip(outputs, program(fed(graph))):
        rough = 2e-3 if output.dtype == np.float16 else 2e-4
        np.testing.assert_allclose(result.get(), output.numpy_copy(), rtol=rough, atol=rough)


def test_rows_that_are_long_and_sums_across_them(gpu):
    def f(x, w, b):
        return (mg.layer_norm(x, w, b) * mg.softmax(x)).sum()

    given = floats(12, 260), floats(260, seed=1), floats(260, seed=2)
    wanted = mg.gradients(f(*(x := [mg.asarray(a, requires_grad=True) for a in given])), x)
    grads = mg.jit(mg.grad(f, argnums=(0, 1, 2)))(*on("cuda", *given))
    for ours, theirs in zip(grads, wanted):
        np.testing.assert_allclose(ours.numpy_copy(), theirs.numpy_copy(), rtol=2e-4, atol=2e-5)


def test_sums_of_everything(gpu):
    x = floats(17_001)
    for f in (mg.sum, mg.max, lambda x: mg.var(x) * 2):
        assert mg.jit(f)(*on("cuda", x)).item() == pytest.approx(f(mg.asarray(x)).item(), rel=1e-4)
    partition = mg.jit(mg.sum).kernels(*on("cuda", x))
    assert partition.kernels[0].loops.chunks > 1


def test_values_that_are_computed_again_are_equal(gpu):
    def loss(x, y):
        product = x * y
        return mg.max(product + x, axis=-1).sum() + mg.tanh(product * product).sum()

    given = floats(200, 16), floats(200, 16, seed=1)
    modules = len(emulated.MODULES)
    found = mg.jit(mg.grad(loss))(*on("cuda", *given)).numpy_copy()
    np.testing.assert_allclose(found, mg.grad(loss)(*map(mg.asarray, given)).numpy(), rtol=1e-5, atol=1e-5)
    assert all("--fmad=false" in module.options for module in emulated.MODULES[modules:])


def test_long_sums_far_from_zero(gpu):
    x = (np.random.default_rng(0).uniform(0, 1, (2, 150_000)) + 1e4).astype(np.float32)
    for axis in (None, 1):
        found = mg.jit(lambda x, axis=axis: mg.sum(x, axis=axis))(*on("cuda", x)).numpy_copy()
        np.testing.assert_allclose(found, x.sum(axis=axis, dtype=np.float64), rtol=3 * np.finfo(np.float32).eps)
    assert mg.jit(mg.var)(*on("cuda", x)).item() == pytest.approx(x.var(dtype=np.float64), rel=1e-6)


def test_a_second_gpu(gpu):
    x = floats(5, 8)
    (there,) = on("cuda:1", x)
    y = mg.jit(lambda x: mg.softmax(x) @ x.T)(there)
    assert y.device == "cuda:1" and y.data._device == 1
    np.testing.assert_allclose(y.numpy_copy(), (mg.softmax(mg.asarray(x)) @ mg.asarray(x).T).numpy_copy(), rtol=1e-5)


def test_graph_mode(gpu):
    x, w = on("cuda", floats(4, 6), floats(6, 3))
    w.requires_grad = True
    with mg.graph() as g:
        loss = mg.tanh(x @ w).sum()
        loss.backward()
    assert all(isinstance(p, Program) for p in g.programs) and g.programs
    eager = mg.asarray(w.numpy_copy(), requires_grad=True)
    mg.tanh(mg.asarray(floats(4, 6)) @ eager).sum().backward()
    np.testing.assert_allclose(w.grad.numpy_copy(), eager.grad.numpy_copy(), rtol=1e-5)


def test_half_precision(gpu):
    x = floats(6, 64).astype(np.float16)
    y = mg.jit(lambda x: mg.layer_norm(x) * 2)(*on("cuda", x))
    assert y.dtype == "float16"
    np.testing.assert_allclose(y.numpy_copy(), (mg.layer_norm(mg.asarray(x)) * 2).numpy_copy(), atol=4e-3)


def test_random_numbers_are_those_of_the_cpu_and_new_in_each_run(gpu):
    def f(x):
        return mg.dropout(x, 0.5, True) + mg.random.uniform((40,), device=x.device)

    results = {}
    for device in ("cpu", "cuda"):
        mg.random.seed(5)
        run = mg.jit(f) if device == "cuda" else f
        results[device] = [run(*on(device, np.ones(40, np.float32))).numpy_copy() for _ in range(6)]
    np.testing.assert_allclose(results["cuda"], results["cpu"], rtol=1e-6)
    assert len({r.tobytes() for r in results["cuda"]}) == 6


# Memory ---------------------------------------------------------------------------------------------------------------


def test_parameters_stay_where_they_are(gpu):
    step = mg.jit(mlp("cuda"))
    step()
    places = [t.data.data.ptr for t in step.__wrapped__.parameters]
    for _ in range(4):
        step()
    assert [t.data.data.ptr for t in step.__wrapped__.parameters] == places
    assert len(step.program().stored_in) >= 3 * len(places) - 2


def test_results_are_the_callers(gpu):
    f = mg.jit(lambda x: (mg.exp(x) @ x, (x * 2).T, mg.concat([x, x])))
    (x,) = on("cuda", floats(4, 4))
    kept = [f(x) for _ in range(6)]
    values = [[t.numpy_copy() for t in r] for r in kept]
    x += 1
    f(x)
    for result, before in zip(kept, values):
        for tensor, value in zip(result, before):
            np.testing.assert_array_equal(tensor.numpy_copy(), value)
    assert len({t.data.data.ptr for r in kept for t in r}) == 18


def test_inputs_whose_elements_are_not_in_order(gpu):
    whole = floats(8, 9)
    (x,) = on("cuda", whole)
    y = mg.jit(lambda x: mg.tanh(x) + x.sum(0))(x.T[1:, ::2])
    part = whole.T[1:, ::2]
    np.testing.assert_allclose(y.numpy_copy(), np.tanh(part) + part.sum(0), rtol=1e-5, atol=1e-6)


def test_a_part_that_is_not_in_order_is_written_in_place(gpu):
    x = mg.zeros((6, 4), device="cuda")
    column = x[:, 1]

    @mg.jit
    def add(column):
        column += 2.0

    for _ in range(3):
        add(column)
    assert x.sum().item() == 36.0 and column.tolist() == [6.0] * 6


# Replay ---------------------------------------------------------------------------------------------------------------


def three_steps(x, w):
    return mg.softmax(mg.tanh(x @ w) @ w)


def test_a_run_is_recorded_once_everything_lies_where_it_lay(gpu):
    f = mg.jit(three_steps)
    x, w = on("cuda", floats(4, 4), floats(4, 4, seed=1))
    wanted = three_steps(x, w).numpy_copy()
    for _ in range(5):
        np.testing.assert_allclose(f(x, w).numpy_copy(), wanted, rtol=1e-5)
    replay = frame_of(f, x, w).replay
    assert replay.recorded and not replay.refused
    launches = len(emulated.LAUNCHES), emulated.Graph.LAUNCHED
    f(x, w)
    assert emulated.Graph.LAUNCHED == launches[1] + 1 and len(emulated.LAUNCHES) > launches[0]


def test_results_alternate_between_two_places_if_nothing_else_holds_them(gpu):
    f = mg.jit(three_steps)
    x, w = on("cuda", floats(4, 4), floats(4, 4, seed=1))
    places, result = [], None
    for _ in range(8):
        result = f(x, w)
        places.append(result.data.data.ptr)
    replay = frame_of(f, x, w).replay
    assert places == places[:2] * 4 and len(set(places)) == 2
    assert len(replay.recorded) == 2 and not replay.copies


def test_results_of_another_shape_are_not_overwritten(gpu):
    f = mg.jit(lambda x, w: mg.reshape(three_steps(x, w) * 2, (2, 8)))
    (w,) = on("cuda", floats(4, 4, seed=1))
    given = [on("cuda", floats(4, 4, seed=seed))[0] for seed in range(9)]
    kept = [f(x, w) for x in given]
    for x, result in zip(given, kept):
        np.testing.assert_allclose(result.numpy_copy().reshape(4, 4), three_steps(x, w).numpy_copy() * 2, rtol=1e-5)


HELD = {"tensor": lambda t: t, "view": lambda t: t.T, "part": lambda t: t[1:]}


@pytest.mark.parametrize("form", HELD)
def test_results_that_are_held_in_any_form_are_not_written_again(gpu, form):
    f = mg.jit(three_steps)
    x, w = on("cuda", floats(4, 4), floats(4, 4, seed=1))
    held = HELD[form](f(x, w))
    before = held.numpy_copy()
    for seed in range(4):
        f(*on("cuda", floats(4, 4, seed=seed + 5)), w)
        assert np.array_equal(held.numpy_copy(), before)


def test_values_that_move_are_copied(gpu):
    f = mg.jit(three_steps)
    (w,) = on("cuda", floats(4, 4, seed=1))
    kept = []
    for seed in range(6):
        (x,) = on("cuda", floats(4, 4, seed=seed))
        kept.append(x)
        np.testing.assert_allclose(f(x, w).numpy_copy(), three_steps(x, w).numpy_copy(), rtol=1e-5)
    replay = frame_of(f, x, w).replay
    numbers = [replay.passing[place].number for place in replay.copies if replay.passing[place].comes]
    assert replay.recorded and numbers == [0]
    x += 1  # the address is the same, the value is not
    np.testing.assert_allclose(f(x, w).numpy_copy(), three_steps(x, w).numpy_copy(), rtol=1e-5)


def test_values_written_in_place_may_move_too(gpu):
    @mg.jit
    def step(p, g):
        p -= mg.tanh(p @ g) * 0.1
        return (p @ g).sum()

    g, values = floats(4, 4), floats(4, 4, seed=1)
    for _ in range(6):
        ours, theirs = mg.asarray(values, device="cuda"), mg.asarray(values)
        loss = step(ours, *on("cuda", g))
        theirs -= mg.tanh(theirs @ mg.asarray(g)) * 0.1
        np.testing.assert_allclose(ours.numpy_copy(), theirs.numpy_copy(), rtol=1e-5)
        assert loss.item() == pytest.approx((theirs @ mg.asarray(g)).sum().item(), rel=1e-4)
        values = ours.numpy_copy()


def test_a_library_call_that_waits_for_the_gpu_is_not_recorded(gpu, monkeypatch):
    f = mg.jit(lambda x: mg.linalg.solve(mg.exp(x) + mg.eye(3, device="cuda") * 9, x) @ x @ x)
    (x,) = on("cuda", floats(3, 3))
    results = [f(x).numpy_copy() for _ in range(4)]
    assert frame_of(f, x).replay is None and all(np.array_equal(r, results[0]) for r in results)
    replayable = {mg.core.primitive.P.matmul, mg.core.primitive.P.solve}
    monkeypatch.setattr("minigrad.compile.running.gpu.REPLAYABLE", replayable)
    f = mg.jit(lambda x: mg.linalg.solve(mg.exp(x) + mg.eye(3, device="cuda") * 9, x) @ x @ x)
    monkeypatch.setattr(standin.ndarray, "dot", emulated.refused(standin.ndarray.dot))
    monkeypatch.setattr(gpu.cupy, "dot", emulated.refused(gpu.cupy.dot))
    for result in results:
        np.testing.assert_allclose(f(x).numpy_copy(), result, rtol=1e-5)
    assert "not permitted when stream is capturing" in frame_of(f, x).replay.refused


def test_replay_can_be_switched_off(gpu, monkeypatch):
    monkeypatch.setattr(gpu, "replays", False)
    f = mg.jit(three_steps)
    given = on("cuda", floats(4, 4), floats(4, 4, seed=1))
    for _ in range(3):
        f(*given)
    assert frame_of(f, *given).replay is None


def test_a_profile_waits_for_each_step(gpu):
    f = mg.jit(three_steps)
    given = on("cuda", floats(4, 4), floats(4, 4, seed=1))
    f(*given)
    standin.SYNCHRONIZED.clear()
    with mg.profile() as run:
        f(*given)
    assert len(run.events) == len(standin.SYNCHRONIZED) == len(f.program(*given).plan.steps)


# Errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x, i: mg.take(x, i, axis=0) * 2,
        lambda x, i: mg.cross_entropy(mg.tanh(x), i),
        lambda x, i: mg.scatter_add(mg.zeros((5, 4), device=x.device), i, x)
    ],
    ids=["gather", "picked", "scatter_add"],
)
def test_an_index_out_of_bounds_is_an_error_when_a_value_is_read(gpu, f):
    (x,) = on("cuda", floats(5, 4))
    run = mg.jit(f)
    run(x, mg.asarray([0, 1, 2, 3, 0], device="cuda")).sum().item()
    for _ in range(3):
        y = run(x, mg.asarray([0, 1, 2, 7, 0], device="cuda"))
        with pytest.raises(mg.IndexingError, match=r"index 7 is out of range for a dimension of") as caught:
            y.sum().item()
        assert "a program on cuda found it" in str(caught.value)
    run(x, mg.asarray([0, 3, 2, 3, 0], device="cuda")).sum().item()
    assert x.tolist() == floats(5, 4).tolist()


def test_positions_can_be_looked_at_at_once_or_not_at_all(gpu, monkeypatch):
    run = mg.jit(lambda x, i: mg.take(x, i) * 2)
    given = on("cuda", floats(5), np.array([9]))
    monkeypatch.setattr(gpu, "check_at_once", True)
    with pytest.raises(mg.IndexingError, match="index 9 is out of range"):
        run(*given)
    monkeypatch.setattr(gpu, "check_indices", False)
    assert mg.jit(lambda x, i: mg.take(x, i) * 2)(*given).item() == pytest.approx(2 * floats(5)[4])


def test_synchronize_raises_index_errors(gpu):
    mg.jit(lambda x, i: mg.take(x, i) * 2)(*on("cuda", floats(5), np.array([9])))
    with pytest.raises(mg.IndexingError, match="index 9"):
        gpu.synchronize()
    gpu.synchronize()


def test_kernel_that_does_not_compile_is_replaced_with_a_warning(gpu, monkeypatch):
    (x,) = on("cuda", floats(7))

    def refuse(self, name):
        raise RuntimeError("nvrtc: error: no such thing")

    monkeypatch.setattr(emulated.RawModule, "get_function", refuse)
    f = mg.jit(lambda x: mg.tanh(x) * 123.5)
    with pytest.warns(BackendWarning, match="node by node.*CUDA's compiler refused kernels: nvrtc: error"):
        y = f(x)
    assert isinstance(f.program(x), PlainProgram)
    np.testing.assert_allclose(y.numpy_copy(), np.tanh(floats(7)) * 123.5, rtol=1e-5)


def test_mixed_devices_are_refused(gpu):
    x, y = on("cuda", floats(3))[0], mg.asarray(floats(3))
    with pytest.raises(mg.DeviceError, match="add: its inputs are on different devices, cuda and cpu"):
        mg.jit(lambda x, y: x + y)(x, y)


def test_transfers_inside(gpu):
    def f(x, w):
        return (mg.tanh(x.to("cuda") @ w).to("cpu") * 2).sum()

    x = mg.asarray(floats(3, 4), requires_grad=True)
    w = mg.asarray(floats(4, 2, seed=1), device="cuda", requires_grad=True)
    jitted = mg.jit(f)
    for run in (f, jitted):
        x.grad = w.grad = None
        loss = run(x, w)
        loss.backward()
        assert loss.device == "cpu" and x.grad.device == "cpu" and w.grad.device == "cuda"
        assert loss.item() == pytest.approx(2 * np.tanh(floats(3, 4) @ floats(4, 2, seed=1)).sum(), rel=1e-4)
    assert isinstance(jitted.program(x, w), PlainProgram)


def test_kernels_of_users_run_in_programs(gpu):
    (x,) = on("cuda", floats(4))
    with mg.devices.register_kernel("cumulative_sum", "cuda", lambda x, axis, dtype: x + 100):
        y = mg.jit(lambda x: mg.cumulative_sum(x) * 2)(x)
    np.testing.assert_allclose(y.numpy_copy(), 2 * (floats(4) + 100), rtol=1e-6)


# Kernels --------------------------------------------------------------------------------------------------------------


def test_equal_kernels_are_compiled_once(gpu):
    def f(x):
        for _ in range(3):
            x = mg.tanh(x @ x + 3.25)
        return x

    (x,) = on("cuda", floats(4, 4))
    modules = len(emulated.MODULES)
    program = mg.jit(f).program(x)
    assert len(program.functions) == 3 and len({k.source.name for k in program.functions.values()}) == 1
    mg.jit(lambda x: f(x) @ x)(x)
    assert len(emulated.MODULES) == modules + 1


def test_arguments_of_kernels_are_checked_by_the_stand_in(gpu):
    module = emulated.RawModule(code='extern "C" __global__ void one(float *x, int n) { x[0] = n; }')
    function, x = module.get_function("one"), gpu.cupy.zeros(1, np.float32)
    function((1,), (32,), [x, np.int32(7)])
    assert x.get().tolist() == [7.0]
    with pytest.raises(AssertionError, match="is not of type int"):
        function((1,), (32,), [x, 7])
    with pytest.raises(AssertionError, match="takes 2 arguments"):
        function((1,), (32,), [x])


def test_nvrtc_compiles_all_modules(gpu):
    from tests.compile.codegen.test_cuda import compile_by_nvrtc, nvrtc

    if nvrtc() is None:
        pytest.skip("NVRTC is not installed (pip install nvidia-cuda-nvrtc)")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mg.jit(gpt("cuda"))()
    assert len(emulated.MODULES) > 2
    for module in emulated.MODULES:
        if "__half" not in module.code:  # which needs CUDA's headers
            compile_by_nvrtc(module.code, module.options)
