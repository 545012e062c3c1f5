"""Hints for names that other libraries have, and for misspelt ones.  No such name is an alias."""

import importlib.util
import inspect
import re
import subprocess
import sys

import pytest

import minigrad as mg
import minigrad.data
import minigrad.io
from minigrad.core.absent import Absent
from minigrad.support.synonyms import absent_names, hint_for, nearest, synonyms

SYNONYMS = synonyms()
LEAVE_OUT = "leave it out"


def samples(tmp_path):
    """What the expressions of the table are about."""
    x = mg.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    path = str(tmp_path / "weights.safetensors")
    mg.io.save_file({"w": mg.ones(2)}, path)
    return {
        "mg": mg, "x": x, "y": mg.ones((2, 3)), "w": mg.ones((3, 2)), "a": mg.ones(3), "b": mg.ones(3),
        "i": mg.asarray([0, 1]),
        "indices": mg.asarray([[0], [1]]), "f": mg.tanh, "model": mg.nn.Linear(2, 3), "data": [1.0, 2.0],
        "array": x.numpy(), "path": path, "loss": mg.ones(2, requires_grad=True).sum(),
    }


@pytest.mark.parametrize("synonym", [s for s in SYNONYMS if s.place != "="], ids=lambda s: s.foreign)
def test_what_the_table_says_to_write_exists(synonym, tmp_path, monkeypatch):
    monkeypatch.setattr(mg.Tensor, "to", lambda x, where: x)  # there may be no GPU
    monkeypatch.setattr(mg.nn.Module, "to", lambda model, where: model)
    names = samples(tmp_path)
    if "mg.linalg." in synonym.here:
        names["x"] = mg.asarray([[2.0, 1.0], [1.0, 3.0]])
    if re.search(r" [-+*/]?= ", synonym.here):
        exec(synonym.here, names)
    else:
        eval(synonym.here, names)


def takers():
    """The functions and classes of minigrad, with the names of their parameters."""
    rooms = (mg, mg.nn, mg.optim, mg.random, mg.linalg, mg.data, mg.nn.functional_call)
    for found in [value for room in rooms for value in vars(room).values() if callable(value)]:
        try:
            yield found, set(inspect.signature(found).parameters)
        except (TypeError, ValueError):
            continue


def test_keywords_to_write_are_parameters():
    known = set().union(*[names for _, names in takers()])
    keywords = [s for s in SYNONYMS if s.place == "="]
    assert len(keywords) > 50
    for each in keywords:
        assert each.here == LEAVE_OUT or each.here.removesuffix("=") in known, each
        assert each.here != LEAVE_OUT or each.why, each


def test_the_table_is_well_formed():
    assert len(SYNONYMS) > 200 and len(set(SYNONYMS)) == len(SYNONYMS)
    assert {library for each in SYNONYMS for library in each.libraries} == {"torch", "numpy", "jax"}
    for each in SYNONYMS:
        assert re.fullmatch(r"(torch|np|jax|x|model)(\.\w+)+|\w+=", each.foreign), each


PLACES = {
    "minigrad": mg, "minigrad.nn": mg.nn, "minigrad.optim": mg.optim, "minigrad.random": mg.random,
    "minigrad.linalg": mg.linalg, "x": mg.ones((2, 3)), "model": mg.nn.Linear(2, 3),
}


def is_there(synonym):
    """Whether minigrad has the name: a row of `torch.txt` may hold such names too, and their hints are never shown."""
    return inspect.getattr_static(PLACES[synonym.place], synonym.name, None).__class__ is not Absent and hasattr(
        PLACES[synonym.place], synonym.name)


def test_the_names_that_are_found_without_the_table_are_all_of_the_table():
    """Tensors and modules must find the names of PyTorch that they lack, before `torch.txt` is read."""
    rows = {(s.place, s.name) for s in SYNONYMS if s.place in ("x", "model") and not is_there(s)}
    assert set(absent_names()) == rows


def test_hints_and_an_import_read_the_table_of_pytorch_only_when_it_is_needed():
    code = """
import builtins, minigrad.support.synonyms as s, minigrad as mg
assert s.rows.cache_info().misses == 0
try: mg.ones(2).view(2)
except AttributeError as error: assert "x.reshape((3, 2))" in str(error)
assert s.rows.cache_info().misses == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True)


MISSING = [s for s in SYNONYMS if s.place != "=" and not is_there(s)]


@pytest.mark.parametrize("synonym", MISSING, ids=lambda s: s.foreign)
def test_each_name_of_the_table_is_missing_and_gets_its_hint(synonym):
    with pytest.raises(mg.MissingNameError) as error:
        getattr(PLACES[synonym.place], synonym.name)
    assert f"  Hint: {hint_for(synonym.place, synonym.name)}\n" in str(error.value)
    assert synonym.here in str(error.value) and error.value.name == synonym.name


@pytest.mark.parametrize(
    ("place", "name", "message"),
    [
        (mg, "dot", "minigrad has no 'dot'\n  Hint: mg.vecdot(a, b) or x @ w\n"),
        (mg, "concatt", "minigrad has no 'concatt'\n  Hint: did you mean mg.concat?\n"),
        (mg, "unsqueze", "did you mean mg.expand_dims(x, axis=0)?"),
        (mg, "Linear", "did you mean mg.nn.Linear?"),
        (mg, "SGD", "did you mean mg.optim.SGD?"),
        (mg.nn, "relU", "minigrad.nn has no 'relU'\n  Hint: did you mean mg.nn.ReLU?"),
        (mg.nn, "softmax", "did you mean mg.softmax?"),
        (mg.optim, "Adamw", "did you mean mg.optim.AdamW?"),
        (mg.optim.lr_scheduler, "StepLr", "did you mean mg.optim.lr_scheduler.StepLR?"),
        (mg.nn.init, "xavier_normal", "did you mean mg.nn.init.xavier_normal_?"),
        (mg.random, "norml", "did you mean mg.random.normal?"),
        (mg.linalg, "solv", "did you mean mg.linalg.solve?"),
        (mg.data, "DataLoaders", "did you mean mg.data.DataLoader?"),
        (mg.io, "save_files", "did you mean mg.io.save_file?"),
        (mg.Tensor, "view", "type object 'Tensor' has no attribute 'view'\n  Hint: x.reshape((3, 2))\n"),
        (mg.ones(2), "backwards", "'Tensor' object has no attribute 'backwards'\n  Hint: loss.backward()\n"),
        (mg.nn.ReLU(), "add_module", "'ReLU' object has no attribute 'add_module'\n  Hint: model.part ="),
    ],
)
def test_hints_of_missing_names(place, name, message):
    assert not hasattr(place, name)
    with pytest.raises(AttributeError) as error:
        getattr(place, name)
    assert message in str(error.value)


def test_a_name_that_nothing_resembles_gets_no_hint():
    with pytest.raises(mg.MissingNameError, match=r"^minigrad has no 'qqq'\n  Line: ") as error:
        mg.qqq  # noqa: B018
    assert "Hint" not in str(error.value)
    with pytest.raises(AttributeError, match="__qqq__") as error:
        mg.nn.__qqq__  # noqa: B018
    assert not isinstance(error.value, mg.MinigradError)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("from minigrad import from_numpy", "minigrad has no 'from_numpy'\n  Hint: mg.asarray(array)"),
        ("from minigrad.nn import functional as F", "minigrad.nn has no 'functional'\n  Hint: mg.relu, mg.softmax"),
        ("import minigrad.nn.functional as F", "minigrad.nn has no 'functional'\n  Hint: mg.relu, mg.softmax"),
        ("from minigrad.utils.data import DataLoader", "Hint: mg.data.DataLoader"),
        ("import minigrad.numpy as jnp", "minigrad has no 'numpy'\n  Hint: mg\n"),
        ("from minigrad import Tensor, jitt", "minigrad has no 'jitt'\n  Hint: did you mean mg.jit?"),
        ("import minigrad.jit", "did you mean mg.jit?"),
    ],
)
def test_hints_of_imports(line, message):
    """Python shows nothing of an AttributeError here, so the import system raises the error."""
    with pytest.raises(mg.MissingImportError) as error:
        exec(compile(line, "script.py", "exec"), {})
    assert message in str(error.value) and "Line: script.py:1" in str(error.value)


def test_imports_that_no_hint_is_for_fail_as_always():
    for line in ("from minigrad import _qqq", "import minigrad.viz.qqq", "from minigrad.random import PRNGKey"):
        with pytest.raises(ImportError) as error:
            exec(line, {})
        assert not isinstance(error.value, mg.MinigradError)
    assert importlib.util.find_spec("qqq") is None and not hasattr(mg, "qqq")


def test_names_of_other_libraries_are_not_listed_and_can_be_set():
    class Net(mg.nn.Module):
        def __init__(self):
            self.init = mg.ones(2, requires_grad=True)

        def half(self):
            return 1

    net = Net()
    assert net.half() == 1 and [name for name, _ in net.named_parameters()] == ["init"]
    assert "init" in dir(net) and "half" in dir(net) and "add_module" not in dir(net)
    assert "view" not in dir(mg.ones(2)) and {"sum", "reshape", "__len__"} < set(dir(mg.ones(2)))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("acos", "mg.acos(x)"), ("median", "mg.median(x)"), ("isclose", "mg.isclose(x)"),
        ("exp_", "x[...] = mg.exp(x)"), ("sqrt_", "x[...] = mg.sqrt(x)"),
        ("clamp_", "x[...] = x.clip(0, 1)"), ("zero_", "x[...] = 0"),
    ],
)
def test_a_method_that_is_only_a_function_gets_a_hint(name, hint):
    with pytest.raises(mg.MissingNameError, match=re.escape(f"Hint: {hint}\n")):
        getattr(mg.ones(2), name)
    assert name not in dir(mg.ones(2)) and not hasattr(mg.ones(2), name)


def test_tensors_and_modules_find_attributes_without_a_getattr():
    """It would make each access to an attribute slower."""
    for cls in (mg.Tensor, mg.nn.Module):
        assert not hasattr(cls, "__getattr__")
        assert isinstance(inspect.getattr_static(cls, "float"), Absent)
    assert not any(isinstance(value, Absent) for value in vars(mg.Tensor).values())


x = mg.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: x.sum(dim=1), "sum() got an unexpected keyword argument 'dim'\n"
         "  Expected: x, axis, dtype, keepdims\n  Hint: axis=\n"),
        (lambda: mg.sum(x, dim=1), "'dim'"),
        (lambda: x.max(axis=1, keepdim=True), "'keepdim'\n  Expected: x, axis, keepdims\n  Hint: keepdims=\n"),
        (lambda: mg.min(x, dim=1), "Hint: axis="),
        (lambda: mg.prod(x, dim=1), "Hint: axis="),
        (lambda: mg.squeeze(x, dim=1), "Hint: axis="),
        (lambda: mg.expand_dims(x, dim=1), "Hint: axis="),
        (lambda: x.mean(dim=1), "mean() got an unexpected keyword argument 'dim'"),
        (lambda: mg.softmax(x, dim=1), "Hint: axis=\n"),
        (lambda: mg.flip(x, dims=(1, 0)), "Hint: axis="),
        (lambda: mg.std(x, unbiased=False), "Hint: correction=\n"),
        (lambda: mg.random.normal(size=3), "Generator.normal() got an unexpected keyword argument 'size'"),
        (lambda: mg.nn.Conv2d(3, 4, kernel_size=3), "'kernel_size'\n  Expected: inputs, outputs, size"),
        (lambda: mg.nn.Linear(in_features=3, out_features=4), "Hint: inputs=\n"),
        (lambda: mg.nn.ReLU(inplace=True), "ReLU() got an unexpected keyword argument 'inplace'\n"
         "  Expected: no arguments\n  Hint: leave it out: the result is a new tensor\n"),
        (lambda: mg.nn.Dropout(0.5, inplace=True), "Expected: p\n  Hint: leave it out"),
        (lambda: mg.optim.SGD([], learning_rate=0.1), "Hint: lr=\n"),
        (lambda: mg.optim.SGD([], lrr=0.1), "Hint: did you mean lr=?\n"),
        (lambda: mg.optim.SGD(mg.nn.Linear(2, 3).parameters()).zero_grad(set_to_none=True),
         "zero_grad() got an unexpected keyword argument 'set_to_none'\n  Expected: no arguments\n  Hint: leave it"),
        (lambda: mg.nn.Linear(2, 3).zero_grad(set_to_none=True), "Hint: leave it out: zero_grad always sets"),
        (lambda: mg.jit(mg.tanh, static_argnums=0), "Hint: static=\n"),
        (lambda: mg.vmap(mg.tanh, in_dims=0), "Hint: in_axes=\n"),
        (lambda: mg.grad(mg.sum, argnum=0), "Hint: did you mean argnums=?\n"),
        (lambda: mg.nn.Linear(3, 3)(x, input=x), "Linear.forward() got an unexpected keyword argument 'input'"),
        (lambda: mg.nn.MaxPool2d(kernel_size=2), "Hint: size=\n"),
        (lambda: x.to(device="cpu"), "to() got an unexpected keyword argument 'device'\n  Expected: x, target\n"
         "  Hint: target=\n"),
        (lambda: x.to(dtype=mg.float64), "Hint: target=\n"),
        (lambda: mg.linspace(0, 1, steps=5), "Hint: num=\n"),
        (lambda: mg.random.uniform((2, 3), minval=-1, maxval=1), "Hint: low=\n"),
        (lambda: mg.random.normal(2, loc=1), "Hint: mean=\n"),
        (lambda: mg.jit(mg.tanh, donate_argnums=0), "Hint: leave it out: x[...] = y changes a tensor in place"),
    ],
)
def test_hints_of_unknown_keywords(call, message):
    with pytest.raises(TypeError) as error:
        call()
    assert isinstance(error.value, mg.ConversionError) and message in str(error.value)


def test_an_unknown_keyword_that_nothing_resembles_gets_no_hint():
    with pytest.raises(mg.ConversionError, match=r"Expected: x, axis\n  Line:"):
        mg.softmax(x, qqq=1)


@pytest.mark.parametrize("function", [mg.sum, mg.max, mg.squeeze, mg.softmax, mg.Tensor.sum])
def test_signatures_do_not_show_that_unknown_keywords_are_taken(function):
    kinds = {each.kind for each in inspect.signature(function).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds


def test_a_missing_argument_is_named():
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'size'"):
        mg.nn.Conv2d(3, 4)


def test_nearest_prefers_the_same_letters():
    assert nearest("RELU", ["relu", "ReLU6"]) == "relu" and nearest("", []) is None


class Flat(mg.nn.Module):
    def forward(self, x):
        return x.reshape((x.size(0), -1))


class Wrong(mg.nn.Module):
    def forward(self, x):
        return x.ndim()


def test_a_call_of_size_in_a_module_gets_a_hint():
    """The error is Python's own, and outside modules no code of minigrad sees it."""
    with pytest.raises(TypeError, match="not callable") as error:
        mg.nn.Sequential(Flat())(x)
    (note,) = error.value.__notes__
    assert note.startswith("  Hint: x.shape, x.shape[i]; x.size is the number of elements")
    with pytest.raises(TypeError, match="not callable") as error:
        Wrong()(x)
    assert not hasattr(error.value, "__notes__")


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: mg.Tensor([1.0]), TypeError, "Tensor is not called to make a tensor\n  Hint: mg.asarray(data, dtype="),
        (lambda: mg.zeros(2, 3), TypeError, "3 is not a dtype that minigrad has\n  Expected: one of bool, "),
        (lambda: mg.zeros(2, 3), TypeError, "Hint: a shape is one argument: mg.zeros((2, 3))\n"),
        (lambda: mg.max(x, x), ValueError, "Hint: mg.maximum(x, y)\n"),
        (lambda: x.min(x), ValueError, "Hint: mg.minimum(x, y)\n"),
        (lambda: x.to(mg.device("cpu")), RuntimeError, "mg.device(...) is a block, for `with`, and not a device\n"
         "  Hint: its name alone: device = \"cpu\"\n"),
        (lambda: mg.zeros(2, device=mg.device("cpu")), RuntimeError, "Hint: its name alone"),
        (lambda: mg.random.normal(mg.random.Generator(0)), ValueError,
         "Hint: the generator has the functions: generator.normal((2, 3))\n"),
        (lambda: mg.random.randint, AttributeError, "Hint: mg.random.integers(0, 10, (2, 3))\n"),
    ],
)
def test_hints_of_calls_as_in_other_libraries(call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert isinstance(error.value, mg.MinigradError) and message in str(error.value)
