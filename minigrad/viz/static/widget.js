
// The entry point for anywidget.  `showAll` passes `shared`, where a view reads and writes the step that is seen.
export default {
  render({ model, el }) {
    const shared = { get: () => model.get("step"), set: (step) => { model.set("step", step); model.save_changes(); } };
    const view = showAll(el, model.get("data"), shared);
    model.on("change:step", () => view?.go(model.get("step"), false));
  },
};
