"""`differences.txt`: what has another meaning in PyTorch, what is refused, and what is left as it is."""

import ast
import math
import re
import warnings

import numpy as np
import pytest

import minigrad as mg
from lectures.site.differences import sections
from minigrad.compat import torch as speaking_torch

SECTIONS = sections()


def frozen(module):
    for p in module.parameters():
        p.requires_grad = False
    return module


def modules(nn, tensor):
    class Lists(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(1, 1)]

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = tensor([1.0])

    return Lists, Plain


def names(torch):
    """What the expressions are about, in a file that speaks PyTorch."""
    lists, plain = modules(torch.nn, torch.tensor)
    return {
        "torch": torch, "F": torch.nn.functional, "nn": torch.nn, "np": np, "math": math,
        "frozen": frozen, "Lists": lists, "Plain": plain,
        "x": torch.tensor([[1.0, 2.0], [3.0, 6.0]]), "v": torch.tensor([3.0, 1.0, 2.0]), "i": torch.tensor([1, 0]),
        "m": torch.tensor([[True, False], [False, True]]),
    }


def names_here():
    """The same in a file of minigrad."""
    lists, plain = modules(mg.nn, mg.asarray)
    return {
        "mg": mg, "np": np, "frozen": frozen, "MgLists": lists, "MgPlain": plain, "Library": mg.nn.Linear,
        "x": mg.asarray([[1.0, 2.0], [3.0, 6.0]]), "v": mg.asarray([3.0, 1.0, 2.0]), "i": mg.asarray([1, 0]),
        "m": mg.asarray([[True, False], [False, True]]),
    }


def close(found, expected):
    found = found.tolist() if hasattr(found, "tolist") else found
    if isinstance(found, (list, tuple)) and found and isinstance(found[0], (list, float)):
        return np.allclose(np.asarray(found, float), np.asarray(expected, float), rtol=1e-5, atol=1e-6)
    if isinstance(found, float):
        return found == pytest.approx(expected, rel=1e-5)
    return (tuple(found) if isinstance(found, tuple) else found) == expected


def value(text, space):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, space)


@pytest.mark.parametrize(("theirs", "expected", "here", "expected_here"), SECTIONS["Another meaning, mapped"])
def test_each_meaning(theirs, expected, here, expected_here):
    assert close(value(theirs, names(speaking_torch)), ast.literal_eval(expected))
    assert close(value(here, names_here()), ast.literal_eval(expected_here))


@pytest.mark.parametrize(("theirs", "words", "hint"), SECTIONS["Refused in words"])
def test_each_refusal(theirs, words, hint):
    with pytest.raises(mg.MinigradError, match=re.escape(words)) as error:
        value(theirs, names(speaking_torch))
    assert hint in str(error.value)


@pytest.mark.parametrize(("theirs", "expected", "here", "why"), SECTIONS["Left as it is"])
def test_what_is_left(theirs, expected, here, why):
    assert close(value(theirs, names(speaking_torch)), ast.literal_eval(here)) and why and expected != here


@pytest.mark.slow
def test_the_meanings_are_those_of_pytorch():
    real = pytest.importorskip("torch")
    for theirs, expected, *_ in SECTIONS["Another meaning, mapped"] + SECTIONS["Left as it is"]:
        if "torch.compile" not in theirs:  # compiling takes seconds
            assert close(value(theirs, names(real)), ast.literal_eval(expected)), theirs
