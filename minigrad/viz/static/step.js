// Stepping through a backward pass.  Every number shown was computed in Python; here it is decided what is seen when.

const HELP = [
  ["← →", "one step back, one step on"], ["Home End", "to the beginning, to the end"], ["Space", "play, or stop"],
  ["Tab Enter", "from box to box, and on until its gradient is complete"], ["c", "close or open scopes"],
  ["f", "fit the picture into its frame"], ["p", "predict what comes next"], ["?", "this list"],
];

const show = (parent, data, told = { get: () => 0, set: () => {} }) => {
  const root = rootOf(parent, data.about);
  const last = data.steps.length;
  let at = told.get() || data.forward; // steps that are done; we begin where the way back begins
  let view = 0, canvas = null, parts = null, timer = null, shown = "value", predicting = false, hidden = false;
  let acting = null; // the numbers of nodes in the order in which somebody sent their gradients on, while acting it out

  // How many contributions come to each node, and how many operations wait for each gradient.
  const due = new Map();
  for (const step of data.steps.slice(data.forward)) {
    if (step.kind !== "sum") due.set(step.target, (due.get(step.target) || 0) + 1);
  }

  // the bar -----------------------------------------------------------------------------------------------------------
  const back = make("button", { onclick: () => go(at - 1), title: "←" }, "‹ back");
  const next = make("button", { class: "mg-main", onclick: () => forward(), title: "→" }, "next ›");
  const count = make("span", { class: "mg-count", "aria-hidden": "true" });
  const slider = make("input", { type: "range", min: 0, max: last, "aria-label": "step", oninput: () => go(+slider.value) });
  const play = make("button", { onclick: () => playing(), title: "Space", "aria-label": "play" }, "▶");
  const choose = make("select", { "aria-label": "what boxes show", onchange: () => { shown = choose.value; paint(); } },
    ...[["value", "values"], ["type", "shapes"], ["norm", "norms"]].map(([v, t]) => make("option", { value: v }, t)));
  const predict = make("button", { "aria-pressed": "false", title: "p", onclick: () => togglePredict() }, "predict");
  const act = make("button", { "aria-pressed": "false", onclick: () => toggleAct() }, "act it out");
  const scopes = make("button", { title: "c", onclick: () => turn() }, "open scopes");
  const fits = make("button", { title: "f", onclick: () => canvas.fit() }, "fit");
  const save = make("button", { onclick: () => download() }, "save SVG");
  const helps = make("button", { title: "?", "aria-label": "keys", onclick: () => { help.hidden = !help.hidden; } }, "?");
  const more = make("div", { class: "mg-bar mg-more", hidden: true },
    play, choose, predict, act, ...(data.views.length > 1 ? [scopes] : []), fits, save, helps);
  const opener = make("button", { "aria-expanded": "false", onclick: () => {
    more.hidden = !more.hidden;
    opener.setAttribute("aria-expanded", String(!more.hidden));
  } }, "more ▾");
  const help = make("div", { class: "mg-help", hidden: true },
    ...HELP.map(([keys, does]) => make("div", {}, ...keys.split(" ").flatMap((k) => [make("kbd", {}, k), " "]), does)));
  const side = make("div", { class: "mg-side" });
  const stage = make("div", { class: "mg-stage" });
  const aloud = make("div", { class: "mg-sr", "aria-live": "polite" });
  root.append(make("div", { class: "mg-bar" }, back, next, slider, count, opener), more, stage, help, aloud);

  // the picture -------------------------------------------------------------------------------------------------------
  const draw = () => {
    const seen = data.views[view];
    canvas = canvasOf(seen.svg);
    stage.replaceChildren(canvas.holder, side);
    const boxes = new Map([...canvas.svg.querySelectorAll(".mg-box")].map((box) => [+box.dataset.box, box]));
    const edges = new Map([...canvas.svg.querySelectorAll(".mg-edge")].map((edge) => [+edge.dataset.edge, edge]));
    const nodes = { there: new Map(), back: new Map() }; // box -> the numbers of its nodes
    for (const [kind, map] of [["there", seen.box], ["back", seen.gradient]]) {
      for (const [node, box] of Object.entries(map)) {
        if (!nodes[kind].has(box)) nodes[kind].set(box, []);
        nodes[kind].get(box).push(+node);
      }
    }
    for (const [key, box] of boxes) {
      const backwards = nodes.back.has(key);
      const own = nodes[backwards ? "back" : "there"].get(key) || [];
      box.setAttribute("tabindex", "0");
      box.setAttribute("role", "button");
      box.setAttribute("aria-label", [...box.querySelectorAll("text")].map((t) => t.textContent).join(", "));
      const enter = () => (acting && backwards ? send(own) : until(own, backwards));
      box.addEventListener("click", enter);
      box.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.stopPropagation(); enter(); } });
    }
    parts = { seen, boxes, edges, nodes };
    scopes.textContent = seen.name === "folded" ? "open scopes" : "close scopes";
    requestAnimationFrame(() => { canvas.fit(); paint(); });
  };

  // What has come to each node after `count` steps.
  const stateAfter = (count) => {
    const made = new Set(), came = new Map(), total = new Map();
    data.nodes.forEach((node, i) => { if (!node.inputs.length) made.add(i); });
    for (const step of data.steps.slice(0, count)) {
      if (step.kind === "make") made.add(step.target);
      else {
        if (step.kind !== "sum") came.set(step.target, (came.get(step.target) || 0) + 1);
        total.set(step.target, step);
      }
    }
    return { made, came, total };
  };

  const paint = () => {
    const { seen, boxes, edges, nodes } = parts;
    const now = data.steps[at - 1];
    const state = acting ? actedOut() : stateAfter(hidden ? at - 1 : at);
    for (const [key, box] of boxes) {
      const own = nodes.there.get(key);
      const gradients = nodes.back.get(key);
      box.classList.remove("mg-none", "mg-part", "mg-now", "mg-wrong");
      if (gradients) {
        const wanted = gradients.filter((n) => due.has(n));
        const begun = wanted.filter((n) => state.came.has(n));
        const full = wanted.filter((n) => state.came.get(n) >= due.get(n));
        if (!begun.length) box.classList.add("mg-none");
        else if (full.length < wanted.length) box.classList.add("mg-part");
        if (state.wrong && gradients.some((n) => state.wrong.has(n))) box.classList.add("mg-wrong");
        if (gradients.length === 1) label(box, gradients[0], state.total.get(gradients[0]));
      } else if (own) {
        if (own.every((n) => !state.made.has(n))) box.classList.add("mg-none");
        if (own.length === 1) label(box, own[0], state.made.has(own[0]) ? data.nodes[own[0]] : null);
      }
    }
    const reached = new Set();
    const upTo = data.steps.slice(0, at);
    for (const step of upTo) {
      if (step.kind === "make") data.nodes[step.node].inputs.forEach((_, slot) => reached.add(`there ${step.node}.${slot}`));
      else if (step.kind === "pass") reached.add(`back ${step.node}.${step.slot}`);
    }
    for (const edge of edges.values()) edge.classList.remove("mg-hid", "mg-lit");
    if (!acting) {
      const alight = new Set([...reached].map((name) => seen.arrows[name]));
      for (const [name, key] of Object.entries(seen.arrows)) {
        if (!alight.has(key) && !reached.has(name)) edges.get(key).classList.add("mg-hid");
      }
      if (now) light(now);
    }
    count.textContent = at <= data.forward ? `${at} / ${data.forward} →` : `${at - data.forward} / ${last - data.forward} ←`;
    slider.value = at;
    back.disabled = at <= 0;
    next.disabled = at >= last && !hidden;
    next.textContent = hidden ? "reveal" : "next ›";
    root.dataset.step = at;
    root.dataset.kind = now ? now.kind : "begin";
    tell(now);
  };

  // The last line of a box says what its number is.
  const label = (box, node, known) => {
    const lines = box.querySelectorAll("text");
    if (lines.length < 3) return;
    const backwards = box.classList.contains("mg-gradient");
    const text = !known ? "" : shown === "type" ? data.nodes[node].type
      : shown === "norm" ? known.norm : backwards ? known.total : known.value;
    lines[2].textContent = text || "";
  };

  const light = (step) => {
    const { seen, boxes, edges } = parts;
    const of = step.kind === "make" ? seen.box : seen.gradient;
    const targets = [of[step.target], step.kind === "pass" ? of[step.node] : undefined];
    for (const key of targets) if (boxes.has(key)) boxes.get(key).classList.add("mg-now");
    const names = step.kind === "pass" ? [`back ${step.node}.${step.slot}`]
      : step.kind === "make" ? data.nodes[step.node].inputs.map((_, slot) => `there ${step.node}.${slot}`) : [];
    for (const name of names) if (name in seen.arrows) edges.get(seen.arrows[name]).classList.add("mg-lit");
    canvas.reveal(boxes.get(of[step.target]));
  };

  // the side ----------------------------------------------------------------------------------------------------------
  const tell = (step) => {
    if (acting) return tellActing();
    if (!step) return side.replaceChildren(make("p", { class: "mg-say" }, "Nothing has been computed yet."));
    const said = hidden ? `What comes to ${data.nodes[step.target].name}?` : step.say;
    const found = [make("p", { class: "mg-say" }, said)];
    if (hidden) found.push(...questions(step));
    if (step.rule) found.push(make("h3", {}, step.kind === "make" ? "what it computes" : "by the rule"), html(step.rule, "mg-rule"));
    if (!hidden && step.kind !== "make") {
      const rows = [["comes", step.value]];
      if (step.kind === "sum") rows.push(["was there", step.before], ["together", step.total]);
      else if (step.before !== null && step.before !== undefined) rows.push(["there already", step.before]);
      found.push(make("h3", {}, "numbers"), make("table", {},
        ...rows.map(([what, text]) => make("tr", {}, make("td", {}, what), make("td", {}, text)))));
      if (step.check) {
        const [rule, differences, agrees] = step.check;
        found.push(make("h3", {}, "checked by finite differences"), make("p", { style: "margin:0" },
          make("span", { class: agrees ? "mg-yes" : "mg-no" }, agrees ? "✓ " : "✗ "),
          `${rule.toPrecision(4)} by the rule, ${differences.toPrecision(4)} by differences, along a random direction`));
      }
    }
    const line = data.nodes[step.node ?? step.target].line;
    if (line) {
      found.push(make("h3", {}, `your code: ${line.file}`), make("div", { class: "mg-code" }, ...line.text.map((text, i) =>
        make("div", line.first + i === line.line ? { class: "mg-here" } : {},
          `${String(line.first + i).padStart(3)}  ${text}`))));
    }
    if (data.missing) found.push(make("h3", {}, "values"), make("p", { style: "margin:0" }, data.missing));
    side.replaceChildren(...found);
    aloud.textContent = said;
  };

  const html = (text, name) => {
    const element = make("div", { class: name });
    element.innerHTML = text; // MathML of ours
    return element;
  };

  // predicting --------------------------------------------------------------------------------------------------------
  const questions = (step) => {
    const answer = make("p", { style: "margin:6px 0", role: "status" });
    const shape = make("input", { type: "text", size: 12, "aria-label": "its shape", placeholder: "shape, such as 64 × 10" });
    const clean = (text) => (text.match(/\d+/g) || ["scalar"]).join(" × ");
    const judge = (right, truth) => {
      answer.replaceChildren(make("span", { class: right ? "mg-yes" : "mg-no" }, right ? "✓ right: " : "✗ it is "), truth);
    };
    const check = () => judge(clean(shape.value) === clean(step.type), step.type);
    shape.addEventListener("keydown", (event) => { event.stopPropagation(); if (event.key === "Enter") check(); });
    const signs = ["positive", "negative", "mixed", "zero"].map((sign) =>
      make("button", { onclick: () => judge(sign === step.sign, step.sign) }, sign));
    return [make("h3", {}, "its shape"), shape, " ", make("button", { onclick: check }, "check"),
      make("h3", {}, "its sign"), make("div", { style: "display:flex;gap:4px;flex-wrap:wrap" }, ...signs), answer];
  };

  const togglePredict = () => {
    predicting = !predicting;
    hidden = false;
    predict.setAttribute("aria-pressed", String(predicting));
    paint();
  };

  // acting it out -----------------------------------------------------------------------------------------------------
  // The student decides whose gradient is sent on.  Sent before all of it has come, it is stale, and what follows is wrong.
  const toggleAct = () => {
    acting = acting ? null : [];
    act.setAttribute("aria-pressed", String(Boolean(acting)));
    paint();
  };

  const passes = data.steps.filter((step) => step.kind === "pass");

  const actedOut = () => {
    const came = new Map(), wrong = new Set(), total = new Map(), sent = new Set();
    const result = data.steps[data.forward].target;
    came.set(result, 1);
    for (const node of acting) {
      const stale = (came.get(node) || 0) < due.get(node) || wrong.has(node);
      sent.add(node);
      for (const step of passes.filter((s) => s.node === node)) {
        came.set(step.target, (came.get(step.target) || 0) + 1);
        if (stale) wrong.add(step.target);
      }
    }
    const made = new Set(data.nodes.keys());
    return { made, came, wrong, total, sent };
  };

  const send = (own) => {
    const state = actedOut();
    for (const node of own) if (state.came.has(node) && !state.sent.has(node) && passes.some((s) => s.node === node)) acting.push(node);
    paint();
  };

  const tellActing = () => {
    const state = actedOut();
    const names = (list) => list.map((n) => data.nodes[n].name).join(", ");
    const waiting = [...state.came.keys()].filter((n) => !state.sent.has(n) && passes.some((s) => s.node === n));
    const early = acting.filter((n, i) => {
      const before = acting.slice(0, i);
      const arrived = (n === data.steps[data.forward].target ? 1 : 0)
        + passes.filter((s) => s.target === n && before.includes(s.node)).length;
      return arrived < due.get(n);
    });
    const done = [...due.keys()].every((n) => (state.came.get(n) || 0) >= due.get(n));
    const said = early.length
      ? `${names(early.slice(0, 1))} was sent on before all of it had come: what followed from it is wrong.`
      : done ? "Every gradient is complete, and in a right order." : `Click a gradient to send it on: ${names(waiting)}.`;
    side.replaceChildren(
      make("p", { class: "mg-say" }, said),
      make("h3", {}, "your order"),
      make("p", { style: "margin:0" }, acting.length ? names(acting) : "nothing yet"),
      make("p", {}, make("button", { onclick: () => { acting.pop(); paint(); } }, "rewind one"), " ",
        make("button", { onclick: () => { acting = []; paint(); } }, "begin again")));
    aloud.textContent = said;
  };

  // moving ------------------------------------------------------------------------------------------------------------
  const go = (to, tell_ = true) => {
    hidden = false;
    at = Math.max(0, Math.min(last, to));
    paint();
    if (tell_) told.set(at);
  };

  const forward = () => {
    if (hidden) { hidden = false; paint(); return; }
    const coming = data.steps[at];
    if (predicting && coming && coming.kind === "pass") { at += 1; hidden = true; paint(); return; }
    go(at + 1);
  };

  // To the step after which the gradient (or the value) of one of these nodes is complete.
  const until = (own, backwards) => {
    let found = 0;
    data.steps.forEach((step, i) => {
      if (own.includes(step.target) && (step.kind === "make") !== backwards) found = i + 1;
    });
    if (found) go(found);
  };

  const playing = () => {
    if (timer) { clearInterval(timer); timer = null; play.textContent = "▶"; return; }
    if (at >= last) go(data.forward);
    play.textContent = "❚❚";
    timer = setInterval(() => (at >= last || !root.isConnected ? playing() : go(at + 1)), still() ? 1600 : 900);
  };

  const turn = () => {
    if (data.views.length < 2) return;
    view = (view + 1) % data.views.length;
    draw();
  };

  const download = () => {
    const copy = new Blob([data.views[view].svg], { type: "image/svg+xml" });
    make("a", { href: URL.createObjectURL(copy), download: "backprop.svg" }).click();
  };

  root.addEventListener("keydown", (event) => {
    if (event.target.matches("input[type=text], select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      ArrowRight: forward, ArrowLeft: () => go(at - 1), Home: () => go(0), End: () => go(last), " ": playing, c: turn,
      f: () => canvas.fit(), p: togglePredict, "?": () => { help.hidden = !help.hidden; },
    };
    if (event.key === " " && event.target.matches("button")) return;
    if (!(event.key in keys)) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });

  draw();
  return { go };
};
