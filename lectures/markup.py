"""The Markdown of lectures: what is added to CommonMark, and how a source becomes a page or slides.

    ## A heading                begins a slide, and so does a line `---`
    $x^2$, $$x^2$$              formulas, as MathML
    ::: notes                   what the speaker says: in the slides' speaker view only
    ::: page / ::: slide        only on the page, only in the slides
    ::: reveal A question?      what is shown after a click
    ```python minigrad/x.py     lines quoted from a file, in one piece; a line `...` marks each gap
    ```run                      Python that is shown and run, and what it printed
    ```picture                  Python whose last line is a picture of minigrad's
    ```live                     Python whose last line is a view to step through, which runs in its place

A fence closes with three backticks, a `:::` with three colons.  All code of a lecture shares its names.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.container import container_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

import minigrad as mg
from minigrad.viz.rules import mathml

from .frames import Section

ROOT = Path(__file__).resolve().parents[1]
CONTAINERS = ("notes", "page", "slide", "reveal")
RUN = ("run", "picture", "live")


class LectureError(Exception):
    """Something in a lecture that is not so: a quoted line that is in no file, code that fails."""


@dataclass
class Lecture:
    """A source, and what its code has made: it is run once for both forms."""

    name: str
    text: str
    prose: bool = False  # in which quotation marks belong to sentences, and not to code
    live: dict[str, str] = field(default_factory=dict)  # file name -> page of a view
    title: str = ""
    sections: list[Section] = field(default_factory=list)
    _names: dict[str, Any] = field(default_factory=lambda: {"mg": mg, "__name__": "lecture"})
    _results: dict[int, tuple[str, Any]] = field(default_factory=dict)

    def result(self, number: int, code: str) -> tuple[str, Any]:
        """What a piece of code printed, and the value of its last line."""
        if number not in self._results:
            self._results[number] = self._run(code, f"{self.name}.md, code {number}")
        return self._results[number]

    def _run(self, code: str, called: str) -> tuple[str, Any]:
        linecache.cache[called] = (len(code), None, code.splitlines(keepends=True), called)
        tree = ast.parse(code, called)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(tree, called, "exec"), self._names)
                value = eval(compile(ast.Expression(last.value), called, "eval"), self._names) if last else None
        except Exception as error:
            raise LectureError(f"{called} fails: {type(error).__name__}: {error}") from error
        return printed.getvalue(), value


def parser(lecture: Lecture) -> MarkdownIt:
    """A Markdown parser that writes what is particular to lectures."""
    md = MarkdownIt("commonmark", {"html": False, "typographer": lecture.prose})
    md.enable(["table", "smartquotes"]).use(dollarmath_plugin)
    for name in CONTAINERS:
        md.use(container_plugin, name=name)

    def math(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return mathml(tokens[index].content.strip(), block=tokens[index].type == "math_block")

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


def words(inline: Token) -> str:
    """A line of Markdown without its marks."""
    return "".join(child.content for child in inline.children or ())


def coloured(code: str, language: str) -> str:
    """Code as HTML, its words in classes that the style sheets give colours."""
    name = language or "text"
    if name == "python" and code.startswith(">>> "):
        name = "pycon"
    words = highlight(code, get_lexer_by_name(name, stripnl=False), HtmlFormatter(nowrap=True))
    return f'<pre class="code"><code class="language-{escape(name)}">{words}</code></pre>\n'


def _fence(lecture: Lecture, token: Token, env: Any) -> str:
    """What a fenced block becomes."""
    kind, _, argument = token.info.strip().partition(" ")
    number = token.map[0] + 1 if token.map else 0
    code = coloured(token.content, "python" if kind in RUN else kind)
    if kind == "python" and argument:
        check_quote(lecture, token.content, argument)
        return f'<figure class="quote">{code}<figcaption>{escape(argument)}</figcaption></figure>\n'
    if kind not in RUN:
        return code
    printed, value = lecture.result(number, token.content)
    if kind == "run":
        shown = printed + ("" if value is None else f"{value!r}\n")
        return code + (f'<pre class="output">{escape(shown)}</pre>\n' if shown else "")
    if kind == "picture":
        return f'<figure class="picture">{value.to_svg()}</figure>\n'
    name = f"{lecture.name}-{number}.html"
    lecture.live[name] = value.to_html()
    title = escape(repr(value).strip("<>"), quote=True)
    return f'<div class="live"><iframe src="live/{name}" title="{title}"></iframe></div>\n'


def check_quote(lecture: Lecture, quoted: str, name: str) -> None:
    """Raise where a quoted line is not in the file, in this order and without a gap.  A gap is a line `...`."""
    path = ROOT / name
    if not path.is_file():
        raise LectureError(f"{lecture.name}.md quotes {name}, which is not a file")
    lines = [line for line in map(str.strip, path.read_text(encoding="utf-8").splitlines()) if line]
    parts: list[list[str]] = [[]]
    for line in filter(None, map(str.strip, quoted.splitlines())):
        if line in ("...", "# ..."):
            parts.append([])
        else:
            parts[-1].append(line)
    at = 0
    for part in filter(None, parts):
        places = [i for i in range(at, len(lines)) if lines[i : i + len(part)] == part]
        if not places:
            raise LectureError(f"{lecture.name}.md quotes lines that are not in {name}\n{_missing(part, lines, at)}")
        at = places[0] + len(part)


def _missing(part: list[str], lines: list[str], at: int) -> str:
    """The first line of a quoted part that does not follow the line before it, and why."""
    starts = [i for i in range(at, len(lines)) if lines[i] == part[0]]
    lengths = [next(n for n, line in enumerate(part) if lines[i + n : i + n + 1] != [line]) for i in starts]
    line = part[max(lengths, default=0)]
    if line not in lines:
        return f"  {line}"
    why = "left out: put a line `...` there" if line in lines[at:] and starts else "in another order"
    return f"  {line}\nThe file has this line, but {'lines before it are ' if starts else 'it is '}{why}"


def chosen(tokens: Sequence[Token], form: str) -> list[Token]:
    """The tokens that belong into a form, "page" or "slide"."""
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
    tokens = chosen(md.parse(lecture.text), "page")
    headings = [(int(token.tag[1]), tokens[i + 1]) for i, token in enumerate(tokens) if token.type == "heading_open"]
    lecture.sections = [Section(level, slug(inline.content), words(inline)) for level, inline in headings]
    lecture.title = lecture.sections[0].text if headings else lecture.name
    kept = [token for token in tokens if rules or token.type != "hr"]
    return str(md.renderer.render(kept, md.options, {"anchors": True}))


def as_slides(lecture: Lecture) -> str:
    """The slides, a section for each; one without a heading goes on with what the one before it is about."""
    md = parser(lecture)
    slides: list[list[Token]] = [[]]
    for token in chosen(md.parse(lecture.text), "slide"):
        begins = token.type == "heading_open" and token.tag in ("h1", "h2") and token.level == 0
        if (begins or token.type == "hr") and slides[-1]:
            slides.append([])
        if token.type != "hr":
            slides[-1].append(token)
    rendered, heading = [], ""
    for slide in filter(None, slides):
        goes_on = f'<p class="goes-on">{heading}</p>\n'
        if slide[0].type == "heading_open":
            heading, goes_on = md.renderer.render(slide[1:2], md.options, {}), ""
        rendered.append(f"<section>\n{goes_on}{md.renderer.render(slide, md.options, {})}</section>")
    return "\n".join(rendered)
