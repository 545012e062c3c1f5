// As written → fused.  Python computed every number; this script opens rows, and describes one kernel.

const LEAST = 150; // pixels: of room for your code and the loops below the kernels

// The page of `data`; `say(text, ...more)` describes a kernel, and `read(text)` is read aloud.  Where there is room, your code and the
// loops of the kernels, which `stages` makes, are below: of all kernels, or of the chosen one.
const writtenOf = (data, say, read, stages) => {
  let unit = 0, chosen = null;
  const opened = new Set(data.opened), phases = data.phases.length;
  const grid = make("div", { class: `mgw-holder${phases > 1 ? "" : " mgw-roomy"}`, style: `--phases:${phases}` });
  const below = make("div", { class: "mgw-below" });
  const element = make("div", { class: "mgw-page" }, grid, below);
  const units = ["bytes", "launches"].map((name, i) => make("button", { title: "u", onclick: () => { unit = i; draw(); } }, name));
  const all = make("button", { title: "o", onclick: () => {
    const some = opened.size < data.rows.length;
    opened.clear();
    for (const [row] of some ? data.rows : []) opened.add(row);
    draw();
  } });
  const another = () => { unit = 1 - unit; draw(); };
  const stepOf = (k) => (k !== null && data.bands[k].step) || null; // nothing computes what was removed
  const bandAt = (k) => grid.querySelector(`[data-k="${k}"]`);
  const seen = (k) => bandAt(k) ?? grid.querySelector(`[data-sum="${data.bands[k].cell}"]`); // in a closed row, the sum of its cell

  // drawing -----------------------------------------------------------------------------------------------------------
  const largest = (all) => Math.max(1e-30, ...all.flatMap((sizes) => sizes[unit]?.slice(0, 2) ?? []));
  const barOf = (sizes, most) => make("i", { class: "mgw-bar" }, ...sizes[unit].slice(0, 2).map((size) =>
    make("i", { style: size ? `width:max(2px, ${100 * size / most}%)` : "display:none" })));
  const pressed = (element, name, does) => { // by keys, ↑ and ↓ lead from kernel to kernel, and Tab to the names of rows
    asButton(element, name);
    element.setAttribute("tabindex", "-1");
    element.addEventListener("click", does);
    return element;
  };
  const bandOf = (band, k, most) => {
    const words = band.sizes[unit][2];
    const element = make("div", { class: `mgw-band mgw-${band.kind}`, "data-k": k, title: `${band.title}: ${words}` },
      barOf(band.sizes, most), make("span", { class: "mgw-name" }, band.title), make("span", { class: "mg-quiet" }, words),
      make("span", { class: "mg-quiet mgw-made" }, band.operations));
    onPoint(element, () => point(k), () => point(chosen));
    return pressed(element, band.title, () => choose(chosen === k ? null : k));
  };
  const sumOf = (row, phase, sizes, most) => pressed(make("div", { class: "mgw-band mgw-sum", "data-sum": `${row},${phase}` },
    barOf(sizes, most), make("strong", {}, sizes[unit][2])), `${data.rows[row][0]}: ${sizes[unit][2]}`, () => turn(data.rows[row][0]));
  const legend = () => make("div", { class: "mg-legends" }, ...[["was", "as written, one by one"], ["now", "fused"], ["library", "a library call"], ["whole", "the sum of a row"]]
    .map(([look, text]) => make("span", {}, make("i", { class: `mgw-${look}` }), text)));

  const draw = () => {
    const bands = data.bands.map((band, k) => [band, k]), hasRows = Boolean(data.rows[0][0]);
    const most = largest(hasRows ? data.rows.flatMap(([, cells]) => cells) : data.bands.map(({ sizes }) => sizes)); // one scale: a part is never longer than its sum
    const cellOf = (name, row, sizes, phase) => {
      const here = opened.has(name) ? bands.filter(([{ cell }]) => cell[1] === phase) : [];
      const own = here.filter(([{ cell }]) => cell[0] === row);
      const sum = hasRows && sizes.length && own.length !== 1; // a single band is the sum
      return make("div", { class: `mgw-cell mgw-${data.phases[phase]}`, "data-phase": data.phases[phase] },
        ...(sum ? [sumOf(row, phase, sizes, most)] : []), ...own.map(([band, k]) => bandOf(band, k, most)));
    };
    const nameOf = (name) => make("button", { class: "mgw-rowname", "aria-expanded": String(opened.has(name)), onclick: () => turn(name) },
      `${opened.has(name) ? "⊟" : "⊞"} ${name}`);
    const heads = data.phases.map((name, i) => make("div", { class: `mgw-cell mgw-${name}` }, make("strong", {}, name), make("span", {}, data.totals[i][unit][2])));
    grid.replaceChildren(legend(), make("section", { class: "mgw-row mgw-head" }, ...(hasRows ? [make("span")] : []), ...heads),
      ...data.rows.map(([name, cells], row) => make("section", { class: "mgw-row", "data-row": name },
        ...(hasRows ? [nameOf(name)] : []), ...cells.map((sizes, phase) => cellOf(name, row, sizes, phase)))));
    units.forEach((button, i) => button.setAttribute("aria-pressed", String(i === unit)));
    all.textContent = opened.size < data.rows.length ? "open all rows" : "close all rows";
    all.hidden = !hasRows;
    point(chosen);
  };
  const turn = (row) => {
    if (!opened.delete(row)) opened.add(row);
    draw();
    grid.querySelectorAll(".mgw-rowname")[data.rows.findIndex(([name]) => name === row)].focus({ preventScroll: true });
  };

  // one kernel --------------------------------------------------------------------------------------------------------
  const choose = (k) => {
    if (k !== null && !bandAt(k)) { opened.add(data.rows[data.bands[k].cell[0]][0]); draw(); }
    chosen = k;
    point(k);
    stages.only(stepOf(k));
    if (k === null) return;
    bandAt(k).focus({ preventScroll: true });
    bandAt(k).scrollIntoView({ block: "nearest" });
    read(`${data.bands[k].title}, ${data.bands[k].where}`);
  };
  const step = (by) => {
    const order = [...grid.querySelectorAll("[data-k]")].map((band) => +band.dataset.k);
    choose(order[(order.indexOf(chosen) + by + order.length + (chosen === null && by < 0)) % order.length] ?? null);
  };

  // What a kernel reads, what reads it, and what is known of it.
  const point = (k) => {
    for (const band of grid.querySelectorAll(".mgw-lit, .mgw-reads, .mgw-feeds")) band.classList.remove("mgw-lit", "mgw-reads", "mgw-feeds");
    const made = k === null ? [] : data.bands[k].reads, fed = data.bands.flatMap(({ reads }, i) => reads.filter(([from]) => from === k).map(([, whys]) => [i, whys]));
    for (const [i] of made) seen(i)?.classList.add("mgw-reads");
    for (const [i] of fed) seen(i)?.classList.add("mgw-feeds");
    if (k === null) {
      say("", stages.sums(), make("p", { class: "mg-quiet" }, "One by one, each operation runs by itself and stores its result; views are not counted. Eager mode takes fewer launches, "
        + "because it runs functions such as softmax as programs of their own: mg.viz.timeline counts them. Fused, operations share kernels. Point at one, or press ↓."),
        ...data.notes.map((text) => make("p", { class: "mg-quiet" }, text)));
      return;
    }
    seen(k)?.classList.add("mgw-lit");
    const b = data.bands[k], nameOf = (i) => (data.bands[i].cell[0] === b.cell[0] ? "" : `${data.rows[data.bands[i].cell[0]][0]}: `) + data.bands[i].title;
    const links = (found) => linksOf(found.map(([i]) => i), nameOf, choose);
    const words = new Set([...made, ...fed].flatMap(([i, whys]) => whys.map((why) => `${nameOf(i)}: ${why}`)));
    say(b.title, make("p", { class: "mg-quiet" }, b.where), rowsOf(b.rows), ...titled("operations", ...(b.operations ? [make("p", {}, b.operations)] : [])),
      ...titled("reads from", ...links(made)), ...titled("is read by", ...links(fed)), ...titled("not in one kernel with", ...[...words].map((text) => make("p", {}, text))));
  };

  const fit = () => { // what is below the kernels, if it has room
    below.hidden = true;
    below.hidden = !element.closest(".mg-narrow") && element.clientHeight - grid.scrollHeight < LEAST;
    if (!below.hidden && stages.element.parentNode !== below) below.append(stages.element);
  };
  const paint = () => { fit(); stages.paintBeside(); stages.only(stepOf(chosen)); point(chosen); };

  draw();
  new ResizeObserver(() => element.isConnected && fit()).observe(grid);
  return {
    element, tools: [make("span", { role: "group", "aria-label": "what bars show" }, ...units), all], paint, leave: () => choose(null),
    keys: { o: () => all.click(), u: another, ArrowDown: () => step(1), ArrowUp: () => step(-1) },
  };
};
