"""Tables as text and HTML."""

from minigrad.support.table import as_html, as_table, bytes_text


def test_columns_are_as_wide_as_their_widest_cell():
    assert as_table(("a", "number"), [("long", "1")], left=1) == "a     number\nlong       1"
    assert as_table(("a",), [], left=0) == "a"


def test_hostile_cells_are_only_text():
    assert "<script>" not in as_html(("<script>",), [("<script>",)])


def test_amounts_have_the_unit_that_fits():
    assert [bytes_text(n) for n in (0, 999, 1000, 2_500_000, 7e9)] == ["0 B", "999 B", "1 kB", "2.5 MB", "7 GB"]
