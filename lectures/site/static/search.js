// The search.  A query is a sentence or a name.  Small words are skipped, endings do not matter, and synonyms count.  A
// line need not have every word: rare words count more than frequent ones, names more than texts, pages that answer
// questions more than lists.  A line whose name is what was typed comes first.
const form = document.querySelector(".search");
const field = form.querySelector("input"), list = form.querySelector("ul");
let chosen = -1;
form.hidden = false;

const MOST = 12, EACH = 3; // results, and those of one page
const SKIPPED = new Set(("a about after all also am an and any are as at be been but by call can cannot could did do does doesn doing don for from get "
  + "getting give given gives go got had has have how i if in inside into is isn it its just like make me my of on one or our s should so some "
  + "t than that the their them then there these they this those to two use used using want was way we what when where which while who why will with would you your").split(" "));
// How much a line of a kind is worth, and a match in each of its fields: name, what is said of it, text, hidden text.
const KINDS = { "how-to": 1.7, lecture: 1.25, error: 1.15, glossary: 0.9, API: 1, view: 1.3, elsewhere: 0.9, primitive: 0.5, demo: 0.6, exercise: 0.5, idea: 0.5, room: 0.6 };
const FIELDS = [3, 1.2, 1, 0.8];

const parts = (text) => text.toLowerCase().replace(/\bin place\b/g, "in-place").match(/[\p{L}\p{N}_.]+(?:-\p{L}+)*/gu) ?? [];

// Words without their endings: fuse, fused, fusing and fusion are one, and so are accumulate and accumulation.
const ENDINGS = [[/(ss|us|is|as)$/, "$1"], [/ies$/, "y"], [/([^aeiou]|[aeiou][^aeiou]*e)s$/, "$1"], [/s$/, ""]];
const cached = new Map();
function stem(word) {
  if (!cached.has(word)) cached.set(word, shortened(word));
  return cached.get(word);
}

function shortened(word) {
  if (word.length < 4 || /[\d_]/.test(word)) return word;
  const ending = ENDINGS.find(([pattern]) => pattern.test(word));
  let short = ending ? word.replace(...ending) : word;
  for (const pattern of [/(ing|ed|er|or)$/, /(ation|ition|ion|(?<=.{4})ate|(?<=.{5})at|ive)$/, /(ise|ize|is|iz)$/]) {
    const cut = short.replace(pattern, "");
    if (cut.length >= 3 && /[aeiouy]/.test(cut) && !/^(layer|number|tensor|vector|error|order|under|other|after|over|power|batchnorm)$/.test(short)) short = cut;
  }
  if (short.length > 3) short = short.replace(/e$/, "");
  return short.replace(/([^aeiouls])\1$/, "$1");
}

// The stems of a text.  Of names and compounds, such as clip_grad_norm and all-reduce, the whole and its parts count.
const trimmed = (part) => part.replace(/^\.+|\.+$/g, "");
const pieces = (part) => part.split(/[._-]+/).filter(Boolean).map(stem);
const whole = (part) => stem(trimmed(part).replaceAll("-", ""));
const stems = (text) => parts(text).flatMap((part) => {
  const found = pieces(part);
  return found.length > 1 ? [whole(part), ...found] : found;
});

// Of each stem the lines that have it, with how often it stands in them; made when a reader first searches.
let known = null;
const lengths = []; // of the lines: a word of a short text says more about it
function terms() {
  if (known) return known;
  known = new Map();
  INDEX.forEach((line, at) => {
    lengths[at] = 0;
    [line[0], line[3], line[4], line[5]].forEach((text, i) => {
      for (const each of stems(text ?? "")) {
        lengths[at] += 1;
        if (!known.has(each)) known.set(each, new Map());
        const places = known.get(each);
        places.set(at, Math.min((places.get(at) ?? 0) + FIELDS[i], 8));
      }
    });
  });
  return known;
}

const rarity = (stem) => Math.log(1 + INDEX.length / ((terms().get(stem)?.size ?? 0) + 1));

// What is asked: for each word or known phrase its ways to say it, each a list of stems.
function asked(text) {
  const all = parts(text).flatMap((part) => (part.includes("-") && !terms().has(whole(part)) ? part.split("-") : [trimmed(part)])).filter(Boolean);
  const words = all.filter((word) => !SKIPPED.has(word));
  const kept = words.length ? words : all, line = ` ${kept.map(whole).join(" ")} `;
  const found = kept.map((word) => (pieces(word).length > 1 ? [[whole(word)], pieces(word)] : [[stem(word)]]));
  for (const group of SYNONYMS) {
    const ways = group.map((phrase) => parts(phrase).filter((word) => !SKIPPED.has(word)).map(whole));
    for (const way of ways.filter((way) => way.length && line.includes(` ${way.join(" ")} `))) {
      for (const word of found.filter((each) => way.includes(each[0][0]))) word.push(...ways.filter((other) => other !== way));
    }
  }
  const typed = kept.at(-1);
  if (typed && typed.length > 2 && !text.endsWith(" ")) { // it may be the beginning of a word
    const whole = [...terms().keys()].filter((each) => each.startsWith(typed) && each !== typed);
    if (whole.length < 60) found.at(kept.length - 1).push(...whole.map((each) => [each]));
  }
  return found;
}

// How well each line answers one word: the best of the ways to say it, a synonym a little less than the word itself.
function answers(ways) {
  const found = new Map();
  ways.forEach((way, i) => {
    const places = way.map((each) => terms().get(each));
    if (places.includes(undefined)) return;
    for (const [at] of places[0]) {
      const counts = places.map((lines) => lines.get(at));
      if (counts.includes(undefined)) continue;
      const worth = way.reduce((sum, each, j) => sum + rarity(each) * counts[j] / (counts[j] + 0.8 + lengths[at] / 150), 0) / way.length * (i ? 0.75 : 1);
      found.set(at, Math.max(found.get(at) ?? 0, worth));
    }
  });
  return found;
}

// What is worth more than its words: a name that is what was typed, or that begins with it.
const LISTS = { API: 90, error: 60, elsewhere: 30, primitive: 30 };
function named([name, kind], wanted) {
  const lower = name.toLowerCase(), short = lower.split(".").at(-1);
  if (lower === wanted || short === wanted) return LISTS[kind] ?? 100;
  const begins = short.startsWith(wanted) || lower.startsWith(wanted);
  return begins ? (kind === "API" ? 12 : 1) : lower.includes(wanted) ? 1 : 0;
}

function kindOf([name, kind, address]) {
  const first = kind.startsWith("lecture") && !address.includes("#") ? 1.3 : address === "howto.html" ? 0.5 : 1;
  return first * (KINDS[name.startsWith("mg.viz.") ? "view" : kind.split(" ")[0]] ?? 1);
}

// The lines of the index that answer, the best first.
function ranked(text) {
  const wanted = text.trim().toLowerCase(), questions = wanted ? asked(text.toLowerCase()) : [], scores = new Map(), hits = new Map();
  for (const ways of questions) {
    for (const [at, worth] of answers(ways)) {
      scores.set(at, (scores.get(at) ?? 0) + worth);
      hits.set(at, (hits.get(at) ?? 0) + 1);
    }
  }
  INDEX.forEach((line, at) => { if (wanted && !scores.has(at) && named(line, wanted)) scores.set(at, 0); });
  const close = questions.length > 1 && new RegExp(questions.map(([way]) => way[0].replaceAll(".", "\\.")).join("[\\p{L}]*[^\\p{L}]+(\\p{L}{1,4} )?"), "iu");
  const lines = [...scores].map(([at, score]) => {
    const line = INDEX[at], share = (hits.get(at) ?? 0) / questions.length;
    const next = close && close.test(line.filter((_, i) => i !== 1 && i !== 2).join(" ")) ? 1.5 : 1;
    return [score * (0.3 + share) * kindOf(line) * next + named(line, wanted), line];
  });
  const counts = {};
  return lines.sort((a, b) => b[0] - a[0]).filter(([, line]) => {
    const [name, , address] = line;
    if (named(line, wanted)) return true;
    const from = address.split("#")[0] + name.split(".").slice(0, -1).join(".");
    return (counts[from] = (counts[from] ?? 0) + 1) <= EACH;
  }).slice(0, MOST).map(([, line]) => line);
}

// The sentence that has most of the words; what is said of it otherwise.
function shown([, , , said, text], words) {
  const all = text.split(/(?<=[.?!:]) /).map((sentence) => [sentence, stems(sentence).filter((each) => words.has(each)).length]);
  const [sentence, count] = all.reduce((a, b) => (b[1] > a[1] ? b : a), ["", 0]);
  return count > 1 || (count && words.size === 1) || !said ? sentence || said : said;
}

function find() {
  const wanted = field.value.trim(), lines = ranked(field.value), words = new Set(wanted ? asked(wanted.toLowerCase()).flatMap((ways) => ways[0]) : []);
  list.replaceChildren(...lines.map((found, i) => {
    const [name, kind, address] = found;
    const line = document.createElement("li"), link = document.createElement("a");
    line.id = `found-${i}`;
    line.setAttribute("role", "option");
    link.href = address;
    link.tabIndex = -1;
    link.innerHTML = "<i></i><b></b><small></small>";
    [link.children[0].textContent, link.children[1].textContent, link.children[2].textContent] = [kind, name, shown(found, words)];
    line.append(link);
    return line;
  }));
  if (wanted && !lines.length) list.innerHTML = "<li role=option aria-disabled=true>Nothing found. Try other words.</li>";
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
