"""Unit 12: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...unit import Misconception, Seed, Unit

TENSORFLOW, TORCH = "https://github.com/tensorflow/tensorflow", "https://github.com/pytorch/pytorch"

UNIT = Unit(
    number=12,
    name="parallelism",
    title="Parallelism and offloading",
    question="Nine jobs take 12 minutes on three workers. A fourth worker comes. How long do they take now?",
    minutes=135,
    outcomes={
        "launch": "say what it costs to launch kernels one by one from Python, and what a sub-graph saves",
        "path": "find the critical path of a graph, and the time that no number of workers can beat",
        "schedule": "write a list scheduler, and say what it guarantees and what it does not",
        "offload": "choose the sub-graph that should run on another processor, from bytes and times",
    },
    prerequisites=("03_devices", "10_graph_mode", "11_fusion"),
    misconceptions=(
        Misconception(
            "More workers are never slower.",
            "R. L. Graham: Bounds on multiprocessing timing anomalies (1969); M. T. Kaufman: Anomalies in scheduling "
            "unit-time tasks (1972), http://i.stanford.edu/TR/CS-TR-72-310.html",
            "fourth_worker",
        ),
        Misconception(
            "Twice as many threads or streams take half the time.",
            f"Asked again and again: https://github.com/tensorflow/tensorrt/issues/249, {TORCH}/issues/59692, "
            "https://github.com/microsoft/onnxruntime/issues/12877",
            "two_workers",
        ),
        Misconception(
            "On a faster processor every operation takes less time.",
            f"Filed as a bug: {TENSORFLOW}/issues/5995, https://github.com/microsoft/CNTK/issues/751",
            "together",
        ),
        Misconception(
            "Kernels take the time, and starting them takes none.",
            "The reason for CUDA graphs in frameworks: https://github.com/apache/mxnet/pull/19142, "
            "https://github.com/vllm-project/vllm/pull/1926",
            "eager_launches",
        ),
    ),
    seeds=(
        Seed("001: launching kernels from Python often has a large overhead", "eager_launches"),
        Seed("001: sub-graphs are discovered and launched as one", "program_starts"),
        Seed("001: parallelism is discovered in the graph", "list_schedule"),
        Seed("001: execution engine: parallel computation", "parallelism-real-steps"),
        Seed("001: sub-graphs are offloaded to heterogeneous processors", "my_placement"),
        Seed("001: support for heterogeneous processors", "offloaded"),
        Seed("001: back-end execution: parallelism, offloading", "parallelism-training"),
    ),
)
