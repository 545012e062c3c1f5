"""Old names: they work, warn at the user's line, and are removed after two releases."""

import ast
from pathlib import Path

import pytest

import minigrad as mg
from minigrad.arguments.public import public
from minigrad.support.renaming import end_of, renamed

PACKAGE = Path(mg.__file__).parent


class Box:
    def __init__(self, content):
        self.content = content

    def total(self):
        return self.content.sum()

    summed = renamed("Box.summed", total, since="0.2")


FUNCTION = """
from minigrad.support.renaming import warn_renamed

def scaled(x, *, factor=1.0, scale=None):
    if scale is not None:
        warn_renamed("scale", "factor", "0.3")
        factor = scale
    return x * factor
"""


def scaled(*args, **kwargs):
    """A public function of minigrad with an old argument."""
    room = {"__name__": mg.ops.__name__, "Any": object}
    exec(compile(FUNCTION, str(PACKAGE / "ops" / "scaled.py"), "exec"), room)
    public(["scaled"], room)
    return room["scaled"](*args, **kwargs)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: renamed("mg.total", mg.sum, since="0.2")(mg.ones(3)), "mg.total is now mg.sum; .* removed in 0.4$"),
        (lambda: Box(mg.ones(3)).summed(), "Box.summed is now Box.total; .* removed in 0.4$"),
        (lambda: renamed("Case", Box, since="1.0")(mg.asarray(3.0)).total(), "Case is now Box; .* removed in 1.2$"),
        (lambda: scaled(mg.asarray(1.0), scale=3.0), "scale is now factor; .* removed in 0.5$"),
    ],
)
def test_an_old_name_works_and_the_warning_says_the_new_one(call, message):
    with pytest.warns(DeprecationWarning, match=message) as caught:
        assert call().item() == 3.0
    assert [warning.filename for warning in caught] == [__file__]


def test_an_old_name_works_in_a_jitted_function():
    total = renamed("mg.total", mg.sum, since="0.2")
    with pytest.warns(DeprecationWarning):
        assert mg.jit(lambda x: total(x) * 2)(mg.ones(3)).item() == 6.0


def outdated(path, version):
    """The old names in a file that this version must not have any more."""
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    found = []
    for call in calls:
        if isinstance(call.func, ast.Name) and call.func.id in ("renamed", "warn_renamed") and len(call.args) > 1:
            since = [a for a in (*call.args[2:], *[k.value for k in call.keywords]) if isinstance(a, ast.Constant)]
            ends = [tuple(map(int, end_of(a.value).split("."))) for a in since]
            found += [call.args[0].value for end in ends if end <= tuple(map(int, version.split(".")[:2]))]
    return found


@pytest.mark.slow
def test_names_that_are_two_releases_old_are_removed():
    paths = [path for path in PACKAGE.rglob("*.py") if path.name != "renaming.py"]
    assert [name for path in paths for name in outdated(path, mg.__version__)] == []


def test_outdated_finds_functions_and_arguments(tmp_path):
    (tmp_path / "a.py").write_text('f = renamed("f", g, since="0.2")\nwarn_renamed("scale", "factor", "0.3")\n')
    assert outdated(tmp_path / "a.py", "0.3.1") == []
    assert outdated(tmp_path / "a.py", "0.4.0") == ["f"]
    assert outdated(tmp_path / "a.py", "1.0.0") == ["f", "scale"]
