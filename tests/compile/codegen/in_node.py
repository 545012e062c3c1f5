"""Runs WebAssembly kernels on arrays in one process of Node, without Pyodide."""

import atexit
import json
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.browser.running import node

SCRIPT = Path(__file__).with_name("kernels.mjs")
START, ALIGNED = 64, 16


@cache
def process():
    """One process for all tests."""
    if node() is None:
        pytest.skip("there is no Node.js on this machine")
    started = subprocess.Popen([node(), str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(started.kill)
    return started


def in_node(module, name="kernel"):
    """A function of a module as a function of arrays."""

    def run(arrays, low, high):
        places, end = [], START + 4 * (len(arrays) + 2)
        for array in arrays:
            end = -(-end // ALIGNED) * ALIGNED
            places.append(end)
            end += array.nbytes
        memory = bytearray(end)
        table = np.array([*places, low, high], np.int32)
        memory[START : START + table.nbytes] = table.tobytes()
        for place, array in zip(places, arrays):
            memory[place : place + array.nbytes] = array.tobytes()
        head = {"module": len(module), "memory": end, "name": name, "table": START}
        answer = asked(head, module + bytes(memory), end)
        for place, array in zip(places, arrays):
            array[...] = np.frombuffer(answer, array.dtype, array.size, place)

    return run


def asked(head, data, size):
    """Send a question, and read the memory after the call."""
    pipe = process()
    pipe.stdin.write(json.dumps(head).encode() + b"\n" + data)
    pipe.stdin.flush()
    said = json.loads(pipe.stdout.readline())
    assert "error" not in said, said["error"]
    return pipe.stdout.read(size)
