
// In the output of a notebook: the view takes the place of the picture, which stays where scripts may not run.
const places = [...document.querySelectorAll(`[data-mg="${key}"]:not([data-mg-live])`)];
for (const place of places) place.setAttribute("data-mg-live", "");
const fill = (read) => {
  for (const place of places) {
    const holder = make("div");
    place.replaceChildren(make("style", {}, style), holder);
    for (const name of ["keydown", "keyup", "keypress"]) place.addEventListener(name, (event) => event.stopPropagation());
    showAll(holder, read);
  }
};
if (data instanceof Promise) data.then(fill);
else fill(data);
