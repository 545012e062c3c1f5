// Slides by keyboard alone: `e` enters the view on a slide and Escape leaves it, `r` shows an answer and hides it again,
// `s` opens the notes.  To go on shows the answers first, one by one, so a presenter's remote is enough.
const LARGEST = 44, LEAST = 24; // of type, in pixels of a slide that is 720 high
const phone = innerWidth < 600 && parent === window; // where slides are scrolled; the speaker's view is small too
const height = phone ? Math.round(640 * innerHeight / innerWidth) : 720, room = height - 24; // for the line below
const current = (what) => Reveal.getCurrentSlide()?.querySelector(what);
let inside = false;

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

// Each slide's type is as large as all of the slide allows, with what is hidden shown; a view takes the room that is left.
function fit(slide) {
  const live = slide.querySelector(".live");
  const hidden = [...slide.querySelectorAll("details:not([open])")];
  const [style, away] = [slide.getAttribute("style"), slide.hidden];
  slide.hidden = false;
  slide.style.cssText = "display: block; visibility: hidden";
  for (const each of hidden) each.open = true;
  let size = live ? 32 : LARGEST;
  slide.style.fontSize = `${size}px`;
  while (!live && slide.scrollHeight > room && size > LEAST) slide.style.fontSize = `${--size}px`;
  if (live) live.style.height = `${room - slide.scrollHeight + live.offsetHeight}px`;
  for (const pre of slide.querySelectorAll("pre")) narrow(pre);
  for (const each of hidden) each.open = false;
  slide.setAttribute("style", style ?? "");
  slide.hidden = away;
  slide.style.fontSize = `${size}px`;
}

// Lines of code are broken only where they would be too small.
function narrow(pre) {
  pre.style.whiteSpace = "pre";
  const all = parseFloat(getComputedStyle(pre).fontSize), needed = 0.98 * all * pre.clientWidth / pre.scrollWidth;
  if (pre.scrollWidth > pre.clientWidth) pre.style.fontSize = `${Math.max(needed, 18)}px`;
  if (pre.scrollWidth > pre.clientWidth) pre.style.whiteSpace = "";
}

function tellKeys() {
  const keys = [];
  if (inside) keys.push(["←", ""], ["→", "steps"], ["Esc", "back to the slides"]);
  else if (current(".live")) keys.push(["e", "enters the picture"]);
  if (!inside && current("details.answer:not([open])")) keys.push(["r", "shows the answer"]);
  document.getElementById("keys").innerHTML = keys.map(([key, what]) => `<kbd>${key}</kbd> ${what} `).join(" ");
}

addEventListener("message", (event) => {
  const { minigrad: what } = event.data ?? {};
  if (what === "size") event.source.postMessage("minigrad:fill", "*");
  if (what === "leave") leave();
  if (what === "turn") leave(), event.data.by > 0 ? Reveal.next() : Reveal.prev();
  if (what === "focus") inside = event.data.inside, tellKeys();
});

const answers = (state = "") => document.querySelectorAll(`details.answer${state}`);
if (!phone) for (const answer of answers()) answer.classList.add("fragment", "custom");
const shown = () => answers(".visible").forEach((answer) => { answer.open = true; });
document.querySelector(".reveal").addEventListener("pdf-ready", shown); // on paper each answer has a page of its own

for (const frame of document.querySelectorAll(".live iframe")) frame.contentWindow.postMessage("minigrad:size", "*");

Reveal.initialize({
  hash: true, slideNumber: "c/t", transition: "none", width: phone ? 640 : 1280, height, margin: 0.07, center: false,
  scrollActivationWidth: phone ? 600 : null, plugins: [RevealNotes],
  keyboardCondition: (event) => !(event.target.closest && event.target.closest("summary") && [" ", "Enter"].includes(event.key)),
}).then(async () => {
  Reveal.addKeyBinding({ keyCode: 69, key: "E", description: "enter the view" }, enter);
  Reveal.addKeyBinding({ keyCode: 82, key: "R", description: "show what is hidden" }, reveal);
  await Promise.all([...document.fonts].map((face) => face.load().catch(() => null))); // those of hidden slides too
  for (const slide of phone ? [] : document.querySelectorAll(".slides > section")) fit(slide);
  Reveal.layout();
  Reveal.on("slidechanged", tellKeys);
  for (const kind of ["fragmentshown", "fragmenthidden"]) {
    Reveal.on(kind, ({ fragments }) => fragments.forEach((each) => { each.open = kind === "fragmentshown"; }));
  }
  shown();
  addEventListener("toggle", tellKeys, true);
  tellKeys();
  document.body.dataset.ready = "true";
});
