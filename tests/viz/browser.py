"""A headless browser for the tests of widgets, or the reason why there is none."""

import atexit
import shutil
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


@cache
def chromium():
    """The path of a browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _missing():
    """Why there is no browser, or None."""
    if find_spec("playwright") is None:
        return "the package playwright is not installed"
    return None if chromium() else "no chromium on this machine: apt install chromium"


needs_browser = pytest.mark.skipif(_missing() is not None, reason=str(_missing()))


@cache
def _browser():
    """One for all tests of a process: there may be no second one."""
    from playwright.sync_api import sync_playwright

    playwright = sync_playwright().start()
    browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
    atexit.register(lambda: (browser.close(), playwright.stop()))
    return browser


@contextmanager
def opened(html=None, url=None, dark=False, size=(1100, 700), timeout=5000):
    """A page that shows some HTML; what it asks of the network is refused, noted, and must be nothing."""
    asked, errors = [], []
    page = _browser().new_page(
        viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light"
    )  # fmt: skip
    page.set_default_timeout(timeout)

    def refuse(route):
        if "127.0.0.1" in route.request.url or "localhost" in route.request.url:
            return route.continue_()
        asked.append(route.request.url)
        return route.abort()

    page.route("http*://**/*", refuse)
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        if html is not None:
            page.set_content(html)
        else:
            page.goto(url)
        yield page
    finally:
        page.close()
    assert not asked, f"the page asked the network for {asked}"
    assert not errors, errors
