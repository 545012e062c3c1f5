"""Unit 14: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...unit import Misconception, Seed, Unit

UNIT = Unit(
    number=14,
    name="applications",
    title="One abstraction, many applications",
    question="A digit reader, a language model, a graph network and a player of a game train on one engine. How many "
    "of its 84 primitives do the four need together?",
    minutes=130,
    outcomes={
        "shared": "say what four kinds of applications share, and count it in their graphs",
        "line": "follow a line of code from the source through graph, gradient, fusion and loops to its result",
        "output_gradient": "start a backward pass from a gradient at the scores, without a loss",
        "language": "write the loss of a language model, and recognise a loss that is too good to be true",
        "graph": "turn ties into messages, and learn from two labels without reading the others",
        "policy": "write the loss of a policy from returns, a baseline and the probabilities of actions",
        "report": "report results with their scores, counts and limits",
    },
    prerequisites=("00_start", "05_gradient_functions", "11_fusion"),
    misconceptions=(
        Misconception(
            "A loss near zero means that a language model has learned.",
            "Filed as bugs: https://github.com/karpathy/minGPT/issues/75, "
            "https://github.com/huggingface/transformers/issues/17121",
            "names_loss",
        ),
        Misconception(
            "The loss of a policy falls while the policy becomes better.",
            "https://github.com/kengz/SLM-Lab/issues/437, https://github.com/werner-duvaud/muzero-general/issues/96",
            "policy_curve",
        ),
        Misconception(
            "A member of a graph gets messages from its neighbours, so its own numbers are there anyway.",
            "https://github.com/dmlc/dgl/issues/1566, https://github.com/tkipf/pygcn/issues/21",
            "club_loss",
        ),
        Misconception(
            "The return of the whole episode is a good weight for each of its actions.",
            "A course had it: https://github.com/huggingface/deep-rl-class/pull/70",
            "pole_loss",
        ),
    ),
    seeds=(
        Seed("001: one unified programming abstraction for different applications", "applications-constellations"),
        Seed("001: DNNs: deep neural networks", "scores_grad"),
        Seed("001: GNNs: graph neural networks", "club_loss"),
        Seed("001: DRL: deep reinforcement learning", "pole_loss"),
        Seed("001: many applications of machine learning appear", "primitives_needed"),
        Seed("001: one expression of computation for everything", "primitives_shared"),
        Seed("001: support for the full life-cycle of a model", "applications-journey"),
        Seed("001: the gradient function takes the gradient of the final output by its output", "scores_grad"),
        Seed("002: reverse mode fixes one output ℓ over ℝ", "scores_grad"),
        Seed("002: reverse mode computes ∂ℓ/∂y for each value y", "scores_grad"),
        Seed("000: the deferred execution of an optimised version of the graph", "line_launches"),
    ),
)
