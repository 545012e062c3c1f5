// Two exercises in the stepper: predicting what comes, and acting the backward pass out, in any order.

const briefly = (xs) => (xs.length <= 4 ? few(xs) : `${short(Math.min(...xs))} … ${short(Math.max(...xs))}`);

// Questions about what a step passes back, one after the other: its shape, then its sign, then its numbers.  The rule shows the shape,
// so it comes after the first question.
const questionsOf = (step, value, type, rule) => {
  const place = make("div");
  const ask = (heading, controls, isRight, truth, next) => {
    const answer = make("p", { style: "margin:6px 0", role: "status" });
    const judge = (given) => {
      const right = isRight(given);
      answer.replaceChildren(make("span", { class: right ? "mg-yes" : "mg-no" }, right ? "✓ right: " : "✗ it is "), truth);
      for (const control of question.querySelectorAll("input, button")) control.disabled = true;
      next?.();
    };
    const question = make("div", {}, make("h3", {}, heading), ...controls(judge), answer);
    place.append(question);
    if (place.children.length > 1) question.querySelector("input, button").focus({ preventScroll: true });
  };
  const field = (label, hint) => (judge) => {
    const input = make("input", { type: "text", size: 12, "aria-label": label, placeholder: hint });
    input.addEventListener("keydown", (event) => { 
      event.stopPropagation();
      if (event.key !== "Enter") return;
      event.preventDefault(); // which would press the button that has the focus next
      judge(input.value);
    });
    return [input, " ", make("button", { onclick: () => judge(input.value) }, "check")];
  };
  const shape = (text) => text.match(/\d+/g)?.join(" × ") ?? "scalar";
  const numbersIn = (text) => (text.replaceAll("−", "-").match(/-?[\d.]+(e[-+]?\d+)?/gi) || []).map(Number);
  const near = (xs, ys) => xs.length === ys.length && xs.every((x, i) => Math.abs(x - ys[i]) <= 0.02 * Math.abs(ys[i]) + 1e-9);
  const signs = (judge) => [make("div", { style: "display:flex;gap:4px;flex-wrap:wrap" }, ...["positive", "negative", "mixed", "zero"].map((sign) =>
    make("button", { onclick: () => judge(sign) }, sign)))];
  const askNumbers = () => step.few && !step.few.includes(null) && ask("its numbers", field("its numbers", "such as 0.5, −2"),
    (text) => near(numbersIn(text), step.few), value[SHORT]);
  const askSign = () => {
    place.append(...rule);
    ask("its sign", signs, (sign) => sign === step.sign, step.sign, askNumbers);
  };
  if (typeIn(type)[0].length) ask("its shape", field("its shape", "shape, such as 64 × 10"), (text) => shape(text) === shape(type.split("  ")[0]), type, askSign);
  else askSign();
  return [place];
};

// The student decides whose gradient is sent on.  Sent before all of it has come, it is stale, and what follows is wrong.
const actingOf = ({ data, due, final, side, aloud, totalOf, paint, done }) => {
  const passes = data.steps.filter((step) => step.kind === "pass");
  const result = data.steps[0].target;
  const name = (node) => data.nodes[node].name;
  const right = (node) => totalOf(final.get(node))[1];
  let order = [], note = "";

  // What has come where by now, in the order that was chosen.  What is passed on comes of the derivatives that Python
  // worked out at each operation; where they are too many to hand over, marks must do.
  const state = () => {
    const came = new Map([[result, 1]]), wrong = new Set(), sent = new Set(), early = [], sentAs = new Map();
    const amount = new Map([[result, data.seed]]);
    for (const node of order) {
      const unfinished = (came.get(node) || 0) < due.get(node);
      if (unfinished) early.push(node);
      const stale = unfinished || wrong.has(node);
      const g = amount.get(node);
      sent.add(node);
      sentAs.set(node, g ? briefly(g) : "");
      for (const { target, matrix } of passes.filter((step) => step.node === node)) {
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
      const text = early.includes(node) ? `stale ${sentAs.get(node)}` : (wrong.has(node) ? "✗ " : "") + (xs ? briefly(xs) : "");
      numbers.set(node, complete && !early.includes(node) ? right(node) : text);
    }
    return { made: new Set(data.nodes.keys()), came, wrong, numbers, sent, early, total: new Map() };
  };

  const sends = (node) => passes.some((step) => step.node === node);

  // Send the gradient of a box on; of a closed box, that of every operation in it that something has come to.
  const send = (own) => {
    const before = order.length;
    for (const node of [...own].sort((a, b) => b - a)) {
      const now = state();
      if (now.came.has(node) && !now.sent.has(node) && sends(node)) order.push(node);
    }
    const { came, sent } = state();
    note = order.length > before ? "" : !own.some((node) => came.has(node)) ? `Nothing has come to ${name(own.at(-1))} yet, so it has nothing to send on.`
      : own.some((node) => sent.has(node)) ? `${name(own.at(-1))} has been sent on already.`
        : `${name(own.at(-1))} is where a gradient is wanted: it stays there.`;
    paint();
  };

  const tell = ({ came, sent, early, wrong, numbers }) => {
    const names = (list) => list.map(name).join(", ");
    const waiting = [...came.keys()].filter((node) => !sent.has(node) && sends(node));
    const complete = [...due.keys()].every((node) => (came.get(node) || 0) >= due.get(node));
    const said = note || (early.length
      ? `${names(early.slice(0, 1))} was sent on before all of it had come: what followed from it is wrong.`
      : complete ? "Every gradient is complete, and in a right order." : `Click a gradient to send it on: ${names(waiting)}.`);
    const cells = (tag, texts) => make("tr", {}, ...texts.map((text) => make(tag, {}, text)));
    const bad = [...new Set([...early, ...wrong])];
    side.replaceChildren(
      make("p", { class: "mg-say" }, said),
      make("h3", {}, "your order"), make("p", { style: "margin:0" }, order.length ? names(order) : "nothing yet"),
      ...(bad.length ? [make("h3", {}, "wrong by now"), make("table", { class: "mg-compare" }, cells("th", ["", "here", "right is"]),
        ...bad.map((node) => cells("td", [`∂${name(node)}`, numbers.get(node), right(node)])))] : []),
      make("p", {}, make("button", { onclick: () => exercise.rewind() }, "rewind one"), " ",
        make("button", { onclick: () => { order = []; note = ""; paint(); } }, "begin again"), " ",
        make("button", { onclick: done }, "done")));
    aloud.textContent = said;
  };

  const exercise = {
    on: false, state, send, tell,
    toggle: () => { exercise.on = !exercise.on; order = []; note = ""; },
    rewind: () => { order.pop(); note = ""; paint(); },
  };
  return exercise;
};
