"""Unit 07: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...unit import Misconception, Seed, Unit

UNIT = Unit(
    number=7,
    name="forward_and_memory",
    title="Forward mode, and memory: compute it twice",
    question="A GPT has 0.2 MB of weights. How many MB does one step of its training keep for the backward pass?",
    minutes=115,
    outcomes={
        "tangent": "push a tangent through a program, and write the forward-mode rule of an operation",
        "passes": "count the passes of forward and of reverse mode for a Jacobian, and choose the cheaper mode",
        "kept": "list the bytes that each operation keeps for the backward pass, each array once",
        "checkpoint": "say what a checkpoint keeps, what it computes again, and why the gradients stay the same",
        "plan": "plan checkpoints that stay within a budget of bytes, with as little work as possible",
    },
    prerequisites=("00_start", "06_reverse_mode"),
    misconceptions=(
        Misconception(
            "Training a model takes about as much memory as its weights.",
            "https://github.com/forresti/SqueezeNet/issues/28 (\"why cost 2500+ MB when training but the model only "
            "5MB big?\"), https://github.com/pytorch/pytorch/issues/14020",
            "step_keeps",
        ),
        Misconception(
            "Forward and reverse mode compute the same Jacobian, so either will do.",
            "https://github.com/jax-ml/jax/issues/215 (8 GB in reverse, forward mode fits), "
            "https://github.com/jax-ml/jax/issues/719 (out of memory in forward mode only), "
            "https://github.com/pytorch/pytorch/issues/94395",
            "spot_passes",
        ),
        Misconception(
            "A checkpoint around a model saves memory, wherever it begins and ends.",
            "https://github.com/pytorch/pytorch/issues/78731, https://github.com/pytorch/pytorch/issues/68423. "
            "T. Chen and others: Training deep nets with sublinear memory cost (2016), "
            "https://arxiv.org/abs/1604.06174",
            "one_checkpoint",
        ),
        Misconception(
            "With dropout, a part that is computed again draws other numbers, so checkpoints change the gradients.",
            "It happens where the state of the generator is not restored: "
            "https://github.com/openai/guided-diffusion/issues/167, https://github.com/allenai/OLMo-core/pull/828; "
            "asked in https://github.com/lucidrains/enformer-pytorch/issues/33",
            "with_dropout",
        ),
    ),
    seeds=(
        Seed("000: memory size, and how fusion saves it", "step_keeps"),
        Seed("001: execution engine: gradient-based computation", "columns"),
        Seed("001: gradients are computed automatically by the chain rule", "mul_jvp"),
        Seed("001: the gradient function takes the inputs of its primitive", "kept_list"),
        Seed("001: the gradient function takes the output of its primitive", "kept_list"),
        Seed("002: reverse mode goes backward through the computation", "forward_keeps"),
        Seed("002: reverse mode fixes one output ℓ over ℝ", "weight_passes"),
        Seed("002: graph: a function is called later to compute the forward pass", "run_blocks"),
    ),
)
