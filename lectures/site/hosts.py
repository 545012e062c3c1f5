"""Where the notebooks can be opened without an installation: one setting for all pages."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from .browser.lite import address

COLAB = "https://colab.research.google.com/github"
BINDER = "https://mybinder.org/v2/gh"


class Hosts(NamedTuple):
    """The address of the folder that `course browser` makes, and a repository on GitHub; either may be empty."""

    browser: str = ""
    repository: str = ""  # OWNER/NAME, or OWNER/NAME@BRANCH

    def links(self, path: str) -> dict[str, str]:
        """The addresses at which a notebook opens, by the words of the button.

        >>> list(Hosts("browser", "me/minigrad").links("00_start.ipynb").values())[1]
        'https://colab.research.google.com/github/me/minigrad/blob/main/notebooks/00_start.ipynb'
        """
        found = {"Run in the browser": f"{self.browser}/{address(path)}"} if self.browser else {}
        if self.repository:
            name, _, branch = self.repository.partition("@")
            branch = branch or "main"
            found["Colab"] = f"{COLAB}/{name}/blob/{branch}/notebooks/{path}"
            found["Binder"] = f"{BINDER}/{name}/{branch}?urlpath=lab/tree/notebooks/{path}"
        return found

    def buttons(self, path: str) -> str:
        """The links as buttons."""
        return "".join(
            f'<a class="button" href="{escape(link)}">{words}</a>' for words, link in self.links(path).items()
        )

    @property
    def first_on_colab(self) -> str:
        """The line that a notebook on Colab needs before its first cell, as HTML; empty without a repository."""
        if not self.repository:
            return ""
        line = f"!pip install -q git+https://github.com/{self.repository} anywidget latex2mathml"
        return f" On Colab, run this in a cell before all others: <code>{escape(line)}</code>"


NOWHERE = Hosts()
