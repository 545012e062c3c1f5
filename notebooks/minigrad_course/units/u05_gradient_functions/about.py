"""Unit 05: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...unit import Misconception, Seed, Unit

UNIT = Unit(
    number=5,
    name="gradient_functions",
    title="Gradient functions: one rule per operation",
    question="relu(x) − relu(−x) is x, for every x. Which gradient does an engine compute at x = 0?",
    minutes=95,
    outcomes={
        "rule": "write the gradient function of an operation from its inputs, its output and the output's gradient",
        "chain": "apply the chain rule one operation at a time, from the output to the input",
        "broadcasting": "say where a gradient has to be summed, and write a rule that does it",
        "shapes": "find the gradients of a matrix product from the shapes alone",
        "kink": "say what a rule returns at a kink, who decides, and what finite differences return there",
        "check": "write a gradient check, choose its step, and find a wrong rule with it",
    },
    prerequisites=("00_start",),
    misconceptions=(
        Misconception(
            "Formulas of the same function have the same gradient, because the engine differentiates the function.",
            "Filed as bugs: https://github.com/jax-ml/jax/issues/37821, "
            "https://github.com/pytorch/pytorch/issues/184572. S. Kakade, J. Lee: Provably correct automatic "
            "subdifferentiation for qualified programs (2018), https://arxiv.org/abs/1809.08530",
            "same_function",
        ),
        Misconception(
            "A gradient that comes back through broadcasting fits as it is.",
            "Engines had the bug themselves: https://github.com/deeplearning4j/nd4j/issues/2424, "
            "https://github.com/pytorch/pytorch/issues/1787, https://github.com/tracel-ai/burn/issues/181",
            "bias",
        ),
        Misconception(
            "The smaller the step of a finite difference, the better.",
            "https://github.com/PaddlePaddle/Paddle/issues/4283, https://github.com/chainer/chainer/issues/580, "
            "https://github.com/jax-ml/jax/pull/39821",
            "step",
        ),
    ),
    seeds=(
        Seed("001: gradients are computed automatically by the chain rule", "chained"),
        Seed("001: an example of automatic differentiation", "chained"),
        Seed("001: the gradient function takes the inputs of its primitive", "matmul_grad"),
        Seed("001: the gradient function takes the output of its primitive", "sigmoid_grad"),
        Seed("001: the gradient function takes the gradient of the final output by its output", "bias_gradient"),
        Seed("002: core component: a backpropagation engine", "gradient_functions-network"),
        Seed("002: core component: a numerical linear algebra library", "by_shapes"),
    ),
)
