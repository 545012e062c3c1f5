"""Unit 13: the questions of the notebook."""

from __future__ import annotations

from typing import Any, ClassVar

from ...predicting import Choice
from ...tasks import Prediction, Question
from .about import UNIT
from .chunks import act_out
from .known import values
from .training import WAYS, compared, scaled


@UNIT.task
class ReadTogether(Prediction):
    name = "read_together"
    mistakes = values(
        ("1_000_000", "that is how long one machine needs. 100,000 share the work"),
        ("100", "a PB is a million GB: divide that by 100,000"),
        ("1", "a PB is a million GB: divide that by 100,000"),
        ("0.000116", "these are days. A day has 86,400 seconds"),
    )


@UNIT.task
class MoreSent(Prediction):
    name = "more_sent"
    mistakes = values(
        ("250", "that is how many times as many workers there are. But the chunks are so much smaller"),
        ("333", "there are 333 times as many rounds. But in each round a worker sends a chunk, 250 times as small"),
        ("1000", "a worker sends to its neighbour only, and in each round one chunk: a thousandth of its array"),
        ("1.998", "that is how many times its array a worker of 1,000 sends. A worker of 4 sends 1.5 times its array"),
        ("1.5", "that is how many times its own array a worker of 4 sends. And a worker of 1,000? Divide the two"),
        ("0.004", "each chunk is 250 times as small, but there are 333 times as many rounds"),
        ("2", "a worker of 1,000 sends nearly 2 times its own array. Divide by what a worker of 4 sends"),
        ("1", "nearly: 2 · 3 / 4 with 4 workers, and 2 · 999 / 1000 with 1,000"),
        ("5", "that is the growth of a tree's levels, log₂. What does a worker of the ring send, 2 (n − 1) / n?"),
        ("0.75", "the other way round: 1,000 workers in the numerator"),
    )


@UNIT.task
class SecondRound(Question):
    name = "second_round"
    hints: ClassVar = {
        "turned": "the chunks of workers 0, 1 and 2, in this order",
        **dict.fromkeys(("first_only", "last_only"), "three numbers: the chunks of workers 0, 1 and 2"),
        "without_the_last": "worker 2 sends a chunk too: three numbers",
        **dict.fromkeys(
            ("all_like_the_first", "all_like_the_last"),
            "all workers send the same chunk then: only that one is completed"),
        "differences": "the numbers of the chunks: 0, 1 or 2",
    }

    def read(self, answer: Any) -> Any:
        return list(answer) if isinstance(answer, tuple) else answer

    def given(self) -> dict[str, Any]:
        return {"act_out": act_out}


@UNIT.task
class Rounds(Prediction):
    name = "rounds"
    mistakes = values(
        ("7", "after 7 rounds each chunk is complete in one worker. The others do not have it yet"),
        ("8", "a chunk has 7 hops to be complete, not 8. And then its total goes round"),
        ("16", "nearly: a chunk needs 7 hops to pass 8 workers. Twice"),
        ("15", "nearly: 7 hops to be complete, 7 hops to go round"),
        ("3", "that is the depth of a tree, log₂ 8. In a ring, a message goes to the next worker only"),
        ("6", "that is the number of levels up and down a tree. In a ring, a message goes to the next worker only"),
        ("56", "that counts the messages of one half. 8 of them are sent at the same time"),
    )


@UNIT.task
class SameCurve(Prediction):
    name = "same_curve"

    def read(self, answer: Any) -> Any:
        given = [answer] if isinstance(answer, str) else answer
        if not isinstance(given, list | tuple | set):
            return answer
        return sorted(str(each).strip().lower() for each in given)

    def given(self) -> dict[str, Any]:
        return {"ways": list(WAYS), "compared": compared}


@UNIT.task
class OverlappedStep(Prediction):
    name = "overlapped_step"
    mistakes = values(
        ("210", "that is without overlap: 50 + 100 + 4 · 15. Three buckets are full before backward ends"),
        ("150", "the last bucket is full when backward ends, and has to be sent then"),
        ("195", "three buckets are full before the end: a bucket is full every 25 ms, and takes 15 ms"),
        ("180", "two buckets are not late: when is the third one full, and when is it sent?"),
        ("110", "that is forward and the four buckets. Backward takes 100 ms, and three buckets are sent meanwhile"),
        ("0.165", "these are seconds: the answer is in ms"),
        ("160", "the buckets are sent one at a time, 15 ms each. What is left when backward ends?"),
        ("115", "forward comes before: nothing can be sent then, but it takes 50 ms"),
    )


@UNIT.task
class WhatGrows(Choice, Prediction):
    name = "what_grows"

    def given(self) -> dict[str, Any]:
        return {"scaled": scaled}


@UNIT.task
class OneSlow(Prediction):
    name = "one_slow"
    mistakes = values(
        ("100", "the sum is complete when the last worker has sent its part"),
        ("10_000", "the others do not wait in turn: all wait at the same time, for one"),
        ("100.1", "that is a mean. The sum is complete when the last worker has sent its part"),
        ("0.11", "these are seconds: the answer is in ms"),
        ("210", "the slow worker computes at the same time as the others, not after them"),
    )


@UNIT.task
class ShardedGb(Prediction):
    name = "sharded_gb"
    mistakes = values(
        ("16", "that is without sharding: 4 + 4 + 8. What is divided?"),
        ("4", "a quarter of all: but each worker needs all parameters, and computes all gradients"),
        ("2", "that is the state alone. Parameters and gradients are there too"),
        ("6", "the gradients are there too, 4 GB: each worker computes all of them, for its images"),
        ("7", "the gradients are whole in each worker until they are added up"),
        ("8", "parameters and gradients are 8 GB. Each worker keeps its part of the state too"),
        ("10e9", "these are bytes: divide by a billion"),
        ("9", "AdamW keeps two numbers for each parameter: 8 GB of state, divided by 4"),
    )
