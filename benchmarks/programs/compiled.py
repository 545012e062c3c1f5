"""The step of a program as one compiled function, and its two views.  This file speaks minigrad."""
import re

import minigrad as mg


def jit(step, batch, steps):
    """The losses of the whole step under `mg.jit`, and why it was traced."""
    fast = mg.jit(step)
    losses = [float(fast(*batch())) for _ in range(steps)]
    return {"losses": losses, "traces": [str(each) for each in fast.traces]}


def views(step, batch, steps):
    """`mg.viz.step` of the first loss, and `mg.viz.fusion` of the step; both are saved as pages."""
    pages, backward = [], vars(mg.Tensor)["backward"]
    method = backward.theirs

    def noted(self, *args, **kwargs):
        if not pages:
            pages.append(mg.viz.step(self))
        return method(self, *args, **kwargs)

    backward.theirs = noted
    step(*batch())
    backward.theirs = method
    found = {"step": "no `backward`"}
    if pages:
        pages[0].save("step.html")
        found = {"step": re.search(r"\d+ nodes", repr(pages[0]))[0]}
    try:
        fused = mg.viz.fusion(step, *batch())
    except mg.MinigradError as error:  # the step needs a value before it is computed
        return {**found, "error": f"{type(error).__name__}: {error}"}
    fused.save("fusion.html")
    return {**found, "launches": re.search(r"[\d,]+ launches instead of [\d,]*\d", repr(fused))[0]}
