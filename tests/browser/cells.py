"""A small site with cells that readers run, and its cells in Chromium, for tests and figures."""

from lectures.site import build_site
from lectures.site.browser import live
from lectures.site.frames import page
from lectures.site.markup import Lecture, as_page

STATUS = "document.querySelectorAll('.try .status')[{}].textContent"


def site_of(text, folder, pyodide_folder):
    """Write a site of one page, `cells.html`, that has the cells of a lecture's text."""
    lecture = Lecture("cells", text, editable=True)
    body = as_page(lecture)
    for name in ("fonts.css", "colours.css", "site.css", "page.js", "search.js"):
        (folder / name).write_bytes((build_site.STATIC / name).read_bytes())
    (folder / "search-index.js").write_text("const LINES = [];")
    (folder / "live").mkdir()
    for name, view in lecture.live.items():
        (folder / "live" / name).write_text(view, encoding="utf-8")
    (folder / "cells.html").write_text(page("cells", "Cells", body, kind="lecture"), encoding="utf-8")
    live.write(folder, live.files_of(str(pyodide_folder)))


class Cells:
    """The cells of a page in Chromium."""

    def __init__(self, shown):
        self.page = shown

    def write(self, number, code):
        self.page.locator(".try textarea").nth(number).fill(code)

    def run(self, number):
        self.page.locator(".try textarea").nth(number).press("Shift+Enter")

    def wait(self, number, status):
        """Wait for the status of a cell, and return its output."""
        self.page.wait_for_function(f"/{status}/.test({STATUS.format(number)})")
        return self.page.locator(".try .said").nth(number).inner_text().strip()
