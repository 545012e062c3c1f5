"""A headless browser for tests of pages, or the reason why there is no browser."""

import atexit
import json
import shutil
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 180_000  # ms until a test fails that waits for a page: the machine may be busy
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]


@cache
def chromium():
    """The path of a browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def missing():
    """The reason why there is no browser, or None."""
    if find_spec("playwright") is None:
        return "there is no package playwright in this environment"
    return None if chromium() else "there is no browser on this machine: apt install chromium"


needs_browser = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@cache
def _browser():
    """One browser for all tests of a process: a second one is not allowed."""
    from playwright.sync_api import sync_playwright

    playwright = sync_playwright().start()
    browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
    atexit.register(lambda: (browser.close(), playwright.stop()))
    return browser


# Outputs and saved pages show their views after they have loaded: decompressing a script or data takes a moment.
SHOWN = """!document.querySelector('.mg-output > img[onload]')
  && (!document.querySelector('#view ~ #data') || document.querySelector('.mg-view'))"""
FRAMES = """async () => {
  for (let i = 0; i < 3; i += 1) await new Promise(requestAnimationFrame);
  await document.fonts.ready;
}"""


def settled(page):
    """Wait until a page, or a frame in it, has handled moves of the pointer, observed sizes and drawn what they change.

    An observer runs after the callbacks of its frame, and may ask for one more frame.
    """
    page.evaluate(FRAMES)


@contextmanager
def opened(
    html=None, url=None, dark=False, size=(1100, 700), timeout=PATIENCE, allowed=(), strict=True, scripts=True,
    fingers=False,
):
    """A page that shows some HTML.  Requests to the network are refused, and a request fails the test.

    `allowed` are words in addresses that a host's own page may ask for, in vain; a host's own errors do not count when
    it is not `strict`.
    """
    asked, errors = [], []
    page = _browser().new_page(
        viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light",
        java_script_enabled=scripts, has_touch=fingers, is_mobile=fingers,
    )
    page.set_default_timeout(timeout)

    def refuse(route):
        if route.request.url.startswith(("http://127.0.0.1:", "http://localhost:")):
            return route.continue_()
        if not any(word in route.request.url.lower() for word in allowed):
            asked.append(route.request.url)
        return route.abort()

    page.route("http*://**/*", refuse)
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        if html is not None:
            page.set_content(html)
        else:
            page.goto(url)
        if scripts:
            page.wait_for_function(SHOWN)
            settled(page)
        yield page
    finally:
        page.close()
    assert not asked, f"the page asked the network for {asked}"
    assert not (errors and strict), errors


def outputs(*shown, head=""):
    """A page with outputs as a host inserts them: as the inside of an element, which runs no `<script>`."""
    forms = json.dumps([view._repr_mimebundle_()["text/html"] for view in shown]).replace("<", "\\u003c")
    return f"""<!doctype html><head>{head}</head><body>
      <section id="slide" style="transform: scale(0.8)"></section><script>
      window.slides = 0;
      document.addEventListener("keydown", () => {{ window.slides += 1; }});
      for (const form of {forms}) {{
        const output = document.createElement("div");
        output.innerHTML = form;
        document.getElementById("slide").append(output);
      }}
    </script></body>"""
