// The parts that views share around their pictures, and the data of a page.

// The data that Python packed: large data are compressed.
const unpacked = async (data) => {
  if (!data.deflated) return data;
  const bytes = Uint8Array.from(atob(data.deflated), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
};

// Where a view reads and writes the step that is seen: outside of a widget, nowhere.
const ALONE = { get: () => 0, set: () => {} };

// The root of a view, with its stage, a side panel, a list of keys, and a line that is read aloud.
const shellOf = (parent, label, keys) => {
  const root = rootOf(parent, label);
  const help = helpOf(keys);
  const turnHelp = () => { help.hidden = !help.hidden; };
  const helps = make("button", { title: "?", "aria-label": "keys", onclick: turnHelp }, "?");
  const stage = make("div", { class: "mg-stage" });
  const side = make("div", { class: "mg-side" });
  const aloud = make("div", { class: "mg-sr", "aria-live": "polite" });
  return { root, help, turnHelp, helps, stage, side, aloud };
};

// Buttons and a slider that lead from one page to another; `paint` shows which page is seen.
const pagerOf = (go, label) => {
  let at = 0;
  const back = make("button", { onclick: () => go(at - 1), title: "←" }, "‹ back");
  const next = make("button", { class: "mg-main", onclick: () => go(at + 1), title: "→" }, "next ›");
  const slider = make("input", { type: "range", min: 0, "aria-label": label, oninput: () => go(+slider.value) });
  const count = make("span", { class: "mg-count", "aria-hidden": "true" });
  const paint = (now, last, text = `${now + 1} / ${last + 1}`) => {
    at = now;
    [slider.max, slider.value] = [last, now];
    [back.disabled, next.disabled] = [now <= 0, now >= last];
    slider.setAttribute("aria-valuetext", `${label} ${text}`);
    count.textContent = text;
  };
  return { back, next, slider, count, paint };
};

const space = () => make("span", { class: "mg-space" });

// Buttons that save the picture as it is seen now.
const savesOf = (name, canvas) => [["SVG", saveSvg], ["PNG", savePng]].map(([form, save]) =>
  make("button", { onclick: () => canvas() && save(canvas().svg, name), title: "the picture as it is now" }, `save ${form}`));

const closer = (does) => make("button", { class: "mg-close", "aria-label": "close", onclick: does }, "×");

const titled = (title, ...content) => (content.length ? [make("h3", {}, title), ...content] : []);

// A table of names and what is said of them.
const rowsOf = (rows) => make("table", {}, ...rows.map((row) => make("tr", {}, ...row.map((text) => make("td", {}, text)))));

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
