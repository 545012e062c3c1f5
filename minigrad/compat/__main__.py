"""`python -m minigrad.compat train.py arguments` runs a PyTorch program as it is."""

from __future__ import annotations

import os
import runpy
import sys

from .finder import install


def main() -> None:
    """Run the program that the command line names, with `import torch` answered by minigrad."""
    if len(sys.argv) < 2:
        sys.exit("python -m minigrad.compat program.py [arguments]")
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    install()
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
