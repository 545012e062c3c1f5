// Stepping through a backward pass.  Every number shown was computed in Python; here it is decided what is seen when.

const HELP = [
  ["← →", "one step back, one step on"], ["Home End", "to the beginning, to the end"], ["Space", "play, or stop"],
  ["Tab Enter", "from box to box, and on until its gradient is complete"], ["o", "open the box, close the frame"],
  ["c", "open or close all scopes"], ["f", "fit the picture into its frame"], ["p", "predict what comes next"],
  ["a Backspace", "act it out; take back what was sent last"], ["?", "this list"],
];

// A number, or a few, with three digits.
const brief = (x) => Number(x.toPrecision(3)).toString().replace("-", "−");
const briefly = (xs) => (xs.length === 1 ? brief(xs[0])
  : xs.length <= 4 ? `[${xs.map(brief).join(", ")}]` : `${brief(Math.min(...xs))} … ${brief(Math.max(...xs))}`);

const show = (parent, data, told = { get: () => 0, set: () => {} }) => {
  const root = rootOf(parent, data.about);
  const last = data.steps.length;
  const result = data.steps[data.forward].target;
  let at = told.get() || data.forward; // steps that are done; we begin where the way back begins
  let view = 0, canvas = null, parts = null, timer = null, shown = "value", predicting = false, hidden = false;
  let acting = null; // the numbers of nodes in the order in which somebody sent their gradients on, while acting it out
  const linesOf = new WeakMap(); // box -> its lines of text
  let tall = 380; // how high the picture is, which never shrinks under the mouse
  let note = ""; // what is said of the last thing that somebody tried

  const passes = data.steps.filter((step) => step.kind === "pass");
  const due = new Map(); // how many contributions come to each node
  const final = new Map(); // the last step of each node, which says its whole gradient
  for (const step of data.steps.slice(data.forward)) {
    if (step.kind !== "sum") due.set(step.target, (due.get(step.target) || 0) + 1);
    final.set(step.target, step);
  }

  // Where one may stop: after every step, after all that one operation passes back, or after all of a scope.
  const stops = { step: [], operation: [], scope: [] };
  for (let i = 0; i <= last; i += 1) {
    const [before, after] = [data.steps[i - 1], data.steps[i]];
    const ends = !before || !after || before.kind === "seed" || after.kind === "seed" || i === data.forward;
    stops.step.push(i);
    if (ends || before.node !== after.node) stops.operation.push(i);
    if (ends || data.nodes[before.node].scope !== data.nodes[after.node].scope) stops.scope.push(i);
  }
  let grain = "step";
  const stopAfter = (i) => stops[grain].find((stop) => stop > i) ?? last;
  const stopBefore = (i) => stops[grain].findLast((stop) => stop < i) ?? 0;

  // the bar -----------------------------------------------------------------------------------------------------------
  const back = make("button", { onclick: () => go(stopBefore(at)), title: "←" }, "‹ back");
  const next = make("button", { class: "mg-main", onclick: () => forward(), title: "→" }, "next ›");
  const count = make("span", { class: "mg-count", "aria-hidden": "true" });
  const slider = make("input", { type: "range", min: 0, max: last, "aria-label": "step", oninput: () => go(+slider.value) });
  const choice = (label, options, chosen) => make("select", { "aria-label": label, onchange: (event) => chosen(event.target.value) },
    ...options.map(([value, text]) => make("option", { value }, text)));
  const toggle = (text, key, does) => make("button", { "aria-pressed": "false", title: key, onclick: does }, text);
  const play = make("button", { onclick: () => playing(), title: "Space", "aria-label": "play" }, "▶");
  const choose = choice("what boxes show", [["value", "values"], ["type", "shapes"], ["norm", "norms"]], (to) => { shown = to; paint(); });
  const coarse = choice("how far a step goes", [["step", "each contribution"], ["operation", "each operation"], ["scope", "each module"]],
    (to) => { grain = to; paint(); });
  const predict = toggle("predict", "p", () => togglePredict());
  const act = toggle("act it out", "a", () => toggleAct());
  const scopes = make("button", { title: "c", onclick: () => turnAll() }, "open all");
  const fits = make("button", { title: "f", onclick: () => canvas.fit() }, "fit");
  const saves = ["SVG", "PNG"].map((form) => make("button", {
    onclick: () => (form === "SVG" ? saveSvg : savePng)(canvas.svg, "backprop"), title: "the picture as it is now",
  }, `save ${form}`));
  const helps = make("button", { title: "?", "aria-label": "keys", onclick: () => { help.hidden = !help.hidden; } }, "?");
  const { more, opener } = moreOf(play, choose, coarse, predict, act, ...(data.views.length > 1 ? [scopes] : []), fits, ...saves, helps);
  const help = helpOf(HELP);
  const side = make("div", { class: "mg-side" });
  const stage = make("div", { class: "mg-stage" });
  const aloud = make("div", { class: "mg-sr", "aria-live": "polite" });
  root.append(make("div", { class: "mg-bar" }, back, next, slider, count, opener), more, stage, help, aloud);

  // the picture -------------------------------------------------------------------------------------------------------
  const draw = (seen) => {
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
      asButton(box, wordsIn(box));
      const enter = () => (acting ? (backwards ? send(own) : null) : until(own, backwards));
      box.addEventListener("click", enter);
      box.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.stopPropagation(); enter(); } });
    }
    hingesOf(canvas.svg, seen.doors, seen.exits, (to, box) => {
      const near = box === undefined ? undefined : (nodes.there.get(box) || nodes.back.get(box))[0];
      turn(to, near, nodes.back.has(box));
    });
    for (const box of boxes.values()) linesOf.set(box, box.querySelectorAll("text:not(.mg-door)"));
    parts = { seen, boxes, edges, nodes };
    scopes.textContent = view === data.views.length - 1 && view ? "close" : "open all";
    tall = Math.max(tall, Math.min(520, canvas.svg.viewBox.baseVal.height + 40));
    stage.style.height = `${tall}px`;
    requestAnimationFrame(() => { canvas.fit(0.75); paint(); });
  };

  const turn = (to, near, backwards) => {
    view = to;
    draw(data.views[view]);
    const box = near === undefined ? null : parts.boxes.get(parts.seen[backwards ? "gradient" : "box"][near]);
    (box || root).focus();
  };

  const turnAll = () => { if (data.views.length > 1) turn(view === data.views.length - 1 ? 0 : data.views.length - 1); };

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
    const { marks, lit } = acting || !now ? { marks: new Map(), lit: new Set() } : lightOf(now);
    for (const [key, box] of boxes) {
      const own = nodes.there.get(key);
      const gradients = nodes.back.get(key);
      const looks = marks.get(key) || [];
      if (gradients) {
        const wanted = gradients.filter((n) => due.has(n));
        const begun = wanted.filter((n) => state.came.has(n));
        const full = wanted.filter((n) => state.came.get(n) >= due.get(n));
        if (!begun.length) looks.push("mg-none");
        else if (full.length < wanted.length) looks.push("mg-part");
        if (acting && gradients.some((n) => state.wrong.has(n) || state.early.includes(n))) looks.push("mg-wrong");
        if (gradients.length === 1) label(box, gradients[0], acting ? state.numbers.get(gradients[0]) : state.total.get(gradients[0]));
      } else if (own) {
        if (own.every((n) => !state.made.has(n))) looks.push("mg-none");
        if (own.length === 1) label(box, own[0], state.made.has(own[0]) ? data.nodes[own[0]] : null);
      }
      dress(box, looks);
    }
    const paths = new Map([...lit].map((key) => [key, ["mg-lit"]]));
    for (const line of canvas.svg.querySelectorAll(".mg-needs")) line.remove();
    if (!acting) {
      const reached = new Set();
      for (const step of data.steps.slice(0, at)) {
        if (step.kind === "make") data.nodes[step.node].inputs.forEach((_, slot) => reached.add(`there ${step.node}.${slot}`));
        else if (step.kind === "pass") reached.add(`back ${step.node}.${step.slot}`);
      }
      const alight = new Set([...reached].map((name) => seen.arrows[name]));
      for (const [name, key] of Object.entries(seen.arrows)) {
        if (!alight.has(key) && !reached.has(name)) paths.set(key, ["mg-hid", ...(lit.has(key) ? ["mg-lit"] : [])]);
      }
      if (now) point(now);
    }
    for (const [key, edge] of edges) dress(edge, paths.get(key) || []);
    count.textContent = at <= data.forward ? `${at} / ${data.forward} →` : `${at - data.forward} / ${last - data.forward} ←`;
    slider.value = at;
    slider.setAttribute("aria-valuetext", at <= data.forward ? `forward ${at} of ${data.forward}` : `backward ${at - data.forward} of ${last - data.forward}`);
    back.disabled = Boolean(acting) || at <= 0;
    next.disabled = Boolean(acting) || (at >= last && !hidden);
    next.textContent = hidden ? "reveal" : "next ›";
    root.dataset.step = at;
    root.dataset.kind = now ? now.kind : "begin";
    root.dataset.view = view;
    tell(now, state);
  };

  // The last line of a box says what its number is.
  const label = (box, node, known) => {
    const lines = linesOf.get(box);
    if (lines.length < 3) return;
    const backwards = box.classList.contains("mg-gradient");
    const text = !known ? "" : typeof known === "string" ? known : shown === "type" ? data.nodes[node].type
      : shown === "norm" ? known.norm : backwards ? known.total : known.value;
    if (lines[2].textContent === (text || "")) return;
    lines[2].textContent = text || "";
    box.setAttribute("aria-label", wordsIn(box));
  };

  // Only what changes is touched: a step changes a handful of a thousand elements.
  const dress = (element, looks) => {
    const text = looks.join(" ");
    if ((element.mgLooks || "") === text) return;
    if (element.mgLooks) element.classList.remove(...element.mgLooks.split(" "));
    if (text) element.classList.add(...looks);
    element.mgLooks = text;
  };

  // The boxes and arrows that a step is about.
  const lightOf = (step) => {
    const { seen } = parts;
    const of = step.kind === "make" ? seen.box : seen.gradient;
    const marks = new Map([of[step.target], step.kind === "pass" ? of[step.node] : undefined].map((key) => [key, ["mg-now"]]));
    if (!hidden) for (const node of step.needs || []) marks.set(seen.box[node], ["mg-need"]);
    const names = step.kind === "pass" ? [`back ${step.node}.${step.slot}`]
      : step.kind === "make" ? data.nodes[step.node].inputs.map((_, slot) => `there ${step.node}.${slot}`) : [];
    return { marks, lit: new Set(names.filter((name) => name in seen.arrows).map((name) => seen.arrows[name])) };
  };

  // What its rule needs, and the step itself brought into sight.
  const point = (step) => {
    const { seen, boxes } = parts;
    const target = boxes.get((step.kind === "make" ? seen.box : seen.gradient)[step.target]);
    if (!hidden) for (const node of step.needs || []) needed(boxes.get(seen.box[node]), target);
    canvas.reveal(target);
  };

  // A dotted line from what a rule needs of the way there to where it is needed.
  const needed = (from, to) => {
    if (!from || !to) return;
    const [a, b] = [from, to].map((box) => {
      const r = box.querySelector("rect:last-of-type");
      const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => +r.getAttribute(name));
      return { x, y, width, height };
    });
    const across = b.x > a.x + a.width;
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const [x, y, u, v] = across ? [a.x + a.width, a.y + a.height / 2, b.x, b.y + b.height / 2]
      : [a.x + a.width / 2, a.y + a.height, b.x + b.width / 2, b.y];
    const bend = across ? [(x + u) / 2, y, (x + u) / 2, v] : [x, (y + v) / 2, u, (y + v) / 2];
    line.setAttribute("d", `M${x} ${y}C${bend[0]} ${bend[1]} ${bend[2]} ${bend[3]} ${u} ${v}`);
    line.setAttribute("class", "mg-needs");
    from.parentNode.insertBefore(line, from.parentNode.querySelector(".mg-box")); // under the boxes
  };

  // the side ----------------------------------------------------------------------------------------------------------
  const heading = (text) => make("h3", {}, text);
  const paragraph = (...children) => make("p", { style: "margin:0" }, ...children);

  const tell = (step, state) => {
    if (acting) return tellActing(state);
    if (!step) return side.replaceChildren(make("p", { class: "mg-say" }, "Nothing has been computed yet."));
    const group = grain === "step" ? [] : data.steps.slice(stopBefore(at), at);
    const said = hidden ? `What comes to ${data.nodes[step.target].name}?`
      : group.length > 1 ? `${group.length} steps: the last of them` : step.say;
    const found = [make("p", { class: "mg-say" }, said)];
    if (group.length > 1 && !hidden) {
      found.splice(0, 1, make("p", { class: "mg-say" }, group.length > 8 ? `${group.length} steps, the last of them:` : `${group.length} steps:`),
        make("ol", { class: "mg-list", start: Math.max(1, group.length - 7) }, ...group.slice(-8).map((each) => make("li", {}, each.say))));
    }
    if (hidden) found.push(...questions(step));
    if (step.rule) found.push(heading(step.kind === "make" ? "what it computes" : "by the rule"), mathOf(step.rule));
    if (!hidden) found.push(...numbers(step), ...checked(step));
    const line = data.nodes[step.node ?? step.target].line;
    if (line) found.push(...codeOf(line));
    if (data.missing) found.push(heading("values"), paragraph(data.missing));
    side.replaceChildren(...found);
    aloud.textContent = said;
  };

  // What came, what was there, and what that makes: as words, and as the corners of larger tensors.
  const numbers = (step) => {
    if (step.kind === "make") {
      const { table, value } = data.nodes[step.target];
      return table !== null ? [heading("its numbers"), tableOf(data.tables[table])] : value ? [heading("its number"), paragraph(value)] : [];
    }
    const [value, before, total] = step.tables.map((i) => (i === null ? null : data.tables[i]));
    if (step.kind === "sum") {
      const part = (text, table, what) => (table ? [make("div", { class: "mg-quiet" }, what), tableOf(table)] : [paragraph(`${what} ${text}`)]);
      return [heading("+="), ...part(step.before, before, "was there"), ...part(step.value, value, "comes, and is added"),
        ...part(step.total, total, "together")];
    }
    const rows = [["comes", step.value]];
    if (step.before !== null && step.before !== undefined) rows.push(["there already", step.before]);
    return [heading("numbers"), value ? tableOf(value) : "", make("table", {},
      ...rows.map(([what, text]) => make("tr", {}, make("td", {}, what), make("td", {}, text))))];
  };

  const checked = (step) => {
    if (!step.check) return [];
    const [rule, differences, below, above, agrees, kink] = step.check;
    const along = data.nodes[step.target].type.startsWith("scalar") ? "" : ", along a random direction";
    const words = kink
      ? `here is a kink: ${rule} by the rule, ${below} and ${above} by differences on its two sides${along}`
      : `${rule} by the rule, ${differences} by differences${along}`;
    return [heading("checked by finite differences"),
      paragraph(make("span", { class: agrees ? "mg-yes" : "mg-no" }, agrees ? "✓ " : "✗ "), words)];
  };

  // predicting --------------------------------------------------------------------------------------------------------
  const questions = (step) => {
    const answer = make("p", { style: "margin:6px 0", role: "status" });
    const judge = (right, truth) => {
      answer.replaceChildren(make("span", { class: right ? "mg-yes" : "mg-no" }, right ? "✓ right: " : "✗ it is "), truth);
    };
    const asked = (label, hint, check) => {
      const field = make("input", { type: "text", size: 12, "aria-label": label, placeholder: hint });
      field.addEventListener("keydown", (event) => { event.stopPropagation(); if (event.key === "Enter") check(field.value); });
      return [field, " ", make("button", { onclick: () => check(field.value) }, "check")];
    };
    const shape = (text) => (text.match(/\d+/g) || ["scalar"]).join(" × ");
    const numbersIn = (text) => (text.replaceAll("−", "-").match(/-?[\d.]+(e[-+]?\d+)?/gi) || []).map(Number);
    const near = (xs, ys) => xs.length === ys.length && xs.every((x, i) => Math.abs(x - ys[i]) <= 0.02 * Math.abs(ys[i]) + 1e-9);
    const signs = ["positive", "negative", "mixed", "zero"].map((sign) =>
      make("button", { onclick: () => judge(sign === step.sign, step.sign) }, sign));
    const known = step.few && !step.few.includes(null);
    return [heading("its shape"), ...asked("its shape", "shape, such as 64 × 10", (text) => judge(shape(text) === shape(step.type.split("  ")[0]), step.type)),
      heading("its sign"), make("div", { style: "display:flex;gap:4px;flex-wrap:wrap" }, ...signs),
      ...(known ? [heading(step.few.length > 1 ? "its numbers" : "its number"),
        ...asked("its numbers", "such as 0.5, −2", (text) => judge(near(numbersIn(text), step.few), step.value))] : []), answer];
  };

  const togglePredict = () => {
    if (acting) toggleAct();
    predicting = !predicting;
    hidden = false;
    predict.setAttribute("aria-pressed", String(predicting));
    paint();
  };

  // acting it out -----------------------------------------------------------------------------------------------------
  // The student decides whose gradient is sent on.  Sent before all of it has come, it is stale, and what follows is wrong.
  const toggleAct = () => {
    if (predicting) togglePredict();
    acting = acting ? null : [];
    note = "";
    act.setAttribute("aria-pressed", String(Boolean(acting)));
    for (const element of [slider, play, coarse, predict]) element.disabled = Boolean(acting);
    paint();
  };

  // What has come where by now, in the order that was chosen.  What is passed on comes of the derivatives that Python
  // worked out at each operation; where they are too many to hand over, marks must do.
  const actedOut = () => {
    const came = new Map([[result, 1]]), wrong = new Set(), sent = new Set(), early = [], sentAs = new Map();
    const amount = new Map([[result, data.seed]]);
    for (const node of acting) {
      const unfinished = (came.get(node) || 0) < due.get(node);
      if (unfinished) early.push(node);
      const stale = unfinished || wrong.has(node);
      const g = amount.get(node);
      sent.add(node);
      sentAs.set(node, g ? briefly(g) : "");
      for (const step of passes.filter((s) => s.node === node)) {
        const { target, matrix } = step;
        const first = !came.has(target);
        came.set(target, (came.get(target) || 0) + 1);
        if (stale) wrong.add(target);
        const known = matrix && g && matrix.length === g.length && !matrix.flat().includes(null) && (first || amount.get(target));
        if (!known) { amount.set(target, null); continue; }
        const passed = matrix[0].map((_, j) => matrix.reduce((sum, row, i) => sum + row[j] * g[i], 0));
        amount.set(target, first ? passed : passed.map((x, j) => x + amount.get(target)[j]));
      }
    }
    const numbers = new Map();
    for (const node of came.keys()) {
      const complete = came.get(node) >= due.get(node) && !wrong.has(node);
      const xs = amount.get(node);
      // What was sent too early stays what it was, though the rest comes: by then it has been passed on.
      const told = early.includes(node) ? `stale ${sentAs.get(node)}` : (wrong.has(node) ? "✗ " : "") + (xs ? briefly(xs) : "");
      numbers.set(node, complete && !early.includes(node) ? final.get(node).total : told);
    }
    return { made: new Set(data.nodes.keys()), came, wrong, numbers, sent, early, total: final };
  };

  const send = (own) => {
    const state = actedOut();
    const able = own.filter((node) => state.came.has(node) && !state.sent.has(node) && passes.some((s) => s.node === node));
    const name = data.nodes[own[0]]?.name;
    note = able.length ? "" : !own.some((node) => state.came.has(node)) ? `Nothing has come to ${name} yet, so it has nothing to send on.`
      : own.some((node) => state.sent.has(node)) ? `${name} has been sent on already.` : `${name} is where a gradient is wanted: it stays there.`;
    acting.push(...able);
    paint();
  };

  const rewind = () => { acting.pop(); note = ""; paint(); };

  const tellActing = (state) => {
    const names = (list) => list.map((n) => data.nodes[n].name).join(", ");
    const waiting = [...state.came.keys()].filter((n) => !state.sent.has(n) && passes.some((s) => s.node === n));
    const done = [...due.keys()].every((n) => (state.came.get(n) || 0) >= due.get(n));
    const said = note || (state.early.length
      ? `${names(state.early.slice(0, 1))} was sent on before all of it had come: what followed from it is wrong.`
      : done ? "Every gradient is complete, and in a right order." : `Click a gradient to send it on: ${names(waiting)}.`);
    const wrong = [...new Set([...state.early, ...state.wrong])];
    const cells = (tag, texts) => make("tr", {}, ...texts.map((text) => make(tag, {}, text)));
    side.replaceChildren(
      make("p", { class: "mg-say" }, said),
      heading("your order"), paragraph(acting.length ? names(acting) : "nothing yet"),
      ...(wrong.length ? [heading("wrong by now"), make("table", { class: "mg-compare" }, cells("th", ["", "here", "right is"]),
        ...wrong.map((n) => cells("td", [`∂ ${data.nodes[n].name}`, state.numbers.get(n), final.get(n).total])))] : []),
      make("p", {}, make("button", { onclick: rewind }, "rewind one"), " ",
        make("button", { onclick: () => { acting = []; note = ""; paint(); } }, "begin again"), " ",
        make("button", { onclick: toggleAct }, "done")));
    aloud.textContent = said;
  };

  // moving ------------------------------------------------------------------------------------------------------------
  const go = (to, tell_ = true) => {
    if (acting) return;
    hidden = false;
    at = Math.max(0, Math.min(last, to));
    paint();
    if (tell_) told.set(at);
  };

  const forward = () => {
    if (acting) return;
    if (hidden) { hidden = false; paint(); return; }
    const coming = data.steps[at];
    if (predicting && coming && coming.kind === "pass") { at += 1; hidden = true; paint(); return; }
    go(stopAfter(at));
  };

  // To the step after which the gradient (or the value) of one of these nodes is complete.
  const until = (own, backwards) => {
    const wanted = new Set(own);
    const found = data.steps.findLastIndex((step) => wanted.has(step.target) && (step.kind === "make") !== backwards);
    if (found >= 0) go(found + 1);
  };

  const playing = () => {
    if (timer) { clearInterval(timer); timer = null; play.textContent = "▶"; return; }
    if (acting) return;
    if (at >= last) go(data.forward);
    play.textContent = "❚❚";
    timer = setInterval(() => (at >= last || !root.isConnected ? playing() : go(stopAfter(at))), still() ? 1600 : 900);
  };

  onKeys(root, (event) => {
    if (event.target.matches("input[type=text], select")) return null;
    if (event.key === " " && event.target.matches("button")) return null;
    return {
      ArrowRight: forward, ArrowLeft: () => go(stopBefore(at)), Home: () => go(0), End: () => go(last), " ": playing, c: turnAll,
      f: () => canvas.fit(), p: togglePredict, a: toggleAct, Backspace: () => acting && rewind(), "?": () => { help.hidden = !help.hidden; },
    };
  });

  draw(data.views[view]);
  return { go };
};
