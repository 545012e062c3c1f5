// Two exercises in the stepper: predicting what comes, and acting the backward pass out, in any order.

// Questions about what a step passes back: its shape, before the rule shows it; then its sign, and its numbers.
const questionsOf = (step, value, type, rule) => {
  const place = make("div"), isScalar = !typeIn(type)[0].length;
  const field = (label, hint) => (judge) => {
    const input = make("input", { type: "text", size: 12, "aria-label": label, placeholder: hint });
    onKeys(input, () => ({ Enter: () => judge(input.value) }));
    return [input, " ", make("button", { onclick: () => judge(input.value) }, "check")];
  };
  const signs = (judge) => ["positive", "negative", ...(isScalar ? [] : ["mixed"]), "zero"].map((sign) => make("button", { onclick: () => judge(sign) }, sign));
  const shape = (text) => text.match(/\d+/g)?.join(" × ") ?? "scalar";
  const numbersIn = (text) => (text.replaceAll("−", "-").match(/-?[\d.]+(e[-+]?\d+)?/gi) || []).map(Number);
  const signIn = (text) => { // of the numbers, or of the least and the largest one
    if (/n/.test(text)) return "none of these"; // nan, inf, no numbers
    const [plus, minus] = [(x) => x > 0, (x) => x < 0].map((test) => numbersIn(text).some(test));
    return plus && minus ? "mixed" : plus ? "positive" : minus ? "negative" : "zero";
  };
  const near = (xs, ys) => xs.length === ys.length && xs.every((x, i) => Math.abs(x - ys[i]) <= 0.02 * Math.abs(ys[i]) + 1e-9);
  const questions = [
    ["its shape", field("its shape", "shape, such as 64 × 10"), (text) => shape(text) === shape(type.split("  ")[0]), type],
    ["its sign", signs, (sign) => sign === signIn(value[SHORT]), signIn(value[SHORT])],
    ...(step.few && !step.few.includes(null) ? [["its numbers", field("its numbers", "such as 0.5, −2"), (text) => near(numbersIn(text), step.few), value[SHORT]]] : []),
  ];
  const ask = (number) => {
    if (number === 1) place.append(...rule);
    if (number === questions.length) return;
    const [heading, controls, isRight, truth] = questions[number];
    const answer = make("p", { style: "margin:6px 0", role: "status" });
    const question = make("div", {}, make("h3", {}, heading), ...controls((given) => {
      const right = isRight(given);
      answer.replaceChildren(make("span", { class: right ? "mg-yes" : "mg-no" }, right ? "✓ right: " : "✗ it is "), truth);
      for (const control of question.querySelectorAll("input, button")) disable(control, true);
      ask(number + 1);
      place.lastChild.querySelector("input, button").focus({ preventScroll: true });
    }), answer);
    place.append(question);
  };
  ask(+isScalar);
  return [place];
};

// The student decides whose gradient is sent on.  Sent before all of it has come, it is stale, and what follows is wrong.
const actingOf = ({ data, due, final, sayTo, totalOf, paint, done }) => {
  const passes = data.steps.filter((step) => step.kind === "pass");
  const result = data.steps[0].target;
  const name = (node) => data.nodes[node].name;
  const written = (node, numbers) => (numbers ? summaryOf(numbers, ...typeIn(data.nodes[node].type))[SHORT] : "");
  const right = (node) => totalOf(final.get(node))[SHORT];
  const sends = (node) => passes.some((step) => step.node === node);
  let order = [], note = "";

  // What has come where by now, in the chosen order, by the derivatives of each operation; without these, by marks.
  const state = () => {
    const came = new Map([[result, 1]]), amount = new Map([[result, data.steps[0].few]]), wrong = new Set(), early = new Map();
    for (const node of order) {
      const g = amount.get(node), unfinished = came.get(node) < due.get(node);
      if (unfinished) early.set(node, `stale ${written(node, g)}`); // it stays what it was, though the rest comes
      for (const { target, matrix } of passes.filter((step) => step.node === node)) {
        const there = came.has(target) ? amount.get(target) : 0;
        came.set(target, (came.get(target) || 0) + 1);
        if (unfinished || wrong.has(node)) wrong.add(target);
        const known = matrix && g && matrix.length === g.length && !matrix.flat().includes(null) && there !== null;
        amount.set(target, known ? matrix[0].map((_, j) => matrix.reduce((sum, row, i) => sum + row[j] * g[i], 0) + (there ? there[j] : 0)) : null);
      }
    }
    const lineOf = (node) => early.get(node) ?? (wrong.has(node) || came.get(node) < due.get(node)
      ? (wrong.has(node) ? "✗ " : "") + written(node, amount.get(node)) : right(node));
    const known = (node) => (came.has(node) ? [lineOf(node), lineOf(node), "", ""] : null);
    return { made: new Set(data.nodes.keys()), came, known, bad: new Set([...early.keys(), ...wrong]), sent: new Map(), early: [...early.keys()], lineOf };
  };

  // Send the gradient of a box on; of a closed box, that of every operation in it that something has come to.
  const send = (own) => {
    const before = [...order];
    for (const node of own.toSorted((a, b) => b - a)) if (state().came.has(node) && !order.includes(node) && sends(node)) order.push(node);
    const { came } = state();
    note = order.length > before.length ? "" : !own.some((node) => came.has(node)) ? `Nothing has come to ${name(own.at(-1))} yet.`
      : own.some((node) => order.includes(node)) ? `${name(own.at(-1))} has been sent on already.`
        : `${name(own.at(-1))} is where a gradient is wanted: it stays there.`;
    paint();
  };
  const begin = () => { order = []; note = ""; };
  const rewind = () => { order.pop(); note = ""; paint(); };

  const tell = ({ came, early, bad, lineOf }) => {
    const names = (list) => list.map(name).join(", ");
    const waiting = [...came.keys()].filter((node) => !order.includes(node) && sends(node));
    const complete = [...due.keys()].every((node) => came.get(node) >= due.get(node));
    const said = note || (early.length
      ? `${names(early.slice(0, 1))} was sent on before all of it had come: what followed from it is wrong.`
      : complete ? "Every gradient is complete, and in a right order." : `Click a gradient to send it on: ${names(waiting)}.`);
    const rows = [...bad].map((node) => [data.nodes[node].back, lineOf(node), right(node)]);
    sayTo(said, ...titled("your order", paragraph(names(order) || "nothing yet")),
      ...titled("wrong by now", bad.size && tabled(rows, "mg-compare", ["", "here", "right is"])),
      make("p", {}, make("button", { onclick: rewind }, "rewind one"), " ",
        make("button", { onclick: () => { begin(); paint(); } }, "begin again"), " ", make("button", { onclick: done }, "done")));
  };

  return { state, send, tell, begin, rewind };
};
