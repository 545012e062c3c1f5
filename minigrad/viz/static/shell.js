// The parts that views share around their pictures, and the data of a page.

// The data that Python compressed.
const inflated = async (deflated) => {
  const bytes = Uint8Array.from(atob(deflated), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
};

// Where a view reads and writes the step that is seen: outside a widget, nowhere.
const ALONE = { get: () => 0, set: () => {} };

// Whether an element with the focus needs a key itself: to write or to choose, to move a slider, to press a button.
const needsKey = ({ target, key }) => (target.matches("input[type=text], select") ? key !== "Escape"
  : target.matches("input") ? /^(Arrow|Home|End)/.test(key) : target.matches("button") && ["Enter", " "].includes(key));

// The root of a view: its stage, side panel, keys, a line read aloud.  Without its last attribute, x deletes the cell.
const shellOf = (parent, label, keys) => {
  const root = make("div", { class: "mg-view mathjax_ignore tex2jax_ignore", tabindex: "0", role: "application", "aria-label": label, "data-lm-suppress-shortcuts": "true" });
  parent.replaceChildren(root);
  const narrow = () => root.classList.toggle("mg-narrow", root.clientWidth > 0 && root.clientWidth <= 640);
  narrow(); // up to 640 pixels, as in hosted.css, all is in one column; the window may be wide, and the place in it not
  new ResizeObserver(narrow).observe(root);
  const help = make("div", { class: "mg-help", hidden: true },
    ...[...keys, ["?", "this list"]].map(([names, does]) => make("div", {}, ...names.split(" ").flatMap((k) => [make("kbd", {}, k), " "]), does)));
  const turnHelp = () => { help.hidden = !help.hidden; };
  const helps = make("button", { title: "?", "aria-label": "keys", onclick: turnHelp }, "?");
  const stage = make("div", { class: "mg-stage" });
  const side = make("div", { class: "mg-side" });
  const aloud = make("div", { class: "mg-sr", "aria-live": "polite" });
  root.append(stage, help, aloud);
  const read = (text) => { aloud.textContent = text; };
  const say = (text, ...more) => {
    side.replaceChildren(make("p", { class: "mg-say" }, text), ...more);
    read(text);
  };
  // Facts about what is chosen, and a button that closes them; without a title, the side is closed.
  const inform = (title, close, ...facts) => {
    side.hidden = !title;
    stage.classList.toggle("mg-alone", !title);
    if (title) side.replaceChildren(make("button", { class: "mg-close", "aria-label": "close", onclick: close }, "×"),
      make("p", { class: "mg-say" }, make("strong", {}, title)), ...facts);
  };
  // A button, and the bar that it opens: what only some want.  The list of keys alone needs no bar.
  const moreOf = (...children) => {
    const more = make("div", { class: "mg-bar mg-more", hidden: true }, ...children, helps);
    const opener = make("button", { "aria-expanded": "false", onclick: () => {
      more.hidden = !more.hidden;
      opener.setAttribute("aria-expanded", String(!more.hidden));
    } }, "more ▾");
    return { more, opener: children[0] ? opener : helps };
  };
  const listen = (doesAt) => onKeys(root, (event) => {
    if (!needsKey(event)) return { ...doesAt(event), "?": turnHelp };
    event.stopPropagation(); // a slide around the view stays
    return null;
  });
  return { root, helps, stage, side, read, say, inform, moreOf, listen };
};

// The height for a picture, which never shrinks under the mouse: `most`, but alone in its window all (hosted.css).
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

// Buttons and a slider that lead from page to page; one button plays them, from `first` on when all have been seen.
const pagerOf = (go, label, first = 0) => {
  let at = 0, end = 0, timer = null; // `paint` shows which page is seen
  const stop = () => { clearInterval(timer); timer = null; player.textContent = "▶"; };
  const play = () => {
    if (timer) { stop(); return; }
    if (at >= end) go(first);
    player.textContent = "❚❚";
    const pause = matchMedia("(prefers-reduced-motion: reduce)").matches ? 1600 : 1000; // there is more time to look
    timer = setInterval(() => (at >= end || !player.isConnected ? stop() : go(at + 1)), pause);
  };
  const player = make("button", { onclick: () => play(), title: "Space", "aria-label": "play" }, "▶");
  const back = make("button", { onclick: () => go(at - 1), title: "←" }, "‹ back");
  const next = make("button", { class: "mg-main", onclick: () => go(at + 1), title: "→" }, "next ›");
  const slider = make("input", { type: "range", min: 0, "aria-label": label, oninput: () => go(+slider.value) });
  const count = make("span", { class: "mg-count", "aria-hidden": "true" });
  const paint = (now, last, text = `${label} ${now + 1} / ${last + 1}`, shut = false, more = false) => {
    [at, end] = [now, last];
    [slider.max, slider.value] = [last, now];
    disable(back, shut || now <= 0);
    disable(next, shut || (now >= last && !more));
    slider.setAttribute("aria-valuetext", text);
    count.textContent = text;
  };
  return { back, next, slider, count, turning: [back, next, slider, count], paint, player, play, stop };
};

// The pictures of open scopes: which one is seen, a button that opens all, a path that leads back, and their keys.
const scopesOf = (scopes, root, draw) => {
  const path = make("div", { class: "mg-bar mg-path", role: "navigation", "aria-label": "open scopes" });
  const lead = (to) => { if (to !== self.here) { self.here = to; draw(); } };
  const turn = (to) => { lead(to); root.focus(); };
  const crumb = (i) => linkTo(() => turn(i), scopes[i].title || "all", { "aria-current": i === self.here && "true" });
  const keys = {
    c: () => { if (self.here || hasWhole(scopes)) turn(self.here ? 0 : scopes.length - 1); }, u: () => { if (self.here) turn(scopes[self.here].parent); },
  };
  const all = make("button", { title: "c", onclick: keys.c }, "open all");
  const paint = () => {
    const chain = [];
    for (let i = self.here; i; i = scopes[i].parent) chain.unshift("›", crumb(i));
    path.replaceChildren(crumb(0), ...chain);
    path.hidden = !self.here;
    all.textContent = self.here ? "close" : "open all";
    all.hidden = !self.here && !hasWhole(scopes);
    root.dataset.view = self.here;
  };
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

// A field to find things by their names: `look(text)` lists what it finds, and `go(found)` leads there.  Enter goes on to the next.
const finderOf = (name, look, go) => {
  const count = make("span", { class: "mg-about" });
  let found = [], at = 0;
  const seek = (to) => {
    at = found.length ? to % found.length : 0;
    count.textContent = !field.value.trim() ? "" : found.length ? `${at + 1} of ${found.length}` : "not found";
    go(found[at] ?? null);
  };
  const field = make("input", { type: "text", size: 14, placeholder: "find", "aria-label": name,
    oninput: () => { const text = field.value.trim().toLowerCase(); found = text ? look(text) : []; seek(0); } });
  onKeys(field, () => ({ Enter: () => { seek(at + 1); field.focus(); } }));
  return { field, count };
};

// A slider or a list, with its name and what it is set to: `paint` shows them.
const knobOf = (label, input, set) => {
  const name = make("span", { class: "mg-knob-name" });
  const shown = make("output", { class: "mg-knob-value", hidden: input.matches("select") });
  input.addEventListener("input", () => set(+input.value));
  const paint = (value, text, now = label) => {
    input.value = value;
    [name.textContent, shown.textContent] = [now, text];
    input.setAttribute("aria-label", now);
    input.setAttribute("aria-valuetext", text);
  };
  return { input, paint, element: make("label", { class: "mg-knob" }, name, input, shown) };
};

const space = () => make("span", { class: "mg-space" });
const quiet = (text) => make("p", { class: "mg-quiet" }, text);
const linkTo = (does, text, look = {}) => make("button", { class: "mg-link", onclick: does, ...look }, text);
const paragraph = (...children) => make("p", { style: "margin:0" }, ...children);

// Things to go to: a button for each, or nothing.
const linksOf = (found, titleOf, go) => (found.length ? [make("div", { class: "mg-links" },
  ...found.map((each) => linkTo(() => go(each), titleOf(each))))] : []);

const titled = (title, ...content) => (content.some(Boolean) ? [make("h3", {}, title), ...content] : []);

const rowOf = (tag, texts, look = {}) => make("tr", look, ...texts.map((text) => make(tag, {}, text)));
const tabled = (rows, look = "", head = null) => make("table", { class: look },
  head && rowOf("th", head), ...rows.map((row) => rowOf("td", row)));

// These elements get a look, and no others in their place have it.
const highlight = (place, look, elements) => {
  for (const element of place.querySelectorAll(`.${look}`)) element.classList.remove(look);
  for (const element of elements) element?.classList.add(look);
};

// What happens while the pointer or the focus is on an element, and after that.
const onPoint = (element, enter, leave) => {
  for (const name of ["pointerenter", "focus"]) element.addEventListener(name, enter);
  for (const name of ["pointerleave", "blur"]) element.addEventListener(name, leave);
};

// The focus goes from an element to the nearest other one in a direction.
const focusNearest = (elements, here, dx, dy, canvas) => {
  const middle = (element) => { const r = element.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; };
  const [x, y] = here ? middle(here) : [0, 0];
  const far = elements.map((element) => {
    const [u, v] = middle(element), along = (u - x) * dx + (v - y) * dy;
    return along > 0.5 ? along + 2 * (Math.abs((u - x) * dy) + Math.abs((v - y) * dx)) : Infinity;
  });
  const least = Math.min(...far), best = elements[!here ? 0 : least < Infinity ? far.indexOf(least) : -1];
  best?.focus({ preventScroll: true });
  canvas.reveal(best);
};

// The marks of a chart: `light` shows one, and `choose` is called with the key of one.
const marksOf = (svg, choose) => {
  const all = [...svg.querySelectorAll(".mg-mark")];
  let kept = null; // the mark that stays lit
  const light = (key) => highlight(svg, "mg-lit", all.filter(({ dataset }) => dataset.mark === key));
  for (const mark of all) {
    onPress(mark, () => choose(mark.dataset.mark));
    onPoint(mark, () => light(mark.dataset.mark), () => light(kept));
  }
  return { all, find: (key) => all.find((mark) => mark.dataset.mark === key), keep: (key) => { kept = key; light(key); } };
};
