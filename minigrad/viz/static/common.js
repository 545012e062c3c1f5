// What all views share: making elements, a canvas that moves and grows, keys.

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
};

// The root of a view.  JupyterLab leaves keys alone that are pressed inside it: without the attribute, x deletes the cell.
const rootOf = (parent, label) => {
  const root = make("div", {
    class: "mg-view", tabindex: "0", role: "application", "aria-label": label, "data-lm-suppress-shortcuts": "true",
  });
  parent.replaceChildren(root);
  return root;
};

// A picture that can be dragged and zoomed.  `fit` shows all of it, `reveal` brings an element into sight.
const canvasOf = (svgText) => {
  const holder = make("div", { class: "mg-canvas" });
  holder.innerHTML = svgText; // ours: every name in it is escaped where it is drawn
  const svg = holder.querySelector("svg");
  const size = svg.viewBox.baseVal;
  const [width, height] = [size.width, size.height];
  svg.removeAttribute("style");
  let scale = 1;
  const zoom = (to, x = holder.clientWidth / 2, y = holder.clientHeight / 2) => {
    const old = scale;
    scale = Math.min(3, Math.max(0.1, to));
    const [left, top] = [(holder.scrollLeft + x) / old, (holder.scrollTop + y) / old];
    svg.setAttribute("width", width * scale);
    svg.setAttribute("height", height * scale);
    holder.scrollLeft = left * scale - x;
    holder.scrollTop = top * scale - y;
  };
  const fit = () => {
    const room = [holder.clientWidth - 4, (holder.clientHeight || 480) - 4];
    zoom(Math.min(1.25, Math.max(0.45, Math.min(room[0] / width, room[1] / height))));
  };
  const reveal = (element) => {
    if (!element) return;
    const [box, frame] = [element.getBoundingClientRect(), holder.getBoundingClientRect()];
    const margin = 30;
    if (box.left < frame.left + margin) holder.scrollLeft -= frame.left + margin - box.left;
    if (box.right > frame.right - margin) holder.scrollLeft += box.right - frame.right + margin;
    if (box.top < frame.top + margin) holder.scrollTop -= frame.top + margin - box.top;
    if (box.bottom > frame.bottom - margin) holder.scrollTop += box.bottom - frame.bottom + margin;
  };
  holder.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = holder.getBoundingClientRect();
    zoom(scale * (event.deltaY < 0 ? 1.12 : 1 / 1.12), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });
  let held = null;
  holder.addEventListener("pointerdown", (event) => {
    if (!event.target.closest(".mg-box")) held = [event.clientX + holder.scrollLeft, event.clientY + holder.scrollTop];
  });
  holder.addEventListener("pointermove", (event) => {
    if (held) [holder.scrollLeft, holder.scrollTop] = [held[0] - event.clientX, held[1] - event.clientY];
  });
  for (const name of ["pointerup", "pointerleave"]) holder.addEventListener(name, () => { held = null; });
  return { holder, svg, fit, reveal, zoom: (by) => zoom(scale * by) };
};

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

