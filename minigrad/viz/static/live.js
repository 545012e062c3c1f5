// What follows while a number of a leaf is dragged: every value, every gradient, the side panel (see live.py).

const LEFT = 66, RIGHT = 332, TOP = 10, LOW = 166; // of the chart
const SIDE = 32; // rows and columns of a leaf that are seen at once, at most

// `data` gets the new values, and `changed` paints.
const liveOf = (data, changed) => {
  const { why, leaves, forward, nodes, steps, branches } = data.live, result = data.steps[0].target;
  const bar = make("div", { class: "mg-bar mg-knobs mg-live" });
  if (!leaves) return { bar, fill: (text) => text, handle: () => {}, reset: () => {}, came: (i) => data.steps[i].few };
  const run = tapeOf(data.live), began = leaves.map(([, numbers]) => Float64Array.from(numbers, Number)), given = began.map((x) => x.slice());
  const about = data.nodes.map((node) => typeIn(node.type)), final = new Map(data.steps.map((step, i) => [step.target, i]));
  const kept = [...data.nodes, ...data.steps].map((each) => ({ ...each }));
  let at = run(given), moved = false, curve = null;

  // Every value and every gradient from the tape; those of the program as Python wrote them.
  const follow = () => {
    at = run(given);
    moved = given.some((x, i) => x.some((number, k) => !Object.is(number, began[i][k])));
    [...data.nodes, ...data.steps].forEach((each, i) => Object.assign(each, kept[i]));
    if (!moved) return;
    const put = (thing, name, register, node, of = node) => {
      if (register === null) return;
      thing[name] = summaryOf(at(register), ...about[node]);
      if (node !== of) thing[name][CELLS] = ""; // the map of one of several results
    };
    data.nodes.forEach((node, i) => put(node, "value", nodes[i], i));
    data.steps.forEach((step, i) => {
      const { target } = step, like = / results?$/.test(data.nodes[target].type) ? step.node : target;
      ["value", "before", "total"].forEach((name, k) => put(step, name, steps[i][k + 1], like, target));
      data.nodes[target].gradient = step.total ?? step.value;
      step.check = null; // it was made for the numbers of the program
    });
  };
  const gradientOf = (node) => { const [, value, , total] = steps[final.get(node)] ?? [null, null]; return total ?? value; };
  const slopes = (leaf) => { const register = gradientOf(leaves[leaf][0]); return register === null ? null : at(register); };

  // Formulas have marks where numbers go; negative ones are in parentheses, but for the result at the end.
  const fill = (text) => text.replace(/\ue000(\d+)\ue001(?=((<\/\w+>)+$)?)/g, (_, register, end) => {
    const words = short(at(register)[0]);
    return !end && /^[-−]|e/.test(words) ? `(${words})` : words;
  });

  // Of each leaf, the place of the number that its slider changes; one leaf is chosen.
  const spots = leaves.map(() => 0);
  let chosen = Math.max(0, leaves.findIndex((_, leaf) => slopes(leaf)));
  const shapeOf = (leaf) => about[leaves[leaf][0]][0];
  const nameOf = (leaf) => {
    const places = [];
    shapeOf(leaf).reduceRight((rest, size) => { places.unshift(rest % size); return Math.floor(rest / size); }, spots[leaf]);
    return data.nodes[leaves[leaf][0]].name + (places.length ? `[${places.join(", ")}]` : "");
  };
  const numberAt = (leaf) => given[leaf][spots[leaf]];
  const reachOf = (leaf) => Math.max(2, 2 * Math.abs(Number.isFinite(began[leaf][spots[leaf]]) ? began[leaf][spots[leaf]] : 0));
  const unitOf = (leaf) => 10 ** Math.floor(Math.log10(reachOf(leaf) / 200));
  const choose = (leaf, spot) => {
    if (leaf !== chosen || spot !== spots[leaf]) curve = null;
    [chosen, spots[leaf]] = [leaf, spot];
    const held = document.activeElement?.dataset?.pick;
    refresh();
    changed();
    if (held) bar.parentNode.querySelector(`[data-pick="${held}"]`)?.focus({ preventScroll: true });
  };
  const set = (leaf, to) => {
    const [reach, unit] = [reachOf(leaf), unitOf(leaf)];
    given[leaf][spots[leaf]] = Math.max(-reach, Math.min(reach, +(Math.round(to / unit) * unit).toPrecision(12)));
    choose(leaf, spots[leaf]);
  };
  const back = () => { given.forEach((x, i) => x.set(began[i])); curve = null; refresh(); };

  const knobs = leaves.map((_, leaf) => {
    const { element, input, paint } = knobOf("", make("input", { type: "range" }), (to) => set(leaf, to));
    return { element, paint: () => {
      Object.assign(input, { min: -reachOf(leaf), max: reachOf(leaf), step: unitOf(leaf) });
      paint(numberAt(leaf), short(numberAt(leaf)), nameOf(leaf));
      element.classList.toggle("mg-here", leaf === chosen);
    } };
  });
  const reset = make("button", { onclick: () => { back(); changed(); }, title: "your program's numbers" }, "reset");
  const again = make("strong", {}, `Recorded operations run again: no branch is chosen again${branches && ` (${branches})`}, what was detached stays.`);
  bar.append("drag:", ...knobs.map((knob) => knob.element), reset, again, why);
  const refresh = () => {
    follow();
    for (const knob of knobs) knob.paint();
    reset.hidden = again.hidden = !moved;
  };

  // The box of a leaf: a click chooses it, and it can be dragged then.
  const handle = (box, node) => {
    const leaf = leaves.findIndex(([number]) => number === node);
    if (leaf < 0) return;
    box.classList.add("mg-grab");
    box.addEventListener("pointerdown", (event) => {
      const [from, x] = [numberAt(leaf), event.clientX];
      const to = (next) => { if (Math.abs(next.clientX - x) > 2) set(leaf, from + (next.clientX - x) * reachOf(leaf) / 150); };
      event.preventDefault();
      box.focus({ preventScroll: true });
      choose(leaf, spots[leaf]);
      addEventListener("pointermove", to);
      addEventListener("pointerup", () => removeEventListener("pointermove", to), { once: true });
    });
  };

  const called = data.nodes[result].name;
  const single = nodes[result] !== null && at(nodes[result]).length === 1;
  const resultAt = (number) => // the result with this number at the chosen spot
    (single ? run(given.with(chosen, given[chosen].with(spots[chosen], number)), forward)(nodes[result])[0] : NaN);
  const slopeAt = () => slopes(chosen)?.[spots[chosen]];
  const say = () => {
    const [name, slope, by] = [nameOf(chosen), slopeAt(), 10 ** Math.floor(Math.log10(reachOf(chosen) / 10))];
    const head = `${name} = ${short(numberAt(chosen))}${single ? `, ${called} = ${short(at(nodes[result])[0])}` : ""}.`;
    if (slope === undefined) return `${head} ${name} asks for no gradient.`;
    const effect = slope === 0 ? `: to first order, ${name} makes no difference` : single && Number.isFinite(slope) ? `: ${short(by)} more in ${name} makes about ${short(Math.abs(slope * by))} ${slope > 0 ? "more" : "less"} in ${called}` : "";
    return `${head} ∂${name} = ${short(slope)}${effect}.`;
  };

  // The result along the chosen number, and its tangent: the gradient is the slope.
  const chart = () => {
    const [reach, x, slope, y] = [reachOf(chosen), numberAt(chosen), slopeAt(), single ? at(nodes[result])[0] : NaN];
    curve ??= Array.from({ length: 121 }, (_, i) => (i / 60 - 1) * reach).map((number) => [number, resultAt(number)]);
    const ends = (points) => { const seen = [...points.map(([, v]) => v), y].filter(Number.isFinite); return [Math.min(...seen), Math.max(...seen)]; };
    const [all, near] = [curve, curve.filter(([number]) => Math.abs(number - x) < reach / 4)].map(ends);
    const [least, most] = all[1] - all[0] > 20 * (near[1] - near[0]) ? near : all; // beside a spike elsewhere, the tangent would show nothing
    if (!Number.isFinite(least)) return [];
    const room = (LOW - TOP) / ((most - least || 1) * 1.16), seen = (v) => v >= least && v <= most;
    const across = (v) => LEFT + (v / reach + 1) / 2 * (RIGHT - LEFT), up = (v) => (LOW + TOP) / 2 - (v - (least + most) / 2) * room;
    const line = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${across(a).toFixed(1)} ${up(b).toFixed(1)}`).join("");
    const parts = curve.reduce((found, point) => (seen(point[1]) ? found.at(-1).push(point) : found.push([]), found), [[]]); // no line through infinity, or out of the chart
    const text = (content, x, y, anchor) => drawn("text", { x, y, "text-anchor": anchor }, content);
    const svg = drawn("svg", { viewBox: `0 0 ${RIGHT + 8} ${LOW + 24}`, class: "mg-curve", role: "img", "aria-label": `${called} along ${nameOf(chosen)}, with its tangent` },
      drawn("path", { d: `M${LEFT} ${LOW}H${RIGHT}`, class: "mg-axis" }), drawn("path", { d: parts.map(line).join(""), class: "mg-along" }),
      ...[-reach, 0, reach].map((v) => text(short(v), across(v), LOW + 14, v > 0 ? "end" : "middle")), ...[least, most].map((v) => text(short(least) === short(most) ? v.toPrecision(6) : short(v), LEFT - 4, up(v) + 4, "end")));
    if (Number.isFinite(y)) {
      if (Number.isFinite(slope)) svg.append(drawn("path", { class: "mg-tangent", d: line([-0.4, 0.4].map((share) => [x + share * reach, y + share * reach * slope])) }));
      svg.append(drawn("path", { d: `M${across(x)} ${up(y)}V${LOW}`, class: "mg-drop" }), drawn("circle", { cx: across(x), cy: up(y), r: 4.5 }));
    }
    return titled(`${called} along ${nameOf(chosen)}${Number.isFinite(slope) ? "; the gradient is the slope" : ""}`, svg);
  };

  // The numbers of a leaf as squares, of which one is chosen.
  const picture = (title, pick, values) => {
    const [index, shape] = [spots[chosen], shapeOf(chosen)], wide = shape.at(-1), tall = shape.at(-2) ?? 1;
    const [row, column] = [Math.floor(index / wide) % tall, index % wide], [top, left] = [row - row % SIDE, column - column % SIDE];
    const first = index - row * wide - column, [high, across] = [Math.min(SIDE, tall - top), Math.min(SIDE, wide - left)];
    const rows = Array.from({ length: high }, (_, i) => Array.from({ length: across }, (_, j) => values[first + (top + i) * wide + left + j]));
    const side = Math.min(20, 120 / Math.max(across, high));
    const svg = drawn("svg", { width: across * side, height: high * side, class: "mg-pick", tabindex: 0, role: "img", "data-pick": pick,
      "aria-label": `${title}: ${nameOf(chosen)} is chosen, arrow keys choose another` }, squaresOf(lettersOf(rows).join("/"), side, 250, high * side, 0, high * side / 2),
      drawn("rect", { x: (column - left) * side + 1, y: (row - top) * side + 1, width: side - 2, height: side - 2, class: "mg-spot" }));
    const go = (i, j) => { if (i >= 0 && i < tall && j >= 0 && j < wide) choose(chosen, first + i * wide + j); };
    svg.addEventListener("pointerdown", (event) => {
      const box = svg.getBoundingClientRect();
      go(top + Math.floor((event.clientY - box.top) / side), left + Math.floor((event.clientX - box.left) / side));
    });
    onKeys(svg, () => ({ ArrowUp: () => go(row - 1, column), ArrowDown: () => go(row + 1, column), ArrowLeft: () => go(row, column - 1), ArrowRight: () => go(row, column + 1) }));
    return make("div", {}, ...titled(title, svg));
  };
  const pictures = () => {
    const { name } = data.nodes[leaves[chosen][0]], gradient = slopes(chosen);
    if (!shapeOf(chosen).length) return [];
    return [make("div", { class: "mg-picks" }, picture(`numbers of ${name}`, "value", given[chosen]), gradient ? picture(`∂${name}`, "gradient", gradient) : "")];
  };

  refresh();
  return {
    bar, fill, handle, say, chart, pictures, reset: back,
    node: () => leaves[chosen][0], last: () => data.steps[final.get(leaves[chosen][0])],
    came: (i) => (steps[i][1] === null ? data.steps[i].few : at(steps[i][1])),
  };
};
