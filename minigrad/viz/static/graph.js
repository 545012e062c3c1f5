// A picture of a graph: open and close scopes, follow arrows, read the facts about a box.

const helpOf = (scopes) => [
  ["Tab Enter", "from box to box, and the facts about it"], ["↑ ↓ ← →", "along the arrows, against them and between siblings"],
  ...opensOf(scopes),
  ["/", "find a box by its name, Enter for the next"], ["Esc", "close the panel"],
];

const show = (parent, data) => {
  const { root, stage, side, read, inform, moreOf, listen } = shellOf(parent, data.about, helpOf(data.scopes));
  let canvas = null, boxes = null, arrows = null, chosen = null;

  const { field, count } = finderOf("find a box by its name", (text) => look(text), (found) => lead(found));
  const scopes = scopesOf(data.scopes, root, () => draw());
  const { more, opener } = moreOf(field, count), about = make("span", { class: "mg-count" });
  root.prepend(make("div", { class: "mg-bar" }, about, space(), ...scopes.all, opener), more, scopes.path);

  const draw = () => {
    const seen = data.scopes[scopes.here];
    about.textContent = seen.about;
    canvas = canvasOf(seen.svg);
    stage.replaceChildren(canvas.place, side);
    [boxes, arrows] = ["box", "edge"].map(canvas.found);
    for (const [key, box] of boxes) {
      asButton(box, wordsIn(box), () => choose(key));
      onPoint(box, () => light(key), () => light(chosen));
    }
    hingesOf(canvas.svg, seen.doors, scopes.turn);
    scopes.paint();
    askFor(stage, canvas.svg.viewBox.baseVal.height + 30, 620);
    choose(null);
    read(`${seen.title || seen.about}: ${[...boxes.values()].slice(0, 12).map((box) => box.querySelector("text").textContent).join(", ")}`);
    requestAnimationFrame(() => { canvas.begin(1, SHRUNK); canvas.reveal(canvas.svg.querySelector(".mg-hit") ?? boxes.get(0)); });
  };

  const edges = () => data.scopes[scopes.here].edges;
  const infoOf = (key) => data.info[data.scopes[scopes.here].info[key]];

  // The arrows of a box, and the boxes at their other ends.
  const light = (key) => {
    const own = [...edges().entries()].filter(([, [source, target]]) => source === key || target === key);
    highlight(canvas.svg, "mg-lit", own.map(([i]) => raise(arrows.get(i))));
    highlight(canvas.svg, "mg-near", own.map(([, [source, target]]) => boxes.get(source === key ? target : source)));
  };

  const choose = (key) => {
    highlight(canvas.svg, "mg-now", [boxes.get(key)]);
    chosen = key;
    root.dataset.chosen = key ?? "";
    light(key);
    if (key === null) return inform("");
    const info = infoOf(key);
    const reach = (other) => { choose(other); boxes.get(other).focus(); };
    const linked = ([here, there]) => linksOf([...new Set(edges().filter((e) => e[here] === key).map((e) => e[there]))], (other) => infoOf(other).title, reach);
    inform(info.title, () => choose(null),
      make("p", { class: "mg-lines" }, info.about),
      ...titled("in", info.scope && paragraph(info.scope)),
      ...titled("what it computes", info.formula && mathOf(info.formula)),
      ...titled(info.rules.length > 1 ? "the rules of its gradients" : "the rule of its gradient", ...info.rules.map(mathOf)),
      ...titled("computed from", ...linked([1, 0])),
      ...titled("used by", ...linked([0, 1])),
      ...codeOf(info.line));
    read(`${info.title}, ${info.about}`);
    return canvas.reveal(boxes.get(key));
  };

  // Each box once, in the picture that is seen or in the first one that has it; else the closed boxes that hold such operations.
  const look = (text) => {
    const places = new Map();
    for (const to of scopes.order()) {
      data.scopes[to].info.forEach((id, key) => { if (!places.has(id)) places.set(id, [to, key]); });
    }
    const named = (by) => [...places.keys()].filter((id) => data.info[id][by].toLowerCase().includes(text));
    const titles = named("title");
    return (titles.length ? titles : named("about")).map((id) => places.get(id));
  };

  const lead = (found) => {
    if (found) scopes.lead(found[0]);
    const box = boxes.get(found?.[1]);
    highlight(canvas.svg, "mg-hit", [box]);
    canvas.reveal(box);
  };

  const move = (dx, dy) => focusNearest([...boxes.values()], root.querySelector(".mg-box:focus"), dx, dy, canvas);

  listen(() => ({
    ArrowUp: () => move(0, -1), ArrowDown: () => move(0, 1), ArrowLeft: () => move(-1, 0), ArrowRight: () => move(1, 0),
    ...scopes.keys, f: () => canvas.fit(), "/": () => { more.hidden = false; field.focus(); }, Escape: () => { choose(null); root.focus(); },
  }));

  draw();
};
