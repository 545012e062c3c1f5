"""A function that reads nothing but one number that differs between calls: it is refused, with the line."""

import datetime
import functools
import os
import random
import secrets
import time
import uuid

import numpy as np
import pytest

import minigrad as mg


def in_a_helper():
    return np.random.default_rng().normal()


def imported_inside():
    from numpy.random import default_rng
    return default_rng().normal()


IN_A_PARTIAL = functools.partial(np.random.default_rng)
DRAWS = {
    "default_rng": lambda: np.random.default_rng().normal(),
    "default_rng(None)": lambda: np.random.default_rng(None).normal(),
    "default_rng in a helper": lambda: in_a_helper(),
    "default_rng in a comprehension": lambda: sum([np.random.default_rng().random() for _ in range(2)]),
    "default_rng, imported inside": lambda: imported_inside(),
    "default_rng by another name": lambda rng=np.random.default_rng: rng().random(),
    "default_rng in a partial": lambda rng=IN_A_PARTIAL: rng().random(),
    "default_rng, mapped": lambda: sum([rng.random() for rng in map(np.random.default_rng, [None])]),
    "Generator": lambda: np.random.Generator(np.random.PCG64()).random(),
    "SeedSequence": lambda: np.random.SeedSequence().entropy % 7,
    "RandomState": lambda: np.random.RandomState().rand(),
    "random": lambda: random.random(),
    "Random": lambda: random.Random().random(),
    "SystemRandom": lambda: random.SystemRandom().random(),
    "urandom": lambda: os.urandom(1)[0],
    "urandom by another name": lambda draw=os.urandom: draw(1)[0],
    "urandom as an integer": lambda: int.from_bytes(os.urandom(2), "big"),
    "secrets": lambda: secrets.randbelow(1000),
    "token_bytes": lambda: secrets.token_bytes(1)[0],
    "uuid4": lambda: uuid.uuid4().int % 7,
    "uuid1": lambda: uuid.uuid1().int % 7,
    "time": lambda: time.time(),
    "clock_gettime": lambda: time.clock_gettime(time.CLOCK_REALTIME),
    "thread_time": lambda: time.thread_time_ns(),
    "times": lambda: os.times().elapsed,
    "now": lambda: datetime.datetime.now().microsecond,
}
if hasattr(os, "getrandom"):
    DRAWS["getrandom"] = lambda: os.getrandom(1)[0]


@pytest.mark.parametrize("case", DRAWS)
def test_a_function_that_reads_nothing_but_such_a_number(case):
    named = r"the function reads (the system's|a clock|a generator|random).* at .*test_draws\.py:\d+"
    with pytest.raises(mg.TraceError, match=named) as caught:
        mg.jit(lambda draw=DRAWS[case]: mg.ones(1) * float(draw()))()
    assert "mg.random draws new numbers in each run" in str(caught.value)


def test_other_functions_of_these_modules():
    f = mg.jit(lambda x: x * len(os.path.basename("a/b")) * np.random.default_rng(3).integers(1, 2))
    assert [f(mg.ones(1)).item() for _ in range(2)] == [1, 1] and len(f.traces) == 1
