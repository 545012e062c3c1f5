"""Programs in files: they run without the function, in another process.  Functions that are refused."""

import collections
import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.running.plan import Launch
from minigrad.compile.save.forms import FORMS
from minigrad.core.primitive import P
from minigrad.core.tree import flatten
from tests.compile.save import corpus

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


@pytest.mark.parametrize("dtype", ["bool", "float32", "int64", "uint8"])
def test_a_choice_by_any_number_is_saved(path, dtype):
    def choose(x):
        return mg.where(x, 1.5, -0.5), mg.where(x[::-1], x, 0), mg.where(True, x, 0)

    x = mg.asarray([0, 1, 3]).astype(dtype)
    same(saved(path, choose, x)(x), choose(x))


@pytest.mark.slow
def test_model_runs_in_a_process_without_its_class(path, tmp_path):
    model, x = model_and_input()
    mg.jit(lambda x: mg.softmax(model(x), axis=-1)).save(path, x)
    np.save(tmp_path / "x.npy", x.numpy_copy())
    program = """
import sys
import numpy as np
import minigrad as mg
from minigrad.compile.tracing.tracer import Tracer

def never(*args, **kwargs):
    raise AssertionError("nothing is traced again")

Tracer.__init__ = never
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


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", corpus.CORPUS)
def test_results_are_those_of_jit_bit_by_bit(name, backend, path, monkeypatch):
    monkeypatch.setenv("MINIGRAD_BACKEND", backend)
    corpus.save(name, path)
    function, args = corpus.CORPUS[name][0], corpus.arguments(name)
    ours, theirs = flatten(mg.load_program(path)(*args))[0], flatten(mg.jit(function)(*args))[0]
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert (a.dtype, a.shape, a.device) == (b.dtype, b.shape, b.device)
        assert a.numpy_copy().tobytes() == b.numpy_copy().tobytes()


@pytest.mark.slow
def test_the_corpus_has_every_primitive_that_a_file_may_have(path, numpy_kernels):
    seen = set()
    for name in corpus.CORPUS:
        corpus.save(name, path)
        graphs = [mg.load_program(path).program.graph]
        for graph in graphs:
            graphs += [value.graph for node in graph.nodes for value in node.attrs.values() if hasattr(value, "graph")]
            seen |= {node.op.name for node in graph.nodes}
    allowed = {*FORMS, *[op.name for op in P if op.kind == "elementwise" and op.effect is None]}
    assert seen == allowed
    refused = {op for op in P if op.name not in allowed}
    assert {op.name for op in refused if op.effect is None} == {"call", "random"}


def test_the_forms_name_the_attributes_of_each_primitive():
    for name, forms in FORMS.items():
        parameters = inspect.signature(P[name].infer).parameters.values()
        after = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL and p.name not in P[name].inputs]
        assert sorted(forms) == sorted(after), name


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
    assert [node.name for node in program.program.graph.nodes] == ["matmul", "exp", "sum"]
    assert [step.name for step in program.program.schedule.steps] == ["matmul_1", "kernel_1"]
    assert "matmul_1 [slot 0]" in str(program.program) and "sum_1 [result 0]" in str(program.program)
    (launch,) = [step for step in program.program.plan.steps if isinstance(step, Launch)]
    assert launch.computes == ("exp_1", "sum_1")
    assert len(program.program.partition.kernels) == 1 and "simplify" in str(program.program.log)


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
    (lambda x: mg.scan(lambda c, row: (c + mg.random.normal(()), row), x[0], x), r"draws random numbers"),
    (lambda x: mg.cond(x.sum() > 0, _printed, mg.exp, x), "does more than compute its result: cond"),
    (lambda x: (x, Box(2)), r"the result\[1\] is a Box, which cannot be part of a file"),
    (lambda x: {"a": [x, {1, 2}]}, r"the result\['a'\]\[1\] is a set, which cannot"),
])
def test_functions_that_cannot_be_saved(function, message, path, numpy_kernels):
    with pytest.raises(mg.ProgramError, match=message):
        mg.jit(function).save(path, mg.ones(3))
    assert not path.exists() and WEIGHTS.tolist() == [1, 1, 1]


def _printed(x):
    mg.print(x)
    return x


def test_user_objects_cannot_be_saved(path, numpy_kernels):
    with pytest.raises(mg.ProgramError, match=r"args\[0\] is a Box, which cannot be part of a file"):
        mg.jit(lambda box, x: box.value * x).save(path, Box(2), mg.ones(3))
    with pytest.raises(mg.ProgramError, match="not inside a trace"):
        mg.vmap(lambda x: mg.jit(lambda x: x * 2).save(path, x))(mg.ones((2, 3)))


def test_a_file_holds_the_operations_that_a_user_kernel_replaces(path, numpy_kernels):
    with mg.kernel(lambda x: mg.tanh(x) + 1)(_own):
        program = saved(path, lambda x: mg.tanh(x) + 1, mg.zeros(3))
        assert [node.name for node in program.program.graph.nodes] == ["tanh", "add"]
        assert program(mg.zeros(3)).tolist() == [5, 5, 5]  # the kernel here
    assert mg.load_program(path)(mg.zeros(3)).tolist() == [1, 1, 1]  # the operations


def _own(x):
    return np.full_like(x, 5)


# Calls ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("args", "kwargs", "kind", "message"), [
    ((mg.ones(4), 2), {"d": {"a": mg.ones(3)}}, mg.ShapeError, r"Expected: \(3,\)\n  Got: \(4,\)"),
    ((mg.ones(3, dtype="float64"), 2), {"d": {"a": mg.ones(3)}}, mg.DtypeError, r"float64\n  Hint: x.astype"),
    ((mg.ones(3), 3), {"d": {"a": mg.ones(3)}}, mg.ProgramError, "argument 1 is part of the program(.|\n)*Expected: 2"),
    ((mg.ones(3), 2.0), {"d": {"a": mg.ones(3)}}, mg.ProgramError, "argument 1 is part of the program"),
    ((mg.ones(3),), {"d": {"a": mg.ones(3)}}, mg.ProgramError, "2 arguments and d by name\n  Got: 1 arguments"),
    ((mg.ones(3), 2), {"e": 1}, mg.ProgramError, "called with other arguments than those it was saved with"),
    ((mg.ones(3), 2), {"d": {"b": mg.ones(3)}}, mg.ProgramError, r"argument d must be a dict with the keys \['a'\]"),
    ((mg.ones(3), 2), {"d": {"a": 1.5}}, mg.ProgramError, r"argument d\['a'\] must be a tensor"),
    ((1.0, 2), {"d": {"a": mg.ones(3)}}, mg.ProgramError, "argument 0 must be a tensor\n  Got: a float"),
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
