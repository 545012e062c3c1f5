"""Values of PyTorch for the tests: `python -m tests.compat.oracle`, where torch is installed, writes them anew."""

import ast
import importlib
import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
PROGRAMS = sorted(path.stem for path in (HERE / "programs").glob("[a-z]*.py"))


def examples():
    """The expressions of `examples.txt`."""
    lines = [line for line in (HERE / "examples.txt").read_text("utf-8").splitlines() if line[0] != "#"]
    return [ast.unparse(each) for line in lines for each in ast.parse(line, mode="eval").body.elts]


def names(torch):
    """What the expressions are about, in a library."""
    rng = np.random.RandomState(0)

    def floats(*shape):
        return torch.tensor(rng.randn(*shape).astype("float32").tolist())

    found = {"torch": torch, "k": torch, "nn": torch.nn, "F": torch.nn.functional}
    found |= {name: floats(*shape) for name, shape in (("x", (3, 4)), ("y", (3, 4)), ("s", (3, 3)), ("w", (4, 3)))}
    found["p"], found["v"] = torch.tensor(rng.uniform(0.05, 0.95, (3, 4)).tolist()), floats(4)
    found["n"] = torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])
    found["i"], found["b"] = torch.tensor([2, 0, 1]), torch.tensor((rng.randn(3, 4) > 0).tolist())

    def slope(function):
        """The gradient at points where functions have kinks."""
        t = torch.tensor([-3.0, -1.0, 0.0, 0.5, 1.0, 3.0, 6.0], requires_grad=True)
        return torch.autograd.grad(function(t).sum(), t)[0]

    found["slope"] = slope
    return found | {"img": floats(2, 4, 6, 6), "seq": floats(2, 4, 5)}


def plain(value, torch):
    """A value as lists, numbers and text."""
    if isinstance(value, torch.Tensor):
        numbers = [float(each) for each in value.detach().reshape(-1).tolist()]
        if len(numbers) > 12:  # the beginning, and a sum in which each element counts differently
            numbers = [*numbers[:6], sum(n * (1 + i % 7) for i, n in enumerate(numbers))]
        return [str(value.dtype).replace("torch.", ""), list(value.shape), [float(f"{n:.6g}") for n in numbers]]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), value.astype(float).ravel().tolist()]
    if isinstance(value, (tuple, list)):
        return [plain(each, torch) for each in value]
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    return str(value).replace("torch.", "")


DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64")
TENSORS = [f"torch.ones({shape}, dtype=torch.{dtype})" for shape in ("2", "()") for dtype in DTYPES]
NUMBERS = ["True", "2", "0.5", "np.float32(0.5)", "np.float64(0.5)", "np.int64(2)"]


def pairs():
    """Sums of tensors and numbers of all types."""
    both = [(a, b) for a in TENSORS for b in TENSORS + NUMBERS] + [(a, b) for a in NUMBERS for b in TENSORS]
    return [f"{a} + {b}" for a, b in both]


def losses(program):
    """What a program of the folder returns, as numbers."""
    return [float(each) for each in importlib.import_module(program).losses()]


def main():
    import torch

    torch.set_num_threads(1)
    sys.path.insert(0, str(HERE / "programs"))
    known = names(torch)
    values = {text: plain(eval(text, dict(known)), torch) for text in examples()}
    types = {text: str(eval(text, {"torch": torch, "np": np}).dtype).removeprefix("torch.") for text in pairs()}
    curves = {each: losses(each) for each in PROGRAMS}
    for name, content in (("values", values), ("promotion", types), ("losses", curves)):
        text = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items())
        (HERE / f"{name}.json").write_text("{\n" + text + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
