"""Unit 03: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...unit import Misconception, Seed, Unit

UNIT = Unit(
    number=3,
    name="devices",
    title="Devices and dispatch: one NumPy per device",
    question="This library has 84 operations and 76 gradient rules. A new chip arrives. "
    "How many functions must you write before a network learns on it?",
    minutes=120,
    outcomes={
        "table": "count the functions that a kind of hardware needs, and say which of them gradients need",
        "place": "say on which device each array is, what x.to copies, and which line stops",
        "dispatch": "write a dispatcher: from an operation and its inputs to one kernel, or to an exception",
        "kernel": "write a kernel for raw arrays, register it, and find it in the table",
        "cost": "work out from launches, bytes and copies whether a faster device saves time",
        "queue": "say what a clock in Python measures while a device works through its queue, and what streams change",
        "device": "bring a device of your own, and train a network on it",
    },
    prerequisites=("00_start",),
    misconceptions=(
        Misconception(
            "Every operation has a backward function, so a new device needs each of them too.",
            "Some frameworks are made in this way: Paddle's list of backward kernels, "
            "https://github.com/PaddlePaddle/Paddle/blob/develop/paddle/phi/ops/yaml/backward.yaml",
            "new_chip",
        ),
        Misconception(
            "x.to(device) moves x.",
            "https://github.com/pytorch/pytorch/issues/14068, https://github.com/huggingface/accelerate/issues/2251",
            "device_of_x",
        ),
        Misconception(
            "The framework should copy between devices by itself, where an operation needs it.",
            "Asked for and refused: https://github.com/pytorch/pytorch/issues/25587",
            "mixed",
        ),
        Misconception(
            "A device that computes a hundred times as fast makes the program a hundred times as fast.",
            "https://github.com/tensorflow/tensorflow/issues/5995, https://github.com/microsoft/CNTK/issues/751, "
            "https://github.com/pytorch/pytorch/issues/14989",
            "by_way_of_chip",
        ),
        Misconception(
            "When the line of an operation has run, the operation is done, so a clock around it measures it.",
            "Wrong benchmarks of others: https://github.com/TristanBilot/mlx-benchmark/pull/21, "
            "https://github.com/black-forest-labs/flux/pull/147",
            "called",
        ),
    ),
    seeds=(
        Seed("002: on-device arrays: a copy of NumPy for each kind of hardware", "chip_kernels"),
        Seed("002: every function has a copy for each kind of hardware", "new_chip"),
        Seed("002: an array lies explicitly on one device", "stops"),
        Seed("002: x.to moves an array to a device", "device_of_x"),
        Seed("002: the library checks where the inputs lie", "dispatch"),
        Seed("002: inputs on one device: that device's version is called", "dispatch"),
        Seed("002: inputs on different devices: an exception is raised", "mixed"),
        Seed("002: by default one such function runs at a time", "overlapped"),
        Seed("002: core component: hardware support", "devices-train"),
        Seed("001: hardware runtime: uses all heterogeneous processors", "devices-train"),
        Seed("001: support for heterogeneous processors", "devices-train"),
        Seed("001: 10 to 100 times acceleration", "devices-at-work"),
        Seed("001: operators have kernels for CPUs and GPUs", "coarse_matmul"),
        Seed("001: kernel dispatchers", "dispatch"),
    ),
)
