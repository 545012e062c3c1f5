// A view that runs inside a page is as high as it needs to be.
addEventListener("message", (event) => {
  if (event.data?.minigrad !== "size") return;
  for (const frame of document.querySelectorAll(".live iframe")) {
    if (frame.contentWindow === event.source) frame.style.height = `${Math.ceil(event.data.height)}px`;
  }
});

// Views that reported their height before this script ran report it again.
for (const frame of document.querySelectorAll(".live iframe")) frame.contentWindow.postMessage("minigrad:size", "*");

// A picture with stages shows one of them, with buttons below it.
for (const figure of document.querySelectorAll(".stages")) {
  const stages = [...figure.querySelectorAll(":scope > div")];
  const steps = document.createElement("p");
  steps.className = "steps";
  steps.innerHTML = '<button type="button">‹ back</button><span aria-live="polite"></span><button type="button">next ›</button>';
  const [back, where, next] = steps.children;
  let at = 0;
  const go = (by) => {
    at += by;
    stages.forEach((stage, i) => stage.classList.toggle("shown", i === at));
    where.textContent = `${at + 1} of ${stages.length}`;
    [back.disabled, next.disabled] = [at === 0, at === stages.length - 1];
  };
  back.addEventListener("click", () => go(-1));
  next.addEventListener("click", () => go(1));
  figure.classList.add("stepped");
  figure.append(steps);
  go(0);
}

// What is too wide can be scrolled by keys.
const scrollable = () => {
  for (const each of document.querySelectorAll("pre, .wide")) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
    else each.removeAttribute("tabindex");
  }
};
addEventListener("resize", scrollable);
addEventListener("toggle", scrollable, true);
scrollable();

// The contents: open where they stand beside the text, and marked where one is.
const contents = document.querySelector(".contents");
if (contents) {
  const wide = matchMedia("(min-width: 75rem)");
  const follow = () => { contents.open = wide.matches; };
  wide.addEventListener("change", follow);
  follow();
  const links = new Map([...contents.querySelectorAll("a")].map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
  const heads = [...links.keys()].map((id) => document.getElementById(id));
  let now = null;
  const mark = () => {
    const at = heads.findLast((head) => head.getBoundingClientRect().top < innerHeight / 4) ?? null;
    const link = at && links.get(at.id);
    if (link === now) return;
    now?.removeAttribute("aria-current");
    now = link;
    now?.setAttribute("aria-current", "true");
    if (now && wide.matches) contents.scrollTo({ top: now.offsetTop - contents.clientHeight / 2, behavior: "instant" });
  };
  addEventListener("scroll", () => requestAnimationFrame(mark), { passive: true });
  mark();
}
