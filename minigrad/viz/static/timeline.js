// Lanes of bars on one axis, to zoom and to pan.  Python decided what every bar is; this script places the bars, and adds them up.

const LEFT = 86, RIGHT = 10, LANE = 24, TALL = 180; // pixels: the margins, a lane, and one where there is room
const BRACKET = 16; // pixels: names above the bars
const SHORT = 2.5; // bands that are shorter than what is seen by this factor are drawn once more, larger
const WIDE = 90; // pixels: Python is named where it takes long
const MANY = 20; // rows of a table: of more, those of alike modules are one
const KEYS = [["W S", "zoom; the wheel too, after a click"], ["A D", "left, right; drag with Shift too"],
  ["f", "the whole call"], ["← → ↑ ↓", "from bar to bar"], ["Enter", "facts about the bar"],
  ["Shift+← Shift+→", "select a stretch; drag too"], ["/", "find"], ["Esc", "choose and select nothing"]];

const HEAD = ["", "time", "of all", "launches", "bytes", "operations", "of the limit"];

const timeText = inUnits([[1e6, "s"], [1e3, "ms"], [1, "µs"]]); // of microseconds

const show = (parent, data) => {
  const { root, helps, stage, side, read, inform, listen } = shellOf(parent, data.about, KEYS);
  const named = data.unit === "B" ? bytesText : timeText;
  const rows = data.bands.flatMap((band) => band.lanes.map(([name, ...lists]) => {
    const row = { band, name };
    [row.bar, row.python] = lists.map((bars) => bars.map(([begin, end, number, critical]) =>
      ({ row, begin, end, long: end - begin, work: data.works[number], critical })));
    return row;
  }));
  const whole = Math.max(...data.bands.map((band) => band.end)) || 1;
  const most = Math.max(1, ...data.bands.map((band) => band.workers));
  let from = 0, to = whole, workers = data.workers, lane = LANE; // what is seen
  let axis = [from, to], tops = []; // the axis that is drawn; where each row begins, and its axis
  let at = null, chosen = false, stretch = null, lit = () => false; // at: a bar

  const seen = () => rows.filter(({ band }) => !band.workers || band.workers === workers);
  const room = () => Math.max(60, holder.clientWidth - LEFT - RIGHT);
  const placeOf = (time) => Math.min(LEFT + room(), Math.max(LEFT, LEFT + ((time - axis[0]) / (axis[1] - axis[0])) * room()));
  const spotAt = ({ clientY }) => tops.findLast(([y]) => y <= clientY - holder.getBoundingClientRect().top + holder.scrollTop) ?? tops[0];
  const timeAt = (event, [, , [begin, end]] = spotAt(event)) =>
    begin + ((event.clientX - holder.getBoundingClientRect().left - LEFT) / room()) * (end - begin);

  // the bar -----------------------------------------------------------------------------------------------------------
  const press = (text, does, title) => make("button", { title, "aria-label": title, onclick: does }, text);
  const range = make("input", { type: "range", min: 1, max: most, "aria-description": "of the model" });
  const knob = knobOf("workers", range, (to) => {
    [workers, at, chosen] = [to, null, false];
    tell();
    paint();
    read(data.bands.filter((band) => band.workers === workers).map((band) => `${band.title}: ${band.says}`).join("; "));
  });
  const matches = (text) => ({ name, label, section }) => `${name}\n${label}\n${section}`.toLowerCase().includes(text);
  const look = (text) => seen().flatMap((row) => row.bar.filter(({ work }) => matches(text)(work)));
  const finder = finderOf("find a step or a layer", look, (found) => {
    lit = found ? matches(finder.field.value.trim().toLowerCase()) : () => false;
    if (found) choose(found);
    else paint();
  });
  const holder = make("div", { class: "mg-lanes" }), [first, ...others] = data.says.split(/(?<=\. )/);
  const legend = data.legend.map(([stroke, fill, text]) => make("span", {},
    make("i", { style: `border: 2px ${fill ? "solid" : "dashed"} var(--${stroke}); background: var(--${fill})` }), text));
  root.prepend(
    make("div", { class: "mg-bar" }, press("+", () => zoom(0.5), "zoom in: W"), press("−", () => zoom(2), "zoom out: S"),
      press("fit", () => view(0, whole), "f"),
      most > 1 && knob.element, space(), finder.field, finder.count, helps),
    make("p", { class: "mg-says" }, make("strong", {}, first), ...others),
    make("div", { class: "mg-legends" }, ...legend));
  stage.append(holder, side);

  // the picture -------------------------------------------------------------------------------------------------------
  const written = (text, x, y, other = {}) => drawn("text", { x, y, "font-size": 11, fill: "var(--quiet)", ...other }, text);
  const box = (x, y, width, other, ...about) => drawn("rect", { x, y, width, height: lane - 4, rx: 2, ...other }, ...about);
  const ink = { "text-anchor": "middle", fill: "var(--ink)" }, bold = { "font-size": 12, "font-weight": 600, fill: "var(--ink)" };

  const fits = (text, most) => text.length * 6.2 <= most;
  const wrapped = (text, most) => text.split(" ").reduce((lines, word) => {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    return lines.length && !fits(longer, most) ? [...lines, word] : [...lines.slice(0, -1), longer];
  }, []);

  // A label around the middle of a bar: its words in lines where they fit; or upright, cut in the middle with one sign.
  const wordsOf = (label, x, y, wide) => {
    const lines = wrapped(label, wide);
    if (lines.every((line) => fits(line, wide)) && lines.length * 13 + 8 <= lane) {
      return lines.map((line, i) => written(line, x, y + 4 + 13 * (i - (lines.length - 1) / 2), ink));
    }
    const most = Math.floor((lane - 8) / 6.6), end = label.slice(label.length - Math.floor((most - 1) / 2));
    const upright = label.length > most ? `${label.slice(0, most / 2)}…${end}`.replace(/ *….*… */, "…") : label;
    return wide > 5 ? [written(upright, x + 4, y, { ...ink, transform: `rotate(-90 ${x + 4} ${y})` })] : [];
  };

  const barsOf = (row, list, y) => {
    const bars = row[list], made = [];
    for (let i = 0; i < bars.length; i += 1) {
      const first = i, bar = bars[i], { begin, end, work } = bar, x = placeOf(begin);
      if (end < axis[0] || begin > axis[1]) continue;
      while (i + 1 < bars.length && placeOf(bars[i + 1].end) - x < 2) i += 1; // too small to tell apart
      const [border, fill] = data.kinds[work.kind], wide = Math.max(1, placeOf(bars[i].end) - x);
      const here = bars.slice(first, i + 1).includes(at), found = here || lit(work);
      const title = i > first ? `${i - first + 1} steps: zoom in for each` : `${work.label}, ${named(bar.long)}`;
      const drawing = box(x, y, wide, { class: here ? "mg-lit" : "", [`data-${list}`]: `${rows.indexOf(row)}:${first}`,
        fill: `var(--${fill})`, stroke: `var(--${found ? "now" : border})`, "stroke-width": here ? 4 : found ? 2 : Math.min(1, wide / 8), // as pale as a wide one
        "stroke-dasharray": row.band.model && wide > 4 ? "5 3" : "none" }, drawn("title", {}, title));
      drawing.bar = bar;
      made.push(drawing, ...(work.name || wide > WIDE ? wordsOf(work.label, x + wide / 2, y + lane / 2 - 2, wide - 6) : []));
      if (bar.critical) made.push(box(x, y + lane - 7, wide, { height: 3, fill: "var(--now)" }));
    }
    return made;
  };

  // Names above the bars of a band, each as long as what it is the name of, where they fit.  A phase has its colour everywhere.
  const bracketsOf = ({ brackets }, y) => brackets.map((level) => level
    .map(([begin, end, name]) => [name, placeOf(begin), placeOf(end) - placeOf(begin), data.kinds[name]?.[1]])
    .map(([name, x, width, colour]) => [name, x, width, colour, // its name, or the number that tells it from others
      [name, ...(name.match(/^\S*(\[\d+\])|^\d+|\d+$/) ?? [])].find((text) => text && fits(text, width - 2)) ?? ""])
    .filter(([, , width, colour, text]) => text || (colour && width)))
    .filter(({ length }) => length)
    .map((level, i) => level.flatMap(([name, x, width, colour, text]) => [
      drawn("rect", { x, y: y + BRACKET * i, width, height: BRACKET - 3, fill: `var(--${colour || "line"})` }, drawn("title", {}, name)),
      written(text, x + width / 2, y + BRACKET * i + 10, ink)]));

  const ruler = (top, height) => {
    const raw = (axis[1] - axis[0]) / Math.max(2, room() / 90), power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((factor) => power * factor >= raw * 0.999), made = [];
    for (let n = Math.ceil(axis[0] / step - 1e-9); n * step <= axis[1] * (1 + 1e-9); n += 1) {
      const x = placeOf(n * step), words = named(n * step, Math.max(3, Math.ceil(Math.log10(n || 1)) + 1));
      made.push(drawn("path", { d: `M${x} ${top + 18}V${height}`, stroke: "var(--line)" }),
        written(words, x, top + 13, { "text-anchor": x > LEFT + room() - 30 ? "end" : "middle" }));
    }
    return made;
  };

  // Some rows on one axis, from a height on; returns the height below them.
  const part = (shown, ends, top, made, twice, about = "") => {
    const wide = holder.clientWidth, lines = made.length;
    let y = top + 26, before = null;
    axis = ends;
    for (const row of shown) {
      const { band, name } = row, title = band.title + about;
      if (band !== before) {
        y += before ? 19 : 7;
        before = band;
        const says = about && twice.includes(row) && !band.workers ? "" : band.says; // what is drawn twice has its words once
        for (const [i, line] of wrapped(`${title}   ${says}`, wide - 28 - title.length).entries()) {
          const head = i ? "" : line.slice(0, title.length);
          y += 15;
          const text = written("", 14, y - 8, { class: "mg-halo" });
          text.replaceChildren(drawn("tspan", bold, head), drawn("tspan", {}, line.slice(head.length)));
          made.push(text);
        }
        const levels = about || !twice.includes(row) ? bracketsOf(band, y) : [];
        made.push(...levels.flat());
        y += BRACKET * levels.length;
      }
      tops.push([y, row, ends]);
      made.push(written(name, LEFT - 8, y + lane / 2 + 2, { "text-anchor": "end" }),
        ...barsOf(row, "python", y), ...barsOf(row, "bar", y));
      y += lane;
    }
    if (stretch) {
      const [a, b] = stretch.map(placeOf);
      made.push(box(a, top + 16, Math.max(1, b - a), { height: y - top - 14, class: "mg-stretch" }));
    }
    made.splice(lines, 0, ...ruler(top, y));
    return y;
  };

  const paint = () => {
    const wide = holder.clientWidth, all = seen(), ends = all.map(({ band }) => band.end);
    const short = all.filter((row, i) => ends[i] && (ends[i] * SHORT < to - from || ends[i] < from));
    const common = all.filter((row) => !short.includes(row) || !row.band.workers); // a model is compared with the program
    let made;
    const draw = (tall) => {
      [lane, tops, made] = [tall, [], []];
      const end = part(common, [from, to], 0, made, short);
      return short.length ? part(short, [0, Math.max(...short.map(({ band }) => band.end))], end + 14, made, short, ", larger") : end;
    };
    let y = draw(LANE);
    askFor(stage, y + 24, 560);
    const share = Math.floor((holder.clientHeight - y - 32) / tops.length); // lanes share what is left of the window
    if (share > 0) y = draw(Math.min(TALL, LANE + share));
    holder.replaceChildren(drawn("svg", { viewBox: `0 0 ${wide} ${y + 8}`, width: wide, height: y + 8, class: "mg-picture",
      role: "img", "aria-label": data.about }, ...made));
    knob.paint(workers, workers);
    Object.assign(root.dataset, { from: rounded(from, 9), to: rounded(to, 9), workers, chosen: chosen ? at.work.name : "",
      stretch: stretch?.map((time) => rounded(time, 9)).join(" ") ?? "" });
  };

  // facts and sums ----------------------------------------------------------------------------------------------------
  const factsOf = ({ row: { band }, begin, long, work: { rows: known, best }, critical }) => {
    const share = best && best <= long && !band.model ? [["of the machine's limit", `${Math.round((best / long) * 100)} %`]] : [];
    return [...(long ? [[band.model ? "by the model" : "time", named(long)], ["begins after", named(begin)]] : []), ...known,
      ...(critical ? [["critical", "yes: no number of workers is faster than this chain"]] : []), ...share];
  };

  const tell = () => {
    const facts = chosen ? factsOf(at) : [], sums = fill();
    inform(chosen && at.work.label, nothing, tabled(facts), ...codeOf(chosen && at.work.code));
    const said = chosen ? [at.work.label, ...facts.map((row) => row.join(": "))]
      : at ? [`${at.row.band.title}, ${at.row.name} ${at.work.label}: ${named(at.long)}`] : [];
    read([...said, ...(stretch ? [sums] : [])].join("; "));
  };

  // moving ------------------------------------------------------------------------------------------------------------
  const view = (a, b) => {
    const wide = Math.min(whole, Math.max(whole / 1e5, b - a));
    from = Math.min(Math.max(0, a), whole - wide);
    to = from + wide;
    paint();
    read(`from ${named(from)} to ${named(to)}`);
  };
  const middle = () => (at ? (at.begin + at.end) / 2 : from);
  const zoom = (by, around = middle()) => view(around - (around - from) * by, around + (to - around) * by);
  const pan = (share) => view(from + share * (to - from), to + share * (to - from));
  const reach = (bar) => {
    at = bar;
    if (at.begin < from || at.end > to) view(middle() - (to - from) / 2, middle() + (to - from) / 2);
    else paint();
    tell();
  };
  const step = (dx, dy, extend) => {
    const filled = seen().filter((row) => row.bar.length), next = (list, i, by) => list[Math.min(list.length - 1, Math.max(0, i + by))];
    if (!filled.length) return;
    const old = at ?? { begin: from, end: from }, { bar: bars, band } = at ? next(filled, filled.indexOf(at.row), dy) : filled[0];
    const off = ({ begin, end }) => Math.abs(begin + end - old.begin - old.end);
    const here = bars.indexOf(at), bar = here < 0 ? bars.reduce((best, each) => (off(each) < off(best) ? each : best)) : next(bars, here, dx);
    if (extend) keep(Math.min(stretch?.[0] ?? old.begin, bar.begin), Math.max(stretch?.[1] ?? old.end, bar.end), band);
    reach(bar);
  };
  const choose = (bar) => { chosen = true; reach(bar); };
  const nothing = () => { [chosen, at, stretch, lit] = [false, null, null, () => false]; tell(); paint(); root.focus(); };
  const keep = (a, b, band) => { // its sums are those of the band in which it was selected
    stretch = [Math.min(a, b), Math.max(a, b)];
    const own = choices.findIndex(([each]) => each === band);
    if (own >= 0 && choices[which.value][0] !== band) which.value = own;
    tell();
    paint();
  };

  let held = null; // where a drag began
  holder.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, from, to, spot: spotAt(event), time: timeAt(event), selects: !event.shiftKey, moved: false };
  });
  holder.addEventListener("pointermove", (event) => {
    if (!held || (!held.moved && Math.abs(event.clientX - held.x) < 4)) return;
    if (!held.moved) holder.setPointerCapture(event.pointerId);
    held.moved = true;
    const by = ((held.x - event.clientX) / room()) * (held.to - held.from);
    if (held.selects) stretch = [held.time, timeAt(event, held.spot)].sort((a, b) => a - b);
    view(...(held.selects ? [from, to] : [held.from + by, held.to + by]));
  });
  holder.addEventListener("pointerup", ({ target }) => {
    const was = held;
    held = null;
    if (was?.moved && was.selects) keep(...stretch, was.spot[1].band);
    else if (was && !was.moved) (target.bar ? choose : nothing)(target.bar);
  });
  holder.addEventListener("pointercancel", () => { held = null; });
  holder.addEventListener("wheel", (event) => { // the view does not catch the wheel of a page that is scrolled past it
    if (!event.ctrlKey && !event.metaKey && !root.contains(root.getRootNode().activeElement)) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / room());
    else zoom(event.deltaY < 0 ? 0.8 : 1.25, timeAt(event));
  }, { passive: false });

  // the table ---------------------------------------------------------------------------------------------------------
  const barsIn = (band) => rows.filter((row) => row.band === band).flatMap((row) => [...row.bar, ...row.python]);
  const measured = data.bands.filter((band) => !band.model), choices = [];
  for (const band of measured.length ? [...measured.slice(1), measured[0]] : data.bands.slice(0, 1)) {
    const layers = new Set(barsIn(band).flatMap(({ work: { kind, section } }) => (/quiet|check/.test(kind) ? [] : section)));
    choices.push([band, "row", "by step"], ...(layers.size > 1 ? [[band, "section", "by layer"]] : []));
  }
  const which = make("select", { "aria-label": "which table", onchange: () => fill() },
    ...choices.map(([band, , title], value) => make("option", { value }, `${band.title}, ${title}`)));
  const table = make("table", { class: "mg-compare" });
  stage.after(make("div", { class: "mg-below" }, which, make("div", { class: "mg-steps" }, table)));

  let many = false; // rows; decided once for all bands, whose rows can be compared
  const alike = (name) => (many ? name.replace(/\[\d+\]/g, "[…]").replace(/(^|· )\d+ /, "$1") : name); // modules that differ by a number
  const plain = (name) => alike(name).replace(/[₀-₉]/g, ""); // the same for the rounds of a loop
  // What runs in the stretch, or in the whole call, by step or by layer: of a bar at an end, the part that lies inside.
  const fill = () => {
    const [band, by] = choices[which.value], [low, high] = stretch ?? [0, whole], groups = new Map();
    const columns = barsIn(band).some(({ work: { best } }) => best) ? 7 : 6; // the last one only where limits are known
    many = measured.some((each) => new Set(barsIn(each).map(({ work }) => work[by])).size > MANY);
    const group = (name, colour, key = plain(name)) => groups.get(key) ?? groups.set(key, { key, colour, name, sums: [0, 0, 0, 0, 0] }).get(key);
    const all = group(stretch ? "selected" : "everything");
    for (const { begin, end, long, work } of barsIn(band)) {
      const { [by]: name, cost: [launches, bytes, flops], best, kind } = work, inside = Math.min(end, high) - Math.max(begin, low);
      if (inside < 0 || (long && !inside)) continue;
      const own = group(name, data.kinds[kind][0]), part = long ? inside / long : 1; // what launches nothing
      if (own.name !== name) own.name = own.key; // what all have in common
      for (const { sums } of [all, own]) { // stated only where it is known for all launches
        [inside, launches, part * bytes, part * flops, launches ? part * best || NaN : 0].forEach((much, i) => { sums[i] += much; });
      }
    }
    const share = (much, all) => `${Math.round((much / (all || 1)) * 100)}%`;
    const found = [...groups.values()].sort((a, b) => b.sums[0] - a.sums[0]);
    const lines = found.map(({ name, sums: [time, launches, bytes, flops, best] }) => [
      name, time || !bytes ? named(time) : "–", share(time, all.sums[0]), launches, bytesText(bytes),
      Math.round(flops).toLocaleString("en"),
      best > time ? "faster" : best ? share(best, time) : ""]);
    const held = table.querySelector(":focus")?.dataset.key; // else the keys would be dead
    table.replaceChildren(rowOf("th", HEAD.slice(0, columns), { title: "limits are stated where each step has one that is longer than a launch" }),
      ...lines.map((line, i) => rowOf("td", line.slice(0, columns),
        { tabindex: "0", "data-key": found[i].key, style: `--share: ${line[2]}; --colour: var(--${found[i].colour})` })));
    if (held) ([...table.rows].find(({ dataset }) => dataset.key === held) ?? root).focus({ preventScroll: true });
    return `${band?.title}: ${lines.map((line) => line.slice(0, 2).join(" ")).slice(0, 3).join(", ")}`;
  };
  onPress(table, ({ target }) => {
    const row = target.closest("tr"), [, by] = choices[which.value];
    [lit, at, chosen] = [(work) => plain(work[by]) === row.dataset.key, null, false];
    tell();
    paint();
    read(row.innerText);
  });

  listen((event) => {
    const letters = { w: () => zoom(0.7), s: () => zoom(1 / 0.7), a: () => pan(-0.25), d: () => pan(0.25), f: () => view(0, whole) };
    const arrow = (dx, dy) => () => step(dx, dy, event.shiftKey && dx);
    return { [event.key]: letters[event.key.toLowerCase()], "/": () => finder.field.focus(), Escape: nothing,
      ArrowLeft: arrow(-1, 0), ArrowRight: arrow(1, 0), ArrowUp: arrow(0, -1), ArrowDown: arrow(0, 1),
      Enter: () => at && choose(at) };
  });

  tell();
  new ResizeObserver(() => requestAnimationFrame(paint)).observe(holder);
  paint();
};
