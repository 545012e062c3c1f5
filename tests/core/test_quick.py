"""`quick.py` is `emit.py` unrolled: the two give the same values, nodes, views and errors."""

import itertools
import sys
from functools import partial

import numpy as np
import pytest

import minigrad as mg
from minigrad.core.emit import Interpreter, emit
from minigrad.core.mode import switch
from minigrad.core.primitive import P
from minigrad.core.tensor import Tensor
from minigrad.support.errors import MinigradError
from tests.samples import ELSEWHERE, SAMPLES

CALLS = [sample for samples in SAMPLES.values() for sample in samples]
MODES = [{}, {"grad": False}, {"record_all": True}, {"grad": False, "record_all": True}]


def inputs_of(sample, mask):
    """The inputs of a sample as new tensors.  Those in `mask` are tracked if they are floats."""
    made = []
    for i, value in enumerate(sample.inputs):
        if isinstance(value, np.ndarray):
            value = mg.asarray(value.copy())
            value.requires_grad = value.dtype.kind == "f" and bool(mask >> i & 1)
        made.append(value)
    return made


def same_data(a, b):
    """Whether two raw values are equal: arrays bit by bit, tuples part by part."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same_data, a, b))
    if not isinstance(a, np.ndarray):
        return type(a) is type(b) and (a == b or a != a)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def facts_of_node(node, inputs):
    """The fields of a node without its serial number.  Inputs are given by their positions."""
    if node is None:
        return None
    of = {x.node: i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.node is not None}
    sources = [
        of.get(source, facts_of_node(source, inputs)) if hasattr(source, "op") else source for source in node.inputs
    ]
    return (
        type(node), node.op, sources, node.attrs, node.plan, node.shape, node.dtype, node.device,
        node.mode.scope, node.where,
    )


def saved_by(node):
    """The saved values of a node, except those in the places of numbers: rules read numbers from the recipe."""
    if node.saved is None:
        return None
    numbers = [not hasattr(source, "op") for source in node.inputs]
    return tuple(None if number else value for value, number in zip(node.saved, [*numbers, False]))


def compared(op, sample, mask, changes):
    """The results of both forms, from equal inputs and made by the same line."""
    found = []
    for apply in (partial(emit, op), op.apply):
        inputs = inputs_of(sample, mask)
        with switch(**changes):
            outs = apply(*inputs, **sample.attrs)
        found.append((inputs, outs if isinstance(outs, tuple) else (outs,)))
    return found


@pytest.mark.eager_only
@pytest.mark.parametrize("sample", CALLS, ids=str)
def test_quick_form_equals_emit(sample):
    op = P[sample.op]
    masks = range(1 << min(len(sample.inputs), 3))
    for mask, changes in itertools.product(masks, MODES):
        (theirs, expected), (ours, found) = compared(op, sample, mask, changes)
        assert len(expected) == len(found)
        for a, b in zip(expected, found):
            assert same_data(a._data, b._data) and a.device is b.device and a.tracked is b.tracked in (False, True)
            first, second = facts_of_node(a.node, theirs), facts_of_node(b.node, ours)
            assert (first is None) == (second is None)
            if first is not None:
                assert first == second
                assert same_data(saved_by(a.node), saved_by(b.node))
            assert (a.alias is None) == (b.alias is None) and a._grad is b._grad is None
            if a.alias is not None:
                assert a.alias.chain == b.alias.chain and a.alias.linked == b.alias.linked
                assert a.alias.base is theirs[0] and b.alias.base is ours[0]
                assert [v() for v in b.alias.views] == [b]


def test_quick_forms_exist_for_all_primitives():
    assert [op.name for op in P if op.name not in ELSEWHERE and "apply" not in vars(op)] == []


@pytest.mark.eager_only
def test_line_of_a_node_is_the_callers():
    x = mg.ones(3, requires_grad=True)
    total = P.sum.apply(x, axis=(0,), keepdims=False, dtype=None)
    picked = P.gather.apply(x, mg.asarray([0]))
    for y in (P.tanh.apply(x), total, x * 2, P.reshape.apply(x, shape=(3, 1)), picked):
        assert y.node.code.co_name == "test_line_of_a_node_is_the_callers"


X, Y = mg.ones((2, 3)), mg.ones((2, 4))


@pytest.mark.eager_only
@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [
        (P.add, (X, Y), {}),
        (P.add, (X, mg.ones((2, 3), device="cpu:1")), {}),
        (P.add, (X, "a"), {}),
        (P.matmul, (X, Y), {}),
        (P.reshape, (X,), {"shape": (4, 2)}),
        (P.slice, (X,), {"index": (7, ...)}),
        (P.sum, (X,), {"axis": (9,), "keepdims": False, "dtype": None}),
        (P.sum, (X,), {"wrong": 1}),
        (P.gather, (X, mg.asarray([5])), {}),
        (P.where, (X, X, Y), {}),
        (P.concat, (X, mg.ones((3, 9))), {"axis": 0}),
        (P.bitwise_and, (X, X), {}),
        (P.negative, (mg.asarray([True]),), {}),
    ],
)
def test_quick_form_raises_the_same_errors(op, inputs, attrs):
    said = []
    outside = sys.exc_info()[1]  # a runner of tests may be handling an error of its own
    for apply in (partial(emit, op), op.apply):
        with pytest.raises(MinigradError) as caught:
            apply(*inputs, **attrs)
        said.append((caught.type, str(caught.value).partition("  Line:")[0]))
        cause = caught.value.__context__
        assert cause is outside or cause.__context__ is outside
    assert said[0] == said[1]


@pytest.mark.eager_only
def test_general_form_is_used_in_other_modes_and_for_large_arrays(monkeypatch):
    calls = []
    manifest = Interpreter.manifest
    monkeypatch.setattr(Interpreter, "manifest", lambda *args: calls.append(1) or manifest(*args))
    large, whole = mg.ones(1 << 16), mg.asarray([1])
    calls.clear()
    X + Y[:, :3]
    P.sum.apply(X, axis=(0,), keepdims=False, dtype=None)
    assert calls == []
    for call in (lambda: large + 1, lambda: mg.tanh(large), lambda: mg.tanh(whole), lambda: mg.vmap(mg.tanh)(X)):
        calls.clear()
        call()
        assert calls
