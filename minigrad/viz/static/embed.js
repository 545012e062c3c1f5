// In the output of a notebook: `picture` ran this script, and the view takes the place of what surrounds the picture.
const holder = picture.parentElement;
for (const name of ["keydown", "keyup", "keypress"]) holder.addEventListener(name, (event) => event.stopPropagation());
const place = make("div");
holder.replaceChildren(make("style", {}, style), place);
showAll(place, data);
