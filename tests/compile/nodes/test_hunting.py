"""`debug_nans` in graph mode and under jit: the error names the first node that makes a nan, and its line."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.running import program as programs
from minigrad.support.errors import NanError

pytestmark = pytest.mark.usefixtures("numpy_kernels")


def fixed(*values):
    return mg.asarray([float(v) for v in values])


def leaf(*values):
    return mg.asarray([float(v) for v in values], requires_grad=True)


def wrong(x):
    h = x * 2
    y = mg.log(h - 4)
    return mg.where(x > 100, y, 1.0).sum()


LINE = f"{__file__}:{wrong.__code__.co_firstlineno + 2}  y = mg.log(h - 4)"


def test_a_fused_program_names_the_node_that_made_it_and_its_line(capsys):
    f = mg.jit(wrong)
    assert f(fixed(1)).item() == 1, "the nan is made, and not used"
    with mg.debug_nans():
        assert f(fixed(3)).item() == 1
        with pytest.raises(NanError) as error:
            f(fixed(3, 1))
    assert f"log, made at {LINE}, made a nan from inputs without one" in str(error.value)
    assert "x (2,) from -2 to 2" in str(error.value)
    assert f(fixed(3, 1)).item() == 2 and len(f.traces) == 2, "no trace is made for the hunt"


def test_hunt_in_graph_mode_in_either_nesting():
    for hunt_first in (True, False):
        with pytest.raises(NanError) as error:
            if hunt_first:
                with mg.debug_nans(), mg.graph():
                    wrong(fixed(1)).item()
            else:
                with mg.graph(), mg.debug_nans():
                    y = wrong(fixed(1))  # still held, so it is computed when the hunt ends
                    assert y.shape == ()
        assert LINE in str(error.value)
    with mg.graph():
        with mg.debug_nans():
            mg.ones(1) + 1
        y = wrong(fixed(1))
    assert y.item() == 1


def test_a_hunt_inside_of_a_jitted_function_is_for_each_run():
    @mg.jit
    def f(x):
        with mg.debug_nans():
            return wrong(x)

    assert f(fixed(3)).item() == 1
    for _ in range(2):
        with pytest.raises(NanError) as error:
            f(fixed(1))
        assert LINE in str(error.value)
    g = mg.jit(lambda x: f(x) * 2)
    with pytest.raises(NanError, match="log, made at"):
        g(fixed(1))
    assert np.isnan(mg.log(fixed(-1)).item())


def test_hunt_in_a_backward_pass_inside_and_outside():
    w = leaf(0)

    def loss_of(w):
        return (mg.sqrt(w) * 0.0).sum()

    line = f"{__file__}:{loss_of.__code__.co_firstlineno + 1}"

    @mg.jit
    def step():
        loss_of(w).backward()

    f = mg.jit(loss_of)
    with mg.debug_nans():
        y = f(w)
        for run in (step, y.backward):
            with pytest.raises(NanError) as error:
                run()
            assert f"in the gradient of sqrt made at {line}" in str(error.value)


def test_infinities_are_found_on_request():
    f = mg.jit(lambda x: mg.exp(x) * 2)
    x = fixed(1000)
    with mg.debug_nans():
        assert np.isinf(f(x).item())
    for run in (f, f.function):
        with mg.debug_nans(infinities=True), pytest.raises(NanError, match=r"exp.* made an infinity from inputs"):
            run(x)
    with mg.debug_nans(infinities=True):
        assert mg.where(x > 0, -np.inf, x).tolist() == [-np.inf]
        assert mg.full(2, np.inf).tolist() == [np.inf] * 2


def test_a_nan_that_is_assigned_is_not_an_error():
    f = mg.jit(lambda x: (mg.where(x > 0, np.nan, x), mg.full(2, np.nan) + x))
    with mg.debug_nans():
        assert np.isnan(f(fixed(1, -1))[0].tolist()).tolist() == [True, False]
        assert np.isnan(f(leaf(1, -1))[0].tolist()).tolist() == [True, False]
        assert np.isnan(f(fixed(np.nan, 1))[1].tolist()).all()


def test_prints_before_the_nan_happen_once(capsys):
    @mg.jit
    def f(x):
        mg.print("before", x)
        y = mg.log(x)
        mg.print("after", y)
        return y

    with mg.debug_nans():
        f(fixed(1))
        assert capsys.readouterr().out == "before: [1.]\nafter: [0.]\n"
        with pytest.raises(NanError):
            f(fixed(-1))
        assert capsys.readouterr().out == "before: [-1.]\n"


def test_random_numbers_and_writes_are_those_of_one_run():
    total = fixed(0)

    def f():
        drawn = mg.random.uniform((1,))
        with mg.no_grad():
            total.__iadd__(drawn)
        return drawn

    seen = []
    for hunt in (False, True):
        mg.random.seed(4)
        total[...] = 0
        jitted = mg.jit(f)
        with mg.debug_nans() if hunt else mg.no_grad():
            seen.append([jitted().tolist(), jitted().tolist(), total.tolist()])
    assert seen[0] == seen[1] and seen[0][2] == [np.float32(seen[0][0][0]) + np.float32(seen[0][1][0])]


def test_a_nan_that_only_the_program_makes(monkeypatch):
    f = mg.jit(lambda x: x * 2)
    f(fixed(1))
    run = programs.Program._run
    monkeypatch.setattr(programs.Program, "_run", lambda *args: [array * np.nan for array in run(*args)])
    with mg.debug_nans(), pytest.raises(NanError, match=r"the program made a nan in multiply, made at .*node by node"):
        f(fixed(1))


def test_hunt_that_is_off_costs_nothing():
    f = mg.jit(wrong)
    with mg.debug_nans():
        pass
    assert f(fixed(1)).item() == 1


def test_hunt_works_around_vmap_and_is_refused_inside():
    def f(x):
        with mg.debug_nans():
            return mg.log(x)

    with pytest.raises(mg.TraceError, match="debug_nans begins inside vmap"):
        mg.vmap(f)(fixed(1, 2))
    jitted = mg.jit(mg.vmap(f))  # here the hunt covers the whole program
    assert jitted(fixed(1, 1)).tolist() == [0, 0]
    with pytest.raises(NanError, match="log"):
        jitted(fixed(1, -2))
    for transformed in (mg.vmap(mg.log), mg.jit(mg.vmap(mg.log))):
        with mg.debug_nans(), pytest.raises(NanError, match="log"):
            transformed(fixed(1, -2))


def test_hunt_as_a_decorator():
    f = mg.debug_nans()(mg.jit(mg.log))
    assert f(fixed(1)).tolist() == [0]
    with pytest.raises(NanError):
        f(fixed(-1))
    assert np.isnan(mg.log(fixed(-1)).item())
