"""Unit 13: its question, outcomes, misconceptions and seeds."""

from __future__ import annotations

from ...unit import Misconception, Seed, Unit

NCCL = "https://github.com/NVIDIA/nccl/issues"

UNIT = Unit(
    number=13,
    name="distributed",
    title="Distributed execution: a ring of workers",
    question="A thousand workers add up their gradients instead of four. How many times as much does each one send?",
    minutes=130,
    outcomes={
        "why": "say why training is distributed, and which set-ups train as one process does",
        "ring": "follow a sum around a ring of workers, chunk by chunk, and find what is counted twice or missing",
        "bytes": "count the rounds, and the bytes that each worker sends",
        "write": "write a ring all-reduce that neither waits for ever nor sends more than it has to",
        "step": "predict the time of a step: overlap, slow workers, thousands of workers",
        "shard": "count the memory of a worker, with a whole and with a sharded optimizer",
    },
    prerequisites=("00_start", "05_gradient_functions"),
    misconceptions=(
        Misconception(
            "Twice as many workers send twice as much, each of them.",
            f"Asked of NCCL's authors: {NCCL}/971, {NCCL}/1282. P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce "
            "algorithms for clusters of workstations (2009), https://doi.org/10.1016/j.jpdc.2008.09.002",
            "more_sent",
        ),
        Misconception(
            "A ring sends the same bytes with any number of workers, so it takes the same time.",
            f"{NCCL}/757, {NCCL}/1712: users who measured it",
            "what_grows",
        ),
        Misconception(
            "Data-parallel training adds up the gradients, so the learning rate is multiplied by the workers.",
            "https://github.com/spellml/deeplab-voc-2012/issues/3, "
            "https://github.com/facebookresearch/fairseq/issues/494, "
            "https://github.com/neuralmagic/sparseml/pull/135",
            "same_curve",
        ),
        Misconception(
            "A program that ran with short messages does not wait for ever with long ones.",
            "https://github.com/rsmpi/rsmpi/issues/144, https://github.com/firemodels/fds/issues/1720",
            "reduce_scatter",
        ),
        Misconception(
            "A sharded optimizer divides the whole memory by the number of workers.",
            "https://github.com/deepspeedai/Megatron-DeepSpeed/issues/239. S. Rajbhandari and others: ZeRO (2019), "
            "https://arxiv.org/abs/1910.02054",
            "sharded_gb",
        ),
    ),
    seeds=(
        Seed("001: PB-scale data", "read_together"),
        Seed("001: data centres with 100,000s of machines", "read_together"),
        Seed("001: distributed execution", "more_sent"),
        Seed("001: execution engine: parallel computation", "same_curve"),
        Seed("001: support for the full life-cycle of a model", "distributed-training"),
        Seed("001: 10 to 100 times acceleration", "what_grows"),
        Seed("000: memory size, and how fusion saves it", "sharded_gb"),
    ),
)
