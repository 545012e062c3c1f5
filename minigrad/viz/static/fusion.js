// How the compiler transforms a function: a slider through the passes, then the kernels.  Python computed everything;
// this script decides what is seen.

const HELP = [
  ["← →", "one pass back, one pass on"], ["Home End", "as you wrote it, as it is fused"], ["Tab Enter", "from box to box, and the facts about it"],
  ["k", "the next kernel, with its source"], ["o", "open or close a kernel in the picture"], ["w", "the next arrow between kernels: why not fused?"],
  ["m", "move operations"], ["f", "show all of the picture; drag it to move it"], ["Esc", "choose nothing"], ["?", "this list"],
];

const show = (parent, data, shared = ALONE) => {
  const { root, help, turnHelp, helps, stage, side, aloud } = shellOf(parent, data.about, HELP);
  const last = data.stages.length; // the step after the last pass: the kernels
  let at = Math.min(shared.get(), last), view = 0, tab = "picture", canvas = null, boxes = new Map();
  let kernel = null, why = null; // what is chosen in the fused picture: a kernel, or an arrow between two

  const pager = pagerOf((to) => go(to), "pass");
  pager.count.classList.add("mg-passname");
  const tabs = [["picture", "picture"], ["move", "move operations"], ...data.charts.map((chart) => [chart.name, chart.name])]
    .map(([name, text]) => make("button", { "aria-pressed": "false", "data-tab": name, onclick: () => turnTo(name) }, text));
  const fits = make("button", { title: "f", onclick: () => canvas?.fit() }, "fit");
  const { more, opener } = moreOf(...tabs, space(), fits, ...savesOf("fusion", () => canvas), helps);
  const source = make("div", { class: "mg-source", hidden: true });
  let board = null; // made when it is first looked at
  const boardNow = () => (board ??= boardOf(data.board, (text) => { aloud.textContent = text; }));
  const dragging = draggingOf(data, boardNow, () => board, (places) => tell(places));
  root.append(make("div", { class: "mg-bar" }, pager.back, pager.next, pager.slider, pager.count, opener), more, dragging.note, stage, source, help, aloud);

  const kernelOf = (frame) => data.kernels.findIndex((each) => each.name === frame.dataset.frame.split("/").pop());

  // pictures ----------------------------------------------------------------------------------------------------------
  const draw = () => {
    const active = root.getRootNode().activeElement;
    if (stage.contains(active) || source.contains(active)) root.focus({ preventScroll: true }); // the element with the focus is replaced
    source.hidden = true;
    canvas = null;
    dragging.note.hidden = true;
    if (tab === "move") return drawBoard();
    if (tab !== "picture") return drawChart(data.charts.find((chart) => chart.name === tab));
    const fused = at === last;
    const seen = fused ? data.views[view] : data.stages[at];
    if (!data.pictures[seen.svg]) stage.replaceChildren(make("p", { class: "mg-empty" }, "This graph is too large for a picture."), side);
    else {
      canvas = canvasOf(data.pictures[seen.svg]);
      canvas.svg.classList.toggle("mg-fused", fused);
      stage.replaceChildren(canvas.place, side);
      boxes = new Map([...canvas.svg.querySelectorAll(".mg-box")].map((box) => [+box.dataset.box, box]));
      for (const [key, box] of boxes) {
        asButton(box, wordsIn(box));
        if (fused) linked(box, seen.boxes[key]);
      }
      if (fused) drawFused(seen);
      else {
        for (const key of seen.fresh) boxes.get(key)?.classList.add("mg-fresh");
        for (const key of seen.going) boxes.get(key)?.classList.add("mg-going");
      }
      askFor(stage, Math.max(420, canvas.svg.viewBox.baseVal.height + 30), 640);
      requestAnimationFrame(() => { canvas?.begin(); canvas?.centre(boxes.get(0)); });
    }
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

  const drawChart = (chart) => {
    canvas = canvasOf(chart.svg);
    stage.replaceChildren(canvas.place, side);
    const marks = marksOf(canvas.svg, chart.marks, (key) => {
      marks.keep(key);
      if (chart.marks[key]) say(chart.marks[key].title, rowsOf(chart.marks[key].rows));
    });
    requestAnimationFrame(() => canvas?.begin());
    say(chart.says, sums());
  };

  const drawBoard = () => {
    stage.replaceChildren(boardNow().element);
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
    if (at !== last || !canvas) return;
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
    if (at !== last || tab !== "picture") return;
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
  const sums = () => make("table", { class: "mg-sums" },
    make("tr", {}, ...["", "launches", "traffic"].map((name) => make("th", {}, name))),
    ...data.sums.map(([name, launches, bytes]) => make("tr", {}, ...[name, launches, bytes].map((text) => make("td", {}, text)))));
  const link = (text, does) => make("button", { class: "mg-link", onclick: does }, text);

  const tell = (places = null) => {
    if (tab !== "picture") return undefined;
    if (at < last) return tellPass(data.stages[at]);
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

  const tellPass = (seen) => say(at ? `${seen.name}: ${seen.says}` : seen.says,
    rowsOf([["operations", `${seen.operations}`], ["launches", `${seen.launches}`], ["traffic", seen.bytes]]),
    ...(seen.fired.length ? [make("h3", {}, "what fired, and where"), make("div", { class: "mg-fired" }, ...seen.fired.slice(0, 60).map(([text, keys]) =>
      make("button", { onclick: () => {
        for (const box of boxes.values()) box.classList.remove("mg-now");
        for (const key of keys) { boxes.get(key)?.classList.add("mg-now"); canvas?.reveal(boxes.get(key)); }
      } }, text)))] : []),
    ...(seen.fresh.length || seen.going.length ? [make("p", { class: "mg-quiet" },
      [seen.fresh.length ? "bold: new here" : "", seen.going.length ? "dashed: gone after the next pass" : ""].filter(Boolean).join(" · "))] : []));

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
    const picture = tab === "picture";
    pager.paint(at, last, `${at} / ${last}  ${at === last ? "fused" : data.stages[at].name}`);
    if (!picture) for (const control of [pager.back, pager.next]) control.disabled = true;
    pager.slider.disabled = !picture;
    for (const button of tabs) button.setAttribute("aria-pressed", String(button.dataset.tab === tab));
    stage.classList.toggle("mg-boardstage", tab === "move");
    root.dataset.step = at;
    root.dataset.tab = tab;
  };

  const go = (to, share = true) => {
    const before = at;
    at = Math.max(0, Math.min(last, to));
    if (at === before && canvas && tab === "picture") return;
    tab = "picture";
    kernel = why = null;
    paintBar();
    draw();
    if (share) shared.set(at);
  };

  const turnTo = (name) => {
    tab = name;
    kernel = why = null;
    if (name !== "picture") at = last;
    paintBar();
    draw();
  };

  const nextKernel = () => { if (at === last && tab === "picture") choose(((kernel ?? -1) + 1) % data.kernels.length); };
  const nextWhy = () => {
    if (at !== last || tab !== "picture") return;
    const all = data.whys.map((_, i) => i).filter((i) => data.places[data.whys[i][0]].kernel >= 0);
    if (all.length) chooseWhy(all[(all.indexOf(why) + 1) % all.length]);
  };

  onKeys(root, () => {
    const picture = tab === "picture";
    return {
      ...(picture ? { ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), Home: () => go(0), End: () => go(last), k: nextKernel, w: nextWhy } : {}),
      m: () => turnTo(tab === "move" ? "picture" : "move"), f: () => canvas?.fit(), "?": turnHelp,
      Escape: () => { kernel = why = null; if (picture) { source.hidden = true; mark(); tell(); } else turnTo("picture"); root.focus(); },
    };
  });

  paintBar();
  draw();
  return { go };
};
