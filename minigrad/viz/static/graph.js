// A picture of a graph: open and close scopes, follow arrows, read the facts about a box.

const HELP = [
  ["Tab Enter", "from box to box, and the facts about it"], ["↑ ↓ ← →", "along the arrows, against them and between siblings"],
  ...OPENS,
  ["/", "find a box by its name, Enter for the next"], ["Esc", "close the panel"],
];

const show = (parent, data) => {
  const { root, help, turnHelp, helps, stage, side, aloud } = shellOf(parent, data.about, HELP);
  let canvas = null, boxes = new Map(), chosen = null;

  const { field, count } = finderOf((text) => look(text), (found) => lead(found));
  const scopes = scopesOf(data.scopes, root, () => draw());
  const { more, opener } = moreOf(field, count, ...savesOf("graph", () => canvas), helps);
  const about = make("span", { class: "mg-count" });
  root.append(make("div", { class: "mg-bar" }, about, space(),
    ...scopes.all, opener), more, scopes.path, stage, help, aloud);

  const draw = () => {
    const seen = data.scopes[scopes.here];
    about.textContent = seen.about;
    canvas = canvasOf(seen.svg);
    stage.replaceChildren(canvas.place, side);
    boxes = new Map([...canvas.svg.querySelectorAll(".mg-box")].map((box) => [+box.dataset.box, box]));
    for (const [key, box] of boxes) {
      asButton(box, wordsIn(box));
      onPress(box, () => choose(key));
      onPoint(box, () => light(key), () => light(chosen));
    }
    hingesOf(canvas.svg, seen.doors, scopes.turn);
    scopes.paint();
    askFor(stage, canvas.svg.viewBox.baseVal.height + 30, 620);
    choose(null);
    aloud.textContent = `${seen.title || seen.about}: ${[...boxes.values()].slice(0, 12).map((box) => box.querySelector("text").textContent).join(", ")}`;
    requestAnimationFrame(() => { canvas.begin(1, SHRUNK); canvas.centre(canvas.svg.querySelector(".mg-hit") ?? boxes.get(0)); });
  };

  const edges = () => data.scopes[scopes.here].edges;
  const infoOf = (key) => data.info[data.scopes[scopes.here].info[key]];

  // The arrows of a box, and the boxes at their other ends.
  const light = (key) => {
    for (const element of canvas.svg.querySelectorAll(".mg-lit, .mg-near")) element.classList.remove("mg-lit", "mg-near");
    if (key === null) return;
    edges().forEach(([source, target], i) => {
      if (source !== key && target !== key) return;
      raise(canvas.svg.querySelector(`[data-edge="${i}"]`)).classList.add("mg-lit");
      boxes.get(source === key ? target : source).classList.add("mg-near");
    });
  };

  const choose = (key) => {
    for (const box of boxes.values()) box.classList.remove("mg-now");
    chosen = key;
    side.hidden = key === null;
    stage.classList.toggle("mg-alone", key === null);
    root.dataset.chosen = key === null ? "" : key;
    light(key);
    if (key === null) return;
    boxes.get(key).classList.add("mg-now");
    const info = infoOf(key);
    const reach = (other) => { choose(other); boxes.get(other).focus(); };
    const linked = ([here, there]) => linksOf([...new Set(edges().filter((e) => e[here] === key).map((e) => e[there]))], (other) => infoOf(other).title, reach);
    side.replaceChildren(
      closer(() => choose(null)),
      make("p", { class: "mg-say" }, make("strong", {}, info.title)),
      make("p", { class: "mg-lines" }, info.about),
      ...(info.scope ? titled("in", paragraph(info.scope)) : []),
      ...(info.formula ? titled("what it computes", mathOf(info.formula)) : []),
      ...titled(info.rules.length > 1 ? "the rules of its gradients" : "the rule of its gradient", ...info.rules.map(mathOf)),
      ...titled("computed from", ...linked([1, 0])),
      ...titled("used by", ...linked([0, 1])),
      ...(info.line ? codeOf(info.line) : []));
    aloud.textContent = `${info.title}, ${info.about}`;
    canvas.reveal(boxes.get(key));
  };

  // Each box once, in the picture that is seen or in the first one where it is open; then the closed boxes that hold such operations.
  const look = (text) => {
    const known = new Set(), found = [];
    for (const names of [(info) => info.title, (info) => info.about]) {
      for (const to of scopes.order()) {
        data.scopes[to].info.forEach((id, key) => {
          if (known.has(id) || !names(data.info[id]).toLowerCase().includes(text)) return;
          known.add(id);
          found.push([to, key]);
        });
      }
      if (found.length) break;
    }
    return found;
  };

  const lead = (found) => {
    if (found) scopes.lead(found[0]);
    for (const [key, box] of boxes) box.classList.toggle("mg-hit", found !== null && key === found[1]);
    if (found) canvas.reveal(boxes.get(found[1]));
  };

  const move = (dx, dy) => focusNearest([...boxes.values()], root.querySelector(".mg-box:focus"), dx, dy, canvas);

  onKeys(root, (event) => {
    if (event.target.matches("input") && event.key !== "Escape") return null;
    return {
      ArrowUp: () => move(0, -1), ArrowDown: () => move(0, 1), ArrowLeft: () => move(-1, 0), ArrowRight: () => move(1, 0),
      ...scopes.keys, f: () => canvas.fit(), "/": () => { more.hidden = false; field.focus(); }, Escape: () => { choose(null); root.focus(); },
      "?": turnHelp,
    };
  });

  draw();
  return { go: () => {} };
};
