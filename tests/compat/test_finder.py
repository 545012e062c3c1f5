"""`import torch` itself: a program on the command line, its helper files, a notebook, and the end of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import minigrad as mg
from minigrad import compat
from minigrad.compat import finder

ROOT = Path(__file__).resolve().parents[2]
HELPER = "def flat(x):\n    return x.view(x.size(0), -1)\n"
TRAIN = """
import sys
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader
import helper
model = nn.Linear(6, 2)
x = torch.ones(4, 2, 3)
loss = F.cross_entropy(model(helper.flat(x)), torch.zeros(4, dtype=torch.long))
loss.backward()
print(__name__, sys.argv[1:], helper.flat(x).size(), model.weight.grad.shape, nn.__name__)
"""


def run(folder, *arguments):
    command = [sys.executable, "-m", "minigrad.compat", *arguments]
    path = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=path)


def test_a_program_runs_from_the_command_line_with_its_helper_file(tmp_path):
    (tmp_path / "helper.py").write_text(HELPER, "utf-8")
    (tmp_path / "train.py").write_text(TRAIN, "utf-8")
    done = run(tmp_path, "train.py", "--lr", "3")
    assert done.stdout == ("__main__ ['--lr', '3'] torch.Size([4, 6]) (2, 6) minigrad.compat.torch.nn\n"), done.stderr
    assert run(tmp_path).stderr == "python -m minigrad.compat program.py [arguments]\n"


def test_an_error_shows_the_line_and_the_word_of_the_program(tmp_path):
    (tmp_path / "wrong.py").write_text("import torch\nx = torch.ones(2, 3)\nx.view(4, -1)\n", "utf-8")
    done = run(tmp_path, "wrong.py")
    assert done.returncode == 1 and "ShapeError: view: 6 elements of shape (2, 3)" in done.stderr
    assert "Line: wrong.py:3  x.view(4, -1)" in done.stderr


def test_a_notebook_loads_and_unloads_the_extension(monkeypatch):
    real = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "torch"}
    compat.load_ipython_extension(None)
    compat.load_ipython_extension(None)  # twice is as once
    space = {}
    exec("import torch, torch.nn.functional as F\nfrom torch.optim import lr_scheduler", space)
    exec("x = torch.ones(2).view(2, 1)", space)
    assert space["torch"] is compat.torch and space["x"].shape == (2, 1) and sys.meta_path.count(finder.FINDER) == 1
    compat.unload_ipython_extension(None)
    compat.unload_ipython_extension(None)
    assert "torch" not in sys.modules and finder.FINDER not in sys.meta_path
    with pytest.raises(AttributeError):
        eval("x.view(2)", space)
    sys.modules.update(real)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("import torch.nnn", "minigrad.compat has no 'torch.nnn'\n  Hint: did you mean torch.nn?"),
        ("import torch.onnx.utils", "minigrad.compat has no 'torch.onnx'"),
        ("from torch.util import data", "did you mean torch.utils?"),
    ],
)
def test_a_missing_room_says_what_is_near(line, message, import_torch):
    with pytest.raises(ImportError) as error:
        exec(compile(line, "train.py", "exec"), {})
    assert message in str(error.value) and "Line: train.py:1" in str(error.value)


@pytest.mark.parametrize(
    "line",
    [
        "from torch.nn.modules.batchnorm import _BatchNorm", "from torch.nn.parallel import DataParallel",
        "from torch.optim.optimizer import Optimizer", "from torch.nn import Conv3d",
        "import torch.distributed as dist",
        "from torch.utils.checkpoint import checkpoint", "from torch.cuda.amp import autocast, GradScaler",
        "from torch.distributions import Gamma, kl_divergence", "from torch.autograd.function import Function",
    ],
)
def test_rooms_that_programs_only_import(line, import_torch):
    exec(line, {})


def test_a_class_that_is_missing_can_be_named_and_not_made(import_torch):
    space = {}
    exec("from torch import nn\nfound = [isinstance(m, nn.Conv3d) for m in nn.ReLU().modules()]", space)
    assert space["found"] == [False]
    with pytest.raises(mg.ConversionError, match=r"torch.nn.Conv3d is not supported\n  Hint: mg.nn.Conv2d"):
        exec("nn.Conv3d(1, 2, 3)", space)


def test_pytorch_itself_is_left_alone(monkeypatch):
    real = type(sys)("torch")
    monkeypatch.setitem(sys.modules, "torch", real)
    with pytest.raises(mg.ConversionError, match="this process has imported PyTorch already"):
        finder.install()
    assert finder.FINDER not in sys.meta_path and sys.modules["torch"] is real
