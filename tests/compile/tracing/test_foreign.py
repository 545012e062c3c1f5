"""The walk over names does not enter other packages, but it follows the user's code in them."""

import argparse
import functools
import sys
import textwrap
import types
import warnings

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.tracing.reachable import guards_of
from minigrad.support.origin import is_foreign_class, is_foreign_file, is_foreign_function, is_foreign_module

pytestmark = pytest.mark.usefixtures("numpy_kernels")

PACKAGE = """
    import itertools
    import random
    import types
    import numpy as np

    class Lazy(types.ModuleType):
        def __getattr__(self, name):
            raise RuntimeError(f"{name} needs a licence")

    class Node:
        made = itertools.count()
        system = random.SystemRandom()

        def __init__(self, number):
            self.number, self.uid, self.rng = number, Node.made, Node.system
            self.table, self.other = np.zeros(3), self

        def __eq__(self, other):
            raise RuntimeError("not comparable")

        __hash__ = None

    class Hostile:
        def __getattr__(self, name):
            raise RuntimeError(name)

        def __eq__(self, other):
            raise RuntimeError("equal?")

        def __bool__(self):
            raise RuntimeError("true?")

        def __len__(self):
            raise RuntimeError("long?")

        def __iter__(self):
            raise RuntimeError("iterated?")

        @property
        def __dict__(self):
            raise RuntimeError("dict?")

        @property
        def __class__(self):
            raise RuntimeError("class?")

        __hash__ = None

    nodes = [Node(i) for i in range(36_000)]
    for i, node in enumerate(nodes):
        node.next, node.all = nodes[i - 1], nodes
    lazy = Lazy("jit_foreign.lazy")
    lazy.nodes = nodes
    first, hostile, counter, version = nodes[0], Hostile(), itertools.count(), 1

    def scaled(x):
        return x * version

    def calling(function):
        def called(*args):
            return function(*args)
        return called

    class Registry:
        def __init__(self):
            self.inner = {"all": {}}

        def add(self, function):
            self.inner["all"][function.__name__] = [function]
            return function

        def run(self, name, *args):
            return self.inner["all"][name][0](*args)

    class Config:
        def __init__(self):
            self.rate, self.inner = 1, {}
"""


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """A package, as if it were installed, whose attributes do harm when they are read."""
    folder = tmp_path_factory.mktemp("env") / "site-packages"
    (folder / "jit_foreign").mkdir(parents=True)
    (folder / "jit_foreign" / "__init__.py").write_text(textwrap.dedent(PACKAGE))
    sys.path.insert(0, str(folder))
    try:
        import jit_foreign

        yield jit_foreign
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.startswith("jit_foreign")]:
            del sys.modules[name]


class Trainer:
    """A class like those of users: a model and the parts for its training."""

    def __init__(self, **held):
        self.w = mg.ones(3)
        vars(self).update(held)

    def step(self, x):
        return (x * self.w).sum()

    def reading(self, x):
        return (x * self.w).sum() if self.held is not None else x


NAMES = ["first", "nodes", "hostile", "lazy", "counter"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_attribute_that_is_not_read_costs_nothing(name, foreign):
    trainer = Trainer(held=getattr(foreign, name), module=foreign)
    f = mg.jit(trainer.step)
    assert f(mg.ones(3)).item() == f(mg.ones(3)).item() == 3 and len(f.traces) == 1
    assert sum(len(getattr(guard, "values", ())) for guard in guards_of(trainer.step)) < 12


@pytest.mark.parametrize("name", ["first", "hostile", "lazy"])
def test_an_object_of_a_package_that_is_read(name, foreign):
    trainer = Trainer(held=getattr(foreign, name))
    f = mg.jit(trainer.reading)
    assert f(mg.ones(3)).item() == f(mg.ones(3)).item() == 3 and len(f.traces) == 1
    assert len(guards_of(trainer.reading)) < 12


def test_a_module_of_a_package_that_is_read(foreign):
    f = mg.jit(lambda x: foreign.scaled(x) if foreign.lazy is not None else x)
    assert f(mg.ones(3)).tolist() == [1, 1, 1]
    assert len(guards_of(f.function)) < 8


def test_packages_that_pip_installed_into_a_folder(tmp_path, monkeypatch):
    (tmp_path / "some-1.0.dist-info").mkdir()
    (tmp_path / "some-1.0.dist-info" / "RECORD").write_text("some/__init__.py,sha256=1,2\nother.py,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    files = {"some/inner/part.py": True, "other.py": True, "mine.py": False, "something/part.py": False}
    assert {name: is_foreign_file(str(tmp_path / name)) for name in files} == files


@pytest.mark.slow
def test_a_plot_in_a_branch_that_does_not_run():
    plot = pytest.importorskip("matplotlib.pyplot").plot

    @mg.jit
    def f(x, show=False):
        if show:
            plot(x)
        return x.sum()

    assert f(mg.ones(3)).item() == f(mg.ones(3)).item() == 3 and len(f.traces) == 1


def test_hostile_objects_of_the_user(foreign):
    class Mine(foreign.Hostile):
        pass

    mine = [Mine(), {"a": Mine()}, np.empty(2, dtype=object)]
    mine[2][0] = Mine()
    f = mg.jit(lambda x: x * len(mine))
    assert f(mg.ones(1)).item() == f(mg.ones(1)).item() == 3 and len(f.traces) == 1
    mine[1]["a"] = Mine()
    f(mg.ones(1))
    assert len(f.traces) == 2


def test_a_hostile_dict_and_a_cycle():
    class Odd:
        @property
        def __dict__(self):
            return {"other": object()}

    odd = Odd()
    odd.other, cycle = odd, [odd]
    cycle.append(cycle)
    f = mg.jit(lambda x: x * (1 if odd.other is not None and cycle else 0))
    assert f(mg.ones(1)).item() == f(mg.ones(1)).item() == 1 and len(f.traces) == 1


# code of the user, in any place ---------------------------------------------------------------------------------------

NUMBER = 1


def numbered(x):
    return x * NUMBER


def test_a_function_of_the_users_that_a_package_calls(foreign, monkeypatch):
    registry = foreign.Registry()
    registry.add(numbered)
    called = foreign.calling(numbered)
    for f in (mg.jit(lambda x: called(x)), mg.jit(lambda x: registry.run("numbered", x))):
        monkeypatch.setattr(sys.modules[__name__], "NUMBER", 1)
        assert f(mg.ones(1)).item() == 1
        monkeypatch.setattr(sys.modules[__name__], "NUMBER", 2)
        assert f(mg.ones(1)).item() == 2 and f.traces[1] == "NUMBER was 1 and is 2"


def test_functions_wrapped_by_the_standard_library(monkeypatch):
    @functools.singledispatch
    def general(x):
        return numbered(x)

    @functools.lru_cache
    def cached():
        return NUMBER

    class Model:
        twice = functools.partialmethod(lambda self, x: numbered(x))

    model = Model()
    for function in (lambda x: general(x), lambda x: x * cached.__wrapped__(), lambda x: model.twice(x)):
        f = mg.jit(function)
        monkeypatch.setattr(sys.modules[__name__], "NUMBER", 1)
        assert f(mg.ones(1)).item() == 1
        monkeypatch.setattr(sys.modules[__name__], "NUMBER", 2)
        assert f(mg.ones(1)).item() == 2


def test_attributes_of_package_objects_that_the_code_reads(foreign):
    config, parsed = foreign.Config(), argparse.Namespace(rate=1)
    for held in (config, parsed, types.SimpleNamespace(rate=1)):
        f = mg.jit(lambda x, held=held: x * held.rate)
        assert f(mg.ones(1)).item() == 1
        held.rate = 2
        assert f(mg.ones(1)).item() == 2 and "rate was 1 and is 2" in f.traces[1]


def test_a_subclass_of_the_users(foreign):
    class Mine(foreign.Config):
        def scaled(self, x):
            return x * self.rate * NUMBER

    mine = Mine()
    f = mg.jit(mine.scaled)
    f(mg.ones(1))
    mine.rate = 3
    assert f(mg.ones(1)).item() == 3 * NUMBER


def test_the_origin_of_code(tmp_path, monkeypatch):
    files = {
        "/home/me/project/train.py": False, "/home/me/.venv/lib/python3.12/site-packages/torch/__init__.py": True,
        "/usr/lib/python3/dist-packages/numpy/__init__.py": True, "<frozen os>": True, argparse.__file__: True,
        "C:\\env\\Lib\\site-packages\\a.py": True, "/home/me/site-packages.py": False, mg.__file__: False,
    }
    assert {name: is_foreign_file(name) for name in files} == files
    assert is_foreign_module("numpy.random") and is_foreign_module("_thread") and is_foreign_module("sys")
    assert not any(map(is_foreign_module, ("__main__", "not_imported", None, __name__, "minigrad.nn")))
    mine = types.ModuleType("this")  # with the name of one of Python's own modules
    mine.__file__ = str(tmp_path / "this.py")
    monkeypatch.setitem(sys.modules, "this", mine)
    assert not is_foreign_module("this") and is_foreign_module("antigravity")
    space = types.ModuleType("jit_space")  # a package without its own file
    space.__path__ = ["/env/lib/site-packages/jit_space"]
    monkeypatch.setitem(sys.modules, "jit_space", space)
    assert is_foreign_module("jit_space.part")
    made = {"__name__": "numpy.made"}
    exec("def f(): pass", made)
    assert is_foreign_function(made["f"]) and not is_foreign_function(numbered)
    assert is_foreign_class(argparse.Namespace) and not is_foreign_class(Trainer)


# cost -----------------------------------------------------------------------------------------------------------------


class Module(mg.nn.Module):
    def __init__(self):
        self.w = mg.asarray([1.0, 2.0], requires_grad=True)
        self.n = 0

    def forward(self, x):
        return (x * self.w).sum()

    def decay(self, x):
        return sum((p * p).sum() for p in self.parameters()) + x.sum()


@pytest.mark.parametrize("make", [lambda: Trainer(n=0), Module])
def test_a_counter_that_the_code_does_not_read(make):
    trainer = make()
    f = mg.jit(trainer.step if hasattr(trainer, "step") else trainer.forward)
    for _ in range(3):
        f(mg.ones(trainer.w.shape))
        trainer.n += 1
        trainer.seen = trainer.n
    assert len(f.traces) == 1


def test_tensors_that_appear_on_a_module():
    module, x = Module(), mg.zeros(1)
    f = mg.jit(module.decay)
    assert f(x).item() == 5
    module.extra = mg.asarray([3.0], requires_grad=True)
    assert f(x).item() == 14 and "'extra' was missing" in f.traces[1]
    module.n = mg.asarray([1.0], requires_grad=True)
    assert f(x).item() == 15 and len(f.traces) == 3
    del module.extra
    assert f(x).item() == 6
    module.more = [mg.asarray([1.0], requires_grad=True)]
    assert f(x).item() == 7
    module.more.append(mg.asarray([1.0], requires_grad=True))
    assert f(x).item() == 8


def test_a_number_that_appears_on_a_module_and_becomes_a_tensor():
    module, x = Module(), mg.zeros(1)
    f = mg.jit(module.decay)
    f(x)
    module.late = 1
    assert f(x).item() == 5 and len(f.traces) == 1
    module.late = mg.asarray([1.0], requires_grad=True)
    assert f(x).item() == 6


def test_object_with_many_numbers():
    trainer = Trainer(table=list(range(100_000)), **{f"k{i}": i for i in range(1000)})
    assert sum(len(getattr(guard, "values", ())) for guard in guards_of(trainer.step)) < 12


def test_a_slow_comparison_is_a_warning_once():
    array, numbers = np.zeros(300_000), list(range(30_000))
    f = mg.jit(lambda x: x * float(array[0]) + len(numbers))
    with pytest.warns(mg.GuardWarning, match=r"mg\.asarray\(array\)") as caught:
        f(mg.ones(1))
    assert "array, 2 MB" in str(caught[0].message) and "numbers, 30,000 entries" in str(caught[0].message)
    array[-1] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(mg.ones(1))
    assert len(f.traces) == 2


def test_an_array_that_cannot_be_written_is_not_compared():
    array = np.zeros(300_000)
    array.flags.writeable = False
    f = mg.jit(lambda x: x * float(array[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(mg.ones(1))
    array.flags.writeable = True
    array[0] = 2.0
    assert f(mg.ones(1)).item() == 2 and "can be written" in f.traces[1]


def test_a_plain_function_is_not_watched():
    model = mg.nn.Sequential(mg.nn.Linear(2, 2), mg.nn.Dropout(0.5))
    assert not guards_of(lambda x: np.sqrt(2.0) * model(x) + np.pi + mg.random.normal((2,))).suspect


# real packages --------------------------------------------------------------------------------------------------------


def thing_of(name):
    package = pytest.importorskip(name)
    make = {
        "pandas": lambda: package.DataFrame({"a": np.arange(3.0)}),
        "scipy.optimize": lambda: package.LinearConstraint(np.eye(2), [0, 0], [1, 1]),
        "scipy.stats": lambda: package.norm(0, 1), "torch": lambda: package.nn.Linear(2, 2),
        "jax": lambda: package.numpy.ones(3), "networkx": lambda: package.karate_club_graph(),
    }
    return package, make[name]()


@pytest.mark.parametrize("name", ["pandas", "scipy.optimize", "scipy.stats", "torch", "jax", "networkx"])
def test_reachable_package(name):
    package, thing = thing_of(name)
    trainer = Trainer(held=thing, package=package)
    f, g = mg.jit(trainer.step), mg.jit(trainer.reading)
    h = mg.jit(lambda x: x.sum() if package is not None and thing is not None else x)
    for each in (f, g, h):
        assert each(mg.ones(3)).item() == each(mg.ones(3)).item() == 3 and len(each.traces) == 1
        assert len(guards_of(each.function)) < 8


@pytest.mark.slow
def test_random_numbers_of_packages():
    stats = pytest.importorskip("scipy.stats")
    with pytest.raises(mg.TraceError, match=r"the state of numpy\.random"):
        mg.jit(lambda: mg.ones(1) * stats.norm.rvs())()
    torch = pytest.importorskip("torch")
    for draw in (lambda: torch.rand(1).item(), lambda: torch.ones(1).normal_().item()):
        with pytest.raises(mg.TraceError, match=r"random numbers from torch .* at .*test_foreign\.py"):
            mg.jit(lambda draw=draw: mg.ones(1) * draw())()
