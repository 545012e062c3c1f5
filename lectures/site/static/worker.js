// Runs Python for the cells of a page.  The page fetches the files and hands them over; nothing is loaded from here, so
// that it works from the disk as well.
const files = new Map(); // name -> a promise of a Response with its bytes, and the function that fulfils the promise
let python, page, stopAsked = false, listenAt = 0, shared = null, output = null;
const canWait = "Suspending" in WebAssembly; // JSPI: Python can wait for a message in the middle of a cell

function file(name) {
  if (!files.has(name)) {
    let give;
    const given = new Promise((yes) => { give = yes; });
    files.set(name, { given, give });
  }
  return files.get(name);
}

const TYPES = { wasm: "application/wasm", js: "text/javascript", json: "application/json" };
const bytesOf = async (name) => new Uint8Array(await (await file(name).given).arrayBuffer());
const scriptOf = async (name) => URL.createObjectURL(await (await file(name).given).blob());
self.fetch = async (address) => file(new URL(address.url ?? address).pathname.split("/").pop()).given;

function decoded(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function take(name, content) {
  const bytes = typeof content === "string" ? decoded(content) : content; // from the disk it comes as base64
  const packed = bytes[0] === 0x1f && bytes[1] === 0x8b; // by gzip; a server may have opened it
  const stream = new Blob([bytes]).stream();
  const type = TYPES[name.split(".").pop()] ?? "application/octet-stream";
  const opened = packed ? stream.pipeThrough(new DecompressionStream("gzip")) : stream;
  file(name).give(new Response(opened, { headers: { "content-type": type } }));
}

// Python reads [0] every few instructions and raises the signal that it finds: 2 is an interrupt; with 10, Python waits for a
// message.  Another object may take the place of this one for a while and read it.
const signals = {
  get 0() {
    if (shared) return Atomics.exchange(shared, 0, 0);
    if (!canWait || performance.now() < listenAt) return 0;
    listenAt = performance.now() + 100;
    return 10;
  },
  set 0(value) {},
};

const message = () => new Promise((yes) => {
  const channel = new MessageChannel();
  channel.port1.onmessage = () => { channel.port1.close(); yes(); };
  channel.port2.postMessage(0);
});

const START = `
import pathlib, page_of_site as site
from minigrad_course.page import Page
from minigrad_course.results import FILE
if site.keeps:
    pathlib.Path(FILE).touch() # a check writes its result there
page = Page(site.send)
if site.shared:
    page.listen(2, lambda: True, lambda: None)
elif site.canWait:
    from pyodide.ffi import can_run_sync, run_sync
    page.listen(10, site.isStopped, lambda: can_run_sync() and run_sync(site.message()))
page.run
`;
const HOME = "/home/pyodide/course";

async function load({ core, archives, lock }) {
  file("pyodide-lock.json").give(new Response(JSON.stringify({ info: lock, packages: {} })));
  for (const name of core) importScripts(await scriptOf(name));
  python = await loadPyodide({ indexURL: "https://python.invalid/" });
  const libraries = python.runPython("import sysconfig; sysconfig.get_path('purelib')");
  for (const name of archives) python.unpackArchive(await bytesOf(name), "zip", { extractDir: libraries });
  const keeps = await keepFiles();
  python.registerJsModule("page_of_site", {
    canWait, keeps, shared: Boolean(shared), message, isStopped: () => stopAsked,
    send: (kind, text, line) => postMessage({ ...output, kind, text, line }),
  });
  python.setInterruptBuffer(signals);
  page = python.runPython(START);
}

// Files that a cell writes stay in the browser, where it has a place for them; a page from the disk may have none.
async function keepFiles() {
  const { FS } = python;
  FS.mkdirTree(HOME);
  FS.mount(FS.filesystems.IDBFS, {}, HOME);
  const keeps = await synced(true).then(() => true, () => false);
  if (!keeps) FS.unmount(HOME);
  FS.chdir(HOME);
  return keeps;
}
const synced = (read) => new Promise((yes, no) => python.FS.syncfs(read, (error) => (error ? no(error) : yes())));

async function run({ id, code, number }) {
  [output, stopAsked] = [{ id }, false];
  const begun = performance.now();
  const ok = await (canWait ? page.callPromising(code, number) : page(code, number));
  await synced(false).catch(() => {});
  postMessage({ id, kind: "done", ok, ms: performance.now() - begun });
}

onmessage = async ({ data }) => {
  try {
    if (data.kind === "file") take(data.name, data.content);
    if (data.kind === "stop") stopAsked = true;
    if (data.kind === "load") {
      shared = data.shared && new Int32Array(data.shared);
      await load(data);
      postMessage({ kind: "ready", stops: canWait || Boolean(shared) });
    }
    if (data.kind === "run") await run(data);
  } catch (error) {
    postMessage({ kind: "broken", text: String(error?.message ?? error) });
  }
};
