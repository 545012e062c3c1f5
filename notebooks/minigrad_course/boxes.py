"""What a check says: one text, as a structured box in a notebook and as lines elsewhere."""

from __future__ import annotations

import re
from html import escape
from typing import NamedTuple

from minigrad.support.source import notebook_shell
from minigrad.support.table import printable
from minigrad.viz.colours import themes

# The kind of a box: its sign, its first word, its colour, and whether a screen reader interrupts to read it.
KINDS = {
    "right": ("✓", "Right", "good", "status"), "wrong": ("✗", "Wrong", "bad", "alert"),
    "stopped": ("✗", "Stopped", "bad", "alert"), "open": ("○", "Not yet", "quiet", "status"),
    "noted": ("○", "Noted", "now", "status"), "misused": ("!", "Note", "now", "alert"),
}
LABELS = ("Expected:", "Got:")
STYLE = """
.mg-view.mg-feedback { border: 1px solid var(--line); border-left: 5px solid var(--here); border-radius: 6px;
  background: color-mix(in srgb, var(--here) 7%, var(--paper)); color: var(--ink); max-width: 60em; margin: 4px 0;
  padding: 8px 14px; font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
.mg-feedback p, .mg-feedback dl { margin: 0; overflow-wrap: anywhere; }
.mg-feedback dl { display: grid; grid-template-columns: max-content 1fr; gap: 1px 12px; margin: 4px 0; }
.mg-feedback dt, .mg-feedback .mg-where { color: var(--quiet); }
.mg-feedback dt, .mg-feedback dd { float: none; width: auto; margin: 0; }
.mg-feedback code { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; color: inherit;
  background: color-mix(in srgb, var(--line) 30%, transparent); border-radius: 3px; padding: 0 3px; }
.mg-feedback pre { margin: 4px 0; padding: 4px 8px; overflow-x: auto; border-radius: 4px; background: var(--tint);
  color: var(--ink); font: 12.5px/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
.mg-feedback strong { color: color-mix(in srgb, var(--here) 55%, var(--ink)); }
.mg-feedback .mg-hint strong { color: var(--there); }
.mg-feedback .mg-hint { margin-top: 5px; padding-top: 5px; border-top: 1px solid var(--line); }
"""


class Box(NamedTuple):
    """What is said about a task: a message of one or more lines, and a hint.

    >>> print(Box("wrong", "rise", "your answer 0.2 is not right", "half of it"))
    ✗ rise: your answer 0.2 is not right
      Hint: half of it
    """

    kind: str
    task: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        words = f"{KINDS[self.kind][0]} {self.task}: {self.message}"
        return printable(words if self.hint is None else f"{words}\n  Hint: {self.hint}")

    def html(self) -> str:
        """The same as HTML: a sign and a first word, what was expected and got, the lines of code, and the hint."""
        sign, word, colour, role = KINDS[self.kind]
        first, *rest = self.message.split("\n")
        said = "" if self.kind == "right" else f" {_marked(first)}"
        worth = first.partition(", ")[2] if self.kind == "right" else ""
        head = f"{_word(sign, word)} <code>{escape(self.task)}</code>{said or f' {escape(worth)}'}"
        hint = f'<p class="mg-hint">{_word("→", "Hint:")} {_marked(self.hint)}</p>' if self.hint else ""
        return (
            f"<style>{themes()}{STYLE}</style>"
            f'<div class="mg-view mg-feedback" style="--here: var(--{colour})" role="{role}" data-kind="{self.kind}" '
            f'aria-label="{word}: {escape(self.task)}"><p>{head}</p>{_rest(rest)}{hint}</div>'
        )

    def show(self) -> bool:
        """Show the box in a notebook; return whether there is a notebook."""
        shell = notebook_shell()
        if not hasattr(shell, "kernel"):
            return False
        shell.display_pub.publish({"text/html": self.html(), "text/plain": str(self)})
        return True

    def tell(self) -> None:
        """Show the box in a notebook; print the text elsewhere."""
        if not self.show():
            print(self)


def _word(sign: str, word: str) -> str:
    return f'<strong><span aria-hidden="true">{sign}</span> {word}</strong>'


def _marked(text: str) -> str:
    """Text as HTML, in which `code` is marked as in Markdown."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _rest(lines: list[str]) -> str:
    """The further lines of a message: labelled values, lines of code, and sentences."""
    parts: list[str] = []
    for line in lines:
        label, _, value = line.strip().partition(" ")
        code = re.match(r"  (line \d+ of [^:]+): ?(.*)", line)
        if label in LABELS:
            parts.append(f"<dl><dt>{label}</dt><dd>{_marked(value)}</dd></dl>")
        elif code:
            parts.append(f'<p class="mg-where">{escape(code[1])}:</p><pre>{escape(code[2])}</pre>')
        elif line.startswith("  in "):
            parts.append(f'<p class="mg-where">in <code>{escape(line[5:])}</code></p>')
        elif line.strip() == "^" and parts and parts[-1].endswith("</pre>"):
            lead = len(lines[lines.index(line) - 1].partition(": ")[0]) + 2
            parts[-1] = parts[-1].removesuffix("</pre>") + f"\n{line[lead:]}</pre>"
        else:
            parts.append(f"<p>{_marked(line.strip())}</p>")
    return "".join(parts).replace("</dl><dl>", "")
