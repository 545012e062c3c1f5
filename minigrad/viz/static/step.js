// Stepping through a backward pass.  This script decides what is seen when; the numbers are Python's, until one is dragged (live.js).

const helpOf = (scopes) => [
  ["← →", "one step back, one step on"], ["Home End", "to the beginning, to the end"], ["Space", "play, or stop"],
  ["Tab Enter", "from box to box, and on until its gradient is complete"], ...opensOf(scopes),
  ["p", "predict what comes next"], ["a Backspace", "act it out; take back what was sent last"],
];
const ASKS = "Before a gradient is passed back, you predict it.";
const SQUARES = "In a map, blue squares are above 0, orange ones below; each is a number, or the mean of some.";

const show = (parent, data, synced = ALONE) => {
  const { root, stage, side, read, say, moreOf, listen } = shellOf(parent, data.about, helpOf(data.scopes));
  const made = [...data.nodes.keys()].filter((node) => data.nodes[node].inputs);
  const steps = [...made.map((node) => ({ kind: "make", node, target: node })), ...data.steps];
  const [last, begin] = [steps.length, made.length];
  let at = synced.get() || begin; // steps that are done; at first, the forward pass
  let canvas = null, part = null, hidden = false;
  let mode = ""; // an exercise: "predict" or "act"
  let dragging = false; // while a number is dragged, all numbers are seen and no step is

  const due = new Map(), final = new Map(); // of each node: how many contributions come, and the last step
  for (const step of data.steps) {
    if (step.kind !== "sum") due.set(step.target, (due.get(step.target) || 0) + 1);
    final.set(step.target, step);
  }
  const totalOf = (step) => (step.kind === "sum" ? step.total : step.before ?? step.value);

  // the bar -----------------------------------------------------------------------------------------------------------
  const pager = pagerOf((to) => (Math.abs(to - at) !== 1 ? go(to) : to > at ? forward() : backward()), "step", begin);
  const { back, next, slider, count, player } = pager;
  const exercises = [["predict", "p", "predict"], ["act", "a", "act it out"]].map(([name, key, text]) =>
    make("button", { "aria-pressed": "false", title: key, "data-exercise": name, onclick: () => exercise(name) }, text));
  const scopes = scopesOf(data.scopes, root, () => draw());
  const { more, opener } = moreOf(player, ...exercises, ...scopes.all);
  const live = liveOf(data, () => { at = last; dragging = true; hidden = false; paint(); });
  root.prepend(make("div", { class: "mg-bar" }, back, next, make("div", { class: "mg-track" }, slider,
    make("div", { class: "mg-phases", "aria-hidden": "true", style: `--forward:${100 * begin / last}%` })), count, opener), more, scopes.path, live.bar);

  // the picture -------------------------------------------------------------------------------------------------------
  const draw = () => {
    const given = data.scopes[scopes.here];
    canvas = canvasOf(given.svg);
    stage.replaceChildren(canvas.place, side);
    const [boxes, edges, notes] = ["box", "edge", "note"].map(canvas.found);
    const own = [...given.shown.keys()].filter((key) => !boxes.get(key).matches(".mg-outside")); // no neighbours
    part = { given, own, boxes, edges, notes, box: new Map(), gradient: new Map(), arrows: new Map(), doors: {} };
    given.boxes.forEach((runs, box) => {
      for (const node of placesOf(runs)) part.box.set(node, box);
    });
    given.mirrors.forEach((box, i) => part.gradient.set(box, given.boxes.length + i));
    for (let i = 0; i < given.arrows.length; i += 4) {
      part.arrows.set(`${given.arrows[i]}.${given.arrows[i + 1]}`, given.arrows.slice(i + 2, i + 4));
    }
    part.stops = stopsOf();
    for (const [key, box] of part.boxes) {
      const [backwards, inner] = innerOf(key);
      if (inner in given.doors) part.doors[key] = given.doors[inner];
      if (!backwards && nodesOf(inner).length === 1) live.handle(box, given.shown[inner]);
      asButton(box, wordsIn(box),
        () => (mode === "act" ? backwards && acting.send(nodesOf(inner)) : until(given.shown[inner], backwards)));
    }
    hingesOf(canvas.svg, part.doors, scopes.turn);
    scopes.paint();
    askFor(stage, Math.max(live.say ? 470 : 380, canvas.svg.viewBox.baseVal.height + 30), 640);
    paint();
    requestAnimationFrame(() => {
      canvas.begin(...(root.classList.contains("mg-narrow") ? [0.85, 0.85] : [1, SHRUNK]));
      for (const note of part.notes.values()) note.mgLine = null; // its text may be larger now
      paint();
    });
  };

  const innerOf = (key) => [key >= part.given.boxes.length, key < part.given.boxes.length ? key : part.given.mirrors[key - part.given.boxes.length]];
  const nodesOf = (box) => [...part.box].filter(([, key]) => key === box).map(([node]) => node);
  const arrowOf = (step) => part.arrows.get(`${step.node ?? null}.${step.slot ?? null}`)?.[1] ?? -1;
  const arrowsOf = (step) => (step.kind !== "make" ? [arrowOf(step)]
    : data.nodes[step.node].inputs.map((_, slot) => part.arrows.get(`${step.node}.${slot}`)?.[0]));

  // Whether a step computes what a box shows, and whether it changes this picture: that of a neighbour does not.
  const computes = (step) => step?.kind === "make" && part.given.shown[part.box.get(step.node)] === step.node;
  const visible = (step) => (computes(step) ? part.own.includes(part.box.get(step.node)) : arrowOf(step) >= 0);

  // After which steps one may stop.  From a closed box to another one, that is once; and once where the parameters inside
  // a closed box have their gradients, or where the last contribution from inside comes to one of its results:
  // `part.inner` has these nodes.  What a step does is seen from the stop `part.stopOf` on.
  const stopsOf = () => {
    const within = (step) => step.kind !== "make" && boxOf(step.node) === boxOf(step.target);
    const ends = new Map(steps.map((step, i) => [step.target, i + 1, step]).filter(([, , step]) => within(step)));
    part.inner = new Map();
    for (const box of part.own.filter((key) => key in part.given.holds)) {
      const own = nodesOf(box).filter((node) => ends.has(node)), leaves = own.filter((node) => !data.nodes[node].inputs);
      const results = resultsOf(box).filter((node) => own.includes(node));
      for (const nodes of [leaves, ...results.map((node) => [node])]) part.inner.set(Math.max(...nodes.map((node) => ends.get(node))), nodes);
    }
    const seen = steps.map((step, i) => [step, i + 1]).filter(([step, stop]) => visible(step) || part.inner.has(stop));
    const lastAlong = new Map(seen.filter(([step]) => isClosed(step)).map(([step, stop]) => [arrowOf(step), stop]));
    part.stopOf = steps.map((step, i) => (isClosed(step) ? lastAlong.get(arrowOf(step)) : within(step) ? ends.get(step.target) : i + 1));
    return seen.map(([, stop]) => stop).filter((stop) => part.stopOf[stop - 1] === stop);
  };
  const resultsOf = (box) => part.given.results[box] ?? [part.given.shown[box]];
  const isClosed = (step) => step.node !== undefined && arrowOf(step) >= 0 && !(single(step.node) && (single(step.target) || step.kind === "sum"));
  const single = (node) => part.given.boxes[part.box.get(node)]?.[2] === 1; // of its nodes, there is one
  const here = () => (at !== begin && computes(steps[at - 1]) ? at : part.stops.findLast((stop) => stop <= at) ?? 0);
  const seenBy = (done) => steps.filter((_, i) => part.stopOf[i] <= done);

  // What has come to each node, and along each arrow, after `done` steps.
  const stateAfter = (done) => {
    const made = new Set(), came = new Map(), total = new Map(), sent = new Map();
    data.nodes.forEach((node, i) => { if (!node.inputs) made.add(i); });
    for (const step of seenBy(done)) {
      if (step.kind === "make") { made.add(step.target); continue; }
      if (step.kind !== "sum") {
        came.set(step.target, (came.get(step.target) || 0) + 1);
        sent.set(arrowOf(step), [...(sent.get(arrowOf(step)) || []), step]);
      }
      if (!data.nodes[step.target].type.endsWith(" results")) total.set(step.target, step); // else that of one
    }
    const known = (node) => {
      if (!total.has(node)) return null;
      return totalOf(total.get(node)).with(CELLS, came.get(node) >= due.get(node) ? data.nodes[node].gradient[CELLS] : "");
    };
    return { made, came, sent, known };
  };

  const paint = () => {
    const acts = mode === "act";
    dragging &&= at === last && !mode;
    root.classList.toggle("mg-dragging", dragging);
    live.bar.hidden = mode !== "" || !data.live.leaves;
    const now = dragging || acts ? null : steps[here() - 1];
    const state = acts ? acting.state() : stateAfter(hidden ? at - 1 : at);
    const marks = now ? marksFor(now) : new Map(), lit = new Set(now ? arrowsOf(now) : []);
    for (const [key, box] of part.boxes) {
      const [backwards, inner] = innerOf(key);
      const node = part.given.shown[inner];
      const looks = marks.get(key) || [], results = resultsOf(inner).filter((n) => !backwards || acts || due.has(n));
      const known = (node) => (backwards ? state.known(node) : state.made.has(node) ? data.nodes[node].value : null);
      if (backwards) {
        const all = (acts || !due.has(node) ? nodesOf(inner) : results).filter((n) => due.has(n));
        const [some, full] = [all.some((n) => state.came.has(n)), all.every((n) => state.came.get(n) >= due.get(n))];
        if (!some) looks.push("mg-none");
        else if (!full) looks.push("mg-part");
        if (all.some((n) => state.bad?.has(n))) looks.push("mg-wrong");
      } else if (!state.made.has(node)) looks.push("mg-none");
      dress(box, looks);
      label(box, results.length < 2 && known(node), results.map((each) => `${results.length < 2 ? "" : data.nodes[each][backwards ? "back" : "name"]} ${known(each)?.[LINE] ?? ""}`.trim()));
    }
    const reached = new Set(seenBy(at).flatMap(arrowsOf));
    for (const [key, edge] of part.edges) dress(lit.has(key) ? raise(edge) : edge, [...(lit.has(key) ? ["mg-lit"] : []), ...(acts || reached.has(key) ? [] : ["mg-hid"])]);
    for (const [key, note] of part.notes) noteOn(note, state.sent.get(key) || []);
    apart(part);
    for (const line of canvas.svg.querySelectorAll(".mg-needs")) line.remove();
    if (now) point(now);
    const count = (from, to) => part.stops.filter((stop) => stop > from && stop <= to).length; // what this picture shows
    const text = at <= begin ? `forward ${count(0, at)} of ${count(0, begin)}` : `backward ${count(begin, at)} of ${count(begin, last)}`;
    pager.paint(at, last, text, acts, hidden);
    next.textContent = hidden ? "reveal" : asks() ? "predict ›" : "next ›";
    root.dataset.step = at;
    root.dataset.kind = now ? now.kind : dragging ? "drag" : "begin";
    if (acts) acting.tell(state);
    else if (dragging) tellDrag();
    else tell(now, stateAfter(at).sent.get(now && arrowOf(now)) ?? [], state.known);
  };

  // What a box shows: the heat map of a value, and a line for each result.
  const label = (box, known, lines) => {
    const cells = known?.[CELLS] ?? "";
    if (box.mgLine === lines + cells) return;
    box.mgLine = lines + cells;
    box.querySelectorAll(".mg-number").forEach((text, i) => { text.textContent = lines[i]; });
    fitText(box);
    box.setAttribute("aria-label", wordsIn(box));
    box.querySelector(".mg-heat")?.remove();
    if (cells) heatIn(box, cells);
  };

  // What has come along an arrow: of several contributions to one value their sum, else how many they are.
  const carried = (sent) => {
    if (sent.length < 2) return sent.length ? sent[0].value : ["", "", ""];
    const { target } = sent[0], one = sent.every((step) => step.target === target);
    if (one && sent.length === due.get(target)) return data.nodes[target].gradient;
    const [, range, cells, table] = (one && together(sent)) || [];
    const words = `${sent.length} ${range ? `together ${range}` : "contributions"}`;
    return [words, words, table && range.includes("…") ? cells : "", table ?? ""];
  };
  const noteOn = (note, sent) => {
    const [line, , cells] = carried(sent);
    if (note.mgLine === line + cells) return;
    note.mgLine = line + cells;
    note.replaceChildren(cells ? squaresOf(cells, 6, 40, 14, 0, 0, true) : "");
    if (cells || !line) return;
    const text = drawn("text", { y: 3.5, "font-size": 10, "text-anchor": "middle" }, line);
    note.append(text);
    const wide = text.getComputedTextLength() + 8;
    note.prepend(drawn("rect", { x: -wide / 2, y: -7, width: wide, height: 14, rx: 7 }));
  };

  const together = (sent) => {
    const numbers = sent.map((step) => live.came(data.steps.indexOf(step)));
    if (numbers.some((each) => !each || each.length !== numbers[0]?.length || each.includes(null))) return null;
    return summaryOf(numbers[0].map((_, i) => numbers.reduce((sum, each) => sum + each[i], 0)), ...typeIn(data.nodes[sent[0].target].type));
  };

  const boxOf = (node, backwards) => (backwards ? part.gradient.get(part.box.get(node)) : part.box.get(node));
  const neededBy = (step) => (hidden || isClosed(step) || part.inner.has(here()) ? [] : step.needs || []);

  // The boxes that a step is about.
  const marksFor = (step) => {
    const keys = [boxOf(step.target, step.kind !== "make"), step.kind === "pass" ? boxOf(step.node, true) : undefined];
    const marks = new Map(keys.map((key) => [key, ["mg-now"]]));
    for (const node of neededBy(step)) marks.set(boxOf(node, false), ["mg-need"]);
    return marks;
  };

  // What its rule needs, and the step itself brought into sight.
  const point = (step) => {
    const target = part.boxes.get(boxOf(step.target, step.kind !== "make"));
    for (const node of neededBy(step)) needed(part.boxes.get(boxOf(node, false)), target);
    canvas.reveal(target);
  };

  // the side ----------------------------------------------------------------------------------------------------------
  const nameIn = (key) => part.boxes.get(key).querySelector("text").textContent.split(/ = |  ×/)[0];
  const ruleOf = (text) => mathOf(live.fill(text));
  const sayTo = (said, ...found) => {
    say(said, ...found);
    for (const rule of side.querySelectorAll(".mg-rule")) { // one that is a little too wide has smaller letters
      if (rule.scrollWidth > rule.clientWidth) rule.style.fontSize = `${Math.max(13, 15.8 * rule.clientWidth / rule.scrollWidth)}px`;
    }
  };

  // What a number that is dragged does, and the rule that made its gradient.
  const tellDrag = () => {
    const { rule, counted } = live.last() ?? {};
    sayTo(live.say(), ...live.chart(), ...live.pictures(), ...titled("its gradient, by the rule", ...[rule, counted].filter(Boolean).map(ruleOf)),
      ...codeOf(data.nodes[live.node()].line));
  };

  const tell = (step, sent, known) => {
    if (!step) { sayTo(`Nothing ${at ? "in this picture " : ""}has been computed yet.`); return; }
    const node = data.nodes[step.node ?? step.target], closed = isClosed(step), makes = step.kind === "make";
    const [from, to] = [boxOf(step.node, false), boxOf(step.target, false)];
    const formula = makes ? node.rule : step.rule ?? (closed && sent.at(-1)?.rule), inside = part.inner.has(here()) || (closed && !(sent.length === 1 && single(step.node)));
    const held = (inside || makes) && part.given.holds[from];
    const rules = held ? [paragraph(`${held}. ⊞, or the key o, opens the box.`)] : formula && !inside ? [ruleOf(formula)] : [];
    const rule = titled(makes ? "what it computes" : held ? "by the rules of what it holds" : "by the rule", ...rules);
    const { name } = data.nodes[step.target], whole = () => (part.given.results[to]?.includes(step.target)
      && sent.every(({ target }) => target === step.target) ? `${name} in ` : "") + nameIn(to);
    if (hidden) {
      sayTo(`What comes to ${part.inner.has(here()) ? name : whole()}?`, ...questionsOf(step, step.value, data.nodes[step.target].type, rule), ...codeOf(node.line));
      return;
    }
    if (part.inner.has(here())) {
      const nodes = part.inner.get(here()), { name, inputs } = data.nodes[nodes[0]];
      sayTo(`${nameIn(to)} passes back to its ${inputs ? `own result ${name}` : nodes.length > 1 ? `${nodes.length} parameters` : "parameter"}.`,
        ...titled("by the rules of what it holds", ...rules), ...titled("numbers", ...listOf(nodes.map((node) => [data.nodes[node].back, known(node)]).filter(([, value]) => value))),
        ...codeOf(node.line));
      return;
    }
    const said = makes ? `The forward pass computes ${part.box.has(step.node) ? nameIn(to) : node.name}.`
      : closed ? `${nameIn(from)} passes back to ${whole()}: ${sentenceOf(carried(sent))}` : sayOf(step);
    const hints = [at === begin && !data.live.leaves && data.live.why, ...data.missing.map((why) => `Some values are not known: ${why}.`), stage.querySelector(".mg-heat") && SQUARES];
    const along = typeIn(data.nodes[step.target].type)[0].length ? ", along a random direction" : "";
    sayTo(said, ...(mode ? [quiet(ASKS)] : []), ...rule, ...(closed ? [] : [step.counted].filter(Boolean).map(ruleOf)), ...numbers(step, closed && !(sent.length === 1 && step.before) && carried(sent)), ...checked(!closed && step.check, along), ...codeOf(node.line), ...hints.filter(Boolean).map(quiet));
  };
  const sentenceOf = (value) => (value[LINE] === value[SHORT] ? value[LINE] : `an array of shape ${value[LINE]}`);
  const sayOf = (step) => { // its words, and the numbers by now
    const line = sentenceOf(step.value), summands = line.startsWith("−") ? `${step.before?.[LINE]} + (${line})` : `${step.before?.[LINE]} + ${line}`;
    return step.say + (step.kind === "pass" ? line : step.kind === "seed" ? `${line}.` : step.value[SHORT] === line ? `: ${summands}.` : ".");
  };

  // What came, what was there, and what that makes: as words, and as the corners of larger tensors.
  const numbers = (step, whole) => {
    const parts = whole ? [["", whole]] : step.kind === "make" ? [["", data.nodes[step.target].value]]
      : !step.before ? [["", step.value]] : [["was there", step.before], ["comes", step.value], ...(step.kind === "sum" ? [["together", totalOf(step)]] : [])];
    return titled(step.kind === "sum" && !whole ? "added" : "numbers", ...listOf(parts.filter(([what, value]) => value && (what || value[TABLE]))));
  };
  const listOf = (parts) => parts.flatMap(([what, value]) => (value[TABLE]
    ? [quiet(what), tabled(value[TABLE].split("\n").map((row) => row.split(" ")), "mg-numbers")]
    : [quiet(`${what}: ${value[SHORT]}`)]));

  const checked = (check, along) => {
    if (!check) return [];
    const [rule, sides, agrees] = check, kink = sides.length > 1;
    const words = `${kink ? "here is a kink: " : ""}${short(rule)} by the rule, ${sides.map(short).join(" to ")} by differences${kink ? " on its two sides" : ""}${along}`;
    return titled("checked by finite differences", paragraph(make("span", { class: agrees ? "mg-yes" : "mg-no" }, agrees ? "✓ " : "✗ "), words));
  };

  const acting = actingOf({ data, due, final, sayTo, totalOf, paint: () => paint(), done: () => exercise("act") });

  // To an exercise, or back from it.  The questions are about the numbers of the program, and playing would answer them.
  const exercise = (name) => {
    pager.stop();
    mode = mode === name ? "" : name;
    hidden = dragging = false;
    live.reset();
    acting.begin();
    disable(player, mode !== "");
    disable(slider, mode === "act");
    for (const button of exercises) button.setAttribute("aria-pressed", String(button.dataset.exercise === mode));
    paint();
    if (mode === "predict") read(ASKS);
  };

  // moving ------------------------------------------------------------------------------------------------------------
  const go = (to, share = true) => {
    if (mode === "act") return;
    hidden = dragging = false;
    at = Math.max(0, Math.min(last, to));
    paint();
    if (share) synced.set(at);
  };

  const nextStop = () => part.stops.find((each) => each > at);
  const asks = () => mode === "predict" && steps[nextStop() - 1]?.kind === "pass";
  const forward = () => {
    if (mode === "act") return;
    if (hidden) { hidden = false; paint(); return; }
    const stop = nextStop();
    if (stop === undefined && scopes.here && at < last) { scopes.keys.u(); forward(); return; } // what is inside is done
    if (asks()) { at = stop; hidden = true; paint(); return; }
    go(stop ?? last);
  };
  const openNow = () => { const { node, target, kind } = steps[here() - 1] ?? {}, door = part.doors[boxOf(node ?? target, kind !== "make")]; if (door !== undefined) scopes.turn(door); };
  const backward = (from = here() || at) => { // from the first step of an open box to what was before the box
    while (from && scopes.here && !(part.stops[0] < from)) scopes.keys.u();
    go(part.stops.findLast((stop) => stop < from) ?? 0);
  };

  // To the step after which the gradient (or the value) of a node is complete.
  const until = (node, backwards) => {
    const found = steps.findLastIndex((step) => step.target === node && (step.kind === "make") !== backwards);
    if (found >= 0) go(part.stopOf[found]);
  };

  listen(() => ({
    ArrowRight: forward, ArrowLeft: () => backward(), Home: () => go(0), End: () => go(last), " ": () => mode || pager.play(), ...scopes.keys, o: openNow,
    f: () => canvas.fit(), p: () => exercise("predict"), a: () => exercise("act"), Backspace: () => mode === "act" && acting.rewind(),
  }));

  draw();
  return { go };
};
