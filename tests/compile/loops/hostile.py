"""Kernels that an attacker might write, and an interpreter that checks every index before use."""

import copy

import numpy as np

from minigrad.compile.loops.index import fold
from minigrad.compile.loops.ir import Walk
from minigrad.compile.loops.operations import OPERATIONS, operand_dtypes
from minigrad.compile.loops.scalar import identity
from minigrad.compile.save.kernels import kernel_as_data
from tests.compile.codegen.lowered import lowered_samples
from tests.compile.codegen.samples import LOOPS
from tests.compile.interpreter import function_of, reducer

LEAST, MOST = -(2**63), 2**63 - 1
INTERESTING = (
    -(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 64, 100, 2**31, 2**32, 2**48, 2**61, 2**62 - 10**9,
    2**62, 2**63 - 1, 2**63, 2**64 - 3, 10**30, 0.5, -1.0, 1e300, True,
)
ROLES = ("in", "out", "inout", "partial", "scratch")
DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bool", "float16", "int8")
INDEXING = ("+", "*", "//", "%", "min")
NAMES = [name for name, operation in OPERATIONS.items() if not operation.internal]
SMALL = ("softmax", "total", "column_sums", "gathered", "inner_sums", "shared_places", "in_place", "numbers_only",
         "from_positions")


def corpus():
    """Kernels of the compiler and kernels made by hand, as plain data."""
    made = [sample.kernel for sample in lowered_samples(range(12))]
    return [kernel_as_data(kernel) for kernel in (*made, *[LOOPS[name]().kernel for name in SMALL])]


# Mutation -------------------------------------------------------------------------------------------------------------


def mutated(data, random):
    """A kernel with some changes."""
    data = copy.deepcopy(data)
    for _ in range(random.choice([1, 1, 1, 2, 3, 6])):
        random.choice(CHANGES)(data, random)
    return data


def _leaves(tree, kind):
    """The positions of the values of one kind in a tree: (list, index)."""
    found = []
    for place, part in enumerate(tree) if isinstance(tree, list) else tree.items():
        if isinstance(part, (list, dict)):
            found += _leaves(part, kind)
        if part.__class__ is kind:
            found.append((tree, place))
    return found


def _number(data, random):
    places = _leaves(data, int)
    if places:
        tree, at = random.choice(places)
        tree[at] = random.choice([*INTERESTING, tree[at] + 1, tree[at] - 1, 2 * tree[at]])


def _word(data, random):
    places = _leaves(data, str)
    tree, at = random.choice(places)
    other, there = random.choice(places)
    tree[at] = random.choice([other[there], random.choice(DTYPES), random.choice(ROLES), random.choice(NAMES)])


def _rename(data, random):
    """Give two things the same name everywhere."""
    places = _leaves(data["body"], str) + _leaves(data["parameters"], str)
    old, new = (tree[at] for tree, at in random.choices(places, k=2))
    for tree, at in places:
        if tree[at] == old:
            tree[at] = new


def _retype(data, random):
    old, new = random.choices(DTYPES, k=2)
    for tree, at in _leaves(data, str):
        if tree[at] == old:
            tree[at] = new


def _blocks(body):
    found = [body]
    for statement in body:
        if statement and statement[0] == "for" and len(statement) > 4 and isinstance(statement[4], list):
            found += _blocks(statement[4])
    return found


def _move(data, random):
    """Copy, move or remove a statement."""
    blocks = [b for b in _blocks(data["body"]) if b]
    if not blocks:
        return
    source, target = random.choice(blocks), random.choice(_blocks(data["body"]))
    statement = random.choice(source)
    kept = copy.deepcopy(statement)
    what = random.randrange(3)
    if what:
        source.remove(statement)
    if what < 2:
        target.insert(random.randint(0, len(target)), kept)


def _index(data, random):
    """Wrap an index in an operation, or replace it by one."""
    places = [(t, at) for t, at in _leaves(data["body"], list) if t[at][:1] and t[at][0] in INDEXING]
    variables = [(t, at) for t, at in _leaves(data["body"], str) if t[at] in ("i", "p", "c", "lo", "hi")]
    if places or variables:
        tree, at = random.choice(places + variables)
        kept = copy.deepcopy(random.choice([tree[at], "lo", "hi", "i", random.choice(INTERESTING)]))
        tree[at] = [random.choice(INDEXING), kept, random.choice([*INTERESTING, "lo", "i", tree[at]])]


def _widen(data, random):
    loops = [s for block in _blocks(data["body"]) for s in block if s and s[0] == "for"]
    if loops:
        loop = random.choice(loops)
        loop[random.choice([2, 3])] = random.choice([*INTERESTING, "lo", "hi", "i", ["+", "hi", 1], ["*", "hi", 2]])


def _wrap(data, random):
    """Put a loop around a statement."""
    blocks = [b for b in _blocks(data["body"]) if b]
    if blocks:
        block = random.choice(blocks)
        at = random.randrange(len(block))
        name = random.choice(["i", "j", "v1", "b0", "lo", "w"])
        sums = random.choice([[], [[random.choice(["v1", "w2"]), "sum", 1.0, "float32"]]])
        block[at] = ["for", name, random.choice([0, 3, "lo"]), random.choice([0, 3, "hi"]), [block[at]], sums, 1]


def _shadow(data, random):
    """Compute a value with a name that exists already."""
    names = [t[at] for t, at in _leaves(data["body"], str) + _leaves(data["parameters"], str)]
    block, name = random.choice(_blocks(data["body"])), random.choice(names)
    kind = random.choice(["let", "index", "load"])
    dtype = random.choice(["int64", "int64", "float32"])
    let = {
        "let": ["let", name, "add", [random.choice(names), 0], dtype],
        "index": ["let", name, "index", [random.choice(names)], dtype],
        "load": ["let", name, "load", [data["parameters"][0][0], random.choice(names)], data["parameters"][0][1]],
    }
    block.insert(random.randint(0, len(block)), let[kind])


CHANGES = (_number, _number, _word, _word, _rename, _retype, _move, _move, _index, _index, _widen, _wrap, _shadow)


# Interpreter ----------------------------------------------------------------------------------------------------------


class TooLong(Exception):
    """The kernel takes too many steps for a test."""


class Checked(Walk):
    """Runs a kernel statement by statement, like machine code, and checks each index.

    Names are looked up as in a printer with one namespace: the last definition counts.
    """

    def __init__(self, kernel, arrays, steps=4000):
        self.buffers = {p.name: array for p, array in zip(kernel.parameters, arrays, strict=True)}
        self.kernel, self.left = kernel, steps
        self.positions = set()  # the values that are indices, too

    def run(self, low, high):
        self.scope = {"lo": low, "hi": high, **self.buffers}
        with np.errstate(all="ignore"):
            self.block(self.kernel.body)

    def step(self):
        self.left -= 1
        if self.left < 0:
            raise TooLong

    def visit(self, statement):
        self.step()
        super().visit(statement)

    def let(self, let):
        self.scope[let.name] = np.asarray(self.value(let)).astype(let.dtype)[()]
        self.positions.discard(let.name)
        if let.op == "position":
            self.positions.add(let.name)

    def store(self, store):
        memory, at = self.place(store.buffer, store.index)
        memory[at] = np.asarray(self.operand(store.value), memory.dtype)

    def accumulate(self, update):
        memory, at = self.place(update.buffer, update.index)
        memory[at] = reducer(update.op)(memory[at], np.asarray(self.operand(update.value), memory.dtype))

    def running(self, running):
        value = np.asarray(self.operand(running.value), running.dtype)
        self.scope[running.name] = reducer(running.op)(self.scope[running.name], value)[()]

    def prefetch(self, prefetch):
        assert LEAST <= self.index(prefetch.index) * self.buffers[prefetch.buffer].itemsize <= MOST

    def loop(self, loop):
        totals = {a.name: np.asarray(identity(a.op, a.dtype), a.dtype) for a in loop.accumulators}
        outside = self.scope
        number, high = self.index(loop.low), self.index(loop.high)
        running = {s.name: np.asarray(identity(s.op, s.dtype), s.dtype)[()] for s in loop.totals}
        while number < high:
            self.scope = outside | running | {loop.variable: number}
            self.block(loop.body)
            running = {name: self.scope[name] for name in running}
            for a in loop.accumulators:
                totals[a.name] = reducer(a.op)(totals[a.name], np.asarray(self.operand(a.value), a.dtype))
            number += 1
            self.step()
        self.scope = outside | {name: total[()] for name, total in totals.items()}

    def value(self, let):
        if let.op == "load":
            memory, at = self.place(*let.args)
            assert memory.dtype == let.dtype
            return memory[at]
        if let.op == "index":
            return self.index(let.args[0])
        args = [self.operand(a) for a in let.args]
        if let.op in ("cast", "bitcast"):
            return saturated(args[0], let.dtype) if let.op == "cast" else np.asarray(args[0]).view(let.dtype)
        dtypes = operand_dtypes(let, lambda name: self.scope[name].dtype)
        assert all(a.dtype == dtype for a, dtype in zip(args, dtypes) if isinstance(a, np.generic))
        return function_of(let.op)(*[np.asarray(a, dtype) for a, dtype in zip(args, dtypes)])

    def operand(self, operand):
        value = self.scope[operand] if isinstance(operand, str) else operand
        assert not isinstance(value, np.ndarray)
        assert not isinstance(operand, str) or isinstance(value, np.generic), "a variable is not a value"
        return value

    def place(self, buffer, index):
        memory = self.scope[buffer]
        assert isinstance(memory, np.ndarray)
        at = self.index(index)
        assert 0 <= at < memory.size, f"{buffer}[{at}] of {memory.size}"
        return memory, at

    def index(self, index):
        return fold(index, self.leaf, self.joined)

    def leaf(self, leaf):
        value = self.scope[leaf] if isinstance(leaf, str) else leaf
        value = int(value) if leaf in self.positions else value
        assert value.__class__ is int, "a value is not an index"
        assert LEAST <= value <= MOST, "it wraps around"
        return value

    def joined(self, op, a, b):
        if op in ("//", "%"):
            assert a >= 0 and b > 0, "machine code divides numbers without a sign"
        return self.leaf({"+": a + b, "*": a * b, "min": min(a, b), "//": b and a // b, "%": b and a % b}[op])


def saturated(value, dtype):
    """A cast with the meaning of the loop language."""
    if dtype.kind in "iu" and np.asarray(value).dtype.kind == "f":
        limits = np.iinfo(dtype)
        return 0 if np.isnan(value) else int(min(limits.max, max(limits.min, value)))
    return value
