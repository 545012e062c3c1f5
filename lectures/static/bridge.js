// Put at the end of a view that runs inside a lecture: the lecture can hand it the keys, and Escape gives them back.
const tell = (what) => parent !== window && parent.postMessage(what, "*");
addEventListener("message", (event) => {
  if (event.data === "minigrad:enter") document.querySelector(".mg-view")?.focus();
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.defaultPrevented) tell("minigrad:leave");
});
new ResizeObserver(() => tell({ minigrad: "height", height: document.documentElement.scrollHeight })).observe(document.body);
