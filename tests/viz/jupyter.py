"""A Jupyter server on loopback with JupyterLab and Notebook 7, without the user's settings."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MISSING = [name for name in ("jupyterlab", "notebook", "ipykernel") if find_spec(name) is None]
needs_jupyter = pytest.mark.skipif(bool(MISSING), reason=f"there is no {', '.join(MISSING)} in this environment")
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
OPTIONS = [
    "--no-browser", "--ip=127.0.0.1", "--allow-root", "--ServerApp.token=", "--ServerApp.password=",
    "--ServerApp.disable_check_xsrf=True",
]
SETTINGS = {"@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False}}


def notebook(*cells, **metadata):
    """A notebook with these cells of code."""
    made = [
        {"cell_type": "code", "id": f"cell-{i}", "metadata": {}, "execution_count": None, "source": cell, "outputs": []}
        for i, cell in enumerate(cells)
    ]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {**KERNEL, **metadata}, "cells": made}


def surroundings(folder):
    """Environment variables: they keep Jupyter's files in a folder and make kernels import this minigrad."""
    private = {
        name: str(folder / name.lower())
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR",
                     "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR")
    }
    return {**os.environ, **private, "PYTHONPATH": str(ROOT), "JUPYTER_PLATFORM_DIRS": "1"}


@contextmanager
def server(folder, work):
    """The address of a server for the files in `work`."""
    for name, settings in SETTINGS.items():
        path = folder / "jupyterlab_settings_dir" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(settings))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", f"--port={port}", f"--ServerApp.root_dir={work}", *OPTIONS]
    with open(folder / "server.log", "w") as log:
        process = subprocess.Popen(command, env=surroundings(folder), stdout=log, stderr=log, cwd=work)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1800):
            try:
                urllib.request.urlopen(f"{address}/api/status").close()
                break
            except OSError:
                assert process.poll() is None, (folder / "server.log").read_text()
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait()


def stop_kernels(address):
    """Shut down all kernels, as Jupyter does when it closes."""
    with urllib.request.urlopen(f"{address}/api/sessions") as answer:
        sessions = json.load(answer)
    for session in sessions:
        stop = urllib.request.Request(f"{address}/api/sessions/{session['id']}", method="DELETE")
        urllib.request.urlopen(stop).close()
