"""Runs a part of a test in a process of its own, which has few modules, as a user's.

Code that computes names can read any module, so the walk follows all of them.  In a process of tests, these are those
of all tests.
"""

import os
import subprocess
import sys


def run_alone(module, call):
    """Run a call of what a module of tests defines; it fails where the call raises."""
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", f"from {module} import *\n{call}"], check=True, env=os.environ | path)
