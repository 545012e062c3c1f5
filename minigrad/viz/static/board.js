// Moving operations between kernels.  The tables contain what each operation reads, how, and how many bytes.  This script
// adds the bytes up for a given partition, and refuses what the compiler would refuse, with the same reasons.

// The cost of a partition, and its problems.  `kernels` are sets of the numbers of items.
const judged = (tables, kernels) => {
  const { items, copied, most } = tables;
  const home = homesOf(kernels);
  const problems = [], wanted = new Set(), after = kernels.map(() => new Set());
  const named = (number) => items[number].name;
  const cards = kernels.map((kernel, k) => {
    const members = [...kernel];
    const reads = new Map(); // item -> view -> bytes
    const refuse = (why) => problems.push({ kernel: k, why });
    const elements = Math.max(...members.map((i) => items[i].size));
    const isAcross = (i) => items[i].kind === "reduce" && !(items[i].rows && items[i].size === elements);
    const rows = new Set(members.filter((i) => items[i].rows && items[i].size === elements).map((i) => items[i].rows));
    for (const i of members) {
      if (items[i].kind === "library" && members.length > 1) refuse(`${named(i)} can't be in a kernel with others: ${items[i].why}`);
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
    return { members, reads };
  });
  const levels = new Map();
  for (let waiting = kernels.map((_, k) => k); waiting.length;) {
    const ready = waiting.filter((k) => [...after[k]].every((other) => levels.has(other)));
    if (!ready.length) {
      const circle = circleOf(waiting, after);
      const few = (k) => { const all = [...kernels[k]].map(named); return all.length > 4 ? `${all.slice(0, 3).join(", ")} and ${all.length - 3} more` : all.join(", "); };
      problems.push({ kernel: circle[0], circle, why: `kernels would wait for each other: ${circle.map(few).join(" and ")}` });
      for (const k of waiting) levels.set(k, 0);
      break;
    }
    for (const k of ready) levels.set(k, Math.max(0, ...[...after[k]].map((other) => levels.get(other) + 1)));
    waiting = waiting.filter((k) => !levels.has(k));
  }
  let bytes = copied[1], launches = copied[0];
  cards.forEach((card, k) => {
    const only = items[card.members[0]];
    card.level = levels.get(k);
    card.reads = [...card.reads].map(([source, views]) => [source, Math.min([...views.values()].reduce((a, b) => a + b, 0), items[source].bytes)]);
    card.writes = card.members.filter((i) => home.get(i) === k && (items[i].kept || wanted.has(i))).map((i) => [i, items[i].bytes]);
    card.bytes = only.kind === "library" ? only.takes : [...card.reads, ...card.writes].reduce((sum, [, size]) => sum + size, 0);
    // A kernel that only combines the results of a single chunk need not run: these are final.
    card.idle = card.members.every((i) => items[i].idle);
    if (card.idle) card.bytes = 0;
    bytes += card.bytes;
    launches += only.launches ?? Number(!card.idle); // a part of several results takes none
  });
  return { cards, problems, bytes, launches };
};

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

const readersOf = (items) => {
  const readers = items.map(() => []);
  items.forEach((item, i) => { for (const [source] of item.reads) readers[source].push(i); });
  return readers;
};

// A kernel, with a tag by which it is known after moves.
const tagged = (items, tag = {}) => Object.assign(new Set(items), { tag });

// Remove items that are not needed: an item stays if its kernel reads it, or stores it for other kernels.
const pruned = (tables, kernels) => {
  const readers = tables.readers ??= readersOf(tables.items);
  let left = kernels.map((kernel) => tagged(kernel, kernel.tag)).filter((kernel) => kernel.size);
  for (let again = true; again;) {
    again = false;
    const home = homesOf(left);
    left.forEach((kernel, k) => {
      for (const i of kernel) {
        const here = readers[i].some((reader) => kernel.has(reader));
        const there = home.get(i) === k && (tables.items[i].kept || tables.items[i].kind === "library"
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
  const compiled = tables.kernels.map((items) => tagged(items));
  const alone = () => pruned(tables, tables.items.flatMap((item, i) => (item.kind === "input" ? [] : [new Set([i])])));
  let kernels = compiled, history = [], held = null;
  const best = judged(tables, compiled);

  const moved = (moving, from, to, copy) => {
    const next = kernels.map((kernel) => tagged(kernel, kernel.tag));
    if (!copy) for (const i of moving) next[from].delete(i);
    if (to === next.length) next.push(tagged([]));
    for (const i of moving) next[to].add(i);
    return pruned(tables, next);
  };

  // The partition after a move, or the reason why the move is refused.
  const tried = (moving, from, to, copy) => {
    if (from === to) return { same: true, why: "it is there already" };
    const next = moved(moving, from, to, copy);
    const answer = judged(tables, next);
    return { next, answer, why: answer.problems.length ? answer.problems[0].why : "" };
  };

  const nameOf = (k) => (k === kernels.length ? "a kernel of its own" : `kernel ${k}`);
  const listed = (moving) => (moving.length > 3 ? `${moving.length} operations` : moving.map((i) => tables.items[i].name).join(", "));
  const against = (answer) => {
    const now = judged(tables, kernels);
    const change = answer.bytes - now.bytes;
    const traffic = change ? `${bytesText(Math.abs(change))} ${change > 0 ? "more" : "less"} memory traffic` : "as much memory traffic";
    return `${launchesText(answer.launches)}, ${traffic}`;
  };

  const drop = (moving, from, to, copy) => {
    const move = tried(moving, from, to, copy);
    if (move.why) return foretell(move, listed(moving));
    const said = `${listed(moving)} ${copy ? "is computed in" : "moved to"} ${nameOf(to)}: ${against(move.answer)}`;
    set(move.next, said, "mg-yes");
    return focus(moving[0]);
  };

  const announce = (text, look = "") => {
    note.textContent = text;
    note.className = `mg-note ${look}`;
  };

  // What a move would do; the kernels that would wait for each other, or the one that cannot be, are marked.
  const foretell = (move, words) => {
    unmark("mg-circle");
    if (move.same) return announce(`${words}: ${move.why}`);
    const [problem] = move.answer.problems;
    for (const k of problem ? problem.circle ?? [problem.kernel] : []) {
      cardAt(kernels.findIndex((kernel) => kernel.tag === move.next[k].tag))?.classList.add("mg-circle");
    }
    return problem ? announce(`${words}: not possible: ${problem.why}`, "mg-no") : announce(`${words}: ${against(move.answer)}`);
  };
  const cardAt = (k) => place.querySelector(`.mg-card[data-kernel="${k}"]`);
  const unmark = (...marks) => { for (const card of place.children) card.classList.remove(...marks); };

  const focus = (item) => place.querySelector(`[data-item="${item}"]`)?.focus();

  const set = (next, text, look) => { history.push(kernels); kernels = next; draw(); announce(text, look); };
  const undo = make("button", { onclick: () => { kernels = history.pop(); draw(); announce("undone"); } }, "undo");
  const note = make("div", { class: "mg-note", "aria-live": "polite" });
  const bar = make("div", { class: "mg-boardbar" }, undo,
    make("button", { onclick: () => set(compiled, "the compiler's own partition") }, "as compiled"),
    make("button", { onclick: () => set(alone(), "each operation in a kernel of its own: can you do as well as the compiler?") }, "begin from nothing"), score);

  // dragging ----------------------------------------------------------------------------------------------------------
  const grab = (event, chip, moving, from) => {
    if (event.button) return;
    event.preventDefault();
    chip.focus({ preventScroll: true });
    const start = [event.clientX, event.clientY];
    let ghost = null, over = null;
    const copy = event.altKey || event.shiftKey;
    const begin = () => {
      ghost = make("div", { class: "mg-ghost" }, listed(moving));
      element.append(ghost);
      const left = [...place.querySelectorAll(".mg-card")];
      const mark = () => { // a few at a time, so that dragging never waits
        for (const card of left.splice(0, 8)) {
          const move = tried(moving, from, +card.dataset.kernel, copy);
          if (!move.same) card.classList.add(move.why ? "mg-cannot" : "mg-can");
        }
        if (left.length && ghost.isConnected) requestAnimationFrame(mark);
      };
      mark();
    };
    const follow = (e) => {
      if (!ghost && Math.hypot(e.clientX - start[0], e.clientY - start[1]) < 4) return;
      if (!ghost) begin();
      const frame = element.getBoundingClientRect();
      ghost.style.transform = `translate(${e.clientX - frame.left + 10}px, ${e.clientY - frame.top + 8}px)`;
      const card = document.elementFromPoint(e.clientX, e.clientY)?.closest?.(".mg-card");
      const to = card && place.contains(card) ? +card.dataset.kernel : null;
      if (to === over) return;
      over = to;
      if (over === null) return;
      const move = tried(moving, from, over, copy);
      ghost.className = `mg-ghost ${move.same ? "" : move.why ? "mg-cannot" : "mg-can"}`;
      foretell(move, `into ${nameOf(over)}`);
    };
    const end = (e) => {
      removeEventListener("pointermove", follow);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
      ghost?.remove();
      unmark("mg-can", "mg-cannot", "mg-circle");
      if (ghost && over !== null && e.type === "pointerup") drop(moving, from, over, copy);
    };
    addEventListener("pointermove", follow);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
  };

  // by keys -----------------------------------------------------------------------------------------------------------
  const keys = (event, moving, from) => {
    if (event.ctrlKey || event.metaKey) return;
    const done = () => { event.preventDefault(); event.stopPropagation(); };
    if (!held) {
      if (event.key !== "Enter" && event.key !== " ") return;
      done();
      held = { moving, from, to: from, copy: event.altKey || event.shiftKey };
      announce(`${listed(moving)} picked up: arrows choose a kernel, Enter puts it there, c computes it in both, Escape lets go`);
      return;
    }
    const count = kernels.length + 1;
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    if (event.key in steps) held.to = (held.to + steps[event.key] + count) % count;
    else if (event.key === "c") held.copy = !held.copy;
    else if (event.key === "Escape" || event.key === "Tab") { letGo(); return event.key === "Escape" && done(); }
    else if (event.key === "Enter" || event.key === " ") {
      done();
      const { moving: what, from: where, to, copy } = held;
      letGo();
      return drop(what, where, to, copy);
    } else return;
    done();
    const move = tried(held.moving, held.from, held.to, held.copy), card = cardAt(held.to);
    foretell(move, `${held.copy ? "also in" : "into"} ${nameOf(held.to)}`);
    unmark("mg-aim", "mg-can", "mg-cannot");
    card.classList.add("mg-aim", move.why ? "mg-cannot" : "mg-can");
    card.scrollIntoView({ block: "nearest", inline: "nearest" });
  };

  const letGo = () => {
    held = null;
    unmark("mg-aim", "mg-can", "mg-cannot", "mg-circle");
  };

  // drawing -----------------------------------------------------------------------------------------------------------
  const light = (item) => {
    for (const chip of place.querySelectorAll(".mg-chip")) {
      const other = +chip.dataset.item;
      const feeds = item !== null && tables.items[item].reads.some((read) => read[0] === other);
      const reads = item !== null && tables.items[other].reads.some((read) => read[0] === item);
      chip.classList.toggle("mg-feeds", feeds);
      chip.classList.toggle("mg-reads", reads);
    }
  };

  const chipOf = (i, k) => {
    const item = tables.items[i];
    const times = kernels.filter((kernel) => kernel.has(i)).length;
    const twice = times > 1;
    const chip = make("button", {
      class: `mg-chip mg-chip-${item.kind}${item.kept ? " mg-kept" : ""}`, "data-item": i, "data-kernel": k,
      "aria-label": `${item.name}, ${item.type}, in kernel ${k}${twice ? ", computed in several" : ""}`,
      title: `${item.name}, ${item.type}${item.kept ? ", which must be stored" : ""}${twice ? ", computed in several kernels" : ""}`,
    }, item.name, ...(twice ? [make("sup", {}, ` ×${times}`)] : []));
    chip.addEventListener("pointerdown", (event) => grab(event, chip, [i], k));
    chip.addEventListener("keydown", (event) => keys(event, [i], k));
    onPoint(chip, () => light(i), () => light(null));
    chip.addEventListener("blur", () => { if (held) letGo(); });
    return chip;
  };

  const traffic = (what, list) => make("div", { class: "mg-traffic" }, make("span", {}, what), " ",
    list.length ? list.map(([i, size]) => `${tables.items[i].name} ${bytesText(size)}`).join(", ") : "nothing");

  const cardOf = (card, k) => {
    const library = tables.items[card.members[0]].kind === "library";
    const members = [...card.members].sort((a, b) => a - b);
    const head = make("button", { class: "mg-cardhead", "data-kernel": k, "aria-label": `all of kernel ${k}, ${members.length} operations` },
      make("strong", {}, library ? "library" : `kernel ${k}`), make("span", {}, `level ${card.level}`), make("span", {}, bytesText(card.bytes)));
    head.addEventListener("pointerdown", (event) => grab(event, head, members, k));
    head.addEventListener("keydown", (event) => keys(event, members, k));
    return make("div", { class: `mg-card${library ? " mg-card-library" : ""}`, "data-kernel": k },
      head, make("div", { class: "mg-chips" }, ...members.map((i) => chipOf(i, k))), traffic("reads", card.reads), traffic("writes", card.writes));
  };

  const draw = () => {
    const answer = judged(tables, kernels);
    const order = answer.cards.map((card, k) => [card, k]).sort((a, b) => a[0].level - b[0].level || a[1] - b[1]);
    const own = make("div", { class: "mg-card mg-own", "data-kernel": kernels.length }, "a kernel of its own");
    place.replaceChildren(...order.map(([card, k]) => cardOf(card, k)), own);
    const [more, launches] = [answer.bytes - best.bytes, answer.launches - best.launches];
    const compared = !more && !launches ? "the same as compiled" : `${bytesText(Math.abs(more))} ${more < 0 ? "less" : "more"}, ${launchesText(Math.abs(launches))} ${launches < 0 ? "fewer" : "more"} than compiled`;
    score.replaceChildren(make("strong", {}, `${launchesText(answer.launches)}, ${bytesText(answer.bytes)}`), ` of memory traffic · ${compared}`);
    undo.disabled = !history.length;
    element.dataset.bytes = answer.bytes;
    element.dataset.launches = answer.launches;
  };

  element.append(bar, note, place);
  draw();
  announce("Drag an operation, or the head of a kernel, to another kernel; by keys: Tab to it, Enter, arrows, Enter. With Shift it is computed in both.");
  return element;
};
