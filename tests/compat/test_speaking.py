"""Which file speaks which library: PyTorch's meaning of shared names holds for the file that imports them."""

import threading
import types

import numpy as np
import pytest

import minigrad as mg
from minigrad.compat import speaking
from minigrad.core.absent import Absent

PYTORCH = "from minigrad.compat import torch\n"
MINIGRAD = "import minigrad as mg\n"
HELPER = "def size(x): return x.size\ndef top(x): return x.max(1)\ndef call(f, *args): return f(*args)\n"


def file(text, name="file"):
    """The names of a file of a program."""
    module = types.ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), vars(module))
    return module


@pytest.fixture
def x():
    return mg.asarray([[1.0, 2.0], [3.0, 4.0]])


def speaks_pytorch(found):
    return callable(found)


def test_the_imports_of_a_file_decide(x):
    assert speaks_pytorch(file(PYTORCH + HELPER).size(x))
    assert file(MINIGRAD + HELPER).size(x) == 4
    assert speaks_pytorch(file(MINIGRAD + PYTORCH + HELPER).size(x))
    assert x.size == 4 and isinstance(x.max(1), mg.Tensor)


@pytest.mark.parametrize(
    "line",
    [
        "from minigrad.compat.torch import nn", "import minigrad.compat.torch.nn.functional as F",
        "from minigrad.compat.torch.nn import Linear", "from minigrad.compat.torch import Tensor",
        "from minigrad.compat.torch.utils.data import Dataset", "from minigrad.compat.torch.nn import Parameter",
        "from minigrad.compat.torch.optim import Adam", "from minigrad.compat.torch import no_grad",
        "from minigrad.compat.torch.optim.lr_scheduler import StepLR", "from minigrad.compat.torch import device",
        "from minigrad.compat.torch.nn.utils import clip_grad_norm_", "from minigrad.compat.torch.autograd import grad",
    ],
)
def test_each_import_of_pytorch_names_counts(line, x):
    assert speaks_pytorch(file(f"{line}\n{HELPER}").size(x))


def test_a_file_without_both_imports_speaks_as_its_caller(x):
    helper = file("import math\n" + HELPER, "helper")
    for imports, expected in ((PYTORCH, True), (MINIGRAD, False)):
        caller = file(imports + "def run(f, x): return f(x)\n", "caller")
        assert speaks_pytorch(caller.run(helper.size, x)) is expected
    between = file("def run(f, *args): return f(*args)\n", "between")
    caller = file(PYTORCH + "def run(between, f, x): return between.run(f, x)\n", "caller")
    assert speaks_pytorch(caller.run(between, helper.size, x))


def test_callbacks_speak_as_the_file_that_wrote_them(x):
    theirs, mine = file(PYTORCH + HELPER), file(MINIGRAD + HELPER)
    assert speaks_pytorch(mine.call(theirs.size, x)) and theirs.call(mine.size, x) == 4
    layer = mg.nn.Tanh()  # the library calls it
    layer.register_forward_hook(lambda module, args, output: mine.size(output))
    assert layer(x) == 4
    assert mg.tree_map(theirs.top, x)[1].tolist() == [1, 1]


def test_threads_speak_as_their_files(x):
    found = {}
    for name, imports in (("torch", PYTORCH), ("mg", MINIGRAD), ("helper", "")):
        f = file(imports + HELPER).size
        threads = [threading.Thread(target=lambda f=f, name=name: found.setdefault(name, f(x))) for _ in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert speaks_pytorch(found["torch"]) and found["mg"] == 4
    assert found["helper"] == 4  # this file's lambda is the caller


def test_an_import_that_comes_later_counts_from_then_on(x):
    program = file(MINIGRAD + HELPER)
    assert program.size(x) == 4
    exec("from minigrad.compat import torch", vars(program))
    assert speaks_pytorch(program.size(x))


def test_the_library_keeps_its_meaning_under_every_caller(x):
    program = file(PYTORCH + "from minigrad.compat.torch import nn\ndef run(mg, x): return "
                   "nn.BatchNorm1d(2)(x), mg.nn.functional_call(mg.nn.Linear(2, 2), {}, x), mg.std(x)\n")
    normed, out, std = program.run(mg, x)
    assert normed.shape == out.shape == (2, 2) and std.item() == pytest.approx(np.std([1, 2, 3, 4]))


def test_jit_and_scipy_like_code(x):
    program = file(PYTORCH + "def f(x): return x.view(-1).max(0)[0] + x.std(1).sum()\n")
    expected = 4.0 + 2 * np.std([1, 2], ddof=1)
    assert mg.jit(program.f)(x).item() == pytest.approx(expected) == program.f(x).item()
    assert mg.vmap(program.f)(x[None]).shape == (1,)


def test_attributes_are_set_by_the_meaning_of_the_file(x):
    program = file(PYTORCH + "def move(x): x.data = x.data * 2; return x.data\n")
    assert program.move(x) is not x and x[0, 0].item() == 2.0
    with pytest.raises(mg.MutationError):
        x.data = x
    assert isinstance(x.data, np.ndarray)


def test_names_that_only_pytorch_has_are_missing_elsewhere(x):
    with pytest.raises(mg.MissingNameError, match=r"Hint: x.reshape"):
        x.view(-1)
    with pytest.raises(AttributeError, match="addmm"):
        x.addmm(x, x)
    assert not hasattr(x, "unsqueeze") and file(PYTORCH + "def f(x): return x.unsqueeze(0)").f(x).shape == (1, 2, 2)


def test_both_meanings_can_be_taken_back(x):
    speaking.deactivate()
    names = set(speaking.METHODS)
    assert not [name for name in names if isinstance(vars(mg.Tensor).get(name), speaking.Method)]
    assert type(vars(mg.Tensor)["sum"]) is types.FunctionType and x.size == 4 and "view" not in vars(mg.Tensor)
    assert isinstance(vars(mg.Tensor.__mro__[1])["view"], Absent)
    program = file(PYTORCH + HELPER)
    assert program.size(x) == 4  # nothing is switched
    speaking.activate()
    assert speaks_pytorch(program.size(x))


def test_many_short_lived_files_do_not_pile_up(x):
    for _ in range(1200):
        file("def f(x): return x.size", "short").f(x)
    assert len(speaking._KNOWN) <= 1001


def test_names_are_listed_where_they_hold(x):
    assert "view" not in dir(x) and "addmm" not in dir(x) and "sum" in dir(x)
    assert {"view", "addmm", "sum"} <= set(file(PYTORCH + "def names(x): return dir(x)").names(x))


def test_modes_without_gradients_are_blocks_and_decorators(x):
    program = file(PYTORCH + "@torch.inference_mode()\ndef a(x): return x * 2\n@torch.no_grad\ndef b(x): return x * 2\n"
                   "def c(x):\n    with torch.inference_mode(True), torch.autograd.detect_anomaly(): return x * 2\n")
    x.requires_grad = True
    assert not any(f(x).requires_grad for f in (program.a, program.b, program.c))
