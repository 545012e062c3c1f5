"""Modules of other packages under names in minigrad: one module has both names."""

import sys
from importlib import import_module

import pytest

import minigrad as mg
from minigrad.core import guests


@pytest.fixture
def visiting(tmp_path, monkeypatch):
    """A package `visitor` that is `minigrad.guest`, and that has a module and a package in it."""
    for name, text in {
        "visitor/__init__.py": "runs = []", "visitor/part.py": "from . import runs\nruns.append(__name__)\nx = 3",
        "visitor/inner/__init__.py": "", "visitor/inner/deep.py": "from ..part import x",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(guests, "guests", lambda: {"minigrad.guest": "visitor", "minigrad.nn.guest": "visitor.part"})
    yield
    for name in [*sys.modules]:
        if name.startswith(("visitor", "minigrad.guest", "minigrad.nn.guest")):
            del sys.modules[name]
    vars(mg).pop("guest", None)
    vars(mg.nn).pop("guest", None)


@pytest.mark.parametrize("first", ["minigrad.guest.inner.deep", "visitor.inner.deep"])
def test_a_module_runs_once_whichever_name_comes_first(visiting, first):
    import_module(first)
    for name in ("", ".part", ".inner", ".inner.deep"):
        module = import_module(f"minigrad.guest{name}")
        assert module is import_module(f"visitor{name}")
        assert module.__name__ == module.__spec__.name == f"visitor{name}" and module.__package__.startswith("visitor")
    assert import_module("visitor").runs == ["visitor.part"]


def test_each_form_of_an_import_finds_a_guest(visiting):
    namespace = {}
    exec("from minigrad import guest\nimport minigrad.guest.part as part\nfrom minigrad.guest.part import x\n"
         "from minigrad.nn import guest as other\nfrom minigrad.guest import inner", namespace)
    assert namespace["part"] is namespace["other"] and namespace["x"] == 3
    assert mg.guest is namespace["guest"] and namespace["inner"].__name__ == "visitor.inner"


def test_what_a_guest_lacks_is_named(visiting):
    with pytest.raises(ImportError, match=r"No module named 'visitor\.nothing'"):
        import_module("minigrad.guest.nothing")
    with pytest.raises(mg.MissingImportError, match="minigrad has no 'gest'"):
        import_module("minigrad.gest")
    assert import_module("minigrad.guest").__spec__.name == "visitor"


def test_a_name_that_is_not_imported_yet_gets_the_hint_to_import_it(visiting):
    with pytest.raises(mg.MissingNameError, match=r"import minigrad\.guest"):
        _ = mg.guest


def test_only_names_of_guests_are_found():
    assert guests.place_of("minigrad.nn") is None and guests.place_of("numpy.random") is None
    assert guests.GuestFinder.find_spec("minigrad.nothing") is None
