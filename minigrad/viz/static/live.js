// What follows while a number of a leaf is dragged: every value, every gradient, the side panel (see live.py).

const LEFT = 46, RIGHT = 332, TOP = 10, LOW = 166; // of the chart
const KNOBS = 8, SIDE = 32; // sliders at first, and rows and columns of a leaf that are seen at once, at most

// `data` gets the new values, and `changed` paints.  Without a tape, the bar says why there is none.
const liveOf = (data, changed) => {
  const { why, leaves, forward, nodes, steps, result } = data.live;
  const quiet = (text) => make("span", { class: "mg-quiet" }, text);
  const bar = make("div", { class: "mg-bar mg-knobs mg-live" });
  if (!leaves) {
    bar.append(quiet(why));
    return { bar, fill: (text) => text, handle: () => {}, reset: () => {} };
  }
  const run = tapeOf(data.live), began = leaves.map(([, numbers]) => Float64Array.from(numbers, Number)), given = began.map((x) => x.slice());
  const about = data.nodes.map((node) => typeIn(node.type)), final = new Map(data.steps.map((step, i) => [step.target, i]));
  const kept = [...data.nodes, ...data.steps].map(({ value, gradient, before, total, check }) => ({ value, gradient, before, total, check }));
  let at = run(given), moved = false, curve = null;

  // Every value and every gradient from the tape; those of the program as Python wrote them.
  const follow = () => {
    at = run(given);
    moved = given.some((x, i) => x.some((number, k) => !Object.is(number, began[i][k])));
    [...data.nodes, ...data.steps].forEach((each, i) => Object.assign(each, kept[i]));
    if (!moved) return;
    const put = (thing, name, register, node) => { if (register !== null) thing[name] = summaryOf(at(register), ...about[node]); };
    data.nodes.forEach((node, i) => {
      put(node, "value", nodes[i], i);
      if (node.gradient) put(node, "gradient", gradientOf(i), i);
    });
    data.steps.forEach((step, i) => {
      ["value", "before", "total"].forEach((name, k) => put(step, name, steps[i][k + 1], step.target));
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

  // A spot is a leaf, and the place of a number in it.
  const shapeOf = (leaf) => about[leaves[leaf][0]][0];
  const nameOf = ([leaf, index]) => {
    const places = [];
    shapeOf(leaf).reduceRight((rest, size) => { places.unshift(rest % size); return Math.floor(rest / size); }, index);
    return data.nodes[leaves[leaf][0]].name + (places.length ? `[${places.join(", ")}]` : "");
  };
  const numberAt = ([leaf, index]) => given[leaf][index];
  const reachOf = ([leaf, index]) => Math.max(2, 2 * Math.abs(Number.isFinite(began[leaf][index]) ? began[leaf][index] : 0));
  const unitOf = (spot) => 10 ** Math.floor(Math.log10(reachOf(spot) / 200));
  const same = ([a, b], [c, d]) => a === c && b === d;
  const loose = leaves.map((_, i) => [i, 0]).filter(([i]) => !shapeOf(i).length);
  let chosen = loose.find(([i]) => slopes(i)) ?? loose[0] ?? [0, 0];
  const set = (spot, to) => {
    const [leaf, index] = spot, [reach, unit] = [reachOf(spot), unitOf(spot)];
    if (!same(spot, chosen)) [chosen, curve] = [spot, null];
    if (to !== undefined) given[leaf][index] = Math.max(-reach, Math.min(reach, +(Math.round(to / unit) * unit).toPrecision(12)));
    const held = document.activeElement?.dataset?.pick;
    refresh();
    changed();
    if (held) bar.parentNode.querySelector(`[data-pick="${held}"]`)?.focus({ preventScroll: true });
  };
  const back = () => { given.forEach((x, i) => x.set(began[i])); curve = null; refresh(); };

  // sliders -----------------------------------------------------------------------------------------------------------
  const knobOf = (spot) => {
    const [name, out] = ["mg-knob-name", "mg-knob-value"].map((name) => make("span", { class: name }));
    const range = make("input", { type: "range", oninput: () => set(knob.spot, +range.value) });
    const knob = { spot, element: make("label", { class: "mg-knob" }, name, range, out), paint: () => {
      const reach = reachOf(knob.spot);
      Object.assign(range, { min: -reach, max: reach, step: unitOf(knob.spot) }).value = numberAt(knob.spot);
      [name.textContent, out.textContent] = [nameOf(knob.spot), short(numberAt(knob.spot))];
      range.setAttribute("aria-label", name.textContent);
      range.setAttribute("aria-valuetext", out.textContent);
      knob.element.classList.toggle("mg-here", same(knob.spot, chosen));
    } };
    return knob;
  };
  const knobs = loose.slice(0, KNOBS).map(knobOf), other = knobOf(chosen);
  const reset = make("button", { onclick: () => { back(); changed(); }, title: "the numbers of your program" }, "reset");
  const again = make("strong", {}, "Only what ran is repeated: no if, cond or mask is decided again.");
  const larger = make("select", { "aria-label": "drag a number of a larger leaf", onchange: () => { if (larger.value) set([+larger.value, 0]); } },
    make("option", { value: "" }, "a larger tensor"), ...leaves.flatMap(([node], i) => (shapeOf(i).length ? [make("option", { value: i }, data.nodes[node].name)] : [])));
  bar.append(quiet("drag:"), ...knobs.map((knob) => knob.element), reset, ...(larger.length > 1 ? [larger] : []), again, quiet(why));
  const refresh = () => {
    follow();
    if (knobs.some((knob) => same(knob.spot, chosen))) other.element.remove();
    else if (other.element.parentNode !== bar) reset.before(other.element); // once: where it is moved, it loses the focus
    other.spot = chosen;
    larger.value = shapeOf(chosen[0]).length ? chosen[0] : "";
    for (const knob of [...knobs, other]) knob.paint();
    reset.hidden = again.hidden = !moved;
  };

  // The box of a leaf: a click chooses it, and it can be dragged then, or changed by keys.
  const handle = (box, node) => {
    const leaf = leaves.findIndex(([number]) => number === node);
    if (leaf < 0) return;
    const here = () => (chosen[0] === leaf ? chosen : [leaf, 0]);
    const more = (units) => set(here(), numberAt(here()) + units * unitOf(here()));
    box.classList.add("mg-grab");
    box.addEventListener("pointerdown", (event) => {
      const [from, x] = [numberAt(here()), event.clientX];
      const to = (next) => { if (Math.abs(next.clientX - x) > 2) set(here(), from + (next.clientX - x) * reachOf(here()) / 150); };
      event.preventDefault();
      box.focus({ preventScroll: true });
      set(here());
      addEventListener("pointermove", to);
      addEventListener("pointerup", () => removeEventListener("pointermove", to), { once: true });
    });
    onKeys(box, () => ({ ArrowUp: () => more(5), ArrowDown: () => more(-5), Enter: () => set(here()) }));
  };

  // the side ----------------------------------------------------------------------------------------------------------
  const called = data.nodes[result].title?.split(" = ")[0] || data.nodes[result].name;
  const single = nodes[result] !== null && at(nodes[result]).length === 1;
  const resultAt = (number, Kind) => { // the result with this number at the chosen spot
    const trial = given.with(chosen[0], given[chosen[0]].with(chosen[1], number));
    return single ? run(trial, forward, Kind)(nodes[result])[0] : NaN;
  };
  const slopeAt = () => slopes(chosen[0])?.[chosen[1]];
  const say = () => {
    const [name, slope, by] = [nameOf(chosen), slopeAt(), 10 ** Math.floor(Math.log10(reachOf(chosen) / 10))];
    const head = `${name} = ${short(numberAt(chosen))}${single ? `, ${called} = ${short(at(nodes[result])[0])}` : ""}.`;
    if (!slope) return `${head} ${slope === 0 ? `∂${name} = 0: near here, ${name} makes no difference` : slope ?? `${name} asks for no gradient`}.`;
    const effect = single && Number.isFinite(slope) ? `: ${short(by)} more in ${name} makes about ${short(Math.abs(slope * by))} ${slope > 0 ? "more" : "less"} in ${called}` : "";
    return `${head} ∂${name} = ${short(slope)}${effect}.`;
  };

  // The gradient by the rules, and by differences of the result on both sides.
  const check = () => {
    const [x, slope] = [numberAt(chosen), slopeAt()], width = 1e-5 * Math.max(1, Math.abs(x));
    const [below, here, above] = [x - width, x, x + width].map((number) => resultAt(number, Float64Array));
    const sides = [(here - below) / width, (above - here) / width].sort((a, b) => a - b), middle = (sides[0] + sides[1]) / 2;
    if (!Number.isFinite(slope + middle)) return null;
    const near = 1e-5 * Math.max(1, Math.abs(here)) + 1e-3 * Math.max(Math.abs(slope), Math.abs(middle)), kink = sides[1] - sides[0] > 10 * near;
    return [...[slope, middle, ...(kink ? sides : [])].map(short), kink ? sides[0] - near <= slope && slope <= sides[1] + near : Math.abs(slope - middle) <= near];
  };

  // The result along the chosen number, and its tangent: the gradient is the slope.
  const chart = () => {
    const [reach, x, slope, y] = [reachOf(chosen), numberAt(chosen), slopeAt(), single ? at(nodes[result])[0] : NaN];
    curve ??= Array.from({ length: 121 }, (_, i) => (i / 60 - 1) * reach).map((number) => [number, resultAt(number)]);
    const finite = [...curve.map(([, v]) => v), y].filter(Number.isFinite);
    if (!finite.length) return [];
    const least = Math.min(...finite), most = Math.max(...finite), room = (LOW - TOP) / ((most - least || 1) * 1.16);
    const across = (v) => LEFT + (v / reach + 1) / 2 * (RIGHT - LEFT), up = (v) => (LOW + TOP) / 2 - (v - (least + most) / 2) * room;
    const line = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${across(a).toFixed(1)} ${up(b).toFixed(1)}`).join("");
    const parts = curve.reduce((found, point) => (Number.isFinite(point[1]) ? found.at(-1).push(point) : found.push([]), found), [[]]); // no line through infinity
    const text = (content, x, y, anchor) => drawn("text", { x, y, "text-anchor": anchor }, content);
    const svg = drawn("svg", { viewBox: `0 0 ${RIGHT + 8} ${LOW + 24}`, class: "mg-curve", role: "img", "aria-label": `${called} along ${nameOf(chosen)}, with its tangent` },
      drawn("path", { d: `M${LEFT} ${LOW}H${RIGHT}`, class: "mg-axis" }), drawn("path", { d: parts.map(line).join(""), class: "mg-along" }),
      ...[-reach, 0, reach].map((v) => text(short(v), across(v), LOW + 14, v > 0 ? "end" : "middle")), ...[least, most].map((v) => text(short(v), LEFT - 4, up(v) + 4, "end")));
    if (Number.isFinite(y)) {
      if (Number.isFinite(slope)) svg.append(drawn("path", { class: "mg-tangent", d: line([-0.4, 0.4].map((share) => [x + share * reach, y + share * reach * slope])) }));
      svg.append(drawn("path", { d: `M${across(x)} ${up(y)}V${LOW}`, class: "mg-drop" }), drawn("circle", { cx: across(x), cy: up(y), r: 4.5 }));
    }
    return titled(`${called} along ${nameOf(chosen)}; the gradient is the slope`, svg);
  };

  // The numbers of a leaf as squares, of which one is chosen.
  const picture = (title, pick, values) => {
    const [leaf, index] = chosen, shape = shapeOf(leaf), wide = shape.at(-1), tall = shape.at(-2) ?? 1;
    const [row, column] = [Math.floor(index / wide) % tall, index % wide], [top, left] = [row - row % SIDE, column - column % SIDE];
    const first = index - row * wide - column, [high, across] = [Math.min(SIDE, tall - top), Math.min(SIDE, wide - left)];
    const rows = Array.from({ length: high }, (_, i) => Array.from({ length: across }, (_, j) => values[first + (top + i) * wide + left + j]));
    const side = Math.min(20, 120 / Math.max(across, high));
    const svg = drawn("svg", { width: across * side, height: high * side, class: "mg-pick", tabindex: 0, role: "img", "data-pick": pick,
      "aria-label": `${title}: ${nameOf(chosen)} is chosen, arrow keys choose another` }, squaresOf(lettersOf(rows).join("/"), side, 250, high * side, 0, high * side / 2),
      drawn("rect", { x: (column - left) * side + 1, y: (row - top) * side + 1, width: side - 2, height: side - 2, class: "mg-spot" }));
    const go = (i, j) => { if (i >= 0 && i < tall && j >= 0 && j < wide) set([leaf, first + i * wide + j]); };
    svg.addEventListener("pointerdown", (event) => {
      const box = svg.getBoundingClientRect();
      go(top + Math.floor((event.clientY - box.top) / side), left + Math.floor((event.clientX - box.left) / side));
    });
    onKeys(svg, () => ({ ArrowUp: () => go(row - 1, column), ArrowDown: () => go(row + 1, column), ArrowLeft: () => go(row, column - 1), ArrowRight: () => go(row, column + 1) }));
    return make("div", {}, ...titled(title, svg));
  };
  const pictures = () => {
    const [leaf] = chosen, { name } = data.nodes[leaves[leaf][0]], gradient = slopes(leaf);
    if (!shapeOf(leaf).length) return [];
    return [make("div", { class: "mg-picks" }, picture(`numbers of ${name}`, "value", given[leaf]), gradient ? picture(`∂${name}`, "gradient", gradient) : "")];
  };

  refresh();
  return {
    bar, fill, handle, say, check, chart, pictures, reset: () => { if (moved) back(); },
    node: () => leaves[chosen[0]][0], last: () => data.steps[final.get(leaves[chosen[0]][0])],
    came: (i) => (steps[i][1] === null ? data.steps[i].few : at(steps[i][1])),
  };
};
