"""The backward pass: deep and wide graphs, which contributions are computed, hooks, freed memory, lines in errors."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad.autodiff import reverse
from minigrad.autodiff.reverse import exhaust, steps, walk
from minigrad.core.emit import emit
from minigrad.core.node import FREED, Node
from minigrad.core.primitive import Primitive
from minigrad.core.tensor import Tensor
from minigrad.support.errors import ConversionError, DeviceError, DtypeError, GradError, MutationError
from minigrad.support.source import line_of
from minigrad.support.words import a_type


def leaf(*values, dtype="float64"):
    return mg.asarray(np.array(values, dtype), requires_grad=True)


@pytest.fixture
def kernel_calls(monkeypatch):
    """Counts the runs of these kernels: `calls = kernel_calls("multiply")`, then `calls["multiply"]`."""

    def counted(*names):
        table, calls = mg.as_device("cpu").kernels, dict.fromkeys(names, 0)

        def counting(name, kernel):
            def run(*args, **kwargs):
                calls[name] += 1
                return kernel(*args, **kwargs)

            return run

        for name in names:
            monkeypatch.setitem(table, name, counting(name, table[name]))
        return calls

    return counted


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def live_nodes():
    return sum(isinstance(o, Node) for o in gc.get_objects())


# Shapes of graphs -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_graph_of_10_000_operations_in_a_chain():
    w = leaf(0.5)
    x = w
    for number in range(10_000):
        x = [x.sin, x.tanh, lambda x=x: x * 1.1, lambda x=x: x + 0.1][number % 4]()
    assert sys.getrecursionlimit() < 10_000
    [g] = mg.gradients(x.sum(), [w], create_graph=True)
    assert np.isfinite(g.item()) and g.requires_grad
    x.sum().backward()
    assert w.grad.item() == g.item()


def test_graph_of_1_000_parallel_operations():
    w = leaf(2.0)
    total = sum((w * float(k) for k in range(1_000)), start=mg.asarray(0.0, dtype="float64"))
    total.sum().backward()
    assert w.grad.tolist() == [sum(range(1_000))]


def test_graph_of_100_doublings_takes_200_contributions():
    w = leaf(1.0)
    x = w
    for _ in range(100):
        x = x + x
    steps = list(walk([x.node], [mg.ones_like(x)]))
    assert len(steps) == 200
    assert steps[-1].value.item() + steps[-1].so_far.item() == 2.0**100


def test_operation_with_the_same_tensor_as_every_input():
    x = leaf(3.0)
    mg.where(x > 0, x * x, x).sum().backward()
    assert x.grad.tolist() == [6]
    x.grad = None
    mg.concat([x, x, x]).sum().backward()
    assert x.grad.tolist() == [3]
    x.grad = None
    (x - x).sum().backward()
    assert x.grad.tolist() == [0]


def test_outputs_that_share_a_part():
    w = leaf(1.0, 2.0)
    h = w * w
    a, b = h.sum(), (h * 3).sum()
    assert mg.gradients([a, b], w).tolist() == [8, 16]
    a, b = (w * w).sum(), (w * w * w)
    [g] = mg.gradients([a, b], [w], [mg.asarray(2.0, dtype="float64"), mg.asarray(np.array([1.0, 10.0]))])
    assert g.tolist() == [2 * 2 * 1 + 3 * 1, 2 * 2 * 2 + 10 * 3 * 4]


def test_an_output_that_is_part_of_another():
    w = leaf(2.0)
    h = w * w
    y = h * h
    assert mg.gradients([h.sum(), y.sum()], w, retain_graph=True).tolist() == [4 + 32]
    assert [g.tolist() for g in mg.gradients(y.sum(), [h, w])] == [[8], [32]]


def test_a_gradient_by_the_output_itself_is_one():
    w = leaf(2.0)
    y = (w * w).sum()
    assert mg.gradients(y, [y, w])[0].item() == 1
    w = mg.asarray(3.0, requires_grad=True)
    w.backward()
    assert w.grad.item() == 1
    w.grad += 1
    assert w.grad.item() == 2


# Which tensors get a gradient -----------------------------------------------------------------------------------------


def test_grad_of_an_unused_leaf_is_none_and_never_zero():
    w, unused = leaf(1.0), leaf(1.0)
    constant = mg.asarray(np.ones(1))
    (w * constant).sum().backward()
    assert unused.grad is None and constant.grad is None
    assert mg.gradients((w * w).sum(), [unused], allow_unused=True) == [None]
    mg.floor(w * 1.0)
    y = w + mg.floor(w) * 100.0
    assert mg.gradients(y.sum(), w).tolist() == [1]


def test_integer_inputs_get_none_and_cannot_require_one():
    w, number = leaf(1.0, 2.0), mg.asarray([1, 0])
    (w[number] * number).sum().backward()
    assert w.grad.tolist() == [0, 1] and number.grad is None
    assert not (w > 1).requires_grad and not w.argmax().requires_grad and not w.astype("int32").requires_grad


def test_gradients_flow_through_casts_in_their_own_precision():
    w = leaf(1.5, 2.5, dtype="float32")
    y = w.astype("float64") * mg.asarray(np.array([1.0, 3.0]))
    y.sum().backward()
    assert w.grad.dtype == "float32" and w.grad.tolist() == [1, 3]
    half = leaf(1.0, dtype="float16")
    (half * w[:1]).sum().backward()
    assert half.grad.dtype == "float16" and half.grad.tolist() == [1.5]


def test_a_given_gradient_is_cast_to_the_output():
    w = leaf(1.0, 2.0)
    weights = mg.asarray([3.0, 4.0])
    assert weights.dtype == "float32"
    w.backward(weights)
    assert w.grad.dtype == "float64" and w.grad.tolist() == [3, 4]
    weights[0] = 100.0
    assert w.grad.tolist() == [3, 4], "what was given is not shared"


def test_ties_share_the_gradient():
    x = leaf(1.0, 3.0, 3.0)
    assert mg.gradients(x.max(), x).tolist() == [0, 0.5, 0.5]
    y = leaf(1.0, 5.0, 3.0)
    assert [g.tolist() for g in mg.gradients(mg.maximum(x, y).sum(), [x, y])] == [[0.5, 0, 0.5], [0.5, 1, 0.5]]
    assert [g.tolist() for g in mg.gradients(mg.minimum(x, y).sum(), [x, y])] == [[0.5, 1, 0.5], [0.5, 0, 0.5]]
    assert mg.gradients(mg.maximum(x, 3.0).sum(), x).tolist() == [0, 0.5, 0.5]


@pytest.mark.parametrize("jitted", [False, True])
def test_an_infinite_gradient_does_not_reach_what_was_not_chosen(jitted):
    places = mg.asarray([0, 0, 1])
    choices = {  # the root of the chosen value, 0, has an infinite slope
        "clip": (lambda x: mg.clip(x, 0.0, 5.0), [0, 0, np.inf]),
        "maximum": (lambda x: mg.maximum(x, 0.0), [0, 0, np.inf]),
        "minimum": (lambda x: mg.minimum(-x, 0.0) + 0.0, [0, 0, -np.inf]),
        "max": (lambda x: mg.max(x), [0, 0, np.inf]),
        "min": (lambda x: -mg.min(-x), [0, 0, np.inf]),
        "scatter_max": (lambda x: mg.scatter_max(mg.full(2, -9.0, mg.float64), places[::-1], x)[0], [0, 0, np.inf]),
    }
    x = leaf(-2.0, -1.0, 0.0)
    for name, (choose, expected) in choices.items():
        slope = mg.grad(lambda x, choose=choose: mg.sqrt(choose(x)).sum())
        assert (mg.jit(slope) if jitted else slope)(x.detach()).tolist() == expected, name


def test_backward_that_is_interrupted_while_it_writes_gradients_writes_all_of_them(monkeypatch):
    w, v, real, written = leaf(1.0, 2.0), leaf(3.0, 4.0), mg.Tensor.grad, []

    def write(tensor, gradient):
        written.append(tensor)
        if len(written) == 2:
            raise KeyboardInterrupt
        real.fset(tensor, gradient)

    loss = (w * v).sum()
    monkeypatch.setattr(mg.Tensor, "grad", property(real.fget, write))
    with pytest.raises(KeyboardInterrupt):
        loss.backward()
    assert (w.grad.tolist(), v.grad.tolist()) == ([3, 4], [1, 2])


def test_gradients_add_up_over_several_backward_calls():
    w = leaf(1.0, 2.0)
    for _ in range(3):
        (w * w).sum().backward()
    held = w.grad
    assert held.tolist() == [6, 12]
    (w * 1.0).sum().backward()
    assert w.grad.tolist() == [7, 13] and held.tolist() == [6, 12], "a gradient that is still in use does not change"
    assert not w.grad.requires_grad
    w.grad = None
    (w * 1.0).sum().backward()
    assert w.grad.tolist() == [1, 1]


def test_a_gradient_has_the_shape_of_its_tensor():
    w = leaf(1.0, 2.0)
    with pytest.raises(GradError, match=r"\(2,\)"):
        w.grad = mg.ones(3, dtype="float64")


# Errors and retaining -------------------------------------------------------------------------------------------------


def test_a_second_walk_through_freed_nodes_is_an_error():
    w = leaf(1.0, 2.0)
    h = w * w
    (h.sum()).backward()
    assert h.node.saved is FREED
    with pytest.raises(GradError, match="a second time through multiply"):
        h.sum().backward()


def test_graph_without_saved_values_can_be_walked_again():
    w = leaf(1.0, 2.0)
    y = (w + 1).sum()
    y.backward()
    y.backward()
    assert w.grad.tolist() == [2, 2]


def test_backward_of_more_than_one_number_needs_weights():
    w = leaf(1.0, 2.0)
    with pytest.raises(GradError, match=r"shape \(2,\)"):
        (w * w).backward()
    with pytest.raises(GradError, match=r"\(3,\)"):
        (w * w).backward(mg.ones(3, dtype="float64"))
    with pytest.raises(DeviceError, match=r"different devices\n  Expected: cpu\n  Got: cpu:1"):
        (w * w).backward(mg.ones(2, dtype="float64", device="cpu:1"))
    (w * w).backward(mg.asarray(np.array([1.0, 10.0])))
    assert w.grad.tolist() == [2, 40]
    w.grad = None
    (w * w)[:1].backward()
    assert w.grad.tolist() == [2, 0], "one number may have dimensions"


def test_backward_without_a_history():
    with pytest.raises(GradError, match="no history"):
        mg.ones(1).sum().backward()
    w = leaf(1.0)
    with mg.no_grad():
        y = (w * w).sum()
    with pytest.raises(GradError, match="no_grad"):
        y.backward()


# The walk as a generator ----------------------------------------------------------------------------------------------


def test_a_walk_yields_each_contribution_and_returns_the_gradients():
    w, v = leaf(2.0), leaf(3.0)
    y = w * v + w
    steps = walk([y.node], [mg.ones_like(y)])
    seen = []
    try:
        while True:
            seen.append(next(steps))
    except StopIteration as end:
        found = end.value
    assert [(s.node.name, s.index, s.cotangent.item(), s.value.item()) for s in seen] == [
        ("add", 0, 1, 1), ("add", 1, 1, 1), ("multiply", 0, 1, 3), ("multiply", 1, 1, 2),
    ]
    assert seen[0].so_far is None and seen[2].so_far.item() == 1
    assert {node: g.item() for node, g in found.items()} == {w.node: 4, v.node: 2}
    assert w.grad is None, "a walk only answers"


def test_a_contribution_is_replaced_by_what_is_sent():
    w = leaf(2.0)
    y = w.exp() * w
    steps = walk([y.node], [mg.ones_like(y)])
    step = next(steps)
    found = None
    try:
        while True:
            step = steps.send(mg.asarray(np.array([100.0])) if step.node.name == "exp" else None)
    except StopIteration as end:
        found = end.value
    np.testing.assert_allclose(found[w.node].item(), 100.0 + np.exp(2.0))


def test_contributions_are_computed_only_on_paths_to_wanted_gradients(kernel_calls):
    x = mg.asarray(np.ones((2, 3)))
    first, second = leaf(1.0, 2.0, 3.0), leaf(4.0, 5.0, 6.0)
    y = ((x * first).tanh() * second).sum()
    steps = list(walk([y.node], [mg.ones_like(y)], [second.node], retain=True))
    assert [(s.node.name, s.index) for s in steps] == [("sum", 0), ("multiply", 1)]
    calls = kernel_calls("multiply", "tanh")
    mg.gradients(y, second, retain_graph=True)
    assert calls == {"multiply": 1, "tanh": 0}


def test_the_gradient_of_the_data_is_never_computed(kernel_calls):
    x = mg.asarray(np.ones((2, 3)))
    w = leaf(1.0, 2.0, 3.0)
    y = (x * w).sum()
    calls = kernel_calls("multiply")
    y.backward()
    assert calls["multiply"] == 1, "w's gradient takes one product; the data's would take another"


def test_an_abandoned_walk_leaves_the_mode_alone():
    w = leaf(1.0)
    y = (w * w * w).sum()
    steps = walk([y.node], [mg.ones_like(y)])
    next(steps)
    steps.close()
    assert mg.is_grad_enabled() and (w * 2).requires_grad


def two_results():
    """A primitive with two results.  Its gradient rule takes a gradient for each."""
    rule = lambda g: g[0] * 2.0 + g[1] * 3.0  # noqa: E731 - rules are read by their parameters
    infer = lambda x: ((x.shape, x.dtype), (x.shape, x.dtype))  # noqa: E731
    return Primitive("two_results", "structural", ("x",), infer, rules={"x": rule})


def test_operations_of_several_results(monkeypatch):
    monkeypatch.setitem(mg.as_device("cpu").kernels, "two_results", lambda x: (x * 2, x * 3))
    op, w = two_results(), leaf(1.0, 10.0)
    double, triple = emit(op, w)
    assert (double.tolist(), triple.tolist()) == ([2, 20], [3, 30])
    assert [t.node.name for t in (double, triple)] == ["project", "project"]
    assert double.node.inputs == triple.node.inputs
    assert mg.gradients((double + triple * triple).sum(), w).tolist() == [2 + 18, 2 + 180]
    double, triple = emit(op, w)
    assert mg.gradients(triple.sum(), w).tolist() == [3, 3], "one of them may be unused"
    double, triple = emit(op, w)
    first = mg.gradients((triple * triple * double).sum(), w, create_graph=True)
    assert mg.gradients(first.sum(), w).tolist() == [18 * 6, 18 * 60], "18 w³, differentiated twice"
    double, triple = emit(op, mg.asarray(np.ones(1)))
    assert triple.node is None and triple.tolist() == [3]


# Hooks ----------------------------------------------------------------------------------------------------------------


def test_a_hook_sees_the_whole_gradient_once_and_may_replace_it():
    w = leaf(1.0, 2.0)
    h = w * 3
    seen = []
    h.register_hook(lambda g: seen.append(g.tolist()))
    remove = h.register_hook(lambda g: g * 10)
    (h * h + h).sum().backward()
    assert seen == [[7, 13]] and w.grad.tolist() == [210, 390]
    remove()
    remove()
    w.grad = None
    h = w * 3
    (h * h).sum().backward()
    assert w.grad.tolist() == [18, 36]


def test_hook_needs_a_tracked_tensor_and_is_freed_with_it():
    with pytest.raises(GradError, match="register_hook"):
        mg.ones(1).register_hook(print)
    w = leaf(1.0)
    h = w * 2
    hook = h.register_hook(lambda g: None)
    node = weakref.ref(h.node)
    del h, hook
    gc.collect()
    assert node() is None


def test_retain_grad_fills_the_gradient_of_an_intermediate_result():
    w = leaf(1.0, 2.0)
    h = w * 3
    assert h.grad is None
    h.retain_grad()
    y = (h * h).sum()
    y.backward(retain_graph=True)
    assert h.grad.tolist() == [6, 12]
    y.backward()
    assert h.grad.tolist() == [12, 24] and w.grad.tolist() == [36, 72]
    w.retain_grad()
    with pytest.raises(GradError):
        mg.ones(1).retain_grad()


def test_retain_grad_refers_to_the_value_at_the_time_of_backward():
    w = leaf(1.0, 2.0)
    h = w * 2
    h.retain_grad()
    h.register_hook(lambda g: g * 10)  # on the present h: the change in place gives it a new value
    h *= 3
    (h * h).sum().backward()
    assert h.grad.tolist() == [12, 24] and w.grad.tolist() == [12 * 60, 24 * 60]


def test_retain_grad_sees_hooks_and_leaves_gradients_alone():
    w = leaf(1.0, 2.0)
    h = w * 2
    h.retain_grad()
    h.register_hook(lambda g: g * 10)
    y = (h * h).sum()
    mg.gradients(y, w, retain_graph=True)
    assert h.grad is None, "gradients() leaves every .grad alone"
    y.backward()
    assert h.grad.tolist() == [40, 80]


def test_gradients_of_a_tensor_and_of_its_view_share_no_memory():
    w = leaf(1.0, 2.0)
    h = w.reshape(2, 1)
    by_h, by_w = mg.gradients((h * h).sum(), [h, w])
    by_h += 5
    assert by_w.tolist() == [2, 4]
    h = w.reshape(2, 1)
    h.retain_grad()
    (h * h).sum().backward()
    w.grad += 5
    assert h.grad.tolist() == [[2], [4]]


@pytest.mark.parametrize(
    "loss",
    [
        lambda w, v: ((w + v) * 2).sum(),  # the rules of `add` return the gradient of the sum itself, twice
        lambda w, v: ((w - v) * 2).sum(),
        lambda w, v: ((w.reshape(2, 1) + v.reshape(2, 1)) * 2).sum(),  # and then a view of it each
    ],
)
def test_gradients_of_two_leaves_share_no_memory(loss):
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    loss(w, v).backward()
    before = v.grad.tolist()
    w.grad += 5
    assert v.grad.tolist() == before


def test_gradients_that_the_steps_of_a_walk_find_share_no_memory():
    w, v, given = leaf(1.0, 2.0), leaf(3.0, 4.0), mg.ones(2, dtype=mg.float64)
    y = w + v
    found = exhaust(steps([y.node], [given], None, False, [y.node]))
    found[w.node] += 5
    assert given.tolist() == found[v.node].tolist() == found[y.node].tolist() == [1, 1]


def test_views_of_one_gradient_share_no_memory(monkeypatch):
    view = lambda g: g.reshape(2, 1)  # noqa: E731 - a rule, which returns a view of all of the gradient
    infer = lambda x, y: ((2,), x.dtype)  # noqa: E731
    both = Primitive("add_flat", "structural", ("x", "y"), infer, rules={"x": view, "y": view})
    monkeypatch.setitem(mg.as_device("cpu").kernels, both.name, lambda x, y: (x + y).ravel())
    w, v = leaf([1.0], [2.0]), leaf([3.0], [4.0])
    (emit(both, w, v) * 2).sum().backward()
    w.grad += 5
    assert v.grad.tolist() == [[2], [2]]


def test_gradients_share_no_memory_with_given_gradients_and_hooks():
    w, given, seen = leaf(1.0, 2.0), mg.asarray(np.array([1.0, 2.0])), []
    w.reshape(2, 1).backward(given.reshape(2, 1))
    w.grad += 5
    assert given.tolist() == [1, 2]
    w.grad = None
    w.register_hook(seen.append)
    (w * 2).sum().backward()
    w.grad += 5
    assert seen[0].tolist() == [2, 2]


def test_a_hook_that_removes_itself_does_not_hide_the_next():
    w = leaf(1.0)
    seen = []
    remove = w.register_hook(lambda g: (seen.append("first"), remove())[0])
    w.register_hook(lambda g: seen.append("second"))
    (w * 2).sum().backward()
    (w * 2).sum().backward()
    assert seen == ["first", "second", "second"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda g: g.numpy() * 2, "result of a hook on multiply is a tensor, not an ndarray"),
        (lambda g: 0.0, "result of a hook on multiply is a tensor, not a float"),
        (lambda g: g.sum(), r"result of a hook on multiply and its tensor, made[\s\S]*Expected: \(2,\)[\s\S]*Got: \("),
        (lambda g: mg.stack([g, g]), r"have different shapes[\s\S]*Got: \(2, 2\)"),
    ],
)
def test_result_of_a_hook_is_checked(answer, message):
    w = leaf(1.0, 2.0)
    h = w * 2
    h.register_hook(answer)
    with pytest.raises((GradError, ConversionError), match=message):
        (h * h).sum().backward()
    assert w.grad is None


def test_result_of_a_hook_is_cast_to_the_dtype_of_the_gradient():
    w = leaf(1.0, 2.0, dtype="float32")
    w.register_hook(lambda g: g.astype("float64") * 3)
    (w * w).sum().backward()
    assert w.grad.dtype == mg.float32 and w.grad.tolist() == [6, 12]


def test_value_sent_to_the_walk_is_checked():
    w = leaf(1.0, 2.0)
    steps = walk([(w * w).node], [mg.ones(2, dtype="float64")])
    next(steps)
    with pytest.raises(ConversionError, match="what was sent to the walk is a tensor, not a float"):
        steps.send(1.0)


def test_a_hook_may_not_change_the_gradient_in_place():
    w, v = leaf(1.0, 2.0), leaf(1.0, 2.0)

    def hook(g):
        g *= 5

    w.register_hook(hook)
    with pytest.raises(MutationError, match=r"a hook changed the gradient[\s\S]*g \*= 5[\s\S]*return the new gradient"):
        (w + v).backward(mg.asarray(np.array([1.0, 2.0])))


def test_threads_add_to_the_gradient_of_one_leaf():
    w = leaf(*np.ones(4))

    def work():
        for _ in range(100):
            (w * 1.0).sum().backward()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert w.grad.tolist() == [400] * 4


def test_a_thread_waits_while_another_adds_to_a_gradient(monkeypatch):
    """The first thread stops between reading and writing `.grad`, until the second one waits for it or has ended."""
    w, second_moved = leaf(1.0), threading.Event()
    (w * 1.0).sum().backward()
    kernels, lock = mg.as_device("cpu").kernels, reverse.ACCUMULATING
    plain_add = kernels["add"]

    class Announced:
        def __enter__(self):
            if threading.current_thread() is second:
                second_moved.set()
            lock.acquire()

        def __exit__(self, *_):
            lock.release()

    def add(*args, **kwargs):
        if threading.current_thread() is not second:
            second.start()
            assert second_moved.wait(60)
        return plain_add(*args, **kwargs)

    def work():
        (w * 10.0).sum().backward()
        second_moved.set()

    second = threading.Thread(target=work)
    monkeypatch.setattr(reverse, "ACCUMULATING", Announced())
    monkeypatch.setitem(kernels, "add", add)
    (w * 100.0).sum().backward()
    second.join()
    assert w.grad.tolist() == [111]


@pytest.mark.parametrize("given", [1.0, np.ones(())])
def test_a_gradient_is_a_tensor(given):
    w = leaf(2.0)
    with pytest.raises(ConversionError, match=f"gradient of an output is a tensor, not {a_type(given)}"):
        (w * 3).sum().backward(given)
    with pytest.raises(ConversionError, match=f"a gradient is a tensor, not {a_type(given)}"):
        w.grad = given
    with pytest.raises(DtypeError, match="has the dtype of its tensor, float64"):
        w.grad = mg.ones(1)


# Memory that is kept and memory that is freed -------------------------------------------------------------------------


def test_backward_frees_arrays_and_keeps_the_recipe(no_collector):
    w = leaf(1.0, 2.0)
    h = w * w
    data = weakref.ref((h * 1)._data)
    y = (h * h).tanh().sum()
    saved = weakref.ref(y.node.inputs[0].saved[-1])
    y.backward()
    assert saved() is None and data() is None
    assert [n.name for n in mg.core.node.topological_order([y.node])][-2:] == ["tanh", "sum"]


def test_a_training_loop_that_keeps_numbers_does_not_grow(no_collector):
    w = leaf(1.0, 2.0)
    losses, counts = [], []
    for step in range(30):
        loss = ((w * w).exp() * 0.01).sum()
        loss.backward()
        with mg.no_grad():
            w -= w.grad * 1e-3
        w.grad = None
        losses.append(loss.item())
        if step % 10 == 9:
            counts.append(live_nodes())
    assert counts[0] == counts[1] == counts[2]


def test_a_loop_without_gradients_keeps_no_recipes(no_collector):
    x = mg.asarray(np.ones(3))
    before = live_nodes()
    for _ in range(20):
        x = x * 1.5 + x
    assert x.node is None and live_nodes() == before


@pytest.mark.parametrize("order", [1, 2, 3])
def test_gradients_of_any_order_are_freed_without_the_collector(no_collector, order):
    def run():
        w = leaf(0.3)
        y = (w.sin() * w).sum()
        for _ in range(order):
            y = mg.gradients(y, w, create_graph=True).sum()
        return y.item()

    run()
    before = live_nodes(), sum(isinstance(o, Tensor) for o in gc.get_objects())
    expected = {
        1: np.sin(0.3) + 0.3 * np.cos(0.3),
        2: 2 * np.cos(0.3) - 0.3 * np.sin(0.3),
        3: -3 * np.sin(0.3) - 0.3 * np.cos(0.3),
    }
    np.testing.assert_allclose(run(), expected[order], rtol=1e-12)
    assert (live_nodes(), sum(isinstance(o, Tensor) for o in gc.get_objects())) == before


def test_a_failed_backward_keeps_nothing_alive(no_collector):
    def run():
        w = leaf(1.0, 2.0)
        y = w * w
        try:
            y.backward()
        except GradError:
            return

    run()
    before = live_nodes()
    run()
    assert live_nodes() == before


# The lines of nodes ---------------------------------------------------------------------------------------------------


def here():
    return sys._getframe(1).f_code.co_filename, sys._getframe(1).f_lineno


def test_nodes_name_the_line_that_called(tmp_path):
    w = leaf(1.0, 2.0)
    made = [w + 1, w.sum(), -w, w[0], mg.exp(w), w.T if w.ndim == 2 else w.reshape(2, 1), 2.0 * w, here()]
    *tensors, line = made
    for tensor in tensors:
        assert line_of(tensor.node.where) == line, tensor.node


def test_composed_functions_give_their_nodes_the_line_that_called_them():
    w = leaf(1.0, 2.0)
    composed = [w.mean(), w.var(), mg.std(w), w.clip(0, 1), mg.sort(w), mg.stack([w, w]), mg.pad(w, 1), here()]
    *tensors, line = composed
    for tensor in tensors:
        for node in mg.core.node.topological_order([tensor.node]):
            if node.op is not None:
                assert line_of(node.where) == line, node


def test_nodes_of_a_function_of_the_user_name_the_line_inside_it():
    def mine(x):
        return x * 2, here()

    y, line = mine(leaf(1.0))
    assert line_of(y.node.where) == line


def test_nodes_of_a_gradient_know_which_node_they_belong_to():
    w = leaf(1.0)
    h = w * w
    g = mg.gradients(h.sum(), w, create_graph=True)
    origins = {n.origin.name for n in mg.core.node.topological_order([g.node]) if n.origin is not None}
    assert origins <= {"multiply", "sum"} and "multiply" in origins
    assert h.node.origin is None


def test_a_scope_names_a_part_of_the_graph():
    w = leaf(1.0)
    with mg.scope("outer"), mg.scope("inner"):
        y = w * 2
    assert y.node.scope == ("outer", "inner") and (w * 2).node.scope == ()


def test_nodes_of_layers_name_the_line_that_called_the_layer():
    class Network(mg.nn.Module):
        def __init__(self):
            self.first, self.second = mg.nn.Linear(3, 4), mg.nn.Linear(4, 2)

        def forward(self, x):
            hidden = mg.relu(self.first(x))
            return mg.softmax(self.second(hidden)), here()

    y, line = Network()(mg.ones((5, 3)))
    lines = {line_of(n.where) for n in mg.core.node.topological_order([y.node]) if n.op is not None}
    assert lines == {line, (line[0], line[1] - 1)}
