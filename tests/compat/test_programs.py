"""Programs in the style of public repositories: the losses of PyTorch, compiled steps, and pictures."""

import importlib
import json

import pytest

import minigrad as mg
from tests.compat import oracle

LOSSES = json.loads((oracle.HERE / "losses.json").read_text("utf-8"))


def test_every_program_has_stored_losses():
    assert list(LOSSES) == oracle.PROGRAMS and len(LOSSES) >= 20


@pytest.mark.parametrize("program", oracle.PROGRAMS)
def test_a_program_runs_as_it_is_and_has_the_losses_of_pytorch(program, import_torch):
    assert oracle.losses(program) == pytest.approx(LOSSES[program], rel=1e-5, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("program", oracle.PROGRAMS)
def test_the_stored_losses_are_those_of_pytorch(program, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(oracle.HERE / "programs")
    assert oracle.losses(program) == pytest.approx(LOSSES[program], rel=1e-5, abs=1e-6)


def training(name):
    """A step of a program's model, and its loss alone."""
    return importlib.import_module("_training").training(name)


@pytest.mark.parametrize("program", ["gpt", "cnn", "vit", "transformer", "lora"])
def test_a_whole_step_compiles_in_one_trace(program, import_torch):
    eager, _ = training(program)
    step, _ = training(program)
    compiled = mg.jit(step)
    assert [compiled().item() for _ in range(3)] == pytest.approx([eager().item() for _ in range(3)], rel=1e-5)
    assert str(compiled.traces).count("trace ") == 1


@pytest.mark.parametrize("program", ["gpt", "cnn"])
def test_views_show_the_lines_of_the_program(program, import_torch, tmp_path):
    _, loss_of = training(program)
    compiled = mg.jit(loss_of)
    compiled()
    for view in (mg.viz.step(loss_of()), mg.viz.fusion(compiled)):
        view.save(tmp_path / "view.html")
        text = (tmp_path / "view.html").read_text("utf-8")
        assert f"{program}.py" in text and "minigrad/compat" not in text and "torch.txt" not in text
