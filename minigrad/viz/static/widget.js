
// What anywidget looks for.  `showAll` calls the view's own function `show`, which is given where to say which step is seen.
export default {
  render({ model, el }) {
    const told = { get: () => model.get("step"), set: (step) => { model.set("step", step); model.save_changes(); } };
    const view = showAll(el, model.get("data"), told);
    model.on("change:step", () => view.go(model.get("step"), false));
  },
};
