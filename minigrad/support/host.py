"""Where this Python runs, as far as the library differs: in a browser, in a notebook, or elsewhere."""

from __future__ import annotations

import sys

from .source import notebook_shell

IN_BROWSER = sys.platform == "emscripten"  # Pyodide: no threads, no processes, no sockets


def how_to_stop() -> str:
    """How a reader stops code that runs too long, as a sentence for hints."""
    if "pyodide_kernel" in sys.modules:  # JupyterLite, where the button ■ has no effect
        return "Kernel > Restart Kernel stops a cell; then run the cells above it again"
    if IN_BROWSER:
        return "The button “Stop” stops a cell"
    return "The button ■ above stops a cell" if hasattr(notebook_shell(), "kernel") else "Ctrl-C stops a program"
