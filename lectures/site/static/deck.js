// Slides by keyboard alone: `e` enters the view on a slide and Escape leaves it, `r` shows an answer and hides it again,
// `d` changes between dark and light, `s` opens the notes.  The right arrow shows the stages of a picture and the answers,
// one after the other, before it goes on: a presenter's remote is enough.
const phone = innerWidth < 600 && parent === window; // the speaker's view is small too
const [width, height] = phone ? [640, Math.round(640 * innerHeight / innerWidth)] : [1600, 900];
const room = height - 68; // for the line below
const current = (what) => Reveal.getCurrentSlide()?.querySelector(what);
const views = () => document.querySelectorAll(".live iframe");
let inside = false;
if (phone) document.body.classList.add("phone");

function enter() {
  const frame = current(".live iframe");
  if (!frame) return;
  frame.focus();
  frame.contentWindow.postMessage("minigrad:enter", "*");
}

function leave() {
  window.focus();
  document.activeElement?.blur();
}

function reveal() {
  if (Reveal.nextFragment()) return;
  while (Reveal.prevFragment());
}

const isDark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

function changeTheme() {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  for (const frame of views()) fillView(frame.contentWindow);
}

const fillView = (view) => view.postMessage({ minigrad: "fill", dark: isDark() }, "*");

// The margins of a picture are cut off, so that it is as large as the slide allows.  Stages and answers keep one frame; in a row
// all pictures keep one size.
const PICTURE = 560, SMALL = 150, MARGIN = 6; // the least widths: type would be larger than a heading
function crop(slide, answers) {
  for (const paper of slide.querySelectorAll('.drawn svg > rect[width="100%"]')) paper.remove();
  const boxes = new Map(); // of what is drawn; a picture that an answer replaces is measured while the answer is closed
  for (const open of [false, true]) {
    for (const answer of answers) answer.open = open;
    for (const svg of slide.querySelectorAll(".drawn svg")) if (svg.getBBox().width) boxes.set(svg, svg.getBBox());
  }
  for (const row of slide.querySelectorAll(".row")) {
    const inside = [...boxes].filter(([svg]) => row.contains(svg)).map(([svg, box]) => [svg, around([box], SMALL)]);
    const [wide, high] = ["width", "height"].map((side) => Math.max(...inside.map(([, box]) => box[side])));
    for (const [svg, box] of inside) frame(svg, { ...box, width: wide, height: high });
  }
  const alike = Map.groupBy([...boxes].filter(([svg]) => !svg.closest(".row")), ([svg]) => svg.getAttribute("viewBox"));
  for (const group of alike.values()) for (const [svg] of group) frame(svg, around(group.map(([, box]) => box), PICTURE));
}

// The middle and the size of what surrounds boxes.
function around(boxes, least) {
  const [left, top] = ["x", "y"].map((side) => Math.min(...boxes.map((box) => box[side])));
  const [right, bottom] = [["x", "width"], ["y", "height"]].map(([begin, length]) => Math.max(...boxes.map((box) => box[begin] + box[length])));
  return { x: (left + right) / 2, y: (top + bottom) / 2, width: Math.max(least, right - left), height: bottom - top };
}

const frame = (svg, { x, y, width, height }) => // and a margin
  svg.setAttribute("viewBox", [x - width / 2 - MARGIN, y - height / 2 - MARGIN, width + 2 * MARGIN, height + 2 * MARGIN].join(" "));

// What changes from one stage of a picture to the next moves: the same box or word to its new place, a bar to its new length.  What is
// new appears.
const bare = (part) => part.tagName + part.textContent + (part.tagName === "rect" ? part.getAttribute("height") : "");
const number = (part, name) => Number(part.getAttribute(name));
function move(before, after) {
  if (!before || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const old = [...before.children], fresh = [];
  for (const part of after.children) {
    const same = old.findIndex((each) => each.outerHTML === part.outerHTML);
    if (same < 0) fresh.push(part);
    else old.splice(same, 1);
  }
  for (const part of fresh) {
    const at = ["rect", "text"].includes(part.tagName) ? old.findIndex((each) => bare(each) === bare(part)) : -1;
    const [from] = at < 0 ? [] : old.splice(at, 1);
    const [x, y, share] = from ? [number(from, "x") - number(part, "x"), number(from, "y") - number(part, "y"), number(from, "width") / number(part, "width") || 1] : [];
    part.style.transformOrigin = `${number(part, "x")}px ${number(part, "y")}px`;
    part.animate([from ? { transform: `translate(${x}px, ${y}px) scale(${share}, 1)` } : { opacity: 0 }, {}], { duration: 700, easing: "ease-in-out" });
  }
}

function moveTo(shown) {
  const [after] = shown.querySelectorAll("svg");
  if (!after) return;
  const stages = shown.closest(".stages"), first = current(".drawn:not(details *)");
  const before = stages?.contains(shown) ? shown.previousElementSibling?.querySelector("svg") : [...(first?.querySelectorAll("svg") ?? [])].at(-1);
  move(before, after);
}

// Pictures and views take the room that the text leaves: once with the answers hidden, once with all of them shown.
function fit(slide) {
  const answers = [...slide.querySelectorAll("details")];
  const [style, away] = [slide.getAttribute("style"), slide.hidden];
  slide.hidden = false;
  slide.style.cssText = "display: block; visibility: hidden; height: auto";
  crop(slide, answers);
  for (const open of answers.length ? [false, true] : [false]) {
    for (const answer of answers) answer.open = open;
    const growing = [...slide.querySelectorAll(".row, .live, .drawn")].filter((each) => each.offsetParent && !each.matches(".row .drawn, details:not([open]) *"));
    const name = open ? "--open" : "--closed";
    for (const each of growing) each.style.setProperty(name, "0px");
    const left = Math.floor(room - slide.getBoundingClientRect().height / Reveal.getScale());
    for (const each of growing) each.style.setProperty(name, `${left / growing.length}px`);
  }
  for (const answer of answers) answer.open = false;
  slide.setAttribute("style", style ?? "");
  slide.hidden = away;
}

function tellKeys() {
  const keys = [];
  if (inside) keys.push(["←", ""], ["→", "steps"], ["Esc", "back to the slides"]);
  else if (current(".live")) keys.push(["e", "enters the picture"]);
  if (!inside && current("details.answer:not([open])")) keys.push(["r", "shows the answer"]);
  document.getElementById("keys").innerHTML = keys.map(([key, what]) => `<kbd>${key}</kbd> ${what} `).join(" ");
}

// The Tab key reaches the slide that is shown, and none beside it.
function onlyThis() {
  if (phone || Reveal.isScrollView() || Reveal.isPrintView()) return; // where all slides stand below each other
  for (const slide of Reveal.getSlides()) slide.inert = slide !== Reveal.getCurrentSlide();
}

// The line below has a part for each chapter, as long as its number of slides.
const parts = [...document.querySelectorAll("footer [data-first]")];
function tellWhere() {
  const at = Reveal.getIndices().h, total = Reveal.getTotalSlides();
  parts.forEach((part, i) => {
    const first = Number(part.dataset.first), count = (parts[i + 1] ? Number(parts[i + 1].dataset.first) : total) - first;
    const done = Math.min(Math.max(at - first + 1, 0), count);
    part.parentElement.style.setProperty("--slides", count);
    part.style.setProperty("--done", `${100 * done / count}%`);
    if (done && at < first + count) part.setAttribute("aria-current", "step");
    else part.removeAttribute("aria-current");
  });
  tellKeys();
}

addEventListener("message", (event) => {
  const { minigrad: what } = event.data ?? {};
  if (what === "size") fillView(event.source);
  if (what === "leave") leave();
  if (what === "turn") leave(), event.data.by > 0 ? Reveal.next() : Reveal.prev();
  if (what === "focus") inside = event.data.inside, tellKeys();
});

for (const pre of document.querySelectorAll("pre")) {
  if (Math.max(...pre.textContent.split("\n").map((line) => line.length)) > 76) pre.classList.add("long");
}
const answers = (state = "") => document.querySelectorAll(`details.answer${state}`);
if (phone) for (const stage of document.querySelectorAll(".stages > .fragment")) stage.classList.remove("fragment");
else for (const answer of answers()) answer.classList.add("fragment", "custom");
const shown = () => answers(".visible").forEach((answer) => { answer.open = true; });
document.querySelector(".reveal").addEventListener("pdf-ready", shown); // on paper each answer has a page of its own

for (const frame of views()) frame.contentWindow.postMessage("minigrad:size", "*");

Reveal.initialize({
  hash: true, slideNumber: "c/t", progress: false, transition: "none", width, height, margin: 0, center: phone,
  scrollActivationWidth: phone ? 600 : null, plugins: [RevealNotes],
  keyboardCondition: (event) => !(event.target.closest && event.target.closest("summary") && [" ", "Enter"].includes(event.key)),
}).then(async () => {
  Reveal.addKeyBinding({ keyCode: 69, key: "E", description: "enter the view" }, enter);
  Reveal.addKeyBinding({ keyCode: 82, key: "R", description: "show what is hidden" }, reveal);
  Reveal.addKeyBinding({ keyCode: 68, key: "D", description: "dark or light" }, changeTheme);
  await Promise.all([...document.fonts].map((face) => face.load().catch(() => null))); // those of hidden slides too
  for (const slide of phone ? [] : document.querySelectorAll(".slides > section")) fit(slide);
  Reveal.layout();
  document.querySelector(".reveal").removeAttribute("role"); // of an application: it is a text with pages
  Reveal.on("slidechanged", tellWhere);
  Reveal.on("slidechanged", onlyThis);
  onlyThis();
  for (const kind of ["fragmentshown", "fragmenthidden"]) {
    Reveal.on(kind, ({ fragments }) => fragments.forEach((each) => {
      if (each.matches("details")) each.open = kind === "fragmentshown";
      if (kind === "fragmentshown") moveTo(each);
    }));
  }
  shown();
  addEventListener("toggle", tellKeys, true);
  tellWhere();
  document.body.dataset.ready = "true";
});
