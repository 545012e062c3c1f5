// As written → fused.  Every place was computed in Python; this script opens rows, moves operations into their kernels, and
// shows the cables of one kernel.

const FLIGHT = 2200, ONE = 700; // milliseconds: of all kernels, and of one
const LEAST = 150; // pixels: of room for the loops below a picture
const SMALLEST = 9; // pixels of text: where it would be smaller, one phase is shown at a time

// The page of `data`; `say(text, ...more)` describes the band under the pointer, and `read(text)` is read aloud.  Below a low picture
// are the loops of the kernels, which `sources` makes: of all, or of the chosen one.
const writtenOf = (data, about, say, read, sources) => {
  let unit = 0, fused = true, phase = 0, chosen = null, svg = null, flight = null;
  const opened = new Map();
  const holder = make("div", { class: "mgw-holder" });
  const loops = make("div", { class: "mg-code mg-listing", tabindex: "0", role: "group", "aria-label": "the loops of the kernels" });
  const element = make("div", { class: "mgw-page" }, holder, loops);
  const fuse = make("button", { class: "mg-main", title: "Space", onclick: () => turn() });
  const units = data.pictures.map(([name], i) => make("button", { title: "u", "aria-pressed": "false", onclick: () => { unit = i; draw(); } }, name));
  const all = make("button", { title: "o", onclick: () => openAll() });
  const phases = make("span", { class: "mgw-phases", role: "group", "aria-label": "phase" }, ...data.phases.map((name, i) => make("button", { onclick: () => { phase = i; stack(); } }, name)));
  const tools = [fuse, phases, make("span", { role: "group", "aria-label": "width" }, ...units), all];

  const rows = () => [...svg.querySelectorAll(".mgw-row")];
  const isOpen = (row) => !row.classList.contains("mgw-shut");
  const bandAt = (k) => svg.querySelector(`.mgw-band[data-k="${k}"]`);
  const shut = (band) => band.closest('[display="none"]');
  const seenAt = (k) => { const band = bandAt(k); return band && shut(band) ? shut(band).parentNode.querySelector(".mgw-sum .mgw-band") : band; }; // in a closed row, the sum

  const draw = () => {
    holder.innerHTML = data.pictures[unit][1]; // ours: every name in it is escaped where it is drawn
    svg = holder.querySelector("svg");
    svg.removeAttribute("style");
    units.forEach((button, i) => button.setAttribute("aria-pressed", String(i === unit)));
    for (const row of rows()) {
      if (opened.has(row.dataset.row)) open(row, opened.get(row.dataset.row));
      const name = row.querySelector(".mgw-rowname");
      if (name) onPress(name, () => { open(row, !isOpen(row)); stack(); point(chosen); });
    }
    for (const whole of svg.querySelectorAll(".mgw-sum")) whole.addEventListener("click", () => { open(whole.closest(".mgw-row"), true); stack(); });
    for (const band of svg.querySelectorAll("[data-k]")) {
      const k = +band.dataset.k;
      asButton(band, data.bands[k].title);
      band.setAttribute("tabindex", "-1"); // ↑ and ↓ lead from one to the next
      onPoint(band, () => point(k), () => point(chosen));
      band.addEventListener("click", () => choose(chosen === k ? null : k));
    }
    stack();
    place();
    point(chosen);
  };
  const another = () => { unit = (unit + 1) % units.length; draw(); };

  // rows --------------------------------------------------------------------------------------------------------------
  const open = (row, now) => {
    opened.set(row.dataset.row, now);
    row.classList.toggle("mgw-shut", !now);
    const name = row.querySelector(".mgw-rowname");
    if (name) {
      name.setAttribute("aria-expanded", String(now));
      name.querySelector("text").firstChild.replaceData(0, 1, now ? "⊟" : "⊞");
    }
    for (const part of row.querySelectorAll(".mgw-lines, .mgw-sum")) part.setAttribute("display", now === part.matches(".mgw-lines") ? "inline" : "none");
  };
  const openAll = () => {
    const some = rows().some((row) => !isOpen(row));
    for (const row of rows()) open(row, some);
    stack();
  };

  // The rows below each other; where all phases would be too small, one phase.
  const stack = () => {
    const room = holder.clientWidth - 4, whole = data.label + data.column * data.phases.length;
    const one = data.phases.length > 1 && room > 0 && (data.size * room) / (whole + 20) < SMALLEST;
    const wide = one ? data.label + data.column : whole;
    let y = data.top;
    for (const row of rows()) {
      row.setAttribute("transform", `translate(0 ${y})`);
      const heights = row.dataset.high.split(" ").map((pair) => +pair.split(",")[isOpen(row) ? 0 : 1]);
      y += one ? heights[phase] : Math.max(...heights);
    }
    for (const part of svg.querySelectorAll(".mgw-phase")) {
      const here = +part.dataset.phase;
      part.setAttribute("display", one && here !== phase ? "none" : "inline");
      part.setAttribute("transform", one ? `translate(${-data.column * here} 0)` : "");
    }
    phases.hidden = !one;
    [...phases.children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === phase)));
    const scale = Math.min(1.3, Math.max(onSlide() ? 0 : SMALLEST / data.size, room / (wide + 20)));
    svg.setAttribute("viewBox", `-10 -10 ${wide + 20} ${y + 20}`);
    svg.setAttribute("width", (wide + 20) * scale);
    svg.setAttribute("height", (y + 20) * scale);
    loops.hidden = true; // while the room is measured
    loops.hidden = element.clientHeight - (y + 20) * scale < LEAST;
    if (!loops.hidden && !loops.children.length) loops.append(...sources());
    all.textContent = rows().some((row) => !isOpen(row)) ? "open all rows" : "close all rows";
    all.hidden = !svg.querySelector(".mgw-rowname");
  };

  // fusing ------------------------------------------------------------------------------------------------------------
  const place = () => {
    holder.classList.toggle("mgw-unfused", !fused);
    fuse.textContent = fused ? "◂ as written" : "fuse ▸";
  };
  const turn = () => {
    fused = !fused;
    flight?.remove();
    holder.classList.remove("mgw-flying");
    place();
    if (!still()) fly();
    read(fused ? `fused: ${about}` : "as written");
  };

  // Operations fly into their kernels, in the order in which these run: on a canvas, because an SVG of a thousand pieces is
  // drawn too slowly.  What was removed fades.  All else stays where it is.
  const fly = () => {
    const frame = holder.getBoundingClientRect(), high = holder.scrollHeight, ratio = devicePixelRatio || 1, back = !fused;
    const canvas = flight = make("canvas", { class: "mgw-flight", width: frame.width * ratio, height: high * ratio, style: `width:${frame.width}px;height:${high}px` });
    const pen = canvas.getContext("2d");
    const lines = [...svg.querySelectorAll(".mgw-was path")].filter((line) => !shut(line));
    const flights = lines.map((line, i) => {
      const band = line.closest(".mgw-band"), m = line.getScreenCTM(), [left, right, wide] = band.dataset.x.split(" ").map(Number), pieces = [];
      const [, x, y, rest] = line.getAttribute("d").match(/M(\S+) ([\d.]+)(.*)/);
      let end = 0;
      for (const [, what, by] of rest.matchAll(/([hm])([\d.]+)/g)) { if (what === "h") pieces.push([end, +by]); end += +by; }
      return { pieces, left: +x, way: right - left, gone: band.matches(".mgw-removed"), shrink: Math.min(1, wide / end), tall: line.getAttribute("stroke-width"), y,
        at: [m.a, 0, 0, m.d, m.e - frame.left + holder.scrollLeft, m.f - frame.top + holder.scrollTop].map((n) => n * ratio), hue: getComputedStyle(line).stroke, begin: ((FLIGHT - ONE) * i) / lines.length };
    });
    holder.append(canvas);
    holder.classList.add("mgw-flying");
    const began = performance.now();
    const paint = (now) => {
      const time = now - began;
      if (flight !== canvas) return;
      if (time >= FLIGHT) { canvas.remove(); holder.classList.remove("mgw-flying"); return; }
      pen.resetTransform();
      pen.clearRect(0, 0, canvas.width, canvas.height);
      for (const f of flights) {
        const share = Math.max(0, Math.min(1, ((back ? FLIGHT - time : time) - f.begin) / ONE)), t = share * share * (3 - 2 * share);
        const [shrink, left] = f.gone ? [1, f.left] : [1 + (f.shrink - 1) * t, f.left + f.way * t];
        pen.setTransform(...f.at);
        pen.fillStyle = f.hue;
        pen.globalAlpha = f.gone ? 0.8 * (1 - t) : 0.8;
        for (const [x, wide] of f.pieces) pen.fillRect(left + x * shrink, f.y - f.tall / 2, Math.max(0.4, wide * shrink), f.tall);
      }
      requestAnimationFrame(paint);
    };
    requestAnimationFrame(paint);
  };

  // one kernel --------------------------------------------------------------------------------------------------------
  const choose = (k) => {
    const band = k === null ? null : bandAt(k);
    if (band && shut(band)) { open(band.closest(".mgw-row"), true); stack(); }
    chosen = k;
    point(k);
    for (const each of loops.children) each.hidden = band !== null && each.dataset.kernel !== data.bands[k].step;
    if (band) { band.focus({ preventScroll: true }); band.scrollIntoView({ block: "nearest" }); read(`${data.bands[k].title}, ${data.bands[k].where}`); }
  };
  const step = (by) => {
    const seen = [...svg.querySelectorAll(".mgw-band[data-k]")].filter((band) => !shut(band)).map((band) => +band.dataset.k).sort((a, b) => a - b);
    choose(seen[(seen.indexOf(chosen) + by + seen.length + (chosen === null && by < 0)) % seen.length] ?? null);
  };

  const reads = (k) => data.bands[k].reads.map(([i]) => i);

  // The band under the pointer, its cables, and what is known of it.
  const point = (k) => {
    for (const cable of svg.querySelectorAll(".mgw-cable")) cable.remove();
    for (const band of svg.querySelectorAll(".mgw-lit, .mgw-near")) band.classList.remove("mgw-lit", "mgw-near");
    describe(k);
    const here = k === null ? null : seenAt(k);
    if (!here || shut(here)) return;
    here.classList.add("mgw-lit");
    const base = svg.getScreenCTM().inverse();
    const end = (band, last) => { // a cable begins behind the name of a kernel, and ends in front of the kernel
      const box = band.querySelector("rect:last-of-type").getBoundingClientRect(), name = band.querySelector(".mgw-name")?.getBoundingClientRect();
      return new DOMPoint(last ? Math.max(box.right, name?.right ?? 0) + 3 : box.left, (box.top + box.bottom) / 2).matrixTransform(base);
    };
    const cable = (a, b, hue) => {
      const [p, q] = [end(a, true), end(b, false)];
      svg.append(drawn("path", { class: `mgw-cable mgw-${hue}`, d: `M${p.x} ${p.y}C${p.x + 30} ${p.y} ${q.x - 30} ${q.y} ${q.x} ${q.y}` }));
    };
    data.bands.forEach((_, i) => {
      const other = seenAt(i);
      if (i === k || !other || other === here || shut(other)) return;
      if (reads(k).includes(i)) { other.classList.add("mgw-near"); cable(other, here, "reads"); }
      if (reads(i).includes(k)) { other.classList.add("mgw-near"); cable(here, other, "feeds"); }
    });
  };

  const links = (numbers) => linksOf(numbers, (i) => data.bands[i].title, choose);
  const describe = (k) => {
    if (k === null) {
      say(`${about}.`, ...(data.measured ? [make("p", {}, data.measured)] : []), make("p", { class: "mg-quiet" },
        "Left in each column: the operations as written. Right: the kernels that compute them, on the same scale; darker ones are library calls. A closed row shows its sums, on a scale for all closed rows. Point at one, or press ↓."));
      return;
    }
    const b = data.bands[k], made = reads(k), fed = data.bands.map((_, i) => i).filter((i) => reads(i).includes(k));
    const reasons = [...b.reads.map(([i, whys]) => [i, whys]), ...fed.map((i) => [i, data.bands[i].reads.find(([from]) => from === k)[1]])];
    const words = new Set(reasons.flatMap(([i, whys]) => whys.map((why) => `${data.bands[i].title}: ${why}`)));
    say(b.title, make("p", { class: "mg-quiet" }, b.where), rowsOf(b.rows), ...titled("operations", ...(b.operations ? [make("p", {}, b.operations)] : [])),
      ...titled("reads from", ...links(made)), ...titled("is read by", ...links(fed)),
      ...titled("not in one kernel with", ...[...words].map((text) => make("p", {}, text))));
  };

  draw();
  new ResizeObserver(stack).observe(holder);
  return {
    element, tools, paint: () => point(chosen), leave: () => choose(null), get svg() { return svg; },
    keys: { " ": turn, o: openAll, u: another, ArrowDown: () => step(1), ArrowUp: () => step(-1) },
  };
};
