"""`python -m minigrad.examples NAME [--jit] [--device cuda]`: run an example; without a name, list them."""

from __future__ import annotations

import argparse
import sys
import time

from ..support.errors import MinigradError
from . import EXAMPLES, run


def listing() -> str:
    """All examples, with their scores."""
    lines = [
        f"  {name:11} {example.about}: {'≤' if example.less_is_better else '≥'} {example.goal:g} {example.unit}"
        for name, example in EXAMPLES.items()
    ]
    return "\n".join(["python -m minigrad.examples NAME [--jit] [--device cuda], where NAME is one of", "", *lines])


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser("python -m minigrad.examples", description="Run an example.")
    parser.add_argument("name", nargs="?", help=", ".join(EXAMPLES))
    parser.add_argument("--jit", action="store_true", help="compile the training step")
    parser.add_argument("--device", help="where to compute: cpu, cuda")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the random numbers")
    parser.add_argument("--quick", action="store_true", help="a smaller version with a lower score")
    given = parser.parse_args(arguments)
    if given.name is None:
        print(listing())
        return 0
    if given.name not in EXAMPLES:
        print(f"There is no example {given.name!r}.\n\n{listing()}", file=sys.stderr)
        return 2
    begun = time.perf_counter()
    try:
        score = run(given.name, given.jit, given.device, given.quick, given.seed)
    except MinigradError as error:
        print(error, file=sys.stderr)
        return 1
    example = EXAMPLES[given.name]
    print(f"{time.perf_counter() - begun:.1f} s")
    print(f"score: {score:.4f} {example.unit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
