"""The colours of all views, by name, in the light theme and in the dark one."""

from __future__ import annotations

import re

COLOURS = {
    "ink": ("#1f2328", "#e6edf3"), "quiet": ("#57606a", "#9da7b1"), "paper": ("#ffffff", "#14181d"),
    "tint": ("#f4f6f8", "#1c2229"), "line": ("#c4cad1", "#3d444d"),
    "there": ("#0072b2", "#58b4e8"), "there-fill": ("#eaf4fa", "#10293a"), "input-fill": ("#f0f9fe", "#12283a"),
    "back": ("#d55e00", "#ff9e5e"), "back-fill": ("#fdf0e8", "#3a2212"),
    "good": ("#009e73", "#3ecf9e"), "leaf-fill": ("#e9f7f2", "#10322a"),
    "library": ("#a8558a", "#e08fc0"), "library-fill": ("#f9eff6", "#35192b"),
    # of text, which needs more contrast than a line
    "back-text": ("#b04d00", "#ff9e5e"), "good-text": ("#007a59", "#3ecf9e"), "now-text": ("#8a5f00", "#f2c14e"),
    "library-text": ("#97487a", "#e08fc0"),
    "bad": ("#b3261e", "#ff7b72"), "now": ("#e69f00", "#f2c14e"),
}
LIGHT = {name: light for name, (light, _) in COLOURS.items()}
NAMES = {light: name for name, light in LIGHT.items()}
ATTRIBUTE = re.compile(f'(?<==")({"|".join(NAMES)})(?=")')  # text of users has no quotes: they are escaped
# The themes of the hosts: a view's own, that of the system, and those of JupyterLab, VS Code and our pages.
THEMES = """
.mg-view { LIGHT }
@media screen and (prefers-color-scheme: dark) { .mg-view:not(.mg-light) { DARK } }
[data-jp-theme-light="false"] .mg-view, .vscode-dark .mg-view, .vscode-high-contrast .mg-view,
html[theme="dark"] .mg-view, body.dark .mg-view, .mg-view.mg-dark { DARK }
[data-jp-theme-light="true"] .mg-view, .vscode-light .mg-view, .vscode-high-contrast-light .mg-view,
html[theme="light"] .mg-view { LIGHT }
"""


def themes() -> str:
    """The style that gives `--ink`, `--there` and the others their values.

    >>> "--ink: #1f2328;" in themes() and "--ink: #e6edf3;" in themes()
    True
    """
    light, dark = ("".join([f"--{name}: {pair[i]}; " for name, pair in COLOURS.items()]) for i in (0, 1))
    return THEMES.replace("LIGHT", light).replace("DARK", dark)


def themed(svg: str) -> str:
    """A part of a picture for a page, whose style defines the colours.

    >>> themed('<rect fill="#ffffff"/>')
    '<rect fill="var(--paper)"/>'
    """
    return ATTRIBUTE.sub(lambda found: f"var(--{NAMES[found[0]]})", svg)
