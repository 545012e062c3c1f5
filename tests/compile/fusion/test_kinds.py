"""Kinds of computation: the kind of each node, the properties of a kind, and how to add a kind."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.fusion import compute, kinds
from minigrad.compile.fusion.compute import ACROSS_ROWS, ONCE, PER_ELEMENT, PER_ROW
from minigrad.compile.fusion.kinds import Copy, Elementwise, Filled, Library, LoopProduct, Place, Reduction, UserKernel
from minigrad.compile.lowering.elements import PerKind
from minigrad.compile.rewriting.passes import optimise
from tests.compile.partitions import check, recorded

X = mg.reshape(mg.arange(24, dtype=mg.float32), (4, 6))


def last_of(graph):
    """The computation of the last node of a graph."""
    computes, views = kinds.computes_of(graph)
    return computes[views[graph.outputs[0]].base]


KIND_OF = {
    "tanh": (mg.tanh, Elementwise),
    "sum": (lambda x: x.sum(0), Reduction),
    "sum of single elements": (lambda x: mg.sum(x[:, None], 1), Copy),
    "reshape of a transpose": (lambda x: mg.reshape(x.T, (24,)), Copy),
    "gradient of a slice": (lambda x: mg.grad(lambda x: mg.sum(x[1:3] ** 2))(x), Place),
    "full": (lambda x: mg.full((3,), 2.0), Filled),
    "arange": (lambda x: mg.arange(3), Filled),
    "matmul": (lambda x: x @ x.T, Library),
    "no elements": (lambda x: mg.tanh(x[:0]), Library),
    "full of no elements": (lambda x: mg.full((0,), 2.0), Library),
    "division of integers": (lambda x: mg.astype(x, mg.int32) // 2, Library),
}


@pytest.mark.parametrize("name", KIND_OF)
def test_kind_of_a_node(name):
    function, kind = KIND_OF[name]
    assert type(last_of(mg.trace(function, X))) is kind


def test_a_kernel_of_yours_is_a_kind_of_library_call():
    with mg.kernel(lambda x: mg.tanh(x) * x)(lambda x: np.tanh(x) * x):
        graph, _ = optimise(mg.trace(lambda x: mg.tanh(x) * x, X))
    found = last_of(graph)
    assert type(found) is UserKernel and isinstance(found, Library) and found.by == "a kernel of your own"
    assert found.why == "<lambda> is a kernel of your own"


def test_reason_why_a_node_is_a_library_call():
    reasons = {
        "matmul": "matmul is a library call",
        "no elements": "tanh of no elements is a library call",
        "division of integers": "floor_divide of integers is a library call: some values are errors",
    }
    assert reasons == {name: last_of(mg.trace(KIND_OF[name][0], X)).why for name in reasons}


def test_kinds_of_loops_each_have_a_function_that_writes_them():
    assert {*kinds.KINDS, Filled} - {*kinds.CALLS, LoopProduct} == set(PerKind.WRITERS)


def test_levels_and_rows():
    each, rows, columns, all_of_it = (
        last_of(mg.trace(f, X)) for f in (mg.tanh, lambda x: x.sum(1), lambda x: x.sum(0), mg.sum)
    )
    kernels = (24, None), (24, 6), (96, 4), (96, 3)
    assert [each.level_in(*kernel) for kernel in kernels] == [PER_ELEMENT, PER_ELEMENT, PER_ROW, None]
    assert (rows.row, columns.row, all_of_it.row, each.row) == (6, None, None, None)
    assert rows.level_in(24, None) is PER_ROW, "complete at the end of each row"
    assert rows.level_in(96, 4) is ACROSS_ROWS, "of a kernel whose rows are the elements that it reads"
    assert columns.level_in(24, None) is all_of_it.level_in(24, None) is ACROSS_ROWS
    assert rows.level_in(5, None) is None


def test_access_of_each_input():
    found = last_of(mg.trace(lambda x, v, c: mg.where(c, x, v), X, mg.ones((4, 1)), X[0, 0] > 0))
    condition, in_order, by_row = found.views
    flipped = in_order._replace(strides=(1, 4))
    ways = [found.access(view) for view in (condition, in_order, by_row, flipped)]
    assert ways == [compute.SINGLE, compute.IN_ORDER, compute.BY_ROW, compute.ELSEWHERE]
    placed = last_of(mg.trace(KIND_OF["gradient of a slice"][0], X))
    assert [placed.access(view) for view in placed.views] == [compute.PLACED]


def test_a_new_kind_is_a_class_and_a_function_that_writes_it(monkeypatch):
    x = mg.asarray([-7, 0, 9])

    def divided():
        with recorded() as _alive:
            return check(mg.abs(x) // 2 + x, x // 2)

    class Halves(Elementwise):
        @staticmethod
        def takes(node, views):
            return node.name == "floor_divide" and node.inputs[1] == 2

    assert [group.library is None for group in divided().groups] == [True, False, False, True]
    monkeypatch.setattr(kinds, "KINDS", [Halves, *kinds.KINDS])
    monkeypatch.setitem(PerKind.WRITERS, Halves, PerKind.elementwise)
    (group,) = divided().groups
    assert group.library is None and set(group.levels.values()) == {PER_ELEMENT} and group.level_of(1) is ONCE
