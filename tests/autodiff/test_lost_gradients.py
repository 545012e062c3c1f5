"""A warning, once for each line, where a function that is being differentiated turns a tensor into a number."""

import math
import warnings

import numpy as np
import pytest

import minigrad as mg

X = mg.asarray(0.5)


def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(w.category is mg.GradientWarning for w in caught)
    return caught


LEAVING = {
    "float()": lambda x: x * float(x * 2),
    "float() for math.sin": lambda x: x * math.sin(x * 2),
    "item()": lambda x: x * (x * 2).item(),
    "item() of the input itself": lambda x: x * x.item(),
    "int()": lambda x: x * int(x * 2),
    "complex()": lambda x: x * complex(x * 2).real,
    "tolist()": lambda x: x * (x * 2).tolist(),
    "numpy_copy()": lambda x: x * mg.asarray((x * 2).numpy_copy()),
    "item() for full": lambda x: x * mg.full((), x * 2),
}
ASKED = {
    "grad": lambda f: mg.grad(f)(X),
    "value_and_grad": lambda f: mg.value_and_grad(f)(X),
    "vjp": lambda f: mg.vjp(f, X)[1](X),
    "jacobian": lambda f: mg.jacobian(f)(X),
    "a second derivative": lambda f: mg.grad(mg.grad(f))(X),
}


@pytest.mark.parametrize("name", LEAVING)
def test_lost_gradients_are_reported_with_their_line(name):
    function = LEAVING[name]
    (found,) = warned(lambda: mg.grad(function)(X))
    what = name.partition(" ")[0]
    assert str(found.message) == (
        f"{what} in a function that is being differentiated: no gradient flows through its result\n"
        "  Hint: a function of mg in place of one of math or NumPy; x.detach() if no gradient is wanted"
    )
    assert (found.filename, found.lineno) == (__file__, function.__code__.co_firstlineno)


@pytest.mark.parametrize("name", ASKED)
def test_warning_appears_in_every_reverse_mode_transformation(name):
    namespace = {}
    exec(compile(f"def f(x):\n    return x * x * x.item()  # {name}", f"<{name}>", "exec"), namespace)
    assert len(warned(lambda: ASKED[name](namespace["f"]))) == 1


def test_warning_appears_once_for_each_line():
    def f(x):
        for _ in range(3):
            x = x * x.item()
        return x * x.item()

    assert len(warned(lambda: mg.grad(f)(X))) == 2
    assert warned(lambda: mg.grad(f)(X)) == []


def test_warning_is_not_shown_where_no_gradient_is_lost():
    w = mg.asarray(2.0, requires_grad=True)
    counts = mg.asarray([1, 2])

    def f(x):
        loss = x * w
        print(loss, f"{loss:.2f}", repr(loss))
        assert loss > 0 and bool(loss)
        with mg.no_grad():
            float(loss)
        loss.detach().item(), float(w), counts.tolist()
        np.allclose(loss, loss)
        return loss

    assert warned(lambda: mg.grad(f)(X)) == []
    assert warned(lambda: float(w * w)) == [], "outside functions that are being differentiated"


def test_forward_mode_and_programs_raise_errors():
    for call in (lambda f: mg.jvp(f, (X,), (X,)), lambda f: mg.jit(mg.grad(f))(X), lambda f: mg.hvp(f, (X,), (X,))):
        with pytest.raises(mg.TraceError, match=r"float\(\) needs the value of a tensor"):
            call(lambda x: x * math.sin(x))
