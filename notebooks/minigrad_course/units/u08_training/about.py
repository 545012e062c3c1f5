"""Unit 08: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...unit import Misconception, Seed, Unit

UNIT = Unit(
    number=8,
    name="training",
    title="Training: the life of a model",
    question="One weight has the gradient 1000, another has 0.001. How many times as far does Adam's first step move "
    "the first one?",
    minutes=130,
    outcomes={
        "module": "say what a module holds, and how many numbers a network learns",
        "initialise": "predict the spread of activations through many layers, and choose the scale that keeps it",
        "step": "write a training step, and say what each of its phases changes",
        "optimizer": "write momentum and Adam, and say which values an optimizer keeps from step to step",
        "data": "load tables and files with damaged entries, and report each entry that is left out",
        "resume": "say what a checkpoint has to hold, and find out from the losses which part is missing",
        "modes": "evaluate a model with dropout and batch norm, and leave it as it was",
        "export": "write a model to a file that another program runs, and measure whether both agree",
    },
    prerequisites=("00_start",),
    misconceptions=(
        Misconception(
            "A checkpoint of the weights is enough to continue a training.",
            "https://github.com/NVlabs/stylegan2-ada-pytorch/issues/108, "
            "https://github.com/AlexeyAB/darknet/issues/6720, "
            "https://github.com/lorenlugosch/end-to-end-SLU/issues/2",
            "checkpoint_parts",
        ),
        Misconception(
            "It does not matter where eps stands in Adam.",
            "https://github.com/CyberZHG/keras-radam/issues/29, https://github.com/FluxML/Flux.jl/pull/448, "
            "https://github.com/tensorflow/tensorflow/issues/9047",
            "adam",
        ),
        Misconception(
            "Training mode and evaluation mode compute nearly the same.",
            "Filed as bugs: https://github.com/pytorch/pytorch/issues/5406, "
            "https://github.com/pytorch/vision/issues/2079, https://github.com/davidsandberg/facenet/issues/278",
            "sorted_pictures",
        ),
        Misconception(
            "A loader is robust if it skips what it cannot read.",
            "https://github.com/pytorch/pytorch/issues/1137, https://github.com/pytorch/vision/issues/485, "
            "https://github.com/conservationtechlab/animl-py/issues/247",
            "read_rows",
        ),
    ),
    seeds=(
        Seed("000: PyTorch began with eager mode, and TensorFlow with graph mode", "training_step"),
        Seed("001: management of unstructured and semi-structured data", "read_rows"),
        Seed("001: management of unstructured and semi-structured data", "usable"),
        Seed("001: support for the full life-cycle of a model", "checkpoint_parts"),
        Seed("001: training and inference", "read_digits"),
        Seed("001: support for neural networks", "learned"),
        Seed("001: execution engine: gradient-based computation", "training-training-stepper"),
        Seed("001: support for the full life-cycle of a model", "compared"),
        Seed("002: core component: a library for neural networks", "learned"),
    ),
)
