// How the compiler transforms a function: what was written and what it became, the stages of the compiler, and the kernels.  Python
// computed everything; this script decides what is seen.

const HELP = [
  ["← →", "one stage back, one stage on"], ["Home End", "as you wrote it, a second call"], ["↑ ↓", "from line to line of a stage"], ["n", "the next line that changed"],
  ["k", "the next kernel, with its source"], ["o", "open or close a kernel in the picture"], ["w", "the next arrow between kernels: why not fused?"],
  ["m", "move operations"], ["f", "show all of the picture; drag it to move it"], ["Esc", "choose nothing"], ["?", "this list"],
];

const show = (parent, data, shared = ALONE) => {
  const { root, help, turnHelp, helps, stage, side, aloud } = shellOf(parent, data.about, HELP);
  const stages = stagesOf(data, { say: (...said) => say(...said), sums: () => sums() });
  const last = stages.stages.length - 1;
  let at = Math.min(shared.get(), last), view = 0, canvas = null, boxes = new Map();
  let tab = at ? "stages" : data.written ? "written" : "kernels"; // the picture that matters is the first one
  let kernel = null, why = null; // what is chosen among the kernels: one of them, or an arrow between two

  const pager = pagerOf((to) => go(to), "stage");
  pager.count.classList.add("mg-passname");
  const pages = [...(data.written ? [["written", "as written → fused"]] : []), ["stages", "stages"], ["kernels", "kernels"], ["move", "move operations"]];
  const tabs = pages.map(([name, text]) => make("button", { "aria-pressed": "false", "data-tab": name, onclick: () => turnTo(name) }, text));
  const pictured = [make("button", { title: "f", onclick: () => canvas?.fit() }, "fit"), ...savesOf("fusion", () => canvas)];
  const { more, opener } = moreOf(space(), ...pictured, helps);
  const source = make("div", { class: "mg-source", hidden: true });
  const writtenBar = make("span", { class: "mgw-bar" });
  let written = null; // the first page, while it is seen
  let board = null; // made when it is first looked at
  const boardNow = () => (board ??= boardOf(data.board, (text) => { aloud.textContent = text; }));
  const dragging = draggingOf(data, boardNow, () => board, (places) => tell(places));
  root.append(make("div", { class: "mg-bar" }, ...tabs, writtenBar, pager.back, pager.next, pager.slider, pager.count, opener), more, dragging.note, stage, source, help, aloud);

  const kernelOf = (frame) => data.kernels.findIndex((each) => each.name === frame.dataset.frame.split("/").pop());

  // pages -------------------------------------------------------------------------------------------------------------
  const draw = () => {
    const active = root.getRootNode().activeElement;
    if (stage.contains(active) || source.contains(active)) root.focus({ preventScroll: true }); // the element with the focus is replaced
    source.hidden = dragging.note.hidden = true;
    canvas = written = null;
    writtenBar.replaceChildren();
    stage.classList.toggle("mgw-stage", tab === "written");
    if (tab === "move") return stage.replaceChildren(boardNow().element);
    if (tab === "written") {
      written = writtenOf(stage, data.written, { side, say, aloud: (text) => { aloud.textContent = text; }, bar: writtenBar });
      return written;
    }
    if (tab === "kernels") return drawKernels(data.views[view]);
    stage.replaceChildren(stages.element, side);
    askFor(stage, Math.max(420, Math.min(640, 22 * data.rows.length + 60)), 640);
    return stages.paint(at);
  };

  const drawKernels = (seen) => {
    canvas = canvasOf(data.pictures[view]);
    canvas.svg.classList.add("mg-fused");
    stage.replaceChildren(canvas.place, side);
    boxes = new Map([...canvas.svg.querySelectorAll(".mg-box")].map((box) => [+box.dataset.box, box]));
    for (const [key, box] of boxes) {
      asButton(box, wordsIn(box));
      linked(box, seen.boxes[key]);
    }
    drawFused(seen);
    askFor(stage, Math.max(420, canvas.svg.viewBox.baseVal.height + 30), 640);
    requestAnimationFrame(() => { canvas?.begin(); canvas?.centre(boxes.get(0)); });
    tell();
  };

  const linked = (box, places) => {
    const kernels = [...new Set(places.map((p) => data.places[p].kernel).filter((k) => k >= 0))];
    const enter = () => { if (kernels.length === 1) choose(kernels[0], places); else tell(places); };
    onPress(box, enter);
    onPoint(box, () => light(places.map((p) => data.places[p].item)), () => light([]));
  };

  const drawFused = (seen) => {
    hingesOf(canvas.svg, seen.doors, seen.exits, (to) => { view = to; draw(); });
    for (const [edge, crossings] of Object.entries(seen.traffic)) {
      const arrow = canvas.svg.querySelector(`[data-edge="${edge}"]`);
      const wide = arrow.firstElementChild.cloneNode();
      wide.setAttribute("class", "mg-wide");
      arrow.prepend(wide);
      const [from, to, bytes, reason] = data.whys[crossings[0]];
      asButton(arrow, `${data.places[from].name} to ${data.places[to].name}, ${bytes}: ${reason}`);
      onPress(arrow, () => chooseWhy(crossings[0]));
    }
    for (const frame of canvas.svg.querySelectorAll(".mg-frame")) {
      const which = kernelOf(frame);
      if (which >= 0) frame.querySelector("rect").addEventListener("click", () => choose(which));
    }
    dragging.start(canvas, boxes, seen, kernelOf);
    mark();
  };

  // what is chosen ----------------------------------------------------------------------------------------------------
  const choose = (which, places = null) => {
    kernel = which;
    why = null;
    mark();
    if (!places) canvas.reveal(canvas.svg.querySelector(".mg-box.mg-now"));
    tell(places);
    showSource();
  };

  const chooseWhy = (which) => {
    why = which;
    kernel = null;
    source.hidden = true;
    mark();
    canvas.reveal(canvas.svg.querySelector(".mg-box.mg-now"));
    tell();
  };

  // The boxes of the chosen kernel, or the ends of the chosen arrow.
  const mark = () => {
    if (!canvas) return;
    const seen = data.views[view];
    for (const [key, box] of boxes) {
      box.classList.toggle("mg-now", why !== null ? seen.boxes[key].some((p) => data.whys[why].slice(0, 2).includes(p))
        : kernel !== null && seen.boxes[key].some((p) => data.places[p].kernel === kernel));
    }
    for (const frame of canvas.svg.querySelectorAll(".mg-frame")) {
      frame.classList.toggle("mg-chosen", kernel !== null && kernelOf(frame) === kernel);
    }
    for (const [edge, crossings] of Object.entries(seen.traffic)) {
      canvas.svg.querySelector(`[data-edge="${edge}"]`).classList.toggle("mg-lit", why !== null && crossings.includes(why));
    }
    root.dataset.kernel = kernel ?? "";
    root.dataset.why = why ?? "";
  };

  // The same operation in the picture and in the source.
  const light = (items) => {
    const wanted = new Set(items.filter((i) => i >= 0));
    for (const line of source.querySelectorAll("[data-items]")) {
      line.classList.toggle("mg-here", line.dataset.items.split(" ").some((i) => i !== "" && wanted.has(+i)));
    }
    if (!canvas) return;
    for (const [key, box] of boxes) {
      box.classList.toggle("mg-hit", data.views[view].boxes[key].some((p) => wanted.has(data.places[p].item)));
    }
  };

  const showSource = () => {
    const found = data.kernels[kernel];
    source.hidden = !found.lines.length;
    if (source.hidden) return;
    const code = make("div", { class: "mg-code" }, ...found.lines.map(([text, items]) => {
      const line = make("div", { "data-items": items.join(" "), ...(items.length ? { tabindex: "0" } : {}) }, text || " ");
      if (items.length) {
        const pick = () => { light(items); const p = data.places.findIndex((each) => each.item === items[0] && each.kernel === kernel); if (p >= 0) { tell([p]); canvas.reveal(canvas.svg.querySelector(".mg-hit")); } };
        onPoint(line, () => light(items), () => light([]));
        onPress(line, pick);
      }
      return line;
    }));
    source.replaceChildren(make("div", { class: "mg-sourcehead" }, make("strong", {}, found.name), ` ${found.says}. In C; point at a line to see its operation.`,
      closer(() => { choose(kernel); source.hidden = true; })), code);
  };

  // the side ----------------------------------------------------------------------------------------------------------
  const say = (text, ...rest) => {
    side.replaceChildren(make("p", { class: "mg-say" }, text), ...rest);
    requestAnimationFrame(() => { side.scrollTop = 0; }); // at once, it would make the browser place a new picture twice
    aloud.textContent = text;
  };
  // The ways to run the program; a bar behind each number.
  const sums = () => {
    const heads = ["launches", "traffic", "time"].slice(0, Math.max(...data.sums.map((row) => row.length)) - 1);
    const most = heads.map((_, k) => Math.max(...data.sums.map((row) => row[k + 1]?.[0] ?? 0)));
    const bar = ([size, text], k) => make("td", { style: `--share:${100 * size / (most[k] || 1)}%` }, text);
    return make("table", { class: "mg-sums" }, make("tr", {}, ...["", ...heads].map((name) => make("th", {}, name))),
      ...data.sums.map(([name, ...numbers]) => make("tr", {}, make("td", {}, name), ...numbers.map(bar))));
  };
  const link = (text, does) => make("button", { class: "mg-link", onclick: does }, text);

  const tell = (places = null) => {
    if (tab !== "kernels") return undefined;
    if (why !== null) return tellWhy(data.whys[why]);
    if (kernel !== null) return tellKernel(data.kernels[kernel], places);
    if (places !== null) { const p = data.places[places[0]]; return say(`${p.name}, ${p.type}, is an input.`); }
    const boundaries = data.whys.map((each, i) => [each, i]).filter(([each]) => data.places[each[0]].kernel >= 0);
    return say(`${data.about}.`, sums(),
      make("h3", {}, "kernels and library calls"),
      make("div", { class: "mg-links" }, ...data.kernels.slice(0, 24).map((each, i) => link(each.name, () => choose(i))),
        ...(data.kernels.length > 24 ? [make("span", {}, `and ${data.kernels.length - 24} more: k leads through all`)] : [])),
      ...(boundaries.length ? [make("h3", {}, "why not fused?"), make("div", { class: "mg-links" },
        ...boundaries.slice(0, 24).map(([each, i]) => link(`${data.places[each[0]].name} → ${data.places[each[1]].name}`, () => chooseWhy(i))),
        ...(boundaries.length > 24 ? [make("span", {}, `and ${boundaries.length - 24} more: the thick arrows`)] : []))] : []));
  };

  const tellKernel = (found, places) => {
    const place = places ? data.places[places[0]] : null;
    return say(place ? `${place.name}, ${place.type}, is computed by ${found.name}.` : `${found.name}: ${found.says}`, rowsOf(found.rows),
      ...(place && place.line ? codeOf(place.line) : []));
  };

  const tellWhy = ([from, to, bytes, reason]) => {
    const [a, b] = [data.places[from], data.places[to]];
    say(`${a.name} goes to ${b.name} through memory: ${bytes}.`, make("h3", {}, "why not fused?"), make("p", { style: "margin:0" }, `${reason}.`));
    aloud.textContent = `${a.name} to ${b.name}: ${reason}`;
    return undefined;
  };

  // moving ------------------------------------------------------------------------------------------------------------
  const paintBar = () => {
    pager.paint(at, last, `${at + 1} / ${last + 1}  ${stages.stages[at].name}`);
    for (const control of [pager.back, pager.next, pager.slider, pager.count]) control.hidden = tab !== "stages";
    for (const control of pictured) control.hidden = tab !== "kernels";
    for (const button of tabs) button.setAttribute("aria-pressed", String(button.dataset.tab === tab));
    stage.classList.toggle("mg-boardstage", tab === "move");
    root.dataset.step = at;
    root.dataset.tab = tab;
  };

  const turnTo = (name) => {
    tab = name;
    kernel = why = null;
    paintBar();
    draw();
  };

  const go = (to, share = true) => { // from another page, first to the stage that was seen last
    at = tab === "stages" || !share ? Math.max(0, Math.min(last, to)) : at;
    if (tab === "stages") { paintBar(); stages.paint(at); } else turnTo("stages");
    if (share) shared.set(at);
  };

  const nextKernel = () => { if (canvas) choose(((kernel ?? -1) + 1) % data.kernels.length); };
  const nextWhy = () => {
    const all = canvas ? data.whys.map((_, i) => i).filter((i) => data.places[data.whys[i][0]].kernel >= 0) : [];
    if (all.length) chooseWhy(all[(all.indexOf(why) + 1) % all.length]);
  };

  const chooseNothing = () => {
    kernel = why = null;
    if (tab === "stages") stages.keep(null);
    if (tab === "move") turnTo("kernels");
    source.hidden = true;
    mark();
    tell();
    root.focus();
  };

  onKeys(root, (event) => (event.key === " " && event.target.matches("button") ? null : {
    ...(tab === "move" ? {} : { ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), Home: () => go(0), End: () => go(last) }),
    ...(tab === "stages" ? { n: stages.nextChange } : {}), k: nextKernel, w: nextWhy, m: () => turnTo(tab === "move" ? "kernels" : "move"), f: () => canvas?.fit(),
    "?": turnHelp, Escape: chooseNothing, ...written?.keys,
  }));

  paintBar();
  draw();
  return { go };
};
