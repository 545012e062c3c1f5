"""Values that gradient rules, hooks and kernels of the user's read by name: a change causes a new trace."""

import functools
import re
import types

import pytest

import minigrad as mg

pytestmark = pytest.mark.usefixtures("numpy_kernels")

RATE = 1.0


def change_global():
    global RATE
    RATE = 5.0


def with_rule(rule, forward=None):
    """The identity with this gradient rule."""
    @mg.custom_vjp
    def same(x):
        return x * 1.0

    if forward is not None:
        same.defines(forward)
    same.gradient(rule)
    return same


class Schedule:
    def __init__(self):
        self.rate = 1.0

    def rule(self, kept, g):
        return g * self.rate

    def __call__(self, kept, g):
        return g * self.rate


def global_name():
    return with_rule(lambda kept, g: g * RATE), change_global, "RATE was 1.0 and is 5.0"


def closure_cell():
    rate = 1.0

    def change():
        nonlocal rate
        rate = 5.0

    return with_rule(lambda kept, g: g * rate), change, "rate was 1.0 and is 5.0"


def of_list(make):
    """A function made from a list of one number, which it reads in its backward pass."""
    def case():
        rates = [1.0]
        return make(rates), lambda: rates.__setitem__(0, 5.0), r"\[0\] was 1.0 and is 5.0"

    return case


def attribute():
    schedule = Schedule()
    change = functools.partial(setattr, schedule, "rate", 5.0)
    return with_rule(lambda kept, g: g * schedule.rate), change, "schedule.rate was 1.0 and is 5.0"


def method():
    schedule = Schedule()
    return with_rule(schedule.rule), functools.partial(setattr, schedule, "rate", 5.0), "rate was 1.0 and is 5.0"


def callable_object():
    schedule = Schedule()
    return with_rule(schedule), functools.partial(setattr, schedule, "rate", 5.0), "rate was 1.0 and is 5.0"


def keyword_default():
    def rule(kept, g, *, rate=1.0):
        return g * rate

    return with_rule(rule), lambda: setattr(rule, "__kwdefaults__", {"rate": 5.0}), "__kwdefaults__"


def another_rule():
    same = with_rule(lambda kept, g: g)
    return same, lambda: same.gradient(lambda kept, g: g * 5), "backward was a function and is another function"


def another_forward():
    same = with_rule(lambda kept, g: g * kept, lambda x: (x * 1.0, 1.0))
    return same, lambda: same.defines(lambda x: (x * 1.0, 5.0)), "forward was a function and is another function"


def in_a_module():
    class Reversal(mg.nn.Module):
        def __init__(self):
            super().__init__()
            self.rate, self.rules = 1.0, [with_rule(lambda kept, g: g * self.rate)]

        def forward(self, x):
            return self.rules[0](x)

    module = Reversal()
    return module, functools.partial(setattr, module, "rate", 5.0), "rate was 1.0 and is 5.0"


def hook(x, rates):
    """x, with a hook that reads the rate."""
    x = x * 1.0
    if x.requires_grad:
        x.register_hook(lambda g: g * rates[0])
    return x


READS = {
    "global": global_name,
    "closure cell": closure_cell,
    "list": of_list(lambda rates: with_rule(lambda kept, g: g * rates[0])),
    "default": of_list(lambda rates: with_rule(lambda kept, g, rates=rates: g * rates[0])),
    "keyword default": keyword_default,
    "attribute": attribute,
    "method": method,
    "callable object": callable_object,
    "partial": of_list(lambda rates: with_rule(functools.partial(lambda rates, kept, g: g * rates[0], rates))),
    "kept value": of_list(lambda rates: with_rule(lambda rate, g: g * rate, lambda x: (x * 1.0, rates[0]))),
    "kept object": of_list(lambda rates: with_rule(
        lambda kept, g: g * kept.rates[0], lambda x: (x * 1.0, types.SimpleNamespace(rates=rates)))),
    "jitted rule": of_list(lambda rates: with_rule(mg.jit(lambda kept, g: g * rates[0]))),
    "gradient in the rule": of_list(lambda rates: with_rule(
        lambda kept, g: g * mg.grad(lambda x: (x * rates[0]).sum())(kept[0]))),
    "rule in the forward function": of_list(lambda rates: functools.partial(
        lambda inner, x: inner(x), with_rule(lambda kept, g: g * rates[0]))),
    "another rule": another_rule,
    "another forward function": another_forward,
    "module": in_a_module,
    "checkpoint": of_list(lambda rates: mg.checkpoint(with_rule(lambda kept, g: g * rates[0]))),
    "hook": of_list(lambda rates: lambda x: hook(x, rates)),
}
USES = {
    "gradient": lambda f: mg.jit(mg.grad(lambda x: f(x).sum())),
    "backward": lambda f: (lambda jitted: lambda x: mg.grad(jitted)(x))(mg.jit(lambda x: f(x).sum())),
    "scan": lambda f: mg.jit(mg.grad(lambda x: mg.scan(lambda c, v: (c + f(v), None), mg.zeros(()), x)[0])),
    "cond": lambda f: mg.jit(mg.grad(lambda x: mg.cond(x.sum() > 0, lambda: f(x), lambda: x).sum())),
    "vmap": lambda f: mg.jit(mg.vmap(mg.grad(f))),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("read", READS)
def test_a_value_that_a_gradient_rule_reads(read, use, monkeypatch):
    monkeypatch.setitem(globals(), "RATE", 1.0)
    f, change, reason = READS[read]()
    gradient = USES[use](f)
    assert [gradient(mg.ones(2)).tolist() for _ in range(2)] == [[1, 1], [1, 1]]
    change()
    assert gradient(mg.ones(2)).tolist() == [5, 5]
    if use == "gradient":
        assert len(gradient.traces) == 2
        assert re.search(reason, gradient.traces[1]), gradient.traces


@pytest.mark.parametrize("make", [lambda rates: lambda g: g * rates[0], lambda rates: Hook(rates)])
def test_a_value_that_a_hook_from_outside_reads(make):
    rates = [1.0]
    w = mg.ones(2, requires_grad=True)
    w.register_hook(make(rates))

    @mg.jit
    def gradient():
        w.grad = None
        (w * 1.0).sum().backward()
        return w.grad

    assert [gradient().tolist() for _ in range(2)] == [[1, 1], [1, 1]]
    rates[0] = 5.0
    assert gradient().tolist() == [5, 5] and len(gradient.traces) == 2


class Hook:
    def __init__(self, rates):
        self.rates = rates

    def __call__(self, g):
        return g * self.rates[0]


def test_a_value_that_a_kernel_reads_where_it_is_called():
    rates = [1.0]
    with mg.kernel(lambda x: mg.tanh(x) * x * x)(lambda x: x * rates[0]) as kernel:
        f = mg.jit(lambda x: kernel(x))
        assert f(mg.ones(1)).item() == 1
        rates[0] = 5.0
        assert f(mg.ones(1)).item() == 5 and f.traces[1] == "rates[0] was 1.0 and is 5.0"
