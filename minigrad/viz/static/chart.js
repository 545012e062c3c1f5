// Charts with marks to point at: what each is, and which others belong to it.  All is drawn and computed in Python.

const HELP = [
  ["← → ↑ ↓", "from mark to mark"], ["Enter", "what a mark is"], ["− +", "another picture"], ["f", "fit the picture into its frame"],
  ["Esc", "choose nothing"], ["?", "this list"],
];

const show = (parent, data, told = { get: () => 0, set: () => {} }) => {
  const root = rootOf(parent, data.about);
  let at = told.get() || data.begin, canvas = null, chosen = null, marks = new Map();

  const slider = make("input", { type: "range", min: 0, max: data.frames.length - 1, "aria-label": data.slider, oninput: () => go(+slider.value) });
  const names = data.frames.map((frame, i) => make("button", { "aria-pressed": "false", onclick: () => go(i) }, frame.name));
  const count = make("span", { class: "mg-count" });
  const numbered = data.frames.every((frame) => /^\d+$/.test(frame.name));
  const choice = data.frames.length < 2 ? [] : numbered ? [make("span", {}, data.slider), slider, count] : names;
  const saves = [["save SVG", () => saveSvg(canvas.svg, "minigrad")], ["save PNG", () => savePng(canvas.svg, "minigrad")],
    ...Object.entries(data.files).map(([name, text]) => [`save ${name}`, () => download(text, "application/json", name)])];
  const help = helpOf(HELP);
  const helps = make("button", { title: "?", "aria-label": "keys", onclick: () => { help.hidden = !help.hidden; } }, "?");
  const { more, opener } = moreOf(make("button", { title: "f", onclick: () => canvas.fit() }, "fit"),
    ...saves.map(([name, does]) => make("button", { onclick: does }, name)), helps);
  const side = make("div", { class: "mg-side", hidden: true });
  const stage = make("div", { class: "mg-stage mg-alone" });
  const says = make("p", { class: "mg-says" });
  const aloud = make("div", { class: "mg-sr", "aria-live": "polite" });
  root.append(make("div", { class: "mg-bar" }, make("span", { class: "mg-about" }, data.about), make("span", { class: "mg-space" }), ...choice, opener),
    more, says, stage, help, aloud);

  const draw = () => {
    const frame = data.frames[at];
    const active = root.getRootNode().activeElement;
    const focused = stage.contains(active) ? active : null; // which is about to go
    canvas = canvasOf(frame.svg);
    stage.replaceChildren(canvas.holder, side);
    stage.style.height = `${Math.min(620, canvas.svg.viewBox.baseVal.height + 24)}px`;
    marks = new Map();
    for (const mark of canvas.svg.querySelectorAll(".mg-mark")) {
      const key = mark.dataset.mark;
      marks.set(key, [...(marks.get(key) || []), mark]);
      asButton(mark, mark.querySelector("title").textContent);
      mark.addEventListener("click", () => choose(key));
      mark.addEventListener("pointerenter", () => light(key));
      mark.addEventListener("pointerleave", () => light(chosen));
      mark.addEventListener("focus", () => light(key));
      mark.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.stopPropagation(); choose(key); } });
    }
    says.textContent = frame.says === data.about ? "" : frame.says;
    says.hidden = !says.textContent;
    slider.value = at;
    count.textContent = `${frame.name} / ${data.frames.length}`;
    names.forEach((button, i) => button.setAttribute("aria-pressed", String(i === at)));
    root.dataset.step = at;
    if (focused) (marks.get(focused.dataset.mark)?.[0] ?? root).focus({ preventScroll: true });
    choose(marks.has(chosen) ? chosen : null);
    requestAnimationFrame(() => canvas.fit(0.5));
  };

  const light = (key) => {
    for (const mark of canvas.svg.querySelectorAll(".mg-lit, .mg-near")) mark.classList.remove("mg-lit", "mg-near");
    if (key === null || !data.marks[key]) return;
    for (const mark of marks.get(key) || []) mark.classList.add("mg-lit");
    for (const other of data.marks[key].others) for (const mark of marks.get(other) || []) mark.classList.add("mg-near");
  };

  const choose = (key) => {
    const found = key === null ? null : data.marks[key];
    const alone = stage.classList.contains("mg-alone");
    chosen = found ? key : null;
    side.hidden = !found;
    stage.style.minHeight = found ? "250px" : "0"; // room for what is said
    if (stage.classList.toggle("mg-alone", !found) !== alone) requestAnimationFrame(() => canvas.fit(0.5));
    root.dataset.chosen = chosen ?? "";
    light(chosen);
    if (!found) return;
    side.replaceChildren(
      make("button", { class: "mg-close", "aria-label": "close", onclick: () => choose(null) }, "×"),
      make("p", { class: "mg-say" }, make("strong", {}, found.title)),
      make("table", {}, ...found.rows.map(([what, text]) => make("tr", {}, make("td", {}, what), make("td", {}, text)))));
    aloud.textContent = `${found.title}: ${found.rows.map((row) => row.join(" ")).join(", ")}`;
  };

  // From the focused mark to the nearest one in a direction.
  const move = (dx, dy) => {
    const all = [...marks.values()].flat();
    const here = root.querySelector(".mg-mark:focus");
    if (!here) { all[0]?.focus(); return; }
    const middle = (mark) => { const r = mark.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; };
    const [x, y] = middle(here);
    let best = null, least = Infinity;
    for (const mark of all) {
      const [u, v] = middle(mark);
      const [along, aside] = [(u - x) * dx + (v - y) * dy, Math.abs((u - x) * dy) + Math.abs((v - y) * dx)];
      if (mark !== here && along > 0.5 && along + 2 * aside < least) [best, least] = [mark, along + 2 * aside];
    }
    if (best) { best.focus({ preventScroll: true }); canvas.reveal(best); }
  };

  const go = (to, tell = true) => {
    at = Math.max(0, Math.min(data.frames.length - 1, to));
    draw();
    aloud.textContent = data.frames[at].says;
    if (tell) told.set(at);
  };

  onKeys(root, (event) => {
    if (event.target.matches("input") && event.key.startsWith("Arrow")) return null;
    return {
      ArrowUp: () => move(0, -1), ArrowDown: () => move(0, 1), ArrowLeft: () => move(-1, 0), ArrowRight: () => move(1, 0),
      "+": () => go(at + 1), "-": () => go(at - 1), f: () => canvas.fit(), Escape: () => { choose(null); root.focus(); },
      "?": () => { help.hidden = !help.hidden; },
    };
  });

  draw();
  return { go };
};
