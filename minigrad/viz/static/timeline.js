// Lanes of bars on one axis, to zoom and to pan.  Python decided what every bar is; this script places the bars, and adds up what is selected.

const LEFT = 86, RIGHT = 10, LANE = 30, STRIP = 15; // pixels: the margins, a lane, the phases below it
const KEYS = [["W S + −", "zoom in, zoom out"], ["A D", "to the left, to the right; or drag"], ["f z", "the whole call; the bar and those beside it"], ["← → ↑ ↓", "from bar to bar"],
  ["Enter", "facts about the bar"], ["Shift+← Shift+→", "select a stretch, bar by bar; or drag with Shift"], ["m", "select the bar, or the whole call"],
  ["/", "find"], ["Esc", "choose and select nothing"], ["?", "this list"]];

const rounded = (value, digits = 3) => (Math.abs(value) < 1e-6 ? "0" : String(Number(value.toPrecision(digits))));
const inUnits = (units) => (value, digits) => {
  const [one, name] = units.find(([each]) => value >= each * 0.9995) ?? units[units.length - 1];
  return `${rounded(value / one, digits)} ${name}`;
};
const bytesText = inUnits([[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
const timeText = inUnits([[1e6, "s"], [1e3, "ms"], [1, "µs"]]); // of microseconds

// How much of some stretches lies between two times; where they overlap, it counts once.
const covered = (stretches, from, to) => {
  let sum = 0, end = from;
  for (const [a, b] of [...stretches].sort((x, y) => x[0] - y[0])) {
    sum += Math.max(0, Math.min(b, to) - Math.max(a, end));
    end = Math.max(end, Math.min(b, to));
  }
  return sum;
};

const show = (parent, data) => {
  const { root, help, turnHelp, helps, stage, side, aloud } = shellOf(parent, data.about, KEYS);
  const named = data.unit === "B" ? bytesText : timeText;
  const rows = data.bands.flatMap((band) => band.lanes.map(([name, python, bars]) => ({ band, name, python, bars })));
  const whole = Math.max(...rows.flatMap(({ python, bars }) => [python[1], ...bars.map((bar) => bar[1])])) || 1;
  const works = (row) => row.bars.map((bar) => data.works[bar[2]]);
  const phased = new Set(data.bands.filter((band) => new Set(rows.filter((row) => row.band === band).flatMap(works).map((work) => work.phase)).size > 1));
  let from = 0, to = whole, workers = data.workers, high = 0; // what is seen
  let at = null, chosen = false, stretch = null, lit = () => false, selecting = false; // at: a row, and the number of a bar in it

  const seen = () => rows.filter(({ band }) => !band.for.length || band.for.includes(workers));
  const bands = () => [...new Set(seen().map((row) => row.band))];
  const barAt = () => at.row.bars[at.i];
  const workAt = () => data.works[barAt()[2]];
  const room = () => Math.max(60, holder.clientWidth - LEFT - RIGHT);
  const placeOf = (time) => Math.min(LEFT + room(), Math.max(LEFT, LEFT + ((time - from) / (to - from)) * room()));
  const timeAt = (event) => from + ((event.clientX - holder.getBoundingClientRect().left - LEFT) / room()) * (to - from);

  // the bar -----------------------------------------------------------------------------------------------------------
  const press = (text, does, title) => make("button", { title, "aria-label": title, onclick: does }, text);
  const select = press("select", () => { selecting = !selecting; select.setAttribute("aria-pressed", String(selecting)); }, "dragging selects a stretch");
  const slider = make("input", { type: "range", min: 1, max: data.most, value: workers, "aria-label": "workers of the model", oninput: () => {
    [workers, at, chosen] = [+slider.value, null, false];
    tell();
    paint();
    aloud.textContent = bands().filter((band) => band.for.length).map((band) => `${band.title}: ${band.says}`).join("; ");
  } });
  const count = make("output", { class: "mg-knob-value" });
  const matches = (text) => (work) => [work.name, work.label, work.section].some((words) => words.toLowerCase().includes(text));
  const look = (text) => seen().flatMap((row) => works(row).flatMap((work, i) => (matches(text)(work) ? [{ row, i }] : [])));
  const finder = finderOf(look, (found) => {
    lit = found ? matches(finder.field.value.trim().toLowerCase()) : () => false;
    if (found) reach(found);
    else paint();
  });
  finder.field.setAttribute("aria-label", "find a step or a layer");
  const files = Object.entries(data.files).map(([name, text]) => press(`save ${name}`, () => download(text, "application/json", name), "for ui.perfetto.dev"));
  const { more, opener } = moreOf(...savesOf("timeline", () => ({ svg: holder.querySelector("svg") })), ...files, helps);
  const models = data.most > 1 ? [make("label", { class: "mg-knob" }, make("span", {}, "workers"), slider, count)] : [];
  const holder = make("div", { class: "mg-lanes" });
  const front = make("div", { class: "mg-front" });
  front.innerHTML = data.front ?? ""; // ours: every name in it is escaped where it is drawn
  const legend = data.legend.map(([stroke, fill, text]) => make("span", {}, drawn("svg", { width: 18, height: 12, viewBox: "0 0 18 12" }, fill
    ? drawn("rect", { x: 1, y: 1, width: 16, height: 10, rx: 2, fill: `var(--${fill})`, stroke: `var(--${stroke})` })
    : drawn("path", { d: "M0 6H18", stroke: `var(--${stroke})`, "stroke-width": 2, "stroke-dasharray": "5 3" })), text));
  root.append(make("div", { class: "mg-bar" }, press("+", () => zoom(0.5), "zoom in: W"), press("−", () => zoom(2), "zoom out: S"), press("fit", () => view(0, whole), "the whole call: f"),
    select, ...models, space(), finder.field, finder.count, opener), more, front, make("p", { class: "mg-says" }, data.says), make("div", { class: "mg-legends" }, ...legend), stage);
  stage.append(holder, side);

  // the picture -------------------------------------------------------------------------------------------------------
  const written = (text, x, y, attributes = {}, most = Infinity) => {
    const words = [text, text.split(": ")[1]].find((each) => each && each.length * 6.2 <= most);
    return words ? [drawn("text", { x, y, "font-size": 11, fill: "var(--quiet)", "pointer-events": "none", ...attributes }, words)] : [];
  };
  const line = (x, y, end, attributes) => drawn("path", { d: `M${x} ${y}H${end}`, "pointer-events": "none", ...attributes });

  const barsOf = (row, y) => {
    const { band, bars } = row, made = [];
    for (let i = 0; i < bars.length; i += 1) {
      const first = i, x = placeOf(bars[i][0]), work = data.works[bars[i][2]], [border, fill] = data.kinds[work.kind];
      if (bars[i][1] < from || bars[i][0] > to) continue;
      while (i + 1 < bars.length && placeOf(bars[i + 1][1]) - x < 2) i += 1; // too small to tell apart
      const wide = Math.max(1, placeOf(bars[i][1]) - x);
      const here = at?.row === row && first <= at.i && at.i <= i, near = at && workAt().near.includes(work.name), marked = here || near || lit(work);
      made.push(drawn("rect", { x, y, width: wide, height: LANE - 4, rx: Math.min(2, wide / 2), fill: `var(--${wide < 4 ? border : fill})`, "data-bar": `${rows.indexOf(row)}:${first}`,
        stroke: here || lit(work) ? "var(--now)" : `var(--${border})`, "stroke-width": marked ? 3 : 1, "stroke-dasharray": band.model && wide > 4 ? "5 3" : "none", class: here ? "mg-lit" : "" },
      drawn("title", {}, i > first ? `${i - first + 1} steps: zoom in to see them` : `${work.label}, ${named(bars[i][1] - bars[i][0])}`)),
      ...written(work.label, x + wide / 2, y + 17, { "text-anchor": "middle", fill: "var(--ink)" }, wide - 6));
      if (bars[i][3]) made.push(line(x, y + LANE - 6, x + wide, { stroke: "var(--now)", "stroke-width": 3 }));
    }
    return made;
  };

  const phasesOf = (row, y) => {
    const phases = works(row).map((work) => work.phase), made = [];
    for (let i = 0, first = 0; i < phases.length; first = i) {
      while (i < phases.length && phases[i] === phases[first]) i += 1;
      const [a, b, phase] = [placeOf(row.bars[first][0]), placeOf(row.bars[i - 1][1]), phases[first]];
      if (phase && b > a) made.push(line(a, y, b, { stroke: `var(--${data.kinds[phase][0]})`, "stroke-width": 2, "stroke-dasharray": data.strokes[phase] || "none" }), ...written(phase, a, y + 12, {}, b - a));
    }
    return made;
  };

  const ruler = (height) => {
    const raw = (to - from) / Math.max(2, room() / 90), power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((factor) => power * factor >= raw * 0.999), made = [];
    for (let n = Math.ceil(from / step - 1e-9); n * step <= to * (1 + 1e-9); n += 1) {
      const x = placeOf(n * step);
      made.push(drawn("path", { d: `M${x} 18V${height}`, stroke: "var(--line)" }), ...written(named(n * step, Math.max(3, Math.ceil(Math.log10(n || 1)) + 1)), x, 13, { "text-anchor": x > LEFT + room() - 30 ? "end" : "middle" }));
    }
    return made;
  };

  const paint = () => {
    const made = [], wide = holder.clientWidth;
    let y = 26, before = null;
    for (const row of seen()) {
      const { band, name, python } = row, begin = 14 + band.title.length * 7.4, most = Math.max(0, Math.floor((wide - begin) / 6.2));
      if (band !== before) {
        y += before ? 34 : 22;
        before = band;
        const says = band.says.length > most ? `${band.says.slice(0, most - 1)}…` : band.says;
        made.push(drawn("text", { x: 4, y: y - 8, "font-size": 12, "font-weight": 600, fill: "var(--ink)" }, band.title), ...(most > 9 ? written(says, begin, y - 8) : []));
      }
      made.push(...written(name, LEFT - 8, y + 17, { "text-anchor": "end" }));
      const [a, b] = python.map(placeOf);
      if (b > a) made.push(drawn("rect", { x: a, y, width: b - a, height: LANE - 4, rx: 2, fill: "var(--tint)", stroke: "var(--line)" }, drawn("title", {}, "Python")));
      made.push(...barsOf(row, y), ...(phased.has(band) ? phasesOf(row, y + LANE) : []));
      y += LANE + (phased.has(band) ? STRIP : 0);
    }
    if (stretch) made.push(drawn("rect", { x: placeOf(stretch[0]), y: 16, width: Math.max(1, placeOf(stretch[1]) - placeOf(stretch[0])), height: y - 14, class: "mg-stretch", "pointer-events": "none" }));
    holder.replaceChildren(drawn("svg", { viewBox: `0 0 ${wide} ${y + 8}`, width: wide, height: y + 8, class: "mg-picture", role: "img", "aria-label": data.about }, ...ruler(y), ...made));
    if (y !== high) { high = y; stage.style.removeProperty("--wish"); askFor(stage, y + 24, 560); }
    count.textContent = workers;
    Object.assign(root.dataset, { from: rounded(from, 9), to: rounded(to, 9), workers, chosen: chosen ? workAt().name : "", stretch: stretch?.map((time) => rounded(time, 9)).join(" ") ?? "" });
  };

  // facts and sums ----------------------------------------------------------------------------------------------------
  const factsOf = ({ row: { band }, row, i }) => {
    const [begin, end] = row.bars[i], { name, section, rows: said, cost: [launches, moved, flops], best, bound } = workAt(), time = end - begin;
    const rate = (much) => `${rounded(much / time / 1e3)} G`; // a second, for each microsecond
    return [["step", name], ...(section ? [["part of", section]] : []), [band.model ? "by the model" : "time", named(time)], ["begins after", named(begin)],
      ...(launches ? [["bytes", bytesText(moved)], ["operations", flops.toLocaleString("en")]] : []),
      ...(band.model || !time || !launches ? [] : [["bytes a second", `${rate(moved)}B/s`], ["operations a second", `${rate(flops)}FLOP/s`]]),
      ...(band.model || !bound ? [] : [["share of the roof", `${Math.round(Math.min(1, best / (time || best)) * 100)} %`], ["bound by", `${bound}: at best ${named(best)}`]]), ...said];
  };

  // A launch counts where its middle lies.
  const sumsOf = (band) => {
    const own = rows.filter((row) => row.band === band && row.name !== "on its way");
    const launches = own.flatMap(({ bars }) => bars.filter(([a, b, work]) => data.works[work].cost[0] && a <= stretch[1] && b >= stretch[0]));
    const inside = launches.filter(([a, b]) => stretch[0] <= (a + b) / 2 && (a + b) / 2 <= stretch[1]);
    const sum = (i) => inside.reduce((all, [, , work]) => all + data.works[work].cost[i], 0);
    const busy = covered(launches, ...stretch), python = covered(own.map((row) => row.python), ...stretch);
    return [["launches", sum(0).toLocaleString("en")], ["in launches", named(busy)], ...(python ? [["Python", named(Math.max(0, python - busy))]] : []), ["bytes", bytesText(sum(1))], ["operations", sum(2).toLocaleString("en")]];
  };

  const tell = () => {
    const facts = chosen ? factsOf(at) : [], code = chosen ? data.lines[workAt().line] : null;
    const sums = stretch ? bands().filter((band) => !band.model || data.unit === "B").map((band) => [band.title, sumsOf(band)]) : [];
    const headings = [chosen ? workAt().label : "", stretch ? `selected: ${named(stretch[1] - stretch[0])}` : ""];
    const said = headings.map((text) => (text ? [make("p", { class: "mg-say" }, make("strong", {}, text))] : []));
    side.hidden = !chosen && !stretch;
    stage.classList.toggle("mg-alone", side.hidden);
    side.replaceChildren(closer(nothing), ...said[0], ...(chosen ? [rowsOf(facts)] : []), ...(code ? codeOf(code) : []), ...said[1], ...sums.flatMap(([title, each]) => titled(title, rowsOf(each))));
    aloud.textContent = [...headings, ...facts.map((row) => row.join(": ")), ...sums.map(([title, each]) => `${title}: ${each.map((row) => row.join(" ")).join(", ")}`)].filter(Boolean).join("; ");
  };

  // moving ------------------------------------------------------------------------------------------------------------
  const view = (a, b) => {
    const wide = Math.min(whole, Math.max(whole / 1e5, b - a));
    from = Math.min(Math.max(0, a), whole - wide);
    to = from + wide;
    paint();
  };
  const zoom = (by, around = at ? Math.min(to, Math.max(from, (barAt()[0] + barAt()[1]) / 2)) : (from + to) / 2) => view(around - (around - from) * by, around + (to - around) * by);
  const pan = (share) => view(from + share * (to - from), to + share * (to - from));
  const closely = ([a, b]) => view(a - (b - a), b + (b - a));
  const reach = (spot) => {
    at = spot;
    const [a, b] = barAt();
    if (b - a > to - from) closely([a, b]);
    else if (a < from || b > to) view((a + b - to + from) / 2, (a + b + to - from) / 2);
    else paint();
    if (chosen) tell();
    else aloud.textContent = `${at.row.band.title}, ${at.row.name} ${workAt().label}: ${named(b - a)}`;
  };
  const step = (dx, dy, extend) => {
    const filled = seen().filter((row) => row.bars.length);
    if (!filled.length) return;
    const row = at ? filled[Math.min(filled.length - 1, Math.max(0, filled.indexOf(at.row) + dy))] : filled[0], { bars } = row;
    const old = at ? barAt() : [from, from], off = ([a, b]) => Math.abs(a + b - old[0] - old[1]);
    const near = bars.reduce((best, bar, i) => (off(bar) < off(bars[best]) ? i : best), 0);
    const i = row === at?.row ? Math.min(bars.length - 1, Math.max(0, at.i + dx)) : near;
    if (extend) stretch = [Math.min(stretch?.[0] ?? old[0], bars[i][0]), Math.max(stretch?.[1] ?? old[1], bars[i][1])];
    reach({ row, i });
    if (extend) tell();
  };
  const choose = (spot) => { chosen = true; reach(spot); };
  const nothing = () => { [chosen, at, stretch, lit] = [false, null, null, () => false]; tell(); paint(); root.focus(); };
  const keep = (a, b) => { stretch = [Math.min(a, b), Math.max(a, b)]; tell(); paint(); };

  let held = null; // where a drag began
  holder.addEventListener("pointerdown", (event) => { held = { x: event.clientX, from, to, time: timeAt(event), selects: event.shiftKey || selecting, moved: false }; });
  holder.addEventListener("pointermove", (event) => {
    if (!held || (!held.moved && Math.abs(event.clientX - held.x) < 4)) return;
    if (!held.moved) holder.setPointerCapture(event.pointerId);
    held.moved = true;
    const by = ((held.x - event.clientX) / room()) * (held.to - held.from);
    if (held.selects) { stretch = [held.time, timeAt(event)].sort((a, b) => a - b); paint(); } else view(held.from + by, held.to + by);
  });
  holder.addEventListener("pointerup", (event) => {
    const was = held, bar = event.target.closest?.("[data-bar]")?.dataset.bar.split(":").map(Number);
    held = null;
    if (was?.moved && was.selects) keep(...stretch);
    else if (was && !was.moved && bar) choose({ row: rows[bar[0]], i: bar[1] });
  });
  holder.addEventListener("pointercancel", () => { held = null; });
  holder.addEventListener("wheel", (event) => { // the view does not catch the wheel of a page that is scrolled past it
    if (!event.ctrlKey && !event.metaKey && !root.contains(root.getRootNode().activeElement)) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / room());
    else zoom(event.deltaY < 0 ? 0.8 : 1.25, timeAt(event));
  }, { passive: false });

  // the table ---------------------------------------------------------------------------------------------------------
  const list = make("div", { class: "mg-steps" });
  const fill = ({ rows: cells, layers }) => {
    const used = data.head.map((_, i) => cells.some((row) => row[i]));
    const cut = (row, tag) => row.filter((_, i) => used[i]).map((text) => make(tag, {}, text));
    list.replaceChildren(make("table", { class: "mg-compare" }, make("tr", {}, ...cut(data.head, "th")), ...cells.map((row) => {
      const each = make("tr", { tabindex: "0" }, ...cut(row, "td"));
      onPress(each, () => { lit = (work) => (layers ? work.section || data.outside : work.name) === row[0]; at = null; paint(); aloud.textContent = row.join(", "); });
      return each;
    })));
  };
  const which = make("select", { "aria-label": "which table", onchange: () => fill(data.tables[+which.value]) }, ...data.tables.map(({ name }, value) => make("option", { value }, name)));
  if (data.tables.length) { root.append(make("div", { class: "mg-below" }, which, list)); fill(data.tables[0]); }
  root.append(help, aloud);

  onKeys(root, (event) => {
    if (event.target.matches("input, select") && event.key !== "Escape") { event.stopPropagation(); return null; }
    if (event.target.matches("button, tr") && [" ", "Enter"].includes(event.key)) return null;
    const letters = { w: () => zoom(0.7), s: () => zoom(1 / 0.7), a: () => pan(-0.25), d: () => pan(0.25), f: () => view(0, whole), z: () => at && closely(barAt()), m: () => keep(...(at ? barAt() : [0, whole])) };
    const capitals = Object.fromEntries(Object.entries(letters).map(([key, does]) => [key.toUpperCase(), does]));
    return { ...letters, ...capitals, "+": letters.w, "=": letters.w, "-": letters.s, "/": () => finder.field.focus(), "?": turnHelp, Escape: nothing,
      ArrowLeft: () => step(-1, 0, event.shiftKey), ArrowRight: () => step(1, 0, event.shiftKey), ArrowUp: () => step(0, -1), ArrowDown: () => step(0, 1), Enter: () => at && choose(at) };
  });

  side.hidden = true;
  stage.classList.add("mg-alone");
  new ResizeObserver(() => requestAnimationFrame(paint)).observe(holder);
  paint();
  return { go: () => {} };
};
