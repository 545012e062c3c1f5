"""Shared by all tests: the number of hypothesis examples, skipped GPU tests, and the list of skipped tests."""

import os
from collections import Counter

import hypothesis
import pytest

import minigrad as mg
from minigrad.devices.compiled import native

# Every run tries the same examples; MINIGRAD_EXAMPLES=2000 tries more, and random ones.
EXAMPLES = int(os.environ.get("MINIGRAD_EXAMPLES", "0"))
QUICK_EXAMPLES, USUAL_EXAMPLES, LONG_EXAMPLES = 5, 20, 400


def pytest_configure(config):
    examples = USUAL_EXAMPLES
    if config.getoption("--long"):
        examples = LONG_EXAMPLES
    elif config.getoption("--quick"):
        examples = QUICK_EXAMPLES
    hypothesis.settings.register_profile(
        "minigrad",
        max_examples=EXAMPLES or examples,
        derandomize=not EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
    )
    hypothesis.settings.load_profile("minigrad")


@pytest.fixture(autouse=True)
def machine_code_is_found_again():
    """A process looks for machine code once; where a test lets NumPy run kernels, later tests look again."""
    yield
    if native.cache_info().currsize and native() is None:
        native.cache_clear()


def pytest_collection_modifyitems(items):
    marked = [item for item in items if item.get_closest_marker("gpu")]
    try:
        mg.as_device("cuda") if marked else None
    except mg.DeviceError as error:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=str(error).splitlines()[0]))


def pytest_terminal_summary(terminalreporter):
    """List the skipped tests with their reasons at the end, with any options of pytest."""
    skipped = [report.longrepr for report in terminalreporter.stats.get("skipped", ())]
    reasons = Counter(why[2].removeprefix("Skipped: ") for why in skipped if isinstance(why, tuple))
    if reasons:
        terminalreporter.section("NOT TESTED")
        for reason, count in sorted(reasons.items()):
            terminalreporter.write_line(f"{count} test{'s' * (count > 1)}: {reason}")
