"""The seven applications, in the size for tests.  A wrong gradient does not reach their scores."""

import subprocess
import sys
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.devices import registry
from minigrad.examples import EXAMPLES, run
from minigrad.examples.__main__ import main
from minigrad.examples.cartpole import CartPole
from tests.devices import standin

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {"digits_mlp": 1, "digits_cnn": 1, "names_gpt": 2, "karate_gcn": 1, "cartpole": 3, "vae": 1, "regression": 1}


@cache
def ran(name, jit):
    """The score, and how many times each jitted function was traced."""
    made, real = [], mg.jit

    def noting(*args, **kwargs):
        decorate = real(*args, **kwargs)
        return lambda function: made.append(decorate(function)) or made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(vars(mg), "jit", noting)
        score = run(name, jit=jit, quick=True)
    return score, [len(function.traces) for function in made]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_reaches_its_score(name):
    score, _ = ran(name, jit=False)
    assert EXAMPLES[name].reached(score, quick=True), score


@pytest.mark.parametrize("name", EXAMPLES)
def test_compiled_examples_reach_the_same_scores_with_few_programs(name):
    (eager, _), (compiled, traces) = ran(name, jit=False), ran(name, jit=True)
    assert sum(traces) == PROGRAMS[name], traces
    if name == "cartpole":  # the last digit may decide an action and so everything after it
        assert EXAMPLES[name].reached(compiled, quick=True)
    else:
        assert compiled == pytest.approx(eager, rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run_on_cuda(name, monkeypatch):
    """A few steps on the stand-in for CuPy, which checks devices more strictly than CuPy itself."""
    real = mg.train.progress
    monkeypatch.setattr(mg.train, "progress", lambda batches, label: Short(real(range(2), label, quiet=True), batches))
    on_cpu = run(name, quick=True)
    for module_name, module in standin.modules(count=1).items():
        monkeypatch.setitem(sys.modules, module_name, module)
    monkeypatch.delitem(registry.DEVICES, "cuda", raising=False)
    try:
        assert run(name, quick=True, device="cuda") == pytest.approx(on_cpu, rel=1e-2)
    finally:
        registry.DEVICES.pop("cuda", None)


class Short:
    """A progress bar over the first two batches."""

    def __init__(self, bar, batches):
        self.bar, self.batches = bar, batches

    def __iter__(self):
        return iter(list(islice(self.batches, 2)))

    def show(self, **numbers):
        self.bar.numbers.update(numbers)


@pytest.mark.gpu
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run_on_a_gpu(name, jit):
    score = run(name, jit=jit, quick=True, device="cuda")
    assert EXAMPLES[name].reached(score, quick=True), score


# the command --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_score_is_printed_last():
    command = [sys.executable, "-m", "minigrad.examples", "karate_gcn", "--quick", "--jit", "--device", "cpu:1"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    last = result.stdout.splitlines()[-1]
    assert last.startswith("score: 9") and last.endswith(" % right")


def test_command_without_a_name_lists_the_examples(capsys):
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in EXAMPLES) and "≤ 2.08 nats a letter" in listed


def test_command_with_a_wrong_name_lists_the_examples(capsys):
    assert main(["digit_mlp"]) == 2
    assert "There is no example 'digit_mlp'" in (said := capsys.readouterr().err) and "digits_mlp" in said
    with pytest.raises(mg.ConversionError, match="there is no example 'digit_mlp'"):
        run("digit_mlp")


def test_a_device_that_is_not_there_is_an_error_in_words(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(registry.DEVICES, "cuda", raising=False)
    assert main(["karate_gcn", "--device", "cuda"]) == 1
    assert "cuda" in capsys.readouterr().err


def test_scripts_are_short():
    for name in EXAMPLES:
        lines = (ROOT / "minigrad" / "examples" / f"{name}.py").read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 120, name


# cartpole's world ---------------------------------------------------------------------------------------------------

# From gymnasium 1.4's CartPole-v1: from these states, pushed to the right (1) or the left (0).
BEFORE = [[0.01, -0.02, 0.03, 0.04], [1.2, 2.0, -0.15, -1.5], [-2.39, -1.0, 0.2, 2.0]]
PUSHED = [1, 0, 0]
AFTER = [
    [0.009600000000000001, 0.17467919574755525, 0.030799999999999998, -0.2430687179600081],
    [1.24, 1.8069845032546958, -0.18, -1.2576625997844155],
    [-2.41, -1.1965713701672875, 0.24000000000000002, 2.347388328345874],
]


def test_the_world_is_gymnasiums_as_it_was_stored():
    world = CartPole(3, np.random.default_rng(0))
    world.states = np.array(BEFORE)
    stands = world.step(np.array(PUSHED))
    np.testing.assert_allclose(world.states, AFTER, rtol=1e-12)
    assert stands.tolist() == [True, True, False]


def test_the_world_is_gymnasiums():
    gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
    theirs = gymnasium.make("CartPole-v1").unwrapped
    rng = np.random.default_rng(1)
    for seed in range(20):
        theirs.reset(seed=seed)
        ours = CartPole(1, rng)
        ours.states = np.array([theirs.state])
        for _ in range(500):
            action = rng.integers(2)
            _, _, fallen, _, _ = theirs.step(action)
            stands = ours.step(np.array([action]))
            np.testing.assert_allclose(ours.states[0], theirs.state, rtol=1e-9)
            assert bool(stands[0]) == (not fallen)
            if fallen:
                break
        assert fallen
