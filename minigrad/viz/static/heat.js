// What the stepper changes in a picture: heat maps and text in boxes, numbers on arrows, lines to what a rule needs.

// A heat map: see `cells.py` for its letters.  `most` is the largest side of a square; `centred` puts it around 0.
const heatSize = (cells, most, width, height) => {
  const rows = cells.split("/");
  const side = Math.min(most, height / rows.length, width / rows[0].length);
  return [rows[0].length * side, side, rows];
};
const squaresOf = (cells, most, width, height, centred = false, x = 0, y = 0) => {
  const [, side, rows] = heatSize(cells, most, width, height);
  const paths = new Map();
  rows.forEach((line, row) => [...line].forEach((letter, column) => {
    if (letter !== " " && letter !== ".") paths.set(letter, `${paths.get(letter) || ""}M${column} ${row}h1v1h-1z`);
  }));
  const [left, top] = centred ? [(-rows[0].length * side) / 2, (-rows.length * side) / 2] : [x, y + (height - rows.length * side) / 2];
  const group = drawn("g", { class: "mg-heat", transform: `translate(${left} ${top}) scale(${side})` },
    drawn("rect", { class: "mg-ground", width: rows[0].length, height: rows.length }));
  for (const [letter, d] of paths) {
    const positive = letter < "a";
    const look = letter === "!" ? "bad" : positive ? "more" : "less";
    const level = letter === "!" ? 7 : letter.charCodeAt(0) - (positive ? 64 : 96);
    group.append(drawn("path", { d, class: `mg-${look}`, "fill-opacity": level / 7 }));
  }
  return [group];
};

// A heat map at the left of a box.
const heatIn = (box, cells) => {
  const rect = box.querySelector("rect:last-of-type");
  const [x, y, height, round] = ["x", "y", "height", "rx"].map((name) => +rect.getAttribute(name));
  rect.after(...squaresOf(cells, 8, 64, 27, false, x + (round > 10 ? 8 : 5), y + (height - 27) / 2));
};

// A number on an arrow.
const noteText = (note, line) => {
  const text = drawn("text", { y: 3.5, "font-size": 10, "text-anchor": "middle" }, line);
  note.append(text);
  const wide = text.getComputedTextLength() + 8;
  note.prepend(drawn("rect", { x: -wide / 2, y: -7, width: wide, height: 14, rx: 7 }));
};

// Numbers on neighbouring arrows side by side: while one is dragged, they become longer.
const apart = (notes) => {
  const placed = [];
  for (const note of notes) {
    const { e, f } = note.mgHome ??= note.transform.baseVal.consolidate().matrix, wide = note.querySelector("rect")?.width.baseVal.value ?? 0;
    const left = placed.filter((other) => Math.abs(other.f - f) < 15 && Math.abs(other.x - e) < (other.wide + wide) / 2 + 2);
    const x = left.length ? Math.max(...left.map((other) => other.x + (other.wide + wide) / 2 + 2)) : e;
    if (wide) placed.push({ x, f, wide });
    note.setAttribute("transform", `translate(${x} ${f})`);
  }
};

// A dotted line from a box of the forward pass that a rule needs to where it is needed.
const needed = (from, to) => {
  if (!from || !to) return;
  const [a, b] = [from, to].map((box) => {
    const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => +box.querySelector("rect:last-of-type").getAttribute(name));
    return { x, y, width, height };
  });
  const across = b.x > a.x + a.width;
  const [x, y, u, v] = across ? [a.x + a.width, a.y + a.height / 2, b.x, b.y + b.height / 2]
    : [a.x + a.width / 2, a.y + a.height, b.x + b.width / 2, b.y];
  const bend = across ? [(x + u) / 2, y, (x + u) / 2, v] : [x, (y + v) / 2, u, (y + v) / 2];
  const line = drawn("path", { class: "mg-needs", d: `M${x} ${y}C${bend.join(" ")} ${u} ${v}` });
  from.parentNode.insertBefore(line, from.parentNode.querySelector(".mg-box")); // under the boxes
};

// The width that a box has for text, and text made to fit: the widths of letters differ from machine to machine.
const widthFor = (box) => 2 * (+box.querySelector("rect").getAttribute("x") + box.querySelector("rect").width.baseVal.value
  - +box.querySelector("text").getAttribute("x")) - (box.querySelector(".mg-door") ? 28 : 8);
const fitText = (text, room) => {
  text.removeAttribute("textLength");
  if (text.getComputedTextLength() <= room) return;
  text.setAttribute("textLength", room);
  text.setAttribute("lengthAdjust", "spacingAndGlyphs");
};

// Only what changes is touched: a step changes a handful of a thousand elements.
const dress = (element, looks) => {
  const text = looks.join(" ");
  if ((element.mgLooks || "") === text) return;
  if (element.mgLooks) element.classList.remove(...element.mgLooks.split(" "));
  if (text) element.classList.add(...looks);
  element.mgLooks = text;
};
