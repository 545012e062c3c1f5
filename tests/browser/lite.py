"""A static server, and the notebooks of `python3 course browser` in a browser, for tests and figures."""

import contextlib
import functools
import http.server
import threading

NOTEBOOK = "[...jupyterapp.shell.widgets('main')].find((each) => each.context?.path.endsWith('.ipynb'))"
KERNEL = f"{NOTEBOOK}?.sessionContext?.session?.kernel"
READY = f"!!globalThis.jupyterapp && {KERNEL}?.status === 'idle'"
RUN_ALL = "jupyterapp.commands.execute('notebook:run-all-cells')"
SAVE = "jupyterapp.commands.execute('docmanager:save')"
OUTPUTS = f"""{NOTEBOOK}.content.widgets.filter((cell) => cell.model.type === "code").map((cell) => cell.model.outputs
  .toJSON().map((each) => each.text ?? each.evalue ?? each.data?.["text/plain"] ?? each.output_type).join("\\n"))"""
EXECUTE = """(async (code) => {
  const said = [];
  const future = KERNEL.requestExecute({ code });
  future.onIOPub = ({ content }) => said.push(content.text ?? content.evalue ?? content.data?.["text/plain"] ?? "");
  await future.done;
  return said.join("");
})""".replace("KERNEL", KERNEL)
# The module of the first page, in any page.
WORK = "import(new URL('work.js', location.href.replace(/\\/(notebooks|lab|tree)\\/.*/, '/')))"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files as `python -m http.server` does, and counts them."""

    def do_GET(self):
        self.server.asked.append(self.path)
        super().do_GET()

    def copyfile(self, source, outputfile):
        content = source.read()
        self.server.sent += len(content)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the page may be closed by now
            outputfile.write(content)

    def end_headers(self):
        if self.path.endswith("?isolated"):
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def guess_type(self, path):
        return self.server.types.get(str(path).rpartition(".")[2]) or super().guess_type(path)

    def log_message(self, *words):
        pass


@contextlib.contextmanager
def served(folder, **types):
    """A static server on loopback: its `address`, the paths that were `asked` for, and the bytes that were `sent`.

    `types` are wrong types that it claims: `served(folder, wasm="text/plain")`.
    """
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder)) as server:
        server.types, server.asked, server.sent = types, [], 0
        server.address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
