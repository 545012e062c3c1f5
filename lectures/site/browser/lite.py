"""JupyterLite with all notebooks of the course, as a folder for any web server: `python3 course browser`.

`python -m lectures.site.browser.lite [--pyodide FOLDER] [FOLDER]` does the same.  The folder needs no Python on the
server and no other address: Python itself, NumPy, minigrad and the widgets of the views are in it.  A student's work
is kept by the browser; `lectures/site/static/work.js` brings what is new and leaves alone what the student changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import string
import subprocess
import sys
import tempfile
import zipfile
from html import escape
from pathlib import Path
from urllib.parse import quote

import minigrad
from minigrad.support.files import locked
from minigrad_course import workspace
from minigrad_course.results import FILE
from minigrad_course.unit import units

from . import licences, pyodide
from .archives import archive, shipped

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
STATIC = HERE.parent / "static"
FOLDER = ROOT / "build" / "browser"
STORED = ROOT / ".course" / "lite"
WANTED = HERE / "requirements.txt"
TOOLS = ("doit", "jupyterlite_core", "jupyterlite_pyodide_kernel", "pkginfo")
SHOWN = ("jupyterlite_core", "jupyterlite_pyodide_kernel", "jupyterlab_widgets")  # what the pages are made of
EXTENSIONS = ("anywidget", "jupyterlab_widgets", "jupyterlite_pyodide_kernel")

# Packages that the kernel loads: those of Pyodide, and ours with what each needs.  They are all loaded at once, when
# Python starts; one after the other, as JupyterLite would, takes much longer.
OF_PYODIDE = ("micropip", "sqlite3", "jedi", "ipython", "numpy")
OURS = {
    "minigrad": ("numpy", "anywidget"),
    "anywidget": ("ipywidgets", "psygnal", "typing-extensions", "latex2mathml"),
    "ipywidgets": ("comm",),
    "comm": ("traitlets",),
    "psygnal": (),
    "typing-extensions": (),
    "latex2mathml": (),
    "piplite": ("micropip",),
    "ipykernel": (),
    "pyodide-kernel": (),
    "ssl": (),
}
KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel"
SEEN = "course.json"  # what `work.js` reads; it also marks a folder as ours
FILE_MENU = {"id": "jp-mainmenu-file", "items": [{"command": "docmanager:download", "rank": 6}]}  # `notebooks` lacks it
APPS = ("lab", "notebooks", "tree", "edit")


class LiteError(Exception):
    """The folder for browsers could not be made."""


def build(folder: Path = FOLDER, given: str | Path | None = None) -> list[Path]:
    """Write the folder, and return its files."""
    if folder.exists() and any(folder.iterdir()) and not (folder / SEEN).exists():
        raise LiteError(f"{folder} has other files\nHint: name a new folder, or an older one of this command")
    source = pyodide.folder(given, OF_PYODIDE)
    wheels = {path.name.split("-")[0]: path for path in gathered().glob("*.whl")}
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        for name in TOOLS:
            unpack(wheels[name], work / "tools")
        inside = next((work / "tools").rglob("pyodide-kernel-extension")) / "static" / "pypi"
        wheels |= {path.name.split("-")[0]: path for path in inside.glob("*.whl")}
        wheels["minigrad"] = package(work)
        wheels["ssl"] = wheel(work, "ssl", "0", {})  # JupyterLite asks for it; a page opens no sockets
        workspace.update(ROOT / "notebooks", work / "content")
        (work / "content" / FILE).write_text("{}\n", encoding="utf-8")  # JupyterLite cannot read an empty file
        python(source, wheels, work / "static" / "pyodide")
        configure(work, [wheels[name] for name in EXTENSIONS])
        run(work)
        front(work / "made")
        licences.write(work / "made", [wheels[name] for name in SHOWN])
        if folder.exists():
            shutil.rmtree(folder)
        shutil.copytree(work / "made", folder)
    return sorted(path for path in folder.rglob("*") if path.is_file())


def gathered() -> Path:
    """The folder of the wheels in `requirements.txt`, which pip gets and checks by their hashes."""
    text = WANTED.read_bytes()
    place = STORED / hashlib.sha256(text).hexdigest()[:12]
    STORED.mkdir(parents=True, exist_ok=True)
    with locked(STORED / "wheels", seconds=600):
        if place.exists():
            return place
        with tempfile.TemporaryDirectory(dir=STORED) as folder:
            anywhere = ["--platform", "any", "--implementation", "py", "--abi", "none", "--python-version", "3.12"]
            command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
            command += ["--only-binary", ":all:", *anywhere, "--require-hashes", "-r", str(WANTED), "-d", "wheels"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                raise LiteError(
                    f"pip could not get the packages of {WANTED.name}:\n{done.stderr.strip()[-1000:]}\n"
                    "Hint: this step needs the package index, once."
                )
            for old in STORED.glob("*/"):  # of other versions
                if old != Path(folder):
                    shutil.rmtree(old)
            (Path(folder) / "wheels").rename(place)
    return place


def unpack(path: Path, folder: Path) -> None:
    """Unpack a wheel."""
    with zipfile.ZipFile(path) as files:
        files.extractall(folder)


def package(folder: Path) -> Path:
    """Write minigrad's wheel, with the course, from this checkout."""
    return wheel(folder, "minigrad", minigrad.__version__, shipped())


def wheel(folder: Path, name: str, version: str, files: dict[str, bytes]) -> Path:
    """Write a wheel with these files; the same files make the same wheel."""
    info = f"{name}-{version}.dist-info"
    about = {
        f"{info}/METADATA": f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nLicense-Expression: MIT\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    about[f"{info}/RECORD"] = "".join(f"{each},,\n" for each in [*files, *about, f"{info}/RECORD"])
    path = folder / f"{name}-{version}-py3-none-any.whl"
    path.write_bytes(archive((files | about).items()))
    return path


def python(source: Path, wheels: dict[str, Path], folder: Path) -> None:
    """Copy Python for the browser with its packages, and list ours beside those of Pyodide."""
    folder.mkdir(parents=True)
    lock = pyodide.lock()
    used = pyodide.hashes(*OF_PYODIDE)
    for name in used:
        shutil.copyfile(source / name, folder / name)
    packages = {key: each for key, each in lock["packages"].items() if each["file_name"] in used}
    for name, needed in OURS.items():
        path = wheels[name.replace("-", "_")]
        shutil.copyfile(path, folder / path.name)
        packages[name] = {
            "name": name, "version": path.name.split("-")[1], "file_name": path.name, "install_dir": "site",
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "package_type": "package",
            "imports": [name.replace("-", "_")], "depends": list(needed), "unvendored_tests": False,
        }
    text = json.dumps({**lock, "packages": packages}, indent=1)
    (folder / "pyodide-lock.json").write_text(text, encoding="utf-8")


def configure(work: Path, extensions: list[Path]) -> None:
    """Write the settings of JupyterLite: how the folder is made, and how the page starts Python."""
    packages = [name.replace("-", "_") for name in (*OF_PYODIDE, *OURS)]  # as the kernel calls them
    made = {
        "LiteBuildConfig": {
            "contents": ["content"], "output_dir": "made", "cache_dir": "cache", "apps": APPS, "no_sourcemaps": True,
            "no_unused_shared_packages": True, "ignore_sys_prefix": ["federated_extensions"],
            "federated_extensions": [str(each) for each in extensions],
        },
    }
    page = {
        "jupyter-lite-schema-version": 0,
        "jupyter-config-data": {
            "appName": "minigrad", "exposeAppInBrowser": True,
            "litePluginSettings": {
                KERNEL: {"disablePyPIFallback": True, "loadPyodideOptions": {"packages": packages}},
            },
        },
    }
    looks = {
        "@jupyterlab/apputils-extension:themes": {"adaptive-theme": True},  # dark where the system is dark
        "@jupyterlab/notebook-extension:tracker": {"windowingMode": "defer"},  # views out of sight stay in the page
        "@jupyterlab/mainmenu-extension:plugin": {"menus": [FILE_MENU]},
    }
    written = {"jupyter_lite_config.json": made, "jupyter-lite.json": page, "overrides.json": looks}
    for name, settings in written.items():
        (work / name).write_text(json.dumps(settings, indent=1), encoding="utf-8")


def run(work: Path) -> None:
    """Let JupyterLite make its folder."""
    command = [sys.executable, "-m", "jupyterlite_core", "build"]
    environment = {**os.environ, "PYTHONPATH": str(work / "tools"), "JUPYTER_PLATFORM_DIRS": "1"}
    done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise LiteError(f"JupyterLite could not make its folder:\n{(done.stdout + done.stderr)[-2000:]}")


def front(made: Path) -> None:
    """Write the first page, and what starts Python and keeps a student's copies up to date."""
    for name, place in (("colours.css", "."), ("lite.css", "."), ("work.js", "."), ("start.js", "static/pyodide")):
        shutil.copyfile(STATIC / name, made / place / name)
    settings = made / "jupyter-lite.json"
    whole = json.loads(settings.read_text(encoding="utf-8"))
    whole["jupyter-config-data"]["litePluginSettings"][KERNEL]["pyodideUrl"] = "./static/pyodide/start.js"
    settings.write_text(json.dumps(whole, indent=1), encoding="utf-8")
    for app in APPS:
        page = made / app / "index.html"
        before, start, after = page.read_text(encoding="utf-8").partition("await import(")
        before = before.replace("<head>", '<head>\n    <link rel="stylesheet" href="../lite.css" />', 1)
        page.write_text(f'{before}await import("../work.js");\n        {start}{after}', encoding="utf-8")
    loaded = sum(path.stat().st_size for path in (made / "static" / "pyodide").iterdir()) / 1e6  # with Jupyter, 6 more
    rows = [_row(f"{unit.number:02} · {unit.title}", unit.question, unit.key) for unit in units().values()]
    rows.append(_row("Museum of misconceptions", "Fifteen broken pictures to repair.", "museum"))
    page = string.Template((STATIC / "lite.html").read_text(encoding="utf-8"))
    text = page.substitute(megabytes=round(loaded + 6), units="\n".join(rows), version=minigrad.__version__)
    (made / "index.html").write_text(text, encoding="utf-8")
    (made / ".nojekyll").touch()  # GitHub Pages shows the files as they are
    (made / SEEN).write_text(json.dumps(seen(made)), encoding="utf-8")


def _row(title: str, question: str, key: str) -> str:
    kinds = {"Notebook": f"{key}.ipynb", "Exercise": f"exercises/{key}_exercise.ipynb"}
    links = [
        f'<a href="{address(path)}">{kind}</a>'
        for kind, path in kinds.items()
        if (ROOT / "notebooks" / path).exists()
    ]
    return f"<li><b>{escape(title)}</b><p>{escape(question)}</p>{' '.join(links)}</li>"


def address(path: str) -> str:
    """The page of a notebook, relative to the folder.

    >>> address("00_start.ipynb")
    'notebooks/index.html?path=00_start.ipynb'
    """
    return f"notebooks/index.html?path={quote(path)}"


def seen(made: Path) -> dict:
    """What `work.js` compares with a student's files: this build, its notebooks, and files that browsers must renew."""
    files = made / "files"
    notebooks = {path.relative_to(files).as_posix(): digest(path) for path in sorted(files.rglob("*.ipynb"))}
    fresh = [*made.glob("*.json"), *made.glob("*/jupyter-lite.json"), *made.glob("api/**/*.json")]
    fresh += [*files.rglob("*.ipynb"), *made.glob("static/pyodide/*.json"), *made.glob("static/pyodide/minigrad-*.whl")]
    dated = made / "api"  # its lists have the times at which the files were written
    content = [path.read_bytes() for path in sorted(fresh) if dated not in path.parents]
    whole = hashlib.sha256(b"".join(content)).hexdigest()
    return {
        "build": whole[:16],
        "notebooks": notebooks,
        "fresh": [path.relative_to(made).as_posix() for path in sorted(fresh)],
    }


def digest(notebook: Path) -> str:
    """A number for the content of a notebook's cells, without outputs, as `work.js` computes it.

    It is FNV-1a with 64 bits, which is short in any language: pages without https have no SHA-256.
    """
    hashed = 0xCBF29CE484222325
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"]).replace("\r\n", "\n").rstrip()
        for byte in f"{cell['cell_type']}\0{text}\0".encode():
            hashed = (hashed ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{hashed:016x}"


def main(arguments: list[str]) -> int:
    """Make the folder, and say how to serve it."""
    given, folders = None, list(arguments)
    try:
        if "--pyodide" in folders:
            at = folders.index("--pyodide")
            if at + 1 == len(folders):
                raise LiteError("--pyodide needs a folder: the full release of Pyodide, unpacked")
            _, given = folders.pop(at), folders.pop(at)
        folder = Path(folders[0]) if folders else FOLDER
        files = build(folder, given)
    except (LiteError, pyodide.PyodideError) as error:
        print(error, file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in files) / 1e6
    print(f"{len(files)} files, {size:.0f} MB, in {folder}. To try them:\n    python3 -m http.server -d {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
