"""Unit 10: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...unit import Misconception, Seed, Unit

UNIT = Unit(
    number=10,
    name="graph_mode",
    title="Graph mode: manifest now, compute later",
    question="The learning rate is 0 in step 1 and 0.5 afterwards. Step 1 is traced. What does the network learn?",
    minutes=115,
    outcomes={
        "phases": "say what happens in each of the two phases of graph mode, and in which order",
        "calls": "predict which calls of a compiled function run its Python code",
        "baked": "find what a trace has baked in, and an input for which the graph is wrong",
        "ways": "choose between annotation, script and trace, and say what each gets wrong",
        "guard": "write a guard, and say what it has to copy and to compare",
        "debug": "find errors in graphs, by node values, a hunt for nan, prints that are operations, and checks",
    },
    prerequisites=("00_start",),
    misconceptions=(
        Misconception(
            "A compiled function reads its global names in each call.",
            "https://github.com/jax-ml/jax/issues/1348, https://github.com/jax-ml/jax/issues/1141. A learning rate "
            "that kept its first value: https://github.com/tensorflow/tensorflow/issues/31323",
            "frozen_rate",
        ),
        Misconception(
            "print in a compiled function prints in each call.",
            "https://github.com/jax-ml/jax/issues/196",
            "python_runs",
        ),
        Misconception(
            "A traced function still has its branches and loops.",
            "https://github.com/pytorch/pytorch/issues/21774, https://github.com/pytorch/pytorch/issues/71929; a loop "
            "with the length of the example: https://github.com/pytorch/pytorch/issues/59530",
            "small_gradient",
        ),
    ),
    seeds=(
        Seed("000: graph mode has two phases: a graph is defined, then executed", "printed_order"),
        Seed("000: graph mode: nothing can be seen until the graph has been executed", "first_number"),
        Seed("000: eager mode shows intermediate results, which helps debugging and understanding", "first_number"),
        Seed("000: interpreted versus compiled languages", "python_runs"),
        Seed("000: graph mode makes debugging and understanding harder", "nan_maker"),
        Seed("000: JAX", "three_ways"),
        Seed("001: annotation by the user: @tf.function, @jit.script", "three_ways"),
        Seed("001: just-in-time compilation by tracing: @jit.trace", "small_gradient"),
        Seed("002: graph: just manifest a node", "first_number"),
        Seed("002: graph: a function is called later to compute the forward pass", "printed_order"),
        Seed("002: the classic distinction between TensorFlow and PyTorch", "frozen_rate"),
        Seed("000: PyTorch began with eager mode, and TensorFlow with graph mode", "frozen_rate"),
    ),
)
