// On a narrow screen, a chart is squeezed: its places come closer, and its text keeps its size, or is left out.

// The last rectangle before a text in which the text lies; a rectangle without a border is only the ground of a text.
const rectAround = (text, rects) => {
  const [x, y] = ["x", "y"].map((name) => +text.getAttribute(name));
  const holds = ([left, top, width, height]) => left <= x && x <= left + width && top <= y && y <= top + height;
  return rects.findLast(([rect, ...place]) => rect.getAttribute("stroke") !== "none" && holds(place)
    && rect.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING);
};

// The entries of a legend, as elements of the page, which wrap.
const entriesOf = (legend) => {
  const [shapes, texts] = ["rect, path", "text"].map((kind) => [...legend.querySelectorAll(kind)]);
  legend.remove();
  return shapes.map((shape, i) => {
    const svg = drawn("svg", { width: 18, height: 13, viewBox: `${texts[i].getAttribute("x") - 23} ${texts[i].getAttribute("y") - 10} 18 13` }, shape);
    return make("span", {}, svg, (texts[i].querySelector("title") ?? texts[i]).textContent); // the title has all of a name that is cut off
  });
};

const squeeze = (svg, room) => {
  let [left, top, wide, high] = svg.getAttribute("viewBox").split(" ").map(Number);
  if (wide <= room) return [];
  const beside = svg.querySelector(".mg-beside"); // pictures, which move below the chart as they are
  const box = beside?.getBBox();
  if (box) wide = box.x - left;
  if (wide > room && svg.querySelector("image:not(.mg-beside *)")) return []; // an image keeps its proportions
  if (beside) {
    beside.remove();
    const rest = Math.max(...[...svg.children].map((each) => each.getBBox()).map(({ y, height }) => y + height));
    beside.setAttribute("transform", `translate(${left - box.x + 10} ${rest + 24 - box.y})`);
    high = rest + 24 + box.height + 10 - top;
  }
  const named = [...svg.querySelectorAll(".mg-legend")].flatMap(entriesOf).map((entry) => [entry.textContent, entry]);
  if (named.length) wide = svg.getBBox().x + svg.getBBox().width + 10 - left; // the chart takes their room
  const rects = [...svg.querySelectorAll("rect")].map((rect) => [rect, ...["x", "y", "width", "height"].map((name) => +rect.getAttribute(name))]);
  const texts = [...svg.querySelectorAll("text")].map((text) => [text, +text.getAttribute("x"), rectAround(text, rects)]);
  let share = Math.min(1, room / wide), begin = left;
  for (const round of [1, 2]) { // names on the left of a chart need room of their own
    for (const [text, x] of texts) text.setAttribute("x", x * share);
    const names = texts.filter(([text]) => text.getAttribute("text-anchor") === "end");
    begin = Math.min(left * share, ...names.map(([text]) => text.getBBox().x - 4));
    if (round === 1 && share < 1) share *= room / (room + left * share - begin);
  }
  for (const shape of svg.querySelectorAll("rect, path")) {
    const turned = shape.parentNode.matches('[transform^="matrix(0 1 1 0"]'); // drawn from the top down, shown from left to right
    shape.setAttribute("transform", turned ? `scale(1 ${share})` : `scale(${share} 1)`);
    shape.style.vectorEffect = "non-scaling-stroke";
  }
  for (const dot of svg.querySelectorAll("circle")) dot.setAttribute("cx", dot.getAttribute("cx") * share);
  const end = (left + wide) * share, kept = [];
  for (const [text, x, around] of texts) {
    const anchor = text.getAttribute("text-anchor");
    const most = around && anchor === "middle" ? around[3] * share - 2 : Infinity;
    const ground = text.previousElementSibling?.matches("rect[stroke=none]") ? text.previousElementSibling : null;
    if (text.getBBox().width > most) text.textContent = /(?<= )\d+$|^\d+(?= [A-Z])|\[\d+\](?=$| [A-Z])/.exec(text.textContent)?.[0] ?? text.textContent;
    if (anchor === "start") { // a long text is cut off; a short one moves a little, if it lies in no rectangle
      const right = around ? (around[1] + around[3]) * share - 4 : end;
      const most = right - Math.max(begin, x * share - (around ? 0 : 40));
      while (text.getBBox().width > most && text.textContent.length > 2) text.textContent = `${text.textContent.slice(0, -2)}…`;
      text.setAttribute("x", Math.min(x * share, Math.max(begin, right - text.getBBox().width)));
    }
    if (anchor === "middle") { // it stays inside the picture
      const half = text.getBBox().width / 2;
      text.setAttribute("x", Math.max(begin + half, Math.min(end - half, x * share)));
    }
    const box = text.getBBox();
    const touches = (other) => box.x < other.x + other.width + 3 && other.x < box.x + box.width + 3
      && box.y < other.y + other.height - 2 && other.y < box.y + box.height - 2;
    const fits = box.width <= most && !kept.some(touches);
    if (ground && fits) for (const [name, value] of [["transform", ""], ["x", box.x - 4], ["width", box.width + 8]]) ground.setAttribute(name, value);
    if (fits) kept.push(box);
    else for (const each of [text, ground]) each?.remove();
  }
  if (beside) svg.append(beside);
  svg.setAttribute("viewBox", [begin, top, beside ? Math.max(end - begin, beside.getBBox().width + 20) : end - begin, high].join(" "));
  return [...new Map(named).values()]; // charts may share their names
};
