// A flipbook: pages to turn, knobs to set, marks to choose.  Python made every drawing; this script looks them up.

const keysOf = (charts, paged, knob) => [
  ...(knob ? [[charts ? "← →" : paged ? "↑ ↓" : "← → ↑ ↓", `change “${knob}”`]] : []),
  ...(charts ? [[knob ? "↑ ↓" : "← → ↑ ↓", "between marks"], ["Enter", "its facts"], ["Esc", "choose nothing"]] : []),
  ...(!charts && paged ? [["← →", "previous, next page"], ["Home End", "first, last page"], ["Space", "play, stop"]] : []),
  FITS,
];

// A slider, or a list to choose from, of settings.
const settingsOf = ({ name, settings, choice, groups = [] }, set) => {
  const options = settings.map((text, value) => make("option", { value }, text));
  const grouped = [];
  options.forEach((option, i) => { if (groups[i] !== groups[i - 1]) grouped.push(make("optgroup", { label: groups[i] }));
    grouped.at(-1)?.append(option); });
  const input = choice ? make("select", {}, ...(grouped.length ? grouped : options))
    : make("input", { type: "range", min: 0, max: settings.length - 1 });
  const knob = knobOf(name, input, set);
  return { element: knob.element, paint: (to) => knob.paint(to, settings[to]) };
};

const show = (parent, data, shared = ALONE) => {
  const charts = Object.keys(data.marks).length;
  const paged = data.pages.some((each) => each.length > 1);
  const turns = data.knobs[0]?.drawn === false;
  const { root, stage, side, read, say, inform, moreOf, listen } = shellOf(parent, data.about, keysOf(charts, paged, turns && data.knobs[0].name));
  const settings = data.knobs.map((knob) => knob.start);
  let at = shared.get() || data.start, canvas = null, seen = "", marks = null, chosen = null;

  const pages = () => data.pages[settings.reduce((sum, to, i) => sum * data.knobs[i].settings.length + to, 0)];

  const pager = pagerOf((to) => go(to), data.unit);
  const { more, opener } = moreOf(paged && pager.player);
  const says = make("p", { class: "mg-says" });
  const legend = make("div", { class: "mg-legends" });

  const knobs = data.knobs.map((knob, i) => settingsOf(knob, (to) => set(i, to)));
  const names = pages().map(([, , , , name], i) => make("button", { "aria-pressed": "false", onclick: () => go(i) }, name));
  const turning = !paged ? [] : names[0].textContent ? names : pager.turning;
  const about = charts ? [make("span", { class: "mg-about" }, data.about), space()] : [];
  let smoothing = 0; // its setting
  const smoother = settingsOf(SMOOTHING, (to) => { smoothing = to; paint(); });
  const labels = [...(data.pieces.some((piece) => NOISY.test(piece)) ? [smoother] : []), ...knobs.filter((_, i) => !data.knobs[i].drawn)].map(({ element }) => element);
  root.prepend(make("div", { class: "mg-bar" }, ...about, ...turning, ...(paged ? [] : labels), !charts && space(), opener),
    ...(paged && knobs.length ? [make("div", { class: "mg-bar mg-knobs" }, ...labels)] : []), more, says, legend);
  stage.classList.add(...(charts ? ["mg-chart", "mg-alone"] : ["mg-flip"]), ...(data.wide ? ["mg-even"] : []));

  const blockOf = ([heading, kind, content]) => {
    if (kind === "code") return codeOf(content, heading);
    const { head, rows } = content, look = head ? "mg-compare" : "mg-compare mg-facts";
    const block = rows ? tabled(rows, look, head) : kind === "math" ? mathOf(content) : paragraph(content);
    return heading ? titled(heading, block) : [block];
  };

  const paint = () => {
    const [pieces, said, blocks, frame, , counted] = pages()[at];
    const active = root.getRootNode().activeElement;
    const focused = stage.contains(active) ? active.closest("[data-go], .mg-mark") : null; // it is about to be replaced
    const inside = pieces.map((piece) => data.pieces[piece]).join("");
    if (frame !== seen) {
      const [, , width, height] = frame.split(" ");
      canvas = canvasOf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="${frame}" width="${width}" height="${height}" class="mg-picture" role="img">${inside}</svg>`);
      stage.replaceChildren(canvas.place, side);
      const scale = Math.max(1, Math.min(1.25, (stage.clientWidth - 4) / +width)); // text is never smaller than drawn
      if (charts) stage.style.removeProperty("--wish"); // a chart is as high as it is
      askFor(stage, charts ? +height * scale + 24 : Math.max(300, +height + 16), charts ? 640 : 600);
      requestAnimationFrame(() => canvas.begin());
      seen = frame;
    } else canvas.svg.innerHTML = inside; // ours: every name in it is escaped where it is drawn
    canvas.svg.setAttribute("aria-label", said);
    canvas.svg.setAttribute("viewBox", frame);
    legend.replaceChildren(...squeeze(canvas.svg, (canvas.place.clientWidth - 16) / (charts || root.classList.contains("mg-narrow") ? 1 : READABLE)));
    smooth(canvas.svg, +SMOOTHING.settings[smoothing] || 0);
    smoother.paint(smoothing);
    marks = marksOf(canvas.svg, choose);
    says.textContent = charts && said !== data.about ? upright(said) : "";
    says.hidden = !says.textContent;
    if (charts) choose(marks.find(chosen) ? chosen : null);
    else say(said, ...blocks.flatMap(blockOf));
    if (focused) {
      const parts = [...canvas.svg.querySelectorAll("[data-go], .mg-mark")];
      const alike = (what) => parts.find((part) => what(part) === what(focused));
      (alike(({ dataset }) => `${dataset.go} ${dataset.mark}`) ?? alike((part) => part.ariaLabel ?? part) ?? root).focus({ preventScroll: true });
    }
    pager.paint(at, pages().length - 1, counted || undefined);
    names.forEach((button, i) => button.setAttribute("aria-pressed", String(i === at)));
    knobs.forEach((knob, i) => knob.paint(settings[i]));
    root.dataset.step = at;
    root.dataset.settings = settings.join(",");
    read(said);
  };

  // A mark that is chosen opens the side.
  const choose = (key) => {
    const [title, rows] = data.marks[key] ?? ["", []], before = stage.className;
    chosen = title ? key : null;
    stage.style.minHeight = title ? "250px" : "0"; // room for the facts
    inform(title, () => choose(null), tabled(rows));
    if (stage.className !== before) requestAnimationFrame(() => canvas.begin());
    marks.keep(chosen);
    if (title) read([title, ...rows.map((row) => row.join(": "))].join(", "));
  };

  const go = (to, share = true) => {
    at = Math.max(0, Math.min(pages().length - 1, to));
    paint();
    if (share) shared.set(at);
  };

  const set = (knob, to) => {
    settings[knob] = Math.max(0, Math.min(data.knobs[knob].settings.length - 1, to));
    go(at);
  };

  const follow = (target) => {
    const part = target.closest("[data-go]");
    if (!part) return;
    const [where, to] = part.dataset.go.split(":");
    if (where === "code") {
      const codes = side.querySelectorAll(".mg-code");
      highlight(side, "mg-lit", [codes[to]]);
      codes[to].scrollIntoView({ block: "nearest" });
    } else if (where === "page") go(+to);
    else set(+where, +to);
  };

  stage.addEventListener("click", (event) => follow(event.target));
  stage.addEventListener("pointermove", (event) => {
    const moment = event.buttons ? null : momentAt(event);
    const named = names[0].textContent; // the moments are pages, or the settings of the first knob
    if (moment !== null && moment !== (named ? settings[0] : at)) (named ? set(0, moment) : go(moment));
  });
  listen((event) => {
    const turn = (by) => (turns ? set(0, settings[0] + by) : null);
    if (charts) {
      const height = (mark) => { const place = mark.getBoundingClientRect(); return place.y + place.height / 2; };
      const all = [...marks.all].sort((a, b) => height(a) - height(b)); // each has its turn
      const here = all.indexOf(root.querySelector(".mg-mark:focus"));
      const move = (by) => () => { all[here + by]?.focus({ preventScroll: true }); canvas.reveal(all[here + by]); };
      const turnOr = (by) => (turns ? () => turn(by) : move(by));
      return {
        f: canvas.fit, ArrowUp: move(-1), ArrowDown: move(1), ArrowLeft: turnOr(-1), ArrowRight: turnOr(1),
        Escape: () => { choose(null); root.focus(); },
      };
    }
    return {
      f: canvas.fit, ArrowRight: () => (paged ? go(at + 1) : turn(1)), ArrowLeft: () => (paged ? go(at - 1) : turn(-1)),
      ArrowUp: () => turn(1), ArrowDown: () => turn(-1), Home: () => go(0), End: () => go(pages().length - 1), " ": () => paged && pager.play(),
      Enter: () => follow(event.target),
    };
  });

  go(at, false);
  if (!stage.clientWidth) new ResizeObserver((_, observer) => { // a chart that is out of sight has no width yet
    observer.disconnect();
    seen = "";
    paint();
  }).observe(stage);
  return { go };
};
