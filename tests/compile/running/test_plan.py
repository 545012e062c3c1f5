"""Plans: frozen data with the place of each value, the steps, and which step waits for which."""

import dataclasses
import types

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.fusion.group import Group, Partition
from minigrad.compile.lowering.elements import Argument
from minigrad.compile.lowering.lower import Lowered
from minigrad.compile.nodes.graph import Graph
from minigrad.compile.running.plan import IN_PLACE, INPUT, LIBRARY, RESULT, SLOT, Call, Check, Launch
from minigrad.compile.running.program import Program, compile
from minigrad.compile.running.targets import Settings
from minigrad.core.node import Node
from minigrad.core.primitive import P
from minigrad.core.tree import leaves

STRUCTURES = (Graph, Node, Group, Partition, Lowered, Argument)


def plan_of(function, *tensors, **options):
    return compile(mg.trace(function, *tensors), Settings(**options)).plan


def parts(value, seen):
    """Everything that a value contains, directly or indirectly."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    yield value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        held = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(value, dict):
        held = [*value, *value.values()]
    else:
        held = value if isinstance(value, (list, tuple)) else ()
    for each in held:
        yield from parts(each, seen)


def everything(p, x, i):
    """A plan with a product, a library call, kernels with partial results, a check, and an overwritten value."""
    picked = mg.exp(x)[mg.arange(40), i * 2]
    return p - (x @ x).sum(), mg.argsort(x, axis=-1), picked, x.T * 1


def given():
    return mg.ones(40), mg.ones((40, 40)), mg.zeros(40, dtype="int64")


def test_a_plan_is_frozen_and_has_no_nodes_or_groups():
    plan = plan_of(everything, *given(), donate={0: 0})
    assert {Launch, Call, Check} == {type(step) for step in plan.steps}
    held = [*parts(plan, {})]
    assert not [value for value in held if isinstance(value, STRUCTURES)]
    assert len([value for value in held if isinstance(value, types.CodeType)]) > 0  # the lines of code
    fields = {"steps": plan, "kind": plan.buffers[0], "name": plan.steps[0], "buffer": plan.outputs[0]}
    for name, value in fields.items():
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, None)


def test_buffers_each_have_a_place():
    plan = plan_of(everything, *given(), donate={0: 0})
    kinds = {buffer.name: (buffer.kind, buffer.number) for buffer in plan.buffers}
    assert kinds["tensor_1"] == (INPUT, 0) and kinds["tensor_3"] == (INPUT, 2)
    assert kinds["subtract_1"] == (IN_PLACE, 0)
    assert kinds["argsort_1"] == (LIBRARY, 1)
    assert (RESULT, 2) in kinds.values() and kinds["matmul_1"][0] == SLOT
    assert [*plan.copied] == [3]  # the input is copied
    slots = [buffer for buffer in plan.buffers if buffer.kind == SLOT]
    assert all(plan.slots[buffer.number] >= buffer.nbytes for buffer in slots)


def test_a_plan_prints_steps_places_and_order():
    plan = plan_of(lambda x: (mg.tanh(x @ x) @ x, mg.argsort(x), x.T), mg.ones((3, 3)))
    assert str(plan).splitlines() == [
        "turn  step       writes                     reads                                after",
        "0     matmul_1   matmul_1 [slot 0]          tensor_1 [input 0]                   -",
        "1     argsort_1  argsort_1 [the library's]  tensor_1 [input 0]                   -",
        "2     kernel_2   tanh_1 [slot 1]            matmul_1 [slot 0]                    matmul_1",
        "3     matmul_2   matmul_2 [result 0]        tanh_1 [slot 1], tensor_1 [input 0]  kernel_2",
        "arena of 72 B in 2 slots (36 B, 36 B)",
    ]
    assert repr(plan) == "<Plan of 4 steps, 1 of them kernels, arena 72 B>"


def test_results_of_libraries_lie_in_the_arena():
    x = mg.asarray(np.random.default_rng(0).standard_normal((8, 8)))
    program = mg.jit(lambda x: mg.sort(x * 2, axis=0) + mg.argsort(x, axis=1) * 0.5).program(x)
    buffers = [number for number, b in enumerate(program.plan.buffers) if b.name in ("sort_1", "argsort_1")]
    assert len(buffers) == 2 and {program.plan.buffers[number].kind for number in buffers} == {SLOT}
    addresses = set()
    for scale in (1.0, -3.0):
        given = x.numpy() * scale
        (found,) = program([given])
        np.testing.assert_array_equal(found, np.sort(given * 2, 0) + np.argsort(given, 1, kind="stable") * 0.5)
        (frame,) = program._idle
        addresses.add(tuple([frame.arrays[number].ctypes.data for number in buffers]))
        assert all(np.shares_memory(frame.arrays[n], frame.memory[frame.buffers[n].number]) for n in buffers)
    assert len(addresses) == 1  # no run allocated new memory for them


def test_a_loop_says_why_python_runs_its_rounds():
    def text(body):
        return str(plan_of(lambda x: mg.fori_loop(0, 9, lambda i, s: body(s) + i, x), mg.ones(4)))

    assert "a loop of 9 rounds:" in text(mg.tanh) and "a loop of 9 rounds:" in text(lambda s: mg.roll(s, 1))
    assert "; Python runs each round, because of sort_1, a library call:" in text(mg.sort)
    assert "a check of positions" in text(lambda s: s[s.astype(mg.int64)])


def test_steps_that_overwrite_wait_for_checks():
    plan = plan_of(everything, *given(), donate={0: 0})
    (check,) = [number for number, step in enumerate(plan.steps) if isinstance(step, Check)]
    written = [{plan.buffers[number].kind for number in plan.uses(step)[1]} for step in plan.steps]
    (writer,) = [number for number, kinds in enumerate(written) if IN_PLACE in kinds]
    assert plan.steps[check].size == 40 and check in plan.after[writer]
    maker = plan.steps[plan.after[check][0]]
    assert plan.steps[check].read.buffer in plan.uses(maker)[1]
    assert "check_1" in str(plan).splitlines()[1 + writer]


def test_effects_wait_for_each_other():
    def loud(x):
        for number in range(3):
            mg.print(f"n{number}", x)
        return x * 2

    plan = plan_of(loud, mg.ones(2))
    prints = [number for number, step in enumerate(plan.steps) if isinstance(step, Call) and step.effect]
    assert [plan.after[number] for number in prints] == [(), (prints[0],), (prints[1],)]


def test_an_input_that_is_given_twice_has_two_buffers():
    graph = mg.trace(lambda x, y: x * 2 + y, mg.ones(3), mg.ones(3))
    twice = Graph((*graph.inputs, graph.inputs[1]), graph.outputs)
    assert [buffer.number for buffer in compile(twice).plan.inputs] == [0, 1, 2]
    ones = np.ones(3, np.float32)
    assert Program(twice)([ones, ones * 3, ones * 3])[0].tolist() == [5, 5, 5]


def test_a_plan_that_was_saved_is_the_same(tmp_path, numpy_kernels):
    def f(x, i):
        return mg.softmax(x @ x), mg.argsort(x), mg.exp(x)[mg.arange(4), i], (x.T + 1).sum(0)

    x, i = mg.ones((4, 4)), mg.zeros(4, dtype="int64")
    jitted = mg.jit(f)
    jitted.save(tmp_path / "f.program", x, i)
    loaded = mg.load_program(tmp_path / "f.program").program.plan
    copied = plan_of(lambda x, i: tuple(t.astype(t.dtype) for t in f(x, i)), x, i)
    assert str(loaded) == str(copied) and loaded.turns == copied.turns and loaded.outputs == copied.outputs
    kernels = [[step.kernel for step in plan.steps if isinstance(step, Launch)] for plan in (loaded, copied)]
    assert str(kernels[0]) == str(kernels[1])  # nan equals nan here
    assert [dataclasses.replace(b, where=None) for b in copied.buffers] == list(loaded.buffers)


def rows_written(x, read_later=False):
    y = x * 2
    before = y * 1.5 if read_later else None
    for i in range(3):
        y[i] = mg.sort(y[i] + i)
    return (y + 1, before) if read_later else y + 1


def puts_of(plan):
    """For each write, whether it goes into the memory of its operand."""
    return [step.in_place for step in plan.steps if getattr(step, "op", None) is P.put]


def test_writes_go_into_the_memory_of_a_value_that_nothing_reads_later():
    x = mg.asarray(np.random.default_rng(0).normal(size=(5, 4)))
    plan = plan_of(rows_written, x)
    assert puts_of(plan) == [True] * 3
    assert len({plan.buffers[step.out].number for step in plan.steps if getattr(step, "op", None) is P.put}) == 1
    written = [step.count for step in plan.steps if getattr(step, "op", None) is P.put]
    assert {(count.bytes_read, count.bytes_written) for count in written} == {(32, 32)}  # a row
    np.testing.assert_array_equal(mg.jit(rows_written)(x).numpy(), rows_written(x).numpy())


def one_part(x):
    x[1] = 5.0


def several_parts(x, i, v):
    x += 1.0
    x[i] = x[i] * 2
    x[1:][::-1] = mg.sort(x[1:])
    x[v] = x.sum()


@pytest.mark.parametrize("executor", ["serial", "parallel"])
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_parts_of_an_argument_are_written_where_they_are(executor, dtype):
    one, several = [mg.jit(f, executor=executor) for f in (one_part, several_parts)]
    positions, given = (mg.asarray(3), mg.asarray([0, 2])), np.arange(18).astype(dtype)
    for ours, theirs in (mg.asarray(given), mg.asarray(given)), (mg.asarray(given)[::2], mg.asarray(given)[::2]):
        for _ in range(2):
            one(ours)
            one_part(theirs)
            several(ours, *positions)
            several_parts(theirs, *positions)
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
        assert puts_of(one.program(ours).plan) == [True]
        assert {*puts_of(several.program(ours, *positions).plan)} == {True}


def moved(x):
    x[1:] = x[:-1]
    return x * 1


def read_later(x):
    old = mg.sort(mg.exp(x)).sum() * x
    x[0] = 1.0
    return old + x


def returned_between(x):
    x[0] = 1.0
    y = x.copy()
    x[1] = 2.0
    return y


@pytest.mark.parametrize("function", [moved, read_later, returned_between])
def test_an_argument_whose_old_elements_are_read_is_copied(function):
    ours, theirs, jitted = mg.asarray([3.0, 1.0, 2.0]), mg.asarray([3.0, 1.0, 2.0]), mg.jit(function)
    np.testing.assert_allclose(jitted(ours).numpy(), function(theirs).numpy(), rtol=1e-6)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    assert True not in puts_of(jitted.program(ours).plan)


@pytest.mark.parametrize("executor", ["serial", "parallel"])
def test_values_that_are_read_later_or_belong_to_others_are_not_overwritten(executor):
    def kept(x):
        y = x * 2
        y[0] = mg.sort(y[0])
        old = y * 1
        y[1:] = y[:-1]
        y[2] = mg.argsort(old[2])
        return y, old, mg.sort(y) + old

    def inputs(x):
        y = x.copy()
        y[0] = mg.sort(y[1])
        z = y.copy()
        z[1] = 3.0
        return y, z, x + 1

    def turned(x):
        y = mg.sort(x, axis=0).T
        y[0] = mg.sort(y[1])
        return y * 2

    x = mg.asarray(np.random.default_rng(0).normal(size=(5, 4)))
    gradient = mg.grad(lambda x: rows_written(x).sum())
    for function in (kept, inputs, turned, lambda x: rows_written(x, True), lambda x: gradient(x)):
        f, before = mg.jit(function, executor=executor), x.numpy().copy()
        for _ in range(3):
            for ours, theirs in zip(leaves(f(x)), leaves(function(x)), strict=True):
                np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
        np.testing.assert_array_equal(x.numpy(), before)
