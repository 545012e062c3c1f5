// Moving operations between kernels: the bytes of a partition, and refusals with the compiler's own reasons.

// The names of a few operations, or how many there are.
const listed = (items, numbers) => (numbers.length > 3 ? `${numbers.length} operations` : numbers.map((i) => items[i].name).join(", "));

// The cost of a partition, and its problems.  `kernels` are sets of the numbers of items.
const judged = (tables, kernels) => {
  const { items, copied, most } = tables;
  const home = homesOf(kernels);
  const problems = [], wanted = new Set(), after = kernels.map(() => new Set());
  const named = (number) => items[number].name;
  const cards = kernels.map((kernel, k) => {
    const members = [...kernel];
    const reads = new Map(); // item -> view -> bytes
    const refuse = (why) => problems.push({ circle: [k], why });
    const elements = Math.max(...members.map((i) => items[i].size));
    const isAcross = (i) => items[i].kind === "reduce" && !(items[i].rows && items[i].size === elements);
    const rows = new Set(members.filter((i) => items[i].rows && items[i].size === elements).map((i) => items[i].rows));
    for (const i of members) {
      if (items[i].why && members.length > 1) refuse(`${named(i)} can't be in a kernel with others: ${items[i].why}`);
      for (const [source, view, bytes, how, times] of items[i].reads) {
        if (!kernel.has(source)) {
          if (!reads.has(source)) reads.set(source, new Map());
          reads.get(source).set(view, bytes);
          if (home.has(source)) { wanted.add(source); after[k].add(home.get(source)); }
        } else if (how === "after" || isAcross(source)) {
          refuse(`${named(i)} reads ${named(source)}, and a reduction across rows is complete only when the kernel has gone through all of them`);
        } else if (how === "placed") refuse(`${named(i)} is placed elsewhere than ${named(source)} is computed at`);
        else if (how === "elsewhere" || (how === "rows" && items[i].size !== elements)) {
          refuse(`${named(i)} reads ${named(source)} at other positions than it is computed at`);
        } else if (how === "rows") rows.add(times);
      }
    }
    if (rows.size > 1) refuse(`rows of different length: ${[...rows].sort((a, b) => a - b).join(" and ")}`);
    const row = rows.size ? [...rows][0] : 0;
    for (const i of members) {
      const size = items[i].size;
      if (members.length > 1 && size !== elements && size !== 1 && !(row && size * row === elements)) {
        refuse(`${named(i)}: a loop of ${size} elements against one of ${elements}`);
        break;
      }
    }
    if (members.length > most) refuse(`the kernel has more than ${most} nodes`);
    // A kernel that only combines the results of a single chunk need not run: these are final.  A part of several results takes none.
    return { members, reads, idle: members.every((i) => items[i].idle || items[i].kind === "part") };
  });
  const levels = new Map();
  for (let waiting = kernels.map((_, k) => k); waiting.length;) {
    const ready = waiting.filter((k) => [...after[k]].every((other) => levels.has(other)));
    if (!ready.length) {
      problems.push({ circle: circleOf(waiting, after), why: "kernels would wait for each other: " });
      for (const k of waiting) levels.set(k, 0);
      break;
    }
    for (const k of ready) levels.set(k, Math.max(0, ...[...after[k]].map((other) => levels.get(other) + !cards[other].idle)));
    waiting = waiting.filter((k) => !levels.has(k));
  }
  let bytes = copied[1], launches = copied[0];
  cards.forEach((card, k) => {
    const only = items[card.members[0]];
    card.level = levels.get(k);
    card.reads = [...card.reads].map(([source, views]) => [source, Math.min([...views.values()].reduce((a, b) => a + b, 0), items[source].bytes)]);
    card.writes = card.members.filter((i) => home.get(i) === k && (items[i].kept || wanted.has(i))).map((i) => [i, items[i].bytes]);
    card.takes = only.takes ?? [card.reads, card.writes].map(sumOf);
    card.bytes = card.idle ? 0 : card.takes[0] + card.takes[1];
    bytes += card.bytes;
    launches += only.launches ?? Number(!card.idle);
  });
  return { cards, problems, bytes, launches };
};

const sumOf = (list) => list.reduce((sum, [, size]) => sum + size, 0);

// Kernels that wait for each other: walking from a kernel to one that it waits for ends in a circle.
const circleOf = (waiting, after) => {
  const path = [];
  for (let k = waiting[0]; ; k = [...after[k]].find((other) => waiting.includes(other))) {
    if (path.includes(k)) return path.slice(path.indexOf(k));
    path.push(k);
  }
};

// The kernel that stores each item: the first one that computes it.
const homesOf = (kernels) => {
  const home = new Map();
  kernels.forEach((kernel, k) => { for (const i of kernel) if (!home.has(i)) home.set(i, k); });
  return home;
};

// Remove items that are not needed: an item stays if its kernel reads it, or stores it for other kernels.
const pruned = (tables, kernels) => {
  const readers = tables.items.map(() => []);
  tables.items.forEach((item, i) => { for (const [source] of item.reads) readers[source].push(i); });
  let left = kernels.map((kernel) => new Set(kernel)).filter((kernel) => kernel.size);
  for (let again = true; again;) {
    again = false;
    const home = homesOf(left);
    left.forEach((kernel, k) => {
      for (const i of kernel) {
        const here = readers[i].some((reader) => kernel.has(reader));
        const there = home.get(i) === k && (tables.items[i].kept || tables.items[i].why
          || left.some((other, n) => n !== k && !other.has(i) && readers[i].some((reader) => other.has(reader))));
        if (!here && !there) { kernel.delete(i); again = true; }
      }
    });
    left = left.filter((kernel) => kernel.size);
  }
  return left;
};

// The board: a card for each kernel, in an order in which they can run, and chips to drag or to move by keys.
const boardOf = (tables) => {
  const element = make("div", { class: "mg-board" });
  const score = make("div", { class: "mg-score", role: "status" });
  const place = make("div", { class: "mg-cards" });
  const compiled = tables.kernels.map((items) => new Set(items));
  const alone = () => pruned(tables, tables.items.flatMap((item, i) => (item.kind === "input" ? [] : [new Set([i])])));
  const parts = tables.items.some(({ idle }) => idle === false);
  let kernels = compiled, history = [], held = null;
  // The cost of a partition; that of the compiler may have steps in blocks of rows, which a move ends.
  const judge = (of) => {
    const whole = judged(tables, of), { launches, bytes } = of === compiled ? tables : whole;
    return { ...whole, launches, bytes, blocks: launches !== whole.launches };
  };
  const best = judge(compiled);

  // The partition after a move of what is held, or the reason why the move is refused.
  const tried = (to) => {
    const { moving, from, copy } = held;
    const next = [...kernels, new Set()].map((kernel) => new Set(kernel));
    for (const i of moving) { if (!copy) next[from].delete(i); next[to].add(i); }
    const left = pruned(tables, next), answer = judged(tables, left);
    return { moving, next: left, answer, why: answer.problems[0]?.why ?? "" };
  };

  const nameOf = (k) => (kernels[k] ? `kernel ${k}` : "a kernel of its own");
  const compared = (answer, than, name) => {
    const [bytes, launches] = [answer.bytes - than.bytes, answer.launches - than.launches];
    const parts = [bytes && `${bytesText(Math.abs(bytes))} ${bytes < 0 ? "less" : "more"}`, launches && `${launchesText(Math.abs(launches))} ${launches < 0 ? "fewer" : "more"}`];
    return bytes || launches ? `${parts.filter(Boolean).join(", ")} than ${name}` : `the same as ${name}`;
  };
  const against = (answer) => compared(answer, judge(kernels), "before");

  const announce = (text, look = "") => {
    note.textContent = text;
    note.className = `mg-note ${look}`;
  };

  // What a move would do; the kernels that would wait for each other, or the one that cannot be, are marked.
  const foretell = (move, words) => {
    const [problem] = move.answer.problems;
    const stays = (k) => [...move.next[k]].find((i) => !move.moving.includes(i));
    const marked = (problem?.circle ?? []).map((k) => kernels.findIndex((kernel) => kernel.has(stays(k))));
    highlight(place, "mg-circle", marked.map(cardAt));
    return problem ? announce(`${words}: not possible: ${problem.why}${marked.length > 1 ? marked.map(nameOf).join(", ") : ""}`, "mg-no") : announce(`${words}: ${against(move.answer)}`);
  };
  const cardAt = (k) => place.querySelector(`.mg-card[data-kernel="${k}"]`);

  const set = (next, text, look) => { history.push(kernels); kernels = next; draw(); announce(text, look); };
  const undo = make("button", { onclick: () => { kernels = history.pop(); draw(); announce("undone"); } }, "undo");
  const note = make("div", { class: "mg-note", "aria-live": "polite" });
  const bar = make("div", { class: "mg-bar" }, undo,
    make("button", { onclick: () => set(compiled, "the compiler's own partition") }, "as compiled"),
    make("button", { onclick: () => set(alone(), `each operation that the passes left, in a kernel of its own${parts ? "; a sum in several parts has two" : ""}`) }, "begin from nothing"), score, paragraph("Green: a reduction. Thick border: must be stored."));

  const pick = (event, moving, from) => {
    held = { moving, from, to: from, copy: event.shiftKey };
    announce(`${listed(tables.items, moving)} picked up: arrows choose a kernel, Enter puts it there, c computes it in both, Escape lets go`);
  };
  const aim = (to) => {
    held.to = to;
    const card = cardAt(to), move = tried(to);
    foretell(move, `${held.copy ? "also in" : "into"} ${nameOf(to)}`);
    highlight(place, "mg-aim", [card]);
    highlight(place, "mg-cannot", move.why ? [card] : []);
    card.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const put = () => {
    const { moving, to, copy } = held, move = tried(to), name = listed(tables.items, moving);
    letGo();
    if (move.why) return foretell(move, name);
    set(move.next, `${name} ${copy ? "is computed in" : "moved to"} ${nameOf(to)}: ${against(move.answer)}`, "mg-yes");
    return place.querySelector(`[data-item="${moving[0]}"]`)?.focus();
  };
  const letGo = () => {
    held = null;
    for (const look of ["mg-aim", "mg-cannot", "mg-circle"]) highlight(place, look, []);
  };

  const grab = (event, chip, moving, from) => {
    if (event.button) return;
    event.preventDefault();
    chip.focus({ preventScroll: true });
    chip.setPointerCapture(event.pointerId);
    let begun = false, over = null;
    chip.onpointermove = (e) => {
      if (begun ? !held : Math.hypot(e.clientX - event.clientX, e.clientY - event.clientY) < 4) return;
      if (!begun) pick(event, moving, from);
      begun = true;
      const card = document.elementFromPoint(e.clientX, e.clientY)?.closest(".mg-card"), before = over;
      over = place.contains(card) ? +card.dataset.kernel : null;
      if (over !== null && over !== before) aim(over);
    };
    chip.onpointerup = () => { if (begun && held && over !== null) put(); };
    chip.onlostpointercapture = () => { chip.onpointermove = null; if (held) letGo(); };
  };

  const keysOf = (event, moving, from) => {
    const press = held ? put : () => pick(event, moving, from), cards = [...place.children];
    const by = (steps) => () => aim(+cards.at((cards.indexOf(cardAt(held.to)) + steps) % cards.length).dataset.kernel);
    return { Enter: press, " ": press, ...(held && {
      ArrowRight: by(1), ArrowDown: by(1), ArrowLeft: by(-1), ArrowUp: by(-1), Escape: letGo,
      c: () => { held.copy = !held.copy; aim(held.to); },
    }) };
  };

  const movable = (button, moving, from) => {
    button.addEventListener("pointerdown", (event) => grab(event, button, moving, from));
    onKeys(button, (event) => keysOf(event, moving, from));
    button.addEventListener("blur", letGo);
    return button;
  };

  const light = (item) => {
    const reads = (one, other) => tables.items[one]?.reads.some(([source]) => source === other) ?? false;
    const chips = [...place.querySelectorAll(".mg-chip")];
    highlight(place, "mg-feeds", chips.filter(({ dataset }) => reads(item, +dataset.item)));
    highlight(place, "mg-reads", chips.filter(({ dataset }) => reads(+dataset.item, item)));
  };

  const chipOf = (i, k) => {
    const { name, type, kind, kept } = tables.items[i], times = kernels.filter((kernel) => kernel.has(i)).length, twice = times > 1;
    const about = `${name}, ${type}, in kernel ${k}${kept ? ", which must be stored" : ""}${twice ? ", computed in several" : ""}`;
    const chip = make("button", { class: `mg-chip mg-chip-${kind}${kept ? " mg-kept" : ""}`, "data-item": i, "data-kernel": k, "aria-label": about, title: about },
      name, twice && make("sup", {}, ` ×${times}`));
    onPoint(chip, () => light(i), () => light(null));
    return movable(chip, [i], k);
  };

  // A sum that is not in parts is complete as soon as it is computed.
  const storedAs = ({ name, idle, reads }) => (idle ? tables.items[reads[0][0]].name : name);

  // What a card reads or writes: each value, or all bytes where a branch reads less, and the rounds of a loop more.
  const traffic = (what, list, all) => make("div", { class: "mg-traffic" }, make("strong", {}, what), " ",
    sumOf(list) !== all ? `${bytesText(all)} in all` : list.length ? list.map(([i, size]) => `${storedAs(tables.items[i])} ${bytesText(size)}`).join(", ") : "nothing");

  const cardOf = (card, k) => {
    const { kind, by } = tables.items[card.members[0]], library = kind === "library";
    const members = [...card.members].sort((a, b) => a - b);
    const head = make("button", { class: "mg-cardhead", "data-kernel": k, "aria-label": `all of kernel ${k}, ${members.length} operations` },
      make("strong", {}, `kernel ${k}${by ? `, ${library ? by : "a product"}` : ""}`), make("span", {}, `level ${card.level}`), make("span", {}, bytesText(card.bytes)));
    return make("div", { class: `mg-card${library ? " mg-card-library" : ""}`, "data-kernel": k },
      movable(head, members, k), make("div", { class: "mg-chips" }, ...members.map((i) => chipOf(i, k))), traffic("reads", card.reads, card.takes[0]), traffic("writes", card.writes, card.takes[1]));
  };

  const draw = () => {
    const answer = judge(kernels), [, copied, copies] = tables.copied;
    const order = answer.cards.map((card, k) => [card, k]).sort((a, b) => a[0].level - b[0].level || a[1] - b[1]);
    const own = make("div", { class: "mg-card mg-own", "data-kernel": kernels.length }, "a kernel of its own");
    place.replaceChildren(...order.filter(([{ idle }]) => !idle).map(([card, k]) => cardOf(card, k)), own);
    score.replaceChildren(make("strong", {}, `${launchesText(answer.launches)}, ${bytesText(answer.bytes)}`), `${copied ? `, with ${copies}: ${bytesText(copied)}` : ""} · ${compared(answer, best, "compiled")}${answer.blocks ? " · in blocks of rows; the cards count whole products" : ""}`);
    disable(undo, !history.length);
    element.dataset.bytes = answer.bytes;
    element.dataset.launches = answer.launches;
  };

  element.append(bar, note, place);
  draw();
  announce("Drag an operation, or the head of a kernel, to another kernel; by keys: Tab to it, Enter, arrows, Enter. With Shift it is computed in both.");
  return element;
};
