// A student's work in this browser, beside JupyterLite, which keeps it in a database of the browser.  What is new in
// the course is brought, and what the student changed is left alone: the same promise as notebooks/minigrad_course/workspace.py.
const root = new URL(".", import.meta.url);
const STORAGE = `JupyterLite Storage - ${root.pathname}`; // JupyterLite's own name for it
const RECORD = `minigrad copied - ${root.pathname}`; // the build and the notebooks that were seen last
const PROGRESS = "course-progress.json";

const finished = (request) =>
  new Promise((done, failed) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
  });

// Do something with the files in the database.  Without a database there is no work, unless `make` is set.
async function files(act, make = false) {
  const opening = indexedDB.open(STORAGE);
  opening.onupgradeneeded = () => (make ? opening.result.createObjectStore("files") : opening.transaction.abort());
  const base = await finished(opening).catch(() => null);
  if (!base) return null;
  try {
    if (!base.objectStoreNames.contains("files")) return null;
    const store = (mode) => base.transaction("files", mode).objectStore("files");
    return await act({
      names: () => finished(store("readonly").getAllKeys()),
      read: (name) => finished(store("readonly").get(name)),
      write: (name, file) => finished(store("readwrite").put(file, name)),
      remove: (name) => finished(store("readwrite").delete(name)),
    });
  } finally {
    base.close();
  }
}

// The same number as `digest` in lectures/site/browser/lite.py: of the cells' kinds and texts, without outputs.
function digest(notebook) {
  const text = (cell) => [cell.source].flat().join("").replaceAll("\r\n", "\n").trimEnd();
  const whole = notebook.cells.map((cell) => `${cell.cell_type}\0${text(cell)}\0`).join("");
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(whole)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return hash.toString(16).padStart(16, "0");
}

// A name that is not taken: `work (new 2).ipynb`, as in the workspace.
async function freeName(store, name, word) {
  const [, stem, suffix] = name.match(/^(.*?)(\.[^./]*)?$/);
  for (let number = 2; ; number += 1) {
    const free = `${stem} (${word} ${number})${suffix ?? ""}`;
    if (!(await store.read(free))) return free;
  }
}

const named = (file, path) => ({ ...file, path, name: path.split("/").at(-1) });
const record = () => JSON.parse(localStorage.getItem(RECORD) ?? "{}");

// Bring what is new since the last visit.  Returns a line for each notebook that needs the student's attention.
export async function update() {
  const course = await (await fetch(new URL("course.json", root), { cache: "no-cache" })).json();
  const { build, notebooks: copied = {} } = record();
  if (build === course.build) return [];
  if (build) await Promise.all(course.fresh.map((name) => fetch(new URL(name, root), { cache: "reload" })));
  const said = [];
  await files(async (store) => {
    for (const [name, newest] of Object.entries(course.notebooks)) {
      const mine = await store.read(name);
      const theirs = mine?.content?.cells && digest(mine.content);
      if (!theirs || theirs === newest || copied[name] === newest) continue;
      if (theirs === copied[name]) {
        await store.remove(name);
        said.push(`updated: ${name}`);
      } else {
        const beside = await freeName(store, name, "new");
        const content = await (await fetch(new URL(`files/${name}`, root))).json();
        await store.write(beside, named({ ...mine, content }, beside));
        said.push(`changed by you and by the course: ${name} is your version, ${beside.split("/").at(-1)} is the new one`);
      }
    }
  });
  localStorage.setItem(RECORD, JSON.stringify(course));
  return said;
}

// All of the student's work as one file, and how many files are in it.
export async function packed() {
  const work = await files(async (store) => {
    const names = (await store.names()).filter((name) => !name.split("/").at(-1).startsWith("."));
    return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await store.read(name)])));
  });
  return work ?? {};
}

// Take in the work of another browser.  A file that differs from the one here comes beside it.
export async function unpack(text) {
  const work = parsed(text)?.["minigrad work"];
  if (!work) throw new Error("this is not a file of work from this page");
  const originals = record().notebooks ?? {};
  return files(async (store) => {
    const said = [];
    for (const [name, theirs] of Object.entries(work)) {
      const mine = await store.read(name);
      const untouched = mine?.content?.cells && digest(mine.content) === originals[name];
      if (!mine || untouched) {
        await store.write(name, theirs);
        said.push(`taken in: ${name}`);
      } else if (name === PROGRESS) {
        await store.write(name, joined(mine, theirs));
        said.push(`joined: ${name}`);
      } else if (JSON.stringify(mine.content) !== JSON.stringify(theirs.content)) {
        const beside = await freeName(store, name, "uploaded");
        await store.write(beside, named(theirs, beside));
        said.push(`differs from yours: ${name}, so it is now ${beside.split("/").at(-1)}`);
      }
    }
    return said;
  }, true);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// The progress here with the tasks that only the other file has, as `Progress.take_in` does.
function joined(mine, theirs) {
  const [here, there] = [mine, theirs].map((file) => JSON.parse(textOf(file).trim() || "{}"));
  const both = { ...there, ...here, student: here.student || there.student || "", tasks: { ...there.tasks, ...here.tasks } };
  return { ...mine, format: "text", content: JSON.stringify(both, null, 1) };
}

// The text of a file; what Python writes is stored in base64.
export function textOf({ format, content }) {
  if (typeof content !== "string") return JSON.stringify(content);
  if (format !== "base64") return content;
  return new TextDecoder().decode(Uint8Array.from(atob(content), (letter) => letter.codePointAt(0)));
}

// The corner of the page in which boxes of lines stand above each other.
function corner() {
  const found = document.getElementById("minigrad-says");
  if (found) return found;
  const made = Object.assign(document.createElement("div"), { id: "minigrad-says" });
  made.style.cssText =
    "position: fixed; inset: auto 1rem 1rem auto; z-index: 9999; max-width: min(34rem, 85vw); display: grid; gap: 0.5rem;";
  document.body.append(made);
  return made;
}

// Show lines in a corner of the page until they are closed.
export function say(lines) {
  if (!lines.length) return null;
  const box = document.createElement("div");
  box.setAttribute("role", "status");
  box.style.cssText =
    "padding: 0.6rem 1rem; border: 1px solid; border-radius: 6px; color: CanvasText; background: Canvas; " +
    "font: 15px/1.5 system-ui, sans-serif;";
  for (const line of lines) box.append(Object.assign(document.createElement("div"), { textContent: line }));
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Close" });
  close.addEventListener("click", () => box.remove());
  box.append(close);
  corner().append(box);
  return box;
}

// On a phone nothing else shows that Python is not ready yet.
function waitForPython() {
  const status = () => {
    const shown = [...(globalThis.jupyterapp?.shell.widgets("main") ?? [])];
    return shown.map((widget) => widget.sessionContext?.session?.kernel?.status).find(Boolean);
  };
  const box = say(["Python is starting: at the first visit this takes a while."]);
  const timer = setInterval(() => {
    if (!["idle", "busy"].includes(status())) return;
    clearInterval(timer);
    box.remove();
  }, 300);
}

// JupyterLite does not say why a notebook could not be saved.  A full store ends the transaction with this error.
const put = IDBObjectStore.prototype.put;
let full = false;
IDBObjectStore.prototype.put = function (...given) {
  const { transaction } = this;
  transaction.addEventListener("abort", () => {
    if (transaction.error?.name !== "QuotaExceededError" || full) return;
    full = true;
    say(["This browser has no room left, so your work was not saved.",
      "Keep it now: File → Download. Then free space on the disk or delete site data of other pages, and save again."]);
  });
  return put.apply(this, given);
};

// Before JupyterLite starts: it must not read a notebook that is replaced at the same time.
const ready = () => new Promise((done) => (document.body ? done() : addEventListener("DOMContentLoaded", done)));
if (location.pathname.startsWith(`${root.pathname}notebooks/`)) ready().then(waitForPython);
try {
  const lines = await update();
  ready().then(() => say(lines));
} catch (error) {
  console.warn("the notebooks could not be updated:", error); // a browser that keeps nothing, for example
}
