"""A tape that a page computes again: values and gradients of every instruction, against `backward()`.

The tape is run here by a small evaluator, and in a browser by the page's own.
"""

import json
import math
import re

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.expression import FUNCTIONS, OPERATORS
from minigrad.viz.exhibit import static
from minigrad.viz.live import MISSING, listed, live_of
from minigrad.viz.naming import names_in_code
from minigrad.viz.numbers import Summary, short
from minigrad.viz.steps import record_steps
from tests.viz.browser import needs_browser, opened
from tests.viz.test_steps import places_of

MARKS = re.compile("\ue000\\d+\ue001")  # in formulas, where the page puts in numbers
ESCAPED = "ue000"

NUMPY = {
    "where": np.where, "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": np.floor_divide,
    "%": np.mod, "-x": np.negative, "~": np.logical_not, "<": np.less, "<=": np.less_equal, "==": np.equal,
    "&": np.logical_and, "|": np.logical_or, "^": np.logical_xor, "pow": np.power, "max": np.maximum,
    "min": np.minimum, "abs": np.abs, "atan2": np.arctan2, "cos": np.cos, "sin": np.sin, "exp": np.exp,
    "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "tanh": np.tanh, "floor": np.floor,
    "erf": np.vectorize(math.erf), "rint": np.rint, "bool": lambda x: x != 0, "trunc": np.trunc, "cast": lambda x: x,
}


def evaluated(tape, leaves):
    """The registers of a tape, as a function of their numbers."""
    numbers = lambda values: np.array([float(x) for x in values])  # noqa: E731
    registers, constants = [numbers(x) for x in leaves], [numbers(x) for x in tape["constants"]]
    at = lambda r: constants[-1 - r] if r < 0 else registers[r]  # noqa: E731
    with np.errstate(all="ignore"):
        for name, *rest in tape["code"]:
            if name == "take":
                found = np.concatenate([at(r) for r in rest[1:]])[np.array(places_of(rest[0]), int)]
            elif name == "fold":
                how, size, runs, source = rest
                found = np.full(size, {"+": 0.0, "*": 1.0, "max": -np.inf, "min": np.inf}[how])
                NUMPY[how].at(found, np.array(places_of(runs), int), np.resize(at(source), sum(runs[2::3])))
            elif name == "@":
                stack, m, k, n, a, b = rest
                left, right = np.resize(at(a), (stack, m, k)), np.resize(at(b), (stack, k, n))
                found = (left @ right).reshape(-1)
            else:
                given = [at(r) for r in rest]
                size = 0 if any(x.size == 0 for x in given) else max(x.size for x in given)
                found = NUMPY[name](*[np.resize(x, size) for x in given])
            registers.append(np.asarray(found, float))
    return at


UNARY = {name: getattr(mg, name) for name in (
    "negative", "abs", "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "tanh", "sinh", "cosh", "sigmoid",
    "erf", "relu", "gelu", "silu", "elu", "softplus", "leaky_relu", "square", "reciprocal", "log2", "log10", "exp2",
    "rsqrt", "sign",
) if hasattr(mg, name)}
BINARY = {
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y, "power": lambda x, y: x**y, "maximum": mg.maximum, "minimum": mg.minimum,
    "atan2": mg.atan2, "hypot": mg.hypot, "logaddexp": mg.logaddexp, "remainder": lambda x, y: x % y + x,
    "floor": lambda x, y: mg.floor(x) * y,
    "round": lambda x, y: mg.round(x) * y, "floor_divide": lambda x, y: x // y * y,
    "less": lambda x, y: mg.where(x < y, x * y, y), "less_equal": lambda x, y: mg.where(x <= 1.0, x, y),
    "and": lambda x, y: mg.where((x < 1.0) & (y < 1.0), x, y), "or": lambda x, y: mg.where((x < 0.6) | (y < 1.0), x, y),
    "xor": lambda x, y: mg.where((x < 0.6) ^ (y < 1.0), x, y), "not": lambda x, y: mg.where(~(x < 0.6), x, y),
    "equal": lambda x, y: mg.where(x == y, x, y * x), "to int": lambda x, y: (x * 3).astype(mg.int64) * y,
    "to bool": lambda x, y: (x - x * y).astype(mg.bool) * y,
}
ARRAYS = {
    "product": lambda x, y: (x @ y.T).sum() + (x[0] @ y[1]), "vector": lambda x, y: mg.tanh(x @ y[0]).sum(),
    "stack of products": lambda x, y: mg.sin(mg.stack([x, y]) @ y.T).sum(),
    "sums": lambda x, y: (x.sum(axis=0) * y.sum(axis=1, keepdims=True)).sum(),
    "mean": lambda x, y: (x.mean(axis=1) ** 2).sum(),
    "prod": lambda x, y: mg.prod(x, axis=1).sum() * y.sum(), "max": lambda x, y: (mg.max(x, axis=1) * mg.min(y)).sum(),
    "columns": lambda x, y: (x * y[:, :1]).sum(),
    "rows": lambda x, y: (x * y[0]).sum(),
    "scalar": lambda x, y: (x * y[0, 1]).sum(),
    "views": lambda x, y: (x.T.reshape(3, 2) * y.reshape(2, 3)[:, ::-1].reshape(3, 2)).sum(),
    "gather": lambda x, y: (x[mg.asarray([0, 1, 1])] * y[1]).sum(),
    "concat": lambda x, y: (mg.concat([x, y * 2, mg.ones((1, 3))]) ** 2).sum(),
    "pad": lambda x, y: (mg.pad(x, 1) ** 2).sum(), "put": lambda x, y: written(x * 1.0, y).sum(),
    "cross entropy": lambda x, y: mg.cross_entropy(x, mg.asarray([0, 2])) * y.sum(),
    "softmax": lambda x, y: (mg.softmax(x) * y).sum(), "logsumexp": lambda x, y: mg.logsumexp(x + y, axis=1).sum(),
    "layer norm": lambda x, y: (mg.layer_norm(x) * y).sum(),
    "segments": lambda x, y: (mg.segment_sum(x, mg.asarray([1, 1]), 3) ** 2).sum() + y.sum(),
    "windows": lambda x, y: mg.sin(mg.conv1d(x[None], y[None, :, :2])).sum(),
    "infinity": lambda x, y: mg.max(mg.where(x < 0.4, -math.inf, x), axis=0).max() * y.sum(),
    "loop": lambda x, y: rounds(x[0, 0], y[0, 0]),
    "mask": lambda x, y: mg.softmax(mg.where(x < 0.7, x, -math.inf)).max() * y.sum(),
}


def written(x, y):
    x[0] = y[1] * 2
    return x * x


def rounds(x, y):
    for _ in range(5):
        x = x + mg.sin(x * y)
    return x


POINTS = ([0.3, 0.7], [0.9, 2.2], [1.7, 0.4], [2.5, 2.5])
ALL = {
    **{name: lambda x, y, f=f: f(x) * y for name, f in UNARY.items()}, **BINARY, **ARRAYS,
}


def arguments(name, point):
    given = [0.2 * point[0], point[1]] if name == "tan" else point
    if name not in ARRAYS:
        return [mg.asarray(v, requires_grad=True, dtype=mg.float64) for v in given]
    wave = np.sin(np.arange(1.0, 7.0)).reshape(2, 3)
    return [mg.asarray(v + 0.3 * wave * (1 + i), requires_grad=True, dtype=mg.float64) for i, v in enumerate(given)]


def tape_of(function, x, y):
    """The tape of a function, and its results: the registers of the value, and of the gradients of the leaves."""
    with mg.record():  # also what is made of masks alone
        result = function(x, y)
    recording = record_steps(result)
    live = live_of(recording, {})
    assert not live.why, live.why
    found = [live.registers[recording.nodes[-1]]]
    for leaf in (x, y):
        steps = [made for step, made in zip(recording.steps, live.tape["steps"]) if step.target is leaf.node]
        last = steps[-1] if steps else None
        found.append(None if last is None else last[3] if last[3] is not None else last[1])
    place = {leaf: i for i, leaf in enumerate(live.leaves)}
    return json.loads(json.dumps(live.tape)), [place.get(leaf.node) for leaf in (x, y)], found


def cases():
    """Each operation's tape, made at one point, and what backward() finds at all of them."""
    for name, function in ALL.items():
        tape, places, registers = tape_of(function, *arguments(name, POINTS[0]))
        for point in POINTS:
            leaves = arguments(name, point)
            value = function(*leaves)
            value.backward()
            given = [list(x) for _, x in tape["leaves"]]
            for leaf, place in zip(leaves, places):
                if place is not None:
                    given[place] = leaf.numpy_copy().reshape(-1).tolist()
            slopes = [None if x.grad is None else x.grad.numpy().reshape(-1).tolist() for x in leaves]
            wanted = [[value.item()], *slopes]
            pairs = [(r, w) for r, w in zip(registers, wanted) if r is not None]
            yield name, point, tape, given, pairs


@pytest.fixture(scope="module")
def all_cases():
    return list(cases())


def close(found, wanted, what, rtol=1e-6):
    np.testing.assert_allclose(np.resize(found, len(wanted)), wanted, rtol, 1e-9, err_msg=what)


def test_the_tape_gives_what_backward_gives(all_cases):
    for name, point, tape, given, pairs in all_cases:
        at = evaluated(tape, given)
        for register, wanted in pairs:
            close(at(register), wanted, f"{name} at {point}")


def test_every_instruction_is_tried(all_cases):
    used = {line[0] for _, _, tape, _, _ in all_cases for line in tape["code"]}
    folds = {line[1] for _, _, tape, _, _ in all_cases for line in tape["code"] if line[0] == "fold"}
    assert used >= {*OPERATORS.values(), *FUNCTIONS} - MISSING - {"cast"}
    assert used >= {"where", "take", "fold", "@", "bool", "trunc"}
    assert folds == {"+", "*", "max", "min"}


SCRIPTS = """<script>{numbers}{tape}
window.found = (cases) => cases.map(([tape, given, registers]) => {{
  const at = tapeOf(tape)(given);
  return registers.map((r) => Array.from(at(r), String));
}});
window.words = (numbers) => numbers.map((x) => short(Number(x)));
window.summed = (values, shape, kind) => summaryOf(Float64Array.from(values, Number), shape, kind);
</script>"""


@pytest.fixture(scope="module")
def scripts():
    with opened(SCRIPTS.format(numbers=static("numbers.js"), tape=static("tape.js"))) as page:
        yield page


@needs_browser
def test_the_page_computes_the_same(all_cases, scripts):
    cases = [[tape, given, [r for r, _ in pairs]] for _, _, tape, given, pairs in all_cases]
    found = scripts.evaluate("(cases) => window.found(cases)", cases)
    for (name, point, _, _, pairs), values in zip(all_cases, found):
        for (_, wanted), value in zip(pairs, values):
            close([float(x.replace("Infinity", "inf")) for x in value], wanted, f"{name} at {point}")


NUMBERS = [0.0, -0.0, 1.0, 1.125, 1.135, -2.5, 0.0625, 1234.5, 999.5, 99949999.0, 1e-4, 9.995e-5, 1.2345e-7, 1e300,
           2.675, 0.1235, 100.0, 1000.0, -1e-6, float("inf"), float("-inf"), float("nan"), 12.25, 1225.0, 0.3, 1 / 3]


def number(value=2.0, dtype=mg.float32):
    return mg.asarray(value, requires_grad=True, dtype=dtype)


def changed_since():
    x = mg.asarray([1.0, 2.0], requires_grad=True)
    y = (x + x).sum()
    with mg.no_grad():
        x += 1
    return y


def chain(count):
    y = x = number()
    for i in range(count):
        y = mg.sin(y) if i % 2 else y * x
    return y


def with_a_hook():
    x = number()
    y = x * x
    y.register_hook(lambda g: mg.asarray(g.item() * 2))
    return y * x


def ruled_by_hand():
    @mg.custom_vjp
    def twice(x):
        return x * 2.0

    twice.defines(lambda x: (x * 2.0, None))
    twice.gradient(lambda kept, g: (g * 2.0,))
    return twice(number()) * 3.0


def several():
    x = mg.asarray([[4.0, 1.0], [1.0, 3.0]], requires_grad=True)
    return mg.linalg.slogdet(x)[1]


def of_two(function):
    """A function of two numbers."""
    return lambda: function(mg.asarray([2.0, 1.0], requires_grad=True)).sum()


NO_SLIDER = {
    "sort": (of_two(mg.sort), "a page can't compute sort again"),
    "scatter": (of_two(lambda x: mg.segment_max(x, mg.asarray([0, 0]), 1)), "a page can't compute scatter_max again"),
    "solve": (of_two(lambda x: mg.linalg.solve(mg.eye(2), x)), "a page can't compute solve again"),
    "several results": (several, "a page can't compute slogdet again"),
    "no floats": (lambda: mg.sin(0.5 * lost()), "no leaf of this pass holds floats"),
    "rule by hand": (ruled_by_hand, "a page can't compute twice again"),
    "hook": (with_a_hook, "a gradient here was made by no operation"),
    "changing places": (of_two(lambda x: x[(x - 1).astype(mg.int64)] * x),
                        "can't compute gather at places that change"),
    "long": (lambda: chain(4_001), "its tape has"),
    "large": (lambda: mg.tanh(mg.ones((101, 100), requires_grad=True)).sum(),
              "the pass has 20,201 numbers in its values"),
    "long tape": (lambda: mg.cumulative_sum(mg.ones((80, 80), requires_grad=True), axis=0).sum(), "its tape has"),
    "gone": (changed_since, "leaf (2,) was changed since"),
}


def conditional(x):
    return mg.cond(x > 0, lambda x: x * x, lambda x: -x, x)


def repeated(x):
    return mg.while_loop(lambda c: c < 50.0, lambda c: c * c, x, max_steps=9)


def lost():
    return mg.ones((0,), requires_grad=True).sum()


@pytest.mark.parametrize("jit", [mg.jit, lambda f: f], ids=["jit", "eager"])
@pytest.mark.parametrize("choose", [conditional, repeated])
def test_what_ran_because_of_a_number_can_be_dragged_in_every_mode(choose, jit):
    """The page says that nothing is decided again."""
    x = number()
    assert mg.viz.step(jit(choose)(x)).live.leaves == (x.node,)


@pytest.mark.parametrize("make, why", NO_SLIDER.values(), ids=NO_SLIDER)
def test_without_a_slider_the_page_says_why(make, why):
    with mg.record():
        result = make()
    data = mg.viz.step(result).data()
    assert data["live"] == {"why": data["live"]["why"]}
    assert data["live"]["why"].startswith("No number can be dragged: ") and why in data["live"]["why"]
    assert not MARKS.search(json.dumps(data, ensure_ascii=False))


def test_formulas_have_marks_where_the_page_puts_in_numbers():
    a = number() * 2
    data = json.dumps(mg.viz.step(a * a + a).data(), ensure_ascii=False)
    assert MARKS.findall(data) and ESCAPED not in data


def test_a_leaf_behind_an_operation_that_no_page_computes_stays_and_others_can_be_dragged():
    x, scale = mg.asarray([2.0, 1.0], requires_grad=True), number()
    stepper = mg.viz.step((mg.sort(x) * scale).sum())
    assert stepper.live.leaves == (scale.node,)
    assert stepper.live.why == "No slider for x: a page can't compute sort again."


def test_data_can_be_dragged_if_it_has_a_name_and_integers_cannot():
    x, labels = mg.asarray([[1.0, 2.0]]), mg.asarray([1])
    w = mg.asarray([[1.0, -1.0], [0.5, 2.0]], requires_grad=True)
    stepper = mg.viz.step(mg.cross_entropy(x @ w, labels))
    assert set(stepper.live.leaves) == {x.node, w.node}
    assert mg.viz.step((w * mg.asarray(2.0)).sum()).live.leaves == (w.node,)


ADJACENCY, FEATURES = np.eye(3)[[1, 2, 0]] + 0.5, np.arange(6.0).reshape(3, 2) / 3


def hessian_vector(w, A):
    return (mg.grad(lambda w: mg.tanh(A @ w).sum())(w) * w).sum()


def rows_of_a_loop(w, A):
    return mg.scan(lambda h, row: (mg.tanh(h * w + row), mg.sum(h * row)), w, A * w)[1].sum()


def recurrent(w, A):
    mg.random.seed(0)
    layers = [kind(3, 2, dtype=mg.float64) for kind in (mg.nn.LSTM, mg.nn.GRU, mg.nn.RNN)]
    return sum((layer((A * w)[:, None])[0] ** 2).sum() for layer in layers)


def graph_network(w, A):
    features = mg.asarray(FEATURES)
    return (A @ mg.tanh(A @ features @ w)).sum()


def prepared(w, A):
    features = mg.asarray(FEATURES)
    hidden = A @ features
    return (A @ mg.tanh(hidden @ w)).sum()


def with_a_view(w, A):
    first = A[:2]
    return (mg.tanh(A @ w)[:2] * (first @ w)).sum()


def with_a_mask(w, A):
    return mg.where(A > 0.7, A * w[0], 0.0).sum()


def regression(w, A):
    y = mg.asarray([1.0, 2.0, 3.0], dtype=mg.float64)
    return ((A @ w - y) ** 2).mean()


def with_labels(w, A):
    labels = mg.asarray([0, 2, 1])
    return mg.cross_entropy(A * w, labels)


COMPUTED = " may come from such data, and would not follow."


def read_in(function):
    return f"line {function.__code__.co_firstlineno + 1} reads"


STAYS = "Where data are dragged, other data stay as they are."
DATA = {
    "second derivative": (
        hessian_vector, 3, False, f"No slider for A: the constant 1 that {read_in(hessian_vector)}{COMPUTED}"),
    "rows of a loop": (rows_of_a_loop, 3, True, ""),
    "graph network": (graph_network, 2, False, f"No slider for A: A @ features{COMPUTED}"),
    "prepared data": (prepared, 2, True, STAYS),
    "a view": (with_a_view, 3, False, f"No slider for A: first{COMPUTED}"),
    "a mask": (
        with_a_mask, 3, False, f"No slider for A: the constant 3 × 3  bool that {read_in(with_a_mask)}{COMPUTED}"),
    "regression": (regression, 3, True, STAYS), "labels": (with_labels, 3, True, ""),
}


@pytest.mark.parametrize("function, size, dragged, why", DATA.values(), ids=DATA)
def test_data_can_be_dragged_where_no_other_data_may_come_from_them(function, size, dragged, why):
    w = mg.asarray(np.arange(1.0, size + 1) / 4, requires_grad=True)
    A = mg.asarray(ADJACENCY)
    live = mg.viz.step(function(w, A), names={"w": w, "A": A}).live
    assert w.node in live.leaves and (A.node in live.leaves) == dragged
    assert live.why == why


@pytest.mark.parametrize("function", [
    regression, with_labels, hessian_vector, graph_network, rows_of_a_loop, recurrent,
])
def test_what_can_be_dragged_follows_as_if_the_program_had_run_again(function):
    size = 2 if function is graph_network else 3

    def recorded(change):
        w = mg.asarray(np.arange(1.0, size + 1) / 4, requires_grad=True)
        A = mg.asarray(ADJACENCY)
        with mg.no_grad():
            change(w, A)
        recording = record_steps(function(w, A))
        return recording, live_of(recording, {w.node: "w", A.node: "A"} | names_in_code(recording.nodes)), (w, A)

    _, live, given = recorded(lambda w, A: None)
    for i, tensor in enumerate(given):
        if tensor.node in live.leaves:
            def change(w, A, i=i):
                (w, A)[i].reshape(-1)[0] = -0.7

            wanted, _, _ = recorded(change)
            leaves = [list(x) for _, x in live.tape["leaves"]]
            leaves[live.leaves.index(tensor.node)][0] = -0.7
            at = evaluated(live.tape, leaves)
            for place, node in zip(live.tape["nodes"], wanted.nodes):
                if place is not None:
                    close(at(place), wanted.small[node].reshape(-1), node.name)
            for (_, made, _, _), step in zip(live.tape["steps"], wanted.steps):
                if made is not None and step.value.few:
                    close(at(made), step.value.few, step.kind)


def test_a_constant_that_may_have_been_computed_is_called_as_it_is_written():
    place, speed = mg.asarray([1.0, 2.0], requires_grad=True), mg.zeros(2)
    speed = speed - 0.5 * place - 0.1 * speed
    stepper = mg.viz.step((speed * speed).sum())
    assert stepper.live.why == f"No slider for speed₁: 0.1 · speed{COMPUTED}"
    assert place.node in stepper.live.leaves


def test_every_leaf_without_a_slider_has_its_reason():
    x, y, w = (mg.asarray([2.0, 1.0], requires_grad=True) for _ in range(3))
    result = (mg.sort(x) * mg.segment_max(y, mg.asarray([1, 0]), 2) * w).sum()
    why = mg.viz.step(result, names={"x": x, "y": y, "w": w}).live.why
    assert "No slider for x: a page can't compute sort again." in why
    assert "No slider for y: a page can't compute scatter_max again." in why


def test_random_numbers_stay_as_they_were_drawn():
    x = mg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    stepper = mg.viz.step((mg.dropout(x, 0.5) * x).sum())
    assert stepper.live.leaves == (x.node,) and stepper.live.why == ""


def test_a_rule_that_is_not_the_librarys_is_not_computed_again(monkeypatch):
    x = number()
    y = mg.sin(x)
    (rule,) = y.node.plan.rules
    own = lambda g, x: g * 2.0  # noqa: E731
    own.by = "mine"
    monkeypatch.setattr(y.node, "plan", y.node.plan._replace(rules=(rule._replace(function=own),)))
    assert "the gradient rule of sin is not the library's" in mg.viz.step(y * 1.0).live.why


def test_leaves_of_finished_functions_and_constants_in_the_library_are_known():
    def made():
        x, shift = mg.asarray(1.5, requires_grad=True), mg.asarray([1.0, 2.0])
        return (mg.softplus(x) * mg.log2(x) + mg.log10(x) * shift).sum()

    stepper = mg.viz.step(made())
    assert stepper.live.leaves == (stepper.nodes[0],) and stepper.recording.missing == ""


def test_recording_the_walk_changes_no_number_and_no_gradient(monkeypatch):
    x = number(0.7)
    y = mg.sin(x * x) * x
    walked = record_steps(y)
    monkeypatch.setattr("minigrad.viz.steps.NUMBERS", 0)
    plain = record_steps(y)
    assert [s[:7] for s in plain.steps] == [s[:7] for s in walked.steps]
    assert not any(step.made for step in plain.steps)
    assert x.grad is None
    y.backward()
    assert walked.steps[-1].total.few == (x.grad.item(),)
    assert all(step.made[1] is not None for step in walked.steps)


def test_a_result_of_jit_a_scan_and_a_write_in_place_are_on_a_tape():
    x = mg.asarray([0.5, -0.2, 0.1], requires_grad=True)
    jitted = mg.jit(lambda x: (mg.scan(lambda c, v: (mg.tanh(c + v), c * 2), x.sum(), x)[1] * x).sum())
    z = x * 1.0
    z[0] = x[1] * 2
    for result in (jitted(x), (z * z).sum(), mg.viz.step(jitted(x)).result):
        if not isinstance(result, mg.Tensor):
            continue
        assert mg.viz.step(result).live.why == ""


@needs_browser
def test_the_page_writes_numbers_as_python_does(scripts):
    assert scripts.evaluate("(xs) => window.words(xs)", listed(NUMBERS)) == [short(x) for x in NUMBERS]


SHAPES = [(), (1,), (3,), (4,), (7,), (0, 3), (2, 3), (5, 4), (13, 25), (5, 2, 7), (1, 1, 28, 28), (4, 2, 8, 9)]


@needs_browser
@pytest.mark.parametrize("shape", SHAPES)
def test_the_page_sums_tensors_up_as_python_does(scripts, shape):
    rng = np.random.default_rng(0)
    for kind in ("float64", "int64", "bool"):
        array = np.asarray(rng.normal(size=shape) * 3).astype(kind)
        if kind == "float64" and array.size > 6:
            array.reshape(-1)[[1, 5]] = np.nan, np.inf
        summary = Summary.of(array)
        wanted = [summary.line(), summary.short(), summary.cells, summary.corner]
        found = scripts.evaluate("([a, b, c]) => window.summed(a, b, c)", [listed(array), list(shape), kind])
        assert found == wanted, kind
