// In the output of a notebook.  Jupyter gives the place as `element`, which may be wrapped; elsewhere, the script is in it.
const given = typeof element === "undefined" ? document.currentScript?.parentElement : element;
const holder = make("div", { class: "mg-embed" });
(given?.[0] ?? given ?? document.body).append(holder);
for (const name of ["keydown", "keyup", "keypress"]) holder.addEventListener(name, (event) => event.stopPropagation());
const data = await unpacked(packed); // after this, `document.currentScript` is not known any more
const place = make("div");
holder.replaceChildren(make("style", {}, style), place);
showAll(place, data);
