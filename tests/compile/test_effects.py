"""`mg.print` and `mg.breakpoint` in every mode: once for each run, in order, with the values of that run."""

import sys

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.rewriting import optimise
from minigrad.compile.running.program import Program

pytestmark = pytest.mark.usefixtures("numpy_kernels")


def fixed(*values):
    return mg.asarray([float(v) for v in values])


def leaf(*values):
    return mg.asarray([float(v) for v in values], requires_grad=True)


def in_graph_mode(f):
    def run(*args):
        with mg.graph():
            result = f(*args)
        return result

    return run


MODES = {"eager": lambda f: f, "jit": mg.jit, "graph": in_graph_mode, "nested jit": lambda f: mg.jit(mg.jit(f))}
every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())


# Printing -------------------------------------------------------------------------------------------------------------


@every_mode
def test_print_runs_each_time_in_the_order_of_the_lines(mode, capsys):
    def f(x, w):
        h = x @ w
        mg.print("late {h}", h=(h @ w).sum())
        mg.print("early", x)
        y = mg.tanh(h) * 2
        mg.print("then {:.2f} {}", y, "text")
        mg.print("no value")
        mg.print("early", x)
        return y.sum()

    f = mode(f)
    w = mg.asarray([[1.0, 0.0], [0.0, 1.0]])
    for value in (1.0, 2.0):
        f(mg.full((1, 2), value), w)
        assert capsys.readouterr().out.splitlines() == [
            f"late {2 * value:.0f}.",
            f"early: [[{value:.0f}., {value:.0f}.]]",
            f"then [[{2 * np.tanh(value):.2f}, {2 * np.tanh(value):.2f}]] text",
            "no value",
            f"early: [[{value:.0f}., {value:.0f}.]]",
        ]


@every_mode
def test_a_message_is_filled_in_as_python_does(mode, capsys):
    @mode
    def f(x):
        mg.print("{0:.1f} {0:e} {n:>3}|{x.shape} {x[1]:.2f} {{}} {x!r:.6}", x.sum(), x=x, n=7)
        mg.print(x, 3)
        mg.print("label", a=x, b=x.sum())
        return x

    f(fixed(1, 2.5))
    assert capsys.readouterr().out.splitlines() == [
        "3.5 3.500000e+00   7|(2,) 2.50 {} Tensor",
        "[1. , 2.5], 3",
        "label: a=[1. , 2.5], b=3.5",
    ]


def test_print_formats_the_elements_one_by_one():
    assert f"{fixed(1, 2.25):.1f}" == "[1.0, 2.2]" and f"{fixed(1):.1f}" == "1.0" and f"{fixed(1, 2)}" == "[1., 2.]"


def test_messages_with_unknown_fields_are_refused_at_once():
    for message, values, named in (("{y}", (), {"x": 1}), ("{} {}", (1,), {}), ("{3}", (1,), {})):
        with pytest.raises(mg.ConversionError, match="there is no value for the field"):
            mg.print(message, *values, **named)
    with pytest.raises(mg.ConversionError, match="is not a valid format string"):
        mg.print("{", 1)


@every_mode
def test_a_format_that_does_not_fit_the_value_is_an_error_at_the_line(mode):
    @mode
    def f(x):
        y = x * 2
        mg.print("{:q}", y)
        return y

    with pytest.raises(mg.ConversionError, match=r"cannot be filled in.*'q'") as error:
        f(fixed(1))
    assert "mg.print" in str(error.value) + "".join(getattr(error.value, "__notes__", []))


@every_mode
def test_a_print_shows_the_value_at_that_time(mode, capsys):
    w = fixed(1, 2)

    @mode
    def f():
        mg.print("before", w)
        with mg.no_grad():
            w.__iadd__(1)
        mg.print("after", w)

    for value in (1, 2):
        f()
        assert capsys.readouterr().out == (
            f"before: [{value}., {value + 1}.]\nafter: [{value + 1}., {value + 2}.]\n"
        )


def test_passes_neither_remove_nor_merge_effects():
    def f(x):
        for _ in range(3):
            mg.print("x", x * 1)
        return x

    graph = mg.trace(f, mg.ones(2))
    for without in ((), ("simplify",), ("common",)):
        program = Program(graph, without=without)
        assert len(program.optimised.effects) == 3
        assert [n.name for n in program.optimised.nodes].count("print") == 3


def test_effects_stay_in_order_where_rows_are_picked():
    def f(x, t):
        picked = mg.exp(x)[mg.arange(3), t]
        mg.print("first", picked)
        mg.print("second", t)
        return picked.sum()

    optimised, log = optimise(mg.trace(f, mg.ones((3, 2)), mg.asarray([0, 1, 1])))
    assert log.counts()["picked by comparing"] == 1
    messages = [node.attrs["message"] for node in optimised.nodes if node.name == "print"]
    assert messages == [node.attrs["message"] for node in optimised.effects] == ["first: {0}", "second: {0}"]


def test_effects_stay_in_order_where_a_loop_does_not_keep_its_carries():
    def f(x):
        def body(h, t):
            mg.print("body", h)
            return h * t, h

        last, _ = mg.scan(body, x, fixed(0, 1, 2))
        mg.print("after", x)
        return last.sum()

    optimised, log = optimise(mg.jit(f).graph(leaf(1, 2)))
    assert log.counts()["carries that are not read"] == 1
    assert [node.name for node in optimised.nodes if node.effect is not None] == ["scan", "print"]


def test_the_parallel_executor_keeps_the_order(capsys):
    @mg.jit(executor="parallel")
    def f(x):
        for i in range(6):
            mg.print("{}", i if i % 2 else (x @ x * i).sum())
        return x

    f(mg.ones((2, 2)))
    assert [float(line) for line in capsys.readouterr().out.split()] == [0, 1, 16, 3, 32, 5]


def test_tensors_on_several_devices_are_printed_together(capsys):
    for mode in (MODES["eager"], MODES["jit"]):
        mode(lambda x, y: mg.print("", x, y))(mg.ones(1), mg.zeros(1, device="cpu:1"))
        assert capsys.readouterr().out == "[1.], [0.]\n"


def test_prints_before_an_error_in_graph_mode_happen(capsys):
    with pytest.raises(ZeroDivisionError), mg.graph():
        mg.print("so far", mg.ones(1) + 1)
        raise ZeroDivisionError
    assert capsys.readouterr().out == "so far: [2.]\n"


# Beside transformations -----------------------------------------------------------------------------------------------


@every_mode
def test_gradients_print_nothing_again(mode, capsys):
    def f(w):
        h = w * w
        mg.print("h", h)
        return h.sum()

    w = leaf(1, 2)
    f = mode(f)
    f(w).backward()
    assert (w.grad.tolist(), capsys.readouterr().out) == ([2, 4], "h: [1., 4.]\n")
    mg.grad(f)(fixed(1, 2))
    assert capsys.readouterr().out == "h: [1., 4.]\n"


@every_mode
def test_a_gradient_is_printed_by_a_hook(mode, capsys):
    def forward(w):
        h = w * w
        h.register_hook(lambda g: mg.print("gradient", g))
        return (h * h).sum()

    def step(w):
        forward(w).backward()

    step, forward = mode(step), mode(forward)
    w = leaf(1, 2)
    for _ in range(2):
        step(w)
        assert capsys.readouterr().out == "gradient: [2., 8.]\n"
        forward(w).backward()
        assert capsys.readouterr().out == "gradient: [2., 8.]\n"


@every_mode
def test_vmap_prints_all_examples_at_once(mode, capsys):
    def f(x):
        mg.print("x {:.1f}", x)
        mg.print("constant", mg.ones(1))
        return x

    mode(mg.vmap(f))(fixed(1, 2))
    assert capsys.readouterr().out == "vmap of 2: x [1.0, 2.0]\nconstant: [1.]\n"
    mode(mg.vmap(mg.vmap(f)))(mg.ones((1, 2)))
    assert capsys.readouterr().out == "vmap of 1 × 2: x [[1.0, 1.0]]\nconstant: [1.]\n"
    mode(mg.vmap(f))(mg.ones(0))
    assert capsys.readouterr().out == "constant: [1.]\n"


@every_mode
def test_forward_mode_prints_the_value(mode, capsys):
    def f(x):
        mg.print("x", x)
        return x * x

    mode(lambda x: mg.jvp(f, (x,), (x,)))(fixed(3))
    assert capsys.readouterr().out == "x: [3.]\n"


@every_mode
def test_a_checkpoint_does_not_print_again(mode, capsys):
    @mg.checkpoint
    def f(w):
        h = w.tanh()
        mg.print("h {:.2f}", h)
        return h.exp()

    w = leaf(0, 1)
    mode(f)(w).sum().backward()
    assert capsys.readouterr().out == "h [0.00, 0.76]\n"
    np.testing.assert_allclose(w.grad.tolist(), [1.0, 0.42 * np.exp(0.7616)], rtol=1e-3)


# Stopping -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def stops(monkeypatch):
    found = []

    def hook():
        frame = sys._getframe(1)
        values = {name: value.tolist() for name, value in frame.f_locals.items() if isinstance(value, mg.Tensor)}
        found.append((frame, frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, values))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    return found


@every_mode
def test_breakpoint_stops_at_its_line_with_values_by_name(mode, stops):
    def f(x):
        h = x * 2
        mg.breakpoint(h, h + 1, first=x[0])
        return h.sum()

    line = f.__code__.co_firstlineno + 2
    f = mode(f)
    for value in (1.0, 2.0):
        f(fixed(value))
        [(frame, filename, where, function, values)] = stops
        stopping = line if sys.version_info >= (3, 13) else line - 1  # pdb went on to the next line from here
        assert (filename, where, function) == (__file__, stopping, "f")
        assert values == {"h": [2 * value], "value_1": [2 * value + 1], "first": value}
        assert frame.f_globals["leaf"] is leaf
        stops.clear()


@every_mode
def test_conditional_breakpoint_stops_only_where_the_condition_holds(mode, stops):
    @mode
    def f(x):
        h = x * 2
        mg.breakpoint(h, when=h.sum() > 5)
        mg.breakpoint(x, when=False)
        return h

    for value in (1.0, 3.0):
        f(fixed(value))
    assert [values for *_, values in stops] == [{"h": [6.0]}]


def test_breakpoint_stops_for_a_batch_if_any_example_meets_the_condition(stops):
    def f(x):
        mg.breakpoint(x, when=x > 1)
        return x

    mg.vmap(f)(fixed(0, 1))
    mg.jit(mg.vmap(f))(fixed(1, 2))
    assert [values for *_, values in stops] == [{"x": [1, 2]}]


def test_condition_of_a_breakpoint_is_bool():
    with pytest.raises(mg.ConversionError, match="`when` is a bool"):
        mg.breakpoint(when=mg.ones(1))


def test_a_browser_has_no_debugger(monkeypatch):
    monkeypatch.setattr("minigrad.devices.effects.IN_BROWSER", True)
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    with pytest.raises(mg.ConversionError, match=r"reads from a terminal, and a browser has none\n  Hint: mg.pr"):
        mg.breakpoint(mg.ones(1))


def test_breakpoint_starts_pdb(monkeypatch, capsys):
    """The debugger shows the user's line, and the variables exist."""
    import io
    import pdb

    typed = io.StringIO("p h.tolist()\nc\n")

    def hook():
        debugger = pdb.Pdb(stdin=typed, stdout=sys.stdout, nosigint=True, readrc=False)
        debugger.set_trace(sys._getframe(1))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    before = sys.gettrace()

    @mg.jit
    def f(x):
        h = x * 2
        mg.breakpoint(h)
        return h

    try:
        assert f(fixed(1)).tolist() == [2]
    finally:
        sys.settrace(before)
    out = capsys.readouterr().out
    assert "-> mg.breakpoint(h)" in out and "[2.0]" in out


def test_two_tensors_change_places():
    @mg.jit
    def crossed(a, b):
        a[:], b[:] = b + 1, a + 1

    for _ in range(2):
        a, b = mg.asarray([0.0, 1.0, 2.0]), mg.asarray([5.0, 5.0, 5.0])
        crossed(a, b)
        assert (a.tolist(), b.tolist()) == ([6, 6, 6], [1, 2, 3])


def test_three_tensors_change_places():
    @mg.jit
    def turned(a, b, c):
        a[:], b[:], c[:] = b * 2, c + 1, mg.exp(a)

    for _ in range(2):
        a, b, c = mg.asarray([0.0, 0.0]), mg.asarray([1.0, 2.0]), mg.asarray([3.0, 4.0])
        turned(a, b, c)
        assert (a.tolist(), b.tolist(), c.tolist()) == ([2, 4], [4, 5], [1, 1])
