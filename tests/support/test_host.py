"""How a reader stops a cell depends on what shows the notebook."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from minigrad.support import host


@pytest.mark.parametrize(("browser", "module", "said"), [
    (False, None, "Ctrl-C stops a program"),
    (False, "IPython", "The button ■ above stops a cell"),
    (True, None, "The button “Stop” stops a cell"),
    (True, "pyodide_kernel", "Kernel > Restart Kernel stops a cell; then run the cells above it again"),
])
def test_hints_name_the_way_to_stop_of_each_host(monkeypatch, browser, module, said):
    monkeypatch.setattr(host, "IN_BROWSER", browser)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    if module:
        loaded = ModuleType(module)
        loaded.get_ipython = lambda: SimpleNamespace(kernel=object())
        monkeypatch.setitem(sys.modules, module, loaded)
    assert host.how_to_stop() == said
