// The parts that views share around their pictures, and the data of a page.

// The data that Python packed: large data are compressed.
const unpacked = async (data) => {
  if (!data.deflated) return data;
  const bytes = Uint8Array.from(atob(data.deflated), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
};

// Where a view reads and writes the step that is seen: outside a widget, nowhere.
const ALONE = { get: () => 0, set: () => {} };

const NARROW = 640; // pixels: what is beside a picture in a wider view is below it in a narrow one

// The root of a view, with its stage, a side panel, a list of keys, and a line that is read aloud.  JupyterLab leaves keys alone that
// are pressed inside the root: without its last attribute, x deletes the cell.
const shellOf = (parent, label, keys) => {
  const root = make("div", { class: "mg-view", tabindex: "0", role: "application", "aria-label": label, "data-lm-suppress-shortcuts": "true" });
  parent.replaceChildren(root);
  const narrow = () => root.classList.toggle("mg-narrow", root.clientWidth > 0 && root.clientWidth <= NARROW);
  narrow(); // the window may be wide, and the place in it not
  new ResizeObserver(narrow).observe(root);
  const help = make("div", { class: "mg-help", hidden: true },
    ...[...keys, ["?", "this list"]].map(([names, does]) => make("div", {}, ...names.split(" ").flatMap((k) => [make("kbd", {}, k), " "]), does)));
  const turnHelp = () => { help.hidden = !help.hidden; };
  const helps = make("button", { title: "?", "aria-label": "keys", onclick: turnHelp }, "?");
  const stage = make("div", { class: "mg-stage" });
  const side = make("div", { class: "mg-side" });
  const aloud = make("div", { class: "mg-sr", "aria-live": "polite" });
  return { root, help, turnHelp, helps, stage, side, aloud };
};

// The height for a picture, which never shrinks under the mouse: in a notebook `most`, at most; a page alone in its window gives all
// that it has (hosted.css).
const askFor = (stage, least, most) => {
  const height = Math.max(least, parseFloat(stage.style.getPropertyValue("--wish")) || 0);
  stage.style.height = `${Math.min(most, height)}px`;
  stage.style.setProperty("--wish", `${height}px`);
};

// A control that does nothing now.  The view gets the focus that it had: keys still work.
const disable = (control, off) => {
  if (off && control.matches(":focus")) control.closest(".mg-view").focus();
  control.disabled = off;
};

// Buttons and a slider that lead from one page to another; `paint` shows which page is seen.
const pagerOf = (go, label) => {
  let at = 0;
  const back = make("button", { onclick: () => go(at - 1), title: "←" }, "‹ back");
  const next = make("button", { class: "mg-main", onclick: () => go(at + 1), title: "→" }, "next ›");
  const slider = make("input", { type: "range", min: 0, "aria-label": label, oninput: () => go(+slider.value) });
  const count = make("span", { class: "mg-count", "aria-hidden": "true" });
  const paint = (now, last, text = `${label} ${now + 1} / ${last + 1}`, shut = false, more = false) => {
    at = now;
    [slider.max, slider.value] = [last, now];
    disable(back, shut || now <= 0);
    disable(next, shut || (now >= last && !more));
    slider.setAttribute("aria-valuetext", text);
    count.textContent = text;
  };
  return { back, next, slider, count, paint };
};

// The pictures of open scopes: which one is seen, a button that opens all, a path that leads back, and their keys.
const scopesOf = (scopes, root, draw) => {
  const whole = scopes.at(-1).title === "everything";
  const path = make("div", { class: "mg-bar mg-path", role: "navigation", "aria-label": "open scopes" });
  const turn = (to) => { self.here = to; draw(); root.focus(); };
  const crumb = (i) => make("button", { class: "mg-link", "aria-current": i === self.here ? "true" : null, onclick: () => turn(i) }, scopes[i].title || "all");
  const keys = {
    c: () => { if (self.here || whole) turn(self.here ? 0 : scopes.length - 1); }, u: () => { if (self.here) turn(scopes[self.here].parent); },
  };
  const all = make("button", { title: "c", onclick: keys.c }, "open all");
  const paint = () => {
    const chain = [];
    for (let i = self.here; i; i = scopes[i].parent) chain.unshift("›", crumb(i));
    path.replaceChildren(crumb(0), ...chain);
    path.hidden = !self.here;
    all.textContent = self.here ? "close" : "open all";
    all.hidden = !self.here && !whole; // too many boxes for one picture
    root.dataset.view = self.here;
  };
  const lead = (to) => { if (to !== self.here) { self.here = to; draw(); } };
  const self = { here: 0, path, all: scopes.length > 1 ? [all] : [], keys, turn, paint, lead, order: () => [self.here, ...scopes.keys()] };
  return self;
};

// Amounts with their units.
const rounded = (value, digits = 3) => (Math.abs(value) < 1e-6 ? "0" : String(Number(value.toPrecision(digits))));
const inUnits = (units) => (value, digits) => {
  const [one, name] = units.find(([each]) => value >= each * 0.9995) ?? units[units.length - 1];
  return `${rounded(value / one, digits)} ${name}`;
};
const bytesText = inUnits([[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
const launchesText = (count) => `${count} launch${count === 1 ? "" : "es"}`;

const space = () => make("span", { class: "mg-space" });

// A field to find things by their names: `look(text)` lists what it finds, and `go(found)` leads there.  Enter goes on to the next.
const finderOf = (look, go) => {
  const count = make("span", { class: "mg-about" });
  let found = [], at = 0;
  const seek = (to) => {
    at = found.length ? to % found.length : 0;
    count.textContent = !field.value.trim() ? "" : found.length ? `${at + 1} of ${found.length}` : "not found";
    go(found[at] ?? null);
  };
  const field = make("input", { type: "text", size: 14, placeholder: "find", "aria-label": "find a box by its name",
    oninput: () => { const text = field.value.trim().toLowerCase(); found = text ? look(text) : []; seek(0); } });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.stopPropagation();
    seek(at + 1);
    field.focus();
  });
  return { field, count };
};

const paragraph = (...children) => make("p", { style: "margin:0" }, ...children);

// Things to go to: a button for each, or nothing.
const linksOf = (found, titleOf, go) => (found.length ? [make("div", { class: "mg-links" },
  ...found.map((each) => make("button", { class: "mg-link", onclick: () => go(each) }, titleOf(each))))] : []);

// A button that saves the picture as it is seen now.
const savesOf = (name, canvas) => [make("button", { onclick: () => canvas() && saveSvg(canvas().svg, name), title: "the picture as it is now" }, "save SVG")];

// A button that plays: `next` goes on by a step, until `done()`.
const playerOf = (next, done, begin, pause) => {
  let timer = null;
  const stop = () => { clearInterval(timer); timer = null; button.textContent = "▶"; };
  const turn = () => {
    if (timer) { stop(); return; }
    if (done()) begin();
    button.textContent = "❚❚";
    timer = setInterval(() => (done() || !button.isConnected ? stop() : next()), still() ? 1600 : pause);
  };
  const button = make("button", { onclick: () => turn(), title: "Space", "aria-label": "play" }, "▶");
  return { button, turn, stop };
};

const closer = (does) => make("button", { class: "mg-close", "aria-label": "close", onclick: does }, "×");

const titled = (title, ...content) => (content.length ? [make("h3", {}, title), ...content] : []);

// A table of names and what is said of them.
const rowOf = (tag, texts, look = {}) => make("tr", look, ...texts.map((text) => make(tag, {}, text)));
const rowsOf = (rows) => make("table", {}, ...rows.map((row) => rowOf("td", row)));

// A click on an element, and Enter while it has the focus.
const onPress = (element, does) => {
  element.addEventListener("click", does);
  element.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.stopPropagation(); does(event); } });
};

// What happens while the pointer or the focus is on an element, and after that.
const onPoint = (element, enter, leave) => {
  for (const name of ["pointerenter", "focus"]) element.addEventListener(name, enter);
  for (const name of ["pointerleave", "blur"]) element.addEventListener(name, leave);
};

// The focus goes from an element to the nearest other one in a direction.
const focusNearest = (elements, here, dx, dy, canvas) => {
  const middle = (element) => { const r = element.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; };
  let best = elements[0], least = Infinity;
  if (here) {
    const [x, y] = middle(here);
    best = null;
    for (const element of elements) {
      const [u, v] = middle(element);
      const [along, aside] = [(u - x) * dx + (v - y) * dy, Math.abs((u - x) * dy) + Math.abs((v - y) * dx)];
      if (element !== here && along > 0.5 && along + 2 * aside < least) [best, least] = [element, along + 2 * aside];
    }
  }
  best?.focus({ preventScroll: true });
  if (best) canvas.reveal(best);
};

// The marks of a chart: `light` shows one and those that belong to it, and `choose` is called with the key of one.
const marksOf = (svg, known, choose) => {
  const all = [...svg.querySelectorAll(".mg-mark")];
  let kept = null; // the mark that stays lit
  const light = (key) => {
    const others = known[key]?.others ?? [];
    for (const mark of all) {
      mark.classList.toggle("mg-lit", key in known && mark.dataset.mark === key);
      mark.classList.toggle("mg-near", others.includes(mark.dataset.mark));
    }
  };
  for (const mark of all) {
    onPress(mark, () => choose(mark.dataset.mark));
    onPoint(mark, () => light(mark.dataset.mark), () => light(kept));
  }
  return { all, find: (key) => all.find((mark) => mark.dataset.mark === key), keep: (key) => { kept = key; light(key); } };
};
