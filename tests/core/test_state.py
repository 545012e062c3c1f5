"""The parts of a mode beside its interpreter: state that outlives an operation, and control flow."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.autodiff.batching import Vectorised
from minigrad.autodiff.forward import Forward
from minigrad.core.emit import Eager, Interpreter
from minigrad.core.mode import Mode, current_mode, switch
from minigrad.core.state import PYTHON_CONTROL, PYTHON_STATE, Control, State
from minigrad.support.errors import TraceError
from minigrad.train.precision import Autocast

IDEA = {"manifest", "manifest_values", "lift", "compute"}


def members(cls):
    return {name for name in vars(cls) if not name.startswith("_")}


def test_an_interpreter_has_at_most_six_members():
    assert members(Interpreter) >= IDEA and len(members(Interpreter)) <= 6


@pytest.mark.parametrize("cls", [Vectorised, Forward, Autocast])
def test_vmap_jvp_and_autocast_mention_neither_state_nor_control(cls):
    assert not members(cls) & (members(State) | members(Control))
    assert not issubclass(cls, State | Control)


class Traced(Interpreter, State, Control):
    pass


def test_interpreter_brings_its_state_and_control_and_none_uses_pythons():
    trace, plain = Traced(), Eager()
    mode = Mode().but(interpreter=trace)
    assert mode.state is mode.control is trace
    inside = mode.but(interpreter=plain)
    assert inside.interpreter is plain and inside.state is inside.control is trace
    outside = inside.but(interpreter=None)
    assert outside.state is PYTHON_STATE and outside.control is PYTHON_CONTROL
    assert mode.but(interpreter=trace, control=PYTHON_CONTROL).control is PYTHON_CONTROL


def test_state_and_control_stay_inside_of_vmap_jvp_and_autocast():
    seen = []

    class Watched(State):
        def gradient_of(self, tensor):
            seen.append(tensor.shape)
            return tensor._grad

    def read(x):
        assert current_mode().state is state
        w.grad  # noqa: B018
        return x * 2

    state, w = Watched(), mg.ones(2, requires_grad=True)
    with switch(state=state), mg.train.autocast():
        mg.vmap(read)(mg.ones((3, 2)))
        mg.jvp(read, (mg.ones(2),), (mg.ones(2),))
    assert seen == [(2,), (2,)]


@pytest.mark.parametrize("transform", [
    lambda f: mg.vmap(f)(mg.ones((2, 3))), lambda f: mg.jvp(f, (mg.ones(3),), (mg.ones(3),)),
    lambda f: mg.jvp(lambda x: mg.vmap(f)(x), (mg.ones((2, 3)),), (mg.ones((2, 3)),)),
])
def test_a_hunt_inside_of_vmap_or_jvp_is_refused(transform):
    def hunted(x):
        with mg.debug_nans():
            return x * 2

    with pytest.raises(TraceError, match="debug_nans begins inside vmap or jvp"):
        transform(hunted)
    with mg.train.autocast(), pytest.raises(TraceError, match="debug_nans begins inside vmap or jvp"):
        transform(hunted)


def test_branches_inside_of_jvp_inside_of_vmap_see_the_examples():
    def f(x):
        return mg.cond(x > 0, lambda x: x * 3, lambda x: x * 5, x)

    def moved(x):
        return mg.jvp(f, (x,), (mg.asarray(1.0),))[1]

    assert mg.vmap(moved)(mg.asarray(np.array([1.0, -1.0], "float32"))).tolist() == [3, 5]
    values, changes = mg.jvp(mg.vmap(f), (mg.asarray([1.0, -1.0]),), (mg.ones(2),))
    assert (values.tolist(), changes.tolist()) == ([3, -5], [3, 5])
