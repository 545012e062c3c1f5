"""The stored reference pages are up to date with the library."""

from pathlib import Path

import pytest

from lectures.site import build_reference as builder

LECTURES = Path(__file__).resolve().parents[2] / "lectures"


@pytest.mark.parametrize("name", ["primitives.md", "errors.md", "coming_from.md", "differences.md"])
def test_the_stored_page_is_fresh(name):
    stored = (LECTURES / "reference" / name).read_text(encoding="utf-8")
    assert stored == builder.pages()[name], "run: python -m lectures.site.build_reference"


def test_errors_are_all_in_the_catalogue():
    page = builder.errors_page()
    for cls in builder.catalogue():
        assert f"## {cls.__name__}\n" in page and f"{cls.__name__}: " in page
    assert len(builder.catalogue()) >= 13


def test_pages_do_not_name_the_machine():
    for page in builder.pages().values():
        assert str(LECTURES.parent) not in page


def test_the_page_counts_what_it_lists():
    page = builder.primitives_page()
    from minigrad.core.primitive import P

    assert all(f"| `{op.name}(" in page for op in P)
    assert f"**{len(P)} primitives**" in page
    functions = builder.composed()
    assert page.count("\n- `") == sum(map(len, functions.values())) and all(functions.values())
