"""Views, writes and switched gradients give the same in eager mode, in graph mode and in jitted functions."""

from functools import partial

import pytest

import minigrad as mg

pytestmark = pytest.mark.usefixtures("numpy_kernels")


def eagerly(function):
    return function


def in_a_block(function):
    """The function in graph mode."""
    def run(*arguments):
        with mg.graph():
            return function(*arguments)

    return run


RECORDED = {"graph": in_a_block, "jit": mg.jit, "check": partial(mg.jit, check=True)}
in_every_mode = pytest.mark.parametrize("mode", [eagerly, *RECORDED.values()], ids=["eager", *RECORDED])


# Gradients ------------------------------------------------------------------------------------------------------------


def gradients_switched(w, b):
    """Results and a write with and without gradients, whatever the mode of the caller."""
    with mg.enable_grad():
        b[...] = w * 2
        made = w + 1
    with mg.no_grad():
        return b[0], made[1:], w * 2, made


@in_every_mode
@pytest.mark.parametrize("around", [mg.enable_grad, mg.no_grad])
def test_a_function_may_switch_gradients_on_and_off(around, mode):
    w, b = mg.ones(3, requires_grad=True), mg.zeros((2, 3))
    row = b[1]
    with around():
        results = mode(gradients_switched)(w, b)
    (row.sum() + results[3].sum()).backward()
    assert [t.tracked for t in (*results, b, row)] == [False, False, False, True, True, True]
    assert w.grad.tolist() == [3, 3, 3]


@in_every_mode
@pytest.mark.parametrize("view", [lambda x: x[:, ::2], lambda x: x[2:], lambda x: x.T, lambda x: x * 1])
def test_gradients_by_an_argument_go_through_its_views_that_are_returned(view, mode):
    argument = view(mg.ones((4, 6), requires_grad=True))
    turned, doubled = mode(lambda v: (v.T[1:], v * 2))(argument)
    (gradient,) = mg.gradients(turned.sum() + doubled.sum(), [argument])
    assert gradient.tolist() == [[2.0, *[3.0] * (argument.shape[1] - 1)]] * argument.shape[0]


@in_every_mode
@pytest.mark.parametrize("captured", [True, False])
def test_no_gradient_goes_through_a_view_made_without_gradients(captured, mode):
    w = mg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    doubled = w * 2
    with mg.no_grad():
        tensors = doubled[:2], w[1:]

    def product(view, part):
        return (view * doubled[1:] * part).sum()

    (mode(lambda: product(*tensors))() if captured else mode(product)(*tensors)).backward()
    assert w.grad.tolist() == [0, 8, 24]


@in_every_mode
def test_a_loop_over_a_written_tensor_has_a_gradient(mode):
    w, total = mg.ones(3, requires_grad=True), mg.ones(3)

    def run(w):
        total[...] = total + w
        return mg.scan(lambda h, x: (h * x, h), total, mg.asarray([2.0, 3.0]))[0]

    mode(run)(w).sum().backward()
    assert w.grad.tolist() == [6, 6, 6]


# Memory ---------------------------------------------------------------------------------------------------------------


@in_every_mode
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_tensors_without_elements_are_written(shape, mode):
    def write(x):
        x[...] = 0.5
        x -= x * 2

    x = mg.ones(shape)
    mode(write)(x)
    assert x.shape == shape


def added(total, x):
    """A round that changes its carry in place, and also returns it as its result."""
    total += x
    return total, total


OWN = {  # of x, which is (1, 2): what is written, and a tensor or several that do not change with it
    "an operand": lambda x: (mg.cond(x.sum() > 0, lambda x: x, lambda x: x + 1, x), x),
    "a view of an operand": lambda x: (mg.cond(x.sum() > 0, lambda x: x[::-1], lambda x: x, x), x),
    "one of two operands": lambda x: mg.cond(x.sum() > 0, lambda x: (x, x), lambda x: (x + 1, x), x),
    "of each example": lambda x: (mg.vmap(lambda x: mg.cond(x > 0, lambda x: x, lambda x: x + 1, x))(x), x),
    "a carry": lambda x: mg.fori_loop(0, 2, lambda i, pair: (pair[0] * 2,) * 2, (x, x)),
    "from outside": lambda x: (mg.while_loop(lambda h: (h < 1).all(), lambda h: x, x * 0, max_steps=2), x),
    "from outside, last": lambda x: (mg.scan(lambda h, _: (x, None), x * 0, length=2)[0], x),
}


@in_every_mode
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", OWN)
def test_results_of_branches_and_loops_have_memory_of_their_own(name, requires_grad, mode):
    def run(x):
        result, other = OWN[name](x)
        before = other * 1
        result += 10
        return other - before

    x = mg.asarray([1.0, 2.0], requires_grad=requires_grad)
    assert mode(run)(x).tolist() == [0, 0]


@in_every_mode
@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_round_may_change_its_carry_in_place(requires_grad, mode):
    x = mg.asarray([1.0, 2.0, 3.0], requires_grad=requires_grad)
    last, totals = mode(lambda x: mg.scan(added, 0.0, x))(x)
    assert (last.item(), totals.tolist()) == (6, [1, 3, 6])
    if requires_grad:
        totals.sum().backward()
        assert x.grad.tolist() == [3, 2, 1]
