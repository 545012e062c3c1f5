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

// The search: names first, then names that begin so, then names that hold it, then all words in what is said.
const form = document.querySelector(".search");
const field = form.querySelector("input"), list = form.querySelector("ul");
let chosen = -1;
form.hidden = false;

function rank([name, kind, , said], wanted) {
  const lower = name.toLowerCase(), short = lower.split(".").at(-1);
  if (lower === wanted || short === wanted) return kind === "API" ? 1 : 0;
  if (short.startsWith(wanted) || lower.startsWith(wanted)) return 2;
  if (lower.includes(wanted)) return 3;
  const all = `${lower} ${said.toLowerCase()}`;
  return wanted.split(/\s+/).every((word) => all.includes(word)) ? 4 : -1;
}

function find() {
  const wanted = field.value.trim().toLowerCase();
  const ranked = wanted ? INDEX.map((line) => [rank(line, wanted), line]).filter(([at]) => at >= 0) : [];
  const lines = ranked.sort((a, b) => a[0] - b[0]).slice(0, 12).map(([, line]) => line);
  list.replaceChildren(...lines.map(([name, kind, address, said], i) => {
    const line = document.createElement("li"), link = document.createElement("a");
    line.id = `found-${i}`;
    line.setAttribute("role", "option");
    link.href = address;
    link.tabIndex = -1;
    link.innerHTML = "<i></i><b></b><small></small>";
    [link.children[0].textContent, link.children[1].textContent, link.children[2].textContent] = [kind, name, said];
    line.append(link);
    return line;
  }));
  if (wanted && !lines.length) list.innerHTML = "<li role=option aria-disabled=true>Nothing has this name.</li>";
  show(Boolean(wanted));
  choose(lines.length ? 0 : -1);
}

function show(seen) {
  list.hidden = !seen;
  field.setAttribute("aria-expanded", String(seen));
}

function choose(at) {
  chosen = at;
  [...list.children].forEach((line, i) => line.setAttribute("aria-selected", String(i === at)));
  if (at < 0) return field.removeAttribute("aria-activedescendant");
  field.setAttribute("aria-activedescendant", `found-${at}`);
  list.children[at].scrollIntoView({ block: "nearest", behavior: "instant" });
}

const links = () => list.querySelectorAll("a");
field.addEventListener("input", find);
field.addEventListener("keydown", (event) => {
  const count = links().length;
  if (event.key === "Escape") field.value = "", find(), field.blur();
  else if (event.key === "ArrowDown" && count) choose((chosen + 1) % count);
  else if (event.key === "ArrowUp" && count) choose((chosen + count - 1) % count);
  else return;
  event.preventDefault();
});
form.addEventListener("submit", (event) => { event.preventDefault(); links()[chosen]?.click(); });
list.addEventListener("click", () => show(false));
form.addEventListener("focusout", (event) => { if (!form.contains(event.relatedTarget)) setTimeout(() => show(false), 150); });
field.addEventListener("focus", () => show(Boolean(field.value.trim())));
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  field.select();
});
