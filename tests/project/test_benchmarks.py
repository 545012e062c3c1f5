"""The benchmarks run: each once, in its smallest size, without other libraries. The figures are not checked."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py") if path.stem != "compare")
SAYS = {
    "applications": ["| karate_gcn |", "≥ 94 % right | ok | 0"],
    "browser_kernels": ["## Kernels in a browser"],
    "compiled": ["| softmax, 4 × 16, forward + backward |", "GPT, 1 layers of 8", "| Adam, 100 parameters |",
                 "| GRU 4-5, batch 2, 3 steps |"],
    "composed": ["| cross_entropy |", "| layer_norm, forward + backward |"],
    "dtypes": ["| float64: tanh |", "| int8: x @ y |", "| topk float32 |"],
    "first_calls": ["| first call, clock (processors) | minigrad, nothing cached | minigrad, cached on disk |"],
    "eager": ["| x[1:3] = v, forward + backward |", "| exp(x), 10M floats |"],
    "training": ["MLP 4-6-3, batch 3, SGD", "MLP 8-6-3, batch 4, Adam", "GPT, 1 layers of 8"],
    "growth": ["this machine, in this run:", "| elements: softmax of 1e2 |", "| chain with reductions |", "Fitted:",
               "| peak memory, forward + backward |"],
    "distributed": ["## All-reduce on 2 ranks", "## Data-parallel steps: the model beside real ranks"],
    "data_parallel": ["## Data-parallel steps"],
    "deep": ["| backward of 100 operations", "peak memory of 200 operations on 1M floats and back, minigrad:"],
    "mechanisms": ["| channels last |", "| stacks in eager mode |", "of which 0 in no row"],
    "optimizers": ["| SGD with momentum |", "| Muon |"],
    "seeing": ["| tangle |", "| stepper |", "lick to picture"],
    "inference": ["| MLP 8-6-5-3, batch 2 |", "CNN, 2 and 3 channels", "GPT, 1 layers of 8", "program in a file"],
    "loading": ["| load and call, processor seconds | this checkout, nothing cached |", "| resnet, batch 8 |"],
    "numerics": ["| reductions | minigrad |", "| var of columns of 1M, mean 10000 |", "| tanh |"],
    "operators": ["primitives, ", " composites"],
    "programs": ["## PyTorch programs", "73 repositories are expected"],
    "positions": ["| gather, 20 of 9 × 4 |", "| messages along 20 edges, gradient |", "| 10 × solve 3 × 3 |"],
    "reads": ["| read after a layer of 4 × 4 |", "≤ 3 × eager"],
    "browser": ["### JupyterLite", "Not measured: a smoke run makes no folder and starts no browser."],
    "views": ["| graph: three lines |", "The goals: 2 s, 500 kB, 50 ms a click."],
    "records": ["| program | clock, jitted | record |", "| three lines |"],
    "startup": ["| import |", "≤ 2 × numpy, minima"],
}


@pytest.fixture
def load(monkeypatch):
    """Import a benchmark as `python benchmarks/NAME.py` does, and forget it afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if name in NAMES or name in ("_harness", "_contender", "_jax_models"):
            del sys.modules[name]


def test_benchmarks_are_all_listed():
    assert set(NAMES) == set(SAYS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs(name, load, capsys):
    text = load(name).main(["--smoke", "--without", "torch", "jax"])
    for part in [*SAYS[name], "smoke run: the figures mean nothing"]:
        assert part in text
    assert "torch" not in text.replace("× torch", "") and "jax" not in text
    assert "differs from" not in text and "failed" not in text
    assert text.splitlines()[0] in capsys.readouterr().out


def test_compare_lists_the_lines_above_their_goals(load, monkeypatch, capsys):
    compare = load("compare")
    assert set(compare.SCRIPTS) <= set(NAMES)
    reports = {
        "deep": "| slow | 2 µs | 1 µs | 2.00 | 1.90 | ≤ 1 × torch | **over** |\n| fast | 1 µs | 1 | 1 | | ok |\n",
        "startup": "The goal is 60 ms: 90 ms, **over**.\n",
    }
    monkeypatch.setattr(compare, "SCRIPTS", list(reports))
    for name, text in reports.items():
        monkeypatch.setattr(load(name), "main", lambda arguments, text=text: text)
    text = compare.main(["--smoke"])
    assert text.startswith("## Above their goals: 2 lines\n") and text in capsys.readouterr().out
    assert "- deep: slow: 2.00, of minima 1.90, goal ≤ 1 × torch\n- startup: The goal is 60 ms" in text


def test_other_libraries_take_the_same_steps(load):
    for library in ("torch", "jax"):
        pytest.importorskip(library)
    text = load("training").main(["--smoke", "--only", "*Adam"])
    assert "| torch | jax.jit |" in text and "differs from" not in text and "failed" not in text


def three_cases(opts):
    """Contenders that agree, that differ and that fail."""
    from _harness import Case

    results = {"minigrad": [1.0, 2.0], "numpy": [1.0, 2.5], "eager": [1.0, 2.0]}

    def build(contender, wrong=False):
        if wrong and contender == "numpy":
            raise ValueError("no such work")
        return lambda: results[contender]

    return [
        Case("agrees", ("minigrad", "eager"), build, 1e9, "eager"),
        Case("differs", ("minigrad", "numpy"), build, 1e9, "numpy"),
        Case("fails", ("minigrad", "numpy"), lambda contender: build(contender, wrong=True), 1e9, "numpy"),
    ]


@pytest.mark.slow
def test_contenders_are_compared_before_they_are_timed(load):
    harness = load("_harness")
    rows = harness.measure(three_cases, harness.Options(smoke=True))
    assert [row.contenders for row in rows] == [["minigrad", "eager"], ["minigrad"], ["minigrad"]]
    assert rows[0].verdict == "ok" and "| ≤ 1e+09 × eager | ok |" in harness.table(rows)
    assert rows[1].notes == ["differs: numpy differs from minigrad: call 1: off by 0.5, [2.5] instead of [2.]"]
    assert rows[2].notes == ["fails: numpy failed: ValueError: no such work"]
    assert harness.measure(three_cases, harness.Options(True, only="other*")) == []
    assert harness.table([]) == "nothing was measured\n"


@pytest.mark.slow
def test_an_error_in_our_own_work_is_raised(load):
    harness, contender = load("_harness"), load("_contender")
    with contender.Contender("eager", three_cases, harness.Options(smoke=True)) as process:
        process("build", "agrees")
        assert process("time", 2) > 0
        with pytest.raises(contender.Failed, match="KeyError: 'none such'"):
            process("build", "none such")


def test_tables_show_medians_minima_and_the_verdict(load):
    harness = load("_harness")
    times = [{"minigrad": 4.0, "torch": 1.0}, {"minigrad": 1.0, "torch": 2.0}, {"minigrad": 6.0, "torch": 3.0}]
    row = harness.Row(harness.Case("work", (), None, goal=1.5), times)
    assert (row.ratio, row.ratio_of_minima, row.verdict) == (2.0, 1.0, "**over**")
    row.case.minima = True
    assert row.verdict == "ok"
    line = "| work | 4 s (1 s) | 2 s (1 s) | 2.00 | 1.00 | ≤ 1.5 × torch, minima | ok |"
    assert line in harness.table([row])


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
