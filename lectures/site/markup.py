"""The Markdown of lectures: what is added to CommonMark, and how a source becomes a page or slides.

    # 00 · Name: more             the title slide, with the pictures below it
    ## Heading                    begins a chapter, and a slide unless `###` follows
    ### Heading                   begins a slide, and a line `---` begins one that has the heading of the slide before
    $x^2$, $$x^2$$                formulas, as MathML
    ![what one sees](name)        a picture: the function of this name in `pictures/uNN_name.py`, or in
                                  `pictures/museum.py` for the page `museum.md`.  Several pictures in
                                  one paragraph stand side by side, and what one sees is written below each
    ::: notes                     what the speaker says: in the slides' speaker view only
    ::: page / ::: slide          only on the page, only in the slides
    ::: reveal A question?        what is shown after a click.  On a slide, a picture in it takes the place of the
                                  picture above it
    ```python minigrad/x.py       lines quoted from a file, in one piece; a line `...` marks each gap
    ```python minigrad/x.py f     a function or class, whole (the fence is empty); slides leave out its docstring
    ▸ a line of code              a line that matters, which is marked.  A fence with the name of a function and no
                                  other lines quotes it whole
    ```run                        Python that is shown and run, and what it printed
    ```picture                    Python whose last line is a picture of minigrad's
    ```live                       Python whose last line is a view to step through, which runs in its place
    ```try                        Python as with `run`; its last line may be a view.  Readers of a site with live
                                  cells edit and run it.  It shares its names with other such code of the page only

A fence closes with three backticks, a `:::` with three colons.  All code of a lecture shares its names.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from typing import Any

import numpy as np
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.container import container_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

import minigrad as mg
from minigrad.viz.colours import themed
from minigrad.viz.exhibit import Exhibit
from minigrad.viz.rules import mathml

from .drawn import Sketch
from .frames import Section
from .quotes import LectureError, check_quote, definition

CONTAINERS = ("notes", "page", "slide", "reveal")
RUN = ("run", "picture", "live", "try")
HEADING = 3  # tokens: it opens, its words, it closes
MARK = "▸ "


@dataclass
class Lecture:
    """A source, and the results of its code, which runs once for the page and the slides."""

    name: str
    text: str
    prose: bool = False  # whether quotation marks belong to sentences, and not to code
    editable: bool = False  # whether readers of the page can run its `try` code
    live: dict[str, str] = field(default_factory=dict)  # file name -> page of a view
    title: str = ""
    sections: list[Section] = field(default_factory=list)
    chapters: list[tuple[str, int]] = field(default_factory=list)  # of the slides: name, number of its first slide
    _names: dict[str, Any] = field(default_factory=lambda: {"mg": mg, "__name__": "lecture"})
    _tried: dict[str, Any] = field(default_factory=lambda: {"mg": mg, "__name__": "__main__"})
    _results: dict[int, tuple[str, Any]] = field(default_factory=dict)

    def picture(self, name: str) -> list[Sketch]:
        """The stages of a picture, which is a function in the module of this lecture's pictures."""
        called = f"u{self.name}" if self.name[:1].isdigit() else self.name
        try:
            module = import_module(f"lectures.pictures.{called}")
        except ModuleNotFoundError:
            path = f"lectures/pictures/{called}.py"
            raise LectureError(f"{self.name}.md shows a picture, and {path} is missing") from None
        if not hasattr(module, name):
            raise LectureError(f"{self.name}.md shows the picture {name!r}, which is not in {module.__name__}")
        drawn = getattr(module, name)()
        return drawn if isinstance(drawn, list) else [drawn]

    def result(self, number: int, code: str, tried: bool = False) -> tuple[str, Any]:
        """What a piece of code printed, and the value of its last line."""
        if number not in self._results:
            names = self._tried if tried else self._names
            self._results[number] = self._run(code, f"{self.name}.md, code {number}", names)
        return self._results[number]

    def _run(self, code: str, called: str, names: dict[str, Any]) -> tuple[str, Any]:
        linecache.cache[called] = (len(code), None, code.splitlines(keepends=True), called)
        tree = ast.parse(code, called)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), np.errstate(all="ignore"), _meanings():
                exec(compile(tree, called, "exec"), names)
                value = eval(compile(ast.Expression(last.value), called, "eval"), names) if last else None
        except Exception as error:
            raise LectureError(f"{called} fails: {type(error).__name__}: {error}") from error
        return printed.getvalue(), value


@contextlib.contextmanager
def _meanings() -> Iterator[None]:
    """The names of PyTorch hold while a page's code runs, once one has imported `minigrad.compat`, and not after it."""
    speaking = sys.modules.get("minigrad.compat.speaking")
    if speaking is not None:
        speaking.activate()
    try:
        yield
    finally:
        speaking = sys.modules.get("minigrad.compat.speaking")
        if speaking is not None:
            speaking.deactivate()


def parser(lecture: Lecture) -> MarkdownIt:
    """A Markdown parser that also writes the parts that only lectures have."""
    md = MarkdownIt("commonmark", {"html": False, "typographer": lecture.prose})
    md.enable(["table", "smartquotes"]).use(dollarmath_plugin)
    for name in CONTAINERS:
        md.use(container_plugin, name=name)

    def math(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        made = mathml(tokens[index].content.strip())
        block = tokens[index].type == "math_block"
        return made.replace('display="inline"', 'display="block"', 1) if block else made

    def fence(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return _fence(lecture, tokens[index], env)

    def heading(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        token = tokens[index]
        anchor = slug(tokens[index + 1].content)
        return f'<{token.tag} id="{anchor}">' if env.get("anchors") else f"<{token.tag}>"

    def ended(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        tag, anchor = tokens[index].tag, slug(tokens[index - 1].content)
        link = f' <a class="anchor" href="#{anchor}" aria-hidden="true" tabindex="-1">#</a>'
        return f"{link if env.get('anchors') and tag != 'h1' else ''}</{tag}>\n"

    def reveal(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        if tokens[index].nesting < 0:
            return "</div></details>\n"
        question = md.renderInline(tokens[index].info.strip().removeprefix("reveal").strip() or "Show")
        return f'<details class="answer"><summary>{question}</summary><div>\n'

    def aside(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return '<aside class="notes">\n' if tokens[index].nesting > 0 else "</aside>\n"

    def drawn(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return _drawn(lecture, tokens[index].children or [], env)

    def head(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        """A cell of a table's head; an empty corner is a plain cell."""
        inside = tokens[index + tokens[index].nesting].content
        made = str(self.renderToken(tokens, index, options, env))
        return made if inside else made.replace("th", "td", 1)

    md.add_render_rule("drawn", drawn)
    for kind in ("th_open", "th_close"):
        md.add_render_rule(kind, head)
    md.add_render_rule("table_open", lambda *_: '<div class="wide"><table>\n')
    md.add_render_rule("table_close", lambda *_: "</table></div>\n")
    for kind in ("math_inline", "math_inline_double", "math_block"):
        md.add_render_rule(kind, math)
    md.add_render_rule("fence", fence)
    md.add_render_rule("heading_open", heading)
    md.add_render_rule("heading_close", ended)
    for kind, rule in (("reveal", reveal), ("notes", aside)):
        md.add_render_rule(f"container_{kind}_open", rule)
        md.add_render_rule(f"container_{kind}_close", rule)
    return md


def slug(heading: str) -> str:
    """The anchor of a heading.

    >>> slug("Why `topological` order?")
    'why-topological-order'
    """
    return re.sub(r"[^\w]+", "-", heading.lower()).strip("-")


def as_code(text: str) -> str:
    """A line of text for a page; what stands in backticks is code.

    >>> as_code("`a < b` holds")
    '<code>a &lt; b</code> holds'
    """
    return re.sub("`(.+?)`", r"<code>\1</code>", escape(text))


def words(inline: Token) -> str:
    """A line of Markdown without its marks."""
    return "".join(" " if child.type == "softbreak" else child.content for child in inline.children or ())


def unmarked(code: str) -> tuple[str, list[int]]:
    """Code without its marks, and the numbers of the lines that are marked.

    >>> unmarked("a = 1\\n▸ b = 2\\n")
    ('a = 1\\nb = 2\\n', [2])
    """
    lines = code.splitlines()
    marked = [number for number, line in enumerate(lines, start=1) if line.startswith(MARK)]
    return "".join(f"{line.removeprefix(MARK)}\n" for line in lines), marked


def places(code: str, wanted: str) -> list[int]:
    """The numbers of the lines in which code has some wanted ones, in this order.

    >>> places("a = 1\\nb = 2\\n    a = 1\\n", "b = 2\\na = 1")
    [2, 3]
    """
    found: list[int] = []
    lines = [line.strip() for line in code.splitlines()]
    for text in wanted.splitlines():
        begin = found[-1] if found else 0
        if text.strip() not in lines[begin:]:
            raise LectureError(f"a line is marked that is not in the code, or in a different order:\n  {text.strip()}")
        found.append(lines.index(text.strip(), begin) + 1)
    return found


def coloured(code: str, language: str, marked: Sequence[int] = ()) -> str:
    """Code as HTML, its words in classes that the style sheets give colours, as they do to the marked lines."""
    name = language or "text"
    if name == "python" and code.startswith(">>> "):
        name = "pycon"
    words = highlight(code, get_lexer_by_name(name, stripnl=False), HtmlFormatter(nowrap=True, hl_lines=marked))
    return f'<pre class="code"><code class="language-{escape(name)}">{words}</code></pre>\n'


def parsed(md: MarkdownIt, lecture: Lecture, form: str) -> list[Token]:
    """The tokens of a form of the lecture; a paragraph of nothing but pictures is one token, "drawn"."""
    tokens = chosen(md.parse(lecture.text), form)
    found: list[Token] = []
    for token in tokens:
        if token.type == "fence":
            token.content, token.meta["marked"] = unmarked(token.content)
        children = token.children or []
        pictures = [each for each in children if each.type == "image"]
        if token.type == "inline" and pictures and all(each.type in ("image", "softbreak") for each in children):
            found[-1] = Token("drawn", "", 0, children=pictures, level=found[-1].level)
        elif token.type != "paragraph_close" or found[-1].type != "drawn":
            found.append(token)
    return found


def _drawn(lecture: Lecture, pictures: Sequence[Token], env: Any) -> str:
    """Pictures: one by itself, several in a row with captions.  A picture with stages shows one after the other."""
    figures = []
    for picture in pictures:
        said = picture.content
        stages = lecture.picture(str(picture.attrs["src"]))
        more = ' class="fragment"' if env.get("slides") else ""
        shown = "".join(
            f"<div{more if number else ''}>{themed(stage.to_svg(said))}</div>" for number, stage in enumerate(stages)
        )
        caption = f"<figcaption>{escape(said)}</figcaption>" if len(pictures) > 1 else ""
        kind = "drawn stages" if len(stages) > 1 else "drawn"
        figures.append(f'<figure class="{kind}">{shown}{caption}</figure>')
    return figures[0] + "\n" if len(figures) == 1 else f'<div class="row">{"".join(figures)}</div>\n'


def _fence(lecture: Lecture, token: Token, env: Any) -> str:
    """The HTML of a fenced block."""
    kind, _, argument = token.info.strip().partition(" ")
    number = token.map[0] + 1 if token.map else 0
    if kind == "python" and argument:
        return _quote(token, argument)
    code = coloured(token.content, "python" if kind in RUN else kind, token.meta.get("marked", ()))
    if kind not in RUN:
        return code
    printed, value = lecture.result(number, token.content, tried=kind == "try")
    if kind == "picture":
        return f'<figure class="picture">{value.to_svg()}</figure>\n'
    view = _view(lecture, number, value) if kind == "live" or (kind == "try" and isinstance(value, Exhibit)) else ""
    if kind == "live" or (view and env.get("slides")):  # a view shows the code itself
        return view
    shown = printed + ("" if value is None or view else f"{value!r}\n")
    output = (f'<pre class="output">{escape(shown)}</pre>\n' if shown else "") + view
    if kind == "try" and lecture.editable and not env.get("slides"):
        return f'<div class="try">{code}<div class="said">{output}</div></div>\n'
    return code + output


def _view(lecture: Lecture, number: int, view: Any) -> str:
    """A view that runs in a page of its own."""
    name = f"{lecture.name}-{number}.html"
    lecture.live[name] = view.to_html()
    title = escape(repr(view).strip("<>"), quote=True)
    return f'<div class="live"><iframe src="live/{name}" title="{title}"></iframe></div>\n'


def _quote(token: Token, argument: str) -> str:
    """Lines of a file, with its name below them."""
    name = escape(argument.partition(" ")[0])
    code = coloured(token.content, "python", token.meta.get("marked", ()))
    return f'<figure class="quote">{code}<figcaption>{name}</figcaption></figure>\n'


def quoted(lecture: Lecture, tokens: Iterable[Token], docstrings: bool = True) -> None:
    """Check the lines that are quoted, and fill in the functions that are quoted whole."""
    for token in tokens:
        kind, _, argument = token.info.strip().partition(" ")
        if token.type != "fence" or kind != "python" or not argument:
            continue
        name, _, wanted = argument.partition(" ")
        if wanted and len(token.content.splitlines()) == len(token.meta["marked"]):
            whole = definition(lecture.name, name, wanted, docstrings)
            token.content, token.meta["marked"] = whole, places(whole, token.content)
        else:
            check_quote(lecture.name, token.content, name)


def chosen(tokens: Sequence[Token], form: str) -> list[Token]:
    """The tokens that belong in a form, "page" or "slide"."""
    left_out = {"page": ("slide", "notes"), "slide": ("page",)}[form]
    found: list[Token] = []
    skipping = ""
    for token in tokens:
        kind = token.type.removeprefix("container_").rpartition("_")[0] if token.type.startswith("container_") else ""
        if skipping:
            skipping = "" if kind == skipping and token.nesting < 0 else skipping
        elif kind in left_out:
            skipping = kind
        elif kind not in ("page", "slide"):
            found.append(token)
    return found


def as_page(lecture: Lecture, rules: bool = False) -> str:
    """The body of the page, with `<hr>` for `---` or without."""
    md = parser(lecture)
    tokens = parsed(md, lecture, "page")
    quoted(lecture, tokens)
    headings = [(int(token.tag[1]), tokens[i + 1]) for i, token in enumerate(tokens) if token.type == "heading_open"]
    lecture.sections = [Section(level, slug(inline.content), words(inline)) for level, inline in headings]
    lecture.title = lecture.sections[0].text if headings else lecture.name
    kept = [token for token in tokens if rules or token.type != "hr"]
    return str(md.renderer.render(kept, md.options, {"anchors": True}))


def texts(lecture: Lecture) -> list[tuple[str, str]]:
    """For each heading of the page the sentences below it, and the answers that stand behind a click."""
    found: list[tuple[list[str], list[str]]] = []
    depth = 0  # of answers
    for token in parsed(parser(lecture), lecture, "page"):
        if token.type.startswith("container_reveal"):
            depth += token.nesting
        if token.type == "heading_open":
            found.append(([], []))
        said = token.info.strip().removeprefix("reveal ") if token.type == "container_reveal_open" else ""
        said = words(token) if token.type == "inline" else said
        said = token.content if token.type == "fence" and token.info == "text" else said
        if said and found:
            found[-1][depth > (token.type == "container_reveal_open")].append(" ".join(said.replace("`", "").split()))
    return [(" ".join(shown[1:]), " ".join(hidden)) for shown, hidden in found]


def as_slides(lecture: Lecture) -> str:
    """The slides, a section for each; one without a heading goes on with what the one before it is about."""
    md = parser(lecture)
    env = {"slides": True}
    rendered, heading = [], ""
    lecture.chapters = []
    every = slides(lecture, parsed(md, lecture, "slide"))
    for slide, following in zip(every, [*every[1:], []]):
        if slide[0].tag == "h2":
            lecture.chapters.append((words(slide[1]), len(rendered)))
            if len(slide) == HEADING and following and following[0].tag == "h3":
                continue
        top = f'<p class="goes-on">{heading}</p>\n'
        kind = ""
        if slide[0].type == "heading_open":
            heading, top = md.renderer.render(slide[1:2], md.options, env), ""
            if slide[0].tag == "h1":
                kind, top, slide = ' class="title"', _title(words(slide[1])), slide[HEADING:]
        rendered.append(f"<section{kind}>\n{top}{md.renderer.render(slide, md.options, env)}</section>")
    return "\n".join(rendered)


def slides(lecture: Lecture, tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens of each slide."""
    quoted(lecture, tokens, docstrings=False)
    found: list[list[Token]] = [[]]
    depth = 0  # of containers
    for token in tokens:
        depth += token.nesting if token.type.startswith("container_") else 0
        begins = token.type == "heading_open" and token.tag in ("h1", "h2", "h3") and depth == 0
        if (begins or token.type == "hr") and found[-1]:
            found.append([])
        if token.type != "hr":
            found[-1].append(token)
    return [slide for slide in found if slide]


def _title(title: str) -> str:
    """The top of the title slide, from "00 · Name: more"."""
    number, _, name = title.rpartition(" · ")
    name, _, more = name.partition(": ")
    parts = ("number", number), ("name", name), ("more", more)
    return "<h1>" + "".join(f'<span class="{kind}">{escape(text)}</span> ' for kind, text in parts if text) + "</h1>\n"
