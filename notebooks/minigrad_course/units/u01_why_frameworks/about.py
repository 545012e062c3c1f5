"""Unit 01: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...unit import Misconception, Seed, Unit

UNIT = Unit(
    number=1,
    name="why_frameworks",
    title="Why frameworks: a gradient by hand",
    question="In a network with a gradient written by hand, one activation changes and the gradient does not. How many "
    "digits does the network read now?",
    minutes=95,
    outcomes={
        "by_hand": "write the gradient of a network of two layers by hand, and change it with the network",
        "silent": "explain why a wrong gradient raises no error, and why its damage can stay unseen",
        "systems": "say what a library of layers, a data-parallel system and a framework each can do, and test it",
        "layers": "say what front end, execution engine and hardware runtime do for one line of code",
        "components": "name the four core components of a framework, and which one a line uses",
        "scale": "compute what more machines and a faster processor gain, and what they do not gain",
    },
    prerequisites=("00_start",),
    misconceptions=(
        Misconception(
            "If a gradient were wrong, there would be an error, or the network would not learn.",
            "A library in which the softmax passed back an unchanged gradient: "
            "https://github.com/pjreddie/darknet/pull/96",
            "forgotten_line",
        ),
        Misconception(
            "A new layer is one function.",
            "It was four, forward and backward on two processors, and two of them differed: "
            "https://github.com/Russell91/apollocaffe/issues/36",
            "new_layer",
        ),
        Misconception(
            "The gradient of all data is the mean of the gradients of its parts.",
            "https://github.com/huggingface/transformers/issues/24725, "
            "https://github.com/meta-pytorch/torchtune/pull/1875",
            "whole_gradient",
        ),
        Misconception(
            "If one part of a training step runs ten times as fast, training is ten times as fast.",
            "https://github.com/NVIDIA/DALI/issues/892. G. Amdahl: Validity of the single processor approach to "
            "achieving large scale computing capabilities (1967), https://doi.org/10.1145/1465482.1465560",
            "step_gain",
        ),
    ),
    seeds=(
        Seed("001: algorithms, hardware and data: the three factors of the boom", "why_frameworks-board"),
        Seed("001: heterogeneous processors: CPUs, GPUs and TPUs", "step_gain"),
        Seed("001: TPUs", "step_gain"),
        Seed("001: 10 to 100 times acceleration", "step_gain"),
        Seed("001: PB-scale data", "petabyte"),
        Seed("001: data centres with 100,000s of machines", "petabyte"),
        Seed("001: ML frameworks are a new category of system software", "layers_row"),
        Seed("001: neural-network libraries (Theano, Caffe) and what they lack", "new_layer"),
        Seed("001: data-parallel systems (Spark, Giraph) and what they lack", "parallel_row"),
        Seed("001: ML frameworks (PyTorch, TensorFlow): all six columns of the table", "why_frameworks-board"),
        Seed("001: management of unstructured and semi-structured data", "parallel_row"),
        Seed("001: training and inference", "why_frameworks-board"),
        Seed("001: distributed execution", "whole_gradient"),
        Seed("001: programming abstraction: machine learning in different applications", "components"),
        Seed("001: execution engine: gradient-based computation", "line_counts"),
        Seed("001: hardware runtime: uses all heterogeneous processors", "stack_counts"),
        Seed("001: front-end and back-end languages", "last_python"),
        Seed("001: a simple and flexible front end in a high-level language, Python", "swapped_grad"),
        Seed("001: a simple and flexible front end in a high-level language, Python", "line_counts"),
        Seed("001: reading: Deep learning with PyTorch in 60 minutes", "why_frameworks-blitz"),
        Seed("001: reading: the TensorFlow paper", "why_frameworks-blitz"),
        Seed("001: reading: the PyTorch paper", "why_frameworks-blitz"),
        Seed("002: core component: a numerical linear algebra library", "components"),
        Seed("002: core component: hardware support", "components"),
        Seed("002: core component: a backpropagation engine", "components"),
        Seed("002: core component: a library for neural networks", "components"),
        Seed("002: all components are embedded in a high-level language, usually Python", "last_python"),
        Seed("000: PyTorch: flexibility and usability", "twice_in_chain"),
    ),
)
