// Cells that readers edit and run.  The build puts before this: FILES, WORKER, LOAD and BUNDLE.
(() => { // a function, and not a block: of a block, other scripts of the page would see the functions
const BASE = document.currentScript.src.replace(/[^/]*$/, "");
const MB = 1e6;
const TOTAL = FILES.reduce((sum, file) => sum + file.size, 0);
const TOUCH = matchMedia("(pointer: coarse)").matches; // a keyboard on the screen has no Shift+Enter
const PATIENCE = 2000; // ms until a cell that does not stop may be ended
const cells = [];
let python = null; // a worker, a promise that it is ready, and what it is doing
let running = null; // the cell

const make = (tag, settings = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), settings);
  made.append(...children);
  return made;
};

// ---- Python, in a worker --------------------------------------------------------------------------------------------

function start() {
  if (python) return python.ready;
  const worker = new Worker(URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" })));
  const shared = self.crossOriginIsolated ? new SharedArrayBuffer(4) : null;
  const now = { worker, shared: shared && new Int32Array(shared), loaded: 0, number: 0, ran: false };
  python = now;
  now.ready = new Promise((yes, no) => {
    now.broken = (why) => { no(new Error(why)); if (python === now) end(`Python ${now.ran ? "stopped" : "could not be loaded"}: ${why}.`); };
    worker.onerror = (event) => { event.preventDefault(); now.broken(event.message || "no memory is left"); };
    worker.onmessage = ({ data }) => {
      if (data.kind === "ready") { [now.ran, now.stops] = [true, data.stops]; yes(); }
      else if (data.kind === "broken") now.broken(data.text);
      else now.receive?.(data);
    };
  });
  now.ready.catch(() => {});
  worker.postMessage({ kind: "load", shared, ...LOAD });
  hand(now).catch((error) => now.broken(error.message));
  return now.ready;
}

// Fetch the files, and hand them to the worker.
async function hand(now) {
  const give = (name, content) => now.worker.postMessage({ kind: "file", name, content }, content.buffer ? [content.buffer] : []);
  const local = location.protocol === "file:";
  const bundle = local ? await bundled() : {};
  await Promise.all(FILES.map(async (file) => {
    if (file.name in bundle) {
      give(file.name, bundle[file.name]);
      return count(now, file.size);
    }
    try {
      give(file.name, await fetched(file, now));
    } catch (error) {
      throw new Error(`${file.name}: ${error.message}`);
    }
  }));
}

async function fetched({ url, integrity }, now) {
  const response = await fetch(new URL(url, BASE), integrity ? { integrity } : {});
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  const parts = [];
  for (const reader = response.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    parts.push(value);
    count(now, value.length);
  }
}

function count(now, bytes) {
  now.loaded = Math.min(now.loaded + bytes, TOTAL);
  for (const cell of cells) if (cell.waits) cell.showProgress();
}

// A page from the disk may load scripts and nothing else.
function bundled() {
  return new Promise((yes, no) => {
    const script = make("script", { src: BASE + BUNDLE });
    script.onload = () => yes(window.minigradFiles);
    script.onerror = () => no(new Error(`${BUNDLE} is missing`));
    document.head.append(script);
  });
}

// Python ends, and all names with it.
function end(why) {
  python?.worker.terminate();
  python = null;
  const lost = cells.filter((cell) => cell.ran !== null);
  for (const cell of cells) cell.ran = null;
  const numbers = lost.map((cell) => cell.number).join(", ");
  const again = lost.length ? ` All names are lost: ${lost.length > 1 ? "cells" : "cell"} ${numbers} must run again.` : "";
  const shown = running ?? cells.find((cell) => cell.waits);
  for (const cell of cells) cell.waits = false;
  shown?.ended(false);
  shown?.setStatus(why + again, "alert");
}

// ---- running --------------------------------------------------------------------------------------------------------

// Cells above that have not run, or were changed since, run first.
async function run(cell) {
  if (running === cell) return;
  if (running) return cell.setStatus(`Cell ${running.number} is running.`);
  const above = cells.slice(0, cells.indexOf(cell)).filter((each) => each.ran !== each.area.value);
  for (const each of [...above, cell]) {
    if (each !== cell) cell.setStatus(`Cell ${each.number} above runs first.`);
    if (await each.run()) continue;
    if (each !== cell) cell.setStatus(`Cell ${each.number} above stopped, so this one did not run.`, "alert");
    return;
  }
}

class Cell {
  constructor(node, number) {
    Object.assign(this, { node, number, ran: null, waits: false });
    this.pre = node.querySelector("pre.code");
    this.code = this.pre.querySelector("code");
    this.said = node.querySelector(".said");
    this.original = this.code.textContent.replace(/\n$/, "");
    this.outputs = [...this.said.childNodes];
    this.area = make("textarea", {
      value: this.original, spellcheck: false, autocapitalize: "off", autocomplete: "off", wrap: "off", rows: 1,
    });
    this.area.setAttribute("aria-label", `Code of cell ${number}. Shift and Enter run it, Escape leaves it.`);
    this.area.setAttribute("autocorrect", "off");
    this.pre.setAttribute("aria-hidden", "true");
    this.mark = make("span", { className: "at", hidden: true });
    const editor = make("div", { className: "editor" });
    this.pre.replaceWith(editor);
    editor.append(make("div", { className: "wide-code" }, this.mark, this.pre, this.area));
    this.go = make("button", { type: "button", className: "go" });
    this.reset = make("button", { type: "button", textContent: "Reset", hidden: true });
    this.reset.setAttribute("aria-label", `Reset cell ${number} to its first text`);
    this.link = make("button", { type: "button", textContent: "Copy link", hidden: true });
    this.link.setAttribute("aria-label", "Copy a link to this page with your code");
    this.status = make("span", { className: "status" });
    this.status.setAttribute("role", "status");
    this.said.before(make("div", { className: "tools" }, this.go, this.reset, this.link, this.status));
    this.said.setAttribute("role", "region");
    this.said.setAttribute("aria-label", `Output of cell ${number}`);
    this.rest();
    this.listen();
  }

  listen() {
    const load = () => { if (!python) { this.waits = true; start().then(() => this.loaded(), () => {}); this.showProgress(); } };
    this.area.addEventListener("focus", load);
    this.area.addEventListener("input", () => this.changed());
    this.area.addEventListener("keydown", (event) => keys(event, this));
    this.go.addEventListener("click", () => (running === this ? this.stop() : run(this)));
    this.link.addEventListener("click", () => share(this));
    this.reset.addEventListener("click", () => {
      this.area.value = this.original;
      this.changed();
      this.said.replaceChildren(...this.outputs);
      this.rest();
      this.area.focus();
    });
  }

  changed() {
    this.code.replaceChildren(...coloured(this.area.value), "\n");
    this.reset.hidden = this.link.hidden = this.area.value === this.original;
    this.mark.hidden = true;
  }

  rest() {
    this.setStatus(`cell ${this.number}: change it and run it${TOUCH ? "" : ", Shift+Enter"}`);
    this.face("Run");
  }

  face(name) {
    this.go.textContent = name;
    this.go.setAttribute("aria-label", `${name} cell ${this.number}`);
  }

  // The progress of the load takes no other message's place: a cell with a message waits no longer.
  setStatus(text, kind = "") {
    this.waits = false;
    this.status.className = `status ${kind}`;
    this.status.textContent = text;
  }

  showProgress() {
    const { loaded } = python ?? { loaded: 0 };
    let bar = this.status.querySelector("progress");
    if (!bar) {
      bar = make("progress", { max: TOTAL });
      bar.setAttribute("aria-label", "Loading Python");
      this.status.className = "status";
      this.status.replaceChildren(bar, make("span"));
    }
    if (loaded < TOTAL) bar.value = loaded;
    else bar.removeAttribute("value"); // it moves: how long the start takes, is not known
    const all = (TOTAL / MB).toFixed(0);
    const words = loaded < TOTAL ? `loading Python, ${(loaded / MB).toFixed(1)} of ${all} MB, once` : "starting Python";
    if (bar.nextSibling.textContent !== words) bar.nextSibling.textContent = words;
  }

  loaded() {
    if (this.waits && running !== this) this.setStatus(`Python is ready: ${TOUCH ? "Run" : "Shift+Enter"} runs this cell`);
  }

  async run() {
    running = this;
    this.face("Stop");
    this.node.dataset.state = "busy";
    this.mark.hidden = true;
    const code = this.area.value;
    try {
      if (!python?.ran) {
        this.waits = true;
        const ready = start();
        this.showProgress();
        await ready;
      }
    } catch {
      return false;
    }
    if (running !== this) return false;
    this.setStatus("running");
    return new Promise((done) => {
      this.ended = (ok) => {
        clearTimeout(this.patience);
        running = null;
        delete this.node.dataset.state;
        this.face("Run");
        delete this.ended;
        if (ok) this.ran = code;
        done(ok);
      };
      this.fresh = false; // outputs of an earlier run stay until there are new ones
      const id = ++python.number;
      python.receive = (message) => { if (message.id === id) this.receive(message); };
      python.worker.postMessage({ kind: "run", id, code, number: this.number });
    });
  }

  ended() { // before Python was ready
    running = running === this ? null : running;
    delete this.node.dataset.state;
    this.face("Run");
  }

  receive({ kind, text, line, ok, ms }) {
    if (!this.fresh) this.said.replaceChildren();
    this.fresh = true;
    if (kind === "done") {
      this.setStatus(ok ? `cell ${this.number}: ${(ms / 1000).toFixed(ms < 995 ? 2 : 1)} s` : `cell ${this.number} stopped`);
      this.ended(ok);
    } else if (kind === "out" || kind === "err") {
      let last = this.said.lastElementChild;
      if (!last?.matches(`pre.${kind}`)) this.said.append(last = make("pre", { className: `output ${kind}`, tabIndex: 0 }));
      last.append(text);
    } else {
      this.said.append(shown(kind, text));
      if (line) this.point(line);
    }
  }

  point(line) {
    this.mark.style.setProperty("--line", line - 1);
    this.mark.closest(".editor").scrollLeft = 0; // lines are read from their beginning
    this.mark.hidden = false;
  }

  stop() {
    const stopped = "Python was stopped.";
    if (!python?.stops) return end(stopped);
    if (python.shared) Atomics.store(python.shared, 0, 2);
    else python.worker.postMessage({ kind: "stop" });
    this.setStatus("stopping");
    clearTimeout(this.patience);
    this.patience = setTimeout(() => {
      const button = make("button", { type: "button", textContent: "End Python" });
      button.addEventListener("click", () => end(stopped));
      this.status.replaceChildren("it does not stop; all names are lost if you ", button);
    }, PATIENCE);
  }
}

// ---- a link that carries the code -----------------------------------------------------------------------------------

// The fragment of an address, which no server gets, holds the cells that were changed: their numbers and code.
const SHARED = "#code=";

async function share(cell) {
  const changed = cells.filter((each) => each.area.value !== each.original).map((each) => [each.number, each.area.value]);
  const bytes = new TextEncoder().encode(JSON.stringify(changed));
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  history.replaceState(null, "", SHARED + text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, ""));
  try {
    await navigator.clipboard.writeText(location.href);
    cell.setStatus("The link is copied. The code is in the link itself.");
  } catch {
    cell.setStatus("The link is in the address bar. The code is in the link itself.");
  }
}

// Take the code from the address.  It is shown and never runs by itself.
function receive() {
  if (!location.hash.startsWith(SHARED)) return;
  try {
    const text = atob(location.hash.slice(SHARED.length).replaceAll("-", "+").replaceAll("_", "/"));
    const changed = JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (each) => each.charCodeAt(0))));
    const known = changed.filter(([number, code]) => cells[number - 1] && typeof code === "string");
    for (const [number, code] of known) {
      const cell = cells[number - 1];
      cell.area.value = code;
      cell.changed();
      cell.setStatus("This code came with the link. Read it, then run it.");
    }
    cells[known[0][0] - 1].node.scrollIntoView();
  } catch {
    cells[0].setStatus("The link is damaged: its code cannot be read.", "alert");
  }
}

// ---- outputs --------------------------------------------------------------------------------------------------------

const FRAME = `<!doctype html><meta charset="utf-8"><style>:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { margin: 0; display: flow-root } table { border-collapse: collapse } td, th { padding: 2px 10px 2px 0; text-align: left }</style>`;
const SIZE = `<script>new ResizeObserver(() => parent.postMessage({ minigrad: "size", height: document.body.offsetHeight }, "*"))
.observe(document.body)<\/script>`;

// What a view is about, in words: its title without the brackets around it.
const titled = (text) => new DOMParser().parseFromString(text, "text/html").title.replace(/^<|>$/g, "") || "a view";

function shown(kind, text) {
  if (kind === "view" || kind === "html") {
    const frame = make("iframe", { title: kind === "view" ? titled(text) : "an output" });
    frame.setAttribute("sandbox", "allow-scripts");
    frame.srcdoc = kind === "view" ? text : FRAME + text + SIZE;
    return make("div", { className: "live" }, frame);
  }
  if (kind === "svg") {
    const image = make("img", { src: `data:image/svg+xml,${encodeURIComponent(text)}`, alt: "a picture" });
    return make("figure", { className: "picture" }, image);
  }
  if (kind === "markdown") return make("div", { className: "markdown" }, ...paragraphs(text));
  const pre = make("pre", { className: `output ${kind}`, textContent: text });
  if (kind === "error") pre.setAttribute("role", "alert");
  return pre;
}

// The little Markdown of tasks: paragraphs, lists, code, bold.
function paragraphs(text) {
  return text.trim().split(/\n{2,}/).map((part) => {
    const fence = /^```\w*\n([\s\S]*?)\n?```$/.exec(part);
    if (fence) return make("pre", {}, make("code", {}, ...coloured(fence[1])));
    const lines = part.split("\n");
    if (lines.every((line) => /^[-*] /.test(line))) return make("ul", {}, ...lines.map((line) => make("li", {}, ...marked(line.slice(2)))));
    return make("p", {}, ...marked(part));
  });
}
const marked = (text) => text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => (
  part.startsWith("`") ? make("code", { textContent: part.slice(1, -1) })
    : part.startsWith("**") ? make("strong", { textContent: part.slice(2, -2) }) : part));

// ---- the editor -----------------------------------------------------------------------------------------------------

const WORDS = "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda "
  + "None nonlocal not or pass raise return True try while with yield";
const TOKENS = new RegExp([
  "(?<c1>#.*)", "(?<s1>[rbfRBF]{0,2}(?:\"\"\"[^]*?(?:\"\"\"|$)|'''[^]*?(?:'''|$)|\"(?:\\\\.|[^\"\\\\\\n])*\"?|'(?:\\\\.|[^'\\\\\\n])*'?))",
  "(?<nf>(?<=\\b(?:def|class) +)\\w+)", `(?<k>\\b(?:${WORDS.replaceAll(" ", "|")})\\b)`, "(?<mi>\\b\\d[\\w.]*)",
].join("|"), "g");

function coloured(code) {
  const parts = [];
  let at = 0;
  for (const found of code.matchAll(TOKENS)) {
    const [kind] = Object.entries(found.groups).find(([, text]) => text !== undefined);
    parts.push(code.slice(at, found.index), make("span", { className: kind, textContent: found[0] }));
    at = found.index + found[0].length;
  }
  return [...parts, code.slice(at)];
}

// Insert as typing does, so that it can be undone.
const insert = (area, text) => document.execCommand(text ? "insertText" : "delete", false, text)
  || area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");

function keys(event, cell) {
  const area = cell.area;
  const { selectionStart: from, selectionEnd: to, value } = area;
  const begin = value.lastIndexOf("\n", from - 1) + 1;
  const indent = /^ */.exec(value.slice(begin, from))[0];
  if (event.isComposing) return;
  if (event.key === "Enter" && (event.shiftKey || event.ctrlKey || event.metaKey)) run(cell);
  else if (event.key === "Enter") insert(area, `\n${indent}${/:\s*(#.*)?$/.test(value.slice(begin, from)) ? "    " : ""}`);
  else if (event.key === "Escape") cell.go.focus();
  else if (event.key === "Tab" && from === to && !event.shiftKey) insert(area, " ".repeat(4 - ((from - begin) % 4)));
  else if (event.key === "Tab") shift(area, begin, to, event.shiftKey);
  else if (event.key === "Backspace" && from === to && indent && begin + indent.length === from) shift(area, begin, to, true);
  else return;
  event.preventDefault();
}

// Move the selected lines by four spaces.
function shift(area, begin, to, back) {
  const old = area.value.slice(begin, to);
  const moved = back ? old.replace(/^ {1,4}/gm, "") : old.replace(/^(?=.)/gm, "    ");
  if (moved === old) return;
  const { selectionStart: from, selectionEnd: until } = area;
  area.setSelectionRange(begin, to);
  insert(area, moved);
  const many = from !== until;
  const end = begin + moved.length;
  area.setSelectionRange(many ? begin : end, end);
}

document.querySelectorAll(".try").forEach((node, index) => cells.push(new Cell(node, index + 1)));
receive();
addEventListener("hashchange", receive);
})();
