// Dragging operations from kernel to kernel in the picture of the kernels.  The board has the partition and the reasons;
// this script draws them: a moved box stays where it was dropped, and arrows become thick or thin.

const draggingOf = (data, board, made, tell) => {
  const text = make("span", { class: "mg-dragsay", "aria-live": "polite" });
  const undo = make("button", { onclick: () => { board().takeBack(); offsets.delete([...offsets.keys()].pop()); paint(); say("taken back", ""); } }, "take back");
  const note = make("div", { class: "mg-dragnote", hidden: true }, text, undo);
  let svg = null, boxes = null, seen = null, kernelOf = null;
  const offsets = new Map(); // a moved box -> how far it was moved

  const itemsOf = (key) => [...new Set(seen.boxes[key].filter((p) => data.places[p].kernel >= 0).map((p) => data.places[p].item))].filter((i) => i >= 0);
  const say = (words, look) => {
    note.hidden = false;
    text.textContent = words;
    text.className = `mg-dragsay ${look}`;
    undo.hidden = !made()?.moved();
  };

  // The kernel of a box now: the compiled one if it still computes the item there, else the one that it was moved to.
  const tagOf = (key, kernels = board().kernels()) => {
    const items = itemsOf(key);
    if (!items.length) return null;
    const own = data.places[seen.boxes[key].find((p) => data.places[p].kernel >= 0)].kernel;
    const holds = (kernel) => kernel.has(items[0]);
    return (kernels.find((kernel) => kernel.tag === own && holds(kernel)) ?? kernels.find(holds))?.tag ?? null;
  };

  const movable = (key) => {
    const homes = new Set(seen.boxes[key].map((p) => data.places[p].kernel).filter((k) => k >= 0));
    return homes.size === 1 && itemsOf(key).length > 0;
  };

  const centre = (key) => {
    const box = boxes.get(key).getBBox(); // without the transform
    const [dx, dy] = offsets.get(key) ?? [0, 0];
    return { x: box.x + dx, y: box.y + dy, w: box.width, h: box.height };
  };

  // Arrows between kernels are thick and orange; those of moved boxes are drawn anew.
  const paint = () => {
    const kernels = board().kernels(), moved = board().moved();
    for (const [key, box] of boxes) {
      const [dx, dy] = offsets.get(key) ?? [0, 0];
      box.setAttribute("transform", `translate(${dx} ${dy})`);
      const away = moved && movable(key) && tagOf(key) !== data.places[seen.boxes[key].find((p) => data.places[p].kernel >= 0)].kernel;
      box.classList.toggle("mg-away", away);
    }
    if (!moved && !offsets.size) return restore();
    seen.edges.forEach(([source, target], i) => {
      const arrow = svg.querySelector(`[data-edge="${i}"]`);
      const [a, b] = [tagOf(source, kernels), tagOf(target, kernels)];
      const memory = a === null || a !== b;
      arrow.classList.toggle("mg-memory", memory);
      arrow.classList.toggle("mg-register", !memory);
      arrow.setAttribute("stroke-width", memory ? 2.2 : 1.2);
      if (offsets.has(source) || offsets.has(target)) route(arrow, centre(source), centre(target));
    });
  };

  const route = (arrow, a, b) => {
    arrow.dataset.was ??= arrow.innerHTML;
    const [from, to] = seen.down ? [[a.x + a.w / 2, a.y + a.h], [b.x + b.w / 2, b.y]] : [[a.x + a.w, a.y + a.h / 2], [b.x, b.y + b.h / 2]];
    const bend = 24;
    const [c, d] = seen.down ? [[from[0], from[1] + bend], [to[0], to[1] - bend]] : [[from[0] + bend, from[1]], [to[0] - bend, to[1]]];
    const lines = arrow.querySelectorAll("path");
    lines.forEach((line, i) => line.setAttribute("d", i < lines.length - 1 ? `M${from}C${c} ${d} ${to}`
      : seen.down ? `M${to}l-3.4 -6h6.8z` : `M${to}l-6 -3.4v6.8z`));
  };

  const restore = () => {
    for (const arrow of svg.querySelectorAll("[data-was]")) { arrow.innerHTML = arrow.dataset.was; delete arrow.dataset.was; }
    seen.edges.forEach((_, i) => {
      const arrow = svg.querySelector(`[data-edge="${i}"]`), memory = i in seen.traffic;
      arrow.classList.toggle("mg-memory", memory);
      arrow.classList.toggle("mg-register", !memory);
      arrow.setAttribute("stroke-width", memory ? 2.2 : 1.2);
    });
  };

  // A refused move: the kernels of the circle and the arrows between them in red, or the kernel that cannot be.
  const refuse = (move, dragged) => {
    const problem = move.answer.problems[0];
    const bad = new Set((problem.circle ?? [problem.kernel]).map((k) => move.next[k].tag));
    for (const frame of svg.querySelectorAll(".mg-frame")) frame.classList.toggle("mg-circle", bad.has(kernelOf(frame)));
    const tags = new Map([...boxes.keys()].map((key) => [key, tagOf(key, move.next)]));
    for (const [key, box] of boxes) box.classList.toggle("mg-circle", key === dragged || (bad.has(tags.get(key)) && !movedIn(key)));
    seen.edges.forEach(([source, target], i) => {
      const [a, b] = [tags.get(source), tags.get(target)];
      svg.querySelector(`[data-edge="${i}"]`).classList.toggle("mg-circle", Boolean(problem.circle) && a !== b && bad.has(a) && bad.has(b));
    });
  };
  const movedIn = (key) => [...svg.querySelectorAll(".mg-frame")].some((frame) => kernelOf(frame) === tagOf(key));
  const clear = () => { for (const element of svg.querySelectorAll(".mg-circle, .mg-target")) element.classList.remove("mg-circle", "mg-target"); };

  const targetAt = (x, y) => {
    const found = document.elementFromPoint(x, y);
    if (!found || !svg.parentNode.contains(found)) return null;
    const kernels = board().kernels(), box = found.closest(".mg-box"), frame = found.closest(".mg-frame");
    const tag = box ? tagOf(+box.dataset.box) : frame ? kernelOf(frame) : null;
    const to = kernels.findIndex((kernel) => kernel.tag === tag);
    return { to: to < 0 ? kernels.length : to, frame: box ? null : frame };
  };

  const grab = (event, key) => {
    if (event.button || event.target.closest(".mg-door") || !movable(key)) return;
    const box = boxes.get(key), before = offsets.get(key) ?? [0, 0];
    event.preventDefault(); // no text is selected
    box.focus({ preventScroll: true });
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    const start = [event.clientX, event.clientY], copy = event.altKey || event.shiftKey;
    let move = null, target = null, by = before, dragged = false;
    const follow = (e) => {
      if (!dragged && Math.hypot(e.clientX - start[0], e.clientY - start[1]) < 4) return;
      dragged = true;
      box.classList.add("mg-dragged");
      by = [before[0] + (e.clientX - start[0]) / scale, before[1] + (e.clientY - start[1]) / scale];
      box.setAttribute("transform", `translate(${by[0]} ${by[1]})`);
      target = targetAt(e.clientX, e.clientY);
      clear();
      move = null;
      if (!target) return;
      const from = board().kernels().findIndex((kernel) => kernel.tag === tagOf(key));
      move = { from, ...board().tried(itemsOf(key), from, target.to, copy) };
      if (move.same) return say("in its own kernel", "");
      if (move.why) { refuse(move, key); return say(`not possible: ${move.why}`, "mg-no"); }
      target.frame?.classList.add("mg-target");
      return say(`${target.to === board().kernels().length ? "into a kernel of its own" : "into this kernel"}: ${board().against(move.answer)}`, "");
    };
    const end = (e) => {
      removeEventListener("pointermove", follow);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
      box.classList.remove("mg-dragged");
      if (!dragged) return;
      const quiet = (click) => click.stopPropagation(); // a drag is not a click
      addEventListener("click", quiet, { capture: true });
      setTimeout(() => removeEventListener("click", quiet, { capture: true }));
      if (e.type === "pointerup" && move && !move.same && !move.why) {
        clear();
        board().drop(itemsOf(key), move.from, target.to, copy);
        offsets.set(key, by);
        paint();
        tell(null);
        return say(board().announced().textContent, "mg-yes");
      }
      box.setAttribute("transform", `translate(${before[0]} ${before[1]})`); // back to its place; the red stays, as the reason
      return undefined;
    };
    addEventListener("pointermove", follow);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
  };

  const start = (canvas, shownBoxes, shown, frames) => {
    [svg, boxes, seen, kernelOf] = [canvas.svg, shownBoxes, shown, frames];
    offsets.clear();
    for (const [key, box] of boxes) box.addEventListener("pointerdown", (event) => grab(event, key));
    say("Drag an operation into another kernel, or out of its own.", ""); // always there, so that nothing moves away
    if (made()?.moved()) paint();
  };

  return { note, start };
};
