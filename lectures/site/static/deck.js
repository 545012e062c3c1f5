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

// Pictures and views take the room that the text leaves: once with the answers hidden, once with all of them shown.
function fit(slide) {
  const answers = [...slide.querySelectorAll("details")];
  const [style, away] = [slide.getAttribute("style"), slide.hidden];
  slide.hidden = false;
  slide.style.cssText = "display: block; visibility: hidden; height: auto";
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

const answers = (state = "") => document.querySelectorAll(`details.answer${state}`);
for (const pre of document.querySelectorAll("pre")) {
  if (pre.textContent.trimEnd().split("\n").length > 10) pre.classList.add("window");
}
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
    Reveal.on(kind, ({ fragments }) => fragments.forEach((each) => { if (each.matches("details")) each.open = kind === "fragmentshown"; }));
  }
  shown();
  addEventListener("toggle", tellKeys, true);
  tellWhere();
  document.body.dataset.ready = "true";
});
