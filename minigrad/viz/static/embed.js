// In the output of a notebook: the view replaces the picture, which remains where no script runs.
const places = [...document.querySelectorAll(`[data-mg="${key}"]:not([data-mg-live])`)];
for (const place of places) place.setAttribute("data-mg-live", "");
const data = await unpacked(packed);
for (const place of places) {
  const holder = make("div");
  place.replaceChildren(make("style", {}, style), holder);
  for (const name of ["keydown", "keyup", "keypress"]) place.addEventListener(name, (event) => event.stopPropagation());
  showAll(holder, data);
}
