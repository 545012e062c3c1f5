"""Cells of a web page, where there is no IPython: the site makes one `Page` in the reader's browser.

A page has what minigrad and the course use of IPython's shell: the names of the cells, `In`, the events before and
after a cell, and a way to show something.  So checks and errors work as they do in a notebook.
"""

from __future__ import annotations

import ast
import io
import linecache
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from types import TracebackType
from typing import Any, NamedTuple

import minigrad as mg
from minigrad.core.programs import eager_programs
from minigrad.support import context, source
from minigrad.support.errors import MinigradError
from minigrad.viz.exhibit import Exhibit

from . import attempts
from .feedback import Feedback, advice
from .feedback import place as place_of

Send = Callable[[str, str, int], None]  # the kind of an output, the output, and the line of an error
MOST = 20_000  # characters that one cell prints
FORMS = {
    "_repr_mimebundle_": "html", "_repr_html_": "html", "_repr_markdown_": "markdown", "_repr_svg_": "svg",
}
FIRST, LAST = 3, 2  # lines of a long traceback
ABSENT = "a page has minigrad, NumPy and Python's own modules; other packages need an installation of the course"


class Cell(NamedTuple):
    """The code of a cell, as IPython's events have it."""

    raw_cell: str


class Result(NamedTuple):
    """How a cell ended, as IPython's events have it."""

    info: Cell
    error_before_exec: BaseException | None = None
    error_in_exec: BaseException | None = None

    @property
    def success(self) -> bool:
        return self.error_before_exec is None and self.error_in_exec is None


class Page:
    """Runs the cells of a page, which share their names, and sends their outputs.

    >>> outputs = []
    >>> page = Page(lambda kind, text, line: outputs.append((kind, text)))
    >>> page.run("x = 3\\nprint('three', end='')\\nx * x")
    True
    >>> page.close()
    >>> outputs
    [('out', 'three'), ('text', '9')]
    """

    kernel = True  # outputs can show more than text

    def __init__(self, send: Send) -> None:
        self.send = send
        self.user_ns: dict[str, Any] = {"__name__": "__main__", "mg": mg, "display": self.show, "input": no_input}
        self.cells = [""]  # the code of each cell that has run
        self.files: dict[str, int] = {}  # the file name of a cell -> its number on the page
        self.events = self.display_pub = self.compile = self  # parts of IPython's shell
        self.handlers: dict[str, list[Callable[[Any], None]]] = {"pre_run_cell": [], "post_run_cell": []}
        self.explained: tuple[type[BaseException], ...] = ()
        self.uses_course = self.busy = False
        source.PAGES.append(self)
        context.watch_cells()

    def close(self) -> None:
        """Leave no trace: for tests, which make several pages."""
        source.PAGES.remove(self)

    # what minigrad uses of IPython's shell ------------------------------------------------------------------------

    def register(self, event: str, function: Callable[[Any], None]) -> None:
        """Call a function before or after each cell."""
        self.handlers[event].append(function)

    def publish(self, data: dict[str, str], metadata: Any = None) -> None:
        """Show the best form of something."""
        self.send("html", data["text/html"], 0)

    def format_code_name(self, filename: str) -> tuple[str, str] | None:
        """What a cell is called in messages, from the name of its file."""
        return ("cell", str(self.files[filename])) if filename in self.files else None

    def transform_cell(self, code: str) -> str:
        """The code that runs: a page has no magics."""
        return code

    def set_custom_exc(self, kinds: tuple[type[BaseException], ...], explain: Callable[..., Any]) -> None:
        """Let a function show errors of these classes."""
        self.explained, self.explain = kinds, explain

    # running a cell -----------------------------------------------------------------------------------------------

    def run(self, code: str, number: int = 1) -> bool:
        """Run a cell, and return whether it ended without an error."""
        if not self.uses_course and "course" in code:  # only now: the import of all tasks takes seconds in a browser
            self.uses_course = True
            attempts.watch_cells()
        name = f"<cell {number}, run {len(self.cells)}>"
        self.cells.append(code)
        self.user_ns["In"] = self.cells
        self.files[name] = number
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        for call in self.handlers["pre_run_cell"]:
            call(Cell(code))
        one_by_one = eager_programs(False)  # as the lectures explain it
        with redirect_stdout(Printed(self.send, "out")), redirect_stderr(Printed(self.send, "err")), one_by_one:
            result = self._run(code, name)
        for call in self.handlers["post_run_cell"]:
            call(result)
        return result.success

    def _run(self, code: str, name: str) -> Result:
        cell = Result(Cell(code))
        try:
            tree = ast.parse(code, name)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            statements = compile(tree, name, "exec", dont_inherit=True)
            value = None
            if isinstance(last, ast.Expr):
                value = compile(ast.Expression(last.value), name, "eval", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self._show_error(error, name)
            return cell._replace(error_before_exec=error)
        try:
            self.busy = True
            exec(statements, self.user_ns)
            if value is not None:
                self._show_last(eval(value, self.user_ns))
            self.busy = False
        except BaseException as error:
            self.busy = False
            self._show_error(error, name)
            return cell._replace(error_in_exec=error)
        return cell

    def _show_last(self, value: Any) -> None:
        if value is not None:
            self.user_ns["_"] = value
            self.show(value)

    def show(self, value: Any) -> None:
        """Show a value below the cell: a view, or the best form that the value has."""
        if isinstance(value, Exhibit):
            return self.send("view", value.to_html(), 0)
        forms = [] if isinstance(value, type) else [name for name in FORMS if hasattr(value, name)]
        for name in forms:
            form = getattr(value, name)()
            if form is not None:
                return self.send(FORMS[name], form["text/html"] if isinstance(form, dict) else form, 0)
        self.send("text", repr(value), 0)

    def _show_error(self, error: BaseException, name: str) -> None:
        """Show an error."""
        if isinstance(error, self.explained):
            self.explain(self, type(error), error, error.__traceback__)
        elif isinstance(error, KeyboardInterrupt):
            self.send("error", "Stopped.", self._line_in(name, error))
        elif isinstance(error, Feedback):
            self.send("error", "\n".join(error._render_traceback_()), 0)
        else:
            self.send("error", self._words(error), self._line_in(name, error))

    def _line_in(self, name: str, error: BaseException) -> int:
        """The line of a cell that an error came through; 0 if there is none."""
        if isinstance(error, SyntaxError):
            return error.lineno or 0
        lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == name]
        return lines[-1] if lines else 0

    def _words(self, error: BaseException) -> str:
        """An error as readers see it: what happened, a hint where there is one, and the lines of cells."""
        if isinstance(error, SyntaxError):
            lines = [f"{type(error).__name__}: {error.msg}", *place_of(error)]
        else:
            lines = "".join(traceback.format_exception_only(error)).strip().splitlines()
        if isinstance(error, MinigradError):  # its message ends with the last of these lines
            lines[0] = f"{type(error).__name__}: {lines[0].partition(': ')[2]}"
            lines = [line for line in lines if not line.startswith("  Line:")]
        elif isinstance(error, ModuleNotFoundError):
            lines.append(f"  Hint: {ABSENT}")
        elif isinstance(error, SyntaxError | NameError) and advice(error):
            lines.append(f"  Hint: {advice(error)}")
        places = self._places(error.__traceback__)
        return "\n".join([*lines, *(f"{'        ' if i else '  Line: '}{place}" for i, place in enumerate(places))])

    def _places(self, trace: TracebackType | None) -> list[str]:
        """The lines of cells that an error came through."""
        found = []
        while trace is not None:
            if trace.tb_frame.f_code.co_filename in self.files:
                found.append((trace.tb_frame.f_code, trace.tb_lasti))
            trace = trace.tb_next
        between = len(found) - FIRST - LAST
        if between <= 1:
            return [source.show(each) for each in found]
        shown = [source.show(each) for each in found[:FIRST] + found[-LAST:]]
        return [*shown[:FIRST], f"... {between} more lines", *shown[FIRST:]]

    # stopping -----------------------------------------------------------------------------------------------------

    def listen(self, number: int, is_stopped: Callable[[], bool], wait: Callable[[], None]) -> None:
        """Raise KeyboardInterrupt in the cell that runs when the reader has pressed stop.

        The page sends the signal `number` several times per second.  `wait` lets the browser deliver its messages.
        """

        def interrupt(number: int, frame: Any) -> None:
            wait()
            if is_stopped() and self.busy:
                raise KeyboardInterrupt

        signal.signal(number, interrupt)
        sys.unraisablehook = quiet_about_stops


def quiet_about_stops(lost: sys.UnraisableHookArgs) -> None:
    """Show an error that Python cannot raise, as in a callback, unless it is a stop: the next signal stops the cell."""
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)


def no_input(prompt: object = "") -> str:
    """What `input` is in a cell."""
    raise EOFError("input() cannot read on a page: write the value in the code")


class Printed(io.TextIOBase):
    """What a cell prints: sent line by line, up to a limit."""

    def __init__(self, send: Send, kind: str) -> None:
        self.write_to, self.kind, self.room = send, kind, MOST

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.room > 0 and text:
            self.write_to(self.kind, text[: self.room], 0)
            self.room -= len(text)
            if self.room <= 0:
                self.write_to(self.kind, "\n... (a page shows no more of what a cell prints)\n", 0)
        return len(text)
