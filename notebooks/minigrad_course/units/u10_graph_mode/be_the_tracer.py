"""Be the tracer: lines to click in the order in which Python runs them, and the graph that they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from minigrad.core.tensor import Tensor
from minigrad.ops.creation import asarray
from minigrad.support.table import counted
from minigrad.viz.drawing import Drawing
from minigrad.viz.flipbook import Flipbook, Knob, Page
from minigrad.viz.svg import inside, laid_out, text_width

from .line_by_line import Call, Recording

ROW, SIZE, LETTER, LEAST, MOST, APART = 26.0, 12.0, 7.45, 280.0, 460.0, 30.0
BEFORE, AFTER = 30.0, 44.0  # a line of code: for its number, and for the number of its nodes
NEXT = "Click the line that Python runs next."


def be_the_tracer(function: Callable[..., Any], example: Any, *others: Any) -> Tracing:
    """Trace a function by hand: click its lines, see what each puts into the graph, and run the graph with others.

    The example and the others are tensors or numbers, or tuples of them where the function has several parameters.

    >>> def half(x):
    ...     if x > 1.0:
    ...         x = x / 2
    ...     return x
    >>> book = be_the_tracer(half, 3.0, 0.5)
    >>> print(book.text())
    line 2, if x > 1.0:: no nodes
    line 3, x = x / 2: 1 node, divide
    line 4, return x: no nodes
    With 0.5, the graph returns 0.25, and half returns 0.5. At line 2, these numbers go another way: the trace has one \
path, that of the example.
    """
    recording = Recording(function, _args(example), [_args(other) for other in others])
    sheets, in_vain = Sheets(recording), [0, *recording.source.clickable]
    pages = [sheets.page(moment, line) for moment in range(sheets.moments) for line in in_vain]
    title = f"be the tracer of {recording.source.name}: {counted(len(recording.steps), 'line')} to click"
    knob = Knob("what was clicked", tuple(map(str, range(len(pages)))), drawn=True)
    book = Tracing(title, [[page] for page in pages], (knob,), words=sheets.text(), moments=pages[:: len(in_vain)])
    book.nodes = recording.nodes
    return book


def _args(given: Any) -> list[Tensor]:
    several = given if isinstance(given, tuple) else (given,)
    return [each if isinstance(each, Tensor) else asarray(each) for each in several]


@dataclass(repr=False)
class Tracing(Flipbook):
    """A page for each moment, and one more for each line that may be clicked in vain at that moment.

    Where no script runs, the last moment is shown: the whole graph, and what it computes for the last of the others.
    """

    moments: Sequence[Page] = ()

    def to_svg(self) -> str:
        """The whole graph, and what it computes."""
        return self.moments[-1].drawing.to_svg(self.title)

    def frames(self) -> Iterator[tuple[str, str]]:
        """The moments, without lines that are clicked in vain."""
        yield from [(page.drawing.to_svg(page.say), page.say) for page in self.moments]


class Sheets:
    """Draws the moments of a recording: nothing, each line that ran, and each of the other calls."""

    def __init__(self, recording: Recording) -> None:
        self.recording, self.source = recording, recording.source
        self.steps, self.last = recording.steps, len(recording.steps)
        self.ran = [step.line for step in self.steps]
        self.moments = self.last + 1 + len(recording.others)
        scenes = [recording.scene(call) for call in (recording.example, *recording.others)]
        versions = zip(*[scene.boxes for scene in scenes])
        widest = [max(same, key=lambda box: len("".join(box.lines))) for same in versions]
        self.layout = laid_out(replace(scenes[0], boxes=tuple(widest)))
        self.scenes = scenes
        lines = max([len(line) for line in self.source.lines])
        self.width = min(max(LEAST, LETTER * lines + BEFORE + AFTER), MOST)
        self.height = 40 + ROW * len(self.source.lines) + 34 * (len(recording.others) + 1) + 64
        self.graphs = [self._graph(moment) for moment in range(self.moments)]

    def text(self) -> str:
        """What each line puts in, and what the graph computes."""
        lines = [f"line {step.line}, {self._code(step.line)}: {_put(step.nodes)}" for step in self.steps]
        runs = [f"With {call.args}, {self.recording.verdict(call)}" for call in self.recording.others]
        return "\n".join([*lines, *runs])

    def _code(self, line: int) -> str:
        return self.source.lines[line - 1].strip()

    def _other(self, moment: int) -> Call | None:
        """The other call that is shown at a moment."""
        return self.recording.others[moment - self.last - 1] if moment > self.last else None

    def page(self, moment: int, in_vain: int) -> Page:
        """The page of a moment, at which a line was clicked that Python does not run next."""
        whole = self.width + APART + max(self.layout.width, 150.0) + 20
        drawing = Drawing(whole, max(self.layout.height + 56, self.height))
        drawing.rect(0, 0, self.width, self.height, "none", "none")  # on a narrow screen, the graph stays below it
        self._lines(drawing, moment)
        self._buttons(drawing, moment)
        drawing.add(self.graphs[moment])
        return Page(drawing, self._said(moment, in_vain))

    def _go(self, moment: int, in_vain: int = 0) -> str:
        lines = [0, *self.source.clickable]
        return f"0:{moment * len(lines) + lines.index(in_vain)}"

    # what is said ----------------------------------------------------------------------------------------------------

    def _said(self, moment: int, in_vain: int) -> str:
        if in_vain:
            return f"Line {in_vain} is not next. {self._when(in_vain, moment)}. {NEXT}"
        call = self._other(moment)
        if call is not None:
            return f"With {call.args}, {self.recording.verdict(call)}"
        if not moment:
            return f"The graph is empty. {NEXT.replace('next', 'first')}"
        step = self.steps[moment - 1]
        end = NEXT if moment < self.last else "The function has returned, and the graph is complete."
        if moment == self.last and self.recording.others:
            end += " Now run it with other numbers."
        return f"Line {step.line} puts in {_put(step.nodes)}. {self._why(step.line, bool(step.nodes))}{end}"

    def _when(self, line: int, moment: int) -> str:
        if line in self.ran[:moment]:
            return "It has run already"
        return "Python comes to it later" if line in self.ran else "The example does not lead there"

    def _why(self, line: int, puts: bool) -> str:
        word = self.source.words.get(line)
        if puts or not word:
            return "" if puts else "The result is computed from nothing on this line. "
        if word == "return":
            return "`return` is not an operation. "
        return f"`{word}` is not an operation: Python looked at the example's numbers, and chose the way. "

    # the picture -----------------------------------------------------------------------------------------------------

    def _lines(self, drawing: Drawing, moment: int) -> None:
        """The code: a line that can be clicked has a border, the one that ran last a strong one."""
        drawing.heading(0, 12, f"{self.source.name}, with the example {self.recording.example.args}")
        done = self.steps[:moment]
        for number, text in enumerate(self.source.lines, 1):
            y = 24 + ROW * (number - 1)
            here = bool(done) and done[-1].line == number
            active = moment < self.last and number in self.source.clickable and not self._barred(number, moment)
            if active or here:
                hit = active and self.steps[moment].line == number
                go = self._go(moment + 1) if hit else self._go(moment, number) if active else ""
                drawing.rect(0, y, self.width, ROW - 3, "there-fill" if here else "paper", "now" if here else "line",
                             thick=2.0 if here else 1.0, go=go, about=f"line {number}: {text.strip()}")
            ink = "quiet" if self._barred(number, moment) else "ink"
            drawing.text(BEFORE - 10, y + 16, str(number), size=SIZE, fill="quiet", anchor="end")
            drawing.text(BEFORE, y + 16, text, size=SIZE, code=True, fill=ink, room=self.width - BEFORE - AFTER)
            counts = [len(step.nodes) for step in done if step.line == number]
            if counts:
                drawing.text(self.width - 8, y + 16, f"+ {sum(counts)}", size=SIZE, anchor="end", bold=True)

    def _barred(self, line: int, moment: int) -> bool:
        """Whether it is decided that a line does not run."""
        if line in self.ran or line not in self.source.clickable:
            return False
        return self.source.decider(line, self.ran) in self.ran[:moment]

    def _buttons(self, drawing: Drawing, moment: int) -> None:
        """Buttons below the code, and below them what the graph and the function return."""
        x, y = 0.0, 40 + ROW * len(self.source.lines)
        back = [("one line back", self._go(min(moment - 1, self.last))), ("begin again", self._go(0))]
        for words, go in back if moment else ():
            self._button(drawing, x, y, words, go, False)
            x += 1.1 * text_width(words, SIZE) + 34
        calls = self.recording.others if moment >= self.last else ()
        for at, each in enumerate(calls, self.last + 1):
            y += 34
            self._button(drawing, 0, y, f"run the graph with {each.args}", self._go(at), moment == at)
        call = self._other(moment)
        if call is not None:
            found = call.values[self.recording.result].short() if call.values else "it stops"
            sign, look = ("✓", "good") if call.agrees else ("✗", "bad")
            drawing.text(0, y + 58, f"{sign} the graph: {found}", size=14, bold=True, fill=look, room=self.width)
            right = f"✓ {self.source.name}: {call.right.short()}"
            drawing.text(0, y + 80, right, size=14, bold=True, fill="good", room=self.width)

    def _button(self, drawing: Drawing, x: float, y: float, words: str, go: str, now: bool) -> None:
        width = min(1.1 * text_width(words, SIZE) + 24, self.width)
        drawing.rect(x, y, width, 26, "there-fill" if now else "tint", "now" if now else "line", about=words, go=go)
        drawing.text(x + 12, y + 17.5, words, size=SIZE, room=width - 16)

    def _graph(self, moment: int) -> str:
        """The graph at a moment, in a place of its own, which moves below the code on a narrow screen."""
        drawing, call = Drawing(0, 0), self._other(moment)
        x, width = self.width + APART, max(self.layout.width, 150.0)
        made = {node for step in self.steps[:moment] for node in step.nodes}
        scene = self.scenes[max(moment - self.last, 0)]
        with drawing.piece('class="mg-beside"'):
            drawing.heading(x, 12, f"the graph: {counted(len(made), 'node') if made else 'empty'}")
            drawing.rect(x, 24, width + 20, self.layout.height + 20, "paper", "line", dashes="" if made else "4 3")
            with drawing.piece(f'transform="translate({x + 10:g} 34)"'):
                seen = {i for i, box in enumerate(scene.boxes) if moment >= self.last or box.nodes[0] in made}
                seen |= {edge.source for edge in scene.edges if edge.target in seen}
                drawing.add("".join(inside(scene, self.layout, seen=seen)))
                if call is not None and not call.agrees:
                    place = self.layout.boxes[[box.result for box in scene.boxes].index(True)]
                    drawing.rect(place.x - 4, place.y - 4, place.width + 8, place.height + 8, "none", "bad", thick=3.0)
        return drawing.pieces[0]


def _put(nodes: Sequence[Any]) -> str:
    return f"{counted(len(nodes), 'node')}, {', '.join(node.name for node in nodes)}" if nodes else "no nodes"
