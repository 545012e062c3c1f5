// What was written and what it became, the stages of the compiler, and a board; Python computed everything.

const HELP = [
  ["↑ ↓", "from kernel to kernel, or from line to line of a stage"], ["o", "open all rows"],
  ["← →", "one stage back, one stage on"], ["Home End", "as you wrote it, a second call"], ["n", "the next line that changed"], ["m", "move operations"],
  ["Esc", "choose nothing"],
];

const show = (parent, data, shared = ALONE) => {
  const { root, helps, stage, side, read, say, listen } = shellOf(parent, data.about, HELP);
  const describe = (...said) => {
    say(...said);
    requestAnimationFrame(() => { side.scrollTop = 0; }); // at once, it would make the browser place a new picture twice
  };
  const stages = stagesOf(data, describe), last = stages.stages.length - 1, written = writtenOf(data.written, describe, read, stages);
  const pager = pagerOf((to) => go(to), "stage");
  let at = Math.min(shared.get(), last), tab = at ? "stages" : "written"; // the picture that matters is the first one
  let board = null; // made when it is first looked at

  const pages = {
    written: { title: "as written → fused", ...written, look: "mgw-stage" },
    stages: {
      title: "stages", element: stages.element, tools: pager.turning, keys: { n: stages.nextChange }, leave: () => stages.keep(null),
      paint: () => { stages.only(null); pager.paint(at, last, `${at + 1} / ${last + 1}  ${stages.stages[at].name}`); stages.paint(at); },
    },
    move: { title: "move operations", get element() { return (board ??= boardOf(data.board)); }, tools: [], leave: () => turnTo("written"), look: "mg-alone" },
  };
  const tabs = Object.entries(pages).map(([name, { title }]) => make("button", { "data-tab": name, onclick: () => turnTo(name) }, title));
  const tools = make("span", { class: "mg-tools" });
  root.prepend(make("div", { class: "mg-bar" }, ...tabs, tools, space(), helps));

  const turnTo = (name) => {
    if (stage.contains(root.getRootNode().activeElement)) root.focus({ preventScroll: true }); // the element with the focus is replaced
    tab = name;
    const page = pages[tab];
    stage.className = `mg-stage ${page.look ?? ""}`;
    stage.replaceChildren(page.element, ...(tab === "move" ? [] : [side]));
    tools.replaceChildren(...page.tools);
    askFor(stage, Math.max(420, Math.min(640, 22 * data.rows.length + 60)), 640);
    for (const button of tabs) button.setAttribute("aria-pressed", String(button.dataset.tab === tab));
    Object.assign(root.dataset, { tab, step: at });
    page.paint?.();
  };

  const go = (to, share = true) => { // from another page, first to the stage that was seen last
    at = tab === "stages" || !share ? Math.max(0, Math.min(last, to)) : at;
    root.dataset.step = at;
    if (tab === "stages") pages.stages.paint(); else turnTo("stages");
    if (share) shared.set(at);
  };

  listen(() => ({
    ...(tab === "move" ? {} : { ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), Home: () => go(0), End: () => go(last) }),
    m: () => turnTo(tab === "move" ? "written" : "move"), Escape: () => { pages[tab].leave(); root.focus(); }, ...pages[tab].keys,
  }));

  turnTo(tab);
  return { go };
};
