"""The pages have no fault that axe-core finds: names, roles, order of headings, contrast, in light and dark."""

import subprocess

import pytest

from tests.viz import axe
from tests.viz.browser import needs_browser, opened
from tests.viz.firefox import Firefox, needs_firefox

# A page of each kind; the run with `--long` has every page.
KINDS = ("index", "11_fusion", "06_reverse_mode.exercise", "coming_from")


@pytest.fixture(scope="module", autouse=True)
def there():
    """Without npm or a network these tests are skipped."""
    try:
        axe.script()
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"there is no axe-core: {error}")


def faults(path, dark=False):
    with opened(url=path.as_uri(), size=(1280, 900), dark=dark, strict=False) as page:
        if path.name.endswith(".slides.html"):
            page.wait_for_selector("body[data-ready]")
        return axe.faults(page)


@needs_browser
def test_a_fault_is_found():
    with opened('<html lang="en"><title>a</title><main><h1>a</h1><img src="data:,"></main>', strict=False) as page:
        assert [each.partition(":")[0] for each in axe.faults(page)] == ["image-alt"]


@needs_browser
@pytest.mark.parametrize("name", KINDS)
def test_a_page_of_each_kind(site, name):
    assert faults(site / f"{name}.html", dark=KINDS.index(name) % 2 == 1) == []


@needs_browser
def test_slides(site):
    assert faults(site / "00_start.slides.html") == []


@needs_browser
@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True])
def test_every_page(site, dark):
    found = {path.name: faults(path, dark) for path in sorted(site.glob("*.html"))}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@needs_firefox
@pytest.mark.slow
def test_pages_and_the_search_in_firefox(site, tmp_path):
    browser = Firefox(tmp_path)
    try:
        for name in ("11_fusion", "index"):
            assert axe.faults_in_firefox(browser, (site / f"{name}.html").as_uri()) == []
        assert browser.run("ranked('how do I freeze layers')[0][2]") == "howto_freeze.html"
    finally:
        browser.close()
