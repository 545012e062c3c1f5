"""The benchmarks run: each once, in its smallest size, without other libraries. The figures are not checked."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))
SAYS = {
    "applications": ["| karate_gcn |", "≥ 94 % right | ok | 0"],
    "compiled": ["| softmax, 4 × 16, forward + backward |", "GPT, 1 layers of 8", "| first call |"],
    "eager": ["| x[1:3] = v, forward + backward |", "| exp(x), 10M floats |"],
    "training": ["MLP 8-6-3, batch 4, Adam", "GPT, 1 layers of 8"],
    "growth": ["this machine, in this run:", "| elements: softmax of 1e2 |", "| chain with reductions |", "Fitted:",
               "| peak memory, forward + backward |"],
    "deep": ["| backward of 100 operations", "peak memory of 200 operations on 1M floats and back, minigrad:"],
    "optimizers": ["| SGD with momentum |", "| Muon |"],
    "seeing": ["| tangle |", "| stepper |", "lick to picture"],
    "inference": ["| MLP 8-6-5-3, batch 2 |", "CNN, 2 and 3 channels", "GPT, 1 layers of 8", "program in a file"],
    "operators": ["primitives, ", " composites"],
    "reads": ["| read after a layer of 4 × 4 |", "≤ 3 × eager"],
    "startup": ["| import, best |", "≤ 2 × numpy"],
}


@pytest.fixture
def load(monkeypatch):
    """Import a benchmark as `python benchmarks/NAME.py` does, and forget it afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if name in NAMES or name == "_harness":
            del sys.modules[name]


def test_benchmarks_are_all_listed():
    assert set(NAMES) == set(SAYS)


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs(name, load, capsys):
    text = load(name).main(["--smoke", "--without-torch"])
    for part in [*SAYS[name], "smoke run: the figures mean nothing"]:
        assert part in text
    assert "torch" not in text.replace("× torch", "")
    assert text.splitlines()[0] in capsys.readouterr().out


def test_tables_show_the_verdict_on_a_goal(load):
    harness = load("_harness")
    opts = harness.Options(smoke=True, rounds=1, only="*", torch=None)
    case = harness.Case("work", {"minigrad": lambda: None, "torch": lambda: None}, goal=1e9)
    row = harness.measure([case], opts)[0]
    assert row.verdict == "ok" and "| ≤ 1e+09 × torch | ok |" in harness.table([row])
    row.ratio = 2e9
    assert row.verdict == "**over**"
    assert harness.measure([case], harness.Options(True, 1, "other*", None)) == []
    assert harness.table([]) == "nothing was measured\n"


def test_operators_counts_what_two_files_of_pytorch_declare(load):
    functions = """\
- func: gelu(Tensor self) -> Tensor
  dispatch:
    CPU, CUDA: gelu_fast
    MkldnnCPU: mkldnn_gelu
  tags: pointwise

- func: gelu_(Tensor(a!) self) -> Tensor(a!)

- func: gelu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CompositeExplicitAutograd: gelu_out

- func: gelu_backward(Tensor grad, Tensor self) -> Tensor
"""
    found = load("operators").counted(functions, "- name: gelu(Tensor self) -> Tensor")
    assert found == {
        "operators": 4, "names": 2, "in place": 1, "out=": 1, "backward": 1, "kernels": 3, "gradients": 1,
    }
