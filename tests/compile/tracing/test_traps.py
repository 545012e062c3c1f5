"""Python code that a program does not run: the results are those of eager mode, or there is an error."""

import collections
import copy
import gc
import pickle
import sys
import weakref

import numpy as np
import pytest

import minigrad as mg

pytestmark = pytest.mark.usefixtures("numpy_kernels")


def leaf(*values):
    return mg.asarray([float(v) for v in values], requires_grad=True)


def fixed(*values):
    return mg.asarray([float(v) for v in values])


def both(make, calls=3):
    """The results of `make() -> (function, observe)` eagerly and jitted, call by call."""
    seen = []
    for wrap in (lambda f: f, mg.jit):
        function, observe = make()
        run = wrap(function)
        seen.append([(run().tolist(), observe()) for _ in range(calls)])
    return seen


# arguments ------------------------------------------------------------------------------------------------------------


def test_arguments_that_are_equal_but_of_other_types_differ():
    f = mg.jit(lambda x, k: mg.copysign(x, k) if k == 0 else x * k, static=(1,))
    for kind in (float, np.float32, np.float64):
        assert [f(fixed(1), kind(k)).tolist() for k in (0.0, -0.0, 0.0)] == [[1], [-1], [1]]
    g = mg.jit(lambda x, k: x * k[0], static=("k",))
    assert [g(mg.asarray([1]), k).dtype for k in ((1,), (1.0,))] == [mg.int64, mg.float32]
    assert g(mg.asarray([1]), k=(1,)).dtype == mg.int64 and len(g.traces) == 3
    assert "argument 1 was (1) and is (1.0)" in g.traces[1]


def test_static_arguments_by_number_by_name_and_neither():
    for static in (1, -1, "n"):
        f = mg.jit(lambda x, n: x * sum(n), static=static)
        assert f(fixed(1), (1, 2)).item() == f(fixed(1), n=(1, 2)).item() == 3
    for static in (2, -3, "m"):
        with pytest.raises(mg.ConversionError, match=r"no argument .* to be static"):
            mg.jit(lambda x, n: x * n, static=static)
    with pytest.raises(mg.ConversionError, match="a Tensor cannot be static"):
        mg.jit(lambda x, n: x * n, static=1)(fixed(1), fixed(2))
    with pytest.raises(mg.ConversionError, match="a list cannot be static"):
        mg.jit(lambda x, n: x * n[0], static=1)(fixed(1), [2])


def test_slices_defaultdicts_and_iterators():
    f = mg.jit(lambda x, part: x[part])
    assert f(fixed(1, 2, 3), slice(1, None)).tolist() == [2, 3] and f(fixed(1, 2, 3), slice(1)).tolist() == [1]
    g = mg.jit(lambda table: table["a"] + sum(table.default_factory()))
    assert g(collections.defaultdict(lambda: [1], a=fixed(1))).tolist() == [2]
    with pytest.raises(mg.ConversionError, match="a generator cannot be an argument"):
        mg.jit(lambda x, more: x + sum(more))(fixed(1), (k for k in range(3)))


def test_a_container_that_the_function_changes():
    for change in (lambda d: d.update(b=d["a"]), lambda d: d.pop("a"), lambda d: d.update(a=d["a"] * 2)):
        with pytest.raises(mg.TraceError, match=r"among|of the arguments"):
            mg.jit(change)({"a": fixed(1)})
    with pytest.raises(mg.TraceError, match="a list among the arguments had 1 entries and has 2"):
        mg.jit(lambda parts: parts.append(parts[0] * 2))([fixed(1)])


def test_an_array_is_not_written_behind_the_callers_back():
    array = np.ones(2, np.float32)

    def f(a):
        a += 1
        return a * 2

    with pytest.raises(mg.MutationError, match="read-only"):
        mg.jit(f)(array)
    assert array.tolist() == [1, 1]


def test_objects_that_are_not_functions():
    def pieces(x):
        yield x

    with pytest.raises(mg.ConversionError, match="runs in pieces"):
        mg.jit(pieces)
    with pytest.raises(mg.ConversionError, match="jit takes a function, not 3"):
        mg.jit(3)
    with pytest.raises(mg.ConversionError, match=r"put @classmethod above @mg\.jit"):
        mg.jit(classmethod(lambda cls, x: x))


# results --------------------------------------------------------------------------------------------------------------


def test_results_that_are_not_tensors_are_new_in_each_call():
    f = mg.jit(lambda x: (x * 2, np.zeros(2), [1]))
    for part in f(fixed(1))[1:]:
        part[0] = 7
    assert f(fixed(1))[1].tolist() == [0, 0] and f(fixed(1))[2] == [1]


def test_tensors_hidden_in_a_result():
    class Pair:
        def __init__(self, a):
            self.a = a

    for hide in (Pair, lambda a: {a}, lambda a: [Pair([a])]):
        with pytest.raises(mg.TraceError, match=r"returns a .* that holds tensors"):
            mg.jit(lambda x, hide=hide: hide(x * 2))(fixed(1))


def test_results_share_the_memory_that_they_share_eagerly():
    w = leaf(1, 2)

    def f(x):
        y = x * 2
        return y, y.detach(), y[1:].detach(), x.detach(), x[1:].detach(), w.detach(), x + 0, x.copy()

    seen = []
    for run in (f, mg.jit(f)):
        x = fixed(1, 2)
        results = run(x)
        x[1] = 9.0
        results[1][1], results[3][0] = 5.0, 4.0
        seen.append([r.tolist() for r in (*results, x)])
        assert not results[5].requires_grad
    assert seen[0] == seen[1]


# reading values, and catching the error -------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [lambda x: x.item(), bool, np.asarray, lambda x: x[x > 0].sum(), lambda x: 1 in x])
def test_a_caught_error_is_not_forgotten(ask):
    def f(x):
        try:
            ask(x)
        except Exception:
            return x * 100
        return x

    with pytest.raises(mg.TraceError, match=r"needs the value|NumPy function"):
        mg.jit(f)(fixed(1))


def test_a_leaked_tensor_says_what_to_do():
    class Box:
        kept = None

    def f(x):
        Box.kept = x * 2
        return x

    with pytest.raises(mg.TraceError):
        mg.jit(f)(fixed(1))
        Box.kept.tolist()
    with pytest.raises(mg.TraceError, match="return it from the function"):
        Box.kept.tolist()


INTEGERS = [
    lambda u: u < 300, lambda u: mg.equal(u, -1), lambda u: mg.where(u > 1, u, -1), lambda u: mg.where(u > 1, 300, u),
    lambda u: mg.maximum(u, -1), lambda u: u + 256, lambda u: mg.full((2,), -1, dtype=mg.uint8), lambda u: u ^ -1,
    lambda u: u[:0] ^ -1, lambda u: mg.where(u > 1, 1 << 64, u), lambda u: u.astype(mg.int64) < 1 << 63,
    lambda u: mg.pad(u, 1, value=-1),
    *[lambda u, n=n: u.astype(mg.int64) > n for n in (1 << 70, -1 << 70, 1 << 63, (1 << 63) - 1, -1 << 63, 10**400)],
    *[lambda u, n=n: mg.not_equal(n, u.astype(mg.int32)) for n in (1 << 31, -1 << 70)],
]


@pytest.mark.parametrize("number", range(len(INTEGERS)))
def test_python_integers_beyond_a_type(number):
    u = mg.asarray([1, 2], dtype=mg.uint8)
    seen = []
    for run in (INTEGERS[number], mg.jit(INTEGERS[number])):
        try:
            seen.append((run(u).tolist(), run(u).dtype))
        except mg.DtypeError as error:
            seen.append(str(error).splitlines()[0].split(":")[0])
    assert seen[0] == seen[1]


@pytest.mark.parametrize("where", [slice(1, None), [0, -1]])
@pytest.mark.parametrize("value", [-1, -1.5, 2.5, 300, 300.5, float("nan"), True, 1 << 64])
def test_python_numbers_assigned_to_integers(value, where):
    seen = []
    for wrap in (lambda f: f, mg.jit):
        u = mg.asarray([1, 2, 3], dtype=mg.uint8)
        try:
            wrap(lambda u=u: u.__setitem__(where, value))()
            seen.append(u.tolist())
        except (mg.DtypeError, mg.ShapeError, mg.ConversionError):
            seen.append("refused")
    assert seen[0] == seen[1]


# random numbers -------------------------------------------------------------------------------------------------------


def test_a_seed_set_inside():
    def make():
        mg.random.seed(1)

        def f():
            before = mg.random.uniform((2,))
            mg.random.seed(5)
            return mg.concat([before, mg.random.uniform((3,)), mg.random.Generator(7).uniform((2,))])

        return f, lambda: mg.random.uniform(1).tolist()

    eager, jitted = both(make)
    assert eager == jitted


def test_random_generators_that_a_program_cannot_follow():
    with pytest.raises(mg.TraceError, match="system's own randomness"):
        mg.jit(lambda: mg.random.Generator().uniform(1))()
    with pytest.raises(mg.TraceError, match="state of a generator is read"):
        mg.jit(lambda: mg.random.get_state())()


# gradients ------------------------------------------------------------------------------------------------------------


def test_hooks_from_outside():
    def make():
        w = leaf(1, 2)
        removers = []

        def f():
            ((w * 2) ** 2).sum().backward()
            return w.detach()

        def observe():
            seen, w.grad = w.grad.tolist(), None
            removers.append(w.register_hook(lambda g: g * 10)) if len(removers) < 2 else removers.pop(0)()
            return seen

        return f, observe

    eager, jitted = both(make, calls=5)
    assert eager == jitted


def test_a_hook_of_an_argument_runs_once():
    w = leaf(1, 2)
    w.register_hook(lambda g: g * 10)
    f = mg.jit(lambda: (w * w).sum())
    f().backward()
    assert w.grad.tolist() == [20, 40]


def test_gradients_by_captured_tensors():
    w = leaf(1, 2)

    def f():
        first = mg.gradients((w**3).sum(), w, create_graph=True)
        return first.detach(), mg.gradients((first * first).sum(), w)

    assert [t.tolist() for t in mg.jit(f)()] == [t.tolist() for t in f()]
    assert w.grad is None


def test_a_hook_registered_inside_on_a_tensor_from_outside():
    w = leaf(1, 2)
    with pytest.raises(mg.TraceError, match="a hook is registered on a tensor from outside"):
        mg.jit(lambda: w.register_hook(lambda g: g * 10) and None)()
    (w * 1).sum().backward()
    assert w.grad.tolist() == [1, 1]


def test_gradients_that_are_one_tensor_and_then_two():
    def make():
        w, u = leaf(1, 2), leaf(3, 4)
        w.grad = u.grad = fixed(1, 1)

        def f():
            ((w * w).sum() + u.sum()).backward()
            return w.grad

        return f, lambda: (w.grad.tolist(), u.grad.tolist())

    eager, jitted = both(make)
    assert eager == jitted


def test_gradients_that_are_parts_of_one_buffer():
    def make():
        w, u, flat = leaf(1, 2), leaf(3, 4), fixed(0, 0, 0, 0)
        w.grad, u.grad = flat[:2], flat[2:]

        def f():
            ((w * w).sum() + u.sum()).backward()
            return w.grad

        return f, lambda: (w.grad.tolist(), u.grad.tolist(), flat.tolist())

    eager, jitted = both(make)
    assert eager == jitted


def test_a_tensor_by_name_that_gets_a_history():
    h, w = fixed(1, 2), leaf(3, 4)
    f = mg.jit(lambda: (h * h).sum().backward())
    h.requires_grad = True
    f()
    assert h.grad.tolist() == [2, 4]
    h.requires_grad = False
    h *= w
    with pytest.raises(mg.TraceError, match="made outside"):
        f()


# graph mode inside, copies, memory ------------------------------------------------------------------------------------


def test_graph_mode_inside_a_jitted_function():
    @mg.jit
    def f(x):
        with mg.graph():
            y = x * 2
        return y + 1

    assert f(fixed(1)).tolist() == f(fixed(1)).tolist() == [3]


def named(x):
    return x * 2


@mg.jit
def decorated(x):
    return x * 3


class Model(mg.nn.Module):
    def __init__(self):
        self.w = leaf(1, 2)
        self.run = mg.jit(self.compute)

    def compute(self, x):
        return (x * self.w).sum()

    @mg.jit
    def forward(self, x):
        return (x * self.w).sum()


class Plain(Model):
    def __init__(self):
        self.w = leaf(1, 2)


def test_copies_and_pickles():
    f = mg.jit(named)
    f(fixed(1))
    for other in (copy.copy(f), copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert other(fixed(2)).tolist() == [4]
    decorated(fixed(1))
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    model = Model()
    model(fixed(1, 1)), model.run(fixed(1, 1))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with mg.no_grad():
            other.w[...] = 5.0
        assert other.run(fixed(1, 1)).item() == other(fixed(1, 1)).item() == 10
    assert model.run(fixed(1, 1)).item() == 3


def test_a_method_shows_its_stages():
    model = Model()
    assert model.forward(fixed(1, 1)).item() == 3
    assert model.forward.traces == Model.forward.traces and model.forward.graph(fixed(1, 1)).nodes


def test_a_method_does_not_keep_its_objects():
    gone = []
    for _ in range(3):
        model = Plain()
        model.forward(fixed(1, 1)).backward()
        gone.append(weakref.ref(model))
        del model
    gc.collect()
    assert [reference() for reference in gone] == [None] * 3


def test_recordings_are_bounded(monkeypatch):
    monkeypatch.setattr(sys.modules["minigrad.compile.jitted"], "KEPT", 3)
    f = mg.jit(lambda x, k: x * k)
    for k in range(6):
        assert f(fixed(1), k).item() == k
    assert len(f.recordings) == 3
    assert f(fixed(1), 0).item() == 0 and len(f.traces) == 7
