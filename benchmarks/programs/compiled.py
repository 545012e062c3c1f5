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
    pages.append(mg.viz.fusion(step, *batch()))
    for page, name in zip(pages, ("step.html", "fusion.html")):
        page.save(name)
    nodes = re.search(r"\d+ nodes", repr(pages[0]))
    launches = re.search(r"[\d,]+ launches instead of [\d,]+", repr(pages[1]))
    return {"step": nodes[0], "launches": launches[0]}
