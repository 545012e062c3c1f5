// What the stepper changes in a picture: heat maps and text in boxes, numbers on arrows, lines to what a rule needs.

// A heat map, see `numbers.py`.  `most` is the largest side of a square, and `y` its middle; `centred`, `x` is too.
const squaresOf = (cells, most, width, height, x, y, centred = false) => {
  const rows = cells.split("/"), wide = rows[0].length, side = Math.min(most, height / rows.length, width / wide);
  const paths = new Map();
  rows.forEach((line, row) => [...line].forEach((letter, column) => {
    if (letter !== ".") paths.set(letter, `${paths.get(letter) || ""}M${column} ${row}h1v1h-1z`);
  }));
  const group = drawn("g", { class: "mg-heat", transform: `translate(${centred ? x - wide * side / 2 : x} ${y - rows.length * side / 2}) scale(${side})` },
    drawn("rect", { width: wide, height: rows.length, fill: "var(--paper)", stroke: "var(--line)", "stroke-width": 0.15 }));
  for (const [letter, d] of paths) {
    const [colour, level] = letter < "A" ? [letter > " " ? "bad" : "line", 7] : [letter < "a" ? "there" : "back", letter.charCodeAt(0) % 32];
    group.append(drawn("path", { d, fill: `var(--${colour})`, "fill-opacity": level / 7 }));
  }
  return group;
};

// A heat map at the left of a box.
const heatIn = (box, cells) => {
  const rect = box.querySelector("rect:last-of-type");
  const [x, y, height, round] = ["x", "y", "height", "rx"].map((name) => +rect.getAttribute(name));
  rect.after(squaresOf(cells, 8, 64, 27, x + (round > 10 ? 8 : 5), y + height / 2));
};

// Each number has the first place on its arrow where it lies on no box and no other number, and inside the picture.
const SHARES = [0.42, 0.36, 0.48, 0.3, 0.54, 0.24, 0.6, 0.18, 0.66, 0.12, 0.75, 0.09, 0.85];
const apart = ({ boxes, notes, edges }) => {
  const taken = [...boxes.values()].map((box) => DOMRect.fromRect(box.querySelector("rect:last-of-type").getBBox()));
  const sized = [...notes].map(([key, note]) => [note, note.getBBox(), edges.get(key).querySelector("path")]);
  for (const [note, { width, height }, path] of sized.filter(([, size]) => size.width)) {
    const { x: from, width: room } = note.ownerSVGElement.viewBox.baseVal;
    note.mgPlaces ??= SHARES.map((share) => path.getPointAtLength(share * path.getTotalLength()));
    const places = [0.5, 0.9, 0.1].flatMap((aside) => note.mgPlaces.map(({ x, y }) => new DOMRect(x - aside * width, y - height / 2, width, height)));
    const place = places.find(({ left, right, top, bottom }) => left > from && right < from + room
      && !taken.some((other) => left < other.right && other.left < right && top < other.bottom && other.top < bottom)) ?? places[0];
    taken.push(place);
    note.setAttribute("transform", `translate(${place.x + width / 2} ${place.y + height / 2})`);
  }
};

// A dotted line, under the boxes, from a box of the forward pass that a rule needs to where it is needed.
const needed = (from, to) => {
  if (!from || !to) return;
  const [[x, y], [u, v]] = [from, to].map((box) => {
    const rect = box.querySelector("rect:last-of-type").getBBox();
    return [rect.x + rect.width / 2, rect.y + rect.height / 2];
  });
  const line = drawn("path", { class: "mg-needs", d: `M${x} ${y}C${(x + u) / 2} ${y} ${(x + u) / 2} ${v} ${u} ${v}` });
  from.parentNode.insertBefore(line, from.parentNode.querySelector(".mg-box"));
};

// Only what changes is touched: a step changes a handful of a thousand elements.
const LOOKS = ["mg-now", "mg-need", "mg-none", "mg-part", "mg-wrong", "mg-lit", "mg-hid"];
const dress = (element, looks) => LOOKS.forEach((look) => element.classList.toggle(look, looks.includes(look)));
