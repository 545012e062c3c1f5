"""The course in a browser: the bytes that a page loads, the seconds until a notebook is shown and has run, and memory.

    python3 course bench browser

It needs a browser (Debian's chromium), the package playwright, and the files of Pyodide (`$MINIGRAD_PYODIDE`, or those
that `python3 course browser` has loaded).  Without them, nothing is measured and the reason is printed.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _harness import Options, facts, options, text_of

NOTEBOOK = "00_start.ipynb"
DIGITS = """
import time
import minigrad_course as course
begin = time.perf_counter()
course.train_digits()
print(time.perf_counter() - begin)
"""

PAGE = f"""# Cells

```try
w = mg.asarray(2.0, requires_grad=True)
mg.viz.step(w * w)
```

```try{DIGITS}```
"""
DONE = r"\d s$"


@dataclass
class Row:
    """A line of the table: what was measured, its values, how they are written, and the most that is allowed."""

    name: str
    values: list[float]
    text: Callable[[float], str]
    goal: float | None = None

    def __str__(self) -> str:
        median, least = statistics.median(self.values), min(self.values)
        verdict = "| |" if self.goal is None else f"≤ {self.text(self.goal)} | {_verdict(least, self.goal)} |"
        return f"| {self.name} | {self.text(median)} | {self.text(least)} | {verdict}"


def _verdict(value: float, goal: float) -> str:
    return "ok" if value <= goal else "**over**"


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.1f} MB"


def notebooks(opts: Options) -> list[Row]:
    """JupyterLite, from the folder of `course browser`: on a first visit, and on a later one."""
    from lectures.site.browser import lite
    from tests.browser.lite import EXECUTE, RUN_ALL, served

    with tempfile.TemporaryDirectory() as place:
        files = lite.build(Path(place) / "made", _pyodide())
        rows = {name: Row(name, [], text_of, goal) for name, goal in (
            ("first visit: the notebook is shown", None), ("first visit: unit 00 has run", 20.0),
            ("first visit: the same, in processor seconds", 20.0), ("later visit: the notebook is shown", None),
            ("later visit: unit 00 has run", 20.0), ("training on the digits", 1.0),
        )}
        sizes = {name: Row(name, [], megabytes) for name in (
            "loaded on a first visit", "the same, by gzip", "loaded on a later visit", "memory of the page",
        )}
        for _ in range(opts.rounds):
            with served(Path(place) / "made") as server, visitor() as page:
                for visit in ("first", "later"):
                    before, asked, busy = server.sent, len(server.asked), processor_seconds(page)
                    shown, ran = visit_unit(page, f"{server.address}/{lite.address(NOTEBOOK)}", RUN_ALL)
                    rows[f"{visit} visit: the notebook is shown"].values.append(shown)
                    rows[f"{visit} visit: unit 00 has run"].values.append(ran)
                    sizes[f"loaded on a {visit} visit"].values.append(server.sent - before)
                    if visit == "first":
                        busy = processor_seconds(page) - busy
                        rows["first visit: the same, in processor seconds"].values.append(busy)
                        loaded = {path.partition("?")[0].lstrip("/") for path in server.asked[asked:]}
                        sizes["the same, by gzip"].values.append(_packed(Path(place) / "made", loaded))
                sizes["memory of the page"].values.append(memory_of(page))
                rows["training on the digits"].values.append(float(page.evaluate(f"{EXECUTE}({DIGITS!r})")))
        whole = Row("the folder", [float(sum(path.stat().st_size for path in files))], megabytes)
    return [whole, *sizes.values(), *rows.values()]


def _pyodide() -> Path:
    from tests.browser.running import found

    folder = found()
    if isinstance(folder, str):
        raise LookupError(folder)
    return folder


@contextmanager
def visitor() -> Iterator[Any]:
    """A page with an empty cache of its own; requests are not watched, which would turn the cache off."""
    from tests.viz.browser import _browser

    context = _browser().new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(300_000)
    try:
        yield page
    finally:
        context.close()


def visit_unit(page: Any, address: str, run: str) -> tuple[float, float]:
    """The seconds until a notebook is shown, and until all of its cells have run."""
    from tests.browser.lite import READY

    begin = time.perf_counter()
    page.goto(address)
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
    shown = time.perf_counter() - begin
    page.wait_for_function(READY)
    assert page.evaluate(run) is True
    return shown, time.perf_counter() - begin


def processes_of(page: Any) -> list[dict[str, Any]]:
    """The processes of the browser."""
    session = page.context.browser.new_browser_cdp_session()
    return session.send("SystemInfo.getProcessInfo")["processInfo"]  # type: ignore[no-any-return]


def processor_seconds(page: Any) -> float:
    """What all processes of the browser have used: other work on the machine hardly disturbs it."""
    return float(sum(each["cpuTime"] for each in processes_of(page)))


def memory_of(page: Any) -> float:
    """The memory of the largest process that shows a page, with its share of what processes have in common."""
    sizes = []
    for each in processes_of(page):
        if each["type"] == "renderer":
            lines = Path(f"/proc/{each['id']}/smaps_rollup").read_text(encoding="utf-8").splitlines()
            sizes += [1024.0 * int(line.split()[1]) for line in lines if line.startswith("Pss:")]
    return max(sizes)


def _packed(folder: Path, names: set[str]) -> float:
    paths = [folder / name for name in names if (folder / name).is_file()]
    return float(sum(len(zlib.compress(path.read_bytes(), 6)) for path in paths))


def pages(opts: Options) -> list[Row]:
    """A page of `course site --live`: on a first visit, and on a later one."""
    from tests.browser.cells import Cells, site_of
    from tests.browser.lite import served

    with tempfile.TemporaryDirectory() as place:
        site_of(PAGE, Path(place), _pyodide())
        rows = {name: Row(name, [], text_of, goal) for name, goal in (
            ("first visit: the first picture", None), ("first visit: the same, in processor seconds", None),
            ("later visit: the first picture", 5.0), ("later visit: the same cell again", 0.15),
            ("training on the digits", 1.0),
        )}
        loaded, memory = Row("loaded on a first visit", [], megabytes), Row("memory of the page", [], megabytes)
        for _ in range(opts.rounds):
            with served(place) as server, visitor() as page:
                for visit in ("first", "later"):
                    page.goto(f"{server.address}/cells.html")
                    before, busy, cells = server.sent, processor_seconds(page), Cells(page)
                    rows[f"{visit} visit: the first picture"].values.append(seconds_of(cells, 0))
                    if visit == "first":
                        loaded.values.append(server.sent - before)
                        busy = processor_seconds(page) - busy
                        rows["first visit: the same, in processor seconds"].values.append(busy)
                again = [seconds_of(cells, 0) for _ in range(5)]
                rows["later visit: the same cell again"].values.append(min(again))
                memory.values.append(memory_of(page))
                cells.run(1)
                rows["training on the digits"].values.append(float(cells.wait(1, DONE)))
    return [loaded, memory, *rows.values()]


def seconds_of(cells: Any, number: int) -> float:
    """The seconds from the key that runs a cell until its picture is there."""
    begin = time.perf_counter()
    cells.run(number)
    cells.page.wait_for_function(f"document.querySelectorAll('.try')[{number}].dataset.state !== 'busy'")
    cells.page.frame_locator(".try .said iframe[srcdoc]").locator(".mg-view").wait_for()
    return time.perf_counter() - begin


PARTS = {"Cells of a page": pages, "JupyterLite": notebooks}


def table(name: str, measure: Callable[[Options], list[Row]], opts: Options) -> str:
    """The figures of a part, or the reason why there are none."""
    from tests.viz.browser import missing

    head = "| | median | best | goal for the best | |\n|---|---|---|---|---|\n"
    try:
        if opts.smoke:
            raise LookupError("a smoke run makes no folder and starts no browser")
        if missing() is not None:
            raise LookupError(missing())
        return f"### {name}\n\n{head}" + "\n".join(map(str, measure(opts))) + "\n"
    except LookupError as error:
        return f"### {name}\n\nNot measured: {error.args[0]}.\n"


def main(arguments: list[str] | None = None) -> str:
    opts = options(__doc__, arguments, rounds=3)
    text = "\n".join([f"## In a browser\n\n{facts(opts)}", *[table(*part, opts) for part in PARTS.items()]])
    print(text)
    return text


if __name__ == "__main__":
    main()
