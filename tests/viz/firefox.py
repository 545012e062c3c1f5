"""Firefox without a window, driven by WebDriver BiDi, which needs no other program."""

import contextlib
import json
import shutil
import socket
import subprocess
import time
from importlib.util import find_spec

import pytest

MISSING = [name for name, found in (
    ("the program firefox", shutil.which("firefox")), ("the package websocket-client", find_spec("websocket")),
) if not found]
needs_firefox = pytest.mark.skipif(bool(MISSING), reason=f"there is not {' and '.join(MISSING)} on this machine")
RIGHT, END = "\ue014", "\ue010"


class Firefox:
    """A page in Firefox."""

    def __init__(self, folder):
        import websocket

        self.folder, self.count = folder, 0
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = ["--headless", "--no-remote", f"--remote-debugging-port={port}", "--profile", str(folder)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([shutil.which("firefox"), *options], **quiet)
        for _ in range(300):
            with contextlib.suppress(OSError):
                address = f"ws://127.0.0.1:{port}/session"
                self.socket = websocket.create_connection(address, suppress_origin=True, timeout=60)
                break
            time.sleep(0.1)
        self.ask("session.new", capabilities={})
        self.page = {"context": self.ask("browsingContext.getTree")["contexts"][0]["context"]}

    def ask(self, method, **parameters):
        """Send a command, and return its result."""
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.count:
                assert answer["type"] == "success", answer
                return answer["result"]

    def open(self, html):
        """Show a page, and wait for the view in it."""
        path = self.folder / "page.html"
        path.write_text(html, encoding="utf-8")
        self.ask("browsingContext.navigate", **self.page, url=path.as_uri(), wait="complete")
        for _ in range(100):
            if self.run("document.querySelector('.mg-view')?.focus() ?? !!document.querySelector('.mg-view')"):
                return
            time.sleep(0.05)
        raise AssertionError("there is no view")

    def run(self, code):
        """The value of an expression."""
        code = f"JSON.stringify({code})"
        found = self.ask("script.evaluate", expression=code, target=self.page, awaitPromise=True)
        assert found["type"] == "success", found
        return json.loads(found["result"].get("value", "null"))

    def press(self, *keys):
        """Press keys one after the other."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.ask("input.performActions", **self.page, actions=[{"type": "key", "id": "keys", "actions": actions}])

    def close(self):
        """End the browser."""
        self.socket.close()
        self.process.terminate()
        self.process.wait()
