"""The tables for moving operations: the totals on the page equal the compiler's for the same partition."""

import json

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.fusion.by_hand import divided, members_of
from minigrad.compile.fusion.count import library_count
from minigrad.compile.fusion.fuse import fuse
from minigrad.compile.lowering.lower import lower
from minigrad.compile.nodes.view import whole
from minigrad.compile.rewriting.passes import optimise
from minigrad.support.errors import CompileError
from minigrad.viz.exhibit import static
from minigrad.viz.moving import Tables
from tests.compile.partitions import graph_of
from tests.compile.programs import random_program
from tests.viz.browser import needs_browser, opened
from tests.viz.ten_programs import TEN

PROGRAMS, MOVES = 25, 12
LARGE = [  # large enough for reductions across rows in several chunks
    (lambda x, w: (mg.layer_norm(x) * w).sum(0), (4096, 256), (256,)),
    (lambda x, w: mg.tanh((mg.tanh(x) * w).sum(0)) + 1, (4096, 64), (64,)),
    (lambda x: mg.tanh(x) / mg.tanh(x).sum(), (512, 512)),
]
JUDGE = """(asked) => asked.map(([tables, divisions]) => divisions.map((division) => {
    const left = pruned(tables, division.map((kernel) => new Set(kernel)));
    const answer = judged(tables, left);
    return [left.map((kernel) => [...kernel]), answer.bytes, answer.launches, answer.problems.map((p) => p.why)];
}))"""


def taken(partition):
    """The bytes and launches of a partition, by the compiler's own count."""
    total = 0
    for group in partition.groups:
        if group.library is None:
            lowered = lower(partition, group)
            total += lowered.count.bytes
        else:
            node, reads = group.library.node, group.library.reads
            total += library_count(node, dict(zip(node.inputs, reads)) | {node: whole(node)}).bytes
    return total, len(partition.groups)


def random_move(rng, kernels):
    """The kernels after moving one member to another kernel or to a new one; sometimes both compute it."""
    source, target = rng.integers(len(kernels)), rng.integers(len(kernels) + 1)
    moving = kernels[source]
    if rng.random() < 0.8:
        moving = [moving[rng.integers(len(moving))]]
    stays = rng.random() < 0.1
    left = [[m for m in kernel if n != source or m not in moving or stays] for n, kernel in enumerate(kernels)]
    left.append([])
    left[target] = [*left[target], *[m for m in moving if m not in left[target]]]
    return [kernel for kernel in left if kernel]


def case_of(seed):
    """A partition, its tables, the members by number, and partitions after a series of random moves."""
    if seed < len(LARGE):
        function, *shapes = LARGE[seed]
        graph, keep = mg.trace(function, *map(mg.ones, shapes)), ()
    else:
        tensors, keep = random_program(seed, 14 + seed % 20)
        graph = graph_of(*tensors)
    partition = fuse(optimise(graph)[0])
    tables = Tables(partition, partition.graph.names(), {})
    rng = np.random.default_rng(seed)
    divisions = [members_of(partition)]
    while len(divisions) < MOVES:
        divisions.append(random_move(rng, divisions[rng.integers(len(divisions))]))
    return partition, tables, divisions, keep


@pytest.mark.slow
def test_the_compilers_own_division_is_reproduced():
    for seed in range(40):
        tensors, _keep = random_program(seed, 14 + seed % 20)
        partition = fuse(optimise(graph_of(*tensors))[0])
        assert taken(divided(partition, members_of(partition))) == taken(partition), seed


@needs_browser
@pytest.mark.xdist_group("browser")
def test_the_page_adds_up_what_the_compiler_says():
    cases = [case_of(seed) for seed in range(PROGRAMS)]
    asked = []
    for _, tables, divisions, _ in cases:
        numbered = [[[tables.number[m] for m in kernel] for kernel in kernels] for kernels in divisions]
        asked.append([tables.plain() | {"copied": [0, 0]}, numbered])
    with opened(f"<script>{static('common.js')}{static('board.js')}</script>") as page:
        found = page.evaluate(JUDGE, json.loads(json.dumps(asked)))
    refused = 0
    for seed, ((partition, tables, _, _), answers) in enumerate(zip(cases, found)):
        member = list(tables.number)
        for step, (kernels, size, launches, problems) in enumerate(answers):
            try:
                there = divided(partition, [[member[n] for n in kernel] for kernel in kernels])
            except CompileError as error:
                assert problems, (seed, step, str(error))
                refused += 1
            else:
                assert not problems, (seed, step, problems)
                assert (size, launches) == taken(there), (seed, step)
    assert PROGRAMS < refused < (MOVES - 2) * PROGRAMS  # both answers occurred


@needs_browser
@pytest.mark.xdist_group("browser")
def test_the_cards_of_ten_programs_add_up_to_the_title():
    """One program has one count of launches: that of the title is that of the cards, and of a real call."""
    with opened(f"<script>{static('common.js')}{static('board.js')}</script>") as page:
        for name, made in TEN.items():
            function, *args = made()
            board = mg.viz.fusion(function, *args).data()["board"]
            ((_, size, launches, problems),) = page.evaluate(JUDGE, [[board, [board["kernels"]]]])[0]
            assert (size, launches, problems) == (board["bytes"], board["launches"], []), name
