// Put at the end of a view that runs inside a page or a slide.  The view reports its height to a page.  In a slide it fills
// its place, takes the keys when it is entered, and gives them back by Escape.  A presenter's remote still turns slides.
const tell = (what) => parent !== window && parent.postMessage({ minigrad: what.name, ...what }, "*");
const view = () => document.querySelector(".mg-view");

addEventListener("message", (event) => {
  if (event.data === "minigrad:enter") view()?.focus();
  if (event.data === "minigrad:size") measure();
  if (event.data?.minigrad === "fill") fill(event.data.dark);
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.defaultPrevented) tell({ name: "leave" });
  if (event.key === "PageDown" || event.key === "PageUp") event.preventDefault(), tell({ name: "turn", by: event.key === "PageDown" ? 1 : -1 });
});
for (const kind of ["focusin", "focusout"]) addEventListener(kind, () => tell({ name: "focus", inside: kind === "focusin" }));

function fill(dark) { // a deck may be dark on a machine that prefers light, and light on one that prefers dark
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
  view()?.classList.toggle("mg-light", !dark);
  view()?.classList.toggle("mg-dark", dark);
  if (document.body.classList.contains("fill")) return;
  document.body.classList.add("fill");
  const canvas = document.querySelector(".mg-canvas");
  if (canvas) new ResizeObserver(() => view().dispatchEvent(new KeyboardEvent("keydown", { key: "f" }))).observe(canvas);
}

const measure = () => tell({ name: "size", height: document.body.offsetHeight });
new ResizeObserver(measure).observe(document.body);
addEventListener("load", measure); // a frame that is out of sight observes nothing
