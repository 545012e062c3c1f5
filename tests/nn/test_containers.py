"""`Sequential`, `ModuleList` and `ModuleDict`: their modules, the names of these, and errors."""

import pytest

import minigrad as mg
from minigrad import nn


@pytest.mark.parametrize("make", [nn.ModuleList, lambda items: nn.Sequential(*items)])
def test_numbered_modules_behave_like_a_list(make):
    a, b, c, d = (nn.Linear(1, size) for size in (1, 2, 3, 4))
    listed = make([a, b])
    assert listed.append(c) is listed and listed.extend([d]) is listed
    assert list(listed) == [a, b, c, d] and len(listed) == 4 and listed[-1] is d
    assert type(listed[1:3]) is type(listed) and list(listed[1:3]) == [b, c]
    del listed[1]
    assert list(listed) == [a, c, d] and listed[1] is c
    listed.insert(0, b)
    listed[-1] = nn.Tanh()
    assert [name for name, _ in listed.named_parameters()] == [f"{i}.{w}" for i in range(3) for w in ("weight", "bias")]
    assert listed[0] is b and isinstance(listed[3], nn.Tanh)
    with pytest.raises(IndexError):
        listed[4]


def test_named_modules_behave_like_a_dict():
    a, b = nn.Linear(1, 1), nn.Linear(1, 2)
    named = nn.ModuleDict({"up": a})
    named.update({"down": b, "gone": nn.Tanh()})
    del named["gone"]
    assert list(named) == named.keys() == ["up", "down"] and named.values() == [a, b] and len(named) == 2
    assert named["down"] is b and "gone" not in named and named.items() == [("up", a), ("down", b)]
    assert [name for name, _ in named.named_parameters()] == ["up.weight", "up.bias", "down.weight", "down.bias"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.ModuleList([mg.tanh]), "ModuleList: item 0 is a function, not a module"),
        (lambda: nn.Sequential(nn.Tanh(), 3), "Sequential: layer 1 is an int, which cannot be called"),
        (lambda: nn.ModuleDict({"a": 3}), "ModuleDict: 'a' is an int, not a module"),
        (lambda: nn.ModuleDict({"a.b": nn.Tanh()}), "ModuleDict: 'a.b' cannot be a name"),
        (lambda: nn.ModuleDict({"forward": nn.Tanh()}), "ModuleDict: 'forward' cannot be a name"),
        (lambda: nn.ModuleDict({"a": nn.Tanh()})["b"], "ModuleDict: there is no module 'b'\n  Expected: a"),
    ],
)
def test_wrong_arguments_are_refused_with_a_clear_message(call, message):
    with pytest.raises(mg.ConversionError, match=message):
        call()
