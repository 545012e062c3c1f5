"""The first call of a jitted function is a path: how much of the package it runs through, by counts."""

import subprocess
import sys
from pathlib import Path

import pytest

from minigrad.compile.codegen.native import is_available

pytestmark = pytest.mark.skipif(not is_available(), reason="llvmlite is not installed")

ROOT = Path(__file__).parents[2]
# Each limit stands a little above what was reached.
LINES = 12_900  # of the files of compile and eager that a small function loads
CALLS, FILES = 29_900, 45  # Python calls of the package, and files of compile and eager, in an MLP's step
ABOVE_LOOPS = 16_580  # the calls before the loops of the kernels are written and printed
SEARCH = 0.06  # the share of the calls that look for what could become stale

LOADED = """
import sys
import minigrad as mg
f = mg.jit(lambda x, w: mg.tanh(x @ w))
f(mg.ones((3, 4)), mg.ones((4, 5)))
rooms = "minigrad.compile.", "minigrad.eager."
for name, module in list(sys.modules.items()):
    if name.startswith(rooms):
        print(name, module.__file__)
"""
COUNTED = """
import sys
from collections import Counter
from pathlib import Path
import numpy as np
import minigrad as mg
mg.random.seed(0)
model = mg.nn.Sequential(mg.nn.Linear(784, 128), mg.nn.ReLU(), mg.nn.Linear(128, 10))
optimizer = mg.optim.SGD(model.parameters(), lr=0.1)
x, y = mg.asarray(np.ones((64, 784), np.float32)), mg.asarray(np.arange(64) % 10)
@mg.jit
def step(x, y):
    optimizer.zero_grad()
    loss = mg.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss
root, calls = str(Path(mg.__file__).parent), Counter()
def count(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(root):
        calls[frame.f_code.co_filename[len(root) + 1 :].replace("\\\\", "/")] += 1
sys.setprofile(count)
step(x, y)
sys.setprofile(None)
for name, number in calls.items():
    print(name, number)
"""
SEARCHERS = [f"compile/tracing/{name}.py" for name in ("contents", "guards", "reachable", "signature", "unseen")]
SEARCHERS += ["support/origin.py"]


def printed(code, cache):
    command = [sys.executable, "-c", code]
    environment = {"MINIGRAD_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT)
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.slow
def test_a_small_function_loads_no_guests(tmp_path):
    loaded = {name.removeprefix("minigrad."): Path(path) for name, path in printed(LOADED, tmp_path).items()}
    guests = (
        "compile.graph_mode", "compile.control.", "compile.save.", "compile.user_kernels.", "compile.running.gpu",
        "compile.running.rounds", "compile.running.blocked", "compile.running.schedule", "compile.running.profiler",
        "compile.running.plain", "compile.functions.derivatives", "compile.fusion.blocks", "compile.fusion.tally",
        "compile.lowering.product", "compile.lowering.by_nodes", "compile.loops.angles", "compile.loops.powers",
        "compile.loops.arithmetic", "compile.nodes.interpret", "compile.nodes.registered", "compile.codegen.cuda",
        "compile.codegen.nvrtc", "compile.codegen.wasm", "compile.codegen.workers", "compile.look.",
    )
    assert [name for name in loaded if name.startswith(guests)] == []
    assert sum(len(path.read_text("utf-8").splitlines()) for path in loaded.values()) <= LINES


@pytest.mark.slow
def test_the_first_call_of_a_training_step_is_a_path(tmp_path):
    calls = {name: int(number) for name, number in printed(COUNTED, tmp_path).items()}
    searching = sum(calls.get(name, 0) for name in SEARCHERS)
    total = sum(calls.values())
    printing = sum(number for name, number in calls.items() if name.startswith(("compile/loops/", "compile/codegen/")))
    assert total <= CALLS and total - printing <= ABOVE_LOOPS and searching <= SEARCH * total
    assert sum(name.startswith(("compile/", "eager/")) for name in calls) <= FILES
