// As written → fused.  Python computed every number; this script opens rows, and describes one kernel.

// `say` describes a kernel, `read` is read aloud; `stages` shows your code and the loops below, of one kernel or all.
const writtenOf = (data, say, read, stages) => {
  let chosen = null;
  let opened = new Set(data.opened);
  const phases = data.phases.length, hasRows = Boolean(data.rows[0][0]);
  data.rows.forEach(([, cells], row) => cells.forEach((lines, phase) => lines.forEach((k) => { data.bands[k].cell = [row, phase]; })));
  const grid = make("div", { class: `mgw-holder${phases > 1 ? "" : " mgw-roomy"}`, style: `--columns:${hasRows ? "fit-content(200px)" : ""} repeat(${phases}, minmax(0, 1fr))` });
  const below = make("div", { class: "mgw-below" });
  const element = make("div", { class: "mgw-page" }, grid, below);
  const all = make("button", { title: "o", hidden: !hasRows, disabled: !hasRows, onclick: () => {
    opened = new Set(opened.size < data.rows.length ? data.rows.map(([row]) => row) : []);
    draw();
  } });
  const stepOf = (k) => (k === null ? null : data.bands[k].step); // nothing computes what was removed
  const bandAt = (k) => grid.querySelector(`[data-k="${k}"]`);
  const seen = (k) => bandAt(k) ?? grid.querySelector(`[data-cell="${data.bands[k].cell}"]`); // in a closed row, the sum of its cell

  const lineOf = (k) => {
    const { title, change, kind, cell: [row, phase], sizes, operations } = data.bands[k], [written, fused] = sizes.map((size) => `${size && Math.max(0.6, size / 10)}%`), isSum = kind === "sum";
    const line = make("div", { class: `mgw-band mgw-${kind}`, tabindex: "-1", title: isSum || !change ? title : `${title}: ${change}`, "data-k": k, // ↑ and ↓ lead from kernel to kernel
      "data-cell": [row, phase], style: `--written:${written};--fused:${fused}` },
    ...(isSum ? [make("strong", {}, title)] : [make("span", {}, title), make("span", { class: "mg-quiet" }, change), make("span", { class: "mg-quiet mgw-made" }, operations)]));
    asButton(line, isSum ? `${data.rows[row][0]}: ${title}` : title,
      () => (isSum ? turn(data.rows[row][0]) : choose(chosen === k ? null : k)));
    onPoint(line, () => point(k), () => point(chosen));
    return line;
  };
  const legend = () => make("div", { class: "mg-legends" }, ...[["--written:100%", "as written, one by one", ""], ["--fused:100%", "fused", ""], ["--fused:100%", "by a library", "mgw-library"]].slice(0, data.bands.some(({ kind }) => kind === "library") ? 3 : 2)
    .map(([style, text, look]) => make("span", {}, make("i", { class: `mgw-band ${look}`, style }), text)));
  const cellOf = (lines, name, phase) => make("div", { class: `mgw-cell mgw-${phase}`, "data-phase": phase }, ...(opened.has(name) ? lines : lines.slice(0, 1)).map(lineOf));
  const nameOf = (name) => make("button", { class: "mgw-rowname", "aria-expanded": String(opened.has(name)), onclick: () => turn(name) },
    `${opened.has(name) ? "⊟" : "⊞"} ${name}`);

  const draw = () => {
    const heads = data.phases.map((name, i) => make("div", { class: `mgw-cell mgw-${name}` }, make("strong", {}, name), make("span", {}, data.totals[i])));
    grid.replaceChildren(legend(), make("section", { class: "mgw-row mgw-head" }, hasRows && make("span"), ...heads),
      ...data.rows.map(([name, cells]) => make("section", { class: "mgw-row", "data-row": name },
        hasRows && nameOf(name), ...cells.map((lines, i) => cellOf(lines, name, data.phases[i])))));
    all.textContent = opened.size < data.rows.length ? "open all rows" : "close all rows";
    point(chosen);
  };
  const turn = (row) => {
    if (!opened.delete(row)) opened.add(row);
    draw();
    grid.querySelectorAll(".mgw-rowname")[data.rows.findIndex(([name]) => name === row)].focus({ preventScroll: true });
  };

  const choose = (k) => {
    if (k !== null && !bandAt(k)) { opened.add(data.rows[data.bands[k].cell[0]][0]); draw(); }
    chosen = k;
    point(k);
    stages.only(stepOf(k));
    if (k === null) return;
    bandAt(k).focus({ preventScroll: true });
    bandAt(k).scrollIntoView({ block: "nearest" });
    read(`${data.bands[k].title}, ${whereOf(data.bands[k])}`);
  };
  const whereOf = ({ cell: [row, phase], step }) => [data.phases[phase], data.rows[row][0], step].filter(Boolean).join(" · ");
  const step = (by) => {
    const order = [...grid.querySelectorAll(".mgw-band[data-k]:not(.mgw-sum)")].map((band) => +band.dataset.k);
    choose(order[(order.indexOf(chosen) + by + order.length + (chosen === null && by < 0)) % order.length] ?? null);
  };

  const reasons = new Set(data.bands.flatMap(({ reads }) => reads.map(([, why]) => why.replace(/ \(\w+\)/, ""))));

  // What a kernel reads, what reads it, and what is known of it.
  const point = (k) => {
    const made = k === null ? [] : data.bands[k].reads, fed = data.bands.flatMap(({ reads }, i) => reads.filter(([from]) => from === k).map(([, why]) => [i, why]));
    const into = k === null ? [] : data.bands[k].into.map((i) => [i]);
    highlight(grid, "mgw-lit", k === null ? [] : [seen(k)]);
    highlight(grid, "mgw-reads", [...made, ...into].map(([i]) => seen(i)));
    highlight(grid, "mgw-feeds", fed.map(([i]) => seen(i)));
    if (k === null) {
      const words = ["One by one, each operation runs by itself and stores its result; views are not counted. A kernel runs several, and stores only what others need. It may take more than its operations: it combines partial sums, or makes a copy.",
        "These are counts of operations whose results are read, each where its kernel is. Eager mode runs the others, too: mg.viz.timeline counts all; there, functions such as softmax are programs of their own.", "Point at a kernel, or press Tab and ↓."];
      return say("", ...words.map(quiet), ...titled("what keeps kernels apart", ...[...reasons].map(quiet)));
    }
    const b = data.bands[k], parts = data.bands.flatMap(({ into }, i) => (into.includes(k) ? [[i]] : [])), nameOf = (i) => (data.bands[i].cell[0] === b.cell[0] ? "" : `${data.rows[data.bands[i].cell[0]][0]}: `) + data.bands[i].title;
    const links = (found) => linksOf(found.map(([i]) => i), nameOf, choose);
    const words = new Set([...made, ...fed].map(([i, why]) => `${nameOf(i)}: ${why}`));
    return say(b.title, quiet(whereOf(b)), tabled(b.rows), ...titled("operations", b.operations && make("p", {}, b.operations)), ...titled("some are of", ...links(parts)), ...titled("computed in", ...links(into)),
      ...titled("reads from", ...links(made)), ...titled("is read by", ...links(fed)), ...titled("not in one kernel with", ...[...words].map((text) => make("p", {}, text))));
  };

  const paint = () => { below.append(stages.element); stages.paintBeside(); stages.only(stepOf(chosen)); point(chosen); };

  draw();
  return { element, tools: [all], paint, leave: () => choose(null), keys: { o: () => { all.click(); all.focus(); }, ArrowDown: () => step(1), ArrowUp: () => step(-1) } };
};
