"""Programs in files: they run without the function, in another process.  Functions and files that are refused."""

import collections
import json
import os
import random
import re
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.running.plan import Launch
from minigrad.compile.save.codec import decoded, encoded
from minigrad.compile.save.parts import CheckedFrame
from minigrad.compile.save.read import load_program
from minigrad.compile.save.write import ARRAYS, CONTENT

ROOT = Path(__file__).resolve().parents[3]
Pair = collections.namedtuple("Pair", "first second")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "f.program"


def saved(path, function, *args, **kwargs):
    """The function and its program, saved and loaded again."""
    mg.jit(function).save(path, *args, **kwargs)
    return mg.load_program(path)


def same(ours, theirs):
    assert type(ours).__name__ == type(theirs).__name__
    if isinstance(theirs, mg.Tensor):
        assert (ours.dtype, ours.shape, ours.device) == (theirs.dtype, theirs.shape, theirs.device)
        np.testing.assert_allclose(ours.numpy_copy(), theirs.numpy_copy(), rtol=2e-5, atol=2e-6)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            same(ours[key], theirs[key])
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            same(a, b)
    else:
        assert ours == theirs or ours != ours


def model_and_input():
    mg.random.seed(2)
    model = mg.nn.Sequential(mg.nn.Linear(6, 8), mg.nn.LayerNorm(8), mg.nn.Dropout(0.5), mg.nn.Linear(8, 3)).eval()
    return model, mg.random.normal((5, 6))


# What can be saved ----------------------------------------------------------------------------------------------------


def test_model_runs_in_a_process_without_its_class(path, tmp_path):
    model, x = model_and_input()
    mg.jit(lambda x: mg.softmax(model(x), axis=-1)).save(path, x)
    np.save(tmp_path / "x.npy", x.numpy_copy())
    program = """
import sys
import numpy as np
import minigrad as mg
from minigrad.compile.fusion.fuse import Fusing
from minigrad.compile.lowering.lower import _Lowering
from minigrad.compile.tracing.tracer import Tracer

def never(*args, **kwargs):
    raise AssertionError("nothing is traced, fused or lowered again")

Tracer.__init__ = Fusing.__init__ = _Lowering.__init__ = never
program = mg.load_program(sys.argv[1])
np.save("y.npy", program(np.load("x.npy")).numpy())
print(program)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "for float32 (5, 6)>" in done.stdout
    expected = mg.softmax(model(x), axis=-1).numpy_copy()
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=2e-5, atol=1e-6)


def test_the_arrays_have_the_names_of_the_parameters(path, numpy_kernels):
    model, x = model_and_input()
    program = saved(path, model, x)
    same(program(x), model(x).detach())
    parameters = {name: p.numpy_copy() for name, p in model.named_parameters()}
    assert len(program.arrays) == len(parameters)
    for name, array in program.arrays.items():
        found = [key for key, p in parameters.items() if np.array_equal(p, array)]
        assert any(name.endswith(key.rpartition(".")[-1]) for key in found)
    with mg.no_grad():
        for p in model.parameters():
            p *= 0
    assert not np.allclose(program(x).numpy_copy(), model(x).numpy_copy())  # the values from the time of saving


CASES = {
    "containers": (
        lambda t, more, *, scale: {"sum": [t[0] + more["b"], (t[1], 3)], "pair": Pair(t[0] * scale, None), 7: "text"},
        lambda: ((mg.ones(3), mg.ones((2, 2))), {"b": mg.ones(3)}), lambda: {"scale": 2.5},
    ),
    "an argument, a view and the same twice": (lambda x: (x, x.T, x[1:], x * 1, x + 1, x + 1),
                                               lambda: (mg.random.normal((3, 3)),), dict),
    "constants": (lambda x: x @ mg.asarray(np.eye(3, dtype="float32")) + mg.arange(3) + mg.full(3, float("inf")),
                  lambda: (mg.ones((2, 3)),), dict),
    "integers, bools and halves": (lambda i, b, h: (i // 3 % 5 << 1, ~b & (i > 2), h * h, i.astype("uint8")),
                                   lambda: (mg.arange(6), mg.arange(6) > 3, mg.ones(6, dtype="float16")), dict),
    "libraries": (lambda x: (mg.argsort(x, axis=-1), mg.linalg.inv(x @ x.T + 9 * mg.eye(4)), mg.sort(x, axis=0),
                             mg.cumulative_sum(x, axis=0)[::-1], mg.concat([x, x[:, ::-1]])),
                  lambda: (mg.random.normal((4, 4)),), dict),
    "rows and columns": (lambda x: (mg.softmax(x, axis=-1), mg.softmax(x, axis=0), x.sum(0), x.mean(), x.std(1)),
                         lambda: (mg.random.normal((70, 50)),), dict),
    "positions": (lambda x, i: (x[i, i], mg.exp(x)[mg.arange(5), i], x[::2, None, ..., 1:3]),
                  lambda: (mg.random.normal((5, 5)), mg.asarray([4, 0, 1, 1, -1])), dict),
    "written inside": (lambda x: _written(x), lambda: (mg.random.normal((4, 4)),), dict),
    "gradients": (lambda x: mg.grad(lambda x: (mg.tanh(x) ** 2).sum())(x), lambda: (mg.random.normal((3, 4)),), dict),
    "nothing given": (lambda: mg.ones(3) * 2, tuple, dict),
    "nothing computed": (lambda x: (1, None, float("nan")), lambda: (mg.ones(2),), dict),
    "no elements": (lambda x: (x.sum(), x * 2, mg.concat([x, x + 1])), lambda: (mg.ones((0, 3)),), dict),
    "another device": (lambda x: x.to("cpu:1") * 2, lambda: (mg.ones(3),), dict),
    "an array": (lambda x: x * 2, lambda: (np.ones(3, np.float32),), dict),
}


def _written(x):
    y = x.copy()
    y[1:, ::2] = 5
    y[0] += x[1]
    return y


NATIVE = ("containers", "rows and columns", "positions")


@pytest.mark.parametrize(("name", "backend"), [*[(n, "numpy") for n in CASES], *[(n, "llvm") for n in NATIVE]])
def test_results_are_those_of_the_function(name, backend, path, monkeypatch):
    monkeypatch.setenv("MINIGRAD_BACKEND", backend)
    function, args, kwargs = CASES[name]
    mg.random.seed(4)
    args, kwargs = args(), kwargs()
    program = saved(path, function, *args, **kwargs)
    for _ in range(2):
        same(program(*args, **kwargs), function(*map(_tensors, args), **kwargs))


def _tensors(value):
    return mg.asarray(value) if isinstance(value, np.ndarray) else value


def test_results_belong_to_the_caller(path, numpy_kernels):
    x = mg.ones(3)
    program = saved(path, lambda x: (x, x * 2, mg.arange(3)), x)
    for _ in range(2):
        results = program(x)
        for result in results:
            result += 5
        assert results[0].tolist() == [6, 6, 6] and results[2].tolist() == [5, 6, 7]
    assert x.tolist() == [1, 1, 1]


def test_a_loaded_program_shows_its_stages(path, numpy_kernels):
    program = saved(path, lambda x, y: mg.exp(x @ y).sum(), mg.ones((3, 3)), mg.ones((3, 3)))
    assert len(program.program.graph) == 3 and "matmul" in str(program.program.graph)
    assert [step.name for step in program.program.schedule.steps] == ["matmul_1", "kernel_1"]
    assert "matmul_1 [slot 0]" in str(program.program) and "sum_1 [result 0]" in str(program.program)
    (launch,) = [step for step in program.program.plan.steps if isinstance(step, Launch)]
    assert launch.computes == ("exp_1", "sum_1")


def test_an_existing_file_is_replaced_as_a_whole(path, numpy_kernels, monkeypatch):
    f = mg.jit(lambda x: x * 2)
    f.save(path, mg.ones(3))
    before = path.read_bytes()
    with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
        patch.setattr("minigrad.compile.save.write.zipfile.ZipFile.writestr", _full)
        f.save(path, mg.ones(4))
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]
    f.save(path, mg.ones(4))
    assert mg.load_program(path)(mg.ones(4)).tolist() == [2, 2, 2, 2]


def _full(*args, **kwargs):
    raise OSError(28, "no space left on device")


class Scaled(mg.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = mg.full(3, 4.0, requires_grad=True)

    @mg.jit
    def scaled(self, x):
        return x * self.scale


def test_a_jitted_method(path, numpy_kernels):
    Scaled().scaled.save(path, mg.ones(3))
    assert mg.load_program(path)(mg.ones(3)).tolist() == [4, 4, 4]


# What cannot be saved -------------------------------------------------------------------------------------------------

WEIGHTS = mg.ones(3)


def _changes_a_tensor(x):
    WEIGHTS[...] = WEIGHTS + x
    return WEIGHTS * 2


class Box:
    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize(("function", "message"), [
    (_changes_a_tensor, "changes WEIGHTS in place(.|\n)*return the new value"),
    (lambda x: x + mg.random.normal(3), r"draws random numbers(.|\n)*model.eval\(\)"),
    (lambda x: (mg.print(x), x)[1], r"does more than compute its result: print, at (.|\n)*test_saved.py"),
    (lambda x: mg.while_loop(lambda c: c.sum() < 9, lambda c: c * 2, x), "of while_loop is a TracedFunction"),
    (lambda x: (x, Box(2)), r"the result\[1\] is a Box, which cannot be part of a file"),
    (lambda x: {"a": [x, {1, 2}]}, r"the result\['a'\]\[1\] is a set, which cannot"),
])
def test_functions_that_cannot_be_saved(function, message, path, numpy_kernels):
    with pytest.raises(mg.ProgramError, match=message):
        mg.jit(function).save(path, mg.ones(3))
    assert not path.exists() and WEIGHTS.tolist() == [1, 1, 1]


def test_user_objects_and_user_kernels_cannot_be_saved(path, numpy_kernels):
    with pytest.raises(mg.ProgramError, match=r"args\[0\] is a Box, which cannot be part of a file"):
        mg.jit(lambda box, x: box.value * x).save(path, Box(2), mg.ones(3))
    with mg.kernel(lambda x: mg.tanh(x) + 1)(_own), pytest.raises(mg.ProgramError, match="uses your kernel _own"):
        mg.jit(lambda x: mg.tanh(x) + 1).save(path, mg.ones(3))
    with pytest.raises(mg.ProgramError, match="not inside a trace"):
        mg.vmap(lambda x: mg.jit(lambda x: x * 2).save(path, x))(mg.ones((2, 3)))


def _own(x):
    return np.tanh(x) + 1


# Calls ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("args", "kwargs", "kind", "message"), [
    ((mg.ones(4), 2), {"d": {"a": mg.ones(3)}}, mg.ShapeError, r"Expected: \(3,\)\n  Got: \(4,\)"),
    ((mg.ones(3, dtype="float64"), 2), {"d": {"a": mg.ones(3)}}, mg.DtypeError, r"float64\n  Hint: x.astype"),
    ((mg.ones(3), 3), {"d": {"a": mg.ones(3)}}, mg.ProgramError, "argument 1 is part of the program(.|\n)*Expected: 2"),
    ((mg.ones(3), 2.0), {"d": {"a": mg.ones(3)}}, mg.ProgramError, "argument 1 is part of the program"),
    ((mg.ones(3),), {"d": {"a": mg.ones(3)}}, mg.ProgramError, "2 arguments and d by name\n  Got: 1 arguments"),
    ((mg.ones(3), 2), {"e": 1}, mg.ProgramError, "called with other arguments than those it was saved with"),
    ((mg.ones(3), 2), {"d": {"b": mg.ones(3)}}, mg.ProgramError, r"argument d has to be a dict with the keys \['a'\]"),
    ((mg.ones(3), 2), {"d": {"a": 1.5}}, mg.ProgramError, r"argument d\['a'\] has to be a tensor"),
    ((1.0, 2), {"d": {"a": mg.ones(3)}}, mg.ProgramError, "argument 0 has to be a tensor\n  Got: a float"),
])
def test_loaded_program_refuses_other_arguments(args, kwargs, kind, message, path, numpy_kernels):
    program = saved(path, lambda x, n, *, d: x * n + d["a"], mg.ones(3), 2, d={"a": mg.ones(3)})
    with pytest.raises(kind, match=message):
        program(*args, **kwargs)
    assert program(mg.ones(3), 2, d={"a": mg.ones(3)}).tolist() == [3, 3, 3]


def test_gradients_and_transformations_of_a_loaded_program_are_refused(path, numpy_kernels):
    program = saved(path, lambda x: x * 2, mg.ones(3))
    leaf = mg.ones(3, requires_grad=True)
    with pytest.raises(mg.GradError, match="a loaded program has no gradients"):
        program(leaf)
    with mg.no_grad():
        assert program(leaf).tolist() == [2, 2, 2]
    for call in (lambda: mg.vmap(program)(mg.ones((2, 3))), lambda: mg.jit(program)(mg.ones(3))):
        with pytest.raises(mg.TraceError, match="a loaded program cannot be called inside a trace"):
            call()


def test_nans_are_hunted_in_loaded_programs(path, numpy_kernels):
    program = saved(path, lambda x: mg.log(x) * 2, mg.ones(3))
    with mg.debug_nans():
        assert program(mg.ones(3)).tolist() == [0, 0, 0]
        with pytest.raises(mg.NanError, match=r"log(.|\n)*made a nan"):
            program(mg.asarray([1.0, -1.0, 2.0]))


# Files ----------------------------------------------------------------------------------------------------------------


def changed(path, change):
    """Write the same file with other content."""
    with zipfile.ZipFile(path) as archive:
        members = {m.filename: archive.read(m) for m in archive.infolist()}
    data = json.loads(members[CONTENT])
    if callable(change):
        change(data)
    else:
        data = change
    members[CONTENT] = json.dumps(data).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def of_interest(path):
    w = mg.ones((4, 4))
    mg.jit(lambda x, y: mg.softmax(x @ w, axis=-1).sum(0) + mg.argsort(y) * 2).save(path, mg.ones((3, 4)), mg.ones(4))


def call_named(data, number):
    return [step for step in data["steps"] if "node" in step][number]


def node_named(data, op):
    return next(node for node in data["nodes"] if node["op"] == op)


def loops(body):
    for statement in body:
        yield statement
        if statement[0] == "for":
            yield from loops(statement[4])


def first(data, kind, op=None):
    kernels = (s for kernel in data["kernels"] for s in loops(kernel["body"]))
    return next(s for s in kernels if s[0] == kind and (op is None or s[2] == op))


def other_index(index):
    def change(data):
        first(data, "store")[2] = index

    return change


CHANGES = {
    "another format": (lambda d: d.update(format=99), "another format(.|\n)*format 99, written by minigrad"),
    "an older format": (
        lambda d: d.update(format=1),
        rf"format 1, written by minigrad(.|\n)*again with minigrad {re.escape(mg.__version__)}",
    ),
    "no program": ({"hello": "world"}, "is not a saved program"),
    "a list": ([1, 2], "is not a saved program"),
    "an unknown primitive": (lambda d: node_named(d, "matmul").update(op="system"), "there is no primitive 'system'"),
    "a primitive that runs code": (lambda d: node_named(d, "matmul").update(op="call"), "no primitive 'call'"),
    "random numbers": (lambda d: node_named(d, "matmul").update(op="random"), "no primitive 'random'"),
    "another shape": (lambda d: node_named(d, "matmul").update(shape={"tuple": [9, 9]}), "file says something else"),
    "other attributes": (lambda d: node_named(d, "sum").update(attrs=[["axis", "x"]]), "cannot run here"),
    "a node from nowhere": (lambda d: node_named(d, "matmul").update(inputs=[{"at": 0}, {"at": 999}]), "no node 999"),
    "a node before its time": (lambda d: d["nodes"][0].update(inputs=[{"at": 0}, {"at": 5}]), "there is no node"),
    "an array cut short": (lambda d: d["inputs"][2].update(shape=[8, 4]), "has 64 bytes, which is not float32"),
    "a negative size": (lambda d: d["inputs"][0].update(shape=[-3, 4]), "-3 is not a size"),
    "an unknown dtype": (lambda d: d["inputs"][0].update(dtype="object"), "KeyError: 'object'"),
    "an unknown device": (lambda d: d["inputs"][0].update(device="moon"), "DeviceError"),
    "a step twice": (lambda d: d["steps"].append(d["steps"][-1]), "writes what is there already"),
    "a step left out": (lambda d: d["steps"].pop(0), "reads what is not there yet"),
    "the last step left out": (lambda d: d["steps"].pop(), "no step computes a result|not there yet"),
    "a kernel that is not there": (lambda d: d["steps"][-1].update(kernel=7), "IndexError"),
    "fewer arguments": (lambda d: d["steps"][-1]["buffers"].pop(), "ValueError"),
    "an element outside of its buffer": (
        lambda d: d["steps"][-1]["offsets"].__setitem__(0, 99), "another size or role",
    ),
    "a buffer that is not there": (lambda d: d["steps"][-1]["buffers"].__setitem__(0, 99), "IndexError"),
    "a buffer that is read and written": (
        lambda d: d["steps"][-1].update(buffers=[d["steps"][-1]["buffers"][-1]] * 3),
        "a buffer that it has twice|size or role",
    ),
    "a call that reads too far": (lambda d: call_named(d, 0)["reads"][0].__setitem__(1, 1), "beyond its memory"),
    "a call that reads backwards": (
        lambda d: call_named(d, 0)["reads"][0].__setitem__(3, {"tuple": [-4, 1]}), "beyond its memory",
    ),
    "a call of other operands": (lambda d: call_named(d, 0)["reads"].reverse(), "other operands than its node"),
    "a call of fewer operands": (lambda d: call_named(d, 0)["reads"].pop(), "other operands than its node"),
    "a kernel that computes an input": (lambda d: d["steps"][-1].update(computes=[0]), "computes an input"),
    "a call that computes something else": (lambda d: call_named(d, 0).update(out=0), "what is there already"),
    "a smaller buffer": (lambda d: d["buffers"][0].update(shape={"tuple": [1]}), "than its node|size or role"),
    "a buffer of objects": (lambda d: d["buffers"][0].update(dtype={"dtype": "object"}), "KeyError: 'object'"),
    "a result that is elsewhere": (lambda d: d["results"][0].__setitem__(1, 7), "beyond its memory"),
    "memory too small": (lambda d: d["kernels"][0]["parameters"][0].__setitem__(2, 10**6), "another size or role"),
    "an index too large": (other_index(["+", "lo", 4000]), "it goes from"),
    "an index below": (other_index(-1), "it goes from -1 to -1"),
    "an unknown variable": (other_index("elsewhere"), "there is no variable 'elsewhere'"),
    "an index that is not a number": (other_index({"float": "nan"}), "the index nan"),
    "an index operation": (other_index(["^", 1, 1]), "the index operation"),
    "a name with code": (lambda d: first(d, "let").__setitem__(1, "x = 1; import os"), "the name 'x = 1; import os'"),
    "an unknown operation": (lambda d: first(d, "let", "exp").__setitem__(2, "launch"), "the operation 'launch'"),
    "an unknown value": (lambda d: first(d, "let", "exp").__setitem__(3, ["v99"]), "'v99' is not a value"),
    "a value with the name of a variable": (lambda d: _with_let(d, "add", ["x", 0]), "'r.' is used twice"),
    "an index that wraps around": (
        lambda d: first(d, "store").__setitem__(2, ["min", ["*", ["+", "hi", 1], 2**62], 3]), "64 bits do not hold",
    ),
    "text for LLVM in a loop that is never entered": (
        lambda d: d["kernels"][0]["body"].append(["for", "i", 3, 3, [["let", "x = ", "add", [1, 1], "int64"]], [], 1]),
        "the name 'x = '",
    ),
    "a result of another type": (lambda d: first(d, "let", "exp").__setitem__(4, "float64"), "exp of float32 as"),
    "a shape of a list": (
        lambda d: node_named(d, "argsort").update(shape={"list": [4]}), "file says something else|not a tuple",
    ),
    "a device that is a text": (lambda d: node_named(d, "matmul")["attrs"].append(["device", "x"]), "cannot run"),
    "costs below zero": (lambda d: d["steps"][-1].update(costs=[-1, 0, 0]), "-1 is not a size"),
    "an unknown statement": (lambda d: first(d, "store").__setitem__(0, "goto"), "there is no statement 'goto'"),
    "writing what is read": (
        lambda d: [p.__setitem__(3, "in") for k in d["kernels"] for p in k["parameters"] if p[3] == "out"],
        "which it may only read",
    ),
    "code in a container": (lambda d: d.update(result={"eval": "1"}), "is not a value"),
    "a tensor that is not there": (lambda d: d.update(result={"tensor": 3}), "a tensor is missing"),
    "an argument twice": (lambda d: d["inputs"][1].update(argument=0), "arguments come before arrays, each once"),
    "no arguments": (lambda d: d.update(args=None), "not a list and a dict"),
    "deep nesting": (lambda d: d.update(result=_deep()), "is not a saved program|RecursionError"),
}


def _with_let(data, op, args):
    """Compute something under the name of the variable of a loop that loads."""
    loop = next(s for k in data["kernels"] for s in loops(k["body"]) if s[0] == "for" and s[4][0][0] == "let")
    x = loop[4][0]
    loop[4].insert(1, ["let", loop[1], op, [x[1] if a == "x" else a for a in args], x[4]])


def _deep():
    deep = 1
    for _ in range(400):
        deep = {"list": [deep]}
    return deep


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", CHANGES)
def test_changed_files_are_refused(name, backend, path, monkeypatch):
    monkeypatch.setenv("MINIGRAD_BACKEND", backend)
    of_interest(path)
    mg.load_program(path)
    change, message = CHANGES[name]
    changed(path, change)
    limit = sys.getrecursionlimit()
    if name == "deep nesting":
        sys.setrecursionlimit(700)
    try:
        with pytest.raises(mg.ProgramError, match=message):
            mg.load_program(path)
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("attrs", [
    {"axis": (-1,)}, {"axis": (1,)}, {"axis": (0, 0), "size": (2, 2), "stride": (1, 1), "dilation": (1, 1)},
    {"stride": (-1,)}, {"dilation": (-50,)}, {"size": (0,)}, {"size": (True,)}, {"stride": (1, 1)}, {"stride": 1},
])
def test_windows_in_a_file_stay_within_memory(attrs, path, numpy_kernels):
    mg.jit(lambda x: mg.windows(x, 2, axis=0).sum(-1)).save(path, mg.ones(6))

    def change(data):
        node = node_named(data, "windows")
        node["attrs"] = [[key, encoded(attrs.get(key, decoded(value)))] for key, value in node["attrs"]]

    mg.load_program(path)
    changed(path, change)
    with pytest.raises(mg.ProgramError, match="windows"):
        mg.load_program(path)


@pytest.mark.parametrize("made", [np.zeros(3, np.int64), np.zeros(4, np.int32), np.zeros((4, 2), np.int64)])
def test_kernels_read_from_a_library_no_more_than_it_made(made, path, monkeypatch, numpy_kernels):
    of_interest(path)
    program = mg.load_program(path)
    compute = CheckedFrame.compute
    monkeypatch.setattr(
        CheckedFrame, "compute", staticmethod(lambda op, *rest: made if op.name == "argsort" else compute(op, *rest))
    )
    with pytest.raises(mg.ProgramError, match="argsort_1 of a loaded program is not what the file says"):
        program(mg.ones((3, 4)), mg.ones(4))


def test_truncated_or_damaged_files_are_refused(path, numpy_kernels):
    of_interest(path)
    whole = path.read_bytes()
    choose = random.Random(1)
    for length in (0, 1, 30, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(mg.ProgramError, match="is not a saved program, or damaged"):
            mg.load_program(path)
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(choose.choice([1, 3, 40])):
            damaged[choose.randrange(len(whole))] = choose.randrange(256)
        path.write_bytes(damaged)
        try:
            load_program(path)(mg.ones((3, 4)), mg.ones(4))
        except mg.ProgramError:
            pass
    path.write_bytes(os.urandom(1000))
    with pytest.raises(mg.ProgramError, match="is not a saved program"):
        mg.load_program(path)
    with pytest.raises(FileNotFoundError):
        mg.load_program(path.parent / "nowhere")


def test_other_archives_are_refused(path):
    for names, kind in ((["program.json", "../evil"], zipfile.ZIP_STORED), ([CONTENT], zipfile.ZIP_DEFLATED), ([], 0)):
        with zipfile.ZipFile(path, "w", kind) as archive:
            for name in names:
                archive.writestr(name, "{}")
        with pytest.raises(mg.ProgramError, match=r"holds something else|is not a saved program"):
            mg.load_program(path)


def test_members_of_an_archive_are_stored_as_they_are(path):
    """Without compression, reading a file never takes more memory than the file has bytes."""
    of_interest(path)
    with zipfile.ZipFile(path) as archive:
        members = {m.filename: archive.read(m) for m in archive.infolist()}
    assert len(members) > 1
    for compressed in members:
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content, zipfile.ZIP_DEFLATED if name == compressed else zipfile.ZIP_STORED)
        with pytest.raises(mg.ProgramError, match="holds something else"):
            mg.load_program(path)


def test_members_of_an_archive_lie_apart(path):
    """Overlapping members could make gigabytes out of a small file."""
    inner, content = zipfile.ZipInfo(f"{ARRAYS}1"), bytes(1000)
    inner.file_size = inner.compress_size = len(content)
    inner.CRC = zlib.crc32(content)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(CONTENT, "{}")
        archive.writestr(f"{ARRAYS}0", inner.FileHeader() + content)
        outer = archive.getinfo(f"{ARRAYS}0")
        inner.header_offset = outer.header_offset + len(outer.FileHeader())
        archive.filelist.append(inner)
    with pytest.raises(mg.ProgramError, match="holds something else"):
        mg.load_program(path)
