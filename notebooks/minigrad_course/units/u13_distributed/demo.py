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
    """A machine reads 1 GB a second: 1 PB, a million GB, in 11.6 days. How many seconds do 100,000 machines need?"""

    name, outcome, example, right_value, tolerance = "read_together", "why", "3600", 10, 0.05
    why = "each of them reads 10 GB."
    otherwise = "a million GB, shared by 100,000 machines: how many GB are there for each?"
    mistakes = values(
        ("1_000_000", "that is how long one machine needs. 100,000 share the work"),
        ("100", "a PB is a million GB: divide that by 100,000"),
        ("1", "a PB is a million GB: divide that by 100,000"),
        ("0.000116", "these are days. A day has 86,400 seconds"),
    )


@UNIT.task
class MoreSent(Prediction):
    """4 workers add up their gradients in a ring, then 1,000. How many times as much does each worker send?"""

    name, outcome, example, right_value, tolerance = "more_sent", "bytes", "10", 1.332, 0.02
    why = "1.998 times its array instead of 1.5 times. With any number of workers, it is less than 2 times."
    otherwise = "a worker sends 2 (n − 1) chunks, each of them an n-th of its array: 2 (n − 1) / n. Divide the two"
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
    """Click until every chunk is complete in one worker. Which chunks do workers 0, 1 and 2 send in round 2?"""

    name, outcome, example, right_value = "second_round", "ring", "[0, 0, 0]", [2, 0, 1]
    why = "each worker passes on the chunk that it has just received."
    otherwise = "leave round 1 as it is. In round 2, a worker sends the chunk that it has just received"
    hints: ClassVar = {
        "turned": "the chunks of workers 0, 1 and 2, in this order",
        **dict.fromkeys(("first_only", "last_only"), "three numbers: the chunks of workers 0, 1 and 2"),
        "without_the_last": "worker 2 sends a chunk too: three numbers",
        **dict.fromkeys(
            ("all_like_the_first", "all_like_the_last"),
            "all workers send the same chunk then: only that one is completed"),
        "differences": "the numbers of the chunks: 0, 1 or 2",
    }
    wrong_values = (
        ([0, 1, 2], "worker 0 sends its own chunk 0 twice: worker 1 counts it twice, and the picture turns red"),
        ([1, 2, 0], "the other way round: messages go from worker 0 to worker 1. From whom has worker 0 received?"),
        ([2, 1, 0], "worker 0 is right. Which chunk has worker 1 just received?"),
        ([0, 2, 1], "worker 0 has sent its chunk 0 in round 1. Which chunk has it received meanwhile?"),
    )

    def read(self, answer: Any) -> Any:
        return list(answer) if isinstance(answer, tuple) else answer

    def given(self) -> dict[str, Any]:
        return {"act_out": act_out}


@UNIT.task
class Rounds(Prediction):
    """8 workers: after how many rounds do all of them have the sum of all arrays?"""

    name, outcome, example, right_value = "rounds", "bytes", "4", 14
    why = "7 rounds until each chunk is complete somewhere, and 7 more until the totals have gone round."
    otherwise = "each chunk has to pass the 7 other workers to be complete. And then its total has to pass them again"
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
    """Which of the five trains as one process does?"""

    name, outcome, example, right_value = "same_curve", "why", '["sum", "norm"]', ["mean"]
    why = "the mean of the four mean gradients is the gradient of the mean loss of the whole batch."
    otherwise = 'a list of some of "mean", "sum", "seeds", "norm" and "whole". Which step would one process have made?'
    wrong_values = (
        (["sum"], "the sum is 4 times the mean: a step 4 times as long. The loss of a batch is a mean, and so is its "
                  "gradient"),
        (["mean", "sum"], "the sum is 4 times the mean, so each step is 4 times as long"),
        (["mean", "norm"], "batch norm subtracts the mean of 16 images here, and of 64 in one process: other numbers"),
        (["mean", "seeds"], "with other first weights, the ranks have four different networks, for ever"),
        (["mean", "whole"], "then all ranks compute the same gradient, from the same 16 images: three ranks do nothing "
                            "useful"),
        (["mean", "norm", "whole"], "two of the three differ: which images does batch norm see, and which do the ranks "
                                    "see?"),
        (["mean", "norm", "seeds"], "two of the three differ: batch norm sees 16 images, and the ranks have different "
                                    "networks"),
        ([], "one of them does: the mean over equal parts is the mean over the whole"),
        (["mean", "norm", "seeds", "sum", "whole"], "only one does: which step would one process have made?"),
    )

    def read(self, answer: Any) -> Any:
        given = [answer] if isinstance(answer, str) else answer
        if not isinstance(given, list | tuple | set):
            return answer
        return sorted(str(each).strip().lower() for each in given)

    def given(self) -> dict[str, Any]:
        return {"ways": list(WAYS), "compared": compared}


@UNIT.task
class FirstBucket(Choice, Prediction):
    """Which layer's gradients can be sent first?"""

    name, outcome, right_value = "first_bucket", "step", "last"
    why = "backward begins at the loss: the gradients of the last layer are there first, while the others are computed."
    options: ClassVar = {
        "first": "the first layer's gradients come at the very end of the backward pass: nothing would overlap",
        "last": "",
        "largest": "the size does not count at first: which gradients exist first?",
        "all together": "then the network is idle during the whole backward pass",
    }


@UNIT.task
class OverlappedStep(Prediction):
    """Forward 50 ms, backward 100 ms, 4 equal buckets of 15 ms each: how long is a step with overlap?"""

    name, outcome, example, right_value = "overlapped_step", "step", "200", 165
    why = "three of the four buckets are sent while backward computes. Only the last one, 15 ms, comes after it."
    otherwise = "a bucket is full every 25 ms of backward, and is sent in 15 ms. Which one is left at 150 ms?"
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
    """From 32 to 1,024 workers, the step takes 6 times as long. What has grown?"""

    name, outcome, right_value = "what_grows", "step", "messages"
    why = "2,046 messages one after the other for each bucket, instead of 62. Each has its latency. Large buckets help."
    options: ClassVar = {
        "bytes": "each worker sends 2.00 GB instead of 1.94 GB: look at the line `sent`, beside the curves",
        "messages": "",
        "computing": "each worker computes one batch, as before: 150 ms",
        "waiting for slow workers": "look at the curve `as given`: there all workers are equally fast",
    }

    def given(self) -> dict[str, Any]:
        return {"scaled": scaled}


@UNIT.task
class OneSlow(Prediction):
    """1,000 workers need 100 ms for a step, and one of them needs 110 ms. How long is a step of all?"""

    name, outcome, example, right_value = "one_slow", "step", "105", 110
    why = "all wait for the slowest. One worker of 1,000 takes 9 % of the whole data centre's time."
    otherwise = "the sum of the gradients needs the gradients of all workers"
    mistakes = values(
        ("100", "the sum is complete when the last worker has sent its part"),
        ("10_000", "the others do not wait in turn: all wait at the same time, for one"),
        ("100.1", "that is a mean. The sum is complete when the last worker has sent its part"),
        ("0.11", "these are seconds: the answer is in ms"),
        ("210", "the slow worker computes at the same time as the others, not after them"),
    )


@UNIT.task
class ShardedGb(Prediction):
    """A billion parameters, AdamW, 4 workers, a sharded optimizer: how many GB in each worker?"""

    name, outcome, example, right_value = "sharded_gb", "shard", "12", 10
    why = "4 GB of parameters, 4 GB of gradients, and a quarter of the 8 GB of state."
    otherwise = "parameters and gradients are whole in each worker, 4 GB each. The 8 GB of state are divided by 4"
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
