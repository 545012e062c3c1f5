"""The test suite of the array API standard.  Skipped without a checkout of the suite (see README.md)."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
XFAILS = Path(__file__).with_name("xfails.txt")
CHECKOUT = os.environ.get("ARRAY_API_TESTS", "")

# Complex numbers are left out, but the suite looks up the widest complex dtype, so one must exist.
# Two similar lines in one of its files look it up (the other one for real numbers).  They are changed in a copy.
WIDEST = re.compile(r"key=lambda x: x\[1\]$", re.MULTILINE)
# The standard's special cases of complex numbers have these names; tests of the function `imag` are not among them.
NOT_COMPLEX = "not imag or elementwise or signature"


def prepared(checkout, folder):
    """A copy of the suite that runs without complex dtypes."""
    copy = shutil.copytree(checkout, folder / "suite", ignore=shutil.ignore_patterns(".git"))
    helpers = copy / "array_api_tests" / "dtype_helpers.py"
    text, count = WIDEST.subn("key=lambda x: x[1], default=(None, 0)", helpers.read_text(encoding="utf-8"))
    assert count, "the suite has changed: look for the widest complex dtype in dtype_helpers.py"
    helpers.write_text(text, encoding="utf-8")
    return copy


@pytest.mark.slow
@pytest.mark.skipif(not CHECKOUT, reason="ARRAY_API_TESTS does not name a checkout of data-apis/array-api-tests")
def test_standard_test_suite_passes(tmp_path):
    suite = prepared(Path(CHECKOUT), tmp_path)
    settings = {
        "ARRAY_API_TESTS_MODULE": "minigrad",
        "ARRAY_API_TESTS_VERSION": "2024.12",
        "ARRAY_API_TESTS_SKIP_DTYPES": "complex64,complex128",
        "PYTHONPATH": str(ROOT),
    }
    options = ["--max-examples", "20", "--derandomize", "--disable-deadline", "--disable-extension", "fft"]
    options += ["-k", NOT_COMPLEX, "--xfails-file", str(XFAILS), "-o", "xfail_strict=true"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir", ".", "array_api_tests/", *options, "-q", "-W", "ignore",
         "--tb=short", "-p", "no:cacheprovider"],
        cwd=suite, env=os.environ | settings, capture_output=True, text=True,
    )
    print(run.stdout[-5000:], run.stderr[-2000:])
    assert run.returncode == 0, run.stdout.strip().splitlines()[-1]


def test_expected_failures_have_a_reason():
    """Each line of the file is a test's name under a comment that says why it fails."""
    reason = ""
    for line in XFAILS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            reason = line
        elif line:
            assert reason, f"{line}: say why, in a line that starts with #"
            assert line.startswith("array_api_tests/test_") and "::" in line
        else:
            reason = ""
