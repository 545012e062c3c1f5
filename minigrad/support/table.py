"""Tables and byte counts as text and as HTML."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def printable(text: str) -> str:
    r"""Text that is safe in a terminal or on a page: control characters are escaped, line breaks are kept.

    >>> print(printable("a\x1b[2Jb \ud800"))
    a\x1b[2Jb \ud800
    """
    if text.isprintable():
        return text
    return "\n".join([line if line.isprintable() else _escaped(line) for line in text.split("\n")])


def _escaped(line: str) -> str:
    shown = [character.isprintable() or unicodedata.category(character) == "Zs" for character in line]
    return "".join([c if seen else c.encode("unicode_escape").decode() for c, seen in zip(line, shown)])


def escape(text: str) -> str:
    r"""Any text, escaped for HTML and SVG.

    >>> print(escape("a < b\x00"))
    a &lt; b\x00
    """
    import html  # only now: its tables take a while to import

    return html.escape(printable(text))


def as_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """A text table: the first `left` columns are aligned left, the others, which are numbers, right.

    >>> print(as_table(("op", "calls"), [("add", "3"), ("multiply", "12")], left=1))
    op        calls
    add           3
    multiply     12
    """
    lines = [[printable(cell).replace("\n", "\\n") for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join(
        "  ".join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip()
        for line in lines
    )


def as_html(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table as HTML, for notebooks.

    >>> as_html(("op",), [("a < b",)])
    '<table><thead><tr><th>op</th></tr></thead><tbody><tr><td>a &lt; b</td></tr></tbody></table>'
    """
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def bytes_unit(size: float) -> tuple[float, str]:
    """The largest unit that is at most `size` bytes: its number of bytes, and its name.

    >>> bytes_unit(100), bytes_unit(4_100_000)
    ((1.0, 'B'), (1000000.0, 'MB'))
    """
    for one, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= one:
            return one, unit
    return 1.0, "B"


def bytes_text(size: float) -> str:
    """A number of bytes with its unit.

    >>> bytes_text(100), bytes_text(4_100_000)
    ('100 B', '4.1 MB')
    """
    one, unit = bytes_unit(size)
    return f"{size:.0f} B" if unit == "B" else f"{size / one:.3g} {unit}"


def time_unit(seconds: float) -> tuple[float, str]:
    """The unit of a time: its seconds, and its name.

    >>> time_unit(0.02)
    (0.001, 'ms')
    """
    return (1e-6, "µs") if seconds < 0.9995e-3 else (1e-3, "ms") if seconds < 0.9995 else (1.0, "s")


def time_text(seconds: float) -> str:
    """A time with its unit.

    >>> time_text(2.5e-6), time_text(0.9996e-3), time_text(1.5)
    ('2.5 µs', '1 ms', '1.5 s')
    """
    one, unit = time_unit(seconds)
    return f"{seconds / one:.3g} {unit}"


def counted(count: int, thing: str, plural: str = "") -> str:
    """A number of things.

    >>> counted(1, "point"), counted(2_000, "step"), counted(2, "launch", "launches")
    ('1 point', '2,000 steps', '2 launches')
    """
    return f"{count:,} {thing if count == 1 else plural or thing + 's'}"
