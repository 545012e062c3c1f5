"""The operators that minigrad and PyTorch declare, their kernels and their gradients, counted.

    python3 course bench operators

PyTorch declares its operators in two text files, which its package contains: `native_functions.yaml` has an entry for
each operator, with a kernel for each kind of device, and `derivatives.yaml` has the gradients.  Unit 09 of the course
has what this script printed, with the version (`notebooks/minigrad_course/units/u09_eager_costs/demo.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from _harness import options

from minigrad.core.primitive import P
from minigrad.devices import as_device
from minigrad.ops.composite import COMPOSED


def counted(functions: str, derivatives: str) -> dict[str, int]:
    """Count what the two files declare.

    >>> functions = '''
    ... - func: gelu(Tensor self) -> Tensor
    ...   dispatch:
    ...     CPU, CUDA: gelu_fast
    ...     MkldnnCPU: mkldnn_gelu
    ... - func: gelu_(Tensor(a!) self) -> Tensor(a!)
    ... - func: gelu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
    ... '''
    >>> counted(functions, "- name: gelu(Tensor self) -> Tensor")
    {'operators': 3, 'names': 1, 'in place': 1, 'out=': 1, 'backward': 0, 'kernels': 3, 'gradients': 1}
    """
    declared = re.findall(r"^- func: (\w+)(?:\.(\w+))?\(", functions, re.MULTILINE)
    in_place = [name for name, _ in declared if name.endswith("_") and not name.endswith("__")]
    return {
        "operators": len(declared),
        "names": len({name.removesuffix("_") if name in in_place else name for name, _ in declared}),
        "in place": len(in_place),
        "out=": sum(overload.endswith("out") for _, overload in declared),
        "backward": sum("backward" in name for name, _ in declared),
        "kernels": sum(kernels_of(functions).values()),
        "gradients": len(re.findall(r"^- name: ", derivatives, re.MULTILINE)),
    }


def kernels_of(functions: str) -> Counter[str]:
    """How many operators have a kernel of their own for each kind of device."""
    found: Counter[str] = Counter()
    for block in re.findall(r"^  dispatch:\n((?: {4,}.*\n)+)", functions, re.MULTILINE):
        for keys in re.findall(r"^ {4}([\w, ]+): \w", block, re.MULTILINE):
            found.update(key.strip() for key in keys.split(","))
    return Counter({key: count for key, count in found.items() if not key.startswith("Composite")})


def of_torch() -> str:
    """The line on the installed PyTorch."""
    spec = find_spec("torchgen")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent / "packaged"
    files = [folder / name for name in ("ATen/native/native_functions.yaml", "autograd/derivatives.yaml")]
    found = counted(*[file.read_text(encoding="utf-8") for file in files])
    return f"PyTorch {version('torch').partition('+')[0]}: {found}"


def of_minigrad() -> str:
    """The line on minigrad."""
    rules, kernels = sum(bool(op.rules) for op in P), len(as_device("cpu").kernels)
    primitives = f"{len(P)} primitives, {rules} with gradients, {kernels} kernels on cpu"
    return f"minigrad: {primitives}; {len(COMPOSED)} composites"


def main(arguments: list[str] | None = None) -> str:
    """Count, and print a line for each library."""
    opts = options(__doc__ or "", arguments)
    lines = [of_minigrad()] + ([of_torch()] if opts.has("torch") else [])
    lines += ["smoke run: the figures mean nothing"] * opts.smoke
    print(text := "\n".join(lines))
    return text


if __name__ == "__main__":
    main()
