"""The rows of `torch.txt`: PyTorch's signatures and values."""

import inspect
import json
import math
import re

import pytest

from minigrad.compat import torch
from minigrad.compat.torch_rows import function_of
from minigrad.support.synonyms import rows
from tests.compat import oracle

VALUES = json.loads((oracle.HERE / "values.json").read_text("utf-8"))
EXAMPLES = oracle.examples()


def same(expected, found):
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(same, expected, found))
    if isinstance(expected, float) or isinstance(found, float):
        near = math.isclose(expected, found, rel_tol=2e-5, abs_tol=2e-5)
        return near or expected == found or (math.isnan(expected) and math.isnan(found))
    return expected == found


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("start", range(0, len(EXAMPLES), 25))
def test_expressions_have_the_values_of_pytorch(start):
    for text in EXAMPLES[start:start + 25]:
        assert text in VALUES, "run `python -m tests.compat.oracle` where PyTorch is installed"
        found = oracle.plain(eval(text, oracle.names(torch)), torch)
        assert same(VALUES[text], found), (text, VALUES[text], found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_stored_values_are_those_of_pytorch():
    real = pytest.importorskip("torch")
    assert list(VALUES) == EXAMPLES
    wrong = [text for text in EXAMPLES if not same(VALUES[text], oracle.plain(eval(text, oracle.names(real)), real))]
    assert wrong == []


# What the examples do not say: random numbers, files, and parts of programs in `programs`.
ELSEWHERE = {
    "bernoulli", "multinomial", "manual_seed", "normal_", "uniform_", "random_", "bernoulli_", "exponential_",
    "gumbel_softmax", "dropout2d", "save", "load", "share_memory_", "share_memory", "autocast", "get_device_name",
    "is_bf16_supported", "__version__", "get_rank", "get_world_size",
    "ReduceOp", "script", "inference_mode", "detect_anomaly",
}


def test_every_row_is_in_an_example_or_in_a_program():
    text = "\n".join(EXAMPLES) + "".join(
        path.read_text("utf-8") for path in [*oracle.HERE.glob("test_*.py"), *(oracle.HERE / "programs").glob("*.py")])
    words = set(re.findall(r"\w+", text)) | ELSEWHERE
    public = [row for row in rows() if row.expression and not {"with", "aliases", "einops"} & {*row.rooms}]
    unused = [row.names for row in public if not words & {name.split(".")[0] for name in row.names}]
    assert unused == []


def place(room, library):
    """The object that has the names of a room."""
    path = {"torch": "", "x": "Tensor", "F": "nn.functional", "model": "nn.Module", "init": "nn.init",
            "rnn": "nn.utils.rnn", "lr_scheduler": "optim.lr_scheduler", "mps": "backends.mps"}.get(room, room)
    found = library
    for part in filter(None, path.split(".")):
        found = getattr(found, part)
    return found


def parameters(function):
    known = inspect.signature(function).parameters.values()
    return [p for p in known if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


# Old names of PyTorch that its newest version has no longer, or spells differently.
OTHER_NAMES = {
    "device_type", "from_", "verbose", "sizes_", "axis", "keepdims",
    "split_size_or_sections", "ndarray", "data", "recompute_scale_factor", "antialias", "equation",
}


@pytest.mark.filterwarnings("ignore")
def test_the_parameters_are_those_of_pytorch():
    """Where PyTorch says them: functions written in C++ have none."""
    real = pytest.importorskip("torch")
    wrong, checked = [], 0
    for row in rows():
        for name in row.names if row.signature is not None and row.expression and row.kind != "@" else ():
            for room in {*row.rooms} - {"with", "aliases", "einops"}:
                theirs = place(room, real)
                for part in name.split("."):
                    theirs = getattr(theirs, part)
                try:
                    known = parameters(theirs)
                except (TypeError, ValueError):
                    continue
                mine = parameters(function_of(row._replace(expression=row.expression or "()"), name))
                stars = {*re.findall(r"\*(\w+)", row.signature)}
                extra = {p.name for p in mine} - {p.name for p in known} - OTHER_NAMES - {"self", "input"} - stars
                checked += 1
                if extra and known and "**" not in str(inspect.signature(theirs)):
                    wrong.append((room, name, extra))
    assert wrong == [] and checked > 200


def test_every_name_of_a_room_comes_from_this_package():
    """A file that imports one of them speaks PyTorch: `from torch.utils.data import Dataset` too."""
    import sys
    from types import FunctionType, ModuleType

    for name, room in list(sys.modules.items()):
        if f"{name}.".startswith("minigrad.compat.torch."):
            for each in vars(room).values():
                if isinstance(each, (type, FunctionType)) and not isinstance(each, ModuleType):
                    home = str(each.__module__)
                    assert home.startswith("minigrad.compat") or home.partition(".")[0] != "minigrad", (name, each)
