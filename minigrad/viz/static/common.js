// What all views share: making elements, a canvas that moves and grows, keys.

// A name turns no other text: marks of direction are written out, and one of ours ends what is read from right to left.
const upright = (text) => text
  .replace?.(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (mark) => `\\u${mark.charCodeAt(0).toString(16)}`)
  .replace(/(?! )[ \u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+/g, "$&\u200e") ?? text;

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child || child === 0).map(upright));
  return element;
};

// An element of a picture.
const drawn = (tag, attributes, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.map(upright));
  return element;
};

// An element over its siblings: of arrows on one line, the one that is looked at.
const raise = (element) => { element?.parentNode.append(element); return element; };

const SHRUNK = 0.7; // the least scale of a picture of boxes, whose text is larger then (common.css)
const READABLE = 0.9; // the least scale at which a picture is shown as a whole at first, or its width: text is 10 px and more

const onSlide = () => document.body.classList.contains("fill"); // where all of a picture is seen

// A picture that can be dragged and zoomed.  `begin` shows all of it where its text is large enough then, else a part.
const canvasOf = (svgText) => {
  const holder = make("div", { class: "mg-canvas" });
  holder.innerHTML = svgText; // ours: every name in it is escaped where it is drawn
  const svg = holder.querySelector("svg");
  const size = svg.viewBox.baseVal; // which may change later
  svg.removeAttribute("style");
  const beyond = make("div", { class: "mg-beyond", hidden: true }, "drag to see more", linkTo(() => fit(), "fit", { title: "f" }));
  const place = make("div", { class: "mg-window" }, holder, beyond);
  const hint = () => { beyond.hidden = holder.scrollWidth <= holder.clientWidth + 2 && holder.scrollHeight <= holder.clientHeight + 2; };
  // What was seen as a whole stays so when a bar opens above it.
  new ResizeObserver(() => onSlide() || (beyond.hidden && whole() >= limit) ? fit() : hint()).observe(holder);
  let scale = 1, limit = Infinity;
  const zoom = (to, x = holder.clientWidth / 2, y = holder.clientHeight / 2) => {
    const old = scale;
    scale = Math.min(3, Math.max(0.1, to));
    const [left, top] = [(holder.scrollLeft + x) / old, (holder.scrollTop + y) / old];
    svg.setAttribute("width", size.width * scale);
    svg.setAttribute("height", size.height * scale);
    holder.classList.toggle("mg-small", scale < READABLE); // larger text in it
    svg.querySelectorAll(".mg-box").forEach(fitText);
    holder.scrollLeft = left * scale - x;
    holder.scrollTop = top * scale - y;
    hint();
  };
  const whole = () => {
    const room = [holder.clientWidth - 4, (holder.clientHeight || 480) - 4];
    const most = +getComputedStyle(holder).getPropertyValue("--most") || 1.25;
    return Math.min(most, room[0] / size.width, room[1] / size.height);
  };
  const fit = () => zoom(Math.max(0.15, whole()));
  const begin = (otherwise = 1, least = READABLE) => {
    const across = (holder.clientWidth - 4) / size.width;
    limit = least === READABLE ? 1 : least; // the text of a chart is as large as it is drawn
    if (onSlide()) fit();
    else zoom(whole() >= least ? whole() : across >= least ? Math.min(across, otherwise) : otherwise);
  };
  const reveal = (element) => {
    if (!element) return;
    const [box, frame] = [element, holder].map((each) => each.getBoundingClientRect());
    const far = (from, to, start, end) => (from < start + 30 || to > end - 30 ? (from + to - start - end) / 2 : 0);
    holder.scrollLeft += far(box.left, box.right, frame.left, frame.right);
    holder.scrollTop += far(box.top, box.bottom, frame.top, frame.bottom);
  };
  holder.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = holder.getBoundingClientRect();
    zoom(scale * (event.deltaY < 0 ? 1.12 : 1 / 1.12), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });
  let held = null;
  holder.addEventListener("pointerdown", (event) => {
    if (!event.target.closest(".mg-box")) held = [event.clientX + holder.scrollLeft, event.clientY + holder.scrollTop];
  });
  holder.addEventListener("pointermove", (event) => {
    if (held) [holder.scrollLeft, holder.scrollTop] = [held[0] - event.clientX, held[1] - event.clientY];
  });
  for (const name of ["pointerup", "pointerleave"]) holder.addEventListener(name, () => { held = null; });
  const found = (kind) => new Map([...svg.querySelectorAll(`.mg-${kind}`)].map((each) => [+each.dataset[kind], each]));
  return { place, svg, fit, begin, reveal, found };
};

// What keys do in a view: `doesAt(event)` gives a function for each key, or nothing where the event belongs to another part of the page.
const onKeys = (root, doesAt) => root.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const does = doesAt(event)?.[event.key];
  if (!does) return;
  event.preventDefault();
  event.stopPropagation();
  does();
});

// A click on an element, and Enter while it has the focus.
const onPress = (element, does) => {
  element.addEventListener("click", does);
  onKeys(element, (event) => ({ Enter: () => does(event) }));
};

// Something in a picture to press, and its name for screen readers.
const asButton = (element, name, does) => {
  element.setAttribute("tabindex", "0");
  element.setAttribute("role", "button");
  element.setAttribute("aria-label", name);
  onPress(element, does);
};

// What stands in a box by now.
const wordsIn = (box) => [...box.querySelectorAll("text")].map((t) => t.textContent).filter(Boolean).join(", ");

// Text is made to fit its box: the widths of letters differ from machine to machine.
const fitText = (box) => {
  const rect = box.querySelector("rect:last-of-type"), texts = [...box.querySelectorAll("text:not(.mg-door)")];
  const half = +rect.getAttribute("x") + rect.width.baseVal.value - +texts[0].getAttribute("x");
  const side = +rect.getAttribute("rx") > 10 ? 16 : 8, door = box.querySelector(".mg-door"); // the sign is beside the title
  for (const text of texts) {
    const room = 2 * half - (door && text === texts[0] ? 28 : side);
    text.removeAttribute("textLength");
    if (text.getComputedTextLength() <= room) continue;
    text.setAttribute("textLength", room);
    text.setAttribute("lengthAdjust", "spacingAndGlyphs");
  }
};

// Keys that several views have.
const FITS = ["f", "show all of the picture; drag it to move it"];
const hasWhole = (scopes) => scopes.at(-1).title === "everything"; // else it has too many boxes for one picture
const opensOf = (scopes) => [...(scopes.length > 1 ? [["o u", "open the box, go up again"],
  ["c", hasWhole(scopes) ? "open everything, or close it" : "the first picture"]] : []), FITS];

// MathML of ours, or a line of text in its place.
const mathOf = (text) => {
  const element = make("div", { class: "mg-rule" });
  element.innerHTML = text;
  return element;
};

const markedIn = (text, [from, to]) => [text.slice(0, from), make("mark", {}, text.slice(from, to)), text.slice(to)];

// Lines of code, one of them marked, and in it the expression at `span`.
const codeOf = (line, whose = "your code") => (!line ? [] : [
  make("h3", {}, line.file ? `${whose}: ${line.file}` : whose),
  make("div", { class: "mg-code" }, ...line.text.map((text, i) => {
    const number = `${String(line.first + i).padStart(3)}  `;
    if (line.first + i !== line.line) return make("div", {}, number + text);
    return make("div", { class: "mg-here" }, number, ...(line.span?.length ? markedIn(text, line.span) : [text]));
  })),
]);

// Boxes that stand for closed scopes can be opened: `turn` is given the number of another picture.
const hingesOf = (svg, doors, turn) => {
  for (const [key, to] of Object.entries(doors)) {
    const box = svg.querySelector(`[data-box="${key}"]`);
    const open = (event) => { event.stopPropagation(); turn(to); };
    const place = box.querySelector("rect:last-of-type");
    const sign = drawn("text", {
      x: +place.getAttribute("x") + +place.getAttribute("width") - 1, y: +place.getAttribute("y") + 5, // on the corner
      "font-size": 13, "text-anchor": "middle", class: "mg-door",
    }, "⊞");
    sign.addEventListener("click", open);
    box.append(sign);
    box.addEventListener("dblclick", open);
    box.addEventListener("keydown", (event) => { if (event.key === "o") open(event); });
  }
};

// Of a function with a gradient there are several views: one below the other, each with its title.
const showAll = (parent, data, position) => {
  if (!data.parts) return show(parent, data, position);
  const places = data.parts.map(() => make("div"));
  parent.replaceChildren(...data.parts.flatMap(([title], i) => [make("p", { class: "mg-title" }, title), places[i]]));
  return data.parts.map(([, part], i) => show(places[i], part, i ? undefined : position))[0];
};
