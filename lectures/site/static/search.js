// The search.  Names come first: equal, then beginning, then containing the words.  Then texts: the words next to each
// other, then in one sentence, then anywhere.  Small words are skipped, endings do not matter, and synonyms count too.
const form = document.querySelector(".search");
const field = form.querySelector("input"), list = form.querySelector("ul");
let chosen = -1;
form.hidden = false;

const SKIPPED = new Set("a an and are as call can do does for how i in is it my of on or the to what when where why with".split(" "));
const parts = (text) => text.toLowerCase().match(/[\p{L}\p{N}_.]+/gu) ?? [];
const stem = (word) => (word.length > 4 ? word.replace(/(ing|ed|es|s)$/, "") : word);
const begins = (word) => new RegExp(`(?<![\\p{L}\\p{N}])${stem(word).replace(/[.]/g, "\\.")}`, "u");

// A query, and the same with each known phrase in it replaced by its synonyms.
function queries(text) {
  const asked = parts(text), short = asked.filter((word) => !SKIPPED.has(word));
  const words = short.length ? short : asked, line = ` ${words.join(" ")} `, found = [words];
  for (const group of SYNONYMS) {
    for (const phrase of group.filter((each) => line.includes(` ${each} `))) {
      for (const other of group) if (other !== phrase) found.push(line.replace(` ${phrase} `, ` ${other} `).trim().split(" "));
    }
  }
  return found.map((words) => words.map(begins));
}

const sentences = (text) => text.split(/(?<=[.?!:]) /);
const holds = (text, words) => words.every((word) => word.test(text));

function inText([name, , , said, text, hidden], words) {
  const [head, body] = [`${name} ${said}`.toLowerCase(), `${text} ${hidden}`.toLowerCase()];
  if (holds(head, words)) return 4;
  if (!holds(`${head} ${body}`, words)) return -1;
  const next = new RegExp(words.map((word) => word.source).join("[\\p{L}]*[^\\p{L}]+"), "u");
  if (next.test(body)) return 5;
  return sentences(body).some((sentence) => holds(sentence, words)) ? 6 : 7;
}

// Lectures come before the notebooks that repeat their words, and before the list of ideas.
const LATER = { lecture: 0, demo: 1.5, exercise: 1.5, idea: 2 };
function rank(line, wanted, asked) {
  const at = nearness(line, wanted, asked);
  return at < 0 ? -1 : at + (LATER[line[1].split(" ")[0]] ?? 0.1);
}

function nearness(line, wanted, asked) {
  const lower = line[0].toLowerCase(), short = lower.split(".").at(-1);
  if (lower === wanted || short === wanted) return line[1] === "API" ? 1 : 0;
  if (short.startsWith(wanted) || lower.startsWith(wanted)) return 2;
  if (lower.includes(wanted)) return 3;
  const found = asked.map((words, i) => { const at = inText(line, words); return at < 0 ? 99 : at + (i ? 2 : 0); });
  const best = Math.min(...found);
  return best === 99 ? -1 : best;
}

// The sentence that holds most of the words, for texts; what is said of it otherwise.
function shown([, , , said, text], asked) {
  const all = sentences(text).map((sentence) => [sentence, Math.max(...asked.map((words) =>
    words.filter((word) => word.test(sentence.toLowerCase())).length / words.length))]);
  const [sentence, share] = all.reduce((a, b) => (b[1] > a[1] ? b : a), ["", 0]);
  return share === 1 || !said ? sentence || said : said;
}

// Of one module or page only the first few that are found by their texts.
function varied(ranked) {
  const counts = {};
  return ranked.filter(([at, [name, , address]]) => {
    const from = address.split("#")[0] + name.split(".").slice(0, -1).join(".");
    return at < 4 || (counts[from] = (counts[from] ?? 0) + 1) <= 4;
  }).map(([, line]) => line);
}

function find() {
  const wanted = field.value.trim().toLowerCase(), asked = queries(wanted);
  const ranked = wanted ? INDEX.map((line) => [rank(line, wanted, asked), line]).filter(([at]) => at >= 0) : [];
  const lines = varied(ranked.sort((a, b) => a[0] - b[0])).slice(0, 12);
  list.replaceChildren(...lines.map((found, i) => {
    const [name, kind, address] = found;
    const line = document.createElement("li"), link = document.createElement("a");
    line.id = `found-${i}`;
    line.setAttribute("role", "option");
    link.href = address;
    link.tabIndex = -1;
    link.innerHTML = "<i></i><b></b><small></small>";
    [link.children[0].textContent, link.children[1].textContent, link.children[2].textContent] = [kind, name, shown(found, asked)];
    line.append(link);
    return line;
  }));
  if (wanted && !lines.length) list.innerHTML = "<li role=option aria-disabled=true>Nothing found. Try fewer words.</li>";
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
