"""An exhibit: what shows itself wherever it is, as well as it can there.

In a notebook it runs in the output; where nothing may run, the picture inside an `<img>` and a text are left; a file
that it is saved to needs no other file, and no network.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from html import escape
from pathlib import Path as File
from typing import Any, ClassVar

from ..core.errors import MinigradError
from .page import live, page, widget
from .picture import pixels


class Exhibit:
    """What all of them have in common.  Each says in four ways what is shown: `data`, `to_svg`, `text`, its repr."""

    script: ClassVar[str]  # the name of what runs in the page

    def data(self) -> dict[str, Any]:
        """All that is shown, as plain data."""
        raise NotImplementedError

    def to_svg(self) -> str:
        """One picture that says the most."""
        raise NotImplementedError

    def text(self) -> str:
        """The same in words."""
        raise NotImplementedError

    def to_html(self) -> str:
        """A page that needs no other file, and no network."""
        return page(self.script, self.data(), repr(self), self._static())

    def to_png(self, scale: float = 2.0) -> bytes:
        """The picture in pixels."""
        return pixels(self.to_svg(), scale)

    def save(self, path: str | File) -> None:
        """Write a page (.html), a picture (.svg, .png), or a text (.txt)."""
        file = File(path)
        forms: dict[str, Callable[[], str | bytes]] = {
            ".html": self.to_html, ".svg": self.to_svg, ".png": self.to_png, ".txt": self.text,
        }  # fmt: skip
        if file.suffix not in forms:
            raise MinigradError(
                f"this view can't be saved as {file.name!r}", expect=f"a name that ends in {', '.join(forms)}"
            )
        made = forms[file.suffix]()
        file.write_bytes(made if isinstance(made, bytes) else made.encode())

    def widget(self) -> Any:
        """The view as a widget, for where scripts in an output do not run and widgets do."""
        return live(self.script, self.data())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        forms = {"text/html": self._static(), "image/svg+xml": self.to_svg(), "text/plain": f"{self!r}\n{self.text()}"}
        return widget(self.script, self.data(), forms)

    def _static(self) -> str:
        """What is seen where no script runs."""
        encoded = base64.b64encode(self.to_svg().encode()).decode()
        listing = f"<details><summary>the same in words</summary><pre>{escape(self.text())}</pre></details>"
        return f'<img alt="{escape(repr(self))}" src="data:image/svg+xml;base64,{encoded}">{listing}'
