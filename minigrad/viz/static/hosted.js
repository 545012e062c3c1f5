// Put at the beginning of the script of a saved page.  Alone in its window, the view may use all of it (hosted.css).  Inside another page, the view reports its height to it.  In a slide the view fills its
// place, takes the keys when it is entered, and gives them back by Escape.  A presenter's remote still turns slides.
const report = (what) => parent !== window && parent.postMessage({ minigrad: what.name, ...what }, "*");

// The colours of the system, or those that the address asks for: steps.html#dark, steps.html#light.
const inTheme = (theme) => {
  document.documentElement.setAttribute("theme", theme);
  document.documentElement.style.colorScheme = theme;
};
if (["#dark", "#light"].includes(location.hash)) inTheme(location.hash.slice(1));

document.body.classList.add(parent === window ? "alone" : "framed");

addEventListener("message", (event) => {
  if (event.data === "minigrad:enter") document.querySelector(".mg-view")?.focus();
  if (event.data === "minigrad:size") measure();
  if (event.data?.minigrad !== "fill") return;
  inTheme(event.data.dark ? "dark" : "light"); // a deck may be dark on a machine that prefers light
  document.body.classList.add("fill");
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.defaultPrevented) report({ name: "leave" });
  if (!document.body.classList.contains("fill") || !["PageDown", "PageUp"].includes(event.key)) return;
  event.preventDefault();
  report({ name: "turn", by: event.key === "PageDown" ? 1 : -1 });
});
for (const kind of ["focusin", "focusout"]) addEventListener(kind, () => report({ name: "focus", inside: kind === "focusin" }));

const measure = () => report({ name: "size", height: document.body.offsetHeight });
new ResizeObserver(measure).observe(document.body);
addEventListener("load", measure); // a frame that is out of sight observes nothing
