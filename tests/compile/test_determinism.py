"""Compilation does not depend on the seed of hashes, on addresses, or on earlier runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("listings.py")


def listings(seed, past):
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("MINIGRAD_")}
    env = surroundings | {"PYTHONHASHSEED": str(seed), "MINIGRAD_BACKEND": "numpy"}
    env["PYTHONPATH"] = str(PROGRAM.parents[2])
    command = [sys.executable, str(PROGRAM), str(past)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_listings_are_the_same_in_every_process():
    first = listings(seed=0, past=0)
    assert first.count("== ") == 15 and len(first) > 20_000
    for seed, past in [(1, 0), (2, 10), (3, 25)]:
        assert listings(seed, past) == first
