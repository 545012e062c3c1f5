"""`tree_map`: a function of everything in nested containers."""

from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.tree import flatten, structure


class State(NamedTuple):
    m: mg.Tensor
    v: mg.Tensor


X = mg.asarray([1.0, 2.0])


def test_it_maps_tensors_arrays_and_numbers_and_keeps_none():
    tree = {"w": mg.ones(2), "rest": [np.ones(1), (3, 0.5)], "none": None, "empty": {}}
    found = mg.tree_map(lambda x: x * 2, tree)
    assert found["w"].tolist() == [2, 2] and found["rest"][0].tolist() == [2] and found["rest"][1] == (6, 1.0)
    assert found["none"] is None and found["empty"] == {} and list(found) == list(tree)
    assert mg.tree_map(mg.asarray, [1.0, np.ones(2)])[1].__class__ is mg.Tensor


def test_a_container_where_the_first_tree_has_a_tensor_is_one_argument():
    """The states of a hand-written optimizer, one for each parameter."""
    params, grads = {"w": mg.ones(2), "b": mg.ones(1)}, {"b": mg.ones(1) * 3, "w": mg.ones(2) * 4}
    states = mg.tree_map(lambda p: State(p * 0, p * 0), params)
    states = mg.tree_map(lambda g, s: State(s.m + g, s.v + g * g), grads, states)
    new = mg.tree_map(lambda p, s: p - s.m, params, states)
    assert new["w"].tolist() == [-3, -3] and new["b"].tolist() == [-2] and states["b"].v.tolist() == [9]
    assert isinstance(mg.tree_map(lambda x: x + 1, states)["w"], State)


def test_of_a_module_only_tensors_are_mapped():
    net = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.Dropout(0.5))
    gradients = mg.grad(lambda net: (net[0](mg.ones(2)) ** 2).sum())(net)
    new = mg.tree_map(lambda p, g: p - 0.1 * g, net, gradients)
    expected = net[0].bias - 0.1 * gradients[0].bias
    assert new[0].bias.tolist() == expected.tolist() and new[1].p == 0.5 and new is not net


def test_it_works_inside_jit_and_grad():
    @mg.jit
    def step(params, x):
        gradients = mg.grad(lambda p: ((p["w"] * x) ** 2).sum())(params)
        return mg.tree_map(lambda p, g: p - 0.25 * g, params, gradients)

    assert step({"w": mg.ones(2)}, mg.ones(2))["w"].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "other", [{"a": 1}, {"a": 1, "b": 2, "c": 3}, [1, 2], 3, None, OrderedDict(a=1, c=2)], ids=str
)
def test_another_structure_is_an_error(other):
    with pytest.raises(mg.ConversionError, match="tree_map: the trees have different structures") as error:
        mg.tree_map(lambda x, y: x, {"a": 1, "b": 2}, other)
    assert "Expected: {'a': 1, 'b': 2}\n  Got: " in str(error.value)


def test_tuples_of_other_lengths_and_other_classes_are_an_error():
    for tree, other in (((1, 2), (1, 2, 3)), ([1], (1,)), (State(1, 2), (1, 2))):
        with pytest.raises(mg.ConversionError, match="different structures"):
            mg.tree_map(lambda x, y: x, tree, other)


def test_the_function_is_a_function():
    with pytest.raises(mg.ConversionError, match="tree_map: function is a function, not 3"):
        mg.tree_map(3, [1.0])


def nested(make):
    """A tensor in 10,000 containers; deeper ones would end Python when they are freed."""
    found = mg.ones(3)
    for _ in range(10_000):
        found = make(found)
    return found


def holding(tree):
    module = mg.nn.Linear(3, 3)
    module.table = tree
    return module


CALLS = {
    "tree_map": lambda tree: mg.tree_map(lambda x: x, tree),
    "flatten": flatten,
    "structure": structure,
    "argument of jit": lambda tree: mg.jit(lambda tree: 1)(tree),
    "argument of a stage of jit": lambda tree: mg.jit(lambda tree: 1).kernels(tree),
    "result of jit": lambda tree: mg.jit(lambda x: tree)(mg.ones(3)),
    "grad": lambda tree: mg.grad(lambda tree: mg.ones(()))(tree),
    "value_and_grad": lambda tree: mg.value_and_grad(lambda tree: mg.ones(()))(tree),
    "further results of grad": lambda tree: mg.grad(lambda x: (x.sum(), tree), has_aux=True)(mg.ones(3)),
    "jacobian": lambda tree: mg.jacobian(lambda tree: mg.ones(3))(tree),
    "hessian": lambda tree: mg.hessian(lambda tree: mg.ones(()))(tree),
    "vmap": lambda tree: mg.vmap(lambda tree: mg.ones(3))(tree),
    "result of vmap": lambda tree: mg.vmap(lambda x: tree)(mg.ones(3)),
    "jvp": lambda tree: mg.jvp(lambda tree: mg.ones(3), (tree,), (tree,)),
    "vjp": lambda tree: mg.vjp(lambda tree: mg.ones(3), tree),
    "result of vjp": lambda tree: mg.vjp(lambda x: tree, mg.ones(3)),
    "carry of scan": lambda tree: mg.scan(lambda c, x: (c, x), tree, mg.ones((2, 3))),
    "result of cond": lambda tree: mg.cond(mg.asarray(True), lambda x: tree, lambda x: tree, mg.ones(2)),
    "parameters of a module": lambda tree: list(holding(tree).parameters()),
    "text of a module": lambda tree: repr(holding(tree)),
}


@pytest.mark.parametrize("make", [lambda x: [x], lambda x: (x,), lambda x: {"a": x}], ids=["list", "tuple", "dict"])
@pytest.mark.parametrize("name", CALLS)
def test_containers_that_are_nested_too_deeply_are_an_error_in_words(name, make):
    tree = nested(make)
    with pytest.raises(mg.ConversionError, match="is nested too deeply, or contains itself\n  Expected: at most 64"):
        CALLS[name](tree)


def test_a_container_that_contains_itself_is_an_error_in_words():
    tree = [mg.ones(3)]
    tree.append(tree)
    for call in (flatten, mg.jit(lambda tree: 1), mg.grad(lambda tree: mg.ones(()))):
        with pytest.raises(mg.ConversionError, match="or contains itself"):
            call(tree)


def test_a_function_of_the_user_that_calls_itself_without_end_keeps_its_own_error():
    def endless(x):
        return endless(x)

    for call in (mg.jit(endless), mg.grad(endless), lambda x: mg.tree_map(endless, [x])):
        with pytest.raises(RecursionError):
            call(mg.ones(3))


@pytest.mark.parametrize("call", [
    lambda f: mg.jit(f)(X), lambda f: mg.vmap(f)(X), lambda f: mg.trace(f, X), lambda f: mg.jvp(f, (X,), (X,)),
    lambda f: mg.jit(lambda x: mg.scan(lambda carry, row: (carry, f(row)), x, x))(X),
])
@pytest.mark.parametrize("make", [lambda x: {x: 1}, lambda x: [{(x, 1): x}]], ids=["key", "part of a key"])
def test_a_tensor_as_a_key_does_not_leave_the_function(call, make):
    with pytest.raises(mg.ConversionError, match="a tensor is a key of a dict"):
        call(make)
