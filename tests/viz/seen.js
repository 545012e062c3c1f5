// What is wrong with the page as it is drawn: lists of sentences by kind.  `tests/viz/seen.py` runs it.
(limits) => {
  const problems = { small: [], cut: [], overlap: [], contrast: [], unnamed: [], unreachable: [], silent: [] };
  const views = [...document.querySelectorAll(".mg-view[role=application]")];
  const say = (text) => text.trim().replace(/\s+/g, " ").slice(0, 60);
  const rectOf = (element) => element.getBoundingClientRect();
  const styleOf = (element) => getComputedStyle(element);

  const isSeen = (element) => {
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
    const rect = rectOf(element);
    return rect.width > 0.5 && rect.height > 0.5 && !element.closest(".mg-sr, details:not([open]) > :not(summary)");
  };
  const ownText = (element) => [...element.childNodes].filter((n) => n.nodeType === 3 && n.data.trim()).map((n) => n.data).join(" ");
  const all = [...document.querySelectorAll("body *")].filter((e) => !["SCRIPT", "STYLE", "title", "TITLE"].includes(e.tagName));
  const texts = all.filter((e) => ownText(e) && isSeen(e) && e.tagName !== "OPTION");
  const scaleOf = (element) => (element instanceof SVGElement && element.getScreenCTM ? Math.hypot(element.getScreenCTM().b, element.getScreenCTM().d) : 1);

  // Whether the element is behind the edge of something that scrolls, so that it is not seen now.
  const scrolledOut = (element) => {
    const rect = rectOf(element);
    for (let up = element.parentElement; up; up = up.parentElement) {
      if (up instanceof SVGElement || !/auto|scroll|hidden|clip/.test(styleOf(up).overflow)) continue;
      const frame = rectOf(up);
      if (rect.right < frame.left + 2 || rect.left > frame.right - 2 || rect.bottom < frame.top + 2 || rect.top > frame.bottom - 2) return true;
    }
    return false;
  };

  // text of a readable size
  for (const element of texts) {
    const size = parseFloat(styleOf(element).fontSize) * scaleOf(element);
    if (size < limits.size - 0.05) problems.small.push(`${size.toFixed(1)} px: ${say(ownText(element))}`);
  }

  // nothing wider than its frame, without a sign
  if (document.documentElement.scrollWidth > innerWidth + 1) {
    problems.cut.push(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${innerWidth} px`);
  }
  for (const element of all) {
    if (!isSeen(element) || element instanceof SVGElement) continue;
    const style = styleOf(element);
    const over = element.scrollWidth - element.clientWidth;
    const isHolder = element.matches(".mg-canvas");
    if (isHolder && (over > 2 || element.scrollHeight - element.clientHeight > 2)) {
      const sign = element.parentElement.querySelector(".mg-beyond");
      if (!sign || sign.hidden) problems.cut.push("a picture is larger than its frame, and no sign says so");
    } else if (over > 2 && /hidden|clip/.test(style.overflowX) && style.textOverflow !== "ellipsis" && element.clientWidth > 0) {
      problems.cut.push(`${over} px of ${element.className || element.tagName} are cut off`);
    }
  }
  for (const element of texts) {
    const svg = element.closest("svg");
    if (svg && !element.closest(".mg-legends")) {
      const [rect, frame] = [rectOf(element), rectOf(svg)];
      const beyond = Math.max(frame.left - rect.left, rect.right - frame.right, frame.top - rect.top, rect.bottom - frame.bottom);
      if (beyond > 2) problems.cut.push(`${beyond.toFixed(0)} px of a text are outside its picture: ${say(ownText(element))}`);
    } else if (!svg) {
      const [rect, view] = [rectOf(element), element.closest(".mg-view, body")];
      const scrolls = (e) => e && e !== document.body && (/auto|scroll/.test(styleOf(e).overflowX) || scrolls(e.parentElement));
      if (rect.right > rectOf(view).right + 2 && !scrolls(element)) problems.cut.push(`wider than the view: ${say(ownText(element))}`);
    }
  }

  // no text on another one
  for (const svg of document.querySelectorAll("svg")) {
    if (!isSeen(svg)) continue;
    const placed = texts.filter((e) => e.closest("svg") === svg).map((e) => [e, rectOf(e)]).sort((a, b) => a[1].left - b[1].left);
    placed.forEach(([one, a], i) => {
      for (let k = i + 1; k < placed.length && placed[k][1].left < a.right - 2; k += 1) {
        const [other, b] = placed[k];
        const [wide, high] = [Math.min(a.right, b.right) - Math.max(a.left, b.left), Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)];
        // the box of a text is higher than its letters
        if (wide > 2 && high > 0.4 * Math.min(a.height, b.height)) problems.overlap.push(`${say(ownText(one))} / ${say(ownText(other))}`);
      }
    });
  }

  // contrast: the colour of a text, and what is painted below it
  const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (css) => {
    if (!known.has(css)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = "#000";
      pen.fillStyle = css;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      known.set(css, [r, g, b, a / 255]);
    }
    return known.get(css);
  };
  const over = ([r, g, b, a], below, opacity = 1) => [r, g, b].map((x, i) => x * a * opacity + below[i] * (1 - a * opacity));
  const bright = (colour) => {
    const [r, g, b] = colour.map((x) => x / 255).map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [a, b] = [bright(one), bright(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const opacityOf = (element, top) => {
    let product = 1;
    for (let up = element; up && up !== top; up = up.parentElement) product *= +styleOf(up).opacity;
    return product;
  };
  const groundOf = (element) => { // of the page
    const chain = [];
    for (let up = element; up; up = up.parentElement) if (!(up instanceof SVGElement)) chain.unshift(up);
    let colour = rgba(styleOf(document.documentElement).colorScheme.includes("dark") && matchMedia("(prefers-color-scheme: dark)").matches ? "#121212" : "#fff").slice(0, 3);
    for (const each of chain) colour = over(rgba(styleOf(each).backgroundColor), colour);
    return colour;
  };
  const shapes = new Map();
  const shapesOf = (svg) => {
    if (!shapes.has(svg)) {
      const found = [...svg.querySelectorAll("rect, path, circle, ellipse, polygon")].map((shape) => ({ shape, rect: rectOf(shape), style: styleOf(shape) }));
      shapes.set(svg, found.filter(({ rect, style }) => rect.width > 3 && rect.height > 3 && style.fill !== "none" && style.visibility !== "hidden"));
    }
    return shapes.get(svg);
  };
  const underText = (element) => {
    const svg = element.closest("svg");
    let colour = groundOf(svg.parentElement);
    const rect = rectOf(element);
    const [x, y] = [rect.left + rect.width / 2, rect.top + rect.height / 2];
    for (const { shape, rect: r, style } of shapesOf(svg)) {
      if (x < r.left || x > r.right || y < r.top || y > r.bottom) continue;
      if (!(shape.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
      if (!shape.isPointInFill(new DOMPoint(x, y).matrixTransform(shape.getScreenCTM().inverse()))) continue;
      colour = over(rgba(style.fill), colour, +style.fillOpacity * opacityOf(shape, svg.parentElement));
    }
    const halo = styleOf(element);
    if (halo.paintOrder.startsWith("stroke") && halo.stroke !== "none" && parseFloat(halo.strokeWidth) >= 2) colour = over(rgba(halo.stroke), colour);
    return colour;
  };
  for (const element of texts) {
    if (element.closest(":disabled") || scrolledOut(element)) continue;
    const isDrawn = element instanceof SVGElement;
    const below = isDrawn ? underText(element) : groundOf(element);
    const style = styleOf(element);
    const colour = over(rgba(isDrawn ? style.fill : style.color), below, opacityOf(element, document.documentElement) * (isDrawn ? +style.fillOpacity : 1));
    const size = parseFloat(style.fontSize) * scaleOf(element);
    const least = size >= 24 || (size >= 18.6 && +style.fontWeight >= 600) ? 3 : limits.contrast;
    const found = ratio(colour, below);
    if (found < least - 0.02) problems.contrast.push(`${found.toFixed(2)}: ${say(ownText(element))} (${colour.map(Math.round)} on ${below.map(Math.round)})`);
  }

  // by keyboard alone: what can be clicked has the focus at some time, and a name
  const focusable = "button, input, select, a[href], summary, textarea, [tabindex]:not([tabindex='-1'])";
  for (const element of document.querySelectorAll(focusable)) {
    if (!isSeen(element) || element.matches(".mg-canvas")) continue;
    const name = element.getAttribute("aria-label") || element.labels?.[0]?.textContent || element.textContent || element.title;
    if (!name?.trim()) problems.unnamed.push(`${element.tagName} ${element.getAttribute("class") ?? ""}`);
  }
  for (const element of all) {
    if (!isSeen(element) || styleOf(element).cursor !== "pointer") continue;
    if (element.parentElement && styleOf(element.parentElement).cursor === "pointer") continue; // inherited
    if (element.closest("[role=button][tabindex='-1'][aria-label]")) continue; // arrow keys lead from one to the next
    if (element.matches("label, option, :disabled") || element.closest(focusable)?.closest(".mg-view > *, header") || element.querySelector(focusable)) continue;
    problems.unreachable.push(`${element.tagName} ${element.getAttribute("class") ?? ""}: ${say(element.textContent)}`);
  }
  for (const view of views) if (!view.querySelector("[aria-live]")) problems.silent.push("a view without a sentence that is read aloud");
  return Object.fromEntries(Object.entries(problems).filter(([, found]) => found.length).map(([kind, found]) => [kind, [...new Set(found)]]));
}
