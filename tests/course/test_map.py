"""The map of the course is drawn from the library's sources: its rooms, their imports, and what lectures quote."""

import re

import pytest

from lectures.site.house import House, floors, picture, readers, rooms_page, units_of
from lectures.site.markup import slug
from lectures.site.rooms import COMPILER, ONLOOKERS, PACKAGE, ROOMS, imports_of, purpose_of, size_of, taught
from minigrad_course.unit import units
from tests.viz.browser import needs_browser, opened


@pytest.mark.slow
def test_rooms_import_only_from_floors_below_them():
    floor = {room: number for number, rooms in enumerate(floors()) for room in rooms}
    assert floor.keys() == {*ROOMS, *ONLOOKERS} and floor["support"] == 0
    for room in ROOMS:
        assert all(floor[other] < floor[room] for other in imports_of()[room]), room


def test_a_unit_stands_on_the_rooms_whose_code_its_lecture_quotes():
    text = "```python minigrad/core/node.py\nx\n```\n```python minigrad/compile/fusion/fuse.py Fusing.fit\n```\n"
    assert taught(text + "```python\nimport minigrad\n```") == {
        "core": ["node.py"], "compile/fusion": ["Fusing.fit"]}
    assert "06_reverse_mode" in readers()["autodiff"] and "11_fusion" in readers()["compile/fusion"]
    assert [unit.number for unit in units_of("autodiff", units())] == [6, 7]


@pytest.mark.slow
def test_every_unit_is_on_the_map():
    drawn = picture(units())
    for unit in units().values():
        assert f'href="{unit.key}.html"' in drawn, unit.key


@pytest.mark.slow
def test_every_room_is_on_the_map_and_has_a_section():
    body, sections = rooms_page(units())
    anchors = {section.anchor for section in sections}
    for room in (*ROOMS, *ONLOOKERS, *(f"compile/{inner}" for inner in COMPILER)):
        assert body.count(f'href="rooms.html#{slug(room)}"') == 2, room  # in the wide and in the narrow picture
        assert slug(room) in anchors and f'id="{slug(room)}"' in body
        assert purpose_of(PACKAGE / room / "__init__.py").endswith("."), room
    assert "Optimizers" in body.partition('<h2 id="optim">')[2].partition("</dl>")[0]  # its part of the API page


@pytest.mark.slow
def test_bars_have_one_scale():
    bars = re.findall(r'width="([\d.]+)" height="4"', House(units(), 860.0).to_svg("the map"))
    rooms = [room for rooms in reversed(floors()) for room in rooms]
    assert [float(bar) / size_of(room) for bar, room in zip(bars, rooms, strict=True)] == pytest.approx(
        [float(bars[0]) / size_of(rooms[0])] * len(rooms), rel=0.01)


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_map_can_be_read_and_clicked(site, width):
    with opened(url=(site / "rooms.html").as_uri(), size=(width, 800)) as page:
        assert page.locator(".house svg:visible").count() == 1
        sizes = page.evaluate("""[...document.querySelectorAll('.house svg text')]
          .filter((each) => each.checkVisibility())
          .map((each) => each.getScreenCTM().a * parseFloat(each.getAttribute('font-size')))""")
        assert min(sizes) >= 11.5 and page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator('.house [data-room="nn"]:visible').hover()
        page.wait_for_function(
            "[...document.querySelectorAll('.house [data-room=core] > rect')].some((each) => "
            "each.checkVisibility() && getComputedStyle(each).strokeWidth === '3px')")
        page.locator('.house [data-room="nn"]:visible').click()
        assert page.url.endswith("rooms.html#nn")
        page.locator('.house a.unit[href="05_gradient_functions.html"]:visible').first.click()
        page.wait_for_url("**/05_gradient_functions.html")
