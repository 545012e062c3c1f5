// The stages of the compiler: an operation keeps its line; what ends is struck out, what begins is marked.

const stagesOf = (data, say) => {
  const [written, fused] = data.taken.map((text) => `${text} read and written`);
  const [traced, ...passes] = data.steps.map((step, graph) => ({ ...step, graph }));
  const graph = data.steps.length; // that of the kernels
  const computed = data.rows.filter(({ kernels, texts }) => kernels && texts.at(-1)[2]), hidden = computed.filter(({ stored }) => !stored);
  const stages = [
    { name: "eager mode", graph: 0, says: `Eager mode computes each operation as soon as Python reaches it. One by one, the operations whose results are read take ${written}. ${data.unknown}` },
    { ...traced, says: "Graph mode only records each operation, with the shape of its result. Nothing is computed yet." }, ...passes,
    { name: "fused", graph, says: `Operations that can share a loop become one kernel: ${fused}. Stored are results, values kept for the gradient, and what another kernel, a check or a sum of parts reads. All else stays in a register or a temporary row: ${hidden.length} of ${computed.length} values${data.rows.some(({ inside }) => inside?.length) ? ", without those in branches and loops" : ""}.` },
    { name: "loops", graph, says: "Each kernel becomes loops over the elements, printed here in C." },
    { name: "run", graph, says: `Now the kernels run, one after the other, and write their results: ${fused}.` },
    { name: "called again", graph, says: `Eager mode runs every line again. Graph mode runs no line of your Python, only the kernels: ${fused}.` },
  ];

  const rows = data.rows.map((row, i) => (row.code === undefined
    ? make("div", { "data-row": i }, ...["mg-sign", "mg-call", "mg-type", "mg-value"].map((name) => make("span", { class: name })))
    : make("div", { class: "mg-line" }, make("span", { class: "mg-sign" }, `${row.line}`), make("span", { class: "mg-call" }, row.code))));
  const list = make("div", { class: "mg-listing mg-code", tabindex: "0", role: "list", "aria-label": "operations: up and down lead from line to line" },
    make("div", { class: "mg-paneltitle" }, "your lines, and their operations"), ...rows);
  const loops = make("div", { class: "mg-listing mg-code", hidden: true });
  const element = make("div", { class: "mg-listings" }, list, loops);
  const byName = new Map(data.rows.map((row, i) => [row.name, i]));
  let at = 0, kept = null, changed = [];

  const textAt = (row, graph) => row.texts.filter(([first]) => first <= graph).pop();
  const typeAt = ({ texts }, graph) => (texts.filter(([first, type]) => type && first <= graph).pop() ?? texts[0])[1]; // of what ended, its last one
  const called = ([, , operation, ...given], name) => (operation ? `${name} = ${operation}(${given.join(", ")})` : name);
  const headOf = (i) => { while (i > 0 && data.rows[i].code === undefined) i -= 1; return i; };

  // The kernels that compute a value, and whether it reaches memory.
  const placeOf = (row) => {
    if (!row.kernels) return row.view && row.texts[0][2] ? "a view, no copy" : "";
    return `${row.kernels.join(", ")} · ${row.stored ? `stored, ${row.stored}` : "not stored"}`;
  };

  // An operation that reads something else than before, or whose shape changed: the old and the new ones.
  const replaced = (before, now) => (now === before ? [now] : [...(before ? [make("del", {}, before)] : []), make("ins", {}, now)]);
  const rewritten = (before, now, name) => [`${name} = ${now[2]}(`, ...now.slice(3).flatMap((given, k) => [k ? ", " : "", ...replaced(before[k + 3], given)]),
    ")  ", ...replaced(before[1], now[1])];

  const writtenBy = ({ stored, kernels }, what = "it") => (stored && kernels ? `${kernels.join(" and ")} ${kernels.length > 1 ? "make" : "writes"} ${what}` : ""); // several: one combines the parts of others
  const valueOf = (row, { name }) => ({ "eager mode": row.value, fused: placeOf(row), run: writtenBy(row, row.value || row.stored), "called again": writtenBy(row) })[name] ?? "";

  const paintRow = (element, row, stage, graphs) => {
    const [before, now] = graphs.map((graph) => textAt(row, graph));
    const [was, is] = [before?.length > 1, now?.length > 1];
    const sign = !was && is ? "+" : was && !is ? "−" : was && before !== now ? "±" : "";
    element.className = `mg-op ${row.texts[0][2] ? "" : "mg-input "}${{ "+": "mg-begins", "−": "mg-ends", "±": "mg-reads" }[sign] ?? ""}${was || is ? "" : " mg-absent"}`;
    const [mark, call, type, value] = element.children;
    mark.textContent = sign;
    if (was || is) call.replaceChildren(...(sign === "±" ? rewritten(before, now, row.name) : [called(is ? now : before, row.name)]),
      ...row.inside.map((text) => make("div", { class: "mg-inside", title: text }, text)));
    type.textContent = was || is ? (is ? now : before)[1] : "";
    value.textContent = is ? valueOf(row, stage) : "";
    return sign;
  };

  const paint = (to) => {
    at = to;
    const stage = stages[at], before = at ? stages[at - 1].graph : stage.graph;
    changed = rows.flatMap((element, i) => (data.rows[i].code === undefined && paintRow(element, data.rows[i], stage, [before, stage.graph]) ? [i] : []));
    paintCode(stage);
    loops.hidden = stage.name !== "loops"; // which are beside your code
    element.classList.toggle("mg-paired", !loops.hidden);
    if (!loops.hidden && !loops.children.length) loops.append(...sources());
    light(kept);
    if (changed.length && !changed.some((i) => seen(rows[i]))) show(rows[changed[0]]);
  };

  // Your lines: those that have operations in this stage.
  const paintCode = (stage) => {
    let some = false;
    for (let i = rows.length - 1; i >= 0; i -= 1) {
      if (data.rows[i].code === undefined) { some ||= !rows[i].matches(".mg-absent, .mg-input"); continue; }
      rows[i].classList.toggle("mg-ends", stage.name === "called again");
      rows[i].classList.toggle("mg-absent", !some);
      some = false;
    }
  };

  // Below the kernels: your code and their loops, or the loops of one step.
  const paintBeside = () => paint(stages.findIndex(({ name }) => name === "loops"));
  const only = (step) => {
    const own = rows.filter((_, i) => data.rows[i].kernels?.includes(step));
    for (const each of loops.children) each.hidden = own.length > 0 && each.dataset.kernel !== step;
    highlight(list, "mg-with", own);
    if (own.length) show(own[0]);
  };

  const seen = (element) => element.offsetTop >= list.scrollTop && element.offsetTop < list.scrollTop + list.clientHeight;
  const show = (row) => { list.scrollTop = row.offsetTop - 24; }; // below your line, which stays at the top

  // The loops of each kernel.  A line has the names of the operations that it computes, loads or stores.
  const sources = () => data.kernels.map(({ name, title, says, lines }) => make("div", { class: "mg-loops", "data-kernel": name },
    make("div", { class: "mg-line" }, `${title}: ${name}, ${says}`),
    ...lines.map(([text, names]) => make("div", { "data-names": names.join("|") }, text || " "))));

  // What belongs to an operation: its line, its expression in your code, what replaced it, its kernel, and its lines in the loops.
  const light = (i) => {
    const stage = stages[at], row = i === null ? null : data.rows[i];
    const replaced = (stage.fired ?? []).filter((each) => each.slice(1).includes(i)).flatMap((each) => each.slice(1));
    const alike = (other) => stage.name === "fused" && Boolean(row?.kernels) && data.rows[other].kernels?.[0] === row.kernels[0];
    highlight(list, "mg-here", [rows[i]]);
    highlight(list, "mg-with", rows.filter((_, other) => other !== i && (replaced.includes(other) || alike(other))));
    for (const mark of list.querySelectorAll(".mg-line mark")) mark.replaceWith(mark.textContent);
    const head = i === null ? 0 : headOf(i), code = data.rows[head]?.code;
    if (code && row?.span) rows[head].lastElementChild.replaceChildren(...markedIn(code, row.span));
    const lines = [...loops.querySelectorAll("[data-names]")];
    highlight(loops, "mg-here", lines.filter(({ dataset }) => row && dataset.names.split("|").includes(row.name)));
  };

  const keep = (i) => { kept = i; light(i); tell(); };

  const tell = () => {
    const stage = stages[at], row = kept === null ? null : data.rows[kept];
    if (row) return say(`${row.name}, ${typeAt(row, stage.graph)}`, tabled(storyOf(row)));
    const fired = (stage.fired ?? []).map(([rule, ...places]) => {
      const [first, ...others] = new Set(places.filter((i) => i >= 0)), line = first === undefined ? undefined : data.rows[headOf(first)].line;
      const names = first === undefined ? "" : `: ${[first, ...others].map((i) => data.rows[i].name).join(" → ")}`;
      return linkTo(() => { show(rows[first]); keep(first); }, rule + names + (line ? `, line ${line}` : ""), { disabled: !names });
    });
    return say(`${stage.name}: ${stage.says}`,
      ...(stage.operations === undefined ? [] : [tabled([["operations", `${stage.operations}`], ["launches", `${stage.launches}`], ["traffic", stage.bytes]])]),
      ...(changed.length ? [quiet("− ends here · + begins here · ± reads something else, or its shape changes"),
        linkTo(nextChange, `next of ${changed.length} changed lines`, { title: "n" })] : []),
      ...(fired.length ? [make("h3", {}, "what fired, and where"), make("div", { class: "mg-links" }, ...fired.slice(0, 60),
        fired.length > 60 && make("span", {}, `and ${fired.length - 60} more`))] : []));
  };

  // What became of an operation, stage by stage.
  const storyOf = (row) => {
    const story = row.texts.map((text) => [stages.find((each, k) => k && each.graph === text[0]).name, text.length > 1 ? `${called(text, row.name)}  ${text[1]}` : "ended"]);
    return [["eager mode", row.value], ...story, ["fused", placeOf(row)], ["run", writtenBy(row)]].filter(([, text]) => text);
  };

  const nextChange = () => {
    if (!changed.length) return;
    const next = changed.find((i) => i > (kept ?? -1)) ?? changed[0];
    show(rows[next]);
    keep(next);
  };

  const rowAt = (event) => {
    const line = event.target.closest?.("[data-row], [data-names]");
    if (!line) return null;
    return line.dataset.row ? +line.dataset.row : byName.get(line.dataset.names.split("|")[0]) ?? null;
  };
  element.addEventListener("pointerover", (event) => light(rowAt(event) ?? kept));
  element.addEventListener("pointerleave", () => light(kept));
  element.addEventListener("click", (event) => { const i = rowAt(event); if (i !== null) keep(i === kept ? null : i); });
  const move = (by) => {
    let next = (kept ?? (by > 0 ? -1 : rows.length)) + by;
    while (rows[next] && (!rows[next].classList.contains("mg-op") || rows[next].classList.contains("mg-absent"))) next += by;
    if (!rows[next]) return;
    if (!seen(rows[next])) show(rows[next]);
    keep(next);
  };
  onKeys(list, () => ({ ArrowDown: () => move(1), ArrowUp: () => move(-1) }));
  return { element, stages, paint: (to) => { paint(to); tell(); }, paintBeside, only, keep, nextChange };
};
