// A flipbook: pages to turn over, and knobs to set.  Every drawing was made in Python; here it is looked up.

const HELP = [
  ["← →", "back, on"], ["Home End", "to the first, to the last"], ["Space", "play, or stop"], ["↑ ↓", "turn the first knob"],
  ["Tab Enter", "from part to part of the picture, and what a click on it does"], ["f", "fit the picture into its frame"], ["?", "this list"],
];

const show = (parent, data, told = { get: () => 0, set: () => {} }) => {
  const root = rootOf(parent, data.about);
  const settings = data.knobs.map((knob) => knob.start);
  let at = told.get() || data.start, timer = null, canvas = null, seen = "";

  const place = () => settings.reduce((sum, setting, i) => sum * data.knobs[i].settings.length + setting, 0);
  const pages = () => data.pages[place()];
  const paged = data.pages.some((each) => each.length > 1);

  // the bar -----------------------------------------------------------------------------------------------------------
  const back = make("button", { onclick: () => go(at - 1), title: "←" }, "‹ back");
  const next = make("button", { class: "mg-main", onclick: () => go(at + 1), title: "→" }, "next ›");
  const slider = make("input", { type: "range", min: 0, "aria-label": data.unit, oninput: () => go(+slider.value) });
  const count = make("span", { class: "mg-count", "aria-hidden": "true" });
  const play = make("button", { onclick: () => playing(), title: "Space", "aria-label": "play" }, "▶");
  const fits = make("button", { title: "f", onclick: () => canvas.fit() }, "fit");
  const saves = ["SVG", "PNG"].map((form) => make("button", {
    onclick: () => (form === "SVG" ? saveSvg : savePng)(canvas.svg, "view"), title: "the picture as it is now",
  }, `save ${form}`));
  const helps = make("button", { title: "?", "aria-label": "keys", onclick: () => { help.hidden = !help.hidden; } }, "?");
  const { more, opener } = moreOf(...(paged ? [play] : []), fits, ...saves, helps);
  const help = helpOf(HELP.filter(([keys]) => (paged || keys !== "Space") && (data.knobs.length || keys !== "↑ ↓")));
  const side = make("div", { class: "mg-side" });
  const stage = make("div", { class: `mg-stage mg-flip${data.wide ? " mg-even" : ""}` });
  const aloud = make("div", { class: "mg-sr", "aria-live": "polite" });

  const knobs = data.knobs.map((knob, i) => {
    const input = knob.choice
      ? make("select", { "aria-label": knob.name, onchange: () => set(i, +input.value) },
        ...knob.settings.map((text, value) => make("option", { value }, text)))
      : make("input", { type: "range", min: 0, max: knob.settings.length - 1, "aria-label": knob.name, oninput: () => set(i, +input.value) });
    const shown = make("output", { class: "mg-knob-value" });
    const label = make("label", { class: "mg-knob" }, make("span", {}, knob.name), input, ...(knob.choice ? [] : [shown]));
    return { input, shown, label };
  });
  const turning = paged ? [back, next, slider, count] : [];
  const bar = make("div", { class: "mg-bar" }, ...turning, ...(paged ? [] : knobs.map((knob) => knob.label)), make("span", { class: "mg-space" }), opener);
  const board = paged && knobs.length ? [make("div", { class: "mg-bar mg-knobs" }, ...knobs.map((knob) => knob.label))] : [];
  root.append(bar, ...board, more, stage, help, aloud);

  // what is seen ------------------------------------------------------------------------------------------------------
  const blockOf = ([heading, kind, content]) => [
    ...(heading && kind !== "code" ? [make("h3", {}, heading)] : []),
    ...(kind === "table" ? [tabled(content)] : kind === "code" ? codeOf(content, heading) : kind === "math" ? [mathOf(content)]
      : kind === "numbers" ? [tableOf(content)] : [make("p", { style: "margin:0" }, content)]),
  ];

  const tabled = ({ head, rows, here }) => make("table", { class: "mg-compare" },
    ...(head ? [make("tr", {}, ...head.map((text) => make("th", {}, text)))] : []),
    ...rows.map((row, i) => make("tr", i === here ? { class: "mg-here" } : {}, ...row.map((text) => make("td", {}, text)))));

  const paint = () => {
    const [pieces, say, blocks, frame] = pages()[at];
    const focused = document.activeElement?.closest?.("[data-go]")?.dataset.go;
    const inside = pieces.map((piece) => data.pieces[piece]).join("");
    if (frame !== seen) {
      const [, , width, height] = frame.split(" ");
      canvas = canvasOf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="${frame}" width="${width}" height="${height}" class="mg-picture" role="img">${inside}</svg>`);
      stage.replaceChildren(canvas.holder, side);
      stage.style.height = `${Math.max(parseFloat(stage.style.height) || 300, Math.min(600, +height + 16))}px`;
      requestAnimationFrame(() => canvas.fit(0.6));
      seen = frame;
    } else canvas.svg.innerHTML = inside; // ours: every name in it is escaped where it is drawn
    canvas.svg.setAttribute("aria-label", say);
    if (focused && root.contains(stage)) [...canvas.svg.querySelectorAll("[data-go]")].find((part) => part.dataset.go === focused)?.focus();
    side.replaceChildren(make("p", { class: "mg-say" }, say), ...blocks.flatMap((block) => blockOf(data.blocks[block])));
    const last = pages().length - 1;
    count.textContent = `${at + 1} / ${last + 1}`;
    slider.max = last;
    slider.value = at;
    slider.setAttribute("aria-valuetext", `${data.unit} ${at + 1} of ${last + 1}`);
    [back.disabled, next.disabled] = [at <= 0, at >= last];
    knobs.forEach((knob, i) => {
      knob.input.value = settings[i];
      knob.shown.textContent = data.knobs[i].settings[settings[i]];
      knob.input.setAttribute("aria-valuetext", knob.shown.textContent);
    });
    root.dataset.step = at;
    root.dataset.settings = settings.join(",");
    aloud.textContent = say;
  };

  // moving ------------------------------------------------------------------------------------------------------------
  const go = (to, tell = true) => {
    at = Math.max(0, Math.min(pages().length - 1, to));
    paint();
    if (tell) told.set(at);
  };

  // Where the pages of two settings are as many, one stays where one is.
  const set = (knob, to) => {
    const before = pages().length;
    settings[knob] = Math.max(0, Math.min(data.knobs[knob].settings.length - 1, to));
    go(pages().length === before ? at : Math.round((at * (pages().length - 1)) / Math.max(1, before - 1)));
  };

  const follow = (target) => {
    const part = target.closest("[data-go]");
    if (!part) return false;
    const [where, to] = part.dataset.go.split(":");
    if (where === "page") go(+to);
    else set(+where, +to);
    return true;
  };

  const playing = () => {
    if (timer) { clearInterval(timer); timer = null; play.textContent = "▶"; return; }
    if (!paged) return;
    if (at >= pages().length - 1) go(0);
    play.textContent = "❚❚";
    timer = setInterval(() => (at >= pages().length - 1 || !root.isConnected ? playing() : go(at + 1)), still() ? 1600 : 900);
  };

  stage.addEventListener("click", (event) => follow(event.target));
  onKeys(root, (event) => {
    if (event.target.matches("select")) return null;
    if (event.target.matches("input[type=range]") && event.key.startsWith("Arrow")) { event.stopPropagation(); return null; }
    if (event.target.matches("button") && (event.key === " " || event.key === "Enter")) return null;
    const turn = (by) => (data.knobs.length ? set(0, settings[0] + by) : null);
    return {
      ArrowRight: () => (paged ? go(at + 1) : turn(1)), ArrowLeft: () => (paged ? go(at - 1) : turn(-1)),
      ArrowUp: () => turn(1), ArrowDown: () => turn(-1), Home: () => go(0), End: () => go(pages().length - 1), " ": playing,
      Enter: () => follow(event.target), f: () => canvas.fit(), "?": () => { help.hidden = !help.hidden; },
    };
  });

  at = Math.min(at, pages().length - 1);
  paint();
  return { go };
};
