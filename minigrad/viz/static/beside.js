// Eager mode beside graph mode: a list of operations that are computed at once, and a list that is recorded first.

const show = (parent, data, shared = ALONE) => {
  const root = rootOf(parent, data.about);
  const last = data.steps.length;
  let at = shared.get() || data.steps.filter((step) => step.kind === "line").length; // eager has values, graph has none

  const pager = pagerOf((to) => go(to), "step");
  const columns = make("div", { class: "mg-columns" });
  const code = make("div", { class: "mg-below" });
  const aloud = make("div", { class: "mg-sr", "aria-live": "polite" });
  root.append(make("div", { class: "mg-bar" }, pager.back, pager.next, pager.slider, pager.count), columns, code, aloud);

  const row = (of, looks, value) => make("div", { class: `mg-row ${looks}` },
    make("span", { class: "mg-name" }, of.name), make("span", { class: "mg-type" }, of.type), make("span", { class: "mg-value" }, value));

  const paint = () => {
    const now = data.steps[at - 1];
    const counted = (kind) => data.steps.slice(0, at).filter((step) => step.kind === kind).length;
    const reached = (kind) => counted(kind) > 0;
    const again = counted("again"); // steps of the second call
    const lines = again ? Math.min(again, data.eager.length) : counted("line");
    const ran = again ? Math.min(again, data.kernels.length) : counted("run");
    const current = (kind, i) => (now && [kind, "again"].includes(now.kind) && now.row === i ? "mg-here" : "");
    const eager = data.eager.map((each, i) => row(each, `${i < lines ? "mg-done" : "mg-todo"} ${current("line", i)}`, i < lines ? each.value : ""));
    let graph;
    if (reached("fused")) {
      graph = data.kernels.map((kernel, i) => make("div", { class: `mg-kernel ${i < ran ? "mg-done" : "mg-waits"} ${current("run", i)}` },
        make("div", { class: "mg-quiet" }, `${kernel.name}${kernel.library ? ", a library call" : ""}${i < ran ? "" : ", waits"}`),
        ...kernel.nodes.map((n) => row(data.left[n], "", "")),
        ...(i < ran ? kernel.writes.map((each) => make("div", { class: "mg-written" }, `writes ${each.name}: ${each.value || each.type}`)) : [])));
    } else if (reached("passes")) {
      graph = data.left.map((each) => row(each, "mg-waits", ""));
    } else {
      graph = data.eager.map((each, i) => row(each, `${i < lines ? "mg-waits" : "mg-todo"} ${current("line", i)}`, i < lines ? "no value yet" : ""));
    }
    const column = (title, counted, said, rows) => make("section", { class: "mg-column" }, make("div", { class: "mg-head" },
      make("h3", {}, title), make("p", { class: "mg-say" }, said), make("div", { class: "mg-quiet" }, counted)), ...rows);
    const begin = "Nothing has run yet.";
    columns.replaceChildren(
      column("eager mode", `${again ? "second call: " : ""}${lines} computed`, now ? now.eager : begin, eager),
      column("graph mode", `${again ? "second call: 0" : reached("passes") ? data.left.length : lines} recorded, ${ran} kernel${ran === 1 ? "" : "s"} run`,
        now ? now.graph : begin, graph));
    const line = now && ["line", "again"].includes(now.kind) && data.eager[now.row] ? data.eager[now.row].line : null;
    code.replaceChildren(...(line ? codeOf(line) : []));
    pager.paint(at, last, `${at} / ${last}`);
    root.dataset.step = at;
    root.dataset.kind = now ? now.kind : "begin";
    aloud.textContent = now ? `eager: ${now.eager} graph: ${now.graph}` : begin;
    const here = columns.querySelectorAll(".mg-here");
    for (const element of here) {
      const list = element.closest(".mg-column");
      list.scrollTop = Math.max(0, element.offsetTop - list.clientHeight / 2);
    }
  };

  const go = (to, share = true) => {
    at = Math.max(0, Math.min(last, to));
    paint();
    if (share) shared.set(at);
  };

  onKeys(root, () => ({ ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), Home: () => go(0), End: () => go(last) }));

  paint();
  return { go };
};
