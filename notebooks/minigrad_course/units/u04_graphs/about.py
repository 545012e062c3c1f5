"""Unit 04: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...orders import MICROGRAD
from ...unit import Misconception, Seed, Unit

UNIT = Unit(
    number=4,
    name="graphs",
    title="Computational graphs: what a program leaves",
    question="A program has a function, a loop and an if. Which of the three are in its graph?",
    minutes=120,
    outcomes={
        "express": "write the graph of a program: its nodes, its edges, and what does not become a node",
        "equal": "decide whether two programs have the same graph, and write a function that decides it",
        "runs": "say why one program can have several graphs, and how many",
        "names": "say what a name has to do with a node, and what keeps a node in memory",
        "order": "put the nodes of a graph in topological order, and say why the order matters",
        "record": "write the function that computes and records every operation, and run it in the engine",
        "repair": "find a wrong edge in a graph, and move it",
    },
    prerequisites=("00_start",),
    misconceptions=(
        Misconception(
            "The graph contains the program's if and for.",
            "Filed as bugs, an if that is not recorded, and a model that had lost its branches: "
            "https://github.com/pytorch/pytorch/issues/54602, https://github.com/pytorch/pytorch/issues/21774",
            "in_the_graph",
        ),
        Misconception(
            "A name is a node: a line that uses a name again changes the node.",
            "Worked out with sketches by a student of a course: https://github.com/erodola/DLAI-s2-2021/issues/17",
            "arrows",
        ),
        Misconception(
            "One arrow is enough where a value is used twice by the same operation.",
            "A network builder kept edges in a set and lost an input of add(x, x), and a drawing lost arrows: "
            "https://github.com/harvard-acc/smaug/pull/18, https://github.com/UCSBarchlab/PyRTL/issues/357",
            "arrows",
        ),
        Misconception(
            "Equal numbers are the same node.",
            "A framework had this bug, and gradients doubled: https://github.com/tinygrad/tinygrad/issues/9597",
            "same",
        ),
        Misconception(
            "When a name is assigned again, what it named before is gone.",
            "A running total of losses keeps every graph: https://github.com/google/brax/pull/152, "
            "https://github.com/rballester/tntorch/pull/19",
            "kept_nodes",
        ),
        Misconception(
            "Listing a node when it is first met gives a topological order.",
            f"{MICROGRAD}/issues/96, {MICROGRAD}/issues/67",
            "topological_order",
        ),
    ),
    seeds=(
        Seed("000: a graph is a series of interconnected nodes", "typed_graph"),
        Seed("000: nodes represent operations or variables", "nodes"),
        Seed("000: edges represent the data flow between nodes", "arrows"),
        Seed("001: ML programs are expressed as computational graphs", "typed_graph"),
        Seed("001: one expression of computation for everything", "same"),
        Seed("001: a simple and flexible front end in a high-level language, Python", "in_the_graph"),
        Seed("002: eager: manifest a node and compute its value at once", "emit"),
        Seed("000: eager mode executes each operation at once, line by line", "emit"),
    ),
)
